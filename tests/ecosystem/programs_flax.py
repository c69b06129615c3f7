"""Programs of Flax: linen modules with collections and lifted transformations, nnx modules with training."""

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = jnp.sin(X.sum(1, keepdims=True))


class MLP(nn.Module):
    width: int = 8

    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(self.width)(x)))


def linen_mlp():
    model = MLP()
    state = train_state.TrainState.create(
        apply_fn=model.apply, params=model.init(jax.random.key(0), X)["params"], tx=optax.adam(1e-2)
    )

    @jax.jit
    def step(state):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((state.apply_fn({"params": p}, X) - Y) ** 2))(state.params)
        return state.apply_gradients(grads=grads), loss

    losses = []
    for _ in range(5):
        state, loss = step(state)
        losses.append(loss)
    return losses, state.params


def linen_norm():
    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.BatchNorm(use_running_average=not train)(nn.Dense(4)(x))
            x = nn.Dropout(0.5, deterministic=not train)(nn.LayerNorm()(x))
            return nn.GroupNorm(num_groups=2)(x)

    net = Net()
    variables = net.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, X, True)
    out, updates = net.apply(variables, X, True, rngs={"dropout": jax.random.key(2)}, mutable=["batch_stats"])
    return out, updates, net.apply({**variables, **updates}, X, False)


def linen_layers():
    image = jax.random.normal(jax.random.key(0), (2, 8, 8, 3))
    seq = jax.random.normal(jax.random.key(1), (2, 5, 6))
    out = []
    for module, x in (
        (nn.Conv(4, (3, 3)), image),
        (nn.ConvTranspose(2, (3, 3), strides=(2, 2)), image),
        (nn.Embed(5, 3), jnp.array([[1, 2]])),
        (nn.DenseGeneral((2, 3)), seq),
        (nn.RNN(nn.LSTMCell(4)), seq),
        (nn.RNN(nn.GRUCell(4)), seq),
        (nn.RMSNorm(), seq),
        (nn.Einsum((6, 2), "bte,ef->btf"), seq),
    ):
        out.append(module.init_with_output(jax.random.key(2), x))
    return out, nn.max_pool(image, (2, 2), (2, 2)), nn.avg_pool(image, (2, 2))


def linen_attention():
    seq = jax.random.normal(jax.random.key(1), (2, 5, 8))
    model = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8)
    variables = model.init(jax.random.key(0), seq, seq)
    mask = nn.make_causal_mask(jnp.ones((2, 5)))
    return model.apply(variables, seq, seq, mask=mask), jax.grad(lambda v: model.apply(v, seq, seq).sum())(variables)


def linen_lifted():
    class Body(nn.Module):
        @nn.compact
        def __call__(self, carry, x):
            carry = nn.tanh(nn.Dense(3)(carry) + x)
            return carry, carry

    scan = nn.scan(Body, variable_broadcast="params", split_rngs={"params": False})
    stack = nn.scan(Body, variable_axes={"params": 0}, split_rngs={"params": True}, length=8)
    vmapped = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)
    remat = nn.remat(nn.Dense)
    return (
        scan().init_with_output(jax.random.key(0), jnp.zeros(3), X),
        stack().init_with_output(jax.random.key(0), jnp.zeros(3), X),
        vmapped(4).init_with_output(jax.random.key(0), X),
        remat(4).init_with_output(jax.random.key(0), X),
        nn.jit(nn.Dense)(4).init_with_output(jax.random.key(0), X),
    )


def linen_state():
    class Counter(nn.Module):
        @nn.compact
        def __call__(self, x):
            count = self.variable("state", "count", lambda: jnp.zeros((), int))
            self.sow("intermediates", "x", x)
            count.value += 1
            return x + self.param("bias", nn.initializers.ones, x.shape)

    model = Counter()
    variables = model.init(jax.random.key(0), X[0])
    out, changed = model.apply(variables, X[0], mutable=["state", "intermediates"])
    return (
        out,
        changed,
        jax.tree.leaves(flax.traverse_util.flatten_dict(variables["params"])),
        flax.core.freeze(variables),
    )


def serialized():
    params = MLP().init(jax.random.key(0), X)
    data = flax.serialization.to_bytes(params)
    return flax.serialization.from_bytes(params, data), jnp.array(len(data))


def nnx_mlp():
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.a = nnx.Linear(3, 8, rngs=rngs)
            self.norm = nnx.BatchNorm(8, rngs=rngs)
            self.drop = nnx.Dropout(0.2, rngs=rngs)
            self.b = nnx.Linear(8, 1, rngs=rngs)

        def __call__(self, x):
            return self.b(self.drop(nnx.relu(self.norm(self.a(x)))))

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(X) - Y) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    losses = [step(model, optimizer) for _ in range(4)]
    model.eval()
    return losses, model(X), nnx.state(model, nnx.Param)


def nnx_split():
    from flax import nnx

    model = nnx.Linear(3, 2, rngs=nnx.Rngs(1))
    graph, state = nnx.split(model)
    doubled = nnx.merge(graph, jax.tree.map(lambda x: 2 * x, state))
    stacked = nnx.vmap(lambda rngs: nnx.Linear(3, 2, rngs=rngs), in_axes=0, out_axes=0)(nnx.Rngs(0).fork(split=3))
    return doubled(X), state, nnx.vmap(lambda m, x: m(x), in_axes=(0, None))(stacked, X)


def nnx_layers():
    from flax import nnx

    rngs = nnx.Rngs(0)
    seq = jax.random.normal(jax.random.key(1), (2, 5, 8))
    image = jax.random.normal(jax.random.key(0), (2, 8, 8, 3))
    return (
        nnx.MultiHeadAttention(2, 8, rngs=rngs, decode=False)(seq),
        nnx.Conv(3, 4, (3, 3), rngs=rngs)(image),
        nnx.LayerNorm(8, rngs=rngs)(seq),
        nnx.Embed(4, 3, rngs=rngs)(jnp.array([1, 2])),
        nnx.RNN(nnx.LSTMCell(8, 4, rngs=rngs), rngs=rngs)(seq),
        nnx.Einsum("bte,ef->btf", (8, 2), (2,), rngs=rngs)(seq),
    )


PROGRAMS = {
    f.__name__: f
    for f in (
        linen_mlp,
        linen_norm,
        linen_layers,
        linen_attention,
        linen_lifted,
        linen_state,
        serialized,
        nnx_mlp,
        nnx_split,
        nnx_layers,
    )
}
