"""The chi-squared distribution: the gamma distribution of shape df / 2 and twice the scale. Read next: `gamma.py`."""

from __future__ import annotations

from ferrax import jit
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common, gamma
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]


@jit
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the density.

    Args:
      x: where, of any shape; it broadcasts against the other arguments.
      df: degrees of freedom, positive.
      loc: lower end of the support.
      scale: scale, positive.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.logpdf(1.0, 2.0))
    -1.1931471824645996
    """
    x, df, loc, scale = _common.parameters("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@jit
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.pdf(1.0, 2.0))
    0.3032653331756592
    """
    x, df, loc, scale = _common.parameters("chi2.pdf", x, df, loc, scale)
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@jit
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.cdf(1.0, 2.0))
    0.39346933364868164
    """
    x, df, loc, scale = _common.parameters("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@jit
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values up to `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.logcdf(1.0, 2.0))
    -0.9327521324157715
    """
    x, df, loc, scale = _common.parameters("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@jit
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.sf(1.0, 2.0))
    0.6065306663513184
    """
    x, df, loc, scale = _common.parameters("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


@jit
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Logarithm of the probability of values above `x`.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype.

    >>> from ferrax.scipy.stats import chi2
    >>> float(chi2.logsf(1.0, 2.0))
    -0.5
    """
    x, df, loc, scale = _common.parameters("chi2.logsf", x, df, loc, scale)
    return gamma.logsf(x, df / 2, loc, 2 * scale)


_expose(globals())
