//! Groups of nodes printed as CUDA C.
//!
//! The text needs no include file: conversions of narrow floats, complex numbers and what the kernel graph defines beyond C
//! are functions of ours (`device/`), of which a program has those that it calls; the rest are CUDA's own, which NVRTC
//! knows without a header. Nothing depends on options of the compiler but fused multiplication and addition in functions
//! of complex numbers, so that it is compiled with `--fmad=false` and without fast mathematics.
//!
//! Read next: [`body`], [`kernel`], then `plan`, which decides what is printed together.

pub mod body;
pub mod convert;
pub mod device;
pub mod elementwise;
pub mod kernel;
mod moves;
pub mod types;

use ferrax_base::Result;
use ferrax_loops::Graph;

/// The CUDA C of a graph's kernels: that of the program that it becomes.
///
/// ```
/// use ferrax_base::DType;
/// use ferrax_loops::{BinaryOp, Builder, Type};
///
/// let mut b = Builder::new([Type::new(DType::F32, &[8]), Type::new(DType::F32, &[8])]);
/// let [x, y] = [b.params().next().unwrap(), b.params().nth(1).unwrap()];
/// let z = b.binary(BinaryOp::Add, x, y);
/// let text = ferrax_cuda::print::source(&b.finish(&[z]))?;
/// assert!(text.contains("__global__") && !text.contains("#include"));
/// # Ok::<(), ferrax_base::Error>(())
/// ```
pub fn source(graph: &Graph) -> Result<String> {
    Ok(crate::plan::plan(graph, &[])?.source())
}
