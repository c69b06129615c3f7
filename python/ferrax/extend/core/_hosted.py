"""Values of transformations that libraries define, and how operations on them reach the library's methods.

A tracer of a library's is a Python object that the core knows by its class: `crates/ferrax-python/src/api/hosted.rs`
makes a value of it, which belongs to the library's trace. What an array has, methods and operators, it has from the
core's tracer that stands for it.

Read next: `_traces.py` for the class that libraries derive their traces from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax import _ferrax
from ferrax._api import registered_caches

__all__ = ["Tracer", "process"]


class _AnyTracer(type):
    """The class of a class whose instances are the core's tracers, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _ferrax.Tracer) if cls is Tracer else super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return super().__subclasscheck__(subclass) or (cls is Tracer and issubclass(subclass, _ferrax.Tracer))


class Tracer(metaclass=_AnyTracer):
    """A traced value, whatever transformation traces it. Libraries derive the values of theirs from it.

    Args:
      trace: the transformation, an object of a class that derives from `ferrax.core.Trace`.
      aval: the value's type, a `ferrax.core.ShapedArray`.

    >>> import ferrax as jax
    >>> _ = jax.vmap(lambda x: print(isinstance(x, jax.core.Tracer)) or x)(jax.numpy.ones(2))
    True
    """

    __slots__ = ("__weakref__", "_line_info", "_trace", "aval")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]
    #: It counts as an array: `isinstance` asks for this where the class itself is none.
    __class__ = property(lambda self: _ferrax.Tracer)  # type: ignore[assignment]

    _trace: Any
    aval: Any

    def __init__(self, trace: Any, aval: Any):
        self._trace = trace
        self.aval = aval

    def full_lower(self) -> Any:
        """The value itself."""
        return self

    def get_referent(self) -> Any:
        """The value itself."""
        return self

    def to_concrete_value(self) -> Any:
        """None: what is known of the value, its transformation knows."""

    def __repr__(self) -> str:
        return f"Traced<{self.aval}>with<{self._trace}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "aval":  # what a subclass has not set yet, and protocols that no array has
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return _member(self, name)


class _OfArray:
    """A member that a tracer has from the array that stands for it; a class of a library's may set its own."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__doc__ = getattr(_ferrax.Tracer, name).__doc__

    def __get__(self, tracer: Any, owner: type | None = None) -> Any:
        return self if tracer is None else _member(tracer, self.__name__)

    def __call__(self, tracer: Any, *args: Any, **kwargs: Any) -> Any:
        return _member(tracer, self.__name__)(*args, **kwargs)


def _member(tracer: Tracer, name: str) -> Any:
    """A member of the array that stands for a tracer; the tracer itself where that is the array."""
    array = _ferrax.hosted_array(tracer)
    member = getattr(array, name)
    if not callable(member):
        return tracer if member is array else member
    return lambda *args, **kwargs: _result(tracer, array, member(*args, **kwargs))


def _result(tracer: Tracer, array: Any, out: Any) -> Any:
    """What a method has given: the tracer itself where that is the array that stood for it."""
    return tracer if out is array else out


#: What every object has of its own.
_OWN = frozenset(dir(Tracer)) - {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__format__"}


def _of_array(name: str) -> Callable[..., Any]:
    def method(self: Tracer, *args: Any, **kwargs: Any) -> Any:
        array = _ferrax.hosted_array(self)
        return _result(self, array, getattr(array, name)(*args, **kwargs))

    method.__name__ = name
    return method


for _name in dir(_ferrax.Tracer):
    if _name.startswith("__") and _name not in _OWN and callable(getattr(_ferrax.Array, _name, None)):
        setattr(Tracer, _name, _of_array(_name))
    elif not _name.startswith("_") and _name not in vars(Tracer):
        setattr(Tracer, _name, _OfArray(_name))

_ferrax.set_tracer_class(Tracer)


@functools.lru_cache(256)
def _known_program(program: Any) -> Any:
    return program


registered_caches.append(_known_program)


def _same_program(value: Any) -> Any:
    """A parameter; equal programs are one object, by which libraries keep what they make of them."""
    return _known_program(value) if type(value) is _ferrax.ClosedJaxpr else value


def process(trace: Any, equation: Any, tracers: list[Any]) -> list[Any]:
    """Hands an operation to a library's transformation.

    Args:
      trace: the transformation.
      equation: the operation, with its parameters.
      tracers: the operands.

    Returns:
      The results.
    """
    primitive = equation.primitive
    params = {key: _same_program(value) for key, value in equation.params.items()}
    if primitive.name not in ("custom_jvp_call", "custom_vjp_call"):
        outs = trace.process_primitive(primitive, tracers, params)
        return list(outs) if primitive.multiple_results else [outs]
    from ferrax._jax_parameters import functions_of

    zeros = params["symbolic_zeros"]
    if primitive.name == "custom_jvp_call":
        return list(trace.process_custom_jvp_call(primitive, *functions_of(equation), tracers, symbolic_zeros=zeros))
    functions = functions_of(equation)
    return list(trace.process_custom_vjp_call(primitive, *functions, tracers, out_trees=None, symbolic_zeros=zeros))
