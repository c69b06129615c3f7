//! Primitives that users define in Python (`ferrax.extend.core.Primitive`), and operations by name and parameters.
//!
//! A [`PyOp`] asks its Python object for every rule: `_ferrax_abstract`, `_ferrax_run` and so on of
//! `python/ferrax/_primitives.py`. Equal parameters of one primitive give one operation while somebody holds it, so that
//! comparing operations, which caches do under their locks, asks no Python.
//!
//! Read next: `jaxpr.rs` for equations as Python sees them, `_primitives.py` for the rules.

use super::function::rust;
use super::jaxpr::{PyClosed, PyOpaque, PyOpen};
use crate::aval::ShapedArray;
use crate::errors::IntoPyResult;
use crate::value::{from_value, to_value};
use ferrax_base::error;
use ferrax_base::fork::Lock;
use ferrax_ir::op::{BatchAxis, BatchDims, OpRole, Operands, Rewriter};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{
    Atom, Aval, Avals, DebugInfo, Effects, JaxprRef, Op, OpRef, Param, Result, Tangents, TransposeArg, Value, Values,
    bind,
};
use ferrax_loops::{Builder, ValueId};
use ferrax_ops::control::custom_jvp::{CUSTOM_JVP, CustomJvp};
use ferrax_ops::control::custom_vjp::{CUSTOM_VJP, CustomVjp};
use ferrax_ops::control::custom_vmap::{CUSTOM_VMAP, CustomVmap};
use ferrax_ops::control::jit::{JIT, Jit};
use ferrax_ops::control::remat::{REMAT, Remat};
use ferrax_transform::staging::stage_closed;
use pyo3::exceptions::{PyNotImplementedError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// A primitive of a user's with its parameters.
pub struct Defined {
    primitive: Py<PyAny>,
    params: Py<PyDict>,
    name: String,
    /// Effects, known once types have been asked for.
    effects: AtomicU8,
}

/// The operation: equal when it is the same [`Defined`].
struct PyOp(Arc<Defined>);

/// What identifies operations that users define, as the address of a definition does others.
static DEFINED: u8 = 0;

const NO_RULE: &str = "a primitive that a user defines";

impl PyOp {
    fn ask<'py>(
        &self,
        py: Python<'py>,
        rule: &str,
        args: impl IntoIterator<Item = Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let args = args.into_iter().chain([self.0.params.clone_ref(py).into_any()]);
        self.0.primitive.bind(py).call_method1(rule, PyTuple::new(py, args.collect::<Vec<_>>())?)
    }

    /// The program of the lowering at these types.
    fn lowered(&self, avals: &[Aval]) -> Result<JaxprRef> {
        stage_closed("jit", DebugInfo::named(&self.0.name), avals, |args| {
            Python::attach(|py| rust((|| values_of(&self.ask(py, "_ferrax_lower", [objects(py, args)?])?))()))
        })
    }
}

fn list(py: Python<'_>, items: impl IntoIterator<Item = PyResult<Py<PyAny>>>) -> PyResult<Py<PyAny>> {
    Ok(PyList::new(py, items.into_iter().collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
}

fn objects(py: Python<'_>, values: &[Value]) -> PyResult<Py<PyAny>> {
    list(py, values.iter().map(|v| from_value(py, v.clone())))
}

/// As [`objects`], `None` where there is nothing.
fn optional(py: Python<'_>, values: &[Option<Value>]) -> PyResult<Py<PyAny>> {
    list(py, values.iter().map(|v| v.as_ref().map_or_else(|| Ok(py.None()), |v| from_value(py, v.clone()))))
}

fn values_of(out: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    out.try_iter()?.map(|v| to_value(&v?)).collect()
}

fn optional_of(out: &Bound<'_, PyAny>) -> PyResult<Tangents> {
    out.try_iter()?
        .map(|v| {
            let v = v?;
            if v.is_none() { Ok(None) } else { to_value(&v).map(Some) }
        })
        .collect()
}

fn aval_object(py: Python<'_>, aval: &Aval) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, ShapedArray(aval.clone()))?.into_any())
}

impl Op for PyOp {
    fn name(&self) -> &str {
        &self.0.name
    }
    fn doc(&self) -> &'static str {
        NO_RULE
    }
    fn def_id(&self) -> usize {
        std::ptr::from_ref(&DEFINED) as usize
    }
    fn params(&self) -> &dyn Any {
        &self.0
    }
    fn print_params(&self) -> Vec<(&'static str, Param)> {
        Python::attach(|py| printed(self.0.params.bind(py)))
    }
    fn params_eq(&self, other: &dyn Op) -> bool {
        other.params().downcast_ref::<Arc<Defined>>().is_some_and(|o| Arc::ptr_eq(o, &self.0))
    }
    fn params_hash(&self, mut state: &mut dyn Hasher) {
        (Arc::as_ptr(&self.0) as usize).hash(&mut state);
    }
    fn asks_host(&self) -> bool {
        true
    }
    fn subjaxprs(&self) -> Vec<JaxprRef> {
        // programs among the parameters are the rules' own business
        Vec::new()
    }
    fn effects(&self) -> Effects {
        Effects(self.0.effects.load(Relaxed))
    }
    fn vary(&self, operands: u32) -> Option<ferrax_ir::manual::Vary> {
        Some(ferrax_ir::manual::Vary { operands, results: operands })
    }
    fn coverage(&self) -> [Option<&'static str>; 7] {
        [None, None, None, Some(NO_RULE), Some(NO_RULE), None, Some(NO_RULE)]
    }
    fn abstract_eval(&self, args: &[&Aval]) -> Result<Avals> {
        Python::attach(|py| {
            rust((|| {
                let avals = list(py, args.iter().map(|a| aval_object(py, a)))?;
                let out = self.ask(py, "_ferrax_abstract", [avals])?;
                if out.get_item(1)?.is_truthy()? {
                    self.0.effects.store(Effects::IO.0, Relaxed);
                }
                let all = args.iter().fold(0, |bits, a| bits | a.vary);
                let of = |a: PyResult<Bound<'_, PyAny>>| {
                    crate::value::abstract_value(&a?).map(|aval| Aval { vary: all, ..aval })
                };
                out.get_item(0)?.try_iter()?.map(of).collect()
            })())
        })
    }
    fn jvp(&self, _: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
        Python::attach(|py| {
            rust((|| {
                let out = self.ask(py, "_ferrax_jvp", [objects(py, primals)?, optional(py, tangents)?])?;
                Ok((values_of(&out.get_item(0)?)?.into(), optional_of(&out.get_item(1)?)?))
            })())
        })
    }
    fn linearize(&self, this: &OpRef, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
        self.jvp(this, primals, tangents)
    }
    fn transpose(&self, _: &OpRef, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
        Python::attach(|py| {
            rust((|| {
                let operands = list(
                    py,
                    args.iter().map(|a| match a {
                        TransposeArg::Known(v) => from_value(py, v.clone()),
                        TransposeArg::Linear(aval) => aval_object(py, aval),
                    }),
                )?;
                let linear: Vec<bool> = args.iter().map(TransposeArg::is_linear).collect();
                let linear = PyList::new(py, linear)?.into_any().unbind();
                optional_of(&self.ask(py, "_ferrax_transpose", [optional(py, cts)?, operands, linear])?)
            })())
        })
    }
    fn batch(
        &self,
        _: &OpRef,
        axis: &BatchAxis,
        args: &[Value],
        dims: &[Option<usize>],
    ) -> Result<(Values, BatchDims)> {
        Python::attach(|py| {
            rust((|| {
                let size = axis.size.into_pyobject(py)?.into_any().unbind();
                let name = axis.name.as_deref().into_pyobject(py)?.unbind();
                let places = PyList::new(py, dims)?.into_any().unbind();
                let out = self.ask(py, "_ferrax_batch", [size, name, objects(py, args)?, places])?;
                let dims = out.get_item(1)?.extract::<Vec<Option<usize>>>()?;
                Ok((values_of(&out.get_item(0)?)?.into(), dims.into()))
            })())
        })
    }
    fn simplify(&self, _: &OpRef, _: &mut dyn Rewriter, _: &[Atom]) -> Result<Option<SmallVec<[Atom; 1]>>> {
        Ok(None)
    }
    fn kernel(&self, _: &OpRef, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>> {
        let avals: Vec<Aval> = args
            .iter()
            .map(|&a| {
                let ty = b.ty(a);
                Aval { shape: ty.shape.iter().copied().collect(), dtype: ty.dtype, weak: false, vary: 0, spread: 0 }
            })
            .collect();
        let jaxpr = self.lowered(&avals)?;
        let got = jaxpr.out_avals();
        if got.len() != outs.len() || !got.iter().zip(outs).all(|(g, w)| g.same_type(w)) {
            let text = |all: &[Aval]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(error!(
                Type,
                "the lowering of the primitive {} gives ({}), where its abstract evaluation says ({})",
                self.0.name,
                text(&got),
                text(outs)
            ));
        }
        let call = OpRef::new(&JIT, Jit { name: self.0.name.as_str().into(), jaxpr, inline: true });
        call.kernel(&call, b, args, outs)
    }
    fn reference(&self, _: &[RefTensor], _: &[Aval]) -> Result<Vec<RefTensor>> {
        Err(error!(NotImplemented, "the reference of the primitive {} is not implemented: {NO_RULE}", self.0.name))
    }
    fn stage(&self, _: &OpRef, _: &[Value]) -> Option<Result<(OpRef, Operands)>> {
        None
    }
    fn stages(&self) -> bool {
        // its types may be unknown: where it only runs, it needs no rule for them
        true
    }
    fn eager(&self, _: &OpRef, args: &[Value]) -> Option<Result<Values>> {
        Some(Python::attach(|py| {
            rust((|| Ok(values_of(&self.ask(py, "_ferrax_run", [objects(py, args)?])?)?.into()))())
        }))
    }
    fn runs_itself(&self) -> bool {
        true
    }
    fn axes(&self) -> &[Arc<str>] {
        &[]
    }
    fn role(&self) -> OpRole {
        OpRole::Opaque
    }
    fn edge(&self) -> bool {
        false
    }
    fn pulls_zeros(&self) -> bool {
        true
    }
}

/// Parameters as printed; names of parameters are few, and live as long as the process.
fn printed(params: &Bound<'_, PyDict>) -> Vec<(&'static str, Param)> {
    let mut out: Vec<(&'static str, Param)> = params
        .iter()
        .map(|(name, value)| {
            let param = match jaxpr_of(&value) {
                Some(jaxpr) => Param::Jaxpr(jaxpr),
                None => Param::Text(shown(&value)),
            };
            (interned(&name.to_string()), param)
        })
        .collect();
    out.sort_by_key(|(name, _)| *name);
    out
}

/// A parameter as JAX prints it; what cannot be hashed is short, as it may be an array.
fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.hash().and_then(|_| value.str()) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => crate::shorten::repr(value),
    }
}

fn interned(name: &str) -> &'static str {
    static NAMES: Lock<BTreeMap<String, &'static str>> = Lock::new(BTreeMap::new());
    let mut names = NAMES.lock();
    if let Some(known) = names.get(name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name.to_owned(), leaked);
    leaked
}

/// A program that depends on nothing around it.
fn jaxpr_of(value: &Bound<'_, PyAny>) -> Option<JaxprRef> {
    if let Ok(closed) = value.cast::<PyClosed>() {
        return closed.get().captured.is_empty().then(|| closed.get().jaxpr().clone());
    }
    let open = value.cast::<PyOpen>().ok()?;
    Some(open.get().0.whole().clone())
}

/// Operations by the hash that their Python object gives, while somebody holds them.
static KNOWN: Lock<BTreeMap<isize, Vec<Weak<Defined>>>> = Lock::new(BTreeMap::new());

/// The operation of a user's primitive: one object for equal parameters, where they can be hashed.
fn defined(primitive: &Bound<'_, PyAny>, params: &Bound<'_, PyDict>) -> PyResult<OpRef> {
    let py = primitive.py();
    let key = primitive.call_method1("_ferrax_key", (params,))?;
    let made = || -> PyResult<Arc<Defined>> {
        Ok(Arc::new(Defined {
            primitive: primitive.clone().unbind(),
            params: params.clone().unbind(),
            name: primitive.getattr("name")?.extract()?,
            effects: AtomicU8::new(0),
        }))
    };
    if key.is_none() {
        return Ok(OpRef::Shared(Arc::new(PyOp(made()?))));
    }
    let hash = key.hash()?;
    // Python code may run while parameters are compared, and drop or make other operations: not under the lock
    let candidates: Vec<Arc<Defined>> = {
        let mut known = KNOWN.lock();
        let row = known.entry(hash).or_default();
        row.retain(|w| w.strong_count() > 0);
        row.iter().filter_map(Weak::upgrade).collect()
    };
    for candidate in candidates {
        let same = candidate.primitive.is(primitive)
            && primitive.call_method1("_ferrax_key", (candidate.params.bind(py),))?.eq(&key)?;
        if same {
            return Ok(OpRef::Shared(Arc::new(PyOp(candidate))));
        }
    }
    let new = made()?;
    let mut known = KNOWN.lock();
    if known.len() > 2 * LIVE.load(std::sync::atomic::Ordering::Relaxed).max(64) {
        known.retain(|_, row| row.iter().any(|w| w.strong_count() > 0));
        LIVE.store(known.len(), std::sync::atomic::Ordering::Relaxed);
    }
    known.entry(hash).or_default().push(Arc::downgrade(&new));
    Ok(OpRef::Shared(Arc::new(PyOp(new))))
}

/// Rows of [`KNOWN`] that were alive when it was last swept.
static LIVE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// The user's primitive and parameters of an operation, if it is one of a user's.
pub fn defined_parts(py: Python<'_>, op: &OpRef) -> Option<(Py<PyAny>, Py<PyDict>)> {
    let d = op.params().downcast_ref::<Arc<Defined>>()?;
    Some((d.primitive.clone_ref(py), d.params.clone_ref(py)))
}

/// The operation of a Python primitive object with parameters.
pub fn op_of(primitive: &Bound<'_, PyAny>, params: &Bound<'_, PyDict>) -> PyResult<OpRef> {
    if primitive.getattr("_ferrax_built_in")?.is_truthy()? {
        let name: String = primitive.getattr("name")?.extract()?;
        return named(&name, params);
    }
    defined(primitive, params)
}

/// The built-in operation of this name, from parameters as equations show them.
fn named(name: &str, params: &Bound<'_, PyDict>) -> PyResult<OpRef> {
    let Some(primitive) = table().get(name) else {
        return Err(PyNotImplementedError::new_err(format!("the primitive {name} is not one of ferrax's")));
    };
    static OWN: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    let own = crate::dtypes::imported(&OWN, params.py(), "ferrax._parameters", "own")?;
    let own = own.call1((params,))?.cast_into::<PyDict>()?;
    let mut fields = BTreeMap::new();
    let mut template = None;
    for (key, value) in own.iter() {
        if let Ok(opaque) = value.cast::<PyOpaque>() {
            template = Some(opaque.get().op.clone());
        }
        fields.insert(key.extract::<String>()?, field(&value)?);
    }
    if let Some(op) = template {
        return with_programs(&op, &fields);
    }
    match primitive.parse(&fields) {
        Some(op) => Ok(op),
        None => Err(PyTypeError::new_err(format!(
            "the primitive {name} cannot be bound with the parameters {}",
            crate::shorten::repr(params.as_any())
        ))),
    }
}

/// Whether text and programs tell an operation: its printed parameters give it back.
pub fn told(op: &OpRef, printed: &[(&'static str, Param)]) -> bool {
    let fields = printed.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    table().get(op.name()).and_then(|p| p.parse(&fields)).is_some_and(|again| again == *op)
}

type Table = HashMap<&'static str, &'static dyn ferrax_ops::registry::Primitive>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| ferrax_ops::registry::all().into_iter().map(|p| (p.name(), p)).collect())
}

/// A parameter in the form that operations print.
fn field(value: &Bound<'_, PyAny>) -> PyResult<Param> {
    if let Some(jaxpr) = jaxpr_of(value) {
        return Ok(Param::Jaxpr(jaxpr));
    }
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        let items = value.try_iter()?.map(|v| field(&v?)).collect::<PyResult<Vec<_>>>()?;
        if items.iter().any(|p| !matches!(p, Param::Text(_))) {
            return Ok(Param::Tuple(items));
        }
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Param::Text(text));
    }
    if let Ok(dtype) = crate::dtypes::parse(value, "a parameter")
        && !value.is_none()
        && !value.is_instance_of::<pyo3::types::PyType>()
        && value.hasattr("itemsize")?
    {
        return Ok(Param::Text(dtype.dtype.name().into()));
    }
    Ok(Param::Text(value.str()?.extract()?))
}

/// An operation whose parameters text cannot tell, with other programs.
fn with_programs(op: &OpRef, fields: &BTreeMap<String, Param>) -> PyResult<OpRef> {
    let program = |name: &str| match fields.get(name) {
        Some(Param::Jaxpr(j)) => Some(j.clone()),
        _ => None,
    };
    if let (Some(p), Some(j)) = (op.of(&CUSTOM_JVP), program("call_jaxpr")) {
        return Ok(OpRef::new(&CUSTOM_JVP, CustomJvp { call_jaxpr: Some(j), ..p.clone() }));
    }
    if let (Some(p), Some(j)) = (op.of(&CUSTOM_VJP), program("call_jaxpr")) {
        return Ok(OpRef::new(&CUSTOM_VJP, CustomVjp { call_jaxpr: Some(j), ..p.clone() }));
    }
    if let (Some(p), Some(call)) = (op.of(&CUSTOM_VMAP), program("call")) {
        return Ok(OpRef::new(&CUSTOM_VMAP, CustomVmap { call, ..p.clone() }));
    }
    if let (Some(p), Some(jaxpr)) = (op.of(&REMAT), program("jaxpr")) {
        return Ok(OpRef::new(&REMAT, Remat { jaxpr, ..p.clone() }));
    }
    Ok(op.clone())
}

/// Applies a primitive to values.
#[pyfunction]
fn bind_primitive(
    py: Python<'_>,
    primitive: &Bound<'_, PyAny>,
    args: Vec<Bound<'_, PyAny>>,
    params: &Bound<'_, PyDict>,
) -> PyResult<Vec<Py<PyAny>>> {
    let op = op_of(primitive, params)?;
    let args = args.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
    bind(&op, &args).py()?.into_iter().map(|v| from_value(py, v)).collect()
}

/// The number of the transformation whose function runs on this thread; 0 for none.
#[pyfunction]
fn current_trace() -> u64 {
    ferrax_ir::trace::current().0
}

/// The named mapped axes in force, outer ones first, with their sizes.
#[pyfunction]
fn named_axes() -> Vec<(String, usize)> {
    ferrax_ir::trace::named_axes().into_iter().map(|(name, size)| (name.to_string(), size)).collect()
}

/// The number of the transformation that a tracer belongs to, and its name.
#[pyfunction]
fn trace_of(x: &Bound<'_, PyAny>) -> PyResult<Option<(u64, &'static str)>> {
    let value = to_value(x)?;
    Ok(value.as_tracer().map(|t| (t.trace().id().0, t.trace().transform())))
}

/// The names of the built-in primitives.
#[pyfunction]
fn primitive_names() -> Vec<&'static str> {
    ferrax_ops::registry::all().into_iter().map(ferrax_ir::parse::Primitive::name).collect()
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(bind_primitive, m)?)?;
    m.add_function(wrap_pyfunction!(current_trace, m)?)?;
    m.add_function(wrap_pyfunction!(named_axes, m)?)?;
    m.add_function(wrap_pyfunction!(trace_of, m)?)?;
    m.add_function(wrap_pyfunction!(primitive_names, m)?)
}
