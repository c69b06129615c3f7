//! Binding custom derivatives and callbacks from facade code, which hands over functions of flat lists.
//!
//! What a derivative rule returns is checked here against the function's operands and results, shape by shape and
//! dtype by dtype; facade code, which knows the trees, makes the error. Types are those of one example: rules run below
//! `vmap`, on tracers of the rows.

use super::function::{Leaves, rust};
use super::jaxpr::PyClosed;
use crate::array::PyArray;
use crate::errors::IntoPyResult;
use crate::tree::{flatten_into, unflatten};
use crate::value::{abstract_value, from_value, quick_value, to_value};
use ferrax::device::OnCpu;
use ferrax_base::config::{Flag, checks_numbers, watched};
use ferrax_base::{Buffer, DType, Result, Scalar, error};
use ferrax_ir::jaxpr::ArgNames;
use ferrax_ir::trace::is_plain;
use ferrax_ir::{Array, Aval, Lit, Value};
use ferrax_loops::{HostCall, HostRef};
use ferrax_ops::callback::{CallbackKind, VmapMethod, callback};
use ferrax_ops::control::custom_jvp::custom_jvp_call;
use ferrax_ops::control::custom_vjp::{VjpRule, VjpRuleRef, custom_vjp_call};
use ferrax_ops::control::custom_vmap::{CustomVmap, VmapRule, VmapRuleRef, custom_vmap_call};
use ferrax_ops::control::{Callable, CallableRef};
use ferrax_ops::elementwise::convert::convert_element_type;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::{Arc, Mutex, PoisonError};

/// Avals of a function's results, known once it has been traced.
#[derive(Clone, Default)]
struct Results(Arc<Mutex<Option<Vec<Aval>>>>);

impl Results {
    /// Remembers what a traced run returned. A concrete run says nothing of the next one: it may follow values.
    fn note(&self, args: &[Value], outs: &[Value]) {
        if args.iter().any(|a| matches!(a, Value::Tracer(t) if t.concrete().is_none())) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outs.iter().map(Value::aval).collect());
        }
    }

    /// The first of a rule's results that is of another type, with the type that it should have.
    fn mismatch(&self, outs: &[Value]) -> Option<(usize, Aval)> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (i, (want, _)) = known.as_ref()?.iter().zip(outs).enumerate().find(|(_, (want, got))| !fits(got, want))?;
        Some((i, want.clone()))
    }
}

/// Whether a value is of a type, weak types aside.
fn fits(value: &Value, want: &Aval) -> bool {
    value.dtype() == want.dtype && value.shape() == want.shape.as_slice()
}

/// Facade functions that make the errors of rules; each takes the position of a leaf and the texts of types.
struct Complaints {
    /// `(position, got, wanted)`: a rule's value is not of the function's type.
    result: Py<PyAny>,
    /// `(position, got, wanted, primal)`: what a rule makes of a derivative is of the wrong type.
    derivative: Py<PyAny>,
}

impl Complaints {
    fn new(pair: (Bound<'_, PyAny>, Bound<'_, PyAny>)) -> Complaints {
        Complaints { result: pair.0.unbind(), derivative: pair.1.unbind() }
    }

    fn result(&self, py: Python<'_>, i: usize, got: &Value, want: &Aval) -> PyErr {
        made(self.result.bind(py).call1((i, got.aval().long_text(), want.long_text())))
    }

    fn derivative(&self, py: Python<'_>, i: usize, got: &Value, primal: &Aval) -> PyErr {
        let (got, want) = (got.aval().long_text(), primal.tangent().long_text());
        made(self.derivative.bind(py).call1((i, got, want, primal.long_text())))
    }
}

fn made(error: PyResult<Bound<'_, PyAny>>) -> PyErr {
    error.map_or_else(|e| e, PyErr::from_value)
}

/// A Python function of flat values that returns a list of flat values.
struct PyFlat {
    fun: Py<PyAny>,
    name: String,
    results: Results,
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
        let outs = Python::attach(|py| rust((|| flat_values(&self.fun.bind(py).call1(tuple(py, args)?)?))()))?;
        self.results.note(args, &outs);
        Ok(outs)
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn arg_names(&self) -> Option<ArgNames> {
        let names =
            Python::attach(|py| self.fun.bind(py).getattr_opt("argument_names").ok().flatten().map(Bound::unbind))?;
        Some(Arc::new(move || Python::attach(|py| names.call0(py).and_then(|n| n.extract(py)).unwrap_or_default())))
    }
}

fn flat(fun: &Bound<'_, PyAny>, name: &str, results: &Results) -> CallableRef {
    CallableRef(Arc::new(PyFlat { fun: fun.clone().unbind(), name: name.to_owned(), results: results.clone() }))
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

/// A Python forward-mode rule: `((*primals, *tangents), which tangents are zero) -> [*outs, *out tangents]`.
struct PyJvp {
    fun: Py<PyAny>,
    name: String,
    results: Results,
    complaints: Complaints,
}

impl PyJvp {
    fn checked(&self, py: Python<'_>, mut outs: Vec<Value>) -> PyResult<Vec<Value>> {
        let n = outs.len() / 2;
        if let Some((i, want)) = self.results.mismatch(&outs[..n]) {
            return Err(self.complaints.result(py, i, &outs[i], &want));
        }
        let (values, tangents) = outs.split_at_mut(n);
        for (i, (value, tangent)) in values.iter().zip(tangents).enumerate() {
            if tangent.dtype() != value.dtype().tangent() || tangent.shape() != value.shape() {
                return Err(self.complaints.derivative(py, i, tangent, &value.aval()));
            }
            if tangent.dtype() == DType::Float0 {
                // Nothing reads it; operations on its way take numbers.
                *tangent = Value::Lit(Lit { scalar: Scalar::zero(DType::F32), weak: false });
            }
        }
        Ok(outs)
    }
}

impl Callable for PyJvp {
    fn call(&self, args: &[Value]) -> Result<Vec<Value>> {
        self.call_with_zeros(args, &[])
    }

    fn call_with_zeros(&self, args: &[Value], zero: &[bool]) -> Result<Vec<Value>> {
        Python::attach(|py| {
            let outs = || flat_values(&self.fun.bind(py).call1((tuple(py, args)?, zero.to_vec()))?);
            rust(outs().and_then(|outs| self.checked(py, outs)))
        })
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Whether a function of these arguments can run as one program instead of operation by operation: the first is an array,
/// none is traced, nothing around the call is, and nobody watches operations. What a dtype asks for is told at each call.
#[pyfunction]
fn are_known(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> bool {
    let traced = |value: &Bound<'_, PyAny>| matches!(quick_value(value), Some(Value::Tracer(_)));
    let told = |name: &Bound<'_, PyAny>| name.extract::<&str>().is_ok_and(|n| matches!(n, "dtype" | "out"));
    is_plain()
        && !watched()
        && !checks_numbers()
        && !Flag::DisableJit.get()
        && args.get_item(0).is_ok_and(|first| matches!(quick_value(&first), Some(Value::Array(_))))
        && !args.iter().any(|arg| traced(&arg))
        && !kwargs.iter().any(|(name, value)| traced(&value) || (told(&name) && !value.is_none()))
}

/// Calls a function that has rules of its own, where none of them can matter: its arguments are arrays and Python's numbers
/// whose values are known, and nothing is traced. `NotImplemented` elsewhere.
#[pyfunction]
fn called_plainly<'py>(fun: &Bound<'py, PyAny>, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let py = fun.py();
    if !is_plain() {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let mut leaves = Leaves::new();
    let tree = flatten_into(args, &mut leaves)?;
    let mut numbers = false;
    for leaf in &mut leaves {
        match quick_value(leaf.bind(py)) {
            Some(Value::Array(_)) => {}
            Some(number @ Value::Lit(_)) => (*leaf, numbers) = (from_value(py, number)?, true),
            _ => return Ok(py.NotImplemented().into_bound(py)),
        }
    }
    let given = if numbers {
        unflatten(py, &tree, std::mem::take(&mut leaves))?.into_bound(py).cast_into()?
    } else {
        args.clone()
    };
    let out = fun.call1(given)?;
    if out.cast::<PyArray>().is_ok() {
        return Ok(out);
    }
    leaves.clear();
    let tree = flatten_into(&out, &mut leaves)?;
    let values = leaves.iter().map(|leaf| from_value(py, to_value(leaf.bind(py))?)).collect::<PyResult<Leaves>>()?;
    Ok(unflatten(py, &tree, values)?.into_bound(py))
}

/// Calls `fun(*flat)` with the rule `jvp((*primals, *tangents), zero) -> [*outs, *out tangents]`.
#[pyfunction]
fn bind_custom_jvp(
    py: Python<'_>,
    name: &str,
    fun: &Bound<'_, PyAny>,
    jvp: &Bound<'_, PyAny>,
    complaints: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    symbolic_zeros: bool,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let args = operands(&args)?;
    let results = Results::default();
    let fun = flat(fun, name, &results);
    let complaints = Complaints::new(complaints);
    let rule = PyJvp { fun: jvp.clone().unbind(), name: name_of(jvp), results, complaints };
    let outs = custom_jvp_call(name.into(), fun, CallableRef(Arc::new(rule)), symbolic_zeros, &args).py()?;
    objects(py, outs)
}

/// A Python reverse-mode rule: `fwd(perturbed, *flat) -> (outs, residuals)`, `bwd(residuals, cotangents, zero) -> cotangents`.
struct PyRule {
    fwd: Py<PyAny>,
    bwd: Py<PyAny>,
    name: String,
    names: (String, String),
    /// Avals of the operands.
    primals: Vec<Aval>,
    results: Results,
    complaints: Complaints,
}

impl PyRule {
    /// A cotangent in the type of its operand; an operand that is not differentiable has none.
    fn cotangent(&self, i: usize, ct: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        let primal = &self.primals[i];
        if ct.is_none() || !primal.dtype.is_inexact() {
            return Ok(None);
        }
        let value = to_value(ct)?;
        if fits(&value, primal) {
            return Ok(Some(value));
        }
        // Python's numbers have no dtype of their own.
        let number = value.aval().weak && value.dtype().category() <= primal.dtype.category();
        if number && value.shape() == primal.shape.as_slice() {
            return convert_element_type(&value, primal.dtype).py().map(Some);
        }
        Err(self.complaints.derivative(ct.py(), i, &value, primal))
    }
}

impl VjpRule for PyRule {
    fn fwd(&self, args: &[Value], perturbed: &[bool]) -> Result<(Vec<Value>, Vec<Value>)> {
        Python::attach(|py| {
            rust((|| {
                let perturbed = PyList::new(py, perturbed)?.into_any().unbind();
                let values = args.iter().map(|v| from_value(py, v.clone()));
                let given = std::iter::once(Ok(perturbed)).chain(values).collect::<PyResult<Vec<_>>>()?;
                let out = self.fwd.bind(py).call1(PyTuple::new(py, given)?)?;
                let outs = flat_values(&out.get_item(0)?)?;
                match self.results.mismatch(&outs) {
                    Some((i, want)) => Err(self.complaints.result(py, i, &outs[i], &want)),
                    None => Ok((outs, flat_values(&out.get_item(1)?)?)),
                }
            })())
        })
    }

    fn bwd(&self, residuals: &[Value], cts: &[Value], zero: &[bool]) -> Result<Vec<Option<Value>>> {
        Python::attach(|py| {
            rust((|| {
                let out = self.bwd.bind(py).call1((list(py, residuals)?, list(py, cts)?, zero.to_vec()))?;
                out.try_iter()?.enumerate().map(|(i, ct)| self.cotangent(i, &ct?)).collect()
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
    complaints: (Bound<'_, PyAny>, Bound<'_, PyAny>),
    symbolic_zeros: bool,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let args = operands(&args)?;
    let results = Results::default();
    let fun = flat(fun, name, &results);
    let rule = PyRule {
        fwd: fwd.clone().unbind(),
        bwd: bwd.clone().unbind(),
        name: name.to_owned(),
        names: (name_of(fwd), name_of(bwd)),
        primals: args.iter().map(Value::aval).collect(),
        results,
        complaints: Complaints::new(complaints),
    };
    let outs = custom_vjp_call(name.into(), fun, VjpRuleRef(Arc::new(rule)), symbolic_zeros, &args).py()?;
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
    call: &PyClosed,
    name: &str,
    rule: &Bound<'_, PyAny>,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let rule = PyVmapRule { name: name_of(rule), fun: rule.clone().unbind() };
    let params = CustomVmap {
        call: call.jaxpr().clone(),
        name: name.into(),
        num_consts: call.captured.len(),
        rule: VmapRuleRef(Arc::new(rule)),
    };
    let args: Vec<Value> = call.captured.iter().cloned().chain(operands(&args)?).collect();
    objects(py, custom_vmap_call(params, &args).py()?)
}

/// A Python callback: `fun(*arrays) -> list of arrays`; `printed() -> list of texts` stands for it in programs.
struct PyCallback {
    fun: Py<PyAny>,
    name: String,
    printed: Option<Py<PyAny>>,
}

impl HostCall for PyCallback {
    fn call(&self, args: &[(&Aval, &Buffer)], results: &[Aval]) -> Result<Vec<Buffer>> {
        let _there = OnCpu::start();
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

    fn printed(&self) -> Vec<String> {
        let texts = |f: &Py<PyAny>| Python::attach(|py| f.bind(py).call0()?.extract::<Vec<String>>()).ok();
        self.printed.as_ref().and_then(texts).unwrap_or_else(|| vec![self.name.clone()])
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

/// How host code is vectorized, by the name that users give.
pub fn method_of(name: Option<&str>) -> PyResult<VmapMethod> {
    let Some(name) = name else { return Ok(VmapMethod::Unsupported) };
    VmapMethod::named(name).ok_or_else(|| {
        pyo3::exceptions::PyValueError::new_err(format!(
            "vmap_method must be on of the allowed methods ['sequential', 'sequential_unrolled', 'expand_dims', \
             'broadcast_all', 'legacy_vectorized', None], but got: {name}"
        ))
    })
}

/// Calls host code from a program; `kind` is "pure", "io", "ordered", "debug", "ordered_debug", "print" or
/// "ordered_print".
#[pyfunction]
#[pyo3(signature = (fun, results, kind, vmap_method, args, printed=None))]
fn bind_callback(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    results: Vec<Bound<'_, PyAny>>,
    kind: &str,
    vmap_method: Option<&str>,
    args: Vec<Bound<'_, PyAny>>,
    printed: Option<Py<PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let kind = CallbackKind::named(kind)
        .ok_or_else(|| PyValueError::new_err(format!("no kind of callback is called {kind}")))?;
    let method = method_of(vmap_method)?;
    let host = HostRef(Arc::new(PyCallback { name: name_of(fun), fun: fun.clone().unbind(), printed }));
    let avals = results.iter().map(abstract_value).collect::<PyResult<Vec<Aval>>>()?;
    let outs = callback(kind, host, avals, method, &operands(&args)?).py()?;
    objects(py, outs)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(are_known, m)?)?;
    m.add_function(wrap_pyfunction!(called_plainly, m)?)?;
    m.add_function(wrap_pyfunction!(bind_custom_jvp, m)?)?;
    m.add_function(wrap_pyfunction!(bind_custom_vjp, m)?)?;
    m.add_function(wrap_pyfunction!(bind_custom_vmap, m)?)?;
    m.add_function(wrap_pyfunction!(bind_callback, m)?)
}
