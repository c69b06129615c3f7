"""A program divided over a mesh: what each device computes, and what devices send each other.

Equations are gone through in order. Each has its axes labelled (`_axes.py`), and every mesh axis that divides one of
its operands is given to one label, or to none: the choice that takes the least time, exchanges and computation
together. Sums over divided axes stay terms on each device as long as what follows is linear, so that a gradient is
summed once, into parts where parts are wanted. A loop is gone through once, with what it carries laid out as its body
leaves it, and counts as often as it turns; of branches the slowest counts.

Computation takes the longer of two times: products at the machine's rate, and memory traffic at its bandwidth, where
results of elementwise work that only such work reads are never in memory.

Read next: `_report.py`, which puts the figures together.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferrax._ferrax import Literal
from ferrax.plan._axes import LINEAR, Axes, axes_of
from ferrax.plan._layout import Exchange, Grid, Layout, bytes_of

__all__ = ["MARK", "Totals", "Walk"]

#: The start of the names of values whose layout the program asks for (`_trace.py`).
MARK = "the plan's layout "

_CALLS = frozenset(
    [
        "jit",
        "closed_call",
        "custom_jvp_call",
        "custom_vjp_call",
        "custom_vjp_call_jaxpr",
        "checkpoint",
        "remat",
        "remat2",
    ]
)
#: What is computed where it is read: it takes no memory of its own when only such operations read it.
_APART = frozenset(
    [
        "dot_general",
        "conv_general_dilated",
        "gather",
        "scatter",
        "scatter-add",
        "sort",
        "top_k",
        "cumsum",
        "cumprod",
        "cummax",
        "cummin",
        "fft",
        "cholesky",
        "lu",
        "qr",
        "eigh",
        "svd",
        "triangular_solve",
        "concatenate",
        "dynamic_update_slice",
        "scan",
        "while",
        "cond",
    ]
)
#: What moves elements and computes none.
_MOVES = frozenset(
    ["reshape", "transpose", "broadcast_in_dim", "slice", "concatenate", "gather", "copy", "squeeze", "expand_dims"]
    + ["iota", "pad", "rev", "name"]
)


@dataclass
class Totals:
    """What one device does.

    Attributes:
      flops: additions and multiplications.
      traffic: bytes between the device and its memory.
      compute: seconds of computation.
      peak: bytes of values at the fullest moment, arguments included.
      exchanges: what is sent.
      whole: operations that nothing divides for want of a rule, and how often they run.
      open_loops: loops that were counted once because nobody knows how often they turn.
    """

    flops: float = 0.0
    traffic: float = 0.0
    compute: float = 0.0
    peak: float = 0.0
    exchanges: list[Exchange] = field(default_factory=list)
    whole: Counter[str] = field(default_factory=Counter)
    open_loops: int = 0

    def add(self, other: Totals) -> None:
        """Adds what another part of the program does; peaks are the caller's matter."""
        self.flops += other.flops
        self.traffic += other.traffic
        self.compute += other.compute
        self.exchanges += other.exchanges
        self.whole += other.whole
        self.open_loops += other.open_loops


def _divided(layout: Layout, labels: Sequence[Hashable]) -> Iterator[str]:
    """The mesh axes that divide labelled axes of a value."""
    for names, label in zip(layout.spec, labels, strict=True):
        yield from names if label is not None else ()


def _whole(v: Any) -> Layout:
    return Layout(((),) * len(v.aval.shape))


#: The layout in which a program leaves a result.
Settle = Callable[[int, Layout], Layout]


def _added_up(_: int, have: Layout) -> Layout:
    return Layout(have.spec)


def _as_made(_: int, have: Layout) -> Layout:
    return have


class Walk:
    """One way through a program; totals grow as it goes."""

    def __init__(self, grid: Grid, times: float = 1.0):
        self.grid = grid
        self.times = times
        self.totals = Totals()
        #: what values of the program have been changed to
        self.changed: set[tuple[Any, Layout]] = set()
        #: values that something reads which is not linear: sums of theirs are done before anything reads them
        self.needed: set[Any] = set()
        #: for terms of sums that were made wider, the share of their bytes that the sums need
        self.narrow: dict[Any, float] = {}
        #: carried values that terms are added to, before it is known how these lie
        self.open: set[Any] = set()
        #: the same shares for the results of the program gone through last
        self.shares: list[float] = []

    def run(
        self, program: Any, layouts: Sequence[Layout], settle: Settle = _added_up, donated: Sequence[bool] = ()
    ) -> list[Layout]:
        """Goes through a program; gives the layouts of its results.

        Args:
          program: the program.
          layouts: those of its operands.
          settle: the layout in which a result is left, from its number and the layout in which it is computed.
          donated: operands whose memory is free once they were read for the last time.
        """
        program = getattr(program, "jaxpr", program)
        known: dict[Any, Layout] = dict(zip(program.invars, layouts, strict=True))
        known.update({v: _whole(v) for v in program.constvars})
        stored, last = _stored(program, [v for v, free in zip(program.invars, donated, strict=False) if free])
        around, self.changed, self.needed = (self.changed, self.needed), set(), _needed(program)
        readers = _readers(program)
        live, kept = 0.0, 0.0
        for at, eqn in enumerate(program.eqns):
            have = [_whole(v) if isinstance(v, Literal) else known[v] for v in eqn.invars]
            inner, self.totals.peak = self.totals.peak, 0.0
            outs = self.equation(eqn, have, stored)
            inside, self.totals.peak = self.totals.peak, inner
            if eqn.primitive.name in ("broadcast_in_dim", "iota"):
                outs = [self.as_read(v, s, readers.get(v, ()), known) for v, s in zip(eqn.outvars, outs, strict=True)]
            for v, layout in zip(eqn.outvars, outs, strict=True):
                known[v] = layout
                live += self.local(v, layout) if v in stored else 0.0
            kept = max(kept, live + inside)
            live -= sum(self.local(v, known[v]) for v in last.get(at, ()))
        self.totals.peak = max(self.totals.peak, kept)
        results = []
        for k, v in enumerate(program.outvars):
            made = _whole(v) if isinstance(v, Literal) else known[v]
            results.append(settle(k, made))
            self.move(made, results[-1], v, "a result")
        self.changed, self.needed = around
        self.shares = [1.0 if isinstance(v, Literal) else self.narrow.get(v, 1.0) for v in program.outvars]
        return results

    @staticmethod
    def as_read(v: Any, layout: Layout, readers: Sequence[Any], known: dict[Any, Layout]) -> Layout:
        """Where nothing divides what is broadcast, each device makes the part that goes with what it is read with."""
        beside = (
            x for eqn in readers for x in eqn.invars if not isinstance(x, Literal) and x.aval.shape == v.aval.shape
        )
        return next((Layout(known[x].spec) for x in beside if not layout.names and x in known), layout)

    def local(self, v: Any, layout: Layout) -> float:
        """Bytes of a value on one device."""
        return bytes_of(v.aval) / self.grid.parts(layout.names)

    def summed(self, v: Any, have: Layout) -> Layout:
        """The layout without sums that are left to do, which are done now."""
        want = Layout(have.spec)
        self.move(have, want, v, "an operand")
        return want

    def move(self, have: Layout, want: Layout, v: Any, cause: str) -> None:
        """Notes what it takes to change a value's layout; a value that was changed so before is there."""
        if have == want or (v, want) in self.changed:
            return
        self.changed.add((v, want))
        for exchange in self.grid.changes(have, want, bytes_of(v.aval)):
            exchange.times = self.times
            exchange.cause = f"{cause} {v.aval.str_short()}"
            if exchange.kind in ("all_reduce", "reduce_scatter"):
                exchange.bytes *= self.narrow.get(v, 1.0)
            self.totals.exchanges.append(exchange)

    # ---- equations ----------------------------------------------------------------------------------------------

    def equation(self, eqn: Any, have: list[Layout], stored: set[Any]) -> list[Layout]:
        """Goes through an equation; gives the layouts of its results."""
        name = eqn.primitive.name
        if name == "name" and str(eqn.params["name"]).startswith(MARK):
            entries = json.loads(str(eqn.params["name"]).removeprefix(MARK))
            want = Layout(self.grid.fit(entries, eqn.invars[0].aval.shape))
            self.move(have[0], want, eqn.invars[0], "a constraint on")
            return [want]
        if name == "reshape":
            return [self.reshape(eqn, have[0], stored)]
        if name == "scan":
            return self.scan(eqn, have)
        if name == "while":
            return self.loop(eqn, have)
        if name == "cond":
            return self.branches(eqn, have)
        if name in _CALLS:
            programs = _programs(eqn)
            inner = getattr(programs[0], "jaxpr", programs[0]) if programs else None
            if inner is not None and len(inner.invars) == len(have) and len(inner.outvars) == len(eqn.outvars):
                outs = self.run(programs[0], have, _as_made)
                self.narrow.update(zip(eqn.outvars, self.shares, strict=True))
                return outs
        if name in ("add", "add_any") and not self.open.isdisjoint(v for v in eqn.invars if not isinstance(v, Literal)):
            return [
                next(s for s, v in zip(have, eqn.invars, strict=True) if isinstance(v, Literal) or v not in self.open)
            ]
        axes = axes_of(eqn)
        if not axes.known:
            self.totals.whole[name] += 1
        if axes.rows is not None and have[0].spec[axes.rows]:
            sent = have[0].spec[axes.rows]
            if self.grid.parts(sent) == eqn.invars[0].aval.shape[axes.rows]:
                return self.exchanged(eqn, have, axes, axes.rows, stored)
        return self.labelled(eqn, have, axes, stored)

    def exchanged(self, eqn: Any, have: list[Layout], axes: Axes, at: int, stored: set[Any]) -> list[Layout]:
        """Rows, one a device, that are taken in another order: devices send them to each other."""
        labels = list(axes.operands[0])
        labels[at] = ("index", 0)
        sent = Exchange("permute", have[0].spec[at], self.local(eqn.invars[0], have[0]), self.times)
        sent.cause = f"rows of {eqn.invars[0].aval.str_short()}"
        self.totals.exchanges.append(sent)
        return self.labelled(eqn, have, Axes([tuple(labels), *axes.operands[1:]], axes.results), stored)

    def labelled(self, eqn: Any, have: list[Layout], axes: Axes, stored: set[Any]) -> list[Layout]:
        """Chooses which labels mesh axes divide, and counts the equation so."""
        kept = self.unsummed(eqn, have)
        count = len({n for s, labels in zip(have, axes.operands, strict=True) for n in _divided(s, labels)})
        best: tuple[float, list[Layout], list[Layout], list[Layout]] | None = None
        for given in self.choices(have, axes):
            made = self.layouts(eqn, have, axes, given, kept)
            if made is None:
                continue
            if best is not None and len(given) < count:
                break
            wants, raw, outs = made
            seconds = self.seconds_of(eqn, have, wants, raw, outs)
            if best is None or seconds < best[0]:
                best = seconds, wants, raw, outs
        assert best is not None  # no mesh axis given to any label is a choice that always fits
        _, wants, raw, outs = best
        for v, old, want in zip(eqn.invars, have, wants, strict=True):
            self.move(old, want, v, f"{eqn.primitive.name} of")
        for v, old, want in zip(eqn.outvars, raw, outs, strict=True):
            self.move(old, want, v, f"{eqn.primitive.name} to")
        self.count(eqn, wants, raw, stored)
        return outs

    def reshape(self, eqn: Any, have: Layout, stored: set[Any]) -> Layout:
        """A mesh axis stays where the elements that it keeps together stay so, alone or behind others on its axis."""
        old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
        begins: dict[str, int] = {}
        before = 1
        for n, names in zip(old, have.spec, strict=True):
            at = before
            for name in names:
                begins[name] = at
                at *= self.grid.sizes[name]
            before *= n
        entries: list[tuple[str, ...]] = []
        before = 1
        for n in new:
            taken: tuple[str, ...] = ()
            at = before
            while n > 1 and (found := next((m for m, b in begins.items() if b == at and m not in taken), None)):
                at *= self.grid.sizes[found]
                if before * n % at:
                    break
                taken = (*taken, found)
            entries.append(taken)
            before *= n
        spec = self.grid.fit(entries, new)
        kept = {name for names in spec for name in names}
        want = Layout(tuple(tuple(n for n in names if n in kept) for names in have.spec), have.unsummed)
        self.move(have, want, eqn.invars[0], "reshape of")
        if have.unsummed and new:
            self.keep_narrow(eqn)
        out = Layout(spec, have.unsummed)
        self.count(eqn, [want], [out], stored)
        return out

    def unsummed(self, eqn: Any, have: list[Layout]) -> frozenset[str]:
        """The sums that may stay undone: of what is linear in its one array, or in all of them alike."""
        arrays = [s for s, v in zip(have, eqn.invars, strict=True) if v.aval.shape or s.unsummed]
        if eqn.primitive.name not in LINEAR or not arrays or any(s != arrays[0] for s in arrays):
            return frozenset()
        if any(s.unsummed and v in self.needed for s, v in zip(have, eqn.invars, strict=True)):
            return frozenset()
        if math.prod(eqn.outvars[0].aval.shape) > max(math.prod(v.aval.shape) for v in eqn.invars):
            return frozenset()
        multiplies = eqn.primitive.name in ("mul", "div") and len(arrays) > 1
        shifted = eqn.primitive.name in ("add", "sub", "pad") and len(arrays) < len(have)
        divides = eqn.primitive.name == "div" and have[0] != arrays[0]
        if multiplies or shifted or divides:
            return frozenset()
        if arrays[0].unsummed:
            self.keep_narrow(eqn)
        return arrays[0].unsummed

    def keep_narrow(self, eqn: Any) -> None:
        """What a linear operation made wider is summed as narrow as it was."""
        shares = [self.narrow.get(v, 1.0) * v.aval.dtype.itemsize for v in eqn.invars if v.aval.shape]
        share = max(shares, default=eqn.outvars[0].aval.dtype.itemsize)
        for v in eqn.outvars:
            self.narrow[v] = min(1.0, share / v.aval.dtype.itemsize)

    def choices(self, have: list[Layout], axes: Axes) -> Iterator[dict[str, Hashable]]:
        """Ways to give mesh axes to labels, the one that moves nothing first where there is one."""
        options: dict[str, list[Hashable]] = {}
        for layout, labels in zip(have, axes.operands, strict=True):
            for names, label in zip(layout.spec, labels, strict=True):
                for name in names:
                    if label is not None and label not in options.setdefault(name, []):
                        options[name].append(label)
        # as compilers do: what operands agree on stays divided, sums over it included
        for found in options.values():
            found.extend([None] if len(found) > 1 else [])
        for chosen in itertools.product(*options.values()):
            yield dict(zip(options, chosen, strict=True))
        # where parts would be uneven
        for left_out in options:
            yield {name: found[0] for name, found in options.items() if name != left_out}
        yield {}

    def layouts(
        self, eqn: Any, have: list[Layout], axes: Axes, given: dict[str, Hashable], kept: frozenset[str]
    ) -> tuple[list[Layout], list[Layout], list[Layout]] | None:
        """Layouts of operands, of results as they are computed and as they are left; `None` where parts are uneven."""
        names_of: dict[Hashable, tuple[str, ...]] = {}
        for name, label in given.items():
            if label is not None:
                names_of[label] = (*names_of.get(label, ()), name)

        def spec(v: Any, labels: Sequence[Hashable]) -> tuple[tuple[str, ...], ...] | None:
            entries = tuple(names_of.get(label, ()) if label is not None else () for label in labels)
            return entries if self.grid.fit(entries, v.aval.shape) == entries else None

        operands = [spec(v, labels) for v, labels in zip(eqn.invars, axes.operands, strict=True)]
        results = [spec(v, labels) for v, labels in zip(eqn.outvars, axes.results, strict=True)]
        if None in operands or None in results:
            return None
        wants = [Layout(s, kept & h.unsummed) for s, h in zip(operands, have, strict=True) if s is not None]
        raw, outs = [], []
        for v, s, labels in zip(eqn.outvars, results, axes.results, strict=True):
            assert s is not None
            reduced = {n for label, names in names_of.items() if label not in labels for n in names}
            raw.append(Layout(s, frozenset(reduced) | kept))
            linear = axes.sums and (not reduced or v.aval.dtype.kind not in "biu")
            outs.append(Layout(s, (frozenset(reduced) if linear else frozenset()) | kept))
        return wants, raw, outs

    def seconds_of(
        self, eqn: Any, have: list[Layout], wants: list[Layout], raw: list[Layout], outs: list[Layout]
    ) -> float:
        """What a choice costs: exchanges before and after, sums that are left included, and computation."""
        changes, seconds = self.grid.changes, 0.0
        for v, old, want in zip(eqn.invars, have, wants, strict=True):
            if old != want and (v, want) not in self.changed:
                seconds += self.grid.seconds(changes(old, want, bytes_of(v.aval)))
        for v, old in zip(eqn.outvars, raw, strict=True):
            if old.unsummed:
                seconds += self.grid.seconds(changes(old, Layout(old.spec), bytes_of(v.aval)))
        flops, bits = _flops(eqn)
        local = sum(self.local(v, want) for v, want in zip(eqn.outvars, raw, strict=True))
        parts = self.grid.parts(sorted({n for s in (*wants, *outs) for n in s.names}))
        return seconds + max(
            self.grid.machine.product_seconds(flops / parts, bits), local / self.grid.machine.bandwidth
        )

    def count(self, eqn: Any, wants: list[Layout], raw: list[Layout], stored: set[Any]) -> None:
        """Counts the computation of an equation on one device."""
        flops, bits = _flops(eqn)
        used = sorted({n for s in (*wants, *raw) for n in s.names})
        own = flops / self.grid.parts(used)
        traffic = sum(self.local(v, s) for v, s in zip(eqn.outvars, raw, strict=True) if v in stored)
        for v, want in zip(eqn.invars, wants, strict=True):
            if not isinstance(v, Literal) and v in stored:
                traffic += self.local(v, want)
        product = eqn.primitive.name in ("dot_general", "conv_general_dilated")
        machine, totals = self.grid.machine, self.totals
        busy = machine.product_seconds(own, bits) if product else 0.0
        totals.flops += own * self.times
        totals.traffic += traffic * self.times
        totals.compute += max(busy, traffic / machine.bandwidth) * self.times

    # ---- loops and branches ------------------------------------------------------------------------------------

    def part(
        self, program: Any, layouts: Sequence[Layout], times: float, settle: Settle = _added_up
    ) -> tuple[Walk, list[Layout]]:
        """Another program from here, with totals of its own."""
        walk = Walk(self.grid, times)
        return walk, walk.run(program, layouts, settle)

    def take(self, part: Walk) -> None:
        """Adds what a part does."""
        self.totals.peak = max(self.totals.peak, part.totals.peak)
        self.totals.add(part.totals)

    def carried(self, program: Any, before: list[Layout], carry: list[Layout], after: list[Layout]) -> list[Layout]:
        """The layouts in which a loop carries its values: those that its body leaves them in.

        What only grows by terms stays terms until the loop is over.
        """
        grow = _grow(program, len(before), len(carry))
        operands = getattr(program, "jaxpr", program).invars[len(before) :]
        for turn in range(3):
            walk = Walk(self.grid)
            walk.open = {operands[k] for k in grow} if turn == 0 else set()
            left = walk.run(program, [*before, *carry, *after], self.settled(grow))[: len(carry)]
            if left == carry:
                break
            carry = left
        return carry

    @staticmethod
    def settled(grow: set[int]) -> Settle:
        """Leaves the results that grow by terms as they are made; others are added up."""
        return lambda k, made: made if k in grow else Layout(made.spec)

    def scan(self, eqn: Any, have: list[Layout]) -> list[Layout]:
        """A loop of known length; what is stacked has an undivided axis in front."""
        params, (program,) = eqn.params, _programs(eqn)
        consts, count, length = params["num_consts"], params["num_carry"], params["length"]
        before = [self.summed(v, s) for v, s in zip(eqn.invars[:consts], have[:consts], strict=True)]
        rows = []
        for v, layout in zip(eqn.invars[consts + count :], have[consts + count :], strict=True):
            want = Layout(((), *layout.spec[1:]))
            self.move(layout, want, v, "scan over")
            rows.append(Layout(layout.spec[1:]))
        start = [Layout(s.spec) for s in have[consts : consts + count]]
        carry = self.carried(program, before, start, rows)
        for v, old, want in zip(eqn.invars[consts:], have[consts : consts + count], carry, strict=False):
            self.move(old, want, v, "scan carries")
        added_up = self.settled(_grow(program, consts, count))

        def settle(k: int, made: Layout) -> Layout:
            """Rows of a gradient are left in the parts in which the rows of its parameter are; others stay terms."""
            shape = eqn.outvars[k].aval.shape
            for v, layout in zip(eqn.invars[consts + count :], rows, strict=True):
                if k >= count and made.unsummed and v.aval.shape == shape and made.unsummed <= set(layout.names):
                    return layout
            return made if k >= count else added_up(k, made)

        part, outs = self.part(program, [*before, *carry, *rows], self.times * length, settle)
        self.take(part)
        self.narrow.update(zip(eqn.outvars, part.shares, strict=True))
        for v, old, want in zip(eqn.outvars, outs, carry, strict=False):
            for exchange in self.grid.changes(old, want, bytes_of(v.aval)):
                exchange.times, exchange.cause = self.times * length, f"scan carries {v.aval.str_short()}"
                self.totals.exchanges.append(exchange)
        return [*carry, *(Layout(((), *s.spec), s.unsummed) for s in outs[count:])]

    def loop(self, eqn: Any, have: list[Layout]) -> list[Layout]:
        """A loop of unknown length counts once."""
        params = eqn.params
        conditions, consts = params["cond_nconsts"], params["body_nconsts"]
        ready = [self.summed(v, s) for v, s in zip(eqn.invars, have, strict=True)]
        before, start = ready[conditions : conditions + consts], ready[conditions + consts :]
        carry = self.carried(params["body_jaxpr"], before, start, [])
        for v, old, want in zip(eqn.invars[conditions + consts :], start, carry, strict=True):
            self.move(old, want, v, "while carries")
        settle = self.settled(_grow(params["body_jaxpr"], consts, len(carry)))
        self.take(self.part(params["cond_jaxpr"], [*ready[:conditions], *carry], self.times)[0])
        self.take(self.part(params["body_jaxpr"], [*before, *carry], self.times, settle)[0])
        self.totals.open_loops += 1
        return carry

    def branches(self, eqn: Any, have: list[Layout]) -> list[Layout]:
        """The slowest branch counts; results that branches leave differently are whole afterwards."""
        ready = [self.summed(v, s) for v, s in zip(eqn.invars, have, strict=True)]
        made = [self.part(b, ready[1:], self.times) for b in eqn.params["branches"]]
        slowest = max(made, key=lambda m: m[0].totals.compute + self.grid.seconds(m[0].totals.exchanges))
        self.take(slowest[0])
        outs = []
        for k, v in enumerate(eqn.outvars):
            agreed = slowest[1][k] if len({m[1][k] for m in made}) == 1 else _whole(v)
            self.move(slowest[1][k], agreed, v, "cond to")
            outs.append(agreed)
        return outs


def _programs(eqn: Any) -> list[Any]:
    from ferrax.extend.core import jaxprs_in_params

    return list(jaxprs_in_params(eqn.params))


def _readers(program: Any) -> dict[Any, list[Any]]:
    """The equations that read each value."""
    readers: dict[Any, list[Any]] = {}
    for eqn in program.eqns:
        for v in eqn.invars:
            if not isinstance(v, Literal):
                readers.setdefault(v, []).append(eqn)
    return readers


def _grow(program: Any, first: int, count: int) -> set[int]:
    """Which carried values a loop's body only adds something to."""
    program = getattr(program, "jaxpr", program)
    readers, grow = _readers(program), set()
    for k, (v, out) in enumerate(zip(program.invars[first : first + count], program.outvars[:count], strict=True)):
        match readers.get(v, []):
            case [eqn] if eqn.primitive.name in ("add", "add_any") and eqn.outvars[0] == out:
                grow.update([k] if all(x.aval.shape == v.aval.shape for x in eqn.invars) else [])
    return grow


def _needed(program: Any) -> set[Any]:
    """The values that an operation reads which is not linear."""

    def linear(eqn: Any) -> bool:
        arrays = sum(bool(v.aval.shape) for v in eqn.invars)
        return eqn.primitive.name in LINEAR and (arrays < 2 or eqn.primitive.name not in ("mul", "div"))

    found = (eqn.invars for eqn in program.eqns if not linear(eqn))
    return {v for operands in found for v in operands if not isinstance(v, Literal)}


def _stored(program: Any, donated: Sequence[Any]) -> tuple[set[Any], dict[int, list[Any]]]:
    """The values that are in memory, and after which equation each of those that may go is read for the last time."""
    stored: set[Any] = {*program.invars, *program.constvars}
    own = {v for v in program.outvars if not isinstance(v, Literal)}
    reads: dict[Any, int] = {}
    for at, eqn in enumerate(program.eqns):
        apart = eqn.primitive.name in _APART or eqn.primitive.name in _CALLS
        own.update(eqn.outvars if apart else ())
        for v in eqn.invars:
            if not isinstance(v, Literal):
                reads[v] = at
                own.update((v,) if apart or eqn.primitive.name.startswith("reduce_") else ())
    # one number at every place: each device makes its part where it is read
    own -= {
        eqn.outvars[0]
        for eqn in program.eqns
        if eqn.primitive.name == "broadcast_in_dim" and not eqn.invars[0].aval.shape
    }
    last: dict[int, list[Any]] = {}
    results = {v for v in program.outvars if not isinstance(v, Literal)}
    for v in (own - stored | set(donated)) - results:
        last.setdefault(reads.get(v, len(program.eqns)), []).append(v)
    return stored | own, last


def _flops(eqn: Any) -> tuple[float, int]:
    """Additions and multiplications of a whole operation, and the bits of its operands' elements."""
    sizes = [math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars)]
    bits = getattr(eqn.invars[0].aval.dtype, "itemsize", 4) * 8 if eqn.invars else 32
    name, out = eqn.primitive.name, math.prod(eqn.outvars[0].aval.shape) if eqn.outvars else 0
    if name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        return 2.0 * out * math.prod(eqn.invars[0].aval.shape[i] for i in contracted), bits
    if name == "conv_general_dilated":
        kernel = eqn.invars[1].aval.shape
        features = kernel[eqn.params["dimension_numbers"].rhs_spec[0]]
        return 2.0 * out * math.prod(kernel) / max(features, 1), bits
    if name.startswith(("reduce_", "cum")):
        return float(sizes[0]), bits
    return (0.0 if name in _MOVES else float(out)), bits
