//! What `python/ferrax/_watch.py` is told while `Flag::Watched` is set: calls of the library's functions, what is handed
//! to operations from the host and read back, and each operation and program that runs. All of it is cold.

use crate::api::jaxpr::PyClosed;
use crate::array::{PyArray, wrap, wrap_array};
use crate::errors::{IntoPyResult, carry};
use crate::fastcall::Args;
use ferrax::watch::Ran;
use ferrax_base::Aval;
use ferrax_base::config::{Flag, watched, with};
use ferrax_ir::{Array, DebugInfo, JaxprRef, Value};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Calls a function of `_watch.py`, which is not watched itself.
fn tell<'py>(py: Python<'py>, what: &str, args: impl pyo3::call::PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
    with(Flag::Watched, false, || py.import("ferrax._watch")?.getattr(what)?.call1(args))
}

/// A public function that is written in Python is called.
#[cold]
pub fn called(function: &Bound<'_, PyAny>, args: &Args<'_, '_>) -> PyResult<()> {
    if !ferrax_ir::trace::is_eager() {
        return Ok(());
    }
    let py = function.py();
    let named = PyDict::new(py);
    for (name, value) in args.keywords() {
        named.set_item(name, value)?;
    }
    let positional = PyTuple::new(py, args.positional())?;
    tell(py, "called", (function, positional, named)).map(|_| ())
}

/// An operation is given a number or an array of the host's.
#[cold]
pub fn handed(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if ferrax_ir::trace::is_eager() {
        tell(object.py(), "handed", (object,))?;
    }
    Ok(())
}

/// The host reads an array, which is of interest where another device has it.
#[inline]
pub fn copied(array: &Array) -> PyResult<()> {
    if !array.device().on_cpu() && watched() {
        Python::attach(|py| tell(py, "copied", (wrap_array(py, array.clone())?,)).map(|_| ()))?;
    }
    Ok(())
}

/// `x[index]`, read by the function that watches.
#[cold]
pub fn read<'py>(x: &Bound<'py, PyArray>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    tell(x.py(), "read", (x, index))
}

/// A program was traced, outside of other traces.
#[inline]
pub fn traced(py: Python<'_>, program: &JaxprRef) -> PyResult<()> {
    if watched() && ferrax_ir::trace::is_eager() {
        tell(py, "traced", (PyClosed::new(program.clone()),))?;
    }
    Ok(())
}

/// An operation or a program runs. The host is given a program where there are keys.
fn ran(ran: &Ran<'_>, args: &[Value], results: Option<&[Value]>) -> ferrax_base::Result<()> {
    let keys = |values: &[Value]| values.iter().any(|v| v.dtype().is_key());
    let listen = |py: Python<'_>| {
        let (name, program) = match ran {
            Ran::Program(jaxpr) => (&*jaxpr.debug.name, Some((*jaxpr).clone())),
            Ran::Operation(op) if keys(args) || results.is_some_and(keys) || !op.subjaxprs().is_empty() => {
                let avals: Vec<Aval> = args.iter().map(Value::aval).collect();
                let run = |xs: &[Value]| Ok(ferrax_ir::bind(op, xs)?.into_vec());
                let staged = ferrax_transform::stage("make_jaxpr", DebugInfo::named(op.name()), &avals, run).py()?;
                (op.name(), Some(JaxprRef::new(staged.jaxpr)))
            }
            Ran::Operation(op) => (op.name(), None),
        };
        let whole = matches!(ran, Ran::Program(_));
        let objects = |values: &[Value]| values.iter().map(|v| wrap(py, v.clone())).collect::<PyResult<Vec<_>>>();
        let results = results.map(objects).transpose()?;
        tell(py, "ran", (name, whole, program.map(PyClosed::new), objects(args)?, results)).map(|_| ())
    };
    Python::attach(listen).map_err(carry)
}

/// What tells an array from all others while it lives, and how many hold it.
#[pyfunction]
fn array_identity(x: &Bound<'_, PyArray>) -> Option<(usize, usize)> {
    if let Value::Array(a) = &x.get().value { Some((a.id(), a.handles())) } else { None }
}

/// Adds the function, and begins to listen.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ferrax::watch::set_watch(ran);
    m.add_function(wrap_pyfunction!(array_identity, m)?)
}
