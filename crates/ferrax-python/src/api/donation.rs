//! What is said about donated arguments: paths that no argument has, and `donate="must"` where nothing can be taken.
//!
//! Read next: `jit.rs`, which finds the donated leaves, and `ferrax::executable` for those whose memory is no use.

use super::function::Leaves;
use super::jit_cache::Program;
use crate::array::PyArray;
use crate::config::edits;
use crate::errors::IntoPyResult;
use ferrax_base::Aval;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Paths that an error shows at most.
const SHOWN: usize = 8;

/// Whether a donated name reaches into an argument.
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['[', '.'])
}

/// A path with its keys in the quotes that Python shows them in: `state["w"]` is `state['w']`.
pub(super) fn usual_quotes(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find("[\"") {
        let (before, key) = (&rest[..at], &rest[at + 2..]);
        let Some(end) = key.find("\"]") else { break };
        let quote = if key[..end].contains('\'') { '"' } else { '\'' };
        out.extend([before, "["]);
        out.push(quote);
        out.push_str(&key[..end]);
        out.push(quote);
        out.push(']');
        rest = &key[end + 2..];
    }
    out + rest
}

/// The error of a donated path that no argument has: with the paths there are, or those that are most like it.
#[cold]
pub(super) fn no_such_path(function: &str, path: &str, names: &[String]) -> PyErr {
    let distance =
        |name: &String| edits(path.as_bytes(), name.as_bytes(), path.len() + name.len()).unwrap_or(usize::MAX);
    let mut near: Vec<&String> = names.iter().collect();
    near.sort_by_cached_key(|name| distance(name));
    let meant = near.first().filter(|name| distance(name) <= 1 + path.len() / 8);
    let meant = meant.map_or_else(String::new, |name| format!(". Did you mean {name}?"));
    let list = |names: &[&String]| names.iter().map(|n| n.as_str()).collect::<Vec<_>>().join(", ");
    let paths = if names.len() <= SHOWN {
        format!("the paths are {}", list(&names.iter().collect::<Vec<_>>()))
    } else {
        format!("the nearest of the {} paths are {}", names.len(), list(&near[..SHOWN]))
    };
    PyValueError::new_err(format!(
        "donate_argnames of {function} has the path {path}, which no argument has; {paths}{meant}"
    ))
}

/// The error of `donate="must"` where no argument is donated.
#[cold]
pub(super) fn nothing_donated(function: &str) -> PyErr {
    PyValueError::new_err(format!(
        "{function}: donate='must', but no argument is donated. Say which with donate_argnums or donate_argnames, or leave \
         donate out."
    ))
}

/// Errors when a donated leaf is no array of ours, so that nothing of it could be taken; `describe` names a leaf.
pub(super) fn check_leaves(
    py: Python<'_>,
    leaves: &Leaves,
    donated: &[bool],
    describe: impl Fn(usize) -> String,
) -> PyResult<()> {
    for (i, leaf) in leaves.iter().enumerate().filter(|(i, _)| donated.get(*i) == Some(&true)) {
        let leaf = leaf.bind(py);
        if leaf.is_instance_of::<PyArray>() {
            continue;
        }
        let module: String = leaf.get_type().getattr("__module__").and_then(|m| m.extract()).unwrap_or_default();
        let scalar = leaf.getattr("shape").map_or(true, |s| s.len().is_ok_and(|n| n == 0));
        let why = match (module.as_str(), scalar) {
            ("numpy", false) => {
                "a NumPy array keeps its memory, and the call would get a copy. Make an array of it first \
                 (jnp.asarray(x)), and pass that"
            }
            ("numpy", true) => "a NumPy scalar has no memory that a result could take. Pass an array (jnp.asarray(x))",
            ("builtins", _) => "a Python number has no memory that a result could take. Pass an array (jnp.asarray(x))",
            _ => "the call would get a copy of it. Make an array of it first (jnp.asarray(x)), and pass that",
        };
        return Err(PyValueError::new_err(format!("{} cannot be donated: {why}.", describe(i))));
    }
    Ok(())
}

/// Warns of donated arguments whose memory no result can use.
#[cold]
pub(super) fn warn_unusable(py: Python<'_>, entry: &Program) -> PyResult<()> {
    // whether a plan takes the memory that a result could take is its own affair
    let (avals, mut results) = (entry.jaxpr.in_avals(), entry.jaxpr.out_avals());
    let same = |a: &Aval, b: &Aval| a.dtype == b.dtype && a.shape == b.shape;
    let mut left: Vec<usize> = (0..avals.len()).filter(|i| entry.donate.get(*i) == Some(&true)).collect();
    left.retain(|&i| match results.iter().position(|r| same(r, &avals[i])) {
        Some(at) => {
            results.swap_remove(at);
            false
        }
        None => true,
    });
    if left.is_empty() {
        return Ok(());
    }
    let mut unusable = entry.executable().py()?.unusable_donations(&entry.donate).py()?;
    unusable.retain(|i| left.contains(i));
    if unusable.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = unusable.iter().map(|&i| avals[i].long_text()).collect();
    let text = format!(
        "Some donated buffers were not usable: {}.\nEach needs a result of the same shape and dtype that is not taken.",
        texts.join(", ")
    );
    let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
    crate::warning::at_user(py, category.as_any(), |_| text)
}
