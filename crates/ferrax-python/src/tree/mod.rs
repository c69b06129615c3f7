//! Python's pytrees: the host for `ferrax-tree`, the functions of `ferrax.tree` and `ferrax.tree_util`, and what the
//! rest of the extension uses to flatten arguments and build results.
//!
//! * [`flatten_into`], [`flatten_call`], [`match_call`], [`unflatten`]: arguments and results of transformed functions.
//! * [`flatten_prefix`]: `in_axes` and the like.
//! * [`treedef::PyTreeDef`] is the class that Python sees; [`TreeDef`] is what Rust passes around.
//!
//! Read next: [`registry`] (which types are containers), [`nodes`] (taking apart and building).

mod functions;
pub mod host;
mod keys;
mod mismatch;
mod nodes;
mod proto;
pub mod registry;
pub mod treedef;

use ferrax_tree::prefix::leaf_counts;
use ferrax_tree::{Builder, Children, Kind};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use smallvec::SmallVec;

pub use host::{Object, PyHost, TreeDef};
pub use mismatch::{Parted, Place, Sides, describe, leaf_text, leaf_texts, part, prefix_error};
pub use treedef::PyTreeDef;

/// Leaves of a tree.
pub type Leaves = SmallVec<[Py<PyAny>; 8]>;

fn object(borrowed: &Bound<'_, PyAny>) -> Py<PyAny> {
    borrowed.clone().unbind()
}

/// Appends the leaves of `object` and returns its structure.
#[inline]
pub fn flatten_into(object: &Bound<'_, PyAny>, leaves: &mut Leaves) -> PyResult<TreeDef> {
    ferrax_tree::flatten(object.py(), object.clone().unbind(), &mut |leaf| leaves.push(leaf), None)
}

/// As [`flatten_into`]; values for which `is_leaf` says yes are leaves.
pub fn flatten_until(
    object: &Bound<'_, PyAny>,
    leaves: &mut Leaves,
    is_leaf: &mut dyn FnMut(&Py<PyAny>) -> PyResult<bool>,
) -> PyResult<TreeDef> {
    ferrax_tree::flatten(object.py(), object.clone().unbind(), &mut |leaf| leaves.push(leaf), Some(is_leaf))
}

/// The items of an iterable.
pub fn collect(iterable: &Bound<'_, PyAny>) -> PyResult<Leaves> {
    if let Ok(list) = iterable.cast_exact::<PyList>() {
        return Ok(list.iter().map(Bound::unbind).collect());
    }
    iterable.try_iter()?.map(|item| item.map(Bound::unbind)).collect()
}

/// The object of that structure with those leaves.
pub fn unflatten(py: Python<'_>, tree: &TreeDef, leaves: impl IntoIterator<Item = Py<PyAny>>) -> PyResult<Py<PyAny>> {
    ferrax_tree::unflatten(py, tree, leaves)
}

/// The structure `((args...), {kwargs})` of a call, and its leaves; `keywords` are sorted by name on return.
pub fn flatten_call<'a, 'py: 'a>(
    py: Python<'py>,
    positional: impl IntoIterator<Item = Borrowed<'a, 'py, PyAny>>,
    keywords: &mut [(Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>)],
    leaves: &mut Leaves,
) -> PyResult<TreeDef> {
    let mut builder = Builder::<PyHost>::new();
    let root = builder.mark();
    let mut arity = 0;
    let mut push = |leaf| leaves.push(leaf);
    for argument in positional {
        ferrax_tree::flatten::flatten_into(py, object(&argument), &mut builder, &mut push, None)?;
        arity += 1;
    }
    builder.close(root, Kind::Tuple, arity);
    let mark = builder.mark();
    if keywords.len() > 1 {
        sort_keywords(keywords)?;
    }
    let mut keys = Vec::with_capacity(keywords.len());
    for (name, value) in keywords.iter() {
        keys.push(Object(object(name.as_any())));
        ferrax_tree::flatten::flatten_into(py, object(value), &mut builder, &mut push, None)?;
    }
    builder.close(mark, Kind::Dict(keys.into()), keywords.len());
    builder.close(root, Kind::Tuple, 2);
    Ok(builder.finish())
}

/// Sorts keyword arguments by name.
pub fn sort_keywords<'a, 'py>(
    keywords: &mut [(Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>)],
) -> PyResult<()> {
    let mut failed = None;
    keywords.sort_by(|(a, _), (b, _)| match (a.to_str(), b.to_str()) {
        (Ok(a), Ok(b)) => a.cmp(b),
        (Err(e), _) | (_, Err(e)) => {
            failed = Some(e);
            std::cmp::Ordering::Equal
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Whether a call has exactly the structure that [`flatten_call`] gave for another one; if so, `leaves` has its leaves.
///
/// This is what a call cache asks first: no structure is built, no dictionary sorted. `keywords` need not be sorted.
pub fn match_call<'a, 'py: 'a>(
    py: Python<'py>,
    tree: &TreeDef,
    positional: impl ExactSizeIterator<Item = Borrowed<'a, 'py, PyAny>>,
    keywords: &[(Borrowed<'a, 'py, PyString>, Borrowed<'a, 'py, PyAny>)],
    leaves: &mut Leaves,
) -> PyResult<bool> {
    use ferrax_tree::KindRef;
    let parts = tree.root().children();
    let [args, kwargs] = parts.as_slice() else { return Ok(false) };
    let KindRef::Dict(names) = kwargs.kind() else { return Ok(false) };
    if args.arity() != positional.len() || names.len() != keywords.len() {
        return Ok(false);
    }
    let mut push = |leaf| leaves.push(leaf);
    for (node, value) in args.children().into_iter().zip(positional) {
        if !ferrax_tree::flatten::follow::<_, _, _, true>(py, node, object(&value), &mut push)? {
            return Ok(false);
        }
    }
    if names.is_empty() {
        return Ok(true);
    }
    for (node, name) in kwargs.children().into_iter().zip(names) {
        let name = name.0.bind(py);
        let mut found = keywords.iter().find(|(n, _)| n.is(name));
        if found.is_none() {
            found = keywords.iter().find(|(n, _)| n.as_any().eq(name).unwrap_or(false));
        }
        let Some((_, value)) = found else { return Ok(false) };
        if !ferrax_tree::flatten::follow::<_, _, _, true>(py, node, object(value), &mut push)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Spreads the leaves of a prefix tree over the leaves of `full` (`in_axes` over the arguments).
///
/// With `none_is_leaf`, `None` is a leaf of the prefix. `what` names the prefix in the error: `vmap in_axes`.
pub fn flatten_prefix(prefix: &Bound<'_, PyAny>, full: &TreeDef, none_is_leaf: bool, what: &str) -> PyResult<Leaves> {
    let py = prefix.py();
    let mut leaves = Leaves::new();
    let tree = flatten_until(prefix, &mut leaves, &mut |x| Ok(none_is_leaf && x.is_none(py)))?;
    match leaf_counts(py, &tree, full)? {
        Ok(counts) => {
            let mut out = Leaves::with_capacity(full.num_leaves());
            for (leaf, count) in leaves.into_iter().zip(counts) {
                out.extend((0..count).map(|_| leaf.clone_ref(py)));
            }
            Ok(out)
        }
        Err(found) => Err(mismatch::spec_error(py, &found, what)),
    }
}

/// The children of one container, for code that walks trees itself; none for a leaf.
pub fn open(object: &Bound<'_, PyAny>) -> PyResult<Option<Children<Py<PyAny>>>> {
    let mut children = Children::new();
    let kind = ferrax_tree::Nodes::<PyHost>::open(object.as_unbound(), object.py(), &mut children)?;
    Ok(kind.map(|_| children))
}

/// Adds classes and functions to the extension module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    registry::add_builtins(m.py())?;
    m.add_class::<keys::SequenceKey>()?;
    m.add_class::<keys::DictKey>()?;
    m.add_class::<keys::GetAttrKey>()?;
    m.add_class::<keys::FlattenedIndexKey>()?;
    m.add_class::<PyTreeDef>()?;
    functions::register(m)
}
