//! Groups of elementwise nodes, block by block: their micro-operations, and how they run.
//!
//! A group's nodes have one size. It runs in blocks of at most 4 KB a register: each node's kernel reads
//! operands from memory or registers and leaves its result in a register, or in memory where later steps need
//! it. Intermediate arrays never exist. Threads take some blocks at a time, of large groups.

use super::Memory;
use crate::elementwise::kernel::{Kernel, by_size};
use crate::pool::{self, Disjoint};
use ferrax_base::{Buffer, Result};
use smallvec::SmallVec;

/// Blocks that a thread takes at a time.
const BLOCKS: usize = 8;

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
    /// A guess of the time that an element takes, in picoseconds.
    pub cost: u64,
}

/// The micro-operations of a program's groups.
#[derive(Default)]
pub(crate) struct Blocks {
    pub ops: Vec<MicroOp>,
    pub refs: Vec<Ref>,
    pub fills: Vec<Fill>,
}

impl Blocks {
    /// Tables with room for what `nodes` nodes need, about.
    pub fn with_room(nodes: usize) -> Blocks {
        Blocks { ops: Vec::with_capacity(nodes + 8), refs: Vec::with_capacity(2 * nodes + 8), fills: Vec::new() }
    }

    /// Runs a group, on several threads where it is worth it.
    ///
    /// # Safety
    /// The memory must be that of a run of the program whose group it is.
    pub unsafe fn run(&self, group: &Group, memory: Memory<'_>) -> Result<()> {
        let run = Run { blocks: self, group, slots: memory.slots };
        let each = BLOCKS * group.block;
        let time = group.n as u64 * group.cost / 1000;
        if group.n <= each || !pool::worth(time) {
            // SAFETY: the scratch memory holds the registers of every group.
            unsafe {
                run.fill(memory.scratch);
                run.blocks(memory.scratch, 0, group.n);
            }
            return Ok(());
        }
        let bytes = memory.bytes.next_multiple_of(64);
        let mut held = Buffer::allocate(bytes * pool::threads())?;
        let scratch = Disjoint(held.as_mut_ptr());
        for worker in 0..pool::threads() {
            // SAFETY: each thread has memory for the registers of every group.
            unsafe { run.fill(scratch.at(worker * bytes)) };
        }
        let run = &run;
        pool::share(time, group.n.div_ceil(each), &|worker, task| {
            // SAFETY: as above; no two tasks run at once under one number.
            unsafe { run.blocks(scratch.at(worker * bytes), task * each, (task * each + each).min(group.n)) };
        });
        Ok(())
    }
}

/// A group that runs: threads take blocks of it, each with scratch memory of its own.
struct Run<'a> {
    blocks: &'a Blocks,
    group: &'a Group,
    slots: &'a [*mut u8],
}
// SAFETY: blocks read what nobody writes and write disjoint parts of the results.
unsafe impl Sync for Run<'_> {}

impl Run<'_> {
    fn register(&self, scratch: *mut u8, r: u32) -> *mut u8 {
        scratch.wrapping_add(r as usize * self.group.register_bytes)
    }

    /// Spreads the scalars over their registers.
    unsafe fn fill(&self, scratch: *mut u8) {
        let filled = self.group.n.min(self.group.block);
        for fill in &self.blocks.fills[self.group.fills.0 as usize..self.group.fills.1 as usize] {
            let (value, to) = (self.slots[fill.slot as usize], self.register(scratch, fill.register));
            // SAFETY: the register holds a block, the slot one element of this size.
            by_size!(fill.size, T => unsafe {
                std::slice::from_raw_parts_mut(to.cast::<T>(), filled).fill(*value.cast::<T>());
            });
        }
    }

    /// Runs the elements from `start` to `end`, block by block.
    unsafe fn blocks(&self, scratch: *mut u8, mut start: usize, end: usize) {
        let address = |r: &Ref, start: usize| {
            if r.register {
                self.register(scratch, r.index)
            } else {
                self.slots[r.index as usize].wrapping_add(start * r.step as usize)
            }
        };
        let ops = &self.blocks.ops[self.group.ops.0 as usize..self.group.ops.1 as usize];
        while start < end {
            let len = (end - start).min(self.group.block);
            for op in ops {
                let refs = &self.blocks.refs[op.args as usize..(op.args + op.count) as usize];
                let out = address(&op.out, start);
                // SAFETY: the planner gave every operand and result memory for `n` elements, and a result is
                // never in memory that one of its operands reads.
                unsafe {
                    match refs {
                        [x] => {
                            let x = address(x, start).cast_const();
                            (op.kernel)(&raw const x, out, len, op.imm);
                        }
                        [x, y] => {
                            let xs = [address(x, start).cast_const(), address(y, start).cast_const()];
                            (op.kernel)(xs.as_ptr(), out, len, op.imm);
                        }
                        _ => {
                            let xs: SmallVec<[*const u8; 4]> =
                                refs.iter().map(|r| address(r, start).cast_const()).collect();
                            (op.kernel)(xs.as_ptr(), out, len, op.imm);
                        }
                    }
                }
            }
            start += len;
        }
    }
}
