"""Errors about large trees and values: they name the places that differ, and their texts do not grow with the tree."""

import collections
import dataclasses
import typing

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import _ferrax, lax

SIZE = 1000
LONG = 2500


def large(value):
    return {f"w{i}": value for i in range(SIZE)}


def without(tree, key="w7"):
    return {k: v for k, v in tree.items() if k != key}


def rule(fwd, bwd):
    @jax.custom_vjp
    def f(p):
        return p["w1"]

    f.defvjp(fwd, bwd)
    return f


def jvp_rule():
    @jax.custom_jvp
    def f(p):
        return p

    f.defjvp(lambda p, t: (p[0], without(t[0])))
    return f


BIG = large(1.0)
ROWS = large(np.ones(2, np.float32))
STRUCTURE = jax.tree.structure(BIG)

# name -> (the mistake, words of its error)
STRUCTURES = {
    "map": (lambda: jax.tree.map(lambda a, b: a, BIG, without(BIG)), ["1000 child keys", "999 child keys", "\n    w7"]),
    "map of nested trees": (
        lambda: jax.tree.map(lambda a, b: a, [BIG, (BIG, 1)], [BIG, (BIG, (1, 2))][:1]),
        ["of length 2", "of length 1"],
    ),
    "map of ordered dicts": (
        lambda: jax.tree.map(lambda a, b: a, collections.OrderedDict(BIG), collections.OrderedDict(without(BIG))),
        ["\n    w7"],
    ),
    "map with other keys": (
        lambda: jax.tree.map(lambda a, b: a, BIG, {**without(BIG), "v": 1}),
        ["alone has 'w7'", "alone has 'v'"],
    ),
    "map_with_path": (lambda: jax.tree.map_with_path(lambda p, a, b: a, BIG, without(BIG)), ["\n    w7"]),
    "flatten_up_to": (lambda: STRUCTURE.flatten_up_to(without(BIG)), ["expected keys: ['w0'", "more"]),
    "flatten_up_to a list": (lambda: jax.tree.structure([1]).flatten_up_to((BIG,)), ["Expected list, got ({'w0': 1.0"]),
    "broadcast": (lambda: jax.tree.broadcast(without(BIG), BIG), ["\n    w7"]),
    "transpose": (lambda: jax.tree.transpose(STRUCTURE, jax.tree.structure((0, 0)), without(BIG)), ["'w7'"]),
    "unflatten": (lambda: jax.tree.unflatten(STRUCTURE, [1]), ["expected 1000, got 1"]),
    "scan": (
        lambda: lax.scan(lambda c, x: (without(c), x), BIG, jnp.ones(2)),
        ["c['w7'] is in the input carry but not in the output carry"],
    ),
    "scan's types": (
        lambda: lax.scan(lambda c, x: ({k: v.astype(int) for k, v in c.items()}, x), BIG, jnp.ones(2)),
        ["component c['w0'] has type float32[]", "int32[]", "and 995 more"],
    ),
    "scan's rows": (lambda: lax.scan(lambda c, x: (c, x), 0, {**ROWS, "z": np.ones(9)}), ["2, 9", "more"]),
    "while_loop": (lambda: lax.while_loop(lambda c: c["w1"] < 3, without, BIG), ["['w7'] is in the input carry"]),
    "fori_loop": (lambda: lax.fori_loop(0, 3, lambda i, c: without(c), BIG), ["c['w7'] is in the input carry"]),
    "cond": (
        lambda: lax.cond(True, lambda c: c, without, BIG),
        ["output['w7'] is in the output of true_fun but not in the output of false_fun"],
    ),
    "cond's types": (
        lambda: lax.cond(True, lambda c: c, lambda c: {k: v.astype(int) for k, v in c.items()}, BIG),
        ["at path ['w0'] has type", "and 995 more"],
    ),
    "switch": (lambda: lax.switch(1, [lambda c: c, without], BIG), ["output['w7'] is in the output of branch 0"]),
    "in_axes": (lambda: jax.vmap(lambda p: p, in_axes=(dict.fromkeys(without(BIG), 0),))(ROWS), ["\n    w7"]),
    "out_axes": (lambda: jax.vmap(lambda p: p, out_axes=dict.fromkeys(without(BIG), 0))(ROWS), ["\n    w7"]),
    "jvp": (
        lambda: jax.jvp(lambda p: p["w1"], (BIG,), (without(BIG),)),
        ["[0]['w7'] is in primals but not in tangents"],
    ),
    "vjp": (lambda: jax.vjp(lambda p: p, BIG)[1](without(BIG)), ["['w7'] is in the result but not in the argument"]),
    "linearize": (
        lambda: jax.linearize(lambda p: p, BIG)[1](without(BIG)),
        ["[0]['w7'] is in the primals but not in the tangents"],
    ),
    "grad": (lambda: jax.grad(lambda p: p)(BIG), ["Output was {'w0': ~float32[]", "more"]),
    "has_aux": (lambda: jax.grad(lambda p: p, has_aux=True)(BIG), ["two-element tuple", "more"]),
    "custom_vjp": (
        lambda: jax.grad(rule(lambda p: (p["w1"], None), lambda r, g: (without(BIG),)))(BIG),
        ["at output[0], argument p", "p['w7'] is in the argument p but not in output[0]"],
    ),
    "custom_jvp": (
        lambda: jax.jvp(jvp_rule(), (BIG,), (BIG,)),
        ["output['w7'] is in the primal output but not in the tangent output"],
    ),
    "linear_transpose": (lambda: jax.linear_transpose(lambda p: p, BIG)(without(BIG)), ["['w7'] is in the output"]),
    "pure_callback": (
        lambda: jax.pure_callback(lambda p: without(p), BIG, BIG),
        ["['w7'] is in result_shape_dtypes but not in the result"],
    ),
    "reduce": (lambda: lax.reduce(ROWS, without(BIG), lambda a, b: a, (0,)), ["['w7'] is in the operands"]),
    "closure_convert": (
        lambda: jax.closure_convert(lambda p: p["w1"], BIG)[0](without(BIG)),
        ["['w7'] is in the example arguments but not in the arguments"],
    ),
    "custom_linear_solve": (
        lambda: lax.custom_linear_solve(lambda p: without(BIG), BIG, lambda m, b: b),
        ["['w7'] is in b but not in"],
    ),
    "compiled": (
        lambda: jax.jit(lambda p: p["w1"]).lower(BIG).compile()(without(BIG)),
        ["args[0]['w7'] is in the compiled call but not in this call"],
    ),
}

VALUES = {
    "leaf of an argument": (lambda: jax.jit(lambda p: p)({**BIG, "w9": "x" * 9999}), ["p['w9']", "'…"]),
    "static list": (lambda: jax.jit(lambda p: 1, static_argnums=0)(list(range(9999))), ["[0, 1,", "more]"]),
    "asarray of a dict": (lambda: jnp.asarray(large(jnp.ones((8, 8)))), ["{'w0': float32[8,8]", "more"]),
    "donated path": (lambda: jax.jit(lambda p: p, donate_argnames="p['q']")(BIG), ["p['q']", "of the 1000 paths"]),
    "shape": (lambda: jnp.zeros(["a"] * 9999), ["['a', 'a'", "more]"]),
    "callable": (lambda: jax.jit(BIG), ["{'w0': 1.0", "more}"]),
}


@pytest.mark.parametrize("name", [*STRUCTURES, *VALUES])
def test_errors_of_large_trees(name):
    mistake, words = {**STRUCTURES, **VALUES}[name]
    with pytest.raises((TypeError, ValueError, RuntimeError)) as info:
        mistake()
    text = str(info.value)
    assert len(text) < LONG
    assert [w for w in words if w not in text] == [], text


class Point(typing.NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class Settings:
    rate: float
    names: list
    secret: str = dataclasses.field(default="", repr=False)


class Own:
    def __repr__(self):
        return "own" * 100


@pytest.mark.parametrize(
    "value",
    [
        *[None, True, 1, -2.5, 3j, "text", b"bytes", (), (1,), (1, 2), [], [1, [2]], {}, {"a": {1: 2}}, {1}, set()],
        *[
            frozenset(),
            frozenset({1}),
            range(3),
            Ellipsis,
            int,
            Point(1, (2,)),
            Settings(0.1, ["a"], "b"),
            np.float32(2),
        ],
        *[collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), np.ones(3), jnp.ones(2), jnp.int32(3)],
    ],
    ids=repr,
)
def test_short_values_are_written_as_repr_writes_them(value):
    assert _ferrax.shorten(value) == repr(value)


def test_long_values_are_cut():
    short = _ferrax.shorten
    assert short(list(range(1000)), 10) == "[0, 1, 2, 3, … 996 more]"
    assert short("x" * 1000, 10) == "'xxxxxxxxxx'…"
    assert short(b"x" * 1000, 10) == "b'xxxxxxxxxx'…"
    assert short(10**5000) == f"an int of {(10**5000).bit_length()} bits"
    assert short(Own(), 30) == "own" * 10 + "…"
    assert short(np.ones((30, 4))) == "float64[30,4]"
    assert short(jnp.ones((30, 4))) == "float32[30,4]"
    assert short(np.array({"a": list(range(100))}, object), 12) == "{'a': [0, 1, 2, … 97 more]}"
    assert short(jax.tree.structure(BIG), 20) == "PyTreeDef({'w0': *, 'w1': *, 'w10': *, … 997 more})"
    itself = []
    itself.append(itself)
    assert len(short(itself, 10)) < 50
    deep = 1
    for _ in range(100):
        deep = (deep,)
    assert len(short(deep)) < 300


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap, jax.checkpoint, jax.linearize])
def test_a_function_that_calls_itself_without_end(transform):
    """A traced function takes more of the stack than one of Python: the process lives."""

    def endless(x):
        if transform is jax.linearize:
            return transform(endless, x)[0]
        return transform(endless)(x[None] if transform is jax.vmap else x)

    with pytest.raises(RecursionError, match="recursion depth"):
        endless(jnp.float32(1))

    def countdown(n):
        return lambda x: jax.jit(countdown(n - 1))(x) + 1 if n else x

    assert jax.jit(countdown(60))(1.0) == 61
