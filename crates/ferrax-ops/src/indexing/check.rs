//! The check of indices that are known only when a program runs: under `check_indices` an integer outside its axis
//! raises, with the line that indexed, in place of being clamped or dropped.
//!
//! A check is a debug callback in the program, so it stands under every transformation and vanishes with the setting.

use crate::callback::{CallbackKind, VmapMethod, callback};
use ferrax_base::{Aval, Buffer, Result, Scalar, Source, bail};
use ferrax_ir::Value;
use ferrax_loops::{HostCall, HostRef};
use std::sync::Arc;

/// One place where an axis is indexed.
struct IndexCheck {
    axis: usize,
    size: usize,
    /// Negative integers do not count from the end.
    raw: bool,
    source: Source,
}

impl HostCall for IndexCheck {
    fn call(&self, args: &[(&Aval, &Buffer)], _: &[Aval]) -> Result<Vec<Buffer>> {
        let (aval, buffer) = args[0];
        let low = if self.raw { 0 } else { -(self.size as i128) };
        for bytes in buffer.bytes().chunks_exact(aval.dtype.size()) {
            let i = crate::numbers::integer(Scalar::from_bytes(aval.dtype, bytes));
            if i < low || i >= self.size as i128 {
                let place = self.source.location().map_or_else(String::new, |l| format!(" at {l}"));
                bail!(Index, "index {i} is out of bounds for axis {} with size {}{place}", self.axis, self.size);
            }
        }
        Ok(Vec::new())
    }

    fn name(&self) -> String {
        format!("check_index[axis={} size={}]", self.axis, self.size)
    }
}

/// Has the program check an integer array that indexes an axis.
#[cold]
pub(super) fn check(index: &Value, axis: usize, size: usize, raw: bool) -> Result<()> {
    let host = HostRef(Arc::new(IndexCheck { axis, size, raw, source: Source::here() }));
    callback(CallbackKind::Debug, host, Vec::new(), VmapMethod::Sequential, std::slice::from_ref(index))?;
    Ok(())
}
