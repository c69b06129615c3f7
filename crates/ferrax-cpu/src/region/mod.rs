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
//! Read next: `plan.rs` here for how regions are made, `run.rs` for how they run, `machine` for the programs.

mod after;
mod columns;
mod plan;
mod print;
mod rows;
mod run;
mod terms;
mod touches;

pub(crate) use plan::{SHORT, Scratch};

use crate::machine::assemble::Place;
use crate::machine::handler::Instr;
use crate::machine::{self, table};
use crate::views::Rows;
use columns::Column;
use ferrax_base::DType;
use ferrax_loops::kind::{BinaryOp, Kind};
use ferrax_loops::{Graph, Node, ReduceOp};
use rows::{FromMemory, RowReducer};

/// The regions of a program, all their parts in a few arrays.
#[derive(Default)]
pub(crate) struct Regions {
    list: Vec<Region>,
    phases: Vec<Phase>,
    code: Vec<Instr>,
    places: Vec<Place>,
    reduces: Vec<Reduce>,
    expands: Vec<Expand>,
    columns: Vec<Column>,
    /// Where the rows of views begin.
    views: Vec<Rows>,
    /// What each region computes, for printing: (member range of the order, in text form).
    notes: Vec<Note>,
}

/// A node of a region as it is printed.
#[derive(Clone, Copy)]
struct Note {
    node: u32,
    phase: u32,
}

type Range = (u32, u32);

#[derive(Clone, Copy)]
struct Region {
    n: usize,
    inner: usize,
    /// Bytes of a lane.
    lane: usize,
    phases: Range,
    columns: Range,
    /// Rows of a block; all of them where the rows are one.
    block: usize,
    /// Bytes of scratch memory that a worker needs.
    scratch: usize,
    /// Offsets in it: tiles first, then the accumulators of reductions, staged tiles, the arrays.
    states: usize,
    staged: usize,
    arrays: usize,
    /// A guess of the time an element takes, in picoseconds.
    cost: u32,
    /// Results are written past the caches, so that the run ends with a fence.
    streams: bool,
    notes: Range,
}

#[derive(Clone, Copy)]
struct Phase {
    /// Elements of a run are rows: one value each.
    over_rows: bool,
    /// Each row has a run of its own, because scalars or reductions belong to a row.
    by_row: bool,
    /// The last tile may repeat elements of the one before: no result is in an operand's memory.
    overlap: bool,
    /// The last tile may read and write past the row's end where the operands go on: reductions leave it out.
    reach: bool,
    /// First instruction; `u32::MAX` when there is no program.
    code: u32,
    places: Range,
    reduces: Range,
    columns: Range,
    expands: Range,
}

/// A reduction of rows at the end of a phase.
#[derive(Clone, Copy)]
struct Reduce {
    reducer: RowReducer,
    /// How lanes in memory are taken in.
    memory: FromMemory,
    /// What is reduced: lanes in memory, or the accumulators that the phase's program fills.
    from: Place,
    /// What the lanes in memory are put together with (`terms.rs`).
    with: Option<Place>,
    /// Where the results go.
    to: Place,
    dtype: DType,
}

/// An operand that is spread to full size in scratch memory, where rows are too short to run one by one.
#[derive(Clone, Copy)]
struct Expand {
    from: Place,
    to: Place,
    size: u8,
}

/// Fewer columns would cut programs into rows too short.
const COLUMNS_FROM: usize = 16;
/// Fewer elements are reduced by a step of their own as quickly.
const FUSED_FROM: usize = 1024;

/// Whether there is a machine.
pub(crate) fn available() -> bool {
    machine::isa().is_some()
}

/// Whether lanes of some width hold a dtype.
pub(crate) fn holds(d: DType) -> bool {
    WIDTHS.iter().any(|&lane| table::holds(lane, d))
}

/// The widths of lanes, in bytes; the one that is preferred first.
pub(crate) const WIDTHS: [usize; 2] = [4, 8];

/// Whether the machine has what an elementwise node computes, in lanes of `lane` bytes.
pub(crate) fn takes(g: &Graph, node: &Node, lane: usize) -> bool {
    let d = |i: usize| g.ty(node.inputs[i]).dtype;
    let out = g.ty(node.first).dtype;
    let all = || node.inputs.iter().map(|&v| g.ty(v).dtype).chain([out]);
    if !all().all(|d| table::holds(lane, d)) {
        return false;
    }
    match &node.kind {
        Kind::Unary(op) => table::unary(lane, *op, d(0)).is_some(),
        Kind::Binary(op) => table::binary(lane, *op, d(0)).is_some(),
        Kind::Compare(op) => table::compare(lane, *op, d(0)).is_some(),
        Kind::Select => node.inputs.len() == 3 && d(0).is_bool(),
        Kind::Clamp => table::binary(lane, BinaryOp::Max, d(1)).is_some(),
        Kind::IntegerPow(n) => table::integer_pow(lane, *n, d(0)).is_some(),
        Kind::DivideBy(division) => table::divide_by(lane, division.part, d(0)).is_some(),
        Kind::Convert => table::convert(lane, d(0), out).is_some(),
        Kind::ReducePrecision { .. } => table::reduce_precision(lane, d(0)).is_some(),
        _ => false,
    }
}

/// Whether columns are reduced in a region: `inner` of them, of `n` elements.
pub(crate) fn takes_columns(inner: usize, n: usize) -> bool {
    (COLUMNS_FROM..=crate::columns::COLUMNS).contains(&inner) && n >= FUSED_FROM
}

/// The width of lanes in which rows of a dtype can be reduced.
pub(crate) fn reduces(op: ReduceOp, d: DType) -> Option<usize> {
    rows::row_reducer(op, d)?;
    Some(if d.size() == 8 { 8 } else { 4 })
}
