//! `device_put`: data onto devices.

use crate::devices;
use crate::errors::IntoPyResult;
use crate::value::{from_value, to_value};
use ferrax::executable::materialize;
use ferrax_base::Aval;
use ferrax_ir::{Value, trace::made};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// One leaf on a device: committed there when a device is given, where it is (or the default device) otherwise.
#[pyfunction]
fn device_put_leaf(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    device: &Bound<'_, PyAny>,
    may_alias: bool,
) -> PyResult<Py<PyAny>> {
    let to = devices::parse(device)?;
    let value = if to.is_none() { ferrax::device::outside_of_meshes(|| to_value(x))? } else { to_value(x)? };
    if matches!(value, Value::Tracer(_)) {
        return Ok(x.clone().unbind());
    }
    let array = materialize(value).py()?;
    let put = match to {
        Some(id) if !may_alias || array.device() != id || !array.committed() => {
            let weak = array.aval().weak;
            ferrax::device::copied(&array, weak, id, true).py()?
        }
        _ => array,
    };
    from_value(py, made(Value::Array(put)).py()?)
}

/// An array over several devices with memories of their own, of what those of this process have of it, in their order.
#[pyfunction]
fn assembled(
    py: Python<'_>,
    shape: Vec<usize>,
    dtype: &Bound<'_, PyAny>,
    place: &Bound<'_, PyAny>,
    parts: Vec<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let Some(device) = devices::parse(place)? else {
        return Err(PyTypeError::new_err("an array is assembled somewhere"));
    };
    let values = ferrax::device::outside_of_meshes(|| parts.iter().map(to_value).collect::<PyResult<Vec<_>>>())?;
    let arrays = values.into_iter().map(|v| materialize(v).py()).collect::<PyResult<Vec<_>>>()?;
    let dtype = crate::dtypes::parse(dtype, "an array")?.canonical(py, None)?;
    let aval = Aval::new(dtype, &shape);
    from_value(py, Value::Array(ferrax::device::assembled(aval, &arrays, device).py()?))
}

/// What one of several devices with memories of their own has of an array over them, on the host; by its place among them.
#[pyfunction]
fn part_of(py: Python<'_>, x: &Bound<'_, PyAny>, place: usize) -> PyResult<Py<PyAny>> {
    let Value::Array(array) = to_value(x)? else { return Err(PyTypeError::new_err("an array is expected")) };
    from_value(py, Value::Array(ferrax::device::part(&array, place).py()?))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(assembled, m)?)?;
    m.add_function(wrap_pyfunction!(part_of, m)?)?;
    m.add_function(wrap_pyfunction!(device_put_leaf, m)?)
}
