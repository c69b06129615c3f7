"""A share of fuzzing for every run of the tests: other programs each time, about three minutes in all on two cores.

`FERRAX_FUZZ_SEED` draws the programs of an earlier run again, `FERRAX_FUZZ_PROGRAMS` says how many each test runs (0
leaves fuzzing out); those that JAX compiles are fewer. A failure prints its seed and a program to run; `make fuzz` goes
on for hours. README.md in this folder says more.
"""

import os
import random

import pytest

from tests.fuzz import __main__ as programs, api, bits, trials
from tests.fuzz.program import SEEDS

SEED = int(os.environ.get("FERRAX_FUZZ_SEED", random.randrange(SEEDS)))
PROGRAMS = int(os.environ.get("FERRAX_FUZZ_PROGRAMS", "10000"))
JOBS = min(2, os.cpu_count() or 1)

pytestmark = pytest.mark.skipif(PROGRAMS <= 0, reason="FERRAX_FUZZ_PROGRAMS is 0")


@pytest.fixture
def announce(capsys):
    """Prints a line whatever happens to the test."""

    def say(line):
        with capsys.disabled():
            print(f"\nfuzz: FERRAX_FUZZ_SEED={SEED}: {line}")

    return say


def share(part):
    """A part of the programs, at least one."""
    return max(1, PROGRAMS // part)


def check(announce, what, failures):
    announce(what)
    assert not failures, "\n\n".join(map(str, failures))


@pytest.mark.parametrize("options", [[], ["--x64"], ["--jax", "1"]], ids=["32 bits", "64 bits", "against JAX"])
def test_programs(options, announce, tmp_path):
    run = [SEED, SEED + share(20 if "--jax" in options else 1), *options, "--jobs", JOBS, "--out", tmp_path]
    counts, failures = programs.run(programs.arguments(list(map(str, run))))
    check(announce, f"programs {' '.join(options)} {dict(counts)}", failures)
    assert counts["programs"] > 0


def test_bits_of_instruction_sets_and_threads(announce):
    run = [SEED, SEED + share(20), "--isa", "portable", "native", "--threads", 1, 2]
    compared, explained, failures = bits.compare(bits.arguments(list(map(str, run))))
    check(announce, f"bits of {compared} programs, {explained} explained", failures)
    assert compared > 0


def test_odd_arguments(announce, tmp_path):
    run = ["--seed", SEED, "--functions", share(25), "--jobs", JOBS, "--out", tmp_path]
    counts, failures = api.run(api.arguments(list(map(str, run))))
    check(announce, f"odd arguments {counts}", failures)


@pytest.mark.parametrize("name", trials.names())
def test_trials(name):
    failure = trials.run(name, PROGRAMS / 1_000_000, SEED)
    assert failure is None, failure
