//! What cells and arrays are made of: the primitives of the standard library. `tests/cells.rs` compiles `cells.rs` and
//! `array.rs` with others, which run all interleavings of a few threads. Read next: `cells.rs`.

pub(crate) use ferrax_base::fork::Lock;
pub(crate) use std::sync::MutexGuard;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};
pub(crate) use std::thread_local;

/// Cells of a page.
pub(crate) const PAGE: usize = 64;
/// Free cells that a thread keeps to itself.
pub(crate) const LOCAL: usize = 512;

/// Memory that threads share without a lock.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Hands the address to a reader: nobody writes meanwhile.
    #[inline(always)]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Hands the address to a writer: nobody else reads or writes meanwhile.
    #[inline(always)]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
