//! Blocked LU factorization with partial pivoting. A panel of columns is factored recursively; the columns right of it
//! are exchanged, solved and updated in chunks that are shared out. A pivot of zero leaves its column as it is.

use crate::scalar::Field;
use crate::triangular::solve_view;
use crate::{Share, Shared};
use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, Par};

/// Columns of a panel, of a chunk, and of the end of the recursion.
const PANEL: usize = 64;
const CHUNK: usize = 128;
const LEAF: usize = 8;

/// `Element::lu`.
pub(crate) fn lu<T: Field>(a: &mut [T], rows: usize, cols: usize, pivots: &mut [i32], share: Share<'_>) {
    let a = &mut a[..rows * cols];
    let p = Shared(a.as_mut_ptr());
    let steps = rows.min(cols);
    for k in (0..steps).step_by(PANEL) {
        let nb = PANEL.min(steps - k);
        let pivots = &mut pivots[k..k + nb];
        // SAFETY: no task runs.
        panel(unsafe { p.matrix(k * rows + k, rows - k, nb, rows) }, pivots);
        let pivots = &*pivots;
        let (left, right) = (k, cols - k - nb);
        let (left_tasks, tasks) = (left.div_ceil(CHUNK), left.div_ceil(CHUNK) + right.div_ceil(CHUNK));
        share((right * (rows - k) * nb / 8) as u64, tasks, &|t| {
            if t < left_tasks {
                let c = t * CHUNK;
                // SAFETY: chunks of columns are disjoint.
                exchange(unsafe { p.matrix(c * rows + k, rows - k, CHUNK.min(left - c), rows) }, pivots);
                return;
            }
            let c = k + nb + (t - left_tasks) * CHUNK;
            // SAFETY: chunks of columns are disjoint; the panel is only read.
            let (mut part, panel) = unsafe {
                (
                    p.matrix(c * rows + k, rows - k, CHUNK.min(cols - c), rows),
                    p.matrix(k * rows + k, rows - k, nb, rows),
                )
            };
            exchange(part.rb_mut(), pivots);
            eliminate(panel.as_ref(), part, nb);
        });
        // Rows count from the top of the matrix.
    }
    for (k, block) in pivots[..steps].chunks_mut(PANEL).enumerate() {
        block.iter_mut().for_each(|p| *p += (k * PANEL) as i32);
    }
}

use faer::prelude::ReborrowMut;

/// Exchanges rows as `pivots` say, the k-th with row `pivots[k]`.
fn exchange<T: Field>(mut a: MatMut<'_, T>, pivots: &[i32]) {
    for c in 0..a.ncols() {
        let mut column = a.rb_mut().col_mut(c);
        for (k, &p) in pivots.iter().enumerate() {
            let (x, y) = (column[k], column[p as usize]);
            column[k] = y;
            column[p as usize] = x;
        }
    }
}

/// Columns right of a factored panel of width `nb`: the rows of U in them, and what is left below.
fn eliminate<T: Field>(panel: faer::MatRef<'_, T>, part: MatMut<'_, T>, nb: usize) {
    let (mut top, below) = part.split_at_row_mut(nb);
    solve_view(panel.subrows(0, nb), top.rb_mut(), true, true, false);
    matmul(below, Accum::Add, panel.subrows(nb, panel.nrows() - nb), top.as_ref(), -T::ONE, Par::Seq);
}

/// Factors a tall panel; pivots count from its top.
fn panel<T: Field>(mut a: MatMut<'_, T>, pivots: &mut [i32]) {
    let n = a.ncols();
    if n <= LEAF {
        return leaf(a, pivots);
    }
    let half = (n / 2).next_multiple_of(LEAF).min(n - 1);
    let (first, second) = pivots.split_at_mut(half);
    panel(a.rb_mut().subcols_mut(0, half), first);
    let (mut left, mut right) = a.split_at_col_mut(half);
    exchange(right.rb_mut(), first);
    eliminate(left.as_ref(), right.rb_mut(), half);
    let rows = right.nrows() - half;
    panel(right.rb_mut().subrows_mut(half, rows), second);
    exchange(left.rb_mut().subrows_mut(half, rows), second);
    second.iter_mut().for_each(|p| *p += half as i32);
}

/// The column at an index as a slice.
fn column<'a, T>(a: &'a mut MatMut<'_, T>, c: usize) -> &'a mut [T] {
    let rows = a.nrows();
    let column = a.rb_mut().col_mut(c);
    debug_assert!(rows <= 1 || column.row_stride() == 1);
    // SAFETY: columns are contiguous.
    unsafe { std::slice::from_raw_parts_mut(column.as_ptr_mut(), rows) }
}

fn leaf<T: Field>(mut a: MatMut<'_, T>, pivots: &mut [i32]) {
    let n = a.ncols();
    for k in 0..n {
        let own = column(&mut a, k);
        let (mut at, mut best) = (k, own[k].size());
        for (i, x) in own.iter().enumerate().skip(k + 1) {
            let size = x.size();
            if size > best {
                (at, best) = (i, size);
            }
        }
        pivots[k] = at as i32;
        if at != k {
            (0..n).for_each(|c| column(&mut a, c).swap(k, at));
        }
        let own = column(&mut a, k);
        let pivot = own[k];
        if pivot != T::ZERO {
            let inverse = T::ONE / pivot;
            let exact = !inverse.finite();
            own[k + 1..].iter_mut().for_each(|x| *x = if exact { *x / pivot } else { *x * inverse });
        }
        let (mut left, mut right) = a.rb_mut().split_at_col_mut(k + 1);
        let factors = column(&mut left, k);
        for c in 0..n - k - 1 {
            let other = column(&mut right, c);
            let u = other[k];
            other[k + 1..].iter_mut().zip(&factors[k + 1..]).for_each(|(x, f)| *x -= *f * u);
        }
    }
}
