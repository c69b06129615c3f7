"""What operations refuse, by the class and the words that JAX has: orders of keys, forward mode of a vjp rule.

Functions of numbers that refuse keys are in `tests/surface/test_small_answers.py`.
"""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax
from tests.recorded import expected


@pytest.mark.parametrize("name", ["sort", "argsort", "unique", "lexsort"])
def test_sorts_refuse_keys(name):
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.raises(TypeError, match="does not accept dtype key<fry>"):
        getattr(jnp, name)((keys,) if name == "lexsort" else keys)


def test_orders_of_keys():
    keys = jax.random.split(jax.random.key(0), 3)
    with pytest.raises(TypeError, match="sort does not accept dtype key<fry> at position 1"):
        lax.sort((jnp.arange(3), keys), num_keys=2)
    order, moved = lax.sort((jnp.arange(3)[::-1], keys), num_keys=1)
    assert order.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(jax.random.key_data(moved), jax.random.key_data(keys)[::-1])
    for function in (jnp.argmax, jnp.argmin, lambda x: lax.top_k(x, 1)):
        with pytest.raises(ValueError, match="key<fry>"):
            function(keys)


@jax.custom_vjp
def square(x):
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))


@pytest.mark.parametrize("f", [square, jax.jit(square), lambda x: lax.map(square, jnp.stack([x, x]))])
def test_a_linearized_vjp_rule_has_no_forward_mode(f):
    _, linear = jax.linearize(f, 3.0)
    with pytest.raises(TypeError, match=r"can't apply forward-mode autodiff \(jvp\) to a custom_vjp function"):
        linear(1.0)


def test_methods_of_vmap():
    shape = jax.ShapeDtypeStruct((), np.float32)
    for call, name in ((jax.pure_callback, "pure_callback"), (jax.ffi.ffi_call("nobody", shape), "ffi_call")):
        call = (lambda x, call=call: call(lambda y: y, shape, x)) if name == "pure_callback" else call
        with pytest.raises(NotImplementedError, match=f"^vmap is only supported for the {name} primitive when"):
            jax.vmap(call)(jnp.ones(3))
    with pytest.raises(ValueError, match=r"^vmap_method must be on of the allowed methods"):
        jax.pure_callback(lambda y: y, shape, 1.0, vmap_method="rows")


WEAK = {
    "associative_scan": lambda lax, x: [lax.associative_scan(lax.add, y) for y in (x, lax.full((3,), 1.0))],
    "cholesky": lambda lax, x: lax.linalg.cholesky(x),
    "eig": lambda lax, x: lax.linalg.eig(x),
    "eigh": lambda lax, x: lax.linalg.eigh(x),
    "hessenberg": lambda lax, x: lax.linalg.hessenberg(x),
    "lu": lambda lax, x: lax.linalg.lu(x),
    "qr": lambda lax, x: lax.linalg.qr(x),
    "qr with pivots": lambda lax, x: lax.linalg.qr(x, pivoting=True),
    "schur": lambda lax, x: lax.linalg.schur(x),
    "svd": lambda lax, x: lax.linalg.svd(x),
    "triangular_solve": lambda lax, x: lax.linalg.triangular_solve(x, x),
    "of one strong operand": lambda lax, x: lax.linalg.triangular_solve(x, lax.full((1, 1), 1.0, np.float32)),
    "tridiagonal": lambda lax, x: lax.linalg.tridiagonal(x),
    "tridiagonal_solve": lambda lax, x: lax.linalg.tridiagonal_solve(x[0], x[0], x[0], x),
}


def weak_types(jax, name):
    x = jax.numpy.broadcast_to(jax.numpy.asarray(1.0), (1, 1))
    return [bool(leaf.weak_type) for leaf in jax.tree.leaves(WEAK[name](jax.lax, x))]


@pytest.mark.parametrize("name", WEAK)
def test_weak_types_of_factors(name):
    assert weak_types(jax, name) == expected(weak_types, name)


NUMPY_WEAK = {
    "angle": lambda jnp, x: [jnp.angle(x), jnp.angle(x[0])],
    "diagflat": lambda jnp, x: [jnp.diagflat(x, k) for k in (-1, 0, 1)],
    "full_like": lambda jnp, x: [jnp.full_like(x, y) for y in (1, 0.5, np.float16(1), x)] + [jnp.full_like(2, 0.5)],
    "gcd": lambda jnp, x: [jnp.gcd(x, y) for x, y in (of_ints(jnp), (4, 6))],
    "interp": lambda jnp, x: [jnp.interp(x, x, x), jnp.interp(x, x, jnp.ones(2)), jnp.interp(jnp.ones(2), x, x)],
    "lcm": lambda jnp, x: [jnp.lcm(x, y) for x, y in (of_ints(jnp), (4, 6))],
    "logaddexp2": lambda jnp, x: [jnp.logaddexp2(x, x), jnp.logaddexp2(x[0], x[0])],
    "polydiv": lambda jnp, x: jnp.polydiv(x, x[:1]),
    "setdiff1d": lambda jnp, x: [jnp.setdiff1d(x, x), jnp.setdiff1d(jnp.ones(2), x)],
    "setxor1d": lambda jnp, x: [jnp.setxor1d(x, x), jnp.setxor1d(x, jnp.ones(2))],
    "sinc": lambda jnp, x: [jnp.sinc(x), jnp.sinc(x[0])],
}


def of_ints(jnp):
    return jnp.full(2, 4), jnp.full(2, 6)


def numpy_weak_types(jax, name):
    return [bool(leaf.weak_type) for leaf in NUMPY_WEAK[name](jax.numpy, jax.numpy.full(2, 0.5))]


@pytest.mark.parametrize("name", NUMPY_WEAK)
def test_weak_types_of_functions_with_constants(name):
    assert numpy_weak_types(jax, name) == expected(numpy_weak_types, name)
