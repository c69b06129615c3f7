//! The gate of the pool and its bell over all interleavings of an owner and one or two workers, by loom: every task is
//! done once, what it wrote is seen by the owner, nobody touches a job that is over, and nobody sleeps through one.

/// The primitives that `gate.rs` and `bell.rs` are made of, under loom's control.
mod sync {
    pub use loom::sync::Mutex;
    pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::thread::{Thread, park};

    /// Lets others run.
    pub fn wait(_: &mut u32) {
        loom::thread::yield_now();
    }

    /// Looks once.
    pub fn watch(done: impl Fn() -> bool) -> bool {
        done()
    }
}

#[path = "../src/pool/bell.rs"]
mod bell;
#[path = "../src/pool/gate.rs"]
mod gate;

use bell::Bell;
use gate::Gate;
use loom::cell::UnsafeCell;
use loom::sync::Arc;

const TASKS: usize = 2;

/// What the tasks of a job write, and whether the job is over. Loom finds an access beside another one's write.
struct Work {
    done: [UnsafeCell<u32>; TASKS],
    over: UnsafeCell<bool>,
}

impl Work {
    fn new() -> Self {
        Work { done: [UnsafeCell::new(0), UnsafeCell::new(0)], over: UnsafeCell::new(false) }
    }

    fn take(&self, gate: &Gate<usize>) {
        // SAFETY: loom checks that nobody writes meanwhile, here and below.
        self.over.with(|over| assert!(!unsafe { *over }, "a job that is over"));
        while let Some(i) = gate.next(TASKS) {
            // SAFETY: as above.
            self.done[i].with_mut(|done| unsafe { *done += 1 });
        }
    }

    /// What the owner sees when the gate is closed.
    fn check(&self) {
        // SAFETY: as above.
        self.over.with_mut(|over| unsafe { *over = true });
        for done in &self.done {
            // SAFETY: as above.
            done.with(|done| assert_eq!(unsafe { *done }, 1, "each task once"));
        }
    }
}

/// `jobs` jobs of one owner, and workers that look in `visits` times each.
fn explore(jobs: usize, workers: usize, visits: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let gate = Arc::new(Gate::<usize>::new());
        let work: Arc<Vec<Work>> = Arc::new((0..jobs).map(|_| Work::new()).collect());
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let (gate, work) = (gate.clone(), work.clone());
                loom::thread::spawn(move || {
                    for _ in 0..visits {
                        gate.enter(|job| work[job].take(&gate));
                    }
                })
            })
            .collect();
        for job in 0..jobs {
            gate.open(job);
            work[job].take(&gate);
            gate.close();
            work[job].check();
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn one_job_and_two_workers() {
    explore(1, 2, 1);
}

#[test]
fn two_jobs_and_a_worker_that_comes_late() {
    explore(2, 1, 2);
}

/// An owner rings for each job; workers listen until they have heard the last. One that slept through it would never end.
fn listen(jobs: u64, workers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let bell = Arc::new(Bell::new());
        let gate = Arc::new(Gate::<usize>::new());
        let work: Arc<Vec<Work>> = Arc::new((0..jobs).map(|_| Work::new()).collect());
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                let (bell, gate, work) = (bell.clone(), gate.clone(), work.clone());
                let listener = bell.clone();
                let worker = loom::thread::spawn(move || {
                    let mut seen = 0;
                    while seen < jobs {
                        let now = bell.wait(seen);
                        assert!(now > seen);
                        seen = now;
                        gate.enter(|job| work[job].take(&gate));
                    }
                });
                listener.add(worker.thread().clone());
                worker
            })
            .collect();
        for job in 0..jobs {
            gate.open(job as usize);
            bell.ring();
            work[job as usize].take(&gate);
            gate.close();
            work[job as usize].check();
        }
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(!bell.is_watched());
    });
}

#[test]
fn a_worker_hears_a_job() {
    listen(1, 1);
}

#[test]
fn a_worker_hears_the_last_of_two_jobs() {
    listen(2, 1);
}

#[test]
fn two_workers_hear_a_job() {
    listen(1, 2);
}
