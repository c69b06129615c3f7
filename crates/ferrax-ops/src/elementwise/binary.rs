//! Elementwise functions of two operands of one dtype.
//!
//! `binary!` writes a block; the slots that differ are its arguments, in the order of a block. Operands
//! stretch as `common` says; transposes sum where they did.
//!
//! Read next: `compare.rs`.

use crate::common::{
    Accept, FROM_KERNEL, NO_REWRITE, NOT_LINEAR, binary_jvp, check_operand, constant, full_like, nary_aval, nary_batch,
    nary_result_shape, one, stretch, unbroadcast, zero_jvp, zeros_like,
};
use crate::elementwise::compare::eq;
use crate::elementwise::convert::{CONVERT_ELEMENT_TYPE, convert_element_type};
use crate::elementwise::functions::{ANY, BITS, Call::Two, FLOATING, Function, INEXACT, INTEGER, NUMBER, REAL};
use crate::elementwise::select::{SELECT_N, select};
use crate::elementwise::unary::{abs, floor, imag, integer_pow, log, neg, real, replace_zero, sign};
use crate::numbers::{Binary, Complex, complex as z};
use ferrax_base::{Aval, DType, Result, Scalar, bail};
use ferrax_ir::op::Rewriter;
use ferrax_ir::reference::RefTensor;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Atom, Def, Lit, OpRef, Slot, Special, Tangents, TransposeArg, Value};
use ferrax_loops::{BinaryOp, Builder, CompareOp, UnaryOp, ValueId};
use ferrax_transform::structural::{BROADCAST_IN_DIM, BroadcastInDim};
use smallvec::{SmallVec, smallvec};

/// Writes the block of a binary primitive that keeps the dtype, and the function that binds it.
macro_rules! binary {
    (
        $NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal,
        jvp: $jvp:expr, transpose: $transpose:expr, simplify: $simplify:expr, reference: $reference:expr $(,)?
    ) => {
        $crate::elementwise::binary::binary!(
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
            arity: Some(2),
            shape: |(), args| $crate::common::nary_shape($name, $crate::common::Accept::$accept, args),
            jvp: $jvp,
            transpose: $transpose,
            batch: ferrax_ir::Slot::Rule($crate::common::nary_batch),
            simplify: $simplify,
            stablehlo: ferrax_ir::Slot::None($crate::common::FROM_KERNEL),
            kernel: ferrax_ir::Slot::Rule(|_, (), b, args, outs| {
                let args = $crate::common::aligned(b, args, &outs[0].shape);
                Ok(smallvec::smallvec![b.binary(ferrax_loops::BinaryOp::$kernel, args[0], args[1])])
            }),
            reference: ferrax_ir::Slot::Rule($reference),
            special: ferrax_ir::Special::$special,
        };

        #[doc = $doc]
        pub fn $fun(x: &ferrax_ir::Value, y: &ferrax_ir::Value) -> ferrax_base::Result<ferrax_ir::Value> {
            ferrax_ir::trace::bind1(&$NAME.op(), &[x.clone(), y.clone()])
        }
    };
}
pub(crate) use binary;

/// A jvp slot from the two partial derivatives: (tangent, result, x, y) → part of the tangent.
macro_rules! partials {
    ($by_x:expr, $by_y:expr) => {
        ferrax_ir::Slot::Rule(|op, (), primals, tangents| {
            $crate::common::binary_jvp(op, primals, tangents, $by_x, $by_y)
        })
    };
}
pub(crate) use partials;

/// A reference slot from functions of integers, reals and complex numbers.
macro_rules! numbers {
    ($($field:ident: $f:expr),*) => {
        |(), args, outs| {
            const F: $crate::numbers::Binary =
                $crate::numbers::Binary { $($field: $f,)* ..$crate::numbers::Binary::NONE };
            F.map(args, &outs[0])
        }
    };
}
pub(crate) use numbers;

/// The number an atom is everywhere, when it is a literal or a broadcast one.
pub fn splat(cx: &dyn Rewriter, atom: &Atom) -> Option<Scalar> {
    match atom {
        Atom::Lit(l) => Some(l.scalar),
        Atom::Var(_) => match cx.producer(atom) {
            Some((op, args)) if op.is(&BROADCAST_IN_DIM) => match args[0] {
                Atom::Lit(l) => Some(l.scalar),
                Atom::Var(_) => None,
            },
            _ => None,
        },
    }
}

/// Replaces the operation by its operand `kept` when the other one is a constant that `neutral` accepts and the
/// operand has the result's type.
fn drop_neutral(
    cx: &dyn Rewriter,
    inputs: &[Atom],
    kept: usize,
    neutral: impl Fn(Scalar) -> bool,
) -> Option<SmallVec<[Atom; 1]>> {
    let (keep, other) = (cx.aval(&inputs[kept]), cx.aval(&inputs[1 - kept]));
    let same_type = (other.shape.is_empty() || other.shape == keep.shape) && (!keep.weak || other.weak);
    (same_type && splat(cx, &inputs[1 - kept]).is_some_and(neutral)).then(|| smallvec![inputs[kept]])
}

/// x * 1 = x / 1 = x without a change of bits. A complex 1 has an imaginary part that is multiplied too: infinities times
/// its zero are NaNs, and zeros change their signs.
fn is_neutral_factor(s: Scalar) -> bool {
    !s.dtype.is_complex() && s == Scalar::one(s.dtype)
}

/// x + z = x without a change of bits: an integer zero, or -0.0.
fn is_neutral_addend(s: Scalar) -> bool {
    let zero = |v: f64| v == 0.0 && v.is_sign_negative();
    if s.dtype.is_complex() {
        zero(s.to_f64()) && zero(s.imag())
    } else if s.dtype.is_float() {
        zero(s.to_f64())
    } else {
        s.bits == 0
    }
}

/// x - z = x without a change of bits: an integer zero, or +0.0.
fn is_neutral_subtrahend(s: Scalar) -> bool {
    s.bits == 0
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

binary!(
    ADD, add, "add", NUMBER, Add, "Sum, x + y.",
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        let tangent = match (&tangents[0], &tangents[1]) {
            (Some(a), Some(b)) => Some(add(a, b)?),
            (Some(t), None) | (None, Some(t)) => Some(stretch(t, out.shape())?),
            (None, None) => None,
        };
        Ok(one(out, tangent))
    }),
    transpose: Slot::Rule(|_, (), cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
        args.iter().map(|a| if a.is_linear() { unbroadcast(&a.aval(), ct.clone()).map(Some) } else { Ok(None) }).collect()
    }),
    simplify: Slot::Rule(|_, (), cx, inputs| {
        let cx = &*cx;
        Ok(drop_neutral(cx, inputs, 0, is_neutral_addend).or_else(|| drop_neutral(cx, inputs, 1, is_neutral_addend)))
    }),
    reference: numbers!(int: |x, y| x + y, real: |x, y| x + y, complex: |x, y| x + y),
);

binary!(
    SUB, sub, "sub", NUMBER, Sub, "Difference, x - y.",
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        let tangent = match (&tangents[0], &tangents[1]) {
            (Some(a), Some(b)) => Some(sub(a, b)?),
            (Some(t), None) => Some(stretch(t, out.shape())?),
            (None, Some(t)) => Some(stretch(&neg(t)?, out.shape())?),
            (None, None) => None,
        };
        Ok(one(out, tangent))
    }),
    transpose: Slot::Rule(|_, (), cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
        let x = args[0].is_linear().then(|| unbroadcast(&args[0].aval(), ct.clone())).transpose()?;
        let y = args[1].is_linear().then(|| unbroadcast(&args[1].aval(), neg(ct)?)).transpose()?;
        Ok(smallvec![x, y])
    }),
    simplify: Slot::Rule(|_, (), cx, inputs| Ok(drop_neutral(&*cx, inputs, 0, is_neutral_subtrahend))),
    reference: numbers!(int: |x, y| x - y, real: |x, y| x - y, complex: |x, y| x - y),
);

binary!(
    MUL, mul, "mul", NUMBER, Mul, "Product, x * y.",
    jvp: partials!(|g, _, _, y| mul(g, y), |g, _, x, _| mul(x, g)),
    transpose: Slot::Rule(mul_transpose),
    simplify: Slot::Rule(|_, (), cx, inputs| {
        let same = drop_neutral(&*cx, inputs, 0, is_neutral_factor);
        match same.or_else(|| drop_neutral(&*cx, inputs, 1, is_neutral_factor)) {
            Some(kept) => Ok(Some(kept)),
            None => masked(cx, inputs),
        }
    }),
    reference: numbers!(int: i128::wrapping_mul, real: |x, y| x * y, complex: |x, y| x * y),
);

/// Whether a product with a mask of truth values is a choice: zero where it is False, whatever is there, as XLA has it.
/// (Numbers of bfloat16 and of 8 bits become float32 on the way, and XLA's CPU compiler keeps the product.)
pub fn is_choice_by_mask(d: DType) -> bool {
    matches!(d, DType::F16 | DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// x * mask as the choice of x or zero, where a mask of the result's shape was made a number for it.
fn masked(cx: &mut dyn Rewriter, inputs: &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>> {
    for (x, number) in [(inputs[0], inputs[1]), (inputs[1], inputs[0])] {
        let (from, to) = (cx.aval(&x), cx.aval(&number));
        let Some((op, mask)) = cx.producer(&number) else { continue };
        let fits = ferrax_base::shape::broadcast(&from.shape, &to.shape).is_some_and(|shape| *shape == *to.shape);
        if !op.is(&CONVERT_ELEMENT_TYPE) || !cx.aval(&mask[0]).dtype.is_bool() || !fits {
            continue;
        }
        if cx.strict() || !is_choice_by_mask(to.dtype) {
            break;
        }
        let mut stretched = |a: Atom, from: &[usize]| {
            if *from == *to.shape {
                return Ok(a);
            }
            let broadcast_dimensions = (to.shape.len() - from.len()..to.shape.len()).collect();
            let params = BroadcastInDim { shape: to.shape.clone(), broadcast_dimensions };
            cx.emit(OpRef::new(&BROADCAST_IN_DIM, params), &[a])
        };
        let zero = Atom::Lit(Lit { scalar: Scalar::zero(to.dtype), weak: from.weak });
        let cases = [stretched(zero, &[])?, stretched(x, &from.shape)?];
        return Ok(Some(smallvec![cx.emit(SELECT_N.op(), &[mask[0], cases[0], cases[1]])?]));
    }
    Ok(None)
}

fn mul_transpose(_: &ferrax_ir::OpRef, (): &(), cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
    Ok(match (&args[0], &args[1]) {
        (TransposeArg::Linear(x), TransposeArg::Known(y)) => smallvec![Some(unbroadcast(x, mul(ct, y)?)?), None],
        (TransposeArg::Known(x), TransposeArg::Linear(y)) => smallvec![None, Some(unbroadcast(y, mul(x, ct)?)?)],
        (TransposeArg::Known(_), TransposeArg::Known(_)) => smallvec![None, None],
        (TransposeArg::Linear(_), TransposeArg::Linear(_)) => {
            bail!(Value, "mul of two values that both depend on the arguments is not linear, and cannot be transposed")
        }
    })
}

binary!(
    DIV, div, "div", NUMBER, Div, "Quotient, x / y; integers truncate toward zero, and x / 0 is -1.",
    jvp: partials!(
        |g, _, _, y| div(g, y),
        |g, _, x, y| mul(&mul(&neg(g)?, x)?, &integer_pow(y, -2)?)
    ),
    transpose: Slot::Rule(|_, (), cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
        let TransposeArg::Linear(x) = &args[0] else { return Ok(smallvec![None, None]) };
        Ok(smallvec![Some(unbroadcast(x, div(ct, args[1].known()?)?)?), None])
    }),
    simplify: Slot::Rule(|_, (), cx, inputs| Ok(drop_neutral(&*cx, inputs, 0, is_neutral_factor))),
    reference: numbers!(
        int: |x, y| if y == 0 { -1 } else { x / y },
        real: |x, y| x / y,
        complex: |x, y| x / y
    ),
    special: EDGE,
);

binary!(
    REM, rem, "rem", REAL, Rem, "Remainder, with the sign of x.",
    jvp: partials!(
        |g, out, _, _| stretch(g, out.shape()),
        |g, _, x, y| {
            let q = div(x, y)?;
            mul(&neg(g)?, &mul(&sign(&q)?, &floor(&abs(&q)?)?)?)
        }
    ),
    transpose: Slot::None(NOT_LINEAR),
    // A quotient is often there already (`//`, `divmod`); x - (x / 0) * 0 is x, as the remainder is.
    simplify: Slot::Rule(|_, (), cx, inputs| {
        if !cx.aval(&inputs[0]).dtype.is_integer() {
            return Ok(None);
        }
        let quotient = cx.emit(OpRef::new(&DIV, ()), inputs)?;
        let whole = cx.emit(OpRef::new(&MUL, ()), &[quotient, inputs[1]])?;
        Ok(Some(smallvec![cx.emit(OpRef::new(&SUB, ()), &[inputs[0], whole])?]))
    }),
    reference: numbers!(int: |x, y| if y == 0 { x } else { x % y }, real: |x, y| x % y),
);

/// The jvp of `max` and `min`: operands that are equal share the tangent.
fn chooser_jvp(
    op: &ferrax_ir::OpRef,
    (): &(),
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(ferrax_ir::Values, Tangents)> {
    let share = |x: &Value, out: &Value, y: &Value| -> Result<Value> {
        let chosen = select(&eq(x, out)?, &full_like(out, 1.0)?, &zeros_like(out)?)?;
        let ties = select(&eq(y, out)?, &full_like(out, 2.0)?, &full_like(out, 1.0)?)?;
        div(&chosen, &ties)
    };
    binary_jvp(
        op,
        primals,
        tangents,
        |g, out, x, y| mul(g, &share(x, out, y)?),
        |g, out, x, y| mul(g, &share(y, out, x)?),
    )
}

/// Whether a complex number comes before another: by real part, then by imaginary part.
pub(crate) fn precedes(x: Complex, y: Complex) -> bool {
    x.re < y.re || x.re == y.re && x.im < y.im
}

binary!(
    MAX, max, "max", ANY, Max, "Maximum; NaN wins.",
    jvp: Slot::Rule(chooser_jvp),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(
        int: i128::max,
        real: |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else if x < y { y } else { x },
        complex: |x, y| if precedes(y, x) { x } else { y }
    ),
);

binary!(
    MIN, min, "min", ANY, Min, "Minimum; NaN wins.",
    jvp: Slot::Rule(chooser_jvp),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(
        int: i128::min,
        real: |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else if y < x { y } else { x },
        complex: |x, y| if precedes(x, y) { x } else { y }
    ),
);

// ---- powers and angles ---------------------------------------------------------------------------------------------

/// x to the power y.
pub static POW: Def<()> = Def {
    name: "pow",
    doc: "Power, x ** y; an integer y may go with any x.",
    arity: Some(2),
    shape: |(), args| {
        check_operand("pow", Accept::INEXACT, args, 0)?;
        check_operand("pow", Accept::NUMBER, args, 1)?;
        let (x, y) = (args[0].dtype, args[1].dtype);
        if x != y && !y.is_integer() {
            bail!(
                Type,
                "the first argument to pow must have an inexact dtype (float or complex), and the second argument must \
                 have an inexact or integer dtype, and two inexact dtypes must match, but got {x} and {y} respectively."
            );
        }
        let shape = nary_result_shape("pow", args)?;
        Ok(smallvec![Aval { shape, dtype: x, weak: args[0].weak && args[1].weak, vary: 0, spread: 0 }])
    },
    jvp: partials!(pow_by_base, |g, out, x, _| mul(g, &mul(&log(&replace_zero(x)?)?, out)?)),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let y = b.convert(args[1], outs[0].dtype);
        let args = crate::common::aligned(b, &[args[0], y], &outs[0].shape);
        Ok(smallvec![b.binary(BinaryOp::Pow, args[0], args[1])])
    }),
    reference: Slot::Rule(|(), args, outs| {
        const F: Binary = Binary { real: f64::powf, complex: Complex::pow, ..Binary::NONE };
        let dtype = outs[0].dtype;
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        Ok(vec![RefTensor::map(&outs[0], &args, |r| F.apply(dtype, r[0], r[1].convert(dtype)))])
    }),
    special: Special::EDGE,
};

/// d(x**y)/dx = y x**(y-1), which is zero where an integer exponent is.
fn pow_by_base(g: &Value, out: &Value, x: &Value, y: &Value) -> Result<Value> {
    if !y.dtype().is_integer() {
        let slope = mul(y, &pow(x, &sub(y, &constant(y, 1.0))?)?)?;
        return mul(g, &slope);
    }
    let y = stretch(&convert_element_type(y, x.dtype())?, out.shape())?;
    let x = stretch(x, out.shape())?;
    let power = pow(&x, &sub(&y, &constant(&y, 1.0))?)?;
    let slope = mul(&replace_zero(&y)?, &power)?;
    mul(g, &select(&eq(&y, &constant(&y, 0.0))?, &zeros_like(&slope)?, &slope)?)
}

/// Power, x ** y; an integer y may go with any x.
pub fn pow(x: &Value, y: &Value) -> Result<Value> {
    bind1(&POW.op(), &[x.clone(), y.clone()])
}

/// Angle of the point (y, x).
pub static ATAN2: Def<()> = Def {
    name: "atan2",
    doc: "Angle of the point (y, x), atan(x / y) in the right quadrant.",
    arity: Some(2),
    shape: |(), args| crate::common::nary_shape("atan2", Accept::INEXACT, args),
    jvp: partials!(|g, _, x, y| mul(g, &div(y, &squared_norm(x, y)?)?), |g, _, x, y| mul(
        g,
        &div(&neg(x)?, &squared_norm(x, y)?)?
    )),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let args = crate::common::aligned(b, args, &outs[0].shape);
        let complex = outs[0].dtype.is_complex();
        Ok(smallvec![if complex {
            complex_angle(b, args[0], args[1])
        } else {
            b.binary(BinaryOp::Atan2, args[0], args[1])
        }])
    }),
    reference: Slot::Rule(numbers!(real: f64::atan2, complex: |x, y| {
        // -i log((y + ix) / sqrt(x² + y²))
        let w = (y + z(-x.im, x.re)) / (x * x + y * y).sqrt();
        let log = w.log();
        z(log.im, -log.re)
    })),
    special: Special::EDGE,
};

/// Angle of the point (y, x), atan(x / y) in the right quadrant.
pub fn atan2(x: &Value, y: &Value) -> Result<Value> {
    bind1(&ATAN2.op(), &[x.clone(), y.clone()])
}

/// -i log((y + ix) / sqrt(x² + y²)).
fn complex_angle(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (re, im) = (b.unary(UnaryOp::Real, x), b.unary(UnaryOp::Imag, x));
    let back = b.unary(UnaryOp::Neg, im);
    let turned = b.binary(BinaryOp::Complex, back, re);
    let point = b.binary(BinaryOp::Add, y, turned);
    let (squared_x, squared_y) = (complex_square(b, x), complex_square(b, y));
    let squares = b.binary(BinaryOp::Add, squared_x, squared_y);
    let norm = b.unary(UnaryOp::Sqrt, squares);
    let direction = b.binary(BinaryOp::Div, point, norm);
    let log = b.unary(UnaryOp::Log, direction);
    let (length, angle) = (b.unary(UnaryOp::Real, log), b.unary(UnaryOp::Imag, log));
    let length = b.unary(UnaryOp::Neg, length);
    b.binary(BinaryOp::Complex, angle, length)
}

fn squared_norm(x: &Value, y: &Value) -> Result<Value> {
    use crate::elementwise::unary::square;
    add(&square(x)?, &square(y)?)
}

binary!(
    NEXTAFTER, nextafter, "nextafter", FLOAT, Nextafter, "The next number after x1 toward x2.",
    jvp: Slot::None("nextafter is not differentiable"),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: |(), args, outs| {
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        Ok(vec![RefTensor::map(&outs[0], &args, |r| next_after(r[0], r[1]))])
    },
);

fn next_after(x: Scalar, y: Scalar) -> Scalar {
    let (from, to) = (x.to_f64(), y.to_f64());
    if from.is_nan() || to.is_nan() {
        return Scalar::from_f64(x.dtype, f64::NAN);
    }
    if from == to {
        return y;
    }
    let sign = 1u128 << (x.dtype.bits() - 1);
    if from == 0.0 {
        return Scalar { dtype: x.dtype, bits: if to < 0.0 { sign | 1 } else { 1 } };
    }
    let away = (to > from) == (from > 0.0);
    Scalar { dtype: x.dtype, bits: if away { x.bits + 1 } else { x.bits - 1 } }
}

// ---- complex numbers -----------------------------------------------------------------------------------------------

/// A complex number from its parts.
pub static COMPLEX: Def<()> = Def {
    name: "complex",
    doc: "Complex number x + iy.",
    arity: Some(2),
    shape: |(), args| {
        for (i, a) in args.iter().enumerate() {
            if !matches!(a.dtype, DType::F32 | DType::F64) {
                bail!(
                    Type,
                    "complex does not accept dtype {} at position {i}. Accepted dtypes at position {i} are subtypes of \
                     float32, float64.",
                    a.dtype
                );
            }
        }
        let out = nary_aval("complex", Accept::FLOAT, args)?;
        let dtype = out.dtype.to_complex();
        Ok(smallvec![out.with_dtype(dtype)])
    },
    jvp: Slot::Rule(|op, (), primals, tangents| {
        let out = bind1(op, primals)?;
        let part = |i: usize| match &tangents[i] {
            Some(t) => Ok(t.clone()),
            None => zeros_like(&primals[i]),
        };
        let tangent = match (&tangents[0], &tangents[1]) {
            (None, None) => None,
            _ => Some(bind1(op, &[part(0)?, part(1)?])?),
        };
        Ok(one(out, tangent))
    }),
    transpose: Slot::Rule(|_, (), cts, args| {
        let Some(ct) = &cts[0] else { return Ok(smallvec![None, None]) };
        let x = args[0].is_linear().then(|| unbroadcast(&args[0].aval(), real(ct)?)).transpose()?;
        let y = args[1].is_linear().then(|| unbroadcast(&args[1].aval(), imag(&neg(ct)?)?)).transpose()?;
        Ok(smallvec![x, y])
    }),
    batch: Slot::Rule(nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let args = crate::common::aligned(b, args, &outs[0].shape);
        Ok(smallvec![b.binary(BinaryOp::Complex, args[0], args[1])])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        let f = |r: &[Scalar]| Scalar::from_complex(outs[0].dtype, r[0].to_f64(), r[1].to_f64());
        Ok(vec![RefTensor::map(&outs[0], &args, f)])
    }),
    special: Special::ELEMENTWISE,
};

/// Complex number x + iy.
pub fn complex(re: &Value, im: &Value) -> Result<Value> {
    bind1(&COMPLEX.op(), &[re.clone(), im.clone()])
}

/// (a - b)(a + b) + 2abi: infinite, and not NaN, where a² and b² are beyond all numbers or a part is infinite.
pub(super) fn complex_square(b: &mut Builder, x: ValueId) -> ValueId {
    let (re, im) = (b.unary(UnaryOp::Real, x), b.unary(UnaryOp::Imag, x));
    let (less, more) = (b.binary(BinaryOp::Sub, re, im), b.binary(BinaryOp::Add, re, im));
    let real = b.binary(BinaryOp::Mul, less, more);
    // of |a| = |b|, whose sum may be infinite where the difference is 0
    let (a, c) = (b.unary(UnaryOp::Abs, re), b.unary(UnaryOp::Abs, im));
    let (alike, finite) = (b.compare(CompareOp::Eq, a, c), b.unary(UnaryOp::IsFinite, re));
    let even = b.binary(BinaryOp::Mul, alike, finite);
    let zero = b.float(b.ty(re).dtype, 0.0);
    let real = b.select(even, real, zero);
    let product = b.binary(BinaryOp::Mul, re, im);
    let imag = b.binary(BinaryOp::Add, product, product);
    b.binary(BinaryOp::Complex, real, imag)
}

// ---- bits ----------------------------------------------------------------------------------------------------------

/// Writes the block of a function of the bits of two integers: (x, y, width) → bits.
macro_rules! bits {
    ($NAME:ident, $fun:ident, $name:literal, $accept:ident, $kernel:ident, $doc:literal, $f:expr) => {
        binary!(
            $NAME, $fun, $name, $accept, $kernel, $doc,
            jvp: Slot::Rule(zero_jvp),
            transpose: Slot::None(NOT_LINEAR),
            simplify: Slot::None(NO_REWRITE),
            reference: |(), args, outs| {
                let f: fn(Scalar, u64, u64) -> u64 = $f;
                let dtype = outs[0].dtype;
                let width = if dtype.is_bool() { 1 } else { dtype.bits() as u64 };
                let mask = u64::MAX >> (64 - width);
                let args = crate::common::aligned_reference(args, &outs[0].shape);
                let apply = |r: &[Scalar]| Scalar::from_u64(dtype, f(r[0], r[1].bits as u64 & mask, width) & mask);
                Ok(vec![RefTensor::map(&outs[0], &args, apply)])
            },
        );
    };
}

bits!(AND, bitwise_and, "and", BITS, And, "Bitwise and; logical for bool.", |x, y, _| x.bits as u64 & y);
bits!(OR, bitwise_or, "or", BITS, Or, "Bitwise or; logical for bool.", |x, y, _| x.bits as u64 | y);
bits!(XOR, bitwise_xor, "xor", BITS, Xor, "Bitwise exclusive or; logical for bool.", |x, y, _| { x.bits as u64 ^ y });
bits!(
    SHIFT_LEFT,
    shift_left,
    "shift_left",
    INTEGER,
    ShiftLeft,
    "Left shift; by the width or more gives 0.",
    |x, y, width| if y >= width { 0 } else { (x.bits as u64) << y }
);
/// Right shift that repeats the sign bit.
pub static SHIFT_RIGHT_ARITHMETIC: Def<()> = Def {
    name: "shift_right_arithmetic",
    doc: "Right shift that repeats the top bit.",
    arity: Some(2),
    shape: |(), args| crate::common::nary_shape("shift_right_arithmetic", Accept::INTEGER, args),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, (), b, args, outs| {
        let args = crate::common::aligned(b, args, &outs[0].shape);
        if outs[0].dtype.is_signed() {
            return Ok(smallvec![b.binary(BinaryOp::ShiftRightArithmetic, args[0], args[1])]);
        }
        // The kernel IR shifts in the sign of signed integers only.
        let signed = signed_of(outs[0].dtype);
        let as_signed = |b: &mut Builder, v| {
            let ty = ferrax_loops::Type::new(signed, &b.ty(v).shape.clone());
            b.push(ferrax_loops::Kind::Bitcast, &[v], ty)
        };
        let (x, y) = (as_signed(b, args[0]), as_signed(b, args[1]));
        let shifted = b.binary(BinaryOp::ShiftRightArithmetic, x, y);
        Ok(smallvec![b.push(ferrax_loops::Kind::Bitcast, &[shifted], (&outs[0]).into())])
    }),
    reference: Slot::Rule(|(), args, outs| {
        let dtype = outs[0].dtype;
        let width = dtype.bits() as u64;
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        let shift = |r: &[Scalar]| {
            let signed = ((r[0].bits as u64) << (64 - width)).cast_signed() >> (64 - width);
            let by = r[1].bits as u64 & (u64::MAX >> (64 - width));
            Scalar::from_i64(dtype, signed >> by.min(63))
        };
        Ok(vec![RefTensor::map(&outs[0], &args, shift)])
    }),
    special: Special::NONE,
};

/// The signed integer as wide as an unsigned one.
fn signed_of(dtype: DType) -> DType {
    match dtype {
        DType::U2 => DType::I2,
        DType::U4 => DType::I4,
        DType::U8 => DType::I8,
        DType::U16 => DType::I16,
        DType::U32 => DType::I32,
        DType::U64 => DType::I64,
        other => other,
    }
}

/// Right shift that repeats the top bit.
pub fn shift_right_arithmetic(x: &Value, y: &Value) -> Result<Value> {
    bind1(&SHIFT_RIGHT_ARITHMETIC.op(), &[x.clone(), y.clone()])
}

bits!(
    SHIFT_RIGHT_LOGICAL,
    shift_right_logical,
    "shift_right_logical",
    INTEGER,
    ShiftRightLogical,
    "Right shift that fills with zeros.",
    |x, y, width| {
        let bits = x.bits as u64 & (u64::MAX >> (64 - width));
        if y >= width { 0 } else { bits >> y }
    }
);

/// The high half of a product.
pub static MULHI: Def<()> = Def {
    name: "mulhi",
    doc: "High half of the double-width product.",
    arity: Some(2),
    shape: |(), args| crate::common::nary_shape("mulhi", Accept::INTEGER, args),
    jvp: Slot::Rule(zero_jvp),
    transpose: Slot::None(NOT_LINEAR),
    batch: Slot::Rule(nary_batch),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(mulhi_kernel),
    reference: Slot::Rule(|(), args, outs| {
        let dtype = outs[0].dtype;
        let args = crate::common::aligned_reference(args, &outs[0].shape);
        let f = |r: &[Scalar]| {
            let (x, y) = (crate::numbers::integer(r[0]), crate::numbers::integer(r[1]));
            let high = if dtype.is_signed() {
                (x * y) >> dtype.bits()
            } else {
                ((x as u128 * y as u128) >> dtype.bits()) as i128
            };
            crate::numbers::from_integer(dtype, high)
        };
        Ok(vec![RefTensor::map(&outs[0], &args, f)])
    }),
    special: Special::NONE,
};

fn mulhi_kernel(
    _: &ferrax_ir::OpRef,
    (): &(),
    b: &mut Builder,
    args: &[ferrax_loops::ValueId],
    outs: &[Aval],
) -> Result<SmallVec<[ferrax_loops::ValueId; 1]>> {
    let dtype = outs[0].dtype;
    let args = crate::common::aligned(b, args, &outs[0].shape);
    let (wide, bits) = (if dtype.is_signed() { DType::I64 } else { DType::U64 }, dtype.bits());
    if bits < 64 {
        let (x, y) = (b.convert(args[0], wide), b.convert(args[1], wide));
        let product = b.binary(BinaryOp::Mul, x, y);
        let shift = b.scalar(Scalar::from_i64(wide, bits as i64));
        let op = if dtype.is_signed() { BinaryOp::ShiftRightArithmetic } else { BinaryOp::ShiftRightLogical };
        let high = b.binary(op, product, shift);
        return Ok(smallvec![b.convert(high, dtype)]);
    }
    // Four products of halves, then the correction for signs.
    let (x, y) = (b.convert(args[0], DType::U64), b.convert(args[1], DType::U64));
    let half = b.scalar(Scalar::from_u64(DType::U64, 32));
    let mask = b.scalar(Scalar::from_u64(DType::U64, u64::from(u32::MAX)));
    let low = |b: &mut Builder, v| b.binary(BinaryOp::And, v, mask);
    let high = |b: &mut Builder, v| b.binary(BinaryOp::ShiftRightLogical, v, half);
    let (xl, xh, yl, yh) = (low(b, x), high(b, x), low(b, y), high(b, y));
    let (ll, lh) = (b.binary(BinaryOp::Mul, xl, yl), b.binary(BinaryOp::Mul, xl, yh));
    let (hl, hh) = (b.binary(BinaryOp::Mul, xh, yl), b.binary(BinaryOp::Mul, xh, yh));
    let (lh_low, hl_low, ll_high) = (low(b, lh), low(b, hl), high(b, ll));
    let middle = b.binary(BinaryOp::Add, lh_low, hl_low);
    let middle = b.binary(BinaryOp::Add, middle, ll_high);
    let (lh_high, hl_high, carry) = (high(b, lh), high(b, hl), high(b, middle));
    let mut sum = b.binary(BinaryOp::Add, hh, lh_high);
    sum = b.binary(BinaryOp::Add, sum, hl_high);
    sum = b.binary(BinaryOp::Add, sum, carry);
    sum = b.convert(sum, dtype);
    if dtype.is_signed() {
        let last = b.scalar(Scalar::from_i64(dtype, 63));
        for (v, other) in [(args[0], args[1]), (args[1], args[0])] {
            let sign = b.binary(BinaryOp::ShiftRightArithmetic, v, last);
            let part = b.binary(BinaryOp::Mul, sign, other);
            sum = b.binary(BinaryOp::Add, sum, part);
        }
    }
    Ok(smallvec![sum])
}

/// High half of the double-width product.
pub fn mulhi(x: &Value, y: &Value) -> Result<Value> {
    bind1(&MULHI.op(), &[x.clone(), y.clone()])
}

// ---- the functions as host languages have them ----------------------------------------------------------------------

/// The functions of this file, with their words.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("add", Two(add), &ADD, NUMBER, ["{f}(jnp.array([1, 2]), 3)", "[4 5]"]),
    Function::new("sub", Two(sub), &SUB, NUMBER, ["{f}(jnp.array([1, 2]), 3)", "[-2 -1]"]),
    Function::new("mul", Two(mul), &MUL, NUMBER, ["{f}(jnp.array([1, 2]), 3)", "[3 6]"]).with_out_dtype(),
    Function::new("div", Two(div), &DIV, NUMBER, ["{f}(jnp.array([7, -7]), 2)", "[ 3 -3]"]),
    Function::new("rem", Two(rem), &REM, REAL, ["{f}(jnp.array([7, -7]), 3)", "[ 1 -1]"]),
    Function::new("max", Two(max), &MAX, ANY, ["{f}(jnp.array([1., 5.]), 3.)", "[3. 5.]"]),
    Function::new("min", Two(min), &MIN, ANY, ["{f}(jnp.array([1., 5.]), 3.)", "[1. 3.]"]),
    Function::new("pow", Two(pow), &POW, INEXACT, ["{f}(jnp.array([2., 3.]), 2)", "[4. 9.]"]),
    Function::new("atan2", Two(atan2), &ATAN2, INEXACT, ["{f}(0., 1.)", "0.0"]),
    Function::new("nextafter", Two(nextafter), &NEXTAFTER, FLOATING, ["{f}(0., 1.) > 0", "True"])
        .operands(&["x1", "x2"]),
    Function::new("complex", Two(complex), &COMPLEX, "float32 or float64", ["{f}(1., 2.)", "(1+2j)"]).gives("complex"),
    Function::new("bitwise_and", Two(bitwise_and), &AND, BITS, ["{f}(jnp.array([6, 3]), 2)", "[2 2]"]),
    Function::new("bitwise_or", Two(bitwise_or), &OR, BITS, ["{f}(jnp.array([4, 3]), 2)", "[6 3]"]),
    Function::new("bitwise_xor", Two(bitwise_xor), &XOR, BITS, ["{f}(jnp.array([6, 3]), 2)", "[4 1]"]),
    Function::new("shift_left", Two(shift_left), &SHIFT_LEFT, INTEGER, ["{f}(jnp.array([1, 3]), 2)", "[ 4 12]"]),
    Function::new(
        "shift_right_arithmetic",
        Two(shift_right_arithmetic),
        &SHIFT_RIGHT_ARITHMETIC,
        INTEGER,
        ["{f}(jnp.array([-8, 8]), 1)", "[-4  4]"],
    ),
    Function::new(
        "shift_right_logical",
        Two(shift_right_logical),
        &SHIFT_RIGHT_LOGICAL,
        INTEGER,
        ["{f}(jnp.array([8, 5]), 1)", "[4 2]"],
    ),
    Function::new("mulhi", Two(mulhi), &MULHI, INTEGER, ["{f}(jnp.int32(1 << 30), jnp.int32(8))", "2"])
        .positional_only(),
];
