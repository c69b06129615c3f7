//! Where arrays live: reference-counted cells in pages, recycled per thread, that can be listed.
//!
//! Making and dropping an array is on the path of every operation, so a cell costs a pop from a list of the thread
//! and a push back. Pages are never given back to the system: a count of zero marks a free cell, and the listing
//! ([`live`]) may look at any cell at any time. Memory is bounded by the largest number of arrays alive at once.
//!
//! Invariant: a cell whose count is not zero holds a value; the count goes from zero to one only after the value is written, and
//! to zero only before the value is dropped. `tests/cells.rs` runs this file over all interleavings of a few threads, memory
//! orders included.

use crate::array::Cell;
use crate::sync::{AtomicUsize, LOCAL, Lock, MutexGuard, Ordering, PAGE, UnsafeCell, fence, thread_local};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

struct Slot {
    refs: AtomicUsize,
    value: UnsafeCell<MaybeUninit<Cell>>,
}

/// A slot that belongs to whoever holds this.
struct Free(NonNull<Slot>);
// SAFETY: a free slot is memory owned by one list.
unsafe impl Send for Free {}

struct Pool {
    free: Vec<Free>,
    pages: Vec<&'static [Slot; PAGE]>,
}

// SAFETY: the count is atomic; a value is written before the count leaves zero, read only while it is not zero, and is
// itself Sync.
unsafe impl Sync for Slot {}

static POOL: Lock<Pool> = Lock::new(Pool { free: Vec::new(), pages: Vec::new() });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock()
}

/// Free slots of a thread; the pool gets them when the thread ends.
struct Local(RefCell<Vec<Free>>);

impl Drop for Local {
    fn drop(&mut self) {
        pool().free.append(self.0.get_mut());
    }
}

thread_local! {
    static LOCAL_FREE: Local = const { Local(RefCell::new(Vec::new())) };
}

/// A shared cell.
pub(crate) struct Shared(NonNull<Slot>);

// SAFETY: a shared cell is Send and Sync as `Arc<Cell>` is: `Cell` is both.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// A new cell, whose value is made where it will live: moving one costs more than making it.
    #[inline]
    pub fn new(value: impl FnOnce() -> Cell) -> Shared {
        let slot = free_slot();
        // SAFETY: the slot is free, so nobody reads or writes it; the count is set after the value.
        unsafe {
            slot.as_ref().value.with_mut(|v| (*v).write(value()));
            slot.as_ref().refs.store(1, Ordering::Release);
        }
        Shared(slot)
    }

    fn slot(&self) -> &Slot {
        // SAFETY: pages live for ever.
        unsafe { self.0.as_ref() }
    }

    /// Whether two handles are of one cell.
    pub fn ptr_eq(&self, other: &Shared) -> bool {
        self.0 == other.0
    }

    /// An address that no other cell has while this one lives.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Number of handles.
    pub fn count(&self) -> usize {
        self.slot().refs.load(Ordering::Acquire)
    }
}

impl std::ops::Deref for Shared {
    type Target = Cell;
    #[inline]
    fn deref(&self) -> &Cell {
        // SAFETY: this handle keeps the count above zero.
        unsafe { self.slot().value.with(|v| (*v).assume_init_ref()) }
    }
}

impl Clone for Shared {
    #[inline]
    fn clone(&self) -> Shared {
        self.slot().refs.fetch_add(1, Ordering::Relaxed);
        Shared(self.0)
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        if self.slot().refs.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        // SAFETY: this was the last handle, and none can be made of a cell whose count is zero.
        unsafe { self.slot().value.with_mut(|v| (*v).assume_init_drop()) };
        let mut slot = Some(Free(self.0));
        let _ = LOCAL_FREE.try_with(|l| {
            let mut free = l.0.borrow_mut();
            if free.len() < LOCAL
                && let Some(s) = slot.take()
            {
                free.push(s);
            }
        });
        if let Some(slot) = slot {
            pool().free.push(slot);
        }
    }
}

fn free_slot() -> NonNull<Slot> {
    LOCAL_FREE.try_with(|l| l.0.borrow_mut().pop()).ok().flatten().unwrap_or_else(refill).0
}

/// A free slot, after filling the thread's list from the pool or a new page.
#[cold]
fn refill() -> Free {
    let mut pool = pool();
    if pool.free.is_empty() {
        let empty = || Slot { refs: AtomicUsize::new(0), value: UnsafeCell::new(MaybeUninit::uninit()) };
        let page: &'static [Slot; PAGE] = Box::leak(Box::new(std::array::from_fn(|_| empty())));
        pool.pages.push(page);
        pool.free.extend(page.iter().map(|s| Free(NonNull::from(s))));
    }
    let keep = pool.free.len().saturating_sub(PAGE);
    let mut taken = pool.free.split_off(keep);
    drop(pool);
    let one = taken.pop();
    let _ = LOCAL_FREE.try_with(|l| l.0.borrow_mut().append(&mut taken));
    if !taken.is_empty() {
        // the thread is ending, and has no list any more
        self::pool().free.append(&mut taken);
    }
    one.unwrap_or_else(refill)
}

/// Every cell that is alive now.
pub(crate) fn live() -> Vec<Shared> {
    let pages = pool().pages.clone();
    let mut found = Vec::new();
    for slot in pages.into_iter().flatten() {
        let up = |n: usize| (n > 0).then_some(n + 1);
        if slot.refs.fetch_update(Ordering::Acquire, Ordering::Relaxed, up).is_ok() {
            found.push(Shared(NonNull::from(slot)));
        }
    }
    found
}
