"""Bernoulli's numbers, from whole tangent numbers (Brent and Harvey, "Fast computation of Bernoulli, tangent and secant
numbers", 2011). Read next: `_gamma.py`.
"""

from __future__ import annotations

import operator
from fractions import Fraction

import numpy as np

from ferrax._core import Array, asarray
from ferrax.numpy._args import concrete_or_error
from ferrax.numpy._dtype_functions import default_float

__all__ = ["bernoulli"]

#: From here on they are beyond the range of float64.
_MOST = 260


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B(0) to B(n), of which B(1) is -1/2.

    Args:
      n: static; the last index, not negative.

    Returns:
      Floating array of shape (n + 1,), each number rounded once; infinite beyond the dtype's range.

    Raises:
      ValueError: when `n` is negative.

    >>> import ferrax.scipy.special
    >>> ferrax.scipy.special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334], dtype=float32)
    """
    n = operator.index(concrete_or_error(None, n, "Argument n of bernoulli"))
    if n < 0:
        raise ValueError(f"n must be a non-negative integer, got {n}.")
    numbers = np.zeros(n + 1, np.float64)
    numbers[0] = 1
    if n > 0:
        numbers[1] = -0.5
    last = min(n, _MOST) // 2
    tangents = [0, 1, *(0 for _ in range(last))]
    for k in range(2, last + 1):
        tangents[k] = (k - 1) * tangents[k - 1]
    for k in range(2, last + 1):
        for j in range(k, last + 1):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    for k in range(1, n // 2 + 1):
        sign = -1 if k % 2 == 0 else 1
        try:
            numbers[2 * k] = (
                sign * float(Fraction(2 * k * tangents[k], 4**k * (4**k - 1))) if k <= last else np.inf * sign
            )
        except OverflowError:
            numbers[2 * k] = np.inf * sign
    with np.errstate(over="ignore"):
        return asarray(numbers.astype(default_float()))
