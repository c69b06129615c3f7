//! What a differentiated function returns beside its result: any tree, of which only traced values are followed.

use super::function::{Leaves, bad_result, flatten_result};
use crate::tracer::PyTracer;
use crate::tree::{self, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_ir::{DebugInfo, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Auxiliary data, taken apart.
pub struct Aux {
    tree: TreeDef,
    /// Its leaves; None for those that are results of the trace.
    leaves: Vec<Option<Py<PyAny>>>,
}

impl Aux {
    /// Takes data apart; adds the traced values in it to the results of the trace.
    pub fn take(aux: &Bound<'_, PyAny>, results: &mut Vec<Value>, debug: &DebugInfo) -> PyResult<Aux> {
        let mut found = Leaves::new();
        let tree = tree::flatten_into(aux, &mut found)?;
        let mut leaves = Vec::with_capacity(found.len());
        for (i, leaf) in found.into_iter().enumerate() {
            let object = leaf.bind(aux.py());
            if object.is_instance_of::<PyTracer>() || super::references::is_reference(object) {
                results.push(to_value(object).map_err(|e| bad_result(aux.py(), e, aux, i, object, debug))?);
                leaves.push(None);
            } else {
                leaves.push(Some(leaf));
            }
        }
        Ok(Aux { tree, leaves })
    }

    /// The data again, with what became of its traced values.
    pub fn build(self, py: Python<'_>, results: impl IntoIterator<Item = Value>) -> PyResult<Py<PyAny>> {
        let mut results = results.into_iter();
        let leaf = |kept: Option<Py<PyAny>>| match (kept, &mut results) {
            (Some(leaf), _) => Ok(leaf),
            (None, results) => from_value(py, results.next().expect("one result a traced leaf")),
        };
        let leaves = self.leaves.into_iter().map(leaf).collect::<PyResult<Leaves>>()?;
        tree::unflatten(py, &self.tree, leaves)
    }
}

/// What a differentiated function returned, as far as it is no value.
#[derive(Default)]
pub struct Returned {
    /// The structure of its result; None before the function was called.
    pub tree: Option<TreeDef>,
    /// How many of the results of the trace are its result's, which come first.
    pub count: usize,
    /// Its auxiliary data, if it has some.
    pub aux: Option<Aux>,
}

impl Returned {
    /// Takes apart what the function returned; gives the results of the trace.
    pub fn take(&mut self, out: Bound<'_, PyAny>, has_aux: bool, debug: &DebugInfo) -> PyResult<Vec<Value>> {
        let (main, aux) = pair(out, has_aux)?;
        let (mut flat, tree) = flatten_result(main.py(), &main, debug)?;
        self.tree = Some(tree);
        self.count = flat.len();
        self.aux = aux.map(|aux| Aux::take(&aux, &mut flat, debug)).transpose()?;
        Ok(flat)
    }
}

/// The two parts of what a function with auxiliary data returned, a tuple or a list.
pub fn halves<'py>(out: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let sequence = out.is_instance_of::<PyTuple>() || out.is_instance_of::<PyList>();
    (sequence && out.len().ok()? == 2).then(|| Some((out.get_item(0).ok()?, out.get_item(1).ok()?)))?
}

/// The result of a function, and its auxiliary data where it has some.
fn pair(out: Bound<'_, PyAny>, has_aux: bool) -> PyResult<(Bound<'_, PyAny>, Option<Bound<'_, PyAny>>)> {
    if !has_aux {
        return Ok((out, None));
    }
    let text = "expected function with aux output to return a two-element tuple, but got type";
    let (main, aux) = halves(&out).ok_or_else(|| PyTypeError::new_err(format!("{text} {}", out.get_type())))?;
    Ok((main, Some(aux)))
}
