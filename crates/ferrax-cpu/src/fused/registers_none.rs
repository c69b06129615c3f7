//! Where the machine is not: every loop runs its body step by step.

use ferrax_loops::{Graph, Node};

/// No loops: there is no value of this type.
pub(crate) enum RegisterLoop {}

/// No groups.
pub(crate) enum Tiles {}

impl Tiles {
    pub unsafe fn prepare(&self, _: *mut u8) {
        match *self {}
    }

    pub unsafe fn run(&self, _: *mut u8, _: &[*mut u8]) {
        match *self {}
    }

    pub fn describe(&self, _: &Graph, _: &mut String) -> std::fmt::Result {
        match *self {}
    }

    pub fn streams(&self) -> (&[Stream], &[Stream]) {
        match *self {}
    }
}

/// An array or a number that a group reads or writes.
pub(crate) struct Stream {
    pub slot: u32,
    pub bytes: usize,
}

impl RegisterLoop {
    pub fn describe(&self, _: &Graph, _: &Node, _: &mut String) -> std::fmt::Result {
        match *self {}
    }

    pub unsafe fn run(&self, _: &[*mut u8], _: &[*mut u8]) {
        match *self {}
    }
}
