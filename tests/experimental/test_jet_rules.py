"""Rules that users give to `jet`, and the functions of rules: against JAX, and functions of known operations."""

import importlib

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax.experimental import jet
from ferrax.extend.core import Primitive
from ferrax.interpreters import mlir
from tests.recorded import expected

X = np.array([0.3, 0.7], np.float32)
TERMS = [np.array([1.0, -2.0], np.float32), np.array([0.5, 3.0], np.float32), np.array([2.0, 0.25], np.float32)]


def primitive(name, function, several=False):
    """A primitive of a user's, which `jet` knows nothing of."""
    p = Primitive(name)
    p.multiple_results = several
    p.def_impl(function)
    p.def_abstract_eval(lambda x: [x, x] if several else x)
    mlir.register_lowering(p, mlir.lower_fun(function, multiple_results=several))
    return p


def series_of(f):
    value, terms = jet.jet(f, (X,), (TERMS,))
    return [value, *terms]


def close(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


def test_rules_by_derivative_and_by_composition():
    wave, cube = primitive("wave_jet", jnp.sin), primitive("cube_jet", lambda x: x**3)
    jet.def_deriv(wave, jnp.cos)
    jet.def_comp(cube, lambda x: x * x * x)
    close(series_of(lambda x: jnp.exp(wave.bind(x)) * x), series_of(lambda x: jnp.exp(jnp.sin(x)) * x))
    close(series_of(lambda x: ferrax.jit(cube.bind)(2 * x)), series_of(lambda x: (2 * x) ** 3))


def test_linear_rules_and_rules_without_slope():
    both = primitive("both_jet", lambda x: [2 * x, jnp.flip(x)], several=True)
    steps = primitive("steps_jet", jnp.floor)
    jet.deflinear(both)
    jet.defzero(steps)

    def f(x):
        twice, turned = both.bind(jnp.sin(x))
        return twice * turned + steps.bind(x)

    close(series_of(f), series_of(lambda x: 2 * jnp.sin(x) * jnp.flip(jnp.sin(x)) + jnp.floor(x)))


def test_a_users_rule_comes_before_the_librarys():
    p, own = ferrax.lax.sin_p, jet.jet_rules[ferrax.lax.sin_p]
    jet.jet_rules[p] = lambda primals, series, **_: (jnp.sin(primals[0]), [7.0 * t for t in series[0]])
    try:
        value, (slope,) = jet.jet(jnp.sin, (0.0,), ((1.0,),))
    finally:
        jet.jet_rules[p] = own
    assert float(slope) == 7.0 and float(value) == 0.0
    assert float(jet.jet(jnp.sin, (0.0,), ((1.0,),))[1][0]) == 1.0


RULES = {
    "exp": (["x"], {"accuracy": None}),
    "sin": (["x"], {"accuracy": None}),
    "mul": (["x", "y"], {"out_dtype": None}),
    "div": (["x", "y"], {}),
    "neg": (["x"], {}),
    "integer_pow": (["x"], {"y": 3}),
    "reduce_max": (["x"], {"axes": (0,)}),
    "select_n": (["which", "x", "y"], {}),
    "cumsum": (["x"], {"axis": 0, "reverse": False}),
}


def by_table(jax, name):
    """What the rule of a table gives for coefficients."""
    module = importlib.import_module(f"{jax.__name__}.experimental.jet")
    names, params = RULES[name]
    values = {
        "x": (X, TERMS),
        "y": (X[::-1] + 1, TERMS[::-1]),
        "which": (np.array([True, False]), [np.zeros(2, np.float32)] * 3),
    }
    primals = [jax.numpy.asarray(values[n][0]) for n in names]
    series = [[jax.numpy.asarray(t) for t in values[n][1]] for n in names]
    value, terms = module.jet_rules[getattr(jax.lax, f"{name}_p")](primals, series, **params)
    return [value, *terms]


@pytest.mark.parametrize("name", RULES)
def test_rules_of_the_table_like_jax(name):
    close(by_table(ferrax, name), expected(by_table, name))


def by_helpers(jax):
    module = importlib.import_module(f"{jax.__name__}.experimental.jet")
    lu = importlib.import_module(f"{jax.__name__}.extend.linear_util")
    np_, lax = jax.numpy, jax.lax
    x, terms = np_.asarray(X), [np_.asarray(t) for t in TERMS]
    out = [*module.jet2(lambda x: np_.exp(x), (x,), (terms,))]
    out += module.deriv_prop(lax.erf_p, lambda x: np_.exp(-x * x), [x], [terms])
    out += module.linear_prop(lax.neg_p, [x], [terms])
    out += [module.zero_prop(lax.floor_p, [x], [terms])[0]]
    debug = jax.api_util.debug_info("jet", lambda x: x, (1.0,), {})
    wrapped = lu.wrap_init(lambda x: [np_.sin(x), np_.floor(x)], debug_info=debug)
    f = module.jet_fun(module.jet_subtrace(wrapped), 3)
    out += f.call_wrapped([x], [terms])
    leaves, tree = jax.tree.flatten(([x], [terms]))
    flat, out_tree = module.traceable(f, tree)
    out += flat.call_wrapped(*leaves)
    return jax.tree.leaves(out), [int(t.num_leaves) for t in out_tree().children()]


def test_helpers_like_jax():
    (found, counts), (wanted, numbers) = by_helpers(ferrax), expected(by_helpers)
    close(found, wanted)
    assert counts == list(numbers)


def test_zeros():
    assert ferrax.tree.leaves([jet.zero_series, jet.zero_term]) == []
    assert ferrax.tree.map(lambda x: x, jet.zero_series) is jet.zero_series
    value, terms = jet.jet(jnp.multiply, (2.0, 3.0), ((1.0, jet.zero_term), jet.zero_series))
    assert (float(value), *map(float, terms)) == (6.0, 3.0, 0.0)
    values, terms = jet.jet_subtrace(ferrax.extend.linear_util.wrap_init(lambda x: [jnp.floor(x)])).call_wrapped(
        None, 1, [1.5], [[1.0]]
    )
    assert float(values[0]) == 1.0 and terms[0] is jet.zero_series
