//! Running reductions along an axis. Read next: `windows.rs` for reductions over sliding windows.

use crate::elementwise::kernel::{In, Out};
use crate::elementwise::{compute_dtype, convert};
use crate::library::reduce::{Monoid, with_monoid};
use crate::math::special::log_add_exp;
use ferrax_base::{Buffer, DType, Result, bail};
use ferrax_loops::ReduceOp;
use smallvec::SmallVec;

/// `Cumulative`: the running reduction along an axis.
pub fn cumulative(op: ReduceOp, axis: usize, reverse: bool, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let shape = x.shape();
    let dims = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    in_compute_dtype(x, out, |d, x, out| {
        if op == ReduceOp::LogSumExp {
            match d {
                DType::F32 => running_logsumexp::<f32>(x, out, dims, reverse, |v| v as f32),
                DType::F64 => running_logsumexp::<f64>(x, out, dims, reverse, |v| v),
                other => bail!(NotImplemented, "the CPU engine has no cumulative logsumexp of {other}"),
            }
            return Ok(());
        }
        if op == ReduceOp::Sum && d == DType::F32 {
            running_sum(x, out, dims, reverse);
            return Ok(());
        }
        with_monoid!(op, d, running_monoid(x, out, dims, reverse));
        Ok(())
    })
}

/// Runs `f` on elements of the compute dtype, converting around it where needed.
fn in_compute_dtype(x: In<'_>, out: &mut Out<'_>, f: impl Fn(DType, *const u8, *mut u8) -> Result<()>) -> Result<()> {
    let d = x.ty.dtype;
    let compute = compute_dtype(d);
    if d == compute {
        return f(d, x.ptr, out.ptr);
    }
    let n = out.ty.size();
    let wide = convert::widened(d, x.ptr, x.ty.size())?;
    let mut result = Buffer::allocate(n * compute.size())?;
    f(compute, wide.as_ptr(), result.as_mut_ptr())?;
    convert::narrowed(d, &result, out.bytes(), n);
    Ok(())
}

fn running_monoid<M: Monoid>(x: *const u8, out: *mut u8, dims: [usize; 3], reverse: bool) {
    running::<M::T>(x, out, dims, reverse, M::join);
}

/// Rows (outer) of `n` steps of `inner` contiguous lanes.
fn running<T: Copy>(x: *const u8, out: *mut u8, dims: [usize; 3], reverse: bool, join: impl Fn(T, T) -> T) {
    let [outer, n, inner] = dims;
    // SAFETY: callers pass an operand and a result of outer·n·inner elements of T.
    let (x, out) = unsafe {
        let len = outer * n * inner;
        (std::slice::from_raw_parts(x.cast::<T>(), len), std::slice::from_raw_parts_mut(out.cast::<T>(), len))
    };
    if inner == 1 {
        for (x, out) in x.chunks_exact(n.max(1)).zip(out.chunks_exact_mut(n.max(1))) {
            let mut acc = None;
            let mut step = |x: T, o: &mut T| {
                *o = acc.map_or(x, |acc| join(acc, x));
                acc = Some(*o);
            };
            if reverse {
                x.iter().zip(out.iter_mut()).rev().for_each(|(&x, o)| step(x, o));
            } else {
                x.iter().zip(out.iter_mut()).for_each(|(&x, o)| step(x, o));
            }
        }
        return;
    }
    for o in 0..outer {
        let row = |r: usize| (o * n + if reverse { n - 1 - r } else { r }) * inner;
        for r in 0..n {
            let at = row(r);
            if r == 0 {
                out[at..at + inner].copy_from_slice(&x[at..at + inner]);
                continue;
            }
            let before = row(r - 1);
            for j in 0..inner {
                out[at + j] = join(out[before + j], x[at + j]);
            }
        }
    }
}

/// Logarithms of sums run in more than double precision: rounded at every step, their errors would add up.
fn running_logsumexp<T: Copy + Into<f64>>(
    x: *const u8,
    out: *mut u8,
    dims: [usize; 3],
    reverse: bool,
    round: impl Fn(f64) -> T,
) {
    let [outer, n, inner] = dims;
    // SAFETY: the caller passes an operand and a result of outer·n·inner elements of T.
    let (x, out) = unsafe {
        let len = outer * n * inner;
        (std::slice::from_raw_parts(x.cast::<T>(), len), std::slice::from_raw_parts_mut(out.cast::<T>(), len))
    };
    let mut acc: SmallVec<[(f64, f64); 16]> = SmallVec::from_elem((0.0, 0.0), inner);
    for o in 0..outer {
        for r in 0..n {
            let at = (o * n + if reverse { n - 1 - r } else { r }) * inner;
            for (j, a) in acc.iter_mut().enumerate() {
                let x = x[at + j].into();
                *a = if r == 0 { (x, 0.0) } else { log_add_exp(*a, x) };
                out[at + j] = round(a.0);
            }
        }
    }
}

/// f32 sums run in double precision, so that long sums stay accurate; an overflow stays one.
fn running_sum(x: *const u8, out: *mut u8, dims: [usize; 3], reverse: bool) {
    let [outer, n, inner] = dims;
    // SAFETY: the caller passes an operand and a result of outer·n·inner floats.
    let (x, out) = unsafe {
        let len = outer * n * inner;
        (std::slice::from_raw_parts(x.cast::<f32>(), len), std::slice::from_raw_parts_mut(out.cast::<f32>(), len))
    };
    if inner == 1 {
        for (x, out) in x.chunks_exact(n.max(1)).zip(out.chunks_exact_mut(n.max(1))) {
            let (mut acc, mut overflow) = (0.0f64, false);
            let mut step = |x: f32, o: &mut f32| {
                acc += f64::from(x);
                *o = acc as f32;
                overflow |= o.is_infinite();
            };
            if reverse {
                x.iter().zip(out.iter_mut()).rev().for_each(|(&x, o)| step(x, o));
            } else {
                x.iter().zip(out.iter_mut()).for_each(|(&x, o)| step(x, o));
            }
            if overflow {
                overflowing_sum(x, out, reverse);
            }
        }
        return;
    }
    let mut acc: SmallVec<[f64; 16]> = SmallVec::from_elem(0.0, inner);
    for o in 0..outer {
        acc.fill(0.0);
        for r in 0..n {
            let at = (o * n + if reverse { n - 1 - r } else { r }) * inner;
            for (j, a) in acc.iter_mut().enumerate() {
                *a += f64::from(x[at + j]);
                let rounded = *a as f32;
                if rounded.is_infinite() {
                    *a = f64::from(rounded);
                }
                out[at + j] = rounded;
            }
        }
    }
}

/// A row's running sum where some sum is beyond the floats: it stays infinite from there.
fn overflowing_sum(x: &[f32], out: &mut [f32], reverse: bool) {
    let mut acc = 0.0;
    let n = x.len();
    for i in 0..n {
        let at = if reverse { n - 1 - i } else { i };
        acc += f64::from(x[at]);
        out[at] = acc as f32;
        if out[at].is_infinite() {
            acc = f64::from(out[at]);
        }
    }
}
