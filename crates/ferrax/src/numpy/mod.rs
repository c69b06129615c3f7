//! NumPy's functions over the primitives: promotion of dtypes and ranks around one primitive, or a few.
//!
//! Each function is a row ([`Unary`], [`Binary`]) that says how operands are converted and which primitive does
//! the work, so that a host can call it by its shortest path: operands of one dtype go straight to the kernel.
//! Semantics are those of `jax.numpy`, primitive for primitive, so that programs and their derivatives agree.
//!
//! Read next: [`promote`], then [`Unary`], [`unary`] and [`binary`]; `primitives.rs` is generated from the blocks of
//! `ferrax-ops`.

mod rows;

pub mod binary;
pub mod power;
#[rustfmt::skip]
pub mod primitives;
pub mod promote;
pub mod select;
pub mod unary;

pub use binary::*;
pub use power::{float_power, integer_exponent, pow, power};
pub use primitives::*;
pub use promote::{Rule, result_type};
pub use rows::{Binary, Unary, Words};
pub use select::{clip, where_};
pub use unary::*;

use rows::{binary, binary_aliases, never1, never2, unary, unary_aliases};
