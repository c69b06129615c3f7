"""References as arguments of functions mapped by `shard_map`: each device reads and writes its part.

The function is mapped as one of the values that the references hold, with these values at its end as further results,
which are cut as the arguments are. Read next: `_shard_map.py`, which asks; `ferrax/_refs.py` for references.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._refs import make, read, write
from ferrax._refs_calls import argument_names, check_once, check_result

__all__ = ["called"]


def called(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    specs_of: Callable[[tuple[Any, ...]], list[Any]],
    mapped: Callable[[Callable[..., Any], list[Any]], Callable[..., Any]],
) -> Any:
    """Calls a mapped function whose arguments have references.

    Args:
      f: the function of one device's parts.
      args: the arguments, references among them.
      specs_of: how arguments are cut: a spec for each leaf, of arguments with values in the references' places.
      mapped: maps a function that gives, beside `f`'s result, values with these specs.

    Returns:
      `f`'s result.

    Raises:
      ValueError: a reference is there twice, or is returned.
    """
    leaves, tree = tree_util.tree_flatten(args)
    at = [i for i, x in enumerate(leaves) if _ferrax.is_reference(x)]
    refs = [leaves[i] for i in at]
    check_once(f, "shard_map", args, {}, refs, ())
    names = argument_names(f, args, {})
    values = tree.unflatten([read(x) if i in at else x for i, x in enumerate(leaves)])

    @functools.wraps(f)
    def of_values(*parts: Any) -> tuple[Any, list[Any]]:
        inside = tree_util.tree_leaves(parts)
        for i in at:
            inside[i] = make(inside[i])
        given = [inside[i] for i in at]
        out = f(*tree.unflatten(inside))
        check_result(f, "shard_map", out, given, names)
        return out, [read(ref) for ref in given]

    specs = specs_of(values)
    out, after = mapped(of_values, [specs[i] for i in at])(*values)
    for ref, value in zip(refs, after, strict=True):
        write(ref, value)
    return out
