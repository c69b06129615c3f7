//! The checks of `debug_nans` and `debug_infs`: the results of every operation and every program are looked at.
//!
//! Read next: `blame.rs`, which finds the operation inside a program, and `report.rs` for what is said about it.

use ferrax_base::config::{Flag, bits, with};
use ferrax_base::error::ErrorKind;
use ferrax_base::{Buffer, DType, Error, Result, Scalar};
use ferrax_cpu::finite::{self, Sought};
use ferrax_ir::trace::Payload;
use ferrax_ir::{Array, OpRef, Value};

/// Whether a check is on for this thread, or somebody looks at what runs.
#[inline]
pub fn checking() -> bool {
    const ANY: u64 = 1 << Flag::DebugNans as u64 | 1 << Flag::DebugInfs as u64 | 1 << Flag::Watched as u64;
    bits() & ANY != 0
}

/// What is checked for, when a check is on.
fn sought() -> Option<Sought> {
    match (Flag::DebugNans.get(), Flag::DebugInfs.get()) {
        (true, true) => Some(Sought::Both),
        (true, false) => Some(Sought::Nan),
        (false, true) => Some(Sought::Infinity),
        (false, false) => None,
    }
}

/// Whether elements of this dtype hold what a check is on for.
#[inline]
pub(crate) fn spoilt(elements: &Buffer, dtype: DType) -> bool {
    dtype.is_inexact() && sought().is_some_and(|sought| finite::holds(elements, dtype, sought))
}

/// Whether an array holds what a check is on for.
pub fn holds(a: &Array) -> Result<bool> {
    let pin = a.pin()?;
    Ok(crate::long_work::run(a.aval().size(), || spoilt(&pin, a.aval().dtype)))
}

/// Whether a value holds what a check is on for.
pub(crate) fn found(value: &Value) -> Result<bool> {
    match value {
        Value::Array(a) => holds(a),
        Value::Lit(l) => Ok(sought().is_some_and(|s| bad(s, l.scalar).is_some())),
        Value::Tracer(_) => Ok(false),
    }
}

/// Whether an array, or one that a tracer stands for, holds what a check is on for: for programs being recorded no.
pub fn holds_behind(value: &Value) -> Result<bool> {
    let Value::Tracer(t) = value else { return found(value) };
    match t.payload() {
        Payload::Staged(_) | Payload::Hosted(_) => Ok(false),
        Payload::Batched { value, .. } => holds_behind(value),
        Payload::Jvp { primal, tangent } => {
            Ok(holds_behind(primal)? || tangent.as_ref().map_or(Ok(false), holds_behind)?)
        }
    }
}

/// What a function of several operations gives, which a check stops for its result alone.
#[inline]
pub fn whole(f: impl Fn() -> Result<Value>) -> Result<Value> {
    match f() {
        Err(error) if matches!(*error.0, ErrorKind::FloatingPoint(_)) => good_result(f, error),
        found => found,
    }
}

#[cold]
fn good_result(f: impl Fn() -> Result<Value>, error: Error) -> Result<Value> {
    match quiet(f) {
        Ok(result) if !holds_behind(&result)? => Ok(result),
        _ => Err(error),
    }
}

/// Runs `f` without the checks.
pub fn quiet<T>(f: impl FnOnce() -> T) -> T {
    with(Flag::DebugNans, false, || with(Flag::DebugInfs, false, f))
}

/// What a number is that is searched for: `"nan"` or `"inf"`.
fn bad(sought: Sought, number: Scalar) -> Option<&'static str> {
    let parts = [number.to_f64(), if number.dtype.is_complex() { number.imag() } else { 0.0 }];
    let v = parts.into_iter().find(|&v| sought.is(v))?;
    Some(if v.is_nan() { "nan" } else { "inf" })
}

/// The first element that a check is on for: its place in row-major order and what it is.
#[cold]
pub(crate) fn first(value: &Value) -> Result<Option<(usize, &'static str)>> {
    let Some(sought) = sought().filter(|_| value.dtype().is_inexact()) else { return Ok(None) };
    let a = match value {
        Value::Array(a) => a,
        Value::Lit(l) => return Ok(bad(sought, l.scalar).map(|what| (0, what))),
        Value::Tracer(_) => return Ok(None),
    };
    let (pin, dtype) = (a.pin()?, a.aval().dtype);
    let mut numbers = pin.bytes().chunks_exact(dtype.size()).enumerate();
    Ok(numbers.find_map(|(i, b)| bad(sought, Scalar::from_bytes(dtype, b)).map(|what| (i, what))))
}

/// An element by its place in row-major order; the number itself for one that stands for all.
pub(crate) fn element(value: &Value, at: usize) -> Result<Option<Scalar>> {
    match value {
        Value::Array(a) if a.aval().dtype != DType::Float0 => {
            let (pin, dtype) = (a.pin()?, a.aval().dtype);
            let at = if a.aval().rank() == 0 { 0 } else { at };
            Ok(pin.bytes().chunks_exact(dtype.size()).nth(at).map(|b| Scalar::from_bytes(dtype, b)))
        }
        Value::Lit(l) => Ok(Some(l.scalar)),
        _ => Ok(None),
    }
}

/// Errors when a result of an operation holds what a check is on for.
pub fn check(op: &OpRef, args: &[Value], results: &[Value]) -> Result<()> {
    for result in results {
        if found(result)? {
            return Err(crate::blame::operation(op, args, results));
        }
    }
    Ok(())
}
