"""Errors, registration, key classes and the look of structures, against JAX where texts are the same."""

import collections
import copy
import dataclasses
import inspect
import pickle
import sys
import typing
import warnings

import jax
import jax.tree_util as theirs
import numpy as np
import pytest

import ferrax
import ferrax.tree_util as ours
from tests.tree.nodes import BOTH, Data, Failure, Keyed, Pair, Plain, Point, Static, outcome, without_difference

TREES = [
    1,
    None,
    (),
    (1,),
    (1, 2),
    [],
    [1],
    [None, None],
    {},
    {"b": 1, "a": (2, 3)},
    {1: 2},
    {"a\"b'": 1},
    Point(1, 2),
    Pair(1, (2, 3)),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(int, {"b": 1, "a": 2}),
    Plain((1, 2), "aux"),
    Plain((), None),
    Keyed(1, [2]),
    Data(1, 2),
    Data([], None, "other"),
    Static("s"),
    {2: "c", 1: "b", True + 2: "d"},
    {(1, "b"): 1, (1, "a"): 2},
    {10**30: 1, -1: 2},
    {"é": 1, "z": 2, "𝔸": 3, "\ud800": 4},
    {b"b": 1, b"a": 2},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_look(tree):
    treedef, expected = (m.tree_structure(tree) for m in BOTH)
    assert repr(treedef) == str(treedef) == repr(expected)
    assert ours.tree_leaves(tree) == theirs.tree_leaves(tree)
    assert [ours.keystr(p) for p, _ in ours.tree_leaves_with_path(tree)] == [
        theirs.keystr(p).replace(".y", ".y") for p, _ in theirs.tree_leaves_with_path(tree)
    ]


def test_partial():
    for make in (lambda m: m.Partial(print, 1, a=2), lambda m: m.Partial(m.Partial(print, 1), 2)):
        p, q = make(ours), make(theirs)
        text, expected = (repr(m.tree_structure(x)) for m, x in ((ours, p), (theirs, q)))
        assert text.replace("_SameAs", "_HashableCallableShim") == expected
        assert ours.tree_leaves(p) == theirs.tree_leaves(q)
    add = ours.Partial(lambda x, y: x + y, 2)
    assert add(3) == 5
    doubled = ours.tree_map(lambda x: 2 * x, add)
    assert isinstance(doubled, ours.Partial)
    assert doubled(3) == 7
    nested = ours.Partial(add, 5)
    assert nested() == 7
    assert ours.tree_structure(nested) == ours.tree_structure(ours.Partial(add, 6))


@pytest.mark.parametrize(
    ("structure", "tree"),
    [
        (((1, 2), 3), (1, 3)),
        ((1, 2), (1, 3, 4)),
        ([1, 2], (1, 3)),
        ([1, 2], [1]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [1]),
        ({"a": 1}, collections.OrderedDict(a=1)),
        (Point(1, 2), (1, 2)),
        (Point(1, 2), Pair(1, 2)),
        (Point(1, 2), typing.NamedTuple("Q", [("x", int)])(1)),
        (Plain((1, 2), 0), Plain((1,), 0)),
        (Plain((1, 2), 0), Plain((1, 2), 1)),
        (Plain((1, 2), 0), 3),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)),
        ((1, 2), Point(1, 2)),
    ],
    ids=repr,
)
def test_flatten_up_to_errors(structure, tree):
    result, expected = (outcome(m.tree_structure(structure).flatten_up_to, tree) for m in BOTH)
    assert result == expected
    assert isinstance(result, Failure)


@pytest.mark.parametrize("fields", ["x y", "x y z"])
def test_named_tuples_of_registered_classes_are_told_from_others(fields):
    registered = collections.namedtuple("Registered", fields)
    for m in BOTH:
        m.register_pytree_node(registered, lambda r: (tuple(r), None), lambda _, children: Point(*children))
    value = registered(*range(len(fields.split())))
    result, expected = (outcome(m.tree_structure(Point(1, 2)).flatten_up_to, value) for m in BOTH)
    assert result == expected
    assert isinstance(result, Failure)


def test_none_is_no_leaf():
    with pytest.raises(ValueError, match=r"^Expected None, got 1\.\n\nNone is a container"):
        ours.tree_structure(None).flatten_up_to(1)


@pytest.mark.parametrize(
    "trees",
    [
        ((1, 2), (1, 2, 3)),
        ({"a": 1}, {"b": 1}),
        ((1, (2, 3)), (1, 2)),
        ((1, 2), (1, (2, 3))),
        (None, 1),
        ((1, None), (2, 3)),
        (1, None),
        ({"a": 1}, collections.OrderedDict(a=1)),
        ([1, 2], (1, 2)),
        ({"a": 1, "b": 2}, {"a": 1}),
        (Plain((1, 2), 0), Plain((1,), 0)),
        (Plain((1, 2), "x\ny"), Plain((1, 2), "x\nz")),
        (Data(1, 2), Data(1, 2, "n")),
        ({"a": {"b": (1, 2)}}, {"a": {"b": (1, 2, 3)}}),
        ([{"k": Keyed((1,), 2)}], [{"k": Keyed([1], 2)}]),
        (Point(1, 2), Pair(1, 2)),
    ],
    ids=repr,
)
def test_map_errors(trees):
    def f(*xs):
        return xs

    for call in (
        lambda m: m.tree_map(f, *trees),
        lambda m: m.tree_map_with_path(lambda path, *xs: xs, *trees),
        lambda m: m.tree_broadcast(*trees),
    ):
        result, expected = (without_difference(outcome(call, m)) for m in BOTH)
        assert result == expected


def test_keys_that_differ_are_named():
    with pytest.raises(ValueError, match="the prefix pytree alone has 'c' and the full pytree alone has 'd'"):
        ours.tree_map(lambda x, y: x, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2, "d": 4})


def test_a_field_of_a_named_tuple_has_its_own_name():
    with pytest.raises(ValueError, match=r"tree_map tree\.y\n"):
        ours.tree_map(lambda *x: x, Point(1, (2,)), Point(1, 2))


def test_map_errors_have_no_context():
    with pytest.raises(ValueError) as info:
        ours.tree_map(lambda *x: x, (1,), (1, 2))
    assert info.value.__cause__ is None
    assert info.value.__context__ is None


@pytest.mark.parametrize("tree", [{1: 2, "a": 3}, [{"a": 1, None: 2}], {1j: 1, 2j: 3}], ids=repr)
def test_keys_that_cannot_be_sorted(tree):
    result, expected = (outcome(m.tree_flatten, tree) for m in BOTH)
    assert result == expected
    with pytest.raises(ValueError) as info:
        ours.tree_leaves(tree)
    assert isinstance(info.value.__cause__, TypeError)


@pytest.mark.parametrize("leaves", [[1], [1, 2, 3], [], iter([1])])
def test_wrong_number_of_leaves(leaves):
    given = list(leaves)
    result, expected = (outcome(m.tree_structure((0, 0)).unflatten, given) for m in BOTH)
    assert result == expected
    assert outcome(ours.tree_unflatten, ours.tree_structure((0, 0)), given) == expected


@pytest.mark.parametrize("answer", ["a", [], 1, np.bool_(True)], ids=repr)
def test_predicates_answer_with_a_bool(answer):
    result, expected = (outcome(m.tree_flatten, (1, 2), lambda x: answer) for m in BOTH)
    assert result == expected
    assert isinstance(result, Failure)
    assert ours.tree_leaves((1, 2), lambda x: None) == [1, 2]


def test_errors_of_the_users_functions_come_through():
    class Mine(Exception):
        pass

    error = Mine("boo")

    def fail(*_):
        raise error

    for call in [
        lambda: ours.tree_map(fail, [1]),
        lambda: ours.tree_map_with_path(fail, [1]),
        lambda: ours.tree_leaves([1], fail),
        lambda: ours.tree_reduce(fail, [1, 2]),
        lambda: ours.tree_structure(0).walk(fail, fail, [1]),
    ]:
        with pytest.raises(Mine) as info:
            call()
        assert info.value is error


def register(m, flatten, with_keys=None):
    kind = type("Custom", (), {})
    m.register_pytree_node(kind, flatten, lambda aux, children: kind(), with_keys)
    return kind()


@pytest.mark.parametrize("returned", [3, (1, 2, 3), (1, 2), [(1,), 2]], ids=repr)
def test_wrong_flatten_functions(returned):
    result, expected = (outcome(m.tree_leaves, register(m, lambda _: returned)) for m in BOTH)
    assert result == expected


def test_wrong_flatten_with_keys_functions():
    for returned in [3, (1, 2), ((1, 2), None), (((1, 2, 3),), None)]:
        node = register(ours, lambda _: ((), None), lambda _, returned=returned: returned)
        with pytest.raises(ValueError, match="to_iterable_with_keys function for a custom PyTree node should return"):
            ours.tree_leaves_with_path(node)


def test_duplicate_registration():
    for kind in [Plain, tuple, list, dict, type(None), collections.OrderedDict, Data]:
        result, expected = (outcome(m.register_pytree_node, kind, lambda x: ((), x), lambda x, _: x) for m in BOTH)
        assert result == expected
        assert isinstance(result, Failure)


def test_many_registrations():
    kinds = [type(f"Kind{i}", (), {}) for i in range(500)]
    for kind in kinds:
        ours.register_pytree_node(kind, lambda x: ((1,), None), lambda _, xs: xs)
    assert ours.tree_leaves([kind() for kind in kinds]) == [1] * 500
    assert all(map(ours.is_tree_node, kinds))


def test_equality_of_arrays_as_metadata():
    def compare(m):
        return m.tree_structure(Plain((), np.ones(3))) == m.tree_structure(Plain((), np.ones(3)))

    assert outcome(compare, ours) == outcome(compare, theirs)


def test_unhashable_metadata():
    treedef = ours.tree_structure(Plain((1,), [1]))
    assert treedef == ours.tree_structure(Plain((1,), [1]))
    assert hash(treedef) == hash(ours.tree_structure(Plain((1,), [1])))


def test_a_tree_that_contains_itself():
    loop = []
    loop.append(loop)
    with pytest.raises(RecursionError, match="cyclical"):
        ours.tree_leaves(loop)
    deep = 1
    for _ in range(sys.getrecursionlimit() - 100):
        deep = (deep,)
    assert ours.tree_leaves(deep) == [1]
    assert ours.tree_structure(deep).num_nodes == sys.getrecursionlimit() - 99


def test_comparisons_with_other_things():
    treedef = ours.tree_structure((1, 2))
    assert (treedef == 3) is False
    assert (treedef != 3) is True
    with pytest.raises(TypeError):
        treedef < treedef
    with pytest.raises(TypeError, match="expected a PyTreeDef"):
        ours.treedef_tuple([1])


@dataclasses.dataclass
class Record:
    x: int
    y: int = dataclasses.field(default=0, metadata=dict(static=True))
    z: int = dataclasses.field(default=0, init=False)


@pytest.mark.parametrize(
    "args",
    [
        (["x"], ["q"]),
        (["x"], ["x"]),
        (["x"],),
        (),
        (["x", "y"], []),
        (["x"], []),
    ],
    ids=repr,
)
def test_wrong_dataclass_fields(args):
    def make():
        fields = [("x", int), ("y", int), ("z", int, dataclasses.field(default=0, init=False))]
        return dataclasses.make_dataclass("R", fields)

    result, expected = (outcome(m.register_dataclass, make(), *args) for m in BOTH)
    if isinstance(expected, Failure):
        assert result == expected
    else:
        assert dataclasses.is_dataclass(result)
    assert outcome(ours.register_dataclass, int) == outcome(theirs.register_dataclass, int)


def test_dropped_fields_and_other_classes():
    @dataclasses.dataclass
    class R:
        x: int
        cache: object = None

    ours.register_dataclass(R, drop_fields=["cache"], data_fields=["x"], meta_fields=[])
    assert ours.tree_map(lambda v: v + 1, R(1, "c")) == R(2, None)

    class Bag:
        def __init__(self, a, b):
            self.a, self.b = a, b

    assert ours.register_dataclass(Bag, ["b"], ["a"]) is Bag
    assert repr(ours.tree_structure(Bag(1, 2))) == "PyTreeDef(CustomNode(Bag[(1,)], [*]))"
    bag = Bag(1, 2)
    del bag.b
    with pytest.raises(AttributeError, match="no attribute 'b'"):
        ours.tree_leaves(bag)


def test_register_classes():
    @ours.register_pytree_with_keys_class
    class Special:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten_with_keys(self):
            return ((ours.GetAttrKey("x"), self.x), (ours.GetAttrKey("y"), self.y)), "static"

        @classmethod
        def tree_unflatten(cls, aux, children):
            assert aux == "static"
            return cls(*children)

    pairs, treedef = ours.tree_flatten_with_path([Special(1, (2,))])
    assert [ours.keystr(path) for path, _ in pairs] == ["[0].x", "[0].y[0]"]
    assert treedef.unflatten([5, 6])[0].y == (6,)
    assert ours.flatten_one_level(Special(1, 2)) == ([1, 2], "static")


@pytest.mark.parametrize(
    ("name", "argument"), [("SequenceKey", 3), ("DictKey", "a"), ("GetAttrKey", "x"), ("FlattenedIndexKey", 2)]
)
def test_keys(name, argument):
    key, expected = getattr(ours, name)(argument), getattr(theirs, name)(argument)
    assert (repr(key), str(key)) == (repr(expected), str(expected))
    field = type(expected).__match_args__[0]
    assert type(key).__match_args__ == (field,)
    assert getattr(key, field) == argument
    assert key == type(key)(argument) == type(key)(**{field: argument})
    assert hash(key) == hash(type(key)(argument))
    assert key != argument
    assert pickle.loads(pickle.dumps(key)) == key
    assert copy.copy(key) == key
    assert type(key).__module__ == "ferrax.tree_util"
    with pytest.raises(TypeError):
        type(key)()
    with pytest.raises(AttributeError):
        setattr(key, field, 1)


def test_keys_of_different_kinds_differ():
    assert ours.SequenceKey(1) != ours.FlattenedIndexKey(1)
    assert len({ours.SequenceKey(1), ours.FlattenedIndexKey(1), ours.DictKey(1)}) == 3
    assert ours.keystr((1, "a"), simple=True, separator="/") == "1/a"


def test_structures_are_collected():
    import gc
    import weakref

    class Aux:
        pass

    aux = Aux()
    aux.treedef = ours.tree_structure(Plain((1,), aux))
    ref = weakref.ref(aux)
    del aux
    gc.collect()
    assert ref() is None


def test_registry():
    registry = ours.default_registry
    assert registry.flatten((1, [2])) == ([1, 2], ours.tree_structure((1, [2])))
    assert registry.flatten_one_level(3) is None
    assert registry.flatten_one_level_with_keys(3) is None
    assert registry.flatten_one_level((1,)) == ((1,), None)
    assert registry.is_node(dict)
    assert pickle.loads(pickle.dumps(registry)) is registry


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_protocol_buffers(tree):
    treedef, expected = (m.tree_structure(tree) for m in BOTH)
    data, wanted = outcome(treedef.serialize_using_proto), outcome(expected.serialize_using_proto)
    assert data == wanted or wanted == Failure(RuntimeError, "std::bad_cast")  # JAX on a lone surrogate
    if isinstance(data, bytes):
        assert ours.PyTreeDef.deserialize_using_proto(ours.default_registry, data) == treedef


@pytest.mark.parametrize("data", [b"", b"abc", b"\n\x00", b"\n\x02\x10\x01" * 2, b"\n\x04\x08\x01\x10\x04"])
def test_malformed_protocol_buffers(data):
    with pytest.raises((ValueError, ferrax.errors.JaxRuntimeError)):
        ours.PyTreeDef.deserialize_using_proto(ours.default_registry, data)


def test_protocol_buffers_are_bounded():
    leaf, chained = b"\n\x02\x10\x01", b"\n\x04\x08\x01\x10\x02"
    with pytest.raises(ValueError, match="deep"):
        ours.PyTreeDef.deserialize_using_proto(ours.default_registry, leaf + chained * 200_000)
    with pytest.raises(ValueError, match="more than 262144 nodes"):
        ours.PyTreeDef.deserialize_using_proto(ours.default_registry, leaf * 300_000)


def test_short_names_are_the_same_functions():
    for name in jax.tree.__all__ if hasattr(jax.tree, "__all__") else dir(jax.tree):
        if name.startswith("_"):
            continue
        function = getattr(ferrax.tree, name)
        expected = getattr(jax.tree, name)
        if callable(expected):
            assert callable(function)
            assert list(inspect.signature(function).parameters) == list(inspect.signature(expected).parameters)
            assert function.__doc__
            assert function.__module__ == "ferrax.tree"
            assert function.__name__ == name
    assert pickle.loads(pickle.dumps(ferrax.tree.map)) is ferrax.tree.map


@pytest.mark.parametrize("args", [(), (1, 2, 3), ((1,), None, False, True)])
def test_wrong_arguments(args):
    with pytest.raises(TypeError, match=r"tree_flatten\(\) (missing|takes)"):
        ours.tree_flatten(*args)


def test_map_takes_its_arguments_by_name_too():
    assert ferrax.tree.map(f=lambda x: x + 1, tree=[1]) == [2]
    with pytest.raises(TypeError, match=r"tree_map\(\) missing required argument: 'tree'"):
        ferrax.tree.map(len)
    with pytest.raises(TypeError, match="unexpected keyword argument 'leaf'"):
        ferrax.tree.map(len, [], leaf=1)


def test_no_python_frame():
    """Only the user's function gets a frame."""
    frames = []

    def trace(frame, event, _):
        if event == "call":
            frames.append(frame.f_code.co_name)

    def double(x, y):
        return x + y

    tree = {"a": [1, 2], "b": (3, {"c": 4})}
    sys.setprofile(trace)
    try:
        ferrax.tree.map(double, tree, tree)
        ferrax.tree.flatten(tree)
        ferrax.tree.leaves(tree)
        ferrax.tree.structure(tree)
    finally:
        sys.setprofile(None)
    assert frames == ["double"] * 4


ITERATORS = {
    "generator": lambda: (x for x in ()),
    "list_iterator": lambda: iter([1]),
    "tuple_iterator": lambda: iter((1,)),
    "set_iterator": lambda: iter({1}),
    "dict_keyiterator": lambda: iter({}),
    "dict_itemiterator": lambda: iter({}.items()),
    "dict_valueiterator": lambda: iter({}.values()),
    "enumerate": lambda: enumerate([1]),
    "filter": lambda: filter(None, [1]),
    "map": lambda: map(int, [1]),
    "zip": lambda: zip([1]),
}


@pytest.mark.parametrize("module", [ours, theirs], ids=["ferrax", "jax"])
@pytest.mark.parametrize("name", ITERATORS)
def test_iterators_are_leaves_that_are_warned_of(module, name):
    for tree in (ITERATORS[name](), [1, ITERATORS[name]()]):
        for ask in (module.tree_leaves, module.tree_structure, module.tree_flatten_with_path):
            with pytest.warns(
                DeprecationWarning, match=f"Python iterable type '{name}' is treated as a leaf in PyTree"
            ):
                ask(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.tree_leaves([ITERATORS[name]()], is_leaf=lambda x: not isinstance(x, list))
        module.all_leaves([ITERATORS[name]()])
        module.tree_leaves([range(3), "text", {1}, reversed([1]), range(3).__iter__()])
