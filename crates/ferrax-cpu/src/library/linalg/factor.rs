//! Cholesky, LU, and solving with triangles, factors and tridiagonal matrices.

use super::{Items, Scratch, batch, each, matrix, not_a_number, nth, small, transposed};
use crate::elementwise::kernel::{In, Out};
use ferrax_base::{DType, Result, bail};
use ferrax_linalg::{Element, Real, Triangle};

/// `LinalgOp::Cholesky`.
pub fn cholesky<T: Element>(x: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (n * n * n / 12 + 20 * n) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let l = unsafe { results.item(i) };
        let a = nth::<T>(x, count, i);
        let done = if n <= small::SMALL {
            l.copy_from_slice(a);
            small::cholesky(l, n)
        } else {
            let mut scratch = Scratch::new::<T>(n * n)?;
            let work = scratch.of::<T>();
            transposed(a, n, n, work);
            let done = T::cholesky(work, n, share);
            transposed(work, n, n, l);
            done
        };
        for (r, row) in l.chunks_exact_mut(n.max(1)).enumerate() {
            if !done {
                row[..=r].fill(not_a_number());
            }
            row[r + 1..].fill(T::ZERO);
        }
        Ok(())
    })
}

/// `LinalgOp::CholeskyUpdate`.
pub fn cholesky_update(ins: &[In<'_>], out: &mut Out<'_>) -> Result<()> {
    match ins[0].ty.dtype {
        DType::F32 => update::<f32>(ins, out),
        DType::F64 => update::<f64>(ins, out),
        other => bail!(NotImplemented, "the CPU engine has no updates of Cholesky factors of {other}"),
    }
}

fn update<T: Element + Real>(ins: &[In<'_>], out: &mut Out<'_>) -> Result<()> {
    let (n, _) = matrix(out.shape());
    let count = batch(out.shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (n * n + 20 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let r = unsafe { results.item(i) };
        r.copy_from_slice(nth(ins[0], count, i));
        let mut scratch = Scratch::new::<T>(n)?;
        let w = &mut scratch.of::<T>()[..n];
        w.copy_from_slice(nth(ins[1], count, i));
        ferrax_linalg::cholesky_update(r, w);
        Ok(())
    })
}

/// Solves with the matrix `a` (row-major) in place of row-major `b`, of `rows` × `cols`.
fn solve_in_place<T: Element>(
    a: &[T],
    b: &mut [T],
    (rows, cols): (usize, usize),
    left: bool,
    how: Triangle,
    share: ferrax_linalg::Share<'_>,
) -> Result<()> {
    // Row-major matrices are the columns of their transposes.
    let seen = Triangle { lower: !how.lower, transpose: !how.transpose, ..how };
    if !left {
        // x op(a) = b, so op(a)ᵀ xᵀ = bᵀ, and the rows of b are the columns of bᵀ.
        T::triangular_solve(a, cols, b, rows, Triangle { transpose: how.transpose, ..seen }, share);
        return Ok(());
    }
    if rows <= small::SMALL && cols <= small::SMALL {
        small::triangular_solve(a, rows, b, cols, how);
        return Ok(());
    }
    if cols == 1 {
        T::triangular_solve(a, rows, b, 1, seen, share);
        return Ok(());
    }
    let mut scratch = Scratch::new::<T>(rows * cols)?;
    let work = scratch.of::<T>();
    transposed(b, rows, cols, work);
    T::triangular_solve(a, rows, work, cols, seen, share);
    transposed(work, cols, rows, b);
    Ok(())
}

/// `LinalgOp::TriangularSolve`.
pub fn triangular_solve<T: Element>(a: In<'_>, b: In<'_>, left: bool, how: Triangle, out: &mut Out<'_>) -> Result<()> {
    let shape = matrix(b.shape());
    let (n, other) = if left { shape } else { (shape.1, shape.0) };
    let count = batch(b.shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (n * n * other / 4 + 10 * n + other) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let x = unsafe { results.item(i) };
        x.copy_from_slice(nth(b, count, i));
        solve_in_place(nth::<T>(a, count, i), x, shape, left, how, share)?;
        Ok(())
    })
}

/// `LinalgOp::Lu`.
pub fn lu<T: Element>(x: In<'_>, outs: &mut [Out<'_>]) -> Result<()> {
    let (rows, cols) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let [lu, pivots, order] = outs else { ferrax_base::bail!(Internal, "lu has three results") };
    let (lu, pivots) = (Items::<T>::of(lu, count), Items::<i32>::of(pivots, count));
    let order = Items::<i32>::of(order, count);
    let steps = rows.min(cols);
    each(count, (rows * cols * steps / 12 + 30 * steps) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let (lu, pivots, order) = unsafe { (lu.item(i), pivots.item(i), order.item(i)) };
        let a = nth::<T>(x, count, i);
        if rows <= small::SMALL && cols <= small::SMALL {
            lu.copy_from_slice(a);
            small::lu(lu, rows, cols, pivots);
        } else {
            let mut scratch = Scratch::new::<T>(rows * cols)?;
            let work = scratch.of::<T>();
            transposed(a, rows, cols, work);
            T::lu(work, rows, cols, pivots, share);
            transposed(work, cols, rows, lu);
        }
        exchange(pivots, order);
        Ok(())
    })
}

/// The permutation that exchanges make; rows that a program made up stay inside.
fn exchange(pivots: &[i32], order: &mut [i32]) {
    order.iter_mut().zip(0..).for_each(|(o, k)| *o = k);
    let last = order.len().saturating_sub(1);
    pivots.iter().enumerate().for_each(|(k, &p)| order.swap(k, (p.max(0) as usize).min(last)));
}

/// `LinalgOp::PivotsToPermutation`.
pub fn permutation(pivots: In<'_>, out: &mut Out<'_>) {
    let (count, size) = (batch(pivots.shape(), 1), out.shape()[out.shape().len() - 1]);
    for (i, order) in out.of::<i32>().chunks_exact_mut(size.max(1)).enumerate() {
        exchange(nth(pivots, count, i), order);
    }
}

/// `LinalgOp::LuSolve`.
pub fn lu_solve<T: Element>(ins: &[In<'_>], (transpose, conjugate): (bool, bool), out: &mut Out<'_>) -> Result<()> {
    let (n, columns) = matrix(ins[2].shape());
    let count = batch(ins[2].shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (n * n * columns / 2 + 20 * n) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let x = unsafe { results.item(i) };
        let (lu, order, b) = (nth::<T>(ins[0], count, i), nth::<i32>(ins[1], count, i), nth::<T>(ins[2], count, i));
        let how = |lower: bool| Triangle { lower, transpose, conjugate, unit: lower };
        // Indices of a permutation that a program made up stay inside.
        let row = |k: usize| (order[k].max(0) as usize).min(n - 1) * columns;
        if !transpose {
            for k in 0..n {
                x[k * columns..(k + 1) * columns].copy_from_slice(&b[row(k)..row(k) + columns]);
            }
            solve_in_place(lu, x, (n, columns), true, how(true), share)?;
            solve_in_place(lu, x, (n, columns), true, how(false), share)?;
            return Ok(());
        }
        let mut small_copy = [T::ZERO; small::SMALL * small::SMALL];
        let mut held = None;
        let y: &mut [T] = match n * columns {
            size if size <= small_copy.len() => &mut small_copy[..size],
            size => &mut held.insert(Scratch::new::<T>(size)?).of::<T>()[..size],
        };
        y.copy_from_slice(b);
        solve_in_place(lu, y, (n, columns), true, how(false), share)?;
        solve_in_place(lu, y, (n, columns), true, how(true), share)?;
        for k in 0..n {
            x[row(k)..row(k) + columns].copy_from_slice(&y[k * columns..(k + 1) * columns]);
        }
        Ok(())
    })
}

/// `LinalgOp::TridiagonalSolve`: Gaussian elimination with exchanges of neighbouring rows (LAPACK's `gtsv`).
pub fn tridiagonal_solve<T: Element>(ins: &[In<'_>], out: &mut Out<'_>) -> Result<()> {
    let (n, columns) = matrix(ins[3].shape());
    let count = batch(ins[3].shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (n * (columns + 4) * 4) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let x = unsafe { results.item(i) };
        x.copy_from_slice(nth(ins[3], count, i));
        let line = |k: usize| nth::<T>(ins[k], count, i);
        if n > 0 {
            eliminate(line(0), line(1), line(2), x, columns);
        }
        Ok(())
    })
}

/// The first of `dl` and the last of `du` are outside the matrix.
fn eliminate<T: Element>(dl: &[T], d: &[T], du: &[T], x: &mut [T], columns: usize) {
    let n = d.len();
    let (mut main, mut up, mut second) = (d.to_vec(), du.to_vec(), vec![T::ZERO; n]);
    for k in 0..n - 1 {
        let low = dl[k + 1];
        let (top, below) = x[k * columns..(k + 2) * columns].split_at_mut(columns);
        if main[k].size() >= low.size() {
            let factor = low / main[k];
            let u = up[k];
            main[k + 1] -= factor * u;
            below.iter_mut().zip(top).for_each(|(b, t)| *b -= factor * *t);
            continue;
        }
        let factor = main[k] / low;
        let (u, next) = (up[k], main[k + 1]);
        (main[k], up[k]) = (low, next);
        main[k + 1] = u - factor * next;
        if k + 2 < n {
            second[k] = up[k + 1];
            up[k + 1] = -(factor * second[k]);
        }
        for (t, b) in top.iter_mut().zip(below) {
            (*t, *b) = (*b, *t - factor * *b);
        }
    }
    for k in (0..n).rev() {
        for c in 0..columns {
            let mut s = x[k * columns + c];
            if k + 1 < n {
                s -= up[k] * x[(k + 1) * columns + c];
            }
            if k + 2 < n {
                s -= second[k] * x[(k + 2) * columns + c];
            }
            x[k * columns + c] = s / main[k];
        }
    }
}
