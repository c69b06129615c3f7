//! The machine's instruction sets where it is left out on purpose (feature `portable`): there are none in use.

/// The instruction set that programs are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 512-bit registers.
    Avx512,
    /// 256-bit registers.
    Avx2,
}

/// The instruction set in use: none.
pub fn isa() -> Option<Isa> {
    None
}
