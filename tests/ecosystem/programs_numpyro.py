"""Programs of NumPyro: distributions, handlers, variational inference, samplers, predictions."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, init_to_value, log_likelihood

X = jnp.linspace(-1.0, 1.0, 20)
Y = 2.0 * X + 0.5 + 0.1 * jnp.sin(17 * X)


def regression(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    s = numpyro.sample("s", dist.HalfNormal(1.0))
    numpyro.deterministic("mean", a * x + b)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(a * x + b, s), obs=y)


def continuous():
    x = jnp.array([0.2, 0.7])
    ds = [
        dist.Normal(0.0, 1.0),
        dist.Beta(2.0, 3.0),
        dist.Gamma(2.0, 1.0),
        dist.Exponential(1.5),
        dist.LogNormal(0.0, 1.0),
        dist.Cauchy(0.0, 1.0),
        dist.StudentT(3.0),
        dist.HalfCauchy(1.0),
        dist.HalfNormal(2.0),
        dist.Uniform(0.0, 1.0),
        dist.Laplace(0.0, 1.0),
        dist.Gumbel(0.0, 1.0),
        dist.InverseGamma(2.0, 1.0),
        dist.Logistic(0.0, 1.0),
        dist.VonMises(0.0, 2.0),
        dist.Weibull(1.0, 2.0),
        dist.Pareto(0.1, 2.0),
        dist.TruncatedNormal(0.0, 1.0, low=-1.0, high=1.0),
        dist.Kumaraswamy(2.0, 3.0),
    ]
    return [(d.log_prob(x), d.sample(jax.random.key(0), (2,)), d.mean) for d in ds]


def discrete():
    k = jnp.array([0, 1])
    ds = [
        dist.Bernoulli(0.3),
        dist.Bernoulli(logits=0.3),
        dist.Poisson(2.0),
        dist.Binomial(5, 0.4),
        dist.Categorical(jnp.array([0.2, 0.8])),
        dist.Geometric(0.3),
        dist.NegativeBinomial2(2.0, 3.0),
        dist.BetaBinomial(2.0, 3.0, 5),
        dist.ZeroInflatedPoisson(0.2, 2.0),
    ]
    return [(d.log_prob(k), d.sample(jax.random.key(1), (3,))) for d in ds]


def multivariate():
    cov = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    x = jnp.array([0.3, 0.7])
    return [
        dist.MultivariateNormal(jnp.zeros(2), cov).log_prob(x),
        dist.MultivariateNormal(jnp.zeros(2), cov).sample(jax.random.key(0)),
        dist.Dirichlet(jnp.array([2.0, 3.0])).log_prob(x),
        dist.Dirichlet(jnp.array([2.0, 3.0])).sample(jax.random.key(0)),
        dist.LKJCholesky(2, 2.0).sample(jax.random.key(0)),
        dist.LowRankMultivariateNormal(jnp.zeros(2), jnp.ones((2, 1)), jnp.ones(2)).log_prob(x),
        dist.Multinomial(5, x).sample(jax.random.key(2)),
        dist.MixtureSameFamily(
            dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.array([0.0, 1.0]), 1.0)
        ).log_prob(0.3),
        dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.ExpTransform()).log_prob(0.4),
        dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)),
    ]


def handlers():
    from numpyro.handlers import condition, scale, seed, substitute, trace

    tr = trace(seed(regression, jax.random.key(0))).get_trace(X)
    fixed = trace(substitute(seed(regression, jax.random.key(0)), {"a": 1.0})).get_trace(X)
    density, _ = numpyro.infer.util.log_density(regression, (X, Y), {}, {"a": 1.0, "b": 0.5, "s": 0.3})
    scaled, _ = numpyro.infer.util.log_density(scale(regression, 2.0), (X, Y), {}, {"a": 1.0, "b": 0.5, "s": 0.3})
    return (
        tr["a"]["value"],
        fixed["y"]["value"],
        density,
        scaled,
        condition(seed(regression, 0), {"b": 2.0}) is not None,
    )


def nuts():
    kernel = NUTS(regression, init_strategy=init_to_value(values={"a": 1.0, "b": 0.0, "s": 0.5}))
    mcmc = MCMC(kernel, num_warmup=50, num_samples=50, progress_bar=False)
    mcmc.run(jax.random.key(0), X, Y)
    samples = mcmc.get_samples()
    return (
        jnp.abs(samples["a"].mean() - 2.0) < 0.3,
        jnp.abs(samples["b"].mean() - 0.5) < 0.3,
        samples["mean"].shape[1] * jnp.ones(()),
    )


def hmc_steps():
    kernel = HMC(regression, step_size=0.01, num_steps=3, adapt_step_size=False, adapt_mass_matrix=False)
    state = kernel.init(
        jax.random.PRNGKey(0), 0, init_params={"a": 1.0, "b": 0.0, "s": -0.5}, model_args=(X, Y), model_kwargs={}
    )
    out = []
    for _ in range(3):
        state = kernel.sample(state, (X, Y), {})
        out.append((state.z, state.potential_energy))
    return out


def variational():
    guide = autoguide.AutoNormal(regression)
    svi = SVI(regression, guide, numpyro.optim.Adam(1e-2), Trace_ELBO())
    state = svi.init(jax.random.PRNGKey(0), X, Y)
    losses = []
    for _ in range(5):
        state, loss = jax.jit(svi.update)(state, X, Y)
        losses.append(loss)
    result = SVI(
        regression, autoguide.AutoLaplaceApproximation(regression), numpyro.optim.Adam(1e-2), Trace_ELBO()
    ).run(jax.random.PRNGKey(1), 20, X, Y, progress_bar=False)
    return losses, svi.get_params(state), result.losses


def predictive():
    samples = {"a": jnp.ones(3), "b": jnp.zeros(3), "s": 0.1 * jnp.ones(3)}
    return Predictive(regression, samples)(jax.random.key(0), X), log_likelihood(regression, samples, X, Y)


def controls():
    from numpyro.contrib.control_flow import scan

    def model(y):
        drift = numpyro.sample("drift", dist.Normal(0.0, 1.0))

        def step(c, v):
            c = numpyro.sample("c", dist.Normal(c + drift, 1.0))
            numpyro.sample("y", dist.Normal(c, 0.5), obs=v)
            return c, c

        return scan(step, 0.0, y)

    density, _ = numpyro.infer.util.log_density(
        numpyro.handlers.seed(model, jax.random.key(0)), (Y[:4],), {}, {"drift": 0.1, "c": jnp.ones(4)}
    )
    return density


PROGRAMS = {
    f.__name__: f
    for f in (
        continuous,
        discrete,
        multivariate,
        handlers,
        nuts,
        hmc_steps,
        variational,
        predictive,
        controls,
    )
}
