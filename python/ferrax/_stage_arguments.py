"""What stages ask of their arguments: shapes, dtypes, where they lie, and where they should.

Read next: `_stages.py`.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax

__all__ = ["anywhere", "committed_sharding", "formats_of", "has_devices", "same_place", "shape_and_dtype", "type_text"]


def anywhere(mesh: Any) -> Any:
    """Where arguments are of which nothing is asked: all of them on each device of a mesh, or on the first device."""
    if mesh is None:
        (first, *_) = _ferrax.devices(None)
        return _ferrax.SingleDeviceSharding(first)
    from ferrax.sharding import NamedSharding, PartitionSpec

    return NamedSharding(mesh, PartitionSpec())


def has_devices(sharding: Any) -> bool:
    """Whether a sharding is one of devices: one over an abstract mesh is not."""
    try:
        return sharding is not None and bool(getattr(sharding, "_device_assignment", None))
    except ValueError:
        return False


def formats_of(tree: Any, avals: Any, shardings: Any) -> Any:
    from ferrax.experimental.layout import row_by_row

    places = tree.flatten_up_to(shardings)
    return tree.unflatten([row_by_row(a.shape, s) for a, s in zip(avals, places, strict=True)])


def same_place(have: Any, want: Any, rank: int) -> bool:
    """Whether two shardings put the parts of arrays of a rank on the same devices."""
    if isinstance(have, _ferrax.SingleDeviceSharding):
        have, want = want, have
    if isinstance(have, _ferrax.SingleDeviceSharding):
        return bool(have == want)
    return bool(have.is_equivalent_to(want, rank))


def type_text(shape: Any, dtype: Any) -> str:
    return f"{dtype.name}[{','.join(str(d) for d in shape)}]"


def shape_and_dtype(x: Any) -> tuple[tuple[int, ...], Any]:
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return tuple(x.shape), _ferrax.canonicalize_dtype(x.dtype)
    from ferrax._api import typeof

    aval = typeof(x)
    return aval.shape, aval.dtype


def committed_sharding(x: Any) -> Any:
    """The sharding of an argument that is committed, or of an abstract one that has one."""
    if _ferrax.is_tracer(x) or not getattr(x, "committed", True):
        return None
    return getattr(x, "sharding", None)
