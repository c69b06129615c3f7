//! Convolutions of one feature to one feature, as filters of signals and images are.
//!
//! There is no matrix to speak of: outputs that lie side by side are summed in vectors, each tap of the kernel times a
//! stretch of the operand. An output's taps are added in their order, in runs whose sums are added in their order, so
//! the bits do not depend on vectors or threads. Read next: `simd/lanes.rs` for the vectors.

use super::Sizes;
use crate::elementwise::kernel::{In, Out};
use crate::pool;
use crate::simd::dispatch;
use crate::simd::lanes::{Lanes, Real};

/// Taps that are summed before they join the sum so far, so that errors of long kernels grow slowly.
const RUN: usize = 256;
/// Outputs of a task, about.
const TASK: usize = 4096;

/// Outputs side by side.
pub(super) struct Stretch<'a, T> {
    /// The first tap's element under the first output.
    x: *const T,
    /// Where each tap's element is from there.
    taps: &'a [usize],
    w: &'a [T],
    y: *mut T,
    n: usize,
}

/// An element with a kernel.
pub(super) trait Filter: Real {
    /// The outputs of a stretch.
    ///
    /// # Safety
    /// `x` must be valid for `n` elements from each tap on, `y` for `n` outputs that nobody else uses.
    unsafe fn filter(p: &Stretch<'_, Self>);
}

macro_rules! filter {
    ($T:ty, $wide:ident, $half:ident) => {
        impl Filter for $T {
            unsafe fn filter(p: &Stretch<'_, $T>) {
                dispatch!($T, $wide, $half, stretch, p: &Stretch<'_, $T>, false);
            }
        }
    };
}
filter!(f32, __m512, __m256);
filter!(f64, __m512d, __m256d);

#[inline(always)]
unsafe fn stretch<L: Lanes>(p: &Stretch<'_, L::T>) {
    let mut at = 0;
    // SAFETY: the caller's contract: blocks lie inside the stretch, and so do the last elements.
    unsafe {
        while at + 8 * L::N <= p.n {
            block::<L, 8>(p, at, |x| L::load(x), |v, y| v.store(y));
            at += 8 * L::N;
        }
        while at + 2 * L::N <= p.n {
            block::<L, 2>(p, at, |x| L::load(x), |v, y| v.store(y));
            at += 2 * L::N;
        }
        while at < p.n {
            let n = L::N.min(p.n - at);
            block::<L, 1>(p, at, |x| L::load_first(x, n), |v, y| v.store_first(y, n));
            at += n;
        }
    }
}

/// The outputs of `K` vectors from `at` on.
#[inline(always)]
unsafe fn block<L: Lanes, const K: usize>(
    p: &Stretch<'_, L::T>,
    at: usize,
    load: impl Fn(*const L::T) -> L,
    store: impl Fn(L, *mut L::T),
) {
    // SAFETY: the caller's contract.
    unsafe {
        let zero = L::splat(L::T::ZERO);
        let mut all = [zero; K];
        for (taps, w) in p.taps.chunks(RUN).zip(p.w.chunks(RUN)) {
            let mut sums = [zero; K];
            for (&tap, &w) in taps.iter().zip(w) {
                let (x, w) = (p.x.add(at + tap), L::splat(w));
                for k in 0..K {
                    sums[k] = L::fma(load(x.add(k * L::N)), w, sums[k]);
                }
            }
            for k in 0..K {
                all[k] = all[k].plus(sums[k]);
            }
        }
        for k in 0..K {
            store(all[k], p.y.add(at + k * L::N));
        }
    }
}

/// Where each element under a window is.
fn taps(s: &Sizes) -> Vec<usize> {
    s.runs.iter().flat_map(|&run| run..run + s.run).collect()
}

/// The operand and the result, which threads write in disjoint parts.
struct Ends<T> {
    x: *const T,
    y: *mut T,
}
// SAFETY: see the type.
unsafe impl<T> Sync for Ends<T> {}

/// A convolution whose windows along the last axis, `line` of them, are one element apart.
pub(super) fn run<T: Filter>(s: &Sizes, images: usize, line: usize, x: In<'_>, w: In<'_>, out: &mut Out<'_>) {
    let (taps, places) = (taps(s), s.starts.len());
    let (w, ends) = (w.of::<T>(), Ends { x: x.of::<T>().as_ptr(), y: out.of::<T>().as_mut_ptr() });
    let ends = &ends;
    // A task has some lines, or a part of one.
    let parts = line.div_ceil(TASK);
    let part = line.div_ceil(parts);
    let lines = places / line;
    let each = (TASK / line).clamp(1, lines);
    let tasks = lines.div_ceil(each);
    let work = images * places * taps.len() / (if size_of::<T>() == 4 { 32 } else { 16 });
    pool::share((work + images * places / 4) as u64, images * tasks * parts, &|_, task| {
        let (image, task, first) = (task / parts / tasks, task / parts % tasks, task % parts * part);
        let n = part.min(line - first);
        for row in task * each..(task * each + each).min(lines) {
            let from = image * s.image + s.starts[row * line] + first;
            let to = image * places + row * line + first;
            let (x, y) = (ends.x.wrapping_add(from), ends.y.wrapping_add(to));
            // SAFETY: the windows of a line follow each other and lie inside the image; each task has its own outputs.
            unsafe { T::filter(&Stretch { x, taps: &taps, w, y, n }) };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::lanes::Plain;
    use proptest::prelude::*;

    fn value(i: usize) -> f64 {
        ((i * 7919 % 1013) as f64 - 500.0) / 37.0
    }

    macro_rules! check {
        ($T:ty, $n:expr, $taps:expr) => {
            let (n, taps): (usize, &[usize]) = ($n, $taps);
            let most = taps.iter().max().copied().unwrap_or(0);
            let x: Vec<$T> = (0..n + most).map(|i| value(i) as $T).collect();
            let w: Vec<$T> = (0..taps.len()).map(|i| value(3 * i + 1) as $T).collect();
            let mut y = vec![<$T>::NAN; n + 1];
            let mut plain = y.clone();
            let of = |y: &mut Vec<$T>| Stretch { x: x.as_ptr(), taps, w: &w, y: y.as_mut_ptr(), n };
            // SAFETY: the operand reaches as far as the last tap of the last output.
            unsafe {
                <$T>::filter(&of(&mut y));
                stretch::<Plain<$T, 8, true>>(&of(&mut plain));
            }
            assert!(y[n].is_nan() && plain[n].is_nan(), "nothing is written behind the outputs");
            for i in 0..n {
                let terms = || taps.iter().zip(&w).map(|(&t, &w)| x[i + t] as f64 * w as f64);
                let (want, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                let error = (y[i] as f64 - want).abs() / (size + 1e-300);
                assert!(error <= RUN as f64 * <$T>::EPSILON as f64, "output {i} of {n}: {} {want}", y[i]);
                if crate::simd::wide() {
                    assert_eq!(y[i].to_bits(), plain[i].to_bits(), "output {i} of {n}");
                }
            }
        };
    }

    proptest! {
        #[test]
        #[allow(clippy::unnecessary_cast)]
        fn outputs_are_sums_and_have_the_bits_of_arrays(n in 1usize..300, taps in prop::collection::vec(0usize..50, 0..600)) {
            check!(f32, n, &taps);
            check!(f64, n, &taps);
        }
    }
}
