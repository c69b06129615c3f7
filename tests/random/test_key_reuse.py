"""Keys that are used twice raise under `debug_key_reuse`, in calls and in programs, as in JAX."""

import gc

import numpy as np
import pytest

import ferrax as jax
from ferrax.errors import KeyReuseError
from ferrax.experimental import _key_marks
from tests.recorded import expected

#: Programs of a user, with `k` a fresh key and `ks` three of them.
CALLS = """R.normal(k); R.normal(k)
R.normal(k); R.bits(k)
R.normal(k); R.split(k)
R.split(k); R.split(k)
R.split(k); R.normal(k)
R.fold_in(k, 1); R.fold_in(k, 1)
R.normal(k); R.fold_in(k, 1)
R.fold_in(k, 1); R.normal(k)
R.randint(k, (2,), 0, 5); R.randint(k, (2,), 0, 5)
R.permutation(k, 5); R.normal(k)
R.choice(k, 5); R.normal(k)
R.gamma(k, 1.0); R.normal(k)
R.poisson(k, 1.0); R.normal(k)
R.uniform(k, minval=0.0); R.uniform(k, minval=1.0)
R.bernoulli(k); R.normal(k)
R.normal(k); R.normal(R.clone(k))
R.normal(k); R.key_data(k)
R.normal(k); repr(k)
R.normal(k); k == k
R.normal(ks[0]); R.normal(ks[1])
R.normal(ks[0]); R.normal(ks[0])
a = ks[0]; b = ks[0]
a = ks[0:1]; b = ks[0:1]
a = ks[0:1]; R.normal(a[0]); b = ks[1:]; R.normal(b[0])
a, b, c = ks; R.normal(a); R.normal(b)
a, b, c = ks; R.normal(a); R.normal(a)
a, b, c = ks; d, e, f = ks; R.normal(a); R.normal(d)
jax.vmap(R.normal)(ks)
jax.vmap(R.normal)(ks); jax.vmap(R.normal)(ks)
jax.vmap(R.normal)(ks); ks[0]
R.normal(ks[0]); jax.vmap(R.normal)(ks)
jax.vmap(lambda k: R.normal(k) + R.normal(k))(ks)
jax.vmap(lambda k: R.normal(R.split(k)[0]))(ks)
jit_normal(k); jit_normal(k)
jit_normal(k); R.normal(k)
jit_same(k); R.normal(k)
R.normal(k); R.normal(jit_same(k))
a = jit_same(k); R.normal(k); R.normal(a)
a = jit_split(k); R.normal(a[0])
jit_split(k); jit_split(k)
jax.jit(lambda k: R.normal(k) + R.uniform(k))(k)
jax.jit(lambda k: jit_normal(k) + jit_normal(k))(k)
jax.jit(lambda k: R.normal(k) + R.uniform(R.fold_in(k, 1)))(k)
jax.jit(lambda k, x: x)(k, 1.0); R.normal(k)
x, a = jax.jit(lambda k: (R.normal(k), k))(k); R.normal(a)
f = jax.jit(lambda x: R.normal(k) + x); f(1.0)
f = jax.jit(lambda x: R.normal(k) + x); f(1.0); f(1.0)
f = jax.jit(lambda x: R.normal(k) + x); f(1.0); R.normal(k)
lax.scan(lambda c, x: (c, R.normal(c)), k, jnp.arange(3))
lax.scan(lambda c, x: (R.split(c)[0], R.normal(R.split(R.clone(c))[1])), k, jnp.arange(3))
lax.scan(split_and_draw, k, jnp.arange(3))
lax.scan(split_and_draw, k, jnp.arange(3)); R.normal(k)
lax.scan(lambda c, x: (c, R.normal(k)), 0.0, jnp.arange(3))
lax.scan(lambda c, k: (c, R.normal(k)), 0.0, ks)
lax.scan(lambda c, k: (c, R.normal(k)), 0.0, ks); R.normal(ks[1])
jax.jit(lambda k: lax.scan(split_and_draw, k, jnp.arange(3)))(k)
lax.cond(True, R.normal, lambda k: 0.0, k)
lax.cond(True, R.normal, lambda k: 0.0, k); R.normal(k)
lax.cond(True, lambda k: R.normal(k) + R.normal(k), lambda k: 0.0, k)
jax.jit(lambda k: lax.cond(True, R.normal, lambda k: 0.0, k) + R.normal(k))(k)
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, k))
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + R.normal(c[1]), c[1]), (0.0, k))
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, R.split(c[1])[0]), (0.0, k))
lax.while_loop(lambda c: R.normal(c[1]) < -3, lambda c: (c[0] + 1, R.split(c[1])[0]), (0.0, k))
lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + R.normal(k), c[1]), (0.0, 1))
lax.fori_loop(0, 3, lambda i, c: c + R.normal(R.fold_in(k, i)), 0.0)
jax.grad(lambda x: x * R.normal(k))(1.0)
jax.grad(lambda x: x * R.normal(k))(1.0); R.normal(k)
jax.jit(jax.grad(lambda x, k: jnp.sin(x * R.normal(k))))(1.0, k)
jax.jit(jax.grad(jax.checkpoint(lambda x, k: jnp.sin(x * R.normal(k)))))(1.0, k)
R.normal(R.PRNGKey(0)); R.normal(R.PRNGKey(0))
jnp.stack([k, R.key(1)]); R.normal(k)
jnp.where(True, k, R.key(1)); R.normal(k)
R.normal(k); R.normal(R.wrap_key_data(R.key_data(k)))
R.normal(k); R.normal(k.copy())
R.normal(k.copy()); R.normal(k)
jax.make_jaxpr(lambda k: R.normal(k) + R.normal(k))(k)
jax.make_jaxpr(R.normal)(k); R.normal(k)
jax.eval_shape(lambda k: R.normal(k) + R.normal(k), k)
jax.eval_shape(R.normal, k); R.normal(k)
jax.jit(lambda k: R.normal(k) + R.normal(k)).lower(k)""".splitlines()

#: Texts of errors that say where a key is used.
TEXTS = """R.normal(k); R.normal(k)
R.split(k); R.split(k)
jax.jit(lambda k: R.split(k).shape[0] + R.normal(k))(k)
f = jax.jit(lambda x: R.normal(k) + x); f(1.0); f(1.0)""".splitlines()


def outcome(jax, source, text=False):
    names = {"jax": jax, "jnp": jax.numpy, "lax": jax.lax, "R": jax.random}
    exec(
        "jit_normal, jit_same, jit_split = jax.jit(lambda k: R.normal(k)), jax.jit(lambda k: k), jax.jit(R.split)\n"
        "def split_and_draw(c, x):\n    c, s = R.split(c)\n    return c, R.normal(s)\n"
        "k, ks = R.key(0), R.split(R.key(1), 3)\n",
        names,
    )
    with jax.debug_key_reuse(True):
        try:
            exec(source, names)
        except Exception as error:
            return [type(error).__name__, str(error).split("\n")[0] if text else ""]
    return "fine"


def test_keys_are_used_up_where_jax_uses_them_up():
    theirs = expected(lambda jax, sources: [outcome(jax, s) for s in sources], CALLS)
    ours = [outcome(jax, s) for s in CALLS]
    assert dict(zip(CALLS, ours, strict=True)) == dict(zip(CALLS, theirs, strict=True))
    assert sum(o == "fine" for o in ours) > 20 < sum(o != "fine" for o in ours)


def test_the_error_begins_as_jaxs():
    for source, theirs in zip(
        TEXTS, expected(lambda jax, sources: [outcome(jax, s, True) for s in sources], TEXTS), strict=True
    ):
        ours = outcome(jax, source, True)
        assert ours[0] == theirs[0] == "KeyReuseError" and ours[1].startswith(theirs[1].rstrip(".")), source


def test_the_error_says_where_the_key_was_used():
    key = jax.random.key(0)
    with jax.debug_key_reuse(True):
        jax.random.normal(key)
        with pytest.raises(KeyReuseError, match=r"index 0. It was used at .*test_key_reuse.py:\d+; split it"):
            jax.random.normal(key)


def test_nothing_is_looked_at_without_the_setting():
    key = jax.random.key(0)
    assert jax.random.normal(key) == jax.random.normal(key)
    with jax.debug_key_reuse(True):
        jax.random.normal(key)
    assert jax.random.normal(key) == jax.random.normal(key)


def test_numbers_are_the_same_under_the_setting():
    draw = lambda k: jax.random.normal(jax.random.split(k)[0], (5,)).sum()
    plain = draw(jax.random.key(3))
    with jax.debug_key_reuse(True):
        assert draw(jax.random.key(3)) == plain
        assert jax.jit(draw)(jax.random.key(3)) == jax.jit(draw)(jax.random.key(3))


SAMPLERS = {
    "ball": (3,),
    "bernoulli": (),
    "beta": (1.0, 2.0),
    "binomial": (10, 0.3),
    "bits": (),
    "categorical": (np.zeros(3, np.float32),),
    "cauchy": (),
    "chisquare": (3.0,),
    "choice": (5,),
    "dirichlet": (np.ones(3, np.float32),),
    "double_sided_maxwell": (0.0, 1.0),
    "exponential": (),
    "f": (2.0, 3.0),
    "gamma": (2.0,),
    "generalized_normal": (1.5,),
    "geometric": (0.3,),
    "gumbel": (),
    "laplace": (),
    "loggamma": (2.0,),
    "logistic": (),
    "lognormal": (),
    "maxwell": (),
    "multinomial": (5.0, np.full(3, 1 / 3, np.float32)),
    "multivariate_normal": (np.zeros(2, np.float32), np.eye(2, dtype=np.float32)),
    "normal": (),
    "orthogonal": (3,),
    "pareto": (2.0,),
    "permutation": (5,),
    "poisson": (3.0,),
    "rademacher": (),
    "randint": ((2,), 0, 5),
    "rayleigh": (2.0,),
    "t": (3.0,),
    "triangular": (0.0, 0.5, 1.0),
    "truncated_normal": (-1.0, 1.0),
    "uniform": (),
    "wald": (1.0,),
    "weibull_min": (1.0, 2.0),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_use_their_key_once(name):
    sample = getattr(jax.random, name)
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        sample(key, *SAMPLERS[name])
        with pytest.raises(KeyReuseError):
            jax.random.normal(key)
        jax.jit(lambda k: sample(k, *SAMPLERS[name]))(jax.random.key(1))
        keys = jax.random.split(jax.random.key(2))
        jax.vmap(lambda k: sample(k, *SAMPLERS[name]))(keys)
        with pytest.raises(KeyReuseError):
            jax.vmap(jax.random.normal)(keys)


def test_marks_go_with_their_arrays():
    with jax.debug_key_reuse(True):
        for i in range(300):
            jax.random.normal(jax.random.key(i))
    gc.collect()
    assert len(_key_marks._marks) < 200


def test_part_of_an_array_of_keys():
    with jax.debug_key_reuse(True):
        keys = jax.random.split(jax.random.key(0), 4)
        jax.random.normal(keys[1])
        jax.vmap(jax.random.normal)(keys[2:])
        jax.random.normal(keys[0])
        with pytest.raises(KeyReuseError):
            keys[1:3]
        grid = jax.random.split(jax.random.key(0), (2, 2))
        grid[0]
        grid[1, 0]
        with pytest.raises(KeyReuseError):
            grid[1]


def test_marks_of_parts_outlive_those_of_arrays_that_are_gone():
    with jax.debug_key_reuse(True):
        keys = jax.random.split(jax.random.key(0), 4)
        keys[1]
        for i in range(600):
            jax.random.normal(jax.random.key(i))
        with pytest.raises(KeyReuseError):
            keys[1:3]


def test_keys_say_which_are_used_up():
    used = []
    for jax_like in (jax, pytest.importorskip("jax")):
        with jax_like.debug_key_reuse(True):
            key, keys = jax_like.random.key(0), jax_like.random.split(jax_like.random.key(1), 3)
            seen = [key._consumed, keys._consumed]
            clone = jax_like.random.clone(key)
            jax_like.random.bits(key), keys[1]
            used.append([*seen, key._consumed, clone._consumed, keys._consumed.tolist()])
    assert used == [[False, False, True, False, [False, True, False]]] * 2


def test_keys_of_other_generators_say_that_nothing_is_known_of_them():
    with jax.debug_key_reuse(True), pytest.raises(NotImplementedError, match=r"jax_debug_key_reuse .* rbg"):
        jax.random.normal(jax.random.key(0, impl="rbg"))


def test_the_module_is_there_and_has_no_functions():
    import ferrax.experimental.key_reuse as key_reuse

    assert [n for n in vars(key_reuse) if not n.startswith("_")] == []
