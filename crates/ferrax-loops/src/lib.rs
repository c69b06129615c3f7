//! The kernel IR: what a program computes, said in tensor-level nodes that the CPU engine and CUDA share.
//!
//! A [`Graph`] is a list of [`Node`]s in SSA form over values with a [`Type`]. Elementwise, broadcast, shape
//! and reduction nodes are what fusion groups into kernels; the rest are library calls and control flow.
//! Primitives lower to it through [`Builder`]. Depends on `ferrax-base` alone: it knows nothing of Jaxprs.
//!
//! Read next: [`graph`] for the structure, [`kind`] for the meaning of each node, then `ferrax-cpu`.

pub mod coefficients;
pub mod cost;
pub mod expand;
pub mod fft;
pub mod graph;
pub mod host;
pub mod kind;
pub mod linalg;
pub mod passes;
pub mod print;
pub mod work;

pub use graph::{Builder, Graph, Node, Type, ValueId};
pub use host::{HostCall, HostRef};
pub use kind::{
    BinaryOp, Bytes, CompareOp, ConvDims, Division, DivisionPart, DotDims, GatherDims, Gathering, IndexMode, Kind,
    PadConfig, ReduceOp, ScatterDims, ScatterOp, SliceDims, UnaryOp, WindowDims,
};
pub use work::Work;
