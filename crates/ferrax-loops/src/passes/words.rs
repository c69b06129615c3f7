//! Keys of random numbers in loops, as the words that they are.
//!
//! A step that splits a key and draws under it takes the words of a key apart and joins those of others, each time for
//! a few bytes. In loops a key is two u32 along a last axis, as it lies in memory, so that nothing is to be done there,
//! and an engine's registers hold it. What has no rule here finds the key that the words are.
//! Read next: `ahead.rs`, which draws before a loop where it can.

use super::{NOTHING, became, live_nodes, rewritten};
use crate::kind::{Gathering, IndexMode, SliceDims};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use ferrax_base::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// The graph with loops whose keys are words; itself where there are none.
pub fn words(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let with_keys = |node: &Node| matches!(node.kind, Kind::While { .. } | Kind::Scan { .. }) && holds_keys(node);
    if !g.nodes.iter().any(with_keys) {
        return graph;
    }
    rewritten(g, &live_nodes(g), |_, node, b, map| {
        let found = with_keys(node);
        if found {
            let args: SmallVec<[ValueId; 8]> = became(node, map).into_iter().map(|v| to_words(b, v)).collect();
            let results: Vec<Type> = node.outputs().map(|v| in_words(g.ty(v))).collect();
            let outs = b.push_many(inside(&node.kind), &args, &results);
            map.extend(node.outputs().zip(outs).map(|(v, now)| to_type(b, now, g.ty(v))));
        }
        found
    })
}

/// Whether a graph has keys, inside of its nodes too.
fn has_keys(g: &Graph) -> bool {
    g.types.iter().any(|ty| ty.dtype.is_key()) || g.nodes.iter().any(holds_keys)
}

/// Whether there are keys inside of a node: those that it takes or gives are parameters and outputs there.
fn holds_keys(node: &Node) -> bool {
    match &node.kind {
        Kind::While { cond, body, .. } => has_keys(cond) || has_keys(body),
        Kind::Scan { body, .. } | Kind::Call(body) => has_keys(body),
        Kind::Switch(branches) => branches.iter().any(|branch| has_keys(branch)),
        _ => false,
    }
}

/// The type of a key's words; any other one stays.
fn in_words(ty: &Type) -> Type {
    if !ty.dtype.is_key() {
        return ty.clone();
    }
    let mut shape = ty.shape.clone();
    shape.push(2);
    Type::new(DType::U32, &shape)
}

/// A value with words in place of keys.
fn to_words(b: &mut Builder, v: ValueId) -> ValueId {
    let ty = in_words(b.ty(v));
    to_type(b, v, &ty)
}

/// A value as one of a type that lies in memory as its own does.
fn to_type(b: &mut Builder, v: ValueId, ty: &Type) -> ValueId {
    if b.ty(v) == ty { v } else { b.push(Kind::Bitcast, &[v], ty.clone()) }
}

/// A node that has graphs, with theirs in words.
fn inside(kind: &Kind) -> Kind {
    match kind {
        Kind::While { cond, body, cond_consts, body_consts } => Kind::While {
            cond: body_in_words(cond),
            body: body_in_words(body),
            cond_consts: *cond_consts,
            body_consts: *body_consts,
        },
        Kind::Scan { body, length, reverse, consts, carry } => {
            Kind::Scan { body: body_in_words(body), length: *length, reverse: *reverse, consts: *consts, carry: *carry }
        }
        Kind::Switch(branches) => Kind::Switch(branches.iter().map(body_in_words).collect()),
        Kind::Call(body) => Kind::Call(body_in_words(body)),
        kind => kind.clone(),
    }
}

/// A graph with words in place of keys, those that it takes and gives too.
fn body_in_words(graph: &Arc<Graph>) -> Arc<Graph> {
    let g = &**graph;
    if !has_keys(g) {
        return graph.clone();
    }
    let mut b = Builder::new(g.param_types().iter().map(in_words));
    let mut map: Vec<ValueId> = b.params().collect();
    for (node, live) in g.nodes.iter().zip(live_nodes(g)) {
        if !live {
            map.extend(node.outputs().map(|_| NOTHING));
            continue;
        }
        let x = became(node, &map);
        map.extend(push(&mut b, g, node, &x));
    }
    let outputs: Vec<ValueId> = g.outputs.iter().map(|v| map[v.0 as usize]).collect();
    Arc::new(b.finish(&outputs))
}

/// A node of what its operands are in words: its results, in words.
fn push(b: &mut Builder, g: &Graph, node: &Node, x: &[ValueId]) -> SmallVec<[ValueId; 4]> {
    let results: SmallVec<[Type; 4]> = node.outputs().map(|v| in_words(g.ty(v))).collect();
    if let Some(same) = rule(b, g, node, x, &results[..]) {
        return same;
    }
    let keys: SmallVec<[ValueId; 8]> = node.inputs.iter().zip(x).map(|(v, &now)| to_type(b, now, g.ty(*v))).collect();
    let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
    let outs = b.push_many(node.kind.clone(), &keys, &types);
    outs.into_iter().map(|v| to_words(b, v)).collect()
}

/// The results of a node that works on words as on keys.
fn rule(b: &mut Builder, g: &Graph, node: &Node, x: &[ValueId], results: &[Type]) -> Option<SmallVec<[ValueId; 4]>> {
    let result = results.first()?;
    let of_keys = g.ty(node.first).dtype.is_key();
    let rank = g.ty(node.first).shape.len();
    let mut x: SmallVec<[ValueId; 8]> = SmallVec::from_slice(x);
    let kind = match &node.kind {
        Kind::While { .. } | Kind::Scan { .. } | Kind::Switch(_) | Kind::Call(_) => inside(&node.kind),
        Kind::Bitcast if b.ty(x[0]) == result => return Some(SmallVec::from_elem(x[0], 1)),
        kind if !node.inputs.iter().copied().chain(node.outputs()).any(|v| g.ty(v).dtype.is_key()) => kind.clone(),
        kind @ (Kind::Reshape | Kind::Concat(_) | Kind::Dense(_) | Kind::Barrier) => kind.clone(),
        Kind::Broadcast(dims) => Kind::Broadcast(dims.iter().copied().chain([rank]).collect()),
        Kind::Transpose(order) => Kind::Transpose(order.iter().copied().chain([rank]).collect()),
        Kind::Slice(dims) => {
            let with = |all: &[usize], last: usize| all.iter().copied().chain([last]).collect();
            let SliceDims { start, limit, stride } = &**dims;
            Kind::Slice(Box::new(SliceDims { start: with(start, 0), limit: with(limit, 2), stride: with(stride, 1) }))
        }
        Kind::Select if of_keys => {
            let dims: Vec<usize> = (0..b.ty(x[0]).shape.len()).collect();
            x[0] = b.broadcast(x[0], &result.shape, &dims);
            Kind::Select
        }
        kind @ (Kind::DynamicSlice | Kind::DynamicUpdateSlice) => {
            let first = if matches!(kind, Kind::DynamicSlice) { 1 } else { 2 };
            let index = x.get(first).map_or(DType::I32, |&v| b.ty(v).dtype);
            x.push(b.scalar(Scalar::from_i64(index, 0)));
            kind.clone()
        }
        Kind::Gather(gathering) if gathering.mode != IndexMode::FillOrDrop => {
            let mut words = Gathering { fill: Scalar::from_i64(DType::U32, 0), ..(**gathering).clone() };
            words.dims.offset_dims.push(rank);
            words.slice_sizes.push(2);
            Kind::Gather(Box::new(words))
        }
        _ => return None,
    };
    Some(b.push_many(kind, &x, results).into_iter().collect())
}
