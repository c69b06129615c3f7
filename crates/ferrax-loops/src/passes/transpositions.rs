//! Transpositions around products become part of the products.
//!
//! A product reads its operands by strides, so a transposed operand needs no copy; and a product whose free axes
//! change places is the product of the operands in the other order. Both give the bits of the product with copies,
//! because an element's sum depends on k alone (which a target promises). Products with a vector, whose order of sums does
//! depend on the layout, and those of complex numbers and integers stay as they are.

use crate::{DotDims, Graph, Kind, Node, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// The graph with transpositions folded into products; itself where there is none to fold.
pub fn fold_transpositions(graph: Arc<Graph>) -> Arc<Graph> {
    let has = |f: fn(&Kind) -> bool| graph.nodes.iter().any(|n| f(&n.kind));
    if !has(|k| matches!(k, Kind::Dot(_))) || !has(|k| matches!(k, Kind::Transpose(_))) {
        return graph;
    }
    let mut made_by = vec![usize::MAX; graph.types.len()];
    let mut uses = vec![0u32; graph.types.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        node.outputs().for_each(|v| made_by[v.0 as usize] = i);
        node.inputs.iter().for_each(|v| uses[v.0 as usize] += 1);
    }
    graph.outputs.iter().for_each(|v| uses[v.0 as usize] += 1);
    let mut folded: Option<Graph> = None;
    for i in 0..graph.nodes.len() {
        let g = folded.as_ref().unwrap_or(&graph);
        let source = |v: ValueId| g.nodes.get(made_by[v.0 as usize]);
        let new = match &g.nodes[i].kind {
            Kind::Dot(dims) => transposed_operands(g, &g.nodes[i], dims, source),
            Kind::Transpose(perm) => match source(g.nodes[i].inputs[0]) {
                Some(dot) if uses[dot.first.0 as usize] == 1 => swapped(g, dot, perm),
                _ => None,
            },
            _ => None,
        };
        if let Some((dims, inputs)) = new {
            let node = &mut folded.get_or_insert_with(|| (*graph).clone()).nodes[i];
            (node.kind, node.inputs) = (Kind::Dot(Box::new(dims)), inputs);
        }
    }
    folded.map_or(graph, Arc::new)
}

type Dot = (DotDims, SmallVec<[ValueId; 3]>);

/// Axes of an operand that are neither batch nor contracted.
fn free(rank: usize, batch: &[usize], contract: &[usize]) -> SmallVec<[usize; 4]> {
    (0..rank).filter(|a| !batch.contains(a) && !contract.contains(a)).collect()
}

/// Whether a product's bits do not depend on the layout of its operands.
fn by_tiles(g: &Graph, node: &Node, dims: &DotDims) -> bool {
    let shape = |k: usize| &g.ty(node.inputs[k]).shape;
    let size = |k: usize, batch: &[usize], contract: &[usize]| {
        ferrax_base::shape::product(free(shape(k).len(), batch, contract).iter().map(|&a| shape(k)[a]))
    };
    node.inputs.iter().all(|&v| g.ty(v).dtype.is_float())
        && g.ty(node.first).dtype.is_float()
        && size(0, &dims.lhs_batch, &dims.lhs_contract) > 1
        && size(1, &dims.rhs_batch, &dims.rhs_contract) > 1
}

/// A product of what its operands are transpositions of.
fn transposed_operands<'g>(
    g: &Graph,
    node: &Node,
    dims: &DotDims,
    source: impl Fn(ValueId) -> Option<&'g Node>,
) -> Option<Dot> {
    if !by_tiles(g, node, dims) {
        return None;
    }
    let (mut dims, mut inputs) = (dims.clone(), node.inputs.clone());
    let mut changed = false;
    for (k, input) in inputs.iter_mut().enumerate() {
        let Some(Node { kind: Kind::Transpose(perm), inputs: from, .. }) = source(*input) else { continue };
        let DotDims { lhs_batch, lhs_contract, rhs_batch, rhs_contract, .. } = &mut dims;
        let (batch, contract) = if k == 0 { (lhs_batch, lhs_contract) } else { (rhs_batch, rhs_contract) };
        // The result's axes keep their order only if the free ones do.
        if free(perm.len(), batch, contract).iter().map(|&a| perm[a]).is_sorted() {
            batch.iter_mut().chain(contract).for_each(|a| *a = perm[*a]);
            *input = from[0];
            changed = true;
        }
    }
    changed.then_some((dims, inputs))
}

/// The product that gives a product's transposition: that of the operands in the other order.
fn swapped(g: &Graph, dot: &Node, perm: &[usize]) -> Option<Dot> {
    let Kind::Dot(dims) = &dot.kind else { return None };
    if !by_tiles(g, dot, dims) {
        return None;
    }
    let batch = dims.lhs_batch.len();
    let lhs_free = g.ty(dot.inputs[0]).shape.len() - batch - dims.lhs_contract.len();
    let wanted = (0..batch).chain(batch + lhs_free..perm.len()).chain(batch..batch + lhs_free);
    let DotDims { lhs_batch, lhs_contract, rhs_batch, rhs_contract, tf32 } = DotDims::clone(dims);
    let (lhs, rhs) = ((rhs_batch, rhs_contract), (lhs_batch, lhs_contract));
    let dims = DotDims { lhs_batch: lhs.0, lhs_contract: lhs.1, rhs_batch: rhs.0, rhs_contract: rhs.1, tf32 };
    perm.iter().copied().eq(wanted).then(|| (dims, SmallVec::from_slice(&[dot.inputs[1], dot.inputs[0]])))
}
