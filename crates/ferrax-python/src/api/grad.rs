//! `grad` and `value_and_grad`: one linearizing run, then the tape backward.
//!
//! Nothing is staged: outside `jit` the function sees concrete values.

use super::auxiliary::{Aux, Returned, halves};
use super::function::{Function, Leaves, args_tuple, call_user, kwargs_dict, rust, wrap_names};
use super::references;
use super::residuals::{self, Meta, PyHollow, State};
use super::trees;
use crate::boundary;
use crate::errors::IntoPyResult;
use crate::fastcall::{Args, FastCall, Signature, Visit, new_callable};
use crate::shorten;
use crate::tree::{self, PyTreeDef, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_base::scopes::Scoped;
use ferrax_base::shape::Tuple;
use ferrax_base::{DType, Scalar};
use ferrax_ir::{Aval, Lit, Value};
use ferrax_transform::linearize;
use ferrax_transform::linearize::Linearized;
use ferrax_transform::structural::instantiate;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A differentiated function.
struct Grad {
    function: Function,
    argnums: SmallVec<[i64; 2]>,
    /// `argnums` was one number, so the gradient is one tree, not a tuple.
    single: bool,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    with_value: bool,
}

/// An argument that is differentiated, taken apart.
struct Active {
    position: usize,
    tree: TreeDef,
    /// Its leaves among all active leaves.
    range: std::ops::Range<usize>,
}

impl Grad {
    fn what(&self) -> &'static str {
        if self.with_value { "value_and_grad" } else { "grad" }
    }

    /// The differentiated arguments and their leaves.
    fn active(&self, args: &Args<'_, '_>) -> PyResult<(SmallVec<[Active; 1]>, Leaves)> {
        let mut leaves = Leaves::new();
        let mut active = SmallVec::new();
        for &n in &self.argnums {
            let position = if n < 0 { n + args.len() as i64 } else { n };
            if position < 0 {
                return Err(out_of_range(n, args.len()));
            }
            if position >= args.len() as i64 {
                return Err(self.too_few(args.len()));
            }
            if active.iter().any(|a: &Active| a.position == position as usize) {
                let argnums = Tuple(&self.argnums);
                return Err(PyTypeError::new_err(format!(
                    "argnums={argnums} names argument {position} more than once"
                )));
            }
            let from = leaves.len();
            let tree = tree::flatten_into(&args.at(position as usize), &mut leaves)?;
            active.push(Active { position: position as usize, tree, range: from..leaves.len() });
        }
        Ok((active, leaves))
    }

    #[cold]
    fn too_few(&self, given: usize) -> PyErr {
        let needed = self.argnums.iter().max().map_or(0, |n| n + 1);
        let argnums = if self.single { self.argnums[0].to_string() } else { Tuple(&self.argnums).to_string() };
        PyTypeError::new_err(format!(
            "differentiating with respect to argnums={argnums} requires at least {needed} positional arguments to be \
             passed by the caller, but got only {given} positional arguments. It is the call of {}.",
            self.function.debug.describe()
        ))
    }

    fn check_input(&self, aval: &Aval) -> PyResult<()> {
        let d = aval.dtype;
        let what = self.what();
        if self.holomorphic && !d.is_complex() {
            return Err(PyTypeError::new_err(format!(
                "{what} with holomorphic=True requires inputs with complex dtype, but got {d}."
            )));
        }
        if d.is_inexact() || (self.allow_int && (d.is_integer() || d.is_bool() || d.is_key())) {
            return Ok(());
        }
        Err(PyTypeError::new_err(format!(
            "{what} requires real- or complex-valued inputs (input dtype that is a sub-dtype of np.inexact), but got \
             {d} for {}. Pass a float (2.0 in place of 2), or use vjp or allow_int=True for Boolean and integer inputs.",
            self.function.debug.describe()
        )))
    }

    fn check_output(&self, out: &Value) -> PyResult<()> {
        let d = out.dtype();
        if out.rank() != 0 {
            return Err(PyTypeError::new_err(format!(
                "Gradient only defined for scalar-output functions. Output had shape: {}. Reduce the result of {} to a \
                 scalar (with jnp.sum, say), or use jax.jacrev or jax.vjp.",
                ferrax_base::shape::Tuple(out.shape()),
                self.function.debug.describe()
            )));
        }
        let fine = if self.holomorphic { d.is_complex() } else { d.is_float() };
        if fine {
            return Ok(());
        }
        if self.holomorphic {
            return Err(PyTypeError::new_err(format!(
                "{} with holomorphic=True requires outputs with complex dtype, but got {d}.",
                self.what()
            )));
        }
        let hint = if d.is_complex() {
            " For holomorphic differentiation, pass holomorphic=True. For differentiation of non-holomorphic functions \
             involving complex outputs, use jax.vjp directly."
        } else {
            " For differentiation of functions with integer outputs, use jax.vjp directly."
        };
        Err(PyTypeError::new_err(format!(
            "{} requires real-valued outputs (output dtype that is a sub-dtype of np.floating), but got {d} from {}.{hint}",
            self.what(),
            self.function.debug.describe()
        )))
    }

    /// The call with the active arguments rebuilt from `values`.
    fn rebuilt<'py>(&self, args: &Args<'_, 'py>, active: &[Active], values: &[Value]) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let mut objects: SmallVec<[Py<PyAny>; 8]> = args.positional().map(|a| a.to_owned().unbind()).collect();
        for a in active {
            let leaves = values[a.range.clone()].iter().map(|v| from_value(py, v.clone()));
            let leaves = leaves.collect::<PyResult<Leaves>>()?;
            objects[a.position] = tree::unflatten(py, &a.tree, leaves)?;
        }
        let tuple = PyTuple::new(py, objects)?;
        call_user(self.function.fun.bind(py), tuple, kwargs_dict(args)?.as_ref())
    }

    /// Splits the auxiliary part off and checks for the one scalar.
    fn split_aux<'py>(&self, out: Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        if !self.has_aux {
            return Ok((out, None));
        }
        match halves(&out) {
            Some((main, aux)) => Ok((main, Some(aux))),
            None => Err(PyTypeError::new_err(format!(
                "expected function with aux output to return a two-element tuple, but got type {} with value {}: with \
                 has_aux=True, {} must return the pair (result, aux)",
                out.get_type(),
                shorten::repr(&out),
                self.function.debug.describe()
            ))),
        }
    }

    fn run(&self, args: &Args<'_, '_>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let (active, leaves) = self.active(args)?;
        let primals = leaves.iter().map(|l| to_value(l.bind(py))).collect::<PyResult<SmallVec<[Value; 8]>>>()?;
        for v in &primals {
            self.check_input(&v.aval())?;
        }
        let on: SmallVec<[bool; 8]> = primals.iter().map(|v| v.dtype().is_inexact()).collect();
        let mut kept: Option<Aux> = None;
        let debug = self.function.debug.clone();
        let lin = linearize("grad", debug, &primals, &on, |values| {
            let _frame = Scoped::transform("jvp");
            let out = rust(self.rebuilt(args, &active, values))?;
            let (main, aux) = rust(self.split_aux(out))?;
            let mut flat = rust(self.scalar(&main))?;
            if let Some(aux) = aux {
                kept = Some(rust(Aux::take(&aux, &mut flat, &self.function.debug))?);
            }
            Ok(flat)
        })
        .py()?;
        self.check_output(&lin.outs[0])?;
        let grads = self.pull(py, &lin, &active, &primals)?;
        self.results(py, lin, kept, grads)
    }

    /// The function's main result as one value.
    fn scalar(&self, out: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
        let value = to_value(out).map_err(|e| {
            if !e.is_instance_of::<PyTypeError>(out.py()) {
                return e;
            }
            PyTypeError::new_err(format!(
                "Gradient only defined for scalar-output functions. Output was {}. Return one scalar from {}, or a pair \
                 (result, aux) with has_aux=True.",
                shorten::repr(out),
                self.function.debug.describe()
            ))
        })?;
        Ok(vec![value])
    }

    fn pull(&self, py: Python<'_>, lin: &Linearized, active: &[Active], primals: &[Value]) -> PyResult<Py<PyAny>> {
        let one = Value::Lit(Lit { scalar: Scalar::one(lin.outs[0].dtype()), weak: lin.outs[0].weak() });
        let mut cts: SmallVec<[Option<Value>; 4]> = smallvec::smallvec![None; lin.outs.len()];
        cts[0] = Some(one);
        let frame = Scoped::transform("transpose");
        let pulled = lin.pull_back(&cts).py()?;
        drop(frame);
        let mut values = Vec::with_capacity(pulled.len());
        for (ct, x) in pulled.into_iter().zip(primals) {
            let aval = x.aval().tangent().with_weak(x.weak());
            values.push(instantiate(ct, &aval).py()?);
        }
        let tree = |a: &Active| {
            let leaves = values[a.range.clone()].iter().map(|v| from_value(py, v.clone()));
            tree::unflatten(py, &a.tree, leaves.collect::<PyResult<Leaves>>()?)
        };
        if self.single {
            return tree(&active[0]);
        }
        Ok(PyTuple::new(py, active.iter().map(tree).collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
    }

    fn results(&self, py: Python<'_>, lin: Linearized, aux: Option<Aux>, grads: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let mut outs = lin.outs.into_iter();
        let Some(main) = outs.next() else { return Ok(grads) };
        let aux = aux.map(|aux| aux.build(py, outs)).transpose()?;
        let tuple = |items: Vec<Py<PyAny>>| Ok(PyTuple::new(py, items)?.into_any().unbind());
        match (self.with_value, aux) {
            (false, None) => Ok(grads),
            (false, Some(aux)) => tuple(vec![grads, aux]),
            (true, None) => tuple(vec![from_value(py, main)?, grads]),
            (true, Some(aux)) => {
                let value = PyTuple::new(py, [from_value(py, main)?, aux])?.into_any().unbind();
                tuple(vec![value, grads])
            }
        }
    }
}

impl FastCall for Grad {
    const TYPE_NAME: &'static std::ffi::CStr = c"ferrax.GradFunction";

    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        match self.run(&args) {
            Err(e) if e.is_instance_of::<PyTypeError>(py) && trees::has_leaf(&args, references::is_high) => {
                boundary::call(&self.of_values(py)?, &args)
            }
            result => result,
        }
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.function.fun);
    }
}

impl Grad {
    /// The gradient for arguments among which there are values that are no arrays.
    #[cold]
    fn of_values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let transform = if self.with_value { "value_and_grad" } else { "grad" };
        let argnums = match &self.argnums[..] {
            [n] if self.single => n.into_pyobject(py)?.into_any(),
            all => PyTuple::new(py, all)?.into_any(),
        };
        let options = (self.has_aux, self.holomorphic, self.allow_int);
        py.import("ferrax._derivatives")?
            .call_method1("gradient_of_values", (transform, &self.function.fun, argnums, options))
    }
}

#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
fn make(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    argnums: &Bound<'_, PyAny>,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    with_value: bool,
) -> PyResult<Py<PyAny>> {
    let what = if with_value { "value_and_grad" } else { "grad" };
    let single = argnums.extract::<i64>().is_ok();
    let argnums: SmallVec<[i64; 2]> = super::function::indices(argnums)?.into();
    if argnums.is_empty() {
        return Err(PyValueError::new_err(format!(
            "{what} needs at least one argument to differentiate; argnums is empty"
        )));
    }
    let function = Function::new(fun, what)?;
    let doc = format!(
        "{} of {}: takes the same arguments, differentiates with respect to positional argument(s) {argnums:?}.",
        if with_value { "Value and gradient" } else { "Gradient" },
        function.debug.name
    );
    let grad = Grad { function, argnums, single, has_aux, holomorphic, allow_int, with_value };
    let wrapper = new_callable(py, grad, what, &doc, Signature::Unknown)?;
    wrap_names(wrapper.bind(py), fun)?;
    wrapper.setattr(py, "__doc__", doc)?;
    Ok(wrapper)
}

/// Gradient of a scalar function; see `ferrax.grad`.
#[pyfunction]
#[pyo3(signature = (fun, argnums, has_aux, holomorphic, allow_int))]
fn grad(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    argnums: &Bound<'_, PyAny>,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> PyResult<Py<PyAny>> {
    make(py, fun, argnums, has_aux, holomorphic, allow_int, false)
}

/// Value and gradient of a scalar function; see `ferrax.value_and_grad`.
#[pyfunction]
#[pyo3(signature = (fun, argnums, has_aux, holomorphic, allow_int))]
fn value_and_grad(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    argnums: &Bound<'_, PyAny>,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> PyResult<Py<PyAny>> {
    make(py, fun, argnums, has_aux, holomorphic, allow_int, true)
}

/// A pulled-back function: cotangents of the results → cotangents of the arguments.
#[pyclass(frozen, name = "VJP", module = "ferrax", weakref)]
struct PyVjp {
    state: State,
    /// What it keeps of the arguments, once Python has asked: a list that Python may change.
    args_res: Mutex<Option<Py<PyAny>>>,
}

impl PyVjp {
    fn new(state: State) -> PyVjp {
        PyVjp { state, args_res: Mutex::new(None) }
    }

    fn listed(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.args_res.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of the leaves are arguments, which come first.
    fn arguments(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.state.args(py)?.iter().flatten().max().map_or(0, |n| n + 1))
    }

    /// The leaves of the node, with what Python has put into `args_res`.
    fn leaves(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let mut leaves = self.state.leaves(py)?;
        let Some(listed) = self.listed().as_ref().map(|l| l.clone_ref(py)) else { return Ok(leaves) };
        let args = self.state.args(py)?;
        let wanted: Vec<bool> = args.iter().map(Option::is_some).collect();
        let tree = PyTreeDef(self.state.meta.in_tree.clone());
        let given = py.import("ferrax._linearized")?.getattr("_restored")?.call1((listed, tree, wanted))?;
        for (at, value) in args.iter().zip(given.extract::<Vec<Py<PyAny>>>()?) {
            if let Some(at) = at {
                leaves[*at] = value;
            }
        }
        Ok(leaves)
    }
}

#[pymethods]
impl PyVjp {
    /// The traced values that it works around, for leak reports.
    fn _tracers(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.state.tracers(py)
    }

    /// Leaves and data of the pytree node that it is.
    fn _flatten(&self, py: Python<'_>) -> PyResult<(Vec<Py<PyAny>>, Py<PyHollow>)> {
        Ok((self.leaves(py)?, self.state.hollow(py)?.clone_ref(py)))
    }

    /// The data of the node, and how many of its leaves are arguments.
    fn _hollow(&self, py: Python<'_>) -> PyResult<(Py<PyHollow>, usize)> {
        Ok((self.state.hollow(py)?.clone_ref(py), self.arguments(py)?))
    }

    #[staticmethod]
    fn _unflatten(data: &Bound<'_, PyHollow>, leaves: Vec<Py<PyAny>>) -> PyVjp {
        PyVjp::new(State::filled(data, leaves))
    }

    /// The arguments that the backward pass needs as they were, a list of trees with `NotNeeded()` for the others. What
    /// is put into the list, or in its place, counts.
    #[getter]
    fn args_res(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        if let Some(listed) = &*self.listed() {
            return Ok(listed.clone_ref(py));
        }
        let (args, leaves) = (self.state.args(py)?, self.state.leaves(py)?);
        let values: Vec<Option<Py<PyAny>>> = args.iter().map(|at| at.map(|n| leaves[n].clone_ref(py))).collect();
        let tree = PyTreeDef(self.state.meta.in_tree.clone());
        let wanted: Vec<bool> = args.iter().map(Option::is_some).collect();
        let made = py.import("ferrax._linearized")?.getattr("_arranged")?.call1((tree, values, wanted))?.unbind();
        Ok(self.listed().get_or_insert(made).clone_ref(py))
    }

    #[setter]
    fn set_args_res(&self, args_res: Py<PyAny>) {
        *self.listed() = Some(args_res);
    }

    /// What the forward pass has computed for the backward one, in order.
    #[getter]
    fn opaque_residuals(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        Ok(self.state.leaves(py)?.split_off(self.arguments(py)?))
    }

    /// Structure of the arguments.
    #[getter]
    fn in_tree(&self) -> PyTreeDef {
        PyTreeDef(self.state.meta.in_tree.clone())
    }

    /// Structure of the result.
    #[getter]
    fn out_tree(&self) -> PyTreeDef {
        PyTreeDef(self.state.meta.out_tree.clone())
    }

    /// A pullback that adds cotangents to references. One entry an argument: a reference, `jax.ad.GradValue()` (the
    /// cotangent as a value) or `jax.ad.DontWant()`.
    #[pyo3(signature = (*wanted))]
    fn with_refs<'py>(slf: Bound<'py, Self>, wanted: Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("ferrax._refs_calls")?.getattr("with_refs")?.call1((slf, wanted))
    }

    #[pyo3(signature = (*given))]
    fn __call__(&self, py: Python<'_>, given: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let [cotangents] = given.as_slice() else {
            return Err(self.wrong_count(given.len()));
        };
        self.pull(py, cotangents, None)
    }

    /// The cotangents of the arguments; of the leaves that are not wanted any number.
    #[pyo3(name = "_pull", signature = (cotangents, wanted))]
    fn pull(&self, py: Python<'_>, cotangents: &Bound<'_, PyAny>, wanted: Option<Vec<bool>>) -> PyResult<Py<PyAny>> {
        let mut leaves = Leaves::new();
        let tree = tree::flatten_into(cotangents, &mut leaves)?;
        let Meta { in_tree, out_tree, primals, outs, .. } = &*self.state.meta;
        if !trees::same(py, &tree, out_tree)? {
            return Err(PyValueError::new_err(format!(
                "unexpected tree structure of the argument to a VJP function: got {}, but expected to match {}, the \
                 structure of the function's result:\n  * {}",
                trees::display(py, &tree),
                trees::display(py, out_tree),
                trees::differences(py, &tree, out_tree, ["the argument", "the result"])?
            )));
        }
        let cts = leaves.iter().zip(outs).map(|(l, out)| cotangent(l.bind(py), out)).collect::<PyResult<Vec<_>>>()?;
        let edited = self.listed().is_some();
        let frame = Scoped::transform("transpose");
        let pulled = if edited {
            let data = self.state.hollow(py)?.bind(py).clone();
            State::filled(&data, self.leaves(py)?).with(py, |lin| lin.pull_back_to(&cts, wanted.as_deref()).py())?
        } else {
            self.state.with(py, |lin| lin.pull_back_to(&cts, wanted.as_deref()).py())?
        };
        drop(frame);
        let values = pulled
            .into_iter()
            .zip(primals)
            .enumerate()
            .map(|(i, (ct, aval))| match &wanted {
                Some(wanted) if !wanted[i] => Ok(Value::from(0)),
                _ => instantiate(ct, &aval.tangent()).py(),
            })
            .collect::<PyResult<Vec<Value>>>()?;
        super::function::build(py, in_tree, values)
    }
}

impl PyVjp {
    #[cold]
    fn wrong_count(&self, given: usize) -> PyErr {
        PyTypeError::new_err(format!(
            "The function returned by `jax.vjp` applied to {} was called with {given} arguments, but functions returned by \
             `jax.vjp` must be called with a single argument, of the structure of the one value that the function \
             returned: a tuple of cotangents where it returned a tuple. It is the derivative of {}.",
            self.state.meta.debug.name,
            self.state.meta.debug.describe()
        ))
    }
}

/// A cotangent checked against its result; float0 ones are zero.
fn cotangent(ct: &Bound<'_, PyAny>, out: &Aval) -> PyResult<Option<Value>> {
    let want = out.tangent();
    let value = to_value(ct)?;
    if want.dtype == DType::Float0 {
        return Ok(None);
    }
    // a number of Python has no dtype of its own
    let value = match value {
        Value::Lit(l) if l.weak && (want.dtype.is_complex() || !l.scalar.dtype.is_complex()) => {
            Value::Lit(ferrax_ir::Lit { scalar: l.scalar.convert(want.dtype), weak: l.weak })
        }
        other => other,
    };
    if value.dtype() != want.dtype || value.shape() != want.shape.as_slice() {
        return Err(PyValueError::new_err(format!(
            "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got {}, but expected {} because the \
             corresponding output of the differentiated function had JAX type {}",
            value.aval().long_text(),
            want.long_text(),
            out.long_text()
        )));
    }
    Ok(Some(value))
}

/// (results, pulled-back function[, aux]) of `fun` at `primals`; see `ferrax.vjp`.
#[pyfunction]
#[pyo3(signature = (fun, primals, has_aux))]
fn vjp(py: Python<'_>, fun: &Bound<'_, PyAny>, primals: &Bound<'_, PyTuple>, has_aux: bool) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "vjp")?;
    let mut leaves = Leaves::new();
    let in_tree = tree::flatten_into(primals.as_any(), &mut leaves)?;
    let values = leaves.iter().map(|l| to_value(l.bind(py))).collect::<PyResult<Vec<Value>>>()?;
    let on = vec![true; values.len()];
    let mut returned = Returned::default();
    let lin = linearize("vjp", function.debug.clone(), &values, &on, |args| {
        let _frame = Scoped::transform("jvp");
        let leaves = rust(args.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Leaves>>())?;
        let tuple = rust(tree::unflatten(py, &in_tree, leaves))?;
        let tuple = rust(tuple.bind(py).cast::<PyTuple>().map_err(PyErr::from).cloned())?;
        let out = rust(fun.call1(tuple))?;
        rust(returned.take(out, has_aux, &function.debug))
    })
    .py()?;
    let Returned { tree: out_tree, count, aux: kept } = returned;
    let Some(out_tree) = out_tree else { return Err(PyTypeError::new_err("vjp did not call the function")) };
    let mut lin = lin;
    let aux = lin.outs.split_off(count);
    lin.out_vars.truncate(count);
    let result = super::function::build(py, &out_tree, lin.outs.iter().cloned())?;
    let primals = values.iter().map(Value::aval).collect();
    let outs = lin.outs.iter().map(Value::aval).collect();
    let ids = values.iter().map(residuals::id).collect();
    let meta = Meta { in_tree, out_tree, primals, outs, ids, debug: function.debug.clone() };
    let pulled = Py::new(py, PyVjp::new(State::new(lin, meta)))?.into_any();
    let mut items = vec![result, pulled];
    if let Some(kept) = kept {
        items.push(kept.build(py, aux)?);
    }
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// The linear part of a function at a point: tangents of the arguments → tangents of the results.
#[pyclass(frozen, name = "LinearizedFunction", module = "ferrax", weakref)]
struct PyLinear(State);

#[pymethods]
impl PyLinear {
    /// The traced values that it works around, for leak reports.
    fn _tracers(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.0.tracers(py)
    }

    /// Leaves and data of the pytree node that it is.
    fn _flatten(&self, py: Python<'_>) -> PyResult<(Vec<Py<PyAny>>, Py<PyHollow>)> {
        Ok((self.0.leaves(py)?, self.0.hollow(py)?.clone_ref(py)))
    }

    #[staticmethod]
    fn _unflatten(data: &Bound<'_, PyHollow>, leaves: Vec<Py<PyAny>>) -> PyLinear {
        PyLinear(State::filled(data, leaves))
    }

    #[pyo3(signature = (*tangents))]
    fn __call__(&self, py: Python<'_>, tangents: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let mut leaves = Leaves::new();
        let tree = tree::flatten_into(tangents.as_any(), &mut leaves)?;
        let Meta { in_tree, out_tree, primals, outs, .. } = &*self.0.meta;
        if !trees::same(py, &tree, in_tree)? {
            return Err(PyTypeError::new_err(format!(
                "linearized function called with tangents of structure {}, but the primals have {}:\n  * {}",
                trees::display(py, &tree),
                trees::display(py, in_tree),
                trees::differences(py, &tree, in_tree, ["the tangents", "the primals"])?
            )));
        }
        let values = leaves
            .iter()
            .zip(primals)
            .map(|(l, aval)| tangent(l.bind(py), aval, Some("linearized function")))
            .collect::<PyResult<Vec<_>>>()?;
        let pushed = self.0.with(py, |lin| lin.push_forward(&values).py())?;
        let pushed = pushed
            .into_iter()
            .zip(outs)
            .map(|(t, o)| instantiate(t, &o.tangent()).py())
            .collect::<PyResult<Vec<Value>>>()?;
        super::function::build(py, out_tree, pushed)
    }
}

/// A tangent checked against its primal; float0 ones are zero.
fn tangent(t: &Bound<'_, PyAny>, primal: &Aval, linear: Option<&str>) -> PyResult<Option<Value>> {
    let value = to_value(t)?;
    let want = primal.tangent();
    if want.dtype == DType::Float0 {
        if value.dtype() == DType::Float0 {
            return Ok(None);
        }
    } else if value.dtype() == want.dtype && value.shape() == want.shape.as_slice() {
        return Ok(Some(value));
    }
    if let Some(name) = linear {
        return Err(PyValueError::new_err(format!(
            "{name} called on tangent values inconsistent with the original primal values: got a tangent of type {} for a \
             primal of type {}, but expected {}",
            value.aval().long_text(),
            primal.long_text(),
            want.long_text()
        )));
    }
    if value.shape() != want.shape.as_slice() {
        return Err(PyValueError::new_err(format!(
            "jvp called with different primal and tangent shapes; Got primal shape {} and tangent shape as {}",
            ferrax_base::shape::Tuple(&primal.shape),
            ferrax_base::shape::Tuple(value.shape())
        )));
    }
    Err(PyTypeError::new_err(format!(
        "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in case of int/bool primal \
         dtype the tangent dtype must be float0. Got primal dtype {} and so expected tangent dtype {}, but got tangent \
         dtype {} instead.",
        primal.dtype,
        want.dtype,
        value.dtype()
    )))
}

/// (results, linear function[, aux]) of `fun` at `primals`; see `ferrax.linearize`.
#[pyfunction]
fn linearize_fun(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    primals: &Bound<'_, PyTuple>,
    has_aux: bool,
) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "linearize")?;
    let mut leaves = Leaves::new();
    let call_tree = trees::flatten_args(primals, None, &mut leaves)?;
    let mut only_args = Leaves::new();
    let in_tree = tree::flatten_into(primals.as_any(), &mut only_args)?;
    let values = leaves.iter().map(|l| to_value(l.bind(py))).collect::<PyResult<Vec<Value>>>()?;
    let on = vec![true; values.len()];
    let mut returned = Returned::default();
    let mut lin = linearize("linearize", function.debug.clone(), &values, &on, |args| {
        let _frame = Scoped::transform("jvp");
        let out = rust(super::function::call_values(py, &function.fun, &call_tree, args))?;
        rust(returned.take(out, has_aux, &function.debug))
    })
    .py()?;
    let Returned { tree: out_tree, count, aux: kept } = returned;
    let Some(out_tree) = out_tree else { return Err(PyTypeError::new_err("linearize did not call the function")) };
    let aux = lin.outs.split_off(count);
    lin.out_vars.truncate(count);
    let result = super::function::build(py, &out_tree, lin.outs.iter().cloned())?;
    let primals = values.iter().map(Value::aval).collect();
    let outs = lin.outs.iter().map(Value::aval).collect();
    // a linear function's leaves are in the order of its program
    let meta = Meta { in_tree, out_tree, primals, outs, ids: Vec::new(), debug: function.debug.clone() };
    let mut items = vec![result, Py::new(py, PyLinear(State::new(lin, meta)))?.into_any()];
    if let Some(kept) = kept {
        items.push(kept.build(py, aux)?);
    }
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// (results, tangents[, aux]) of `fun` at `primals` along `tangents`; see `ferrax.jvp`.
#[pyfunction]
#[pyo3(signature = (fun, primals, tangents, has_aux))]
fn jvp(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    primals: &Bound<'_, PyTuple>,
    tangents: &Bound<'_, PyTuple>,
    has_aux: bool,
) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "jvp")?;
    let (mut leaves, mut tangent_leaves) = (Leaves::new(), Leaves::new());
    let in_tree = trees::flatten_args(primals, None, &mut leaves)?;
    let tangent_tree = trees::flatten_args(tangents, None, &mut tangent_leaves)?;
    if !trees::same(py, &in_tree, &tangent_tree)? {
        return Err(PyTypeError::new_err(format!(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure {} \
             whereas tangents have tree structure {}:\n  * {}",
            trees::display(py, &in_tree),
            trees::display(py, &tangent_tree),
            trees::differences(py, &in_tree, &tangent_tree, ["primals", "tangents"])?
        )));
    }
    let values = leaves.iter().map(|l| to_value(l.bind(py))).collect::<PyResult<Vec<Value>>>()?;
    let pairs = tangent_leaves.iter().zip(&values).map(|(t, v)| tangent(t.bind(py), &v.aval(), None));
    let pairs = pairs.collect::<PyResult<Vec<_>>>()?;
    let mut returned = Returned::default();
    let (outs, out_tangents) = ferrax_transform::jvp(function.debug.clone(), &values, &pairs, |args| {
        let _frame = Scoped::transform("jvp");
        let out = rust(super::function::call_values(py, &function.fun, &in_tree, args))?;
        rust(returned.take(out, has_aux, &function.debug))
    })
    .py()?;
    let Returned { tree: out_tree, count, aux: kept } = returned;
    let Some(out_tree) = out_tree else { return Err(PyTypeError::new_err("jvp did not call the function")) };
    let filled = out_tangents
        .into_iter()
        .zip(&outs)
        .take(count)
        .map(|(t, o)| instantiate(t, &o.aval().tangent()).py())
        .collect::<PyResult<Vec<Value>>>()?;
    let mut items = vec![
        super::function::build(py, &out_tree, outs[..count].iter().cloned())?,
        super::function::build(py, &out_tree, filled)?,
    ];
    if let Some(kept) = kept {
        items.push(kept.build(py, outs[count..].iter().cloned())?);
    }
    Ok(PyTuple::new(py, items)?.into_any().unbind())
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(grad, m)?)?;
    m.add_function(wrap_pyfunction!(value_and_grad, m)?)?;
    m.add_function(wrap_pyfunction!(vjp, m)?)?;
    m.add_function(wrap_pyfunction!(linearize_fun, m)?)?;
    m.add_function(wrap_pyfunction!(jvp, m)?)?;
    m.add_class::<PyHollow>()?;
    m.add_class::<PyVjp>()?;
    m.add_class::<PyLinear>()
}

/// Positional arguments and keyword arguments as Python objects, for callers that forward a call.
pub fn forwarded<'py>(args: &Args<'_, 'py>) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    Ok((args_tuple(args)?, kwargs_dict(args)?))
}

#[cold]
fn out_of_range(n: i64, given: usize) -> PyErr {
    PyValueError::new_err(format!(
        "Positional argument indices, e.g. for `static_argnums`, must have value greater than or equal to -len(args) and \
         less than len(args), but got value {n} for len(args) == {given}."
    ))
}
