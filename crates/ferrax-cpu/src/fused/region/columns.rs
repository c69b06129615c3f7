//! Reductions over the rows of a region: each block's rows are joined to running results, in the order of `columns.rs`.
//!
//! A worker has the results of the run of rows that it is at, and those of the runs before as levels. Tasks cover a power
//! of two of runs, so that the levels of one can be appended to those of the task before: the result does not depend
//! on blocks or threads.

use super::run::Worker;
use crate::library::columns::{self, Levels, ROWS, rows_of_task};
use crate::library::reduce::Monoid;
use crate::machine::assemble::Place;
use crate::pool;
use ferrax_base::Result;
use std::sync::{Mutex, PoisonError};

/// A reduction of columns, whatever the elements are.
#[derive(Clone, Copy)]
pub struct ColumnReducer {
    /// Makes this many running results ready for a run.
    reset: unsafe fn(*mut u8, usize),
    /// Joins rows, of so many elements and so many of them, to the running results.
    join: unsafe fn(*const u8, (usize, usize), *mut u8),
    /// Ends a run.
    carry: unsafe fn(&mut Levels, *mut u8, usize),
    /// Appends the levels of the next task.
    append: fn(&mut Levels, &mut Levels, usize),
    /// Writes the result.
    finish: unsafe fn(&mut Levels, *mut u8, usize),
}

unsafe fn slice<'a, T>(x: *mut u8, n: usize) -> &'a mut [T] {
    // SAFETY: callers pass n elements.
    unsafe { std::slice::from_raw_parts_mut(x.cast(), n) }
}

impl ColumnReducer {
    pub fn of<M: Monoid>() -> Self {
        ColumnReducer {
            reset: reset::<M>,
            join: join::<M>,
            carry: carry::<M>,
            append: columns::append::<M>,
            finish: finish::<M>,
        }
    }
}

unsafe fn reset<M: Monoid>(x: *mut u8, n: usize) {
    // SAFETY: the caller passes n elements.
    unsafe { slice::<M::T>(x, n) }.fill(M::IDENTITY);
}

unsafe fn join<M: Monoid>(x: *const u8, (width, rows): (usize, usize), out: *mut u8) {
    // SAFETY: the caller passes so many rows, and running results for one.
    let (x, out) = unsafe { (std::slice::from_raw_parts(x.cast(), width * rows), slice(out, width)) };
    columns::join::<M>(x, (width, rows), out);
}

unsafe fn carry<M: Monoid>(levels: &mut Levels, value: *mut u8, n: usize) {
    // SAFETY: the caller passes n elements.
    columns::carry::<M>(levels, unsafe { slice(value, n) }, 0);
}

unsafe fn finish<M: Monoid>(levels: &mut Levels, out: *mut u8, n: usize) {
    // SAFETY: the caller passes n elements.
    columns::finish::<M>(levels, unsafe { slice(out, n) });
}

/// A reduction of columns in a phase.
#[derive(Clone, Copy)]
pub struct Column {
    pub reducer: ColumnReducer,
    /// What is reduced: lanes in memory, row by row.
    pub from: Place,
    /// Offset of the running results in the worker's scratch memory.
    pub state: usize,
    /// The slot of the result.
    pub to: u32,
}

impl Worker<'_> {
    /// Joins the rows `r0..r1` of a block, which lie in memory.
    pub(super) unsafe fn join_columns(&self, columns: &[Column], r0: usize, r1: usize) {
        for c in columns {
            let (x, state) = (self.address(&c.from, r0, r0), self.scratch.wrapping_add(c.state));
            // SAFETY: the planner's places are valid for the rows of a block.
            unsafe { (c.reducer.join)(x, (self.region.inner, r1 - r0), state) };
        }
    }

    /// All phases over the rows `r0..r1` of a run, which the columns' running results take in.
    unsafe fn one_run(&mut self, columns: &[Column], (r0, r1): (usize, usize)) {
        let (block, inner) = (self.region.block, self.region.inner);
        // SAFETY: the caller's contract; the running results are in this worker's scratch memory.
        unsafe {
            columns.iter().for_each(|c| (c.reducer.reset)(self.scratch.wrapping_add(c.state), inner));
            for row in (r0..r1).step_by(block) {
                self.block(row, (row + block).min(r1));
            }
        }
    }

    /// All phases over the rows `r0..r1`, and the levels of what the columns' reductions take in.
    unsafe fn runs(&mut self, columns: &[Column], (r0, r1): (usize, usize)) -> Vec<Levels> {
        let mut levels: Vec<Levels> = columns.iter().map(|_| Levels::default()).collect();
        for run in (r0..r1).step_by(ROWS) {
            // SAFETY: the caller's contract; the running results are in this worker's scratch memory.
            unsafe {
                self.one_run(columns, (run, (run + ROWS).min(r1)));
                for (c, levels) in columns.iter().zip(&mut levels) {
                    (c.reducer.carry)(levels, self.scratch.wrapping_add(c.state), self.region.inner);
                }
            }
        }
        levels
    }

    /// Runs a region that reduces columns, on several threads if so asked.
    pub(super) unsafe fn run_columns(&mut self, rows: usize, time: u64, shared: bool) -> Result<()> {
        let regions = self.regions;
        let columns = &regions.columns[self.region.columns.0 as usize..self.region.columns.1 as usize];
        let inner = self.region.inner;
        if rows <= ROWS {
            // SAFETY: the caller's contract; running results are lanes, and so are the results.
            unsafe {
                self.one_run(columns, (0, rows));
                for c in columns {
                    let state = self.scratch.wrapping_add(c.state);
                    std::ptr::copy_nonoverlapping(state, self.slots[c.to as usize], inner * self.region.lane);
                }
            }
            self.region.fence();
            return Ok(());
        }
        let mut all = if shared {
            let (common, _memory) = self.common()?;
            let task = rows_of_task(rows);
            let parts: Vec<Mutex<Vec<Levels>>> = (0..rows.div_ceil(task)).map(|_| Mutex::default()).collect();
            pool::share(time, parts.len(), &|k, t| {
                let range = (t * task, ((t + 1) * task).min(rows));
                // SAFETY: the caller's contract; tasks have rows of their own.
                let levels = unsafe { common.worker(k).runs(columns, range) };
                common.region.fence();
                *parts[t].lock().unwrap_or_else(PoisonError::into_inner) = levels;
            });
            let mut all: Vec<Levels> = columns.iter().map(|_| Levels::default()).collect();
            for part in parts {
                let part = part.into_inner().unwrap_or_else(PoisonError::into_inner);
                for ((c, levels), mut next) in columns.iter().zip(&mut all).zip(part) {
                    (c.reducer.append)(levels, &mut next, inner);
                }
            }
            all
        } else {
            // SAFETY: the caller's contract.
            let levels = unsafe { self.runs(columns, (0, rows)) };
            self.region.fence();
            levels
        };
        for (c, levels) in columns.iter().zip(&mut all) {
            // SAFETY: the result's slot has room for a row.
            unsafe { (c.reducer.finish)(levels, self.slots[c.to as usize], inner) };
        }
        Ok(())
    }
}
