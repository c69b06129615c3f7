//! Binding control flow from facade code: programs traced by `trace_to_jaxpr`, flat operands in, flat results out.
//!
//! Values that a traced function closed over are its program's leading parameters; they are passed here, so
//! facade code never sees them.

use super::function::rust;
use super::jaxpr::PyClosed;
use super::primitive::defined_parts;
use crate::errors::IntoPyResult;
use crate::value::{SizeArg, from_value, to_value};
use ferrax_ir::{JaxprRef, OpRef, Value};
use ferrax_ops::control::forwarded::{cond_forwarded, scan_forwarded, while_forwarded};
use ferrax_ops::control::linear_solve::{LinearSolve, linear_solve};
use ferrax_ops::control::remat::{Policy, PolicyRef, Remat, remat};
use ferrax_ops::control::scan::Scan;
use ferrax_ops::control::while_loop::While;
use ferrax_ops::control::{Asked, Loop};
use pyo3::prelude::*;
use std::sync::Arc;

fn values(args: &[Bound<'_, PyAny>]) -> PyResult<Vec<Value>> {
    args.iter().map(to_value).collect()
}

fn objects(py: Python<'_>, values: Vec<Value>) -> PyResult<Vec<Py<PyAny>>> {
    values.into_iter().map(|v| from_value(py, v)).collect()
}

/// The user's loop, by the name of the function that was called for it.
fn loop_of(asked: &str) -> Loop {
    Loop::named(match asked {
        "fori_loop" => Asked::ForiLoop,
        "map" => Asked::Map,
        _ => Asked::Itself,
    })
}

/// Scans a traced body over stacked inputs; `args` are the carry, then the inputs. `asked` is the user's
/// function.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn bind_scan(
    py: Python<'_>,
    body: &PyClosed,
    args: Vec<Bound<'_, PyAny>>,
    length: SizeArg,
    num_carry: usize,
    reverse: bool,
    unroll: usize,
    asked: &str,
) -> PyResult<Vec<Py<PyAny>>> {
    let params = Scan {
        jaxpr: body.jaxpr().clone(),
        length: length.0,
        num_carry,
        num_consts: body.captured.len(),
        reverse,
        unroll,
        linear_carry: false,
        of: loop_of(asked),
    };
    let operands: Vec<Value> = body.captured.iter().cloned().chain(values(&args)?).collect();
    objects(py, scan_forwarded(params, &operands).py()?)
}

/// Repeats a traced body while a traced condition holds; `args` are the carry.
#[pyfunction]
fn bind_while(
    py: Python<'_>,
    test: &PyClosed,
    body: &PyClosed,
    args: Vec<Bound<'_, PyAny>>,
    asked: &str,
) -> PyResult<Vec<Py<PyAny>>> {
    let params = While {
        cond_jaxpr: test.jaxpr().clone(),
        cond_nconsts: test.captured.len(),
        body_jaxpr: body.jaxpr().clone(),
        body_nconsts: body.captured.len(),
        of: loop_of(asked),
    };
    let operands: Vec<Value> = test.captured.iter().chain(&body.captured).cloned().chain(values(&args)?).collect();
    objects(py, while_forwarded(params, &operands).py()?)
}

/// Runs the traced branch that `index` (int32) chooses.
#[pyfunction]
fn bind_cond(
    py: Python<'_>,
    branches: Vec<Bound<'_, PyClosed>>,
    index: &Bound<'_, PyAny>,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let index = to_value(index)?;
    let mut captured: Vec<Value> = Vec::new();
    let places: Vec<Vec<usize>> = branches.iter().map(|b| places_of(&b.get().captured, &mut captured)).collect();
    let programs = branches.iter().zip(places).map(|(b, places)| widen(b.get().jaxpr(), &places, &captured)).collect();
    let operands: Vec<Value> = captured.iter().cloned().chain(values(&args)?).collect();
    objects(py, cond_forwarded(programs, &index, &operands).py()?)
}

/// Where the values that a branch captures are among those of all branches; what several branches capture is there once.
fn places_of(mine: &[Value], all: &mut Vec<Value>) -> Vec<usize> {
    let same = |a: &Value, b: &Value| match (a, b) {
        (Value::Tracer(a), Value::Tracer(b)) => a.ptr_eq(b),
        (Value::Array(a), Value::Array(b)) => a.ptr_eq(b),
        _ => false,
    };
    let mut places = Vec::with_capacity(mine.len());
    for value in mine {
        let found = (0..all.len()).find(|i| same(value, &all[*i]) && !places.contains(i));
        if found.is_none() {
            all.push(value.clone());
        }
        places.push(found.unwrap_or(all.len() - 1));
    }
    places
}

/// A branch that takes the captured values of all branches, its own at `places`.
fn widen(jaxpr: &JaxprRef, places: &[usize], all: &[Value]) -> JaxprRef {
    if places.len() == all.len() && places.iter().enumerate().all(|(i, &place)| i == place) {
        return jaxpr.clone();
    }
    let mut out = (**jaxpr).clone();
    let args = out.invars.split_off(places.len());
    let mine = std::mem::take(&mut out.invars);
    let mut invars = Vec::with_capacity(all.len() + args.len());
    for (i, v) in all.iter().enumerate() {
        let own = places.iter().position(|&place| place == i);
        invars.push(own.map_or_else(|| out.new_var(v.aval()), |at| mine[at]));
    }
    invars.extend(args);
    out.invars = invars;
    out.into()
}

/// A policy that asks a Python function: `policy(primitive, *avals, **params) -> bool`, where a primitive of ferrax's own
/// is its name.
struct PyPolicy {
    fun: Py<PyAny>,
}

impl PyPolicy {
    fn ask(&self, py: Python<'_>, op: &OpRef, inputs: &[ferrax_ir::Aval]) -> PyResult<bool> {
        let (primitive, params) = if let Some((primitive, params)) = defined_parts(py, op) {
            (primitive.into_bound(py), params.into_bound(py))
        } else {
            let params = pyo3::types::PyDict::new(py);
            for (name, value) in op.print_params() {
                params.set_item(name, value.to_string())?;
            }
            (pyo3::types::PyString::new(py, op.name()).into_any(), params)
        };
        let mut args: Vec<Bound<'_, PyAny>> = vec![primitive];
        for aval in inputs {
            args.push(Bound::new(py, crate::aval::ShapedArray(aval.clone()))?.into_any());
        }
        self.fun.call(py, pyo3::types::PyTuple::new(py, args)?, Some(&params))?.bind(py).is_truthy()
    }
}

impl Policy for PyPolicy {
    fn saveable(&self, op: &OpRef, inputs: &[ferrax_ir::Aval]) -> ferrax_base::Result<bool> {
        Python::attach(|py| rust(self.ask(py, op, inputs)))
    }

    fn name(&self) -> String {
        Python::attach(|py| {
            self.fun.getattr(py, "__name__").and_then(|n| n.extract(py)).unwrap_or_else(|_| "policy".into())
        })
    }
}

/// A rematerialization policy; make one per Python function, since programs compare policies by identity.
#[pyclass(frozen, name = "CheckpointPolicy", module = "ferrax")]
struct PyPolicyRef(PolicyRef);

#[pymethods]
impl PyPolicyRef {
    #[new]
    fn new(fun: Py<PyAny>) -> Self {
        PyPolicyRef(PolicyRef(Arc::new(PyPolicy { fun })))
    }
}

/// Calls a traced function under rematerialization.
#[pyfunction]
fn bind_remat(
    py: Python<'_>,
    body: &PyClosed,
    args: Vec<Bound<'_, PyAny>>,
    prevent_cse: bool,
    policy: Option<&PyPolicyRef>,
) -> PyResult<Vec<Py<PyAny>>> {
    let policy = policy.map(|p| p.0.clone());
    let params = Remat { differentiated: false, jaxpr: body.jaxpr().clone(), policy, prevent_cse };
    let operands: Vec<Value> = body.captured.iter().cloned().chain(values(&args)?).collect();
    objects(py, remat(params, &operands).py()?)
}

/// Solves a linear equation by traced programs: the matrix's product, its transpose's, and their solvers.
#[pyfunction]
fn bind_linear_solve(
    py: Python<'_>,
    matvec: &PyClosed,
    vecmat: Option<&PyClosed>,
    solve: &PyClosed,
    transpose_solve: Option<&PyClosed>,
    args: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let programs = [Some(matvec), vecmat, Some(solve), transpose_solve];
    let params = LinearSolve {
        matvec: matvec.jaxpr().clone(),
        solve: solve.jaxpr().clone(),
        vecmat: vecmat.map(|p| p.jaxpr().clone()),
        transpose_solve: transpose_solve.map(|p| p.jaxpr().clone()),
        const_lengths: programs.iter().map(|p| p.map_or(0, |p| p.captured.len())).collect(),
    };
    let captured = programs.iter().flatten().flat_map(|p| p.captured.iter().cloned());
    let operands: Vec<Value> = captured.chain(values(&args)?).collect();
    objects(py, linear_solve(params, &operands).py()?.into_vec())
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(bind_scan, m)?)?;
    m.add_function(wrap_pyfunction!(bind_while, m)?)?;
    m.add_function(wrap_pyfunction!(bind_cond, m)?)?;
    m.add_function(wrap_pyfunction!(bind_remat, m)?)?;
    m.add_function(wrap_pyfunction!(bind_linear_solve, m)?)?;
    m.add_class::<PyPolicyRef>()
}
