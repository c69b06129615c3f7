//! Real functions of f32. Those with a `const F: bool` vectorize; `F` says whether multiply-add is fused.
//!
//! Errors stay below 2.5 ulp. Many go through the functions of double precision, with as many digits as they need: those round
//! correctly but for rare ties.

use crate::math::{arcs, bessel, errors, gamma, hyperbolic, incomplete, powers, special};
use crate::simd::fma;
use ferrax_loops::coefficients::{ERF_FAR, ERF_INV_CENTRAL, ERF_INV_TAIL, ERF_NEAR, single};

/// Adding and subtracting this rounds to an integer, whose bits are then the low mantissa bits.
const ROUND: f32 = 12_582_912.0;
const LN2_HI: f32 = 0.693_359_375;
const LN2_LO: f32 = -2.121_944_4e-4;

/// 2^n for an integer n in the normal range; garbage in, garbage out.
#[inline(always)]
fn pow2(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `p * 2^n` for n in -150..=128, rounded once, where p is from 0.7 to 1.5. Subnormal results are put together as bits, rounded by
/// a sum with 1: an operation that gives one takes processors a hundred times as long as any other.
#[inline(always)]
pub(super) fn scale(p: f32, n: i32) -> f32 {
    let low = (n < -125) & (p < 2.0);
    let kept = if low { 0 } else { n };
    let half = kept >> 1;
    let normal = p * pow2(half) * pow2(kept.wrapping_sub(half));
    // 2^126 times the result, and what it is where that is a number from 1 on.
    let q = p * pow2(if low { n.wrapping_add(126) } else { 0 });
    let least = f32::from_bits(p.to_bits().wrapping_sub(126 << 23));
    let tiny = f32::from_bits((q + 1.0).to_bits().wrapping_sub(1f32.to_bits()));
    let low_result = if q < 1.0 { tiny } else { least };
    if low { low_result } else { normal }
}

#[inline(always)]
fn clamp(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// A polynomial with these coefficients, the highest power first.
#[inline(always)]
fn horner<const F: bool, const N: usize>(coefficients: [f32; N], x: f32) -> f32 {
    let mut p = coefficients[0];
    for c in &coefficients[1..] {
        p = fma::<F>(p, x, *c);
    }
    p
}

/// exp(r) - 1 - r over r², for |r| ≤ ln(2)/2.
#[inline(always)]
fn exp_tail<const F: bool>(r: f32) -> f32 {
    let mut p = 1.987_569_15e-4;
    for c in [1.398_199_950_7e-3, 8.333_451_907_3e-3, 4.166_579_589_4e-2, 1.666_666_545_9e-1, 5.000_000_120_1e-1] {
        p = fma::<F>(p, r, c);
    }
    p
}

/// Splits x = n ln 2 + r.
#[inline(always)]
fn split_ln2<const F: bool>(x: f32) -> (i32, f32) {
    let shifted = fma::<F>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<F>(n, -LN2_LO, fma::<F>(n, -LN2_HI, x));
    ((shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32), r)
}

/// e^x.
#[inline(always)]
pub fn exp<const F: bool>(x: f32) -> f32 {
    let (n, r) = split_ln2::<F>(clamp(x, NOTHING, 88.8));
    let p = fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0;
    scale(p, n)
}

/// |x| up to which e^x is a normal number.
const NORMAL: f32 = 87.0;
/// From here down e^x is 0.
const NOTHING: f32 = -104.0;

/// e^x of a tile, with the bits of `exp`: the power of two goes straight to the exponent unless a lane is far. What is left of a
/// softmax's mask is not: it is so low that nothing is left of it.
///
/// # Safety
/// None; it is called like functions that have some.
#[inline(always)]
pub unsafe fn exp_all<const F: bool, const W: bool, const N: usize>(x: &[f32; N], o: &mut [f32; N]) {
    let mut far = false;
    for i in 0..N {
        let (n, r) = split_ln2::<F>(x[i]);
        let p = fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0;
        let (nothing, y) = (x[i] <= NOTHING, f32::from_bits(p.to_bits().wrapping_add((n as u32) << 23)));
        o[i] = if nothing { 0.0 } else { y };
        // As bits, NaN is far too.
        far |= !nothing & (x[i].abs().to_bits() > NORMAL.to_bits());
    }
    if far {
        for i in 0..N {
            o[i] = exp::<F>(x[i]);
        }
    }
}
super::logistic_tile!(f32, exp);

/// 2^x.
#[inline(always)]
pub fn exp2<const F: bool>(x: f32) -> f32 {
    let x = clamp(x, -150.0, 128.0);
    let shifted = x + ROUND;
    let r = (x - (shifted - ROUND)) * std::f32::consts::LN_2;
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    scale(fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0, n)
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<const F: bool>(x: f32) -> f32 {
    let (n, r) = split_ln2::<F>(clamp(x, -40.0, 88.8));
    let p = fma::<F>(exp_tail::<F>(r), r * r, r);
    let half = pow2(n.wrapping_sub(1));
    let y = fma::<F>(half, p, half - 0.5) * 2.0;
    // Below the last bit of 1 + x the result is x, subnormal numbers included.
    if x.abs() < 1e-9 { x } else { y }
}

/// ln x: Cephes' polynomial in the order that Eigen evaluates it, which XLA's results show too.
#[inline(always)]
pub fn log<const F: bool>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits() as i32;
    // The mantissa is brought to sqrt(1/2)..sqrt(2), less 1.
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    let (z, cube) = (f * f, f * f * f);
    let a = fma::<F>(fma::<F>(7.037_683_629_2e-2, f, -1.151_461_031e-1), f, 1.167_699_874e-1);
    let b = fma::<F>(fma::<F>(-1.242_014_084_6e-1, f, 1.424_932_278_7e-1), f, -1.666_805_766_5e-1);
    let c = fma::<F>(fma::<F>(2.000_071_476_5e-1, f, -2.499_999_399_3e-1), f, 3.333_333_117_4e-1);
    let p = fma::<F>(fma::<F>(a, cube, b), cube, c);
    let y = (f - z * 0.5) + fma::<F>(p, cube, e * LN2_LO);
    let y = fma::<F>(e, LN2_HI, y);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x > 0.0 { y } else { f32::NAN };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// ln(1 + x): Cephes' rational function near 0.
#[inline(always)]
pub fn log1p<const F: bool>(x: f32) -> f32 {
    let mut p = 4.527_000_086_244_52e-5;
    for c in [
        4.985_410_282_319_337_6e-1,
        6.578_732_594_206_104_5,
        2.991_191_932_855_307_3e1,
        6.094_966_798_098_778_7e1,
        5.711_296_359_058_553_8e1,
        2.003_955_349_920_128e1,
    ] {
        p = fma::<F>(p, x, c);
    }
    let mut q = 1.0;
    for c in [
        1.506_290_908_346_919_2e1,
        8.304_756_596_796_72e1,
        2.217_623_982_373_285_6e2,
        3.090_987_222_531_206e2,
        2.164_278_861_449_594_8e2,
        6.011_866_049_760_384e1,
    ] {
        q = fma::<F>(q, x, c);
    }
    let z = x * x;
    let small = (x * z) * (p / q) + -0.5 * z + x;
    if x.abs() < std::f32::consts::SQRT_2 - 1.0 { if x == 0.0 { x } else { small } } else { log::<F>(x + 1.0) }
}

/// Hyperbolic tangent; at most 1 in magnitude: m / (m + 2) for m = e^2|x| - 1, which is 1 from 9.1 on.
#[inline(always)]
pub fn tanh<const F: bool>(x: f32) -> f32 {
    let a = x.abs();
    let a = if a > 9.1 { 9.1 } else { a };
    let (n, r) = split_ln2::<F>(a + a);
    let power = pow2(n);
    // Without the tail nothing is rounded where terms cancel.
    let m = fma::<F>(power, exp_tail::<F>(r) * (r * r), fma::<F>(power, r, power - 1.0));
    (m / (m + 2.0)).copysign(x)
}

/// Hyperbolic tangent of a tile.
///
/// # Safety
/// None; it is called like functions that have some.
#[inline(always)]
pub unsafe fn tanh_all<const F: bool, const W: bool, const N: usize>(x: &[f32; N], o: &mut [f32; N]) {
    for i in 0..N {
        o[i] = tanh::<F>(x[i]);
    }
}

/// The inverse error function (Giles, single precision).
#[inline(always)]
pub fn erf_inv<const F: bool>(x: f32) -> f32 {
    let w = -log1p::<F>(x * -x);
    let central = horner::<F, _>(const { single(&ERF_INV_CENTRAL) }, w - 2.5);
    let tail = horner::<F, _>(const { single(&ERF_INV_TAIL) }, w.sqrt() - 3.0);
    let p = if w < 5.0 { central } else { tail };
    if x.abs() == 1.0 { x * f32::INFINITY } else { p * x }
}

/// The error function: x times a polynomial in x² up to 1, then 1 - e^polynomial.
#[inline(always)]
pub fn erf<const F: bool>(x: f32) -> f32 {
    let (a, z) = (x.abs(), x * x);
    let small = fma::<F>(horner::<F, _>(const { single(&ERF_NEAR) }, z), x, x);
    let q = horner::<F, _>(const { single(&ERF_FAR) }, if a > 4.0 { 4.0 } else { a });
    let large = (1.0 - exp::<F>(q)).copysign(x);
    if a < 1.0 { small } else { large }
}

/// |x| up to which sine and cosine are reduced in three steps of fused multiply-add.
const NEAR: f32 = 1e5;

/// sin(a + shift·π/2) for 0 ≤ a ≤ `NEAR`, but for the sign, which is the last bit but one of the second.
#[inline(always)]
fn quadrant<const F: bool>(a: f32, shift: u32) -> (f32, u32) {
    let shifted = fma::<F>(a, std::f32::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    let q = shifted.to_bits().wrapping_add(shift);
    // The first difference is exact. What the second rounds is known unless it cancels, and then it is little.
    let whole = fma::<F>(n, -std::f32::consts::FRAC_PI_2, a);
    let hi = fma::<F>(n, 4.371_138_8e-8, whole);
    let z = hi * hi;
    let lost = fma::<F>(n, 4.371_138_8e-8, whole - hi);
    let lo = fma::<F>(n, 1.715_124_5e-15, if z > 1e-4 { lost } else { 0.0 });
    let s = fma::<F>(fma::<F>(-1.951_529_589_1e-4, z, 8.332_160_873_6e-3), z, -1.666_665_461_1e-1);
    let s = fma::<F>(s * z, hi, lo) + hi;
    let c = fma::<F>(fma::<F>(2.443_315_711_8e-5, z, -1.388_731_625_5e-3), z, 4.166_664_568_3e-2);
    let c = fma::<F>(c * z, z, fma::<F>(-0.5, z, -hi * lo)) + 1.0;
    (if q & 1 == 0 { s } else { c }, q)
}
super::trig_tile!(f32, u32, sin_all, 0, f64::sin);
super::trig_tile!(f32, u32, cos_all, 1, f64::cos);

macro_rules! through_double {
    ($($(#[$doc:meta])* $name:ident = $m:ident::$f:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<const F: bool>(x: f32) -> f32 {
                $m::$f::<F, false>(f64::from(x)) as f32
            }
        )*
    };
}
through_double! {
    /// Cube root.
    cbrt = powers::cbrt;
    /// Inverse sine.
    asin = arcs::asin;
    /// Inverse cosine.
    acos = arcs::acos;
    /// Inverse tangent.
    atan = arcs::atan;
    /// Inverse hyperbolic sine.
    asinh = hyperbolic::asinh;
    /// Inverse hyperbolic cosine.
    acosh = hyperbolic::acosh;
    /// Inverse hyperbolic tangent.
    atanh = hyperbolic::atanh;
    /// Complementary error function.
    erfc = errors::erfc;
    /// e^-|x| I₀(x).
    bessel_i0e = bessel::i0e;
    /// e^-|x| I₁(x).
    bessel_i1e = bessel::i1e;
}
arcs::tan_tile!(f32);
gamma::gamma_tiles!(f32, false);
incomplete::pair_tiles! { f32:
    /// Regularized lower incomplete gamma function of a tile.
    igamma_all<F>(a, x) = incomplete::igamma::<F, false>(&a, &x);
    /// Regularized upper incomplete gamma function of a tile.
    igammac_all<F>(a, x) = incomplete::igamma::<F, true>(&a, &x);
    /// Hurwitz's zeta function of a tile.
    zeta_all<F>(x, q) = incomplete::zeta::<F, false>(&x, &q);
    /// Derivatives of digamma of a tile, of orders x.
    polygamma_all<F>(n, x) = incomplete::polygamma::<F, false>(&n, &x);
}

/// e^|x| / 2, which is in range where sine and cosine are.
#[inline(always)]
fn halved_exp<const F: bool>(x: f32) -> f32 {
    let (n, r) = split_ln2::<F>(clamp(x.abs(), 0.0, 90.0));
    scale(fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0, n.wrapping_sub(1))
}

/// Hyperbolic sine: its series up to 1.
#[inline(always)]
pub fn sinh<const F: bool>(x: f32) -> f32 {
    let (half, z) = (halved_exp::<F>(x), x * x);
    let series = horner::<F, _>([1.0 / 362_880.0, 1.0 / 5_040.0, 1.0 / 120.0, 1.0 / 6.0], z);
    if x.abs() < 1.0 { fma::<F>(series * z, x, x) } else { (half - 0.25 / half).copysign(x) }
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<const F: bool>(x: f32) -> f32 {
    let half = halved_exp::<F>(x);
    half + 0.25 / half
}

/// Nearest integer, ties away from zero.
#[inline(always)]
pub fn round_away(x: f32) -> f32 {
    let t = x.trunc();
    t + if (x - t).abs() >= 0.5 { 1f32.copysign(x) } else { 0f32.copysign(x) }
}

/// x to the power y.
#[inline(always)]
pub fn pow<const F: bool>(x: f32, y: f32) -> f32 {
    powers::pow::<F, false>(f64::from(x), f64::from(y)) as f32
}

/// Angle of the point (x, y).
#[inline(always)]
pub fn atan2<const F: bool>(y: f32, x: f32) -> f32 {
    arcs::atan2::<F, false>(f64::from(y), f64::from(x)) as f32
}

powers::quotient_and_remainder!(f32);
powers::power_tile!(f32);

/// Remainders of a tile: what the division leaves, with the sign of x. All steps are exact, of large quotients in double precision.
///
/// # Safety
/// None; it is called like functions that have some.
#[inline(always)]
pub unsafe fn rem_all<const F: bool, const W: bool, const N: usize>(x: &[f32; N], y: &[f32; N], o: &mut [f32; N]) {
    // 24 bits of a quotient; 29 of one times the 24 of a divisor.
    const MOST: (f32, f64) = (16_777_216.0, 536_870_912.0);
    let mut far = !F;
    for i in 0..N {
        let (r, q) = remainder(x[i], y[i], |q| fma::<F>(-q, y[i], x[i]));
        o[i] = r;
        far |= q >= MOST.0;
    }
    if !far {
        return;
    }
    far = false;
    for i in 0..N {
        let (a, b) = (f64::from(x[i]), f64::from(y[i]));
        let (r, q) = powers::remainder(a, b, |q| a - q * b);
        o[i] = r as f32;
        far |= q >= MOST.1;
    }
    if far {
        for i in 0..N {
            o[i] = x[i] % y[i];
        }
    }
}

/// Larger of two; NaN wins, and +0 is larger than -0.
#[inline(always)]
pub fn max(x: f32, y: f32) -> f32 {
    let m = if x > y || x.is_nan() { x } else { y };
    if x == y { f32::from_bits(x.to_bits() & y.to_bits()) } else { m }
}

/// Smaller of two; NaN wins, and -0 is smaller than +0.
#[inline(always)]
pub fn min(x: f32, y: f32) -> f32 {
    let m = if x < y || x.is_nan() { x } else { y };
    if x == y { f32::from_bits(x.to_bits() | y.to_bits()) } else { m }
}

/// The float after x in y's direction.
#[inline(always)]
pub fn nextafter(x: f32, y: f32) -> f32 {
    let away = (y > x) == (x > 0.0);
    let bits = x.to_bits().wrapping_add(if away { 1 } else { u32::MAX });
    let next = f32::from_bits(if x == 0.0 { 1 | (y.to_bits() & 1 << 31) } else { bits });
    let next = if x == y { y } else { next };
    if x.is_nan() | y.is_nan() { f32::NAN } else { next }
}

/// An integer that orders like IEEE's total order.
#[inline(always)]
pub fn total_key(x: f32) -> i32 {
    let b = x.to_bits() as i32;
    b ^ ((b >> 31) as u32 >> 1) as i32
}

/// Rounds to a float of `p & 0xffff_ffff` exponent bits and `p >> 32` mantissa bits.
#[inline(always)]
pub fn reduce_precision(x: f32, p: u64) -> f32 {
    let (exponent, mantissa) = (p as u32, (p >> 32) as u32);
    if x.is_nan() {
        return x;
    }
    let mut bits = x.to_bits();
    if mantissa < 23 {
        let drop = 23 - mantissa;
        let last = (bits >> drop) & 1;
        bits = bits.wrapping_add((1 << (drop - 1)) - 1 + last) & !((1 << drop) - 1);
    }
    if exponent < 8 {
        let bias = (1i32 << (exponent - 1)) - 1;
        let e = (bits >> 23 & 0xff) as i32 - 127;
        if e > bias {
            bits = (bits & 0x8000_0000) | 0x7f80_0000;
        } else if e <= -bias {
            bits &= 0x8000_0000;
        }
    }
    f32::from_bits(bits)
}
