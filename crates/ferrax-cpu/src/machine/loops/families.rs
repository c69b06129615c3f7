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

use super::super::handler::Code;
use crate::machine::Isa;
pub use text::{choose, copy, count_back, fetch, jump, load, put, read, store, test_back, write};

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

/// Operations of two operands. All but `Sub`, `Div`, `SubInt` and the orders commute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Two {
    Add,
    Sub,
    Mul,
    Div,
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
    /// Counts of 32 and more give 0.
    ShiftLeft,
    ShiftRight,
    /// Counts of 32 and more give the sign.
    ShiftRightSigned,
}

impl Two {
    /// Its handlers.
    pub fn pair(self) -> Pair {
        text::pair(self)
    }

    /// Whether f(a, b) = f(b, a).
    pub fn commutes(self) -> bool {
        use Two::*;
        !matches!(self, Sub | Div | SubInt | Lt | Le | GtInt | ShiftLeft | ShiftRight | ShiftRightSigned)
    }

    /// What integer operations make of numbers; nothing for the others.
    pub fn of_numbers(self, a: u32, b: u32) -> Option<u32> {
        Some(match self {
            Two::AddInt => a.wrapping_add(b),
            Two::SubInt => a.wrapping_sub(b),
            Two::MulInt => a.wrapping_mul(b),
            Two::And => a & b,
            Two::Or => a | b,
            Two::Xor => a ^ b,
            Two::EqInt => u32::from(a == b),
            Two::GtInt => u32::from(a as i32 > b as i32),
            Two::MaxInt => (a as i32).max(b as i32) as u32,
            Two::MinInt => (a as i32).min(b as i32) as u32,
            Two::ShiftLeft => a.checked_shl(b).unwrap_or(0),
            Two::ShiftRight => a.checked_shr(b).unwrap_or(0),
            Two::ShiftRightSigned => (a as i32 >> b.min(31)) as u32,
            _ => return None,
        })
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
    /// i32 to f32, to nearest.
    ToFloat,
    /// A copy.
    Move,
}

impl One {
    /// Its handlers, over d, a.
    pub fn family(self) -> Family {
        text::one(self)
    }
}

/// How the elements of an array that the loop steps through are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A register of 4-byte elements.
    Whole,
    /// The lanes that the mask at the start of the loop's memory has.
    Masked,
    /// One 4-byte element, in every lane.
    Scalar,
    /// One `bool`, in every lane.
    Flag,
}

#[cfg(test)]
mod tests {
    use super::super::super::handler::{Instr, finish};
    use super::super::assemble::Assembler;
    use super::*;
    use crate::machine::{Isa, isa};

    /// Places of the loop's memory: one for each register before and one for each after, and a third operand.
    fn run(isa: Isa, instr: &Instr, before: [u32; 9]) -> [u32; 8] {
        let mut memory: Vec<u32> = before.iter().flat_map(|&x| [x; 16]).collect();
        memory.resize(17 * 16, 0);
        let mut asm = Assembler::new(isa, 17 * 64);
        (0..8).for_each(|r| asm.load(r, u32::from(r) * 64));
        asm.code.push(*instr);
        (0..8).for_each(|r| asm.store(r, (9 + u32::from(r)) * 64));
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the 17 places.
        unsafe { super::super::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        std::array::from_fn(|r| {
            let after = &memory[(9 + r) * 16..][..isa.width()];
            assert!(after.iter().all(|x| *x == after[0]));
            after[0]
        })
    }

    fn instr(family: Family, isa: Isa, all: &[u8], imm: u64) -> Instr {
        Instr { code: family.code(isa, registers(all)), imm, p: 0, q: 0, ps: 0, qs: 0 }
    }

    /// The instruction sets that this machine has, the narrow one first.
    fn sets() -> Vec<Isa> {
        Isa::ALL.into_iter().rev().take_while(|&all| isa().is_some_and(|isa| all.width() <= isa.width())).collect()
    }

    const ALL: [Two; 21] = [
        Two::Add,
        Two::Sub,
        Two::Mul,
        Two::Div,
        Two::AddInt,
        Two::SubInt,
        Two::MulInt,
        Two::And,
        Two::Or,
        Two::Xor,
        Two::Eq,
        Two::Ne,
        Two::Lt,
        Two::Le,
        Two::EqInt,
        Two::GtInt,
        Two::MaxInt,
        Two::MinInt,
        Two::ShiftLeft,
        Two::ShiftRight,
        Two::ShiftRightSigned,
    ];

    fn expected(op: Two, a: u32, b: u32) -> u32 {
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        match op {
            Two::Add => (x + y).to_bits(),
            Two::Sub => (x - y).to_bits(),
            Two::Mul => (x * y).to_bits(),
            Two::Div => (x / y).to_bits(),
            Two::Eq => u32::from(x == y),
            Two::Ne => u32::from(x != y),
            Two::Lt => u32::from(x < y),
            Two::Le => u32::from(x <= y),
            _ => op.of_numbers(a, b).expect("an operation on integers"),
        }
    }

    #[test]
    fn every_handler_reads_and_writes_its_registers() {
        let before: [u32; 9] = std::array::from_fn(|r| (1.25 * r as f32 - 3.5).to_bits());
        for (isa, op) in sets().into_iter().flat_map(|isa| ALL.map(|op| (isa, op))) {
            let pair = op.pair();
            for index in 0..512usize {
                let [d, a, b] = [index / 64, index / 8 % 8, index % 8];
                let all = [d as u8, a as u8, b as u8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(op, before[a], before[b]);
                assert_eq!(run(isa, &instr(pair.registers, isa, &all, 0), before), want, "{op:?} {all:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let all = [d as u8, a as u8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(op, before[a], before[8]);
                assert_eq!(run(isa, &instr(pair.memory, isa, &all, 8 * 64), before), want, "{op:?} {all:?}");
                want[d] = expected(op, before[8], before[a]);
                assert_eq!(run(isa, &instr(pair.memory_first, isa, &all, 8 * 64), before), want, "{op:?} {all:?}");
            }
        }
    }

    #[test]
    fn choices_and_moves_use_their_registers() {
        let before: [u32; 9] = std::array::from_fn(|r| u32::from(r % 2 == 1));
        for isa in sets() {
            for index in 0..512usize {
                let [d, p, t] = [index / 64, index / 8 % 8, index % 8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                if before[p] == 1 {
                    want[d] = before[t];
                }
                let all = [d as u8, p as u8, t as u8];
                assert_eq!(run(isa, &instr(choose(), isa, &all, 0), before), want, "{all:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let before: [u32; 9] = std::array::from_fn(|r| r as u32 + 1);
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = before[a];
                let all = [d as u8, a as u8];
                assert_eq!(run(isa, &instr(One::Move.family(), isa, &all, 0), before), want);
                want[d] = (before[a] as f32).to_bits();
                assert_eq!(run(isa, &instr(One::ToFloat.family(), isa, &all, 0), before), want);
            }
        }
    }

    /// An array of five numbers after an element of it was read or written, and the register that took part.
    fn at_index(isa: Isa, family: Family, (d, a): (u8, u8), index: i32, value: u32) -> ([u32; 5 + 16], u32) {
        let mut array: [u32; 5 + 16] = std::array::from_fn(|i| 100 + i as u32);
        // The mask, the window, the index, the value, the register after.
        let mut memory = [[0u32; 16]; 5];
        memory[0][0] = !0;
        let address = array.as_mut_ptr() as u64;
        for (k, word) in [address, 4, 4].into_iter().enumerate() {
            (memory[1][2 * k], memory[1][2 * k + 1]) = (word as u32, (word >> 32) as u32);
        }
        (memory[2], memory[3]) = ([index as u32; 16], [value; 16]);
        let mut asm = Assembler::new(isa, 5 * 64);
        asm.load(d, 3 * 64);
        asm.load(a, 2 * 64);
        asm.code.push(instr(family, isa, &[d, a], 64));
        asm.store(d, 4 * 64);
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the places, and elements of the array as far as a register reaches.
        unsafe { super::super::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        (array, memory[4][0])
    }

    #[test]
    fn elements_at_an_index() {
        let inside = |index: i32| index.clamp(0, 4) as usize;
        let pairs = (0..64u8).map(|k| (k / 8, k % 8));
        for ((isa, pair), index) in sets().into_iter().flat_map(|isa| pairs.clone().map(move |p| (isa, p))).zip(-7i32..)
        {
            for index in [index % 9, 2] {
                for access in [Access::Scalar, Access::Whole, Access::Masked] {
                    let (_, got) = at_index(isa, fetch(access), pair, index, 7);
                    assert_eq!(got, 100 + inside(index) as u32, "{access:?} {pair:?} {index}");
                    for checked in [false, true] {
                        let (array, _) = at_index(isa, put(access, checked), pair, index, 7);
                        let value = if pair.0 == pair.1 { index as u32 } else { 7 };
                        let left_out = checked && inside(index) as i32 != index;
                        for (i, &x) in array[..5].iter().enumerate() {
                            let lanes = if access == Access::Whole { isa.width() } else { 1 };
                            let hit = (inside(index)..inside(index) + lanes).contains(&i);
                            let want = if hit && !left_out { value } else { 100 + i as u32 };
                            assert_eq!(x, want, "{access:?} {pair:?} {index} {checked}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn flags_at_an_index() {
        for (isa, pair) in sets().into_iter().flat_map(|isa| (0..64u8).map(move |k| (isa, (k / 8, k % 8)))) {
            // The window steps over four bytes, of which the first is the flag.
            let (_, got) = at_index(isa, fetch(Access::Flag), pair, 3, 7);
            assert_eq!(got, 103, "{pair:?}");
            let (array, _) = at_index(isa, put(Access::Flag, false), pair, 1, 1);
            assert_eq!(array[..3], [100, 1, 102], "{pair:?}");
            let (array, _) = at_index(isa, put(Access::Flag, true), pair, 9, 1);
            assert_eq!(array[..5], [100, 101, 102, 103, 104], "{pair:?}");
        }
    }
}
