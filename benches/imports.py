"""What an import costs beyond NumPy's, and a first result: processes in turn, the least and the median of each.

`python benches/imports.py` prints milliseconds of the processor and of the clock; on a busy machine only the first mean
something. `--target jax` measures JAX in the place of ferrax. Modules are compiled before anything is timed.
"""

import argparse
import os
import statistics
import sys
import time

PROGRAMS = {
    "import numpy": "import numpy",
    "import ferrax, ferrax.numpy": "import numpy, {0}, {0}.numpy",
    "first jitted result": "import {0}, {0}.numpy as np; print({0}.jit(lambda x: x * 2 + 1)(np.arange(3.0)))",
    "first gradient": "import {0}, {0}.numpy as np; print({0}.grad(lambda x: np.sum(np.sin(x) ** 2))(np.ones(3)))",
}


def run(program):
    """Milliseconds of the processor and of the clock that a process takes."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ, file_actions=quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"it ended with status {status}: {program}")
    return 1e3 * (used.ru_utime + used.ru_stime), 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--target", default="ferrax")
    parser.add_argument("--count", type=int, default=15, help="processes of each program")
    chosen = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    programs = {name: text.format(chosen.target) for name, text in PROGRAMS.items()}
    for program in programs.values():
        run(program)
    times = {name: [] for name in programs}
    for _ in range(chosen.count):
        for name, program in programs.items():
            times[name].append(run(program))
    print(f"{'milliseconds beyond import numpy':<34}{'processor':>20}{'clock':>20}")
    least = [[f(t) for t in zip(*times["import numpy"], strict=True)] for f in (min, statistics.median)]
    for name, measured in times.items():
        cells = []
        for i, column in enumerate(zip(*measured, strict=True)):
            base = (0, 0) if name == "import numpy" else (least[0][i], least[1][i])
            cells.append(f"{min(column) - base[0]:.1f}, {statistics.median(column) - base[1]:.1f}")
        print(f"{name.replace('ferrax', chosen.target):<34}" + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
