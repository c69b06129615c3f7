"""No error shows a frame of the library, wherever library code stands between two of the user's: rules, callbacks,
classes, objects and stages."""

import pathlib
import traceback

import numpy as np
import pytest

import ferrax as jax
import ferrax.numpy as jnp
from ferrax import lax

LIBRARY = str(pathlib.Path(jax.__file__).parent)
X = jnp.ones(3)
S = jax.ShapeDtypeStruct((), np.int32)


def raises(*args):
    return args[0].no_such_method()


def with_bwd(bwd, nondiff=()):
    f = jax.custom_vjp(lambda *args: args[-1] * 1.0, nondiff_argnums=nondiff)
    f.defvjp(lambda *args: (args[-1] * 1.0, args[-1]), bwd)
    return f


def with_jvp(rule):
    f = jax.custom_jvp(lambda x: x * 1.0)
    f.defjvp(rule)
    return f


def loop(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


def compiled():
    return jax.jit(lambda x, y: x + y).lower(X, X).compile()


def vmap_rule(rule):
    f = jax.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return jax.vmap(f)


RULES = [
    *[lambda g=g, b=b: g(with_bwd(b))
      for b in (raises, lambda r, c: (jnp.ones(2),), lambda r, c: (c, c))
      for g in (lambda f: jax.grad(f)(1.0), lambda f: jax.jit(jax.grad(f))(1.0), lambda f: jax.grad(jax.jit(f))(1.0),
                lambda f: jax.vmap(jax.grad(f))(X), lambda f: jax.vjp(f, 1.0)[1](1.0), lambda f: jax.grad(loop(f))(1.0),
                lambda f: jax.jacrev(f)(1.0), lambda f: jax.linear_transpose(jax.linearize(f, 1.0)[1], 1.0)(1.0))],
    *[lambda g=g, r=r: g(with_jvp(r))
      for r in (lambda p, t: p.no_such_method, lambda p, t: (p[0], 1), lambda p, t: p[0])
      for g in (lambda f: jax.jvp(f, (1.0,), (1.0,)), lambda f: jax.jit(jax.grad(f))(1.0),
                lambda f: jax.grad(loop(f))(1.0), lambda f: jax.vmap(jax.grad(f))(X))],
    lambda: jax.jit(with_bwd(raises, (0,)))(1.0, 2.0),
    lambda: jax.custom_vjp(lambda x: x, nondiff_argnames=("z",)),
    lambda: jax.custom_vjp(lambda x: x)(1.0),
    lambda: vmap_rule(raises)(X),
    lambda: vmap_rule(lambda n, b, x: x)(X),
    lambda: jax.grad(jax.checkpoint(raises))(1.0),
    lambda: jax.hessian(raises)(1.0),
    lambda: lax.custom_linear_solve(raises, X, lambda m, b: b),
]  # fmt: skip
CALLBACKS = [
    lambda w=w, c=c: np.asarray(w(lambda x: jax.pure_callback(c, S, x))(1.0))
    for w in (lambda f: f, jax.jit, lambda f: lambda x: loop(lambda c: f(c) * 1.0)(x))
    for c in (lambda x: 1.7, raises, lambda x: (1, 2), lambda x: np.ones(3, np.int32))
]
LOOPS = [
    lambda: lax.while_loop(raises, lambda x: x, 1),
    lambda: lax.fori_loop(0, 3, lambda i, x: raises(x), 1),
    lambda: lax.associative_scan(raises, X),
    lambda: lax.map(raises, X),
    lambda: lax.switch(0, [raises], X),
    lambda: lax.reduce(X, 1.0, raises, (0,)),
    lambda: jnp.vectorize(raises)(X),
    lambda: X.at[0].apply(raises),
    lambda: jax.tree.map(raises, [1]),
]
OBJECTS = [
    lambda: jnp.uint8(-1),
    lambda: jnp.int32("a"),
    lambda: jnp.float32(object()),
    lambda: compiled()(X, 1),
    lambda: compiled()(X),
    lambda: compiled()(X, "a"),
    lambda: jax.jit(lambda x: x).lower("a"),
    lambda: jax.jit(raises).lower(X),
    lambda: jax.jit(lambda x: x).lower(X).as_text("foo"),
    lambda: jax.config.nope,
    lambda: setattr(jax.config, "nope", 1),
    lambda: setattr(jax.config, "jax_enable_x64", True),
    lambda: jax.config.update("nope", 1),
    lambda: jax.config.update("jax_enable_x64", "maybe"),
    lambda: jax.enable_x64("maybe").__enter__(),
    lambda: jax.ShapeDtypeStruct((1.5,), np.float32),
    lambda: jax.ShapeDtypeStruct((1,), None),
    lambda: len(jax.ShapeDtypeStruct((), np.float32)),
    lambda: jnp.r_["a,b,c,d"],
    lambda: jnp.c_["a"],
    lambda: jnp.mgrid["a"],
    lambda: jnp.ogrid[object()],
    lambda: jnp.add.reduce(X, axis=5),
    lambda: jnp.add.at(X, 10, "a", inplace=False),
    lambda: jnp.add.outer(X, "a"),
    lambda: jnp.finfo(int),
    lambda: jax.tree_util.Partial(raises)(1),
    lambda: jax.nn.initializers.glorot_uniform()(jax.random.key(0), (3,)),
    lambda: jax.random.key("a"),
    lambda: jax.devices("foo"),
    lambda: jax.debug.printt,
    lambda: jax.nn.relus,
    lambda: jax.experimental.nothing,
]


@pytest.mark.parametrize("program", [*RULES, *CALLBACKS, *LOOPS, *OBJECTS])
def test_frames(program):
    with pytest.raises(Exception) as caught:
        program()
    assert not isinstance(caught.value, jax.errors.InternalError)
    assert LIBRARY not in "".join(traceback.format_exception(caught.value))
