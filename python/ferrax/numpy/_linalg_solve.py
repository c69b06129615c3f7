"""Linear systems, inverses and determinants. Read next: `lax/linalg.py`."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ferrax import lax
from ferrax._core import asarray
from ferrax._ferrax import lax as _lax
from ferrax._one_program import one_program
from ferrax.custom_derivatives import custom_jvp
from ferrax.lax import linalg as _lax_linalg
from ferrax.numpy import _creation, _cumulative, _diagonal, _join, _ranges, _reductions, _take
from ferrax.numpy._args import Array, ArrayLike, broadcast_to_shape, common_shape, normalize_axis, promote_inexact
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.numpy._linalg_factors import check_square, qr
from ferrax.numpy._ranks import check_batch_ranks
from ferrax.numpy._shape import matrix_transpose
from ferrax.numpy._ufuncs import where

__all__ = ["det", "inv", "slogdet", "solve", "tensorinv", "tensorsolve"]


class SlogdetResult(NamedTuple):
    """Sign and logarithm of the absolute value of determinants."""

    sign: Any
    logabsdet: Any


def _diagonals(x: Array) -> Array:
    return _diagonal.diagonal(x, axis1=-2, axis2=-1)


def _batched(x: Array, batch: tuple[int, ...]) -> Array:
    return broadcast_to_shape(x, batch + x.shape[-2:])


@one_program(equation=True)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution x of a x = b.

    Args:
      a: array of shape (..., n, n).
      b: array of shape (n,), or of shape (..., n, m) whose leading axes broadcast with those of `a`.

    Returns:
      Floating array of shape (..., n) or (..., n, m).

    Raises:
      ValueError: `a` is not square, or the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2., 0.], [1., 4.]]), jnp.array([2., 9.]))
    Array([1., 2.], dtype=float32)
    """
    x, y = promote_inexact("jnp.linalg.solve", a, b)
    if x.ndim < 2:
        raise ValueError(f"left hand array must be at least two dimensional; got a.shape={x.shape}")
    check_square("solve", x)
    if y.ndim == 0 or y.shape[-1 if y.ndim == 1 else -2] != x.shape[-1]:
        raise ValueError(
            f"Invalid shapes for solve: {x.shape}, {y.shape}. A right-hand side has shape [n] or [..., n, m]; "
            "a batch of vectors is solve(a, b[..., None]).squeeze(-1)."
        )
    vector = y.ndim == 1
    if vector:
        y = lax.expand_dims(y, (-1,))
    else:
        check_batch_ranks((x, y), ("mm", "mn"), "(m,m),(m,n)->(m,n)")
    if x.ndim == 2 and y.ndim == 2:
        out = _lax.solve(x, y)
    else:
        batch = common_shape(x.shape[:-2], y.shape[:-2])
        out = _lax.solve(_batched(x, batch), _batched(y, batch))
    return out.squeeze(-1) if vector else out


@one_program(equation=True)
def inv(a: ArrayLike) -> Array:
    """The inverses of matrices.

    Args:
      a: array of shape (..., n, n).

    Returns:
      Floating array of the shape of `a`; infinities and NaN where it is singular.

    Raises:
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.inv", a)
    check_square("inv", x)
    return _lax.solve(x, broadcast_to_shape(_ranges.eye(x.shape[-1], dtype=x.dtype), x.shape))


def _det_2x2(a: Array) -> Array:
    return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]


def _det_3x3(a: Array) -> Array:
    def term(i: int, j: int, k: int) -> Array:
        return a[..., 1, j] * (a[..., 0, i] * a[..., 2, k] - a[..., 0, k] * a[..., 2, i])

    return term(0, 1, 2) + term(1, 2, 0) + term(2, 0, 1)


def _cofactors(a: Array) -> list[Array]:
    """The derivatives of the determinant with respect to the entries of matrices of two or three rows, row by row."""
    n = a.shape[-1]
    entry = lambda i, j: a[..., i % n, j % n]
    if n == 2:
        return [entry(1, 1), -entry(1, 0), -entry(0, 1), entry(0, 0)]
    minor = lambda i, j: entry(i + 1, j + 1) * entry(i + 2, j + 2) - entry(i + 1, j + 2) * entry(i + 2, j + 1)
    return [minor(i, j) for i in range(n) for j in range(n)]


@custom_jvp
def _det_small(a: Array) -> Array:
    return _det_2x2(a) if a.shape[-1] == 2 else _det_3x3(a)


@_det_small.defjvp
def _det_small_jvp(primals, tangents):
    (a,), (da,) = primals, tangents
    slope = _join.stack(_cofactors(a), -1).reshape(a.shape)
    return _det_small(a), _reductions.sum(slope * da, (-2, -1))


def _parity(pivots: Array) -> Array:
    """The number of rows that were exchanged."""
    index = lax.broadcasted_iota(np.int32, pivots.shape, pivots.ndim - 1)
    return _reductions.sum(pivots != index, -1, dtype=np.int32)


def _sign(parity: Array, dtype: Any) -> Array:
    return lax.convert_element_type(1 - 2 * (parity % 2), dtype)


@custom_jvp
def _det(a: Array) -> Array:
    factors, pivots, _ = _lax.lu(a)
    return _reductions.prod(_diagonals(factors), -1) * _sign(_parity(pivots), a.dtype)


@_det.defjvp
def _det_jvp(primals, tangents):
    (a,), (da,) = primals, tangents
    det, moved = _adjugate_product(a, da)
    return det, _diagonal.trace(moved, axis1=-2, axis2=-1)


def _adjugate_product(a: Array, b: Array) -> tuple[Array, Array]:
    """det(a), and adj(a) b = det(a) a⁻¹ b without dividing by the last pivot: finite where only that one is zero.

    With P a = L U, of x = det(a) U⁻¹ y the last component is y times the product of the other pivots. The others follow
    by substitution in U once that product stands for its last pivot's inverse.
    """
    factors, pivots, permutation = _lax.lu(a)
    n = a.shape[-1]
    products = _cumulative.cumprod(_diagonals(factors), -1) * _sign(_parity(pivots), a.dtype)[..., None]
    det, others = products[..., -1], products[..., -2]
    # Where another pivot is zero too, adj(a) counts as zero: the systems are kept regular there.
    flat = (others == 0)[..., None, None]
    rows = lax.broadcasted_iota(np.int32, factors.shape, factors.ndim - 2)
    columns = lax.broadcasted_iota(np.int32, factors.shape, factors.ndim - 1)
    corner = (rows == n - 1) & (columns == n - 1)
    factors = where(flat, where(rows == columns, asarray(1, dtype=a.dtype), asarray(0, dtype=a.dtype)), factors)
    y = _take.take_along_axis(b, permutation[..., None], axis=-2)
    y = _lax_linalg.triangular_solve(factors, y, left_side=True, lower=True, unit_diagonal=True)
    y = where(rows == n - 1, y, y * det[..., None, None])
    safe = where(flat, asarray(1, dtype=a.dtype), others[..., None, None])
    x = _lax_linalg.triangular_solve(where(corner, 1 / safe, factors), y, left_side=True)
    return det, where(flat, _creation.zeros_like(x), x)


@one_program(equation=True)
def det(a: ArrayLike) -> Array:
    """The determinants of matrices.

    Args:
      a: array of shape (..., n, n).

    Returns:
      Floating array of shape (...).

    Raises:
      ValueError: the matrices are not square.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.det(jnp.array([[2., 1.], [1., 4.]]))
    Array(7., dtype=float32)
    """
    (x,) = promote_inexact("jnp.linalg.det", a)
    check_square("_det()", x)
    match x.shape[-1]:
        case 0:
            return _creation.ones(x.shape[:-2], x.dtype)
        case 1:
            return lax.convert_element_type(x[..., 0, 0], x.dtype)
        case 2 | 3:
            return _det_small(x)
        case _ if x.dtype.itemsize <= 2:
            return lax.convert_element_type(_det(lax.convert_element_type(x, np.float32)), x.dtype)
        case _:
            return _det(x)


@custom_jvp
def _slogdet(a: Array) -> tuple[Array, Array]:
    factors, pivots, _ = _lax.lu(a)
    pivot = _diagonals(factors)
    real = dtype_kind(a.dtype) != "c"
    singular = _reductions.any(pivot == 0, -1)
    parity = _parity(pivots)
    if real:
        sign = _sign(parity + _reductions.sum(pivot < 0, -1, dtype=np.int32), a.dtype)
    else:
        size = lax.convert_element_type(lax.abs(pivot), a.dtype)
        sign = _reductions.prod(pivot / size, -1) * _sign(parity, a.dtype)
    size = _reductions.sum(lax.log(lax.abs(pivot)), -1)
    zero, lowest = asarray(0, dtype=sign.dtype), asarray(-np.inf, dtype=size.dtype)
    return where(singular, zero, sign), where(singular, lowest, size)


def _slogdet_change(function, primals, tangents):
    (a,), (da,) = primals, tangents
    sign, size = function(a)
    slope = _diagonal.trace(_lax.solve(a, da), axis1=-2, axis2=-1)
    if dtype_kind(a.dtype) != "c":
        return (sign, size), (_creation.zeros_like(sign), slope)
    real = lax.real(slope)
    return (sign, size), ((slope - lax.convert_element_type(real, slope.dtype)) * sign, real)


_slogdet.defjvp(lambda primals, tangents: _slogdet_change(_slogdet, primals, tangents))


@custom_jvp
def _slogdet_qr(a: Array) -> tuple[Array, Array]:
    """As `_slogdet`, from reflections I - tau v vᴴ, whose determinants are 1 - tau |v|²."""
    packed, taus = qr(a, mode="raw")
    factors = matrix_transpose(packed)
    pivot = _diagonals(factors)
    squares = 1 + _reductions.sum(lax.square(lax.abs(_diagonal.tril(factors, -1))), -2)
    turns = 1 - taus * lax.convert_element_type(squares, a.dtype)
    size = lax.abs(pivot)
    singular = _reductions.any(size == 0, -1)
    full = lax.convert_element_type(where(size == 0, asarray(1, size.dtype), size), a.dtype)
    parts = pivot / full * turns
    sign = _reductions.prod(parts / lax.convert_element_type(lax.abs(parts), a.dtype), -1)
    logs = _reductions.sum(lax.log(size), -1)
    return where(singular, asarray(0, sign.dtype), sign), logs


_slogdet_qr.defjvp(lambda primals, tangents: _slogdet_change(_slogdet_qr, primals, tangents))


@one_program("method", equation=True)
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of the determinants of matrices.

    Args:
      a: array of shape (..., n, n).
      method: "lu", which None stands for, or "qr": the factorization that gives them.

    Returns:
      `sign` and `logabsdet`, of shape (...): the determinant is sign * exp(logabsdet). Of a singular matrix they are 0
      and -inf.

    Raises:
      ValueError: the matrices are not square, or there is no such method.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.slogdet(jnp.array([[0., 1.], [1., 0.]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    (x,) = promote_inexact("jnp.linalg.slogdet", a)
    check_square("slogdet()", x)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' (`None`), and 'qr'.")
    found = _slogdet_qr if method == "qr" else _slogdet
    if x.dtype.itemsize > 2:
        return SlogdetResult(*found(x))
    wide = found(lax.convert_element_type(x, np.float32))
    return SlogdetResult(*(lax.convert_element_type(part, x.dtype) for part in wide))


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a linear map of tensors.

    Args:
      a: array whose first `ind` axes have as many elements as the others.
      ind: number of leading axes, positive.

    Returns:
      Array of shape ``a.shape[ind:] + a.shape[:ind]``.

    Raises:
      ValueError: `ind` is not positive.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    (x,) = promote_inexact("jnp.linalg.tensorinv", a)
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    first, others = x.shape[:ind], x.shape[ind:]
    if np.prod(first, dtype=int) != np.prod(others, dtype=int):
        raise ValueError(
            "tensorinv is only possible when the product of the first `ind` dimensions equals that of the remaining "
            f"dimensions. got arr.shape={x.shape} with ind={ind}."
        )
    return inv(x.reshape(int(np.prod(first)), int(np.prod(others)))).reshape(others + first)


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The tensor x whose product with `a` over all of its axes is `b`.

    Args:
      a: array of shape ``b.shape + x.shape``, with as many elements in x as in b.
      b: array.
      axes: axes of `a` to be moved to its end first.

    Returns:
      Array of the shape of the last axes of `a`.

    Raises:
      ValueError: the shapes do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    x, y = promote_inexact("jnp.linalg.tensorsolve", a, b)
    if axes is not None:
        moved = [normalize_axis(i, x.ndim) for i in axes]
        x = lax.transpose(x, [i for i in range(x.ndim) if i not in moved] + moved)
    shape = x.shape[y.ndim :]
    size = int(np.prod(shape))
    if x.shape[: y.ndim] != y.shape:
        raise ValueError(
            "After moving axes to end, leading shape of a must match shape of b. "
            f"Got a.shape={x.shape}, b.shape={y.shape}"
        )
    if y.size != size:
        raise ValueError(
            "Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]); "
            f"got a.shape={x.shape}, b.ndim={y.ndim}."
        )
    return solve(x.reshape(size, size), y.ravel()).reshape(shape)
