"""Control flow under `disable_jit`: bodies get values, as in JAX; what no value is known of is traced as always."""

import jax as reference
import numpy as np
import pytest

import ferrax


def both(run):
    """What `run(jax, seen)` gives and notes in `seen`, on JAX and on ferrax, under `disable_jit`."""
    found = []
    for jax in (reference, ferrax):
        seen = []
        with jax.disable_jit():
            out = jax.tree.map(np.asarray, run(jax, seen))
        found.append((out, seen))
    return found


def noted(seen, *values):
    seen.append([float(v) for v in values])
    return values[-1]


def scanned(jax, seen, reverse=False):
    def step(carry, x):
        if carry["n"] > 2.0:
            noted(seen, carry["n"], x[0])
        return {"n": carry["n"] + x[1]}, (x[0], carry["n"] * 1.0)

    xs = jax.numpy.arange(8.0).reshape(4, 2)
    return jax.lax.scan(step, {"n": jax.numpy.float32(0.5)}, xs, reverse=reverse)


PROGRAMS = {
    "scan": scanned,
    "scan, reverse": lambda jax, seen: scanned(jax, seen, True),
    "scan without xs": lambda jax, seen: jax.lax.scan(lambda c, _: (noted(seen, c) + 1, None), 0, None, length=3),
    "scan in a jitted function": lambda jax, seen: jax.jit(lambda: scanned(jax, seen))(),
    "while_loop": lambda jax, seen: jax.lax.while_loop(
        lambda s: noted(seen, s[0]) < 3, lambda s: (s[0] + 1, s[1] * 1.5), (0, 1)
    ),
    "while_loop that never runs": lambda jax, seen: jax.lax.while_loop(
        lambda s: noted(seen, s) < 0, lambda s: s + 1, 2.0
    ),
    "fori_loop": lambda jax, seen: jax.lax.fori_loop(1, 4, lambda i, x: x * noted(seen, x, i), 2),
    "fori_loop, bounds from arrays": lambda jax, seen: jax.lax.fori_loop(
        jax.numpy.int32(0), jax.numpy.int32(2), lambda i, x: x + noted(seen, x, i), 0.5
    ),
    "fori_loop without steps": lambda jax, seen: jax.lax.fori_loop(2, 1, lambda i, x: noted(seen, x), 3.0),
    "cond": lambda jax, seen: [
        jax.lax.cond(p, lambda x: noted(seen, x), lambda x: noted(seen, -x), 3.0)
        for p in (True, jax.numpy.array(False), 2, 0.0)
    ],
    "switch": lambda jax, seen: [
        jax.lax.switch(i, [lambda x, k=k: noted(seen, x + k) for k in range(3)], 1.0)
        for i in (-1, 0, 1, jax.numpy.int32(7))
    ],
    "map": lambda jax, seen: jax.lax.map(lambda x: noted(seen, x) * 2, jax.numpy.arange(3)),
    "a gradient": lambda jax, seen: jax.grad(
        lambda xs: jax.lax.scan(lambda c, x: (c * x if c < 3 else c + x, seen.append(0)), 1.0, xs)[0]
    )(jax.numpy.arange(1.0, 5.0)),
    "a condition of rows": lambda jax, seen: jax.vmap(lambda x: jax.lax.cond(x > 1, lambda x: 2 * x, lambda x: -x, x))(
        jax.numpy.arange(4)
    ),
    "a loop whose end depends on the row": lambda jax, seen: jax.vmap(
        lambda x: jax.lax.while_loop(lambda c: c < 3, lambda c: c + 2, x)
    )(jax.numpy.arange(4)),
    "rows inside a loop": lambda jax, seen: jax.vmap(
        lambda x: jax.lax.scan(lambda c, y: (c + noted(seen, y), c * y), x, jax.numpy.arange(3.0))
    )(jax.numpy.arange(2.0)),
    "a traced condition": lambda jax, seen: (
        jax.eval_shape(lambda x: jax.lax.cond(x > 0, lambda x: x, lambda x: -x, x), 1.0).shape
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_what_bodies_see(name):
    (want, want_seen), (got, got_seen) = both(PROGRAMS[name])
    assert got_seen == want_seen
    assert ferrax.tree.structure(got) == ferrax.tree.structure(want)
    for a, b in zip(ferrax.tree.leaves(got), ferrax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def test_no_steps():
    """JAX cannot say what the results would be; the body is traced for them."""
    with ferrax.disable_jit():
        carry, ys = ferrax.lax.scan(lambda c, x: (c, x * 1.5), 2, ferrax.numpy.zeros((0, 3), int))
    assert (int(carry), ys.shape, ys.dtype) == (2, (0, 3), np.dtype("float32"))


def test_results_of_two_dtypes():
    for jax in (reference, ferrax):
        with jax.disable_jit(), pytest.raises(TypeError, match="dtypes"):
            jax.lax.scan(lambda c, x: (c + x, c), 0, jax.numpy.arange(3.0))


def test_a_program_shows_what_ran():
    """A loop whose steps are known stands in a program as its steps."""
    with ferrax.disable_jit():
        program = ferrax.make_jaxpr(lambda x: ferrax.lax.scan(lambda c, y: (c * y, None), 1.0, x)[0])(
            ferrax.numpy.arange(2.0)
        )
    names = [e.primitive.name for e in program.jaxpr.eqns]
    assert "scan" not in names
    assert names.count("mul") == 2
