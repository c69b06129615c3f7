//! Trees as the transformations need them: calls taken apart and put together, names of arguments, axes.

use super::function::ParamNames;
use crate::fastcall::Args;
use crate::tree::{self, Leaves, Sides, TreeDef};
use ferrax_ir::jaxpr::ArgNames;
use ferrax_tree::KindRef;
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

type Keyword<'a, 'py> = (Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>);

/// The structure `(args, kwargs)` of a vectorcall, and its leaves.
pub fn flatten_call(args: &Args<'_, '_>, leaves: &mut Leaves) -> PyResult<TreeDef> {
    let mut keywords: SmallVec<[Keyword<'_, '_>; 4]> = args.keywords().collect();
    tree::flatten_call(args.py(), args.positional(), &mut keywords, leaves)
}

/// Whether a leaf of a call's arguments is of a kind: for calls that failed.
#[cold]
pub fn has_leaf(args: &Args<'_, '_>, is: impl Fn(&Bound<'_, PyAny>) -> bool) -> bool {
    let mut leaves = Leaves::new();
    flatten_call(args, &mut leaves).is_ok() && leaves.iter().any(|leaf| is(leaf.bind(args.py())))
}

/// The structure `(args, kwargs)` of a call held as a tuple and a dict, and its leaves.
pub fn flatten_args(
    args: &Bound<'_, PyTuple>,
    kwargs: Option<&Bound<'_, PyDict>>,
    leaves: &mut Leaves,
) -> PyResult<TreeDef> {
    let items: Vec<Bound<'_, PyAny>> = args.iter().collect();
    let mut named: Vec<(Bound<'_, PyString>, Bound<'_, PyAny>)> = Vec::new();
    for (k, v) in kwargs.into_iter().flatten() {
        named.push((k.cast_into::<PyString>().map_err(PyErr::from)?, v));
    }
    let mut keywords: SmallVec<[Keyword<'_, '_>; 4]> =
        named.iter().map(|(k, v)| (k.as_borrowed(), v.as_borrowed())).collect();
    tree::flatten_call(args.py(), items.iter().map(Bound::as_borrowed), &mut keywords, leaves)
}

/// The arguments of a call of structure `(args, kwargs)` with these leaves; no dict when there are no keywords.
pub fn unflatten_call<'py>(
    py: Python<'py>,
    tree: &TreeDef,
    leaves: Leaves,
) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
    let call = tree::unflatten(py, tree, leaves)?.into_bound(py);
    let call = call.cast::<PyTuple>()?;
    let args = call.get_item(0)?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    let kwargs = call.get_item(1)?.cast_into::<PyDict>().map_err(PyErr::from)?;
    Ok((args, (!kwargs.is_empty()).then_some(kwargs)))
}

fn parts(tree: &TreeDef) -> PyResult<(TreeDef, TreeDef)> {
    match tree.children().as_slice() {
        [args, kwargs] => Ok((args.clone(), kwargs.clone())),
        _ => Err(PyTypeError::new_err("not the structure of a call")),
    }
}

/// The structure of the positional arguments, and the number of keyword leaves.
pub fn split_call(tree: &TreeDef) -> PyResult<(TreeDef, usize)> {
    let (args, kwargs) = parts(tree)?;
    let n = kwargs.num_leaves();
    Ok((args, n))
}

fn keyword_names(py: Python<'_>, kwargs: &TreeDef) -> PyResult<Vec<String>> {
    match kwargs.kind() {
        KindRef::Dict(names) => names.iter().map(|n| n.0.extract(py)).collect(),
        _ => Ok(Vec::new()),
    }
}

/// Leaves of each positional and of each keyword argument.
pub fn leaf_counts(py: Python<'_>, tree: &TreeDef) -> PyResult<(Vec<usize>, Vec<(String, usize)>)> {
    let (args, kwargs) = parts(tree)?;
    let positional = args.children().iter().map(TreeDef::num_leaves).collect();
    let counts = kwargs.children().into_iter().map(|c| c.num_leaves());
    Ok((positional, keyword_names(py, &kwargs)?.into_iter().zip(counts).collect()))
}

/// An argument of a call.
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// Whether it was passed by keyword.
    pub by_keyword: bool,
    /// Its structure.
    pub tree: TreeDef,
    /// The number of its first leaf among those of the call.
    pub first_leaf: usize,
}

/// The arguments of a call in order.
pub fn arguments(py: Python<'_>, tree: &TreeDef, params: &ParamNames) -> PyResult<Vec<Argument>> {
    let (args, kwargs) = parts(tree)?;
    let (args, count) = (args.children(), args.arity());
    let names = params.traced(py, count).into_iter().chain(params.keywords(py, keyword_names(py, &kwargs)?));
    let mut first_leaf = 0;
    let make = |(i, (name, tree)): (usize, (String, TreeDef))| {
        let first = first_leaf;
        first_leaf += tree.num_leaves();
        Argument { name, by_keyword: i >= count, tree, first_leaf: first }
    };
    Ok(names.zip(args.into_iter().chain(kwargs.children())).enumerate().map(make).collect())
}

/// A name for each leaf of a call: the parameter's, with the path inside it.
pub fn argument_names(py: Python<'_>, tree: &TreeDef, params: &ParamNames) -> PyResult<Vec<String>> {
    let mut out = Vec::with_capacity(tree.num_leaves());
    for argument in arguments(py, tree, params)? {
        leaf_names(py, &argument.tree, &argument.name, &mut out)?;
    }
    Ok(out)
}

/// Names for the leaves of a result, `result['a'][0]`.
pub fn result_names(tree: &TreeDef) -> ArgNames {
    let tree = tree.clone();
    Arc::new(move || {
        Python::attach(|py| {
            let mut out = Vec::with_capacity(tree.num_leaves());
            leaf_names(py, &tree, "result", &mut out).map(|()| out).unwrap_or_default()
        })
    })
}

/// The name of one leaf of a call, by its number.
pub fn leaf_name(py: Python<'_>, tree: &TreeDef, params: &ParamNames, leaf: usize) -> PyResult<String> {
    let (args, kwargs) = parts(tree)?;
    let mut before = 0;
    let names = params.traced(py, args.arity()).into_iter().chain(params.keywords(py, keyword_names(py, &kwargs)?));
    for (name, child) in names.zip(args.root().children().into_iter().chain(kwargs.root().children())) {
        if leaf < before + child.num_leaves() {
            return Ok(format!("{name}{}", tree::leaf_text(py, &child.subtree(), leaf - before)?));
        }
        before += child.num_leaves();
    }
    Ok(format!("leaf {leaf}"))
}

/// The path of one leaf of a call, by its number: `[0]...` of positional arguments, `[1]['x']...` of those given by name.
pub fn leaf_path(py: Python<'_>, tree: &TreeDef, leaf: usize) -> PyResult<String> {
    tree::leaf_text(py, tree, leaf)
}

/// `name`, or `name['w'][0]` for the leaves inside a container.
fn leaf_names(py: Python<'_>, tree: &TreeDef, name: &str, out: &mut Vec<String>) -> PyResult<()> {
    if tree.is_leaf() {
        out.push(name.to_owned());
        return Ok(());
    }
    out.extend(tree::leaf_texts(py, tree)?.iter().map(|path| format!("{name}{path}")));
    Ok(())
}

/// The text of a structure, for messages: its beginning, when it is long.
pub fn display(py: Python<'_>, tree: &TreeDef) -> String {
    let text = tree.short_text(py, crate::shorten::SENTENCE);
    text.map_or_else(|_| "PyTreeDef(?)".to_owned(), |t| format!("PyTreeDef({t})"))
}

/// Lines for the first places where two structures differ, for messages.
pub fn differences(py: Python<'_>, left: &TreeDef, right: &TreeDef, names: [&str; 2]) -> PyResult<String> {
    Ok(tree::describe(py, left, right, &Sides { root: "", left: names[0], right: names[1] })?.join("\n  * "))
}

/// Whether two structures are the same.
pub fn same(py: Python<'_>, a: &TreeDef, b: &TreeDef) -> PyResult<bool> {
    a.equals(py, b)
}
