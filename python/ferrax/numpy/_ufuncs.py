"""The elementwise functions that are Rust: one primitive, or a few, with NumPy's promotion around it.

The callables live in the extension module; here they get their docstrings. Read `_elementwise.py` for the functions
that are Python.
"""

from __future__ import annotations

from typing import Any

from ferrax import _ferrax

# name -> what it computes, the result, an example and what it prints
_ONE: dict[str, tuple[str, str, str, str]] = {
    "exp": ("Exponential function e**x.", "floating or complex", "jnp.exp(jnp.array([0., 1.]))", "[1.        2.7182817]"),
    "exp2": ("Power of two, 2**x.", "floating or complex", "jnp.exp2(jnp.array([0., 3.]))", "[1. 8.]"),
    "expm1": ("exp(x) - 1, accurate near zero.", "floating or complex", "jnp.expm1(jnp.array([0.]))", "[0.]"),
    "log": ("Natural logarithm.", "floating or complex", "jnp.log(jnp.array([1.]))", "[0.]"),
    "log2": ("Logarithm to base 2.", "floating or complex", "jnp.log2(jnp.array([1., 8.]))", "[0. 3.]"),
    "log10": ("Logarithm to base 10.", "floating or complex", "jnp.log10(jnp.array([1., 10.]))", "[0. 1.]"),
    "log1p": ("log(1 + x), accurate near zero.", "floating or complex", "jnp.log1p(jnp.array([0.]))", "[0.]"),
    "sqrt": ("Square root.", "floating or complex", "jnp.sqrt(jnp.array([4, 9]))", "[2. 3.]"),
    "cbrt": ("Cube root.", "floating", "jnp.cbrt(jnp.array([0., 1.]))", "[0. 1.]"),
    "sin": ("Sine of an angle in radians.", "floating or complex", "jnp.sin(jnp.array([0.]))", "[0.]"),
    "cos": ("Cosine of an angle in radians.", "floating or complex", "jnp.cos(jnp.array([0.]))", "[1.]"),
    "tan": ("Tangent of an angle in radians.", "floating or complex", "jnp.tan(jnp.array([0.]))", "[0.]"),
    "arcsin": ("Inverse sine, in radians.", "floating or complex", "jnp.arcsin(jnp.array([0.]))", "[0.]"),
    "arccos": ("Inverse cosine, in radians.", "floating or complex", "jnp.arccos(jnp.array([1.]))", "[0.]"),
    "arctan": ("Inverse tangent, in radians.", "floating or complex", "jnp.arctan(jnp.array([0.]))", "[0.]"),
    "sinh": ("Hyperbolic sine.", "floating or complex", "jnp.sinh(jnp.array([0.]))", "[0.]"),
    "cosh": ("Hyperbolic cosine.", "floating or complex", "jnp.cosh(jnp.array([0.]))", "[1.]"),
    "tanh": ("Hyperbolic tangent.", "floating or complex", "jnp.tanh(jnp.array([0.]))", "[0.]"),
    "arcsinh": ("Inverse hyperbolic sine.", "floating or complex", "jnp.arcsinh(jnp.array([0.]))", "[0.]"),
    "arccosh": ("Inverse hyperbolic cosine.", "floating or complex", "jnp.arccosh(jnp.array([1.]))", "[0.]"),
    "arctanh": ("Inverse hyperbolic tangent.", "floating or complex", "jnp.arctanh(jnp.array([0.]))", "[0.]"),
    "reciprocal": ("1 / x.", "floating or complex", "jnp.reciprocal(jnp.array([2., 4.]))", "[0.5  0.25]"),
    "deg2rad": ("Degrees to radians.", "floating", "jnp.deg2rad(jnp.array([0.]))", "[0.]"),
    "rad2deg": ("Radians to degrees.", "floating", "jnp.rad2deg(jnp.array([0.]))", "[0.]"),
    "negative": ("-x.", "of the dtype of x", "jnp.negative(jnp.array([1, -2]))", "[-1  2]"),
    "positive": ("x itself.", "of the dtype of x", "jnp.positive(jnp.array([1, -2]))", "[ 1 -2]"),
    "absolute": ("Absolute value.", "of the real dtype of x", "jnp.absolute(jnp.array([1, -2]))", "[1 2]"),
    "fabs": ("Absolute value as a float.", "floating", "jnp.fabs(jnp.array([1, -2]))", "[1. 2.]"),
    "sign": ("Sign: -1, 0 or 1; x / |x| for complex numbers.", "of the dtype of x", "jnp.sign(jnp.array([-5, 0]))", "[-1  0]"),
    "floor": ("Largest integer not above x.", "of the dtype of x", "jnp.floor(jnp.array([1.5, -1.5]))", "[ 1. -2.]"),
    "ceil": ("Smallest integer not below x.", "of the dtype of x", "jnp.ceil(jnp.array([1.5, -1.5]))", "[ 2. -1.]"),
    "trunc": ("x rounded toward zero.", "of the dtype of x", "jnp.trunc(jnp.array([1.5, -1.5]))", "[ 1. -1.]"),
    "rint": ("x rounded to the nearest integer, halves to the even one.", "floating or complex", "jnp.rint(jnp.array([0.5, 1.5]))", "[0. 2.]"),
    "square": ("x * x.", "of the dtype of x", "jnp.square(jnp.array([2, 3]))", "[4 9]"),
    "conjugate": ("Complex conjugate.", "of the dtype of x", "jnp.conjugate(jnp.array([1 + 2j]))", "[1.-2.j]"),
    "real": ("Real part.", "of the real dtype of x", "jnp.real(jnp.array([1 + 2j]))", "[1.]"),
    "imag": ("Imaginary part; zeros for real x.", "of the real dtype of x", "jnp.imag(jnp.array([1 + 2j]))", "[2.]"),
    "isnan": ("Test for NaN.", "bool", "jnp.isnan(jnp.array([1., jnp.nan]))", "[False  True]"),
    "isinf": ("Test for infinities.", "bool", "jnp.isinf(jnp.array([1., -jnp.inf]))", "[False  True]"),
    "isfinite": ("Test for numbers that are neither infinite nor NaN.", "bool", "jnp.isfinite(jnp.array([1., jnp.inf]))", "[ True False]"),
    "isposinf": ("Test for positive infinity.", "bool", "jnp.isposinf(jnp.array([-jnp.inf, jnp.inf]))", "[False  True]"),
    "isneginf": ("Test for negative infinity.", "bool", "jnp.isneginf(jnp.array([-jnp.inf, jnp.inf]))", "[ True False]"),
    "iscomplex": ("Test for a nonzero imaginary part.", "bool", "jnp.iscomplex(jnp.array([1j, 1]))", "[ True False]"),
    "isreal": ("Test for a zero imaginary part.", "bool", "jnp.isreal(jnp.array([1j, 1]))", "[False  True]"),
    "signbit": ("Test of the sign bit.", "bool", "jnp.signbit(jnp.array([-0., 0.]))", "[ True False]"),
    "logical_not": ("Truth of `not x`.", "bool", "jnp.logical_not(jnp.array([0, 3]))", "[ True False]"),
    "bitwise_not": ("Every bit flipped; logical not for bool.", "of the dtype of x", "jnp.bitwise_not(jnp.array([0, 1]))", "[-1 -2]"),
    "bitwise_count": ("Number of one bits of |x|.", "uint8", "jnp.bitwise_count(jnp.array([3, 8]))", "[2 1]"),
}  # fmt: skip

_TWO: dict[str, tuple[str, str, str, str]] = {
    "add": ("x + y.", "of the common dtype", "jnp.add(jnp.array([1, 2]), 3)", "[4 5]"),
    "subtract": ("x - y.", "of the common dtype", "jnp.subtract(jnp.array([1, 2]), 3)", "[-2 -1]"),
    "multiply": ("x * y.", "of the common dtype", "jnp.multiply(jnp.array([1, 2]), 3)", "[3 6]"),
    "divide": ("x / y, as a float.", "floating or complex", "jnp.divide(jnp.array([1, 2]), 2)", "[0.5 1. ]"),
    "floor_divide": ("Floor of x / y.", "of the common dtype", "jnp.floor_divide(jnp.array([-3, 3]), 2)", "[-2  1]"),
    "remainder": ("Remainder of x / y, with the sign of y.", "of the common dtype", "jnp.remainder(jnp.array([-3, 3]), 2)", "[1 1]"),
    "fmod": ("Remainder of x / y, with the sign of x.", "of the common dtype", "jnp.fmod(jnp.array([-3, 3]), 2)", "[-1  1]"),
    "power": ("x ** y.", "of the common dtype", "jnp.power(jnp.array([2, 3]), 2)", "[4 9]"),
    "float_power": ("x ** y as floats.", "floating or complex", "jnp.float_power(jnp.array([2, 3]), 2)", "[4. 9.]"),
    "maximum": ("The larger of x and y; NaN wins.", "of the common dtype", "jnp.maximum(jnp.array([1, 5]), 3)", "[3 5]"),
    "minimum": ("The smaller of x and y; NaN wins.", "of the common dtype", "jnp.minimum(jnp.array([1, 5]), 3)", "[1 3]"),
    "fmax": ("The larger of x and y; a number wins over NaN.", "of the common dtype", "jnp.fmax(jnp.array([jnp.nan, 5.]), 3.)", "[3. 5.]"),
    "fmin": ("The smaller of x and y; a number wins over NaN.", "of the common dtype", "jnp.fmin(jnp.array([jnp.nan, 5.]), 3.)", "[3. 3.]"),
    "equal": ("Truth of x == y.", "bool", "jnp.equal(jnp.array([1, 2]), 2)", "[False  True]"),
    "not_equal": ("Truth of x != y.", "bool", "jnp.not_equal(jnp.array([1, 2]), 2)", "[ True False]"),
    "less": ("Truth of x < y.", "bool", "jnp.less(jnp.array([1, 2]), 2)", "[ True False]"),
    "less_equal": ("Truth of x <= y.", "bool", "jnp.less_equal(jnp.array([1, 2]), 2)", "[ True  True]"),
    "greater": ("Truth of x > y.", "bool", "jnp.greater(jnp.array([1, 2]), 1)", "[False  True]"),
    "greater_equal": ("Truth of x >= y.", "bool", "jnp.greater_equal(jnp.array([1, 2]), 2)", "[False  True]"),
    "logical_and": ("Truth of `x and y`.", "bool", "jnp.logical_and(jnp.array([0, 3]), True)", "[False  True]"),
    "logical_or": ("Truth of `x or y`.", "bool", "jnp.logical_or(jnp.array([0, 3]), False)", "[False  True]"),
    "logical_xor": ("Truth of exactly one of x and y.", "bool", "jnp.logical_xor(jnp.array([0, 3]), True)", "[ True False]"),
    "bitwise_and": ("Bits that are set in both.", "of the common dtype", "jnp.bitwise_and(jnp.array([1, 3]), 2)", "[0 2]"),
    "bitwise_or": ("Bits that are set in either.", "of the common dtype", "jnp.bitwise_or(jnp.array([1, 3]), 2)", "[3 3]"),
    "bitwise_xor": ("Bits that are set in exactly one.", "of the common dtype", "jnp.bitwise_xor(jnp.array([1, 3]), 2)", "[3 1]"),
    "left_shift": ("x shifted left by y bits.", "of the common dtype", "jnp.left_shift(jnp.array([1, 3]), 2)", "[ 4 12]"),
    "right_shift": ("x shifted right by y bits; the sign is kept.", "of the common dtype", "jnp.right_shift(jnp.array([4, -4]), 1)", "[ 2 -2]"),
    "arctan2": ("Angle of the point (y, x), in radians.", "floating", "jnp.arctan2(jnp.array([0.]), 1.)", "[0.]"),
    "hypot": ("sqrt(x*x + y*y), without overflow on the way.", "floating", "jnp.hypot(jnp.array([3.]), 4.)", "[5.]"),
    "copysign": ("|x| with the sign of y.", "floating", "jnp.copysign(jnp.array([1., -2.]), -1.)", "[-1. -2.]"),
    "nextafter": ("The float after x on the way to y.", "floating", "jnp.nextafter(jnp.array([0.]), 0.)", "[0.]"),
    "heaviside": ("0 below zero, 1 above, y at zero.", "floating", "jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5)", "[0.  0.5 1. ]"),
}  # fmt: skip

# other names of the same functions
_ALIASES: dict[str, str] = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "radians": "deg2rad", "degrees": "rad2deg", "abs": "absolute", "conj": "conjugate", "invert": "bitwise_not",
    "bitwise_invert": "bitwise_not", "true_divide": "divide", "mod": "remainder", "pow": "power", "atan2": "arctan2",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip

_WHERE = """Elements of x where a condition holds, of y elsewhere; with the condition alone, the indices where it holds.

    Args:
      condition: array; nonzero counts as true.
      x: array, broadcast with the others.
      y: array, broadcast with the others.
      size: with the condition alone, the number of indices, for use under jit.
      fill_value: with size, what fills the places beyond the indices found.

    Returns:
      Array of the common dtype of x and y; with the condition alone, a tuple of index arrays.

    Raises:
      ValueError: only one of x and y is given.

    >>> import ferrax.numpy as jnp
    >>> print(jnp.where(jnp.array([True, False]), 1, 2))
    [1 2]
    """

_CLIP = """x limited to at least ``min`` and at most ``max``.

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


def _doc(name: str) -> str:
    """The docstring of a function of the tables."""
    source = _ALIASES.get(name, name)
    binary = source in _TWO
    what, result, example, printed = (_TWO if binary else _ONE)[source]
    if source != name:
        what += f" Another name of ``{source}``."
    operands = "      x: array.\n      y: array, broadcast with x.\n" if binary else "      x: array.\n"
    return (
        f"{what}\n\n    Works on each element.\n\n    Args:\n{operands}\n    Returns:\n      Array, {result}.\n\n"
        f"    >>> import ferrax.numpy as jnp\n    >>> print({example})\n    {printed}\n    "
    )


def _take_over(name: str, doc: str) -> Any:
    """A function of the extension module, with its docstring."""
    function = getattr(_ferrax.numpy, name)
    function.__doc__ = doc
    return function


__all__ = [*_ONE, *_TWO, *_ALIASES, "clip", "where"]  # noqa: PLE0604

globals().update({name: _take_over(name, _doc(name)) for name in (*_ONE, *_TWO, *_ALIASES)})
where = _take_over("where", _WHERE)
clip = _take_over("clip", _CLIP)
