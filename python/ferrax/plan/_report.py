"""What a plan says: figures of one step on one device, and a table of what is sent.

Read next: `__main__.py` for the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferrax.plan._layout import Exchange, Grid, bytes_of
from ferrax.plan._machines import MACHINES, Machine
from ferrax.plan._partition import Totals, Walk
from ferrax.plan._trace import traced
from ferrax.tree_util import tree_leaves

__all__ = ["Plan", "plan"]


@dataclass
class Plan:
    """One step of a program on one device of a mesh.

    Attributes:
      mesh: the mesh.
      machine: the machine.
      flops: additions and multiplications.
      traffic: bytes between the device and its memory.
      arguments: bytes of the program's arguments.
      memory: bytes of values at the fullest moment, arguments included.
      compute_seconds: what computation takes at the rates of the data sheet.
      exchange_seconds: what the collective operations take, one after another.
      exchanges: the collective operations.
      undivided: operations without a rule, which every device computes whole, with how many there are.
      open_loops: `while` loops, whose bodies count once.
    """

    mesh: Any
    machine: Machine
    flops: float
    traffic: float
    arguments: float
    memory: float
    compute_seconds: float
    exchange_seconds: float
    exchanges: list[Exchange]
    undivided: dict[str, int]
    open_loops: int

    @property
    def seconds(self) -> tuple[float, float]:
        """A step's seconds: with all exchanges behind the computation, and with none."""
        return max(self.compute_seconds, self.exchange_seconds), self.compute_seconds + self.exchange_seconds

    @property
    def bytes_sent(self) -> float:
        """Bytes that the exchanges are of, each as often as it runs."""
        return sum(e.bytes * e.times for e in self.exchanges)

    def __str__(self) -> str:
        grid = Grid(self.mesh, self.machine)
        axes = " x ".join(f"{name} {size}" for name, size in self.mesh.shape.items())
        fast, slow = self.seconds
        lines = [
            f"{grid.devices:,} devices of {self.machine.name} ({axes})",
            f"each device: {size_text(self.flops)}flop, {size_text(self.traffic)}B of memory traffic, "
            f"arguments {size_text(self.arguments)}B, "
            f"at most {size_text(self.memory)}B of {size_text(self.machine.memory)}B",
            f"a step: {seconds_text(self.compute_seconds)} of computation, "
            f"{seconds_text(self.exchange_seconds)} of exchanges; "
            f"{seconds_text(fast)} to {seconds_text(slow)} together",
        ]
        if self.memory > self.machine.memory:
            lines.append("it does not fit the memory of a device")
        for name, count in sorted(self.undivided.items()):
            lines.append(f"not divided, for want of a rule: {name} ({count} times)")
        if self.open_loops:
            lines.append(f"loops of unknown length, counted as one turn: {self.open_loops}")
        return "\n".join([*lines, *_table(self.exchanges, grid)])


def _table(exchanges: list[Exchange], grid: Grid) -> list[str]:
    """What is sent, the slowest first; operations of one kind, place and cause are one row."""
    rows: dict[tuple[str, tuple[str, ...], str], list[float]] = {}
    for e in exchanges:
        row = rows.setdefault((e.kind, e.names, e.cause), [0.0, 0.0, 0.0])
        row[0] += e.times
        row[1] += e.times * e.bytes
        row[2] += e.times * grid.seconds([e])
    if not rows:
        return ["nothing is sent"]
    out = [f"{'exchange':<15}{'over':<18}{'runs':>7}{'bytes':>10}{'time':>10}  for"]
    for (kind, names, cause), (times, size, seconds) in sorted(rows.items(), key=lambda r: -r[1][2]):
        out.append(
            f"{kind:<15}{','.join(names):<18}{times:>7,.0f}{size_text(size):>9}B{seconds_text(seconds):>10}  {cause}"
        )
    return out


def size_text(x: float) -> str:
    """Three digits and a prefix."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if x >= size:
            return f"{x / size:.3g} {prefix}"
    return f"{x:.3g} "


def seconds_text(seconds: float) -> str:
    """Three digits and a unit."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def plan(
    f: Callable[..., Any],
    *args: Any,
    mesh: Any,
    machine: str | Machine = "h100",
    donate_argnums: Sequence[int] = (),
    **kwargs: Any,
) -> Plan:
    """Divides a function's program over a mesh, and counts what one device does in one step.

    Args:
      f: function of arrays, jitted or not; it is traced, never run.
      *args: its arguments: arrays, or `ShapeDtypeStruct`s with shardings over the mesh. What has no sharding is on
        every device whole.
      mesh: an `AbstractMesh`; a `PartitionSpec` in the function means this mesh.
      machine: the name of one of `MACHINES`, or a `Machine`.
      donate_argnums: positional arguments whose memory the results may take.
      **kwargs: keyword arguments of the function, likewise.

    Returns:
      The plan; `print` shows it.

    Raises:
      KeyError: there is no machine of the name.
      TypeError: an argument is no array.

    >>> import ferrax as jax
    >>> from ferrax.plan import plan
    >>> from ferrax.sharding import AbstractMesh, NamedSharding
    >>> mesh = AbstractMesh((8,), ("data",))
    >>> x = jax.ShapeDtypeStruct((1024, 512), "float32", sharding=NamedSharding(mesh, jax.P("data")))
    >>> w = jax.ShapeDtypeStruct((512, 512), "float32")
    >>> found = plan(jax.grad(lambda w, x: (x @ w).sum()), w, x, mesh=mesh)
    >>> [(e.kind, e.names, e.bytes) for e in found.exchanges]
    [('all_reduce', ('data',), 1048576.0)]
    """
    if isinstance(machine, str):
        if machine not in MACHINES:
            raise KeyError(f"there is no machine {machine!r}; there are {', '.join(MACHINES)}")
        machine = MACHINES[machine]
    program, shardings = traced(f, args, kwargs, mesh)
    grid = Grid(mesh, machine)
    layouts = [grid.of(s, a.shape) for s, a in zip(shardings, program.in_avals, strict=True)]
    walk = Walk(grid)
    donated = [i in donate_argnums for i, arg in enumerate(args) for _ in tree_leaves(arg)]
    walk.run(program, layouts, donated=donated)
    totals: Totals = walk.totals
    arguments = sum(bytes_of(a) / grid.parts(layout.names) for a, layout in zip(program.in_avals, layouts, strict=True))
    return Plan(
        mesh,
        machine,
        totals.flops,
        totals.traffic,
        arguments,
        arguments + totals.peak,
        totals.compute,
        sum(e.times * grid.seconds([e]) for e in totals.exchanges),
        totals.exchanges,
        dict(totals.whole),
        totals.open_loops,
    )
