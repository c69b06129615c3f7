"""What divides the axes of arrays: a tuple of names of mesh axes for each, and how those of several arrays go together.

Read next: `_propagation.py` for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["Spec", "dividing", "free", "like_operands", "longest"]

#: For every axis of an array the mesh axes that divide it; `None` when nothing is known of the array.
Spec = tuple[tuple[Any, ...], ...]


def free(entries: Sequence[tuple[Any, ...]]) -> Spec:
    """Entries without the mesh axes that an earlier one has."""
    seen: set[Any] = set()
    out = []
    for names in entries:
        kept = tuple(n for n in names if n not in seen)
        kept = names if kept == names else ()
        seen.update(kept)
        out.append(kept)
    return tuple(out)


def like_operands(eqn: Any, known: Sequence[Any], shape: Sequence[int]) -> Spec | None:
    """Axis by axis what the operands of the result's shape have, without the mesh axes that an earlier one has."""
    entries = dividing(eqn, known, shape)
    return None if entries is None else free(entries)


def dividing(eqn: Any, known: Sequence[Any], shape: Sequence[int]) -> list[tuple[Any, ...]] | None:
    """Axis by axis what the operands of the result's shape have, the most divided first; axes of one are broadcast."""
    fitting = []
    for v, s in zip(eqn.invars, known, strict=True):
        sizes = tuple(v.aval.shape)
        if s is not None and len(sizes) == len(shape) and all(a in (1, b) for a, b in zip(sizes, shape, strict=True)):
            fitting.append([names if a == b else () for names, a, b in zip(s, sizes, shape, strict=True)])
    if not fitting:
        return None
    return [max((s[i] for s in fitting), key=len) for i in range(len(shape))]


def longest(known: Sequence[Any]) -> list[Any]:
    """For each axis of operands of one rank the names of the one that is divided most."""
    return [max(entries, key=len) for entries in zip(*(s for s in known if s is not None), strict=True)]
