"""Input that means harm: damaged bytes, objects that change while they are read, memory that others write.

The answer is a result or an error of the usual classes, never a crash. A trial takes `times`, which scales a count, and
a random generator.
"""

import gc
import os
import pickle

import ml_dtypes
import numpy as np

import ferrax
import ferrax.numpy as jnp

#: What bad input may raise.
USUAL = (TypeError, ValueError, BufferError, RuntimeError, LookupError, EOFError, AttributeError, ImportError,
         OverflowError, MemoryError, SyntaxError, pickle.UnpicklingError)  # fmt: skip


def attempt(function, *args):
    """The result, None after an error that bad input may raise; all others are findings."""
    try:
        return function(*args)
    except USUAL as error:
        if isinstance(error, ferrax.errors.InternalError):
            raise
        return None


def damaged(rng, data):
    """Bytes with some changed, lost or put in."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 10])):
        at, way = rng.randrange(len(data) + 1), rng.randrange(3)
        if way == 0:
            data[at : at + 1] = bytes([rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])])
        elif way == 1:
            del data[at : at + rng.randrange(1, 5)]
        else:
            data[at:at] = bytes(rng.choice([0x80, 0xFF, rng.randrange(256)]) for _ in range(rng.randrange(1, 11)))
    return bytes(data)


def pickles(times, rng):
    """Damaged pickles of arrays, keys, trees and dtypes."""
    objects = [
        jnp.arange(6.0).reshape(2, 3), jnp.array(3), jnp.ones((2, 0)), jnp.ones(5, jnp.bfloat16), jnp.array([True]),
        jnp.ones(3, jnp.complex64), ferrax.random.key(3), ferrax.random.split(ferrax.random.key(1), 4), jnp.float32,
        ferrax.tree.structure({"a": [1, (2, None)], "b": 3}), ferrax.devices()[0], jnp.ones(2, jnp.int4),
        ferrax.tree_util.Partial(jnp.sin, 1),
    ]  # fmt: skip
    for thing in objects:
        data = pickle.dumps(thing, rng.choice([2, 4, 5]))
        assert type(pickle.loads(data)) is type(thing)
        for _ in times(300):
            bad = damaged(rng, data)
            if b"posix" not in bad and b"os\n" not in bad:
                attempt(repr, attempt(pickle.loads, bad))


def use_structure(tree, other):
    """Everything that a treedef does."""
    repr(tree)
    hash(tree)
    assert tree == tree
    if tree.num_leaves < 10_000:
        attempt(tree.unflatten, [0] * tree.num_leaves)
        attempt(tree.serialize_using_proto)
        attempt(tree.compose, other)


def structures(times, rng):
    """Damaged and random bytes of treedefs, and trees as deep as they get."""
    treedef, registry = ferrax.tree_util.PyTreeDef, ferrax.tree_util.default_registry
    tree = ferrax.tree.structure({"a": [1, (2, None)], "b": 3, "c": {"d": (), "e": []}})
    data = tree.serialize_using_proto()
    assert treedef.deserialize_using_proto(registry, data) == tree
    for i in times(10_000):
        bad = os.urandom(rng.randrange(100)) if i % 10 == 0 else damaged(rng, data)
        found = attempt(treedef.deserialize_using_proto, registry, bad)
        if found is not None:
            use_structure(found, tree)
    for depth in (100, 1000, 10_000, 100_000):
        deep = 0
        for _ in range(depth):
            deep = [deep]
        for function in (
            ferrax.tree.leaves,
            jnp.asarray,
            ferrax.jit(lambda x: 1),
            ferrax.tree_util.tree_leaves_with_path,
        ):
            attempt(function, deep)
        found = attempt(ferrax.tree.structure, deep)
        if found is not None:
            use_structure(found, tree)
        while isinstance(deep, list):
            deep = deep[0]


def numpy_arrays():
    """Arrays in every layout and of every odd dtype."""
    base = np.arange(24.0).reshape(2, 3, 4).astype(np.float32)
    strided = np.lib.stride_tricks.as_strided
    packed = np.zeros(4, [("a", "i1"), ("b", "f4")])["b"]
    return [
        base[:, ::2, ::-1], base[::-1, ::-1, ::-1], base.astype(">f4"), np.arange(5, dtype=">i8"),
        np.ones(3, ">c8"), np.array([1, None], object), np.zeros(3, [("a", "f4")]), np.zeros(3, "V8"),
        np.zeros(3, "V2"), np.array(["ab"]), np.array([b"ab"]), np.array(["2020"], "datetime64[D]"),
        np.ones(3, np.longdouble), packed, np.asfortranarray(base), np.broadcast_to(np.float32(1), (3, 4)),
        np.zeros((0, 3))[:, ::-1], strided(base, (3, 3), (0, 4)), strided(base, (20, 4), (4, 4)),
        np.ma.array([1.0, 2.0], mask=[0, 1]), np.matrix([[1, 2]]), np.ones([1] * 64),
        base.astype(ml_dtypes.bfloat16)[:, ::-1], np.arange(4).astype(ml_dtypes.int4), ml_dtypes.bfloat16(1),
        base.astype(ml_dtypes.float8_e4m3fn)[..., ::2],
    ]  # fmt: skip


READERS = [jnp.asarray, jnp.array, ferrax.jit(lambda x: x), ferrax.device_put, lambda v: jnp.stack([v, v])[0]]


def layouts(times, rng):
    """NumPy arrays are read as NumPy reads them, or refused."""
    for array in numpy_arrays():
        for function in (
            jnp.asarray,
            jnp.array,
            ferrax.jit(lambda x: x),
            ferrax.device_put,
            lambda v: jnp.stack([v, v])[0],
        ):
            found = attempt(function, array)
            if found is not None and not isinstance(array, np.ma.MaskedArray):
                want = np.asarray(array)
                np.testing.assert_array_equal(np.asarray(found).astype(np.float64), want.astype(np.float64))
        for copy in (None, True, False):
            attempt(ferrax.dlpack.from_dlpack, array, None, copy)


class Answers:
    """Answers the protocols of arrays with anything."""

    def __init__(self, answer):
        self.answer = answer

    def __array__(self, dtype=None, copy=None):
        return self.answer

    def __jax_array__(self):
        return self.answer


class Clears:
    """Empties a list while it is read."""

    def __init__(self, target):
        self.target = target

    def clear(self, answer):
        self.target.clear()
        gc.collect()
        return answer

    def __float__(self):
        return self.clear(1.0)

    def __index__(self):
        return self.clear(1)

    def __array__(self, dtype=None, copy=None):
        return self.clear(np.array(1.0))

    def __len__(self):
        return self.clear(0)


class Node:
    """A pytree node that empties what holds it while it is flattened."""


def protocols(times, rng):
    """Objects that answer wrongly, or change their container while it is read."""
    for answer in (5, None, [1, 2], np.ones(3), np.array([None]), "s", Answers(jnp.ones(2)), object()):
        for _ in times(5):
            attempt(jnp.asarray, Answers(answer))
            attempt(ferrax.jit(lambda x: x), Answers(answer))
    container = []
    ferrax.tree_util.register_pytree_node(
        Node, lambda n: (container.clear(), gc.collect(), ((1, 2), None))[2], lambda a, c: Node()
    )
    for _ in times(20):
        for function in (jnp.array, ferrax.jit(lambda x: x), ferrax.tree.leaves):
            for thing in (Clears(container), Node()):
                container[:] = [1.0] * 1000
                container[rng.randrange(1000)] = thing
                attempt(function, container)


def written_memory(times, rng):
    """Arrays keep their numbers whatever happens to the memory that they were made of, or that others see."""
    last = ferrax.jit(lambda a: jnp.cumsum(a)[-1])
    for n in (10, 1000, 1_000_000):
        for _ in times(20):
            source = np.ones(n, np.float32)
            arrays = [jnp.asarray(source), jnp.array(source), ferrax.device_put(source), last(source)]
            source[:] = 7
            assert [float(a.reshape(-1)[0]) for a in arrays] == [1, 1, 1, n]
            x = jnp.arange(float(n))
            views = [np.asarray(x), np.from_dlpack(x), memoryview(x)]
            assert not any(np.asarray(v).flags.writeable for v in views)
            want = np.arange(n, dtype=np.float32)
            if rng.random() < 0.5:
                x.delete()
            else:
                ferrax.jit(lambda a: a * 2, donate_argnums=0)(x)
            spoilt = [jnp.full(n, 5.0) for _ in range(10)]
            assert all(np.array_equal(np.asarray(v), want) for v in views)
            del spoilt
    odd = np.array([0, 1, 2, 255, 3], np.uint8).view(bool)
    for x in (jnp.asarray(odd), jnp.frombuffer(odd.tobytes(), jnp.bool_)):
        assert np.array_equal(x.astype(jnp.int32), [0, 1, 1, 1, 1])
        assert np.array_equal(ferrax.jit(lambda b: jnp.where(b, 1, 2))(x), [2, 1, 1, 1, 1])


MAKERS = [lambda t: t.__new__(t), object.__new__, lambda t: type("S", (t,), {})(), lambda t: t.__init__(1, 2)]


def types(times, rng):
    """The extension's types, made without their constructors and called on the wrong objects."""
    things = [jnp.ones(1), ferrax.tree.structure(0), ferrax.random.key(0), ferrax.devices()[0], jnp.ones(2).at[0],
              ferrax.make_jaxpr(lambda x: x)(1).jaxpr, ferrax.jit(lambda: 1)]  # fmt: skip
    for made in map(type, things):
        for make in (
            lambda t: t.__new__(t),
            object.__new__,
            lambda t: type("S", (t,), {})(),
            lambda t: t.__init__(1, 2),
        ):
            attempt(repr, attempt(make, made))
        for name in dir(made):
            member = getattr(made, name, None)
            if (
                callable(member)
                and not isinstance(member, type)
                and name not in ("__init_subclass__", "__subclasshook__")
            ):
                attempt(member, object())
                attempt(member)


TRIALS = [pickles, structures, layouts, protocols, written_memory, types]
