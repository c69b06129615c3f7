//! What a graph computes, counted: operations of numbers, transcendental functions, bytes of operands and results.
//!
//! Counts are those of the nodes as they stand, before any engine fuses them; a loop without a known number of turns
//! counts once, and of branches the greatest. Guesses of time are in `cost.rs`.

use crate::graph::{Graph, Node};
use crate::kind::{BinaryOp, Kind, UnaryOp};

/// Counts of a graph or node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Additions, multiplications, comparisons and the like, an element each.
    pub flops: f64,
    /// Functions that are no single operation: exponentials, logarithms, sines, powers.
    pub transcendentals: f64,
    /// Bytes of the operands and of the results.
    pub bytes: f64,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            flops: self.flops + other.flops,
            transcendentals: self.transcendentals + other.transcendentals,
            bytes: self.bytes + other.bytes,
        }
    }

    fn times(self, n: usize) -> Work {
        let n = n as f64;
        Work { flops: self.flops * n, transcendentals: self.transcendentals * n, bytes: self.bytes * n }
    }

    fn flops(flops: f64) -> Work {
        Work { flops, ..Work::default() }
    }

    fn transcendentals(count: f64) -> Work {
        Work { transcendentals: count, ..Work::default() }
    }
}

impl Graph {
    /// What the nodes compute, loops and calls included.
    pub fn work(&self) -> Work {
        self.nodes.iter().fold(Work::default(), |sum, node| sum.and(self.work_of(node)))
    }

    fn work_of(&self, node: &Node) -> Work {
        let inner = match &node.kind {
            Kind::While { cond, body, .. } => return cond.work().and(body.work()),
            Kind::Scan { body, length, .. } => return body.work().times(*length),
            Kind::Call(body) => return body.work(),
            Kind::Switch(branches) => {
                let all = branches.iter().map(|b| b.work());
                return all
                    .reduce(|a, b| if a.flops + a.bytes >= b.flops + b.bytes { a } else { b })
                    .unwrap_or_default();
            }
            Kind::Const(_) | Kind::Dense(_) | Kind::Barrier => return Work::default(),
            kind => self.operations(node, kind),
        };
        let operands: usize = node.inputs.iter().map(|&v| self.ty(v).bytes()).sum();
        let results: usize = node.outputs().map(|v| self.ty(v).bytes()).sum();
        Work { bytes: (operands + results) as f64, ..inner }
    }

    fn operations(&self, node: &Node, kind: &Kind) -> Work {
        let size = |k: usize| node.inputs.get(k).map_or(0.0, |&v| self.ty(v).size() as f64);
        let out: f64 = node.outputs().map(|v| self.ty(v).size() as f64).sum();
        match kind {
            Kind::Unary(op) if is_transcendental(*op) => Work::transcendentals(out),
            Kind::Binary(BinaryOp::Pow | BinaryOp::Atan2) => Work::transcendentals(out),
            Kind::Binary(BinaryOp::Igamma | BinaryOp::Igammac | BinaryOp::Zeta | BinaryOp::Polygamma) => {
                Work::transcendentals(out)
            }
            Kind::IntegerPow(n) => Work::flops(out * f64::from(n.unsigned_abs().max(2).ilog2())),
            Kind::Dot(_) if out > 0.0 => Work::flops(2.0 * (size(0) * size(1) * out).sqrt() * self.batches(node)),
            Kind::Conv(_) => {
                let features = node.inputs.get(1).and_then(|&w| self.ty(w).shape.last()).map_or(1, |&n| n.max(1));
                Work::flops(2.0 * out * size(1) / features as f64)
            }
            Kind::Reduce { .. } | Kind::ArgReduce { .. } => Work::flops((size(0) - out).max(0.0)),
            Kind::Cumulative { .. } | Kind::Scatter { .. } => Work::flops(size(0).max(size(2))),
            Kind::ReduceWindow { window, .. } => Work::flops(out * ferrax_base::shape::size(&window.window) as f64),
            Kind::ReduceWith { body, .. } => body.work().times(size(0) as usize),
            Kind::Fft { .. } => Work::flops(5.0 * size(0).max(out) * size(0).max(out).max(2.0).log2()),
            Kind::Sort { .. } | Kind::TopK { .. } => Work::flops(size(0) * size(0).max(2.0).log2()),
            Kind::Linalg(_) => {
                let n = node.inputs.first().and_then(|&v| self.ty(v).shape.last()).map_or(1, |&n| n);
                Work::flops(size(0) * n as f64)
            }
            Kind::Threefry2x32 => Work::flops(100.0 * out),
            kind if kind.is_elementwise() => Work::flops(out),
            _ => Work::default(),
        }
    }

    /// How much the batch axes of a product hide in the geometric mean of its three sizes.
    fn batches(&self, node: &Node) -> f64 {
        let Kind::Dot(dims) = &node.kind else { return 1.0 };
        let x = self.ty(node.inputs[0]);
        let batch = ferrax_base::shape::product(dims.lhs_batch.iter().map(|&axis| x.shape[axis]));
        1.0 / (batch.max(1) as f64).sqrt()
    }
}

fn is_transcendental(op: UnaryOp) -> bool {
    use UnaryOp::*;
    !matches!(
        op,
        Neg | Sign
            | Abs
            | Floor
            | Ceil
            | RoundAway
            | RoundEven
            | IsFinite
            | Not
            | PopulationCount
            | CountLeadingZeros
            | Real
            | Imag
            | Conj
    )
}
