"""Where two structures differ, in the words that JAX's errors of loops and branches use.

`_texts.differences` is the short form, for lists of lines. Read next: `lax/_control_errors.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ferrax import tree_util
from ferrax._texts import listed, short


class Difference(NamedTuple):
    """One place where two structures differ.

    Args:
      path: where it is, ``['a'][0]`` say; empty for the root.
      left: what the first structure has there, with its article.
      right: what the second one has there.
      why: the reason, ``so their Python types differ`` say.
    """

    path: str
    left: str
    right: str
    why: str


def structure_differences(left: Any, right: Any, path: str = "") -> Iterator[Difference]:
    """The places where two structures differ, from the root down; what lies below such a place is left out."""
    (kind, data), (other, other_data) = (_node(t) for t in (left, right))
    if kind is not other:
        yield Difference(path, _named(kind), _named(other), "so their Python types differ")
        return
    below, other_below = left.children(), right.children()
    if len(below) != len(other_below):
        yield _sizes(path, kind, (len(below), len(other_below)), (data, other_data))
        return
    if data != other_data:
        first, second = (f"{_named(kind)} with pytree metadata {_metadata(d)}" for d in (data, other_data))
        yield Difference(path, first, second, "so the pytree node metadata does not match")
        return
    for i, (a, b) in enumerate(zip(below, other_below, strict=True)):
        yield from structure_differences(a, b, path + _key(left, i))


def _node(tree: Any) -> tuple[Any, Any]:
    return tree.node_data() or (None, None)


def _named(kind: Any) -> str:
    return "a pytree leaf" if kind is None else f"a {kind}"


def _metadata(data: Any) -> Any:
    return short(tuple(data) if isinstance(data, list) else data)


def _sizes(path: str, kind: Any, counts: tuple[int, int], data: tuple[Any, Any]) -> Difference:
    if kind in (tuple, list):
        first, second = (f"a {kind.__name__} of length {n}" for n in counts)
        return Difference(path, first, second, "so the lengths do not match")
    first, second = (f"a {kind} with {n} child{'' if n == 1 else 'ren'}" for n in counts)
    why = "so the numbers of children do not match"
    if kind is dict:
        keys = sorted(set(data[0]) ^ set(data[1]), key=repr)
        why += f", with the symmetric difference of key sets: {{{listed(repr(k) for k in keys)}}}"
    return Difference(path, first, second, why)


def _key(tree: Any, i: int) -> str:
    """The text of the step to a child, ``['a']`` say."""
    children = tree.children()
    if not children[i].num_leaves:
        kind, data = _node(tree)
        return f"[{data[i]!r}]" if kind is dict else f"[{i}]"
    first = sum(c.num_leaves for c in children[:i])
    entry = tree_util.tree_flatten_with_path(tree.unflatten(range(tree.num_leaves)))[0][first][0][0]
    return tree_util.keystr((entry,))
