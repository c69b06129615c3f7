"""The primitive of `linear_call`: a linear function with the transpose that its author gives.

An equation holds the function, and another function that traces its transpose when it is first asked for: a transpose
may be defined by a `linear_call` of its own, whose transpose is the first function. Operands are what the function
closes over, its residuals, and what it is linear in; transposing makes an equation with the two functions exchanged.
Read next: `_primitives.py`, which hands the rules below to the core.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferrax import _ferrax, tree_util
from ferrax._api import closure_convert, eval_shape
from ferrax._primitives import (
    AxisData,
    Lowering,
    Primitive,
    UndefinedPrimal,
    Zero,
    fancy_primitive_batchers,
    primitive_jvps,
    primitive_lowerings,
    primitive_transposes,
    zeros_of,
)
from ferrax._shape_dtype import ShapeDtypeStruct

linear_call_p = Primitive("linear_call")
linear_call_p.multiple_results = True


class _Linear(NamedTuple):
    """A function of lists, `run(constants and residuals, operands) -> results`, with what it closes over."""

    run: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    consts: Sequence[Any]
    outs: Sequence[Any]  # types of the results
    out_tree: Any

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def linear_call(fun: Callable[..., Any], fun_transpose: Callable[..., Any], residuals: Any, operands: Any) -> Any:
    """See `ferrax.custom_derivatives.linear_call`."""
    kept, linear = _structs(residuals), _structs(operands)
    callee = _converted(fun, kept, linear)
    results = callee.out_tree.unflatten(callee.outs)

    @functools.cache
    def transposed() -> _Linear:
        found = _converted(fun_transpose, kept, results)
        wanted = tree_util.tree_structure(operands)
        if found.out_tree != wanted:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, got output structure "
                f"{found.out_tree} and input structure {wanted}."
            )
        return found

    values = [*callee.consts, *tree_util.tree_leaves(residuals), *tree_util.tree_leaves(operands)]
    outs = linear_call_p.bind(
        *values, callee=callee, transposed=transposed, fixed=len(values) - len(tree_util.tree_leaves(operands))
    )
    return callee.out_tree.unflatten(outs)


def _structs(tree: Any) -> Any:
    def struct(x: Any) -> ShapeDtypeStruct:
        aval = _ferrax.typeof(x)
        return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)

    return tree_util.tree_map(struct, tree)


def _converted(fun: Callable[..., Any], residuals: Any, operands: Any) -> _Linear:
    """A function of trees as one of lists."""
    converted, consts = closure_convert(fun, residuals, operands)
    out = eval_shape(converted, residuals, operands, *consts)
    res_tree, lin_tree = tree_util.tree_structure(residuals), tree_util.tree_structure(operands)

    def run(fixed: Sequence[Any], linear: Sequence[Any]) -> list[Any]:
        own, kept = fixed[: len(consts)], fixed[len(consts) :]
        return tree_util.tree_leaves(converted(res_tree.unflatten(kept), lin_tree.unflatten(linear), *own))

    return _Linear(run, consts, tree_util.tree_leaves(out), tree_util.tree_structure(out))


def _impl(*args: Any, callee: _Linear, transposed: Any, fixed: int) -> list[Any]:
    return callee.run(args[:fixed], args[fixed:])


def _derivative(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    fixed = params["fixed"]
    if any(type(t) is not Zero for t in tangents[:fixed]):
        raise NotImplementedError(
            "linear_call has no derivative with respect to its residual_args, nor to what its function closes over; "
            "stop_gradient makes constants of them"
        )
    outs = linear_call_p.bind(*primals, **params)
    if all(type(t) is Zero for t in tangents[fixed:]):
        return outs, [Zero.from_primal_value(x) for x in outs]
    dots = [t.instantiate() if type(t) is Zero else t for t in tangents[fixed:]]
    return outs, linear_call_p.bind(*primals[:fixed], *dots, **params)


def _transpose(cts: Sequence[Any], *args: Any, callee: _Linear, transposed: Any, fixed: int) -> list[Any]:
    if any(type(a) is UndefinedPrimal for a in args[:fixed]):
        raise ValueError("linear_call is not linear in its residual_args")
    back = transposed()
    cts = [zeros_of(a) if type(ct) is Zero else ct for ct, a in zip(cts, callee.outs, strict=True)]
    residuals = args[len(callee.consts) : fixed]
    given = linear_call_p.bind(
        *back.consts,
        *residuals,
        *cts,
        callee=back,
        transposed=lambda: callee._replace(consts=args[: len(callee.consts)]),
        fixed=len(back.consts) + len(residuals),
    )
    return [None] * fixed + given


def _mapped(
    data: AxisData, args: Sequence[Any], dims: Sequence[Any], *, callee: _Linear, transposed: Any, fixed: int
) -> tuple[list[Any], list[int]]:
    """Every operand that the function is linear in gets the axis: the transpose of repeating it is a sum."""
    from ferrax.numpy import broadcast_to, moveaxis

    linear = [
        broadcast_to(x, (data.size, *x.shape)) if d is None else moveaxis(x, d, 0)
        for x, d in zip(args[fixed:], dims[fixed:], strict=True)
    ]
    own, kept = list(dims[: len(callee.consts)]), list(dims[len(callee.consts) : fixed])

    def back() -> _Linear:
        found = transposed()
        return _batched(found, data, [None] * len(found.consts) + kept)

    outs = linear_call_p.bind(
        *args[:fixed], *linear, callee=_batched(callee, data, own + kept), transposed=functools.cache(back), fixed=fixed
    )
    return outs, [0] * len(outs)


def _batched(of: _Linear, data: AxisData, dims: list[Any]) -> _Linear:
    from ferrax import vmap

    run = vmap(of.run, in_axes=(dims, 0), axis_size=data.size, axis_name=data.name)
    outs = [ShapeDtypeStruct((data.size, *a.shape), a.dtype, weak_type=a.weak_type) for a in of.outs]
    return _Linear(lambda fixed, linear: run(list(fixed), list(linear)), of.consts, outs, of.out_tree)


linear_call_p.def_impl(_impl)
linear_call_p.def_abstract_eval(lambda *args, callee, **_: [_ferrax.typeof(s) for s in callee.outs])
primitive_jvps[linear_call_p] = _derivative
primitive_transposes[linear_call_p] = _transpose
fancy_primitive_batchers[linear_call_p] = _mapped
primitive_lowerings.setdefault(linear_call_p, {})[None] = Lowering(_impl, True)
