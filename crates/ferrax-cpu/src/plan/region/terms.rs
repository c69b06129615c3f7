//! Which reductions of a region make their terms themselves (`fused/region/terms.rs`).

use super::Making;
use crate::fused::region::rows::FromMemory;
use crate::fused::region::terms::{Form, memory, widened};
use crate::machine::assemble::Place;
use crate::plan::Planner;
use ferrax_base::DType;
use ferrax_loops::kind::{BinaryOp, Kind};
use ferrax_loops::passes::order::{Role, Spread};
use ferrax_loops::{ReduceOp, ValueId};
use smallvec::SmallVec;

/// A reduction that makes its terms, and the members of the phase that this leaves without work.
#[derive(Clone)]
pub struct Absorbing {
    at: u32,
    members: SmallVec<[u32; 2]>,
    taken: Taken,
}

/// How a reduction takes in its operands, and where they are.
#[derive(Clone, Copy)]
pub struct Taken {
    pub memory: FromMemory,
    pub from: Place,
    pub with: Option<Place>,
}

impl Making {
    /// Whether a reduction does the work of a member.
    pub fn absorbed(&self, at: u32) -> bool {
        self.terms.iter().any(|t| t.members.contains(&at))
    }

    /// How a reduction makes its terms, if it does.
    pub fn term(&self, at: u32) -> Option<Taken> {
        self.terms.iter().find(|t| t.at == at).map(|t| t.taken)
    }
}

impl Planner<'_> {
    /// The reductions of a phase that can make their terms themselves.
    pub(super) fn find_terms(&self, m: &Making, k: u32, range: (u32, u32)) -> SmallVec<[Absorbing; 2]> {
        let members = range.0..range.1;
        if m.short {
            return SmallVec::new();
        }
        members.filter_map(|at| self.absorbing(m, k, range, at)).collect()
    }

    fn absorbing(&self, m: &Making, k: u32, range: (u32, u32), at: u32) -> Option<Absorbing> {
        let node = self.member_node(at);
        let Kind::Reduce { op, .. } = node.kind else { return None };
        let x = node.inputs[0];
        if self.order.members[at as usize].role != Role::Reduce {
            return None;
        }
        let alone = |from, members| {
            let taken = Taken { memory: widened(op)?, from, with: None };
            Some(Absorbing { at, members, taken })
        };
        if let Some(from) = self.halves(m, x, k) {
            return alone(from, SmallVec::new());
        }
        let product = self.only_for(m, k, range, x)?;
        let of = self.member_node(product);
        let single = self.g.ty(x).dtype == DType::F32;
        if let (Kind::Convert, true, Some(from)) = (&of.kind, single, self.halves(m, of.inputs[0], k)) {
            return alone(from, SmallVec::from_slice(&[product]));
        }
        if op != ReduceOp::Sum {
            return None;
        }
        let (a, b) = match of.kind {
            Kind::IntegerPow(2) => (of.inputs[0], of.inputs[0]),
            Kind::Binary(BinaryOp::Mul) => (of.inputs[0], of.inputs[1]),
            _ => return None,
        };
        let mut members = SmallVec::from_slice(&[product]);
        let (form, from, with) = match (self.direct(m, a, k), self.direct(m, b, k)) {
            (Some(from), _) if a == b => (Form::Square, from, None),
            (Some(from), with @ Some(_)) => (Form::Times, from, with),
            _ if a == b => {
                let distance = self.only_for(m, k, range, a)?;
                let of = self.member_node(distance);
                let Kind::Binary(BinaryOp::Sub) = of.kind else { return None };
                members.push(distance);
                let (from, about) = (self.direct(m, of.inputs[0], k)?, self.of_row(m, of.inputs[1])?);
                (Form::SquareAbout, from, Some(about))
            }
            _ => return None,
        };
        let memory = memory(self.g.ty(x).dtype, form)?;
        Some(Absorbing { at, members, taken: Taken { memory, from, with } })
    }

    /// Memory in which a reduction of phase `k` finds bfloat16 numbers.
    fn halves(&self, m: &Making, v: ValueId, k: u32) -> Option<Place> {
        let whole = self.order.place(v).spread == Spread::Full && self.g.ty(v).size() == m.n;
        let there = self.g.ty(v).dtype == DType::BF16 && whole && !self.born_in(m, v, k);
        there.then(|| self.source(m, v)).flatten().map(|src| Place::read(src, m.inner * 2, 2))
    }

    /// The member of the phase that makes a value which one other member reads, and nothing else.
    fn only_for(&self, m: &Making, k: u32, range: (u32, u32), v: ValueId) -> Option<u32> {
        let place = self.order.place(v);
        if place.spread != Spread::Full || !self.passes(m, v, k) {
            return None;
        }
        let reads = |at: &u32| self.member_node(*at).inputs.iter().any(|&v| self.order.place(v).root == place.root);
        let once = (range.0..range.1).filter(reads).count() == 1;
        let makes = |at: &u32| {
            let made = self.member_node(*at).first;
            // The same bits of another dtype are other terms.
            made.0 == place.root && self.g.ty(made).dtype == self.g.ty(v).dtype
        };
        (range.0..range.1).find(|at| once && makes(at))
    }

    /// Where a value of the row is that was there before the phase, of the lanes' width.
    fn of_row(&self, m: &Making, v: ValueId) -> Option<Place> {
        let row = match self.order.place(v).spread {
            Spread::Row(inner) if inner as usize == m.inner => m.lane,
            Spread::Splat => 0,
            _ => return None,
        };
        let src = self.source(m, v)?;
        (self.g.ty(v).dtype.size() == m.lane).then_some(Place::read(src, row, 0))
    }
}
