//! Running reductions along an axis, and reductions over sliding windows.

use crate::convert;
use crate::elementwise::compute_dtype;
use crate::kernel::{In, Out};
use crate::math::special::log_add_exp;
use crate::reduce::{Monoid, with_monoid};
use ferrax_base::{Buffer, DType, Result, Scalar, bail};
use ferrax_loops::{ReduceOp, WindowDims};
use smallvec::SmallVec;

/// `Cumulative`: the running reduction along an axis.
pub fn cumulative(op: ReduceOp, axis: usize, reverse: bool, x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let shape = x.shape();
    let dims = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    in_compute_dtype(x, out, |d, x, out| {
        if op == ReduceOp::LogSumExp {
            match d {
                DType::F32 => {
                    running::<f32>(x, out, dims, reverse, |a, b| log_add_exp(f64::from(a), f64::from(b)) as f32);
                }
                DType::F64 => running::<f64>(x, out, dims, reverse, log_add_exp),
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

/// `ReduceWindow`: one axis at a time, which is the same where the initial value is the operation's identity
/// or joining it again changes nothing; otherwise element by element.
pub fn reduce_window(op: ReduceOp, w: &WindowDims, x: In<'_>, init: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let d = x.ty.dtype;
    let compute = compute_dtype(d);
    let n = out.ty.size();
    let mut shape: SmallVec<[usize; 4]> = SmallVec::from_slice(x.shape());
    let mut held = if d == compute { None } else { Some(convert::widened(d, x.ptr, x.ty.size())?) };
    let start = convert::plan(d, compute)?.run_whole(init.ptr, 1, compute)?;
    let repeats = matches!(op, ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Xor);
    if repeats && Scalar::from_bytes(d, init.bytes()) != op.identity(d) {
        let mut result = Buffer::allocate(n * compute.size())?;
        let src = held.as_ref().map_or(x.ptr, Buffer::as_ptr);
        let shapes = (x.shape(), out.shape());
        with_monoid!(op, compute, window_direct(src, start.as_ptr(), result.as_mut_ptr(), shapes, w));
        return finish(d, &result, out);
    }
    for axis in 0..shape.len() {
        let trivial = w.window[axis] == 1
            && w.strides[axis] == 1
            && w.padding[axis] == (0, 0)
            && w.base_dilation[axis] == 1
            && out.shape()[axis] == shape[axis];
        if trivial {
            continue;
        }
        let line = Line {
            outer: shape[..axis].iter().product(),
            n: shape[axis],
            inner: shape[axis + 1..].iter().product(),
            results: out.shape()[axis],
            window: w.window[axis],
            stride: w.strides[axis] as i64,
            low: w.padding[axis].0,
            base_dilation: w.base_dilation[axis] as i64,
            window_dilation: w.window_dilation[axis] as i64,
        };
        shape[axis] = line.results;
        let mut next = Buffer::allocate(shape.iter().product::<usize>() * compute.size())?;
        let src = held.as_ref().map_or(x.ptr, Buffer::as_ptr);
        with_monoid!(op, compute, window_line(src, start.as_ptr(), next.as_mut_ptr(), &line));
        held = Some(next);
    }
    // The initial value joins once more, as the fold of the whole window starts from it.
    let src = held.as_ref().map_or(x.ptr, Buffer::as_ptr);
    let mut joined = Buffer::allocate(n * compute.size())?;
    with_monoid!(op, compute, join_all(src, start.as_ptr(), joined.as_mut_ptr(), n));
    finish(d, &joined, out)
}

/// Puts a result in the compute dtype into a result of dtype `d`.
fn finish(d: DType, result: &Buffer, out: &mut Out<'_>) -> Result<()> {
    let n = out.ty.size();
    if d == compute_dtype(d) {
        out.bytes().copy_from_slice(result.bytes());
    } else {
        convert::narrowed(d, result, out.bytes(), n);
    }
    Ok(())
}

/// Every window element by element, in row-major order.
fn window_direct<M: Monoid>(x: *const u8, init: *const u8, out: *mut u8, shapes: (&[usize], &[usize]), w: &WindowDims) {
    let unravel = |mut linear: usize, extents: &[usize]| {
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, extents.len());
        for (a, &n) in at.iter_mut().zip(extents).rev() {
            *a = linear % n;
            linear /= n;
        }
        at
    };
    // SAFETY: the caller passes operand and results of these shapes, and one initial value.
    let (x, init, out) = unsafe {
        (
            std::slice::from_raw_parts(x.cast::<M::T>(), shapes.0.iter().product()),
            *init.cast::<M::T>(),
            std::slice::from_raw_parts_mut(out.cast::<M::T>(), shapes.1.iter().product()),
        )
    };
    for (r, o) in out.iter_mut().enumerate() {
        let at = unravel(r, shapes.1);
        *o = init;
        for k in 0..w.window.iter().product() {
            let mut from = Some(0);
            for (axis, (&i, &k)) in at.iter().zip(&unravel(k, &w.window)).enumerate() {
                let place = (i * w.strides[axis] + k * w.window_dilation[axis]) as i64 - w.padding[axis].0;
                let base = w.base_dilation[axis] as i64;
                let inside = place >= 0 && place % base == 0 && place / base < shapes.0[axis] as i64;
                from = from.filter(|_| inside).map(|f| f * shapes.0[axis] + (place / base) as usize);
            }
            *o = M::join(*o, from.map_or(init, |f| x[f]));
        }
    }
}

struct Line {
    outer: usize,
    n: usize,
    inner: usize,
    results: usize,
    window: usize,
    stride: i64,
    low: i64,
    base_dilation: i64,
    window_dilation: i64,
}

fn window_line<M: Monoid>(x: *const u8, init: *const u8, out: *mut u8, l: &Line) {
    // SAFETY: the caller passes outer·n·inner operand elements, one initial value and outer·results·inner results.
    let (x, init, out) = unsafe {
        (
            std::slice::from_raw_parts(x.cast::<M::T>(), l.outer * l.n * l.inner),
            *init.cast::<M::T>(),
            std::slice::from_raw_parts_mut(out.cast::<M::T>(), l.outer * l.results * l.inner),
        )
    };
    for (at, row) in out.chunks_exact_mut(l.inner.max(1)).enumerate() {
        let (o, r) = (at / l.results, at % l.results);
        let mut first = true;
        for k in 0..l.window as i64 {
            let place = r as i64 * l.stride + k * l.window_dilation - l.low;
            let inside = place >= 0 && place % l.base_dilation == 0 && place / l.base_dilation < l.n as i64;
            let from = (o * l.n + if inside { (place / l.base_dilation) as usize } else { 0 }) * l.inner;
            for (j, a) in row.iter_mut().enumerate() {
                let v = if inside { x[from + j] } else { init };
                *a = if first { v } else { M::join(*a, v) };
            }
            first = false;
        }
        if first {
            row.fill(init);
        }
    }
}

fn join_all<M: Monoid>(x: *const u8, init: *const u8, out: *mut u8, n: usize) {
    // SAFETY: the caller passes n operand elements, one initial value and n results.
    unsafe {
        let (x, init) = (x.cast::<M::T>(), *init.cast::<M::T>());
        for i in 0..n {
            *out.cast::<M::T>().add(i) = M::join(init, *x.add(i));
        }
    }
}
