"""Which axes of an operation's operands and results go together, for each primitive.

Axes that go together have one label, as in the subscripts of an `einsum`: they are divided by the same mesh axes. An
axis whose label no result has is reduced: its parts give terms of a sum, or of another reduction. An axis without a
label cannot be divided while the operation runs. `reshape` is no matter of labels (`Walk.reshape`).

Read next: `_partition.py`, which divides labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

__all__ = ["Axes", "LINEAR", "axes_of"]

#: For each axis of an array its label, or `None`.
Labels = tuple[Hashable, ...]


@dataclass
class Axes:
    """The axes of one operation.

    Attributes:
      operands: labels of each operand's axes.
      results: labels of each result's axes.
      sums: whether reduced labels give terms of a sum; else every device needs the whole result at once.
      rows: the axis of the first operand of which as many rows are taken as there are, in some order, if there is one.
      known: whether there is a rule for the primitive; without one nothing is divided.
    """

    operands: list[Labels]
    results: list[Labels]
    sums: bool = True
    rows: int | None = None
    known: bool = True


#: Primitives that are linear in the one operand that is no scalar, or in all of them together.
LINEAR = frozenset(
    [
        "neg",
        "convert_element_type",
        "copy",
        "name",
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "broadcast_in_dim",
    ]
    + ["reduce_sum", "mul", "div", "add", "sub", "add_any", "slice", "concatenate", "rev", "stack"]
    + ["optimization_barrier", "stop_gradient"]
)


def _shape(v: Any) -> tuple[int, ...]:
    return tuple(v.aval.shape)


def _whole(eqn: Any, known: bool = False) -> Axes:
    def none(values: Any) -> list[Labels]:
        return [(None,) * len(_shape(v)) for v in values]

    return Axes(none(eqn.invars), none(eqn.outvars), known=known)


def _elementwise(eqn: Any) -> Axes:
    shape = _shape(eqn.outvars[0])
    operands: list[Labels] = []
    for v in eqn.invars:
        own = _shape(v)
        if len(own) == len(shape) and all(a in (1, b) for a, b in zip(own, shape, strict=True)):
            operands.append(tuple(i if a == b else None for i, (a, b) in enumerate(zip(own, shape, strict=True))))
        elif not own:
            operands.append(())
        else:
            return _whole(eqn)
    if any(_shape(v) != shape for v in eqn.outvars):
        return _whole(eqn)
    return Axes(operands, [tuple(range(len(shape)))] * len(eqn.outvars))


def _along(param: str) -> Callable[[Any], Axes]:
    """Elementwise but for one axis, which is needed whole."""

    def rule(eqn: Any) -> Axes:
        rank = len(_shape(eqn.invars[0]))
        axis = eqn.params[param] % rank
        labels = tuple(None if i == axis else i for i in range(rank))
        return Axes([labels] * len(eqn.invars), [labels] * len(eqn.outvars))

    return rule


def _reduce(eqn: Any) -> Axes:
    axes = eqn.params["axes"]
    rank = len(_shape(eqn.invars[0]))
    left = tuple(i for i in range(rank) if i not in axes)
    return Axes([tuple(range(rank))], [left], sums=eqn.primitive.name == "reduce_sum")


def _transpose(eqn: Any) -> Axes:
    permutation = eqn.params["permutation"]
    return Axes([tuple(range(len(permutation)))], [tuple(permutation)])


def _broadcast(eqn: Any) -> Axes:
    shape, own = _shape(eqn.outvars[0]), _shape(eqn.invars[0])
    dims = eqn.params.get("broadcast_dimensions", ())
    labels = tuple(at if n == shape[at] else None for n, at in zip(own, dims, strict=True))
    result = tuple(i if i in labels else None for i in range(len(shape)))
    return Axes([labels, *((),) * (len(eqn.invars) - 1)], [result])


def _squeeze(eqn: Any) -> Axes:
    rank = len(_shape(eqn.invars[0]))
    gone = {d % rank for d in eqn.params["dimensions"]}
    return Axes([tuple(range(rank))], [tuple(i for i in range(rank) if i not in gone)])


def _expand(eqn: Any) -> Axes:
    rank = len(_shape(eqn.outvars[0]))
    new = {d % rank for d in eqn.params["dimensions"]}
    labels = iter(range(rank))
    result = tuple(None if i in new else next(labels) for i in range(rank))
    return Axes([tuple(range(rank - len(new)))], [result])


def _cut(eqn: Any) -> Axes:
    """Slices, padding and the like: axes that keep their size keep their label."""
    old, new = _shape(eqn.invars[0]), _shape(eqn.outvars[0])
    labels = tuple(i if a == b else None for i, (a, b) in enumerate(zip(old, new, strict=True)))
    return Axes([labels, *((),) * (len(eqn.invars) - 1)], [labels])


def _update(eqn: Any) -> Axes:
    old, part = _shape(eqn.invars[0]), _shape(eqn.invars[1])
    labels = tuple(i if a == b else None for i, (a, b) in enumerate(zip(old, part, strict=True)))
    return Axes([labels, labels, *((),) * (len(eqn.invars) - 2)], [labels])


def _concatenate(eqn: Any) -> Axes:
    at = eqn.params["dimension"]
    labels = tuple(None if i == at else i for i in range(len(_shape(eqn.invars[0]))))
    return Axes([labels] * len(eqn.invars), [labels])


def _stack(eqn: Any) -> Axes:
    labels = tuple(range(len(_shape(eqn.invars[0]))))
    at = eqn.params["axis"]
    return Axes([labels] * len(eqn.invars), [(*labels[:at], None, *labels[at:])])


def _top_k(eqn: Any) -> Axes:
    rank = len(_shape(eqn.invars[0]))
    axis = eqn.params.get("axis", -1) % rank
    labels = tuple(None if i == axis else i for i in range(rank))
    return Axes([labels], [labels, labels])


def _dot(eqn: Any) -> Axes:
    (contract_x, contract_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    x: list[Hashable] = [("x", i) for i in range(len(_shape(eqn.invars[0])))]
    y: list[Hashable] = [("y", i) for i in range(len(_shape(eqn.invars[1])))]
    for i, j in (*zip(contract_x, contract_y, strict=True), *zip(batch_x, batch_y, strict=True)):
        y[j] = x[i]
    batch = [x[i] for i in batch_x]
    rows = [label for i, label in enumerate(x) if i not in contract_x and i not in batch_x]
    columns = [label for j, label in enumerate(y) if j not in contract_y and j not in batch_y]
    return Axes([tuple(x), tuple(y)], [(*batch, *rows, *columns)])


def _conv(eqn: Any) -> Axes:
    numbers, groups = eqn.params["dimension_numbers"], eqn.params["feature_group_count"]
    rank = len(_shape(eqn.invars[0]))
    x: list[Hashable] = [None] * rank
    y, out = list(x), list(x)
    if eqn.params["batch_group_count"] == 1:
        x[numbers.lhs_spec[0]] = out[numbers.out_spec[0]] = "batch"
    if groups == 1:
        x[numbers.lhs_spec[1]] = y[numbers.rhs_spec[1]] = "in"
        y[numbers.rhs_spec[0]] = out[numbers.out_spec[1]] = "out"
    return Axes([tuple(x), tuple(y)], [tuple(out)])


def _gather(eqn: Any) -> Axes:
    """Rows are taken by who has them: an indexed axis that is divided gives terms of a sum that are mostly zero."""
    numbers = eqn.params["dimension_numbers"]
    shape, sizes = _shape(eqn.invars[0]), eqn.params["slice_sizes"]
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    operand: list[Hashable] = []
    for i, (n, taken) in enumerate(zip(shape, sizes, strict=True)):
        if i in batching:
            operand.append(("index", batching[i]))
        elif i in numbers.start_index_map:
            operand.append(("row", i) if taken == 1 and i in numbers.collapsed_slice_dims else None)
        else:
            operand.append(("window", i) if n == taken else None)
    indices = (*(("index", k) for k in range(len(_shape(eqn.invars[1])) - 1)), None)
    windows = (operand[i] for i in range(len(shape)) if i not in numbers.collapsed_slice_dims and i not in batching)
    rest = iter(indices[:-1])
    result = tuple(
        next(windows) if i in numbers.offset_dims else next(rest) for i in range(len(_shape(eqn.outvars[0])))
    )
    rows = [i for i, label in enumerate(operand) if label == ("row", i)]
    ordered = len(rows) == 1 and not batching and _shape(eqn.invars[1])[:-1] == (shape[rows[0]],)
    return Axes([tuple(operand), indices], [result], rows=rows[0] if ordered else None)


def _permuted(eqn: Any) -> Axes:
    """Rows in another order; devices that have one each send it."""
    at, rank = eqn.params["axis"], len(_shape(eqn.invars[0]))
    labels = [[("window", i) if i != at else row for i in range(rank)] for row in (("row", at), ("index", 0))]
    return Axes([tuple(labels[0])], [tuple(labels[1])], rows=at)


def _scatter(eqn: Any) -> Axes:
    """Updates that several devices have are added to zeros on each; other scatters need all of them everywhere."""
    numbers = eqn.params["dimension_numbers"]
    shape, updates = _shape(eqn.invars[0]), _shape(eqn.invars[2])
    adds = eqn.primitive.name == "scatter-add"
    batching = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
    windows = [i for i in range(len(shape)) if i not in numbers.inserted_window_dims and i not in batching]
    operand: list[Hashable] = [("row", i) for i in range(len(shape))]
    for i, k in batching.items():
        operand[i] = ("index", k)
    rest = iter(range(len(updates)))
    labels: list[Hashable] = []
    for i in range(len(updates)):
        if i in numbers.update_window_dims:
            axis = windows[numbers.update_window_dims.index(i)]
            labels.append(operand[axis] if updates[i] == shape[axis] else None)
        else:
            k = next(rest)
            labels.append(("index", k) if adds or k in batching.values() else None)
    count = len(_shape(eqn.invars[1])) - 1
    indices = (*(("index", k) if adds or k in batching.values() else None for k in range(count)), None)
    return Axes([tuple(operand), indices, tuple(labels)], [tuple(operand)])


def _last(count: int) -> Callable[[Any], Axes]:
    """The last axes are needed whole: matrices of factorizations."""

    def rule(eqn: Any) -> Axes:
        def labels(v: Any) -> Labels:
            shape = _shape(v)
            free = len(_shape(eqn.invars[0])) - count
            return tuple(i if i < free else None for i in range(len(shape)))

        return Axes([labels(v) for v in eqn.invars], [labels(v) for v in eqn.outvars])

    return rule


def _fft(eqn: Any) -> Axes:
    return _last(len(eqn.params["fft_lengths"]))(eqn)


_RULES: dict[str, Callable[[Any], Axes]] = {
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _along("axis")),
    **{f"reduce_{op}": _reduce for op in ("sum", "prod", "max", "min", "and", "or", "xor")},
    **dict.fromkeys(("argmax", "argmin"), _reduce),
    **dict.fromkeys(("slice", "dynamic_slice", "pad"), _cut),
    **dict.fromkeys(("cholesky", "lu", "qr", "eigh", "svd", "triangular_solve", "householder_product"), _last(2)),
    **dict.fromkeys(("scatter", "scatter-add", "scatter_mul", "scatter_min", "scatter_max"), _scatter),
    "sort": _along("dimension"),
    "transpose": _transpose,
    "broadcast_in_dim": _broadcast,
    "squeeze": _squeeze,
    "expand_dims": _expand,
    "dynamic_update_slice": _update,
    "concatenate": _concatenate,
    "stack": _stack,
    "top_k": _top_k,
    "dot_general": _dot,
    "conv_general_dilated": _conv,
    "gather": _gather,
    "permute_rows": _permuted,
    "fft": _fft,
}


def axes_of(eqn: Any) -> Axes:
    """The labels of an equation's axes.

    Args:
      eqn: an equation that is no call, loop or branch.
    """
    single = all(math.prod(_shape(v)) == 1 for v in eqn.invars)
    if single and eqn.primitive.name not in _RULES:
        return _whole(eqn, known=True)
    return _RULES.get(eqn.primitive.name, _elementwise)(eqn)
