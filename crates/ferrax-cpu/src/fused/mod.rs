//! Groups of nodes that run together: block by block, by rows, or in registers.
//!
//! Here is what such a group is and how it runs, on the memory that a run of its program has. How groups are found and made is
//! `plan/`. Where there is no machine, or it is left out, `region_none.rs` and `registers_none.rs` stand for two of them.
//! Read next: `blocks.rs`, `region/mod.rs`, `registers/mod.rs`.

pub mod blocks;
#[cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"),
    path = "region_none.rs"
)]
pub mod region;
#[cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"),
    path = "registers_none.rs"
)]
pub mod registers;

pub(crate) use ferrax_loops::passes::NONE;

/// The memory of a run, as steps see it.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    /// The address of each slot.
    pub slots: &'a [*mut u8],
    /// Scratch memory that is a step's own, and its bytes.
    pub scratch: *mut u8,
    pub bytes: usize,
}
