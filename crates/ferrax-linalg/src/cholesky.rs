//! Blocked Cholesky factorization, right-looking: a block of columns, the rows below it, the trailing tiles.

use crate::scalar::{Field, Scalar};
use crate::triangular::solve_view;
use crate::{Share, Shared};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::{Accum, Par};

/// Columns of a block, and rows of a tile.
const BLOCK: usize = 128;
const TILE: usize = 256;

/// `Element::cholesky`.
pub(crate) fn cholesky<T: Field>(a: &mut [T], n: usize, share: Share<'_>) -> bool {
    let a = &mut a[..n * n];
    // Whole matrices up to two blocks are not worth the split.
    let block = if n <= 2 * BLOCK { n } else { BLOCK };
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<T>(block, Par::Seq, faer::Spec::default()));
    let zero = <T as Scalar>::R::ZERO;
    let p = Shared(a.as_mut_ptr());
    for k in (0..n).step_by(block.max(1)) {
        let nb = block.min(n - k);
        // SAFETY: no task runs.
        let diagonal = unsafe { p.matrix(k * n + k, nb, nb, n) };
        let stack = MemStack::new(&mut memory);
        let plain = LltRegularization { dynamic_regularization_delta: zero, dynamic_regularization_epsilon: zero };
        if cholesky_in_place(diagonal, plain, Par::Seq, stack, faer::Spec::default()).is_err() {
            return false;
        }
        let below = n - k - nb;
        panel(p, n, k, nb, below, share);
        update(p, n, k, nb, below, share);
    }
    true
}

/// L₂₁ = A₂₁ L₁₁⁻ᴴ, by tiles of rows.
fn panel<T: Field>(p: Shared<T>, n: usize, k: usize, nb: usize, below: usize, share: Share<'_>) {
    share((below * nb * nb / 8) as u64, below.div_ceil(TILE), &|t| {
        let first = k + nb + t * TILE;
        let rows = TILE.min(n - first);
        // SAFETY: tasks write tiles of their own; the diagonal block is only read.
        let (l, x) = unsafe { (p.matrix(k * n + k, nb, nb, n), p.matrix(k * n + first, rows, nb, n)) };
        // X L₁₁ᴴ = A, so conj(L₁₁) Xᵀ = Aᵀ.
        solve_view(l.as_ref(), x.transpose_mut(), true, false, true);
    });
}

/// A₂₂ -= L₂₁ L₂₁ᴴ in the lower triangle, by tiles.
fn update<T: Field>(p: Shared<T>, n: usize, k: usize, nb: usize, below: usize, share: Share<'_>) {
    let tiles = below.div_ceil(TILE);
    share((below * below * nb / 16) as u64, tiles * (tiles + 1) / 2, &|t| {
        let (mut i, mut j) = (t, 0);
        while i >= tiles - j {
            i -= tiles - j;
            j += 1;
        }
        let (r, c) = (k + nb + (i + j) * TILE, k + nb + j * TILE);
        let (rows, cols) = (TILE.min(n - r), TILE.min(n - c));
        // SAFETY: tasks write tiles of their own right of the block, whose columns are only read.
        let (dst, x, y) = unsafe {
            (p.matrix(c * n + r, rows, cols, n), p.matrix(k * n + r, rows, nb, n), p.matrix(k * n + c, cols, nb, n))
        };
        let (x, y) = (x.as_ref(), y.as_ref().adjoint());
        if i == 0 {
            let full = BlockStructure::Rectangular;
            let lower = BlockStructure::TriangularLower;
            triangular_matmul(dst, lower, Accum::Add, x, full, y, full, -T::ONE, Par::Seq);
        } else {
            matmul(dst, Accum::Add, x, y, -T::ONE, Par::Seq);
        }
    });
}
