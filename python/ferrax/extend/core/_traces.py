"""Which transformation is at work: what libraries compare to see whether an object was made under another one.

Transformations are numbered; the number of the one whose function runs is 0 outside of all.
"""

from __future__ import annotations

import weakref
from typing import Any

from ferrax import _ferrax

__all__ = [
    "TraceTag",
    "find_top_trace",
    "get_opaque_trace_state",
    "nonempty_axis_env_DO_NOT_USE",
    "set_current_trace",
    "take_current_trace",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
]


class TraceTag:
    """Marks the values of a transformation that a library defines.

    >>> import ferrax as jax
    >>> jax.extend.core.TraceTag() == jax.extend.core.TraceTag()
    False
    """


class Trace:
    """A transformation at work: one object for each while somebody holds it.

    Args:
      number: its number; 0 is none.

    >>> import ferrax as jax
    >>> jax.core.Trace(0)
    EvalTrace
    """

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int = 0):
        self.number = number

    @property
    def main(self) -> Trace:
        """What marks the transformation's values: itself."""
        return self

    @property
    def requires_low(self) -> bool:
        """Whether it takes arrays alone: it does."""
        return True

    def process_primitive(self, primitive: Any, args: Any, params: dict[str, Any]) -> Any:
        """Applies an operation; the operands decide which transformation gets it."""
        outs = _ferrax.bind_primitive(primitive, tuple(args), params)
        return outs if primitive.multiple_results else outs[0]

    def __repr__(self) -> str:
        return f"Trace({self.number})" if self.number else "EvalTrace"


_traces: weakref.WeakValueDictionary[int, Trace] = weakref.WeakValueDictionary()


def trace_numbered(number: int) -> Trace:
    """The transformation of a number."""
    known = _traces.get(number)
    return _traces.setdefault(number, Trace(number)) if known is None else known


def _trace_of_tracer(self: Any) -> Trace:
    """The transformation that the value belongs to."""
    return trace_numbered(_ferrax.trace_of(self)[0])


_ferrax.Tracer._trace = property(_trace_of_tracer)  # type: ignore[method-assign, assignment]


class OpaqueTraceState:
    """The transformation at work, to be compared with another time's.

    Args:
      trace: the transformation.
    """

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace):
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and other._trace is self._trace

    def __hash__(self) -> int:
        return hash(self._trace)


def get_opaque_trace_state(convention: Any = None) -> OpaqueTraceState:
    """The transformation at work, to be compared with another time's.

    Args:
      convention: accepted for compatibility.

    Returns:
      An object that is equal to the one of another time when the transformation is the same.

    >>> import ferrax as jax
    >>> outside = jax.extend.core.get_opaque_trace_state()
    >>> jax.vmap(lambda x: print(jax.extend.core.get_opaque_trace_state() == outside))(jax.numpy.ones(2))
    False
    """
    return OpaqueTraceState(trace_numbered(_ferrax.current_trace()))


def find_top_trace(_: Any) -> Trace:
    """The transformation at work.

    Args:
      _: values, which do not matter.

    Returns:
      The transformation.

    >>> import ferrax as jax
    >>> jax.extend.core.find_top_trace(())
    EvalTrace
    """
    return trace_numbered(_ferrax.current_trace())


class take_current_trace:
    """A context that gives the transformation at work.

    >>> import ferrax as jax
    >>> with jax.extend.core.take_current_trace() as trace:
    ...     print(trace)
    EvalTrace
    """

    __slots__ = {"prev": "The transformation at work."}

    def __enter__(self) -> Trace:
        self.prev = trace_numbered(_ferrax.current_trace())
        return self.prev

    def __exit__(self, *error: Any) -> None:
        pass


class set_current_trace:
    """A context in which a transformation that `take_current_trace` gave is at work.

    Args:
      trace: the transformation.
      check_leaks: accepted for compatibility.

    Raises:
      NotImplementedError: it is not the one at work: which operation goes where is decided by the values' traces.

    >>> import ferrax as jax
    >>> with jax.extend.core.take_current_trace() as trace, jax.extend.core.set_current_trace(trace):
    ...     print(jax.numpy.ones(()))
    1.0
    """

    __slots__ = {
        "check_leaks": "As it was given.",
        "prev": "The transformation that was at work before.",
        "trace": "The transformation that is at work inside.",
    }

    def __init__(self, trace: Any, check_leaks: bool = False):
        self.trace, self.check_leaks = trace, check_leaks

    def __enter__(self) -> None:
        if not isinstance(self.trace, Trace) or self.trace.number != _ferrax.current_trace():
            raise NotImplementedError(
                "set_current_trace is not implemented for other traces than the current one: in ferrax operations go "
                "to the innermost trace among their operands"
            )
        self.prev = self.trace

    def __exit__(self, *error: Any) -> None:
        pass


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being traced for `jit` or a kin of it.

    >>> import ferrax as jax
    >>> jax.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    False
    """
    return not _ferrax.is_eager()


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a `vmap` with a name for its axis is at work.

    >>> import ferrax as jax
    >>> jax.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE()
    False
    """
    return bool(_ferrax.named_axes())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in force.

    >>> import ferrax as jax
    >>> jax.extend.core.nonempty_axis_env_DO_NOT_USE()
    False
    """
    return bool(_ferrax.named_axes())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in force.

    >>> import ferrax as jax
    >>> f = lambda x: print(jax.extend.core.unsafe_get_axis_names_DO_NOT_USE())
    >>> jax.vmap(f, axis_name="rows")(jax.numpy.ones(2))
    ['rows']
    """
    return [name for name, _ in _ferrax.named_axes()]
