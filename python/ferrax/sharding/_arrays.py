"""Arrays from their parts: by a callback, from arrays on single devices, from what this process has.

Read next: `_placement.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes, tree_util
from ferrax._prefixes import prefix_leaves
from ferrax.sharding._named import Sharding, fitting
from ferrax.sharding._placement import check_fits, place, with_mesh

__all__ = [
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]


def _kind(dtype: Any, shape: tuple[int, ...]) -> str:
    return f"{np.dtype(dtype).name}[{','.join(map(str, shape))}]"


def _require_sharding(sharding: Any, function: str) -> None:
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"sharding should be an instance of `jax.sharding`. Got {sharding} of type {type(sharding)} in "
            f"jax.{function}"
        )


def _check_part(part: Any, want: tuple[int, ...], whole: tuple[int, ...], sharding: Any) -> None:
    if tuple(part.shape) != want:
        raise ValueError(
            f"Expected shard shape {want} doesn't match the single device array shape {tuple(part.shape)}. Shape of "
            f"Array is {_kind(part.dtype, whole)} with sharding {sharding}"
        )


def make_array_from_callback(
    shape: Any, sharding: Any, data_callback: Callable[[Any], Any], dtype: Any = None
) -> _ferrax.Array:
    """An array whose parts a callback gives.

    Args:
      shape: the array's shape.
      sharding: its sharding, or a format.
      data_callback: function from a part's index, a tuple of slices, to the part.
      dtype: dtype of the array, which the parts must have; needed where the callback is asked for no part.

    Returns:
      The array.

    Raises:
      UnexpectedTracerError: the callback gives a traced value.
      ValueError: the callback gives a part of another shape or dtype.

    >>> import ferrax as jax, numpy as np
    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> print(jax.make_array_from_callback((4,), sharding, lambda index: np.arange(4)[index]))
    [0 1 2 3]
    """
    shape = tuple(shape)
    if type(sharding).__module__ == "ferrax.experimental.layout":
        from ferrax.experimental.layout import Layout, sharding_of

        if sharding.layout is Layout.AUTO:
            raise TypeError(
                "`Layout.AUTO` cannot be used in place of a device-local layout when calling "
                f"`jax.make_array_from_callback`. Got {sharding}"
            )
        sharding = sharding_of(sharding, shape, "make_array_from_callback")
    _require_sharding(sharding, "make_array_from_callback")
    sharding = fitting(sharding, len(shape))
    want = tuple(sharding.shard_shape(shape))
    parts: dict[Any, tuple[Any, Any]] = {}
    for index in sharding.addressable_devices_indices_map(shape).values():
        key = tuple((s.start, s.stop) for s in index)
        if key not in parts:
            part = data_callback(index)
            if isinstance(part, _ferrax.Tracer):
                raise _ferrax.UnexpectedTracerError(
                    "jax.make_array_from_callback cannot be called within a traced context."
                )
            part = part if isinstance(part, _ferrax.Array) else _canonical(part, None)
            if dtype is not None and not _is_key(part) and _ferrax.canonicalize_dtype(dtype) != part.dtype:
                raise ValueError(
                    "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of the "
                    f"addressable shards. Got dtype={np.dtype(dtype).name} and shard dtype={part.dtype.name}`."
                )
            _check_part(part, want, shape, sharding)
            parts[key] = (index, part)
    return _assembled(shape, sharding, list(parts.values()), dtype)


def _canonical(part: Any, dtype: Any) -> np.ndarray:
    """A part as NumPy's array, in the dtype that arrays of such have."""
    array = np.asarray(part, dtype=dtype)
    return array.astype(_ferrax.canonicalize_dtype(array.dtype), copy=False)


def _assembled(shape: tuple[int, ...], sharding: Any, parts: list[tuple[Any, Any]], dtype: Any = None) -> _ferrax.Array:
    """An array of parts and their indices; of no parts where none of its devices is this process's."""
    from ferrax import dtypes, random

    devices = sharding._device_assignment
    if devices[0].platform != "cpu" and (len(devices) > 1 or not parts):
        return _assembled_there(shape, sharding, parts, dtype)
    first = parts[0][1]
    if dtypes.issubdtype(first.dtype, dtypes.prng_key):
        data = [(i, random.key_data(p)) for i, p in parts]
        words = data[0][1].shape[first.ndim :]
        whole = np.empty((*shape, *words), dtype=np.uint32)
        for index, part in data:
            whole[index] = np.asarray(part)
        result: Any = random.wrap_key_data(_ferrax.asarray(whole))
    else:
        result = np.empty(shape, dtype=first.dtype)
        for index, part in parts:
            result[index] = np.asarray(part)
        result = _ferrax.asarray(result)
    return _ferrax.device_put_leaf(result, place(sharding), True)


def _assembled_there(shape: tuple[int, ...], sharding: Any, parts: list[tuple[Any, Any]], dtype: Any) -> Any:
    """As `_assembled`, over devices whose memories are their own: each part goes to its devices alone."""
    from ferrax import dtypes, random

    if not parts and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
            "`jax.make_array_from_single_device_arrays`."
        )
    if parts and dtypes.issubdtype(parts[0][1].dtype, dtypes.prng_key):
        words = random.key_data(parts[0][1]).shape[len(shape) :]
        data = [((*i, *[slice(None)] * len(words)), random.key_data(p)) for i, p in parts]
        return random.wrap_key_data(_assembled_there((*shape, *words), sharding, data, np.uint32))
    by_index = {_bounds(index, shape): part for index, part in parts}
    own = sharding.addressable_devices_indices_map(shape)
    ordered = [by_index[_bounds(own[d], shape)] for d in sharding._device_assignment if d in own]
    dtype = parts[0][1].dtype if parts else _ferrax.canonicalize_dtype(dtype)
    return _ferrax.assembled(shape, dtype, place(sharding), ordered)


def _bounds(index: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """An index as what can be looked up."""
    return tuple(s.indices(n)[:2] for s, n in zip(index, shape, strict=True))


def make_array_from_single_device_arrays(
    shape: Any, sharding: Any, arrays: Sequence[Any], *, dtype: Any = None
) -> _ferrax.Array:
    """An array whose parts are arrays on single devices.

    Args:
      shape, sharding: as in `make_array_from_callback`.
      arrays: a part for every device, in any order.
      dtype: dtype of the array, needed where there are no parts.

    Returns: as in `make_array_from_callback`.

    Raises:
      TypeError: `arrays` is no list or tuple of arrays.
      ValueError: there is not one part of the right shape for every device, or arrays differ in dtype.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> part = jax.device_put(jnp.arange(3), jax.devices()[0])
    >>> print(jax.make_array_from_single_device_arrays((3,), sharding, [part]))
    [0 1 2]
    """
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(
            "jax.make_array_from_single_device_arrays `arrays` argument must be a list or tuple, but got "
            f"{type(arrays)}."
        )
    _require_sharding(sharding, "make_array_from_single_device_arrays")
    traced = {type(x) for x in arrays if _ferrax.is_tracer(x)}
    if traced:
        raise ValueError(
            "jax.make_array_from_single_device_arrays requires a list of concrete arrays as input, but got types "
            f"{traced}"
        )
    if not arrays and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype` argument to "
            "`jax.make_array_from_single_device_arrays`."
        )
    shape = tuple(shape)
    parts = dict(sharding.addressable_devices_indices_map(shape))
    for x in arrays:
        if not isinstance(x, _ferrax.Array) and not _is_key(x):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(x)}")
    if len(arrays) != len(parts):
        raise ValueError(
            f"Expected {len(parts)} per-device arrays (this is how many devices are addressable by the sharding), but "
            f"got {len(arrays)}"
        )
    for x in arrays:
        if x.dtype != arrays[0].dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {arrays[0].dtype} for "
                f"buffer: {x}"
            )
    if arrays and dtype is not None and arrays[0].dtype != dtype:
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it must match the dtype of the "
            f"addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={arrays[0].dtype}`."
        )
    want = tuple(sharding.shard_shape(shape))
    devices = [_device_of(x) for x in arrays]
    _check_devices(parts, devices)
    for x in arrays:
        _check_part(x, want, shape, sharding)
    return _assembled(shape, sharding, [(parts[d], x) for d, x in zip(devices, arrays, strict=True)], dtype)


def _device_of(part: Any) -> Any:
    devices = set(part.devices())
    if len(devices) != 1:
        raise ValueError(
            "When making an array from single-device arrays the input arrays must have one shard each. An argument "
            f"array had {len(devices)} shard(s)."
        )
    return devices.pop()


def _check_devices(wanted: Any, devices: Sequence[Any]) -> None:
    """Raises unless there is a part on each device of a sharding."""
    if len(set(devices)) != len(devices):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from distinct devices, but got "
            f"device IDs {[d.id for d in devices]}"
        )
    missing = {d.id for d in wanted} - {d.id for d in devices}
    if missing:
        others = {d.id for d in devices} - {d.id for d in wanted}
        raise ValueError(
            f"Addressable devices and per-device arrays devices do not match. Sharding contains devices {missing} that "
            f"are not present in per-device arrays. Per-device arrays contain devices {others} that are not present in "
            "the sharding."
        )


def array_of(
    cls: type, aval: Any, sharding: Any, arrays: Sequence[Any], committed: bool, _skip_checks: bool = False
) -> Any:
    """An array of a type whose parts are arrays on single devices: `ArrayImpl(...)`.

    Args:
      cls: accepted for compatibility.
      aval: the array's type.
      sharding: its sharding.
      arrays: a part for every device.
      committed: whether the array stays where it is; must be true of arrays on several devices.
      _skip_checks: accepted for compatibility.

    Returns:
      The array.

    Raises:
      ValueError: the parts have another dtype, or there is not one of the right shape for every device.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> x = jnp.ones(3)
    >>> print(array_of(type(x), x.aval, x.sharding, [x], False))
    [1. 1. 1.]
    """
    for x in arrays:
        if x.dtype != aval.dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {x.dtype}, expected {aval.dtype} for buffer: "
                f"{x}"
            )
    made = make_array_from_single_device_arrays(tuple(aval.shape), sharding, list(arrays), dtype=aval.dtype)
    if committed:
        return made
    if len(arrays) != 1:
        raise NotImplementedError("ArrayImpl of several devices with committed=False")
    return arrays[0]


def _check_if_deleted(self: Any) -> None:
    """Raises a RuntimeError if the array's memory was given up."""
    if self.is_deleted():
        raise RuntimeError(f"Array has been deleted with shape={_kind(self.dtype, tuple(self.shape))}.")


def _fully_replicated_shard(self: Any) -> Any:
    """The array as its first device holds it, where each device holds all of it."""
    return self.addressable_data(0)


def _npy_value(self: Any) -> Any:
    """The elements as NumPy's; None once the memory was given up."""
    return None if self.is_deleted() else np.asarray(self)


for _name, _member in {
    "__new__": staticmethod(array_of),
    "_check_if_deleted": _check_if_deleted,
    "_fully_replicated_shard": _fully_replicated_shard,
    "_npy_value": property(_npy_value),
}.items():
    setattr(_ferrax.ArrayImpl, _name, _member)


def _is_key(x: Any) -> bool:
    from ferrax import dtypes

    return dtypes.issubdtype(x.dtype, dtypes.prng_key)


def make_array_from_process_local_data(sharding: Any, local_data: Any, global_shape: Any = None) -> Any:
    """An array of what this process has of it.

    Args:
      sharding: the sharding, a `PartitionSpec` of the mesh in use, or a pytree prefix of such.
      local_data: an array, or a pytree of arrays: what the devices of this process have together. Along an axis where
        that is all of the array, it may be given as a whole.
      global_shape: shape of the array, or a pytree of such, with None for axes to find; by default each axis is as many
        times as long as that of `local_data` as there are processes that have other parts along it.

    Returns:
      The array.

    Raises:
      ValueError: the shapes do not fit together.

    >>> import ferrax as jax, numpy as np
    >>> sharding = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> jax.make_array_from_process_local_data(sharding, np.zeros((4, 2))).shape
    (4, 2)
    """
    leaves, tree = tree_util.tree_flatten(local_data)
    shardings = prefix_leaves(sharding, local_data)
    is_shape = lambda s: s is None or (isinstance(s, tuple) and all(n is None or isinstance(n, int) for n in s))
    shapes = [None] * len(leaves) if global_shape is None else tree_util.tree_leaves(global_shape, is_leaf=is_shape)
    if len(shapes) == 1:
        shapes = shapes * len(leaves)
    return tree.unflatten([_local(x, s, want) for x, s, want in zip(leaves, shardings, shapes, strict=True)])


def _local(data: Any, sharding: Any, want: Any) -> _ferrax.Array:
    sharding = with_mesh(sharding, "make_array_from_process_local_data")
    _require_sharding(sharding, "make_array_from_process_local_data")
    data = data if isinstance(data, _ferrax.Array) else np.asarray(data)
    shape = tuple(data.shape)
    if not sharding.is_fully_addressable:
        return _of_own(data, sharding, want)
    if want is not None and want != shape:
        raise ValueError(
            "When calling `make_array_from_process_local_data` on a single process, global_shape should be None or "
            f"equal to local_data.shape. Got global_shape={want} and local_data.shape={shape}."
        )
    check_fits(sharding, shape, "make_array_from_process_local_data arguments")
    return _ferrax.device_put_leaf(_ferrax.asarray(data), place(sharding), True)


def _of_own(data: Any, sharding: Any, want: Any) -> _ferrax.Array:
    """An array over devices of several processes, of what those of this one have together."""
    ndim = len(data.shape)
    want = (None,) * ndim if want is None else tuple(want)
    if len(want) != ndim:
        raise ValueError(f"local_data has {ndim} axes, and global_shape={want} has {len(want)}")
    axes = [_own_blocks(sharding, axis, ndim) for axis in range(ndim)]
    shape = tuple(
        n * parts if whole is None else whole for n, (_, parts, _), whole in zip(data.shape, axes, want, strict=True)
    )
    check_fits(sharding, shape, "make_array_from_process_local_data arguments")
    sizes = sharding.shard_shape(shape)
    for axis, (own, _, blocks) in enumerate(axes):
        if data.shape[axis] not in (shape[axis], sizes[axis] * len(own)):
            raise ValueError(
                f"local_data has {data.shape[axis]} elements along axis {axis}, and the devices of this process have "
                f"{len(own)} of {blocks} parts of {shape[axis]} there: {sizes[axis] * len(own)} elements"
            )

    def local(index: Any) -> Any:
        at = []
        for axis, (s, size, (own, *_)) in enumerate(zip(index, sizes, axes, strict=True)):
            start = s.indices(shape[axis])[0]
            start = start if data.shape[axis] == shape[axis] else own.index(start // size) * size if size else 0
            at.append(slice(start, start + size))
        return data[tuple(at)]

    found = {_bounds(i, shape): (i, local(i)) for i in sharding.addressable_devices_indices_map(shape).values()}
    return _assembled(shape, sharding, list(found.values()), data.dtype)


def _own_blocks(sharding: Any, axis: int, ndim: int) -> tuple[list[int], int, int]:
    """Which parts along an axis the devices of this process have, into how many sets processes share the parts, and how
    many parts there are."""
    parts, count = blocks_of_processes(sharding, axis, ndim)
    sets = {frozenset(blocks) for blocks in parts.values()}
    if sum(map(len, sets)) != count:
        raise ValueError(
            f"make_array_from_process_local_data: processes share parts of axis {axis} of arrays with {sharding}, and "
            f"have others each for itself ({sorted(map(sorted, sets))}): give the parts by make_array_from_callback"
        )
    return sorted(parts.get(_processes.state.index, ())), len(sets), count


def blocks_of_processes(sharding: Any, axis: int, ndim: int) -> tuple[dict[int, set[int]], int]:
    """Which parts along an axis the devices of each process have, and how many parts there are."""
    counts = sharding._blocks(ndim)[0]
    parts: dict[int, set[int]] = {}
    for device, index in sharding.devices_indices_map(tuple(counts)).items():
        parts.setdefault(device.process_index, set()).add(index[axis].indices(counts[axis])[0])
    return parts, counts[axis]
