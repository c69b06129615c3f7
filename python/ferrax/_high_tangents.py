"""Derivatives with respect to values that are no arrays: in traced code each has its tangent beside it.

The tangent of such a value is of the type that its type's `to_tangent_aval` gives, whatever the arrays are that stand
for the value. So what stands for a value in traced code, a `HighTracer`, has, beside these arrays, one of that type,
whose elements say nothing and whose derivative is that of the value: rules of primitives that take or give values are
rules of this array. The arrays themselves have no derivatives: nobody but primitives sees them, whose `expand` gets a
value made of them.

Read next: `_high_values.py`; `experimental/_high_primitives.py`, which has the primitives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._high_values import State, classes

__all__ = [
    "HighTracer",
    "branches_of_values",
    "closed",
    "differentiated",
    "has_values",
    "lowered",
    "opened",
    "parts",
    "plain",
    "raised",
    "scan_of_values",
    "tangent_type",
]


class HighTracer:
    """What stands for a value in traced code: its type, the arrays that stand for it, and its tangent or None."""

    __slots__ = ("arrays", "aval", "tangent")

    def __init__(self, aval: Any, arrays: Sequence[Any], tangent: Any):
        self.aval, self.arrays, self.tangent = aval, tuple(arrays), tangent

    def __getattr__(self, name: str) -> Any:
        # what is read of one with a tangent would have no derivative
        if self.tangent is not None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(plain(self), name)

    def __repr__(self) -> str:
        return f"HighTracer({self.aval})"


def has_values(tree: Any) -> bool:
    """Whether a leaf of a tree is a value that is no array and does not change."""
    return bool(classes) and any(map(_is_value, tree_util.tree_leaves(tree)))


def _is_value(x: Any) -> bool:
    return type(x) in classes and not classes[type(x)](x).has_qdd


def tangent_type(aval: Any) -> Any:
    """The type of the tangents of a type's values, or None if they have none that is an array."""
    try:
        found = aval.to_tangent_aval()
    except NotImplementedError:
        return None
    return None if getattr(found, "is_high", False) else found


def parts(aval: Any, value: Any) -> tuple[tuple[Any, ...], Any]:
    """The arrays that stand for a value, and its tangent, None for a value that is a constant."""
    return (value.arrays, value.tangent) if isinstance(value, HighTracer) else (tuple(aval.lower_val(value)), None)


def plain(x: Any) -> Any:
    """A value as its class has it, made of traced arrays where it is traced."""
    return x.aval.raise_val(*x.arrays) if isinstance(x, HighTracer) else x


def raised(aval: Any, arrays: Sequence[Any], tangent: Any) -> Any:
    """The value that arrays stand for; in traced code what stands for it."""
    if any(map(_ferrax.is_tracer, (*arrays, tangent))):
        return HighTracer(aval, arrays, tangent)
    return aval.raise_val(*arrays)


def lowered(aval: Any, value: Any) -> tuple[Any, ...]:
    """The arrays that stand for a value, and last its tangent, zeros for a constant's."""
    arrays, tangent = parts(aval, value)
    kind = tangent_type(aval)
    if kind is None:
        return arrays
    return (*arrays, _zeros(kind) if tangent is None else tangent)


def _zeros(aval: Any) -> Any:
    from ferrax._primitives import zeros_of

    return zeros_of(aval)


def closed(tree: Any, whole: bool = False) -> Any:
    """A tree with the arrays of its values in their place; all have tangents, as loops need it, if `whole`."""

    def close(x: Any) -> Any:
        if not _is_value(x):
            return x
        state = State.of(x)
        arrays, tangent = state.arrays
        kind = tangent_type(state.aval) if whole and tangent is None else None
        return state if kind is None else State(state.aval, None, (arrays, _zeros(kind)))

    return tree_util.tree_map(close, tree)


def _is_state(x: Any) -> bool:
    return isinstance(x, State) and x.qdd is None


def opened(tree: Any) -> Any:
    """A tree with the values that `closed` took out of it."""
    return tree_util.tree_map(lambda x: x.made() if _is_state(x) else x, tree, is_leaf=_is_state)


def differentiated(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the tangents of the values among its arguments, and the arguments with these tangents.

    Args:
      fun: function of values and arrays.
      args: its arguments.

    Returns:
      A function of arrays alone, whose derivatives are those of `fun`, and its arguments.

    Raises:
      TypeError: values of a type have no tangents that are arrays.
    """
    leaves, tree = tree_util.tree_flatten(args)
    held = [State.of(x) if _is_value(x) else None for x in leaves]

    def of_tangents(*args: Any) -> Any:
        given = tree.flatten_up_to(args)
        values = [x if s is None else raised(s.aval, s.arrays[0], x) for x, s in zip(given, held, strict=True)]
        return fun(*tree.unflatten(values))

    of_tangents.__name__ = getattr(fun, "__name__", "of_tangents")
    started = [x if s is None else _start(s) for x, s in zip(leaves, held, strict=True)]
    return of_tangents, tree.unflatten(started)


def _start(state: State) -> Any:
    kind = tangent_type(state.aval)
    if kind is None:
        raise TypeError(f"values of type {state.aval} have no tangents that are arrays")
    tangent = state.arrays[1]
    return _zeros(kind) if tangent is None else tangent


# ---- control flow ----------------------------------------------------------------------------------------------------


class _Rows:
    """The arrays of a value that is taken row by row, and the type of its rows."""

    def __init__(self, aval: Any, arrays: Sequence[Any]):
        self.aval, self.arrays = aval, arrays


tree_util.register_pytree_node(_Rows, lambda r: (r.arrays, r.aval), lambda aval, arrays: _Rows(aval, tuple(arrays)))


def _rows(x: Any) -> Any:
    if not _is_value(x):
        return x
    aval = State.of(x).aval
    arrays = lowered(aval, x)
    return _Rows(aval.dec_rank(arrays[0].shape[0], aval.leading_axis_spec()), arrays)


def _row(x: Any) -> Any:
    if not isinstance(x, _Rows):
        return x
    count = len(x.aval.lo_ty())
    return raised(x.aval, x.arrays[:count], x.arrays[count] if len(x.arrays) > count else None)


def _stacked(x: Any) -> Any:
    if not _is_state(x):
        return x
    arrays, tangent = x.arrays
    return raised(x.aval.inc_rank(arrays[0].shape[0], x.aval.leading_axis_spec()), arrays, tangent)


def scan_of_values(loop: Callable[..., Any], f: Callable[..., Any], init: Any, xs: Any) -> Any:
    """A scan over trees with values in them.

    Args:
      loop: `scan` of a step, a first carry and rows that are arrays alone.
      f: the step.
      init: the first carry.
      xs: what is taken row by row: a type of values says by `dec_rank` and `inc_rank` what these are.
    """
    is_rows = lambda x: isinstance(x, _Rows)

    @functools.wraps(f)
    def step(carry: Any, rows: Any) -> Any:
        given = f(opened(carry), tree_util.tree_map(_row, rows, is_leaf=is_rows))
        return closed(given, whole=True)

    carry, ys = loop(step, closed(init, whole=True), tree_util.tree_map(_rows, xs))
    return opened(carry), tree_util.tree_map(_stacked, ys, is_leaf=_is_state)


def branches_of_values(functions: Sequence[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """Functions that take and give the arrays of values in the place of these; one that is there twice stays one."""
    made: dict[int, Callable[..., Any]] = {}

    def of_arrays(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def call(*operands: Any) -> Any:
            return closed(f(*opened(operands)), whole=True)

        call.of_values = f  # type: ignore[attr-defined]
        return call

    return [made.setdefault(id(f), of_arrays(f)) for f in functions]
