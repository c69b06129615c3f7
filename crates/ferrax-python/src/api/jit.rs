//! `jit`: a callable that traces once per signature and runs the compiled program after that.
//!
//! The hot path is: leaves to values, hash, compare, run, wrap the result. It takes no Python frame.

use super::donation::{check_leaves, is_path, no_such_path, nothing_donated, usual_quotes, warn_unusable};
use super::explain;
use super::explicit;
use super::function::{
    Call, FlatCall, Function, Leaves, ParamNames, build, no_value, too_large, unwrapped, wrap_names,
};
use super::guards::{Captured, Guards, Watch};
use super::jaxpr::PyClosed;
use super::jit_cache::{self, Kept, Key, Options, Parts, Program, Programs, Signature, programs_of};
use super::kept_traces::{self, Place};
use super::references;
use super::source::OfAnyCaller;
use super::statics::Static;
use super::trees;
use super::typed_args::{of_type, without_types};
use crate::array::{ArrayImpl, PyArray, wrap_array};
use crate::boundary;
use crate::devices;
use crate::errors::IntoPyResult;
use crate::fastcall::{self, Args, FastCall, Signature as TextSignature, Visit, new_callable};
use crate::shorten;
use crate::tree::{self, TreeDef};
use crate::value::{abstract_value, from_value, quick_value, to_value};
use ferrax_base::config::{self, Flag};
use ferrax_ir::{Array, Aval, Effects, JaxprRef, Value};
use ferrax_ops::control::jit::jit_call;
use ferrax_transform::{Staged, eval_jaxpr, stage};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use pyo3::{Borrowed, intern};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// A jitted function.
pub struct Jit {
    function: Function,
    options: Options,
    programs: Arc<Programs>,
    /// What makes the calls, once one has used references.
    impure: OnceLock<Py<PyAny>>,
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
        !(self.options.static_argnums.is_empty() && self.options.static_argnames.is_empty())
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
        if let Some(kept) = self.programs.last()
            && (kept.key.signature.config == config || !kept.key.signature.places.is_empty())
            && let Some(result) = quick_call(args, &kept, config)?
        {
            self.programs.hit();
            return Ok(result);
        }
        // All arguments positional leaves: no tree is needed to find the program. What must be donated is looked at as it
        // was passed.
        if args.kwlen() == 0 && !self.options.must_donate {
            let quick: Option<SmallVec<[Value; 8]>> =
                if config::watched() { None } else { args.positional().map(|a| quick_value(&a)).collect() };
            if let Some(values) = quick {
                let parts = Parts { tree: None, values: &values, statics: &[], config };
                if let Some(kept) = self.in_mesh_of_arguments(py, &parts)? {
                    return self.finish(py, &kept.value, &values);
                }
                if let Some(_mesh) = explicit::mesh_of_arguments(py, &values)? {
                    return self.run(args);
                }
                if let Some(kept) = self.programs.find(py, &parts, &self.function)? {
                    return self.finish(py, &kept.value, &values);
                }
                let call = Call::new(args)?;
                return self.miss(py, None, &call.tree, values, Vec::new(), &[], config);
            }
        }
        let call = Call::new(args)?;
        self.check_must(py, &call.leaves, &call.tree, &[])?;
        let values = self.values(py, &call.leaves, &call.tree, &[])?;
        let parts = Parts { tree: Some(&call.tree), values: &values, statics: &[], config };
        if let Some(kept) = self.in_mesh_of_arguments(py, &parts)? {
            return self.finish(py, &kept.value, &values);
        }
        if let Some(_mesh) = explicit::mesh_of_arguments(py, &values)? {
            return self.run(args);
        }
        match self.programs.find(py, &parts, &self.function)? {
            Some(kept) => self.finish(py, &kept.value, &values),
            None => self.miss(py, Some(call.tree.clone()), &call.tree, values, Vec::new(), &[], config),
        }
    }

    /// The program for a call whose arrays have a mesh with explicit axes that is not in use, if one was traced with it.
    fn in_mesh_of_arguments(&self, py: Python<'_>, call: &Parts<'_>) -> PyResult<Option<Arc<Kept>>> {
        let Some(config) = explicit::settings_of(explicit::among(call.values), call.config) else { return Ok(None) };
        let _looking = explicit::Looking::start(config);
        self.programs.find(py, &Parts { config, ..*call }, &self.function)
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
            if references::is_high(leaf.bind(py)) {
                return Err(references::used());
            }
            values.push(match to_value(leaf.bind(py)) {
                Ok(value) => value,
                Err(_) if no_value(leaf.bind(py)).is_some() => of_type(abstract_value(leaf.bind(py))?),
                Err(e) => return Err(self.bad_leaf(py, e, i, leaf, tree, statics)),
            });
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
        if references::is_reference(leaf.bind(py)) {
            return references::used();
        }
        let path = self.function.leaf_name(py, tree, statics, i);
        if !e.is_instance_of::<PyTypeError>(py) {
            return too_large(py, e, || path, &self.function.debug);
        }
        let class = leaf.bind(py).get_type();
        PyTypeError::new_err(format!(
            "Error interpreting argument to {} as an abstract array. The problematic value is of type {class} and was \
             passed to the function at path {path}. {} is not a valid JAX type.\nA jitted function takes arrays, numbers \
             and trees of them. Mark an argument of another kind with static_argnums or static_argnames.",
            debug_text(&self.function),
            shorten::repr(leaf.bind(py)),
        ))
    }

    /// What makes the calls of a function that uses references; `clock` is when the trace began that found them.
    fn make_impure(&self, py: Python<'_>, clock: u64) -> PyResult<Py<PyAny>> {
        if self.impure.get().is_none() {
            let o = &self.options;
            if !o.compiler_options.is_empty() {
                let text = format!("compiler_options of {}, which uses references", debug_text(&self.function));
                return Err(PyNotImplementedError::new_err(text));
            }
            let names = (&o.static_argnums, &o.static_argnames, &o.donate_argnums, &o.donate_argnames);
            let made = references::jitted(py)?.call1((&self.function.fun, names, o.inline, clock))?;
            // another thread may have been here first: either will do
            let _ = self.impure.set(made.unbind());
        }
        self.impure.get().map(|f| f.clone_ref(py)).ok_or_else(references::used)
    }

    fn split<'py>(&self, args: &Args<'_, 'py>) -> PyResult<Split<'py>> {
        let py = args.py();
        let n = args.len() as i64;
        let positions = self.options.static_positions(n);
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
            if self.options.static_argnames.iter().any(|s| s == name) {
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
        self.check_must(py, &leaves, &tree, &split.positions)?;
        let values = self.values(py, &leaves, &tree, &split.positions)?;
        let parts = Parts { tree: Some(&tree), values: &values, statics: &split.statics, config };
        if let Some(kept) = self.in_mesh_of_arguments(py, &parts)? {
            return self.finish(py, &kept.value, &values);
        }
        if let Some(_mesh) = explicit::mesh_of_arguments(py, &values)? {
            return self.run_static(args);
        }
        match self.programs.find(py, &parts, &self.function)? {
            Some(kept) => self.finish(py, &kept.value, &values),
            None => self.miss(py, Some(tree.clone()), &tree, values, split.statics, &split.positions, config),
        }
    }

    /// Where the program for these arguments is kept for stages: where none of them is static.
    fn place(&self, py: Python<'_>, tree: &TreeDef, avals: &[Aval], statics: &[Static]) -> Option<Place> {
        if statics.is_empty() { Place::of(self.function.fun.bind(py), tree, avals, ("jit", false)) } else { None }
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
        let mut call = FlatCall::new(py, &fun, tree, &self.function.debug);
        let code = unwrapped(self.function.fun.bind(py)).getattr_opt(intern!(py, "__code__"))?;
        let _own = code.and_then(|code| OfAnyCaller::start(&code));
        let mut staged = stage("jit", debug, avals, |args| call.to_end(args)).py()?;
        let out_tree = call.out_tree()?;
        references::ended(self.function.fun.bind(py), &mut staged.jaxpr, &staged.captured, &out_tree)?;
        staged.jaxpr.debug.result_names = Some(trees::result_names(&out_tree));
        Ok((staged, out_tree))
    }

    #[allow(clippy::too_many_arguments)]
    fn miss(
        &self,
        py: Python<'_>,
        key_tree: Option<TreeDef>,
        tree: &TreeDef,
        values: SmallVec<[Value; 8]>,
        statics: Vec<Static>,
        positions: &[usize],
        config: u64,
    ) -> PyResult<Py<PyAny>> {
        if self.impure.get().is_some() {
            return Err(references::used());
        }
        let typed: SmallVec<[Aval; 4]> = values.iter().map(Value::aval).collect();
        let avals = typed.iter().map(|a| Aval { spread: 0, ..a.clone() }).collect();
        let params = ParamNames::of(self.function.fun.bind(py), positions);
        let places = explicit::places(&values);
        let signature = Signature { tree: key_tree, avals, statics, config, places };
        let key = self.programs.key(py, signature, &values, params, tree)?;
        let place = self.place(py, tree, &typed, &key.signature.statics);
        if let Some(known) = place.as_ref().and_then(Place::whole) {
            return self.fill(py, key, known, (tree, positions), &values, None);
        }
        explain::on_miss(py, &self.function, &self.options, &self.programs, &key)?;
        let fun = self.function.fun.bind(py);
        let statics = &key.signature.statics;
        let watch =
            Watch::start(py, &self.function, statics, |s| key.static_name(py, &s.label), &self.programs, config)?;
        let clock = references::clock();
        let log = explain::Log::start(py)?;
        let (staged, out_tree) = self.trace(py, tree, &typed, statics, positions)?;
        let program = PyClosed::traced(staged.jaxpr.into(), staged.captured, out_tree.clone());
        let guards = watch.end(fun);
        if let Some(place) = place {
            place.keep(&program, &out_tree, Some(guards.captured()));
        }
        if references::used_since(clock) {
            self.make_impure(py, clock)?;
            return Err(references::used());
        }
        let jaxpr = program.jaxpr().clone();
        if !program.captured.is_empty() {
            // The program belongs to this call alone: it refers to values of the traces around it.
            let args: Vec<Value> = program.captured.into_iter().chain(values).collect();
            let outs = self.bind(jaxpr, &args)?;
            return build(py, &out_tree, outs);
        }
        if let Some(log) = &log {
            log.traced(py, &self.function, &key)?;
        }
        self.fill(py, key, (jaxpr, out_tree, guards), (tree, positions), &values, log)
    }

    /// Keeps the program of a call, and runs it.
    fn fill(
        &self,
        py: Python<'_>,
        key: Key,
        (jaxpr, out_tree, guards): (JaxprRef, TreeDef, Guards),
        (tree, positions): (&TreeDef, &[usize]),
        values: &[Value],
        log: Option<explain::Log>,
    ) -> PyResult<Py<PyAny>> {
        let donate = self.donated(py, tree, positions)?;
        if self.options.must_donate && !donate.contains(&true) {
            return Err(nothing_donated(&self.function.debug.describe()));
        }
        let kept = self.programs.insert(py, key, Program::new(jaxpr, out_tree, donate, guards, &self.options));
        let program = &kept.value;
        if program.donate.contains(&true) && !self.options.must_donate && ferrax_ir::trace::is_eager() {
            warn_unusable(py, program)?;
        }
        if let Some(log) = log.filter(|_| runs_now(program, values)) {
            let start = Instant::now();
            program.executable().and_then(|e| e.unusable_donations(&program.donate)).py()?;
            log.compiled(py, &self.function, start)?;
        }
        self.finish(py, program, values)
    }

    /// Errors when what must be donated is nothing, or no array.
    fn check_must(&self, py: Python<'_>, leaves: &Leaves, tree: &TreeDef, positions: &[usize]) -> PyResult<()> {
        let arrays = || leaves.iter().all(|leaf| leaf.bind(py).is_instance_of::<PyArray>());
        if !self.options.must_donate || arrays() {
            return Ok(());
        }
        let donated = self.donated(py, tree, positions)?;
        check_leaves(py, leaves, &donated, |i| {
            let names = self.function.debug_for(py, tree, positions).arg_names.map(|names| names());
            let name = names.and_then(|n| n.get(i).cloned()).unwrap_or_else(|| i.to_string());
            format!("argument {name} of {}", self.name())
        })
    }

    /// Which leaves are donated; empty when none is.
    fn donated(&self, py: Python<'_>, tree: &TreeDef, positions: &[usize]) -> PyResult<Vec<bool>> {
        if self.options.donate_argnums.is_empty() && self.options.donate_argnames.is_empty() {
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
            let on =
                self.options.donate_argnums.iter().any(|&d| (if d < 0 { d + total as i64 } else { d }) == place as i64);
            mask.extend(std::iter::repeat_n(on, count));
            place += 1;
        }
        for (name, count) in kwargs {
            mask.extend(std::iter::repeat_n(self.options.donate_argnames.contains(&name), count));
        }
        if self.options.donate_argnames.iter().any(|n| is_path(n)) {
            self.donate_paths(py, tree, positions, &mut mask)?;
        }
        Ok(mask)
    }

    /// Marks the leaves at and below the donated paths, such as `state['params']`.
    fn donate_paths(&self, py: Python<'_>, tree: &TreeDef, positions: &[usize], mask: &mut [bool]) -> PyResult<()> {
        let params = ParamNames::of(self.function.fun.bind(py), positions);
        let names = trees::argument_names(py, tree, &params)?;
        for path in self.options.donate_argnames.iter().filter(|n| is_path(n)) {
            let below = |name: &String| {
                name.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
            };
            if !names.iter().any(below) {
                return Err(no_such_path(&self.function.debug.describe(), path, &names));
            }
            names.iter().zip(&mut *mask).filter(|(n, _)| below(n)).for_each(|(_, on)| *on = true);
        }
        Ok(())
    }

    fn bind(&self, jaxpr: JaxprRef, args: &[Value]) -> PyResult<Vec<Value>> {
        if let [(option, _), ..] = &*self.options.compiler_options {
            return Err(PyValueError::new_err(format!(
                "`compiler_options` can only be passed to top-level `jax.jit`: {} has '{option}', and is called inside of \
                 another transformation. Pass them to the outermost jit.",
                debug_text(&self.function)
            )));
        }
        let (jaxpr, args) = without_types(jaxpr, args).py()?;
        if self.options.inline {
            return eval_jaxpr(&jaxpr, &args).py();
        }
        Ok(jit_call(self.function.debug.name.clone(), jaxpr, false, &args).py()?.into_vec())
    }

    #[inline]
    fn finish(&self, py: Python<'_>, program: &Program, values: &[Value]) -> PyResult<Py<PyAny>> {
        if !runs_now(program, values) {
            let outs = self.bind(program.jaxpr.clone(), values)?;
            return build(py, &program.out_tree, outs);
        }
        let executable = program.executable().py()?;
        if self.options.must_donate {
            executable.check_donations(values, &program.donate).py()?;
        }
        let mut outs = executable.run(values, &program.donate).py()?;
        if program.single
            && let Some(out) = outs.pop()
        {
            return from_value(py, out);
        }
        build(py, &program.out_tree, outs)
    }
}

/// Whether a program runs at its call: it is no part of another one.
fn runs_now(program: &Program, values: &[Value]) -> bool {
    let across = program.jaxpr.effects.contains(Effects::NAMED_AXIS);
    !across && ferrax_ir::trace::is_eager() && !values.iter().any(|v| matches!(v, Value::Tracer(_)))
}

/// Runs the program that ran last on a call that has its signature and that consists of arrays; `None` for any other
/// call. No structure is built, nothing is hashed, no value is copied.
#[inline]
fn quick_call(args: &Args<'_, '_>, kept: &Kept, config: u64) -> PyResult<Option<Py<PyAny>>> {
    let (py, program, signature) = (args.py(), &kept.value, &kept.key.signature);
    let ask = !program.donate.is_empty() || !signature.statics.is_empty() || program.guards.ask_always();
    let across = program.jaxpr.effects.contains(Effects::NAMED_AXIS);
    if ask || across || !ferrax_ir::trace::is_eager() {
        return Ok(None);
    }
    let mut leaves = Leaves::new();
    let positional: SmallVec<[Borrowed<'_, '_, PyAny>; 8]>;
    let arrays = if let Some(tree) = &signature.tree {
        let keywords: SmallVec<[_; 4]> = args.keywords().collect();
        if !tree::match_call(py, tree, args.positional(), &keywords, &mut leaves)? {
            return Ok(None);
        }
        arrays(leaves.iter().map(|leaf| leaf.bind(py)), &signature.avals)
    } else {
        if args.kwlen() != 0 || args.len() != signature.avals.len() {
            return Ok(None);
        }
        positional = args.positional().collect();
        arrays(positional.iter().map(|b| &**b), &signature.avals)
    };
    let Some(arrays) = arrays.filter(|a| explicit::are_at(a, signature, config)) else { return Ok(None) };
    let executable = program.executable().py()?;
    let (mut results, mut failed) = (Leaves::with_capacity(executable.out_avals().len()), None);
    let each = |a| match wrap_array(py, a) {
        Ok(object) => results.push(object.unbind()),
        Err(e) => failed = Some(e),
    };
    if !executable.run_arrays(&arrays, each).py()? {
        return Ok(None);
    }
    if let Some(e) = failed {
        return Err(e);
    }
    if program.single {
        return Ok(results.pop());
    }
    tree::unflatten(py, &program.out_tree, results).map(Some)
}

/// The arrays behind objects, when all are arrays of these avals.
#[inline]
fn arrays<'a, 'py: 'a>(
    objects: impl Iterator<Item = &'a Bound<'py, PyAny>>,
    avals: &[Aval],
) -> Option<SmallVec<[&'a Array; 8]>> {
    let mut found = SmallVec::with_capacity(avals.len());
    for (object, aval) in objects.zip(avals) {
        let array = object.cast_exact::<ArrayImpl>().ok()?.as_super().get();
        match &array.value {
            Value::Array(a) if a.aval() == aval => found.push(a),
            _ => return None,
        }
    }
    (found.len() == avals.len()).then_some(found)
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

    #[inline]
    fn call<'py>(&self, py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        match self.run(&args) {
            Err(e) if references::asks(py, &e) => {
                let impure = self.make_impure(py, references::clock())?;
                boundary::call(impure.bind(py), &args)
            }
            result => result,
        }
    }

    fn traverse(&self, visit: &mut Visit) {
        visit.object(&self.function.fun);
        self.impure.get().into_iter().for_each(|f| visit.object(f));
    }

    fn repr(&self, _slf: &Bound<'_, PyAny>) -> PyResult<String> {
        // a function whose own text fails has a name no less
        Python::attach(|py| match self.function.fun.bind(py).repr() {
            Ok(text) => Ok(format!("<PjitFunction of {text}>")),
            Err(_) => Ok("<PjitFunction>".into()),
        })
    }
}

/// A jitted function; see `ferrax.jit`, which resolves names and numbers of arguments.
#[pyfunction]
#[pyo3(signature = (fun, static_argnums, static_argnames, donate_argnums, donate_argnames, must_donate, inline, compiler_options))]
fn jit(
    py: Python<'_>,
    fun: &Bound<'_, PyAny>,
    static_argnums: Vec<i64>,
    static_argnames: Vec<String>,
    donate_argnums: Vec<i64>,
    donate_argnames: Vec<String>,
    must_donate: bool,
    inline: bool,
    compiler_options: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<Py<PyAny>> {
    let function = Function::new(fun, "jit")?;
    if donate_argnums.iter().any(|d| static_argnums.contains(d)) {
        return Err(PyValueError::new_err(format!(
            "static_argnames and donate_argnames cannot intersect: static_argnums={static_argnums:?} and \
             donate_argnums={donate_argnums:?}"
        )));
    }
    if must_donate && donate_argnums.is_empty() && donate_argnames.is_empty() {
        return Err(nothing_donated(&function.debug.describe()));
    }
    let donate_argnames = donate_argnames.iter().map(|name| usual_quotes(name)).collect();
    let options = Options {
        static_argnums,
        static_argnames,
        donate_argnums,
        donate_argnames,
        must_donate,
        inline,
        compiler_options: devices::options(compiler_options)?,
    };
    let programs = programs_of(fun, &options)?;
    let wrapper = new_callable(
        py,
        Jit { function, options, programs, impure: OnceLock::new() },
        "jit",
        "",
        TextSignature::Unknown,
    )?;
    wrap_names(wrapper.bind(py), fun)?;
    Ok(wrapper)
}

fn of<'a>(wrapper: &'a Bound<'_, PyAny>) -> PyResult<&'a Jit> {
    fastcall::get::<Jit>(wrapper).ok_or_else(|| PyTypeError::new_err("not a jitted function"))
}

/// What `jit` made this function of, without the compiler's options; `None` of another function.
#[pyfunction]
fn jit_parts<'py>(py: Python<'py>, wrapper: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(jit) = fastcall::get::<Jit>(wrapper) else { return Ok(None) };
    let o = jit.options.clone();
    let fun = jit.function.fun.clone_ref(py);
    let (statics, names) = (o.static_argnums, o.static_argnames);
    let parts = (fun, statics, names, o.donate_argnums, o.donate_argnames, o.must_donate, o.inline);
    parts.into_pyobject(py).map(Some)
}

/// Traces a jitted function: (program, structure of the arguments, structure of the result, donation mask).
#[pyfunction]
fn jit_trace(
    py: Python<'_>,
    wrapper: &Bound<'_, PyAny>,
    args: &Bound<'_, PyTuple>,
    kwargs: &Bound<'_, PyDict>,
) -> PyResult<(PyClosed, tree::PyTreeDef, tree::PyTreeDef, Vec<bool>)> {
    let jit = of(wrapper)?;
    let n = args.len() as i64;
    let positions = jit.options.static_positions(n);
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
        if jit.options.static_argnames.contains(&name) {
            statics.push(Static::new(name, &v, jit.name())?);
        } else {
            rest.set_item(k, v)?;
        }
    }
    let mut leaves = Leaves::new();
    let dynamic = PyTuple::new(py, dynamic)?;
    let tree = trees::flatten_args(&dynamic, Some(&rest), &mut leaves)?;
    let avals = leaves.iter().map(|l| abstract_value(l.bind(py))).collect::<PyResult<Vec<Aval>>>()?;
    let place = jit.place(py, &tree, &avals, &statics);
    if let Some(program) = place.as_ref().and_then(Place::get)
        && let Some(out_tree) = program.out_tree.clone()
    {
        let donate = jit.donated(py, &tree, &positions)?;
        return Ok((program, tree::PyTreeDef(tree), tree::PyTreeDef(out_tree), donate));
    }
    let clock = references::clock();
    let (staged, out_tree) = jit.trace(py, &tree, &avals, &statics, &positions)?;
    if references::used_since(clock) {
        return Err(PyNotImplementedError::new_err(format!(
            "tracing or lowering of {} ahead of time is not implemented: it uses a reference",
            debug_text(&jit.function)
        )));
    }
    let donate = jit.donated(py, &tree, &positions)?;
    let program: JaxprRef = staged.jaxpr.into();
    crate::watch::traced(py, &program)?;
    let jaxpr = PyClosed::traced(program, staged.captured, out_tree.clone());
    if let Some(place) = place {
        place.keep(&jaxpr, &out_tree, Some(Arc::new(Captured::of(jit.function.fun.bind(py)))));
    }
    Ok((jaxpr, tree::PyTreeDef(tree), tree::PyTreeDef(out_tree), donate))
}

/// Runs a program on flat arguments as a compiled unit.
#[pyfunction]
fn run_jaxpr(
    py: Python<'_>,
    jaxpr: &PyClosed,
    args: Vec<Bound<'_, PyAny>>,
    donate: Vec<bool>,
    compiler_options: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<Vec<Py<PyAny>>> {
    let values = args.iter().map(to_value).collect::<PyResult<Vec<Value>>>()?;
    let traced = values.iter().any(|v| matches!(v, Value::Tracer(_))) || !ferrax_ir::trace::is_eager();
    let outs = if traced || jaxpr.jaxpr().effects.contains(Effects::NAMED_AXIS) {
        // what was read from a file has no name
        let name = Some(&jaxpr.jaxpr().debug.name).filter(|n| !n.is_empty()).cloned();
        jit_call(name.unwrap_or_else(|| "program".into()), jaxpr.jaxpr().clone(), false, &values).py()?
    } else {
        let options = devices::options(compiler_options)?;
        ferrax::executable::executable_with(jaxpr.jaxpr(), &options).py()?.run(&values, &donate).py()?
    };
    outs.into_iter().map(|v| from_value(py, v)).collect()
}

/// Compiles a program for the default device now.
#[pyfunction]
fn compile_jaxpr(
    jaxpr: &PyClosed,
    donate: Vec<bool>,
    compiler_options: Vec<(String, Bound<'_, PyAny>)>,
) -> PyResult<()> {
    let options = devices::options(compiler_options)?;
    if jaxpr.jaxpr().effects.contains(Effects::NAMED_AXIS) {
        // it is part of another program
        return Ok(());
    }
    ferrax::executable::executable_with(jaxpr.jaxpr(), &options).py()?.unusable_donations(&donate).map(drop).py()
}

/// (hits, misses, entries, bytes) of a jitted function's programs.
#[pyfunction]
fn jit_cache_info(wrapper: &Bound<'_, PyAny>) -> PyResult<(usize, usize, usize, usize)> {
    let c = of(wrapper)?.programs.counts();
    Ok((c.hits, c.misses, c.entries, c.bytes))
}

/// Forgets the programs of a jitted function.
#[pyfunction]
fn jit_clear_cache(wrapper: &Bound<'_, PyAny>) -> PyResult<()> {
    let jit = of(wrapper)?;
    jit.programs.clear();
    kept_traces::forget(jit.function.fun.bind(wrapper.py()));
    Ok(())
}

/// (programs, bytes, limit in bytes) of all jitted functions.
#[pyfunction]
fn jit_cache_totals() -> (usize, usize, usize) {
    jit_cache::totals()
}

/// Sets the most bytes of programs that are kept.
#[pyfunction]
fn set_jit_cache_limit(bytes: usize) {
    jit_cache::set_limit(bytes);
}

/// The Python type of jitted functions; the facade adds `lower`, `trace` and `eval_shape` to it.
#[pyfunction]
fn jit_type(py: Python<'_>) -> PyResult<Bound<'_, pyo3::types::PyType>> {
    fastcall::type_of::<Jit>(py)
}

/// Adds the functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(jit, m)?)?;
    m.add_function(wrap_pyfunction!(jit_parts, m)?)?;
    m.add_function(wrap_pyfunction!(jit_trace, m)?)?;
    m.add_function(wrap_pyfunction!(run_jaxpr, m)?)?;
    m.add_function(wrap_pyfunction!(compile_jaxpr, m)?)?;
    m.add_function(wrap_pyfunction!(jit_cache_info, m)?)?;
    m.add_function(wrap_pyfunction!(jit_clear_cache, m)?)?;
    m.add_function(wrap_pyfunction!(jit_cache_totals, m)?)?;
    m.add_function(wrap_pyfunction!(set_jit_cache_limit, m)?)?;
    m.add_function(wrap_pyfunction!(jit_type, m)?)
}
