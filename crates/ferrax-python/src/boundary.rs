//! The edge between the façade's Python code and its users: errors leave it without the library's own frames.
//!
//! A [`Boundary`] stands in place of a public function written in Python. A call goes straight to the function; when
//! it raises, the frames of files below the library's folder are taken out of the traceback (and out of those of the
//! exceptions it was raised from), so that the last frame shown is the user's. Frames of the user's own functions
//! that the library called stay. `jax_traceback_filtering="off"` keeps everything; other ways than the usual one, and
//! files that libraries hide, are Python's to see to (`python/ferrax/_src/traceback_util.py`).
//!
//! A call is one operation to the user: `debug_nans` and `debug_infs` look at its result, not at what it is made of.
//!
//! Nothing is added to the cost of a call but the call itself; nothing is looked at until an error leaves, or while
//! somebody watches (`watch.rs`).

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyFloatingPointError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::api::source::in_library;
use crate::errors::IntoPyResult;
use crate::fastcall::{Args, FastCall, Visit, new_bare};
use crate::tree::{Leaves, flatten_into};
use crate::value::quick_value;
use crate::watch;
use ferrax::debug;
use ferrax_base::config::{Flag, checks_numbers, watched};

/// Whether errors leave without the library's frames.
static FILTER: AtomicBool = AtomicBool::new(true);

/// What filters errors instead: a function of the exception.
static OTHER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// How many exceptions of a chain (`raise ... from ...`) are looked at.
const CHAIN: usize = 8;

/// A public function.
struct Boundary(Py<PyAny>);

impl FastCall for Boundary {
    const TYPE_NAME: &'static CStr = c"ferrax.function";

    fn call(&self, py: Python<'_>, args: Args<'_, '_>) -> PyResult<Py<PyAny>> {
        if watched() {
            watch::called(self.0.bind(py), &args)?;
        }
        call(self.0.bind(py), &args)
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.0);
    }

    /// What a function has beyond its names (`__defaults__`, `__code__`, ...) is the wrapped function's.
    fn getattr(&self, slf: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.0.bind(slf.py()).getattr_opt(name)?.map(Bound::unbind))
    }
}

/// Calls a function of the library for a user.
#[inline]
pub fn call<'py>(function: &Bound<'py, PyAny>, args: &Args<'_, 'py>) -> PyResult<Py<PyAny>> {
    match args.forward(function) {
        Ok(result) => Ok(result.unbind()),
        Err(error) => match good_result(function, args, &error)? {
            Some(result) => Ok(result),
            None => Err(without_frames(args.py(), error)),
        },
    }
}

/// Packages whose functions are one operation to the user, whatever they are made of.
const WHOLE: [&str; 6] = ["numpy", "scipy", "nn", "random", "lax", "image"];

/// The result of a function of the library that `debug_nans` or `debug_infs` stopped inside, where the result itself
/// is good. `None` for other errors, and when a function of the user's may have made the number.
#[cold]
fn good_result<'py>(function: &Bound<'py, PyAny>, args: &Args<'_, 'py>, error: &PyErr) -> PyResult<Option<Py<PyAny>>> {
    let py = args.py();
    if !checks_numbers() || Flag::DisableJit.get() || !error.is_instance_of::<PyFloatingPointError>(py) {
        return Ok(None);
    }
    let module: String = function.getattr(intern!(py, "__module__"))?.extract()?;
    let package = module.strip_prefix("ferrax.").and_then(|m| m.split('.').next());
    if !package.is_some_and(|p| WHOLE.contains(&p)) {
        return Ok(None);
    }
    for argument in args.positional().chain(args.keywords().map(|(_, value)| value)) {
        // dtypes may be callable
        if argument.is_callable() && !argument.hasattr(intern!(py, "dtype"))? && !argument.is_instance_of::<PyType>() {
            return Ok(None);
        }
    }
    let Ok(result) = debug::quiet(|| args.forward(function)) else { return Ok(None) };
    let mut leaves = Leaves::new();
    flatten_into(&result, &mut leaves)?;
    for leaf in &leaves {
        if let Some(value) = quick_value(leaf.bind(py))
            && debug::holds_behind(&value).py()?
        {
            return Ok(None);
        }
    }
    Ok(Some(result.unbind()))
}

/// The error with the library's frames taken out of its tracebacks.
#[cold]
pub fn without_frames(py: Python<'_>, error: PyErr) -> PyErr {
    if !FILTER.load(Ordering::Relaxed) {
        return error;
    }
    let value = error.into_value(py).into_bound(py).into_any();
    if let Some(filter) = OTHER.get(py) {
        let _ = filter.call1(py, (&value,)); // the error matters, not that one of its frames cannot be read
        return PyErr::from_value(value);
    }
    let mut next = Some(value.clone());
    for _ in 0..CHAIN {
        let Some(exception) = next.take() else { break };
        if strip(&exception).is_err() {
            break;
        }
        next = [intern!(py, "__cause__"), intern!(py, "__context__")]
            .into_iter()
            .find_map(|name| exception.getattr(name).ok().filter(|e| !e.is_none()));
    }
    PyErr::from_value(value)
}

/// Relinks an exception's traceback around the library's frames.
fn strip(exception: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = exception.py();
    let (link, next) = (intern!(py, "__traceback__"), intern!(py, "tb_next"));
    let mut entry = exception.getattr(link)?;
    let mut kept: Option<Bound<'_, PyAny>> = None;
    let mut skipped = false;
    loop {
        let library = !entry.is_none() && is_library(&entry)?;
        if !library {
            if skipped {
                match &kept {
                    Some(last) => last.setattr(next, &entry)?,
                    None => exception.setattr(link, &entry)?,
                }
            }
            if entry.is_none() {
                return Ok(());
            }
            kept = Some(entry.clone());
        }
        skipped = library;
        entry = entry.getattr(next)?;
    }
}

/// Whether an entry of a traceback is a frame of the library's.
fn is_library(entry: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = entry.py();
    let code = entry.getattr(intern!(py, "tb_frame"))?.getattr(intern!(py, "f_code"))?;
    Ok(in_library(&code))
}

/// A callable that hides the library's frames from the errors of `function`, and binds to instances as it does.
#[pyfunction]
fn boundary(py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let object = new_bare(py, Boundary(function.clone().unbind()))?;
    let bound = object.bind(py);
    for name in ["__name__", "__qualname__", "__module__", "__doc__"] {
        if let Some(value) = function.getattr_opt(name)? {
            bound.setattr(name, value)?;
        }
    }
    bound.setattr(intern!(py, "__wrapped__"), function)?;
    Ok(object)
}

/// Whether errors leave the library without its own frames.
#[pyfunction]
fn set_traceback_filtering(on: bool) {
    FILTER.store(on, Ordering::Relaxed);
}

/// Gives the function that filters errors instead of this file.
#[pyfunction]
fn set_traceback_filter(py: Python<'_>, filter: Py<PyAny>) {
    let _ = OTHER.set(py, filter);
}

/// Adds the functions to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(set_traceback_filter, m)?)?;
    m.add_function(wrap_pyfunction!(boundary, m)?)?;
    m.add_function(wrap_pyfunction!(set_traceback_filtering, m)?)
}
