//! Nodes with kernels of their own.
//!
//! Each file has a kind or a family of them: kernels as text with the operands' elements put in (`print::body`), and the
//! launches that a node takes. Results are the same for any order in which threads run. What is not here raises
//! `NotImplementedError` with its name.

mod reduce;
mod update;

use crate::plan::frame::Frame;
use ferrax_base::{Result, bail};
use ferrax_loops::{Kind, Node};

/// The steps of a node whose results have elements.
pub fn node(f: &mut Frame<'_>, node: &Node) -> Result<()> {
    match &node.kind {
        Kind::Reduce { op, axes } => reduce::reduce(f, node, *op, axes),
        Kind::ArgReduce { max, axis } => reduce::arg_reduce(f, node, *max, *axis),
        Kind::ReduceWith { body, axes } => reduce::reduce_with(f, node, body, axes),
        Kind::DynamicUpdateSlice => update::dynamic_update_slice(f, node),
        kind => {
            let name = format!("{kind:?}");
            let name = name.split(['(', '{', ' ']).next().unwrap_or_default();
            bail!(NotImplemented, "the CUDA engine has no kernel for {name} of {}", f.dtype(node.first))
        }
    }
}
