"""Whole programs beside jax.jit: training steps, simulations, samplers and solvers as users write them.

`cpu.py` times single operations and `patterns.py` everyday expressions; here each row is a program with its loops, its
random numbers and its derivatives, compiled as one. The last column is the share of the machine's limit that is
reached: the time that the program's operations (`cost_analysis`) take at the rate of a product of matrices, or its
arguments and results at the rate of a copy, over the time measured. `--memory` adds what a process that runs the
program holds at most, beyond the imports, on both sides. Rows that lose stay in the
table. The programs are in `whole.py`.
"""

import json
import pathlib
import resource
import subprocess
import sys
import time

import harness
import numpy as np
from whole import FAMILIES


def made(library, name):
    """The compiled program of a row and its arguments, on a library."""
    jax, jnp = library
    for family in FAMILIES:
        programs = family(jax, jnp)
        if name in programs:
            function, *args = programs[name]
            return jax.jit(function), jax.tree.map(jnp.asarray, args)
    raise ValueError(f"no program is called {name!r}")


def contender(library, name):
    def setup():
        program, args = made(library, name)
        wait = library[0].block_until_ready
        return lambda: wait(program(*args))

    return setup


def limits():
    """Operations and bytes of a second at this machine's best: a product of matrices, a copy of an array."""

    def rate(work, function):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return work / min(times)

    square, line = np.ones((1500, 1500), np.float32), np.ones(30_000_000, np.float32)
    target = np.empty_like(line)
    return rate(2 * 1500**3, lambda: square @ square), rate(2 * line.nbytes, lambda: np.copyto(target, line))


def share(library, name, seconds, best):
    """The part of the machine's limit that a run of so many seconds reaches."""
    program, args = made(library, name)
    moved = sum(x.nbytes for x in library[0].tree.leaves((args, program(*args))))
    operations = program.lower(*args).compile().cost_analysis()["flops"]
    return max(operations / best[0], moved / best[1]) / seconds


def held(target, name):
    """Mebibytes that a process of its own holds at most for a program, beyond what the imports took."""
    code = f"import programs; programs.print_peak({target!r}, {name!r})"
    folder = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def print_peak(target, name):
    """Runs a program three times in this process and prints by how many mebibytes its peak grew."""
    library = harness.importlib.import_module(target), harness.importlib.import_module(f"{target}.numpy")
    library[0].block_until_ready(library[1].ones(3) + 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = contender(library, name)()
    for _ in range(3):
        run()
    print(json.dumps((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


def notes(libs, target, best, memory):
    """Prints, per measured row, what stands beside the times."""

    def note(row):
        texts = []
        if target in row.times:
            texts.append(f"{100 * share(libs[target], row.name, row.times[target], best):.0f} % of the limit")
        if memory:
            texts += [f"{name} {held(name, row.name):.0f} MiB" for name in libs]
        return ", ".join(texts)

    return note


def main():
    options = harness.parse_arguments(__doc__.splitlines()[0], memory="also measure peaks of memory, a process each")
    libs = harness.libraries(options)

    def rows(family):
        for name in family(*next(iter(libs.values()))):
            yield harness.Row(name, {n: contender(lib, name) for n, lib in libs.items()}, note=note)

    note = notes(libs, options.target, limits(), options.memory)
    done = harness.run([lambda f=f: rows(f) for f in FAMILIES], options, list(libs))
    ratios = [r.times["jax"] / r.times[options.target] for r in done if {"jax", options.target} <= r.times.keys()]
    if ratios:
        mean = np.exp(np.mean(np.log(ratios)))
        print(f"{len(ratios)} programs, {sum(r >= 1 for r in ratios)} ahead, geometric mean {mean:.2f}x")


if __name__ == "__main__":
    main()
