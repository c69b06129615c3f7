//! Fourier transforms of rows, one by one, by rustfft and realfft. Whoever calls keeps the plans.

use crate::{Share, Shared};
use faer::complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::Arc;

/// A real number type with transforms. Plans are made by functions of one type, so that rustfft is compiled here.
pub trait Fourier: FftNum + crate::Real {
    /// The plan for rows of n complex elements.
    fn complex_plan(n: usize, inverse: bool) -> ComplexPlan<Self>;
    /// The plan for rows of n real elements.
    fn forward_plan(n: usize) -> ForwardPlan<Self>;
    /// The plan for rows of n real results.
    fn backward_plan(n: usize) -> BackwardPlan<Self>;
}

macro_rules! fourier {
    ($($T:ty)*) => {$(
        impl Fourier for $T {
            fn complex_plan(n: usize, inverse: bool) -> ComplexPlan<$T> {
                let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
                ComplexPlan(FftPlanner::new().plan_fft(n, direction))
            }
            fn forward_plan(n: usize) -> ForwardPlan<$T> {
                ForwardPlan(RealFftPlanner::new().plan_fft_forward(n))
            }
            fn backward_plan(n: usize) -> BackwardPlan<$T> {
                BackwardPlan(RealFftPlanner::new().plan_fft_inverse(n))
            }
        }
    )*};
}
fourier!(f32 f64);

/// What is computed once for complex transforms of one length.
pub struct ComplexPlan<T>(Arc<dyn Fft<T>>);

/// What is computed once for transforms of real rows of one length.
pub struct ForwardPlan<T>(Arc<dyn RealToComplex<T>>);

/// What is computed once for transforms to real rows of one length.
pub struct BackwardPlan<T>(Arc<dyn ComplexToReal<T>>);

impl<T: Fourier> ComplexPlan<T> {
    /// The transform of every row, in place.
    fn rows(&self, rows: &mut [Complex<T>]) {
        let mut scratch = vec![Complex::new(T::zero(), T::zero()); self.0.get_inplace_scratch_len()];
        self.0.process_with_scratch(rows, &mut scratch);
    }
}

impl<T: Fourier> ForwardPlan<T> {
    /// The transform of every row: n / 2 + 1 complex elements.
    fn rows(&self, rows: &[T], out: &mut [Complex<T>]) {
        let n = self.0.len();
        let (mut work, mut scratch) = (self.0.make_input_vec(), self.0.make_scratch_vec());
        for (row, out) in rows.chunks_exact(n).zip(out.chunks_exact_mut(n / 2 + 1)) {
            work.copy_from_slice(row);
            let done = self.0.process_with_scratch(&mut work, out, &mut scratch);
            debug_assert!(done.is_ok(), "lengths are the plan's");
        }
    }
}

impl<T: Fourier> BackwardPlan<T> {
    /// The rows whose transforms, of n / 2 + 1 elements, are given.
    fn rows(&self, rows: &[Complex<T>], out: &mut [T]) {
        let n = self.0.len();
        let (mut work, mut scratch) = (self.0.make_input_vec(), self.0.make_scratch_vec());
        for (row, out) in rows.chunks_exact(n / 2 + 1).zip(out.chunks_exact_mut(n)) {
            work.copy_from_slice(row);
            // The sums that stand there are real.
            work[0].im = T::zero();
            if n.is_multiple_of(2) {
                work[n / 2].im = T::zero();
            }
            let done = self.0.process_with_scratch(&mut work, out, &mut scratch);
            debug_assert!(done.is_ok(), "lengths are the plan's");
        }
    }
}

/// Nanoseconds that transforms of `total` elements in rows of `n` take, roughly.
fn estimate(total: usize, n: usize) -> u64 {
    (total * (n.max(2).ilog2() as usize + 2) / 4) as u64
}

/// Rows of a task, of `count`.
fn chunk(count: usize, n: usize) -> usize {
    (16_384 / n.max(1)).clamp(1, count.max(1))
}

/// Columns that are gathered at once for an axis that is not the last.
const COLUMNS: usize = 16;

/// Multiplies by `scale`, unless that is one.
fn scaled<T: Fourier>(data: &mut [Complex<T>], scale: T) {
    if scale != T::ONE {
        data.iter_mut().for_each(|z| *z = Complex::new(z.re * scale, z.im * scale));
    }
}

/// The complex transform along one axis of an array of shape (outer, n, inner), times `scale`: of `from`, or in place.
pub fn complex<T: Fourier>(
    plan: &ComplexPlan<T>,
    from: Option<&[Complex<T>]>,
    data: &mut [Complex<T>],
    (outer, n, inner): (usize, usize, usize),
    scale: T,
    share: Share<'_>,
) {
    let data = &mut data[..outer * n * inner];
    let from = from.map(|from| &from[..data.len()]);
    let work = estimate(data.len(), n);
    let p = Shared(data.as_mut_ptr());
    if inner == 1 {
        let rows = chunk(outer, n);
        share(work, outer.div_ceil(rows), &|t| {
            let (first, last) = (t * rows * n, outer.min((t + 1) * rows) * n);
            // SAFETY: tasks have rows of their own.
            let rows = unsafe { p.slice(first, last - first) };
            if let Some(from) = from {
                rows.copy_from_slice(&from[first..last]);
            }
            plan.rows(rows);
            scaled(rows, scale);
        });
        return;
    }
    let blocks = inner.div_ceil(COLUMNS);
    share(2 * work, outer * blocks, &|t| {
        let (o, first) = (t / blocks, t % blocks * COLUMNS);
        let width = COLUMNS.min(inner - first);
        let at = |i: usize| o * n * inner + i * inner + first;
        let mut columns = vec![Complex::new(T::zero(), T::zero()); n * width];
        for i in 0..n {
            // SAFETY: tasks have columns of their own.
            let row = from.map_or_else(|| unsafe { &*p.slice(at(i), width) }, |from| &from[at(i)..at(i) + width]);
            row.iter().enumerate().for_each(|(c, x)| columns[c * n + i] = *x);
        }
        plan.rows(&mut columns);
        scaled(&mut columns, scale);
        for i in 0..n {
            // SAFETY: as above.
            let row = unsafe { p.slice(at(i), width) };
            row.iter_mut().enumerate().for_each(|(c, x)| *x = columns[c * n + i]);
        }
    });
}

/// The transforms of real rows.
pub fn forward<T: Fourier>(plan: &ForwardPlan<T>, rows: &[T], out: &mut [Complex<T>], share: Share<'_>) {
    let n = plan.0.len();
    let (count, half) = (rows.len() / n, n / 2 + 1);
    assert!(out.len() >= count * half, "the result is too short");
    let (p, step) = (Shared(out.as_mut_ptr()), chunk(count, n));
    share(estimate(rows.len(), n) / 2, count.div_ceil(step), &|t| {
        let (first, last) = (t * step, count.min((t + 1) * step));
        // SAFETY: tasks have rows of their own.
        plan.rows(&rows[first * n..last * n], unsafe { p.slice(first * half, (last - first) * half) });
    });
}

/// The real rows of n elements that have these transforms, times n and `scale`.
pub fn backward<T: Fourier>(plan: &BackwardPlan<T>, rows: &[Complex<T>], out: &mut [T], scale: T, share: Share<'_>) {
    let n = plan.0.len();
    let half = n / 2 + 1;
    let count = rows.len() / half;
    assert!(out.len() >= count * n, "the result is too short");
    let (p, step) = (Shared(out.as_mut_ptr()), chunk(count, n));
    share(estimate(out.len(), n) / 2, count.div_ceil(step), &|t| {
        let (first, last) = (t * step, count.min((t + 1) * step));
        // SAFETY: tasks have rows of their own.
        let out = unsafe { p.slice(first * n, (last - first) * n) };
        plan.rows(&rows[first * half..last * half], out);
        out.iter_mut().for_each(|x| *x *= scale);
    });
}
