//! Fourier transforms over the last axes of arrays, axis after axis.
//!
//! Eight transforms and more of one length, or short ones, are computed side by side, one a lane of a vector, with the
//! same bits on every instruction set with fused multiply-add (`fft/many.rs`), if the length has small prime factors
//! only. Others go row by row to `ferrax-linalg`. Read next: `fft/many.rs`, `fft/block.rs`.

mod block;
mod butterfly;
mod kept;
pub mod many;
mod plan;
#[cfg(test)]
mod tests;

use crate::elementwise::kernel::{In, Out};
use crate::pool;
use block::Way;
use ferrax_base::{Buffer, DType, Result, bail};
use ferrax_linalg::fft;
use ferrax_linalg::{Complex, Share};
use ferrax_loops::fft::FftKind;
use many::{Element, Many};

/// `Fft`.
pub fn run(kind: FftKind, axes: usize, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    match out.ty.dtype.real() {
        DType::F32 => transform::<f32>(kind, axes, x, out),
        DType::F64 => transform::<f64>(kind, axes, x, out),
        other => bail!(NotImplemented, "the CPU engine has no Fourier transform of {other}"),
    }
}

const SHARE: Share<'static> = &|nanoseconds, tasks, run| pool::share(nanoseconds, tasks, &|_, i| run(i));

/// The shape seen as (outer, n, inner) around an axis.
fn around(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
}

fn transform<T: Element>(kind: FftKind, axes: usize, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let rank = x.shape().len();
    let (shape, last) = (out.shape(), rank - 1);
    let others = rank - axes..last;
    let inverse = matches!(kind, FftKind::Inverse | FftKind::RealInverse);
    let lengths: usize = shape[rank - axes..].iter().product();
    let scale = T::of(if inverse { 1.0 / lengths as f64 } else { 1.0 });
    match kind {
        FftKind::Forward | FftKind::Inverse => {
            let data = out.of::<Complex<T>>();
            for axis in (others.start..rank).rev() {
                let from = (axis == last).then(|| x.of::<Complex<T>>());
                let scale = if axis == others.start { scale } else { T::of(1.0) };
                complex(from, data, around(shape, axis), inverse, scale)?;
            }
        }
        FftKind::Real => {
            let data = out.of::<Complex<T>>();
            forward(x.of::<T>(), x.shape()[last], data)?;
            for axis in others.rev() {
                complex(None, data, around(shape, axis), false, scale)?;
            }
        }
        FftKind::RealInverse => {
            let mut held = None;
            let mut data = x.of::<Complex<T>>();
            if !others.is_empty() {
                let work = held.insert(Buffer::allocate(x.bytes().len())?).typed_mut::<Complex<T>>();
                for axis in others.clone() {
                    let from = (axis == others.start).then_some(data);
                    complex(from, work, around(x.shape(), axis), true, T::of(1.0))?;
                }
                data = work;
            }
            backward(data, shape[last], out.of::<T>(), scale)?;
        }
    }
    Ok(())
}

/// The complex transform along one axis of an array of shape (outer, n, inner), times `scale`: of `from`, or in place.
fn complex<T: Element>(
    from: Option<&[Complex<T>]>,
    data: &mut [Complex<T>],
    (outer, n, inner): (usize, usize, usize),
    inverse: bool,
    scale: T,
) -> Result<()> {
    let (way, count) = (Way::Complex { inner, inverse }, outer * inner);
    let Some(plan) = many::plan_of::<T>(way, n, count) else {
        fft::complex(&T::complex(n, inverse), from, data, (outer, n, inner), scale, SHARE);
        return Ok(());
    };
    assert!(
        data.len() >= count * n && from.is_none_or(|from| from.len() >= count * n),
        "arrays are as their shape says"
    );
    let dst = data.as_mut_ptr();
    let src = from.map_or(dst.cast_const(), <[_]>::as_ptr);
    // SAFETY: both arrays have that shape.
    unsafe { Many { plan: &plan, way, src: src.cast(), dst: dst.cast(), count, scale }.run() }
}

/// The transforms of real rows of n elements.
fn forward<T: Element>(rows: &[T], n: usize, out: &mut [Complex<T>]) -> Result<()> {
    let (way, count) = (Way::Forward(n), rows.len() / n);
    let Some(plan) = many::plan_of::<T>(way, n, count) else {
        fft::forward(&T::forward(n), rows, out, SHARE);
        return Ok(());
    };
    assert!(out.len() >= count * (n / 2 + 1), "the result is too short");
    // SAFETY: there are as many rows, and results.
    unsafe {
        Many { plan: &plan, way, src: rows.as_ptr(), dst: out.as_mut_ptr().cast(), count, scale: T::of(1.0) }.run()
    }
}

/// The real rows of n elements that have these transforms, times n and `scale`.
fn backward<T: Element>(rows: &[Complex<T>], n: usize, out: &mut [T], scale: T) -> Result<()> {
    let (way, count) = (Way::Backward(n), rows.len() / (n / 2 + 1));
    let Some(plan) = many::plan_of::<T>(way, n, count) else {
        fft::backward(&T::backward(n), rows, out, scale, SHARE);
        return Ok(());
    };
    assert!(out.len() >= count * n, "the result is too short");
    // SAFETY: there are as many transforms, and rows.
    unsafe { Many { plan: &plan, way, src: rows.as_ptr().cast(), dst: out.as_mut_ptr(), count, scale }.run() }
}
