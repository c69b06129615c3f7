"""Truncated Taylor series of arrays: a list of coefficients, the value first, and the recurrences of functions of them.

The coefficients of a function's series follow from an equation that its derivative satisfies, in quadratic time: for
v = exp(u), v' = u' v gives k v_k = sum of j u_j v_(k-j).
Source: Griewank and Walther, "Evaluating Derivatives" (2nd ed. 2008), chapter 13. Read next: `jet.py`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ferrax import lax, numpy as jnp

__all__ = [
    "add",
    "constant",
    "divide",
    "exponential",
    "from_derivative",
    "hyperbolic",
    "integer_power",
    "logarithm",
    "multiply",
    "power",
    "product",
    "scaled",
    "shifted",
    "square_root",
    "trigonometric",
    "with_slope",
]

#: Coefficients of one array's series.
Series = list[Any]


def _total(terms: Sequence[Any], like: Any) -> Any:
    return functools.reduce(operator.add, terms) if terms else jnp.zeros_like(like)


def constant(x: Any, order: int) -> Series:
    """The series of a constant.

    Args:
      x: the value.
      order: number of coefficients after it.

    Returns:
      The coefficients.
    """
    return [x, *(jnp.zeros_like(x) for _ in range(order))]


def add(u: Series, w: Series, sign: int = 1) -> Series:
    """The series of u + w, or of u - w where `sign` is -1."""
    return [a + b if sign == 1 else a - b for a, b in zip(u, w, strict=True)]


def scaled(u: Series, by: Any) -> Series:
    """The series of u times a constant."""
    return [a * by for a in u]


def shifted(u: Series, by: Any) -> Series:
    """The series of u plus a constant."""
    return [u[0] + by, *u[1:]]


def product(op: Callable[[Any, Any], Any], u: Series, w: Series) -> Series:
    """The series of an operation that is linear in each of its two operands."""
    return [_total([op(u[j], w[k - j]) for j in range(k + 1)], u[0]) for k in range(len(u))]


multiply = functools.partial(product, operator.mul)


def divide(u: Series, w: Series) -> Series:
    """The series of u / w, from u = v w."""
    out: Series = []
    for k in range(len(u)):
        known = _total([w[j] * out[k - j] for j in range(1, k + 1)], u[k] * w[0])
        out.append((u[k] - known) / w[0] if k else u[0] / w[0])
    return out


def exponential(u: Series, value: Any) -> Series:
    """The series of v = exp(u), of which the value is given: v' = u' v."""
    return with_slope(u, value, lambda v: v)


def with_slope(u: Series, value: Any, slope: Callable[[Series], Series]) -> Series:
    """The series of v where v' = u' times a function of v, whose first coefficients follow from those of v.

    Args:
      u: the series of the operand.
      value: the function's value.
      slope: gives the series of v' / u' from that of v, both of the same length.

    Returns:
      The series of v.
    """
    out = [value]
    for k in range(1, len(u)):
        g = slope(out)
        out.append(_total([j * u[j] * g[k - j] for j in range(1, k + 1)], value) / k)
    return out


def from_derivative(u: Series, value: Any, g: Series) -> Series:
    """The series of v where v' = u' g, from the value and the series of g."""
    return with_slope(u, value, lambda _: g)


def logarithm(u: Series, value: Any) -> Series:
    """The series of v = log(u), of which the value is given: u v' = u'."""
    out = [value]
    for k in range(1, len(u)):
        known = _total([j * out[j] * u[k - j] for j in range(1, k)], u[0])
        out.append((u[k] - known / k) / u[0])
    return out


def square_root(u: Series, value: Any) -> Series:
    """The series of v = sqrt(u), of which the value is given: v v = u."""
    out = [value]
    for k in range(1, len(u)):
        known = _total([out[j] * out[k - j] for j in range(1, k)], value)
        out.append((u[k] - known) / (2 * value))
    return out


def power(u: Series, value: Any, exponent: Any) -> Series:
    """The series of v = u ** a for a constant a, of which the value is given: u v' = a u' v.

    Args:
      u: the series of the base.
      value: the power.
      exponent: a number, or an array that broadcasts.

    Returns:
      The series.
    """
    out = [value]
    for k in range(1, len(u)):
        terms = [(exponent * j - (k - j)) * u[j] * out[k - j] for j in range(1, k + 1)]
        out.append(_total(terms, value) / (k * u[0]))
    return out


def integer_power(u: Series, n: int) -> Series:
    """The series of u ** n by products, which has no division by u when n is not negative."""
    if n < 0:
        return divide(constant(jnp.ones_like(u[0]), len(u) - 1), integer_power(u, -n))
    out: Series | None = None
    while n:
        if n & 1:
            out = u if out is None else multiply(out, u)
        n >>= 1
        if n:
            u = multiply(u, u)
    return constant(jnp.ones_like(u[0]), len(u) - 1) if out is None else out


def _pair(u: Series, sine: Any, cosine: Any, sign: int) -> tuple[Series, Series]:
    s, c = [sine], [cosine]
    for k in range(1, len(u)):
        s.append(_total([j * u[j] * c[k - j] for j in range(1, k + 1)], sine) / k)
        c.append(sign * _total([j * u[j] * s[k - j] for j in range(1, k + 1)], sine) / k)
    return s, c


def trigonometric(u: Series) -> tuple[Series, Series]:
    """The series of sin(u) and cos(u): s' = u' c and c' = -u' s."""
    return _pair(u, lax.sin(u[0]), lax.cos(u[0]), -1)


def hyperbolic(u: Series) -> tuple[Series, Series]:
    """The series of sinh(u) and cosh(u): s' = u' c and c' = u' s."""
    return _pair(u, lax.sinh(u[0]), lax.cosh(u[0]), 1)


def factorial(n: int) -> float:
    """n! as a float.

    >>> factorial(4)
    24.0
    """
    return float(math.factorial(n))
