//! The bell that tells workers of a job: they watch for a while, then sleep, and none sleeps through it.
//!
//! A worker that goes to sleep says so and then looks once more for a new epoch; who rings begins an epoch and then looks
//! whether somebody sleeps. A fence stands between on both sides, so that one of them sees the other. `tests/gate.rs` runs
//! this file over all interleavings of a few threads. Read next: `gate.rs`, where the woken go.

use super::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, Thread, fence, park, watch};

/// A bell with its listeners.
pub struct Bell {
    epoch: AtomicU64,
    watching: AtomicUsize,
    workers: Mutex<Vec<Thread>>,
}

impl Bell {
    /// A bell that nobody listens to.
    pub fn new() -> Self {
        Bell { epoch: AtomicU64::new(0), watching: AtomicUsize::new(0), workers: Mutex::new(Vec::new()) }
    }

    fn workers(&self) -> impl std::ops::DerefMut<Target = Vec<Thread>> + '_ {
        self.workers.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Adds a worker.
    pub fn add(&self, worker: Thread) {
        self.workers().push(worker);
    }

    /// Whether some worker would hear it at once.
    pub fn is_watched(&self) -> bool {
        self.watching.load(Ordering::Relaxed) > 0
    }

    /// Begins an epoch, and wakes the workers if one of them sleeps.
    pub fn ring(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let workers = self.workers();
        if self.watching.load(Ordering::Relaxed) < workers.len() {
            workers.iter().for_each(Thread::unpark);
        }
    }

    /// Returns with the epoch when it is another one than was seen: watches for a while, then sleeps.
    pub fn wait(&self, seen: u64) -> u64 {
        self.watching.fetch_add(1, Ordering::Relaxed);
        let begun = watch(|| self.epoch.load(Ordering::Acquire) != seen);
        self.watching.fetch_sub(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !begun && self.epoch.load(Ordering::Acquire) == seen {
            park();
        }
        self.epoch.load(Ordering::Acquire)
    }
}
