//! Running regions: blocks of rows, or spans of one long row.

use super::{Phase, Reduce, Region, Regions};
use crate::exec::Frame;
use crate::machine::assemble::{Place, Src};
use crate::machine::{self, Isa, LANE, TILE, table};
use crate::movement;
use crate::plan::NONE;
use crate::pool;
use crate::program::Program;
use crate::reduce::{PIECE, Running};
use ferrax_base::{Buffer, DType, Result, error};
use smallvec::SmallVec;

/// A worker's view of a run: the slots, its scratch memory, and a pointer table.
struct Worker<'a> {
    isa: Isa,
    regions: &'a Regions,
    region: &'a Region,
    slots: &'a [*mut u8],
    scratch: *mut u8,
    table: SmallVec<[*mut u8; 24]>,
    states: SmallVec<[Running; 2]>,
}

/// Elements of a task of one long row: whole pieces, so that the states of reductions can be put together.
const SPAN: usize = 32 * PIECE;

impl Frame {
    /// Runs a region.
    ///
    /// # Safety
    /// The frame's pointers must be those of a run of `program`.
    pub unsafe fn run_region(&self, program: &Program, index: u32) -> Result<()> {
        let isa = machine::isa().ok_or_else(|| error!(Internal, "a region without a machine"))?;
        let regions = &program.regions;
        let region = &regions.list[index as usize];
        let slots = &self.ptrs[..];
        let (table, states) = (SmallVec::new(), SmallVec::new());
        let mut worker = Worker { isa, regions, region, slots, scratch: self.scratch, table, states };
        let rows = region.n / region.inner;
        let time = region.n as u64 * u64::from(region.cost) / 1000;
        let shared = pool::worth(time);
        // SAFETY: the planner gave every operand and result the memory that the phases reach, and the scratch
        // memory has what the region asks for. Workers have scratch memory of their own, and rows and spans that
        // no other has.
        unsafe {
            if shared && rows >= 2 * pool::threads() {
                return worker.share_rows(rows, time);
            }
            if shared && region.inner > SPAN {
                return worker.share_spans(rows, time);
            }
            for row in (0..rows).step_by(region.block) {
                worker.block(row, (row + region.block).min(rows));
            }
        }
        Ok(())
    }
}

/// A pointer that workers may hold: they use disjoint parts of what is behind it.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);
// SAFETY: see the type.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: see the type.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn at(self, i: usize) -> *mut T {
        self.0.wrapping_add(i)
    }
}

/// What workers have in common.
struct Common<'a> {
    isa: Isa,
    regions: &'a Regions,
    region: &'a Region,
    slots: &'a [*mut u8],
    scratch: Shared<u8>,
}
// SAFETY: workers write disjoint parts of the memory behind the slots.
unsafe impl Sync for Common<'_> {}

impl<'a> Common<'a> {
    /// The view of a worker.
    fn worker(&self, k: usize) -> Worker<'a> {
        Worker {
            isa: self.isa,
            regions: self.regions,
            region: self.region,
            slots: self.slots,
            scratch: self.scratch.at(k * self.region.scratch),
            table: SmallVec::new(),
            states: SmallVec::new(),
        }
    }
}

impl<'a> Worker<'a> {
    /// What other workers share, with scratch memory for all in the buffer.
    fn common(&self) -> Result<(Common<'a>, Buffer)> {
        let mut memory = Buffer::allocate(self.region.scratch * pool::threads())?;
        let scratch = Shared(memory.as_mut_ptr());
        let Worker { isa, regions, region, slots, .. } = *self;
        Ok((Common { isa, regions, region, slots, scratch }, memory))
    }

    /// Shares out blocks of rows.
    unsafe fn share_rows(&self, rows: usize, time: u64) -> Result<()> {
        let (common, _memory) = self.common()?;
        let block = self.region.block;
        let blocks = rows.div_ceil(block);
        let per_task = (blocks / (8 * pool::threads())).max(1);
        pool::share(time, blocks.div_ceil(per_task), &|k, task| {
            let mut worker = common.worker(k);
            for b in task * per_task..((task + 1) * per_task).min(blocks) {
                // SAFETY: the caller's contract.
                unsafe { worker.block(b * block, ((b + 1) * block).min(rows)) };
            }
        });
        Ok(())
    }

    /// Shares out spans of each row, phase by phase.
    unsafe fn share_spans(&mut self, rows: usize, time: u64) -> Result<()> {
        let (common, _memory) = self.common()?;
        let (regions, inner) = (self.regions, self.region.inner);
        for row in 0..rows {
            for phase in &regions.phases[self.region.phases.0 as usize..self.region.phases.1 as usize] {
                if phase.over_rows {
                    // SAFETY: the caller's contract.
                    unsafe { self.phase(phase, row, row + 1) };
                    continue;
                }
                let reduces = &regions.reduces[phase.reduces.0 as usize..phase.reduces.1 as usize];
                let spans = inner.div_ceil(SPAN);
                let mut states = vec![Running::new(); spans * reduces.len()];
                let parts = Shared(states.as_mut_ptr());
                pool::share(time / rows as u64, spans, &|k, span| {
                    let mut worker = common.worker(k);
                    let (from, end) = (span * SPAN, ((span + 1) * SPAN).min(inner));
                    worker.fill(phase, row, row);
                    // SAFETY: each span has states of its own; otherwise the caller's contract.
                    unsafe {
                        let own = std::slice::from_raw_parts_mut(parts.at(span * reduces.len()), reduces.len());
                        worker.span(phase, reduces, own, (row, row), (from, end));
                    }
                });
                for (i, reduce) in reduces.iter().enumerate() {
                    let mut whole = Running::new();
                    (0..spans).for_each(|s| (reduce.reducer.append)(&mut whole, &states[s * reduces.len() + i]));
                    // SAFETY: the caller's contract.
                    unsafe { self.put(reduce, &whole, row, row) };
                }
            }
        }
        Ok(())
    }
}

impl Worker<'_> {
    /// All phases over the rows `r0..r1`.
    unsafe fn block(&mut self, r0: usize, r1: usize) {
        let (first, end) = self.region.phases;
        let regions = self.regions;
        for phase in &regions.phases[first as usize..end as usize] {
            // SAFETY: the caller's contract.
            unsafe { self.phase(phase, r0, r1) };
        }
    }

    unsafe fn phase(&mut self, phase: &Phase, r0: usize, r1: usize) {
        let regions = self.regions;
        // SAFETY: the planner's places are valid for the rows of a block.
        unsafe {
            for e in &regions.expands[phase.expands.0 as usize..phase.expands.1 as usize] {
                let (src, dst) = (self.address(&e.from, r0, r0), self.address(&e.to, r0, r0));
                if e.from.step == 0 {
                    movement::repeat_each(e.size, src, dst, r1 - r0, self.region.inner);
                } else {
                    movement::repeat_all(e.size, src, dst, self.region.inner, r1 - r0);
                }
            }
            let reduces = &regions.reduces[phase.reduces.0 as usize..phase.reduces.1 as usize];
            if phase.by_row {
                for row in r0..r1 {
                    self.row(phase, reduces, r0, row);
                }
                return;
            }
            let n = if phase.over_rows { r1 - r0 } else { (r1 - r0) * self.region.inner };
            if phase.code != NONE {
                self.fill(phase, r0, r0);
                self.tiles(phase, 0, n);
            }
            for reduce in reduces {
                for row in r0..r1 {
                    let from = self.address(&reduce.from, row, r0);
                    let mut state = Running::new();
                    (reduce.reducer.feed)(&mut state, from.cast(), self.region.inner);
                    self.put(reduce, &state, row, r0);
                }
            }
        }
    }

    /// One row of a phase: whole, or in pieces where something is reduced.
    unsafe fn row(&mut self, phase: &Phase, reduces: &[Reduce], r0: usize, row: usize) {
        let inner = self.region.inner;
        // SAFETY: the caller's contract.
        unsafe {
            self.fill(phase, row, r0);
            if reduces.is_empty() {
                return self.tiles(phase, 0, inner);
            }
            let mut states = std::mem::take(&mut self.states);
            states.resize(reduces.len(), Running::new());
            states.iter_mut().for_each(Running::clear);
            self.span(phase, reduces, &mut states, (row, r0), (0, inner));
            for (reduce, state) in reduces.iter().zip(&states) {
                self.put(reduce, state, row, r0);
            }
            self.states = states;
        }
    }

    /// The elements `from..end` of a row whose table is made, in pieces where something is reduced.
    unsafe fn span(
        &mut self,
        phase: &Phase,
        reduces: &[Reduce],
        states: &mut [Running],
        (row, r0): (usize, usize),
        (from, end): (usize, usize),
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if reduces.is_empty() {
                return self.tiles(phase, from, end);
            }
            for at in (from..end).step_by(PIECE) {
                let to = (at + PIECE).min(end);
                if phase.code != NONE {
                    self.move_pieces(phase, at);
                    self.tiles(phase, at, to);
                }
                for (reduce, state) in reduces.iter().zip(&mut *states) {
                    let piece = matches!(reduce.from.src, Src::Piece(_));
                    let start = self.address(&reduce.from, row, r0);
                    let x = if piece { start } else { start.add(at * LANE) };
                    (reduce.reducer.feed)(state, x.cast(), to - at);
                }
            }
        }
    }

    /// Writes a row's result.
    unsafe fn put(&self, reduce: &Reduce, state: &Running, row: usize, r0: usize) {
        let value = (reduce.reducer.finish)(state);
        // SAFETY: the place has room for an element a row.
        unsafe {
            let to = self.address(&reduce.to, row, r0);
            match reduce.dtype {
                DType::Bool => *to = value as u8,
                DType::BF16 | DType::F16 => *to.cast::<u16>() = table::half(reduce.dtype, f32::from_bits(value)),
                _ => *to.cast::<u32>() = value,
            }
        }
    }

    /// The address of a place's first element of a row; scratch arrays start with row `r0`.
    fn address(&self, place: &Place, row: usize, r0: usize) -> *mut u8 {
        let region = self.region;
        match place.src {
            Src::Slot(s) => self.slots[s as usize].wrapping_add(row * place.row),
            Src::Scratch(at) => self.scratch.wrapping_add(region.arrays + at as usize + (row - r0) * place.row),
            Src::Tile(k) => self.scratch.wrapping_add(k as usize * TILE),
            Src::Piece(k) => self.scratch.wrapping_add(region.pieces + k as usize * PIECE * LANE),
        }
    }

    fn places(&self, phase: &Phase) -> &[Place] {
        &self.regions.places[phase.places.0 as usize..phase.places.1 as usize]
    }

    /// Makes the pointer table of a row.
    fn fill(&mut self, phase: &Phase, row: usize, r0: usize) {
        let mut table = std::mem::take(&mut self.table);
        table.clear();
        table.extend(self.places(phase).iter().map(|p| self.address(p, row, r0)));
        self.table = table;
    }

    /// Makes the pieces of the table begin at element `from`.
    fn move_pieces(&mut self, phase: &Phase, from: usize) {
        let regions = self.regions;
        let places = &regions.places[phase.places.0 as usize..phase.places.1 as usize];
        for (i, place) in places.iter().enumerate() {
            if matches!(place.src, Src::Piece(_)) {
                self.table[i] = self.address(place, 0, 0).wrapping_sub(from * LANE);
            }
        }
    }

    /// Runs the program over the elements `from..end`.
    unsafe fn tiles(&self, phase: &Phase, from: usize, end: usize) {
        let lanes = self.isa.lanes();
        let code = &raw const self.regions.code[phase.code as usize];
        let whole = from + (end - from) / lanes * lanes;
        // SAFETY: whole tiles lie inside; the rest is either repeated from inside or staged.
        unsafe {
            if whole > from {
                machine::run(self.isa, code, self.table.as_ptr(), from, whole);
            }
            if whole == end {
                return;
            }
            if phase.overlap && whole > from {
                machine::run(self.isa, code, self.table.as_ptr(), end - lanes, end);
            } else {
                self.staged(phase, whole, end - whole);
            }
        }
    }

    /// Runs one tile of `count` elements through copies of its operands and results.
    unsafe fn staged(&self, phase: &Phase, from: usize, count: usize) {
        let places = self.places(phase);
        let mut table: SmallVec<[*mut u8; 24]> = SmallVec::from_slice(&self.table);
        let stage = |i: usize| self.scratch.wrapping_add(self.region.staged + i * TILE);
        let arrays = || places.iter().enumerate().filter(|(_, p)| p.step != 0);
        // SAFETY: each place has `count` elements from `from` on, and its staged tile holds as many.
        unsafe {
            for (i, p) in arrays() {
                let step = p.step as usize;
                table[i] = stage(i);
                std::ptr::copy_nonoverlapping(self.table[i].add(from * step), stage(i), count * step);
            }
            let code = &raw const self.regions.code[phase.code as usize];
            machine::run(self.isa, code, table.as_ptr(), 0, 1);
            for (i, p) in arrays().filter(|(_, p)| p.written) {
                let step = p.step as usize;
                std::ptr::copy_nonoverlapping(stage(i), self.table[i].add(from * step), count * step);
            }
        }
    }
}
