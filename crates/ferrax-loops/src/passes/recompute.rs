//! Cheap values that are computed again where they are needed again, so that they need not be kept.
//!
//! A region's values are in memory only where another region reads them: x - mean(x) is, because the mean of its squares
//! over columns is known after the region, and the division by it is another. Writing such a value costs as much as
//! reading what it is made of, so a few cheap operations on one large array that is in memory anyway are done
//! twice instead. Nodes compute the same from the same operands wherever they stand: no bit of a result changes.
//! Read next: `order/mod.rs`, which makes the regions.

use super::order::reduced_rows;
use super::{live_nodes, rewritten};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Elements from which on a value is worth it: smaller ones stay in the caches.
const LARGE: usize = 1 << 16;
/// Operations that are done again at most.
const OPERATIONS: usize = 4;

/// What is known of values. The stage of a value counts the steps before it that are no part of a region, or that
/// a region's results come from: values of two stages are not of one region.
struct Known<'g> {
    g: &'g Graph,
    stage: Vec<u32>,
    /// The first stage in which a value is read.
    first: Vec<u32>,
    /// Whether a value is in memory anyway: for something that is no part of a region.
    kept: Vec<bool>,
}

/// The graph with cheap values computed again; itself where there are none.
pub fn recompute(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.types.iter().any(|t| t.size() >= LARGE) {
        return graph;
    }
    let live = live_nodes(g);
    let known = Known::of(g, &live);
    let again = |node: &Node| node.inputs.iter().any(|&v| known.again(v, known.stage_of(node)));
    if !g.nodes.iter().zip(&live).any(|(node, &live)| live && again(node)) {
        return graph;
    }
    let mut copies = HashMap::new();
    rewritten(g, &live, |_, node, b, map| {
        let stage = known.stage_of(node);
        let mut inputs: SmallVec<[ValueId; 8]> = SmallVec::new();
        for &v in &node.inputs {
            let again = known.again(v, stage);
            inputs.push(if again { known.copy(v, stage, b, map, &mut copies) } else { map[v.0 as usize] });
        }
        let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
        map.extend(b.push_many(node.kind.clone(), &inputs, &types));
        true
    })
}

/// Whether a node can be part of a region, and its results be read there.
fn joins(g: &Graph, node: &Node) -> bool {
    match &node.kind {
        Kind::Const(_) | Kind::Reshape => true,
        Kind::Broadcast(_) => g.ty(node.inputs[0]).size() < g.ty(node.first).size(),
        Kind::Reduce { axes, .. } => reduced_rows(&g.ty(node.inputs[0]).shape, axes),
        kind => kind.is_elementwise(),
    }
}

/// Whether a node reads its operands as a region does.
fn reads_in_place(node: &Node) -> bool {
    matches!(node.kind, Kind::Reshape | Kind::Broadcast(_) | Kind::Reduce { .. }) || node.kind.is_elementwise()
}

impl<'g> Known<'g> {
    fn of(g: &'g Graph, live: &[bool]) -> Self {
        let n = g.types.len();
        let mut known = Known { g, stage: vec![0; n], first: vec![u32::MAX; n], kept: vec![false; n] };
        known.kept[..g.params].fill(true);
        g.outputs.iter().for_each(|v| known.kept[v.0 as usize] = true);
        for (node, _) in g.nodes.iter().zip(live).filter(|(_, live)| **live) {
            let stage = known.stage_of(node);
            let (inside, in_place) = (joins(g, node), reads_in_place(node));
            for v in node.outputs() {
                known.stage[v.0 as usize] = stage + u32::from(!inside);
                known.kept[v.0 as usize] |= !in_place;
            }
            for v in &node.inputs {
                let v = v.0 as usize;
                known.first[v] = known.first[v].min(stage);
                known.kept[v] |= !in_place;
            }
        }
        known
    }

    /// The stage in which a node reads.
    fn stage_of(&self, node: &Node) -> u32 {
        node.inputs.iter().map(|v| self.stage[v.0 as usize]).max().unwrap_or(0)
    }

    /// Whether a value is computed again for readers of this stage.
    fn again(&self, v: ValueId, stage: u32) -> bool {
        let large = self.g.ty(v).size() >= LARGE && !self.kept[v.0 as usize];
        large && self.first[v.0 as usize] < stage && {
            let (mut reads, mut operations) = (None, OPERATIONS);
            self.is_cheap(v, &mut reads, &mut operations)
        }
    }

    /// Whether a value is a few cheap operations away from one large array in memory.
    fn is_cheap(&self, v: ValueId, reads: &mut Option<ValueId>, operations: &mut usize) -> bool {
        let (g, bytes) = (self.g, self.g.ty(v).bytes());
        let Some(node) = g.maker(v).filter(|n| *operations > 0 && n.kind.is_cheap()) else { return false };
        *operations -= 1;
        node.inputs.iter().all(|&x| {
            if g.ty(x).bytes() > bytes {
                return false;
            }
            match g.maker(x) {
                Some(m) if matches!(m.kind, Kind::Broadcast(_) | Kind::Const(_)) => joins(g, m),
                _ if g.ty(x).size() < g.ty(v).size() => true,
                _ if self.kept[x.0 as usize] => *reads.get_or_insert(x) == x,
                _ => self.is_cheap(x, reads, operations),
            }
        })
    }

    /// The copy of a cheap value that a stage reads.
    fn copy(
        &self,
        v: ValueId,
        stage: u32,
        b: &mut Builder,
        map: &[ValueId],
        copies: &mut HashMap<(ValueId, u32), ValueId>,
    ) -> ValueId {
        let made_again = |x: ValueId| {
            let whole = self.g.ty(x).size() == self.g.ty(v).size() && !self.kept[x.0 as usize];
            whole && self.g.maker(x).is_some_and(|m| m.kind.is_cheap())
        };
        if let Some(&copy) = copies.get(&(v, stage)) {
            return copy;
        }
        let Some(node) = self.g.maker(v) else { return map[v.0 as usize] };
        let mut inputs: SmallVec<[ValueId; 3]> = SmallVec::new();
        for &x in &node.inputs {
            inputs.push(if made_again(x) { self.copy(x, stage, b, map, copies) } else { map[x.0 as usize] });
        }
        let copy = b.push(node.kind.clone(), &inputs, self.g.ty(v).clone());
        copies.insert((v, stage), copy);
        copy
    }
}
