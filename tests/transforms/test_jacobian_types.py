"""Types of Jacobians' entries, how often the function runs, and transposes that jitted functions hand over."""

import functools

import jax as oracle
import numpy as np
import pytest

import ferrax as jax

F16, F32 = np.array([2.0], np.float16), np.array([3.0], np.float32)


def mixed(pair):
    return pair[0], pair[1], pair[0] + pair[1]


def types(module, tree):
    return [(np.asarray(x).dtype.name, x.weak_type, np.asarray(x).tolist()) for x in module.tree.leaves(tree)]


@pytest.mark.parametrize("name", ["jacfwd", "jacrev"])
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (mixed, (F16, F32)),
        (lambda x: x, 1.0),
        (lambda x: {"a": x * 2, "b": np.float32(1) * x}, 1.0),
        (lambda x: x[:2], (1.0, 2.0, 3.0)),
    ],
)
def test_entries_have_the_types_of_jax(name, f, x):
    got = types(jax, getattr(jax, name)(f)(x))
    assert got == types(oracle, getattr(oracle, name)(f)(x))


def test_the_function_runs_once_also_with_auxiliary_data():
    calls = []

    def f(x):
        calls.append(x)
        return x**3, [x]

    jac, aux = jax.jacfwd(f, has_aux=True)(3.0)
    assert (float(jac), float(aux[0]), len(calls)) == (27.0, 3.0, 1)


def test_jacobians_of_integers_stay_what_they_were():
    float_part, int_part = jax.jacrev(lambda x, i: x[i], argnums=(0, 1), allow_int=True)(np.ones(3, np.float32), 1)
    assert float_part.tolist() == [0.0, 1.0, 0.0]
    assert int_part.dtype == jax.float0


def test_transposes_pass_through_jitted_functions():
    @functools.partial(jax.jit, static_argnums=0)
    def transpose(f, x):
        return jax.linear_transpose(f, x)

    transposed = transpose(lambda x: 2.0 * x, 1.0)
    assert jax.jit(lambda f, ct: f(ct))(transposed, 3.0) == (6.0,)
    with pytest.raises(TypeError, match="cotangent type does not match"):
        transposed(1j)
