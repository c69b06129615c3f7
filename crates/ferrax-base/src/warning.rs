//! Warnings to the user: the host (the Python binding) says how one is shown; without a host there are none.

use crate::Result;
use std::sync::OnceLock;

/// Shows a warning; an error where the host turns warnings into errors.
pub type Warn = fn(&str) -> Result<()>;

static WARN: OnceLock<Warn> = OnceLock::new();

/// Says how warnings are shown; the first call counts.
pub fn set_warn(f: Warn) {
    let _ = WARN.set(f);
}

/// Shows a warning.
pub fn warn(text: &str) -> Result<()> {
    WARN.get().map_or(Ok(()), |f| f(text))
}
