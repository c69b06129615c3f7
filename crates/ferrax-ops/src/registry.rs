//! The list of primitives, by name: what the coverage page, the tests and the parser of programs go through.
//!
//! Every family file ends with its own list; [`all`] joins them.

pub use ferrax_ir::parse::Primitive;
use ferrax_ir::parse::Registry;

/// Every primitive, family by family.
pub fn all() -> Vec<&'static dyn Primitive> {
    let mut out: Vec<&'static dyn Primitive> = Vec::new();
    out.extend(crate::elementwise::primitives());
    out.extend(crate::shape::PRIMITIVES);
    out.extend(crate::reduce::PRIMITIVES);
    out.extend(crate::cumulative::PRIMITIVES);
    out.extend(crate::window::PRIMITIVES);
    out.extend(crate::slice::PRIMITIVES);
    out.extend(crate::dynamic_slice::PRIMITIVES);
    out.extend(crate::gather_scatter::PRIMITIVES);
    out.extend(crate::dot::PRIMITIVES);
    out.extend(crate::conv::PRIMITIVES);
    out.extend(crate::sort::PRIMITIVES);
    out.extend(crate::linalg::primitives());
    out.extend(crate::fft::PRIMITIVES);
    out.extend(crate::rng::PRIMITIVES);
    out.extend(STRUCTURAL);
    out.extend(crate::control::PRIMITIVES);
    out.extend(crate::callback::PRIMITIVES);
    out.extend(crate::foreign::PRIMITIVES);
    out.extend(crate::collective::PRIMITIVES);
    out.extend(crate::permute_rows::PRIMITIVES);
    out.extend(crate::placed::PRIMITIVES);
    out
}

/// The primitives that `ferrax-transform` defines because transformations bind them.
static STRUCTURAL: &[&'static dyn Primitive] = &[
    &ferrax_transform::structural::ADD_ANY,
    &ferrax_transform::structural::BROADCAST_IN_DIM,
    &ferrax_transform::structural::TRANSPOSE,
    &ferrax_transform::structural::REDUCE_SUM,
];

/// The primitives, for [`ferrax_ir::parse::parse`].
pub fn parser() -> Registry {
    Registry::new(all())
}
