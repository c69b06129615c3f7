//! Constants, and nodes that move elements without computing.

use super::body::{Body, Val};
use super::convert;
use super::types::{array, dense};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Kind, Type};

/// Nodes without operands.
pub(super) fn source(body: &mut Body<'_, '_>, kind: &Kind, ty: &Type) -> Result<Val> {
    match kind {
        Kind::Const(scalar) => Ok(body.splat(*scalar, &ty.shape)),
        Kind::Dense(bytes) => {
            if bytes.len() < ty.bytes() {
                bail!(Internal, "a constant of {ty:?} has {} bytes", bytes.len());
            }
            let flat = Type::new(ty.dtype, &[ty.size()]);
            let value = dense(&bytes[..ty.bytes()], &flat);
            let line = body.op("stablehlo.constant", &[], &format!("{{value = {value}}}"), &flat);
            Ok(body.reshape(&line, &ty.shape))
        }
        Kind::Iota(axis) => {
            let d = ty.dtype;
            if matches!(d, DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::F64) {
                return Ok(body.iota(d, &ty.shape, *axis));
            }
            // Others wrap or round as conversions do.
            let index = body.iota(DType::I32, &ty.shape, *axis);
            convert::convert(body, &index, d)
        }
        other => bail!(Internal, "{other:?} has operands"),
    }
}

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    if matches!(kind, Kind::Barrier) {
        let operands: Vec<&Val> = inputs.iter().collect();
        return Ok(if inputs.is_empty() {
            Vec::new()
        } else {
            body.ops("stablehlo.optimization_barrier", &operands, "", types)
        });
    }
    one(body, kind, inputs, &types[0]).map(|v| vec![v])
}

/// The dtype that elements below a byte move as: plugins may end the process on some movements of such elements.
pub(super) fn carrier(d: DType) -> DType {
    match d {
        DType::I2 | DType::I4 => DType::I8,
        DType::U2 | DType::U4 => DType::U8,
        // It has all of that format's numbers, -0 too.
        DType::F4E2M1FN => DType::F8E4M3FN,
        d => d,
    }
}

fn one(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], ty: &Type) -> Result<Val> {
    let carrier = carrier(ty.dtype);
    if carrier == ty.dtype {
        return moved(body, kind, inputs, ty);
    }
    let wide: Vec<Val> = inputs.iter().map(|x| body.convert(x, carrier)).collect();
    let result = moved(body, kind, &wide, &Type::new(carrier, &ty.shape))?;
    Ok(body.convert(&result, ty.dtype))
}

fn moved(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], ty: &Type) -> Result<Val> {
    let x = &inputs[0];
    Ok(match kind {
        Kind::Broadcast(dims) => body.broadcast(x, &ty.shape, dims),
        Kind::Reshape => body.reshape(x, &ty.shape),
        Kind::Transpose(perm) => {
            body.op("stablehlo.transpose", &[x], &format!("{{permutation = {}}}", array(perm)), ty)
        }
        Kind::Slice(s) => body.strided_slice(x, (&s.start, &s.limit, &s.stride), &ty.shape),
        Kind::Pad(axes) => {
            let low: Vec<i64> = axes.iter().map(|a| a.low).collect();
            let high: Vec<i64> = axes.iter().map(|a| a.high).collect();
            let interior: Vec<usize> = axes.iter().map(|a| a.interior).collect();
            let rest = format!(
                "{{edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}}}",
                array(&low),
                array(&high),
                array(&interior)
            );
            body.op("stablehlo.pad", &[x, &inputs[1]], &rest, ty)
        }
        Kind::Rev(axes) => body.op("stablehlo.reverse", &[x], &format!("{{dimensions = {}}}", array(axes)), ty),
        Kind::Concat(axis) => body.concat(&inputs.iter().collect::<Vec<_>>(), *axis),
        other => bail!(Internal, "{other:?} does not move elements"),
    })
}
