//! Manual axes: mesh axes over which a function is written for one device, with the check of what varies over them.
//!
//! Inside `shard_map` a value is the same on all devices of an axis or varies over it; its aval says so by a bit of
//! [`Aval::vary`](ferrax_base::Aval). Where an operation joins a value that is the same everywhere with one that varies,
//! [`bind`](crate::bind) makes the first vary, too, by the identity `pvary`, whose transpose is the sum over the axis: so
//! that gradients of what all devices share are sums over the devices, wherever they are taken.
//!
//! Source: the typing of JAX's `shard_map` with `check_vma`. Read next: `trace.rs`, which puts the axes in force, and
//! `ferrax-ops/src/collective.rs` for the operations that change what varies.

use crate::op::OpRef;
use crate::value::Value;
use ferrax_base::fork::Lock;
use ferrax_base::{Aval, Result, error};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// The names of the bits. They stay for the process.
static NAMES: Lock<Vec<Arc<str>>> = Lock::new(Vec::new());

/// The bit of an axis's name, which gets one if it has none.
pub fn bit(name: &str) -> Result<u32> {
    let mut names = NAMES.lock();
    let at = names.iter().position(|n| &**n == name).unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    });
    if at < 32 {
        return Ok(1 << at);
    }
    names.pop();
    Err(error!(Runtime, "more than 32 names of manual axes in one process: {name} is one too many"))
}

/// The names of bits, in the order in which they were first used.
pub fn names(bits: u32) -> Vec<Arc<str>> {
    NAMES.lock().iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, n)| n.clone()).collect()
}

/// What an operation says about the axes that its operands vary over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vary {
    /// The axes that every operand must vary over.
    pub operands: u32,
    /// The axes that the results vary over.
    pub results: u32,
}

/// Makes a value vary over axes; installed by `ferrax-ops`, which has the operation.
pub type Widen = fn(&Value, u32) -> Result<Value>;

static WIDEN: OnceLock<Widen> = OnceLock::new();

/// Installs what makes values vary; the first call counts.
pub fn set_widen(f: Widen) {
    let _ = WIDEN.set(f);
}

/// The operands of an operation, all varying over the axes that any does; `None` when they do already.
#[cold]
pub(crate) fn widened(op: &OpRef, args: &[Value]) -> Result<Option<SmallVec<[Value; 4]>>> {
    let all = args.iter().fold(0, |bits, v| bits | of(v));
    let Some(Vary { operands, .. }) = op.vary(all) else { return Ok(None) };
    let lacks = |v: &&Value| matches!(v, Value::Tracer(_)) && operands & !of(v) != 0;
    if !args.iter().any(|v| lacks(&v)) {
        return Ok(None);
    }
    args.iter().map(|v| if lacks(&v) { widen(v, operands) } else { Ok(v.clone()) }).collect::<Result<_>>().map(Some)
}

/// The value, varying over axes.
pub fn widen(v: &Value, bits: u32) -> Result<Value> {
    match (bits & !of(v), WIDEN.get()) {
        (0, _) => Ok(v.clone()),
        (missing, Some(widen)) => widen(v, missing),
        (_, None) => Err(error!(Internal, "nothing makes values vary: call ferrax::init()")),
    }
}

/// The axes that a value varies over.
#[inline]
pub fn of(v: &Value) -> u32 {
    match v {
        Value::Tracer(t) => t.aval().vary,
        _ => 0,
    }
}

/// Notes in the results' avals which axes they vary over; results of an operation with programs have it from those.
#[inline]
pub(crate) fn note(op: &dyn crate::op::Op, args: &[&Aval], outs: &mut [Aval]) {
    let all = args.iter().fold(0, |bits, a| bits | a.vary);
    if let Some(vary) = op.vary(all) {
        outs.iter_mut().for_each(|out| out.vary = vary.results);
    }
}
