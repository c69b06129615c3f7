//! A Python function as a function of flat values.
//!
//! A [`Function`] holds the callable with its names; [`Call`] is one call's arguments taken apart: leaves and
//! structure. Calling with other leaves (tracers) puts the arguments together again, calls, and takes the
//! result apart.

use super::trees;
use crate::errors::{IntoPyResult, carry};
use crate::fastcall::Args;
use crate::interpreter::attribute;
pub use crate::tree::Leaves;
use crate::tree::{self, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_base::Result;
use ferrax_base::config::Flag;
use ferrax_ir::{DebugInfo, Value};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use smallvec::SmallVec;
use std::sync::Arc;

/// A Python function and its names.
pub struct Function {
    /// The callable.
    pub fun: Py<PyAny>,
    /// Name and place, without argument names.
    pub debug: DebugInfo,
}

impl Function {
    /// Reads a callable's names; errors when it is none.
    pub fn new(fun: &Bound<'_, PyAny>, wanted_by: &str) -> PyResult<Function> {
        if !fun.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "Expected a callable value, got {} as the first argument of {wanted_by}",
                crate::shorten::repr(fun),
            )));
        }
        Ok(Function { debug: debug_info(fun), fun: fun.clone().unbind() })
    }

    /// The name of one leaf of a call, by its number: the parameter's, with the path inside it.
    pub fn leaf_name(&self, py: Python<'_>, tree: &TreeDef, statics: &[usize], leaf: usize) -> String {
        let params = ParamNames::of(self.fun.bind(py), statics);
        trees::leaf_name(py, tree, &params, leaf).unwrap_or_else(|_| format!("leaf {leaf}"))
    }

    /// The debug info of a call whose arguments have this structure.
    pub fn debug_for(&self, py: Python<'_>, tree: &TreeDef, statics: &[usize]) -> DebugInfo {
        let fun = self.fun.bind(py);
        let params = ParamNames::of(fun, statics);
        let carried = Carried::of(fun);
        let tree = tree.clone();
        let names = move || {
            Python::attach(|py| {
                let names = trees::argument_names(py, &tree, &params).unwrap_or_default();
                carried.as_ref().map_or_else(|| names.clone(), |carried| carried.names(py, &names))
            })
        };
        DebugInfo { arg_names: Some(Arc::new(names)), ..self.debug.clone() }
    }
}

/// Where the names of a function's parameters are found, when they are asked for. The code object knows them, and does not
/// keep the function alive; of a function that is not written in Python, the text of its signature does.
pub struct ParamNames {
    code: Option<Py<PyAny>>,
    /// Leading parameters that calls do not give: `self` of a bound method.
    skip: usize,
    /// Positions of static arguments.
    statics: Vec<usize>,
}

/// The flag of a code object that takes any number of positional arguments.
const TAKES_REST: u32 = 4;

impl ParamNames {
    /// Of a callable, some of whose positional arguments are static.
    pub fn of(fun: &Bound<'_, PyAny>, statics: &[usize]) -> ParamNames {
        let py = fun.py();
        let unwrapped = unwrapped(fun);
        let of = |name| attribute(&unwrapped, name).ok().flatten();
        let definition = || attribute(&of(intern!(py, "__definition__"))?, intern!(py, "__code__")).ok().flatten();
        let code = of(intern!(py, "__code__")).or_else(definition).or_else(|| of(intern!(py, "__text_signature__")));
        let method = || attribute(&unwrapped.get_type(), intern!(py, "__call__")).ok().flatten();
        let called = if code.is_none() { method() } else { None };
        let called = called.and_then(|method| attribute(&method, intern!(py, "__code__")).ok().flatten());
        let of_class = called.is_some();
        let code = code.or(called);
        let partial = Partial::of(fun);
        let given = partial.as_ref().map_or(0, |partial| partial.args.len());
        let called = partial.as_ref().map_or(fun, |partial| &partial.func);
        let bound = of_class || attribute(called, intern!(py, "__self__")).ok().flatten().is_some();
        let skip = usize::from(bound && code.is_some()) + given;
        ParamNames { code: code.map(Bound::unbind), skip, statics: statics.to_vec() }
    }

    /// The positional parameters, and the name of the one that takes the rest.
    fn all(&self, py: Python<'_>) -> (Vec<String>, String) {
        let names = |code: &Py<PyAny>| {
            let code = code.bind(py);
            if let Ok(signature) = code.extract::<String>() {
                let names = positional(&signature).into_iter();
                // a built-in function's begins with what it is bound to, its module for instance
                return Ok((names.skip_while(|name| name.starts_with('$')).collect(), "args".to_owned()));
            }
            let number = |name| code.getattr(name)?.extract::<u32>();
            let mut names: Vec<String> = code.getattr(intern!(py, "co_varnames"))?.extract()?;
            let count = number("co_argcount")? as usize;
            let rest = count + number("co_kwonlyargcount")? as usize;
            let rest = if number("co_flags")? & TAKES_REST != 0 { names.get(rest).cloned() } else { None };
            names.truncate(count);
            names.drain(..self.skip.min(count));
            Ok::<_, PyErr>((names, rest.unwrap_or_else(|| "args".to_owned())))
        };
        self.code.as_ref().and_then(|code| names(code).ok()).unwrap_or_else(|| (Vec::new(), "args".to_owned()))
    }

    /// The name of a positional argument.
    pub fn name(&self, py: Python<'_>, position: usize) -> String {
        let (names, rest) = self.all(py);
        names.get(position).cloned().unwrap_or_else(|| format!("{rest}[{}]", position - names.len()))
    }

    /// The name of an argument that is passed by name.
    fn keyword(&self, py: Python<'_>, name: String) -> String {
        const TAKES_NAMES: u32 = 8;
        let of = || -> PyResult<Option<String>> {
            let Some(code) = self.code.as_ref().map(|code| code.bind(py)) else { return Ok(None) };
            let number = |name| code.getattr(name)?.extract::<u32>();
            let (flags, known) = (number("co_flags")?, number("co_argcount")? + number("co_kwonlyargcount")?);
            let names: Vec<String> = code.getattr(intern!(py, "co_varnames"))?.extract()?;
            if flags & TAKES_NAMES == 0 || names[..known as usize].contains(&name) {
                return Ok(None);
            }
            let rest = names.get(known as usize + usize::from(flags & TAKES_REST != 0));
            Ok(rest.map(|rest| format!("{rest}['{name}']")))
        };
        of().ok().flatten().unwrap_or(name)
    }

    /// The names of arguments that are passed by name.
    pub fn keywords(&self, py: Python<'_>, names: Vec<String>) -> Vec<String> {
        names.into_iter().map(|name| self.keyword(py, name)).collect()
    }

    /// The names of `count` positional arguments that are traced.
    pub fn traced(&self, py: Python<'_>, count: usize) -> Vec<String> {
        let (names, rest) = self.all(py);
        (0..)
            .filter(|i| !self.statics.contains(i))
            .take(count)
            .map(|i| names.get(i).cloned().unwrap_or_else(|| format!("{rest}[{}]", i - names.len())))
            .collect()
    }
}

/// How the user's own body, which another body of a loop calls, gets what that one carries: its `user_carry` says for each
/// part of the carry which argument it is, if any.
struct Carried {
    body: ParamNames,
    places: Vec<Option<usize>>,
}

impl Carried {
    fn of(fun: &Bound<'_, PyAny>) -> Option<Carried> {
        let py = fun.py();
        let places = attribute(fun, intern!(py, "user_carry")).ok().flatten()?.extract().ok()?;
        let body = attribute(fun, intern!(py, "user_body")).ok().flatten()?;
        Some(Carried { body: ParamNames::of(&body, &[]), places })
    }

    /// The user's names of leaves whose paths begin with the part of the carry, `carry[1]['w']`.
    fn names(&self, py: Python<'_>, leaves: &[String]) -> Vec<String> {
        let renamed = |name: &String| {
            let rest = name.strip_prefix("carry[")?;
            let (part, rest) = rest.split_once(']')?;
            Some(match self.places.get(part.parse::<usize>().ok()?)? {
                Some(argument) => self.body.name(py, *argument) + rest,
                None => String::new(),
            })
        };
        leaves.iter().map(|name| renamed(name).unwrap_or_else(|| name.clone())).collect()
    }
}

/// The positional parameters in the text of a signature, `(x, /, axis=None, *, out=None)`.
fn positional(signature: &str) -> Vec<String> {
    let parameters = signature.trim_start_matches('(').split([',', ')']).map(str::trim);
    let names = parameters.take_while(|p| !p.is_empty() && !p.starts_with('*')).filter(|p| *p != "/");
    names.map(|p| p.split(['=', ':']).next().unwrap_or(p).trim().to_owned()).collect()
}

/// What a `functools.partial` holds.
pub struct Partial<'py> {
    /// The function.
    pub func: Bound<'py, PyAny>,
    /// Positional arguments that it gives.
    pub args: Bound<'py, PyTuple>,
    /// Keyword arguments that it gives.
    pub keywords: Bound<'py, PyDict>,
}

impl<'py> Partial<'py> {
    /// Of an object, if it is one.
    pub fn of(object: &Bound<'py, PyAny>) -> Option<Partial<'py>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = object.py();
        let class = CLASS.import(py, "functools", "partial").ok()?;
        if !object.is_instance(class).ok()? {
            return None;
        }
        Some(Partial {
            func: object.getattr(intern!(py, "func")).ok()?,
            args: object.getattr(intern!(py, "args")).ok()?.cast_into().ok()?,
            keywords: object.getattr(intern!(py, "keywords")).ok()?.cast_into().ok()?,
        })
    }
}

/// The function that decorators, methods and partial applications stand for.
pub fn unwrapped<'py>(fun: &Bound<'py, PyAny>) -> Bound<'py, PyAny> {
    let py = fun.py();
    let mut fun = fun.clone();
    for _ in 0..16 {
        let inner = attribute(&fun, intern!(py, "__wrapped__"))
            .ok()
            .flatten()
            .or_else(|| attribute(&fun, intern!(py, "__func__")).ok().flatten());
        let inner = inner.or_else(|| Partial::of(&fun).map(|partial| partial.func));
        match inner {
            Some(f) => fun = f,
            None => break,
        }
    }
    fun
}

fn debug_info(fun: &Bound<'_, PyAny>) -> DebugInfo {
    let py = fun.py();
    let inner = unwrapped(fun);
    let name = attribute(fun, intern!(py, "__name__"))
        .ok()
        .flatten()
        .or_else(|| attribute(&inner, intern!(py, "__name__")).ok().flatten())
        .and_then(|n| n.extract::<String>().ok());
    let name = name.unwrap_or_else(|| fun.get_type().name().map_or_else(|_| "<unknown>".into(), |n| n.to_string()));
    let theirs = attribute(fun, intern!(py, "user_body")).ok().flatten();
    let place = theirs.as_ref().map_or(inner, unwrapped);
    let place = attribute(&place, intern!(py, "__code__")).ok().flatten().and_then(|code| {
        let file: String = code.getattr(intern!(py, "co_filename")).ok()?.extract().ok()?;
        let line: u32 = code.getattr(intern!(py, "co_firstlineno")).ok()?.extract().ok()?;
        Some(Arc::from(format!("{file}:{line}")))
    });
    DebugInfo { name: name.into(), place, ..DebugInfo::default() }
}

/// One call's arguments: flat leaves and the structure of `(args, kwargs)`.
pub struct Call {
    /// Leaves, positional arguments first, then keyword arguments by name.
    pub leaves: Leaves,
    /// Structure of `(args, kwargs)`.
    pub tree: TreeDef,
}

impl Call {
    /// Takes arguments apart.
    pub fn new(args: &Args<'_, '_>) -> PyResult<Call> {
        let mut leaves = Leaves::new();
        let tree = trees::flatten_call(args, &mut leaves)?;
        Ok(Call { leaves, tree })
    }

    /// The leaves as values.
    pub fn values(&self, py: Python<'_>) -> PyResult<SmallVec<[Value; 8]>> {
        self.leaves.iter().map(|l| to_value(l.bind(py))).collect()
    }
}

/// Calls `fun` with arguments of structure `tree` made of `values`; gives the raw result.
pub fn call_values<'py>(
    py: Python<'py>,
    fun: &Py<PyAny>,
    tree: &TreeDef,
    values: &[Value],
) -> PyResult<Bound<'py, PyAny>> {
    let leaves = values.iter().map(|v| from_value(py, v.clone())).collect::<PyResult<Leaves>>()?;
    let (args, kwargs) = trees::unflatten_call(py, tree, leaves)?;
    call_user(fun.bind(py), args, kwargs.as_ref())
}

/// Levels of Python's recursion that a function counts for while it is traced: between it and one that it calls, and that is
/// traced in turn, lies more of the stack than between functions of Python.
const LEVELS: usize = 6;

/// Levels of Python's recursion, until it is dropped.
struct Deeper(usize);

impl Deeper {
    fn enter(py: Python<'_>) -> PyResult<Deeper> {
        let mut entered = Deeper(0);
        while entered.0 < LEVELS {
            // SAFETY: the interpreter is attached; each level is left again.
            if unsafe { pyo3::ffi::Py_EnterRecursiveCall(c" while a function is traced".as_ptr()) } != 0 {
                return Err(PyErr::fetch(py));
            }
            entered.0 += 1;
        }
        Ok(entered)
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        // SAFETY: so many levels were entered, by a thread that is still attached.
        (0..self.0).for_each(|_| unsafe { pyo3::ffi::Py_LeaveRecursiveCall() });
    }
}

/// Calls the user's function that is being traced.
#[inline]
pub fn call_user<'py>(
    fun: &Bound<'py, PyAny>,
    args: Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let _levels = Deeper::enter(fun.py())?;
    if Flag::CheckTracerLeaks.get() {
        return super::leaks::call_watched(fun, args, kwargs);
    }
    fun.call(args, kwargs)
}

/// Takes a function's result apart into values.
pub fn flatten_result(py: Python<'_>, out: &Bound<'_, PyAny>, debug: &DebugInfo) -> PyResult<(Vec<Value>, TreeDef)> {
    let mut leaves = Leaves::new();
    let tree = tree::flatten_into(out, &mut leaves)?;
    Ok((result_values(py, out, &leaves, debug)?, tree))
}

/// The values of a function's result whose leaves are known.
pub fn result_values(
    py: Python<'_>,
    out: &Bound<'_, PyAny>,
    leaves: &Leaves,
    debug: &DebugInfo,
) -> PyResult<Vec<Value>> {
    let value =
        |(i, l): (usize, &Py<PyAny>)| to_value(l.bind(py)).map_err(|e| bad_result(py, e, out, i, l.bind(py), debug));
    leaves.iter().enumerate().map(value).collect()
}

/// The type that an object without a value stands for, as `int32[4,2]`.
pub(super) fn no_value(leaf: &Bound<'_, PyAny>) -> Option<String> {
    let class = leaf.get_type().name().ok()?;
    let sizes = |x: Bound<'_, PyAny>| x.try_iter()?.map(|n| Ok(n?.str()?.to_string())).collect::<PyResult<Vec<_>>>();
    let shape = leaf.getattr("shape").and_then(sizes).ok()?;
    let dtype = leaf.getattr("dtype").and_then(|d| d.str()).ok()?;
    (class == "ShapeDtypeStruct").then(|| format!("{dtype}[{}]", shape.join(",")))
}

/// The error of a function that returned what is no value.
#[cold]
pub(super) fn bad_result(
    py: Python<'_>,
    e: PyErr,
    out: &Bound<'_, PyAny>,
    i: usize,
    leaf: &Bound<'_, PyAny>,
    debug: &DebugInfo,
) -> PyErr {
    let path = || -> PyResult<String> {
        let module = py.import("ferrax.tree_util")?;
        let leaves = module.call_method1("tree_flatten_with_path", (out,))?.get_item(0)?;
        module.call_method1("keystr", (leaves.get_item(i)?.get_item(0)?,))?.extract()
    };
    let path = path().unwrap_or_default();
    let debug = user_text(debug);
    let traced = match ferrax_ir::trace::base().map(|t| t.transform()) {
        Some("while_loop") => " traced for while_body".to_string(),
        Some(transform) => format!(" traced for {transform}"),
        None => String::new(),
    };
    if super::references::is_high(leaf) {
        return super::references::used();
    }
    if super::references::is_reference(leaf) {
        return references_stay(leaf, &path, &format!("{debug}{traced}"));
    }
    let place = if path.is_empty() { path } else { format!(" at output component {path}") };
    if e.is_instance_of::<PyTypeError>(py) {
        let class = leaf.get_type();
        if let Some(kind) = no_value(leaf) {
            return PyTypeError::new_err(format!(
                "A ShapeDtypeStruct does not have a value and cannot be used as a constant in a JAX function: {debug} \
                 returned one of {kind}{place}"
            ));
        }
        return PyTypeError::new_err(format!(
            "function {debug}{traced} returned a value of type {class}{place}, which is not a valid JAX type; it may \
             return arrays, numbers and trees of them"
        ));
    }
    if e.is_instance_of::<PyOverflowError>(py) {
        return PyOverflowError::new_err(format!("function {debug} returned a number{place}: {}", e.value(py)));
    }
    e
}

/// The error of a function that returned a reference at a path of its result.
fn references_stay(leaf: &Bound<'_, PyAny>, path: &str, debug: &str) -> PyErr {
    let place = if path.is_empty() { String::new() } else { format!(" at output tree path result{path}") };
    let aval = leaf.getattr("aval").map(|a| format!(" of type {a}")).unwrap_or_default();
    let made = match leaf.getattr("_made").and_then(|m| m.extract::<String>()) {
        Ok(line) if !line.is_empty() => format!("\n\nThe returned mutable array was created on line {line}."),
        _ => String::new(),
    };
    PyValueError::new_err(format!(
        "function {debug} returned a mutable array reference{aval}{place}, but mutable array references cannot be \
         returned.{made}"
    ))
}

/// Name and place of a function; only the name of one of the library's own.
fn user_text(debug: &DebugInfo) -> String {
    match &debug.place {
        Some(place) if super::source::is_library_file(place) => debug.name.to_string(),
        _ => debug.describe(),
    }
}

/// The error of a Python integer among a function's arguments that its dtype does not hold, with the argument's name.
#[cold]
pub fn too_large(py: Python<'_>, e: PyErr, path: impl FnOnce() -> String, debug: &DebugInfo) -> PyErr {
    if !e.is_instance_of::<PyOverflowError>(py) {
        return e;
    }
    PyOverflowError::new_err(format!(
        "An overflow was encountered while parsing an argument of {}, whose argument path is {}: {}",
        user_text(debug),
        path(),
        e.value(py)
    ))
}

/// Values put together as a Python tree.
pub fn build(py: Python<'_>, tree: &TreeDef, values: impl IntoIterator<Item = Value>) -> PyResult<Py<PyAny>> {
    let leaves = values.into_iter().map(|v| from_value(py, v)).collect::<PyResult<Leaves>>()?;
    tree::unflatten(py, tree, leaves)
}

/// `PyResult` to the crates' `Result`: the same exception, without the frames of library code that called the user's.
pub fn rust<T>(r: PyResult<T>) -> Result<T> {
    r.map_err(stripped)
}

#[cold]
fn stripped(e: PyErr) -> ferrax_base::Error {
    carry(Python::attach(|py| crate::boundary::without_frames(py, e)))
}

/// A function of flat values over a Python function of trees; keeps the structure of the result.
pub struct FlatCall<'a, 'py> {
    py: Python<'py>,
    fun: &'a Py<PyAny>,
    tree: &'a TreeDef,
    debug: &'a DebugInfo,
    /// Structure of the result, once called.
    pub out_tree: Option<TreeDef>,
}

impl<'a, 'py> FlatCall<'a, 'py> {
    /// A call of `fun` with arguments of structure `tree`.
    pub fn new(py: Python<'py>, fun: &'a Py<PyAny>, tree: &'a TreeDef, debug: &'a DebugInfo) -> Self {
        FlatCall { py, fun, tree, debug, out_tree: None }
    }

    /// Calls it.
    pub fn call(&mut self, values: &[Value]) -> Result<Vec<Value>> {
        let out = rust(call_values(self.py, self.fun, self.tree, values))?;
        let (values, tree) = rust(flatten_result(self.py, &out, self.debug))?;
        self.out_tree = Some(tree);
        Ok(values)
    }

    /// Calls it, and gives with its results what references hold that the trace in force found.
    pub fn to_end(&mut self, values: &[Value]) -> Result<Vec<Value>> {
        let mut results = self.call(values)?;
        results.extend(rust(super::references::ending(self.py))?);
        Ok(results)
    }

    /// Structure of the result.
    pub fn out_tree(self) -> PyResult<TreeDef> {
        self.out_tree
            .ok_or_else(|| ferrax_base::error!(Internal, "the function {} was not called", self.debug.name))
            .py()
    }
}

/// An argument that is one index or a tuple or list of them.
pub fn indices(obj: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    match obj.extract::<i64>() {
        Ok(i) => Ok(vec![i]),
        Err(_) => obj.try_iter()?.map(|i| i?.extract()).collect(),
    }
}

/// An argument that is one name or a tuple or list of them.
pub fn names(obj: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match obj.extract::<String>() {
        Ok(s) => Ok(vec![s]),
        Err(_) => obj.try_iter()?.map(|s| s?.extract()).collect(),
    }
}

/// Copies a function's names and docstring onto its wrapper, as `functools.wraps` does.
pub fn wrap_names(wrapper: &Bound<'_, PyAny>, fun: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = wrapper.py();
    for name in ["__doc__", "__module__", "__annotations__"] {
        if let Some(v) = fun.getattr_opt(name)? {
            wrapper.setattr(name, v)?;
        }
    }
    for name in ["__name__", "__qualname__"] {
        let own = fun.getattr_opt(name)?.or(unwrapped(fun).getattr_opt(name)?);
        wrapper.setattr(name, own.unwrap_or_else(|| PyString::new(py, "<unnamed function>").into_any()))?;
    }
    if let Some(own) = fun.getattr_opt(intern!(py, "__dict__"))?.and_then(|d| d.cast_into::<PyDict>().ok()) {
        let kind = wrapper.get_type();
        for (name, value) in own {
            let name = name.cast::<PyString>()?;
            // another wrapper's `lower` is not this one's
            if !kind.hasattr(name)? {
                wrapper.setattr(name, value)?;
            }
        }
    }
    wrapper.setattr(intern!(py, "__wrapped__"), fun)
}

/// Keyword arguments as a dict, `None` when there are none.
pub fn kwargs_dict<'py>(args: &Args<'_, 'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if args.kwlen() == 0 {
        return Ok(None);
    }
    let dict = PyDict::new(args.py());
    for (k, v) in args.keywords() {
        dict.set_item(k, v)?;
    }
    Ok(Some(dict))
}

/// Positional arguments as a tuple.
pub fn args_tuple<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(args.py(), args.positional())
}
