//! Sums of paddings, and windows at places that are known.
//!
//! What the transpose of slices gives is a sum of arrays that are each zero but for one part. Along the axis that was cut, the
//! sum is made in parts where the same of them have elements: those are added, with a zero where there are others, which gives the
//! same bits, and kernels write each part where it lies. A scatter of one window whose place is a number in the program is an update of a slice.
//! Read next: `pieces.rs`.

use super::{became, live_nodes, rewritten};
use crate::kind::SliceDims;
use crate::{BinaryOp, Builder, Graph, Kind, Node, Type, ValueId};
use ferrax_base::{Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Terms of a sum, at most, and as many sums among them.
const MOST: usize = 16;
/// Parts that a sum of terms that overlap is made in, at most, and its elements, at least.
const PARTS: usize = 8;
const LARGE: usize = 4096;
/// Elements of a window, at least: smaller ones are moved by what scatters.
const LEAST: usize = 65;

/// What a node becomes.
enum Found {
    /// The axis along which a sum is made in parts, where these end, and the sums that are terms of it.
    Joined(usize, SmallVec<[usize; 8]>, SmallVec<[ValueId; 4]>),
    /// The first index of a window along each axis, and the window's sizes.
    Placed(SmallVec<[i64; 4]>, Shape),
}

/// The graph with joins in place of sums, and slices in place of windows; itself where there is none.
pub fn paddings(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let live = live_nodes(g);
    let mut reads = vec![0u32; g.types.len()];
    let inputs = g.nodes.iter().zip(&live).filter(|n| *n.1).flat_map(|(n, _)| &n.inputs);
    inputs.chain(&g.outputs).for_each(|v| reads[v.0 as usize] += 1);
    let (mut found, mut any) = (Vec::with_capacity(g.nodes.len()), false);
    let mut taken = vec![false; g.types.len()];
    for (node, live) in g.nodes.iter().zip(&live).rev() {
        let new = if *live && !node.outputs().any(|v| taken[v.0 as usize]) {
            joined(g, node, &reads, &mut taken).or_else(|| placed(g, node))
        } else {
            None
        };
        any |= new.is_some();
        found.push(new);
    }
    if !any {
        return graph;
    }
    let at = |i: usize| found[g.nodes.len() - 1 - i].as_ref();
    rewritten(g, &live, |i, node, b, map| {
        let ty = g.ty(node.first);
        let v = match at(i) {
            Some(Found::Joined(axis, ends, sums)) => {
                let starts = std::iter::once(0).chain(ends.iter().copied());
                let parts: SmallVec<[ValueId; 8]> = starts
                    .zip(ends)
                    .map(|(from, &to)| {
                        let part = Part { g, map, sums, axis: *axis, from, to };
                        part.sum(b, node).unwrap_or_else(|| part.zeros(b, ty))
                    })
                    .collect();
                b.push(Kind::Concat(*axis), &parts, ty.clone())
            }
            Some(Found::Placed(starts, window)) => put(b, node, &became(node, map), (starts, window)),
            None => return false,
        };
        map.push(v);
        true
    })
}

/// x + 0, which is x where there is no negative zero.
fn plus_zero(b: &mut Builder, x: ValueId) -> ValueId {
    let ty = b.ty(x).clone();
    if !ty.dtype.is_inexact() {
        return x;
    }
    let zero = b.scalar(Scalar::zero(ty.dtype));
    let zero = b.broadcast(zero, &ty.shape, &[]);
    b.binary(BinaryOp::Add, x, zero)
}

/// A part of a sum along an axis.
struct Part<'a> {
    g: &'a Graph,
    map: &'a [ValueId],
    sums: &'a [ValueId],
    axis: usize,
    from: usize,
    to: usize,
}

impl Part<'_> {
    /// The part of a sum; `None` where it is zeros.
    fn sum(&self, b: &mut Builder, node: &Node) -> Option<ValueId> {
        match [self.term(b, node.inputs[0]), self.term(b, node.inputs[1])] {
            [Some(x), Some(y)] => Some(b.binary(BinaryOp::Add, x, y)),
            [Some(x), None] | [None, Some(x)] => Some(plus_zero(b, x)),
            [None, None] => None,
        }
    }

    /// The part of a term, which is a sum, a padding or any other value.
    fn term(&self, b: &mut Builder, v: ValueId) -> Option<ValueId> {
        let made = self.g.maker(v);
        if self.sums.contains(&v) {
            return self.sum(b, made?);
        }
        let (x, first) = match made.and_then(|made| Some((made, padded(self.g, made)?))) {
            Some((made, (axis, first, n))) if axis == self.axis => {
                if self.from < first || self.to > first + n {
                    return None;
                }
                (made.inputs[0], first)
            }
            _ => (v, 0),
        };
        let (x, ty) = (self.map[x.0 as usize], self.g.ty(x));
        let (mut start, mut limit) = (Shape::from_elem(0, ty.shape.len()), ty.shape.clone());
        (start[self.axis], limit[self.axis]) = (self.from - first, self.to - first);
        if limit == ty.shape && start[self.axis] == 0 {
            return Some(x);
        }
        let stride = Shape::from_elem(1, ty.shape.len());
        let part = Type::new(ty.dtype, &self.shape(ty));
        Some(b.push(Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[x], part))
    }

    fn shape(&self, ty: &Type) -> Shape {
        let mut shape = ty.shape.clone();
        shape[self.axis] = self.to - self.from;
        shape
    }

    fn zeros(&self, b: &mut Builder, ty: &Type) -> ValueId {
        let zero = b.scalar(Scalar::zero(ty.dtype));
        b.broadcast(zero, &self.shape(ty), &[])
    }
}

/// The terms of a sum.
#[derive(Default)]
struct Terms {
    /// The axis of the paddings with zeros among them.
    axis: Option<usize>,
    /// Where the elements of paddings begin and end along it.
    paddings: SmallVec<[(usize, usize); 4]>,
    /// The sums that have such paddings among their terms.
    sums: SmallVec<[ValueId; 4]>,
    /// How many other terms there are.
    others: usize,
    /// How many terms have been looked at.
    seen: usize,
}

impl Terms {
    /// Takes in a term of a sum of type `ty`; whether paddings along the axis are among its own. `None` where terms are too many, or
    /// spread.
    fn take(&mut self, g: &Graph, v: ValueId, ty: &Type, reads: &[u32]) -> Option<bool> {
        self.seen += 1;
        if self.seen > 2 * MOST || g.ty(v).shape != ty.shape {
            return None;
        }
        let made = g.maker(v).filter(|_| reads[v.0 as usize] == 1 && g.ty(v) == ty);
        if let Some((axis, first, n)) = made.and_then(|made| padded(g, made))
            && *self.axis.get_or_insert(axis) == axis
        {
            self.paddings.push((first, first + n));
            return Some(true);
        }
        let others = self.others;
        if let Some(sum) = made.filter(|made| adds(made)) {
            let [left, right] = [sum.inputs[0], sum.inputs[1]];
            if self.take(g, right, ty, reads)? | self.take(g, left, ty, reads)? {
                self.sums.push(v);
                return Some(true);
            }
        }
        self.others = others + 1;
        Some(false)
    }
}

fn adds(node: &Node) -> bool {
    matches!(node.kind, Kind::Binary(BinaryOp::Add))
}

/// The parts of a sum some of whose terms are paddings with zeros along one axis.
fn joined(g: &Graph, node: &Node, reads: &[u32], taken: &mut [bool]) -> Option<Found> {
    if !adds(node) {
        return None;
    }
    let (ty, mut terms) = (g.ty(node.first), Terms::default());
    // The one that was added last says along which axis.
    for &v in node.inputs.iter().rev() {
        terms.take(g, v, ty, reads)?;
    }
    let Terms { axis, paddings, sums, others, .. } = terms;
    let axis = axis.filter(|_| paddings.len() > 1)?;
    let mut ends: SmallVec<[usize; 8]> = paddings.iter().flat_map(|&(first, end)| [first, end]).collect();
    ends.push(ty.shape[axis]);
    ends.sort_unstable();
    ends.dedup();
    ends.retain(|end| *end > 0);
    let complete = others == 0 && ends.len() == paddings.len();
    if !complete && (ends.len() > PARTS || ty.size() < LARGE) {
        return None;
    }
    sums.iter().for_each(|v| taken[v.0 as usize] = true);
    Some(Found::Joined(axis, ends, sums))
}

/// The axis along which a node puts zeros around its operand, where it has the operand's first element, and how many there are.
fn padded(g: &Graph, node: &Node) -> Option<(usize, usize, usize)> {
    let Kind::Pad(config) = &node.kind else { return None };
    let Kind::Const(fill) = g.maker(node.inputs[1])?.kind else { return None };
    let mut around = config.iter().enumerate().filter(|(_, c)| c.low != 0 || c.high != 0);
    let (axis, c) = around.next().filter(|(_, c)| c.low >= 0 && c.high >= 0)?;
    let plain = config.iter().all(|c| c.interior == 0) && around.next().is_none();
    let n = g.ty(node.inputs[0]).shape[axis];
    (plain && fill == Scalar::zero(fill.dtype) && fill.to_f64() == 0.0 && n > 0).then_some((axis, c.low as usize, n))
}

/// The numbers that a value is.
fn numbers(g: &Graph, v: ValueId) -> Option<SmallVec<[i64; 4]>> {
    let (node, ty) = (g.maker(v)?, g.ty(v));
    match &node.kind {
        Kind::Const(s) => Some(SmallVec::from_elem(s.to_i64(), ty.size())),
        Kind::Dense(bytes) => {
            let each = bytes.chunks_exact(ty.dtype.size());
            Some(each.map(|b| Scalar::from_bytes(ty.dtype, b).to_i64()).collect())
        }
        Kind::Reshape => numbers(g, node.inputs[0]),
        Kind::Concat(_) if ty.shape.len() == 1 => {
            let mut all = SmallVec::new();
            for &v in &node.inputs {
                all.extend(numbers(g, v)?);
            }
            Some(all)
        }
        Kind::Broadcast(_) if g.ty(node.inputs[0]).size() == 1 => {
            numbers(g, node.inputs[0]).map(|n| SmallVec::from_elem(n[0], ty.size()))
        }
        _ => None,
    }
}

/// Where a scatter of one window puts it, if that is known and inside.
fn placed(g: &Graph, node: &Node) -> Option<Found> {
    let Kind::Scatter { dims, .. } = &node.kind else { return None };
    let (x, indices, updates) = (g.ty(node.inputs[0]), g.ty(node.inputs[1]), g.ty(node.inputs[2]));
    let one = indices.size() == dims.scatter_dims_to_operand_dims.len() && dims.operand_batching_dims.is_empty();
    if !one || updates.size() < LEAST || x.dtype.is_bool() || !indices.dtype.is_integer() {
        return None;
    }
    let mut window = Shape::from_elem(1, x.shape.len());
    let kept = (0..x.shape.len()).filter(|a| !dims.inserted_window_dims.contains(a));
    kept.zip(&dims.update_window_dims).for_each(|(a, &u)| window[a] = updates.shape[u]);
    let mut starts: SmallVec<[i64; 4]> = SmallVec::from_elem(0, x.shape.len());
    let given = numbers(g, node.inputs[1])?;
    dims.scatter_dims_to_operand_dims.iter().zip(&given).for_each(|(&a, &i)| starts[a] = i);
    let inside = |a: usize| (0..=x.shape[a] as i64 - window[a] as i64).contains(&starts[a]);
    ((0..x.shape.len()).all(inside) && window.iter().product::<usize>() == updates.size())
        .then_some(Found::Placed(starts, window))
}

/// The operand of a scatter with its window put in place.
fn put(b: &mut Builder, node: &Node, inputs: &[ValueId], (starts, window): (&[i64], &Shape)) -> ValueId {
    let (x, mut update) = (inputs[0], b.reshape(inputs[2], window));
    let Kind::Scatter { op, .. } = node.kind else { return x };
    let ty = b.ty(x).clone();
    if let Some(op) = op.joining() {
        let start: Shape = starts.iter().map(|&s| s as usize).collect();
        let limit = start.iter().zip(window).map(|(s, n)| s + n).collect();
        let dims = SliceDims { start, limit, stride: Shape::from_elem(1, window.len()) };
        let before = b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(ty.dtype, window));
        update = b.binary(op, before, update);
    }
    let mut inputs: SmallVec<[ValueId; 6]> = SmallVec::from_slice(&[x, update]);
    inputs.extend(starts.iter().map(|&s| b.scalar(Scalar::from_i64(ferrax_base::DType::I32, s))));
    b.push(Kind::DynamicUpdateSlice, &inputs, ty)
}
