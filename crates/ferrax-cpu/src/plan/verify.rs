//! What a plan promises, verified step by step: under checks, before a program is run.
//!
//! A value is written whole, where nothing else lives, before it is read; views stay inside the memory that they look
//! at; every output is there at the end. Memory is modelled as stretches of bytes, each with the slot that wrote it
//! last: a read finds nothing but what its own slot wrote. So two values whose lives overlap in the arena, a
//! dense copy that is too short, or a step in the wrong place are errors of the plan, not wrong numbers. What kernels do
//! inside their own memory is seen by the patterns that runs fill it with (`ferrax_base::checks`).
//! Read next: `plan/mod.rs`, `run/frame.rs`, `fused/region/touches.rs`.

use crate::library::touch::{See, Touch, read_span, write_span};
use crate::plan::NONE;
use crate::program::{OutputPlace, Program, SlotInit, Step};
use ferrax_base::{Result, bail};
use ferrax_loops::ValueId;
use std::collections::BTreeMap;

/// Whether a program keeps its promises; the error says which step does not.
///
/// A program that allocates more than can be addressed ends at that allocation: the places beyond it wrap, and nothing
/// is promised of them.
pub(crate) fn verify(program: &Program) -> Result<()> {
    if program.steps.iter().any(|s| matches!(s, Step::Alloc { bytes, .. } if *bytes > isize::MAX as usize)) {
        return Ok(());
    }
    let mut memory = Memory::new(program);
    for (k, step) in program.steps.iter().enumerate() {
        memory.step(program, step).map_err(|e| fault(program, &format!("step {k}: {e}")))?;
    }
    for (k, (place, &bytes)) in program.outputs.iter().zip(&program.bytes.1).enumerate() {
        let slot = match place {
            OutputPlace::Given => (program.graph.params + k) as u32,
            OutputPlace::Param(slot) => *slot,
        };
        memory.touch(Touch::read(slot, bytes)).map_err(|e| fault(program, &format!("output {k}: {e}")))?;
    }
    Ok(())
}

fn fault(program: &Program, what: &str) -> ferrax_base::Error {
    ferrax_base::error!(Internal, "a plan of the CPU engine breaks its promises: {what}\n{}", program.kernels())
}

/// The memory of a slot: a space, the slot's first byte there, and its bytes.
#[derive(Clone, Copy)]
struct Room {
    space: u32,
    at: usize,
    bytes: usize,
}

/// All memory of a run.
struct Memory {
    rooms: Vec<Option<Room>>,
    /// Of each space the stretches that are written: where one begins, where it ends, and by which slot.
    spaces: Vec<BTreeMap<usize, (usize, u32)>>,
}

/// The space of all slots in the arena.
const ARENA: u32 = 0;

impl Memory {
    fn new(program: &Program) -> Memory {
        let mut memory = Memory { rooms: Vec::new(), spaces: vec![BTreeMap::new()] };
        program.bytes.0.iter().for_each(|&bytes| memory.give(bytes, true));
        program.bytes.1.iter().for_each(|&bytes| memory.give(bytes, false));
        for init in &program.inits {
            match init {
                SlotInit::Constant(at) => memory.give(program.constants.len() - at, true),
                SlotInit::Dense(bytes) => memory.give(bytes.len(), true),
                SlotInit::Arena(at) => {
                    memory.rooms.push(Some(Room { space: ARENA, at: *at, bytes: program.arena_bytes - at }));
                }
                SlotInit::Heap => memory.rooms.push(None),
            }
        }
        memory
    }

    /// A further slot with memory of its own.
    fn give(&mut self, bytes: usize, written: bool) {
        let slot = self.rooms.len() as u32;
        self.rooms.push(Some(Room { space: self.spaces.len() as u32, at: 0, bytes }));
        self.spaces.push(if written { BTreeMap::from([(0, (bytes, slot))]) } else { BTreeMap::new() });
    }

    fn step(&mut self, program: &Program, step: &Step) -> Result<()> {
        match *step {
            Step::Alloc { slot, bytes } => {
                self.rooms[slot as usize] = Some(Room { space: self.spaces.len() as u32, at: 0, bytes });
                self.spaces.push(BTreeMap::new());
                Ok(())
            }
            Step::Free { slot } => {
                self.rooms[slot as usize] = None;
                Ok(())
            }
            Step::Dead { slot, bytes } => {
                if let Some(Room { space, at, .. }) = self.rooms[slot as usize] {
                    cut(&mut self.spaces[space as usize], at, at + bytes);
                }
                Ok(())
            }
            Step::Together { ref steps, .. } => steps.iter().try_for_each(|s| self.step(program, s)),
            _ => touches(program, step, &mut |t| self.touch(t)),
        }
    }

    fn touch(&mut self, t: Touch) -> Result<()> {
        let Touch { slot, from, end, write } = t;
        let Some(Some(Room { space, at, bytes })) = self.rooms.get(slot as usize).copied() else {
            bail!(Internal, "slot {slot} has no memory");
        };
        if from >= end {
            return Ok(());
        }
        if from < 0 || end as usize > bytes {
            bail!(Internal, "bytes {from} to {end} of slot {slot}, which has {bytes}");
        }
        let (from, end) = (at + from as usize, at + end as usize);
        let space = &mut self.spaces[space as usize];
        if write {
            cut(space, from, end);
            space.insert(from, (end, slot));
            return Ok(());
        }
        let mut at = from;
        while at < end {
            match space.range(..=at).next_back() {
                Some((_, &(to, owner))) if to > at && owner == slot => at = to,
                Some((_, &(to, owner))) if to > at => {
                    bail!(Internal, "slot {slot} is read where slot {owner} was written");
                }
                _ => bail!(Internal, "slot {slot} is read at {} before it is written", at - (from - t.from as usize)),
            }
        }
        Ok(())
    }
}

/// Takes a stretch out of those that are written.
fn cut(space: &mut BTreeMap<usize, (usize, u32)>, from: usize, end: usize) {
    let over: Vec<(usize, (usize, u32))> =
        space.range(..end).rev().take_while(|(_, (to, _))| *to > from).map(|(&a, &b)| (a, b)).collect();
    for (start, (to, owner)) in over {
        space.remove(&start);
        if start < from {
            space.insert(start, (from, owner));
        }
        if to > end {
            space.insert(end, (to, owner));
        }
    }
}

/// What a step reads and writes, in an order in which it may.
fn touches(program: &Program, step: &Step, see: See<'_>) -> Result<()> {
    let g = &*program.graph;
    let bytes = |v: ValueId| g.ty(v).bytes();
    match step {
        Step::Group(group) => {
            for fill in &program.blocks.fills[group.fills.0 as usize..group.fills.1 as usize] {
                see(Touch::read(fill.slot, fill.size as usize))?;
            }
            for op in &program.blocks.ops[group.ops.0 as usize..group.ops.1 as usize] {
                for r in
                    program.blocks.refs[op.args as usize..(op.args + op.count) as usize].iter().filter(|r| !r.register)
                {
                    see(Touch::read(r.index, group.n * r.step as usize))?;
                }
                if !op.out.register {
                    see(Touch::write(op.out.index, group.n * op.out.step as usize))?;
                }
            }
        }
        Step::Leaf { .. } | Step::Control { .. } | Step::Registers { .. } => {
            let Some((node, slots)) = step.slots(program) else { return Ok(()) };
            let node = &g.nodes[node as usize];
            for (&v, &slot) in node.inputs.iter().zip(slots) {
                see(Touch::read(slot, bytes(v)))?;
            }
            for (v, &slot) in node.outputs().zip(&slots[node.inputs.len()..]) {
                see(Touch::write(slot, bytes(v)))?;
            }
        }
        Step::Move { moved, .. } => moved.touches(see)?,
        &Step::Copy { src, dst, bytes } => {
            see(Touch::read(src, bytes))?;
            see(Touch::write(dst, bytes))?;
        }
        &Step::Splat { src, dst, size, n } => {
            see(Touch::read(src, if n > 0 { size as usize } else { 0 }))?;
            see(Touch::write(dst, n * size as usize))?;
        }
        &Step::Rows { src, dst, size, n, inner } => {
            see(Touch::read(src, n / inner * size as usize))?;
            see(Touch::write(dst, n * size as usize))?;
        }
        &Step::Repeat { src, dst, size, n, len } => {
            see(Touch::read(src, len.min(n) * size as usize))?;
            see(Touch::write(dst, n * size as usize))?;
        }
        Step::View { src, dst, copy, .. } => {
            let [from, to] = copy.spans();
            read_span(*src, &from, see)?;
            write_span(*dst, &to, see)?;
        }
        Step::Tiles(index) => {
            let (reads, writes) = program.tiles[*index as usize].streams();
            reads.iter().try_for_each(|s| see(Touch::read(s.slot, s.bytes)))?;
            writes.iter().try_for_each(|s| see(Touch::write(s.slot, s.bytes)))?;
        }
        Step::Product { slots, node, after, .. } => {
            let node = &g.nodes[*node as usize];
            see(Touch::read(slots[0], bytes(node.inputs[0])))?;
            see(Touch::read(slots[1], bytes(node.inputs[1])))?;
            see(Touch::write(slots[2], bytes(node.first)))?;
            if *after != NONE {
                program.regions.touches(*after, see)?;
            }
        }
        Step::Accumulate(index) => {
            let sum = &program.sums[*index as usize];
            let ([a, b, c, to], dot) = (sum.slots(), &g.nodes[sum.dot as usize]);
            see(Touch::read(a, bytes(dot.inputs[0])))?;
            see(Touch::read(b, bytes(dot.inputs[1])))?;
            see(Touch::read(c, bytes(dot.first)))?;
            see(Touch::write(to, bytes(dot.first)))?;
        }
        Step::Region(index) => program.regions.touches(*index, see)?,
        Step::Alloc { .. } | Step::Free { .. } | Step::Dead { .. } | Step::Together { .. } => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrax_base::DType;
    use ferrax_loops::{Builder, Kind, ReduceOp, Type, UnaryOp};
    use std::sync::Arc;

    /// Running sums of -x, from both ends: values in the arena, one of them dead before the end.
    fn program() -> Program {
        let ty = Type::new(DType::F32, &[40]);
        let mut b = Builder::new([ty.clone()]);
        let x = b.params().next().unwrap();
        let y = b.unary(UnaryOp::Neg, x);
        let z = b.push(Kind::Cumulative { op: ReduceOp::Sum, axis: 0, reverse: false }, &[y], ty.clone());
        let w = b.unary(UnaryOp::Neg, z);
        let out = b.push(Kind::Cumulative { op: ReduceOp::Sum, axis: 0, reverse: true }, &[w], ty);
        let mut program = Program::compile(Arc::new(b.finish(&[out]))).unwrap();
        // The same steps whether checks are on or not.
        program.steps.retain(|step| !matches!(step, Step::Dead { .. }));
        program
    }

    fn refusal(program: &Program) -> String {
        verify(program).expect_err("the plan is broken").to_string()
    }

    #[test]
    fn whole_plans_pass() {
        verify(&program()).unwrap();
    }

    #[test]
    fn a_missing_step_a_short_write_and_a_shared_place_are_found() {
        let mut p = program();
        p.steps.remove(0);
        assert!(refusal(&p).contains("before it is written"), "{}", refusal(&p));
        let mut p = program();
        p.steps.pop();
        assert!(refusal(&p).contains("output 0"), "{}", refusal(&p));
        let mut p = program();
        p.bytes.0[0] = 100;
        assert!(refusal(&p).contains("which has 100"), "{}", refusal(&p));
        let mut p = program();
        let first = p.graph.params + p.outputs.len();
        let arena: Vec<usize> =
            (0..p.inits.len()).filter(|&k| matches!(p.inits[k], SlotInit::Arena(_))).map(|k| k + first).collect();
        p.steps.insert(1, Step::Copy { src: 0, dst: arena[0] as u32, bytes: 160 });
        verify(&p).unwrap();
        p.inits.push(SlotInit::Arena(16));
        let other = (first + p.inits.len() - 1) as u32;
        p.steps.insert(1, Step::Copy { src: 0, dst: other, bytes: 8 });
        p.steps.swap(1, 2);
        assert!(refusal(&p).contains("was written"), "{}", refusal(&p));
    }
}
