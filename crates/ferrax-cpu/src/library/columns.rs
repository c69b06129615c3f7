//! Reductions over an outer axis: rows of `width` elements are joined element by element.
//!
//! Rows are taken in runs that are joined in sequence, and the runs' results like the digits of a counter, as
//! `reduce.rs` does with the runs of a row. So the order of additions in a column depends on the number of rows alone,
//! and a power of two of runs is one result: what tasks of other threads are made of. Regions (`region/columns.rs`)
//! join the rows of their blocks in the same order.

use crate::library::reduce::Monoid;
use crate::pool;
use crate::simd::wide_variant;
use std::sync::Mutex;

/// Columns joined at once: their results stay in the first-level cache.
pub const COLUMNS: usize = 2048;
/// Rows of a run.
pub const ROWS: usize = 64;
/// Rows read side by side.
const ABREAST: usize = 8;

/// Joins `K` rows of `stride` elements to `out`, in their order: what no whole vectors take, in shorter ones.
#[inline(always)]
fn join_rows<M: Monoid, const K: usize>(x: &[M::T], stride: usize, out: &mut [M::T]) {
    let rows: [&[M::T]; K] = std::array::from_fn(|k| &x[k * stride..][..out.len()]);
    let n = out.len();
    let (vectors, few) = (n & !15, n & !3);
    join_columns::<M, K, 16>(rows, 0..vectors, out);
    join_columns::<M, K, 4>(rows, vectors..few, out);
    join_columns::<M, K, 1>(rows, few..n, out);
}

/// Joins rows to a range of `out`, `W` columns at a time.
#[inline(always)]
fn join_columns<M: Monoid, const K: usize, const W: usize>(
    rows: [&[M::T]; K],
    range: std::ops::Range<usize>,
    out: &mut [M::T],
) {
    for at in range.step_by(W) {
        // SAFETY: ranges are of whole steps, and every row was cut to the length of `out`.
        unsafe {
            let to = out.as_mut_ptr().add(at).cast::<[M::T; W]>();
            let mut a = to.read();
            for row in rows {
                let x = row.as_ptr().add(at).cast::<[M::T; W]>().read();
                for (a, x) in a.iter_mut().zip(x) {
                    *a = M::join(*a, x);
                }
            }
            to.write(a);
        }
    }
}

/// Joins rows of `stride` elements to `out`, in their order.
#[inline(always)]
fn join_body<M: Monoid>(x: &[M::T], (stride, rows): (usize, usize), out: &mut [M::T]) {
    let mut at = 0;
    while at + ABREAST <= rows {
        join_rows::<M, ABREAST>(&x[at * stride..], stride, out);
        at += ABREAST;
    }
    for r in at..rows {
        join_rows::<M, 1>(&x[r * stride..], stride, out);
    }
}
wide_variant!(pub join, join_body, (x: &[M::T], rows: (usize, usize), out: &mut [M::T]));

/// Results of runs so far, those of 2^k runs at level k.
#[derive(Default)]
pub struct Levels {
    /// The levels' rows, of any element type.
    words: Vec<u64>,
    count: usize,
}

impl Levels {
    /// The results of a level, of `width` elements.
    #[inline(always)]
    fn row<T: Copy>(&mut self, level: usize, width: usize) -> &mut [T] {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        let each = (width * size_of::<T>()).div_ceil(size_of::<u64>());
        if self.words.len() < (level + 1) * each {
            self.words.resize((level + 1) * each, 0);
        }
        let words = &mut self.words[level * each..][..each];
        // SAFETY: the words hold `width` elements; every element type is of plain numbers, aligned no more than a word.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), width) }
    }
}

/// Takes in what 2^level runs gave; the runs so far are a multiple of that.
#[inline(always)]
fn carry_body<M: Monoid>(levels: &mut Levels, value: &mut [M::T], mut level: usize) {
    let full = (levels.count >> level).trailing_ones() as usize;
    levels.count += 1 << level;
    let width = value.len();
    for _ in 0..full {
        for (v, &mut l) in value.iter_mut().zip(levels.row::<M::T>(level, width)) {
            *v = M::join(l, *v);
        }
        level += 1;
    }
    levels.row(level, width).copy_from_slice(value);
}
wide_variant!(pub carry, carry_body, (levels: &mut Levels, value: &mut [M::T], level: usize));

/// The levels that a number of runs has, from the lowest on.
fn bits(count: usize) -> impl DoubleEndedIterator<Item = usize> {
    (0..usize::BITS as usize).filter(move |k| count >> k & 1 == 1)
}

/// The result of all runs.
#[inline(always)]
fn finish_body<M: Monoid>(levels: &mut Levels, out: &mut [M::T]) {
    let (mut first, width) = (true, out.len());
    for k in bits(levels.count) {
        for (a, &mut b) in out.iter_mut().zip(levels.row::<M::T>(k, width)) {
            *a = if first { b } else { M::join(b, *a) };
        }
        first = false;
    }
}
wide_variant!(pub finish, finish_body, (levels: &mut Levels, out: &mut [M::T]));

/// Takes in the results of what comes next: a power of two of runs of which those so far are a multiple, or the last.
pub fn append<M: Monoid>(levels: &mut Levels, next: &mut Levels, width: usize) {
    for level in bits(next.count).rev() {
        carry::<M>(levels, next.row(level, width), level);
    }
}

/// Takes in rows of `stride` elements, of which the first `value.len()` count.
#[inline(always)]
fn take_body<M: Monoid>(x: &[M::T], (stride, rows): (usize, usize), levels: &mut Levels, value: &mut [M::T]) {
    for first in (0..rows).step_by(ROWS) {
        value.fill(M::IDENTITY);
        join_body::<M>(&x[first * stride..], (stride, ROWS.min(rows - first)), value);
        carry_body::<M>(levels, value, 0);
    }
}
wide_variant!(take, take_body, (x: &[M::T], rows: (usize, usize), levels: &mut Levels, value: &mut [M::T]));

/// Reduces the columns of `x` that begin at its first `out.len()` elements, row by row of `stride`.
#[inline(always)]
fn block_body<M: Monoid>(x: &[M::T], (stride, rows): (usize, usize), out: &mut [M::T]) {
    if rows <= ROWS {
        out.fill(M::IDENTITY);
        return join_body::<M>(x, (stride, rows), out);
    }
    let mut levels = Levels::default();
    take_body::<M>(x, (stride, rows), &mut levels, out);
    finish_body::<M>(&mut levels, out);
}
wide_variant!(block, block_body, (x: &[M::T], rows: (usize, usize), out: &mut [M::T]));

/// Reduces the rows of `x`, which are as long as `out`.
pub fn reduce<M: Monoid>(x: &[M::T], out: &mut [M::T]) {
    let width = out.len();
    for (k, out) in out.chunks_mut(COLUMNS).enumerate() {
        block::<M>(&x[k * COLUMNS..], (width, x.len() / width), out);
    }
}

/// Rows of a task, a power of two of runs, where threads share the work.
pub fn rows_of_task(rows: usize) -> usize {
    ROWS << (rows / (8 * pool::threads() * ROWS)).checked_ilog2().unwrap_or(0)
}

/// Reduces the rows of `x`, which are as long as `out`, on several threads: each takes columns, or runs of rows.
pub fn reduce_shared<M: Monoid>(x: &[M::T], out: &mut [M::T], time: u64) {
    let (width, rows) = (out.len(), x.len() / out.len());
    if width >= 2 * COLUMNS {
        let parts: Vec<Mutex<&mut [M::T]>> = out.chunks_mut(COLUMNS).map(Mutex::new).collect();
        return pool::share(time, parts.len(), &|_, k| {
            let mut out = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            block::<M>(&x[k * COLUMNS..], (width, rows), &mut out);
        });
    }
    let task = rows_of_task(rows);
    let parts: Vec<Mutex<Levels>> = (0..rows.div_ceil(task)).map(|_| Mutex::default()).collect();
    pool::share(time, parts.len(), &|_, k| {
        let mut levels = parts[k].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rows = task.min(rows - k * task);
        take::<M>(&x[k * task * width..], (width, rows), &mut levels, &mut vec![M::IDENTITY; width]);
    });
    let mut levels = Levels::default();
    for part in parts {
        append::<M>(&mut levels, &mut part.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner), width);
    }
    finish::<M>(&mut levels, out);
}
