//! Elementwise primitives: every one of JAX's `lax`, a block each.
//!
//! Read next: `unary.rs` for functions of one operand, `binary.rs` and `compare.rs` for two, `select.rs` for
//! `select_n` and `clamp`, `convert.rs` for changes of dtype, `identity.rs` for operations that give their
//! operands back, `special.rs` for special functions, `functions.rs`
//! for what host languages see of them.

pub mod binary;
pub mod compare;
pub mod convert;
pub mod functions;
pub mod identity;
pub mod select;
pub mod special;
pub mod unary;

use crate::registry::Primitive;

/// The primitives of this family: those of the functions, and every file's others.
pub(crate) fn primitives() -> impl Iterator<Item = &'static dyn Primitive> {
    let others = [unary::OTHERS, compare::OTHERS, select::PRIMITIVES, convert::PRIMITIVES, identity::PRIMITIVES];
    functions::all().map(|f| f.block).chain(others.into_iter().flatten().copied())
}
