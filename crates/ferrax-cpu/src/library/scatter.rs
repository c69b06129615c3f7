//! Scatter with XLA's dimension numbers, batching dimensions and index modes.
//!
//! Updates are applied in row-major order of the indices, so that repeated indices give one fixed result. Threads share
//! the work where that order does not change: windows go by where in the operand they are, single elements by parts
//! of the indices where these are promised to be sorted (which is checked) or unique. Read next: `gather.rs`.

use crate::elementwise::kernel::{In, Out, by_size};
use crate::elementwise::{compute_dtype, convert};
use crate::library::gather::{Axes, CHECKED, TAKEN, inside, single_elements, window_axes};
use crate::library::movement::{Axis, BYTES_A_NANOSECOND, Ends, copy_axes, copy_unless_same};
use crate::library::places::{Numbers, Places, TOGETHER, Windows};
use crate::library::reduce::{Monoid, with_monoid};
use crate::pool;
use crate::simd::wide_variant;
use ferrax_base::{DType, Result};
use ferrax_loops::{IndexMode, ReduceOp, ScatterDims, ScatterOp, Type};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the caller promises of the indices.
#[derive(Clone, Copy)]
pub struct Hints {
    pub sorted: bool,
    pub unique: bool,
}

/// What the shapes of a scatter that has updates say.
pub struct Putting {
    limit: Option<i32>,
    places: Places,
    /// The update is the source, the operand the destination.
    axes: Axes,
}

impl Putting {
    pub fn of(dims: &ScatterDims, mode: IndexMode, operand: &Type, indices: &Type, updates: &Type) -> Putting {
        let shape = &operand.shape;
        let dropped = [&dims.inserted_window_dims[..], &dims.operand_batching_dims[..]];
        let mut window: SmallVec<[usize; 4]> = SmallVec::from_elem(1, shape.len());
        let kept = (0..shape.len()).filter(|a| !dropped[0].contains(a) && !dropped[1].contains(a));
        for (a, &u) in kept.zip(&dims.update_window_dims) {
            window[a] = updates.shape[u];
        }
        let numbers = Numbers {
            start_map: &dims.scatter_dims_to_operand_dims,
            operand_batching: &dims.operand_batching_dims,
            index_batching: &dims.scatter_indices_batching_dims,
            other_batch_axes: (0..updates.shape.len()).filter(|a| !dims.update_window_dims.contains(a)).collect(),
            window: &window,
        };
        let axes = window_axes(shape, &updates.shape, dropped, &dims.update_window_dims, &window);
        Putting {
            limit: single_elements(shape, indices, &updates.shape, &numbers),
            places: Places::new(shape, &indices.shape, &updates.shape, &numbers, (mode, false)),
            axes: axes.iter().map(|a| Axis { n: a.n, src: a.dst, dst: a.src }).collect(),
        }
    }

    /// Scatters into an array of these shapes, which the result holds.
    pub fn run(
        &self,
        op: ScatterOp,
        (mode, hints): (IndexMode, Hints),
        indices: In<'_>,
        updates: In<'_>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let dtype = out.ty.dtype;
        if let Some(limit) = self.limit {
            let elements = Elements { limit, drop: mode == IndexMode::FillOrDrop, hints };
            if op == ScatterOp::Set {
                by_size!(dtype.size(), T => elements.join(indices, updates, out, T::default(), |_, u| u));
                return Ok(());
            }
            if let Some(op) = reduction(op).filter(|_| compute_dtype(dtype) == dtype) {
                with_monoid!(op, dtype, join_elements(elements, indices, updates, out));
                return Ok(());
            }
        }
        let windows = Windows::new(&self.places, indices)?;
        if op == ScatterOp::Set {
            by_size!(dtype.size(), T => set::<T>(&windows, &self.axes, (updates, out)));
            return Ok(());
        }
        combine_all(op, &windows, &self.axes, updates, out)
    }
}

/// `Scatter`; works in place when the result is the operand.
pub fn scatter(
    op: ScatterOp,
    dims: &ScatterDims,
    how: (IndexMode, Hints),
    operand: In<'_>,
    indices: In<'_>,
    updates: In<'_>,
    out: &mut Out<'_>,
) -> Result<()> {
    copy_unless_same(operand, out);
    if updates.ty.size() == 0 {
        return Ok(());
    }
    Putting::of(dims, how.0, operand.ty, indices.ty, updates.ty).run(op, how, indices, updates, out)
}

/// The reduction that joins updates to elements; subtraction is the sum with their negatives.
fn reduction(op: ScatterOp) -> Option<ReduceOp> {
    Some(match op {
        ScatterOp::Add => ReduceOp::Sum,
        ScatterOp::Mul => ReduceOp::Prod,
        ScatterOp::Min => ReduceOp::Min,
        ScatterOp::Max => ReduceOp::Max,
        ScatterOp::Set | ScatterOp::Sub => return None,
    })
}

/// Combines windows of any dtype with the operand, which the result holds.
fn combine_all(op: ScatterOp, windows: &Windows<'_>, axes: &[Axis], updates: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let (dtype, n, count) = (out.ty.dtype, out.ty.size(), updates.ty.size());
    let compute = compute_dtype(dtype);
    if compute == dtype {
        let (from, to) = (Side { ptr: updates.ptr.cast_mut(), size: count }, Side { ptr: out.ptr, size: n });
        return combine(op, dtype, windows, axes, &from, &to);
    }
    let mut wide = convert::widened(dtype, out.ptr, n)?;
    let mut update = convert::widened(dtype, updates.ptr, count)?;
    let (from, to) = (Side { ptr: update.as_mut_ptr(), size: count }, Side { ptr: wide.as_mut_ptr(), size: n });
    combine(op, compute, windows, axes, &from, &to)?;
    convert::narrowed(dtype, &wide, out.bytes(), n);
    Ok(())
}

/// Bytes of windows that threads share out: each looks at all index vectors for those in its part of the operand, which takes
/// as long as to join what is shorter.
const LONG: usize = 64;

/// Calls `f(the part of the operand whose windows are meant)` for the whole operand, without one, or for parts of it on several
/// threads.
fn each_part(windows: &Windows<'_>, (operand, bytes): (usize, usize), f: impl Fn(Option<Range<isize>>) + Sync) {
    let count = windows.count();
    let nanoseconds = (2 * count + 2 * bytes / BYTES_A_NANOSECOND) as u64;
    let shared = windows.apart() && bytes >= LONG * count && pool::worth(nanoseconds);
    if !shared {
        return f(None);
    }
    let parts = pool::threads();
    let span = operand.div_ceil(parts) as isize;
    pool::share(nanoseconds, parts, &|_, part| f(Some(part as isize * span..(part as isize + 1) * span)));
}

fn set<T: Copy>(windows: &Windows<'_>, axes: &[Axis], (updates, out): (In<'_>, &Out<'_>)) {
    let ends = Ends(updates.ptr, out.ptr);
    each_part(windows, (out.ty.size(), updates.ty.bytes()), |own| {
        let ends = &ends;
        let (src, dst) = (ends.0.cast::<T>(), ends.1.cast::<T>());
        // SAFETY: windows and axes lie inside both arrays.
        Joined { windows, axes, src, dst, own }.each(|x, to| unsafe { copy_axes(axes, x, to) });
    });
}

/// An array by its address and its number of elements.
struct Side {
    ptr: *mut u8,
    size: usize,
}

fn combine(
    op: ScatterOp,
    d: DType,
    windows: &Windows<'_>,
    axes: &[Axis],
    updates: &Side,
    operand: &Side,
) -> Result<()> {
    let (op, negated) = match reduction(op) {
        Some(op) => (op, None),
        None => {
            let plan = crate::elementwise::unary(ferrax_loops::UnaryOp::Neg, d, d)?;
            (ReduceOp::Sum, Some(plan.run_whole(updates.ptr, updates.size, d)?))
        }
    };
    let ptr = negated.as_ref().map_or(updates.ptr, |b| b.as_ptr().cast_mut());
    with_monoid!(op, d, combine_with(windows, axes, (&Side { ptr, size: updates.size }, operand)));
    Ok(())
}

fn join_elements<M: Monoid>(elements: Elements, indices: In<'_>, updates: In<'_>, out: &mut Out<'_>) {
    elements.join(indices, updates, out, M::IDENTITY, M::join);
}

/// Updates of single elements: the largest index, whether those outside are dropped, and what is promised.
#[derive(Clone, Copy)]
struct Elements {
    limit: i32,
    drop: bool,
    hints: Hints,
}

impl Elements {
    /// Joins each update to the element that its index names, in order; what is dropped is joined to `spare`.
    fn join<T: Copy + Send + Sync>(
        self,
        indices: In<'_>,
        updates: In<'_>,
        out: &mut Out<'_>,
        spare: T,
        join: impl Fn(T, T) -> T + Sync,
    ) {
        let (indices, updates, ends) = (indices.of::<i32>(), updates.of::<T>(), Ends(out.ptr, out.ptr));
        let nanoseconds = indices.len() as u64;
        let ends_of_parts = self.parts(indices, pool::worth(nanoseconds) && word::<T>().is_some());
        let plain = ends_of_parts.len() == 1 || !self.hints.unique;
        pool::share(nanoseconds, ends_of_parts.len(), &|_, k| {
            let part = k.checked_sub(1).map_or(0, |before| ends_of_parts[before])..ends_of_parts[k];
            let dst = {
                let ends = &ends;
                ends.1.cast::<T>()
            };
            // SAFETY: elements of the result; see `parts` for who else uses them.
            let shared = |d: *mut T, u: T| unsafe { join_relaxed(d, u, &join) };
            self.join_part((&indices[part.clone()], &updates[part]), dst, spare, &join, (!plain).then_some(shared));
        });
    }

    /// Where the parts of the updates end that threads may join at the same time: parts of sorted indices have no index
    /// in common; of unique ones neither, if the promise holds.
    fn parts(self, indices: &[i32], shared: bool) -> SmallVec<[usize; 1]> {
        let n = indices.len();
        if !shared || !(self.hints.unique || (self.hints.sorted && indices.is_sorted())) {
            return SmallVec::from_elem(n, 1);
        }
        let mut ends = SmallVec::new();
        let mut end = 0;
        while end < n {
            end = (end + TAKEN).min(n);
            // Equal ones stay together; those outside may all be the nearest inside.
            let place = |i: usize| indices[i].clamp(0, self.limit);
            while !self.hints.unique && end < n && place(end) == place(end - 1) {
                end += 1;
            }
            ends.push(end);
        }
        ends
    }

    /// Joins updates to elements, by `shared` where there is one because other threads may use them.
    fn join_part<T: Copy>(
        self,
        part: (&[i32], &[T]),
        dst: *mut T,
        spare: T,
        join: impl Fn(T, T) -> T,
        shared: Option<impl Fn(*mut T, T)>,
    ) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn fast<T: Copy>(
                all: Elements,
                part: (&[i32], &[T]),
                dst: *mut T,
                spare: T,
                join: impl Fn(T, T) -> T,
                shared: Option<impl Fn(*mut T, T)>,
            ) {
                all.join_part_body(part, dst, spare, join, shared);
            }
            if crate::simd::wide() {
                // SAFETY: the machine has the instructions.
                return unsafe { fast(self, part, dst, spare, join, shared) };
            }
        }
        self.join_part_body(part, dst, spare, join, shared);
    }

    #[inline(always)]
    fn join_part_body<T: Copy>(
        self,
        (indices, updates): (&[i32], &[T]),
        dst: *mut T,
        mut spare: T,
        join: impl Fn(T, T) -> T,
        shared: Option<impl Fn(*mut T, T)>,
    ) {
        let limit = self.limit;
        for (indices, updates) in indices.chunks(CHECKED).zip(updates.chunks(CHECKED)) {
            let pairs = indices.iter().zip(updates);
            match &shared {
                _ if !inside(limit, indices) => {
                    // No branch: whether an update is dropped cannot be foreseen.
                    for (&i, &u) in pairs {
                        let outside = self.drop && !(0..=limit).contains(&i);
                        let d = if outside { &raw mut spare } else { dst.wrapping_add(i.clamp(0, limit) as usize) };
                        match &shared {
                            Some(shared) => shared(d, u),
                            // SAFETY: an element of the result, or the spare one.
                            None => unsafe { *d = join(*d, u) },
                        }
                    }
                }
                Some(shared) => pairs.for_each(|(&i, &u)| shared(dst.wrapping_add(i as usize), u)),
                // SAFETY: the indices were checked, and nobody else uses the elements.
                None => unsafe { join_runs(pairs, dst, &join) },
            }
        }
    }
}

/// Joins updates to the elements that they name; an element stays in a register as long as its updates follow each other, as those
/// of segments do.
///
/// # Safety
/// The array must have the elements, and nobody else use them.
#[inline(always)]
unsafe fn join_runs<'a, T: Copy + 'a>(
    mut pairs: impl Iterator<Item = (&'a i32, &'a T)>,
    dst: *mut T,
    join: &impl Fn(T, T) -> T,
) {
    let Some((&first, &u)) = pairs.next() else { return };
    // SAFETY: the caller's contract.
    unsafe {
        let mut at = dst.add(first as usize);
        let mut value = join(*at, u);
        for (&i, &u) in pairs {
            let next = dst.add(i as usize);
            if next != at {
                *at = value;
                (at, value) = (next, *next);
            }
            value = join(value, u);
        }
        *at = value;
    }
}

/// The size of an element that is a word which threads may write at the same time.
const fn word<T>() -> Option<usize> {
    match (size_of::<T>(), align_of::<T>()) {
        (4, 4) | (8, 8) => Some(size_of::<T>()),
        _ => None,
    }
}

/// Joins to an element that is a word and that another thread may write as well, if an index was promised to be there once
/// and is not: one of the updates may be lost then, and nothing else happens.
///
/// # Safety
/// The address must be valid and aligned.
unsafe fn join_relaxed<T: Copy>(d: *mut T, u: T, join: impl Fn(T, T) -> T) {
    macro_rules! through {
        ($A:ty) => {{
            // SAFETY: the caller's contract; the atomic type has the size of T, of which every bit pattern comes from one.
            unsafe {
                let place = <$A>::from_ptr(d.cast());
                let before = place.load(Ordering::Relaxed);
                let after = join(std::mem::transmute_copy(&before), u);
                place.store(std::mem::transmute_copy(&after), Ordering::Relaxed);
            }
        }};
    }
    match const { word::<T>() } {
        Some(4) => through!(AtomicU32),
        Some(_) => through!(AtomicU64),
        // Others are not shared out.
        // SAFETY: the caller's contract.
        None => unsafe { *d = join(*d, u) },
    }
}

/// Updates and the operand whose elements they are joined to, or take the place of.
struct Joined<'a, T> {
    windows: &'a Windows<'a>,
    axes: &'a [Axis],
    src: *const T,
    dst: *mut T,
    /// The part of the operand whose windows are meant, if not all are.
    own: Option<Range<isize>>,
}

fn combine_with<M: Monoid>(windows: &Windows<'_>, axes: &[Axis], (updates, operand): (&Side, &Side)) {
    let ends = Ends(updates.ptr.cast_const(), operand.ptr);
    each_part(windows, (operand.size, updates.size * size_of::<M::T>()), |own| {
        let ends = &ends;
        join_windows::<M>(&Joined { windows, axes, src: ends.0.cast(), dst: ends.1.cast(), own });
    });
}

impl<T> Joined<'_, T> {
    /// Calls `f(update, element)` for the first ones of every window that is meant.
    #[inline(always)]
    fn each(&self, mut f: impl FnMut(*const T, *mut T)) {
        let mut join = |to: isize, from: isize| f(self.src.wrapping_offset(from), self.dst.wrapping_offset(to));
        let Some(own) = &self.own else {
            return self.windows.each(0..self.windows.count(), |to, from| {
                if let Some(to) = to {
                    join(to, from);
                }
            });
        };
        self.windows.runs(0..self.windows.count(), |run| {
            // No branch: which are meant cannot be foreseen.
            let (mut meant, mut count) = ([0; TOGETHER], 0);
            for k in 0..run.places.len() {
                meant[count] = k;
                count += usize::from(own.contains(&run.window(k)));
            }
            meant[..count].iter().for_each(|&k| join(run.window(k), run.other(k)));
        });
    }
}

/// Joins the elements of windows, which `each` gives inside both arrays.
#[inline(always)]
fn join_windows_body<M: Monoid>(joined: &Joined<'_, M::T>) {
    // SAFETY: windows and axes lie inside both arrays.
    unsafe {
        match joined.axes {
            [] => joined.each(|x, to| *to = M::join(*to, *x)),
            [a] if a.src == 1 && a.dst == 1 => joined.each(|x, to| join_row::<M>(a.n, x, to)),
            axes => joined.each(|x, to| join_axes::<M>(axes, x, to)),
        }
    }
}
wide_variant!(join_windows, join_windows_body, (joined: &Joined<'_, M::T>));

/// Joins a row to another, element by element.
#[inline(always)]
unsafe fn join_row<M: Monoid>(n: usize, x: *const M::T, to: *mut M::T) {
    // SAFETY: the caller's rows have so many elements, and are of different arrays.
    let (x, to) = unsafe { (std::slice::from_raw_parts(x, n), std::slice::from_raw_parts_mut(to, n)) };
    let ((to, last_to), (x, last_x)) = (to.as_chunks_mut::<8>(), x.as_chunks::<8>());
    for (to, x) in to.iter_mut().zip(x) {
        *to = std::array::from_fn(|i| M::join(to[i], x[i]));
    }
    for (to, &x) in last_to.iter_mut().zip(last_x) {
        *to = M::join(*to, x);
    }
}

unsafe fn join_axes<M: Monoid>(axes: &[Axis], x: *const M::T, to: *mut M::T) {
    // SAFETY: the caller's offsets and axes lie inside both arrays.
    unsafe {
        match axes {
            [] => *to = M::join(*to, *x),
            [a] if a.src == 1 && a.dst == 1 => join_row::<M>(a.n, x, to),
            [a, rest @ ..] => {
                for i in 0..a.n as isize {
                    join_axes::<M>(rest, x.offset(i * a.src), to.offset(i * a.dst));
                }
            }
        }
    }
}
