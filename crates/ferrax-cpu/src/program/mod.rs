//! A compiled graph: a list of steps over numbered slots of memory. Data only.
//!
//! Slots are the parameters, then the outputs, then what the planner adds: constants, offsets in one arena
//! per run for small values, and heap blocks for large ones that are allocated and freed by steps. A value
//! that only renames another (reshape, barrier, …) shares its slot. Read next: `plan/mod.rs`
//! for how it is made, `run/frame.rs` for how it runs.

mod memory;
mod print;

use crate::fused::blocks::{Blocks, Group};
use crate::library::moves::Move;
use ferrax_base::Buffer;
use ferrax_loops::Graph;
use smallvec::SmallVec;
use std::sync::Arc;

/// One thing to do.
pub(crate) enum Step {
    Group(Group),
    /// A node that is one kernel; its operand slots, then its result slots, start here in `Program::slots`.
    Leaf {
        node: u32,
        args: u32,
        /// What is known of it in `Program::known`; `NONE` if nothing is.
        known: u32,
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
        copy: Box<crate::library::views::Copy>,
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

    /// The node of a step whose slots are listed, and its slots.
    pub fn slots<'a>(&self, program: &'a Program) -> Option<(u32, &'a [u32])> {
        match *self {
            Step::Leaf { node, args, .. } | Step::Control { node, args, .. } | Step::Registers { node, args, .. } => {
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
    pub(crate) blocks: Blocks,
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
    pub(crate) regions: crate::fused::region::Regions,
    pub(crate) tiles: Vec<crate::fused::registers::Tiles>,
    /// Bytes of the frame's memory for `tiles`.
    pub(crate) tiles_bytes: usize,
    /// Bytes of the frame's memory for the factors of `sums` that wait.
    pub(crate) kept_bytes: usize,
    pub(crate) sums: Vec<crate::library::sums::Accumulate>,
    pub(crate) products: Vec<crate::library::dot::planned::Planned>,
    pub(crate) register_loops: Vec<crate::fused::registers::RegisterLoop>,
    /// What is known of leaves.
    pub(crate) known: Vec<crate::library::known::Known>,
}

impl Program {
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
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Program({} steps, {} kernels, {} arena bytes)",
            self.steps.len(),
            self.blocks.ops.len(),
            self.arena_bytes
        )
    }
}
