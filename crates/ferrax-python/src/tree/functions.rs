//! The functions of `ferrax.tree` and `ferrax.tree_util`: callables without a Python frame of their own.
//!
//! `_ferrax.tree_function(name)` makes one; the façade gives it its docstring and signature.

use ferrax_tree::prefix::leaf_counts;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple, PyType};
use pyo3::{Borrowed, ffi};
use smallvec::SmallVec;

use super::host::{Object, PyHost, TreeDef};
use super::mismatch::{Sides, describe, leaf_text, prefix_error};
use super::registry::{self, Container, Fields, Functions};
use super::treedef::{PyTreeDef, node_data};
use super::{Leaves, flatten_into, flatten_until, keys, unflatten};
use crate::array::PyArray;
use crate::fastcall::{Args, FastCall, Params, Signature, new_callable};
use crate::shorten;

type Arg<'a, 'py> = Option<Borrowed<'a, 'py, PyAny>>;
type Run = for<'a, 'py> fn(&Args<'a, 'py>) -> PyResult<Bound<'py, PyAny>>;

/// Name and implementation of every function.
const FUNCTIONS: &[(&str, Run)] = &[
    ("flatten", flatten),
    ("leaves", leaves),
    ("structure", structure),
    ("unflatten", tree_unflatten),
    ("map", map),
    ("all", all),
    ("reduce", reduce),
    ("transpose", transpose),
    ("broadcast", broadcast),
    ("flatten_with_path", flatten_with_path),
    ("leaves_with_path", leaves_with_path),
    ("map_with_path", map_with_path),
    ("flatten_one_level", flatten_one_level),
    ("flatten_one_level_with_keys", flatten_one_level_with_keys),
    ("all_leaves", all_leaves),
    ("treedef_tuple", treedef_tuple),
    ("treedef_children", treedef_children),
    ("treedef_is_leaf", treedef_is_leaf),
    ("is_tree_node", is_tree_node),
    ("keystr", keystr),
    ("block_until_ready", block_until_ready),
];

struct TreeFunction(Run);

impl FastCall for TreeFunction {
    fn call<'py>(&self, _py: Python<'py>, args: Args<'_, 'py>) -> PyResult<Py<PyAny>> {
        (self.0)(&args).map(Bound::unbind)
    }
}

/// A line for each of the first places where two structures differ; the names say what each is called.
#[pyfunction]
fn tree_differences(
    py: Python<'_>,
    left: PyRef<'_, PyTreeDef>,
    right: PyRef<'_, PyTreeDef>,
    root: &str,
    left_name: &str,
    right_name: &str,
) -> PyResult<Vec<String>> {
    describe(py, &left.0, &right.0, &Sides { root, left: left_name, right: right_name })
}

/// `keystr` of the path to a leaf, by its number.
#[pyfunction]
fn tree_leaf_path(py: Python<'_>, tree: PyRef<'_, PyTreeDef>, leaf: usize) -> PyResult<String> {
    leaf_text(py, &tree.0, leaf)
}

/// A new callable for the function of that name.
#[pyfunction]
fn tree_function(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    match FUNCTIONS.iter().find(|(n, _)| *n == name) {
        Some((name, run)) => new_callable(py, TreeFunction(*run), name, "", Signature::Unknown),
        None => Err(PyValueError::new_err(format!("no tree function is called {name}"))),
    }
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyTreeRegistry>()?;
    m.add_function(wrap_pyfunction!(tree_differences, m)?)?;
    m.add_function(wrap_pyfunction!(tree_leaf_path, m)?)?;
    m.add_function(wrap_pyfunction!(tree_function, m)?)
}

/// An optional argument, where `None` means not given.
fn given<'a, 'py>(argument: Arg<'a, 'py>) -> Arg<'a, 'py> {
    argument.filter(|a| !a.is_none())
}

/// An argument that `Params::parse` has made sure of.
fn required<'a, 'py>(argument: Arg<'a, 'py>) -> PyResult<Borrowed<'a, 'py, PyAny>> {
    argument.ok_or_else(|| PyTypeError::new_err("a required argument is missing"))
}

fn treedef<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<&'a TreeDef> {
    match object.cast::<PyTreeDef>() {
        Ok(tree) => Ok(&tree.get().0),
        Err(_) => Err(PyTypeError::new_err(format!("expected a PyTreeDef, got {}", object.get_type().repr()?))),
    }
}

/// The answer of an `is_leaf` function: a bool, or `None` for no.
fn ask(answer: Bound<'_, PyAny>) -> PyResult<bool> {
    match answer.cast::<PyBool>() {
        Ok(answer) => Ok(answer.is_true()),
        Err(_) if answer.is_none() => Ok(false),
        Err(_) => Err(PyValueError::new_err(format!(
            "is_leaf predicate returned a non-boolean value {}; expected a boolean",
            shorten::repr(&answer)
        ))),
    }
}

fn flatten_with(tree: &Bound<'_, PyAny>, is_leaf: Arg<'_, '_>, leaves: &mut Leaves) -> PyResult<TreeDef> {
    match given(is_leaf) {
        None => flatten_into(tree, leaves),
        Some(is_leaf) => flatten_until(tree, leaves, &mut |value| ask(is_leaf.call1((value,))?)),
    }
}

fn list(py: Python<'_>, leaves: Leaves) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, leaves)
}

fn flatten<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_flatten", &["tree", "is_leaf"], 1, 2);
    let [tree, is_leaf] = P.parse::<2>(args)?;
    let mut leaves = Leaves::new();
    let def = flatten_with(&*required(tree)?, is_leaf, &mut leaves)?;
    let leaves = list(args.py(), leaves)?.into_any();
    Ok(PyTuple::new(args.py(), [leaves, PyTreeDef::wrap(args.py(), def)?.into_bound(args.py())])?.into_any())
}

/// The leaves alone.
fn only_leaves(tree: &Bound<'_, PyAny>, is_leaf: Arg<'_, '_>) -> PyResult<Leaves> {
    let mut leaves = Leaves::new();
    let mut push = |leaf| leaves.push(leaf);
    let value = tree.clone().unbind();
    match given(is_leaf) {
        None => ferrax_tree::flatten::flatten_into::<PyHost, _, _, ()>(tree.py(), value, &mut (), &mut push, None)?,
        Some(is_leaf) => {
            let mut question = |value: &Py<PyAny>| ask(is_leaf.call1((value,))?);
            ferrax_tree::flatten::flatten_into::<PyHost, _, _, ()>(
                tree.py(),
                value,
                &mut (),
                &mut push,
                Some(&mut question),
            )?;
        }
    }
    Ok(leaves)
}

fn leaves<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_leaves", &["tree", "is_leaf"], 1, 2);
    let [tree, is_leaf] = P.parse::<2>(args)?;
    Ok(list(args.py(), only_leaves(&*required(tree)?, is_leaf)?)?.into_any())
}

/// Waits for the arrays of a tree.
fn block_until_ready<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("block_until_ready", &["x"], 1, 1);
    let [x] = P.parse::<1>(args)?;
    let x = required(x)?;
    let wait = |leaf: &Bound<'py, PyAny>| match leaf.cast::<PyArray>() {
        Ok(array) => array.get().wait(),
        Err(_) => match leaf.getattr_opt("block_until_ready")? {
            Some(wait) => wait.call0().map(drop),
            None => Ok(()),
        },
    };
    match x.cast::<PyArray>() {
        Ok(array) => array.get().wait()?,
        Err(_) => only_leaves(&x, None)?.iter().try_for_each(|leaf| wait(leaf.bind(args.py())))?,
    }
    Ok(x.to_owned())
}

fn structure<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_structure", &["tree", "is_leaf"], 1, 2);
    let [tree, is_leaf] = P.parse::<2>(args)?;
    let def = flatten_with(&*required(tree)?, is_leaf, &mut Leaves::new())?;
    Ok(PyTreeDef::wrap(args.py(), def)?.into_bound(args.py()))
}

fn tree_unflatten<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_unflatten", &["treedef", "leaves"], 2, 2);
    let [tree, leaves] = P.parse::<2>(args)?;
    let leaves = super::collect(&*required(leaves)?)?;
    Ok(unflatten(args.py(), treedef(&*required(tree)?)?, leaves)?.into_bound(args.py()))
}

/// `f`, the trees, and the named options of `map` and `map_with_path`.
struct MapArgs<'a, 'py> {
    f: Borrowed<'a, 'py, PyAny>,
    tree: Borrowed<'a, 'py, PyAny>,
    rest: SmallVec<[Borrowed<'a, 'py, PyAny>; 4]>,
    is_leaf: Arg<'a, 'py>,
    takes_path: bool,
}

fn map_args<'a, 'py>(args: &Args<'a, 'py>, name: &'static str) -> PyResult<MapArgs<'a, 'py>> {
    let (mut f, mut tree) = (args.get(0), args.get(1));
    let (mut is_leaf, mut takes_path) = (None, false);
    for (key, value) in args.keywords() {
        match key.to_str()? {
            "is_leaf" => is_leaf = Some(value),
            "is_leaf_takes_path" if name == "tree_map_with_path" => takes_path = value.is_truthy()?,
            "f" if f.is_none() => f = Some(value),
            "tree" if tree.is_none() => tree = Some(value),
            other => {
                return Err(PyTypeError::new_err(format!("{name}() got an unexpected keyword argument '{other}'")));
            }
        }
    }
    let missing = |what: &str| PyTypeError::new_err(format!("{name}() missing required argument: '{what}'"));
    Ok(MapArgs {
        f: f.ok_or_else(|| missing("f"))?,
        tree: tree.ok_or_else(|| missing("tree"))?,
        rest: args.positional().skip(2).collect(),
        is_leaf,
        takes_path,
    })
}

/// The leaves of the other trees of `map`, each as far down as the first tree goes.
fn flatten_rest(map: &MapArgs<'_, '_>, def: &TreeDef, name: &str) -> PyResult<SmallVec<[Leaves; 4]>> {
    let py = map.tree.py();
    let mut all = SmallVec::with_capacity(map.rest.len());
    for other in &map.rest {
        let mut leaves = Leaves::with_capacity(def.num_leaves());
        let done = ferrax_tree::flatten_up_to(py, def, (**other).clone().unbind(), &mut |leaf| leaves.push(leaf));
        if let Err(error) = done {
            let mut is_leaf = |value: &Py<PyAny>| match given(map.is_leaf) {
                Some(is_leaf) if !map.takes_path => ask(is_leaf.call1((value,))?),
                _ => Ok(false),
            };
            return Err(prefix_error(&map.tree, other, &mut is_leaf, name)?.unwrap_or(error));
        }
        all.push(leaves);
    }
    Ok(all)
}

/// Calls `f` on the leaves, column by column, and puts the results into the first tree's structure.
fn call_columns<'py>(
    py: Python<'py>,
    f: &Bound<'py, PyAny>,
    columns: &[&[Py<PyAny>]],
    def: &TreeDef,
) -> PyResult<Bound<'py, PyAny>> {
    let n = def.num_leaves();
    let mut results = Leaves::with_capacity(n);
    // one free place before the arguments, as vectorcall wants it
    let mut stack: SmallVec<[*mut ffi::PyObject; 8]> = SmallVec::from_elem(std::ptr::null_mut(), columns.len() + 1);
    let flags = columns.len() | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET;
    for i in 0..n {
        for (place, column) in stack[1..].iter_mut().zip(columns) {
            *place = column[i].as_ptr();
        }
        // SAFETY: the arguments are alive in their columns; the place before the first may be overwritten
        let out = unsafe {
            let out = ffi::PyObject_Vectorcall(f.as_ptr(), stack.as_ptr().add(1), flags, std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(py, out)?
        };
        results.push(out.unbind());
    }
    Ok(unflatten(py, def, results)?.into_bound(py))
}

fn map<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let map = map_args(args, "tree_map")?;
    let mut first = Leaves::new();
    let def = flatten_with(&map.tree, map.is_leaf, &mut first)?;
    let rest = flatten_rest(&map, &def, "tree_map tree")?;
    let mut columns: SmallVec<[&[Py<PyAny>]; 4]> = SmallVec::from_elem(&first[..], 1);
    columns.extend(rest.iter().map(SmallVec::as_slice));
    call_columns(args.py(), &map.f, &columns, &def)
}

/// Paths (as tuples), leaves and structure.
fn with_path<'py>(
    tree: &Bound<'py, PyAny>,
    is_leaf: Arg<'_, 'py>,
    takes_path: bool,
) -> PyResult<(Leaves, Leaves, TreeDef)> {
    let py = tree.py();
    let tuple = |path: &[Object]| PyTuple::new(py, path.iter().map(|k| &k.0));
    let (mut paths, mut leaves) = (Leaves::new(), Leaves::new());
    let mut at_leaf = |path: &[Object], leaf| {
        paths.push(tuple(path)?.into_any().unbind());
        leaves.push(leaf);
        Ok(())
    };
    let is_leaf = given(is_leaf);
    let mut question = |path: &[Object], value: &Py<PyAny>| match is_leaf {
        None => Ok(false),
        Some(f) if takes_path => ask(f.call1((tuple(path)?, value))?),
        Some(f) => ask(f.call1((value,))?),
    };
    let question: Option<ferrax_tree::flatten::IsLeafAt<'_, PyHost, Py<PyAny>>> =
        if is_leaf.is_some() { Some(&mut question) } else { None };
    let def = ferrax_tree::flatten_with_path(py, tree.clone().unbind(), &mut at_leaf, question)?;
    Ok((paths, leaves, def))
}

fn path_pairs<'py>(args: &Args<'_, 'py>, params: &Params) -> PyResult<(Bound<'py, PyAny>, TreeDef)> {
    let py = args.py();
    let [tree, is_leaf, takes_path] = params.parse::<3>(args)?;
    let takes_path = takes_path.map_or(Ok(false), |t| t.is_truthy())?;
    let (paths, leaves, def) = with_path(&*required(tree)?, is_leaf, takes_path)?;
    let pairs: Vec<_> = paths.into_iter().zip(leaves).collect();
    Ok((PyList::new(py, pairs)?.into_any(), def))
}

fn flatten_with_path<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_flatten_with_path", &["tree", "is_leaf", "is_leaf_takes_path"], 1, 3);
    let (pairs, def) = path_pairs(args, &P)?;
    Ok(PyTuple::new(args.py(), [pairs, PyTreeDef::wrap(args.py(), def)?.into_bound(args.py())])?.into_any())
}

fn leaves_with_path<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_leaves_with_path", &["tree", "is_leaf", "is_leaf_takes_path"], 1, 3);
    Ok(path_pairs(args, &P)?.0)
}

fn map_with_path<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let map = map_args(args, "tree_map_with_path")?;
    let (paths, first, def) = with_path(&map.tree, map.is_leaf, map.takes_path)?;
    let rest = flatten_rest(&map, &def, "tree_map_with_path tree")?;
    let mut columns: SmallVec<[&[Py<PyAny>]; 4]> = SmallVec::from_slice(&[&paths[..], &first[..]]);
    columns.extend(rest.iter().map(SmallVec::as_slice));
    call_columns(args.py(), &map.f, &columns, &def)
}

fn all<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_all", &["tree", "is_leaf"], 1, 1);
    let [tree, is_leaf] = P.parse::<2>(args)?;
    for leaf in only_leaves(&*required(tree)?, is_leaf)? {
        if !leaf.bind(args.py()).is_truthy()? {
            return Ok(PyBool::new(args.py(), false).to_owned().into_any());
        }
    }
    Ok(PyBool::new(args.py(), true).to_owned().into_any())
}

fn reduce<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_reduce", &["function", "tree", "initializer", "is_leaf"], 2, 4);
    let py = args.py();
    let [function, tree, initializer, is_leaf] = P.parse::<4>(args)?;
    let function = required(function)?;
    let mut leaves = only_leaves(&*required(tree)?, is_leaf)?.into_iter();
    let Some(mut result) = initializer.map(|i| i.to_owned().unbind()).or_else(|| leaves.next()) else {
        return Err(PyTypeError::new_err("reduce() of empty iterable with no initial value"));
    };
    for leaf in leaves {
        result = function.call1((result, leaf))?.unbind();
    }
    Ok(result.into_bound(py))
}

const TRANSPOSED: Sides<'_> = Sides { root: "", left: "the tree", right: "the composed structure" };

fn transpose<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_transpose", &["outer_treedef", "inner_treedef", "pytree_to_transpose"], 3, 3);
    let py = args.py();
    let [outer, inner, tree] = P.parse::<3>(args)?;
    let (outer, tree) = (required(outer)?, required(tree)?);
    let outer = treedef(&outer)?;
    let mut flat = Leaves::new();
    let def = flatten_into(&tree, &mut flat)?;
    let inner = if let Some(inner) = given(inner) {
        treedef(&inner)?.clone()
    } else {
        let mut parts = Leaves::new();
        ferrax_tree::flatten_up_to(py, outer, tree.to_owned().unbind(), &mut |part| parts.push(part))?;
        let first = parts.first().ok_or_else(|| PyTypeError::new_err("the outer structure has no leaves"))?;
        flatten_into(first.bind(py), &mut Leaves::new())?
    };
    let (rows, columns) = (outer.num_leaves(), inner.num_leaves());
    if def.num_leaves() != rows * columns {
        let expected = outer.compose(&inner);
        return Err(PyTypeError::new_err(format!(
            "Mismatch\nPyTreeDef({})\n != \nPyTreeDef({})\n  * {}",
            def.short_text(py, shorten::BLOCK)?,
            expected.short_text(py, shorten::BLOCK)?,
            describe(py, &def, &expected, &TRANSPOSED)?.join("\n  * ")
        )));
    }
    let mut parts = Leaves::with_capacity(columns);
    for column in 0..columns {
        let column = (0..rows).map(|row| flat[row * columns + column].clone_ref(py));
        parts.push(unflatten(py, outer, column)?);
    }
    Ok(unflatten(py, &inner, parts)?.into_bound(py))
}

fn broadcast<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("tree_broadcast", &["prefix_tree", "full_tree", "is_leaf"], 2, 3);
    let py = args.py();
    let [prefix, full, is_leaf] = P.parse::<3>(args)?;
    let (prefix, full) = (required(prefix)?, required(full)?);
    let mut leaves = Leaves::new();
    let prefix_def = flatten_with(&prefix, is_leaf, &mut leaves)?;
    let full_def = flatten_into(&full, &mut Leaves::new())?;
    let Ok(counts) = leaf_counts(py, &prefix_def, &full_def)? else {
        let mut question = |value: &Py<PyAny>| match given(is_leaf) {
            Some(is_leaf) => ask(is_leaf.call1((value,))?),
            None => Ok(false),
        };
        let error = prefix_error(&prefix, &full, &mut question, "broadcast_prefix prefix_tree")?;
        return Err(error.unwrap_or_else(|| PyValueError::new_err("prefix_tree is not a prefix of full_tree")));
    };
    let spread = leaves.iter().zip(counts).flat_map(|(leaf, n)| (0..n).map(move |_| leaf.clone_ref(py)));
    Ok(unflatten(py, &full_def, spread)?.into_bound(py))
}

/// Children (with keys) and data of one container; an error or none for a leaf.
fn level<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<(Vec<(Object, Py<PyAny>)>, Bound<'py, PyAny>)>> {
    let py = object.py();
    let mut children = ferrax_tree::Children::new();
    let kind = ferrax_tree::Nodes::<PyHost>::open_with_keys(object.as_unbound(), py, &mut children)?;
    let Some(kind) = kind else { return Ok(None) };
    let data = match kind.borrowed() {
        ferrax_tree::KindRef::Dict(keys) => PyTuple::new(py, keys.iter().map(|k| &k.0))?.into_any(),
        ferrax_tree::KindRef::Named(class) => class.0.bind(py).clone(),
        kind => node_data(py, kind)?.map_or_else(|| py.None().into_bound(py), |(_, data)| data.into_bound(py)),
    };
    Ok(Some((children.into_vec(), data)))
}

/// Whether an object is a tuple, a list, a dictionary or None, as the registry has them.
fn is_builtin(object: &Bound<'_, PyAny>) -> bool {
    registry::lookup(object.get_type_ptr()).is_some_and(|r| matches!(r.container, Container::Builtin))
}

fn one_level<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if let Some(entry) = registry::lookup(object.get_type_ptr())
        && let Container::Functions(functions) = &entry.container
    {
        let (children, aux) = functions.raw(object)?;
        return Ok(Some(PyTuple::new(py, [children, aux])?.into_any()));
    }
    let Some((children, data)) = level(object)? else { return Ok(None) };
    let children = children.into_iter().map(|(_, child)| child);
    let list = object.is_exact_instance_of::<PyList>() || !is_builtin(object);
    let children = if list { PyList::new(py, children)?.into_any() } else { PyTuple::new(py, children)?.into_any() };
    Ok(Some(PyTuple::new(py, [children, data])?.into_any()))
}

fn one_level_with_keys<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    let Some((children, data)) = level(object)? else { return Ok(None) };
    let pairs = children.into_iter().map(|(key, child)| (key.0, child));
    let pairs =
        if is_builtin(object) { PyTuple::new(py, pairs)?.into_any() } else { PyList::new(py, pairs)?.into_any() };
    Ok(Some(PyTuple::new(py, [pairs, data])?.into_any()))
}

fn not_a_node(object: &Bound<'_, PyAny>) -> PyErr {
    match object.get_type().repr() {
        Ok(class) => PyValueError::new_err(format!("can't tree-flatten type: {class}")),
        Err(error) => error,
    }
}

fn flatten_one_level<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("flatten_one_level", &["tree"], 1, 1);
    let [tree] = P.parse::<1>(args)?;
    let tree = required(tree)?;
    one_level(&tree)?.ok_or_else(|| not_a_node(&tree))
}

fn flatten_one_level_with_keys<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("flatten_one_level_with_keys", &["tree"], 1, 1);
    let [tree] = P.parse::<1>(args)?;
    let tree = required(tree)?;
    one_level_with_keys(&tree)?.ok_or_else(|| not_a_node(&tree))
}

fn all_leaves<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("all_leaves", &["iterable", "is_leaf"], 1, 2);
    let [iterable, is_leaf] = P.parse::<2>(args)?;
    let mut answer = true;
    for item in required(iterable)?.try_iter()? {
        let item = item?;
        let stop = given(is_leaf).map_or(Ok(false), |f| ask(f.call1((&item,))?))?;
        if !stop && super::nodes::is_node(&item)? {
            answer = false;
            break;
        }
    }
    Ok(PyBool::new(args.py(), answer).to_owned().into_any())
}

fn treedef_tuple<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("treedef_tuple", &["treedefs"], 1, 1);
    let [trees] = P.parse::<1>(args)?;
    let trees: Vec<TreeDef> =
        required(trees)?.try_iter()?.map(|tree| treedef(&tree?).cloned()).collect::<PyResult<_>>()?;
    Ok(PyTreeDef::wrap(args.py(), TreeDef::tuple(&trees))?.into_bound(args.py()))
}

fn treedef_children<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("treedef_children", &["treedef"], 1, 1);
    let [tree] = P.parse::<1>(args)?;
    let children: Vec<_> = treedef(&*required(tree)?)?.children().into_iter().map(PyTreeDef).collect();
    Ok(PyList::new(args.py(), children)?.into_any())
}

fn treedef_is_leaf<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("treedef_is_leaf", &["treedef"], 1, 1);
    let [tree] = P.parse::<1>(args)?;
    let answer = treedef(&*required(tree)?)?.num_nodes() == 1;
    Ok(PyBool::new(args.py(), answer).to_owned().into_any())
}

fn is_tree_node<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("is_tree_node", &["typ"], 1, 1);
    let [class] = P.parse::<1>(args)?;
    let class = required(class)?;
    let answer = match class.cast::<PyType>() {
        Ok(class) => registry::is_node(&class)?,
        Err(_) => false,
    };
    Ok(PyBool::new(args.py(), answer).to_owned().into_any())
}

fn keystr<'py>(args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    const P: Params = Params::new("keystr", &["keys", "simple", "separator"], 1, 1);
    let [path, simple, separator] = P.parse::<3>(args)?;
    let simple = simple.map_or(Ok(false), |s| s.is_truthy())?;
    let separator: String = match separator {
        Some(separator) => separator.extract()?,
        None => String::new(),
    };
    let mut parts: Vec<String> = Vec::new();
    for key in required(path)?.try_iter()? {
        let key = key?;
        parts.push(if simple { keys::simple_text(&key)? } else { key.str()?.extract()? });
    }
    Ok(PyString::new(args.py(), &parts.join(&separator)).into_any())
}

/// The registry of container types.
#[pyclass(frozen, module = "ferrax.tree_util")]
struct PyTreeRegistry {}

#[allow(clippy::unused_self)]
#[pymethods]
impl PyTreeRegistry {
    #[new]
    fn new() -> Self {
        PyTreeRegistry {}
    }

    /// Leaves and structure.
    #[pyo3(signature = (tree, leaf_predicate=None))]
    fn flatten<'py>(
        &self,
        tree: &Bound<'py, PyAny>,
        leaf_predicate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyList>, PyTreeDef)> {
        let mut leaves = Leaves::new();
        let def = flatten_with(tree, leaf_predicate.map(Bound::as_borrowed), &mut leaves)?;
        Ok((list(tree.py(), leaves)?, PyTreeDef(def)))
    }

    /// (path, leaf) pairs and structure; the predicate is asked with path and value.
    #[pyo3(signature = (tree, leaf_predicate=None))]
    fn flatten_with_path<'py>(
        &self,
        tree: &Bound<'py, PyAny>,
        leaf_predicate: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Vec<(Py<PyAny>, Py<PyAny>)>, PyTreeDef)> {
        let (paths, leaves, def) = with_path(tree, leaf_predicate.map(Bound::as_borrowed), true)?;
        Ok((paths.into_iter().zip(leaves).collect(), PyTreeDef(def)))
    }

    /// Children and data of one container, `None` for a leaf.
    fn flatten_one_level<'py>(&self, tree: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        one_level(tree)
    }

    /// (key, child) pairs and data of one container, `None` for a leaf.
    fn flatten_one_level_with_keys<'py>(&self, tree: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        one_level_with_keys(tree)
    }

    /// Whether instances of a type are containers.
    fn is_node(&self, r#type: &Bound<'_, PyType>) -> PyResult<bool> {
        registry::is_node(r#type)
    }

    /// Makes a type a container.
    #[pyo3(signature = (r#type, to_iterable, from_iterable, to_iterable_with_keys=None))]
    fn register_node(
        &self,
        r#type: &Bound<'_, PyType>,
        to_iterable: Py<PyAny>,
        from_iterable: Py<PyAny>,
        to_iterable_with_keys: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let functions =
            Functions { flatten: to_iterable, unflatten: from_iterable, flatten_with_keys: to_iterable_with_keys };
        registry::add(r#type, Container::Functions(functions))
    }

    /// Makes a type a container whose children are attributes.
    #[pyo3(signature = (r#type, data_fields, meta_fields, /))]
    fn register_dataclass_node(
        &self,
        r#type: &Bound<'_, PyType>,
        data_fields: Vec<String>,
        meta_fields: Vec<String>,
    ) -> PyResult<()> {
        let py = r#type.py();
        let names = |fields: &[String]| PyTuple::new(py, fields.iter().map(|f| PyString::intern(py, f)));
        let all: Vec<String> = data_fields.iter().chain(&meta_fields).cloned().collect();
        let fields = Fields {
            data: names(&data_fields)?.unbind(),
            meta: names(&meta_fields)?.unbind(),
            all: names(&all)?.unbind(),
        };
        registry::add(r#type, Container::Dataclass(fields))
    }

    fn __reduce__(&self) -> &'static str {
        "default_registry"
    }
}
