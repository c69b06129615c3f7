//! Where the machine is not: every loop runs its body step by step.

use crate::exec::Frame;
use crate::plan::Planner;
use ferrax_loops::{Graph, Node};

/// No loops: there is no value of this type.
pub(crate) enum RegisterLoop {}

/// No groups.
pub(crate) enum Tiles {}

impl Tiles {
    pub unsafe fn prepare(&self, _: *mut u8) {
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

impl Planner<'_> {
    pub fn emit_tiles(&mut self, _: u32, _: u32, _: u32, _: usize) -> bool {
        false
    }
}

impl Frame {
    pub unsafe fn run_tiles(&self, tiles: &Tiles) {
        match *tiles {}
    }
}

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
