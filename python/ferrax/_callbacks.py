"""Calls from programs into Python: `pure_callback`, `io_callback`, and the printing of `ferrax.debug`.

Callbacks get NumPy-compatible arrays and return what they announced. Read next: `crates/ferrax-ops/src/callback.rs`.
"""

from __future__ import annotations

import contextlib
import functools
import re
import types
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
    announced = [_ferrax.typeof(struct).dtype for struct in structs]
    # a `ShapedArray` keeps 64 bits
    announced = [canonicalize_dtype(d) if isinstance(d, np.dtype) else d for d in announced]
    for struct, dtype in zip(structs, announced, strict=True):
        if getattr(struct, "dtype", dtype) != dtype:
            raise ValueError(
                f"result_shape_dtypes cannot specify 64-bit types when `jax_enable_x64` is disabled; {_name(callback)} "
                f"is announced to return {struct.dtype}: announce {dtype}"
            )

    count = len(leaves)
    if kind != "pure" and not structs:
        leaves += [axis_index(name) for name in names_in_force()]  # each device calls it

    def call(*values: Any) -> list[Any]:
        with _ferrax.EagerScope():
            positional, named = tree.unflatten(values[:count])
            failed = None
            try:
                out = callback(*positional, **named)
            except Exception as error:
                failed = _of_program(error)
            if failed is not None:  # behind the handler, which would be its context
                raise failed
        outs, got = tree_util.tree_flatten(out)
        if kind not in ("pure", "io", "ordered"):
            return []
        if got.num_leaves != out_tree.num_leaves:
            raise RuntimeError(
                f"the callback returned a value of structure {short(got)}; announced was {short(out_tree)}:"
                f"{differences(got, out_tree, 'the result', 'result_shape_dtypes')}"
            )
        return [_checked(callback, i, o, d) for i, (o, d) in enumerate(zip(outs, announced, strict=True))]

    def shown() -> list[str]:
        function = re.sub(" at 0x([0-9a-fA-F]+)", lambda m: " at 0x" + "X" * len(m[1]), repr(callback))
        return [f"_FlatCallback(callback_func={function}, in_tree={tree})"]

    call.__name__ = _name(callback)
    printed = printed or ((lambda: [_DEBUG]) if "debug" in kind else shown)
    return out_tree.unflatten(_ferrax.bind_callback(call, structs, kind, method, leaves, printed))


@functools.cache
def _class_of_program(cls: type[Exception]) -> type[Exception]:
    """A class of errors and `JaxRuntimeError` in one, named as the class."""

    def text(self: Any) -> str:
        return f"INTERNAL: CpuCallback error calling callback: {cls.__name__}: {cls.__str__(self)}"

    def reduced(self: Any) -> Any:
        _, args, *state = tuple(cls.__reduce__(self))
        return _again, (cls, args, *state)

    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, _ferrax.JaxRuntimeError), {**names, "__str__": text, "__reduce__": reduced})


def _again(cls: type[Exception], args: tuple[Any, ...], state: dict[str, Any] | None = None) -> Exception:
    """An error of a program that was pickled."""
    error = cls(*args)
    vars(error).update(state or {})
    return _of_program(error)


def _of_program(error: Exception) -> Exception:
    """What a program raises for an error of a function of the host: one of the same class that is a `JaxRuntimeError`.

    A class that makes its instances in a way of its own is left as it is.
    """
    if isinstance(error, _ferrax.JaxRuntimeError):
        return error
    kind: Any = type(error)
    try:
        cls = _class_of_program(kind)
        both = cls.__new__(cls, *error.args)
    except TypeError:
        return error
    both.args = error.args
    vars(both).update(vars(error))
    for base in kind.__mro__:
        for name, member in vars(base).items():  # fields of classes of C and of `__slots__`
            if isinstance(member, types.MemberDescriptorType) and hasattr(error, name):
                with contextlib.suppress(AttributeError):  # read-only
                    setattr(both, name, getattr(error, name))
    both.__cause__, both.__context__ = error.__cause__, error.__context__
    both.__suppress_context__ = error.__suppress_context__
    return both.with_traceback(error.__traceback__)


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

    def whole(values: Iterable[Any]) -> Any:
        rest = iter(values)
        return tree.unflatten([static[i] if i in static else next(rest) for i in range(tree.num_leaves)])

    return [v for i, v in enumerate(leaves) if i not in static], static, tree, whole


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
