//! Views: values whose elements lie in another value's memory at regular distances.
//!
//! Slices, reversals, broadcasts and transpositions that keep whole rows together move nothing: they are read where
//! the elements are. A view knows its elements in order, as few axes of an extent and a distance; what shape the value
//! has does not matter until it is cut again. `order.rs` makes views, regions read them row by row, and whoever needs
//! the elements side by side gets a copy (`Copy`).

use crate::library::movement::{self, Axis, Strides};
use ferrax_base::{Result, Shape, shape::strides as row_major};
use ferrax_loops::kind::SliceDims;
use smallvec::SmallVec;

/// Axes of a view, outermost first: extent, and distance in elements.
pub(crate) type Axes = SmallVec<[(usize, isize); 4]>;

/// The elements of a value, counted in elements of its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The first one.
    pub first: isize,
    /// The others; never more axes than it takes.
    pub axes: Axes,
}

impl View {
    /// Elements of an array of this shape at these distances.
    pub fn new(first: isize, shape: &[usize], strides: &[isize]) -> View {
        let mut axes = Axes::new();
        for (&n, &stride) in shape.iter().zip(strides) {
            if n == 1 {
                continue;
            }
            match axes.last_mut() {
                Some(last) if last.1 == stride * n as isize => *last = (last.0 * n, stride),
                _ => axes.push((n, stride)),
            }
        }
        View { first, axes }
    }

    /// All of `n` elements in `axes`.
    pub fn of(axes: &[(usize, isize)]) -> View {
        View { first: 0, axes: axes.iter().copied().filter(|a| a.0 != 1).collect() }
    }

    /// The distances along the axes of a shape; `None` if an axis of it covers parts of several.
    pub fn strides(&self, shape: &[usize]) -> Option<Strides> {
        let mut out: Strides = SmallVec::from_elem(0, shape.len());
        if shape.contains(&0) {
            return Some(out);
        }
        let (mut at, mut taken) = (self.axes.len(), 1);
        for (k, &n) in shape.iter().enumerate().rev().filter(|a| *a.1 != 1) {
            let (extent, stride) = *self.axes.get(at.checked_sub(1)?)?;
            if extent % (taken * n) != 0 {
                return None;
            }
            out[k] = stride * taken as isize;
            taken *= n;
            if taken == extent {
                (at, taken) = (at - 1, 1);
            }
        }
        Some(out)
    }

    /// What a slice takes of the value of this shape.
    pub fn slice(&self, dims: &SliceDims, shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let first = self.first + dims.start.iter().zip(&strides).map(|(&s, &x)| s as isize * x).sum::<isize>();
        let strides: Strides = dims.stride.iter().zip(&strides).map(|(&s, &x)| s as isize * x).collect();
        Some(View::new(first, to, &strides))
    }

    /// The value of this shape with some axes turned round.
    pub fn rev(&self, axes: &[usize], shape: &[usize]) -> Option<View> {
        let (mut strides, mut first) = (self.strides(shape)?, self.first);
        for &a in axes {
            first += (shape[a] as isize - 1) * strides[a];
            strides[a] = -strides[a];
        }
        Some(View::new(first, shape, &strides))
    }

    /// The value with its axes at `dims` of a larger shape.
    pub fn broadcast(&self, dims: &[usize], shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let mut all: Strides = SmallVec::from_elem(0, to.len());
        for (k, &d) in dims.iter().enumerate().filter(|(k, _)| shape[*k] != 1) {
            all[d] = strides[k];
        }
        Some(View::new(self.first, to, &all))
    }

    /// The value with its axes in another order.
    pub fn transpose(&self, perm: &[usize], shape: &[usize], to: &[usize]) -> Option<View> {
        let strides = self.strides(shape)?;
        let strides: Strides = perm.iter().map(|&p| strides[p]).collect();
        Some(View::new(self.first, to, &strides))
    }

    /// Extent and distance of the innermost axis.
    pub fn innermost(&self) -> (usize, isize) {
        self.axes.last().copied().unwrap_or((1, 0))
    }

    /// Whether the elements have one distance all along.
    pub fn is_line(&self) -> bool {
        self.axes.len() < 2
    }

    /// Where rows of `inner` elements of `size` bytes begin in a slot; `inner` divides the innermost extent.
    pub fn rows(&self, slot: u32, inner: usize, size: usize) -> Rows {
        let bytes = |elements: isize| elements * size as isize;
        let mut axes: Axes = self.axes.iter().map(|&(n, stride)| (n, bytes(stride))).collect();
        if let Some((n, stride)) = axes.pop()
            && n != inner
        {
            axes.push((n / inner, stride * inner as isize));
        }
        Rows { slot, first: bytes(self.first), axes, step: self.innermost().1 }
    }

    /// The copy that puts the elements side by side.
    pub fn copy(&self, size: usize) -> Copy {
        let shape: Shape = self.axes.iter().map(|a| a.0).collect();
        let axes = self.axes.iter().zip(row_major(&shape));
        let axes = axes.map(|(&(n, src), dst)| Axis { n, src, dst: dst as isize }).collect();
        Copy::new((self.first, 0), axes, size)
    }
}

/// The rows of a view, distances in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub slot: u32,
    first: isize,
    axes: Axes,
    /// Elements from one element of a row to the next.
    step: isize,
}

impl Rows {
    /// How far a row is from the root's beginning.
    #[inline]
    pub fn offset(&self, row: usize) -> isize {
        let (mut at, mut left) = (self.first, row as u32);
        let Some((outer, rest)) = self.axes.split_first() else { return at };
        for &(n, stride) in rest.iter().rev() {
            at += (left % n as u32) as isize * stride;
            left /= n as u32;
        }
        at + left as isize * outer.1
    }

    /// Puts the rows `r0..r1` of `inner` elements side by side.
    ///
    /// # Safety
    /// The root must hold the view, and the result have room.
    pub unsafe fn gather(&self, size: u8, root: *const u8, dst: *mut u8, (r0, r1): (usize, usize), inner: usize) {
        let bytes = inner * size as usize;
        let (extent, stride) = self.axes.last().copied().unwrap_or((1, 0));
        let mut row = r0;
        while row < r1 {
            let count = (extent - row % extent).min(r1 - row);
            let rows = Axis { n: count, src: stride / isize::from(size), dst: inner as isize };
            let elements = Axis { n: inner, src: self.step, dst: 1 };
            // SAFETY: the caller's contract.
            unsafe {
                let (src, dst) = (root.offset(self.offset(row)), dst.add((row - r0) * bytes));
                movement::copy_rows(size, rows, elements, src, dst);
            }
            row += count;
        }
    }
}

/// Stretches of bytes at regular distances.
pub(crate) struct Span {
    first: isize,
    /// Extents and distances in bytes, outermost first.
    axes: Vec<(usize, isize)>,
    /// Bytes of a stretch.
    bytes: usize,
}

impl Span {
    /// Elements of `size` bytes along axes, those that lie in one piece as one stretch.
    fn new(first: isize, axes: impl IntoIterator<Item = (usize, isize)>, size: usize) -> Span {
        let mut axes: Vec<(usize, isize)> = axes.into_iter().filter(|a| a.0 != 1).collect();
        if axes.iter().any(|a| a.0 == 0) {
            return Span { first: 0, axes: Vec::new(), bytes: 0 };
        }
        let mut bytes = size;
        while let Some((n, _)) = axes.pop_if(|a| a.1 == bytes as isize) {
            bytes *= n;
        }
        Span { first, axes, bytes }
    }

    /// How many stretches there are.
    pub fn rows(&self) -> usize {
        self.axes.iter().map(|a| a.0).product()
    }

    /// The first byte and the end.
    pub fn hull(&self) -> (isize, isize) {
        let far = self.axes.iter().map(|&(n, stride)| (n as isize - 1) * stride);
        let (before, after) = far.fold((0, 0), |(low, high), d| (low + d.min(0), high + d.max(0)));
        (self.first + before, self.first + after + self.bytes as isize)
    }

    /// Each stretch.
    pub fn each(&self, see: &mut dyn FnMut(isize, isize) -> Result<()>) -> Result<()> {
        (0..self.rows()).try_for_each(|row| {
            let (mut at, mut left) = (self.first, row);
            for &(n, stride) in self.axes.iter().rev() {
                at += (left % n) as isize * stride;
                left /= n;
            }
            see(at, at + self.bytes as isize)
        })
    }
}

impl Rows {
    /// All rows of `inner` elements of `size` bytes; of one element where all are the same.
    pub fn span(&self, inner: usize, size: usize) -> Span {
        let row = (if size == 0 { 1 } else { inner }, self.step * size as isize);
        Span::new(self.first, self.axes.iter().copied().chain([row]), size.max(1))
    }
}

/// A copy of a view to other memory.
pub(crate) struct Copy {
    /// The first byte on both sides.
    first: (isize, isize),
    axes: SmallVec<[Axis; 6]>,
    size: usize,
}

impl Copy {
    /// The copy of elements of `size` bytes along merged axes, from and to these first elements.
    pub fn new(first: (isize, isize), axes: SmallVec<[Axis; 6]>, size: usize) -> Copy {
        let bytes = |elements| elements * size as isize;
        Copy { first: (bytes(first.0), bytes(first.1)), axes, size }
    }

    /// Copies.
    ///
    /// # Safety
    /// The root must hold the view, and the result have room.
    pub unsafe fn run(&self, root: *const u8, dst: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            let (src, dst) = (root.offset(self.first.0), dst.offset(self.first.1));
            movement::copy_merged(self.size, &self.axes, src, dst);
        }
    }

    /// What is read and what is written.
    pub fn spans(&self) -> [Span; 2] {
        let size = self.size as isize;
        let along = |first, step: fn(&Axis) -> isize| {
            Span::new(first, self.axes.iter().map(|a| (a.n, step(a) * size)), self.size)
        };
        [along(self.first.0, |a| a.src), along(self.first.1, |a| a.dst)]
    }

    /// The first byte on both sides and how many there are, if all elements lie in one piece.
    pub fn block(&self) -> Option<(usize, usize, usize)> {
        let n = match self.axes[..] {
            [] => 1,
            [Axis { n, src: 1, dst: 1 }] => n,
            _ => return None,
        };
        Some((self.first.0 as usize, self.first.1 as usize, n * self.size))
    }
}
