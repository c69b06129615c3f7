"""Elementwise functions that are compositions of primitives.

The functions that are one primitive each (`sin`, `add`, `where` and so on) are Rust and come through `_ufuncs.py`. Read
`_floats.py` next for those that take numbers apart.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ferrax import _ferrax, lax
from ferrax._core import asarray, with_weak_type
from ferrax._narrow import limits
from ferrax._one_program import one_program
from ferrax._rust import implemented_by
from ferrax._shapes import broadcast_shapes
from ferrax.custom_derivatives import custom_jvp
from ferrax.dtypes import extended, issubdtype, result_type
from ferrax.numpy import _reductions
from ferrax.numpy._args import (
    Array,
    ArrayLike,
    broadcast_to_shape,
    broadcast_together,
    cast,
    no_out,
    promote,
    promote_inexact,
    require,
    to_array,
    to_arrays,
)  # fmt: skip
from ferrax.numpy._dtype_functions import default_float, dtype_kind, inexact_dtype, is_inexact, real_dtype
from ferrax.numpy._ranks import check_ranks
from ferrax.numpy._ufuncs import isfinite, isnan, trunc, where as _where

__all__ = [
    "allclose", "angle", "around", "array_equal", "array_equiv", "divmod", "gcd", "i0", "isclose", "isscalar",
    "iterable", "lcm", "modf", "nan_to_num", "round", "sinc",
]  # fmt: skip


def _pair(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Two operands of one dtype and shape."""
    return broadcast_together(*promote(name, x, y))


def _inexact_pair(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Two operands of one floating or complex dtype and one shape."""
    pair = _weak_inexact(name, x, y)
    check_ranks(name, *pair)
    return broadcast_together(*pair)


def _weak_inexact(name: str, *args: ArrayLike) -> list[Array]:
    """The arguments as floating or complex arrays of one dtype, weakly typed where their promotion is."""
    arrays = promote(name, *args)
    return [with_weak_type(x, v.weak_type) for x, v in zip(promote_inexact(name, *arrays), arrays)]


def _all_weak(*args: ArrayLike) -> bool:
    """Whether every argument is a Python number or weakly typed."""
    return all(isinstance(x, (int, float, complex)) or getattr(x, "weak_type", False) for x in args)


def _weak_number(*args: ArrayLike) -> bool:
    """Whether numbers are promoted to a weak type; constants beside arrays make their results strongly typed."""
    return all(np.ndim(x) == 0 for x in args) and result_type(*args, return_weak_type_flag=True)[1]  # type: ignore[arg-type]


@implemented_by(_ferrax.numpy.divmod)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:  # type: ignore[empty-body]
    """The floored quotient and the remainder of a division.

    Args:
      x1: the dividends, real.
      x2: the divisors, real.

    Returns:
      Pair of arrays.

    >>> import ferrax.numpy as jnp
    >>> jnp.divmod(jnp.array([-3, 3]), 2)
    (Array([-2,  1], dtype=int32), Array([1, 1], dtype=int32))
    """


def _complex_logaddexp(x: Array, y: Array, log1p: Any, exp: Any, turn: float) -> Array:
    x_first = lax.real(x) >= lax.real(y)
    high, low = _where(x_first, x, y), _where(x_first, y, x)
    result = high + log1p(exp(low - high))
    imag = lax.imag(result)
    return lax.complex(lax.real(result), imag - turn * lax.floor((imag + turn / 2) / turn))


def _real_logaddexp(x: Array, y: Array, log1p: Any, exp: Any) -> Array:
    gap = lax.sub(x, y)
    total = lax.add(lax.max(x, y), log1p(exp(lax.neg(lax.abs(gap)))))
    # Equal infinities have no gap: their sum is the result.
    return lax.select(lax.ne(gap, gap), lax.add(x, y), total)


def _without_infinity(x: Array) -> Array:
    real = lax.real(x) if dtype_kind(x.dtype) == "c" else x
    return lax.select(lax.eq(real, lax.full_like(real, np.inf)), lax.full_like(x, 0), x)


def _share(x: Array, total: Array, exp: Any) -> Array:
    """The part of the sum that is x: exp(x - total); infinite numbers count as zero, which makes the part 1."""
    return exp(_without_infinity(x) - _without_infinity(total))


@custom_jvp
def _logaddexp(x: Array, y: Array) -> Array:
    if dtype_kind(x.dtype) == "c":
        return _complex_logaddexp(x, y, lax.log1p, lax.exp, 2 * np.pi)
    return _real_logaddexp(x, y, lax.log1p, lax.exp)


@custom_jvp
def _logaddexp2(x: Array, y: Array) -> Array:
    log1p = lambda v: lax.log1p(v) / _LN2
    if dtype_kind(x.dtype) == "c":
        return _complex_logaddexp(x, y, log1p, lax.exp2, 2 * np.pi / _LN2)
    return _real_logaddexp(x, y, log1p, lax.exp2)


_LN2 = float(np.log(2))


def _logaddexp_jvp(function: Any, exp: Any) -> Any:
    def jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
        total = function(*primals)
        (x, y), (dx, dy) = primals, tangents
        return total, dx * _share(x, total, exp) + dy * _share(y, total, exp)

    return jvp


_logaddexp.defjvp(_logaddexp_jvp(_logaddexp, lax.exp))
_logaddexp2.defjvp(_logaddexp_jvp(_logaddexp2, lax.exp2))


@one_program()
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)), without overflow on the way.

    Args:
      x1: array.
      x2: array.

    Returns:
      Floating or complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.logaddexp(jnp.array([0., -jnp.inf]), -jnp.inf)
    Array([  0., -inf], dtype=float32)
    """
    x, y = _inexact_pair("logaddexp", x1, x2)
    out = _logaddexp(x, y)
    weak = _weak_number(x1, x2) or (out.ndim > 0 and _all_weak(x1, x2))
    return with_weak_type(out, weak) if dtype_kind(out.dtype) == "c" else out


@one_program()
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2), without overflow on the way.

    Args:
      x1: array.
      x2: array.

    Returns:
      Floating or complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.logaddexp2(jnp.array([1., 2.]), -jnp.inf)
    Array([1., 2.], dtype=float32)
    """
    return with_weak_type(_logaddexp2(*_inexact_pair("logaddexp2", x1, x2)), _weak_number(x1, x2))


@one_program()
def sinc(x: ArrayLike, /) -> Array:
    """The function sin(pi x) / (pi x), 1 at zero.

    Args:
      x: array.

    Returns:
      Floating or complex array.

    >>> import ferrax.numpy as jnp
    >>> jnp.sinc(jnp.array([0., 0.5]))
    Array([1.        , 0.63661975], dtype=float32)
    """
    (x,) = _weak_inexact("sinc", x)
    weak = _weak_number(x)
    angle = np.pi * x
    small = lax.abs(angle) < asarray(1e-3 if real_dtype(x.dtype).itemsize >= 4 else 5e-2, real_dtype(x.dtype))
    safe = _where(small, asarray(1, angle.dtype), angle)
    near = _where(small, angle, asarray(0, angle.dtype))
    square = near * near
    # Near zero the quotient is replaced by its series, which has derivatives of every order there.
    series = 1 - square / 6 + square * square / 120
    return with_weak_type(_where(small, series, lax.sin(safe) / safe), weak)


@one_program()
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    Args:
      x: real array.

    Returns:
      Floating array.

    Raises:
      ValueError: for complex numbers.

    >>> import ferrax.numpy as jnp
    >>> jnp.i0(jnp.array([0.]))
    Array([1.], dtype=float32)
    """
    (x,) = _weak_inexact("i0", x)
    if dtype_kind(x.dtype) == "c":
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {x.dtype}")
    return with_weak_type(cast(_i0(cast(x, np.float32) if x.dtype.itemsize < 4 else x), x.dtype), x.weak_type)


def _grown(x: Array, scaled: Array) -> Array:
    """``exp(|x|)`` times a number, by two factors of which none overflows before the product does."""
    half = lax.exp(lax.abs(x) / 2)
    return half * scaled * half


@custom_jvp
def _i0(x: Array) -> Array:
    return _grown(x, lax.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """The derivative is the function of order 1; that of the scaled function would cancel."""
    (x,), (dx,) = primals, tangents
    return _i0(x), dx * _grown(x, lax.bessel_i1e(x))


def _round_even(x: Array) -> Array:
    if dtype_kind(x.dtype) == "c":
        return lax.complex(_round_even(lax.real(x)), _round_even(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """A number rounded to a number of decimals, halves to the even digit.

    Args:
      a: array.
      decimals: static number of decimals; for integers not negative.
      out: not supported.

    Returns:
      Array of the dtype of `a`.

    Raises:
      NotImplementedError: for integers with negative `decimals`.

    >>> import ferrax.numpy as jnp
    >>> jnp.round(jnp.array([1.25, 1.75]), 1)
    Array([1.2, 1.8], dtype=float32)
    """
    no_out("jnp.round", out)
    x = to_array("round", a)
    decimals = operator.index(decimals)
    if dtype_kind(x.dtype) in "iu":
        if decimals < 0:
            raise NotImplementedError("integer jnp.round is not implemented for decimals < 0")
        return x
    if dtype_kind(x.dtype) == "b":
        raise ValueError("jnp.round takes numbers, got an array of dtype bool")
    if decimals == 0:
        return _round_even(x)
    wide = cast(x, np.float32) if x.dtype.itemsize < 4 else x
    result = _round_decimal(wide, decimals)
    result = cast(result, x.dtype) if result.dtype != x.dtype else result
    return with_weak_type(result, True) if x.weak_type and not x.ndim else result


def _round_decimal(x: Array, decimals: int) -> Array:
    """Floating `x` rounded to a decimal place that is not the units'."""
    real = np.finfo(real_dtype(x.dtype))
    if abs(decimals) > math.log10(real.max):  # beyond the digits, or above the numbers, that there are
        return x if decimals > 0 else x * asarray(0, x.dtype)
    power = 10.0 ** abs(decimals)
    factor = cast(asarray(power, real.dtype), x.dtype)
    if decimals < 0:
        return _round_even(x / factor) * factor
    scaled = x * factor
    rounded = _round_even(scaled) / factor
    # a number that leaves the range when it is scaled has no digits at that place
    return rounded if power * real.eps < 1 else _where(isfinite(scaled), rounded, x)


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Another name of `round`.

    Args:
      a: array.
      decimals: static number of decimals.
      out: not supported.

    Returns:
      Array of the dtype of `a`.

    >>> import ferrax.numpy as jnp
    >>> jnp.around(jnp.array([1.25]), 1)
    Array([1.2], dtype=float32)
    """
    return round(a, decimals, out)


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the integral part of a number, both with its sign.

    Args:
      x: real array.
      out: not supported.

    Returns:
      Pair of floating arrays. The fractional part of an infinity is NaN, as in JAX.

    >>> import ferrax.numpy as jnp
    >>> jnp.modf(jnp.array([1.5, -2.5]))
    (Array([ 0.5, -0.5], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    no_out("jnp.modf", out)
    (x,) = _weak_inexact("modf", x)
    whole = trunc(x)
    return x - whole, whole


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number, counterclockwise from the positive real axis.

    Args:
      z: array.
      deg: in degrees instead of radians.

    Returns:
      Floating array.

    >>> import ferrax.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1.]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = to_array("angle", z)
    if dtype_kind(z.dtype) == "c":
        real, imag = lax.real(z), lax.imag(z)
    else:
        real = with_weak_type(z if z.ndim and is_inexact(z.dtype) else cast(z, default_float()), False)
        imag = lax.full_like(real, 0)
    result = lax.atan2(imag, real)
    result = result * asarray(180 / np.pi, result.dtype) if deg else result
    # A weakly typed number stays one where it is complex, an array where it is not turned to degrees.
    complex_ = dtype_kind(z.dtype) == "c"
    return with_weak_type(result, z.weak_type and (complex_ if z.ndim == 0 else not deg))


@one_program("copy")
def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
               neginf: ArrayLike | None = None) -> Array:  # fmt: skip
    """An array with NaN and infinities replaced.

    Args:
      x: array.
      copy: has no effect: the result is a new array.
      nan: stands for NaN.
      posinf: stands for infinity; by default the largest number of the dtype.
      neginf: stands for minus infinity; by default the smallest number.

    Returns:
      Array of the dtype of `x`.

    >>> import ferrax.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([1., jnp.nan, jnp.inf]), posinf=9.)
    Array([1., 0., 9.], dtype=float32)
    """
    x = to_array("nan_to_num", x)
    if not is_inexact(x.dtype):
        return x
    if dtype_kind(x.dtype) == "c":
        parts = (nan_to_num(part, copy, nan, posinf, neginf) for part in (lax.real(x), lax.imag(x)))
        return lax.complex(*parts)
    ends = limits(x.dtype)
    high = ends.max if posinf is None else posinf
    low = ends.min if neginf is None else neginf
    # one after the other, as in JAX: what takes the place of NaN may be an infinity, which is replaced in its turn
    result = _where(isnan(x), cast(nan, x.dtype), x)
    result = _where(result == np.inf, cast(high, x.dtype), result)
    return _where(result == -np.inf, cast(low, x.dtype), result)


@one_program("equal_nan")
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Which elements of two arrays agree within tolerances: |a - b| <= atol + rtol |b|.

    Args:
      a: array.
      b: array.
      rtol: tolerance relative to `b`.
      atol: absolute tolerance.
      equal_nan: count NaN as equal to NaN.

    Returns:
      Bool array.

    >>> import ferrax.numpy as jnp
    >>> jnp.isclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    require("isclose", rtol, atol)
    check_ranks("isclose", *to_arrays("isclose", a, b))
    x, y = _pair("isclose", a, b)
    if issubdtype(x.dtype, extended):
        return x == y
    if not is_inexact(x.dtype):
        x, y = cast(x, inexact_dtype(x.dtype)), cast(y, inexact_dtype(x.dtype))
    real = real_dtype(x.dtype)
    bound = cast(atol, real) + cast(rtol, real) * lax.abs(y)
    close = lax.is_finite(lax.abs(x)) & lax.is_finite(lax.abs(y)) & (lax.abs(x - y) <= bound)
    close = close | (x == y)
    return close | (isnan(x) & isnan(y)) if equal_nan else close


@one_program("equal_nan")
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether two arrays agree within tolerances everywhere.

    Args: as in `isclose`.

    Returns:
      Bool scalar.

    >>> import ferrax.numpy as jnp
    >>> jnp.allclose(jnp.array([1., 2.]), jnp.array([1., 2.]))
    Array(True, dtype=bool)
    """
    return _reductions.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
      a1: array.
      a2: array.
      equal_nan: count NaN as equal to NaN.

    Returns:
      Bool scalar.

    >>> import ferrax.numpy as jnp
    >>> jnp.array_equal(jnp.array([1, 2]), jnp.array([1, 2]))
    Array(True, dtype=bool)
    """
    from ferrax.numpy._creation import asarray as convert

    try:
        x, y = convert(a1), convert(a2)
    except (TypeError, ValueError):
        return asarray(False)
    if x.shape != y.shape:
        return asarray(False)
    x, y = promote("array_equal", x, y)
    equal = x == y
    if equal_nan and is_inexact(x.dtype):
        equal = equal | (isnan(x) & isnan(y))
    return _reductions.all(equal)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast together and are equal then.

    Args:
      a1, a2: as in `array_equal`.

    Returns: as in `array_equal`.

    >>> import ferrax.numpy as jnp
    >>> jnp.array_equiv(jnp.ones((2, 2)), jnp.ones(2))
    Array(True, dtype=bool)
    """
    from ferrax.numpy._creation import asarray as convert

    try:
        x, y = promote("array_equiv", convert(a1), convert(a2))
        shape = broadcast_shapes(x.shape, y.shape)
    except (TypeError, ValueError):
        return asarray(False)
    return _reductions.all(broadcast_to_shape(x, shape) == broadcast_to_shape(y, shape))


def isscalar(element: Any) -> bool:
    """Whether an object is a scalar: a Python or NumPy scalar, or an array without axes.

    Args:
      element: any object.

    Returns:
      A Python bool.

    >>> import ferrax.numpy as jnp
    >>> jnp.isscalar(3.0), jnp.isscalar(jnp.zeros(2))
    (True, False)
    """
    if np.isscalar(element):
        return True
    if hasattr(element, "__jax_array__"):
        element = element.__jax_array__()
    return getattr(element, "ndim", None) == 0 and hasattr(element, "dtype")


def iterable(y: Any) -> bool:
    """Whether an object can be iterated over.

    Args:
      y: any object.

    Returns:
      A Python bool.

    >>> import ferrax.numpy as jnp
    >>> jnp.iterable([1]), jnp.iterable(1)
    (True, False)
    """
    return np.iterable(y)


def _integers(name: str, x1: ArrayLike, x2: ArrayLike) -> list[Array]:
    x, y = _pair(name, x1, x2)
    if dtype_kind(x.dtype) not in "iu":
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return [x, y]


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor, by Euclid's algorithm.

    Args:
      x1: integers.
      x2: integers.

    Returns:
      Array of integers, not negative.

    Raises:
      ValueError: for numbers that are not integers.

    >>> import ferrax.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    x, y = _integers("gcd", x1, x2)
    weak = _weak_number(x1, x2)

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        a, b = pair
        safe = _where(b == 0, asarray(1, b.dtype), b)
        return _where(b == 0, a, b), _where(b == 0, b, lax.rem(a, safe))

    if dtype_kind(x.dtype) == "i":
        x, y = lax.abs(x), lax.abs(y)
    x, y = cast(x, x.dtype), cast(y, y.dtype)
    result = lax.while_loop(lambda pair: _reductions.any(pair[1] != 0), step, (x, y))[0]
    return with_weak_type(result, weak)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple.

    Args, Returns, Raises: as in `gcd`.

    >>> import ferrax.numpy as jnp
    >>> jnp.lcm(jnp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)
    """
    check_ranks("lcm", *to_arrays("lcm", x1, x2))
    x, y = _integers("lcm", x1, x2)
    if dtype_kind(x.dtype) == "i":
        x, y = lax.abs(x), lax.abs(y)
    divisor = gcd(x, y)
    none = divisor == 0
    return with_weak_type(_where(none, 0, x * (y // _where(none, 1, divisor))), _weak_number(x1, x2))
