//! Locks that a forked child never finds held by a thread that it does not have.
//!
//! A fork copies the memory of a process and one of its threads: a lock that another thread held at that moment stays
//! held in the child for ever. So what threads share for longer than a call lies behind a [`Lock`]. The thread that
//! forks takes every such lock before, and lets go of all after, in the parent and in the child.
//!
//! Invariants: a thread that holds one [`Lock`] takes no other, and runs no code of the host or of users, so that the
//! one who forks gets them all, soon. Whatever else several threads wait for is made without a lock ([`crate::list`]).
//! Read next: `ferrax::queue`, which has to end or give up what runs.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mutex that the child of a fork finds open.
pub struct Lock<T: 'static> {
    mutex: Mutex<T>,
    /// Whether it is on the list of those to take before a fork.
    listed: AtomicBool,
}

impl<T: Send> Lock<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        Lock { mutex: Mutex::new(value), listed: AtomicBool::new(false) }
    }

    /// Waits for the lock and takes it. No code of others runs under one, so a poisoned one holds good data.
    #[inline]
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        if !self.listed.load(Relaxed) {
            self.list();
        }
        self.mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn list(&'static self) {
        let mut all = registry();
        if !self.listed.swap(true, Relaxed) {
            all.locks.push(self);
            all.install();
        }
    }
}

/// Any lock.
trait Holdable: Sync {
    fn hold(&'static self) -> Box<dyn Held>;
}

impl<T: Send> Holdable for Lock<T> {
    fn hold(&'static self) -> Box<dyn Held> {
        Box::new(self.lock())
    }
}

/// What keeps a lock taken.
trait Held {}

impl<T> Held for MutexGuard<'static, T> {}

struct Registry {
    locks: Vec<&'static dyn Holdable>,
    before: Vec<fn()>,
    in_child: Vec<fn()>,
    installed: bool,
}

static REGISTRY: Mutex<Registry> =
    Mutex::new(Registry { locks: Vec::new(), before: Vec::new(), in_child: Vec::new(), installed: false });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `before` ahead of every fork, while no lock is taken yet, and `in_child` in the child when all are open again.
pub fn at_fork(before: fn(), in_child: fn()) {
    let mut all = registry();
    all.before.push(before);
    all.in_child.push(in_child);
    all.install();
}

/// All locks, and the list of them, which nobody can add to meanwhile.
struct All {
    _locks: Vec<Box<dyn Held>>,
    registry: MutexGuard<'static, Registry>,
}

thread_local! {
    /// What the thread that forks holds.
    static ALL: RefCell<Option<All>> = const { RefCell::new(None) };
}

impl Registry {
    fn install(&mut self) {
        if self.installed {
            return;
        }
        self.installed = true;
        #[cfg(unix)]
        {
            type Handler = Option<unsafe extern "C" fn()>;
            unsafe extern "C" {
                fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
            }
            // SAFETY: the functions live as long as the process. It fails for want of memory only, and then forks are as
            // safe as without it.
            unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
        }
    }
}

#[cfg(unix)]
unsafe extern "C" fn prepare() {
    let before = registry().before.clone();
    before.iter().for_each(|f| f());
    let registry = registry();
    let locks = registry.locks.iter().map(|l| l.hold()).collect();
    let _ = ALL.try_with(|all| all.replace(Some(All { _locks: locks, registry })));
}

#[cfg(unix)]
unsafe extern "C" fn parent() {
    let _ = ALL.try_with(RefCell::take);
}

#[cfg(unix)]
unsafe extern "C" fn child() {
    let held = ALL.try_with(RefCell::take).ok().flatten();
    let hooks = held.as_ref().map(|all| all.registry.in_child.clone()).unwrap_or_default();
    drop(held);
    hooks.iter().for_each(|f| f());
}
