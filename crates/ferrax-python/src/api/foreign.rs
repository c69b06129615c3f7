//! `ferrax.ffi` below its façade: capsules become addresses of handlers, Python's constants attributes.

use super::custom::method_of;
use crate::errors::IntoPyResult;
use crate::value::{ShapeArg, from_value, to_value};
use ferrax_base::{Aval, DType, Scalar};
use ferrax_ffi::{Attribute, Attributes, Handlers};
use ferrax_ir::Value;
use ferrax_ops::control::custom_vjp::AvalList;
use ferrax_ops::foreign::{AttributeList, FfiCall, ffi_call};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

/// The address in a capsule of any name.
fn address(capsule: &Bound<'_, PyAny>) -> PyResult<usize> {
    if !capsule.is_instance_of::<PyCapsule>() {
        return Err(PyTypeError::new_err(format!(
            "an FFI handler must be a PyCapsule, not {}; wrap a function of ctypes with jax.ffi.pycapsule(function)",
            capsule.get_type().name()?
        )));
    }
    // SAFETY: a capsule; the pointer is asked for under the capsule's own name
    let pointer = unsafe {
        let name = ffi::PyCapsule_GetName(capsule.as_ptr());
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), name)
    };
    if pointer.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(pointer as usize) }
}

/// Registers handlers, capsules by the names of their stages.
#[pyfunction]
fn ffi_register(name: &str, stages: &Bound<'_, PyDict>, platform: &str) -> PyResult<()> {
    let mut handlers = Handlers::default();
    for (stage, capsule) in stages {
        let stage: String = stage.extract()?;
        let place = match stage.as_str() {
            "instantiate" => &mut handlers.instantiate,
            "prepare" => &mut handlers.prepare,
            "initialize" => &mut handlers.initialize,
            "execute" => &mut handlers.execute,
            other => {
                return Err(PyValueError::new_err(format!(
                    "{other:?} is no stage of an FFI handler: 'instantiate', 'prepare', 'initialize' and 'execute' are"
                )));
            }
        };
        *place = address(&capsule)?;
    }
    // SAFETY: the capsules' owner says that they hold handlers of loaded libraries: that is what the function is for
    unsafe { ferrax_ffi::register(name, platform, handlers) }.py()
}

/// Registers a type of handlers' state by capsules of its id and of what ends its objects.
#[pyfunction]
fn ffi_register_type(name: &str, id: &Bound<'_, PyAny>, info: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let (id, info) = (address(id)?, info.map_or(Ok(0), address)?);
    // SAFETY: as in `ffi_register`
    unsafe { ferrax_ffi::register_type(name, id, info) }.py()
}

fn dtype(name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| PyTypeError::new_err(format!("an FFI call takes no elements of type {name}")))
}

/// Attributes from what `ferrax/ffi.py` makes of constants: bytes, (dtype, bytes, whether it is an array), or such by
/// name.
fn attributes(all: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let mut out = Attributes::new();
    for (name, value) in all {
        let attribute = if let Ok(text) = value.cast::<PyBytes>() {
            Attribute::Text(text.as_bytes().to_vec())
        } else if let Ok(inner) = value.cast::<PyDict>() {
            Attribute::Dictionary(attributes(inner)?)
        } else {
            let (name, bytes, array): (String, Vec<u8>, bool) = value.extract()?;
            let dtype = dtype(&name)?;
            if array { Attribute::Array { dtype, bytes } } else { Attribute::Scalar(Scalar::from_bytes(dtype, &bytes)) }
        };
        out.insert(name.extract()?, attribute);
    }
    Ok(out)
}

/// Calls a target; `results` are shapes and names of dtypes.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn bind_ffi_call(
    py: Python<'_>,
    target_name: String,
    results: Vec<(ShapeArg, String)>,
    args: Vec<Bound<'_, PyAny>>,
    constants: &Bound<'_, PyDict>,
    input_layouts: Vec<Vec<usize>>,
    output_layouts: Vec<Vec<usize>>,
    input_output_aliases: Vec<Vec<usize>>,
    has_side_effect: bool,
    vmap_method: Option<&str>,
) -> PyResult<Vec<Py<PyAny>>> {
    let aval = |(shape, name): (ShapeArg, String)| Ok(Aval::new(dtype(&name)?, &shape.0));
    let params = FfiCall {
        attributes: AttributeList(attributes(constants)?),
        has_side_effect,
        input_layouts,
        input_output_aliases,
        output_layouts,
        result_avals: AvalList(results.into_iter().map(aval).collect::<PyResult<_>>()?),
        target_name,
        vmap_method: method_of(vmap_method)?,
    };
    let args: Vec<Value> = args.iter().map(to_value).collect::<PyResult<_>>()?;
    let outs = ffi_call(params, &args).py()?;
    outs.into_iter().map(|v| from_value(py, v)).collect()
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(ffi_register, m)?)?;
    m.add_function(wrap_pyfunction!(ffi_register_type, m)?)?;
    m.add_function(wrap_pyfunction!(bind_ffi_call, m)?)
}
