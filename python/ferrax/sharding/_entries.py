"""What divides the axes of arrays: a tuple of names of mesh axes for each, and how those of several arrays go together.

Read next: `_propagation.py` for programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "LEADING",
    "ShardingTypeError",
    "Spec",
    "contracted",
    "dividing",
    "fitting",
    "free",
    "like_operands",
    "leading",
    "longest",
    "whole",
]

#: Operations on arrays of keys or elements that split them into parts, or put parts together: see `leading`.
LEADING = ("bitcast_convert_type", "random_bits", "random_split", "random_unwrap", "random_wrap")
#: For every axis of an array the mesh axes that divide it; `None` when nothing is known of the array.
Spec = tuple[tuple[Any, ...], ...]


class ShardingTypeError(Exception):
    """The sharding of a result over explicit axes of a mesh does not follow from those of the operands."""


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


def leading(eqn: Any, known: Sequence[Any]) -> Spec | None:
    """Axes of arrays of keys or elements keep what divides them; last ones, of their parts, come undivided, and go."""
    entries, rank = known[0], len(eqn.outvars[0].aval.shape)
    return None if entries is None else (*entries[:rank], *((),) * (rank - len(entries)))


def whole(eqn: Any, known: Sequence[Any]) -> list[Spec]:
    """What divides each operand; nothing where that is unknown."""
    return [s or ((),) * len(v.aval.shape) for v, s in zip(eqn.invars, known, strict=True)]


def fitting(entries: Sequence[tuple[Any, ...]], shape: Sequence[int], sizes: Mapping[Any, int]) -> Spec:
    """Entries of an array of some shape, without those whose axes of a mesh do not divide the array's axis.

    Args:
      entries: what would divide each axis.
      shape: the shape.
      sizes: the sizes of the mesh's axes.
    """
    parts = (math.prod(sizes[name] for name in names) for names in entries)
    return tuple(names if n % k == 0 else () for names, n, k in zip(entries, shape, parts, strict=True))


def contracted(eqn: Any, known: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What divides the axes of a product: those of its batch, then the free ones of both operands."""
    (contract_x, contract_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    x, y = whole(eqn, known)
    batch = [x[i] or y[j] for i, j in zip(batch_x, batch_y, strict=True)]
    rows = [names for i, names in enumerate(x) if i not in contract_x and i not in batch_x]
    columns = [names for i, names in enumerate(y) if i not in contract_y and i not in batch_y]
    return [*batch, *rows, *columns]
