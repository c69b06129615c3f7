//! Results that are put together of pieces: concatenations and paddings.
//!
//! Each piece is a copy of an operand, or of a part of one, to where it lies in the result.

use super::view::{Strides, View, signed_strides};
use crate::kind::SliceDims;
use crate::{Graph, Kind, Node, PadConfig};
use ferrax_base::Shape;
use smallvec::SmallVec;

/// A part of the result.
pub struct Piece {
    /// The operand that it is; a number stands for every element.
    pub operand: usize,
    /// What it takes of the operand, where that is not everything.
    pub part: Option<SliceDims>,
    /// Its sizes.
    pub shape: Shape,
    /// The place of its first element in the result.
    pub first: isize,
    /// The distances of the others along its axes, in elements.
    pub strides: Strides,
    /// Whether it is written over an earlier piece.
    pub over: bool,
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
pub fn pieces(g: &Graph, node: &Node) -> Option<SmallVec<[Piece; 4]>> {
    match &node.kind {
        // Nothing is put anywhere; other axes may be longer than places can be counted.
        Kind::Concat(_) | Kind::Pad(_) if g.ty(node.first).shape.contains(&0) => Some(SmallVec::new()),
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

/// The place of an element. That of one beyond all memory may be any: there is no array to put it into.
fn place(index: &[usize], strides: &[isize]) -> isize {
    index.iter().zip(strides).fold(0, |at, (&i, &s)| at.wrapping_add((i as isize).wrapping_mul(s)))
}

/// The border, then what remains of the operand; where there are holes, all is filled first.
fn padding(config: &[PadConfig], x: &[usize], out: &[usize]) -> SmallVec<[Piece; 4]> {
    let strides = &signed_strides(out);
    let mut pieces = SmallVec::new();
    let (mut start, mut limit, mut begin, mut shape, mut steps) =
        (Shape::new(), Shape::new(), Shape::new(), Shape::new(), Strides::new());
    for (i, c) in config.iter().enumerate() {
        let kept = c.kept(x[i], out[i]);
        start.push(kept.start);
        limit.push(kept.end);
        begin.push(c.landing(kept.start));
        shape.push(kept.len());
        steps.push(((c.interior + 1) as isize).wrapping_mul(strides[i]));
    }
    let fill = |first: &[usize], shape: Shape| Piece {
        operand: 1,
        part: None,
        first: place(first, strides),
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
        let first = place(&begin, strides);
        let whole = start.iter().all(|&s| s == 0) && limit.as_slice() == x;
        let part = (!whole).then(|| SliceDims { start, limit, stride: Shape::from_elem(1, x.len()) });
        pieces.push(Piece { operand: 0, part, shape, first, strides: steps, over: holes });
    }
    pieces
}
