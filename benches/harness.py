"""Timing for the benchmark programs: contenders in turn, the best of many repeats, ratios in one table.

A row names what is timed, one function per contender, and the promise it is held to. Contenders of a row run in
turn, so that a busy moment of the machine hits all of them; each time is the minimum over the repeats. A turn begins
with a pause: threads of the contender before may wait for work in a loop for a while (those of OpenBLAS do for about
20 ms) and would take a processor from this one. A contender that fails is shown as failed, with the exception, and the
others go on. Nothing here gates a test.
"""

import argparse
import gc
import importlib
import json
import math
import os
import pathlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# The oracle runs on the CPU, as the target does.
os.environ.setdefault("JAX_PLATFORMS", "cpu")


# Seconds of a turn, and of the pause before it.
TURN = 0.05
PAUSE = 0.03


@dataclass
class Row:
    """One line of the table.

    Args:
        name: what is timed.
        contenders: name of a library -> function that sets up and gives the function to time; each call of that one
            counts as `calls` of what is timed.
        target: the bound that PROMISES sets, in seconds, or as a ratio to NumPy where `against` says so.
        against: None for a bound in seconds, "numpy" for a ratio to NumPy's time.
        calls: how many of the timed thing one call of a function makes.
        budget: seconds to spend on each contender.
        once: whether functions are timed call by call (they build something new each time) rather than in loops.
        note: gives a text that stands at the end of the measured row's line.
    """

    name: str
    contenders: dict[str, Callable[[], Callable[[], object]]]
    target: float | None = None
    against: str | None = None
    calls: int = 1
    budget: float = 0.4
    once: bool = False
    note: Callable[["Row"], str] | None = None
    times: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def loop_time(function, count):
    """Seconds of `count` calls."""
    clock = time.perf_counter
    rounds = range(count)
    start = clock()
    for _ in rounds:
        function()
    return clock() - start


def calibrate(function, once):
    """Calls per repeat, so that a repeat takes about two milliseconds; also warms up."""
    if once:
        function()
        return 1
    count = 1
    while (elapsed := loop_time(function, count)) < 2e-3 and count < 1_000_000:
        count = max(count * 2, int(count * 2.2e-3 / max(elapsed, 1e-7)))
    return count


def first_line(error):
    return f"{type(error).__name__}: {error}".splitlines()[0]


def prepare(row):
    """Sets the contenders up; gives the functions to time with their numbers of calls."""
    ready = {}
    for name, setup in row.contenders.items():
        try:
            function = setup()
            ready[name] = function, calibrate(function, row.once)
        except Exception as error:
            row.failures[name] = first_line(error)
    return ready


def turn(function, count):
    """Repeats for a while; gives the time spent and the best time of a call."""
    spent, best = 0.0, math.inf
    while spent < TURN:
        elapsed = loop_time(function, count)
        spent += elapsed
        best = min(best, elapsed / count)
    return spent, best


def measure(row):
    """Fills the row's times and failures."""
    ready = prepare(row)
    spent = dict.fromkeys(ready, 0.0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        while active := [n for n in ready if spent[n] < row.budget]:
            for name in active:
                time.sleep(PAUSE)
                elapsed, best = turn(*ready[name])
                spent[name] += elapsed
                row.times[name] = min(best / row.calls, row.times.get(name, math.inf))
            gc.collect()
    finally:
        if collecting:
            gc.enable()


def show_time(seconds):
    """Three significant digits with a fitting unit."""
    for unit, scale in (("s ", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= scale or unit == "ns":
            return f"{seconds / scale:.3g} {unit}"
    return ""


def verdict(row, target):
    """The promise and whether it holds."""
    if row.target is None or target not in row.times:
        return ""
    if row.against is None:
        return f"{'ok  ' if row.times[target] <= row.target else 'MISS'} ≤ {show_time(row.target).strip()}"
    if row.against not in row.times:
        return ""
    ratio = row.times[target] / row.times[row.against]
    return f"{'ok  ' if ratio <= row.target else 'MISS'} ≤ {row.target:g}x {row.against}"


def show_ratio(row, target, other):
    """How many times faster the target is than another contender."""
    if target not in row.times or other not in row.times:
        return ""
    return f"{row.times[other] / row.times[target]:.2f}x"


def print_row(row, target, names):
    times = [show_time(row.times[n]) if n in row.times else "failed" if n in row.failures else "" for n in names]
    ratios = [show_ratio(row, target, n) for n in names if n != target]
    cells = "".join(f"{cell:>11}" for cell in [*times, *ratios])
    print(f"{row.name:<51}{cells}   {row.note(row) if row.note else verdict(row, target)}", flush=True)
    for name, failure in row.failures.items():
        print(f"    {name} failed: {failure[:150]}")


def parse_arguments(description, **flags):
    """The options of all benchmarks, and flags that one of them has by itself: name -> what it does."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--target", default="ferrax", help="the library that is held to the promises")
    parser.add_argument("--only", default="", help="run the rows whose name matches this expression")
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--slow", action="store_true", help="also run what takes JAX minutes")
    for name, text in flags.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--json", type=pathlib.Path, help="write the times there")
    return parser.parse_args()


def libraries(options):
    """Name -> (module, numpy module) of the target and of JAX, for rows that run on both."""
    names = [options.target] + ([] if options.no_jax or options.target == "jax" else ["jax"])
    return {n: (importlib.import_module(n), importlib.import_module(f"{n}.numpy")) for n in names}


def run(rows, options, names=None):
    """Measures and prints rows made by functions without arguments; `names` are the contenders, ratios to the first."""
    if names is None:
        names = [options.target, "numpy"] + ([] if options.no_jax or options.target == "jax" else ["jax"])
    target = names[0]
    head = [*names, *(f"vs {n}" for n in names if n != target)]
    print(f"{'':<51}{''.join(f'{h:>11}' for h in head)}   promise")
    done = []
    for make in rows:
        for row in make():
            if not re.search(options.only, row.name):
                continue
            measure(row)
            print_row(row, target, names)
            done.append(row)
    if options.json:
        data = {r.name: {"seconds": r.times, "failures": r.failures} for r in done}
        options.json.write_text(json.dumps(data, indent=1))
    return done
