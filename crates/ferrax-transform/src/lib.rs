//! The transformations: staging, jvp, linearize, transpose, batching, and passes over programs.
//!
//! Everything here is generic over primitives: it calls their rules and knows only the few in [`structural`].
//!
//! Read next: [`staging`], [`jvp`], [`linearize`], [`backward`], [`batching`]; then `ferrax-ops` for the rules.

pub mod backward;
pub mod batching;
pub mod eval;
pub mod jvp;
pub mod linearize;
pub mod live;
pub mod mapped;
pub mod passes;
pub mod programs;
pub mod staging;
pub mod structural;
pub mod where_check;

pub use backward::backward;
pub use batching::{VmapAxis, marked, vmap};
pub use eval::eval_jaxpr;
pub use jvp::jvp;
pub use linearize::{Linearized, linearize};
pub use staging::{Staged, arrays_since, note_array, stage};
