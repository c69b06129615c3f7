//! NumPy's functions over the primitives: promotion of dtypes and ranks, axes and shapes around one primitive, or a few.
//!
//! An elementwise function is a row ([`Unary`], [`Binary`]) that says how operands are converted and which primitive does
//! the work, so that a host can call it by its shortest path: operands of one dtype go straight to the kernel. Reductions,
//! changes of shape, products and new arrays are functions that do the same (`at_once.rs`).
//! Semantics are those of `jax.numpy`, primitive for primitive, so that programs and their derivatives agree. All work on
//! concrete arrays and under transformations.
//!
//! Read next: [`promote`], then [`Unary`], [`unary`] and [`binary`]; `primitives.rs` is generated from the blocks of
//! `ferrax-ops`. Then [`axes`], [`reduce`] and [`shape`].

mod at_once;
mod rows;

pub mod axes;
pub mod binary;
pub mod create;
pub mod indexing;
pub mod join;
pub mod power;
#[rustfmt::skip]
pub mod primitives;
pub mod products;
pub mod promote;
pub mod reduce;
pub mod select;
pub mod shape;
pub mod unary;

pub use axes::{Axes, canonical_axes, canonical_axis};
pub use binary::*;
pub use create::{arange, astype, eye, full, ones, zeros};
pub use join::{concatenate, stack};
pub use power::{float_power, integer_exponent, pow, power};
pub use primitives::*;
pub use products::{dot, matmul, product_at_once};
pub use promote::{Rule, result_type};
pub use reduce::{all, any, argmax, argmin, max, mean, min, prod, sum};
pub use rows::{Binary, Unary, Words};
pub use select::{clip, where_, where_at_once};
pub use shape::{broadcast_to, expand_dims, matrix_transpose, ravel, reshape, squeeze, transpose};
pub use unary::*;

use rows::{binary, binary_aliases, never1, never2, unary, unary_aliases};
