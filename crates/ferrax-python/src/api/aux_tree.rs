//! What a differentiated function returns beside its result (`has_aux`): values, which the trace follows, and any other
//! objects, which stay as they are. Read next: `grad.rs`.

use super::function::{Leaves, bad_result};
use super::references::is_reference;
use crate::tree::{self, TreeDef};
use crate::value::{from_value, to_value};
use ferrax_ir::{DebugInfo, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// A structure with the leaves that are no values at their places.
pub struct AuxTree {
    tree: TreeDef,
    kept: Vec<Option<Py<PyAny>>>,
}

impl AuxTree {
    /// Takes an auxiliary result apart: its values, and what puts it together again.
    pub fn flatten(out: &Bound<'_, PyAny>, debug: &DebugInfo) -> PyResult<(Vec<Value>, AuxTree)> {
        let py = out.py();
        let mut leaves = Leaves::new();
        let tree = tree::flatten_into(out, &mut leaves)?;
        let (mut values, mut kept) = (Vec::with_capacity(leaves.len()), Vec::with_capacity(leaves.len()));
        for (i, leaf) in leaves.iter().enumerate() {
            let leaf = leaf.bind(py);
            kept.push(match to_value(leaf) {
                Ok(value) => {
                    values.push(value);
                    None
                }
                Err(e) if e.is_instance_of::<PyTypeError>(py) && !is_reference(leaf) => Some(leaf.clone().unbind()),
                Err(e) => return Err(bad_result(py, e, out, i, leaf, debug)),
            });
        }
        Ok((values, AuxTree { tree, kept }))
    }

    /// The auxiliary result with these values.
    pub fn build(self, py: Python<'_>, values: impl IntoIterator<Item = Value>) -> PyResult<Py<PyAny>> {
        let mut values = values.into_iter();
        let leaf = |kept: Option<Py<PyAny>>| kept.map(Ok).or_else(|| values.next().map(|v| from_value(py, v)));
        let leaves = self.kept.into_iter().filter_map(leaf).collect::<PyResult<Leaves>>()?;
        tree::unflatten(py, &self.tree, leaves)
    }
}
