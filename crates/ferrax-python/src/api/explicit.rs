//! Where the arguments of a trace are, for types over explicit axes of a mesh.
//!
//! While a mesh with such axes is in use, a function is traced anew for every placement of its arguments, and a traced
//! value can be asked what it was computed from. The rules are the host's: `python/ferrax/sharding/_traced.py`.

use super::jaxpr::PyClosed;
use crate::value::{PyValue, from_value};
use ferrax_ir::{Array, Atom, DeviceId, Payload, TraceId, Tracer, Value, Var};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};

/// The placement of each argument of a call; empty where no mesh with explicit axes is in use.
pub type Places = SmallVec<[Option<DeviceId>; 4]>;

/// A trace in progress: its number, the variables of its arguments, and the arguments.
struct Operands {
    trace: TraceId,
    vars: Vec<Var>,
    objects: Vec<Py<PyAny>>,
}

thread_local! {
    static IN_USE: Cell<bool> = const { Cell::new(false) };
    static OPERANDS: RefCell<Vec<Operands>> = const { RefCell::new(Vec::new()) };
}

/// Whether a mesh with explicit axes is in use on this thread.
#[inline]
pub fn in_use() -> bool {
    IN_USE.get()
}

/// Whether one is.
#[pyfunction]
fn explicit_in_use() -> bool {
    in_use()
}

/// Says whether one is.
#[pyfunction]
fn enter_explicit(on: bool) {
    IN_USE.set(on);
}

/// The placements of a call's arguments, as far as a trace depends on them.
pub fn places(values: &[Value]) -> Places {
    if !in_use() {
        return Places::new();
    }
    let sharded = |v: &Value| match v {
        Value::Array(a) => Some(a.device()).filter(|d| d.is_sharded()),
        _ => None,
    };
    values.iter().map(sharded).collect()
}

/// Whether arrays are where a signature has them.
pub fn are_at(arrays: &[&Array], places: &Places) -> bool {
    !in_use()
        || (arrays.len() == places.len()
            && arrays.iter().zip(places).all(|(a, p)| Some(a.device()).filter(|d| d.is_sharded()) == *p))
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

/// What a traced value was computed from: `(value,)` under differentiation, `(value, axis)` under `vmap`, and in a
/// program the program up to it with the last of its arguments, `(program, arguments, None)`. `None` for others.
#[pyfunction]
fn traced_from(py: Python<'_>, x: PyValue) -> PyResult<Option<Bound<'_, PyTuple>>> {
    let Value::Tracer(t) = &x.0 else { return Ok(None) };
    match t.payload() {
        Payload::Jvp { primal, .. } => PyTuple::new(py, [from_value(py, primal.clone())?]).map(Some),
        Payload::Batched { value, axis } => (from_value(py, value.clone())?, *axis).into_pyobject(py).map(Some),
        Payload::Staged(_) => program(py, t),
    }
}

fn program<'py>(py: Python<'py>, t: &Tracer) -> PyResult<Option<Bound<'py, PyTuple>>> {
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
    let program = Py::new(py, PyClosed::new(jaxpr.into()))?;
    (program, PyList::new(py, objects)?, py.None()).into_pyobject(py).map(Some)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(enter_explicit, m)?)?;
    m.add_function(wrap_pyfunction!(explicit_in_use, m)?)?;
    m.add_function(wrap_pyfunction!(traced_from, m)?)
}
