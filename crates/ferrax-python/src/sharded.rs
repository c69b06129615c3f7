//! Shardings over several devices at the boundary: the objects behind the numbers that arrays have.
//!
//! `python/ferrax/sharding/` has the classes and the rules; here each sharding that an array or a program has is kept with
//! its number. Read next: `python/ferrax/sharding/_placement.py`.

use crate::devices::{self, Device};
use crate::errors::{IntoPyResult, carry};
use crate::value::{PyValue, from_value, to_value};
use ferrax::executable::materialize;
use ferrax_base::fork::Lock;
use ferrax_base::{Buffer, Result};
use ferrax_ir::device::{Sharding, intern};
use ferrax_ir::op::BatchAxis;
use ferrax_ir::{Array, DeviceId, JaxprRef, Tiles, Value};
use ferrax_ops::collective::AxisNames;
use ferrax_transform::VmapAxis;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ptr::NonNull;
use std::sync::Arc;

/// A sharding's number.
#[pyclass(frozen, eq, hash, module = "ferrax.sharding", name = "Place", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PyPlace(pub DeviceId);

/// The sharding objects by token.
static OBJECTS: Lock<Vec<Py<PyAny>>> = Lock::new(Vec::new());

/// Gives a sharding a number; `replicated` is that of its replicated form, `None` when it is that. `tiles` says how arrays
/// are cut where devices have memories of their own: tiles along the axes, copies of each, and devices in order. `open` are
/// axes that programs which say it may divide further, `None` for all.
#[pyfunction]
fn intern_sharding(
    sharding: Py<PyAny>,
    devices: Vec<Device>,
    replicated: Option<PyPlace>,
    text: &str,
    tiles: Option<(Vec<usize>, usize, Vec<usize>)>,
    open: Option<Vec<usize>>,
) -> PyResult<PyPlace> {
    let token = {
        let mut objects = OBJECTS.lock();
        objects.push(sharding);
        objects.len() - 1
    };
    let devices: Arc<[DeviceId]> = devices.iter().map(|d| d.0).collect();
    let tiles = tiles.map(|(counts, copies, order)| Tiles { counts, copies, order });
    let replicated = replicated.map(|p| p.0);
    intern(Sharding { devices, replicated, text: text.into(), token, tiles, open }).py().map(PyPlace)
}

/// The sharding object of a number; `None` when it is one device.
pub fn object(py: Python<'_>, id: DeviceId) -> PyResult<Option<Bound<'_, PyAny>>> {
    let Some(sharding) = id.sharding() else { return Ok(None) };
    let found = OBJECTS.lock().get(sharding.token).map(|o| o.clone_ref(py));
    match found {
        Some(object) => Ok(Some(object.into_bound(py))),
        None => Err(PyRuntimeError::new_err("a sharding has no object")),
    }
}

/// The sharding or device of a number, as an object.
pub fn any_object(py: Python<'_>, id: DeviceId) -> PyResult<Bound<'_, PyAny>> {
    match object(py, id)? {
        Some(object) => Ok(object),
        None => devices::object(py, id).map(Bound::into_any),
    }
}

/// Asks `ferrax.sharding._propagation` how the results of a program are sharded.
fn rules(jaxpr: &JaxprRef, operands: &[Option<DeviceId>], alone: bool) -> Result<(Vec<Option<DeviceId>>, bool)> {
    Python::attach(|py| {
        let operands =
            operands.iter().map(|d| d.map(|d| any_object(py, d)).transpose()).collect::<PyResult<Vec<_>>>()?;
        let program = Py::new(py, crate::api::jaxpr::PyClosed::new(jaxpr.clone()))?;
        let module = py.import("ferrax.sharding._propagation")?;
        let found = module.call_method1("places", (program, PyList::new(py, operands)?, alone))?;
        let (places, everywhere): (Vec<Bound<'_, PyAny>>, bool) = found.extract()?;
        Ok((places.iter().map(devices::parse).collect::<PyResult<_>>()?, everywhere))
    })
    .map_err(carry)
}

/// Asks it for the sharding of a batch of what has one.
fn batched(sharding: DeviceId, at: usize, axis: &BatchAxis) -> Result<DeviceId> {
    Python::attach(|py| {
        let Some(object) = object(py, sharding)? else { return Ok(sharding) };
        let module = py.import("ferrax.sharding._propagation")?;
        let found = module.call_method1("batched", (object, at, axis.spread))?;
        devices::parse(&found).map(|found| found.unwrap_or(sharding))
    })
    .map_err(carry)
}

/// A traced value that a program puts somewhere.
#[pyfunction]
fn sharding_constraint(x: PyValue, place: &Bound<'_, PyAny>) -> PyResult<PyValue> {
    let Some(place) = devices::parse(place)? else { return Ok(x) };
    ferrax_ops::placed::sharding_constraint(&x.0, place).py().map(PyValue)
}

/// An array of the same elements somewhere else.
#[pyfunction]
fn put(py: Python<'_>, x: &Bound<'_, PyAny>, place: PyPlace, committed: bool) -> PyResult<Py<PyAny>> {
    let array = materialize(to_value(x)?).py()?;
    let weak = array.aval().weak;
    from_value(py, Value::Array(ferrax::device::copied(&array, weak, place.0, committed).py()?))
}

/// The elements of an array as one that is nowhere in particular, in the same memory.
#[pyfunction]
fn alias(py: Python<'_>, x: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let array = materialize(to_value(x)?).py()?;
    if !array.device().on_cpu() {
        return from_value(py, Value::Array(array));
    }
    let pin = array.pin_owned().py()?;
    let (start, len) = (pin.buffer().as_ptr().cast_mut(), pin.buffer().len());
    let start = NonNull::new(start).unwrap_or(NonNull::dangling());
    // SAFETY: the pin keeps the elements where they are, and nobody writes to them while it is there.
    let buffer = unsafe { Buffer::foreign(start, len, Box::new(pin)) };
    from_value(py, Value::Array(Array::placed(array.aval().clone(), buffer, DeviceId::default(), false)))
}

/// Whether an array is over several devices, or has a mesh.
#[pyfunction]
fn place_of(x: PyValue) -> Option<PyPlace> {
    match &x.0 {
        Value::Array(a) => Some(PyPlace(a.device())).filter(|p| p.0.is_sharded()),
        _ => None,
    }
}

/// The sharding of a number.
#[pyfunction]
fn sharding_of(py: Python<'_>, place: PyPlace) -> PyResult<Bound<'_, PyAny>> {
    any_object(py, place.0)
}

/// Makes a place the default of this thread's new arrays, `None` for none; gives the token for `restore_default_device`.
#[pyfunction]
fn enter_default_place(place: Option<PyPlace>) -> i64 {
    devices::encode(ferrax::device::set_local_default(place.map(|p| Some(p.0))))
}

/// The value, which counts as varying over manual axes.
#[pyfunction]
fn pvary(x: PyValue, names: Vec<String>) -> PyResult<PyValue> {
    ferrax_ops::collective::pvary(&x.0, axis_names(names)).py().map(PyValue)
}

/// The value, whose gradient is due over manual axes.
#[pyfunction]
fn preduced(x: PyValue, names: Vec<String>) -> PyResult<PyValue> {
    ferrax_ops::collective::preduced(&x.0, axis_names(names)).py().map(PyValue)
}

/// The value, which counts as terms of a sum that is due over manual axes.
#[pyfunction]
fn vary_unreduced(x: PyValue, names: Vec<String>) -> PyResult<PyValue> {
    ferrax_ops::collective::vary_unreduced(&x.0, axis_names(names)).py().map(PyValue)
}

fn axis_names(names: Vec<String>) -> AxisNames {
    AxisNames(names.into_iter().map(Arc::from).collect())
}

/// The named axes of these that are manual and checked.
#[pyfunction]
fn checked_axes(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|n| ferrax_ir::trace::manual_bit(n) != 0).collect()
}

/// The value inside of `shard_map`, whose type says of sums that are due over its axes what a number means.
#[pyfunction]
fn marked(x: PyValue, number: u32) -> PyValue {
    PyValue(ferrax_transform::marked(&x.0, number))
}

/// Maps a function of a flat list over an axis, checked for what varies if it is `manual`; gives pairs of results and the
/// places of the axis in them, `None` where they are the same for all of it.
#[pyfunction]
fn map_flat<'py>(
    py: Python<'py>,
    fun: &Bound<'py, PyAny>,
    args: Vec<PyValue>,
    axes: Vec<Option<usize>>,
    size: usize,
    name: &str,
    manual: bool,
) -> PyResult<Vec<(Py<PyAny>, Option<usize>)>> {
    let bit = if manual { ferrax_ir::manual::bit(name).py()? } else { 0 };
    let axis = VmapAxis { manual: bit, devices: true, ..VmapAxis::new(size, Some(name.into())) };
    let values: Vec<Value> = args.into_iter().map(|v| v.0).collect();
    let debug = ferrax_ir::DebugInfo::named("shard_map");
    let call = |mapped: &[Value]| {
        let run = || {
            let objects = mapped.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Vec<_>>>()?;
            fun.call1((PyList::new(py, objects)?,))?
                .try_iter()?
                .map(|v| to_value(&v?))
                .collect::<PyResult<Vec<Value>>>()
        };
        run().map_err(carry)
    };
    let outs = ferrax_transform::vmap(debug, axis, &values, &axes, call).py()?;
    outs.into_iter().map(|(v, at)| Ok((from_value(py, v)?, at))).collect()
}

/// Adds the functions, and installs the rules.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax::sharded::set_rules(rules);
    ferrax_ops::placed::set_batched(batched);
    m.add_class::<PyPlace>()?;
    m.add_function(wrap_pyfunction!(intern_sharding, m)?)?;
    m.add_function(wrap_pyfunction!(sharding_constraint, m)?)?;
    m.add_function(wrap_pyfunction!(put, m)?)?;
    m.add_function(wrap_pyfunction!(alias, m)?)?;
    m.add_function(wrap_pyfunction!(place_of, m)?)?;
    m.add_function(wrap_pyfunction!(sharding_of, m)?)?;
    m.add_function(wrap_pyfunction!(enter_default_place, m)?)?;
    m.add_function(wrap_pyfunction!(pvary, m)?)?;
    m.add_function(wrap_pyfunction!(preduced, m)?)?;
    m.add_function(wrap_pyfunction!(vary_unreduced, m)?)?;
    m.add_function(wrap_pyfunction!(checked_axes, m)?)?;
    m.add_function(wrap_pyfunction!(marked, m)?)?;
    m.add_function(wrap_pyfunction!(map_flat, m)?)
}
