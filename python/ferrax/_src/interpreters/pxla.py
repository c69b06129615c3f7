"""Programs over several devices."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import ferrax
from ferrax._core import ShapedArray
from ferrax._executables import MeshComputation as MeshComputation, MeshExecutable as MeshExecutable
from ferrax._src._public import names_of
from ferrax._src._unprovided import unprovided_names

__getattr__ = unprovided_names(
    __name__,
    "SemanticallyEqualShardings UnloadedMeshExecutable lower_sharding_computation shard_arg_handlers shard_args",
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


def _array_handler(aval: Any, sharding: Any, committed: bool) -> Callable[[Sequence[Any]], Any]:
    """A function that makes an array of its parts, each on its device."""
    return lambda parts: batched_device_put(aval, sharding, parts, [part.device for part in parts], committed)


#: By class of types: functions `(type, sharding, committed)` that give what makes a value of its parts.
global_result_handlers: dict[type, Callable[..., Any]] = {ShapedArray: _array_handler}


def global_aval_to_result_handler(aval: Any, out_sharding: Any, committed: bool) -> Callable[[Sequence[Any]], Any]:
    """What makes a value of its parts, arrays on single devices.

    Args:
      aval: the value's type.
      out_sharding: how it is divided.
      committed: as of the array.

    Raises:
      TypeError: nobody said how values of such a type are made.

    >>> import ferrax as jax
    >>> here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> print(global_aval_to_result_handler(jax.typeof(1.0), here, True)([jax.numpy.ones(())]))
    1.0
    """
    if type(aval) not in global_result_handlers:
        raise TypeError(f"no handler of results for a type of {type(aval).__name__}, {aval}: global_result_handlers")
    return global_result_handlers[type(aval)](aval, out_sharding, committed)  # type: ignore[no-any-return]


def global_avals_to_results_handler(
    global_out_avals: Sequence[Any], shardings: Sequence[Any], committed: bool
) -> Callable[[Sequence[Sequence[Any]]], list[Any]]:
    """What makes values of their parts: a function of a list of parts for each value.

    Args:
      global_out_avals: the values' types.
      shardings: how they are divided.
      committed: as of the arrays.
    """
    handlers = [
        global_aval_to_result_handler(aval, sharding, committed)
        for aval, sharding in zip(global_out_avals, shardings, strict=True)
    ]
    return lambda parts: [handler(each) for handler, each in zip(handlers, parts, strict=True)]


def create_compile_options(
    computation: Any,
    tuple_args: Any,
    allow_prop_to_inputs: Any,
    allow_prop_to_outputs: Any,
    backend: Any,
    np_dev: Any,
    compiler_options: Any,
) -> NoReturn:
    """What XLA is told of a compilation: raises NotImplementedError."""
    raise NotImplementedError("create_compile_options: ferrax has no options of XLA's; jit takes compiler_options")
