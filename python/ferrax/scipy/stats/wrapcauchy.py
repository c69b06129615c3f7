"""The wrapped Cauchy distribution of angles, with density (1 - c^2) / (2 pi (1 + c^2 - 2 c cos(x))), 0 <= x <= 2 pi."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


@jit
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Logarithm of the density.

    Args:
      x: angle from 0 to 2 pi, of any shape; it broadcasts against `c`.
      c: concentration, in (0, 1).

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import wrapcauchy
    >>> float(wrapcauchy.logpdf(0.0, 0.5))
    -0.7392648458480835
    """
    x, c = _common.parameters("wrapcauchy.logpdf", x, c)
    half = lax.sin(x / 2)
    gap = 1 - c
    logs = lax.log(gap * (1 + c)) - lax.log(2 * math.pi * (gap * gap + 4 * c * half * half))
    inside = _common.where((x < 0) | (x > 2 * math.pi), -math.inf, logs)
    return _common.where((c > 0) & (c < 1), inside, math.nan)


@jit
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import wrapcauchy
    >>> float(wrapcauchy.pdf(0.0, 0.5))
    0.47746479511260986
    """
    return lax.exp(logpdf(x, c))


_expose(globals())
