"""Thousands of random programs, one after the other, in one process, leave nothing behind.

They are those of `tests/fuzz`: run eagerly, jitted, donated, mapped and differentiated; here it counts that no array
and no byte is left, there that results are right. `FERRAX_SOAK` says how many.
"""

import gc
import os

import numpy as np
import pytest

import ferrax
from tests.fuzz.checks import Checks
from tests.fuzz.report import Report

PROGRAMS = int(os.environ.get("FERRAX_SOAK", "5000"))


def held():
    gc.collect()
    ferrax.clear_caches()
    # rules that programs had, which are functions of Python's, may refer to themselves
    gc.collect()
    return ferrax.devices()[0].memory_stats()["bytes_in_use"], len(ferrax.live_arrays())


@pytest.mark.filterwarnings("ignore")
def test_random_programs_leave_nothing(tmp_path):
    checks = Checks(Report(tmp_path))
    with np.errstate(all="ignore"):
        checks.run(0)
        before = held()
        for seed in range(PROGRAMS):
            checks.run(seed)
    assert held() == before
    assert checks.report.counts["programs"] == PROGRAMS + 1
