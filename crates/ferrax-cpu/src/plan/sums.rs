//! Sums c + a ⊗ b that become one step: which products only a sum reads, and whether the sum can wait.
//!
//! Read next: `library/sums.rs` for how they run.

use crate::library::dot::planned::Planned;
use crate::library::sums::{Accumulate, KEPT};
use crate::plan::{Donation, Planner};
use crate::program::Step;
use ferrax_base::DType;
use ferrax_loops::passes::sums::Pair;
use ferrax_loops::{Kind, ValueId};

/// Elements of a matrix that is worth it.
const WORTH: usize = 1 << 10;

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
