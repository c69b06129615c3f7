"""Programs over explicit axes of a mesh, for `test_typed.py`: what they print is compared between ferrax and JAX.

`python typed.py ferrax` prints a JSON object: for each case what it printed, types, shardings and errors. A case is
source code; `@E(sizes, names)` behind its name makes a mesh with explicit axes the one in use, `@A` one with automatic
axes.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
import warnings

#: What the cases find: `ty` shows a type, `sh` the specs of results, `run` prints what a function gives or raises.
SETUP = """
import functools
import numpy as np
importlib.import_module(jax.__name__ + ".experimental.layout")
P = jax.sharding.PartitionSpec
NamedSharding, AxisType = jax.sharding.NamedSharding, jax.sharding.AxisType
auto_axes, explicit_axes = jax.sharding.auto_axes, jax.sharding.explicit_axes
def ty(x):
    return jax.typeof(x).str_short(True)
def sh(tree):
    return jax.tree.map(lambda v: str(v.sharding.spec), tree)
def run(f, *args, text=60):
    try:
        print(f(*args))
    except Exception as e:
        print(type(e).__name__, str(e)[:text])
def grads(f, *args):
    n = tuple(range(len(args)))
    g = jax.grad(lambda *a: f(*a).sum(), argnums=n)
    return sh(g(*args)), sh(jax.jit(g)(*args))
def mesh_of(sizes, names, kind):
    devices = np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return jax.sharding.Mesh(devices, names, axis_types=(kind,) * len(names))
def put(x, *spec, **kwargs):
    return jax.device_put(np.asarray(x, np.float32), P(*spec, **kwargs))
def ones(*shape):
    return np.arange(float(np.prod(shape))).reshape(shape)
"""

CASES = """
### programs print types @E((2, 2), ("x", "y"))
a = put(ones(8, 2), "x", "y")
f = jax.jit(lambda x, y: jnp.sin(x) * y)
print(f.trace(a, a).jaxpr)
print(sh(f(a, a)), ty(f(a, a)))
### lowered programs say shardings @E((2, 2), ("x", "y"))
import re
a = put(ones(8, 2), "x", "y")
for f in (lambda x: jnp.sin(x) * x, lambda x: jax.sharding.reshard(x.sum(1), P()), lambda x: jnp.sin(x.T)):
    text = jax.jit(f).lower(a).as_text()
    print(re.findall(r"sdy.sharding_constraint %\\S+ (.*)", text), re.findall(r"%arg0.*?#sdy.sharding(<[^>]*>)", text))
    print(re.findall(r"sdy.mesh @mesh = <[^>]*>", text))
due = lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P("x", None, unreduced={"y"}))
text = jax.jit(due).lower(a, put(ones(2, 8), "y", None)).as_text()
print([t for t in re.findall(r"sdy.sharding_constraint %\\S+ (.*)", text) if "unreduced" in t])
### products @E((2, 2), ("x", "y"))
specs = [("x y", "y _"), ("x _", "_ y"), ("x _", "_ x"), ("x y", "x y"), ("y x", "_ _"), ("x _", "x _"), ("_ y", "_ y")]
for s, t in specs:
    a, b = (put(ones(*n), *(None if e == "_" else e for e in u.split())) for n, u in (((8, 2), s), ((2, 8), t)))
    f = jax.jit(lambda x, y: x @ y)
    run(lambda: (sh(f(a, b)), sh(a @ b), grads(f, a, b)))
    g = jax.jit(lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P("x", None)))
    run(lambda: (sh(g(a, b)), grads(g, a, b)))
### batches of products @E((2, 2), ("x", "y"))
a = put(ones(8, 2, 2), "x", None, "y")
for spec in (("x",), ("y",), (None, None, "x"), (None, None, "y")):
    b = put(ones(8, 2, 2), *spec)
    run(lambda: sh(jax.jit(lambda x, y: jnp.einsum("bij,bjk->bik", x, y))(a, b)))
### elementwise @E((2, 2), ("x", "y"))
pairs = [("x y", "x _"), ("x y", "_ y"), ("x _", "_ x"), ("x y", "y x")]
for s, t in pairs:
    a, b = (put(ones(8, 8), *(None if e == "_" else e for e in u.split())) for u in (s, t))
    run(lambda: sh(jax.jit(lambda x, y: x + y)(a, b)))
    run(lambda: sh(jnp.maximum(a, b)))
run(lambda: sh(jax.jit(lambda x, y: x * y)(put(ones(8, 1), "x", None), put(ones(1, 8), None, "y"))))
### reductions and movements @E((2, 2), ("x", "y"))
a = put(ones(8, 2, 2), "x", "y", None)
def f(x):
    for axis in (0, 1, 2, (0, 1), None):
        print(ty(x.sum(axis)), ty(x.max(axis)), ty(x.mean(axis)))
    print(ty(x.T), ty(jnp.swapaxes(x, 0, 1)), ty(x[None]), ty(x.argmax(0)), ty(x[..., None]), ty(x.astype("bfloat16")))
    print(ty(jax.lax.squeeze(x[..., :1], (2,))), ty(jax.nn.softmax(x)), ty(jnp.where(x > 0, x, 0)), ty(x**3))
    return x.sum(0)
print(grads(jax.jit(f), a))
### what has to be told @E((2, 2), ("x", "y"))
a = put(ones(8, 2), "x", "y")
functions = [
    lambda x: jnp.cumsum(x, 0), lambda x: jax.lax.cumlogsumexp(x, 1), lambda x: jnp.sort(x, 0),
    lambda x: jax.lax.top_k(x, 1),
    lambda x: x[0], lambda x: x[:, 0], lambda x: x[1:3], lambda x: jax.lax.dynamic_slice_in_dim(x, 0, 1, 1),
    lambda x: x[jnp.array([0, 1])], lambda x: x.at[0].set(0), lambda x: x.reshape(2, 8), lambda x: jnp.diff(x, axis=0),
    lambda x: jax.lax.dynamic_update_slice(x, jnp.zeros((1, 1)), (0, 0)), lambda x: jnp.roll(x, 1, 0),
    lambda x: jax.lax.bitcast_convert_type(x, "int16"), lambda x: jnp.concatenate([x, x]),
    lambda x: jnp.stack([x, x]),
    lambda x: x.reshape(16), lambda x: x.reshape(4, 2, 2), lambda x: jnp.pad(x, 1),
    lambda x: jnp.pad(x, ((0, 1), (0, 0))),
    lambda x: jax.lax.split(x, (1, 1), axis=1), lambda x: jnp.linalg.cholesky(x[:2]), lambda x: jnp.argsort(x, 1),
]
for f in functions:
    run(lambda: jax.tree.map(ty, jax.eval_shape(f, a)), text=50)
### reshapes @E((2, 2), ("x", "y"))
both = ("x", "y")
cases = [
    ((4, 6, 8), (4, 2, 3, 8), ("x", None, "y")), ((4, 6, 8), (4, 2, 3, 4, 2), ("x", None, None)),
    ((4, 12, 8), (4, 4, 3, 8), (None, both, None)), ((4, 6, 8), (4, 3, 2, 8), ("x", "y", None)),
    ((10, 1), (2, 5, 1), ("x", None)), ((4, 2, 3, 8), (4, 6, 8), ("x", None, None, "y")),
    ((2, 2, 6, 8), (4, 6, 8), (None, None, "y", "x")), ((4, 2, 3, 2, 4), (4, 6, 8), ("x", None, None, None, None)),
    ((4, 2, 6, 8), (4, 12, 8), (None, None, "y", "x")), ((16, 1), (1, 16, 1), ("x", None)), ((8, 2), (16,), both),
    ((16,), (4, 4), (both,)), ((16,), (2, 8), (both,)),
]
for old, new, spec in cases:
    a = put(ones(*old), *spec)
    run(lambda: (sh(jax.jit(lambda x: jax.lax.reshape(x, new))(a)), grads(lambda x: jax.lax.reshape(x, new), a)))
### gathers and scatters @E((2, 2), ("x", "y"))
table, rows = put(ones(64, 16), "x", None), jax.device_put(np.arange(256).reshape(64, 4) % 16, P("x", None))
run(lambda: sh(jax.jit(lambda e, t: e.at[:, t].get())(table, jax.device_put(np.arange(32).reshape(8, 4) % 16, P()))))
run(lambda: sh(jax.jit(jax.vmap(lambda x, y: x[y]))(table, rows)))
words = put(ones(64, 16), None, "x")
look = jax.jit(lambda e, t: e.at[t].get(out_sharding=P("x", None, None)))
run(lambda: (sh(look(words, rows)), sh(jax.jit(jax.grad(lambda e: look(e, rows).sum()))(words))))
run(lambda: jax.jit(lambda e, t: e[t])(words, rows))
for spec, new in ((("x", None, "y"), ("x", "y")), (("x", None, None), ("x", None))):
    a, i, b = put(np.zeros((2, 10, 8)), *spec), jax.device_put(np.array([2, 3]), P("x")), put(np.ones((2, 8)), *new)
    for f in (lambda x, i, y: x.at[i].set(y), lambda x, i, y: x.at[i].add(y), lambda x, i, y: x.at[i].max(y)):
        run(lambda: sh(jax.jit(jax.vmap(f))(a, i, b)))
### new arrays @E((2, 2), ("x", "y"))
def f():
    a = jnp.ones((8, 2), out_sharding=P("x", "y"))
    print(ty(a), ty(jnp.ones(8)), ty(jnp.arange(8, out_sharding=P("x"))))
    print(ty(jnp.full((8, 2), 3.0, out_sharding=P("x"))))
    print(ty(jnp.zeros_like(a)), ty(jnp.full_like(a, 1)), ty(jax.nn.one_hot(a.sum(1).astype(int), 4)))
    return a
print(sh(jax.jit(f)()))
### initial values, and what joins @E((2,), ("x",))
new = jax.nn.initializers
makers = [new.he_normal(), new.constant(-7), new.uniform(), new.normal(), new.zeros, new.ones]
print([sh(f(jax.random.key(0), (8, 2), jnp.float32, out_sharding=P("x"))) for f in makers])
z, at = jnp.zeros((2, 10)), jnp.array([1, 3, 7, 9])
print(sh(jax.sharding.reshard(z, P("x", None)).at[:, at].add(5.0)))
x, i = put(ones(4, 3), "x"), jax.device_put(np.array([0, 1, 2, 0]), P("x"))
def swap(x, i):
    return x.at[i].set(x.at[i].get(out_sharding=jax.typeof(x).sharding), out_sharding=jax.typeof(x).sharding)
print(sh(jax.jit(jax.vmap(swap))(x, i)))
print(sh(jax.lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (4, 8), out_sharding=P("x"))[1]))
print(sh(jax.lax.full_like(x, 0)), sh(jax.jit(lambda v: jax.lax.full_like(v, 0))(x)))
run(lambda: jax.set_mesh(mesh_of((2,), ("x",), AxisType.Manual)))
### loops and branches @E((2, 2), ("x", "y"))
a, xs = put(ones(2, 8), None, "x"), put(ones(8, 8, 2), None, "x", "y")
def body(c, x):
    y = jnp.einsum("xy,yz->xz", c, x, out_sharding=P(None, "y"))
    print(ty(c), ty(x), ty(y))
    return jnp.einsum("xy,yz->xz", y, x.T, out_sharding=P(None, "x")), y
f = jax.jit(lambda c, xs: jax.lax.scan(body, c, xs))
print(sh(f(a, xs)))
print(sh(jax.jit(jax.grad(lambda c, x: f(c, x)[0].sum(), argnums=(0, 1)))(a, xs)))
run(lambda: f(a, jax.device_put(xs, P("x", None, None))))
whole = lambda v: jax.sharding.reshard(v, P())
run(lambda: jax.jit(lambda v: jax.lax.scan(lambda c, _: (whole(c), None), v, length=1))(a))
run(lambda: jax.jit(lambda v: jax.lax.while_loop(lambda c: c.sum() < 3, whole, v))(a))
run(lambda: jax.jit(lambda v: jax.lax.cond(True, lambda c: c, whole, v))(a))
run(lambda: sh(jax.jit(lambda v: jax.lax.fori_loop(0, 3, lambda i, c: 2 * c, v))(a)))
### maps @E((2, 2), ("x", "y"))
a = put(ones(8, 2), "x", "y")
def f(x):
    y = jax.sharding.reshard(2 * x, P(None))
    print(ty(x), ty(2 * x), ty(y))
    return y
print(sh(jax.vmap(f)(a)), sh(jax.jit(jax.vmap(jax.jit(f)))(a)), grads(jax.vmap(lambda v: v * v), a))
x, y = put(ones(4, 2, 2), "x", None, "y"), put(ones(2, 4, 2), None, "x", "y")
product = lambda x, y: jnp.einsum("xy,yz->xz", x, y, out_sharding=P(None, "y"))
print(sh(jax.vmap(product, in_axes=(0, 1), out_axes=2)(x, y)))
p, q = put(ones(8, 2), "x", None), put(ones(2, 8), None, "y")
run(lambda: jax.vmap(lambda x, y: x @ y, in_axes=(0, 1))(p, q))
run(lambda: jax.vmap(lambda x, y: x @ y, spmd_axis_name="y")(p, p))
print(sh(jax.vmap(lambda x: jnp.zeros(4), out_axes=-1)(jax.device_put(np.arange(8), P("x")))))
### axes of other kinds @E((2, 2), ("x", "y"))
a = put(ones(8, 2), "x", "y")
@functools.partial(auto_axes, axes="x", out_sharding=P("x", None))
def h(y):
    z = jnp.sin(y)
    w = jnp.einsum("xy,yz->xz", z, z.T, out_sharding=P(None, None))
    print(ty(y), ty(z), ty(w))
    return w
def g(x):
    w = h(2 * x)
    print(ty(w))
    return w
print(sh(jax.jit(g)(a)))
@functools.partial(auto_axes, out_sharding=P("x", "y"))
def product(y):
    print(ty(y))
    return y @ y.T
print(sh(product(a)), sh(jax.jit(product)(a)))
print(sh(jax.grad(lambda v: product(v).sum())(a)))
### explicit axes for a while @A((2, 2), ("x", "y"))
a = jax.device_put(ones(8, 2), NamedSharding(mesh, P("x", "y")))
@functools.partial(explicit_axes, in_sharding=P("x", "y"))
def h(y):
    z = jnp.einsum("ab,bc->ac", jnp.sin(y), y.T, out_sharding=P("x", None))
    print(ty(y), ty(z))
    return z
def f(x):
    w = h(2 * x)
    print(ty(w))
    return w
print(sh(jax.jit(f)(a)))
### assertions and abstract types @E((2,), ("x",))
f = jax.jit(lambda v: jax.lax.with_sharding_constraint(v, P("x")))
run(lambda: f(put(ones(8))))
print(f.trace(put(ones(8), "x")).jaxpr)
run(lambda: NamedSharding(mesh, P(P.UNCONSTRAINED)))
abstract = NamedSharding(mesh.abstract_mesh, P("x"))
v = jax.ShapeDtypeStruct((32,), jnp.float32, sharding=abstract)
print(sh(jnp.zeros_like(v)), jax.eval_shape(jnp.sin, v).sharding.spec, jax.jit(jnp.sin).eval_shape(v).sharding.spec)
print(jax.jit(jnp.sin).lower(v).compile().output_shardings.spec)
print(jax.core.ShapedArray((8, 2), np.float32, sharding=abstract))
run(lambda: jax.core.ShapedArray((5, 2), np.float32, sharding=abstract))
### no mesh in use
m = mesh_of((4, 2), ("x", "y"), AxisType.Explicit)
place = lambda v, *e: jax.device_put(v, NamedSharding(m, P(*e)))
a, b = place(ones(8, 2), "x", None), place(ones(2, 8), None, "y")
def f(x, y):
    z = x @ y
    print(ty(x), ty(y), ty(z))
    return 2 * z
g = jax.jit(f)
print(sh(g(a, b)), sh(g(a, b)), sh(jax.jit(lambda t: jax.tree.map(lambda v: 2 * v, t))({"a": a})))
run(lambda: g(place(ones(8, 2), "x", "y"), place(ones(2, 8), "y", None)))
run(lambda: place(ones(8, 2), "x", "y") @ place(ones(2, 8), "y", None))
print(jax.sharding.get_abstract_mesh())
### mapped functions beside explicit axes @E((2, 2), ("i", "j"))
def g(x):
    print(ty(x), ty(x * x))
    return x * x
def f(x):
    x = jax.shard_map(g, out_specs=P("i", None), axis_names=frozenset({"i"}))(x)
    print(ty(x))
    return x
v = put(ones(4, 8), "i", "j")
print(sh(jax.jit(f)(v)), sh(f(v)), grads(f, v))
print(sh(jax.jit(jax.shard_map(lambda x: 2 * x, out_specs=P("i", "j")))(v)))
print(sh(jax.jit(jax.smap(g, in_axes=0, out_axes=0, axis_name="i"))(v)))
print(sh(jax.jit(jax.vmap(jax.shard_map(lambda x: 2 * x, in_specs=P("j"), out_specs=P("j"))))(v)))
for specs in (P("j", "i"), P("i"), P("i", "j")):
    run(lambda: sh(jax.shard_map(lambda x: 2 * x, in_specs=specs, out_specs=P("i", "j"))(v)))
run(lambda: jax.shard_map(lambda x: x, in_specs=P("i"), out_specs=P("i"))(np.arange(8.0)))
### the mesh of a mapped function is the one in use @A((2, 2), ("x", "y"))
twice = jax.shard_map(lambda v: 2 * v, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
run(lambda: jax.shard_map(twice, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(jnp.arange(16.0)))
other = mesh_of((4,), ("z",), AxisType.Auto)
run(lambda: jax.shard_map(lambda v: v, mesh=other, in_specs=P("z"), out_specs=P("z"))(jnp.arange(16.0)))
inner = jax.shard_map(lambda v: 2 * v, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})
print(jax.shard_map(inner, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})(jnp.arange(8.0)).tolist())
### mapped functions beside several explicit axes @E((2, 1, 2, 2), ("i", "j", "k", "l"))
def g(x):
    print(ty(x))
    return x.T
f = jax.shard_map(g, out_specs=P("i", "j", None, None), axis_names=frozenset({"i", "j"}))
print(sh(jax.jit(f)(put(ones(4, 2, 2, 4), "i", "j", "k", "l"))))
### sums that are due @E((2, 2), ("x", "y"))
a, b = put(ones(4, 2), "x", "y"), put(ones(2, 4), "y", None)
due = lambda x, y: jnp.einsum("ij,jk->ik", x, y, out_sharding=P("x", None, unreduced={"y"}))
whole = lambda v: jax.sharding.reshard(v, P("x", None))
def f(x, y):
    z = due(x, y)
    print(ty(z), ty(z + z), ty(z.T), ty(whole(z)))
    return whole(z)
print(np.asarray(jax.jit(f)(a, b)).tolist(), sh(jax.jit(f)(a, b)))
print(sh(jax.jit(jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)))(a, b)))
for g in (lambda z, x: jnp.sin(z), lambda z, x: z + x.sum(), lambda z, x: z * z, lambda z, x: z @ z):
    run(lambda: jax.jit(lambda x, y: g(due(x, y), x))(a, b), text=40)
def terms(x, y):
    z = jax.lax.pcast(x @ y, "y", to="unreduced")
    return z
f = jax.shard_map(terms, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None, unreduced={"y"}))
print(np.asarray(jax.jit(lambda x, y: whole(f(x, y)))(a, b)).tolist())
total = jax.shard_map(lambda z: jax.lax.psum(z, "y"), in_specs=P("x", None, unreduced={"y"}), out_specs=P("x", None))
print(np.asarray(jax.jit(lambda x, y: total(due(x, y)))(a, b)).tolist())
print(sh(jax.jit(jax.grad(lambda x, y: total(due(x, y)).sum(), argnums=(0, 1)))(a, b)))
### sums that cannot be due @E((2, 2, 1), ("x", "y", "z"))
n = ones(8, 2)
made = lambda over: jax.jit(lambda x, y: jnp.einsum("xy,yz->xz", x, y, out_sharding=P("x", unreduced={over})))
run(lambda: made("z")(put(n, "x", "y"), put(n.T, "y", None)), text=120)
run(lambda: made("y")(put(n, "x", "y"), put(n.T, None, None)), text=150)
run(lambda: made("y")(put(n, "x", None), put(n.T, None, None)), text=120)
z = made("y")(put(n, "x", "y"), put(n.T, "y", None))
print(sh(z), z.sharding.shard_shape(z.shape), [s.data.shape for s in z.addressable_shards])
print(sh(jax.jit(lambda v: v + v)(z)))
### values that are the same everywhere @E((2,), ("x",))
r, s = put(ones(4), None, reduced={"x"}), put(ones(4, 4), "x", None)
print(sh(2 * r), sh(jnp.sin(r)), ty(r))
run(lambda: r * s)
print(sh(jax.jit(jax.grad(lambda r: (2 * r).sum()))(r)), sh(jax.grad(lambda r: (2 * r).sum())(r)))
### what HLO says of shardings
m, n = mesh_of((4, 2), ("x", "y"), AxisType.Auto), mesh_of((2, 2, 2), ("a", "b", "c"), AxisType.Auto)
cases = [
    (m, P("x", "y"), 2), (m, P("x"), 2), (m, P("y"), 1), (m, P(), 2), (m, P(("x", "y")), 1), (m, P(("y", "x")), 1),
    (m, P("y", "x"), 2), (n, P("c", "a"), 2), (n, P(("a", "c"), None, "b"), 3), (n, P("b"), 1),
    (n, P(None, ("c", "a")), 2),
]
for over, spec, rank in cases:
    h = NamedSharding(over, spec)._to_xla_hlo_sharding(rank)
    print(repr(h), h.is_replicated(), h.is_tiled(), h.num_devices(), h.num_dimensions(), h.replicate_on_last_tile_dim())
    if h.is_tiled():
        whole = NamedSharding(over, P())._to_xla_hlo_sharding(2)
        print(h.tile_assignment_dimensions(), h.tile_assignment_devices(), h == whole)
print(NamedSharding(m, P("x", "y")).is_equivalent_to(NamedSharding(m, P("x", "y", None)), 2))
### devices of programs
d, s = jax.devices(), NamedSharding(mesh_of((4,), ("x",), AxisType.Auto), P("x"))
one = jax.device_put(np.arange(4.0), d[5])
run(lambda: jax.jit(lambda x: jax.device_put(x, s))(one))
run(lambda: jax.jit(lambda x: jax.lax.with_sharding_constraint(x, s))(one))
run(lambda: jax.jit(lambda x: x, out_shardings=s)(one))
run(lambda: sh(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, s))(jnp.arange(4.0))))
there = jax.sharding.SingleDeviceSharding(d[1])
print(jax.jit(lambda x: jax.device_put(x, there) + 1)(np.arange(4)).sharding.device_set == {d[1]})
rows = NamedSharding(mesh_of((4,), ("x",), AxisType.Auto), P("x", None))
b = jax.device_put(ones(8, 2), rows)
print(sh(jax.jit(lambda x: (2 * x, x @ x.T, x.sum(1)))(b)))
layout = jax.experimental.layout
print(sh(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, layout.Format(layout.Layout((0, 1)), rows)))(b)))
wide = lambda v: jax.lax.with_sharding_constraint(v, NamedSharding(mesh_of((4, 2), ("x", "y"), AxisType.Auto), P("y")))
print(sh(jax.jit(jax.vmap(wide, spmd_axis_name="x"))(ones(8, 4))))
run(lambda: jax.vmap(wide, spmd_axis_name="y")(ones(8, 4)))
### operations that are differentiated have to be told @E((4, 2), ("x", "y"))
x = jax.device_put(jnp.arange(64.0).reshape(8, 8), P("x", "y"))
y = jax.device_put(jnp.arange(64.0).reshape(8, 8), P("y", "x"))
ambiguous = [
    lambda v: (v @ y).sum(), lambda v: (v + y).sum(), lambda v: v.reshape(64).sum(),
    lambda v: jnp.concatenate([v, y]).sum(), lambda v: jnp.sort(v, axis=0).sum(), lambda v: jnp.stack([v, y]).sum(),
    lambda v: v[jnp.array([1, 2])].sum(), lambda v: jnp.where(v > 1, v, y).sum(),
]
for f in ambiguous:
    for g in (jax.grad(f), jax.jit(jax.grad(f)), lambda v: jax.jvp(f, (v,), (v,)), lambda v: jax.linearize(f, v)[0]):
        run(lambda: jax.tree.map(ty, g(x)), text=50)
told = lambda v: jnp.einsum("ij,jk->ik", v, y, out_sharding=P("x")).sum() + jnp.tanh(v).max() + (v * v.T.T).mean()
print(ty(jax.grad(told)(x)), ty(jax.jit(jax.grad(told))(x)), ty(jax.jvp(jax.grad(told), (x,), (x,))[1]))
### keys that are divided @E((4, 2), ("x", "y"))
keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(mesh, P("x")))
data = jax.random.key_data(keys)
print(ty(data), ty(jax.random.wrap_key_data(data)), ty(jax.vmap(jax.random.uniform)(keys)))
for f in (jax.vmap(lambda k: jax.random.split(k, 4)), jax.vmap(lambda k: jax.random.bits(k, (3,))), jax.random.clone):
    print(ty(f(keys)), ty(jax.jit(f)(keys)))
### values that are divided alike
alike = importlib.import_module(jax.__name__ + ".experimental.shard_alike").shard_alike
m = mesh_of((2, 2), ("x", "y"), AxisType.Auto)
v, flat = jax.device_put(np.arange(16.0).reshape(8, 2), NamedSharding(m, P("x", "y"))), np.arange(16.0).reshape(8, 2)
print(sh(alike(v, flat)), sh(jax.jit(lambda v: alike(v, jnp.ones((8, 2))))(v)), sh(jax.jit(alike)(flat, v)))
twice = lambda v: alike(alike(v, v * 2)[1] @ v.T, jnp.arange(64.0).reshape(8, 8))
print(sh(jax.jit(twice)(v)))
def seen(v):
    a, b = alike(v, jnp.ones((8, 2)))
    jax.debug.inspect_array_sharding(b, callback=lambda s: print(s.shard_shape((8, 2))))
    return (a + b).sum()
print(jax.grad(jax.jit(seen))(v).shape, jax.grad(seen)(v).shape)
run(lambda: alike({"a": v}, [v]), text=24)
### functions that are told how their results are divided @E((2, 2), ("x", "y"))
images, kernel = put(ones(2, 4, 4), "x"), put(np.ones((3, 4, 8)) / 4)
def conv(x, k, to):
    layout = ("NWC", "WIO", "NWC")
    return jax.lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=layout, out_sharding=to)
for to in (P("x", "y", None), P("x", None, "y"), P("x"), P(), NamedSharding(mesh, P(None, "x", None)), "bad", P("q")):
    run(lambda: (ty(conv(images, kernel, to)), ty(jax.jit(lambda x, k: conv(x, k, to))(images, kernel))))
    run(lambda: np.asarray(conv(images, kernel, to)).sum())
print(grads(lambda x, k: conv(x, k, P("x", "y", None)), images, kernel))
v, ids = put(ones(8) % 3, "x"), jnp.array([0, 0, 1, 1, 2, 2, 3, 3])
for to in (P("x"), P("y"), P(None)):
    print(ty(jax.lax.reduce_sum(images, (1, 2), out_sharding=to)), ty(jnp.percentile(v, jnp.ones(2), out_sharding=to)))
    run(lambda: ty(jax.lax.reduce(images, np.float32(0), jax.lax.add, (0, 2), out_sharding=to)))
    for name in ("sum", "prod", "max", "min"):
        got = getattr(jax.ops, "segment_" + name)(v, ids, 4, out_sharding=to)
        print(name, ty(got), np.asarray(got))
### repetition says how it is divided @E((2, 2), ("x", "y"))
v, a = put(ones(8), "x"), put(ones(8, 4), None, "y")
for x, axis in ((v, 0), (v, None), (a, 1), (a, 0), (a, None), (jnp.arange(4.0), 0)):
    for f in (lambda x: jnp.repeat(x, 2, axis), lambda x: jnp.repeat(x, 2, axis, out_sharding=P())):
        run(lambda: ty(f(x)), text=66)
        run(lambda: ty(jax.jit(f)(x)), text=66)
### values divided alike under vmap @A((2, 2), ("x", "y"))
from_module = importlib.import_module(jax.__name__ + ".experimental.shard_alike")
alike = from_module.shard_alike
at = lambda *spec: jax.device_put(np.ones((2, 4, 4), np.float32), NamedSharding(mesh, P(*spec)))
other = np.ones((2, 4, 4), np.float32)
second = lambda x, y: alike(x, y)[1]
print(sh(jax.jit(jax.vmap(second))(at(None, "x", "y"), other)))
print(sh(jax.jit(jax.vmap(second, in_axes=(0, None)))(at(None, "x", "y"), other[0])))
print(sh(jax.jit(jax.vmap(second, in_axes=(1, 1)))(at("x", None, "y"), other)))
print(sh(jax.jit(jax.vmap(jax.vmap(second)))(at(None, None, "y"), other)))
### results are spelled as they are asked for @A((4, 2), ("x", "y"))
at = lambda *spec: NamedSharding(mesh, P(*spec))
asked = (("y",), ()), ((), ("x", None)), (("y",), ("x", None)), ((None,), (None, "x")), (("y",), (("x", "y"), None))
for first, second in asked:
    f = jax.jit(lambda x: (jnp.full(8, x), jnp.full((8, 16), x)), out_shardings=(at(*first), at(*second)))
    print(sh(f(1.0)), [str(s.spec) for s in f.lower(1.0).compile().output_shardings])
### constraints on a tree with holes @A((2,), ("x",))
tree = {"a": jnp.ones(4), "b": None, "c": [jnp.ones(2), None]}
print(sh(jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, P("x")))))
run(lambda: jax.lax.with_sharding_constraint(tree, {"a": P("x")}), text=40)
### names that nothing binds @A((2,), ("x",))
x = jnp.arange(8.0)
run(lambda: jax.jit(lambda x: jax.lax.psum(x, "x"))(x), text=80)
run(lambda: jax.lax.axis_index("q"), text=86)
### types inside of shard_map say what is due @E((2, 2), ("x", "y"))
def mats(*values):
    print([(sorted(v.aval.mat.varying), sorted(v.aval.mat.unreduced), sorted(v.aval.mat.reduced)) for v in values])
a, b = put(ones(2, 4), "x", "y"), put(ones(4, 2), "y", None)
def late(a, b):
    c = jax.lax.pcast(a @ b, "y", to="unreduced")
    mats(a, c, c + c, c.T)
    mats(jax.lax.psum(c, "y"), jax.lax.psum_scatter(c, "y", scatter_dimension=1, tiled=True))
    return c
f = jax.shard_map(late, out_specs=P("x", None, unreduced={"y"}))
out = jax.jit(f)(a, b)
print(sh(jax.sharding.reshard(out, P("x"))), jax.sharding.reshard(out, P("x")).tolist())
print(sh(jax.jit(jax.grad(lambda a, b: jax.sharding.reshard(f(a, b), P("x")).sum(), argnums=(0, 1)))(a, b)))
cast = jax.lax.pcast
run(jax.jit(jax.shard_map(lambda a, b: jnp.sin(cast(a @ b, "y", to="unreduced")), out_specs=P())), a, b, text=41)
run(jax.jit(jax.shard_map(lambda a, b: cast(a @ b, ("x", "y"), to="reduced"), out_specs=P())), a, b, text=34)
run(jax.jit(jax.shard_map(lambda b: b, in_specs=P("y"), out_specs=P("y", unreduced={"x"}))), b, text=60)
### reduced arguments of shard_map, and what comes back to them @E((2, 2), ("x", "y"))
a, b = put(ones(4, 2), "x", "y"), put(ones(2, 6), "y", None, reduced={"x"})
def mats(*values):
    print([(sorted(v.aval.mat.varying), sorted(v.aval.mat.unreduced), sorted(v.aval.mat.reduced)) for v in values])
def f(a, b):
    mats(a, b, b.T, b.reshape(-1), a @ b)
    return jax.lax.psum(a @ b, "y")
f = jax.jit(jax.shard_map(f, in_specs=(P("x", "y"), P("y", None, reduced={"x"})), out_specs=P("x")))
back = lambda f, *args: sh(jax.jit(jax.grad(lambda *a: f(*a).sum(), argnums=tuple(range(len(args)))))(*args))
print(f(a, b).tolist(), back(f, a, b))
c = put(ones(8), reduced={"x"})
for g in (lambda x: x * x, jnp.sin, lambda x: x.reshape(4, 2)):
    h = jax.jit(jax.shard_map(g, out_specs=P(reduced={"x"})))
    ct = jax.jit(jax.grad(lambda x: h(x).sum()))(c)
    print(str(h(c).sharding.spec).replace("None, ", ""), ct.sharding.spec, jax.sharding.reshard(ct, P()).tolist())
d = put(ones(16), "x")
e = put(ones(8), None, reduced={"x"})
for g in (jax.lax.mul, jax.lax.add):
    h = jax.jit(jax.shard_map(g, out_specs=P("x")))
    print(h(d, e).tolist(), back(h, d, e))
### gathered values that stay reduced @E((2, 2), ("data", "seq"))
a, b = put(ones(8, 4, 2), "data", "seq", None), put(ones(2, 6), "seq", None)
cast = jax.shard_map(lambda v: jax.lax.pcast(v, "data", to="reduced"), in_specs=P("seq", None),
                     out_specs=P("seq", None, reduced={"data"}))
def gather(v):
    out = jax.lax.all_gather(v, "seq", tiled=True, to="reduced")
    print(sorted(v.aval.mat.reduced), sorted(out.aval.mat.reduced), sorted(out.aval.mat.varying))
    return out
specs = P("seq", None, reduced={"data"}), P(None, None, reduced={"seq", "data"})
gather = jax.shard_map(gather, in_specs=specs[0], out_specs=specs[1])
f = jax.jit(lambda a, b: jnp.einsum("btd,df->btf", a, gather(cast(b))))
print(sh(f(a, b)), grads(f, a, b)[1])
### gradients by reduced and unreduced values inside of shard_map @E((2, 2), ("x", "y"))
w, x = put(ones(2), None), put(ones(8), ("x", "y"))
cast = lambda v, *names, to="reduced": jax.lax.pcast(v, names, to=to)
def due(loss):
    def f(w, x):
        w = cast(w, "x", "y")
        g = jax.grad(loss)(w, x)
        print(ty(w), ty(g) if loss in plain else "")
        return jax.lax.psum(g, ("x", "y"))
    run(jax.shard_map(f, in_specs=(P(None), P(("x", "y"))), out_specs=P()), w, x, text=60)
def whole(loss):
    run(jax.shard_map(jax.grad(loss), in_specs=(P(None), P(("x", "y"))), out_specs=P()), w, x, text=60)
dot = lambda w, x: (w * x).sum()
plain = [
    dot,
    lambda w, x: w @ x,
    lambda w, x: (jnp.sin(w) * x).sum() + w @ x,
    lambda w, x: (w[:1] * x).sum(),
    lambda w, x: (jnp.exp(w.reshape(2, 1)) * x).sum(),
    jax.jit(dot),
    lambda w, x: jax.vmap(lambda a: (w * a).sum())(x).sum(),
]
for loss in (
    *plain,
    jax.checkpoint(lambda w, x: (jnp.sin(w) * x).sum()),
    lambda w, x: jax.lax.cond(x[0] > -1, lambda w: w @ x, lambda w: 2 * (w * x).sum(), w),
):
    due(loss)
    whole(lambda w, x: loss(cast(w, "x", "y"), x))
    whole(lambda w, x: jax.lax.psum(loss(cast(w, "x", "y"), x), ("x", "y")))
def terms(x):
    g = jax.grad(lambda u: jax.lax.psum(u, ("x", "y")).sum())(cast(x, "x", "y", to="unreduced"))
    print(ty(g))
    return cast(g, "x", "y", to="varying")
run(jax.shard_map(terms, in_specs=P(("x", "y")), out_specs=P(("x", "y"))), x, text=60)
both = jax.jit(lambda w, x: jax.lax.psum(jax.grad(dot)(cast(w, "x", "y"), x), ("x", "y")))
run(jax.shard_map(both, in_specs=(P(None), P(("x", "y"))), out_specs=P()), w, x, text=60)
### a rule for derivatives gets cotangents that are divided as results are @E((2, 2), ("data", "seq"))
a, b = put(ones(8, 4, 2), "data", "seq", None), put(ones(2, 6), None, None)
f = jax.custom_vjp(lambda a, b: jnp.einsum("btd,df->btf", a, b))
def bwd(rest, g):
    a, b = rest
    print(ty(g))
    db = jnp.einsum("btd,btf->df", a, g, out_sharding=P(None, None, unreduced={"data", "seq"}))
    return jnp.einsum("btf,df->btd", g, b), jax.sharding.reshard(db, P())
f.defvjp(lambda a, b: (f(a, b), (a, b)), bwd)
print(sh(jax.jit(jax.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1)))(a, b)))
### what shard_map refuses @E((2, 2), ("x", "y"))
x = put(ones(8), "x")
other = jax.make_mesh((2,), ("z",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:2])
run(lambda: jax.lax.pcast(x, "x", to="varying"))
run(lambda: jax.shard_map(lambda x: x, mesh=jax.sharding.Mesh((), ()), in_specs=P(), out_specs=P())(x), text=36)
run(lambda: jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("x",))).__enter__(), text=54)
run(lambda: jax.jit(jax.shard_map(lambda x: auto_axes(lambda x: x, out_sharding=P())(x), out_specs=P("x")))(x), text=20)
run(lambda: jnp.einsum("i,i->", x, x, out_sharding=NamedSharding(other.abstract_mesh, P())), text=12)
y = jax.device_put(np.ones(8, np.float32), NamedSharding(other, P("z")))
run(lambda: jax.jit(lambda x, y: x + y)(x, y), text=34)
same = jax.shard_map(lambda v: v, in_specs=P("y"), out_specs=P("y"))
print(sh(jax.vmap(same, spmd_axis_name="x")(put(ones(2, 4), "x", "y"))))
print(sorted(jax.typeof(x).mat.invarying(mesh)))
### axes of several types
devices = np.array(jax.devices()[:4]).reshape(2, 2)
mesh = jax.sharding.Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
import re
with jax.set_mesh(mesh):
    a = put(ones(8, 2), ("x", "y"), None)
    text = jax.jit(lambda x: x * 2).lower(a).as_text()
    print(re.findall(r"sdy.sharding_constraint %\\S+ (.*)", text), re.findall(r"#sdy.sharding(<[^>]*>)", text))
    print(sh(jax.jit(lambda x: jax.lax.with_sharding_constraint(x, P("y")))(put(ones(8, 2), "x"))))
    run(lambda: jax.smap(lambda x: x, out_axes=0, axis_name="y")(a), text=43)
explicit = jax.sharding.Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
b = jax.device_put(ones(8, 2), NamedSharding(explicit, P("x", "y")))
print(sh(auto_axes(lambda x: x * 2, out_sharding=NamedSharding(explicit, P("y", "x")))(b)))
### in with mesh arguments have their types, too
devices = np.array(jax.devices()[:4]).reshape(2, 2)
mesh = jax.sharding.Mesh(devices, ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
e = jax.device_put(ones(8, 2), NamedSharding(mesh, P("y")))
i = jax.device_put(np.arange(4), NamedSharding(mesh, P("x")))
with mesh:
    run(lambda: jax.jit(lambda e, i: jnp.take(e, i, axis=0))(e, i), text=90)
    run(lambda: ty(jax.jit(lambda e: e + 1)(e)), text=90)
    run(lambda: jax.eval_shape(lambda e: e.T, e).sharding.spec, text=90)
### operands of arithmetic are divided as results, in texts @E((2,), ("x",))
import re
a, b = put(ones(8, 2), "x"), put(ones(8, 2))
for f in (lambda a, b: a * 2, lambda a, b: a + b, lambda a, b: jnp.maximum(b, a) / 3):
    print(re.findall(r"sdy.sharding_constraint %\\S+ (.*)", jax.jit(f).lower(a, b).as_text()))
### primitives of hijax see types when they are compiled @E((2,), ("x",))
class Twice(importlib.import_module(jax.__name__ + ".experimental.hijax").VJPHiPrimitive):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()
    def expand(self, x):
        seen.add(ty(x))
        return jax.shard_map(lambda x: x * 2, out_specs=self.out_aval.sharding.spec)(x)
twice, seen = lambda x: Twice(jax.typeof(x))(x), set()
for f in (twice, jax.jit(twice), jax.jit(lambda x: jax.lax.scan(lambda c, _: (twice(c), None), x, None, 2)[0])):
    x = f(put(ones(8, 2), "x"))
    print(ty(x), np.asarray(x).sum(), sorted(seen))
"""


def cases() -> dict[str, str]:
    """The source of each case, by its name."""
    blocks = re.split(r"^### ", CASES, flags=re.MULTILINE)[1:]
    return {name: body for name, _, body in (block.partition("\n") for block in blocks)}


def main(library: str) -> None:
    """Runs all cases and prints what they printed."""
    warnings.simplefilter("ignore")
    jax = importlib.import_module(library)
    found = {}
    for name, body in cases().items():
        space = {"jax": jax, "jnp": importlib.import_module(library + ".numpy"), "importlib": importlib}
        exec(SETUP, space)
        asked = re.match(r".*@([EA])(\(.*\))$", name)
        context = contextlib.nullcontext()
        if asked:
            kind = space["AxisType"].Explicit if asked[1] == "E" else space["AxisType"].Auto
            space["mesh"] = space["mesh_of"](*eval(asked[2]), kind)
            context = jax.set_mesh(space["mesh"])
        with contextlib.redirect_stdout(io.StringIO()) as text, context:
            exec(compile(body, name, "exec"), space)
        found[name] = text.getvalue()
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    main(sys.argv[1])
