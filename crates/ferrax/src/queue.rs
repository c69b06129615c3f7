//! Asynchronous dispatch: programs that take long run after their call has returned.
//!
//! A call whose program took [`LONG`] the last time hands it to the queue and returns pending arrays. A thread of the
//! queue's own runs the jobs in the order of the calls. Whoever waits for a result before the thread has begun its job
//! runs that job itself, and what it reads before, whatever else runs at the time: jobs meet only where one reads what
//! another computes. So callers who wait at once, on as many threads as they like, compute side by side. They gain
//! nothing by the queue, and a program whose results were waited for several times in a row runs in its calls again,
//! but for one call now and then that asks anew ([`Pace`]); so does every program while more of them run than there are
//! CPUs.
//!
//! A job that fails leaves its error in its results. Effects, callbacks and the debug modes never come here. The queue
//! is bounded; a call that finds it full waits. Before a fork from Python it ends what runs ([`before_fork`]); the child of
//! any other fork finds an error in place of what another thread was computing. `tests/interleavings.rs` runs this file over all
//! interleavings of a few threads.
//! Read next: `executable.rs` for what becomes a job, `ferrax_ir::array` for pending arrays, `ferrax_base::fork`.

use crate::device::Placement;
use crate::sync::{Array, Condvar, Lock, MutexGuard, Reservation, employ};

use ferrax_base::config::Flag;
use ferrax_base::{Arg, Aval, Error, Memory, Outputs, Result, Source, error, fork, long_work};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
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
        if BUSY.load(Relaxed) > ferrax_cpu::pool::threads() {
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
        let result = {
            let _busy = Busy::start();
            work()
        };
        self.micros.store(start.elapsed().as_micros().min(u128::from(u32::MAX)) as u32, Relaxed);
        result
    }

    /// Notes whether somebody waited for the results at once.
    fn waited(&self, at_once: bool) {
        self.waits.store(if at_once { self.waits.load(Relaxed) + 1 } else { 0 }, Relaxed);
    }
}

/// Long programs that run now, in calls and in jobs.
static BUSY: AtomicUsize = AtomicUsize::new(0);

/// Counts a program while it runs, also when it panics.
struct Busy;

impl Busy {
    fn start() -> Busy {
        BUSY.fetch_add(1, Relaxed);
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // The child of a fork counts from zero, also when the program that forked goes on in it.
        let _ = BUSY.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1));
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
    Owned(Option<Memory>),
}

/// A program with its arguments, and the arrays that it is to compute.
struct Job {
    work: Arc<dyn Work>,
    inputs: SmallVec<[Input; 8]>,
    outputs: SmallVec<[Array; 2]>,
    started: Instant,
    /// Where the call is.
    call: Source,
}

impl Job {
    /// The first of its arguments that is not there yet.
    fn pending_input(&self) -> Option<&Array> {
        self.inputs.iter().find_map(|input| match input {
            Input::Array(reservation, _) => Some(reservation.array()).filter(|a| a.is_pending()),
            Input::Owned(_) => None,
        })
    }

    fn run(self) {
        let Job { work, mut inputs, outputs, call, .. } = self;
        let ran = catch_unwind(AssertUnwindSafe(|| Job::results(&*work, &mut inputs, outputs.len())));
        let results = ran.unwrap_or_else(|_| Err(error!(Internal, "a program panicked while it ran")));
        // Whoever sees the results may free or donate the arguments at once.
        drop(inputs);
        match results {
            // SAFETY: the job made its outputs, and settles each of them here and nowhere else.
            Ok(results) => outputs.iter().zip(results).for_each(|(a, m)| unsafe { a.settle(Ok(m)) }),
            Err(error) => {
                let error: Arc<Error> = error.started_at(call).into();
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
                    Some(memory) => Arg::Owned(memory),
                    None => Arg::Borrowed(reservation.memory()?),
                },
                Input::Owned(memory) => memory.take().map_or(Arg::Taken, Arg::Owned),
            });
        }
        let results = work.pace().time(|| work.run(&mut args))?;
        if results.len() != count {
            return Err(error!(Internal, "a program gave {} results instead of {count}", results.len()));
        }
        Ok(results)
    }
}

/// A job that somebody runs.
struct Running {
    number: u64,
    outputs: SmallVec<[Array; 2]>,
    /// When its call was, and whether somebody waited for it soon after that.
    started: Instant,
    waited: bool,
}

impl Running {
    fn computes(&self, array: &Array) -> bool {
        self.outputs.iter().any(|a| a.ptr_eq(array))
    }
}

struct Queue {
    jobs: VecDeque<Job>,
    running: Vec<Running>,
    /// Jobs that were begun.
    begun: u64,
    /// The process whose thread runs jobs.
    process: u32,
}

static QUEUE: Lock<Queue> = Lock::new(Queue { jobs: VecDeque::new(), running: Vec::new(), begun: 0, process: 0 });
/// Told when there may be a job for the thread.
static WORK: Condvar = Condvar::new();
/// Told when a job has ended.
static DONE: Condvar = Condvar::new();

type Held = MutexGuard<'static, Queue>;

fn wait_for(told: &Condvar, queue: Held) -> Held {
    told.wait(queue).unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    fn idle(&self) -> bool {
        self.jobs.is_empty() && self.running.is_empty()
    }

    /// The first job whose arguments are there.
    fn ready(&self) -> Option<usize> {
        self.jobs.iter().position(|job| job.pending_input().is_none())
    }

    /// The job to run next for an array: the one that computes it, or one that computes what that one reads. `None` when
    /// it runs already.
    fn job_for(&self, array: &Array) -> Option<usize> {
        let mut wanted = array;
        loop {
            let at = self.jobs.iter().position(|job| job.outputs.iter().any(|a| a.ptr_eq(wanted)))?;
            match self.jobs[at].pending_input() {
                None => return Some(at),
                Some(input) => wanted = input,
            }
        }
    }

    /// Makes the thread of this process, if it has none.
    fn employ(&mut self) {
        let process = std::process::id();
        if self.process == process {
            return;
        }
        // Without a thread the jobs wait for those who wait for them.
        if employ(serve) {
            self.process = process;
        }
    }
}

/// What the thread does.
fn serve() {
    let mut queue = QUEUE.lock();
    loop {
        queue = match queue.ready() {
            Some(at) => run(queue, at, false),
            None => wait_for(&WORK, queue),
        };
    }
}

/// Takes a job out of the queue and runs it. It counts as running until what nobody else wants any more is freed.
fn run(mut queue: Held, at: usize, waiting: bool) -> Held {
    let Some(job) = queue.jobs.remove(at) else { return queue };
    let (work, number) = (job.work.clone(), queue.begun);
    queue.begun += 1;
    queue.running.push(Running { number, outputs: job.outputs.clone(), started: job.started, waited: waiting });
    drop(queue);
    job.run();
    queue = QUEUE.lock();
    let entry = queue.running.iter_mut().find(|r| r.number == number);
    let (outputs, waited) = entry.map(|r| (std::mem::take(&mut r.outputs), r.waited)).unwrap_or_default();
    // Freeing takes another lock.
    drop(queue);
    work.pace().waited(waited);
    drop((outputs, work));
    queue = QUEUE.lock();
    queue.running.retain(|r| r.number != number);
    DONE.notify_all();
    if !queue.jobs.is_empty() {
        WORK.notify_one();
    }
    queue
}

/// Waits for a pending array; what `ferrax_ir::array::set_wait` is given.
pub(crate) fn wait(array: &Array) {
    long_work::run(long_work::LONG, || {
        let mut queue = QUEUE.lock();
        while array.is_pending() {
            queue = match queue.job_for(array) {
                Some(at) => run(queue, at, true),
                None => {
                    if let Some(running) = queue.running.iter_mut().find(|r| r.computes(array)) {
                        running.waited |= running.started.elapsed() < LONG / 2;
                    }
                    wait_for(&DONE, queue)
                }
            };
        }
    });
}

/// Runs jobs, or waits for those who do, until `done`.
fn work_until(done: impl Fn(&Queue) -> bool) {
    long_work::run(long_work::LONG, || {
        let mut queue = QUEUE.lock();
        while !done(&queue) {
            queue = match queue.ready() {
                Some(at) => run(queue, at, true),
                None => wait_for(&DONE, queue),
            };
        }
    });
}

/// Waits until every job has ended.
pub fn drain() {
    if QUEUE.lock().idle() {
        return;
    }
    work_until(Queue::idle);
}

/// Waits until every job has ended. The host calls it before it forks, in a way that lets nobody start one meanwhile
/// (Python: with the interpreter's lock held).
pub fn before_fork() {
    // Waiting gives the host's lock up, so that others may have started more.
    while !QUEUE.lock().idle() {
        drain();
    }
}

/// Has forks leave the child nothing to wait for in vain.
pub(crate) fn install() {
    // A host has its own moment to wait: here its lock may be held, which jobs may need to end.
    let before = || {
        if !long_work::hosted() {
            drain();
        }
    };
    fork::at_fork(before, give_up);
}

/// In the child of a fork: what other threads were computing will not come.
fn give_up() {
    BUSY.store(0, Relaxed);
    let lost = std::mem::take(&mut QUEUE.lock().running);
    if lost.is_empty() {
        return;
    }
    let error: Arc<Error> = error!(
        Runtime,
        "the process forked while another thread computed this array, and the child has no such thread. Wait for results \
         (block_until_ready, or ferrax::queue::drain in Rust) before you fork, or compute them in the child."
    )
    .into();
    for array in lost.iter().flat_map(|r| &r.outputs) {
        // SAFETY: the job that made the array and would settle it runs in no thread of this process.
        unsafe { array.settle(Err(error.clone())) };
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
    place: impl Fn(usize) -> Placement,
) -> SmallVec<[Array; 2]> {
    if QUEUE.lock().jobs.len() >= DEPTH {
        work_until(|queue| queue.jobs.len() < DEPTH);
    }
    let pending = |(i, aval): (usize, &Aval)| {
        let to = place(i);
        Array::pending(aval.clone(), to.device, to.committed)
    };
    let outputs: SmallVec<[Array; 2]> = avals.iter().enumerate().map(pending).collect();
    let mut queue = QUEUE.lock();
    queue.employ();
    queue.jobs.push_back(Job { work, inputs, outputs: outputs.clone(), started: Instant::now(), call: Source::here() });
    drop(queue);
    WORK.notify_one();
    outputs
}
