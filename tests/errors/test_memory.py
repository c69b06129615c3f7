"""What does not fit memory raises `MemoryError`, at once, and the process lives on (JAX's ends in some of these)."""

import subprocess
import sys

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax import lax

BIG = 1 << 40


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: jnp.ones((BIG,)),
        lambda x: jnp.ones((1 << 31, 1 << 31, 4)),
        lambda x: ferrax.jit(lambda: jnp.ones((1 << 31, 1 << 31, 4)).sum())(),
        lambda x: jnp.broadcast_to(x, (1 << 62, 3)),
        lambda x: ferrax.jit(lambda x: jnp.broadcast_to(x, (1 << 62, 3)).reshape(-1)[5])(x),
        lambda x: jnp.ones(1 << 22)[:, None] * jnp.ones(1 << 22)[None],
        lambda x: ferrax.jit(lambda x: x[:, None] * x[None])(jnp.ones(1 << 22)),
        lambda x: jnp.repeat(x, BIG),
        lambda x: jnp.tile(x, 1 << 60),
        lambda x: jnp.pad(x, 1 << 61),
        lambda x: lax.pad(x, 0.0, [(0, 0, 1 << 62)]),
        lambda x: jnp.arange(1 << 45),
        lambda x: jnp.eye(1 << 21),
        lambda x: ferrax.vmap(lambda a: jnp.ones(BIG) + a)(x),
        lambda x: ferrax.grad(lambda a: jnp.broadcast_to(a, (2 * BIG,)).sum())(1.0),
        lambda x: lax.scan(lambda c, _: (c, c), jnp.ones(1 << 20), None, length=1 << 24)[1],
        lambda x: ferrax.random.normal(ferrax.random.key(0), (4 * BIG,)),
        lambda x: ferrax.random.bits(ferrax.random.key(0), (1 << 31, 1 << 31, 4)),
        lambda x: ferrax.random.uniform(ferrax.random.key(0), (1 << 20, 1 << 20, 1 << 20)),
        lambda x: ferrax.jit(lambda x: jnp.broadcast_to(x[:1], (1 << 61,)) + jnp.broadcast_to(x[1:2], (1 << 61,)))(x),
    ],
)
def test_memory_error(ask):
    x = jnp.ones(3)
    with pytest.raises(MemoryError, match="memory"):
        ask(x)
    np.testing.assert_array_equal(x + 1, np.full(3, 2, np.float32))


def test_empty_arrays_of_huge_shapes_are_no_problem():
    x = jnp.zeros((0, 1 << 40, 1 << 40))
    assert x.size == 0
    assert (x + 1).shape == x.shape


def test_integers_beyond_the_dtype_have_a_type():
    assert jnp.result_type(1 << 45) == jnp.int32
    assert jnp.result_type(1 << 45, jnp.float32) == jnp.float32
    with pytest.raises(OverflowError, match="35184372088832"):
        jnp.zeros(3) + (1 << 45)


def test_parts_longer_together_than_an_array():
    nothing = jnp.zeros(((1 << 62), 0))
    for join in (jnp.concatenate, ferrax.jit(jnp.concatenate), jnp.vstack):
        with pytest.raises(ValueError, match="together longer than an array can be"):
            join([nothing, nothing, nothing])


FACTORIZATIONS = """
import resource

import ferrax
import ferrax.numpy as jnp

n = 3000
a = jnp.ones((n, n)) + jnp.eye(n)
jnp.linalg.eigvalsh(a[:200, :200]).block_until_ready()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (3 * n * n << 2)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for factor in (jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eig, ferrax.jit(jnp.linalg.eigh)):
    try:
        ferrax.block_until_ready(factor(a))
    except MemoryError as error:
        assert "memory" in str(error), error
    else:
        raise AssertionError("there was memory enough")
print(float((jnp.ones(3) + 1).sum()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_factorizations_without_memory_for_their_work():
    done = subprocess.run(
        [sys.executable, "-c", FACTORIZATIONS], check=False, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.strip()) == (0, "6.0"), done.stderr
