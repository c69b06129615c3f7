//! XLA through the PJRT C API, without anything of XLA at build time.
//!
//! Two halves that know nothing of each other: [`stablehlo`] prints kernel graphs as programs that XLA compiles, and the
//! API stands in three layers, each over the one before: declarations of the C API, one `Result` per call, owned objects.
//! Whoever makes an engine of both is in the crate `ferrax`. Read next: [`safe`], [`stablehlo`].

pub mod result;
pub mod safe;
pub mod stablehlo;
pub mod sys;
