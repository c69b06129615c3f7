//! What the host is told of while [`Flag::Watched`] is set: each operation and program, before and after it runs.
//!
//! Transfer guards, key reuse and `no_execution` are made of it. What an operation or a program runs inside of itself is
//! not told. Read next: `ferrax-python/src/watch.rs`, who listens.

use ferrax_base::Result;
use ferrax_base::config::{Flag, with};
use ferrax_ir::{JaxprRef, OpRef, Value, Values};
use std::sync::OnceLock;

/// What runs.
pub enum Ran<'a> {
    /// One operation.
    Operation(&'a OpRef),
    /// A whole program.
    Program(&'a JaxprRef),
}

/// Who is told: what runs, its arguments, and its results once there are some. An error is that of the run.
pub type Watch = fn(&Ran<'_>, &[Value], Option<&[Value]>) -> Result<()>;

static WATCH: OnceLock<Watch> = OnceLock::new();

/// Says who is told; the first call counts.
pub fn set_watch(f: Watch) {
    let _ = WATCH.set(f);
}

/// Runs something, and tells of it.
#[cold]
pub(crate) fn around(ran: &Ran<'_>, args: &[Value], run: impl FnOnce() -> Result<Values>) -> Result<Values> {
    let tell = |results: Option<&[Value]>| WATCH.get().map_or(Ok(()), |f| f(ran, args, results));
    with(Flag::Watched, false, || {
        tell(None)?;
        let results = run()?;
        tell(Some(&results))?;
        Ok(results)
    })
}
