//! Families of handlers for register loops: one handler for each choice of registers, written in assembly.
//!
//! A family is a table of code in which every handler takes the same number of bytes, so a handler's address is
//! computed. Registers 0 to 7 hold the values of a loop; the others, `rax`, `r9` and the mask registers are free
//! within a handler. `rdi` is the instruction ([`Instr`](super::super::handler::Instr), 24 bytes: code, immediate,
//! stride), `rsi` the loop's memory, `rdx` the step, `rcx` the steps left and `r8` the instruction after a jump back.
//! These are the argument registers of [`Code512`](super::super::handler::Code512), so handlers compiled from Rust
//! (`handlers.rs`) may stand between them. Assembly because 512 functions an operation would take the compiler
//! minutes, and because these jumps need no optimizer.
//! Read next: `assemble.rs`, which chooses among them.

use super::super::handler::Code;

/// Bytes of an instruction, which handlers step over.
const _: () = assert!(size_of::<super::super::handler::Instr>() == 24);

/// A table of handlers for both register widths.
#[derive(Clone, Copy)]
pub struct Family {
    v512: unsafe extern "sysv64" fn(),
    v256: unsafe extern "sysv64" fn(),
    /// Bytes a handler takes.
    slot: usize,
}

impl Family {
    /// The code of a handler.
    pub fn code(self, wide: bool, index: usize) -> Code {
        let table = if wide { self.v512 } else { self.v256 } as usize;
        // Tables begin at a multiple of 64, of which the function's own start may fall short by padding.
        Code((table.next_multiple_of(64) + index * self.slot) as *const ())
    }
}

/// The index of registers in a family over two or three of them.
pub fn registers(all: &[u8]) -> usize {
    all.iter().fold(0, |index, &r| index * 8 + usize::from(r))
}

/// A naked function that is a table: `$vars` are the loops over registers, outermost first.
macro_rules! rows {
    ($name:ident, $slot:literal, [$($var:literal)*], $text:expr) => {
        #[unsafe(naked)]
        unsafe extern "sysv64" fn $name() {
            core::arch::naked_asm!(
                ".balign 64",
                $(concat!(".irp ", $var, ",0,1,2,3,4,5,6,7"),)*
                concat!(".balign ", $slot),
                $text,
                "jmp qword ptr [rdi]",
                $(concat!(".endr #", $var),)*
            )
        }
    };
}

/// A family from the text of its handlers for 512 and for 256 bits, which go on to the next instruction.
macro_rules! family {
    ($slot:literal, $vars:tt, $t512:expr, $t256:expr) => {{
        rows!(v512, $slot, $vars, concat!($t512, "\nadd rdi, 24"));
        rows!(v256, $slot, $vars, concat!($t256, "\nadd rdi, 24"));
        Family { v512, v256, slot: $slot }
    }};
}

/// A family whose text is the same for both widths and says where it goes.
macro_rules! jumps {
    ($slot:literal, $vars:tt, $text:expr) => {{
        rows!(table, $slot, $vars, $text);
        Family { v512: table, v256: table, slot: $slot }
    }};
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

/// A pair from an instruction's text up to its first source, what follows the last one, and what comes after.
macro_rules! pair {
    ($slot:literal, $i512:literal, $i256:literal) => {
        pair!($slot, 32, $i512, $i256, "", "", "")
    };
    ($slot:literal, $long:literal, $i512:literal, $i256:literal, $last:literal, $after512:literal, $after256:literal) => {
        Pair {
            registers: family!(
                $slot,
                ["d" "a" "b"],
                concat!($i512, ", zmm\\a, zmm\\b", $last, "\n", $after512),
                concat!($i256, ", ymm\\a, ymm\\b", $last, "\n", $after256)
            ),
            memory: family!(
                $long,
                ["d" "a"],
                concat!("mov rax, [rdi + 8]\n", $i512, ", zmm\\a, [rsi + rax]", $last, "\n", $after512),
                concat!("mov rax, [rdi + 8]\n", $i256, ", ymm\\a, [rsi + rax]", $last, "\n", $after256)
            ),
            memory_first: family!(
                $long,
                ["d" "a"],
                concat!(
                    "mov rax, [rdi + 8]\nvmovups zmm8, [rsi + rax]\n",
                    $i512, ", zmm8, zmm\\a", $last, "\n", $after512
                ),
                concat!(
                    "mov rax, [rdi + 8]\nvmovups ymm8, [rsi + rax]\n",
                    $i256, ", ymm8, ymm\\a", $last, "\n", $after256
                )
            ),
        }
    };
}

/// A comparison of floats by its predicate: 0 or 1 a lane.
macro_rules! compare_floats {
    ($predicate:literal) => {
        pair!(
            32,
            64,
            "vcmpps k1",
            "vcmpps ymm\\d",
            $predicate,
            "vpmovm2d zmm\\d, k1\nvpsrld zmm\\d, zmm\\d, 31",
            "vpsrld ymm\\d, ymm\\d, 31"
        )
    };
}

/// A comparison of signed integers: 0 or 1 a lane.
macro_rules! compare_integers {
    ($i512:literal, $i256:literal) => {
        pair!(32, 64, $i512, $i256, "", "vpmovm2d zmm\\d, k1\nvpsrld zmm\\d, zmm\\d, 31", "vpsrld ymm\\d, ymm\\d, 31")
    };
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
        match self {
            Two::Add => pair!(16, "vaddps zmm\\d", "vaddps ymm\\d"),
            Two::Sub => pair!(16, "vsubps zmm\\d", "vsubps ymm\\d"),
            Two::Mul => pair!(16, "vmulps zmm\\d", "vmulps ymm\\d"),
            Two::Div => pair!(16, "vdivps zmm\\d", "vdivps ymm\\d"),
            Two::AddInt => pair!(16, "vpaddd zmm\\d", "vpaddd ymm\\d"),
            Two::SubInt => pair!(16, "vpsubd zmm\\d", "vpsubd ymm\\d"),
            Two::MulInt => pair!(16, "vpmulld zmm\\d", "vpmulld ymm\\d"),
            Two::And => pair!(16, "vpandd zmm\\d", "vpand ymm\\d"),
            Two::Or => pair!(16, "vpord zmm\\d", "vpor ymm\\d"),
            Two::Xor => pair!(16, "vpxord zmm\\d", "vpxor ymm\\d"),
            Two::Eq => compare_floats!(", 0"),
            Two::Lt => compare_floats!(", 1"),
            Two::Le => compare_floats!(", 2"),
            Two::Ne => compare_floats!(", 4"),
            Two::EqInt => compare_integers!("vpcmpeqd k1", "vpcmpeqd ymm\\d"),
            Two::GtInt => compare_integers!("vpcmpgtd k1", "vpcmpgtd ymm\\d"),
            Two::MaxInt => pair!(16, "vpmaxsd zmm\\d", "vpmaxsd ymm\\d"),
            Two::MinInt => pair!(16, "vpminsd zmm\\d", "vpminsd ymm\\d"),
            Two::ShiftLeft => pair!(16, "vpsllvd zmm\\d", "vpsllvd ymm\\d"),
            Two::ShiftRight => pair!(16, "vpsrlvd zmm\\d", "vpsrlvd ymm\\d"),
            Two::ShiftRightSigned => pair!(16, "vpsravd zmm\\d", "vpsravd ymm\\d"),
        }
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
        macro_rules! one {
            ($i512:literal, $i256:literal, $last:literal) => {
                family!(16, ["d" "a"], concat!($i512, " zmm\\d, zmm\\a", $last), concat!($i256, " ymm\\d, ymm\\a", $last))
            };
        }
        match self {
            One::Sqrt => one!("vsqrtps", "vsqrtps", ""),
            One::Floor => one!("vrndscaleps", "vroundps", ", 9"),
            One::Ceil => one!("vrndscaleps", "vroundps", ", 10"),
            One::RoundEven => one!("vrndscaleps", "vroundps", ", 8"),
            One::ToFloat => one!("vcvtdq2ps", "vcvtdq2ps", ""),
            One::Move => one!("vmovaps", "vmovaps", ""),
        }
    }
}

/// d = b where p is 1, over d, p, b.
pub fn choose() -> Family {
    family!(
        32,
        ["d" "a" "b"],
        "vptestmd k1, zmm\\a, zmm\\a\nvmovdqa32 zmm\\d{{k1}}, zmm\\b",
        "vpslld ymm8, ymm\\a, 31\nvblendvps ymm\\d, ymm\\d, ymm\\b, ymm8"
    )
}

/// d = the loop's memory at the immediate.
pub fn load() -> Family {
    family!(
        32,
        ["d"],
        "mov rax, [rdi + 8]\nvmovups zmm\\d, [rsi + rax]",
        "mov rax, [rdi + 8]\nvmovups ymm\\d, [rsi + rax]"
    )
}

/// The loop's memory at the immediate = a.
pub fn store() -> Family {
    family!(
        32,
        ["a"],
        "mov rax, [rdi + 8]\nvmovups [rsi + rax], zmm\\a",
        "mov rax, [rdi + 8]\nvmovups [rsi + rax], ymm\\a"
    )
}

/// The loop's memory at the stride = at the immediate.
pub fn copy() -> Family {
    family!(
        32,
        [],
        "mov rax, [rdi + 8]\nvmovups zmm8, [rsi + rax]\nmov rax, [rdi + 16]\nvmovups [rsi + rax], zmm8",
        "mov rax, [rdi + 8]\nvmovups ymm8, [rsi + rax]\nmov rax, [rdi + 16]\nvmovups [rsi + rax], ymm8"
    )
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

/// `rax` = the address of this step's element: the base is at the immediate in the loop's memory.
macro_rules! at_step {
    ($text:literal) => {
        concat!("mov rax, [rdi + 8]\nmov rax, [rsi + rax]\nmov r9, [rdi + 16]\nimul r9, rdx\n", $text)
    };
}

/// d = this step's element of an array.
pub fn read(access: Access) -> Family {
    match access {
        Access::Whole => {
            family!(32, ["d"], at_step!("vmovups zmm\\d, [rax + r9]"), at_step!("vmovups ymm\\d, [rax + r9]"))
        }
        Access::Masked => family!(
            64,
            ["d"],
            at_step!("vmovdqu32 zmm8, [rsi]\nvptestmd k1, zmm8, zmm8\nvmovups zmm\\d{{k1}}{{z}}, [rax + r9]"),
            at_step!("vmovups ymm8, [rsi]\nvmaskmovps ymm\\d, ymm8, [rax + r9]")
        ),
        Access::Scalar => {
            family!(32, ["d"], at_step!("vbroadcastss zmm\\d, [rax + r9]"), at_step!("vbroadcastss ymm\\d, [rax + r9]"))
        }
        Access::Flag => family!(
            64,
            ["d"],
            at_step!("movzx eax, byte ptr [rax + r9]\nvmovd xmm\\d, eax\nvpbroadcastd zmm\\d, xmm\\d"),
            at_step!("movzx eax, byte ptr [rax + r9]\nvmovd xmm\\d, eax\nvpbroadcastd ymm\\d, xmm\\d")
        ),
    }
}

/// This step's element of an array = a.
pub fn write(access: Access) -> Family {
    match access {
        Access::Whole => {
            family!(32, ["a"], at_step!("vmovups [rax + r9], zmm\\a"), at_step!("vmovups [rax + r9], ymm\\a"))
        }
        Access::Masked => family!(
            64,
            ["a"],
            at_step!("vmovdqu32 zmm8, [rsi]\nvptestmd k1, zmm8, zmm8\nvmovups [rax + r9]{{k1}}, zmm\\a"),
            at_step!("vmovups ymm8, [rsi]\nvmaskmovps [rax + r9], ymm8, ymm\\a")
        ),
        Access::Scalar => {
            family!(
                32,
                ["a"],
                at_step!("vmovss dword ptr [rax + r9], xmm\\a"),
                at_step!("vmovss dword ptr [rax + r9], xmm\\a")
            )
        }
        Access::Flag => family!(
            64,
            ["a"],
            at_step!("vpextrb byte ptr [rax + r9], xmm\\a, 0"),
            at_step!("vpextrb byte ptr [rax + r9], xmm\\a, 0")
        ),
    }
}

/// `r9` = the address of the element that lane 0 of a names; text for an index outside comes in between. The window is
/// at the immediate in the loop's memory.
macro_rules! at_index {
    ($outside:literal, $text:literal) => {
        concat!(
            "mov rax, [rdi + 8]\nvmovd r9d, xmm\\a\nmovsxd r9, r9d\n",
            $outside,
            "\nimul r9, [rsi + rax + 16]\nadd r9, [rsi + rax]\n",
            $text
        )
    };
}

/// An index outside is moved inside.
macro_rules! clamped {
    ($text:literal) => {
        at_index!(
            "xor r10d, r10d\ntest r9, r9\ncmovs r9, r10\nmov r10, [rsi + rax + 8]\ncmp r9, r10\ncmovg r9, r10",
            $text
        )
    };
}

/// An element whose index is outside is left out.
macro_rules! checked {
    ($text:literal) => {
        at_index!("cmp r9, [rsi + rax + 8]\nja 2f", $text)
    };
}

/// d = the element of an array at the index a, clamped.
pub fn fetch(access: Access) -> Family {
    match access {
        Access::Whole => {
            family!(64, ["d" "a"], clamped!("vmovups zmm\\d, [r9]"), clamped!("vmovups ymm\\d, [r9]"))
        }
        Access::Masked => family!(
            128,
            ["d" "a"],
            clamped!("vmovdqu32 zmm8, [rsi]\nvptestmd k1, zmm8, zmm8\nvmovups zmm\\d{{k1}}{{z}}, [r9]"),
            clamped!("vmovups ymm8, [rsi]\nvmaskmovps ymm\\d, ymm8, [r9]")
        ),
        Access::Scalar => {
            family!(64, ["d" "a"], clamped!("vbroadcastss zmm\\d, [r9]"), clamped!("vbroadcastss ymm\\d, [r9]"))
        }
        Access::Flag => family!(
            128,
            ["d" "a"],
            clamped!("movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastd zmm\\d, xmm\\d"),
            clamped!("movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastd ymm\\d, xmm\\d")
        ),
    }
}

/// The element of an array at the index a, clamped, or nothing where it is outside and `leaves_out`, = d.
pub fn put(access: Access, leaves_out: bool) -> Family {
    macro_rules! either {
        ($t512:literal, $t256:literal) => {
            if leaves_out {
                family!(128, ["d" "a"], checked!($t512), checked!($t256))
            } else {
                family!(128, ["d" "a"], clamped!($t512), clamped!($t256))
            }
        };
    }
    match access {
        Access::Whole => either!("vmovups [r9], zmm\\d\n2:", "vmovups [r9], ymm\\d\n2:"),
        Access::Masked => either!(
            "vmovdqu32 zmm8, [rsi]\nvptestmd k1, zmm8, zmm8\nvmovups [r9]{{k1}}, zmm\\d\n2:",
            "vmovups ymm8, [rsi]\nvmaskmovps [r9], ymm8, ymm\\d\n2:"
        ),
        Access::Scalar => either!("vmovss dword ptr [r9], xmm\\d\n2:", "vmovss dword ptr [r9], xmm\\d\n2:"),
        Access::Flag => either!("vpextrb byte ptr [r9], xmm\\d, 0\n2:", "vpextrb byte ptr [r9], xmm\\d, 0\n2:"),
    }
}

/// Goes on at the instruction that lies the immediate's bytes ahead.
pub fn jump() -> Family {
    jumps!(32, [], "add rdi, [rdi + 8]")
}

/// Moves the step by the immediate and jumps back while steps are left. Conditional jumps, unlike conditional moves,
/// let the next step's instructions be read before the condition is known.
pub fn count_back() -> Family {
    jumps!(32, [], "add rdx, [rdi + 8]\ndec rcx\njz 2f\nmov rdi, r8\njmp qword ptr [rdi]\n2:\nadd rdi, 24")
}

/// Jumps back while the first lane of a is not 0.
pub fn test_back() -> Family {
    jumps!(32, ["a"], "vmovd eax, xmm\\a\ntest eax, eax\njz 2f\nmov rdi, r8\njmp qword ptr [rdi]\n2:\nadd rdi, 24")
}

#[cfg(test)]
mod tests {
    use super::super::super::handler::{Instr, finish};
    use super::super::assemble::Assembler;
    use super::*;
    use crate::machine::{Isa, isa};

    /// Places of the loop's memory: one for each register before and one for each after, and a third operand.
    fn run(wide: bool, instr: &Instr, before: [u32; 9]) -> [u32; 8] {
        let mut memory: Vec<u32> = before.iter().flat_map(|&x| [x; 16]).collect();
        memory.resize(17 * 16, 0);
        let mut asm = Assembler::new(wide, 17 * 64);
        (0..8).for_each(|r| asm.load(r, u32::from(r) * 64));
        asm.code.push(*instr);
        (0..8).for_each(|r| asm.store(r, (9 + u32::from(r)) * 64));
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the 17 places.
        unsafe { super::super::run(wide, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        let lanes = if wide { 16 } else { 8 };
        std::array::from_fn(|r| {
            let after = &memory[(9 + r) * 16..][..lanes];
            assert!(after.iter().all(|x| *x == after[0]));
            after[0]
        })
    }

    fn instr(family: Family, wide: bool, all: &[u8], imm: u64) -> Instr {
        Instr { code: family.code(wide, registers(all)), imm, p: 0, q: 0, ps: 0, qs: 0 }
    }

    fn widths() -> Vec<bool> {
        match isa() {
            Some(Isa::Avx512) => vec![false, true],
            Some(Isa::Avx2) => vec![false],
            None => vec![],
        }
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
        for (wide, op) in widths().into_iter().flat_map(|w| ALL.map(|op| (w, op))) {
            let pair = op.pair();
            for index in 0..512usize {
                let [d, a, b] = [index / 64, index / 8 % 8, index % 8];
                let all = [d as u8, a as u8, b as u8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(op, before[a], before[b]);
                assert_eq!(run(wide, &instr(pair.registers, wide, &all, 0), before), want, "{op:?} {all:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let all = [d as u8, a as u8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = expected(op, before[a], before[8]);
                assert_eq!(run(wide, &instr(pair.memory, wide, &all, 8 * 64), before), want, "{op:?} {all:?}");
                want[d] = expected(op, before[8], before[a]);
                assert_eq!(run(wide, &instr(pair.memory_first, wide, &all, 8 * 64), before), want, "{op:?} {all:?}");
            }
        }
    }

    #[test]
    fn choices_and_moves_use_their_registers() {
        let before: [u32; 9] = std::array::from_fn(|r| u32::from(r % 2 == 1));
        for wide in widths() {
            for index in 0..512usize {
                let [d, p, t] = [index / 64, index / 8 % 8, index % 8];
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                if before[p] == 1 {
                    want[d] = before[t];
                }
                let all = [d as u8, p as u8, t as u8];
                assert_eq!(run(wide, &instr(choose(), wide, &all, 0), before), want, "{all:?}");
            }
            for index in 0..64usize {
                let [d, a] = [index / 8, index % 8];
                let before: [u32; 9] = std::array::from_fn(|r| r as u32 + 1);
                let mut want: [u32; 8] = std::array::from_fn(|r| before[r]);
                want[d] = before[a];
                let all = [d as u8, a as u8];
                assert_eq!(run(wide, &instr(One::Move.family(), wide, &all, 0), before), want);
                want[d] = (before[a] as f32).to_bits();
                assert_eq!(run(wide, &instr(One::ToFloat.family(), wide, &all, 0), before), want);
            }
        }
    }

    /// An array of five numbers after an element of it was read or written, and the register that took part.
    fn at_index(wide: bool, family: Family, (d, a): (u8, u8), index: i32, value: u32) -> ([u32; 5 + 16], u32) {
        let mut array: [u32; 5 + 16] = std::array::from_fn(|i| 100 + i as u32);
        // The mask, the window, the index, the value, the register after.
        let mut memory = [[0u32; 16]; 5];
        memory[0][0] = !0;
        let address = array.as_mut_ptr() as u64;
        for (k, word) in [address, 4, 4].into_iter().enumerate() {
            (memory[1][2 * k], memory[1][2 * k + 1]) = (word as u32, (word >> 32) as u32);
        }
        (memory[2], memory[3]) = ([index as u32; 16], [value; 16]);
        let mut asm = Assembler::new(wide, 5 * 64);
        asm.load(d, 3 * 64);
        asm.load(a, 2 * 64);
        asm.code.push(instr(family, wide, &[d, a], 64));
        asm.store(d, 4 * 64);
        asm.finish(finish());
        let code = asm.code.as_ptr();
        // SAFETY: the program is finished and touches the places, and elements of the array as far as a register reaches.
        unsafe { super::super::run(wide, code, code, memory.as_mut_ptr().cast(), 0, 1) };
        (array, memory[4][0])
    }

    #[test]
    fn elements_at_an_index() {
        let inside = |index: i32| index.clamp(0, 4) as usize;
        let pairs = (0..64u8).map(|k| (k / 8, k % 8));
        for ((wide, pair), index) in widths().into_iter().flat_map(|w| pairs.clone().map(move |p| (w, p))).zip(-7i32..)
        {
            for index in [index % 9, 2] {
                for access in [Access::Scalar, Access::Whole, Access::Masked] {
                    let (_, got) = at_index(wide, fetch(access), pair, index, 7);
                    assert_eq!(got, 100 + inside(index) as u32, "{access:?} {pair:?} {index}");
                    for checked in [false, true] {
                        let (array, _) = at_index(wide, put(access, checked), pair, index, 7);
                        let value = if pair.0 == pair.1 { index as u32 } else { 7 };
                        let left_out = checked && inside(index) as i32 != index;
                        for (i, &x) in array[..5].iter().enumerate() {
                            let hit = i == inside(index) || (access == Access::Whole && i > inside(index));
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
        for (wide, pair) in widths().into_iter().flat_map(|w| (0..64u8).map(move |k| (w, (k / 8, k % 8)))) {
            // The window steps over four bytes, of which the first is the flag.
            let (_, got) = at_index(wide, fetch(Access::Flag), pair, 3, 7);
            assert_eq!(got, 103, "{pair:?}");
            let (array, _) = at_index(wide, put(Access::Flag, false), pair, 1, 1);
            assert_eq!(array[..3], [100, 1, 102], "{pair:?}");
            let (array, _) = at_index(wide, put(Access::Flag, true), pair, 9, 1);
            assert_eq!(array[..5], [100, 101, 102, 103, 104], "{pair:?}");
        }
    }
}
