"""Differentiation rules of primitives: the tables, and helpers that fill them.

Read next: `ferrax/_primitives.py`, which looks the rules up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ferrax._boundary import expose as _expose
from ferrax._derivatives import jvp as _jvp, linearize as _linearize
from ferrax._ferrax import JVPTracer as JVPTracer
from ferrax._primitives import (
    Primitive,
    UndefinedPrimal,
    Zero,
    built_in,
    missing_rule,
    primitive_jvps as primitive_jvps,
    primitive_transposes as primitive_transposes,
    zeros_of as _zeros_of,
)
from ferrax._src._unprovided import lacking as _lacking
from ferrax.extend.core._traces import Trace as _Trace

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "linearize",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]

JVPTracer.__doc__ = """A value with its tangent.

>>> import ferrax as jax
>>> _ = jax.jvp(lambda x: print(isinstance(x, jax.interpreters.ad.JVPTracer)) or x, (1.0,), (1.0,))
True
"""


@_lacking("cur_qdd process_shard_map to_primal_tangent_pair", "programs are differentiated by the core")
class JVPTrace(_Trace):
    """Forward differentiation, as a class that JAX's tracers belong to: the core's has no objects of it.

    Args:
      parent_trace: the transformation around it.
      tag: marks its values.

    Raises:
      NotImplementedError: always.

    >>> import ferrax as jax
    >>> issubclass(jax.interpreters.ad.JVPTrace, jax.core.Trace)
    True
    """

    def __init__(self, parent_trace: Any, tag: Any):
        raise NotImplementedError("ferrax.interpreters.ad.JVPTrace: programs are differentiated by the core")


#: The sum of two cotangents of one value.
add_jaxvals_p = built_in("add_any")


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule is asked for the cotangent of an operand.

    Args:
      x: an operand that the rule got.

    Returns:
      A Python bool.

    >>> import ferrax as jax
    >>> jax.interpreters.ad.is_undefined_primal(1.0)
    False
    """
    return type(x) is UndefinedPrimal


def zeros_like_aval(aval: Any) -> Any:
    """An array of zeros of a type.

    Args:
      aval: shape and dtype.

    Returns:
      The array.

    >>> import ferrax as jax
    >>> print(jax.interpreters.ad.zeros_like_aval(jax.typeof(1.0)))
    0.0
    """
    return _zeros_of(aval)


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent as an array.

    Args:
      tangent: an array, or a `Zero`.

    Returns:
      The array itself, or zeros.

    >>> import ferrax as jax
    >>> ad = jax.interpreters.ad
    >>> print(ad.instantiate_zeros(ad.Zero(jax.typeof(1.0))))
    0.0
    """
    return _zeros_of(tangent.aval) if type(tangent) is Zero else tangent


def add_jaxvals(x: Any, y: Any) -> Any:
    """The sum of two cotangents of one value.

    Args:
      x: array.
      y: array of the same type.

    Returns:
      The array.

    >>> import ferrax as jax
    >>> print(jax.interpreters.ad.add_jaxvals(1.0, 2.0))
    3.0
    """
    return add_jaxvals_p.bind(x, y)


def add_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents, either of which may be a `Zero`.

    Args:
      x: array or `Zero`.
      y: array or `Zero` of the same type.

    Returns:
      An array, or a `Zero` where both are.

    >>> import ferrax as jax
    >>> ad = jax.interpreters.ad
    >>> print(ad.add_tangents(ad.Zero(jax.typeof(1.0)), 2.0))
    2.0
    """
    if type(x) is Zero:
        return y
    return x if type(y) is Zero else add_jaxvals(x, y)


def _tangent_sum(tangents: Sequence[Any], out: Any) -> Any:
    return functools.reduce(add_tangents, tangents, Zero.from_primal_value(out))


def defjvp(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """Sets the forward derivative of a primitive with one result, operand by operand.

    Args:
      primitive: the primitive.
      *jvprules: for each operand a function `(tangent, *operands, **params)` that gives its part of the result's
        tangent; None where there is none.

    >>> import ferrax as jax
    >>> cube_p = jax.extend.core.Primitive("cube")
    >>> _ = cube_p.def_impl(lambda x: x**3)
    >>> jax.interpreters.ad.defjvp(cube_p, lambda t, x: 3 * x**2 * t)
    >>> print(jax.jvp(cube_p.bind, (2.0,), (1.0,))[1])
    12.0
    """
    defjvp2(primitive, *[rule and _without_result(rule) for rule in jvprules])


def _without_result(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda t, _, *primals, **params: rule(t, *primals, **params)


def defjvp2(primitive: Primitive, *jvprules: Callable[..., Any] | None) -> None:
    """As `defjvp`, for functions `(tangent, result, *operands, **params)`.

    Args:
      primitive: the primitive.
      *jvprules: a function or None for each operand.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> exp2_p = jax.extend.core.Primitive("my_exp")
    >>> _ = exp2_p.def_impl(jnp.exp)
    >>> jax.interpreters.ad.defjvp2(exp2_p, lambda t, ans, x: ans * t)
    >>> print(jax.jvp(exp2_p.bind, (0.0,), (5.0,))[1])
    5.0
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        parts = [
            each(t, out, *primals, **params)
            for each, t in zip(jvprules, tangents, strict=True)
            if each is not None and type(t) is not Zero
        ]
        return out, _tangent_sum(parts, out)

    primitive_jvps[primitive] = rule


def deflinear(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """Says that a primitive is linear in its operands, and sets its transpose.

    Args:
      primitive: the primitive.
      transpose_rule: function `(cotangent, **params)` that gives a list with the cotangent of each operand.

    >>> import ferrax as jax
    >>> triple_p = jax.extend.core.Primitive("triple")
    >>> _ = triple_p.def_impl(lambda x: 3 * x)
    >>> _ = triple_p.def_abstract_eval(lambda x: x)
    >>> jax.interpreters.ad.deflinear(triple_p, lambda ct: [triple_p.bind(ct)])
    >>> print(jax.grad(triple_p.bind)(1.0))
    3.0
    """
    deflinear2(primitive, lambda ct, *_, **params: transpose_rule(ct, **params))


def deflinear2(primitive: Primitive, transpose_rule: Callable[..., Any]) -> None:
    """As `deflinear`, for a function `(cotangent, *operands, **params)`.

    Args:
      primitive: the primitive.
      transpose_rule: the function; the operands are `UndefinedPrimal`.

    >>> import ferrax as jax
    >>> pick_p = jax.extend.core.Primitive("pick")
    >>> _ = pick_p.def_impl(lambda x: x[0])
    >>> _ = pick_p.def_abstract_eval(lambda x: jax.core.ShapedArray((), x.dtype))
    >>> jax.interpreters.ad.deflinear2(pick_p, lambda ct, x: [jax.numpy.zeros(x.aval.shape).at[0].set(ct)])
    >>> print(jax.grad(pick_p.bind)(jax.numpy.ones(2)))
    [1. 0.]
    """

    def rule(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            zeros = [Zero.from_primal_value(o) for o in out] if primitive.multiple_results else None
            return out, zeros or Zero.from_primal_value(out)
        return out, primitive.bind(*map(instantiate_zeros, tangents), **params)

    primitive_jvps[primitive] = rule

    def transpose(cts: Any, *args: Any, **params: Any) -> Any:
        listed = cts if primitive.multiple_results else [cts]
        if all(type(ct) is Zero for ct in listed):
            return [Zero(x.aval.to_tangent_aval()) if is_undefined_primal(x) else None for x in args]
        return transpose_rule(cts, *args, **params)

    primitive_transposes[primitive] = transpose


def defbilinear(prim: Primitive, lhs_rule: Callable[..., Any], rhs_rule: Callable[..., Any]) -> None:
    """Says that a primitive is linear in each of its two operands, and sets its transposes.

    Args:
      prim: the primitive.
      lhs_rule: function `(cotangent, x, y, **params)`, `x` undefined, that gives the cotangent of `x`.
      rhs_rule: function `(cotangent, x, y, **params)`, `y` undefined, that gives the cotangent of `y`.

    >>> import ferrax as jax
    >>> times_p = jax.extend.core.Primitive("times")
    >>> _ = times_p.def_impl(lambda x, y: x * y)
    >>> _ = times_p.def_abstract_eval(lambda x, y: x)
    >>> jax.interpreters.ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
    >>> print(jax.grad(times_p.bind)(2.0, 5.0))
    5.0
    """
    defjvp(
        prim,
        lambda t, x, y, **params: prim.bind(t, y, **params),
        lambda t, x, y, **params: prim.bind(x, t, **params),
    )

    def transpose(ct: Any, x: Any, y: Any, **params: Any) -> tuple[Any, Any]:
        if type(ct) is Zero:
            return None, None
        if is_undefined_primal(x):
            return lhs_rule(ct, x, y, **params), None
        return None, rhs_rule(ct, x, y, **params)

    primitive_transposes[prim] = transpose


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive.

    Args:
      p: a primitive that a user defined.

    Returns:
      The rule.

    Raises:
      NotImplementedError: it has none.

    >>> import ferrax as jax
    >>> try:
    ...     jax.interpreters.ad.get_primitive_transpose(jax.extend.core.Primitive("new"))
    ... except NotImplementedError as error:
    ...     print(error)
    Transpose rule (for reverse-mode differentiation) for 'new' not implemented
    """
    try:
        return primitive_transposes[p]
    except KeyError:
        raise missing_rule("Transpose rule (for reverse-mode differentiation)", p.name) from None


def jvp(
    fun: Any,
    primals: Sequence[Any] | None = None,
    tangents: Sequence[Any] | None = None,
    has_aux: bool = False,
    instantiate: bool = True,
    transform_stack: bool = True,
) -> Any:
    """The forward derivative of a function that was wrapped by `ferrax.extend.linear_util.wrap_init`.

    Args:
      fun: the wrapped function, of flat arrays.
      primals: None to get a wrapped function of `(primals, tangents)`, as JAX has it; else arrays.
      tangents: an array for each of the primals.
      has_aux: whether the function returns `(results, aux)`.
      instantiate: accepted for compatibility: zero tangents are arrays.
      transform_stack: accepted for compatibility.

    Returns:
      `(results, tangents)`, with `aux` at the end when there is one.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> wrapped = lu.wrap_init(lambda x: [2 * x], debug_info=jax.api_util.debug_info("doc", None, (1.0,), {}))
    >>> [[out], [tangent]] = jax.interpreters.ad.jvp(wrapped).call_wrapped((1.0,), (1.0,))
    >>> print(out, tangent)
    2.0 2.0
    """
    from ferrax.extend.linear_util import wrap_init

    def call(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        dots = [instantiate_zeros(t) for t in tangents]
        return _jvp(fun.call_wrapped, tuple(primals), tuple(dots), has_aux=has_aux)

    if primals is None or tangents is None:
        return wrap_init(call, debug_info=fun.debug_info)
    return call(primals, tangents)


def linearize(traceable: Any, *primals: Any, **kwargs: Any) -> Any:
    """The value of a wrapped function, and its derivative there as a linear function.

    Args:
      traceable: a function wrapped by `ferrax.extend.linear_util.wrap_init`, of flat arrays.
      *primals: arrays.
      **kwargs: `has_aux`, as for `ferrax.linearize`.

    Returns:
      `(results, linear function)`, with `aux` at the end when there is one.

    >>> import ferrax as jax
    >>> from ferrax.extend import linear_util as lu
    >>> wrapped = lu.wrap_init(lambda x: [2 * x], debug_info=jax.api_util.debug_info("doc", None, (1.0,), {}))
    >>> outs, linear = jax.interpreters.ad.linearize(wrapped, 1.0)
    >>> print(linear(3.0)[0])
    6.0
    """
    return _linearize(traceable.call_wrapped, *primals, **kwargs)


_expose(globals())
