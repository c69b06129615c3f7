//! Groups of elementwise nodes: how they become micro-operations, and how they run.
//!
//! A group's nodes have one size. It runs in blocks of at most 4 KB a register: each node's kernel reads
//! operands from memory or registers and leaves its result in a register, or in memory where later steps need
//! it. Intermediate arrays never exist. Threads take some blocks at a time, of large groups.

use crate::exec::Frame;
use crate::kernel::{Kernel, by_size};
use crate::plan::{NONE, Planner};
use crate::pool;
use crate::program::{Fill, Group, MicroOp, Program, Ref};
use ferrax_base::{Buffer, Result};
use ferrax_loops::Node;
use smallvec::SmallVec;

/// Blocks that a thread takes at a time.
const BLOCKS: usize = 8;

/// Tables of the planner that groups use, indexed by root and valid where the stamp is the group's.
pub(crate) struct Scratch {
    stamp: Vec<u32>,
    register: Vec<u32>,
    last: Vec<u32>,
    free: Vec<u32>,
    used: u32,
    fills_from: u32,
    /// Roots whose memory a result of the group takes over at the end of each block.
    taken: Vec<u32>,
}

impl Scratch {
    pub fn new(roots: usize) -> Self {
        Scratch {
            stamp: vec![NONE; roots],
            register: vec![NONE; roots],
            last: vec![0; roots],
            free: Vec::new(),
            used: 0,
            fills_from: 0,
            taken: Vec::new(),
        }
    }

    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

fn register(index: u32) -> Ref {
    Ref { index, step: 0, register: true }
}

impl Planner<'_> {
    /// Appends the micro-operations of the nodes `members[start..end]`.
    pub fn emit_group(&mut self, s: u32, start: u32, end: u32, n: usize) -> Result<()> {
        let first_op = self.out.ops.len() as u32;
        self.group.fills_from = self.out.fills.len() as u32;
        self.group.used = 0;
        self.group.free.clear();
        for at in start..end {
            let node = &self.g.nodes[self.order.members[at as usize].node as usize];
            for &v in &node.inputs {
                self.group.last[self.order.plain_place(v).root as usize] = at;
            }
        }
        let mut size = 1;
        let mut late_copies: SmallVec<[MicroOp; 2]> = SmallVec::new();
        for at in start..end {
            let g = self.g;
            let node = &g.nodes[self.order.members[at as usize].node as usize];
            size = size.max(self.emit_elementwise(s, at, n, node, &mut late_copies)?);
        }
        self.out.ops.extend_from_slice(&late_copies);
        for x in std::mem::take(&mut self.group.taken) {
            self.slot[x as usize] = NONE;
        }
        let (register_bytes, block) = Self::registers(n, size);
        let group = Group {
            ops: (first_op, self.out.ops.len() as u32),
            fills: (self.group.fills_from, self.out.fills.len() as u32),
            n,
            block,
            register_bytes,
        };
        self.push_group(group, self.group.used as usize);
        Ok(())
    }

    /// One node; gives the largest element it touches, in bytes.
    fn emit_elementwise(
        &mut self,
        s: u32,
        at: u32,
        n: usize,
        node: &Node,
        late_copies: &mut SmallVec<[MicroOp; 2]>,
    ) -> Result<usize> {
        let plan = self.resolve(node)?;
        let mut temporaries: SmallVec<[u32; 3]> = SmallVec::new();
        let mut args: SmallVec<[Ref; 3]> = SmallVec::new();
        let mut size = plan.wide_size.max(plan.raw_size);
        for (i, &v) in node.inputs.iter().enumerate() {
            let element = self.g.ty(v).dtype.size();
            size = size.max(element);
            let mut arg = self.operand(s, n, v, element);
            if let Some(widen) = plan.widen.filter(|_| i >= plan.first_wide) {
                let wide = self.group.take();
                temporaries.push(wide);
                self.push_op(widen, 0, &[arg], register(wide));
                arg = register(wide);
            }
            args.push(arg);
        }
        let root = node.first.0;
        let out_size = self.g.ty(node.first).dtype.size();
        size = size.max(out_size);
        let target = self.target(s, root, n, out_size, node, late_copies);
        match plan.narrow {
            None => self.push_op(plan.kernel, plan.imm, &args, target),
            Some(narrow) => {
                let raw = self.group.take();
                temporaries.push(raw);
                self.push_op(plan.kernel, plan.imm, &args, register(raw));
                self.push_op(narrow, 0, &[register(raw)], target);
            }
        }
        self.group.free.extend(temporaries);
        for &v in &node.inputs {
            let x = self.order.plain_place(v).root as usize;
            // Registers of values made here are free after their last use; filled ones stay for every block.
            if self.group.stamp[x] == s && self.group.last[x] == at && self.group.register[x] != NONE {
                self.group.free.push(self.group.register[x]);
                self.group.register[x] = NONE;
            }
        }
        Ok(size)
    }

    fn push_op(&mut self, kernel: Kernel, imm: u64, args: &[Ref], out: Ref) {
        let first = self.out.refs.len() as u32;
        self.out.refs.extend_from_slice(args);
        self.out.ops.push(MicroOp { kernel, imm, args: first, count: args.len() as u32, out });
    }

    fn operand(&mut self, s: u32, n: usize, v: ferrax_loops::ValueId, element: usize) -> Ref {
        let place = self.order.plain_place(v);
        let root = place.root as usize;
        let scalar = n > 1 && (place.is_splat() || self.g.ty(v).size() == 1);
        if self.group.stamp[root] == s && self.group.register[root] != NONE {
            return register(self.group.register[root]);
        }
        let slot = self.slot[root];
        if !scalar {
            return Ref { index: slot, step: element as u8, register: false };
        }
        // A register of its own for the whole group.
        let r = self.group.used;
        self.group.used += 1;
        self.group.stamp[root] = s;
        self.group.register[root] = r;
        self.group.last[root] = NONE;
        self.out.fills.push(Fill { slot, register: r, size: element as u8 });
        register(r)
    }

    /// Where a node's result goes: a register, memory, or a register copied to memory at the end of the block
    /// where the memory is a dying operand's that others of the group may still read.
    fn target(
        &mut self,
        s: u32,
        root: u32,
        n: usize,
        element: usize,
        node: &Node,
        late_copies: &mut SmallVec<[MicroOp; 2]>,
    ) -> Ref {
        if !self.outlives(root, s) {
            let r = self.group.take();
            self.group.stamp[root as usize] = s;
            self.group.register[root as usize] = r;
            return register(r);
        }
        let candidates: SmallVec<[u32; 3]> = node
            .inputs
            .iter()
            .map(|&v| (self.order.plain_place(v), self.g.ty(v).size()))
            .filter(|(p, size)| !p.is_splat() && *size == n && self.group.stamp[p.root as usize] != s)
            .map(|(p, _)| p.root)
            .filter(|x| !self.group.taken.contains(x))
            .collect();
        let before = self.slot_of(&candidates);
        let slot = self.new_slot(s, root, n * element, &candidates);
        let memory = Ref { index: slot, step: element as u8, register: false };
        let Some(at) = before.iter().position(|&b| b == slot) else { return memory };
        // The rest of the group still reads the operand there.
        self.slot[candidates[at] as usize] = slot;
        self.group.taken.push(candidates[at]);
        let r = self.group.take();
        self.group.stamp[root as usize] = s;
        self.group.register[root as usize] = r;
        self.group.last[root as usize] = NONE;
        let first = self.out.refs.len() as u32;
        self.out.refs.push(register(r));
        let kernel = crate::convert::copy(element);
        late_copies.push(MicroOp { kernel, imm: 0, args: first, count: 1, out: memory });
        register(r)
    }

    fn slot_of(&self, roots: &[u32]) -> SmallVec<[u32; 3]> {
        roots.iter().map(|&r| self.slot[r as usize]).collect()
    }
}

/// A group that runs: threads take blocks of it, each with scratch memory of its own.
struct Run<'a> {
    program: &'a Program,
    group: &'a Group,
    ptrs: &'a [*mut u8],
}
// SAFETY: blocks read what nobody writes and write disjoint parts of the results.
unsafe impl Sync for Run<'_> {}

/// The scratch memory of all threads.
struct Memory(*mut u8);
// SAFETY: threads have parts of their own.
unsafe impl Sync for Memory {}

impl Memory {
    fn of(&self, worker: usize, bytes: usize) -> *mut u8 {
        self.0.wrapping_add(worker * bytes)
    }
}

impl Run<'_> {
    fn register(&self, scratch: *mut u8, r: u32) -> *mut u8 {
        scratch.wrapping_add(r as usize * self.group.register_bytes)
    }

    /// Spreads the scalars over their registers.
    unsafe fn fill(&self, scratch: *mut u8) {
        let filled = self.group.n.min(self.group.block);
        for fill in &self.program.fills[self.group.fills.0 as usize..self.group.fills.1 as usize] {
            let (value, to) = (self.ptrs[fill.slot as usize], self.register(scratch, fill.register));
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
                self.ptrs[r.index as usize].wrapping_add(start * r.step as usize)
            }
        };
        let ops = &self.program.ops[self.group.ops.0 as usize..self.group.ops.1 as usize];
        while start < end {
            let len = (end - start).min(self.group.block);
            for op in ops {
                let refs = &self.program.refs[op.args as usize..(op.args + op.count) as usize];
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

impl Frame {
    /// Runs a group, on several threads where it is worth it.
    ///
    /// # Safety
    /// The frame's pointers must be those of a run of `program`.
    pub unsafe fn run_group(&self, program: &Program, group: &Group) -> Result<()> {
        let run = Run { program, group, ptrs: &self.ptrs };
        let each = BLOCKS * group.block;
        let time = group.n as u64 * u64::from(group.ops.1 - group.ops.0) / 2;
        if group.n <= each || !pool::worth(time) {
            // SAFETY: the frame's scratch memory holds the registers of every group.
            unsafe {
                run.fill(self.scratch);
                run.blocks(self.scratch, 0, group.n);
            }
            return Ok(());
        }
        let bytes = program.scratch_bytes.next_multiple_of(64);
        let mut held = Buffer::allocate(bytes * pool::threads())?;
        let memory = Memory(held.as_mut_ptr());
        for worker in 0..pool::threads() {
            // SAFETY: each thread has memory for the registers of every group.
            unsafe { run.fill(memory.of(worker, bytes)) };
        }
        let (run, memory) = (&run, &memory);
        pool::share(time, group.n.div_ceil(each), &|worker, task| {
            // SAFETY: as above; no two tasks run at once under one number.
            unsafe { run.blocks(memory.of(worker, bytes), task * each, (task * each + each).min(group.n)) };
        });
        Ok(())
    }
}
