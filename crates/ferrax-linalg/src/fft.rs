//! Fourier transforms of rows, one by one, by rustfft and realfft. Plans are kept for each length.

use crate::{Share, Shared};
use faer::complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What is kept of one length.
enum Plan<T: FftNum> {
    Complex(Arc<dyn Fft<T>>),
    Forward(Arc<dyn RealToComplex<T>>),
    Backward(Arc<dyn ComplexToReal<T>>),
}

/// Which transform a plan is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Complex { inverse: bool },
    Forward,
    Backward,
}

type Plans<T> = Mutex<HashMap<(Way, usize), Arc<Plan<T>>>>;

/// Plans beyond this number are forgotten, all at once.
const KEPT: usize = 256;

/// A real number type with transforms.
pub trait Fourier: FftNum + crate::Real {
    /// The complex transform of every row of `n` elements, in place.
    fn complex_rows(rows: &mut [Complex<Self>], n: usize, inverse: bool);
    /// The transform of every real row of `n` elements: n / 2 + 1 complex ones.
    fn forward_rows(rows: &[Self], n: usize, out: &mut [Complex<Self>]);
    /// The real rows of `n` elements whose transforms, of n / 2 + 1 elements, are given.
    fn backward_rows(rows: &[Complex<Self>], n: usize, out: &mut [Self]);
}

macro_rules! fourier {
    ($($T:ty),*) => {$(
        impl Fourier for $T {
            fn complex_rows(rows: &mut [Complex<Self>], n: usize, inverse: bool) {
                static PLANS: OnceLock<Plans<$T>> = OnceLock::new();
                complex_rows(PLANS.get_or_init(Default::default), rows, n, inverse);
            }
            fn forward_rows(rows: &[Self], n: usize, out: &mut [Complex<Self>]) {
                static PLANS: OnceLock<Plans<$T>> = OnceLock::new();
                forward_rows(PLANS.get_or_init(Default::default), rows, n, out);
            }
            fn backward_rows(rows: &[Complex<Self>], n: usize, out: &mut [Self]) {
                static PLANS: OnceLock<Plans<$T>> = OnceLock::new();
                backward_rows(PLANS.get_or_init(Default::default), rows, n, out);
            }
        }
    )*};
}
fourier!(f32, f64);

fn plan<T: FftNum>(plans: &Plans<T>, way: Way, n: usize) -> Arc<Plan<T>> {
    let lock = || plans.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = lock().get(&(way, n)) {
        return found.clone();
    }
    let made = Arc::new(match way {
        Way::Complex { inverse } => {
            let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
            Plan::Complex(FftPlanner::new().plan_fft(n, direction))
        }
        Way::Forward => Plan::Forward(RealFftPlanner::new().plan_fft_forward(n)),
        Way::Backward => Plan::Backward(RealFftPlanner::new().plan_fft_inverse(n)),
    });
    let mut kept = lock();
    if kept.len() >= KEPT {
        kept.clear();
    }
    kept.insert((way, n), made.clone());
    made
}

fn complex_rows<T: FftNum>(plans: &Plans<T>, rows: &mut [Complex<T>], n: usize, inverse: bool) {
    let plan = plan(plans, Way::Complex { inverse }, n);
    if let Plan::Complex(fft) = &*plan {
        let mut scratch = vec![Complex::new(T::zero(), T::zero()); fft.get_inplace_scratch_len()];
        fft.process_with_scratch(rows, &mut scratch);
    }
}

fn forward_rows<T: FftNum>(plans: &Plans<T>, rows: &[T], n: usize, out: &mut [Complex<T>]) {
    let plan = plan(plans, Way::Forward, n);
    let Plan::Forward(fft) = &*plan else { return };
    let (mut work, mut scratch) = (fft.make_input_vec(), fft.make_scratch_vec());
    for (row, out) in rows.chunks_exact(n).zip(out.chunks_exact_mut(n / 2 + 1)) {
        work.copy_from_slice(row);
        let done = fft.process_with_scratch(&mut work, out, &mut scratch);
        debug_assert!(done.is_ok(), "lengths are the plan's");
    }
}

fn backward_rows<T: FftNum>(plans: &Plans<T>, rows: &[Complex<T>], n: usize, out: &mut [T]) {
    let plan = plan(plans, Way::Backward, n);
    let Plan::Backward(fft) = &*plan else { return };
    let (mut work, mut scratch) = (fft.make_input_vec(), fft.make_scratch_vec());
    for (row, out) in rows.chunks_exact(n / 2 + 1).zip(out.chunks_exact_mut(n)) {
        work.copy_from_slice(row);
        // The sums that stand there are real.
        work[0].im = T::zero();
        if n.is_multiple_of(2) {
            work[n / 2].im = T::zero();
        }
        let done = fft.process_with_scratch(&mut work, out, &mut scratch);
        debug_assert!(done.is_ok(), "lengths are the plan's");
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
    from: Option<&[Complex<T>]>,
    data: &mut [Complex<T>],
    (outer, n, inner): (usize, usize, usize),
    inverse: bool,
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
            T::complex_rows(rows, n, inverse);
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
        T::complex_rows(&mut columns, n, inverse);
        scaled(&mut columns, scale);
        for i in 0..n {
            // SAFETY: as above.
            let row = unsafe { p.slice(at(i), width) };
            row.iter_mut().enumerate().for_each(|(c, x)| *x = columns[c * n + i]);
        }
    });
}

/// The transforms of real rows of `n` elements.
pub fn forward<T: Fourier>(rows: &[T], n: usize, out: &mut [Complex<T>], share: Share<'_>) {
    let (count, half) = (rows.len() / n, n / 2 + 1);
    assert!(out.len() >= count * half, "the result is too short");
    let (p, step) = (Shared(out.as_mut_ptr()), chunk(count, n));
    share(estimate(rows.len(), n) / 2, count.div_ceil(step), &|t| {
        let (first, last) = (t * step, count.min((t + 1) * step));
        // SAFETY: tasks have rows of their own.
        T::forward_rows(&rows[first * n..last * n], n, unsafe { p.slice(first * half, (last - first) * half) });
    });
}

/// The real rows of `n` elements that have these transforms, times n and `scale`.
pub fn backward<T: Fourier>(rows: &[Complex<T>], n: usize, out: &mut [T], scale: T, share: Share<'_>) {
    let half = n / 2 + 1;
    let count = rows.len() / half;
    assert!(out.len() >= count * n, "the result is too short");
    let (p, step) = (Shared(out.as_mut_ptr()), chunk(count, n));
    share(estimate(out.len(), n) / 2, count.div_ceil(step), &|t| {
        let (first, last) = (t * step, count.min((t + 1) * step));
        // SAFETY: tasks have rows of their own.
        let out = unsafe { p.slice(first * n, (last - first) * n) };
        T::backward_rows(&rows[first * half..last * half], n, out);
        out.iter_mut().for_each(|x| *x *= scale);
    });
}
