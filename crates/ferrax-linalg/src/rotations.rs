//! Givens rotations, and the rank-one update of a Cholesky factor that is made of them.
//!
//! A rotation is [c s; -s̄ c] with a real c and c² + |s|² = 1. Source: Golub and Van Loan, "Matrix Computations" (4th
//! edition), sections 5.1.8 and 6.5.4. Read next: `schur.rs`, which uses them too.

use crate::scalar::{Real, Scalar};

/// (c, s, r) of the rotation that takes (f, g) to (r, 0).
pub(crate) fn rotation<T: Scalar>(f: T, g: T) -> (T::R, T, T) {
    let (zero, one) = (T::R::ZERO, T::R::ONE);
    if g == T::ZERO {
        return (one, T::ZERO, f);
    }
    let g_size = g.modulus();
    let f_size = f.modulus();
    if f_size == zero {
        return (zero, over(g.conjugate(), g_size), T::of_real(g_size));
    }
    let r = f_size.with(g_size);
    let phase = over(f, f_size);
    (f_size / r, phase * over(g.conjugate(), r), phase * T::of_real(r))
}

/// x / d for a real d.
fn over<T: Scalar>(x: T, d: T::R) -> T {
    T::of_parts(x.re() / d, x.im() / d)
}

/// x times a real number.
pub(crate) fn times<T: Scalar>(x: T, factor: T::R) -> T {
    T::of_parts(x.re() * factor, x.im() * factor)
}

/// The upper factor of Rᵀ R + w wᵀ, in place of R (row-major, n × n); `w` is used up.
///
/// Row k turns with w so that w_k vanishes. Whole rows turn: what stands below the diagonal comes along.
#[inline]
pub fn cholesky_update<T: Real>(r: &mut [T], w: &mut [T]) {
    let n = w.len();
    for (k, row) in r[..n * n].chunks_exact_mut(n.max(1)).enumerate() {
        let (x, y) = (row[k], w[k]);
        if y == T::ZERO {
            continue;
        }
        let top = if x.magnitude() > y.magnitude() { x.magnitude() } else { y.magnitude() };
        let (x, y) = (x / top, y / top);
        let scale = T::ONE / (x * x + y * y).root();
        let (c, s) = (x * scale, y * scale);
        for (r, w) in row.iter_mut().zip(w.iter_mut()) {
            (*r, *w) = (c * *r + s * *w, c * *w - s * *r);
        }
    }
}
