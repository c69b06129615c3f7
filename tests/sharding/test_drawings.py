"""Pictures of which devices hold which part of an array, of meshes of devices that do not exist."""

import dataclasses

import numpy as np
import pytest

import ferrax as jax


@dataclasses.dataclass(frozen=True)
class Named:
    platform: str
    id: int
    process_index: int = 0
    device_kind: str = "cpu"


def picture(capsys, devices, names, spec, shape, **options):
    grid = np.array([Named("cpu", i) for i in range(np.prod(devices))])
    mesh = jax.sharding.Mesh(grid.reshape(devices), names)
    jax.debug.visualize_sharding(shape, jax.NamedSharding(mesh, jax.P(*spec)), **options)
    return capsys.readouterr().out.splitlines()


def test_one_device(capsys):
    assert picture(capsys, (1,), ("x",), ("x",), (5,)) == ["┌───────┐", "│ CPU 0 │", "└───────┘"]
    wide = picture(capsys, (1,), ("x",), ("x",), (5,), scale=8.0)
    assert wide == ["┌" + 38 * "─" + "┐", "│" + 16 * " " + "CPU 0" + 17 * " " + "│", "└" + 38 * "─" + "┘"]


def test_parts_are_drawn_where_they_are(capsys):
    every = picture(capsys, (8, 4), ("x", "y"), ("x", "y"), (8, 8))
    assert every[:2] == ["┌───────┬───────┬───────┬───────┐", "│ CPU 0 │ CPU 1 │ CPU 2 │ CPU 3 │"]
    assert every[2] == "├───────┼───────┼───────┼───────┤" and len(every) == 17
    rows = picture(capsys, (8, 4), ("x", "y"), ("x", None), (8, 8))
    assert rows[1] == "│      CPU 0,1,2,3      │" and rows[-2] == "│    CPU 28,29,30,31    │"
    columns = picture(capsys, (4, 2), ("x", "y"), (None, "y"), (8, 8))
    assert columns[5] == "│CPU 0,2,4,6│CPU 1,3,5,7│" and len(columns) == 11
    assert all(line == "│           │           │" for i, line in enumerate(columns) if i not in (0, 5, 10))


@pytest.mark.parametrize("parts", [(8, 4), (1, 32)])
def test_pictures_are_no_wider_than_asked(capsys, parts):
    for width in (80, 120):
        lines = picture(capsys, parts, ("x", "y"), ("x", "y"), (128, 9600), max_width=width)
        assert len({len(line) for line in lines}) == 1 and len(lines[0]) <= width
    with pytest.raises(ValueError, match="only works for shapes with 1 and 2 dimensions"):
        picture(capsys, (1,), ("x",), (), (2, 2, 2))
