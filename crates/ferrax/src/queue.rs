//! Asynchronous dispatch: programs that take long run after their call has returned, one after the other.
//!
//! A call whose program took [`LONG`] the last time hands it to the queue and returns pending arrays. The jobs run in
//! the order of the calls, so that whatever a job reads was computed before it. A thread of its own runs them, but
//! waking it takes a fraction of [`LONG`]: whoever waits for a result before the thread has begun runs the jobs
//! itself. Callers who always wait at once gain nothing by the queue, so a program whose results were waited for
//! several times in a row runs in its calls again, but for one call now and then that asks anew ([`Pace`]).
//!
//! A job that fails leaves its error in its results. Effects, callbacks and the debug modes never come here. The queue
//! is bounded; a call that finds it full waits. At a fork it is empty ([`before_fork`]).
//! Read next: `executable.rs` for what becomes a job, `ferrax_ir::array` for pending arrays.

use crate::device::Placement;
use crate::long_work;
use ferrax_base::config::Flag;
use ferrax_base::{Aval, Buffer, Error, Result, error};
use ferrax_cpu::{Arg, Outputs};
use ferrax_ir::Array;
use ferrax_ir::array::Reservation;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this time on a program is worth a job.
pub const LONG: Duration = Duration::from_micros(200);
/// Jobs that wait at most.
const DEPTH: usize = 32;
/// Waits in a row after which a program runs in its calls, and how many of those then pass before it asks anew.
const WAITS: u32 = 4;
const PATIENCE: u32 = 32;

/// How long a program takes, and whether its callers wait for it.
#[derive(Debug, Default)]
pub struct Pace {
    /// Microseconds of the last run.
    micros: AtomicU32,
    /// Jobs in a row that somebody waited for at once, then calls without a job.
    waits: AtomicU32,
}

impl Pace {
    /// Whether the next run is worth a job.
    pub fn asynchronous(&self) -> bool {
        if u128::from(self.micros.load(Relaxed)) < LONG.as_micros() || !Flag::AsyncDispatch.get() {
            return false;
        }
        let waits = self.waits.load(Relaxed);
        if waits < WAITS {
            return true;
        }
        self.waits.store(if waits < WAITS + PATIENCE { waits + 1 } else { WAITS - 1 }, Relaxed);
        false
    }

    /// Runs `work` and notes its time.
    fn time<R>(&self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.micros.store(start.elapsed().as_micros().min(u128::from(u32::MAX)) as u32, Relaxed);
        result
    }

    /// Notes whether somebody waited for the results at once.
    fn waited(&self, at_once: bool) {
        self.waits.store(if at_once { self.waits.load(Relaxed) + 1 } else { 0 }, Relaxed);
    }
}

/// A program that jobs run.
pub trait Work: Send + Sync {
    /// Runs it on its arguments.
    fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs>;
    /// Its pace.
    fn pace(&self) -> &Pace;
}

/// An argument of a job.
pub enum Input {
    /// An array that will be there by then, and whether its memory may be taken.
    Array(Reservation, bool),
    /// Memory of the job's own, until it runs.
    Owned(Option<Buffer>),
}

/// A program with its arguments, and the arrays that it is to compute.
struct Job {
    work: Arc<dyn Work>,
    inputs: SmallVec<[Input; 8]>,
    outputs: SmallVec<[Array; 2]>,
    started: Instant,
}

impl Job {
    fn run(self) {
        let Job { work, mut inputs, outputs, .. } = self;
        let ran = catch_unwind(AssertUnwindSafe(|| Job::results(&*work, &mut inputs, outputs.len())));
        let results = ran.unwrap_or_else(|_| Err(error!(Internal, "a program panicked while it ran")));
        // Whoever sees the results may free or donate the arguments at once.
        drop(inputs);
        match results {
            // SAFETY: the job made its outputs, and settles each of them here and nowhere else.
            Ok(buffers) => outputs.iter().zip(buffers).for_each(|(a, b)| unsafe { a.settle(Ok(b)) }),
            Err(error) => {
                let error: Arc<Error> = error.into();
                // SAFETY: as above.
                outputs.iter().for_each(|a| unsafe { a.settle(Err(error.clone())) });
            }
        }
    }

    fn results(work: &dyn Work, inputs: &mut [Input], count: usize) -> Result<Outputs> {
        let mut args: SmallVec<[Arg<'_>; 8]> = SmallVec::with_capacity(inputs.len());
        for input in inputs {
            args.push(match input {
                Input::Array(reservation, donated) => match donated.then(|| reservation.take()).flatten() {
                    Some(buffer) => Arg::Owned(buffer),
                    None => Arg::Borrowed(reservation.buffer()?),
                },
                Input::Owned(buffer) => buffer.take().map_or(Arg::Taken, Arg::Owned),
            });
        }
        let buffers = work.pace().time(|| work.run(&mut args))?;
        if buffers.len() != count {
            return Err(error!(Internal, "a program gave {} results instead of {count}", buffers.len()));
        }
        Ok(buffers)
    }
}

struct Queue {
    jobs: VecDeque<Job>,
    /// Whether somebody runs a job, when its call was, and whether somebody waited for it soon after that.
    running: bool,
    started: Option<Instant>,
    waited: bool,
    /// The process whose thread runs jobs.
    process: u32,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { jobs: VecDeque::new(), running: false, started: None, waited: false, process: 0 });
/// Told when there is a job for the thread.
static WORK: Condvar = Condvar::new();
/// Told when a job has ended.
static DONE: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the first job; nobody runs one now.
fn run_first(mut queue: MutexGuard<'static, Queue>, waiting: bool) -> MutexGuard<'static, Queue> {
    if let Some(job) = queue.jobs.pop_front() {
        let pace = job.work.clone();
        (queue.running, queue.started, queue.waited) = (true, Some(job.started), waiting);
        drop(queue);
        job.run();
        queue = lock();
        queue.running = false;
        pace.pace().waited(queue.waited);
        DONE.notify_all();
    }
    queue
}

/// Runs jobs, or waits for whoever does, until `done`.
fn wait_until(done: impl Fn(&Queue) -> bool) {
    long_work::run(long_work::LONG, || {
        let mut queue = lock();
        while !done(&queue) {
            queue = if queue.running {
                queue.waited |= queue.started.is_some_and(|call| call.elapsed() < LONG / 2);
                DONE.wait(queue).unwrap_or_else(PoisonError::into_inner)
            } else {
                run_first(queue, true)
            };
        }
        if !queue.jobs.is_empty() && !queue.running {
            WORK.notify_one();
        }
    });
}

/// Waits for a pending array; what `ferrax_ir::array::set_wait` is given.
pub(crate) fn wait(array: &Array) {
    wait_until(|_| !array.is_pending());
}

/// Waits until every job has ended.
pub fn drain() {
    if lock().idle() {
        return;
    }
    wait_until(Queue::idle);
}

thread_local! {
    /// The queue during a fork: the child must not find it locked by a thread that it does not have.
    static HELD: RefCell<Option<MutexGuard<'static, Queue>>> = const { RefCell::new(None) };
}

/// Waits until every job has ended, and lets nobody start one before [`after_fork`] on this thread.
pub fn before_fork() {
    loop {
        drain();
        let queue = lock();
        if queue.idle() {
            return HELD.set(Some(queue));
        }
    }
}

/// Opens the queue again, in the parent and in the child.
pub fn after_fork() {
    HELD.set(None);
}

impl Queue {
    fn idle(&self) -> bool {
        self.jobs.is_empty() && !self.running
    }

    /// Makes the thread of this process, if it has none.
    fn employ(&mut self) {
        let process = std::process::id();
        if self.process == process {
            return;
        }
        let made = std::thread::Builder::new().name("ferrax queue".into()).spawn(|| {
            let mut queue = lock();
            loop {
                queue = if queue.running || queue.jobs.is_empty() {
                    WORK.wait(queue).unwrap_or_else(PoisonError::into_inner)
                } else {
                    run_first(queue, false)
                };
            }
        });
        // Without a thread the jobs wait for those who wait for them.
        if made.is_ok() {
            self.process = process;
        }
    }
}

/// Runs a program in its call, with the host's lock given up if it works on many elements, and notes its time.
#[inline]
pub(crate) fn run_now<R>(pace: &Pace, elements: usize, work: impl FnOnce() -> R) -> R {
    if elements < long_work::LONG {
        return work();
    }
    long_work::run(elements, || pace.time(work))
}

/// Starts a program; gives the arrays that it will compute.
pub(crate) fn start(
    work: Arc<dyn Work>,
    inputs: SmallVec<[Input; 8]>,
    avals: &[Aval],
    place: Placement,
) -> SmallVec<[Array; 2]> {
    if lock().jobs.len() >= DEPTH {
        wait_until(|queue| queue.jobs.len() < DEPTH);
    }
    let outputs: SmallVec<[Array; 2]> =
        avals.iter().map(|a| Array::pending(a.clone(), place.device, place.committed)).collect();
    let mut queue = lock();
    queue.employ();
    queue.jobs.push_back(Job { work, inputs, outputs: outputs.clone(), started: Instant::now() });
    if !queue.running {
        WORK.notify_one();
    }
    outputs
}
