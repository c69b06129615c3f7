"""Meshes over devices of TPUs, which say where they are: the same order as JAX's, with and without whole axes."""

import dataclasses
import importlib
import itertools
import math

import pytest

from ferrax.experimental import mesh_utils
from tests.recorded import expected

BOXES = [(1, 1, 1), (2, 2, 1), (2, 2, 2), (4, 2, 1), (4, 4, 1), (2, 2, 4), (2, 2, 3), (4, 4, 4)]
KINDS = ["v2", "v3", "v4", "v4 lite", "v5 lite", "v5p", "v6 lite", "7x", "8i"]


@dataclasses.dataclass(frozen=True)
class Chip:
    id: int
    device_kind: str
    process_index: int
    coords: tuple
    core_on_chip: int = 0
    slice_index: int = 0
    platform: str = "tpu"


def chips(box, kind="v4", cores=1, slices=1):
    x, y, z = map(range, box)
    places = itertools.product(range(slices), z, y, x, range(cores))
    kind = f"TPU{'' if kind[0] != 'v' else ' '}{kind}"
    return [Chip(i, kind, i // 4, (a, b, c), core, part) for i, (part, c, b, a, core) in enumerate(places)]


def shapes(n):
    for a in (d for d in range(1, n + 1) if n % d == 0):
        yield a, n // a
        yield from ((b, 1, a // b, n // a) for b in (2, 4) if a % b == 0)


def arrays(library, kind, cores, options):
    """The devices of all arrays, or the error, each under its box and shape."""
    meshes = importlib.import_module(f"{library.__name__}.experimental.mesh_utils")
    found = {}
    for box in BOXES:
        devices = chips(box, kind, cores)
        for shape in shapes(len(devices)):
            try:
                ids = [d.id for d in meshes.create_device_mesh(shape, devices[::-1], **options).flat]
            except (ValueError, NotImplementedError) as error:
                ids = f"{type(error).__name__}: {str(error).split('.')[0]}"
            found[f"{box} {shape}"] = ids
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"allow_split_physical_axes": True}], ids=["whole", "split"])
def test_orders_like_jax(kind, options):
    import ferrax

    cores = 2 if kind in ("v3", "7x") else 1
    assert arrays(ferrax, kind, cores, options) == expected(arrays, kind, cores, options)


def test_devices_of_a_process_together():
    import ferrax

    options = {"contiguous_submeshes": True}
    found = arrays(ferrax, "v4", 1, options)
    assert found == expected(arrays, "v4", 1, options)
    assert any(isinstance(ids, list) for ids in found.values())
    assert any("cannot create contiguous submeshes" in ids for ids in found.values())


def test_slices():
    devices = chips((4, 4, 4), slices=2)
    for inner, outer in [((1, 16, 4), (2, 1, 1)), ((2, 8, 4), (1, 2, 1))]:
        mesh = mesh_utils.create_hybrid_device_mesh(inner, outer, devices, allow_split_physical_axes=True)
        axis = outer.index(2)
        first, second = mesh[0, 0, 0], mesh[tuple(inner[axis] * (i == axis) for i in range(3))]
        assert first.coords == second.coords and first.slice_index != second.slice_index
        assert mesh.shape == tuple(a * b for a, b in zip(inner, outer, strict=True))


def test_errors():
    devices = chips((4, 4, 4))
    with pytest.raises(NotImplementedError, match=r"Failed to find assignment .* of size 2 .*allow_split"):
        mesh_utils.create_device_mesh((32, 2), devices)
    with pytest.raises(ValueError, match="Number of devices 64 must equal"):
        mesh_utils.create_device_mesh((32,), devices)
    with pytest.raises(ValueError, match="should be a sequence of ints"):
        mesh_utils.create_device_mesh((32, "x"), devices)
    with pytest.raises(AssertionError, match="in a box of"):
        mesh_utils.create_device_mesh((63,), devices[1:])
    with pytest.raises(AssertionError, match="one device per chip"):
        mesh_utils.create_device_mesh((128,), chips((4, 4, 4), cores=2))


def test_divisions_of_a_grid():
    from ferrax._src import mesh_utils as inside

    grid = inside._get_physical_tpu_mesh(chips((4, 4, 8)))
    mesh, parts = inside._create_device_mesh_for_nd_torus(grid, (8, 16), allow_split_physical_axes=True)
    assert parts.prod(axis=1).tolist() == [4, 4, 8] and parts.prod(axis=0).tolist() == [8, 16]
    assert mesh.shape == (8, 16) and len({d.id for d in mesh.flat}) == 128
    assert inside._get_prime_factors(360) == [2, 2, 2, 3, 3, 5]
    assert math.prod(inside._get_prime_factors(97)) == 97
