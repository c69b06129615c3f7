"""What programs of many processes share: values go through the coordinator of `jax.distributed`.

A process that is the only one has all there is. Read next: `ferrax/_coordination.py`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import zlib
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes, tree_util
from ferrax._api import effects_barrier
from ferrax._boundary import expose as _expose
from ferrax._ferrax import ArrayImpl
from ferrax._prefixes import prefix_leaves
from ferrax.sharding._arrays import make_array_from_process_local_data, make_array_from_single_device_arrays
from ferrax.sharding._mesh import Mesh
from ferrax.sharding._named import NamedSharding
from ferrax.sharding._placement import place, whole_on_each
from ferrax.sharding._spec import PartitionSpec

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


#: Numbers of exchanges; all processes make them in one order.
_turns = itertools.count()
#: How long the others may take, in milliseconds.
_PATIENCE = 300_000


def packed(x: np.ndarray[Any, Any]) -> bytes:
    """An array as bytes: dtype and shape, a line end, the elements."""
    head = json.dumps([x.dtype.name, list(x.shape)]).encode()
    return head + b"\n" + np.ascontiguousarray(x).tobytes()


def unpacked(data: bytes) -> np.ndarray[Any, Any]:
    from ferrax._ferrax import canonicalize_dtype

    head, _, elements = data.partition(b"\n")
    name, shape = json.loads(head)
    try:
        dtype = np.dtype(name)
    except TypeError:
        dtype = canonicalize_dtype(name)
    return np.frombuffer(elements, dtype=dtype).reshape(shape).copy()


def _exchanged(x: Any, sources: list[int]) -> list[np.ndarray[Any, Any]]:
    """The values that some processes have, for all of them."""
    state = _processes.state
    folder = f"ferrax/exchange/{next(_turns)}"
    if state.index in sources:
        state.client.key_value_set_bytes(f"{folder}/{state.index}", packed(np.asarray(x)))
    found = [unpacked(state.client.blocking_key_value_get_bytes(f"{folder}/{p}", _PATIENCE)) for p in sources]
    state.client.wait_at_barrier(folder, _PATIENCE)
    if state.index == sources[0]:
        state.client.key_value_delete(folder)
    return found


def _from_all(x: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays of all processes, in order of their numbers."""
    return _exchanged(x, list(range(_processes.state.count)))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's data, for all processes.

    Args:
      in_tree: pytree of arrays.
      is_source: whether this process has the data; process 0 by default.

    Returns:
      The pytree as NumPy arrays.

    >>> from ferrax.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all(3)
    array(3)
    """
    if _processes.state.count == 1:
        return tree_util.tree_map(np.asarray, in_tree)
    own = _processes.state.index == 0 if is_source is None else bool(is_source)
    sources = [p for p, says in enumerate(_from_all(own)) if says]
    if len(sources) != 1:
        raise ValueError(f"broadcast_one_to_all needs one process that has the data; processes {sources} say so")
    return tree_util.tree_map(lambda x: _exchanged(x, sources)[0], in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes are here.

    Args:
      name: of the place, the same in all processes.

    Raises:
      AssertionError: another process is at another place.
      TypeError: the name is no string.

    >>> from ferrax.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("here")
    """
    if not isinstance(name, str):
        raise TypeError(f"sync_global_devices takes the name of a place, a string, got {name!r} of {type(name)}")
    effects_barrier()
    assert_equal(np.uint32(zlib.crc32(name.encode())), f"sync_global_devices name mismatch ('{name}')")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """All processes' data.

    Args:
      in_tree: pytree of arrays. Of an array over devices of several processes, each gets all elements.
      tiled: whether data are joined along the first axis, instead of stacked on a new one; must be true of arrays over
        several processes.

    Returns:
      The pytree as NumPy arrays.

    Raises:
      ValueError: an array is over several processes, and `tiled` is false.

    >>> from ferrax.experimental import multihost_utils
    >>> multihost_utils.process_allgather([1, 2], tiled=True)
    [array(1), array(2)]
    """

    def one(x: Any) -> Any:
        if isinstance(x, _ferrax.Array) and not x.is_fully_addressable:
            if not tiled:
                raise ValueError("Gathering global non-fully-addressable arrays only supports tiled=True")
            return np.asarray(_ferrax.device_put_leaf(x, whole_on_each(x.sharding), True))
        data = np.asarray(x)
        if _processes.state.count > 1:
            parts = _from_all(data)
            return np.concatenate(parts) if tiled and data.ndim else np.stack(parts)
        return data if tiled else data[None]

    return tree_util.tree_map(one, in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises unless all processes have the same data.

    Args:
      in_tree: pytree of arrays.
      fail_message: text of the error.

    Raises:
      AssertionError: they have not.

    >>> from ferrax.experimental import multihost_utils
    >>> multihost_utils.assert_equal([1, 2])
    """
    leaves = [np.asarray(x) for x in tree_util.tree_leaves(in_tree)]
    if _processes.state.count == 1:
        return
    for leaf in leaves:
        parts = _from_all(leaf)
        if not all(np.array_equal(leaf, part) for part in parts):
            raise AssertionError(f"{fail_message}. Expected: {np.stack(parts)}; got: {leaf}.")


def require_same(x: Any, kind: type) -> None:
    """Raises unless all processes, which call this, have the same array: its digest goes to the others.

    Args:
      x: the array.
      kind: what the user passed.

    Raises:
      AssertionError: they have not.
    """
    from ferrax import dtypes, random

    data = np.asarray(random.key_data(x) if dtypes.issubdtype(x.dtype, dtypes.prng_key) else x)
    said = f"{data.dtype} {data.shape}".encode() + data.tobytes()
    digest = np.frombuffer(hashlib.sha256(said).digest(), np.uint8)
    if any(not np.array_equal(digest, d) for d in _from_all(digest)):
        raise AssertionError(
            f"{kind} passed to device_put is not the same on each process. Make sure you are passing the same value of "
            f"{kind} on each process."
        )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are to save their state now: nothing tells a single process to.

    Args:
      step_id: the step of the program.

    Returns:
      False.

    Raises:
      RuntimeError: processes are connected, and nobody tells them that they are to end.

    >>> from ferrax.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(1)
    False
    """
    if _processes.state.client is None:
        return False
    raise RuntimeError(
        "Preemption sync manager has not been initialized. Make sure the 'jax_enable_preemption_service' config is "
        "enabled."
    )


def _require_mesh(mesh: Any) -> None:
    if not isinstance(mesh, Mesh):
        raise TypeError(f"global_mesh must be a `jax.sharding.Mesh`, got {mesh!r} of type {type(mesh).__name__}")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh of what each process has of them.

    Args:
      local_inputs: pytree of arrays.
      global_mesh: the mesh.
      pspecs: a `PartitionSpec` for each, a pytree prefix.

    Returns:
      The pytree with arrays over the mesh.

    >>> import ferrax as jax, numpy as np
    >>> from ferrax.experimental import multihost_utils
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> multihost_utils.host_local_array_to_global_array(np.ones(2), mesh, jax.P("x")).sharding.spec
    P('x',)
    """
    _require_mesh(global_mesh)
    is_spec = lambda s: isinstance(s, PartitionSpec)
    specs = prefix_leaves(pspecs, local_inputs, is_spec)
    leaves, tree = tree_util.tree_flatten(local_inputs)
    made = [
        make_array_from_process_local_data(NamedSharding(global_mesh, s), x) for s, x in zip(specs, leaves, strict=True)
    ]
    return tree.unflatten(made)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """What this process has of arrays over a mesh.

    Args:
      global_inputs: pytree of arrays.
      global_mesh: the mesh.
      pspecs: a `PartitionSpec` for each, a pytree prefix.

    Returns:
      The pytree with arrays over the part of the mesh that this process has.

    >>> import ferrax as jax, numpy as np
    >>> from ferrax.experimental import multihost_utils
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> multihost_utils.global_array_to_host_local_array(np.ones(2), mesh, jax.P("x")).shape
    (2,)
    """
    _require_mesh(global_mesh)
    specs = prefix_leaves(pspecs, global_inputs, lambda s: isinstance(s, PartitionSpec))
    leaves, tree = tree_util.tree_flatten(global_inputs)
    return tree.unflatten([_own_part(x, global_mesh, s) for x, s in zip(leaves, specs, strict=True)])


def _own_part(x: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    """What this process has of an array over a mesh; arrays that it has whole stay where they are."""
    if isinstance(x, ArrayImpl) and x.is_fully_addressable:
        return x
    if not isinstance(x, ArrayImpl):
        return make_array_from_process_local_data(NamedSharding(mesh.local_mesh, spec), x)
    x = _ferrax.device_put_leaf(x, place(NamedSharding(mesh, spec)), True)
    local = NamedSharding(mesh.local_mesh, spec)
    part = x.sharding.shard_shape(x.shape)
    shape = tuple(n * count for n, count in zip(part, local._blocks(x.ndim)[0], strict=True))
    return make_array_from_single_device_arrays(shape, local, [s.data for s in x.addressable_shards])


_expose(globals())
