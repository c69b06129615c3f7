//! The checks of `debug_nans` and `debug_infs`: the results of every operation and every program are looked at.
//!
//! Read next: `blame.rs`, which finds the operation inside a program.

use ferrax_base::config::Flag;
use ferrax_base::{DType, Result, Scalar};
use ferrax_ir::{OpRef, Value};

/// Whether a check is on for this thread.
#[inline]
pub fn checking() -> bool {
    ferrax_base::config::bits() & (1 << Flag::DebugNans as u64 | 1 << Flag::DebugInfs as u64) != 0
}

/// What a value holds that a check is on for: `"nan"`, `"inf"` or nothing.
pub(crate) fn found(value: &Value) -> Result<Option<&'static str>> {
    if !value.dtype().is_inexact() {
        return Ok(None);
    }
    let (nans, infs) = (Flag::DebugNans.get(), Flag::DebugInfs.get());
    let bad = |v: f64| {
        if nans && v.is_nan() {
            Some("nan")
        } else if infs && v.is_infinite() {
            Some("inf")
        } else {
            None
        }
    };
    let a = match value {
        Value::Array(a) => a,
        Value::Lit(l) => return Ok(bad(l.scalar.to_f64()).or_else(|| bad(l.scalar.imag()))),
        Value::Tracer(_) => return Ok(None),
    };
    let pin = a.pin()?;
    Ok(match a.aval().dtype {
        DType::F32 | DType::C64 => pin.typed::<f32>().iter().find_map(|&v| bad(f64::from(v))),
        DType::F64 | DType::C128 => pin.typed::<f64>().iter().find_map(|&v| bad(v)),
        dtype => pin.bytes().chunks_exact(dtype.size()).find_map(|b| bad(Scalar::from_bytes(dtype, b).to_f64())),
    })
}

/// Errors when a result of an operation holds what a check is on for.
pub fn check(op: &OpRef, args: &[Value], results: &[Value]) -> Result<()> {
    for result in results {
        if found(result)?.is_some() {
            return Err(crate::blame::operation(op, args, results));
        }
    }
    Ok(())
}
