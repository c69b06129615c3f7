//! Where the machine is not: groups run kernel by kernel, and reductions are nodes of their own.

use super::Planner;
use super::order::Shape;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Graph, Node, ReduceOp};

/// No tables.
pub(crate) struct Scratch;

impl Scratch {
    pub fn new(_: usize) -> Self {
        Scratch
    }
}

pub(crate) fn available() -> bool {
    false
}

pub(crate) fn holds(_: DType) -> bool {
    false
}

pub(crate) const SHORT: usize = 128;

pub(crate) const WIDTHS: [usize; 2] = [4, 8];

pub(crate) fn takes(_: &Graph, _: &Node, _: usize) -> bool {
    false
}

pub(crate) fn takes_columns(_: usize, _: usize) -> bool {
    false
}

pub(crate) fn reduces(_: ReduceOp, _: DType) -> Option<usize> {
    None
}

impl Planner<'_> {
    pub fn emit_region(&mut self, _: u32, _: (u32, u32), _: Shape) -> Result<()> {
        bail!(Internal, "a region without a machine")
    }
}
