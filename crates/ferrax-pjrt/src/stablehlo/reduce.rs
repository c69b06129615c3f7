//! Reductions over axes.
//!
//! Floats below 32 bits are summed in f32 and sub-byte integers as bytes, as the CPU engine does. Whatever order a compiler
//! takes, the first of equal elements is the one whose index an arg-reduction gives.

use super::body::{Body, Val};
use super::elementwise::{self, compute_dtype};
use super::shape::carrier;
use super::types::array;
use super::{complex, convert};
use ferrax_base::{DType, Result, Scalar, bail, error};
use ferrax_loops::kind::{highest, least, most};
use ferrax_loops::{BinaryOp, Graph, Kind, ReduceOp, Type};

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    match kind {
        Kind::Reduce { op, axes } => reduce(body, *op, &inputs[0], axes).map(|v| vec![v]),
        Kind::ArgReduce { max, axis } => arg_reduce(body, *max, *axis, &inputs[0], &types[0]).map(|v| vec![v]),
        Kind::ReduceWith { body: graph, axes } => reduce_with(body, graph, axes, inputs, types),
        other => bail!(Internal, "{other:?} is not a reduction"),
    }
}

/// The elementwise operation that a reduction repeats.
pub(super) fn joining(op: ReduceOp) -> Result<BinaryOp> {
    op.joining().ok_or_else(|| error!(NotImplemented, "the XLA engine has no {op:?} reduction"))
}

/// x without these axes.
fn without(shape: &[usize], axes: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect()
}

/// x reduced over these axes.
pub(super) fn reduce(body: &mut Body<'_, '_>, op: ReduceOp, x: &Val, axes: &[usize]) -> Result<Val> {
    let d = x.dtype();
    let join = joining(op)?;
    let shape = without(x.shape(), axes);
    if x.ty.size() == 0 {
        return Ok(body.splat(op.identity(d), &shape));
    }
    let wide = convert::convert(body, x, compute_dtype(d))?;
    let c = wide.dtype();
    let start = body.splat(op.start(c), &[]);
    let cell = Type::new(c, &[]);
    let region = body.region(&[cell.clone(), cell], |body, cells| {
        Ok(vec![elementwise::binary(body, join, &cells[0], &cells[1])?])
    })?;
    let rest = format!("({region}) {{dimensions = {}}}", array(axes));
    let result = body.op("stablehlo.reduce", &[&wide, &start], &rest, &Type::new(c, &shape));
    convert::convert(body, &result, d)
}

/// Whether a number is none.
fn is_nan(body: &mut Body<'_, '_>, x: &Val) -> Val {
    body.compare("NE", x, x)
}

fn arg_reduce(body: &mut Body<'_, '_>, max: bool, axis: usize, x: &Val, ty: &Type) -> Result<Val> {
    if ty.size() == 0 {
        return Ok(body.splat(Scalar::zero(ty.dtype), &ty.shape));
    }
    let n = x.shape()[axis];
    if n == 0 {
        bail!(Value, "attempt to get {} of an empty axis", if max { "argmax" } else { "argmin" });
    }
    // The smallest dtypes may not hold the index: it wraps at the end.
    let index = if i32::try_from(n).is_ok() { DType::I32 } else { DType::I64 };
    let c = if x.dtype().is_bool() { DType::U8 } else { compute_dtype(x.dtype()) };
    let values = convert::convert(body, x, c)?;
    let places = body.iota(index, x.shape(), axis);
    let worst = body.splat(if max { least(c) } else { most(c) }, &[]);
    let behind = body.splat(highest(index), &[]);
    let (value, place) = (Type::new(c, &[]), Type::new(index, &[]));
    let region = body.region(&[value.clone(), place.clone(), value, place], |body, cells| {
        let [a, i, b, j] = [0, 1, 2, 3].map(|k| &cells[k]);
        let first = goes_first(body, max, (a, i), (b, j));
        Ok(vec![body.select(&first, a, b), body.select(&first, i, j)])
    })?;
    let rest = format!("({region}) {{dimensions = {}}}", array(&[axis]));
    let types = [Type::new(c, &ty.shape), Type::new(index, &ty.shape)];
    let results = body.ops("stablehlo.reduce", &[&values, &places, &worst, &behind], &rest, &types);
    Ok(body.convert(&results[1], ty.dtype))
}

/// Whether an arg-reduction takes value `a` at place `i` rather than `b` at `j`: NaN before numbers, then what is larger (or
/// smaller), then what stands first.
fn goes_first(body: &mut Body<'_, '_>, max: bool, (a, i): (&Val, &Val), (b, j): (&Val, &Val)) -> Val {
    let complex = a.dtype().is_complex();
    let beyond = match (complex, max) {
        (false, true) => body.compare("GT", a, b),
        (false, false) => body.compare("LT", a, b),
        (true, true) => complex::less(body, b, a),
        (true, false) => complex::less(body, a, b),
    };
    let same = body.compare("EQ", a, b);
    let before = body.compare("LT", i, j);
    let (mut better, mut tie) = (beyond, same);
    if complex || a.dtype().is_float() {
        let (none_a, none_b) = (is_nan(body, a), is_nan(body, b));
        let number_b = body.un("stablehlo.not", &none_b);
        let number_a = body.un("stablehlo.not", &none_a);
        let only_a = body.bin("stablehlo.and", &none_a, &number_b);
        // A complex number may be larger in its real part and have no imaginary one.
        let numbers = body.bin("stablehlo.and", &number_a, &number_b);
        let larger = body.bin("stablehlo.and", &better, &numbers);
        better = body.bin("stablehlo.or", &larger, &only_a);
        let neither = body.bin("stablehlo.and", &none_a, &none_b);
        tie = body.bin("stablehlo.or", &tie, &neither);
    }
    let earlier = body.bin("stablehlo.and", &tie, &before);
    body.bin("stablehlo.or", &better, &earlier)
}

fn reduce_with(
    body: &mut Body<'_, '_>,
    graph: &Graph,
    axes: &[usize],
    inputs: &[Val],
    types: &[Type],
) -> Result<Vec<Val>> {
    if inputs[0].ty.size() == 0 {
        let starts = inputs[types.len()..].iter().zip(types);
        return Ok(starts.map(|(start, ty)| body.spread(start, &ty.shape)).collect());
    }
    // Of several operands some of less than a byte have layouts of their own, which XLA's GPU compiler then refuses.
    let carried = |ty: &Type| Type::new(carrier(ty.dtype), &ty.shape);
    let cells: Vec<Type> = graph.param_types().iter().map(carried).collect();
    let joining = |body: &mut Body<'_, '_>, some: std::ops::Range<usize>| {
        body.region(&cells, |body, cells| {
            let cells = cells.iter().zip(graph.param_types());
            let narrow = cells.map(|(v, ty)| convert::convert(body, v, ty.dtype)).collect::<Result<Vec<_>>>()?;
            let joined = body.inline(graph, &narrow)?;
            joined[some].iter().map(|v| convert::convert(body, v, carrier(v.dtype()))).collect()
        })
    };
    let wide = inputs.iter().map(|v| convert::convert(body, v, carrier(v.dtype()))).collect::<Result<Vec<_>>>()?;
    let results = if axes.iter().all(|&a| inputs[0].shape()[a] == 1) {
        // Of one element compilers make the result, whatever it starts from: the two are joined here.
        let (shape, count) = (&types[0].shape, types.len());
        let joined: Vec<Val> = wide[count..].iter().map(|start| body.spread(start, shape)).collect();
        let elements: Vec<Val> = wide[..count].iter().map(|x| body.reshape(x, shape)).collect();
        let operands: Vec<&Val> = joined.iter().chain(&elements).collect();
        let axes = array(&(0..shape.len()).collect::<Vec<_>>());
        let mut result = |k: usize| {
            let rest = format!("({}) {{dimensions = {axes}}}", joining(body, k..k + 1)?);
            Ok(body.op("stablehlo.map", &operands, &rest, &carried(&types[k])))
        };
        (0..count).map(&mut result).collect::<Result<Vec<_>>>()?
    } else {
        let rest = format!("({}) {{dimensions = {}}}", joining(body, 0..types.len())?, array(axes));
        let carried: Vec<Type> = types.iter().map(carried).collect();
        body.ops("stablehlo.reduce", &wide.iter().collect::<Vec<_>>(), &rest, &carried)
    };
    results.iter().zip(types).map(|(v, ty)| convert::convert(body, v, ty.dtype)).collect()
}
