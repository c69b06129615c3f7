"""Machines that plans are made for: what a device computes, and how fast devices send to each other.

Figures are those of makers' data sheets, which programs reach in part: a plan compares meshes, it promises no times.
Devices stand in the order of the mesh, its last axis next to each other. A level joins so many of them; what a group of
devices exchanges goes over each level that the group spans, inner levels first, by rings, so that outer levels carry
what inner ones have put together. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations" (2009), for what rings send. Read next: `_partition.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MACHINES", "Level", "Machine"]


@dataclass(frozen=True)
class Level:
    """Devices that are joined.

    Attributes:
      devices: how many, those of the levels inside included.
      bandwidth: bytes that a device sends each second while it receives as many.
      latency: seconds that a message takes.
    """

    devices: float
    bandwidth: float
    latency: float


@dataclass(frozen=True)
class Machine:
    """Devices of one kind, and what joins them.

    Attributes:
      name: what it is called.
      flops: operations a second of matrix products, by bits of an element; narrower elements than the narrowest
        take its time.
      bandwidth: bytes a second between a device and its memory.
      memory: bytes of a device's memory.
      levels: how devices are joined, inner levels first; the last takes all.

    >>> from ferrax.plan import MACHINES
    >>> MACHINES["h100"].levels[0].devices
    8
    """

    name: str
    flops: dict[int, float]
    bandwidth: float
    memory: float
    levels: tuple[Level, ...]

    def product_seconds(self, flops: float, bits: int) -> float:
        """Seconds that products of matrices take at the full rate.

        Args:
          flops: additions and multiplications.
          bits: bits of an element of the operands.
        """
        width = next((w for w in sorted(self.flops) if w >= bits), max(self.flops))
        return flops / self.flops[width]

    def spans(self, group: Sequence[tuple[int, int]]) -> list[int]:
        """By how much each level multiplies the members of a group that are joined.

        Args:
          group: size and stride of each mesh axis of the group.
        """
        joined, spans = 1, []
        for level in self.levels:
            inside = math.prod(int(max(1, min(size, level.devices // stride))) for size, stride in group)
            spans.append(max(1, inside // joined))
            joined = max(joined, inside)
        return spans

    def exchange_seconds(self, kind: str, group: Sequence[tuple[int, int]], size: float) -> float:
        """Seconds that a collective operation takes when nothing else is sent.

        Args:
          kind: `"all_reduce"`, `"all_gather"`, `"reduce_scatter"`, `"all_to_all"` or `"permute"`.
          group: size and stride of each mesh axis of the group.
          size: bytes on one device: of the result of an `all_gather`, of the operand of others.
        """
        spans, members = self.spans(group), math.prod(n for n, _ in group)
        rounds = 2 if kind == "all_reduce" else 1
        seconds, joined = 0.0, 1
        for span, level in zip(spans, self.levels, strict=True):
            if span == 1:
                continue
            if kind == "permute":
                sent = float(size)
                seconds = 0.0  # neighbours exchange at the same time: the slowest level counts
            elif kind == "all_to_all":
                sent = size * joined * (span - 1) / members
            else:
                sent = rounds * size / joined * (span - 1) / span
            steps = 1 if kind == "permute" else rounds * math.log2(span)
            seconds += sent / level.bandwidth + level.latency * steps
            joined *= span
        return seconds


#: Machines by name: an H100 with NVLink in nodes of eight and 400 Gbit/s each between them; a TPU v5e, whose pods of
#: 256 are tori (a ring goes both ways round on links of 50 GB/s) joined by 6.4 Tbit/s a pod.
MACHINES = {
    "h100": Machine(
        "h100",
        {8: 1.979e15, 16: 9.89e14, 32: 4.94e14, 64: 6.7e13},
        3.35e12,
        80e9,
        (Level(8, 450e9, 2e-6), Level(math.inf, 50e9, 5e-6)),
    ),
    "tpu_v5e": Machine(
        "tpu_v5e",
        {8: 3.94e14, 16: 1.97e14, 32: 1.97e14 / 6},
        8.19e11,
        16e9,
        (Level(256, 100e9, 1e-6), Level(math.inf, 3.125e9, 1e-5)),
    ),
}
