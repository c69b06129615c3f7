//! Families of handlers for register loops: one handler for each choice of registers, written in assembly.
//!
//! A family is a table of code in which every handler takes the same number of bytes, so a handler's address is
//! computed. Registers 0 to 7 hold the values of a loop; others are free within a handler. An instruction
//! ([`Instr`](super::super::handler::Instr)) takes 24 bytes: code, immediate, stride. The loop's memory, the step, the
//! steps left and the instruction after a jump back are in the argument registers of
//! [`CodeOf`](super::super::handler::CodeOf), so handlers compiled from Rust (`handlers.rs`) may stand between them.
//! Assembly because 512 functions an operation would take the compiler minutes, and because these jumps need no
//! optimizer. Here is which families there are; their text is in `families/x86.rs` and `families/aarch64.rs`.
//! Read next: `assemble.rs`, which chooses among them.

#[cfg_attr(target_arch = "x86_64", path = "families/x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "families/aarch64.rs")]
mod text;

use crate::machine::handler::Code;
use crate::simd::Isa;
pub use text::{
    PACKS, WIDE, any_back, choose, converts, copy, count_back, fetch, fma, gather, has, jump, load, put, read, skip,
    store, test_back, write,
};

/// Bytes of an instruction, which handlers step over.
const _: () = assert!(size_of::<super::super::handler::Instr>() == 24);

/// A table of handlers for every instruction set.
#[derive(Clone, Copy)]
pub struct Family {
    /// In the order of [`Isa::ALL`].
    tables: [Code; Isa::ALL.len()],
    /// Bytes a handler takes.
    slot: usize,
}

impl Family {
    /// Bytes that a handler takes at most.
    pub fn bytes(self) -> u16 {
        self.slot as u16
    }

    /// The code of a handler.
    pub fn code(self, isa: Isa, index: usize) -> Code {
        // Tables begin at a multiple of 64, of which the function's own start may fall short by padding.
        Code(self.tables[isa as usize].0.map_addr(|table| table.next_multiple_of(64) + index * self.slot))
    }
}

/// The index of registers in a family over two or three of them.
pub fn registers(all: &[u8]) -> usize {
    all.iter().fold(0, |index, &r| index * 8 + usize::from(r))
}

/// How many bytes a lane has: all lanes of a loop have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Lanes of f32, i32, u32 and `bool`.
    Four,
    /// Lanes of f64, i64 and u64; `bool` and i32, extended by its sign, are there too.
    Eight,
}

impl Width {
    /// The bytes.
    pub fn bytes(self) -> usize {
        match self {
            Width::Four => 4,
            Width::Eight => 8,
        }
    }

    /// The bits of a lane that are in use.
    pub fn bits(self, x: u64) -> u64 {
        match self {
            Width::Four => u64::from(x as u32),
            Width::Eight => x,
        }
    }

    /// A lane's signed number.
    pub fn signed(self, x: u64) -> i64 {
        match self {
            Width::Four => i64::from(x as i32),
            Width::Eight => x as i64,
        }
    }

    /// Numbers of signed lanes.
    pub fn range(self) -> (i64, i64) {
        match self {
            Width::Four => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Width::Eight => (i64::MIN, i64::MAX),
        }
    }
}

/// d = f(a, b): operands in registers, the second in memory, or the first in memory.
#[derive(Clone, Copy)]
pub struct Pair {
    /// Over d, a, b.
    pub registers: Family,
    /// Over d, a; b is at the immediate.
    pub memory: Family,
    /// Over d, b; a is at the immediate.
    pub memory_first: Family,
}

/// d = a · b + d, rounded once: b in a register or in memory.
#[derive(Clone, Copy)]
pub struct Fma {
    /// Over d, a, b.
    pub registers: Family,
    /// Over d, a; b is at the immediate.
    pub memory: Family,
}

/// Operations of two operands. All but `Sub`, `Div`, `SubInt`, `Permute`, the orders and, by the bits of a NaN, `Max` and `Min`
/// commute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Two {
    Add,
    Sub,
    Mul,
    Div,
    /// The larger one; NaN wins, and +0 is larger than -0.
    Max,
    /// The smaller one; NaN wins, and -0 is smaller than +0.
    Min,
    AddInt,
    SubInt,
    MulInt,
    And,
    Or,
    Xor,
    Eq,
    Ne,
    Lt,
    Le,
    EqInt,
    /// a > b.
    GtInt,
    MaxInt,
    MinInt,
    /// Counts of a lane's bits and more give 0.
    ShiftLeft,
    ShiftRight,
    /// Counts of a lane's bits and more give the sign.
    ShiftRightSigned,
    /// The lanes of a that those of b name, by as many low bits as their number takes.
    Permute,
}

impl Two {
    /// Its handlers.
    pub fn pair(self, lane: Width) -> Pair {
        text::pair(self, lane)
    }

    /// Whether f(a, b) = f(b, a).
    pub fn commutes(self) -> bool {
        use Two::*;
        !matches!(
            self,
            Sub | Div | Max | Min | SubInt | Lt | Le | GtInt | ShiftLeft | ShiftRight | ShiftRightSigned | Permute
        )
    }

    /// What integer operations make of numbers; nothing for the others.
    pub fn of_numbers(self, lane: Width, a: u64, b: u64) -> Option<u64> {
        let (x, y) = (lane.signed(a), lane.signed(b));
        let bits = 8 * lane.bytes() as u64;
        Some(lane.bits(match self {
            Two::AddInt => a.wrapping_add(b),
            Two::SubInt => a.wrapping_sub(b),
            Two::MulInt => a.wrapping_mul(b),
            Two::And => a & b,
            Two::Or => a | b,
            Two::Xor => a ^ b,
            Two::EqInt => u64::from(a == b),
            Two::GtInt => u64::from(x > y),
            Two::MaxInt => x.max(y) as u64,
            Two::MinInt => x.min(y) as u64,
            Two::ShiftLeft if b >= bits => 0,
            Two::ShiftLeft => a << b,
            Two::ShiftRight if b >= bits => 0,
            Two::ShiftRight => a >> b,
            Two::ShiftRightSigned => (x >> b.min(bits - 1)) as u64,
            _ => return None,
        }))
    }
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum One {
    Sqrt,
    Floor,
    Ceil,
    RoundEven,
    /// Signed integers to floats, to nearest.
    ToFloat,
    /// A copy.
    Move,
}

impl One {
    /// Its handlers, over d, a.
    pub fn family(self, lane: Width) -> Family {
        text::one(self, lane)
    }
}

/// How the elements of an array that the loop steps through are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A register of elements as wide as the lanes.
    Whole,
    /// The lanes that a mask in the loop's memory has.
    Masked,
    /// One element, in every lane.
    Scalar,
    /// One `bool`, in every lane.
    Flag,
}
