//! `x % 1` of floats as `x - floor(x)`, which takes no division.
//!
//! The remainder of the divisor's sign reaches an engine as the remainder of the dividend's sign, comparisons and a select. Where
//! the divisor is 1 both ways round once, at the same place: what is left of x is exact, and so is the whole number below
//! x. A remainder of 0 has the sign of x. The nodes that nothing needs any more are left out.

use super::{live_nodes, rewritten};
use crate::kind::CompareOp;
use crate::{BinaryOp, Builder, Graph, Kind, Node, Type, UnaryOp, ValueId};
use ferrax_base::{DType, Scalar, Shape};
use smallvec::SmallVec;
use std::sync::Arc;

/// The graph with fractions in place of remainders by 1; itself where there is none.
pub fn fractions(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    if !g.nodes.iter().any(|node| fraction(g, node).is_some()) {
        return graph;
    }
    rewritten(g, &live_nodes(g), |_, node, b, map| {
        let Some(x) = fraction(g, node) else { return false };
        map.push(push_fraction(b, map[x.0 as usize], g.ty(x)));
        true
    })
}

/// The scalar that a value repeats.
fn constant(g: &Graph, v: ValueId) -> Option<Scalar> {
    let node = g.maker(v)?;
    match &node.kind {
        Kind::Const(s) => Some(*s),
        Kind::Broadcast(_) | Kind::Reshape => constant(g, node.inputs[0]),
        _ => None,
    }
}

fn is(g: &Graph, v: ValueId, n: f64) -> bool {
    constant(g, v).is_some_and(|s| s.to_f64() == n)
}

/// The operands of a node of two.
fn pair(g: &Graph, v: ValueId, kind: impl Fn(&Kind) -> bool) -> Option<(ValueId, ValueId)> {
    let node = g.maker(v).filter(|n| kind(&n.kind))?;
    Some((node.inputs[0], node.inputs[1]))
}

/// What a node is the remainder of, if the divisor is 1: `where((r < 0) != False & (r != 0), r + 1, r)` of `r = rem(x, 1)`.
fn fraction(g: &Graph, node: &Node) -> Option<ValueId> {
    if !matches!(node.kind, Kind::Select) || node.inputs.len() != 3 {
        return None;
    }
    let binary = |v, op| pair(g, v, |k| matches!(k, Kind::Binary(o) if *o == op));
    let compare = |v, op| pair(g, v, |k| matches!(k, Kind::Compare(o) if *o == op));
    let rest = node.inputs[1];
    let (x, one) = binary(rest, BinaryOp::Rem)?;
    if !matches!(g.ty(x).dtype, DType::F32 | DType::F64) || g.ty(x) != g.ty(rest) || !is(g, one, 1.0) {
        return None;
    }
    let (r, more) = binary(node.inputs[2], BinaryOp::Add)?;
    let (a, b) = binary(node.inputs[0], BinaryOp::And)?;
    let left = |v| compare(v, CompareOp::Ne).is_some_and(|(r, zero)| r == rest && is(g, zero, 0.0));
    let apart = |v| {
        let (sign, other) = compare(v, CompareOp::Ne)?;
        let (r, zero) = compare(sign, CompareOp::Lt)?;
        (r == rest && is(g, zero, 0.0) && is(g, other, 0.0)).then_some(())
    };
    let found = [(a, b), (b, a)].into_iter().any(|(a, b)| left(a) && apart(b).is_some());
    (found && r == rest && is(g, more, 1.0)).then_some(x)
}

fn push_fraction(b: &mut Builder, x: ValueId, ty: &Type) -> ValueId {
    let zero = b.push(Kind::Const(Scalar::from_f64(ty.dtype, 0.0)), &[], Type { dtype: ty.dtype, shape: Shape::new() });
    let zero = b.push(Kind::Broadcast(SmallVec::new()), &[zero], ty.clone());
    let below = b.push(Kind::Unary(UnaryOp::Floor), &[x], ty.clone());
    let left = b.push(Kind::Binary(BinaryOp::Sub), &[x, below], ty.clone());
    let none = b.push(Kind::Compare(CompareOp::Eq), &[left, zero], Type { dtype: DType::Bool, ..ty.clone() });
    let signed = b.push(Kind::Binary(BinaryOp::Mul), &[x, zero], ty.clone());
    b.push(Kind::Select, &[none, left, signed], ty.clone())
}
