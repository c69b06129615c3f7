//! Small groups of elementwise nodes in the machine's registers: a register of elements a step, no tables to make.
//!
//! What a region (`region`) spends on finding operands, on pieces and on tiles that reach past the end is more than such
//! a group's work, and a loop's body runs it every step. Its memory is part of the frame: constants are put there
//! once, a run writes the operands' addresses. Results are written after all operands of the same elements were read,
//! so that they may take the place of operands.

use crate::machine::handler::Instr;
use crate::machine::loops;
use crate::machine::loops::families::Width;
use crate::simd::Isa;
use ferrax_loops::Graph;
use std::fmt::Write;

/// A group's program.
pub(crate) struct Tiles {
    pub isa: Isa,
    pub lane: Width,
    pub code: Vec<Instr>,
    /// Steps with a whole register each, and elements after them.
    pub whole: usize,
    pub rest: usize,
    /// Where the group's memory begins in the frame's.
    pub memory: usize,
    /// Places of constants, and the bits of their lanes.
    pub constants: Vec<(u32, u64)>,
    /// The addresses that it is given, those of results last.
    pub streams: Vec<Stream>,
    pub writes: usize,
    /// For printing.
    pub nodes: Vec<u32>,
    pub n: usize,
}

/// An array or a number that a group reads or writes.
#[derive(Clone, Copy)]
pub(crate) struct Stream {
    /// The place of its address.
    pub at: u32,
    pub slot: u32,
    pub bytes: usize,
}

impl Tiles {
    /// Puts the constants in place, where the frame's memory for groups begins at `base`.
    ///
    /// # Safety
    /// The frame must be of the group's program.
    pub unsafe fn prepare(&self, base: *mut u8) {
        let base = base.wrapping_add(self.memory);
        // SAFETY: the planner counted the group's memory.
        unsafe {
            base.cast::<[u32; 16]>().write(if self.whole == 0 { self.mask() } else { [!0; 16] });
            for &(at, bits) in &self.constants {
                match self.lane {
                    Width::Four => base.add(at as usize).cast::<[u32; 16]>().write([bits as u32; 16]),
                    Width::Eight => base.add(at as usize).cast::<[u64; 8]>().write([bits; 8]),
                }
            }
        }
    }

    /// The lanes of the last register that have elements.
    fn mask(&self) -> [u32; 16] {
        let rest = self.rest * self.lane.bytes() / 4;
        std::array::from_fn(|i| if i < rest { !0 } else { 0 })
    }

    /// What the group reads and what it writes.
    pub fn streams(&self) -> (&[Stream], &[Stream]) {
        self.streams.split_at(self.streams.len() - self.writes)
    }

    /// What the group computes.
    pub fn describe(&self, g: &Graph, out: &mut String) -> std::fmt::Result {
        writeln!(out, "kernel[{}] in registers:", self.n)?;
        self.nodes.iter().try_for_each(|&node| writeln!(out, "      {}", g.node_text(node as usize)))
    }
}

impl Tiles {
    /// Runs a group.
    ///
    /// # Safety
    /// The memory for groups that begins at `base` and the slots must be those of a run of the group's program, and constants
    /// in place.
    pub unsafe fn run(&self, base: *mut u8, slots: &[*mut u8]) {
        let base = base.wrapping_add(self.memory);
        // SAFETY: the planner gave operands and results memory for n elements; the mask keeps the last register inside.
        unsafe {
            for &Stream { at, slot, .. } in &self.streams {
                base.add(at as usize).cast::<*mut u8>().write(slots[slot as usize]);
            }
            let code = self.code.as_ptr();
            if self.whole > 0 {
                loops::run(self.isa, code, code, base, 0, self.whole);
            }
            if self.whole == 0 {
                loops::run(self.isa, code, code, base, 0, 1);
            } else if self.rest > 0 {
                let mask = base.cast::<[u32; 16]>();
                mask.write(self.mask());
                loops::run(self.isa, code, code, base, self.whole, 1);
                mask.write([!0; 16]);
            }
        }
    }
}
