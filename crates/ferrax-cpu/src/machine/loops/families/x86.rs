//! The text of the families on x86-64, for registers of 512 and of 256 bits.
//!
//! Registers 8 and up, `rax`, `r9` to `r11` and the mask registers are free within a handler. `rdi` is the instruction,
//! `rsi` the loop's memory, `rdx` the step, `rcx` the steps left and `r8` the instruction after a jump back.

use super::{Access, Family, Fma, One, Pair, Two, Width};
use crate::machine::handler::Code;
use crate::simd::Isa;

/// Whether there are handlers for lanes of 8 bytes.
pub const WIDE: bool = true;

/// Whether masks may be anywhere in the loop's memory, so that arrays may take several registers.
pub const PACKS: bool = true;

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
    ($slot:literal, $vars:tt, $t512:expr, $t256:expr) => {
        jumps!($slot, $vars, concat!($t512, "\nadd rdi, 24"), concat!($t256, "\nadd rdi, 24"))
    };
}

/// A family whose text says where it goes, and may be the same for both widths.
macro_rules! jumps {
    ($slot:literal, $vars:tt, $t512:expr, $t256:expr) => {{
        rows!(v512, $slot, $vars, $t512);
        rows!(v256, $slot, $vars, $t256);
        Family { tables: [Code(v512 as *const ()), Code(v256 as *const ())], slot: $slot }
    }};
    ($slot:literal, $vars:tt, $text:expr) => {{
        rows!(table, $slot, $vars, $text);
        Family { tables: [Code(table as *const ()); 2], slot: $slot }
    }};
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

/// A comparison by its instruction and its predicate: 0 or 1 a lane of 4 bytes.
macro_rules! compare {
    ($i512:literal, $i256:literal, $predicate:literal) => {
        pair!(
            32,
            64,
            $i512,
            $i256,
            $predicate,
            "vpmovm2d zmm\\d, k1\nvpsrld zmm\\d, zmm\\d, 31",
            "vpsrld ymm\\d, ymm\\d, 31"
        )
    };
}

/// The same for lanes of 8 bytes.
macro_rules! compare_wide {
    ($i512:literal, $i256:literal, $predicate:literal) => {
        pair!(
            32,
            64,
            $i512,
            $i256,
            $predicate,
            "vpmovm2q zmm\\d, k1\nvpsrlq zmm\\d, zmm\\d, 63",
            "vpsrlq ymm\\d, ymm\\d, 63"
        )
    };
}

/// The larger or the smaller of two floats. The instruction for that gives b where a or b is NaN, or both are zeros: a
/// that is NaN is put back, and equal numbers, zeros among them, are joined bit by bit.
macro_rules! extreme {
    ($i:literal, $join:literal, $s:literal) => {
        Pair {
            registers: family!(
                64,
                ["d" "a" "b"],
                extreme!(wide, $i, $join, $s, "zmm\\a", "zmm\\b"),
                extreme!(half, $i, $join, $s, "ymm\\a", "ymm\\b")
            ),
            memory: family!(
                64,
                ["d" "a"],
                concat!("mov rax, [rdi + 8]\nvmovups zmm11, [rsi + rax]\n", extreme!(wide, $i, $join, $s, "zmm\\a", "zmm11")),
                concat!("mov rax, [rdi + 8]\nvmovups ymm11, [rsi + rax]\n", extreme!(half, $i, $join, $s, "ymm\\a", "ymm11"))
            ),
            memory_first: family!(
                64,
                ["d" "a"],
                concat!("mov rax, [rdi + 8]\nvmovups zmm11, [rsi + rax]\n", extreme!(wide, $i, $join, $s, "zmm11", "zmm\\a")),
                concat!("mov rax, [rdi + 8]\nvmovups ymm11, [rsi + rax]\n", extreme!(half, $i, $join, $s, "ymm11", "ymm\\a"))
            ),
        }
    };
    (wide, $i:literal, $join:literal, $s:literal, $a:literal, $b:literal) => {
        concat!(
            "vcmp", $s, " k1, ", $a, ", ", $a, ", 3\nvcmp", $s, " k2, ", $a, ", ", $b, ", 0\n",
            $i, $s, " zmm8, ", $a, ", ", $b, "\nvmova", $s, " zmm8{{k1}}, ", $a, "\n",
            $join, $s, " zmm8{{k2}}, ", $a, ", ", $b, "\nvmova", $s, " zmm\\d, zmm8"
        )
    };
    (half, $i:literal, $join:literal, $s:literal, $a:literal, $b:literal) => {
        concat!(
            "vcmp", $s, " ymm8, ", $a, ", ", $a, ", 3\n", $i, $s, " ymm9, ", $a, ", ", $b, "\n",
            "vblendv", $s, " ymm9, ymm9, ", $a, ", ymm8\nvcmp", $s, " ymm8, ", $a, ", ", $b, ", 0\n",
            $join, $s, " ymm10, ", $a, ", ", $b, "\nvblendv", $s, " ymm\\d, ymm9, ymm10, ymm8"
        )
    };
}

/// The handlers of an operation of two operands.
pub fn pair(op: Two, lane: Width) -> Pair {
    match lane {
        Width::Four => pair_of_four(op),
        Width::Eight => pair_of_eight(op),
    }
}

/// Whether an instruction set has [`One::ToFloat`].
pub fn converts(isa: Isa, lane: Width) -> bool {
    lane == Width::Four || isa == Isa::Avx512
}

/// Whether an instruction set has an operation.
pub fn has(isa: Isa, op: Two, lane: Width) -> bool {
    let missing = matches!(op, Two::MulInt | Two::MaxInt | Two::MinInt | Two::ShiftRightSigned);
    lane == Width::Four || isa == Isa::Avx512 || !missing
}

/// Lanes of a by the numbers in b: the text for two registers, and what brings an operand from memory to register 8.
macro_rules! permute {
    ($slot:literal, $i512:literal, $doubled:literal) => {
        Pair {
            registers: family!(
                $slot,
                ["d" "a" "b"],
                concat!($i512, " zmm\\d, zmm\\b, zmm\\a"),
                concat!("vmovaps ymm8, ymm\\b\n", $doubled, "vpermps ymm\\d, ymm8, ymm\\a")
            ),
            memory: family!(
                64,
                ["d" "a"],
                concat!("mov rax, [rdi + 8]\nvmovups zmm8, [rsi + rax]\n", $i512, " zmm\\d, zmm8, zmm\\a"),
                concat!("mov rax, [rdi + 8]\nvmovups ymm8, [rsi + rax]\n", $doubled, "vpermps ymm\\d, ymm8, ymm\\a")
            ),
            memory_first: family!(
                64,
                ["d" "a"],
                concat!("mov rax, [rdi + 8]\n", $i512, " zmm\\d, zmm\\a, [rsi + rax]"),
                concat!("mov rax, [rdi + 8]\nvmovaps ymm8, ymm\\a\n", $doubled, "vpermps ymm\\d, ymm8, [rsi + rax]")
            ),
        }
    };
}

fn pair_of_eight(op: Two) -> Pair {
    match op {
        Two::Add => pair!(16, "vaddpd zmm\\d", "vaddpd ymm\\d"),
        Two::Sub => pair!(16, "vsubpd zmm\\d", "vsubpd ymm\\d"),
        Two::Mul => pair!(16, "vmulpd zmm\\d", "vmulpd ymm\\d"),
        Two::Div => pair!(16, "vdivpd zmm\\d", "vdivpd ymm\\d"),
        Two::Max => extreme!("vmax", "vand", "pd"),
        Two::Min => extreme!("vmin", "vor", "pd"),
        Two::AddInt => pair!(16, "vpaddq zmm\\d", "vpaddq ymm\\d"),
        Two::SubInt => pair!(16, "vpsubq zmm\\d", "vpsubq ymm\\d"),
        Two::And => pair!(16, "vpandq zmm\\d", "vpand ymm\\d"),
        Two::Or => pair!(16, "vporq zmm\\d", "vpor ymm\\d"),
        Two::Xor => pair!(16, "vpxorq zmm\\d", "vpxor ymm\\d"),
        Two::Eq => compare_wide!("vcmppd k1", "vcmppd ymm\\d", ", 0"),
        Two::Lt => compare_wide!("vcmppd k1", "vcmppd ymm\\d", ", 1"),
        Two::Le => compare_wide!("vcmppd k1", "vcmppd ymm\\d", ", 2"),
        Two::Ne => compare_wide!("vcmppd k1", "vcmppd ymm\\d", ", 4"),
        Two::EqInt => compare_wide!("vpcmpeqq k1", "vpcmpeqq ymm\\d", ""),
        Two::GtInt => compare_wide!("vpcmpgtq k1", "vpcmpgtq ymm\\d", ""),
        Two::ShiftLeft => pair!(16, "vpsllvq zmm\\d", "vpsllvq ymm\\d"),
        Two::ShiftRight => pair!(16, "vpsrlvq zmm\\d", "vpsrlvq ymm\\d"),
        // Only AVX-512 has these (`has`).
        Two::MulInt => pair!(16, "vpmullq zmm\\d", "vpmullq ymm\\d"),
        Two::MaxInt => pair!(16, "vpmaxsq zmm\\d", "vpmaxsq ymm\\d"),
        Two::MinInt => pair!(16, "vpminsq zmm\\d", "vpminsq ymm\\d"),
        Two::ShiftRightSigned => pair!(16, "vpsravq zmm\\d", "vpsravq ymm\\d"),
        // AVX2 moves halves: those number 2b and 2b + 1.
        Two::Permute => permute!(
            64,
            "vpermpd",
            "vpsllq ymm8, ymm8, 1\nvpshufd ymm8, ymm8, 160\nvpcmpeqd ymm9, ymm9, ymm9\nvpsrlq ymm9, ymm9, 63\nvpsllq ymm9, ymm9, 32\nvpaddd ymm8, ymm8, ymm9\n"
        ),
    }
}

fn pair_of_four(op: Two) -> Pair {
    match op {
        Two::Add => pair!(16, "vaddps zmm\\d", "vaddps ymm\\d"),
        Two::Sub => pair!(16, "vsubps zmm\\d", "vsubps ymm\\d"),
        Two::Mul => pair!(16, "vmulps zmm\\d", "vmulps ymm\\d"),
        Two::Div => pair!(16, "vdivps zmm\\d", "vdivps ymm\\d"),
        Two::Max => extreme!("vmax", "vand", "ps"),
        Two::Min => extreme!("vmin", "vor", "ps"),
        Two::AddInt => pair!(16, "vpaddd zmm\\d", "vpaddd ymm\\d"),
        Two::SubInt => pair!(16, "vpsubd zmm\\d", "vpsubd ymm\\d"),
        Two::MulInt => pair!(16, "vpmulld zmm\\d", "vpmulld ymm\\d"),
        Two::And => pair!(16, "vpandd zmm\\d", "vpand ymm\\d"),
        Two::Or => pair!(16, "vpord zmm\\d", "vpor ymm\\d"),
        Two::Xor => pair!(16, "vpxord zmm\\d", "vpxor ymm\\d"),
        Two::Eq => compare!("vcmpps k1", "vcmpps ymm\\d", ", 0"),
        Two::Lt => compare!("vcmpps k1", "vcmpps ymm\\d", ", 1"),
        Two::Le => compare!("vcmpps k1", "vcmpps ymm\\d", ", 2"),
        Two::Ne => compare!("vcmpps k1", "vcmpps ymm\\d", ", 4"),
        Two::EqInt => compare!("vpcmpeqd k1", "vpcmpeqd ymm\\d", ""),
        Two::GtInt => compare!("vpcmpgtd k1", "vpcmpgtd ymm\\d", ""),
        Two::MaxInt => pair!(16, "vpmaxsd zmm\\d", "vpmaxsd ymm\\d"),
        Two::MinInt => pair!(16, "vpminsd zmm\\d", "vpminsd ymm\\d"),
        Two::ShiftLeft => pair!(16, "vpsllvd zmm\\d", "vpsllvd ymm\\d"),
        Two::ShiftRight => pair!(16, "vpsrlvd zmm\\d", "vpsrlvd ymm\\d"),
        Two::ShiftRightSigned => pair!(16, "vpsravd zmm\\d", "vpsravd ymm\\d"),
        Two::Permute => permute!(32, "vpermps", ""),
    }
}

/// The handlers of an operation of one operand.
pub fn one(op: One, lane: Width) -> Family {
    macro_rules! one {
        ($i512:literal, $i256:literal, $last:literal) => {
            family!(16, ["d" "a"], concat!($i512, " zmm\\d, zmm\\a", $last), concat!($i256, " ymm\\d, ymm\\a", $last))
        };
    }
    match (op, lane) {
        (One::Sqrt, Width::Four) => one!("vsqrtps", "vsqrtps", ""),
        (One::Floor, Width::Four) => one!("vrndscaleps", "vroundps", ", 9"),
        (One::Ceil, Width::Four) => one!("vrndscaleps", "vroundps", ", 10"),
        (One::RoundEven, Width::Four) => one!("vrndscaleps", "vroundps", ", 8"),
        (One::ToFloat, Width::Four) => one!("vcvtdq2ps", "vcvtdq2ps", ""),
        (One::Sqrt, Width::Eight) => one!("vsqrtpd", "vsqrtpd", ""),
        (One::Floor, Width::Eight) => one!("vrndscalepd", "vroundpd", ", 9"),
        (One::Ceil, Width::Eight) => one!("vrndscalepd", "vroundpd", ", 10"),
        (One::RoundEven, Width::Eight) => one!("vrndscalepd", "vroundpd", ", 8"),
        // Only AVX-512 has this one (`converts`).
        (One::ToFloat, Width::Eight) => one!("vcvtqq2pd", "vcvtqq2pd", ""),
        (One::Move, _) => one!("vmovaps", "vmovaps", ""),
    }
}

/// The handlers of d = a · b + d.
pub fn fma(lane: Width) -> Fma {
    macro_rules! fma {
        ($i:literal) => {
            Fma {
                registers: family!(
                    16,
                    ["d" "a" "b"],
                    concat!($i, " zmm\\d, zmm\\a, zmm\\b"),
                    concat!($i, " ymm\\d, ymm\\a, ymm\\b")
                ),
                memory: family!(
                    32,
                    ["d" "a"],
                    concat!("mov rax, [rdi + 8]\n", $i, " zmm\\d, zmm\\a, [rsi + rax]"),
                    concat!("mov rax, [rdi + 8]\n", $i, " ymm\\d, ymm\\a, [rsi + rax]")
                ),
            }
        };
    }
    match lane {
        Width::Four => fma!("vfmadd231ps"),
        Width::Eight => fma!("vfmadd231pd"),
    }
}

/// d = b where p is 1, over d, p, b.
pub fn choose(lane: Width) -> Family {
    match lane {
        Width::Four => family!(
            32,
            ["d" "a" "b"],
            "vptestmd k1, zmm\\a, zmm\\a\nvmovdqa32 zmm\\d{{k1}}, zmm\\b",
            "vpslld ymm8, ymm\\a, 31\nvblendvps ymm\\d, ymm\\d, ymm\\b, ymm8"
        ),
        Width::Eight => family!(
            32,
            ["d" "a" "b"],
            "vptestmq k1, zmm\\a, zmm\\a\nvmovdqa64 zmm\\d{{k1}}, zmm\\b",
            "vpsllq ymm8, ymm\\a, 63\nvblendvpd ymm\\d, ymm\\d, ymm\\b, ymm8"
        ),
    }
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

/// `rax` = the address of this step's element: the base is at the immediate's low half in the loop's memory, the mask, if
/// any, at its high half.
macro_rules! at_step {
    ($text:literal) => {
        concat!("mov eax, [rdi + 8]\nmov rax, [rsi + rax]\nmov r9, [rdi + 16]\nimul r9, rdx\n", $text)
    };
}

/// d = this step's element of an array.
pub fn read(access: Access, lane: Width) -> Family {
    match access {
        Access::Scalar if lane == Width::Eight => {
            family!(32, ["d"], at_step!("vbroadcastsd zmm\\d, [rax + r9]"), at_step!("vbroadcastsd ymm\\d, [rax + r9]"))
        }
        Access::Flag if lane == Width::Eight => family!(
            64,
            ["d"],
            at_step!("movzx eax, byte ptr [rax + r9]\nvmovd xmm\\d, eax\nvpbroadcastq zmm\\d, xmm\\d"),
            at_step!("movzx eax, byte ptr [rax + r9]\nvmovd xmm\\d, eax\nvpbroadcastq ymm\\d, xmm\\d")
        ),
        Access::Whole => {
            family!(32, ["d"], at_step!("vmovups zmm\\d, [rax + r9]"), at_step!("vmovups ymm\\d, [rax + r9]"))
        }
        Access::Masked => family!(
            64,
            ["d"],
            at_step!(
                "mov r10d, [rdi + 12]\nvmovdqu32 zmm8, [rsi + r10]\nvptestmd k1, zmm8, zmm8\nvmovups zmm\\d{{k1}}{{z}}, [rax + r9]"
            ),
            at_step!("mov r10d, [rdi + 12]\nvmovups ymm8, [rsi + r10]\nvmaskmovps ymm\\d, ymm8, [rax + r9]")
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
pub fn write(access: Access, lane: Width) -> Family {
    match access {
        Access::Scalar if lane == Width::Eight => {
            family!(
                32,
                ["a"],
                at_step!("vmovsd qword ptr [rax + r9], xmm\\a"),
                at_step!("vmovsd qword ptr [rax + r9], xmm\\a")
            )
        }
        Access::Whole => {
            family!(32, ["a"], at_step!("vmovups [rax + r9], zmm\\a"), at_step!("vmovups [rax + r9], ymm\\a"))
        }
        Access::Masked => family!(
            64,
            ["a"],
            at_step!(
                "mov r10d, [rdi + 12]\nvmovdqu32 zmm8, [rsi + r10]\nvptestmd k1, zmm8, zmm8\nvmovups [rax + r9]{{k1}}, zmm\\a"
            ),
            at_step!("mov r10d, [rdi + 12]\nvmovups ymm8, [rsi + r10]\nvmaskmovps [rax + r9], ymm8, ymm\\a")
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

/// The index in lane 0 of a as 64 bits in `r9`.
macro_rules! index {
    (Four) => {
        "vmovd r9d, xmm\\a\nmovsxd r9, r9d\n"
    };
    (Eight) => {
        "vmovq r9, xmm\\a\n"
    };
}

/// `r9` = the address of the element that lane 0 of a names; text for an index outside comes in between. The window is
/// at the immediate's low half in the loop's memory, the mask, if any, at its high half.
macro_rules! at_index {
    ($lane:ident, $outside:literal, $text:literal) => {
        concat!(
            "mov eax, [rdi + 8]\n",
            index!($lane),
            $outside,
            "\nimul r9, [rsi + rax + 16]\nadd r9, [rsi + rax]\n",
            $text
        )
    };
}

/// An index outside is moved inside.
macro_rules! clamped {
    ($lane:ident, $text:literal) => {
        at_index!(
            $lane,
            "xor r10d, r10d\ntest r9, r9\ncmovs r9, r10\nmov r10, [rsi + rax + 8]\ncmp r9, r10\ncmovg r9, r10",
            $text
        )
    };
}

/// An element whose index is outside is left out.
macro_rules! checked {
    ($lane:ident, $text:literal) => {
        at_index!($lane, "cmp r9, [rsi + rax + 8]\nja 2f", $text)
    };
}

/// The families of `fetch` for lanes of a width: how one element, and one `bool`, is spread over a register.
macro_rules! fetches {
    ($lane:ident, $access:ident, $one512:literal, $one256:literal, $flag512:literal, $flag256:literal) => {
        match $access {
            Access::Whole => family!(
                64,
                ["d" "a"],
                clamped!($lane, "vmovups zmm\\d, [r9]"),
                clamped!($lane, "vmovups ymm\\d, [r9]")
            ),
            Access::Masked => family!(
                128,
                ["d" "a"],
                clamped!($lane, "mov r10d, [rdi + 12]\nvmovdqu32 zmm8, [rsi + r10]\nvptestmd k1, zmm8, zmm8\nvmovups zmm\\d{{k1}}{{z}}, [r9]"),
                clamped!($lane, "mov r10d, [rdi + 12]\nvmovups ymm8, [rsi + r10]\nvmaskmovps ymm\\d, ymm8, [r9]")
            ),
            Access::Scalar => family!(64, ["d" "a"], clamped!($lane, $one512), clamped!($lane, $one256)),
            Access::Flag => family!(128, ["d" "a"], clamped!($lane, $flag512), clamped!($lane, $flag256)),
        }
    };
}

/// d = the element of an array at the index a, clamped.
pub fn fetch(access: Access, lane: Width) -> Family {
    match lane {
        Width::Four => fetches!(
            Four,
            access,
            "vbroadcastss zmm\\d, [r9]",
            "vbroadcastss ymm\\d, [r9]",
            "movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastd zmm\\d, xmm\\d",
            "movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastd ymm\\d, xmm\\d"
        ),
        Width::Eight => fetches!(
            Eight,
            access,
            "vbroadcastsd zmm\\d, [r9]",
            "vbroadcastsd ymm\\d, [r9]",
            "movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastq zmm\\d, xmm\\d",
            "movzx eax, byte ptr [r9]\nvmovd xmm\\d, eax\nvpbroadcastq ymm\\d, xmm\\d"
        ),
    }
}

/// d = the elements of an array that the lanes of a number. The window is at the immediate in the loop's memory, of which the
/// address is used.
pub fn gather(lane: Width) -> Family {
    match lane {
        Width::Four => family!(
            64,
            ["d" "a"],
            "mov rax, [rdi + 8]\nmov r9, [rsi + rax]\nkxnorw k1, k1, k1\nvpgatherdd zmm8{{k1}}, [r9 + zmm\\a*4]\nvmovdqa64 zmm\\d, zmm8",
            "mov rax, [rdi + 8]\nmov r9, [rsi + rax]\nvpcmpeqd ymm9, ymm9, ymm9\nvpgatherdd ymm8, [r9 + ymm\\a*4], ymm9\nvmovdqa ymm\\d, ymm8"
        ),
        Width::Eight => family!(
            64,
            ["d" "a"],
            "mov rax, [rdi + 8]\nmov r9, [rsi + rax]\nkxnorw k1, k1, k1\nvpgatherqq zmm8{{k1}}, [r9 + zmm\\a*8]\nvmovdqa64 zmm\\d, zmm8",
            "mov rax, [rdi + 8]\nmov r9, [rsi + rax]\nvpcmpeqd ymm9, ymm9, ymm9\nvpgatherqq ymm8, [r9 + ymm\\a*8], ymm9\nvmovdqa ymm\\d, ymm8"
        ),
    }
}

/// A family of `put` by its text, which ends at `2:`.
macro_rules! put_of {
    ($lane:ident, $leaves_out:ident, $t512:literal, $t256:literal) => {
        if $leaves_out {
            family!(128, ["d" "a"], checked!($lane, $t512), checked!($lane, $t256))
        } else {
            family!(128, ["d" "a"], clamped!($lane, $t512), clamped!($lane, $t256))
        }
    };
}

/// The families of `put` for lanes of a width, by how one element is written.
macro_rules! puts {
    ($lane:ident, $access:ident, $leaves_out:ident, $one:literal) => {
        match $access {
            Access::Whole => {
                put_of!($lane, $leaves_out, "vmovups [r9], zmm\\d\n2:", "vmovups [r9], ymm\\d\n2:")
            }
            Access::Masked => put_of!(
                $lane,
                $leaves_out,
                "mov r10d, [rdi + 12]\nvmovdqu32 zmm8, [rsi + r10]\nvptestmd k1, zmm8, zmm8\nvmovups [r9]{{k1}}, zmm\\d\n2:",
                "mov r10d, [rdi + 12]\nvmovups ymm8, [rsi + r10]\nvmaskmovps [r9], ymm8, ymm\\d\n2:"
            ),
            Access::Scalar => put_of!($lane, $leaves_out, $one, $one),
            Access::Flag => put_of!(
                $lane,
                $leaves_out,
                "vpextrb byte ptr [r9], xmm\\d, 0\n2:",
                "vpextrb byte ptr [r9], xmm\\d, 0\n2:"
            ),
        }
    };
}

/// The element of an array at the index a, clamped, or nothing where it is outside and `leaves_out`, = d.
pub fn put(access: Access, leaves_out: bool, lane: Width) -> Family {
    match lane {
        Width::Four => puts!(Four, access, leaves_out, "vmovss dword ptr [r9], xmm\\d\n2:"),
        Width::Eight => puts!(Eight, access, leaves_out, "vmovsd qword ptr [r9], xmm\\d\n2:"),
    }
}

/// Goes on at the instruction that lies the immediate's bytes ahead.
pub fn jump() -> Family {
    jumps!(32, [], "add rdi, [rdi + 8]")
}

/// Goes on at the instruction that lies the immediate's bytes ahead where the first lane of a is 0.
pub fn skip() -> Family {
    jumps!(
        32,
        ["a"],
        "vmovd eax, xmm\\a\ntest eax, eax\njz 2f\nadd rdi, 24\njmp qword ptr [rdi]\n2:\nadd rdi, [rdi + 8]"
    )
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

/// Jumps back while a lane of a is not 0 that the mask at the start of the loop's memory has.
pub fn any_back() -> Family {
    jumps!(
        32,
        ["a"],
        "vmovdqu64 zmm8, [rsi]\nvptestmd k1, zmm8, zmm\\a\nkortestw k1, k1\njz 2f\nmov rdi, r8\njmp qword ptr [rdi]\n2:\nadd rdi, 24",
        "vmovdqu ymm8, [rsi]\nvptest ymm8, ymm\\a\njz 2f\nmov rdi, r8\njmp qword ptr [rdi]\n2:\nadd rdi, 24"
    )
}
