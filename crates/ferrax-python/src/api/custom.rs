//! Binding custom derivatives and callbacks from facade code, which hands over functions of flat lists.

use super::function::rust;
use super::jaxpr::PyJaxpr;
use crate::errors::IntoPyResult;
use crate::value::{abstract_value, from_value, to_value};
use ferrax_base::{Buffer, Result, error};
use ferrax_ir::{Array, Aval, Value};
use ferrax_loops::{HostCall, HostRef};
use ferrax_ops::callback::{CallbackKind, VmapMethod, callback};
use ferrax_ops::control::custom_jvp::custom_jvp_call;
use ferrax_ops::control::custom_vjp::{VjpRule, VjpRuleRef, custom_vjp_call};
use ferrax_ops::control::custom_vmap::{CustomVmap, VmapRule, VmapRuleRef, custom_vmap_call};
use ferrax_ops::control::{Callable, CallableRef};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::Arc;

/// A Python function of flat values that returns a list of flat values.
struct PyFlat {
    fun: Py<PyAny>,
    name: String,
}

fn tuple<'py>(py: Python<'py>, values: &[Value]) -> PyResult<Bound<'py, PyTuple>> {
    let items = values.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(py, items)
}

fn list<'py>(py: Python<'py>, values: &[Value]) -> PyResult<Bound<'py, PyList>> {
    let items = values.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, items)
}

fn flat_values(out: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    out.try_iter()?.map(|v| to_value(&v?)).collect()
}

impl Callable for PyFlat {
    fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        Python::attach(|py| rust((|| flat_values(&self.fun.bind(py).call1(tuple(py, args)?)?))()))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn flat(fun: &Bound<'_, PyAny>, name: &str) -> CallableRef {
    CallableRef(Arc::new(PyFlat { fun: fun.clone().unbind(), name: name.to_owned() }))
}

fn name_of(fun: &Bound<'_, PyAny>) -> String {
    fun.getattr_opt("__name__").ok().flatten().and_then(|n| n.extract().ok()).unwrap_or_else(|| "function".into())
}

fn objects(py: Python<'_>, values: impl IntoIterator<Item = Value>) -> PyResult<Vec<Py<PyAny>>> {
    values.into_iter().map(|v| from_value(py, v)).collect()
}

fn operands(args: &[Bound<'_, PyAny>]) -> PyResult<Vec<Value>> {
    args.iter().map(to_value).collect()
}

/// Calls `fun(*flat)` with the rule `jvp(*primals, *tangents) -> [*outs, *out tangents]`.
#[pyfunction]
fn bind_custom_jvp(
    py: Python<'_>,
    name: &str,
    fun: &Bound<'_, PyAny>,
    jvp: &Bound<'_, PyAny>,
    symbolic_zeros: bool,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let args = operands(&args)?;
    let outs = custom_jvp_call(name.into(), flat(fun, name), flat(jvp, &name_of(jvp)), symbolic_zeros, &args).py()?;
    objects(py, outs)
}

/// A Python reverse-mode rule: `fwd(*flat) -> (outs, residuals)`, `bwd(residuals, cotangents) -> cotangents`.
struct PyRule {
    fwd: Py<PyAny>,
    bwd: Py<PyAny>,
    name: String,
    names: (String, String),
}

impl VjpRule for PyRule {
    fn fwd(&self, args: &[Value]) -> Result<(Vec<Value>, Vec<Value>)> {
        Python::attach(|py| {
            rust((|| {
                let out = self.fwd.bind(py).call1(tuple(py, args)?)?;
                Ok((flat_values(&out.get_item(0)?)?, flat_values(&out.get_item(1)?)?))
            })())
        })
    }

    fn bwd(&self, residuals: &[Value], cts: &[Value]) -> Result<Vec<Option<Value>>> {
        Python::attach(|py| {
            rust((|| {
                let out = self.bwd.bind(py).call1((list(py, residuals)?, list(py, cts)?))?;
                out.try_iter()?
                    .map(|v| {
                        let v = v?;
                        if v.is_none() { Ok(None) } else { to_value(&v).map(Some) }
                    })
                    .collect()
            })())
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> (String, String) {
        self.names.clone()
    }
}

/// Calls `fun(*flat)` with a reverse-mode rule.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn bind_custom_vjp(
    py: Python<'_>,
    name: &str,
    fun: &Bound<'_, PyAny>,
    fwd: &Bound<'_, PyAny>,
    bwd: &Bound<'_, PyAny>,
    symbolic_zeros: bool,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let names = (name_of(fwd), name_of(bwd));
    let rule = PyRule { fwd: fwd.clone().unbind(), bwd: bwd.clone().unbind(), name: name.to_owned(), names };
    let rule = VjpRuleRef(Arc::new(rule));
    let outs = custom_vjp_call(name.into(), flat(fun, name), rule, symbolic_zeros, &operands(&args)?).py()?;
    objects(py, outs)
}

/// A Python batching rule: `rule(size, batched, args) -> (outs, which are batched)`, all flat.
struct PyVmapRule {
    fun: Py<PyAny>,
    name: String,
}

impl VmapRule for PyVmapRule {
    fn apply(&self, size: usize, batched: &[bool], args: &[Value]) -> Result<(Vec<Value>, Vec<bool>)> {
        Python::attach(|py| {
            rust((|| {
                let out = self.fun.bind(py).call1((size, batched.to_vec(), list(py, args)?))?;
                Ok((flat_values(&out.get_item(0)?)?, out.get_item(1)?.extract()?))
            })())
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Calls a traced function with a batching rule.
#[pyfunction]
fn bind_custom_vmap(
    py: Python<'_>,
    call: &PyJaxpr,
    name: &str,
    rule: &Bound<'_, PyAny>,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let rule = PyVmapRule { name: name_of(rule), fun: rule.clone().unbind() };
    let params = CustomVmap {
        call: call.jaxpr.clone(),
        name: name.into(),
        num_consts: call.captured.len(),
        rule: VmapRuleRef(Arc::new(rule)),
    };
    let args: Vec<Value> = call.captured.iter().cloned().chain(operands(&args)?).collect();
    objects(py, custom_vmap_call(params, &args).py()?)
}

/// A Python callback: `fun(*arrays) -> list of arrays`.
struct PyCallback {
    fun: Py<PyAny>,
    name: String,
}

impl HostCall for PyCallback {
    fn call(&self, args: &[(&Aval, &Buffer)], results: &[Aval]) -> Result<Vec<Buffer>> {
        Python::attach(|py| {
            let arrays = args
                .iter()
                .map(|(aval, b)| Ok(Value::Array(Array::new((*aval).clone(), Buffer::from_bytes(b.bytes())?))))
                .collect::<Result<Vec<Value>>>()?;
            let values = rust((|| flat_values(&self.fun.bind(py).call1(tuple(py, &arrays)?)?))())?;
            if values.len() != results.len() {
                return Err(error!(
                    Runtime,
                    "the callback {} returned {} arrays where {} were announced",
                    self.name,
                    values.len(),
                    results.len()
                ));
            }
            values.iter().zip(results).map(|(v, want)| self.result(v, want)).collect()
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl PyCallback {
    fn result(&self, v: &Value, want: &Aval) -> Result<Buffer> {
        if v.shape() != want.shape.as_slice() || v.dtype() != want.dtype {
            return Err(error!(
                Runtime,
                "the callback {} returned an array of type {} where {want} was announced",
                self.name,
                v.aval()
            ));
        }
        match v.to_array() {
            Some(a) => Buffer::from_bytes(a?.pin()?.bytes()),
            None => Err(error!(Runtime, "the callback {} returned a traced value", self.name)),
        }
    }
}

/// Calls host code from a program; `kind` is "pure", "io", "ordered" or "debug".
#[pyfunction]
fn bind_callback(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    results: Vec<Bound<'_, PyAny>>,
    kind: &str,
    vmap_method: Option<&str>,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let kind = match kind {
        "pure" => CallbackKind::Pure,
        "io" => CallbackKind::Io,
        "ordered" => CallbackKind::Ordered,
        _ => CallbackKind::Debug,
    };
    let method = match vmap_method {
        None => VmapMethod::Unsupported,
        Some("sequential" | "sequential_unrolled") => VmapMethod::Sequential,
        Some("expand_dims") => VmapMethod::ExpandDims,
        Some("broadcast_all") => VmapMethod::BroadcastAll,
        Some(other) => {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "vmap_method={other:?} must be one of 'sequential', 'sequential_unrolled', 'expand_dims', \
                 'broadcast_all' or None"
            )));
        }
    };
    let host = HostRef(Arc::new(PyCallback { name: name_of(fun), fun: fun.clone().unbind() }));
    let avals = results.iter().map(abstract_value).collect::<PyResult<Vec<Aval>>>()?;
    let outs = callback(kind, host, avals, method, &operands(&args)?).py()?;
    objects(py, outs)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(bind_custom_jvp, m)?)?;
    m.add_function(wrap_pyfunction!(bind_custom_vjp, m)?)?;
    m.add_function(wrap_pyfunction!(bind_custom_vmap, m)?)?;
    m.add_function(wrap_pyfunction!(bind_callback, m)?)
}
