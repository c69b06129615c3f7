"""Programs of Haiku: transformed functions, state, recurrent networks, lifted transformations."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = jnp.sin(X.sum(1, keepdims=True))


def mlp():
    model = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([8, 1])(x)))
    params = model.init(jax.random.PRNGKey(0), X)
    opt = optax.adam(1e-2)
    state = opt.init(params)

    @jax.jit
    def step(params, state):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((model.apply(p, X) - Y) ** 2))(params)
        updates, state = opt.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for _ in range(5):
        params, state, loss = step(params, state)
        losses.append(loss)
    return losses, params


def with_state():
    def f(x, train):
        x = hk.BatchNorm(True, True, 0.9)(hk.Linear(4)(x), train)
        return hk.dropout(hk.next_rng_key(), 0.3, x) if train else x

    model = hk.transform_with_state(f)
    params, state = model.init(jax.random.PRNGKey(0), X, True)
    out, state = jax.jit(model.apply, static_argnums=4)(params, state, jax.random.PRNGKey(1), X, True)
    return out, state, model.apply(params, state, None, X, False)[0]


def layers():
    image = jax.random.normal(jax.random.PRNGKey(0), (2, 8, 8, 3))

    def f(x):
        x = hk.Conv2D(4, 3)(x)
        x = hk.max_pool(jax.nn.relu(x), 2, 2, "VALID")
        x = hk.GroupNorm(2)(x)
        x = hk.Flatten()(x)
        x = hk.LayerNorm(-1, True, True)(hk.Linear(6)(x))
        return hk.MultiHeadAttention(2, 3, w_init_scale=1.0)(x, x, x), hk.Embed(4, 3)(jnp.array([1, 2]))

    model = hk.transform(f)
    params = model.init(jax.random.PRNGKey(0), image)
    return model.apply(params, None, image), params


def recurrent():
    def f(xs):
        core = hk.LSTM(4)
        out, state = hk.dynamic_unroll(core, xs, core.initial_state(xs.shape[1]))
        return out, hk.GRU(3)(xs[0], jnp.zeros((xs.shape[1], 3)))

    model = hk.transform(f)
    xs = X.reshape(4, 2, 3)
    params = model.init(jax.random.PRNGKey(0), xs)
    return model.apply(params, None, xs), jax.grad(lambda p: model.apply(p, None, xs)[0].sum())(params)


def lifted():
    def f(x):
        lin = hk.Linear(3)
        y = hk.scan(lambda c, r: (c + lin(r).sum(), c), 0.0, x)
        z = hk.vmap(lambda r: lin(r), split_rng=False)(x)
        w = hk.cond(x[0, 0] < 0, lambda x: lin(x), lambda x: x, x)
        return y, z, w, hk.remat(lambda x: lin(x))(x), hk.fori_loop(0, 2, lambda i, v: lin(v), x)

    model = hk.transform(f)
    params = model.init(jax.random.PRNGKey(0), X)
    return model.apply(params, None, X), params


def data():
    model = hk.transform(lambda x: hk.nets.MLP([4, 2])(x))
    params = model.init(jax.random.PRNGKey(0), X)
    first, rest = hk.data_structures.partition(lambda m, n, v: n == "w", params)
    return (
        hk.data_structures.merge(first, rest),
        jnp.array(hk.data_structures.tree_size(params)),
        jnp.array(len(hk.experimental.tabulate(model)(X)) > 0),
        hk.data_structures.map(lambda m, n, v: 2 * v, params),
    )


def getters():
    def scaled(next_getter, value, context):
        return 2 * next_getter(value)

    def f(x):
        with hk.custom_getter(scaled):
            return hk.Linear(2)(x)

    model = hk.transform(f)
    params = model.init(jax.random.PRNGKey(0), X)
    multi = hk.multi_transform(lambda: (lambda x: hk.Linear(2)(x), (hk.Linear(2), hk.Linear(3))))
    return model.apply(params, None, X), len(multi.apply)


def spectral():
    def f(x):
        return hk.nets.VectorQuantizer(3, 4, 0.25)(x, True)["quantize"], hk.ExponentialMovingAverage(0.9)(x.mean())

    model = hk.transform_with_state(f)
    params, state = model.init(jax.random.PRNGKey(0), X)
    return model.apply(params, state, None, X)


PROGRAMS = {f.__name__: f for f in (mlp, with_state, layers, recurrent, lifted, data, getters, spectral)}
