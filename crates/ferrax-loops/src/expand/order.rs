//! Sorting by floats and the k largest, as sorts by integers that order as the numbers do: NaN last and all equal, -0.0
//! equal to 0.0 (in sorts; the k largest tell zeros apart). Comparisons of floats would take the smallest numbers for
//! zeros on machines that do so.

use super::code::X;
use crate::{BinaryOp, Kind};
use ferrax_base::{DType, Result, Scalar, bail};

/// The unsigned integer of a float's width, and the bits of its infinity.
fn layout(d: DType) -> Option<(DType, i64)> {
    Some(match d {
        DType::F16 => (DType::U16, 0x7c00),
        DType::BF16 => (DType::U16, 0x7f80),
        DType::F32 => (DType::U32, 0x7f80_0000),
        DType::F64 => (DType::U64, 0x7ff0_0000_0000_0000),
        _ => return None,
    })
}

/// An integer that orders as a float does; `total` tells zeros apart.
fn float_key(x: X<'_>, total: bool) -> X<'_> {
    let x = if layout(x.dtype()).is_some() { x } else { x.to(DType::F32) };
    let (integer, infinity) = layout(x.dtype()).unwrap_or((DType::U32, 0x7f80_0000));
    let word = |v: i64| x.code.scalar(Scalar::from_i64(integer, v));
    let sign = word(1i64.wrapping_shl(integer.bits() as u32 - 1));
    let bits = x.bits(integer);
    let size = bits & !sign;
    let bits = if total { bits } else { size.eq(0i64).pick(size, bits) };
    let flipped = (bits & sign).eq(0i64).pick(bits | sign, !bits);
    size.gt(word(infinity)).pick(word(-1), flipped)
}

/// Integers that order as the elements do, the first ones first.
fn keys(x: X<'_>, total: bool) -> Result<Vec<X<'_>>> {
    Ok(match x.dtype() {
        d if d.is_complex() => vec![float_key(x.re(), total), float_key(x.im(), total)],
        d if d.is_float() => vec![float_key(x, total)],
        d if d.is_bool() => vec![x.to(DType::U8)],
        d if d.is_integer() && d.bits() < 8 => vec![x.to(if d.is_signed() { DType::I8 } else { DType::U8 })],
        d if d.is_integer() => vec![x],
        d => bail!(NotImplemented, "the XLA engine cannot sort {d}"),
    })
}

/// `Sort`, by integers.
pub(super) fn sort<'c>(axis: usize, num_keys: usize, stable: bool, operands: &[X<'c>]) -> Result<Vec<X<'c>>> {
    let mut all = Vec::new();
    for &x in &operands[..num_keys] {
        all.extend(keys(x, false)?);
    }
    let count = all.len();
    // A key that is its own operand is sorted once.
    let own: Vec<bool> = operands.iter().enumerate().map(|(i, x)| i < num_keys && is_key(x.dtype())).collect();
    all.extend(operands.iter().zip(&own).filter(|(_, own)| !**own).map(|(x, _)| *x));
    let types: Vec<_> = all.iter().map(|x| x.ty()).collect();
    let sorted = operands[0].code.nodes(Kind::Sort { axis, num_keys: count, stable }, &all, &types);
    let (mut key, mut other) = (0, count);
    Ok(operands
        .iter()
        .zip(own)
        .enumerate()
        .map(|(i, (x, own))| {
            let here = key;
            key += if i >= num_keys {
                0
            } else if x.dtype().is_complex() {
                2
            } else {
                1
            };
            if own {
                return sorted[here];
            }
            other += 1;
            sorted[other - 1]
        })
        .collect())
}

/// Whether elements are compared as they are.
pub fn is_key(d: DType) -> bool {
    d.is_integer() && d.bits() >= 8
}

/// `TopK`: the largest along an axis, NaN first, and where they were; of equal ones the first.
pub(super) fn top_k<'c>(k: usize, axis: usize, x: X<'c>) -> Result<Vec<X<'c>>> {
    // Complements order the other way.
    let down = |key: X<'c>| match key.dtype() {
        d if d.is_signed() => !key,
        d => key.code.scalar(Scalar::from_i64(d, -1)).bin(BinaryOp::Sub, key),
    };
    let mut all: Vec<X<'c>> = keys(x, true)?.into_iter().map(down).collect();
    let num_keys = all.len();
    all.extend([x, x.code.iota(&x.shape(), axis)]);
    let types: Vec<_> = all.iter().map(|x| x.ty()).collect();
    let sorted = x.code.nodes(Kind::Sort { axis, num_keys, stable: true }, &all, &types);
    Ok(sorted[num_keys..].iter().map(|x| x.part(axis, 0, k)).collect())
}
