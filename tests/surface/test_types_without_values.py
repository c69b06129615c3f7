"""Types that stand for arrays without being any, and small answers beside them, as JAX gives them."""

import importlib

import numpy as np
import pytest

import ferrax
import ferrax.numpy as jnp
from ferrax._src import dtypes, sharding, util
from ferrax.experimental.layout import Format, Layout, with_layout_constraint
from tests.recorded import expected


def one_device():
    return ferrax.sharding.SingleDeviceSharding(ferrax.devices()[0])


def test_dtypes_with_others_for_tangents():
    from ferrax.experimental import primal_tangent_dtype

    dtype = primal_tangent_dtype("int8", jnp.bfloat16)
    assert repr(dtype) == "PrimalTangentDType{i8/bf16}" == dtypes.short_dtype_name(dtype)
    assert (dtype.primal_dtype, dtype.tangent_dtype) == (np.dtype("int8"), np.dtype(jnp.bfloat16))
    assert dtype == primal_tangent_dtype(np.int8, "bfloat16") != primal_tangent_dtype("int8", "float32")
    assert hash(dtype) == hash(primal_tangent_dtype("int8", "bfloat16"))
    assert repr(primal_tangent_dtype("int8", "float32", name="weights")) == "weights"
    assert ferrax.dtypes.issubdtype(dtype, ferrax.dtypes.extended)
    assert not ferrax.dtypes.issubdtype(dtype, ferrax.dtypes.prng_key)
    for use in (lambda: jnp.zeros(3, dtype), lambda: ferrax.lax.convert_element_type(jnp.ones(3), dtype)):
        with pytest.raises(TypeError):
            use()


def test_a_type_as_an_argument_or_result():
    struct = ferrax.ShapeDtypeStruct((4, 2), np.int32)
    with pytest.raises(
        TypeError, match=r"^Argument 'x\['b'\]\['c'\]' of shape int32\[4,2\] of type .*ShapeDtypeStruct"
    ):
        ferrax.jit(lambda x: x)({"a": np.ones(2), "b": {"c": struct}})
    with pytest.raises(TypeError, match="does not have a value and cannot be used as a constant"):
        ferrax.jit(lambda x: (x, struct))(1)


def test_types_keep_formats():
    there, layout = one_device(), Layout((0, 1))
    struct = ferrax.ShapeDtypeStruct((2, 2), np.int32, sharding=Format(layout, there))
    assert struct.format == Format(layout, there) and struct.sharding == there
    assert "format=Layout(major_to_minor=(0, 1)" in repr(struct)
    assert struct.update(shape=(3, 2)).format == struct.format
    assert struct.update(sharding=Format(Layout((1, 0)), there)).format.layout == Layout((1, 0))
    assert struct.update(sharding=None).format == Format()
    assert struct != ferrax.ShapeDtypeStruct((2, 2), np.int32, sharding=there)
    with pytest.raises(ValueError, match=r"You are updating ShapeDtypeStruct with a .* a concrete layout"):
        struct.update(sharding=there)
    info = ferrax.jit(lambda x: x + 1).lower(np.ones((2, 3), np.float32)).compile().out_info
    assert info.format.layout == Layout((0, 1), ())


def test_layouts_of_constraints():
    x = jnp.ones((2, 2))
    with pytest.raises(ValueError, match=r"must be of type `Layout`. Got \[<class 'int'>\]"):
        with_layout_constraint(x, 3)
    with pytest.raises(
        ValueError, match=r"One of with_layout_constraint arguments is incompatible .*: Length of major"
    ):
        with_layout_constraint(x, Layout((0,)))


def test_parts_and_their_dtype():
    there = one_device()
    part = ferrax.device_put(jnp.ones(2), ferrax.devices()[0])
    make = ferrax.make_array_from_single_device_arrays
    assert make((2,), there, [part], dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match=r"must match the dtype of the addressable shards. Got dtype=int32 and"):
        make((2,), there, [part], dtype=np.int32)
    with pytest.raises(ValueError, match="If the Array has no addressable shards, `dtype` must be provided"):
        make((2,), there, [])


def test_indices_of_devices_are_found_once():
    before = sharding.common_devices_indices_map.cache_info().hits
    for _ in range(2):
        found = sharding.common_devices_indices_map(one_device(), (7, 11))
    assert list(found.values()) == [(slice(None), slice(None))]
    assert sharding.common_devices_indices_map.cache_info().hits > before
    assert issubclass(sharding.IndivisibleError, ValueError)


@pytest.mark.parametrize("args", [(), (max,)])
def test_maps_over_no_lists(args):
    with pytest.raises(TypeError, match=r"^safe_map requires at least 2 arguments"):
        util.safe_map(*args)


def by_blocks(library, total, block, tile, index):
    sampler = importlib.import_module(f"{library.__name__}._src.blocked_sampler")
    keys = sampler.blocked_fold_in(library.random.key(3), total, block, tile, index)
    return sampler.sample_block(library.random.uniform, keys, block, tile)


BLOCKS = [
    ((16, 128), (8, 64), (8, 32), (1, 1)),
    ((8, 12, 4), (4, 6, 4), (2, 3, 4), (1, 0, 0)),
    ((4,), (2,), (1,), (1,)),
    ((5, 7), (4, 4), (2, 2), (1, 1)),
]


@pytest.mark.parametrize("case", BLOCKS, ids=str)
def test_draws_by_blocks_like_jax(case):
    np.testing.assert_array_equal(by_blocks(ferrax, *case), expected(by_blocks, *case))


def test_draws_are_the_same_for_other_blocks():
    whole = by_blocks(ferrax, (8, 8), (8, 8), (2, 4), (0, 0))
    parts = [[by_blocks(ferrax, (8, 8), (4, 4), (2, 4), (i, j)) for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(whole, np.block([[np.asarray(p) for p in row] for row in parts]))
    traced = ferrax.jit(lambda i: by_blocks(ferrax, (8, 8), (4, 4), (2, 4), (i, 1)))(1)
    np.testing.assert_array_equal(traced, parts[1][1])
