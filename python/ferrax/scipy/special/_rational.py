"""Arithmetic in float64 that the approximations share: rational functions, exponentials of squares, exact products.

Operands are float64 (`_args.in_double`). A function evaluates the approximations of all its intervals and selects: what
an approximation gives outside of its interval does not matter, and derivatives do not pass through (`_args.smooth`).
Read next: `_coefficients.py`, `_error_functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrax import lax
from ferrax._api import jit
from ferrax._core import with_weak_type
from ferrax.numpy._args import Array
from ferrax.scipy.special._args import in_double

__all__ = ["constant", "double", "exp_difference", "horner", "pick", "product", "rational", "splits"]

Table = tuple[tuple[float, ...], tuple[float, ...], float, float]

#: Beyond this the exponential of a square is 0 or infinite.
_SQUARE_RANGE = 1e4


def double(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` of float64 arrays, for arrays of any float dtype: one compiled program; results are never weak."""

    def run(*args: Array) -> Any:
        return with_weak_type(in_double(function, *args), False)

    return jit(run)


def constant(x: Array, value: float) -> Array:
    """An array like `x`, filled."""
    return lax.full_like(x, value)


def pick(*cases: Any) -> Array:
    """`pick(c1, x1, c2, x2, ..., otherwise)`: the first value whose condition holds."""
    out = cases[-1]
    for condition, value in zip(cases[-3::-2], cases[-2::-2], strict=True):
        out = lax.select(condition, value, out)
    return out


def horner(coefficients: Sequence[float], t: Array) -> Array:
    """The polynomial with these coefficients, highest powers first."""
    out = constant(t, coefficients[0])
    for c in coefficients[1:]:
        out = out * t + c
    return out


def rational(table: Table, u: Array) -> Array:
    """The approximation p(t) / q(t), t = (u - shift) scale."""
    p, q, shift, scale = table
    t = (u - shift if shift else u) * scale
    return horner(p, t) / horner(q, t) if len(q) > 1 else horner(p, t)


def splits(x: Array) -> tuple[Array, Array]:
    """(m, r) with x² = m² + r, for |x| < 1e4: m² is exact, so that exp(m²) exp(r) has the digits that exp(x²) loses."""
    m = lax.round(x * 128.0) * (1 / 128)
    return m, (x - m) * (x + m)


def exp_difference(a: Array, b: Array) -> Array:
    """exp(a² - b²), accurate for large exponents."""
    (m, r), (n, s) = (splits(lax.clamp(constant(x, -_SQUARE_RANGE), x, constant(x, _SQUARE_RANGE))) for x in (a, b))
    huge = lax.max(lax.abs(a), lax.abs(b)) > _SQUARE_RANGE
    return lax.select(huge, lax.exp((a - b) * (a + b)), lax.exp(m * m - n * n) * lax.exp(r - s))


def product(a: Array, b: Array) -> tuple[Array, Array]:
    """(p, e) with a b = p + e exactly, where nothing overflows (Dekker, 1971)."""

    def halves(x: Array) -> tuple[Array, Array]:
        bits = lax.bitcast_convert_type(x, np.uint64)
        high = lax.bitcast_convert_type(bits & np.uint64(0xFFFFFFFFF8000000), np.float64)
        return high, x - high

    p = a * b
    (a1, a2), (b1, b2) = halves(a), halves(b)
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2
