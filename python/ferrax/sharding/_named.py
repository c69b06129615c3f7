"""Shardings: where the parts of an array are. `Sharding` is what all have, `NamedSharding` a mesh with a spec.

Read next: `_mesh.py` and `_spec.py` for the two parts of a `NamedSharding`.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from ferrax import _processes
from ferrax._ferrax import SingleDeviceSharding
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh
from ferrax.sharding._spec import UNCONSTRAINED, PartitionSpec, entry_names

__all__ = ["DuplicateSpecError", "IndivisibleError", "NamedSharding", "Sharding", "make_single_device_sharding"]

Shape = tuple[int, ...]
Index = tuple[slice, ...]
_KINDS = ("device", "pinned_host", "unpinned_host")


class IndivisibleError(ValueError):
    """An axis is to be divided into parts of one size, and cannot be.

    >>> from ferrax.sharding import _named
    >>> issubclass(_named.IndivisibleError, ValueError)
    True
    """


class DuplicateSpecError(Exception):
    """A spec names an axis of the mesh twice.

    >>> from ferrax.sharding import _named
    >>> issubclass(_named.DuplicateSpecError, Exception)
    True
    """


class Sharding(abc.ABC):
    """Where the parts of an array are: the base class of all shardings.

    >>> import ferrax as jax
    >>> isinstance(jax.numpy.ones(2).sharding, jax.sharding.Sharding)
    True
    """

    _device_assignment: tuple[Any, ...]

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        return self._device_assignment

    @property
    @abc.abstractmethod
    def device_set(self) -> set[Any]:
        """The devices that hold parts."""

    @abc.abstractmethod
    def _blocks(self, ndim: int) -> tuple[Shape, np.ndarray[Any, Any]]:
        """Into how many blocks each axis is cut, and for every device the numbers of its block."""

    @property
    @abc.abstractmethod
    def is_fully_replicated(self) -> bool:
        """Whether each device holds all of the array."""

    @property
    @abc.abstractmethod
    def memory_kind(self) -> str | None:
        """The kind of memory."""

    @abc.abstractmethod
    def with_memory_kind(self, kind: str) -> Sharding:
        """The same sharding in another kind of memory."""

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self.device_set)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every device."""
        return len(self.addressable_devices) == len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process that hold parts."""
        return {d for d in self.device_set if d.process_index == _processes.state.index}

    @property
    def has_addressable_devices(self) -> bool:
        """Whether this process can reach a device."""
        return bool(self.addressable_devices)

    def shard_shape(self, global_shape: Shape) -> Shape:
        """Shape of the part on a device.

        Args:
          global_shape: shape of the array.

        Returns:
          The shape.

        Raises:
          IndivisibleError: parts would differ in size.
        """
        shape = tuple(global_shape)
        counts, _ = self._blocks(len(shape))
        return tuple(size // count for size, count in zip(shape, self._checked(shape, counts), strict=True))

    def _checked(self, shape: Shape, counts: Shape) -> Shape:
        for axis, (size, count) in enumerate(zip(shape, counts, strict=True)):
            if size % count:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {axis} is partitioned {count} times, but the dimension "
                    f"size is {size} (full shape: {shape}, per-dimension tiling factors: {list(counts)} should evenly "
                    "divide the shape)"
                )
        return counts

    def devices_indices_map(self, global_shape: Shape) -> Mapping[Any, Index]:
        """Which part of an array each device holds.

        Args:
          global_shape: shape of the array.

        Returns:
          For every device a tuple with a slice for each axis.

        Raises:
          IndivisibleError: parts would differ in size.
        """
        shape = tuple(global_shape)
        counts, blocks = self._blocks(len(shape))
        self._checked(shape, counts)

        def part(size: int, count: int, at: int) -> slice:
            step = size // count
            return slice(None) if count == 1 else slice(at * step, (at + 1) * step)

        return {
            device: tuple(map(part, shape, counts, at))
            for device, at in zip(self._device_assignment, blocks.tolist(), strict=True)
        }

    def addressable_devices_indices_map(self, global_shape: Shape) -> Mapping[Any, Index | None]:
        """Which part of an array each device of this process holds; see `devices_indices_map`."""
        own = self.addressable_devices
        return {device: index for device, index in self.devices_indices_map(global_shape).items() if device in own}

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether another sharding lays arrays of a rank out in the same way.

        Args:
          other: the sharding.
          ndim: number of axes of the arrays.

        Returns:
          Whether every device holds the same part.
        """
        if self is other or self == other:
            return True
        if isinstance(other, SingleDeviceSharding):
            same = len(self._device_assignment) == 1 and set(self._device_assignment) == other.device_set
            return same and self.memory_kind == other.memory_kind
        if not isinstance(other, Sharding):
            return False
        if any(isinstance(s, NamedSharding) and any(entry_names(e) for e in s.spec[ndim:]) for s in (self, other)):
            return False
        if self._device_assignment != other._device_assignment or self.memory_kind != other.memory_kind:
            return False
        (counts, blocks), (others, theirs) = (_within(s, ndim)._blocks(ndim) for s in (self, other))
        return counts == others and bool(np.array_equal(blocks, theirs))


Sharding.register(SingleDeviceSharding)
# the class is the extension module's
SingleDeviceSharding.__doc__ = """All of an array on one device.

Args:
  device: the device.
  memory_kind: kind of memory, `None` for the device's own.

>>> import ferrax as jax
>>> jax.sharding.SingleDeviceSharding(jax.devices()[0])
SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
"""


def check_memory_kind(device_kind: str | None, memory_kind: str | None) -> None:
    """Raises `ValueError` unless devices of a kind, or any, have memory of a kind; `None` is their own."""
    if memory_kind is not None and memory_kind not in _KINDS:
        if device_kind is None:
            raise ValueError(f"Got invalid memory kind: {memory_kind}. Valid memory kinds are: {', '.join(_KINDS)}")
        raise ValueError(
            f"Could not find memory addressable by device {device_kind}. Device {device_kind} can address the "
            f"following memory kinds: {', '.join(_KINDS)}. Got memory kind: {memory_kind}"
        )


def _check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Raises unless every axis that the spec names is in the mesh, and there once."""
    seen = set()
    if any(entry is UNCONSTRAINED for entry in spec) and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh axis_types: "
            f"{mesh.axis_types}"
        )
    for name in (n for entry in spec for n in entry_names(entry)):
        if name not in mesh.axis_names:
            raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {mesh.axis_names}.")
        if name in seen:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one positional "
                f"dimension, but {spec} has duplicate entries for `{name}`"
            )
        seen.add(name)
    for what, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in axes:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"{what} axes {name} is not found in mesh.axis_names={mesh.axis_names}. Got pspec={spec}"
                )
        if any(mesh._name_to_type[n] is AxisType.Auto for n in axes):
            raise ValueError(
                f"{what} axes can only refer to mesh axes that is of type `Explicit`. Got {what.lower()} axes: "
                f"{axes} and mesh: {mesh}"
            )


def _within(sharding: Sharding, ndim: int) -> Sharding:
    """The sharding without what its spec says of axes that arrays of a rank do not have."""
    if not isinstance(sharding, NamedSharding) or len(sharding.spec) <= ndim:
        return sharding
    return sharding.update(spec=sharding.spec.update(partitions=sharding.spec[:ndim]))


def fitting(sharding: Any, ndim: int) -> Any:
    """A sharding for new arrays of a rank: entries of its spec for further axes may be there if they divide nothing."""
    if isinstance(sharding, NamedSharding) and not any(map(entry_names, sharding.spec[ndim:])):
        return _within(sharding, ndim)
    return sharding


class NamedSharding(Sharding):
    """A mesh, and which of its axes divide each axis of an array.

    Args:
      mesh: a `Mesh`, or an `AbstractMesh`, which has no devices.
      spec: a `PartitionSpec`.
      memory_kind: kind of memory, `None` for the devices' own.
      _logical_device_ids: accepted for compatibility.

    Raises:
      TypeError: `spec` is no `PartitionSpec`.
      ValueError: the spec names an axis that the mesh does not have, or there is no such memory.
      DuplicateSpecError: the spec names an axis twice.

    >>> import ferrax as jax
    >>> from ferrax.sharding import NamedSharding, PartitionSpec as P
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> NamedSharding(mesh, P("x", None)).shard_shape((8, 4))
    (8, 4)
    """

    def __init__(self, mesh: Any, spec: Any, memory_kind: str | None = None, _logical_device_ids: Any = None):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding needs a PartitionSpec, got {spec!r} of type {type(spec).__name__}")
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            kind = type(mesh).__name__
            raise TypeError(f"NamedSharding needs a Mesh or an AbstractMesh, got {mesh!r} of type {kind}")
        _check_spec(mesh, spec)
        concrete = isinstance(mesh, Mesh) and not mesh.empty
        check_memory_kind(mesh.devices.flat[0].device_kind if concrete else None, memory_kind)
        self._mesh = mesh
        self._spec = spec
        self._memory_kind = "device" if memory_kind is None and concrete else memory_kind
        self._logical_device_ids = _logical_device_ids
        self._hash = hash((mesh, spec, self._memory_kind))

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """What HLO says of the sharding, of arrays of a rank."""
        from ferrax.sharding._hlo import of_named

        entries = [() if e is UNCONSTRAINED else entry_names(e) for e in self._spec]
        return of_named(dict(self._mesh.shape), (entries + [()] * (num_dimensions - len(entries)))[:num_dimensions])

    mesh = property(lambda self: self._mesh, doc="The mesh whose devices have the array.")
    spec = property(lambda self: self._spec, doc="The `PartitionSpec`.")
    memory_kind = property(lambda self: self._memory_kind, doc="The kind of memory.")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, NamedSharding)
            and self._hash == other._hash
            and self._mesh == other._mesh
            and self._spec == other._spec
            and self._memory_kind == other._memory_kind
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        memory = "" if self._memory_kind is None else f", memory_kind={self._memory_kind}"
        return f"NamedSharding(mesh={self._mesh!s}, spec={self._spec}{memory})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._mesh, self._spec, self._memory_kind)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:  # type: ignore[override]
        if isinstance(self._mesh, AbstractMesh):
            raise ValueError("_device_assignment is not implemented for `jax.sharding.AbstractMesh`.")
        return tuple(self._mesh.devices.flat)

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold parts."""
        if isinstance(self._mesh, AbstractMesh):
            raise ValueError("device_set is not implemented for `jax.sharding.AbstractMesh`.")
        return set(self._mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return self._mesh.size

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach every device."""
        if isinstance(self._mesh, AbstractMesh):
            raise ValueError("is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`.")
        return len(self.addressable_devices) == len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process that hold parts."""
        if isinstance(self._mesh, AbstractMesh):
            raise ValueError("addressable_devices is not implemented for `jax.sharding.AbstractMesh`.")
        return {d for d in self.device_set if d.process_index == _processes.state.index}

    @functools.cached_property
    def replicated_axes(self) -> frozenset[Any]:
        """Axes of the mesh along which devices hold the same."""
        used = {n for entry in self._spec for n in entry_names(entry)} | self._spec.unreduced
        return frozenset(self._mesh.axis_names) - used

    @functools.cached_property
    def is_fully_replicated(self) -> bool:  # type: ignore[override]
        """Whether each device holds all of the array."""
        return self._spec.unreduced == frozenset() and math.prod(self._counts(len(self._spec))) == 1

    def _counts(self, ndim: int) -> Shape:
        shape = self._mesh.shape
        counts = [math.prod(shape[n] for n in entry_names(entry)) for entry in self._spec]
        return (*counts[:ndim], *(1,) * (ndim - len(counts)))

    def _blocks(self, ndim: int) -> tuple[Shape, np.ndarray[Any, Any]]:
        if any(map(entry_names, self._spec[ndim:])):
            self.check_compatible_aval((1,) * ndim)
        sizes = self._mesh.shape
        devices = np.arange(self._mesh.size)
        place = dict(zip(sizes, np.unravel_index(devices, self._mesh.axis_sizes), strict=True)) if sizes else {}
        blocks = np.zeros((self._mesh.size, ndim), dtype=int)
        for axis, entry in enumerate(self._spec[:ndim]):
            for name in entry_names(entry):
                blocks[:, axis] = blocks[:, axis] * sizes[name] + place[name]
        return self._counts(ndim), blocks

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raises `ValueError` when arrays of a shape have too few axes for the spec.

        Args:
          aval_shape: the shape.
        """
        if len(aval_shape) < len(self._spec):
            extra = " For scalars the PartitionSpec should be P()" if not aval_shape else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self._spec)}, but was applied to a "
                f"value of rank {len(aval_shape)}.{extra}"
            )

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same sharding in another kind of memory.

        Args:
          kind: `"device"`, `"pinned_host"` or `"unpinned_host"`.

        Returns:
          The sharding.
        """
        return NamedSharding(self._mesh, self._spec, memory_kind=kind)

    def update(self, **kwargs: Any) -> NamedSharding:
        """A copy with some parts changed.

        Args:
          **kwargs: `mesh`, `spec` (a `PartitionSpec` or a tuple of its entries), `memory_kind`.

        Returns:
          The sharding.

        >>> import ferrax as jax
        >>> s = jax.sharding.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
        >>> s.update(spec=jax.P(None, "x")).spec
        P(None, 'x')
        """
        spec = kwargs.pop("spec", self._spec)
        fields = {"mesh": self._mesh, "memory_kind": self._memory_kind, **kwargs}
        if not isinstance(spec, PartitionSpec):
            spec = self._spec.update(partitions=spec)
        return NamedSharding(spec=spec, **fields)

    def unconstrained(self) -> tuple[int, ...]:
        """Axes that the spec leaves to the compiler."""
        return tuple(i for i, entry in enumerate(self._spec) if entry is UNCONSTRAINED)


class OpenSharding(NamedSharding):
    """What divides each axis of an array at least: axes of the mesh that `free` names may divide it further.

    Args:
      mesh, spec: as in `NamedSharding`.
      free: names of the axes of the mesh.
      where: what says so, for errors; empty where `vmap` is not to raise one.
    """

    def __init__(self, mesh: Any, spec: Any, free: frozenset[Any], where: str):
        super().__init__(mesh, spec)
        self.free, self.where = free, where
        self._hash = hash((self._hash, free, where))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpenSharding) or (self.free, self.where) != (other.free, other.where):
            return False
        return super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash

    def update(self, **kwargs: Any) -> NamedSharding:
        """A copy with another spec or mesh."""
        found = NamedSharding(self._mesh, self._spec).update(**kwargs)
        return OpenSharding(found.mesh, found.spec, self.free, self.where)


class InMemory:
    """Wherever a value of a program is, but in memory of one kind.

    Args:
      memory_kind: the kind.
    """

    def __init__(self, memory_kind: str):
        self.memory_kind = memory_kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemory) and self.memory_kind == other.memory_kind

    def __hash__(self) -> int:
        return hash((InMemory, self.memory_kind))

    def __repr__(self) -> str:
        return f"memory of kind {self.memory_kind}"


def is_abstract(sharding: Any) -> TypeGuard[NamedSharding]:
    """Whether a sharding is over an abstract mesh, which has no devices."""
    return isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh)


def of_type(aval: Any) -> NamedSharding:
    """The sharding in a type: over explicit axes of the mesh in use, and undivided where the type says nothing.

    Args:
      aval: a `ShapedArray`.
    """
    from ferrax.sharding._context import get_abstract_mesh
    from ferrax.sharding._typed import sharding_of

    if aval._spread:
        return sharding_of(aval._spread)

    return NamedSharding(get_abstract_mesh(), PartitionSpec(*(None,) * len(aval.shape)))


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """All of an array on one device.

    Args:
      device: the device.
      memory_kind: kind of memory, `None` for the device's own.

    Returns:
      A `SingleDeviceSharding`.

    >>> import ferrax as jax
    >>> jax.sharding.make_single_device_sharding(jax.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def on_device(device: Any, kind: str) -> SingleDeviceSharding:
    """What a pickled sharding on one device is made by."""
    return SingleDeviceSharding(device, memory_kind=kind)


def assignment(sharding: Any) -> Sequence[Any]:
    """The devices of a sharding, in order."""
    if isinstance(sharding, SingleDeviceSharding):
        return tuple(sharding.device_set)
    return tuple(sharding._device_assignment)
