//! Linear algebra and Fourier transforms.

use super::args::{Truth, listed};
use crate::errors::IntoPyResult;
use crate::value::{PyValue, ShapeArg, SizeArg};
use ferrax_ops::fft::FftType;
use ferrax_ops::linalg as ops;
use ferrax_ops::linalg::lu::LuSolve;
use ferrax_ops::linalg::triangular::TriangularSolve;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyfunction]
fn cholesky(x: PyValue) -> PyResult<PyValue> {
    ops::cholesky::cholesky(&x.0).py().map(PyValue)
}

#[pyfunction]
fn cholesky_update(r: PyValue, w: PyValue) -> PyResult<PyValue> {
    ops::cholesky::cholesky_update(&r.0, &w.0).py().map(PyValue)
}

#[pyfunction]
#[allow(clippy::fn_params_excessive_bools)]
fn triangular_solve(
    a: PyValue,
    b: PyValue,
    left_side: Truth,
    lower: Truth,
    transpose_a: Truth,
    conjugate_a: Truth,
    unit_diagonal: Truth,
) -> PyResult<PyValue> {
    let params = TriangularSolve {
        conjugate_a: conjugate_a.0,
        left_side: left_side.0,
        lower: lower.0,
        transpose_a: transpose_a.0,
        unit_diagonal: unit_diagonal.0,
    };
    ops::triangular::triangular_solve(&a.0, &b.0, params).py().map(PyValue)
}

#[pyfunction]
fn lu(x: PyValue) -> PyResult<Vec<PyValue>> {
    ops::lu::lu(&x.0).py().map(listed)
}

#[pyfunction]
fn lu_pivots_to_permutation(pivots: PyValue, permutation_size: SizeArg) -> PyResult<PyValue> {
    ops::lu::lu_pivots_to_permutation(&pivots.0, permutation_size.0).py().map(PyValue)
}

#[pyfunction]
fn lu_solve(
    a: PyValue,
    lu: PyValue,
    permutation: PyValue,
    b: PyValue,
    transpose_a: Truth,
    conjugate_a: Truth,
) -> PyResult<PyValue> {
    ops::lu::lu_solve(
        &a.0,
        &lu.0,
        &permutation.0,
        &b.0,
        LuSolve { conjugate_a: conjugate_a.0, transpose_a: transpose_a.0 },
    )
    .py()
    .map(PyValue)
}

#[pyfunction]
fn solve(a: PyValue, b: PyValue) -> PyResult<PyValue> {
    ops::lu::solve(&a.0, &b.0).py().map(PyValue)
}

#[pyfunction]
fn qr(x: PyValue, full_matrices: Truth, pivoting: Truth) -> PyResult<Vec<PyValue>> {
    ops::qr::qr(&x.0, full_matrices.0, pivoting.0).py().map(listed)
}

#[pyfunction]
fn householder_product(a: PyValue, taus: PyValue) -> PyResult<PyValue> {
    ops::qr::householder_product(&a.0, &taus.0).py().map(PyValue)
}

#[pyfunction]
fn ormqr(a: PyValue, taus: PyValue, c: PyValue, left: Truth, transpose: Truth) -> PyResult<PyValue> {
    ops::qr::ormqr(&a.0, &taus.0, &c.0, left.0, transpose.0).py().map(PyValue)
}

#[pyfunction]
fn eigh(x: PyValue, lower: Truth, sort_eigenvalues: Truth) -> PyResult<Vec<PyValue>> {
    ops::spectral::eigh(&x.0, lower.0, sort_eigenvalues.0).py().map(listed)
}

#[pyfunction]
fn svd(x: PyValue, full_matrices: Truth, compute_uv: Truth) -> PyResult<Vec<PyValue>> {
    ops::spectral::svd(&x.0, full_matrices.0, compute_uv.0).py().map(listed)
}

#[pyfunction]
fn eig(x: PyValue, left: Truth, right: Truth) -> PyResult<Vec<PyValue>> {
    ops::spectral::eig(&x.0, left.0, right.0).py().map(listed)
}

#[pyfunction]
fn schur(x: PyValue, compute_schur_vectors: Truth) -> PyResult<Vec<PyValue>> {
    ops::spectral::schur(&x.0, compute_schur_vectors.0).py().map(listed)
}

#[pyfunction]
fn hessenberg(x: PyValue) -> PyResult<Vec<PyValue>> {
    ops::reduced::hessenberg(&x.0).py().map(listed)
}

#[pyfunction]
fn tridiagonal(x: PyValue, lower: Truth) -> PyResult<Vec<PyValue>> {
    ops::reduced::tridiagonal(&x.0, lower.0).py().map(listed)
}

#[pyfunction]
fn tridiagonal_solve(dl: PyValue, d: PyValue, du: PyValue, b: PyValue) -> PyResult<PyValue> {
    ops::reduced::tridiagonal_solve(&dl.0, &d.0, &du.0, &b.0).py().map(PyValue)
}

#[pyfunction]
fn fft(x: PyValue, kind: usize, lengths: ShapeArg) -> PyResult<PyValue> {
    let Some(kind) = FftType::from_number(kind) else {
        return Err(PyValueError::new_err(format!("there is no FFT type of number {kind}")));
    };
    ferrax_ops::fft::fft(&x.0, kind, &lengths.0).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(cholesky, m)?)?;
    m.add_function(wrap_pyfunction!(cholesky_update, m)?)?;
    m.add_function(wrap_pyfunction!(triangular_solve, m)?)?;
    m.add_function(wrap_pyfunction!(lu, m)?)?;
    m.add_function(wrap_pyfunction!(lu_pivots_to_permutation, m)?)?;
    m.add_function(wrap_pyfunction!(lu_solve, m)?)?;
    m.add_function(wrap_pyfunction!(qr, m)?)?;
    m.add_function(wrap_pyfunction!(householder_product, m)?)?;
    m.add_function(wrap_pyfunction!(ormqr, m)?)?;
    m.add_function(wrap_pyfunction!(eigh, m)?)?;
    m.add_function(wrap_pyfunction!(svd, m)?)?;
    m.add_function(wrap_pyfunction!(eig, m)?)?;
    m.add_function(wrap_pyfunction!(schur, m)?)?;
    m.add_function(wrap_pyfunction!(hessenberg, m)?)?;
    m.add_function(wrap_pyfunction!(tridiagonal, m)?)?;
    m.add_function(wrap_pyfunction!(tridiagonal_solve, m)?)?;
    m.add_function(wrap_pyfunction!(fft, m)?)?;
    m.add_function(wrap_pyfunction!(solve, m)?)
}
