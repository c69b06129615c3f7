//! Where the windows of gathers and scatters are, as a function of the index vectors.
//!
//! The offsets of a few hundred index vectors are computed at a time, by loops that the compiler vectorizes: a
//! component is counted from the end if it may be, compared with the largest start that keeps the window inside,
//! clamped, and multiplied by its stride. What the batch axes add is counted along. Read next: `gather.rs`.

use crate::elementwise::convert;
use crate::elementwise::kernel::In;
use ferrax_base::{Buffer, DType, Result};
use ferrax_loops::IndexMode;
use ferrax_loops::passes::view::signed_strides;
use smallvec::SmallVec;
use std::ops::Range;

/// Index vectors whose offsets are computed together.
pub const TOGETHER: usize = 256;
/// So few that clearing room for more would take longer.
const FEW: usize = 16;
/// The offset of a window that is dropped.
const DROPPED: i64 = -1;

/// What the dimension numbers of both nodes say, in gather's terms.
pub struct Numbers<'a> {
    pub start_map: &'a [usize],
    pub operand_batching: &'a [usize],
    pub index_batching: &'a [usize],
    /// The other array's axes that are not window axes, in order.
    pub other_batch_axes: SmallVec<[usize; 4]>,
    pub window: &'a [usize],
}

/// Index vectors, row-major.
enum Indices<'a> {
    Short(&'a [i32]),
    Long(Buffer),
}

/// A batch axis: its extent, and by how much its index moves in the operand (batching dimensions) and the other array.
#[derive(Clone, Copy)]
struct Batch {
    n: usize,
    operand: isize,
    other: isize,
}

/// A component of the index vectors: the operand's stride and the largest start that keeps the window inside.
#[derive(Clone, Copy)]
struct Component<T> {
    stride: T,
    last: T,
}

/// Index vectors along one batch axis: what their components come to, and where the batch index is and goes in the
/// operand and in the other array.
pub struct Run<'a> {
    pub places: &'a [i64],
    /// Whether no window is dropped.
    pub whole: bool,
    operand: (isize, isize),
    other: (isize, isize),
}

impl Run<'_> {
    /// What the batch index of vector `k` adds in the operand.
    #[inline(always)]
    pub fn operand(&self, k: usize) -> isize {
        self.operand.0 + k as isize * self.operand.1
    }

    /// Where the window of vector `k` begins in the operand; below 0 if it is dropped.
    #[inline(always)]
    pub fn window(&self, k: usize) -> isize {
        let place = self.places[k];
        if place == DROPPED { place as isize } else { self.operand(k) + place as isize }
    }

    /// Where vector `k` is in the other array.
    #[inline(always)]
    pub fn other(&self, k: usize) -> isize {
        self.other.0 + k as isize * self.other.1
    }

    /// What the batch index adds in the operand for the next vector, where the other array's elements are next to each other.
    #[inline(always)]
    pub fn step(&self) -> Option<isize> {
        (self.other.1 == 1).then_some(self.operand.1)
    }
}

/// What shapes and dimension numbers say of the windows of one side.
pub struct Places {
    batch: SmallVec<[Batch; 4]>,
    components: SmallVec<[Component<i64>; 4]>,
    /// Whether all offsets are numbers of 4 bytes.
    small: bool,
    /// What is added to indices below 0.
    wrap: i64,
    drops: bool,
    /// Whether windows that begin at different places have no element in common.
    apart: bool,
}

/// Where the windows of one side are.
pub struct Windows<'a> {
    of: &'a Places,
    indices: Indices<'a>,
}

impl Places {
    /// For index vectors of a shape.
    pub fn new(
        operand: &[usize],
        shape: &[usize],
        other: &[usize],
        numbers: &Numbers<'_>,
        (mode, wrap): (IndexMode, bool),
    ) -> Places {
        let extents = &shape[..shape.len() - usize::from(!wrap)];
        let (os, xs) = (signed_strides(operand), signed_strides(other));
        let mut batch: SmallVec<[Batch; 4]> = SmallVec::new();
        for (b, (&n, &axis)) in extents.iter().zip(&numbers.other_batch_axes).enumerate() {
            let moved = numbers.index_batching.iter().position(|&i| i == b);
            let axis = Batch { n, operand: moved.map_or(0, |p| os[numbers.operand_batching[p]]), other: xs[axis] };
            match batch.last_mut() {
                // Steps that continue those of the next axis outwards are those of one axis.
                Some(last) if last.operand == n as isize * axis.operand && last.other == n as isize * axis.other => {
                    *last = Batch { n: last.n * n, ..axis };
                }
                _ => batch.push(axis),
            }
        }
        let components =
            numbers.start_map.iter().map(|&a| (os[a] as i64, operand[a] as i64 - numbers.window[a] as i64));
        let size: usize = operand.iter().product();
        Places {
            batch,
            components: components.map(|(stride, last)| Component { stride, last }).collect(),
            small: i32::try_from(size).is_ok(),
            wrap: if wrap { operand[numbers.start_map[0]] as i64 } else { 0 },
            drops: mode == IndexMode::FillOrDrop,
            apart: numbers.start_map.iter().all(|&a| numbers.window[a] == 1),
        }
    }
}

impl<'a> Windows<'a> {
    /// Those that these index vectors name.
    pub fn new(of: &'a Places, indices: In<'a>) -> Result<Self> {
        let indices = if indices.ty.dtype == DType::I32 {
            Indices::Short(indices.of::<i32>())
        } else {
            Indices::Long(long(indices)?)
        };
        Ok(Windows { of, indices })
    }

    /// Whether windows that begin at different places have no element in common.
    pub fn apart(&self) -> bool {
        self.of.apart
    }

    /// Number of index vectors.
    pub fn count(&self) -> usize {
        self.of.batch.iter().map(|b| b.n).product()
    }

    /// Whether the windows of neighbouring index vectors begin `n` elements from each other in the other array.
    pub fn adjoin(&self, n: usize) -> bool {
        self.of.batch.last().is_some_and(|b| b.other == n as isize)
    }

    /// Calls `f` for the index vectors of a range, some at a time, in order.
    #[inline(always)]
    pub fn runs(&self, range: Range<usize>, mut f: impl FnMut(&Run<'_>)) {
        if range.is_empty() {
            return;
        }
        let mut walk = self.walk(range.start);
        let (mut few, mut many);
        let places: &mut [i64] = if range.len() <= FEW {
            few = [0; FEW];
            &mut few
        } else {
            many = [0; TOGETHER];
            &mut many
        };
        let mut first = range.start;
        while first < range.end {
            let count = TOGETHER.min(range.end - first);
            let whole = self.offsets(first, &mut places[..count]);
            let mut rest = &places[..count];
            while !rest.is_empty() {
                let (places, after) = rest.split_at(rest.len().min(walk.left()));
                let (operand, other) = ((walk.operand, walk.inner.operand), (walk.other, walk.inner.other));
                f(&Run { places, whole, operand, other });
                walk.advance(places.len());
                rest = after;
            }
            first += count;
        }
    }

    /// Calls `f(operand offset or None when outside, other offset)` for each index vector of a range, in order.
    #[inline(always)]
    pub fn each(&self, range: Range<usize>, mut f: impl FnMut(Option<isize>, isize)) {
        self.runs(range, |run| {
            for (k, &place) in run.places.iter().enumerate() {
                let at = (place != DROPPED).then_some(run.operand(k) + place as isize);
                f(at, run.other(k));
            }
        });
    }

    /// What the components of the index vectors from `first` on come to; whether no window is dropped.
    fn offsets(&self, first: usize, places: &mut [i64]) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn fast(windows: &Windows<'_>, first: usize, places: &mut [i64]) -> bool {
                windows.offsets_body(first, places)
            }
            if crate::simd::wide() {
                // SAFETY: the machine has the instructions.
                return unsafe { fast(self, first, places) };
            }
        }
        self.offsets_body(first, places)
    }

    #[inline(always)]
    fn offsets_body(&self, first: usize, places: &mut [i64]) -> bool {
        let of = self.of;
        let depth = of.components.len();
        let range = first * depth..(first + places.len()) * depth;
        match &self.indices {
            Indices::Short(all) if of.small => {
                // Whatever is beyond this is beyond the operand too.
                let short = |x: i64| x.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
                let components: SmallVec<[Component<i32>; 4]> =
                    of.components.iter().map(|c| Component { stride: short(c.stride), last: short(c.last) }).collect();
                offsets_of(&all[range], &components, (short(of.wrap), of.drops), places)
            }
            Indices::Short(all) => {
                let all: SmallVec<[i64; TOGETHER]> = all[range].iter().map(|&i| i64::from(i)).collect();
                offsets_of(&all, &of.components, (of.wrap, of.drops), places)
            }
            Indices::Long(all) => offsets_of(&all.typed::<i64>()[range], &of.components, (of.wrap, of.drops), places),
        }
    }

    /// The walk over the batch axes, at index vector `first`.
    fn walk(&self, first: usize) -> Walk<'_> {
        let (inner, outer) = match self.of.batch.split_last() {
            Some((&inner, outer)) => (inner, outer),
            None => (Batch { n: 1, operand: 0, other: 0 }, &[][..]),
        };
        let mut walk = Walk { inner, outer, at: SmallVec::from_elem(0, outer.len()), inside: 0, operand: 0, other: 0 };
        let mut left = first / inner.n.max(1);
        for (at, axis) in walk.at.iter_mut().zip(outer).rev() {
            (*at, left) = (left % axis.n, left / axis.n);
            walk.operand += *at as isize * axis.operand;
            walk.other += *at as isize * axis.other;
        }
        walk.advance(first % inner.n.max(1));
        walk
    }
}

/// Indices as numbers of 8 bytes.
fn long(indices: In<'_>) -> Result<Buffer> {
    let plan = convert::plan(indices.ty.dtype, DType::I64)?;
    let mut long = plan.run_whole(indices.ptr, indices.ty.size(), DType::I64)?;
    if indices.ty.dtype == DType::U64 {
        // What an i64 does not hold is beyond any array.
        long.typed_mut::<i64>().iter_mut().filter(|i| **i < 0).for_each(|i| *i = i64::MAX);
    }
    Ok(long)
}

/// Where a walk over the batch axes is: what they add in the operand and in the other array.
struct Walk<'a> {
    inner: Batch,
    outer: &'a [Batch],
    at: SmallVec<[usize; 4]>,
    inside: usize,
    operand: isize,
    other: isize,
}

impl Walk<'_> {
    /// Index vectors to the end of the innermost axis.
    fn left(&self) -> usize {
        self.inner.n - self.inside
    }

    /// Goes on along the innermost axis, to its end at most.
    fn advance(&mut self, n: usize) {
        self.inside += n;
        self.operand += n as isize * self.inner.operand;
        self.other += n as isize * self.inner.other;
        if self.inside < self.inner.n {
            return;
        }
        let back = |walk: &mut Self, axis: Batch| {
            walk.operand -= axis.n as isize * axis.operand;
            walk.other -= axis.n as isize * axis.other;
        };
        self.inside = 0;
        back(self, self.inner);
        for (d, &axis) in self.outer.iter().enumerate().rev() {
            self.at[d] += 1;
            self.operand += axis.operand;
            self.other += axis.other;
            if self.at[d] < axis.n {
                return;
            }
            self.at[d] = 0;
            back(self, axis);
        }
    }
}

/// Numbers that offsets are computed in.
trait Offset: Copy + Ord + Default + Into<i64> {
    fn times_plus(self, stride: Self, sum: Self) -> Self;
    /// This, counted from the end of an axis of so many if it is below 0.
    fn behind(self, wrap: Self) -> Self;
    /// Joins to `outside`, which is below 0 if any was, an index that may be 0 to `last`.
    fn check(self, last: Self, outside: Self) -> Self;
}

macro_rules! offsets {
    ($($T:ty)*) => {
        $(impl Offset for $T {
            #[inline(always)]
            fn times_plus(self, stride: Self, sum: Self) -> Self {
                self.wrapping_mul(stride).wrapping_add(sum)
            }
            #[inline(always)]
            fn behind(self, wrap: Self) -> Self {
                self.wrapping_add(if self < 0 { wrap } else { 0 })
            }
            #[inline(always)]
            fn check(self, last: Self, outside: Self) -> Self {
                outside | self | last.wrapping_sub(self)
            }
        })*
    };
}
offsets!(i32 i64);

/// The offsets of index vectors, or `DROPPED`; whether none is.
#[inline(always)]
fn offsets_of<T: Offset>(indices: &[T], components: &[Component<T>], how: (T, bool), places: &mut [i64]) -> bool {
    match *components {
        [a] => each_vector([a], indices, how, places),
        [a, b] => each_vector([a, b], indices, how, places),
        [a, b, c] => each_vector([a, b, c], indices, how, places),
        _ => {
            let mut vectors = indices.chunks(components.len().max(1));
            places.iter_mut().for_each(|place| *place = offset(components, vectors.next().unwrap_or(&[]), how));
            !how.1 || !places.contains(&DROPPED)
        }
    }
}

#[inline(always)]
fn each_vector<T: Offset, const D: usize>(
    components: [Component<T>; D],
    indices: &[T],
    how: (T, bool),
    places: &mut [i64],
) -> bool {
    let vectors = indices.as_chunks::<D>().0;
    // One sign for all, which vectors of numbers are joined to. Most are inside, and then there is less to do.
    let check = |all, vector: &[T; D]| components.iter().zip(vector).fold(all, |all, (c, &i)| i.check(c.last, all));
    if vectors.iter().fold(T::default(), check) >= T::default() {
        for (place, vector) in places.iter_mut().zip(vectors) {
            let terms = components.iter().zip(vector);
            *place = terms.fold(T::default(), |sum, (c, &i)| i.times_plus(c.stride, sum)).into();
        }
        return true;
    }
    let mut all = 0;
    for (place, vector) in places.iter_mut().zip(vectors) {
        *place = offset(&components, vector, how);
        all |= *place;
    }
    all >= 0
}

#[inline(always)]
fn offset<T: Offset>(components: &[Component<T>], vector: &[T], (wrap, drops): (T, bool)) -> i64 {
    let zero = T::default();
    let (mut sum, mut outside) = (zero, zero);
    for (c, &i) in components.iter().zip(vector) {
        let i = i.behind(wrap);
        outside = i.check(c.last, outside);
        sum = i.min(c.last).max(zero).times_plus(c.stride, sum);
    }
    if (outside < zero) & drops { DROPPED } else { sum.into() }
}
