"""The geometric distribution: the number of the first trial that succeeds, from 1 on."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


@jit
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Logarithm of the probability of `k`.

    Args:
      k: number of the first success, of any shape; it broadcasts against the other arguments.
      p: probability of success of each trial.
      loc: what 0 is moved to.

    Returns:
      Array of the arguments' common shape and float dtype; -inf outside the support.

    >>> from ferrax.scipy.stats import geom
    >>> float(geom.logpmf(1, 0.5))
    -0.6931471824645996
    """
    k, p, loc = _common.parameters("geom.logpmf", k, p, loc)
    k = k - loc
    outside = k <= 0
    k, p = _common.where(outside, 1.0, k), _common.where(outside, 0.5, p)
    return _common.where(outside, -math.inf, _elementary.xlog1py(k - 1, -p) + lax.log(p))


@jit
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Probability of `k`.

    Args: as in `logpmf`.

    Returns:
      Array of the arguments' common shape and float dtype; 0 outside the support.

    >>> from ferrax.scipy.stats import geom
    >>> float(geom.pmf(2, 0.5))
    0.25
    """
    return lax.exp(logpmf(k, p, loc))


_expose(globals())
