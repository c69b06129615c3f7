"""The registry of pytree nodes, as a container of their types, and where two trees differ."""

import difflib
from collections.abc import Callable, Iterator
from typing import Any

from ferrax import tree_util as _tree_util
from ferrax._src._unprovided import unprovided_names
from ferrax.tree_util import default_registry as default_registry

_IsLeaf = Callable[[Any], bool] | None


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a prefix, each as often as there are leaves of the full tree below it."""
    leaves: list[Any] = []

    def repeat(leaf: Any, below: Any) -> None:
        leaves.extend([leaf] * _tree_util.tree_structure(below).num_leaves)

    _tree_util.tree_map(repeat, prefix_tree, full_tree, is_leaf=is_leaf)
    return leaves


def broadcast_flattened_prefix_with_treedef(
    prefix_leaves: list[Any], prefix_treedef: Any, full_treedef: Any
) -> list[Any]:
    """`broadcast_prefix` of the leaves and the structures of both trees."""
    return broadcast_prefix(
        prefix_treedef.unflatten(prefix_leaves), full_treedef.unflatten([0] * full_treedef.num_leaves)
    )


def _children(tree: Any, is_leaf: _IsLeaf) -> tuple[list[tuple[Any, Any]], Any] | None:
    """The children of a node with their keys, and its metadata; None of a leaf."""
    if (is_leaf is not None and is_leaf(tree)) or (tree is not None and _tree_util.all_leaves([tree])):
        return None
    pairs, data = _tree_util.flatten_one_level_with_keys(tree)
    return [(key, child) for key, child in pairs], data


def _difference(one: Any, other: Any, is_leaf: _IsLeaf, prefix: bool) -> Any:
    """What is different about two nodes, as a kind and two texts; pairs of children where nothing is."""
    left = _children(one, is_leaf)
    if left is None and (prefix or _children(other, is_leaf) is None):
        return []
    if type(one) is not type(other):
        return "types", str(type(one)), str(type(other))
    right = _children(other, is_leaf)
    if left is None or right is None:
        return "types", str(type(one)), str(type(other))
    (ours, data), (theirs, other_data) = left, right
    if len(ours) != len(theirs):
        if isinstance(one, (tuple, list)):
            name = "tuple" if isinstance(one, tuple) else "list"
            return "lengths", f"{name} of length {len(ours)}", f"{name} of length {len(theirs)}"
        return "children", [k for k, _ in ours], [k for k, _ in theirs]
    if data != other_data:
        shown = [str(tuple(d) if isinstance(d, list) else d) for d in (data, other_data)]
        return "metadata", *shown
    return [(key, child, below) for (key, child), (_, below) in zip(ours, theirs, strict=True)]


def _plain(keys: list[Any]) -> list[str]:
    return [str(getattr(key, "key", getattr(key, "name", key))) for key in keys]


def equality_errors(tree1: Any, tree2: Any, is_leaf: _IsLeaf = None) -> Iterator[tuple[Any, str, str, str]]:
    """The places where two trees differ in structure: path, what either has there, and the reason."""
    yield from _equality_errors((), tree1, tree2, is_leaf)


def _equality_errors(path: Any, tree1: Any, tree2: Any, is_leaf: _IsLeaf) -> Iterator[tuple[Any, str, str, str]]:
    found = _difference(tree1, tree2, is_leaf, prefix=False)
    if isinstance(found, list):
        for key, left, right in found:
            yield from _equality_errors((*path, key), left, right, is_leaf)
        return
    kind, one, other = found
    if kind == "types":
        yield path, one, other, "their Python types differ"
    elif kind == "lengths":
        yield path, one, other, "the lengths do not match"
    elif kind == "metadata":
        texts = (f"{type(tree1)} with pytree metadata {data}" for data in (one, other))
        yield path, *texts, "the pytree node metadata does not match"
    else:
        texts = (f"{type(tree1)} with {len(k)} child{'' if len(k) == 1 else 'ren'}" for k in (one, other))
        keys = set(_plain(one)) ^ set(_plain(other))
        yield (
            path,
            *texts,
            "the numbers of children do not match"
            + (
                f", with the symmetric difference of key sets: {{{', '.join(map(repr, sorted(keys)))}}}" if keys else ""
            ),
        )


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf = None) -> list[Callable[[str], ValueError]]:
    """Why one tree is no prefix of another: functions from the first one's name to an error, one for each place."""
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _prefix_errors(path: Any, one: Any, other: Any, is_leaf: _IsLeaf) -> Iterator[Callable[[str], ValueError]]:
    found = _difference(one, other, is_leaf, prefix=True)
    if isinstance(found, list):
        for key, left, right in found:
            yield from _prefix_errors((*path, key), left, right, is_leaf)
        return
    kind, ours, theirs = found
    head = {
        "types": "different types",
        "lengths": f"different lengths of {'tuple' if isinstance(one, tuple) else 'list'}",
        "children": "different numbers of pytree children",
        "metadata": "different pytree metadata",
    }[kind]

    def error(name: str) -> ValueError:
        place = f"{name}{_tree_util.keystr(path)}"
        return ValueError(
            f"pytree structure error: {head} at key path\n    {place}\nThere the prefix {name} has "
            f"{_told(kind, one, ours)}\nand the full tree has {_told(kind, other, theirs)}"
            f"{_between(kind, ours, theirs)}"
        )

    yield error


def _told(kind: str, tree: Any, what: Any) -> str:
    if kind == "metadata":
        return f"a {type(tree)} with metadata\n    {what}"
    if kind == "children":
        return f"a {type(tree)} with {len(what)} children\n    {' '.join(_plain(what))}"
    return f"a {what}"


def _between(kind: str, ours: Any, theirs: Any) -> str:
    if kind == "metadata":
        lines = "\n".join(difflib.ndiff(ours.splitlines(), theirs.splitlines()))
        return f"\nso the diff in the metadata is\n{lines}"
    if kind == "children" and (keys := set(_plain(ours)) ^ set(_plain(theirs))):
        return f"\nso the symmetric difference on key sets is\n    {' '.join(sorted(keys))}"
    return ""


class _Types:
    """The types that are nodes."""

    def __contains__(self, cls: type) -> bool:
        return bool(default_registry.is_node(cls))


_registry = _Types()


def _public(name: str) -> Any:
    if name in ("FlatTree", "Static"):
        from ferrax._src import _flat_tree

        return getattr(_flat_tree, name)
    return getattr(_tree_util, name)


__getattr__ = unprovided_names(
    __name__,
    "dispatch_registry equality_errors_pytreedef generate_key_paths none_leaf_registry "
    "tracing_registry tree_leaves_checked",
    "there is one registry of nodes, ferrax.tree_util.default_registry",
    _public,
)
