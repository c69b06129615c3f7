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

/// Joins one array to another; without iterators, whose making may become a call.
#[inline(always)]
fn join<M: Monoid, const N: usize>(to: &mut [M::T; N], from: &[M::T; N]) {
    for i in 0..N {
        to[i] = M::join(to[i], from[i]);
    }
}

/// Rows whose elements are joined one behind the other.
#[inline(always)]
fn in_sequence<M: Monoid>(x: &[M::T], n: usize, out: &mut [M::T]) {
    let mut columns = [[M::IDENTITY; ROWS]; FEW];
    for (x, out) in x.chunks(n * ROWS).zip(out.chunks_mut(ROWS)) {
        let mut results = [M::IDENTITY; ROWS];
        for column in transpose(x, n, &mut columns) {
            join::<M, ROWS>(&mut results, column);
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
    let vectors = (black_box(HALF) & !15).min(HALF);
    let mut left = x;
    for out in out.chunks_mut(PARTS) {
        for part in &mut parts[..out.len()] {
            // One row after the other: vectors of an element of each are slow to gather.
            *part = last_part::<M, HALF>(black_box(left), (n, vectors), &mut ragged);
            left = &left[n..];
        }
        let columns = transpose(parts[..out.len()].as_flattened(), PART, &mut columns);
        let mut count = PART / 2;
        while count > 0 {
            let (low, high) = columns.split_at_mut(count);
            for (low, high) in low.iter_mut().zip(high) {
                join::<M, PARTS>(low, high);
            }
            count /= 2;
        }
        let mut results = [M::IDENTITY; PARTS];
        join::<M, PARTS>(&mut results, &columns[0]);
        out.copy_from_slice(&results[..out.len()]);
    }
}

/// What is left of the row of `n` elements that `x` begins with when `PART` elements are. Its loops have no closures, which may
/// become calls. Where joins are free, the halves of a ragged row overlap. Else the elements of the next row are read and left
/// out, as a copy would be read before its parts are written, in a loop to `HALF` whose length the compiler does not know, which
/// makes vectors of it; the last rows are copied, and what they have no elements for is neutral in `ragged`.
#[inline(always)]
fn last_part<M: Monoid, const HALF: usize>(
    x: &[M::T],
    (n, vectors): (usize, usize),
    ragged: &mut [M::T; HALF],
) -> [M::T; PART] {
    let (low, rest) = x.split_at(HALF);
    let count = n - HALF;
    let mut acc = [M::IDENTITY; HALF];
    let overlapping = if M::FREE { x[count..].first_chunk::<HALF>() } else { None };
    let copied = HALF < LANES / 2 && count.is_multiple_of(PART);
    match overlapping.or(rest.first_chunk::<HALF>()) {
        Some(high) if !M::FREE && count < HALF && !copied => {
            for i in 0..vectors {
                acc[i] = M::join(low[i], if i < count { high[i] } else { M::IDENTITY });
            }
        }
        found => {
            let whole = found.filter(|_| M::FREE || count == HALF);
            let high = whole.unwrap_or_else(|| {
                ragged[..count].copy_from_slice(&rest[..count]);
                ragged
            });
            for i in 0..HALF {
                acc[i] = M::join(low[i], high[i]);
            }
        }
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
