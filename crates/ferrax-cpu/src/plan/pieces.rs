//! Concatenations and paddings: results that are put together of pieces.
//!
//! A piece is an operand, or a part of the border, and where it lies in the result. Operands are copied from wherever
//! they are, views included. What a region computes for the result alone, it writes there at once.
//! Read next: `order.rs`, which finds such values, and `region/plan.rs`, which places them.

use crate::library::movement::{Strides, kept, landing, merge, signed_strides};
use crate::library::moves::Move;
use crate::library::views::{Copy, View};
use crate::plan::order::Order;
use crate::plan::{NONE, Planner};
use crate::program::Step;
use ferrax_base::Shape;
use ferrax_loops::kind::SliceDims;
use ferrax_loops::{Graph, Kind, Node, PadConfig, ValueId};
use smallvec::SmallVec;

/// A part of the result.
pub(crate) struct Piece {
    /// The operand that it is; a number stands for every element.
    pub operand: usize,
    /// What it takes of the operand, where that is not everything.
    part: Option<SliceDims>,
    shape: Shape,
    /// The place of its first element in the result, and the distances of the others, in elements.
    first: isize,
    strides: Strides,
    /// Whether it is written over an earlier piece.
    over: bool,
}

impl Piece {
    /// Where the piece lies in the result.
    pub fn view(&self) -> View {
        View::new(self.first, &self.shape, &self.strides)
    }

    /// Whether the piece is all of its operand, and nothing is written where it lies.
    pub fn may_be_made_here(&self) -> bool {
        self.part.is_none() && !self.over
    }
}

/// The pieces of a node's result, in the order in which they must be written; `None` if it has none.
pub(crate) fn pieces(g: &Graph, node: &Node) -> Option<SmallVec<[Piece; 4]>> {
    match &node.kind {
        Kind::Concat(axis) => {
            let (mut at, strides) = (0, signed_strides(&g.ty(node.first).shape));
            let piece = |(operand, &v): (usize, _)| {
                let shape = g.ty(v).shape.clone();
                let first = at * strides[*axis];
                at += shape[*axis] as isize;
                Piece { operand, part: None, shape, first, strides: strides.clone(), over: false }
            };
            Some(node.inputs.iter().enumerate().map(piece).filter(|p| !p.shape.contains(&0)).collect())
        }
        Kind::Pad(config) => Some(padding(config, &g.ty(node.inputs[0]).shape, &g.ty(node.first).shape)),
        _ => None,
    }
}

/// The border, then what remains of the operand; where there are holes, all is filled first.
fn padding(config: &[PadConfig], x: &[usize], out: &[usize]) -> SmallVec<[Piece; 4]> {
    let strides = &signed_strides(out);
    let mut pieces = SmallVec::new();
    let (mut start, mut limit, mut begin, mut shape, mut steps) =
        (Shape::new(), Shape::new(), Shape::new(), Shape::new(), Strides::new());
    for (i, c) in config.iter().enumerate() {
        let kept = kept(c, x[i], out[i]);
        start.push(kept.start);
        limit.push(kept.end);
        begin.push(landing(c, kept.start));
        shape.push(kept.len());
        steps.push((c.interior + 1) as isize * strides[i]);
    }
    let fill = |first: &[usize], shape: Shape| Piece {
        operand: 1,
        part: None,
        first: first.iter().zip(strides).map(|(&i, &s)| i as isize * s).sum(),
        shape,
        strides: strides.clone(),
        over: false,
    };
    let empty = shape.contains(&0);
    let holes = config.iter().any(|c| c.interior > 0);
    if empty || holes {
        pieces.push(fill(&[], out.into()));
    } else {
        // Before and after the operand on each axis; inside it on the axes before, all along those after.
        let (mut corner, mut extent) = (Shape::from_elem(0, out.len()), Shape::from(out));
        for k in 0..out.len() {
            let end = begin[k] + shape[k];
            for (from, to) in [(0, begin[k]), (end, out[k])] {
                if from < to {
                    (corner[k], extent[k]) = (from, to - from);
                    pieces.push(fill(&corner, extent.clone()));
                }
            }
            (corner[k], extent[k]) = (begin[k], shape[k]);
        }
    }
    if !empty {
        let first = begin.iter().zip(strides).map(|(&i, &s)| i as isize * s).sum();
        let whole = start.iter().all(|&s| s == 0) && limit.as_slice() == x;
        let part = (!whole).then(|| SliceDims { start, limit, stride: Shape::from_elem(1, x.len()) });
        pieces.push(Piece { operand: 0, part, shape, first, strides: steps, over: holes });
    }
    pieces
}

impl Order<'_> {
    /// The copy of a piece from where its operand is, and the root there.
    fn piece_copy(&self, node: &Node, piece: &Piece) -> Option<(u32, Copy)> {
        let v = node.inputs[piece.operand];
        let (root, view) = self.elements(v);
        let ty = self.g.ty(v);
        let view = match &piece.part {
            Some(dims) => view.slice(dims, &ty.shape, &piece.shape)?,
            None => view,
        };
        let strides =
            if ty.size() == 1 { SmallVec::from_elem(0, piece.shape.len()) } else { view.strides(&piece.shape)? };
        let axes = merge(&piece.shape, &strides, &piece.strides);
        Some((root, Copy::new((view.first, piece.first), axes, ty.dtype.size())))
    }

    /// Whether a piece can be copied from where the value is: strides along its axes say which elements it has.
    pub fn in_strides(&self, v: ValueId) -> bool {
        self.g.ty(v).size() == 1 || self.as_view(v).strides(&self.g.ty(v).shape).is_some()
    }

    /// The root from which a value is copied, and which elements it has there.
    pub fn elements(&self, v: ValueId) -> (u32, View) {
        if self.in_strides(v) {
            (self.place(v).root, self.as_view(v))
        } else {
            (self.dense_root(v), View::of(&[(self.g.ty(v).size(), 1)]))
        }
    }
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
            let Some((from, copy)) = self.order.piece_copy(node, &piece) else {
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
