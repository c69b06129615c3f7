"""Special functions with SciPy's interface, as JAX has it: elementwise, and broadcast as `ferrax.numpy` broadcasts.

A file has a family of functions, and loads when one of its names is asked for. Functions that arithmetic in the
operand's dtype would spoil are computed in float64 and rounded once, whether 64-bit types are enabled or not. Read
next: `_args.py`, `_elementary.py`.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.special._bernoulli import *
    from ferrax.scipy.special._bessel import *
    from ferrax.scipy.special._beta import *
    from ferrax.scipy.special._elementary import *
    from ferrax.scipy.special._error_functions import *
    from ferrax.scipy.special._exponential_integrals import *
    from ferrax.scipy.special._gamma import *
    from ferrax.scipy.special._harmonics import *
    from ferrax.scipy.special._hypergeometric import *
    from ferrax.scipy.special._modified_bessel import *
    from ferrax.scipy.special._normal import *
    from ferrax.scipy.special._owens_t import *
    from ferrax.scipy.special._sums import *

_LATER = {
    "_bernoulli": "bernoulli",
    "_bessel": "bessel_jn",
    "_beta": "beta betainc betaln comb poch",
    "_elementary": "boxcox boxcox1p entr expit kl_div logit rel_entr xlog1py xlogy",
    "_error_functions": "dawsn erfcx wofz",
    "_exponential_integrals": "exp1 expi expn fresnel sici spence",
    "_gamma": "digamma factorial gamma gammainc gammaincc gammaln gammasgn loggamma multigammaln polygamma zeta",
    "_harmonics": "lpmn lpmn_values sph_harm_y",
    "_hypergeometric": "hyp1f1 hyp2f1",
    "_modified_bessel": "i0 i0e i1 i1e",
    "_normal": "erf erfc erfinv log_ndtr ndtr ndtri",
    "_owens_t": "owens_t",
    "_sums": "log_softmax logsumexp softmax",
}

_defer(globals(), _LATER)
