"""The registry of pytree nodes, as a container of their types, and where two trees differ."""

import difflib
import functools
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ferrax import tree_util as _tree_util
from ferrax._src._unprovided import unprovided_names
from ferrax.tree_util import default_registry as default_registry

_IsLeaf = Callable[[Any], bool] | None


def broadcast_prefix(prefix_tree: Any, full_tree: Any, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a prefix, each as often as there are leaves of the full tree below it."""
    leaves: list[Any] = []

    def repeat(leaf: Any, below: Any) -> None:
        leaves.extend([leaf] * _tree_util.tree_structure(below).num_leaves)

    try:
        _tree_util.tree_map(repeat, prefix_tree, full_tree, is_leaf=is_leaf)
    except ValueError as error:
        for told in prefix_errors(prefix_tree, full_tree, is_leaf):
            raise told("broadcast_prefix prefix_tree") from error
        raise
    return leaves


class _NoneLeafRegistry:
    """`default_registry` for which `None` is a leaf."""

    __name__ = "none_leaf_registry"

    def flatten(self, tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], Any]:
        """The leaves of a tree and its structure."""
        if is_leaf is None:
            return _tree_util.tree_flatten(tree, is_leaf=lambda x: x is None)
        return _tree_util.tree_flatten(tree, is_leaf=lambda x: x is None or is_leaf(x))

    def flatten_with_path(self, tree: Any, is_leaf: _IsLeaf = None) -> tuple[list[Any], Any]:
        """The leaves with their paths, and the structure."""
        return _tree_util.tree_flatten_with_path(
            tree, is_leaf=lambda x: x is None or (is_leaf is not None and is_leaf(x))
        )

    def is_node(self, cls: type) -> bool:
        """Whether values of a type are nodes."""
        return cls is not type(None) and bool(default_registry.is_node(cls))

    def flatten_one_level(self, tree: Any) -> Any:
        """The children of a node and its data; None of a leaf."""
        return None if tree is None else default_registry.flatten_one_level(tree)

    def flatten_one_level_with_keys(self, tree: Any) -> Any:
        """As `flatten_one_level`, with the key of each child."""
        return None if tree is None else default_registry.flatten_one_level_with_keys(tree)

    def __reduce__(self) -> str:
        return self.__name__


none_leaf_registry = _NoneLeafRegistry()


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


class _Leaf:
    """What stands at the leaves of a structure alone."""


def _type(tree: Any) -> str:
    return "pytree leaf" if isinstance(tree, _Leaf) else str(type(tree))


def _difference(one: Any, other: Any, is_leaf: _IsLeaf, prefix: bool) -> Any:
    """What is different about two nodes, as a kind and two texts; pairs of children where nothing is."""
    left = _children(one, is_leaf)
    if left is None and (prefix or _children(other, is_leaf) is None):
        return []
    if type(one) is not type(other):
        return "types", _type(one), _type(other)
    right = _children(other, is_leaf)
    if left is None or right is None:
        return "types", _type(one), _type(other)
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


def equality_errors_pytreedef(tree1: Any, tree2: Any) -> Iterator[tuple[Any, str, str, str]]:
    """`equality_errors` of two structures without their leaves."""
    return equality_errors(*(tree.unflatten([_Leaf()] * tree.num_leaves) for tree in (tree1, tree2)))


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
        texts = (f"{type(tree1)} with {len(k)} child{'ren' if len(k) > 1 else ''}" for k in (one, other))
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
        return ValueError(
            f"pytree structure error: {head} at key path\n    {name}{_tree_util.keystr(path)}\nAt that key path, the "
            f"prefix pytree {name} has a subtree of type{_told(kind, one, ours, theirs)}"
        )

    yield error


def _told(kind: str, tree: Any, ours: Any, theirs: Any) -> str:
    """The rest of the message: what either tree has, and what of it the other one has not."""
    if kind == "types":
        return f"\n    {ours}\nbut at the same key path the full pytree has a subtree of different type\n    {theirs}."
    same = "the full pytree has a subtree of the same type but"
    if kind == "lengths":
        return f" {ours}, but {same} {theirs.partition(' ')[2]}."
    first = f"\n    {type(tree)}\nwith"
    if kind == "metadata":
        lines = textwrap.indent("\n".join(difflib.ndiff(ours.splitlines(), theirs.splitlines())), "    ")
        return (
            f"{first} metadata\n    {ours}\nbut at the same key path {same} with metadata\n    {theirs}\n"
            f"so the diff in the metadata at these pytree nodes is\n{lines}"
        )
    (left, right) = (_plain(ours), _plain(theirs))
    between = " ".join(sorted({*left} ^ {*right}))
    return (
        f"{first} {len(left)} child keys\n    {' '.join(left)}\n"
        f"but at the same key path {same} with {len(right)} child keys\n    {' '.join(right)}"
        + (f"\nso the symmetric difference on key sets is\n    {between}" if between else "")
    )


def generate_key_paths(tree: Any, is_leaf: Any = None, is_leaf_takes_path: bool = False) -> list[tuple[Any, Any]]:
    """The leaves with their paths."""
    return _tree_util.tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_leaves_checked(treedef_expected: Any, tree: Any) -> list[Any]:
    """The leaves of a tree that has the structure given."""
    leaves, structure = _tree_util.tree_flatten(tree)
    assert structure == treedef_expected, (structure, treedef_expected)
    return leaves


def treedef_is_strict_leaf(treedef: Any) -> bool:
    """Whether a structure is one leaf (`None` and empty containers are none)."""
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


class _Node(NamedTuple):
    """How nodes of a type are taken apart and put together."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


def _node_of(cls: type, node_data: Any, children: Iterable[Any]) -> Any:
    """A node of the type, from what `flatten_one_level` gave of another one and its children."""
    children = list(children)
    leaves = [_tree_util.tree_structure(0)] * len(children)
    structure = _tree_util.PyTreeDef.make_from_node_data_and_children(default_registry, (cls, node_data), leaves)
    return structure.unflatten(children)


class _Types:
    """The types that are nodes, with what takes them apart."""

    __iter__ = None  # the core can ask of a type, not for all of them

    def __contains__(self, cls: Any) -> bool:
        return isinstance(cls, type) and bool(default_registry.is_node(cls))

    def __getitem__(self, cls: type) -> _Node:
        if cls not in self:
            raise KeyError(cls)
        return _Node(default_registry.flatten_one_level, functools.partial(_node_of, cls))

    def get(self, cls: type, default: Any = None) -> Any:
        """The functions of a type, or `default` where it is no node."""
        try:
            return self[cls]
        except KeyError:
            return default


_registry = _Types()


def _public(name: str) -> Any:
    if name in ("FlatTree", "Static"):
        from ferrax._src import _flat_tree

        return getattr(_flat_tree, name)
    return getattr(_tree_util, name)


__getattr__ = unprovided_names(
    __name__,
    "dispatch_registry tracing_registry",
    "there is one registry of nodes, ferrax.tree_util.default_registry",
    _public,
)
