"""Programs of diffrax: ordinary, stiff, stochastic and controlled equations, forward and gradients."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import jax.random as jr

TERM = dfx.ODETerm(lambda t, y, args: jnp.array([y[1], -args * y[0]]))
Y0 = jnp.array([1.0, 0.0])


def explicit():
    out = []
    for solver in (
        dfx.Euler(),
        dfx.Heun(),
        dfx.Midpoint(),
        dfx.Ralston(),
        dfx.Bosh3(),
        dfx.Tsit5(),
        dfx.Dopri5(),
        dfx.Dopri8(),
    ):
        out.append(dfx.diffeqsolve(TERM, solver, 0.0, 1.0, 0.1, Y0, args=2.0).ys)
    return out


def adaptive():
    saveat = dfx.SaveAt(ts=jnp.linspace(0.0, 2.0, 5))
    sol = dfx.diffeqsolve(
        TERM, dfx.Tsit5(), 0.0, 2.0, 0.1, Y0, args=2.0, saveat=saveat, stepsize_controller=dfx.PIDController(1e-5, 1e-5)
    )
    dense = dfx.diffeqsolve(TERM, dfx.Dopri5(), 0.0, 1.0, 0.1, Y0, args=2.0, saveat=dfx.SaveAt(dense=True))
    steps = dfx.diffeqsolve(
        TERM, dfx.Tsit5(), 0.0, 1.0, 0.25, Y0, args=2.0, saveat=dfx.SaveAt(t0=True, steps=True), max_steps=8
    )
    return sol.ys, sol.stats["num_steps"], dense.evaluate(0.37), steps.ys[:5]


def implicit():
    term = dfx.ODETerm(lambda t, y, args: jnp.array([-100.0 * y[0] + y[1], -y[1]]))
    controller = dfx.PIDController(1e-4, 1e-4)
    return [
        dfx.diffeqsolve(term, solver, 0.0, 1.0, 0.01, Y0 + 1, stepsize_controller=controller).ys
        for solver in (dfx.Kvaerno3(), dfx.Kvaerno5(), dfx.ImplicitEuler())
    ]


def gradients():
    def f(args, adjoint):
        return dfx.diffeqsolve(TERM, dfx.Tsit5(), 0.0, 1.0, 0.1, Y0, args=args, adjoint=adjoint).ys[-1, 0]

    return (
        jax.grad(f)(2.0, dfx.RecursiveCheckpointAdjoint()),
        jax.grad(f)(2.0, dfx.BacksolveAdjoint()),
        jax.jvp(lambda a: f(a, dfx.ForwardMode()), (2.0,), (1.0,)),
        jax.jvp(lambda a: f(a, dfx.DirectAdjoint()), (2.0,), (1.0,)),
        jax.jit(jax.value_and_grad(lambda a: f(a, dfx.RecursiveCheckpointAdjoint())))(2.0),
        jax.grad(
            lambda y: dfx.diffeqsolve(
                TERM, dfx.Tsit5(), 0.0, 1.0, 0.1, y, args=2.0, stepsize_controller=dfx.PIDController(1e-4, 1e-4)
            ).ys.sum()
        )(Y0),
    )


def batched():
    f = lambda a: (
        dfx.diffeqsolve(
            TERM, dfx.Tsit5(), 0.0, 1.0, 0.1, Y0, args=a, stepsize_controller=dfx.PIDController(1e-4, 1e-4)
        ).ys
    )
    a = jnp.array([1.0, 2.0, 30.0])
    return jax.vmap(f)(a), jax.vmap(jax.grad(lambda a: f(a).sum()))(a)


def stochastic():
    def solve(key):
        bm = dfx.VirtualBrownianTree(0.0, 1.0, 1e-3, (), key)
        terms = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.3, bm))
        return dfx.diffeqsolve(terms, dfx.Euler(), 0.0, 1.0, 0.05, 1.0).ys

    path = dfx.UnsafeBrownianPath((2,), jr.key(1))
    return solve(jr.key(0)), jax.vmap(solve)(jr.split(jr.key(1), 3)), path.evaluate(0.0, 0.5)


def controlled():
    ts = jnp.linspace(0.0, 1.0, 5)
    control = dfx.LinearInterpolation(ts, jnp.sin(ts))
    cubic = dfx.CubicInterpolation(ts, dfx.backward_hermite_coefficients(ts, jnp.stack([ts, ts**2], -1)))
    term = dfx.ControlTerm(lambda t, y, args: -y, control).to_ode()
    return dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, 1.0).ys, cubic.evaluate(0.3), cubic.derivative(0.3)


def adjoints():
    kept = dfx.PIDController(1e-4, 1e-6)
    return [
        jax.grad(
            lambda y: dfx.diffeqsolve(
                TERM, dfx.Tsit5(), 0.0, 1.0, 0.1, y, args=1.3, adjoint=adjoint, stepsize_controller=kept
            ).ys.sum()
        )(Y0)
        for adjoint in (dfx.BacksolveAdjoint(), dfx.DirectAdjoint(), dfx.RecursiveCheckpointAdjoint())
    ]


def events():
    event = dfx.Event(lambda t, y, args, **kw: y[0] < 0.5)
    sol = dfx.diffeqsolve(TERM, dfx.Tsit5(), 0.0, 5.0, 0.05, Y0, args=1.0, event=event)
    return sol.ts, sol.ys


def symplectic():
    terms = (dfx.ODETerm(lambda t, p, args: p), dfx.ODETerm(lambda t, q, args: -q))
    return dfx.diffeqsolve(terms, dfx.SemiImplicitEuler(), 0.0, 1.0, 0.1, (1.0, 0.0)).ys


PROGRAMS = {
    f.__name__: f
    for f in (explicit, adaptive, implicit, gradients, adjoints, batched, stochastic, controlled, events, symplectic)
}
