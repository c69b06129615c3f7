"""What divides the results of each primitive, from what divides its operands, along automatic axes of a mesh.

Read next: `_propagation.py`, which goes through programs; `_explicit.py` for the rules over explicit axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ferrax._ferrax import Literal
from ferrax.sharding._entries import LEADING, Spec, contracted, free, leading, like_operands, longest, whole

__all__ = ["RULES"]

#: (equation, what is known of its operands) → what is known of each of its results, or of all.
Rule = Callable[[Any, Sequence[Any]], "Spec | list[Spec] | None"]

#: Their result axes are their operand axes.
_SAME = frozenset(
    [
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "cumlogsumexp",
        "sort",
        "copy",
        "stop_gradient",
        "reduce_precision",
        "optimization_barrier",
        "name",
        "clamp",
        "select_n",
        "rev",
    ]
)
_REDUCTIONS = frozenset(
    [
        "reduce_sum",
        "reduce_prod",
        "reduce_max",
        "reduce_min",
        "reduce_and",
        "reduce_or",
        "reduce_xor",
        "argmax",
        "argmin",
    ]
)
_SCATTERS = ("scatter", "scatter-add", "scatter-mul", "scatter-min", "scatter-max", "scatter-sub", "scatter_sub")
_MATRICES = ("qr", "lu", "svd", "eigh", "eig", "schur", "hessenberg", "tridiagonal", "householder_product")
_WINDOWS = ("reduce_window_sum", "reduce_window_max", "reduce_window_min", "reduce_window")


def _same(eqn: Any, known: Sequence[Any]) -> Spec | None:
    return like_operands(eqn, known, eqn.outvars[0].aval.shape)


def _transpose(eqn: Any, known: Sequence[Any]) -> Spec | None:
    return tuple(known[0][i] for i in eqn.params["permutation"])


def _reduce(eqn: Any, known: Sequence[Any]) -> Spec | None:
    axes = eqn.params["axes"]
    return tuple(names for i, names in enumerate(known[0]) if i not in axes)


def _broadcast(eqn: Any, known: Sequence[Any]) -> Spec | None:
    shape, operand = eqn.outvars[0].aval.shape, eqn.invars[0].aval.shape
    out: list[tuple[Any, ...]] = [()] * len(shape)
    for i, at in enumerate(eqn.params.get("broadcast_dimensions", ())):
        if operand[i] == shape[at]:
            out[at] = known[0][i]
    return tuple(out)


def _reshape(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """An axis keeps its division while as many elements stand in front of it, and it is whole or begins a merged "
    "one."""
    old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    starts: dict[int, int] = {}
    before = 1
    for i, size in enumerate(old):
        if size != 1:
            starts.setdefault(before, i)
        before *= size
    out: list[tuple[Any, ...]] = []
    before = 1
    for size in new:
        begins = starts.get(before)
        out.append(known[0][begins] if size != 1 and begins is not None else ())
        before *= size
    return free(out)


def _dot(eqn: Any, known: Sequence[Any]) -> Spec | None:
    return free(contracted(eqn, known))


def _dynamic_slice(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """As the operand along axes that are whole, or whose starts are known."""
    old, new, starts = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape, eqn.invars[1:]
    kept = (a == b or isinstance(start, Literal) for a, b, start in zip(old, new, starts, strict=True))
    return tuple(names if keeps else () for names, keeps in zip(whole(eqn, known)[0], kept, strict=True))


def _indexing(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """What is indexed outside of programs keeps what divides whole axes: where others begin JAX does not know."""
    pairs = zip(eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape, strict=True)
    return tuple(names if a == b else () for names, (a, b) in zip(known[0], pairs, strict=True))


def _gather(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """Axes of the operand that are taken whole, between those of the indices."""
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    operand, indices = whole(eqn, known)[:2]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [i for i in range(len(sizes)) if i not in gone]
    taken = [operand[i] if sizes[i] == eqn.invars[0].aval.shape[i] else () for i in kept]
    return free(_woven(numbers.offset_dims, taken, indices))


def _woven(places: Sequence[int], windows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Entries of windows at their places, and the leading ones of indices between them."""
    at, rest = dict(zip(places, windows, strict=True)), iter(others)
    return [at[i] if i in at else next(rest, ()) for i in range(len(windows) + len(others) - 1)]


def _scatter(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """As the operand; where nothing is known of it, as the updates, axes of whose windows are whole."""
    if known[0] is not None:
        return known[0]
    numbers, (operand, _, updates) = eqn.params["dimension_numbers"], eqn.invars[:3]
    found = whole(eqn, known)[2]
    gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    windows = iter(numbers.update_window_dims)
    entries: list[tuple[Any, ...]] = []
    for i, size in enumerate(operand.aval.shape):
        at = None if i in gone else next(windows)
        entries.append(found[at] if at is not None and updates.aval.shape[at] == size else ())
    return free(entries)


def _convolution(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """Batches and places as the first operand, features as the kernels of the second."""
    (lhs, rhs, out), (x, kernel) = eqn.params["dimension_numbers"], whole(eqn, known)
    entries: dict[int, Any] = {out[0]: x[lhs[0]], out[1]: kernel[rhs[0]]}
    entries |= {at: x[i] for at, i in zip(out[2:], lhs[2:], strict=True)}
    return free([entries[i] for i in range(len(out))])


def _of_matrices(eqn: Any, known: Sequence[Any]) -> list[Spec]:
    """Batches of matrices keep what divides them; what is computed of one matrix is not divided."""
    batch = whole(eqn, known)[0][: len(eqn.invars[0].aval.shape) - 2]
    return [(*batch, *((),) * (len(v.aval.shape) - len(batch))) for v in eqn.outvars]


def _unstack(eqn: Any, known: Sequence[Any]) -> Spec | None:
    return tuple(names for i, names in enumerate(known[0]) if i != eqn.params["axis"])


def _operand(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """As the operand, whose axes are longer or shorter: what does not divide a result is left out at the end."""
    return known[0]


def _top_k(eqn: Any, known: Sequence[Any]) -> Spec | None:
    at = eqn.params["axis"] % len(known[0])
    return tuple(() if i == at else names for i, names in enumerate(known[0]))


def _squeeze(eqn: Any, known: Sequence[Any]) -> Spec | None:
    gone = eqn.params["dimensions"]
    return tuple(names for i, names in enumerate(known[0]) if i not in gone)


def _expand(eqn: Any, known: Sequence[Any]) -> Spec | None:
    new = eqn.params["dimensions"]
    rest = iter(known[0])
    return tuple(() if i in new else next(rest) for i in range(len(eqn.outvars[0].aval.shape)))


def _concatenate(eqn: Any, known: Sequence[Any]) -> Spec | None:
    return free(longest(known))


def _stack(eqn: Any, known: Sequence[Any]) -> Spec | None:
    at, entries = eqn.params["axis"], longest(known)
    return free([*entries[:at], (), *entries[at:]])


RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    **dict.fromkeys(LEADING, leading),
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "dot_general": _dot,
    **dict.fromkeys(("slice", "pad", "split"), _operand),
    "dynamic_slice": _dynamic_slice,
    "indexing": _indexing,
    "gather": _gather,
    **dict.fromkeys(_SCATTERS, _scatter),
    "conv_general_dilated": _convolution,
    **dict.fromkeys(_MATRICES, _of_matrices),
    **dict.fromkeys(_WINDOWS, _operand),
    "unstack": _unstack,
    "top_k": _top_k,
    "squeeze": _squeeze,
    "expand_dims": _expand,
    "concatenate": _concatenate,
    "stack": _stack,
}
