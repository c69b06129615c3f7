//! Counts along one axis of several, as counts of that axis alone that are spread over the others.
//!
//! Kernels read a spread row or column where it is, so that masks of triangles and diagonals write no table of indices.

use super::{live_nodes, rewritten};
use crate::{Graph, Kind, Node, Type};
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
    rewritten(g, &live_nodes(g), |_, node, b, map| {
        let Some(axis) = axis(node) else { return false };
        let ty = g.ty(node.first);
        let line = b.push(Kind::Iota(0), &[], Type::new(ty.dtype, &[ty.shape[axis]]));
        map.push(b.push(Kind::Broadcast([axis].into_iter().collect()), &[line], ty.clone()));
        true
    })
}
