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
    PACKS, WIDE, any_back, choose, converts, copy, count_back, fetch, fma, has, jump, load, put, read, skip, store,
    test_back, write,
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

#[cfg(test)]
mod tests {
    use super::super::super::handler::{Instr, finish};
    use super::super::assemble::Assembler;
    use super::*;
    use crate::math::{double, single};
    use crate::simd::{Isa, isa};

    /// A place of the loop's memory with these bits in every lane, and the bits of one lane.
    fn place(lane: Width, bits: u64) -> [u32; 16] {
        std::array::from_fn(|i| if lane == Width::Eight && i % 2 == 1 { (bits >> 32) as u32 } else { bits as u32 })
    }

    fn bits(lane: Width, place: &[u32]) -> u64 {
        lane.bits(u64::from(place[0]) | u64::from(place[1]) << 32)
    }

    /// Places of the loop's memory: one for each register before and one for each after, and a third operand.
    fn run((isa, lane): (Isa, Width), instr: &Instr, before: [u64; 9]) -> [u64; 8] {
        let mut memory: Vec<u32> = before.iter().flat_map(|&x| place(lane, x)).collect();
        memory.resize(17 * 16, 0);
        let mut asm = Assembler::new(isa, lane, 17 * 64);
        (0..8).for_each(|r| asm.load(r, u32::from(r) * 64));
        asm.code.push(*instr);
        (0..8).for_each(|r| asm.store(r, (9 + u32::from(r)) * 64));
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the 17 places.
        unsafe { super::super::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        std::array::from_fn(|r| {
            let after = &memory[(9 + r) * 16..][..isa.width()];
            let found = bits(lane, after);
            assert_eq!(after, &place(lane, found)[..isa.width()]);
            found
        })
    }

    fn instr(family: Family, isa: Isa, all: &[u8], imm: u64) -> Instr {
        Instr { code: family.code(isa, registers(all)), imm, p: 0, q: 0, ps: 0, qs: 0 }
    }

    /// The instruction sets that this machine has, the narrow one first, with the lanes that there are handlers for.
    fn sets() -> Vec<(Isa, Width)> {
        let has = |all: &Isa| isa().is_some_and(|isa| all.width() <= isa.width());
        let widths: &[Width] = if WIDE { &[Width::Four, Width::Eight] } else { &[Width::Four] };
        Isa::ALL.iter().copied().rev().take_while(has).flat_map(|isa| widths.iter().map(move |&w| (isa, w))).collect()
    }

    const ALL: [Two; 24] = [
        Two::Add,
        Two::Sub,
        Two::Mul,
        Two::Div,
        Two::Max,
        Two::Min,
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
        Two::Permute,
    ];

    /// The bits of a number.
    fn float(lane: Width, x: f64) -> u64 {
        if lane == Width::Eight { x.to_bits() } else { u64::from((x as f32).to_bits()) }
    }

    fn expected(lane: Width, op: Two, a: u64, b: u64) -> u64 {
        let wide = lane == Width::Eight;
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let (v, w) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        let either = |x: f64, v: f32| if wide { x.to_bits() } else { u64::from(v.to_bits()) };
        match op {
            Two::Add => either(x + y, v + w),
            Two::Sub => either(x - y, v - w),
            Two::Mul => either(x * y, v * w),
            Two::Div => either(x / y, v / w),
            Two::Max => either(double::max(x, y), single::max(v, w)),
            Two::Min => either(double::min(x, y), single::min(v, w)),
            Two::Eq => u64::from(if wide { x == y } else { v == w }),
            Two::Ne => u64::from(if wide { x != y } else { v != w }),
            Two::Lt => u64::from(if wide { x < y } else { v < w }),
            Two::Le => u64::from(if wide { x <= y } else { v <= w }),
            // All lanes are the same.
            Two::Permute => a,
            _ => op.of_numbers(lane, a, b).expect("an operation on integers"),
        }
    }

    #[test]
    fn every_handler_reads_and_writes_its_registers() {
        for (set, op) in sets().into_iter().flat_map(|set| ALL.map(|op| (set, op))) {
            let (isa, lane) = set;
            if !has(isa, op, lane) {
                continue;
            }
            let before: [u64; 9] = std::array::from_fn(|r| float(lane, 1.25 * r as f64 - 3.5));
            let pair = op.pair(lane);
            for index in 0..512usize {
                let [d, a, b] = [index / 64, index / 8 % 8, index % 8];
                let all = [d as u8, a as u8, b as u8];
                let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(lane, op, before[a], before[b]);
                assert_eq!(run(set, &instr(pair.registers, isa, &all, 0), before), want, "{op:?} {all:?} {set:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let all = [d as u8, a as u8];
                let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(lane, op, before[a], before[8]);
                assert_eq!(run(set, &instr(pair.memory, isa, &all, 8 * 64), before), want, "{op:?} {all:?} {set:?}");
                want[d] = expected(lane, op, before[8], before[a]);
                assert_eq!(run(set, &instr(pair.memory_first, isa, &all, 8 * 64), before), want, "{op:?} {all:?}");
            }
        }
    }

    #[test]
    fn extremes_of_zeros_and_of_what_is_no_number() {
        let some = [0.0, -0.0, 1.5, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
        for (set, op) in sets().into_iter().flat_map(|set| [Two::Max, Two::Min].map(|op| (set, op))) {
            for (x, y) in some.into_iter().flat_map(|x| some.map(|y| (float(set.1, x), float(set.1, y)))) {
                let mut before = [x; 9];
                (before[5], before[8]) = (y, y);
                let want = expected(set.1, op, x, y);
                for (family, all) in [(op.pair(set.1).registers, &[3, 4, 5][..]), (op.pair(set.1).memory, &[3, 4])] {
                    let after = run(set, &instr(family, set.0, all, 8 * 64), before)[3];
                    assert_eq!(after, want, "{op:?} {x:x} {y:x} {set:?}");
                }
            }
        }
    }

    #[test]
    fn choices_and_moves_use_their_registers() {
        let before: [u64; 9] = std::array::from_fn(|r| u64::from(r % 2 == 1));
        for set in sets() {
            let (isa, lane) = set;
            for index in 0..512usize {
                let [d, p, t] = [index / 64, index / 8 % 8, index % 8];
                let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
                if before[p] == 1 {
                    want[d] = before[t];
                }
                let all = [d as u8, p as u8, t as u8];
                assert_eq!(run(set, &instr(choose(lane), isa, &all, 0), before), want, "{all:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let before: [u64; 9] = std::array::from_fn(|r| r as u64 + 1);
                let mut want: [u64; 8] = std::array::from_fn(|r| before[r]);
                want[d] = before[a];
                let all = [d as u8, a as u8];
                assert_eq!(run(set, &instr(One::Move.family(lane), isa, &all, 0), before), want);
                if converts(isa, lane) {
                    want[d] = float(lane, before[a] as f64);
                    assert_eq!(run(set, &instr(One::ToFloat.family(lane), isa, &all, 0), before), want);
                }
            }
        }
    }

    #[test]
    fn operations_of_one_operand() {
        for set in sets() {
            let (isa, lane) = set;
            // Numbers whose roots are exact.
            for x in [2.25f64, 6.25, 0.25] {
                let rounded = [(One::Floor, x.floor()), (One::Ceil, x.ceil()), (One::RoundEven, x.round_ties_even())];
                for (op, want) in rounded.into_iter().chain([(One::Sqrt, x.sqrt())]) {
                    let after = run(set, &instr(op.family(lane), isa, &[3, 5], 0), [float(lane, x); 9]);
                    assert_eq!(after[3], float(lane, want), "{op:?} {x} {set:?}");
                }
            }
        }
    }

    /// An array of five numbers after an element of it was read or written, and the register that took part.
    fn at_index(
        (isa, lane): (Isa, Width),
        family: Family,
        (d, a): (u8, u8),
        index: i64,
        value: u64,
    ) -> ([u64; 5 + 16], u64) {
        let step = lane.bytes() as u64;
        let mut array: Vec<u8> =
            (0..5 + 16u64).flat_map(|i| (100 + i).to_le_bytes()[..step as usize].to_vec()).collect();
        // The mask, the window, the index, the value, the register after.
        let mut memory = [[0u32; 16]; 5];
        memory[0][..lane.bytes() / 4].fill(!0);
        let address = array.as_mut_ptr() as u64;
        for (k, word) in [address, 4, step].into_iter().enumerate() {
            (memory[1][2 * k], memory[1][2 * k + 1]) = (word as u32, (word >> 32) as u32);
        }
        (memory[2], memory[3]) = (place(lane, index as u64), place(lane, value));
        let mut asm = Assembler::new(isa, lane, 5 * 64);
        asm.load(d, 3 * 64);
        asm.load(a, 2 * 64);
        asm.code.push(instr(family, isa, &[d, a], 64));
        asm.store(d, 4 * 64);
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the places, and elements of the array as far as a register reaches.
        unsafe { super::super::run(isa, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        let element = |i: usize| {
            let mut bytes = [0; 8];
            bytes[..step as usize].copy_from_slice(&array[i * step as usize..][..step as usize]);
            u64::from_le_bytes(bytes)
        };
        (std::array::from_fn(element), bits(lane, &memory[4]))
    }

    #[test]
    fn elements_at_an_index() {
        let inside = |index: i64| index.clamp(0, 4) as usize;
        let pairs = (0..64u8).map(|k| (k / 8, k % 8));
        for ((set, pair), index) in sets().into_iter().flat_map(|set| pairs.clone().map(move |p| (set, p))).zip(-7i64..)
        {
            let (isa, lane) = set;
            for index in [index % 9, 2] {
                for access in [Access::Scalar, Access::Whole, Access::Masked] {
                    let (_, got) = at_index(set, fetch(access, lane), pair, index, 7);
                    assert_eq!(got, 100 + inside(index) as u64, "{access:?} {pair:?} {index}");
                    for checked in [false, true] {
                        let (array, _) = at_index(set, put(access, checked, lane), pair, index, 7);
                        let value = if pair.0 == pair.1 { lane.bits(index as u64) } else { 7 };
                        let left_out = checked && inside(index) as i64 != index;
                        for (i, &x) in array[..5].iter().enumerate() {
                            let lanes = if access == Access::Whole { 4 * isa.width() / lane.bytes() } else { 1 };
                            let hit = (inside(index)..inside(index) + lanes).contains(&i);
                            let want = if hit && !left_out { value } else { 100 + i as u64 };
                            assert_eq!(x, want, "{access:?} {pair:?} {index} {checked}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn flags_at_an_index() {
        for (set, pair) in sets().into_iter().flat_map(|set| (0..64u8).map(move |k| (set, (k / 8, k % 8)))) {
            // The window steps over as many bytes as a lane has, of which the first is the flag.
            let (_, got) = at_index(set, fetch(Access::Flag, set.1), pair, 3, 7);
            assert_eq!(got, 103, "{pair:?}");
            let (array, _) = at_index(set, put(Access::Flag, false, set.1), pair, 1, 1);
            assert_eq!(array[..3], [100, 1, 102], "{pair:?}");
            let (array, _) = at_index(set, put(Access::Flag, true, set.1), pair, 9, 1);
            assert_eq!(array[..5], [100, 101, 102, 103, 104], "{pair:?}");
        }
    }
}
