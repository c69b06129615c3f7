"""A negative size in a shape is one class of error, whoever asks for the array."""

import pytest

import ferrax
import ferrax.numpy as jnp
import ferrax.scipy.linalg
from ferrax import lax
from ferrax.experimental import sparse

KEY = ferrax.random.key(0)
ASK = {
    "zeros": lambda: jnp.zeros((-1,)),
    "ones": lambda: jnp.ones((2, -1)),
    "full": lambda: jnp.full(-1, 2.0),
    "empty": lambda: jnp.empty((-1,)),
    "zeros_like": lambda: jnp.zeros_like(jnp.ones(3), shape=(-1,)),
    "broadcast_to": lambda: jnp.broadcast_to(jnp.ones(3), (-1, 3)),
    "tile": lambda: jnp.tile(jnp.ones(3), -1),
    "nonzero": lambda: jnp.nonzero(jnp.ones(3), size=-1),
    "bincount": lambda: jnp.bincount(jnp.arange(3), length=-1),
    "one_hot": lambda: ferrax.nn.one_hot(jnp.arange(3), -1),
    "initializer": lambda: ferrax.nn.initializers.zeros(KEY, (-1,)),
    "lax.full": lambda: lax.full((-1,), 1.0),
    "lax.empty": lambda: lax.empty((-1,), jnp.float32),
    "lax.broadcast": lambda: lax.broadcast(jnp.ones(3), (-1,)),
    "lax.broadcast_in_dim": lambda: lax.broadcast_in_dim(jnp.ones(3), (-1, 3), (1,)),
    "lax.broadcasted_iota": lambda: lax.broadcasted_iota(jnp.int32, (-1, 2), 0),
    "lax.reshape": lambda: lax.reshape(jnp.ones(3), (-3,)),
    "lax.tile": lambda: lax.tile(jnp.ones(3), (-1,)),
    "normal": lambda: ferrax.random.normal(KEY, (-1,)),
    "bits": lambda: ferrax.random.bits(KEY, (-1,)),
    "gamma": lambda: ferrax.random.gamma(KEY, 1.0, (-1,)),
    "choice": lambda: ferrax.random.choice(KEY, 3, (-1,)),
    "tril_indices": lambda: jnp.tril_indices(-1),
    "triu_indices": lambda: jnp.triu_indices(2, m=-1),
    "lax.fft": lambda: lax.fft(jnp.ones(3), "FFT", (-1,)),
    "rng_bit_generator": lambda: lax.rng_bit_generator(jnp.zeros(4, "uint32"), (-1,)),
    "split": lambda: ferrax.random.split(KEY, -1),
    "split of several axes": lambda: ferrax.random.split(KEY, (2, -1)),
    "pascal": lambda: ferrax.scipy.linalg.pascal(-1),
    "invpascal": lambda: ferrax.scipy.linalg.invpascal(-1),
    "sparse.empty": lambda: sparse.empty((-1, 2)),
    "sparse.eye": lambda: sparse.eye(-1),
    "sparse.CSR": lambda: sparse.empty((2, -1), sparse_format="csr"),
    "sparse.COO": lambda: sparse.empty((2, -1), sparse_format="coo"),
    "multinomial": lambda: ferrax.random.multinomial(KEY, 3, jnp.ones(2) / 2, shape=(-1, 2)),
}


@pytest.mark.parametrize("ask", ASK.values(), ids=ASK)
def test_negative_sizes(ask):
    with pytest.raises(TypeError, match=r"non-?negative|positive"):
        ask()
    with pytest.raises(TypeError, match=r"non-?negative|positive"):
        ferrax.jit(ask)()


def test_a_negative_number_of_steps():
    with pytest.raises(ValueError, match="no negative number of steps"):
        lax.scan(lambda c, _: (c, c), 0, None, length=-1)
