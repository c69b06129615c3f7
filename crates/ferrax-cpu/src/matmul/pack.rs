//! Operands of a product in the order in which tiles read them.

use super::tile::DEPTH;
use crate::movement::{Axis, copy_axes};
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

/// Elements of `n` columns in panels of `width`.
pub fn padded(n: usize, width: usize) -> usize {
    n.next_multiple_of(width)
}

/// Offset of a block of columns in a packed right operand: blocks of `DEPTH` rows, each with all its panels.
pub fn panel(depth: usize, rows: usize, column: usize, padded: usize) -> usize {
    debug_assert_eq!(depth % DEPTH, 0);
    depth * padded + column * rows
}
