"""Complex functions of large, small and infinite numbers, against 80-bit arithmetic and exact angles."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests.support import on_xla

PARTS = {"complex64": "float32", "complex128": "float64"}
# Decimal exponents of the parts.
MAGNITUDES = {"complex64": (-44, -30, -5, 0, 1, 3, 30, 37), "complex128": (-320, -300, -60, -5, 0, 1, 2, 60, 300, 307)}
# Bits after the point: more than the largest number has before it.
DIGITS = 1400
# Errors in units of the last place of the larger part.
BOUND = 8
# On XLA, whose formulas they are; docs/numerics.md.
XLA_BOUND = 64
INF, NAN = np.inf, np.nan


@pytest.fixture(autouse=True)
def wide():
    with ferrax.enable_x64(True):
        yield


def points(dtype, exponents):
    """Numbers whose parts have the exponents; none with subnormal parts on XLA, whose CPU code takes them for zeros."""
    rng = np.random.default_rng(0)
    if on_xla():
        exponents = [e for e in exponents if 10.0**e > 100 * np.finfo(PARTS[dtype]).smallest_normal]
    for a in exponents:
        for b in exponents:
            z = np.empty(8, dtype)
            z.real, z.imag = rng.normal(size=8) * 10.0**a, rng.normal(size=8) * 10.0**b
            yield z


def check(found, wanted, dtype):
    """Asserts that results are near those in 80 bits, where those are numbers of the dtype."""
    part = np.finfo(PARTS[dtype])
    found = np.asarray(found).astype(np.clongdouble)
    size = np.abs(wanted)
    bound, least = (XLA_BOUND, part.smallest_normal) if on_xla() else (BOUND, part.smallest_subnormal)
    with np.errstate(all="ignore"):
        finite = np.isfinite(wanted.astype(dtype))
        far = np.abs(found - wanted)[finite] / (size * part.eps + least)[finite]
    assert np.max(far, initial=0) < bound, (found[finite][np.argmax(far)], wanted[finite][np.argmax(far)])


def turns_of_log2():
    """log 2 / 2 pi in units of 2^-DIGITS: both numbers by their series (Machin's formula for pi)."""
    pi = log2 = 0
    for factor, x in ((16, 5), (-4, 239)):
        n, term, sign = 1, (1 << DIGITS) // x, factor
        while term:
            pi += sign * (term // n)
            n, term, sign = n + 2, term // (x * x), -sign
    n, term = 1, (2 << DIGITS) // 3
    while term:
        log2 += term // n
        n, term = n + 2, term // 9
    return (log2 << DIGITS) // (2 * pi)


def exp2_in_80_bits(z, turns):
    out = np.empty(z.shape, np.clongdouble)
    for i, number in enumerate(z):
        top, bottom = float(number.imag).as_integer_ratio()
        # What is left of whole turns, as a part of one.
        rest = np.longdouble((top * turns // bottom) % (1 << DIGITS) >> (DIGITS - 64)) / np.longdouble(2) ** 64
        angle = rest * 8 * np.arctan(np.longdouble(1))
        size = np.exp2(np.longdouble(number.real))
        out[i] = size * np.cos(angle) + 1j * (size * np.sin(angle))
    return out


@pytest.mark.parametrize("dtype", list(PARTS))
def test_exp2_of_any_size(dtype):
    turns = turns_of_log2()
    exponents = (-30, -5, 0, 1, 2, 5, 7, 16, 30, 37) if dtype == "complex64" else (-60, 0, 2, 6, 7, 30, 300, 307)
    if on_xla():  # its angles keep the digits that are left before the point
        exponents = [e for e in exponents if e <= 1]
    for z in points(dtype, exponents):
        z.real = np.clip(z.real, -100, 100)
        check(jnp.exp2(jnp.asarray(z)), exp2_in_80_bits(z, turns), dtype)
        check(ferrax.jit(jnp.exp2)(z), exp2_in_80_bits(z, turns), dtype)


FUNCTIONS = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "abs": np.abs,
    "square": np.square,
    "reciprocal": lambda z: 1 / z,
    "sign": lambda z: z / np.abs(z),
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "logistic": lambda z: np.where(z.real < 0, np.exp(z) / (1 + np.exp(z)), 1 / (1 + np.exp(-z))),
}


@pytest.mark.parametrize("dtype", list(PARTS))
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_of_any_size(name, dtype):
    function = getattr(jnp if name == "reciprocal" else lax, name)
    for z in points(dtype, MAGNITUDES[dtype]):
        with np.errstate(all="ignore"):
            wanted = FUNCTIONS[name](z.astype(np.clongdouble))
        check(function(jnp.asarray(z)), wanted, dtype)


@pytest.mark.parametrize("exponent", [0.5, 1.5, -0.5, 2.5, 3.25])
def test_powers_by_real_numbers(exponent):
    for z in points("complex128", (-10, -3, 0, 3, 10)):
        wide_z = z.astype(np.clongdouble)
        with np.errstate(all="ignore"):
            wanted = np.exp(np.log(wide_z) * np.longdouble(exponent))
        check(jnp.power(jnp.asarray(z), exponent), wanted, "complex128")


def assert_parts(found, wanted):
    found = np.asarray(found)
    np.testing.assert_array_equal([found.real, found.imag], [np.real(wanted), np.imag(wanted)])


def test_powers_at_infinities():
    """Whole powers begin with the number itself: 1 times an infinite number is not that number."""
    z = jnp.asarray(np.array([complex(INF, 1), complex(-INF, 2), complex(1, INF), complex(INF, INF)], "complex64"))
    assert_parts(lax.integer_pow(z, 1), np.asarray(z))
    for program in (lax.square, lambda z: lax.integer_pow(z, 2)):
        found = np.asarray(program(z))
        np.testing.assert_array_equal(found.real[:3], [INF, INF, -INF])
        np.testing.assert_array_equal(found.imag, [INF, -INF, INF, INF])
        assert np.isnan(found.real[3])
    for n in (-1, -2):
        assert_parts(np.abs(np.asarray(lax.integer_pow(z, n))), np.zeros(4))
    assert_parts(jnp.power(jnp.complex64(INF), 0.5), complex(INF, 0))


def test_quotients_at_infinities():
    """As in C99: a finite number by an infinite one is 0, an infinite one by a finite one infinite."""
    x = np.array([complex(1, 2), complex(-3, 0)], "complex64")
    y = np.array([complex(INF, NAN), complex(1, -INF)], "complex64")
    found = np.asarray(jnp.asarray(x) / jnp.asarray(y))
    np.testing.assert_array_equal(np.abs(found), [0, 0])
    assert np.isinf(np.asarray(jnp.asarray(y[1:]) / jnp.asarray(x[:1])).imag).all()


def test_size_of_what_is_not_a_number():
    z = np.array([complex(INF, NAN), complex(NAN, -INF), complex(INF, -INF), complex(-INF, 1)], "complex64")
    np.testing.assert_array_equal(np.asarray(jnp.abs(jnp.asarray(z))), np.float32([NAN, NAN, INF, INF]))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_complex_exponentials(reverse):
    z = np.random.default_rng(1).normal(size=(3, 9)) * 3 + 1j * np.random.default_rng(2).normal(size=(3, 9)) * 5
    flip = (lambda a: a[:, ::-1]) if reverse else (lambda a: a)
    want = flip(np.log(np.cumsum(np.exp(flip(z)), axis=1)))
    for f in (lax.cumlogsumexp, ferrax.jit(lax.cumlogsumexp, static_argnames=("axis", "reverse"))):
        np.testing.assert_allclose(f(jnp.asarray(z), axis=1, reverse=reverse), want, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(f(jnp.asarray(z + 1000), axis=1, reverse=reverse), want + 1000, rtol=1e-12)
    mapped = ferrax.vmap(lambda v: lax.cumlogsumexp(v, reverse=reverse))
    np.testing.assert_allclose(mapped(jnp.asarray(z)), want, rtol=1e-12, atol=1e-12)
