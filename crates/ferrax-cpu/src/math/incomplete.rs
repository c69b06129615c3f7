//! Incomplete gamma functions of many numbers, to the digits that single precision needs, and the zeta functions.
//!
//! The former are sums of as many terms as the numbers ask for: a few numbers go through them together, in vectors, until
//! all have enough; of the latter the terms are vectors. `special` has the former in double precision, and both for the
//! numbers that these are not for (ends of the range, large parameters, negative bases). `F` says whether multiply-add is fused.
//! Sources: DLMF 8.7 and 8.9 for series and continued fraction, 25.11.5 for Euler and Maclaurin's formula.

use super::double::exp_of_minus;
use super::gamma::{ln, positive_lgamma};
use super::powers::pow;
use super::special;
use crate::simd::fma64 as fma;
use ferrax_loops::coefficients::BERNOULLI;

/// Numbers that are computed together.
const LANES: usize = 16;
/// What of a sum the terms left out may be.
const ENOUGH: f64 = 1e-11;
/// Beyond these the sums of `special`'s for numbers near the mode are shorter.
const LARGE: (f64, f64) = (200.0, 1e5);

/// Σ x^k / ((a + 1) … (a + k)) from k = 0; where `on` is zero it is 1.
#[inline(always)]
fn series(a: &[f64; LANES], x: &[f64; LANES], on: &[f64; LANES]) -> [f64; LANES] {
    let (mut n, mut term, mut sum) = (*a, *on, [1.0; LANES]);
    for _ in 0..600 {
        let mut more = false;
        for i in 0..LANES {
            n[i] += 1.0;
            term[i] *= x[i] / n[i];
            sum[i] += term[i];
            more |= term[i] > sum[i] * ENOUGH;
        }
        if !more {
            break;
        }
    }
    sum
}

/// 1/(x + 1 - a - 1 (1 - a)/(x + 3 - a - 2 (2 - a)/(x + 5 - a - …))) by its convergents, for x > a and x > 1.
#[inline(always)]
fn fraction<const F: bool>(a: &[f64; LANES], x: &[f64; LANES]) -> [f64; LANES] {
    let (mut b, mut above, mut below) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let (mut last_above, mut last_below) = ([0.0; LANES], [1.0; LANES]);
    for i in 0..LANES {
        b[i] = x[i] + 1.0 - a[i];
        (above[i], below[i]) = (1.0, b[i]);
    }
    for k in 1..2000 {
        let k = f64::from(k);
        for i in 0..LANES {
            b[i] += 2.0;
            let c = k * (a[i] - k);
            let next = fma::<F>(b[i], above[i], c * last_above[i]);
            let next_below = fma::<F>(b[i], below[i], c * last_below[i]);
            // They grow like factorials.
            let scale = if next_below.abs() > 1e150 { 1e-150 } else { 1.0 };
            (last_above[i], last_below[i]) = (above[i] * scale, below[i] * scale);
            (above[i], below[i]) = (next * scale, next_below * scale);
        }
        if k % 4.0 == 0.0 {
            let mut more = false;
            for i in 0..LANES {
                let change = above[i] * last_below[i] - last_above[i] * below[i];
                more |= change.abs() > ENOUGH * (above[i] * last_below[i]).abs();
            }
            if !more {
                break;
            }
        }
    }
    std::array::from_fn(|i| above[i] / below[i])
}

/// P(a, x), or Q(a, x) if `UPPER`, of some numbers, and whether each is one of those that this holds for.
#[inline(always)]
fn igamma<const F: bool, const UPPER: bool>(a: &[f64; LANES], x: &[f64; LANES]) -> ([f64; LANES], [bool; LANES]) {
    let (mut holds, mut low) = ([false; LANES], [false; LANES]);
    for i in 0..LANES {
        holds[i] = (a[i] > 0.0) & (x[i] > 0.0) & (a[i] < LARGE.0) & (x[i] < LARGE.1);
        // of the two the one that is no small difference from 1
        low[i] = if UPPER { (x[i] < 1.0) | (x[i] < a[i]) } else { (x[i] <= 1.0) | (x[i] <= a[i]) };
        // Near zero the upper function is no difference from 1.
        holds[i] &= !UPPER | (a[i] >= 1.0) | (x[i] >= 1.0);
    }
    if !holds.contains(&true) {
        return ([0.0; LANES], holds);
    }
    // Numbers that take no part in a sum are ones that have enough at once.
    let pick = |on: bool, x: f64, other: f64| if on { x } else { other };
    let safe_a: [f64; LANES] = std::array::from_fn(|i| pick(holds[i], a[i], 1.0));
    let safe_x: [f64; LANES] = std::array::from_fn(|i| pick(holds[i], x[i], 1.0));
    let sum = series(&safe_a, &safe_x, &std::array::from_fn(|i| pick(holds[i] & low[i], 1.0, 0.0)));
    let apart = |i: usize| holds[i] & !low[i];
    let tail = fraction::<F>(
        &std::array::from_fn(|i| pick(apart(i), a[i], 1.0)),
        &std::array::from_fn(|i| pick(apart(i), x[i], 2.0)),
    );
    let mut y = [0.0; LANES];
    for i in 0..LANES {
        // x^a e^-x / Γ(a + 1)
        let level =
            fma::<F>(safe_a[i], ln::<F, true>(safe_x[i]), -safe_x[i]) - positive_lgamma::<F, true>(safe_a[i] + 1.0);
        let front = if level > -690.0 { exp_of_minus::<F, true>(-level.min(0.0)) } else { 0.0 };
        let part = front * if low[i] { sum[i] } else { tail[i] * safe_a[i] };
        y[i] = if low[i] == UPPER { 1.0 - part } else { part };
    }
    (y, holds)
}

/// B₂ⱼ / (2j)!, j from 1.
const EULER: [f64; 10] = {
    let (mut terms, mut j, mut factorial) = ([0.0; 10], 0, 1.0);
    while j < 10 {
        factorial *= ((2 * j + 1) * (2 * j + 2)) as f64;
        terms[j] = BERNOULLI[j] / factorial;
        j += 1;
    }
    terms
};

/// Hurwitz's zeta function of one number, for finite x > 1 and q > 0; `D` is whether double precision needs it.
#[inline(always)]
fn positive_zeta<const F: bool, const D: bool>(x: f64, q: f64) -> f64 {
    // the terms before Euler and Maclaurin's formula takes over with the last of these
    let (count, corrections) = if D { (16, 10) } else { (8, 6) };
    let mut terms = [0.0; 16];
    for k in 0..count {
        terms[k] = pow::<F, D>(q + k as f64, -x);
    }
    let (a, p) = (q + (count - 1) as f64, terms[count - 1]);
    let (mut rest, inverse) = (0.0, 1.0 / (a * a));
    for j in (0..corrections).rev() {
        let n = x + 2.0 * j as f64;
        rest = (EULER[j] + rest) * if j == 0 { x } else { (n - 1.0) * n * inverse };
    }
    let tail = p * (a / (x - 1.0) + 0.5 + rest / a);
    terms[..count - 1].iter().rfold(tail, |sum, term| sum + term)
}

/// Hurwitz's zeta function.
#[inline(always)]
pub fn zeta<const F: bool, const D: bool>(x: f64, q: f64) -> f64 {
    // Beyond these the formula's terms do not shrink, or the sum is one term.
    if x > 1.0 && x < 60.0 && q > 0.0 && q < 1e12 { positive_zeta::<F, D>(x, q) } else { special::zeta(x, q) }
}

/// The n-th derivative of digamma.
#[inline(always)]
pub fn polygamma<const F: bool, const D: bool>(n: f64, x: f64) -> f64 {
    if n >= 1.0 && n < 20.0 && n == n.floor() {
        let factorial: f64 = (2..=n as u32).map(f64::from).product();
        let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
        return sign * factorial * zeta::<F, D>(n + 1.0, x);
    }
    special::polygamma(n, x)
}

/// P(a, x), or Q(a, x) if `UPPER`, of a tile.
#[inline(always)]
pub fn igamma_tile<const F: bool, const UPPER: bool, const N: usize>(a: &[f32; N], x: &[f32; N], o: &mut [f32; N]) {
    let alone = if UPPER { special::igammac } else { special::igamma };
    for start in (0..N).step_by(LANES) {
        let count = LANES.min(N - start);
        let (mut some_a, mut some_x) = ([0.0; LANES], [0.0; LANES]);
        for i in 0..count {
            (some_a[i], some_x[i]) = (f64::from(a[start + i]), f64::from(x[start + i]));
        }
        let (y, holds) = igamma::<F, UPPER>(&some_a, &some_x);
        for i in 0..count {
            o[start + i] = if holds[i] { y[i] as f32 } else { alone(some_a[i], some_x[i]) as f32 };
        }
    }
}

/// Functions of two tiles of $T, number by number in double precision.
macro_rules! pair_tiles {
    ($T:ident: $($(#[$doc:meta])* $name:ident<$F:ident>($x:ident, $y:ident) = $body:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// None; it is called like functions that have some.
            #[inline(always)]
            pub unsafe fn $name<const $F: bool, const W: bool, const N: usize>(x: &[$T; N], y: &[$T; N], o: &mut [$T; N]) {
                for i in 0..N {
                    let ($x, $y) = (f64::from(x[i]), f64::from(y[i]));
                    o[i] = $body as $T;
                }
            }
        )*
    };
}
pub(super) use pair_tiles;
