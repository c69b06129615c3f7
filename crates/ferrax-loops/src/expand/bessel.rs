//! Modified Bessel functions I₀ and I₁ of the first kind, scaled by e^-|x|, in double precision: the power series up to
//! 30, whose terms are positive, and Hankel's asymptotic series beyond (Abramowitz and Stegun, 9.6.10 and 9.7.1).

use super::code::X;
use super::erf::signed_as;

/// Terms of the power series: for |x| = 30 the last ones are 1e-17 of the sum.
const TERMS: i32 = 64;
/// Terms of Hankel's series: at 30 the last one is below 1e-18.
const FAR_TERMS: i32 = 24;

/// e^-|x| Iₙ(x) for n 0 or 1.
pub(super) fn bessel_ie(x: X<'_>, n: i32) -> X<'_> {
    let a = x.abs();
    let near = a.min(30.0);
    let q = near * near * 0.25;
    let one = x.code.number(x.dtype(), 1.0);
    let sum = (1..=TERMS).rev().fold(one, |sum, k| sum * (q / f64::from(k * (k + n))) + 1.0);
    let first = if n == 0 { sum } else { sum * (near * 0.5) };
    let near = first * (-near).exp();
    // beyond the largest number times a square root nothing is left but the square root
    let far = a.max(30.0);
    let mu = f64::from(4 * n * n);
    let sum = (1..=FAR_TERMS).rev().fold(one, |sum, k| {
        let odd = f64::from(2 * k - 1);
        let factor = -(mu - odd * odd) / (8.0 * f64::from(k));
        sum * (far.code.number(far.dtype(), factor) / far) + 1.0
    });
    let far = sum * 0.398_942_280_401_432_7 / far.sqrt();
    let y = a.lt(30.0).pick(near, far);
    let y = if n == 0 { y } else { signed_as(y, x) };
    x.is_nan().pick(x, y)
}
