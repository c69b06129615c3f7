//! Elementwise functions of real numbers, integers and booleans.
//!
//! Integers below a byte are computed as bytes and floats below 32 bits as f32, as the CPU engine does; 16-bit floats keep
//! their type where one rounding gives the same. XLA defines division by zero, wrapping and shifts beyond the width as the
//! kernel graph does. Read next: `complex.rs`, `convert.rs`, and `special.rs` for the gamma, zeta, error and Bessel
//! functions.

use super::body::{Body, Val};
use super::{complex, control, convert, reduce, special};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Kind, ReduceOp, Type, UnaryOp};
use std::fmt::Debug;

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], ty: &Type) -> Result<Val> {
    match kind {
        Kind::Unary(op) => unary(body, *op, &inputs[0]),
        Kind::Binary(op) => {
            let (x, y) = (body.spread(&inputs[0], &ty.shape), body.spread(&inputs[1], &ty.shape));
            binary(body, *op, &x, &y)
        }
        Kind::Compare(op) => {
            let (x, y) = (body.spread(&inputs[0], &ty.shape), body.spread(&inputs[1], &ty.shape));
            compare(body, *op, &x, &y)
        }
        Kind::Select => select(body, inputs, ty),
        Kind::Clamp => {
            let [low, x, high] = [0, 1, 2].map(|i| body.spread(&inputs[i], &ty.shape));
            if ty.dtype.is_complex() {
                let below = binary(body, BinaryOp::Min, &x, &high)?;
                return binary(body, BinaryOp::Max, &below, &low);
            }
            let above = binary(body, BinaryOp::Max, &x, &low)?;
            binary(body, BinaryOp::Min, &above, &high)
        }
        Kind::IntegerPow(n) => integer_pow(body, *n, &inputs[0]),
        Kind::DivideBy(division) => Ok(divide_by(body, *division, &inputs[0])),
        Kind::Convert => convert::convert(body, &inputs[0], ty.dtype),
        Kind::Bitcast => convert::bitcast(body, &inputs[0], ty),
        Kind::ReducePrecision { exponent_bits, mantissa_bits } => {
            let wide = convert::convert(body, &inputs[0], compute_dtype(ty.dtype))?;
            let rest = format!("{{exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32}}");
            let y = body.op("stablehlo.reduce_precision", &[&wide], &rest, &wide.ty);
            convert::convert(body, &y, ty.dtype)
        }
        other => bail!(Internal, "{other:?} is not elementwise"),
    }
}

/// The dtype that elements of a dtype are computed in.
pub(super) fn compute_dtype(d: DType) -> DType {
    match d {
        DType::I2 | DType::I4 => DType::I8,
        DType::U2 | DType::U4 => DType::U8,
        DType::F64 => DType::F64,
        d if d.is_float() => DType::F32,
        d => d,
    }
}

/// Whether floats of a dtype are operands of arithmetic as they are.
fn native(d: DType) -> bool {
    matches!(d, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
}

fn missing<T>(what: &dyn Debug, d: DType) -> Result<T> {
    bail!(NotImplemented, "the XLA engine has no {what:?} for {d}")
}

/// f(x).
pub(super) fn unary(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    use UnaryOp::*;
    let d = x.dtype();
    match op {
        _ if d.is_complex() => complex::unary(body, op, x),
        Not if d.is_bool() => Ok(body.un("stablehlo.not", x)),
        Sign | Abs if d.is_bool() => Ok(x.clone()),
        _ if d.is_integer() => integer_unary(body, op, x),
        _ if !d.is_float() => missing(&op, d),
        Real | Conj => Ok(x.clone()),
        // These round at most once.
        Neg | Sign | Abs | Floor | Ceil | RoundAway | RoundEven | Sqrt | IsFinite if native(d) => {
            float_unary(body, op, x)
        }
        _ => {
            let wide = convert::convert(body, x, compute_dtype(d))?;
            let y = float_unary(body, op, &wide)?;
            if y.dtype().is_bool() { Ok(y) } else { convert::convert(body, &y, d) }
        }
    }
}

fn float_unary(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    use UnaryOp::*;
    let name = match op {
        Neg => "stablehlo.negate",
        Sign => "stablehlo.sign",
        Abs => "stablehlo.abs",
        Floor => "stablehlo.floor",
        Ceil => "stablehlo.ceil",
        RoundAway => "stablehlo.round_nearest_afz",
        RoundEven => "stablehlo.round_nearest_even",
        Exp => "stablehlo.exponential",
        Expm1 => "stablehlo.exponential_minus_one",
        Log => "stablehlo.log",
        Log1p => "stablehlo.log_plus_one",
        Sqrt => "stablehlo.sqrt",
        Rsqrt => "stablehlo.rsqrt",
        Sin => "stablehlo.sine",
        Cos => "stablehlo.cosine",
        Tan => "stablehlo.tan",
        Asin => "chlo.asin",
        Acos => "chlo.acos",
        Atan => "chlo.atan",
        Tanh => "stablehlo.tanh",
        Asinh => "chlo.asinh",
        Acosh => "chlo.acosh",
        Logistic => "stablehlo.logistic",
        IsFinite => return Ok(body.op("stablehlo.is_finite", &[x], "", &Type::new(DType::Bool, x.shape()))),
        Exp2 => return Ok(exp2(body, x)),
        Cbrt => return Ok(cbrt(body, x)),
        Sinh => return Ok(sinh(body, x)),
        Atanh => return Ok(atanh(body, x)),
        Cosh => return Ok(cosh(body, x)),
        Imag => {
            let zero = body.like(x, 0.0);
            return Ok(body.bin("stablehlo.multiply", &zero, x));
        }
        _ => return special::unary(body, op, x),
    };
    Ok(body.un(name, x))
}

/// 2^x = e^(f log 2) 2^n with x = n + f, where |f| is at most one half; 2^n is made of bits, in two halves, so that
/// subnormal results are rounded once.
pub(super) fn exp2(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let (int, mantissa, bias, most) = match x.dtype() {
        DType::F64 => (DType::I64, 52, 1023, 1100.0),
        _ => (DType::I32, 23, 127, 160.0),
    };
    let (low, high) = (body.like(x, -most), body.like(x, most));
    let near = body.op("stablehlo.clamp", &[&low, x, &high], "", &x.ty);
    let n = body.un("stablehlo.round_nearest_even", &near);
    let f = body.bin("stablehlo.subtract", &near, &n);
    let log2 = body.like(x, std::f64::consts::LN_2);
    let f = body.bin("stablehlo.multiply", &f, &log2);
    let p = body.un("stablehlo.exponential", &f);
    let n = body.convert(&n, int);
    let one = body.like(&n, 1.0);
    let half = body.bin("stablehlo.shift_right_arithmetic", &n, &one);
    let rest = body.bin("stablehlo.subtract", &n, &half);
    let mut power = |part: &Val| {
        let bias = body.like(part, f64::from(bias));
        let exponent = body.bin("stablehlo.add", part, &bias);
        let by = body.like(part, f64::from(mantissa));
        let bits = body.bin("stablehlo.shift_left", &exponent, &by);
        body.bits(&bits, x.dtype())
    };
    let (half, rest) = (power(&half), power(&rest));
    let scaled = body.bin("stablehlo.multiply", &p, &half);
    body.bin("stablehlo.multiply", &scaled, &rest)
}

/// The cube root: what the dialect gives, and a step of Newton's method.
pub(super) fn cbrt(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let y = body.un("stablehlo.cbrt", x);
    let square = body.bin("stablehlo.multiply", &y, &y);
    let other = body.bin("stablehlo.divide", x, &square);
    let off = body.bin("stablehlo.subtract", &y, &other);
    let three = body.like(x, 3.0);
    let step = body.bin("stablehlo.divide", &off, &three);
    let better = body.bin("stablehlo.subtract", &y, &step);
    // Zeros and infinities are roots of themselves.
    let numbers = body.compare("EQ", &better, &better);
    body.select(&numbers, &better, &y)
}

/// |x|, and half of e^|x|, in two factors where the power alone overflows.
fn half_exp(body: &mut Body<'_, '_>, x: &Val) -> (Val, Val, Val) {
    let size = body.un("stablehlo.abs", x);
    let half = body.like(x, 0.5);
    let halved = body.bin("stablehlo.multiply", &size, &half);
    let root = body.un("stablehlo.exponential", &halved);
    let part = body.bin("stablehlo.multiply", &half, &root);
    let grown = body.bin("stablehlo.multiply", &part, &root);
    let limit = body.like(x, if x.dtype() == DType::F64 { 700.0 } else { 80.0 });
    let far = body.compare("GT", &size, &limit);
    (size, grown, far)
}

/// (e^|x| + e^-|x|) / 2.
pub(super) fn cosh(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let (size, grown, far) = half_exp(body, x);
    let e = body.un("stablehlo.exponential", &size);
    let half = body.like(x, 0.5);
    let (up, down) = (body.bin("stablehlo.multiply", &half, &e), body.bin("stablehlo.divide", &half, &e));
    let sum = body.bin("stablehlo.add", &up, &down);
    body.select(&far, &grown, &sum)
}

/// (t + t / (t + 1)) / 2 with t = e^|x| - 1, and x's sign.
pub(super) fn sinh(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let (size, grown, far) = half_exp(body, x);
    let t = body.un("stablehlo.exponential_minus_one", &size);
    let one = body.like(x, 1.0);
    let next = body.bin("stablehlo.add", &t, &one);
    let part = body.bin("stablehlo.divide", &t, &next);
    let sum = body.bin("stablehlo.add", &t, &part);
    let half = body.like(x, 0.5);
    let sum = body.bin("stablehlo.multiply", &half, &sum);
    let positive = body.select(&far, &grown, &sum);
    copysign(body, &positive, x)
}

/// log(1 + 2|x| / (1 - |x|)) / 2, and x's sign.
fn atanh(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let size = body.un("stablehlo.abs", x);
    let one = body.like(x, 1.0);
    let (twice, left) = (body.bin("stablehlo.add", &size, &size), body.bin("stablehlo.subtract", &one, &size));
    let ratio = body.bin("stablehlo.divide", &twice, &left);
    let log = body.un("stablehlo.log_plus_one", &ratio);
    let half = body.like(x, 0.5);
    let positive = body.bin("stablehlo.multiply", &half, &log);
    copysign(body, &positive, x)
}

/// x with the sign of another number.
pub(super) fn copysign(body: &mut Body<'_, '_>, x: &Val, sign: &Val) -> Val {
    let (word, top) = match x.dtype() {
        DType::F64 => (DType::U64, 1u64 << 63),
        _ => (DType::U32, 1 << 31),
    };
    let high = body.splat(Scalar::from_u64(word, top), x.shape());
    let low = body.splat(Scalar::from_u64(word, top - 1), x.shape());
    let (x_bits, sign) = (body.bits(x, word), body.bits(sign, word));
    let (size, sign) = (body.bin("stablehlo.and", &x_bits, &low), body.bin("stablehlo.and", &sign, &high));
    let joined = body.bin("stablehlo.or", &size, &sign);
    body.bits(&joined, x.dtype())
}

fn integer_unary(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    use UnaryOp::*;
    let d = x.dtype();
    let narrow = compute_dtype(d) != d;
    if narrow && matches!(op, PopulationCount | CountLeadingZeros) {
        // The bits above the value do not count.
        let bits = convert::zero_extend(body, x);
        let count = integer_unary(body, op, &bits)?;
        let above = body.like(&count, if op == PopulationCount { 0.0 } else { (8 - d.bits()) as f64 });
        let count = body.bin("stablehlo.subtract", &count, &above);
        return convert::convert(body, &count, d);
    }
    if narrow {
        let wide = convert::convert(body, x, compute_dtype(d))?;
        let y = integer_unary(body, op, &wide)?;
        return convert::convert(body, &y, d);
    }
    let name = match op {
        Neg => "stablehlo.negate",
        Not => "stablehlo.not",
        PopulationCount => "stablehlo.popcnt",
        CountLeadingZeros => "stablehlo.count_leading_zeros",
        Sign if d.is_signed() => "stablehlo.sign",
        Sign => {
            let zero = body.like(x, 0.0);
            let some = body.compare("NE", x, &zero);
            return Ok(body.convert(&some, d));
        }
        Abs if d.is_signed() => "stablehlo.abs",
        Abs => return Ok(x.clone()),
        _ => return missing(&op, d),
    };
    Ok(body.un(name, x))
}

/// f(x, y) of operands of one shape.
pub(super) fn binary(body: &mut Body<'_, '_>, op: BinaryOp, x: &Val, y: &Val) -> Result<Val> {
    use BinaryOp::*;
    let d = x.dtype();
    match op {
        _ if d.is_complex() => complex::binary(body, op, x, y),
        _ if d.is_bool() => {
            let name = match op {
                Add | Max | Or => "stablehlo.or",
                Mul | Min | And => "stablehlo.and",
                Sub | Xor => "stablehlo.xor",
                _ => return missing(&op, d),
            };
            Ok(body.bin(name, x, y))
        }
        _ if d.is_integer() => integer_binary(body, op, x, y),
        _ if !d.is_float() => missing(&op, d),
        Complex => {
            let part = d.to_complex().real();
            let (re, im) = (convert::convert(body, x, part)?, convert::convert(body, y, part)?);
            Ok(body.complex(&re, &im))
        }
        // These round at most once.
        Add | Sub | Mul | Div | Max | Min | Nextafter if native(d) => float_binary(body, op, x, y),
        _ => {
            let wide = compute_dtype(d);
            let (x, y) = (convert::convert(body, x, wide)?, convert::convert(body, y, wide)?);
            let z = float_binary(body, op, &x, &y)?;
            convert::convert(body, &z, d)
        }
    }
}

fn float_binary(body: &mut Body<'_, '_>, op: BinaryOp, x: &Val, y: &Val) -> Result<Val> {
    use BinaryOp::*;
    let name = match op {
        Add => "stablehlo.add",
        Sub => "stablehlo.subtract",
        Mul => "stablehlo.multiply",
        Div => "stablehlo.divide",
        Rem => "stablehlo.remainder",
        Pow => "stablehlo.power",
        Max => "stablehlo.maximum",
        Min => "stablehlo.minimum",
        Atan2 => "stablehlo.atan2",
        Nextafter => "chlo.next_after",
        Igamma | Igammac | Zeta | Polygamma => return special::binary(body, op, x, y),
        _ => return missing(&op, x.dtype()),
    };
    Ok(body.bin(name, x, y))
}

fn integer_binary(body: &mut Body<'_, '_>, op: BinaryOp, x: &Val, y: &Val) -> Result<Val> {
    use BinaryOp::*;
    let d = x.dtype();
    let wide = compute_dtype(d);
    if wide != d {
        let (x, y) = match op {
            ShiftLeft | ShiftRightLogical => (convert::zero_extend(body, x), convert::zero_extend(body, y)),
            // It repeats the top bit, whatever the type's sign.
            ShiftRightArithmetic => {
                let (x, y) = (convert::sign_extend(body, x), convert::zero_extend(body, y));
                (x, body.bits(&y, DType::I8))
            }
            _ => (convert::convert(body, x, wide)?, convert::convert(body, y, wide)?),
        };
        let z = integer_binary(body, op, &x, &y)?;
        return convert::convert(body, &z, d);
    }
    let name = match op {
        Add => "stablehlo.add",
        Sub => "stablehlo.subtract",
        Mul => "stablehlo.multiply",
        Div => "stablehlo.divide",
        Rem => "stablehlo.remainder",
        Pow => return integer_power(body, x, y),
        Max => "stablehlo.maximum",
        Min => "stablehlo.minimum",
        And => "stablehlo.and",
        Or => "stablehlo.or",
        Xor => "stablehlo.xor",
        ShiftLeft => "stablehlo.shift_left",
        ShiftRightArithmetic => "stablehlo.shift_right_arithmetic",
        ShiftRightLogical => "stablehlo.shift_right_logical",
        _ => return missing(&op, d),
    };
    Ok(body.bin(name, x, y))
}

/// x to the power y by repeated squaring, wrapping; compilers differ on large and on negative exponents. A negative power
/// is 1 / x**|y|, truncated, where 1 / 0 has all bits set.
fn integer_power(body: &mut Body<'_, '_>, x: &Val, y: &Val) -> Result<Val> {
    let d = x.dtype();
    let (zero, one) = (body.like(x, 0.0), body.like(x, 1.0));
    let results = control::loop_over(
        body,
        &[y.clone(), x.clone(), one.clone()],
        |body, now| {
            let zero = body.like(&now[0], 0.0);
            let left = body.compare("NE", &now[0], &zero);
            let axes: Vec<usize> = (0..left.shape().len()).collect();
            reduce::reduce(body, ReduceOp::Or, &left, &axes)
        },
        |body, now| {
            let [left, base, product] = [0, 1, 2].map(|i| &now[i]);
            let one = body.like(left, 1.0);
            let bit = body.bin("stablehlo.and", left, &one);
            let odd = body.compare("EQ", &bit, &one);
            let next = body.bin("stablehlo.multiply", product, base);
            let product = body.select(&odd, &next, product);
            let left = body.bin("stablehlo.shift_right_logical", left, &one);
            Ok(vec![left, body.bin("stablehlo.multiply", base, base), product])
        },
    )?;
    let power = &results[2];
    if d.is_unsigned() {
        return Ok(power.clone());
    }
    let ones = body.splat(Scalar::from_i64(d, -1), x.shape());
    let bit = body.bin("stablehlo.and", y, &one);
    let even = body.compare("EQ", &bit, &zero);
    let (is_one, is_minus_one, is_zero) =
        (body.compare("EQ", x, &one), body.compare("EQ", x, &ones), body.compare("EQ", x, &zero));
    let other = body.select(&is_zero, &ones, &zero);
    let turned = body.select(&even, &one, &ones);
    let other = body.select(&is_minus_one, &turned, &other);
    let inverse = body.select(&is_one, &one, &other);
    let negative = body.compare("LT", y, &zero);
    Ok(body.select(&negative, &inverse, power))
}

/// x compared with y, which has its shape.
pub(super) fn compare(body: &mut Body<'_, '_>, op: CompareOp, x: &Val, y: &Val) -> Result<Val> {
    use CompareOp::*;
    let d = x.dtype();
    if d.is_complex() {
        return Ok(complex::compare(body, op, x, y));
    }
    let wide = if native(d) { d } else { compute_dtype(d) };
    let (x, y) = (convert::convert(body, x, wide)?, convert::convert(body, y, wide)?);
    let (direction, total) = match op {
        Eq => ("EQ", false),
        Ne => ("NE", false),
        Lt => ("LT", false),
        Le => ("LE", false),
        Gt => ("GT", false),
        Ge => ("GE", false),
        LtTotal => ("LT", true),
        LeTotal => ("LE", true),
        EqTotal => ("EQ", true),
    };
    if total && matches!(d, DType::F8E4M3B11FNUZ | DType::F8E4M3FNUZ | DType::F8E5M2FNUZ) {
        // The NaN of these formats is what would be -0, and so comes before all numbers.
        let first = |body: &mut Body<'_, '_>, x: &Val| {
            let none = body.compare("NE", x, x);
            let minus = body.like(x, -f64::NAN);
            body.select(&none, &minus, x)
        };
        let (x, y) = (first(body, &x), first(body, &y));
        return Ok(body.compare_as("TOTALORDER", direction, &x, &y));
    }
    Ok(if total && d.is_float() {
        body.compare_as("TOTALORDER", direction, &x, &y)
    } else {
        body.compare(direction, &x, &y)
    })
}

fn select(body: &mut Body<'_, '_>, inputs: &[Val], ty: &Type) -> Result<Val> {
    let (which, cases) = (&inputs[0], &inputs[1..]);
    let cases: Vec<Val> = cases.iter().map(|c| body.spread(c, &ty.shape)).collect();
    if which.dtype().is_bool() && cases.len() == 2 {
        return Ok(body.select(which, &cases[1], &cases[0]));
    }
    let index = if which.dtype().size() < 4 { convert::convert(body, which, DType::I32)? } else { which.clone() };
    let mut result = cases[cases.len() - 1].clone();
    for (i, case) in cases[..cases.len() - 1].iter().enumerate().rev() {
        let at = body.like(&index, i as f64);
        let chosen = body.compare("LE", &index, &at);
        result = body.select(&chosen, case, &result);
    }
    Ok(result)
}

/// x**n by repeated multiplication, in the CPU engine's order.
fn integer_pow(body: &mut Body<'_, '_>, n: i32, x: &Val) -> Result<Val> {
    let d = x.dtype();
    let c = compute_dtype(d);
    if d.is_bool() || !d.is_number() {
        return missing(&Kind::IntegerPow(n), d);
    }
    if n < 0 && d.is_integer() {
        bail!(Type, "integer_pow with the negative exponent {n} needs an inexact dtype, not {d}");
    }
    let mut base = convert::convert(body, x, c)?;
    let one = body.splat(Scalar::one(c), x.shape());
    let (mut product, mut k) = (None, n.unsigned_abs());
    while k > 0 {
        if k & 1 == 1 {
            product = Some(match &product {
                None => base.clone(),
                Some(p) => body.bin("stablehlo.multiply", p, &base),
            });
        }
        k >>= 1;
        if k > 0 {
            base = body.bin("stablehlo.multiply", &base, &base);
        }
    }
    let power = match product {
        None => one,
        Some(p) if n < 0 => body.bin("stablehlo.divide", &one, &p),
        Some(p) => p,
    };
    convert::convert(body, &power, d)
}

fn divide_by(body: &mut Body<'_, '_>, division: Division, x: &Val) -> Val {
    let by = body.splat(Scalar::from_i64(x.dtype(), division.by), x.shape());
    match division.part {
        DivisionPart::Quotient => body.bin("stablehlo.divide", x, &by),
        DivisionPart::Remainder => body.bin("stablehlo.remainder", x, &by),
        // The divisor of these is positive: what a truncated division leaves has the dividend's sign.
        part => {
            let left = body.bin("stablehlo.remainder", x, &by);
            let zero = body.like(x, 0.0);
            let below = body.compare("LT", &left, &zero);
            if part == DivisionPart::Modulo {
                let moved = body.bin("stablehlo.add", &left, &by);
                return body.select(&below, &moved, &left);
            }
            let quotient = body.bin("stablehlo.divide", x, &by);
            let below = body.convert(&below, x.dtype());
            body.bin("stablehlo.subtract", &quotient, &below)
        }
    }
}
