"""What programs that inspect traced ones use of JAX's core: types, tracers, `eval_jaxpr`.

Most of it is in `ferrax.extend.core`; names that JAX moved there are found here too, with a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Union

from ferrax import _ferrax
from ferrax._api import ensure_compile_time_eval as ensure_compile_time_eval
from ferrax._avals import AbstractValue as AbstractValue
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray as ShapedArray
from ferrax._ferrax import ClosedJaxpr as _ClosedJaxpr, Jaxpr as _Jaxpr
from ferrax._shapes import is_symbolic_dim as is_symbolic_dim, max_dim as max_dim, min_dim as min_dim
from ferrax.extend.core import Literal as _Literal, Var as _Var
from ferrax.extend.core._hosted import Tracer as Tracer
from ferrax.extend.core._traces import Trace as Trace

__all__ = [
    "AbstractValue",
    "Atom",
    "ParamDict",
    "ShapedArray",
    "Trace",
    "Tracer",
    "Value",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "max_dim",
    "min_dim",
]


ShapedArray.__doc__ = """Shape, dtype and weak type of an array.

Args:
  shape: the dimensions.
  dtype: the element type.
  weak_type: whether the dtype yields to others in promotion.
  sharding: accepted for compatibility: a type says nothing of places.
  manual_axis_type: accepted for compatibility.
  memory_space: accepted for compatibility.

>>> import ferrax as jax
>>> jax.core.ShapedArray((2,), "float32")
ShapedArray(float32[2])
"""
Atom = Union[_Var, _Literal]  # noqa: UP007
ParamDict = dict[str, Any]
Value = Any


def eval_jaxpr(jaxpr: _Jaxpr, consts: Sequence[Any], *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """The results of a program.

    Args:
      jaxpr: the program, such as `make_jaxpr(f)(x).jaxpr`.
      consts: a value for each of its constants.
      *args: an array or number for each of its arguments; traced ones are taken, too.
      propagate_source_info: accepted for compatibility: errors name the lines of the traced function.

    Returns:
      A list of arrays.

    Raises:
      TypeError: the arguments are not the program's.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> jax.core.eval_jaxpr(program.jaxpr, program.consts, 3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    program = jaxpr.jaxpr if isinstance(jaxpr, _ClosedJaxpr) else jaxpr
    return list(program.eval(list(consts), list(args)))


def eval_context() -> Any:
    """A context in which operations on plain arrays run at once, even while a function is being traced.

    >>> import ferrax as jax
    >>> with jax.core.eval_context():
    ...     print(jax.numpy.ones(()))
    1.0
    """
    return _ferrax.EagerScope()


_MOVED = frozenset(
    [
        "CallPrimitive",
        "DebugInfo",
        "DropVar",
        "Effect",
        "Effects",
        "InconclusiveDimensionOperation",
        "JaxprTypeError",
        "check_jaxpr",
        "concrete_or_error",
        "find_top_trace",
        "gensym",
        "get_opaque_trace_state",
        "jaxprs_in_params",
        "new_jaxpr_eqn",
        "no_effects",
        "nonempty_axis_env_DO_NOT_USE",
        "primal_dtype_to_tangent_dtype",
        "unsafe_am_i_under_a_jit_DO_NOT_USE",
        "unsafe_am_i_under_a_vmap_DO_NOT_USE",
        "unsafe_get_axis_names_DO_NOT_USE",
        "valid_jaxtype",
    ]
)
#: Names that JAX is about to take away; they are in `ferrax._src.core`.
_DEPRECATED = frozenset(
    [
        "JaxprPpContext",
        "JaxprPpSettings",
        "OutputType",
        "abstract_token",
        "aval_mapping_handlers",
        "call",
        "concretization_function_error",
        "custom_typechecks",
        "is_concrete",
        "is_constant_dim",
        "is_constant_shape",
        "literalable_types",
        "no_axis_name",
        "pytype_aval_mappings",
        "trace_ctx",
    ]
)
_REMOVED = {
    "get_aval": "use jax.typeof instead",
    "mapped_aval": "Use jax.extend.core.mapped_aval",
    "unmapped_aval": "Use jax.extend.core.unmapped_aval",
    "set_current_trace": "Use jax.extend.core.set_current_trace",
    "take_current_trace": "Use jax.extend.core.take_current_trace",
    "TraceTag": "Use jax.extend.core.TraceTag",
    "call_impl": "Use jax.extend.core.call_impl",
    "subjaxprs": "Use jax.extend.core.subjaxprs",
    "AbstractToken": "Use jax.extend.core.AbstractToken",
}


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        from ferrax.extend import core

        warnings.warn(f"jax.core.{name} is deprecated. Use jax.extend.core.{name}.", DeprecationWarning, stacklevel=2)
        return getattr(core, name)
    if name in _DEPRECATED:
        from ferrax._src import core as insides

        warnings.warn(f"jax.core.{name} is deprecated.", DeprecationWarning, stacklevel=2)
        return getattr(insides, name)
    if name in _REMOVED:
        raise AttributeError(f"jax.core.{name} was removed in JAX v0.10.0. {_REMOVED[name]}.")
    import sys

    from ferrax._boundary import missing

    raise missing(sys.modules[__name__], name)


_expose(globals())
