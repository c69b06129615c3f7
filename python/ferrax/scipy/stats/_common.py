"""What the distributions share: arguments, supports, and logarithms that keep their accuracy and their derivatives.

A value off the support is taken out before a formula sees it, for the derivative of what `where` throws away is
multiplied by zero, and an infinity would become NaN. NaN is neither on nor off a support, and so goes through.
Logarithms of gamma and beta functions, whose differences are small, are taken `in_double`.
Read next: `norm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ferrax import custom_jvp, lax
from ferrax._core import Array as Array, promote_dtypes, promote_ranks, weak_type, with_weak_type
from ferrax.lax._double import in_double as in_double
from ferrax.lax._tails import rarely
from ferrax.lax.special import log_beta as log_beta
from ferrax.nn._normalize import log1mexp as log1mexp
from ferrax.numpy import _ufuncs
from ferrax.numpy._args import broadcast_together, require
from ferrax.numpy._dtype_functions import inexact_dtype
from ferrax.scipy.special._args import in_single
from ferrax.typing import ArrayLike as ArrayLike

__all__ = [
    "HALF_LOG_2PI", "betainc", "clipped", "igamma", "igammac", "in_double", "log1mexp", "log_beta",
    "log_of_share", "log_probability", "one_minus_exp", "parameters", "probability", "strong", "where",
]  # fmt: skip

HALF_LOG_2PI = math.log(2 * math.pi) / 2

#: Distributions and functions whose results stay weak where arrays meet Python's numbers; all others give full types.
_WEAK = frozenset([
    "binom", "expon", "gennorm", "gumbel_l", "gumbel_r", "truncnorm", "uniform", "vonmises", "wrapcauchy", "gamma.sf",
    "gamma.logsf", "logistic.cdf", "logistic.sf", "norm.cdf", "norm.logcdf", "norm.sf", "norm.logsf", "norm.isf",
    "norm.ppf", "pareto.logcdf", "poisson.logpmf",
])  # fmt: skip

where = _ufuncs.where


def parameters(name: str, *args: ArrayLike) -> list[Any]:
    """The arguments of a function as arrays of their common float dtype and rank.

    They are weak when all of them are and none has an axis, or the function is one of `_WEAK`.
    """
    require(name, *args)
    arrays = promote_dtypes(*args)
    target = inexact_dtype(arrays[0].dtype)
    weak = name in _WEAK or name.split(".")[0] in _WEAK or not any(x.ndim for x in arrays)
    arrays = [with_weak_type(lax.convert_element_type(x, target), weak and weak_type(x)) for x in arrays]
    return promote_ranks(name, *arrays)


def strong(x: Array) -> Array:
    """`x` of full type: some of JAX's functions give Python's numbers one."""
    return with_weak_type(x, False)


def clipped(z: Array) -> Array:
    """`z`, or 0 where it is negative; with the derivative of `z` at 0."""
    return where(z < 0, 0.0, z)


def probability(q: Array) -> Array:
    """`q`, or NaN where it is not in [0, 1]."""
    return where((q >= 0) & (q <= 1), q, math.nan)


@custom_jvp
def one_minus_exp(z: Array) -> Array:
    """`1 - exp(-z)`, with the derivative exp(-z) where the value is 1 to the last bit, too."""
    return -lax.expm1(-z)


one_minus_exp.defjvps(lambda t, ans, z: t * lax.exp(-z))


def log_probability(p: Array, complement: Array) -> Array:
    """`log(p)`, accurate where `p` is close to 1 and `complement`, which is `1 - p`, is small."""
    zero, small = p <= 0, p < 0.5
    low = lax.log(where(zero | ~small, 1.0, p))
    high = lax.log1p(-where(small, 0.0, complement))
    return where(zero, -math.inf, where(small, low, high))


def log_of_share(share: Callable[..., Array], rest: Callable[..., Array], *args: Array) -> Array:
    """`log(share(*args))` of a regularized integral that `rest` completes to 1.

    In float32 the integrals are, too: rounding them costs the logarithm less than two roundings of its own. What
    float32 does not hold is integrated in float64.
    """
    exact = lambda *args: in_double(lambda *wide: log_probability(share(*wide), rest(*wide)), *args)

    def single(*args: Array) -> Array:
        p = share(*args)
        return rarely(p < 1e-30, exact, in_double(log_probability, p, rest(*args)), *args)

    return exact(*args) if args[0].dtype.itemsize == 8 else in_single(single, *args)


def _from_zero(share: Callable[[Array, Array], Array], at_zero: float, a: Array, x: Array) -> Array:
    """A share that is constant at 0: its slope there may be infinite, and a tangent of zero times that is NaN."""
    a, x = broadcast_together(a, x)
    start = (x == 0) & (a > 0)
    return where(start, at_zero, share(a, where(start, 1.0, x)))


def igamma(a: Array, x: Array) -> Array:
    """Regularized lower incomplete gamma function of arguments that broadcast."""
    return _from_zero(lax.igamma, 0.0, a, x)


def igammac(a: Array, x: Array) -> Array:
    """Regularized upper incomplete gamma function of arguments that broadcast."""
    return _from_zero(lax.igammac, 1.0, a, x)


def betainc(a: Array, b: Array, x: Array) -> Array:
    """Regularized incomplete beta function of arguments that broadcast."""
    return lax.betainc(*broadcast_together(a, b, x))
