//! An engine for tests: a plain interpreter of the kernel graph, on several devices, each with memory and a thread of its
//! own.
//!
//! It proves the seam between the dispatcher and an engine (`ferrax::engine`) where no accelerator is: its memory holds
//! bytes that no host code could take for elements, its runs return before their results are there, and every step of a
//! run fails on demand ([`faults`]). Nodes are computed one by one by the CPU engine's kernels, so results have that
//! engine's bits.
//!
//! Read next: [`interpret`] for the nodes, [`memory`] for what a device holds.

pub mod faults;
mod interpret;
pub mod memory;

use faults::Point;
use ferrax::engine::{Compiled, Engine, Source, Stats, driven};
use ferrax_base::{Arg, Buffer, Memory, Outputs, Result, error};
use ferrax_loops::{Graph, Type};
use memory::{Kept, Place};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

/// The platform's name.
pub const PLATFORM: &str = "interpreter";
/// How many devices there are.
pub const DEVICES: usize = 3;

/// Whether runs return before their results are there.
static QUEUES: AtomicBool = AtomicBool::new(true);

/// Registers the engine; its runs wait for their results where `queues` is false. Once a process.
pub fn install(queues: bool) -> Result<()> {
    QUEUES.store(queues, Relaxed);
    ferrax::engine::register(Box::new(Interpreter)).map(drop)
}

/// Registers the engine where the environment asks for it: `FERRAX_TEST_ENGINE` says how it runs, `sync` or `async`.
pub fn install_from_environment() -> Result<()> {
    match std::env::var("FERRAX_TEST_ENGINE").as_deref() {
        Err(_) => Ok(()),
        Ok(mode @ ("sync" | "async")) => install(mode == "async"),
        Ok(other) => Err(error!(Value, "FERRAX_TEST_ENGINE is sync or async; got {other}")),
    }
}

#[derive(Clone)]
struct Interpreter;

impl Engine for Interpreter {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn devices(&self) -> Result<usize> {
        Ok(DEVICES)
    }

    fn device_kind(&self, _: usize) -> String {
        "interpreter for tests".into()
    }

    fn compile(&self, source: &Source<'_>) -> Result<Box<dyn Compiled>> {
        faults::meet(Point::Compile)?;
        source.without_options()?;
        if QUEUES.load(Relaxed) && source.graph.calls_host() {
            return driven::compile(self, source);
        }
        source.graph.verify().map_err(|why| error!(Internal, "a graph to compile: {why}"))?;
        let reusable = source.graph.aliases(source.donated).iter().map(Option::is_some).collect();
        let queues = QUEUES.load(Relaxed);
        Ok(Box::new(Interpreted { graph: source.graph.clone(), reusable, device: source.device, queues }))
    }

    fn upload(&self, elements: &Buffer, ty: &Type, device: usize) -> Result<Memory> {
        faults::meet(Point::Upload)?;
        if elements.len() != ty.bytes() {
            return Err(error!(Internal, "{} bytes were to be uploaded as {ty}", elements.len()));
        }
        Ok(Memory::device(Kept::new(Place::there(elements, device))))
    }

    fn stats(&self, device: usize) -> Stats {
        memory::stats(device)
    }
}

struct Interpreted {
    graph: Arc<Graph>,
    reusable: Vec<bool>,
    device: usize,
    queues: bool,
}

impl Compiled for Interpreted {
    fn reusable(&self) -> &[bool] {
        &self.reusable
    }

    fn run(&self, args: &mut [Arg<'_>], device: usize) -> Result<Outputs> {
        faults::meet(Point::Run)?;
        if device != self.device {
            return Err(error!(Internal, "a program for device {} was run on device {device}", self.device));
        }
        let inputs = args.iter().map(|arg| place(arg, device)).collect::<Result<Vec<_>>>()?;
        for (arg, reused) in args.iter_mut().zip(&self.reusable) {
            if *reused && matches!(arg, Arg::Owned(_)) {
                *arg = Arg::Taken;
            }
        }
        let results: Vec<Arc<Place>> =
            self.graph.outputs.iter().map(|v| Place::to_come(self.graph.ty(*v).bytes(), device)).collect();
        let job = Job { graph: self.graph.clone(), inputs, results: results.clone() };
        if self.queues {
            worker(device).send(job).map_err(|_| error!(Internal, "the thread of device {device} has ended"))?;
        } else {
            job.run()?;
        }
        Ok(results.into_iter().map(|place| Memory::device(Kept::new(place))).collect())
    }

    fn queues_itself(&self) -> bool {
        self.queues
    }

    fn text(&self) -> Result<String> {
        Ok(format!("{} nodes, one by one", self.graph.nodes.len()))
    }
}

/// The memory of an argument, which must be this device's.
fn place(arg: &Arg<'_>, device: usize) -> Result<Arc<Place>> {
    let kept = arg.device::<Kept>().ok_or_else(|| error!(Internal, "an argument is not in the engine's memory"))?;
    if kept.place().device() != device {
        return Err(error!(Internal, "an argument of device {device} is on device {}", kept.place().device()));
    }
    Ok(kept.place().clone())
}

/// A run: what it reads, and where its results go.
struct Job {
    graph: Arc<Graph>,
    inputs: Vec<Arc<Place>>,
    results: Vec<Arc<Place>>,
}

impl Job {
    /// Computes the results, or leaves the error in their places.
    fn run(self) -> Result<()> {
        let Job { graph, inputs, results } = self;
        let read = inputs.iter().map(|place| place.elements().map(Arc::new)).collect::<Result<Vec<_>>>();
        // what a donated argument takes is free before the results are there
        drop(inputs);
        let work = AssertUnwindSafe(|| read.and_then(|read| interpret::graph(&graph, read)));
        let computed = catch_unwind(work).unwrap_or_else(|_| Err(error!(Internal, "a kernel panicked")));
        match computed {
            Ok(values) => {
                results.iter().zip(values).for_each(|(place, value)| place.fill(Ok(&value)));
                Ok(())
            }
            Err(error) => {
                results.iter().for_each(|place| place.fill(Err(&error)));
                Err(error)
            }
        }
    }
}

/// The thread of a device, which runs its jobs in order.
fn worker(device: usize) -> &'static Sender<Job> {
    static WORKERS: [OnceLock<Sender<Job>>; DEVICES] = [const { OnceLock::new() }; DEVICES];
    WORKERS[device].get_or_init(|| {
        let (send, receive) = channel::<Job>();
        let jobs = move || {
            for job in receive {
                // its error lies where its results would
                let _ = job.run();
            }
        };
        // without a thread the first send says so
        let _ = std::thread::Builder::new().name(format!("interpreter {device}")).spawn(jobs);
        send
    })
}
