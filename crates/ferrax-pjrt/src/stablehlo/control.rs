//! Placeholder of a family: filled by its author.

use super::body::{Body, Val};
use ferrax_base::{Result, bail};
use ferrax_loops::{Kind, Type};

pub(super) fn node(_: &mut Body<'_, '_>, kind: &Kind, _: &[Val], _: &[Type]) -> Result<Vec<Val>> {
    bail!(NotImplemented, "{kind:?} is not printed as StableHLO yet")
}
