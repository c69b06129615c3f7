//! Nodes that move elements without computing: broadcast, transpose, slice, pad, reverse, concatenate, and
//! the dynamic slices. All are one strided copy; only the element's size matters.

use crate::elementwise::kernel::{In, Out, by_size};
use crate::library::transposition::{self, Pair, alternate};
use crate::pool;
use ferrax_base::{DType, Result, Scalar, Shape};
use ferrax_loops::PadConfig;
use ferrax_loops::passes::view::{Strides, signed_strides};
use smallvec::SmallVec;

/// An axis of a strided copy: extent, and the strides of both sides in elements.
#[derive(Clone, Copy)]
pub struct Axis {
    /// Number of indices.
    pub n: usize,
    /// Stride of the source.
    pub src: isize,
    /// Stride of the destination.
    pub dst: isize,
}

/// Copies `src[i·ss]` to `dst[i·ds]` for every index i of `shape`. Elements have `size` bytes.
///
/// # Safety
/// Every address so reached must be valid, aligned, and the two sides must not overlap.
pub unsafe fn strided_copy(size: usize, shape: &[usize], src: *const u8, ss: &[isize], dst: *mut u8, ds: &[isize]) {
    if shape.contains(&0) {
        return;
    }
    // SAFETY: merging keeps the set of index pairs.
    unsafe { copy_merged(size, &merge(shape, ss, ds), src, dst) };
}

/// Copies along merged axes, with several threads where it pays. Elements have `size` bytes.
///
/// # Safety
/// Every address that the axes reach must be valid and aligned, and the two sides must not overlap.
pub unsafe fn copy_merged(size: usize, axes: &[Axis], src: *const u8, dst: *mut u8) {
    let bytes = size * axes.iter().map(|a| a.n).product::<usize>();
    // SAFETY: the caller's contract.
    unsafe {
        match Parts::of(axes, bytes) {
            Some(parts) => parts.copy(size, axes, src, dst),
            None => by_size!(size, T => copy_axes::<T>(axes, src.cast(), dst.cast())),
        }
    }
}

/// Bytes that a thread moves in a nanosecond, about.
pub const BYTES_A_NANOSECOND: usize = 8;
/// Bytes that are worth a turn of their own.
const PART: usize = 64 << 10;

/// A copy that several threads share: ranges of one axis.
struct Parts {
    axis: usize,
    /// Indices of a part along the axis.
    step: usize,
    nanoseconds: u64,
}

impl Parts {
    /// How to share a copy of so many bytes; `None` when it is not worth it.
    fn of(axes: &[Axis], bytes: usize) -> Option<Parts> {
        let nanoseconds = (bytes / BYTES_A_NANOSECOND) as u64;
        if bytes < 2 * PART || !pool::worth(nanoseconds) {
            return None;
        }
        // The axis that takes the destination furthest, so that each thread writes pages of its own.
        let axis =
            (0..axes.len()).filter(|&i| axes[i].n > 1).max_by_key(|&i| axes[i].dst.unsigned_abs() * axes[i].n)?;
        let n = axes[axis].n;
        let count = (bytes / PART).min(8 * pool::threads());
        // Whole blocks of a transposition, whole lines of a row.
        let step = n.div_ceil(count).next_multiple_of(16);
        (step < n).then_some(Parts { axis, step, nanoseconds })
    }

    unsafe fn copy(&self, size: usize, axes: &[Axis], src: *const u8, dst: *mut u8) {
        let whole = axes[self.axis];
        let ends = Ends(src, dst);
        pool::share(self.nanoseconds, whole.n.div_ceil(self.step), &|_, part| {
            let (ends, first) = (&ends, part * self.step);
            let mut axes: SmallVec<[Axis; 6]> = SmallVec::from_slice(axes);
            axes[self.axis].n = self.step.min(whole.n - first);
            // SAFETY: a range of the axis; parts write places of their own.
            by_size!(size, T => unsafe {
                let at = first as isize;
                copy_axes::<T>(&axes, ends.0.cast::<T>().offset(at * whole.src), ends.1.cast::<T>().offset(at * whole.dst));
            });
        });
    }
}

/// Memory that threads read, and write in disjoint parts.
pub struct Ends(pub *const u8, pub *mut u8);
// SAFETY: see the type.
unsafe impl Sync for Ends {}

/// Drops axes of size 1 and joins neighbours that both sides walk as one.
pub fn merge(shape: &[usize], ss: &[isize], ds: &[isize]) -> SmallVec<[Axis; 6]> {
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    for i in 0..shape.len() {
        let axis = Axis { n: shape[i], src: ss[i], dst: ds[i] };
        if axis.n == 1 {
            continue;
        }
        match axes.last_mut() {
            Some(last) if last.src == axis.src * axis.n as isize && last.dst == axis.dst * axis.n as isize => {
                *last = Axis { n: last.n * axis.n, ..axis };
            }
            _ => axes.push(axis),
        }
    }
    axes
}

/// Copies along merged axes.
///
/// # Safety
/// Every address that the axes reach must be valid and aligned, and the two sides must not overlap.
pub unsafe fn copy_axes<T: Copy>(axes: &[Axis], src: *const T, dst: *mut T) {
    // SAFETY: the caller's contract covers every index pair of `axes`.
    unsafe {
        if let Some(at) = blocks_from::<T>(axes) {
            return copy_blocks(axes.split_at(at), src, dst);
        }
        match axes {
            [] => *dst = *src,
            [a] => copy_row(*a, src, dst),
            [a, b] if a.src == 1 && b.dst == 1 && b.src != 0 => transposition::copy(pair(*a, *b, src, dst)),
            [a, b] if a.dst == 1 && b.src == 1 => transposition::copy(pair(*b, *a, src, dst)),
            [a, b] if b.src == 0 && b.dst == 1 && a.dst == b.n as isize => {
                repeat_each(size_of::<T>() as u8, (src.cast(), a.src), dst.cast(), a.n, b.n);
            }
            [a, b] if is_short::<T>(*b) => short_rows::<T, 2>([ONCE, *a], b.n, src, dst),
            [a, b, c] if is_short::<T>(*c) => short_rows::<T, 2>([*a, *b], c.n, src, dst),
            [a, rest @ ..] => {
                // Keep a transposed pair innermost: walk this axis outside unless the inner one needs it.
                if rest.len() >= 2 && a.src == 1 && rest[rest.len() - 1].dst == 1 && rest[rest.len() - 1].src != 1 {
                    let mut swapped: SmallVec<[Axis; 6]> = SmallVec::from_slice(axes);
                    swapped[..axes.len() - 1].rotate_left(1);
                    return copy_axes(&swapped, src, dst);
                }
                for i in 0..a.n as isize {
                    copy_axes(rest, src.offset(i * a.src), dst.offset(i * a.dst));
                }
            }
        }
    }
}

/// Elements of a block at most that is copied by a table of its places, and how many blocks are worth one.
const BLOCK: usize = 48;
const BLOCKS: usize = 8;

/// The axis from which on all axes together are a block of few elements, in no order that registers move.
fn blocks_from<T>(axes: &[Axis]) -> Option<usize> {
    let (last, before) = axes.split_last()?;
    let vectors = last.src == 1 && last.dst == 1 && last.n * size_of::<T>() >= 8;
    let square = before.last().is_some_and(|a| a.n.min(last.n) >= 8);
    if before.len() < 2 || vectors || square {
        return None;
    }
    let (mut at, mut size) = (axes.len(), 1);
    while at > 1 && size * axes[at - 1].n <= BLOCK {
        at -= 1;
        size *= axes[at].n;
    }
    let blocks: usize = axes[..at].iter().map(|a| a.n).product();
    (at + 2 <= axes.len() && blocks >= BLOCKS).then_some(at)
}

/// Copies blocks whose places a table has: those of the axes `inner`, for every index of `outer`.
unsafe fn copy_blocks<T: Copy>((outer, inner): (&[Axis], &[Axis]), src: *const T, dst: *mut T) {
    let mut places = [(0isize, 0isize); BLOCK];
    let mut count = 1;
    for a in inner.iter().rev() {
        for i in (0..a.n).rev() {
            for k in 0..count {
                let (x, y) = places[k];
                places[i * count + k] = (x + i as isize * a.src, y + i as isize * a.dst);
            }
        }
        count *= a.n;
    }
    let places = &places[..count];
    let blocks: usize = outer.iter().map(|a| a.n).product();
    let (last, rest) = (outer[outer.len() - 1], &outer[..outer.len() - 1]);
    for first in (0..blocks).step_by(last.n) {
        let (mut left, mut from, mut to) = (first / last.n, 0, 0);
        for a in rest.iter().rev() {
            let i = (left % a.n) as isize;
            (left, from, to) = (left / a.n, from + i * a.src, to + i * a.dst);
        }
        for i in 0..last.n as isize {
            // SAFETY: the caller's contract: every pair of indices of the axes.
            unsafe {
                let (src, dst) = (src.offset(from + i * last.src), dst.offset(to + i * last.dst));
                for &(x, y) in places {
                    *dst.offset(y) = *src.offset(x);
                }
            }
        }
    }
}

/// Two axes where `a` is contiguous in the source and `b` in the destination.
fn pair<T>(a: Axis, b: Axis, src: *const T, dst: *mut T) -> Pair<T> {
    Pair { src, dst, rows: a.n, dst_step: a.dst, columns: b.n, src_step: b.src }
}

/// Bytes of a row that is copied in a few moves; a call would take longer than that.
const SHORT: usize = 256;
/// An axis of one index.
const ONCE: Axis = Axis { n: 1, src: 0, dst: 0 };

/// Whether the elements of an axis lie in one piece of `SHORT` bytes at most.
fn is_short<T>(a: Axis) -> bool {
    a.src == 1 && a.dst == 1 && a.n * size_of::<T>() <= SHORT
}

// Copies `n` contiguous elements, of `SHORT` bytes at most, for every pair of indices of two axes.
alternate!(short_rows, N, (axes: [Axis; N], n: usize, src: *const T, dst: *mut T), {
    let bytes = n * size_of::<T>();
    match bytes {
        b if b % 128 == 0 => in_parts::<T, [u8; 128], N>(axes, bytes, src, dst),
        b if b % 64 == 0 => in_parts::<T, [u8; 64], N>(axes, bytes, src, dst),
        32.. => in_parts::<T, [u8; 32], N>(axes, bytes, src, dst),
        16.. => in_parts::<T, [u8; 16], N>(axes, bytes, src, dst),
        8.. => in_parts::<T, u64, N>(axes, bytes, src, dst),
        4.. => in_parts::<T, u32, N>(axes, bytes, src, dst),
        2.. => in_parts::<T, u16, N>(axes, bytes, src, dst),
        _ => in_parts::<T, u8, N>(axes, bytes, src, dst),
    }
});

/// Copies rows of at least as many bytes as `H` has: as many at a time, the last ones over those before.
#[inline(always)]
unsafe fn in_parts<T, H: Copy, const N: usize>(axes: [Axis; N], bytes: usize, src: *const T, dst: *mut T) {
    let ([a, b], last) = ([axes[0], axes[1]], bytes - size_of::<H>());
    for i in 0..a.n as isize {
        for j in 0..b.n as isize {
            // SAFETY: the caller's contract: this row of both sides.
            unsafe {
                let from = src.offset(i * a.src + j * b.src).cast::<u8>();
                let to = dst.offset(i * a.dst + j * b.dst).cast::<u8>();
                for at in (0..last).step_by(size_of::<H>()) {
                    to.add(at).cast::<H>().write_unaligned(from.add(at).cast::<H>().read_unaligned());
                }
                to.add(last).cast::<H>().write_unaligned(from.add(last).cast::<H>().read_unaligned());
            }
        }
    }
}

unsafe fn copy_row<T: Copy>(a: Axis, src: *const T, dst: *mut T) {
    // SAFETY: the caller's contract covers the indices 0..n.
    unsafe {
        match (a.src, a.dst) {
            (1, 1) => copy_block(src.cast(), dst.cast(), a.n * size_of::<T>()),
            (0, 1) => std::slice::from_raw_parts_mut(dst, a.n).fill(*src),
            // Steps that are known become shuffles of vectors.
            (-1, 1) => each(a.n, src, -1, dst, 1),
            (2, 1) => each(a.n, src, 2, dst, 1),
            (1, 2) => each(a.n, src, 1, dst, 2),
            (s, d) => each(a.n, src, s, dst, d),
        }
    }
}

/// Bytes of a page, within which the processor compares addresses of loads and stores first.
const PAGE: usize = 4096;

/// Copies bytes: from the last to the first where each load would else wait for a store that lies a little further
/// on in its page.
///
/// # Safety
/// Both must be valid for this many bytes, and not overlap.
unsafe fn copy_block(src: *const u8, dst: *mut u8, bytes: usize) {
    let ahead = dst.addr().wrapping_sub(src.addr()) % PAGE;
    // SAFETY: the caller's contract.
    unsafe {
        if bytes < PAGE / 4 || !(1..PAGE / 4).contains(&ahead) {
            return std::ptr::copy_nonoverlapping(src, dst, bytes);
        }
        let first = bytes % LINE;
        for at in (first..bytes).step_by(LINE).rev() {
            let line: [u8; LINE] = src.add(at).cast::<[u8; LINE]>().read();
            dst.add(at).cast::<[u8; LINE]>().write(line);
        }
        std::ptr::copy_nonoverlapping(src, dst, first);
    }
}

/// Bytes that are copied at once.
const LINE: usize = 128;

/// Copies `n` elements, one by one.
///
/// # Safety
/// The addresses must be valid and aligned.
#[inline(always)]
unsafe fn each<T: Copy>(n: usize, src: *const T, s: isize, dst: *mut T, d: isize) {
    for i in 0..n as isize {
        // SAFETY: the caller's contract.
        unsafe { *dst.offset(i * d) = *src.offset(i * s) };
    }
}

/// The result takes `src` at these strides and offset.
fn gather_strided(x: In<'_>, out: &mut Out<'_>, offset: isize, ss: &[isize]) {
    let size = x.ty.dtype.size();
    let ds = signed_strides(out.shape());
    // SAFETY: callers derive strides and offset from the operand's shape so that every index stays inside it.
    unsafe {
        let src = x.ptr.offset(offset * size as isize);
        strided_copy(size, out.shape(), src, ss, out.ptr, &ds);
    }
}

/// `Broadcast(dims)`.
pub fn broadcast(dims: &[usize], x: In<'_>, out: &mut Out<'_>) {
    let xs = signed_strides(x.shape());
    let mut ss: Strides = SmallVec::from_elem(0, out.shape().len());
    for (i, &d) in dims.iter().enumerate() {
        ss[d] = if x.shape()[i] == 1 { 0 } else { xs[i] };
    }
    gather_strided(x, out, 0, &ss);
}

/// `Transpose(perm)`.
pub fn transpose(perm: &[usize], x: In<'_>, out: &mut Out<'_>) {
    let xs = signed_strides(x.shape());
    let ss: Strides = perm.iter().map(|&p| xs[p]).collect();
    gather_strided(x, out, 0, &ss);
}

/// `Slice`.
pub fn slice(start: &[usize], stride: &[usize], x: In<'_>, out: &mut Out<'_>) {
    let xs = signed_strides(x.shape());
    let offset: isize = start.iter().zip(&xs).map(|(&s, &x)| s as isize * x).sum();
    let ss: Strides = stride.iter().zip(&xs).map(|(&s, &x)| s as isize * x).collect();
    gather_strided(x, out, offset, &ss);
}

/// `Rev(axes)`.
pub fn rev(axes: &[usize], x: In<'_>, out: &mut Out<'_>) {
    let mut ss = signed_strides(x.shape());
    let mut offset = 0;
    for &a in axes {
        offset += (x.shape()[a] as isize - 1) * ss[a];
        ss[a] = -ss[a];
    }
    gather_strided(x, out, offset, &ss);
}

/// An operand of a concatenation: its elements, and how many of them a row has.
type Joined = (*const u8, usize);

/// Bytes of rows that operands are put together in, one after the other: what the first-level cache holds of them.
const ROWS_TOGETHER: usize = 16 << 10;

/// `Concat(axis)`: rows are put together block by block, so that memory is gone over once.
pub fn concat(axis: usize, xs: &[In<'_>], out: &mut Out<'_>) {
    let size = out.ty.dtype.size();
    let rows: usize = out.shape()[..axis].iter().product();
    let width = |shape: &[usize]| shape[axis..].iter().product::<usize>();
    let joined: SmallVec<[Joined; 8]> =
        xs.iter().filter(|x| x.ty.size() > 0).map(|x| (x.ptr, width(x.shape()))).collect();
    let (row, bytes) = (width(out.shape()), out.ty.bytes());
    if bytes == 0 {
        return;
    }
    if rows == 1 {
        let mut at = 0;
        for &(src, n) in &joined {
            // SAFETY: the result holds the operands' elements one after the other.
            unsafe { copy_merged(size, &[Axis { n, src: 1, dst: 1 }], src, out.ptr.add(at * size)) };
            at += n;
        }
        return;
    }
    let block = (ROWS_TOGETHER / (row * size)).clamp(1, rows).next_multiple_of(8);
    let nanoseconds = (bytes / BYTES_A_NANOSECOND) as u64;
    let count = if bytes >= 2 * PART && pool::worth(nanoseconds) { 8 * pool::threads() } else { 1 };
    let each = rows.div_ceil(count).next_multiple_of(block);
    let ends = (Shared(&joined), pool::Disjoint(out.ptr));
    pool::share(nanoseconds, rows.div_ceil(each), &|_, part| {
        let (joined, out) = (&ends.0, &ends.1);
        for first in (part * each..((part + 1) * each).min(rows)).step_by(block) {
            let n = block.min(rows - first);
            // SAFETY: rows of the operands, and as many of the result that are this part's.
            by_size!(size, T => unsafe { join_rows::<T>(joined.0, first..first + n, row, out.at(0).cast()) });
        }
    });
}

/// Operands that threads read.
struct Shared<'a>(&'a [Joined]);
// SAFETY: see the type.
unsafe impl Sync for Shared<'_> {}

/// Copies rows of operands next to each other, into rows of `row` elements.
unsafe fn join_rows<T: Copy>(joined: &[Joined], rows: std::ops::Range<usize>, row: usize, out: *mut T) {
    let (first, n) = (rows.start, rows.len());
    // SAFETY: the caller's contract.
    unsafe {
        let mut to = out.add(first * row);
        if joined.len() == row {
            let columns: SmallVec<[*const T; 4]> = joined.iter().map(|x| x.0.cast::<T>().add(first)).collect();
            if transposition::join_columns(&columns, n, to) {
                return;
            }
        }
        for &(src, width) in joined {
            let rows = Axis { n, src: width as isize, dst: row as isize };
            let elements = Axis { n: width, src: 1, dst: 1 };
            let axes = if width == 1 { &[rows][..] } else { &[rows, elements] };
            copy_axes(axes, src.cast::<T>().add(first * width), to);
            to = to.add(width);
        }
    }
}

/// Bytes of a padded row from which on it is written at once.
const PADDED_ROW: usize = 256;

/// `Pad`: row by row; or the result is filled, then what remains of the operand is placed.
pub fn pad(config: &[PadConfig], x: In<'_>, value: In<'_>, out: &mut Out<'_>) {
    let size = x.ty.dtype.size();
    let pads: SmallVec<[Padded; 6]> = config.iter().zip(x.shape().iter().zip(out.shape())).map(Padded::of).collect();
    if pads.iter().any(|p| p.n == 0) {
        return splat(x.ty.dtype, value.ptr, out.ptr, out.ty.size());
    }
    let (xs, os) = (signed_strides(x.shape()), signed_strides(out.shape()));
    let from: isize = pads.iter().zip(&xs).map(|(p, s)| p.first as isize * s).sum();
    let src = x.ptr.wrapping_offset(from * size as isize);
    let last = pads.iter().zip(x.shape().iter().zip(out.shape())).rposition(|(p, (n, m))| n != m || p.n != *m);
    if let Some(last) = last.filter(|&last| {
        out.shape()[last] * os[last] as usize * size >= PADDED_ROW && pads.iter().all(|p| p.step == 1 || p.n == 1)
    }) {
        by_size!(size, T => pad_rows::<T>((&pads, last), (src.cast(), &xs), value.ptr.cast(), out));
        return;
    }
    splat(x.ty.dtype, value.ptr, out.ptr, out.ty.size());
    let shape: Shape = pads.iter().map(|p| p.n).collect();
    let ds: Strides = pads.iter().zip(&os).map(|(p, s)| p.step as isize * s).collect();
    let to: isize = pads.iter().zip(&os).map(|(p, s)| p.to as isize * s).sum();
    // SAFETY: first and end keep every index inside both arrays.
    unsafe { strided_copy(size, &shape, src, &xs, out.ptr.offset(to * size as isize), &ds) };
}

/// What padding keeps of an axis: `n` indices from `first` on, and where they go.
struct Padded {
    first: usize,
    n: usize,
    to: usize,
    step: usize,
}

impl Padded {
    fn of((config, (&n, &extent)): (&PadConfig, (&usize, &usize))) -> Padded {
        let kept = config.kept(n, extent);
        Padded { first: kept.start, n: kept.len(), to: config.landing(kept.start), step: config.interior + 1 }
    }
}

/// Writes rows, those of the axis `last` and what follows it, from what padding keeps: it begins at `src`.
fn pad_rows<T: Copy + Sync>(
    (pads, last): (&[Padded], usize),
    (src, xs): (*const T, &[isize]),
    value: *const T,
    out: &mut Out<'_>,
) {
    let (rows, row): (usize, usize) = (out.shape()[..last].iter().product(), out.shape()[last..].iter().product());
    let width = row / out.shape()[last];
    let (left, n) = (pads[last].to * width, pads[last].n * width);
    let (ends, bytes) = ((pool::Disjoint(src.cast_mut()), pool::Disjoint(out.ptr.cast::<T>())), out.ty.bytes());
    // SAFETY: callers pass a scalar.
    let value = unsafe { pool::Disjoint(value.cast_mut()).at(0).read_unaligned() };
    let shape = &out.ty.shape;
    let nanoseconds = (bytes / BYTES_A_NANOSECOND) as u64;
    let each = if bytes >= 2 * PART { rows.div_ceil(8 * pool::threads()) } else { rows };
    let task = |part: usize| {
        for r in part * each..((part + 1) * each).min(rows) {
            let (mut index, mut at) = (r, Some(0isize));
            for (axis, pad) in pads[..last].iter().enumerate().rev() {
                let k = (index % shape[axis]).wrapping_sub(pad.to);
                index /= shape[axis];
                at = at.filter(|_| k < pad.n).map(|at| at + k as isize * xs[axis]);
            }
            // SAFETY: a row of the result, which no other task writes, and what is kept of a row of the operand.
            unsafe {
                let to = std::slice::from_raw_parts_mut(ends.1.at(r * row), row);
                let Some(at) = at else {
                    to.fill(value);
                    continue;
                };
                to[..left].fill(value);
                copy_block(ends.0.at(0).offset(at).cast(), to.as_mut_ptr().add(left).cast(), n * size_of::<T>());
                to[left + n..].fill(value);
            }
        }
    };
    pool::share(nanoseconds, rows.div_ceil(each), &|_, part| task(part));
}

/// Fills `n` elements with one.
pub fn splat(dtype: DType, value: *const u8, out: *mut u8, n: usize) {
    // SAFETY: callers pass a scalar and a result of n elements of this dtype.
    by_size!(dtype.size(), T => unsafe {
        std::slice::from_raw_parts_mut(out.cast::<T>(), n).fill(value.cast::<T>().read_unaligned());
    });
}

/// Start indices clamped so that a window of `window` fits in `shape`.
fn clamped_starts(shape: &[usize], window: &[usize], starts: &[In<'_>]) -> SmallVec<[isize; 4]> {
    shape
        .iter()
        .zip(window)
        .zip(starts)
        .map(|((&n, &w), s)| s.integer().clamp(0, n as i64 - w as i64) as isize)
        .collect()
}

/// `DynamicSlice`.
pub fn dynamic_slice(x: In<'_>, starts: &[In<'_>], out: &mut Out<'_>) {
    let ss = signed_strides(x.shape());
    let at = clamped_starts(x.shape(), out.shape(), starts);
    let offset = at.iter().zip(&ss).map(|(a, s)| a * s).sum();
    gather_strided(x, out, offset, &ss);
}

/// `DynamicUpdateSlice`; works in place when the result is the operand.
pub fn dynamic_update_slice(x: In<'_>, update: In<'_>, starts: &[In<'_>], out: &mut Out<'_>) {
    // Starts are read first: they may not outlive the write.
    let at = clamped_starts(x.shape(), update.shape(), starts);
    copy_unless_same(x, out);
    if update.ty.size() == 0 {
        return;
    }
    let ds = signed_strides(out.shape());
    let size = x.ty.dtype.size() as isize;
    let offset: isize = at.iter().zip(&ds).map(|(a, s)| a * s).sum();
    // SAFETY: the clamped window lies inside the result.
    unsafe {
        let dst = out.ptr.offset(offset * size);
        strided_copy(size as usize, update.shape(), update.ptr, &signed_strides(update.shape()), dst, &ds);
    }
}

/// Copies the operand to the result unless the node works in place.
pub fn copy_unless_same(x: In<'_>, out: &mut Out<'_>) {
    if !std::ptr::eq(x.ptr, out.ptr) {
        out.bytes().copy_from_slice(x.bytes());
    }
}

/// `Iota(axis)`.
pub fn iota(axis: usize, out: &mut Out<'_>) -> Result<()> {
    let (dtype, n) = (out.ty.dtype, out.shape()[axis]);
    if n == out.ty.size() {
        count_up(dtype, out.bytes());
        return Ok(());
    }
    let mut line = ferrax_base::Buffer::allocate(n * dtype.size())?;
    count_up(dtype, line.bytes_mut());
    let mut ss: Strides = SmallVec::from_elem(0, out.shape().len());
    ss[axis] = 1;
    // SAFETY: the line has as many elements as the axis; the other strides are 0.
    unsafe {
        strided_copy(dtype.size(), out.shape(), line.as_ptr(), &ss, out.ptr, &signed_strides(out.shape()));
    }
    Ok(())
}

/// 0, 1, 2, … as elements of a dtype.
fn count_up(dtype: DType, line: &mut [u8]) {
    match dtype {
        DType::I32 | DType::U32 => {
            line.as_chunks_mut().0.iter_mut().zip(0u32..).for_each(|(o, i)| *o = i.to_ne_bytes());
        }
        // A whole number of 31 bits becomes a float in one instruction.
        DType::F32 if i32::try_from(line.len()).is_ok() => {
            line.as_chunks_mut().0.iter_mut().zip(0i32..).for_each(|(o, i)| *o = (i as f32).to_ne_bytes());
        }
        _ => {
            for (i, bytes) in line.chunks_exact_mut(dtype.size()).enumerate() {
                bytes.copy_from_slice(&Scalar::from_i64(dtype, i as i64).to_bytes()[..dtype.size()]);
            }
        }
    }
}

/// `Bitcast`. Sub-byte elements take a byte each, so that their bits are packed or spread, low bits first.
pub fn bitcast(x: In<'_>, out: &mut Out<'_>) {
    let (from, to) = (x.ty.dtype, out.ty.dtype);
    if from.bits() == to.bits() || (from.bits() % 8 == 0 && to.bits() % 8 == 0) {
        return same_bytes(x, out);
    }
    let (mut held, mut count) = (0u128, 0);
    let mut results = out.bytes().chunks_exact_mut(to.size());
    for element in x.bytes().chunks_exact(from.size()) {
        let value = Scalar::from_bytes(from, element).bits & ((1 << from.bits()) - 1);
        held |= value << count;
        count += from.bits();
        while count >= to.bits() {
            let low = held & ((1 << to.bits()) - 1);
            // Signed sub-byte elements are kept sign-extended.
            let value = if to.is_signed() { Scalar { dtype: to, bits: low }.to_i64() as u128 } else { low };
            if let Some(r) = results.next() {
                r.copy_from_slice(&value.to_le_bytes()[..to.size()]);
            }
            held >>= to.bits();
            count -= to.bits();
        }
    }
}

/// `Reshape`: the same bytes.
pub fn same_bytes(x: In<'_>, out: &mut Out<'_>) {
    copy_unless_same(x, out);
}

/// Each of `count` elements, which are `step` elements apart, `times` times.
///
/// # Safety
/// The source must hold `count` elements of `size` bytes and the result `count * times`; they must not overlap.
pub unsafe fn repeat_each(size: u8, (src, step): (*const u8, isize), dst: *mut u8, count: usize, times: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match size {
            1 => repeat::<u8, 64>(src.cast(), step, dst.cast(), count, times),
            2 => repeat::<u16, 32>(src.cast(), step, dst.cast(), count, times),
            4 => repeat::<u32, 16>(src.cast(), step, dst.cast(), count, times),
            8 => repeat::<u64, 8>(src.cast(), step, dst.cast(), count, times),
            _ => repeat::<[u64; 2], 4>(src.cast(), step, dst.cast(), count, times),
        }
    }
}

// As `repeat_each`; rows of at least `L` elements are written so many at a time, the last ones over those before.
alternate!(repeat, L, (src: *const T, step: isize, dst: *mut T, count: usize, times: usize), {
    if times < L {
        return match times {
            ..=4 => repeat_over::<T, 4>((src, step), dst, count, times),
            5..=8 => repeat_over::<T, 8>((src, step), dst, count, times),
            _ => repeat_over::<T, L>((src, step), dst, count, times),
        };
    }
    for k in 0..count {
        let (row, x) = (dst.add(k * times), *src.offset(k as isize * step));
        for at in (0..times).step_by(L) {
            row.add(at.min(times - L)).cast::<[T; L]>().write_unaligned([x; L]);
        }
    }
});

/// Rows of at most `L` elements: each is written as `L` of them, and what is too many is written over by the next rows.
#[inline(always)]
unsafe fn repeat_over<T: Copy, const L: usize>(
    (src, step): (*const T, isize),
    dst: *mut T,
    count: usize,
    times: usize,
) {
    let long = count.saturating_sub(L.div_ceil(times.max(1)));
    // SAFETY: the caller's contract; behind row `long` there are at least `L` more elements.
    unsafe {
        for k in 0..long {
            dst.add(k * times).cast::<[T; L]>().write_unaligned([*src.offset(k as isize * step); L]);
        }
        for k in long..count {
            std::slice::from_raw_parts_mut(dst.add(k * times), times).fill(*src.offset(k as isize * step));
        }
    }
}

/// `len` elements `times` times over.
///
/// # Safety
/// The source must hold `len` elements of `size` bytes and the result `len * times`; they must not overlap.
pub unsafe fn repeat_all(size: u8, src: *const u8, dst: *mut u8, len: usize, times: usize) {
    let bytes = len * size as usize;
    for k in 0..times {
        // SAFETY: the caller's contract.
        unsafe { std::ptr::copy_nonoverlapping(src, dst.add(k * bytes), bytes) };
    }
}

/// Offsets of a multi-dimensional index in row-major order.
#[derive(Default)]
pub(crate) struct Walk {
    pub extents: SmallVec<[usize; 4]>,
    pub strides: SmallVec<[usize; 4]>,
}

impl Walk {
    /// The offset of each index, in order.
    pub fn offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let total: usize = self.extents.iter().product();
        (0..total).map(|mut linear| {
            let mut offset = 0;
            for (&n, &s) in self.extents.iter().zip(&self.strides).rev() {
                offset += linear % n * s;
                linear /= n;
            }
            offset
        })
    }
}
