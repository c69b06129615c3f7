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
/// Nodes on parts that come from joins which are computed with, at most.
const NODES: usize = 512;

type Values = SmallVec<[ValueId; MOST]>;

/// Where a value is cut: an axis, and the part that one element of a partition is of it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cut {
    axis: usize,
    count: usize,
    /// The join that it comes from, or another that is cut with it.
    join: u32,
}

/// The graph with elementwise nodes on parts; itself where nothing is joined and computed with.
pub fn on_parts(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.nodes.iter().any(|node| joined(g, node).is_some()) {
        return graph;
    }
    let live = live_nodes(g);
    let cuts = cuts(g, &live);
    if cuts.iter().all(Option::is_none) {
        return graph;
    }
    let mut b = Builder::new(g.types[..g.params].iter().cloned());
    let map = b.params().chain((g.params..g.types.len()).map(|_| NOTHING)).collect();
    let mut rewrite = Rewrite { g, cuts, b: &mut b, map, parts: HashMap::new() };
    for (node, live) in g.nodes.iter().zip(live) {
        if live {
            rewrite.node(node);
        }
    }
    let outputs: Vec<ValueId> = g.outputs.iter().map(|&v| rewrite.whole(v)).collect();
    Arc::new(b.finish(&outputs))
}

/// The axis along which a node joins a few arrays of one size, each without holes in the result.
fn joined(g: &Graph, node: &Node) -> Option<usize> {
    let Kind::Concat(axis) = node.kind else { return None };
    let first = g.ty(node.inputs[0]);
    let fits = (2..=MOST).contains(&node.inputs.len())
        && first.size() >= LEAST
        && first.shape[..axis].iter().all(|&n| n == 1)
        && node.inputs.iter().all(|&v| g.ty(v) == first);
    fits.then_some(axis)
}

/// Where values are cut.
fn cuts(g: &Graph, live: &[bool]) -> Vec<Option<Cut>> {
    let mut cuts: Vec<Option<Cut>> = vec![None; g.types.len()];
    let mut same: Vec<u32> = (0..g.types.len() as u32).collect();
    let mut changed = true;
    let computed = |node: &&Node| node.kind.is_elementwise();
    let living = || g.nodes.iter().zip(live).filter(|(_, live)| **live).map(|(node, _)| node);
    for node in living() {
        if let Some(axis) = joined(g, node) {
            cuts[node.first.0 as usize] = Some(Cut { axis, count: node.inputs.len(), join: node.first.0 });
        }
    }
    while changed {
        changed = false;
        for node in living().filter(computed) {
            let whole = |v: &ValueId| g.ty(*v).shape == g.ty(node.first).shape;
            let Some(cut) = node.inputs.iter().filter(|v| whole(v)).find_map(|v| cuts[v.0 as usize]) else { continue };
            changed |= spread(&mut cuts, &mut same, node.first, cut);
        }
        for node in living().filter(computed).collect::<SmallVec<[_; 64]>>().into_iter().rev() {
            let Some(cut) = cuts[node.first.0 as usize] else { continue };
            for &v in node.inputs.iter().filter(|&&v| g.ty(v).shape == g.ty(node.first).shape) {
                let made = g.maker(v).is_some_and(|m| computed(&m) || joined(g, m).is_some());
                changed |= made && spread(&mut cuts, &mut same, v, cut);
            }
        }
    }
    // The nodes on parts that each set of joins makes.
    let mut work = vec![0; g.types.len()];
    for node in living().filter(computed) {
        if let Some(cut) = cuts[node.first.0 as usize] {
            work[root(&same, cut.join) as usize] += cut.count;
        }
    }
    for cut in &mut cuts {
        *cut = cut.filter(|cut| (1..=NODES).contains(&work[root(&same, cut.join) as usize]));
    }
    cuts
}

/// Cuts a value as another is; whether it was whole. Where both are, what is cut with them is one set.
fn spread(cuts: &mut [Option<Cut>], same: &mut [u32], v: ValueId, cut: Cut) -> bool {
    match cuts[v.0 as usize] {
        None => {
            cuts[v.0 as usize] = Some(cut);
            true
        }
        Some(own) => {
            let (a, b) = (root(same, own.join), root(same, cut.join));
            same[a.max(b) as usize] = a.min(b);
            false
        }
    }
}

/// The join that stands for all that are cut with one.
fn root(same: &[u32], join: u32) -> u32 {
    let mut at = join;
    while same[at as usize] != at {
        at = same[at as usize];
    }
    at
}

/// The graph being built. Of a value that is cut there are the parts, and all of it once somebody reads that.
struct Rewrite<'g> {
    g: &'g Graph,
    cuts: Vec<Option<Cut>>,
    b: &'g mut Builder,
    map: Vec<ValueId>,
    parts: HashMap<(ValueId, usize), Values>,
}

impl Rewrite<'_> {
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
    fn keep(&mut self, node: &Node) {
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
            let size = of.shape[cut.axis];
            let (start, limit) = (dims.start[cut.axis], dims.limit[cut.axis]);
            if start < limit && start / size == (limit - 1) / size {
                let part = self.parts_of(x, cut)[start / size];
                let mut dims = dims.clone();
                dims.start[cut.axis] = start % size;
                dims.limit[cut.axis] = limit - start / size * size;
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
    fn whole(&mut self, v: ValueId) -> ValueId {
        let at = v.0 as usize;
        if let (NOTHING, Some(cut)) = (self.map[at], self.cuts[at]) {
            let parts = &self.parts[&(v, cut.count)];
            self.map[at] = self.b.push(Kind::Concat(cut.axis), parts, self.g.ty(v).clone());
        }
        self.map[at]
    }

    /// The parts of an operand: those it was made of, or what is taken of it. A number stands for all elements.
    fn parts_of(&mut self, v: ValueId, cut: Cut) -> Values {
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

/// The type of a part.
fn part_type(ty: &Type, cut: Cut) -> Type {
    let mut part = ty.clone();
    part.shape[cut.axis] /= cut.count;
    part
}
