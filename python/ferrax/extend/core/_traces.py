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
    """A transformation at work, which operations are handed to. Libraries derive their own from it.

    Attributes:
      requires_low: whether it takes operations of arrays alone.

    A class of a library's has `process_primitive`, and `process_custom_jvp_call` and `process_custom_vjp_call` where
    functions with derivatives of their own are met; its values are objects of a class that derives from
    `ferrax.core.Tracer`. `set_current_trace` puts an object of it to work.

    >>> import ferrax as jax
    >>> class Counted(jax.core.Trace):
    ...     count = 0
    ...
    ...     def process_primitive(self, primitive, tracers, params):
    ...         self.count += 1
    ...         return primitive.bind(*tracers, **params)
    >>> with jax.extend.core.set_current_trace(Counted()) as trace:
    ...     _ = jax.numpy.sin(1.0) * 2
    >>> trace.count
    2
    """

    __slots__ = ("__weakref__", "_entrance", "_invalidated")
    requires_low = True

    def __init__(self) -> None:
        self._invalidated = False

    @property
    def _handle(self) -> Any:
        """What the core knows it by."""
        try:
            return self._entrance
        except AttributeError:
            self._entrance: Any = _ferrax.TraceHandle()
            _traces[self._entrance.number] = self
            return self._entrance

    @property
    def main(self) -> Any:
        """What marks the transformation's values: its tag, where it has one."""
        return getattr(self, "tag", None)

    def invalidate(self) -> None:
        """Notes that it is over."""
        self._invalidated = True

    def is_valid(self) -> bool:
        """Whether nobody has noted that it is over."""
        return not self._invalidated

    def full_raise(self, x: Any) -> Any:
        """The value itself."""
        return x

    def stage_value(self, val: Any) -> Any:
        """A value as one of the transformation's; a class of a library's says how."""
        raise NotImplementedError("must override")

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        """Applies an operation; a class of a library's says how.

        Args:
          primitive: the operation.
          tracers: its operands: values of the transformation, and others.
          params: its parameters, as equations show them.

        Returns:
          The result, a list of them where the primitive has several.
        """
        raise NotImplementedError("must override")

    def process_call(self, call_primitive: Any, f: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        """Applies an operation that calls a function; a class of a library's says how."""
        raise NotImplementedError(f"{type(self)} must override process_call to handle call-like primitives")

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: bool
    ) -> Any:
        """Applies a function of `custom_jvp`; a class of a library's says how.

        Args:
          primitive: the operation.
          fun: the function, of flat values (`WrappedFun`).
          jvp: its rule, of flat primals followed by flat tangents, which gives results followed by their tangents.
          tracers: the operands.
          symbolic_zeros: whether the rule takes objects for zeros.

        Returns:
          A list of results.
        """
        raise NotImplementedError(f"{type(self)} must override process_custom_jvp_call to handle custom_jvp primitives")

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, *, out_trees: Any, symbolic_zeros: bool
    ) -> Any:
        """Applies a function of `custom_vjp`; a class of a library's says how.

        Args:
          primitive: the operation.
          fun: the function, of flat values (`WrappedFun`).
          fwd: its forward rule, of flat values, which gives residuals behind the results.
          bwd: its backward rule, of residuals followed by cotangents.
          tracers: the operands.
          out_trees: accepted for compatibility: rules say how many residuals there are.
          symbolic_zeros: whether the rules take objects for zeros.

        Returns:
          A list of results.
        """
        raise NotImplementedError(f"{type(self)} must override process_custom_vjp_call to handle custom_vjp primitives")

    def __repr__(self) -> str:
        return type(self).__name__


class CoreTrace(Trace):
    """A transformation of the core's: one object for each while somebody holds it.

    Args:
      number: its number; 0 is none.
    """

    __slots__ = ("number",)

    def __init__(self, number: int):
        super().__init__()
        self.number = number

    @property
    def _handle(self) -> Any:
        try:
            return self._entrance
        except AttributeError:
            now = _ferrax.TraceHandle.now()
            if now.number != self.number:
                raise NotImplementedError(
                    "set_current_trace is not implemented for a transformation that is not at work, unless "
                    "take_current_trace gave it: in ferrax operations go to the innermost trace among their operands"
                ) from None
            self._entrance = now
            return now

    @property
    def main(self) -> Trace:
        return self

    def stage_value(self, val: Any) -> Any:
        return val

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        with set_current_trace(self):
            return primitive._ferrax_bound(*tracers, **params)

    def new_arg(self, aval: Any, source_info: Any = None) -> Any:
        """A value that stands for a further argument of the function, behind those that it was called with.

        Args:
          aval: its type.
          source_info: accepted for compatibility.

        Raises:
          NotImplementedError: it is not a function of `make_jaxpr`, whose program shows what it takes.
          ReferenceError: its function has ended.
        """
        found = self._handle.new_arg(aval)
        if found is None:
            raise NotImplementedError(
                "new_arg is implemented for functions of make_jaxpr alone: what calls the programs of other "
                "transformations has no more arguments than the function was given"
            )
        return found

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: bool
    ) -> Any:
        params = {"subfuns": (fun, jvp), "symbolic_zeros": symbolic_zeros}
        return self.process_primitive(primitive, tracers, params)

    def __repr__(self) -> str:
        return f"Trace({self.number})" if self.number else "EvalTrace"


_traces: weakref.WeakValueDictionary[int, Trace] = weakref.WeakValueDictionary()


def trace_numbered(number: int) -> Trace:
    """The transformation of a number."""
    known = _traces.get(number)
    return _traces.setdefault(number, CoreTrace(number)) if known is None else known


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


def trace_at_work() -> Trace:
    """The transformation at work, which can be used under others further in, too."""
    now = _ferrax.TraceHandle.now()
    trace = trace_numbered(now.number)
    if isinstance(trace, CoreTrace):
        trace._entrance = now
    return trace


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
    """A context that gives the transformation at work; inside, none is.

    >>> import ferrax as jax
    >>> with jax.extend.core.take_current_trace() as trace:
    ...     print(trace)
    EvalTrace
    """

    __slots__ = {"_before": "What to go back to.", "prev": "The transformation at work."}

    def __enter__(self) -> Trace:
        self.prev = trace_at_work()
        self._before = _ferrax.TraceHandle.none().enter(None)
        return self.prev

    def __exit__(self, *error: Any) -> None:
        self._before.leave()


class set_current_trace:
    """A context in which a transformation is at work: operations go to it, unless an operand belongs to a later one.

    Args:
      trace: the transformation: a library's, or one that `take_current_trace` gave.
      check_leaks: accepted for compatibility.

    Raises:
      NotImplementedError: it is one of the core's that is not at work, and that `take_current_trace` has not given.
      ReferenceError: its function has ended.

    >>> import ferrax as jax
    >>> with jax.extend.core.take_current_trace() as trace, jax.extend.core.set_current_trace(trace):
    ...     print(jax.numpy.ones(()))
    1.0
    """

    __slots__ = {
        "_before": "What to go back to.",
        "check_leaks": "As it was given.",
        "prev": "The transformation that was at work before.",
        "trace": "The transformation that is at work inside.",
    }

    def __init__(self, trace: Any, check_leaks: bool = False):
        self.trace, self.check_leaks = trace, check_leaks

    def __enter__(self) -> Any:
        self.prev = trace_numbered(_ferrax.current_trace())
        self._before = self.trace._handle.enter(self.trace)
        return self.trace

    def __exit__(self, *error: Any) -> None:
        self._before.leave()


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
