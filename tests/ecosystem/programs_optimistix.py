"""Programs of optimistix: roots, fixed points, minima, least squares, and their derivatives."""

import jax
import jax.numpy as jnp
import optax
import optimistix as optx


def roots():
    f = lambda y, args: jnp.tanh(y) + y - args
    newton = optx.root_find(f, optx.Newton(1e-6, 1e-6), jnp.array([0.5, 1.0]), args=jnp.array([0.3, 0.7])).value
    chord = optx.root_find(f, optx.Chord(1e-6, 1e-6), jnp.array([0.5, 1.0]), args=jnp.array([0.3, 0.7])).value
    bisected = optx.root_find(
        lambda y, args: y**3 - 2.0, optx.Bisection(1e-6, 1e-6), 1.0, options=dict(lower=0.0, upper=3.0)
    ).value
    return newton, chord, bisected


def fixed():
    f = lambda y, args: jnp.cos(y * args)
    return optx.fixed_point(f, optx.FixedPointIteration(1e-6, 1e-6), 1.0, args=0.9).value


def rosenbrock(y, args):
    return jnp.sum(100.0 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2)


def minima():
    y = jnp.array([-0.5, 0.8])
    bowl = lambda y, args: jnp.sum((y - jnp.array([1.0, 2.0])) ** 2 * jnp.array([1.0, 3.0]))
    return (
        optx.minimise(rosenbrock, optx.BFGS(1e-5, 1e-5), y).value,
        optx.minimise(rosenbrock, optx.LBFGS(1e-5, 1e-5), y).value,
        optx.minimise(bowl, optx.NonlinearCG(1e-5, 1e-5), y).value,
        optx.minimise(bowl, optx.GradientDescent(0.1, 1e-5, 1e-5), y).value,
        optx.minimise(bowl, optx.OptaxMinimiser(optax.adam(0.1), 1e-4, 1e-4), y, max_steps=2000).value,
        optx.minimise(bowl, optx.NelderMead(1e-5, 1e-5), y).value,
    )


def least_squares():
    def residuals(y, args):
        return jnp.array([10 * (y[1] - y[0] ** 2), 1 - y[0]])

    y = jnp.array([-0.5, 0.8])
    return [
        optx.least_squares(residuals, s, y).value
        for s in (optx.GaussNewton(1e-6, 1e-6), optx.LevenbergMarquardt(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6))
    ]


def derivatives():
    def root(a):
        return optx.root_find(lambda y, a: y**3 + y - a, optx.Newton(1e-6, 1e-6), jnp.array(1.0), args=a).value

    def minimum(a):
        return optx.minimise(
            lambda y, a: jnp.sum((y - a) ** 2 + 0.1 * y**4), optx.BFGS(1e-6, 1e-6), jnp.zeros(2), args=a
        ).value

    a = jnp.array([0.5, 1.5])
    return (
        jax.grad(root)(2.0),
        jax.jit(jax.grad(root))(2.0),
        jax.vmap(root)(a),
        jax.jacrev(minimum)(a),
        jax.grad(
            lambda a: (
                optx.fixed_point(lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(1e-6, 1e-6), 1.0, args=a).value
            )
        )(0.9),
    )


def unrolled():
    def minimum(a):
        solver = optx.GradientDescent(0.2, 1e-8, 1e-8)
        return optx.minimise(
            lambda y, a: (y - a) ** 2,
            solver,
            jnp.array(0.0),
            args=a,
            max_steps=8,
            throw=False,
            adjoint=optx.RecursiveCheckpointAdjoint(),
        ).value

    return minimum(1.0), jax.grad(minimum)(1.0)


PROGRAMS = {f.__name__: f for f in (roots, fixed, minima, least_squares, derivatives, unrolled)}
