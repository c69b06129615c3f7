//! Leak reports: the search for who keeps a tracer runs in Python (`ferrax/_leaks.py`), only when an error is shown.

use crate::array::PyArray;
use ferrax_ir::{DebugInfo, TraceRef, Tracer, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;

fn ask(function: &str, id: u64, traced: &DebugInfo) -> Option<String> {
    Python::attach(|py| {
        let place = traced.place.as_deref();
        let found = py.import("ferrax._leaks").ok()?.call_method1(function, (id, place)).ok()?;
        found.extract::<Option<String>>().ok()?
    })
}

fn finder(t: &Tracer) -> Option<String> {
    ask("find_tracer", t.id() as u64, t.trace().debug())
}

/// Cycles that nobody reaches are no leaks. New ones are collected first, which takes no time to speak of; old ones only
/// where no name is found.
fn report(trace: &TraceRef) -> Option<String> {
    let text = |place| format!("It is kept in {place}");
    let ask = |function| ask(function, trace.id().0, trace.debug());
    let ended = || Arc::strong_count(trace) == 1;
    collect("collect_young");
    if ended() {
        return None;
    }
    if let Some(place) = ask("find_trace") {
        return Some(text(place));
    }
    collect("collect_all");
    if ended() { None } else { ask("find_holder").map(text) }
}

fn collect(function: &str) {
    // a failed collection leaves what it did not free, which is then reported
    let _ = Python::attach(|py| py.import("ferrax._leaks")?.call_method0(function).map(drop));
}

fn tracer(object: &Bound<'_, PyAny>) -> PyResult<Tracer> {
    match object.cast::<PyArray>().map(|a| &a.get().value) {
        Ok(Value::Tracer(t)) => Ok(t.clone()),
        _ => Err(PyTypeError::new_err("not a tracer")),
    }
}

/// Under `checking_leaks`: tells the watch of a new tracer.
#[cold]
pub fn note(tracer: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = tracer.py();
    py.import(intern!(py, "ferrax._leak_watch"))?.call_method1(intern!(py, "note"), (tracer,))?;
    Ok(())
}

/// Under `checking_leaks`: calls a function that is being traced, its lines being followed.
#[cold]
pub fn call_watched<'py>(
    fun: &Bound<'py, PyAny>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = fun.py();
    let kwargs = kwargs.map_or_else(|| PyDict::new(py), Clone::clone);
    py.import(intern!(py, "ferrax._leak_watch"))?.call_method1(intern!(py, "call"), (fun, args, kwargs))
}

/// A number that identifies a tracer while it lives.
#[pyfunction]
fn tracer_id(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(tracer(object)?.id() as u64)
}

/// The number of the trace that a tracer belongs to.
#[pyfunction]
fn trace_id(object: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(tracer(object)?.trace().id().0)
}

/// Installs the reports and adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax_ir::trace::set_leak_finder(finder);
    ferrax_transform::staging::set_leak_report(report);
    m.add_function(wrap_pyfunction!(tracer_id, m)?)?;
    m.add_function(wrap_pyfunction!(trace_id, m)?)
}
