//! Where the machine is not: every loop runs its body step by step.

use ferrax_loops::{Graph, Node};

/// No loops: there is no value of this type.
pub(crate) enum RegisterLoop {}

pub(crate) fn plan(_: &Graph, _: &Node) -> Option<RegisterLoop> {
    None
}

impl RegisterLoop {
    pub fn describe(&self, _: &Graph, _: &Node, _: &mut String) -> std::fmt::Result {
        match *self {}
    }

    pub unsafe fn run(&self, _: &[*mut u8], _: &[*mut u8]) {
        match *self {}
    }
}
