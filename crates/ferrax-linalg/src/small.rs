//! Direct paths for matrices of a few rows: row-major, in place, no memory taken, no calls.
//!
//! The order of operations is the one of the textbook loops, whatever the machine.

use crate::Scalar;
use crate::scalar::Real;
use crate::triangular::Triangle;

/// The largest number of rows for which these are used.
pub const SMALL: usize = 8;

/// Cholesky factor of an n × n row-major matrix, zeros above the diagonal; false if it is not positive definite.
#[inline]
pub fn cholesky<T: Scalar>(a: &mut [T], n: usize) -> bool {
    let a = &mut a[..n * n];
    for j in 0..n {
        let mut d = a[j * n + j].re();
        for k in 0..j {
            d -= a[j * n + k].square();
        }
        if d.partial_cmp(&T::R::ZERO) != Some(std::cmp::Ordering::Greater) {
            return false;
        }
        let root = d.root();
        a[j * n + j] = T::of_real(root);
        for i in j + 1..n {
            let mut s = a[i * n + j];
            for k in 0..j {
                s -= a[i * n + k] * a[j * n + k].conjugate();
            }
            a[i * n + j] = s / T::of_real(root);
        }
        a[j * n + j + 1..(j + 1) * n].fill(T::ZERO);
    }
    true
}

/// LU of a rows × cols row-major matrix with partial pivoting.
#[inline]
pub fn lu<T: Scalar>(a: &mut [T], rows: usize, cols: usize, pivots: &mut [i32]) {
    let a = &mut a[..rows * cols];
    for k in 0..rows.min(cols) {
        let (mut at, mut best) = (k, a[k * cols + k].size());
        for i in k + 1..rows {
            let size = a[i * cols + k].size();
            if size > best {
                (at, best) = (i, size);
            }
        }
        pivots[k] = at as i32;
        if at != k {
            for c in 0..cols {
                a.swap(k * cols + c, at * cols + c);
            }
        }
        let pivot = a[k * cols + k];
        if pivot == T::ZERO {
            continue;
        }
        for i in k + 1..rows {
            let factor = a[i * cols + k] / pivot;
            a[i * cols + k] = factor;
            for c in k + 1..cols {
                let u = a[k * cols + c];
                a[i * cols + c] -= factor * u;
            }
        }
    }
}

/// Solves with a row-major n × n triangle from the left, in place of the row-major n × columns `b`.
#[inline]
pub fn triangular_solve<T: Scalar>(a: &[T], n: usize, b: &mut [T], columns: usize, how: Triangle) {
    let (a, b) = (&a[..n * n], &mut b[..n * columns]);
    let at = |i: usize, k: usize| {
        let x = if how.transpose { a[k * n + i] } else { a[i * n + k] };
        if how.conjugate { x.conjugate() } else { x }
    };
    let forward = how.lower != how.transpose;
    for step in 0..n {
        let i = if forward { step } else { n - 1 - step };
        for s in 0..step {
            let k = if forward { s } else { n - 1 - s };
            let x = at(i, k);
            for c in 0..columns {
                let v = b[k * columns + c];
                b[i * columns + c] -= x * v;
            }
        }
        if !how.unit {
            let d = at(i, i);
            for c in 0..columns {
                b[i * columns + c] /= d;
            }
        }
    }
}
