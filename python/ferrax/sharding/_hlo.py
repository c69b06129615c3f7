"""Shardings in HLO's words: into how many tiles each axis is cut, and which device has which tile.

Nothing here runs: the text and its parts are what programs for XLA say of a sharding. Source: OpenXLA's documentation
of shardings (`HloSharding`, its form with iota tiles). Read next: `_named.py` for shardings of meshes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["HloSharding", "of_named", "replicated"]


class HloSharding:
    """How HLO says that an array is spread over devices.

    Args:
      dims: number of tiles along each axis of the array, and, if `last_replicated`, of copies; `None` for all of the
        array on each device.
      reshape: sizes of the iota of devices before it is transposed.
      transpose: which of these axes is which after that.
      last_replicated: whether the last of `dims` counts copies.
      devices: the device of each tile, where no iota says it.

    Raises:
      ValueError: there is not one device for each tile.

    >>> from ferrax.sharding import _hlo
    >>> _hlo.HloSharding((2, 2), (2, 2), (1, 0), False)
    {devices=[2,2]<=[2,2]T(1,0)}
    """

    def __init__(
        self,
        dims: Sequence[int] | None,
        reshape: Sequence[int] = (),
        transpose: Sequence[int] = (),
        last_replicated: bool = False,
        devices: Sequence[int] | None = None,
    ):
        self._dims = None if dims is None else tuple(dims)
        self._reshape, self._transpose, self._last = tuple(reshape), tuple(transpose), last_replicated
        self._listed = None if devices is None else [int(d) for d in devices]
        if self._listed is not None and last_replicated and dims:  # copies have no order
            groups = [self._listed[i : i + dims[-1]] for i in range(0, len(self._listed), dims[-1])]
            self._listed = [device for group in groups for device in sorted(group)]
        if dims is not None and sorted(self.tile_assignment_devices()) != list(range(self.num_devices())):
            raise ValueError(f"a sharding of {self.num_devices()} tiles has each device once: {self}")

    @staticmethod
    def from_proto(proto: Any) -> HloSharding:
        """What HLO says, from its message (`ferrax.extend.sharding`)."""
        from ferrax.sharding._op_sharding import hlo_sharding_of

        return hlo_sharding_of(proto)

    def to_proto(self) -> Any:
        """The message (`ferrax.extend.sharding`)."""
        from ferrax.sharding._op_sharding import message_of

        return message_of(self)

    def is_tile_assignment_iota(self) -> bool:
        """Whether an iota says which device has which tile."""
        return self._listed is None

    def iota(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Sizes of the iota of devices, and how it is transposed."""
        return self._reshape, self._transpose

    def is_replicated(self) -> bool:
        """Whether each device holds all of the array."""
        return self._dims is None

    def is_maximal(self) -> bool:
        """Whether nothing is cut."""
        return self._dims is None

    def is_tiled(self) -> bool:
        """Whether an axis is cut."""
        return self._dims is not None

    def is_manual(self) -> bool:
        """Whether a program says itself what each device holds: never."""
        return False

    def is_unknown(self) -> bool:
        """Whether nothing is known: never."""
        return False

    def tile_assignment_dimensions(self) -> list[int]:
        """Number of tiles along each axis, and of copies."""
        return list(self._tiles())

    def tile_assignment_devices(self) -> list[int]:
        """The device of each tile, in order."""
        count = math.prod(self._tiles())
        if self._listed is not None:
            return list(self._listed)
        if math.prod(self._reshape) != count or sorted(self._transpose) != list(range(len(self._reshape))):
            raise ValueError(f"a sharding of {count} tiles has an iota of as many devices: {self}")
        return [int(i) for i in np.arange(count).reshape(self._reshape).transpose(self._transpose).flat]

    def _tiles(self) -> tuple[int, ...]:
        if self._dims is None:
            raise ValueError("a replicated sharding has no tiles")
        return self._dims

    def replicate_on_last_tile_dim(self) -> bool:
        """Whether the last number of tiles counts copies."""
        return self._last

    def subgroup_types(self) -> list[Any]:
        """Kinds of groups of devices: none."""
        return []

    def num_devices(self) -> int:
        """Number of devices that have tiles; 0 where nothing is cut."""
        return 0 if self._dims is None else math.prod(self._dims)

    def num_dimensions(self) -> int:
        """How many numbers of tiles there are."""
        return 1 if self._dims is None else len(self._dims)

    def __repr__(self) -> str:
        if self._dims is None:
            return "{replicated}"
        join = lambda numbers: ",".join(map(str, numbers))
        if self._listed is not None:
            places = join(self._listed)
        else:
            turned = f"T({join(self._transpose)})" if len(self._transpose) > 1 else ""
            places = f"<=[{join(self._reshape)}]{turned}"
        last = " last_tile_dim_replicate" if self._last else ""
        return f"{{devices=[{join(self._dims)}]{places}{last}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HloSharding) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self._dims, self._last, None if self._dims is None else tuple(self.tile_assignment_devices())


def replicated() -> HloSharding:
    """All of an array on each device."""
    return HloSharding(None)


def of_named(sizes: dict[Any, int], entries: Sequence[tuple[Any, ...]]) -> HloSharding:
    """What HLO says of a sharding.

    Args:
      sizes: the sizes of the mesh's axes, in its order.
      entries: the mesh axes that divide each axis of the array.
    """
    names = list(sizes)
    used = [n for entry in entries for n in entry]
    if math.prod(sizes[n] for n in used) == 1:
        return replicated()
    rest = [n for n in names if n not in used]
    copies = math.prod(sizes[n] for n in rest)
    dims = [math.prod(sizes[n] for n in entry) for entry in entries] + ([copies] if copies > 1 else [])
    reshape, transpose = _merged(names, sizes, [*used, *rest])
    return HloSharding(dims, reshape, transpose, copies > 1)


def _merged(names: list[Any], sizes: dict[Any, int], order: list[Any]) -> tuple[list[int], list[int]]:
    """The sizes of the iota and its transposition for mesh axes in an order; neighbours that stay so are one axis."""
    kept = [n for n in names if sizes[n] > 1]
    runs: list[list[int]] = []
    for at in (kept.index(n) for n in order if sizes[n] > 1):
        if runs and at == runs[-1][-1] + 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    sources = sorted(runs)
    return [math.prod(sizes[kept[i]] for i in run) for run in sources], [sources.index(run) for run in runs]


def entries_of(sharding: HloSharding, sizes: dict[Any, int]) -> list[tuple[Any, ...]] | None:
    """The mesh axes that divide each axis of an array, from what HLO says; `None` where no axes say it.

    Args:
      sharding: what HLO says.
      sizes: the sizes of the mesh's axes, in its order.

    >>> entries_of(of_named({"x": 4, "y": 2}, [("y",), ("x",)]), {"x": 4, "y": 2})
    [('y',), ('x',)]
    """
    if sharding.is_replicated():
        return []
    counts = sharding.tile_assignment_dimensions()
    counts = counts[:-1] if sharding.replicate_on_last_tile_dim() else counts

    def found(entries: list[tuple[Any, ...]], rest: list[Any]) -> list[tuple[Any, ...]] | None:
        if len(entries) == len(counts):
            return entries if of_named(sizes, entries) == sharding else None
        ways = (
            way
            for n in range(len(rest) + 1)
            for way in itertools.permutations(rest, n)
            if math.prod(sizes[name] for name in way) == counts[len(entries)]
        )
        every = (found([*entries, way], [name for name in rest if name not in way]) for way in ways)
        return next((entries for entries in every if entries is not None), None)

    return found([], [name for name, size in sizes.items() if size > 1])
