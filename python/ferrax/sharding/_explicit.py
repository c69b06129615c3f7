"""Shardings over explicit axes of a mesh: how each operation's results are divided, and where it has to be told.

Types have shardings over such axes, so that a result whose sharding is not plain from those of its operands is an error
that asks for `out_sharding`. An operand that nothing divides joins one that is divided.

Source: JAX's rules for sharding in types. Read next: `_propagation.py`, which goes through programs and has the rules
for axes of other kinds, and those for operations that need not tell.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ferrax.sharding._due import note_product
from ferrax.sharding._entries import (
    LEADING,
    ShardingTypeError,
    Spec,
    contracted,
    dividing,
    fitting,
    free,
    leading,
    like_operands,
    whole,
)

__all__ = ["RULES", "ShardingTypeError", "elementwise"]


def elementwise(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    """What divides the results of an operation without a rule, whose operands of the results' shape are divided alike.

    Args:
      mesh: the mesh.
      eqn: the equation.
      known: what divides each operand, `None` where that is unknown.

    Raises:
      ShardingTypeError: operands are divided in different ways.
    """
    name, result = eqn.primitive.name, eqn.outvars[0].aval
    entries = dividing(eqn, known, result.shape)
    if entries is None:
        return None
    same = [
        (v, s) for v, s in zip(eqn.invars, known, strict=True) if s is not None and len(s) == len(result.shape) and s
    ]
    for i in range(len(result.shape)):
        if len({s[i] for v, s in same if s[i]}) > 1:
            given = ", ".join(str(_parts(s)) for _, s in same)
            raise ShardingTypeError(f"{name} got incompatible shardings for broadcasting: {given}.")
    return _distinct(eqn, known, entries)


def _distinct(eqn: Any, known: Sequence[Any], entries: Sequence[tuple[Any, ...]]) -> Spec:
    """The entries; raises where one axis of the mesh would divide two of the result."""
    if free(entries) != tuple(entries):
        name, result = eqn.primitive.name, _typed(eqn.outvars[0].aval, entries)
        raise ShardingTypeError(
            f"{name} operation with inputs: {_all(eqn, known)} produces an illegally sharded result: {result}"
        )
    return tuple(entries)


def _shown(names: tuple[Any, ...]) -> Any:
    """How a spec writes the axes that divide one: `None`, `'x'` or `('x', 'y')`."""
    return (names[0] if len(names) == 1 else names) if names else None


def _parts(entries: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(_shown(names) for names in entries)


def _all(eqn: Any, known: Sequence[Any]) -> str:
    return ", ".join(_typed(v.aval, s) for v, s in zip(eqn.invars, known, strict=True))


def _typed(aval: Any, entries: Sequence[tuple[Any, ...]] | None, short: bool = True) -> str:
    """`i32[8@x,4]`, or `int32[8@x,4]`."""
    start, _, _ = aval.str_short(short).partition("[")
    names = entries or ((),) * len(aval.shape)
    joined = [by[0] if len(by) == 1 else f"({','.join(by)})" for by in names]
    sizes = (f"{n}@{text}" if by else str(n) for n, by, text in zip(aval.shape, names, joined, strict=True))
    return f"{start}[{','.join(sizes)}]"


def _shardings(mesh: Any, known: Sequence[Any]) -> str:
    from ferrax.sharding._named import NamedSharding
    from ferrax.sharding._spec import PartitionSpec

    return ", ".join(str(NamedSharding(mesh.abstract_mesh, PartitionSpec(*_parts(s)))) for s in known)


def _numbers(eqn: Any) -> Any:
    """Which axes are what; some programs have the text alone."""
    text = ast.parse(str(eqn.params["dimension_numbers"]), mode="eval").body
    assert isinstance(text, ast.Call)
    return SimpleNamespace(**{str(k.arg): ast.literal_eval(k.value) for k in text.keywords})


def _dot(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    (contract_x, contract_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    x, y = whole(eqn, known)
    for what, xs, ys in (("batch", batch_x, batch_y), ("contracting", contract_x, contract_y)):
        of_x, of_y = _parts([x[i] for i in xs]), _parts([y[i] for i in ys])
        if any(a and b and a != b for a, b in zip(of_x, of_y, strict=True)):
            which = "lhs batch dimensions and rhs batch" if what == "batch" else "contracting"
            article = "the " if what == "batch" else ""
            raise ShardingTypeError(
                f"dot_general requires {which} dimensions to have {article}consistent sharding, got {of_x} and {of_y}."
            )
    note_product(_parts([x[i] for i in contract_x]), _parts([y[i] for i in contract_y]))
    if any(x[i] and y[j] for i, j in zip(contract_x, contract_y, strict=True)):
        raise ShardingTypeError(
            "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please specify "
            "the output sharding via the `out_sharding` parameter. Got "
            f"lhs_contracting_spec={_parts([x[i] for i in contract_x])} and "
            f"rhs_contracting_spec={_parts([y[i] for i in contract_y])}"
        )
    return _distinct(eqn, known, contracted(eqn, known))


def _resized(what: str) -> Any:
    """A rule for operations that change sizes: axes keep what divides them where that divides the new size."""

    def rule(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
        if known[0] is None or len(eqn.outvars[0].aval.shape) != len(known[0]):
            return None
        for v in eqn.outvars:
            _check_resized(mesh, what, eqn.invars[0].aval, known[0], v.aval.shape)
        return fitting(known[0], eqn.outvars[0].aval.shape, mesh.shape)

    return rule


def _check_resized(mesh: Any, what: str, aval: Any, entries: Spec, new: Sequence[int]) -> None:
    for names, size, out in zip(entries, aval.shape, new, strict=True):
        parts = math.prod(mesh.shape[n] for n in names)
        if names and size != out and out % parts:
            by = names[0] if len(names) == 1 else names
            raise ShardingTypeError(
                f"{what} on sharded dims where out dim ({out}) is not divisible by mesh axes ({parts}) with spec "
                f"({by}) is not implemented. Got input type={_typed(aval, entries)} and output shape={tuple(new)}; "
                "reshard it, or index with `.at[...].get(out_sharding=)`"
            )


def _along_undivided(text: str) -> Any:
    """A rule for operations along one axis, which must not be divided; `text` says so, of `axis`."""

    def rule(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
        if known[0] is None:
            return None
        axis = eqn.params["axis"]
        if known[0][axis]:
            raise ShardingTypeError(f"{text} Got input type={_typed(eqn.invars[0].aval, known[0], False)} and {axis=}")
        return known[0]

    return rule


def _sort(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    axis = eqn.params["dimension"]
    divided = [s for s in known if s is not None]
    for s in divided:
        if s[axis]:
            raise ShardingTypeError(
                "Arguments to sort must be unsharded over the sorting dimension. Got arg "
                f"sharding={_shardings(mesh, [s])} and sorting dimension={axis}"
            )
    divided = [s for s in divided if any(s)]
    if any(s != divided[0] for s in divided):
        raise ShardingTypeError(
            f"Arguments to sort must have equal shardings, got: {_shardings(mesh, divided).replace('), N', ') N')}"
        )
    return divided[0] if divided else None


def _select(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    divided = [s for s in known[1:] if s is not None and any(s)]
    if any(s != divided[0] for s in divided):
        cases = _shardings(mesh, whole(eqn, known)[1:])
        raise ShardingTypeError(f"select cases must have the same shardings, got [{cases}].")
    which = known[0]
    if divided and which and any(which) and which != divided[0]:
        raise ShardingTypeError(
            "select `which` must be scalar or have the same sharding as cases, got `which` sharding "
            f"{_shardings(mesh, [which])} but case sharding {_shardings(mesh, divided[:1])}."
        )
    return divided[0] if divided else like_operands(eqn, known, eqn.outvars[0].aval.shape)


def _joined(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    divided = [s for s in known if s is not None and any(s)]
    if any(s != divided[0] for s in divided):
        raise ShardingTypeError(
            f"All operands should have the same sharding. Got shardings {_shardings(mesh, whole(eqn, known))}"
        )
    return divided[0] if divided else None


def _concatenate(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    found = _joined(mesh, eqn, known)
    return None if found is None else fitting(found, eqn.outvars[0].aval.shape, mesh.shape)


def _stack(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    found, at = _joined(mesh, eqn, known), eqn.params["axis"]
    return None if found is None else (*found[:at], (), *found[at:])


def _unstack(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    at = eqn.params["axis"]
    if known[0] is not None and known[0][at]:
        raise ShardingTypeError(
            f"unstack operand cannot be sharded on the unstacking axis {at}. Got operand "
            f"type={_typed(eqn.invars[0].aval, known[0])}"
        )
    return None if known[0] is None else (*known[0][:at], *known[0][at + 1 :])


def _reshape(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    """Axes that are kept keep what divides them; one may be split, or several merged, where parts stay in order."""
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    entries = known[0]
    if entries is None or not any(entries):
        return ((),) * len(new)
    if [n for n in old if n != 1] == [n for n in new if n != 1]:
        rest = iter([s for n, s in zip(old, entries, strict=True) if n != 1])
        return tuple(() if n == 1 else next(rest) for n in new)
    found = _reshaped(old, new, entries, mesh.shape)
    if found is None or free(found) != found:
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` argument "
            f"of jax.lax.reshape. Got operand type: {_typed(eqn.invars[0].aval, entries, False)}, "
            f"new sizes: {tuple(new)}"
        )
    return found


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[range, range]]:
    """The smallest runs of axes before and behind a reshape that hold the same elements."""
    out, i, j = [], 0, 0
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
        out.append((range(first, i), range(begin, j)))
    return out


def _reshaped(old: Sequence[int], new: Sequence[int], entries: Spec, sizes: Any) -> Spec | None:
    """What divides the axes of a reshaped array; `None` where more than one is split or merged, or parts would move.

    The axes of the mesh that divide a split or merged axis divide the new ones from the first on, as far as they go.
    """
    out: list[tuple[Any, ...]] = [()] * len(new)
    changed = 0
    for before, after in _groups(old, new):
        parts, goals = ([k for k in run if of[k] != 1] for run, of in ((before, old), (after, new)))
        if not parts and not goals:
            continue
        if len(parts) == len(goals) == 1:
            out[goals[0]] = entries[parts[0]]
            continue
        changed += 1
        if len(parts) > 1 and len(goals) > 1:
            return None
        divided = [k for k in parts if entries[k]]
        if divided != parts[: len(divided)]:
            return None
        names = [n for k in divided for n in entries[k]]
        for k in goals:
            left, taken = new[k], []
            while names and left > 1:
                if left % sizes[names[0]]:
                    return None
                left //= sizes[names[0]]
                taken.append(names.pop(0))
            out[k] = tuple(taken)
        if names:
            return None
    return tuple(out) if changed <= 1 else None


def _gather(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    """Axes taken whole keep what divides them; those of indices have what divides them, or the batches beside them."""
    dims, sizes = _numbers(eqn), eqn.params["slice_sizes"]
    operand, indices = whole(eqn, known)[:2]
    shape, out_shape = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if not any(operand) and not any(indices):
        return ((),) * len(out_shape)
    batch = dict(zip(dims.start_indices_batching_dims, dims.operand_batching_dims, strict=True))
    windows = iter([i for i in range(len(shape)) if i not in {*dims.collapsed_slice_dims, *dims.operand_batching_dims}])
    rows = iter([names or (operand[batch[i]] if i in batch else ()) for i, names in enumerate(indices[:-1])])
    out = []
    for i in range(len(out_shape)):
        at = next(windows) if i in dims.offset_dims else None
        out.append(next(rows) if at is None else operand[at] if sizes[at] == shape[at] else ())
    clear = (
        all(sizes[i] == shape[i] or not operand[i] for i in dims.start_index_map)
        and all(not operand[b] or not indices[i] or operand[b] == indices[i] for i, b in batch.items())
        and not indices[-1]
    )
    if not clear:
        raise ShardingTypeError(
            "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out sharding "
            "could not be resolved unambiguously (or would require collectives on inputs). Got "
            f"operand={_typed(eqn.invars[0].aval, operand)}, indices={_typed(eqn.invars[1].aval, indices)}"
        )
    if free(out) != tuple(out):
        from ferrax.sharding._named import NamedSharding
        from ferrax.sharding._spec import PartitionSpec

        NamedSharding(mesh, PartitionSpec(*_parts(out)))  # says which axis divides twice
    return tuple(out)


def _scatter(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    """The operand keeps what divides it: axes that windows take whole, and batches that indices and updates share."""
    dims = _numbers(eqn)
    operand, indices, updates = whole(eqn, known)[:3]
    shape, new = eqn.invars[0].aval.shape, eqn.invars[2].aval.shape
    if not any(operand) and not any(indices) and not any(updates):
        return operand
    rows = [i for i in range(len(new)) if i not in dims.update_window_dims]
    gone = {*dims.inserted_window_dims, *dims.operand_batching_dims}
    windows = list(zip(dims.update_window_dims, [i for i in range(len(shape)) if i not in gone], strict=True))
    batches = [
        (b, i, rows[i]) for b, i in zip(dims.operand_batching_dims, dims.scatter_indices_batching_dims, strict=True)
    ]
    loose = [u for i, u in enumerate(rows) if i not in dims.scatter_indices_batching_dims]
    clear = (
        all(len({s for s in (operand[b], indices[i], updates[u]) if s}) <= 1 for b, i, u in batches)
        and all(
            updates[u] in ((), operand[o]) if new[u] == shape[o] else not updates[u] and not operand[o]
            for u, o in windows
        )
        and not any(operand[i] for i in dims.inserted_window_dims)
        and not any(updates[u] for u in loose)
        and not any(s for i, s in enumerate(indices) if i not in dims.scatter_indices_batching_dims)
    )
    if not clear:
        raise ShardingTypeError(
            "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update as "
            "out sharding could not be resolved unambiguously (or would require collectives on inputs). Got "
            f"operand={_typed(eqn.invars[0].aval, operand)}, indices={_typed(eqn.invars[1].aval, indices)}, "
            f"updates={_typed(eqn.invars[2].aval, updates)}"
        )
    out = list(operand)
    for b, i, u in batches:
        out[b] = operand[b] or indices[i] or updates[u]
    return tuple(out)


def _dynamic_update_slice(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    operand, update = whole(eqn, known)[:2]
    if operand != update:
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
            f"{_typed(eqn.invars[0].aval, operand, False)} and update sharding "
            f"{_typed(eqn.invars[1].aval, update, False)}."
        )
    return operand


def _convolved(mesh: Any, eqn: Any, known: Sequence[Any]) -> Spec | None:
    """The batch keeps what divides it, and space where the new sizes can be divided."""
    dims, (x, kernel) = _numbers(eqn), whole(eqn, known)[:2]
    if any(kernel) or x[dims.lhs_spec[1]]:
        raise ShardingTypeError(
            "Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`"
        )
    _check_resized(mesh, "conv_general_dilated", eqn.invars[0].aval, x, eqn.outvars[0].aval.shape)
    return x


def _factored(ranks: Sequence[int]) -> Any:
    """A rule for operations on matrices in batches, of which only batches may be divided."""

    def rule(mesh: Any, eqn: Any, known: Sequence[Any]) -> Any:
        name, batches = eqn.primitive.name, []
        for i, (rank, s) in enumerate(zip(ranks, whole(eqn, known), strict=False)):
            if any(s[len(s) - rank :]):
                shown = ", ".join(repr(part) for part in _parts(s))
                raise ShardingTypeError(
                    f"Input {i} to {name} must be unsharded on non-batch dimensions, but got P({shown})."
                )
            batches.append(s[: len(s) - rank])
        if any(b != batches[0] for b in batches):
            shown_all = [_parts(b) for b in batches]
            raise ShardingTypeError(f"All inputs to {name} must have the same batch sharding, but got {shown_all}.")
        return [(*batches[0], *((),) * (len(v.aval.shape) - len(batches[0]))) for v in eqn.outvars]

    return rule


#: (mesh, equation, what divides its operands) → what divides each of its results, or a list of that for every result.
RULES: dict[str, Callable[[Any, Any, Sequence[Any]], Any]] = {
    **dict.fromkeys(
        ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"],
        _along_undivided("Input should be unsharded over the axis being reduced."),
    ),
    **dict.fromkeys([f"reduce_window{kind}" for kind in ("_max", "_min", "_sum")], _resized("reduce_window")),
    **dict.fromkeys([f"scatter{kind}" for kind in ("", "_add", "_sub", "_mul", "_min", "_max")], _scatter),
    **dict.fromkeys(["scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"], _scatter),
    **dict.fromkeys(["cholesky", "eigh", "eig", "lu", "qr", "geqrf", "householder_product", "svd"], _factored([2])),
    **dict.fromkeys(LEADING, lambda mesh, eqn, known: leading(eqn, known)),
    "concatenate": _concatenate,
    "conv_general_dilated": _convolved,
    "dot_general": _dot,
    "dynamic_slice": _resized("dynamic_slice"),
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "pad": _resized("padding"),
    "reshape": _reshape,
    "select_n": _select,
    "slice": _resized("slicing"),
    "sort": _sort,
    "split": _resized("split"),
    "stack": _stack,
    "top_k": _along_undivided("The input should be unsharded over the axis along which to compute the top_k values."),
    "unstack": _unstack,
}
