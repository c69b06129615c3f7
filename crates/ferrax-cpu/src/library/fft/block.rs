//! A block of transforms, one a lane: loaded into scratch memory, transformed there, and stored.
//!
//! The scratch holds elements one after the other, each a vector of real parts and one of imaginary parts. Rows whose
//! elements are neighbours are transposed on the way in and out; neighbouring columns are read as they are. Passes run
//! in place, depth first while a part is larger than the nearest cache, and results are put in order by the store.
//! An inverse transform is a forward one with real and imaginary parts exchanged. Lanes never meet, so the bits of a
//! transform do not depend on its neighbours, nor on the width of a vector. Read next: `butterfly.rs`.

use super::butterfly::{Constant, any_pass};
use super::plan::Plan;
use crate::simd::lanes::{Lanes, MOST, Real};
use crate::simd::wave::{C, SIDE, Square, Wave};
use std::mem::MaybeUninit;

/// What is transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Complex elements along an axis after which `inner` elements follow.
    Complex { inner: usize, inverse: bool },
    /// Real rows of this many elements, to half of their transforms.
    Forward(usize),
    /// The inverse of that.
    Backward(usize),
}

/// A block: the transforms from `first` on, `count` of them. Numbers are pointed to by parts.
#[derive(Clone, Copy)]
pub struct Block<'a, T> {
    pub plan: &'a Plan<T>,
    pub way: Way,
    pub src: *const T,
    pub dst: *mut T,
    /// What results are multiplied by.
    pub scale: T,
    pub first: usize,
    pub count: usize,
    /// Whether the transforms are along neighbouring columns, rather than any.
    pub columns: bool,
    /// Room for `lines` vectors.
    pub scratch: *mut T,
}

/// Bytes of the nearest cache that a part of a block may take.
const NEAR: usize = 24 << 10;

/// Vectors of scratch that a block of a plan takes.
pub fn lines<T>(plan: &Plan<T>) -> usize {
    2 * (plan.n + 1)
}

/// Transforms a block.
///
/// # Safety
/// The machine must have the instruction set of L, `count` must not exceed its lanes, the addresses that `way` and the
/// plan say must be valid, and no other thread may write what is read, or touch what is written.
#[inline(always)]
pub unsafe fn run<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: the caller's contract, here and in all functions below.
    unsafe {
        load::<L>(b);
        transform::<L>(b, matches!(b.way, Way::Complex { inverse: true, .. } | Way::Backward(_)));
        store::<L>(b);
    }
}

#[inline(always)]
unsafe fn load<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: `run`'s contract.
    unsafe {
        match b.way {
            Way::Complex { inner: 1, .. } => load_rows::<L>(b, 2 * b.plan.n, 1),
            Way::Complex { inner, .. } if b.columns => load_columns::<L>(b, inner),
            Way::Complex { inner, .. } => load_lanes::<L>(b, inner),
            Way::Forward(length) if length.is_multiple_of(2) => load_rows::<L>(b, length, 1),
            Way::Forward(length) => load_rows::<L>(b, length, 2),
            Way::Backward(length) => {
                load_rows::<L>(b, length / 2 * 2 + 2, 1);
                if length.is_multiple_of(2) { repack::<L>(b) } else { mirror::<L>(b) }
            }
        }
    }
}

#[inline(always)]
unsafe fn store<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: `run`'s contract.
    unsafe {
        match b.way {
            Way::Complex { inner: 1, .. } => store_rows::<L, 2>(b, 2 * b.plan.n),
            Way::Complex { inner, .. } if b.columns => store_columns::<L>(b, inner),
            Way::Complex { inner, .. } => store_lanes::<L>(b, inner),
            Way::Forward(length) => {
                if length.is_multiple_of(2) {
                    unpack::<L>(b);
                } else {
                    L::splat(L::T::ZERO).store(b.scratch.add(L::N));
                }
                store_rows::<L, 2>(b, length / 2 * 2 + 2);
            }
            Way::Backward(length) if length.is_multiple_of(2) => store_rows::<L, 2>(b, length),
            Way::Backward(length) => store_rows::<L, 1>(b, length),
        }
    }
}

/// The rows of a block; lanes without one have the last.
#[inline(always)]
fn rows<L: Wave, P: Copy>(b: &Block<'_, L::T>, row: impl Fn(usize) -> P) -> [P; MOST] {
    std::array::from_fn(|lane| row(b.first + lane.min(b.count - 1)))
}

/// Runs a body for squares of rows in turn, 64 bytes of each: for element `$i` from `$start` to before `$end` and lane
/// `$g`. No closure: those are not compiled for the instruction set.
macro_rules! squares {
    ($L:ident, $start:expr, $end:expr, |$i:ident, $g:ident| $body:block) => {
        let (side, line, end) = ($L::Part::N, 64 / size_of::<$L::T>(), $end);
        for start in ($start..end).step_by(line) {
            for $g in (0..$L::N).step_by(side) {
                for $i in (start..end.min(start + line)).step_by(side) $body
            }
        }
    };
}

/// Loads rows of `parts` numbers; `every` is 2 where they are real parts only.
#[inline(always)]
unsafe fn load_rows<L: Wave>(b: &Block<'_, L::T>, parts: usize, every: usize) {
    let side = L::Part::N;
    // SAFETY: `run`'s contract.
    unsafe {
        let src = rows::<L, _>(b, |row| b.src.add(row * parts));
        squares!(L, 0, parts / side * side, |i, g| {
            let mut from = [src[0]; SIDE];
            for j in 0..side {
                from[j] = src[g + j].add(i);
            }
            let t = L::Part::square(&from);
            for j in 0..side {
                t[j].store(b.scratch.add((i + j) * every * L::N + g));
            }
        });
        for i in parts / side * side..parts {
            for lane in 0..L::N {
                *b.scratch.add(i * every * L::N + lane) = *src[lane].add(i);
            }
        }
        if every == 2 {
            for i in 0..parts {
                L::splat(L::T::ZERO).store(b.scratch.add((2 * i + 1) * L::N));
            }
        }
    }
}

/// Numbers of a row that are held back, to be stored at once.
const HELD: usize = 64;

#[repr(align(64))]
struct Held<T>([[T; HELD]; MOST]);

/// Stores rows of `parts` numbers: real and imaginary parts of results, or (`PARTS` = 1) real ones only.
#[inline(always)]
unsafe fn store_rows<L: Wave, const PARTS: usize>(b: &Block<'_, L::T>, parts: usize) {
    let side = L::Part::N;
    // SAFETY: `run`'s contract.
    unsafe {
        let dst = rows::<L, _>(b, |row| b.dst.add(row * parts));
        let (scale, order) = (L::Part::splat(b.scale), b.plan.order.as_ptr());
        let line = |i: usize| b.scratch.add((2 * *order.add(i / PARTS) as usize + i % PARTS) * L::N);
        // Rows a power of two apart push each other out of the cache: then by way of a few lines of each.
        let apart = (parts * size_of::<L::T>()).is_multiple_of(1024);
        let mut held = MaybeUninit::<Held<L::T>>::uninit();
        let held = held.as_mut_ptr().cast::<L::T>();
        let whole = parts / side * side;
        let step = if apart { HELD } else { whole.max(1) };
        for start in (0..whole).step_by(step) {
            let width = step.min(whole - start);
            let mut to = dst;
            if apart {
                (0..L::N).for_each(|lane| to[lane] = held.wrapping_add(lane * HELD).wrapping_sub(start));
            }
            squares!(L, start, start + width, |i, g| {
                let mut from = [b.scratch.cast_const(); SIDE];
                for j in 0..side {
                    from[j] = line(i + j).add(g);
                }
                let t = L::Part::square(&from);
                for j in 0..side {
                    t[j].times(scale).store(to[g + j].wrapping_add(i));
                }
            });
            if apart {
                for lane in 0..b.count {
                    let (from, to) = (held.add(lane * HELD), dst[lane].add(start));
                    for i in (0..width).step_by(side) {
                        L::Part::load(from.add(i)).store(to.add(i));
                    }
                }
            }
        }
        for i in parts / side * side..parts {
            for lane in 0..b.count {
                *dst[lane].add(i) = *line(i).add(lane) * b.scale;
            }
        }
    }
}

/// Parts of numbers in the two vectors of a ragged block of columns.
#[inline(always)]
fn two_widths(count: usize, lanes: usize) -> [usize; 2] {
    [lanes.min(2 * count), (2 * count).saturating_sub(lanes)]
}

/// The first number of the first of neighbouring columns, counted in parts.
#[inline(always)]
fn column(first: usize, n: usize, inner: usize) -> usize {
    2 * (first / inner * n * inner + first % inner)
}

#[inline(always)]
unsafe fn load_columns<L: Wave>(b: &Block<'_, L::T>, inner: usize) {
    // SAFETY: `run`'s contract.
    unsafe {
        let src = b.src.add(column(b.first, b.plan.n, inner));
        let [near, far] = two_widths(b.count, L::N);
        for i in 0..b.plan.n {
            let from = src.add(2 * i * inner);
            let [re, im] = if b.count == L::N {
                L::split(L::load(from), L::load(from.add(L::N)))
            } else {
                L::split(L::load_first(from, near), L::load_first(from.add(near), far))
            };
            C { re, im }.store(b.scratch, b.scratch.add(L::N), 2 * i * L::N);
        }
    }
}

#[inline(always)]
unsafe fn store_columns<L: Wave>(b: &Block<'_, L::T>, inner: usize) {
    // SAFETY: `run`'s contract.
    unsafe {
        let (scale, dst) = (L::splat(b.scale), b.dst.add(column(b.first, b.plan.n, inner)));
        let [near, far] = two_widths(b.count, L::N);
        for k in 0..b.plan.n {
            let at = 2 * *b.plan.order.get_unchecked(k) as usize * L::N;
            let x = C::<L>::load(b.scratch, b.scratch.add(L::N), at).scaled(scale);
            let ([x, y], to) = (L::join(x.re, x.im), dst.add(2 * k * inner));
            if b.count == L::N {
                x.store(to);
                y.store(to.add(L::N));
            } else {
                x.store_first(to, near);
                y.store_first(to.add(near), far);
            }
        }
    }
}

/// Loads columns of which few are neighbours, number by number.
#[inline(always)]
unsafe fn load_lanes<L: Wave>(b: &Block<'_, L::T>, inner: usize) {
    for lane in 0..L::N {
        // SAFETY: `run`'s contract; lanes without a column read the last one.
        unsafe {
            let src = b.src.add(column(b.first + lane.min(b.count - 1), b.plan.n, inner));
            for i in 0..b.plan.n {
                let (from, to) = (src.add(2 * i * inner), b.scratch.add(2 * i * L::N + lane));
                *to = *from;
                *to.add(L::N) = *from.add(1);
            }
        }
    }
}

#[inline(always)]
unsafe fn store_lanes<L: Wave<T: Constant>>(b: &Block<'_, L::T>, inner: usize) {
    for lane in 0..b.count {
        // SAFETY: `run`'s contract.
        unsafe {
            let dst = b.dst.add(column(b.first + lane, b.plan.n, inner));
            for k in 0..b.plan.n {
                let from = b.scratch.add(2 * *b.plan.order.get_unchecked(k) as usize * L::N + lane);
                let to = dst.add(2 * k * inner);
                *to = *from * b.scale;
                *to.add(1) = *from.add(L::N) * b.scale;
            }
        }
    }
}

/// All passes over the scratch.
#[inline(always)]
unsafe fn transform<L: Wave<T: Constant>>(b: &Block<'_, L::T>, inverse: bool) {
    // SAFETY: `run`'s contract.
    unsafe {
        let (near, far) = (b.scratch, b.scratch.add(L::N));
        let (re, im) = if inverse { (far, near) } else { (near, far) };
        let size = 2 * L::N * size_of::<L::T>();
        // The blocks of passes before `deep` are larger than the cache: one by one, depth first.
        let deep = b.plan.passes.iter().take_while(|p| p.radix * p.m * size > NEAR).count();
        // What remains of a block after the passes before `deep`.
        let small = b.plan.passes.get(deep).map_or(1, |p| p.radix * p.m);
        for at in (0..b.plan.n).step_by(small) {
            let mut blocks = 1;
            let first = (re.add(2 * at * L::N), im.add(2 * at * L::N));
            for (i, p) in b.plan.passes.iter().enumerate() {
                // A deep pass is due where one of its blocks begins.
                if i >= deep || at.is_multiple_of(p.radix * p.m) {
                    any_pass::<L>(p.radix, first, p.m, blocks, b.plan.turns.as_ptr().add(p.turns));
                }
                blocks *= if i >= deep { p.radix } else { 1 };
            }
        }
    }
}

/// From the transform Z of x[2j] + i x[2j+1] to that of x: E + w O and E - w O of pairs k and n - k, where
/// E = (Z[k] + Z[n-k]*) / 2 and O = (Z[k] - Z[n-k]*) / 2i.
#[inline(always)]
unsafe fn unpack<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: `run`'s contract.
    unsafe {
        let (re, im, n) = (b.scratch, b.scratch.add(L::N), b.plan.n);
        let (zero, half) = (L::splat(L::T::ZERO), L::splat(L::T::of(0.5)));
        let z = C::<L>::load(re, im, 0);
        C { re: z.re.plus(z.im), im: zero }.store(re, im, 0);
        C { re: z.re.minus(z.im), im: zero }.store(re, im, 2 * n * L::N);
        for k in 1..=n / 2 {
            let [near, far] = [k, n - k].map(|k| 2 * *b.plan.order.get_unchecked(k) as usize * L::N);
            let (x, y) = (C::<L>::load(re, im, near), C::<L>::load(re, im, far));
            let s = C { re: x.re.plus(y.re), im: x.im.minus(y.im) };
            let t = C { re: x.re.minus(y.re), im: x.im.plus(y.im) }.by(b.plan.halves.as_ptr().add(2 * k));
            t.more(half, s).store(re, im, near);
            C { re: half.times(s.re).minus(t.re), im: L::less(half, s.im, t.im) }.store(re, im, far);
        }
    }
}

/// The inverse of `unpack`, twice: Z = E + i O, from elements in order.
#[inline(always)]
unsafe fn repack<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: `run`'s contract.
    unsafe {
        let (re, im, n) = (b.scratch, b.scratch.add(L::N), b.plan.n);
        let (first, last) = (L::load(re), L::load(re.add(2 * n * L::N)));
        C { re: first.plus(last), im: first.minus(last) }.store(re, im, 0);
        let two = L::splat(L::T::of(2.0));
        for k in 1..=n / 2 {
            let [near, far] = [k, n - k].map(|k| 2 * k * L::N);
            let (x, y) = (C::<L>::load(re, im, near), C::<L>::load(re, im, far));
            let s = C { re: x.re.plus(y.re), im: x.im.minus(y.im) };
            let d = C { re: x.re.minus(y.re), im: x.im.plus(y.im) };
            // i w* d is 2 (w / 2i)* d.
            let w = b.plan.halves.as_ptr().add(2 * k);
            let (c, e) = (L::splat(*w), L::splat(*w.add(1)));
            let t = C { re: L::fma(e, d.im, c.times(d.re)), im: L::less(e, d.re, c.times(d.im)) };
            s.more(two, t).store(re, im, near);
            C { re: L::less(two, t.re, s.re), im: two.times(t.im).minus(s.im) }.store(re, im, far);
        }
    }
}

/// All of a transform of odd length from its first half.
#[inline(always)]
unsafe fn mirror<L: Wave<T: Constant>>(b: &Block<'_, L::T>) {
    // SAFETY: `run`'s contract.
    unsafe {
        let (re, im, n) = (b.scratch, b.scratch.add(L::N), b.plan.n);
        let zero = L::splat(L::T::ZERO);
        zero.store(im);
        for k in 1..=n / 2 {
            let x = C::<L>::load(re, im, 2 * k * L::N);
            C { re: x.re, im: zero.minus(x.im) }.store(re, im, 2 * (n - k) * L::N);
        }
    }
}
