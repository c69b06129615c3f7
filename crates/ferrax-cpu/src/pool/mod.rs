//! Threads: a lazy pool that shares out tasks of one call at a time.
//!
//! There is no thread before the first call that is worth one. Workers watch for work for a while after a call and
//! then sleep: a watching worker costs the caller a few hundred nanoseconds, waking a sleeping one tens of
//! microseconds, and calls are shared out accordingly; a row of calls close to each other counts as one for that. The caller works too, takes tasks like everybody else, and
//! waits only for workers that have started. A call that finds the pool busy, or a worker's own, runs alone. After a
//! fork the child has no workers and makes its own when it needs them.
//!
//! `FERRAX_NUM_THREADS` or the number of CPUs that the process may use bounds the threads. Results do not depend on
//! it: what a task computes does not depend on who computes it. Source: the design notes of the CPU engine.

mod bell;
mod gate;

use bell::Bell;
use ferrax_base::{Result, checks};
use gate::Gate;
use std::cell::Cell;
#[cfg(test)]
use std::sync::atomic::AtomicU64;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a worker watches for work before it sleeps.
const WATCH: Duration = Duration::from_micros(300);
/// Estimated time of a call, in nanoseconds, from which on it is shared out: with a watching worker, and without.
const WORTH_WATCHING: u64 = 20_000;
const WORTH_WAKING: u64 = 150_000;
/// Estimated time of calls, each within `WATCH` of the one before, from which on a worker is woken to watch for more:
/// as long as it will watch in vain when the row ends.
const WORTH_A_ROW: u64 = 300_000;

/// What the gate and the bell are made of; their tests have others.
mod sync {
    pub use std::sync::Mutex;
    pub use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub use std::thread::{Thread, park};

    /// Waits a moment for other threads, longer after many turns.
    pub fn wait(turns: &mut u32) {
        *turns += 1;
        if *turns < 20_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
    }

    /// Looks for a while whether `done`; gives whether it is.
    pub fn watch(done: impl Fn() -> bool) -> bool {
        let start = std::time::Instant::now();
        loop {
            for _ in 0..200 {
                if done() {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() > super::WATCH {
                return false;
            }
        }
    }
}

type Task<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// A call that is being shared out.
#[derive(Clone, Copy)]
struct Job {
    run: *const Task<'static>,
    tasks: usize,
    /// Workers from this number on stay away.
    threads: usize,
}
// SAFETY: the closure is `Sync`, and is called only while the gate says that its caller waits.
unsafe impl Send for Job {}

struct Pool {
    process: u32,
    /// Held by the caller whose job is open.
    owner: Mutex<()>,
    gate: Gate<Job>,
    bell: Bell,
    failed: AtomicBool,
}

/// An address that threads share: each reads and writes elements behind it that no other thread writes.
#[derive(Clone, Copy)]
pub(crate) struct Disjoint<T>(pub *mut T);
// SAFETY: see the type; whoever goes through the address says which elements are a thread's own.
unsafe impl<T> Send for Disjoint<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Disjoint<T> {}

impl<T> Disjoint<T> {
    /// The address of an element.
    #[inline(always)]
    pub fn at(self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// When this thread's last call worth a watching worker was, and the estimated time of the row that it ends.
    static ROW: Cell<(Option<Instant>, u64)> = const { Cell::new((None, 0)) };
    /// The last number that decided on sharing while the engine checks itself.
    static DRAWN: Cell<u32> = const { Cell::new(1) };
}

/// Threads that a call may use, the caller's included.
pub fn threads() -> usize {
    #[cfg(test)]
    if let Some(trial) = trial::now() {
        return trial.threads;
    }
    most_threads()
}

/// Threads that calls may use.
fn most_threads() -> usize {
    /// Zero before the first call. No lock: who is forked while another thread counts would wait for it for ever.
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let wanted = std::env::var("FERRAX_NUM_THREADS").ok().and_then(|v| v.trim().parse().ok());
            #[cfg(test)]
            let wanted = wanted.or(Some(trial::THREADS));
            let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            let n = wanted.filter(|&n| n > 0).unwrap_or_else(cpus);
            THREADS.store(n, Ordering::Relaxed);
            n
        }
        n => n,
    }
}

/// The pool of this process.
fn pool() -> Option<&'static Pool> {
    let at = POOL.load(Ordering::Acquire);
    // SAFETY: pools are never freed.
    unsafe { at.as_ref() }.filter(|p| p.process == std::process::id())
}

/// Makes the pool of this process, unless another thread just has. No lock, as above.
fn new_pool() -> &'static Pool {
    let old = POOL.load(Ordering::Acquire);
    if let Some(p) = pool() {
        return p;
    }
    let made = Box::into_raw(Box::new(Pool {
        process: std::process::id(),
        owner: Mutex::new(()),
        gate: Gate::new(),
        bell: Bell::new(),
        failed: AtomicBool::new(false),
    }));
    if POOL.compare_exchange(old, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
        // SAFETY: it was made above, and nobody else has seen it.
        drop(unsafe { Box::from_raw(made) });
        return pool().unwrap_or_else(new_pool);
    }
    // SAFETY: pools are never freed once others see them.
    let pool: &'static Pool = unsafe { &*made };
    for worker in 1..most_threads() {
        let made = std::thread::Builder::new().name("ferrax".into()).spawn(move || pool.work(worker));
        let Ok(handle) = made else { break };
        pool.bell.add(handle.thread().clone());
    }
    pool
}

/// Whether a call estimated at this many nanoseconds would be shared out. That depends on when it comes; while the engine
/// checks itself three of four are, whatever their size, so that tests meet what else only some runs of a program do.
pub fn worth(nanoseconds: u64) -> bool {
    #[cfg(test)]
    if trial::now().is_some() {
        return threads() > 1 && !INSIDE.get();
    }
    let checked = checks::on();
    if (nanoseconds < WORTH_WATCHING && !checked) || threads() == 1 || INSIDE.get() {
        return false;
    }
    if checked {
        DRAWN.set(DRAWN.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        return DRAWN.get() >> 30 != 0;
    }
    nanoseconds >= WORTH_WAKING || pool().is_some_and(|p| p.bell.is_watched()) || in_a_row(nanoseconds)
}

/// Whether calls like this one come so fast that a woken worker will not sleep before the next.
fn in_a_row(nanoseconds: u64) -> bool {
    let now = Instant::now();
    let (last, before) = ROW.get();
    let near = last.is_some_and(|last| now.duration_since(last) < WATCH);
    let total = if near { before + nanoseconds } else { nanoseconds };
    ROW.set((Some(now), total));
    total >= WORTH_A_ROW
}

/// Runs `task(worker, index)` for every index below `tasks`, on several threads where `worth` says so. Workers are
/// numbered below [`threads`]; no two run at once under one number.
pub fn share(nanoseconds: u64, tasks: usize, task: &Task<'_>) {
    if tasks < 2 || !worth(nanoseconds) {
        return (0..tasks).for_each(|i| task(0, i));
    }
    let pool = pool().unwrap_or_else(new_pool);
    let Ok(_owner) = pool.owner.try_lock() else {
        return (0..tasks).for_each(|i| task(0, i));
    };
    pool.run(tasks, task);
}

/// As [`share`], for tasks that may fail; gives one of the errors. The other tasks run all the same.
pub fn try_share(nanoseconds: u64, tasks: usize, task: &(dyn Fn(usize, usize) -> Result<()> + Sync)) -> Result<()> {
    let failed = Mutex::new(None);
    share(nanoseconds, tasks, &|worker, i| {
        if let Err(e) = task(worker, i) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Closes the gate and waits for the workers inside, also when the caller's own task panics.
struct Closing<'a>(&'a Pool);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.gate.close();
    }
}

impl Pool {
    fn run(&self, tasks: usize, task: &Task<'_>) {
        // SAFETY: only the lifetime changes; the gate is closed and empty before this function returns.
        let run: &Task<'static> = unsafe { std::mem::transmute::<&Task<'_>, &Task<'static>>(task) };
        self.failed.store(false, Ordering::Relaxed);
        self.gate.open(Job { run, tasks, threads: threads() });
        {
            let _closing = Closing(self);
            self.bell.ring();
            INSIDE.set(true);
            let _inside = Inside;
            self.take_tasks(tasks, 0, task);
        }
        assert!(!self.failed.load(Ordering::Relaxed), "a worker of the CPU engine panicked");
    }

    fn take_tasks(&self, tasks: usize, worker: usize, task: &Task<'_>) {
        while let Some(i) = self.gate.next(tasks) {
            #[cfg(test)]
            trial::delay(i);
            task(worker, i);
        }
    }

    fn work(&self, worker: usize) {
        INSIDE.set(true);
        let mut seen = 0;
        loop {
            seen = self.bell.wait(seen);
            self.gate.enter(|job| {
                if worker >= job.threads {
                    return;
                }
                // SAFETY: the caller waits for this worker, which is inside the gate.
                let task = unsafe { &*job.run };
                let run = std::panic::AssertUnwindSafe(|| self.take_tasks(job.tasks, worker, task));
                if std::panic::catch_unwind(run).is_err() {
                    self.failed.store(true, Ordering::Relaxed);
                }
            });
        }
    }
}

/// Says that the caller's task is over.
struct Inside;

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Tests that share out every call, among a number of threads of their choice, with tasks that begin late.
#[cfg(test)]
pub(crate) mod trial {
    use super::{AtomicU64, Ordering};
    use std::cell::Cell;
    use std::time::Duration;

    /// Threads at most.
    pub const THREADS: usize = 8;

    /// What calls of a thread do during a trial.
    #[derive(Clone, Copy)]
    pub struct Trial {
        pub threads: usize,
    }

    thread_local! {
        static NOW: Cell<Option<Trial>> = const { Cell::new(None) };
    }
    /// Delays come from here while some thread is on trial.
    static SEED: AtomicU64 = AtomicU64::new(0);

    /// Ends a trial.
    pub struct Ending;

    impl Drop for Ending {
        fn drop(&mut self) {
            NOW.set(None);
        }
    }

    impl Trial {
        /// Begins a trial on this thread; it lasts as long as what is returned.
        pub fn begin(threads: usize, seed: u64) -> Ending {
            SEED.store(seed | 1, Ordering::Relaxed);
            NOW.set(Some(Trial { threads }));
            Ending
        }
    }

    pub fn now() -> Option<Trial> {
        NOW.get()
    }

    /// Lets some tasks wait before they begin.
    pub fn delay(task: usize) {
        let seed = SEED.load(Ordering::Relaxed);
        if seed == 0 {
            return;
        }
        let mixed = (seed ^ task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        SEED.store(mixed | 1, Ordering::Relaxed);
        match mixed >> 60 {
            0 => std::thread::sleep(Duration::from_micros(mixed >> 40 & 63)),
            1..4 => std::thread::yield_now(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_close_to_each_other_wake_a_worker() {
        let near = (0..40).filter(|_| in_a_row(WORTH_A_ROW / 10)).count();
        assert!(near >= 2, "{near}");
        // Who asks again, as `share` does after a caller that asked, gets the same answer.
        assert!(in_a_row(WORTH_A_ROW / 10) && in_a_row(WORTH_A_ROW / 10));
        let far = (0..3).filter(|_| {
            std::thread::sleep(2 * WATCH);
            in_a_row(WORTH_A_ROW / 2)
        });
        assert_eq!(far.count(), 0);
    }

    #[test]
    fn every_task_runs_once_also_when_calls_nest_and_collide() {
        let shared = || {
            let counts: Vec<AtomicUsize> = (0..1000).map(|_| AtomicUsize::new(0)).collect();
            share(WORTH_WAKING, counts.len(), &|worker, i| {
                assert!(worker < threads());
                share(WORTH_WAKING, 2, &|_, _| {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 2));
        };
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..200).for_each(|_| shared()));
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_lives_on() {
        let failing = std::panic::catch_unwind(|| {
            share(WORTH_WAKING, 100, &|_, i| assert!(i != 50, "as the test wants it"));
        });
        assert!(failing.is_err());
        let sum = AtomicUsize::new(0);
        share(WORTH_WAKING, 100, &|_, i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 4950);
    }
}
