"""What calls over eight virtual CPU devices cost, and programs over their parts beside those over whole arrays.

Rows of calls are held to 5 µs; those of programs compare `shard_map` with the same function without it (column
`whole`), 1.3 times its time at most.
"""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

from functools import partial

import harness


def placed(jax, jnp, kind, size=64):
    mesh = jax.make_mesh((8,), ("i",), axis_types=(getattr(jax.sharding.AxisType, kind),))
    sharding = jax.NamedSharding(mesh, jax.P("i"))
    return mesh, sharding, jax.device_put(jnp.arange(size, dtype=jnp.float32) / size, sharding)


#: name -> what makes the call, from the library, the mesh, the sharding and an array of it
CALLS = {
    "x + x": lambda jax, mesh, sharding, x: lambda: x + x,
    "x.sum()": lambda jax, mesh, sharding, x: x.sum,
    "jit": lambda jax, mesh, sharding, x: partial(jax.jit(lambda v: v * v + 1), x),
    "jit of a dict": lambda jax, mesh, sharding, x: partial(jax.jit(lambda d: d["v"] + 1), {"v": x}),
    "jit with in_shardings": lambda jax, mesh, sharding, x: partial(jax.jit(lambda v: v + 1, in_shardings=sharding), x),
    "jit of shard_map": lambda jax, mesh, sharding, x: partial(
        jax.jit(jax.shard_map(lambda v: v + 1, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))), x
    ),
}


def call_rows(libs):
    def setup(make, kind, jax, jnp):
        mesh, sharding, x = placed(jax, jnp, kind)
        return make(jax, mesh, sharding, x)

    for kind in ("Auto", "Explicit"):
        for name, make in CALLS.items():
            contenders = {n: partial(setup, make, kind, *lib) for n, lib in libs.items()}
            yield harness.Row(f"{name}, 64 numbers, {kind.lower()} axes", contenders, target=5e-6)


#: name -> the function of one device's part, and the same of the whole array
PROGRAMS = {
    "elementwise": (lambda jax, x: x * 2 + 1, lambda jax, x: x * 2 + 1),
    "psum of sums": (lambda jax, x: jax.lax.psum((x * x).sum(), "i"), lambda jax, x: (x * x).sum()),
    "psum of parts": (lambda jax, x: jax.lax.psum(x * x, "i"), lambda jax, x: (x * x).reshape(8, -1).sum(0)),
}


def program_rows(libs):
    def setup(name, mapped, jax, jnp, size):
        mesh, _, x = placed(jax, jnp, "Auto", size)
        out = jax.P("i") if name == "elementwise" else jax.P()
        fun = partial(PROGRAMS[name][not mapped], jax)
        fun = jax.jit(jax.shard_map(fun, mesh=mesh, in_specs=jax.P("i"), out_specs=out) if mapped else fun)
        x = x if mapped else jax.device_put(x, jax.devices()[0])
        return lambda: fun(x).block_until_ready()

    (target, *_) = libs
    for name in PROGRAMS:
        for size in (1 << 14, 1 << 18, 1 << 22):
            contenders = {n: partial(setup, name, True, *lib, size) for n, lib in libs.items()}
            contenders["whole"] = partial(setup, name, False, *libs[target], size)
            yield harness.Row(f"shard_map, {name}, {size} numbers", contenders, target=1.3, against="whole")


def main():
    options = harness.parse_arguments(__doc__)
    libs = harness.libraries(options)
    harness.run([lambda: call_rows(libs), lambda: program_rows(libs)], options, [*libs, "whole"])


if __name__ == "__main__":
    main()
