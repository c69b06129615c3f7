//! Eigenvectors of small Hermitian matrices: Householder's reduction to tridiagonal form, then QL or QR steps with implicit
//! shifts, whichever begins at the end with the smaller elements.
//!
//! Signs and phases of eigenvectors are anybody's choice; those of LAPACK's `syevd` are the ones that JAX shows, so steps,
//! shifts and rotations come in its order (which, up to `ROWS`, is that of `steqr`). Source: Golub and Van Loan, "Matrix
//! Computations" (4th edition), section 8.3. Read next: `tridiagonal.rs` for the reduction, `spectral.rs` for the callers.

use crate::OutOfMemory;
use crate::householder::reflect_column;
use crate::rotations::{rotation, times};
use crate::scalar::{Field, Real, Scalar};
use crate::tridiagonal::tridiagonal;

/// Rows up to which LAPACK iterates on the whole tridiagonal form.
pub(crate) const ROWS: usize = 25;

/// Steps for each row, after which the iteration is given up.
const STEPS: usize = 30;

/// Eigenvalues in ascending order and eigenvectors of the matrix in a lower triangle; says whether the iteration converged.
pub(crate) fn eigh<T: Field>(a: &[T], n: usize, values: &mut [T::R], vectors: &mut [T]) -> Result<bool, OutOfMemory> {
    let mut form = a[..n * n].to_vec();
    let mut off = vec![T::R::ZERO; n];
    let mut taus = vec![T::ZERO; n];
    let vectors = &mut vectors[..n * n];
    tridiagonal(&mut form, n, true, values, &mut off, &mut taus)?;
    vectors.fill(T::ZERO);
    (0..n).for_each(|i| vectors[i * n + i] = T::ONE);
    if !(Iteration { d: values, e: &mut off, z: vectors, n }.run()) {
        return Ok(false);
    }
    for column in vectors.chunks_exact_mut(n) {
        for k in (0..n - 1).rev() {
            reflect_column(&form[k * n + k + 2..(k + 1) * n], taus[k], &mut column[k + 1..]);
        }
    }
    Ok(true)
}

/// A tridiagonal form with diagonal `d` and off-diagonal `e`, and the rotations that led to it from the first one, in `z`.
struct Iteration<'a, T: Field> {
    d: &'a mut [T::R],
    e: &'a mut [T::R],
    z: &'a mut [T],
    n: usize,
}

/// Rows of a block, counted from the end at which values are found: row k is `first` + k or `first` - k.
#[derive(Clone, Copy)]
struct Rows {
    first: usize,
    count: usize,
    upward: bool,
}

impl Rows {
    fn at(self, k: usize) -> usize {
        if self.upward { self.first - k } else { self.first + k }
    }

    /// The off-diagonal element between rows k and k + 1.
    fn between(self, k: usize) -> usize {
        if self.upward { self.first - k - 1 } else { self.first + k }
    }
}

impl<T: Field> Iteration<'_, T> {
    /// Makes the form diagonal, block by block, and sorts the values.
    fn run(&mut self) -> bool {
        let eps = T::R::EPSILON * T::R::of_f64(0.5);
        let mut left = STEPS * self.n;
        let mut first = 0;
        while first < self.n {
            let small = |i: usize| {
                self.e[i].magnitude() <= self.d[i].magnitude().root() * self.d[i + 1].magnitude().root() * eps
            };
            let last = (first..self.n - 1).find(|&i| small(i)).unwrap_or(self.n - 1);
            self.e[last] = T::R::ZERO;
            let upward = self.d[last].magnitude() < self.d[first].magnitude();
            let rows = Rows { first: if upward { last } else { first }, count: last - first + 1, upward };
            if !self.block(rows, &mut left) {
                return false;
            }
            first = last + 1;
        }
        self.sort();
        true
    }

    /// Makes one block diagonal: values settle at its row 0, then at row 1, and so on.
    fn block(&mut self, rows: Rows, left: &mut usize) -> bool {
        let half = T::R::EPSILON * T::R::of_f64(0.5);
        let mut k = 0;
        while k < rows.count {
            let small = |i: usize| {
                let (e, d, next) = (self.e[rows.between(i)], self.d[rows.at(i)], self.d[rows.at(i + 1)]);
                e * e <= half * half * d.magnitude() * next.magnitude() + T::R::TINY
            };
            let end = (k..rows.count - 1).find(|&i| small(i));
            if let Some(i) = end {
                self.e[rows.between(i)] = T::R::ZERO;
            }
            match end.unwrap_or(rows.count - 1) {
                end if end == k => k += 1,
                end if end == k + 1 => {
                    self.pair(rows.between(k));
                    k += 2;
                }
                _ if *left == 0 => return false,
                end => {
                    *left -= 1;
                    self.step(rows, k, end);
                }
            }
        }
        true
    }

    /// One step over the rows k to end.
    fn step(&mut self, rows: Rows, k: usize, end: usize) {
        let two = T::R::of_f64(2.0);
        let first = self.d[rows.at(k)];
        let e = self.e[rows.between(k)];
        let mut g = (self.d[rows.at(k + 1)] - first) / (two * e);
        let r = g.with(T::R::ONE).signed_as(g);
        g = self.d[rows.at(end)] - first + e / (g + r);
        let (mut s, mut c, mut p) = (T::R::ONE, T::R::ONE, T::R::ZERO);
        for i in (k..end).rev() {
            let (f, b) = (s * self.e[rows.between(i)], c * self.e[rows.between(i)]);
            let r;
            (c, s, r) = rotation(g, f);
            if i + 1 != end {
                self.e[rows.between(i + 1)] = r;
            }
            let (near, far) = (rows.at(i), rows.at(i + 1));
            g = self.d[far] - p;
            let r = (self.d[near] - g) * s + two * c * b;
            p = s * r;
            self.d[far] = g + p;
            g = c * r - b;
            self.turn(near, far, c, -s);
        }
        self.d[rows.at(k)] = first - p;
        self.e[rows.between(k)] = g;
    }

    /// Makes the rows i and i + 1 diagonal, which no others are coupled to.
    fn pair(&mut self, i: usize) {
        let (a, b, c) = (self.d[i], self.e[i], self.d[i + 1]);
        let (larger, smaller, cosine, sine) = two_by_two(a, b, c);
        (self.d[i], self.d[i + 1], self.e[i]) = (larger, smaller, T::R::ZERO);
        self.turn(i, i + 1, cosine, sine);
    }

    /// Turns two columns of `z`.
    fn turn(&mut self, i: usize, j: usize, c: T::R, s: T::R) {
        for row in 0..self.n {
            let (x, y) = (self.z[i * self.n + row], self.z[j * self.n + row]);
            self.z[i * self.n + row] = times(x, c) + times(y, s);
            self.z[j * self.n + row] = times(y, c) - times(x, s);
        }
    }

    /// Puts values in ascending order, each time by an exchange with the smallest of the rest.
    fn sort(&mut self) {
        for i in 0..self.n {
            let smallest = (i + 1..self.n).fold(i, |k, j| if self.d[j] < self.d[k] { j } else { k });
            if smallest != i {
                self.d.swap(i, smallest);
                (0..self.n).for_each(|row| self.z.swap(i * self.n + row, smallest * self.n + row));
            }
        }
    }
}

/// The eigenvalues of [a b; b c], the one of the larger size first, and the cosine and sine that are its eigenvector.
fn two_by_two<R: Real>(a: R, b: R, c: R) -> (R, R, R, R) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let (large, small) = if a.magnitude() > c.magnitude() { (a, c) } else { (c, a) };
    let root = difference.with(twice);
    let half = R::of_f64(0.5);
    let negative = sum < R::ZERO;
    let first = half * if negative { sum - root } else { sum + root };
    // the determinant divided by the first value, without cancellation
    let second = if sum == R::ZERO { -half * root } else { (large / first) * small - (b / first) * b };
    let steep = difference >= R::ZERO;
    let cs = if steep { difference + root } else { difference - root };
    let (cosine, sine) = if cs.magnitude() > twice.magnitude() {
        let ratio = -twice / cs;
        let sine = R::ONE / R::ONE.with(ratio);
        (ratio * sine, sine)
    } else if twice == R::ZERO {
        (R::ONE, R::ZERO)
    } else {
        let ratio = -cs / twice;
        let cosine = R::ONE / R::ONE.with(ratio);
        (cosine, ratio * cosine)
    };
    if steep == negative { (first, second, cosine, sine) } else { (first, second, -sine, cosine) }
}
