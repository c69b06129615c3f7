//! Loom's primitives under the names that sources take from `crate::sync`. Statics and thread-locals begin anew in every
//! execution, pages are small, and one model runs at a time.

#![allow(dead_code, unused_imports)]

pub use loom::cell::UnsafeCell;
pub use loom::sync::MutexGuard;
pub use loom::sync::atomic::{AtomicU32, AtomicUsize, Ordering, fence};

use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicUsize as Count;
use std::sync::{Mutex, PoisonError};

pub const PAGE: usize = 2;
pub const LOCAL: usize = 1;

/// `std::thread_local` of one static whose value is a constant.
macro_rules! local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = const $value:block;) => {
        loom::thread_local! { $(#[$attribute])* static $name: $type = $value; }
    };
}
pub(crate) use local as thread_local;

/// The number of this execution.
static EXECUTION: Count = Count::new(0);

/// Runs all interleavings, with so many changes of threads that nobody asked for.
pub fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        EXECUTION.fetch_add(1, Ordering::Relaxed);
        SERVANTS.store(0, Ordering::Relaxed);
        model();
    });
}

/// What a static is in this execution; it stays for ever, as a static does.
struct Anew<T: 'static>(Mutex<(usize, Option<&'static T>)>);

impl<T> Anew<T> {
    const fn new() -> Self {
        Anew(Mutex::new((0, None)))
    }

    fn get(&self, make: impl FnOnce() -> T) -> &'static T {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = EXECUTION.load(Ordering::Relaxed);
        match *held {
            (then, Some(made)) if then == now => made,
            _ => {
                let made = Box::leak(Box::new(make()));
                *held = (now, Some(made));
                made
            }
        }
    }
}

/// In place of `ferrax_base::fork::Lock`.
pub struct Lock<T: 'static> {
    first: ManuallyDrop<T>,
    now: Anew<loom::sync::Mutex<T>>,
}

// SAFETY: the first value is only copied.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub const fn new(first: T) -> Self {
        Lock { first: ManuallyDrop::new(first), now: Anew::new() }
    }

    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        // SAFETY: what a static begins with owns nothing, so that copies of it may be dropped.
        let first = || unsafe { std::ptr::read(&raw const *self.first) };
        self.now.get(|| loom::sync::Mutex::new(first())).lock().unwrap()
    }
}

/// In place of `std::sync::Condvar`.
pub struct Condvar(Anew<&'static loom::sync::Condvar>);

/// All of them.
static TOLD: Anew<Mutex<Vec<&'static loom::sync::Condvar>>> = Anew::new();

/// The execution that is over.
static OVER: Count = Count::new(0);
/// Threads that wait for what no longer comes when an execution is over.
static SERVANTS: Count = Count::new(0);

impl Condvar {
    pub const fn new() -> Self {
        Condvar(Anew::new())
    }

    fn now(&self) -> &'static loom::sync::Condvar {
        self.0.get(|| {
            let made: &'static loom::sync::Condvar = Box::leak(Box::new(loom::sync::Condvar::new()));
            TOLD.get(Mutex::default).lock().unwrap().push(made);
            made
        })
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> std::sync::LockResult<MutexGuard<'a, T>> {
        let guard = go_on(guard);
        let guard = self.now().wait(guard).unwrap();
        Ok(go_on(guard))
    }

    pub fn notify_one(&self) {
        self.now().notify_one();
    }

    pub fn notify_all(&self) {
        self.now().notify_all();
    }
}

/// Gives a lock back, unless the execution is over: then the thread ends.
fn go_on<G>(guard: G) -> G {
    if OVER.load(Ordering::Relaxed) == EXECUTION.load(Ordering::Relaxed) {
        drop(guard);
        std::panic::resume_unwind(Box::new("over"));
    }
    guard
}

/// Has a thread do what never ends, as far as it comes before the end of [`dismiss`].
pub fn serve(work: fn()) {
    SERVANTS.fetch_add(1, Ordering::Relaxed);
    loom::thread::spawn(move || {
        let ended = std::panic::catch_unwind(work).unwrap_err();
        SERVANTS.fetch_sub(1, Ordering::Relaxed);
        if ended.downcast_ref::<&str>() != Some(&"over") {
            std::panic::resume_unwind(ended);
        }
    });
}

/// Ends the threads of [`serve`], where they wait.
pub fn dismiss() {
    OVER.store(EXECUTION.load(Ordering::Relaxed), Ordering::Relaxed);
    while SERVANTS.load(Ordering::Relaxed) > 0 {
        let told = TOLD.get(Mutex::default).lock().unwrap().clone();
        told.iter().for_each(|told| told.notify_all());
        loom::thread::yield_now();
    }
}
