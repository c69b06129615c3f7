"""What types of values inside of `shard_map` say of sums that are due: axes they are unreduced over, and reduced over.

A value that is unreduced over a manual axis varies over it: its devices hold the terms. One that is reduced is the same
on all of them. So it is the types alone that differ; what operations make of them is said by `_due.py`.

Read next: `_shard_map.py`, which marks arguments, and `crates/ferrax-transform/src/batching.rs`, which asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrax import _avals as _avals, _ferrax  # types have `mat` by it
from ferrax.sharding._context import get_abstract_mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._spec import PartitionSpec

__all__ = ["marked", "marks_of", "not_varying", "reduced_over", "state", "without_marks"]

Axes = frozenset[Any]
_NONE: Axes = frozenset()


def marks_of(aval: Any) -> tuple[Axes, Axes]:
    """The manual axes that a type says to be unreduced, and those that it says to be reduced."""
    from ferrax.sharding._typed import sharding_of

    sharding = sharding_of(aval._spread)
    if sharding is None or not sharding.mesh.are_all_axes_manual:
        return _NONE, _NONE
    return sharding.spec.unreduced, sharding.spec.reduced - aval.vma


def marked(x: Any, unreduced: Axes, reduced: Axes) -> Any:
    """The value, with a type that says so.

    Args:
      x: a value inside of a `shard_map` that maps over all axes of its mesh, and checks what varies.
      unreduced: the manual axes that it is unreduced over.
      reduced: the manual axes that it is reduced over.
    """
    from ferrax.sharding._typed import number_of

    mesh = get_abstract_mesh()
    if not mesh.are_all_axes_manual:
        return x
    spec = PartitionSpec(*(None,) * x.ndim, unreduced=unreduced, reduced=reduced)
    return _ferrax.marked(x, number_of(NamedSharding(mesh, spec)) if unreduced or reduced else 0)


def reduced_over(x: Any, axes: Sequence[Any]) -> Any:
    """The value, whose gradient is due over manual axes; a constant becomes a value of the map, whose type says so."""
    return _ferrax.preduced(_ferrax.marked(x, _ferrax.typeof(x)._spread), [str(a) for a in axes]) if axes else x


def without_marks(sharding: NamedSharding) -> NamedSharding:
    """The sharding in a type, without what it says of manual axes."""
    if not sharding.mesh.are_all_axes_manual:
        return sharding
    return sharding.update(spec=sharding.spec.update(unreduced=_NONE, reduced=_NONE))


def state(aval: Any, names: Sequence[str]) -> frozenset[str]:
    """What a type says of manual axes: `"varying"`, `"unreduced"`, `"reduced"`, `"invarying"`."""
    unreduced, reduced = marks_of(aval)

    def one(name: str) -> str:
        if name in unreduced:
            return "unreduced"
        return "varying" if name in aval.vma else "reduced" if name in reduced else "invarying"

    return frozenset(map(one, names))


def not_varying(axes: Sequence[Any], varying: Axes) -> ValueError:
    """The error of a value that is to be unreduced over axes, and does not vary over them."""
    return ValueError(
        "vary_unreduced_cast is a Varying->Unreduced collective. This means that the axis names mentioned in `axes` "
        "passed to `vary_unreduced_cast` must be present in `jax.typeof(x).mat.varying`. Got "
        f"axes={tuple(axes)} and jax.typeof(x).mat.varying={varying}"
    )
