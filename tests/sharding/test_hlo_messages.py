"""Shardings in HLO's words, their messages and the parts of arrays that they say, as XLA's own classes have them."""

import itertools
import subprocess
import sys
import warnings

import pytest

import ferrax
from ferrax._src import op_shardings
from ferrax._src.lib.xla_client import HloSharding, OpSharding
from ferrax.extend import sharding
from ferrax.interpreters import pxla

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import jax
    from jax._src import op_shardings as jax_op_shardings
    from jax._src.lib import xla_client
    from jax._src.sharding_impls import GSPMDSharding

MESSAGES = {
    "replicated": {},
    "iota": {"tile_assignment_dimensions": [4], "iota_reshape_dims": [4], "iota_transpose_perm": [0]},
    "turned": {"tile_assignment_dimensions": [2, 2], "iota_reshape_dims": [2, 2], "iota_transpose_perm": [1, 0]},
    "many": {"tile_assignment_dimensions": [300], "iota_reshape_dims": [300], "iota_transpose_perm": [0]},
    "listed": {"tile_assignment_dimensions": [2, 2], "tile_assignment_devices": [0, 2, 1, 3]},
    "copies": {
        "tile_assignment_dimensions": [2, 1, 2],
        "tile_assignment_devices": [3, 2, 1, 0],
        "replicate_on_last_tile_dim": True,
    },
    "nothing but copies": {
        "tile_assignment_dimensions": [1, 1, 4],
        "tile_assignment_devices": [0, 1, 2, 3],
        "replicate_on_last_tile_dim": True,
    },
    "groups": {"tile_assignment_dimensions": [2, 2], "tile_assignment_devices": [0, 1, 2, 3], "last_tile_dims": [0]},
}


def made(cls, fields):
    message = cls()
    if fields:
        message.type = cls.Type.OTHER
    for name, value in fields.items():
        kinds = name == "last_tile_dims"
        setattr(message, name, [cls.Type.REPLICATED for _ in value] if kinds else value)
    return message


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_like_jax(name):
    ours, theirs = made(OpSharding, MESSAGES[name]), made(xla_client.OpSharding, MESSAGES[name])
    assert ours.SerializeToString() == theirs.SerializeToString()
    data = theirs.SerializeToString()
    read = sharding.get_op_sharding_from_serialized_proto(data)
    for field in ("type", "tile_assignment_dimensions", "iota_transpose_perm", "replicate_on_last_tile_dim"):
        assert getattr(read, field) == getattr(theirs, field)
    assert read.clone().SerializeToString() == data

    said, wanted = sharding.get_hlo_sharding_from_serialized_proto(data), xla_client.HloSharding.from_proto(theirs)
    assert str(said) == str(wanted)
    assert sharding.get_serialized_proto_from_hlo_sharding(said) == wanted.to_proto().SerializeToString()
    assert said.num_devices() == wanted.num_devices() and said.num_dimensions() == wanted.num_dimensions()
    if wanted.is_tiled():
        assert said.tile_assignment_devices() == wanted.tile_assignment_devices()


def test_equal_shardings_like_jax():
    names = list(MESSAGES)
    ours = [HloSharding.from_proto(made(OpSharding, MESSAGES[n])) for n in names]
    theirs = [xla_client.HloSharding.from_proto(made(xla_client.OpSharding, MESSAGES[n])) for n in names]
    with pytest.warns(DeprecationWarning):
        equal, replicated = pxla.are_hlo_shardings_equal, pxla.is_hlo_sharding_replicated
    for i, j in itertools.product(range(len(names)), repeat=2):
        assert equal(ours[i], ours[j]) == jax_op_shardings.are_hlo_shardings_equal(theirs[i], theirs[j])
        assert ours[i] != ours[j] or hash(ours[i]) == hash(ours[j])
        assert replicated(ours[i]) == jax_op_shardings.is_hlo_sharding_replicated(theirs[i])


@pytest.mark.parametrize("name", sorted(MESSAGES.keys() - {"many"}))
@pytest.mark.parametrize("shape", [(8,), (4, 8)])
def test_parts_like_jax(name, shape):
    ours = HloSharding.from_proto(made(OpSharding, MESSAGES[name]))
    theirs = xla_client.HloSharding.from_proto(made(xla_client.OpSharding, MESSAGES[name]))
    with pytest.warns(DeprecationWarning):
        parts = pxla.op_sharding_to_indices
    try:
        wanted = jax_op_shardings.op_sharding_to_indices(theirs, shape, 4)
    except AssertionError:
        with pytest.raises(ValueError, match="does not divide"):
            parts(ours, shape, 4)
    else:
        assert parts(ours, shape, 4) == wanted
        assert op_shardings.op_sharding_to_numpy_indices(ours, shape, 4).shape == (4,)


def test_messages_that_are_none():
    message = OpSharding()
    for kind in ("MANUAL", "MAXIMAL", "UNREDUCED", "TUPLE"):
        message.type = OpSharding.Type[kind]
        with pytest.raises(NotImplementedError, match=kind):
            HloSharding.from_proto(message)
    for fields in (
        {"tile_assignment_dimensions": [2], "tile_assignment_devices": [0, 0]},
        {"tile_assignment_dimensions": [2]},
        {"tile_assignment_dimensions": [2], "iota_reshape_dims": [3], "iota_transpose_perm": [0]},
    ):
        with pytest.raises(ValueError, match="sharding of 2 tiles"):
            HloSharding.from_proto(made(OpSharding, fields))
    with pytest.raises(ValueError, match="bytes are no"):
        sharding.get_op_sharding_from_serialized_proto(b"\xff")


def test_parts_of_a_tuple():
    message = OpSharding()
    message.type = OpSharding.Type.TUPLE
    message.tuple_shardings = [made(OpSharding, MESSAGES[n]) for n in ("iota", "replicated")]
    read = OpSharding()
    read.ParseFromString(message.SerializeToString())
    assert [m.tile_assignment_dimensions for m in read.tuple_shardings] == [[4], []]
    assert "TUPLE" in repr(read)


PLACED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import numpy as np
import ferrax
from ferrax._src import op_shardings
from ferrax._src.lib.xla_client import HloSharding, OpSharding
from ferrax.extend import sharding

message = OpSharding()
message.type = OpSharding.Type.OTHER
message.tile_assignment_dimensions, message.tile_assignment_devices = [2, 2], [0, 2, 1, 3]
devices, said = ferrax.devices(), HloSharding.from_proto(message)
placed = sharding.GSPMDSharding(devices, said)
x = ferrax.device_put(np.arange(16.0).reshape(4, 4), placed)
where = placed.devices_indices_map((4, 4))
assert [where[d] for d in devices] == list(op_shardings.op_sharding_to_indices(said, (4, 4), 4))
assert [s.data.ravel()[0] for s in x.addressable_shards] == [0, 8, 2, 10], x.addressable_shards
assert x.tolist() == np.arange(16.0).reshape(4, 4).tolist()
print("placed")
"""


def test_arrays_over_listed_devices():
    done = subprocess.run([sys.executable, "-c", PLACED], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "placed", done.stderr


@pytest.mark.parametrize("name", MESSAGES)
def test_shardings_are_made_of_messages(name):
    devices = ferrax.devices()[:1]
    ours = sharding.GSPMDSharding(devices, made(OpSharding, MESSAGES[name]))
    wanted = GSPMDSharding(jax.devices()[:1], made(xla_client.OpSharding, MESSAGES[name]))
    assert repr(ours) == repr(wanted)
    assert ours == sharding.GSPMDSharding(devices, HloSharding.from_proto(made(OpSharding, MESSAGES[name])))
