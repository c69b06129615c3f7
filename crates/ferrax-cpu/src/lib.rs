//! The embedded CPU engine: runs graphs of the kernel IR, and single operations on buffers.
//!
//! [`Program`] plans a graph once (order, groups of elementwise nodes, memory) and runs it many times;
//! [`eager`] calls one kernel with no graph. Kernels are plain loops over slices, compiled for the baseline
//! and for AVX2. Results do not depend on the number of threads, and are the same eagerly and in a program.
//!
//! Read next: [`program`], `plan.rs` and `exec.rs` for the machine; [`elementwise`], `movement.rs`,
//! `reduce.rs` and their neighbours for the kernels; [`math`] for the functions.

mod control;
mod convert;
mod dot;
pub mod eager;
mod elementwise;
mod exec;
mod gather;
mod group;
mod kernel;
mod leaf;
#[cfg(target_arch = "x86_64")]
mod machine;
pub mod math;
mod movement;
mod order;
mod plan;
pub mod pool;
pub mod program;
pub mod random;
mod reduce;
#[cfg(target_arch = "x86_64")]
mod region;
#[cfg(not(target_arch = "x86_64"))]
#[path = "region_none.rs"]
mod region;
mod scan;
mod sort;

pub use program::{Arg, Outputs, Program};
