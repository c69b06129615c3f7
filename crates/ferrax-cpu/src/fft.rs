//! Fourier transforms over the last axes of arrays: rows go to `ferrax-linalg`, axis after axis.

use crate::kernel::{In, Out};
use crate::pool;
use ferrax_base::{Buffer, DType, Result, bail};
use ferrax_linalg::fft::{self, Fourier};
use ferrax_linalg::{Complex, Share};
use ferrax_loops::fft::FftKind;

/// `Fft`.
pub fn run(kind: FftKind, axes: usize, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    if out.ty.size() == 0 {
        return Ok(());
    }
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

fn transform<T: Fourier>(kind: FftKind, axes: usize, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let rank = x.shape().len();
    let (shape, last) = (out.shape(), rank - 1);
    let others = rank - axes..last;
    let inverse = matches!(kind, FftKind::Inverse | FftKind::RealInverse);
    let lengths: usize = shape[rank - axes..].iter().product();
    let scale = if inverse { T::ONE / T::from_usize(lengths).unwrap_or(T::ONE) } else { T::ONE };
    match kind {
        FftKind::Forward | FftKind::Inverse => {
            out.bytes().copy_from_slice(x.bytes());
            let data = out.of::<Complex<T>>();
            (others.start..rank).rev().for_each(|axis| fft::complex(data, around(shape, axis), inverse, SHARE));
            if inverse {
                data.iter_mut().for_each(|z| *z = Complex::new(z.re * scale, z.im * scale));
            }
        }
        FftKind::Real => {
            let data = out.of::<Complex<T>>();
            fft::forward(x.of::<T>(), x.shape()[last], data, SHARE);
            others.rev().for_each(|axis| fft::complex(data, around(shape, axis), false, SHARE));
        }
        FftKind::RealInverse => {
            let mut held = None;
            let mut data = x.of::<Complex<T>>();
            if !others.is_empty() {
                let work = held.insert(Buffer::from_bytes(x.bytes())?).typed_mut::<Complex<T>>();
                others.for_each(|axis| fft::complex(work, around(x.shape(), axis), true, SHARE));
                data = work;
            }
            let real = out.of::<T>();
            fft::backward(data, shape[last], real, SHARE);
            real.iter_mut().for_each(|v| *v *= scale);
        }
    }
    Ok(())
}
