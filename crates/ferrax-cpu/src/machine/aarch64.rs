//! The machine on AArch64: NEON, which every such machine has.
//!
//! As `x86.rs`, under the same names. Read next: `handler.rs`.

use crate::machine::handler::Instr;
use crate::simd::Isa;
use core::arch::aarch64::{float32x4_t, vdupq_n_f32};
use std::sync::atomic::Ordering;

/// Code of a handler over registers `V`: next instruction, pointer table, first element, end, first instruction,
/// accumulator.
pub type CodeOf<V> =
    unsafe extern "C" fn(*const Instr, *const *mut u8, usize, usize, *const Instr, V, V, V, V, V, V, V, V);

/// A handler from a macro that defines its function for one instruction set: the macro is given a name, the registers,
/// how arguments are passed, the features, and what follows it here.
macro_rules! sets {
    ([$($define:tt)+] $($rest:tt)*) => {{
        $($define)+!(neon, core::arch::aarch64::float32x4_t, "C", "neon", $($rest)*);
        $crate::machine::handler::Handler([$crate::machine::handler::Code(neon as *const ())])
    }};
}
pub(crate) use sets;

/// Calls the first handler of a program, with these arguments.
///
/// # Safety
/// `code` must be a finished program, and the arguments what it takes.
#[inline]
pub unsafe fn enter(_: Isa, code: *const Instr, table: *const *mut u8, o: usize, e: usize, start: *const Instr) {
    // SAFETY: the caller's contract; every machine has the registers.
    unsafe {
        let z = vdupq_n_f32(0.0);
        let first: CodeOf<float32x4_t> = core::mem::transmute((*code).code);
        first(code, table, o, e, start, z, z, z, z, z, z, z, z);
    }
}

/// A vector register.
pub trait Register: Copy {
    /// Stores a tile with the hint that it is not read soon, which the machine may follow by writing past its caches.
    ///
    /// # Safety
    /// The address must be valid for a tile.
    unsafe fn stream(tile: [Self; 8], to: *mut Self);

    /// Stores what follows the first `words` words of 4 bytes.
    ///
    /// # Safety
    /// The address must be valid for the rest.
    unsafe fn store_from(self, to: *mut Self, words: usize);
}

impl Register for float32x4_t {
    #[inline(always)]
    unsafe fn stream(tile: [Self; 8], to: *mut Self) {
        let [a, b, c, d, e, f, g, h] = tile;
        // SAFETY: the caller's contract: eight registers are stored, at any address.
        unsafe {
            core::arch::asm!(
                "stnp {a:q}, {b:q}, [{to}]",
                "stnp {c:q}, {d:q}, [{to}, #32]",
                "stnp {e:q}, {f:q}, [{to}, #64]",
                "stnp {g:q}, {h:q}, [{to}, #96]",
                to = in(reg) to,
                a = in(vreg) a,
                b = in(vreg) b,
                c = in(vreg) c,
                d = in(vreg) d,
                e = in(vreg) e,
                f = in(vreg) f,
                g = in(vreg) g,
                h = in(vreg) h,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn store_from(self, to: *mut Self, words: usize) {
        // SAFETY: the caller's contract; registers are plain numbers.
        unsafe {
            let all: [u32; 4] = core::mem::transmute(self);
            for k in 0..4 {
                if k >= words {
                    to.cast::<u32>().add(k).write_unaligned(all[k]);
                }
            }
        }
    }
}

/// Makes what was streamed visible to other threads before anything that is written later.
pub fn fence() {
    std::sync::atomic::fence(Ordering::Release);
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let top: usize;
    // SAFETY: a register is read.
    unsafe { core::arch::asm!("mov {}, sp", out(reg) top, options(nomem, nostack, preserves_flags)) };
    top
}
