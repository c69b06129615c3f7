//! Warnings that point at the user's line, whatever lies between it and the one that warns.
//!
//! Python's own machinery decides whether one is shown: a warning belongs to the line of the innermost frame outside the
//! library, and is told apart by that module's registry, so that each line warns once under the default filters.

use crate::api::source::in_library;
use crate::dtypes::imported;
use ferrax_base::DType;
use pyo3::exceptions::{PyDeprecationWarning, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTypeInfo, intern};

static GETFRAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static WARN_EXPLICIT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static COMPLEX_WARNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Warns at the user's line. `text` is given the name of the library's function that the user called, `None` where no
/// frame says it.
#[cold]
pub fn at_user(py: Python<'_>, category: &Bound<'_, PyAny>, text: impl FnOnce(Option<&str>) -> String) -> PyResult<()> {
    let mut called: Option<String> = None;
    let mut frame = imported(&GETFRAME, py, "sys", "_getframe")?.call0()?;
    loop {
        let code = frame.getattr(intern!(py, "f_code"))?;
        if !in_library(&code) {
            break;
        }
        let back = frame.getattr(intern!(py, "f_back"))?;
        if back.is_none() {
            break;
        }
        called = Some(public_name(&code.getattr(intern!(py, "co_qualname"))?.extract::<String>()?));
        frame = back;
    }
    let globals = frame.getattr(intern!(py, "f_globals"))?.cast_into::<PyDict>()?;
    let registry = globals.call_method1(intern!(py, "setdefault"), ("__warningregistry__", PyDict::new(py)))?;
    let file = frame.getattr(intern!(py, "f_code"))?.getattr(intern!(py, "co_filename"))?;
    let line = frame.getattr(intern!(py, "f_lineno"))?;
    // without a module the warning would be left out
    let module = match globals.get_item("__name__")? {
        Some(name) => name,
        None => PyString::new(py, "<string>").into_any(),
    };
    let text = text(called.as_deref());
    let warn = imported(&WARN_EXPLICIT, py, "warnings", "warn_explicit")?;
    warn.call1((text, category, file, line, module, registry)).map(|_| ())
}

/// The public name in a qualified one: `normal` of `normal.<locals>.init`, `view` of `_view`.
fn public_name(qualified: &str) -> String {
    let outer = qualified.split(".<locals>").next().unwrap_or(qualified);
    outer.rsplit('.').next().unwrap_or(outer).trim_start_matches('_').to_owned()
}

/// A 64-bit dtype was asked for by name and 32 bits are what there is: which of them it is to be, with a warning or an
/// error, is `jax_explicit_x64_dtypes`.
#[cold]
pub fn truncated(py: Python<'_>, asked: DType, given: DType, asker: &str) -> PyResult<DType> {
    let settings = py.import("ferrax.config")?.getattr("config")?;
    let mode = settings.call_method1("read", ("jax_explicit_x64_dtypes",))?.extract::<String>()?;
    match &*mode {
        "allow" => return Ok(asked),
        "error" => {
            let place = if asker.is_empty() { String::new() } else { format!(" requested in {asker}") };
            return Err(PyValueError::new_err(format!(
                "Explicitly requested dtype {asked}{place} is not available: jax_enable_x64 is off and \
                 jax_explicit_x64_dtypes is \"error\". Set the one, or let the other be \"allow\"."
            )));
        }
        _ => {}
    }
    at_user(py, PyUserWarning::type_object(py).as_any(), |called| {
        let place = if asker.is_empty() { called.unwrap_or("") } else { asker };
        let place = if place.is_empty() { String::new() } else { format!(" requested in {place}") };
        format!(
            "Explicitly requested dtype {asked}{place} is not available, and will be truncated to dtype {given}. To \
             enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment \
             variable."
        )
    })?;
    Ok(given)
}

/// A conversion gives up imaginary parts: NumPy's warning of that.
#[cold]
pub fn imaginary_parts(py: Python<'_>) -> PyResult<()> {
    let category = imported(&COMPLEX_WARNING, py, "numpy.exceptions", "ComplexWarning")?;
    at_user(py, &category, |_| "Casting complex values to real discards the imaginary part".to_owned())
}

/// Whether a conversion gives up imaginary parts.
pub fn is_lossy(from: DType, to: DType) -> bool {
    from.is_complex() && !to.is_complex() && !to.is_bool()
}

/// Warns that a conversion gives up imaginary parts; of `astype`, that it will become an error.
#[pyfunction]
#[pyo3(signature = (astype=false))]
fn warn_imaginary_parts(py: Python<'_>, astype: bool) -> PyResult<()> {
    if !astype {
        return imaginary_parts(py);
    }
    at_user(py, PyDeprecationWarning::type_object(py).as_any(), |_| {
        "Casting from complex to real dtypes will soon raise a ValueError. Please first use jnp.real or jnp.imag to take \
         the real/imaginary component of your input."
            .to_owned()
    })
}

/// Adds the function to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(warn_imaginary_parts, m)?)
}
