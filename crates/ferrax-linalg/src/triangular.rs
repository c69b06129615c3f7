//! Triangular systems: columns of the right-hand side are independent, and shared out in fixed chunks.

use crate::scalar::Field;
use crate::{Share, Shared};
use faer::linalg::triangular_solve as tri;
use faer::{Conj, MatMut, MatRef, Par};

/// Which triangle of the matrix is meant, and what is done to it before solving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triangle {
    /// Lower, else upper: before transposition.
    pub lower: bool,
    /// Solve with its transpose.
    pub transpose: bool,
    /// Solve with its conjugate.
    pub conjugate: bool,
    /// The diagonal counts as ones.
    pub unit: bool,
}

/// Columns of a chunk.
const CHUNK: usize = 64;

/// Solves in place of `b` with a triangle that is seen as it is to be used: transposed already.
pub(crate) fn solve_view<T: Field>(a: MatRef<'_, T>, b: MatMut<'_, T>, lower: bool, unit: bool, conjugate: bool) {
    let conj = if conjugate { Conj::Yes } else { Conj::No };
    match (lower, unit) {
        (true, false) => tri::solve_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (true, true) => tri::solve_unit_lower_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (false, false) => tri::solve_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
        (false, true) => tri::solve_unit_upper_triangular_in_place_with_conj(a, conj, b, Par::Seq),
    }
}

/// `Element::triangular_solve`.
pub(crate) fn solve<T: Field>(a: &[T], n: usize, b: &mut [T], columns: usize, how: Triangle, share: Share<'_>) {
    let a = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let a = if how.transpose { a.transpose() } else { a };
    assert!(b.len() >= n * columns, "the right-hand side is too short");
    let b = Shared(b.as_mut_ptr());
    share((n * n * columns / 8) as u64, columns.div_ceil(CHUNK), &|i| {
        let first = i * CHUNK;
        // SAFETY: chunks of columns are disjoint, and inside `b`.
        let part = unsafe { b.matrix(first * n, n, CHUNK.min(columns - first), n) };
        solve_view(a, part, how.lower != how.transpose, how.unit, how.conjugate);
    });
}
