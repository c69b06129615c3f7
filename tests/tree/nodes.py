"""Container classes registered with both libraries, and hypothesis strategies for trees of them."""

import collections
import dataclasses

import jax.tree_util as theirs
from hypothesis import strategies as st

import ferrax.tree_util as ours

BOTH = (ours, theirs)


class Point(collections.namedtuple("Point", "x y")):
    pass


Pair = collections.namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Plain:
    """Registered without keys."""

    children: tuple
    aux: object


@dataclasses.dataclass
class Keyed:
    """Registered with keys of the caller's own making."""

    a: object
    b: object


@dataclasses.dataclass
class Data:
    x: object
    y: object
    mode: str = dataclasses.field(default="m", metadata=dict(static=True))


class Static(str):
    pass


for m in BOTH:
    m.register_pytree_node(Plain, lambda p: (p.children, p.aux), lambda aux, children: Plain(tuple(children), aux))
    m.register_pytree_with_keys(
        Keyed, lambda k: ((("key a", k.a), ("key b", k.b)), "aux"), lambda _, children: Keyed(*children)
    )
    m.register_dataclass(Data)
    m.register_static(Static)

leaves = st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=3), st.booleans())
names = st.text("abcdeé☃𝔸", max_size=3)


def containers(children):
    some = st.lists(children, max_size=4)
    return st.one_of(
        some,
        some.map(tuple),
        st.dictionaries(names, children, max_size=5),
        st.dictionaries(st.integers(-5, 5), children, max_size=4),
        st.dictionaries(st.tuples(st.integers(0, 2), names), children, max_size=4),
        st.lists(st.tuples(names, children), max_size=4).map(collections.OrderedDict),
        st.dictionaries(names, children, max_size=4).map(lambda d: collections.defaultdict(int, d)),
        st.tuples(children, children).map(lambda t: Point(*t)),
        st.tuples(children, children).map(lambda t: Pair(*t)),
        st.tuples(some.map(tuple), names).map(lambda t: Plain(*t)),
        st.tuples(children, children).map(lambda t: Keyed(*t)),
        st.tuples(children, children, names).map(lambda t: Data(*t)),
        names.map(Static),
    )


trees = st.recursive(st.one_of(leaves, st.none()), containers, max_leaves=12)


@dataclasses.dataclass
class Failure:
    """An exception's class and text."""

    kind: type
    text: str


def without_difference(result):
    """A failure without its last words on metadata: JAX prints a diff of characters, ferrax the keys that differ."""
    if not isinstance(result, Failure):
        return result
    return Failure(
        result.kind, result.text.split("\nso the diff in the metadata")[0].split("\nso the prefix pytree")[0]
    )


def outcome(f, *args, **kwargs):
    """The result, or the :class:`Failure`."""
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return Failure(type(e), str(e))
