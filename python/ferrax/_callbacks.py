"""Calls from programs into Python: `pure_callback`, `io_callback`, and the printing of `ferrax.debug`.

Callbacks get NumPy-compatible arrays and return what they announced. Read next: `crates/ferrax-ops/src/callback.rs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, tree_util
from ferrax._core import canonicalize_dtype
from ferrax._texts import differences, short
from ferrax.sharding._manual import names_in_force

__all__ = ["io_callback", "pure_callback"]


#: What stands in programs for the code of `debug_callback`, whose operands alone tell calls apart.
_DEBUG = "<function debug_callback.<locals>._debug_callback.<locals>._flat_callback at 0xXXXXXXXXXXXX>"

#: The kinds of calls that have results, or may have; the others show values.
_ANSWERING = ("pure", "io", "ordered")


def _bind(
    kind: str,
    callback: Callable[..., Any],
    result: Any,
    method: str | None,
    args: Any,
    kwargs: Any,
    printed: Callable[[], list[str]] | None = None,
) -> Any:
    from ferrax.lax.parallel import axis_index

    leaves, tree = tree_util.tree_flatten((args, kwargs))
    structs, out_tree = tree_util.tree_flatten(result)
    types = [_ferrax.typeof(struct) for struct in structs]
    announced = [t.dtype for t in types]
    # a `ShapedArray` keeps 64 bits
    announced = [canonicalize_dtype(d) if isinstance(d, np.dtype) else d for d in announced]
    for struct, dtype in zip(structs, announced, strict=True):
        if getattr(struct, "dtype", dtype) != dtype:
            raise ValueError(
                f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled; {_name(callback)} "
                f"is announced to return {struct.dtype}: announce {dtype}"
            )

    strong = [t.update(weak_type=False) if t.weak_type else s for t, s in zip(types, structs, strict=True)]
    count = len(leaves)
    if kind != "pure" and not structs:
        leaves += [axis_index(name) for name in names_in_force()]  # each device calls it

    def call(*values: Any) -> list[Any]:
        try:
            with _ferrax.EagerScope():
                positional, named = tree.unflatten(values[:count])
                return results(callback(*positional, **named))
        except Exception as error:
            from ferrax._callback_errors import of_program

            raise of_program(error) from None

    def results(out: Any) -> list[Any]:
        outs, got = tree_util.tree_flatten(out)
        if kind not in _ANSWERING:
            return []
        if got.num_leaves != out_tree.num_leaves:
            raise _ferrax.JaxRuntimeError(
                f"the callback returned a value of structure {short(got)}; announced was {short(out_tree)}:"
                f"{differences(got, out_tree, 'the result', 'result_shape_dtypes')}"
            )
        return [_checked(callback, i, o, d) for i, (o, d) in enumerate(zip(outs, announced, strict=True))]

    def shown() -> list[str]:
        function = re.sub(" at 0x([0-9a-fA-F]+)", lambda m: " at 0x" + "X" * len(m[1]), repr(callback))
        return [f"_FlatCallback(callback_func={function}, in_tree={tree})"]

    call.__name__ = _name(callback)
    printed = printed or ((lambda: [_DEBUG]) if "debug" in kind else shown)
    try:
        return out_tree.unflatten(_ferrax.bind_callback(call, strong, kind, method, leaves, printed))
    except _ferrax.JaxRuntimeError as error:
        if kind in _ANSWERING or not hasattr(error, "raised"):
            raise
        raise error.raised from None  # what shows values is called by itself where nothing is traced


def _name(callback: Callable[..., Any]) -> str:
    return getattr(callback, "__name__", "callback")


def _checked(callback: Callable[..., Any], i: int, out: Any, dtype: Any) -> Any:
    """A result in the announced dtype; Python's numbers and NumPy's defaults lose their 64 bits where those are off."""
    array = np.asarray(out)
    got = canonicalize_dtype(array.dtype)
    if got != dtype:
        raise _ferrax.JaxRuntimeError(
            f"Incorrect output dtype for return value #{i} of callback {_name(callback)}: Expected: {dtype}, "
            f"Actual: {got}. It must return what result_shape_dtypes announces; convert it, as with "
            f"np.asarray(value, np.{dtype})."
        )
    return array if array.dtype == got else array.astype(got)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a Python function without side effects from a program.

    The compiler may drop the call or repeat it.

    Args:
      callback: function of arrays that returns arrays.
      result_shape_dtypes: pytree of `ShapeDtypeStruct`: what `callback` returns.
      *args: arguments, pytrees of arrays.
      sharding: accepted for compatibility.
      vmap_method: how to vectorize: `"sequential"` (row by row), `"expand_dims"` or `"broadcast_all"` (one call on
        the whole batch); `None` does not.
      **kwargs: keyword arguments, likewise.

    Returns:
      The results, as announced.

    >>> import numpy as np, ferrax as jax, ferrax.numpy as jnp
    >>> @jax.jit
    ... def f(x):
    ...     return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> print(f(jnp.zeros(2)))
    [0. 0.]
    """
    return _bind("pure", callback, result_shape_dtypes, vmap_method, args, kwargs)


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects from a program, exactly once an execution.

    Args:
      callback: function of arrays that returns arrays.
      result_shape_dtypes: pytree of `ShapeDtypeStruct`: what `callback` returns; `None` for nothing.
      *args: arguments, pytrees of arrays.
      sharding: accepted for compatibility.
      ordered: whether calls keep their order.
      **kwargs: keyword arguments, likewise.

    Returns:
      The results, as announced.

    >>> import ferrax as jax
    >>> from ferrax.experimental import io_callback
    >>> seen = []
    >>> @jax.jit
    ... def f(x):
    ...     io_callback(lambda v: seen.append(int(v)), None, x)
    ...     return x
    >>> print(f(3), seen)
    3 [3]
    """
    return _bind("ordered" if ordered else "io", callback, result_shape_dtypes, None, args, kwargs)


def split_arrays(args: Any, kwargs: Any) -> tuple[list[Any], dict[int, Any], Any, Callable[[Iterable[Any]], Any]]:
    """The arrays among arguments, the other leaves by position, the structure, and what puts arrays into it."""
    leaves, tree = tree_util.tree_flatten((args, kwargs))
    leaves = [v[...] if _ferrax.is_reference(v) else v for v in leaves]
    arrays = (_ferrax.Array, np.ndarray, np.generic, int, float, complex, bool)
    static = {i: v for i, v in enumerate(leaves) if not (isinstance(v, arrays) or hasattr(v, "__jax_array__"))}
    given = [v for i, v in enumerate(leaves) if i not in static]
    # what a program hands over has no weak type, what is there at once keeps its own
    weak = [_ferrax.is_eager() and _ferrax.weak_type(v) for v in given]

    def whole(values: Iterable[Any]) -> Any:
        rest = iter([_ferrax.with_weak_type(v, True) if w else v for v, w in zip(values, weak, strict=True)])
        return tree.unflatten([static[i] if i in static else next(rest) for i in range(tree.num_leaves)])

    return given, static, tree, whole


def debug_callback(callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Shows values to a Python function whose result is ignored; see `ferrax.debug.callback`."""
    operands, _, _, whole = split_arrays(args, kwargs)

    def show(*values: Any) -> None:
        positional, named = whole(values)
        callback(*positional, **named)

    show.__name__ = _name(callback)
    _bind("ordered_debug" if ordered else "debug", show, None, None, tuple(operands), {})


def debug_print(
    show: Callable[..., Any], operands: Sequence[Any], ordered: bool, printed: Callable[[], list[str]]
) -> None:
    """Has a Python function print values; see `ferrax.debug.print`.

    Args:
      show: function of arrays.
      operands: the arrays.
      ordered: whether prints keep their order.
      printed: gives what stands for `show` in programs: its format, whether that has fields, the structure of the
        values, the record of a log, NumPy's options of printing, and the values that are no arrays.
    """
    _bind("ordered_print" if ordered else "print", show, None, None, tuple(operands), {}, printed)
