"""Random bits by named algorithms against JAX, whose CPU programs have the same."""

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax
from tests import recorded

STATES = {
    "small": [1, 2, 3, 4],
    "carry": [1, 2, 0xFFFFFFFE, 4],
    "wrap": [0xFFFFFFFF, 2, 0xFFFFFFFE, 0xFFFFFFFF],
    "zero": [0, 0, 0, 0],
}


def same(got, wanted):
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def both(state, *args):
    return recorded.both(lambda m: m.lax.rng_bit_generator(m.numpy.asarray(state), *args))


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
@pytest.mark.parametrize("name", STATES)
def test_words_like_jax(name, algorithm):
    for shape in ((), (1,), (3,), (4,), (2, 9), (0,), (3, 5), (5, 3), (3, 3), (5, 7, 7), (3, 4), (3, 6, 4), (2, 0)):
        same(*both(np.array(STATES[name], np.uint32), shape, np.uint32, int(algorithm)))


@pytest.mark.parametrize("algorithm", list(lax.RandomAlgorithm))
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint64])
def test_other_widths_like_jax(dtype, algorithm):
    with ferrax.enable_x64(True):
        same(*both(np.array(STATES["small"], np.uint32), (5, 3), dtype, int(algorithm)))
        same(*both(np.array([5, 2**64 - 2], np.uint64), (7,), dtype, int(algorithm)))


def test_bits_come_in_pieces_and_under_transformations():
    state = jnp.asarray(np.array(STATES["small"], np.uint32))
    _, whole = lax.rng_bit_generator(state, (12,))
    after, first = lax.rng_bit_generator(state, (8,))
    _, rest = lax.rng_bit_generator(after, (4,))
    assert [*first.tolist(), *rest.tolist()] == whole.tolist()
    states = jnp.stack([state, state + 1])
    _, mapped = ferrax.vmap(lambda s: lax.rng_bit_generator(s, (5,)))(states)
    # as in JAX, the first state draws for all rows
    assert mapped.tolist() == lax.rng_bit_generator(state, (2, 5))[1].tolist()


def test_mistakes():
    state = jnp.zeros(4, "uint32")
    for call, text in [
        (lambda: lax.rng_bit_generator(state, (2,), np.int32), "unsupported dtype"),
        (lambda: lax.rng_bit_generator(state[:2], (2,)), r"uint32\[2\]"),
        (lambda: lax.rng_bit_generator(jnp.zeros(4), (2,)), "float32"),
    ]:
        with pytest.raises(TypeError, match=text):
            call()
    with pytest.raises(ValueError):
        lax.rng_bit_generator(state, (2,), np.uint32, 7)
