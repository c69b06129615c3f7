"""Values that are no arrays in functions that are traced: `experimental.hijax.register_hitype` says of which classes.

A value whose type has states (`has_qdd`) changes when primitives are bound to it. Traces treat it as a reference: a
traced function works on a copy of it, whose arrays it takes and whose new arrays it gives, and the call writes these
to the value. A value of another type is a tree of arrays: a traced function gets one made of traced arrays.

Read next: `_refs.py`, whose cells hold the copies; `_refs_calls.py`, which makes the calls; `_high_tangents.py`, for
derivatives with respect to values.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ferrax import _ferrax, tree_util

__all__ = ["HighRef", "State", "classes", "cur_qdd", "lent", "register", "run"]

#: By class of values that are no arrays, what gives the type of one.
classes: dict[type, Callable[[Any], Any]] = {}


def register(cls: type, typeof: Callable[[Any], Any]) -> None:
    """Says what gives the type of a value of a class."""
    classes[cls] = typeof
    import ferrax._refs_calls  # noqa: F401  makes the calls that such values are arguments of
    from ferrax._high_tangents import HighTracer

    classes[HighTracer] = lambda value: value.aval
    _ferrax.set_high_types(classes)


def _type(value: Any) -> Any:
    return classes[type(value)](value)


def _changes(value: Any) -> bool:
    """Whether an object is a value that can change."""
    return type(value) in classes and bool(_type(value).has_qdd)


class State:
    """The arrays of a value, as a tree: a traced function takes and gives them.

    Those of a value that does not change have its tangent beside them: see `_high_tangents.py`.
    """

    __slots__ = ("arrays", "aval", "qdd")

    def __init__(self, aval: Any, qdd: Any, arrays: Any):
        self.aval, self.qdd, self.arrays = aval, qdd, arrays

    @staticmethod
    def of(value: Any) -> State:
        """What a value is now, without a look at whose copy it may be."""
        aval = _type(value)
        if not aval.has_qdd:
            from ferrax._high_tangents import parts

            return State(aval, None, parts(aval, value))
        with _plainly():
            qdd = value.cur_qdd()
            return State(aval, qdd, aval.read_loval(qdd, value))

    def made(self) -> Any:
        """A new value."""
        if self.qdd is None:
            from ferrax._high_tangents import raised

            arrays, tangent = self.arrays
            return raised(self.aval, arrays, tangent)
        with _plainly():
            return self.aval.new_from_loval(self.qdd, *self.arrays)


tree_util.register_pytree_node(
    State, lambda s: (s.arrays, (s.aval, s.qdd)), lambda data, arrays: State(data[0], data[1], arrays)
)


class _Local(threading.local):
    def __init__(self) -> None:
        #: whether primitives work on the values that they are given, not on copies of these
        self.plain = False
        #: by staging trace: the values that it has made
        self.made: dict[int, list[Any]] = {}


_local = _Local()


@contextmanager
def _plainly() -> Iterator[None]:
    before, _local.plain = _local.plain, True
    try:
        yield
    finally:
        _local.plain = before


class _Home:
    """Where a value was made, and the value."""

    __slots__ = ("born", "scope", "value")

    def __init__(self, value: Any, scope: int):
        self.value, self.scope, self.born = value, scope, scope


class HighRef:
    """A value among references: it is itself, not what it is equal to."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, HighRef) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    @property
    def aval(self) -> Any:
        """The value's type."""
        return _type(self.value)

    @property
    def _home(self) -> _Home:
        if not self.aval.has_qdd:
            return _Home(self.value, _ferrax.staging_trace())  # it never changes: everybody may have it
        scope = next((s for s, values in _local.made.items() if any(v is self.value for v in values)), 0)
        now = _ferrax.staging_trace()
        if scope != now and _holds_values_since(now, self.value):
            _note_made(self.value)  # by its class, with no primitive
            scope = now
        return _Home(self.value, scope)

    def kept(self, value: Any) -> Any:
        """What a cell of it holds: a copy of a value, or one with a given state."""
        return (value if isinstance(value, State) else State.of(value)).made()

    def read(self, cell: Any) -> State:
        """The state of what a cell holds."""
        return State.of(cell.value)

    def write(self, cell: Any, state: State) -> None:
        """Gives what a cell holds a state."""
        if state.qdd is not None:
            with _plainly():
                state.aval.update_from_loval(state.qdd, cell.value, *state.arrays)


def lent(state: State) -> HighRef:
    """A new value for a function that gets one as an argument."""
    value = state.made()
    _note_made(value)
    return HighRef(value)


def _holds_values_since(trace: int, value: Any) -> bool:
    """Whether a value holds a traced array of a trace or of a later one: it is no older, then."""
    arrays = tree_util.tree_leaves(State.of(value).arrays)
    return any(_ferrax.is_tracer(x) and _ferrax.trace_of(x)[0] >= trace for x in arrays)


def _note_made(value: Any) -> None:
    scope = _ferrax.staging_trace()
    if not scope:
        _local.made.clear()  # no trace is at work
    elif _changes(value):
        _local.made.setdefault(scope, []).append(value)


def _stand_in(value: Any) -> tuple[Any, int]:
    """What stands for a value in the trace in force, and the newest trace whose values it may hold."""
    from ferrax._refs import cell_of

    cell = cell_of(HighRef(value))
    return cell.value, cell.born


def cur_qdd(x: Any) -> Any:
    """The state, as far as it is known while a program is traced, of a value that changes.

    Args:
      x: a value whose type has states.

    Returns:
      What the value's class says of it: structure and types, not the arrays.

    Raises:
      TypeError: the value's type has no states.

    >>> import ferrax as jax
    >>> class Count:
    ...     def cur_qdd(self):
    ...         return "no arrays"
    >>> jax.experimental.hijax.register_hitype(Count, lambda count: jax.experimental.hijax.MutableHiType())
    >>> jax.experimental.cur_qdd(Count())
    'no arrays'
    """
    if not _changes(x):
        raise TypeError(f"cur_qdd takes a value whose type has states, got {type(x).__name__}")
    if _local.plain:
        return x.cur_qdd()
    value, _ = _stand_in(x)
    with _plainly():
        return value.cur_qdd()


def run(primitive: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Applies a primitive of values that are no arrays.

    Args:
      primitive: its `impl` works on values; `to_lojax` does where there is none.
      args: values and arrays.
      params: its parameters.
    """
    from ferrax._high_tangents import plain

    args = tuple(map(plain, args))
    body = primitive.impl if _defines(primitive, "impl") else primitive.to_lojax
    if not _local.plain:
        args = _standing_in(args)
    with _plainly():
        out = body(*args, **params)
    if not _local.plain:
        for value in out if primitive.multiple_results else [out]:
            _note_made(value)
    return out


def _defines(primitive: Any, name: str) -> bool:
    from ferrax._primitives import Primitive

    return getattr(type(primitive), name, None) is not getattr(Primitive, name) or name in vars(primitive)


def _standing_in(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Operands, copies in the place of values that change; what these are given, they can keep."""
    if not any(map(_changes, args)):
        return args
    found = {i: _stand_in(x) for i, x in enumerate(args) if _changes(x)}
    born = min(born for _, born in found.values())
    return tuple(found[i][0] if i in found else _to_keep(x, born) for i, x in enumerate(args))


def _to_keep(x: Any, born: int) -> Any:
    """An array as a value that was made at a time can hold it.

    One that is mapped or differentiated stays what it is: the value may be as new as the transformation.
    """
    if not _ferrax.is_tracer(x):
        return x
    try:
        return _ferrax.value_for_reference(x, born)
    except ValueError:
        return x
