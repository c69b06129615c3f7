//! Complex functions of many numbers: a formula without branches for all, which vectorizes, and the functions of `complex` for
//! the few that it is not for (infinities, zeros with their signs, parts near the ends of the range).
//!
//! A formula gives the result in double precision, and whether it holds; it does for the same numbers wherever they stand.

use crate::math::arcs;
use crate::math::complex::{self, Complex, Wide};
use crate::math::double::{circle, halved_exp, mantissa};
use crate::math::hyperbolic::{cosh, sinh};
use crate::math::powers::log_near;
use crate::simd::fma64 as fma;

type Z = Complex<f64>;

/// Numbers computed at once.
const TILE: usize = 16;
/// Squares of these and their sums are normal numbers.
const SMALL: f64 = 1e-140;
const LARGE: f64 = 1e140;
/// Up to this size exponentials are in range, and angles are reduced without a table.
const MOST_EXPONENT: f64 = 700.0;

/// Whether a part's square is a normal number.
#[inline(always)]
fn plain(x: f64) -> bool {
    (x.abs() > SMALL) & (x.abs() < LARGE)
}

/// Results of a formula, and of `exact` for the numbers that it does not hold for.
#[inline(always)]
fn each<const F: bool, C: Wide>(
    n: usize,
    out: &mut [C],
    formula: impl Fn(usize) -> (Z, bool),
    exact: impl Fn(usize) -> C,
) {
    for start in (0..n).step_by(TILE) {
        let end = (start + TILE).min(n);
        let mut odd = !F;
        if end - start == TILE {
            for i in 0..TILE {
                let (z, holds) = formula(start + i);
                out[start + i] = C::of(z);
                odd |= !holds;
            }
        } else {
            odd = true;
        }
        if odd {
            for i in start..end {
                let (z, holds) = formula(i);
                out[i] = if F && holds { C::of(z) } else { exact(i) };
            }
        }
    }
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident<$F:ident>($z:ident) or $exact:ident $body:block)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<const $F: bool, C: Wide>(x: &[C], out: &mut [C]) {
                let formula = |$z: Z| $body;
                each::<$F, C>(out.len(), out, |i| formula(x[i].wide()), |i| complex::$exact(x[i]));
            }
        )*
    };
}

/// Sine and cosine of an angle up to `arcs::NEAR`.
#[inline(always)]
fn sin_cos<const F: bool>(x: f64) -> (f64, f64) {
    let ([s, c], _, q) = circle::<F>(x.abs());
    let turned = q & 1 == 1;
    let (sin, cos) = (if turned { c } else { s }, if turned { s } else { c });
    let sign = (q >> 1) << 63;
    let sin = f64::from_bits(sin.to_bits() ^ sign ^ (x.to_bits() & 1 << 63));
    (sin, f64::from_bits(cos.to_bits() ^ (q.wrapping_add(1) >> 1) << 63))
}

/// e^x for x up to `MOST_EXPONENT` in size.
#[inline(always)]
fn exp<const F: bool>(x: f64) -> f64 {
    let half = halved_exp::<F>(x.abs());
    if x < 0.0 { 0.5 / half } else { 2.0 * half }
}

/// Whether `angle` and `exponent` are what the formulas of circular and hyperbolic functions are for.
#[inline(always)]
fn moderate(angle: f64, exponent: f64) -> bool {
    (angle.abs() <= arcs::NEAR) & (exponent.abs() < MOST_EXPONENT) & (angle != 0.0) & (exponent != 0.0)
}

functions! {
    /// e^z.
    exp_all<F>(z) or exp {
        let (s, c) = sin_cos::<F>(z.im);
        let e = exp::<F>(z.re);
        (Z::new(e * c, e * s), (z.im.abs() <= arcs::NEAR) & (z.re.abs() < MOST_EXPONENT))
    }
    /// Sine.
    sin_all<F>(z) or sin {
        let (s, c) = sin_cos::<F>(z.re);
        (Z::new(s * cosh::<F>(z.im), c * sinh::<F>(z.im)), moderate(z.re, z.im))
    }
    /// Cosine.
    cos_all<F>(z) or cos {
        let (s, c) = sin_cos::<F>(z.re);
        (Z::new(c * cosh::<F>(z.im), -s * sinh::<F>(z.im)), moderate(z.re, z.im))
    }
    /// Principal square root.
    sqrt_all<F>(z) or sqrt {
        let t = (0.5 * (z.re.abs() + fma::<F>(z.re, z.re, z.im * z.im).sqrt())).sqrt();
        let u = z.im.abs() / (2.0 * t);
        let (re, im) = if z.re < 0.0 { (u, t) } else { (t, u) };
        (Z::new(re, im.copysign(z.im)), plain(z.re) & plain(z.im))
    }
    /// Principal logarithm; near the unit circle its real part takes more digits than the square of the size has.
    log_all<F>(z) or log {
        let square = fma::<F>(z.re, z.re, z.im * z.im);
        let (e, m) = mantissa(square);
        let re = 0.5 * log_near::<F, true>(m - 1.0, e, 0.0);
        let im = arcs::atan2::<F, true>(z.im, z.re);
        (Z::new(re, im), plain(z.re) & plain(z.im) & ((square < 0.5) | (square > 2.0)))
    }
}

/// Quotients.
#[inline(always)]
pub fn div_all<const F: bool, C: Wide>(x: &[C], y: &[C], out: &mut [C]) {
    let formula = |x: Z, y: Z| {
        let real = y.im == 0.0;
        let d = if real { y.re } else { fma::<F>(y.re, y.re, y.im * y.im) };
        let re = if real { x.re } else { fma::<F>(x.re, y.re, x.im * y.im) };
        let im = if real { x.im } else { fma::<F>(x.im, y.re, -(x.re * y.im)) };
        let holds = real | (plain(x.re) & plain(x.im) & plain(y.re) & plain(y.im));
        (Z::new(re / d, im / d), holds)
    };
    each::<F, C>(out.len(), out, |i| formula(x[i].wide(), y[i].wide()), |i| complex::div(x[i], y[i]));
}
