//! Sums of paddings that complete each other, and windows at places that are known.
//!
//! What the transpose of a split gives is a sum of arrays that are each zero but for one part. Each of its elements is one
//! operand's element and zeros, `x + 0`, so the operands with a zero added are joined instead, with the same bits: kernels that make
//! them write each where it lies. A scatter of one window whose place is a number in the program is an update of a slice.
//! Read next: `pieces.rs`.

use super::{became, live_nodes, rewritten};
use crate::kind::SliceDims;
use crate::{BinaryOp, Builder, Graph, Kind, Node, Type, ValueId};
use ferrax_base::{Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// Paddings that are joined, at most.
const MOST: usize = 16;
/// Elements of a window, at least: smaller ones are moved by what scatters.
const LEAST: usize = 65;

/// What a node becomes.
enum Found {
    /// The axis along which these lie one after the other.
    Joined(usize, SmallVec<[ValueId; 4]>),
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
            Some(Found::Joined(axis, parts)) => {
                let parts: SmallVec<[ValueId; 4]> = parts.iter().map(|x| plus_zero(b, map[x.0 as usize])).collect();
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

/// The operands of paddings with zeros whose sum a node is, if they lie one after the other in all of it.
fn joined(g: &Graph, node: &Node, reads: &[u32], taken: &mut [bool]) -> Option<Found> {
    let adds = |node: &Node| matches!(node.kind, Kind::Binary(BinaryOp::Add));
    if !adds(node) {
        return None;
    }
    let (mut paddings, mut sums) = (SmallVec::<[(usize, usize, ValueId); 4]>::new(), SmallVec::<[ValueId; 4]>::new());
    let mut open: SmallVec<[ValueId; 8]> = SmallVec::from_slice(&node.inputs);
    let mut axis = None;
    while let Some(v) = open.pop() {
        let made = g.maker(v).filter(|_| reads[v.0 as usize] == 1 && g.ty(v) == g.ty(node.first))?;
        if adds(made) {
            sums.push(v);
            open.extend(made.inputs.iter().copied());
            continue;
        }
        let (along, first, n) = padded(g, made)?;
        if *axis.get_or_insert(along) != along || paddings.len() == MOST {
            return None;
        }
        paddings.push((first, n, made.inputs[0]));
    }
    paddings.sort_unstable_by_key(|p| p.0);
    let axis = axis?;
    let end = paddings.iter().try_fold(0, |at, &(first, n, _)| (first == at).then_some(at + n))?;
    if end != g.ty(node.first).shape[axis] {
        return None;
    }
    sums.iter().for_each(|v| taken[v.0 as usize] = true);
    Some(Found::Joined(axis, paddings.iter().map(|p| p.2).collect()))
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
