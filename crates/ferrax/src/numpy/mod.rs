//! NumPy's functions over the primitives: promotion of dtypes and ranks around one primitive, or a few.
//!
//! Each function is a row ([`Unary`], [`Binary`]) that says how operands are converted and which primitive does
//! the work, so that a host can call it by its shortest path: operands of one dtype go straight to the kernel.
//! Semantics are those of `jax.numpy`, primitive for primitive, so that programs and their derivatives agree.
//!
//! Read next: [`promote`], then [`unary`] and [`binary`].

pub mod binary;
pub mod power;
pub mod promote;
pub mod select;
pub mod unary;

pub use binary::*;
pub use power::{float_power, integer_exponent, pow, power};
pub use promote::{Rule, result_type};
pub use select::{clip, where_};
pub use unary::*;

use ferrax_base::{DType, Result};
use ferrax_ir::trace::bind1;
use ferrax_ir::{OpRef, Value};

/// A function of one operand.
pub struct Unary {
    /// `jax.numpy`'s name.
    pub name: &'static str,
    /// How the operand is converted.
    pub rule: Rule,
    /// The primitive that computes the function of an operand of this dtype, where it is a single one.
    pub direct: fn(DType) -> Option<OpRef>,
    /// The function of a converted operand, for the other dtypes.
    pub general: fn(&Value) -> Result<Value>,
}

/// A function of two operands.
pub struct Binary {
    /// `jax.numpy`'s name.
    pub name: &'static str,
    /// How the operands are converted.
    pub rule: Rule,
    /// The primitive that computes the function of operands of this dtype, where it is a single one.
    pub direct: fn(DType) -> Option<OpRef>,
    /// The function of converted operands of one rank, for the other dtypes.
    pub general: fn(&Value, &Value) -> Result<Value>,
}

impl Unary {
    /// Applies the function.
    pub fn call(&self, x: &Value) -> Result<Value> {
        let x = promote::one(self.rule, x)?;
        match (self.direct)(x.dtype()) {
            Some(op) => bind1(&op, std::slice::from_ref(&x)),
            None => (self.general)(&x),
        }
    }
}

impl Binary {
    /// Applies the function.
    pub fn call(&self, x: &Value, y: &Value) -> Result<Value> {
        let [x, y] = promote::two(self.name, self.rule, x, y)?;
        match (self.direct)(x.dtype()) {
            Some(op) => bind1(&op, &[x, y]),
            None => {
                promote::compatible(self.name, &x, &y)?;
                (self.general)(&x, &y)
            }
        }
    }
}

/// The general rule of a function that its primitive covers for every dtype; the primitive says what it takes.
pub(crate) fn never1(_: &Value) -> Result<Value> {
    Err(ferrax_base::error!(Internal, "a function of one primitive was asked for its general rule"))
}

/// As [`never1`], for two operands.
pub(crate) fn never2(_: &Value, _: &Value) -> Result<Value> {
    never1(&Value::float(DType::F32, 0.0))
}
