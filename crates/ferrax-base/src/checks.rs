//! Checks of what the engines themselves do, for tests: `FERRAX_CHECK=1` turns them on for the process.
//!
//! Memory is filled with a pattern before its first use and after its last one, and plans are verified before they run.
//! Every byte of the pattern is the same, so that it is a NaN in every format of floats, -1 in every signed integer and
//! neither true nor false: whoever reads what nobody wrote gets a wrong result at once and always the same one.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The byte of the pattern.
pub const POISON: u8 = 0xff;

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether the checks are on.
#[inline]
pub fn on() -> bool {
    match STATE.load(Relaxed) {
        UNKNOWN => ask(),
        state => state == ON,
    }
}

#[cold]
fn ask() -> bool {
    let on = std::env::var_os("FERRAX_CHECK").is_some_and(|v| !v.is_empty() && v != "0");
    set(on);
    on
}

/// Turns the checks on or off.
pub fn set(on: bool) {
    STATE.store(if on { ON } else { OFF }, Relaxed);
}

/// Fills memory with the pattern, if the checks are on.
///
/// # Safety
/// The memory must be valid for writes, and nobody may need what is there.
#[inline]
pub unsafe fn poison(at: *mut u8, bytes: usize) {
    if on() {
        // SAFETY: the caller's contract.
        unsafe { at.write_bytes(POISON, bytes) };
    }
}
