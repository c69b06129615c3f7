//! `device_put`: data onto devices.

use crate::devices;
use crate::errors::IntoPyResult;
use crate::value::{from_value, to_value};
use ferrax::executable::materialize;
use ferrax_ir::Value;
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
    let Some(id) = to else { return from_value(py, Value::Array(array)) };
    if may_alias && array.device() == id && array.committed() {
        return from_value(py, Value::Array(array));
    }
    let weak = array.aval().weak;
    from_value(py, Value::Array(ferrax::device::copied(&array, weak, id, true).py()?))
}

/// Adds the function.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(device_put_leaf, m)?)
}
