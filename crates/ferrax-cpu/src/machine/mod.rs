//! The threaded SIMD machine: fused elementwise programs over tiles of a row, with no code generation.
//!
//! A program is an array of instructions, each the address of a precompiled handler and its operands. Handlers
//! call the next one in tail position, and the accumulator, a tile of 8 vector registers, travels in the argument
//! registers. Other operands are arrays, tiles in the first-level cache, or scalars. Putting a program together
//! is writing an array, well under a microsecond.
//!
//! Programs run on x86-64 with AVX-512, or AVX2 with FMA, and on AArch64 with NEON. Elsewhere, and where the test at
//! start-up finds that tail calls use the stack, there is no machine, and groups of nodes run kernel by kernel
//! (`fused/blocks.rs`), which gives the same bits: the expressions are the same. `FERRAX_CPU_ISA` (avx512, avx2, neon, portable)
//! chooses for tests. Source: the design notes of the CPU engine. Read next: `handler.rs`, `x86.rs` or `aarch64.rs`,
//! `table.rs` and `wide.rs`, `assemble.rs`; `loops` for programs that loop in registers.

// Vectors travel between handlers of one compilation only.
#![allow(improper_ctypes_definitions)]

#[cfg_attr(target_arch = "x86_64", path = "x86.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod arch;
pub mod assemble;
pub mod handler;
pub mod loops;
pub mod table;
mod wide;

use crate::simd::Isa;
pub use arch::fence;
use handler::{Code, Handler, Instr};

/// Bytes of a tile at most.
pub const TILE: usize = 8 * Isa::ALL[0].register();

impl Isa {
    /// The one with the narrowest registers.
    pub const NARROW: Isa = Isa::ALL[Isa::ALL.len() - 1];

    /// Lanes of a tile, of `lane` bytes each.
    pub const fn lanes(self, lane: usize) -> usize {
        8 * self.register() / lane
    }

    /// Lanes of a register, of 4 bytes each.
    pub const fn width(self) -> usize {
        self.register() / 4
    }

    /// The narrow one where its registers hold `n` lanes, else this.
    pub fn holding(self, n: usize) -> Isa {
        if n <= Isa::NARROW.width() { Isa::NARROW } else { self }
    }

    /// A handler's code.
    pub fn code(self, h: Handler) -> Code {
        h.0[self as usize]
    }
}

/// Whether a long program of handlers of every kind leaves the stack as it was.
pub fn flat(isa: Isa) -> bool {
    use ferrax_base::DType;
    use ferrax_loops::{BinaryOp, UnaryOp};
    let some = [
        table::unary(4, UnaryOp::Exp, DType::F32),
        table::unary(4, UnaryOp::Sin, DType::F32),
        table::unary(4, UnaryOp::Tan, DType::F32),
        table::binary(4, BinaryOp::Pow, DType::F32).map(|b| b.array),
        table::binary(4, BinaryOp::Add, DType::F32).map(|b| b.scalar),
        table::load(4, DType::F32, false),
        table::unary(8, UnaryOp::Exp, DType::F64),
        table::unary(8, UnaryOp::Sin, DType::F64),
        table::binary(8, BinaryOp::Add, DType::F64).map(|b| b.array),
    ];
    leaves_stack(isa, &some)
}

/// Whether a long program of these handlers leaves the stack as it was. Where calls in tail position take a frame each, as
/// in builds without an optimizer, a long program would overflow the stack: all handlers are first tried a few at a time.
pub fn leaves_stack(isa: Isa, some: &[Option<Handler>]) -> bool {
    let all: Vec<Handler> = some.iter().flatten().copied().collect();
    let flat =
        |handlers: &[Handler], times: usize| flat_calls(isa, handlers.iter().cycle().take(handlers.len() * times));
    all.chunks(4).all(|few| flat(few, 1)) && flat(&all, 4) && flat(&all, 200)
}

/// Whether the stack is as deep after these handlers, each called by the one before, as at the first.
fn flat_calls<'a>(isa: Isa, handlers: impl Iterator<Item = &'a Handler>) -> bool {
    let mut tile = [0u32; TILE / 4];
    let (mut before, mut after) = (0usize, 1usize);
    let table: [*mut u8; 3] = [tile.as_mut_ptr().cast(), (&raw mut before).cast(), (&raw mut after).cast()];
    let instr = |h: Handler, p: u16| Instr { code: isa.code(h), imm: 0, p, q: 0, ps: 0, qs: 0 };
    let mut code = vec![instr(handler::probe(), 1)];
    code.extend(handlers.map(|h| instr(*h, 0)));
    code.extend([instr(handler::probe(), 2), instr(handler::finish(), 0)]);
    // SAFETY: the operands are a tile and two words; the instruction set was detected.
    unsafe { run(isa, code.as_ptr(), table.as_ptr(), 0, 1) };
    before == after
}

/// Runs a program over the elements `o..e` of a row, in whole tiles: the last one may reach past `e`.
///
/// # Safety
/// `code` must be a finished program for `isa`, which the machine must have, and every operand that it names in
/// `table` valid for the tiles from `o` on.
pub unsafe fn run(isa: Isa, code: *const Instr, table: *const *mut u8, o: usize, e: usize) {
    // SAFETY: the caller's contract.
    unsafe { arch::enter(isa, code, table, o, e, code) }
}
