//! Special functions: placeholder of a family, filled by its author.

use super::body::{Body, Val};
use ferrax_base::{Result, bail};
use ferrax_loops::{BinaryOp, UnaryOp};

/// A special function of one operand, a float of at least 32 bits.
pub(super) fn unary(_: &mut Body<'_, '_>, op: UnaryOp, x: &Val) -> Result<Val> {
    bail!(NotImplemented, "{op:?} of {} is not printed as StableHLO yet", x.dtype())
}

/// A special function of two operands of one shape and dtype, a float of at least 32 bits.
pub(super) fn binary(_: &mut Body<'_, '_>, op: BinaryOp, x: &Val, _: &Val) -> Result<Val> {
    bail!(NotImplemented, "{op:?} of {} is not printed as StableHLO yet", x.dtype())
}
