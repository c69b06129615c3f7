//! The primitives, one block each, and the functions that bind them.
//!
//! A family is a file (or a folder): `elementwise`, `shape`, `reduce`, `cumulative`, …. In it every primitive is one
//! `static NAME: Def<Params>` with all of its rules, and a function that binds it: `ops::add(&x, &y)`.
//! [`registry::all`] lists the primitives, for coverage reports and the parser.
//!
//! Read next: [`common`], then [`elementwise`].

pub mod callback;
pub mod collective;
pub mod common;
pub mod control;
pub mod conv;
pub mod cumulative;
pub mod dot;
pub mod dynamic_slice;
pub mod elementwise;
pub mod fft;
pub mod foreign;
pub mod gather_scatter;
pub mod linalg;
pub mod numbers;
pub mod permute_rows;
pub mod placed;
pub mod reduce;
pub mod registry;
pub mod rng;
pub mod shape;
pub mod slice;
pub mod sort;
mod where_rules;
pub mod window;

/// Gives the transformations the operations they need of this crate; later calls do nothing.
pub fn install() {
    ferrax_ir::manual::set_widen(collective::widen);
    ferrax_transform::live::set_mark_ops(elementwise::select::MARK_OPS);
    ferrax_transform::where_check::set_rule(where_rules::facts);
}

pub use cumulative::*;
pub use elementwise::{binary::*, compare::*, convert::*, identity::*, select::*, special::*, unary::*};
pub use ferrax_transform::structural::{
    ADD_ANY, BROADCAST_IN_DIM, REDUCE_SUM, TRANSPOSE, add_any, broadcast_in_dim, full, move_axis, reduce_sum,
    transpose, zeros,
};
pub use reduce::*;
pub use shape::*;
pub use window::*;
