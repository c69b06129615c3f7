//! Reductions over a last axis of two to four elements, computed of what those elements are made of.
//!
//! Distances between points in space are sums of three squares of differences. As rows of three they would be written,
//! and read again across vectors; as three arrays they are arithmetic of one kernel with all that follows. What the
//! reduced array is made of is followed through elementwise nodes to where it is spread from less, if nothing needs
//! whole what they make; single elements of its rows (`p[..., 1]`) are taken so, too. Elements are joined in the order in
//! which short rows are: no bit of a result changes. Read next: `parts.rs`, for arrays that are joined of parts.

use super::{live_nodes, rewritten};
use crate::kind::SliceDims;
use crate::{BinaryOp, Builder, Graph, Kind, Node, ReduceOp, Type, ValueId};
use ferrax_base::{DType, Scalar, Shape};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Elements of a row, at most.
const MOST: usize = 4;
/// Rows, at least.
const LEAST: usize = 32;
/// Nodes that a part is computed by, at most.
const NODES: usize = 32;

/// The graph with short reductions as arithmetic; itself where there are none.
pub fn few(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.nodes.iter().any(|node| short(g, node).is_some()) {
        return graph;
    }
    let live = live_nodes(g);
    let found = alone(g, &live);
    if found.iter().all(|found| !found) {
        return graph;
    }
    let mut made = HashMap::new();
    rewritten(g, &live, |i, node, b, map| {
        let Some(short) = short(g, node).filter(|_| found[i]) else { return false };
        let mut parts = Parts { g, map, made: &mut made };
        let x = match short {
            Short::Joined(op) => parts.joined(b, op, node.inputs[0]),
            Short::Taken(at) => parts.part(b, node.inputs[0], at),
        };
        map.push(b.reshape(x, &g.ty(node.first).shape));
        true
    })
}

/// What is made of short rows: their elements joined, or one of them.
enum Short {
    Joined(ReduceOp),
    Taken(usize),
}

/// What a node makes of many short rows of numbers that are summed as what they are.
fn short(g: &Graph, node: &Node) -> Option<Short> {
    let short = match &node.kind {
        Kind::Reduce { op: op @ (ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Max | ReduceOp::Min), .. } => {
            Short::Joined(*op)
        }
        Kind::Slice(dims) => Short::Taken(*dims.start.last()?),
        _ => return None,
    };
    let ty = g.ty(node.inputs[0]);
    let last = ty.shape.len().checked_sub(1)?;
    let along = match &node.kind {
        Kind::Reduce { axes, .. } => axes.as_slice() == [last],
        _ => g.ty(node.first).size() * ty.shape[last] == ty.size() && g.ty(node.first).shape[last] == 1,
    };
    let numbers = matches!(ty.dtype, DType::F32 | DType::F64 | DType::I32 | DType::I64 | DType::U32 | DType::U64);
    let few = (2..=MOST).contains(&ty.shape[last]) && g.ty(node.first).size() >= LEAST;
    (numbers && along && few).then_some(short)
}

/// Which nodes make something of rows of what is spread, where all that read what those are made of are such nodes.
fn alone(g: &Graph, live: &[bool]) -> Vec<bool> {
    let living = || g.nodes.iter().zip(live).enumerate().filter(|(_, (_, live))| **live).map(|(i, (n, _))| (i, n));
    let mut reads = vec![0u32; g.types.len()];
    living().flat_map(|(_, n)| &n.inputs).chain(&g.outputs).for_each(|v| reads[v.0 as usize] += 1);
    let mut cones: Vec<(usize, Vec<ValueId>)> = Vec::new();
    for (i, node) in living().filter(|(_, n)| short(g, n).is_some()) {
        let mut cone = Vec::new();
        if made_of(g, node.inputs[0], &mut cone) == Some(true) {
            cones.push((i, cone));
        }
    }
    loop {
        let mut inside = vec![0u32; g.types.len()];
        let mut seen = vec![false; g.types.len()];
        for (i, cone) in &cones {
            inside[g.nodes[*i].inputs[0].0 as usize] += 1;
            for v in cone.iter().filter(|v| !std::mem::replace(&mut seen[v.0 as usize], true)) {
                let inputs = g.maker(*v).map_or(&[][..], |n| &n.inputs);
                inputs.iter().for_each(|v| inside[v.0 as usize] += 1);
            }
        }
        let whole = |v: &ValueId| {
            let computed = g.maker(*v).is_some_and(|n| n.kind.is_elementwise());
            computed && inside[v.0 as usize] < reads[v.0 as usize]
        };
        let before = cones.len();
        cones.retain(|(_, cone)| !cone.iter().any(whole));
        if cones.len() == before {
            break;
        }
    }
    let mut found = vec![false; g.nodes.len()];
    cones.iter().for_each(|(i, _)| found[*i] = true);
    found
}

/// What a value is made of, down to what is spread or is not computed element by element; whether something is spread.
fn made_of(g: &Graph, v: ValueId, cone: &mut Vec<ValueId>) -> Option<bool> {
    let ty = g.ty(v);
    let Some(node) = g.maker(v).filter(|_| !ty.shape.is_empty() && !cone.contains(&v)) else { return Some(false) };
    let alike = |v: &ValueId| g.ty(*v).shape.is_empty() || g.ty(*v).shape == ty.shape;
    match &node.kind {
        kind if kind.is_elementwise() => (),
        Kind::Reshape if g.ty(node.inputs[0]).shape.last() == ty.shape.last() => (),
        Kind::Broadcast(_) => return Some(g.ty(node.inputs[0]).size() < ty.size()),
        _ => return Some(false),
    }
    cone.push(v);
    if cone.len() > NODES || (node.kind.is_elementwise() && !node.inputs.iter().all(alike)) {
        return None;
    }
    node.inputs.iter().try_fold(false, |spread, &v| Some(made_of(g, v, cone)? | spread))
}

/// The parts of values: element `i` of every row.
struct Parts<'a> {
    g: &'a Graph,
    map: &'a [ValueId],
    made: &'a mut HashMap<(ValueId, usize), ValueId>,
}

impl Parts<'_> {
    /// The parts of a value, joined in the order of a row.
    fn joined(&mut self, b: &mut Builder, op: ReduceOp, v: ValueId) -> ValueId {
        let (ty, join) = (self.g.ty(v), op.joining().unwrap_or(BinaryOp::Add));
        let count = ty.shape[ty.shape.len() - 1];
        let first = self.part(b, v, 0);
        // A sum begins with a zero, which a negative zero alone would not be.
        let first = if op == ReduceOp::Sum && ty.dtype.is_float() {
            let zero = b.scalar(Scalar::zero(ty.dtype));
            b.binary(join, zero, first)
        } else {
            first
        };
        (1..count).fold(first, |sum, i| {
            let part = self.part(b, v, i);
            b.binary(join, sum, part)
        })
    }

    /// Element `i` of every row of a value; a number stands for all.
    fn part(&mut self, b: &mut Builder, v: ValueId, i: usize) -> ValueId {
        let (g, ty) = (self.g, self.g.ty(v));
        if ty.shape.is_empty() {
            return self.map[v.0 as usize];
        }
        if let Some(&part) = self.made.get(&(v, i)) {
            return part;
        }
        let rows = &ty.shape[..ty.shape.len() - 1];
        let node = g.maker(v);
        let part = match node.map(|node| (node, &node.kind)) {
            Some((node, kind)) if kind.is_elementwise() => {
                let inputs: SmallVec<[ValueId; 3]> = node.inputs.iter().map(|&v| self.part(b, v, i)).collect();
                b.push(kind.clone(), &inputs, Type::new(ty.dtype, rows))
            }
            Some((node, Kind::Reshape)) if g.ty(node.inputs[0]).shape.last() == ty.shape.last() => {
                let x = self.part(b, node.inputs[0], i);
                b.reshape(x, rows)
            }
            Some((node, Kind::Concat(axis)))
                if *axis == rows.len() && node.inputs.iter().all(|&x| g.ty(x).shape[*axis] == 1) =>
            {
                b.reshape(self.map[node.inputs[i].0 as usize], rows)
            }
            Some((node, Kind::Broadcast(axes))) => self.spread(b, node.inputs[0], axes, rows, i),
            _ => taken(b, self.map[v.0 as usize], ty.shape.len() - 1, i),
        };
        self.made.insert((v, i), part);
        part
    }

    /// A part of an array whose axes are spread to `axes` of rows and a last axis.
    fn spread(&self, b: &mut Builder, x: ValueId, axes: &[usize], rows: &[usize], i: usize) -> ValueId {
        let mut x = self.map[x.0 as usize];
        let mut axes: SmallVec<[usize; 4]> = SmallVec::from_slice(axes);
        if let Some(at) = axes.iter().position(|&a| a == rows.len()) {
            axes.remove(at);
            let one = b.ty(x).shape[at] == 1;
            x = taken(b, x, at, if one { 0 } else { i });
        }
        let whole = b.ty(x).shape.as_slice() == rows && axes.iter().copied().eq(0..rows.len());
        if whole { x } else { b.broadcast(x, rows, &axes) }
    }
}

/// Element `i` along an axis, which is left out.
fn taken(b: &mut Builder, x: ValueId, axis: usize, i: usize) -> ValueId {
    let ty = b.ty(x).clone();
    let mut dims = SliceDims {
        start: Shape::from_elem(0, ty.shape.len()),
        limit: ty.shape.clone(),
        stride: Shape::from_elem(1, ty.shape.len()),
    };
    (dims.start[axis], dims.limit[axis]) = (i, i + 1);
    let (mut slice, mut left) = (ty.clone(), ty.shape.clone());
    slice.shape[axis] = 1;
    left.remove(axis);
    let x = if slice == ty { x } else { b.push(Kind::Slice(Box::new(dims)), &[x], slice) };
    b.reshape(x, &left)
}
