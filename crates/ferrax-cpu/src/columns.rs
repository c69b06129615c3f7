//! Reductions over an outer axis: rows of `width` elements are joined element by element.
//!
//! Rows are taken in runs that are joined in sequence, and the runs' results like the digits of a counter, as
//! `reduce.rs` does with the runs of a row. So the order of additions in a column depends on the number of rows alone,
//! and a power of two of runs is one result: what tasks of other threads are made of.

use crate::kernel::wide_variant;
use crate::pool;
use crate::reduce::Monoid;
use std::sync::Mutex;

/// Columns joined at once: their results stay in the first-level cache.
const COLUMNS: usize = 2048;
/// Rows of a run.
const ROWS: usize = 64;
/// Rows read side by side.
const ABREAST: usize = 8;

/// Joins `K` rows of `stride` elements to `out`, in their order.
#[inline(always)]
fn join_rows<M: Monoid, const K: usize>(x: &[M::T], stride: usize, out: &mut [M::T]) {
    let rows: [&[M::T]; K] = std::array::from_fn(|k| &x[k * stride..][..out.len()]);
    for i in 0..out.len() {
        let mut a = out[i];
        for row in rows {
            // SAFETY: every row was cut to the length of `out`.
            a = M::join(a, unsafe { *row.get_unchecked(i) });
        }
        out[i] = a;
    }
}

/// Joins a run of at most `ROWS` rows into `out`.
#[inline(always)]
fn run_body<M: Monoid>(x: &[M::T], (stride, rows): (usize, usize), out: &mut [M::T]) {
    out.fill(M::IDENTITY);
    let mut at = 0;
    while at + ABREAST <= rows {
        join_rows::<M, ABREAST>(&x[at * stride..], stride, out);
        at += ABREAST;
    }
    for r in at..rows {
        join_rows::<M, 1>(&x[r * stride..], stride, out);
    }
}
wide_variant!(run, run_body, (x: &[M::T], rows: (usize, usize), out: &mut [M::T]));

/// Results of runs so far, those of 2^k runs at level k.
struct Levels<M: Monoid> {
    rows: Vec<M::T>,
    width: usize,
    count: usize,
}

impl<M: Monoid> Levels<M> {
    fn new(width: usize) -> Self {
        Levels { rows: Vec::new(), width, count: 0 }
    }

    /// Takes in what 2^level runs gave; the runs so far are a multiple of that.
    #[inline(always)]
    fn carry(&mut self, value: &mut [M::T], mut level: usize) {
        let full = (self.count >> level).trailing_ones() as usize;
        self.count += 1 << level;
        for _ in 0..full {
            for (v, &l) in value.iter_mut().zip(&self.rows[level * self.width..]) {
                *v = M::join(l, *v);
            }
            level += 1;
        }
        let end = (level + 1) * self.width;
        if self.rows.len() < end {
            self.rows.resize(end, M::IDENTITY);
        }
        self.rows[level * self.width..end].copy_from_slice(value);
    }

    #[inline(always)]
    fn finish(&self, out: &mut [M::T]) {
        let mut first = true;
        for (k, level) in self.rows.chunks_exact(self.width).enumerate().filter(|(k, _)| self.count >> k & 1 == 1) {
            debug_assert!(k < usize::BITS as usize);
            for (a, &b) in out.iter_mut().zip(level) {
                *a = if first { b } else { M::join(b, *a) };
            }
            first = false;
        }
    }
}

/// Reduces the columns of `x` that begin at its first `out.len()` elements, row by row of `stride`.
#[inline(always)]
fn block_body<M: Monoid>(x: &[M::T], (stride, rows): (usize, usize), out: &mut [M::T]) {
    if rows <= ROWS {
        return run_body::<M>(x, (stride, rows), out);
    }
    let mut levels = Levels::<M>::new(out.len());
    for first in (0..rows).step_by(ROWS) {
        run_body::<M>(&x[first * stride..], (stride, ROWS.min(rows - first)), out);
        levels.carry(out, 0);
    }
    levels.finish(out);
}
wide_variant!(block, block_body, (x: &[M::T], rows: (usize, usize), out: &mut [M::T]));

/// Reduces the rows of `x`, which are as long as `out`.
#[inline(always)]
pub fn reduce_body<M: Monoid>(x: &[M::T], out: &mut [M::T]) {
    let width = out.len();
    for (k, out) in out.chunks_mut(COLUMNS).enumerate() {
        block_body::<M>(&x[k * COLUMNS..], (width, x.len() / width), out);
    }
}
wide_variant!(reduce, reduce_body, (x: &[M::T], out: &mut [M::T]));

/// As `reduce`, on several threads: each takes columns, or runs of rows.
pub fn reduce_shared<M: Monoid>(x: &[M::T], out: &mut [M::T], time: u64) {
    let (width, rows) = (out.len(), x.len() / out.len());
    if width >= 2 * COLUMNS {
        let parts: Vec<Mutex<&mut [M::T]>> = out.chunks_mut(COLUMNS).map(Mutex::new).collect();
        return pool::share(time, parts.len(), &|_, k| {
            let mut out = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            block::<M>(&x[k * COLUMNS..], (width, rows), &mut out);
        });
    }
    let level = (rows / (8 * pool::threads() * ROWS)).checked_ilog2().unwrap_or(0) as usize;
    let task = ROWS << level;
    let mut values = vec![M::IDENTITY; rows / task * width];
    let parts: Vec<Mutex<&mut [M::T]>> = values.chunks_mut(width).map(Mutex::new).collect();
    pool::share(time, parts.len(), &|_, k| {
        let mut value = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        reduce::<M>(&x[k * task * width..][..task * width], &mut value);
    });
    drop(parts);
    let mut levels = Levels::<M>::new(width);
    values.chunks_exact_mut(width).for_each(|value| levels.carry(value, level));
    let rest = &x[rows / task * task * width..];
    for rows in rest.chunks(ROWS * width) {
        run::<M>(rows, (width, rows.len() / width), out);
        levels.carry(out, 0);
    }
    levels.finish(out);
}
