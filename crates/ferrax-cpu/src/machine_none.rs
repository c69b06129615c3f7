//! The machine's instruction sets where there is no machine, or it is left out on purpose (feature `portable`): there
//! are none in use.

/// The instruction set that programs are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit registers.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 128-bit registers.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// The instruction set in use: none.
pub fn isa() -> Option<Isa> {
    None
}
