"""Values that are no arrays, and change, in functions that are traced."""

from dataclasses import dataclass

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax.experimental import cur_qdd, hijax


@dataclass(frozen=True)
class Names:
    """What is known of a shelf while a program is traced: its names, and the types of what it holds."""

    names: tuple
    types: tuple


class ShelfType(hijax.MutableHiType):
    def __eq__(self, other):
        return isinstance(other, ShelfType)

    def __hash__(self):
        return hash(ShelfType)

    def lo_ty_qdd(self, state):
        return list(state.types)

    def new_from_loval(self, state, *arrays):
        return Shelf(**dict(zip(state.names, arrays, strict=True)))

    def read_loval(self, state, shelf):
        return [get_p.bind(shelf, name=name) for name in state.names]

    def update_from_loval(self, state, shelf, *arrays):
        for name, x in zip(state.names, arrays, strict=True):
            put_p.bind(shelf, x, name=name)


class Shelf:
    """Arrays by name."""

    __slots__ = ("held",)

    def __init__(self, **held):
        self.held = held

    def cur_qdd(self):
        return Names(tuple(self.held), tuple(map(jax.typeof, self.held.values())))

    def __getitem__(self, name):
        return get_p.bind(self, name=name)

    def __setitem__(self, name, x):
        put_p.bind(self, x, name=name)


class Get(hijax.HiPrimitive):
    def to_lojax(self, shelf, *, name):
        return shelf.held[name]


class Put(hijax.HiPrimitive):
    multiple_results = True

    def impl(self, shelf, x, *, name):
        shelf.held[name] = x
        return []


get_p, put_p = Get("get"), Put("put")
hijax.register_hitype(Shelf, lambda shelf: ShelfType())


def test_primitives_work_on_values_at_once():
    shelf = Shelf(a=jnp.ones(2))
    shelf["b"] = shelf["a"] * 3
    np.testing.assert_array_equal(shelf["b"], [3, 3])
    assert cur_qdd(shelf).names == ("a", "b")
    with pytest.raises(TypeError, match="takes a value whose type has states, got float"):
        cur_qdd(1.0)
    with pytest.raises(NotImplementedError, match="defines neither impl nor to_lojax"):
        hijax.HiPrimitive("nothing").bind(shelf)


def test_jit_changes_its_argument_at_every_call_and_traces_once_a_state():
    traces = []

    @jax.jit
    def step(shelf, x):
        traces.append(cur_qdd(shelf).names)
        shelf["a"] = shelf["a"] + x
        shelf["last"] = x
        return shelf["a"] * 2

    shelf = Shelf(a=jnp.float32(1))
    assert step(shelf, 2.0) == 6 and step(shelf, 3.0) == 12 and step(shelf, 4.0) == 20
    assert float(shelf["a"]) == 10 and float(shelf["last"]) == 4
    assert traces == [("a",), ("a", "last")]
    other = Shelf(a=jnp.float32(5), last=jnp.float32(0))
    assert step(other, 1.0) == 12 and len(traces) <= 3 and float(shelf["a"]) == 10


def test_functions_close_over_values():
    shelf = Shelf(a=jnp.float32(3))

    def body(i, _):
        shelf["a"] = shelf["a"] + i
        return i + 1, None

    jax.lax.scan(body, jnp.float32(1), None, length=3)
    assert float(shelf["a"]) == 9

    @jax.jit
    def twice(x):
        shelf["a"] = shelf["a"] * 2
        return shelf["a"] + x

    assert twice(1.0) == 19 and twice(1.0) == 37 and float(shelf["a"]) == 36

    jax.lax.cond(True, lambda: shelf.__setitem__("a", shelf["a"] + 1), lambda: None)
    assert float(shelf["a"]) == 37


def test_values_are_made_in_traced_functions():
    @jax.jit
    def f(x):
        shelf = Shelf(a=x)
        shelf["a"] = shelf["a"] * 2
        return jax.lax.fori_loop(0, 2, lambda i, y: y + shelf["a"], x)

    assert f(1.0) == 5 and f(2.0) == 10


def test_a_new_value_at_every_trace_is_an_error():
    @jax.jit
    def g(x):
        shelf = Shelf(a=np.float32(1))
        return x + shelf["a"]

    with pytest.raises(NotImplementedError, match=r"g at .* makes a new value of type"):
        g(1.0)


def test_derivatives_of_functions_that_change_values():
    shelf = Shelf(a=jnp.float32(2))

    def loss(x, shelf):
        shelf["a"] = jax.lax.stop_gradient(x * 3)
        return x**2 + shelf["a"]

    assert jax.grad(loss)(4.0, shelf) == 8 and float(shelf["a"]) == 12
    assert jax.jit(jax.grad(loss))(5.0, shelf) == 10 and float(shelf["a"]) == 15


def test_shapes_are_asked_without_a_change():
    shelf = Shelf(a=jnp.ones(3))

    def f(shelf):
        shelf["a"] = shelf["a"] + 1
        return shelf["a"][:2]

    assert jax.eval_shape(f, shelf).shape == (2,)
    np.testing.assert_array_equal(shelf["a"], [1, 1, 1])


class PairType(hijax.HiType):
    def __eq__(self, other):
        return isinstance(other, PairType)

    def __hash__(self):
        return hash(PairType)

    has_qdd = False

    def lower_val(self, pair):
        return [pair.x, pair.y]

    def raise_val(self, x, y):
        return Pair(x, y)


@dataclass(frozen=True, eq=False)
class Pair:
    x: object
    y: object


hijax.register_hitype(Pair, lambda pair: PairType())


def test_values_that_do_not_change_are_arguments():
    assert jax.jit(lambda pair, z: pair.x * pair.y + z)(Pair(jnp.float32(2), jnp.float32(3)), 1.0) == 7


def test_a_value_that_does_not_change_may_be_there_twice():
    pair = Pair(jnp.float32(2), jnp.float32(3))
    total = jax.jit(lambda a, b, z: a.x * b.y + z)
    assert total(pair, pair, 1.0) == total(pair, Pair(jnp.float32(2), jnp.float32(3)), 1.0) == 7
    assert jax.jit(lambda a: a.x + pair.y)(pair) == 5
    assert jax.lax.cond(True, lambda a, b: a.x, lambda a, b: b.y, pair, pair) == 2
    _, swapped = jax.lax.scan(lambda c, _: ((c[1], c[0]), c[0].x), (pair, pair), None, length=2)
    assert swapped.tolist() == [2, 2]
