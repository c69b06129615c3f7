"""Vector quantization: `ferrax.scipy.cluster.vq`."""

from __future__ import annotations

from ferrax import jit, lax
from ferrax._boundary import expose as _expose
from ferrax.numpy import _reductions, _take, _ufuncs
from ferrax.numpy._args import Array, ArrayLike, promote_inexact

__all__ = ["vq"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code of each observation, and how far away it is.

    Args:
      obs: observations, shape (n, d), or (n,) for d = 1.
      code_book: codes, shape (k, d) or (k,), of the rank of `obs`.
      check_finite: ignored.

    Returns:
      Integers of shape (n,), the first of the nearest codes for each observation, and distances of shape (n,).

    Raises:
      ValueError: the ranks differ, or are neither 1 nor 2, or vectors differ in length.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.scipy.cluster.vq import vq
    >>> vq(jnp.array([1.0, 9.0, 4.0]), jnp.array([0.0, 5.0]))
    (Array([0, 1, 1], dtype=int32), Array([1., 4., 1.], dtype=float32))
    """
    return _nearest(obs, code_book)


@jit
def _nearest(obs: ArrayLike, code_book: ArrayLike) -> tuple[Array, Array]:
    obs, codes = promote_inexact("scipy.cluster.vq.vq", obs, code_book)
    if obs.ndim != codes.ndim:
        raise ValueError(f"vq: observations and code_book must have one rank, got shapes {obs.shape}, {codes.shape}.")
    if obs.ndim not in (1, 2):
        raise ValueError(f"vq: observations must have one or two axes, got shape {obs.shape}.")
    if obs.ndim == 1:
        obs, codes = obs[:, None], codes[:, None]
    if obs.shape[1] != codes.shape[1]:
        raise ValueError(f"vq: vectors of {obs.shape[1]} and of {codes.shape[1]} entries cannot be compared.")
    away = lax.abs(obs[:, None, :] - codes[None, :, :])
    squares = _reductions.sum(away * away, axis=-1)
    nearest = _reductions.argmin(squares, axis=1)
    square = lax.squeeze(_take.take_along_axis(squares, nearest[:, None], axis=1), (1,))
    # a distance of zero has the derivative zero
    apart = square != 0
    return nearest, _ufuncs.where(apart, lax.sqrt(_ufuncs.where(apart, square, 1.0)), 0.0)


_expose(globals())
