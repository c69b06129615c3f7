//! Real functions of f64. Those with a `const F: bool` mirror `single`, so that kernels are written once for both; the
//! exponentials, the logarithm and the hyperbolic tangent vectorize, the rest is the system's mathematics library.
//!
//! Sources: the Taylor polynomial of e^x with Cody and Waite's reduction; FreeBSD's `e_log.c` (Sun Microsystems, 1993)
//! for the logarithm.

use crate::kernel::{Kernel, fma64 as fma, plain1};

/// Adding and subtracting this rounds to an integer, whose bits are then the low mantissa bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;

/// 2^n for an integer n in the normal range; garbage in, garbage out.
#[inline(always)]
fn pow2(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}

/// `p * 2^n` for n in -1100..=1024, rounded once.
#[inline(always)]
fn scale(p: f64, n: i64) -> f64 {
    let half = n >> 1;
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

#[inline(always)]
fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// exp(r) - 1 - r over r², for |r| ≤ ln(2)/2.
#[inline(always)]
fn exp_tail<const F: bool>(r: f64) -> f64 {
    let mut p = 1.0 / 6_227_020_800.0;
    for c in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ] {
        p = fma::<F>(p, r, c);
    }
    p
}

/// Splits x = n ln 2 + r.
#[inline(always)]
fn split_ln2<const F: bool>(x: f64) -> (i64, f64) {
    let shifted = fma::<F>(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<F>(n, -LN2_LO, fma::<F>(n, -LN2_HI, x));
    ((shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64), r)
}

/// e^x.
#[inline(always)]
pub fn exp<const F: bool>(x: f64) -> f64 {
    let (n, r) = split_ln2::<F>(clamp(x, -746.0, 709.8));
    scale(fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0, n)
}

/// 2^x.
#[inline(always)]
pub fn exp2<const F: bool>(x: f64) -> f64 {
    let x = clamp(x, -1076.0, 1024.0);
    let shifted = x + ROUND;
    let r = (x - (shifted - ROUND)) * std::f64::consts::LN_2;
    let n = (shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    scale(fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0, n)
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<const F: bool>(x: f64) -> f64 {
    let (n, r) = split_ln2::<F>(clamp(x, -80.0, 709.8));
    let half = pow2(n.wrapping_sub(1));
    let p = fma::<F>(exp_tail::<F>(r), r * r, r);
    let y = fma::<F>(half, p, half - 0.5) * 2.0;
    // Below the last bit of 1 + x the result is x, subnormal numbers included.
    if x.abs() < 1e-17 { x } else { y }
}

/// ln x.
#[inline(always)]
pub fn log<const F: bool>(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let bits = scaled.to_bits() as i64;
    // The mantissa is brought to sqrt(1/2)..sqrt(2), less 1.
    let e = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    let f = f64::from_bits(bits.wrapping_sub(e << 52) as u64) - 1.0;
    // An integer of a few bits, as a float.
    let e = f64::from_bits((ROUND.to_bits() as i64).wrapping_add(e) as u64) - ROUND - if tiny { 54.0 } else { 0.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let mut p = 1.479_819_860_511_658_591e-1;
    for c in [
        1.531_383_769_920_937_332e-1,
        1.818_357_216_161_805_012e-1,
        2.222_219_843_214_978_396e-1,
        2.857_142_874_366_239_149e-1,
        3.999_999_999_940_941_908e-1,
        6.666_666_666_666_735_130e-1,
    ] {
        p = fma::<F>(p, z, c);
    }
    let half = 0.5 * f * f;
    let y = fma::<F>(s, fma::<F>(p, z, half), e * LN2_LO);
    let y = fma::<F>(e, LN2_HI, f - (half - y));
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x > 0.0 { y } else { f64::NAN };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// ln(1 + x).
#[inline(always)]
pub fn log1p<const F: bool>(x: f64) -> f64 {
    x.ln_1p()
}

/// Hyperbolic tangent; at most 1 in magnitude: m / (m + 2) for m = e^2|x| - 1, which is 1 from 19.1 on.
#[inline(always)]
pub fn tanh<const F: bool>(x: f64) -> f64 {
    let a = x.abs();
    let a = if a > 19.1 { 19.1 } else { a };
    let (n, r) = split_ln2::<F>(a + a);
    let power = pow2(n);
    // Without the tail nothing is rounded where terms cancel.
    let m = fma::<F>(power, exp_tail::<F>(r) * (r * r), fma::<F>(power, r, power - 1.0));
    let d = m + 2.0;
    let (q, lost) = (1.0 / d, m - (d - 2.0));
    let t = m * q;
    // One step of Newton's division, which also takes in what the sum lost.
    fma::<F>(fma::<F>(-t, lost, fma::<F>(-t, d, m)), q, t).copysign(x)
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
