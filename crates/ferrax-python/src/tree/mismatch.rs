//! Errors that say where two trees differ, with the key path and what is there on either side.

use ferrax_tree::prefix::{Mismatch, Side, What, differences, mismatch};
use ferrax_tree::{Kind, KindRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::host::{Object, PyHost, TreeDef};
use super::keys;

type Predicate<'a> = &'a mut dyn FnMut(&Py<PyAny>) -> PyResult<bool>;

/// The error for a tree that does not look like its prefix, or none if it does. `name` is what the prefix is called.
pub fn prefix_error(
    prefix: &Bound<'_, PyAny>,
    full: &Bound<'_, PyAny>,
    is_leaf: Predicate<'_>,
    name: &str,
) -> PyResult<Option<PyErr>> {
    let py = prefix.py();
    let found = mismatch(py, prefix.clone().unbind(), full.clone().unbind(), is_leaf)?;
    found.map(|found| Ok(PyValueError::new_err(text(py, &found, name)?))).transpose()
}

/// The error for a specification (`in_axes`, `out_axes` ...) that is not a prefix of a structure.
pub fn spec_error(prefix: &Bound<'_, PyAny>, full: &TreeDef, none_is_leaf: bool, what: &str) -> PyErr {
    let py = prefix.py();
    let details = || {
        let leaf = Py::new(py, PytreeLeaf {})?.into_any();
        let leaves = (0..full.num_leaves()).map(|_| leaf.clone_ref(py));
        let dummy = super::unflatten(py, full, leaves)?;
        let mut is_leaf = |x: &Py<PyAny>| Ok(none_is_leaf && x.is_none(py));
        prefix_error(prefix, dummy.bind(py), &mut is_leaf, what)
    };
    let details = match details() {
        Ok(Some(error)) => format!("\n  Mismatch details (1 found):\n  {}", error.value(py)),
        Ok(None) => String::new(),
        Err(error) => return error,
    };
    PyValueError::new_err(format!("{what} specification must be a tree prefix of the corresponding value; {details}"))
}

/// Stands for a leaf in error texts.
#[pyclass(frozen)]
struct PytreeLeaf {}

#[pymethods]
impl PytreeLeaf {
    #[allow(clippy::unused_self)]
    fn __repr__(&self) -> &'static str {
        "pytree leaf"
    }
}

/// `keystr` of a path.
fn path_text(py: Python<'_>, path: &[Object]) -> PyResult<String> {
    let mut out = String::new();
    for key in path {
        out.push_str(key.0.bind(py).str()?.to_str()?);
    }
    Ok(out)
}

fn text(py: Python<'_>, found: &Mismatch<PyHost, Py<PyAny>>, name: &str) -> PyResult<String> {
    let place = format!("{name}{}", path_text(py, &found.path)?);
    let (ours, theirs) = (found.prefix.value.bind(py), found.full.value.bind(py));
    let class = ours.get_type();
    let head = format!("At that key path, the prefix pytree {name} has a subtree of type");
    Ok(match found.what {
        What::Types => format!(
            "pytree structure error: different types at key path\n    {place}\n{head}\n    {}\nbut at the same key path \
             the full pytree has a subtree of different type\n    {}.",
            class.repr()?,
            theirs.get_type().repr()?
        ),
        What::Lengths => {
            let class = class.name()?;
            format!(
                "pytree structure error: different lengths of {class} at key path\n    {place}\n{head} {class} of length \
                 {}, but the full pytree has a subtree of the same type but of length {}.",
                ours.len()?,
                theirs.len()?
            )
        }
        What::Children => children_text(py, found, &place, &head)?,
        What::Metadata => metadata_text(py, found, &place, &head)?,
    })
}

fn children_text(py: Python<'_>, found: &Mismatch<PyHost, Py<PyAny>>, place: &str, head: &str) -> PyResult<String> {
    let words = |side: &Side<PyHost, Py<PyAny>>| -> PyResult<Vec<String>> {
        side.keys.iter().map(|k| keys::simple_text(k.0.bind(py))).collect()
    };
    let (ours, theirs) = (words(&found.prefix)?, words(&found.full)?);
    let only = |a: &[String], b: &[String]| -> Vec<String> { a.iter().filter(|k| !b.contains(k)).cloned().collect() };
    let mut symmetric = only(&ours, &theirs);
    symmetric.extend(only(&theirs, &ours));
    Ok(format!(
        "pytree structure error: different numbers of pytree children at key path\n    {place}\n{head}\n    {}\nwith {} \
         child keys\n    {}\nbut at the same key path the full pytree has a subtree of the same type but with {} child \
         keys\n    {}\nso the symmetric difference on key sets is\n    {}",
        found.prefix.value.bind(py).get_type().repr()?,
        ours.len(),
        ours.join(" "),
        theirs.len(),
        theirs.join(" "),
        symmetric.join(" ")
    ))
}

/// What a container carries besides its children: the keys of a dictionary, or the auxiliary data.
fn metadata<'py>(py: Python<'py>, kind: Option<&Kind<PyHost>>) -> PyResult<Bound<'py, PyAny>> {
    match kind {
        Some(Kind::Dict(keys)) => Ok(PyTuple::new(py, keys.iter().map(|k| &k.0))?.into_any()),
        Some(Kind::Custom(_, aux)) => Ok(aux.0.bind(py).clone()),
        _ => Ok(py.None().into_bound(py)),
    }
}

fn metadata_text(py: Python<'_>, found: &Mismatch<PyHost, Py<PyAny>>, place: &str, head: &str) -> PyResult<String> {
    let ours = metadata(py, found.prefix.kind.as_ref())?.str()?;
    let theirs = metadata(py, found.full.kind.as_ref())?.str()?;
    let difference = match (&found.prefix.kind, &found.full.kind) {
        (Some(Kind::Dict(a)), Some(Kind::Dict(b))) => key_difference(py, a, b)?,
        _ => line_difference(&ours, &theirs)?,
    };
    Ok(format!(
        "pytree structure error: different pytree metadata at key path\n    {place}\n{head}\n    {}\nwith metadata\n    \
         {ours}\nbut at the same key path the full pytree has a subtree of the same type but with metadata\n    \
         {theirs}{difference}",
        found.prefix.value.bind(py).get_type().repr()?
    ))
}

/// The keys that only one of two dictionaries has.
fn key_difference(py: Python<'_>, ours: &[Object], theirs: &[Object]) -> PyResult<String> {
    let only = |a: &[Object], b: &[Object]| -> PyResult<String> {
        let mut out = Vec::new();
        for key in a {
            let key = key.0.bind(py);
            let mut found = false;
            for other in b {
                found = found || key.eq(other.0.bind(py))?;
            }
            if !found {
                out.push(key.repr()?.to_string());
            }
        }
        Ok(if out.is_empty() { "no key".to_owned() } else { out.join(", ") })
    };
    let (ours, theirs) = (only(ours, theirs)?, only(theirs, ours)?);
    Ok(format!("\nso the prefix pytree alone has {ours} and the full pytree alone has {theirs}"))
}

/// The lines in which two texts differ; nothing for single lines, which can be compared as they stand.
fn line_difference(ours: &Bound<'_, PyString>, theirs: &Bound<'_, PyString>) -> PyResult<String> {
    if !ours.to_str()?.contains('\n') && !theirs.to_str()?.contains('\n') {
        return Ok(String::new());
    }
    let py = ours.py();
    let (a, b) = (ours.call_method0("splitlines")?, theirs.call_method0("splitlines")?);
    let lines = py.import("difflib")?.call_method1("ndiff", (a, b))?;
    let diff: Vec<String> = lines.try_iter()?.map(|line| line?.extract()).collect::<PyResult<_>>()?;
    let diff: String = py.import("textwrap")?.call_method1("indent", (diff.join("\n"), "    "))?.extract()?;
    Ok(format!("\nso the diff in the metadata at these pytree nodes is\n{diff}"))
}

/// One line for each place where two structures differ, for errors such as those of `cond` and `scan`.
pub fn describe_differences(py: Python<'_>, left: &TreeDef, right: &TreeDef) -> PyResult<Vec<String>> {
    let mut lines = Vec::new();
    for found in differences(py, left, right)? {
        let place = path_text(py, &found.path)?;
        let (a, b) = (node_text(py, found.left)?, node_text(py, found.right)?);
        let why = match found.what() {
            What::Types => "their Python types differ",
            What::Lengths => "the lengths do not match",
            What::Children => "the numbers of children do not match",
            What::Metadata => "the pytree node metadata does not match",
        };
        let place = if place.is_empty() { "the root".to_owned() } else { place };
        lines.push(format!("at {place}: {a} against {b}, so {why}"));
    }
    Ok(lines)
}

fn node_text(py: Python<'_>, node: (KindRef<'_, PyHost>, usize)) -> PyResult<String> {
    let (kind, arity) = node;
    Ok(match kind {
        KindRef::Leaf => "a pytree leaf".to_owned(),
        KindRef::None => "None".to_owned(),
        KindRef::Tuple => format!("a tuple of length {arity}"),
        KindRef::List => format!("a list of length {arity}"),
        KindRef::Dict(keys) => {
            let keys: PyResult<Vec<String>> = keys.iter().map(|k| Ok(k.0.bind(py).repr()?.to_string())).collect();
            format!("a dict with the keys {{{}}}", keys?.join(", "))
        }
        KindRef::Named(class) => format!("a {}", class.0.bind(py).getattr("__name__")?),
        KindRef::Custom(custom, aux) => {
            let aux = aux.0.bind(py).str()?;
            format!("a {} with {arity} children and metadata {aux}", custom.class.bind(py).name()?)
        }
    })
}
