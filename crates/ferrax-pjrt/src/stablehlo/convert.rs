//! Conversions between dtypes, and of bits.
//!
//! What rounds, rounds once, to the nearest. Floats to integers truncate and saturate and NaN gives 0; integers wrap;
//! anything to `bool` is `x != 0`; complex to real drops the imaginary part. `stablehlo.convert` is used where it can do
//! nothing else than that.

use super::body::{Body, Val};
use super::elementwise::compute_dtype;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::Type;
use ferrax_loops::kind::highest;

/// x as another dtype.
pub(super) fn convert(body: &mut Body<'_, '_>, x: &Val, to: DType) -> Result<Val> {
    let from = x.dtype();
    if from == to {
        return Ok(x.clone());
    }
    if from.is_key() || to.is_key() || from == DType::Float0 || to == DType::Float0 {
        bail!(Type, "cannot convert {from} to {to}");
    }
    Ok(match (from, to) {
        _ if from.is_complex() && to.is_complex() => body.convert(x, to),
        (_, DType::Bool) if from.is_complex() => {
            let zero = body.like(x, 0.0);
            body.compare("NE", x, &zero)
        }
        _ if from.is_complex() => {
            let re = body.real(x);
            return convert(body, &re, to);
        }
        _ if to.is_complex() => {
            let re = convert(body, x, to.real())?;
            let im = body.like(&re, 0.0);
            body.complex(&re, &im)
        }
        (_, DType::Bool) => {
            let wide = convert(body, x, compute_dtype(from))?;
            let zero = body.like(&wide, 0.0);
            body.compare("NE", &wide, &zero)
        }
        _ if from.is_float() && to.is_integer() => {
            let wide = widened(body, x);
            saturate(body, &wide, to)
        }
        _ if from.is_float() && to.is_float() => float(body, x, to),
        _ if to.is_float() => from_integer(body, x, to),
        _ => body.convert(x, to),
    })
}

/// A narrow float as f32; others as they are.
fn widened(body: &mut Body<'_, '_>, x: &Val) -> Val {
    body.convert(x, compute_dtype(x.dtype()))
}

fn float(body: &mut Body<'_, '_>, x: &Val, to: DType) -> Val {
    let wide = widened(body, x);
    if compute_dtype(to) == to {
        return body.convert(&wide, to);
    }
    let single = if wide.dtype() == DType::F64 { to_odd(body, &wide) } else { wide };
    narrowed(body, &single, to)
}

/// f32 to a narrower float.
fn narrowed(body: &mut Body<'_, '_>, x: &Val, to: DType) -> Val {
    body.convert(x, to)
}

/// The f32 near an f64 that every narrower format rounds as it does the f64: of the two around it the one with an odd last
/// bit, where it is none.
fn to_odd(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let near = body.convert(x, DType::F32);
    let back = body.convert(&near, DType::F64);
    let (size, whole) = (body.un("stablehlo.abs", &back), body.un("stablehlo.abs", x));
    let beyond = body.compare("GT", &size, &whole);
    let other = body.compare("NE", &back, x);
    let (beyond, other) = (body.convert(&beyond, DType::U32), body.convert(&other, DType::U32));
    let bits = body.bits(&near, DType::U32);
    let below = body.bin("stablehlo.subtract", &bits, &beyond);
    let odd = body.bin("stablehlo.or", &below, &other);
    body.bits(&odd, DType::F32)
}

/// An integer or `bool` as a float.
fn from_integer(body: &mut Body<'_, '_>, x: &Val, to: DType) -> Val {
    if compute_dtype(to) == to {
        return body.convert(x, to);
    }
    let half = matches!(to, DType::F16 | DType::BF16);
    let single = match x.dtype() {
        DType::I32 | DType::U32 if half => odd_of_word(body, x),
        DType::U64 if half => odd_of_long(body, x),
        DType::I64 if half => {
            let size = body.un("stablehlo.abs", x);
            let size = body.bits(&size, DType::U64);
            let size = odd_of_long(body, &size);
            let minus = body.un("stablehlo.negate", &size);
            let zero = body.like(x, 0.0);
            let negative = body.compare("LT", x, &zero);
            body.select(&negative, &minus, &size)
        }
        _ => body.convert(x, DType::F32),
    };
    narrowed(body, &single, to)
}

/// A float near a 32-bit integer that a half format rounds as it does the integer: bits that f32 does not hold are one
/// bit that says whether there are any.
fn odd_of_word(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let d = x.dtype();
    let low = body.like(x, 255.0);
    let low = body.bin("stablehlo.and", x, &low);
    let kept = body.bin("stablehlo.subtract", x, &low);
    let zero = body.like(x, 0.0);
    let some = body.compare("NE", &low, &zero);
    let some = body.convert(&some, d);
    let by = body.like(x, 8.0);
    let some = body.bin("stablehlo.shift_left", &some, &by);
    let sticky = body.bin("stablehlo.or", &kept, &some);
    let limit = body.like(x, f64::from(1 << 24));
    let mut small = body.compare("LT", x, &limit);
    if d.is_signed() {
        let limit = body.like(x, -f64::from(1 << 24));
        let above = body.compare("GT", x, &limit);
        small = body.bin("stablehlo.and", &small, &above);
    }
    let exact = body.select(&small, x, &sticky);
    body.convert(&exact, DType::F32)
}

/// As `odd_of_word`, for u64.
fn odd_of_long(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let unused = body.un("stablehlo.count_leading_zeros", x);
    let enough = body.like(x, 40.0);
    let most = body.bin("stablehlo.maximum", &unused, &enough);
    let drop = body.bin("stablehlo.subtract", &most, &unused);
    let kept = body.bin("stablehlo.shift_right_logical", x, &drop);
    let kept = body.bin("stablehlo.shift_left", &kept, &drop);
    let some = body.compare("NE", &kept, x);
    let some = body.convert(&some, DType::U64);
    let some = body.bin("stablehlo.shift_left", &some, &drop);
    let odd = body.bin("stablehlo.or", &kept, &some);
    body.convert(&odd, DType::F32)
}

/// f32 or f64 to an integer.
fn saturate(body: &mut Body<'_, '_>, x: &Val, to: DType) -> Val {
    let number = body.compare("EQ", x, x);
    let zero = body.like(x, 0.0);
    let x = body.select(&number, x, &zero);
    let digits = if x.dtype() == DType::F64 { 53 } else { 24 };
    let value_bits = to.bits() - usize::from(to.is_signed());
    let wide = compute_dtype(to);
    let low = body.like(&x, if to.is_signed() { -(2f64.powi(value_bits as i32)) } else { 0.0 });
    let top = 2f64.powi(value_bits as i32);
    // The largest float below the first power of two that the integer does not hold.
    let below = if value_bits > digits { top - 2f64.powi((value_bits - digits) as i32) } else { top - 1.0 };
    let high = body.like(&x, below);
    let inside = body.op("stablehlo.clamp", &[&low, &x, &high], "", &x.ty);
    let y = body.convert(&inside, wide);
    let y = body.convert(&y, to);
    if value_bits <= digits {
        return y;
    }
    let top = body.like(&x, top);
    let above = body.compare("GE", &x, &top);
    let most = body.splat(highest(to), x.shape());
    body.select(&above, &most, &y)
}

/// A sub-byte integer's value bits as an unsigned byte.
pub(super) fn zero_extend(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let d = x.dtype();
    let byte = body.convert(x, compute_dtype(d));
    let byte = if d.is_signed() { body.bits(&byte, DType::U8) } else { byte };
    let mask = body.like(&byte, f64::from((1 << d.bits()) - 1));
    body.bin("stablehlo.and", &byte, &mask)
}

/// A sub-byte integer's value bits as a signed byte, whatever its sign.
pub(super) fn sign_extend(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let bits = zero_extend(body, x);
    let bits = body.bits(&bits, DType::I8);
    let by = body.like(&bits, (8 - x.dtype().bits()) as f64);
    let high = body.bin("stablehlo.shift_left", &bits, &by);
    body.bin("stablehlo.shift_right_arithmetic", &high, &by)
}

/// The bits of x as another dtype; a change of width adds or removes a minor axis. `bool` has the bits of a byte, complex
/// numbers those of their real parts and then of their imaginary parts.
pub(super) fn bitcast(body: &mut Body<'_, '_>, x: &Val, ty: &Type) -> Result<Val> {
    let (from, to) = (x.dtype(), ty.dtype);
    let byte = |d: DType| matches!(d, DType::Bool | DType::Float0);
    if from == to || (byte(from) && byte(to)) {
        return Ok(Val { name: x.name, ty: ty.clone() });
    }
    if byte(from) {
        let bytes = body.convert(x, DType::U8);
        return bitcast(body, &bytes, ty);
    }
    if byte(to) {
        let bytes = bitcast(body, x, &Type::new(DType::U8, &ty.shape))?;
        let zero = body.like(&bytes, 0.0);
        let some = body.compare("NE", &bytes, &zero);
        return Ok(Val { name: some.name, ty: ty.clone() });
    }
    if from.is_complex() {
        let (mut pair, rank) = (x.shape().to_vec(), x.shape().len());
        pair.push(1);
        let (re, im) = (body.real(x), body.imag(x));
        let (re, im) = (body.reshape(&re, &pair), body.reshape(&im, &pair));
        let parts = body.concat(&[&re, &im], rank);
        return bitcast_parts(body, &parts, ty);
    }
    if to.is_complex() {
        let mut pair = ty.shape.to_vec();
        pair.push(2);
        let parts = bitcast_parts(body, x, &Type::new(to.real(), &pair))?;
        let mut one = pair.clone();
        one[pair.len() - 1] = 1;
        let start = |at: usize| {
            let mut start = vec![0; pair.len()];
            start[pair.len() - 1] = at;
            start
        };
        let (re, im) = (body.slice(&parts, &start(0), &one), body.slice(&parts, &start(1), &one));
        let (re, im) = (body.reshape(&re, &ty.shape), body.reshape(&im, &ty.shape));
        return Ok(body.complex(&re, &im));
    }
    Ok(body.op("stablehlo.bitcast_convert", &[x], "", ty))
}

/// A bitcast whose operand or result has an axis of two real parts behind the axes that the node speaks of: the minor axes
/// are first brought to what one change of width adds or removes.
fn bitcast_parts(body: &mut Body<'_, '_>, x: &Val, ty: &Type) -> Result<Val> {
    if x.dtype() == ty.dtype {
        return Ok(body.reshape(x, &ty.shape));
    }
    let (a, b) = (x.dtype().bits(), ty.dtype.bits());
    let mut shape = x.shape().to_vec();
    if a > b {
        shape.push(a / b);
        let y = bitcast(body, x, &Type::new(ty.dtype, &shape))?;
        return Ok(body.reshape(&y, &ty.shape));
    }
    let mut last = ty.shape.to_vec();
    if b > a {
        last.push(b / a);
    }
    let x = body.reshape(x, &last);
    bitcast(body, &x, ty)
}
