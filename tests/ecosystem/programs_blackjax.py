"""Programs of BlackJAX: samplers, adaptation, sequential Monte Carlo, variational inference."""

import blackjax
import jax
import jax.numpy as jnp
import optax

LOGP = lambda x: -0.5 * jnp.sum((x - jnp.array([1.0, -1.0])) ** 2 / jnp.array([0.5, 2.0]))


def chain(algorithm, position, n=20):
    state = algorithm.init(position)

    def step(state, key):
        state, _ = algorithm.step(key, state)
        return state, state.position

    return jax.jit(lambda s: jax.lax.scan(step, s, jax.random.split(jax.random.key(0), n)))(state)[1]


def samplers():
    x = jnp.zeros(2)
    mass = jnp.ones(2)
    return [
        chain(blackjax.hmc(LOGP, 0.2, mass, 5), x),
        chain(blackjax.nuts(LOGP, 0.3, mass), x, 8),
        chain(blackjax.mala(LOGP, 0.1), x),
        chain(blackjax.rmh(LOGP, blackjax.mcmc.random_walk.normal(jnp.ones(2))), x),
        chain(blackjax.additive_step_random_walk(LOGP, blackjax.mcmc.random_walk.normal(jnp.ones(2))), x),
        chain(blackjax.barker_proposal(LOGP, 0.2), x),
    ]


def slices():
    return chain(blackjax.elliptical_slice(lambda x: -jnp.sum(x**2), mean=jnp.zeros(2), cov=jnp.eye(2)), jnp.ones(2))


def adapted():
    warmup = blackjax.window_adaptation(blackjax.nuts, LOGP, initial_step_size=0.3)
    (state, parameters), _ = warmup.run(jax.random.key(0), jnp.zeros(2), num_steps=30)
    return parameters["step_size"] > 0, parameters["inverse_mass_matrix"].shape[0] * jnp.ones(())


def gradients():
    data = jnp.linspace(0.0, 1.0, 16)
    estimator = blackjax.sgmcmc.gradients.grad_estimator(lambda p: -0.5 * p**2, lambda p, x: -0.5 * (x - p) ** 2, 16)
    sgld = blackjax.sgld(estimator)
    position = sgld.init(jnp.array(0.5))
    out = []
    for i in range(5):
        position = jax.jit(sgld.step)(jax.random.key(i), position, data[:8], 1e-3)
        out.append(position)
    return out


def tempered():
    smc = blackjax.adaptive_tempered_smc(
        lambda x: -0.5 * jnp.sum(x**2),
        LOGP,
        blackjax.hmc.build_kernel(),
        blackjax.hmc.init,
        blackjax.smc.extend_params({"step_size": 0.1, "inverse_mass_matrix": jnp.eye(2), "num_integration_steps": 3}),
        blackjax.smc.resampling.systematic,
        0.5,
        num_mcmc_steps=2,
    )
    state = smc.init(jax.random.normal(jax.random.key(0), (20, 2)))
    state, info = jax.jit(smc.step)(jax.random.key(1), state)
    return state.particles, state.weights


def variational():
    vi = blackjax.meanfield_vi(LOGP, optax.adam(1e-1), 10)
    state = vi.init(jnp.zeros(2))
    for i in range(4):
        state, info = jax.jit(vi.step)(jax.random.key(i), state)
    return state.mu, state.rho, info.elbo


def diagnostics():
    x = jax.random.normal(jax.random.key(0), (4, 50, 2))
    return blackjax.diagnostics.potential_scale_reduction(x), blackjax.diagnostics.effective_sample_size(x)


PROGRAMS = {f.__name__: f for f in (samplers, slices, adapted, gradients, tempered, variational, diagnostics)}
