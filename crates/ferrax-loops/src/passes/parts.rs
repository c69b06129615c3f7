//! Arithmetic on joined arrays, done on what was joined.
//!
//! A state of three rows, `stack([f(x, y), g(x, y, z), h(x, z)])`, is multiplied, added to others and taken apart again.
//! Kernels that work on whole arrays would write each such state and read it back; on its parts, one kernel computes a
//! whole step, and what is needed whole is put together where its parts are made. A join of a few arrays of equal size
//! is followed through elementwise nodes, to their results and to what else they read. Nodes compute the same from the
//! same elements: no bit of a result changes. Read next: `pieces.rs`, for results that are put together.

use super::{NOTHING, live_nodes};
use crate::kind::SliceDims;
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use ferrax_base::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Arrays that are joined, at most.
const MOST: usize = 8;
/// Elements of a part, at least: smaller ones are copied, not read where they are.
const LEAST: usize = 129;
/// Nodes on parts that one set of joins makes, at most.
pub(super) const NODES: usize = 512;

pub(super) type Values = SmallVec<[ValueId; MOST]>;

/// Where a value is cut: in `count` parts of one size along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    pub axis: usize,
    pub count: usize,
    /// A value of the set that is cut together.
    pub join: u32,
}

/// The graph with elementwise nodes on parts; itself where nothing is joined and computed with.
pub fn on_parts(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let joins = |node: &Node| joined(g, node).is_some_and(|axis| lies_whole(g, node, axis));
    if !g.nodes.iter().any(joins) {
        return graph;
    }
    let live = live_nodes(g);
    let mut cuts = Cuts::of(g, &live, &[], joins);
    let work = cuts.work(g, &live);
    cuts.keep(|set| (1..=NODES).contains(&work[set as usize]));
    if cuts.of.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &cuts.of, |rewrite| rewrite.nodes(&live))
}

/// A graph of the same parameters and results, whose nodes somebody writes; what is cut has parts.
pub(super) fn rewritten(g: &Graph, cuts: &[Option<Cut>], write: impl FnOnce(&mut Rewrite<'_>)) -> Arc<Graph> {
    let mut b = Builder::new(g.types[..g.params].iter().cloned());
    let map = b.params().chain((g.params..g.types.len()).map(|_| NOTHING)).collect();
    let mut rewrite = Rewrite { g, cuts, b: &mut b, map, parts: HashMap::new() };
    write(&mut rewrite);
    let outputs: Vec<ValueId> = g.outputs.iter().map(|&v| rewrite.whole(v)).collect();
    Arc::new(b.finish(&outputs))
}

/// The axis along which a node joins a few arrays of one size.
pub(super) fn joined(g: &Graph, node: &Node) -> Option<usize> {
    let Kind::Concat(axis) = node.kind else { return None };
    let first = g.ty(node.inputs[0]);
    let fits = (2..=MOST).contains(&node.inputs.len()) && node.inputs.iter().all(|&v| g.ty(v) == first);
    fits.then_some(axis)
}

/// Whether each of the arrays that a node joins lies in the result without holes, and is worth reading there.
fn lies_whole(g: &Graph, node: &Node, axis: usize) -> bool {
    let first = g.ty(node.inputs[0]);
    first.size() >= LEAST && first.shape[..axis].iter().all(|&n| n == 1)
}

/// Where values are cut, and which of them together.
pub(super) struct Cuts {
    pub of: Vec<Option<Cut>>,
    same: Vec<u32>,
}

impl Cuts {
    /// Cuts what these nodes join, what parameters say of themselves, and what is computed with them.
    pub fn of(g: &Graph, live: &[bool], params: &[Option<Cut>], joins: impl Fn(&Node) -> bool) -> Cuts {
        let mut cuts = Cuts { of: vec![None; g.types.len()], same: (0..g.types.len() as u32).collect() };
        cuts.of[..params.len()].copy_from_slice(params);
        let living = || g.nodes.iter().zip(live).filter(|(_, live)| **live).map(|(node, _)| node);
        for node in living().filter(|n| joins(n)) {
            if let Some(axis) = joined(g, node) {
                cuts.of[node.first.0 as usize] = Some(Cut { axis, count: node.inputs.len(), join: node.first.0 });
            }
        }
        let computed: Vec<&Node> = living().filter(|n| n.kind.is_elementwise()).collect();
        let mut changed = true;
        while changed {
            changed = false;
            let whole = |node: &Node, v: &&ValueId| g.ty(**v).shape == g.ty(node.first).shape;
            for node in &computed {
                let found = node.inputs.iter().filter(|v| whole(node, v)).find_map(|v| cuts.of[v.0 as usize]);
                changed |= found.is_some_and(|cut| cuts.spread(node.first, cut));
            }
            for node in computed.iter().rev() {
                let Some(cut) = cuts.of[node.first.0 as usize] else { continue };
                for &v in node.inputs.iter().filter(|v| whole(node, v)) {
                    let made = g.maker(v).is_some_and(|m| m.kind.is_elementwise()) || cuts.of[v.0 as usize].is_some();
                    changed |= made && cuts.spread(v, cut);
                }
            }
        }
        cuts
    }

    /// Cuts a value as another is; whether it was whole. Where both are cut, what is cut with them is one set.
    fn spread(&mut self, v: ValueId, cut: Cut) -> bool {
        let Some(own) = self.of[v.0 as usize] else {
            self.of[v.0 as usize] = Some(cut);
            return true;
        };
        let (a, b) = (self.set(own), self.set(cut));
        self.same[a.max(b) as usize] = a.min(b);
        false
    }

    /// The value that stands for all that are cut with one.
    pub fn set(&self, cut: Cut) -> u32 {
        let mut at = cut.join;
        while self.same[at as usize] != at {
            at = self.same[at as usize];
        }
        at
    }

    /// For each set, the nodes that it makes.
    pub fn work(&self, g: &Graph, live: &[bool]) -> Vec<usize> {
        let mut work = vec![0; g.types.len()];
        for (node, _) in g.nodes.iter().zip(live).filter(|(node, live)| **live && node.kind.is_elementwise()) {
            if let Some(cut) = self.of[node.first.0 as usize] {
                work[self.set(cut) as usize] += cut.count;
            }
        }
        work
    }

    /// Keeps some sets.
    pub fn keep(&mut self, wanted: impl Fn(u32) -> bool) {
        for k in 0..self.of.len() {
            self.of[k] = self.of[k].filter(|&cut| wanted(self.set(cut)));
        }
    }
}

/// The graph being built. Of a value that is cut there are the parts, and all of it once somebody reads that.
pub(super) struct Rewrite<'g> {
    pub g: &'g Graph,
    pub cuts: &'g [Option<Cut>],
    pub b: &'g mut Builder,
    pub map: Vec<ValueId>,
    pub parts: HashMap<(ValueId, usize), Values>,
}

impl Rewrite<'_> {
    /// Writes the live nodes.
    pub fn nodes(&mut self, live: &[bool]) {
        let g = self.g;
        g.nodes.iter().zip(live).filter(|(_, live)| **live).for_each(|(node, _)| self.node(node));
    }

    fn node(&mut self, node: &Node) {
        let g = self.g;
        let cut = (node.results == 1).then(|| self.cuts[node.first.0 as usize]).flatten();
        match (&node.kind, cut) {
            (Kind::Concat(_), Some(cut)) => {
                let parts = node.inputs.iter().map(|&v| self.whole(v)).collect();
                self.parts.insert((node.first, cut.count), parts);
            }
            (_, Some(cut)) => {
                let operands: SmallVec<[Values; 3]> = node.inputs.iter().map(|&v| self.parts_of(v, cut)).collect();
                let ty = part_type(g.ty(node.first), cut);
                let mut parts = Values::new();
                for i in 0..cut.count {
                    let inputs: SmallVec<[ValueId; 3]> = operands.iter().map(|o| o[i]).collect();
                    parts.push(self.b.push(node.kind.clone(), &inputs, ty.clone()));
                }
                self.parts.insert((node.first, cut.count), parts);
            }
            (Kind::Slice(dims), None) => {
                let v = self.slice(node, dims);
                self.map[node.first.0 as usize] = v;
            }
            _ => self.keep(node),
        }
    }

    /// A node that reads and makes whole values.
    pub fn keep(&mut self, node: &Node) {
        let inputs: SmallVec<[ValueId; 8]> = node.inputs.iter().map(|&v| self.whole(v)).collect();
        let types: SmallVec<[Type; 4]> = node.outputs().map(|v| self.g.ty(v).clone()).collect();
        let first = node.first.0 as usize;
        for (k, v) in self.b.push_many(node.kind.clone(), &inputs, &types).into_iter().enumerate() {
            self.map[first + k] = v;
        }
    }

    /// What is taken of a value: of a part of it, where that has it all.
    fn slice(&mut self, node: &Node, dims: &SliceDims) -> ValueId {
        let (x, ty) = (node.inputs[0], self.g.ty(node.first));
        if let Some(cut) = self.cuts[x.0 as usize] {
            let of = part_type(self.g.ty(x), cut);
            if let Some(at) = taken_from(dims, cut, &of) {
                let part = self.parts_of(x, cut)[at];
                let mut dims = dims.clone();
                dims.start[cut.axis] -= at * of.shape[cut.axis];
                dims.limit[cut.axis] -= at * of.shape[cut.axis];
                if of == *ty {
                    return part;
                }
                return self.b.push(Kind::Slice(Box::new(dims)), &[part], ty.clone());
            }
        }
        let x = self.whole(x);
        self.b.push(node.kind.clone(), &[x], ty.clone())
    }

    /// All of a value, put together of its parts where it is read.
    pub fn whole(&mut self, v: ValueId) -> ValueId {
        let at = v.0 as usize;
        if let (NOTHING, Some(cut)) = (self.map[at], self.cuts[at]) {
            let parts = &self.parts[&(v, cut.count)];
            self.map[at] = self.b.push(Kind::Concat(cut.axis), parts, self.g.ty(v).clone());
        }
        self.map[at]
    }

    /// The parts of an operand: those it was made of, or what is taken of it. A number stands for all elements.
    pub fn parts_of(&mut self, v: ValueId, cut: Cut) -> Values {
        let ty = self.g.ty(v);
        if ty.shape.is_empty() {
            return SmallVec::from_elem(self.whole(v), cut.count);
        }
        if let Some(parts) = self.parts.get(&(v, cut.count)) {
            return parts.clone();
        }
        let part = part_type(ty, cut);
        let parts = match self.g.maker(v) {
            Some(Node { kind: Kind::Broadcast(axes), inputs, .. }) if !axes.contains(&cut.axis) => {
                let x = self.whole(inputs[0]);
                SmallVec::from_elem(self.b.push(Kind::Broadcast(axes.clone()), &[x], part), cut.count)
            }
            _ => {
                let x = self.whole(v);
                let size = part.shape[cut.axis];
                let taken = |i: usize| {
                    let mut dims = SliceDims {
                        start: Shape::from_elem(0, ty.shape.len()),
                        limit: ty.shape.clone(),
                        stride: Shape::from_elem(1, ty.shape.len()),
                    };
                    (dims.start[cut.axis], dims.limit[cut.axis]) = (i * size, (i + 1) * size);
                    Kind::Slice(Box::new(dims))
                };
                (0..cut.count).map(|i| self.b.push(taken(i), &[x], part.clone())).collect()
            }
        };
        self.parts.insert((v, cut.count), Values::clone(&parts));
        parts
    }
}

/// The part that has all of what is taken of a value; `None` where several have some.
pub(super) fn taken_from(dims: &SliceDims, cut: Cut, part: &Type) -> Option<usize> {
    let (size, start, limit) = (part.shape[cut.axis], dims.start[cut.axis], dims.limit[cut.axis]);
    (start < limit && start / size == (limit - 1) / size).then_some(start / size)
}

/// The type of a part.
pub(super) fn part_type(ty: &Type, cut: Cut) -> Type {
    let mut part = ty.clone();
    part.shape[cut.axis] /= cut.count;
    part
}
