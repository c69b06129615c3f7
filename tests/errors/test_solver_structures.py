"""Errors of what solvers are given and return begin as JAX's; `checkpoint` refuses positions that there are not."""

import jax as oracle
import jax.numpy as oracle_numpy
import pytest

import ferrax as jax
import ferrax.numpy as jnp


def root(lax, _, f=lambda x: x, solve=lambda f, x: x, tangent=lambda g, y: y, **options):
    return lambda z: lax.custom_root(lambda x: f(x - z), 0.0, solve, tangent, **options)


def solution(lax, numpy, matvec=lambda x: x, solve=lambda m, b: b, transpose=lambda m, b: b, **options):
    return lambda z: lax.custom_linear_solve(matvec, numpy.ones(2) * z, solve, transpose, **options)


CASES = {
    "root: f": lambda *m: root(*m, f=lambda x: (x, x)),
    "root: solve": lambda *m: root(*m, solve=lambda f, x: (x, x, x)),
    "root: tangent": lambda *m: root(*m, tangent=lambda g, y: (y, y)),
    "root: no pair": lambda *m: root(*m, has_aux=True),
    "root: three": lambda *m: root(*m, solve=lambda f, x: (x, x, x), has_aux=True),
    "root: inner": lambda *m: root(*m, solve=lambda f, x: ((x, x), x), has_aux=True),
    "solution: number": lambda *m: solution(*m, solve=lambda m, b: (b, b)),
    "solution: shape": lambda lax, numpy: solution(lax, numpy, solve=lambda m, b: numpy.ones(3)),
    "solution: structure": lambda *m: solution(*m, solve=lambda m, b: [b]),
    "solution: matvec": lambda lax, numpy: solution(lax, numpy, matvec=lambda x: numpy.ones(3)),
    "solution: transpose": lambda lax, numpy: solution(lax, numpy, transpose=lambda m, b: numpy.ones(3)),
}


def error(module, numpy, name):
    with pytest.raises((TypeError, ValueError)) as caught:
        module.jvp(CASES[name](module.lax, numpy), (1.0,), (1.0,))
    return type(caught.value).__name__, str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_errors_begin_as_those_of_jax(name):
    got, wanted = error(jax, jnp, name), error(oracle, oracle_numpy, name)
    assert got[0] == wanted[0]
    assert got[1].startswith(wanted[1])


def test_checkpoint_has_no_argument_there():
    with pytest.raises(ValueError, match="can only take integer values greater than or equal to `-len"):
        jax.checkpoint(lambda x, y: x, static_argnums=(2,))(1.0, 2.0)
    assert jax.checkpoint(lambda x, y: x, static_argnums=(-1,))(1.0, None) == 1.0


@pytest.mark.parametrize("package", [jax, oracle], ids=["ferrax", "jax"])
def test_what_solves_for_tangents_is_tried_in_the_call(package):
    def fails(slope, right):
        raise AssertionError("no slope")

    with pytest.raises(AssertionError, match="no slope"):
        package.lax.custom_root(lambda x: x - 1.0, 0.0, lambda f, x: x, fails)


@pytest.mark.parametrize("package", [jax, oracle], ids=["ferrax", "jax"])
def test_what_keeps_the_second_computation_apart(package):
    f = lambda x, y: jnp.sin(x["a"] * y) if package is jax else oracle_numpy.sin(x["a"] * y)
    for prevent_cse in ((True, False), ({"a": False}, True), (False, False)):
        slope = package.grad(package.checkpoint(f, prevent_cse=prevent_cse))({"a": 0.0}, 2.0)
        assert slope["a"] == 2
    with pytest.raises(TypeError, match="prevent_cse must be a bool or tuple of bools"):
        package.checkpoint(f, prevent_cse=3)({"a": 0.0}, 2.0)
    with pytest.raises(ValueError, match="the prefix pytree broadcast_prefix prefix_tree has a subtree"):
        package.checkpoint(f, prevent_cse=(True,))({"a": 0.0}, 2.0)
