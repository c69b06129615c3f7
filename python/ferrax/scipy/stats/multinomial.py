"""The multinomial distribution: how often each of k outcomes, along the last axis, comes in n trials."""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax._core import asarray, promote_ranks
from ferrax.numpy import _reductions
from ferrax.numpy._args import promote_inexact, require
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def _log_mass(p: Array, x: Array, n: Array) -> Array:
    """Logarithm of the probability of counts `x` that add up to `n`, in float64."""
    parts = _elementary.xlogy(x, p) - lax.lgamma(x + 1)
    return lax.lgamma(n[..., 0] + 1) + _reductions.sum(parts, axis=-1)


@jit
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Logarithm of the probability of `x`.

    Args:
      x: counts, integers of shape (..., k).
      n: number of trials, integers that broadcast against the leading axes of `x`.
      p: probabilities, shape (..., k).

    Returns:
      Array of the leading axes' shape; -inf where the counts are negative or do not add up to `n`.

    Raises:
      ValueError: `x` or `n` are not integers.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import multinomial
    >>> float(multinomial.logpmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])))
    -0.6931471824645996
    """
    require("multinomial.logpmf", x, n, p)
    x, n = asarray(x), asarray(n)
    (p,) = promote_inexact("multinomial.logpmf", p)
    if dtype_kind(x.dtype) not in "iub" or dtype_kind(n.dtype) not in "iub":
        raise ValueError(f"multinomial: x and n must be integers, got {x.dtype} and {n.dtype}.")
    x, p, n = promote_ranks("multinomial.logpmf", x, p, lax.expand_dims(n, (n.ndim,)))
    valid = (_reductions.sum(x, axis=-1) == lax.squeeze(n, (n.ndim - 1,))) & (x >= 0).all(-1)
    logs = _common.in_double(_log_mass, p, _common.where(x > 0, x, 0), n)
    return _common.where(valid, logs, -math.inf)


@jit
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of `x`.

    Args: as in `logpmf`.

    Returns:
      Array of the leading axes' shape; 0 where the counts are negative or do not add up to `n`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import multinomial
    >>> float(multinomial.pmf(jnp.array([1, 1]), 2, jnp.array([0.5, 0.5])))
    0.5
    """
    return lax.exp(logpmf(x, n, p))


_expose(globals())
