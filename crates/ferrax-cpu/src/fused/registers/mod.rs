//! Loops that run in the machine's registers: `while` and `scan` of bodies over scalars, short vectors and small arrays.
//!
//! A value of the body is a scalar, or has the one number of elements that the vectors of the loop have, or has a few
//! elements: each is a scalar of its own, or they fill registers (`plan/registers/packed.rs`). Elements of vectors never
//! mix, so a loop over longer vectors runs whole for one register of elements after the other. Arrays that are only read and written at an index stay in
//! memory; both sides of a condition are computed. Loops that are something else (larger matrices, sorts, …) run their
//! body's steps one by one (`run/control.rs`), and so do those for which that is estimated to be quicker.
//!
//! The trip count is that of the scan, or what a condition `i < limit` with `i' = i + 1` says, or the condition
//! decides at each step. Integer carries that only count are not computed; what does not change is read from memory.
//! All lanes of a loop have as many bytes: 4, or 8 where it has numbers of 8, which then has no f32 and u32, and whose i32
//! are extended by their sign (`Translator::extended`).
//! Results have the bits of the kernel-by-kernel path: handlers compute the same expressions.
//! Small groups of elementwise nodes run there too, a register of elements a step (`tiles.rs`).
//! Read next: `run.rs`, `plan/registers/mod.rs` and `forms.rs` there, then `machine/loops`.

mod run;
pub mod tiles;

pub(crate) use tiles::Tiles;

use crate::machine::handler::Instr;
use crate::machine::loops::families::{self, Width};
use crate::machine::loops::fuse::Fused;
use crate::simd::Isa;
use ferrax_base::DType;
use ferrax_loops::{Graph, Node, Type};
use std::fmt::Write;

/// How a number lies in memory, whatever the lanes that hold it in the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// A byte of 0 or 1.
    Flag,
    /// 4 bytes that a lane of 8 extends by their sign.
    Signed,
    /// 4 bytes.
    Four,
    /// 8 bytes.
    Eight,
}

impl Held {
    pub fn of(d: DType) -> Held {
        match d.size() {
            1 => Held::Flag,
            4 if d.is_signed() => Held::Signed,
            4 => Held::Four,
            _ => Held::Eight,
        }
    }
}

/// The lanes that values of these types need; nothing where there are no handlers for such.
pub(crate) fn width_of<'a>(mut types: impl Iterator<Item = &'a Type>) -> Option<Width> {
    if types.any(|ty| ty.dtype.size() == 8) { families::WIDE.then_some(Width::Eight) } else { Some(Width::Four) }
}

/// Lanes of a register.
pub(crate) fn lanes_of(isa: Isa, lane: Width) -> usize {
    4 * isa.width() / lane.bytes()
}

/// The elements that a value has of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// One, in every lane.
    One,
    /// A register of them, another one each time that the loop runs.
    Turn,
    /// So many, in the first lanes.
    Few(usize),
}

impl Part {
    /// Whether lanes differ.
    pub fn is_vector(self) -> bool {
        self != Part::One
    }
}

/// Where the loop finds a number or an array of them at the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input {
    /// The place in the loop's memory.
    pub at: u32,
    /// The operand, or result.
    pub operand: usize,
    /// Which of its elements, or the first one.
    pub element: usize,
    pub part: Part,
    pub held: Held,
}

/// An array that the loop steps through, or a stacked result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    /// Where its address goes in the loop's memory.
    pub at: u32,
    /// The operand, or the result.
    pub index: usize,
    pub result: bool,
    /// Bytes from the array's start to the first step's element.
    pub offset: usize,
    pub vector: bool,
}

/// What an instruction that reads or writes at an index finds in the loop's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Where.
    pub at: u32,
    pub array: usize,
    /// Bytes from the array's start to the window of index 0.
    pub offset: usize,
    /// The largest index, and bytes from one to the next.
    pub last: usize,
    pub step: usize,
    pub vector: bool,
}

/// Where reads and writes at an index find what they need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrayWindow {
    pub window: Window,
    /// The operand, or the result.
    pub index: usize,
    pub result: bool,
}

/// How often a loop runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trips {
    /// This often.
    Fixed(usize),
    /// From an integer operand up to another operand or a number.
    Below { first: usize, limit: Limit, held: Held },
    /// Until the condition fails.
    Tested,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Operand(usize),
    Number(i64),
}

/// A carried integer that grows by the same amount every step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub operand: usize,
    pub result: usize,
    pub step: i64,
    pub held: Held,
}

/// Elements that vectors have at most: longer ones are better stepped through as tiles.
pub(crate) fn most_elements(isa: Isa) -> usize {
    (8 * isa.width()).max(64)
}

/// A loop's program and how to run it.
pub(crate) struct RegisterLoop {
    pub isa: Isa,
    pub lane: Width,
    /// Elements of the vectors, 1 if there are none.
    pub elements: usize,
    /// Whether each register of elements takes as many steps as its own need.
    pub apart: bool,
    pub code: Vec<Instr>,
    /// Where the code of its handlers is, where that was put together for it: it lives as long as the program.
    pub _fused: Option<Fused>,
    /// The instruction that jumps back go to.
    pub head: usize,
    /// Places of the loop's memory that hold constants, and the bits of their lanes.
    pub constants: Vec<(u32, u64)>,
    /// Those whose lanes differ.
    pub patterns: Vec<(u32, Vec<u64>)>,
    /// Places of the loop's memory.
    pub places: usize,
    pub inputs: Vec<Input>,
    pub streams: Vec<Stream>,
    pub windows: Vec<ArrayWindow>,
    /// Places where results are at the end, as inputs.
    pub outputs: Vec<Input>,
    /// Carried arrays that are written where they lie: operand, result, bytes.
    pub arrays: Vec<(usize, usize, usize)>,
    /// Carried values that stay as they are: operand, result, bytes.
    pub copies: Vec<(usize, usize, usize)>,
    pub counters: Vec<Counter>,
    /// Carried operands and results for when there is no step: operand, result, bytes.
    pub carried: Vec<(usize, usize, usize)>,
    pub trips: Trips,
    pub reverse: bool,
    /// Operations of a step, for printing.
    pub per_step: usize,
}

impl RegisterLoop {
    /// Elements of a vector that a register holds.
    fn lanes(&self) -> usize {
        lanes_of(self.isa, self.lane)
    }

    /// The loop as text: where it runs and what a step costs.
    pub fn describe(&self, g: &Graph, node: &Node, out: &mut String) -> std::fmt::Result {
        let outs: Vec<String> = node.outputs().map(|v| format!("%{}: {}", v.0, g.ty(v))).collect();
        let ins: Vec<String> = node.inputs.iter().map(|v| format!("%{}", v.0)).collect();
        write!(out, "{} = loop in registers {}: {} operations a step", outs.join(", "), ins.join(" "), self.per_step)?;
        match self.trips {
            Trips::Fixed(n) => write!(out, ", {n} steps")?,
            Trips::Below { .. } => write!(out, ", counted")?,
            Trips::Tested if self.apart => write!(out, ", while a condition holds for an element")?,
            Trips::Tested => write!(out, ", while a condition holds")?,
        }
        if self.elements > 1 { write!(out, ", {} elements", self.elements) } else { Ok(()) }
    }
}
