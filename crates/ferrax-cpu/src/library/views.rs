//! How views are read: row by row (`Rows`), or put side by side (`Copy`).
//!
//! What a view is, `ferrax_loops::passes::view` says.

use crate::elementwise::kernel::by_size;
use crate::library::movement::{self, Axis, copy_axes, merge};
use ferrax_base::{Result, Shape, shape::strides as row_major};
use ferrax_loops::passes::view::{Axes, View};
use smallvec::SmallVec;

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
    /// Where rows of `inner` elements of `size` bytes of a view begin in a slot; `inner` divides the innermost extent.
    pub fn of(view: &View, slot: u32, inner: usize, size: usize) -> Rows {
        let bytes = |elements: isize| elements * size as isize;
        let mut axes: Axes = view.axes.iter().map(|&(n, stride)| (n, bytes(stride))).collect();
        if let Some((n, stride)) = axes.pop()
            && n != inner
        {
            axes.push((n / inner, stride * inner as isize));
        }
        Rows { slot, first: bytes(view.first), axes, step: view.innermost().1 }
    }

    /// How many rows, from each multiple of that on, are as far from each other, 0 for all of them; and how far.
    pub fn regular(&self) -> (usize, isize) {
        match self.axes[..] {
            [] => (0, 0),
            [(_, stride)] => (0, stride),
            [.., last] => last,
        }
    }

    /// After how many rows the view begins again, if it does.
    pub fn period(&self) -> Option<usize> {
        let (first, rest) = self.axes.split_first()?;
        (first.1 == 0).then(|| rest.iter().map(|a| a.0).product())
    }

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

    /// Puts the rows `r0..r1` of `inner` elements side by side, or, with `back`, rows that lie so where those are: as many at once
    /// as lie at regular distances along two axes.
    ///
    /// # Safety
    /// The root must hold the view, and `side` be as many rows that lie side by side.
    pub unsafe fn copy(
        &self,
        back: bool,
        size: u8,
        (root, side): (*mut u8, *mut u8),
        (r0, r1): (usize, usize),
        inner: usize,
    ) {
        let elements = |bytes: isize| bytes / isize::from(size);
        let (near, stride) = self.axes.last().copied().unwrap_or((1, 0));
        let (far, step) = self.axes.len().checked_sub(2).map_or((1, 0), |k| self.axes[k]);
        let mut row = r0;
        while row < r1 {
            let (at, left) = (row % near, r1 - row);
            let whole = if at == 0 { (left / near).min(far - row / near % far) } else { 0 };
            let (groups, rows) = if whole > 0 { (whole, near) } else { (1, (near - at).min(left)) };
            let there = [elements(step), elements(stride), self.step];
            let here = [(rows * inner) as isize, inner as isize, 1];
            let (from, to) = if back { (&here, &there) } else { (&there, &here) };
            let axes = merge(&[groups, rows, inner], from, to);
            // SAFETY: the caller's contract.
            unsafe {
                let (root, side) = (root.offset(self.offset(row)), side.add((row - r0) * inner * size as usize));
                let (src, dst) = if back { (side, root) } else { (root, side) };
                by_size!(size, T => copy_axes::<T>(&axes, src.cast(), dst.cast()));
            }
            row += groups * rows;
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

    /// The copy that puts the elements of a view side by side.
    pub fn of(view: &View, size: usize) -> Copy {
        let shape: Shape = view.axes.iter().map(|a| a.0).collect();
        let axes = view.axes.iter().zip(row_major(&shape));
        let axes = axes.map(|(&(n, src), dst)| Axis { n, src, dst: dst as isize }).collect();
        Copy::new((view.first, 0), axes, size)
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
