//! Programs whose values stay in registers while they loop: what `while` and `scan` become when their state is a few
//! scalars or short vectors.
//!
//! Unlike the programs over tiles, each argument register is a value of its own here, scalars fill all lanes of one,
//! and the jump back is a handler like any other. So nothing that one step leaves for the next goes through memory.
//! Read next: `families.rs` and `handlers.rs` for the handlers, `assemble.rs` for how values get registers, `fuse.rs`,
//! then `registers` at the crate's root for which loops these are.

pub mod assemble;
pub mod families;
pub mod fuse;
pub mod handlers;
mod wide;

use crate::machine::arch;
use crate::machine::handler::Instr;
use crate::simd::Isa;

/// Runs a loop's program.
///
/// # Safety
/// `code` must be a finished program for `isa`, which the machine must have, with the instruction that jumps back go to
/// at `head`; `memory` what the program takes as the loop's memory, with its arrays' addresses in place; the arrays
/// valid for `steps` steps from `first` on in the program's direction.
pub unsafe fn run(isa: Isa, code: *const Instr, head: *const Instr, memory: *mut u8, first: usize, steps: usize) {
    // SAFETY: the caller's contract.
    unsafe { arch::enter(isa, code, memory.cast(), first, steps, head) }
}
