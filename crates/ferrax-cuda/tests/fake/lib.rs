//! A driver and an NVRTC without a GPU, as a library that tests build and load.
//!
//! Work on streams is done as late as it may be: when somebody waits for it, in the order that streams and events ask for and
//! no other. What runs before its time, or after the end of what it uses, is seen that way: it is a violation, which tests
//! read together with the log of calls and the numbers of objects that live. A call can be made to fail. Kernels are
//! functions of the host that tests register by name, or those of the source itself (`host.rs`); others do nothing but stand
//! in the list of what ran. The environment sets what `fake_set` sets: `FAKE_CUDA_DEVICES=1` has one device.
//!
//! Device memory is memory of the host, so that kernels reach it by its addresses. It is not given to the system again, or,
//! where kernels compute, long after it was freed.
//! Read next: `work.rs` for the streams, `driver.rs`, `nvrtc.rs`, `libraries.rs` and `solver.rs` for the calls, `../driver/harness.rs` for who loads it.
#![allow(non_snake_case, non_camel_case_types, clippy::missing_safety_doc)]

mod driver;
mod host;
mod libraries;
mod nvrtc;
mod solver;
#[allow(dead_code, unused_imports, unused_macros)]
#[path = "../../src/driver/sys.rs"]
mod sys;
mod work;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};
use work::{Memory, Node, Queue};

/// A kernel: its parameters, the blocks, the threads of a block.
type Kernel = extern "C" fn(params: *const u64, count: usize, grid: *const u32, block: *const u32);

/// A kernel of a module: its name, how many parameters it has, and whether its threads wait for each other.
#[derive(Clone)]
struct Entry {
    name: String,
    params: usize,
    waits: bool,
}

/// What a handle stands for.
enum Thing {
    Stream {
        device: i32,
    },
    /// The point of a stream, and whether somebody has asked in vain.
    Event {
        at: Option<(u64, u64)>,
        asked: bool,
    },
    Module {
        kernels: Vec<Entry>,
        library: Option<host::Library>,
    },
    Function {
        module: u64,
        kernel: Entry,
    },
    Pool {
        device: i32,
    },
    Pinned {
        bytes: usize,
    },
    Graph {
        nodes: Vec<(u64, Node)>,
    },
    Exec {
        nodes: Vec<(u64, Node)>,
    },
    /// cuBLASLt's.
    Blas,
    Desc(libraries::Desc),
    Layout(libraries::Layout),
    Wishes,
    /// cuSOLVER's, with its stream.
    Solver {
        stream: u64,
    },
    /// cuFFT's.
    Plan(libraries::Plan),
    Source {
        text: String,
        code: Vec<u8>,
        log: String,
    },
}

#[derive(Default)]
struct State {
    settings: HashMap<String, i64>,
    calls: i64,
    /// The call that fails, and how.
    fail: Option<(i64, i32)>,
    /// The error that every call gives from now on.
    lost: i32,
    log: Vec<String>,
    ran: Vec<String>,
    violations: Vec<String>,
    things: BTreeMap<u64, Thing>,
    handles: u64,
    /// Contexts retained, by device.
    contexts: BTreeMap<i32, i64>,
    queues: BTreeMap<u64, Queue>,
    memory: BTreeMap<u64, Memory>,
    /// Memory that was freed, the oldest first, where it is given back one day.
    freed: VecDeque<u64>,
    /// Whether kernels compute what their sources say.
    computes: bool,
    kernels: HashMap<String, Kernel>,
    /// Kernels that were run.
    kernels_run: i64,
    compilations: i64,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

thread_local! {
    /// The thread's contexts, the current one last.
    static CURRENT: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The fake, held for a call.
struct Held(MutexGuard<'static, Option<State>>);

impl std::ops::Deref for Held {
    type Target = State;
    fn deref(&self) -> &State {
        self.0.as_ref().expect("made when it was locked")
    }
}

impl std::ops::DerefMut for Held {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("made when it was locked")
    }
}

fn state() -> Held {
    let mut guard = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_with(State::of_environment);
    Held(guard)
}

impl State {
    fn of_environment() -> State {
        let settings = std::env::vars().filter_map(|(name, value)| {
            Some((name.strip_prefix("FAKE_CUDA_")?.to_lowercase(), value.parse().ok()?))
        });
        State { settings: settings.collect(), computes: host::folder().is_some(), ..State::default() }
    }

    fn setting(&self, name: &str, default: i64) -> i64 {
        self.settings.get(name).copied().unwrap_or(default)
    }

    fn violate(&mut self, text: String) {
        self.violations.push(text);
    }

    fn add(&mut self, thing: Thing) -> u64 {
        self.handles += 1;
        let handle = 0x1000 + 16 * self.handles;
        self.things.insert(handle, thing);
        handle
    }

    fn count(&self, of: &str) -> i64 {
        let things = self.things.values().filter(|thing| match thing {
            Thing::Stream { .. } => of == "streams",
            Thing::Event { .. } => of == "events",
            Thing::Module { .. } => of == "modules",
            Thing::Pool { .. } => of == "pools",
            Thing::Pinned { .. } => of == "pinned",
            Thing::Graph { .. } => of == "graphs",
            Thing::Exec { .. } => of == "execs",
            Thing::Source { .. } => of == "sources",
            Thing::Blas | Thing::Solver { .. } | Thing::Desc(_) | Thing::Layout(_) | Thing::Wishes | Thing::Plan(_) => of == "routines",
            Thing::Function { .. } => false,
        });
        things.count() as i64
    }
}

/// Begins a call: the fake, or the error that the call gives. A call that takes something down takes it down all the same.
fn call(name: &str) -> (Held, i32) {
    let mut held = state();
    held.calls += 1;
    if !held.computes {
        held.log.push(name.to_owned());
    }
    let code = match held.fail {
        Some((at, code)) if at == held.calls => code,
        // the compiler needs no GPU
        _ if name.starts_with("nvrtc") => 0,
        _ => held.lost,
    };
    (held, code)
}

unsafe fn text<'a>(text: *const c_char) -> &'a str {
    unsafe { CStr::from_ptr(text) }.to_str().expect("names are UTF-8")
}

/// Sets something: the driver's version, the number of devices, bytes of their memory, and so on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_set(name: *const c_char, value: i64) {
    let name = unsafe { text(name) }.to_owned();
    state().settings.insert(name, value);
}

/// A number: calls so far, objects of a kind that live, bytes that do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_get(name: *const c_char) -> i64 {
    let held = state();
    match unsafe { text(name) } {
        "calls" => held.calls,
        "kernels" => held.kernels_run,
        "compilations" => held.compilations,
        "contexts" => held.contexts.values().sum(),
        "depth" => CURRENT.with_borrow(|c| c.len() as i64),
        "blocks" => held.memory.values().filter(|m| m.is_live()).count() as i64,
        "queued" => held.queues.values().map(|q| q.len() as i64).sum(),
        kind => held.count(kind),
    }
}

/// A list, a line an entry, which is taken: the log of calls, the kernels that ran, the violations. Gives its length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_take(name: *const c_char, to: *mut u8, room: usize) -> usize {
    let mut held = state();
    let list = match unsafe { text(name) } {
        "log" => &mut held.log,
        "ran" => &mut held.ran,
        _ => &mut held.violations,
    };
    let lines = list.join("\n");
    if lines.len() <= room {
        unsafe { to.copy_from_nonoverlapping(lines.as_ptr(), lines.len()) };
        list.clear();
    }
    lines.len()
}

/// Makes the `n`-th call from now on fail with a code; the first is number one.
#[unsafe(no_mangle)]
pub extern "C" fn fake_fail(n: i64, code: i32) {
    let mut held = state();
    held.fail = Some((held.calls + n, code));
}

/// Registers a kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_kernel(name: *const c_char, kernel: Kernel) {
    let name = unsafe { text(name) }.to_owned();
    state().kernels.insert(name, kernel);
}
