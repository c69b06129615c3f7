"""Two values that are divided over devices in the same way."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ferrax import _ferrax, tree_util
from ferrax._boundary import expose as _expose
from ferrax.sharding import _propagation
from ferrax.sharding._entries import free, longest

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Both values, divided alike: each axis as the one of them whose axis is divided most.

    Args:
      x: tree of arrays.
      y: tree of arrays of the same shapes.

    Returns:
      Both.

    Raises:
      ValueError: structures or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax.experimental.shard_alike import shard_alike
    >>> x, y = shard_alike(jnp.zeros(2), jnp.ones(2))
    >>> print(x, y)
    [0. 0.] [1. 1.]
    """
    xs, x_tree = tree_util.tree_flatten(x)
    ys, y_tree = tree_util.tree_flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should be equal. Got x_tree: {x_tree}, y_tree: {y_tree}")
    pairs = []
    for a, b in zip(xs, ys, strict=True):
        left, right = _ferrax.shape(a), _ferrax.shape(b)
        if left != right:
            raise ValueError(
                f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {left} and `y` leaf shape: "
                f"{right}."
            )
        pairs.append(_alike()(a, b))
    return tree_util.tree_unflatten(x_tree, [a for a, _ in pairs]), tree_util.tree_unflatten(
        y_tree, [b for _, b in pairs]
    )


@functools.cache
def _alike() -> Any:
    """The program of two values that has a rule of its own for how they are divided."""

    def rule(mesh: Any, known: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
        ranks = [len(a.shape) for a in operands]
        said = [entries or ((),) * rank for entries, rank in zip(known, ranks)]
        common = longest([entries[len(entries) - min(ranks) :] for entries in said])  # of a mapped value there are more
        return [free([*entries[: len(entries) - min(ranks)], *common]) for entries in said] if any(known) else None

    def alike(a: Any, b: Any) -> tuple[Any, Any]:
        return a, b

    return _propagation.with_rule(alike, rule, mapped=True)


_expose(globals())
