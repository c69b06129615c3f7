//! `sharding_constraint`: the operand, of which a program says how it is spread over devices.
//!
//! To a transformation it is the identity; who runs the program asks for it (`ferrax/src/sharded.rs`).

use crate::common::{FROM_KERNEL, NO_REWRITE};
use ferrax_base::Result;
use ferrax_ir::lower::lies;
use ferrax_ir::op::BatchAxis;
use ferrax_ir::trace::bind1;
use ferrax_ir::{Def, DeviceId, OpRef, Param, ParamValue, Slot, Special, Value};
use ferrax_transform::structural::linear_jvp;
use smallvec::smallvec;
use std::sync::OnceLock;

/// The primitives of this file.
pub static PRIMITIVES: &[&dyn crate::registry::Primitive] = &[&SHARDING_CONSTRAINT];

/// A device or an interned sharding, as a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub DeviceId);

impl ParamValue for Place {
    fn print(&self) -> Param {
        Param::Text(self.0.sharding().map_or_else(|| format!("device {}", self.0.index()), |s| s.text.to_string()))
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `sharding_constraint`.
    pub struct Constraint {
        /// Where the value is.
        sharding: Place,
    }
}

/// (sharding, where `vmap` puts its axis, the axis) → the sharding of the whole batch.
pub type Batched = fn(DeviceId, usize, &BatchAxis) -> Result<DeviceId>;

static BATCHED: OnceLock<Batched> = OnceLock::new();

/// Installs what the host makes of a sharding under `vmap`; the first call counts. Without it batches are replicated.
pub fn set_batched(f: Batched) {
    let _ = BATCHED.set(f);
}

/// The operand, spread over devices in a way that a program asks for.
pub static SHARDING_CONSTRAINT: Def<Constraint> = Def {
    name: "sharding_constraint",
    doc: "The operand, spread over devices in this way.",
    arity: Some(1),
    shape: |_, args| Ok(smallvec![args[0].clone()]),
    jvp: Slot::Rule(linear_jvp),
    transpose: Slot::Rule(|op, _, cts, _| {
        Ok(smallvec![cts[0].as_ref().map(|ct| bind1(op, std::slice::from_ref(ct))).transpose()?])
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let at = dims[0].unwrap_or_default();
        let sharding = match BATCHED.get() {
            Some(batched) => batched(p.sharding.0, at, axis)?,
            None => p.sharding.0.replicated(),
        };
        Ok((smallvec![sharding_constraint(&args[0], sharding)?], smallvec![dims[0]]))
    }),
    simplify: Slot::None(NO_REWRITE),
    stablehlo: Slot::None(FROM_KERNEL),
    kernel: Slot::Rule(|_, p, b, args, _| Ok(smallvec![lies(b, args[0], p.sharding.0)])),
    reference: Slot::Rule(|_, args, _| Ok(vec![args[0].clone()])),
    special: Special::ELEMENTWISE,
};

/// The operand, spread over devices in this way.
pub fn sharding_constraint(x: &Value, sharding: DeviceId) -> Result<Value> {
    bind1(&OpRef::new(&SHARDING_CONSTRAINT, Constraint { sharding: Place(sharding) }), std::slice::from_ref(x))
}
