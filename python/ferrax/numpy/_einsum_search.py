"""Orders of contraction for `einsum`: which pair of operands comes next.

Few operands are searched exhaustively, more of them by branch and bound with a heuristic that says which pairs to try
first, many greedily. Searches and ties are those of `opt_einsum` (Smith and Gray, "opt_einsum - A Python package for
optimizing contraction order for einsum-like expressions", 2018), as JAX asks it: results round alike. Operands and
what becomes of them are numbered in the order in which they come to be. Read next: `_einsum.py`, which plans the steps.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ferrax.numpy._einsum_path import operations

__all__ = ["contraction_order"]

_Labels = frozenset[Any]
_Steps = tuple[tuple[int, int], ...]

#: How many pairs branch and bound tries at each step, by name and by the most operands that "auto" has it for.
_BRANCHES = {"branch-all": None, "branch-2": 2, "branch-1": 1}
_AUTO = ((4, "optimal"), (6, "branch-all"), (8, "branch-2"), (14, "branch-1"))
_GREEDY = ("greedy", "eager", "opportunistic")

#: A branch that is this much worse than the best one of its depth is given up.
_HOPELESS = 4


def contraction_order(
    sets: Sequence[_Labels], output: _Labels, sizes: Mapping[Any, int], optimize: Any
) -> list[tuple[int, ...]]:
    """The steps of a contraction, as positions among the operands that are left.

    Args:
      sets: the labels of each operand.
      output: the labels of the result.
      sizes: the size of each label.
      optimize: "optimal", "branch-all", "branch-2", "branch-1", "greedy" (or "eager", "opportunistic"); "auto" chooses
        by the number of operands, and True is "optimal".

    Raises:
      KeyError: there is no search of this name.
      NotImplementedError: it is one of `opt_einsum` that is not here.
    """
    n, name = len(sets), "optimal" if optimize is True else str(optimize).lower()
    if name == "auto":
        name = next((search for most, search in _AUTO if n <= most), "greedy")
    if name in _GREEDY:
        steps = tuple(_Greedy(sets, output, sizes).steps())
    elif name == "optimal":
        steps = _Search(output, sizes).exact(sets)
    elif name in _BRANCHES:
        steps = _Search(output, sizes).bounded(sets, _BRANCHES[name])
    elif name in ("auto-hq", "dp", "dynamic-programming", "random-greedy", "random-greedy-128"):
        raise NotImplementedError(f"einsum with optimize={name!r} is not implemented: use 'auto' or 'optimal'")
    else:
        known = ", ".join(("auto", "optimal", *_BRANCHES, *_GREEDY))
        raise KeyError(f"Path optimizer '{name}' not found, valid options are {known}.")
    left, path = list(range(n)), []
    for number, pair in enumerate(steps):
        path.append(tuple(sorted(map(left.index, pair))))
        left = [i for i in left if i not in pair] + [n + number]
    return path


def _volume(labels: _Labels, sizes: Mapping[Any, int]) -> int:
    return math.prod(sizes[c] for c in labels)


class _Search:
    """Depth-first searches over pairs.

    Numbers of the operands that are left stand in sets, whose order decides among equals.
    """

    def __init__(self, output: _Labels, sizes: Mapping[Any, int]):
        self._output, self._sizes = output, sizes
        self._merged: dict[tuple[_Labels, _Labels], tuple[_Labels, int]] = {}
        self._steps: _Steps = ()
        self._cost = self._largest = math.inf
        self._progress: dict[int, float] = {}

    def _merge(self, sets: Sequence[_Labels], left: set[int], pair: tuple[int, int]) -> tuple[_Labels, int]:
        """The labels that remain of a pair, and what the contraction costs; known pairs of labels cost the same."""
        one, other = (sets[i] for i in pair)
        if (one, other) not in self._merged:
            keep = self._output.union(*(sets[i] for i in left - set(pair)))
            cost = operations(_volume(one | other, self._sizes), 2, bool((one & other) - keep))
            self._merged[one, other] = (one | other) & keep, cost
        return self._merged[one, other]

    @staticmethod
    def _pairs(left: set[int]) -> Iterator[tuple[int, int]]:
        return ((min(pair), max(pair)) for pair in itertools.combinations(left, 2))

    def exact(self, sets: Sequence[_Labels]) -> _Steps:
        """The first of the cheapest orders."""

        def go(steps: _Steps, sets: tuple[_Labels, ...], left: set[int], cost: int) -> None:
            if len(left) == 1:
                self._cost, self._steps = cost, steps
                return
            for pair in self._pairs(left):
                labels, more = self._merge(sets, left, pair)
                if cost + more < self._cost:
                    go((*steps, pair), (*sets, labels), left - set(pair) | {len(sets)}, cost + more)

        go((), tuple(sets), set(range(len(sets))), 0)
        return self._steps

    def bounded(self, sets: Sequence[_Labels], branches: int | None) -> _Steps:
        """The cheapest order among those that take one of the most promising pairs at each step."""

        def go(steps: _Steps, sets: tuple[_Labels, ...], left: set[int], cost: int, largest: int) -> None:
            if len(left) == 1:
                self._cost, self._largest, self._steps = cost, largest, steps
                return
            sharing = [p for p in self._pairs(left) if not sets[p[0]].isdisjoint(sets[p[1]])]
            found = self._candidates(sets, left, sharing, cost, largest)
            if not found:
                found = self._candidates(sets, left, self._pairs(left), cost, largest)
            for _, _, so_far, at_most, pair, labels in found[:branches]:
                go((*steps, pair), (*sets, labels), left - set(pair) | {len(sets)}, so_far, at_most)

        go((), tuple(sets), set(range(len(sets))), 0, 0)
        return self._steps

    def _candidates(
        self, sets: Sequence[_Labels], left: set[int], pairs: Any, cost: int, largest: int
    ) -> list[tuple[int, int, int, int, tuple[int, int], _Labels]]:
        """The pairs that may lead to something better, the most promising first: those that save memory."""
        found = []
        for pair in pairs:
            labels, more = self._merge(sets, left, pair)
            size = _volume(labels, self._sizes)
            so_far, at_most = cost + more, max(largest, size)
            if (so_far, at_most) >= (self._cost, self._largest):
                continue
            best = self._progress.get(len(sets), math.inf)
            if so_far < best:
                self._progress[len(sets)] = so_far
            elif so_far > _HOPELESS * best:
                continue
            saved = size - sum(_volume(sets[i], self._sizes) for i in pair)
            found.append((saved, more, so_far, at_most, pair, labels))
        return sorted(found, key=lambda candidate: candidate[:5])


class _Greedy:
    """Products of equal operands first, then the pairs that save most memory, then outer products."""

    def __init__(self, sets: Sequence[_Labels], output: _Labels, sizes: Mapping[Any, int]):
        self._sets, self._sizes = sets, sizes
        self._output = output | frozenset.intersection(*sets)
        self._left: dict[_Labels, int] = {}  # operands by their labels
        self._numbers = itertools.count(len(sets))

    def steps(self) -> Iterator[tuple[int, int]]:
        """The pairs, as numbers."""
        for number, labels in enumerate(self._sets):
            if labels in self._left:
                yield self._left[labels], number
                number = next(self._numbers)
            self._left[labels] = number
        yield from self._by_memory()
        yield from self._outer_products()

    def _with(self, label: Any) -> list[_Labels]:
        return [labels for labels in self._left if label in labels]

    def _candidate(self, one: _Labels, other: _Labels) -> tuple[int, int, int, _Labels, _Labels, _Labels]:
        counts = {c: len(self._with(c)) for c in (one | other) - self._output}
        result = frozenset(
            c for c in one | other if c in self._output or counts[c] > (2 if c in one and c in other else 1)
        )
        saved = _volume(result, self._sizes) - _volume(one, self._sizes) - _volume(other, self._sizes)
        (low, one), (high, other) = sorted([(self._left[one], one), (self._left[other], other)], key=lambda p: p[0])
        return saved, high, low, one, other, result

    def _by_memory(self) -> Iterator[tuple[int, int]]:
        queue: list[tuple[tuple[int, int, int], int, tuple[_Labels, _Labels, _Labels]]] = []
        entry = itertools.count()

        def push(one: _Labels, others: list[_Labels]) -> None:
            best = min((self._candidate(one, other) for other in others), key=lambda candidate: candidate[:3])
            heapq.heappush(queue, (best[:3], next(entry), best[3:]))

        for label in dict.fromkeys(c for labels in self._left for c in labels if c not in self._output):
            holders = sorted(self._with(label), key=self._left.__getitem__)
            for i, one in enumerate(holders[:-1]):
                push(one, holders[i + 1 :])
        while queue:
            _, _, (one, other, result) = heapq.heappop(queue)
            if one not in self._left or other not in self._left:
                continue
            yield self._left.pop(one), self._left.pop(other)
            if result in self._left:
                yield self._left[result], next(self._numbers)
            self._left[result] = next(self._numbers)
            others = [labels for labels in self._left if labels != result and labels & result - self._output]
            if others:
                push(result, others)

    def _outer_products(self) -> Iterator[tuple[int, int]]:
        queue = [(_volume(labels & self._output, self._sizes), number, labels) for labels, number in self._left.items()]
        heapq.heapify(queue)
        _, number, labels = heapq.heappop(queue)
        while queue:
            _, other, more = heapq.heappop(queue)
            yield min(number, other), max(number, other)
            labels = (labels | more) & self._output
            made = (_volume(labels, self._sizes), next(self._numbers), labels)
            _, number, labels = heapq.heappushpop(queue, made)
