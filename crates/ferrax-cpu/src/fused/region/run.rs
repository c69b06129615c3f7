//! Running regions: blocks of rows, or spans of one long row.

use super::rows::Running;
use super::{Phase, Reduce, Region, Regions};
use crate::fused::NONE;
use crate::library::movement;
use crate::library::reduce::{LANES, RUN};
use crate::machine::assemble::{Place, Src};
use crate::machine::handler::first_tile;
use crate::machine::{self, TILE, table};
use crate::pool::{self, Disjoint};
use ferrax_base::{Buffer, DType, Result};
use smallvec::SmallVec;

/// A worker's view of a run: the slots, its scratch memory, and a pointer table.
pub(super) struct Worker<'a> {
    pub regions: &'a Regions,
    pub region: &'a Region,
    pub slots: &'a [*mut u8],
    pub scratch: *mut u8,
    /// Where its arrays of scratch memory are: its own, or those of all workers on spans of one row.
    arrays: *mut u8,
    table: SmallVec<[*mut u8; 24]>,
    /// Rows for which operands have been spread that are the same for every block.
    spread: usize,
}

/// Elements of a task of one long row: a power of two of runs, so that the states of reductions can be put together.
const SPAN: usize = 4 * RUN;

impl Regions {
    /// How many rows of a place, from each multiple of that on, are at regular distances, 0 for all; and bytes from one's first
    /// element to that of the next.
    pub fn regular(&self, place: &Place) -> (usize, isize) {
        match place.src {
            Src::View(k) => self.views[k as usize].regular(),
            Src::Tile(_) | Src::State(_) => (0, 0),
            Src::Slot(_) | Src::Scratch(_) => (0, place.row as isize),
        }
    }

    /// Runs a region.
    ///
    /// # Safety
    /// The slots and the scratch memory must be those of a run of the regions' program.
    pub unsafe fn run(&self, index: u32, slots: &[*mut u8], scratch: *mut u8) -> Result<()> {
        let mut worker = self.worker(index, slots, scratch);
        let region = worker.region;
        let rows = region.n / region.inner;
        let time = region.n as u64 * u64::from(region.cost) / 1000;
        let shared = pool::worth(time);
        // SAFETY: the planner gave every operand and result the memory that the phases reach, and the scratch
        // memory has what the region asks for. Workers have scratch memory of their own, and rows and spans that
        // no other has.
        unsafe {
            if region.columns.0 < region.columns.1 {
                return worker.run_columns(rows, time, shared);
            }
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
        region.fence();
        Ok(())
    }

    /// Runs a region on rows as they are made by `make`.
    ///
    /// # Safety
    /// As for `run`, and `make` must make the rows that the region reads.
    pub unsafe fn run_after(
        &self,
        index: u32,
        (slots, scratch): (&[*mut u8], *mut u8),
        make: &dyn Fn(After<'_>) -> Result<()>,
    ) -> Result<()> {
        let (common, _memory) = self.worker(index, slots, scratch).common()?;
        let region = common.region;
        make(&|k, first, end| {
            let mut worker = common.worker(k);
            for row in (first..end).step_by(region.block) {
                // SAFETY: the caller's contract; no two workers have the same number or the same rows.
                unsafe { worker.block(row, (row + region.block).min(end)) };
            }
            region.fence();
        })
    }

    /// This thread's view of a region's run, with the run's scratch memory.
    #[inline]
    fn worker<'a>(&'a self, index: u32, slots: &'a [*mut u8], scratch: *mut u8) -> Worker<'a> {
        let region = &self.list[index as usize];
        let arrays = scratch.wrapping_add(region.arrays);
        Worker { regions: self, region, slots, scratch, arrays, table: SmallVec::new(), spread: 0 }
    }
}

/// What is called where rows are done: by which worker, the first of them and their end.
type After<'a> = &'a (dyn Fn(usize, usize, usize) + Sync);

impl Region {
    /// Makes what was written past the caches visible to other threads before anything that is written later.
    pub fn fence(&self) {
        if self.streams {
            machine::fence();
        }
    }
}

/// What workers have in common.
pub(super) struct Common<'a> {
    regions: &'a Regions,
    pub region: &'a Region,
    slots: &'a [*mut u8],
    scratch: Disjoint<u8>,
}
// SAFETY: workers write disjoint parts of the memory behind the slots.
unsafe impl Sync for Common<'_> {}

impl<'a> Common<'a> {
    /// The view of a worker.
    pub fn worker(&self, k: usize) -> Worker<'a> {
        let Common { regions, region, slots, .. } = *self;
        let scratch = self.scratch.at(k * region.scratch);
        let arrays = scratch.wrapping_add(region.arrays);
        Worker { regions, region, slots, scratch, arrays, table: SmallVec::new(), spread: 0 }
    }
}

impl<'a> Worker<'a> {
    /// What other workers share, with scratch memory for all in the buffer.
    pub fn common(&self) -> Result<(Common<'a>, Buffer)> {
        let mut memory = Buffer::allocate(self.region.scratch * pool::threads())?;
        let scratch = Disjoint(memory.as_mut_ptr());
        let Worker { regions, region, slots, .. } = *self;
        Ok((Common { regions, region, slots, scratch }, memory))
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
            common.region.fence();
        });
        Ok(())
    }

    /// Shares out spans of each row, phase by phase.
    unsafe fn share_spans(&mut self, rows: usize, time: u64) -> Result<()> {
        let (common, _memory) = self.common()?;
        let (regions, inner) = (self.regions, self.region.inner);
        // What a phase leaves there of one span, or of the row, other workers may read in the next.
        let arrays = Disjoint(self.arrays);
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
                let parts = Disjoint(states.as_mut_ptr());
                pool::share(time / rows as u64, spans, &|k, span| {
                    let mut worker = Worker { arrays: arrays.at(0), ..common.worker(k) };
                    let (from, end) = (span * SPAN, ((span + 1) * SPAN).min(inner));
                    worker.fill(phase, row, row);
                    // SAFETY: each span has states of its own; otherwise the caller's contract.
                    unsafe {
                        let own = std::slice::from_raw_parts_mut(parts.at(span * reduces.len()), reduces.len());
                        worker.span(phase, reduces, own, (row, row), (from, end));
                    }
                    common.region.fence();
                });
                for (i, reduce) in reduces.iter().enumerate() {
                    let mut whole = Running::new();
                    (0..spans).for_each(|s| (reduce.reducer.append)(&mut whole, &states[s * reduces.len() + i]));
                    // SAFETY: the caller's contract.
                    unsafe { self.put(reduce, (reduce.reducer.finish)(&whole), row, row) };
                }
            }
        }
        Ok(())
    }
}

/// The rows `r0..r1`, cut at multiples of `group`, if that is not 0.
fn runs(group: usize, r0: usize, r1: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut row = r0;
    std::iter::from_fn(move || {
        let end = row.checked_div(group).map_or(r1, |k| r1.min((k + 1) * group));
        let run = (row, end);
        row = end;
        (run.0 < r1).then_some(run)
    })
}

/// Whether the phase's program fills the accumulators of a reduction.
fn folded(reduce: &Reduce) -> bool {
    matches!(reduce.from.src, Src::State(_))
}

impl Worker<'_> {
    /// All phases over the rows `r0..r1`.
    pub unsafe fn block(&mut self, r0: usize, r1: usize) {
        let (first, end) = self.region.phases;
        let regions = self.regions;
        for phase in &regions.phases[first as usize..end as usize] {
            // SAFETY: the caller's contract.
            unsafe { self.phase(phase, r0, r1) };
        }
        self.spread = self.spread.max(r1 - r0);
    }

    unsafe fn phase(&mut self, phase: &Phase, r0: usize, r1: usize) {
        let regions = self.regions;
        // SAFETY: the planner's places are valid for the rows of a block.
        unsafe {
            for e in &regions.expands[phase.expands.0 as usize..phase.expands.1 as usize] {
                if e.same && r1 - r0 <= self.spread {
                    continue;
                }
                let (src, dst) = (self.address(&e.from, r0, r0), self.address(&e.to, r0, r0));
                if let Src::View(k) = e.from.src {
                    let rows = &regions.views[k as usize];
                    rows.copy(false, e.size, (self.slots[rows.slot as usize], dst), (r0, r1), self.region.inner);
                } else if e.from.step == 0 {
                    movement::repeat_each(e.size, (src, 1), dst, r1 - r0, self.region.inner);
                } else {
                    movement::repeat_all(e.size, src, dst, self.region.inner, r1 - r0);
                }
            }
            let reduces = &regions.reduces[phase.reduces.0 as usize..phase.reduces.1 as usize];
            let columns = &regions.columns[phase.columns.0 as usize..phase.columns.1 as usize];
            if phase.by_row {
                if phase.in_rows {
                    self.rows(phase, r0, r1);
                    return self.join_columns(columns, r0, r1);
                }
                for row in r0..r1 {
                    self.row(phase, reduces, r0, row);
                }
                return self.join_columns(columns, r0, r1);
            }
            let inner = if phase.over_rows { 1 } else { self.region.inner };
            if phase.code != NONE {
                for (row, end) in runs(phase.group, r0, r1) {
                    self.fill(phase, row, r0);
                    self.tiles(phase, row, 0, (end - row) * inner);
                }
            }
            for put in &regions.puts[phase.puts.0 as usize..phase.puts.1 as usize] {
                if let Src::View(k) = put.to.src {
                    let rows = &regions.views[k as usize];
                    let ends = (self.slots[rows.slot as usize], self.address(&put.from, r0, r0));
                    rows.copy(true, put.size, ends, (r0, r1), self.region.inner);
                }
            }
            reduces.iter().for_each(|reduce| self.reduce_rows(reduce, r0, r1));
            self.join_columns(columns, r0, r1);
        }
    }

    /// Reduces the rows of a block, whose lanes lie side by side in memory.
    unsafe fn reduce_rows(&self, reduce: &Reduce, r0: usize, r1: usize) {
        let (inner, lane) = (self.region.inner, self.region.lane);
        let (x, to) = (self.address(&reduce.from, r0, r0), &reduce.to);
        let rows = reduce.reducer.rows;
        if to.row == lane && reduce.dtype.size() == lane {
            // SAFETY: the caller's contract.
            return unsafe { rows(x, inner, r1 - r0, self.address(to, r0, r0)) };
        }
        let mut held = [0u64; 64];
        for first in (r0..r1).step_by(held.len()) {
            let count = held.len().min(r1 - first);
            // SAFETY: the caller's contract; as many lanes fit.
            unsafe {
                let results = held.as_mut_ptr().cast::<u8>();
                rows(x.add((first - r0) * inner * lane), inner, count, results);
                for k in 0..count {
                    let at = results.add(k * lane);
                    let value = if lane == 8 { at.cast::<u64>().read() } else { at.cast::<u32>().read().into() };
                    self.put(reduce, value, first + k, r0);
                }
            }
        }
    }

    /// The rows `r0..r1` of a phase, in one run as long as they are at regular distances.
    unsafe fn rows(&mut self, phase: &Phase, r0: usize, r1: usize) {
        let Region { isa, inner, lane, .. } = *self.region;
        let first = first_tile(inner, isa.lanes(lane));
        for (row, end) in runs(phase.group, r0, r1) {
            self.fill(phase, row, r0);
            let code = &raw const self.regions.code[phase.code as usize];
            if let Some(left) = self.table.last_mut() {
                *left = std::ptr::without_provenance_mut(end - row);
            }
            // SAFETY: the caller's contract; a row has a tile at least.
            unsafe { machine::run(isa, code, self.table.as_mut_ptr(), first, inner) };
        }
    }

    /// One row of a phase.
    unsafe fn row(&mut self, phase: &Phase, reduces: &[Reduce], r0: usize, row: usize) {
        let inner = self.region.inner;
        // SAFETY: the caller's contract.
        unsafe {
            self.fill(phase, row, r0);
            if inner > RUN && !reduces.is_empty() {
                let mut states: SmallVec<[Running; 2]> = SmallVec::from_elem(Running::new(), reduces.len());
                // Several reductions find a span in the caches.
                for from in (0..inner).step_by(SPAN) {
                    self.span(phase, reduces, &mut states, (row, r0), (from, (from + SPAN).min(inner)));
                }
                for (reduce, state) in reduces.iter().zip(&states) {
                    self.put(reduce, (reduce.reducer.finish)(state), row, r0);
                }
                return;
            }
            for reduce in reduces.iter().filter(|r| folded(r)) {
                (reduce.reducer.reset)(self.address(&reduce.from, row, r0));
            }
            if phase.code != NONE {
                self.tiles(phase, row, 0, inner);
            }
            for reduce in reduces {
                let value = if folded(reduce) {
                    (reduce.reducer.value)(self.address(&reduce.from, row, r0))
                } else {
                    (reduce.memory.whole)(self.operands(reduce, row, r0, 0), inner)
                };
                self.put(reduce, value, row, r0);
            }
        }
    }

    /// The elements `from..end` of a row whose table is made, run by run where something is reduced.
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
            if phase.code != NONE && reduces.is_empty() {
                self.tiles(phase, row, from, end);
            } else if phase.code != NONE {
                for at in (from..end).step_by(RUN) {
                    let folds = || reduces.iter().enumerate().filter(|(_, r)| folded(r));
                    let lanes = |r: &Reduce| self.address(&r.from, row, r0);
                    folds().for_each(|(_, r)| (r.reducer.reset)(lanes(r)));
                    self.tiles(phase, row, at, (at + RUN).min(end));
                    folds().for_each(|(k, r)| (r.reducer.collapse)(&mut states[k], lanes(r)));
                }
            }
            for (reduce, state) in reduces.iter().zip(states).filter(|(r, _)| !folded(r)) {
                (reduce.memory.feed)(state, self.operands(reduce, row, r0, from), end - from);
            }
        }
    }

    /// Where the operands of a reduction in memory have element `from` of a row.
    fn operands(&self, reduce: &Reduce, row: usize, r0: usize, from: usize) -> [*const u8; 2] {
        let at = |p: &Place| self.address(p, row, r0).wrapping_add(from * p.step as usize).cast_const();
        [at(&reduce.from), reduce.with.as_ref().map_or(std::ptr::null(), at)]
    }

    /// Writes a row's result.
    unsafe fn put(&self, reduce: &Reduce, value: u64, row: usize, r0: usize) {
        // SAFETY: the place has room for an element a row.
        unsafe {
            let to = self.address(&reduce.to, row, r0);
            match reduce.dtype {
                DType::Bool => *to = value as u8,
                DType::BF16 | DType::F16 => *to.cast::<u16>() = table::half(reduce.dtype, f32::from_bits(value as u32)),
                _ if self.region.lane == 8 => *to.cast::<u64>() = value,
                _ => *to.cast::<u32>() = value as u32,
            }
        }
    }

    /// The address of a place's first element of a row; scratch arrays start with row `r0`.
    pub fn address(&self, place: &Place, row: usize, r0: usize) -> *mut u8 {
        let region = self.region;
        match place.src {
            Src::Slot(s) => self.slots[s as usize].wrapping_add(row * place.row),
            Src::Scratch(at) => self.arrays.wrapping_add(at as usize + (row - r0) * place.row),
            Src::View(k) => {
                let rows = &self.regions.views[k as usize];
                self.slots[rows.slot as usize].wrapping_offset(rows.offset(row))
            }
            Src::Tile(k) => self.scratch.wrapping_add(k as usize * TILE),
            Src::State(k) => self.scratch.wrapping_add(region.states + k as usize * LANES * region.lane),
        }
    }

    fn places(&self, phase: &Phase) -> &[Place] {
        &self.regions.places[phase.places.0 as usize..phase.places.1 as usize]
    }

    /// Makes the pointer table of a row; where a run goes through rows, or a tile holds some, with how far each place is from one
    /// to the next, and for this one alone.
    fn fill(&mut self, phase: &Phase, row: usize, r0: usize) {
        let regions = self.regions;
        let places = &regions.places[phase.places.0 as usize..phase.places.1 as usize];
        self.table.clear();
        for place in places {
            let at = self.address(place, row, r0);
            self.table.push(at);
        }
        if phase.in_rows || phase.apart {
            let number = std::ptr::without_provenance_mut;
            self.table.extend(places.iter().map(|p| number(regions.regular(p).1 as usize)));
            self.table.push(number(1));
        }
    }

    /// Runs the program over the elements `from..end` of a row.
    unsafe fn tiles(&self, phase: &Phase, row: usize, from: usize, end: usize) {
        let isa = self.region.isa;
        let lanes = isa.lanes(self.region.lane);
        let code = &raw const self.regions.code[phase.code as usize];
        let whole = from + ((end - from) & !(lanes - 1));
        let last_first = phase.last_first && from < whole && whole < end;
        // SAFETY: whole tiles lie inside; the rest is made with elements before it, or staged.
        unsafe {
            if last_first {
                // It is the only one: no whole tile ends where the row of this run does.
                machine::run(isa, code, self.table.as_ptr(), end - lanes, 0);
            }
            if whole > from {
                machine::run(isa, code, self.table.as_ptr(), from, whole);
            }
            if last_first || whole == end {
                return;
            }
            if phase.reach && row * self.region.inner + whole + lanes <= self.region.n {
                machine::run(isa, code, self.table.as_ptr(), whole, end);
            } else {
                self.staged(phase, whole, end - whole);
            }
        }
    }

    /// Runs one tile of `count` elements through copies of its operands and results.
    unsafe fn staged(&self, phase: &Phase, from: usize, count: usize) {
        let places = self.places(phase);
        let mut table: SmallVec<[*mut u8; 24]> = SmallVec::from_slice(&self.table);
        let mut end = self.region.staged;
        // A tile each, with room for what lies between a view's elements; its first one is last if they go back.
        let stages: SmallVec<[*mut u8; 24]> = places
            .iter()
            .map(|p| {
                let at = end;
                end += p.staged() as usize * TILE;
                self.scratch.wrapping_add(at)
            })
            .collect();
        let arrays = || places.iter().enumerate().filter(|(_, p)| p.step != 0 && p.apart == 0);
        let apart = || places.iter().enumerate().filter(|(_, p)| p.apart != 0);
        // SAFETY: each place has `count` elements from `from` on, and its staged tiles hold as many. Where rows lie apart, they
        // begin with the tile: only a run of less than a tile is staged.
        unsafe {
            for (i, p) in apart() {
                let (stage, distance) = (stages[i], &mut table[places.len() + i]);
                self.rows_apart(p, count, (self.table[i], distance.addr() as isize), &mut |root, at, bytes| {
                    std::ptr::copy_nonoverlapping(root.cast_const(), stage.add(at), bytes);
                });
                *distance = std::ptr::without_provenance_mut(self.side_by_side(p));
                table[i] = stage;
            }
            for (i, p) in arrays() {
                let (step, stride) = (p.step as usize, isize::from(p.stride));
                let bytes = ((count - 1) * stride.unsigned_abs() + 1) * step;
                let first = self.table[i].offset(from as isize * stride * step as isize);
                if stride > 0 {
                    table[i] = stages[i];
                    std::ptr::copy_nonoverlapping(first, stages[i], bytes);
                } else {
                    let size = p.staged() as usize * TILE;
                    table[i] = stages[i].add(size - step);
                    std::ptr::copy_nonoverlapping(first.add(step).sub(bytes), stages[i].add(size - bytes), bytes);
                }
            }
            for (i, _) in places.iter().enumerate().filter(|(_, p)| matches!(p.src, Src::State(_))) {
                table[i] = table[i].add((from & (LANES - 1)) * self.region.lane);
            }
            let code = &raw const self.regions.code[phase.code as usize];
            machine::run(self.region.isa, code, table.as_mut_ptr(), 0, count);
            for (i, p) in arrays().filter(|(_, p)| p.written) {
                let step = p.step as usize;
                std::ptr::copy_nonoverlapping(stages[i], self.table[i].add(from * step), count * step);
            }
            for (i, p) in apart().filter(|(_, p)| p.written) {
                let distance = self.table[places.len() + i].addr() as isize;
                self.rows_apart(p, count, (self.table[i], distance), &mut |root, at, bytes| {
                    std::ptr::copy_nonoverlapping(stages[i].add(at).cast_const(), root, bytes);
                });
            }
        }
    }

    /// Bytes from one row of a place to the next where all lie side by side.
    fn side_by_side(&self, p: &Place) -> usize {
        if p.step == 0 { p.apart as usize } else { self.region.inner * p.step as usize }
    }

    /// Each row of the first `count` elements of a place whose rows lie apart: where it is, where it would be if they lay side by
    /// side, and its bytes.
    fn rows_apart(
        &self,
        p: &Place,
        count: usize,
        (first, distance): (*mut u8, isize),
        see: &mut dyn FnMut(*mut u8, usize, usize),
    ) {
        let (inner, each) = (self.region.inner, self.side_by_side(p));
        for row in 0..count.div_ceil(inner) {
            let bytes = if p.step == 0 { each } else { (count - row * inner).min(inner) * p.step as usize };
            see(first.wrapping_offset(row as isize * distance), row * each, bytes);
        }
    }
}
