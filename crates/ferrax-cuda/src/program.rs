//! What a kernel graph becomes: the source of its kernels, the memory that it takes, and the steps of a run, as data.
//!
//! Whoever plans writes it and whoever runs it, on a device or on the host in tests, only reads. Invariants: every span
//! lies inside its place; a step reads only what parameters, constants and steps before it wrote; steps run one after
//! another, as on one stream. Booleans are bytes that hold 0 or 1, and numbers of 4 bits or less lie in bytes of their own,
//! with their sign. A result that takes a parameter's memory is written as that parameter, which is read until then; no
//! other parameter is written. Arrays of the temporary memory begin at multiples of 256 bytes, and kernels read vectors of
//! 16 bytes where the places that they are given begin at multiples of that. Sources are for C++17, `--fmad=false` and
//! no fast mathematics; a kernel has several blocks and threads along the first axis alone, and computes everything for
//! any number of blocks.

use crate::print::device::needed;
use crate::routine::Routine;
use ferrax_loops::Type;
use ferrax_loops::kind::Bytes;

/// A plan to run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The kernels.
    pub units: Vec<Unit>,
    /// What a run is given.
    pub params: Vec<Type>,
    /// What a run gives.
    pub results: Vec<Output>,
    /// Arrays that are in the device's memory as long as the program is.
    pub constants: Vec<Bytes>,
    /// Bytes of temporary memory that a run takes, as one block aligned to 256 bytes.
    pub arena: usize,
    /// What a run does.
    pub steps: Vec<Step>,
}

/// A kernel, whose name says what it does: the same one in every program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name of its `extern "C" __global__` function.
    pub kernel: String,
    /// Its CUDA C, but for the functions of `print::device` that it calls.
    pub text: String,
}

/// CUDA C of kernels, with the functions that they call; empty where there is none.
pub fn source<'a>(units: impl IntoIterator<Item = &'a Unit>) -> String {
    let text: String = units.into_iter().flat_map(|unit| [unit.text.as_str(), "\n"]).collect();
    if text.is_empty() { text } else { needed(&text) + &text }
}

impl Program {
    /// CUDA C of all kernels.
    pub fn source(&self) -> String {
        source(&self.units)
    }
}

/// A result of a program.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its type.
    pub ty: Type,
    /// The donated parameter whose memory it takes: steps write it there, as [`Place::Param`].
    pub takes: Option<usize>,
}

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a parameter, by its number.
    Param(usize),
    /// In a result, by its number.
    Result(usize),
    /// In a constant, by its number.
    Constant(usize),
    /// In the temporary memory.
    Arena,
}

/// Bytes of a place that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Where they lie.
    pub place: Place,
    /// The first of them, counted from the place's beginning.
    pub offset: usize,
    /// How many there are.
    pub bytes: usize,
}

/// One step of a run.
#[derive(Clone, Debug)]
pub enum Step {
    /// Starts a kernel.
    Launch(Launch),
    /// Copies bytes; the spans are of one length and do not overlap.
    Copy {
        /// What is copied.
        from: Span,
        /// Where to.
        to: Span,
    },
    /// Sets every byte.
    Fill {
        /// Which bytes.
        to: Span,
        /// To what.
        byte: u8,
    },
    /// Calls a function of one of NVIDIA's libraries.
    Call {
        /// What it computes.
        routine: Routine,
        /// What it reads, in the routine's order; the first of them begins at a multiple of 16 bytes, as all others do.
        reads: Vec<Span>,
        /// What it writes, in the routine's order; disjoint from what it reads. Factorizations read their matrices there.
        writes: Vec<Span>,
    },
    /// Runs `cond`, then, where the byte at `flag` is not 0, `body` and everything again.
    While {
        /// Steps that write the flag.
        cond: Vec<Step>,
        /// One byte.
        flag: Span,
        /// Steps of an iteration.
        body: Vec<Step>,
    },
    /// Runs `body` so many times, with the number of the iteration, counted from 0, as an int64 at `counter`.
    Repeat {
        /// How many times.
        count: u64,
        /// Eight bytes.
        counter: Span,
        /// Steps of an iteration.
        body: Vec<Step>,
    },
    /// Runs the branch whose number is the int32 at `index`; a number outside means the nearest branch.
    Switch {
        /// Four bytes.
        index: Span,
        /// The branches; there is at least one.
        branches: Vec<Vec<Step>>,
    },
}

/// A kernel with its shape and arguments.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The name of a unit's function.
    pub kernel: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block; 1,024 at the most.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: u32,
    /// The function's parameters, in order.
    pub args: Vec<Argument>,
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A pointer to the first byte of a span.
    Memory(Span),
    /// A `long long`.
    Int(i64),
}
