//! Where the machine is not: no loop and no group runs in registers.

use super::Planner;
use crate::fused::registers::RegisterLoop;
use ferrax_loops::{Graph, Node};
use std::sync::Arc;

impl Planner<'_> {
    pub fn emit_tiles(&mut self, _: u32, _: u32, _: u32, _: usize) -> bool {
        false
    }
}

pub(crate) fn plan(_: &Graph, _: &Node) -> Option<RegisterLoop> {
    None
}

pub(crate) fn lines(graph: Arc<Graph>) -> Arc<Graph> {
    graph
}
