"""Products of operands whose axis is cut into groups of unequal lengths, and of operands that carry scales.

A ragged product is one dense product: the ragged operand is laid out once for each group, with zeros where other
groups are. Read next: `contraction.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ferrax import dtypes
from ferrax._core import asarray
from ferrax._ferrax import Array
from ferrax.lax._index_errors import require_numbers
from ferrax.lax.contraction import DotDimensionNumbers, PrecisionLike, dot_general
from ferrax.lax.conversion import convert_element_type, select
from ferrax.lax.elementwise import bitwise_and, ge, lt, mul, sub
from ferrax.lax.reductions import cumsum
from ferrax.lax.shape import broadcast_in_dim, broadcasted_iota, full_like, reshape, transpose
from ferrax.typing import ArrayLike, DTypeLike

__all__ = ["RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot"]


@dataclasses.dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """The axes of a ragged product: those of `dot_general`, the ragged one and the one of groups.

    Args:
      dot_dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      lhs_ragged_dimensions: the one axis of ``lhs`` that is cut into groups.
      rhs_group_dimensions: the axis of ``rhs`` with one entry a group, if the ragged axis is a free one; else none.

    Example:
      >>> from ferrax import lax
      >>> lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [0]).lhs_ragged_dimensions
      (0,)
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        pairs = tuple(tuple(tuple(axes) for axes in pair) for pair in self.dot_dimension_numbers)
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        object.__setattr__(self, "lhs_ragged_dimensions", tuple(self.lhs_ragged_dimensions))
        object.__setattr__(self, "rhs_group_dimensions", tuple(self.rhs_group_dimensions))


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Array:
    """Product of the rows of a matrix with one matrix a group of rows.

    Args:
      lhs: array of shape (m, k): the rows of all groups, one group after another.
      rhs: array of shape (g, k, n): a matrix for each group.
      group_sizes: integers of shape (g,): numbers of rows. Rows beyond their sum give zeros.
      precision: a precision, a pair of them, or an algorithm.
      preferred_element_type: dtype to accumulate in and to give.
      group_offset: not supported.
      out_sharding: placement of the result; None.

    Returns:
      Array of shape (m, n).

    Raises:
      TypeError: the shapes do not go together, or the sizes are no integers.
      NotImplementedError: a group offset or a sharding is given.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> lax.ragged_dot(jnp.ones((3, 2)), jnp.arange(4.0).reshape(2, 2, 1), jnp.array([1, 2]))
      Array([[1.],
             [5.],
             [5.]], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _MATRICES, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: None = None,
) -> Array:
    """Contraction of two arrays, one axis of which is cut into groups.

    What the groups do depends on what the ragged axis is in the product. A free axis of ``lhs``: each group meets its
    own entry of ``rhs``. A contracted axis: each group gives a product of its own. A batch axis: groups change
    nothing.

    Args:
      lhs: array with the ragged axis.
      rhs: array; has an axis of g groups where the ragged axis is a free one.
      group_sizes: integers of shape (g,), or of shape (*outer, g) with the sizes of the batch axes and of the axes of
        the ragged one's kind that stand before it.
      ragged_dot_dimension_numbers: which axes are what.
      precision, preferred_element_type, group_offset, out_sharding: as in `ragged_dot`.

    Returns:
      Array whose axes are: the groups if the ragged axis is contracted, batch axes, free axes of ``lhs``, free axes of
      ``rhs`` without that of groups.

    Raises:
      TypeError: axes or their sizes do not go together, or the group sizes are no integers.
      NotImplementedError: a group offset or a sharding is given.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
      >>> lax.ragged_dot_general(jnp.ones(3), jnp.arange(3.0), jnp.array([1, 2]), numbers)
      Array([0., 3.], dtype=float32)
    """
    if group_offset is not None:
        raise NotImplementedError("the group_offset argument of ragged_dot_general is not implemented")
    numbers = ragged_dot_dimension_numbers
    require_numbers(numbers, RaggedDotDimensionNumbers)
    lhs, rhs, sizes = asarray(lhs), asarray(rhs), asarray(group_sizes)
    (l_contract, r_contract), (l_batch, r_batch) = numbers.dot_dimension_numbers
    kind, outer = _kind_of_ragged_axis(lhs, numbers)
    sizes = _checked_sizes(lhs, rhs, sizes, numbers, kind, outer)
    options: dict[str, Any] = dict(
        precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )
    if kind == "batch":
        return dot_general(lhs, rhs, numbers.dot_dimension_numbers, **options)
    ragged = numbers.lhs_ragged_dimensions[0]
    left = _one_layer_a_group(lhs, sizes, ragged, outer)
    after_groups = [tuple(a + 1 for a in axes) for axes in (l_contract, l_batch)]
    if kind == "free":
        contract = ((*after_groups[0], 0), (*r_contract, numbers.rhs_group_dimensions[0]))
        return dot_general(left, rhs, (contract, (after_groups[1], r_batch)), **options)
    partner = r_contract[l_contract.index(ragged)]
    right = _one_layer_a_group(rhs, sizes, partner, (*r_batch, *r_contract[: r_contract.index(partner)]))
    right_axes = [tuple(a + 1 for a in axes) for axes in (r_contract, r_batch)]
    pairs = ((after_groups[0], right_axes[0]), ((0, *after_groups[1]), (0, *right_axes[1])))
    return dot_general(left, right, pairs, **options)


def _kind_of_ragged_axis(lhs: Array, numbers: RaggedDotDimensionNumbers) -> tuple[str, tuple[int, ...]]:
    """Whether the ragged axis is "free", "contracted" or "batch", and the axes that group sizes may differ along."""
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError("ragged_dot_general expects exactly one lhs ragged dimension.")
    ragged = numbers.lhs_ragged_dimensions[0]
    _check_axis(ragged, lhs, "lhs ragged dimension", "lhs")
    contract, batch = numbers.dot_dimension_numbers[0][0], numbers.dot_dimension_numbers[1][0]
    if ragged in batch:
        return "batch", tuple(batch[: batch.index(ragged)])
    if ragged in contract:
        return "contracted", (*batch, *contract[: contract.index(ragged)])
    return "free", (*batch, *(a for a in range(ragged) if a not in contract and a not in batch))


def _check_axis(axis: int, x: Array, what: str, name: str) -> None:
    if not 0 <= axis < x.ndim:
        raise TypeError(
            f"ragged_dot_general requires {what} numbers to be nonnegative and less than the number of axes of the "
            f"{name} value, got {axis} for {name} of rank {x.ndim}."
        )


def _checked_sizes(
    lhs: Array, rhs: Array, sizes: Array, numbers: RaggedDotDimensionNumbers, kind: str, outer: tuple[int, ...]
) -> Array:
    """The group sizes with all their axes; checks them and the axis of groups."""
    if not dtypes.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"ragged_dot_general requires group_sizes of an integer dtype, got {sizes.dtype}.")
    if sizes.ndim == 0:
        raise TypeError("expected rank of group_sizes to be >=1.")
    whole = (*(lhs.shape[a] for a in outer), sizes.shape[-1])
    if sizes.ndim > 1 and sizes.shape != whole:
        raise TypeError(f"expected group_sizes to have shape {whole}, got {sizes.shape}.")
    wanted = 1 if kind == "free" else 0
    if len(numbers.rhs_group_dimensions) != wanted:
        groups = ("zero group dimensions in the rhs", "exactly one rhs group dimension")[wanted]
        raise TypeError(
            f"ragged_dot_general requires {groups} "
            f"when lhs ragged dimension is {'noncontracting' if wanted else 'contracting or batch'}."
        )
    for axis in numbers.rhs_group_dimensions:
        _check_axis(axis, rhs, "rhs group dimension", "rhs")
        (_, contract), (_, batch) = numbers.dot_dimension_numbers
        if axis in contract or axis in batch:
            raise TypeError(
                "ragged_dot_general requires rhs group dimension numbers to be distinct from contracting and batch "
                "dimensions."
            )
        if rhs.shape[axis] != sizes.shape[-1]:
            raise TypeError(f"expected rhs group dimension size to be {sizes.shape[-1]}, got {rhs.shape[axis]}.")
    return broadcast_in_dim(sizes, whole, (len(whole) - 1,)) if sizes.ndim == 1 else sizes


def _one_layer_a_group(x: Array, sizes: Array, ragged: int, outer: tuple[int, ...]) -> Array:
    """`x` once for each group, in a first axis of groups, with zeros where the ragged axis has other groups."""
    shape = (sizes.shape[-1], *x.shape)
    ends = cumsum(sizes, sizes.ndim - 1)
    places = (*(a + 1 for a in outer), 0)
    # axes of group sizes in the order in which they stand in the layers
    order = tuple(int(i) for i in np.argsort(places))
    ends, starts = (transpose(v, order) for v in (ends, sub(ends, sizes)))
    ends, starts = (broadcast_in_dim(v, shape, tuple(sorted(places))) for v in (ends, starts))
    position = broadcasted_iota(sizes.dtype, shape, ragged + 1)
    inside = bitwise_and(ge(position, starts), lt(position, ends))
    layers = broadcast_in_dim(x, shape, tuple(range(1, len(shape))))
    return select(inside, layers, full_like(layers, 0))


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Contraction of two arrays whose blocks along the contracted axes have scales: microscaled formats.

    Operands and scales are converted to bfloat16 and multiplied; products of these are summed.

    Args:
      lhs: array of rank 2 or more.
      rhs: array of the same rank.
      lhs_scale: array of the rank of ``lhs``, and of its sizes but along contracted axes: there one scale serves two
        or more elements. None for no scales.
      rhs_scale: scales of ``rhs``, likewise.
      dimension_numbers: as in :func:`dot_general`; None for matrices in the last two axes.
      preferred_element_type: dtype to accumulate in and to give; None is bfloat16.

    Returns:
      Array whose axes are: batch axes, free axes of ``lhs``, free axes of ``rhs``.

    Raises:
      TypeError: ranks or sizes do not go together.

    Example:
      >>> import ferrax.numpy as jnp
      >>> from ferrax import lax
      >>> x, scale = jnp.ones((1, 4)), jnp.array([[1.0, 2.0]])
      >>> lax.scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type=jnp.float32)
      Array([[6.]], dtype=float32)
    """
    left, right = asarray(lhs), asarray(rhs)
    if dimension_numbers is None:
        if left.ndim < 2:
            raise TypeError("scaled_dot does not support 0-rank and 1-rank operands.")
        n = left.ndim
        dimension_numbers = (((n - 1,), (n - 2,)), (tuple(range(n - 2)), tuple(range(n - 2))))
    if left.ndim != right.ndim:
        raise TypeError(f"scaled_dot: operands must have the same rank, got {left.ndim} and {right.ndim}.")
    try:
        (of_left, of_right), _ = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(
            "scaled_dot dimension_numbers must be ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), got "
            f"{dimension_numbers!r}."
        ) from None
    left = _scaled("lhs", left, lhs_scale, of_left)
    right = _scaled("rhs", right, rhs_scale, of_right)
    dtype = ml_dtypes.bfloat16 if preferred_element_type is None else preferred_element_type
    return dot_general(left, right, dimension_numbers, preferred_element_type=dtype)


def _scaled(name: str, x: Array, scale: ArrayLike | None, contract: Sequence[int]) -> Array:
    """The values of an operand in bfloat16, its scales applied."""
    values = convert_element_type(x, ml_dtypes.bfloat16)
    if scale is None:
        return values
    scale = asarray(scale)
    if scale.ndim != x.ndim:
        raise TypeError(f"scaled_dot: {name} has rank {x.ndim}, its scale has rank {scale.ndim}.")
    split: list[int] = []
    for axis, (size, blocks) in enumerate(zip(x.shape, scale.shape)):
        if axis not in contract and size != blocks:
            raise TypeError(f"scaled_dot: {name} dim {axis} of size {size} does not match scale dim size {blocks}.")
        if axis in contract and (not blocks or size % blocks or size // blocks < 2):
            raise TypeError(
                f"scaled_dot: {name} contracting dim {axis} of size {size} must be a multiple, twice at least, of its "
                f"scale's dim size {blocks}."
            )
        split += [blocks, size // blocks if blocks else 0] if axis in contract else [size, 1]
    scale = convert_element_type(scale, ml_dtypes.bfloat16)
    each = broadcast_in_dim(scale, split, tuple(range(0, 2 * x.ndim, 2)))
    return mul(values, reshape(each, x.shape))
