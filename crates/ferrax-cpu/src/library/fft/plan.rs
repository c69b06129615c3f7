//! What is computed once for a length: the radices of its passes, their roots of unity, where results end.
//!
//! Roots are computed in double precision from the first eighth of the circle, so that they have all of its symmetries.
//! Read next: `block.rs`.

use super::butterfly::{Constant, RADICES};

/// A pass: blocks of `radix * m` elements become blocks of m.
#[derive(Clone, Copy)]
pub struct Pass {
    pub radix: usize,
    pub m: usize,
    /// Where the roots of the pass begin in `Plan::turns`.
    pub turns: usize,
}

/// A plan for transforms of `n` complex elements.
pub struct Plan<T> {
    pub n: usize,
    pub passes: Vec<Pass>,
    pub turns: Vec<T>,
    /// The element of the block where result k stands; that of real numbers has one more, at the end.
    pub order: Vec<u32>,
    /// For the transform of 2n real numbers: e^(-2πi k / 2n) / 2i, k up to n / 2. Empty otherwise.
    pub halves: Vec<T>,
}

/// cos and sin of 2πk / n.
pub fn root(k: usize, n: usize) -> (f64, f64) {
    // The angle in eighths of a turn's n-th.
    let mut a = 8 * (k % n);
    let below = a > 4 * n;
    a = if below { 8 * n - a } else { a };
    let left = a > 2 * n;
    a = if left { 4 * n - a } else { a };
    let steep = a > n;
    a = if steep { 2 * n - a } else { a };
    let (mut sin, mut cos) = libm::sincos(std::f64::consts::PI * a as f64 / (4 * n) as f64);
    if steep {
        (sin, cos) = (cos, sin);
    }
    if a == n {
        // The diagonal: the two are one number.
        (sin, cos) = (std::f64::consts::FRAC_1_SQRT_2, std::f64::consts::FRAC_1_SQRT_2);
    }
    (if left { -cos } else { cos }, if below { -sin } else { sin })
}

/// Operations of a pass for each element, about: those of the transform, of the roots, and of memory.
fn price(radix: usize) -> usize {
    let own = match radix {
        2 => 20,
        3 | 4 => 40,
        5 => 64,
        6 => 60,
        7 => 94,
        8 => 65,
        10 => 84,
        11 => 145,
        _ => 170,
    };
    own + 40 * (radix - 1) / radix + 40
}

/// The cheapest radices, none above `most`, whose product is n; none where n has other prime factors.
fn radices(n: usize, most: usize) -> Option<(usize, Vec<usize>)> {
    if n == 1 {
        return Some((0, Vec::new()));
    }
    let ways = RADICES.iter().filter(|&&r| r <= most && n.is_multiple_of(r)).filter_map(|&r| {
        let (rest, mut list) = radices(n / r, r)?;
        list.push(r);
        Some((price(r) + rest, list))
    });
    ways.min_by_key(|(price, _)| *price)
}

impl<T: Constant> Plan<T> {
    /// A plan, if n has small prime factors only; for 2n real numbers where `halves`.
    pub fn new(n: usize, halves: bool) -> Option<Plan<T>> {
        let (_, list) = radices(n, n)?;
        let (mut passes, mut turns, mut order) = (Vec::new(), Vec::new(), vec![0u32]);
        let mut m = n;
        for &radix in list.iter().rev() {
            let length = m;
            m /= radix;
            passes.push(Pass { radix, m, turns: turns.len() });
            if m > 1 {
                for (j, k) in (0..m).flat_map(|j| (1..radix).map(move |k| (j, k))) {
                    let (cos, sin) = root(j * k, length);
                    turns.extend([T::of(cos), T::of(-sin)]);
                }
            }
        }
        // Result k of a block is result k / R of its block k mod R, from the last pass up.
        for &radix in &list {
            let m = order.len();
            order = (0..radix * m).map(|k| (k % radix * m) as u32 + order[k / radix]).collect();
        }
        order.push(n as u32);
        let half = |k| {
            let (cos, sin) = root(k, 2 * n);
            [T::of(-0.5 * sin), T::of(-0.5 * cos)]
        };
        let halves = if halves { (0..=n / 2).flat_map(half).collect() } else { Vec::new() };
        Some(Plan { n, passes, turns, order, halves })
    }
}
