"""Programs of optax: training steps with many optimizers, schedules, losses, wrappers."""

import jax
import jax.numpy as jnp
import optax

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3)
Y = jnp.sin(X.sum(1, keepdims=True))


def params():
    keys = jax.random.split(jax.random.key(0), 2)
    return {"w": jax.random.normal(keys[0], (3, 4)), "b": jnp.zeros(4), "v": jax.random.normal(keys[1], (4, 1))}


def loss(p):
    return jnp.mean((jnp.tanh(X @ p["w"] + p["b"]) @ p["v"] - Y) ** 2)


def trained(optimizer, steps=10):
    p = params()
    state = optimizer.init(p)

    @jax.jit
    def step(p, state):
        value, grads = jax.value_and_grad(loss)(p)
        updates, state = optimizer.update(grads, state, p)
        return optax.apply_updates(p, updates), state, value

    values = []
    for _ in range(steps):
        p, state, value = step(p, state)
        values.append(value)
    return p, jnp.stack(values)


def first_order():
    makers = [
        optax.sgd(0.1, momentum=0.9, nesterov=True),
        optax.adam(1e-2),
        optax.adamw(1e-2),
        optax.rmsprop(1e-2),
        optax.adagrad(0.1),
        optax.adamax(1e-2),
        optax.lion(1e-3),
        optax.nadam(1e-2),
        optax.radam(1e-2),
        optax.lamb(1e-2),
        optax.yogi(1e-2),
        optax.adabelief(1e-2),
        optax.novograd(1e-2),
    ]
    return [trained(m, 5) for m in makers]


def factored():
    return trained(optax.adafactor(1e-2), 5), trained(optax.sm3(1e-2), 5)


def chained():
    schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 10)
    return trained(
        optax.chain(optax.clip_by_global_norm(0.5), optax.scale_by_adam(), optax.scale_by_learning_rate(schedule))
    )


def schedules():
    t = jnp.arange(12)
    made = [
        optax.exponential_decay(1.0, 3, 0.5),
        optax.cosine_decay_schedule(1.0, 10),
        optax.piecewise_constant_schedule(1.0, {3: 0.1, 7: 0.5}),
        optax.linear_schedule(1.0, 0.0, 10),
        optax.polynomial_schedule(1.0, 0.1, 2.0, 8),
        optax.linear_onecycle_schedule(12, 1.0),
        optax.join_schedules([optax.constant_schedule(1.0), optax.constant_schedule(2.0)], [5]),
    ]
    return [jax.vmap(s)(t) for s in made]


def losses():
    logits = jnp.linspace(-2.0, 2.0, 12).reshape(4, 3)
    labels = jnp.array([0, 2, 1, 1])
    soft = jax.nn.softmax(-logits)
    return [
        optax.softmax_cross_entropy_with_integer_labels(logits, labels),
        optax.softmax_cross_entropy(logits, soft),
        optax.sigmoid_binary_cross_entropy(logits, soft),
        optax.l2_loss(logits, soft),
        optax.huber_loss(logits, soft),
        optax.cosine_similarity(logits, soft),
        optax.kl_divergence(jnp.log(soft), soft),
        optax.log_cosh(logits, soft),
        optax.hinge_loss(logits, jnp.sign(logits)),
        optax.smooth_labels(jax.nn.one_hot(labels, 3), 0.1),
        optax.ctc_loss(jnp.ones((1, 5, 3)), jnp.zeros((1, 5)), jnp.array([[1, 2]]), jnp.zeros((1, 2))),
    ]


def multi():
    labels = {"w": "fast", "b": "frozen", "v": "slow"}
    opt = optax.multi_transform(
        {"fast": optax.adam(1e-1), "slow": optax.sgd(1e-2), "frozen": optax.set_to_zero()}, labels
    )
    return trained(opt)


def accumulated():
    return trained(optax.MultiSteps(optax.adam(1e-2), every_k_schedule=3))


def injected():
    return trained(optax.inject_hyperparams(optax.adam)(learning_rate=optax.linear_schedule(1e-1, 1e-3, 5)))


def masked():
    opt = optax.masked(optax.sgd(0.1), {"w": True, "b": False, "v": True})
    return trained(opt), trained(optax.apply_if_finite(optax.sgd(0.1), 2))


def second_order():
    opt = optax.lbfgs()
    p = params()
    state = opt.init(p)
    fun = optax.value_and_grad_from_state(loss)

    @jax.jit
    def step(p, state):
        value, grad = fun(p, state=state)
        updates, state = opt.update(grad, state, p, value=value, grad=grad, value_fn=loss)
        return optax.apply_updates(p, updates), state, value

    values = []
    for _ in range(5):
        p, state, value = step(p, state)
        values.append(value)
    return jnp.stack(values)


def averaged():
    ema = optax.ema(0.9)
    state = ema.init(params())
    out, state = ema.update(params(), state)
    return (
        out,
        optax.global_norm(params()),
        optax.tree_utils.tree_vdot(params(), params()),
        optax.incremental_update(params(), jax.tree.map(jnp.zeros_like, params()), 0.1),
    )


def projections():
    x = jnp.array([0.5, -2.0, 3.0])
    return (
        optax.projections.projection_simplex(x),
        optax.projections.projection_l1_ball(x, 1.0),
        optax.projections.projection_box(x, 0.0, 1.0),
    )


PROGRAMS = {
    f.__name__: f
    for f in (
        first_order,
        factored,
        chained,
        schedules,
        losses,
        multi,
        accumulated,
        injected,
        masked,
        second_order,
        averaged,
        projections,
    )
}
