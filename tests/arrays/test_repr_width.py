"""Where the dtype stands in an array's `repr` when a line gets long, beside JAX's."""

import numpy as np
import pytest

import ferrax

jax = pytest.importorskip("jax")


@pytest.mark.parametrize("n", range(1, 16))
@pytest.mark.parametrize("value", [1.5, 10, 100.25])
def test_the_dtype_stands_where_jax_has_it(n, value):
    row = np.full(n, value)
    for x in (row, np.stack([row, row])):
        for dtype in ("float32", "complex64", "int8", "bool"):
            ours, theirs = (repr(lib.numpy.asarray(x.astype(dtype))) for lib in (ferrax, jax))
            assert ours == theirs
    weak = [repr(lib.numpy.full(n, value)) for lib in (ferrax, jax)]
    assert weak[0] == weak[1]


@pytest.mark.parametrize("width", [30, 75, 200])
def test_the_width_is_that_of_numpy(width):
    x = np.arange(40, dtype=np.float32)
    with np.printoptions(linewidth=width):
        assert repr(ferrax.numpy.asarray(x)) == repr(jax.numpy.asarray(x))
