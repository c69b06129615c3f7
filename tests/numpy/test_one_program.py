"""Functions of many operations: as one program where their arguments are known, as operations where they are traced."""

import warnings

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from tests.fuzz.compare import same_bits

X = jnp.asarray(np.sin(np.arange(12, dtype=np.float32)).reshape(3, 4))
SQUARE = X[:, :3] + 2 * jnp.eye(3)
CALLS = {
    "var": lambda: jnp.var(X, 0, ddof=1),
    "std of where": lambda: jnp.std(X, axis=(0, 1), where=X > 0),
    "median": lambda: jnp.median(X, axis=-1, keepdims=True),
    "percentile": lambda: jnp.percentile(X, 30, axis=0),
    "quantiles": lambda: jnp.quantile(X, jnp.array([0.1, 0.7]), method="nearest"),
    "nanmean": lambda: jnp.nanmean(X),
    "cov": lambda: jnp.cov(X, rowvar=False),
    "corrcoef": lambda: jnp.corrcoef(X, X),
    "gradient": lambda: jnp.gradient(X, 0.5, 2.0),
    "gradient of an axis": lambda: jnp.gradient(X, axis=0),
    "cross": lambda: jnp.cross(SQUARE, SQUARE[0]),
    "trace": lambda: jnp.trace(X, 1),
    "frexp": lambda: jnp.frexp(X),
    "polyval": lambda: jnp.polyval(X[0], 3),
    "linspace": lambda: jnp.linspace(X[0], X[1], 5, axis=1),
    "average": lambda: jnp.average(X, 1, weights=X[0], returned=True),
    "searchsorted": lambda: jnp.searchsorted(X[0].sort(), 0.1, side="right"),
    "norm": lambda: jnp.linalg.norm(X, 1, axis=0),
    "slogdet": lambda: jnp.linalg.slogdet(SQUARE),
    "det": lambda: jnp.linalg.det(SQUARE),
    "solve": lambda: jnp.linalg.solve(SQUARE, X),
    "softmax": lambda: jax.nn.softmax(X, axis=0),
    "logsumexp": lambda: jax.nn.logsumexp(X, 0, b=X, return_sign=True),
    "fft": lambda: jnp.fft.fft(X, 5, axis=0, norm="ortho"),
    "irfft2": lambda: jnp.fft.irfft2(X, s=(2, 3)),
    "weak numbers": lambda: jnp.nan_to_num(X, nan=1),
    "float16": lambda: jnp.var(X.astype(jnp.float16)),
    "integers": lambda: jnp.median(jnp.arange(6).reshape(2, 3), 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_the_operations(name):
    with jax.disable_jit():
        want = jax.tree.leaves(CALLS[name]())
    for _ in range(2):
        got = jax.tree.leaves(CALLS[name]())
        assert [x.weak_type for x in got] == [x.weak_type for x in want]
        for one, other in zip(got, want, strict=True):
            assert same_bits(one, other)


def test_traced_calls_leave_their_operations():
    inner = [e.primitive.name for e in jax.make_jaxpr(lambda x: jnp.median(jnp.var(x, 0)))(X).eqns]
    assert "jit" not in inner and "sort" in inner
    slope = jax.grad(lambda x: jnp.var(x) + jnp.median(X))(X)
    np.testing.assert_allclose(slope, 2 * (X - X.mean()) / X.size, atol=1e-6)
    np.testing.assert_array_equal(jax.vmap(jnp.var)(X), jax.jit(jax.vmap(jnp.var))(X))


@pytest.mark.parametrize(
    "name", ["det", "inv", "slogdet", "solve", "cholesky", "qr", "svd", "eigh", "eigvals", "eigvalsh"]
)
def test_interpreters_find_linear_algebra_by_name(name):
    fun = getattr(jnp.linalg, name)
    xs = (SQUARE, X) if name == "solve" else (SQUARE,)

    def names(f, *xs):
        return [e.params["name"] for e in jax.make_jaxpr(f)(*xs).eqns if e.primitive.name == "jit"]

    assert names(fun, *xs) == [name]
    assert names(jax.vmap(fun), *(x[None] for x in xs)) == [name]
    assert set(names(jax.grad(lambda *xs: jnp.sum(jax.tree.leaves(fun(*xs))[-1]).real), *xs)) == {name}
    with pytest.raises((TypeError, ValueError), match=r"shape|square|dim|rank"):
        jax.jit(fun)(*(x[0, 0] for x in xs))
    with jax.disable_jit():
        want = fun(*xs)
    for one, other in zip(jax.tree.leaves(jax.jit(fun)(*xs)), jax.tree.leaves(want), strict=True):
        assert same_bits(one, other)


@pytest.mark.parametrize("fun", [jnp.linalg.cholesky, jax.nn.silu], ids=["cholesky", "silu"])
def test_the_place_of_an_error_is_that_of_its_own_call(fun):
    """The library's program is traced once, for the caller that came first."""

    def first(x):
        return fun(x)

    def second(x):
        return fun(x)

    bad = -jnp.eye(2) if fun is jnp.linalg.cholesky else jnp.full((2, 2), -jnp.inf)
    with jax.debug_nans(True):
        jax.jit(first)(jnp.eye(2))
        with pytest.raises(FloatingPointError, match=r"test_one_program.py:\d+ \(.*second\)"):
            jax.jit(second)(bad)
    (call,) = jax.make_jaxpr(second)(jnp.eye(2)).eqns
    assert call._place[3].endswith("second") and call.params["jaxpr"].eqns[0]._place is None


def test_what_a_program_does_not_take_is_as_before():
    np.testing.assert_array_equal(jnp.var(X, [0]), jnp.var(X, 0))
    np.testing.assert_array_equal(jnp.median(np.asarray(X)), jnp.median(X))
    for _ in range(2):
        with pytest.raises(ValueError, match="axis 5 is out of bounds"):
            jnp.var(X, 5)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            jnp.var(X, dtype="float64")
        assert ["requested in var" in str(w.message) for w in seen] == [True]
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.var(X * jnp.nan)
