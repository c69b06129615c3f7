"""Networks and optimizers of examples: `rnn`, `stax`, `optimizers`. JAX is the oracle."""

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as jax_optimizers, stax as jax_stax
from jax.experimental import rnn as jax_rnn

import ferrax
import ferrax.numpy as jnp
from ferrax.example_libraries import optimizers, stax
from ferrax.experimental import rnn

RNG = np.random.default_rng(0)


def close(ours, theirs, rtol=2e-5):
    assert str(ferrax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    for one, other in zip(ferrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, True)])
def test_lstm(layers, bidirectional):
    sizes = (3, 4, layers, bidirectional)
    count = rnn.get_num_params_in_lstm(*sizes)
    assert count == jax_rnn.get_num_params_in_lstm(*sizes)
    weights = rnn.init_lstm_weight(ferrax.random.key(0), *sizes)
    np.testing.assert_array_equal(weights, jax_rnn.init_lstm_weight(jax.random.key(0), *sizes))
    np.testing.assert_array_equal(rnn.swap_lstm_gates(weights, *sizes), jax_rnn.swap_lstm_gates(weights, *sizes))
    x = RNG.normal(size=(2, 5, 3)).astype(np.float32)
    h, c = (RNG.normal(size=(layers * (1 + bidirectional), 2, 4)).astype(np.float32) for _ in range(2))
    lengths = np.array([5, 3])
    parts = jax_rnn.unpack_lstm_weights(np.asarray(weights), *sizes)
    for one, other in zip(rnn.unpack_lstm_weights(weights, *sizes), parts, strict=True):
        assert {k: v.tolist() for k, v in one.items()} == {k: v.tolist() for k, v in other.items()}
    ours = rnn.lstm(x, h, c, weights, lengths, *sizes[:3], 0.0, bidirectional)
    close(ours, jax_rnn.lstm_ref(x, h, c, *parts, lengths, *sizes[:3], 0.0, bidirectional))
    again = rnn.lstm_ref(x, h, c, *rnn.unpack_lstm_weights(weights, *sizes), lengths, *sizes[:3], 0.0, bidirectional)
    close(ours, again)
    slope = ferrax.grad(lambda w: rnn.lstm(x, h, c, w, lengths, *sizes[:3], 0.0, bidirectional)[0].sum())(weights)
    assert np.isfinite(slope).all() and np.abs(slope).sum() > 0
    with pytest.raises(NotImplementedError, match="Dropout"):
        rnn.lstm(x, h, c, weights, lengths, *sizes[:3], 0.5, bidirectional)


LAYERS = {
    "dense": (lambda s: s.serial(s.Dense(3), s.Relu, s.Dense(2), s.LogSoftmax), (2, 4)),
    "conv": (lambda s: s.serial(s.Conv(2, (3, 3), padding="SAME"), s.Selu, s.Flatten), (1, 5, 5, 3)),
    "strides": (lambda s: s.Conv(2, (3, 2), strides=(2, 1)), (2, 7, 5, 3)),
    "letters": (lambda s: s.GeneralConv(("NCHW", "OIHW", "NHWC"), 4, (3, 3)), (2, 3, 5, 6)),
    "transpose": (lambda s: s.ConvTranspose(2, (3, 3), strides=(2, 2), padding="SAME"), (1, 5, 5, 3)),
    "1d transpose": (lambda s: s.Conv1DTranspose(2, (3,)), (1, 5, 3)),
    "batch norm": (lambda s: s.serial(s.Dense(3), s.BatchNorm(axis=(0,))), (4, 2)),
    "batch norm of images": (lambda s: s.BatchNorm(), (2, 3, 4, 2)),
    "no center": (lambda s: s.BatchNorm(axis=0, center=False), (4, 2)),
    "max pool": (lambda s: s.MaxPool((2, 2), strides=(2, 2)), (2, 5, 4, 3)),
    "sum pool": (lambda s: s.SumPool((2, 3), padding="SAME"), (2, 5, 4, 3)),
    "avg pool": (lambda s: s.AvgPool((2, 2), strides=(2, 2), padding="SAME"), (1, 5, 5, 2)),
    "pool of letters": (lambda s: s.MaxPool((2, 2), spec="NCHW"), (1, 2, 5, 5)),
    "fans": (
        lambda s: s.serial(s.FanOut(2), s.parallel(s.Dense(3), s.Identity), s.FanInConcat(), s.FanOut(3), s.FanInSum),
        (2, 4),
    ),
    "dropout": (lambda s: s.serial(s.Dense(3), s.Dropout(0.6), s.Dense(5), s.Dropout(0.3)), (2, 4)),
    "activations": (
        lambda s: s.serial(
            s.Tanh, s.Exp, s.Softmax, s.Softplus, s.Sigmoid, s.Elu, s.LeakyRelu, s.Gelu,
            s.elementwise(lambda x, k: x * k, k=3),
        ),
        (3, 4),
    ),
    "late": (lambda s: s.shape_dependent(lambda shape: s.Dense(shape[-1] + 1)), (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_like_jax(name):
    make, shape = LAYERS[name]
    x = RNG.normal(size=shape).astype(np.float32)
    ours, theirs = make(stax), make(jax_stax)
    key, same = ferrax.random.PRNGKey(3), jax.random.PRNGKey(3)
    size, params = ours[0](key, shape)
    jax_size, jax_params = theirs[0](same, shape)
    assert tuple(size) == tuple(jax_size)
    close(params, jax_params)
    out = ours[1](params, x, rng=key)
    assert out.shape == tuple(size)
    close(out, theirs[1](jax_params, x, rng=same), rtol=1e-4)


def test_batches_of_any_size():
    for make, shape in ((stax.Conv(2, (3, 3)), (-1, 5, 5, 1)), (stax.MaxPool((2, 2)), (-1, 4, 4, 1))):
        assert make[0](ferrax.random.key(0), shape)[0][0] == -1


def test_dropout_needs_a_key():
    for mode in ("train", "test"):
        with pytest.raises(ValueError, match="PRNG key argument"):
            stax.Dropout(0.5, mode)[1]((), jnp.ones(3))


OPTIMIZERS = {
    "sgd": (0.1,),
    "momentum": (0.1, 0.9),
    "nesterov": (0.1, 0.9),
    "adagrad": (0.1,),
    "rmsprop": (0.1,),
    "rmsprop_momentum": (0.1,),
    "adam": (0.1,),
    "adamax": (0.1,),
    "sm3": (0.1,),
}
PARAMS = {"a": np.array([[0.5, 0.1], [1.0, -2.0], [0.0, 3.0]], np.float32), "b": (np.float32(-0.3),)}
GRADS = {"a": np.array([[1.0, -2.0], [0.5, 0.0], [0.1, 7.0]], np.float32), "b": (np.float32(3.0),)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_like_jax(name):
    results = []
    for library, np_, tree in ((optimizers, jnp, ferrax.tree), (jax_optimizers, jax.numpy, jax.tree)):
        init, update, get_params = getattr(library, name)(*OPTIMIZERS[name])
        state = init(tree.map(np_.asarray, PARAMS))
        for i in range(3):
            state = update(i, tree.map(lambda g, i=i: np_.asarray(g) * (i - 1.5), GRADS), state)
        results.append(get_params(state))
    close(*results)
    assert ferrax.tree.map(lambda x: x.dtype, results[0]) == {"a": "float32", "b": ("float32",)}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("constant", (0.5,)),
        ("exponential_decay", (1.0, 10, 0.5)),
        ("inverse_time_decay", (1.0, 10, 0.5)),
        ("inverse_time_decay", (1.0, 10, 0.5, True)),
        ("polynomial_decay", (1.0, 10, 0.1, 2.0)),
        ("piecewise_constant", ([5, 10], [1.0, 0.5, 0.25])),
    ],
)
def test_schedules_like_jax(name, args):
    ours, theirs = getattr(optimizers, name)(*args), getattr(jax_optimizers, name)(*args)
    for i in (0, 5, 6, 10, 25):
        np.testing.assert_allclose(ours(i), theirs(i), rtol=1e-6)
        np.testing.assert_allclose(ferrax.jit(ours)(i), theirs(i), rtol=1e-6)


def test_states_under_jit_and_as_trees():
    init, update, get_params = optimizers.adam(optimizers.exponential_decay(0.1, 10, 0.9))
    state = init(PARAMS)
    stepped = ferrax.jit(update)(2, GRADS, state)
    close(get_params(stepped), get_params(update(2, GRADS, state)))
    tree = optimizers.unpack_optimizer_state(stepped)
    assert isinstance(tree["a"], optimizers.JoinPoint) and len(tree["a"].subtree) == 3
    packed = optimizers.pack_optimizer_state(tree)
    assert ferrax.tree.structure(packed) == ferrax.tree.structure(stepped)
    close(get_params(update(3, GRADS, packed)), get_params(update(3, GRADS, stepped)))
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        update(0, {"a": GRADS["a"]}, state)


def test_clipping():
    np.testing.assert_allclose(optimizers.l2_norm(GRADS), jax_optimizers.l2_norm(GRADS), rtol=1e-6)
    close(optimizers.clip_grads(GRADS, 1.0), jax_optimizers.clip_grads(GRADS, 1.0))
    close(optimizers.clip_grads(GRADS, 1e3), GRADS)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optimizers.make_schedule(np.ones(2)), TypeError, "a step size is a number or a function"),
        (lambda: optimizers.piecewise_constant([1, 2], [1, 2]), ValueError, "one shorter than values"),
        (lambda: optimizers.piecewise_constant(1, [1, 2]), ValueError, "must be sequences"),
        (lambda: optimizers.pack_optimizer_state({"a": 1}), TypeError, "JoinPoints"),
    ],
)
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
