//! A GPU as programs see it: its context, three streams, memory, and what waits for its end.
//!
//! Programs run on one stream, arrays come and go on two others, so that copies and kernels overlap. Read next:
//! `memory.rs`, `transfer.rs`.

use super::context::Context;
use super::memory::{Live, Pool};
use super::result::Driver;
use super::staging::Staging;
use super::stream::{Event, Stream};
use ferrax_base::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that lives until an event.
type Retired = (Arc<Event>, Box<dyn Send>);

/// A GPU.
pub struct Device {
    // in the order in which they go
    retired: Mutex<Vec<Retired>>,
    staging: Staging,
    live: Mutex<Live>,
    /// Numbers of the GPUs that reach this one's memory.
    peers: Mutex<Vec<usize>>,
    pool: Pool,
    compute: Stream,
    upload: Stream,
    download: Stream,
    context: Arc<Context>,
}

/// Bytes in a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// In blocks that live.
    pub in_use: usize,
    /// The most that has been in use.
    pub peak: usize,
    /// Kept for reuse.
    pub kept: usize,
    /// That there are.
    pub limit: usize,
}

impl Device {
    /// The GPU of a number.
    pub fn new(driver: &Arc<Driver>, ordinal: usize) -> Result<Arc<Device>> {
        let context = Context::new(driver, ordinal)?;
        Ok(Arc::new(Device {
            retired: Mutex::default(),
            staging: Staging::new(&context),
            live: Mutex::default(),
            peers: Mutex::default(),
            pool: Pool::new(&context)?,
            compute: Stream::new(&context)?,
            upload: Stream::new(&context)?,
            download: Stream::new(&context)?,
            context,
        }))
    }

    /// The context.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The stream that programs run on.
    pub fn compute(&self) -> &Stream {
        &self.compute
    }

    pub(super) fn uploads(&self) -> &Stream {
        &self.upload
    }

    pub(super) fn downloads(&self) -> &Stream {
        &self.download
    }

    pub(super) fn staging(&self) -> &Staging {
        &self.staging
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn peers(&self) -> MutexGuard<'_, Vec<usize>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of its memory. Where the driver cannot be asked, nothing counts as kept.
    pub fn stats(&self) -> Stats {
        let (in_use, peak) = self.live().bytes();
        Stats { in_use, peak, kept: self.pool.kept().unwrap_or(0), limit: self.context.bytes() }
    }

    /// Drops something after an event: at once, or when somebody next sweeps.
    pub(super) fn retire(&self, event: Arc<Event>, what: Box<dyn Send>) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push((event, what));
        self.sweep();
    }

    /// Drops what was retired and is known to have come to its event.
    pub(super) fn sweep(&self) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        if retired.is_empty() {
            return;
        }
        let gone: Vec<Retired> = retired.extract_if(.., |(event, _)| matches!(event.ready(), Ok(true))).collect();
        drop(retired);
        drop(gone);
    }

    /// Waits for everything that was given to the GPU; gives the error of whatever failed.
    pub fn synchronize(&self) -> Result<()> {
        [&self.upload, &self.compute, &self.download].into_iter().try_for_each(Stream::synchronize)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // what goes with it may still be in use; whether that failed no longer matters
        [&self.upload, &self.compute, &self.download].into_iter().for_each(Stream::settle);
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.context.fmt(f)
    }
}
