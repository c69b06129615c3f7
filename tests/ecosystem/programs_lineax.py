"""Programs of lineax: every solver and operator, derivatives and batches of solves."""

import jax
import jax.numpy as jnp
import lineax as lx

A = jnp.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
B = jnp.array([1.0, 2.0, 3.0])
SPD = lx.MatrixLinearOperator(A, lx.positive_semidefinite_tag)


def solvers():
    plain = lx.MatrixLinearOperator(A)
    out = [lx.linear_solve(plain, B, s).value for s in (lx.AutoLinearSolver(True), lx.LU(), lx.QR(), lx.SVD())]
    out += [lx.linear_solve(SPD, B, s).value for s in (lx.Cholesky(), lx.CG(1e-6, 1e-6))]
    out += [lx.linear_solve(plain, B, s).value for s in (lx.BiCGStab(1e-6, 1e-6), lx.GMRES(1e-6, 1e-6))]
    return out


def structured():
    d = jnp.array([2.0, 3.0, 4.0])
    return [
        lx.linear_solve(lx.DiagonalLinearOperator(d), B).value,
        lx.linear_solve(lx.TridiagonalLinearOperator(d, jnp.ones(2), jnp.ones(2)), B).value,
        lx.linear_solve(lx.MatrixLinearOperator(jnp.tril(A), lx.lower_triangular_tag), B, lx.Triangular()).value,
        lx.linear_solve(lx.IdentityLinearOperator(jax.ShapeDtypeStruct((3,), jnp.float32)), B).value,
    ]


def least_squares():
    tall = lx.MatrixLinearOperator(jnp.arange(12.0).reshape(4, 3) ** 1.3 + jnp.eye(4, 3))
    wide = lx.MatrixLinearOperator(jnp.arange(12.0).reshape(3, 4) ** 1.3 + jnp.eye(3, 4))
    b = jnp.arange(4.0)
    return (
        lx.linear_solve(tall, b, lx.QR()).value,
        lx.linear_solve(tall, b, lx.AutoLinearSolver(well_posed=None)).value,
        lx.linear_solve(tall, b, lx.SVD()).value,
        lx.linear_solve(wide, B, lx.SVD()).value,
    )


def functions():
    op = lx.FunctionLinearOperator(
        lambda x: A @ x, jax.ShapeDtypeStruct((3,), jnp.float32), lx.positive_semidefinite_tag
    )
    jac = lx.JacobianLinearOperator(lambda x, args: jnp.sin(x) + A @ x, jnp.zeros(3))
    return (
        lx.linear_solve(op, B, lx.CG(1e-6, 1e-6)).value,
        jac.as_matrix(),
        lx.linear_solve(jac, B).value,
        op.T.mv(B),
        (2 * op + lx.MatrixLinearOperator(A)).as_matrix(),
        lx.diagonal(SPD),
    )


def derivatives():
    def f(a, b):
        return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.LU()).value ** 2)

    def g(a, b):
        return jnp.sum(
            lx.linear_solve(lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag), b, lx.CG(1e-6, 1e-6)).value
        )

    return (
        jax.grad(f, (0, 1))(A, B),
        jax.jit(jax.grad(f, (0, 1)))(A, B),
        jax.jvp(f, (A, B), (jnp.ones_like(A), jnp.ones_like(B))),
        jax.grad(g, (0, 1))(A, B),
        jax.hessian(lambda b: f(A, b))(B),
    )


def batches():
    many = jnp.stack([A, 2 * A])
    f = lambda a, b: lx.linear_solve(lx.MatrixLinearOperator(a), b, lx.LU()).value
    return (
        jax.vmap(f, (0, None))(many, B),
        jax.jit(jax.vmap(f))(many, jnp.stack([B, B])),
        jax.vmap(jax.grad(lambda a: f(a, B).sum()))(many),
        jax.grad(lambda m: jax.vmap(f, (0, None))(m, B).sum())(many),
    )


def trees():
    op = lx.PyTreeLinearOperator(
        {"a": {"a": 2.0, "b": 1.0}, "b": {"a": 0.0, "b": 4.0}}, jax.eval_shape(lambda: {"a": 1.0, "b": 1.0})
    )
    return lx.linear_solve(op, {"a": 1.0, "b": 2.0}).value, op.as_matrix()


def failures():
    singular = lx.MatrixLinearOperator(jnp.zeros((2, 2)))
    solution = lx.linear_solve(singular, jnp.ones(2), lx.LU(), throw=False)
    try:
        lx.linear_solve(singular, jnp.ones(2), lx.LU())
        raised = False
    except Exception:
        raised = True
    return solution.result == lx.RESULTS.successful, jnp.array(raised)


PROGRAMS = {
    f.__name__: f for f in (solvers, structured, least_squares, functions, derivatives, batches, trees, failures)
}
