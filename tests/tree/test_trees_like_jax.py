"""Random trees: every function of the tree modules gives what JAX's gives."""

import copy
import pickle

import jax.tree_util as theirs
import pytest
from hypothesis import given, settings, strategies as st

import ferrax.tree_util as ours
from tests.tree.nodes import BOTH, Failure, outcome, trees, without_difference

few = settings(max_examples=150, deadline=None)


def keys_text(path):
    return [repr(key) for key in path]


@few
@given(trees)
def test_flatten_and_unflatten(tree):
    (leaves, treedef), (expected, expected_def) = (m.tree_flatten(tree) for m in BOTH)
    assert leaves == expected
    assert repr(treedef) == repr(expected_def)
    assert (treedef.num_leaves, treedef.num_nodes) == (expected_def.num_leaves, expected_def.num_nodes)
    assert treedef.unflatten(leaves) == expected_def.unflatten(leaves) == tree
    assert ours.tree_unflatten(treedef, iter(leaves)) == tree
    assert ours.tree_leaves(tree) == leaves
    assert ours.tree_structure(tree) == treedef


@few
@given(trees)
def test_parts_of_a_structure(tree):
    treedef, expected = (m.tree_structure(tree) for m in BOTH)
    assert treedef.node_data() == expected.node_data()
    assert repr(treedef.children()) == repr(expected.children())
    assert repr(ours.treedef_children(treedef)) == repr(expected.children())
    assert ours.treedef_is_leaf(treedef) == theirs.treedef_is_leaf(expected)
    again = ours.PyTreeDef.from_node_data_and_children(ours.default_registry, treedef.node_data(), treedef.children())
    assert again == treedef
    assert hash(again) == hash(treedef)
    assert (
        ours.PyTreeDef.make_from_node_data_and_children(ours.default_registry, treedef.node_data(), treedef.children())
        == treedef
    )
    leaves = ours.tree_leaves(tree)

    def visit(children, data):
        return (children, data)

    assert treedef.walk(visit, repr, leaves) == expected.walk(visit, repr, leaves)
    assert treedef.walk(visit, None, leaves) == expected.walk(visit, lambda leaf: leaf, leaves)


@few
@given(trees, trees)
def test_equality_and_hash(a, b):
    (x, y), (p, q) = ((m.tree_structure(a), m.tree_structure(b)) for m in BOTH)
    assert (x == y) == (p == q)
    assert (x != y) == (p != q)
    assert x == ours.tree_structure(copy.deepcopy(a))
    if x == y:
        assert hash(x) == hash(y)


@few
@given(trees)
def test_pickle(tree):
    treedef = ours.tree_structure(tree)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(treedef, protocol))
        assert again == treedef
        assert hash(again) == hash(treedef)
        assert repr(again) == repr(treedef)
    assert copy.deepcopy(treedef) == treedef


@few
@given(trees, trees)
def test_compose_and_tuple(a, b):
    (x, y), (p, q) = ((m.tree_structure(a), m.tree_structure(b)) for m in BOTH)
    assert repr(x.compose(y)) == repr(p.compose(q))
    assert x.compose(y).num_nodes == p.compose(q).num_nodes
    assert repr(ours.treedef_tuple([x, y])) == repr(theirs.treedef_tuple([p, q]))


@few
@given(trees)
def test_paths(tree):
    pairs, expected = (m.tree_leaves_with_path(tree) for m in BOTH)
    assert [(keys_text(path), leaf) for path, leaf in pairs] == [(keys_text(path), leaf) for path, leaf in expected]
    for options in [{}, dict(simple=True), dict(separator="/"), dict(simple=True, separator=".")]:
        assert [ours.keystr(path, **options) for path, _ in pairs] == [
            theirs.keystr(path, **options) for path, _ in expected
        ]
    again, treedef = ours.tree_flatten_with_path(tree)
    assert again == pairs
    assert treedef == ours.tree_structure(tree)


@few
@given(trees)
def test_map(tree):
    def f(x, *rest):
        return (x, *rest, "mapped")

    assert ours.tree_map(f, tree) == theirs.tree_map(f, tree)
    assert ours.tree_map(f, tree, tree, tree) == theirs.tree_map(f, tree, tree, tree)
    with_path = ours.tree_map_with_path(lambda path, x, y: (keys_text(path), x, y), tree, tree)
    assert with_path == theirs.tree_map_with_path(lambda path, x, y: (keys_text(path), x, y), tree, tree)


@few
@given(trees, trees)
def test_map_over_different_trees(a, b):
    def f(*xs):
        return xs

    result, expected = (outcome(m.tree_map, f, a, b) for m in BOTH)
    if not isinstance(expected, Failure):
        assert result == expected
    elif "namedtuple" in repr(ours.tree_structure(a)):
        # JAX's paths name the first field of a named tuple for all of them
        assert result.kind is expected.kind
    elif "symmetric difference" in expected.text:
        # JAX prints it in the order of a set
        assert result.kind is ValueError
        (text, difference), (expected_text, expected_difference) = (r.text.rsplit("\n", 1) for r in (result, expected))
        assert text == expected_text
        assert sorted(difference.split()) == sorted(expected_difference.split())
    else:
        assert without_difference(result) == without_difference(expected)


@few
@given(trees, trees)
def test_flatten_up_to(a, b):
    result, expected = (outcome(lambda m=m: m.tree_structure(a).flatten_up_to(b)) for m in BOTH)
    if isinstance(expected, Failure):
        assert result.kind is expected.kind
    else:
        assert result == expected


@few
@given(trees, st.data())
def test_broadcast_of_a_pruned_tree(tree, data):
    def prune(sub):
        return data.draw(st.booleans())

    prefix = ours.tree_map(lambda x: "leaf", tree, is_leaf=prune)
    assert ours.tree_broadcast(prefix, tree) == theirs.tree_broadcast(prefix, tree)
    assert ours.tree_broadcast(prefix, tree, is_leaf=lambda x: x is None) == theirs.tree_broadcast(
        prefix, tree, is_leaf=lambda x: x is None
    )


@few
@given(trees)
def test_reductions(tree):
    values = ours.tree_map(lambda x: repr(x), tree)
    for options in [{}, dict(is_leaf=lambda x: isinstance(x, list))]:
        assert ours.tree_all(tree, **options) == theirs.tree_all(tree, **options)
        join = lambda a, b: f"({a} {b})"
        assert outcome(ours.tree_reduce, join, values, **options) == outcome(
            theirs.tree_reduce, join, values, **options
        )
        assert ours.tree_reduce(join, values, "0", **options) == theirs.tree_reduce(join, values, "0", **options)
        assert outcome(ours.tree_reduce_associative, join, values, **options) == outcome(
            theirs.tree_reduce_associative, join, values, **options
        )
    assert ours.tree_reduce_associative(join, [], identity="none") == "none"


@few
@given(trees, trees)
def test_transpose(outer, inner):
    x, y = ours.tree_structure(outer), ours.tree_structure(inner)
    p, q = theirs.tree_structure(outer), theirs.tree_structure(inner)
    tree = ours.tree_unflatten(x.compose(y), range(x.num_leaves * y.num_leaves))
    if x.num_leaves:
        assert ours.tree_transpose(x, y, tree) == theirs.tree_transpose(p, q, tree)
        assert ours.tree_transpose(x, None, tree) == theirs.tree_transpose(p, None, tree)


@few
@given(trees)
def test_one_level(tree):
    result, expected = (outcome(m.flatten_one_level, tree) for m in BOTH)
    if isinstance(expected, Failure):
        assert result == expected
        return
    assert (list(result[0]), result[1]) == (list(expected[0]), expected[1])
    assert ours.is_tree_node(type(tree)) is theirs.is_tree_node(type(tree)) is True
    (pairs, aux), (expected_pairs, expected_aux) = (m.flatten_one_level_with_keys(tree) for m in BOTH)
    assert aux == expected_aux
    assert [child for _, child in pairs] == [child for _, child in expected_pairs]
    if not isinstance(aux, type):  # JAX names the first field for each child of a named tuple
        assert [repr(key) for key, _ in pairs] == [repr(key) for key, _ in expected_pairs]


@few
@given(st.lists(trees, max_size=3))
def test_all_leaves(items):
    assert ours.all_leaves(items) == theirs.all_leaves(items)
    is_leaf = lambda x: isinstance(x, (tuple, dict))
    assert ours.all_leaves(items, is_leaf) == theirs.all_leaves(items, is_leaf)


@few
@given(trees)
def test_from_iterable_tree(tree):
    treedef, expected = (m.tree_structure(tree) for m in BOTH)

    def nested(structure, leaves):
        if structure.node_data() is None:
            return next(leaves)
        return [nested(child, leaves) for child in structure.children()]

    lists = nested(treedef, iter(ours.tree_leaves(tree)))
    assert outcome(treedef.from_iterable_tree, lists) == outcome(expected.from_iterable_tree, lists)


@pytest.mark.parametrize("is_leaf", [lambda x: x is None, lambda x: isinstance(x, tuple), lambda x: True, None])
@few
@given(tree=trees)
def test_is_leaf(is_leaf, tree):
    (leaves, treedef), (expected, expected_def) = (m.tree_flatten(tree, is_leaf) for m in BOTH)
    assert leaves == expected
    assert repr(treedef) == repr(expected_def)
    if is_leaf is None:
        return
    at = lambda path, x: len(path) > 1 or is_leaf(x)
    pairs, expected = (m.tree_leaves_with_path(tree, at, is_leaf_takes_path=True) for m in BOTH)
    assert [(keys_text(path), leaf) for path, leaf in pairs] == [(keys_text(path), leaf) for path, leaf in expected]


def test_one_level_of_a_static_object():
    for module in BOTH:
        static = module.register_static(type("Static", (), {}))()
        assert module.flatten_one_level(static) == ([], static)
