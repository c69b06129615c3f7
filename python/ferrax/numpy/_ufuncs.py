"""The elementwise functions that are Rust: one primitive, or a few, with NumPy's promotion.

Written by `tools/stubs.py`; what they are stands in `crates/ferrax/src/numpy`. Read `_elementwise.py` for the functions
that are Python.
"""

from ferrax._ferrax import numpy as _rust

exp = _rust.exp
exp2 = _rust.exp2
log = _rust.log
expm1 = _rust.expm1
log1p = _rust.log1p
tanh = _rust.tanh
sin = _rust.sin
cos = _rust.cos
tan = _rust.tan
arcsin = _rust.arcsin
asin = _rust.asin
arccos = _rust.arccos
acos = _rust.acos
arctan = _rust.arctan
atan = _rust.atan
sinh = _rust.sinh
cosh = _rust.cosh
arcsinh = _rust.arcsinh
asinh = _rust.asinh
arctanh = _rust.arctanh
atanh = _rust.atanh
sqrt = _rust.sqrt
cbrt = _rust.cbrt
arccosh = _rust.arccosh
acosh = _rust.acosh
log2 = _rust.log2
log10 = _rust.log10
reciprocal = _rust.reciprocal
deg2rad = _rust.deg2rad
radians = _rust.radians
rad2deg = _rust.rad2deg
degrees = _rust.degrees
negative = _rust.negative
positive = _rust.positive
abs = _rust.abs
absolute = _rust.absolute
fabs = _rust.fabs
sign = _rust.sign
floor = _rust.floor
ceil = _rust.ceil
trunc = _rust.trunc
rint = _rust.rint
square = _rust.square
conj = _rust.conj
conjugate = _rust.conjugate
real = _rust.real
imag = _rust.imag
isnan = _rust.isnan
isinf = _rust.isinf
isfinite = _rust.isfinite
isposinf = _rust.isposinf
isneginf = _rust.isneginf
signbit = _rust.signbit
logical_not = _rust.logical_not
bitwise_not = _rust.bitwise_not
bitwise_invert = _rust.bitwise_invert
invert = _rust.invert
bitwise_count = _rust.bitwise_count
iscomplex = _rust.iscomplex
isreal = _rust.isreal
add = _rust.add
subtract = _rust.subtract
multiply = _rust.multiply
divide = _rust.divide
true_divide = _rust.true_divide
floor_divide = _rust.floor_divide
remainder = _rust.remainder
mod = _rust.mod
fmod = _rust.fmod
maximum = _rust.maximum
minimum = _rust.minimum
fmax = _rust.fmax
fmin = _rust.fmin
equal = _rust.equal
not_equal = _rust.not_equal
less = _rust.less
less_equal = _rust.less_equal
greater = _rust.greater
greater_equal = _rust.greater_equal
logical_and = _rust.logical_and
logical_or = _rust.logical_or
logical_xor = _rust.logical_xor
bitwise_and = _rust.bitwise_and
bitwise_or = _rust.bitwise_or
bitwise_xor = _rust.bitwise_xor
left_shift = _rust.left_shift
bitwise_left_shift = _rust.bitwise_left_shift
right_shift = _rust.right_shift
bitwise_right_shift = _rust.bitwise_right_shift
arctan2 = _rust.arctan2
atan2 = _rust.atan2
nextafter = _rust.nextafter
hypot = _rust.hypot
copysign = _rust.copysign
heaviside = _rust.heaviside
power = _rust.power
pow = _rust.pow
float_power = _rust.float_power
clip = _rust.clip
where = _rust.where

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
