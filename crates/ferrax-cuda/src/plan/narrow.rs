//! Convolutions of 16-bit floats that were widened to single precision, as ones of the floats themselves.
//!
//! A graph has the products of such numbers summed in single precision, of operands that it converts before it pads and turns
//! them. The matrix units multiply the numbers as they were, with the same sums: what moves them is done on half the bytes.

use crate::library::conv::windows;
use ferrax_base::{DType, Scalar};
use ferrax_loops::{Builder, ConvDims, Graph, Kind, Node, Type, ValueId};

/// The operands of a convolution that is one on the matrix units, appended in the dtype that both were widened from; `map`
/// has what is appended so far.
pub fn operands(b: &mut Builder, g: &Graph, map: &[ValueId], dims: &ConvDims, node: &Node) -> Option<[ValueId; 2]> {
    let [x, w] = [node.inputs[0], node.inputs[1]];
    let dtype = source(g, x).filter(|d| source(g, w) == Some(*d))?;
    let [image, window] = [x, w].map(|v| Type { dtype, shape: g.ty(v).shape.clone() });
    windows(dims, [&image, &window, g.ty(node.first)])?;
    Some([x, w].map(|v| moved(b, g, map, v, dtype)))
}

/// What a value of single precision was widened from, before it was moved.
fn source(g: &Graph, v: ValueId) -> Option<DType> {
    let node = g.maker(v)?;
    let zero =
        |v: ValueId| g.maker(v).is_some_and(|n| matches!(n.kind, Kind::Const(c) if c == Scalar::zero(DType::F32)));
    match &node.kind {
        Kind::Convert => {
            let from = g.ty(node.inputs[0]).dtype;
            (g.ty(v).dtype == DType::F32 && matches!(from, DType::BF16 | DType::F16)).then_some(from)
        }
        Kind::Transpose(_) | Kind::Rev(_) | Kind::Reshape | Kind::Slice(_) => source(g, node.inputs[0]),
        Kind::Pad(_) if zero(node.inputs[1]) => source(g, node.inputs[0]),
        _ => None,
    }
}

/// The value, moved as it was but not widened.
fn moved(b: &mut Builder, g: &Graph, map: &[ValueId], v: ValueId, dtype: DType) -> ValueId {
    let Some(node) = g.maker(v) else { return map[v.0 as usize] };
    let from = node.inputs[0];
    if matches!(node.kind, Kind::Convert) {
        return map[from.0 as usize];
    }
    let mut inputs = vec![moved(b, g, map, from, dtype)];
    if matches!(node.kind, Kind::Pad(_)) {
        inputs.push(b.scalar(Scalar::zero(dtype)));
    }
    let ty = Type { dtype, shape: g.ty(v).shape.clone() };
    b.push(node.kind.clone(), &inputs, ty)
}
