"""Which names of arguments `jit` takes, what it completes, and what `device_put` leaves where it is."""

import functools

import jax as oracle
import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax


def f(a, /, b, c, *args, **kwargs):
    return b


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("names", [("a", "b"), ("args",), ("b", "other"), ("b", "kwargs")])
def test_names_that_no_keyword_can_have_are_refused(option, names):
    def refused(module):
        try:
            module.jit(f, **{option: names})
        except ValueError as error:
            return "invalid argnames" in str(error)
        return None

    assert refused(jax) == refused(oracle)


@pytest.mark.parametrize(
    ("options", "call"),
    [
        ({"static_argnums": 1, "static_argnames": ()}, {"y": 2}),
        ({"static_argnums": (), "static_argnames": "y"}, {"y": 2}),
        ({"static_argnums": 1}, {"y": 2}),
        ({"static_argnames": "y"}, {"y": 2}),
    ],
)
def test_nothing_is_completed_where_both_are_given(options, call):
    def traced(module):
        seen = []

        def g(x, y):
            seen.append((isinstance(x, module.core.Tracer), isinstance(y, module.core.Tracer)))
            return 1

        module.jit(g, **options)(1, **call)
        return seen

    assert traced(jax) == traced(oracle)


def test_arrays_that_are_there_are_returned_themselves():
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    x = jnp.arange(3)
    y = jax.device_put(x, here)
    for same in (jax.device_put(y), jax.device_put(y, here), jax.device_put(y, may_alias=True, donate=False)):
        assert same is y
    assert jax.device_put(x) is x
    copy = jax.device_put(y, here, may_alias=False)
    assert copy.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()
    for z in (x, y):
        apart = jax.device_put(z, may_alias=False)
        assert apart.unsafe_buffer_pointer() != z.unsafe_buffer_pointer() and apart.committed == z.committed
    assert jax.device_put(x, here).committed
    assert not x.committed
    with pytest.raises(ValueError, match="may_alias and donate cannot be True at the same time"):
        jax.device_put(x, may_alias=True, donate=True)
    doubled = jax.jit(functools.partial(jax.device_put, device=here))(x)
    assert np.array_equal(doubled, x)


def test_integers_of_any_size_become_floats():
    wanted = float(oracle.lax.convert_element_type(2**100, "float32"))
    assert float(lax.convert_element_type(2**100, jnp.float32)) == wanted
    with pytest.raises(OverflowError):
        lax.convert_element_type(2**100, jnp.int32)
