"""Shardings of traced values over explicit axes of the mesh in use, which their types have.

A traced value is followed to what it was computed from: through derivatives and `vmap` to the value inside, and in a
program to its arguments, from which the rules for results lead back to it. Read next: `_propagation.py` for the rules.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax
from ferrax.sharding._context import get_abstract_mesh
from ferrax.sharding._mesh import AxisType, Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import concrete
from ferrax.sharding._propagation import shardings

__all__ = ["sharding_of"]


def sharding_of(x: Any) -> NamedSharding | None:
    """The sharding that a value of a trace will have, as far as the trace says; of an array the one that it has.

    Args:
      x: array, traced value, or anything with a sharding.
    """
    if not _ferrax.is_tracer(x):
        found = concrete(getattr(x, "sharding", None))
        return found if isinstance(found, NamedSharding) and isinstance(found.mesh, Mesh) else None
    if AxisType.Explicit not in get_abstract_mesh().axis_types:
        return None
    inside = _ferrax.traced_inside(x)
    if inside is not None:
        value, axis = inside
        return _without(sharding_of(value), axis)
    recorded = _ferrax.traced_program(x)
    if recorded is None:
        return None
    program, arguments = recorded
    leading = len(program.in_avals) + len(program.captured) - len(arguments)
    (found,) = shardings(program, [*[None] * leading, *map(sharding_of, arguments)])
    return found if isinstance(found, NamedSharding) else None


def _without(sharding: NamedSharding | None, axis: int | None) -> NamedSharding | None:
    """The sharding of a part of what has one, which does not have this axis."""
    if sharding is None or axis is None or axis >= len(sharding.spec):
        return sharding
    entries = (*sharding.spec[:axis], *sharding.spec[axis + 1 :])
    return sharding.update(spec=sharding.spec.update(partitions=entries))
