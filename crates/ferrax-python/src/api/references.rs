//! What the façade's references (`ferrax.new_ref`) need of the core: which traces have used one that is older than they
//! are, and which calls got one as an argument.
//!
//! A reference is a Python object that holds a value. Programs are pure: a function that reads or writes references runs
//! as one that takes their values and gives their new ones. `python/ferrax/_refs.py` makes that function; here a traced
//! call learns that it must.

use super::jaxpr::PyClosed;
use crate::tree::TreeDef;
use crate::value::{from_value, to_value};
use ferrax_ir::trace::{TraceId, base, base_id, mapping};
use ferrax_ir::{Jaxpr, Payload, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::cell::Cell;

// `call` of `jit` and `vmap` answers it; elsewhere a user sees it
pyo3::create_exception!(ferrax, ReferenceUsed, pyo3::exceptions::PyTypeError, "A traced call uses a reference.");

thread_local! {
    /// The innermost staging trace that used a reference which is older than itself.
    static NOTED: Cell<u64> = const { Cell::new(0) };
}

struct Hooks {
    class: Py<PyType>,
    jitted: Py<PyAny>,
    vmapped: Py<PyAny>,
    ending: Py<PyAny>,
    ended: Py<PyAny>,
}

static HOOKS: PyOnceLock<Hooks> = PyOnceLock::new();

/// The class of views of references.
static VIEWS: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The table of classes whose values are no arrays, once there is one.
static HIGH: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Whether an object is a value that is no array, which traced functions take as they take references.
pub fn is_high(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    HIGH.get(py).is_some_and(|classes| classes.bind(py).contains(object.get_type()).unwrap_or(false))
}

/// Says of which classes values are that are no arrays; the table may grow later.
#[pyfunction]
fn set_high_types(py: Python<'_>, classes: Py<PyDict>) {
    // a second time says the same
    let _ = HIGH.set(py, classes);
}

/// Whether an object is a reference or a view of one.
pub fn is_reference(object: &Bound<'_, PyAny>) -> bool {
    let is = |class: &Py<PyType>| object.get_type().is(class.bind(object.py()));
    HOOKS.get(object.py()).is_some_and(|h| is(&h.class)) || VIEWS.get(object.py()).is_some_and(is)
}

/// Whether a trace that began after `clock` used a reference that is older than itself.
pub fn used_since(clock: u64) -> bool {
    NOTED.get() > clock
}

/// The number of the newest trace.
pub fn clock() -> u64 {
    TraceId::latest().0
}

/// The error of a call that the façade is to make, see `asks`.
#[cold]
pub fn used() -> PyErr {
    ReferenceUsed::new_err(
        "a reference, or a value that is no array, stands where an array is wanted: read a reference by ref[...], or let \
         the traced function close over it; a gradient with respect to a reference is added to another, by the \
         with_refs method of what vjp gives",
    )
}

/// Whether an error says that the façade is to make the call.
#[cold]
pub fn asks(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<ReferenceUsed>(py)
}

fn hook(py: Python<'_>, pick: impl Fn(&Hooks) -> &Py<PyAny>) -> PyResult<Bound<'_, PyAny>> {
    HOOKS.get(py).map(|h| pick(h).bind(py).clone()).ok_or_else(used)
}

/// What makes jitted functions that use references.
pub fn jitted(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    hook(py, |h| &h.jitted)
}

/// What makes mapped functions whose arguments are references.
pub fn vmapped(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    hook(py, |h| &h.vmapped)
}

/// What the references hold that the staging trace in force found, at its end: results of its program beside those of
/// its function.
pub fn ending(py: Python<'_>) -> PyResult<Vec<Value>> {
    if !used_since(base_id().0 - 1) {
        return Ok(Vec::new());
    }
    hook(py, |h| &h.ending)?.call0()?.try_iter()?.map(|held| to_value(&held?)).collect()
}

/// Hands the program of a function that found references, with what these hold at its end, to who traces the function
/// again as one of their values; what stays is the program of the function alone.
pub fn ended(fun: &Bound<'_, PyAny>, jaxpr: &mut Jaxpr, captured: &[Value], out_tree: &TreeDef) -> PyResult<()> {
    let (py, own) = (fun.py(), out_tree.num_leaves());
    if jaxpr.outvars.len() > own {
        let whole = PyClosed::traced(jaxpr.clone().into(), captured.to_vec(), out_tree.clone());
        hook(py, |h| &h.ended)?.call1((fun, whole))?;
        jaxpr.outvars.truncate(own);
    }
    Ok(())
}

/// A value of the staging trace in force that stands for an older one alone, and its number among what the trace
/// captured; None for a value of the trace itself.
#[pyfunction]
fn stand_in(value: &Bound<'_, PyAny>) -> PyResult<Option<(Py<PyAny>, usize)>> {
    let found = base().and_then(|trace| Some(trace.stand_in(&trace, &to_value(value).ok()?)));
    let Some(Some((v, number))) = found else { return Ok(None) };
    Ok(Some((from_value(value.py(), v)?, number)))
}

/// Whether an object is a reference or a view of one.
#[pyfunction(name = "is_reference")]
fn is_reference_object(object: &Bound<'_, PyAny>) -> bool {
    is_reference(object)
}

/// Says what references are, and who makes the calls that use them.
#[pyfunction]
fn set_reference_hooks(
    py: Python<'_>,
    class: Py<PyType>,
    jitted: Py<PyAny>,
    vmapped: Py<PyAny>,
    ending: Py<PyAny>,
    ended: Py<PyAny>,
) {
    // a second time says the same
    let _ = HOOKS.set(py, Hooks { class, jitted, vmapped, ending, ended });
}

/// Says what views of references are.
#[pyfunction]
fn set_view_class(py: Python<'_>, class: Py<PyType>) {
    // a second time says the same
    let _ = VIEWS.set(py, class);
}

/// The number of the staging trace in force; 0 where operations run at once.
#[pyfunction]
fn staging_trace() -> u64 {
    base_id().0
}

/// What the staging trace in force records a function for: `jit`, `scan`, …; None where operations run at once.
#[pyfunction]
fn staging_transform() -> Option<&'static str> {
    ferrax_ir::trace::base().map(|t| t.transform())
}

/// The number of the newest trace: later ones have larger numbers.
#[pyfunction]
fn trace_clock() -> u64 {
    clock()
}

/// Notes that the staging trace in force uses a reference that is older than itself.
#[pyfunction]
fn note_reference() {
    NOTED.set(NOTED.get().max(base_id().0));
}

/// Whether a staging trace that began after `clock` has used a reference that is older than itself.
#[pyfunction]
fn references_since(clock: u64) -> bool {
    used_since(clock)
}

/// Says which of the traces that were noted is the innermost one that nobody has looked after yet.
#[pyfunction]
fn references_settled(newest: u64) {
    NOTED.set(newest);
}

/// A value as a reference that was made at the time `clock` can hold it: transformations that began later have no say in
/// it. Errors where one of them maps it over an axis (`"vmapped"`) or differentiates it (`"differentiated"`). A value that is
/// to be written, which every row of one of them writes, is mapped whatever it is.
#[pyfunction]
#[pyo3(signature = (value, clock, written=false))]
fn value_for_reference(value: &Bound<'_, PyAny>, clock: u64, written: bool) -> PyResult<Py<PyAny>> {
    let mut v = to_value(value)?;
    if written && mapping().is_some_and(|t| t.id().0 > clock) {
        return Err(PyValueError::new_err("vmapped"));
    }
    while let Value::Tracer(t) = &v {
        if t.trace().id().0 <= clock {
            break;
        }
        let inner = match t.payload() {
            Payload::Staged(_) | Payload::Hosted(_) => break,
            Payload::Jvp { tangent: Some(_), .. } => return Err(PyValueError::new_err("differentiated")),
            Payload::Batched { axis: Some(_), .. } => return Err(PyValueError::new_err("vmapped")),
            Payload::Jvp { primal: inner, .. } | Payload::Batched { value: inner, .. } => inner.clone(),
        };
        v = inner;
    }
    from_value(value.py(), v)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("ReferenceUsed", m.py().get_type::<ReferenceUsed>())?;
    m.add_function(wrap_pyfunction!(set_reference_hooks, m)?)?;
    m.add_function(wrap_pyfunction!(set_view_class, m)?)?;
    m.add_function(wrap_pyfunction!(set_high_types, m)?)?;
    m.add_function(wrap_pyfunction!(is_reference_object, m)?)?;
    m.add_function(wrap_pyfunction!(stand_in, m)?)?;
    m.add_function(wrap_pyfunction!(staging_trace, m)?)?;
    m.add_function(wrap_pyfunction!(staging_transform, m)?)?;
    m.add_function(wrap_pyfunction!(trace_clock, m)?)?;
    m.add_function(wrap_pyfunction!(note_reference, m)?)?;
    m.add_function(wrap_pyfunction!(references_since, m)?)?;
    m.add_function(wrap_pyfunction!(references_settled, m)?)?;
    m.add_function(wrap_pyfunction!(value_for_reference, m)?)
}
