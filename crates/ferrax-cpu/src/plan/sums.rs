//! Sums c + a ⊗ b that become one step: which products only a sum reads, and whether the sum can wait.
//!
//! Read next: `library/sums.rs` for how they run.

use crate::library::dot::planned::Planned;
use crate::library::sums::{Accumulate, KEPT};
use crate::plan::order::Order;
use crate::plan::{Donation, Planner};
use crate::program::Step;
use ferrax_base::DType;
use ferrax_loops::{BinaryOp, Graph, Kind, ValueId};

/// Elements of a sum at most: threads may share larger ones.
const MOST: usize = 1 << 16;

/// Elements of a matrix that is worth it.
const WORTH: usize = 1 << 10;

/// A product that only a sum reads, by their nodes.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub dot: u32,
    pub add: u32,
}

/// The pairs of a graph, in the order of their sums.
pub(crate) fn find(g: &Graph, live: &[bool]) -> Vec<Pair> {
    let mut uses: Vec<u32> = Vec::new();
    let mut pairs = Vec::new();
    for (i, node) in g.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
        let Kind::Dot(dims) = &node.kind else { continue };
        let out = g.ty(node.first);
        let outer = |p: Planned| p.is_outer() && out.size() <= MOST;
        if !Planned::new(dims, g.ty(node.inputs[0]), g.ty(node.inputs[1]), out).is_some_and(outer) {
            continue;
        }
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

impl Order<'_> {
    /// Makes a sum of this kind an item.
    pub fn accumulate(&mut self, pair: Pair) {
        let g = self.g;
        self.other(&g.nodes[pair.dot as usize]);
        self.other(&g.nodes[pair.add as usize]);
        self.items.push(crate::plan::order::Item::Accumulate(pair));
    }
}

impl Planner<'_> {
    /// Appends a sum of this kind.
    pub fn emit_accumulate(&mut self, s: u32, pair: Pair) {
        let g = self.g;
        let out = g.nodes[pair.add as usize].first;
        let dot = &g.nodes[pair.dot as usize];
        let Kind::Dot(dims) = &dot.kind else { return };
        let (a, b) = (g.ty(dot.inputs[0]), g.ty(dot.inputs[1]));
        let Some((rows, columns, step)) = Planned::new(dims, a, b, g.ty(dot.first)).map(|p| p.outer()) else { return };
        let roots = pair.inputs(g).map(|v| self.order.dense_root(v));
        let [a, b, c] = roots.map(|r| self.slot[r as usize]);
        // Rows of the result are written before all of the factors are read.
        let free = roots[2] != roots[0] && roots[2] != roots[1];
        let bytes = g.ty(out).size() * DType::F32.size();
        let to = self.new_slot(s, out.0, bytes, if free { &roots[2..] } else { &[] });
        let waits = c == to && rows * columns >= WORTH && self.only_summed(roots[2], out);
        let kept = waits.then(|| {
            let bytes = KEPT * (rows + columns) * size_of::<f32>();
            self.out.kept_bytes += bytes.next_multiple_of(64);
            self.out.kept_bytes - bytes.next_multiple_of(64)
        });
        let sum = Accumulate { slots: [a, b, c, to], rows, columns, step, dot: pair.dot, kept };
        self.out.steps.push(Step::Accumulate(self.out.sums.len() as u32));
        self.out.sums.push(sum);
    }
}

impl Planner<'_> {
    /// Whether a scan carries a matrix that its body only adds to: what it is before the scan ends is not seen.
    fn only_summed(&self, before: u32, after: ValueId) -> bool {
        let Donation::Tied { waits: true, .. } = self.donation else { return false };
        let g = self.g;
        let root = |v: ValueId| self.order.plain_place(v).root;
        let inputs = g.nodes.iter().flat_map(|n| &n.inputs).map(|&v| root(v));
        let outputs = || g.outputs.iter().map(|&v| root(v));
        let (mut reads, mut others) = (0, 0);
        for r in inputs {
            reads += usize::from(r == before);
            others += usize::from(r == after.0);
        }
        reads == 1 && others == 0 && outputs().filter(|&r| r == after.0).count() == 1 && outputs().all(|r| r != before)
    }
}
