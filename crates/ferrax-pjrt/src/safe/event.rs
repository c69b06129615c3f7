//! Events: something that a plugin will have done.

use super::Client;
use crate::result as r;
use crate::sys::{PJRT_Api, PJRT_Error, PJRT_Event};
use ferrax_base::Result;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

/// Something that a plugin does meanwhile, with an error or without.
pub struct Event {
    client: Arc<Client>,
    raw: NonNull<PJRT_Event>,
}

// SAFETY: the functions on events may be called from any thread, several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

/// What is called once an event has happened.
type Then = Box<dyn FnOnce(Result<()>) + Send>;

struct Waiting {
    api: &'static PJRT_Api,
    then: Then,
}

impl Event {
    /// Takes an event over; `None` where the plugin gave none, which means that there is nothing to wait for.
    ///
    /// # Safety
    /// `raw` is null or an event of this client that the caller owns.
    pub(crate) unsafe fn own(client: &Arc<Client>, raw: *mut PJRT_Event) -> Option<Event> {
        NonNull::new(raw).map(|raw| Event { client: client.clone(), raw })
    }

    /// Whether it has happened; does not wait.
    pub fn ready(&self) -> Result<bool> {
        // SAFETY: the event is alive.
        unsafe { r::event_is_ready(self.client.api(), self.raw.as_ptr()) }
    }

    /// Waits for it; gives its error.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the event is alive.
        unsafe { r::event_await(self.client.api(), self.raw.as_ptr()) }
    }

    /// Calls `then` with how it ended: now if it has happened, and otherwise on a thread of the plugin.
    ///
    /// `then` must not hold what keeps the client alive alone: a plugin's thread cannot end its own client. Where it
    /// cannot be asked for, `then` is dropped and the error returned.
    pub fn on_ready(&self, then: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let waiting = Box::into_raw(Box::new(Waiting { api: self.client.api(), then: Box::new(then) }));
        // SAFETY: the event is alive; the plugin calls back at most once, with what it was given.
        let asked = unsafe { r::event_on_ready(self.client.api(), self.raw.as_ptr(), Some(happened), waiting.cast()) };
        if asked.is_err() {
            // SAFETY: a plugin that refuses does not call back.
            drop(unsafe { Box::from_raw(waiting) });
        }
        asked
    }
}

/// What plugins call.
unsafe extern "C" fn happened(failed: *mut PJRT_Error, waiting: *mut c_void) {
    // SAFETY: `on_ready` made it, for this one call.
    let waiting = unsafe { Box::from_raw(waiting.cast::<Waiting>()) };
    let ended = if failed.is_null() {
        Ok(())
    } else {
        // SAFETY: the error is ours with the call.
        Err(unsafe { r::take_error(waiting.api, failed) })
    };
    // a panic may not pass through the plugin; the hook has told of it, and nobody else waits for an answer
    let _ = catch_unwind(AssertUnwindSafe(|| (waiting.then)(ended)));
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: nobody uses the event after this. There is nobody to tell of an error.
        let _ = unsafe { r::event_destroy(self.client.api(), self.raw.as_ptr()) };
    }
}
