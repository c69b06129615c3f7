//! Reverse mode under `safe_where`: which elements of a cotangent can matter.
//!
//! A `where` gives the cotangent of its result to the branch that was taken and zero to the other. That zero may still
//! meet an infinite derivative on its way back, and zero times infinity is NaN. So a selection marks the elements of
//! its operands' cotangents that are live (reached from a result), every operation passes the marks on as its
//! [`Role`](ferrax_ir::op::Role) says, and a dead element stays zero whatever it meets. Marks start at selections only,
//! so nothing else changes. They end at operations whose role is opaque, such as loops: there the cotangent counts as live.
//!
//! An elementwise operation is transposed with weights of one at dead places: no NaN arises, so none is reported under
//! `debug_nans`. For a weighted one the marks of what it pulls back come from transposing the marks themselves, as
//! numbers, with weights of one: what stays zero is dead.
//!
//! Read next: `backward.rs`, which asks [`pull`] for every operation.

use crate::structural::{broadcast_in_dim, full};
use ferrax_base::config::Flag;
use ferrax_base::{DType, Result, Scalar, error};
use ferrax_ir::op::OpRole;
use ferrax_ir::{OpRef, Tangents, TransposeArg, Value};
use smallvec::{SmallVec, smallvec};
use std::sync::OnceLock;

/// Marks of cotangents: `bool`, of the cotangent's shape; `None` where every element is live.
pub type Marks = SmallVec<[Option<Value>; 1]>;

/// The operations on marks, which the crate of primitives installs.
pub struct MarkOps {
    /// A value where it is live, a number elsewhere.
    pub keep: fn(live: &Value, value: &Value, elsewhere: f64) -> Result<Value>,
    /// A dtype's one where live, zero elsewhere.
    pub ones: fn(live: &Value, dtype: DType) -> Result<Value>,
    /// Where a value is not zero.
    pub nonzero: fn(&Value) -> Result<Value>,
    /// Where either is live.
    pub either: fn(&Value, &Value) -> Result<Value>,
}

static OPS: OnceLock<MarkOps> = OnceLock::new();

/// Installs the operations on marks; the first call counts.
pub fn set_mark_ops(ops: MarkOps) {
    let _ = OPS.set(ops);
}

fn ops() -> Result<&'static MarkOps> {
    OPS.get().ok_or_else(|| error!(Internal, "no operations on marks are installed: call ferrax::init() first"))
}

/// Whether marks are kept on this thread.
#[inline]
pub fn marking() -> bool {
    Flag::SafeWhere.get()
}

/// The marks of a sum of two cotangents.
pub fn join(a: Option<Value>, b: Option<Value>) -> Result<Option<Value>> {
    match (a, b) {
        (Some(a), Some(b)) => (ops()?.either)(&a, &b).map(Some),
        _ => Ok(None),
    }
}

/// Transposes an operation whose cotangents have marks: what it pulls back, with marks.
pub fn pull(op: &OpRef, cts: &[Option<Value>], live: &Marks, args: &[TransposeArg]) -> Result<(Tangents, Marks)> {
    let role = op.role();
    let marked = live.iter().any(Option::is_some);
    if !marked && role != OpRole::Selects {
        return Ok((op.transpose(op, cts, args)?, smallvec![None; args.len()]));
    }
    match role {
        OpRole::Opaque => Ok((op.transpose(op, cts, args)?, smallvec![None; args.len()])),
        OpRole::Calls(jaxpr) => {
            let (pulled, live) = crate::backward::backward_marked(&jaxpr, args, cts, live)?;
            Ok((pulled.into(), live.into()))
        }
        OpRole::Elementwise => {
            let guarded = with_unit_weights(live, args)?;
            let pulled = op.transpose(op, cts, &guarded)?;
            let marks = marks_of(op, cts, live, args, &pulled)?;
            Ok((pulled, marks))
        }
        OpRole::Weighted | OpRole::Selects => {
            let mut pulled = op.transpose(op, cts, args)?;
            let marks = marks_of(op, cts, live, args, &pulled)?;
            // Without known weights a dead element is a sum of zeros already.
            if args.iter().any(is_weight) {
                for (ct, mark) in pulled.iter_mut().zip(&marks) {
                    if let (Some(ct), Some(mark)) = (ct, mark) {
                        *ct = (ops()?.keep)(mark, ct, 0.0)?;
                    }
                }
            }
            Ok((pulled, marks))
        }
    }
}

/// A known operand that is a number, not a choice or a place.
fn is_weight(arg: &TransposeArg) -> bool {
    matches!(arg, TransposeArg::Known(v) if v.dtype().is_inexact())
}

/// The operands of an elementwise operation with known ones replaced by one at dead places.
fn with_unit_weights(live: &Marks, args: &[TransposeArg]) -> Result<Vec<TransposeArg>> {
    let [Some(mark)] = live.as_slice() else { return Ok(args.to_vec()) };
    let guard = |arg: &TransposeArg| match arg {
        TransposeArg::Known(v) if is_weight(arg) => {
            let whole = if v.shape() == mark.shape() {
                v.clone()
            } else if v.rank() == 0 {
                broadcast_in_dim(v, mark.shape(), &[])?
            } else {
                let dims: SmallVec<[usize; 4]> = (0..v.rank()).collect();
                broadcast_in_dim(v, mark.shape(), &dims)?
            };
            (ops()?.keep)(mark, &whole, 1.0).map(TransposeArg::Known)
        }
        _ => Ok(arg.clone()),
    };
    args.iter().map(guard).collect()
}

/// The marks of what an operation pulls back.
fn marks_of(
    op: &OpRef,
    cts: &[Option<Value>],
    live: &Marks,
    args: &[TransposeArg],
    pulled: &[Option<Value>],
) -> Result<Marks> {
    let same_shape = |ct: &Option<Value>| match (ct, cts) {
        (Some(ct), [Some(given)]) => ct.shape() == given.shape(),
        (ct, _) => ct.is_none(),
    };
    if op.role() == OpRole::Elementwise && pulled.iter().all(same_shape) {
        return Ok(pulled.iter().map(|ct| ct.as_ref().and_then(|_| live[0].clone())).collect());
    }
    let weight = |(ct, live): (&Option<Value>, &Option<Value>)| match (ct, live) {
        (None, _) => Ok(None),
        (Some(ct), None) => full(&ct.aval(), Scalar::from_f64(ct.dtype(), 1.0)).map(Some),
        (Some(ct), Some(live)) => (ops()?.ones)(live, ct.dtype()).map(Some),
    };
    let weights = cts.iter().zip(live).map(weight).collect::<Result<SmallVec<[Option<Value>; 1]>>>()?;
    let unit = |arg: &TransposeArg| match arg {
        TransposeArg::Known(v) if is_weight(arg) => {
            full(&v.aval(), Scalar::from_f64(v.dtype(), 1.0)).map(TransposeArg::Known)
        }
        _ => Ok(arg.clone()),
    };
    let units = args.iter().map(unit).collect::<Result<Vec<_>>>()?;
    let counted = op.transpose(op, &weights, &units)?;
    counted.iter().map(|n| n.as_ref().map(ops()?.nonzero).transpose()).collect()
}
