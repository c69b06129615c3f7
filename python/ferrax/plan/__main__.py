"""`python -m ferrax.plan script.py --mesh 64x8`: how a function of a script scales, without devices.

The script defines a function `plan(mesh)` that gives the function of a step and its arguments: `ShapeDtypeStruct`s with
shardings over the mesh. Several `--mesh` give a row each, so that one sees a program scale.
"""

from __future__ import annotations

import argparse
import math
import runpy
import sys
from typing import Any

from ferrax.plan._machines import MACHINES
from ferrax.plan._report import Plan, plan, seconds_text, size_text

#: The names of a mesh's axes where nobody gives others, by how many there are.
_NAMES = {1: "data", 2: "data,model", 3: "data,model,expert"}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ferrax.plan", description=__doc__.splitlines()[0])
    parser.add_argument("script", help="a file with a function plan(mesh) that gives a function and its arguments")
    parser.add_argument(
        "--mesh", action="append", required=True, help="sizes of the mesh's axes: 64x8; several times for a table"
    )
    parser.add_argument("--axes", help="names of the axes, with commas; data, model and expert by default")
    parser.add_argument("--machine", default="h100", choices=sorted(MACHINES), help="what the devices are")
    parser.add_argument(
        "--donate", action="append", type=int, default=[], help="number of an argument whose memory results may take"
    )
    parser.add_argument("--function", default="plan", help="the function's name")
    return parser.parse_args(argv)


def _mesh(sizes: str, axes: str | None) -> Any:
    from ferrax.sharding import AbstractMesh

    try:
        numbers = tuple(int(n) for n in sizes.split("x"))
    except ValueError:
        raise SystemExit(f"--mesh takes numbers with x between them, as 64x8; got {sizes}") from None
    names = (axes or _NAMES.get(len(numbers), "")).split(",")
    if len(names) != len(numbers) or not all(names):
        raise SystemExit(f"--mesh {sizes} has {len(numbers)} axes; --axes names {', '.join(names) or 'none'}")
    return AbstractMesh(numbers, tuple(names))


def table(plans: list[Plan]) -> str:
    """One row a plan; a device's share of its time that is computation says how well the program scales."""
    rows = [f"{'mesh':<18}{'devices':>8}{'memory':>10}{'computes':>11}{'exchanges':>11}{'step':>24}{'computing':>12}"]
    for p in plans:
        fast, slow = p.seconds
        devices = math.prod(p.mesh.axis_sizes)
        share = f"{100 * p.compute_seconds / slow:.0f}-{100 * p.compute_seconds / fast:.0f} %" if slow else "-"
        rows.append(
            f"{'x'.join(map(str, p.mesh.axis_sizes)):<18}{devices:>8,}{size_text(p.memory):>9}B"
            f"{seconds_text(p.compute_seconds):>11}{seconds_text(p.exchange_seconds):>11}"
            f"{seconds_text(fast) + ' to ' + seconds_text(slow):>24}{share:>12}"
        )
    return "\n".join(rows)


def main(argv: list[str] | None = None) -> int:
    """Prints the plans; gives the process's exit status."""
    options = _arguments(argv)
    function = runpy.run_path(options.script).get(options.function)
    if not callable(function):
        raise SystemExit(f"{options.script} has no function {options.function}(mesh)")
    plans = []
    for sizes in options.mesh:
        mesh = _mesh(sizes, options.axes)
        step, *args = function(mesh)
        plans.append(plan(step, *args, mesh=mesh, machine=options.machine, donate_argnums=options.donate))
    print(plans[0] if len(plans) == 1 else table(plans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
