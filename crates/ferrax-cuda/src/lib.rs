//! NVIDIA GPUs: kernel graphs become CUDA C that NVRTC compiles and the driver runs.
//!
//! [`program`] is what both halves of the crate share: a plan as data. One half makes it of a kernel graph, without any
//! library of NVIDIA's ([`plan`], [`print`]); the other runs it ([`driver`]).
//!
//! Read next: [`program`].

pub mod driver;
mod library;
pub mod plan;
pub mod print;
pub mod program;
pub mod routine;
