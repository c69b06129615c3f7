//! Passes over the kernel graph that every engine with kernels of its own needs.
//!
//! Fifteen rewrite a graph: [`ahead`](ahead()), [`any`](any()), [`few`](few()), [`fold_transpositions`], [`fractions`](fractions()), [`paddings`](paddings()), [`hoist`], [`holes`](holes()), [`idle`](idle()), [`rolls`](rolls()), [`split_states`], [`on_parts`], [`recompute`], [`spread_counts`],
//! [`words`](words()). [`mod@segments`] cuts programs for engines whose
//! own cannot call the host. [`order`] finds which nodes run together and where
//! each value's elements are; what an engine's kernels take, it asks a [`Target`]. No pass changes a bit of a result:
//! nodes compute the same from the same operands wherever they stand; but for `holes`, which leaves zeros out of sums.
//!
//! Read next: [`order`], [`view`], then the planner of an engine (`ferrax-cpu/src/plan`).

pub mod ahead;
pub mod any;
pub mod counts;
pub mod few;
pub mod fractions;
pub mod hoist;
pub mod holes;
pub mod idle;
pub mod order;
pub mod paddings;
pub mod parts;
pub mod pieces;
pub mod recompute;
pub mod rolls;
pub mod segments;
pub mod states;
pub mod sums;
pub mod transpositions;
pub mod view;
pub mod words;

pub use ahead::ahead;
pub use any::any;
pub use counts::spread_counts;
pub use few::few;
pub use fractions::fractions;
pub use hoist::hoist;
pub use holes::holes;
pub use idle::idle;
pub use paddings::paddings;
pub use parts::on_parts;
pub use recompute::recompute;
pub use rolls::rolls;
pub use segments::segments;
pub use states::split_states;
pub use transpositions::fold_transpositions;
pub use words::words;

use crate::{Builder, Graph, Kind, Node, ReduceOp, Type, ValueId};
use ferrax_base::DType;
use smallvec::SmallVec;
use std::sync::Arc;

/// What the kernels of an engine that fuses nodes take.
pub trait Target {
    /// The widths of lanes, in bytes; the one that is preferred first.
    fn widths(&self) -> &'static [usize];
    /// Whether lanes of some width hold a dtype.
    fn holds(&self, d: DType) -> bool;
    /// Whether there is what an elementwise node computes, in lanes of `lane` bytes.
    fn takes(&self, g: &Graph, node: &Node, lane: usize) -> bool;
    /// Whether columns are reduced: `inner` of them, of `n` elements.
    fn takes_columns(&self, inner: usize, n: usize) -> bool;
    /// The width of lanes in which rows of a dtype can be reduced.
    fn reduces(&self, op: ReduceOp, d: DType) -> Option<usize>;
    /// Whether a product of a column and a row can be added to a matrix in one step.
    fn adds_outer(&self, g: &Graph, dot: &Node) -> bool;
}

/// Stands for a number that names nothing.
pub const NONE: u32 = u32::MAX;
/// Stands for a value that nothing reads, or that has not been made yet.
pub const NOTHING: ValueId = ValueId(NONE);

/// Nodes whose results are needed, or whose running can be seen.
pub fn live_nodes(g: &Graph) -> Vec<bool> {
    let mut needed = vec![false; g.types.len()];
    for v in &g.outputs {
        needed[v.0 as usize] = true;
    }
    let mut live = vec![false; g.nodes.len()];
    for (i, node) in g.nodes.iter().enumerate().rev() {
        live[i] = node.outputs().any(|v| needed[v.0 as usize]) || node.kind.calls_host();
        if live[i] {
            for v in &node.inputs {
                needed[v.0 as usize] = true;
            }
        }
    }
    live
}

/// A graph made anew: its live nodes in order, each by `push` or, where that gives false, as it is. `push` is given a node's
/// number, the node, and what values have become, to which it adds the node's results.
pub fn rewritten(
    g: &Graph,
    live: &[bool],
    mut push: impl FnMut(usize, &Node, &mut Builder, &mut Vec<ValueId>) -> bool,
) -> Arc<Graph> {
    let mut b = Builder::new(g.types[..g.params].iter().cloned());
    let mut map: Vec<ValueId> = b.params().collect();
    for (i, node) in g.nodes.iter().enumerate() {
        if !live[i] {
            map.extend(node.outputs().map(|_| NOTHING));
        } else if !push(i, node, &mut b, &mut map) {
            map.extend(again(&mut b, g, node, &map));
        }
    }
    let outputs: Vec<ValueId> = g.outputs.iter().map(|v| map[v.0 as usize]).collect();
    Arc::new(b.finish(&outputs))
}

/// A node as it is, of what its operands have become: its results.
fn again(b: &mut Builder, g: &Graph, node: &Node, map: &[ValueId]) -> SmallVec<[ValueId; 1]> {
    let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
    b.push_many(node.kind.clone(), &became(node, map), &types)
}

/// A node as it is, whose results are noted.
fn append(b: &mut Builder, g: &Graph, node: &Node, map: &mut [ValueId]) {
    let outs = again(b, g, node, map);
    node.outputs().zip(outs).for_each(|(v, now)| map[v.0 as usize] = now);
}

/// What the operands of a node have become.
pub fn became(node: &Node, map: &[ValueId]) -> SmallVec<[ValueId; 8]> {
    node.inputs.iter().map(|v| map[v.0 as usize]).collect()
}

/// (operand, result) pairs of a node that can work in the operand's memory.
pub fn in_place_pairs(node: &Node) -> SmallVec<[(usize, usize); 4]> {
    match &node.kind {
        Kind::DynamicUpdateSlice | Kind::Scatter { .. } => SmallVec::from_slice(&[(0, 0)]),
        Kind::While { cond_consts, body_consts, .. } => {
            let first = cond_consts + body_consts;
            (0..node.inputs.len() - first).map(|k| (first + k, k)).collect()
        }
        Kind::Scan { consts, carry, .. } => (0..*carry).map(|k| (consts + k, k)).collect(),
        _ => SmallVec::new(),
    }
}
