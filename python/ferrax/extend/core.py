"""Programs seen from Python: their classes, the programs inside of them, running them, types of mapped values.

A `Jaxpr` carries its constants, so that it is the same class as `ClosedJaxpr`; literals are `Var`s with a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from ferrax import _ferrax, dtypes
from ferrax._boundary import expose as _expose
from ferrax._core import ShapedArray
from ferrax._core import concrete_or_error as _concrete_or_error
from ferrax._ferrax import ClosedJaxpr as ClosedJaxpr
from ferrax._ferrax import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from ferrax._ferrax import JaxprEqn as JaxprEqn
from ferrax._ferrax import JaxprTypeError as JaxprTypeError
from ferrax._ferrax import Primitive as Primitive
from ferrax._ferrax import Var as Var

__all__ = [
    "ClosedJaxpr",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Primitive",
    "Var",
    "array_types",
    "concrete_or_error",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "subjaxprs",
    "unmapped_aval",
    "valid_jaxtype",
]

Jaxpr = ClosedJaxpr

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

_EXAMPLES = {
    ClosedJaxpr: """A program: its arguments, equations and results, and the constants that it uses.

>>> import ferrax as jax
>>> type(jax.make_jaxpr(lambda x: x + 1)(2)) is jax.extend.core.ClosedJaxpr
True
""",
    JaxprEqn: """An equation of a program: a primitive with its parameters, the values it takes and the ones it gives.

>>> import ferrax as jax
>>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(2).eqns
>>> equation.primitive.name, len(equation.invars), len(equation.outvars)
('add', 2, 1)
""",
    Primitive: """A primitive, by name.

>>> import ferrax as jax
>>> (equation,) = jax.make_jaxpr(lambda x: -x)(2).eqns
>>> isinstance(equation.primitive, jax.extend.core.Primitive), equation.primitive.name
(True, 'neg')
""",
    Var: """A variable or literal of a program; `val` of a variable is `None`.

>>> import ferrax as jax
>>> (equation,) = jax.make_jaxpr(lambda x: x + 1)(2).eqns
>>> [v.val for v in equation.invars]
[None, Array(1, dtype=int32, weak_type=True)]
""",
}
# the classes are the extension module's; examples of them are run as tests
for _class, _text in _EXAMPLES.items():
    _class.__doc__ = _text
_operands = property(vars(JaxprEqn)["invars"].__get__, doc="The values that the equation takes.")
JaxprEqn.invars = _operands  # type: ignore[method-assign, misc, assignment]


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


def jaxprs_in_params(params: Mapping[str, Any]) -> Iterator[ClosedJaxpr]:
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
                yield part


def subjaxprs(jaxpr: ClosedJaxpr) -> Iterator[ClosedJaxpr]:
    """The programs among the parameters of a program's equations.

    Args:
      jaxpr: the program.

    Yields:
      The programs, not those inside of them.

    >>> import ferrax as jax
    >>> program = jax.make_jaxpr(lambda n: jax.lax.fori_loop(0, n, lambda i, x: x + i, 0))(4)
    >>> len(list(jax.extend.core.subjaxprs(program)))
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


_expose(globals())
