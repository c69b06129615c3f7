"""What is known of a value of a partitioned program, and what it takes to have it otherwise.

A `Layout` says which mesh axes divide each axis of the array, and over which mesh axes the devices hold terms of a sum
that nobody has added up yet. Changing one layout into another is a list of collective operations: sums become sums of
parts where the result is divided, an axis of a mesh that moves from one axis of the array to another is an
`all_to_all`, one that goes is an `all_gather`, one that comes is a slice, which sends nothing.

Read next: `_partition.py`, which chooses layouts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ferrax.plan._machines import Machine
from ferrax.sharding._spec import UNCONSTRAINED, entry_names

__all__ = ["Exchange", "Grid", "Layout", "Spec", "bytes_of"]

#: For every axis of an array the mesh axes that divide it.
Spec = tuple[tuple[str, ...], ...]


class Layout(NamedTuple):
    """How a value lies on the devices.

    Attributes:
      spec: for every axis of the array the mesh axes that divide it.
      unsummed: mesh axes whose devices hold terms of a sum.
    """

    spec: Spec
    unsummed: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """The mesh axes that divide the array."""
        return tuple(n for names in self.spec for n in names)


@dataclass
class Exchange:
    """A collective operation.

    Attributes:
      kind: `"all_reduce"`, `"all_gather"`, `"reduce_scatter"`, `"all_to_all"` or `"permute"`.
      names: the mesh axes whose devices take part.
      bytes: bytes on one device: of the result of an `all_gather`, of the operand of others.
      times: how often it runs in a step.
      cause: the operation that asks for it, and the shape of the whole array.
    """

    kind: str
    names: tuple[str, ...]
    bytes: float
    times: float = 1.0
    cause: str = ""


def bytes_of(aval: Any) -> float:
    """Bytes of a whole array; numbers of 4 bits count as half a byte, keys as what they are made of."""
    bits = getattr(aval.dtype, "itemsize", 8) * 8
    if str(aval.dtype) in ("int4", "uint4", "float4_e2m1fn"):
        bits = 4
    return math.prod(aval.shape) * bits / 8


class Grid:
    """A mesh of devices of one machine: what layouts there are, and what exchanges cost."""

    def __init__(self, mesh: Any, machine: Machine):
        self.sizes: dict[str, int] = dict(mesh.shape)
        self.machine = machine
        self.strides: dict[str, int] = {}
        stride = 1
        for name in reversed(mesh.axis_names):
            self.strides[name] = stride
            stride *= self.sizes[name]
        self.devices = stride

    def parts(self, names: Sequence[str]) -> int:
        """Into how many parts mesh axes divide."""
        return math.prod(self.sizes[n] for n in names)

    def fit(self, entries: Sequence[Sequence[str]], shape: Sequence[int]) -> Spec:
        """A spec without what an array of a shape cannot have: uneven parts, an axis twice, axes of size 1."""
        seen: set[str] = set()
        spec = []
        for names, size in zip(entries, shape, strict=True):
            kept: list[str] = []
            for name in names:
                if self.sizes[name] > 1 and name not in seen and size % self.parts([*kept, name]) == 0:
                    kept.append(name)
                    seen.add(name)
            spec.append(tuple(kept))
        return tuple(spec)

    def of(self, sharding: Any, shape: Sequence[int]) -> Layout:
        """The layout that a sharding asks for; what it leaves open is not divided."""
        spec = getattr(sharding, "spec", ())
        entries = [() if e is UNCONSTRAINED else entry_names(e) for e in spec]
        return Layout(self.fit([*entries, *((),) * (len(shape) - len(entries))], shape))

    def seconds(self, exchanges: Sequence[Exchange]) -> float:
        """Seconds that exchanges take one after another."""
        return sum(
            self.machine.exchange_seconds(e.kind, [(self.sizes[n], self.strides[n]) for n in e.names], e.bytes)
            for e in exchanges
        )

    def changes(self, have: Layout, want: Layout, size: float) -> list[Exchange]:
        """The exchanges that make one layout of another.

        Args:
          have: the layout that a value has.
          want: the layout that it is to have; what it leaves unsummed stays so.
          size: bytes of the whole array.
        """
        found: list[Exchange] = []
        places = {n: i for i, names in enumerate(have.spec) for n in names}
        wanted = {n: i for i, names in enumerate(want.spec) for n in names}
        sums = have.unsummed - want.unsummed
        # slices come first: what follows has less to send
        sliced = [n for n in wanted if n not in places and n not in sums]
        local = size / self.parts([*places, *sliced])
        scattered = tuple(n for n in sorted(sums) if n in wanted)
        if scattered:
            found.append(Exchange("reduce_scatter", scattered, local))
            local /= self.parts(scattered)
        added = tuple(n for n in sorted(sums) if n not in wanted)
        if added:
            found.append(Exchange("all_reduce", added, local))
        moved = tuple(n for n in places if n in wanted and wanted[n] != places[n])
        if moved:
            found.append(Exchange("all_to_all", moved, local))
        gathered = tuple(n for n in places if n not in wanted)
        if gathered:
            found.append(Exchange("all_gather", gathered, local * self.parts(gathered)))
        return found
