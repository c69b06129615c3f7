//! Regions: groups of nodes that the threaded machine runs over blocks of rows.
//!
//! A region has `n` elements in rows of `inner`. Its phases run one after the other on a block of rows that stays in
//! the cache: programs over all elements, whose results may be reduced row by row, and programs over one value a
//! row. So softmax, layernorm, logsumexp and the like take one pass over memory. Values that cross phases and are not
//! results live in the block's scratch memory; all others are in the machine's accumulator or tiles.
//!
//! Reductions over columns take in the rows of a block when a phase is done with them; their results are there after
//! the region (`columns.rs`).
//!
//! The order of a reduction depends on the row's length alone, so results do not depend on blocks or threads.
//! Read next: `plan/region/mod.rs` for how regions are made, `run.rs` for how they run, `machine` for the programs.

pub mod columns;
mod print;
pub mod rows;
mod run;
pub mod terms;
mod touches;

use crate::library::views::Rows;
use crate::machine::assemble::Place;
use crate::machine::handler::Instr;
use crate::simd::Isa;
use columns::Column;
use ferrax_base::DType;
use rows::{FromMemory, RowReducer};

/// The regions of a program, all their parts in a few arrays.
#[derive(Default)]
pub(crate) struct Regions {
    pub list: Vec<Region>,
    pub phases: Vec<Phase>,
    pub code: Vec<Instr>,
    pub places: Vec<Place>,
    pub reduces: Vec<Reduce>,
    pub expands: Vec<Expand>,
    pub puts: Vec<Expand>,
    pub columns: Vec<Column>,
    /// Where the rows of views begin.
    pub views: Vec<Rows>,
    /// What each region computes, for printing: (member range of the order, in text form).
    pub notes: Vec<Note>,
}

/// A node of a region as it is printed.
#[derive(Clone, Copy)]
pub(crate) struct Note {
    pub node: u32,
    pub phase: u32,
}

pub(crate) type Range = (u32, u32);

#[derive(Clone, Copy)]
pub(crate) struct Region {
    pub n: usize,
    pub inner: usize,
    /// Bytes of a lane.
    pub lane: usize,
    /// Whose registers: the narrow ones where a tile of the others is longer than a row.
    pub isa: Isa,
    pub phases: Range,
    pub columns: Range,
    /// Rows of a block; all of them where the rows are one.
    pub block: usize,
    /// Bytes of scratch memory that a worker needs.
    pub scratch: usize,
    /// Offsets in it: tiles first, then the accumulators of reductions, staged tiles, the arrays.
    pub states: usize,
    pub staged: usize,
    pub arrays: usize,
    /// A guess of the time an element takes, in picoseconds.
    pub cost: u32,
    /// Results are written past the caches, so that the run ends with a fence.
    pub streams: bool,
    pub notes: Range,
}

#[derive(Clone, Copy)]
pub(crate) struct Phase {
    /// Elements of a run are rows: one value each.
    pub over_rows: bool,
    /// Each row has a run of its own, because scalars or reductions belong to a row.
    pub by_row: bool,
    /// Rows begin with their last tile, if whole tiles leave a rest: nothing is reduced.
    pub last_first: bool,
    /// One run goes through many rows: their places are at regular distances, and nothing is reduced.
    pub in_rows: bool,
    /// Tiles hold more than a row, and rows of some places lie apart.
    pub apart: bool,
    /// With either: how many rows, from each multiple of that on, are at regular distances; 0 for all.
    pub group: usize,
    /// The last tile may read and write past the row's end where the operands go on: reductions leave it out.
    pub reach: bool,
    /// First instruction; `u32::MAX` when there is no program.
    pub code: u32,
    pub places: Range,
    pub reduces: Range,
    pub columns: Range,
    pub expands: Range,
    pub puts: Range,
}

/// A reduction of rows at the end of a phase.
#[derive(Clone, Copy)]
pub(crate) struct Reduce {
    pub reducer: RowReducer,
    /// How lanes in memory are taken in.
    pub memory: FromMemory,
    /// What is reduced: lanes in memory, or the accumulators that the phase's program fills.
    pub from: Place,
    /// What the lanes in memory are put together with (`terms.rs`).
    pub with: Option<Place>,
    /// Where the results go.
    pub to: Place,
    pub dtype: DType,
}

/// An operand that is spread to full size in scratch memory, where rows are too short to run one by one; or a result
/// there that goes to rows elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct Expand {
    pub from: Place,
    pub to: Place,
    pub size: u8,
    /// It is the same for every block.
    pub same: bool,
}
