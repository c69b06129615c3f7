"""Rows of primitives that need a program of their own: control flow, custom rules, callbacks, random keys.

Each is a function of the module (`jax` or `ferrax`) and of numbers, with the numbers it is called with. `ONLY_RUST`
are the primitives that Python cannot bind.
"""

from importlib import import_module

import numpy as np

PROGRAMS = {}

X = np.asarray([0.3, -1.2, 2.0], "float32")
SMALL = np.float32(0.7)

#: Primitive -> where it is tried instead.
ONLY_RUST = {
    "eq_to": "crates/ferrax-ops/tests/kernels.rs",
    "le_to": "crates/ferrax-ops/tests/kernels.rs",
    "lt_to": "crates/ferrax-ops/tests/kernels.rs",
    "dim_as_value": "tests/export: it needs a symbolic size",
    "ffi_call": "tests/ffi: it needs a library",
    "while_linear": "the row of while: only the tape of a derivative holds it",
    "custom_vjp_linear": "the row of custom_vjp_call: only the tape of a derivative holds it",
    "preduced": "tests/sharding: it needs a mesh",
    "psum_invariant": "tests/sharding: it needs a mesh",
    "vary_unreduced_cast_p": "tests/sharding: it needs a mesh",
    "pvary": "tests/sharding: it needs a mesh",
    "sharding_constraint": "tests/sharding: it needs a mesh",
}

#: No derivatives, no batches: they are compared as they are.
PLAIN = {"random_bits", "random_clone", "random_fold_in", "random_seed", "random_split", "random_unwrap", "random_wrap",
         "threefry2x32", "io_callback", "debug_callback", "debug_print", "pure_callback"}  # fmt: skip


def module(jax, name):
    """A module of the library."""
    return import_module(f"{jax.__name__}.{name}")


def program(name, *args):
    """Adds the decorated function as the row of a primitive, to be called with these numbers."""

    def add(function):
        PROGRAMS[name] = function, args
        return function

    return add


@program("cond", X)
def cond(jax, x):
    return jax.lax.cond(x.sum() > 0, lambda v: jax.numpy.sin(v), lambda v: v * v, x)


@program("while", X)
def while_(jax, x):
    return jax.lax.while_loop(lambda v: v.sum() < 5.0, lambda v: v + jax.numpy.cos(v) ** 2, x)


@program("scan", X)
def scan(jax, x):
    step = lambda carry, v: (carry * jax.numpy.cos(v), carry + v)
    return jax.lax.scan(step, jax.numpy.asarray(1.5, x.dtype), x)


@program("jit", X)
def jit(jax, x):
    return jax.jit(lambda v: jax.numpy.exp(v) * v)(x)


@program("custom_jvp_call", X)
def custom_jvp_call(jax, x):
    @jax.custom_jvp
    def f(v):
        return jax.numpy.sin(v)

    f.defjvp(lambda p, t: (f(*p), 3.0 * t[0] * p[0]))
    return f(x)


@program("custom_vjp_call", X)
def custom_vjp_call(jax, x):
    f = jax.custom_vjp(lambda v: jax.numpy.sin(v))
    f.defvjp(lambda v: (jax.numpy.sin(v), v), lambda v, g: (5.0 * v * g,))
    return f(x)


@program("remat2", X)
def remat2(jax, x):
    return jax.checkpoint(lambda v: jax.numpy.sin(jax.numpy.sin(v)))(x)


@program("name", X)
def name(jax, x):
    return jax.numpy.sin(module(jax, "ad_checkpoint").checkpoint_name(x * x, "square"))


@program("custom_vmap_call", X)
def custom_vmap_call(jax, x):
    f = module(jax, "custom_batching").custom_vmap(lambda v: jax.numpy.sin(v))
    f.def_vmap(lambda size, mapped, v: (jax.numpy.sin(v), mapped[0]))
    return f(x)


@program("custom_linear_solve", X)
def custom_linear_solve(jax, x):
    scale = 2 + x * x
    return jax.lax.custom_linear_solve(lambda v: v * scale, x, lambda matvec, b: b / scale, symmetric=True)


@program("add_any", X)
def add_any(jax, x):
    return jax.grad(lambda v: (jax.numpy.sin(v) * jax.numpy.cos(v)).sum())(x)


@program("pure_callback", X)
def pure_callback(jax, x):
    return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct((3,), "float32"), x)


@program("io_callback", X)
def io_callback(jax, x):
    return module(jax, "experimental").io_callback(
        lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((3,), "float32"), x
    )


@program("debug_callback", X)
def debug_callback(jax, x):
    jax.debug.callback(lambda v: None, x)
    return x + 1


@program("debug_print", X)
def debug_print(jax, x):
    jax.debug.print("", x, skip_format_check=True)
    return x + 1


@program("random_seed", np.int32(7))
def random_seed(jax, seed):
    return jax.random.key_data(jax.random.key(seed))


@program("random_split", np.int32(7))
def random_split(jax, seed):
    return jax.random.key_data(jax.random.split(jax.random.key(seed), (2, 2)))


@program("random_fold_in", np.int32(7))
def random_fold_in(jax, seed):
    return jax.random.key_data(jax.random.fold_in(jax.random.key(seed), seed))


@program("random_bits", np.int32(7))
def random_bits(jax, seed):
    return jax.random.bits(jax.random.key(seed), (5,))


@program("random_clone", np.int32(7))
def random_clone(jax, seed):
    return jax.random.key_data(jax.random.clone(jax.random.key(seed)))


@program("random_unwrap", np.int32(7))
def random_unwrap(jax, seed):
    return jax.random.key_data(jax.random.key(seed))


@program("random_wrap", np.asarray([1, 2], "uint32"))
def random_wrap(jax, data):
    return jax.random.bits(jax.random.wrap_key_data(data), (3,))


@program("threefry2x32", np.asarray([1, 2], "uint32"))
def threefry2x32(jax, key):
    count = np.arange(6, dtype="uint32")
    if jax.__name__ == "ferrax":
        return jax.numpy.concatenate(jax._ferrax.lax.threefry2x32(key[0], key[1], count[:3], count[3:]))
    from jax.extend.random import threefry_2x32

    return threefry_2x32(key, count)


@program("permute_rows", np.linspace(-1.5, 2.0, 12).reshape(4, 3).astype("float32"))
def permute_rows(jax, x):
    return jax.vmap(lambda v: jax.lax.ppermute(v, "i", [(0, 3), (1, 1), (2, 0), (3, 2)]), axis_name="i")(x)


#: Operations on rows: the `vmap` that names their axis resolves them, and programs do not show them.
COLLECTIVES = {
    "psum": lambda lax, v: lax.psum(v, "i") * v,
    "pmax": lambda lax, v: lax.pmax(v, "i") + v,
    "pmin": lambda lax, v: lax.pmin(v, "i") + v,
    "ppermute": lambda lax, v: lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 0)]),
    # JAX's own fails under vmap: what it says is a row of the gathered ones.
    "pbroadcast": lambda lax, v: (
        lax.pbroadcast(v, "i", 1) if lax.__name__.startswith("ferrax") else lax.all_gather(v, "i")[1]
    ),
    "all_gather": lambda lax, v: lax.all_gather(v, "i") * v,
    "all_to_all": lambda lax, v: lax.all_to_all(v, "i", 0, 0) * v,
    "reduce_scatter": lambda lax, v: lax.psum_scatter(v, "i"),
    "axis_index": lambda lax, v: lax.axis_index("i") * v,
}
TABLE = np.linspace(-1.5, 2.0, 9).reshape(3, 3).astype("float32")


def collective(function):
    """The row of a collective: every row of a table with its axis named."""
    return lambda jax, x: jax.vmap(lambda v: function(jax.lax, v), axis_name="i")(x)


for _name, _function in COLLECTIVES.items():
    PROGRAMS[_name] = collective(_function), (TABLE,)
