"""Sums of arrays that are zero but for a part, which transposes of slices are: jitted, bit for bit what NumPy gives."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

RNG = np.random.default_rng(31)


def numbers(shape, dtype):
    """Numbers of either sign, zeros of either sign among them."""
    x = RNG.integers(-8, 9, shape) / 4
    x = np.where(RNG.random(shape) < 0.2, np.copysign(0.0, RNG.standard_normal(shape)), x)
    return x.astype(dtype)


def sums(rng, extent, others):
    """How the terms of a sum are put together: each is a place and a length, or None where it is a whole array."""
    terms = []
    for _ in range(rng.integers(2, 5)):
        n = int(rng.integers(1, extent + 1))
        terms.append((int(rng.integers(0, extent - n + 1)), n))
    terms += [None] * others
    rng.shuffle(terms)
    return terms


def total(terms, values, axis, shape, pad, add):
    """The terms put where they lie and added, the later ones among themselves first where there are many."""
    whole = []
    for term, value in zip(terms, values, strict=True):
        low, n = term or (0, shape[axis])
        whole.append(value if term is None else pad(value, axis, low, shape[axis] - low - n))
    half = len(whole) // 2
    left, right = whole[0], whole[half]
    for x in whole[1:half]:
        left = add(left, x)
    for x in whole[half + 1 :]:
        right = add(right, x)
    return add(left, right)


def padded(value, axis, low, high):
    around = [(0, 0)] * value.ndim
    around[axis] = (low, high)
    return np.pad(value, around)


def padded_lax(value, axis, low, high):
    around = [(0, 0, 0)] * value.ndim
    around[axis] = (low, high, 0)
    return lax.pad(value, jnp.zeros((), value.dtype), around)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "complex64", "float16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((9000,), 0), ((96, 70), 0), ((96, 70), 1), ((12, 30, 17), 1), ((5, 4), 0)]
)
@pytest.mark.parametrize("others", [0, 1, 2])
def test_sums_are_those_of_the_terms(others, shape, axis, dtype):
    rng = np.random.default_rng(len(shape) * 100 + axis * 10 + others)
    with ferrax.enable_x64():
        for _ in range(6):
            terms = sums(rng, shape[axis], others)
            sizes = [(*shape[:axis], term[1], *shape[axis + 1 :]) if term else shape for term in terms]
            values = [numbers(size, dtype) for size in sizes]

            def program(*values, terms=tuple(terms)):
                return total(terms, values, axis, shape, padded_lax, lax.add)

            want = total(terms, values, axis, shape, padded, np.add)
            got = np.asarray(ferrax.jit(program)(*values))
            assert got.dtype == want.dtype
            assert got.tobytes() == want.tobytes(), terms


def differences(x):
    return ((x[1:] - x[:-1]) ** 2).sum() + ((x[:, 1:] - x[:, :-1]) ** 2).sum()


def second_differences(x):
    return ((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2).sum() + (jnp.sin(x) * x).sum()


@pytest.mark.parametrize("f", [differences, second_differences])
def test_gradients_of_differences(f):
    x = numbers((80, 90), np.float32)
    gradient = ferrax.grad(f)
    np.testing.assert_array_equal(np.asarray(ferrax.jit(gradient)(x)), np.asarray(gradient(x)))
    batch = numbers((3, 80, 90), np.float32)
    rows = np.stack([np.asarray(gradient(row)) for row in batch])
    np.testing.assert_array_equal(np.asarray(ferrax.jit(ferrax.vmap(gradient))(batch)), rows)
    second = ferrax.grad(lambda x: (gradient(x) ** 2).sum())
    np.testing.assert_allclose(np.asarray(ferrax.jit(second)(x)), np.asarray(second(x)), rtol=1e-5, atol=1e-5)
