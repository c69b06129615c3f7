//! Rolls of one array, read from one copy of it.
//!
//! A step of a simulation reads each cell's neighbours as `roll(x, 1) + roll(x, -1)`: joins of two slices, each of which would be
//! copied. Instead the array is joined once with the few elements that lie beyond its ends, and each roll, also one of a roll,
//! is a slice of that, which kernels read where it lies. Read next: `view.rs`.

use super::{live_nodes, rewritten};
use crate::kind::SliceDims;
use crate::{Builder, Graph, Kind, Node, Type, ValueId};
use ferrax_base::Shape;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Elements of an array, at least: rolls of smaller ones are copied.
const LEAST: usize = 256;
/// What is joined to an array along an axis is this part of it, at most.
const PART: usize = 8;

/// An array, and how far before its own the elements along its axes are that a roll of it has: those at `i + by`.
#[derive(Clone)]
struct Roll {
    of: ValueId,
    by: SmallVec<[i64; 4]>,
}

/// What is joined to an array: elements before its first ones and behind its last ones, along each axis.
type Ends = SmallVec<[(usize, usize); 4]>;

/// The graph with slices in place of rolls, where an array has several; itself where none has.
pub fn rolls(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.nodes.iter().any(|node| turned(g, node).is_some()) {
        return graph;
    }
    let live = live_nodes(g);
    let mut found: HashMap<ValueId, Roll> = HashMap::new();
    for (node, _) in g.nodes.iter().zip(&live).filter(|n| *n.1) {
        let Some((x, axis, by)) = turned(g, node) else { continue };
        let start = || Roll { of: x, by: SmallVec::from_elem(0, g.ty(x).shape.len()) };
        let mut roll = found.get(&x).cloned().unwrap_or_else(start);
        roll.by[axis] += by;
        let few = |(&by, &n): (&i64, &usize)| by.unsigned_abs() as usize <= n / PART;
        if roll.by.iter().zip(&g.ty(x).shape).all(few) {
            found.insert(node.first, roll);
        }
    }
    let ends = ends(g, &live, &mut found);
    if ends.is_empty() {
        return graph;
    }
    let mut joined: HashMap<ValueId, ValueId> = HashMap::new();
    rewritten(g, &live, |_, node, b, map| {
        let Some(roll) = found.get(&node.first) else { return false };
        let ends = &ends[&roll.of];
        let x = map[roll.of.0 as usize];
        let all = *joined.entry(roll.of).or_insert_with(|| with_ends(b, x, ends));
        let start: Shape = roll.by.iter().zip(ends).map(|(by, end)| (end.0 as i64 + by) as usize).collect();
        map.push(slice(b, all, &start, &g.ty(roll.of).shape));
        true
    })
}

/// The rolls that are read by what is no roll, whose arrays have several: what is joined to these.
fn ends(g: &Graph, live: &[bool], found: &mut HashMap<ValueId, Roll>) -> HashMap<ValueId, Ends> {
    let mut computed = vec![false; g.types.len()];
    for (node, _) in g.nodes.iter().zip(live).filter(|n| *n.1 && n.0.kind.is_elementwise()) {
        node.inputs.iter().for_each(|v| computed[v.0 as usize] = true);
    }
    let mut counts: HashMap<ValueId, usize> = HashMap::new();
    found.iter().filter(|(v, _)| computed[v.0 as usize]).for_each(|(_, r)| *counts.entry(r.of).or_default() += 1);
    found.retain(|_, roll| counts.get(&roll.of).is_some_and(|&n| n > 1) && g.ty(roll.of).size() >= LEAST);
    let mut ends: HashMap<ValueId, Ends> = HashMap::new();
    for roll in found.values() {
        let ends = ends.entry(roll.of).or_insert_with(|| SmallVec::from_elem((0, 0), roll.by.len()));
        for (end, &by) in ends.iter_mut().zip(&roll.by) {
            *end = (end.0.max((-by).max(0) as usize), end.1.max(by.max(0) as usize));
        }
    }
    ends
}

/// The array whose roll a node is, along which axis, and how far before its own an element lies: a join of what is from some
/// index on and what is before that.
fn turned(g: &Graph, node: &Node) -> Option<(ValueId, usize, i64)> {
    let Kind::Concat(axis) = node.kind else { return None };
    let [last, first] = *node.inputs.as_slice() else { return None };
    let (x, from, end) = part(g, last, axis)?;
    let (of, start, until) = part(g, first, axis)?;
    let n = g.ty(x).shape[axis];
    let turns = x == of && end == n && start == 0 && until == from;
    turns.then(|| (x, axis, if from <= n / 2 { from as i64 } else { from as i64 - n as i64 }))
}

/// The array of which a value is what lies between two indices along an axis.
fn part(g: &Graph, v: ValueId, axis: usize) -> Option<(ValueId, usize, usize)> {
    let node = g.maker(v)?;
    let Kind::Slice(dims) = &node.kind else { return None };
    let of = &g.ty(node.inputs[0]).shape;
    let whole = |k: usize| k == axis || (dims.start[k] == 0 && dims.limit[k] == of[k]);
    let plain = dims.stride.iter().all(|&s| s == 1) && (0..of.len()).all(whole);
    plain.then(|| (node.inputs[0], dims.start[axis], dims.limit[axis]))
}

/// An array with what lies beyond its ends, were it repeated.
fn with_ends(b: &mut Builder, x: ValueId, ends: &[(usize, usize)]) -> ValueId {
    let mut all = x;
    for (axis, &(before, behind)) in ends.iter().enumerate().filter(|(_, e)| **e != (0, 0)) {
        let ty = b.ty(all).clone();
        let n = ty.shape[axis];
        let mut parts: SmallVec<[ValueId; 3]> = SmallVec::new();
        for (from, end) in [(n - before, n), (0, n), (0, behind)] {
            let (mut start, mut shape) = (Shape::from_elem(0, ty.shape.len()), ty.shape.clone());
            (start[axis], shape[axis]) = (from, end - from);
            match end - from {
                0 => {}
                whole if whole == n => parts.push(all),
                _ => parts.push(slice(b, all, &start, &shape)),
            }
        }
        let mut ty = ty;
        ty.shape[axis] += before + behind;
        all = b.push(Kind::Concat(axis), &parts, ty);
    }
    all
}

/// What lies from an index on.
fn slice(b: &mut Builder, x: ValueId, start: &[usize], shape: &[usize]) -> ValueId {
    let limit = start.iter().zip(shape).map(|(s, n)| s + n).collect();
    let dims = SliceDims { start: Shape::from_slice(start), limit, stride: Shape::from_elem(1, shape.len()) };
    let ty = Type::new(b.ty(x).dtype, shape);
    b.push(Kind::Slice(Box::new(dims)), &[x], ty)
}
