"""Trees as their leaves and their structure, with functions of the leaves that leave the structure alone.

Static values stand in the structure, as nodes without leaves. Read next: `ferrax/tree_util.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ferrax._src.util import merge_lists, partition_list
from ferrax.tree_util import PyTreeDef, default_registry, register_static, treedef_children, treedef_tuple

__all__ = ["FlatTree", "Static"]


@register_static
@dataclasses.dataclass(frozen=True)
class Static:
    """A value in the structure of a tree; one of another type is another one, though it be equal."""

    val: Any

    def __eq__(self, other: object) -> bool:
        return type(other) is Static and type(self.val) is type(other.val) and bool(self.val == other.val)

    def __hash__(self) -> int:
        return hash(self.val)


class FlatTree:
    """The leaves of a tree, and its structure; made by `flatten` and its relatives.

    Args:
      vals: the leaves.
      treedef: the structure, in which static values are `Static` nodes.
      statics: which parts of the tree are static: False for none, True for all, or a tuple or dict of such.
      registry: says which values are nodes.

    >>> tree = FlatTree.flatten({"a": 1, "b": (2, 3)})
    >>> tree.map(lambda x: 10 * x).unflatten()
    {'a': 10, 'b': (20, 30)}
    """

    def __init__(self, vals: Iterable[Any], treedef: PyTreeDef, statics: Any, registry: Any = default_registry):
        self.vals = tuple(vals)
        self.tree = treedef
        self.statics = statics
        self.registry = registry

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FlatTree):
            return False
        same = self.vals == other.vals and self.tree == other.tree and self.statics == other.statics
        return same and self.registry is other.registry

    def __hash__(self) -> int:
        return hash((self.vals, self.tree))

    def __repr__(self) -> str:
        return f"FlatTree({self.vals})"

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __len__(self) -> int:
        return self.len

    # --- made of trees

    @staticmethod
    def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None, registry: Any = default_registry) -> FlatTree:
        """That of a tree without static values."""
        vals, treedef = registry.flatten(tree, is_leaf)
        return FlatTree(vals, treedef, False, registry=registry)

    @staticmethod
    def flatten_args(*arg_trees: Any, registry: Any = default_registry) -> FlatTree:
        """That of positional arguments, beside no keyword arguments."""
        return FlatTree.flatten((arg_trees, {}), registry=registry)

    @staticmethod
    def flatten_static_argnums(
        args: tuple[Any, ...], static_argnums: Sequence[int], registry: Any = default_registry
    ) -> FlatTree:
        """That of arguments, some of which are static by their positions."""
        if not static_argnums:
            return FlatTree.flatten(args, registry=registry)
        places = {i % len(args) if i < 0 else i for i in static_argnums}
        statics = tuple(i in places for i in range(len(args)))
        marked = tuple(Static(x) if on else x for on, x in zip(statics, args, strict=True))
        vals, treedef = registry.flatten(marked, None)
        return FlatTree(vals, treedef, statics, registry=registry)

    @staticmethod
    def flatten_static_argnames(
        kwargs: dict[str, Any], static_argnames: Iterable[str], registry: Any = default_registry
    ) -> FlatTree:
        """That of keyword arguments, some of which are static by their names."""
        if not static_argnames:
            return FlatTree.flatten(kwargs, registry=registry)
        statics = {name: name in static_argnames for name in kwargs}
        marked = {name: Static(x) if statics[name] else x for name, x in kwargs.items()}
        vals, treedef = registry.flatten(marked, None)
        return FlatTree(vals, treedef, statics, registry=registry)

    @staticmethod
    def flatten_static_argnums_argnames(
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        static_argnums: Sequence[int],
        static_argnames: Iterable[str],
        registry: Any = default_registry,
    ) -> FlatTree:
        """That of arguments and keyword arguments, some of which are static."""
        positional = FlatTree.flatten_static_argnums(args, static_argnums, registry=registry)
        named = FlatTree.flatten_static_argnames(kwargs, static_argnames, registry=registry)
        return FlatTree.pack((positional, named), registry=registry)

    @staticmethod
    def flatten_list(xs: Iterable[Any]) -> FlatTree:
        """That of values that are leaves, whatever they are."""
        return FlatTree.pack(tuple(FlatTree.singleton(x) for x in xs))

    @staticmethod
    def singleton(x: Any) -> FlatTree:
        """That of one value that is a leaf, whatever it is."""
        return FlatTree([x], default_registry.flatten(0, None)[1], False)

    @staticmethod
    def pack(tree: Any, registry: Any = default_registry) -> FlatTree:
        """One of a tuple of them, of any depth, or of an empty dict."""
        if isinstance(tree, FlatTree):
            return tree
        if tree == {}:
            return FlatTree.flatten({}, registry=registry)
        if not isinstance(tree, tuple):
            raise TypeError(f"FlatTree.pack takes tuples of FlatTrees and the empty dict, got {type(tree).__name__}")
        parts = [FlatTree.pack(child, registry=registry) for child in tree]
        statics = tuple(part.statics for part in parts)
        vals = itertools.chain.from_iterable(part.vals for part in parts)
        return FlatTree(vals, treedef_tuple([part.tree for part in parts]), statics, registry=registry)

    @staticmethod
    def pack_args(*args: Any, **kwargs: Any) -> FlatTree:
        """One of arguments that are such."""
        return FlatTree.pack((args, kwargs))

    # --- taken apart

    def unpack(self) -> tuple[FlatTree, ...]:
        """Those of the children of a tuple."""
        rest, out = iter(self.vals), []
        for i, tree in enumerate(treedef_children(self.tree)):
            statics = False if isinstance(self.statics, bool) else self.statics[i]
            vals = itertools.islice(rest, tree.num_leaves)
            out.append(FlatTree(vals, tree, statics, registry=self.registry))
        return tuple(out)

    def with_aux(self, aux: Any) -> FlatTree:
        """This one and a static value."""
        return FlatTree.pack((self, FlatTree.flatten(Static(aux))))

    def unpack_aux(self) -> tuple[FlatTree, Any]:
        """What `with_aux` put together."""
        tree, aux = self.unpack()
        return tree, aux.unflatten().val

    def unflatten(self) -> Any:
        """The tree."""
        return _without_marks(self.tree.unflatten(self.vals), self.statics)

    @property
    def tree_without_statics(self) -> PyTreeDef:
        """The structure of what is not static."""
        return _structure_without(self.tree, self.statics)

    @functools.cached_property
    def paths(self) -> FlatTree:
        """The key paths of the leaves; empty ones where the tree's nodes have none."""
        from ferrax.tree_util import tree_flatten_with_path

        try:
            pairs, _ = tree_flatten_with_path(self.unflatten())
            found = [path for path, _ in pairs]
        except Exception:  # a user's node that cannot be made of its leaves
            found = []
        return self.update(found if len(found) == len(self.vals) else [()] * len(self.vals))

    @functools.cached_property
    def len(self) -> int:
        """The number of leaves."""
        return self.tree.num_leaves

    # --- functions of the leaves

    def update(self, new_vals: Iterable[Any]) -> FlatTree:
        """With other leaves, as many."""
        new = FlatTree(new_vals, self.tree, self.statics, registry=self.registry)
        assert len(new.vals) == len(self.vals), f"{len(new.vals)} leaves for {len(self.vals)}"
        return new

    def map(self, f: Callable[[Any], Any]) -> FlatTree:
        """With a function's results for the leaves."""
        return self.update(f(x) for x in self.vals)

    def map2(self, f: Callable[[Any, Any], Any], t2: Sequence[Any]) -> FlatTree:
        """With a function's results for the leaves and as many other values."""
        return self.update(f(x, y) for x, y in zip(self.vals, t2, strict=True))

    def map3(self, f: Callable[[Any, Any, Any], Any], t2: Sequence[Any], t3: Sequence[Any]) -> FlatTree:
        """With a function's results for the leaves and twice as many other values."""
        return self.update(f(x, y, z) for x, y, z in zip(self.vals, t2, t3, strict=True))

    def unzip2(self) -> tuple[FlatTree, FlatTree]:
        """Those of the first and the second parts of leaves that are pairs."""
        pairs = [(y, z) for y, z in self.vals]
        return self.update(y for y, _ in pairs), self.update(z for _, z in pairs)

    def enumerate(self) -> FlatTree:
        """With pairs of numbers and leaves."""
        count = itertools.count()
        return self.map(lambda x: (next(count), x))

    def filter(self, f: Callable[[Any], Any]) -> FlatTree:
        """The leaves of which a function holds; `unfilter` puts the others back."""
        return self.filter_with_mask([f(x) for x in self])

    def filter_with_mask(self, mask: Iterable[Any]) -> FlatTree:
        """The leaves where a mask is true; `unfilter` puts the others back."""
        keep = [bool(on) for on in mask]
        rejected, kept = partition_list(keep, list(self))
        return FlatTree.flatten_list(kept).with_aux((self.map(lambda _: None), keep, rejected))

    def unfilter(self) -> FlatTree:
        """What `filter` was given, with the leaves that it kept as they are now."""
        kept, (tree, keep, rejected) = self.unpack_aux()
        return tree.update(merge_lists(keep, rejected, list(kept)))


def _without_marks(tree: Any, statics: Any) -> Any:
    """A tree whose static parts are `Static` nodes, with their values."""
    if isinstance(statics, bool):
        return tree.val if statics else tree
    if isinstance(tree, tuple):
        return tuple(_without_marks(x, on) for x, on in zip(tree, statics, strict=True))
    return {name: _without_marks(x, statics[name]) for name, x in tree.items()}


def _structure_without(treedef: PyTreeDef, statics: Any) -> PyTreeDef:
    """A structure without its static parts."""
    if statics is False:
        return treedef
    children = treedef_children(treedef)
    if isinstance(statics, tuple):
        kept = [_structure_without(t, on) for t, on in zip(children, statics, strict=True) if on is not True]
        return treedef_tuple(kept)
    kind, keys = treedef.node_data()
    kept_keys = [k for k in keys if statics[k] is not True]
    kept = [_structure_without(t, statics[k]) for t, k in zip(children, keys, strict=True) if statics[k] is not True]
    return PyTreeDef.from_node_data_and_children(default_registry, (kind, kept_keys), kept)
