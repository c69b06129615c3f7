//! A compiled graph: a list of steps over numbered slots of memory, and how to run it.
//!
//! Slots are the parameters, then the outputs, then what [`crate::plan`] adds: constants, offsets in one arena
//! per run for small values, and heap blocks for large ones that are allocated and freed by steps. A value
//! that only renames another (reshape, barrier, …) shares its slot. Read next: `plan.rs`, then `exec.rs`.

use crate::exec::Frame;
use crate::kernel::Kernel;
use crate::moves::Move;
use crate::plan::{self, Donation};
use ferrax_base::{Arg, Buffer, Memory, Result, bail};
use ferrax_loops::{Graph, Kind, Node};
use smallvec::SmallVec;
use std::sync::Arc;

/// Where a micro-operation of a group finds an operand or puts its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ref {
    /// A slot, or a scratch register of the group.
    pub index: u32,
    /// Bytes an element takes, by which the address moves with the block; 0 for registers and fixed places.
    pub step: u8,
    /// Whether `index` is a register.
    pub register: bool,
}

/// One kernel call of a group, made once a block.
#[derive(Clone, Copy)]
pub(crate) struct MicroOp {
    pub kernel: Kernel,
    pub imm: u64,
    /// Operands: a range of `Program::refs`.
    pub args: u32,
    pub count: u32,
    pub out: Ref,
}

/// A scalar spread over a register before a group's blocks.
#[derive(Clone, Copy)]
pub(crate) struct Fill {
    pub slot: u32,
    pub register: u32,
    pub size: u8,
}

/// Elementwise nodes of one size, run block by block through scratch registers.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub ops: (u32, u32),
    pub fills: (u32, u32),
    pub n: usize,
    pub block: usize,
    pub register_bytes: usize,
}

/// One thing to do.
pub(crate) enum Step {
    Group(Group),
    /// A node that is one kernel; its operand slots, then its result slots, start here in `Program::slots`.
    Leaf {
        node: u32,
        args: u32,
    },
    /// A node that is a copy, or a part of one.
    Move {
        moved: Move,
        node: u32,
    },
    /// A node with subprograms, the first of them at `sub`.
    Control {
        node: u32,
        args: u32,
        sub: u32,
    },
    Alloc {
        slot: u32,
        bytes: usize,
    },
    Free {
        slot: u32,
    },
    /// Says that a value in the arena has had its last use: under checks only.
    Dead {
        slot: u32,
        bytes: usize,
    },
    Copy {
        src: u32,
        dst: u32,
        bytes: usize,
    },
    Splat {
        src: u32,
        dst: u32,
        size: u8,
        n: usize,
    },
    /// Each element `inner` times.
    Rows {
        src: u32,
        dst: u32,
        size: u8,
        n: usize,
        inner: usize,
    },
    /// `len` elements again and again.
    Repeat {
        src: u32,
        dst: u32,
        size: u8,
        n: usize,
        len: usize,
    },
    /// A view, made by this node, in memory of its own.
    View {
        src: u32,
        dst: u32,
        copy: Box<crate::views::Copy>,
        node: u32,
    },
    /// A region of `Program::regions`.
    Region(u32),
    /// A group of `Program::tiles`.
    Tiles(u32),
    /// A product of `Program::products`, the slots of its operands and its result, and the region of `Program::regions`
    /// that takes in its rows as they are done (`NONE` if there is none).
    Product {
        index: u32,
        slots: [u32; 3],
        node: u32,
        after: u32,
    },
    /// A sum of `Program::sums`.
    Accumulate(u32),
    /// A loop of `Program::register_loops`; slots as for a leaf.
    Registers {
        node: u32,
        args: u32,
        index: u32,
    },
    /// Nodes that do not depend on each other, and a guess of the time that all of them take one after the other.
    Together {
        steps: Box<[Step]>,
        time: u64,
    },
}

impl Step {
    /// Whether a step only gives or takes memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, Step::Alloc { .. } | Step::Free { .. } | Step::Dead { .. })
    }

    /// What a step that only copies does.
    fn copies(&self) -> String {
        match self {
            Step::Copy { bytes, .. } => format!("copy {bytes} bytes"),
            Step::Splat { n, .. } => format!("fill {n} elements"),
            Step::Rows { n, inner, .. } => format!("repeat each {inner} times: {n} elements"),
            Step::Repeat { n, len, .. } => format!("repeat {len} elements: {n} elements"),
            _ => String::new(),
        }
    }

    /// The node of a step whose slots are listed, and its slots.
    pub fn slots<'a>(&self, program: &'a Program) -> Option<(u32, &'a [u32])> {
        match *self {
            Step::Leaf { node, args } | Step::Control { node, args, .. } | Step::Registers { node, args, .. } => {
                Some((node, &program.slots[args as usize..]))
            }
            _ => None,
        }
    }
}

/// What a slot beyond parameters and outputs is at the start of a run.
pub(crate) enum SlotInit {
    /// At this offset of the constants.
    Constant(usize),
    /// The bytes of a `Dense` node.
    Dense(ferrax_loops::Bytes),
    /// At this offset of the run's arena.
    Arena(usize),
    /// Allocated by a step.
    Heap,
}

/// Where an output is when the steps are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputPlace {
    /// In the memory the caller gave for it.
    Given,
    /// In the memory of this donated parameter.
    Param(u32),
}

/// A compiled graph.
pub struct Program {
    pub(crate) graph: Arc<Graph>,
    pub(crate) steps: Vec<Step>,
    pub(crate) ops: Vec<MicroOp>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) fills: Vec<Fill>,
    pub(crate) slots: Vec<u32>,
    pub(crate) inits: Vec<SlotInit>,
    pub(crate) constants: Buffer,
    pub(crate) arena_bytes: usize,
    pub(crate) scratch_bytes: usize,
    pub(crate) outputs: Vec<OutputPlace>,
    /// Bytes of each parameter and of each output.
    pub(crate) bytes: (Vec<usize>, Vec<usize>),
    /// Parameters whose memory the steps write.
    pub(crate) written: Vec<bool>,
    pub(crate) subs: Vec<Arc<Program>>,
    pub(crate) regions: crate::region::Regions,
    pub(crate) tiles: Vec<crate::registers::Tiles>,
    /// Bytes of the frame's memory for `tiles`.
    pub(crate) tiles_bytes: usize,
    /// Bytes of the frame's memory for the factors of `sums` that wait.
    pub(crate) kept_bytes: usize,
    pub(crate) sums: Vec<crate::accumulate::Accumulate>,
    pub(crate) products: Vec<crate::dot::planned::Planned>,
    pub(crate) register_loops: Vec<crate::registers::RegisterLoop>,
}

/// Result buffers of a run, row by row.
pub type Outputs = SmallVec<[Buffer; 1]>;

impl Program {
    /// Compiles a graph; no parameter is donated.
    pub fn compile(graph: Arc<Graph>) -> Result<Program> {
        plan::plan(graph, Donation::None, true)
    }

    /// Compiles a graph whose parameters marked in `donated` may be overwritten and become outputs.
    pub fn compile_donating(graph: Arc<Graph>, donated: &[bool]) -> Result<Program> {
        plan::plan(graph, Donation::Free(donated), true)
    }

    /// Compiles a graph without the threaded machine: the oracle of its tests, and what machines without it do.
    pub fn compile_plain(graph: Arc<Graph>) -> Result<Program> {
        plan::plan(graph, Donation::None, false)
    }

    /// The steps as text, one a line: kernels with what they compute, and calls.
    pub fn kernels(&self) -> String {
        let mut out = String::new();
        self.describe(&self.steps, &mut out, 0);
        out
    }

    fn describe(&self, steps: &[Step], out: &mut String, depth: usize) {
        use std::fmt::Write;
        let g = &*self.graph;
        let mut moved = None;
        for step in steps {
            let mut text = String::new();
            let mut subs: &[Arc<Program>] = &[];
            match step {
                Step::Group(group) => {
                    let kernels = group.ops.1 - group.ops.0;
                    text = format!("kernel[{}]: {kernels} operations block by block", group.n);
                }
                // Writing to a string cannot fail.
                Step::Region(index) => drop(self.regions.describe(g, *index, &mut text)),
                Step::Tiles(index) => drop(self.tiles[*index as usize].describe(g, &mut text)),
                Step::Accumulate(index) => {
                    let node = g.node_text(self.sums[*index as usize].dot as usize);
                    text = format!("add to a matrix: {node}");
                }
                Step::Product { node, after, .. } => {
                    text = format!("call {}\n", g.node_text(*node as usize));
                    if *after != plan::NONE {
                        text.push_str("and on its rows ");
                        let _ = self.regions.describe(g, *after, &mut text);
                    }
                }
                Step::Registers { node, index, .. } => {
                    // Writing to a string cannot fail.
                    let node = &g.nodes[*node as usize];
                    let _ = self.register_loops[*index as usize].describe(g, node, &mut text);
                }
                Step::Move { node, .. } | Step::View { node, .. } if moved == Some(*node) => continue,
                Step::Move { node, .. } | Step::View { node, .. } => {
                    // Further pieces of the same result follow.
                    moved = Some(*node);
                    text = format!("call {}", g.node_text(*node as usize));
                }
                Step::Leaf { node, .. } => text = format!("call {}", g.node_text(*node as usize)),
                Step::Control { node, sub, .. } => {
                    let count;
                    (text, count) = control_text(g, &g.nodes[*node as usize]);
                    subs = &self.subs[*sub as usize..*sub as usize + count];
                }
                Step::Alloc { .. } | Step::Free { .. } | Step::Dead { .. } => continue,
                Step::Together { steps, .. } => {
                    let _ = writeln!(out, "{:depth$}at the same time:", "");
                    self.describe(steps, out, depth + 4);
                    continue;
                }
                Step::Copy { .. } | Step::Splat { .. } | Step::Rows { .. } | Step::Repeat { .. } => {
                    text = step.copies();
                }
            }
            for line in text.lines() {
                let _ = writeln!(out, "{:depth$}{line}", "");
            }
            for (k, sub) in subs.iter().enumerate() {
                let _ = writeln!(out, "{:depth$}  part {k}:", "");
                sub.describe(&sub.steps, out, depth + 4);
            }
        }
    }

    /// The graph this was compiled from.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// For each parameter, whether its memory becomes an output when it is donated.
    pub fn donations(&self) -> SmallVec<[bool; 8]> {
        let mut used: SmallVec<[bool; 8]> = SmallVec::from_elem(false, self.graph.params);
        for place in &self.outputs {
            if let OutputPlace::Param(j) = place {
                used[*j as usize] = true;
            }
        }
        used
    }

    /// Runs on one buffer per parameter. Donated buffers that became outputs are left as [`Arg::Taken`].
    pub fn run(&self, args: &mut [Arg<'_>]) -> Result<Outputs> {
        let mut frame = Frame::empty();
        frame.prepare(self)?;
        self.run_in(&mut frame, args)
    }

    fn run_in(&self, frame: &mut Frame, args: &mut [Arg<'_>]) -> Result<Outputs> {
        let graph = &*self.graph;
        if args.len() != graph.params {
            bail!(Internal, "a program of {} parameters was run with {} arguments", graph.params, args.len());
        }
        let mut ins: SmallVec<[*mut u8; 16]> = SmallVec::with_capacity(args.len());
        let mut private: SmallVec<[(u32, Buffer); 2]> = SmallVec::new();
        let takes = self.outputs.iter().any(|o| matches!(o, OutputPlace::Param(_)));
        for (j, arg) in args.iter_mut().enumerate() {
            let (bytes, buffer) = (self.bytes.0[j], arg.host()?);
            if buffer.len() < bytes {
                bail!(Internal, "argument {j} has {} bytes instead of {bytes}", buffer.len());
            }
            let moved = self.written[j] || (takes && self.outputs.contains(&OutputPlace::Param(j as u32)));
            if !moved {
                ins.push(buffer.as_ptr().cast_mut());
                continue;
            }
            let mut buffer = match std::mem::replace(arg, Arg::Taken) {
                Arg::Owned(Memory::Host(b)) if b.is_owned() && b.len() == bytes => b,
                other => {
                    let copy = Buffer::from_bytes(&other.host()?.bytes()[..bytes])?;
                    *arg = other;
                    copy
                }
            };
            ins.push(buffer.as_mut_ptr());
            private.push((j as u32, buffer));
        }
        let mut outs: SmallVec<[*mut u8; 8]> = SmallVec::with_capacity(graph.outputs.len());
        let mut results: Outputs = SmallVec::with_capacity(graph.outputs.len());
        for (k, place) in self.outputs.iter().enumerate() {
            let mut buffer = match place {
                OutputPlace::Given => Buffer::allocate(self.bytes.1[k])?,
                OutputPlace::Param(j) => {
                    let at = private.iter().position(|p| p.0 == *j);
                    let Some(at) = at else { bail!(Internal, "parameter {j} was planned for two outputs") };
                    private.swap_remove(at).1
                }
            };
            outs.push(buffer.as_mut_ptr());
            results.push(buffer);
        }
        // SAFETY: every argument was checked to hold its parameter, results were allocated for their types, and
        // parameters that are written are private.
        unsafe { frame.exec(self, &ins, &outs)? };
        Ok(results)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({} steps, {} kernels, {} arena bytes)", self.steps.len(), self.ops.len(), self.arena_bytes)
    }
}

/// A node with subgraphs as text, and their number.
fn control_text(g: &Graph, node: &Node) -> (String, usize) {
    let (name, count) = match &node.kind {
        Kind::While { .. } => ("while", 2),
        Kind::Scan { .. } => ("scan", 1),
        Kind::Switch(branches) => ("switch", branches.len()),
        Kind::Call(_) => ("call", 1),
        _ => ("reduce", 1),
    };
    let outs: Vec<String> = node.outputs().map(|v| format!("%{}: {}", v.0, g.ty(v))).collect();
    let ins: Vec<String> = node.inputs.iter().map(|v| format!("%{}", v.0)).collect();
    (format!("{} = {name} {}", outs.join(", "), ins.join(" ")), count)
}
