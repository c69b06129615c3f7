//! Memory of the host that GPUs copy from and to by themselves, used again and again.
//!
//! A piece that a copy still needs waits with the copy's event; whoever asks for room takes back what is done. Dropping a piece gives
//! it to the system, which is for those that no copy uses any more.
//! Read next: `transfer.rs`, which copies through it.

use super::context::Context;
use super::stream::Event;
use super::sys::CU_MEMHOSTALLOC_PORTABLE;
use ferrax_base::{Result, error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The largest piece: arrays are copied in pieces of this size, one being filled while the one before is on its way.
pub const LARGEST: usize = 4 << 20;
const SMALLEST: usize = 4 << 10;
/// Bytes from which on whoever asks waits for a copy rather than have the pool grow.
const MOST: usize = 64 << 20;

/// A piece of the host's memory that stays where it is.
pub struct Pinned {
    context: Arc<Context>,
    address: NonNull<u8>,
    bytes: usize,
    /// Bytes of all pieces of the pool, to which it counts as long as it lives.
    total: Arc<AtomicUsize>,
}

// SAFETY: a piece owns its memory; access to it goes by `&mut`.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(context: &Arc<Context>, bytes: usize, total: &Arc<AtomicUsize>) -> Result<Pinned> {
        let here = context.enter()?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the place outlives the call.
        unsafe { here.driver().cuMemHostAlloc(&raw mut address, bytes, CU_MEMHOSTALLOC_PORTABLE)? };
        let address: Option<NonNull<u8>> = NonNull::new(address.cast());
        let address = address.ok_or_else(|| error!(Runtime, "the driver gave no memory and no error"))?;
        // SAFETY: the driver gave so many bytes.
        unsafe { address.as_ptr().write_bytes(0, bytes) };
        total.fetch_add(bytes, Relaxed);
        Ok(Pinned { context: context.clone(), address, bytes, total: total.clone() })
    }

    /// Where it begins.
    pub fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    /// Its bytes, while no copy uses them.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the piece owns so many bytes, which were written when it was made, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
        // SAFETY: nobody uses the memory after this.
        self.context.give_back(|driver| unsafe { driver.cuMemFreeHost(self.address.as_ptr().cast()) });
    }
}

#[derive(Default)]
struct Pieces {
    free: Vec<Pinned>,
    /// In the order of their copies, for each stream.
    busy: Vec<(Arc<Event>, Pinned)>,
}

impl Pieces {
    /// Takes back what copies are known to be done with.
    fn collect(&mut self) {
        let done = self.busy.extract_if(.., |(event, _)| matches!(event.ready(), Ok(true)));
        self.free.extend(done.map(|(_, pinned)| pinned));
    }
}

/// Pieces of a GPU.
pub struct Staging {
    context: Arc<Context>,
    pieces: Mutex<Pieces>,
    total: Arc<AtomicUsize>,
}

impl Staging {
    /// A pool without pieces.
    pub fn new(context: &Arc<Context>) -> Staging {
        Staging { context: context.clone(), pieces: Mutex::default(), total: Arc::default() }
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of at least so many bytes, of which there can be [`LARGEST`].
    pub fn take(&self, bytes: usize) -> Result<Pinned> {
        let size = bytes.next_power_of_two().max(SMALLEST);
        loop {
            let mut pieces = self.pieces();
            pieces.collect();
            if let Some(at) = pieces.free.iter().position(|p| p.bytes == size) {
                return Ok(pieces.free.swap_remove(at));
            }
            let wait = pieces.busy.iter().find(|(_, p)| p.bytes == size).map(|(event, _)| event.clone());
            match wait.filter(|_| self.total.load(Relaxed) + size > MOST) {
                Some(event) => {
                    drop(pieces);
                    event.wait()?;
                }
                None => return Pinned::new(&self.context, size, &self.total),
            }
        }
    }

    /// Takes back a piece that no copy uses.
    pub fn give(&self, pinned: Pinned) {
        self.pieces().free.push(pinned);
    }

    /// Takes back a piece that a copy uses until an event.
    pub fn give_after(&self, pinned: Pinned, event: &Arc<Event>) {
        self.pieces().busy.push((event.clone(), pinned));
    }

    /// Gives to the system what no copy uses.
    pub fn shrink(&self) {
        let mut pieces = self.pieces();
        pieces.collect();
        pieces.free.clear();
    }
}
