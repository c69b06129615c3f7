"""The normal distribution of vectors, which lie along the last axis. Read next: `norm.py`."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _diagonal, _reductions
from ferrax.numpy._args import broadcast_to_shape, broadcast_together, common_shape, promote_inexact
from ferrax.scipy.stats import _common
from ferrax.scipy.stats._common import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None) -> Array:
    """Logarithm of the density.

    Args:
      x: where, shape (..., n); any shape when `mean` is a number.
      mean: mean, shape (..., n); or a number, for independent values of one variance.
      cov: covariance, shape (..., n, n); or a number, the variance along every axis.
      allow_singular: must be None.

    Returns:
      Array of the leading axes' shape; of all of `x` when `mean` is a number. NaN where the covariance is not
      positive definite.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import multivariate_normal
    >>> float(multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)))
    -1.8378770351409912
    """
    if allow_singular is not None:
        raise NotImplementedError("The allow_singular argument of multivariate_normal.logpdf is not supported.")
    return _logpdf(x, mean, cov)


@jit
def _logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    x, mean, cov = promote_inexact("multivariate_normal.logpdf", x, mean, cov)
    if mean.ndim == 0 and cov.ndim == 0:
        away = x - mean
        return -(away * away) / (2 * cov) - (lax.log(cov) / 2 + _common.HALF_LOG_2PI)
    n = mean.shape[-1] if mean.ndim else cov.shape[-1]
    if cov.ndim and (cov.ndim < 2 or cov.shape[-2:] != (n, n)):
        raise ValueError(
            f"multivariate_normal: incompatible shapes {x.shape} of x, {mean.shape} of mean and {cov.shape} of cov."
        )
    shape = common_shape(x.shape, mean.shape)
    away = broadcast_to_shape(x, shape) - broadcast_to_shape(mean, shape)
    if away.shape[-1:] != (n,):
        raise ValueError(f"multivariate_normal: x of shape {x.shape} has not the {n} entries of the mean.")
    if cov.ndim == 0:
        square = _reductions.sum(away * away, axis=-1) / cov
        log_volume = n * lax.log(cov) / 2
    else:
        root = _lax_linalg.cholesky(cov)
        square = _reductions.sum(lax.square(_whitened(root, away)), axis=-1)
        log_volume = _reductions.sum(lax.log(_diagonal.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    square, log_volume = broadcast_together(square, log_volume)
    return -square / 2 - (log_volume + n * _common.HALF_LOG_2PI)


def _whitened(root: Array, away: Array) -> Array:
    """Vectors of the last axis in units of the axes of a covariance, of which `root` is the Cholesky factor."""
    n = away.shape[-1]
    if root.ndim == 2:
        columns = lax.transpose(lax.reshape(away, (away.size // n if n else 0, n)), (1, 0))
        solved = _lax_linalg.triangular_solve(root, columns, left_side=True, lower=True)
        return lax.reshape(lax.transpose(solved, (1, 0)), away.shape)
    batch = common_shape(root.shape[:-2], away.shape[:-1])
    root, away = broadcast_to_shape(root, (*batch, n, n)), broadcast_to_shape(away, (*batch, n))
    solved = _lax_linalg.triangular_solve(root, away[..., None], left_side=True, lower=True)
    return lax.squeeze(solved, (solved.ndim - 1,))


@jit
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density.

    Args:
      x, mean, cov: as in `logpdf`.

    Returns: as in `logpdf`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.stats import multivariate_normal
    >>> float(multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2)))
    0.1591549515724182
    """
    return lax.exp(_logpdf(x, mean, cov))


_expose(globals())
