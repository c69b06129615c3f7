//! The logarithm of the gamma function and its derivative, in double precision, written so that loops over them vectorize.
//!
//! `D` is false for the digits that single precision needs; `F` says whether multiply-add is fused. Numbers are taken down
//! to 2 + t with |t| ≤ 1/2 by the recurrence, where ln Γ is a minimax polynomial times t, or up to where Stirling's series
//! holds. Negative numbers, which need the reflection, are those of `special`.
//! Source: Abramowitz and Stegun, chapter 6, for the formulas.

use super::double::{horner, log, mantissa};
use super::powers::log_near;
use crate::simd::fma64 as fma;
use ferrax_loops::coefficients::{BERNOULLI, DIGAMMA_AT_ROOT, DIGAMMA_ROOT};

/// ln Γ(2 + t) / t for |t| ≤ 1/2.
const AT_TWO: [f64; 18] = [
    2.747_539_005_190_966_3e-07,
    -5.811_277_768_921_246e-07,
    9.242_852_225_162_277e-07,
    -1.974_310_688_842_106_7e-06,
    4.382_854_538_384_666_5e-06,
    -9.456_288_515_101_72e-06,
    2.050_601_970_174_762e-05,
    -4.492_372_756_424_765_6e-05,
    9.945_761_692_157_133e-05,
    -0.000_223_154_977_462_927_23,
    0.000_509_669_519_652_667_3,
    -0.001_192_753_900_998_308_7,
    0.002_890_510_330_865_901,
    -0.007_385_551_028_935_545,
    0.020_580_808_427_783_38,
    -0.067_352_301_053_195_63,
    0.322_467_033_424_113_2,
    0.422_784_335_098_467_13,
];

/// The same to what single precision needs.
const AT_TWO_SHORT: [f64; 12] = [
    2.415_459_538_127_868_8e-05,
    -5.278_721_858_454_867e-05,
    9.839_697_643_190_869e-05,
    -0.000_220_869_826_024_256_32,
    0.000_509_809_158_031_352_7,
    -0.001_193_054_705_040_670_6,
    0.002_890_502_082_143_989_6,
    -0.007_385_533_261_288_008,
    0.020_580_808_605_237_744,
    -0.067_352_301_435_415_07,
    0.322_467_033_423_496_6,
    0.422_784_335_099_795_3,
];

/// B₂ₖ / (2k (2k - 1)), the highest k first: what Stirling's formula for ln Γ(x) leaves out is Σ of these over x^(2k-1).
const STIRLING: [f64; 11] = {
    let mut terms = [0.0; 11];
    let mut k = 0;
    while k < 11 {
        terms[10 - k] = BERNOULLI[k] / ((2 * k + 1) as f64 * (2 * k + 2) as f64);
        k += 1;
    }
    terms
};

/// B₂ₖ / 2k, the highest k first.
const SLOPES: [f64; 10] = {
    let mut terms = [0.0; 10];
    let mut k = 0;
    while k < 10 {
        terms[9 - k] = BERNOULLI[k] / (2 * k + 2) as f64;
        k += 1;
    }
    terms
};

/// ln x of a positive number.
#[inline(always)]
pub fn ln<const F: bool, const D: bool>(x: f64) -> f64 {
    if D {
        return log::<F>(x);
    }
    let (e, m) = mantissa(x);
    let y = log_near::<F, D>(m - 1.0, e, 0.0);
    let y = if x == f64::INFINITY { x } else { y };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// ln Γ(x) of a number that is not negative.
#[inline(always)]
pub fn positive_lgamma<const F: bool, const D: bool>(x: f64) -> f64 {
    let steps = if D { 5 } else { 2 };
    let far = f64::from(steps) + 2.0;
    let (mut y, mut product) = (x, 1.0);
    for _ in 0..steps {
        let large = y > 2.5;
        y = if large { y - 1.0 } else { y };
        product = if large { product * y } else { product };
    }
    // Γ(x) = Γ(x + 1) / x below 3/2, and Γ(x + 2) / (x (x + 1)) below 1/2.
    let (low, lower) = (x < 1.5, x < 0.5);
    let t = if low { x - 1.0 } else { y - 2.0 };
    let t = if lower { x } else { t };
    let product = if low { x } else { product };
    let product = if lower { x * (x + 1.0) } else { product };
    let is_far = x >= far;
    let ln = ln::<F, D>(if is_far { x } else { product });
    let series = if D { horner::<F, _>(&AT_TWO, t) } else { horner::<F, _>(&AT_TWO_SHORT, t) };
    let near = fma::<F>(series, t, if low { -ln } else { ln });
    let u = 1.0 / x;
    let rest = fma::<F>(horner::<F, _>(&STIRLING, u * u), u, 0.918_938_533_204_672_7);
    // Of infinite x the logarithm is infinite.
    let stirling = fma::<F>(x - 0.5, ln, rest - x);
    let stirling = if x == f64::INFINITY { x } else { stirling };
    if is_far { stirling } else { near }
}

/// ψ(x) of a number that is not negative; NaN at zero, a pole.
#[inline(always)]
pub fn positive_digamma<const F: bool, const D: bool>(x: f64) -> f64 {
    let steps = if D { 8 } else { 5 };
    let far = f64::from(steps);
    // Σ 1/(x + k) as one fraction, for ψ(x) = ψ(x + n) - Σ 1/(x + k).
    let (mut y, mut n, mut d) = (x, 0.0, 1.0);
    for _ in 0..steps {
        let small = y < far;
        n = if small { fma::<F>(n, y, d) } else { n };
        d = if small { d * y } else { d };
        y = if small { y + 1.0 } else { y };
    }
    let u = 1.0 / y;
    let z = u * u;
    let series = fma::<F>(horner::<F, _>(&SLOPES, z), -z, -0.5 * u);
    let above = ln::<F, D>(y) + series;
    // Taylor's series at the zero, of ψ(x + 1) = ψ(x) + 1/x, which has no pole near.
    let t = (x - DIGAMMA_ROOT.0) - DIGAMMA_ROOT.1;
    let root = t.abs() < 0.25;
    let d = if root { DIGAMMA_ROOT.0 * x } else { d };
    let near = fma::<F>(horner::<F, _>(&DIGAMMA_AT_ROOT, t), d, 1.0);
    let over = if root { t * near } else { -n } / d;
    let y = if root { over } else { above + over };
    if x == 0.0 { f64::NAN } else { y }
}

/// Functions of tiles of $T: those of numbers that are not negative, then of the few others one by one.
macro_rules! gamma_tiles {
    ($T:ident, $digits:literal) => {
        gamma::gamma_tiles! {
            $T, $digits,
            /// ln |Γ| of a tile; infinite at the poles.
            lgamma_all = positive_lgamma, lgamma;
            /// ψ of a tile, the derivative of `lgamma_all`; NaN at the poles.
            digamma_all = positive_digamma, digamma;
        }
    };
    ($T:ident, $digits:literal, $($(#[$doc:meta])* $name:ident = $positive:ident, $any:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// None; it is called like functions that have some.
            #[inline(always)]
            pub unsafe fn $name<const F: bool, const W: bool, const N: usize>(x: &[$T; N], o: &mut [$T; N]) {
                let mut negative = false;
                for i in 0..N {
                    o[i] = gamma::$positive::<F, $digits>(f64::from(x[i])) as $T;
                    negative |= x[i] < 0.0;
                }
                if negative {
                    for i in 0..N {
                        if x[i] < 0.0 {
                            o[i] = special::$any(f64::from(x[i])) as $T;
                        }
                    }
                }
            }
        )*
    };
}
pub(super) use gamma_tiles;
