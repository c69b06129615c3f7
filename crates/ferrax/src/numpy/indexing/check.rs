//! The check of indices that are known only when a program runs: under `check_indices` an integer outside its axis
//! raises, with the line that indexed, in place of being clamped or dropped.
//!
//! A check is a debug callback in the program, so it stands under every transformation and vanishes with the setting.

use ferrax_base::config::Flag;
use ferrax_base::{Aval, Buffer, Error, Result, Scalar, Source, error};
use ferrax_ir::Value;
use ferrax_loops::{HostCall, HostRef};
use ferrax_ops::callback::{CallbackKind, VmapMethod, callback};
use std::sync::Arc;

/// One place where an axis is indexed.
struct IndexCheck {
    axis: usize,
    size: usize,
    /// How many entries are taken from the index on.
    window: usize,
    /// Negative integers do not count from the end.
    raw: bool,
    source: Source,
}

impl HostCall for IndexCheck {
    fn call(&self, args: &[(&Aval, &Buffer)], _: &[Aval]) -> Result<Vec<Buffer>> {
        let (aval, buffer) = args[0];
        for bytes in buffer.bytes().chunks_exact(aval.dtype.size()) {
            let i = ferrax_ops::numbers::integer(Scalar::from_bytes(aval.dtype, bytes));
            if self.is_outside(i) {
                let place = self.source.location().map_or_else(String::new, |l| format!(" at {l}"));
                return Err(self.error(i, &place));
            }
        }
        Ok(Vec::new())
    }

    fn name(&self) -> String {
        format!("check_index[axis={} size={}]", self.axis, self.size)
    }
}

impl IndexCheck {
    fn is_outside(&self, i: i128) -> bool {
        let i = if i < 0 && !self.raw { i + self.size as i128 } else { i };
        i < 0 || i + self.window as i128 > self.size as i128
    }

    fn error(&self, i: i128, place: &str) -> Error {
        let Self { axis, size, window, .. } = self;
        let slice = if *window == 1 { String::new() } else { format!(" (of a slice of size {window})") };
        error!(Index, "index {i}{slice} is out of bounds for axis {axis} with size {size}{place}")
    }
}

/// Under `check_indices`, checks an index of an axis that no mode excuses: one that is known at once, others when the
/// program runs. `window` entries are taken from it on; `raw` indices do not count from the end.
#[inline]
pub fn check_index(index: &Value, axis: usize, size: usize, window: usize, raw: bool) -> Result<()> {
    if Flag::CheckIndices.get() || Flag::CheckTracedIndices.get() {
        return check(index, axis, size, window, raw);
    }
    Ok(())
}

#[cold]
pub(super) fn check(index: &Value, axis: usize, size: usize, window: usize, raw: bool) -> Result<()> {
    let check = IndexCheck { axis, size, window, raw, source: Source::here() };
    if let Some(i) = super::known_integer(index) {
        return if check.is_outside(i.into()) && !super::LOOKED_UP.get() {
            Err(check.error(i.into(), ""))
        } else {
            Ok(())
        };
    }
    if !Flag::CheckTracedIndices.get() {
        return Ok(());
    }
    let host = HostRef(Arc::new(check));
    callback(CallbackKind::Debug, host, Vec::new(), VmapMethod::Sequential, std::slice::from_ref(index))?;
    Ok(())
}
