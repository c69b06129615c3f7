"""The kernels stay within the errors that docs/numerics.md states."""

import importlib.util
import pathlib
import re

import numpy as np
import pytest

from tests.support import on_xla

ROOT = pathlib.Path(__file__).parent.parent.parent
#: A function with its bound, what was measured and JAX's error, in float32 and in float64.
ROW = re.compile(r"^\| `(\w+)`" + r" \| ([\d.]+)" * 6 + r" \|$", re.MULTILINE)
BOUNDS = {
    name: [(float(ours[0]), float(ours[2])), (float(ours[3]), float(ours[5]))]
    for name, *ours in ROW.findall((ROOT / "docs/numerics.md").read_text())
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
        for dtype, (bound, jaxs) in zip(("float32", "float64"), BOUNDS[name]):
            # XLA's own functions are JAX's, of some version
            bound = max(bound, jaxs, 8 if name == "atanh" else 4) if on_xla() else bound
            # Without an 80-bit type the reference of float64 is no better than what it measures.
            slack = 0.0 if dtype == "float32" or np.finfo(np.longdouble).nmant > 52 else 2.0
            assert accuracy.measure(lax, asarray, name, dtype) <= bound + slack
