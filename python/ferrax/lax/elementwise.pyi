"""Type stubs of the elementwise functions that are Rust; written by `tools/stubs.py`."""

from typing import Any

from ferrax._ferrax import Array
from ferrax.typing import ArrayLike

def neg(x: ArrayLike) -> Array:
    """Negation, -x.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.neg(jnp.array([1., -2.])))
    [-1.  2.]
    """

def sign(x: ArrayLike) -> Array:
    """Sign: -1, 0 or 1; x/|x| for complex numbers.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.sign(jnp.array([-3., 0.])))
    [-1.  0.]
    """

def floor(x: ArrayLike) -> Array:
    """Largest integer not above x.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.floor(jnp.array([1.5, -1.5])))
    [ 1. -2.]
    """

def ceil(x: ArrayLike) -> Array:
    """Smallest integer not below x.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.ceil(jnp.array([1.5, -1.5])))
    [ 2. -1.]
    """

def is_finite(x: ArrayLike) -> Array:
    """Test for numbers that are neither infinite nor NaN.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.is_finite(jnp.array([1., jnp.inf])))
    [ True False]
    """

def exp(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Exponential function.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.exp(jnp.array([0.])))
    [1.]
    """

def exp2(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Power of two, 2**x.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.exp2(jnp.array([3.])))
    [8.]
    """

def log(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Natural logarithm.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.log(jnp.array([1.])))
    [0.]
    """

def expm1(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """exp(x) - 1, accurate near zero.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.expm1(jnp.array([0.])))
    [0.]
    """

def log1p(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """log(1 + x), accurate near zero.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.log1p(jnp.array([0.])))
    [0.]
    """

def tanh(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Hyperbolic tangent.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.tanh(jnp.array([0.])))
    [0.]
    """

def logistic(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Sigmoid, 1 / (1 + exp(-x)).

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.logistic(jnp.array([0.])))
    [0.5]
    """

def sin(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Sine of an angle in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.sin(jnp.array([0.])))
    [0.]
    """

def cos(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Cosine of an angle in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cos(jnp.array([0.])))
    [1.]
    """

def tan(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Tangent of an angle in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.tan(jnp.array([0.])))
    [0.]
    """

def asin(x: ArrayLike) -> Array:
    """Arc sine, in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.asin(jnp.array([0.])))
    [0.]
    """

def acos(x: ArrayLike) -> Array:
    """Arc cosine, in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.acos(jnp.array([1.])))
    [0.]
    """

def atan(x: ArrayLike) -> Array:
    """Arc tangent, in radians.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.atan(jnp.array([0.])))
    [0.]
    """

def sinh(x: ArrayLike) -> Array:
    """Hyperbolic sine.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.sinh(jnp.array([0.])))
    [0.]
    """

def cosh(x: ArrayLike) -> Array:
    """Hyperbolic cosine.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cosh(jnp.array([0.])))
    [1.]
    """

def asinh(x: ArrayLike) -> Array:
    """Inverse hyperbolic sine.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.asinh(jnp.array([0.])))
    [0.]
    """

def acosh(x: ArrayLike) -> Array:
    """Inverse hyperbolic cosine.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.acosh(jnp.array([1.])))
    [0.]
    """

def atanh(x: ArrayLike) -> Array:
    """Inverse hyperbolic tangent.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.atanh(jnp.array([0.])))
    [0.]
    """

def sqrt(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Square root.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.sqrt(jnp.array([9.])))
    [3.]
    """

def rsqrt(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Reciprocal square root, 1 / sqrt(x).

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.rsqrt(jnp.array([4.])))
    [0.5]
    """

def cbrt(x: ArrayLike, *, accuracy: Any = ...) -> Array:
    """Cube root.

    Works on each element.

    Args:
      x: array of floating dtype.
      accuracy: a hint; every value gives the same result.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.cbrt(jnp.array([1.])))
    [1.]
    """

def square(x: ArrayLike) -> Array:
    """Square, x * x.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.square(jnp.array([3, -2])))
    [9 4]
    """

def reciprocal(x: ArrayLike) -> Array:
    """Reciprocal, 1 / x.

    Works on each element.

    Args:
      x: array of floating or complex dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.reciprocal(jnp.array([4.])))
    [0.25]
    """

def abs(x: ArrayLike) -> Array:
    """Absolute value; real for complex numbers.

    Works on each element.

    Args:
      x: array of signed, floating or complex dtype.

    Returns:
      Array, of the real dtype of x.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.abs(jnp.array([-2])))
    [2]
    """

def real(x: ArrayLike) -> Array:
    """Real part of complex numbers.

    Works on each element.

    Args:
      x: array of complex dtype.

    Returns:
      Array, of the real dtype of x.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.real(jnp.array([1 + 2j])))
    [1.]
    """

def imag(x: ArrayLike) -> Array:
    """Imaginary part of complex numbers.

    Works on each element.

    Args:
      x: array of complex dtype.

    Returns:
      Array, of the real dtype of x.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.imag(jnp.array([1 + 2j])))
    [2.]
    """

def conj(x: ArrayLike) -> Array:
    """Complex conjugate; real numbers become complex.

    Works on each element.

    Args:
      x: array of complex, float32 or float64 dtype.

    Returns:
      Array, complex.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.conj(jnp.array([1 + 2j])))
    [1.-2.j]
    """

def bitwise_not(x: ArrayLike) -> Array:
    """Bitwise complement; logical for bool.

    Works on each element.

    Args:
      x: array of integer or bool dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bitwise_not(jnp.array([0, 1])))
    [-1 -2]
    """

def population_count(x: ArrayLike) -> Array:
    """Number of set bits.

    Works on each element.

    Args:
      x: array of integer dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.population_count(jnp.array([7, 8])))
    [3 1]
    """

def clz(x: ArrayLike) -> Array:
    """Number of leading zero bits.

    Works on each element.

    Args:
      x: array of integer dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.clz(jnp.array([1, 4])))
    [31 29]
    """

def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Sum, x + y.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.add(jnp.array([1, 2]), 3))
    [4 5]
    """

def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """Difference, x - y.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.sub(jnp.array([1, 2]), 3))
    [-2 -1]
    """

def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = ...) -> Array:
    """Product, x * y.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.
      out_dtype: dtype that both are converted to first.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.mul(jnp.array([1, 2]), 3))
    [3 6]
    """

def div(x: ArrayLike, y: ArrayLike) -> Array:
    """Quotient, x / y; integers truncate toward zero, and x / 0 is -1.

    Works on each element.

    Args:
      x: array of integer, floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.div(jnp.array([7, -7]), 2))
    [ 3 -3]
    """

def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """Remainder, with the sign of x.

    Works on each element.

    Args:
      x: array of integer or floating dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.rem(jnp.array([7, -7]), 3))
    [ 1 -1]
    """

def max(x: ArrayLike, y: ArrayLike) -> Array:
    """Maximum; NaN wins.

    Works on each element.

    Args:
      x: array of any dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.max(jnp.array([1., 5.]), 3.))
    [3. 5.]
    """

def min(x: ArrayLike, y: ArrayLike) -> Array:
    """Minimum; NaN wins.

    Works on each element.

    Args:
      x: array of any dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.min(jnp.array([1., 5.]), 3.))
    [1. 3.]
    """

def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Power, x ** y; an integer y may go with any x.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.pow(jnp.array([2., 3.]), 2))
    [4. 9.]
    """

def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Angle of the point (y, x), atan(x / y) in the right quadrant.

    Works on each element.

    Args:
      x: array of floating or complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.atan2(0., 1.))
    0.0
    """

def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next number after x1 toward x2.

    Works on each element.

    Args:
      x1: array of floating dtype.
      x2: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.nextafter(0., 1.) > 0)
    True
    """

def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """Complex number x + iy.

    Works on each element.

    Args:
      x: array of float32 or float64 dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, complex.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.complex(1., 2.))
    (1+2j)
    """

def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise and; logical for bool.

    Works on each element.

    Args:
      x: array of integer or bool dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bitwise_and(jnp.array([6, 3]), 2))
    [2 2]
    """

def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise or; logical for bool.

    Works on each element.

    Args:
      x: array of integer or bool dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bitwise_or(jnp.array([4, 3]), 2))
    [6 3]
    """

def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bitwise exclusive or; logical for bool.

    Works on each element.

    Args:
      x: array of integer or bool dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bitwise_xor(jnp.array([6, 3]), 2))
    [4 1]
    """

def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Left shift; by the width or more gives 0.

    Works on each element.

    Args:
      x: array of integer dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.shift_left(jnp.array([1, 3]), 2))
    [ 4 12]
    """

def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Right shift that repeats the top bit.

    Works on each element.

    Args:
      x: array of integer dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.shift_right_arithmetic(jnp.array([-8, 8]), 1))
    [-4  4]
    """

def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Right shift that fills with zeros.

    Works on each element.

    Args:
      x: array of integer dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.shift_right_logical(jnp.array([8, 5]), 1))
    [4 2]
    """

def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """High half of the double-width product.

    Works on each element.

    Args:
      x: array of integer dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.mulhi(jnp.int32(1 << 30), jnp.int32(8)))
    2
    """

def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x == y.

    Works on each element.

    Args:
      x: array of any dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.eq(jnp.array([1, 2]), 2))
    [False  True]
    """

def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x != y.

    Works on each element.

    Args:
      x: array of any dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.ne(jnp.array([1, 2]), 2))
    [ True False]
    """

def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x < y.

    Works on each element.

    Args:
      x: array of any but complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.lt(jnp.array([1, 2]), 2))
    [ True False]
    """

def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x <= y.

    Works on each element.

    Args:
      x: array of any but complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.le(jnp.array([1, 3]), 2))
    [ True False]
    """

def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x > y.

    Works on each element.

    Args:
      x: array of any but complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.gt(jnp.array([1, 3]), 2))
    [False  True]
    """

def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Test for x >= y.

    Works on each element.

    Args:
      x: array of any but complex dtype.
      y: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, bool.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.ge(jnp.array([1, 2]), 2))
    [False  True]
    """

def erf(x: ArrayLike) -> Array:
    """Error function.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.erf(jnp.array([0.])))
    [0.]
    """

def erfc(x: ArrayLike) -> Array:
    """Complementary error function, 1 - erf(x), accurate for large x.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.erfc(jnp.array([0.])))
    [1.]
    """

def erf_inv(x: ArrayLike) -> Array:
    """Inverse of the error function.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.erf_inv(jnp.array([0.])))
    [0.]
    """

def lgamma(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.lgamma(jnp.array([1.])))
    [0.]
    """

def digamma(x: ArrayLike) -> Array:
    """Digamma function, the derivative of lgamma.

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.digamma(jnp.array([1.])).round(3))
    [-0.577]
    """

def bessel_i0e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 0, exp(-|x|) I0(x).

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bessel_i0e(jnp.array([0.])))
    [1.]
    """

def bessel_i1e(x: ArrayLike) -> Array:
    """Exponentially scaled modified Bessel function of order 1, exp(-|x|) I1(x).

    Works on each element.

    Args:
      x: array of floating dtype.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.bessel_i1e(jnp.array([0.])))
    [0.]
    """

def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized lower incomplete gamma function, P(a, x).

    Works on each element.

    Args:
      a: array of floating dtype.
      x: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.igamma(1., jnp.array([2.])).round(3))
    [0.865]
    """

def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Regularized upper incomplete gamma function, Q(a, x).

    Works on each element.

    Args:
      a: array of floating dtype.
      x: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.igammac(1., jnp.array([2.])).round(3))
    [0.135]
    """

def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz zeta function, the sum of 1/(k + q)**x over k.

    Works on each element.

    Args:
      x: array of floating dtype.
      q: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.zeta(2., jnp.array([1.])).round(3))
    [1.645]
    """

def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of the digamma function.

    Works on each element.

    Args:
      m: array of floating dtype.
      x: array of the same dtype and number of axes, or a scalar.

    Returns:
      Array, of the dtype of the operands.

    Raises:
      TypeError: the dtype is not accepted, or dtypes or shapes differ.

    >>> import ferrax.numpy as jnp
    >>> from ferrax import lax
    >>> print(lax.polygamma(1., jnp.array([1.])).round(3))
    [1.645]
    """

__all__ = [
    "neg", "sign", "floor", "ceil", "is_finite", "exp", "exp2", "log", "expm1", "log1p", "tanh", "logistic", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "cbrt",
    "square", "reciprocal", "abs", "real", "imag", "conj", "bitwise_not", "population_count", "clz", "add", "sub",
    "mul", "div", "rem", "max", "min", "pow", "atan2", "nextafter", "complex", "bitwise_and", "bitwise_or",
    "bitwise_xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "mulhi", "eq", "ne", "lt", "le",
    "gt", "ge", "erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e", "igamma", "igammac",
    "zeta", "polygamma"
]  # fmt: skip
