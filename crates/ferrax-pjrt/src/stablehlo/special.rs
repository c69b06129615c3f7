//! Special functions, as the graphs of `expand`: `chlo` has some of them, but by polynomials of less accuracy.

use super::body::{Body, Val};
use super::library::expanded;
use ferrax_base::Result;
use ferrax_loops::{BinaryOp, Kind, UnaryOp};

/// A special function of one operand, a float of at least 32 bits.
pub(super) fn unary(body: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    Ok(expanded(body, &Kind::Unary(op), std::slice::from_ref(x), std::slice::from_ref(&x.ty))?.swap_remove(0))
}

/// A special function of two operands of one shape and dtype, a float of at least 32 bits.
pub(super) fn binary(body: &mut Body<'_, '_>, op: BinaryOp, x: &Val, y: &Val) -> Result<Val> {
    let both = [x.clone(), y.clone()];
    Ok(expanded(body, &Kind::Binary(op), &both, std::slice::from_ref(&x.ty))?.swap_remove(0))
}
