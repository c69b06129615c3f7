//! The queue over all interleavings of one or two callers and its thread, by loom: every job runs once and after those
//! whose results it reads, and nobody waits in vain.

#[allow(dead_code)]
#[path = "../../ferrax-ir/src/array.rs"]
mod array;
#[allow(dead_code)]
#[path = "../../ferrax-ir/src/cells.rs"]
mod cells;
#[path = "../../ferrax-ir/tests/model/mod.rs"]
mod model;
#[allow(dead_code)]
#[path = "../src/queue.rs"]
mod queue;

mod device {
    pub use ferrax::DeviceId;
    pub use ferrax::device::Placement;
}
mod jaxpr {
    pub use ferrax_ir::DebugInfo;
}
mod sync {
    pub use crate::array::{Array, Reservation};
    pub use crate::model::*;

    /// Whether the queue gets a thread of its own.
    pub static STAFFED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

    pub fn employ(work: fn()) -> bool {
        let staffed = STAFFED.load(Ordering::Relaxed);
        if staffed {
            serve(work);
        }
        staffed
    }
}

use array::Array;
use ferrax_base::{Arg, Aval, Buffer, DType, Outputs, Result, error};
use queue::{Input, Pace, Work};
use smallvec::smallvec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Adds one to its argument, if it has one; fails without.
#[derive(Default)]
struct Program {
    pace: Pace,
    runs: AtomicUsize,
}

impl Work for Program {
    fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs> {
        self.runs.fetch_add(1, Relaxed);
        let [Arg::Borrowed(memory)] = args else { return Err(error!(Runtime, "no argument")) };
        let x = memory.host()?.bytes()[0];
        Ok(smallvec![Buffer::from_bytes(&[x + 1])?.into()])
    }

    fn pace(&self) -> &Pace {
        &self.pace
    }
}

fn aval() -> Aval {
    Aval { shape: [1].into_iter().collect(), dtype: DType::U8, weak: false, vary: 0, spread: 0 }
}

fn there() -> Array {
    Array::new(aval(), Buffer::from_bytes(&[0]).unwrap())
}

fn start(program: &Arc<Program>, argument: Option<&Array>) -> Array {
    let inputs = argument.map(|a| Input::Array(a.reserve().unwrap(), false)).into_iter().collect();
    let place = |_| device::Placement { device: ferrax::DeviceId(0), committed: false };
    queue::start(program.clone(), inputs, &[aval()], place).remove(0)
}

fn element(array: &Array) -> u8 {
    array.pin().unwrap().bytes()[0]
}

/// Runs all interleavings, with a thread of the queue's own or without.
fn explore(staffed: bool, preemptions: usize, callers: impl Fn() + Send + Sync + 'static) {
    array::set_wait(queue::wait);
    model::explore(preemptions, move || {
        sync::STAFFED.store(staffed, Relaxed);
        callers();
        model::dismiss();
    });
}

#[test]
fn who_waits_runs_a_job_or_waits_for_the_thread() {
    explore(true, 2, || {
        let program = Arc::new(Program::default());
        assert_eq!(element(&start(&program, Some(&there()))), 1);
        assert_eq!(program.runs.load(Relaxed), 1);
    });
}

/// An array's element once it is there, which nobody asks for before.
fn element_in_time(array: &Array) -> u8 {
    while array.is_pending() {
        loom::thread::yield_now();
    }
    element(array)
}

#[test]
fn jobs_that_nobody_waits_for_run() {
    explore(true, 2, || {
        let program = Arc::new(Program::default());
        let first = start(&program, Some(&there()));
        assert_eq!(element_in_time(&first), 1);
        // the thread may sleep again
        assert_eq!(element_in_time(&start(&program, Some(&first))), 2);
    });
}

#[test]
fn the_thread_runs_what_reads_the_results_of_a_caller() {
    explore(true, 1, || {
        let program = Arc::new(Program::default());
        let first = start(&program, Some(&there()));
        let second = start(&program, Some(&first));
        let caller = loom::thread::spawn(move || assert_eq!(element(&first), 1));
        assert_eq!(element_in_time(&second), 2);
        caller.join().unwrap();
    });
}

#[test]
fn callers_wait_for_jobs_that_read_each_others_results() {
    explore(false, 2, || {
        let program = Arc::new(Program::default());
        let first = start(&program, Some(&there()));
        let second = start(&program, Some(&first));
        let caller = loom::thread::spawn(move || assert_eq!(element(&second), 2));
        assert_eq!(element(&first), 1);
        caller.join().unwrap();
        assert_eq!(program.runs.load(Relaxed), 2);
    });
}

#[test]
fn the_thread_and_a_caller_run_a_chain_in_order() {
    explore(true, 2, || {
        let program = Arc::new(Program::default());
        let first = start(&program, Some(&there()));
        let second = start(&program, Some(&first));
        drop(first);
        assert_eq!(element(&second), 2);
        assert_eq!(program.runs.load(Relaxed), 2);
    });
}

#[test]
fn a_queue_is_drained_while_somebody_waits() {
    explore(false, 2, || {
        let program = Arc::new(Program::default());
        let result = start(&program, Some(&there()));
        let again = result.clone();
        let caller = loom::thread::spawn(move || assert_eq!(element(&again), 1));
        queue::drain();
        assert!(!result.is_pending());
        caller.join().unwrap();
    });
}

#[test]
fn failures_reach_all_who_wait() {
    explore(true, 2, || {
        let program = Arc::new(Program::default());
        let first = start(&program, None);
        let second = start(&program, Some(&first));
        assert!(second.pin().is_err() && first.pin().is_err());
        assert_eq!(program.runs.load(Relaxed), 1);
    });
}
