"""Pytrees: nested containers with values at their leaves.

A container is a tuple, list, dict, named tuple, ``None``, ``OrderedDict``, ``defaultdict`` or an instance of a
registered class; anything else is a leaf. The functions with short names are in ``ferrax.tree``.
"""

# The bodies of functions that are implemented in Rust are their docstrings.
# mypy: disable-error-code=empty-body

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from ferrax._boundary import expose as _expose
from ferrax._ferrax import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    PyTreeDef as PyTreeDef,
    PyTreeRegistry as _PyTreeRegistry,
    SequenceKey as SequenceKey,
    tree_function as _tree_function,
)
from ferrax._rust import implemented_by

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

T = TypeVar("T")
Class = TypeVar("Class", bound=type)
KeyEntry = TypeVar("KeyEntry", bound=Any)
KeyPath = tuple[KeyEntry, ...]

default_registry = _PyTreeRegistry()


class Unspecified:
    """Stands for an argument that was not given."""

    def __repr__(self) -> str:
        return "unspecified"


_unspecified = Unspecified()


@implemented_by(_tree_function("flatten"))
def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], PyTreeDef]:
    """Takes a tree apart into its leaves and its structure; same as :func:`ferrax.tree.flatten`.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      The list of leaves and a ``PyTreeDef``.

    >>> import ferrax
    >>> ferrax.tree_util.tree_flatten({"b": 1, "a": (2, 3)})
    ([2, 3, 1], PyTreeDef({'a': (*, *), 'b': *}))
    """


@implemented_by(_tree_function("unflatten"))
def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Builds a tree from its structure and leaves; same as :func:`ferrax.tree.unflatten`.

    Args:
      treedef: the structure.
      leaves: as many leaves as the structure has.

    Returns:
      The tree.

    Raises:
      ValueError: when there are too few or too many leaves.

    >>> import ferrax
    >>> treedef = ferrax.tree_util.tree_structure((0, {"a": 0}))
    >>> ferrax.tree_util.tree_unflatten(treedef, [1, 2])
    (1, {'a': 2})
    """


@implemented_by(_tree_function("leaves"))
def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves of a tree; same as :func:`ferrax.tree.leaves`.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      The list of leaves.

    >>> import ferrax
    >>> ferrax.tree_util.tree_leaves([1, (2, None), {"k": 3}])
    [1, 2, 3]
    """


@implemented_by(_tree_function("structure"))
def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> PyTreeDef:
    """The structure of a tree; same as :func:`ferrax.tree.structure`.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      A ``PyTreeDef``, which can be compared, hashed and pickled.

    >>> import ferrax
    >>> ferrax.tree_util.tree_structure([1, (2, None)])
    PyTreeDef([*, (*, None)])
    """


@implemented_by(_tree_function("map"))
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Applies a function to the leaves of one or several trees; same as :func:`ferrax.tree.map`.

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
    >>> ferrax.tree_util.tree_map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """


@implemented_by(_tree_function("all"))
def tree_all(tree: Any, *, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves are true; same as :func:`ferrax.tree.all`.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      True when there is no false leaf.

    >>> import ferrax
    >>> ferrax.tree_util.tree_all([True, {"a": 1}]), ferrax.tree_util.tree_all([True, {"a": 0}])
    (True, False)
    """


@implemented_by(_tree_function("reduce"))
def tree_reduce(
    function: Callable[[T, Any], T],
    tree: Any,
    initializer: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Combines the leaves from left to right; same as :func:`ferrax.tree.reduce`.

    Args:
      function: called with what has been combined so far and the next leaf.
      tree: any pytree.
      initializer: what to start with, by default the first leaf.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      The combined value.

    Raises:
      TypeError: when there are no leaves and no initializer.

    >>> import ferrax
    >>> ferrax.tree_util.tree_reduce(lambda total, x: total + x, [1, (2, 3)])
    6
    """


@implemented_by(_tree_function("transpose"))
def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turns a tree of trees inside out; same as :func:`ferrax.tree.transpose`.

    Args:
      outer_treedef: structure of the outer tree.
      inner_treedef: structure of each inner tree; ``None`` takes that of the first one.
      pytree_to_transpose: a tree of the composed structure.

    Returns:
      A tree of the inner structure whose leaves are trees of the outer one.

    Raises:
      TypeError: when the number of leaves is not that of the composed structure.

    >>> import ferrax
    >>> pairs = [(1, 2), (3, 4), (5, 6)]
    >>> outer = ferrax.tree_util.tree_structure([0, 0, 0])
    >>> ferrax.tree_util.tree_transpose(outer, None, pairs)
    ([1, 3, 5], [2, 4, 6])
    """


@implemented_by(_tree_function("broadcast"))
def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Spreads the leaves of a prefix over a full tree; same as :func:`ferrax.tree.broadcast`.

    Args:
      prefix_tree: a tree that ``full_tree`` extends at its leaves.
      full_tree: the tree whose structure the result has.
      is_leaf: asked at each container of the prefix; where it returns True the container is a leaf.

    Returns:
      A tree like ``full_tree`` with the leaves of the prefix.

    Raises:
      ValueError: when it is not a prefix, with the path where the trees differ.

    >>> import ferrax
    >>> ferrax.tree_util.tree_broadcast((1, 2), ({"a": 0, "b": 0}, [0]))
    ({'a': 1, 'b': 1}, [2])
    """


@implemented_by(_tree_function("flatten_with_path"))
def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Takes a tree apart into leaves with their key paths, and its structure.

    Same as :func:`ferrax.tree.flatten_with_path`.

    Args:
      tree: any pytree.
      is_leaf: asked at each container; where it returns True the container is a leaf.
      is_leaf_takes_path: whether ``is_leaf`` is called with the key path before the value.

    Returns:
      A list of (path, leaf) pairs, and a ``PyTreeDef``.

    >>> import ferrax
    >>> pairs, treedef = ferrax.tree_util.tree_flatten_with_path({"a": [5]})
    >>> pairs
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """


@implemented_by(_tree_function("leaves_with_path"))
def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree with their key paths; same as :func:`ferrax.tree.leaves_with_path`.

    Args: as in `tree_flatten_with_path`.

    Returns:
      A list of (path, leaf) pairs.

    >>> import ferrax
    >>> ferrax.tree_util.tree_leaves_with_path((5,))
    [((SequenceKey(idx=0),), 5)]
    """


@implemented_by(_tree_function("map_with_path"))
def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies a function to paths and leaves; same as :func:`ferrax.tree.map_with_path`.

    Args:
      f: called with the key path, the leaf, and what each tree of ``rest`` has at that place.
      tree, rest, is_leaf: as in `tree_map`.
      is_leaf_takes_path: whether ``is_leaf`` is called with the key path before the value.

    Returns: as in `tree_map`.

    >>> import ferrax
    >>> ferrax.tree_util.tree_map_with_path(lambda path, x: f"{ferrax.tree_util.keystr(path)}={x}", {"a": [1]})
    {'a': ["['a'][0]=1"]}
    """


def _reduce_halves(operation: Callable[[T, T], T], values: Sequence[T]) -> T:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return operation(_reduce_halves(operation, values[:middle]), _reduce_halves(operation, values[middle:]))


def tree_reduce_associative(
    operation: Callable[[T, T], T],
    tree: Any,
    *,
    identity: T | Unspecified = _unspecified,
    is_leaf: Callable[[Any], bool] | None = None,
) -> T:
    """Combines the leaves pairwise, as a balanced tree; same as :func:`ferrax.tree.reduce_associative`.

    Args:
      operation: an associative function of two values.
      tree: any pytree.
      identity: the result when there are no leaves.
      is_leaf: asked at each container; where it returns True the container is a leaf.

    Returns:
      The combined value.

    Raises:
      TypeError: when there are no leaves and no identity.

    >>> import ferrax
    >>> ferrax.tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _reduce_halves(operation, leaves)
    if isinstance(identity, Unspecified):
        raise TypeError("Must specify identity for parallel reduction of empty sequence.")
    return identity


@implemented_by(_tree_function("treedef_tuple"))
def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees.

    Args:
      treedefs: the structures of its items.

    Returns:
      A ``PyTreeDef``.

    >>> import ferrax
    >>> leaf = ferrax.tree_util.tree_structure(0)
    >>> ferrax.tree_util.treedef_tuple([leaf, leaf])
    PyTreeDef((*, *))
    """


@implemented_by(_tree_function("treedef_children"))
def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the root's children.

    Args:
      treedef: a structure.

    Returns:
      One ``PyTreeDef`` per child, none for a leaf.

    >>> import ferrax
    >>> ferrax.tree_util.treedef_children(ferrax.tree_util.tree_structure([1, (2, 3)]))
    [PyTreeDef(*), PyTreeDef((*, *))]
    """


@implemented_by(_tree_function("treedef_is_leaf"))
def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure has a single node: a leaf, or a container without children.

    Args:
      treedef: a structure.

    Returns:
      True for one node.

    >>> import ferrax
    >>> ferrax.tree_util.treedef_is_leaf(ferrax.tree_util.tree_structure(1))
    True
    """


@implemented_by(_tree_function("all_leaves"))
def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether every item is a leaf.

    Args:
      iterable: values.
      is_leaf: values for which it returns True count as leaves.

    Returns:
      False when an item is a container.

    >>> import ferrax
    >>> ferrax.tree_util.all_leaves([1, 2]), ferrax.tree_util.all_leaves([1, [2]])
    (True, False)
    """


@implemented_by(_tree_function("is_tree_node"))
def is_tree_node(typ: type) -> bool:
    """Whether the instances of a type are containers.

    Args:
      typ: a type.

    Returns:
      True for builtin containers, registered types and named tuples.

    >>> import ferrax
    >>> ferrax.tree_util.is_tree_node(dict), ferrax.tree_util.is_tree_node(set)
    (True, False)
    """


@implemented_by(_tree_function("flatten_one_level"))
def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Hashable]:
    """The children and the metadata of one container.

    Args:
      tree: a container.

    Returns:
      The children, and what the container carries besides them (a dict's keys, a registered type's data).

    Raises:
      ValueError: for a leaf.

    >>> import ferrax
    >>> ferrax.tree_util.flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """


@implemented_by(_tree_function("flatten_one_level_with_keys"))
def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """The children of one container with their path keys, and its metadata.

    Args: as in `flatten_one_level`.

    Returns:
      (key, child) pairs, and what the container carries besides them.

    Raises: as in `flatten_one_level`.

    >>> import ferrax
    >>> ferrax.tree_util.flatten_one_level_with_keys((5,))
    (((SequenceKey(idx=0), 5),), None)
    """


@implemented_by(_tree_function("keystr"))
def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
      keys: the steps of the path.
      simple: print the bare keys and indices.
      separator: put between the steps.

    Returns:
      The text.

    >>> import ferrax
    >>> path, _ = ferrax.tree_util.tree_leaves_with_path({"a": [0, {"b": 1}]})[1]
    >>> ferrax.tree_util.keystr(path), ferrax.tree_util.keystr(path, simple=True, separator="/")
    ("['a'][1]['b']", 'a/1/b')
    """


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Makes the instances of a type containers.

    Args:
      nodetype: the type; exact instances count, subclasses are registered on their own.
      flatten_func: gives the children, and hashable data that is part of the structure.
      unflatten_func: builds an instance from that data and the children. It is called with arbitrary objects in the
        place of leaves, so it should not look into them.
      flatten_with_keys_func: gives (path key, child) pairs instead of children.

    Raises:
      ValueError: when the type is registered already.

    >>> import ferrax
    >>> class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> ferrax.tree_util.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda _, xy: Point(*xy))
    >>> ferrax.tree_util.tree_leaves(Point(1, 2))
    [1, 2]
    """
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: Class) -> Class:
    """Class decorator: makes instances containers by their methods ``tree_flatten`` and ``tree_unflatten``.

    Args:
      cls: a class with ``tree_flatten(self) -> (children, data)`` and a class method
        ``tree_unflatten(cls, data, children)``.

    Returns:
      The class.

    >>> import ferrax
    >>> @ferrax.tree_util.register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, value, unit):
    ...         self.value, self.unit = value, unit
    ...     def tree_flatten(self):
    ...         return (self.value,), self.unit
    ...     @classmethod
    ...     def tree_unflatten(cls, unit, children):
    ...         return cls(*children, unit)
    >>> ferrax.tree_util.tree_map(lambda x: 2 * x, Scaled(3, "m")).value
    6
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Iterable[Any]], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Makes the instances of a type containers whose children have path keys.

    Args:
      nodetype: the type.
      flatten_with_keys: gives (path key, child) pairs, and hashable data that is part of the structure.
      unflatten_func: builds an instance from that data and the children.
      flatten_func: gives the children alone, for speed.

    Raises:
      ValueError: when the type is registered already.

    >>> import ferrax
    >>> from ferrax.tree_util import GetAttrKey
    >>> class Box:
    ...     def __init__(self, content):
    ...         self.content = content
    >>> ferrax.tree_util.register_pytree_with_keys(
    ...     Box, lambda b: (((GetAttrKey("content"), b.content),), None), lambda _, xs: Box(*xs))
    >>> ferrax.tree_util.tree_leaves_with_path(Box(1))
    [((GetAttrKey(name='content'),), 1)]
    """
    if flatten_func is None:

        def flatten_func(tree: T) -> tuple[Iterable[Any], Hashable]:
            pairs, data = flatten_with_keys(tree)
            return [child for _, child in pairs], data

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Class decorator: makes instances containers by ``tree_flatten_with_keys`` and ``tree_unflatten``.

    Args:
      cls: a class with ``tree_flatten_with_keys(self) -> ((key, child) pairs, data)``, a class method
        ``tree_unflatten(cls, data, children)`` and, optionally, ``tree_flatten(self)``.

    Returns:
      The class.

    >>> import ferrax
    >>> from ferrax.tree_util import GetAttrKey
    >>> @ferrax.tree_util.register_pytree_with_keys_class
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...     def tree_flatten_with_keys(self):
    ...         return ((GetAttrKey("a"), self.a), (GetAttrKey("b"), self.b)), None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> ferrax.tree_util.tree_leaves(Pair(1, 2))
    [1, 2]
    """
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    unflatten = cls.tree_unflatten  # type: ignore[attr-defined]
    register_pytree_with_keys(cls, operator.methodcaller("tree_flatten_with_keys"), unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: Class,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> Class:
    """Makes the instances of a dataclass (or a class like one) containers.

    Args:
      nodetype: a class that is built by keyword from its fields.
      data_fields: names of the fields that are children. For a dataclass the default is every field not marked with
        ``field(metadata=dict(static=True))`` or :func:`ferrax.tree.static`.
      meta_fields: names of the fields that are part of the structure: static, hashable values.
      drop_fields: names of dataclass fields to leave out.

    Returns:
      The class, so that this works as a decorator.

    Raises:
      TypeError: when only one of the two is given, or neither for a class that is no dataclass.
      ValueError: when the names are not just the dataclass's fields, or overlap.

    >>> import dataclasses, ferrax
    >>> @ferrax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = ferrax.tree.static(default="dense")
    >>> ferrax.tree_util.tree_structure(Layer(1.0))
    PyTreeDef(CustomNode(Layer[('dense',)], [*]))
    """
    import dataclasses  # few programs have it loaded

    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields must both be specified when either is specified. "
                f"Got {data_fields=} {meta_fields=}."
            )
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not a dataclass. "
                f"Got {nodetype=}."
            )
        fields = dataclasses.fields(nodetype)
        data_fields = [f.name for f in fields if not f.metadata.get("static", False)]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(drop_fields)
        text = "data_fields and meta_fields must include all dataclass fields with ``init=True`` and only them."
        if missing := expected - {*data, *meta}:
            text += f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
        if unexpected := {*data, *meta} - expected:
            text += f" Unexpected fields: {unexpected}."
        if missing or unexpected:
            raise ValueError(text)
    if overlap := set(data) & set(meta):
        raise ValueError(f"data_fields and meta_fields must not overlap. Overlapping fields: {overlap}.")
    default_registry.register_dataclass_node(nodetype, data, meta)
    return nodetype


def register_static(cls: Class) -> Class:
    """Class decorator: makes instances containers without leaves, so that they are part of the structure.

    Args:
      cls: a class with hashable instances.

    Returns:
      The class.

    >>> import ferrax
    >>> @ferrax.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> ferrax.tree_util.tree_flatten([Mode("fast"), 1])
    ([1], PyTreeDef([CustomNode(Mode[fast], []), *]))
    """
    flatten: Any = lambda value: ([], value)
    default_registry.register_node(cls, flatten, lambda value, _: value, flatten)
    return cls


class _SameAs:
    """A function that stands for another one, with its equality and hash.

    It hides the ``func`` of a ``functools.partial`` while another partial is made of it, which would merge the two.
    """

    def __init__(self, func: Callable[..., Any]):
        self.fun = func

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self.fun(*args, **kw)

    def __hash__(self) -> int:
        return hash(self.fun)

    def __eq__(self, other: object) -> bool:
        return bool(self.fun == (other.fun if isinstance(other, _SameAs) else other))

    def __repr__(self) -> str:
        return f"_SameAs({self.fun!r})"


class Partial(functools.partial):
    """A ``functools.partial`` that is a container: the bound arguments are its children, the function is static.

    It can be an argument or a result of transformed functions, which a plain partial cannot.

    Args:
      func: the function.
      args: positional arguments to bind.
      kw: keyword arguments to bind.

    >>> import ferrax
    >>> add_two = ferrax.tree_util.Partial(lambda x, y: x + y, 2)
    >>> add_two(3), ferrax.tree_util.tree_leaves(add_two)
    (5, [2])
    """

    def __new__(klass, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        if not isinstance(func, functools.partial):
            return super().__new__(klass, func, *args, **kw)
        wrapped = _SameAs(func)
        out = super().__new__(klass, wrapped, *args, **kw)
        vars(wrapped).update(func=func.func, args=func.args, keywords=func.keywords)
        return out


register_pytree_node(
    Partial,
    lambda partial: ((partial.args, partial.keywords), partial.func),
    lambda func, children: Partial(func, *children[0], **children[1]),  # type: ignore[index]
)

_expose(globals())
