//! The gate through which workers come to a job: they may come late, and nobody is inside when the owner of the job leaves.
//!
//! A job is open from `open` to `close`. A worker counts itself in and looks whether the gate is open, in one step; who
//! closes it keeps later ones out and waits for those inside. So what a job refers to need only live until `close` is
//! done, and what workers wrote is seen by the owner. `tests/gate.rs` runs this file over all interleavings of a few
//! threads, memory orders included.

use super::sync::{AtomicUsize, Mutex, Ordering, wait};

/// Set while no job is open; the other bits count workers inside.
const CLOSED: usize = 1 << (usize::BITS - 1);
/// More tasks than any job has.
const NONE: usize = usize::MAX / 2;

/// A gate for jobs of numbered tasks.
pub struct Gate<J> {
    job: Mutex<Option<J>>,
    inside: AtomicUsize,
    next: AtomicUsize,
}

impl<J: Copy> Gate<J> {
    /// A closed gate.
    pub fn new() -> Self {
        Gate { job: Mutex::new(None), inside: AtomicUsize::new(CLOSED), next: AtomicUsize::new(NONE) }
    }

    fn job(&self) -> impl std::ops::DerefMut<Target = Option<J>> + '_ {
        self.job.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Opens the gate to a job. One thread at a time opens and closes.
    pub fn open(&self, job: J) {
        self.next.store(0, Ordering::Relaxed);
        *self.job() = Some(job);
        self.inside.fetch_and(!CLOSED, Ordering::AcqRel);
    }

    /// Closes the gate: when this returns nobody is inside, and nobody comes in before it is opened again.
    pub fn close(&self) {
        // Nobody takes a further task.
        self.next.store(NONE, Ordering::Relaxed);
        self.inside.fetch_or(CLOSED, Ordering::AcqRel);
        let mut turns = 0;
        while self.inside.load(Ordering::Acquire) != CLOSED {
            wait(&mut turns);
        }
        *self.job() = None;
    }

    /// Works on the job, if the gate is open. `work` must not panic.
    pub fn enter(&self, work: impl FnOnce(J)) {
        if self.inside.fetch_add(1, Ordering::AcqRel) & CLOSED == 0 {
            let job = *self.job();
            if let Some(job) = job {
                work(job);
            }
        }
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    /// The next of so many tasks, each given once; for the owner and those inside.
    pub fn next(&self, tasks: usize) -> Option<usize> {
        let i = self.next.fetch_add(1, Ordering::Relaxed);
        (i < tasks).then_some(i)
    }
}
