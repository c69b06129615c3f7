//! The embedded CPU engine: runs graphs of the kernel IR, and single operations on buffers.
//!
//! [`Program`] plans a graph once (order, groups of nodes, memory) and runs it many times; [`eager`] calls one kernel
//! with no graph. Groups of elementwise nodes and reductions over rows run on the threaded SIMD machine, and so do loops
//! whose state fits its registers. Small groups and other dtypes run kernel by kernel: plain loops over slices, compiled
//! for the baseline and, on x86-64, for AVX2. All are made of the same expressions, so results are the same eagerly and in
//! a program, on every instruction set with fused multiply-add, and on any number of threads ([`pool`]).
//!
//! The rooms stand one on the other, and each uses only those before it (`tests/rooms.rs`):
//!
//! | room | holds |
//! |---|---|
//! | `simd` | instruction sets: the one in use, variants of functions, vectors |
//! | [`math`] | functions of numbers and of tiles |
//! | [`pool`] | threads |
//! | `elementwise` | kernels of elementwise nodes, operands and results |
//! | `library` | kernels of other nodes: movement, reductions, products, sorts, transforms, … |
//! | `machine` | handlers of the threaded machine, and how programs of them are put together |
//! | `fused` | groups of nodes that run together: by blocks, by rows, in registers |
//! | `program` | a plan as data, and its printed form |
//! | `plan` | from a graph to a plan |
//! | `run` | frames, control flow, single operations |
//!
//! `plan` and `run` never meet. Beside the rooms stands `self_test`, the trial of an instruction set before its use.

// What only the machine uses has no use without it.
#![cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"),
    allow(dead_code, unused_imports)
)]

#[cfg(test)]
#[path = "../tests/common/cases.rs"]
mod cases;
mod elementwise;
mod fused;
mod library;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(feature = "portable")))]
#[doc(hidden)]
pub mod machine;
pub mod math;
mod plan;
pub mod pool;
mod program;
mod run;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(feature = "portable")))]
mod self_test;
#[doc(hidden)]
pub mod simd;

pub use library::{finite, random};
pub use program::Program;
pub use run::{Outputs, eager};

/// The instruction set that kernels are chosen for on this machine, for reports.
pub fn instruction_set() -> &'static str {
    simd::isa_name()
}

// Unit tests run under the sanitizer alone (`make sanitize`): for each other build of them the engine would be compiled a second
// time, which takes as long as all other crates. `machine` and `simd` are public for `tests/handlers.rs`.
// Under the sanitizer the tests of the folder `tests` stand in the binary of the unit tests: the engine is compiled once.
#[cfg(all(test, ferrax_exact_buffers))]
extern crate self as ferrax_cpu;
#[cfg(all(test, ferrax_exact_buffers))]
#[path = "../tests"]
mod sanitized {
    #[path = "dot.rs"]
    mod dot;
    #[path = "elementwise.rs"]
    mod elementwise;
    #[path = "index.rs"]
    mod index;
    #[path = "math.rs"]
    mod math;
    #[path = "movement.rs"]
    mod movement;
    #[path = "program.rs"]
    mod program;
    #[path = "reduce.rs"]
    mod reduce;
}
