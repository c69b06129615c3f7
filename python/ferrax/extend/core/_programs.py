"""Making and checking programs from Python: variables, equations, and their methods `replace`.

Read next: `crates/ferrax-python/src/api/jaxpr_build.rs`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax
from ferrax._avals import AbstractValue
from ferrax._ferrax import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from ferrax._primitives import Primitive
from ferrax.extend.core._effects import Effect

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "Effects",
    "Token",
    "call_impl",
    "check_jaxpr",
    "gensym",
    "new_jaxpr_eqn",
]


#: A set of effects.
Effects = frozenset[Effect]


class Token:
    """Orders operations with effects; ferrax orders them itself, so a token holds nothing.

    Args:
      buf: accepted for compatibility.

    >>> import ferrax as jax
    >>> jax.extend.core.Token(None).block_until_ready()
    """

    def __init__(self, buf: Any):
        self._buf = buf

    def block_until_ready(self) -> None:
        """Waits for nothing."""


class AbstractToken(AbstractValue):
    """The type of a `Token`.

    >>> import ferrax as jax
    >>> jax.extend.core.AbstractToken().str_short()
    'Tok'
    """

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as text."""
        return "Tok"

    def to_tangent_aval(self) -> AbstractToken:
        """The type of tangents: itself."""
        return self

    def to_ct_aval(self) -> AbstractToken:
        """The type of cotangents: itself."""
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractToken)

    def __hash__(self) -> int:
        return hash(AbstractToken)


class CallPrimitive(Primitive):
    """A primitive that calls a function.

    Args:
      name: its name.

    >>> import ferrax as jax
    >>> jax.extend.core.CallPrimitive("call").call_primitive
    True
    """

    multiple_results = True
    call_primitive = True
    skip_canonicalization = True

    def bind(self, f: Any, *args: Any, **params: Any) -> Any:
        """Calls the function."""
        return call_impl(f, *args, **params)


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Calls a function wrapped by `ferrax.extend.linear_util.wrap_init`.

    Args:
      f: the function.
      *args: its arguments.
      **params: parameters of the call, which do not matter.

    Returns:
      What it returns.

    >>> import ferrax as jax
    >>> jax.extend.core.call_impl(jax.extend.linear_util.wrap_init(lambda x: [x + 1]), 1)
    [2]
    """
    return f.call_wrapped(*args)


def gensym() -> Callable[[Any], Var]:
    """A function that makes new variables.

    Returns:
      A function of a type that gives a variable.

    >>> import ferrax as jax
    >>> new = jax.extend.core.gensym()
    >>> new(jax.typeof(1.0)) == new(jax.typeof(1.0))
    False
    """
    return Var


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Primitive,
    params: dict[str, Any],
    effects: Any = frozenset(),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation.

    Args:
      invars: variables and literals that it takes.
      outvars: variables that are its results.
      primitive: what is done.
      params: its parameters, as equations show them.
      effects: accepted for compatibility: the primitive knows its effects.
      source_info: what gives the equation its names of scopes; by default those in force.
      ctx: accepted for compatibility.

    Returns:
      The equation.

    >>> import ferrax as jax
    >>> core = jax.extend.core
    >>> x, y = core.Var(jax.typeof(1.0)), core.Var(jax.typeof(1.0))
    >>> equation = core.new_jaxpr_eqn([x], [y], core.primitives.neg_p, {})
    >>> core.Jaxpr([], [x], [y], [equation])
    { lambda ; a:f32[]. let b:f32[] = neg a in (b,) }
    """
    from ferrax.extend import source_info_util

    parts = (list(invars), list(outvars), primitive, params)
    if source_info is None:
        return _ferrax.new_equation(*parts)
    with source_info_util.set_name_stack(source_info.name_stack):
        return _ferrax.new_equation(*parts)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Checks a program: every variable is defined once before it is used, and types fit.

    Args:
      jaxpr: the program.

    Raises:
      JaxprTypeError: it is not well formed.

    >>> import ferrax as jax
    >>> jax.extend.core.check_jaxpr(jax.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr)
    """
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"check_jaxpr takes a Jaxpr, got {type(jaxpr)}")
    Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, jaxpr.eqns)


def _replace_jaxpr(self: Jaxpr, **kwargs: Any) -> Jaxpr:
    """The program with other parts: `constvars`, `invars`, `outvars`, `eqns`."""
    parts = {name: kwargs.pop(name, getattr(self, name)) for name in ("constvars", "invars", "outvars", "eqns")}
    for name in ("effects", "debug_info", "is_high"):
        kwargs.pop(name, None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {list(kwargs)}")
    return Jaxpr(**parts)


def _replace_closed(self: ClosedJaxpr, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> Any:
    """The program with another `jaxpr`, or other `consts`."""
    return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else list(consts))


def _map_jaxpr(self: ClosedJaxpr, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
    """The program with `f` applied to its `jaxpr`."""
    return ClosedJaxpr(f(self.jaxpr), self.consts)


def _replace_eqn(self: JaxprEqn, **kwargs: Any) -> JaxprEqn:
    """The equation with other parts: `invars`, `outvars`, `primitive`, `params`, `source_info`."""
    names = ("invars", "outvars", "primitive", "params", "source_info")
    parts = {name: kwargs.pop(name, getattr(self, name)) for name in names}
    for name in ("effects", "ctx"):
        kwargs.pop(name, None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {list(kwargs)}")
    return new_jaxpr_eqn(**parts)


def _source_info(self: JaxprEqn) -> Any:
    """Where the user asked for it, and in which scopes."""
    from ferrax._scopes import NameStack, Traceback
    from ferrax.extend.source_info_util import SourceInfo

    return SourceInfo(self._place and Traceback(self._place), NameStack.of(self._scopes))


def _debug_info(self: Jaxpr | ClosedJaxpr) -> Any:
    """Names of the traced function and its arguments."""
    from ferrax.extend.linear_util import DebugInfo

    program = self.jaxpr if isinstance(self, ClosedJaxpr) else self
    names, results, count = program.argument_names(), program.result_names(), len(program.invars)
    arguments = tuple([""] * (count - len(names)) + names) if names or not count else None
    return DebugInfo(
        program.traced_for or "jit", program.function_name, arguments, None if results is None else tuple(results)
    )


class JaxprEqnContext:
    """Settings that an equation was recorded under: they are part of the operation here, so that these say nothing.

    >>> import ferrax as jax
    >>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(2).eqns
    >>> with equation.ctx.manager:
    ...     print(equation.primitive.bind(1, 2))
    3
    """

    compute_type = None
    threefry_partitionable = True
    xla_metadata = None
    remove_size_one_mesh_axis = False

    @property
    def cur_abstract_mesh(self) -> Any:
        """The mesh in use."""
        from ferrax.sharding import get_abstract_mesh

        return get_abstract_mesh()

    @property
    def manager(self) -> contextlib.AbstractContextManager[None]:
        """A context in which the equation may be evaluated."""
        return contextlib.nullcontext()


def _make_equation(
    cls: type,
    invars: Sequence[Any],
    outvars: Sequence[Any],
    primitive: Primitive,
    params: dict[str, Any],
    effs: Any = frozenset(),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation: the parameters are those of `new_jaxpr_eqn`."""
    return new_jaxpr_eqn(invars, outvars, primitive, params, effs, source_info, ctx)


def _make_closed(cls: type, jaxpr: Any, consts: Sequence[Any] = ()) -> Any:
    """The program with values of its constants; one with references is of a class of its own."""
    if type(jaxpr) is Jaxpr:
        return ClosedJaxpr._of_parts(jaxpr, list(consts))
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"ClosedJaxpr takes a Jaxpr, got {type(jaxpr).__name__}")
    return jaxpr.closed(consts)  # type: ignore[attr-defined]


def _pretty_print_atom(self: Var | Literal, context: Any = None, *, print_dtype: bool = True) -> str:
    """The variable or number as programs show it, with its type or without."""
    text = repr(self)
    return text if print_dtype else text.rpartition(":")[0] or text


def _literal_hash(self: Literal) -> int:
    """A hash of the number."""
    return hash(self.val.item() if isinstance(self.val, np.ndarray) else self.val)


_array_of = Literal.val.__get__  # type: ignore[attr-defined]


def _number_of(self: Literal) -> Any:
    """The number: of a weak type one of Python's with its dtype, else an array of NumPy's without axes."""
    array = _array_of(self)
    if array.dtype == bool:
        return bool(array)
    if not array.weak_type:
        return np.asarray(array)
    from ferrax._src import literals

    kind = literals.TypedComplex if array.dtype.kind == "c" else literals.TypedFloat
    return (literals.TypedInt if array.dtype.kind in "iu" else kind)(array.item(), array.dtype)


def _shown_literal(self: Literal) -> str:
    return f"Literal({self.val.item() if isinstance(self.val, np.ndarray) else self.val})"


_NO_STATES = property(lambda self: None, doc="None: types have no states.")

_OF_PROGRAMS = {
    "debug_info": property(_debug_info),
    "is_high": property(lambda self: False, doc="Whether values of other types than arrays are in it."),
    "in_aval_qdds": property(lambda self: list(self.in_avals), doc="Types of the arguments."),
    "final_aval_qdds": property(lambda self: list(self.in_avals), doc="Types of the arguments at the end."),
}
_OF_VARIABLES = {"initial_qdd": _NO_STATES, "final_qdd": _NO_STATES, "pretty_print": _pretty_print_atom}

_METHODS: dict[type, dict[str, Any]] = {
    Jaxpr: {**_OF_PROGRAMS, "replace": _replace_jaxpr},
    ClosedJaxpr: {
        **_OF_PROGRAMS,
        "__new__": staticmethod(_make_closed),
        "replace": _replace_closed,
        "map_jaxpr": _map_jaxpr,
    },
    Var: _OF_VARIABLES,
    DropVar: _OF_VARIABLES,
    Literal: {
        "__repr__": _shown_literal,
        "hash": property(_literal_hash),
        "pretty_print": _pretty_print_atom,
        "val": property(_number_of, doc="The number, as Python's or NumPy's."),
    },
    JaxprEqn: {
        "__new__": staticmethod(_make_equation),
        "replace": _replace_eqn,
        "source_info": property(_source_info),
        "ctx": property(lambda self: JaxprEqnContext(), doc="Settings that it was recorded under."),
    },
}
for _class, _methods in _METHODS.items():
    for _name, _method in _methods.items():
        setattr(_class, _name, _method)

_EXAMPLES = {
    Jaxpr: """A program: its arguments, equations and results; its constants are variables.

Args:
  constvars: variables that stand for constants.
  invars: variables that are its arguments.
  outvars: variables and literals that are its results.
  eqns: equations in order.
  effects: accepted for compatibility: the equations' effects are known.
  debug_info: accepted for compatibility.
  is_high: accepted for compatibility.

>>> import ferrax as jax
>>> type(jax.make_jaxpr(lambda x: x + 1)(2).jaxpr) is jax.extend.core.Jaxpr
True
""",
    ClosedJaxpr: """A program with the values of its constants.

Args:
  jaxpr: the program.
  consts: a value for each of its `constvars`.

>>> import ferrax as jax
>>> type(jax.make_jaxpr(lambda x: x + 1)(2)) is jax.extend.core.ClosedJaxpr
True
""",
    JaxprEqn: """An equation of a program: a primitive with its parameters, the values it takes and the ones it gives.

Args:
  invars, outvars, primitive, params, effs, source_info, ctx: as of `new_jaxpr_eqn`.

>>> import ferrax as jax
>>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(2).eqns
>>> equation.primitive.name, len(equation.invars), len(equation.outvars)
('add', 2, 1)
""",
    Var: """A variable of a program.

Args:
  aval: its type.

>>> import ferrax as jax
>>> jax.make_jaxpr(lambda x: x + 1)(2).eqns[0].invars[0].aval
ShapedArray(int32[], weak_type=True)
""",
    DropVar: """A result of an equation that nothing reads.

Args:
  aval: its type.

>>> import ferrax as jax
>>> jax.extend.core.DropVar(jax.typeof(1.0))
_
""",
    Literal: """A number in a program.

Args:
  val: the number.
  aval: its type.

>>> import ferrax as jax
>>> jax.make_jaxpr(lambda x: x + 1)(2).eqns[0].invars[1].val
TypedInt(1, dtype=int32)
""",
}
# the classes are the extension module's; examples of them are run as tests
for _class, _text in _EXAMPLES.items():
    _class.__doc__ = _text
