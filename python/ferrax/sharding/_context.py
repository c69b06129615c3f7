"""The mesh in use, of each thread: `set_mesh`, `use_abstract_mesh`, `get_mesh`, `get_abstract_mesh`, `with mesh:`.

Functions that take a `PartitionSpec` look here for the mesh. Read next: `_placement.py`, which asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Iterable
from typing import Any

from ferrax import _ferrax
from ferrax.config import set_context_mesh
from ferrax.sharding._mesh import AbstractMesh, AxisType, Mesh, empty_abstract_mesh, empty_mesh

__all__ = ["context_mesh", "get_abstract_mesh", "get_mesh", "set_mesh", "use_abstract_mesh"]


class _State(threading.local):
    """What a thread has in use."""

    def __init__(self) -> None:
        self.mesh: Mesh | None = None
        self.abstract: AbstractMesh | None = None
        self.physical: list[Mesh] = []


_state = _State()


def _changed() -> None:
    """Tells the caches of traces which mesh is in use."""
    key = (_state.mesh, _state.abstract, _state.physical[-1] if _state.physical else None)
    set_context_mesh(None if key == (None, None, None) else key)
    _ferrax.enter_explicit(_state.abstract is not None and AxisType.Explicit in _state.abstract.axis_types)


def push_physical(mesh: Mesh) -> None:
    """Enters `with mesh:`."""
    warnings.warn(
        "`with mesh:` context manager has been deprecated. Please use `with jax.set_mesh(mesh):` instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    _state.physical.append(mesh)
    _changed()


def pop_physical() -> None:
    """Leaves `with mesh:`."""
    _state.physical.pop()
    _changed()


def physical_mesh() -> Mesh:
    """The mesh of the innermost `with mesh:`; one without axes where there is none."""
    return _state.physical[-1] if _state.physical else empty_mesh


def _tracing() -> bool:
    return not _ferrax.is_eager()


def get_abstract_mesh() -> AbstractMesh:
    """The mesh in use, without its devices; one without axes when none is.

    >>> import ferrax as jax
    >>> jax.sharding.get_abstract_mesh()
    AbstractMesh((), axis_types=())
    """
    return _state.abstract or empty_abstract_mesh


def get_mesh() -> Mesh:
    """The mesh in use; one without devices when none is.

    Returns:
      The `Mesh` of `jax.set_mesh`.

    Raises:
      ValueError: under `jit`, whose programs know of devices only by an abstract mesh.

    >>> import ferrax as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(jax.sharding.get_mesh())
    Mesh('x': 1, axis_types=(Explicit,))
    """
    if _tracing():
        raise ValueError(
            "`get_mesh` can only be used outside of `jax.jit`. Maybe you want `jax.sharding.get_abstract_mesh()`?"
        )
    return _state.mesh or empty_mesh


def context_mesh(physical: bool = True) -> Mesh | AbstractMesh | None:
    """The mesh for a bare `PartitionSpec`: of `set_mesh`, of `use_abstract_mesh`, of `with mesh:`, or `None`.

    Args:
      physical: whether `with mesh:` counts; it is a context of older functions.
    """
    abstract = _state.abstract
    if abstract is not None and not abstract.empty:
        mesh = _state.mesh
        return mesh if mesh is not None and mesh.abstract_mesh == abstract else abstract
    return _state.physical[-1] if _state.physical and physical else None


def concrete_mesh() -> Mesh | None:
    """The mesh of `set_mesh`, in programs too; `None` without one."""
    return _state.mesh


def _place_new_arrays(mesh: Mesh | None) -> None:
    """Puts new arrays of this thread on the devices of a mesh, all of them on each; `None` puts an end to it."""
    _ferrax.enter_default_place(None if mesh is None else _replicated(mesh))


@functools.lru_cache(maxsize=256)
def _replicated(mesh: Mesh) -> Any:
    """The place of arrays that each device of a mesh has all of; `None` without devices of this process."""
    from ferrax._processes import RemoteDevice
    from ferrax.sharding._named import NamedSharding
    from ferrax.sharding._placement import place
    from ferrax.sharding._spec import PartitionSpec

    if mesh.empty or any(isinstance(d, RemoteDevice) for d in mesh.devices.flat):
        return None
    return place(NamedSharding(mesh, PartitionSpec()))


class set_mesh:
    """Makes a mesh the one in use: from now on, or as a context manager for the block.

    Functions that take a `PartitionSpec` mean its axes, and new arrays are on its devices.

    Args:
      mesh: the `Mesh`; `None` for none.

    Attributes:
      prev_mesh, prev_abstract_mesh: those that were in use before.

    Raises:
      ValueError: it is no `Mesh`, or a program is being traced.

    >>> import ferrax as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(jax.sharding.get_abstract_mesh().axis_names)
    ('x',)
    """

    __slots__ = ("prev_abstract_mesh", "prev_mesh")

    def __init__(self, mesh: Any):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if _tracing():
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        if mesh is not None and AxisType.Manual in mesh.axis_types:
            raise ValueError(
                f"mesh {mesh} contains manual axes which is not allowed when using `jax.set_mesh`. Please use "
                "`jax.shard_map` to enter into `Manual` mode instead."
            )
        self.prev_mesh = _state.mesh
        self.prev_abstract_mesh = _state.abstract
        self._set(mesh, None if mesh is None or mesh.empty else mesh.abstract_mesh)

    def _set(self, mesh: Any, abstract: Any) -> None:
        _state.mesh, _state.abstract = mesh, abstract
        _changed()
        _place_new_arrays(mesh)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self._set(self.prev_mesh, self.prev_abstract_mesh)


class use_abstract_mesh:
    """Makes an abstract mesh the one in use for a block.

    Args:
      mesh: the `AbstractMesh`.

    Attributes:
      prev: the one that was in use before the block.

    Raises:
      ValueError: it is no `AbstractMesh`, or has another number of devices than the mesh in use.

    >>> from ferrax.sharding import AbstractMesh, get_abstract_mesh, use_abstract_mesh
    >>> with use_abstract_mesh(AbstractMesh((2,), "x")):
    ...     print(get_abstract_mesh())
    AbstractMesh('x': 2, axis_types=(Auto,))
    """

    __slots__ = ("mesh", "prev")

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.AbstractMesh`. Got type: {type(mesh)}")
        self.mesh = mesh
        self.prev: AbstractMesh | None = None

    def __enter__(self) -> None:
        before = _state.abstract
        if before is not None and not before.empty and not self.mesh.empty and before.size != self.mesh.size:
            raise ValueError(
                f"use_abstract_mesh cannot change the size of the mesh. Got new mesh: {self.mesh} with "
                f"size={self.mesh.size} and prev mesh: {before} with size={before.size}"
            )
        self.prev = before
        _state.abstract = self.mesh
        _changed()

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _state.abstract = self.prev
        _changed()


def explicit_mesh(shardings: Iterable[Any]) -> contextlib.AbstractContextManager[None]:
    """Enters the mesh of the first sharding that has one with explicit axes, if no mesh is in use.

    Args:
      shardings: the shardings.

    Returns:
      A context manager.
    """
    meshes = [s.mesh for s in shardings if AxisType.Explicit in getattr(getattr(s, "mesh", None), "axis_types", ())]
    if not meshes or context_mesh(physical=False) is not None:
        return contextlib.nullcontext()
    return set_mesh(meshes[0]) if isinstance(meshes[0], Mesh) else use_abstract_mesh(meshes[0])
