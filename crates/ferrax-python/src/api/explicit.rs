//! Where the arguments of a trace are, for types over explicit axes of a mesh.
//!
//! While a mesh with such axes is in use, a function is traced anew for every placement of its arguments, and a traced
//! value can be asked what it was computed from. The rules are the host's: `python/ferrax/sharding/_traced.py`.

use super::jaxpr::PyClosed;
use crate::value::{PyValue, from_value};
use ferrax_base::config::Flag;
use ferrax_base::source::{Making, Phase};
use ferrax_ir::{Array, Atom, DeviceId, Payload, TraceId, Tracer, Value, Var};
use pyo3::intern;
use pyo3::prelude::*;
use smallvec::SmallVec;
use std::cell::RefCell;

/// The placement of each argument of a call; empty where no mesh with explicit axes is in use.
pub type Places = SmallVec<[Option<DeviceId>; 4]>;

/// A trace in progress: its number, the variables of its arguments, and the arguments.
struct Operands {
    trace: TraceId,
    vars: Vec<Var>,
    objects: Vec<Py<PyAny>>,
}

thread_local! {
    static OPERANDS: RefCell<Vec<Operands>> = const { RefCell::new(Vec::new()) };
}

/// Whether a mesh with explicit axes is in use on this thread.
#[inline]
pub fn in_use() -> bool {
    Flag::Explicit.get()
}

/// Whether one is.
#[pyfunction]
fn explicit_in_use() -> bool {
    in_use()
}

/// Says whether one is.
#[pyfunction]
fn enter_explicit(on: bool) {
    Flag::Explicit.set_local(on.then_some(true));
}

/// Calls a function whose result goes where its user says, so that its operations need not tell by themselves.
#[pyfunction]
fn making_placed<'py>(fun: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let _making = in_use().then(|| Making::start(Phase::Placed, name));
    fun.call0()
}

/// A result where the user says, if the user does; `make` gives it.
pub fn placed<'py>(
    py: Python<'py>,
    sharding: Option<&Bound<'py, PyAny>>,
    name: &str,
    make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(sharding) = sharding else { return make() };
    let made = {
        let _making = in_use().then(|| Making::start(Phase::Placed, name));
        make()?
    };
    py.import(intern!(py, "ferrax._out_sharding"))?.call_method1(intern!(py, "put"), (made, sharding, name))
}

/// The placements of a call's arguments, as far as a trace depends on them.
pub fn places(values: &[Value]) -> Places {
    if !in_use() {
        return Places::new();
    }
    values.iter().map(|v| if let Value::Array(a) = v { place(a) } else { None }).collect()
}

/// Where an array is, if a trace depends on it.
fn place(array: &Array) -> Option<DeviceId> {
    Some(array.device()).filter(|d| d.is_sharded())
}

/// Whether arrays are where a signature has them.
pub fn are_at(arrays: &[&Array], places: &Places) -> bool {
    !in_use() || (arrays.len() == places.len() && arrays.iter().zip(places).all(|(a, p)| place(a) == *p))
}

/// The arguments of a call as objects, for [`Traced::enter`]; `None` where nobody will ask.
pub fn objects(py: Python<'_>, values: &[Value]) -> PyResult<Option<Vec<Py<PyAny>>>> {
    if !in_use() {
        return Ok(None);
    }
    values.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Vec<_>>>().map(Some)
}

/// Remembers the arguments of a trace for as long as it lasts.
pub struct Traced(());

impl Traced {
    /// Begins with the tracers of a trace and the arguments that they stand for.
    pub fn enter(tracers: &[Value], objects: Option<Vec<Py<PyAny>>>) -> Option<Traced> {
        let objects = objects?;
        let Some(Value::Tracer(first)) = tracers.first() else { return None };
        let var = |v: &Value| match v {
            Value::Tracer(t) => variable(t),
            _ => None,
        };
        let vars: Vec<Var> = tracers.iter().filter_map(var).collect();
        let trace = first.trace().id();
        OPERANDS.with_borrow_mut(|all| all.push(Operands { trace, vars, objects }));
        Some(Traced(()))
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let ended = OPERANDS.with_borrow_mut(Vec::pop);
        drop(ended);
    }
}

fn variable(t: &Tracer) -> Option<Var> {
    match t.payload() {
        Payload::Staged(Atom::Var(v)) => Some(*v),
        _ => None,
    }
}

/// The value inside a traced one, and its axis that `vmap` maps; `None` for values of programs.
#[pyfunction]
fn traced_inside(py: Python<'_>, x: PyValue) -> PyResult<Option<(Py<PyAny>, Option<usize>)>> {
    let Value::Tracer(t) = &x.0 else { return Ok(None) };
    let (value, axis) = match t.payload() {
        Payload::Jvp { primal, .. } => (primal, None),
        Payload::Batched { value, axis } => (value, *axis),
        Payload::Staged(_) => return Ok(None),
    };
    Ok(Some((from_value(py, value.clone())?, axis)))
}

/// The program up to a value in it, with the last of its arguments.
#[pyfunction]
fn traced_program(py: Python<'_>, x: PyValue) -> PyResult<Option<(Py<PyClosed>, Vec<Py<PyAny>>)>> {
    let Value::Tracer(t) = &x.0 else { return Ok(None) };
    let id = t.trace().id();
    let found = OPERANDS.with_borrow(|all| {
        let of = all.iter().find(|o| o.trace == id)?;
        Some((of.vars.clone(), of.objects.iter().map(|o| o.clone_ref(py)).collect::<Vec<_>>()))
    });
    // a trace that began outside knows nothing of its arguments, but of what it has put somewhere since
    let (vars, objects) = found.unwrap_or_default();
    let mut jaxpr = None;
    t.trace().recorded(t, &mut |so_far, var| {
        let mut copy = so_far.clone();
        copy.invars.extend(&vars);
        copy.outvars = vec![Atom::Var(var)];
        jaxpr = Some(copy);
    });
    let Some(jaxpr) = jaxpr else { return Ok(None) };
    Ok(Some((Py::new(py, PyClosed::new(jaxpr.into()))?, objects)))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enter_explicit, m)?)?;
    m.add_function(wrap_pyfunction!(explicit_in_use, m)?)?;
    m.add_function(wrap_pyfunction!(making_placed, m)?)?;
    m.add_function(wrap_pyfunction!(traced_inside, m)?)?;
    m.add_function(wrap_pyfunction!(traced_program, m)?)
}
