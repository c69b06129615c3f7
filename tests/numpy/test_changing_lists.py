"""Lists that an element empties while they are made into an array."""

import gc

import numpy as np
import pytest

import ferrax.numpy as jnp


class Emptying:
    """A number that empties the list which holds it when it is asked for its value."""

    def __init__(self, target):
        self.target = target

    def __array__(self, dtype=None, copy=None):
        self.target.clear()
        gc.collect()
        return np.array(2.0)

    def __float__(self):
        return float(self.__array__())


@pytest.mark.parametrize("nested", [False, True])
def test_a_list_that_is_emptied_meanwhile_is_read_as_it_was(nested):
    for place in (0, 1, 500, 999):
        items = [1.0 + i for i in range(1000)]
        items[place] = Emptying(items)
        got = np.asarray(jnp.array([items] if nested else items)).reshape(-1)
        want = 1.0 + np.arange(1000)
        want[place] = 2.0
        assert np.array_equal(got, want.astype(np.float32))
        assert items == []
