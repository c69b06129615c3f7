//! The innermost part of a product: a tile of the result whose sums stay in registers.
//!
//! Every element of a tile is the sum of its products in the order of k, by multiply-add, whatever the tile's shape and
//! the vectors' width. Blocks of `DEPTH` products are added one after the other. So results do not depend on how a
//! product is cut up, nor on the instruction set.

use crate::simd::lanes::{Lanes, Real};

/// Products of one element that are summed before they join the sum of the blocks before.
pub const DEPTH: usize = 256;

/// Part of a product, at most `DEPTH` deep: c (+)= a · b.
#[derive(Clone, Copy)]
pub struct Part<T> {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub a: A<T>,
    pub b: *const T,
    /// From one row of b to the next, and from one panel to the next. Rows of a panel are contiguous.
    pub b_step: isize,
    pub b_panel: usize,
    pub c: *mut T,
    pub c_row: usize,
    /// Whether c holds a sum already.
    pub more: bool,
}

/// The left operand of a part.
#[derive(Clone, Copy)]
pub struct A<T> {
    pub ptr: *const T,
    pub row: isize,
    pub step: isize,
    /// The rows of the tallest panel where panels follow one another, of the heights that `height` gives, each row by row
    /// of k; the strides do not count then. Vectors whose tiles have another height cannot read them.
    pub panels: Option<usize>,
}

/// Rows of the next panel where `rows` are left: the largest tile's, or a power of two.
pub fn height<L: Lanes>(rows: usize) -> usize {
    match rows {
        r if r >= L::ROWS => L::ROWS,
        8.. if L::ROWS > 8 => 8,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

impl<T> Part<T> {
    /// Whether half a vector holds a row of the result and half-wide tiles can read the operands.
    pub fn suits_half(&self) -> bool {
        self.n * size_of::<T>() <= 32 && self.a.panels.is_none()
    }
}

/// Computes a part.
///
/// # Safety
/// The machine must have the instruction set of `L`, and the part's addresses be valid.
#[inline(always)]
pub unsafe fn part<L: Lanes>(p: &Part<L::T>) {
    let width = L::N * L::VECTORS;
    assert!(p.a.panels.is_none_or(|tallest| tallest == L::ROWS), "panels of another height than the tiles'");
    let mut b = p.b;
    for j in (0..p.n).step_by(width) {
        let columns = width.min(p.n - j);
        let mut i = 0;
        while i < p.m {
            let rows = height::<L>(p.m - i);
            // SAFETY: the tile lies inside the part.
            unsafe {
                let (a, row, step) = if p.a.panels.is_some() {
                    (p.a.ptr.add(i * p.k), 1, rows as isize)
                } else {
                    (p.a.ptr.offset(i as isize * p.a.row), p.a.row, p.a.step)
                };
                let tile = Tile {
                    k: p.k,
                    a,
                    row,
                    step,
                    b,
                    b_step: p.b_step,
                    c: p.c.add(i * p.c_row + j),
                    c_row: p.c_row,
                    more: p.more,
                };
                tile.of_height::<L>(rows, columns);
            }
            i += rows;
        }
        b = b.wrapping_add(p.b_panel);
    }
}

struct Tile<T> {
    k: usize,
    a: *const T,
    row: isize,
    step: isize,
    b: *const T,
    b_step: isize,
    c: *mut T,
    c_row: usize,
    more: bool,
}

impl<T: Real> Tile<T> {
    #[inline(always)]
    unsafe fn of_height<L: Lanes<T = T>>(&self, rows: usize, columns: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            match rows {
                14 if L::ROWS == 14 => self.of_width::<L, 14>(columns),
                12 if L::ROWS == 12 => self.of_width::<L, 12>(columns),
                8 if L::ROWS > 8 => self.of_width::<L, 8>(columns),
                6 if L::ROWS == 6 => self.of_width::<L, 6>(columns),
                4 => self.of_width::<L, 4>(columns),
                2 => self.of_width::<L, 2>(columns),
                _ => self.of_width::<L, 1>(columns),
            }
        }
    }

    #[inline(always)]
    unsafe fn of_width<L: Lanes<T = T>, const M: usize>(&self, columns: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            if columns == 2 * L::N {
                self.run::<L, M, 2, true>(L::N);
            } else if columns > L::N {
                self.run::<L, M, 2, false>(columns - L::N);
            } else if columns == L::N {
                self.run::<L, M, 1, true>(L::N);
            } else {
                self.run::<L, M, 1, false>(columns);
            }
        }
    }

    /// M rows of V vectors, `last` elements in the last one.
    #[inline(always)]
    unsafe fn run<L: Lanes<T = T>, const M: usize, const V: usize, const FULL: bool>(&self, last: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            let mut acc = [[L::splat(T::ZERO); V]; M];
            let (mut a, mut b) = (self.a, self.b);
            for _ in 0..self.k {
                let mut y = [acc[0][0]; V];
                for v in 0..V {
                    let at = b.add(v * L::N);
                    y[v] = if FULL || v + 1 < V { L::load(at) } else { L::load_first(at, last) };
                }
                for i in 0..M {
                    let x = L::splat(*a.offset(i as isize * self.row));
                    for v in 0..V {
                        acc[i][v] = L::fma(x, y[v], acc[i][v]);
                    }
                }
                a = a.wrapping_offset(self.step);
                b = b.wrapping_offset(self.b_step);
            }
            for i in 0..M {
                for v in 0..V {
                    let at = self.c.add(i * self.c_row + v * L::N);
                    let whole = FULL || v + 1 < V;
                    let mut sum = acc[i][v];
                    if self.more {
                        sum = if whole { L::load(at) } else { L::load_first(at, last) }.plus(sum);
                    }
                    if whole { sum.store(at) } else { sum.store_first(at, last) }
                }
            }
        }
    }
}
