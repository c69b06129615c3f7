//! Bidiagonal forms, for singular values.
//!
//! Reflections from the left and from the right take turns. Neither is applied on its own: the pass over the rest of the
//! matrix that finishes one makes the products that the next one needs, so that each step reads and writes it twice.
//! Source: Golub and Van Loan, "Matrix Computations" (4th edition), section 5.4.8. Read next: `householder.rs`,
//! `singular.rs` for the caller.

use crate::householder::{Columns, LANES, TOGETHER, reflection, split, wide};
use crate::scalar::{Field, Scalar};
use crate::{OutOfMemory, filled};

wide! {
    /// The diagonal `d` and what stands above it, `e`, of the bidiagonal form of `a` (rows × `d.len()`, no fewer rows than
    /// columns) of real numbers, of which the reflections from the left are left below the diagonal.
    pub(crate) fn bidiagonal<T: Field>(
        a: &mut [T], rows: usize, d: &mut [T], e: &mut [T], kept: Option<&mut Kept<T>>
    ) = bidiagonal_body
}

/// What else makes the reflections of a bidiagonal form, for who asks.
pub(crate) struct Kept<T> {
    /// Factors of those from the left.
    pub left_taus: Vec<T>,
    /// Those from the right, after one that does nothing, so that each begins at its column's diagonal; and their factors.
    pub right: Vec<T>,
    pub right_taus: Vec<T>,
}

impl<T: Scalar> Kept<T> {
    pub fn new(n: usize) -> Result<Kept<T>, OutOfMemory> {
        let zeros = || vec![T::ZERO; n];
        Ok(Kept { left_taus: zeros(), right: filled(T::ZERO, n * n)?, right_taus: zeros() })
    }
}

#[inline(always)]
fn bidiagonal_body<T: Field>(a: &mut [T], rows: usize, d: &mut [T], e: &mut [T], mut kept: Option<&mut Kept<T>>) {
    let cols = d.len();
    // The reflection from the right that is still to be applied: A -= y uᵀ.
    let (mut y, mut u) = (vec![T::ZERO; rows], vec![T::ZERO; cols]);
    // That from the left: A -= v wᵀ.
    let (mut v, mut w) = (vec![T::ZERO; rows], vec![T::ZERO; cols]);
    for k in 0..cols {
        let column = &mut a[k * rows + k..(k + 1) * rows];
        column.iter_mut().zip(&y[k..]).for_each(|(c, &y)| *c -= y * u[k]);
        let (head, tail) = column.split_at_mut(1);
        let tau = reflection(&mut head[0], tail);
        d[k] = head[0];
        if let Some(kept) = &mut kept {
            kept.left_taus[k] = tau;
        }
        v[k] = T::ONE;
        v[k + 1..].copy_from_slice(tail);
        let rest = &mut a[(k + 1) * rows..cols * rows];
        let (mut far, mut j) = (rest.chunks_exact_mut(TOGETHER * rows), k + 1);
        for columns in &mut far {
            products::<T, TOGETHER>(columns, (rows, k), &y, &v, &u[j..], &mut w[j..]);
            j += TOGETHER;
        }
        for column in far.into_remainder().chunks_exact_mut(rows) {
            products::<T, 1>(column, (rows, k), &y, &v, &u[j..], &mut w[j..]);
            j += 1;
        }
        if k + 1 == cols {
            break;
        }
        for j in k + 1..cols {
            w[j] *= tau;
            u[j] = rest[(j - k - 1) * rows + k] - w[j];
        }
        let (head, tail) = u[k + 1..].split_at_mut(1);
        let tau = reflection(&mut head[0], tail);
        e[k] = std::mem::replace(&mut head[0], T::ONE);
        if let Some(kept) = &mut kept {
            kept.right[(k + 1) * cols + k + 2..(k + 2) * cols].copy_from_slice(tail);
            kept.right_taus[k + 1] = tau;
        }
        y.fill(T::ZERO);
        let (mut far, mut j) = (rest.chunks_exact_mut(TOGETHER * rows), k + 1);
        for columns in &mut far {
            sums::<T, TOGETHER>(columns, (rows, k + 1), &mut y, &v, &u[j..], &w[j..]);
            j += TOGETHER;
        }
        for column in far.into_remainder().chunks_exact_mut(rows) {
            sums::<T, 1>(column, (rows, k + 1), &mut y, &v, &u[j..], &w[j..]);
            j += 1;
        }
        y[k + 1..].iter_mut().for_each(|y| *y *= tau);
    }
}

/// Of `N` columns, from row `k` on: c -= y u, then w = vᵀ c.
#[inline(always)]
fn products<T: Scalar, const N: usize>(
    columns: &mut [T],
    (rows, k): (usize, usize),
    y: &[T],
    v: &[T],
    u: &[T],
    w: &mut [T],
) {
    let c: Columns<'_, T, N> = split(columns, rows, k);
    let u: [T; N] = std::array::from_fn(|n| u[n]);
    let ((y, y_rest), (v, v_rest)) = (y[k..].as_chunks::<LANES>(), v[k..].as_chunks::<LANES>());
    let mut sums = [[T::ZERO; LANES]; N];
    for (at, (&y, &v)) in y.iter().zip(v).enumerate() {
        for n in 0..N {
            // By value: what is behind references could overlap, as far as the compiler knows.
            let mut x = c[n].0[at];
            for i in 0..LANES {
                x[i] -= y[i] * u[n];
                sums[n][i] += x[i] * v[i];
            }
            c[n].0[at] = x;
        }
    }
    for n in 0..N {
        for (i, (y, v)) in y_rest.iter().zip(v_rest).enumerate() {
            let c = &mut c[n].1[i];
            *c -= *y * u[n];
            sums[n][i] += *c * *v;
        }
        w[n] = sums[n].iter().fold(T::ZERO, |s, &x| s + x);
    }
}

/// Of `N` columns, from row `k` on: c -= v w, then y += c u.
#[inline(always)]
fn sums<T: Scalar, const N: usize>(
    columns: &mut [T],
    (rows, k): (usize, usize),
    y: &mut [T],
    v: &[T],
    u: &[T],
    w: &[T],
) {
    let c: Columns<'_, T, N> = split(columns, rows, k);
    let (u, w): ([T; N], [T; N]) = (std::array::from_fn(|n| u[n]), std::array::from_fn(|n| w[n]));
    let ((y, y_rest), (v, v_rest)) = (y[k..].as_chunks_mut::<LANES>(), v[k..].as_chunks::<LANES>());
    for (at, (y, &v)) in y.iter_mut().zip(v).enumerate() {
        let mut sum = *y;
        for n in 0..N {
            let mut x = c[n].0[at];
            for i in 0..LANES {
                x[i] -= v[i] * w[n];
                sum[i] += x[i] * u[n];
            }
            c[n].0[at] = x;
        }
        *y = sum;
    }
    for n in 0..N {
        for (i, (y, v)) in y_rest.iter_mut().zip(v_rest).enumerate() {
            let c = &mut c[n].1[i];
            *c -= *v * w[n];
            *y += *c * u[n];
        }
    }
}
