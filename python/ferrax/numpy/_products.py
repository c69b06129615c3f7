"""Products that contract axes: dot, matmul, tensordot and their relatives.

Each is one `lax.dot_general`. Axes of length 1 are not repeated before a product: they are left out and the other
operand's axis goes through as a free one. Read `_einsum.py` next.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrax import dtypes, lax
from ferrax._one_program import one_program
from ferrax._rust import with_shortcut
from ferrax._shapes import broadcast_shapes
from ferrax.numpy import _shape
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    DTypeLike,
    broadcast_to_shape,
    no_out,
    normalize_axis,
    promote,
    to_arrays,
    user_dtype,
    with_out_sharding,
)  # fmt: skip
from ferrax.numpy._dtype_functions import dtype_kind, result_type
from ferrax.numpy._ranks import check_batch_ranks

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat",
]  # fmt: skip


def contract(
    name: str, a: Array, b: Array, dimension_numbers: Any, precision: Any, preferred_element_type: DTypeLike
) -> Array:
    """`lax.dot_general` for the function of that name, with the canonical form of a `preferred_element_type`."""
    if preferred_element_type is not None:
        preferred = user_dtype(preferred_element_type)
    else:
        # a dtype that is asked for is not weak
        preferred = None if a.weak_type and b.weak_type else result_type(a, b)
    for i, j in zip(*dimension_numbers[0]):
        if a.shape[i] != b.shape[j]:
            raise TypeError(
                "dot_general requires contracting dimensions to have the same shape, got "
                f"{tuple(a.shape[k] for k in dimension_numbers[0][0])} and "
                f"{tuple(b.shape[k] for k in dimension_numbers[0][1])}. In {name} of operands of shapes {a.shape} and "
                f"{b.shape}, axis {i} of the first has size {a.shape[i]}, axis {j} of the second has size {b.shape[j]}."
            )
    return lax.dot_general(a, b, dimension_numbers, precision=precision, preferred_element_type=preferred)


def _factors(name: str, a: ArrayLike, b: ArrayLike) -> Sequence[Any]:
    """Both operands as arrays, each in its own dtype where both have one: the product itself takes several."""
    x, y = to_arrays(name, a, b)
    if x.ndim == 0 or y.ndim == 0 or x.weak_type or y.weak_type:
        return promote(name, a, b)
    _, weak = dtypes.result_type(x, y, return_weak_type_flag=True)  # which raises where they may not meet
    return promote(name, a, b) if weak else (x, y)


def _scaled(a: Array, b: Array, preferred_element_type: DTypeLike) -> Array:
    """The product where one operand is a scalar."""
    shape = broadcast_shapes(a.shape, b.shape)
    product = lax.bitwise_and if a.dtype == bool else lax.mul
    result = product(broadcast_to_shape(a, shape), broadcast_to_shape(b, shape))
    return (
        result
        if preferred_element_type is None
        else lax.convert_element_type(result, user_dtype(preferred_element_type))
    )


@with_shortcut("matmul")
def dot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None,
        out_sharding: None = None) -> Array:  # fmt: skip
    """The dot product: the sum of products over the last axis of `a` and the last but one of `b`.

    Args:
      a: array of shape (..., k), or a scalar.
      b: array of shape (..., k, n) or (k,), or a scalar.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array with the other axes of `a`, then those of `b`.

    Raises:
      TypeError: when the contracted lengths differ.

    >>> import ferrax.numpy as jnp
    >>> jnp.dot(jnp.array([1, 2, 3]), jnp.array([4, 5, 6]))
    Array(32, dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: dot(a, b, precision=precision, preferred_element_type=preferred_element_type),
            out_sharding,
            "dot_general",
        )
    x, y = _factors("dot", a, b)
    if x.ndim == 0 or y.ndim == 0:
        return _scaled(x, y, preferred_element_type)
    axes = ((x.ndim - 1,), (max(0, y.ndim - 2),))
    return contract("dot", x, y, (axes, ((), ())), precision, preferred_element_type)


def _split_batch(x: Array, y: Array, dims: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[Any, ...]:
    """Classes of the batch axes, counted from the last: shared, only in `x`, only in `y`; and the squeezed operands."""
    (bx, by) = dims
    n = max(len(bx), len(by))
    shared, x_only, y_only, drop_x, drop_y = [], [], [], [], []
    for i in range(n):
        ix, iy = i - n + len(bx), i - n + len(by)
        dx, dy = bx[ix] if ix >= 0 else None, by[iy] if iy >= 0 else None
        if dx == dy:
            shared.append((i, ix, iy))
        elif dx is not None and dy in (None, 1):
            x_only.append((i, ix))
            if dy == 1:
                drop_y.append(iy)
        elif dy is not None and dx in (None, 1):
            y_only.append((i, iy))
            if dx == 1:
                drop_x.append(ix)
        else:
            return ()
    return shared, x_only, y_only, drop_x, drop_y


@with_shortcut("matmul")
def matmul(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None,
           out_sharding: None = None) -> Array:  # fmt: skip
    """The matrix product over the last two axes; the others broadcast.

    Args:
      a: array of shape (..., m, k) or (k,).
      b: array of shape (..., k, n) or (k,).
      precision, preferred_element_type, out_sharding: as in `dot`.

    Returns:
      Array of shape (..., m, n), without the axes that a vector operand lacks.

    Raises:
      ValueError: for scalars, or batch axes that do not broadcast.
      TypeError: when the contracted lengths differ.

    >>> import ferrax.numpy as jnp
    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1], [10]]))
    Array([[21],
           [43]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: matmul(a, b, precision=precision, preferred_element_type=preferred_element_type),
            out_sharding,
            "dot_general",
        )
    x, y = _factors("matmul", a, b)
    for i, operand in enumerate((x, y)):
        if operand.ndim == 0:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim 0")
    if x.ndim <= 2 and y.ndim <= 2:
        axes = ((x.ndim - 1,), (max(0, y.ndim - 2),))
        return contract("matmul", x, y, (axes, ((), ())), precision, preferred_element_type)
    return _batched_matmul(x, y, precision, preferred_element_type)


def _batched_matmul(x: Array, y: Array, precision: Any, preferred_element_type: DTypeLike) -> Array:
    x_free, y_free = x.ndim > 1, y.ndim > 1
    batches = (x.shape[:-2], y.shape[:-2])
    classes = _split_batch(x, y, batches)
    if not classes:
        raise ValueError(
            f"Incompatible types for matmul arguments: {x.dtype}[{','.join(map(str, x.shape))}] and "
            f"{y.dtype}[{','.join(map(str, y.shape))}]: the axes before the last two do not broadcast."
        )
    shared, x_only, y_only, drop_x, drop_y = classes
    x, y = lax.squeeze(x, tuple(drop_x)), lax.squeeze(y, tuple(drop_y))
    shift = lambda i, dropped: i - sum(d < i for d in dropped)
    batch = (tuple(shift(i, drop_x) for _, i, _ in shared), tuple(shift(i, drop_y) for _, _, i in shared))
    contracting = ((x.ndim - 1,), (y.ndim - 2 if y_free else 0,))
    result = contract("matmul", x, y, (contracting, batch), precision, preferred_element_type)
    # dot_general gives: shared axes, the free ones of x (its own batch axes, then m), the free ones of y.
    order = [i for i, *_ in shared] + [i for i, _ in x_only] + (["m"] if x_free else [])
    order += [i for i, _ in y_only] + (["n"] if y_free else [])
    count = max(len(batches[0]), len(batches[1]))
    wanted = list(range(count)) + (["m"] if x_free else []) + (["n"] if y_free else [])
    return lax.transpose(result, tuple(order.index(i) for i in wanted))


@one_program("precision")
def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None) -> Array:
    """The dot product of two flattened arrays, the first one conjugated.

    Args:
      a: array.
      b: array of the same size.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.

    Returns:
      Scalar.

    >>> import ferrax.numpy as jnp
    >>> jnp.vdot(jnp.array([1j]), jnp.array([1j]))
    Array(1.+0.j, dtype=complex64)
    """
    x, y = to_arrays("vdot", a, b)
    if dtype_kind(x.dtype) == "c":
        x = lax.conj(x)
    return dot(_shape.ravel(x), _shape.ravel(y), precision=precision, preferred_element_type=preferred_element_type)


@one_program("axis", "precision")
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: DTypeLike = None) -> Array:  # fmt: skip
    """Dot products of vectors along an axis, the first ones conjugated; the other axes broadcast.

    Args:
      x1: array of shape (..., k).
      x2: array of shape (..., k).
      axis: the axis of the vectors.
      precision: as for `lax.dot_general`.
      preferred_element_type: dtype in which to accumulate and return.

    Returns:
      Array without the axis.

    Raises:
      ValueError: when the vectors have different lengths.

    >>> import ferrax.numpy as jnp
    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote("vecdot", x1, x2)
    if x.ndim == 0 or y.ndim == 0 or x.shape[normalize_axis(axis, x.ndim)] != y.shape[normalize_axis(axis, y.ndim)]:
        raise ValueError(f"axes must match; got shapes {x.shape} and {y.shape} with axis={axis}")
    check_batch_ranks((x, y), ("n", "n"), "(n),(n)->()")
    x, y = _shape.moveaxis(x, axis, -1), _shape.moveaxis(y, axis, -1)
    if dtype_kind(x.dtype) == "c":
        x = lax.conj(x)
    product = matmul(
        lax.expand_dims(x, (x.ndim - 1,)), lax.expand_dims(y, (y.ndim,)), precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip
    return lax.squeeze(product, (product.ndim - 2, product.ndim - 1))


@one_program()
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of matrices with vectors; the other axes broadcast.

    Args:
      x1: array of shape (..., m, k).
      x2: array of shape (..., k).

    Returns:
      Array of shape (..., m).

    >>> import ferrax.numpy as jnp
    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    x, y = promote("matvec", x1, x2)
    if x.ndim < 2 or y.ndim < 1:
        raise ValueError(f"matvec needs a matrix and a vector, got shapes {x.shape} and {y.shape}")
    check_batch_ranks((x, y), ("nm", "m"), "(n,m),(m)->(n)")
    product = matmul(x, lax.expand_dims(y, (y.ndim,)))
    return lax.squeeze(product, (product.ndim - 1,))


@one_program()
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of conjugated vectors with matrices; the other axes broadcast.

    Args:
      x1: array of shape (..., k).
      x2: array of shape (..., k, n).

    Returns:
      Array of shape (..., n).

    >>> import ferrax.numpy as jnp
    >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    x, y = promote("vecmat", x1, x2)
    if x.ndim < 1 or y.ndim < 2:
        raise ValueError(f"vecmat needs a vector and a matrix, got shapes {x.shape} and {y.shape}")
    check_batch_ranks((x, y), ("n", "nm"), "(n),(n,m)->(m)")
    if dtype_kind(x.dtype) == "c":
        x = lax.conj(x)
    product = matmul(lax.expand_dims(x, (x.ndim - 1,)), y)
    return lax.squeeze(product, (product.ndim - 2,))


def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[Any] = 2, *, precision: Any = None,
              preferred_element_type: DTypeLike = None, out_sharding: None = None) -> Array:  # fmt: skip
    """The sum of products over given axes of two arrays.

    Args:
      a: array.
      b: array.
      axes: how many axes, the last of `a` and the first of `b`; or the pair (axes of `a`, axes of `b`).
      precision, preferred_element_type, out_sharding: as in `dot`.

    Returns: as in `dot`.

    Raises:
      TypeError: when the axes do not fit.

    >>> import ferrax.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    if out_sharding is not None:
        return with_out_sharding(
            lambda: tensordot(a, b, axes, precision=precision, preferred_element_type=preferred_element_type),
            out_sharding,
            "dot_general",
        )
    x, y = _factors("tensordot", a, b)
    if isinstance(axes, (int, np.integer)):
        n = operator.index(axes)
        if n > min(x.ndim, y.ndim):
            raise TypeError(f"Number of tensordot axes (axes {n}) exceeds input ranks ({x.shape} and {y.shape})")
        pairs = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    elif isinstance(axes, (tuple, list)) and len(axes) == 2:
        first, second = axes
        if isinstance(first, (int, np.integer)) and isinstance(second, (int, np.integer)):
            first, second = (first,), (second,)
        if not isinstance(first, (tuple, list)) or not isinstance(second, (tuple, list)):
            raise TypeError(
                "tensordot requires both axes lists to be either ints, tuples or lists, "
                f"got {type(first)} and {type(second)}: {axes}."
            )
        if len(first) != len(second):
            raise TypeError(f"tensordot requires axes lists to have equal length, got {first} and {second}.")
        pairs = tuple(normalize_axis(i, x.ndim) for i in first), tuple(normalize_axis(i, y.ndim) for i in second)
    else:
        raise TypeError(
            f"tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints, got {axes}."
        )
    return contract("tensordot", x, y, (pairs, ((), ())), precision, preferred_element_type)


def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike = None) -> Array:
    """The sum of products over the last axes of two arrays.

    Args:
      a: array of shape (..., k), or a scalar.
      b: array of shape (..., k), or a scalar.
      precision, preferred_element_type: as in `dot`.

    Returns: as in `dot`.

    >>> import ferrax.numpy as jnp
    >>> jnp.inner(jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]]))
    Array([11, 17], dtype=int32)
    """
    x, y = _factors("inner", a, b)
    if x.ndim == 0 or y.ndim == 0:
        return _scaled(x, y, preferred_element_type)
    return contract("inner", x, y, (((x.ndim - 1,), (y.ndim - 1,)), ((), ())), precision, preferred_element_type)


@one_program()
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all pairs of elements.

    Args:
      a: array, flattened.
      b: array, flattened.
      out: not supported.

    Returns:
      Matrix of shape (a.size, b.size).

    >>> import ferrax.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    no_out("jnp.outer", out)
    x, y = promote("outer", a, b)
    return lax.reshape(x, (x.size, 1)) * lax.reshape(y, (1, y.size))


@one_program()
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: a copy of `b` for each element of `a`, scaled by it.

    Args:
      a: array.
      b: array.

    Returns:
      Array whose axes have the products of both lengths.

    >>> import ferrax.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promote("kron", a, b)
    n = max(x.ndim, y.ndim)
    x, y = lax.expand_dims(x, tuple(range(n - x.ndim))), lax.expand_dims(y, tuple(range(n - y.ndim)))
    shape = tuple(i * j for i, j in zip(x.shape, y.shape))
    wide = lax.expand_dims(x, tuple(range(1, 2 * n, 2))) * lax.expand_dims(y, tuple(range(0, 2 * n, 2)))
    return lax.reshape(wide, shape)


@one_program("axisa", "axisb", "axisc", "axis")
def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """The cross products of vectors of two or three components; the other axes broadcast.

    Args:
      a: array of vectors.
      b: array of vectors.
      axisa: the axis of the vectors in `a`.
      axisb: the axis of the vectors in `b`.
      axisc: the axis of the vectors in the result.
      axis: stands for all three when given.

    Returns:
      Array of vectors; without the axis when both have two components.

    Raises:
      ValueError: for other numbers of components.

    >>> import ferrax.numpy as jnp
    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promote("cross", a, b)
    x, y = _shape.moveaxis(x, axisa, -1), _shape.moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("Dimension must be either 2 or 3 for cross product")
    if x.shape[-1] == y.shape[-1] == 2:
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    parts = []
    xs = [x[..., i] if i < x.shape[-1] else 0 * x[..., 0] for i in range(3)]
    ys = [y[..., i] if i < y.shape[-1] else 0 * y[..., 0] for i in range(3)]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        part = xs[j] * ys[k] - xs[k] * ys[j]
        parts.append(lax.expand_dims(part, (part.ndim,)))
    return _shape.moveaxis(lax.concatenate(parts, parts[0].ndim - 1), -1, axisc)
