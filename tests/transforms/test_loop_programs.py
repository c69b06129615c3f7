"""The programs of loops and branches whose bounds or index are traced, and their values at the ends of the dtypes."""

import jax
import numpy as np
import pytest

import ferrax

PROGRAMS = {
    "fori_loop to a number": lambda lax: lambda x, n: lax.fori_loop(0, n, lambda i, x: x + i, x),
    "fori_loop from a number": lambda lax: lambda x, n: lax.fori_loop(n, 9, lambda i, x: x * 2.0, x),
    "switch": lambda lax: lambda x, n: lax.switch(n, [lax.sin, lax.cos, lambda x: x], x),
}


@pytest.mark.parametrize(
    ("name", "n"), [*((name, 2) for name in PROGRAMS), ("switch", np.int32(2)), ("switch", np.int8(2))]
)
def test_programs(name, n):
    got, want = (str(j.make_jaxpr(PROGRAMS[name](j.lax))(1.0, n)) for j in (ferrax, jax))
    assert got == want


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_an_index_is_the_nearest_branch(dtype):
    branches = [lambda k=k: k for k in range(3)]
    ends = np.iinfo(dtype)
    for index in (ends.min, 0, 1, 2, 3, ends.max):
        for wrap in (lambda f: f, ferrax.jit):
            got = wrap(lambda i: ferrax.lax.switch(i, branches))(ferrax.numpy.asarray(index, dtype))
            assert int(got) == min(max(index, 0), 2)


def test_a_wide_index():
    with ferrax.enable_x64():
        got = ferrax.jit(lambda i: ferrax.lax.switch(i, [lambda: 0, lambda: 1, lambda: 2]))(np.int64(2**32 + 1))
    assert int(got) == 2
