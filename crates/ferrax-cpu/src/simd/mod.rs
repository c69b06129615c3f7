//! Instruction sets: which is in use, functions compiled for several, and vectors of numbers.
//!
//! The ground floor: it uses nothing of the engine but the trial of an instruction set (`self_test.rs`). Read next:
//! `isa.rs`, `dispatch.rs`, `lanes.rs`.

mod dispatch;
mod isa;
pub mod lanes;
pub mod wave;

pub(crate) use dispatch::*;
pub use isa::*;
