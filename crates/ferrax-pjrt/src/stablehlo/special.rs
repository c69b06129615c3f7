//! Special functions, as the graphs of `expand`: `chlo` has some of them, but without the incomplete gamma functions, and
//! with an `erfc` that loses the digits of x² in its exponential.
//!
//! Measured against the CPU engine on XLA's CPU plugin, in units in the last place: f32 results are the same (the inverse
//! error function: 2 apart), as they come by way of f64; in f64 erf and zeta are 1 apart, digamma and the inverse error
//! function 2, erfc and ln Γ 4, the Bessel functions 9, and the incomplete gamma functions 12. Digamma and ln Γ count
//! near zeros between their poles in units of 1.

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
