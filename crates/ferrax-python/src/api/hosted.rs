//! Transformations that users define in Python: classes that derive from `ferrax.core.Trace` and `ferrax.core.Tracer`.
//!
//! A [`HostedTrace`] stands for an object of such a class. What is traced belongs to it as values of other traces belong
//! to theirs, and `set_current_trace` puts it in force as a staging trace is: `bind` needs to know no more. An operation
//! goes, as programs show it, to `python/ferrax/extend/core/_hosted.py`, which hands it to the user's methods.
//!
//! Read next: `_hosted.py` for the base class of the user's tracers.

use super::function::rust;
use super::jaxpr::PyEqn;
use super::primitive::defined_parts;
use crate::array::PyArray;
use crate::aval::ShapedArray;
use crate::tracer::PyTracer;
use crate::value::{from_value, to_value};
use ferrax_base::{Aval, Result, Source};
use ferrax_ir::trace::{self, BaseGuard, Before};
use ferrax_ir::{Avals, DebugInfo, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value, Values, bind};
use pyo3::exceptions::{PyReferenceError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use pyo3::{ffi, intern};
use std::sync::{Arc, LazyLock, Weak};

/// The class that users' tracers derive from, once somebody has asked for it.
static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static PROCESS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A transformation of a user's.
struct HostedTrace {
    id: TraceId,
    /// The user's object, which knows the id and not this.
    object: Py<PyAny>,
}

static DEBUG: LazyLock<DebugInfo> = LazyLock::new(|| DebugInfo::named("a library's"));

impl Trace for HostedTrace {
    fn id(&self) -> TraceId {
        self.id
    }
    fn is_live(&self) -> bool {
        true
    }
    fn process(&self, _: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
        let staged = op.stage(op, args).transpose()?;
        let (op, args) = staged.as_ref().map_or((op, args), |(op, args)| (op, args.as_slice()));
        // what the operation's function closed over is an operand now, and may belong to a trace further in
        if args.iter().any(|a| matches!(a, Value::Tracer(t) if t.trace().id() > self.id)) {
            return bind(op, args);
        }
        Python::attach(|py| {
            rust((|| {
                let _outside = BaseGuard::eager();
                let tracers = args.iter().map(|v| operand(py, v)).collect::<PyResult<Vec<_>>>()?;
                let tracers = PyList::new(py, tracers)?;
                // types of results are some parameters of our own primitives; a user's may have no rule for them, and
                // of operands that do not fit the user's methods speak first
                let own = defined_parts(py, op).is_none();
                let avals: Vec<Aval> = args.iter().filter(|_| own).map(Value::aval).collect();
                let types = || op.abstract_eval(&avals.iter().collect::<Vec<_>>()).unwrap_or_default();
                let outs = if own { types() } else { Avals::new() };
                let outs = outs.into_iter().map(|aval| Py::new(py, ShapedArray(aval))).collect::<PyResult<Vec<_>>>()?;
                let outs = PyList::new(py, outs)?.unbind();
                let eqn = Py::new(py, PyEqn::given(op.clone(), tracers.clone().unbind(), outs, Source::here()))?;
                let process = crate::dtypes::imported(&PROCESS, py, "ferrax.extend.core._hosted", "process")?;
                let outs = process.call1((&self.object, eqn, tracers))?;
                outs.try_iter()?.map(|v| to_value(&v?)).collect()
            })())
        })
    }
    fn transform(&self) -> &'static str {
        "a transformation of a library"
    }
    fn debug(&self) -> &DebugInfo {
        &DEBUG
    }
}

/// An operand as the user's methods get it: a number of Python's stays one.
fn operand(py: Python<'_>, value: &Value) -> PyResult<Py<PyAny>> {
    let object = from_value(py, value.clone())?;
    let number = matches!(value, Value::Lit(_)) && value.weak();
    if number { object.call_method0(py, intern!(py, "item")) } else { Ok(object) }
}

/// What operations on this thread go to: a trace or none, and the transformation whose function runs.
#[pyclass(frozen, module = "ferrax.extend.core")]
struct TraceHandle {
    /// Of one of ours, which is not kept alive: the program of a function that is traced is nobody's after its end.
    base: Option<Weak<dyn Trace>>,
    current: TraceId,
    hosted: bool,
}

#[pymethods]
impl TraceHandle {
    /// A handle for a user's trace.
    #[new]
    fn new() -> TraceHandle {
        TraceHandle { base: None, current: TraceId::fresh(), hosted: true }
    }

    /// What is in force now.
    #[staticmethod]
    fn now() -> TraceHandle {
        let base = trace::base().as_ref().map(Arc::downgrade);
        TraceHandle { base, current: trace::current(), hosted: false }
    }

    /// What is in force outside of all transformations.
    #[staticmethod]
    fn none() -> TraceHandle {
        TraceHandle { base: None, current: TraceId(0), hosted: false }
    }

    /// The number of the transformation.
    #[getter]
    fn number(&self) -> u64 {
        self.current.0
    }

    /// Puts it in force, with the object that it is the handle of; what was, the result goes back to.
    fn enter(&self, object: &Bound<'_, PyAny>) -> PyResult<Entered> {
        if self.hosted {
            return Ok(Entered(trace::enter(Some(self.trace(object)), self.current)));
        }
        Ok(Entered(trace::enter(self.live()?, self.current)))
    }

    /// A further parameter of the program that is traced, by its type; None where there is none to be had.
    fn new_arg(&self, py: Python<'_>, aval: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let aval = crate::value::abstract_value(aval)?;
        let new = self.live()?.and_then(|t| t.new_arg(&t, &aval));
        new.map(|v| from_value(py, v)).transpose()
    }
}

impl TraceHandle {
    /// What operations go to.
    fn live(&self) -> PyResult<Option<TraceRef>> {
        let ended = || PyReferenceError::new_err("set_current_trace was given a trace that has ended");
        self.base.as_ref().map(|t| t.upgrade().filter(|t| t.is_live()).ok_or_else(ended)).transpose()
    }

    fn trace(&self, object: &Bound<'_, PyAny>) -> TraceRef {
        Arc::new(HostedTrace { id: self.current, object: object.clone().unbind() })
    }
}

/// What was in force before a handle was entered.
#[pyclass(frozen, unsendable, module = "ferrax.extend.core")]
struct Entered(Before);

#[pymethods]
impl Entered {
    /// Goes back to it.
    fn leave(&self) {
        trace::leave(self.0);
    }
}

/// Whether the class of an object derives from `ferrax.core.Tracer`.
pub fn is_one(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: both are valid objects, and the second is a class. Its metaclass, which is not asked, counts our own, too.
    CLASS.get(object.py()).is_some_and(|c| unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), c.as_ptr().cast()) != 0 })
}

/// The value of an object of such a class; `None` for all others.
pub fn value_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if !is_one(object) {
        return Ok(None);
    }
    let py = object.py();
    let own = object.getattr(intern!(py, "_trace"))?;
    let handle = own.getattr(intern!(py, "_handle"))?;
    let handle = handle.cast::<TraceHandle>()?.get();
    if !handle.hosted {
        return Err(PyTypeError::new_err("the trace of a library's tracer is an object of a class of its own"));
    }
    let aval = object.getattr(intern!(py, "aval"))?.cast::<ShapedArray>()?.get().0.clone();
    Ok(Some(Value::Tracer(Tracer::new(handle.trace(&own), aval, Payload::Hosted(Arc::new(object.clone().unbind()))))))
}

/// The object that a payload holds.
pub fn object<'py>(py: Python<'py>, payload: &Payload) -> Option<Bound<'py, PyAny>> {
    let Payload::Hosted(object) = payload else { return None };
    Some(object.downcast_ref::<Py<PyAny>>()?.bind(py).clone())
}

/// Tells the class that users' tracers derive from.
#[pyfunction]
fn set_tracer_class(py: Python<'_>, class: Py<PyType>) {
    let _ = CLASS.set(py, class);
}

/// A user's tracer as one of the core's, which has an array's methods.
#[pyfunction]
fn hosted_array(object: &Bound<'_, PyAny>) -> PyResult<Py<PyTracer>> {
    let base = PyClassInitializer::from(PyArray { value: to_value(object)? });
    Py::new(object.py(), base.add_subclass(PyTracer))
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<TraceHandle>()?;
    m.add_class::<Entered>()?;
    m.add_function(wrap_pyfunction!(set_tracer_class, m)?)?;
    m.add_function(wrap_pyfunction!(hosted_array, m)?)
}
