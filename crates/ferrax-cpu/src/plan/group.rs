//! How a group of elementwise nodes becomes micro-operations.
//!
//! Read next: `fused/blocks.rs` for what they are and how they run.

use crate::elementwise::kernel::Kernel;
use crate::fused::blocks::{Fill, Group, MicroOp, Ref};
use crate::plan::{NONE, Planner};
use ferrax_base::{DType, Result};
use ferrax_loops::Node;
use smallvec::SmallVec;

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

/// What an element takes a micro-operation, in picoseconds, and what it takes one on complex numbers that is not simple.
const CALL: u64 = 500;
const COMPLEX: u64 = 4000;

fn register(index: u32) -> Ref {
    Ref { index, step: 0, register: true }
}

impl Planner<'_> {
    /// Appends the micro-operations of the nodes `members[start..end]`.
    pub fn emit_group(&mut self, s: u32, start: u32, end: u32, n: usize) -> Result<()> {
        let first_op = self.out.blocks.ops.len() as u32;
        self.group.fills_from = self.out.blocks.fills.len() as u32;
        self.group.used = 0;
        self.group.free.clear();
        for at in start..end {
            let node = &self.g.nodes[self.order.members[at as usize].node as usize];
            for &v in &node.inputs {
                self.group.last[self.order.plain_place(v).root as usize] = at;
            }
        }
        let (mut size, mut cost) = (1, 0);
        let mut late_copies: SmallVec<[MicroOp; 2]> = SmallVec::new();
        for at in start..end {
            let g = self.g;
            let node = &g.nodes[self.order.members[at as usize].node as usize];
            let dtype = node.inputs.first().map_or(DType::Bool, |&v| g.ty(v).dtype);
            cost += match node.kind.cost() * dtype.size() as u64 / 4 {
                _ if dtype.is_complex() && !node.kind.is_cheap() => COMPLEX,
                cost => cost,
            };
            size = size.max(self.emit_elementwise(s, at, n, node, &mut late_copies)?);
        }
        self.out.blocks.ops.extend_from_slice(&late_copies);
        for x in std::mem::take(&mut self.group.taken) {
            self.slot[x as usize] = NONE;
        }
        let (register_bytes, block) = Self::registers(n, size);
        let group = Group {
            ops: (first_op, self.out.blocks.ops.len() as u32),
            fills: (self.group.fills_from, self.out.blocks.fills.len() as u32),
            n,
            block,
            register_bytes,
            cost: cost + CALL * (self.out.blocks.ops.len() as u64 - u64::from(first_op)),
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
        let first = self.out.blocks.refs.len() as u32;
        self.out.blocks.refs.extend_from_slice(args);
        self.out.blocks.ops.push(MicroOp { kernel, imm, args: first, count: args.len() as u32, out });
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
        self.out.blocks.fills.push(Fill { slot, register: r, size: element as u8 });
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
        let first = self.out.blocks.refs.len() as u32;
        self.out.blocks.refs.push(register(r));
        let kernel = crate::elementwise::convert::copy(element);
        late_copies.push(MicroOp { kernel, imm: 0, args: first, count: 1, out: memory });
        register(r)
    }

    fn slot_of(&self, roots: &[u32]) -> SmallVec<[u32; 3]> {
        roots.iter().map(|&r| self.slot[r as usize]).collect()
    }
}
