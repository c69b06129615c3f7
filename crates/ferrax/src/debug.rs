//! The checks of `debug_nans` and `debug_infs`: every result of every operation is looked at.

use ferrax_base::config::Flag;
use ferrax_base::{DType, Result, Scalar, error};
use ferrax_ir::{OpRef, Value};

/// Whether a check is on for this thread.
#[inline]
pub fn checking() -> bool {
    ferrax_base::config::bits() & (1 << Flag::DebugNans as u64 | 1 << Flag::DebugInfs as u64) != 0
}

/// What a value holds that a check is on for: `"nan"`, `"inf"` or nothing.
fn found(value: &Value) -> Result<Option<&'static str>> {
    let Value::Array(a) = value else { return Ok(None) };
    if !a.aval().dtype.is_inexact() {
        return Ok(None);
    }
    let (nans, infs) = (Flag::DebugNans.get(), Flag::DebugInfs.get());
    let pin = a.pin()?;
    let bad = |v: f64| {
        if nans && v.is_nan() {
            Some("nan")
        } else if infs && v.is_infinite() {
            Some("inf")
        } else {
            None
        }
    };
    Ok(match a.aval().dtype {
        DType::F32 | DType::C64 => pin.typed::<f32>().iter().find_map(|&v| bad(f64::from(v))),
        DType::F64 | DType::C128 => pin.typed::<f64>().iter().find_map(|&v| bad(v)),
        dtype => pin.bytes().chunks_exact(dtype.size()).find_map(|b| bad(Scalar::from_bytes(dtype, b).to_f64())),
    })
}

/// Errors when a result of an operation holds what a check is on for.
pub fn check(op: &OpRef, args: &[Value], results: &[Value]) -> Result<()> {
    for result in results {
        let Some(what) = found(result)? else { continue };
        let mut operands = String::new();
        for (i, a) in args.iter().enumerate() {
            let note = if found(a)?.is_some() { format!(" (holds {what} already)") } else { String::new() };
            operands.push_str(&format!("{}{}{note}", if i > 0 { ", " } else { "" }, a.aval()));
        }
        return Err(error!(
            FloatingPoint,
            "invalid value ({what}) encountered in {}: its result has type {}, its operands are {operands}",
            op.name(),
            result.aval()
        ));
    }
    Ok(())
}
