"""Programs over several devices."""

from collections.abc import Sequence
from typing import Any

import ferrax
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "MeshComputation MeshExecutable SemanticallyEqualShardings UnloadedMeshExecutable global_result_handlers "
    "lower_sharding_computation shard_arg_handlers shard_args",
    "programs run in the core",
    names_of(__name__, "ferrax.interpreters.pxla", "ferrax.sharding"),
)


def batched_device_put(
    aval: Any, sharding: Any, xs: Sequence[Any], devices: Sequence[Any], committed: bool = True
) -> Any:
    """An array of parts on devices.

    Args:
      aval: its type.
      sharding: how it is divided.
      xs: a part for each device.
      devices: the devices.
      committed: as of the array; one that is not is on one device.
    """
    if not committed:
        (part,) = xs
        return ferrax.device_put(part)
    parts = [ferrax.device_put(x, d) for x, d in zip(xs, devices, strict=True)]
    if len(parts) == 1:
        return ferrax.device_put(parts[0], sharding)
    return ferrax.make_array_from_single_device_arrays(aval.shape, sharding, parts)
