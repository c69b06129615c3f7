//! Sums whose terms are made as the row is read: squares, products, and squares of distances from a value of the row.
//!
//! A phase that ends in such a sum, as the second one of a variance does, needs no program for it: loading, the operation
//! and the addition stay in registers, which is about twice as fast as to join the tiles of a program to
//! accumulators in memory. The terms and their order are those of the program, so the bits are.
//! Read next: `rows.rs` for the sums, `plan.rs` for the phases.

use super::plan::Making;
use super::rows::{Bits, FromMemory};
use crate::machine::assemble::Place;
use crate::order::{Role, Spread};
use crate::plan::Planner;
use crate::reduce::{Itself, Monoid, SumF32, SumF64, Term};
use ferrax_base::DType;
use ferrax_loops::kind::{BinaryOp, Kind};
use ferrax_loops::{ReduceOp, ValueId};
use smallvec::SmallVec;
use std::ops::{Mul, Sub};

/// A term that may have a second operand in memory.
pub trait Operand<T>: Term<T> {
    /// The term of the operand at an address.
    ///
    /// # Safety
    /// The operand must be there for as long as the term is used.
    unsafe fn new(at: *const u8) -> Self;
}

impl<T> Operand<T> for Itself {
    #[inline(always)]
    unsafe fn new(_: *const u8) -> Self {
        Itself
    }
}

/// x²
#[derive(Clone, Copy)]
struct Square;

impl<T: Copy + Mul<Output = T>> Term<T> for Square {
    #[inline(always)]
    fn of(self, _: usize, x: T) -> T {
        x * x
    }
    #[inline(always)]
    fn from(self, _: usize) -> Self {
        self
    }
}

impl<T: Copy + Mul<Output = T>> Operand<T> for Square {
    #[inline(always)]
    unsafe fn new(_: *const u8) -> Self {
        Square
    }
}

/// (x - y)² for a y of the row.
#[derive(Clone, Copy)]
struct SquareAbout<T>(T);

impl<T: Copy + Mul<Output = T> + Sub<Output = T>> Term<T> for SquareAbout<T> {
    #[inline(always)]
    fn of(self, _: usize, x: T) -> T {
        (x - self.0) * (x - self.0)
    }
    #[inline(always)]
    fn from(self, _: usize) -> Self {
        self
    }
}

impl<T: Copy + Mul<Output = T> + Sub<Output = T>> Operand<T> for SquareAbout<T> {
    #[inline(always)]
    unsafe fn new(at: *const u8) -> Self {
        // SAFETY: the caller's contract.
        SquareAbout(unsafe { at.cast::<T>().read_unaligned() })
    }
}

/// x · y for the elements of another row.
#[derive(Clone, Copy)]
struct Times<T>(*const T);

impl<T: Copy + Mul<Output = T>> Term<T> for Times<T> {
    #[inline(always)]
    fn of(self, i: usize, x: T) -> T {
        // SAFETY: the other row has as many elements (`Operand::new`).
        x * unsafe { self.0.add(i).read_unaligned() }
    }
    #[inline(always)]
    fn from(self, i: usize) -> Self {
        Times(self.0.wrapping_add(i))
    }
}

impl<T: Copy + Mul<Output = T>> Operand<T> for Times<T> {
    #[inline(always)]
    unsafe fn new(at: *const u8) -> Self {
        Times(at.cast())
    }
}

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

/// What is summed up.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Square,
    SquareAbout,
    Times,
}

fn memory(d: DType, form: Form) -> Option<FromMemory> {
    fn of<M: Monoid<T: Bits + Mul<Output = M::T> + Sub<Output = M::T>>>(form: Form) -> FromMemory {
        match form {
            Form::Square => FromMemory::of::<M, Square>(),
            Form::SquareAbout => FromMemory::of::<M, SquareAbout<M::T>>(),
            Form::Times => FromMemory::of::<M, Times<M::T>>(),
        }
    }
    match d {
        DType::F32 => Some(of::<SumF32>(form)),
        DType::F64 => Some(of::<SumF64>(form)),
        _ => None,
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
        let Kind::Reduce { op: ReduceOp::Sum, .. } = node.kind else { return None };
        let x = node.inputs[0];
        if self.order.members[at as usize].role != Role::Reduce {
            return None;
        }
        let product = self.only_for(m, k, range, x)?;
        let of = self.member_node(product);
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
