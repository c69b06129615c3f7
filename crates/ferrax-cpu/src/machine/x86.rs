//! The machine on x86-64: AVX-512, or AVX2 with FMA and F16C.
//!
//! What differs between architectures is here and in `aarch64.rs`, under the same names: the instruction sets and their
//! registers, how handlers are called and compiled, stores past the caches. Read next: `handler.rs`.

use crate::machine::handler::Instr;
use crate::simd::Isa;
use core::arch::x86_64::{
    __m256, __m256i, __m512, _mm_sfence, _mm256_maskstore_ps, _mm256_setzero_ps, _mm256_stream_ps, _mm256_zeroupper,
    _mm512_mask_storeu_ps, _mm512_setzero_ps, _mm512_stream_ps,
};

/// Code of a handler over registers `V`: next instruction, pointer table, first element, end, first instruction,
/// accumulator.
pub type CodeOf<V> =
    unsafe extern "sysv64" fn(*const Instr, *const *mut u8, usize, usize, *const Instr, V, V, V, V, V, V, V, V);

/// A handler from a macro that defines its function for one instruction set: the macro is given a name, the registers,
/// how arguments are passed, the features, and what follows it here.
macro_rules! sets {
    ([$($define:tt)+] $($rest:tt)*) => {{
        $($define)+!(
            v512, core::arch::x86_64::__m512, "sysv64",
            "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c", $($rest)*
        );
        $($define)+!(v256, core::arch::x86_64::__m256, "sysv64", "avx2,fma,f16c", $($rest)*);
        $crate::machine::handler::Handler([
            $crate::machine::handler::Code(v512 as *const ()),
            $crate::machine::handler::Code(v256 as *const ()),
        ])
    }};
}
pub(crate) use sets;

macro_rules! enter {
    ($name:ident, $V:ty, $zero:ident, $feature:literal) => {
        #[target_feature(enable = $feature)]
        unsafe fn $name(code: *const Instr, table: *const *mut u8, o: usize, e: usize, start: *const Instr) {
            let z = $zero();
            // SAFETY: the caller's contract.
            unsafe {
                let first: CodeOf<$V> = core::mem::transmute((*code).code);
                first(code, table, o, e, start, z, z, z, z, z, z, z, z);
            }
            // Narrow instructions would wait for what wrote the registers that they keep the upper part of.
            _mm256_zeroupper();
        }
    };
}
enter!(enter512, __m512, _mm512_setzero_ps, "avx512f,avx");
enter!(enter256, __m256, _mm256_setzero_ps, "avx2");

/// Calls the first handler of a program, with these arguments.
///
/// # Safety
/// `code` must be a finished program for `isa`, which the machine must have, and the arguments what it takes.
#[inline]
pub unsafe fn enter(isa: Isa, code: *const Instr, table: *const *mut u8, o: usize, e: usize, start: *const Instr) {
    // SAFETY: the caller's contract.
    unsafe {
        match isa {
            Isa::Avx512 => enter512(code, table, o, e, start),
            Isa::Avx2 => enter256(code, table, o, e, start),
        }
    }
}

/// A vector register.
pub trait Register: Copy {
    /// Stores a tile past the caches, where it begins a cache line; else as any other.
    ///
    /// # Safety
    /// The address must be valid for a tile, and the machine have the register.
    unsafe fn stream(tile: [Self; 8], to: *mut Self);

    /// Stores what follows the first `words` words of 4 bytes.
    ///
    /// # Safety
    /// The address must be valid for the rest, and the machine have the register.
    unsafe fn store_from(self, to: *mut Self, words: usize);
}

/// Words that are left out, and words that are stored: a mask from any place of the first on.
static LEFT_OUT: [i32; 16] = [0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1];

/// Stores a register's words but for the first ones.
#[inline(always)]
unsafe fn store512(x: __m512, to: *mut __m512, words: usize) {
    // SAFETY: the caller's contract; masked words are not touched.
    unsafe { _mm512_mask_storeu_ps(to.cast(), u16::MAX << words, x) };
}

/// As `store512`.
#[inline(always)]
unsafe fn store256(x: __m256, to: *mut __m256, words: usize) {
    // SAFETY: as above; a register has 8 words at most to leave out.
    unsafe { _mm256_maskstore_ps(to.cast(), LEFT_OUT.as_ptr().add(8 - words).cast::<__m256i>().read_unaligned(), x) };
}

macro_rules! streaming {
    ($V:ty, $store:ident, $part:ident) => {
        impl Register for $V {
            #[inline(always)]
            unsafe fn stream(tile: [Self; 8], to: *mut Self) {
                for k in 0..8 {
                    // SAFETY: the caller's contract.
                    unsafe {
                        if to.addr().is_multiple_of(64) {
                            $store(to.add(k).cast(), tile[k]);
                        } else {
                            to.add(k).write_unaligned(tile[k]);
                        }
                    }
                }
            }

            #[inline(always)]
            unsafe fn store_from(self, to: *mut Self, words: usize) {
                // SAFETY: the caller's contract.
                unsafe { $part(self, to, words) }
            }
        }
    };
}
streaming!(__m512, _mm512_stream_ps, store512);
streaming!(__m256, _mm256_stream_ps, store256);

/// Makes what was streamed visible to other threads before anything that is written later.
pub fn fence() {
    // SAFETY: every x86-64 has the instruction.
    unsafe { _mm_sfence() };
}

/// The stack pointer.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let top: usize;
    // SAFETY: a register is read.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) top, options(nomem, nostack, preserves_flags)) };
    top
}
