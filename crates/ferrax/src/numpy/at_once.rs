//! One kernel on whole arrays, at once: for concrete arrays outside of every trace, with no operation bound.
//!
//! Each function of this module gives `None` where that is not possible, or a check has something to say of the numbers:
//! its caller then binds the primitive, which says so. Read next: `direct.rs`, which runs the kernels.

use crate::{debug, direct};
use ferrax_base::{Aval, Result, symbolic};
use ferrax_ir::{Array, Value};
use ferrax_loops::Kind;

/// The array that an operation can run on at once.
#[inline]
pub(super) fn at_once(v: &Value) -> Option<&Array> {
    match v {
        Value::Array(a) if ferrax_ir::trace::is_eager() && !a.device().is_sharded() && !crate::device::moves(a) => {
            Some(a)
        }
        _ => None,
    }
}

/// A node's result of type `out`. Callers make the node and this type from the types of the operands, as the primitive's
/// own shape rule does.
#[inline]
pub(super) fn node(kind: &Kind, args: &[&Array], out: Aval) -> Result<Option<Value>> {
    if symbolic::any(&out.shape) {
        return Ok(None);
    }
    // SAFETY: as said above; callers are in this folder.
    Ok(unsafe { direct::node(kind, args, out) }?.map(Value::Array))
}

/// As [`node`], on arrays that are read in the shape `unit`, of their size.
#[inline]
pub(super) fn node_as(kind: &Kind, args: &[&Array], unit: &[usize], out: Aval) -> Result<Option<Value>> {
    // SAFETY: as in `node`.
    Ok(unsafe { direct::node_as(kind, args, unit, out) }?.map(Value::Array))
}

/// The array whose elements can be taken over in another shape.
#[inline]
pub(super) fn sound(v: &Value) -> Result<Option<&Array>> {
    match at_once(v) {
        Some(a) if debug::checking() && debug::holds(a)? => Ok(None),
        found => Ok(found),
    }
}
