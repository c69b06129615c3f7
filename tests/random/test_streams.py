"""Every sampler gives JAX's numbers: dtypes, shapes, keys, parameters.

Bits and integers are equal; so are floats but for the samplers of `ULPS`, whose distance docs/numerics.md explains.
"""

import numpy as np
import pytest

import ferrax
from tests.recorded import both, expected
from tests.support import dtype_name, on_xla, ulps

FLOATS = ["float32", "bfloat16", "float16"]
# name -> positional arguments after the key; shape and dtype are given by keyword
PLAIN = ["uniform", "normal", "exponential", "gumbel", "laplace", "logistic", "cauchy", "maxwell"]
PARAMETRIC = {
    "truncated_normal": (-1.0, 2.0),
    "pareto": (2.0,),
    "rayleigh": (2.0,),
    "weibull_min": (2.0, 3.0),
    "double_sided_maxwell": (2.0, 3.0),
    "lognormal": (0.5,),
    "triangular": (0.0, 1.0, 3.0),
    "wald": (2.0,),
    "generalized_normal": (1.5,),
}
GAMMAS = {
    "gamma": [(3.0,), (0.3,)],
    "loggamma": [(3.0,), (0.01,)],
    "chisquare": [(3.0,)],
    "f": [(3.0, 4.0)],
    "t": [(3.0,)],
    "beta": [(2.0, 0.5)],
}


# sampler -> how far results may be from JAX's, in units in the last place of the larger of the result and 1
ULPS = {
    "float32": {
        "cauchy": 1, "maxwell": 1, "truncated_normal": 6, "weibull_min": 1, "double_sided_maxwell": 4,
        "generalized_normal": 6, "gamma": 8, "loggamma": 4, "chisquare": 8, "f": 10, "t": 4, "beta": 2, "dirichlet": 2,
        "ball": 2, "pareto": 1, "wald": 4,
    },
    "complex64": {"normal": 1},
    # XLA keeps the logarithm inside of another one in float32.
    "float16": {"gumbel": 8, "logistic": 16},
    "bfloat16": {"maxwell": 2},
    # XLA's float64 log1p is up to 128 units off, and its erf_inv, which contains it, up to 2340.
    "float64": {
        "normal": 128, "exponential": 128, "laplace": 128, "logistic": 128, "maxwell": 8192, "truncated_normal": 128,
        "pareto": 128, "weibull_min": 128, "double_sided_maxwell": 8192, "lognormal": 128, "wald": 256, "cauchy": 2,
    },
}  # fmt: skip


def call(jax, name, args, kwargs, seed, raw):
    """The sampler of that name, with a key made from the seed."""
    key = jax.random.PRNGKey(seed) if raw else jax.random.key(seed)
    moved = lambda a: jax.numpy.asarray(a) if isinstance(a, np.ndarray) else a
    return getattr(jax.random, name)(key, *map(moved, args), **{k: moved(v) for k, v in kwargs.items()})


def check(name, *args, seed=0, raw=False, **kwargs):
    """The sampler gives JAX's numbers, of JAX's dtype."""
    ours, theirs = both(call, name, args, kwargs, seed, raw)
    dtype = dtype_name(theirs)
    assert dtype_name(ours) == dtype
    assert ulps(ours, theirs, floor=1.0) <= ULPS.get(dtype, {}).get(name, 0) + (4 if on_xla() else 0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PLAIN)
def test_plain(name, dtype):
    check(name, shape=(7, 3), dtype=dtype, seed=3)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_scalar_raw_key(name):
    check(name, seed=11, raw=True)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_float64(name, x64):
    check(name, shape=(5,), seed=2**40 + 3)
    check(name, shape=(5,), dtype="float32", seed=1)


@pytest.mark.parametrize("name", PARAMETRIC)
def test_parametric(name):
    check(name, *PARAMETRIC[name], shape=(6,), seed=5)


@pytest.mark.parametrize("name", sorted(set(PARAMETRIC) - {"double_sided_maxwell", "generalized_normal"}))
def test_parametric_arrays(name):
    arrays = [np.linspace(a, a + 0.5, 4).astype("float32") for a in PARAMETRIC[name]]
    check(name, *arrays, shape=(3, 4), seed=6)


@pytest.mark.parametrize("name", sorted(set(PARAMETRIC) - {"generalized_normal"}))
def test_parametric_float64(name, x64):
    check(name, *PARAMETRIC[name], shape=(4,), seed=8)


@pytest.mark.parametrize("mode", ["low", "high"])
def test_modes(mode):
    check("gumbel", shape=(50,), mode=mode, seed=9)
    check("bernoulli", 0.3, shape=(50,), mode=mode, seed=9)


@pytest.mark.parametrize("name", GAMMAS)
def test_gammas(name):
    for args in GAMMAS[name]:
        check(name, *args, shape=(20,), seed=4)


def test_gamma_arrays():
    check("gamma", np.array([0.1, 1.0, 5.0, 100.0, -1.0], "float32"), seed=2)
    check("dirichlet", np.array([0.2, 1.0, 3.0], "float32"), shape=(4,))
    check("ball", 3, 2.0, shape=(4,))


def test_normal_complex():
    check("normal", shape=(4,), dtype="complex64")


def test_uniform_bounds():
    check("uniform", shape=(2, 4), minval=np.arange(4, dtype="float32"), maxval=7)
    check("uniform", shape=(4,), minval=-3, maxval=1e-3, dtype="bfloat16")


def test_an_upper_bound_may_have_more_axes_of_one_element():
    high, draw = (
        np.arange(1, 3, dtype="float32"),
        lambda high: ferrax.random.uniform(ferrax.random.key(0), (2,), maxval=high),
    )
    np.testing.assert_array_equal(draw(high[None, None]), draw(high))
    np.testing.assert_array_equal(draw(np.float32([[2]])), draw(2))


@pytest.mark.parametrize("low", [(), (1,), (1, 1)])
@pytest.mark.parametrize("high", [(), (1,), (1, 1)])
def test_scalars_between_bounds_of_one_element(low, high):
    check("uniform", shape=(), minval=np.full(low, -2, "float32"), maxval=np.full(high, 3, "float32"))


def test_rows_of_scalars_between_bounds_of_one_element():
    sample = ferrax.vmap(lambda key, low: ferrax.random.uniform(key, (), "float32", low, low + 1))
    rows = sample(ferrax.random.split(ferrax.random.key(0), 3), np.array([[1.0], [2.0], [3.0]], "float32"))
    assert rows.shape == (3, 1) and (rows.astype(int)[:, 0] == np.array([1, 2, 3])).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_randint_dtypes(dtype):
    check("randint", (9,), 0, 100, dtype=dtype, seed=1)


def test_randint_ranges(x64):
    ranges = [(0, 256, "uint8"), (-128, 128, "int8"), (-7, 40000, "int16"), (0, 2**31, "int32")]
    ranges += [(-(2**63), 2**63 - 1, "int64"), (5, 5, "int32"), (9, 2, "int32")]
    for low, high, dtype in ranges:
        check("randint", (6,), low, high, dtype=dtype)
    check("randint", (6,), np.arange(6), 10)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits(dtype):
    check("bits", (5, 2), dtype)
    check("bits", (), dtype)


def test_bits_64(x64):
    check("bits", (5,), "uint64")


def test_counts():
    check("poisson", 3.0, shape=(20,))
    check("poisson", 30.0, shape=(20,))
    check("poisson", np.array([0.0, 1.0, 9.9, 10.0, 1e4], "float32"))
    check("binomial", 10.0, 0.3, shape=(20,))
    check("binomial", 200.0, 0.7, shape=(20,))
    check("binomial", np.array([5.0, -1.0, np.nan, np.inf, 50.0], "float32"), np.float32(0.4))
    check("geometric", 0.3, shape=(20,))
    check("multinomial", 20.0, np.array([0.2, 0.3, 0.5], "float32"))
    check("rademacher", (9,))
    check("rademacher", (9,), "complex64")


def test_bernoulli():
    check("bernoulli", np.array([0.1, 0.5, 0.9], "float32"), shape=(5, 3))
    check("bernoulli")


@pytest.mark.parametrize("size", [1, 5, 2000])
def test_permutation(size):
    check("permutation", size)
    check("permutation", np.arange(size, dtype="float32"))


def test_permutation_axes():
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    check("permutation", x)
    check("permutation", x, axis=1)
    check("permutation", x, axis=-1, independent=True)


def test_choice():
    x = np.arange(12.0, dtype="float32").reshape(4, 3)
    p = np.array([0.1, 0.2, 0.3, 0.4], "float32")
    for kwargs in ({}, {"replace": False}, {"p": p}, {"p": p, "replace": False}):
        for a in (4, x):
            check("choice", a, (2,), seed=1, **kwargs)
    check("choice", x, (2, 2), axis=1)


def test_categorical():
    logits = np.log(np.arange(1, 7, dtype="float32").reshape(2, 3))
    check("categorical", logits)
    check("categorical", logits, axis=0)
    check("categorical", logits, shape=(4, 2))
    check("categorical", logits, shape=(2, 2), replace=False)
    check("categorical", logits, axis=0, shape=(2, 3), replace=False)


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31 - 1, 2**40 + 5])
def test_seeds(seed):
    low = seed % 2**32
    np.testing.assert_array_equal(ferrax.random.PRNGKey(seed), np.array([0, low], "uint32"))
    np.testing.assert_array_equal(ferrax.random.key_data(ferrax.random.key(seed)), np.array([0, low], "uint32"))


def test_seeds_64(x64):
    np.testing.assert_array_equal(ferrax.random.PRNGKey(2**40 + 5), np.array([256, 5], "uint32"))
    np.testing.assert_array_equal(ferrax.random.PRNGKey(-1), np.array([2**32 - 1] * 2, "uint32"))


def test_split_and_fold_in():
    for num in (1, 2, 5, (2, 3)):
        check("split", num, seed=42, raw=True)
    check("fold_in", 7, seed=42, raw=True)
    check("fold_in", 2**32 - 1, seed=42, raw=True)


def test_transforms_do_not_change_the_stream():
    keys = ferrax.random.split(ferrax.random.key(3), 4)
    each = np.stack([np.asarray(ferrax.random.normal(keys[i], (3,))) for i in range(4)])
    np.testing.assert_array_equal(ferrax.vmap(lambda k: ferrax.random.normal(k, (3,)))(keys), each)
    np.testing.assert_array_equal(ferrax.jit(lambda k: ferrax.random.normal(k, (3,)))(keys[0]), each[0])


@pytest.mark.parametrize("name, args", [("pareto", (2.0,)), ("rayleigh", (3.0,)), ("lognormal", (0.5,))])
def test_gradients(name, args):
    def total(x):
        return getattr(ferrax.random, name)(ferrax.random.key(0), *[x * a for a in args], shape=(5,)).sum()

    slope = (total(1.0 + 1e-2) - total(1.0 - 1e-2)) / 2e-2
    np.testing.assert_allclose(ferrax.grad(total)(1.0), slope, rtol=1e-2)


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_endless_trials_end(p):
    key = ferrax.random.key(0)
    assert ferrax.random.binomial(key, np.inf, p) == np.inf
    assert np.isnan(ferrax.random.binomial(key, np.inf, 2.0 + p))
    assert ferrax.random.multinomial(key, np.inf, np.array([p, 0.0]))[0] == np.inf


def normal_vectors(jax, mean, cov, dtype):
    """Normal vectors for parameters of given dtypes."""
    with jax.enable_x64(True):
        jnp = jax.numpy
        parameters = jnp.arange(2).astype(mean), (2 * jnp.eye(2)).astype(cov)
        return jax.random.multivariate_normal(jax.random.key(0), *parameters, dtype=dtype)


@pytest.mark.parametrize(
    "mean, cov, dtype",
    [("float32", "float32", None), ("int32", "float32", None), ("float32", "float32", "float16")],
)
def test_normal_vectors_have_the_parameters_dtype(mean, cov, dtype):
    ours = normal_vectors(ferrax, mean, cov, dtype)
    theirs = expected(normal_vectors, mean, cov, dtype)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=2e-3 if dtype else 1e-5)
