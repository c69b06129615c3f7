//! Powers, roots, remainders and logarithms of numbers near one, written so that loops over them vectorize.
//!
//! They are in double precision, with all digits (`D`) or with those that single precision needs; `F` says whether
//! multiply-add is fused. Sources: FreeBSD's `s_log1p.c` (Sun Microsystems, 1993) for what is left of 1 + x; Dekker
//! ("A floating-point technique for extending the available precision") for the logarithm of a power, in two numbers.

use super::double::{LN2_HI, LN2_LO, clamp, exp_tail, horner, inverse_power, mantissa, scale, split_ln2};
use crate::simd::fma64 as fma;

/// (atanh √z / √z - 1 - z/3)/z², for the z of numbers from √½ to √2.
const LOG: [f64; 8] = [
    0.058_615_255_140_488_765,
    0.058_531_242_704_611_93,
    0.066_674_021_191_126_73,
    0.076_922_974_854_477_29,
    0.090_909_091_676_572_02,
    0.111_111_111_108_281_16,
    0.142_857_142_857_146_82,
    0.2,
];

/// The same to what single precision needs.
const LOG_SHORT: [f64; 4] =
    [0.095_601_787_875_171_23, 0.111_023_828_330_086_24, 0.142_857_658_953_789_13, 0.199_999_999_524_856_25];

/// m^(-1/3) for m from 1 to 2, to 4e-5.
const ROOT: [f64; 5] = [
    0.027_782_801_018_584_24,
    -0.216_361_854_692_443_87,
    0.684_652_707_732_232_5,
    -1.162_397_357_307_816_6,
    1.666_278_737_730_915_6,
];

/// ln(1 + x).
#[inline(always)]
pub fn log1p<const F: bool, const D: bool>(x: f64) -> f64 {
    let u = 1.0 + x;
    // What the sum left out.
    let lost = if x > 1.0 { 1.0 - (u - x) } else { x - (u - 1.0) };
    let (e, m) = mantissa(u);
    let near = e == 0.0;
    let f = if near { x } else { m - 1.0 };
    // Of what was lost, over u, few digits count: 1/m is 1 - f + f², about. Beyond 2^60 it is nothing.
    let lost = if near | (x > 1e18) { 0.0 } else { lost * inverse_power(e) };
    let y = log_near::<F, D>(f, e, lost * (1.0 - f + f * f));
    let y = if (x == f64::INFINITY) | (x == 0.0) { x } else { y };
    let y = if x >= -1.0 { y } else { f64::NAN };
    if x == -1.0 { f64::NEG_INFINITY } else { y }
}

/// e ln 2 + ln(1 + f) + rest, for 1 + f from √½ to √2.
#[inline(always)]
pub fn log_near<const F: bool, const D: bool>(f: f64, e: f64, rest: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let q = if D { horner::<F, _>(&LOG, z) } else { horner::<F, _>(&LOG_SHORT, z) };
    // 2 atanh s = f - s (f - 2 (z/3 + z² q)), of which f is exact.
    let p = 2.0 * z * fma::<F>(z, q, 1.0 / 3.0);
    let half = 0.5 * f * f;
    let y = fma::<F>(s, p + half, fma::<F>(e, LN2_LO, rest));
    fma::<F>(e, LN2_HI, f - (half - y))
}

/// ln a for a positive a, as a sum of two numbers; the second is left out for single precision.
#[inline(always)]
fn long_log<const F: bool, const D: bool>(a: f64) -> (f64, f64) {
    let (e, m) = mantissa(a);
    let f = m - 1.0;
    if !D {
        return (log_near::<F, false>(f, e, 0.0), 0.0);
    }
    let d = 2.0 + f;
    let inverse = 1.0 / d;
    let s = f * inverse;
    let s_low = (fma::<F>(-s, d, f) - s * (f - (d - 2.0))) * inverse;
    let z = s * s;
    let z_low = fma::<F>(s, s, -z) + 2.0 * s * s_low;
    /// 1/3 less the f64 of it.
    const THIRD_REST: f64 = 1.850_371_707_708_594e-17;
    let third = z * (1.0 / 3.0);
    let third_low = fma::<F>(z, 1.0 / 3.0, -third) + z * THIRD_REST + z_low * (1.0 / 3.0);
    let higher = z * z * horner::<F, _>(&LOG, z);
    let u = third + higher;
    let u_low = third_low + ((third - u) + higher);
    let v = s * u;
    let v_low = fma::<F>(s, u, -v) + s * u_low + s_low * u;
    let half = s + v;
    let half_low = ((s - half) + v) + (v_low + s_low);
    let whole = e * LN2_HI;
    let sum = whole + 2.0 * half;
    (sum, ((whole - sum) + 2.0 * half) + fma::<F>(e, LN2_LO, 2.0 * half_low))
}

/// x to the power y, for x ≥ 0 and neither 0 nor infinite.
#[inline(always)]
fn positive_pow<const F: bool, const D: bool>(x: f64, y: f64) -> f64 {
    let (log, log_low) = long_log::<F, D>(x);
    let product = y * log;
    let product_low = if D { fma::<F>(y, log, -product) + y * log_low } else { 0.0 };
    let near = clamp(product, -746.0, 710.0);
    let (n, multiples, r) = split_ln2::<F>(near);
    if !D {
        return scale(fma::<F>(exp_tail::<F, D>(r), r * r, r) + 1.0, n);
    }
    // The rest of the product by multiples of ln 2, and 1 more than that, as two numbers: e^r is rounded once.
    let high = fma::<F>(multiples, -LN2_HI, near);
    let low = fma::<F>(multiples, -LN2_LO, if product.abs() < 750.0 { product_low } else { 0.0 });
    let r = high + low;
    let sum = 1.0 + r;
    let rest = (r - (sum - 1.0)) + (low - (r - high));
    scale(sum + fma::<F>(exp_tail::<F, D>(r), r * r, rest), n)
}

/// x to the power y.
#[inline(always)]
pub fn pow<const F: bool, const D: bool>(x: f64, y: f64) -> f64 {
    if D && !F {
        // What products round is not to be had.
        return x.powf(y);
    }
    let a = x.abs();
    let edge = (a == 0.0) | (a == f64::INFINITY);
    let r = if a == 1.0 { 1.0 } else { positive_pow::<F, D>(a, y) };
    let grows = if a == 0.0 { y < 0.0 } else { (a > 1.0) == (y > 0.0) };
    let end = if grows { f64::INFINITY } else { 0.0 };
    let r = if edge | ((y.abs() == f64::INFINITY) & (a != 1.0)) { end } else { r };
    let (whole, half) = (y.trunc() == y, 0.5 * y);
    let odd = whole & (half.trunc() != half);
    let sign = if odd { x.to_bits() & 1 << 63 } else { 0 };
    let r = f64::from_bits(r.to_bits() ^ sign);
    let r = if ((x < 0.0) & !whole & !edge) | x.is_nan() | y.is_nan() { f64::NAN } else { r };
    if (y == 0.0) | (x == 1.0) { 1.0 } else { r }
}

macro_rules! power_tile {
    ($T:ident) => {
        /// Powers of a tile: where y is 1/2 or -1/2, square roots and their inverses.
        ///
        /// # Safety
        /// None; it is called like functions that have some.
        #[inline(always)]
        pub unsafe fn pow_all<const F: bool, const W: bool, const N: usize>(x: &[$T; N], y: &[$T; N], o: &mut [$T; N]) {
            let (mut all, mut any, mut below) = (true, false, false);
            for i in 0..N {
                let half = y[i].abs() == 0.5;
                (all, any, below) = (all & half, any | half, below | (y[i] == -0.5));
            }
            if !all {
                for i in 0..N {
                    o[i] = pow::<F>(x[i], y[i]);
                }
            }
            if any {
                for i in 0..N {
                    // A power of -0 is +0, and one of -∞ is infinite.
                    let root = if x[i] == $T::NEG_INFINITY { $T::INFINITY } else { (x[i] + 0.0).sqrt() };
                    o[i] = if y[i].abs() == 0.5 { root } else { o[i] };
                }
            }
            if below {
                for i in 0..N {
                    o[i] = if y[i] == -0.5 { 1.0 / o[i] } else { o[i] };
                }
            }
        }
    };
}
pub(super) use power_tile;

/// Cube root.
#[inline(always)]
pub fn cbrt<const F: bool, const D: bool>(x: f64) -> f64 {
    let a = x.abs();
    let tiny = a < f64::MIN_POSITIVE;
    let bits = (if tiny { a * 18_014_398_509_481_984.0 } else { a }).to_bits();
    let m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    // The exponent and 1,200 more, as a float: an integer of a few bits.
    const INTEGERS: f64 = 4_503_599_627_370_496.0;
    let e = f64::from_bits(INTEGERS.to_bits() | bits >> 52) - INTEGERS + (1200.0 - 1023.0);
    let third = ((e + 0.5) * (1.0 / 3.0)).floor();
    let left = e - 3.0 * third;
    let t = m * if left == 0.0 {
        1.0
    } else if left == 1.0 {
        2.0
    } else {
        4.0
    };
    // t^(-1/3), and that again by the series of (1 - h)^(-1/3).
    let w = horner::<F, _>(&ROOT, m)
        * if left == 0.0 {
            1.0
        } else if left == 1.0 {
            0.793_700_525_984_099_8
        } else {
            0.629_960_524_947_436_6
        };
    let h = fma::<F>(-t * w, w * w, 1.0);
    let w = fma::<F>(w * h, fma::<F>(h, 2.0 / 9.0, 1.0 / 3.0), w);
    let square = w * w;
    let y = t * square;
    let y = if D {
        let (y2, y2_low) = (y * y, fma::<F>(y, y, -(y * y)));
        fma::<F>(fma::<F>(-y2, y, t) - y2_low * y, square * (1.0 / 3.0), y)
    } else {
        y
    };
    let shift = third - if tiny { 418.0 } else { 400.0 };
    let y = (y * inverse_power(-shift)).copysign(x);
    if (a == 0.0) | !x.is_finite() { x } else { y }
}

/// Remainders of a tile: what the division leaves, with the sign of x. All steps are exact.
///
/// # Safety
/// None; it is called like functions that have some.
#[inline(always)]
pub unsafe fn rem_all<const F: bool, const W: bool, const N: usize>(x: &[f64; N], y: &[f64; N], o: &mut [f64; N]) {
    let mut far = !F;
    for i in 0..N {
        let (r, q) = remainder(x[i], y[i], |q| fma::<F>(-q, y[i], x[i]));
        o[i] = r;
        far |= q >= 9_007_199_254_740_992.0;
    }
    if far {
        for i in 0..N {
            o[i] = x[i] % y[i];
        }
    }
}

macro_rules! quotient_and_remainder {
    ($T:ident) => {
        /// x less the whole multiple of y that `left` takes off, and how many multiples that are.
        #[inline(always)]
        pub fn remainder(x: $T, y: $T, left: impl Fn($T) -> $T) -> ($T, $T) {
            let q = (x / y).trunc();
            let r = left(q);
            // A quotient just below a whole number may have been rounded to it.
            let beyond = if x < 0.0 { r > 0.0 } else { r < 0.0 };
            let r = if beyond { r + y.abs().copysign(x) } else { r };
            let r = if (y.abs() == $T::INFINITY) & x.is_finite() { x } else { r };
            (r.abs().copysign(x), q.abs())
        }
    };
}
quotient_and_remainder!(f64);
pub(super) use quotient_and_remainder;
