"""The Gumbel distribution of largest values, with density exp(-z - exp(-z)) / scale for z = (x - loc) / scale.

It is that of smallest values reflected (`gumbel_l.py`). Read next: `_gumbel.py`.
"""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common, _gumbel
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]


@jit
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      loc: mode.
      scale: `pi * scale / sqrt(6)` is the standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.logpdf(0.0))
    -1.0
    """
    x, loc, scale = _common.parameters("gumbel_r.logpdf", x, loc, scale)
    return _gumbel.log_density((loc - x) / scale) - lax.log(scale)


@jit
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.pdf(0.0))
    0.3678794503211975
    """
    x, loc, scale = _common.parameters("gumbel_r.pdf", x, loc, scale)
    return _gumbel.density((loc - x) / scale) / scale


@jit
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.logcdf(0.0))
    -1.0
    """
    x, loc, scale = _common.parameters("gumbel_r.logcdf", x, loc, scale)
    return _gumbel.log_above((loc - x) / scale)


@jit
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.cdf(0.0))
    0.3678794503211975
    """
    x, loc, scale = _common.parameters("gumbel_r.cdf", x, loc, scale)
    return _gumbel.above((loc - x) / scale)


@jit
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Quantile: where `cdf` is `p`.

    Args:
      p: probability, of any shape.
      loc: mode.
      scale: `pi * scale / sqrt(6)` is the standard deviation.

    Returns:
      Array of the arguments' common shape and float dtype; NaN unless 0 <= p <= 1.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.ppf(0.5))
    0.3665129244327545
    """
    p, loc, scale = _common.parameters("gumbel_r.ppf", p, loc, scale)
    return loc - scale * lax.log(-lax.log(_common.probability(p)))


@jit
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.sf(0.0))
    0.6321205496788025
    """
    x, loc, scale = _common.parameters("gumbel_r.sf", x, loc, scale)
    return _gumbel.below((loc - x) / scale)


@jit
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args, Returns: as in `logpdf`.

    >>> from ferrax.scipy.stats import gumbel_r
    >>> float(gumbel_r.logsf(0.0))
    -0.4586751461029053
    """
    x, loc, scale = _common.parameters("gumbel_r.logsf", x, loc, scale)
    return _gumbel.log_below((loc - x) / scale)


_expose(globals())
