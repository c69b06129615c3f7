//! Functions of one operand.

use super::{Rule, Unary, never1};
use ferrax_base::{DType, Result, Scalar, bail, config};
use ferrax_ir::{Lit, OpRef, Value};
use ferrax_ops as ops;
use ferrax_ops::common::constant;

/// Writes the row of a function, and the function.
macro_rules! unary {
    ($(#[$doc:meta])* $fun:ident, $NAME:ident, $name:literal, $rule:ident, $direct:expr, $general:expr) => {
        $(#[$doc])*
        pub static $NAME: Unary = Unary { name: $name, rule: Rule::$rule, direct: $direct, general: $general };

        $(#[$doc])*
        pub fn $fun(x: &Value) -> Result<Value> {
            $NAME.call(x)
        }
    };
}

/// Functions that are one primitive on floats, with one name here and there.
macro_rules! inexact {
    ($($fun:ident $NAME:ident $name:literal $OP:ident $doc:literal;)*) => {$(
        unary!(#[doc = $doc] $fun, $NAME, $name, Inexact, |_| Some(ops::$OP.op()), never1);
    )*};
}

inexact! {
    exp EXP "exp" EXP "Elementwise exponential.";
    exp2 EXP2 "exp2" EXP2 "Elementwise 2**x.";
    expm1 EXPM1 "expm1" EXPM1 "Elementwise exp(x) - 1.";
    log LOG "log" LOG "Elementwise natural logarithm.";
    log1p LOG1P "log1p" LOG1P "Elementwise log(1 + x).";
    sqrt SQRT "sqrt" SQRT "Elementwise square root.";
    cbrt CBRT "cbrt" CBRT "Elementwise cube root.";
    sin SIN "sin" SIN "Elementwise sine.";
    cos COS "cos" COS "Elementwise cosine.";
    tan TAN "tan" TAN "Elementwise tangent.";
    arcsin ARCSIN "arcsin" ASIN "Elementwise inverse sine.";
    arccos ARCCOS "arccos" ACOS "Elementwise inverse cosine.";
    arctan ARCTAN "arctan" ATAN "Elementwise inverse tangent.";
    asin ASIN "asin" ASIN "Elementwise inverse sine.";
    acos ACOS "acos" ACOS "Elementwise inverse cosine.";
    atan ATAN "atan" ATAN "Elementwise inverse tangent.";
    sinh SINH "sinh" SINH "Elementwise hyperbolic sine.";
    cosh COSH "cosh" COSH "Elementwise hyperbolic cosine.";
    tanh TANH "tanh" TANH "Elementwise hyperbolic tangent.";
    arcsinh ARCSINH "arcsinh" ASINH "Elementwise inverse hyperbolic sine.";
    arctanh ARCTANH "arctanh" ATANH "Elementwise inverse hyperbolic tangent.";
    asinh ASINH "asinh" ASINH "Elementwise inverse hyperbolic sine.";
    atanh ATANH "atanh" ATANH "Elementwise inverse hyperbolic tangent.";
}

fn real_only(d: DType, op: OpRef) -> Option<OpRef> {
    (!d.is_complex()).then_some(op)
}

/// acosh, on the branch with a nonnegative real part.
fn complex_acosh(x: &Value) -> Result<Value> {
    let y = ops::acosh(x)?;
    let negative = ops::lt(&ops::real(&y)?, &Value::float(x.dtype().real(), 0.0))?;
    ops::select(&negative, &ops::neg(&y)?, &y)
}

unary!(
    /// Elementwise inverse hyperbolic cosine.
    arccosh, ARCCOSH, "arccosh", Inexact, |d| real_only(d, ops::ACOSH.op()), complex_acosh
);
unary!(
    /// Elementwise inverse hyperbolic cosine.
    acosh, ACOSH, "acosh", Inexact, |d| real_only(d, ops::ACOSH.op()), complex_acosh
);

/// A float constant that `f` combines with a real operand, or with both parts of a complex one.
fn on_parts(x: &Value, f: impl Fn(&Value) -> Result<Value>) -> Result<Value> {
    if !x.dtype().is_complex() {
        return f(x);
    }
    ops::complex(&f(&ops::real(x)?)?, &f(&ops::imag(x)?)?)
}

unary!(
    /// Elementwise logarithm to base 2.
    log2, LOG2, "log2", Inexact, |_| None,
    |x| on_parts(&ops::log(x)?, |y| ops::div(y, &ops::log(&constant(y, 2.0))?))
);
unary!(
    /// Elementwise logarithm to base 10.
    log10, LOG10, "log10", Inexact, |_| None,
    |x| on_parts(&ops::log(x)?, |y| ops::mul(y, &constant(y, std::f64::consts::LOG10_E)))
);
unary!(
    /// Elementwise 1/x.
    reciprocal, RECIPROCAL, "reciprocal", Inexact, |_| None, ops::reciprocal
);

/// Writes the rows of a product with a constant, under two names.
macro_rules! scaled {
    ($($fun:ident $NAME:ident $name:literal $by:expr, $doc:literal;)*) => {$(
        unary!(#[doc = $doc] $fun, $NAME, $name, Inexact, |_| None, |x| ops::mul(x, &constant(x, $by)));
    )*};
}
scaled! {
    deg2rad DEG2RAD "deg2rad" std::f64::consts::PI / 180.0, "Elementwise degrees to radians.";
    radians RADIANS "radians" std::f64::consts::PI / 180.0, "Elementwise degrees to radians.";
    rad2deg RAD2DEG "rad2deg" 180.0 / std::f64::consts::PI, "Elementwise radians to degrees.";
    degrees DEGREES "degrees" 180.0 / std::f64::consts::PI, "Elementwise radians to degrees.";
}

#[allow(clippy::unnecessary_wraps)]
fn same(x: &Value) -> Result<Value> {
    Ok(x.clone())
}

fn constant_array(x: &Value, s: Scalar) -> Result<Value> {
    ops::full(&ferrax_base::Aval::new(s.dtype, x.shape()), s)
}

unary!(
    /// Elementwise -x.
    negative, NEGATIVE, "negative", None, |_| Some(ops::NEG.op()), never1
);
unary!(
    /// The operand itself.
    positive, POSITIVE, "positive", None, |_| None, same
);

fn abs_op(d: DType) -> Option<OpRef> {
    (!d.is_bool() && !d.is_unsigned()).then(|| ops::ABS.op())
}

unary!(
    /// Elementwise absolute value.
    abs, ABS, "abs", None, abs_op, same
);
unary!(
    /// Elementwise absolute value.
    absolute, ABSOLUTE, "absolute", None, abs_op, same
);
unary!(
    /// Elementwise absolute value as a float.
    fabs, FABS, "fabs", Inexact, |d| real_only(d, ops::ABS.op()),
    |_| bail!(Type, "ufunc 'fabs' does not support complex dtypes")
);
unary!(
    /// Elementwise sign: -1, 0 or 1; x/|x| for complex numbers.
    sign, SIGN, "sign", None, |_| Some(ops::SIGN.op()), never1
);

fn fractional(d: DType, op: OpRef) -> Option<OpRef> {
    d.is_inexact().then_some(op)
}

unary!(
    /// Elementwise largest integer not above x.
    floor, FLOOR, "floor", None, |d| fractional(d, ops::FLOOR.op()), same
);
unary!(
    /// Elementwise smallest integer not below x.
    ceil, CEIL, "ceil", None, |d| fractional(d, ops::CEIL.op()), same
);

fn toward_zero(x: &Value) -> Result<Value> {
    if !x.dtype().is_inexact() {
        return same(x);
    }
    let negative = ops::lt(x, &constant(x, 0.0))?;
    ops::select(&negative, &ops::ceil(x)?, &ops::floor(x)?)
}

unary!(
    /// Elementwise rounding toward zero.
    trunc, TRUNC, "trunc", None, |_| None, toward_zero
);

fn to_nearest_even(x: &Value) -> Result<Value> {
    let d = x.dtype();
    if !d.is_inexact() {
        return ops::convert_weak(x, DType::F64.canonical(config::x64()), x.weak());
    }
    on_parts(x, |x| ops::round(x, ops::RoundingMethod::ToNearestEven))
}

unary!(
    /// Elementwise rounding to the nearest integer, halves to the even one; integers become the default float.
    rint, RINT, "rint", None, |_| None, to_nearest_even
);
unary!(
    /// Elementwise x*x.
    square, SQUARE, "square", Numeric, |_| Some(ops::SQUARE.op()), never1
);

fn conjugated(x: &Value) -> Result<Value> {
    if x.dtype().is_complex() { ops::conj(x) } else { same(x) }
}

unary!(
    /// Elementwise complex conjugate.
    conj, CONJ, "conj", None, |_| None, conjugated
);
unary!(
    /// Elementwise complex conjugate.
    conjugate, CONJUGATE, "conjugate", None, |_| None, conjugated
);

fn complex_only(d: DType, op: OpRef) -> Option<OpRef> {
    d.is_complex().then_some(op)
}

unary!(
    /// Elementwise real part.
    real, REAL, "real", None, |d| complex_only(d, ops::REAL.op()), same
);
unary!(
    /// Elementwise imaginary part; zeros for real operands.
    imag, IMAG, "imag", None, |d| complex_only(d, ops::IMAG.op()), |x| ops::zeros(&x.aval())
);
unary!(
    /// Elementwise test for NaN.
    isnan, ISNAN, "isnan", None, |_| None, |x| ops::ne(x, x)
);

fn infinity(x: &Value, v: f64) -> Value {
    Value::Lit(Lit { scalar: Scalar::from_f64(x.dtype(), v), weak: x.weak() })
}

fn infinite(x: &Value) -> Result<Value> {
    if x.dtype().is_complex() {
        return ops::bitwise_or(&infinite(&ops::real(x)?)?, &infinite(&ops::imag(x)?)?);
    }
    if !x.dtype().is_float() {
        return constant_array(x, Scalar::from_bool(false));
    }
    ops::eq(&ops::abs(x)?, &infinity(x, f64::INFINITY))
}

fn finite(x: &Value) -> Result<Value> {
    if x.dtype().is_complex() {
        return ops::bitwise_and(&ops::is_finite(&ops::real(x)?)?, &ops::is_finite(&ops::imag(x)?)?);
    }
    constant_array(x, Scalar::from_bool(true))
}

fn signed_infinity(x: &Value, v: f64) -> Result<Value> {
    if x.dtype().is_complex() {
        bail!(Value, "isposinf/isneginf are not well defined for complex types");
    }
    if !x.dtype().is_float() {
        return constant_array(x, Scalar::from_bool(false));
    }
    ops::eq(x, &infinity(x, v))
}

unary!(
    /// Elementwise test for infinities.
    isinf, ISINF, "isinf", None, |_| None, infinite
);
unary!(
    /// Elementwise test for numbers that are neither infinite nor NaN.
    isfinite, ISFINITE, "isfinite", None, |d| d.is_float().then(|| ops::IS_FINITE.op()), finite
);
unary!(
    /// Elementwise test for positive infinity.
    isposinf, ISPOSINF, "isposinf", None, |_| None, |x| signed_infinity(x, f64::INFINITY)
);
unary!(
    /// Elementwise test for negative infinity.
    isneginf, ISNEGINF, "isneginf", None, |_| None, |x| signed_infinity(x, f64::NEG_INFINITY)
);

/// The integer dtype of a float's bits.
fn bits_dtype(d: DType) -> DType {
    match d.size() {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

fn sign_bit(x: &Value) -> Result<Value> {
    let d = x.dtype();
    if d.is_complex() {
        bail!(Value, "jax.numpy.signbit is not well defined for {d}");
    }
    if d.is_unsigned() || d.is_bool() {
        return constant_array(x, Scalar::from_bool(false));
    }
    if d.is_signed() {
        return ops::lt(x, &constant(x, 0.0));
    }
    let bits = ops::bitcast_convert_type(x, bits_dtype(d))?;
    let shift = constant(&bits, (d.size() * 8 - 1) as f64);
    ops::convert_element_type(&ops::shift_right_arithmetic(&bits, &shift)?, DType::Bool)
}

unary!(
    /// Elementwise test of the sign bit.
    signbit, SIGNBIT, "signbit", None, |_| None, sign_bit
);

/// Whether elements are nonzero, as `bool`.
pub fn to_bool(x: &Value) -> Result<Value> {
    if x.dtype().is_bool() { same(x) } else { ops::ne(x, &constant(x, 0.0)) }
}

unary!(
    /// Elementwise truth of `not x`.
    logical_not, LOGICAL_NOT, "logical_not", None, |d| d.is_bool().then(|| ops::NOT.op()),
    |x| ops::bitwise_not(&to_bool(x)?)
);

/// Writes the rows of one primitive under several names.
macro_rules! inversions {
    ($($fun:ident $NAME:ident $name:literal;)*) => {$(
        unary!(
            /// Elementwise bits of x flipped; logical not for `bool`.
            $fun, $NAME, $name, None, |_| Some(ops::NOT.op()), never1
        );
    )*};
}
inversions! {
    bitwise_not BITWISE_NOT "bitwise_not";
    bitwise_invert BITWISE_INVERT "bitwise_invert";
    invert INVERT "invert";
}

fn count_bits(x: &Value) -> Result<Value> {
    ops::convert_element_type(&ops::population_count(&abs(x)?)?, DType::U8)
}

unary!(
    /// Elementwise number of one bits of |x|, as `uint8`.
    bitwise_count, BITWISE_COUNT, "bitwise_count", Numeric, |_| None, count_bits
);
unary!(
    /// Elementwise test for a nonzero imaginary part.
    iscomplex, ISCOMPLEX, "iscomplex", None, |_| None, |x| { let im = imag(x)?; ops::ne(&im, &constant(&im, 0.0)) }
);
unary!(
    /// Elementwise test for a zero imaginary part.
    isreal, ISREAL, "isreal", None, |_| None, |x| { let im = imag(x)?; ops::eq(&im, &constant(&im, 0.0)) }
);

/// Every function of this file.
pub static ALL_UNARY: &[&Unary] = &[
    &EXP,
    &EXP2,
    &EXPM1,
    &LOG,
    &LOG1P,
    &SQRT,
    &CBRT,
    &SIN,
    &COS,
    &TAN,
    &ARCSIN,
    &ARCCOS,
    &ARCTAN,
    &ASIN,
    &ACOS,
    &ATAN,
    &SINH,
    &COSH,
    &TANH,
    &ARCSINH,
    &ARCTANH,
    &ASINH,
    &ATANH,
    &ARCCOSH,
    &ACOSH,
    &LOG2,
    &LOG10,
    &RECIPROCAL,
    &DEG2RAD,
    &RADIANS,
    &RAD2DEG,
    &DEGREES,
    &NEGATIVE,
    &POSITIVE,
    &ABS,
    &ABSOLUTE,
    &FABS,
    &SIGN,
    &FLOOR,
    &CEIL,
    &TRUNC,
    &RINT,
    &SQUARE,
    &CONJ,
    &CONJUGATE,
    &REAL,
    &IMAG,
    &ISNAN,
    &ISINF,
    &ISFINITE,
    &ISPOSINF,
    &ISNEGINF,
    &SIGNBIT,
    &LOGICAL_NOT,
    &BITWISE_NOT,
    &BITWISE_INVERT,
    &INVERT,
    &BITWISE_COUNT,
    &ISCOMPLEX,
    &ISREAL,
];
