"""Type stubs of the elementwise functions that are Rust; written by `tools/stubs.py`."""

from typing import Any, overload

from ferrax._ferrax import Array
from ferrax.numpy._ufunc import ufunc
from ferrax.typing import ArrayLike

class _Unary(ufunc):
    def __call__(self, x: ArrayLike, /, *, out: None = ..., where: None = ...) -> Array: ...  # type: ignore[override]

class _Binary(ufunc):
    def __call__(  # type: ignore[override]
        self, x: ArrayLike, y: ArrayLike, /, *, out: None = ..., where: None = ...
    ) -> Array: ...

def exp(x: ArrayLike, /) -> Array:
    """Exponential function.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.exp(jnp.array([0.])))
    [1.]
    """

def exp2(x: ArrayLike, /) -> Array:
    """Power of two, 2**x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.exp2(jnp.array([3.])))
    [8.]
    """

def log(x: ArrayLike, /) -> Array:
    """Natural logarithm.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.log(jnp.array([1.])))
    [0.]
    """

def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, accurate near zero.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.expm1(jnp.array([0.])))
    [0.]
    """

def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), accurate near zero.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.log1p(jnp.array([0.])))
    [0.]
    """

def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.tanh(jnp.array([0.])))
    [0.]
    """

def sin(x: ArrayLike, /) -> Array:
    """Sine of an angle in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.sin(jnp.array([0.])))
    [0.]
    """

def cos(x: ArrayLike, /) -> Array:
    """Cosine of an angle in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.cos(jnp.array([0.])))
    [1.]
    """

def tan(x: ArrayLike, /) -> Array:
    """Tangent of an angle in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.tan(jnp.array([0.])))
    [0.]
    """

def arcsin(x: ArrayLike, /) -> Array:
    """Arc sine, in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arcsin(jnp.array([0.])))
    [0.]
    """

def asin(x: ArrayLike, /) -> Array:
    """Arc sine, in radians. Another name of ``arcsin``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.asin(jnp.array([0.])))
    [0.]
    """

def arccos(x: ArrayLike, /) -> Array:
    """Arc cosine, in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arccos(jnp.array([1.])))
    [0.]
    """

def acos(x: ArrayLike, /) -> Array:
    """Arc cosine, in radians. Another name of ``arccos``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.acos(jnp.array([1.])))
    [0.]
    """

def arctan(x: ArrayLike, /) -> Array:
    """Arc tangent, in radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arctan(jnp.array([0.])))
    [0.]
    """

def atan(x: ArrayLike, /) -> Array:
    """Arc tangent, in radians. Another name of ``arctan``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.atan(jnp.array([0.])))
    [0.]
    """

def sinh(x: ArrayLike, /) -> Array:
    """Hyperbolic sine.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.sinh(jnp.array([0.])))
    [0.]
    """

def cosh(x: ArrayLike, /) -> Array:
    """Hyperbolic cosine.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.cosh(jnp.array([0.])))
    [1.]
    """

def arcsinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arcsinh(jnp.array([0.])))
    [0.]
    """

def asinh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic sine. Another name of ``arcsinh``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.asinh(jnp.array([0.])))
    [0.]
    """

def arctanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arctanh(jnp.array([0.])))
    [0.]
    """

def atanh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic tangent. Another name of ``arctanh``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.atanh(jnp.array([0.])))
    [0.]
    """

def sqrt(x: ArrayLike, /) -> Array:
    """Square root.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.sqrt(jnp.array([9.])))
    [3.]
    """

def cbrt(x: ArrayLike, /) -> Array:
    """Cube root.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.cbrt(jnp.array([1.])))
    [1.]
    """

def arccosh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic cosine.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arccosh(jnp.array([1.])))
    [0.]
    """

def acosh(x: ArrayLike, /) -> Array:
    """Inverse hyperbolic cosine. Another name of ``arccosh``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.acosh(jnp.array([1.])))
    [0.]
    """

def log2(x: ArrayLike, /) -> Array:
    """Logarithm to base 2.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.log2(jnp.array([1., 8.])))
    [0. 3.]
    """

def log10(x: ArrayLike, /) -> Array:
    """Logarithm to base 10.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.log10(jnp.array([1., 10.])))
    [0. 1.]
    """

def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.reciprocal(jnp.array([2., 4.])))
    [0.5  0.25]
    """

def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees to radians.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.deg2rad(jnp.array([0.])))
    [0.]
    """

def radians(x: ArrayLike, /) -> Array:
    """Degrees to radians. Another name of ``deg2rad``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.radians(jnp.array([0.])))
    [0.]
    """

def rad2deg(x: ArrayLike, /) -> Array:
    """Radians to degrees.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.rad2deg(jnp.array([0.])))
    [0.]
    """

def degrees(x: ArrayLike, /) -> Array:
    """Radians to degrees. Another name of ``rad2deg``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.degrees(jnp.array([0.])))
    [0.]
    """

negative: _Unary
def positive(x: ArrayLike, /) -> Array:
    """x itself.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.positive(jnp.array([1, -2])))
    [ 1 -2]
    """

def abs(x: ArrayLike, /) -> Array:
    """Absolute value. Another name of ``absolute``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the real dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.abs(jnp.array([1, -2])))
    [1 2]
    """

def absolute(x: ArrayLike, /) -> Array:
    """Absolute value.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the real dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.absolute(jnp.array([1, -2])))
    [1 2]
    """

def fabs(x: ArrayLike, /) -> Array:
    """Absolute value as a float.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.fabs(jnp.array([1, -2])))
    [1. 2.]
    """

def sign(x: ArrayLike, /) -> Array:
    """Sign: -1, 0 or 1; x / |x| for complex numbers.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.sign(jnp.array([-5, 0])))
    [-1  0]
    """

def floor(x: ArrayLike, /) -> Array:
    """Largest integer not above x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.floor(jnp.array([1.5, -1.5])))
    [ 1. -2.]
    """

def ceil(x: ArrayLike, /) -> Array:
    """Smallest integer not below x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.ceil(jnp.array([1.5, -1.5])))
    [ 2. -1.]
    """

def trunc(x: ArrayLike) -> Array:
    """x rounded toward zero.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.trunc(jnp.array([1.5, -1.5])))
    [ 1. -1.]
    """

def rint(x: ArrayLike, /) -> Array:
    """x rounded to the nearest integer, halves to the even one.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.rint(jnp.array([0.5, 1.5])))
    [0. 2.]
    """

def square(x: ArrayLike, /) -> Array:
    """x * x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.square(jnp.array([2, 3])))
    [4 9]
    """

def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate. Another name of ``conjugate``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.conj(jnp.array([1 + 2j])))
    [1.-2.j]
    """

def conjugate(x: ArrayLike, /) -> Array:
    """Complex conjugate.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.conjugate(jnp.array([1 + 2j])))
    [1.-2.j]
    """

def real(x: ArrayLike, /) -> Array:
    """Real part.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the real dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.real(jnp.array([1 + 2j])))
    [1.]
    """

def imag(x: ArrayLike, /) -> Array:
    """Imaginary part; zeros for real x.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the real dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.imag(jnp.array([1 + 2j])))
    [2.]
    """

def isnan(x: ArrayLike, /) -> Array:
    """Test for NaN.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isnan(jnp.array([1., jnp.nan])))
    [False  True]
    """

def isinf(x: ArrayLike, /) -> Array:
    """Test for infinities.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isinf(jnp.array([1., -jnp.inf])))
    [False  True]
    """

def isfinite(x: ArrayLike, /) -> Array:
    """Test for numbers that are neither infinite nor NaN.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isfinite(jnp.array([1., jnp.inf])))
    [ True False]
    """

def isposinf(x: ArrayLike, /, out: Any = ...) -> Array:
    """Test for positive infinity.

    Works on each element.

    Args:
      x: array.
      out: must be None.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isposinf(jnp.array([-jnp.inf, jnp.inf])))
    [False  True]
    """

def isneginf(x: ArrayLike, /, out: Any = ...) -> Array:
    """Test for negative infinity.

    Works on each element.

    Args:
      x: array.
      out: must be None.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isneginf(jnp.array([-jnp.inf, jnp.inf])))
    [ True False]
    """

def signbit(x: ArrayLike, /) -> Array:
    """Test of the sign bit.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.signbit(jnp.array([-0., 0.])))
    [ True False]
    """

def logical_not(x: ArrayLike, /) -> Array:
    """Truth of `not x`.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.logical_not(jnp.array([0, 3])))
    [ True False]
    """

def bitwise_not(x: ArrayLike, /) -> Array:
    """Every bit flipped; logical not for bool.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.bitwise_not(jnp.array([0, 1])))
    [-1 -2]
    """

def bitwise_invert(x: ArrayLike, /) -> Array:
    """Every bit flipped; logical not for bool. Another name of ``bitwise_not``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.bitwise_invert(jnp.array([0, 1])))
    [-1 -2]
    """

def invert(x: ArrayLike, /) -> Array:
    """Every bit flipped; logical not for bool. Another name of ``bitwise_not``.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, of the dtype of x.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.invert(jnp.array([0, 1])))
    [-1 -2]
    """

def bitwise_count(x: ArrayLike, /) -> Array:
    """Number of one bits of |x|.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, uint8.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.bitwise_count(jnp.array([3, 8])))
    [2 1]
    """

def iscomplex(x: ArrayLike) -> Array:
    """Test for a nonzero imaginary part.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.iscomplex(jnp.array([1j, 1])))
    [ True False]
    """

def isreal(x: ArrayLike) -> Array:
    """Test for a zero imaginary part.

    Works on each element.

    Args:
      x: array.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.isreal(jnp.array([1j, 1])))
    [False  True]
    """

add: _Binary
subtract: _Binary
multiply: _Binary
def divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y, as a float.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.divide(jnp.array([1, 2]), 2))
    [0.5 1. ]
    """

def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y, as a float. Another name of ``divide``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.true_divide(jnp.array([1, 2]), 2))
    [0.5 1. ]
    """

def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Floor of x / y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.floor_divide(jnp.array([-3, 3]), 2))
    [-2  1]
    """

def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Remainder of x / y, with the sign of y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.remainder(jnp.array([-3, 3]), 2))
    [1 1]
    """

def mod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Remainder of x / y, with the sign of y. Another name of ``remainder``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.mod(jnp.array([-3, 3]), 2))
    [1 1]
    """

def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Remainder of x / y, with the sign of x.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.fmod(jnp.array([-3, 3]), 2))
    [-1  1]
    """

maximum: _Binary
minimum: _Binary
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of two numbers; a number wins over NaN.

    Works on each element.

    Args:
      x1: array.
      x2: array, broadcast with x1.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.fmax(jnp.array([jnp.nan, 5.]), 3.))
    [3. 5.]
    """

def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of two numbers; a number wins over NaN.

    Works on each element.

    Args:
      x1: array.
      x2: array, broadcast with x1.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.fmin(jnp.array([jnp.nan, 5.]), 3.))
    [3. 3.]
    """

def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x == y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.equal(jnp.array([1, 2]), 2))
    [False  True]
    """

def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x != y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.not_equal(jnp.array([1, 2]), 2))
    [ True False]
    """

def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x < y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.less(jnp.array([1, 2]), 2))
    [ True False]
    """

def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x <= y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.less_equal(jnp.array([1, 2]), 2))
    [ True  True]
    """

def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x > y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.greater(jnp.array([1, 2]), 1))
    [False  True]
    """

def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Truth of x >= y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, bool.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.greater_equal(jnp.array([1, 2]), 2))
    [False  True]
    """

logical_and: _Binary
logical_or: _Binary
logical_xor: _Binary
bitwise_and: _Binary
bitwise_or: _Binary
bitwise_xor: _Binary
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x shifted left by y bits.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.left_shift(jnp.array([1, 3]), 2))
    [ 4 12]
    """

def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x shifted left by y bits. Another name of ``left_shift``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.bitwise_left_shift(jnp.array([1, 3]), 2))
    [ 4 12]
    """

def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x shifted right by y bits; the sign is kept.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.right_shift(jnp.array([4, -4]), 1))
    [ 2 -2]
    """

def bitwise_right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x shifted right by y bits; the sign is kept. Another name of ``right_shift``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.bitwise_right_shift(jnp.array([4, -4]), 1))
    [ 2 -2]
    """

def arctan2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Angle of the point (y, x), in radians.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.arctan2(jnp.array([0.]), 1.))
    [0.]
    """

def atan2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Angle of the point (y, x), in radians. Another name of ``arctan2``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.atan2(jnp.array([0.]), 1.))
    [0.]
    """

def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The float after x on the way to y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.nextafter(jnp.array([0.]), 0.))
    [0.]
    """

def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """sqrt(x*x + y*y), without overflow on the way.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.hypot(jnp.array([3.]), 4.))
    [5.]
    """

def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """|x| with the sign of y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.copysign(jnp.array([1., -2.]), -1.))
    [-1. -2.]
    """

def heaviside(x: ArrayLike, y: ArrayLike, /) -> Array:
    """0 below zero, 1 above, y at zero.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5))
    [0.  0.5 1. ]
    """

def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.power(jnp.array([2, 3]), 2))
    [4 9]
    """

def pow(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y. Another name of ``power``.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, of the common dtype.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.pow(jnp.array([2, 3]), 2))
    [4 9]
    """

def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ** y as floats.

    Works on each element.

    Args:
      x: array.
      y: array, broadcast with x.

    Returns:
      Array, floating or complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.float_power(jnp.array([2, 3]), 2))
    [4. 9.]
    """

def clip(arr: ArrayLike | None = ..., /, min: ArrayLike | None = ..., max: ArrayLike | None = ...) -> Array:
    """x limited to at least ``min`` and at most ``max``.

    Args:
      arr: real array.
      min: lower limit, broadcast with the array; none when left out.
      max: upper limit, broadcast with the array; none when left out.

    Returns:
      Array of the common dtype of the array and its limits.

    Raises:
      ValueError: an operand is complex.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.clip(jnp.array([0, 5, 9]), 2, 7))
    [2 5 7]
    """

@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def where(condition: ArrayLike, /, *, size: int | None = ..., fill_value: Any = ...) -> tuple[Array, ...]: ...
__all__ = [
    "exp", "exp2", "log", "expm1", "log1p", "tanh", "sin", "cos", "tan", "arcsin", "asin", "arccos", "acos",
    "arctan", "atan", "sinh", "cosh", "arcsinh", "asinh", "arctanh", "atanh", "sqrt", "cbrt", "arccosh", "acosh",
    "log2", "log10", "reciprocal", "deg2rad", "radians", "rad2deg", "degrees", "negative", "positive", "abs",
    "absolute", "fabs", "sign", "floor", "ceil", "trunc", "rint", "square", "conj", "conjugate", "real", "imag",
    "isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "logical_not", "bitwise_not", "bitwise_invert",
    "invert", "bitwise_count", "iscomplex", "isreal", "add", "subtract", "multiply", "divide", "true_divide",
    "floor_divide", "remainder", "mod", "fmod", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "left_shift", "bitwise_left_shift", "right_shift", "bitwise_right_shift",
    "arctan2", "atan2", "nextafter", "hypot", "copysign", "heaviside", "power", "pow", "float_power", "clip",
    "where"
]  # fmt: skip
