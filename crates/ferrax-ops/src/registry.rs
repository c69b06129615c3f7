//! The list of primitives, by name: what the coverage page, the tests and the parser of programs go through.
//!
//! Every family file ends with its own list; [`all`] joins them.

use ferrax_ir::{Def, OpRef, Param, Params, Slot};
use std::collections::BTreeMap;

/// A primitive, whatever its parameters.
pub trait Primitive: Sync {
    /// JAX's name.
    fn name(&self) -> &'static str;
    /// One line of what it computes.
    fn doc(&self) -> &'static str;
    /// Per slot of [`ferrax_ir::op::SLOTS`]: `None` when there is a rule, else the reason.
    fn coverage(&self) -> [Option<&'static str>; 7];
    /// The operation with these printed parameters; `None` when they cannot be told from text.
    fn parse(&'static self, fields: &BTreeMap<String, Param>) -> Option<OpRef>;
}

fn reason<F>(slot: &Slot<F>) -> Option<&'static str> {
    match slot {
        Slot::Rule(_) => None,
        Slot::None(why) => Some(why),
    }
}

impl<P: Params> Primitive for Def<P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn doc(&self) -> &'static str {
        self.doc
    }

    fn coverage(&self) -> [Option<&'static str>; 7] {
        [
            reason(&self.jvp),
            reason(&self.transpose),
            reason(&self.batch),
            reason(&self.simplify),
            reason(&self.stablehlo),
            reason(&self.kernel),
            reason(&self.reference),
        ]
    }

    fn parse(&'static self, fields: &BTreeMap<String, Param>) -> Option<OpRef> {
        P::parse(fields).map(|params| OpRef::new(self, params))
    }
}

/// Every primitive, family by family.
pub fn all() -> Vec<&'static dyn Primitive> {
    let mut out: Vec<&'static dyn Primitive> = Vec::new();
    out.extend(crate::elementwise::PRIMITIVES);
    out.extend(crate::shape::PRIMITIVES);
    out.extend(crate::reduce::PRIMITIVES);
    out.extend(crate::cumulative::PRIMITIVES);
    out.extend(crate::window::PRIMITIVES);
    out.extend(STRUCTURAL);
    out.extend(crate::control::PRIMITIVES);
    out.extend(crate::callback::PRIMITIVES);
    out
}

/// The primitives that `ferrax-transform` defines because transformations bind them.
static STRUCTURAL: &[&'static dyn Primitive] = &[
    &ferrax_transform::structural::ADD_ANY,
    &ferrax_transform::structural::BROADCAST_IN_DIM,
    &ferrax_transform::structural::TRANSPOSE,
    &ferrax_transform::structural::REDUCE_SUM,
];

/// The primitive of this name.
pub fn by_name(name: &str) -> Option<&'static dyn Primitive> {
    all().into_iter().find(|p| p.name() == name)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = super::all().iter().map(|p| p.name()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
