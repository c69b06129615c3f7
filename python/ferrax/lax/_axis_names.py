"""Names of mapped axes as operations across rows are given them: one or several, in an order, with groups of rows.

Read next: `parallel.py`, which has the operations.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence
from typing import Any

from ferrax import _ferrax
from ferrax._ferrax import lax as _lax
from ferrax.sharding._manual import names_in_force

__all__ = ["groups_of", "in_order_of_mesh", "names_of"]


def names_of(axis_name: Hashable | Sequence[Hashable]) -> list[Hashable]:
    """The axes of an argument that is one name or a sequence of them."""
    return list(axis_name) if isinstance(axis_name, (tuple, list)) else [axis_name]


def groups_of(function: str, axis_name: Any, axis_index_groups: Any) -> tuple[tuple[int, ...], ...] | None:
    """Groups of rows that an operation works in, checked; `None` for all rows together."""
    if axis_index_groups is None:
        return None
    groups = tuple(tuple(operator.index(row) for row in group) for group in axis_index_groups)
    names = [str(n) for n in names_of(axis_name)]
    if not set(names) <= {str(n) for n in names_in_force()}:
        raise NotImplementedError(
            "axis_index_groups has no meaning under vmap, which binds the named axes: split the axis in two instead"
        )
    if function == "psum" and _ferrax.checked_axes(names):
        raise NotImplementedError("psum with axis_index_groups is not implemented under shard_map's check_vma")
    rows = sorted(row for group in groups for row in group)
    if rows != list(range(math.prod(_lax.axis_size(n) for n in names))):
        raise ValueError(f"axis_index_groups must cover all indices exactly once, got {axis_index_groups}")
    return groups


def in_order_of_mesh(axis_name: Any) -> Any:
    """Names of axes of devices in the order of their mesh; names of other axes as they are."""
    from ferrax.sharding._context import get_abstract_mesh

    names, manual = names_of(axis_name), names_in_force()
    if len(names) < 2 or not set(names) <= set(manual):
        return axis_name
    mesh = get_abstract_mesh().axis_names
    return tuple(sorted(names, key=(mesh if set(names) <= set(mesh) else manual).index))
