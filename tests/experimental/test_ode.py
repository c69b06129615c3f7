"""Initial value problems: values against closed forms and SciPy, gradients against JAX's."""

import importlib

import jax
import numpy as np
import pytest
from jax.experimental.ode import odeint as oracle
from scipy.integrate import solve_ivp

import ferrax
import ferrax.numpy as jnp
from ferrax.experimental import ode
from ferrax.experimental.ode import odeint
from tests.recorded import expected

TIMES = np.linspace(0.0, 2.0, 5)


def pendulum(np_, y, t, m, g, extra):
    angle, speed = y["angle"], y["speed"]
    return {"angle": speed, "speed": -m * speed - g * np_.sin(angle) + np_.cos(t) * extra[0] * extra[1]}


Y0 = {"angle": np.array([1.0, -0.5]), "speed": np.array([0.1, 0.3])}
ARGS = (0.3, np.array([9.8, 4.0]), (np.array(0.5), np.array(2.0)))


def test_decay_has_its_closed_form():
    y = odeint(lambda y, t, k: -k * y, jnp.array([1.0, 2.0]), TIMES, 1.5, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(y, np.exp(-1.5 * TIMES)[:, None] * [1.0, 2.0], rtol=2e-5)
    assert y.dtype == "float32"


def test_like_scipy():
    with ferrax.enable_x64(True):
        y = odeint(lambda *a: pendulum(jnp, *a), Y0, TIMES, *ARGS, rtol=1e-10, atol=1e-10)

    def flat(t, y):
        d = pendulum(np, {"angle": y[:2], "speed": y[2:]}, t, *ARGS)
        return np.concatenate([d["angle"], d["speed"]])

    want = solve_ivp(flat, (0, 2), [1, -0.5, 0.1, 0.3], t_eval=TIMES, rtol=1e-11, atol=1e-11).y
    np.testing.assert_allclose(y["angle"], want[:2].T, atol=1e-7)
    np.testing.assert_allclose(y["speed"], want[2:].T, atol=1e-7)


def test_gradients_like_jax():
    def loss(np_, solve):
        def of(y0, t, m, g, extra):
            y = solve(lambda *a: pendulum(np_, *a), y0, t, m, g, (extra, ARGS[2][1]))
            return np_.sum(y["angle"] ** 2) + np_.sum(y["speed"][2]) + np_.sum(y["angle"][-1] * y["speed"][1])

        return of

    given = (Y0, TIMES, *ARGS[:2], ARGS[2][0])
    with ferrax.enable_x64(True):
        value, ours = ferrax.jit(ferrax.value_and_grad(loss(jnp, odeint), tuple(range(5))))(*given)
    with jax.enable_x64(True):
        same, theirs = jax.jit(jax.value_and_grad(loss(jax.numpy, oracle), tuple(range(5))))(*given)
        np.testing.assert_allclose(value, same, rtol=1e-6)
        for one, other in zip(ferrax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_closed_over_values_have_gradients():
    def loss(k):
        return odeint(lambda y, t: -k * y, jnp.array(1.0), jnp.array([0.0, 1.0]), rtol=1e-6, atol=1e-6)[-1]

    np.testing.assert_allclose(ferrax.grad(loss)(0.7), -np.exp(-0.7), rtol=1e-4)


def test_complex_states():
    y = odeint(lambda y, t: 1j * y, jnp.array(1.0 + 0j), jnp.array([0.0, np.pi]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, [1, -1], atol=1e-3)


def test_vmap_is_a_loop():
    def solve(y0, k):
        return odeint(lambda y, t, k: -k * y * y, y0, jnp.array([0.0, 0.5, 1.0]), k, rtol=1e-5, atol=1e-5)

    y0, k = jnp.array([0.5, 1.0, 2.0]), jnp.array([1.0, 2.0, 3.0])
    rows = ferrax.vmap(solve)(y0, k)
    np.testing.assert_allclose(rows, [solve(a, b) for a, b in zip(y0, k, strict=True)], rtol=1e-5)
    np.testing.assert_allclose(rows[:, 2], y0 / (1 + k * y0), rtol=1e-3)


def test_bounds_of_steps():
    count = []

    def f(y, t):
        ferrax.debug.callback(lambda: count.append(1))
        return -y

    for options, calls in (({"hmax": 0.125}, 2 + 6 * 8), ({"hmax": 0.25}, 2 + 6 * 4), ({"mxstep": 2}, 2 + 6 * 2)):
        count.clear()
        odeint(f, jnp.array(1.0), jnp.array([0.0, 1.0]), rtol=1e-2, atol=1e-2, **options)
        ferrax.effects_barrier()
        # the first step may be shorter, and takes one more
        assert calls <= len(count) <= calls + 12, (options, len(count))


def test_forward_mode_is_not_supported():
    def solve(k):
        return odeint(lambda y, t, k: -k * y, 1.0, jnp.array([0.0, 1.0]), k)

    with pytest.raises(TypeError, match="forward-mode"):
        ferrax.jvp(solve, (1.0,), (1.0,))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: odeint(lambda y, t, a: y, 1.0, TIMES, "text"),
            "The contents of odeint \\*args must be arrays or scalars",
        ),
        (lambda: odeint(lambda y, t: y, 1.0, np.arange(3)), "t must be an array of floats"),
    ],
)
def test_mistakes(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def parts_of_steps(jax):
    """What the functions that a step is made of give."""
    ode = importlib.import_module(f"{jax.__name__}.experimental.ode")
    np_ = jax.numpy

    def slope(y, t):
        return np_.stack([y[1], -y[0] * t])

    y, t, dt = np_.array([1.0, 0.5], "float32"), np_.float32(0.25), np_.float32(0.125)
    y1, f1, error, k = ode.runge_kutta_step(slope, y, slope(y, t), t, dt)
    ratio = ode.mean_error_ratio(error, 1e-4, 1e-4, y, y1)
    complexes = np_.array([3 + 4j, 1j], "complex64")
    return [
        *(y1, f1, k, ode.interp_fit_dopri(y, y1, k, dt)),
        *ode.fit_4th_order_polynomial(y, y1, (y + y1) / 2, k[0], k[-1], dt),
        ode.initial_step_size(slope, t, y, 4, 1e-5, 1e-6, slope(y, t)),
        ode.optimal_step_size(dt, np_.float32(0.5)),
        ode.optimal_step_size(dt, np_.float32(80.0)),
        ode.optimal_step_size(dt, np_.float32(0.0)),
        ode.optimal_step_size(dt, np_.float32(2.0), safety=0.5, ifactor=3.0, dfactor=0.1, order=4.0),
        *(ode.abs2(y), ode.abs2(complexes), ratio),
    ]


def test_parts_of_steps_like_jax():
    for found, wanted in zip(parts_of_steps(ferrax), expected(parts_of_steps), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_first_arguments_are_vectors():
    tree = {"a": jnp.ones(2), "b": jnp.zeros(())}
    flat, unravel = ferrax.flatten_util.ravel_pytree(tree)
    f = ode.ravel_first_arg(lambda y, s: {"a": y["a"] * s, "b": y["b"] + s}, unravel, None)
    np.testing.assert_array_equal(f(flat, 3.0), [3.0, 3.0, 3.0])


def test_names_of_python_stay_pythons_inside():
    """JAX's module has `zip` and `map` of its own; the functions of the module do not use those."""
    with pytest.raises((ValueError, AssertionError)):
        ode.zip([1], [1, 2])
    assert list(ode.map(lambda x: x + 1, [1, 2])) == [2, 3]
    assert "zip" not in vars(ode) and "map" not in vars(ode)
