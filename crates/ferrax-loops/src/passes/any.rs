//! Conditions of loops that were mapped more than once.
//!
//! A mapped `while` goes on while its condition holds for any element, and leaves the others as they are. Mapped again, it goes
//! on while any row has an element that goes on, and leaves rows alone that have none: whose elements are left alone
//! already. So any of any is any of all, and of two choices the outer one says nothing new. What is left goes on element
//! by element, which engines may run so. No bit of a result changes.

use super::{became, live_nodes, rewritten};
use crate::kind::CompareOp;
use crate::{Graph, Kind, Node, ReduceOp, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

type AxesOf = SmallVec<[usize; 4]>;

/// The graph with the conditions of its `while` loops as those of elements; itself where they are.
pub fn any(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let made = |node: &Node| {
        let Kind::While { cond, body, cond_consts, body_consts } = &node.kind else { return None };
        let one = joined(cond)?;
        let body = chosen(body).unwrap_or_else(|| body.clone());
        Some(Kind::While { cond: one, body, cond_consts: *cond_consts, body_consts: *body_consts })
    };
    let made: Vec<Option<Kind>> = g.nodes.iter().map(made).collect();
    if made.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &live_nodes(g), |i, node, b, map| {
        let Some(kind) = &made[i] else { return false };
        let types: Vec<_> = node.outputs().map(|v| g.ty(v).clone()).collect();
        map.extend(b.push_many(kind.clone(), &became(node, map), &types));
        true
    })
}

/// The flags and the axes of which a value says whether any is set: by "or", or as their number is not zero.
fn any_of(g: &Graph, v: ValueId) -> Option<(ValueId, &AxesOf)> {
    let node = g.maker(v)?;
    let flags = |v: ValueId| Some(v).filter(|&v| g.ty(v).dtype.is_bool());
    match &node.kind {
        Kind::Reduce { op: ReduceOp::Or, axes } => Some((flags(node.inputs[0])?, axes)),
        Kind::Compare(CompareOp::Ne) => {
            let zero = matches!(g.maker(node.inputs[1])?.kind, Kind::Const(s) if s.bits == 0);
            let sum = g.maker(node.inputs[0]).filter(|_| zero)?;
            let Kind::Reduce { op: ReduceOp::Sum, axes } = &sum.kind else { return None };
            let number = g.maker(sum.inputs[0]).filter(|n| matches!(n.kind, Kind::Convert))?;
            // A sum of fewer flags than its dtype counts.
            let ty = g.ty(number.first);
            let counts = ty.dtype.is_integer() && ty.dtype.size() >= 4 && ty.size() < 1 << 31;
            Some((flags(number.inputs[0])?, axes)).filter(|_| counts)
        }
        _ => None,
    }
}

/// A condition that is "any of any" as "any of all".
fn joined(cond: &Graph) -> Option<Arc<Graph>> {
    let [out] = cond.outputs[..] else { return None };
    let (mut flags, first) = any_of(cond, out)?;
    let (mut taken, all) = (first.len(), |v: ValueId| cond.ty(v).shape.len());
    if taken != all(flags) {
        return None;
    }
    let outer = flags;
    while let Some((inner, axes)) = any_of(cond, flags) {
        (flags, taken) = (inner, taken + axes.len());
    }
    if flags == outer || taken != all(flags) {
        return None;
    }
    let axes: Vec<usize> = (0..taken).collect();
    Some(rewritten(cond, &live_nodes(cond), |_, node, b, map| {
        let last = node.first == out && node.results > 0;
        if last {
            map.push(b.reduce(ReduceOp::Or, map[flags.0 as usize], &axes));
        }
        last
    }))
}

/// A body without choices that those inside have made.
fn chosen(body: &Arc<Graph>) -> Option<Arc<Graph>> {
    let g = &**body;
    let maker = |v: ValueId| g.maker(v);
    // The choice inside: of the same value where the inner condition, of which the outer one is "any", does not hold.
    let inside = |node: &Node| {
        let Kind::Select = node.kind else { return None };
        let [outer, old, new] = node.inputs[..] else { return None };
        let choice = maker(new).filter(|n| matches!(n.kind, Kind::Select) && n.inputs[1] == old)?;
        rows_of(g, outer, choice.inputs[0]).then_some(new)
    };
    let found: Vec<Option<ValueId>> = g.nodes.iter().map(inside).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    Some(rewritten(g, &live_nodes(g), |i, _, _, map| {
        found[i].is_some_and(|new| {
            map.push(map[new.0 as usize]);
            true
        })
    }))
}

/// Whether a value says of each element's row whether any of `flags` is set there.
fn rows_of(g: &Graph, v: ValueId, flags: ValueId) -> bool {
    let Some(Node { kind: Kind::Broadcast(at), inputs, .. }) = g.maker(v) else { return false };
    let Some((of, axes)) = any_of(g, inputs[0]) else { return false };
    let kept = (0..g.ty(flags).shape.len()).filter(|a| !axes.contains(a));
    g.ty(v).shape == g.ty(flags).shape && of == flags && kept.eq(at.iter().copied())
}
