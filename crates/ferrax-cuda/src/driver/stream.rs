//! Streams, on which work is done in order, and events, which say how far they are.

use super::context::{Context, Entered};
use super::sys::*;
use ferrax_base::Result;
use std::sync::Arc;

/// Work in order.
pub struct Stream {
    context: Arc<Context>,
    raw: CUstream,
}

// SAFETY: streams may be used from any thread, several at once.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that waits for no other.
    pub fn new(context: &Arc<Context>) -> Result<Stream> {
        let here = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place outlives the call.
        unsafe { here.driver().cuStreamCreate(&raw mut raw, CU_STREAM_NON_BLOCKING)? };
        Ok(Stream { context: context.clone(), raw })
    }

    pub(super) fn raw(&self) -> CUstream {
        self.raw
    }

    /// An event of all that was given to the stream so far.
    pub fn record(&self, here: &Entered<'_>) -> Result<Event> {
        // SAFETY: the stream is alive.
        unsafe { Event::record(&self.context, here, self.raw) }
    }

    /// Has what comes next on the stream wait for an event, of whichever stream and GPU.
    pub fn wait(&self, here: &Entered<'_>, event: &Event) -> Result<()> {
        // SAFETY: the stream is alive.
        unsafe { event.hold(here, self.raw) }
    }

    /// Waits for all that was given to the stream, and gives the error of whatever failed.
    pub fn synchronize(&self) -> Result<()> {
        let here = self.context.enter()?;
        // SAFETY: the stream is alive.
        unsafe { here.driver().cuStreamSynchronize(self.raw) }
    }

    /// Waits until nothing that was given to the stream runs, whatever became of it. Once more where that failed: the error
    /// may be one of waiting or one of what ran.
    pub(super) fn settle(&self) {
        if self.synchronize().is_err() {
            let _ = self.synchronize();
        }
    }

    /// A copy of bytes within the GPU's memory.
    ///
    /// # Safety
    /// Both ranges are alive when the stream comes to the copy, and nobody else writes them then.
    pub unsafe fn copy(&self, here: &Entered<'_>, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { here.driver().cuMemcpyDtoDAsync_v2(to, from, bytes, self.raw) }
    }

    /// Sets bytes.
    ///
    /// # Safety
    /// As for [`Stream::copy`].
    pub unsafe fn fill(&self, here: &Entered<'_>, to: CUdeviceptr, byte: u8, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { here.driver().cuMemsetD8Async(to, byte, bytes, self.raw) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: nobody uses the stream after this; the driver ends what it has before.
        self.context.give_back(|driver| unsafe { driver.cuStreamDestroy_v2(self.raw) });
    }
}

/// A point of a stream.
pub struct Event {
    context: Arc<Context>,
    raw: CUevent,
}

// SAFETY: events may be used from any thread, several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event of all that was given to a stream so far, ours or another library's.
    ///
    /// # Safety
    /// The stream is alive, and of this context.
    pub(super) unsafe fn record(context: &Arc<Context>, here: &Entered<'_>, stream: CUstream) -> Result<Event> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the place outlives the call.
        unsafe { here.driver().cuEventCreate(&raw mut raw, CU_EVENT_DISABLE_TIMING)? };
        let event = Event { context: context.clone(), raw };
        // SAFETY: both are alive.
        unsafe { here.driver().cuEventRecord(raw, stream)? };
        Ok(event)
    }

    /// Has what comes next on a stream, ours or another library's, wait for the event.
    ///
    /// # Safety
    /// The stream is alive.
    pub(super) unsafe fn hold(&self, here: &Entered<'_>, stream: CUstream) -> Result<()> {
        // SAFETY: both are alive; an event may go once the stream knows it.
        unsafe { here.driver().cuStreamWaitEvent(stream, self.raw, 0) }
    }

    /// Whether the stream has come there; does not wait.
    pub fn ready(&self) -> Result<bool> {
        let here = self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { (here.driver().functions.cuEventQuery)(self.raw) } {
            CUDA_ERROR_NOT_READY => Ok(false),
            code => here.driver().check("cuEventQuery", code).map(|()| true),
        }
    }

    /// Waits until the stream has come there; gives the error of whatever failed before.
    pub fn wait(&self) -> Result<()> {
        let here = self.context.enter()?;
        // SAFETY: the event is alive.
        unsafe { here.driver().cuEventSynchronize(self.raw) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody uses the event after this; streams that wait for it go on knowing it.
        self.context.give_back(|driver| unsafe { driver.cuEventDestroy_v2(self.raw) });
    }
}
