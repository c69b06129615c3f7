//! Where the machine is not: groups run kernel by kernel, and reductions are nodes of their own.

use super::Planner;
use ferrax_base::{Result, bail};
use ferrax_loops::passes::Target;
use ferrax_loops::passes::order::Shape;

/// No tables.
pub(crate) struct Scratch;

impl Scratch {
    pub fn new(_: usize) -> Self {
        Scratch
    }
}

pub(crate) fn target() -> Option<&'static dyn Target> {
    None
}

impl Planner<'_> {
    pub fn emit_region(&mut self, _: u32, _: (u32, u32), _: Shape) -> Result<()> {
        bail!(Internal, "a region without a machine")
    }
}
