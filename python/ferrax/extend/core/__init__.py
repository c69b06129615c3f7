"""Programs seen from Python: their classes, the programs inside of them, running them, types of mapped values.

A `Jaxpr` is a program whose constants are variables, a `ClosedJaxpr` one with their values. Read next: `_programs.py`
for making programs, `_traces.py` for what transformation is at work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from ferrax import _ferrax, dtypes
from ferrax._core import ShapedArray
from ferrax._core import concrete_or_error as _concrete_or_error
from ferrax._ferrax import ClosedJaxpr as ClosedJaxpr
from ferrax._ferrax import DropVar as DropVar
from ferrax._ferrax import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ferrax._ferrax import Jaxpr as Jaxpr
from ferrax._ferrax import JaxprEqn as JaxprEqn
from ferrax._ferrax import JaxprTypeError as JaxprTypeError
from ferrax._ferrax import Literal as Literal
from ferrax._ferrax import Var as Var
from ferrax._lazy import defer as _defer
from ferrax._primitives import Primitive as Primitive
from ferrax.extend.core._effects import Effect as Effect
from ferrax.extend.core._programs import AbstractToken as AbstractToken
from ferrax.extend.core._programs import CallPrimitive as CallPrimitive
from ferrax.extend.core._programs import Effects as Effects
from ferrax.extend.core._programs import Token as Token
from ferrax.extend.core._programs import call_impl as call_impl
from ferrax.extend.core._programs import check_jaxpr as check_jaxpr
from ferrax.extend.core._programs import gensym as gensym
from ferrax.extend.core._programs import new_jaxpr_eqn as new_jaxpr_eqn
from ferrax.extend.core._traces import TraceTag as TraceTag
from ferrax.extend.core._traces import find_top_trace as find_top_trace
from ferrax.extend.core._traces import get_opaque_trace_state as get_opaque_trace_state
from ferrax.extend.core._traces import nonempty_axis_env_DO_NOT_USE as nonempty_axis_env_DO_NOT_USE
from ferrax.extend.core._traces import set_current_trace as set_current_trace
from ferrax.extend.core._traces import take_current_trace as take_current_trace
from ferrax.extend.core._traces import unsafe_am_i_under_a_jit_DO_NOT_USE as unsafe_am_i_under_a_jit_DO_NOT_USE
from ferrax.extend.core._traces import unsafe_am_i_under_a_vmap_DO_NOT_USE as unsafe_am_i_under_a_vmap_DO_NOT_USE
from ferrax.extend.core._traces import unsafe_get_axis_names_DO_NOT_USE as unsafe_get_axis_names_DO_NOT_USE
from ferrax.extend.linear_util import DebugInfo as DebugInfo

if TYPE_CHECKING:
    from ferrax.extend.core import primitives as primitives

__all__ = [
    "AbstractToken",
    "CallPrimitive",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "TraceTag",
    "Var",
    "array_types",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "find_top_trace",
    "gensym",
    "get_opaque_trace_state",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

_SUBMODULES = "primitives"

#: The effects of a program that has none.
no_effects: frozenset[Any] = frozenset()

_NARROW = [
    value
    for name, value in vars(ml_dtypes).items()
    if isinstance(value, type) and issubclass(value, np.generic) and not name.endswith("complex32")
]
# without "Q", as in JAX: where it is another type than "L", arrays of it have the dtype of "L"
_NUMBERS = [np.dtype(code).type for code in "?bhilqBHILefdFD"]
#: The types of values that count as arrays besides arrays themselves: NumPy's arrays and scalars.
array_types: set[type] = {np.ndarray, *_NUMBERS, *_NARROW}


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """The value of an operand that must not be traced, converted by a function.

    Args:
      force: a function such as `int` or `np.asarray`; None to convert nothing.
      val: an array, number or any other object.
      context: what needs the value, for the error.

    Returns:
      `force(val)`.

    Raises:
      ConcretizationTypeError: `val` is traced.

    >>> import ferrax as jax
    >>> jax.extend.core.concrete_or_error(int, jax.numpy.array(3), "the length")
    3
    """
    return _concrete_or_error(force, val, context)


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr, *args: Any) -> Callable[..., list[Any]]:
    """The function that a program computes.

    Args:
      closed_jaxpr: the program.
      *args: the first of its arguments, which the function then takes no more.

    Returns:
      A function of the program's arguments, arrays or numbers, also traced ones, that gives a list of arrays.

    Raises:
      TypeError: `closed_jaxpr` is no program; the function: its arguments are not the program's.

    >>> import ferrax as jax
    >>> jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(lambda x: 2 * x)(1.0))(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    if not isinstance(closed_jaxpr, ClosedJaxpr):
        raise TypeError(f"jaxpr_as_fun takes a ClosedJaxpr, got {type(closed_jaxpr).__name__}")
    return partial(_eval, closed_jaxpr, *args)


def _eval(program: ClosedJaxpr, *args: Any) -> list[Any]:
    return list(program.eval(*args))


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation, such as the branches of a `cond`.

    Args:
      params: the parameters.

    Yields:
      The programs, not those inside of them.

    >>> import ferrax as jax
    >>> *_, equation = jax.make_jaxpr(lambda x: jax.lax.cond(x > 0, lambda: x, lambda: -x))(1.0).eqns
    >>> equation.primitive.name, len(list(jax.extend.core.jaxprs_in_params(equation.params)))
    ('cond', 2)
    """
    for value in params.values():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, ClosedJaxpr):
                yield part.jaxpr
            elif isinstance(part, Jaxpr):
                yield part


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs among the parameters of a program's equations.

    Args:
      jaxpr: the program.

    Yields:
      The programs, not those inside of them.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda n: jax.lax.fori_loop(0, n, lambda i, x: x + i, 0))(4)
    >>> len(list(jax.extend.core.subjaxprs(program.jaxpr)))
    2
    """
    for equation in jaxpr.eqns:
        yield from jaxprs_in_params(equation.params)


def valid_jaxtype(x: Any) -> bool:
    """Whether programs can compute with a value: arrays, numbers, and what has a shape and a dtype.

    Args:
      x: any object.

    Returns:
      A Python bool.

    >>> import ferrax as jax
    >>> [jax.extend.core.valid_jaxtype(x) for x in (1.5, jax.numpy.ones(2), "text")]
    [True, True, False]
    """
    if isinstance(x, ShapedArray):
        return False
    try:
        _ferrax.typeof(x)
    except TypeError:
        return False
    return True


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of derivatives of values of a dtype.

    Args:
      primal_dtype: a dtype.

    Returns:
      The dtype itself when it is floating or complex, else `float0`.

    >>> import ferrax as jax
    >>> jax.extend.core.primal_dtype_to_tangent_dtype(jax.numpy.dtype("int32")) == jax.float0
    True
    """
    return primal_dtype if dtypes.issubdtype(primal_dtype, np.inexact) else dtypes.float0


def mapped_aval(size: int, axis: int | None, aval: Any) -> Any:
    """The type that values have inside of a `vmap`.

    Args:
      size: length of the mapped axis.
      axis: the mapped axis of the value, or None where it is not mapped.
      aval: the type outside: shape, dtype and weak type.

    Returns:
      The type inside.

    Raises:
      ValueError: the axis has another length.

    >>> import ferrax as jax
    >>> jax.extend.core.mapped_aval(3, 1, jax.typeof(jax.numpy.ones((2, 3)))).shape
    (2,)
    """
    if axis is None:
        return aval
    if not hasattr(aval, "shape"):
        raise TypeError(f"mapped_aval takes the type of an array, got {type(aval).__name__}")
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval} has no size {size}")
    shape = list(aval.shape)
    del shape[axis]
    return ShapedArray(tuple(shape), aval.dtype, aval.weak_type)


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: None = None) -> Any:
    """The type that values have outside of a `vmap`, the converse of `mapped_aval`.

    Args:
      size: length of the mapped axis.
      axis: where the mapped axis is, or None where the value is not mapped.
      aval: the type inside: shape, dtype and weak type.
      explicit_mesh_axis: not supported.

    Returns:
      The type outside.

    Raises:
      NotImplementedError: an axis of a mesh is given.

    >>> import ferrax as jax
    >>> jax.extend.core.unmapped_aval(3, 0, jax.typeof(jax.numpy.ones(2))).shape
    (3, 2)
    """
    if explicit_mesh_axis is not None:
        raise NotImplementedError("the explicit_mesh_axis argument of unmapped_aval is not implemented")
    if axis is None:
        return aval
    place = axis if axis >= 0 else axis + len(aval.shape) + 1
    return ShapedArray((*aval.shape[:place], size, *aval.shape[place:]), aval.dtype, aval.weak_type)


_defer(globals(), {}, _SUBMODULES)
