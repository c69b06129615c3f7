"""Bits that must not depend on the instruction set nor on threads: `python -m tests.fuzz.bits START STOP [options]`.

Every setting runs the same programs, of larger arrays, in a process of its own and prints digests of all eager results
and of the jitted ones. The first step whose digests differ is the one at fault.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys

import numpy as np

import ferrax
import ferrax.numpy as jnp
from tests.fuzz.compare import parts
from tests.fuzz.generator import FERRAX, Generator
from tests.fuzz.program import operation_names
from tests.fuzz.report import Failure, one_of_each
from tests.fuzz.values import kind

#: Size classes and their weights: work that threads share.
MODES = ["odd", "wide", "huge"], [2, 3, 4]
#: Families whose bits docs/numerics.md ties to the instruction set: single transforms of long or awkward lengths.
EXPLAINED = ("jnp.fft",)


def digest(value):
    """A text that equal bits share, whatever the payloads of NaNs."""
    value = np.array(value, copy=True)
    if kind(value.dtype) in "fc":
        for part in [value.real, value.imag] if kind(value.dtype) == "c" else [value]:
            part[np.isnan(part)] = np.nan
    content = b"".join(p.tobytes() for p in parts(value))
    return hashlib.sha1(f"{value.dtype}{value.shape}".encode() + content).hexdigest()


def digests(seed, x64):
    """Digests of a program's eager results by name, of its jitted results, and the operations that made each."""
    generator = Generator(seed, x64, MODES)
    program = generator.draw()
    eager = {name: digest(generator.env[name]) for step in program.steps for name in step.outs}
    jitted = ferrax.jit(program.function(FERRAX))
    args = [jnp.asarray(value) for value in program.inputs.values()]
    results = [jitted(*args), jitted(*args)][1]
    operations = {name: operation_names(step.code) for step in program.steps for name in step.outs}
    return {
        "seed": seed, "eager": eager, "operations": operations,
        "jit": dict(zip(program.outs, map(digest, results))),
    }  # fmt: skip


def run_child(args):
    np.seterr(all="ignore")
    ferrax.config.update("jax_enable_x64", args.x64)
    for seed in range(args.start, args.stop):
        print(json.dumps(digests(seed, args.x64)), flush=True)


def run_setting(args, isa, threads):
    """The digests of every program under one setting, and what ended the process before its time."""
    env = {**os.environ, "FERRAX_NUM_THREADS": str(threads), **({} if isa == "native" else {"FERRAX_CPU_ISA": isa})}
    options = ["--child"] + ["--x64"] * args.x64
    command = [sys.executable, "-W", "ignore", "-m", "tests.fuzz.bits", str(args.start), str(args.stop), *options]
    child = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in child.stdout.splitlines() if line.endswith("}")]
    return {line["seed"]: line for line in lines}, child.stderr[-2000:] if child.returncode else ""


def difference(first, other):
    """The operation that differs between two settings, None where all bits agree."""
    for name, value in first["eager"].items():
        if other["eager"].get(name) != value:
            return first["operations"][name]
    for name, value in first["jit"].items():
        if other["jit"].get(name) != value:
            return f"jit: {first['operations'].get(name, name)}"
    return None


def compare(args):
    """How many programs were compared, how many differences are explained, and the others."""
    settings = [(isa, threads) for isa in args.isa for threads in args.threads]
    runs, failures, compared, explained = [], [], 0, 0
    for isa, threads in settings:
        found, error = run_setting(args, isa, threads)
        runs.append(found)
        if error:
            failures.append(Failure("crash", max(found, default=args.start) + 1, f"{isa}, {threads} threads", error))
    for setting, run in zip(settings[1:], runs[1:]):
        for seed in runs[0].keys() & run.keys():
            compared += 1
            what = difference(runs[0][seed], run[seed])
            if what and what.removeprefix("jit: ").startswith(EXPLAINED):
                explained += 1
            elif what:
                failures.append(Failure("bits", seed, what, f"{settings[0]} and {setting} differ in {what}"))
    return compared, explained, one_of_each(failures)


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.bits", description=__doc__.split("\n")[0])
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--isa", nargs="+", default=["native"], help="as FERRAX_CPU_ISA names them")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main():
    args = arguments()
    if args.child:
        run_child(args)
        return 0
    compared, explained, failures = compare(args)
    for failure in failures:
        print(f"## {failure}")
    print(f"{compared} comparisons, {explained} explained differences, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
