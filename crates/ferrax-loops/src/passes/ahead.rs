//! What a scan's steps compute of their own slices alone, computed for all steps before the loop.
//!
//! A sampler's steps draw numbers under keys that are slices of an array, or under a key and the step's number. None of
//! that waits for the step before: one kernel draws for all steps, in vectors and on all threads, and the loop reads
//! slices. Nodes that cost something go, with the cheap ones that they read and that read them; what a step computes of
//! many elements stays where it is, and so does everything where the arrays in between would take much more memory than
//! the loop's own. Elements are computed by the same nodes of the same operands: no bit of a result changes.
//! Read next: `hoist.rs`, which takes out of the loop what remains of it.

use super::{NOTHING, again, append, became, live_nodes, rewritten};
use crate::{BinaryOp, Builder, Graph, Kind, Node, SliceDims, Type, ValueId};
use ferrax_base::{DType, Scalar};
use smallvec::SmallVec;
use std::sync::Arc;

/// Steps of a loop, at least.
const LEAST: usize = 8;
/// Elements that a step computes, at most: of a node of which many are computed at once, and of any other costly one.
const MOST: usize = 1024;
const FEW: usize = 16;
/// Bytes that are written before a loop in any case; more, where its stacked arrays have so many.
const BYTES: usize = 1 << 20;
const TIMES: usize = 4;

/// What a value of a body depends on.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Of {
    /// What does not change.
    Nothing,
    /// The step.
    Step,
    /// The state.
    State,
}

/// A scan and what of it is computed before.
struct Ahead<'g> {
    body: &'g Graph,
    length: usize,
    reverse: bool,
    consts: usize,
    carry: usize,
    /// Of each value.
    of: Vec<Of>,
    /// Of each node: whether it is computed before the loop, and whether in it.
    goes: Vec<bool>,
    stays: Vec<bool>,
    /// Values that are computed before and read in the loop.
    made: Vec<ValueId>,
}

/// The graph with scans whose steps read what is computed before; itself where there are none.
pub fn ahead(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let found: Vec<Option<Ahead<'_>>> = g.nodes.iter().map(|node| Ahead::of(g, node)).collect();
    if found.iter().all(Option::is_none) {
        return graph;
    }
    rewritten(g, &live_nodes(g), |i, node, b, map| {
        let Some(ahead) = &found[i] else { return false };
        map.extend(ahead.push(b, &became(node, map)));
        true
    })
}

impl<'g> Ahead<'g> {
    fn of(g: &Graph, node: &'g Node) -> Option<Self> {
        let Kind::Scan { body, length, reverse, consts, carry } = &node.kind else { return None };
        if *length < LEAST {
            return None;
        }
        let of = depends(body, *consts, *carry);
        let live = live_nodes(body);
        let goes = going(body, &of, &live)?;
        let (stays, read) = staying(body, &of, &live, &goes);
        let moved = body.nodes.iter().enumerate().filter(|(i, _)| goes[*i]);
        let made: Vec<ValueId> = moved
            .clone()
            .filter(|(i, _)| !stays[*i])
            .flat_map(|(_, n)| n.outputs())
            .filter(|v| read[v.0 as usize])
            .collect();
        let drawn = moved.filter(|(_, n)| matches!(n.kind, Kind::Threefry2x32)).flat_map(|(_, n)| n.outputs());
        let bytes: usize = made.iter().copied().chain(drawn).map(|v| body.ty(v).bytes()).sum();
        let own = node.inputs[consts + carry..].iter().copied().chain(node.outputs().skip(*carry));
        let own: usize = own.map(|v| g.ty(v).bytes()).sum();
        let fits = bytes.saturating_mul(*length) <= BYTES.max(own.saturating_mul(TIMES));
        let (length, reverse, consts, carry) = (*length, *reverse, *consts, *carry);
        fits.then_some(Ahead { body, length, reverse, consts, carry, of, goes, stays, made })
    }

    /// The values that the scan's results have become.
    fn push(&self, b: &mut Builder, inputs: &[ValueId]) -> SmallVec<[ValueId; 1]> {
        let body = self.body;
        let first = self.consts + self.carry;
        let mut map = vec![NOTHING; body.types.len()];
        for (p, &input) in inputs.iter().enumerate() {
            map[p] = match counts(body, self.consts, self.carry, p) {
                Some(by) if self.of[p] == Of::Step => self.counted(b, input, by),
                _ => input,
            };
        }
        for (_, n) in body.nodes.iter().enumerate().filter(|(i, _)| self.goes[*i]) {
            let outs = if is_of(n, &self.of, Of::Step) { self.stacked(b, n, &map) } else { again(b, body, n, &map) };
            n.outputs().zip(outs).for_each(|(v, now)| map[v.0 as usize] = now);
        }
        let staying = || body.nodes.iter().zip(&self.stays).filter(|(_, stays)| **stays).map(|(n, _)| n);
        let is_read = |v: &ValueId| body.outputs.contains(v) || staying().any(|n| n.inputs.contains(v));
        let slices: Vec<ValueId> = (first as u32..body.params as u32).map(ValueId).filter(is_read).collect();
        let stacks = slices.iter().chain(&self.made).map(|v| map[v.0 as usize]);
        let all: Vec<ValueId> = inputs[..first].iter().copied().chain(stacks).collect();
        let params: Vec<ValueId> =
            (0..first as u32).map(ValueId).chain(slices).chain(self.made.iter().copied()).collect();
        let mut inner = Builder::new(params.iter().map(|&v| body.ty(v).clone()));
        let mut map = vec![NOTHING; body.types.len()];
        params.iter().zip(inner.params()).for_each(|(v, now)| map[v.0 as usize] = now);
        for n in staying() {
            append(&mut inner, body, n, &mut map);
        }
        let outputs: Vec<ValueId> = body.outputs.iter().map(|v| map[v.0 as usize]).collect();
        let outs = || body.outputs.iter().map(|&v| body.ty(v));
        let types: Vec<Type> =
            outs().take(self.carry).cloned().chain(outs().skip(self.carry).map(|ty| self.stack(ty))).collect();
        let (length, reverse, consts, carry) = (self.length, self.reverse, self.consts, self.carry);
        let kind = Kind::Scan { body: Arc::new(inner.finish(&outputs)), length, reverse, consts, carry };
        b.push_many(kind, &all, &types)
    }

    /// A type with an axis for the steps in front.
    fn stack(&self, ty: &Type) -> Type {
        Type { dtype: ty.dtype, shape: std::iter::once(self.length).chain(ty.shape.iter().copied()).collect() }
    }

    /// What a counter that begins at `first` is at each step.
    fn counted(&self, b: &mut Builder, first: ValueId, by: Scalar) -> ValueId {
        let dtype = by.dtype;
        let mut steps = b.iota(dtype, &[self.length], 0);
        if self.reverse {
            let last = b.scalar(Scalar::from_i64(dtype, self.length as i64 - 1));
            steps = b.binary(BinaryOp::Sub, last, steps);
        }
        let by = b.scalar(by);
        let steps = b.binary(BinaryOp::Mul, steps, by);
        b.binary(BinaryOp::Add, first, steps)
    }

    /// A node over all steps.
    fn stacked(&self, b: &mut Builder, node: &Node, map: &[ValueId]) -> SmallVec<[ValueId; 1]> {
        let body = self.body;
        let types: SmallVec<[Type; 2]> = node.outputs().map(|v| self.stack(body.ty(v))).collect();
        let behind = |axes: &[usize]| axes.iter().map(|a| a + 1).collect::<SmallVec<[usize; 4]>>();
        let in_front = |axis: usize, axes: &[usize]| std::iter::once(axis).chain(axes.iter().copied()).collect();
        let kind = match &node.kind {
            Kind::Broadcast(dims) => Kind::Broadcast(in_front(0, &behind(dims))),
            Kind::Transpose(perm) => Kind::Transpose(in_front(0, &behind(perm))),
            Kind::Slice(dims) => Kind::Slice(Box::new(SliceDims {
                start: in_front(0, &dims.start),
                limit: in_front(self.length, &dims.limit),
                stride: in_front(1, &dims.stride),
            })),
            Kind::Concat(axis) => Kind::Concat(axis + 1),
            kind => kind.clone(),
        };
        let inputs: SmallVec<[ValueId; 4]> =
            node.inputs.iter().map(|&v| self.operand(b, node, v, map[v.0 as usize])).collect();
        b.push_many(kind, &inputs, &types)
    }

    /// An operand of a node over all steps: of all of them, or a number for all elements.
    fn operand(&self, b: &mut Builder, node: &Node, v: ValueId, now: ValueId) -> ValueId {
        let (ty, shape) = (self.body.ty(v), &self.body.ty(node.first).shape);
        if self.of[v.0 as usize] == Of::Step {
            // One number a step, for all of its elements.
            let spreads = ty.shape.is_empty() && !shape.is_empty() && !moves(node);
            return if spreads { b.broadcast(now, &self.stack(&Type::new(ty.dtype, shape)).shape, &[0]) } else { now };
        }
        let axes: SmallVec<[usize; 4]> = (1..=ty.shape.len()).collect();
        if ty.shape.is_empty() { now } else { b.broadcast(now, &self.stack(ty).shape, &axes) }
    }
}

/// Which nodes of a body are computed before the loop: costly ones, cheap ones behind them, and what those read.
fn going(body: &Graph, of: &[Of], live: &[bool]) -> Option<Vec<bool>> {
    let mut ahead = vec![false; body.types.len()];
    let mut goes = vec![false; body.nodes.len()];
    for (i, n) in body.nodes.iter().enumerate().filter(|(i, n)| live[*i] && is_of(n, of, Of::Step)) {
        let size = |v: &ValueId| body.ty(*v).size();
        let before: usize = n.inputs.iter().filter(|v| ahead[v.0 as usize]).map(size).sum();
        let few = matches!(n.kind, Kind::Threefry2x32) || size(&n.first) <= FEW;
        goes[i] = (n.kind.is_costly() && few) || (before > 0 && size(&n.first) <= before);
        n.outputs().for_each(|v| ahead[v.0 as usize] = goes[i]);
    }
    if !goes.contains(&true) {
        return None;
    }
    let mut wanted = vec![false; body.types.len()];
    for (i, n) in body.nodes.iter().enumerate().rev() {
        goes[i] |= n.outputs().any(|v| wanted[v.0 as usize]);
        if goes[i] {
            n.inputs.iter().for_each(|v| wanted[v.0 as usize] = true);
        }
    }
    Some(goes)
}

/// Which nodes stay in the loop, and what they and its results read. What is cheap to make again stays, beside what is
/// read from before.
fn staying(body: &Graph, of: &[Of], live: &[bool], goes: &[bool]) -> (Vec<bool>, Vec<bool>) {
    let is_free = |n: &Node| is_of(n, of, Of::Nothing) || matches!(n.kind, Kind::Broadcast(_) | Kind::Reshape);
    let mut read = vec![false; body.types.len()];
    body.outputs.iter().for_each(|v| read[v.0 as usize] = true);
    let mut stays: Vec<bool> = goes.iter().zip(live).map(|(goes, live)| *live && !goes).collect();
    for (i, n) in body.nodes.iter().enumerate().rev() {
        stays[i] |= goes[i] && is_free(n) && n.outputs().any(|v| read[v.0 as usize]);
        if stays[i] {
            n.inputs.iter().for_each(|v| read[v.0 as usize] = true);
        }
    }
    (stays, read)
}

/// What the values of a body depend on, where nodes of a step can be computed for all of them.
fn depends(body: &Graph, consts: usize, carry: usize) -> Vec<Of> {
    let of = |p: usize| match p {
        p if p < consts => Of::Nothing,
        p if p >= consts + carry => Of::Step,
        p if body.outputs[p - consts] == ValueId(p as u32) => Of::Nothing,
        p if counts(body, consts, carry, p).is_some() => Of::Step,
        _ => Of::State,
    };
    let mut of: Vec<Of> = (0..body.params).map(of).collect();
    for n in &body.nodes {
        let reads = n.inputs.iter().map(|v| of[v.0 as usize]);
        let reads = reads.fold(Of::Nothing, |most, of| if of > most { of } else { most });
        let many = n.outputs().any(|v| !(1..=MOST).contains(&body.ty(v).size()));
        let now = match reads {
            Of::Nothing if !n.kind.calls_host() => Of::Nothing,
            Of::Step if n.results > 0 && !many && stacks(body, n) => Of::Step,
            _ => Of::State,
        };
        of.extend(n.outputs().map(|_| now));
    }
    of
}

fn is_of(node: &Node, of: &[Of], what: Of) -> bool {
    node.results > 0 && of[node.first.0 as usize] == what
}

/// What a carried number grows by at each step, if it does nothing else.
fn counts(body: &Graph, consts: usize, carry: usize, p: usize) -> Option<Scalar> {
    if !(consts..consts + carry).contains(&p) {
        return None;
    }
    let ty = &body.types[p];
    let counting = matches!(ty.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64) && ty.shape.is_empty();
    let next =
        body.maker(body.outputs[p - consts]).filter(|n| counting && matches!(n.kind, Kind::Binary(BinaryOp::Add)))?;
    let own = next.inputs.iter().position(|&v| v == ValueId(p as u32))?;
    match body.maker(next.inputs[1 - own])?.kind {
        Kind::Const(by) => Some(by),
        _ => None,
    }
}

/// Whether a node can be computed for many steps at once.
fn stacks(body: &Graph, node: &Node) -> bool {
    let shape = &body.ty(node.first).shape;
    let alike = |v: &ValueId| body.ty(*v).shape.is_empty() || body.ty(*v).shape == *shape;
    let each = node.kind.is_elementwise() || matches!(node.kind, Kind::Threefry2x32);
    moves(node) || (each && node.inputs.iter().all(alike))
}

/// Whether a node only moves elements.
fn moves(node: &Node) -> bool {
    use Kind::{Bitcast, Broadcast, Concat, Reshape, Slice, Transpose};
    matches!(node.kind, Bitcast | Broadcast(_) | Reshape | Transpose(_) | Slice(_) | Concat(_))
}
