//! Eigenvalues, without vectors, of real symmetric tridiagonal matrices: QL steps with implicit shifts on squares of the
//! off-diagonal, which take no square roots.
//!
//! Errors are some units in the last place of the largest value: single precision asks for values in double. Source: Parlett,
//! "The Symmetric Eigenvalue Problem" (1998), section 8.15 (Pal, Walker and Kahan). Read next: `spectral.rs` for the callers.

/// Steps for each row, after which the iteration is given up.
const STEPS: usize = 30;

/// Squares below this have lost digits, and count for nothing beside those of an off-diagonal that has not vanished.
const VANISHING: f64 = 1e-290;

/// Puts the eigenvalues, in ascending order, in place of the diagonal `d`; the off-diagonal `e` is used up. Says whether the
/// iteration converged.
pub(crate) fn eigenvalues(d: &mut [f64], e: &mut [f64]) -> bool {
    let n = d.len();
    let largest = d.iter().chain(&*e).fold(0.0f64, |most, x| most.max(x.abs()));
    if largest == 0.0 {
        return true;
    }
    // Squares neither overflow nor vanish where it matters.
    d.iter_mut().for_each(|d| *d /= largest);
    e.iter_mut().for_each(|e| *e = (*e / largest) * (*e / largest));
    let mut left = STEPS * n;
    let mut first = 0;
    while first < n {
        let small = |i: &usize| e[*i] <= f64::EPSILON * f64::EPSILON;
        let last = (first..n - 1).find(small).unwrap_or(n - 1);
        if last == first {
            first += 1;
            continue;
        }
        if left == 0 {
            return false;
        }
        left -= 1;
        let (d, e) = (&mut d[first..=last], &mut e[first..last]);
        // Values settle at the end with the smaller elements.
        if d[0].abs() > d[d.len() - 1].abs() {
            d.reverse();
            e.reverse();
        }
        step(d, e);
    }
    d.iter_mut().for_each(|d| *d *= largest);
    d.sort_by(f64::total_cmp);
    true
}

/// One step over a block: its first element settles. `e` holds squares.
fn step(d: &mut [f64], e: &mut [f64]) {
    let last = e.len();
    let root = e[0].sqrt();
    let half = (d[1] - d[0]) / (2.0 * root);
    let shift = d[0] - root / (half + (1.0 + half * half).sqrt().copysign(half));
    let (mut c, mut s) = (1.0f64, 0.0);
    let mut gamma = d[last] - shift;
    let mut p = gamma * gamma;
    for i in (0..last).rev() {
        let square = e[i];
        let r = p + square;
        if i + 1 < last {
            e[i + 1] = s * r;
        }
        let before = gamma;
        // Divisions that do not wait for each other.
        gamma = (p * (d[i] - shift) - square * before) / r;
        d[i + 1] = before + (d[i] - gamma);
        s = square / r;
        (c, p) = (p / r, if p < VANISHING { c * square } else { gamma * gamma * (r / p) });
    }
    e[0] = s * p;
    d[0] = shift + gamma;
}
