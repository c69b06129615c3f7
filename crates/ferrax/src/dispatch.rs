//! How one operation on concrete values runs.
//!
//! Operations with a hook of their own (calls, callbacks) run through it; all others through a program for their
//! operand types, lowered once and kept ([`Programs`]). The key is compared in full: a hash collision costs time,
//! never a wrong program.
//!
//! Read next: `executable.rs` for whole programs.

use crate::debug;
use crate::device::{self, Placement};
use ferrax_base::{Aval, Buffer, Result, Shape};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Array, Avals, OpRef, Value, Values};
use smallvec::SmallVec;

/// Runs an operation on concrete values.
pub fn evaluate(op: &OpRef, args: &[Value]) -> Result<Values> {
    if let Some(results) = op.eager(op, args) {
        return results;
    }
    let placement = device::place(args, |i| format!("operand {i} of {}", op.name()))?;
    let avals: SmallVec<[Aval; 4]> = args.iter().map(Value::aval).collect();
    let refs: SmallVec<[&Aval; 4]> = avals.iter().collect();
    let outs = op.abstract_eval(&refs)?;
    let results = run(op, args, &outs, placement)?;
    if debug::checking() {
        debug::check(op, args, &results)?;
    }
    Ok(results)
}

fn run(op: &OpRef, args: &[Value], outs: &Avals, placement: Placement) -> Result<Values> {
    let tensors = args.iter().map(tensor).collect::<Result<Vec<_>>>()?;
    let results = op.reference(&tensors, outs)?;
    results
        .iter()
        .zip(outs)
        .map(|(r, aval)| {
            Ok(Value::Array(Array::placed(aval.clone(), r.to_buffer()?, placement.device, placement.committed)))
        })
        .collect()
}

fn tensor(v: &Value) -> Result<RefTensor> {
    let with = |a: &Array| Ok(RefTensor::from_buffer(a.aval(), &*a.pin()?));
    match v {
        Value::Array(a) => with(a),
        Value::Lit(l) => Ok(RefTensor { aval: v.aval(), data: vec![l.scalar] }),
        Value::Tracer(_) => Err(ferrax_base::error!(Internal, "a traced value reached the dispatcher")),
    }
}

/// A new array of these bytes on the default device.
pub fn array_from_bytes(aval: Aval, bytes: &[u8]) -> Result<Array> {
    let place = Placement::uncommitted();
    Ok(Array::placed(aval, Buffer::from_bytes(bytes)?, place.device, place.committed))
}

/// A rank-0 array on the default device.
pub fn scalar_array(lit: &ferrax_ir::Lit) -> Result<Array> {
    let aval = Aval { shape: Shape::new(), dtype: lit.scalar.dtype, weak: lit.weak };
    array_from_bytes(aval, &lit.scalar.to_bytes()[..lit.scalar.dtype.size()])
}
