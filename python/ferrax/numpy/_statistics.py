"""Covariance, correlation and convolution.

Read `_reductions.py` and `_products.py` first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._one_program import one_program
from ferrax.numpy import _reductions
from ferrax.numpy._args import Array, ArrayLike, DTypeLike, cast, cast_to, promote_inexact, require, to_array
from ferrax.numpy._dtype_functions import default_float, dtype_kind, issubdtype
from ferrax.numpy._products import matmul
from ferrax.numpy._ranks import check_ranks
from ferrax.numpy._ufuncs import where as _where

__all__ = ["convolve", "corrcoef", "correlate", "cov"]


def _weights(name: str, weights: ArrayLike, n: int, integer: bool) -> Array:
    w = to_array("cov", weights)
    if integer and dtype_kind(w.dtype) not in "iu":
        raise TypeError(f"{name} must be integer.")
    if w.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if w.shape and w.shape[0] != n:
        raise RuntimeError(f"incompatible numbers of samples and {name}")
    return w if dtype_kind(w.dtype) in "bu" else lax.abs(w)


@one_program("rowvar", "bias", "ddof")
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
        fweights: ArrayLike | None = None, aweights: ArrayLike | None = None,
        dtype: DTypeLike = None) -> Array:  # fmt: skip
    """The covariance matrix of variables.

    Args:
      m: array of shape (variables, observations), or one variable.
      y: more variables.
      rowvar: whether rows are variables; otherwise columns are.
      bias: divide by the number of observations instead of one less.
      ddof: divide by the number of observations less this.
      fweights: vector of integers: how often each observation occurred.
      aweights: vector of importances of the observations.
      dtype: dtype of the result.

    Returns:
      Array of shape (variables, variables), a scalar for one variable.

    Raises:
      ValueError: for arrays of more than two axes.
      TypeError: for `fweights` that are not integers.

    >>> import ferrax.numpy as jnp
    >>> jnp.cov(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if y is None:
        (x,) = promote_inexact("cov", m)
    else:
        x, other = promote_inexact("cov", m, y)
        check_ranks("cov", x, other)
        if other.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    if x.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if dtype is not None:
        x = cast_to(x, dtype)
    dimensions = x.ndim
    x = lax.reshape(x, (1, x.size)) if x.ndim < 2 else x
    x = lax.transpose(x, (1, 0)) if not rowvar and dimensions != 1 else x
    if x.shape[0] == 0:
        return lax.full((0, 0), 0, default_float())
    if y is not None:
        other = lax.reshape(cast(other, x.dtype), (1, other.size)) if other.ndim < 2 else cast(other, x.dtype)
        other = lax.transpose(other, (1, 0)) if not rowvar and other.shape[0] != 1 else other
        x = lax.concatenate([x, other], 0)
    if ddof is None:
        ddof = 0 if bias else 1
    n = x.shape[1]
    if n == 0:
        return lax.full(() if x.shape[0] == 1 else (x.shape[0], x.shape[0]), np.nan, x.dtype)
    w = None
    if fweights is not None:
        w = _weights("fweights", fweights, n, True)
    if aweights is not None:
        importance = _weights("aweights", aweights, n, False)
        w = importance if w is None else w * importance
    average = _reductions.average(x, 1, w, returned=True) if w is None or w.ndim else (_reductions.mean(x, 1), w * n)
    mean, total = average
    total = total[0] if total.ndim else total
    if w is None:
        factor = asarray(n - ddof, total.dtype)
    elif ddof == 0 or aweights is None:
        factor = total - ddof
    else:
        factor = total - ddof * _reductions.sum(w * importance) / total
    factor = _where(factor <= 0, asarray(0, factor.dtype), factor)
    x = x - lax.expand_dims(mean, (1,))
    right = x if w is None else x * (lax.broadcast_to_rank(w, 2) if w.ndim else w)
    product = matmul(x, lax.conj(right.T) if dtype_kind(x.dtype) == "c" else lax.transpose(right, (1, 0)))
    result = product / cast(factor, x.dtype)
    return lax.squeeze(result, tuple(i for i, d in enumerate(result.shape) if d == 1))


@one_program("rowvar")
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike = None) -> Array:
    """The matrix of Pearson's correlation coefficients of variables.

    Args:
      x: array of shape (variables, observations), or one variable.
      y, rowvar, dtype: as in `cov`.

    Returns: as in `cov`.

    >>> import ferrax.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    require("corrcoef", x)
    if dtype is not None and not issubdtype(dtype, np.inexact):
        raise ValueError(f"corrcoef: dtype must be a subclass of float or complex; got dtype={dtype}")
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    from ferrax.numpy._diagonal import diagonal

    deviation = lax.sqrt(lax.real(diagonal(c)) if dtype_kind(c.dtype) == "c" else diagonal(c)).astype(c.dtype)
    c = c / lax.expand_dims(deviation, (1,)) / lax.expand_dims(deviation, (0,))
    if dtype_kind(c.dtype) == "c":
        clip = lambda v: lax.clamp(asarray(-1, v.dtype), v, asarray(1, v.dtype))
        return lax.complex(clip(lax.real(c)), clip(lax.imag(c)))
    return lax.clamp(asarray(-1, c.dtype), c, asarray(1, c.dtype))


def _sliding(name, a, v, mode, flip, precision, preferred_element_type):
    """The dot products of a filter with all windows of a longer vector: a convolution of one feature."""
    if mode not in ("full", "same", "valid"):
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    x, y = promote_inexact(name, a, v)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if x.shape[0] == 0 or y.shape[0] == 0:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {x.shape} and {y.shape}.")
    reverse = False
    if not flip and dtype_kind(y.dtype) == "c":
        y = lax.conj(y)
    if x.shape[0] < y.shape[0]:
        x, y = y, x
        reverse = not flip
    m = y.shape[0]
    if flip:
        y = lax.rev(y, (0,))
    low, high = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}[mode]
    result = lax.conv_general_dilated(
        lax.expand_dims(x, (0, 1)), lax.expand_dims(y, (0, 1)), (1,), [(low, high)],
        precision=precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip
    result = lax.squeeze(result, (0, 1))
    return lax.rev(result, (0,)) if reverse else result


@one_program("mode", "precision")
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None,
             preferred_element_type: DTypeLike = None) -> Array:  # fmt: skip
    """The convolution of two vectors.

    Args:
      a: vector.
      v: vector.
      mode: "full" for all overlaps, "same" for the length of the longer one, "valid" for full overlaps.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.

    Returns:
      Floating vector.

    Raises:
      ValueError: for operands that are empty or not vectors.

    >>> import ferrax.numpy as jnp
    >>> jnp.convolve(jnp.array([1., 2., 3.]), jnp.array([1., 10.]))
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    return _sliding("convolve", a, v, mode, True, precision, preferred_element_type)


@one_program("mode", "precision")
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None,
              preferred_element_type: DTypeLike = None) -> Array:  # fmt: skip
    """The cross-correlation of two vectors, the second one conjugated.

    Args:
      a, v: as in `convolve`.
      mode: as for `convolve`.
      precision, preferred_element_type: as in `convolve`.

    Returns, Raises: as in `convolve`.

    >>> import ferrax.numpy as jnp
    >>> jnp.correlate(jnp.array([1., 2., 3.]), jnp.array([1., 10.]))
    Array([21., 32.], dtype=float32)
    """
    return _sliding("correlate", a, v, mode, False, precision, preferred_element_type)
