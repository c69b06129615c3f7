//! Dot products.

use super::body::{Body, Val};
use ferrax_base::{Result, bail};
use ferrax_loops::{DotDims, Type};

pub(super) fn node(_: &mut Body<'_, '_>, dims: &DotDims, _: &[Val], _: &Type) -> Result<Val> {
    bail!(NotImplemented, "{dims:?} is not printed as StableHLO yet")
}
