"""Arrays like NumPy's with 64 bits are made without a warning: nobody asked for these bits."""

import warnings

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp

LIKE = {
    "zeros_like": jnp.zeros_like,
    "ones_like": jnp.ones_like,
    "empty_like": jnp.empty_like,
    "full_like": lambda a: jnp.full_like(a, 2),
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.complex128, np.float32, np.bool_])
def test_the_dtype_of_what_it_is_like(name, dtype):
    a = np.ones((2, 3), dtype)
    for make in (LIKE[name], ferrax.jit(lambda: LIKE[name](a))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = make(a) if make is LIKE[name] else make()
        assert made.shape == a.shape and made.dtype == jnp.asarray(a).dtype
    with pytest.warns(UserWarning, match="float64"):
        jnp.zeros_like(a, dtype=np.float64)
    with ferrax.enable_x64(True):
        assert LIKE[name](a).dtype == dtype
