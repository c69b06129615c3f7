//! Real functions of f64: the system's mathematics library where it has them.
//!
//! The `const F: bool` parameters mirror `single`, so that kernels are written once for both.

use crate::kernel::{Kernel, plain1};

/// e^x.
#[inline(always)]
pub fn exp<const F: bool>(x: f64) -> f64 {
    x.exp()
}

/// 2^x.
#[inline(always)]
pub fn exp2<const F: bool>(x: f64) -> f64 {
    x.exp2()
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<const F: bool>(x: f64) -> f64 {
    x.exp_m1()
}

/// ln x.
#[inline(always)]
pub fn log<const F: bool>(x: f64) -> f64 {
    x.ln()
}

/// ln(1 + x).
#[inline(always)]
pub fn log1p<const F: bool>(x: f64) -> f64 {
    x.ln_1p()
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh<const F: bool>(x: f64) -> f64 {
    x.tanh()
}

/// The error function.
#[inline(always)]
pub fn erf<const F: bool>(x: f64) -> f64 {
    libm::erf(x)
}

/// The inverse error function (Giles, double precision).
#[inline(always)]
pub fn erf_inv<const F: bool>(x: f64) -> f64 {
    super::special::erf_inv(x)
}

/// The loop of sine.
pub fn sin_kernel() -> Kernel {
    plain1!(x: f64 => f64, x.sin())
}

/// The loop of cosine.
pub fn cos_kernel() -> Kernel {
    plain1!(x: f64 => f64, x.cos())
}

macro_rules! system {
    ($($(#[$doc:meta])* $name:ident = $f:path;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(x: f64) -> f64 {
                $f(x)
            }
        )*
    };
}
system! {
    /// Cube root.
    cbrt = f64::cbrt;
    /// Tangent.
    tan = f64::tan;
    /// Inverse sine.
    asin = f64::asin;
    /// Inverse cosine.
    acos = f64::acos;
    /// Inverse tangent.
    atan = f64::atan;
    /// Hyperbolic sine.
    sinh = f64::sinh;
    /// Hyperbolic cosine.
    cosh = f64::cosh;
    /// Inverse hyperbolic sine.
    asinh = libm::asinh;
    /// Inverse hyperbolic tangent.
    atanh = libm::atanh;
    /// Complementary error function.
    erfc = libm::erfc;
    /// Nearest integer, ties away from zero.
    round_away = f64::round;
}

/// Inverse hyperbolic cosine; NaN below 1.
pub fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// x to the power y.
pub fn pow(x: f64, y: f64) -> f64 {
    x.powf(y)
}

/// Angle of the point (x, y).
pub fn atan2(y: f64, x: f64) -> f64 {
    y.atan2(x)
}

/// Larger of two; NaN wins, and +0 is larger than -0.
#[inline(always)]
pub fn max(x: f64, y: f64) -> f64 {
    let m = if x > y || x.is_nan() { x } else { y };
    if x == y { f64::from_bits(x.to_bits() & y.to_bits()) } else { m }
}

/// Smaller of two; NaN wins, and -0 is smaller than +0.
#[inline(always)]
pub fn min(x: f64, y: f64) -> f64 {
    let m = if x < y || x.is_nan() { x } else { y };
    if x == y { f64::from_bits(x.to_bits() | y.to_bits()) } else { m }
}

/// The float after x in y's direction.
pub fn nextafter(x: f64, y: f64) -> f64 {
    libm::nextafter(x, y)
}

/// An integer that orders like IEEE's total order.
#[inline(always)]
pub fn total_key(x: f64) -> i64 {
    let b = x.to_bits() as i64;
    b ^ ((b >> 63) as u64 >> 1) as i64
}

/// Rounds to a float of `p & 0xffff_ffff` exponent bits and `p >> 32` mantissa bits.
#[inline(always)]
pub fn reduce_precision(x: f64, p: u64) -> f64 {
    let (exponent, mantissa) = (p as u32, (p >> 32) as u32);
    if x.is_nan() {
        return x;
    }
    let mut bits = x.to_bits();
    if mantissa < 52 {
        let drop = 52 - mantissa;
        let last = (bits >> drop) & 1;
        bits = bits.wrapping_add((1 << (drop - 1)) - 1 + last) & !((1 << drop) - 1);
    }
    if exponent < 11 {
        let bias = (1i32 << (exponent - 1)) - 1;
        let e = (bits >> 52 & 0x7ff) as i32 - 1023;
        if e > bias {
            bits = (bits & 1 << 63) | 0x7ff << 52;
        } else if e <= -bias {
            bits &= 1 << 63;
        }
    }
    f64::from_bits(bits)
}
