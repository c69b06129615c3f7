//! Which nodes regions take, and how, for the passes over graphs.

use crate::fused::region::rows::row_reducer;
use crate::library::columns::COLUMNS;
use crate::library::dot::planned::Planned;
use crate::machine::table;
use crate::simd;
use ferrax_base::DType;
use ferrax_loops::kind::{BinaryOp, Kind};
use ferrax_loops::passes::Target;
use ferrax_loops::{Graph, Node, ReduceOp};

/// Fewer columns would cut programs into rows too short.
const COLUMNS_FROM: usize = 16;
/// Fewer elements are reduced by a step of their own as quickly.
const FUSED_FROM: usize = 1024;

/// The widths of lanes, in bytes; the one that is preferred first.
const WIDTHS: [usize; 2] = [4, 8];
/// Elements of a matrix at most that a product of a column and a row is added to in one step: threads may share larger ones.
const SUMMED: usize = 1 << 16;

/// What regions take, for the passes over graphs.
struct Machine;

/// The machine, where there is one.
pub(crate) fn target() -> Option<&'static dyn Target> {
    simd::isa().map(|_| &Machine as &dyn Target)
}

impl Target for Machine {
    fn widths(&self) -> &'static [usize] {
        &WIDTHS
    }

    fn adds_outer(&self, g: &Graph, dot: &Node) -> bool {
        Planned::of(g, dot).is_some_and(|p| p.is_outer()) && g.ty(dot.first).size() <= SUMMED
    }

    fn holds(&self, d: DType) -> bool {
        WIDTHS.iter().any(|&lane| table::holds(lane, d))
    }

    fn takes(&self, g: &Graph, node: &Node, lane: usize) -> bool {
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

    fn takes_columns(&self, inner: usize, n: usize) -> bool {
        (COLUMNS_FROM..=COLUMNS).contains(&inner) && n >= FUSED_FROM
    }

    fn reduces(&self, op: ReduceOp, d: DType) -> Option<usize> {
        row_reducer(op, d)?;
        Some(if d.size() == 8 { 8 } else { 4 })
    }
}
