//! Factorizations by NVIDIA's library; without it they are programs of simpler nodes (`plan/factors.rs` has both).

use crate::plan::frame::Frame;
use crate::program::{Span, Step};
use crate::routine::{Factor, Routine};
use ferrax_base::{Result, bail};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Node, ValueId};

/// A factorization with a code for each matrix, over the matrices.
pub fn factor(f: &mut Frame<'_>, node: &Node, op: LinalgOp) -> Result<()> {
    let ty = f.g.ty(node.first).clone();
    let [batch, n, m] = ty.shape[..] else { bail!(Internal, "a factorization of {ty}") };
    let outputs: Vec<ValueId> = node.outputs().collect();
    let k = match op {
        LinalgOp::HouseholderProduct => f.g.ty(node.inputs[1]).shape[1],
        LinalgOp::Svd { vectors: true } => f.g.ty(outputs[2]).shape[1],
        _ => 0,
    };
    let matrix = f.result_over_first(node)?;
    let reads = node.inputs[1..].iter().map(|&v| f.span(v)).collect::<Result<_>>()?;
    let mut writes: Vec<Span> = vec![f.p.span(matrix)];
    for &v in &outputs[1..] {
        let to = f.result(v);
        writes.push(f.p.span(to));
    }
    let routine = Routine::Factor(Factor { op, dtype: ty.dtype, batch, m, n, k });
    f.steps.push(Step::Call { routine, reads, writes });
    Ok(())
}
