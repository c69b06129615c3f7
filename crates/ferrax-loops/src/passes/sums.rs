//! Products that only a sum reads: c + a ⊗ b, which an engine may compute in one step.

use super::Target;
use crate::{BinaryOp, Graph, Kind, ValueId};

/// A product that only a sum reads, by their nodes.
#[derive(Clone, Copy)]
pub struct Pair {
    /// The product.
    pub dot: u32,
    /// The sum.
    pub add: u32,
}

/// The pairs of a graph, in the order of their sums.
pub fn find(g: &Graph, live: &[bool], target: &dyn Target) -> Vec<Pair> {
    let mut uses: Vec<u32> = Vec::new();
    let mut pairs = Vec::new();
    for (i, node) in g.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
        if !matches!(node.kind, Kind::Dot(_)) || !target.adds_outer(g, node) {
            continue;
        }
        let out = g.ty(node.first);
        if uses.is_empty() {
            uses.resize(g.types.len(), 0);
            let inputs = g.nodes.iter().zip(live).filter(|n| *n.1).flat_map(|n| &n.0.inputs);
            inputs.chain(&g.outputs).for_each(|v| uses[v.0 as usize] += 1);
        }
        if uses[node.first.0 as usize] != 1 {
            continue;
        }
        let sum = g.nodes[i + 1..].iter().position(|n| n.inputs.contains(&node.first)).map(|at| i + 1 + at);
        let fits = |at: &usize| {
            let add = &g.nodes[*at];
            matches!(add.kind, Kind::Binary(BinaryOp::Add)) && add.inputs.iter().all(|v| g.ty(*v).size() == out.size())
        };
        // Of two products that one sum reads, the second is its other operand.
        let taken = |at: &usize| pairs.iter().any(|p: &Pair| p.add as usize == *at);
        if let Some(add) = sum.filter(|at| live[*at]).filter(fits).filter(|at| !taken(at)) {
            pairs.push(Pair { dot: i as u32, add: add as u32 });
        }
    }
    pairs
}

impl Pair {
    /// The sum's other operand.
    pub fn other(self, g: &Graph) -> ValueId {
        let (dot, add) = (&g.nodes[self.dot as usize], &g.nodes[self.add as usize]);
        if add.inputs[0] == dot.first { add.inputs[1] } else { add.inputs[0] }
    }

    /// All that the two read.
    pub fn inputs(self, g: &Graph) -> [ValueId; 3] {
        let dot = &g.nodes[self.dot as usize];
        [dot.inputs[0], dot.inputs[1], self.other(g)]
    }
}
