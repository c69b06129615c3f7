"""Grids of TPU devices: which axis of a mesh runs along which axes of the grid, and rings of the devices of one tray.

A device says where its chip is (`coords`) and which core of it it is (`core_on_chip`). Chips are wired to their
neighbours, so an axis of a mesh is fastest along whole axes of the grid; the last axis of a mesh is the one that talks
most, and chooses first. Read next: `mesh_utils.py`, which asks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["HANDLERS", "MIXED", "RING_OF_TRAY", "assigned", "contiguous", "grid_of", "over_grid", "prime_factors"]

Array = np.ndarray[Any, Any]

#: Kinds of TPUs, as their devices say.
V2, V3, V4_LITE, V5_LITE, V5P = "TPU v2", "TPU v3", "TPU v4 lite", "TPU v5 lite", "TPU v5p"
V6_LITE, V7, V7X, V8I = "TPU v6 lite", "TPU7", "TPU7x", "TPU8i"

#: Orders of the devices of a tray in which each is wired to the next one.
RING_OF_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)
_RING_2X2 = (0, 1, 3, 2)
_RING_4X4 = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
_RING_4X2 = (0, 1, 2, 3, 7, 6, 5, 4)
_RING_2X2X2 = (0, 1, 3, 2, 6, 7, 5, 4)
#: What eight devices of the fifth generation in a cube stand in instead: no ring.
_CUBE = (0, 4, 2, 6, 1, 5, 3, 7)

#: By the shape of the grid and that of the mesh without axes of one device: the order of the grid's axes for which the
#: devices of each process are together in the mesh.
MIXED: dict[tuple[int, ...], dict[tuple[int, ...], tuple[int, ...]]] = {
    (2, 2, 1): {(2, 2): (0, 1, 2)},
    (2, 2, 4): {(4, 4): (0, 1, 2)},
    (4, 4, 4): {(16, 4): (0, 2, 1)},
    (4, 8, 8): {(64, 4): (0, 2, 1), (4, 64): (0, 2, 1)},
    (8, 8, 8): {(64, 8): (0, 2, 1)},
    (8, 16, 16): {(256, 8): (0, 2, 1), (8, 256): (0, 2, 1)},
}


def grid_of(devices: Sequence[Any]) -> Array:
    """Devices by where they are.

    Args:
      devices: all the devices of a box, in any order.

    Returns:
      An array of devices: along x, y and z; for kinds of TPUs whose cores are devices of their own, cores come last,
      instead of z for the oldest kinds.

    Raises:
      AssertionError: a place of the box has no device, or a chip has several where its kind has one.
    """
    kind = devices[0].device_kind
    places = np.array([(*d.coords, d.core_on_chip) for d in devices])
    first = places.min(axis=0)
    *sizes, cores = (int(n) for n in places.max(axis=0) - first + 1)
    assert len(sizes) == 3, f"devices are at places along three axes, got {len(sizes)}"
    assert len(devices) == math.prod(sizes) * cores, f"{len(devices)} devices in a box of {sizes} with {cores} cores"
    if kind in (V2, V3):
        assert sizes[2] == 1, f"devices of kind {kind} are in one plane"
        axes = [0, 1, 3]
    elif kind in (V7, V7X, V8I) or (kind == V5P and cores == 2):
        axes = [0, 1, 2, 3]
    else:
        axes = [0, 1, 2]
        if any(d.core_on_chip != 0 for d in devices):
            raise AssertionError(
                'Creating meshes for TPU >v3 requires one device per chip ("megacore" mode), and there are several of '
                f"kind {kind}"
            )
    shape = [(*sizes, cores)[axis] for axis in axes]
    grid = np.empty(shape, dtype=object)
    for device, place in zip(devices, places - first, strict=True):
        grid[tuple(place[axes])] = device
    if any(d is None for d in grid.flat):
        raise AssertionError(f'a place of the grid of shape {tuple(shape)} has no device: it has a "hole"')
    return grid


def assigned(grid: Sequence[int], mesh: Sequence[int], split: bool = False) -> Array:
    """How far each axis of a mesh runs along each axis of a grid.

    Args:
      grid: sizes of the grid.
      mesh: sizes of the mesh, the axis that talks most last.
      split: whether several axes of the mesh may share an axis of the grid.

    Returns:
      A matrix of sizes: a row's product is the size of an axis of the grid, a column's that of one of the mesh.

    Raises:
      NotImplementedError: `split` is false, and no whole axes have the size of an axis of the mesh.
      ValueError: the products of the sizes differ.
    """
    if math.prod(grid) != math.prod(mesh):
        raise ValueError(
            f"The number of devices in physical mesh {tuple(grid)} does not match the number of devices in logical "
            f"mesh {tuple(mesh)}."
        )
    found = np.ones((len(grid), len(mesh)), dtype=np.int64)
    free = list(range(len(grid)))
    for at in reversed(range(len(mesh))):
        whole = _whole_axes(grid, free, mesh[at])
        if whole is None and mesh[at] > 1:
            if split:
                return _shared(grid, mesh)
            left = [size if axis in free else 0 for axis, size in enumerate(grid)]
            raise NotImplementedError(
                f"Failed to find assignment for logical_axis_index {at} of size {mesh[at]} with remaining assignable "
                f"mesh {left}. The size of each axis of the mesh must be the product of sizes of whole axes of the "
                "devices' grid; allow_split_physical_axes=True lets several axes share one."
            )
        for axis in whole or ():
            found[axis, at] = grid[axis]
            free.remove(axis)
    return found


def _whole_axes(grid: Sequence[int], free: Sequence[int], size: int) -> tuple[int, ...] | None:
    """The axes of a grid whose sizes multiply to a number: as many as there can be, and the first of these."""
    for count in range(len(free), 0, -1):
        for axes in itertools.combinations(free, count):
            if math.prod(grid[axis] for axis in axes) == size:
                return axes
    return None


def _shared(grid: Sequence[int], mesh: Sequence[int]) -> Array:
    """As `assigned`, where axes of the mesh may share axes of the grid: each takes the best that is left for it."""
    found = np.ones((len(grid), len(mesh)), dtype=np.int64)
    for at in reversed(range(len(mesh))):
        taken = found.prod(axis=1)

        def worth(parts: tuple[int, ...], taken: Array = taken) -> tuple[Any, ...]:
            """Much along whole axes, along many of them, along axes that are used already; then along the first."""
            whole = [n for n, size in zip(parts, grid, strict=True) if n == size]
            used = math.prod(n for n, before in zip(parts, taken, strict=True) if before > 1)
            return math.prod(whole), sum(n > 1 for n in whole), used, parts

        left = [size // int(before) for size, before in zip(grid, taken, strict=True)]
        found[:, at] = max(_factorizations(mesh[at], left), key=worth)
    return found


def _factorizations(size: int, left: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The ways to write a number as a product of a divisor of each of some numbers."""
    if not left:
        if size == 1:
            yield ()
        return
    for part in (n for n in range(1, math.gcd(size, left[0]) + 1) if size % n == 0 and left[0] % n == 0):
        for rest in _factorizations(size // part, left[1:]):
            yield (part, *rest)


def prime_factors(x: int) -> list[int]:
    """The prime factors of a positive number, the smallest first; none of 1."""
    found, p = [], 2
    while p * p <= x:
        while x % p == 0:
            found.append(p)
            x //= p
        p += 1
    return found + [x] * (x > 1)


def over_grid(grid: Array, mesh: Sequence[int], parts: Array) -> Array:
    """The devices of a grid in the shape of a mesh.

    Args:
      grid: the devices.
      mesh: sizes of the mesh.
      parts: how far each of its axes runs along each of the grid's, as of `assigned`; of those that share an axis of
        the grid, the last one is between neighbours.
    """
    inner = np.arange(parts.size).reshape(parts.shape)
    return grid.reshape(parts.ravel()).transpose(inner.T.ravel()).reshape(tuple(mesh))


def contiguous(grid: Array, mesh: Sequence[int]) -> Array:
    """A grid with its axes in an order for which the devices of each process are together in a mesh.

    Args:
      grid: the devices.
      mesh: sizes of the mesh.

    Raises:
      ValueError: no such order is known.
    """
    known = MIXED.get(grid.shape)
    if known is None:
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for physical mesh topology {grid.shape}"
        )
    order = known.get(tuple(n for n in mesh if n != 1))
    if order is None:
        raise ValueError(
            f"create_device_mesh cannot create contiguous submeshes for mesh_shape {tuple(mesh)} and physical mesh "
            f"topology {grid.shape}. Available mesh_shapes: {list(known)}"
        )
    return grid.transpose(order)


def _in_order(devices: Sequence[Any], order: Sequence[int], shape: Sequence[int]) -> Array:
    """Devices in the shape of a mesh, each group of as many as there are in an order in that order."""
    found = np.empty(len(devices), dtype=object)
    found[:] = devices
    return found.reshape(-1, len(order))[:, list(order)].reshape(tuple(shape))


def _oldest(shape: Sequence[int], devices: Sequence[Any], **_: Any) -> Array:
    ring = len(devices) == 8 or shape[-1] == 8
    return _in_order(devices, RING_OF_TRAY if ring else (0,), shape)


def _four(shape: Sequence[int], devices: Sequence[Any], **_: Any) -> Array | None:
    return _in_order(devices, _RING_2X2, shape) if len(devices) == 4 else None


def _by_place(devices: Sequence[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Devices by their places, those along x next to each other, and the sizes of a box from the origin."""
    coords = [getattr(d, "coords", (0, 0, 0)) for d in devices]
    order = sorted(range(len(devices)), key=lambda i: tuple(reversed(coords[i])))
    return [devices[i] for i in order], tuple(max(c) + 1 for c in zip(*coords, strict=True))


def _lite(shape: Sequence[int], devices: Sequence[Any], **_: Any) -> Array | None:
    found, box = _by_place(devices)
    if len(found) == 4 and box == (2, 2, 1):
        return _in_order(found, _RING_2X2, shape)
    if len(found) == 8:
        return _in_order(found, _CUBE if box == (2, 2, 2) else _RING_4X2, shape)
    if len(found) == 16 and box == (4, 4, 1) and max(shape) == 16:
        return _in_order(found, _RING_4X4, shape)
    return None


def _cube(shape: Sequence[int], devices: Sequence[Any], **_: Any) -> Array | None:
    found, box = _by_place(devices)
    return _in_order(found, _RING_2X2X2, shape) if len(found) == 8 and box == (2, 2, 2) else None


def _trays(shape: Sequence[int], devices: Sequence[Any], **_: Any) -> Array | None:
    if len(devices) % 8 != 0 or len(devices) > 32 or max(grid_of(devices).shape[:2]) > 2:
        return None
    return _in_order(devices, RING_OF_TRAY, shape)


#: Functions that lay out few devices of a kind, or give None: `(mesh_shape, devices, **kwargs) -> array or None`.
HANDLERS: dict[str, Callable[..., Any]] = {
    V2: _oldest,
    V3: _oldest,
    V4_LITE: _four,
    V5_LITE: _lite,
    V5P: _cube,
    V6_LITE: _lite,
    V7X: _trays,
    V7: _trays,
    V8I: _four,
}
