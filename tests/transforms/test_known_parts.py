"""Linear programs with loops and calls some of whose results do not depend on the arguments, against JAX."""

import numpy as np
import pytest

import ferrax
from tests.recorded import expected

D = np.array([4.0, 5.0, 6.0], np.float32)
S = np.array([1.0, 2.0, 3.0], np.float32)


def _step(i, carry):
    d, s = carry
    m = 1 / d[i]
    return d.at[i + 1].add(-m), s.at[i + 1].add(-s[i] * m)


def _carried(jax, d, s):
    d, s = jax.lax.fori_loop(0, 2, _step, (d, s))
    return s / d


def _rows(jax, d, s):
    def step(carry, x):
        return carry * x[0], (carry + x[1], carry * x[1], x[0] * 2)

    last, (_, _, twice) = jax.lax.scan(step, jax.numpy.float32(2), (d, d))
    _, (sums, doubled) = jax.lax.scan(lambda c, x: (c + x[1], (c * x[0], x[0] + 1)), s[0], (d, s))
    return sums * doubled * twice * last


def _call(jax, d, s):
    known, linear = jax.jit(lambda d, s: (jax.numpy.cumsum(d), s * d))(d, s)
    return linear / known


def _backwards(jax, d, s):
    def step(c, x):
        return (c[0] * x[0], c[1] * x[0] + x[1]), c[0]

    (last, total), before = jax.lax.scan(step, (d[0], s[0]), (d / 4, s), reverse=True)
    return total * before * last


PROGRAMS = {"carried": _carried, "rows": _rows, "call": _call, "backwards": _backwards}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transposes(name):
    def program(jax):
        return jax.linear_transpose(lambda s: PROGRAMS[name](jax, D, s), S)(S)[0]

    np.testing.assert_allclose(program(ferrax), expected(program), rtol=3e-6)
    np.testing.assert_allclose(ferrax.jit(lambda: program(ferrax))(), expected(program), rtol=3e-6)


def _solved(jax, program):
    """A function with the rule of solvers of linear equations: the same program solves for the tangents."""
    f = jax.custom_jvp(lambda d, s: program(jax, d, s))

    @f.defjvp
    def _(primals, tangents):
        (d, s), (by_d, by_s) = primals, tangents
        out = program(jax, d, s)
        return out, program(jax, d, by_s - by_d * s)

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_rules_solve_for_tangents_with_loops_that_carry_known_values(name):
    def program(jax):
        f = _solved(jax, PROGRAMS[name])
        by_s = jax.grad(lambda s: f(D, s).sum())
        both = jax.grad(lambda d, s: f(d, s).sum(), (0, 1))
        linear = jax.linearize(lambda s: f(D, s), S)[1]
        rows = jax.vmap(both, (None, 0))(D, np.stack([S, 2 * S]))
        return by_s(S), jax.jit(by_s)(S), *both(D, S), linear(S), *rows, jax.hessian(lambda s: f(D, s).sum())(S)

    for mine, theirs in zip(program(ferrax), expected(program), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=5e-6, atol=1e-6)


def test_known_results_of_a_rule_s_loop_are_values():
    """What follows from the point alone is a number that Python can read, as it is in JAX."""

    @ferrax.custom_jvp
    def f(x):
        return 3 * x

    seen = []

    @f.defjvp
    def _(primals, tangents):
        def step(carry, _):
            n, t = carry
            return (n + 1, t * 2), n * primals[0]

        (n, t), ns = ferrax.lax.scan(step, (1, tangents[0]), None, 3)
        seen.append((int(n), ns.tolist()))
        return f(primals[0]), t / n

    assert float(ferrax.grad(f)(5.0)) == 2.0
    assert seen == [(4, [5.0, 10.0, 15.0])]
