"""Programs whose values share memory in unusual ways: jit against eager, with the checks of the engine on.

`FERRAX_CHECK=1` fills memory with NaN before its first and after its last use and verifies plans before they run. It is
read once a process, so the programs run in one of their own.
"""

import os
import subprocess
import sys
import warnings

import numpy as np

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax


def loops(z):
    return {
        "fori": lax.fori_loop(0, 3, lambda i, c: c + 1.0, z),
        "while": lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, z),
        "scan": lax.scan(lambda c, q: (c + q, c), z, jnp.arange(4.0)),
        "cond": lax.cond(z.sum() > -1, jnp.sort, lambda c: c * 2, z),
        "update": lax.dynamic_update_slice(z, jnp.ones((1, 2)), (1, 1)),
        "scatter": z.at[1, jnp.array([0, 2])].set(5.0),
        "sort": jnp.sort(z, axis=0),
    }


def fills(_):
    """One fill at several shapes: whoever needs it whole has to find enough of it."""
    z = jnp.zeros(3)
    small = z.at[1].add(1), jnp.sort(z), z.reshape(3, 1).at[0].add(2)
    return small, loops(jnp.broadcast_to(z, (2, 3))), jnp.sort(jnp.broadcast_to(z, (4, 3)))


def sums_of_products_with_a_number(x):
    out = []
    for c in (2.5, jnp.float32(0.1), x[0], x.max()):
        for v in (x, jnp.cumsum(x), x[::-1]):
            out += [(v * c).sum(), (c * v).mean(), jnp.stack([v, v + 1]).reshape(2, -1).dot(v * c)]
    return out


def transforms(x):
    """A transform is scaled by a number and summed at once."""
    return [
        getattr(jnp.fft, f)(x, norm=norm).sum() for f in ("irfft", "hfft", "ihfft") for norm in ("ortho", "forward")
    ]


def row_of_one(x):
    """The value of a row, where there is one row, is no row."""
    y = x.reshape(1, -1)
    m = y.max(axis=1)
    return (y * m).sum(axis=1), ((y - m) ** 2).sum(axis=1), (m * m).sum()


def without_elements(x):
    """A number, and an output without elements that is the same value to the planner."""
    y = jnp.log(x[:1])
    return jnp.broadcast_to(y, (0,)), y, x[2:2] * y, jnp.zeros((3, 0)) + y


def index_updates(x):
    flip = lambda v: v.at[jnp.array([1])].apply(jnp.negative)
    rows = jnp.stack([x, x + 1])
    loop = lambda v: lax.fori_loop(0, 2, lambda i, c: c + flip(v), v)
    search = lambda v: jnp.searchsorted(jnp.sort(flip(v)), v)
    return jax.vmap(loop)(rows), jax.vmap(search)(rows), jax.vmap(flip)(rows)


PROGRAMS = [fills, sums_of_products_with_a_number, transforms, row_of_one, without_elements, index_updates]


def main():
    for n in (3, 4, 17, 64, 257, 1030):
        x = jnp.asarray(np.random.default_rng(n).standard_normal(n).astype(np.float32))
        for program in PROGRAMS:
            eager = jax.tree.leaves(program(x))
            with warnings.catch_warnings(action="ignore"):  # not every program has a use for the memory
                donated = jax.tree.leaves(jax.jit(program, donate_argnums=0)(x + 0))
            for got in (jax.tree.leaves(jax.jit(program)(x)), donated):
                for a, b in zip(got, eager, strict=True):
                    np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4, err_msg=f"{program.__name__} of {n}")
                    assert a.dtype == b.dtype


def test_values_that_share_memory():
    run = subprocess.run(
        [sys.executable, __file__], env={**os.environ, "FERRAX_CHECK": "1"}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]


if __name__ == "__main__":
    main()
