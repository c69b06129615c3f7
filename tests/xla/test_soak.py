"""Random programs, one after the other, on a CPU client of XLA: results as on the embedded engine, and nothing is left.

They are those of `tests/fuzz`, all steps of one as a single program of XLA, each on the embedded engine's own operands,
so that errors do not add up. `FERRAX_XLA_SOAK` says how many; a test run takes a few.
"""

import gc
import os
import resource

import numpy as np
import pytest

import ferrax as jax
from tests.fuzz.compare import PRODUCTS, SUMMED, Operands, disagreement, precision, same_bits, without_subnormals
from tests.fuzz.generator import FERRAX, Generator
from tests.fuzz.program import Tolerance, rounded_to_integer, run_step
from tests.fuzz.values import kind

PROGRAMS = int(os.environ.get("FERRAX_XLA_SOAK", "40"))


def held(device):
    jax.clear_caches()
    for _ in range(3):
        gc.collect()
    return device.memory_stats()["bytes_in_use"]


def resident():
    """Mebibytes of the process that are in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def steps_of(seed):
    """The steps of a seed's program, what each reads and what the embedded engine made of it."""
    generator = Generator(seed, x64=False)
    program, env = generator.draw(), {name: np.asarray(value) for name, value in generator.env.items()}
    steps = [s for s in program.steps if s.tolerance is not Tolerance.UNCOMPARED]
    reads = [{name: env[name] for name in s.reads if name in env} for s in steps]
    # XLA's CPU takes subnormal numbers for zeros, and ends the process of nested loops over arrays without elements
    plain = [all(v.size > 0 and same_bits(without_subnormals(v), v) for v in read.values()) for read in reads]
    ours = [[without_subnormals(env[name]) for name in s.outs] for s in steps]
    return [(s, r, o) for s, r, o, p in zip(steps, reads, ours, plain) if p and not turned_far(s, r)]


def turned_far(step, read):
    """Whether powers of complex numbers have angles of which single precision has no digits: XLA's have none then."""
    if "pow" not in step.code and "**" not in step.code:
        return False
    return any(kind(v.dtype) == "c" and np.max(np.abs(v[np.isfinite(v)]), initial=0) > 1e7 for v in read.values())


def in_a_row(own, other, step, operands):
    """Whether adding one term after the other explains a difference, as XLA adds the products of two vectors."""
    if step.tolerance not in SUMMED or kind(own.dtype) != "f":
        return False
    unit = operands.eps(precision(own.dtype).eps)
    return np.max(np.abs(own - np.asarray(other)), initial=0) <= operands.size / 2 * unit * operands.terms()


def differences(seed, device):
    """What XLA computes otherwise of a seed's program; how many results were compared."""
    compared, found = 0, []
    with jax.default_device(jax.devices("cpu")[0]):
        steps = steps_of(seed)
    program = jax.jit(lambda reads: [run_step(FERRAX, s, read) for (s, *_), read in zip(steps, reads)])
    theirs = program(jax.device_put([read for _, read, _ in steps], device))
    for (step, read, ours), results in zip(steps, theirs):
        operands = Operands(list(read.values()), step.family in PRODUCTS)
        for own, other in zip(ours, results):
            compared += 1
            why = disagreement(own, np.asarray(other), step.tolerance, operands)
            if why is not None and not rounded_to_integer(step, own) and not in_a_row(own, other, step, operands):
                found.append((seed, step.code, why, all(kind(v.dtype) in "biu" for v in read.values())))
    return compared, found


@pytest.mark.filterwarnings("ignore")
def test_random_programs_leave_nothing():
    device = jax.devices("xla_cpu")[0]
    compared, found, sizes = 0, [], []
    with np.errstate(all="ignore"):
        differences(0, device)
        before = held(device)
        for seed in range(PROGRAMS):
            count, other = differences(seed, device)
            compared, found = compared + count, found + other
            if seed % 500 == 499:
                assert held(device) == before
                sizes.append(resident())
    assert held(device) == before
    assert compared > 3 * PROGRAMS
    assert not found, "\n".join(map(str, found[:20]))
    # the allocator's own keeping settles within some hundred programs
    assert not sizes or sizes[-1] < 1.25 * sizes[len(sizes) // 4], sizes
