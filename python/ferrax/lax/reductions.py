"""Reductions over axes and over sliding windows, and running reductions.

Read next: `sorting.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, dtypes, tree_util
from ferrax._core import weak_type, with_weak_type
from ferrax._ferrax import Array, lax as _lax
from ferrax._out_sharding import with_out_sharding
from ferrax._shapes import max_dim, static_size
from ferrax._texts import differences, short
from ferrax.typing import ArrayLike

__all__ = [
    "argmax",
    "argmin",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "padtype_to_pads",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_window_shape_tuple",
    "reduce_xor",
]


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sum over axes.

    Args:
      operand: array of a number dtype.
      axes: the axes, which go away.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Array of the operand's dtype.

    Raises:
      ValueError: an axis does not exist or is given twice.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_sum(jnp.ones((2, 3)), (0,)))
    [2. 2. 2.]
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: reduce_sum(operand, axes), out_sharding, "reduce_sum")
    return _lax.reduce_sum(operand, axes)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Product over axes.

    Args:
      operand, axes: as in `reduce_sum`.

    Returns, Raises: as in `reduce_sum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_prod(jnp.array([[2, 3], [4, 5]]), (0,)))
    [ 8 15]
    """
    return _lax.reduce_prod(operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Maximum over axes; NaN wins.

    Args:
      operand: array.
      axes: the axes, which go away; over none of size zero, the result is the lowest number.

    Returns, Raises: as in `reduce_sum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_max(jnp.array([[1, 5], [4, 2]]), (0,)))
    [4 5]
    """
    return _lax.reduce_max(operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Minimum over axes; NaN wins.

    Args:
      operand: array.
      axes: the axes, which go away; over none of size zero, the result is the highest number.

    Returns, Raises: as in `reduce_sum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_min(jnp.array([[1, 5], [4, 2]]), (0,)))
    [1 2]
    """
    return _lax.reduce_min(operand, axes)


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise and over axes; for bool, whether all are true.

    Args:
      operand: array of integer dtype or bool.
      axes: the axes, which go away.

    Returns:
      Array of the operand's dtype.

    Raises:
      TypeError: the dtype is another.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_and(jnp.array([6, 3]), (0,)))
    2
    """
    return _lax.reduce_and(operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise or over axes; for bool, whether any is true.

    Args, Returns, Raises: as in `reduce_and`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_or(jnp.array([6, 3]), (0,)))
    7
    """
    return _lax.reduce_or(operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Bitwise exclusive or over axes; for bool, whether an odd number is true.

    Args, Returns, Raises: as in `reduce_and`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_xor(jnp.array([6, 3]), (0,)))
    5
    """
    return _lax.reduce_xor(operand, axes)


def argmax(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """Index of the first maximum along an axis; NaN counts as the maximum.

    Args:
      operand: array.
      axis: the axis, which goes away.
      index_dtype: an integer dtype.

    Returns:
      Array of index_dtype.

    Raises:
      ValueError: the axis does not exist or has size zero.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.argmax(jnp.array([1, 5, 5]), 0, jnp.int32))
    1
    """
    return _lax.argmax(operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """Index of the first minimum along an axis; NaN counts as the minimum.

    Args, Returns, Raises: as in `argmax`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.argmin(jnp.array([5, 1, 1]), 0, jnp.int32))
    1
    """
    return _lax.argmin(operand, axis, index_dtype)


# ---- with any function -----------------------------------------------------------------------------------------------

_MONOIDS: dict[str, tuple[Callable[[Any, Any], Any], str | None]] = {
    "add": (_lax.reduce_sum, "sum"),
    "mul": (_lax.reduce_prod, None),
    "max": (_lax.reduce_max, "max"),
    "min": (_lax.reduce_min, "min"),
    "bitwise_and": (_lax.reduce_and, None),
    "bitwise_or": (_lax.reduce_or, None),
    "bitwise_xor": (_lax.reduce_xor, None),
}


def _structures(tree: Any, init_tree: Any) -> ValueError:
    """The error of operands and initial values of different structures."""
    return ValueError(
        f"Operands must have the same tree structure as init_values: {short(tree)} vs. {short(init_tree)}:"
        f"{differences(tree, init_tree, 'the operands', 'init_values')}"
    )


def _monoid(computation: Any) -> str | None:
    """The name of the function among those that have a reduction of their own."""
    return next((name for name in _MONOIDS if computation is getattr(_lax, name)), None)


def _identity(name: str, dtype: np.dtype) -> Any:
    """The number that a monoid leaves other numbers alone with."""
    if name in ("add", "bitwise_or", "bitwise_xor"):
        return dtype.type(0)
    if name == "mul":
        return dtype.type(1)
    if name == "bitwise_and":
        return dtype.type(True) if dtype == np.bool_ else np.array(-1).astype(dtype)[()]
    if dtype == np.bool_:
        return dtype.type(name == "min")
    if dtypes.issubdtype(dtype, np.integer):
        return dtype.type(getattr(dtypes.iinfo(dtype), "max" if name == "min" else "min"))
    return dtype.type(math.inf if name == "min" else -math.inf)


def _is_identity(name: str, init: Any) -> bool:
    """Whether an initial value that is known changes nothing."""
    init = _ferrax.untraced(init)
    if isinstance(init, _ferrax.Tracer):
        return False
    value = np.asarray(init)
    with np.errstate(all="ignore"):
        return bool(value == _identity(name, value.dtype))


def _scalar(x: Any) -> Any:
    return _ferrax.ShapedArray((), _ferrax.dtype_of(x))


def _in_dtype(init: Any, operand: Any) -> Any:
    """An initial value: Python's numbers take the operand's dtype."""
    if isinstance(init, (bool, int, float, complex)):
        return _lax.convert(init, _ferrax.dtype_of(operand))
    return init


def _may_be_differentiated(flat: Sequence[Any], inits: Sequence[Any]) -> bool:
    """Whether a reduction by a function of the caller's needs rules: of traced numbers that are no integers."""
    inexact = any(np.dtype(_ferrax.dtype_of(x)).kind not in "iub" for x in flat)
    return inexact and any(isinstance(x, _ferrax.Tracer) for x in (*flat, *inits))


def reduce(
    operands: Any,
    init_values: Any,
    computation: Callable[[Any, Any], Any],
    dimensions: Sequence[int],
    out_sharding: Any = None,
) -> Any:
    """Reduces arrays over axes with a function of scalars.

    Args:
      operands: array or pytree of arrays of one shape.
      init_values: scalar of the operand's dtype, or a pytree of such.
      computation: function of two scalars (or pytrees of scalars), associative; the order of calls is not defined.
      dimensions: the axes, which go away.
      out_sharding: how the result is spread over explicit axes of the mesh in use.

    Returns:
      Pytree of the operands' structure.

    Raises:
      TypeError: shapes or dtypes differ, or the function's results have other types than the initial values.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce(jnp.arange(5), 0, lax.add, (0,)))
    10
    """
    if out_sharding is not None:
        return with_out_sharding(lambda: reduce(operands, init_values, computation, dimensions), out_sharding, "reduce")
    flat, tree = tree_util.tree_flatten(operands)
    inits, init_tree = tree_util.tree_flatten(init_values)
    if tree != init_tree:
        raise _structures(tree, init_tree)
    if not flat:
        raise ValueError("reduce requires at least one operand")
    if any(np.shape(i) != () for i in inits):
        raise ValueError(f"reduce found non-scalar initial value: {[np.shape(i) for i in inits if np.shape(i) != ()]}")
    full = not all(map(weak_type, inits))
    inits = [_in_dtype(i, x) for i, x in zip(inits, flat)]
    name = _monoid(computation) if len(flat) == 1 else None
    if name is not None:
        result = _MONOIDS[name][0](flat[0], dimensions)
        if not _is_identity(name, inits[0]):
            result = getattr(_lax, name)(inits[0], result)
        result = with_weak_type(result, False) if full else result
        return tree_util.tree_unflatten(tree, [result])
    shape = tree_util.tree_unflatten(tree, [_scalar(i) for i in inits])
    body = _ferrax.trace_to_jaxpr(computation, (shape, shape), None, "reduce")
    if body.out_tree != tree:
        lines = differences(tree, body.out_tree, "the operands", "what it gives")
        raise ValueError(
            f"the function of reduce must give the structure {short(tree)}, not {short(body.out_tree)}:{lines}"
        )
    run = lambda flat, inits: _lax.reduce(flat, inits, body, dimensions)
    if _may_be_differentiated(flat, inits):
        from ferrax.lax._reduce_rules import differentiable, of_axes

        run = differentiable(run, of_axes(computation, tree, dimensions))
    return tree_util.tree_unflatten(tree, run(flat, inits))


# ---- over sliding windows --------------------------------------------------------------------------------------------


def _sizes(given: Sequence[Any]) -> list[Any]:
    """Sizes, NumPy's integers among them as Python's."""
    return [int(n) if isinstance(n, np.integer) else n for n in given]


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The padding of each axis that a word stands for.

    Args:
      in_shape: the operand's shape.
      window_shape: cells of a window, along each axis.
      window_strides: spacing of windows.
      padding: ``"VALID"`` (none), ``"SAME"`` (as many windows as fit ``ceil(size / stride)``, the odd cell at the
        end), or ``"SAME_LOWER"`` (the odd cell at the beginning).

    Returns:
      List of (low, high) pairs.

    Raises:
      RuntimeError: the word is none of these.

    >>> from ferrax import lax
    >>> lax.padtype_to_pads((5, 6), (2, 3), (1, 2), "SAME")
    [(0, 1), (0, 1)]
    """
    word = padding.upper() if isinstance(padding, str) else padding
    if word == "VALID":
        return [(0, 0)] * len(in_shape)
    if word not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}.")
    pads = []
    for size, window, stride in zip(*map(_sizes, (in_shape, window_shape, window_strides))):
        if stride < 1:  # what asks for the padding refuses the strides, in its own words
            pads.append((0, 0))
            continue
        total = max_dim((-(-size // stride) - 1) * stride + window - size, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if word == "SAME" else (large, small))
    return pads


def _dilated(size: int, by: int) -> int:
    return 0 if size == 0 else (size - 1) * by + 1


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of the result of `reduce_window`.

    Args:
      operand_shape: the operand's shape.
      window_dimensions: cells of a window, along each axis.
      window_strides: spacing of windows.
      padding: (low, high) for each axis.
      base_dilation: spacing of the operand's elements.
      window_dilation: spacing of a window's cells.

    Returns:
      A shape.

    Raises:
      TypeError: a stride is not positive.

    >>> from ferrax import lax
    >>> lax.reduce_window_shape_tuple((5, 6), (2, 3), (1, 2), ((0, 0), (1, 1)))
    (4, 3)
    """
    if any(stride < 1 for stride in window_strides):
        raise TypeError(f"window_strides must be positive, got {tuple(window_strides)}")
    ones = (1,) * len(operand_shape)
    spread = [_dilated(n, d) for n, d in zip(operand_shape, base_dilation or ones)]
    spans = [_dilated(n, d) for n, d in zip(window_dimensions, window_dilation or ones)]
    return tuple(
        max((n + low + high - span) // stride + 1, 0) if n + low + high >= span else 0
        for n, span, stride, (low, high) in zip(spread, spans, window_strides, padding)
    )


def _check_lengths(shape: Sequence[int], **lengths: Sequence[Any]) -> None:
    for name, value in lengths.items():
        if len(value) != len(shape):
            raise TypeError(
                f"reduce_window got the wrong number of {name} for operand: got operand shape {tuple(shape)} with "
                f"{name} {tuple(value)}."
            )


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Reduces arrays over sliding windows with a function of scalars.

    Args:
      operand: array or pytree of arrays of one shape.
      init_value: scalar of the operand's dtype, or a pytree of such; it also fills the padding.
      computation: function of two scalars (or pytrees of scalars), associative and commutative.
      window_dimensions: cells of a window, along each axis.
      window_strides: spacing of windows, 1 when None.
      padding: a word of `padtype_to_pads`, or (low, high) for each axis.
      base_dilation: spacing of the operand's elements, 1 when None.
      window_dilation: spacing of a window's cells, 1 when None.

    Returns:
      Pytree of the operands' structure.

    Raises:
      TypeError: an argument has not one entry for each axis, or dtypes differ.
      ValueError: structures differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reduce_window(jnp.arange(5.0), 0.0, lax.add, (2,)))
    [1. 3. 5. 7.]
    """
    flat, tree = tree_util.tree_flatten(operand)
    inits, init_tree = tree_util.tree_flatten(init_value)
    if tree != init_tree:
        raise _structures(tree, init_tree)
    if not flat:
        raise ValueError("reduce_window requires at least one operand")
    inits = [_in_dtype(i, x) for i, x in zip(inits, flat)]
    shapes = [_ferrax.shape(i) for i in inits]
    if any(shapes):
        raise TypeError(f"reduce_window expected init_values to be scalars but init_values have shapes {shapes}.")
    shape = _ferrax.shape(flat[0])
    ones = (1,) * len(shape)
    strides, base, spacing = window_strides or ones, base_dilation or ones, window_dilation or ones
    _check_lengths(
        shape,
        window_dimensions=window_dimensions,
        window_strides=strides,
        base_dilation=base,
        window_dilation=spacing,
    )
    if isinstance(padding, str):
        spans = [_dilated(n, d) for n, d in zip(window_dimensions, spacing)]
        pads = padtype_to_pads([_dilated(n, d) for n, d in zip(shape, base)], spans, strides, padding)
    else:
        pads = [(static_size(low), static_size(high)) for low, high in padding]
    where = (window_dimensions, strides, pads, base, spacing)
    name = _monoid(computation) if len(flat) == 1 else None
    word = _MONOIDS[name][1] if name else None
    ordered = word not in ("max", "min") or _ferrax.dtype_of(flat[0]).kind != "c"
    if name and word and ordered and _is_identity(name, inits[0]):
        return tree_util.tree_unflatten(tree, [_lax.reduce_window_monoid(flat[0], word, *where)])
    scalars = tree_util.tree_unflatten(tree, [_scalar(i) for i in inits])
    body = _ferrax.trace_to_jaxpr(computation, (scalars, scalars), None, "reduce_window")
    if body.out_tree != tree:
        lines = differences(tree, body.out_tree, "the operands", "what the function gives")
        raise ValueError(
            "reduce_window output must have the same tree structure as the operands "
            f"{short(tree)} vs. {short(body.out_tree)}:{lines}"
        )
    run = lambda flat, inits: _lax.reduce_window(flat, inits, body, *where)
    if _may_be_differentiated(flat, inits):
        from ferrax.lax._reduce_rules import differentiable, of_windows

        run = differentiable(run, of_windows(computation, tree, *where))
    return tree_util.tree_unflatten(tree, run(flat, inits))


# ---- running reductions ----------------------------------------------------------------------------------------------


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running sum along an axis.

    Args:
      operand: array of a number dtype.
      axis: the axis, not negative.
      reverse: start at the end.

    Returns:
      Array of the operand's shape and dtype.

    Raises:
      ValueError: the axis does not exist.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cumsum(jnp.array([1, 2, 3])))
    [1 3 6]
    """
    return _lax.cumsum(operand, axis, bool(reverse))


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running product along an axis.

    Args, Returns, Raises: as in `cumsum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cumprod(jnp.array([1, 2, 3])))
    [1 2 6]
    """
    return _lax.cumprod(operand, axis, bool(reverse))


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running maximum along an axis.

    Args, Returns, Raises: as in `cumsum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cummax(jnp.array([1, 3, 2])))
    [1 3 3]
    """
    return _lax.cummax(operand, axis, bool(reverse))


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running minimum along an axis.

    Args, Returns, Raises: as in `cumsum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cummin(jnp.array([2, 3, 1])))
    [2 2 1]
    """
    return _lax.cummin(operand, axis, bool(reverse))


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Running logarithm of the sum of exponentials along an axis.

    Args, Returns, Raises: as in `cumsum`.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cumlogsumexp(jnp.zeros(2)).round(3))
    [0.    0.693]
    """
    return _lax.cumlogsumexp(operand, axis, bool(reverse))
