//! The text of the families on AArch64, for the registers of NEON.
//!
//! Vector registers 16 and up and `x9` to `x17` are free within a handler. `x0` is the instruction, `x1` the loop's
//! memory, `x2` the step, `x3` the steps left and `x4` the instruction after a jump back.

use super::{Access, Family, Fma, One, Pair, Two, Width};
use crate::machine::handler::Code;
use crate::simd::Isa;

/// Whether there are handlers for lanes of 8 bytes: loops over such run step by step here.
pub const WIDE: bool = false;

/// Whether masks may be anywhere in the loop's memory, so that arrays may take several registers.
pub const PACKS: bool = false;

/// Whether an instruction set has an operation.
pub fn has(_: Isa, _: Two, lane: Width) -> bool {
    lane == Width::Four
}

/// Whether an instruction set has [`One::ToFloat`].
pub fn converts(_: Isa, lane: Width) -> bool {
    lane == Width::Four
}

/// A naked function that is a table: `$vars` are the loops over registers, outermost first. What is not looped over is
/// register 16. The text is a macro because a name in it ends before `\\()`, which only one expansion sees.
macro_rules! rows {
    ($slot:literal, [$($var:literal)*], $text:expr) => {{
        #[unsafe(naked)]
        unsafe extern "C" fn table() {
            core::arch::naked_asm!(
                ".balign 64",
                ".macro ferrax_handler d=16, a=16, b=16, last=0",
                $text,
                "br x16",
                ".endm",
                $(concat!(".irp ", $var, ",0,1,2,3,4,5,6,7"),)*
                concat!(".balign ", $slot),
                concat!("ferrax_handler ", $($var, "=\\", $var, ", ",)* "last=0"),
                $(concat!(".endr // ", $var),)*
                ".purgem ferrax_handler",
            )
        }
        Family { tables: [Code(table as *const ())], slot: $slot }
    }};
}

/// A family from the text of its handlers, which go on to the next instruction.
macro_rules! family {
    ($slot:literal, $vars:tt, $text:expr) => {
        rows!($slot, $vars, concat!($text, "\nldr x16, [x0, #24]!"))
    };
}

/// A family from the text of its handlers, which says where it goes.
macro_rules! jumps {
    ($slot:literal, $vars:tt, $text:expr) => {
        rows!($slot, $vars, concat!($text, "\nldr x16, [x0]"))
    };
}

/// An instruction on lanes of 4 bytes: d from a and b.
macro_rules! lanes {
    ($i:literal) => {
        concat!($i, " v\\d\\().4s, v\\a\\().4s, v\\b\\().4s")
    };
}

/// As `lanes`, for operations on bits.
macro_rules! bits {
    ($i:literal) => {
        concat!($i, " v\\d\\().16b, v\\a\\().16b, v\\b\\().16b")
    };
}

/// A comparison: 0 or 1 a lane.
macro_rules! flags {
    ($text:expr) => {
        concat!($text, "\nushr v\\d\\().4s, v\\d\\().4s, #31")
    };
}

/// A shift of lanes of a by those of b, to the right where `$right` makes the counts negative. One instruction looks at
/// a byte of each count, so counts become at most 32, which leaves zeros, or signs.
macro_rules! shift {
    ($i:literal, $right:literal) => {
        concat!("movi v17.4s, #32\numin v17.4s, v\\b\\().4s, v17.4s\n", $right, $i, " v\\d\\().4s, v\\a\\().4s, v17.4s")
    };
}

/// A pair from the text of an operation on d, a and b; an operand in memory is in register 16.
macro_rules! both {
    ($slot:literal, $long:literal, $text:expr) => {
        Pair {
            registers: family!($slot, ["d" "a" "b"], $text),
            memory: family!($long, ["d" "a"], concat!("ldr x9, [x0, #8]\nldr q16, [x1, x9]\n", $text)),
            memory_first: family!($long, ["d" "b"], concat!("ldr x9, [x0, #8]\nldr q16, [x1, x9]\n", $text)),
        }
    };
}

/// The handlers of d = a · b + d.
pub fn fma(_: Width) -> Fma {
    Fma {
        registers: family!(16, ["d" "a" "b"], lanes!("fmla")),
        memory: family!(32, ["d" "a"], concat!("ldr x9, [x0, #8]\nldr q16, [x1, x9]\n", lanes!("fmla"))),
    }
}

/// The handlers of an operation of two operands.
pub fn pair(op: Two, _: Width) -> Pair {
    match op {
        Two::Add => both!(16, 32, lanes!("fadd")),
        Two::Sub => both!(16, 32, lanes!("fsub")),
        Two::Mul => both!(16, 32, lanes!("fmul")),
        Two::Div => both!(16, 32, lanes!("fdiv")),
        Two::Max => both!(16, 32, lanes!("fmax")),
        Two::Min => both!(16, 32, lanes!("fmin")),
        Two::AddInt => both!(16, 32, lanes!("add")),
        Two::SubInt => both!(16, 32, lanes!("sub")),
        Two::MulInt => both!(16, 32, lanes!("mul")),
        Two::And => both!(16, 32, bits!("and")),
        Two::Or => both!(16, 32, bits!("orr")),
        Two::Xor => both!(16, 32, bits!("eor")),
        Two::Eq => both!(16, 32, flags!(lanes!("fcmeq"))),
        Two::Ne => both!(32, 32, flags!(concat!(lanes!("fcmeq"), "\nmvn v\\d\\().16b, v\\d\\().16b"))),
        Two::Lt => both!(16, 32, flags!("fcmgt v\\d\\().4s, v\\b\\().4s, v\\a\\().4s")),
        Two::Le => both!(16, 32, flags!("fcmge v\\d\\().4s, v\\b\\().4s, v\\a\\().4s")),
        Two::EqInt => both!(16, 32, flags!(lanes!("cmeq"))),
        Two::GtInt => both!(16, 32, flags!(lanes!("cmgt"))),
        Two::MaxInt => both!(16, 32, lanes!("smax")),
        Two::MinInt => both!(16, 32, lanes!("smin")),
        Two::ShiftLeft => both!(32, 32, shift!("ushl", "")),
        Two::ShiftRight => both!(32, 32, shift!("ushl", "neg v17.4s, v17.4s\n")),
        Two::ShiftRightSigned => both!(32, 32, shift!("sshl", "neg v17.4s, v17.4s\n")),
        // Bytes 4b to 4b + 3.
        Two::Permute => both!(
            64,
            64,
            "movi v17.4s, #3\nand v17.16b, v\\b\\().16b, v17.16b\nmovi v18.16b, #4\nmul v17.4s, v17.4s, v18.4s\nmovz w9, #0x0100\nmovk w9, #0x0302, lsl #16\ndup v18.4s, w9\nadd v17.16b, v17.16b, v18.16b\ntbl v\\d\\().16b, {{v\\a\\().16b}}, v17.16b"
        ),
    }
}

/// The handlers of an operation of one operand.
pub fn one(op: One, _: Width) -> Family {
    macro_rules! one {
        ($i:literal, $lanes:literal) => {
            family!(16, ["d" "a"], concat!($i, " v\\d\\().", $lanes, ", v\\a\\().", $lanes))
        };
    }
    match op {
        One::Sqrt => one!("fsqrt", "4s"),
        One::Floor => one!("frintm", "4s"),
        One::Ceil => one!("frintp", "4s"),
        One::RoundEven => one!("frintn", "4s"),
        One::ToFloat => one!("scvtf", "4s"),
        One::Move => one!("mov", "16b"),
    }
}

/// d = b where p is 1, over d, p, b.
pub fn choose(_: Width) -> Family {
    family!(
        16,
        ["d" "a" "b"],
        "cmtst v16.4s, v\\a\\().4s, v\\a\\().4s\nbit v\\d\\().16b, v\\b\\().16b, v16.16b"
    )
}

/// d = the loop's memory at the immediate.
pub fn load() -> Family {
    family!(16, ["d"], "ldr x9, [x0, #8]\nldr q\\d, [x1, x9]")
}

/// The loop's memory at the immediate = a.
pub fn store() -> Family {
    family!(16, ["a"], "ldr x9, [x0, #8]\nstr q\\a, [x1, x9]")
}

/// The loop's memory at the stride = at the immediate.
pub fn copy() -> Family {
    family!(32, [], "ldr x9, [x0, #8]\nldr q16, [x1, x9]\nldr x9, [x0, #16]\nstr q16, [x1, x9]")
}

/// `x9` = the address of this step's element: the base is at the immediate in the loop's memory.
macro_rules! at_step {
    ($text:expr) => {
        concat!("ldr x9, [x0, #8]\nldr x9, [x1, x9]\nldr x10, [x0, #16]\nmadd x9, x10, x2, x9\n", $text)
    };
}

/// Lanes of a register to or from `x9` as the mask at the start of the loop's memory says, which has the first one and
/// those that follow it without a gap.
macro_rules! masked {
    ($whole:literal, $first:literal, $lane:literal, $r:literal) => {
        concat!(
            "ldr w10, [x1, #12]\ncbz w10, 3f\n",
            $whole,
            " q\\",
            $r,
            ", [x9]\nb 2f\n3:\n",
            $first,
            " s\\",
            $r,
            ", [x9]\nldr w10, [x1, #4]\ncbz w10, 2f\nadd x9, x9, #4\n",
            $lane,
            " {{v\\",
            $r,
            "\\().s}}[1], [x9]\nldr w10, [x1, #8]\ncbz w10, 2f\nadd x9, x9, #4\n",
            $lane,
            " {{v\\",
            $r,
            "\\().s}}[2], [x9]\n2:"
        )
    };
}

/// The element at `x9`, to d.
macro_rules! element {
    (whole) => {
        "ldr q\\d, [x9]"
    };
    (masked) => {
        masked!("ldr", "ldr", "ld1", "d")
    };
    (scalar) => {
        "ld1r {{v\\d\\().4s}}, [x9]"
    };
    (flag) => {
        "ldrb w10, [x9]\ndup v\\d\\().4s, w10"
    };
}

/// d = this step's element of an array.
pub fn read(access: Access, _: Width) -> Family {
    match access {
        Access::Whole => family!(32, ["d"], at_step!(element!(whole))),
        Access::Masked => family!(128, ["d"], at_step!(element!(masked))),
        Access::Scalar => family!(32, ["d"], at_step!(element!(scalar))),
        Access::Flag => family!(32, ["d"], at_step!(element!(flag))),
    }
}

/// This step's element of an array = a.
pub fn write(access: Access, _: Width) -> Family {
    match access {
        Access::Whole => family!(32, ["a"], at_step!("str q\\a, [x9]")),
        Access::Masked => family!(128, ["a"], at_step!(masked!("str", "str", "st1", "a"))),
        Access::Scalar => family!(32, ["a"], at_step!("str s\\a, [x9]")),
        Access::Flag => family!(32, ["a"], at_step!("str b\\a, [x9]")),
    }
}

/// `x9` = the address of the element that lane 0 of a names; text for an index outside comes in between. The window is
/// at the immediate in the loop's memory.
macro_rules! at_index {
    ($outside:literal, $text:expr) => {
        concat!(
            "ldr x9, [x0, #8]\nadd x9, x1, x9\nfmov w10, s\\a\nsxtw x10, w10\nldr x11, [x9, #8]\n",
            $outside,
            "\nldr x11, [x9, #16]\nldr x9, [x9]\nmadd x9, x10, x11, x9\n",
            $text
        )
    };
}

/// An index outside is moved inside.
macro_rules! clamped {
    ($text:expr) => {
        at_index!("bic x10, x10, x10, asr #63\ncmp x10, x11\ncsel x10, x11, x10, gt", $text)
    };
}

/// An element whose index is outside is left out.
macro_rules! checked {
    ($text:expr) => {
        at_index!("cmp x10, x11\nb.hi 2f", $text)
    };
}

/// d = the element of an array at the index a, clamped.
pub fn fetch(access: Access, _: Width) -> Family {
    match access {
        Access::Whole => family!(64, ["d" "a"], clamped!(element!(whole))),
        Access::Masked => family!(128, ["d" "a"], clamped!(element!(masked))),
        Access::Scalar => family!(64, ["d" "a"], clamped!(element!(scalar))),
        Access::Flag => family!(64, ["d" "a"], clamped!(element!(flag))),
    }
}

/// d = the elements of an array that the lanes of a number. The window is at the immediate in the loop's memory, of which the
/// address is used.
pub fn gather(_: Width) -> Family {
    macro_rules! lane {
        ($l:literal) => {
            concat!("umov w10, v\\a.s[", $l, "]\nadd x10, x9, x10, lsl #2\nld1 {{v17.s}}[", $l, "], [x10]\n")
        };
    }
    family!(
        128,
        ["d" "a"],
        concat!(
            "ldr x9, [x0, #8]\nldr x9, [x1, x9]\n",
            lane!("0"),
            lane!("1"),
            lane!("2"),
            lane!("3"),
            "mov v\\d.16b, v17.16b"
        )
    )
}

/// The element of an array at the index a, clamped, or nothing where it is outside and `leaves_out`, = d.
pub fn put(access: Access, leaves_out: bool, _: Width) -> Family {
    macro_rules! either {
        ($text:expr) => {
            if leaves_out {
                family!(128, ["d" "a"], checked!($text))
            } else {
                family!(128, ["d" "a"], clamped!($text))
            }
        };
    }
    match access {
        Access::Whole => either!("str q\\d, [x9]\n2:"),
        Access::Masked => either!(masked!("str", "str", "st1", "d")),
        Access::Scalar => either!("str s\\d, [x9]\n2:"),
        Access::Flag => either!("str b\\d, [x9]\n2:"),
    }
}

/// Goes on at the instruction that lies the immediate's bytes ahead.
pub fn jump() -> Family {
    jumps!(16, [], "ldr x9, [x0, #8]\nadd x0, x0, x9")
}

/// Goes on at the instruction that lies the immediate's bytes ahead where the first lane of a is 0.
pub fn skip() -> Family {
    jumps!(64, ["a"], "fmov w9, s\\a\ncbz w9, 2f\nldr x16, [x0, #24]!\nbr x16\n2:\nldr x9, [x0, #8]\nadd x0, x0, x9")
}

/// Moves the step by the immediate and jumps back while steps are left. Conditional jumps, unlike conditional moves,
/// let the next step's instructions be read before the condition is known.
pub fn count_back() -> Family {
    jumps!(
        64,
        [],
        "ldr x9, [x0, #8]\nadd x2, x2, x9\nsubs x3, x3, #1\nb.eq 2f\nmov x0, x4\nldr x16, [x0]\nbr x16\n2:\nadd x0, x0, #24"
    )
}

/// Jumps back while the first lane of a is not 0.
pub fn test_back() -> Family {
    jumps!(32, ["a"], "fmov w9, s\\a\ncbz w9, 2f\nmov x0, x4\nldr x16, [x0]\nbr x16\n2:\nadd x0, x0, #24")
}

/// Jumps back while a lane of a is not 0 that the mask at the start of the loop's memory has.
pub fn any_back() -> Family {
    jumps!(
        64,
        ["a"],
        "ldr q16, [x1]\nand v16.16b, v16.16b, v\\a\\().16b\numaxv s16, v16.4s\nfmov w9, s16\ncbz w9, 2f\nmov x0, x4\nldr x16, [x0]\nbr x16\n2:\nadd x0, x0, #24"
    )
}
