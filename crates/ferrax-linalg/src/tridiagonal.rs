//! Tridiagonal forms of Hermitian matrices, of which one triangle is kept.
//!
//! A reflection changes what is left of the matrix by v wᴴ + w vᴴ, where w needs the product of the matrix and the reflection.
//! The pass that makes this change is the one that takes the product for the next reflection, so that each step reads and writes
//! the triangle once. Source: Golub and Van Loan, "Matrix Computations" (4th edition), section 8.3.1. Read next:
//! `householder.rs`, `spectral.rs` and `implicit.rs` for the callers.

use crate::householder::{LANES, reflection, split, sum, wide};
use crate::scalar::{Field, Real, Scalar};
use crate::{OutOfMemory, filled};

/// Columns that a pass takes at once: sixteen registers hold what more than two of them need only in part.
const TOGETHER: usize = 2;

/// `Element::tridiagonal` (LAPACK's `sytd2` and `hetd2`): the upper triangle, from its end, is the lower one backwards.
pub(crate) fn tridiagonal<T: Field>(
    a: &mut [T],
    n: usize,
    lower: bool,
    d: &mut [T::R],
    e: &mut [T::R],
    taus: &mut [T],
) -> Result<(), OutOfMemory> {
    let (a, d) = (&mut a[..n * n], &mut d[..n]);
    let (e, taus) = (&mut e[..n.saturating_sub(1)], &mut taus[..n.saturating_sub(1)]);
    if n == 0 {
        return Ok(());
    }
    if !lower {
        a.reverse();
    }
    // Rows of zeros below the matrix let vectors begin at any row.
    let rows = n + LANES;
    let mut form = filled(T::ZERO, n * rows)?;
    for (j, (column, own)) in form.chunks_exact_mut(rows).zip(a.chunks_exact(n)).enumerate() {
        column[j..n].copy_from_slice(&own[j..]);
    }
    from_the_top(&mut form, d, e, taus);
    for (j, (column, own)) in form.chunks_exact(rows).zip(a.chunks_exact_mut(n)).enumerate() {
        own[j..].copy_from_slice(&column[j..n]);
    }
    if !lower {
        a.reverse();
        d.reverse();
        e.reverse();
        taus.reverse();
    }
    Ok(())
}

wide! {
    /// The lower triangle, of columns with `LANES` rows of zeros more than the matrix has.
    fn from_the_top<T: Field>(form: &mut [T], d: &mut [T::R], e: &mut [T::R], taus: &mut [T]) = from_the_top_body
}

#[inline(always)]
fn from_the_top_body<T: Field>(form: &mut [T], d: &mut [T::R], e: &mut [T::R], taus: &mut [T]) {
    let n = d.len();
    let rows = n + LANES;
    let zeros = || vec![T::ZERO; rows];
    let mut step = Step { v: zeros(), w: zeros(), u: zeros(), y: zeros() };
    for k in 0..n {
        let column = &mut form[k * rows + k..k * rows + n];
        let (v, w) = (step.v[k].conjugate(), step.w[k].conjugate());
        for (x, (&v_i, &w_i)) in column.iter_mut().zip(step.v[k..].iter().zip(&step.w[k..])) {
            *x -= v_i * w + w_i * v;
        }
        d[k] = column[0].re();
        column[0] = T::of_real(d[k]);
        if k + 1 == n {
            break;
        }
        let (head, tail) = column[1..].split_at_mut(1);
        let tau = reflection(&mut head[0], tail);
        (e[k], taus[k]) = (head[0].re(), tau);
        step.u[k + 1] = T::ONE;
        step.u[k + 2..n].copy_from_slice(tail);
        step.product(form, k + 1);
        step.next(tau, k + 1);
    }
}

/// The change that is still to be made, A -= v wᴴ + w vᴴ, and the product to be taken after it, y = A u.
struct Step<T> {
    v: Vec<T>,
    w: Vec<T>,
    u: Vec<T>,
    y: Vec<T>,
}

impl<T: Scalar> Step<T> {
    /// Makes the change and takes the product, of the columns from column `j` on.
    #[inline(always)]
    fn product(&mut self, form: &mut [T], mut j: usize) {
        let rows = self.v.len();
        self.y.fill(T::ZERO);
        let mut far = form[j * rows..].chunks_exact_mut(TOGETHER * rows);
        for columns in &mut far {
            self.columns::<TOGETHER>(columns, j);
            j += TOGETHER;
        }
        for column in far.into_remainder().chunks_exact_mut(rows) {
            self.columns::<1>(column, j);
            j += 1;
        }
    }

    /// The change that a reflection of the rows from `k` on, `u`, makes: w = τ A u less half of its part along u.
    #[inline(always)]
    fn next(&mut self, tau: T, k: usize) {
        let (u, y) = (&self.u[k..], &mut self.y[k..]);
        y.iter_mut().for_each(|y| *y *= tau);
        let along = T::of_real(T::R::of_f64(0.5)) * tau * sum(y, u, |y, u| y.conjugate() * u);
        y.iter_mut().zip(u).for_each(|(y, &u)| *y -= along * u);
        std::mem::swap(&mut self.v, &mut self.u);
        std::mem::swap(&mut self.w, &mut self.y);
    }

    /// `N` columns from column `j` on, below the diagonal.
    #[inline(always)]
    fn columns<const N: usize>(&mut self, columns: &mut [T], j: usize) {
        let rows = self.v.len();
        let own = |x: &[T]| -> [T; N] { std::array::from_fn(|c| x[j + c]) };
        let (v, w, u) = (own(&self.v), own(&self.w), own(&self.u));
        let mut near = own(&self.y);
        for c in 0..N {
            for r in c..N {
                let x = columns[c * rows + j + r] - (v[r] * w[c].conjugate() + w[r] * v[c].conjugate());
                columns[c * rows + j + r] = x;
                near[r] += x * u[c];
                if r > c {
                    near[c] += x.conjugate() * u[r];
                }
            }
        }
        let (v, w) = (v.map(T::conjugate), w.map(T::conjugate));
        let y = self.y[j + N..].as_chunks_mut::<LANES>().0;
        let factors = (vectors(&self.v, j + N), vectors(&self.w, j + N), vectors(&self.u, j + N));
        let c = split::<T, N>(columns, rows, j + N);
        let mut sums = [[T::ZERO; LANES]; N];
        for (at, y) in y.iter_mut().enumerate() {
            // By value: what is behind references could overlap, as far as the compiler knows.
            let (v_i, w_i, u_i, mut total) = (factors.0[at], factors.1[at], factors.2[at], *y);
            for n in 0..N {
                let mut x = c[n].0[at];
                for i in 0..LANES {
                    x[i] -= v_i[i] * w[n] + w_i[i] * v[n];
                    total[i] += x[i] * u[n];
                    sums[n][i] += x[i].conjugate() * u_i[i];
                }
                c[n].0[at] = x;
            }
            *y = total;
        }
        // All of them; but what is indexed by known numbers alone the compiler takes apart, and makes no vectors of it above.
        let all = LANES.min(rows);
        for n in 0..N {
            self.y[j + n] = sums[n][..all].iter().fold(near[n], |s, &x| s + x);
        }
    }
}

/// The elements from `start` on, by vectors.
#[inline(always)]
fn vectors<T>(x: &[T], start: usize) -> &[[T; LANES]] {
    x[start..].as_chunks().0
}
