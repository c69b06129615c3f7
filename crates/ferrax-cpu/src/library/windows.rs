//! Reductions over sliding windows.
//!
//! A window is the product of its axes, so axes are reduced one after the other: results along the first of them in
//! blocks, whose further axes follow while the block is in the cache. Along an axis, the elements under a window are an
//! arithmetic progression (padding and the holes of a dilated operand are passed over, since the initial value is joined
//! at the end), and so are the windows that one cell meets. Where elements lie in rows, a vector of them is joined over
//! the whole window in registers, and so is a stretch of windows that are one element apart; else cell after cell is
//! joined to the windows that it meets.
//! An initial value that is no identity of a sum or product counts once for every cell, which goes element by element.
//! Blocks depend on shapes alone, and no result on them. Read next: `columns.rs`.

use crate::elementwise::kernel::{In, Out};
use crate::elementwise::{compute_dtype, convert};
use crate::library::reduce::{Monoid, with_monoid};
use crate::math::integer::gcd;
use crate::pool;
use crate::simd::wide_variant;
use ferrax_base::{Buffer, DType, Result, Scalar};
use ferrax_loops::{ReduceOp, WindowDims};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Mutex;

/// Elements of a block, about, counted where it is largest.
const BLOCK: usize = 4 << 10;
/// Rows of at least this many elements are joined in vectors.
const ROW: usize = 8;

/// `ReduceWindow`.
pub fn reduce_window(op: ReduceOp, w: &WindowDims, x: In<'_>, init: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let d = x.ty.dtype;
    let compute = compute_dtype(d);
    let n = out.ty.size();
    let held = if d == compute { None } else { Some(convert::widened(d, x.ptr, x.ty.size())?) };
    let src = held.as_ref().map_or(x.ptr, Buffer::as_ptr);
    let start = convert::plan(d, compute)?.run_whole(init.ptr, 1, compute)?;
    let mut result = if d == compute { None } else { Some(Buffer::allocate(n * compute.size())?) };
    let dst = result.as_mut().map_or(out.ptr, Buffer::as_mut_ptr);
    let shapes = (x.shape(), out.ty.shape.as_slice());
    let repeats = matches!(op, ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Xor);
    if repeats && Scalar::from_bytes(d, init.bytes()) != op.identity(d) {
        with_monoid!(op, compute, direct(src, start.as_ptr(), dst, shapes, w));
    } else if x.ty.size() == 0 {
        crate::library::movement::splat(compute, start.as_ptr(), dst, n);
    } else {
        let plan = Plan::new(w, shapes);
        with_monoid!(op, compute, by_axes(src, start.as_ptr(), dst, &plan));
    }
    if let Some(result) = &result {
        convert::narrowed(d, result, out.bytes(), n);
    }
    Ok(())
}

/// Every window element by element, in row-major order.
fn direct<M: Monoid>(x: *const u8, init: *const u8, out: *mut u8, shapes: (&[usize], &[usize]), w: &WindowDims) {
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

/// Steps `i` in `0..count` for which `at + i * by` is the place of an element: a multiple of `base`, from 0 on, below
/// `n * base`. Gives the first, how far they are apart and how many there are.
fn inside(at: i64, by: i64, count: usize, (base, n): (i64, usize)) -> (usize, usize, usize) {
    if by == 1 && base == 1 {
        let first = (-at).max(0);
        return (first as usize, 1, (n as i64 - at).min(count as i64).saturating_sub(first).max(0) as usize);
    }
    let apart = base / gcd(by as usize, base as usize) as i64;
    // The first at or after the operand's start, then the first of the next `apart` that meets an element.
    let from = if at < 0 { (-at + by - 1) / by } else { 0 };
    let first = (from..from + apart).find(|i| (at + i * by) % base == 0);
    let end = (n as i64 * base - at + by - 1).div_euclid(by).min(count as i64);
    match first {
        Some(first) if first < end => (first as usize, apart as usize, ((end - first + apart - 1) / apart) as usize),
        _ => (0, apart as usize, 0),
    }
}

/// Elements under a window, or windows that a cell meets: the first, and how many.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Reach {
    /// The first window.
    window: usize,
    /// The first element.
    element: usize,
    count: usize,
}

/// An axis along which there is something to do.
struct Axis {
    n: usize,
    /// Elements from one of this axis to the next.
    inner: usize,
    results: usize,
    /// With rows of at least `ROW` elements, what each window covers; else what each cell meets.
    reaches: Vec<Reach>,
    /// How far windows and elements of a reach are apart.
    apart: (usize, usize),
    /// Windows one element apart whose cells are all inside, the first element of the first, and how far cells are apart.
    whole: (Range<usize>, usize, usize),
    /// Lines that follow each other are one line: every cell meets the windows of the next at the same distance.
    tiled: bool,
}

impl Axis {
    fn new(w: &WindowDims, axis: usize, (n, inner, results): (usize, usize, usize)) -> Axis {
        let (stride, dilation) = (w.strides[axis] as i64, w.window_dilation[axis] as i64);
        let (low, base) = (w.padding[axis].0, w.base_dilation[axis] as i64);
        let rows = inner >= ROW;
        let by = if rows { dilation } else { stride };
        let mut apart = (0, 0);
        let reach = |k: usize| {
            let (at, count) =
                if rows { (k as i64 * stride - low, w.window[axis]) } else { (k as i64 * dilation - low, results) };
            let (first, step, count) = inside(at, by, count, (base, n));
            apart = (step, (step as i64 * by / base) as usize);
            let element = if count == 0 { 0 } else { (at + first as i64 * by) / base };
            Reach { window: if rows { k } else { first }, element: element as usize, count }
        };
        let whole = if stride == 1 && base == 1 && w.window[axis] > 0 {
            let start = low.clamp(0, results as i64);
            let end = (n as i64 + low - (w.window[axis] as i64 - 1) * dilation).clamp(start, results as i64);
            (start as usize..end as usize, (start - low).max(0) as usize, dilation as usize)
        } else {
            (0..0, 0, 0)
        };
        let reaches: Vec<Reach> = (0..if rows { results } else { w.window[axis] }).map(reach).collect();
        let tiled = |r: &Reach| r.count * apart.0 == results && r.count * apart.1 == n;
        let tiled = !rows && reaches.iter().all(tiled);
        Axis { n, inner, results, reaches, apart, whole, tiled }
    }
}

/// What is to be done.
struct Plan {
    axes: SmallVec<[Axis; 4]>,
    /// Lines of the first axis.
    outer: usize,
    results: usize,
    /// Results of the first axis in a block, and how many blocks a line has.
    rows: usize,
    blocks: usize,
    /// Elements of a block after each axis, a result of the first axis.
    widths: SmallVec<[usize; 4]>,
    /// A guess, in nanoseconds.
    time: u64,
}

impl Plan {
    fn new(w: &WindowDims, (from, to): (&[usize], &[usize])) -> Plan {
        let trivial = |k: &usize| {
            let whole = w.strides[*k] == 1 && w.padding[*k] == (0, 0) && w.base_dilation[*k] == 1;
            w.window[*k] == 1 && whole && from[*k] == to[*k]
        };
        let mut kept: SmallVec<[usize; 4]> = (0..from.len()).filter(|k| !trivial(k)).collect();
        if kept.is_empty() && !from.is_empty() {
            kept.push(0);
        }
        let first = kept.first().copied().unwrap_or(0);
        let outer = from[..first].iter().product();
        let (mut axes, mut widths, mut time) = (SmallVec::new(), SmallVec::new(), 0);
        for &k in &kept {
            let inner: usize = from[k + 1..].iter().product();
            let axis = Axis::new(w, k, (from[k], inner, to[k]));
            let after = to[first..=k].iter().product::<usize>() * inner;
            let cells = 1 + w.window[k] / w.base_dilation[k];
            time += (outer * after * cells) as u64 / 12;
            widths.push(after / to[first].max(1));
            axes.push(axis);
        }
        let widest = widths.iter().copied().max().unwrap_or(1).max(1);
        let along = to.get(first).copied().unwrap_or(1);
        let rows = (BLOCK / widest).clamp(1, along.max(1));
        Plan { axes, outer, results: to.iter().product(), rows, blocks: along.div_ceil(rows), widths, time }
    }
}

/// The operand and the result, which threads write in disjoint parts.
struct Ends<T> {
    x: *const T,
    out: *mut T,
}
// SAFETY: see the type.
unsafe impl<T: Send> Sync for Ends<T> {}

fn by_axes<M: Monoid>(x: *const u8, init: *const u8, out: *mut u8, plan: &Plan) {
    // SAFETY: the caller passes one initial value.
    let init = unsafe { *init.cast::<M::T>() };
    let ends = Ends { x: x.cast::<M::T>(), out: out.cast::<M::T>() };
    let ends = &ends;
    let Some(first) = plan.axes.first() else {
        // SAFETY: operand and result are scalars.
        return unsafe { ends.out.write(M::join(init, *ends.x)) };
    };
    if plan.results == 0 {
        return;
    }
    let last_width = plan.widths[plan.widths.len() - 1];
    let scratch: Vec<Mutex<[Vec<M::T>; 2]>> = (0..pool::threads()).map(|_| Mutex::default()).collect();
    pool::share(plan.time, plan.outer * plan.blocks, &|worker, task| {
        let mut scratch = scratch[worker].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (o, block) = (task / plan.blocks, task % plan.blocks * plan.rows);
        let windows = block..(block + plan.rows).min(first.results);
        let (line, at) = (first.n * first.inner, (o * first.results + block) * last_width);
        // SAFETY: the operand has `outer` lines of the first axis, and each task has its own windows of the result.
        let (x, out) = unsafe {
            (
                std::slice::from_raw_parts(ends.x.add(o * line), line),
                std::slice::from_raw_parts_mut(ends.out.add(at), windows.len() * last_width),
            )
        };
        part::<M>(plan, windows, init, (x, out), &mut scratch);
    });
}

/// Some windows of a line of the first axis, through all axes.
fn part<M: Monoid>(
    plan: &Plan,
    windows: Range<usize>,
    init: M::T,
    (x, out): (&[M::T], &mut [M::T]),
    scratch: &mut [Vec<M::T>; 2],
) {
    let rows = windows.len();
    let [held, next] = scratch;
    for (k, axis) in plan.axes.iter().enumerate() {
        let last = (k + 1 == plan.axes.len()).then_some(init);
        let to = if last.is_some() {
            &mut *out
        } else {
            next.resize(next.len().max(rows * plan.widths[k]), M::IDENTITY);
            &mut next[..rows * plan.widths[k]]
        };
        let windows = if k == 0 { windows.clone() } else { 0..axis.results };
        let line = windows.len() * axis.inner;
        let from = if k == 0 { x } else { &held[..rows * plan.widths[k - 1]] };
        if k > 0 && axis.tiled {
            let lines = from.len() / (axis.n * axis.inner);
            one_by_one::<M>(axis, lines, 0..lines * axis.results, last, from, to);
            std::mem::swap(held, next);
            continue;
        }
        for (x, to) in from.chunks_exact(axis.n * axis.inner).zip(to.chunks_exact_mut(line)) {
            if axis.inner >= ROW {
                in_rows::<M>(axis, windows.clone(), last, x, to);
            } else {
                one_by_one::<M>(axis, 1, windows.clone(), last, x, to);
            }
        }
        std::mem::swap(held, next);
    }
}

/// Windows over rows of at least `ROW` elements.
#[inline(always)]
fn in_rows_body<M: Monoid>(a: &Axis, windows: Range<usize>, last: Option<M::T>, x: &[M::T], out: &mut [M::T]) {
    match a.inner {
        8 => return in_rows_of::<M, 8>(a, windows, last, x, out),
        16 => return in_rows_of::<M, 16>(a, windows, last, x, out),
        32 => return in_rows_of::<M, 32>(a, windows, last, x, out),
        64 => return in_rows_of::<M, 64>(a, windows, last, x, out),
        _ => {}
    }
    let inner = a.inner;
    let first = windows.start;
    for w in windows {
        let reach = a.reaches[w];
        let at = (w - first) * inner;
        let before = &a.reaches[w.saturating_sub(1)];
        if w > first && (before.element, before.count) == (reach.element, reach.count) {
            // The windows of an operand that was spread out meet the same elements.
            let (before, y) = out[at - inner..at + inner].split_at_mut(inner);
            join_stretch::<M>(before, 1, 0, None, y);
            continue;
        }
        let y = &mut out[at..at + inner];
        join_stretch::<M>(&x[(reach.element * inner).min(x.len())..], reach.count, a.apart.1 * inner, last, y);
    }
}
wide_variant!(in_rows, in_rows_body, (a: &Axis, windows: Range<usize>, last: Option<M::T>, x: &[M::T], out: &mut [M::T]));

/// As `in_rows`, for rows that registers hold.
#[inline(always)]
fn in_rows_of<M: Monoid, const L: usize>(
    a: &Axis,
    windows: Range<usize>,
    last: Option<M::T>,
    x: &[M::T],
    out: &mut [M::T],
) {
    let (rows, _) = x.as_chunks::<L>();
    let (results, _) = out.as_chunks_mut::<L>();
    let mut acc = [M::IDENTITY; L];
    let mut done = None;
    for (reach, y) in a.reaches[windows].iter().zip(results) {
        let Reach { element, count, .. } = *reach;
        if done != Some((element, count)) {
            done = Some((element, count));
            acc = if count == 0 { [M::IDENTITY; L] } else { rows[element] };
            for k in 1..count {
                let row = &rows[element + k * a.apart.1];
                (0..L).for_each(|i| acc[i] = M::join(acc[i], row[i]));
            }
            if let Some(init) = last {
                (0..L).for_each(|i| acc[i] = M::join(init, acc[i]));
            }
        }
        *y = acc;
    }
}

/// `count` stretches of `x`, of the length of `y` (at least `ROW`) and `apart`, joined.
#[inline(always)]
fn join_stretch<M: Monoid>(x: &[M::T], count: usize, apart: usize, last: Option<M::T>, y: &mut [M::T]) {
    match y.len() {
        64.. => join_vectors::<M, 64>(x, count, apart, last, y),
        16.. => join_vectors::<M, 16>(x, count, apart, last, y),
        _ => join_vectors::<M, ROW>(x, count, apart, last, y),
    }
}

/// As `join_stretch`, `L` elements at a time; the last `L` may overlap those before.
#[inline(always)]
fn join_vectors<M: Monoid, const L: usize>(x: &[M::T], count: usize, apart: usize, last: Option<M::T>, y: &mut [M::T]) {
    let n = y.len();
    if count == 0 {
        return y.fill(last.unwrap_or(M::IDENTITY));
    }
    // Also says that every stretch is inside.
    let x = &x[..(count - 1) * apart + n];
    for c in (0..n).step_by(L) {
        let c = c.min(n - L);
        // SAFETY: stretches end at `n`, and the last one inside `x`.
        unsafe {
            let at = |k: usize| x.as_ptr().add(k * apart + c).cast::<[M::T; L]>().read_unaligned();
            let mut acc = at(0);
            for row in 1..count {
                let next = at(row);
                for i in 0..L {
                    acc[i] = M::join(acc[i], next[i]);
                }
            }
            if let Some(init) = last {
                (0..L).for_each(|i| acc[i] = M::join(init, acc[i]));
            }
            y.as_mut_ptr().add(c).cast::<[M::T; L]>().write_unaligned(acc);
        }
    }
}

/// Windows over single elements, or a few side by side, of some lines.
#[inline(always)]
fn one_by_one_body<M: Monoid>(
    a: &Axis,
    lines: usize,
    windows: Range<usize>,
    last: Option<M::T>,
    x: &[M::T],
    out: &mut [M::T],
) {
    let (inner, first) = (a.inner, windows.start);
    let start = a.whole.0.start.clamp(first, windows.end);
    let end = a.whole.0.end.clamp(start, windows.end);
    // Where those that lie inside are many they are joined row by row, and the others before and after them singly.
    let (start, end) = if (end - start) * inner < ROW { (windows.end, windows.end) } else { (start, end) };
    let (low, high) = ((start - first) * inner, (end - first) * inner);
    if start < end {
        let from = (a.whole.1 + start - a.whole.0.start) * inner;
        join_stretch::<M>(&x[from..], a.reaches.len(), a.whole.2 * inner, last, &mut out[low..high]);
    }
    for (windows, cells) in [(first..start, 0..low), (end..windows.end, high..out.len())] {
        cell_by_cell::<M>(a, lines, windows, last, x, &mut out[cells]);
    }
}

#[inline(always)]
fn cell_by_cell<M: Monoid>(
    a: &Axis,
    lines: usize,
    windows: Range<usize>,
    last: Option<M::T>,
    x: &[M::T],
    out: &mut [M::T],
) {
    let (inner, (every, apart)) = (a.inner, a.apart);
    out.fill(M::IDENTITY);
    for reach in &a.reaches {
        let skip = windows.start.saturating_sub(reach.window).div_ceil(every);
        let from = reach.window + skip * every;
        let count = (windows.end.saturating_sub(from)).div_ceil(every).min((reach.count * lines).saturating_sub(skip));
        if count == 0 {
            continue;
        }
        let x = &x[(reach.element + skip * apart) * inner..];
        let y = &mut out[(from - windows.start) * inner..];
        match (every, apart, inner) {
            (1, 1, _) => y[..count * inner].iter_mut().zip(x).for_each(|(y, &x)| *y = M::join(*y, x)),
            (1, 2, 1) => {
                let x = &x[..2 * count - 1];
                let (pairs, end) = x.as_chunks::<2>();
                y.iter_mut().zip(pairs).for_each(|(y, x)| *y = M::join(*y, x[0]));
                y[count - 1] = M::join(y[count - 1], end[0]);
            }
            (2, 1, 1) => {
                let y = &mut y[..2 * count - 1];
                let (pairs, end) = y.as_chunks_mut::<2>();
                pairs.iter_mut().zip(x).for_each(|(y, &x)| y[0] = M::join(y[0], x));
                end[0] = M::join(end[0], x[count - 1]);
            }
            _ => {
                let (xs, ys) = (x.chunks(apart * inner), y.chunks_mut(every * inner));
                for (y, x) in ys.zip(xs).take(count) {
                    y.iter_mut().zip(&x[..inner]).for_each(|(y, &x)| *y = M::join(*y, x));
                }
            }
        }
    }
    if let Some(init) = last {
        out.iter_mut().for_each(|y| *y = M::join(init, *y));
    }
}
wide_variant!(one_by_one, one_by_one_body, (a: &Axis, lines: usize, windows: Range<usize>, last: Option<M::T>, x: &[M::T], out: &mut [M::T]));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use ferrax_loops::Type;
    use proptest::prelude::*;

    /// Operand size, window, stride, low and high padding, base and window dilation of an axis.
    type Along = (usize, usize, usize, (i64, i64), usize, usize);

    fn along() -> impl Strategy<Value = Along> {
        let size = prop_oneof![4 => 1usize..9, 1 => Just(0), 2 => 15usize..40];
        (size, 1usize..4, 1usize..4, (-1i64..4, -1i64..4), 1usize..4, 1usize..3)
    }

    fn check<T: Copy + PartialEq + std::fmt::Debug>(
        (op, d): (ReduceOp, DType),
        axes: &[Along],
        (init, zero): (T, T),
        value: impl Fn(usize) -> T,
    ) {
        let w = WindowDims {
            window: axes.iter().map(|a| a.1).collect(),
            strides: axes.iter().map(|a| a.2).collect(),
            padding: axes.iter().map(|a| a.3).collect(),
            base_dilation: axes.iter().map(|a| a.4).collect(),
            window_dilation: axes.iter().map(|a| a.5).collect(),
        };
        let from: Vec<usize> = axes.iter().map(|a| a.0).collect();
        let count = |a: &Along| {
            let cells = if a.0 == 0 { 0 } else { (a.0 as i64 - 1) * a.4 as i64 + 1 } + a.3.0 + a.3.1;
            let span = (a.1 as i64 - 1) * a.5 as i64 + 1;
            if cells < span { 0 } else { ((cells - span) / a.2 as i64 + 1) as usize }
        };
        let to: Vec<usize> = axes.iter().map(count).collect();
        let x: Vec<T> = (0..from.iter().product()).map(value).collect();
        let n: usize = to.iter().product();
        let (mut got, mut want) = (vec![zero; n], vec![zero; n]);
        let (tx, ty, scalar) = (Type::new(d, &from), Type::new(d, &to), Type::new(d, &[]));
        // SAFETY: the vectors have the types' elements.
        unsafe {
            let (x, init) = (In::new(x.as_ptr().cast(), &tx), In::new((&raw const init).cast(), &scalar));
            reduce_window(op, &w, x, init, &mut Out::new(got.as_mut_ptr().cast(), &ty)).unwrap();
            let run = |out: *mut u8| -> Result<()> {
                with_monoid!(op, d, direct(x.ptr, init.ptr, out, (&from, &to), &w));
                Ok(())
            };
            run(want.as_mut_ptr().cast()).unwrap();
        }
        assert_eq!(got, want, "{op:?} {d} {w:?} of {from:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(600)))]

        #[test]
        fn axes_one_after_the_other_give_what_whole_windows_do(axes in prop::collection::vec(along(), 0..4)) {
            // Sums of small integers are exact in any order.
            check((ReduceOp::Sum, DType::F32), &axes, (0f32, -1.0), |i| (i * 37 % 101) as f32 - 50.0);
            check((ReduceOp::Max, DType::F64), &axes, (3f64, -1.0), |i| (i * 37 % 101) as f64 - 50.0);
            check((ReduceOp::Sum, DType::I32), &axes, (5i32, -1), |i| (i * 37 % 101) as i32 - 50);
            check((ReduceOp::Prod, DType::I64), &axes, (1i64, -1), |i| (i * 37 % 101) as i64 - 50);
            check((ReduceOp::And, DType::U8), &axes, (0xf7u8, 1), |i| (i * 37 % 256) as u8);
        }
    }

    #[test]
    fn zeros_and_nan_are_joined() {
        let pair = |one: &[usize]| one.into();
        let w = WindowDims {
            window: pair(&[2, 1]),
            strides: pair(&[1, 1]),
            padding: [(1, 0), (0, 0)].as_slice().into(),
            base_dilation: pair(&[1, 1]),
            window_dilation: pair(&[1, 1]),
        };
        let x: Vec<f32> = (0..36).map(|i| if i == 11 { f32::NAN } else { -0.0 }).collect();
        let (ty, scalar) = (Type::new(DType::F32, &[4, 9]), Type::new(DType::F32, &[]));
        // The fold starts from the initial value: 0 + -0 is 0.
        for (op, init, want) in [(ReduceOp::Sum, 0f32, 0f32), (ReduceOp::Max, f32::NEG_INFINITY, -0.0)] {
            let mut y = vec![1f32; 36];
            // SAFETY: the vectors have the type's elements.
            unsafe {
                let (x, init) = (In::new(x.as_ptr().cast(), &ty), In::new((&raw const init).cast(), &scalar));
                reduce_window(op, &w, x, init, &mut Out::new(y.as_mut_ptr().cast(), &ty)).unwrap();
            }
            for (i, y) in y.iter().enumerate() {
                assert!(if i == 11 || i == 20 { y.is_nan() } else { y.to_bits() == want.to_bits() }, "{op:?} {i}: {y}");
            }
        }
    }
}
