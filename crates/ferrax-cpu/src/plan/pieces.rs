//! Copies of the pieces that concatenations and paddings are put together of.
//!
//! Operands are copied from wherever
//! they are, views included. What a region computes for the result alone, it writes there at once.
//! Read next: `region/mod.rs`, which places such values.

use crate::library::movement::merge;
use crate::library::moves::Move;
use crate::library::views::Copy;
use crate::plan::{NONE, Planner};
use crate::program::Step;
use ferrax_loops::Node;
use ferrax_loops::passes::order::Order;
use ferrax_loops::passes::pieces::{Piece, pieces};
use smallvec::SmallVec;

/// The copy of a piece from where its operand is, and the root there.
fn piece_copy(order: &Order<'_>, node: &Node, piece: &Piece) -> Option<(u32, Copy)> {
    let v = node.inputs[piece.operand];
    let (root, view) = order.elements(v);
    let ty = order.g.ty(v);
    let view = match &piece.part {
        Some(dims) => view.slice(dims, &ty.shape, &piece.shape)?,
        None => view,
    };
    let strides = if ty.size() == 1 { SmallVec::from_elem(0, piece.shape.len()) } else { view.strides(&piece.shape)? };
    let axes = merge(&piece.shape, &strides, &piece.strides);
    Some((root, Copy::new((view.first, piece.first), axes, ty.dtype.size())))
}

impl Planner<'_> {
    /// Puts the result of node `i` together.
    pub fn emit_pieces(&mut self, item: u32, i: u32) -> ferrax_base::Result<()> {
        let g = self.g;
        let node = &g.nodes[i as usize];
        let root = node.first.0;
        self.piece_root(item, root);
        for piece in pieces(g, node).into_iter().flatten() {
            if self.made_inside.contains(&(root, piece.operand as u32)) {
                continue;
            }
            let Some((from, copy)) = piece_copy(&self.order, node, &piece) else {
                ferrax_base::bail!(Internal, "an operand that no strides describe")
            };
            let (src, dst) = (self.slot[from as usize], self.slot[root as usize]);
            self.out.steps.push(match Move::of(&copy, src, dst) {
                Some(moved) => Step::Move { moved, node: i },
                None => Step::View { src, dst, copy: Box::new(copy), node: i },
            });
        }
        Ok(())
    }

    /// The slot of a result of pieces, which the first of them makes.
    pub fn piece_root(&mut self, item: u32, root: u32) -> u32 {
        match self.slot[root as usize] {
            NONE => self.new_slot(item, root, self.g.types[root as usize].bytes(), &[]),
            slot => slot,
        }
    }
}
