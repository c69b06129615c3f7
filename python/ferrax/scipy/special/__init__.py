"""Special functions with SciPy's interface, as JAX has it: elementwise, and broadcast as `ferrax.numpy` broadcasts.

A file has a family of functions, and loads when one of its names is asked for. Functions that arithmetic in the
operand's dtype would spoil are computed in float64 and rounded once, whether 64-bit types are enabled or not. Read
next: `_args.py`, `_elementary.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.special._beta import *
    from ferrax.scipy.special._elementary import *
    from ferrax.scipy.special._gamma import *
    from ferrax.scipy.special._normal import *
    from ferrax.scipy.special._sums import *

_LATER = {
    "_beta": "beta betainc betaln comb",
    "_elementary": "boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy",
    "_gamma": ("digamma factorial gamma gammainc gammaincc gammaln gammasgn loggamma multigammaln polygamma zeta"),
    "_normal": "erf erfc erfinv log_ndtr ndtr ndtri",
    "_sums": "log_softmax logsumexp softmax",
}

_defer(globals(), _LATER)
