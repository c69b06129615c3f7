//! Dot products, at full precision where nothing says that TF32 is enough.
//!
//! Products and sums are of the dtype that the CPU engine takes: f32 for narrower floats, bytes for sub-byte integers. 16-bit
//! operands of one dtype stay as they are and are summed in f32, which is what matrix units do.

use super::body::{Body, Val};
use super::convert;
use super::elementwise::compute_dtype;
use super::types::list;
use ferrax_base::{DType, Result, Scalar};
use ferrax_loops::{DotDims, Type};

pub(super) fn node(body: &mut Body<'_, '_>, dims: &DotDims, inputs: &[Val], ty: &Type) -> Result<Val> {
    let (lhs, rhs) = (&inputs[0], &inputs[1]);
    if ty.size() == 0 || lhs.ty.size() == 0 {
        return Ok(body.splat(Scalar::zero(ty.dtype), &ty.shape));
    }
    let sum = if ty.dtype.is_bool() {
        // A sum of zeros and ones is above 0 if one of them is 1, rounded or not.
        DType::F32
    } else {
        accumulation(lhs.dtype(), rhs.dtype(), ty.dtype)
    };
    let half = |v: &Val| matches!(v.dtype(), DType::F16 | DType::BF16);
    let same = lhs.dtype() == rhs.dtype() && half(lhs) && sum == DType::F32;
    let operand = if same { lhs.dtype() } else { sum };
    let (lhs, rhs) = (convert::convert(body, lhs, operand)?, convert::convert(body, rhs, operand)?);
    let numbers = format!(
        "#stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
         lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>",
        list(&dims.lhs_batch),
        list(&dims.rhs_batch),
        list(&dims.lhs_contract),
        list(&dims.rhs_contract)
    );
    let rest = format!("{{dot_dimension_numbers = {numbers}, {}}}", precision(dims.tf32));
    let product = body.op("stablehlo.dot_general", &[&lhs, &rhs], &rest, &Type::new(sum, &ty.shape));
    convert::convert(body, &product, ty.dtype)
}

/// The dtype in which products are summed.
fn accumulation(lhs: DType, rhs: DType, out: DType) -> DType {
    let c = compute_dtype(out);
    let wide = [compute_dtype(lhs), compute_dtype(rhs)].into_iter().find(|d| d.size() > c.size());
    match wide {
        Some(d) if d.category() == c.category() && d.is_inexact() => d,
        _ => c,
    }
}

/// With which precision operands are multiplied: as they are, or as the compiler likes, which is TF32 on GPUs for f32.
pub(super) fn precision(tf32: bool) -> String {
    let each = if tf32 { "#stablehlo<precision DEFAULT>" } else { "#stablehlo<precision HIGHEST>" };
    format!("precision_config = [{each}, {each}]")
}
