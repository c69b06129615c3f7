"""`jax._src.array.ArrayImpl` made of a type, a sharding and parts, and members that tests of libraries read."""

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax._src import array, core


def parts(dtype=np.float32):
    x = jnp.arange(6, dtype=dtype).reshape(2, 3)
    return core.ShapedArray((2, 3), np.dtype(np.float32)), x.sharding, x


def test_arrays_are_made_of_their_parts():
    aval, sharding, x = parts()
    made = array.ArrayImpl(aval, sharding, [x], committed=True)
    assert isinstance(made, array.ArrayImpl) and made.committed
    np.testing.assert_array_equal(made, x)
    assert not array.ArrayImpl(aval, sharding, [x], committed=False)._committed


def test_parts_must_fit():
    aval, sharding, x = parts()
    with pytest.raises(ValueError, match=r"Expected 1 per-device arrays \(this is how many .*\), but got 2"):
        array.ArrayImpl(aval, sharding, [x, x], committed=True)
    with pytest.raises(ValueError, match=r"must have matching dtypes. Got int32, expected float32 for buffer: \[\[0"):
        array.ArrayImpl(aval, sharding, [parts(np.int32)[2]], committed=True)
    with pytest.raises(ValueError, match=r"Expected shard shape \(2, 3\) doesn't match .* \(3, 2\)"):
        array.ArrayImpl(aval, sharding, [x.T], committed=True)
    with pytest.raises(ValueError, match=r"doesn't match .*Shape of Array is int32\[4\]"):
        jax.make_array_from_callback((4,), sharding, lambda index: np.arange(5, dtype=np.int64))


def test_members():
    x = jnp.arange(3)
    assert x._check_if_deleted() is None
    np.testing.assert_array_equal(x._npy_value, [0, 1, 2])
    np.testing.assert_array_equal(x._fully_replicated_shard(), x)
    assert len(x._arrays) == 1
    x.delete()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=int32\[3\]"):
        x._check_if_deleted()
    assert x._npy_value is None and x._arrays is None
