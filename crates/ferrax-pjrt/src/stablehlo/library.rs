//! Library calls: sorts, transforms, factorizations, random bits. What StableHLO has no operation of is printed as the
//! function that its graph of simpler nodes becomes. Read next: `ferrax_loops::expand`, `conv.rs`.

use super::body::{Body, Val};
use super::types::array;
use super::{conv, elementwise};
use ferrax_base::{Result, Scalar, bail, error};
use ferrax_loops::expand::{self, expansion};
use ferrax_loops::fft::FftKind;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Kind, Type};
use std::sync::Arc;

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    match kind {
        Kind::Sort { axis, num_keys, stable } if inputs[..*num_keys].iter().all(|x| expand::is_key(x.dtype())) => {
            sort(body, (*axis, *num_keys, *stable), inputs, types)
        }
        Kind::Fft { kind, axes } => fft(body, *kind, *axes, &inputs[0], &types[0]).map(|v| vec![v]),
        Kind::Conv(dims) => conv::node(body, dims, inputs, &types[0]).map(|v| vec![v]),
        Kind::Linalg(LinalgOp::Cholesky) => cholesky(body, &inputs[0]).map(|v| vec![v]),
        Kind::Linalg(op @ LinalgOp::TriangularSolve { .. }) => triangular_solve(body, *op, inputs).map(|v| vec![v]),
        Kind::Host(call) if let Some(target) = call.0.target() => bail!(
            NotImplemented,
            "the plugin of the platform {} is not handed the FFI target {target:?}: ferrax runs foreign functions on \
             the CPU engine, jax.devices(\"cpu\")",
            body.module.target.platform
        ),
        Kind::Host(call) => bail!(
            NotImplemented,
            "a program that calls the host, as {call:?} does, is no single StableHLO module: on platforms of XLA it is \
             cut at its calls, and `lowered.compile().as_text()` shows the programs between them"
        ),
        kind => expanded(body, kind, inputs, types),
    }
}

/// A call of the graph that a node stands for.
pub(super) fn expanded(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    let operands: Vec<Type> = inputs.iter().map(|x| x.ty.clone()).collect();
    let graph = expansion(kind, &operands, types)?;
    let graph = graph.ok_or_else(|| error!(NotImplemented, "the XLA engine has no {kind:?}"))?;
    body.call(&Arc::new(graph), inputs)
}

/// A sort by integers.
fn sort(
    body: &mut Body<'_, '_>,
    (axis, num_keys, stable): (usize, usize, bool),
    inputs: &[Val],
    types: &[Type],
) -> Result<Vec<Val>> {
    if inputs[0].ty.size() == 0 {
        return Ok(inputs.to_vec());
    }
    let cells: Vec<Type> = inputs.iter().flat_map(|x| [Type::new(x.dtype(), &[]), Type::new(x.dtype(), &[])]).collect();
    let region = body.region(&cells, |body, cells| {
        // The last key decides where all before it are equal.
        let pair = |i: usize| (&cells[2 * i], &cells[2 * i + 1]);
        let (x, y) = pair(num_keys - 1);
        let mut less = elementwise::compare(body, CompareOp::Lt, x, y)?;
        for i in (0..num_keys - 1).rev() {
            let (x, y) = pair(i);
            let same = elementwise::compare(body, CompareOp::Eq, x, y)?;
            let before = elementwise::compare(body, CompareOp::Lt, x, y)?;
            less = body.select(&same, &less, &before);
        }
        Ok(vec![less])
    })?;
    let operands: Vec<&Val> = inputs.iter().collect();
    let rest = format!("({region}) {{dimension = {axis} : i64, is_stable = {stable}}}");
    Ok(body.ops("stablehlo.sort", &operands, &rest, types))
}

/// Axes that the compiler transforms at once.
const TOGETHER: usize = 3;

/// `Fft`.
fn fft(body: &mut Body<'_, '_>, kind: FftKind, axes: usize, x: &Val, ty: &Type) -> Result<Val> {
    if ty.size() == 0 || axes == 0 {
        return Ok(if axes == 0 { x.clone() } else { body.splat(Scalar::zero(ty.dtype), &ty.shape) });
    }
    let rank = ty.shape.len();
    let last = rank - axes.min(TOGETHER);
    let others = rank - axes..last;
    match kind {
        FftKind::RealInverse => {
            let y = complex_axes(body, "IFFT", x.clone(), others);
            Ok(transform(body, "IRFFT", &y, ty, last))
        }
        FftKind::Real => {
            let y = transform(body, "RFFT", x, ty, last);
            Ok(complex_axes(body, "FFT", y, others))
        }
        FftKind::Forward | FftKind::Inverse => {
            let name = if kind == FftKind::Forward { "FFT" } else { "IFFT" };
            let y = transform(body, name, x, ty, last);
            Ok(complex_axes(body, name, y, others))
        }
    }
}

/// One operation over the axes from `first` on; the lengths are those of the real side.
fn transform(body: &mut Body<'_, '_>, name: &str, x: &Val, ty: &Type, first: usize) -> Val {
    let whole = if name == "RFFT" { x.shape() } else { &ty.shape };
    let lengths = array(&whole[first..]);
    let rest = format!("{{fft_type = #stablehlo<fft_type {name}>, fft_length = {lengths}}}");
    body.op("stablehlo.fft", &[x], &rest, ty)
}

/// Complex transforms along each of these axes, which come last for it.
fn complex_axes(body: &mut Body<'_, '_>, name: &str, mut x: Val, axes: std::ops::Range<usize>) -> Val {
    for axis in axes {
        let last = x.shape().len() - 1;
        let mut perm: Vec<usize> = (0..=last).collect();
        perm.swap(axis, last);
        let turned = transposed(body, &x, &perm);
        let ty = turned.ty.clone();
        let y = transform(body, name, &turned, &ty, last);
        x = transposed(body, &y, &perm);
    }
    x
}

pub(super) fn transposed(body: &mut Body<'_, '_>, x: &Val, perm: &[usize]) -> Val {
    let shape: Vec<usize> = perm.iter().map(|&p| x.shape()[p]).collect();
    let rest = format!("{{permutation = {}}}", array(perm));
    body.op("stablehlo.transpose", &[x], &rest, &Type::new(x.dtype(), &shape))
}

/// `Cholesky`.
fn cholesky(body: &mut Body<'_, '_>, a: &Val) -> Result<Val> {
    if a.ty.size() == 0 {
        return Ok(a.clone());
    }
    let l = body.op("stablehlo.cholesky", &[a], "{lower = true}", &a.ty);
    let shown = expand::cholesky_shown(&l.ty)?;
    Ok(body.call(&Arc::new(shown), &[l])?.swap_remove(0))
}

/// `TriangularSolve`.
fn triangular_solve(body: &mut Body<'_, '_>, op: LinalgOp, inputs: &[Val]) -> Result<Val> {
    let LinalgOp::TriangularSolve { left, lower, transpose, conjugate, unit } = op else {
        bail!(Internal, "{op:?} is no triangular solve");
    };
    let (a, b) = (inputs[0].clone(), &inputs[1]);
    if b.ty.size() == 0 {
        return Ok(b.clone());
    }
    let conjugate = conjugate && a.dtype().is_complex();
    let (a, how) = match (transpose, conjugate) {
        (true, true) => (a, "ADJOINT"),
        (true, false) => (a, "TRANSPOSE"),
        (false, false) => (a, "NO_TRANSPOSE"),
        (false, true) => {
            let conjugated = elementwise::unary(body, ferrax_loops::UnaryOp::Conj, &a)?;
            (conjugated, "NO_TRANSPOSE")
        }
    };
    let rest = format!(
        "{{left_side = {left}, lower = {lower}, unit_diagonal = {unit}, transpose_a = #stablehlo<transpose {how}>}}"
    );
    Ok(body.op("stablehlo.triangular_solve", &[&a, b], &rest, &b.ty))
}
