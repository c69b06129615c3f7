//! Carried values of scans that nothing reads: the counters of loops that do not count.
//!
//! A carried value is needed where its result is, or where something that is needed reads it. The others leave the loop,
//! with the nodes that only they needed. No bit of what is left changes.

use super::{NOTHING, append, became, live_nodes, rewritten};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// The graph with scans that carry what is needed; itself where all do.
pub fn idle(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let live = live_nodes(g);
    let mut read = vec![false; g.types.len()];
    let reads = g.nodes.iter().zip(&live).filter(|(_, live)| **live).flat_map(|(n, _)| &n.inputs);
    reads.chain(&g.outputs).for_each(|v| read[v.0 as usize] = true);
    let kept: Vec<Option<Vec<bool>>> = g.nodes.iter().map(|node| kept(node, &read)).collect();
    if kept.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &live, |i, node, b, map| {
        let (Some(kept), Kind::Scan { body, length, reverse, consts, carry }) = (&kept[i], &node.kind) else {
            return false;
        };
        let of_carry = |k: usize| kept.get(k).copied().unwrap_or(true);
        let of_param = |p: usize| p < *consts || of_carry(p - consts);
        let (length, reverse, consts) = (*length, *reverse, *consts);
        let carry = (0..*carry).filter(|&k| of_carry(k)).count();
        let body = Arc::new(without(body, of_param, of_carry));
        let inputs = became(node, map);
        let inputs: SmallVec<[ValueId; 8]> =
            inputs.iter().enumerate().filter(|(p, _)| of_param(*p)).map(|(_, &v)| v).collect();
        let results = || node.outputs().enumerate().filter(|(k, _)| of_carry(*k)).map(|(_, v)| v);
        let types: SmallVec<[Type; 4]> = results().map(|v| g.ty(v).clone()).collect();
        let mut outs = b.push_many(Kind::Scan { body, length, reverse, consts, carry }, &inputs, &types).into_iter();
        map.extend((0..node.results as usize).map(|k| if of_carry(k) { outs.next() } else { None }.unwrap_or(NOTHING)));
        true
    })
}

/// Which carried values a scan needs; nothing if it needs all of them.
fn kept(node: &Node, read: &[bool]) -> Option<Vec<bool>> {
    let Kind::Scan { body, consts, carry, .. } = &node.kind else { return None };
    let mut kept: Vec<bool> = node.outputs().take(*carry).map(|v| read[v.0 as usize]).collect();
    loop {
        let mut needed = vec![false; body.types.len()];
        let outputs = body.outputs.iter().enumerate().filter(|(k, _)| kept.get(*k) != Some(&false));
        outputs.for_each(|(_, v)| needed[v.0 as usize] = true);
        for n in body.nodes.iter().rev() {
            if n.kind.calls_host() || n.outputs().any(|v| needed[v.0 as usize]) {
                n.inputs.iter().for_each(|v| needed[v.0 as usize] = true);
            }
        }
        let more = |k: &usize| !kept[*k] && needed[consts + k];
        match (0..*carry).find(more) {
            Some(k) => kept[k] = true,
            None => return kept.contains(&false).then_some(kept),
        }
    }
}

/// A body without some parameters and results.
fn without(body: &Graph, of_param: impl Fn(usize) -> bool, of_output: impl Fn(usize) -> bool) -> Graph {
    let outputs = body.outputs.iter().enumerate().filter(|(k, _)| of_output(*k)).map(|(_, &v)| v);
    let short = Graph { outputs: outputs.collect(), ..body.clone() };
    let params: Vec<usize> = (0..body.params).filter(|&p| of_param(p)).collect();
    let mut b = Builder::new(params.iter().map(|&p| body.types[p].clone()));
    let mut map = vec![NOTHING; body.types.len()];
    params.iter().zip(b.params()).for_each(|(&p, now)| map[p] = now);
    for (n, _) in body.nodes.iter().zip(live_nodes(&short)).filter(|(_, live)| *live) {
        append(&mut b, body, n, &mut map);
    }
    let outputs: Vec<ValueId> = short.outputs.iter().map(|v| map[v.0 as usize]).collect();
    b.finish(&outputs)
}
