"""Divisions by constants in programs: multiplications and fractions whose results are those of divisions."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from tests.recorded import expected

EDGES = [0, 1, -1, 2, -2, 3, 5, 7, 10, 11, 641, 1 << 16, (1 << 16) - 1, 6_700_417, 1_000_000_007]
TOP = {"int32": 2**31 - 1, "uint32": 2**32 - 1, "int16": 2**15 - 1, "int8": 127}


def values(dtype, by):
    """Everything near the ends of the range, near 0 and near multiples of the divisor."""
    info = np.iinfo(dtype)
    near = np.arange(-3, 4)
    rng = np.random.default_rng(abs(by))
    multiples = [k * by for k in (1, 2, -1, -7, 1000, info.max // max(abs(by), 1))]
    some = rng.integers(info.min, info.max, 300, dtype, endpoint=True).astype(object)
    every = [c + d for c in [0, int(info.min), int(info.max), *multiples] for d in near] + list(some)
    return np.array([v for v in map(int, every) if info.min <= v <= info.max], dtype)


OPERATIONS = {
    "//": lambda lib, x, c: x // c,
    "%": lambda lib, x, c: x % c,
    "divmod": lambda lib, x, c: lib.stack(lib.divmod(x, c)),
    "fmod": lambda lib, x, c: lib.fmod(x, c),
    "quotient and rest": lambda lib, x, c: (x // c) * 1000 + x % c,
}


@pytest.mark.parametrize("dtype", TOP)
@pytest.mark.parametrize("name", OPERATIONS)
def test_constant_divisors(name, dtype):
    f = OPERATIONS[name]
    for by in [*EDGES, TOP[dtype], -TOP[dtype], -TOP[dtype] - 1]:
        if not np.iinfo(dtype).min <= by <= np.iinfo(dtype).max:
            continue
        x = values(dtype, by)
        c = np.array(by, dtype)[()]
        want = expected(lambda jax: f(jax.numpy, jax.numpy.asarray(x), c))
        for part in (slice(None), slice(20), slice(0, 1)):
            mine = jnp.asarray(x[part])
            eager = f(jnp, mine, c)
            jitted = ferrax.jit(lambda x, c=c: f(jnp, x, c))(mine)
            assert eager.dtype == jitted.dtype == want.dtype
            np.testing.assert_array_equal(np.asarray(eager), want[..., part], err_msg=f"eager {by}")
            np.testing.assert_array_equal(np.asarray(jitted), want[..., part], err_msg=f"jit {by}")


@pytest.mark.embedded
def test_a_floor_division_is_one_operation():
    x = jnp.arange(1000)
    for f in (lambda x: x // 7, lambda x: x % 11):
        text = ferrax.jit(f).lower(x).as_text("kernels")
        assert text.count("%") == 2, text
        assert "DivideBy" in text


def test_constants_are_folded():
    x = jnp.arange(100.0)
    f = lambda x: x * (jnp.sin(jnp.float32(2.0)) + jnp.exp(jnp.float32(0.5)) * 3)
    text = ferrax.jit(f).lower(x).as_text("kernels")
    assert "Sin" not in text and "Exp" not in text, text
    np.testing.assert_array_equal(np.asarray(ferrax.jit(f)(x)), np.asarray(f(x)))


def test_divisions_in_loops():
    def body(i, s):
        return s + (s + i) // 3 - (s % 5)

    x = jnp.arange(-500, 500)
    got = ferrax.jit(lambda x: ferrax.lax.fori_loop(0, 6, body, x))(x)
    want = np.arange(-500, 500)
    for i in range(6):
        want = body(i, want)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.embedded
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fractions_are_remainders_by_one(dtype):
    info = np.finfo(dtype)
    edges = [0, 1, 0.5, 1.5, 2, 1e-10, 1 - info.epsneg, 1 + info.eps, 2.0**22 + 0.5, 2.0**23, 2.0**24 + 2, 2.0**52 + 1]
    edges += [
        info.tiny,
        info.smallest_subnormal,
        info.max,
        np.inf,
        np.nan,
        *(np.random.default_rng(0).normal(size=99) * 9),
    ]
    with ferrax.enable_x64(True):
        x = jnp.asarray(np.array([*edges, *(-e for e in edges)], dtype))
        f = ferrax.jit(lambda x: jnp.mod(x, 1.0))
        text = f.lower(x).as_text("kernels")
        assert "Floor" in text
        assert "Rem" not in text
        found, wanted = np.asarray(f(x)), np.asarray(jnp.mod(x, 1.0))
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
        # The rule holds for 1 alone.
        for other in (2.0, -1.0, 0.5):
            assert "Rem" in ferrax.jit(lambda x, other=other: jnp.mod(x, other)).lower(x).as_text("kernels")


def test_complex_steps_are_derivatives():
    """A step along the imaginary axis that is too small to change the real part: no difference loses digits."""
    a = np.linspace(-3, 3, 97) + 0.017

    def f(x):
        y = (x**2 + 1.5) / (x - 4.25) - 1 / (x + 9.5)
        return y / (y * y + 0.3) - x / (y - 50)

    with ferrax.enable_x64(True):
        x = jnp.asarray(a)
        for function in (f, ferrax.jit(f)):
            found = function(x + 1e-100j)
            np.testing.assert_array_max_ulp(np.asarray(found.real), np.asarray(function(x)), 2)
            slopes = ferrax.vmap(ferrax.grad(function))(x)
            np.testing.assert_allclose(found.imag / 1e-100, slopes, rtol=1e-12)
        quotient = (x + 1e-100j) / (x[::-1] - 2e-100j)
        np.testing.assert_array_equal(quotient.real, a / a[::-1])
