"""Elementwise functions of one and two operands, which are Rust callables; here they get their docstrings.

Operands are not promoted: those of one call have one dtype, and equal shapes, axes of size one, or rank 0. Read next:
`conversion.py` for `select`, `clamp` and changes of dtype, `ferrax.numpy` for the functions that promote.
"""

from __future__ import annotations

from typing import Any

from ferrax._ferrax import lax as _lax

_INEXACT = "floating or complex"
_REAL = "integer or floating"
_NUMBER = "integer, floating or complex"
_BITS = "integer or bool"

# name -> what it computes, accepted dtypes, an example and what it prints
_ONE: dict[str, tuple[str, str, str, str]] = {
    "neg": ("Negation, -x.", _NUMBER, "lax.neg(jnp.array([1., -2.]))", "[-1.  2.]"),
    "sign": ("Sign: -1, 0 or 1; x/|x| for complex numbers.", _NUMBER, "lax.sign(jnp.array([-3., 0.]))", "[-1.  0.]"),
    "floor": ("Largest integer not above x.", "floating", "lax.floor(jnp.array([1.5, -1.5]))", "[ 1. -2.]"),
    "ceil": ("Smallest integer not below x.", "floating", "lax.ceil(jnp.array([1.5, -1.5]))", "[ 2. -1.]"),
    "is_finite": (
        "Test for numbers that are neither infinite nor NaN.",
        "floating",
        "lax.is_finite(jnp.array([1., jnp.inf]))",
        "[ True False]",
    ),
    "exp": ("Exponential function.", _INEXACT, "lax.exp(jnp.array([0.]))", "[1.]"),
    "exp2": ("Power of two, 2**x.", _INEXACT, "lax.exp2(jnp.array([3.]))", "[8.]"),
    "log": ("Natural logarithm.", _INEXACT, "lax.log(jnp.array([1.]))", "[0.]"),
    "expm1": ("exp(x) - 1, accurate near zero.", _INEXACT, "lax.expm1(jnp.array([0.]))", "[0.]"),
    "log1p": ("log(1 + x), accurate near zero.", _INEXACT, "lax.log1p(jnp.array([0.]))", "[0.]"),
    "tanh": ("Hyperbolic tangent.", _INEXACT, "lax.tanh(jnp.array([0.]))", "[0.]"),
    "logistic": ("Sigmoid, 1 / (1 + exp(-x)).", _INEXACT, "lax.logistic(jnp.array([0.]))", "[0.5]"),
    "sin": ("Sine of an angle in radians.", _INEXACT, "lax.sin(jnp.array([0.]))", "[0.]"),
    "cos": ("Cosine of an angle in radians.", _INEXACT, "lax.cos(jnp.array([0.]))", "[1.]"),
    "tan": ("Tangent of an angle in radians.", _INEXACT, "lax.tan(jnp.array([0.]))", "[0.]"),
    "asin": ("Arc sine, in radians.", _INEXACT, "lax.asin(jnp.array([0.]))", "[0.]"),
    "acos": ("Arc cosine, in radians.", _INEXACT, "lax.acos(jnp.array([1.]))", "[0.]"),
    "atan": ("Arc tangent, in radians.", _INEXACT, "lax.atan(jnp.array([0.]))", "[0.]"),
    "sinh": ("Hyperbolic sine.", _INEXACT, "lax.sinh(jnp.array([0.]))", "[0.]"),
    "cosh": ("Hyperbolic cosine.", _INEXACT, "lax.cosh(jnp.array([0.]))", "[1.]"),
    "asinh": ("Inverse hyperbolic sine.", _INEXACT, "lax.asinh(jnp.array([0.]))", "[0.]"),
    "acosh": ("Inverse hyperbolic cosine.", _INEXACT, "lax.acosh(jnp.array([1.]))", "[0.]"),
    "atanh": ("Inverse hyperbolic tangent.", _INEXACT, "lax.atanh(jnp.array([0.]))", "[0.]"),
    "sqrt": ("Square root.", _INEXACT, "lax.sqrt(jnp.array([9.]))", "[3.]"),
    "rsqrt": ("Reciprocal square root, 1 / sqrt(x).", _INEXACT, "lax.rsqrt(jnp.array([4.]))", "[0.5]"),
    "cbrt": ("Cube root.", "floating", "lax.cbrt(jnp.array([1.]))", "[1.]"),
    "square": ("Square, x * x.", _NUMBER, "lax.square(jnp.array([3, -2]))", "[9 4]"),
    "reciprocal": ("Reciprocal, 1 / x.", _INEXACT, "lax.reciprocal(jnp.array([4.]))", "[0.25]"),
    "abs": (
        "Absolute value; real for complex numbers.",
        "signed, floating or complex",
        "lax.abs(jnp.array([-2]))",
        "[2]",
    ),
    "real": ("Real part of complex numbers.", "complex", "lax.real(jnp.array([1 + 2j]))", "[1.]"),
    "imag": ("Imaginary part of complex numbers.", "complex", "lax.imag(jnp.array([1 + 2j]))", "[2.]"),
    "conj": (
        "Complex conjugate; real numbers become complex.",
        "complex, float32 or float64",
        "lax.conj(jnp.array([1 + 2j]))",
        "[1.-2.j]",
    ),
    "bitwise_not": ("Bitwise complement; logical for bool.", _BITS, "lax.bitwise_not(jnp.array([0, 1]))", "[-1 -2]"),
    "population_count": ("Number of set bits.", "integer", "lax.population_count(jnp.array([7, 8]))", "[3 1]"),
    "clz": ("Number of leading zero bits.", "integer", "lax.clz(jnp.array([1, 4]))", "[31 29]"),
    "erf": ("Error function.", "floating", "lax.erf(jnp.array([0.]))", "[0.]"),
    "erfc": ("Complementary error function, 1 - erf(x).", "floating", "lax.erfc(jnp.array([0.]))", "[1.]"),
    "erf_inv": ("Inverse of the error function.", "floating", "lax.erf_inv(jnp.array([0.]))", "[0.]"),
    "lgamma": ("log of the absolute value of the gamma function.", "floating", "lax.lgamma(jnp.array([1.]))", "[0.]"),
    "digamma": (
        "Digamma function, the derivative of lgamma.",
        "floating",
        "lax.digamma(jnp.array([1.])).round(3)",
        "[-0.577]",
    ),
    "bessel_i0e": (
        "Exponentially scaled modified Bessel function of order 0, exp(-\\|x\\|) I0(x).",
        "floating",
        "lax.bessel_i0e(jnp.array([0.]))",
        "[1.]",
    ),
    "bessel_i1e": (
        "Exponentially scaled modified Bessel function of order 1, exp(-\\|x\\|) I1(x).",
        "floating",
        "lax.bessel_i1e(jnp.array([0.]))",
        "[0.]",
    ),
}

_APPROXIMATE = frozenset(
    ["cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt", "tan", "tanh"]
)

# name -> what it computes, accepted dtypes, an example and what it prints
_TWO: dict[str, tuple[str, str, str, str]] = {
    "add": ("Sum, x + y.", _NUMBER, "lax.add(jnp.array([1, 2]), 3)", "[4 5]"),
    "sub": ("Difference, x - y.", _NUMBER, "lax.sub(jnp.array([1, 2]), 3)", "[-2 -1]"),
    "mul": ("Product, x * y.", _NUMBER, "lax.mul(jnp.array([1, 2]), 3)", "[3 6]"),
    "div": (
        "Quotient, x / y; integers truncate toward zero, and x / 0 is -1.",
        _NUMBER,
        "lax.div(jnp.array([7, -7]), 2)",
        "[ 3 -3]",
    ),
    "rem": ("Remainder, with the sign of x.", _REAL, "lax.rem(jnp.array([7, -7]), 3)", "[ 1 -1]"),
    "max": ("Maximum; NaN wins.", "any", "lax.max(jnp.array([1., 5.]), 3.)", "[3. 5.]"),
    "min": ("Minimum; NaN wins.", "any", "lax.min(jnp.array([1., 5.]), 3.)", "[1. 3.]"),
    "pow": (
        "Power, x ** y; an integer y may go with any x.",
        _INEXACT,
        "lax.pow(jnp.array([2., 3.]), 2)",
        "[4. 9.]",
    ),
    "atan2": ("Angle of the point (y, x), atan(x / y) in the right quadrant.", _INEXACT, "lax.atan2(0., 1.)", "0.0"),
    "nextafter": ("The next number after x1 toward x2.", "floating", "lax.nextafter(0., 1.) > 0", "True"),
    "complex": ("Complex number x + iy.", "float32 or float64", "lax.complex(1., 2.)", "(1+2j)"),
    "bitwise_and": ("Bitwise and; logical for bool.", _BITS, "lax.bitwise_and(jnp.array([6, 3]), 2)", "[2 2]"),
    "bitwise_or": ("Bitwise or; logical for bool.", _BITS, "lax.bitwise_or(jnp.array([4, 3]), 2)", "[6 3]"),
    "bitwise_xor": ("Bitwise exclusive or; logical for bool.", _BITS, "lax.bitwise_xor(jnp.array([6, 3]), 2)", "[4 1]"),
    "shift_left": (
        "Left shift; by the width or more gives 0.",
        "integer",
        "lax.shift_left(jnp.array([1, 3]), 2)",
        "[ 4 12]",
    ),
    "shift_right_arithmetic": (
        "Right shift that repeats the top bit.",
        "integer",
        "lax.shift_right_arithmetic(jnp.array([-8, 8]), 1)",
        "[-4  4]",
    ),
    "shift_right_logical": (
        "Right shift that fills with zeros.",
        "integer",
        "lax.shift_right_logical(jnp.array([8, 5]), 1)",
        "[4 2]",
    ),
    "mulhi": ("High half of the double-width product.", "integer", "lax.mulhi(jnp.int32(1 << 30), jnp.int32(8))", "2"),
    "eq": ("Test for x == y.", "any", "lax.eq(jnp.array([1, 2]), 2)", "[False  True]"),
    "ne": ("Test for x != y.", "any", "lax.ne(jnp.array([1, 2]), 2)", "[ True False]"),
    "lt": ("Test for x < y.", "any but complex", "lax.lt(jnp.array([1, 2]), 2)", "[ True False]"),
    "le": ("Test for x <= y.", "any but complex", "lax.le(jnp.array([1, 3]), 2)", "[ True False]"),
    "gt": ("Test for x > y.", "any but complex", "lax.gt(jnp.array([1, 3]), 2)", "[False  True]"),
    "ge": ("Test for x >= y.", "any but complex", "lax.ge(jnp.array([1, 2]), 2)", "[False  True]"),
    "igamma": (
        "Regularized lower incomplete gamma function.",
        "floating",
        "lax.igamma(1., jnp.array([2.])).round(3)",
        "[0.865]",
    ),
    "igammac": (
        "Regularized upper incomplete gamma function.",
        "floating",
        "lax.igammac(1., jnp.array([2.])).round(3)",
        "[0.135]",
    ),
    "zeta": ("Hurwitz zeta function.", "floating", "lax.zeta(2., jnp.array([1.])).round(3)", "[1.645]"),
    "polygamma": (
        "The m-th derivative of the digamma function.",
        "floating",
        "lax.polygamma(1., jnp.array([1.])).round(3)",
        "[1.645]",
    ),
}

_NAMES = {
    "nextafter": ("x1", "x2"),
    "igamma": ("a", "x"),
    "igammac": ("a", "x"),
    "zeta": ("x", "q"),
    "polygamma": ("m", "x"),
}


def _operands(name: str, dtypes: str) -> str:
    """The lines of the operands."""
    if name in _ONE:
        text = f"      x: array of {dtypes} dtype.\n"
        return text + "      accuracy: a hint; every value gives the same result.\n" if name in _APPROXIMATE else text
    x, y = _NAMES.get(name, ("x", "y"))
    text = f"      {x}: array of {dtypes} dtype.\n      {y}: array of the same dtype and number of axes, or a scalar.\n"
    return text + "      out_dtype: dtype that both are converted to first.\n" if name == "mul" else text


def _doc(name: str) -> str:
    """The docstring of a function of the tables."""
    what, dtypes, example, printed = _ONE.get(name) or _TWO[name]
    result = "bool" if name in ("is_finite", "eq", "ne", "lt", "le", "gt", "ge") else "of the dtype of the operands"
    if name in ("abs", "real", "imag"):
        result = "of the real dtype of x"
    elif name in ("complex", "conj"):
        result = "complex"
    raises = "the dtype is not accepted" if name in _ONE else "the dtype is not accepted, or dtypes or shapes differ"
    return (
        f"{what}\n\n    Works on each element.\n\n    Args:\n{_operands(name, dtypes)}\n    Returns:\n"
        f"      Array, {result}.\n\n    Raises:\n      TypeError: {raises}.\n\n"
        f"    >>> import ferrax.numpy as jnp\n    >>> from ferrax import lax\n    >>> print({example})\n    {printed}\n    "
    )


def _take_over(name: str) -> Any:
    """A function of the extension module, with its docstring."""
    function = getattr(_lax, name)
    function.__doc__ = _doc(name)
    function.__module__ = "ferrax.lax"
    return function


__all__ = [*_ONE, *_TWO]  # noqa: PLE0604

globals().update({name: _take_over(name) for name in (*_ONE, *_TWO)})
