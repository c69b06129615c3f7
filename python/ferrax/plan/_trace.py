"""Tracing a function with the layouts that it asks for noted in its program.

Over a mesh without devices a constraint puts nothing anywhere. While a plan is made, one leaves a name on its value
that says which mesh axes are asked for; names pass through derivatives, maps and loops as values do.

Read next: `_partition.py`, which reads the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ferrax import tree_util
from ferrax.plan._partition import MARK
from ferrax.sharding._placement import asked
from ferrax.sharding._spec import UNCONSTRAINED, entry_names

__all__ = ["traced"]


def _note(x: Any, sharding: Any) -> Any:
    from ferrax.ad_checkpoint import checkpoint_name

    if any(e is UNCONSTRAINED for e in sharding.spec):
        return x
    entries = [list(entry_names(e)) for e in sharding.spec]
    entries += [[]] * (x.ndim - len(entries))
    return checkpoint_name(x, MARK + json.dumps(entries))


@contextmanager
def _noting() -> Iterator[None]:
    before, asked.note = asked.note, _note
    try:
        yield
    finally:
        asked.note = before


def traced(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], mesh: Any) -> tuple[Any, list[Any]]:
    """The program of a function of abstract arguments, and the sharding of each operand.

    Args:
      f: the function; jitted or not.
      args: positional arguments: arrays, or `ShapeDtypeStruct`s, which may have shardings over a mesh.
      kwargs: keyword arguments, likewise.
      mesh: the mesh without devices that is in use meanwhile.

    Raises:
      TypeError: an argument has no shape and dtype.
    """
    import ferrax
    from ferrax.sharding import use_abstract_mesh

    leaves = tree_util.tree_leaves((args, kwargs))
    for leaf in leaves:
        if not hasattr(leaf, "shape") and not isinstance(leaf, (bool, int, float, complex)):
            raise TypeError(f"a plan needs arrays or ShapeDtypeStructs as arguments, got {leaf!r}")
    with _noting(), use_abstract_mesh(mesh):
        program = ferrax.make_jaxpr(lambda a, k: f(*a, **k))(tuple(args), kwargs)
    return program, [getattr(leaf, "sharding", None) for leaf in leaves]
