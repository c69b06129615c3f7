"""Programs of tinygp: kernels, conditioning, training, quasiseparable solvers."""

import jax
import jax.numpy as jnp
from tinygp import GaussianProcess, kernels, transforms
from tinygp.kernels import quasisep
from tinygp.noise import Dense
from tinygp.solvers import QuasisepSolver

X = jnp.sort(jax.random.uniform(jax.random.key(0), (20,), minval=0.0, maxval=10.0))
Y = jnp.sin(X)


def families():
    ks = [
        kernels.ExpSquared(1.5),
        kernels.Matern32(1.5),
        kernels.Matern52(1.5),
        kernels.Exp(1.5),
        kernels.Cosine(2.0),
        kernels.ExpSineSquared(scale=2.0, gamma=0.5),
        kernels.RationalQuadratic(alpha=1.0, scale=1.5),
        kernels.Constant(2.0),
        2.0 * kernels.Matern32(1.0) + kernels.ExpSquared(2.0) * kernels.Cosine(1.0),
    ]
    return [k(X[:4], X[:5]) for k in ks]


def conditioned():
    gp = GaussianProcess(kernels.Matern52(1.5), X, diag=0.1, mean=0.2)
    t = jnp.linspace(0.0, 10.0, 7)
    log_prob, post = gp.condition(Y, t)
    return (
        gp.log_probability(Y),
        log_prob,
        post.loc,
        post.variance,
        gp.predict(Y, t),
        gp.sample(jax.random.key(1), (2,)),
    )


def trained():
    def loss(p):
        kernel = jnp.exp(p["amp"]) * kernels.ExpSquared(jnp.exp(p["scale"]))
        return -GaussianProcess(kernel, X, diag=jnp.exp(p["noise"])).log_probability(Y)

    p = {"amp": 0.0, "scale": 0.1, "noise": -1.0}
    value = jax.jit(jax.value_and_grad(loss))
    values = []
    for _ in range(4):
        v, g = value(p)
        p = jax.tree.map(lambda a, b: a - 0.01 * b, p, g)
        values.append(v)
    return values, p


def separable():
    out = []
    for kernel in (
        quasisep.Matern32(1.5),
        quasisep.SHO(1.3, 2.0),
        quasisep.Celerite(1.0, 0.2, 0.5, 0.1),
        quasisep.Exp(1.0),
    ):
        gp = GaussianProcess(kernel, X, diag=0.1, solver=QuasisepSolver)
        out.append((gp.log_probability(Y), gp.condition(Y).gp.loc))
    return out, jax.grad(lambda s: GaussianProcess(quasisep.Matern32(s), X, diag=0.1).log_probability(Y))(1.5)


def transformed():
    x2 = jnp.stack([X, X**0.5], -1)
    kernel = transforms.Linear(jnp.array([0.5, 1.5]), kernels.ExpSquared())
    chol = transforms.Cholesky(jnp.array([[1.0, 0.0], [0.3, 2.0]]), kernels.Matern32())
    sub = transforms.Subspace(0, kernels.Matern32())
    return [k(x2[:3], x2[:4]) for k in (kernel, chol, sub)], GaussianProcess(
        kernel, x2, noise=Dense(0.1 * jnp.eye(20))
    ).log_probability(Y)


PROGRAMS = {f.__name__: f for f in (families, conditioned, trained, separable, transformed)}
