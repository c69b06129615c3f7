//! A matrix times a vector.
//!
//! Where rows of the matrix are contiguous each result is a dot product: `2·WIDEST` running sums of a run, added up in
//! halves, then the sums of the runs one after the other. Where columns are, each result is summed along k by
//! multiply-add in blocks of `DEPTH`, several rows of memory at a time. Both orders depend on k alone.

use super::pack::{Matrix, pack};
use super::tile::DEPTH;
use super::{Kernels, Product, share};
use crate::pool::Disjoint;
use crate::simd::lanes::{Lanes, Real};
use ferrax_base::{Buffer, Result};

/// Results of one thread: y = w · x, or the sums of the runs of one row.
pub struct Times<T> {
    pub rows: usize,
    pub k: usize,
    pub w: Matrix<T>,
    pub x: *const T,
    pub y: *mut T,
}

/// Products of a dot product that its running sums take before they are added up.
const RUN: usize = 2048;
/// Products of a dot product whose runs threads share.
const LONG: usize = 32 * RUN;
/// Bytes of the vectors that the order of sums is made for.
const WIDEST: usize = 64;
/// Results that are summed along columns together: what the first-level cache holds with the rows of memory.
const CHUNK: usize = 1024;
/// Bytes of a matrix that a thread reads in a nanosecond, about.
const BYTES_A_NANOSECOND: usize = 40;

/// Computes the product, where one side is a vector.
///
/// # Safety
/// As for `Product::run`.
pub unsafe fn run<T: Kernels>(p: &Product<T>, shared: bool) -> Result<()> {
    let (all, x_step) = whole(p);
    if !shared && x_step == 1 && (all.w.column == 1 || all.w.row == 1) && p.k < LONG {
        // SAFETY: the caller's contract.
        unsafe { T::vector(&all) };
        return Ok(());
    }
    let Times { rows: count, k, mut w, x, .. } = all;
    let vector = Matrix { ptr: x, row: k as isize, column: x_step };
    let held = if x_step == 1 || k == 1 { None } else { Some(contiguous(vector, 1, k)?) };
    let x = held.as_ref().map_or(x, |b| b.as_ptr().cast());
    let mut rows = None;
    if w.column != 1 && w.row != 1 {
        let packed = rows.insert(contiguous(w, count, k)?);
        w = Matrix { ptr: packed.as_ptr().cast(), row: k as isize, column: 1 };
    }
    let work = (count * k * size_of::<T>() / BYTES_A_NANOSECOND) as u64;
    let along_k = along_k(&w, count);
    if along_k && count == 1 && k >= LONG {
        // SAFETY: the caller's contract.
        return unsafe { long_dot(&Times { rows: 1, k, w, x, y: p.c }, work, shared) };
    }
    let each = if !shared {
        count
    } else if along_k {
        count.div_ceil(32).next_multiple_of(8)
    } else {
        CHUNK.min(count.div_ceil(8)).next_multiple_of(64)
    };
    let (y, w) = (Disjoint(p.c), Shared(w, x));
    share(shared, work, count.div_ceil(each), &|_, task| {
        let (y, w, first) = (&y, &w, task * each);
        let rows = each.min(count - first);
        // SAFETY: rows of the matrix, and results that are this task's.
        unsafe { T::vector(&Times { rows, k, w: w.0.from(first, 0), x: w.1, y: y.0.add(first) }) };
    });
    Ok(())
}

/// As `Product::running_sums`, where one side is a vector.
pub fn running_sums<T: Kernels>(p: &Product<T>) -> Option<usize> {
    let Times { rows, k, mut w, .. } = whole(p).0;
    if w.column != 1 && w.row != 1 {
        // Rows that are not contiguous are made so.
        (w.row, w.column) = (k as isize, 1);
    }
    if along_k(&w, rows) { (k <= RUN).then_some(2 * WIDEST / size_of::<T>()) } else { (k <= DEPTH).then_some(1) }
}

/// Whether results are dot products with contiguous rows, not sums along columns.
#[inline(always)]
fn along_k<T>(w: &Matrix<T>, rows: usize) -> bool {
    w.column == 1 && (w.row != 1 || rows == 1)
}

/// The product as the work of one thread, and the distance between the elements of x.
#[inline(always)]
fn whole<T: Copy>(p: &Product<T>) -> (Times<T>, isize) {
    let (rows, w, x, step) =
        if p.n == 1 { (p.m, p.a, p.b.ptr, p.b.row) } else { (p.n, p.b.transposed(), p.a.ptr, p.a.column) };
    (Times { rows, k: p.k, w, x, y: p.c }, step)
}

/// Operands that threads read.
struct Shared<T>(Matrix<T>, *const T);
// SAFETY: see the type.
unsafe impl<T> Sync for Shared<T> {}

/// The matrix with rows of k contiguous elements.
fn contiguous<T: Kernels>(x: Matrix<T>, rows: usize, k: usize) -> Result<Buffer> {
    let mut held = Buffer::allocate(rows * k * size_of::<T>())?;
    // Panels of k neighbours, one step along the rows each: that is rows of k.
    // SAFETY: callers pass a matrix of this many rows and columns.
    unsafe { pack(x.transposed(), (k, rows), |left| left, None, held.as_mut_ptr().cast()) };
    Ok(held)
}

/// One long dot product, whose runs threads share.
unsafe fn long_dot<T: Kernels>(p: &Times<T>, work: u64, shared: bool) -> Result<()> {
    let (all, runs) = (p.k, p.k.div_ceil(RUN));
    let mut held = Buffer::allocate(runs * size_of::<T>())?;
    let (sums, w, each) = (Disjoint(held.as_mut_ptr().cast::<T>()), Shared(p.w, p.x), 16);
    share(shared, work, runs.div_ceil(each), &|_, task| {
        let (sums, w) = (&sums, &w);
        for run in task * each..((task + 1) * each).min(runs) {
            let (k, x) = (RUN.min(all - run * RUN), w.1.wrapping_add(run * RUN));
            // SAFETY: a run of the row, and a sum that is this task's.
            unsafe { T::vector(&Times { rows: 1, k, w: w.0.from(0, run * RUN), x, y: sums.0.add(run) }) };
        }
    });
    let total = held.typed::<T>()[1..runs].iter().fold(held.typed::<T>()[0], |sum, &run| sum + run);
    // SAFETY: the result has one element.
    unsafe { *p.y = total };
    Ok(())
}

/// Computes the results of one thread.
///
/// # Safety
/// The machine must have the instruction set of `L`, and the addresses be valid.
#[inline(always)]
pub unsafe fn times<L: Lanes>(p: &Times<L::T>) {
    // SAFETY: the caller's contract.
    unsafe {
        if along_k(&p.w, p.rows) {
            let mut i = 0;
            while i < p.rows {
                i += match p.rows - i {
                    8.. if L::N == 16 => dots::<L, 8, 2, 8>(p, i),
                    4.. if L::N * size_of::<L::T>() == WIDEST => dots::<L, 4, 2, 4>(p, i),
                    _ if L::N * size_of::<L::T>() == WIDEST => dots::<L, 1, 2, 1>(p, i),
                    8.. if L::N == 8 => dots::<L, 2, 4, 8>(p, i),
                    4.. if L::N * size_of::<L::T>() == WIDEST / 2 => dots::<L, 2, 4, 4>(p, i),
                    _ if L::N * size_of::<L::T>() == WIDEST / 2 => dots::<L, 1, 4, 1>(p, i),
                    // Registers of 16 bytes.
                    2.. => dots::<L, 2, 8, 2>(p, i),
                    _ => dots::<L, 1, 8, 1>(p, i),
                };
            }
        } else {
            columns::<L>(p);
        }
    }
}

/// ALL rows from i on, R at once, each with V vectors of running sums; gives ALL.
#[inline(always)]
unsafe fn dots<L: Lanes, const R: usize, const V: usize, const ALL: usize>(p: &Times<L::T>, i: usize) -> usize {
    // SAFETY: the caller's contract: rows i..i + ALL hold k elements, as x does.
    unsafe {
        for start in (0..p.k).step_by(RUN) {
            let mut totals = [L::splat(<L::T as Real>::ZERO); ALL];
            for r in (0..ALL).step_by(R) {
                totals[r..r + R].copy_from_slice(&run_of_rows::<L, R, V>(p, i + r, start));
            }
            for (r, sum) in L::sums(totals).into_iter().enumerate() {
                let y = p.y.add(i + r);
                *y = if start == 0 { sum } else { *y + sum };
            }
        }
    }
    ALL
}

/// A vector of sums for a run of each of R rows from i on.
#[inline(always)]
unsafe fn run_of_rows<L: Lanes, const R: usize, const V: usize>(p: &Times<L::T>, i: usize, start: usize) -> [L; R] {
    // Addresses are made where they are used: those of all rows at once would not fit the registers.
    let (first, step) = (p.w.from(i, 0).ptr, p.w.row);
    let row = |r: usize, at: usize| first.wrapping_add(at).wrapping_offset(r as isize * step);
    let (mut at, end) = (start, (start + RUN).min(p.k));
    // SAFETY: the caller's contract: rows i..i + R hold k elements, as x does.
    unsafe {
        let mut acc = [[L::splat(<L::T as Real>::ZERO); V]; R];
        while at + V * L::N <= end {
            for v in 0..V {
                let x = L::load(p.x.add(at + v * L::N));
                for r in 0..R {
                    acc[r][v] = L::fma(L::load(row(r, at + v * L::N)), x, acc[r][v]);
                }
            }
            at += V * L::N;
        }
        if at < end {
            for v in 0..V {
                let (from, left) = (at + v * L::N, (end - at).saturating_sub(v * L::N).min(L::N));
                let x = L::load_first(p.x.wrapping_add(from), left);
                for r in 0..R {
                    acc[r][v] = L::fma(L::load_first(row(r, from), left), x, acc[r][v]);
                }
            }
        }
        let mut totals = [acc[0][0]; R];
        for r in 0..R {
            totals[r] = added_up::<L, V>(acc[r]);
        }
        totals
    }
}

/// The sum of vectors, half and half.
#[inline(always)]
unsafe fn added_up<L: Lanes, const V: usize>(mut acc: [L; V]) -> L {
    let mut width = V / 2;
    while width > 0 {
        for j in 0..width {
            // SAFETY: the caller's contract.
            acc[j] = unsafe { acc[j].plus(acc[j + width]) };
        }
        width /= 2;
    }
    acc[0]
}

/// Few results along contiguous columns, which V registers hold: in the order of `columns`.
#[inline(always)]
unsafe fn few_columns<L: Lanes, const V: usize>(p: &Times<L::T>) {
    let last = p.rows - (V - 1) * L::N;
    // SAFETY: the caller's contract: rows of memory have `(V - 1)·N + last` elements.
    unsafe {
        let mut acc = [L::splat(<L::T as Real>::ZERO); V];
        for j in 0..p.k {
            let (row, x) = (p.w.from(0, j).ptr, L::splat(*p.x.add(j)));
            for v in 0..V {
                let at = row.wrapping_add(v * L::N);
                let y = if v + 1 < V || last == L::N { L::load(at) } else { L::load_first(at, last) };
                acc[v] = L::fma(x, y, acc[v]);
            }
        }
        for v in 0..V {
            let to = p.y.add(v * L::N);
            if v + 1 < V || last == L::N { acc[v].store(to) } else { acc[v].store_first(to, last) }
        }
    }
}

/// Results along contiguous columns: rows of memory are added to them, eight at a time.
#[inline(always)]
unsafe fn columns<L: Lanes>(p: &Times<L::T>) {
    if p.k <= DEPTH {
        // SAFETY: the caller's contract.
        unsafe {
            match p.rows.div_ceil(L::N) {
                1 => return few_columns::<L, 1>(p),
                2 => return few_columns::<L, 2>(p),
                3 => return few_columns::<L, 3>(p),
                4 => return few_columns::<L, 4>(p),
                5 => return few_columns::<L, 5>(p),
                6 => return few_columns::<L, 6>(p),
                7 => return few_columns::<L, 7>(p),
                8 => return few_columns::<L, 8>(p),
                _ => {}
            }
        }
    }
    let mut block = [<L::T as Real>::ZERO; CHUNK];
    for first in (0..p.rows).step_by(CHUNK) {
        let n = CHUNK.min(p.rows - first);
        for depth in (0..p.k).step_by(DEPTH) {
            let k = DEPTH.min(p.k - depth);
            let (w, x) = (p.w.from(first, depth), p.x.wrapping_add(depth));
            // SAFETY: the caller's contract; the block holds n results.
            unsafe {
                let out = if depth == 0 { p.y.add(first) } else { block.as_mut_ptr() };
                let mut j = 0;
                while j + 8 <= k {
                    rows_added::<L, 8>(w.from(0, j), x.add(j), out, n, j > 0);
                    j += 8;
                }
                while j < k {
                    rows_added::<L, 1>(w.from(0, j), x.add(j), out, n, j > 0);
                    j += 1;
                }
                if depth > 0 {
                    let y = std::slice::from_raw_parts_mut(p.y.add(first), n);
                    y.iter_mut().zip(&block).for_each(|(y, &sum)| *y = *y + sum);
                }
            }
        }
    }
}

/// out = (out +) R rows of memory, each times its element of x.
#[inline(always)]
unsafe fn rows_added<L: Lanes, const R: usize>(w: Matrix<L::T>, x: *const L::T, out: *mut L::T, n: usize, more: bool) {
    // SAFETY: the caller's contract: R rows of n elements.
    unsafe {
        let rows: [*const L::T; R] = std::array::from_fn(|r| w.from(0, r).ptr);
        let x: [L; R] = std::array::from_fn(|r| L::splat(*x.add(r)));
        let mut j = 0;
        while j < n {
            let left = n - j;
            let whole = left >= L::N;
            let mut sum = if !more {
                L::splat(<L::T as Real>::ZERO)
            } else if whole {
                L::load(out.add(j))
            } else {
                L::load_first(out.add(j), left)
            };
            for r in 0..R {
                let y = if whole { L::load(rows[r].add(j)) } else { L::load_first(rows[r].add(j), left) };
                sum = L::fma(x[r], y, sum);
            }
            if whole {
                sum.store(out.add(j));
            } else {
                sum.store_first(out.add(j), left);
            }
            j += L::N;
        }
    }
}
