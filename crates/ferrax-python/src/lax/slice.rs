//! Slices, static and dynamic, joining and padding.

use super::args::{integers, listed, naturals, starts, wraps};
use crate::errors::IntoPyResult;
use crate::value::{IndexArg, PyValue, SizeArg, index};
use ferrax::numpy::indexing::{check_index, look_up_known};
use ferrax_base::Shape;
use ferrax_base::shape::Tuple;
use ferrax_ir::Value;
use ferrax_ops::common::canonical_axis;
use ferrax_ops::slice::{PadDim, PadDims};
use ferrax_ops::{dynamic_slice as dynamic, slice as fixed};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

#[pyfunction]
#[pyo3(signature = (operand, start_indices, limit_indices, strides=None))]
fn slice(
    operand: PyValue,
    start_indices: &Bound<'_, PyAny>,
    limit_indices: &Bound<'_, PyAny>,
    strides: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyValue> {
    let start = naturals(start_indices, "slice start_indices")?;
    let limit = naturals(limit_indices, "slice limit_indices")?;
    let strides = strides.map(|s| naturals(s, "slice strides")).transpose()?;
    fixed::slice(&operand.0, &start, &limit, strides.as_deref()).py().map(PyValue)
}

fn optional(object: Option<&Bound<'_, PyAny>>, what: &str) -> PyResult<Option<i64>> {
    object.map(|o| index(o, what)).transpose()
}

#[pyfunction]
#[pyo3(signature = (operand, start_index, limit_index, stride=IndexArg(1), axis=0), text_signature = "(operand, start_index, limit_index, stride=1, axis=0)")]
fn slice_in_dim(
    operand: PyValue,
    start_index: Option<&Bound<'_, PyAny>>,
    limit_index: Option<&Bound<'_, PyAny>>,
    stride: IndexArg,
    axis: i64,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let stride = stride.0;
    let start = optional(start_index, "start_index")?;
    let limit = optional(limit_index, "limit_index")?;
    let stride = usize::try_from(stride)
        .map_err(|_| PyTypeError::new_err(format!("slice strides must be positive, got {stride}")))?;
    fixed::slice_in_dim(&operand.0, start, limit, stride, axis).py().map(PyValue)
}

#[pyfunction]
#[pyo3(signature = (operand, index, axis=0, keepdims=true))]
fn index_in_dim(operand: PyValue, index: &Bound<'_, PyAny>, axis: i64, keepdims: bool) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let at = crate::value::index(index, "index")?;
    let out = fixed::index_in_dim(&operand.0, at, axis).py()?;
    let out = if keepdims { out } else { ferrax_ops::squeeze(&out, &[axis]).py()? };
    Ok(PyValue(out))
}

/// The operand where starts of a window are committed to.
fn where_told(operand: PyValue, starts: &[Value], operation: &str) -> PyResult<PyValue> {
    Ok(ferrax::device::where_told(&operand.0, starts.iter(), operation).py()?.map_or(operand, PyValue))
}

/// The check mode for the start of a window along one axis.
fn check_window(operand: &PyValue, start: &Value, axis: usize, size: usize, wrap: bool) -> PyResult<()> {
    check_index(start, axis, operand.0.shape()[axis], size, !wrap).py()
}

/// As [`check_window`], for a window of all axes; the last entry of `wrap` stands for the axes after it.
fn check_windows(operand: &PyValue, starts: &[Value], sizes: &[usize], wrap: &[bool]) -> PyResult<()> {
    if starts.len() != operand.0.rank() || sizes.len() != starts.len() {
        return Ok(()); // an error that the operation itself explains
    }
    for (axis, (start, &size)) in starts.iter().zip(sizes).enumerate() {
        let wrap = wrap.get(axis).or(wrap.last()).copied().unwrap_or(true);
        check_window(operand, start, axis, size, wrap)?;
    }
    Ok(())
}

/// Checks integers that index an axis, under `check_indices`.
#[pyfunction]
#[pyo3(name = "check_index")]
fn check_index_of(index: PyValue, axis: usize, size: SizeArg, wrap: bool) -> PyResult<()> {
    check_index(&index.0, axis, size.0, 1, !wrap).py()
}

/// Says whether known integers outside of their axes are left in programs under `check_indices`; gives what held before.
#[pyfunction]
fn look_up_known_indices(on: bool) -> bool {
    look_up_known(on)
}

#[pyfunction]
fn dynamic_slice(
    operand: PyValue,
    start_indices: &Bound<'_, PyAny>,
    slice_sizes: &Bound<'_, PyAny>,
    allow_negative_indices: &Bound<'_, PyAny>,
) -> PyResult<PyValue> {
    let sizes = naturals(slice_sizes, "slice slice_sizes")?;
    let (starts, wrap) = (starts(start_indices)?, wraps(allow_negative_indices)?);
    check_windows(&operand, &starts, &sizes, &wrap)?;
    let operand = where_told(operand, &starts, "dynamic_slice")?;
    dynamic::dynamic_slice(&operand.0, &starts, &sizes, &wrap).py().map(PyValue)
}

#[pyfunction]
fn dynamic_slice_in_dim(
    operand: PyValue,
    start_index: PyValue,
    slice_size: SizeArg,
    axis: i64,
    allow_negative_indices: bool,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let slice_size = slice_size.0;
    check_window(&operand, &start_index.0, axis, slice_size, allow_negative_indices)?;
    let operand = where_told(operand, std::slice::from_ref(&start_index.0), "dynamic_slice")?;
    dynamic::dynamic_slice_in_dim(&operand.0, &start_index.0, slice_size, axis, allow_negative_indices)
        .py()
        .map(PyValue)
}

#[pyfunction]
fn dynamic_index_in_dim(
    operand: PyValue,
    index: PyValue,
    axis: i64,
    keepdims: bool,
    allow_negative_indices: bool,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    check_window(&operand, &index.0, axis, 1, allow_negative_indices)?;
    let operand = where_told(operand, std::slice::from_ref(&index.0), "dynamic_slice")?;
    dynamic::dynamic_index_in_dim(&operand.0, &index.0, axis, keepdims, allow_negative_indices).py().map(PyValue)
}

/// The update in the operand's dtype when it is a Python number.
fn typed(operand: &PyValue, update: PyValue) -> PyResult<PyValue> {
    if update.0.weak() && update.0.dtype() != operand.0.dtype() {
        return ferrax_ops::convert_weak(&update.0, operand.0.dtype(), operand.0.weak()).py().map(PyValue);
    }
    Ok(update)
}

#[pyfunction]
fn dynamic_update_slice(
    operand: PyValue,
    update: PyValue,
    start_indices: &Bound<'_, PyAny>,
    allow_negative_indices: &Bound<'_, PyAny>,
) -> PyResult<PyValue> {
    let wrap = wraps(allow_negative_indices)?;
    let update = typed(&operand, update)?;
    let starts = starts(start_indices)?;
    check_windows(&operand, &starts, update.0.shape(), &wrap)?;
    let operand = where_told(operand, &starts, "dynamic_update_slice")?;
    dynamic::dynamic_update_slice(&operand.0, &update.0, &starts, &wrap).py().map(PyValue)
}

#[pyfunction]
fn dynamic_update_slice_in_dim(
    operand: PyValue,
    update: PyValue,
    start_index: PyValue,
    axis: i64,
    allow_negative_indices: bool,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let update = typed(&operand, update)?;
    let size = update.0.shape().get(axis).copied().unwrap_or(1);
    check_window(&operand, &start_index.0, axis, size, allow_negative_indices)?;
    let operand = where_told(operand, std::slice::from_ref(&start_index.0), "dynamic_update_slice")?;
    dynamic::dynamic_update_slice_in_dim(&operand.0, &update.0, &start_index.0, axis, allow_negative_indices)
        .py()
        .map(PyValue)
}

#[pyfunction]
fn dynamic_update_index_in_dim(
    operand: PyValue,
    update: PyValue,
    index: PyValue,
    axis: i64,
    allow_negative_indices: bool,
) -> PyResult<PyValue> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let update = typed(&operand, update)?;
    check_window(&operand, &index.0, axis, 1, allow_negative_indices)?;
    let operand = where_told(operand, std::slice::from_ref(&index.0), "dynamic_update_slice")?;
    dynamic::dynamic_update_index_in_dim(&operand.0, &update.0, &index.0, axis, allow_negative_indices)
        .py()
        .map(PyValue)
}

#[pyfunction]
fn concatenate(operands: Vec<PyValue>, dimension: i64) -> PyResult<PyValue> {
    if operands.is_empty() {
        return Err(PyValueError::new_err("concatenate requires a non-empty sequences of arrays"));
    }
    let parts: Vec<_> = operands.into_iter().map(|v| v.0).collect();
    let Ok(axis) = usize::try_from(dimension) else {
        let shapes: Vec<String> = parts.iter().map(|p| ferrax_base::shape::Tuple(p.shape()).to_string()).collect();
        return Err(PyTypeError::new_err(format!(
            "concatenate dimension out of bounds: dimension {dimension} for shapes {}.",
            shapes.join(", ")
        )));
    };
    fixed::concatenate(&parts, axis).py().map(PyValue)
}

#[pyfunction]
fn pad(operand: PyValue, padding_value: PyValue, padding_config: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let mut config = PadDims::new();
    for entry in padding_config.try_iter()? {
        let entry = entry?;
        match integers(&entry, "an entry of padding_config")?.as_slice() {
            [low, high, interior] => config.push(PadDim(*low, *high, *interior)),
            _ => {
                let shown = crate::shorten::repr(&entry);
                return Err(PyValueError::new_err(format!(
                    "padding_config must hold (low, high, interior) for each axis, got {shown}"
                )));
            }
        }
    }
    if padding_value.0.rank() != 0 {
        let shape = Tuple(padding_value.0.shape());
        return Err(PyValueError::new_err(format!(
            "padding_value must be a scalar; got np.shape(padding_value)={shape}"
        )));
    }
    fixed::pad(&operand.0, &padding_value.0, &config).py().map(PyValue)
}

#[pyfunction]
fn split(operand: PyValue, sizes: &Bound<'_, PyAny>, axis: i64) -> PyResult<Vec<PyValue>> {
    let axis = canonical_axis(axis, operand.0.rank()).py()?;
    let given = integers(sizes, "an element of sizes")?;
    if given.iter().any(|&n| n < 0) {
        return Err(PyValueError::new_err(format!("Sizes passed to split must be nonnegative, got {given:?}")));
    }
    let sizes: Shape = given.into_iter().map(|n| n as usize).collect();
    fixed::split(&operand.0, &sizes, axis).py().map(listed)
}

/// Adds the functions of this family.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(slice, m)?)?;
    m.add_function(wrap_pyfunction!(slice_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(index_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(check_index_of, m)?)?;
    m.add_function(wrap_pyfunction!(look_up_known_indices, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_slice, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_slice_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_index_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_update_slice, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_update_slice_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(dynamic_update_index_in_dim, m)?)?;
    m.add_function(wrap_pyfunction!(concatenate, m)?)?;
    m.add_function(wrap_pyfunction!(pad, m)?)?;
    m.add_function(wrap_pyfunction!(split, m)?)
}
