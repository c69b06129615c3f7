//! Tracing for facade code: a function of trees to a program, and linear transposition.

use super::function::{FlatCall, Function, Leaves};
use super::jaxpr::PyClosed;
use super::kept_traces::Place;
use super::trees;
use crate::errors::IntoPyResult;
use crate::value::{abstract_value, from_value, to_value};
use ferrax_ir::print::printed_consts;
use ferrax_ir::{Aval, JaxprRef, TransposeArg, Value};
use ferrax_transform::stage;
use ferrax_transform::structural::instantiate;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Traces `fun(*args, **kwargs)`: arguments are arrays, scalars or anything with a shape and a dtype. Where JAX does, it
/// gives the program that the function has from before; `of` is the function of the user's that `fun` stands for.
#[pyfunction]
#[pyo3(signature = (fun, args, kwargs, transform, of=None))]
fn trace_to_jaxpr(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    transform: &str,
    of: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyClosed> {
    let function = Function::new(fun, transform)?;
    let mut leaves = Leaves::new();
    let in_tree = trees::flatten_args(args, kwargs, &mut leaves)?;
    let avals = leaves.iter().map(|l| abstract_value(l.bind(py))).collect::<PyResult<Vec<Aval>>>()?;
    let transform = match transform {
        "make_jaxpr" => "make_jaxpr",
        "scan" => "scan",
        "cond" => "cond",
        "switch" => "switch",
        "while_cond" => "while_cond",
        "while_body" => "while_body",
        "fori_loop" => "fori_loop",
        "checkpoint" => "checkpoint / remat",
        "eval_shape" => "eval_shape",
        "custom_linear_solve" => "custom_linear_solve",
        _ => "jit",
    };
    let kept = if transform == "jit" {
        None
    } else {
        Place::of(of.unwrap_or(fun), &in_tree, &avals, (transform, of.is_some()))
    };
    if let Some(program) = kept.as_ref().and_then(Place::get) {
        return Ok(program);
    }
    let debug = function.debug_for(py, &in_tree, &[]);
    let mut call = FlatCall::new(py, &function.fun, &in_tree, &function.debug);
    let mut staged = stage(transform, debug, &avals, |values| call.to_end(values)).py()?;
    let out_tree = call.out_tree()?;
    super::references::ended(fun, &mut staged.jaxpr, &staged.captured, &out_tree)?;
    staged.jaxpr.debug.result_names = Some(trees::result_names(&out_tree));
    let program: JaxprRef = staged.jaxpr.into();
    crate::watch::traced(py, &program)?;
    let program = PyClosed::traced(program, staged.captured, out_tree.clone());
    if let Some(place) = kept {
        place.keep(&program, &out_tree, None);
    }
    Ok(program)
}

/// Cotangents of the parameters of a linear program.
#[pyfunction]
fn transpose_jaxpr(py: Python<'_>, jaxpr: &PyClosed, cotangents: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
    let n = jaxpr.captured.len();
    let avals = jaxpr.jaxpr().in_avals();
    let args: Vec<TransposeArg> = jaxpr
        .captured
        .iter()
        .map(|v| TransposeArg::Known(v.clone()))
        .chain(avals[n..].iter().map(|a| TransposeArg::Linear(a.clone())))
        .collect();
    let cts = cotangents.iter().map(|c| to_value(c).map(Some)).collect::<PyResult<Vec<_>>>()?;
    let pulled = ferrax_transform::backward(jaxpr.jaxpr(), &args, &cts).py()?;
    pulled.into_iter().zip(&avals).skip(n).map(|(ct, a)| from_value(py, instantiate(ct, &a.tangent()).py()?)).collect()
}

/// The text of a program that `read_program` reads back, and the arrays that it refers to.
#[pyfunction]
fn write_program(py: Python<'_>, jaxpr: &PyClosed) -> PyResult<(String, Vec<Py<PyAny>>)> {
    let text = format!("{:#}", &**jaxpr.jaxpr());
    let consts = printed_consts(jaxpr.jaxpr()).into_iter().map(|c| from_value(py, Value::Array(c)));
    Ok((text, consts.collect::<PyResult<_>>()?))
}

/// The program of a text, checked as one that a stranger has written.
#[pyfunction]
fn read_program(text: &str, consts: Vec<Bound<'_, PyAny>>) -> PyResult<PyClosed> {
    let array = |c: &Bound<'_, PyAny>| match to_value(c)? {
        Value::Array(a) => Ok(a),
        _ => Err(PyTypeError::new_err("a constant of a program is an array")),
    };
    let consts = consts.iter().map(array).collect::<PyResult<Vec<_>>>()?;
    let jaxpr: JaxprRef = ferrax_ir::parse::parse(text, &ferrax_ops::registry::parser(), &consts).py()?.into();
    jaxpr.verify().py()?;
    Ok(PyClosed::new(jaxpr))
}

/// Whether operations on plain arrays run at once here, instead of being recorded.
#[pyfunction]
fn is_eager() -> bool {
    ferrax_ir::trace::is_eager()
}

/// A context manager's hold on eager evaluation; see `ferrax.ensure_compile_time_eval`.
#[pyclass(unsendable, module = "ferrax")]
struct EagerScope {
    guard: Option<ferrax_ir::trace::BaseGuard>,
}

#[pymethods]
impl EagerScope {
    #[new]
    fn new() -> Self {
        EagerScope { guard: None }
    }

    fn __enter__(&mut self) -> PyResult<()> {
        if self.guard.is_some() {
            return Err(PyTypeError::new_err("the context is already entered"));
        }
        self.guard = Some(ferrax_ir::trace::BaseGuard::eager());
        Ok(())
    }

    #[pyo3(signature = (*_exc))]
    fn __exit__(&mut self, _exc: &Bound<'_, PyTuple>) {
        self.guard = None;
    }
}

/// Forgets every cached transformation and compiled program.
#[pyfunction]
fn clear_caches() {
    ferrax_transform::programs::clear_caches();
    ferrax::executable::clear_cache();
    ferrax::dispatch::clear_cache();
    super::jit_cache::clear();
    super::kept_traces::clear();
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(trace_to_jaxpr, m)?)?;
    m.add_function(wrap_pyfunction!(transpose_jaxpr, m)?)?;
    m.add_function(wrap_pyfunction!(write_program, m)?)?;
    m.add_function(wrap_pyfunction!(read_program, m)?)?;
    m.add_function(wrap_pyfunction!(is_eager, m)?)?;
    m.add_function(wrap_pyfunction!(clear_caches, m)?)?;
    m.add_class::<EagerScope>()
}
