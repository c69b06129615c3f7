//! What a device holds: bytes in a form that is no array's, there or still to come.

use crate::faults::{self, Point};
use crate::{DEVICES, memory};
use ferrax::engine::Stats;
use ferrax_base::memory::DeviceMemory;
use ferrax_base::{Buffer, Error, Result};
use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes are kept with these bits turned: host code that reads them sees no elements.
const MASK: u8 = 0x5a;

static IN_USE: [AtomicUsize; DEVICES] = [const { AtomicUsize::new(0) }; DEVICES];
static PEAK: [AtomicUsize; DEVICES] = [const { AtomicUsize::new(0) }; DEVICES];

/// Bytes in a device's memory.
pub(crate) fn stats(device: usize) -> Stats {
    Stats { in_use: IN_USE[device].load(SeqCst), peak: PEAK[device].load(SeqCst), kept: 0, limit: None }
}

/// Bytes in the memory of all devices.
pub fn in_use() -> usize {
    (0..DEVICES).map(|d| memory::stats(d).in_use).sum()
}

enum State {
    ToCome,
    There(Vec<u8>),
    Failed(Error),
}

/// A place for the elements of an array.
pub struct Place {
    bytes: usize,
    device: usize,
    state: Mutex<State>,
    filled: Condvar,
}

impl Place {
    /// With these elements.
    pub(crate) fn there(elements: &Buffer, device: usize) -> Arc<Place> {
        let place = Place::to_come(elements.len(), device);
        place.fill(Ok(elements));
        place
    }

    /// For elements that are to be computed.
    pub(crate) fn to_come(bytes: usize, device: usize) -> Arc<Place> {
        let now = IN_USE[device].fetch_add(bytes, SeqCst) + bytes;
        PEAK[device].fetch_max(now, SeqCst);
        Arc::new(Place { bytes, device, state: Mutex::new(State::ToCome), filled: Condvar::new() })
    }

    pub(crate) fn device(&self) -> usize {
        self.device
    }

    /// Puts the elements there, or why there are none.
    pub(crate) fn fill(&self, result: std::result::Result<&Buffer, &Error>) {
        *self.lock() = match result {
            Ok(elements) => State::There(elements.bytes().iter().map(|b| b ^ MASK).collect()),
            Err(error) => State::Failed(error.again()),
        };
        self.filled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settled(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        while matches!(*state, State::ToCome) {
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// The elements, once they are there.
    pub(crate) fn elements(&self) -> Result<Buffer> {
        match &*self.settled() {
            State::There(bytes) => {
                let mut out = Buffer::from_bytes(bytes)?;
                out.bytes_mut().iter_mut().for_each(|b| *b ^= MASK);
                Ok(out)
            }
            State::Failed(error) => Err(error.again()),
            State::ToCome => unreachable!("the place was waited for"),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        IN_USE[self.device].fetch_sub(self.bytes, SeqCst);
    }
}

/// An array's share in a place.
pub struct Kept(Arc<Place>);

impl Kept {
    pub(crate) fn new(place: Arc<Place>) -> Kept {
        Kept(place)
    }

    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.0
    }
}

impl DeviceMemory for Kept {
    fn bytes(&self) -> usize {
        self.0.bytes
    }

    fn ready(&self) -> bool {
        !matches!(*self.0.lock(), State::ToCome)
    }

    fn wait(&self) -> Result<()> {
        match &*self.0.settled() {
            State::Failed(error) => Err(error.again()),
            _ => Ok(()),
        }
    }

    fn to_host(&self) -> Result<Buffer> {
        self.wait()?;
        faults::meet(Point::Download)?;
        self.0.elements()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
