"""Choosing between arrays by conditions.

Read `_take.py` first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._core import asarray, concrete_or_error, promote_dtypes
from ferrax._shapes import broadcast_shapes
from ferrax.numpy import _join
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    cast,
    no_out,
    normalize_axis,
    require,
    to_array,
    to_arrays,
)  # fmt: skip
from ferrax.numpy._dtype_functions import default_int, dtype_kind
from ferrax.numpy._ufuncs import where as _where

__all__ = ["choose", "compress", "extract", "piecewise", "place", "select"]


def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Elements picked from several arrays by an array of numbers.

    Args:
      a: integers: for each element the number of the array to take it from.
      choices: sequence of arrays, or an array whose rows are the choices; all broadcast with `a`.
      out: not supported.
      mode: for a number out of bounds: "raise" (concrete `a` only), "clip" or "wrap".

    Returns:
      Array of the common dtype and shape.

    Raises:
      ValueError: for a number out of bounds under "raise".

    >>> import ferrax.numpy as jnp
    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    no_out("jnp.choose", out)
    index = to_array("choose", a)
    if dtype_kind(index.dtype) not in "iu":
        raise ValueError("`a` array must be integer typed")
    options = list(choices) if isinstance(choices, (list, tuple)) else _join.unstack(choices)
    require("choose", *options)
    n = len(options)
    if mode == "raise":
        context = (
            "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or mode='clip' "
            "instead."
        )
        host = np.asarray(concrete_or_error(np.asarray, index, context))
        if ((host < 0) | (host >= n)).any():
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = lax.clamp(asarray(0, index.dtype), index, asarray(n - 1, index.dtype))
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    options = list(promote_dtypes(*options))
    shape = broadcast_shapes(index.shape, *(x.shape for x in options))
    options = [broadcast_to_shape(x, shape) for x in options]
    index = broadcast_to_shape(index, shape)
    # numbers of Python among the choices do not make the result weak
    return lax.convert_element_type(lax.select_n(cast(index, np.int32), *options), options[0].dtype)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Elements from the first array whose condition holds.

    Args:
      condlist: arrays of conditions.
      choicelist: as many arrays of values.
      default: value where no condition holds.

    Returns:
      Array of the common dtype and shape.

    Raises:
      ValueError: for lists of unequal lengths or empty ones.

    >>> import ferrax.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x < 3], [x, x * 10], default=-1)
    Array([ 0, 10, 20, -1], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    require("select", *condlist, *choicelist, default)
    *choices, result = promote_dtypes(*choicelist, default)
    for condition, choice in list(zip(condlist, choices))[::-1]:
        result = _where(cast(condition, np.bool_), choice, result)
    return result


def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function defined by pieces.

    Args:
      x: array.
      condlist: arrays of conditions; where several hold, the last one counts.
      funclist: for each condition a function of `x` or a value; one more for where no condition holds.
      *args: further arguments of the functions.
      **kw: keyword arguments of the functions.

    Returns:
      Array of the shape and dtype of `x`.

    Raises:
      ValueError: for a wrong number of functions.

    >>> import ferrax.numpy as jnp
    >>> x = jnp.array([-2., 3.])
    >>> jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v])
    Array([2., 9.], dtype=float32)
    """
    x = to_array("piecewise", x)
    if isinstance(condlist, (list, tuple)):
        conditions = [cast(c, np.bool_) for c in to_arrays("piecewise", *condlist)]
    else:
        conditions = [cast(to_array("piecewise", condlist), np.bool_)]
        if conditions[0].ndim:
            conditions = list(_join.unstack(conditions[0]))
    n = len(conditions)
    if len(funclist) not in (n, n + 1):
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected; got {len(funclist)}")
    pieces = [*funclist[n:], *([] if funclist[n:] else [0]), *funclist[:n]]
    functions = tuple(f if callable(f) else None for f in pieces)
    return _jitted_pieces()(functions, x, conditions, [f for f in pieces if not callable(f)], args, kw)


@functools.cache
def _jitted_pieces() -> Callable[..., Array]:
    """`_pieces`, which keeps the program of the same functions."""
    from ferrax._api import jit

    return jit(_pieces, static_argnums=0)


def _pieces(functions: tuple[Any, ...], x: Array, conditions: list[Array], numbers: list[Any], args: tuple[Any, ...],
            kw: dict[str, Any]) -> Array:  # fmt: skip
    """The values of the first function, or the next number where it is None, and of others where conditions hold."""
    rest = iter(numbers)
    default, *others = (cast(next(rest) if f is None else f(x, *args, **kw), x.dtype) for f in functions)
    result = default
    for condition, value in zip(conditions, others):
        result = _where(condition, value, result)
    return broadcast_to_shape(result, broadcast_shapes(result.shape, x.shape))


def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *, size: int | None = None,
             fill_value: ArrayLike = 0, out: None = None) -> Array:  # fmt: skip
    """The slices of an array along an axis where a condition holds.

    Args:
      condition: vector of bools; missing ones count as False.
      a: array.
      axis: axis to select along; None for the flattened array.
      size: static number of slices in the result, for use under `jit`.
      fill_value: fills the result up to `size`.
      out: not supported.

    Returns:
      Array.

    Raises:
      ValueError: when a True of `condition` lies beyond the axis.

    >>> import ferrax.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    no_out("jnp.compress", out)
    require("compress", condition, a, fill_value)
    mask, x = cast(condition, np.bool_), asarray(a)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        x, axis = lax.reshape(x, (x.size,)), 0
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if mask.shape[0] > n:
        extra = lax.slice_in_dim(mask, n, None, axis=0)
        beyond = concrete_or_error(np.asarray, extra, "jnp.compress with a condition longer than the axis")
        if np.asarray(beyond).any():
            raise ValueError("condition contains entries that are out of bounds")
        mask = lax.slice_in_dim(mask, 0, n, axis=0)
    from ferrax.numpy._search import flatnonzero
    from ferrax.numpy._take import take

    places = flatnonzero(mask, size=size, fill_value=n)
    if n == 0:
        return broadcast_to_shape(cast(fill_value, x.dtype), x.shape[:axis] + places.shape + x.shape[axis + 1 :])
    taken = take(x, places, axis=axis, mode="clip")
    if size is None:
        return taken
    missing = lax.broadcast_in_dim(places >= n, taken.shape, (axis,))
    return _where(missing, cast(fill_value, x.dtype), taken)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of an array where a condition holds, in one dimension.

    Args:
      condition: array of bools.
      arr: array of the same size.
      size: static length of the result, for use under `jit`.
      fill_value: fills the result up to `size`.

    Returns:
      Vector.

    >>> import ferrax.numpy as jnp
    >>> x = jnp.arange(5)
    >>> jnp.extract(x > 2, x)
    Array([3, 4], dtype=int32)
    """
    mask, x = to_arrays("extract", condition, arr)
    return compress(lax.reshape(mask, (mask.size,)), lax.reshape(x, (x.size,)), size=size, fill_value=fill_value)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """An array with values put, in order, where a mask holds.

    Args:
      arr: array.
      mask: bools, as many as elements of `arr`.
      vals: values, repeated as needed.
      inplace: must be False: arrays are immutable and the result is a new one.

    Returns:
      Array of the shape of `arr`.

    Raises:
      ValueError: unless `inplace=False`.

    >>> import ferrax.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.place(x, x % 2 == 0, jnp.array([7, 8]), inplace=False)
    Array([7, 1, 8, 3], dtype=int32)
    """
    if inplace:
        raise ValueError(
            "jax.numpy.place cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )
    x, flags, values = to_arrays("place", arr, mask, vals)
    if flags.size != x.size:
        raise ValueError("place: arr and mask must be the same size")
    if not values.size:
        raise ValueError("Cannot place values from an empty array")
    if x.size == 0:
        return x
    flags = cast(lax.reshape(flags, (x.size,)), np.bool_)
    values = cast(lax.reshape(values, (values.size,)), x.dtype)
    order = lax.cumsum(cast(flags, default_int()), 0) - 1
    from ferrax.numpy._take import take

    new = take(values, order % values.size, mode="clip")
    return lax.reshape(lax.select(flags, new, lax.reshape(x, (x.size,))), x.shape)
