//! NVIDIA GPUs: kernel graphs become CUDA C that NVRTC compiles and the driver runs.
//!
//! [`program`] is what both halves of the crate share: a plan as data. One half makes it of a kernel graph, without any
//! library of NVIDIA's; the other runs it.
//!
//! Read next: [`program`].

pub mod driver;
pub mod program;
