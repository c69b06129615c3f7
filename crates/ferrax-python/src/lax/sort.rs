//! Sorting.

use super::args::{Truth, listed};
use crate::dtypes::DTypeArg;
use crate::errors::IntoPyResult;
use crate::value::PyValue;
use ferrax_ops::common::canonical_axis;
use ferrax_ops::sort as ops;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyfunction]
fn sort(operands: Vec<PyValue>, dimension: i64, is_stable: Truth, num_keys: i64) -> PyResult<Vec<PyValue>> {
    let args: Vec<_> = operands.into_iter().map(|v| v.0).collect();
    let axis = match args.first() {
        Some(x) => canonical_axis(dimension, x.rank()).py()?,
        None => 0,
    };
    let keys = usize::try_from(num_keys).unwrap_or(0);
    ops::sort(&args, axis, is_stable.0, keys).py().map(listed)
}

#[pyfunction]
#[pyo3(signature = (x, axis, is_stable=Truth(true), dtype=None))]
fn argsort(x: PyValue, axis: i64, is_stable: Truth, dtype: Option<DTypeArg>) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, x.0.rank()).py()?;
    let default = ferrax_base::DType::I64.canonical(ferrax_base::config::x64());
    ops::argsort(&x.0, axis, is_stable.0, dtype.map_or(default, |d| d.0)).py().map(PyValue)
}

#[pyfunction]
fn top_k(operand: PyValue, k: i64, axis: i64) -> PyResult<Vec<PyValue>> {
    let Ok(count) = usize::try_from(k) else {
        return Err(PyValueError::new_err(format!("k argument to top_k must be nonnegative, got {k}")));
    };
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    ops::top_k(&operand.0, count, axis).py().map(listed)
}

#[pyfunction]
fn approx_k(operand: PyValue, k: usize, axis: i64, largest: Truth) -> PyResult<Vec<PyValue>> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    ops::approx_k(&operand.0, k, axis, largest.0).py().map(listed)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(sort, m)?)?;
    m.add_function(wrap_pyfunction!(argsort, m)?)?;
    m.add_function(wrap_pyfunction!(top_k, m)?)?;
    m.add_function(wrap_pyfunction!(approx_k, m)?)
}
