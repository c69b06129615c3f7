"""Why dimension numbers of gather and the scatters do not fit their arrays.

The core refuses them; here its refusal is put in terms of the names that the caller wrote. Looked at only after the
core has refused: each function gives the first thing that is wrong, or None where it finds nothing. Read next:
`gather_scatter.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Shape = tuple[int, ...]


def _order(op: str, name: str, dims: Sequence[int]) -> Iterator[str]:
    if list(dims) != sorted(dims):
        yield f"{name} in {op} op must be sorted; got {dims}"
    yield from _distinct(op, name, dims)


def _distinct(op: str, name: str, dims: Sequence[int]) -> Iterator[str]:
    if len(set(dims)) != len(dims):
        yield f"{name} in {op} op must not repeat; got: {dims}."


def _range(op: str, name: str, dims: Sequence[int], rank: int) -> Iterator[str]:
    for dim in dims:
        if not 0 <= dim < rank:
            yield f"Invalid {name} set in {op} op; valid range is [0, {rank}); got: {dim}."


def _disjoint(op: str, left: str, right: str, numbers: Any) -> Iterator[str]:
    a, b = getattr(numbers, left), getattr(numbers, right)
    if set(a) & set(b):
        yield f"{left} and {right} in {op} op must be disjoint; got: {a} and {b}."


def _batching(op: str, numbers: Any, names: tuple[str, str, str, str], operand: Shape, indices: Shape) -> Iterator[str]:
    """What is wrong with the axes of operand and indices that run together; names of the fields that say it."""
    collapsed, index_map, over_operand, over_indices = names
    Op = op.capitalize()
    of_operand, of_indices = getattr(numbers, over_operand), getattr(numbers, over_indices)
    yield from _disjoint(op, collapsed, over_operand, numbers)
    yield from _disjoint(op, index_map, over_operand, numbers)
    yield from _distinct(op, over_indices, of_indices)
    yield from _range(op, over_indices, of_indices, len(indices))
    if len(indices) - 1 in of_indices:
        yield f"{Op} op cannot have the index vector dimension as a batching dimension; got {of_indices}."
    if len(of_operand) != len(of_indices):
        yield (
            f"{Op} op requires equal numbers of {over_operand} and {over_indices}, got {of_operand} and {of_indices}."
        )
    sizes = tuple(operand[d] for d in of_operand), tuple(indices[d] for d in of_indices)
    if sizes[0] != sizes[1]:
        yield (
            f"{Op} op requires operand batching dimensions and indices batching dimensions to have the same shape, "
            f"got {sizes[0]} and {sizes[1]}."
        )


def _index_map(op: str, name: str, dims: Sequence[int], domain: str, operand: Shape, indices: Shape) -> Iterator[str]:
    """What is wrong with the operand axes of the index vector's components."""
    if len(dims) != indices[-1]:
        yield (
            f"{op.capitalize()} op has {len(dims)} elements in {name} and the bound of dimension "
            f"index_vector_dim={len(indices) - 1} of indices is {indices[-1]}. These two numbers must be equal."
        )
    for i, dim in enumerate(dims):
        if not 0 <= dim < len(operand):
            yield f"Invalid {domain}; domain is [0, {len(operand)}), got: {i}->{dim}."
    yield from _distinct(op, name, dims)


def _windows(numbers: Any, operand: Shape, sizes: Sequence[int]) -> Iterator[str]:
    """What is wrong with the slice sizes of a gather."""
    offsets, collapsed, batching = numbers.offset_dims, numbers.collapsed_slice_dims, numbers.operand_batching_dims
    if len(sizes) != len(operand):
        yield (
            f"Gather op must have one slice size for every input dimension; got: len(slice_sizes)={len(sizes)}, "
            f"input_shape.rank={len(operand)}"
        )
    if len(sizes) != len(offsets) + len(collapsed) + len(batching):
        yield (
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got len(slice_sizes)={len(sizes)}, output_slice_sizes={offsets}, "
            f"collapsed_slice_dims={collapsed}, operand_batching_dims={batching}."
        )
    for i, (size, bound) in enumerate(zip(sizes, operand, strict=True)):
        if not 0 <= size <= bound:
            yield f"Slice size at index {i} in gather op is out of range, must be within [0, {bound} + 1), got {size}."
    for i, dim in enumerate(collapsed):
        if sizes[dim] != 1:
            yield (
                f"Gather op can only collapse slice dims with bound 1, but bound is {sizes[dim]} for index {dim} "
                f"at position {i}."
            )
    for i, dim in enumerate(batching):
        if sizes[dim] > 1:
            yield (
                f"Gather op can only have operand batching dims with bound 0/1, but bound is {sizes[dim]} for index "
                f"{dim} at position {i}."
            )


_GATHER = ("collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims")
_SCATTER = (
    *("inserted_window_dims", "scatter_dims_to_operand_dims"),
    *("operand_batching_dims", "scatter_indices_batching_dims"),
)


def _gather(numbers: Any, operand: Shape, indices: Shape, sizes: Sequence[int]) -> Iterator[str]:
    yield from _order("gather", "offset_dims", numbers.offset_dims)
    rank = len(numbers.offset_dims) + len(indices) - 1
    for i, dim in enumerate(numbers.offset_dims):
        if not 0 <= dim < rank:
            yield (
                f"Offset dimension {i} in gather op is out of bounds; got {dim}, but should have been in [0, {rank})"
            )
    yield from _index_map("gather", _GATHER[1], numbers.start_index_map, "start_index_map", operand, indices)
    for name in (_GATHER[0], _GATHER[2]):
        dims = getattr(numbers, name)
        if list(dims) == sorted(dims):
            yield from _range("gather", name, dims, len(operand))
        yield from _distinct("gather", name, dims)
        yield from _order("gather", name, dims)
    yield from _batching("gather", numbers, _GATHER, operand, indices)
    yield from _windows(numbers, operand, sizes)


def _updates(numbers: Any, operand: Shape, indices: Shape, updates: Shape) -> Iterator[str]:
    """What is wrong with the shape of a scatter's updates."""
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    bounds = [size for d, size in enumerate(operand) if d not in left_out]
    for bound, dim in zip(bounds, numbers.update_window_dims, strict=True):
        if updates[dim] > bound:
            yield (
                "Bounds of the window dimensions of updates must not exceed the bounds of the corresponding dimensions "
                f"of operand. For dimension {dim}, updates bound is {updates[dim]}, operand bound is {bound}."
            )
    scattered = [d for d in range(len(updates)) if d not in numbers.update_window_dims]
    for dim, bound in zip(scattered, indices[:-1], strict=True):
        if updates[dim] != bound:
            yield (
                "Bounds of the scatter dimensions of updates must be the same as the bounds of the corresponding "
                f"dimensions of scatter indices. For scatter dimension {dim}, updates bound is {updates[dim]}, "
                f"indices bound is {bound}."
            )


def _scatter(numbers: Any, operand: Shape, indices: Shape, updates: Shape) -> Iterator[str]:
    rank = len(indices) - 1 + len(numbers.update_window_dims)
    if len(updates) != rank:
        yield f"Updates tensor must be of rank {rank}; got {len(updates)}."
    for name, limit in (("update_window_dims", updates), (_SCATTER[0], operand), (_SCATTER[2], operand)):
        dims = getattr(numbers, name)
        yield from _order("scatter", name, dims)
        yield from _range("scatter", name, dims, len(limit))
    yield from _batching("scatter", numbers, _SCATTER, operand, indices)
    window = len(numbers.update_window_dims) + len(numbers.inserted_window_dims) + len(numbers.operand_batching_dims)
    if len(operand) != window:
        yield f"Scatter op has window of size {window}; doesn't match operand of rank {len(operand)}."
    name, dims = _SCATTER[1], numbers.scatter_dims_to_operand_dims
    yield from _index_map("scatter", name, dims, f"{name} mapping", operand, indices)
    yield from _updates(numbers, operand, indices, updates)


def require_numbers(numbers: Any, kind: type) -> None:
    """Raises TypeError for an argument that is no dimension numbers of a kind."""
    missing = [name for name in kind.__annotations__ if not hasattr(numbers, name)]
    if missing:
        raise TypeError(
            f"dimension_numbers must be an instance of {kind.__name__}, got {numbers!r} of type "
            f"{type(numbers).__name__}, which has no {missing[0]}"
        )


def gather_error(numbers: Any, operand: Shape, indices: Shape, sizes: Sequence[int]) -> str | None:
    """What is wrong with the arguments of a gather: dimension numbers, two shapes, and the slice sizes."""
    return next(_gather(numbers, operand, indices, sizes), None) if indices else None


def scatter_error(numbers: Any, operand: Shape, indices: Shape, updates: Shape) -> str | None:
    """What is wrong with the arguments of a scatter: dimension numbers, and three shapes."""
    return next(_scatter(numbers, operand, indices, updates), None) if indices else None
