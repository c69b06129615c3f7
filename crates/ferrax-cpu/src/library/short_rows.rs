//! Rows of a few elements: many are transposed at once, so that a vector holds one element of each. Longer ones are joined in
//! vectors of a row's own elements, until one is left of each.
//!
//! A row that is no multiple of a vector leaves a part of one empty, and its elements are joined across vectors.
//! Columns of many rows are joined in the order of each row's elements: with `reduce.rs`'s bits. Read next:
//! `transposition.rs`, which moves them in registers.

use crate::library::reduce::{FEW, Itself, LANES, Monoid, reduce_row};
use crate::library::transposition::{self, Pair};
use std::hint::black_box;

/// Rows of fewer than `FEW` elements that are transposed at once.
pub const ROWS: usize = 64;
/// Elements of rows of up to `LANES` that are left when rows are transposed; fewer rows than as many are reduced one by one.
const PART: usize = 8;
/// Rows of which those are transposed at once.
const PARTS: usize = 32;
/// Fewer rows are reduced one by one.
const WORTH: usize = 32;

/// Whether `count` rows are transposed: those of elements that registers move.
#[inline(always)]
pub fn transposed<T>(count: usize) -> bool {
    count >= WORTH && movable::<T>()
}

/// Whether registers move elements.
#[inline(always)]
fn movable<T>() -> bool {
    matches!(size_of::<T>(), 4 | 8) && align_of::<T>() == size_of::<T>()
}

/// The columns of at most `COUNT` rows of `n` elements: element i of the rows is `columns[i]`.
#[inline(always)]
pub fn transpose<'a, T: Copy, const COUNT: usize>(
    x: &[T],
    n: usize,
    columns: &'a mut [[T; COUNT]],
) -> &'a mut [[T; COUNT]] {
    let held = &mut columns[..n];
    let rows = x.len() / n;
    assert!(rows <= COUNT);
    let dst = held.as_mut_ptr().cast();
    // SAFETY: the rows lie in x, and each of the n columns has room for `COUNT` elements.
    unsafe {
        transposition::copy(Pair {
            src: x.as_ptr(),
            dst,
            rows: n,
            dst_step: COUNT as isize,
            columns: rows,
            src_step: n as isize,
        });
    }
    held
}

/// Reduces rows of `n` elements, each in the order of [`reduce_row`].
#[inline(always)]
pub fn reduce<M: Monoid, const WIDE: bool>(x: &[M::T], n: usize, out: &mut [M::T]) {
    match n {
        2 => unrolled::<M, 2>(x, out),
        3 => unrolled::<M, 3>(x, out),
        4 => unrolled::<M, 4>(x, out),
        8 => unrolled::<M, 8>(x, out),
        ..FEW if transposed::<M::T>(out.len()) => in_sequence::<M>(x, n, out),
        FEW..=LANES if out.len() >= PART && movable::<M::T>() => in_halves::<M>(x, n, out),
        _ => x.chunks_exact(n).zip(out).for_each(|(x, out)| *out = reduce_row::<M, _, WIDE>(x, Itself)),
    }
}

/// Rows of `N` elements: so few that the loop over them is unrolled.
#[inline(always)]
fn unrolled<M: Monoid, const N: usize>(x: &[M::T], out: &mut [M::T]) {
    for (x, out) in x.as_chunks::<N>().0.iter().zip(out) {
        *out = x.iter().fold(M::IDENTITY, |a, &b| M::join(a, b));
    }
}

#[inline(always)]
fn join<M: Monoid>(to: &mut [M::T], from: &[M::T]) {
    for (a, &b) in to.iter_mut().zip(from) {
        *a = M::join(*a, b);
    }
}

/// Rows whose elements are joined one behind the other.
#[inline(always)]
fn in_sequence<M: Monoid>(x: &[M::T], n: usize, out: &mut [M::T]) {
    let mut columns = [[M::IDENTITY; ROWS]; FEW];
    for (x, out) in x.chunks(n * ROWS).zip(out.chunks_mut(ROWS)) {
        let mut results = [M::IDENTITY; ROWS];
        for column in transpose(x, n, &mut columns) {
            join::<M>(&mut results, column);
        }
        out.copy_from_slice(&results[..out.len()]);
    }
}

/// Rows whose halves are joined until one element is left. That the neutral element is joined at the end gives the same bits
/// as without what else it is joined to: it matters to a sum of negative zeros.
#[inline(always)]
fn in_halves<M: Monoid>(x: &[M::T], n: usize, out: &mut [M::T]) {
    match n {
        ..=32 => halves::<M, 16>(x, n, out),
        33..=64 => halves::<M, 32>(x, n, out),
        _ => halves::<M, { LANES / 2 }>(x, n, out),
    }
}

/// Rows of more than `HALF` elements and at most twice as many: what is left of each is transposed with that of others. Loops are
/// over fixed ranges, for vectors.
#[inline(always)]
fn halves<M: Monoid, const HALF: usize>(x: &[M::T], n: usize, out: &mut [M::T]) {
    let (mut parts, mut columns) = ([[M::IDENTITY; PART]; PARTS], [[M::IDENTITY; PARTS]; PART]);
    let mut ragged = [M::IDENTITY; HALF];
    for (x, out) in x.chunks(n * PARTS).zip(out.chunks_mut(PARTS)) {
        for (part, row) in parts.iter_mut().zip(x.chunks_exact(n)) {
            // One row after the other: vectors of an element of each are slow to gather.
            *part = last_part::<M, HALF>(black_box(row), &mut ragged);
        }
        let columns = transpose(parts[..out.len()].as_flattened(), PART, &mut columns);
        let mut count = PART / 2;
        while count > 0 {
            let (low, high) = columns.split_at_mut(count);
            for (low, high) in low.iter_mut().zip(high) {
                join::<M>(low, high);
            }
            count /= 2;
        }
        let mut results = [M::IDENTITY; PARTS];
        join::<M>(&mut results, &columns[0]);
        out.copy_from_slice(&results[..out.len()]);
    }
}

/// What is left of a row when `PART` elements are; what a row has no elements for is neutral in `ragged`. Its loops have no
/// closures, which may become calls, and ragged rows take no branches for each part of them: copying costs less.
#[inline(always)]
fn last_part<M: Monoid, const HALF: usize>(row: &[M::T], ragged: &mut [M::T; HALF]) -> [M::T; PART] {
    let (low, high) = row.split_at(HALF);
    let high = match <&[M::T; HALF]>::try_from(high) {
        Ok(high) => high,
        Err(_) => {
            ragged[..high.len()].copy_from_slice(high);
            &*ragged
        }
    };
    let mut acc = [M::IDENTITY; HALF];
    for i in 0..HALF {
        acc[i] = M::join(low[i], high[i]);
    }
    let mut width = HALF / 2;
    while width >= PART {
        for i in 0..width {
            acc[i] = M::join(acc[i], acc[i + width]);
        }
        width /= 2;
    }
    let mut part = [M::IDENTITY; PART];
    part.copy_from_slice(&acc[..PART]);
    part
}
