"""What the steps of an `einsum` cost, and the table that says it.

The table has the columns of `opt_einsum`, whose words for kinds of products ("GEMM", "TDOT") readers know: which
routine of BLAS could compute a step. The engine chooses by itself. Read next: `_einsum.py`, which plans the steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple


class _Step(NamedTuple):
    """One contraction of a path."""

    operands: list[str]
    result: str
    remaining: list[str]  # what there is after it

    @property
    def labels(self) -> set[str]:
        return set().union(*self.operands)


class PathInfo:
    """What a contraction path costs; printed as a table.

    Attributes:
      eq: the whole contraction.
      path: the steps, as positions of operands.
      naive_cost: operations of one step over all labels.
      opt_cost: operations of the steps of the path.
      largest_intermediate: elements of the largest result of a step.
    """

    def __init__(self, eq: str, sizes: Mapping[str, int], path: Sequence[tuple[int, ...]]):
        self.eq, self.path, self._sizes = eq, list(path), sizes
        terms, self._output = eq.split("->")
        inputs = terms.split(",")
        self._steps = _steps(inputs, self._output, self.path)
        labels = "".join(inputs)
        self.naive_cost = operations(self._volume(set(labels)), len(inputs), len(labels) > len(set(labels)))
        self.opt_cost = sum(
            operations(self._volume(s.labels), len(s.operands), bool(s.labels - set(s.result))) for s in self._steps
        )
        self.largest_intermediate = max((self._volume(set(s.result)) for s in self._steps), default=0)

    def _volume(self, labels: set[str]) -> int:
        return math.prod(self._sizes[c] for c in labels)

    def __repr__(self) -> str:
        labels = set(self.eq) - set(",->")
        speedup = Decimal(self.naive_cost) / Decimal(self.opt_cost) if self.opt_cost else Decimal(1)
        lines = [
            f"  Complete contraction:  {self.eq}",
            f"         Naive scaling:  {len(labels)}",
            f"     Optimized scaling:  {max((len(s.labels) for s in self._steps), default=0)}",
            f"      Naive FLOP count:  {Decimal(self.naive_cost):.3e}",
            f"  Optimized FLOP count:  {Decimal(self.opt_cost):.3e}",
            f"   Theoretical speedup:  {speedup:.3e}",
            f"  Largest intermediate:  {Decimal(self.largest_intermediate):.3e} elements",
            "-" * 80,
            f"{'scaling':>6} {'BLAS':>11} {'current':>22} {'remaining':>37}",
            "-" * 80,
        ]
        for step in self._steps:
            current = f"{','.join(step.operands)}->{step.result}"
            remaining = f"{','.join(step.remaining)}->{self._output}"
            width = max(0, 56 - max(22, len(current)))
            lines.append(f"{len(step.labels):>4} {_routine(step) or '0':>14} {current:>22}    {remaining:>{width}}")
        return "\n".join(lines)


def operations(volume: int, operands: int, inner: bool) -> int:
    """Multiplications, and an addition for each where labels are summed over."""
    return volume * (max(1, operands - 1) + inner)


def _steps(inputs: Sequence[str], output: str, path: Sequence[tuple[int, ...]]) -> list[_Step]:
    """What each step contracts; the labels of a result come in the order of its operands."""
    there = list(inputs)
    steps = []
    for number, positions in enumerate(path):
        operands = [there.pop(i) for i in sorted(positions, reverse=True)]
        if number == len(path) - 1:
            result = output
        else:
            wanted = set(output).union(*there)
            result = "".join(dict.fromkeys(c for c in "".join(operands) if c in wanted))
        there.append(result)
        steps.append(_Step(operands, result, list(there)))
    return steps


def _routine(step: _Step) -> str | None:
    """The kind of BLAS routine that computes a step; None where it is none."""
    if len(step.operands) != 2:
        return None
    left, right = step.operands
    for c in step.labels:
        count = left.count(c) + right.count(c)
        repeated = left.count(c) > 1 or right.count(c) > 1
        if repeated or (count == 2) == (c in step.result):
            return None
    summed = len(step.labels - set(step.result))
    if not summed:
        return "OUTER/EINSUM"
    if left == right:
        return "DOT"
    if set(left) == set(right):
        return "DOT/EINSUM"
    if {left[-summed:], left[:summed]} & {right[-summed:], right[:summed]}:
        return "GEMM"
    whole = len(left) == summed or len(right) == summed
    return "GEMV/EINSUM" if whole else "TDOT"
