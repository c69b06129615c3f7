"""Runs random programs by seed: `python -m tests.fuzz START STOP [options]`, from the root of the repository.

Each share of seeds runs in a child process with bounded memory and under a watchdog: a crash, a hang and an exhausted
memory are findings too. Prints one failure of each kind; the exit status is 1 where there is one.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time

from tests import oracle_settings
from tests.fuzz import children

#: The most seeds of one child, seconds without a new program that count as a hang, and bytes of address space.
SHARE, HANG, MEMORY = 1000, 120, 12 << 30


def arguments(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("start", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--x64", action="store_true", help="programs with 64-bit types")
    parser.add_argument(
        "--jax", type=float, default=0.0, metavar="SHARE", help="the share of programs compared with JAX"
    )
    parser.add_argument(
        "--gradients", type=float, default=0.3, metavar="SHARE", help="the share that is differentiated"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--isa", choices=["portable", "avx2", "avx512", "neon"], help="the instruction set")
    parser.add_argument("--out", help="folder of the findings; a new one by default")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def run_child(args):
    """One share, in this process."""
    import resource
    import warnings

    import numpy as np

    import ferrax
    from tests.fuzz.checks import Checks
    from tests.fuzz.report import Report

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    ferrax.config.update("jax_enable_x64", args.x64)
    oracle = None
    if args.jax > 0:
        import jax

        from tests.fuzz.oracle import Oracle

        jax.config.update("jax_enable_x64", args.x64)
        oracle = Oracle(args.jax)
    report = Report(args.out)
    checks = Checks(report, args.x64, args.gradients, oracle)
    until = time.monotonic() + args.seconds
    for seed in range(args.start, args.stop):
        if time.monotonic() > until:
            break
        report.begin(seed)
        checks.run(seed)
        if oracle is not None and seed % 200 == 199:
            jax.clear_caches()
    print(json.dumps(report.counts))


def run(args):
    """Runs all seeds, `args.jobs` shares at once; the counts, and the failures of each kind."""
    until = time.monotonic() + args.seconds
    share = min(SHARE, -(-(args.stop - args.start) // args.jobs))
    starts, lock = iter(range(args.start, args.stop, share)), threading.Lock()
    isa = {"FERRAX_CPU_ISA": args.isa} if args.isa else {}
    # The engine checks itself: memory is poisoned, and work of any size is shared out.
    env = oracle_settings.apply({"FERRAX_CHECK": "1", **os.environ, **isa})

    def work(job, folder, counts):
        start = stop = 0
        while time.monotonic() < until:
            if start >= stop:
                with lock:
                    start = next(starts, args.stop)
                stop = min(args.stop, start + share)
                if start >= stop:
                    return
            options = ["--jax", args.jax, "--gradients", args.gradients, "--out", folder, *["--x64"] * args.x64]
            options += ["--seconds", until - time.monotonic(), start, stop]
            child = children.run_child("tests.fuzz", options, folder, HANG, env)
            if child.ended_well():
                counts.update(child.counts())
                start = stop
            else:
                in_jax = isinstance(child.current, list)
                seed = child.current[0] if in_jax else child.current
                if in_jax:
                    counts["explained: JAX crashed or hung"] += 1
                else:
                    children.note_crash(folder, child, "crash", seed, "a program:", "")
                start = seed + 1

    return children.run_jobs(work, args.jobs, args.out or tempfile.mkdtemp(prefix="ferrax-fuzz-"))


def main():
    args = arguments()
    if args.child:
        run_child(args)
        return 0
    return children.conclude(*run(args), str)


if __name__ == "__main__":
    sys.exit(main())
