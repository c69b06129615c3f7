"""The Dirichlet distribution of k proportions, with density prod(x^(alpha - 1)) Gamma(sum alpha) / prod(Gamma(alpha)).

The proportions lie along the first axis, as in SciPy.
"""

from __future__ import annotations

import math

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.numpy import _join, _reductions
from ferrax.numpy._args import promote_inexact
from ferrax.scipy.special import _elementary
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpdf", "pdf"]

#: How far from 1 the sum of the proportions may be.
_ROUNDING = 1e-6


def _whole(x: Array, alpha: Array) -> Array:
    """`x` with the last proportion, which may be left out."""
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet: alpha must be one-dimensional, got shape {alpha.shape}.")
    if x.ndim == 0 or x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError(
            f"dirichlet: x must have as many entries along its first axis as alpha, or one fewer; "
            f"got shapes {x.shape} and {alpha.shape}."
        )
    if x.shape[0] == alpha.shape[0]:
        return x
    return _join.concatenate([x, 1 - _reductions.sum(x, axis=0, keepdims=True)])


def _log_density(x: Array, alpha: Array) -> Array:
    """Logarithm of the density inside the simplex, in float64."""
    total = lax.lgamma(_reductions.sum(alpha, axis=0)) - _reductions.sum(lax.lgamma(alpha), axis=0)
    return total + _reductions.sum(_elementary.xlogy(alpha - 1, x), axis=0)


@jit
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Logarithm of the density.

    Args:
      x: proportions, shape (k, ...): positive numbers that add up to 1; or (k - 1, ...) without the last.
      alpha: concentrations, shape (k,), positive.

    Returns:
      Array of the shape of `x` without its first axis; -inf where a proportion is not positive, or where they do
      not add up to 1.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import dirichlet
    >>> float(dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.ones(3)))
    0.6931471824645996
    """
    x, alpha = promote_inexact("dirichlet.logpdf", x, alpha)
    x = _whole(x, alpha)
    valid = (x > 0).all(0) & (abs(_reductions.sum(x, axis=0) - 1) < _ROUNDING)
    alpha = lax.expand_dims(alpha, tuple(range(1, x.ndim)))
    logs = _common.in_double(_log_density, _common.where(x > 0, x, 1.0), alpha)
    return _common.where(valid, logs, -math.inf)


@jit
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density.

    Args: as in `logpdf`.

    Returns:
      Array of the shape of `x` without its first axis; 0 where a proportion is not positive, or where they do not
      add up to 1.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import dirichlet
    >>> float(dirichlet.pdf(jnp.array([0.2, 0.3, 0.5]), jnp.ones(3)))
    2.0
    """
    return lax.exp(logpdf(x, alpha))


_expose(globals())
