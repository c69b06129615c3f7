//! Gather and the scatters.

use super::args::{Truth, fill, mode, naturals};
use crate::errors::IntoPyResult;
use crate::value::PyValue;
use ferrax_loops::{GatherDims, IndexMode, ScatterDims, ScatterOp};
use ferrax_ops::common::canonical_axis;
use ferrax_ops::gather_scatter::{self as ops, GatherOptions, ScatterOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn field<const N: usize>(numbers: &Bound<'_, PyAny>, name: &str) -> PyResult<smallvec::SmallVec<[usize; N]>> {
    Ok(naturals(&numbers.getattr(name)?, name)?.into_iter().collect())
}

fn gather_dims(n: &Bound<'_, PyAny>) -> PyResult<GatherDims> {
    Ok(GatherDims {
        offset_dims: field(n, "offset_dims")?,
        collapsed_slice_dims: field(n, "collapsed_slice_dims")?,
        start_index_map: field(n, "start_index_map")?,
        operand_batching_dims: field(n, "operand_batching_dims")?,
        start_indices_batching_dims: field(n, "start_indices_batching_dims")?,
    })
}

fn scatter_dims(n: &Bound<'_, PyAny>) -> PyResult<ScatterDims> {
    Ok(ScatterDims {
        update_window_dims: field(n, "update_window_dims")?,
        inserted_window_dims: field(n, "inserted_window_dims")?,
        scatter_dims_to_operand_dims: field(n, "scatter_dims_to_operand_dims")?,
        operand_batching_dims: field(n, "operand_batching_dims")?,
        scatter_indices_batching_dims: field(n, "scatter_indices_batching_dims")?,
    })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn gather(
    operand: PyValue,
    start_indices: PyValue,
    dimension_numbers: &Bound<'_, PyAny>,
    slice_sizes: &Bound<'_, PyAny>,
    unique_indices: Truth,
    indices_are_sorted: Truth,
    mode_: Option<&Bound<'_, PyAny>>,
    fill_value: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyValue> {
    let options = GatherOptions {
        mode: mode(mode_)?.unwrap_or(IndexMode::FillOrDrop),
        fill: fill(fill_value)?,
        sorted: indices_are_sorted.0,
        unique: unique_indices.0,
    };
    let dims = gather_dims(dimension_numbers)?;
    let sizes = naturals(slice_sizes, "slice_sizes")?;
    ops::gather(&operand.0, &start_indices.0, &dims, &sizes, options).py().map(PyValue)
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn scatter(
    op: &str,
    operand: PyValue,
    scatter_indices: PyValue,
    updates: PyValue,
    dimension_numbers: &Bound<'_, PyAny>,
    indices_are_sorted: Truth,
    unique_indices: Truth,
    mode_: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyValue> {
    let op = match op {
        "set" => ScatterOp::Set,
        "add" => ScatterOp::Add,
        "sub" => ScatterOp::Sub,
        "mul" => ScatterOp::Mul,
        "min" => ScatterOp::Min,
        "max" => ScatterOp::Max,
        other => return Err(PyValueError::new_err(format!("unknown scatter: {other}"))),
    };
    let options = ScatterOptions {
        mode: mode(mode_)?.unwrap_or(IndexMode::FillOrDrop),
        sorted: indices_are_sorted.0,
        unique: unique_indices.0,
    };
    let dims = scatter_dims(dimension_numbers)?;
    ops::scatter(op, &operand.0, &scatter_indices.0, &updates.0, &dims, options).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (x, indices, axis, mode_=None, fill_value=None, sorted=Truth(false), unique=Truth(false)))]
fn take(
    x: PyValue,
    indices: PyValue,
    axis: i64,
    mode_: Option<&Bound<'_, PyAny>>,
    fill_value: Option<&Bound<'_, PyAny>>,
    sorted: Truth,
    unique: Truth,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, x.0.rank()).py()?;
    let options = GatherOptions {
        mode: mode(mode_)?.unwrap_or(IndexMode::FillOrDrop),
        fill: fill(fill_value)?,
        sorted: sorted.0,
        unique: unique.0,
    };
    ops::take(&x.0, &indices.0, axis, options).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (x, indices, axis, mode_=None, fill_value=None))]
fn take_along_axis(
    x: PyValue,
    indices: PyValue,
    axis: i64,
    mode_: Option<&Bound<'_, PyAny>>,
    fill_value: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, x.0.rank()).py()?;
    let options = GatherOptions {
        mode: mode(mode_)?.unwrap_or(IndexMode::FillOrDrop),
        fill: fill(fill_value)?,
        ..GatherOptions::default()
    };
    ops::take_along_axis(&x.0, &indices.0, axis, options).py().map(PyValue)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(gather, m)?)?;
    m.add_function(wrap_pyfunction!(scatter, m)?)?;
    m.add_function(wrap_pyfunction!(take, m)?)?;
    m.add_function(wrap_pyfunction!(take_along_axis, m)?)
}
