//! Products of real matrices, any strides, in parts that fit the caches.
//!
//! The result is computed in blocks of rows and columns, each by one thread, over all of k. The right operand is packed
//! into panels as wide as a tile where it is read often, the left one into panels as high as a tile; small operands
//! whose rows or columns are contiguous are read where they are. What is summed in which order is said in `tile.rs`:
//! it depends on k alone. Products with a vector are in `vector.rs`. Source: K. Goto and R. van de Geijn, "Anatomy of
//! high-performance matrix multiplication". Read next: `tile.rs`.

#[cfg(test)]
mod geometry;
mod pack;
#[cfg(test)]
mod tests;
mod tile;
mod vector;

use crate::library::movement::{Axis, copy_axes};
use crate::pool;
use crate::simd::lanes::{Lanes, Real};
use crate::simd::{dispatch, with_lanes};
use ferrax_base::{Buffer, Result, checks};
pub use pack::Matrix;
use pack::{Panels, fill, pack};
use smallvec::SmallVec;
use tile::{A, DEPTH, Part};

/// c = a · b, c row-major.
#[derive(Clone, Copy)]
pub struct Product<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: Matrix<T>,
    pub b: Matrix<T>,
    pub c: *mut T,
}
// SAFETY: threads read the operands and write disjoint parts of the result.
unsafe impl<T> Sync for Product<T> {}

/// Rows and columns of a block of the result at most.
const ROWS: usize = 224;
const COLUMNS: usize = 512;
/// Operands up to this many bytes are read where they are.
const NEAR: usize = 64 << 10;
/// A left operand of more bytes is packed by every block for itself.
const LARGE_LEFT: usize = 16 << 20;
/// Products of this many multiply-adds at most are one part where the right operand's rows are contiguous.
const SMALL: usize = 1 << 15;
/// Elements of a result's rows that are computed together where something is done with them next, of a row at most, and
/// of a result that is worth it.
const ROWS_AFTER: usize = 64 << 10;
const ROW_AFTER: usize = 8 << 10;
const LARGE_RESULT: usize = 256 << 10;
const CHECKED_RESULT: usize = 1 << 10;
/// The first rows and columns of blocks.
type Blocks = SmallVec<[(usize, usize); 32]>;

/// Multiply-adds of a nanosecond, about.
const SPEED: usize = 50;

/// What depends on the instruction set.
pub trait Kernels: Real {
    /// Width of a panel of the right operand.
    fn width() -> usize;
    /// Rows of the next panel of the left operand.
    fn height(rows: usize) -> usize;
    /// # Safety
    /// The part's addresses must be valid.
    unsafe fn part(p: &Part<Self>);
    /// # Safety
    /// The product's addresses must be valid.
    unsafe fn vector(p: &vector::Times<Self>);
}

macro_rules! kernels {
    ($T:ty, $wide:ident, $half:ident) => {
        impl Kernels for $T {
            fn width() -> usize {
                with_lanes!($T, $wide, $half, L => L::N * L::VECTORS)
            }

            fn height(rows: usize) -> usize {
                with_lanes!($T, $wide, $half, L => tile::height::<L>(rows))
            }

            unsafe fn part(p: &Part<$T>) {
                dispatch!($T, $wide, $half, tile::part, p: &Part<$T>, p.suits_half());
            }

            unsafe fn vector(p: &vector::Times<$T>) {
                dispatch!($T, $wide, $half, vector::times, p: &vector::Times<$T>, false);
            }
        }
    };
}
kernels!(f32, __m512, __m256);
kernels!(f64, __m512d, __m256d);

impl<T: Kernels> Product<T> {
    /// Computes the product, on several threads where `shared` and worth it.
    ///
    /// # Safety
    /// The addresses that sizes and strides reach must be valid; c must have m·n elements and overlap nothing.
    pub unsafe fn run(&self, shared: bool) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            if self.m == 1 || self.n == 1 {
                return vector::run(self, shared);
            }
            if self.b.column == 1 && self.k <= DEPTH && self.m * self.n * self.k <= SMALL {
                T::part(&self.part((0, 0, 0), (self.m, self.n, self.k)));
                return Ok(());
            }
            self.blocks(shared)
        }
    }

    /// The sums that products join in turn before these are added up in halves; nothing where that is not all.
    pub fn running_sums(&self) -> Option<usize> {
        if self.m == 1 || self.n == 1 { vector::running_sums(self) } else { (self.k <= DEPTH).then_some(1) }
    }

    /// Whether whole rows of the result are few enough for the caches, and the products of an element too few to hide
    /// another pass over the result.
    pub fn suits_rows(&self) -> bool {
        let (m, n, k) = (self.m, self.n, self.k);
        // Where the engine checks itself, small programs go this way, too.
        let (least, parts) = if checks::on() { (CHECKED_RESULT, 2) } else { (LARGE_RESULT, 8) };
        k <= DEPTH && n > T::width() && n <= ROW_AFTER && m * n >= least && m >= parts * T::height(usize::MAX)
    }

    /// As `run`, by rows: `after(worker, first, end)` is called where rows are done, as long as they are in the caches.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn run_rows(&self, after: &(dyn Fn(usize, usize, usize) + Sync)) -> Result<()> {
        let (m, n, tall) = (self.m, self.n, T::height(usize::MAX));
        let b = self.right()?;
        // SAFETY: the panels are those of the operand.
        unsafe { fill([None, b.as_ref()], true) };
        let rows = (ROWS_AFTER / n).clamp(2 * tall, ROWS) / tall * tall;
        pool::try_share((m * n * self.k / SPEED + m * n / 4) as u64, m.div_ceil(rows), &|worker, task| {
            let (first, end) = (task * rows, (task * rows + rows).min(m));
            for j in (0..n).step_by(COLUMNS) {
                // SAFETY: the block lies inside the result and is this task's.
                unsafe { self.block((None, b.as_ref()), (first, j), (end - first, COLUMNS.min(n - j)))? };
            }
            after(worker, first, end);
            Ok(())
        })
    }

    /// The left operand from a row and a column on, as it is.
    fn left(&self, i: usize, depth: usize) -> A<T> {
        let x = self.a.from(i, depth);
        A { ptr: x.ptr, row: x.row, step: x.column, panels: None }
    }

    /// A part whose operands are as they are.
    fn part(&self, (i, j, depth): (usize, usize, usize), (m, n, k): (usize, usize, usize)) -> Part<T> {
        let (a, b, c) = (self.left(i, depth), self.b.from(depth, j), self.c.wrapping_add(i * self.n + j));
        Part { m, n, k, a, b: b.ptr, b_step: b.row, b_panel: T::width(), c, c_row: self.n, more: depth > 0 }
    }

    /// The right operand's panels, if it has to be packed.
    fn right(&self) -> Result<Option<Panels<T>>> {
        let (n, k, width) = (self.n, self.k, T::width());
        let near = n * k * size_of::<T>() <= NEAR || self.m <= 2 * T::height(usize::MAX);
        if self.b.column == 1 && (near || n <= width) {
            return Ok(None);
        }
        let heights: (fn(usize) -> usize, _) = (|left| left.min(T::width()), Some(width));
        Panels::new(self.b.transposed(), (n, k), heights).map(Some)
    }

    /// The left operand's panels, if blocks would pack the same rows again and again.
    fn whole_left(&self, rows: usize, columns: usize) -> Result<Option<Panels<T>>> {
        let (m, k) = (self.m, self.k);
        if columns == self.n || !self.packs_rows(rows.min(m)) || m * k * size_of::<T>() > LARGE_LEFT {
            return Ok(None);
        }
        Panels::new(self.a, (m, k), (T::height, None)).map(Some)
    }

    /// Whether this many rows of the left operand are better read from panels.
    fn packs_rows(&self, rows: usize) -> bool {
        let pages = (self.a.row.max(self.a.column) * size_of::<T>() as isize) % 4096 == 0;
        self.n > T::width() && (pages || rows * self.k * size_of::<T>() > NEAR)
    }

    unsafe fn blocks(&self, shared: bool) -> Result<()> {
        let (m, n, k) = (self.m, self.n, self.k);
        let symmetric = self.is_symmetric();
        let work = (m * n * k / SPEED) as u64 >> u32::from(symmetric);
        let (rows, columns) = self.cut(symmetric, shared && pool::worth(work));
        let (a, b) = (self.whole_left(rows, columns)?, self.right()?);
        // SAFETY: the panels are those of the operands.
        unsafe { fill([a.as_ref(), b.as_ref()], shared) };
        let all = (0..m).step_by(rows).flat_map(|i| (0..n).step_by(columns).map(move |j| (i, j)));
        let (mirrored, computed): (Blocks, Blocks) = all.partition(|&(i, j)| symmetric && j + columns <= i);
        let compute = |_, task: usize| {
            let (i, j) = computed[task];
            let (rows, columns) = (rows.min(m - i), columns.min(n - j));
            // SAFETY: the block lies inside the result and is this task's.
            unsafe { self.block((a.as_ref(), b.as_ref()), (i, j), (rows, columns)) }
        };
        if shared {
            pool::try_share(work, computed.len(), &compute)?;
        } else {
            (0..computed.len()).try_for_each(|task| compute(0, task))?;
        }
        share(shared, (m * n) as u64 / 4, mirrored.len(), &|_, task| {
            let (i, j) = mirrored[task];
            let along = Axis { n: columns, src: n as isize, dst: 1 };
            let across = Axis { n: rows.min(m - i), src: 1, dst: n as isize };
            // SAFETY: the blocks lie inside the result, and the other side of the diagonal is computed.
            unsafe { copy_axes(&[across, along], self.c.add(j * n + i), self.c.add(i * n + j)) };
        });
        Ok(())
    }

    /// Whether this is the product of a matrix and its own transposition: what is below the diagonal is also above.
    fn is_symmetric(&self) -> bool {
        let (a, b) = (&self.a, &self.b);
        self.m == self.n && a.ptr == b.ptr && (a.row, a.column) == (b.column, b.row)
    }

    /// Rows and columns of blocks: where threads share the work some for each, so that none waits long for the last one.
    /// Those of symmetric results are small, so that few of them cross the diagonal.
    fn cut(&self, symmetric: bool, shared: bool) -> (usize, usize) {
        let (m, n) = (self.m, self.n);
        let finer = 1 << u32::from(symmetric);
        let tall = T::height(usize::MAX);
        // Blocks of one height, about, all but the last one of whole tiles.
        let rows = ROWS / finer / tall * tall;
        let rows = m.div_ceil(m.div_ceil(rows)).next_multiple_of(tall);
        let (mut rows, mut columns) = (rows.min(m), (COLUMNS / finer).min(n));
        let wanted = if shared { 4 * pool::threads() } else { 1 };
        // A panel of the right operand stays in the first-level cache for all rows of a block: columns are cut first.
        while m.div_ceil(rows) * n.div_ceil(columns) < wanted && columns > 2 * T::width() {
            columns = columns.div_ceil(2).next_multiple_of(T::width());
        }
        while m.div_ceil(rows) * n.div_ceil(columns) < wanted && rows > 4 * tall {
            rows = rows.div_ceil(2).next_multiple_of(tall);
        }
        (rows, columns)
    }

    /// A block of the result.
    unsafe fn block(
        &self,
        (left, right): (Option<&Panels<T>>, Option<&Panels<T>>),
        (i, j): (usize, usize),
        (m, n): (usize, usize),
    ) -> Result<()> {
        let mut held = if left.is_none() && self.packs_rows(m) {
            Some(Buffer::allocate(m * self.k.min(DEPTH) * size_of::<T>())?)
        } else {
            None
        };
        let panels = Some(T::height(usize::MAX));
        for depth in (0..self.k).step_by(DEPTH) {
            let k = DEPTH.min(self.k - depth);
            let mut a = self.left(i, depth);
            if let Some(left) = left {
                a = A { ptr: left.at(depth, k, i), row: 1, step: 0, panels };
            } else if let Some(held) = &mut held {
                let x = self.a.from(i, depth);
                let dst = held.as_mut_ptr().cast();
                // SAFETY: the block's rows lie inside the operand, and the buffer holds them.
                unsafe { pack(x, (m, k), T::height, None, dst) };
                a = A { ptr: dst, row: 1, step: 0, panels };
            }
            let mut part = Part { a, ..self.part((i, j, depth), (m, n, k)) };
            if let Some(right) = right {
                let width = T::width();
                part = Part { b: right.at(depth, k, j), b_step: width as isize, b_panel: width * k, ..part };
            }
            // SAFETY: the part lies inside the operands and the result.
            unsafe { T::part(&part) };
        }
        Ok(())
    }
}

fn share(shared: bool, work: u64, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
    if shared { pool::share(work, tasks, task) } else { (0..tasks).for_each(|i| task(0, i)) }
}
