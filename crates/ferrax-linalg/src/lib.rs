//! Matrix factorizations over plain slices of f32, f64, c32 and c64, one matrix a call; and Fourier transforms of rows.
//!
//! Matrices are column-major with no gaps unless a function says otherwise. Conventions (which triangle, signs of
//! reflections, pivots, what singular input gives) are LAPACK's, because those are the ones that JAX shows. Products and
//! spectral decompositions come from `faer`; blocked factorizations are written here, so that blocks can be shared out
//! over the caller's threads: every result is the same for any number of them, as blocks do not depend on it.
//!
//! A crate of its own, so that the generic code of faer and rustfft is compiled once. [`Element`] is the whole interface
//! of matrices, [`fft`] that of transforms.
//! Read next: `scalar.rs`, `cholesky.rs`, `lu.rs`, `householder.rs`, `implicit.rs`, `bidiagonal.rs`,
//! `rational.rs`, `spectral.rs`, `schur.rs`.

mod bidiagonal;
mod cholesky;
pub mod fft;
mod householder;
mod implicit;
mod lu;
mod rational;
mod rotations;
mod scalar;
mod schur;
mod singular;
pub mod small;
mod spectral;
mod triangular;
mod tridiagonal;
mod twisted;

use faer::dyn_stack::{MemBuffer, StackReq};

pub use faer::complex::Complex;
pub use faer::{c32, c64};
pub use householder::Side;
pub use rotations::cholesky_update;
pub use scalar::{Field, Real, Scalar};
pub use triangular::Triangle;

/// Memory that a function needs for itself cannot be had; what it was given is anything then.
#[derive(Clone, Copy, Debug)]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: usize,
}

/// `n` copies of a value.
///
/// # Errors
/// There is no such memory.
pub fn filled<T: Copy>(value: T, n: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut all = Vec::new();
    all.try_reserve_exact(n).map_err(|_| OutOfMemory { bytes: n.saturating_mul(size_of::<T>()) })?;
    all.resize(n, value);
    Ok(all)
}

/// Scratch memory of faer's functions.
fn scratch(needed: StackReq) -> Result<MemBuffer, OutOfMemory> {
    MemBuffer::try_new(needed).map_err(|_| OutOfMemory { bytes: needed.size_bytes() })
}

/// Runs `task(index)` for every index below a count, on several threads if the estimated nanoseconds are worth it.
pub type Share<'a> = &'a (dyn Fn(u64, usize, &(dyn Fn(usize) + Sync)) + Sync);

/// Runs the tasks one after the other.
pub const ALONE: Share<'static> = &|_, tasks, task| (0..tasks).for_each(task);

/// A pointer that tasks share; each writes a part of its own.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: tasks touch disjoint elements, or only read.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// A matrix within: `rows` × `cols` from element `at` on, with `ld` elements from column to column.
    ///
    /// # Safety
    /// The elements must be inside the allocation, and no other task may write them, or touch them if this one does.
    unsafe fn matrix<'a>(self, at: usize, rows: usize, cols: usize, ld: usize) -> faer::MatMut<'a, T> {
        // SAFETY: the caller's contract.
        unsafe { faer::MatMut::from_raw_parts_mut(self.0.add(at), rows, cols, 1, ld as isize) }
    }

    /// A range of elements.
    ///
    /// # Safety
    /// As for `matrix`.
    unsafe fn slice<'a>(self, at: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(at), len) }
    }
}

/// Elements of matrices that can be factored. All matrices are column-major.
pub trait Element: Field {
    /// Lower Cholesky factor in the lower triangle of `a` (n × n), of which only that triangle is read. Says whether
    /// the matrix is positive definite; if not, `a` is anything.
    fn cholesky(a: &mut [Self], n: usize, share: Share<'_>) -> bool;

    /// P A = L U with partial pivoting in place; `pivots[k]` is the row that was exchanged with row k.
    fn lu(a: &mut [Self], rows: usize, cols: usize, pivots: &mut [i32], share: Share<'_>);

    /// Solves with a triangular matrix (n × n) from the left, in place of `b` (n × columns).
    fn triangular_solve(a: &[Self], n: usize, b: &mut [Self], columns: usize, how: Triangle, share: Share<'_>);

    /// Householder QR in place: R in the upper triangle, reflections below, their factors in `taus`.
    fn qr(a: &mut [Self], rows: usize, cols: usize, taus: &mut [Self], share: Share<'_>);

    /// As `qr`, of the columns in an order in which the diagonal of R falls in size; `order[j]` is the column that
    /// comes j-th.
    fn qr_pivoted(a: &mut [Self], rows: usize, cols: usize, order: &mut [i32], taus: &mut [Self]);

    /// The product of the reflections in `v` (its columns below the diagonal, `rows` × `taus.len()`), or its adjoint,
    /// times the matrix `c` from the given side, in place.
    fn reflect(
        v: &[Self],
        taus: &[Self],
        c: &mut [Self],
        shape: (usize, usize),
        side: Side,
        adjoint: bool,
        share: Share<'_>,
    );

    /// Eigenvalues in ascending order, and eigenvectors in `vectors` (n × n), of the Hermitian matrix whose lower
    /// triangle is given. Says whether the iteration converged.
    fn eigh(a: &[Self], n: usize, values: &mut [Self::R], vectors: Option<&mut [Self]>) -> Result<bool, OutOfMemory>;

    /// Singular values in descending order with U (rows × `u.1`) and V (cols × `v.1`, not its adjoint). Says whether
    /// the iteration converged.
    fn svd(
        a: &[Self],
        shape: (usize, usize),
        values: &mut [Self::R],
        vectors: Option<[(&mut [Self], usize); 2]>,
    ) -> Result<bool, OutOfMemory>;

    /// Eigenvalues with left and right eigenvectors, as (real, imaginary) pairs, each vector of norm one with a real
    /// largest component. Says whether the iteration converged.
    fn eig(
        a: &[Self],
        n: usize,
        values: &mut [[Self::R; 2]],
        left: Option<&mut [[Self::R; 2]]>,
        right: Option<&mut [[Self::R; 2]]>,
    ) -> Result<bool, OutOfMemory>;

    /// Hessenberg form Qᴴ A Q in place, with the reflections below the first subdiagonal.
    fn hessenberg(a: &mut [Self], n: usize, taus: &mut [Self]);

    /// Schur form A = Z T Zᴴ in place of `a`, with Z (n × n) in `vectors`: T is upper triangular, of real matrices with
    /// blocks of two rows for pairs of conjugate eigenvalues. Says whether the matrix is finite and the iteration
    /// converged; if not, both are anything.
    fn schur(a: &mut [Self], n: usize, vectors: Option<&mut [Self]>) -> Result<bool, OutOfMemory>;

    /// Tridiagonal form of the Hermitian matrix in one triangle: its diagonal, its off-diagonal, and the reflections.
    fn tridiagonal(
        a: &mut [Self],
        n: usize,
        lower: bool,
        d: &mut [Self::R],
        e: &mut [Self::R],
        taus: &mut [Self],
    ) -> Result<(), OutOfMemory>;
}

macro_rules! element {
    ($($T:ty => $eigh:path, $svd:path, $eig:path, $schur:path);*) => {$(
        impl Element for $T {
            fn cholesky(a: &mut [Self], n: usize, share: Share<'_>) -> bool {
                cholesky::cholesky(a, n, share)
            }
            fn lu(a: &mut [Self], rows: usize, cols: usize, pivots: &mut [i32], share: Share<'_>) {
                lu::lu(a, rows, cols, pivots, share);
            }
            fn triangular_solve(a: &[Self], n: usize, b: &mut [Self], columns: usize, how: Triangle, share: Share<'_>) {
                triangular::solve(a, n, b, columns, how, share);
            }
            fn qr(a: &mut [Self], rows: usize, cols: usize, taus: &mut [Self], share: Share<'_>) {
                householder::qr(a, rows, cols, taus, share);
            }
            fn qr_pivoted(a: &mut [Self], rows: usize, cols: usize, order: &mut [i32], taus: &mut [Self]) {
                householder::qr_pivoted(a, rows, cols, order, taus);
            }
            fn reflect(
                v: &[Self],
                taus: &[Self],
                c: &mut [Self],
                shape: (usize, usize),
                side: Side,
                adjoint: bool,
                share: Share<'_>,
            ) {
                householder::reflect(v, taus, c, shape, side, adjoint, share);
            }
            fn eigh(a: &[Self], n: usize, values: &mut [Self::R], vectors: Option<&mut [Self]>) -> Result<bool, OutOfMemory> {
                $eigh(a, n, values, vectors)
            }
            fn svd(
                a: &[Self],
                shape: (usize, usize),
                values: &mut [Self::R],
                vectors: Option<[(&mut [Self], usize); 2]>,
            ) -> Result<bool, OutOfMemory> {
                $svd(a, shape, values, vectors)
            }
            fn eig(
                a: &[Self],
                n: usize,
                values: &mut [[Self::R; 2]],
                left: Option<&mut [[Self::R; 2]]>,
                right: Option<&mut [[Self::R; 2]]>,
            ) -> Result<bool, OutOfMemory> {
                $eig(a, n, values, left, right)
            }
            fn hessenberg(a: &mut [Self], n: usize, taus: &mut [Self]) {
                householder::hessenberg(a, n, taus);
            }
            fn schur(a: &mut [Self], n: usize, vectors: Option<&mut [Self]>) -> Result<bool, OutOfMemory> {
                $schur(a, n, vectors)
            }
            fn tridiagonal(
                a: &mut [Self],
                n: usize,
                lower: bool,
                d: &mut [Self::R],
                e: &mut [Self::R],
                taus: &mut [Self],
            ) -> Result<(), OutOfMemory> {
                tridiagonal::tridiagonal(a, n, lower, d, e, taus)
            }
        }
    )*};
}
element! {
    f32 => spectral::hermitian, singular::svd_f32, spectral::eig_real, schur::schur_real;
    f64 => spectral::eigh, spectral::svd, spectral::eig_real, schur::schur_real;
    c32 => spectral::hermitian, spectral::svd, spectral::eig_complex, schur::schur_complex;
    c64 => spectral::eigh, spectral::svd, spectral::eig_complex, schur::schur_complex
}
