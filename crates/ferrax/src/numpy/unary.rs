//! Functions of one operand, but for those of `primitives.rs`.

use super::{Unary, never1, promote, unary, unary_aliases};
use ferrax_base::{DType, Result, Scalar, bail, config};
use ferrax_ir::{Lit, OpRef, Value};
use ferrax_ops as ops;
use ferrax_ops::common::constant;

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
    arccosh,
    ARCCOSH,
    "arccosh",
    ["Inverse hyperbolic cosine.", "floating or complex", "{f}(jnp.array([1.]))", "[0.]"],
    Inexact,
    |d| real_only(d, ops::ACOSH.op()),
    complex_acosh
);

/// A result that is not weakly typed, whatever the operand.
pub(super) fn strong(x: &Value) -> Result<Value> {
    if x.weak() { ops::convert_weak(x, x.dtype(), false) } else { same(x) }
}

/// A float constant that `f` combines with a real operand, or with both parts of a complex one.
fn on_parts(x: &Value, f: impl Fn(&Value) -> Result<Value>) -> Result<Value> {
    if !x.dtype().is_complex() {
        return f(x);
    }
    ops::complex(&f(&ops::real(x)?)?, &f(&ops::imag(x)?)?)
}

unary!(
    log2,
    LOG2,
    "log2",
    ["Logarithm to base 2.", "floating or complex", "{f}(jnp.array([1., 8.]))", "[0. 3.]"],
    Inexact,
    |_| None,
    |x| strong(&on_parts(&ops::log(x)?, |y| ops::div(y, &ops::log(&constant(y, 2.0))?))?)
);
unary!(
    log10,
    LOG10,
    "log10",
    ["Logarithm to base 10.", "floating or complex", "{f}(jnp.array([1., 10.]))", "[0. 1.]"],
    Inexact,
    |_| None,
    |x| strong(&on_parts(&ops::log(x)?, |y| ops::mul(y, &constant(y, std::f64::consts::LOG10_E)))?)
);
unary!(
    reciprocal,
    RECIPROCAL,
    "reciprocal",
    ["1 / x.", "floating or complex", "{f}(jnp.array([2., 4.]))", "[0.5  0.25]"],
    Inexact,
    |_| None,
    ops::reciprocal
);

/// Writes the rows of a product with a constant, under two names.
macro_rules! scaled {
    ($($fun:ident $NAME:ident $name:literal $by:expr, $words:tt;)*) => {$(
        unary!($fun, $NAME, $name, $words, Inexact, |_| None, |x| ops::mul(x, &constant(x, $by)));
    )*};
}
scaled! {
    deg2rad DEG2RAD "deg2rad" std::f64::consts::PI / 180.0,
        ["Degrees to radians.", "floating", "{f}(jnp.array([0.]))", "[0.]"];
    rad2deg RAD2DEG "rad2deg" 180.0 / std::f64::consts::PI,
        ["Radians to degrees.", "floating", "{f}(jnp.array([0.]))", "[0.]"];
}

#[allow(clippy::unnecessary_wraps)]
fn same(x: &Value) -> Result<Value> {
    Ok(x.clone())
}

fn constant_array(x: &Value, s: Scalar) -> Result<Value> {
    ops::full(&ferrax_base::Aval::new(s.dtype, x.shape()), s)
}

unary!(
    negative,
    NEGATIVE,
    "negative",
    ["-x.", "of the dtype of x", "{f}(jnp.array([1, -2]))", "[-1  2]"],
    None,
    |_| Some(ops::NEG.op()),
    never1
);
unary!(
    positive,
    POSITIVE,
    "positive",
    ["x itself.", "of the dtype of x", "{f}(jnp.array([1, -2]))", "[ 1 -2]"],
    None,
    |_| None,
    same
);

fn abs_op(d: DType) -> Option<OpRef> {
    (!d.is_bool() && !d.is_unsigned()).then(|| ops::ABS.op())
}

unary!(
    absolute,
    ABSOLUTE,
    "absolute",
    ["Absolute value.", "of the real dtype of x", "{f}(jnp.array([1, -2]))", "[1 2]"],
    None,
    abs_op,
    same
);
unary!(
    fabs,
    FABS,
    "fabs",
    ["Absolute value as a float.", "floating", "{f}(jnp.array([1, -2]))", "[1. 2.]"],
    Inexact,
    |d| real_only(d, ops::ABS.op()),
    |_| bail!(Type, "ufunc 'fabs' does not support complex dtypes")
);
unary!(
    sign,
    SIGN,
    "sign",
    ["Sign: -1, 0 or 1; x / |x| for complex numbers.", "of the dtype of x", "{f}(jnp.array([-5, 0]))", "[-1  0]"],
    None,
    |_| Some(ops::SIGN.op()),
    never1
);

/// An operand without a fraction, as it is.
fn whole_number(name: &str, x: &Value) -> Result<Value> {
    promote::number(name, x)?;
    same(x)
}

fn fractional(d: DType, op: OpRef) -> Option<OpRef> {
    d.is_inexact().then_some(op)
}

unary!(
    floor,
    FLOOR,
    "floor",
    ["Largest integer not above x.", "of the dtype of x", "{f}(jnp.array([1.5, -1.5]))", "[ 1. -2.]"],
    None,
    |d| fractional(d, ops::FLOOR.op()),
    |x| whole_number("floor", x)
);
unary!(
    ceil,
    CEIL,
    "ceil",
    ["Smallest integer not below x.", "of the dtype of x", "{f}(jnp.array([1.5, -1.5]))", "[ 2. -1.]"],
    None,
    |d| fractional(d, ops::CEIL.op()),
    |x| whole_number("ceil", x)
);

fn toward_zero(x: &Value) -> Result<Value> {
    if !x.dtype().is_inexact() {
        return whole_number("trunc", x);
    }
    let negative = ops::lt(x, &constant(x, 0.0))?;
    ops::select(&negative, &ops::ceil(x)?, &ops::floor(x)?)
}

unary!(
    trunc,
    TRUNC,
    "trunc",
    ["x rounded toward zero.", "of the dtype of x", "{f}(jnp.array([1.5, -1.5]))", "[ 1. -1.]"],
    None,
    |_| None,
    toward_zero
);

fn to_nearest_even(x: &Value) -> Result<Value> {
    let d = x.dtype();
    if !d.is_inexact() {
        return ops::convert_weak(x, DType::F64.canonical(config::x64()), false);
    }
    on_parts(x, |x| ops::round(x, ops::RoundingMethod::ToNearestEven))
}

unary!(
    rint,
    RINT,
    "rint",
    [
        "x rounded to the nearest integer, halves to the even one.",
        "floating or complex",
        "{f}(jnp.array([0.5, 1.5]))",
        "[0. 2.]"
    ],
    None,
    |_| None,
    to_nearest_even
);
unary!(
    square,
    SQUARE,
    "square",
    ["x * x.", "of the dtype of x", "{f}(jnp.array([2, 3]))", "[4 9]"],
    Numeric,
    |_| Some(ops::SQUARE.op()),
    never1
);

fn conjugated(x: &Value) -> Result<Value> {
    if x.dtype().is_complex() { ops::conj(x) } else { same(x) }
}

unary!(
    conjugate,
    CONJUGATE,
    "conjugate",
    ["Complex conjugate.", "of the dtype of x", "{f}(jnp.array([1 + 2j]))", "[1.-2.j]"],
    None,
    |_| None,
    conjugated
);

fn complex_only(d: DType, op: OpRef) -> Option<OpRef> {
    d.is_complex().then_some(op)
}

unary!(
    real,
    REAL,
    "real",
    ["Real part.", "of the real dtype of x", "{f}(jnp.array([1 + 2j]))", "[1.]"],
    None,
    |d| complex_only(d, ops::REAL.op()),
    same
);
unary!(
    imag,
    IMAG,
    "imag",
    ["Imaginary part; zeros for real x.", "of the real dtype of x", "{f}(jnp.array([1 + 2j]))", "[2.]"],
    None,
    |d| complex_only(d, ops::IMAG.op()),
    |x| ops::zeros(&x.aval())
);
unary!(
    isnan,
    ISNAN,
    "isnan",
    ["Test for NaN.", "bool", "{f}(jnp.array([1., jnp.nan]))", "[False  True]"],
    None,
    |_| None,
    |x| ops::ne(x, x)
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
    strong(&ops::eq(&ops::abs(x)?, &infinity(x, f64::INFINITY))?)
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
    strong(&ops::eq(x, &infinity(x, v))?)
}

unary!(
    isinf,
    ISINF,
    "isinf",
    ["Test for infinities.", "bool", "{f}(jnp.array([1., -jnp.inf]))", "[False  True]"],
    None,
    |_| None,
    infinite
);
unary!(
    isfinite,
    ISFINITE,
    "isfinite",
    ["Test for numbers that are neither infinite nor NaN.", "bool", "{f}(jnp.array([1., jnp.inf]))", "[ True False]"],
    None,
    |d| d.is_float().then(|| ops::IS_FINITE.op()),
    finite
);
unary!(
    isposinf,
    ISPOSINF,
    "isposinf",
    ["Test for positive infinity.", "bool", "{f}(jnp.array([-jnp.inf, jnp.inf]))", "[False  True]"],
    None,
    |_| None,
    |x| signed_infinity(x, f64::INFINITY)
);
unary!(
    isneginf,
    ISNEGINF,
    "isneginf",
    ["Test for negative infinity.", "bool", "{f}(jnp.array([-jnp.inf, jnp.inf]))", "[ True False]"],
    None,
    |_| None,
    |x| signed_infinity(x, f64::NEG_INFINITY)
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
        return strong(&ops::lt(x, &constant(x, 0.0))?);
    }
    let bits = ops::bitcast_convert_type(x, bits_dtype(d))?;
    let shift = constant(&bits, (d.size() * 8 - 1) as f64);
    ops::convert_element_type(&ops::shift_right_arithmetic(&bits, &shift)?, DType::Bool)
}

unary!(
    signbit,
    SIGNBIT,
    "signbit",
    ["Test of the sign bit.", "bool", "{f}(jnp.array([-0., 0.]))", "[ True False]"],
    None,
    |_| None,
    sign_bit
);

/// Whether elements are nonzero, as `bool`, for the function of a name.
pub fn to_bool(name: &str, x: &Value) -> Result<Value> {
    promote::number(name, x)?;
    if x.dtype().is_bool() { same(x) } else { ops::ne(x, &constant(x, 0.0)) }
}

unary!(
    logical_not,
    LOGICAL_NOT,
    "logical_not",
    ["Truth of `not x`.", "bool", "{f}(jnp.array([0, 3]))", "[ True False]"],
    None,
    |d| d.is_bool().then(|| ops::NOT.op()),
    |x| ops::bitwise_not(&to_bool("logical_not", x)?)
);

unary!(
    bitwise_not,
    BITWISE_NOT,
    "bitwise_not",
    ["Every bit flipped; logical not for bool.", "of the dtype of x", "{f}(jnp.array([0, 1]))", "[-1 -2]"],
    None,
    |_| Some(ops::NOT.op()),
    never1
);

fn count_bits(x: &Value) -> Result<Value> {
    ops::convert_element_type(&ops::population_count(&abs(x)?)?, DType::U8)
}

unary!(
    bitwise_count,
    BITWISE_COUNT,
    "bitwise_count",
    ["Number of one bits of |x|.", "uint8", "{f}(jnp.array([3, 8]))", "[2 1]"],
    Numeric,
    |_| None,
    count_bits
);
unary!(
    iscomplex,
    ISCOMPLEX,
    "iscomplex",
    ["Test for a nonzero imaginary part.", "bool", "{f}(jnp.array([1j, 1]))", "[ True False]"],
    None,
    |_| None,
    |x| {
        promote::number("iscomplex", x)?;
        let im = imag(x)?;
        ops::ne(&im, &constant(&im, 0.0))
    }
);
unary!(
    isreal,
    ISREAL,
    "isreal",
    ["Test for a zero imaginary part.", "bool", "{f}(jnp.array([1j, 1]))", "[False  True]"],
    None,
    |_| None,
    |x| {
        promote::number("isreal", x)?;
        let im = imag(x)?;
        ops::eq(&im, &constant(&im, 0.0))
    }
);

unary_aliases! {
    acosh ACOSH "acosh" of ARCCOSH;
    abs ABS "abs" of ABSOLUTE;
    conj CONJ "conj" of CONJUGATE;
    radians RADIANS "radians" of DEG2RAD;
    degrees DEGREES "degrees" of RAD2DEG;
    bitwise_invert BITWISE_INVERT "bitwise_invert" of BITWISE_NOT;
    invert INVERT "invert" of BITWISE_NOT;
}

/// Every function of this file.
pub static ALL_UNARY: &[&Unary] = &[
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
