"""Meshes: devices in an array whose axes have names, and their shapes without devices.

Read next: `_context.py` for the mesh that is in use, `_spec.py` for what divides arrays over a mesh.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import math
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrax import _processes

__all__ = ["AbstractDevice", "AbstractMesh", "AxisType", "Mesh", "empty_abstract_mesh", "empty_mesh"]


class AxisType(enum.Enum):
    """How arrays are divided over a mesh axis.

    `Auto`: the compiler decides. `Explicit`: types of arrays say so. `Manual`: the program is written for one device
    of the axis, as under `shard_map`.

    >>> from ferrax.sharding import AxisType
    >>> AxisType.Auto
    Auto
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class AbstractDevice:
    """What is known of a mesh's devices without having them.

    Args:
      device_kind: kind of the devices, such as `"cpu"`.
      num_cores: cores of a device, or `None`.
      platform: what computes, such as `"cpu"`.

    >>> from ferrax.sharding import AbstractDevice
    >>> AbstractDevice("cpu", None, "cpu")
    AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self.fields()})"

    def fields(self) -> str:
        """The fields as text."""
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


def _types(axis_types: Any, names: tuple[Hashable, ...], what: str) -> tuple[AxisType, ...]:
    """One type for each axis; `Auto` when none is given."""
    if axis_types is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(axis_types) if isinstance(axis_types, (tuple, list)) else (axis_types,)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(
            f"axis_types passed to {what} must be of type `jax.sharding.AxisType`. Got {types} of type "
            f"{tuple(map(type, types))}"
        )
    if len(types) != len(names):
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got axis_names={names} and axis_types={types}"
        )
    return types


class _Axes:
    """What both kinds of meshes tell of their axes."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        raise NotImplementedError

    @functools.cached_property
    def shape(self) -> collections.OrderedDict[Any, int]:
        """Size of each axis by its name, in order."""
        return collections.OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Pairs of names and sizes."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @functools.cached_property
    def _name_to_type(self) -> dict[Any, AxisType]:
        return dict(zip(self.axis_names, self.axis_types, strict=True))

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    def _all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @functools.cached_property
    def auto_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Auto`."""
        return self._of_type(AxisType.Auto)

    @functools.cached_property
    def explicit_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Explicit`."""
        return self._of_type(AxisType.Explicit)

    @functools.cached_property
    def manual_axes(self) -> tuple[Any, ...]:
        """Names of the axes of type `Manual`."""
        return self._of_type(AxisType.Manual)

    @functools.cached_property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes, all of type `Auto`."""
        return self._all(AxisType.Auto)

    @functools.cached_property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes, all of type `Explicit`."""
        return self._all(AxisType.Explicit)

    @functools.cached_property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes, all of type `Manual`."""
        return self._all(AxisType.Manual)

    def _axes_text(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)
        return f"{sizes or '()'}, axis_types={self.axis_types}"


_MESHES: dict[Any, Mesh] = {}
_MESHES_LOCK = threading.Lock()


class Mesh(_Axes, contextlib.ContextDecorator):
    """Devices in an n-dimensional array whose axes have names.

    Equal meshes are one object. `with mesh:`, or the mesh as a decorator, makes it the mesh of `pjit`,
    `with_sharding_constraint` and others that take a `PartitionSpec`; `jax.set_mesh` is the newer way.

    Args:
      devices: array of devices.
      axis_names: a name for each axis of the array, or one string for its only axis.
      axis_types: an `AxisType` for each axis; all `Auto` by default.

    Raises:
      ValueError: there are not as many names or types as axes, or a name is `None`.
      TypeError: a type is no `AxisType`.

    >>> import ferrax as jax, numpy as np
    >>> jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    devices: np.ndarray[Any, Any]

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        array = devices if isinstance(devices, np.ndarray) else np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if any(n is None for n in names):
            raise ValueError(f"Mesh axis names cannot be None. Got: {names}")
        if array.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {array.ndim} and len(axis_names) == {len(names)}."
            )
        types = _types(axis_types, names, "Mesh")
        flat = tuple(array.flat)
        key = (cls, names, types, array.shape, flat)
        with _MESHES_LOCK:
            found = _MESHES.get(key)
            if found is None:
                found = super().__new__(cls)
                copy = np.empty(array.shape, dtype=object)
                copy.reshape(-1)[:] = flat
                copy.flags.writeable = False
                found.devices = copy
                found.axis_names = names
                found.axis_types = types
                found._hash = hash((names, types, array.shape, flat))  # type: ignore[attr-defined]
                _MESHES[key] = found
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (np.array(self.devices), self.axis_names, self.axis_types)

    def __copy__(self) -> Mesh:
        return self

    def __deepcopy__(self, memo: Any) -> Mesh:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return int(self._hash)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name) and getattr(self, name) is not value:
            raise RuntimeError(f"Cannot reassign attributes ({name}) of immutable mesh objects")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r}, axis_types={self.axis_types})"

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._axes_text()})"

    def __enter__(self) -> Mesh:
        from ferrax.sharding import _context

        _context.push_physical(self)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        from ferrax.sharding import _context

        _context.pop_physical()

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.devices.shape

    @property
    def size(self) -> int:
        """Number of devices."""
        return 0 if self.empty else self.devices.size

    @property
    def empty(self) -> bool:
        """Whether there are no devices."""
        return self.devices.size == 0 or (self.devices.ndim == 0 and self.devices.item() is None)

    @property
    def is_scalar(self) -> bool:
        """Whether it is one device without axes."""
        return self.devices.ndim == 0

    @property
    def _flat_devices_tuple(self) -> tuple[Any, ...]:
        return tuple(self.devices.flat)

    @functools.cached_property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The devices' numbers, in the mesh's shape."""
        return np.array([d.id for d in self.devices.flat], dtype=int).reshape(self.devices.shape)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process, flat."""
        return [d for d in self.devices.flat if d.process_index == _processes.state.index]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that this process has."""
        if not self.is_multi_process:
            return self
        own = np.array([d.process_index == _processes.state.index for d in self.devices.flat]).reshape(self.axis_sizes)
        places = [np.unique(axis) for axis in np.nonzero(own)]
        part = self.devices[np.ix_(*places)]
        if part.size != own.sum():
            raise ValueError(
                "When passing host local inputs to pjit, devices connected to a single host must form a contiguous "
                "subcube of the global device mesh"
            )
        return Mesh(part, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """Whether devices are of several processes."""
        return len({d.process_index for d in self.devices.flat}) > 1

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """Names, sizes and types without the devices."""
        device = None
        if not self.empty:
            first = self.devices.flat[0]
            device = AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """A mesh with some parts changed; those that are `None` stay.

        Args:
          devices: array of devices.
          axis_names: names of the axes.
          axis_types: types of the axes.

        Returns:
          The mesh.

        >>> import ferrax as jax, numpy as np
        >>> mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), "x")
        >>> mesh.update(axis_names=("y",)).axis_names
        ('y',)
        """
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )


class AbstractMesh(_Axes):
    """Names, sizes and types of a mesh's axes, without devices.

    Args:
      axis_sizes: sizes of the axes.
      axis_names: their names.
      axis_types: an `AxisType` for each axis; all `Auto` by default.
      abstract_device: what is known of the devices.

    Raises:
      ValueError: there are not as many names or types as sizes.

    >>> from ferrax.sharding import AbstractMesh
    >>> AbstractMesh((2, 4), ("x", "y"))
    AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))
    """

    def __init__(self, axis_sizes: Any, axis_names: Any, axis_types: Any = None, *, abstract_device: Any = None):
        self._sizes = tuple(axis_sizes)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(self._sizes) != len(self.axis_names):
            raise ValueError(
                f"AbstractMesh needs a name for each axis; got axis_sizes={self._sizes} and "
                f"axis_names={self.axis_names}"
            )
        self.axis_types = _types(axis_types, self.axis_names, "AbstractMesh")
        self.abstract_device = abstract_device
        self._hash = hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return (self._sizes, self.axis_names, self.axis_types, self.abstract_device)

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._sizes

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return not self.axis_names

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, AbstractMesh) and self._key() == other._key())

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        device = "" if self.abstract_device is None else f", {self.abstract_device.fields()}"
        return f"AbstractMesh({self._axes_text()}{device})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _abstract, self._key()

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None, **kwargs: Any) -> Any:
        """A mesh with some parts changed; those that are `None` stay.

        Args:
          axis_sizes: sizes of the axes.
          axis_names: names of the axes.
          axis_types: types of the axes.
          **kwargs: `abstract_device`, what is known of the devices.

        Returns:
          The mesh.

        >>> from ferrax.sharding import AbstractMesh
        >>> AbstractMesh((2,), "x").update(axis_sizes=(4,))
        AbstractMesh('x': 4, axis_types=(Auto,))
        """
        device = kwargs.pop("abstract_device", self.abstract_device)
        if kwargs:
            raise TypeError(f"AbstractMesh.update() got an unexpected keyword argument {next(iter(kwargs))!r}")
        return AbstractMesh(
            self._sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=device,
        )

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """A mesh with other types of some axes.

        Args:
          name_to_type: the new types by the axes' names.

        Returns:
          The mesh.

        >>> from ferrax.sharding import AbstractMesh, AxisType
        >>> AbstractMesh((2,), "x").update_axis_types({"x": AxisType.Manual})
        AbstractMesh('x': 2, axis_types=(Manual,))
        """
        types = tuple(name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True))
        return self.update(axis_types=types)

    def _lacks(self, name: str) -> Any:
        raise ValueError(f"AbstractMesh does not implement {name}")

    @property
    def devices(self) -> Any:
        """Not there: raises `ValueError`."""
        return self._lacks("devices")

    @property
    def device_ids(self) -> Any:
        """Not there: raises `ValueError`."""
        return self._lacks("device_ids")

    @property
    def is_multi_process(self) -> Any:
        """Not there: raises `ValueError`."""
        return self._lacks("is_multi_process")

    @property
    def local_devices(self) -> Any:
        """Not there: raises `ValueError`."""
        return self._lacks("local_devices")

    @property
    def local_mesh(self) -> Any:
        """Not there: raises `ValueError`."""
        return self._lacks("local_mesh")


def _abstract(sizes: Sequence[int], names: Any, types: Any, device: Any) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


#: What stands for no mesh.
empty_mesh = Mesh(np.empty((), dtype=object), ())
empty_abstract_mesh = AbstractMesh((), ())
