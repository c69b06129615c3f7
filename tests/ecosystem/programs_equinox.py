"""Programs of Equinox: modules, filtered transformations, stateful layers, loops, errors."""

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import jax.random as jr
import optax


def mlp():
    model = eqx.nn.MLP(2, 1, 8, 2, key=jr.key(0))
    x = jnp.linspace(-1.0, 1.0, 20).reshape(10, 2)
    y = x.sum(1, keepdims=True) ** 2

    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    opt = optax.adam(1e-2)
    state = opt.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def step(model, state):
        value, grads = loss(model)
        updates, state = opt.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, value

    values = []
    for _ in range(5):
        model, state, value = step(model, state)
        values.append(value)
    return values, eqx.filter(model, eqx.is_array)


def layers():
    k = jr.split(jr.key(1), 12)
    x = jr.normal(k[0], (4, 8))
    image = jr.normal(k[1], (3, 10, 10))
    return [
        eqx.nn.Linear(8, 3, key=k[2])(x[0]),
        eqx.nn.Conv2d(3, 2, 3, key=k[3])(image),
        eqx.nn.ConvTranspose2d(3, 2, 3, key=k[4])(image),
        eqx.nn.LayerNorm(8)(x[0]),
        eqx.nn.GroupNorm(1, 3)(image),
        eqx.nn.RMSNorm(8)(x[0]),
        eqx.nn.MultiheadAttention(2, 8, key=k[5])(x, x, x),
        eqx.nn.GRUCell(8, 5, key=k[6])(x[0], jnp.zeros(5)),
        eqx.nn.LSTMCell(8, 5, key=k[7])(x[0], (jnp.zeros(5), jnp.zeros(5))),
        eqx.nn.MaxPool2d(2, 2)(image),
        eqx.nn.AvgPool2d(3, 1)(image),
        eqx.nn.AdaptiveAvgPool2d(2)(image),
        eqx.nn.Dropout(0.5)(x, key=k[8]),
        eqx.nn.Embedding(5, 3, key=k[9])(2),
        eqx.nn.PReLU()(x),
        eqx.nn.RotaryPositionalEmbedding(8)(x),
    ]


def stateful():
    class M(eqx.Module):
        norm: eqx.nn.BatchNorm
        linear: eqx.nn.Linear

        def __init__(self, key):
            self.norm = eqx.nn.BatchNorm(3, axis_name="batch", mode="batch")
            self.linear = eqx.nn.Linear(3, 3, key=key)

        def __call__(self, x, state):
            x, state = self.norm(self.linear(x), state)
            return x, state

    model, state = eqx.nn.make_with_state(M)(jr.key(0))
    x = jr.normal(jr.key(1), (6, 3))

    @eqx.filter_jit
    def run(model, state):
        return jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)

    out, state = run(model, state)
    out2, state = run(model, state)
    again, _ = jax.vmap(eqx.nn.inference_mode(model), axis_name="batch", in_axes=(0, None), out_axes=(0, None))(
        x, state
    )
    return out, out2, again


def filtered():
    @eqx.filter_vmap(in_axes=(eqx.if_array(0), None))
    def apply(m, x):
        return m(x)

    make = eqx.filter_vmap(lambda k: eqx.nn.Linear(3, 2, key=k))
    ensemble = make(jr.split(jr.key(0), 4))
    x = jnp.arange(3.0)
    params, static = eqx.partition(ensemble, eqx.is_array)
    return (
        apply(ensemble, x),
        eqx.filter_jvp(lambda x: x**2, (x,), (jnp.ones(3),)),
        eqx.filter_vjp(lambda x: jnp.sin(x), x)[1](jnp.ones(3)),
        eqx.filter_grad(lambda m: apply(m, x).sum())(ensemble),
        eqx.combine(params, static).weight,
        eqx.filter_eval_shape(lambda: jnp.ones((2, 3))).shape[0],
        eqx.filter_hessian(lambda x: jnp.sum(x**3))(x),
        eqx.filter_jacrev(lambda x: x**2)(x),
    )


def closures():
    w = jnp.arange(3.0)

    def f(x):
        return eqx.filter_closure_convert(lambda y: y * w * x, jnp.ones(3))(2 * jnp.ones(3)).sum()

    made, _, _ = eqx.filter_make_jaxpr(lambda x: x * 2)(w)
    return jax.grad(f)(2.0), jax.jit(jax.grad(f))(2.0), eqxi.finalise_fn(lambda x: jnp.sin(x) * 2)(w), len(made.eqns)


def customs():
    @eqx.filter_custom_vjp
    def f(x, y):
        return x * y

    @f.def_fwd
    def fwd(perturbed, x, y):
        return f(x, y), y

    @f.def_bwd
    def bwd(residuals, grad, perturbed, x, y):
        return grad * residuals * 10

    @eqx.filter_custom_jvp
    def g(x, *, scale):
        return scale * x

    @g.def_jvp
    def g_jvp(primals, tangents, *, scale):
        return scale * primals[0], 5.0 * tangents[0]

    return eqx.filter_grad(lambda x: f(x, 3.0))(jnp.array(2.0)), eqx.filter_grad(lambda x: g(x, scale=2.0))(
        jnp.array(1.0)
    )


def checkpointed():
    def f(x, kind):
        def cond(c):
            return c[0] < 6

        def body(c):
            return c[0] + 1, jnp.sin(c[1]) * 1.1

        return eqxi.while_loop(
            cond, body, (0, x), kind=kind, max_steps=16, **({"checkpoints": 4} if kind == "checkpointed" else {})
        )[1]

    x = jnp.array([0.3, 0.9])
    return [
        (
            f(x, kind),
            jax.jit(lambda x, kind=kind: f(x, kind))(x),
            jax.grad(lambda x, kind=kind: f(x, kind).sum())(x),
            jax.jit(jax.grad(lambda x, kind=kind: f(x, kind).sum()))(x),
            jax.vmap(lambda x, kind=kind: f(x, kind))(x),
        )
        for kind in ("checkpointed", "bounded")
    ]


def errors():
    @eqx.filter_jit
    def f(x):
        x = eqx.error_if(x, jnp.any(x < 0), "must be positive")
        return x * 2

    out = f(jnp.ones(2))
    try:
        f(-jnp.ones(2)).block_until_ready()
    except eqx.EquinoxRuntimeError as error:
        return out, jnp.array("must be positive" in str(error))
    return out, jnp.array(False)


def finalised():
    @jax.custom_jvp
    def f(pred, x):
        return jax.lax.cond(eqxi.unvmap_any(pred), lambda y: y, lambda y: y + 1, x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[1]))
    return eqxi.finalise_fn(f)(jnp.array(True), 1.0), eqxi.finalise_fn(jax.checkpoint(f))(jnp.array(False), 1.0)


def sharded():
    m = eqx.nn.MLP(2, 2, 2, 2, key=jr.key(0))
    placed = eqx.filter_shard(m, jax.devices()[0])
    return eqx.filter(placed, eqx.is_array), eqx.filter_jit(
        lambda m: eqx.filter_shard(m, jax.devices()[0])(jnp.ones(2))
    )(m)


def surgery():
    m = eqx.nn.Linear(3, 2, key=jr.key(0))
    m2 = eqx.tree_at(lambda m: m.weight, m, jnp.zeros((2, 3)))
    return m2.weight, eqx.tree_equal(m, m), eqx.tree_equal(m, m2), str(eqx.tree_pformat(m)).count("f32") * jnp.ones(())


def primitives():
    x = jnp.arange(4.0)
    pred = jnp.array([True, False])
    return (
        eqxi.unvmap_any(pred),
        jax.vmap(lambda p: eqxi.unvmap_any(p))(pred),
        jax.jit(jax.vmap(eqxi.unvmap_max))(x),
        jax.jit(lambda x: eqxi.nonbatchable(x))(x),
    )


def loops():
    def body(c, x):
        return c + x, c * x

    x = jnp.arange(5.0)
    return (
        eqxi.scan(body, 0.0, x, kind="lax"),
        jax.grad(lambda x: eqxi.scan(body, 0.0, x, kind="checkpointed", checkpoints=3)[0])(x),
        jax.hessian(lambda x: eqxi.scan(lambda c, _: (c * x, None), 1.0, None, length=3, kind="lax")[0])(1.5),
    )


PROGRAMS = {
    f.__name__: f
    for f in (
        mlp,
        layers,
        stateful,
        filtered,
        closures,
        customs,
        checkpointed,
        errors,
        finalised,
        sharded,
        surgery,
        primitives,
        loops,
    )
}
