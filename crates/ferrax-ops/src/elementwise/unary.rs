//! Elementwise functions of one operand.
//!
//! `unary!` writes the block of a parameterless primitive: the slots that differ are its arguments, in the
//! order of a block. Derivatives are JAX's formulas, term by term, so that programs print alike.
//!
//! Read next: `binary.rs`.

use crate::common::{
    Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, constant, full_like, unary_aval, unary_batch, unary_jvp, unary_shape,
    zero_jvp,
};
use crate::elementwise::binary::{add, complex_square, div, mul, sub};
use crate::elementwise::compare::{eq, ge};
use crate::elementwise::convert::convert_element_type;
use crate::elementwise::functions::{BITS, Call::One, FLOATING, Function, INEXACT, INTEGER, NUMBER};
use crate::elementwise::select::select;
use crate::numbers::{Complex, Unary, complex as z};
use crate::registry::Primitive;
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_ir::op::Rewriter;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Atom, Def, OpRef, Slot, Special, Value};
use ferrax_loops::{BinaryOp, Kind, UnaryOp};
use smallvec::{SmallVec, smallvec};

/// Writes the block of a unary primitive that keeps the dtype, and the function that binds it.
macro_rules! unary {
    (
        $NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal,
        jvp: $jvp:expr, transpose: $transpose:expr, simplify: $simplify:expr, reference: $reference:expr $(,)?
    ) => {
        $crate::elementwise::unary::unary!(
            $NAME, $fun, $name, $accept, $kernel, $doc,
            jvp: $jvp, transpose: $transpose, simplify: $simplify, reference: $reference, special: ELEMENTWISE
        );
    };
    (
        $NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal,
        jvp: $jvp:expr, transpose: $transpose:expr, simplify: $simplify:expr, reference: $reference:expr, special: $special:ident $(,)?
    ) => {
        #[doc = $doc]
        pub static $NAME: ferrax_ir::Def<()> = ferrax_ir::Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |(), args| $crate::common::unary_shape($name, $crate::common::Accept::$accept, args),
            jvp: $jvp,
            transpose: $transpose,
            batch: ferrax_ir::Slot::Rule($crate::common::unary_batch),
            simplify: $simplify,
            stablehlo: ferrax_ir::Slot::None($crate::common::FROM_KERNEL),
            kernel: ferrax_ir::Slot::Rule(|_, (), b, args, _| {
                Ok(smallvec::smallvec![b.unary(ferrax_loops::UnaryOp::$kernel, args[0])])
            }),
            reference: ferrax_ir::Slot::Rule(|(), args, outs| {
                const F: $crate::numbers::Unary = $reference;
                F.map(args, &outs[0])
            }),
            special: ferrax_ir::Special::$special,
        };

        #[doc = $doc]
        pub fn $fun(x: &ferrax_ir::Value) -> ferrax_base::Result<ferrax_ir::Value> {
            ferrax_ir::trace::bind1(&$NAME.op(), std::slice::from_ref(x))
        }
    };
}
pub(crate) use unary;

/// A jvp slot from (tangent, result, operand) → tangent of the result.
macro_rules! derivative {
    ($f:expr) => {
        ferrax_ir::Slot::Rule(|op, (), primals, tangents| $crate::common::unary_jvp(op, primals, tangents, $f))
    };
}
pub(crate) use derivative;

/// A transcendental function, on reals and on complex numbers.
macro_rules! inexact {
    ($real:expr, $complex:expr) => {
        $crate::numbers::Unary { real: $real, complex: $complex, ..$crate::numbers::Unary::NONE }
    };
}

/// A function of reals.
macro_rules! reals {
    ($real:expr) => {
        $crate::numbers::Unary { real: $real, ..$crate::numbers::Unary::NONE }
    };
}
pub(crate) use reals;

type Simplified = Result<Option<SmallVec<[Atom; 1]>>>;

/// f(f(x)) = x.
fn involution<P>(op: &OpRef, _: &P, cx: &mut dyn Rewriter, inputs: &[Atom]) -> Simplified {
    Ok(cx.producer(&inputs[0]).filter(|(inner, _)| inner == op).map(|(_, args)| smallvec![args[0]]))
}

/// f(f(x)) = f(x).
fn idempotent<P>(op: &OpRef, _: &P, cx: &mut dyn Rewriter, inputs: &[Atom]) -> Simplified {
    Ok(cx.producer(&inputs[0]).filter(|(inner, _)| inner == op).map(|_| smallvec![inputs[0]]))
}

// ---- sign and rounding ---------------------------------------------------------------------------------------------

unary!(
    NEG, neg, "neg", NUMBER, Neg, "Negation, -x.",
    jvp: Slot::Rule(ferrax_transform::structural::linear_jvp),
    transpose: Slot::Rule(|_, (), cts, _| Ok(smallvec![cts[0].as_ref().map(neg).transpose()?])),
    simplify: Slot::Rule(involution),
    reference: Unary { int: |x| -x, real: |x| -x, complex: |x| -x },
);

unary!(
    SIGN, sign, "sign", NUMBER, Sign, "Sign: -1, 0 or 1; x/|x| for complex numbers.",
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    // Complex signs have rounded parts: the sign of a sign is another number.
    simplify: Slot::Rule(|op, p, cx, inputs| {
        if cx.aval(&inputs[0]).dtype.is_complex() { Ok(None) } else { idempotent(op, p, cx, inputs) }
    }),
    reference: Unary {
        int: i128::signum,
        real: |x| if x == 0.0 || x.is_nan() { x } else { x.signum() },
        complex: Complex::sign,
    },
);

unary!(
    FLOOR, floor, "floor", FLOAT, Floor, "Largest integer not above x.",
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::Rule(idempotent),
    reference: reals!(f64::floor),
);

unary!(
    CEIL, ceil, "ceil", FLOAT, Ceil, "Smallest integer not below x.",
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::Rule(idempotent),
    reference: reals!(f64::ceil),
);

ferrax_ir::params! {
    /// Parameters of `round`.
    pub struct Round {
        /// 0: ties away from zero; 1: ties to even.
        rounding_method: u32,
    }
}

/// How [`round`] treats ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundingMethod {
    /// 0.5 → 1, -0.5 → -1.
    AwayFromZero,
    /// 0.5 → 0, 1.5 → 2.
    ToNearestEven,
}

/// Rounds to integers.
pub static ROUND: Def<Round> = Def {
    name: "round",
    doc: "Elementwise rounding to the nearest integer.",
    arity: Some(1),
    shape: |_, args| unary_shape("round", Accept::FLOAT, args),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::Rule(idempotent),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| {
        let op = if p.rounding_method == 0 { UnaryOp::RoundAway } else { UnaryOp::RoundEven };
        Ok(smallvec![b.unary(op, args[0])])
    }),
    reference: Slot::Rule(|p, args, outs| {
        const AWAY: Unary = reals!(f64::round);
        const EVEN: Unary = reals!(f64::round_ties_even);
        if p.rounding_method == 0 { AWAY.map(args, &outs[0]) } else { EVEN.map(args, &outs[0]) }
    }),
    special: Special::NONE,
};

/// Elementwise rounding to the nearest integer.
pub fn round(x: &Value, method: RoundingMethod) -> Result<Value> {
    let params = Round { rounding_method: method as u32 };
    bind1(&OpRef::new(&ROUND, params), std::slice::from_ref(x))
}

/// Tells finite numbers.
pub static IS_FINITE: Def<()> = Def {
    name: "is_finite",
    doc: "Test for numbers that are neither infinite nor NaN.",
    arity: Some(1),
    shape: |(), args| Ok(smallvec![unary_aval("is_finite", Accept::FLOAT, args)?.with_dtype(DType::Bool)]),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, _| Ok(smallvec![b.unary(UnaryOp::IsFinite, args[0])])),
    reference: Slot::Rule(|(), args, outs| {
        Ok(vec![RefTensor::map(&outs[0], args, |r| Scalar::from_bool(r[0].to_f64().is_finite()))])
    }),
    special: Special::NONE,
};

/// Test for numbers that are neither infinite nor NaN.
pub fn is_finite(x: &Value) -> Result<Value> {
    bind1(&IS_FINITE.op(), std::slice::from_ref(x))
}

// ---- exponentials and logarithms -----------------------------------------------------------------------------------

unary!(
    EXP, exp, "exp", INEXACT, Exp, "Exponential function.",
    jvp: derivative!(|g, y, _| mul(g, y)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::exp, Complex::exp),
);

unary!(
    EXP2, exp2, "exp2", INEXACT, Exp2, "Power of two, 2**x.",
    jvp: derivative!(|g, y, x| mul(&constant(x, std::f64::consts::LN_2), &mul(g, y)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::exp2, |x| x.scale(std::f64::consts::LN_2).exp()),
);

unary!(
    LOG, log, "log", INEXACT, Log, "Natural logarithm.",
    jvp: derivative!(|g, _, x| div(g, x)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::Rule(log_simplify),
    reference: inexact!(f64::ln, Complex::log),
    special: EDGE,
);

/// log(exp x) = x and log(sqrt x) = log(x)/2 for reals; both change bits, so `strict` leaves them out.
fn log_simplify(_: &OpRef, (): &(), cx: &mut dyn Rewriter, inputs: &[Atom]) -> Simplified {
    let aval = cx.aval(&inputs[0]);
    if cx.strict() || !aval.dtype.is_float() {
        return Ok(None);
    }
    let Some((inner, args)) = cx.producer(&inputs[0]) else { return Ok(None) };
    if inner.is(&EXP) {
        return Ok(Some(smallvec![args[0]]));
    }
    if inner.is(&SQRT) {
        let half = Atom::Lit(ferrax_ir::Lit { scalar: Scalar::from_f64(aval.dtype, 0.5), weak: aval.weak });
        let log = cx.emit(LOG.op(), &args)?;
        return Ok(Some(smallvec![cx.emit(crate::elementwise::binary::MUL.op(), &[half, log])?]));
    }
    Ok(None)
}

unary!(
    EXPM1, expm1, "expm1", INEXACT, Expm1, "exp(x) - 1, accurate near zero.",
    jvp: derivative!(|g, y, _| mul(g, &add(y, &constant(y, 1.0))?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::exp_m1, |x| {
        let half = (x.im / 2.0).sin();
        z(x.re.exp_m1() * x.im.cos() - 2.0 * half * half, x.re.exp() * x.im.sin())
    }),
);

unary!(
    LOG1P, log1p, "log1p", INEXACT, Log1p, "log(1 + x), accurate near zero.",
    jvp: derivative!(|g, _, x| div(g, &add(x, &constant(x, 1.0))?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::ln_1p, |x| {
        z(0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p(), x.im.atan2(1.0 + x.re))
    }),
    special: EDGE,
);

unary!(
    TANH, tanh, "tanh", INEXACT, Tanh, "Hyperbolic tangent.",
    jvp: derivative!(|g, y, x| mul(&add(g, &mul(g, y)?)?, &sub(&constant(x, 1.0), y)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::tanh, Complex::tanh),
);

unary!(
    LOGISTIC, logistic, "logistic", INEXACT, Logistic, "Sigmoid, 1 / (1 + exp(-x)).",
    jvp: derivative!(|g, y, _| mul(g, &mul(y, &sub(&constant(y, 1.0), y)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(|x| 1.0 / (1.0 + (-x).exp()), |x| z(1.0, 0.0) / (z(1.0, 0.0) + (-x).exp())),
);

// ---- trigonometric and hyperbolic functions ------------------------------------------------------------------------

unary!(
    SIN, sin, "sin", INEXACT, Sin, "Sine of an angle in radians.",
    jvp: derivative!(|g, _, x| mul(g, &cos(x)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::sin, Complex::sin),
);

unary!(
    COS, cos, "cos", INEXACT, Cos, "Cosine of an angle in radians.",
    jvp: derivative!(|g, _, x| neg(&mul(g, &sin(x)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::cos, Complex::cos),
);

unary!(
    TAN, tan, "tan", INEXACT, Tan, "Tangent of an angle in radians.",
    jvp: derivative!(|g, y, x| mul(g, &add(&constant(x, 1.0), &square(y)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::tan, Complex::tan),
);

/// 1 - x².
fn one_minus_square(x: &Value) -> Result<Value> {
    sub(&constant(x, 1.0), &square(x)?)
}

unary!(
    ASIN, asin, "asin", INEXACT, Asin, "Arc sine, in radians.",
    jvp: derivative!(|g, _, x| mul(g, &rsqrt(&one_minus_square(x)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::asin, Complex::asin),
    special: EDGE,
);

unary!(
    ACOS, acos, "acos", INEXACT, Acos, "Arc cosine, in radians.",
    jvp: derivative!(|g, _, x| mul(g, &neg(&rsqrt(&one_minus_square(x)?)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::acos, Complex::acos),
    special: EDGE,
);

unary!(
    ATAN, atan, "atan", INEXACT, Atan, "Arc tangent, in radians.",
    jvp: derivative!(|g, _, x| div(g, &add(&constant(x, 1.0), &square(x)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::atan, Complex::atan),
);

unary!(
    SINH, sinh, "sinh", INEXACT, Sinh, "Hyperbolic sine.",
    jvp: derivative!(|g, _, x| mul(g, &cosh(x)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::sinh, Complex::sinh),
);

unary!(
    COSH, cosh, "cosh", INEXACT, Cosh, "Hyperbolic cosine.",
    jvp: derivative!(|g, _, x| mul(g, &sinh(x)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::cosh, Complex::cosh),
);

unary!(
    ASINH, asinh, "asinh", INEXACT, Asinh, "Inverse hyperbolic sine.",
    jvp: derivative!(|g, _, x| mul(g, &rsqrt(&add(&square(x)?, &constant(x, 1.0))?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::asinh, Complex::asinh),
);

unary!(
    ACOSH, acosh, "acosh", INEXACT, Acosh, "Inverse hyperbolic cosine.",
    jvp: derivative!(|g, _, x| mul(g, &rsqrt(&sub(&square(x)?, &constant(x, 1.0))?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::acosh, Complex::acosh),
    special: EDGE,
);

unary!(
    ATANH, atanh, "atanh", INEXACT, Atanh, "Inverse hyperbolic tangent.",
    jvp: derivative!(|g, _, x| {
        let one = constant(x, 1.0);
        mul(&reciprocal(&add(&one, x)?)?, &div(g, &sub(&one, x)?)?)
    }),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::atanh, Complex::atanh),
    special: EDGE,
);

// ---- roots and powers ----------------------------------------------------------------------------------------------

unary!(
    SQRT, sqrt, "sqrt", INEXACT, Sqrt, "Square root.",
    jvp: derivative!(|g, y, x| mul(g, &div(&constant(x, 0.5), y)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(f64::sqrt, Complex::sqrt),
    special: EDGE,
);

unary!(
    RSQRT, rsqrt, "rsqrt", INEXACT, Rsqrt, "Reciprocal square root, 1 / sqrt(x).",
    jvp: derivative!(|g, y, x| mul(g, &mul(&constant(x, -0.5), &div(y, x)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: inexact!(|x| 1.0 / x.sqrt(), |x| z(1.0, 0.0) / x.sqrt()),
    special: EDGE,
);

unary!(
    CBRT, cbrt, "cbrt", FLOAT, Cbrt, "Cube root.",
    jvp: derivative!(|g, y, x| mul(g, &mul(&constant(x, 1.0 / 3.0), &integer_pow(y, -2)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(f64::cbrt),
    special: EDGE,
);

/// x * x.
pub static SQUARE: Def<()> = Def {
    name: "square",
    doc: "Square, x * x.",
    arity: Some(1),
    shape: |(), args| unary_shape("square", Accept::NUMBER, args),
    jvp: derivative!(|g, _, x| mul(g, &mul(&constant(x, 2.0), x)?)),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, _| {
        let x = args[0];
        let complex = b.ty(x).dtype.is_complex();
        Ok(smallvec![if complex { complex_square(b, x) } else { b.binary(BinaryOp::Mul, x, x) }])
    }),
    reference: Slot::Rule(|(), args, outs| {
        const F: Unary = Unary {
            int: |x| x.wrapping_mul(x),
            real: |x| x * x,
            complex: |x| z((x.re - x.im) * (x.re + x.im), 2.0 * (x.re * x.im)),
        };
        F.map(args, &outs[0])
    }),
    special: Special::NONE,
};

/// Square, x * x.
pub fn square(x: &Value) -> Result<Value> {
    bind1(&SQUARE.op(), std::slice::from_ref(x))
}

ferrax_ir::params! {
    /// Parameters of `integer_pow`.
    pub struct IntegerPow {
        /// The exponent.
        y: i32,
    }
}

/// x to a fixed integer power.
pub static INTEGER_POW: Def<IntegerPow> = Def {
    name: "integer_pow",
    doc: "Elementwise power with a fixed integer exponent.",
    arity: Some(1),
    shape: |p, args| {
        let out = unary_shape("integer_pow", Accept::NUMBER, args)?;
        if p.y < 0 && out[0].dtype.is_integer() {
            bail!(
                Type,
                "Integers cannot be raised to negative powers, got integer_pow({}, {})",
                args[0].long_text(),
                p.y
            );
        }
        Ok(out)
    },
    jvp: Slot::Rule(|op, p, primals, tangents| {
        unary_jvp(op, primals, tangents, |g, _, x| match p.y {
            0 => crate::common::zeros_like(g),
            1 => Ok(g.clone()),
            2 => mul(g, &mul(&constant(x, 2.0), x)?),
            y => mul(g, &mul(&constant(x, f64::from(y)), &integer_pow(x, y - 1)?)?),
        })
    }),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::Rule(|_, p, _, inputs| Ok((p.y == 1).then(|| smallvec![inputs[0]]))),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, outs| Ok(smallvec![b.push(Kind::IntegerPow(p.y), args, (&outs[0]).into())])),
    reference: Slot::Rule(integer_pow_reference),
    special: Special::NONE,
};

fn integer_pow_reference(p: &IntegerPow, args: &[RefTensor], outs: &[ferrax_base::Aval]) -> Result<Vec<RefTensor>> {
    let n = p.y.unsigned_abs();
    let f = |row: &[Scalar]| {
        let x = row[0];
        if x.dtype.is_integer() {
            let y = (0..n).fold(1i64, |acc, _| acc.wrapping_mul(x.to_i64()));
            return Scalar::from_i64(x.dtype, y);
        }
        if x.dtype.is_float() {
            let y = (0..n).fold(1.0, |acc, _| acc * x.to_f64());
            return Scalar::from_f64(x.dtype, if p.y < 0 { 1.0 / y } else { y });
        }
        let y = (0..n).fold(z(1.0, 0.0), |acc, _| acc * crate::numbers::to_complex(x));
        let y = if p.y < 0 { z(1.0, 0.0) / y } else { y };
        Scalar::from_complex(x.dtype, y.re, y.im)
    };
    Ok(vec![RefTensor::map(&outs[0], args, f)])
}

/// Elementwise power with a fixed integer exponent.
pub fn integer_pow(x: &Value, y: i32) -> Result<Value> {
    bind1(&OpRef::new(&INTEGER_POW, IntegerPow { y }), std::slice::from_ref(x))
}

/// Elementwise 1/x, as `integer_pow` with exponent -1.
pub fn reciprocal(x: &Value) -> Result<Value> {
    integer_pow(x, -1)
}

// ---- complex numbers -----------------------------------------------------------------------------------------------

/// Absolute value.
pub static ABS: Def<()> = Def {
    name: "abs",
    doc: "Absolute value; real for complex numbers.",
    arity: Some(1),
    shape: |(), args| {
        let out = unary_aval("abs", Accept::INEXACT.or(Accept::SIGNED), args)?;
        if out.dtype.is_integer() && out.dtype.bits() < 8 {
            bail!(
                Type,
                "abs does not accept dtype {}. Support for narrow-width integers is limited to a few operations, as \
                 arithmetic and conversions.",
                out.dtype
            );
        }
        let dtype = out.dtype.real();
        Ok(smallvec![out.with_dtype(dtype)])
    },
    jvp: derivative!(|g, y, x| {
        if x.dtype().is_complex() {
            let y = convert_element_type(y, x.dtype())?;
            let safe = replace_zero(&y)?;
            return real(&mul(g, &div(&conj(x)?, &safe)?)?);
        }
        select(&ge(x, &constant(x, 0.0))?, g, &neg(g)?)
    }),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::Rule(idempotent),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, _| Ok(smallvec![b.unary(UnaryOp::Abs, args[0])])),
    reference: Slot::Rule(|(), args, outs| {
        const F: Unary = Unary { int: i128::abs, real: f64::abs, complex: |x| z(x.abs(), 0.0) };
        F.map(args, &outs[0])
    }),
    special: Special::NONE,
};

/// Absolute value; real for complex numbers.
pub fn abs(x: &Value) -> Result<Value> {
    bind1(&ABS.op(), std::slice::from_ref(x))
}

/// x, with ones in place of zeros.
pub fn replace_zero(x: &Value) -> Result<Value> {
    select(&eq(x, &constant(x, 0.0))?, &full_like(x, 1.0)?, x)
}

/// Writes the block of the real or the imaginary part.
macro_rules! part {
    ($NAME:ident, $fun:ident, $name:literal, $kernel:ident, $doc:literal, transpose: $transpose:expr, reference: $f:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<()> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |(), args| {
                let out = unary_aval($name, Accept::COMPLEX, args)?;
                let dtype = out.dtype.real();
                Ok(smallvec![out.with_dtype(dtype)])
            },
            jvp: Slot::Rule(ferrax_transform::structural::linear_jvp),
            transpose: Slot::Rule(|_, (), cts, _| {
                let Some(ct) = &cts[0] else { return Ok(smallvec![None]) };
                Ok(smallvec![Some($transpose(ct)?)])
            }),
            batch: Slot::Rule(unary_batch),
            simplify: Slot::None(NO_REWRITE),
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, (), b, args, _| Ok(smallvec![b.unary(UnaryOp::$kernel, args[0])])),
            reference: Slot::Rule(|(), args, outs| {
                let f: fn(Scalar) -> f64 = $f;
                Ok(vec![RefTensor::map(&outs[0], args, |r| Scalar::from_f64(outs[0].dtype, f(r[0])))])
            }),
            special: Special::ELEMENTWISE,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value) -> Result<Value> {
            bind1(&$NAME.op(), std::slice::from_ref(x))
        }
    };
}

part!(
    REAL, real, "real", Real, "Real part of complex numbers.",
    transpose: |ct: &Value| crate::elementwise::binary::complex(ct, &Value::float(ct.dtype(), 0.0)),
    reference: Scalar::to_f64
);

part!(
    IMAG, imag, "imag", Imag, "Imaginary part of complex numbers.",
    transpose: |ct: &Value| crate::elementwise::binary::complex(&Value::float(ct.dtype(), 0.0), &neg(ct)?),
    reference: Scalar::imag
);

ferrax_ir::params! {
    /// Parameters of `conj`.
    pub struct Conj {
        /// The operand's dtype.
        input_dtype: DType,
    }
}

/// Complex conjugate.
pub static CONJ: Def<Conj> = Def {
    name: "conj",
    doc: "Complex conjugate; real numbers become complex.",
    arity: Some(1),
    shape: |_, args| {
        let accept = Accept::COMPLEX.or(Accept::FLOAT);
        let out = unary_aval("conj", accept, args)?;
        let dtype = out.dtype.to_complex();
        Ok(smallvec![out.with_dtype(dtype)])
    },
    jvp: Slot::Rule(ferrax_transform::structural::linear_jvp),
    transpose: Slot::Rule(|_, p, cts, _| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None]) };
        Ok(smallvec![Some(if p.input_dtype.is_complex() { conj(ct)? } else { real(ct)? })])
    }),
    batch: Slot::Rule(unary_batch),
    simplify: Slot::Rule(
        |op, p, cx, inputs| {
            if p.input_dtype.is_complex() { involution(op, p, cx, inputs) } else { Ok(None) }
        },
    ),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| {
        if p.input_dtype.is_complex() {
            return Ok(smallvec![b.unary(UnaryOp::Conj, args[0])]);
        }
        let zero = b.float(p.input_dtype, 0.0);
        Ok(smallvec![b.binary(BinaryOp::Complex, args[0], zero)])
    }),
    reference: Slot::Rule(|p, args, outs| {
        let complex = p.input_dtype.is_complex();
        let imag = |x: Scalar| if complex { -x.imag() } else { 0.0 };
        let f = |r: &[Scalar]| Scalar::from_complex(outs[0].dtype, r[0].to_f64(), imag(r[0]));
        Ok(vec![RefTensor::map(&outs[0], args, f)])
    }),
    special: Special::ELEMENTWISE,
};

/// Complex conjugate; real numbers become complex.
pub fn conj(x: &Value) -> Result<Value> {
    bind1(&OpRef::new(&CONJ, Conj { input_dtype: x.dtype() }), std::slice::from_ref(x))
}

// ---- bits ----------------------------------------------------------------------------------------------------------

/// Writes the block of a function of the bits of integers.
macro_rules! bits {
    ($NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal, simplify: $simplify:expr, reference: $f:expr) => {
        #[doc = $doc]
        pub static $NAME: Def<()> = Def {
            name: $name,
            doc: $doc,
            arity: Some(1),
            shape: |(), args| unary_shape($name, Accept::$accept, args),
            jvp: Slot::Rule(zero_jvp),
            transpose: Slot::None(NOT_LINEAR),
            batch: Slot::Rule(unary_batch),
            simplify: $simplify,
            stablehlo: Slot::None(FROM_KERNEL),
            kernel: Slot::Rule(|_, (), b, args, _| Ok(smallvec![b.unary(UnaryOp::$kernel, args[0])])),
            reference: Slot::Rule(|(), args, outs| {
                let f: fn(u64, DType) -> u64 = $f;
                let mask = |d: DType| if d.is_bool() { 1 } else { u64::MAX >> (64 - d.bits()) };
                let apply = |r: &[Scalar]| {
                    let dtype = r[0].dtype;
                    let bits = f(r[0].bits as u64 & mask(dtype), dtype) & mask(dtype);
                    Scalar::from_u64(dtype, bits)
                };
                Ok(vec![RefTensor::map(&outs[0], args, apply)])
            }),
            special: Special::NONE,
        };

        #[doc = $doc]
        pub fn $fun(x: &Value) -> Result<Value> {
            bind1(&$NAME.op(), std::slice::from_ref(x))
        }
    };
}

bits!(
    NOT, bitwise_not, "not", BITS, Not, "Bitwise complement; logical for bool.",
    simplify: Slot::Rule(involution), reference: |x, _| !x
);

bits!(
    POPULATION_COUNT, population_count, "population_count", INTEGER, PopulationCount, "Number of set bits.",
    simplify: Slot::None(NO_REWRITE), reference: |x, _| u64::from(x.count_ones())
);

bits!(
    CLZ, clz, "clz", INTEGER, CountLeadingZeros, "Number of leading zero bits.",
    simplify: Slot::None(NO_REWRITE), reference: |x, d| u64::from(x.leading_zeros()) + d.bits() as u64 - 64
);

// ---- the functions as host languages have them ----------------------------------------------------------------------

/// The functions of this file, with their words.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("neg", One(neg), &NEG, NUMBER, ["{f}(jnp.array([1., -2.]))", "[-1.  2.]"]),
    Function::new("sign", One(sign), &SIGN, NUMBER, ["{f}(jnp.array([-3., 0.]))", "[-1.  0.]"]),
    Function::new("floor", One(floor), &FLOOR, FLOATING, ["{f}(jnp.array([1.5, -1.5]))", "[ 1. -2.]"]),
    Function::new("ceil", One(ceil), &CEIL, FLOATING, ["{f}(jnp.array([1.5, -1.5]))", "[ 2. -1.]"]),
    Function::new(
        "is_finite",
        One(is_finite),
        &IS_FINITE,
        FLOATING,
        ["{f}(jnp.array([1., jnp.inf]))", "[ True False]"],
    )
    .gives("bool"),
    Function::new("exp", One(exp), &EXP, INEXACT, ["{f}(jnp.array([0.]))", "[1.]"]).approximate().numpy(&["exp"]),
    Function::new("exp2", One(exp2), &EXP2, INEXACT, ["{f}(jnp.array([3.]))", "[8.]"]).approximate().numpy(&["exp2"]),
    Function::new("log", One(log), &LOG, INEXACT, ["{f}(jnp.array([1.]))", "[0.]"]).approximate().numpy(&["log"]),
    Function::new("expm1", One(expm1), &EXPM1, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"])
        .approximate()
        .numpy(&["expm1"]),
    Function::new("log1p", One(log1p), &LOG1P, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"])
        .approximate()
        .numpy(&["log1p"]),
    Function::new("tanh", One(tanh), &TANH, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).approximate().numpy(&["tanh"]),
    Function::new("logistic", One(logistic), &LOGISTIC, INEXACT, ["{f}(jnp.array([0.]))", "[0.5]"]).approximate(),
    Function::new("sin", One(sin), &SIN, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).approximate().numpy(&["sin"]),
    Function::new("cos", One(cos), &COS, INEXACT, ["{f}(jnp.array([0.]))", "[1.]"]).approximate().numpy(&["cos"]),
    Function::new("tan", One(tan), &TAN, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).approximate().numpy(&["tan"]),
    Function::new("asin", One(asin), &ASIN, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).numpy(&["arcsin", "asin"]),
    Function::new("acos", One(acos), &ACOS, INEXACT, ["{f}(jnp.array([1.]))", "[0.]"]).numpy(&["arccos", "acos"]),
    Function::new("atan", One(atan), &ATAN, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).numpy(&["arctan", "atan"]),
    Function::new("sinh", One(sinh), &SINH, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).numpy(&["sinh"]),
    Function::new("cosh", One(cosh), &COSH, INEXACT, ["{f}(jnp.array([0.]))", "[1.]"]).numpy(&["cosh"]),
    Function::new("asinh", One(asinh), &ASINH, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).numpy(&["arcsinh", "asinh"]),
    Function::new("acosh", One(acosh), &ACOSH, INEXACT, ["{f}(jnp.array([1.]))", "[0.]"]),
    Function::new("atanh", One(atanh), &ATANH, INEXACT, ["{f}(jnp.array([0.]))", "[0.]"]).numpy(&["arctanh", "atanh"]),
    Function::new("sqrt", One(sqrt), &SQRT, INEXACT, ["{f}(jnp.array([9.]))", "[3.]"]).approximate().numpy(&["sqrt"]),
    Function::new("rsqrt", One(rsqrt), &RSQRT, INEXACT, ["{f}(jnp.array([4.]))", "[0.5]"]).approximate(),
    Function::new("cbrt", One(cbrt), &CBRT, FLOATING, ["{f}(jnp.array([1.]))", "[1.]"]).approximate().numpy(&["cbrt"]),
    Function::new("square", One(square), &SQUARE, NUMBER, ["{f}(jnp.array([3, -2]))", "[9 4]"]),
    Function::new("reciprocal", One(reciprocal), &INTEGER_POW, INEXACT, ["{f}(jnp.array([4.]))", "[0.25]"])
        .described("Reciprocal, 1 / x."),
    Function::new("abs", One(abs), &ABS, "signed, floating or complex", ["{f}(jnp.array([-2]))", "[2]"])
        .gives("of the real dtype of x"),
    Function::new("real", One(real), &REAL, "complex", ["{f}(jnp.array([1 + 2j]))", "[1.]"])
        .gives("of the real dtype of x"),
    Function::new("imag", One(imag), &IMAG, "complex", ["{f}(jnp.array([1 + 2j]))", "[2.]"])
        .gives("of the real dtype of x"),
    Function::new("conj", One(conj), &CONJ, "complex, float32 or float64", ["{f}(jnp.array([1 + 2j]))", "[1.-2.j]"])
        .gives("complex"),
    Function::new("bitwise_not", One(bitwise_not), &NOT, BITS, ["{f}(jnp.array([0, 1]))", "[-1 -2]"]),
    Function::new(
        "population_count",
        One(population_count),
        &POPULATION_COUNT,
        INTEGER,
        ["{f}(jnp.array([7, 8]))", "[3 1]"],
    ),
    Function::new("clz", One(clz), &CLZ, INTEGER, ["{f}(jnp.array([1, 4]))", "[31 29]"]),
];

/// The primitives of this file that are no function of `lax`.
pub(super) static OTHERS: &[&dyn Primitive] = &[&ROUND];
