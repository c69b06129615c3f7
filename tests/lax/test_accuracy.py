"""The kernels stay within the errors that docs/numerics.md states."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
ROW = re.compile(r"^\| `(\w+)` \| ([\d.]+) \|[^|]*\|[^|]*\| ([\d.]+) \|", re.MULTILINE)
BOUNDS = {
    name: (float(single), float(double))
    for name, single, double in ROW.findall((ROOT / "docs/numerics.md").read_text())
}


def load():
    """The program that measures, which lies beside the benchmarks."""
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "benches" / "accuracy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


accuracy = load()
accuracy.COUNT = 20_000


def test_every_function_has_a_row():
    assert set(BOUNDS) == {*accuracy.FUNCTIONS, *accuracy.BINARY}


@pytest.mark.parametrize("name", BOUNDS)
def test_errors(name):
    lax, asarray, enable_x64 = accuracy.library("ferrax")
    with enable_x64(True):
        for dtype, bound in zip(("float32", "float64"), BOUNDS[name]):
            # Without an 80-bit type the reference of float64 is no better than what it measures.
            slack = 0.0 if dtype == "float32" or np.finfo(np.longdouble).nmant > 52 else 2.0
            assert accuracy.measure(lax, asarray, name, dtype) <= bound + slack
