"""Functions of pytrees under short names: ``ferrax.tree.map``, ``ferrax.tree.leaves`` and so on.

What a pytree is, and how to register classes of one's own, is in ``ferrax.tree_util``.
"""

# The bodies of functions that are implemented in Rust are their docstrings.
# mypy: disable-error-code=empty-body

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ferrax import tree_util
from ferrax._boundary import expose as _expose
from ferrax._ferrax import PyTreeDef, tree_function as _tree_function
from ferrax._rust import implemented_by
from ferrax.tree_util import Unspecified, _unspecified

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

T = TypeVar("T")


@implemented_by(_tree_function("all"))
def all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true.

    Args, Returns: as in `tree_util.tree_all`.

    >>> import ferrax
    >>> ferrax.tree.all([True, {"a": 1}]), ferrax.tree.all([True, {"a": 0}])
    (True, False)
    """


@implemented_by(_tree_function("broadcast"))
def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Spreads the leaves of a prefix over a full tree.

    Args, Returns, Raises: as in `tree_util.tree_broadcast`.

    >>> import ferrax
    >>> ferrax.tree.broadcast((1, 2), ({"a": 0, "b": 0}, [0]))
    ({'a': 1, 'b': 1}, [2])
    """


@implemented_by(_tree_function("flatten"))
def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Takes a tree apart into its leaves and its structure.

    Args, Returns: as in `tree_util.tree_flatten`.

    >>> import ferrax
    >>> ferrax.tree.flatten({"b": 1, "a": (2, 3)})
    ([2, 3, 1], PyTreeDef({'a': (*, *), 'b': *}))
    """


@implemented_by(_tree_function("flatten_with_path"))
def flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[tree_util.KeyPath, Any]], PyTreeDef]:
    """Takes a tree apart into leaves with their key paths, and its structure.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.
      is_leaf_takes_path: whether ``is_leaf`` is called with the key path before the value.

    Returns:
      A list of (path, leaf) pairs, and a ``PyTreeDef``.

    >>> import ferrax
    >>> pairs, treedef = ferrax.tree.flatten_with_path({"a": [5]})
    >>> pairs
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """


@implemented_by(_tree_function("leaves"))
def leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree.

    Args, Returns: as in `tree_util.tree_leaves`.

    >>> import ferrax
    >>> ferrax.tree.leaves([1, (2, None), {"k": 3}])
    [1, 2, 3]
    """


@implemented_by(_tree_function("leaves_with_path"))
def leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[tree_util.KeyPath, Any]]:
    """The leaves of a tree with their key paths.

    Args: as in `flatten_with_path`.

    Returns:
      A list of (path, leaf) pairs.

    >>> import ferrax
    >>> ferrax.tree.leaves_with_path((5,))
    [((SequenceKey(idx=0),), 5)]
    """


@implemented_by(_tree_function("map"))
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Applies a function to the leaves of one or several trees.

    Args:
      f: called with a leaf of ``tree`` and what each tree of ``rest`` has at that place.
      tree: the tree whose structure the result has.
      rest: trees that ``tree`` is a prefix of.
      is_leaf: asked at each container of ``tree``; where it returns True the container is a leaf.

    Returns:
      A tree of the results.

    Raises:
      ValueError: when a tree of ``rest`` does not fit, with the path where it differs.

    >>> import ferrax
    >>> ferrax.tree.map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """


@implemented_by(_tree_function("map_with_path"))
def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies a function to paths and leaves.

    Args:
      f: called with the key path, the leaf, and what each tree of ``rest`` has at that place.
      tree, rest, is_leaf: as in `map`.
      is_leaf_takes_path: whether ``is_leaf`` is called with the key path before the value.

    Returns: as in `map`.

    >>> import ferrax
    >>> ferrax.tree.map_with_path(lambda path, x: f"{ferrax.tree_util.keystr(path)}={x}", {"a": [1]})
    {'a': ["['a'][0]=1"]}
    """


@implemented_by(_tree_function("reduce"))
def reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Combines the leaves from left to right.

    Args, Returns, Raises: as in `tree_util.tree_reduce`.

    >>> import ferrax
    >>> ferrax.tree.reduce(lambda total, x: total + x, [1, (2, 3)])
    6
    """


def reduce_associative(
    operation: Callable[[T, T], T],
    tree: Any,
    *,
    identity: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Combines the leaves pairwise, as a balanced tree.

    Args, Returns, Raises: as in `tree_util.tree_reduce_associative`.

    >>> import ferrax
    >>> ferrax.tree.reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    return tree_util.tree_reduce_associative(operation, tree, identity=identity, is_leaf=is_leaf)


@implemented_by(_tree_function("structure"))
def structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree.

    Args, Returns: as in `tree_util.tree_structure`.

    >>> import ferrax
    >>> ferrax.tree.structure([1, (2, None)])
    PyTreeDef([*, (*, None)])
    """


@implemented_by(_tree_function("transpose"))
def transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turns a tree of trees inside out.

    Args, Returns, Raises: as in `tree_util.tree_transpose`.

    >>> import ferrax
    >>> ferrax.tree.transpose(ferrax.tree.structure([0, 0, 0]), None, [(1, 2), (3, 4), (5, 6)])
    ([1, 3, 5], [2, 4, 6])
    """


@implemented_by(_tree_function("unflatten"))
def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Builds a tree from its structure and leaves.

    Args, Returns, Raises: as in `tree_util.tree_unflatten`.

    >>> import ferrax
    >>> ferrax.tree.unflatten(ferrax.tree.structure((0, {"a": 0})), [1, 2])
    (1, {'a': 2})
    """


if TYPE_CHECKING:
    import dataclasses

    # type checkers know dataclasses.field, and only that
    static = dataclasses.field
else:

    def static(**kwargs: Any) -> Any:
        """A dataclass field that :func:`ferrax.tree_util.register_dataclass` treats as part of the structure.

        Args:
          kwargs: what ``dataclasses.field`` takes.

        Returns:
          A field whose metadata has ``static=True``.

        >>> import dataclasses, ferrax
        >>> @ferrax.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Op:
        ...     x: float
        ...     kind: str = ferrax.tree.static(default="add")
        >>> ferrax.tree.leaves(Op(2.0))
        [2.0]
        """
        from dataclasses import field  # few programs have it loaded

        metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
        return field(metadata=metadata, **kwargs)


_expose(globals())
