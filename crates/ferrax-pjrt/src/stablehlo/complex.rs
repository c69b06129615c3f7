//! Functions of complex numbers.
//!
//! Those that the dialect has are left to it; max, min and comparisons order lexicographically, real parts first.

use super::body::{Body, Val};
use super::convert;
use super::elementwise;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Type, UnaryOp};

pub(super) fn unary(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    use UnaryOp::*;
    let name = match op {
        Neg => "stablehlo.negate",
        Exp => "stablehlo.exponential",
        Expm1 => "stablehlo.exponential_minus_one",
        Log => "stablehlo.log",
        Rsqrt => "stablehlo.rsqrt",
        Tan => "stablehlo.tan",
        Tanh => "stablehlo.tanh",
        Logistic => "stablehlo.logistic",
        Abs => return Ok(body.op("stablehlo.abs", &[x], "", &Type::new(x.dtype().real(), x.shape()))),
        Sqrt => return Ok(signed(body, "stablehlo.sqrt", x, Signs::Imaginary)),
        Asin => return Ok(signed(body, "chlo.asin", x, Signs::Imaginary)),
        Acos => return Ok(signed(body, "chlo.acos", x, Signs::MinusImaginary)),
        Atan => return Ok(signed(body, "chlo.atan", x, Signs::Real)),
        Asinh => return Ok(signed(body, "chlo.asinh", x, Signs::Real)),
        Acosh => return Ok(signed(body, "chlo.acosh", x, Signs::Imaginary)),
        Atanh => return Ok(signed(body, "chlo.atanh", x, Signs::Imaginary)),
        Sin | Cos | Sinh | Cosh => return Ok(waves(body, op, x)),
        Log1p => return Ok(log1p(body, x)),
        Sign => return Ok(sign(body, x)),
        Cbrt => return Ok(cbrt(body, x)),
        Exp2 => return exp2(body, x),
        Real => return Ok(body.real(x)),
        Imag => return Ok(body.imag(x)),
        Conj => {
            let (re, im) = (body.real(x), body.imag(x));
            let im = body.un("stablehlo.negate", &im);
            return Ok(body.complex(&re, &im));
        }
        IsFinite => {
            let (re, im) = (body.real(x), body.imag(x));
            let re = elementwise::unary(body, op, &re)?;
            let im = elementwise::unary(body, op, &im)?;
            return Ok(body.bin("stablehlo.and", &re, &im));
        }
        _ => bail!(NotImplemented, "the XLA engine has no {op:?} for {}", x.dtype()),
    };
    Ok(body.un(name, x))
}

pub(super) fn binary(body: &mut Body<'_, '_>, op: BinaryOp, x: &Val, y: &Val) -> Result<Val> {
    use BinaryOp::*;
    let name = match op {
        Add => "stablehlo.add",
        Sub => "stablehlo.subtract",
        Mul => "stablehlo.multiply",
        Div => "stablehlo.divide",
        Pow => return Ok(pow(body, x, y)),
        Max => {
            let above = less(body, y, x);
            return Ok(body.select(&above, x, y));
        }
        Min => {
            let below = less(body, x, y);
            return Ok(body.select(&below, x, y));
        }
        _ => bail!(NotImplemented, "the XLA engine has no {op:?} for {}", x.dtype()),
    };
    Ok(body.bin(name, x, y))
}

pub(super) fn compare(body: &mut Body<'_, '_>, op: CompareOp, x: &Val, y: &Val) -> Val {
    use CompareOp::*;
    match op {
        Eq | EqTotal => body.compare("EQ", x, y),
        Ne => body.compare("NE", x, y),
        Lt | LtTotal => less(body, x, y),
        Gt => less(body, y, x),
        Le | LeTotal => {
            let beyond = less(body, y, x);
            body.un("stablehlo.not", &beyond)
        }
        Ge => {
            let below = less(body, x, y);
            body.un("stablehlo.not", &below)
        }
    }
}

/// Whether x comes before y.
pub(super) fn less(body: &mut Body<'_, '_>, x: &Val, y: &Val) -> Val {
    let (xr, yr) = (body.real(x), body.real(y));
    let (xi, yi) = (body.imag(x), body.imag(y));
    let first = body.compare("LT", &xr, &yr);
    let same = body.compare("EQ", &xr, &yr);
    let second = body.compare("LT", &xi, &yi);
    let second = body.bin("stablehlo.and", &same, &second);
    body.bin("stablehlo.or", &first, &second)
}

/// Which part of a function's result has the sign of which part of its argument: on a branch cut the sign of zero tells
/// its sides apart, and compilers do not look at it.
enum Signs {
    Real,
    Imaginary,
    MinusImaginary,
}

fn signed(body: &mut Body<'_, '_>, name: &str, x: &Val, signs: Signs) -> Val {
    let y = body.un(name, x);
    let (re, im) = (body.real(&y), body.imag(&y));
    if let Signs::Real = signs {
        let sign = body.real(x);
        let re = elementwise::copysign(body, &re, &sign);
        return body.complex(&re, &im);
    }
    let mut sign = body.imag(x);
    if let Signs::MinusImaginary = signs {
        sign = body.un("stablehlo.negate", &sign);
    }
    let im = elementwise::copysign(body, &im, &sign);
    body.complex(&re, &im)
}

/// Sine and cosine of x + iy from those of x and the hyperbolic ones of y; the hyperbolic ones the other way round. A factor
/// that is 0 with its argument stays 0 where the other is infinite.
fn waves(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Val {
    let (re, im) = (body.real(x), body.imag(x));
    let hyperbolic = matches!(op, UnaryOp::Sinh | UnaryOp::Cosh);
    let (turn, grow) = if hyperbolic { (&im, &re) } else { (&re, &im) };
    let (sin, cos) = (body.un("stablehlo.sine", turn), body.un("stablehlo.cosine", turn));
    let (sinh, cosh) = (elementwise::sinh(body, grow), elementwise::cosh(body, grow));
    let zero = body.like(turn, 0.0);
    let straight = body.compare("EQ", turn, &zero);
    let mut times = |wave: &Val, growth: &Val, odd: bool| {
        let product = body.bin("stablehlo.multiply", wave, growth);
        if odd { body.select(&straight, wave, &product) } else { product }
    };
    match op {
        UnaryOp::Sin => {
            let (re, im) = (times(&sin, &cosh, true), times(&cos, &sinh, false));
            body.complex(&re, &im)
        }
        UnaryOp::Sinh => {
            let (re, im) = (times(&cos, &sinh, false), times(&sin, &cosh, true));
            body.complex(&re, &im)
        }
        UnaryOp::Cosh => {
            let (re, im) = (times(&cos, &cosh, false), times(&sin, &sinh, true));
            body.complex(&re, &im)
        }
        _ => {
            let (re, im) = (times(&cos, &cosh, false), times(&sin, &sinh, true));
            let im = body.un("stablehlo.negate", &im);
            body.complex(&re, &im)
        }
    }
}

/// x / |x|, and x where that is 0. Parts are brought near 1 first, so that nothing overflows or vanishes.
fn sign(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let (re, im) = (body.real(x), body.imag(x));
    let (a, b) = (body.un("stablehlo.abs", &re), body.un("stablehlo.abs", &im));
    let most = body.bin("stablehlo.maximum", &a, &b);
    let (zero, one, infinity) = (body.like(&re, 0.0), body.like(&re, 1.0), body.like(&re, f64::INFINITY));
    let some = body.compare("GT", &most, &zero);
    let finite = body.compare("LT", &most, &infinity);
    let usable = body.bin("stablehlo.and", &some, &finite);
    let scale = body.select(&usable, &most, &one);
    let (re, im) = (body.bin("stablehlo.divide", &re, &scale), body.bin("stablehlo.divide", &im, &scale));
    let z = body.complex(&re, &im);
    let size = body.op("stablehlo.abs", &[&z], "", &re.ty);
    let (re, im) = (body.bin("stablehlo.divide", &re, &size), body.bin("stablehlo.divide", &im, &size));
    let turned = body.complex(&re, &im);
    let none = body.compare("EQ", &most, &zero);
    body.select(&none, x, &turned)
}

/// log(1 + x), near 0 by the square of |1 + x|, less 1, which loses no digits.
fn log1p(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let far = body.un("stablehlo.log_plus_one", x);
    let (re, im) = (body.real(x), body.imag(x));
    let two = body.like(&re, 2.0);
    let more = body.bin("stablehlo.add", &two, &re);
    let (a, b) = (body.bin("stablehlo.multiply", &re, &more), body.bin("stablehlo.multiply", &im, &im));
    let square = body.bin("stablehlo.add", &a, &b);
    let log = body.un("stablehlo.log_plus_one", &square);
    let half = body.like(&re, 0.5);
    let near = body.bin("stablehlo.multiply", &half, &log);
    let mut small = |part: &Val| {
        let size = body.un("stablehlo.abs", part);
        body.compare("LT", &size, &half)
    };
    let (small_re, small_im) = (small(&re), small(&im));
    let small = body.bin("stablehlo.and", &small_re, &small_im);
    let (far_re, far_im) = (body.real(&far), body.imag(&far));
    let log = body.select(&small, &near, &far_re);
    body.complex(&log, &far_im)
}

/// x ** y, where 0 to a power with a positive real part is 0.
fn pow(body: &mut Body<'_, '_>, x: &Val, y: &Val) -> Val {
    let power = body.bin("stablehlo.power", x, y);
    let zero = body.like(x, 0.0);
    let none = body.compare("EQ", x, &zero);
    let exponent = body.real(y);
    let low = body.like(&exponent, 0.0);
    let positive = body.compare("GT", &exponent, &low);
    let vanishes = body.bin("stablehlo.and", &none, &positive);
    body.select(&vanishes, &zero, &power)
}

/// The number with this size and angle.
fn polar(body: &mut Body<'_, '_>, size: &Val, angle: &Val) -> Val {
    let (cos, sin) = (body.un("stablehlo.cosine", angle), body.un("stablehlo.sine", angle));
    let (re, im) = (body.bin("stablehlo.multiply", size, &cos), body.bin("stablehlo.multiply", size, &sin));
    body.complex(&re, &im)
}

/// The principal cube root.
fn cbrt(body: &mut Body<'_, '_>, x: &Val) -> Val {
    let (re, im) = (body.real(x), body.imag(x));
    let size = body.op("stablehlo.abs", &[x], "", &re.ty);
    let size = elementwise::cbrt(body, &size);
    let angle = body.bin("stablehlo.atan2", &im, &re);
    let three = body.like(&re, 3.0);
    let angle = body.bin("stablehlo.divide", &angle, &three);
    let root = polar(body, &size, &angle);
    let zero = body.like(&size, 0.0);
    let none = body.compare("EQ", &size, &zero);
    body.select(&none, x, &root)
}

/// 2^x; that of single precision in double precision, whose angle is right for large imaginary parts too.
fn exp2(body: &mut Body<'_, '_>, x: &Val) -> Result<Val> {
    let wide = convert::convert(body, x, DType::C128)?;
    let (re, im) = (body.real(&wide), body.imag(&wide));
    let size = elementwise::exp2(body, &re);
    let log2 = body.like(&im, std::f64::consts::LN_2);
    let angle = body.bin("stablehlo.multiply", &im, &log2);
    let turned = polar(body, &size, &angle);
    let zero = body.like(&im, 0.0);
    let real = body.compare("EQ", &im, &zero);
    let straight = body.complex(&size, &im);
    let power = body.select(&real, &straight, &turned);
    convert::convert(body, &power, x.dtype())
}
