"""Distributions and statistics with SciPy's interface, as JAX has it. A distribution is a module: `norm.logpdf`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ferrax._lazy import defer as _defer

if _TYPE_CHECKING:
    from ferrax.scipy.stats import bernoulli as bernoulli
    from ferrax.scipy.stats import beta as beta
    from ferrax.scipy.stats import betabinom as betabinom
    from ferrax.scipy.stats import binom as binom
    from ferrax.scipy.stats import cauchy as cauchy
    from ferrax.scipy.stats import chi2 as chi2
    from ferrax.scipy.stats import dirichlet as dirichlet
    from ferrax.scipy.stats import expon as expon
    from ferrax.scipy.stats import gamma as gamma
    from ferrax.scipy.stats import gennorm as gennorm
    from ferrax.scipy.stats import geom as geom
    from ferrax.scipy.stats import gumbel_l as gumbel_l
    from ferrax.scipy.stats import gumbel_r as gumbel_r
    from ferrax.scipy.stats import laplace as laplace
    from ferrax.scipy.stats import logistic as logistic
    from ferrax.scipy.stats import multinomial as multinomial
    from ferrax.scipy.stats import multivariate_normal as multivariate_normal
    from ferrax.scipy.stats import nbinom as nbinom
    from ferrax.scipy.stats import norm as norm
    from ferrax.scipy.stats import pareto as pareto
    from ferrax.scipy.stats import poisson as poisson
    from ferrax.scipy.stats import t as t
    from ferrax.scipy.stats import truncnorm as truncnorm
    from ferrax.scipy.stats import uniform as uniform
    from ferrax.scipy.stats import vonmises as vonmises
    from ferrax.scipy.stats import wrapcauchy as wrapcauchy
    from ferrax.scipy.stats._kde import gaussian_kde as gaussian_kde
    from ferrax.scipy.stats._samples import mode as mode
    from ferrax.scipy.stats._samples import rankdata as rankdata
    from ferrax.scipy.stats._samples import sem as sem

_LATER = {
    "_kde": "gaussian_kde",
    "_samples": "mode rankdata sem",
}

_SUBMODULES = """
bernoulli
beta
betabinom
binom
cauchy
chi2
dirichlet
expon
gamma
gennorm
geom
gumbel_l
gumbel_r
laplace
logistic
multinomial
multivariate_normal
nbinom
norm
pareto
poisson
t
truncnorm
uniform
vonmises
wrapcauchy
"""

_defer(globals(), _LATER, _SUBMODULES)
