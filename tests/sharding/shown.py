"""Values inside functions that `shard_map` runs, as text; evaluated by ferrax or JAX in a process of its own.

`python shown.py ferrax` prints a JSON object: for each case what the function printed. Read next: `test_shown.py`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys

#: Bodies: `show` prints.
CASES = {
    "a part": lambda jax, show: lambda x: show(x, repr(x), f"{x}"),
    "numbers": lambda jax, show: lambda x: show(x.sum(), [x[0, 0]]),
    "the same everywhere": lambda jax, show: lambda x: show(jax.lax.psum(x, ("i", "j")), jax.numpy.zeros(2)),
    "the same along one axis": lambda jax, show: lambda x: show(jax.lax.psum(x, "i"), jax.lax.psum(x, "j")),
    "places": lambda jax, show: lambda x: show(jax.lax.axis_index("i"), jax.lax.axis_index("j")),
    "gathered": lambda jax, show: (
        lambda x: show(jax.lax.all_gather(x, "j", axis=1), jax.lax.ppermute(x, "i", [(0, 1)]))
    ),
    "another axis in front": lambda jax, show: lambda x: show(x.T * 2, x[None] > 3),
    "types": lambda jax, show: (
        lambda x: show(
            jax.typeof(x), repr(jax.typeof(jax.lax.psum(x, "i"))), jax.typeof(jax.lax.psum(x, ("i", "j"))).str_short()
        )
    ),
    "a type that varies after a cast": lambda jax, show: (
        lambda x: show(jax.typeof(jax.lax.pcast(jax.numpy.zeros(2), "i", to="varying")))
    ),
    "a callback": lambda jax, show: lambda x: jax.debug.callback(lambda v: show(v.shape), x),
    "a map inside": lambda jax, show: lambda x: jax.vmap(lambda v: show(type(v).__name__, jax.typeof(v)))(x),
}


def main(library: str) -> None:
    """Runs all cases and prints what they printed."""
    jax = importlib.import_module(library)
    devices = jax.devices()[:4]
    mesh = jax.sharding.Mesh([devices[:2], devices[2:]], ("i", "j"))
    x = jax.numpy.arange(24.0).reshape(4, 6)
    found = {}
    for name, case in CASES.items():
        text = io.StringIO()
        body = case(jax, lambda *values: print(*values, sep="\n", file=text))
        spec = jax.sharding.PartitionSpec("i", "j")

        def f(x, body=body):
            body(x)
            return x

        with contextlib.redirect_stdout(io.StringIO()):
            jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)(x)
            jax.effects_barrier()
        found[name] = text.getvalue()
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    main(sys.argv[1])
