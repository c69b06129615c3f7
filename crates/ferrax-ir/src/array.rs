//! Concrete arrays: an aval, memory and a placement, shared by reference count.
//!
//! Deletion and donation can happen while other threads read, so readers pin: the memory is freed by whoever
//! lets go last. A donation succeeds only when nobody else pins it. Pins give the elements on the host: those in a
//! device's memory ([`Memory::Device`]) are copied by the first pin that wants them.
//!
//! An array may be pending: its program has not run yet ([`Array::pending`]). Whoever pins it waits; programs that
//! are started before it is there hold a [`Reservation`]. A program that fails leaves its error in its results.
//! `tests/cells.rs` runs this file over all interleavings of a few threads.
//! Read next: `cells.rs` for where arrays live, `ferrax::queue` for who settles pending ones.

use crate::cells::{self, Shared};
use crate::device::DeviceId;
use crate::jaxpr::DebugInfo;
use crate::sync::{AtomicU32, Ordering, UnsafeCell};
use ferrax_base::{Aval, Buffer, Error, Memory, Result, Scalar, Source, error};
use std::sync::{Arc, OnceLock};

/// Deleted or donated.
const DELETED: u32 = 1 << 31;
/// Not computed yet; whoever computes it holds a pin.
const PENDING: u32 = 1 << 30;
/// The program that was to compute it failed.
const FAILED: u32 = 1 << 29;
/// The elements are in a device's memory.
const REMOTE: u32 = 1 << 28;
/// Deleted, and what it held is whoever's who set this: those who find it deleted pin it for a moment, and must not think
/// that they are the last.
const FREED: u32 = 1 << 27;

/// What an array holds.
enum Content {
    /// Nothing yet, or nothing any more.
    Nothing,
    Memory(Memory),
    Failure(Arc<Error>),
}

/// The flag of memory's place.
#[inline]
fn flag(memory: &Memory) -> u32 {
    if matches!(memory, Memory::Device(_)) { REMOTE } else { 0 }
}

/// Who took the memory of a donated array: for the error of those who still use it.
#[derive(Clone, Debug)]
pub struct Taker {
    /// The function that was called.
    pub function: Arc<DebugInfo>,
    /// Which of its flat arguments the array was.
    pub argument: u32,
    /// Where the call is.
    pub call: Source,
}

impl std::fmt::Display for Taker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.function.describe())?;
        let names = self.function.arg_names.as_ref().map(|names| names());
        if let Some(name) = names.as_ref().and_then(|n| n.get(self.argument as usize)) {
            write!(f, " as its argument {name}")?;
        }
        self.call.location().map_or(Ok(()), |at| write!(f, ", in the call at {at}"))
    }
}

pub(crate) struct Cell {
    aval: Aval,
    device: DeviceId,
    committed: bool,
    /// Number of pins, below the flags.
    state: AtomicU32,
    content: UnsafeCell<Content>,
    /// Who took the buffer, for the error message.
    taken_by: OnceLock<Taker>,
}

// SAFETY: `content` is read only while pinned and not pending, written by the one who settles a pending array, and taken
// only by the thread that sets FREED, with no pins but its own.
unsafe impl Sync for Cell {}
// SAFETY: all fields can move between threads.
unsafe impl Send for Cell {}

/// An immutable n-dimensional array; cloning shares it.
#[derive(Clone)]
pub struct Array(Shared);

/// Keeps an array's elements alive and readable on the host.
pub struct Pin<'a>(&'a Cell);

impl std::ops::Deref for Pin<'_> {
    type Target = Buffer;
    #[inline]
    fn deref(&self) -> &Buffer {
        // SAFETY: pinned while there, so the memory is there, on the host too, and nobody takes it.
        unsafe { self.0.host().unwrap_unchecked() }
    }
}

/// Keeps an array's memory alive, wherever it is.
pub struct MemoryPin<'a>(&'a Cell);

impl std::ops::Deref for MemoryPin<'_> {
    type Target = Memory;
    #[inline]
    fn deref(&self) -> &Memory {
        // SAFETY: pinned while there, so the memory is there and nobody takes it.
        unsafe { self.0.memory().unwrap_unchecked() }
    }
}

impl Drop for MemoryPin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unpin();
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unpin();
    }
}

/// A pin that owns its array: for views handed to the host (NumPy, DLPack).
pub struct OwnedPin(Array);

impl OwnedPin {
    /// The pinned bytes.
    pub fn buffer(&self) -> &Buffer {
        // SAFETY: as in `Pin::deref`.
        unsafe { self.0.0.host().unwrap_unchecked() }
    }

    /// The array behind the pin.
    pub fn array(&self) -> &Array {
        &self.0
    }
}

impl AsRef<[u8]> for OwnedPin {
    fn as_ref(&self) -> &[u8] {
        self.buffer().bytes()
    }
}

impl Drop for OwnedPin {
    fn drop(&mut self) {
        self.0.0.unpin();
    }
}

/// A promise to read an array, or to take its memory, that does not wait until it is there.
pub struct Reservation(Array);

impl Reservation {
    /// The array that is promised.
    pub fn array(&self) -> &Array {
        &self.0
    }

    /// The memory, which must be there by now: the one who reserved runs after the one who computes.
    pub fn memory(&self) -> Result<&Memory> {
        let cell = &*self.0.0;
        if cell.state.load(Ordering::Acquire) & PENDING != 0 {
            return Err(error!(Internal, "a reserved array was read before it was computed"));
        }
        // SAFETY: pinned and not pending.
        match unsafe { cell.content() } {
            Content::Memory(memory) => Ok(memory),
            Content::Failure(error) => Err(error.again()),
            Content::Nothing => Err(self.0.deleted()),
        }
    }

    /// The memory itself, when the array was donated and nobody else reads it any more.
    pub fn take(&self) -> Option<Memory> {
        let cell = &*self.0.0;
        let last = |s: u32| (s & !REMOTE == DELETED | 1).then_some(s | FREED);
        cell.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, last).ok()?;
        // SAFETY: deleted, so that nobody can pin it, the only pin was this one, and nobody else frees it.
        unsafe { cell.take() }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.0.0.unpin();
    }
}

/// Waits until a pending array is there, or has failed.
pub type Wait = fn(&Array);

static WAIT: OnceLock<Wait> = OnceLock::new();

/// Installs what waits for pending arrays; the first call counts.
pub fn set_wait(f: Wait) {
    let _ = WAIT.set(f);
}

impl Cell {
    /// Pins unless the state has one of these flags.
    #[inline]
    fn pin_without(&self, flags: u32) -> bool {
        if self.state.fetch_add(1, Ordering::Acquire) & flags == 0 {
            return true;
        }
        self.unpin();
        false
    }

    /// Pins elements that the host can read now.
    #[inline]
    fn pin(&self) -> bool {
        self.pin_without(DELETED | PENDING | FAILED | REMOTE)
    }

    #[inline]
    fn unpin(&self) {
        if self.state.fetch_sub(1, Ordering::AcqRel) & !(FAILED | REMOTE) == DELETED | 1 {
            self.free();
        }
    }

    /// Drops what a deleted array held, once, when nobody pins it any more.
    #[cold]
    fn free(&self) {
        let idle = |s: u32| (s & !(FAILED | REMOTE) == DELETED).then_some(s | FREED);
        if self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, idle).is_ok() {
            // SAFETY: no pins, nobody can pin it again, and nobody else frees it.
            unsafe { self.put(Content::Nothing) };
        }
    }

    /// # Safety
    /// The cell must be pinned and not pending, or otherwise out of others' reach.
    #[inline]
    unsafe fn content(&self) -> &Content {
        // SAFETY: the caller's contract.
        self.content.with(|content| unsafe { &*content })
    }

    /// Exchanges the content.
    ///
    /// # Safety
    /// Nobody else may touch it meanwhile.
    #[inline]
    unsafe fn put(&self, new: Content) -> Content {
        // SAFETY: the caller's contract.
        self.content.with_mut(|content| unsafe { std::mem::replace(&mut *content, new) })
    }

    /// # Safety
    /// As for [`Cell::content`].
    #[inline]
    unsafe fn memory(&self) -> Option<&Memory> {
        // SAFETY: the caller's contract.
        match unsafe { self.content() } {
            Content::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    /// The elements on the host, as far as they are there.
    ///
    /// # Safety
    /// As for [`Cell::content`].
    #[inline]
    unsafe fn host(&self) -> Option<&Buffer> {
        // SAFETY: the caller's contract.
        match unsafe { self.memory() }? {
            Memory::Host(buffer) => Some(buffer),
            Memory::Device(remote) => remote.copy(),
        }
    }

    /// The memory, which is nobody else's any more.
    ///
    /// # Safety
    /// Nobody else may touch the content, now or later.
    unsafe fn take(&self) -> Option<Memory> {
        // SAFETY: the caller's contract.
        match unsafe { self.put(Content::Nothing) } {
            Content::Memory(memory) => Some(memory),
            _ => None,
        }
    }
}

impl Array {
    /// An uncommitted array on the first device. Panics when the buffer does not hold just its elements.
    pub fn new(aval: Aval, buffer: Buffer) -> Array {
        Array::placed(aval, buffer, DeviceId(0), false)
    }

    /// An array on a device, committed to it or not. Panics when the memory does not hold just its elements.
    #[inline]
    pub fn placed(aval: Aval, memory: impl Into<Memory>, device: DeviceId, committed: bool) -> Array {
        let memory = memory.into();
        let bytes = memory.bytes();
        assert!(aval.bytes() == bytes, "memory of {bytes} bytes cannot hold {}", aval.long_text());
        let aval = Aval { spread: 0, ..aval };
        Array(Shared::new(|| Cell {
            aval,
            device,
            committed,
            state: AtomicU32::new(flag(&memory)),
            content: UnsafeCell::new(Content::Memory(memory)),
            taken_by: OnceLock::new(),
        }))
    }

    /// An array that is to be computed; whoever makes it must [`Array::settle`] it, once.
    pub fn pending(aval: Aval, device: DeviceId, committed: bool) -> Array {
        let aval = Aval { spread: 0, ..aval };
        Array(Shared::new(|| Cell {
            aval,
            device,
            committed,
            state: AtomicU32::new(PENDING | 1),
            content: UnsafeCell::new(Content::Nothing),
            taken_by: OnceLock::new(),
        }))
    }

    /// Puts the elements, or the reason why there are none, into a pending array.
    ///
    /// # Safety
    /// The array must have been made by [`Array::pending`], and be settled by nobody else.
    pub unsafe fn settle(&self, result: std::result::Result<Memory, Arc<Error>>) {
        let (flags, content) = match result {
            Ok(memory) => (flag(&memory), Content::Memory(memory)),
            Err(error) => (FAILED, Content::Failure(error)),
        };
        // SAFETY: while the array is pending nobody else looks at the content.
        unsafe { self.0.put(content) };
        self.0.state.fetch_or(flags, Ordering::Relaxed);
        // The pin of whoever computes goes with the flag.
        if self.0.state.fetch_sub(PENDING | 1, Ordering::AcqRel) & !(FAILED | REMOTE) == DELETED | PENDING | 1 {
            self.0.free();
        }
    }

    /// Whether the program that is to compute the elements has not ended; of programs that a device queues, see
    /// [`Array::is_ready`].
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.0.state.load(Ordering::Acquire) & PENDING != 0
    }

    /// Whether the elements are there, or never will be; does not wait.
    pub fn is_ready(&self) -> bool {
        match self.0.state.load(Ordering::Acquire) {
            s if s & PENDING != 0 => false,
            s if s & (REMOTE | DELETED | FAILED) == REMOTE && self.0.pin_without(DELETED) => {
                // SAFETY: pinned and not pending.
                let ready = match unsafe { self.0.memory() } {
                    Some(Memory::Device(remote)) => remote.memory().ready(),
                    _ => true,
                };
                self.0.unpin();
                ready
            }
            _ => true,
        }
    }

    /// Waits until the elements are there, without copying them to the host; gives the error of their program.
    pub fn block_until_ready(&self) -> Result<()> {
        self.pin_memory()?.block_until_ready()
    }

    /// A rank-0 array holding one number.
    pub fn from_scalar(s: Scalar, weak: bool) -> Result<Array> {
        let buffer = Buffer::from_bytes(&s.to_bytes()[..s.dtype.size()])?;
        Ok(Array::new(Aval::scalar(s.dtype).with_weak(weak), buffer))
    }

    /// Shape, dtype and weak type.
    #[inline]
    pub fn aval(&self) -> &Aval {
        &self.0.aval
    }

    /// Where the array lives.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.0.device
    }

    /// Whether computations must follow it to its device.
    #[inline]
    pub fn committed(&self) -> bool {
        self.0.committed
    }

    /// Read access to the elements on the host, once they are there; errors when the array was deleted or donated, or
    /// its program failed.
    #[inline]
    pub fn pin(&self) -> Result<Pin<'_>> {
        if self.0.pin() { Ok(Pin(&self.0)) } else { self.pin_later(true).map(|()| Pin(&self.0)) }
    }

    /// As [`Array::pin`], of the memory that holds the elements, wherever it is: a device may still compute them.
    pub fn pin_memory(&self) -> Result<MemoryPin<'_>> {
        if !self.0.pin_without(DELETED | PENDING | FAILED) {
            self.pin_later(false)?;
        }
        Ok(MemoryPin(&self.0))
    }

    /// As [`Array::pin`], keeping the array itself alive too.
    pub fn pin_owned(&self) -> Result<OwnedPin> {
        if !self.0.pin() {
            self.pin_later(true)?;
        }
        Ok(OwnedPin(self.clone()))
    }

    /// Pins once the array is there, and on the host if it is to be.
    #[cold]
    fn pin_later(&self, on_host: bool) -> Result<()> {
        self.wait();
        if self.0.pin_without(DELETED | PENDING | FAILED) {
            // SAFETY: pinned and not pending.
            return match unsafe { self.0.memory() } {
                Some(Memory::Device(remote)) if on_host => remote.host().map(drop).inspect_err(|_| self.0.unpin()),
                _ => Ok(()),
            };
        }
        let state = self.0.state.fetch_add(1, Ordering::Acquire);
        let failure = if state & (PENDING | FAILED | FREED) == FAILED {
            // SAFETY: pinned and not pending.
            match unsafe { self.0.content() } {
                Content::Failure(error) => Some(error.again()),
                _ => None,
            }
        } else {
            None
        };
        self.0.unpin();
        Err(failure.unwrap_or_else(|| self.deleted()))
    }

    /// Waits until the array is there, or has failed.
    pub fn wait(&self) {
        while self.is_pending() {
            match WAIT.get() {
                Some(wait) => wait(self),
                None => std::thread::yield_now(),
            }
        }
    }

    /// A promise to read it once it is there; errors when the array was deleted or donated.
    pub fn reserve(&self) -> Result<Reservation> {
        if self.0.state.fetch_add(1, Ordering::Acquire) & DELETED == 0 {
            return Ok(Reservation(self.clone()));
        }
        self.0.unpin();
        Err(self.deleted())
    }

    /// Donates an array that is not there yet to `by`; `None` when it is there.
    pub fn reserve_donated(&self, by: &Taker) -> Option<Reservation> {
        let donated = |s: u32| (s & (PENDING | DELETED) == PENDING).then_some((s + 1) | DELETED);
        self.0.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, donated).ok()?;
        let _ = self.0.taken_by.set(by.clone());
        Some(Reservation(self.clone()))
    }

    #[cold]
    fn deleted(&self) -> ferrax_base::Error {
        match self.0.taken_by.get() {
            Some(who) => error!(
                Deleted,
                "Array has been deleted with shape={}: its buffer was donated to {who}. Use the result of that call \
                 instead, or do not donate this argument.",
                self.0.aval.long_text()
            ),
            None => error!(Deleted, "Array has been deleted with shape={}.", self.0.aval.long_text()),
        }
    }

    /// Whether the buffer is gone.
    pub fn is_deleted(&self) -> bool {
        self.0.state.load(Ordering::Acquire) & DELETED != 0
    }

    /// Frees the buffer, once the last reader lets go.
    pub fn delete(&self) {
        self.0.state.fetch_add(1, Ordering::Acquire);
        self.0.state.fetch_or(DELETED, Ordering::AcqRel);
        self.0.unpin();
    }

    /// Takes the memory for reuse and marks the array as donated to `by`; `None` when it is shared, not there or gone.
    pub fn donate(&self, by: &Taker) -> Option<Memory> {
        let idle = |s: u32| (s & !REMOTE == 0).then_some(s | DELETED | FREED);
        self.0.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, idle).ok()?;
        let _ = self.0.taken_by.set(by.clone());
        // SAFETY: no pins and now FREED: this thread is the only one that may touch the content.
        unsafe { self.0.take() }
    }

    /// Why [`Array::donate`] would give nothing now; `None` when it would give the buffer.
    pub fn why_not_donated(&self) -> Option<&'static str> {
        self.wait();
        let state = self.0.state.load(Ordering::Acquire);
        if state & DELETED != 0 {
            return Some("it was deleted or donated before");
        }
        if state & !REMOTE != 0 {
            return Some("somebody else sees its memory, such as a NumPy view");
        }
        let pin = self.pin_memory().ok()?;
        let foreign = matches!(&*pin, Memory::Host(buffer) if !buffer.is_owned());
        foreign.then_some("its memory belongs to somebody else, such as a NumPy array")
    }

    /// Whether two handles are the same array.
    pub fn ptr_eq(&self, other: &Array) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Address that identifies the array while it lives.
    pub fn id(&self) -> usize {
        self.0.address()
    }

    /// Number of handles to the array.
    pub fn handles(&self) -> usize {
        self.0.count()
    }

    /// Every array that is alive and not deleted.
    pub fn live() -> Vec<Array> {
        cells::live().into_iter().map(Array).filter(|a| !a.is_deleted()).collect()
    }

    /// The one element of a size-1 array.
    pub fn item(&self) -> Result<Scalar> {
        if self.aval().size() != 1 {
            return Err(error!(
                Type,
                "Only scalar arrays can be converted to Python scalars; got shape {}",
                ferrax_base::shape::Tuple(&self.aval().shape)
            ));
        }
        Ok(Scalar::from_bytes(self.aval().dtype, self.pin()?.bytes()))
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({})", self.aval())
    }
}
