//! Eigenvectors of real symmetric tridiagonal matrices whose eigenvalues are known and lie apart: one step of inverse
//! iteration each, by twisted factorizations, for several eigenvalues at once.
//!
//! T - λ I is eliminated from the top and from the bottom; where the two meet with the smallest pivot γ, the vector has a large
//! component, is set to one there and follows from both eliminations. |γ| over its norm is how far it is from an eigenvector,
//! so that vectors are known to be at right angles wherever that is little beside the distance of their eigenvalues. All is done
//! in double precision, for matrices of single precision. Source: Dhillon and Parlett, "Multiple representations to compute
//! orthogonal eigenvectors of symmetric tridiagonal matrices" (2004), section 3. Read next: `spectral.rs` for the caller.

use crate::householder::wide;
use crate::scalar::{Field, Real};
use std::f64::consts::SQRT_2;

/// Eigenvalues at once.
const LANES: usize = 8;
type Lanes = [f64; LANES];

/// Products of two different vectors may reach this: half a unit in the last place of one, in single precision.
const ANGLE: f64 = 3e-8;
/// What rounding errors add to a vector's residual, in units of the largest element.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Writes the eigenvectors of the matrix with diagonal `d` and off-diagonal `e` for its eigenvalues `values` (ascending) into the
/// columns of `vectors`. Says whether they are eigenvectors at right angles, but for rounding errors of single precision; if not,
/// they are anything.
pub(crate) fn eigenvectors<T: Field>(d: &[f64], e: &[f64], values: &[f64], vectors: &mut [T]) -> bool {
    apart(d, e, values, f64::INFINITY, 1.0, vectors)
}

/// As `eigenvectors`, of a matrix without a diagonal, for its positive eigenvalues: the others are their negatives. Vectors are √2
/// long: one for every other element.
pub(crate) fn mirrored<T: Field>(e: &[f64], values: &[f64], vectors: &mut [T]) -> bool {
    let nearest = values.first().map_or(0.0, |least| 2.0 * least);
    apart(&vec![0.0; e.len() + 1], e, values, nearest, SQRT_2, vectors)
}

/// `eigenvectors` of a length, where the distance of the first one from others is `nearest` at least.
fn apart<T: Field>(d: &[f64], e: &[f64], values: &[f64], nearest: f64, length: f64, vectors: &mut [T]) -> bool {
    let largest = d.iter().chain(e).fold(0.0f64, |most, x| most.max(x.abs()));
    let least = ROUNDING * largest;
    let closest = values.windows(2).fold(nearest, |closest, pair| closest.min(pair[1] - pair[0]));
    if 2.0 * least > ANGLE * closest {
        return false;
    }
    let mut worst = 0.0;
    columns(d, e, values, (largest, length), vectors, &mut worst);
    worst <= ANGLE * largest && 2.0 * least.max(worst) <= ANGLE * closest
}

wide! {
    /// The eigenvectors, and in `worst` the largest of their residuals; `sizes` are the matrix's largest element and the length
    /// of vectors.
    fn columns<T: Field>(
        d: &[f64], e: &[f64], values: &[f64], sizes: (f64, f64), vectors: &mut [T], worst: &mut f64
    ) = columns_body
}

#[inline(always)]
fn columns_body<T: Field>(d: &[f64], e: &[f64], values: &[f64], sizes: (f64, f64), vectors: &mut [T], worst: &mut f64) {
    let ((largest, length), n) = (sizes, d.len());
    let mut work = Elimination {
        least: f64::EPSILON * f64::EPSILON * largest,
        pivots: vec![[0.0; LANES]; n],
        upward: vec![[0.0; LANES]; n],
        downward: vec![[0.0; LANES]; n],
    };
    for (columns, values) in vectors.chunks_mut(LANES * n).zip(values.chunks(LANES)) {
        let shifts = std::array::from_fn(|l| values[l.min(values.len() - 1)]);
        work.eliminate_down(d, e, &shifts);
        let (least, rows) = work.eliminate_up(d, e, &shifts);
        let norms = work.components(&rows);
        for (l, column) in columns.chunks_exact_mut(n).enumerate() {
            let scale = 1.0 / norms[l];
            // also if it is not a number
            *worst = if least[l] * scale <= *worst { *worst } else { least[l] * scale };
            for (x, z) in column.iter_mut().zip(&work.upward) {
                *x = T::of_real(T::R::of_f64(z[l] * scale * length));
            }
        }
    }
}

/// T - λ I for several λ, eliminated from both ends.
struct Elimination {
    /// What pivots are at least.
    least: f64,
    /// The pivots where both eliminations meet at a row.
    pivots: Vec<Lanes>,
    /// Each row's component over that of the next one; then the components.
    upward: Vec<Lanes>,
    /// Each row's component over that of the one before.
    downward: Vec<Lanes>,
}

impl Elimination {
    /// Of a row with the given pivot, coupled to the next one by `e`: the ratio of their components.
    #[inline(always)]
    fn ratio(&self, pivot: f64, e: f64) -> f64 {
        e / if pivot.abs() < self.least { self.least.copysign(pivot) } else { pivot }
    }

    #[inline(always)]
    fn eliminate_down(&mut self, d: &[f64], e: &[f64], shifts: &Lanes) {
        let mut taken = [0.0; LANES];
        for i in 0..d.len() {
            let e = e.get(i).map_or(0.0, |e| *e);
            for l in 0..LANES {
                let pivot = (d[i] - shifts[l]) - taken[l];
                let ratio = self.ratio(pivot, e);
                self.pivots[i][l] = pivot;
                self.upward[i][l] = -ratio;
                taken[l] = e * ratio;
            }
        }
    }

    /// Gives the smallest pivots, and their rows.
    #[inline(always)]
    fn eliminate_up(&mut self, d: &[f64], e: &[f64], shifts: &Lanes) -> (Lanes, [usize; LANES]) {
        let (mut taken, mut least, mut rows) = ([0.0; LANES], [f64::INFINITY; LANES], [0; LANES]);
        for i in (0..d.len()).rev() {
            let e = if i > 0 { e[i - 1] } else { 0.0 };
            for l in 0..LANES {
                let met = (self.pivots[i][l] - taken[l]).abs();
                let smaller = met < least[l];
                least[l] = if smaller { met } else { least[l] };
                rows[l] = if smaller { i } else { rows[l] };
                let ratio = self.ratio((d[i] - shifts[l]) - taken[l], e);
                self.downward[i][l] = -ratio;
                taken[l] = e * ratio;
            }
        }
        (least, rows)
    }

    /// Puts vectors with a component of one at the given rows in place of `upward`, and gives their norms.
    #[inline(always)]
    fn components(&mut self, rows: &[usize; LANES]) -> Lanes {
        let (mut z, mut squares) = ([0.0; LANES], [0.0; LANES]);
        for (i, upward) in self.upward.iter_mut().enumerate().rev() {
            for l in 0..LANES {
                z[l] = if i == rows[l] { 1.0 } else { upward[l] * z[l] };
                upward[l] = z[l];
                squares[l] += z[l] * z[l];
            }
        }
        let mut z = [0.0; LANES];
        for (i, (own, downward)) in self.upward.iter_mut().zip(&self.downward).enumerate() {
            for l in 0..LANES {
                z[l] *= downward[l];
                // zero up to the row of the pivot
                own[l] += z[l];
                squares[l] += z[l] * z[l];
                z[l] = if i == rows[l] { 1.0 } else { z[l] };
            }
        }
        squares.map(f64::sqrt)
    }
}
