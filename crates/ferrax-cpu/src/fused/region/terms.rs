//! Sums whose terms are made as the row is read: squares, products, and squares of distances from a value of the row; and
//! reductions of bfloat16 numbers.
//!
//! A phase that ends in such a sum, as the second one of a variance does, needs no program for it: loading, the operation
//! and the addition stay in registers, which is about twice as fast as to join the tiles of a program to
//! accumulators in memory. The terms and their order are those of the program, so the bits are.
//! Read next: `rows.rs` for the sums, `plan/region/terms.rs` for where they are found.

use super::rows::{Bits, FromMemory};
use crate::library::reduce::{Itself, MaxF32, MinF32, Monoid, ProdF32, SumF32, SumF64, Term};
use ferrax_base::DType;
use ferrax_loops::ReduceOp;
use std::ops::{Mul, Sub};

/// A term that may have a second operand in memory.
pub trait Operand<T>: Term<T> {
    /// The term of the operand at an address.
    ///
    /// # Safety
    /// The operand must be there for as long as the term is used.
    unsafe fn new(at: *const u8) -> Self;
}

impl<T: Copy> Operand<T> for Itself {
    #[inline(always)]
    unsafe fn new(_: *const u8) -> Self {
        Itself
    }
}

/// x²
#[derive(Clone, Copy)]
struct Square;

impl<T: Copy + Mul<Output = T>> Term<T> for Square {
    type From = T;
    #[inline(always)]
    fn of(self, _: usize, x: T) -> T {
        x * x
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
    type From = T;
    #[inline(always)]
    fn of(self, _: usize, x: T) -> T {
        (x - self.0) * (x - self.0)
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
    type From = T;
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

/// A bfloat16 number in float32.
#[derive(Clone, Copy)]
struct Widened;

impl Term<f32> for Widened {
    type From = u16;
    #[inline(always)]
    fn of(self, _: usize, x: u16) -> f32 {
        f32::from_bits(u32::from(x) << 16)
    }
}

impl Operand<f32> for Widened {
    #[inline(always)]
    unsafe fn new(_: *const u8) -> Self {
        Widened
    }
}

/// How bfloat16 numbers are reduced in float32.
pub fn widened(op: ReduceOp) -> Option<FromMemory> {
    Some(match op {
        ReduceOp::Sum => FromMemory::of::<SumF32, Widened>(),
        ReduceOp::Prod => FromMemory::of::<ProdF32, Widened>(),
        ReduceOp::Max => FromMemory::of::<MaxF32, Widened>(),
        ReduceOp::Min => FromMemory::of::<MinF32, Widened>(),
        _ => return None,
    })
}

/// What is summed up.
#[derive(Clone, Copy, PartialEq)]
pub enum Form {
    Square,
    SquareAbout,
    Times,
}

pub fn memory(d: DType, form: Form) -> Option<FromMemory> {
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
