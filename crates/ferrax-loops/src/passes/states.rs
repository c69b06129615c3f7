//! States that loops carry as one array, carried as the arrays that each turn joins them of.
//!
//! A turn that takes the columns of a state apart, computes with them and stacks the results would write and read memory
//! in steps; where the columns are carried, every kernel reads and writes whole rows. A state is taken apart where a turn
//! reads parts of it alone, or computes with it element by element; once before the loop, and joined once behind it.
//! Nodes compute the same from the same elements: no bit of a result changes. Read next: `parts.rs`.

use super::parts::{Cut, Cuts, NODES, Rewrite, joined, part_type, rewritten, taken_from};
use super::{NOTHING, live_nodes};
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Elements of a part, at least: registers hold smaller states.
const LEAST: usize = 32;

/// The graph with loops whose states are taken apart; itself where there are none.
pub fn split_states(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let split: Vec<Option<Split>> = g.nodes.iter().map(|node| Split::of(g, node)).collect();
    if split.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &vec![None; g.types.len()], |rewrite| {
        for (node, split) in g.nodes.iter().zip(split) {
            match split {
                Some(split) => split.push(rewrite, node),
                None => rewrite.keep(node),
            }
        }
    })
}

/// A loop that is to be.
struct Split {
    kind: Kind,
    /// Operands before the carried ones.
    before: usize,
    /// Where each carried value is cut.
    states: Vec<Option<Cut>>,
}

impl Split {
    fn of(g: &Graph, node: &Node) -> Option<Split> {
        let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
        match &node.kind {
            Kind::Scan { body, length, reverse, consts, carry } => {
                let (states, cuts) = states(body, *consts, &types[..*carry], None)?;
                let body = Arc::new(apart(body, *consts, &states, &cuts.of, true));
                let carry = *carry + added(&states);
                let kind = Kind::Scan { body, length: *length, reverse: *reverse, consts: *consts, carry };
                Some(Split { kind, before: *consts, states })
            }
            Kind::While { cond, body, cond_consts, body_consts } => {
                let (states, cuts) = states(body, *body_consts, &types, Some((cond, *cond_consts)))?;
                let body = Arc::new(apart(body, *body_consts, &states, &cuts.of, true));
                let own: Vec<Option<Cut>> = over(cond, *cond_consts, &states);
                let cond = Arc::new(apart(cond, *cond_consts, &states, &own, false));
                let kind = Kind::While { cond, body, cond_consts: *cond_consts, body_consts: *body_consts };
                Some(Split { kind, before: cond_consts + body_consts, states })
            }
            _ => None,
        }
    }

    fn push(self, rewrite: &mut Rewrite<'_>, node: &Node) {
        let cut = |k: usize| self.states.get(k).copied().flatten();
        let mut inputs: SmallVec<[ValueId; 8]> = SmallVec::new();
        for (k, &v) in node.inputs.iter().enumerate() {
            match k.checked_sub(self.before).and_then(cut) {
                Some(cut) => inputs.extend(rewrite.parts_of(v, cut)),
                None => inputs.push(rewrite.whole(v)),
            }
        }
        let mut types: SmallVec<[Type; 8]> = SmallVec::new();
        for (k, v) in node.outputs().enumerate() {
            let ty = rewrite.g.ty(v);
            match cut(k) {
                Some(cut) => types.extend((0..cut.count).map(|_| part_type(ty, cut))),
                None => types.push(ty.clone()),
            }
        }
        let results = rewrite.b.push_many(self.kind, &inputs, &types);
        let mut at = 0;
        for (k, v) in node.outputs().enumerate() {
            let parts = cut(k).map_or(1, |cut| cut.count);
            rewrite.map[v.0 as usize] = match cut(k) {
                Some(cut) => rewrite.b.push(Kind::Concat(cut.axis), &results[at..at + parts], rewrite.g.ty(v).clone()),
                None => results[at],
            };
            at += parts;
        }
    }
}

/// How many more values are carried.
fn added(states: &[Option<Cut>]) -> usize {
    states.iter().flatten().map(|cut| cut.count - 1).sum()
}

/// What is known of a graph's values where carried ones, behind so many constants, are cut.
fn over(g: &Graph, consts: usize, states: &[Option<Cut>]) -> Vec<Option<Cut>> {
    let mut all = vec![None; g.types.len()];
    all[consts..consts + states.len()].copy_from_slice(states);
    all
}

/// Where a body's carried values are cut, and all others with them; `None` if none is.
fn states(
    body: &Graph,
    consts: usize,
    types: &[Type],
    cond: Option<(&Graph, usize)>,
) -> Option<(Vec<Option<Cut>>, Cuts)> {
    let joins = |node: &Node| joined(body, node).is_some() && body.ty(node.inputs[0]).size() >= LEAST;
    if !body.nodes.iter().any(joins) {
        return None;
    }
    let live = live_nodes(body);
    let first = Cuts::of(body, &live, &[], joins);
    let made = |k: usize| {
        let cut = first.of[body.outputs[k].0 as usize]?;
        Some(Cut { join: (consts + k) as u32, ..cut })
    };
    let mut states: Vec<Option<Cut>> = (0..types.len()).map(made).collect();
    // What is cut with a state that is read whole stays as it is, and so may be others once that is known.
    while states.iter().any(Option::is_some) {
        let mut cuts = Cuts::of(body, &live, &over(body, consts, &states)[..body.params], joins);
        let (whole, work) = (read_whole(body, &live, &cuts), cuts.work(body, &live));
        let cond = cond.map(|(g, consts)| (g, consts, over(g, consts, &states)));
        let in_cond = |k: usize| {
            cond.as_ref().is_some_and(|(g, consts, cuts)| {
                let v = ValueId((consts + k) as u32);
                let reads = |node: &Node| node.inputs.contains(&v) && !takes_part(g, node, cuts);
                g.outputs.contains(&v) || g.nodes.iter().any(reads)
            })
        };
        let stays = |k: usize, cut: Cut| {
            let out = cuts.of[body.outputs[k].0 as usize];
            let fits = |set: u32| !whole.contains(&set) && work[set as usize] <= NODES;
            let same = out.is_some_and(|o| o.axis == cut.axis && o.count == cut.count && fits(cuts.set(o)));
            same && fits(cuts.set(cut)) && !in_cond(k)
        };
        let kept: Vec<Option<Cut>> = states.iter().enumerate().map(|(k, c)| c.filter(|&cut| stays(k, cut))).collect();
        if kept == states {
            // A turn may read a state in parts alone, and join the next one of others.
            let outs = body.outputs.iter().zip(&states).filter(|(_, s)| s.is_some());
            let cut = outs.filter_map(|(v, _)| cuts.of[v.0 as usize]).chain(states.iter().flatten().copied());
            let sets: HashSet<u32> = cut.map(|cut| cuts.set(cut)).collect();
            cuts.keep(|set| sets.contains(&set));
            return Some((states, cuts));
        }
        states = kept;
    }
    None
}

/// Whether a node takes what it reads of a cut value from one part.
fn takes_part(g: &Graph, node: &Node, cuts: &[Option<Cut>]) -> bool {
    let Kind::Slice(dims) = &node.kind else { return false };
    let x = node.inputs[0];
    cuts[x.0 as usize].is_some_and(|cut| taken_from(dims, cut, &part_type(g.ty(x), cut)).is_some())
}

/// The sets of which some node reads a value whole.
fn read_whole(g: &Graph, live: &[bool], cuts: &Cuts) -> HashSet<u32> {
    let mut sets = HashSet::new();
    for (node, _) in g.nodes.iter().zip(live).filter(|(_, live)| **live) {
        let on_parts = node.results == 1 && node.kind.is_elementwise() && cuts.of[node.first.0 as usize].is_some();
        if !on_parts && !takes_part(g, node, &cuts.of) {
            sets.extend(node.inputs.iter().filter_map(|v| cuts.of[v.0 as usize]).map(|cut| cuts.set(cut)));
        }
    }
    sets
}

/// A graph that takes the parts of carried values, and gives them if it is a body.
fn apart(g: &Graph, consts: usize, states: &[Option<Cut>], cuts: &[Option<Cut>], gives: bool) -> Graph {
    let cut = |p: usize| p.checked_sub(consts).and_then(|k| states.get(k).copied().flatten());
    let mut types: Vec<Type> = Vec::new();
    let mut map = vec![NOTHING; g.types.len()];
    let mut parts = HashMap::new();
    for (p, ty) in g.param_types().iter().enumerate() {
        let first = types.len() as u32;
        match cut(p) {
            Some(cut) => {
                types.extend((0..cut.count).map(|_| part_type(ty, cut)));
                parts.insert((ValueId(p as u32), cut.count), (first..types.len() as u32).map(ValueId).collect());
            }
            None => {
                map[p] = ValueId(first);
                types.push(ty.clone());
            }
        }
    }
    let mut b = Builder::new(types);
    let mut rewrite = Rewrite { g, cuts, b: &mut b, map, parts };
    rewrite.nodes(&live_nodes(g));
    let mut outputs: Vec<ValueId> = Vec::new();
    for (k, &v) in g.outputs.iter().enumerate() {
        match states.get(k).copied().flatten().filter(|_| gives) {
            Some(cut) => outputs.extend(rewrite.parts_of(v, cut)),
            None => outputs.push(rewrite.whole(v)),
        }
    }
    b.finish(&outputs)
}
