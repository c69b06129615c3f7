//! Tracers in Python: their classes, reprs, and the errors of asking them for a value.
//!
//! Texts are made when an error is raised, never while probing: an attribute that a tracer does not have costs a
//! failed lookup and nothing else.

use crate::array::PyArray;
use crate::errors::{Text, raise};
use ferrax_base::config::Flag;
use ferrax_base::{Aval, Error, ErrorKind};
use ferrax_ir::trace::leaked;
use ferrax_ir::{Payload, Tracer, Value};
use pyo3::exceptions::PyAttributeError;
use pyo3::intern;
use pyo3::prelude::*;
use std::fmt;

/// A traced value, whatever transformation traces it.
#[pyclass(frozen, subclass, extends = PyArray, module = "ferrax.core", name = "Tracer")]
pub struct PyTracer;

/// A value in a program being recorded (`jit`, `make_jaxpr`, control flow).
#[pyclass(frozen, extends = PyTracer, module = "ferrax.interpreters.partial_eval", name = "DynamicJaxprTracer")]
pub struct StagedTracer;

/// A value with its tangent.
#[pyclass(frozen, extends = PyTracer, module = "ferrax.interpreters.ad", name = "JVPTracer")]
pub struct JvpTracer;

/// A value whose derivative is being recorded (`grad`, `vjp`, `linearize`).
#[pyclass(frozen, extends = PyTracer, module = "ferrax.core", name = "LinearizeTracer")]
pub struct LinearizeTracer;

/// One row of a value under `vmap`.
#[pyclass(frozen, extends = PyTracer, module = "ferrax.core", name = "BatchTracer")]
pub struct BatchTracer;

/// Which class a tracer has in Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// `DynamicJaxprTracer`
    Staged,
    /// `JVPTracer`
    Jvp,
    /// `LinearizeTracer`
    Linearize,
    /// `BatchTracer`
    Batch,
}

/// The class of a tracer.
pub fn class(t: &Tracer) -> Class {
    match t.payload() {
        Payload::Staged(_) | Payload::Hosted(_) => Class::Staged,
        Payload::Batched { .. } => Class::Batch,
        Payload::Jvp { .. } if matches!(t.trace().transform(), "jvp" | "jacfwd") => Class::Jvp,
        Payload::Jvp { .. } => Class::Linearize,
    }
}

impl Class {
    /// The name of the class.
    pub fn name(self) -> &'static str {
        match self {
            Class::Staged => "DynamicJaxprTracer",
            Class::Jvp => "JVPTracer",
            Class::Linearize => "LinearizeTracer",
            Class::Batch => "BatchTracer",
        }
    }
}

/// The Python object of a tracer.
pub fn wrap(py: Python<'_>, t: Tracer) -> PyResult<Bound<'_, PyAny>> {
    if let Some(object) = crate::api::hosted::object(py, t.payload()) {
        return Ok(object);
    }
    let class = class(&t);
    let base = PyClassInitializer::from(PyArray { value: Value::Tracer(t) }).add_subclass(PyTracer);
    let object = match class {
        Class::Staged => Bound::new(py, base.add_subclass(StagedTracer))?.into_any(),
        Class::Jvp => Bound::new(py, base.add_subclass(JvpTracer))?.into_any(),
        Class::Linearize => Bound::new(py, base.add_subclass(LinearizeTracer))?.into_any(),
        Class::Batch => Bound::new(py, base.add_subclass(BatchTracer))?.into_any(),
    };
    if Flag::CheckTracerLeaks.get() {
        crate::api::leaks::note(&object)?;
    }
    Ok(object)
}

/// `float32[3]`, with `~` before it for weak types and `{V:i}` behind it for manual axes over which the value varies.
pub struct LongAval<'a>(pub &'a Aval);

impl fmt::Display for LongAval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.0.shape.iter().map(|d| ferrax_base::symbolic::text(*d as i64));
        let (dims, marks) = ferrax_ir::spread::sizes(self.0, dims);
        write!(f, "{}{}[{dims}]{marks}", if self.0.weak { "~" } else { "" }, self.0.dtype.name())
    }
}

/// The text of a value inside a tracer's repr.
fn inner(py: Python<'_>, v: &Value) -> String {
    match v {
        Value::Tracer(t) => repr(py, t),
        other => {
            let text = crate::value::to_py(py, other.clone()).and_then(|o| Ok(o.str()?.to_string()));
            text.unwrap_or_else(|_| LongAval(&other.aval()).to_string())
        }
    }
}

/// `repr` and `str` of a tracer.
pub fn repr(py: Python<'_>, t: &Tracer) -> String {
    match t.payload() {
        Payload::Staged(_) => format!("JitTracer({})", LongAval(t.aval())),
        Payload::Hosted(_) => format!("Traced<{}>", LongAval(t.aval())),
        Payload::Batched { value, .. } => {
            format!("VmapTracer(aval={}, batched={})", LongAval(t.aval()), LongAval(&value.aval()))
        }
        Payload::Jvp { primal, tangent } => {
            let primal = inner(py, primal);
            match (class(t), tangent) {
                (Class::Jvp, Some(tangent)) => format!("JVPTracer(primal={primal}, tangent={})", inner(py, tangent)),
                (Class::Jvp, None) => format!("JVPTracer(primal={primal}, tangent=Zero({}))", t.aval().tangent()),
                _ => format!("GradTracer(primal={primal}, typeof(tangent)={})", t.aval().tangent()),
            }
        }
    }
}

/// What an error says of a tracer: `traced array with shape float32[3]`.
pub fn error_repr(t: &Tracer) -> String {
    format!("traced array with shape {}", LongAval(&t.aval().with_weak(false)))
}

/// Where a tracer comes from, as a last paragraph of an error text.
pub fn origin(t: &Tracer) -> String {
    let origin = t.origin();
    if origin.is_empty() { origin } else { format!("\n{origin}") }
}

/// A text about a tracer, made when it is shown.
struct About {
    tracer: Tracer,
    write: fn(&Tracer, &str, &mut fmt::Formatter<'_>) -> fmt::Result,
    context: String,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.write)(&self.tracer, &self.context, f)
    }
}

/// The tracer of an ended trace that a tracer is, or looks through to.
fn ended(t: &Tracer) -> Option<&Tracer> {
    let inner = match t.payload() {
        _ if !t.trace().is_live() => return Some(t),
        Payload::Jvp { primal, .. } => primal,
        Payload::Batched { value, .. } => value,
        Payload::Staged(_) | Payload::Hosted(_) => return None,
    };
    inner.as_tracer().and_then(ended)
}

/// The error of what traced values do not do: the leak where the trace has ended.
#[cold]
pub fn unless_leaked(v: &Value, error: impl FnOnce() -> PyErr) -> PyErr {
    v.as_tracer().and_then(ended_error).unwrap_or_else(error)
}

/// The leak, of a tracer whose trace has ended.
fn ended_error(t: &Tracer) -> Option<PyErr> {
    ended(t).map(|t| raise(leaked(t)))
}

/// The error of needing the value of a tracer: what to write instead, or the leak where its trace has ended.
fn refusal(t: &Tracer, advise: impl FnOnce() -> ErrorKind) -> Error {
    ended(t).map_or_else(|| advise().into(), leaked)
}

/// The error of needing the value of a tracer, for Rust callers.
#[cold]
pub fn concretization_error(t: &Tracer, context: &str) -> Error {
    let write = |t: &Tracer, context: &str, f: &mut fmt::Formatter<'_>| {
        let what = error_repr(t);
        write!(
            f,
            "Abstract tracer value encountered where concrete value is expected: {what}\n{context}{}\n{}\n",
            origin(t),
            Text::Concretization.advice()
        )
    };
    let about = || About { tracer: t.clone(), write, context: context.to_owned() };
    refusal(t, || ErrorKind::Concretization(Box::new(about())))
}

/// The exception of needing the value of a tracer; `context` says what needed it.
#[cold]
pub fn concretization(t: &Tracer, context: &str) -> PyErr {
    raise(concretization_error(t, context))
}

/// The exception of `bool(tracer)`.
#[cold]
pub fn bool_conversion(t: &Tracer) -> PyErr {
    let write = |t: &Tracer, _: &str, f: &mut fmt::Formatter<'_>| {
        let (what, advice) = (error_repr(t), Text::Bool.advice());
        write!(f, "Attempted boolean conversion of {what}.{}\n{advice}", origin(t))
    };
    let about = || About { tracer: t.clone(), write, context: String::new() };
    raise(refusal(t, || ErrorKind::BoolConversion(Box::new(about()))))
}

/// The exception of `operator.index(tracer)`.
#[cold]
pub fn integer_conversion(t: &Tracer) -> PyErr {
    let write = |t: &Tracer, _: &str, f: &mut fmt::Formatter<'_>| {
        let (what, advice) = (error_repr(t), Text::Integer.advice());
        write!(f, "The __index__() method was called on {what}{}\n{advice}", origin(t))
    };
    let about = || About { tracer: t.clone(), write, context: String::new() };
    raise(refusal(t, || ErrorKind::IntegerConversion(Box::new(about()))))
}

/// The exception of `numpy.asarray(tracer)`.
#[cold]
pub fn array_conversion(t: &Tracer) -> PyErr {
    let write = |t: &Tracer, _: &str, f: &mut fmt::Formatter<'_>| {
        let (what, advice) = (error_repr(t), Text::Array.advice());
        write!(f, "The numpy.ndarray conversion method __array__() was called on {what}{}\n{advice}", origin(t))
    };
    let about = || About { tracer: t.clone(), write, context: String::new() };
    raise(refusal(t, || ErrorKind::ArrayConversion(Box::new(about()))))
}

/// The exception of a method or attribute that only concrete arrays have.
#[cold]
pub fn no_such_data(t: &Tracer, what: &str) -> PyErr {
    concretization(t, &format!("{what} {}.", error_repr(t)))
}

#[pymethods]
impl PyTracer {
    #[classattr]
    #[allow(non_upper_case_globals)]
    const __array_priority__: i32 = 1000;

    /// What an error says of this value.
    fn _error_repr(slf: &Bound<'_, Self>) -> String {
        with_tracer(slf, error_repr).unwrap_or_default()
    }

    /// Raises the leak error where the value's trace has ended.
    fn _check_leak(slf: &Bound<'_, Self>) -> PyResult<()> {
        with_tracer(slf, ended_error).flatten().map_or(Ok(()), Err)
    }

    /// Names of the function that is recorded.
    #[getter]
    fn _debug_info(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let of = |t: &Tracer| matches!(t.payload(), Payload::Staged(_)).then(|| t.trace().clone());
        let Some(trace) = with_tracer(slf, of).flatten() else {
            return Err(PyAttributeError::new_err("only tracers of programs that are recorded have a _debug_info"));
        };
        let (debug, transform) = (trace.debug(), trace.transform());
        let names = debug.arg_names.as_ref().map(|names| names());
        let module = slf.py().import(intern!(slf.py(), "ferrax.extend.linear_util"))?;
        Ok(module.call_method1("debug_info_of", (transform, debug.describe(), names))?.unbind())
    }

    /// Where this value comes from, for an error text.
    fn _origin_msg(slf: &Bound<'_, Self>) -> String {
        with_tracer(slf, origin).unwrap_or_default()
    }
}

#[pymethods]
impl JvpTracer {
    /// The value alone.
    #[getter]
    fn primal(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        part(slf, |payload| match payload {
            Payload::Jvp { primal, .. } => Some(primal.clone()),
            _ => None,
        })
    }

    /// The value's tangent.
    #[getter]
    fn tangent(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        part(slf, |payload| match payload {
            Payload::Jvp { tangent, .. } => tangent.clone(),
            _ => None,
        })
    }
}

/// A part of what a tracer with a tangent stands for.
fn part(slf: &Bound<'_, JvpTracer>, of: impl FnOnce(&Payload) -> Option<Value>) -> PyResult<Option<Py<PyAny>>> {
    let value = with_tracer(slf.as_super(), |t| of(t.payload())).flatten();
    value.map(|v| crate::value::from_value(slf.py(), v)).transpose()
}

#[pymethods]
impl BatchTracer {
    /// All rows: the value with its batch axis.
    #[getter]
    fn val(slf: &Bound<'_, Self>) -> PyResult<Option<Py<PyAny>>> {
        let value = with_tracer(slf.as_super(), |t| match t.payload() {
            Payload::Batched { value, .. } => Some(value.clone()),
            _ => None,
        });
        value.flatten().map(|v| crate::value::from_value(slf.py(), v)).transpose()
    }

    /// Which axis of `val` the rows lie along.
    #[getter]
    fn batch_dim(slf: &Bound<'_, Self>) -> Option<usize> {
        with_tracer(slf.as_super(), |t| match t.payload() {
            Payload::Batched { axis, .. } => *axis,
            _ => None,
        })
        .flatten()
    }
}

fn with_tracer<R>(slf: &Bound<'_, PyTracer>, f: impl FnOnce(&Tracer) -> R) -> Option<R> {
    match &slf.as_super().get().value {
        Value::Tracer(t) => Some(f(t)),
        _ => None,
    }
}

/// Adds the tracer classes to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTracer>()?;
    m.add_class::<StagedTracer>()?;
    m.add_class::<JvpTracer>()?;
    m.add_class::<LinearizeTracer>()?;
    m.add_class::<BatchTracer>()
}
