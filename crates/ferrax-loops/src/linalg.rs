//! Matrix operations of the kernel IR. The last two axes of an operand are its matrices, axes before them are batches
//! that all operands and results share; which triangle, which signs and which pivots are LAPACK's.

/// What a [`crate::Kind::Linalg`] node computes. A factorization that fails gives NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinalgOp {
    /// (a) → lower Cholesky factor, zeros above; only the lower triangle of a is read.
    Cholesky,
    /// (r, w) → the upper Cholesky factor of rᵀ r + w wᵀ; whole rows of r turn.
    CholeskyUpdate,
    /// (a, b) → x with op(a) x = b, or x op(a) = b.
    TriangularSolve {
        /// a stands left of x.
        left: bool,
        /// a's lower triangle counts, else the upper one.
        lower: bool,
        /// op transposes.
        transpose: bool,
        /// op conjugates.
        conjugate: bool,
        /// The diagonal counts as ones.
        unit: bool,
    },
    /// (a) → L and U in one matrix, exchanged rows (int32), the permutation of rows (int32).
    Lu,
    /// (exchanged rows: int32) → the permutation of rows that they make.
    PivotsToPermutation,
    /// (lu, permutation, b) → x with a x = b (or the transposed, conjugated a) from the factors of a.
    #[allow(missing_docs)]
    LuSolve { transpose: bool, conjugate: bool },
    /// (a) → R over the reflections, their factors; with the order of columns (int32) between them if pivoted.
    #[allow(missing_docs)]
    Qr { pivoted: bool },
    /// (reflections, factors) → the first columns of their product, as many as the result has.
    HouseholderProduct,
    /// (reflections, factors, c) → Q c, c Q, Qᴴ c or c Qᴴ.
    #[allow(missing_docs)]
    Reflect { left: bool, adjoint: bool },
    /// (a) → eigenvectors, eigenvalues in ascending order; one triangle of a is read.
    #[allow(missing_docs)]
    Eigh { lower: bool },
    /// (a) → singular values in descending order, and with `vectors` U and Vᴴ, whole or thin as the results' shapes say.
    #[allow(missing_docs)]
    Svd { vectors: bool },
    /// (a) → eigenvalues, then left and right eigenvectors where asked for; all complex.
    #[allow(missing_docs)]
    Eig { left: bool, right: bool },
    /// (a) → T, and with `vectors` Z, of the Schur form a = Z T Zᴴ.
    #[allow(missing_docs)]
    Schur { vectors: bool },
    /// (a) → Hessenberg form over the reflections, their factors.
    Hessenberg,
    /// (a) → tridiagonal form over the reflections, diagonal, off-diagonal, factors.
    #[allow(missing_docs)]
    Tridiagonal { lower: bool },
    /// (dl, d, du, b) → x with the tridiagonal matrix of those diagonals times x = b.
    TridiagonalSolve,
}
