//! Handlers put one behind the other: copies of their code without the jumps between them.
//!
//! A handler of a family is a few instructions that end with the jump to the next one. It reads its operands by way of
//! the instruction's address, and branches only inside itself, so its code does the same wherever it lies. Where several
//! follow each other, their copies lie one behind the other and only the last one jumps: what a step costs is then the
//! work, not the way from one handler to the next. The first instruction of such a run has the address of the copies;
//! handlers compiled from Rust stay where they are and jump into them as into any other code.
//! Memory is written, then made executable, and never both. Where the system refuses that, and on other machines, programs
//! stay as they are: results have the same bits. Read next: `assemble.rs`, which counts the bytes of handlers.

use crate::machine::handler::{Code, Instr};

/// The bytes that an instruction's handler may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// A handler compiled from Rust.
    Foreign,
    /// One that goes on with the next instruction.
    Next(u16),
    /// One that may go on elsewhere.
    Control(u16),
}

/// Copies of handlers, in memory of their own.
#[derive(Debug)]
pub struct Fused {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    _memory: system::Memory,
}

/// Lets a program's handlers run without jumps between them. `targets` are the instructions that are jumped to.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn fuse(_: &mut [Instr], _: &[Span], _: &[usize]) -> Option<Fused> {
    None
}

/// Lets a program's handlers run without jumps between them. `targets` are the instructions that are jumped to.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn fuse(code: &mut [Instr], spans: &[Span], targets: &[usize]) -> Option<Fused> {
    let mut text: Vec<u8> = Vec::new();
    let mut starts: Vec<(usize, usize)> = Vec::new();
    let mut first = 0;
    while first < code.len() {
        let end = run_end(spans, targets, first);
        if end - first > 1 {
            text.resize(text.len().next_multiple_of(ALIGNED), 0xcc);
            starts.push((first, text.len()));
            for (instr, &span) in code[first..end].iter().zip(&spans[first..end]) {
                text.extend_from_slice(body(instr.code, span)?);
            }
            if matches!(spans[end - 1], Span::Next(_)) {
                text.extend_from_slice(&JUMP);
            }
        }
        first = end;
    }
    if starts.is_empty() {
        return None;
    }
    let memory = system::Memory::of(&text)?;
    for (instr, at) in starts {
        code[instr].code = Code(memory.address().wrapping_add(at).cast::<()>());
    }
    Some(Fused { _memory: memory })
}

/// Where runs begin: at the start of a line that is fetched at once.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const ALIGNED: usize = 64;
/// `jmp qword ptr [rdi]`, with which every handler ends.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const JUMP: [u8; 2] = [0xff, 0x27];

/// The end of the run of handlers from one on: control leaves it at its end alone, and enters at its start.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn run_end(spans: &[Span], targets: &[usize], first: usize) -> usize {
    let mut end = first;
    while end < spans.len() {
        match spans[end] {
            Span::Foreign => return end.max(first + 1),
            _ if end > first && targets.contains(&end) => return end,
            Span::Next(_) => end += 1,
            Span::Control(_) => return end + 1,
        }
    }
    end
}

/// The code of a handler, without its last jump where it goes on with the next one.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn body(code: Code, span: Span) -> Option<&'static [u8]> {
    let bytes = match span {
        Span::Foreign => return None,
        Span::Next(bytes) | Span::Control(bytes) => usize::from(bytes),
    };
    // SAFETY: a family's handler takes so many bytes of the program's text.
    let all = unsafe { std::slice::from_raw_parts(code.0.cast::<u8>(), bytes) };
    // What follows the last jump is padding, which has no such bytes.
    let jump = all.windows(JUMP.len()).rposition(|at| at == JUMP)?;
    Some(if matches!(span, Span::Next(_)) { &all[..jump] } else { &all[..jump + JUMP.len()] })
}

/// Memory that is executed.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod system {
    use core::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn mmap(
            address: *mut c_void,
            bytes: usize,
            protection: c_int,
            flags: c_int,
            file: c_int,
            offset: i64,
        ) -> *mut c_void;
        fn mprotect(address: *mut c_void, bytes: usize, protection: c_int) -> c_int;
        fn munmap(address: *mut c_void, bytes: usize) -> c_int;
    }
    const READ: c_int = 1;
    const WRITE: c_int = 2;
    const EXECUTE: c_int = 4;
    const PRIVATE_AND_ANONYMOUS: c_int = 0x22;

    #[derive(Debug)]
    pub struct Memory {
        address: *mut c_void,
        bytes: usize,
    }

    // SAFETY: nothing writes to the memory once it is made.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        /// Executable memory with this text; nothing where the system refuses.
        pub fn of(text: &[u8]) -> Option<Memory> {
            // SAFETY: new memory of the system's choice, which is written before it may be executed.
            unsafe {
                let address = mmap(std::ptr::null_mut(), text.len(), READ | WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
                if address.addr() == usize::MAX {
                    return None;
                }
                let memory = Memory { address, bytes: text.len() };
                std::ptr::copy_nonoverlapping(text.as_ptr(), address.cast(), text.len());
                (mprotect(address, text.len(), READ | EXECUTE) == 0).then_some(memory)
            }
        }

        pub fn address(&self) -> *const u8 {
            self.address.cast()
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: the memory is this value's, and no program refers to it any more.
            unsafe {
                munmap(self.address, self.bytes);
            }
        }
    }
}
