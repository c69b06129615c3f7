"""Programs that run unchanged on JAX and on ferrax: each takes the two modules and returns a tree of arrays.

Read next: `test_programs.py`, which runs each on both and compares values, dtypes and structures.
"""

from functools import partial

import numpy as np

PROGRAMS = {}


def program(fun):
    PROGRAMS[fun.__name__] = fun
    return fun


@program
def grad_scalar(jax, jnp):
    f = lambda x: jnp.sin(x) * x + 2.0
    return jax.grad(f)(1.5), jax.grad(jax.grad(f))(1.5), jax.grad(jax.grad(jax.grad(f)))(1.5)


@program
def grad_python_control_flow(jax, jnp):
    def f(x):
        y = x
        while y < 10.0:
            y = y * x
        return y if y > 12.0 else -y

    return jax.grad(f)(2.0), jax.grad(f)(3.3)


@program
def grad_argnums_tree(jax, jnp):
    f = lambda p, x: jnp.sum(jnp.tanh(p["w"] @ x + p["b"]))
    p = {"w": jnp.arange(6.0).reshape(2, 3) / 10, "b": jnp.ones(2)}
    x = jnp.array([0.1, -0.2, 0.3])
    return jax.grad(f)(p, x), jax.grad(f, argnums=(0, 1))(p, x), jax.value_and_grad(f, 1)(p, x)


@program
def grad_aux(jax, jnp):
    f = lambda x: (jnp.sum(x**2), {"twice": 2 * x})
    x = jnp.arange(3.0)
    return jax.grad(f, has_aux=True)(x), jax.value_and_grad(f, has_aux=True)(x)


@program
def grad_through_jit(jax, jnp):
    f = jax.jit(lambda x, y: jnp.sin(x) * y)
    g = jax.grad(lambda x: f(x, x) + f(x, 2.0))
    return g(0.5), jax.jit(g)(0.5), jax.jit(jax.grad(jax.jit(g)))(0.5)


@program
def mixed_modes(jax, jnp):
    f = lambda x: jnp.sum(jnp.exp(x) * x[::-1])
    x = jnp.arange(4.0) / 3
    return jax.jacfwd(jax.grad(f))(x), jax.jacrev(jax.grad(f))(x), jax.hessian(f)(x)


@program
def jvp_and_vjp(jax, jnp):
    f = lambda x, y: (x * jnp.cos(y), x + y)
    out = jax.jvp(f, (1.0, 2.0), (0.5, 1.0))
    value, pull = jax.vjp(f, 1.0, 2.0)
    return out, value, pull((1.0, 2.0)), pull((0.0, 1.0))


@program
def linearize_and_transpose(jax, jnp):
    f = lambda x: jnp.sin(x) * 3.0
    value, lin = jax.linearize(f, jnp.arange(3.0))
    t = jax.linear_transpose(lambda x: 2.0 * x[1:] + x[:-1], jnp.zeros(4))
    return value, lin(jnp.ones(3)), t(jnp.arange(3.0))


@program
def vmap_axes(jax, jnp):
    x = jnp.arange(12.0).reshape(3, 4)
    f = lambda a, b: {"s": a * b, "c": jnp.cumsum(a)}
    return (
        jax.vmap(f, in_axes=(0, None))(x, 2.0),
        jax.vmap(f, in_axes=(1, 0), out_axes=1)(x, jnp.arange(4.0)),
        jax.vmap(lambda d: d["x"].sum(), in_axes=({"x": 1},))({"x": x}),
        jax.vmap(jnp.dot)(x, x),
        jax.vmap(jax.vmap(lambda a: a * 2))(x),
        jax.vmap(lambda a: 3.0, axis_size=2, in_axes=None)(1.0),
    )


@program
def vmap_of_grad_and_back(jax, jnp):
    f = lambda w, x: jnp.tanh(jnp.dot(w, x))
    w, xs = jnp.array([0.1, 0.2]), jnp.arange(6.0).reshape(3, 2)
    per_example = jax.vmap(jax.grad(f), in_axes=(None, 0))(w, xs)
    total = jax.grad(lambda w: jnp.sum(jax.vmap(f, in_axes=(None, 0))(w, xs)))(w)
    return per_example, total, jax.jit(jax.vmap(jax.value_and_grad(f), in_axes=(None, 0)))(w, xs)


@program
def jit_statics(jax, jnp):
    @partial(jax.jit, static_argnums=(1,), static_argnames=("mode",))
    def f(x, n, mode="a"):
        for _ in range(n):
            x = x * 2 if mode == "a" else x + 1
        return x

    return f(1.0, 3), f(1.0, 2, mode="b"), f(jnp.ones(2), 1)


@program
def jit_trees(jax, jnp):
    f = jax.jit(lambda d, *rest, k=1.0: {"out": [d["a"] + k, (d["b"], None)], "rest": rest})
    return f({"a": 1, "b": jnp.ones(2)}, 3, (4.0,), k=2)


@program
def scan_cumulative(jax, jnp):
    def step(c, x):
        return c + x * x, c * x

    xs = jnp.arange(5.0)
    f = lambda c, xs: jax.lax.scan(step, c, xs)
    loss = lambda c, xs: f(c, xs)[0] + jnp.sum(f(c, xs)[1])
    return f(1.0, xs), jax.jit(f)(1.0, xs), jax.grad(loss, (0, 1))(1.0, xs), jax.jit(jax.grad(loss))(1.0, xs)


@program
def scan_rnn_gradient(jax, jnp):
    w = jnp.arange(9.0).reshape(3, 3) / 20
    xs = jnp.arange(12.0).reshape(4, 3) / 10

    def loss(w, xs):
        def cell(h, x):
            h = jnp.tanh(w @ h + x)
            return h, h

        h, hs = jax.lax.scan(cell, jnp.zeros(3), xs)
        return jnp.sum(h) + jnp.sum(hs**2)

    return jax.value_and_grad(loss)(w, xs), jax.jit(jax.hessian(loss))(w, xs), jax.vmap(loss, (None, 0))(w, xs[:, None])


@program
def scan_reverse_and_length(jax, jnp):
    down = jax.lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, jnp.arange(4.0), reverse=True)
    count = jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length=3)
    return down, count


@program
def loops(jax, jnp):
    lax = jax.lax
    doubled = lax.while_loop(lambda c: c[0] < 50, lambda c: (c[0] * 2, c[1] + 1), (3, 0))
    total = lax.fori_loop(0, 5, lambda i, s: s + i, 0)
    dynamic = jax.jit(lambda n: lax.fori_loop(0, n, lambda i, s: s + i * 0.5, 0.0))(6)
    slope = jax.grad(lambda x: lax.fori_loop(0, 4, lambda i, v: v * x, 1.0))(2.0)
    tangent = jax.jvp(lambda x: lax.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x), (1.5,), (1.0,))
    rows = jax.vmap(lambda x: lax.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, x))(jnp.array([1.0, 4.0, 30.0]))
    return doubled, total, dynamic, slope, tangent, rows


@program
def conditionals(jax, jnp):
    lax = jax.lax
    f = lambda p, x: lax.cond(p, jnp.sin, lambda v: v * 2.0, x)
    sw = lambda i, x: lax.switch(i, [lambda v: v, lambda v: v**2, jnp.cos], x)
    return (
        f(True, 1.0),
        f(False, 1.0),
        jax.jit(f)(True, 1.0),
        jax.grad(f, 1)(True, 0.3),
        jax.jit(jax.grad(f, 1))(False, 0.3),
        jax.vmap(f)(jnp.array([True, False]), jnp.array([1.0, 2.0])),
        [sw(i, 3.0) for i in (-1, 0, 1, 2, 9)],
        jax.vmap(sw, (0, None))(jnp.arange(3), 0.5),
        jax.grad(lambda x: sw(1, x) + sw(2, x))(0.7),
    )


@program
def lax_map_and_associative(jax, jnp):
    x = jnp.arange(7.0)
    return (
        jax.lax.map(lambda v: v * v, x),
        jax.lax.associative_scan(jnp.add, x),
        jax.lax.associative_scan(jnp.multiply, x + 1, reverse=True),
    )


@program
def custom_jvp_rules(jax, jnp):
    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    @f.defjvp
    def _(primals, tangents):
        x, y = primals
        dx, dy = tangents
        return f(x, y), 10.0 * dx + dy

    return (
        f(1.0, 2.0),
        jax.grad(f, (0, 1))(1.0, 2.0),
        jax.jit(jax.grad(f))(1.0, 2.0),
        jax.vmap(jax.grad(f), (0, None))(jnp.arange(3.0), 2.0),
        jax.grad(lambda x: jnp.sum(jax.vmap(f, (0, None))(x, 2.0)))(jnp.arange(3.0)),
        jax.jvp(f, (1.0, 2.0), (1.0, 0.5)),
    )


@program
def custom_vjp_rules(jax, jnp):
    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def scaled(k, x, y):
        return {"v": k * x * y}

    def fwd(k, x, y):
        return scaled(k, x, y), (x, y)

    def bwd(k, res, ct):
        return ct["v"] * 100.0, ct["v"] * res[0]

    scaled.defvjp(fwd, bwd)
    f = lambda x, y: scaled(3.0, x, y)["v"]
    return (
        f(1.0, 2.0),
        jax.grad(f, (0, 1))(1.0, 2.0),
        jax.jit(jax.grad(f, (0, 1)))(1.0, 2.0),
        jax.vmap(jax.grad(f), (0, None))(jnp.arange(3.0), 2.0),
        jax.grad(lambda x, y: jnp.sum(jax.vmap(f, (0, None))(x, y)), (0, 1))(jnp.arange(3.0), 2.0),
    )


@program
def gradient_clipping(jax, jnp):
    @jax.custom_vjp
    def clip(lo, hi, x):
        return x

    clip.defvjp(lambda lo, hi, x: (x, (lo, hi)), lambda res, g: (None, None, jnp.clip(g, res[0], res[1])))
    return jax.vmap(jax.grad(lambda x: jnp.sin(clip(-0.75, 0.75, x))))(jnp.linspace(0, 10, 20))


@program
def remat(jax, jnp):
    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x) * x))
    policy = jax.checkpoint_policies.dots_saveable
    g = jax.checkpoint(lambda w, x: jnp.sum(jnp.tanh(w @ jnp.sin(w @ x))), policy=policy)
    w, x = jnp.arange(4.0).reshape(2, 2) / 5, jnp.ones(2)
    return (
        jax.grad(f)(0.7),
        jax.jit(jax.grad(f))(0.7),
        jax.grad(g, (0, 1))(w, x),
        jax.vmap(jax.grad(f))(jnp.arange(3.0)),
    )


@program
def stop_gradient(jax, jnp):
    f = lambda x: jax.lax.stop_gradient(x) * x
    return f(3.0), jax.grad(f)(3.0), jax.jit(jax.grad(f))(3.0)


@program
def callbacks(jax, jnp):
    def f(x):
        return jax.pure_callback(
            lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential"
        )

    return f(jnp.arange(3.0)), jax.jit(f)(jnp.arange(3.0)), jax.vmap(f)(jnp.arange(4.0).reshape(2, 2))


@program
def sum_of_squares_newton(jax, jnp):
    f = lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 4)

    def step(x):
        return x - 0.5 * jax.grad(f)(x)

    x = jnp.zeros(2)
    for _ in range(3):
        x = jax.jit(step)(x)
    return x


@program
def integer_inputs(jax, jnp):
    f = lambda x, n: x**2 * n
    return jax.grad(f)(3.0, 2), jax.vmap(f)(jnp.arange(3.0), jnp.arange(3)), jax.jit(f)(2.0, 3)


@program
def closures_over_tracers(jax, jnp):
    def outer(x):
        inner = jax.jit(lambda y: x * y)
        return inner(2.0) + jax.grad(lambda y: x * y**2)(3.0)

    return outer(1.0), jax.jit(outer)(1.0), jax.grad(outer)(1.0), jax.vmap(outer)(jnp.arange(3.0))


@program
def indexing_gradients(jax, jnp):
    x = jnp.arange(6.0)
    f = lambda x: jnp.sum(x[jnp.array([0, 0, 3])] ** 2) + x[1] * x[-1] + jnp.sum(x.at[2].set(x[4] * 3.0))
    return jax.grad(f)(x), jax.jit(jax.grad(f))(x), jax.vmap(lambda i: x[i])(jnp.array([5, 1]))


@program
def where_and_max(jax, jnp):
    f = lambda x: jnp.sum(jnp.where(x > 0, x**2, -x)) + jnp.max(x) + jnp.sum(jnp.maximum(x, 0.5))
    x = jnp.array([-1.0, 0.0, 0.5, 2.0, 2.0])
    return f(x), jax.grad(f)(x), jax.jit(jax.grad(f))(x)


@program
def aot(jax, jnp):
    compiled = jax.jit(lambda x: {"y": x * 2}).lower(jnp.ones(3)).compile()
    shapes = jax.eval_shape(lambda x: x @ x.T, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    return compiled(jnp.arange(3.0)), jnp.zeros(shapes.shape, shapes.dtype)
