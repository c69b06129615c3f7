//! The vocabulary every other crate shares: dtypes, shapes, avals, scalars, errors, source locations,
//! host buffers and configuration. It depends on no other crate of the workspace.
//!
//! Read next: [`dtype`] and [`aval`], then `ferrax-ir`.

pub mod aval;
pub mod buffer;
pub mod checks;
pub mod config;
pub mod dtype;
pub mod error;
pub mod fork;
pub mod list;
pub mod long_work;
pub mod memory;
pub mod narrow;
pub mod promotion;
pub mod scalar;
pub mod scopes;
pub mod shape;
pub mod source;
pub mod symbolic;
pub mod warning;

pub use aval::Aval;
pub use buffer::Buffer;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use memory::{Arg, Memory, Outputs};
pub use scalar::Scalar;
pub use shape::Shape;
pub use source::Source;
