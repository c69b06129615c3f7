//! Nodes with kernels of their own.
//!
//! Each file has a kind or a family of them: kernels as text with the operands' elements put in (`print::body`), and the
//! launches that a node takes. Results are the same for any order in which threads run. What is not here raises
//! `NotImplementedError` with its name.

pub mod conv;
pub mod dot;
mod factor;
mod fourier;
mod radix;
mod reduce;
pub mod rows;
mod scan;
mod scatter;
mod sort;
pub mod transpose;
mod triangle;
mod update;
mod window;

use crate::plan::frame::Frame;
use ferrax_base::{Result, bail};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Kind, Node};

/// The steps of a node whose results have elements.
pub fn node(f: &mut Frame<'_>, node: &Node) -> Result<()> {
    match &node.kind {
        Kind::Reduce { op, axes } => reduce::reduce(f, node, *op, axes),
        Kind::ArgReduce { max, axis } => reduce::arg_reduce(f, node, *max, *axis),
        Kind::ReduceWith { body, axes } => reduce::reduce_with(f, node, body, axes),
        Kind::DynamicUpdateSlice => update::dynamic_update_slice(f, node),
        Kind::Dot(dims) => dot::dot(f, node, dims),
        Kind::Conv(dims) => conv::conv(f, node, dims),
        Kind::Cumulative { op, axis, reverse } => scan::cumulative(f, node, *op, *axis, *reverse),
        Kind::ReduceWindow { op, window } => window::reduce_window(f, node, *op, window),
        Kind::Sort { axis, num_keys, .. } => sort::sort(f, node, *axis, *num_keys),
        Kind::Scatter { op, dims, mode, unique, .. } => scatter::scatter(f, node, *op, dims, *mode, *unique),
        Kind::Fft { kind, axes } => fourier::fourier(f, node, *kind, *axes),
        Kind::Linalg(op) if is_called(*op, node) => factor::factor(f, node, *op),
        Kind::Linalg(op) => triangle::linalg(f, node, *op),
        kind => {
            let name = format!("{kind:?}");
            let name = name.split(['(', '{', ' ']).next().unwrap_or_default();
            bail!(NotImplemented, "the CUDA engine has no kernel for {name} of {}", f.dtype(node.first))
        }
    }
}

/// Whether a matrix operation is left for NVIDIA's library.
fn is_called(op: LinalgOp, node: &Node) -> bool {
    use LinalgOp::{Cholesky, Eigh, HouseholderProduct, Lu, Qr, Svd};
    match op {
        Cholesky => node.results == 2,
        op => matches!(op, Lu | Qr { .. } | HouseholderProduct | Eigh { .. } | Svd { .. }),
    }
}
