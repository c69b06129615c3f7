"""What a function returns beside its result: any object goes through, traced values become arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp


class Kept:
    """No tree and no number."""


KEPT = Kept()
#: What stands beside the result, as a function of the argument.
OBJECTS = {
    "text": lambda x: "a text",
    "an object": lambda x: KEPT,
    "a function": lambda x: jnp.sin,
    "a dtype": lambda x: x.dtype,
    "an integer": lambda x: 3,
    "a big integer": lambda x: 2**80,
    "a NumPy array": lambda x: np.arange(3),
    "a NumPy array of texts": lambda x: np.array(["a"]),
    "nothing": lambda x: None,
    "a tree of these": lambda x: {"a": (1, "b", KEPT), "c": [None, 2.5]},
}
#: Transform -> what it gives of the auxiliary data.
TRANSFORMS = {
    "grad": lambda f: jax.grad(f, has_aux=True)(1.0)[1],
    "value_and_grad": lambda f: jax.value_and_grad(f, has_aux=True)(1.0)[0][1],
    "vjp": lambda f: jax.vjp(f, 1.0, has_aux=True)[2],
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,), has_aux=True)[2],
    "linearize": lambda f: jax.linearize(f, 1.0, has_aux=True)[2],
    "jacrev": lambda f: jax.jacrev(f, has_aux=True)(1.0)[1],
    "grad of grad": lambda f: _outer(jax.grad, f),
    "grad in jit": lambda f: _outer(jax.jit, f),
    "grad in vmap": lambda f: _outer(jax.vmap, f, jnp.ones(2)),
}


def _outer(transform, f, x=1.0):
    found = []

    def run(x):
        slope, aux = jax.grad(f, has_aux=True)(x)
        found.append(aux)
        return slope

    transform(run)(x)
    return found[-1]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_go_through_as_they_are(name, transform):
    got = TRANSFORMS[transform](lambda x: (x * 2.0, OBJECTS[name](x)))
    want = OBJECTS[name](jnp.float32(1))
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert type(a) is type(b) and np.all(a == b)


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if " " not in name])
def test_traced_values_become_arrays(transform):
    got = TRANSFORMS[transform](lambda x: (x * 2.0, {"same": x, "new": [jnp.sin(x), KEPT, x + 1]}))
    assert got["new"][1] is KEPT
    for leaf, want in ((got["same"], 1.0), (got["new"][0], np.sin(1.0)), (got["new"][2], 2.0)):
        assert type(leaf) is type(jnp.ones(1)) and abs(float(leaf) - want) < 1e-6


def test_derivatives_do_not_depend_on_what_stands_beside():
    value, linear, aux = jax.linearize(lambda x: ((jnp.sin(x), x), (jnp.cos(x), "a")), 0.5, has_aux=True)
    assert len(value) == 2 and aux[1] == "a" and abs(float(aux[0]) - np.cos(0.5)) < 1e-6
    assert [round(float(t), 5) for t in linear(2.0)] == [round(2 * np.cos(0.5), 5), 2.0]
    out, pull, aux = jax.vjp(lambda x: (jnp.sin(x), [x, "a"]), 0.5, has_aux=True)
    assert abs(float(pull(1.0)[0]) - np.cos(0.5)) < 1e-6 and aux[1] == "a"
    # the auxiliary data of an inner derivative is differentiated by an outer one
    assert abs(float(jax.grad(lambda x: jax.grad(lambda y: (y, y**3), has_aux=True)(x)[1])(2.0)) - 12.0) < 1e-4


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if " " not in name])
@pytest.mark.parametrize("returned", [lambda x: x, lambda x: (x,), lambda x: (x, x, x), lambda x: {0: x, 1: x}])
def test_what_is_no_pair_is_refused(transform, returned):
    with pytest.raises(TypeError, match="two-element tuple"):
        TRANSFORMS[transform](returned)


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if " " not in name])
def test_a_reference_is_refused(transform):
    with pytest.raises(ValueError, match="mutable array reference"):
        TRANSFORMS[transform](lambda x: (x, {"a": jax.new_ref(jnp.ones(2))}))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_list_of_two_is_a_pair(transform):
    assert TRANSFORMS[transform](lambda x: [x * 2.0, KEPT]) is KEPT


class Pair(NamedTuple):
    """A pair of another type."""

    carry: object
    row: object


@pytest.mark.parametrize("kind", [list, tuple, lambda pair: Pair(*pair)], ids=["list", "tuple", "named"])
def test_the_body_of_a_scan_may_return_a_pair_of_any_sequence(kind):
    body = lambda c, x: kind([c + x, (c, {"x": x})])
    for run in (lambda f: f(jnp.arange(4.0)), lambda f: jax.jit(f)(jnp.arange(4.0))):
        got = run(lambda xs: jax.lax.scan(body, 0.0, xs))
        assert type(got) is type(kind([0, 0]))
        carry, (before, rows) = got
        assert float(carry) == 6.0 and before.tolist() == [0, 0, 1, 3] and rows["x"].tolist() == [0, 1, 2, 3]
    assert jax.grad(lambda xs: jax.lax.scan(body, 0.0, xs)[0])(jnp.arange(4.0)).tolist() == [1.0] * 4
    with pytest.raises(TypeError, match="must be a pair"):
        jax.lax.scan(lambda c, x: kind([c, x, x]) if kind in (list, tuple) else c, 0.0, jnp.arange(4.0))


@pytest.mark.parametrize("kind", [list, tuple], ids=["list", "tuple"])
def test_solvers_may_return_a_list_of_solution_and_data(kind):
    solve = lambda of, b: kind([b / 2, {"steps": b}])
    linear = lambda b: jax.lax.custom_linear_solve(lambda x: 2 * x, b, solve, solve, has_aux=True)
    assert jax.tree.structure(linear(4.0)) == jax.tree.structure((1, {"steps": 1}))
    assert float(jax.grad(lambda b: linear(b)[0])(4.0)) == 0.5
    root = lambda a: jax.lax.custom_root(
        lambda x: x * x - a, 1.0, lambda f, x: kind([jnp.sqrt(a), x]), lambda g, y: y / g(1.0), has_aux=True
    )
    assert type(root(4.0)) is tuple and float(jax.grad(lambda a: root(a)[0])(4.0)) == 0.25
