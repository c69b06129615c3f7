//! Work that takes long runs without the host's lock, so that the host's other threads go on.
//!
//! The host (Python) installs a function that gives its lock up around what it is handed. Giving it up costs as much as a small
//! operation, so only work above a bound asks for it; code that calls back into the host takes the lock again.

use std::sync::OnceLock;

/// Runs what it is given without the host's lock.
pub type WithoutLock = fn(&mut dyn FnMut());

/// Elements from which work counts as long: some ten microseconds of it.
pub const LONG: usize = 1 << 15;

static WITHOUT_LOCK: OnceLock<WithoutLock> = OnceLock::new();

/// Installs the host's function; the first call counts.
pub fn install(f: WithoutLock) {
    let _ = WITHOUT_LOCK.set(f);
}

/// Whether there is a host.
pub fn hosted() -> bool {
    WITHOUT_LOCK.get().is_some()
}

/// Runs `work` on this many elements.
#[inline]
pub fn run<R>(elements: usize, work: impl FnOnce() -> R) -> R {
    if elements < LONG {
        return work();
    }
    without_lock(work)
}

#[cold]
fn without_lock<R>(work: impl FnOnce() -> R) -> R {
    let Some(host) = WITHOUT_LOCK.get() else { return work() };
    let (mut work, mut result) = (Some(work), None);
    host(&mut || result = work.take().map(|w| w()));
    match (result, work) {
        (Some(result), _) => result,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that was taken has a result or has panicked"),
    }
}
