//! Gather with XLA's dimension numbers, batching dimensions and index modes.
//!
//! It walks the index vectors once; each gives a window of the operand, whose axes are merged beforehand, so
//! that the common cases (single elements, contiguous rows) are one move each. Read next: `scatter.rs`, the same the
//! other way round.

use crate::elementwise::convert;
use crate::elementwise::kernel::{In, Out, by_size};
use crate::library::movement::{Axis, BYTES_A_NANOSECOND, Ends, copy_axes, merge, splat};
use crate::pool;
use ferrax_base::{Buffer, DType, Result};
use ferrax_loops::passes::view::signed_strides;
use ferrax_loops::{Gathering, IndexMode};
use smallvec::SmallVec;
use std::ops::Range;

type Offsets = SmallVec<[isize; 4]>;
pub type Axes = SmallVec<[Axis; 6]>;

/// Where the windows of one side are, as a function of the index vectors.
pub struct Windows<'a> {
    /// Index vectors as i64, row-major.
    indices: Buffer,
    depth: usize,
    /// Extents of the index array without the vector axis.
    batch: SmallVec<[usize; 4]>,
    /// Strides by which a batch index moves in the operand (batching dimensions) and in the other array.
    operand_steps: Offsets,
    other_steps: Offsets,
    /// For each component of the vector: operand stride, and the largest start that keeps the window inside.
    components: SmallVec<[(isize, i64); 4]>,
    mode: IndexMode,
    /// Whether windows that begin at different places have no element in common.
    pub apart: bool,
    _life: std::marker::PhantomData<&'a ()>,
}

/// What both nodes' dimension numbers say, in gather's terms.
pub struct Numbers<'a> {
    pub start_map: &'a [usize],
    pub operand_batching: &'a [usize],
    pub index_batching: &'a [usize],
    /// The other array's axes that are not window axes, in order.
    pub other_batch_axes: SmallVec<[usize; 4]>,
    pub window: &'a [usize],
}

impl Windows<'_> {
    pub fn new(
        operand: &[usize],
        indices: In<'_>,
        other: &[usize],
        numbers: &Numbers<'_>,
        (mode, wrap): (IndexMode, bool),
    ) -> Result<Self> {
        let depth = numbers.start_map.len();
        let rank = indices.shape().len() - usize::from(!wrap);
        let batch: SmallVec<[usize; 4]> = indices.shape()[..rank].iter().copied().collect();
        let plan = convert::plan(indices.ty.dtype, DType::I64)?;
        let mut wide = plan.run_whole(indices.ptr, indices.ty.size(), DType::I64)?;
        if indices.ty.dtype == DType::U64 {
            // What an i64 does not hold is beyond any array.
            wide.typed_mut::<i64>().iter_mut().filter(|i| **i < 0).for_each(|i| *i = i64::MAX);
        }
        if wrap {
            let n = operand[numbers.start_map[0]] as i64;
            // SAFETY: the buffer holds an i64 for each index.
            let wide = unsafe { std::slice::from_raw_parts_mut(wide.as_mut_ptr().cast::<i64>(), indices.ty.size()) };
            wide.iter_mut().for_each(|i| *i += if *i < 0 { n } else { 0 });
        }
        let (os, xs) = (signed_strides(operand), signed_strides(other));
        let operand_steps = (0..batch.len())
            .map(|b| numbers.index_batching.iter().position(|&i| i == b).map_or(0, |p| os[numbers.operand_batching[p]]))
            .collect();
        let other_steps = numbers.other_batch_axes.iter().map(|&a| xs[a]).collect();
        let components =
            numbers.start_map.iter().map(|&a| (os[a], operand[a] as i64 - numbers.window[a] as i64)).collect();
        Ok(Windows {
            indices: wide,
            depth,
            batch,
            operand_steps,
            other_steps,
            components,
            mode,
            apart: numbers.start_map.iter().all(|&a| numbers.window[a] == 1),
            _life: std::marker::PhantomData,
        })
    }

    /// Number of index vectors.
    pub fn count(&self) -> usize {
        self.batch.iter().product()
    }

    /// Calls `f(operand offset or None when outside, other offset)` for each index vector of a range, in order.
    pub fn each(&self, range: Range<usize>, mut f: impl FnMut(Option<isize>, isize)) {
        let indices = self.indices.typed::<i64>();
        if let (&[(stride, limit)], &[step]) = (&self.components[..], &self.other_steps[..])
            && self.operand_steps[0] == 0
        {
            // One index a window, along one axis: what `x[i]` is.
            let drop = self.mode == IndexMode::FillOrDrop;
            for (&v, i) in indices[range.clone()].iter().zip(range) {
                let outside = drop && !(0..=limit).contains(&v);
                let offset = v.clamp(0, limit.max(0)) as isize * stride;
                f(if outside { None } else { Some(offset) }, i as isize * step);
            }
            return;
        }
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.batch.len());
        let (mut base, mut other) = (0isize, 0isize);
        let mut left = range.start;
        for d in (0..at.len()).rev() {
            (at[d], left) = (left % self.batch[d], left / self.batch[d]);
            base += at[d] as isize * self.operand_steps[d];
            other += at[d] as isize * self.other_steps[d];
        }
        for i in range {
            let vector = &indices[i * self.depth..(i + 1) * self.depth];
            let mut offset = Some(base);
            for (&v, &(stride, limit)) in vector.iter().zip(&self.components) {
                let inside = (0..=limit).contains(&v);
                offset = match self.mode {
                    IndexMode::FillOrDrop if !inside => None,
                    _ => offset.map(|o| o + v.clamp(0, limit.max(0)) as isize * stride),
                };
            }
            f(offset, other);
            for d in (0..at.len()).rev() {
                at[d] += 1;
                base += self.operand_steps[d];
                other += self.other_steps[d];
                if at[d] < self.batch[d] {
                    break;
                }
                base -= self.batch[d] as isize * self.operand_steps[d];
                other -= self.batch[d] as isize * self.other_steps[d];
                at[d] = 0;
            }
        }
    }
}

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
pub fn single_elements(operand: &[usize], indices: In<'_>, other: &[usize], numbers: &Numbers<'_>) -> Option<i32> {
    let single = indices.ty.dtype == DType::I32
        && numbers.start_map == [0]
        && numbers.operand_batching.is_empty()
        && operand.len() == 1
        && numbers.window == [1]
        && indices.ty.size() == other.iter().product::<usize>()
        && numbers.other_batch_axes.is_sorted();
    let limit = i32::try_from(operand.first()?.checked_sub(1)?).ok()?;
    single.then_some(limit)
}

/// `Gather`.
pub fn gather(gathering: &Gathering, operand: In<'_>, indices: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let Gathering { dims, slice_sizes, mode, fill, wrap, .. } = gathering;
    let (mode, wrap) = (*mode, *wrap);
    let size = operand.ty.dtype.size();
    if operand.ty.size() == 0 {
        splat(out.ty.dtype, fill.to_bytes().as_ptr(), out.ptr, out.ty.size());
        return Ok(());
    }
    let numbers = Numbers {
        start_map: &dims.start_index_map,
        operand_batching: &dims.operand_batching_dims,
        index_batching: &dims.start_indices_batching_dims,
        other_batch_axes: (0..out.shape().len()).filter(|a| !dims.offset_dims.contains(a)).collect(),
        window: slice_sizes,
    };
    if let Some(limit) = single_elements(operand.shape(), indices, out.shape(), &numbers) {
        let drop = mode == IndexMode::FillOrDrop;
        let fill = fill.to_bytes();
        by_size!(size, T => {
            // SAFETY: the fill value has the operand's dtype, whose size is T's.
            let fill = unsafe { fill.as_ptr().cast::<T>().read_unaligned() };
            take(limit, wrap, drop.then_some(fill), operand.of::<T>(), indices.of::<i32>(), out.of::<T>());
        });
        return Ok(());
    }
    let windows = Windows::new(operand.shape(), indices, out.shape(), &numbers, (mode, wrap))?;
    let dropped = [&dims.collapsed_slice_dims[..], &dims.operand_batching_dims[..]];
    let axes = window_axes(operand.shape(), out.shape(), dropped, &dims.offset_dims, slice_sizes);
    // For a dropped window the source is the fill value, walked with strides of 0.
    let fill_axes: Axes = axes.iter().map(|a| Axis { src: 0, ..*a }).collect();
    let fill = fill.to_bytes();
    by_size!(size, T => {
        let mut value = [T::default()];
        // SAFETY: the fill value has the operand's dtype, whose size is T's.
        unsafe { std::ptr::copy_nonoverlapping(fill.as_ptr(), value.as_mut_ptr().cast(), size) };
        let (count, ends) = (windows.count(), Ends(operand.ptr, out.ptr));
        let each = count.div_ceil(8 * pool::threads()).max(16);
        let nanoseconds = 2 * count + out.ty.bytes() / BYTES_A_NANOSECOND;
        pool::share(nanoseconds as u64, count.div_ceil(each), &|_, task| {
            let (src, dst) = { let ends = &ends; (ends.0.cast::<T>(), ends.1.cast::<T>()) };
            windows.each(task * each..((task + 1) * each).min(count), |from, to| {
                // SAFETY: windows inside the operand were checked by `each`; the result's strides are its own.
                unsafe {
                    match (from, &axes[..]) {
                        (Some(o), []) => *dst.offset(to) = *src.offset(o),
                        (Some(o), _) => copy_axes(&axes, src.offset(o), dst.offset(to)),
                        (None, _) => copy_axes(&fill_axes, value.as_ptr(), dst.offset(to)),
                    }
                }
            });
        });
    });
    Ok(())
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
