"""Logistic functions, entropies and power transforms: a few operations each, with derivatives that stay finite.

Read next: `_normal.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import weak_type, with_weak_type
from ferrax.custom_derivatives import SymbolicZero, custom_jvp
from ferrax.lax._tails import log_excess, rarely
from ferrax.numpy._args import Array, ArrayLike
from ferrax.numpy._dtype_functions import dtype_kind
from ferrax.numpy._ufuncs import where
from ferrax.scipy.special._args import double_program, filled, in_double, in_single, inexact, real, smooth

__all__ = ["boxcox", "boxcox1p", "entr", "expit", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"]


def expit(x: ArrayLike) -> Array:
    """The logistic function, 1 / (1 + exp(-x)).

    Args:
      x: real or complex array.

    Returns:
      Array of the shape of `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.expit(jnp.array([0., 1.]))
    Array([0.5      , 0.7310586], dtype=float32)
    """
    return lax.logistic(*inexact("expit", x))


def logit(x: ArrayLike) -> Array:
    """The inverse of the logistic function, log(x / (1 - x)).

    Args:
      x: real or complex array.

    Returns:
      Array of the shape of `x`; NaN for real numbers outside of [0, 1].

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.logit(jnp.array([0., 0.5, 1.]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    return in_single(_logit, *filled(inexact("logit", x)))


@custom_jvp
@jit
def _logit(x: Array) -> Array:
    odds = x / (1 - x)
    if dtype_kind(x.dtype) == "c":
        return lax.log(odds)
    # near 1/2 the odds are near 1: what they exceed it by keeps its digits
    middle = (x > 0.3) & (x < 0.7)
    excess = where(middle, (2 * x - 1) / (1 - x), lax.full_like(x, 0))
    return where(middle, lax.log1p(excess), lax.log(odds))


_logit.defjvps(lambda t, ans, x: t / (x * (1 - x)))


def _product_rule(function: Any, log: Any, argument: Any) -> Any:
    """The derivative of x log(argument(y)), with 0 for a multiple of x = 0 whatever y is."""

    def rule(primals: Any, tangents: Any) -> tuple[Array, Array]:
        (x, y), (dx, dy) = primals, tangents
        total = lax.full_like(x, 0)
        if not isinstance(dx, SymbolicZero):
            total = total + dx * log(y)
        if not isinstance(dy, SymbolicZero):
            below = argument(y)
            zero = (x == 0) & (below == 0)
            total = total + dy * (x / where(zero, lax.full_like(below, 1), below))
        return function(x, y), total

    return rule


def _times_log(x: Array, y: Array, log: Any) -> Array:
    # NaN stays, all else that a zero multiplies is 0
    zero = (x == 0) & (y == y)
    return where(zero, lax.full_like(x, 0), x * log(where(zero, lax.full_like(y, 1), y)))


@custom_jvp
@jit
def _xlogy(x: Array, y: Array) -> Array:
    return _times_log(x, y, lax.log)


@custom_jvp
@jit
def _xlog1py(x: Array, y: Array) -> Array:
    return _times_log(x, y, lax.log1p)


_xlogy.defjvp(_product_rule(_xlogy, lax.log, lambda y: y), symbolic_zeros=True)
_xlog1py.defjvp(_product_rule(_xlog1py, lax.log1p, lambda y: 1 + y), symbolic_zeros=True)


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), which is 0 where x is.

    Args:
      x: real or complex array.
      y: real or complex array.

    Returns:
      Array of the shape that the operands broadcast to. Its derivative by `y` is 0 where `x` is.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.xlogy(jnp.array([0., 2.]), jnp.array([0., 1.]))
    Array([0., 0.], dtype=float32)
    """
    return in_single(_xlogy, *inexact("xlogy", x, y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), which is 0 where x is.

    Args, Returns: as in `xlogy`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.xlog1py(jnp.array([0., 2.]), jnp.array([-1., 0.]))
    Array([0., 0.], dtype=float32)
    """
    return in_single(_xlog1py, *inexact("xlog1py", x, y))


def entr(x: ArrayLike) -> Array:
    """The entropy term -x log(x): 0 at zero, -inf for negative numbers.

    Args:
      x: real array.

    Returns:
      Array of the shape of `x`.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.entr(jnp.array([-1., 0., 1.]))
    Array([-inf,   0.,   0.], dtype=float32)
    """
    return in_single(_entr, *real("entr", x, error=ValueError))


@jit
def _entr(x: Array) -> Array:
    return where(x < 0, lax.full_like(x, -float("inf")), 0 - _xlogy(x, x))


@smooth(lambda value, p, q: 1 / p, lambda value, p, q: -1 / q)
def _log_quotient(p: Array, q: Array) -> Array:
    """log(p / q) of positive numbers, with all digits where they are nearly equal."""
    gap = p - q
    near = lax.abs(gap) <= lax.min(0.5 * q, lax.full_like(q, np.finfo(np.float32).max))
    return where(near, lax.log1p(where(near, gap, lax.full_like(gap, 0)) / q), lax.log(p) - lax.log(q))


@smooth(lambda value, p, q: _log_quotient(p, q), lambda value, p, q: (q - p) / q)
def _divergence(p: Array, q: Array) -> Array:
    """p log(p / q) - p + q of positive numbers: p (d - log(1 + d)) with 1 + d = q / p, which has all digits."""
    d = (q - p) / p
    near = (d > -0.5) & (d < 1)
    return where(near, p * log_excess(where(near, d, lax.full_like(d, 0)), 18), p * _log_quotient(p, q) - p + q)


@smooth(lambda value, p, q: 1 / p, lambda value, p, q: -1 / q)
def _short_log_quotient(p: Array, q: Array) -> Array:
    """log(p / q) by one logarithm: differences of nearly equal numbers are exact."""
    size = lax.log1p(lax.abs(p - q) / lax.min(p, q))
    return where(p < q, -size, size)


@smooth(lambda value, p, q: _short_log_quotient(p, q), lambda value, p, q: (q - p) / q)
def _short_divergence(p: Array, q: Array) -> Array:
    """In float32, with most digits: the series of `log_excess` as far as the plain formula would cancel."""
    gap = q - p
    d = gap / p
    near = (d > -0.6) & (d < 1.5)
    return where(near, p * log_excess(d, 8), gap - p * lax.log(q / p))


def _outside(p: Array, q: Array) -> Array:
    """The relative entropy where one of the two is not positive."""
    none = (p == 0) & (q >= 0)
    return where(none, lax.full_like(p, 0), where((p == p) & (q == q), lax.full_like(p, float("inf")), p + q))


def _inside(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Whether both are positive, and operands that are so elsewhere."""
    both, one = (p > 0) & (q > 0), lax.full_like(p, 1)
    return both, where(both, p, one), where(both, q, one)


def _rel_entr(p: Array, q: Array) -> Array:
    both, safe_p, safe_q = _inside(p, q)
    return where(both, safe_p * _log_quotient(safe_p, safe_q), _outside(p, q))


def _single_rel_entr(p: Array, q: Array) -> Array:
    def far(p: Array, q: Array) -> Array:
        # the quotient overflows, or there is none
        both, safe_p, safe_q = _inside(p, q)
        return where(both, safe_p * (lax.log(safe_p) - lax.log(safe_q)), _outside(p, q))

    both, safe_p, safe_q = _inside(p, q)
    value = safe_p * _short_log_quotient(safe_p, safe_q)
    return rarely(~(both & lax.is_finite(value)), far, value, p, q)


@jit
def _short_rel_entr(p: Array, q: Array) -> Array:
    return in_single(_single_rel_entr, p, q)


def _kl_div(p: Array, q: Array) -> Array:
    both, safe_p, safe_q = _inside(p, q)
    return where(both, _divergence(safe_p, safe_q), _outside(p, q) - p + q)


def _single_kl_div(p: Array, q: Array) -> Array:
    both, safe_p, safe_q = _inside(p, q)
    value = _short_divergence(safe_p, safe_q)
    # elsewhere the quotient has few digits, or none
    usual = both & lax.is_finite(value) & (safe_q / safe_p > 1e-37)
    return rarely(~usual, lambda p, q: in_double(_kl_div, p, q), value, p, q)


@jit
def _short_kl_div(p: Array, q: Array) -> Array:
    # of weak type they would be float64 beside numbers, where derivatives are taken
    strong = [with_weak_type(x, False) for x in (p, q)]
    return with_weak_type(in_single(_single_kl_div, *strong), weak_type(p) and weak_type(q))


_rel_entr_program, _kl_div_program = double_program(_rel_entr), double_program(_kl_div)


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The relative entropy p log(p / q): 0 where p is 0 and q is not negative, inf outside of the domain.

    Args:
      p: real array.
      q: real array.

    Returns:
      Array of the shape that the operands broadcast to.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.rel_entr(jnp.array([0., 1., 1.]), jnp.array([1., 1., 0.]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    p, q = filled(real("rel_entr", p, q, error=ValueError))
    return (_rel_entr_program if p.dtype.itemsize == 8 else _short_rel_entr)(p, q)


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The term p log(p / q) - p + q of the Kullback-Leibler divergence, inf outside of the domain.

    Args, Returns, Raises: as in `rel_entr`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.kl_div(jnp.array([0., 1., 1.]), jnp.array([1., 1., 0.]))
    Array([ 1.,  0., inf], dtype=float32)
    """
    p, q = filled(real("kl_div", p, q, error=ValueError))
    return (_kl_div_program if p.dtype.itemsize == 8 else _short_kl_div)(p, q)


def _boxcox(log_x: Array, lmbda: Array) -> Array:
    """The transform of a number whose logarithm is given: expm1(lmbda log_x) / lmbda, the series of it near 0."""
    one, zero = lax.full_like(log_x, 1), lax.full_like(log_x, 0)
    t = where(lmbda == 0, zero, lmbda * where(lmbda == 0, one, log_x))
    small = (lax.abs(t) < 1e-2) & (lax.abs(lmbda) < 1)
    near = where(small, lmbda, zero) * where(small & (log_x - log_x == 0), log_x, one)
    series = one
    for k in range(8, 1, -1):
        series = 1 + series * near / k
    return where(small, log_x * series, lax.expm1(where(small, one, t)) / where(small, one, lmbda))


_boxcox_program = double_program(lambda x, lmbda: _boxcox(lax.log(x), lmbda))
_boxcox1p_program = double_program(lambda x, lmbda: _boxcox(lax.log1p(x), lmbda))


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform (x**lmbda - 1) / lmbda, whose limit at lmbda = 0 is log(x).

    Args:
      x: real or complex array.
      lmbda: the exponent.

    Returns:
      Array of the shape that the operands broadcast to; NaN for negative `x`.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.boxcox(jnp.array([1., 3.]), 2.)
    Array([0., 4.], dtype=float32)
    """
    return _boxcox_program(*inexact("boxcox", x, lmbda))


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform ((1 + x)**lmbda - 1) / lmbda, whose limit at lmbda = 0 is log(1 + x).

    Args: as in `boxcox`.

    Returns:
      Array of the shape that the operands broadcast to; NaN for `x` below -1.

    >>> import ferrax.numpy as jnp
    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.boxcox1p(jnp.array([0., 2.]), 2.)
    Array([0., 4.], dtype=float32)
    """
    return _boxcox1p_program(*inexact("boxcox1p", x, lmbda))
