//! Hyperbolic functions and their inverses, written so that loops over them vectorize: in double precision, the inverses
//! also with the digits that single precision needs (`D` is false). `F` says whether multiply-add is fused.

use super::double::{halved_exp, horner};
use super::powers::log1p;
use crate::simd::fma64 as fma;
use std::f64::consts::LN_2;

/// Where the last digits of x² + 1 are those of x².
const LARGE: f64 = 268_435_456.0;

/// Taylor's coefficients of (sinh √z / √z - 1)/z.
const SINH: [f64; 8] = [
    1.0 / 355_687_428_096_000.0,
    1.0 / 1_307_674_368_000.0,
    1.0 / 6_227_020_800.0,
    1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    1.0 / 5_040.0,
    1.0 / 120.0,
    1.0 / 6.0,
];

/// Hyperbolic sine: its series up to 1.
#[inline(always)]
pub fn sinh<const F: bool>(x: f64) -> f64 {
    let (half, z) = (halved_exp::<F>(x.abs()), x * x);
    let near = fma::<F>(horner::<F, _>(&SINH, z) * z, x, x);
    if x.abs() < 1.0 { near } else { (half - 0.25 / half).copysign(x) }
}

/// Hyperbolic cosine.
#[inline(always)]
pub fn cosh<const F: bool>(x: f64) -> f64 {
    let half = halved_exp::<F>(x.abs());
    half + 0.25 / half
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub fn asinh<const F: bool, const D: bool>(x: f64) -> f64 {
    let a = x.abs();
    let large = a > LARGE;
    let square = a * a;
    let w = if large { a - 1.0 } else { a + square / (1.0 + (1.0 + square).sqrt()) };
    (log1p::<F, D>(w) + if large { LN_2 } else { 0.0 }).copysign(x)
}

/// Inverse hyperbolic cosine; NaN below 1.
#[inline(always)]
pub fn acosh<const F: bool, const D: bool>(x: f64) -> f64 {
    let large = x > LARGE;
    let t = x - 1.0;
    let root = fma::<F>(t, t, t + t).sqrt();
    let w = if large { t } else { t + root };
    // What the sum rounds counts where the result is small.
    let lost = if w < 0.5 { (t - (w - root)) * (1.0 - w) } else { 0.0 };
    let y = log1p::<F, D>(w) + if large { LN_2 } else { lost };
    if x >= 1.0 { y } else { f64::NAN }
}

/// Inverse hyperbolic tangent.
#[inline(always)]
pub fn atanh<const F: bool, const D: bool>(x: f64) -> f64 {
    let a = x.abs();
    let twice = a + a;
    let w = twice + twice * a / (1.0 - a);
    let w = if a == 1.0 { f64::INFINITY } else { w };
    let y = 0.5 * log1p::<F, D>(w);
    (if a <= 1.0 { y } else { f64::NAN }).copysign(x)
}
