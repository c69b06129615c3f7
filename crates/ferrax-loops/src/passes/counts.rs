//! Counts along one axis of several, as counts of that axis alone that are spread over the others.
//!
//! Kernels read a spread row or column where it is, so that masks of triangles and diagonals write no table of indices.

use super::{NOTHING, live_nodes};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// Elements of tables that are left as they are.
const SMALL: usize = 256;

/// The graph with `Iota` over one axis only; itself where nothing is to be done.
pub fn spread_counts(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let axis = |node: &Node| match node.kind {
        Kind::Iota(axis) => Some(axis).filter(|&a| {
            let ty = g.ty(node.first);
            ty.size() > SMALL && ty.size() > ty.shape[a]
        }),
        _ => None,
    };
    if !g.nodes.iter().any(|node| axis(node).is_some()) {
        return graph;
    }
    let mut b = Builder::new(g.types[..g.params].iter().cloned());
    let mut map: Vec<ValueId> = b.params().collect();
    for (node, live) in g.nodes.iter().zip(live_nodes(g)) {
        if !live {
            map.extend(node.outputs().map(|_| NOTHING));
            continue;
        }
        if let Some(axis) = axis(node) {
            let ty = g.ty(node.first);
            let line = b.push(Kind::Iota(0), &[], Type::new(ty.dtype, &[ty.shape[axis]]));
            map.push(b.push(Kind::Broadcast([axis].into_iter().collect()), &[line], ty.clone()));
            continue;
        }
        let inputs: SmallVec<[ValueId; 8]> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
        let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
        map.extend(b.push_many(node.kind.clone(), &inputs, &types));
    }
    let outputs: Vec<ValueId> = g.outputs.iter().map(|v| map[v.0 as usize]).collect();
    Arc::new(b.finish(&outputs))
}
