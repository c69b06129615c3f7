//! Gather with XLA's dimension numbers, batching dimensions and index modes.
//!
//! It walks the index vectors once (`places.rs`); each gives a window of the operand, whose axes are merged beforehand,
//! so that the common cases (single elements, contiguous rows) are one move each. Read next: `scatter.rs`, the same
//! the other way round.

use crate::elementwise::kernel::{In, Out, by_size};
use crate::library::movement::{Axis, BYTES_A_NANOSECOND, Ends, copy_axes, merge, splat};
use crate::library::places::{Numbers, Places, Run, Windows};
use crate::pool;
use ferrax_base::{DType, Result};
use ferrax_loops::passes::view::signed_strides;
use ferrax_loops::{Gathering, IndexMode, Type};
use smallvec::SmallVec;

type Offsets = SmallVec<[isize; 4]>;
pub type Axes = SmallVec<[Axis; 6]>;

/// Merged axes of a window: operand axes that are neither collapsed nor batching, against the other's axes.
pub fn window_axes(
    operand: &[usize],
    other: &[usize],
    dropped: [&[usize]; 2],
    other_axes: &[usize],
    window: &[usize],
) -> Axes {
    let (os, xs) = (signed_strides(operand), signed_strides(other));
    let kept = (0..operand.len()).filter(|a| !dropped[0].contains(a) && !dropped[1].contains(a));
    let (mut shape, mut ss, mut ds): (SmallVec<[usize; 4]>, Offsets, Offsets) = Default::default();
    for (a, &o) in kept.zip(other_axes) {
        shape.push(window[a]);
        ss.push(os[a]);
        ds.push(xs[o]);
    }
    merge(&shape, &ss, &ds)
}

/// The largest index, where each int32 index stands for one element of a one-dimensional operand and the other
/// array has one for each.
pub fn single_elements(operand: &[usize], indices: &Type, other: &[usize], numbers: &Numbers<'_>) -> Option<i32> {
    let single = indices.dtype == DType::I32
        && numbers.start_map == [0]
        && numbers.operand_batching.is_empty()
        && operand.len() == 1
        && numbers.window == [1]
        && indices.size() == other.iter().product::<usize>()
        && numbers.other_batch_axes.is_sorted();
    let limit = i32::try_from(operand.first()?.checked_sub(1)?).ok()?;
    single.then_some(limit)
}

/// What the shapes of a gather that has elements say.
pub struct Taking {
    limit: Option<i32>,
    places: Places,
    axes: Axes,
    /// For a dropped window the source is the fill value, walked with strides of 0.
    fill_axes: Axes,
}

impl Taking {
    pub fn of(gathering: &Gathering, operand: &Type, indices: &Type, out: &Type) -> Taking {
        let Gathering { dims, slice_sizes, mode, wrap, .. } = gathering;
        let numbers = Numbers {
            start_map: &dims.start_index_map,
            operand_batching: &dims.operand_batching_dims,
            index_batching: &dims.start_indices_batching_dims,
            other_batch_axes: (0..out.shape.len()).filter(|a| !dims.offset_dims.contains(a)).collect(),
            window: slice_sizes,
        };
        let dropped = [&dims.collapsed_slice_dims[..], &dims.operand_batching_dims[..]];
        let axes = window_axes(&operand.shape, &out.shape, dropped, &dims.offset_dims, slice_sizes);
        Taking {
            limit: single_elements(&operand.shape, indices, &out.shape, &numbers),
            places: Places::new(&operand.shape, &indices.shape, &out.shape, &numbers, (*mode, *wrap)),
            fill_axes: axes.iter().map(|a| Axis { src: 0, ..*a }).collect(),
            axes,
        }
    }

    /// Gathers from arrays of these shapes.
    pub fn run(&self, gathering: &Gathering, operand: In<'_>, indices: In<'_>, out: &mut Out<'_>) -> Result<()> {
        let (size, fill) = (operand.ty.dtype.size(), gathering.fill.to_bytes());
        if let Some(limit) = self.limit {
            let drop = gathering.mode == IndexMode::FillOrDrop;
            by_size!(size, T => {
                // SAFETY: the fill value has the operand's dtype, whose size is T's.
                let fill = unsafe { fill.as_ptr().cast::<T>().read_unaligned() };
                let fill = drop.then_some(fill);
                take(limit, gathering.wrap, fill, operand.of::<T>(), indices.of::<i32>(), out.of::<T>());
            });
            return Ok(());
        }
        let windows = Windows::new(&self.places, indices)?;
        let (axes, fill_axes) = (&self.axes, &self.fill_axes);
        by_size!(size, T => {
            let mut value = [T::default()];
            // SAFETY: the fill value has the operand's dtype, whose size is T's.
            unsafe { std::ptr::copy_nonoverlapping(fill.as_ptr(), value.as_mut_ptr().cast(), size) };
            let (count, ends) = (windows.count(), Ends(operand.ptr, out.ptr));
            let nanoseconds = (2 * count + out.ty.bytes() / BYTES_A_NANOSECOND) as u64;
            let apart = windows.adjoin(1) && axes.iter().all(|a| a.dst > 1);
            if apart && axes.first().is_some_and(|a| a.n >= pool::threads()) {
                take_apart(&windows, axes, value[0], &ends, nanoseconds);
                return Ok(());
            }
            let each = count.div_ceil(8 * pool::threads()).max(16);
            pool::share(nanoseconds, count.div_ceil(each), &|_, task| {
                let (src, dst) = { let ends = &ends; (ends.0.cast::<T>(), ends.1.cast::<T>()) };
                let part = task * each..((task + 1) * each).min(count);
                // SAFETY: windows inside the operand were checked by `each` and `runs`; the result's strides are its own.
                unsafe {
                    if axes.is_empty() {
                        return windows.runs(part, |run| elements(run, src, value[0], dst));
                    }
                    if apart {
                        return windows.runs(part, |run| across(run, axes, elements::<T>, (src, value[0], dst)));
                    }
                    if let [outer @ .., Axis { n, src: 1, dst: 1 }] = &axes[..]
                        && (outer.is_empty() || windows.adjoin(*n))
                        && let Some(rows) = short_rows::<T>(*n)
                    {
                        return windows.runs(part, |run| across(run, outer, rows, (src, value[0], dst)));
                    }
                    windows.each(part, |from, to| match from {
                        Some(o) => copy_axes(axes, src.offset(o), dst.offset(to)),
                        None => copy_axes(fill_axes, value.as_ptr(), dst.offset(to)),
                    });
                }
            });
        });
        Ok(())
    }
}

/// `Gather`.
pub fn gather(gathering: &Gathering, operand: In<'_>, indices: In<'_>, out: &mut Out<'_>) -> Result<()> {
    if operand.ty.size() == 0 {
        splat(out.ty.dtype, gathering.fill.to_bytes().as_ptr(), out.ptr, out.ty.size());
        return Ok(());
    }
    Taking::of(gathering, operand.ty, indices.ty, out.ty).run(gathering, operand, indices, out)
}

/// Takes single elements; `fill` where they are outside.
///
/// # Safety
/// The run must be of an operand and a result that begin at these addresses.
#[inline(always)]
unsafe fn elements<T: Copy>(run: &Run<'_>, src: *const T, fill: T, dst: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        if run.whole
            && let Some(step) = run.step()
        {
            let (src, out) = (src.offset(run.operand(0)), dst.offset(run.other(0)));
            let out = std::slice::from_raw_parts_mut(out, run.places.len());
            if step == 0 {
                out.iter_mut().zip(run.places).for_each(|(out, &place)| *out = *src.offset(place as isize));
            } else {
                let places = (0..).zip(run.places);
                out.iter_mut().zip(places).for_each(|(out, (k, &place))| *out = *src.offset(place as isize + k * step));
            }
            return;
        }
        for (k, &place) in run.places.iter().enumerate() {
            let inside = place >= 0;
            *dst.offset(run.other(k)) = if inside { *src.offset(run.operand(k) + place as isize) } else { fill };
        }
    }
}

/// Takes rows of a few elements, each in a move or two; `fill` where they are outside.
type TakeRows<T> = unsafe fn(&Run<'_>, *const T, T, *mut T);

/// What takes rows of `n` elements, where those are few: a call for each would take longer than its elements.
fn short_rows<T: Copy>(n: usize) -> Option<TakeRows<T>> {
    Some(match n {
        2 => rows_of::<T, 2>,
        3 => rows_of::<T, 3>,
        4 => rows_of::<T, 4>,
        6 => rows_of::<T, 6>,
        8 => rows_of::<T, 8>,
        16 => rows_of::<T, 16>,
        _ => return None,
    })
}

/// # Safety
/// As for `elements`; windows are `N` elements side by side.
unsafe fn rows_of<T: Copy, const N: usize>(run: &Run<'_>, src: *const T, fill: T, dst: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        for (k, &place) in run.places.iter().enumerate() {
            let to = dst.offset(run.other(k)).cast::<[T; N]>();
            *to = if run.whole || place >= 0 {
                *src.offset(run.operand(k) + place as isize).cast::<[T; N]>()
            } else {
                [fill; N]
            };
        }
    }
}

/// Takes an element, or a row of a few, of every window after the other, which is quicker than window by window where those of
/// one window are apart in the result and those of one place in the windows are not.
///
/// # Safety
/// As for `elements`; the axes are those of windows, without that of their rows.
unsafe fn across<T: Copy>(run: &Run<'_>, axes: &[Axis], take: TakeRows<T>, (src, fill, dst): (*const T, T, *mut T)) {
    // SAFETY: the caller's contract.
    unsafe {
        match axes {
            [] => take(run, src, fill, dst),
            [a, rest @ ..] => {
                for i in 0..a.n as isize {
                    across(run, rest, take, (src.offset(i * a.src), fill, dst.offset(i * a.dst)));
                }
            }
        }
    }
}

/// Takes windows whose elements lie apart in the result, and those of one place in them side by side: threads take parts of the
/// windows.
fn take_apart<T: Copy + Send + Sync>(windows: &Windows<'_>, axes: &Axes, fill: T, ends: &Ends, nanoseconds: u64) {
    let (outer, threads) = (axes[0], pool::threads());
    let each = outer.n.div_ceil(2 * threads);
    pool::share(nanoseconds, outer.n.div_ceil(each), &|_, task| {
        let first = task * each;
        let mut part = axes.clone();
        part[0].n = each.min(outer.n - first);
        let src = ends.0.cast::<T>().wrapping_offset(first as isize * outer.src);
        let dst = ends.1.cast::<T>().wrapping_offset(first as isize * outer.dst);
        // SAFETY: windows inside the operand were checked by `runs`; the result's strides are its own.
        windows.runs(0..windows.count(), |run| unsafe { across(run, &part, elements::<T>, (src, fill, dst)) });
    });
}

/// Indices that are checked together.
pub const CHECKED: usize = 256;
/// Elements that a thread takes.
pub const TAKEN: usize = 4 << 10;

/// Elements of a vector at indices of at most `limit`: those outside are `fill`, or the nearest where there is none. With
/// `wrap`, indices below 0 count from the end.
fn take<T: Copy + Send + Sync>(limit: i32, wrap: bool, fill: Option<T>, src: &[T], indices: &[i32], out: &mut [T]) {
    let behind = |i: i32| if wrap && i < 0 { i.wrapping_add(limit.wrapping_add(1)) } else { i };
    let ends = Ends(src.as_ptr().cast(), out.as_mut_ptr().cast());
    pool::share(indices.len() as u64 / 2, indices.len().div_ceil(TAKEN), &|_, task| {
        let ends = &ends;
        let part = task * TAKEN..((task + 1) * TAKEN).min(indices.len());
        // SAFETY: the result has an element for each index, and parts have elements of their own.
        let out = unsafe { std::slice::from_raw_parts_mut(ends.1.cast::<T>().add(part.start), part.len()) };
        for (out, indices) in out.chunks_mut(CHECKED).zip(indices[part].chunks(CHECKED)) {
            if inside(limit, indices) {
                // SAFETY: the indices were checked.
                out.iter_mut().zip(indices).for_each(|(o, &i)| *o = unsafe { *src.get_unchecked(i as usize) });
                continue;
            }
            for (o, i) in out.iter_mut().zip(indices.iter().map(|&i| behind(i))) {
                *o = match fill {
                    Some(fill) if !(0..=limit).contains(&i) => fill,
                    _ => src[i.clamp(0, limit) as usize],
                };
            }
        }
    });
}

/// Whether all indices are in 0..=limit.
pub fn inside(limit: i32, indices: &[i32]) -> bool {
    #[inline(always)]
    fn body(limit: i32, indices: &[i32]) -> bool {
        indices.iter().fold(0, |most, &i| (i as u32).max(most)) <= limit as u32
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn fast(limit: i32, indices: &[i32]) -> bool {
        body(limit, indices)
    }
    #[cfg(target_arch = "x86_64")]
    if crate::simd::wide() {
        // SAFETY: the machine has the instruction set.
        return unsafe { fast(limit, indices) };
    }
    body(limit, indices)
}
