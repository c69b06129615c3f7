"""Elementwise functions of one and two operands, which are Rust callables; written by `tools/stubs.py`.

Operands are not promoted: those of one call have one dtype, and equal shapes, axes of size one, or rank 0. What they
are stands beside their blocks in `crates/ferrax-ops/src/elementwise`. Read next: `conversion.py` for `select`, `clamp`
and changes of dtype, `ferrax.numpy` for the functions that promote.
"""

from ferrax._ferrax import lax as _rust

neg = _rust.neg
sign = _rust.sign
floor = _rust.floor
ceil = _rust.ceil
is_finite = _rust.is_finite
exp = _rust.exp
exp2 = _rust.exp2
log = _rust.log
expm1 = _rust.expm1
log1p = _rust.log1p
tanh = _rust.tanh
logistic = _rust.logistic
sin = _rust.sin
cos = _rust.cos
tan = _rust.tan
asin = _rust.asin
acos = _rust.acos
atan = _rust.atan
sinh = _rust.sinh
cosh = _rust.cosh
asinh = _rust.asinh
acosh = _rust.acosh
atanh = _rust.atanh
sqrt = _rust.sqrt
rsqrt = _rust.rsqrt
cbrt = _rust.cbrt
square = _rust.square
reciprocal = _rust.reciprocal
abs = _rust.abs
real = _rust.real
imag = _rust.imag
conj = _rust.conj
bitwise_not = _rust.bitwise_not
population_count = _rust.population_count
clz = _rust.clz
add = _rust.add
sub = _rust.sub
mul = _rust.mul
div = _rust.div
rem = _rust.rem
max = _rust.max
min = _rust.min
pow = _rust.pow
atan2 = _rust.atan2
nextafter = _rust.nextafter
complex = _rust.complex
bitwise_and = _rust.bitwise_and
bitwise_or = _rust.bitwise_or
bitwise_xor = _rust.bitwise_xor
shift_left = _rust.shift_left
shift_right_arithmetic = _rust.shift_right_arithmetic
shift_right_logical = _rust.shift_right_logical
mulhi = _rust.mulhi
eq = _rust.eq
ne = _rust.ne
lt = _rust.lt
le = _rust.le
gt = _rust.gt
ge = _rust.ge
erf = _rust.erf
erfc = _rust.erfc
erf_inv = _rust.erf_inv
lgamma = _rust.lgamma
digamma = _rust.digamma
bessel_i0e = _rust.bessel_i0e
bessel_i1e = _rust.bessel_i1e
igamma = _rust.igamma
igammac = _rust.igammac
zeta = _rust.zeta
polygamma = _rust.polygamma

__all__ = [
    "neg", "sign", "floor", "ceil", "is_finite", "exp", "exp2", "log", "expm1", "log1p", "tanh", "logistic", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "cbrt",
    "square", "reciprocal", "abs", "real", "imag", "conj", "bitwise_not", "population_count", "clz", "add", "sub",
    "mul", "div", "rem", "max", "min", "pow", "atan2", "nextafter", "complex", "bitwise_and", "bitwise_or",
    "bitwise_xor", "shift_left", "shift_right_arithmetic", "shift_right_logical", "mulhi", "eq", "ne", "lt", "le",
    "gt", "ge", "erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e", "igamma", "igammac",
    "zeta", "polygamma"
]  # fmt: skip
