"""Structures of arguments and results in files: nested lists of JSON.

Tuples, lists, dictionaries with keys of strings or integers, `OrderedDict`s with keys of strings, and None are known;
other nodes by the names that users register. Read next: `_format.py`, which writes the lists.
"""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from ferrax import tree_util
from ferrax._ferrax import PyTreeDef

__all__ = ["read_tree", "register_namedtuple_serialization", "register_pytree_node_serialization", "write_tree"]


class _Known(NamedTuple):
    nodetype: type
    name: str
    write: Callable[[Any], bytes | bytearray]
    read: Callable[[bytes | bytearray], Any]
    build: Callable[[Any, Any], Any] | None


_by_type: dict[type, _Known] = {}
_by_name: dict[str, _Known] = {}


def _check_new(known: _Known) -> None:
    other = _by_type.get(known.nodetype) or _by_name.get(known.name)
    if known.nodetype in _by_type:
        raise ValueError(
            f"Duplicate serialization registration for type `{known.nodetype}`. Previous registration was with "
            f"serialized_name `{other.name}`."  # type: ignore[union-attr]
        )
    if known.name in _by_name:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{known.name}`. Previous registration was for "
            f"type `{other.nodetype}`."  # type: ignore[union-attr]
        )


def _register(known: _Known) -> None:
    _check_new(known)
    _by_type[known.nodetype] = _by_name[known.name] = known


def register_pytree_node_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes | bytearray],
    deserialize_auxdata: Callable[[bytes | bytearray], Any],
    from_children: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Lets exported functions take and return nodes of a class.

    Args:
      nodetype: a class that is registered as a pytree node.
      serialized_name: what files call it; the reader must have registered a class by that name.
      serialize_auxdata: gives the bytes of a node's auxiliary data.
      deserialize_auxdata: gives the auxiliary data of such bytes.
      from_children: makes a node of `(auxiliary data, children)`, which structures of files are built with.

    Returns:
      `nodetype`.

    Raises:
      ValueError: the class or the name is registered already, or the class is no node of trees and there is no
        `from_children`.

    >>> import ferrax as jax
    >>> @jax.tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    ...     def tree_flatten(self):
    ...         return (self.a, self.b), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    >>> _ = jax.export.register_pytree_node_serialization(
    ...     Pair, serialized_name="doc.Pair", serialize_auxdata=lambda aux: b"", deserialize_auxdata=lambda b: None
    ... )
    """
    known = _Known(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _check_new(known)
    if from_children is None and not _is_node(nodetype):
        raise ValueError(
            "If `from_children` is not present, you must call first `jax.tree_util.register_pytree_node` for "
            f"{nodetype}"
        )
    _register(known)
    return nodetype


def _is_node(nodetype: type) -> bool:
    """Whether a class is registered as a node of trees; named tuples are nodes without that."""
    try:
        return not str(_node(nodetype, None, [])).startswith("PyTreeDef(CustomNode(namedtuple[")
    except ValueError:
        return False


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Lets exported functions take and return tuples of a class that `collections.namedtuple` made.

    Args:
      nodetype: the class.
      serialized_name: what files call it.

    Returns:
      `nodetype`.

    Raises:
      ValueError: `nodetype` is no such class, or the class or the name is registered already.

    >>> import collections, ferrax as jax
    >>> Point = collections.namedtuple("Point", "x y")
    >>> _ = jax.export.register_namedtuple_serialization(Point, serialized_name="doc.Point")
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple) and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use register_pytree_node_serialization for types other than named tuples: {nodetype}")

    def fields(names: Any) -> bytes:
        return ",".join(nodetype._fields).encode()  # type: ignore[attr-defined]

    def check(data: bytes | bytearray) -> Any:
        if bytes(data) != fields(None):
            raise ValueError(f"{nodetype} has other fields than when the function was exported: {bytes(data)!r}")
        return None

    _register(_Known(nodetype, serialized_name, fields, check, None))
    return nodetype


def _write_keys(keys: Any) -> bytes:
    """The keys of an `OrderedDict`."""
    if not all(isinstance(key, str) for key in keys):
        raise NotImplementedError(f"serialization of OrderedDict with keys that are no strings: {keys}")
    return json.dumps(list(keys)).encode()


_register(
    _Known(collections.OrderedDict, "collections.OrderedDict", _write_keys, lambda b: tuple(json.loads(bytes(b))), None)
)


def write_tree(tree: Any) -> Any:
    """A structure as JSON."""
    data = tree.node_data()
    if data is None:
        return "*" if tree.num_leaves else ["none"]
    (kind, aux), children = data, [write_tree(child) for child in tree.children()]
    if kind in (tuple, list):
        return [kind.__name__, *children]
    if kind is type(None):
        return ["none"]
    if kind is dict and all(type(key) in (str, int) for key in aux):
        return ["dict", list(aux), *children]
    known = _by_type.get(kind)
    if known is None:
        how = "register_namedtuple_serialization" if hasattr(kind, "_fields") else "register_pytree_node_serialization"
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`: call `jax.export.{how}` for it first"
            + (" (dictionaries have keys of strings or integers in files)" if kind is dict else "")
        )
    return ["node", known.name, base64.b64encode(bytes(known.write(aux))).decode(), *children]


def read_tree(data: Any) -> PyTreeDef:
    """The structure of a JSON value.

    Raises:
      ValueError: it is none.
    """
    return _build(data, 0)


def _node(kind: Any, aux: Any, children: list[PyTreeDef]) -> PyTreeDef:
    tree: PyTreeDef = PyTreeDef.make_from_node_data_and_children(tree_util.default_registry, (kind, aux), children)
    return tree


def _build(data: Any, depth: int) -> PyTreeDef:
    if depth > 200:
        raise ValueError("a structure in the file is nested too deeply")
    if data == "*":
        return tree_util.tree_structure(0)
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise ValueError(f"a structure in the file is malformed: {data!r:.80}")
    head, rest = data[0], data[1:]
    skip = {"dict": 1, "node": 2}.get(head, 0)
    children = [_build(child, depth + 1) for child in rest[skip:]]
    if head in ("tuple", "list"):
        return _node(tuple if head == "tuple" else list, None, children)
    if head == "none" and not rest:
        return tree_util.tree_structure(None)
    keys = rest[0] if head == "dict" and rest else None
    if isinstance(keys, list) and all(type(k) in (str, int) for k in keys) and len({*keys}) == len(keys):
        if len(keys) != len(children):
            raise ValueError("a structure in the file is malformed: a dictionary has other numbers of keys and values")
        return _node(dict, keys, children)
    if head == "node" and len(rest) >= 2:
        return _of_class(rest[0], rest[1], children)
    raise ValueError(f"a structure in the file is malformed: {data!r:.80}")


def _of_class(name: Any, encoded: Any, children: list[PyTreeDef]) -> PyTreeDef:
    known = _by_name.get(name) if isinstance(name, str) else None
    if known is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef of type `{name}`: no class is registered by that name")
    if not isinstance(encoded, str):
        raise ValueError(f"the auxiliary data of a node in the file are malformed: {encoded!r:.80}")
    aux = known.read(base64.b64decode(encoded, validate=True))
    if known.build is None:
        return _node(known.nodetype, aux, children)
    built = known.build(aux, tuple(child.unflatten([0] * child.num_leaves) for child in children))
    return tree_util.tree_structure(built)
