"""Putting arrays where a sharding says: numbers of shardings, checks, bare specs, constraints in programs.

Devices of the embedded CPU share one memory, so an array over several of them is one buffer with a sharding. Devices of
plugins have memories of their own, and such an array is a buffer on each. Read next:
`_propagation.py` for the shardings of results, `_shards.py` for the parts.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ferrax import _ferrax, _processes, tree_util
from ferrax._ferrax import Device, SingleDeviceSharding
from ferrax._out_sharding import require_sharding
from ferrax._processes import RemoteDevice
from ferrax.sharding._context import concrete_mesh, context_mesh, get_abstract_mesh
from ferrax.sharding._gspmd import GSPMDSharding
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh
from ferrax.sharding._named import InMemory, NamedSharding, OpenSharding, Sharding, is_abstract
from ferrax.sharding._spec import UNCONSTRAINED, PartitionSpec, entry_names

__all__ = ["check_fits", "constrain", "place", "put", "put_in_memory", "whole_on_each", "with_mesh"]

_places: dict[Any, Any] = {}
_lock = threading.Lock()


def place(sharding: Any) -> Any:
    """What Rust knows a sharding by: the device of a sharding on one, a number for all others.

    Args:
      sharding: a `Sharding` of devices, or a device.

    Raises:
      NotImplementedError: it is over devices of other processes, which the platform's engine cannot reach.
      ValueError: its devices are of several platforms.
    """
    if isinstance(sharding, Device):
        return sharding
    if isinstance(sharding, SingleDeviceSharding) and sharding.memory_kind == "device":
        return sharding
    found = _places.get(sharding)
    if found is not None:
        return found
    abstract = isinstance(sharding, InMemory) or is_abstract(sharding)
    # a program that says no devices is for those of its operands: the device stands for them
    others = [] if abstract else [d for d in sharding._device_assignment if isinstance(d, RemoteDevice)]
    if others:
        raise NotImplementedError(
            f"{sharding} is over devices of several processes ({others[0]} is of process {others[0].process_index}), "
            "and the embedded engine moves nothing between processes: arrays over them are those of plugins that do, "
            "such as XLA's for GPUs. Use jax.experimental.multihost_utils to exchange values"
        )
    devices = list(_ferrax.devices("cpu"))[:1] if abstract else list(sharding._device_assignment)
    whole = None if abstract else _replicated(sharding)
    replicated = None if whole is None else place(whole)
    tiles = None if isinstance(sharding, InMemory) else _tiles(sharding, None if abstract else devices)
    with _lock:
        if sharding not in _places:
            text, left = repr(sharding), _left_open(sharding)
            _places[sharding] = _ferrax.intern_sharding(sharding, devices, replicated, text, tiles, left)
    return _places[sharding]


def whole_on_each(sharding: Any) -> Any:
    """The place of arrays that each device of a sharding has all of."""
    return place(_replicated(sharding) or sharding)


def _replicated(sharding: Any) -> Any:
    """The sharding by which each of its devices holds everything; `None` when it is that."""
    if isinstance(sharding, GSPMDSharding) and not sharding.is_fully_replicated:
        return GSPMDSharding.get_replicated(sharding._device_assignment, memory_kind=sharding.memory_kind)
    if not isinstance(sharding, NamedSharding) or sharding.spec == PartitionSpec():
        return None
    return NamedSharding(sharding.mesh, PartitionSpec(), memory_kind=sharding.memory_kind)


def _left_open(sharding: Any) -> list[int] | None:
    """The axes of arrays that may be divided further than a sharding says; `None` for all."""
    if isinstance(sharding, OpenSharding) and sharding.free:
        return None
    spec = getattr(sharding, "spec", PartitionSpec())
    return [axis for axis, entry in enumerate(spec) if entry is UNCONSTRAINED]


def _tiles(sharding: Any, devices: list[Any] | None) -> tuple[list[int], int, list[int]] | None:
    """How a sharding cuts arrays, for devices whose memories are their own; `None` for those that share one, and for
    one of this process.

    Args:
      sharding: the sharding.
      devices: its devices; `None` where they are those of whatever program says it.

    Returns:
      The number of tiles along each axis, that of copies of a tile, and the devices by their places, those of the first
      tile first.
    """
    count = sharding.mesh.size if devices is None else len(devices)
    alone = count <= 1 and (devices is None or devices[0].process_index == _processes.state.index)
    if alone or (devices is not None and all(d.platform == "cpu" for d in devices)):
        return None
    kinds = {d.platform for d in devices or ()}
    if len(kinds) > 1:
        raise ValueError(f"{sharding} is over devices of several platforms: {', '.join(sorted(kinds))}")
    spec = getattr(sharding, "spec", PartitionSpec())
    # a sum that is still due is on each device, as if it were done: of its parts one has all, as on the embedded CPU
    hlo = sharding._to_xla_hlo_sharding(len(spec))
    if hlo.is_replicated():
        return [], count, list(range(count))
    counts = hlo.tile_assignment_dimensions()
    copies = counts.pop() if hlo.replicate_on_last_tile_dim() else 1
    return counts, copies, hlo.tile_assignment_devices()


def with_mesh(spec: Any, function: str) -> Any:
    """The sharding that a bare `PartitionSpec` means; other shardings as they are.

    Args:
      spec: a `PartitionSpec` or a sharding.
      function: who asks, for the error.

    Raises:
      ValueError: no mesh is in use.
    """
    if not isinstance(spec, PartitionSpec):
        return spec
    mesh = context_mesh()
    if mesh is None:
        raise ValueError(f"Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to {function}")
    return NamedSharding(mesh, spec)


def concrete(sharding: Any) -> Any:
    """A sharding over an abstract mesh with the devices of the mesh in use, where that has as many."""
    mesh = concrete_mesh()
    if mesh is None or not is_abstract(sharding):
        return sharding
    wanted = sharding.mesh
    if mesh.shape_tuple != wanted.shape_tuple:
        if wanted.empty or mesh.size != wanted.size:
            return sharding
        mesh = Mesh(mesh.devices.reshape(wanted.axis_sizes), wanted.axis_names, wanted.axis_types)
    elif mesh.axis_types != wanted.axis_types:
        mesh = mesh.update(axis_types=wanted.axis_types)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def check_fits(sharding: Any, shape: tuple[int, ...], what: str, uneven: bool = False) -> None:
    """Raises unless arrays of a shape can have a sharding.

    Args:
      sharding: the sharding.
      shape: the shape.
      what: where the array is from, for the error.
      uneven: whether parts may differ in size, as those of values inside of a program do.

    Raises:
      ValueError: the shape has too few axes, or the sharding's mesh has none.
      IndivisibleError: parts would differ in size.
    """
    if not isinstance(sharding, Sharding) or isinstance(sharding, SingleDeviceSharding):
        return
    if isinstance(sharding, NamedSharding) and sharding.mesh.empty:
        raise ValueError(f"One of {what} got an empty NamedSharding: {sharding}, which is not allowed.")
    try:
        sharding.check_compatible_aval(shape)  # type: ignore[attr-defined]
    except ValueError as error:
        text = f"One of {what} is incompatible with its sharding annotation {sharding}: {error}"
        raise ValueError(text) from None
    if not uneven:
        sharding.shard_shape(shape)


def opened(sharding: Any, where: str = "") -> Any:
    """A sharding that says nothing of axes of type `Auto`, as those of types: the program may divide by them, too."""
    if not isinstance(sharding, NamedSharding) or isinstance(sharding, OpenSharding):
        return sharding
    free = frozenset(n for n, kind in sharding.mesh._name_to_type.items() if kind is AxisType.Auto)
    return OpenSharding(sharding.mesh, sharding.spec, free, where) if free else sharding


def put(x: Any, sharding: Any, alias: bool = True, typed: bool = False) -> Any:
    """A leaf of `device_put` with a sharding over several devices.

    Args:
      x: array, number or traced value.
      sharding: the sharding; its mesh may be abstract if it is the one in use.
      alias: whether the result may be `x` itself.
      typed: whether a traced value has what the sharding says in its type, which says nothing of axes of type `Auto`.

    Returns:
      An array with the sharding; of a traced value, one that the program puts there.
    """
    sharding = concrete(sharding)
    leaf = x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x)
    check_fits(sharding, leaf.shape, "device_put args")
    if _ferrax.is_tracer(leaf) or not _ferrax.is_eager():
        return _constrained(leaf, opened(sharding) if typed else sharding)
    there = place(sharding)
    if _processes.state.count > 1 and not leaf.committed and not sharding.is_fully_addressable:
        from ferrax.experimental.multihost_utils import require_same

        if {d.process_index for d in sharding.device_set} == set(range(_processes.state.count)):
            require_same(leaf, type(x))
    return _ferrax.device_put_leaf(leaf, there, alias)


class _Asked(threading.local):
    """Who wants to know of shardings without devices that values are asked to have: `ferrax.plan`, while it traces."""

    note: Callable[[Any, NamedSharding], Any] | None = None


asked = _Asked()


def put_in_memory(x: Any, kind: str) -> Any:
    """A leaf of `device_put` that stays on its devices, in memory of a kind.

    Args:
      x: array, number or traced value.
      kind: kind of the memory.

    Returns:
      An array in that memory; of a traced value, one that the program puts there.
    """
    from ferrax.dtypes import issubdtype

    leaf = x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x)
    move = _mover(kind) if issubdtype(leaf.dtype, np.inexact) else functools.partial(_moved, kind)
    return move(leaf)


@functools.cache
def _mover(kind: str) -> Callable[[Any], Any]:
    """Puts values into memory of a kind; their derivatives stay where they are made."""
    from ferrax.custom_derivatives import custom_jvp

    mover = custom_jvp(functools.partial(_moved, kind))
    mover.defjvps(lambda tangent, result, x: tangent)
    return mover


def _moved(kind: str, x: Any) -> Any:
    if not _ferrax.is_eager():
        return _ferrax.sharding_constraint(x, place(InMemory(kind)))
    # rows of what is mapped outside of programs stay with the others
    return x if _ferrax.is_tracer(x) else put(x, x.sharding.with_memory_kind(kind))


def _constrained(x: Any, sharding: Any) -> Any:
    """A traced value with a sharding, where that means devices; others as they are."""
    if isinstance(sharding, SingleDeviceSharding):
        return x
    if isinstance(sharding, NamedSharding):
        if isinstance(sharding.mesh, AbstractMesh):
            if asked.note is not None:
                return asked.note(x, sharding)
            if not sharding.mesh.are_all_axes_auto and _ferrax.is_eager():
                return x
        manual = _manual(sharding.mesh)
        if manual:
            # Inside `shard_map` a value is one device's part along its axes.
            sharding = sharding.update(spec=sharding.spec.without(manual))
            if sharding.is_fully_replicated:
                return x
    return _ferrax.sharding_constraint(x, place(sharding))


def _manual(mesh: Any) -> list[str]:
    """The axes of a mesh over which a function is being mapped."""
    from ferrax.sharding._manual import names_in_force

    return [n for n in mesh.axis_names if n in names_in_force()]


def constrain(x: Any, sharding: Any, asked: bool = False) -> Any:
    """A leaf of `with_sharding_constraint`.

    Args:
      x: array, number or traced value.
      sharding: a sharding, or a `PartitionSpec` of the mesh in use.
      asked: whether a user asks, who may constrain along automatic axes alone.

    Returns:
      The value with the sharding.

    Raises:
      RuntimeError: a bare spec without a mesh in use.
      AssertionError: the axes of the mesh in use are explicit, and the value has another sharding.
      ValueError: the sharding divides by axes of another mesh, or of one with axes of several types, that are
        explicit.
    """
    if isinstance(sharding, PartitionSpec) and context_mesh() is None:
        raise RuntimeError(
            "with_sharding_constraint requires a non-empty mesh in context if you are passing `PartitionSpec`s to "
            "shardings. You can define a context mesh via `jax.set_mesh(mesh)`. Alternatively, provide `Sharding`s to "
            "shardings and then the mesh context manager is not required."
        )
    bare = isinstance(sharding, PartitionSpec)
    if not bare and isinstance(sharding, NamedSharding):
        _require_not_manual(sharding)
    sharding = with_mesh(sharding, "with_sharding_constraint")
    if is_abstract(sharding) and not bare and not isinstance(x, _ferrax.Array) and _ferrax.is_eager():
        shown = f"{type(x)} with shape {_ferrax.typeof(x).str_short()}"
        raise ValueError(
            "Target sharding contains a `jax.sharding.AbstractMesh` which requires the input passed should be a "
            f"`jax.Array`. Got {shown}"
        )
    leaf = x if isinstance(x, _ferrax.Array) else _ferrax.asarray(x)
    traced = _ferrax.is_tracer(leaf) or not _ferrax.is_eager()
    check_fits(sharding, leaf.shape, "with_sharding_constraint arguments", not _ferrax.is_eager())
    explicit = isinstance(sharding, NamedSharding) and sharding.mesh.are_all_axes_explicit
    if asked and isinstance(sharding, NamedSharding):
        in_use = context_mesh(physical=False)
        if in_use is not None and in_use.are_all_axes_explicit:
            _assert_explicit(leaf, sharding, traced)
            return leaf
        _require_auto(sharding)
        sharding = _with_explicit(sharding, _ferrax.typeof(leaf).sharding if traced else leaf.sharding)
    if explicit and (not traced or _ferrax.typeof(leaf)._spread):
        _assert_explicit(leaf, sharding, traced)
        if sharding.memory_kind in (None, "device"):
            return leaf
    if bare and not traced and not isinstance(leaf.sharding, NamedSharding) and concrete_mesh() is not None:
        raise TypeError(
            "The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` in "
            f"it. Got sharding type {type(leaf.sharding)} for shape {leaf.dtype.name}{list(leaf.shape)}"
        )
    sharding = concrete(sharding)
    if traced:
        return _constrained(leaf, sharding)
    if is_abstract(sharding):
        mesh = getattr(leaf.sharding, "mesh", None)
        if not isinstance(mesh, Mesh):
            raise TypeError(
                "The sharding on the input must be a `NamedSharding` since the target sharding has an `AbstractMesh` "
                f"in it. Got sharding type {type(leaf.sharding)} for shape {leaf.dtype.name}{list(leaf.shape)}"
            )
        if mesh.shape_tuple != sharding.mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {mesh.shape_tuple} does not match the mesh shape of the target sharding "
                f"{sharding.mesh.shape_tuple} for shape {leaf.dtype.name}{list(leaf.shape)}"
            )
        sharding = NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)
    if isinstance(sharding, NamedSharding):
        if leaf.committed and isinstance(leaf.sharding, NamedSharding):
            _require_order(leaf, sharding)
        sharding = _closed(sharding, leaf.sharding)
    return _ferrax.device_put_leaf(leaf, place(sharding), True)


def _closed(sharding: NamedSharding, have: Any) -> NamedSharding:
    """A sharding that leaves no axis open: an array keeps what divides it along those that are."""
    if not any(entry is UNCONSTRAINED for entry in sharding.spec):
        return sharding
    kept = have.spec if isinstance(have, NamedSharding) and have.mesh == sharding.mesh else PartitionSpec()
    said = {n for entry in sharding.spec if entry is not UNCONSTRAINED for n in entry_names(entry)}
    entries = [
        e if e is not UNCONSTRAINED else kept[i] if i < len(kept) and not said & set(entry_names(kept[i])) else None
        for i, e in enumerate(sharding.spec)
    ]
    return sharding.update(spec=sharding.spec.update(partitions=tuple(entries)))


def _require_not_manual(sharding: NamedSharding) -> None:
    """Raises where a sharding divides by an axis over which the function is mapped."""
    named = {n for entry in sharding.spec for n in entry_names(entry)}
    manual = tuple(_manual(sharding.mesh))
    if named & set(manual):
        raise ValueError(
            f"pspec {sharding.spec} contains a manual axes {manual} of mesh which is not allowed. If you are using a "
            "with_sharding_constraint under a shard_map, only use the mesh axis in PartitionSpec which are not manual."
        )


def _require_order(x: Any, sharding: NamedSharding) -> None:
    """Raises where an array is on other devices than a sharding's, or on them in another order."""
    have, want = ([d.id for d in s._device_assignment] for s in (x.sharding, sharding))
    if have != want:
        platform = x.sharding._device_assignment[0].platform.upper()
        raise ValueError(
            "Received incompatible devices for jitted computation. Got argument x of _identity_fn with shape "
            f"{_ferrax.typeof(x).str_short()} and with device ids {have} on platform {platform} and explicit output "
            f"sharding with device ids {want} on platform {platform}"
        )


def _assert_explicit(x: Any, sharding: NamedSharding, traced: bool) -> None:
    """Raises where a value over explicit axes has another sharding: users must name the axes that types name."""
    have = _ferrax.typeof(x).sharding if traced else x.sharding
    spec = have.spec if isinstance(have, NamedSharding) else PartitionSpec(*(None,) * x.ndim)
    seen = NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
    wanted = whole_spec(sharding, x).spec
    pairs = zip(whole_spec(seen, x).spec, wanted, strict=True)
    if not all(w is UNCONSTRAINED or entry_names(h) == entry_names(w) for h, w in pairs):
        raise AssertionError(
            "`with_sharding_constraint` acts as an assert when all axes of mesh are of type `Explicit`. The array "
            f"sharding: {spec} did not match the sharding provided: {wanted}. Please use "
            "`jax.sharding.reshard` to shard your input to the sharding you want."
        )


def _with_explicit(sharding: NamedSharding, have: Any) -> NamedSharding:
    """A sharding along automatic axes, of a value that explicit axes of the mesh divide, too."""
    kinds = sharding.mesh._name_to_type
    if AxisType.Explicit not in kinds.values() or not isinstance(have, NamedSharding):
        return sharding
    if have.mesh.shape_tuple != sharding.mesh.shape_tuple:
        return sharding
    asked = [*sharding.spec, *(None,) * (len(have.spec) - len(sharding.spec))]
    entries: list[Any] = []
    for at, entry in enumerate(asked):
        kept = entry_names(have.spec[at]) if at < len(have.spec) else ()
        names = [n for n in kept if kinds[n] is AxisType.Explicit]
        names += [] if entry is UNCONSTRAINED else entry_names(entry)
        entries.append(entry if not names else names[0] if len(names) == 1 else tuple(names))
    while entries and entries[-1] is None:
        entries.pop()
    return sharding.update(spec=sharding.spec.update(partitions=tuple(entries)))


def _require_auto(sharding: NamedSharding) -> None:
    kinds = sharding.mesh._name_to_type
    entries = [entry for entry in sharding.spec if entry is not UNCONSTRAINED]
    if any(kinds[name] is not AxisType.Auto for entry in entries for name in entry_names(entry)):
        raise ValueError(
            "The spec of NamedSharding passed to with_sharding_constraint can only refer to Auto axes of the mesh. Got "
            f"spec={sharding.spec} and mesh={sharding.mesh.abstract_mesh}. You probably meant to use `reshard` API?"
        )


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Arrays with other shardings over explicit axes of a mesh.

    Args:
      xs: pytree of arrays.
      out_shardings: a `PartitionSpec` of the mesh in use, a `NamedSharding`, or a pytree prefix of such.

    Returns:
      The pytree with the new shardings.

    Raises:
      ValueError: no mesh is in use, or a spec names an axis that is not explicit.

    >>> import ferrax as jax, ferrax.numpy as jnp
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(jax.reshard(jnp.arange(4), jax.P("x")).sharding.spec)
    P('x',)
    """

    def one(sharding: Any, part: Any) -> Any:
        return tree_util.tree_map(lambda leaf: _resharded(leaf, sharding), part)

    is_leaf = lambda s: s is None or isinstance(s, (PartitionSpec, Sharding))
    return tree_util.tree_map(one, out_shardings, xs, is_leaf=is_leaf)


def _resharded(x: Any, sharding: Any) -> Any:
    if sharding is None:
        return x
    require_sharding(sharding, "reshard")
    sharding = with_mesh(sharding, "reshard")
    check_explicit(sharding, "reshard")
    return put(x, whole_spec(sharding, x), typed=True)


def whole_spec(sharding: Any, x: Any) -> Any:
    """A sharding over explicit axes says something of every axis of an array."""
    missing = np.ndim(x) - len(sharding.spec)
    if missing == 0 or any(entry is not None for entry in sharding.spec[np.ndim(x) :]):
        return sharding
    if missing < 0:
        return sharding.update(spec=sharding.spec.update(partitions=sharding.spec[: np.ndim(x)]))
    return sharding.update(spec=sharding.spec.update(partitions=(*sharding.spec, *(None,) * missing)))


def check_context(sharding: Any, function: str) -> None:
    """Raises `ValueError` when a named sharding is over another mesh than the one in use.

    Args:
      sharding: the sharding.
      function: who asks, for the error.
    """
    in_use = get_abstract_mesh()
    if not isinstance(sharding, NamedSharding) or in_use.empty:
        return
    mesh, kinds = sharding.mesh.abstract_mesh, in_use._name_to_type
    # what a value's type says may be from outside of a `shard_map`
    alike = (kinds.get(n) in (kind, AxisType.Manual) for n, kind in mesh._name_to_type.items())
    if mesh.shape_tuple == in_use.shape_tuple and all(alike):
        return
    raise ValueError(
        f"Context mesh {in_use} should match the mesh of sharding {sharding.mesh.abstract_mesh} passed to {function}"
    )


def check_explicit(sharding: Any, function: str) -> None:
    """Raises `ValueError` when a named sharding divides by an axis that is not explicit.

    Args:
      sharding: the sharding.
      function: who asks, for the error.
    """
    if not isinstance(sharding, NamedSharding):
        return
    kinds = sharding.mesh._name_to_type
    for name in (n for entry in sharding.spec for n in entry_names(entry)):
        if kinds[name] is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {function} cannot contain axis names that are of type Auto or Manual. Got "
                f"PartitionSpec: {sharding.spec} with axis name: {name} of type: {kinds[name]}."
            )
