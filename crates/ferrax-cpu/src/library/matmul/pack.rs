//! Operands of a product in the order in which tiles read them.

use super::share;
use super::tile::DEPTH;
use crate::library::movement::{Axis, copy_axes};
use ferrax_base::{Buffer, Result};
use smallvec::SmallVec;

/// A matrix by its strides, in elements.
#[derive(Clone, Copy)]
pub struct Matrix<T> {
    pub ptr: *const T,
    pub row: isize,
    pub column: isize,
}

impl<T> Matrix<T> {
    /// The matrix from (row, column) on.
    pub fn from(self, row: usize, column: usize) -> Self {
        let offset = row as isize * self.row + column as isize * self.column;
        Matrix { ptr: self.ptr.wrapping_offset(offset), ..self }
    }

    pub fn transposed(self) -> Self {
        Matrix { ptr: self.ptr, row: self.column, column: self.row }
    }
}

/// Copies `m` rows of `k` elements into panels: the rows of a panel, `height` of them, lie side by side, so that one step
/// along k reads neighbours. Panels follow one another; a panel of fewer rows takes `pitch` per step if that is given.
///
/// # Safety
/// The matrix must have m rows of k elements, and `dst` room for the panels.
pub unsafe fn pack<T: Copy>(
    x: Matrix<T>,
    (m, k): (usize, usize),
    height: impl Fn(usize) -> usize,
    pitch: Option<usize>,
    dst: *mut T,
) {
    let (mut i, mut at) = (0, 0);
    while i < m {
        let rows = height(m - i);
        let step = pitch.unwrap_or(rows);
        let along = Axis { n: k, src: x.column, dst: step as isize };
        let across = Axis { n: rows, src: x.row, dst: 1 };
        let axes: SmallVec<[Axis; 2]> = [along, across].into_iter().filter(|a| a.n != 1).collect();
        // SAFETY: the caller's contract: rows i.. of the matrix, and a panel of k steps.
        unsafe { copy_axes(&axes, x.from(i, 0).ptr, dst.add(at)) };
        (i, at) = (i + rows, at + k * step);
    }
}

/// The height of the next panel where as many rows are left, and what a step takes where that is not the height.
type Heights = (fn(usize) -> usize, Option<usize>);

/// A whole operand in panels, in blocks of `DEPTH` steps along k: n rows of k elements.
pub struct Panels<T> {
    x: Matrix<T>,
    n: usize,
    k: usize,
    heights: Heights,
    /// Rows with the last panel's room.
    padded: usize,
    /// Rows of a task, which are neighbours in memory.
    each: usize,
    dst: *mut T,
    _held: Buffer,
}
// SAFETY: threads read the operand and write panels of their own.
unsafe impl<T> Sync for Panels<T> {}

impl<T: Copy> Panels<T> {
    /// Room for the panels.
    pub fn new(x: Matrix<T>, (n, k): (usize, usize), heights: Heights) -> Result<Panels<T>> {
        let (tall, padded) = (heights.0(usize::MAX), heights.1.map_or(n, |pitch| n.next_multiple_of(pitch)));
        let mut held = Buffer::allocate(padded * k * size_of::<T>())?;
        let dst = held.as_mut_ptr().cast();
        Ok(Panels { x, n, k, heights, padded, each: (4 * tall).max(n / 16 / tall * tall), dst, _held: held })
    }

    /// The address of the panel that starts with a row, in the block of `steps` steps from `depth` on.
    pub fn at(&self, depth: usize, steps: usize, row: usize) -> *mut T {
        debug_assert_eq!(depth % DEPTH, 0);
        self.dst.wrapping_add(depth * self.padded + row * steps)
    }

    pub fn tasks(&self) -> usize {
        self.n.div_ceil(self.each) * self.k.div_ceil(DEPTH)
    }

    /// # Safety
    /// The operand's addresses must be valid.
    pub unsafe fn fill(&self, task: usize) {
        let groups = self.n.div_ceil(self.each);
        let (depth, row) = (task / groups * DEPTH, task % groups * self.each);
        let (rows, steps) = (self.each.min(self.n - row), DEPTH.min(self.k - depth));
        let ((height, pitch), dst) = (self.heights, self.at(depth, steps, row));
        // SAFETY: the block lies inside the operand, and its panels are this task's.
        unsafe { pack(self.x.from(row, depth), (rows, steps), height, pitch, dst) };
    }
}

#[cfg(test)]
impl<T: Copy> Panels<T> {
    /// Sets all of the panels' memory.
    pub fn clear(&self, to: T) {
        // SAFETY: the memory is the panels', which nobody reads now.
        unsafe { std::slice::from_raw_parts_mut(self.dst, self.padded * self.k) }.fill(to);
    }

    /// All of the panels' memory.
    pub fn values(&self) -> &[T] {
        // SAFETY: the memory is the panels', which was cleared before.
        unsafe { std::slice::from_raw_parts(self.dst, self.padded * self.k) }
    }
}

/// Fills the panels of both operands, where they have any.
///
/// # Safety
/// The operands' addresses must be valid.
pub unsafe fn fill<T: Copy>([a, b]: [Option<&Panels<T>>; 2], shared: bool) {
    let tasks = |x: Option<&Panels<T>>| x.map_or(0, Panels::tasks);
    let bytes = |x: Option<&Panels<T>>| x.map_or(0, |x| x.n * x.k * size_of::<T>());
    let first = tasks(a);
    share(shared, ((bytes(a) + bytes(b)) / 8) as u64, first + tasks(b), &|_, task| {
        let (x, task) = if task < first { (a, task) } else { (b, task - first) };
        // SAFETY: the caller's contract.
        x.iter().for_each(|x| unsafe { x.fill(task) });
    });
}
