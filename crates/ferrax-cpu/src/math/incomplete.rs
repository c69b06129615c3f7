//! Incomplete gamma functions of many numbers, to the digits that single precision needs, and the zeta functions.
//!
//! A few numbers go through the sums together, in vectors: of the former until all have enough terms. `special` has the
//! former in double precision, and both for the numbers that these are not for (ends of the range, large parameters,
//! negative bases). `F` says whether multiply-add is fused.
//! Sources: DLMF 8.7 and 8.9 for series and continued fraction, 25.11.5 for Euler and Maclaurin's formula.

use super::double::exp_of_minus;
use super::gamma::{ln, positive_lgamma};
use super::powers::pow;
use super::special;
use crate::simd::fma64 as fma;
use ferrax_loops::coefficients::BERNOULLI;
use std::hint::black_box;

/// Numbers that are computed together.
pub const LANES: usize = 16;
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

/// P(a, x), or Q(a, x) if `UPPER`, of some numbers, to the digits of single precision.
#[inline(always)]
pub fn igamma<const F: bool, const UPPER: bool>(a: &[f64; LANES], x: &[f64; LANES]) -> [f64; LANES] {
    let (mut holds, mut low) = ([false; LANES], [false; LANES]);
    for i in 0..LANES {
        holds[i] = (a[i] > 0.0) & (x[i] > 0.0) & (a[i] < LARGE.0) & (x[i] < LARGE.1);
        // of the two the one that is no small difference from 1
        low[i] = if UPPER { (x[i] < 1.0) | (x[i] < a[i]) } else { (x[i] <= 1.0) | (x[i] <= a[i]) };
        // Near zero the upper function is no difference from 1.
        holds[i] &= !UPPER | (a[i] >= 1.0) | (x[i] >= 1.0);
    }
    let alone = if UPPER { special::igammac } else { special::igamma };
    if !holds.contains(&true) {
        return std::array::from_fn(|i| alone(a[i], x[i]));
    }
    // Numbers that take no part in a sum are ones that have enough at once.
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
    std::array::from_fn(|i| if holds[i] { y[i] } else { alone(a[i], x[i]) })
}

#[inline(always)]
fn pick(on: bool, x: f64, other: f64) -> f64 {
    if on { x } else { other }
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

/// Hurwitz's zeta function of some numbers, for x from 1 to 60 and q > 0; `D` is whether double precision needs it.
#[inline(always)]
fn positive_zeta<const F: bool, const D: bool>(x: &[f64; LANES], q: &[f64; LANES]) -> [f64; LANES] {
    // the terms before Euler and Maclaurin's formula takes over with the last of these
    let (count, corrections) = if D { (16, 10) } else { (8, 6) };
    let mut sum = [0.0; LANES];
    for i in 0..LANES {
        let a = q[i] + f64::from(count - 1);
        let (mut rest, inverse) = (0.0, 1.0 / (a * a));
        for j in (0..corrections).rev() {
            let n = x[i] + 2.0 * j as f64;
            rest = (EULER[j] + rest) * if j == 0 { x[i] } else { (n - 1.0) * n * inverse };
        }
        sum[i] = pow::<F, D>(a, -x[i]) * (a / (x[i] - 1.0) + 0.5 + rest / a);
    }
    // Unrolled, powers would take more code than that is worth.
    for k in (0..black_box(count - 1)).rev() {
        for i in 0..LANES {
            sum[i] += pow::<F, D>(q[i] + f64::from(k), -x[i]);
        }
    }
    sum
}

/// Hurwitz's zeta function of some numbers.
#[inline(always)]
pub fn zeta<const F: bool, const D: bool>(x: &[f64; LANES], q: &[f64; LANES]) -> [f64; LANES] {
    // Beyond these the formula's terms do not shrink, or the sum is one term.
    let holds: [bool; LANES] = std::array::from_fn(|i| (x[i] > 1.0) & (x[i] < 60.0) & (q[i] > 0.0) & (q[i] < 1e12));
    let safe_x = std::array::from_fn(|i| pick(holds[i], x[i], 2.0));
    let y = positive_zeta::<F, D>(&safe_x, &std::array::from_fn(|i| pick(holds[i], q[i], 1.0)));
    std::array::from_fn(|i| if holds[i] { y[i] } else { special::zeta(x[i], q[i]) })
}

/// (-1)^(n + 1) n!
const FACTORS: [f64; 20] = {
    let (mut factors, mut n) = ([-1.0; 20], 1);
    while n < 20 {
        factors[n] = -factors[n - 1] * n as f64;
        n += 1;
    }
    factors
};

/// The n-th derivatives of digamma.
#[inline(always)]
pub fn polygamma<const F: bool, const D: bool>(n: &[f64; LANES], x: &[f64; LANES]) -> [f64; LANES] {
    let holds: [bool; LANES] = std::array::from_fn(|i| (n[i] >= 1.0) & (n[i] < 20.0) & (n[i] == n[i].floor()));
    let y = zeta::<F, D>(&std::array::from_fn(|i| pick(holds[i], n[i] + 1.0, 2.0)), x);
    std::array::from_fn(|i| if holds[i] { FACTORS[n[i] as usize] * y[i] } else { special::polygamma(n[i], x[i]) })
}

/// Functions of two tiles of $T, from those of some numbers in double precision.
macro_rules! pair_tiles {
    ($T:ident: $($(#[$doc:meta])* $name:ident<$F:ident>($x:ident, $y:ident) = $body:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// None; it is called like functions that have some.
            #[inline(always)]
            pub unsafe fn $name<const $F: bool, const W: bool, const N: usize>(x: &[$T; N], y: &[$T; N], o: &mut [$T; N]) {
                for start in (0..N).step_by(incomplete::LANES) {
                    let count = incomplete::LANES.min(N - start);
                    let (mut $x, mut $y) = ([1.0; incomplete::LANES], [1.0; incomplete::LANES]);
                    for i in 0..count {
                        ($x[i], $y[i]) = (f64::from(x[start + i]), f64::from(y[start + i]));
                    }
                    let results: [f64; incomplete::LANES] = $body;
                    for i in 0..count {
                        o[start + i] = results[i] as $T;
                    }
                }
            }
        )*
    };
}
pub(super) use pair_tiles;
