//! Running a program: a frame of slot addresses, and the loop over steps.
//!
//! A run is given the addresses of its parameters and outputs; everything else is in the frame, which a loop
//! keeps from one iteration to the next.

use super::{control, leaf};
use crate::elementwise::kernel::{In, Out, by_size};
use crate::fused::{Memory, NONE};
use crate::library::movement;
use crate::pool;
use crate::program::{OutputPlace, Program, SlotInit, Step};
use ferrax_base::{Buffer, Result, bail, checks};
use smallvec::SmallVec;

/// The memory of a run.
pub(crate) struct Frame {
    /// The address of each slot.
    pub ptrs: SmallVec<[*mut u8; 32]>,
    /// Registers of groups.
    pub scratch: *mut u8,
    /// Memory of groups in registers.
    pub tiles: *mut u8,
    /// Factors of sums that wait, and how many each has.
    kept: *mut u8,
    waiting: SmallVec<[usize; 2]>,
    /// Heap blocks, by slot.
    heap: SmallVec<[(u32, Buffer); 4]>,
    /// The arena, the memory of groups in registers, the registers of other groups, what waits.
    held: Option<Buffer>,
}

impl Frame {
    /// A frame for runs of `program`.
    pub fn new(program: &Program) -> Result<Frame> {
        let mut frame = Frame::empty();
        frame.prepare(program)?;
        Ok(frame)
    }

    /// A frame that has to be prepared. Small programs take less time than a move of their frame would.
    #[inline]
    pub fn empty() -> Frame {
        let nowhere = std::ptr::null_mut();
        Frame {
            ptrs: SmallVec::new(),
            scratch: nowhere,
            tiles: nowhere,
            kept: nowhere,
            waiting: SmallVec::new(),
            heap: SmallVec::new(),
            held: None,
        }
    }

    /// Gives an empty frame what runs of `program` need.
    pub fn prepare(&mut self, program: &Program) -> Result<()> {
        let own = program.graph.params + program.outputs.len();
        let arena = program.arena_bytes.next_multiple_of(64);
        let scratch = program.scratch_bytes.next_multiple_of(64);
        let bytes = arena + program.tiles_bytes + scratch + program.kept_bytes;
        let mut base = std::ptr::null_mut();
        if bytes > 0 {
            base = self.held.insert(Buffer::allocate(bytes)?).as_mut_ptr();
        }
        self.ptrs.reserve(own + program.inits.len());
        self.ptrs.resize(own, std::ptr::null_mut());
        self.ptrs.extend(program.inits.iter().map(|init| match init {
            SlotInit::Constant(at) => program.constants.as_ptr().wrapping_add(*at).cast_mut(),
            SlotInit::Dense(bytes) => bytes.as_ptr().cast_mut(),
            SlotInit::Arena(at) => base.wrapping_add(*at),
            SlotInit::Heap => std::ptr::null_mut(),
        }));
        self.tiles = base.wrapping_add(arena);
        // SAFETY: the memory is this program's.
        program.tiles.iter().for_each(|t| unsafe { t.prepare(self.tiles) });
        self.scratch = self.tiles.wrapping_add(program.tiles_bytes);
        self.kept = self.scratch.wrapping_add(scratch);
        self.waiting.resize(program.sums.len(), 0);
        Ok(())
    }

    /// Runs the program.
    ///
    /// # Safety
    /// As for `again`, with these addresses.
    pub unsafe fn exec(&mut self, program: &Program, ins: &[*mut u8], outs: &[*mut u8]) -> Result<()> {
        self.ptrs[..ins.len()].copy_from_slice(ins);
        self.ptrs[ins.len()..ins.len() + outs.len()].copy_from_slice(outs);
        // SAFETY: the caller's contract.
        unsafe { self.again(program) }
    }

    /// Sets the addresses of parameters, or of outputs, which come after them, from the slot `first` on.
    #[inline]
    pub fn set(&mut self, first: usize, addresses: impl Iterator<Item = *mut u8>) {
        self.ptrs[first..].iter_mut().zip(addresses).for_each(|(slot, address)| *slot = address);
    }

    /// Runs the program with the addresses that were set.
    ///
    /// # Safety
    /// The frame must be of this program, and all its addresses set. Parameters must be valid for reads of their bytes, and for
    /// writes where the program writes them; outputs valid for writes of theirs. They must not
    /// overlap, but for outputs that the program places in a parameter, which must be the same address.
    pub unsafe fn again(&mut self, program: &Program) -> Result<()> {
        let checked = checks::on();
        if checked {
            // SAFETY: the caller's contract; nothing of the last run is needed.
            unsafe { self.poison(program) };
        }
        let result = program.steps.iter().try_for_each(|step| {
            // SAFETY: the caller's contract; slots beyond are set by `new` and by allocation steps. The scratch memory
            // is a step's own.
            unsafe {
                if checked {
                    checks::poison(self.scratch, program.scratch_bytes);
                }
                self.step(program, step)
            }
        });
        self.heap.clear();
        result
    }

    /// Fills what a run has to write before it reads it: outputs and the arena.
    unsafe fn poison(&self, program: &Program) {
        let outs = &self.ptrs[program.graph.params..];
        for ((&out, &bytes), place) in outs.iter().zip(&program.bytes.1).zip(&program.outputs) {
            if *place == OutputPlace::Given {
                // SAFETY: the caller's contract.
                unsafe { checks::poison(out, bytes) };
            }
        }
        // SAFETY: the frame was prepared for the program.
        unsafe {
            checks::poison(self.tiles.wrapping_sub(program.arena_bytes.next_multiple_of(64)), program.arena_bytes);
        }
    }

    /// Does what runs have put off.
    ///
    /// # Safety
    /// As for the runs, the last of which must have been with the same addresses of what it puts in place.
    pub unsafe fn catch_up(&mut self, program: &Program) {
        for (sum, waiting) in program.sums.iter().zip(&mut self.waiting) {
            // SAFETY: the caller's contract.
            unsafe { sum.catch_up(&self.ptrs, self.kept, waiting) };
        }
    }

    unsafe fn step(&mut self, program: &Program, step: &Step) -> Result<()> {
        // SAFETY: the planner emits steps whose slots hold memory of the sizes it says at that point.
        unsafe {
            match step {
                Step::Group(group) => {
                    let memory = Memory { slots: &self.ptrs, scratch: self.scratch, bytes: program.scratch_bytes };
                    program.blocks.run(group, memory)?;
                }
                Step::Move { moved, .. } => moved.run(&self.ptrs),
                Step::Leaf { .. } | Step::Control { .. } | Step::Registers { .. } => return self.node(program, step),
                Step::Alloc { slot, bytes } => {
                    let mut block = Buffer::allocate(*bytes)?;
                    self.ptrs[*slot as usize] = block.as_mut_ptr();
                    self.heap.push((*slot, block));
                }
                Step::Free { slot } => {
                    if let Some(at) = self.heap.iter().position(|h| h.0 == *slot) {
                        self.heap.swap_remove(at);
                    }
                }
                Step::Dead { slot, bytes } => checks::poison(self.ptrs[*slot as usize], *bytes),
                Step::Copy { src, dst, bytes } => {
                    let (src, dst) = (self.ptrs[*src as usize], self.ptrs[*dst as usize]);
                    std::ptr::copy_nonoverlapping(src, dst, *bytes);
                }
                Step::Splat { src, dst, size, n } => {
                    let (src, dst) = (self.ptrs[*src as usize], self.ptrs[*dst as usize]);
                    by_size!(*size, T => std::slice::from_raw_parts_mut(dst.cast::<T>(), *n).fill(*src.cast::<T>()));
                }
                Step::Rows { src, dst, size, n, inner } => {
                    movement::repeat_each(
                        *size,
                        (self.ptrs[*src as usize], 1),
                        self.ptrs[*dst as usize],
                        n / inner,
                        *inner,
                    );
                }
                Step::Repeat { src, dst, size, n, len } => {
                    movement::repeat_all(*size, self.ptrs[*src as usize], self.ptrs[*dst as usize], *len, n / len);
                }
                Step::View { src, dst, copy, .. } => copy.run(self.ptrs[*src as usize], self.ptrs[*dst as usize]),
                Step::Tiles(index) => program.tiles[*index as usize].run(self.tiles, &self.ptrs),
                Step::Accumulate(index) => {
                    let index = *index as usize;
                    program.sums[index].run(&self.ptrs, self.kept, &mut self.waiting[index]);
                }
                Step::Product { index, slots, after, .. } => {
                    let [a, b, out] = slots.map(|s| self.ptrs[s as usize]);
                    let product = &program.products[*index as usize];
                    match *after {
                        NONE => product.run(a, b, out)?,
                        region => {
                            let at = (&self.ptrs[..], self.scratch);
                            program.regions.run_after(region, at, &|after| product.run_rows((a, b, out), after))?;
                        }
                    }
                }
                Step::Together { steps, time } => self.together(program, steps, *time)?,
                Step::Region(region) => program.regions.run(*region, &self.ptrs, self.scratch)?,
            }
        }
        Ok(())
    }

    /// Runs a node of its own, which changes nothing of the frame.
    unsafe fn node(&self, program: &Program, step: &Step) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe {
            match step {
                Step::Leaf { node, args, known } => self.leaf(program, *node, *args, *known),
                Step::Control { node, args, sub } => control::run(self, program, *node, *args, *sub),
                Step::Registers { node, args, index } => {
                    let node = &program.graph.nodes[*node as usize];
                    let slots = &program.slots[*args as usize..];
                    let slots = &slots[..node.inputs.len() + node.results as usize];
                    // Written where they are read: what moves them waits for the writes.
                    let mut pointers = SmallVec::<[*mut u8; 16]>::new();
                    pointers.extend(slots.iter().map(|&s| self.ptrs[s as usize]));
                    let (ins, outs) = pointers.split_at(node.inputs.len());
                    program.register_loops[*index as usize].run(ins, outs);
                    Ok(())
                }
                _ => bail!(Internal, "a step that is no node of its own"),
            }
        }
    }

    /// Runs nodes at the same time, each on one thread.
    unsafe fn together(&self, program: &Program, steps: &[Step], time: u64) -> Result<()> {
        let run = Together { frame: self, program, steps };
        // SAFETY: the caller's contract; no node writes what another one uses.
        pool::try_share(time, steps.len(), &|_, k| unsafe { run.step(k) })
    }

    unsafe fn leaf(&self, program: &Program, node: u32, args: u32, known: u32) -> Result<()> {
        let g = &*program.graph;
        let node = &g.nodes[node as usize];
        let slots = &program.slots[args as usize..];
        // SAFETY: slots hold memory of their values' types.
        let read = |(&v, &s): (_, &u32)| unsafe { In::new(self.ptrs[s as usize], g.ty(v)) };
        // SAFETY: as above; results have memory of their own, or an operand's where the node works in place.
        let write = |(v, &s): (_, &u32)| unsafe { Out::new(self.ptrs[s as usize], g.ty(v)) };
        let (mut ins, mut outs) = (SmallVec::<[In<'_>; 4]>::new(), SmallVec::<[Out<'_>; 2]>::new());
        ins.extend(node.inputs.iter().zip(slots).map(read));
        outs.extend(node.outputs().zip(&slots[node.inputs.len()..]).map(write));
        match program.known.get(known as usize) {
            Some(known) => known.run(&node.kind, &ins, &mut outs[0]),
            None => leaf::run(&node.kind, &ins, &mut outs),
        }
    }
}

/// Nodes that threads run at the same time.
struct Together<'a> {
    frame: &'a Frame,
    program: &'a Program,
    steps: &'a [Step],
}
// SAFETY: no node writes what another one uses, and none changes the frame.
unsafe impl Sync for Together<'_> {}

impl Together<'_> {
    unsafe fn step(&self, k: usize) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.frame.node(self.program, &self.steps[k]) }
    }
}
