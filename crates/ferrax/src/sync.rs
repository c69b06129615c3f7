//! What the queue is made of: arrays, the primitives of the standard library, and a thread. `tests/interleavings.rs` compiles
//! `queue.rs` with others, which run all interleavings of a few threads. Read next: `queue.rs`.

pub(crate) use ferrax_base::fork::Lock;
pub(crate) use ferrax_ir::Array;
pub(crate) use ferrax_ir::array::Reservation;
pub(crate) use std::sync::{Condvar, MutexGuard};

/// Has a thread do some work; gives whether there is one.
pub(crate) fn employ(work: fn()) -> bool {
    std::thread::Builder::new().name("ferrax queue".into()).spawn(work).is_ok()
}
