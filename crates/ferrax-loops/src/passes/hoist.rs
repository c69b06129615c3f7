//! What a loop's body need not do at every step.
//!
//! Costly nodes that read only what does not change (factorizations, products, functions) are computed once, before the
//! loop; they become constants of it. Stacked results that nothing reads are not made, those that are the same are
//! made once, and those that are a stepped array unchanged are that array. Nodes compute the same from the same
//! operands wherever they stand, so no bit of a result changes. Nodes that could be seen to run stay where they are.
//! Read next: `order/mod.rs`.

use super::{NOTHING, append, became, live_nodes, rewritten};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use std::sync::Arc;

/// A loop without what it need not do.
struct Better {
    kind: Kind,
    /// Over the node's operands: what is computed before. Its outputs follow the constants.
    before: Graph,
    /// Where the new constants go among the operands.
    at: usize,
    /// What each of the old results is; nothing where it is not needed.
    results: Vec<Option<Became>>,
    /// The types of the new results.
    types: Vec<Type>,
}

/// What a result of a loop became.
#[derive(Clone, Copy)]
enum Became {
    /// A result of the new loop.
    Result(usize),
    /// An operand of the old one.
    Operand(usize),
}

/// The graph with its loops bettered; itself where there is nothing to do.
pub fn hoist(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let is_loop = |n: &Node| matches!(n.kind, Kind::While { .. } | Kind::Scan { .. });
    if !g.nodes.iter().any(is_loop) {
        return graph;
    }
    let mut read = vec![false; g.types.len()];
    g.outputs.iter().for_each(|v| read[v.0 as usize] = true);
    let live = live_nodes(g);
    let reads = g.nodes.iter().zip(&live).filter(|(_, live)| **live).flat_map(|(n, _)| &n.inputs);
    reads.for_each(|v| read[v.0 as usize] = true);
    let mut better: Vec<Option<Better>> =
        g.nodes.iter().zip(&live).map(|(n, live)| (*live && is_loop(n)).then(|| Better::of(g, n, &read))?).collect();
    if better.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &live, |i, node, b, map| {
        let Some(better) = better[i].take() else { return false };
        better.push(b, &became(node, map), map);
        true
    })
}

impl Better {
    fn push(self, b: &mut Builder, inputs: &[ValueId], map: &mut Vec<ValueId>) {
        let made = b.inline(&self.before, inputs);
        let mut all: Vec<ValueId> = inputs.to_vec();
        all.splice(self.at..self.at, made);
        let outs = b.push_many(self.kind, &all, &self.types);
        map.extend(self.results.iter().map(|r| match *r {
            Some(Became::Result(k)) => outs[k],
            Some(Became::Operand(k)) => inputs[k],
            None => NOTHING,
        }));
    }

    fn of(g: &Graph, node: &Node, read: &[bool]) -> Option<Better> {
        let types: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
        let same: Vec<Option<Became>> = (0..types.len()).map(|k| Some(Became::Result(k))).collect();
        match &node.kind {
            Kind::While { cond, body, cond_consts, body_consts } => {
                let moved = Moved::of(body, *body_consts, node.inputs.len() - cond_consts - body_consts)?;
                let added = moved.before.outputs.len();
                let kind = Kind::While {
                    cond: cond.clone(),
                    body: Arc::new(moved.body),
                    cond_consts: *cond_consts,
                    body_consts: body_consts + added,
                };
                let before = shifted(&moved.before, g, node, *cond_consts);
                Some(Better { kind, before, at: cond_consts + body_consts, results: same, types })
            }
            Kind::Scan { body, length, reverse, consts, carry } => {
                let moved = Moved::of(body, *consts, *carry);
                let needed = |k: usize| read[node.first.0 as usize + k];
                let trimmed = trim(body, *consts, *carry, needed);
                if moved.is_none() && trimmed.is_none() {
                    return None;
                }
                let (mut body, before) = match moved {
                    Some(moved) => (moved.body, moved.before),
                    None => ((**body).clone(), Graph { params: body.params, ..Graph::default() }),
                };
                let (results, kept) = trimmed.unwrap_or_else(|| (same, (0..types.len()).collect()));
                body.outputs = kept.iter().map(|&k| body.outputs[k]).collect();
                let added = before.outputs.len();
                let kind = Kind::Scan {
                    body: Arc::new(body),
                    length: *length,
                    reverse: *reverse,
                    consts: consts + added,
                    carry: *carry,
                };
                let before = shifted(&before, g, node, 0);
                let types = kept.iter().map(|&k| types[k].clone()).collect();
                Some(Better { kind, before, at: *consts, results, types })
            }
            _ => None,
        }
    }
}

/// A graph over a body's constants and carried values as one over the operands of its loop, of which they follow
/// the first `skip`.
fn shifted(before: &Graph, g: &Graph, node: &Node, skip: usize) -> Graph {
    let mut b = Builder::new(node.inputs.iter().map(|&v| g.ty(v).clone()));
    if before.outputs.is_empty() {
        return b.finish(&[]);
    }
    let args: Vec<ValueId> = b.params().skip(skip).take(before.params).collect();
    let outs = b.inline(before, &args);
    b.finish(&outs)
}

/// What the results of a scan become, and the numbers of those that are left; nothing if all are.
fn trim(
    body: &Graph,
    consts: usize,
    carry: usize,
    needed: impl Fn(usize) -> bool,
) -> Option<(Vec<Option<Became>>, Vec<usize>)> {
    let mut kept: Vec<usize> = (0..carry).collect();
    let mut results: Vec<Option<Became>> = kept.iter().map(|&k| Some(Became::Result(k))).collect();
    for k in carry..body.outputs.len() {
        let v = body.outputs[k];
        let twin = kept[carry..].iter().position(|&other| body.outputs[other] == v);
        results.push(match (needed(k), twin) {
            (false, _) => None,
            (_, Some(at)) => Some(Became::Result(carry + at)),
            _ if (consts + carry..body.params).contains(&(v.0 as usize)) => Some(Became::Operand(v.0 as usize)),
            _ => {
                kept.push(k);
                Some(Became::Result(kept.len() - 1))
            }
        });
    }
    (kept.len() < body.outputs.len()).then_some((results, kept))
}

/// A body in two parts.
struct Moved {
    /// Over the body's parameters up to the carried ones, of which it reads those that do not change.
    before: Graph,
    body: Graph,
}

impl Moved {
    fn of(body: &Graph, consts: usize, carry: usize) -> Option<Moved> {
        let stays = |p: usize| p < consts || (p < consts + carry && body.outputs[p - consts] == ValueId(p as u32));
        let mut fixed: Vec<bool> = (0..body.params).map(stays).collect();
        // Of each node, since one that is run to be seen may have no results.
        let mut same = Vec::with_capacity(body.nodes.len());
        for node in &body.nodes {
            let all = !node.kind.calls_host() && node.inputs.iter().all(|v| fixed[v.0 as usize]);
            fixed.extend(node.outputs().map(|_| all));
            same.push(all);
        }
        let live = live_nodes(body);
        let mut goes: Vec<bool> =
            body.nodes.iter().zip(live).zip(same).map(|((n, live), same)| live && same && n.kind.is_costly()).collect();
        if !goes.contains(&true) {
            return None;
        }
        // What those read goes with them.
        let mut wanted = vec![false; body.types.len()];
        for (i, node) in body.nodes.iter().enumerate().rev() {
            goes[i] |= node.outputs().any(|v| wanted[v.0 as usize]);
            if goes[i] {
                node.inputs.iter().for_each(|v| wanted[v.0 as usize] = true);
            }
        }
        Some(Moved::split(body, consts, carry, &goes))
    }

    fn split(body: &Graph, consts: usize, carry: usize, goes: &[bool]) -> Moved {
        let moved = || body.nodes.iter().zip(goes).filter(|(_, goes)| **goes).map(|(n, _)| n);
        let params = consts + carry;
        let mut b = Builder::new(body.types[..params].iter().cloned());
        let mut map = vec![NOTHING; body.types.len()];
        (0..params).for_each(|p| map[p] = ValueId(p as u32));
        moved().for_each(|n| append(&mut b, body, n, &mut map));
        // What is cheap to make again stays, beside what is read from before.
        let is_free = |n: &Node| matches!(n.kind, Kind::Const(_) | Kind::Iota(_) | Kind::Broadcast(_) | Kind::Reshape);
        let mut read = vec![false; body.types.len()];
        body.outputs.iter().for_each(|v| read[v.0 as usize] = true);
        let mut stays: Vec<bool> = goes.iter().map(|goes| !goes).collect();
        for (i, node) in body.nodes.iter().enumerate().rev() {
            stays[i] |= is_free(node) && node.outputs().any(|v| read[v.0 as usize]);
            if stays[i] {
                node.inputs.iter().for_each(|v| read[v.0 as usize] = true);
            }
        }
        let made = moved().filter(|n| !is_free(n)).flat_map(Node::outputs).filter(|v| read[v.0 as usize]);
        let made: Vec<ValueId> = made.collect();
        let outputs: Vec<ValueId> = made.iter().map(|v| map[v.0 as usize]).collect();
        let before = b.finish(&outputs);
        let types = body.types[..consts].iter().chain(made.iter().map(|v| body.ty(*v)));
        let mut b = Builder::new(types.chain(&body.types[consts..body.params]).cloned());
        let all: Vec<ValueId> = b.params().collect();
        let mut map = vec![NOTHING; body.types.len()];
        map[..consts].copy_from_slice(&all[..consts]);
        map[consts..body.params].copy_from_slice(&all[consts + made.len()..]);
        made.iter().zip(&all[consts..]).for_each(|(v, &now)| map[v.0 as usize] = now);
        for (node, _) in body.nodes.iter().zip(&stays).filter(|(_, stays)| **stays) {
            append(&mut b, body, node, &mut map);
        }
        let outputs: Vec<ValueId> = body.outputs.iter().map(|v| map[v.0 as usize]).collect();
        Moved { before, body: b.finish(&outputs) }
    }
}
