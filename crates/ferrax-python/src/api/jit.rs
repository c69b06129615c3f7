//! `jit`: a callable that traces once per signature and runs the compiled program after that.
//!
//! The hot path is: leaves to values, hash, compare, run, wrap the result. It takes no Python frame.

use super::function::{Call, FlatCall, Function, Leaves, build, wrap_names};
use super::function::{from_value, quick_value, to_value};
use super::jaxpr::PyJaxpr;
use super::jit_cache::{Entry, JitCache, Signature, Static, hash};
use super::trees;
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Signature as TextSignature, Visit, new_callable};
use crate::tree::{self, TreeDef};
use ferrax_base::config::{self, Flag};
use ferrax_ir::{Aval, JaxprRef, Value};
use ferrax_ops::control::jit::jit_call;
use ferrax_transform::{Staged, eval_jaxpr, stage};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// A jitted function.
pub struct Jit {
    function: Function,
    static_argnums: Vec<i64>,
    static_argnames: Vec<String>,
    donate_argnums: Vec<i64>,
    donate_argnames: Vec<String>,
    inline: bool,
    cache: JitCache,
}

/// A call taken apart: static arguments aside.
struct Split<'py> {
    statics: Vec<Static>,
    /// Positions of the static positional arguments.
    positions: Vec<usize>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<Bound<'py, PyDict>>,
}

impl Jit {
    fn name(&self) -> &str {
        &self.function.debug.name
    }

    fn has_statics(&self) -> bool {
        !(self.static_argnums.is_empty() && self.static_argnames.is_empty())
    }

    fn run(&self, args: &Args<'_, '_>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        if Flag::DisableJit.get() {
            return Ok(args.forward(self.function.fun.bind(py))?.unbind());
        }
        if self.has_statics() {
            return self.run_static(args);
        }
        let config = config::trace_key();
        // All arguments positional leaves: no tree is needed to find the program.
        if args.kwlen() == 0 {
            let quick: Option<SmallVec<[Value; 8]>> = args.positional().map(|a| quick_value(&a)).collect();
            if let Some(values) = quick {
                let key = hash(py, None, &values, &[], config)?;
                if let Some(entry) = self.cache.find(py, key, None, &values, &[], config, self.name())? {
                    return self.finish(py, &entry, &values);
                }
                let call = Call::new(args)?;
                return self.miss(py, key, None, &call.tree, values, Vec::new(), &[], config);
            }
        }
        let call = Call::new(args)?;
        let values = self.values(py, &call.leaves, &call.tree, &[])?;
        let key = hash(py, Some(&call.tree), &values, &[], config)?;
        match self.cache.find(py, key, Some(&call.tree), &values, &[], config, self.name())? {
            Some(entry) => self.finish(py, &entry, &values),
            None => self.miss(py, key, Some(call.tree.clone()), &call.tree, values, Vec::new(), &[], config),
        }
    }

    /// The leaves as values; a leaf that is no JAX type is named in the error.
    fn values(
        &self,
        py: Python<'_>,
        leaves: &Leaves,
        tree: &TreeDef,
        statics: &[usize],
    ) -> PyResult<SmallVec<[Value; 8]>> {
        let mut values = SmallVec::with_capacity(leaves.len());
        for (i, leaf) in leaves.iter().enumerate() {
            values.push(to_value(leaf.bind(py)).map_err(|e| self.bad_leaf(py, e, i, leaf, tree, statics))?);
        }
        Ok(values)
    }

    #[cold]
    fn bad_leaf(
        &self,
        py: Python<'_>,
        e: PyErr,
        i: usize,
        leaf: &Py<PyAny>,
        tree: &TreeDef,
        statics: &[usize],
    ) -> PyErr {
        if !e.is_instance_of::<PyTypeError>(py) {
            return e;
        }
        let debug = self.function.debug_for(py, tree, statics);
        let names = debug.arg_names.map(|f| f()).unwrap_or_default();
        let path = names.get(i).cloned().unwrap_or_else(|| format!("leaf {i}"));
        let class = leaf.bind(py).get_type();
        PyTypeError::new_err(format!(
            "Error interpreting argument to {} as an abstract array. The problematic value is of type {class} and was \
             passed to the function at path {path}.\nThis typically means that a jit-wrapped function was called with a \
             non-array argument, and this argument was not marked as static using the static_argnums or \
             static_argnames parameters of jax.jit: '{}' of type {class} is not a valid JAX type.",
            debug_text(&self.function),
            leaf.bind(py).repr().map_or_else(|_| "?".into(), |r| r.to_string()),
        ))
    }

    fn split<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Split<'py>> {
        let py = args.py();
        let n = args.len() as i64;
        let positions: Vec<usize> = self
            .static_argnums
            .iter()
            .map(|&i| if i < 0 { i + n } else { i })
            .filter(|i| (0..n).contains(i))
            .map(|i| i as usize)
            .collect();
        let mut statics = Vec::new();
        let mut dynamic: Vec<Py<PyAny>> = Vec::new();
        for (i, a) in args.positional().enumerate() {
            if positions.contains(&i) {
                statics.push(Static::new(i.to_string(), &a, self.name())?);
            } else {
                dynamic.push(a.to_owned().unbind());
            }
        }
        let mut kwargs = None;
        let mut named = Vec::new();
        for (k, v) in args.keywords() {
            let name = k.to_str()?;
            if self.static_argnames.iter().any(|s| s == name) {
                named.push(Static::new(name.to_owned(), &v, self.name())?);
            } else {
                kwargs.get_or_insert_with(|| PyDict::new(py)).set_item(k, v)?;
            }
        }
        named.sort_by(|a, b| a.label.cmp(&b.label));
        statics.extend(named);
        Ok(Split { statics, positions, args: PyTuple::new(py, dynamic)?, kwargs })
    }

    fn run_static(&self, args: &Args<'_, '_>) -> PyResult<Py<PyAny>> {
        let py = args.py();
        let config = config::trace_key();
        let split = self.split(args)?;
        let mut leaves = Leaves::new();
        let tree = trees::flatten_args(&split.args, split.kwargs.as_ref(), &mut leaves)?;
        let values = self.values(py, &leaves, &tree, &split.positions)?;
        let key = hash(py, Some(&tree), &values, &split.statics, config)?;
        match self.cache.find(py, key, Some(&tree), &values, &split.statics, config, self.name())? {
            Some(entry) => self.finish(py, &entry, &values),
            None => self.miss(py, key, Some(tree.clone()), &tree, values, split.statics, &split.positions, config),
        }
    }

    /// Traces the function for these arguments.
    fn trace(
        &self,
        py: Python<'_>,
        tree: &TreeDef,
        avals: &[Aval],
        statics: &[Static],
        positions: &[usize],
    ) -> PyResult<(Staged, TreeDef)> {
        let debug = self.function.debug_for(py, tree, positions);
        let fun = with_statics(py, &self.function.fun, statics, positions)?;
        let mut call = FlatCall::new(py, &fun, tree, self.name());
        let staged = stage("jit", debug, avals, |args| call.call(args)).py()?;
        let out_tree = call.out_tree()?;
        Ok((staged, out_tree))
    }

    #[allow(clippy::too_many_arguments)]
    fn miss(
        &self,
        py: Python<'_>,
        key: u64,
        key_tree: Option<TreeDef>,
        tree: &TreeDef,
        values: SmallVec<[Value; 8]>,
        statics: Vec<Static>,
        positions: &[usize],
        config: u64,
    ) -> PyResult<Py<PyAny>> {
        self.cache.missed();
        let avals: SmallVec<[Aval; 4]> = values.iter().map(Value::aval).collect();
        let (staged, out_tree) = self.trace(py, tree, &avals, &statics, positions)?;
        let jaxpr: JaxprRef = staged.jaxpr.into();
        if !staged.captured.is_empty() {
            // The program belongs to this call alone: it refers to values of the traces around it.
            let args: Vec<Value> = staged.captured.into_iter().chain(values).collect();
            let outs = self.bind(jaxpr, &args)?;
            return build(py, &out_tree, outs);
        }
        let donate = self.donated(py, tree, positions)?;
        let entry =
            Arc::new(Entry::new(py, Signature { tree: key_tree, avals, statics, config }, jaxpr, out_tree, donate)?);
        self.cache.insert(key, entry.clone());
        if entry.donate.contains(&true) && ferrax_ir::trace::is_eager() {
            warn_unusable(py, &entry)?;
        }
        self.finish(py, &entry, &values)
    }

    /// Which leaves are donated; empty when none is.
    fn donated(&self, py: Python<'_>, tree: &TreeDef, positions: &[usize]) -> PyResult<Vec<bool>> {
        if self.donate_argnums.is_empty() && self.donate_argnames.is_empty() {
            return Ok(Vec::new());
        }
        let (args, kwargs) = trees::leaf_counts(py, tree)?;
        let total = args.len() + positions.len();
        let mut mask = Vec::new();
        let mut place = 0usize;
        for count in args {
            while positions.contains(&place) {
                place += 1;
            }
            let on = self.donate_argnums.iter().any(|&d| (if d < 0 { d + total as i64 } else { d }) == place as i64);
            mask.extend(std::iter::repeat_n(on, count));
            place += 1;
        }
        for (name, count) in kwargs {
            mask.extend(std::iter::repeat_n(self.donate_argnames.contains(&name), count));
        }
        Ok(mask)
    }

    fn bind(&self, jaxpr: JaxprRef, args: &[Value]) -> PyResult<Vec<Value>> {
        if self.inline {
            return eval_jaxpr(&jaxpr, args).py();
        }
        Ok(jit_call(self.function.debug.name.clone(), jaxpr, false, args).py()?.into_vec())
    }

    #[inline]
    fn finish(&self, py: Python<'_>, entry: &Entry, values: &[Value]) -> PyResult<Py<PyAny>> {
        let traced = values.iter().any(|v| matches!(v, Value::Tracer(_))) || !ferrax_ir::trace::is_eager();
        if traced {
            let outs = self.bind(entry.jaxpr.clone(), values)?;
            return build(py, &entry.out_tree, outs);
        }
        let mut outs = entry.executable().py()?.run(values, &entry.donate).py()?;
        if entry.single
            && let Some(out) = outs.pop()
        {
            return from_value(py, out);
        }
        build(py, &entry.out_tree, outs)
    }
}

/// Warns of donated arguments whose memory no result can use.
#[cold]
fn warn_unusable(py: Python<'_>, entry: &Entry) -> PyResult<()> {
    let unusable = entry.executable().py()?.unusable_donations(&entry.donate).py()?;
    if unusable.is_empty() {
        return Ok(());
    }
    let avals = entry.jaxpr.in_avals();
    let texts: Vec<String> = unusable.iter().map(|&i| avals[i].long_text()).collect();
    let text = format!(
        "Some donated buffers were not usable: {}.\nEach needs a result of the same shape and dtype that is not taken.",
        texts.join(", ")
    );
    let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
    PyErr::warn(py, &category, &std::ffi::CString::new(text)?, 1)
}

fn debug_text(f: &Function) -> String {
    f.debug.describe()
}

/// The function with its static arguments put back at their places.
fn with_statics(py: Python<'_>, fun: &Py<PyAny>, statics: &[Static], positions: &[usize]) -> PyResult<Py<PyAny>> {
    if statics.is_empty() {
        return Ok(fun.clone_ref(py));
    }
    let by_position = statics.iter().take(positions.len()).map(|s| s.value.clone_ref(py));
    let mut places: Vec<(usize, Py<PyAny>)> = {
        let mut sorted = positions.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().zip(by_position).collect()
    };
    places.sort_by_key(|(i, _)| *i);
    let named = statics[positions.len()..].iter().map(|s| (s.label.clone(), s.value.clone_ref(py))).collect();
    fastcall::new_bare(py, WithStatics { fun: fun.clone_ref(py), places, named })
}

/// A call that puts static arguments back.
struct WithStatics {
    fun: Py<PyAny>,
    places: Vec<(usize, Py<PyAny>)>,
    named: Vec<(String, Py<PyAny>)>,
}

impl FastCall for WithStatics {
    const TYPE_NAME: &'static std::ffi::CStr = c"ferrax.WithStatics";

    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        let mut all: Vec<Py<PyAny>> = args.positional().map(|a| a.to_owned().unbind()).collect();
        for (i, v) in &self.places {
            all.insert((*i).min(all.len()), v.clone_ref(py));
        }
        let kwargs = PyDict::new(py);
        for (k, v) in args.keywords() {
            kwargs.set_item(k, v)?;
        }
        for (k, v) in &self.named {
            kwargs.set_item(k, v)?;
        }
        self.fun.call(py, PyTuple::new(py, all)?, Some(&kwargs))
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.fun);
        self.places.iter().for_each(|(_, v)| visit.object(v));
        self.named.iter().for_each(|(_, v)| visit.object(v));
    }
}

impl FastCall for Jit {
    const TYPE_NAME: &'static std::ffi::CStr = c"ferrax.PjitFunction";
    const METHOD: bool = true;

    #[inline]
    fn call<'py>(&self, _py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        self.run(&args)
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.function.fun);
    }

    fn clear(&self) {
        self.cache.clear();
    }

    fn repr(&self, _slf: &Bound<'_, PyAny>) -> PyResult<String> {
        Python::attach(|py| Ok(format!("<PjitFunction of {}>", self.function.fun.bind(py).repr()?)))
    }
}

/// A jitted function; see `ferrax.jit`, which resolves names and numbers of arguments.
#[pyfunction]
#[pyo3(signature = (fun, static_argnums, static_argnames, donate_argnums, donate_argnames, inline))]
fn jit(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    static_argnums: Vec<i64>,
    static_argnames: Vec<String>,
    donate_argnums: Vec<i64>,
    donate_argnames: Vec<String>,
    inline: bool,
) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "jit")?;
    if donate_argnums.iter().any(|d| static_argnums.contains(d)) {
        return Err(PyValueError::new_err(format!(
            "static_argnums={static_argnums:?} and donate_argnums={donate_argnums:?} cannot intersect"
        )));
    }
    let jit = Jit {
        function,
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        inline,
        cache: JitCache::default(),
    };
    let wrapper = new_callable(py, jit, "jit", "", TextSignature::Unknown)?;
    wrap_names(wrapper.bind(py), fun)?;
    Ok(wrapper)
}

fn of<'a>(wrapper: &'a Bound<'_, PyAny>) -> PyResult<&'a Jit> {
    fastcall::get::<Jit>(wrapper).ok_or_else(|| PyTypeError::new_err("not a jitted function"))
}

/// Traces a jitted function: (program, structure of the arguments, structure of the result, donation mask).
#[pyfunction]
fn jit_trace(
    py: Python<'_>,
    wrapper: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<(PyJaxpr, tree::PyTreeDef, tree::PyTreeDef, Vec<bool>)> {
    let jit = of(wrapper)?;
    let n = args.len() as i64;
    let positions: Vec<usize> =
        (0..n).filter(|i| jit.static_argnums.iter().any(|&s| s == *i || s + n == *i)).map(|i| i as usize).collect();
    let mut statics = Vec::new();
    let mut dynamic: Vec<Bound<'_, PyAny>> = Vec::new();
    for (i, a) in args.iter().enumerate() {
        if positions.contains(&i) {
            statics.push(Static::new(i.to_string(), &a, jit.name())?);
        } else {
            dynamic.push(a);
        }
    }
    let rest = PyDict::new(py);
    for (k, v) in kwargs.iter() {
        let name: String = k.extract()?;
        if jit.static_argnames.contains(&name) {
            statics.push(Static::new(name, &v, jit.name())?);
        } else {
            rest.set_item(k, v)?;
        }
    }
    let mut leaves = Leaves::new();
    let dynamic = PyTuple::new(py, dynamic)?;
    let tree = trees::flatten_args(&dynamic, Some(&rest), &mut leaves)?;
    let avals = leaves.iter().map(|l| super::function::abstract_value(l.bind(py))).collect::<PyResult<Vec<Aval>>>()?;
    let (staged, out_tree) = jit.trace(py, &tree, &avals, &statics, &positions)?;
    let donate = jit.donated(py, &tree, &positions)?;
    let jaxpr = PyJaxpr { jaxpr: staged.jaxpr.into(), captured: staged.captured, out_tree: Some(out_tree.clone()) };
    Ok((jaxpr, tree::PyTreeDef(tree), tree::PyTreeDef(out_tree), donate))
}

/// Runs a program on flat arguments as a compiled unit.
#[pyfunction]
fn run_jaxpr(
    py: Python<'_>,
    jaxpr: &PyJaxpr,
    args: Vec<Bound<'_, PyAny>>,
    donate: Vec<bool>,
) -> PyResult<Vec<Py<PyAny>>> {
    let values = args.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
    let traced = values.iter().any(|v| matches!(v, Value::Tracer(_))) || !ferrax_ir::trace::is_eager();
    let outs = if traced {
        jit_call(jaxpr.jaxpr.debug.name.clone(), jaxpr.jaxpr.clone(), false, &values).py()?
    } else {
        ferrax::executable::executable(&jaxpr.jaxpr).py()?.run(&values, &donate).py()?
    };
    outs.into_iter().map(|v| from_value(py, v)).collect()
}

/// (hits, misses, entries) of a jitted function's cache.
#[pyfunction]
fn jit_cache_info(wrapper: &Bound<'_, PyAny>) -> PyResult<(usize, usize, usize)> {
    let c = of(wrapper)?.cache.counts();
    Ok((c.hits, c.misses, c.entries))
}

/// Forgets the programs of a jitted function.
#[pyfunction]
fn jit_clear_cache(wrapper: &Bound<'_, PyAny>) -> PyResult<()> {
    of(wrapper)?.cache.clear();
    Ok(())
}

/// The Python type of jitted functions; the facade adds `lower`, `trace` and `eval_shape` to it.
#[pyfunction]
fn jit_type(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyType>> {
    fastcall::type_of::<Jit>(py)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(jit, m)?)?;
    m.add_function(wrap_pyfunction!(jit_trace, m)?)?;
    m.add_function(wrap_pyfunction!(run_jaxpr, m)?)?;
    m.add_function(wrap_pyfunction!(jit_cache_info, m)?)?;
    m.add_function(wrap_pyfunction!(jit_clear_cache, m)?)?;
    m.add_function(wrap_pyfunction!(jit_type, m)?)
}
