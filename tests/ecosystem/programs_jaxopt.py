"""Programs of JAXopt: smooth, constrained and proximal solvers, roots, implicit derivatives."""

import jax
import jax.numpy as jnp
import jaxopt

X = jnp.linspace(-1.0, 1.0, 24).reshape(8, 3) ** 2 + 0.1 * jnp.eye(8, 3)
Y = X @ jnp.array([1.0, -2.0, 0.5]) + 0.1


def ridge(w, l2=0.1):
    return jnp.mean((X @ w - Y) ** 2) + l2 * jnp.sum(w**2)


def smooth():
    w = jnp.zeros(3)
    return [
        solver.run(w).params
        for solver in (
            jaxopt.GradientDescent(ridge, maxiter=200),
            jaxopt.LBFGS(ridge, maxiter=50),
            jaxopt.BFGS(ridge, maxiter=50),
            jaxopt.NonlinearCG(ridge, maxiter=50),
        )
    ]


def scipy_like():
    rosenbrock = lambda x: jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    return jaxopt.ScipyMinimize(fun=rosenbrock, method="BFGS").run(jnp.zeros(2)).params


def least_squares():
    res = lambda w: X @ w - Y
    return jaxopt.GaussNewton(res).run(jnp.zeros(3)).params, jaxopt.LevenbergMarquardt(res).run(jnp.zeros(3)).params


def constrained():
    project = jaxopt.projection.projection_simplex
    simplex = jaxopt.ProjectedGradient(ridge, projection=project, maxiter=500, tol=1e-6)
    box = jaxopt.LBFGSB(ridge, maxiter=50)
    return (
        simplex.run(jnp.ones(3) / 3).params,
        box.run(jnp.zeros(3), bounds=(jnp.zeros(3), jnp.ones(3))).params,
        jaxopt.projection.projection_l2_ball(jnp.array([3.0, 4.0]), 1.0),
        jaxopt.projection.projection_l1_ball(jnp.array([3.0, 4.0]), 1.0),
    )


def proximal():
    f = lambda w, data: jnp.mean((data[0] @ w - data[1]) ** 2)
    solver = jaxopt.ProximalGradient(f, jaxopt.prox.prox_lasso, maxiter=200)
    return solver.run(jnp.zeros(3), hyperparams_prox=0.01, data=(X, Y)).params, jaxopt.prox.prox_elastic_net(
        Y, (0.1, 0.2)
    )


def roots():
    f = lambda x: x**3 - x - 2.0
    return (
        jaxopt.Bisection(f, 1.0, 2.0).run().params,
        jaxopt.Broyden(lambda x: jnp.tanh(x) + x - 0.5).run(jnp.zeros(2)).params,
        jaxopt.FixedPointIteration(lambda x: jnp.cos(x)).run(0.5).params,
        jaxopt.AndersonAcceleration(lambda x: jnp.cos(x), history_size=3).run(jnp.array([0.5])).params,
    )


def implicit():
    def solution(l2):
        return jaxopt.LBFGS(ridge, maxiter=50, implicit_diff=True).run(jnp.zeros(3), l2).params

    return jax.jacobian(solution)(0.1), jax.grad(
        lambda l2: jaxopt.GradientDescent(ridge, maxiter=300).run(jnp.zeros(3), l2).params.sum()
    )(0.1)


def quadratic():
    q = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    qp = jaxopt.EqualityConstrainedQP()
    sol = qp.run(params_obj=(q, jnp.ones(2)), params_eq=(jnp.ones((1, 2)), jnp.ones(1))).params
    osqp = jaxopt.OSQP().run(params_obj=(q, jnp.ones(2)), params_ineq=(-jnp.eye(2), jnp.zeros(2))).params
    return sol.primal, osqp.primal, jaxopt.linear_solve.solve_cg(lambda x: q @ x, jnp.ones(2))


def losses():
    logits = jnp.array([0.2, -1.0, 3.0])
    return (
        jaxopt.loss.multiclass_logistic_loss(1, logits),
        jaxopt.loss.binary_logistic_loss(1, 0.3),
        jaxopt.loss.huber_loss(1.0, 3.0),
        jaxopt.loss.multiclass_sparsemax_loss(1, logits),
    )


PROGRAMS = {
    f.__name__: f
    for f in (smooth, scipy_like, least_squares, constrained, proximal, roots, implicit, quadratic, losses)
}
