//! Reductions over windows.
//!
//! A window's padding holds the initial value, which counts once more at the start; compilers pass over the padding. The
//! two agree for an initial value that changes nothing; where it may, the padding is made before, and the value joined after.

use super::body::{Body, Val};
use super::elementwise::{self, compute_dtype};
use super::types::array;
use super::{convert, reduce};
use ferrax_base::Result;
use ferrax_loops::{Graph, Kind, Node, ReduceOp, Type, WindowDims};

/// `ReduceWindow` of a node of a graph.
pub(super) fn reduce_window(
    body: &mut Body<'_, '_>,
    (graph, node): (&Graph, &Node),
    (op, w): (ReduceOp, &WindowDims),
    inputs: &[Val],
    ty: &Type,
) -> Result<Val> {
    let d = ty.dtype;
    let join = reduce::joining(op)?;
    let compute = compute_dtype(d);
    let start = convert::convert(body, &inputs[1], compute)?;
    let x = convert::convert(body, &inputs[0], compute)?;
    if ty.shape.is_empty() {
        let y = elementwise::binary(body, join, &x, &start)?;
        return convert::convert(body, &y, d);
    }
    // Joining it twice is joining it once.
    let repeats = matches!(op, ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Xor);
    let known = graph.maker(node.inputs[1]).is_some_and(|n| matches!(n.kind, Kind::Const(c) if c == op.identity(d)));
    let plain = w.padding.iter().all(|&(low, high)| low >= 0 && high >= 0);
    let simple = plain && (known || !repeats) && x.ty.size() > 0;
    let (x, w) = if simple { (x, w.clone()) } else { padded(body, &x, &start, w) };
    // Compilers take padding of the value that windows start from for none.
    let from = if simple { start.clone() } else { body.splat(op.start(compute), &[]) };
    let cell = Type::new(compute, &[]);
    let region = body.region(&[cell.clone(), cell], |body, cells| {
        Ok(vec![elementwise::binary(body, join, &cells[0], &cells[1])?])
    })?;
    let rest = format!(
        "({region}) {{window_dimensions = {}, window_strides = {}, base_dilations = {}, window_dilations = {}, \
         padding = {}}}",
        array(&w.window),
        array(&w.strides),
        array(&w.base_dilation),
        array(&w.window_dilation),
        padding(&w.padding)
    );
    let mut y = body.op("stablehlo.reduce_window", &[&x, &from], &rest, &Type::new(compute, &ty.shape));
    if !simple {
        let start = body.spread(&start, &ty.shape);
        y = elementwise::binary(body, join, &y, &start)?;
    }
    convert::convert(body, &y, d)
}

/// Amounts before and after along each axis, as an attribute.
fn padding(amounts: &[(i64, i64)]) -> String {
    let rows: Vec<String> = amounts.iter().map(|(low, high)| format!("[{low}, {high}]")).collect();
    format!("dense<[{}]> : tensor<{}x2xi64>", rows.join(", "), amounts.len())
}

/// The operand with its padding and holes in it, and the windows that are left.
fn padded(body: &mut Body<'_, '_>, x: &Val, value: &Val, w: &WindowDims) -> (Val, WindowDims) {
    let holes: Vec<usize> = w.base_dilation.iter().map(|d| d - 1).collect();
    let sides = |high: bool| w.padding.iter().map(|p| if high { p.1 } else { p.0 }).collect::<Vec<i64>>();
    let extent = |i: usize| {
        let n = x.shape()[i];
        (n + n.saturating_sub(1) * holes[i]) as i64 + w.padding[i].0 + w.padding[i].1
    };
    let shape: Vec<usize> = (0..x.shape().len()).map(|i| extent(i).max(0) as usize).collect();
    let rest = format!(
        "{{edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}}}",
        array(&sides(false)),
        array(&sides(true)),
        array(&holes)
    );
    let y = body.op("stablehlo.pad", &[x, value], &rest, &Type::new(x.dtype(), &shape));
    let mut left = w.clone();
    left.padding.iter_mut().for_each(|p| *p = (0, 0));
    left.base_dilation.iter_mut().for_each(|d| *d = 1);
    (y, left)
}
