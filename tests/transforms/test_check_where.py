"""The static check of `where`: which gradients it warns of, where, and which it knows to be safe (promise P8)."""

import warnings

import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

V = jnp.arange(4.0)
w = jnp.where


def collected(call):
    with jax.check_where(), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in found]


def total(f):
    return lambda x: jnp.sum(f(x))


WAYS = {
    "at once": lambda f: jax.grad(total(f))(1.0),
    "jit(grad)": lambda f: jax.jit(jax.grad(total(f)))(1.0),
    "grad(jit)": lambda f: jax.grad(jax.jit(total(f)))(1.0),
    "vmap(grad)": lambda f: jax.vmap(jax.grad(total(f)))(jnp.ones(3)),
}

# what is NaN for some argument
HAZARDS = {
    "sqrt": lambda x: w(x > 0, jnp.sqrt(x), 0.0),
    "log": lambda x: w(x > 0, jnp.log(x), 0.0),
    "1 / x": lambda x: w(x == 0, 1.0, 1 / x),
    "other operations after it": lambda x: w(x > 0, 2 * jnp.sqrt(x) + 1, 0.0),
    "maximum with zero": lambda x: w(x > 0, jnp.sqrt(jnp.maximum(x, 0.0)), 0.0),
    "maximum with less than zero": lambda x: w(x > 0, jnp.sqrt(jnp.maximum(x, -1e-3)), 0.0),
    "a square": lambda x: w(x > 0, jnp.sqrt(x * x), 0.0),
    "abs": lambda x: w(x > 0, jnp.sqrt(jnp.abs(x)), 0.0),
    "a root by a power": lambda x: w(x > 0, x**0.5, 0.0),
    "a negative power": lambda x: w(x != 0, x**-1, 0.0),
    "arcsin": lambda x: w(abs(x) < 1, jnp.arcsin(x), 0.0),
    "arctanh": lambda x: w(abs(x) < 1, jnp.arctanh(x), 0.0),
    "log1p": lambda x: w(x > -1, jnp.log1p(x), 0.0),
    "rsqrt": lambda x: w(x > 0, lax.rsqrt(x), 0.0),
    "cbrt": lambda x: w(x != 0, jnp.cbrt(x), 0.0),
    "a norm": lambda x: w(jnp.sum(x) > 0, jnp.sqrt(jnp.sum((x * V) ** 2)), 0.0),
    "std": lambda x: w(jnp.sum(x) > 0, jnp.std(x * V), 0.0),
    "a difference that can be zero": lambda x: w(x > 0, jnp.log(1 - jnp.exp(-x)), 0.0),
    "a divisor with a zero inside": lambda x: w(x != 1, x / (x - 1), 0.0),
    "sin(x) / x": lambda x: w(x != 0, jnp.sin(x) / x, 1.0),
    "a clip from zero": lambda x: w(x > 0, jnp.log(jnp.clip(x, 0.0, None)), 0.0),
    "minimum": lambda x: w(x > 0, 1 / jnp.minimum(x, 1e-3), 0.0),
    "a guard in the other branch": lambda x: w(x > 0, jnp.sqrt(w(x > 0, 0.0, x)), 0.0),
    "a guard that is too wide": lambda x: w(x > 0, jnp.sqrt(w(x > -5, x, 1.0)), 0.0),
    "select_n": lambda x: lax.select_n(x > 0, 0.0 * x, jnp.sqrt(x)),
    "a constant divisor with a zero": lambda x: w(V > 0, x / V, 0.0),
    "an underflow": lambda x: w(x > 0, jnp.log(jnp.exp(x)), 0.0),
}

# what is finite for every argument
SAFE = {
    "a constant divisor": lambda x: w(x > 0, x / 2.0, 0.0),
    "an array of divisors": lambda x: w(x > 0, x / jnp.array([1.0, 2.0]), 0.0),
    "an integer divisor": lambda x: w(x > 0, x / 3, 0.0),
    "converted divisors": lambda x: w(x > 0, x / (jnp.arange(4) + 1).astype(jnp.float32), 0.0),
    "maximum with more than zero": lambda x: w(x > 0, jnp.sqrt(jnp.maximum(x, 1e-6)), 0.0),
    "maximum of counts": lambda x: w(x > 0, x / jnp.maximum(jnp.arange(3), 1), 0.0),
    "clip from below": lambda x: w(x > 0, jnp.log(jnp.clip(x, 1e-6, None)), 0.0),
    "clip": lambda x: w(x > 0, jnp.log(jnp.clip(x, 1e-6, 1.0)), 0.0),
    "clamp": lambda x: w(x > 0, jnp.log(lax.clamp(1e-6, x, 1.0)), 0.0),
    "a where inside": lambda x: w(x > 0, jnp.sqrt(w(x > 0, x, 1.0)), 0.0),
    "a where inside that blocks": lambda x: w(x > 0, jnp.sqrt(w(x > 0, x, 0.0)), 0.0),
    "a divisor with a where": lambda x: w(x == 0, 0.0, 1 / w(x == 0, 1.0, x)),
    "a divisor with another where": lambda x: w(x != 0, 1 / w(x != 0, x, 1.0), 0.0),
    "a where inside of more": lambda x: w(x > 0, x / w(x > 0, x * 2, 1.0), 0.0),
    "a where of another condition": lambda x: w((x > 0) & (x < 2), jnp.sqrt(w(x > 0, x, 1.0)), 0.0),
    "a mask": lambda x: w(V > 1, jnp.sqrt(w(V > 1, x * V, 1.0)), 0.0),
    "x**2 + 1": lambda x: w(x > 0, jnp.sqrt(x**2 + 1), 0.0),
    "1 / (1 + exp)": lambda x: w(x > 0, 1 / (1 + jnp.exp(-x)), 0.0),
    "log(1 + exp)": lambda x: w(x > 0, jnp.log(1 + jnp.exp(x)), 0.0),
    "a sum of squares and more": lambda x: w(x > 0, jnp.sqrt(jnp.sum((x * V) ** 2) + 1e-6), 0.0),
    "a product of a vector with itself": lambda x: w(x > 0, jnp.sqrt((x * V) @ (x * V) + 1e-6), 0.0),
    "a mean of squares and more": lambda x: w(x > 0, x / jnp.sqrt(jnp.mean((x * V) ** 2) + 1e-6), 0.0),
    "var and more": lambda x: w(x > 0, x / jnp.sqrt(jnp.var(x * V) + 1e-5), 0.0),
    "softplus and more": lambda x: w(x > 0, jnp.log(jax.nn.softplus(x) + 1e-3), 0.0),
    "sigmoid and more": lambda x: w(x > 0, 1 / (jax.nn.sigmoid(x) + 0.1), 0.0),
    "abs and more": lambda x: w(x > 0, jnp.log(jnp.abs(x) + 1), 0.0),
    "log1p of a square": lambda x: w(x > 0, jnp.log1p(x * x), 0.0),
    "cosh": lambda x: w(x > 0, 1 / jnp.cosh(x), 0.0),
    "2 + sin": lambda x: w(x > 0, jnp.sqrt(2 + jnp.sin(x)), 0.0),
    "below zero": lambda x: w(x > 0, 1 / (-1 - x * x), 0.0),
    "half a tanh": lambda x: w(x > 0, jnp.arcsin(0.5 * jnp.tanh(x)), 0.0),
    "stop_gradient": lambda x: w(x > 0, x * jnp.sqrt(lax.stop_gradient(x)), 0.0),
    "a whole power": lambda x: w(x > 0, x**2.0 + x**3, 0.0),
    "softmax": lambda x: w(x > 0, jax.nn.softmax(x * V), 0.0),
    "elu": jax.nn.elu,
    "sinc": jnp.sinc,
    "no where around it": lambda x: jnp.sqrt(w(x > 0, x, 1.0)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", HAZARDS)
def test_hazards_are_found(name, way):
    [text] = collected(lambda: WAYS[way](HAZARDS[name]))
    assert text.startswith(f"where at {__file__}:{HAZARDS[name].__code__.co_firstlineno} ")


@pytest.mark.parametrize("way", [way for way in WAYS if "jit" in way])
def test_the_largest_exponential_is_one(way):
    assert collected(lambda: WAYS[way](lambda x: w(x > 0, jax.nn.logsumexp(x * V), 0.0))) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SAFE)
def test_what_is_safe_is_left_alone(name, way):
    assert collected(lambda: WAYS[way](SAFE[name])) == []


def root(z):
    return w(z > 0, jnp.sqrt(z), 0.0)


@jax.custom_jvp
def own_jvp(x):
    return x * 1.0


own_jvp.defjvp(lambda p, t: (own_jvp(*p), t[0]))


@jax.custom_vjp
def own_vjp(x):
    return x * 1.0


own_vjp.defvjp(lambda x: (own_vjp(x), None), lambda r, g: (g,))


def outside(x):
    s = jnp.sqrt(x)
    return lax.scan(lambda c, v: (c + w(v > 1, s, 0.0), None), 0.0, V)[0]


def positive_outside(x):
    s = jnp.maximum(x, 1e-3)
    return lax.scan(lambda c, v: (c + w(v > 1, jnp.sqrt(s), 0.0), None), 0.0, V)[0]


PROGRAMS = {
    "scan": (lambda x: lax.scan(lambda c, v: (c + root(v), None), 0.0, x * V)[0], 1),
    "the carry of a scan": (lambda x: lax.scan(lambda c, v: (w(v > 0, jnp.sqrt(c), c), None), x, V)[0], 1),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + w(c > 0, jnp.log(c), 0.0), x), 1),
    "while_loop": (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, root(s[1])), (0, x))[1], 1),
    "map": (lambda x: lax.map(root, x * V), 1),
    "cond": (lambda x: lax.cond(True, root, lambda x: x, x), 1),
    "switch": (lambda x: lax.switch(1, [lambda x: x, root], x), 1),
    "nested jit": (lambda x: jax.jit(lambda y: jax.jit(root)(y))(x), 1),
    "jit in a scan": (lambda x: lax.scan(lambda c, v: (c + jax.jit(root)(v), None), 0.0, x * V)[0], 1),
    "vmap": (lambda x: jax.vmap(root)(x * V), 1),
    "checkpoint": (jax.checkpoint(root), 1),
    "the edge in a program, where outside": (lambda x: w(x > 0, jax.jit(jnp.sqrt)(x), 0.0), 1),
    "the edge in a loop, where outside": (
        lambda x: w(x > 0, lax.scan(lambda c, v: (c + jnp.sqrt(v), None), 0.0, x * V)[0], 0.0),
        1,
    ),
    "the edge outside, where in a loop": (outside, 1),
    "a function with a jvp rule": (lambda x: w(x > 0, own_jvp(jnp.sqrt(x)), 0.0), 1),
    "a function with a vjp rule": (lambda x: w(x > 0, own_vjp(jnp.sqrt(x)), 0.0), 1),
    "where before a rule": (lambda x: own_jvp(root(x)), 1),
    "both branches": (lambda x: w(x > 0, jnp.sqrt(x), jnp.log(-x)), 2),
    "two on a line": (lambda x: w(x > 0, jnp.sqrt(x), 0.0) + w(x > 0, jnp.sqrt(x), 0.0), 2),
    "two operations on a line": (lambda x: w(x > 0, jnp.sqrt(x) / jnp.sqrt(2 * x), 0.0), 1),
    "one line twice": (lambda x: [w(x > 0, jnp.sqrt(k * x), 0.0) for k in (1.0, 2.0)][1], 1),
    "a safe scan": (
        lambda x: lax.scan(lambda c, v: (c + w(v > 0, jnp.sqrt(w(v > 0, v, 1.0)), 0.0), None), 0.0, x * V)[0],
        0,
    ),
    "a safe loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + w(c > 0, x / (i + 1), 0.0), x), 0),
    "a carry that stays positive": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: w(i > 1, jnp.sqrt(c), c + 1.0), x * x + 1.0),
        0,
    ),
    "positive outside, where in a loop": (positive_outside, 0),
    "a safe rule": (lambda x: w(x > 0, own_vjp(x), 0.0), 0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_inside(name, way):
    fun, count = PROGRAMS[name]
    assert len(collected(lambda: WAYS[way](fun))) == count


def test_a_site_is_reported_once_while_the_check_is_on():
    def twice():
        for _ in range(3):
            jax.grad(root)(1.0)
            jax.jit(jax.grad(lambda x: root(x)))(1.0)

    assert len(collected(twice)) == 1
    assert len(collected(twice)) == 1


def test_a_warning_can_be_an_error():
    with jax.check_where(), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="its branch for true"):
            jax.grad(root)(1.0)
