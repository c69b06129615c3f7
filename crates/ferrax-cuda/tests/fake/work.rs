//! Streams: queues of work that is done when somebody waits for it.

use crate::{Entry, State, Thing};
use std::collections::VecDeque;
use std::sync::Arc;

/// Work of a stream.
#[derive(Clone)]
pub enum Op {
    Alloc {
        address: u64,
    },
    Free {
        address: u64,
    },
    /// From pinned memory of the host, with what was there when the copy was asked for.
    Upload {
        to: u64,
        from: u64,
        was: Vec<u8>,
    },
    Download {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Wait {
        stream: u64,
        number: u64,
    },
    Node(Node),
}

/// A call of a library: its name, what it touches, and what it does.
#[derive(Clone)]
pub struct Call {
    pub name: &'static str,
    pub spans: Vec<(u64, usize)>,
    pub run: Arc<dyn Fn() + Send + Sync>,
}

/// Work that graphs can have too.
#[derive(Clone)]
pub enum Node {
    Copy { to: u64, from: u64, bytes: usize },
    Fill { to: u64, pattern: Vec<u8>, count: usize },
    Library(Call),
    Kernel { module: u64, kernel: Entry, params: Vec<u64>, grid: [u32; 3], block: [u32; 3] },
}

#[derive(Default)]
pub struct Queue {
    work: VecDeque<(u64, Op)>,
    /// Numbers of the last work that was given and of the last that was done.
    pub given: u64,
    done: u64,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.work.len()
    }

    pub fn is_done(&self, number: u64) -> bool {
        self.done >= number
    }
}

/// Memory of a device.
pub struct Memory {
    pub bytes: usize,
    pub device: i32,
    pub life: Life,
    /// The stream that frees it, once it was asked to.
    pub freed_on: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Life {
    /// A stream will allocate it.
    Coming,
    Live,
    Gone,
}

impl Memory {
    pub fn is_live(&self) -> bool {
        self.life != Life::Gone && self.freed_on.is_none()
    }

    pub fn is_used(&self) -> bool {
        self.life != Life::Gone
    }
}

/// What memory holds that was just allocated, that was freed, and pinned memory that a copy will write.
const FRESH: u8 = 0xcd;
const FREED: u8 = 0xdd;
const AWAITED: u8 = 0xab;
/// What lies before and behind memory, and how much of it.
const GUARD: u8 = 0xa7;
const GUARDS: usize = 512;
/// Work that a stream has before some is done.
const MOST: u64 = 1024;
/// Freed memory that is kept where the rest is given back.
const KEPT: usize = 1000;

fn layout(bytes: usize) -> std::alloc::Layout {
    std::alloc::Layout::from_size_align(bytes + 2 * GUARDS, GUARDS).expect("a size")
}

/// Memory of a device between guards.
pub fn take(bytes: usize) -> u64 {
    unsafe {
        let start = std::alloc::alloc(layout(bytes));
        start.write_bytes(GUARD, GUARDS);
        start.add(GUARDS + bytes).write_bytes(GUARD, GUARDS);
        start.add(GUARDS) as u64
    }
}

unsafe fn give_back(address: u64, bytes: usize) {
    unsafe { std::alloc::dealloc((address as *mut u8).sub(GUARDS), layout(bytes)) };
}

/// Whether nothing was written beside memory.
unsafe fn is_guarded(address: u64, bytes: usize) -> bool {
    [address - GUARDS as u64, address + bytes as u64].into_iter().all(|at| {
        let guard = unsafe { std::slice::from_raw_parts(at as *const u8, GUARDS) };
        guard.iter().all(|b| *b == GUARD)
    })
}

impl State {
    pub fn push(&mut self, stream: u64, op: Op) {
        if let Op::Download { to, bytes, .. } = &op {
            if self.pinned(*to, *bytes) {
                unsafe { (*to as *mut u8).write_bytes(AWAITED, *bytes) };
            } else {
                self.violate(format!("a download to memory that is not pinned: {to:#x}"));
            }
        }
        let queue = self.queues.get_mut(&stream).expect("the call has looked");
        queue.given += 1;
        let number = queue.given;
        queue.work.push_back((number, op));
        // a driver's streams take no more than so much before they do some of it
        if self.computes && number.is_multiple_of(MOST) {
            self.drive(stream, number - MOST / 2);
        }
    }

    /// Does what a stream has up to a number, and what that waits for.
    pub fn drive(&mut self, stream: u64, number: u64) {
        loop {
            let Some(queue) = self.queues.get_mut(&stream) else { return };
            match queue.work.front() {
                Some((n, _)) if *n <= number => {}
                _ => return,
            }
            let (n, op) = queue.work.pop_front().expect("there is one");
            self.perform(op);
            if let Some(queue) = self.queues.get_mut(&stream) {
                queue.done = n;
            }
        }
    }

    pub fn drive_all(&mut self) {
        let all: Vec<(u64, u64)> = self.queues.iter().map(|(s, q)| (*s, q.given)).collect();
        all.into_iter().for_each(|(stream, number)| self.drive(stream, number));
    }

    fn perform(&mut self, op: Op) {
        // a context that is lost does nothing any more, but its memory is given back
        let lost = self.lost != 0;
        match op {
            Op::Alloc { address } => {
                let memory = self.memory.get_mut(&address).expect("it was reserved");
                memory.life = Life::Live;
                unsafe { (address as *mut u8).write_bytes(FRESH, memory.bytes) };
            }
            Op::Free { address } => {
                let memory = self.memory.get_mut(&address).expect("the call has looked");
                let (life, bytes) = (memory.life, memory.bytes);
                memory.life = Life::Gone;
                unsafe { (address as *mut u8).write_bytes(FREED, bytes) };
                if life != Life::Live {
                    self.violate(format!("{address:#x} was freed when it was {life:?}"));
                }
                if !unsafe { is_guarded(address, bytes) } {
                    self.violate(format!("something was written beside the {bytes} bytes of {address:#x}"));
                }
                if self.computes {
                    self.forget(address);
                }
            }
            Op::Wait { stream, number } => self.drive(stream, number),
            _ if lost => {}
            Op::Upload { to, from, was } => {
                if self.reach("an upload", to, was.len()) && self.pinned(from, was.len()) {
                    let now = unsafe { std::slice::from_raw_parts(from as *const u8, was.len()) };
                    if now != was {
                        self.violate(format!("pinned memory changed before its upload to {to:#x}"));
                    }
                    unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, was.len()) };
                } else {
                    self.violate(format!("an upload from {from:#x} to {to:#x}"));
                }
            }
            Op::Download { to, from, bytes } => {
                if self.reach("a download", from, bytes) && self.pinned(to, bytes) {
                    unsafe { (to as *mut u8).copy_from_nonoverlapping(from as *const u8, bytes) };
                } else {
                    self.violate(format!("a download from {from:#x} to {to:#x}"));
                }
            }
            Op::Node(node) => self.perform_node(&node),
        }
    }

    fn perform_node(&mut self, node: &Node) {
        match node {
            Node::Copy { to, from, bytes } => {
                if self.reach("a copy's source", *from, *bytes) && self.reach("a copy's target", *to, *bytes) {
                    unsafe { (*to as *mut u8).copy_from(*from as *const u8, *bytes) };
                }
            }
            Node::Fill { to, pattern, count } => {
                if self.reach("a fill", *to, pattern.len() * count) {
                    for i in 0..*count {
                        let at = (*to + (i * pattern.len()) as u64) as *mut u8;
                        unsafe { at.copy_from_nonoverlapping(pattern.as_ptr(), pattern.len()) };
                    }
                }
            }
            Node::Library(call) => {
                let there = call.spans.iter().all(|(at, bytes)| self.reach(call.name, *at, *bytes));
                if there {
                    (call.run)();
                }
            }
            Node::Kernel { module, kernel: Entry { name, waits, .. }, params, grid, block } => {
                self.kernels_run += 1;
                if self.setting("fault", 0) == self.kernels_run {
                    self.lost = 700;
                    return;
                }
                if !self.things.contains_key(module) {
                    self.violate(format!("{name} runs after its module was unloaded"));
                    return;
                }
                for &param in params {
                    let at = self.memory.range(..=param).next_back();
                    let dead = at.filter(|(start, m)| param < *start + m.bytes as u64 && m.life != Life::Live);
                    if let Some((start, _)) = dead {
                        let text = format!("{name} is given memory of {start:#x}, which is not there");
                        self.violate(text);
                        return;
                    }
                }
                if let Some(Thing::Module { library: Some(library), .. }) = self.things.get(module) {
                    let seed = (self.kernels_run as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    library.run(name, params, *grid, *block, *waits, seed);
                    return;
                }
                self.ran.push(format!("{name} {grid:?} {block:?}"));
                if let Some(kernel) = self.kernels.get(name) {
                    kernel(params.as_ptr(), params.len(), grid.as_ptr(), block.as_ptr());
                }
            }
        }
    }

    /// Gives memory back that was freed, but for what was freed last.
    fn forget(&mut self, address: u64) {
        self.freed.push_back(address);
        while self.freed.len() > KEPT
            && let Some(oldest) = self.freed.pop_front()
        {
            if let Some(memory) = self.memory.remove(&oldest) {
                unsafe { give_back(oldest, memory.bytes) };
            }
        }
    }

    /// Whether bytes are in memory of a device that is there.
    fn reach(&mut self, what: &str, at: u64, bytes: usize) -> bool {
        let found = self.memory.range(..=at).next_back();
        let there =
            found.is_some_and(|(start, m)| at + bytes as u64 <= *start + m.bytes as u64 && m.life == Life::Live);
        if !there {
            self.violate(format!("{what}: {bytes} bytes at {at:#x} are not there"));
        }
        there
    }

    /// Whether bytes are in pinned memory.
    fn pinned(&self, at: u64, bytes: usize) -> bool {
        let found = self.things.range(..=at).next_back();
        found.is_some_and(
            |(start, thing)| matches!(thing, Thing::Pinned { bytes: all } if at + bytes as u64 <= *start + *all as u64),
        )
    }

    /// Whether work that is not done yet uses a module, or pinned memory that begins there.
    pub fn is_awaited(&self, handle: u64, bytes: usize) -> bool {
        let within = |at: u64| (handle..handle + bytes as u64).contains(&at);
        self.queues.values().flat_map(|q| &q.work).any(|(_, op)| match op {
            Op::Upload { from, .. } => within(*from),
            Op::Download { to, .. } => within(*to),
            Op::Node(Node::Kernel { module, .. }) => *module == handle,
            _ => false,
        })
    }
}
