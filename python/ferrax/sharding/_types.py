"""Types of arrays over explicit axes of a mesh: `float32[8@X,4]` says which mesh axis divides which axis of the array.

`typeof` gives them. Read next: `_traced.py`, which finds the shardings of traced values.
"""

from __future__ import annotations

from typing import Any

from ferrax._ferrax import ShapedArray
from ferrax.sharding._context import get_abstract_mesh
from ferrax.sharding._mesh import AxisType
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._spec import PartitionSpec, entry_names

__all__ = ["with_sharding"]


def with_sharding(aval: Any, sharding: Any) -> Any:
    """The type of an array with a sharding: one that says so, where the mesh has explicit axes.

    Args:
      aval: the type without it.
      sharding: the sharding, or `None`.
    """
    if not isinstance(sharding, NamedSharding):
        return aval
    mesh = sharding.mesh.abstract_mesh
    seen = get_abstract_mesh()
    if seen.shape_tuple == mesh.shape_tuple:
        mesh = seen
    if AxisType.Explicit not in mesh.axis_types:
        return aval
    kinds = mesh._name_to_type
    explicit = lambda entry: tuple(n for n in entry_names(entry) if kinds[n] is AxisType.Explicit)
    spec = sharding.spec
    entries = [explicit(entry) or None for entry in spec]
    entries = [e[0] if e is not None and len(e) == 1 else e for e in entries]
    entries += [None] * (len(aval.shape) - len(entries))
    whole = spec.update(partitions=tuple(entries))
    return _Type(aval, NamedSharding(mesh, whole))


def _joined(names: Any) -> str:
    names = list(names)
    return str(names[0]) if len(names) == 1 else f"({','.join(str(n) for n in names)})"


class _Type(ShapedArray):
    """A type with a sharding over explicit axes."""

    _plain: Any
    _sharding: NamedSharding

    def __new__(cls, aval: Any, sharding: NamedSharding) -> Any:
        self = super().__new__(cls, aval.shape, aval.dtype, aval.weak_type)  # type: ignore[call-arg]
        self._plain, self._sharding = aval, sharding
        return self

    def __init__(self, aval: Any, sharding: NamedSharding):
        pass

    sharding = property(lambda self: self._sharding, doc="Which mesh axes divide which axes.")

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """`float32[8@X,4]`, or `f32[8@X,4]` with `short_dtypes`."""
        spec: PartitionSpec = self._sharding.spec
        start, _, _ = self._plain.str_short(short_dtypes).partition("[")
        sizes = (
            str(size) if not (names := entry_names(entry)) else f"{size}@{_joined(names)}"
            for size, entry in zip(self.shape, spec, strict=True)
        )
        marks = [f"{k}:{_joined(sorted(v))}" for k, v in (("U", spec.unreduced), ("R", spec.reduced)) if v]
        return f"{start}[{','.join(sizes)}]{'{' + ','.join(marks) + '}' if marks else ''}"

    def __str__(self) -> str:
        return self.str_short()

    def __repr__(self) -> str:
        return f"ShapedArray({self.str_short().lstrip('~')}{', weak_type=True' if self.weak_type else ''})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Type) and self._plain == other._plain and self._sharding == other._sharding

    def __hash__(self) -> int:
        return hash((self._plain, self._sharding))

    def __reduce__(self) -> Any:
        return _Type, (self._plain, self._sharding)


_Type.__name__ = _Type.__qualname__ = "ShapedArray"
