//! Small moves that are one copy: slices, pieces of results and rows at an index that lie in one piece.
//!
//! In the body of a loop a call of the general kernels costs more than what it moves: they look at shapes and strides
//! each time. Here the planner has looked. What is larger than [`SMALL`], or in pieces, is left to `movement.rs` and
//! `gather.rs`, which also share it out. Read next: `plan/mod.rs`, where nodes become steps.

use crate::library::touch::{See, Touch};
use crate::library::views::Copy;
use ferrax_base::{DType, Result};
use ferrax_loops::kind::{ScatterDims, ScatterOp, SliceDims};
use ferrax_loops::{Graph, IndexMode, Kind, Node, Type};
use smallvec::SmallVec;

/// Bytes of a move at most.
const SMALL: usize = 64 << 10;

/// One copy; memory by slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Bytes of one slot to another, from and to an offset.
    Block { src: (u32, u32), dst: (u32, u32), bytes: u32 },
    /// The row of an array that an index names, clamped.
    RowOut { src: u32, dst: u32, row: Row },
    /// A row put where an index says.
    RowIn { update: u32, dst: u32, row: Row },
}

/// A row of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The slot of the index, and its type.
    pub index: u32,
    pub wide: bool,
    /// Bytes from one index to the next, and bytes that are moved: of one row, or of several.
    pub step: u32,
    pub bytes: u32,
    /// The largest index.
    pub last: u32,
    /// Whether a row outside is left out, not clamped.
    pub drops: bool,
}

impl Row {
    /// The offset in bytes.
    ///
    /// # Safety
    /// The pointer must be that of the index.
    unsafe fn offset(&self, index: *const u8) -> Option<usize> {
        // SAFETY: the caller's contract.
        let at = unsafe { if self.wide { *index.cast::<i64>() } else { i64::from(*index.cast::<i32>()) } };
        if self.drops && !(0..=i64::from(self.last)).contains(&at) {
            return None;
        }
        Some(at.clamp(0, i64::from(self.last)) as usize * self.step as usize)
    }
}

impl Move {
    /// A copy of few bytes that lie in one piece.
    pub fn of(copy: &Copy, src: u32, dst: u32) -> Option<Move> {
        let (from, to, bytes) = copy.block()?;
        let (from, to) = (u32::try_from(from).ok()?, u32::try_from(to).ok()?);
        (bytes <= SMALL).then_some(Move::Block { src: (src, from), dst: (dst, to), bytes: bytes as u32 })
    }

    /// What is read and what is written, for `plan/verify.rs`; a row put in place needs all rows to be there.
    pub fn touches(&self, see: See<'_>) -> Result<()> {
        let index = |row: Row| Touch::read(row.index, if row.wide { 8 } else { 4 });
        let all = |slot: u32, row: Row| Touch::read(slot, row.last as usize * row.step as usize + row.bytes as usize);
        match *self {
            Move::Block { src, dst, bytes } => {
                let at = |(slot, from): (u32, u32), write| {
                    let from = from as isize;
                    Touch { slot, from, end: from + bytes as isize, write }
                };
                see(at(src, false))?;
                see(at(dst, true))
            }
            Move::RowOut { src, dst, row } => {
                see(index(row))?;
                see(all(src, row))?;
                see(Touch::write(dst, row.bytes as usize))
            }
            Move::RowIn { update, dst, row } => {
                see(index(row))?;
                see(Touch::read(update, row.bytes as usize))?;
                see(all(dst, row))
            }
        }
    }

    /// Moves.
    ///
    /// # Safety
    /// The slots must hold what the planner saw.
    #[inline]
    pub unsafe fn run(&self, slots: &[*mut u8]) {
        let slot = |s: u32| slots[s as usize];
        // SAFETY: the caller's contract; offsets are inside by the shapes.
        unsafe {
            match *self {
                Move::Block { src, dst, bytes } => {
                    copy(slot(src.0).add(src.1 as usize), slot(dst.0).add(dst.1 as usize), bytes as usize);
                }
                Move::RowOut { src, dst, row } => {
                    let at = row.offset(slot(row.index)).unwrap_or(0);
                    copy(slot(src).add(at), slot(dst), row.bytes as usize);
                }
                Move::RowIn { update, dst, row } => {
                    if let Some(at) = row.offset(slot(row.index)) {
                        copy(slot(update), slot(dst).add(at), row.bytes as usize);
                    }
                }
            }
        }
    }
}

/// # Safety
/// Both must be valid for this many bytes.
#[inline(always)]
unsafe fn copy(src: *const u8, dst: *mut u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            4 => dst.cast::<u32>().write_unaligned(src.cast::<u32>().read_unaligned()),
            8 => dst.cast::<u64>().write_unaligned(src.cast::<u64>().read_unaligned()),
            _ => std::ptr::copy(src, dst, bytes),
        }
    }
}

/// The moves that a node is, with the slots of its operands and then its results; empty where it is something else.
pub(crate) fn moves(g: &Graph, node: &Node, slots: &[u32]) -> SmallVec<[Move; 4]> {
    if node.results != 1 {
        return SmallVec::new();
    }
    let out = g.ty(node.first);
    let (size, bytes) = (out.dtype.size(), out.bytes());
    let none = SmallVec::new;
    let input = |i: usize| g.ty(node.inputs[i]);
    let operand_row = |i: usize, at: usize, moved: &Type| row(input(i), input(at), slots[at], moved);
    match &node.kind {
        Kind::Slice(dims) if bytes <= SMALL => block(dims, input(0), out).map_or_else(none, |first| {
            let src = (slots[0], (first * size) as u32);
            SmallVec::from_slice(&[Move::Block { src, dst: (slots[1], 0), bytes: bytes as u32 }])
        }),
        Kind::DynamicSlice if bytes <= SMALL && are_rows(out, input(0)) => {
            operand_row(0, 1, out).map_or_else(none, |row| {
                let dst = slots[node.inputs.len()];
                SmallVec::from_slice(&[Move::RowOut { src: slots[0], dst, row }])
            })
        }
        Kind::DynamicUpdateSlice if are_rows(input(1), input(0)) => {
            operand_row(0, 2, input(1)).map_or_else(none, |row| put(slots, node, bytes, row))
        }
        Kind::Scatter { op: ScatterOp::Set, dims, mode, .. } if one_row(dims, input(0), input(1), input(2)) => {
            operand_row(0, 1, input(2))
                .map_or_else(none, |row| put(slots, node, bytes, Row { drops: *mode == IndexMode::FillOrDrop, ..row }))
        }
        _ => none(),
    }
}

/// A row put into the result, after the operand where that is somewhere else.
fn put(slots: &[u32], node: &Node, bytes: usize, row: Row) -> SmallVec<[Move; 4]> {
    let update = if matches!(node.kind, Kind::Scatter { .. }) { slots[2] } else { slots[1] };
    let dst = slots[node.inputs.len()];
    let mut moves = SmallVec::new();
    if slots[0] != dst {
        if bytes > SMALL {
            return moves;
        }
        moves.push(Move::Block { src: (slots[0], 0), dst: (dst, 0), bytes: bytes as u32 });
    }
    moves.push(Move::RowIn { update, dst, row });
    moves
}

/// Whether a window is rows of an array, one after the other.
fn are_rows(window: &Type, x: &Type) -> bool {
    window.shape.get(1..).is_some_and(|rest| x.shape.get(1..) == Some(rest))
}

/// Rows of `x`, of which `moved` is one, or some, by the index at this slot.
fn row(x: &Type, index: &Type, slot: u32, moved: &Type) -> Option<Row> {
    let wide = match index.dtype {
        DType::I32 => false,
        DType::I64 => true,
        _ => return None,
    };
    let (&rows, rest) = x.shape.split_first()?;
    let (step, bytes) = (rest.iter().product::<usize>() * x.dtype.size(), moved.bytes());
    if bytes == 0 || bytes > SMALL || x.bytes() > u32::MAX as usize || !bytes.is_multiple_of(step) {
        return None;
    }
    let last = rows.checked_sub(bytes / step)? as u32;
    Some(Row { index: slot, wide, step: step as u32, bytes: bytes as u32, last, drops: false })
}

/// The first element of a slice that lies in one piece.
fn block(dims: &SliceDims, x: &Type, out: &Type) -> Option<usize> {
    if dims.stride.iter().any(|&s| s != 1) {
        return None;
    }
    // One index of each outer axis, some of one, all of the inner ones.
    let partial = out.shape.iter().position(|&n| n != 1).unwrap_or(out.shape.len());
    let whole = |a: usize| out.shape[a] == x.shape[a];
    if !(partial + 1..out.shape.len()).all(whole) {
        return None;
    }
    Some(dims.start.iter().zip(&x.shape).fold(0, |at, (&start, &n)| at * n + start))
}

/// Whether a scatter puts one whole row of the operand's first axis.
fn one_row(dims: &ScatterDims, x: &Type, indices: &Type, updates: &Type) -> bool {
    indices.size() == 1
        && dims.inserted_window_dims.as_slice() == [0]
        && dims.scatter_dims_to_operand_dims.as_slice() == [0]
        && dims.operand_batching_dims.is_empty()
        && dims.update_window_dims.len() == updates.shape.len()
        && x.shape.get(1..).is_some_and(|rest| rest == updates.shape.as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_base::Shape;

    fn slice(shape: &[usize], start: &[usize], size: &[usize]) -> Option<usize> {
        let dims = SliceDims {
            start: start.into(),
            limit: start.iter().zip(size).map(|(s, n)| s + n).collect(),
            stride: Shape::from_elem(1, shape.len()),
        };
        block(&dims, &Type::new(DType::F32, shape), &Type::new(DType::F32, size))
    }

    #[test]
    fn slices_in_one_piece() {
        assert_eq!(slice(&[7], &[2], &[3]), Some(2));
        assert_eq!(slice(&[4, 5], &[1, 0], &[2, 5]), Some(5));
        assert_eq!(slice(&[4, 5], &[3, 2], &[1, 2]), Some(17));
        assert_eq!(slice(&[4, 5], &[1, 1], &[2, 2]), None);
        assert_eq!(slice(&[2, 3, 4], &[1, 1, 0], &[1, 2, 4]), Some(16));
        assert_eq!(slice(&[2, 3, 4], &[0, 1, 0], &[2, 1, 4]), None);
        assert_eq!(slice(&[], &[], &[]), Some(0));
    }
}
