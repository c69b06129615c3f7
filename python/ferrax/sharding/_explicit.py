"""Shardings over explicit axes of a mesh: what results keep of them, and where an operation has to be told.

Types have shardings over such axes, so that a result whose sharding is not plain from those of its operands is an error
that asks for `out_sharding`. Operations that differentiation makes, or a function that was told, need not tell.

Read next: `_propagation.py`, which goes through programs and has the rules for axes of other kinds.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ferrax.sharding._entries import Spec, contracted, dividing, fitting, free, like_operands, longest, whole

__all__ = ["RULES", "ShardingTypeError", "check"]


class ShardingTypeError(Exception):
    """The sharding of a result over explicit axes of a mesh does not follow from those of the operands."""


def check(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    """Raises where an operation does not say how its result is divided.

    Args:
      mesh: the mesh, all of whose axes are explicit.
      eqn: the equation.
      known: what divides each operand, `None` where that is unknown.

    Raises:
      ShardingTypeError: it has to be told.
    """
    name = eqn.primitive.name
    if name in _CHECKS:
        _CHECKS[name](mesh, eqn, known)
    elif name not in RULES and name not in _SILENT:
        _elementwise(eqn, known)


def _elementwise(eqn: Any, known: Sequence[Any]) -> None:
    name, result = eqn.primitive.name, eqn.outvars[0].aval
    entries = dividing(eqn, known, result.shape)
    if entries is None:
        return
    same = [
        (v, s)
        for v, s in zip(eqn.invars, known, strict=True)
        if s is not None and len(s) == len(result.shape) and any(s)
    ]
    for i in range(len(result.shape)):
        if len({s[i] for v, s in same if s[i] and v.aval.shape[i] != 1}) > 1:
            if name == "select_n":
                raise ShardingTypeError(f"select cases must have the same shardings, got {_all(eqn, known)}")
            given = ", ".join(str(tuple(_shown(names) for names in s)) for _, s in same)
            raise ShardingTypeError(f"{name} got incompatible shardings for broadcasting: {given}.")
    _distinct(eqn, known, entries)


def _distinct(eqn: Any, known: Sequence[Any], entries: Sequence[tuple[Any, ...]]) -> None:
    """Raises where one axis of the mesh would divide two of the result."""
    if free(entries) != tuple(entries):
        name, result = eqn.primitive.name, _typed(eqn.outvars[0].aval, entries)
        raise ShardingTypeError(
            f"{name} operation with inputs: {_all(eqn, known)} produces an illegally sharded result: {result}"
        )


def _shown(names: tuple[Any, ...]) -> Any:
    """How a spec writes the axes that divide one: `None`, `'x'` or `('x', 'y')`."""
    return (names[0] if len(names) == 1 else names) if names else None


def _all(eqn: Any, known: Sequence[Any]) -> str:
    return ", ".join(_typed(v.aval, s) for v, s in zip(eqn.invars, known, strict=True))


def _typed(aval: Any, entries: Sequence[tuple[Any, ...]] | None) -> str:
    """`i32[8@x,4]`."""
    start, _, _ = aval.str_short(True).partition("[")
    names = entries or ((),) * len(aval.shape)
    sizes = (f"{n}@{by[0] if len(by) == 1 else by}" if by else str(n) for n, by in zip(aval.shape, names, strict=True))
    return f"{start}[{','.join(sizes)}]"


def _numbers(eqn: Any) -> Any:
    """Which axes are what; some programs have the text alone."""
    text = ast.parse(str(eqn.params["dimension_numbers"]), mode="eval").body
    assert isinstance(text, ast.Call)
    return SimpleNamespace(**{str(k.arg): ast.literal_eval(k.value) for k in text.keywords})


def _check_dot(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    (contract_x, contract_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    x, y = whole(eqn, known)
    for what, xs, ys in (("batch", batch_x, batch_y), ("contracting", contract_x, contract_y)):
        of_x, of_y = (tuple(_shown(s[i]) for i in at) for s, at in ((x, xs), (y, ys)))
        if any(a and b and a != b for a, b in zip(of_x, of_y, strict=True)):
            which = "lhs batch dimensions and rhs batch" if what == "batch" else "contracting"
            article = "the " if what == "batch" else ""
            raise ShardingTypeError(
                f"dot_general requires {which} dimensions to have {article}consistent sharding, got {of_x} and {of_y}."
            )
    if any(x[i] and y[j] for i, j in zip(contract_x, contract_y, strict=True)):
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify "
            "the output sharding via the `out_sharding` parameter. Got "
            f"lhs={_typed(eqn.invars[0].aval, x)} and rhs={_typed(eqn.invars[1].aval, y)}"
        )
    _distinct(eqn, known, contracted(eqn, known))


def _check_reshape(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    if known[0] is not None and any(known[0]) and _reshaped(eqn, known[0], mesh.shape) is None:
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument "
            f"of jax.lax.reshape. Got operand type: {_typed(eqn.invars[0].aval, known[0])}, "
            f"new sizes: {tuple(eqn.outvars[0].aval.shape)}"
        )


def _check_resized(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    new, name = eqn.outvars[0].aval.shape, eqn.primitive.name
    if known[0] is None or len(new) != len(known[0]):
        return
    for names, size, out in zip(known[0], eqn.invars[0].aval.shape, new, strict=True):
        parts = math.prod(mesh.shape[n] for n in names)
        if names and size != out and out % parts:
            what = {"slice": "slicing", "pad": "padding"}.get(name, name)
            raise ShardingTypeError(
                f"{what} on sharded dims where out dim ({out}) is not divisible by mesh axes ({parts}) with spec "
                f"({', '.join(names)}) is not implemented. Got input type={_typed(eqn.invars[0].aval, known[0])}; "
                "reshard it, or index with `.at[...].get(out_sharding=)`"
            )


def _check_gather(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    dims, sizes = _numbers(eqn), eqn.params["slice_sizes"]
    operand = whole(eqn, known)[0]
    taken = [i for i, n in enumerate(eqn.invars[0].aval.shape) if sizes[i] != n and i not in dims.operand_batching_dims]
    result = _gathered(eqn, known, dims)
    if any(operand[i] for i in taken) or free(result) != result:
        raise ShardingTypeError(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding "
            f"could not be resolved unambiguously. Got operand={_typed(eqn.invars[0].aval, operand)} and "
            f"indices={_typed(eqn.invars[1].aval, known[1])}"
        )


def _check_joined(mesh: Any, eqn: Any, known: Sequence[Any]) -> None:
    divided = [s for s in known if s is not None and any(s)]
    differ = any(len({names for names in entries if names}) > 1 for entries in zip(*divided, strict=True))
    joined = longest(divided)
    if differ or free(joined) != tuple(joined):
        raise ShardingTypeError(f"All operands should have the same sharding. Got {_all(eqn, known)}")


def _reshape(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    return _reshaped(eqn, known[0], sizes) or ((),) * len(eqn.outvars[0].aval.shape)


def _reshaped(eqn: Any, entries: Spec, sizes: Any) -> Spec | None:
    """What divides the axes of a reshaped array; `None` where axes that are divided cannot be followed.

    Axes that are kept keep what divides them, the first part of a split one takes it, and a merged one has what divides
    its parts, of which those that are divided come first.
    """
    old, new = list(eqn.invars[0].aval.shape), list(eqn.outvars[0].aval.shape)
    out: list[tuple[Any, ...]] = [()] * len(new)
    i = j = 0
    while i < len(old) or j < len(new):
        first, begin = i, j
        a = b = 1
        while True:
            if a <= b and i < len(old) and (a < b or i == first):
                a, i = a * old[i], i + 1
            elif j < len(new) and (b < a or j == begin):
                b, j = b * new[j], j + 1
            else:
                break
        parts = [k for k in range(first, i) if old[k] != 1]
        goals = [k for k in range(begin, j) if new[k] != 1]
        divided = [k for k in parts if entries[k]]
        if not divided:
            continue
        names = tuple(n for k in divided for n in entries[k])
        count = math.prod(sizes[n] for n in names)
        if (
            not goals
            or divided != parts[: len(divided)]
            or (len(parts) > 1 and len(goals) > 1)
            or new[goals[0]] % count
        ):
            return None
        out[goals[0]] = names
    return tuple(out)


def _resized(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    """Axes keep what divides them where that divides their new size."""
    new = eqn.outvars[0].aval.shape
    if known[0] is None or len(known[0]) != len(new):
        return None
    return fitting(known[0], new, sizes)


def _gather(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    return free(_gathered(eqn, known, _numbers(eqn)))


def _gathered(eqn: Any, known: Sequence[Any], dims: Any) -> Spec:
    """Axes taken whole keep what divides them; those of indices have what divides them, or the batches beside them."""
    taken = eqn.params["slice_sizes"]
    operand, indices = whole(eqn, known)[:2]
    shape = eqn.invars[0].aval.shape
    gone = {*dims.collapsed_slice_dims, *dims.operand_batching_dims}
    windows = iter([i for i in range(len(shape)) if i not in gone])
    batch = dict(zip(dims.start_indices_batching_dims, dims.operand_batching_dims, strict=True))
    rows = iter([names or (operand[batch[i]] if i in batch else ()) for i, names in enumerate(indices[:-1])])
    out: list[tuple[Any, ...]] = []
    for i in range(len(eqn.outvars[0].aval.shape)):
        if i in dims.offset_dims:
            at = next(windows)
            out.append(operand[at] if taken[at] == shape[at] else ())
        else:
            out.append(next(rows))
    return tuple(out)


def _joined(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    return free(fitting(longest(known), eqn.outvars[0].aval.shape, sizes))


def _convolved(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    """The batch keeps what divides it, and features what divides those of the kernel."""
    dims, (x, kernel) = _numbers(eqn), whole(eqn, known)[:2]
    out: list[tuple[Any, ...]] = [()] * len(x)
    if eqn.params["batch_group_count"] == 1:
        out[dims.out_spec[0]] = x[dims.lhs_spec[0]]
    out[dims.out_spec[1]] = kernel[dims.rhs_spec[0]]
    return free(out)


def _updated(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    return known[0]


def _windowed(eqn: Any, known: Sequence[Any], sizes: Any) -> Spec | None:
    return like_operands(eqn, known, eqn.outvars[0].aval.shape) or _resized(eqn, known, sizes)


#: (equation, what divides its operands, sizes of the mesh's axes) → what divides its results.
RULES: dict[str, Callable[[Any, Sequence[Any], Any], Spec | None]] = {
    **dict.fromkeys(["slice", "dynamic_slice", "pad", "top_k"], _resized),
    **dict.fromkeys([f"reduce_window{kind}" for kind in ("", "_max", "_min", "_sum")], _windowed),
    **dict.fromkeys(
        ["dynamic_update_slice", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"], _updated
    ),
    "concatenate": _joined,
    "conv_general_dilated": _convolved,
    "gather": _gather,
    "reshape": _reshape,
}
_CHECKS: dict[str, Callable[[Any, Any, Sequence[Any]], None]] = {
    **dict.fromkeys(["slice", "dynamic_slice", "pad"], _check_resized),
    **dict.fromkeys(["concatenate", "stack"], _check_joined),
    "dot_general": _check_dot,
    "gather": _check_gather,
    "reshape": _check_reshape,
}
#: Operations that are not elementwise, and need not be told.
_SILENT = frozenset(
    ["broadcast_in_dim", "transpose", "squeeze", "expand_dims", "argmax", "argmin", "name", "sharding_constraint"]
    + [f"reduce_{kind}" for kind in ("sum", "prod", "max", "min", "and", "or", "xor", "precision")]
    + ["cholesky", "triangular_solve", "lu", "qr", "svd", "eigh", "eig", "fft", "random_bits", "threefry2x32"]
)
