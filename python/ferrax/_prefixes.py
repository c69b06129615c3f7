"""Leaves of a prefix for the leaves of a tree: shardings, specs or places of a whole subtree at once.

`None` may be a leaf of a prefix ("nothing asked for"); in the tree it is, as everywhere, a node without leaves. Read
next: `tree_util.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferrax import tree_util

__all__ = ["prefix_leaves", "specification_error"]


class _Boxed:
    """A leaf of a prefix, whatever it is."""

    def __init__(self, leaf: Any) -> None:
        self.leaf = leaf

    def __repr__(self) -> str:
        return repr(self.leaf)


def prefix_leaves(prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """For each leaf of a tree, the leaf of the prefix that stands for it.

    Args:
      prefix: a tree that `tree` extends at its leaves.
      tree: the tree.
      is_leaf: asked at each node of the prefix; where it returns True the node is a leaf.

    Raises:
      ValueError: when it is not a prefix, with the path where the trees differ.

    >>> prefix_leaves((1, None), ({"a": 5, "b": None}, [6, 7]), lambda x: x is None)
    [1, None, None]
    """
    leaves, structure = tree_util.tree_flatten(prefix, is_leaf=is_leaf)
    try:
        parts = structure.flatten_up_to(tree)
    except ValueError:
        pass  # what follows says where the trees differ
    else:
        counts = [tree_util.tree_structure(part).num_leaves for part in parts]
        return [leaf for leaf, count in zip(leaves, counts, strict=True) for _ in range(count)]
    boxed = tree_util.tree_map(_Boxed, prefix, is_leaf=is_leaf)
    return [box.leaf for box in tree_util.tree_leaves(tree_util.tree_broadcast(boxed, tree))]


def specification_error(
    name: str, prefix: Any, tree: Any, is_leaf: Callable[[Any], bool] | None, otherwise: str
) -> ValueError:
    """The error of a specification (of axes, of places) that is no prefix of a tree, with all places where they differ.

    Args:
      name: the specification's, `"in_axes"` say.
      prefix: the specification.
      tree: what it is for.
      is_leaf: as in `prefix_leaves`.
      otherwise: what is said where no such place is found.
    """
    from ferrax._src.tree_util import prefix_errors

    found = [str(make(name)) for make in prefix_errors(prefix, tree, is_leaf)] or [otherwise]
    details = "\n  ".join(found)
    return ValueError(
        f"{name} specification must be a tree prefix of the corresponding value; \n  Mismatch details ({len(found)} "
        f"found):\n  {details}"
    )
