//! Sorting of keys in registers: quicksort from one buffer to another and back, networks for what is short.
//!
//! A row is parted by a pivot, vector by vector: keys below it are stored from the left on, the others from the right,
//! which takes no branch. Pieces of up to `SHORT` vectors are sorted by bitonic networks. The result does not depend on
//! pivots, so neither on threads. Source: K. E. Batcher, "Sorting networks and their applications"; B. Bramas, "A novel
//! hybrid quicksort algorithm vectorized using AVX-512". Read next: `lanes.rs`.

use super::lanes::{Keys, Longs, Words};
use crate::pool;
use std::sync::{Mutex, PoisonError};

/// Vectors of the longest piece that networks sort.
const SHORT: usize = 8;

/// Nanoseconds that a key takes, about: to be parted once, and to be sorted.
const PARTED: u64 = 1;
const SORTED: u64 = 4;

/// Keys that have vectors.
pub trait InLanes: Copy + Ord + Send {
    type Vector: Keys<Key = Self>;
}

impl InLanes for u32 {
    type Vector = Words;
}

impl InLanes for u64 {
    type Vector = Longs;
}

/// Whether the machine has what these vectors need.
pub fn suits() -> bool {
    crate::simd::wide() && std::is_x86_feature_detected!("popcnt")
}

/// Sorts a row, where [`suits`] says so, on several threads where it is worth it; `other` is room.
pub fn sort<K: InLanes>(row: &mut [K], other: &mut [K]) {
    let n = row.len();
    assert!(other.len() >= n && suits(), "room and vectors");
    let whole =
        Piece { here: row.as_mut_ptr(), there: other.as_mut_ptr(), n, home: true, left: 2 * n.max(1).ilog2() + 8 };
    if !pool::worth(SORTED * n as u64) {
        // SAFETY: both sides have n keys.
        return unsafe { whole.sort() };
    }
    let mut pieces = vec![whole];
    let work = |parted: u64| parted * n as u64;
    // Some pieces for each thread, so that none waits long for the last one.
    for _ in 0..(4 * pool::threads()).ilog2() {
        let parted = Mutex::new(Vec::with_capacity(2 * pieces.len()));
        pool::share(work(PARTED), pieces.len(), &|_, i| {
            let piece = &pieces[i];
            // SAFETY: both sides have the piece's keys, which no other task has.
            let parts = if piece.n > SHORT * K::Vector::N { unsafe { piece.parts() } } else { [*piece, piece.empty()] };
            parted.lock().unwrap_or_else(PoisonError::into_inner).extend(parts.into_iter().filter(|p| p.n > 0));
        });
        pieces = parted.into_inner().unwrap_or_else(PoisonError::into_inner);
    }
    pieces.sort_unstable_by_key(|p| std::cmp::Reverse(p.n));
    // SAFETY: both sides have the pieces' keys, which no other task has.
    pool::share(work(SORTED), pieces.len(), &|_, i| unsafe { pieces[i].sort() });
}

/// A piece of a row, and where it is now.
#[derive(Clone, Copy)]
pub struct Piece<K> {
    here: *mut K,
    /// Room as large elsewhere.
    there: *mut K,
    n: usize,
    /// Whether `here` is in the row, where the result has to be.
    home: bool,
    /// How often it may yet be parted before another algorithm takes over.
    left: u32,
}
// SAFETY: a piece is read and written by the thread that has it.
unsafe impl<K: Send> Send for Piece<K> {}
// SAFETY: see above; sharing one reads its addresses.
unsafe impl<K: Send> Sync for Piece<K> {}

impl<K: InLanes> Piece<K> {
    fn row(&self) -> *mut K {
        if self.home { self.here } else { self.there }
    }

    fn empty(&self) -> Self {
        Piece { n: 0, ..*self }
    }

    /// The keys from `first` on of what was moved there.
    unsafe fn moved(&self, first: usize, n: usize) -> Self {
        // SAFETY: the caller keeps inside the piece.
        unsafe {
            Piece {
                here: self.there.add(first),
                there: self.here.add(first),
                n,
                home: !self.home,
                left: self.left.saturating_sub(1),
            }
        }
    }

    /// Parts the piece: gives keys below a pivot and the others, or only what is left to sort. Each is shorter.
    ///
    /// # Safety
    /// [`suits`] must say so, and both sides have room for the piece, which must be longer than a vector.
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn parts(&self) -> [Self; 2] {
        // SAFETY: the caller's contract.
        unsafe {
            let pivot = pivot::<K::Vector>(self);
            let below = part::<K::Vector>(self, pivot);
            if below > 0 {
                return [self.moved(0, below), self.moved(below, self.n - below)];
            }
            // The pivot is the least key: those that equal it are done.
            let equal =
                if pivot == K::Vector::LAST { self.n } else { part::<K::Vector>(self, K::Vector::after(pivot)) };
            std::slice::from_raw_parts_mut(self.row(), equal).fill(pivot);
            [self.empty(), self.moved(equal, self.n - equal)]
        }
    }

    /// Sorts the piece.
    ///
    /// # Safety
    /// As for `parts`, of a piece of any length.
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn sort(self) {
        let mut piece = self;
        // SAFETY: the caller's contract; a piece that is parted is long.
        unsafe {
            while piece.n > SHORT * K::Vector::N {
                if piece.left == 0 {
                    let row = piece.row();
                    if !piece.home {
                        std::ptr::copy_nonoverlapping(piece.here, row, piece.n);
                    }
                    return std::slice::from_raw_parts_mut(row, piece.n).sort_unstable();
                }
                let [a, b] = piece.parts();
                let (shorter, longer) = if a.n < b.n { (a, b) } else { (b, a) };
                shorter.sort();
                piece = longer;
            }
            let (from, to, n) = (piece.here, piece.row(), piece.n);
            match n.div_ceil(K::Vector::N) {
                0 => {}
                1 => network::<K::Vector, 1, 1>(from, to, n),
                2 => network::<K::Vector, 2, 2>(from, to, n),
                3 => network::<K::Vector, 4, 3>(from, to, n),
                4 => network::<K::Vector, 4, 4>(from, to, n),
                5 => network::<K::Vector, SHORT, 5>(from, to, n),
                6 => network::<K::Vector, SHORT, 6>(from, to, n),
                7 => network::<K::Vector, SHORT, 7>(from, to, n),
                _ => network::<K::Vector, SHORT, SHORT>(from, to, n),
            }
        }
    }
}

/// A key near the middle of a piece: that of some keys at even distances.
#[inline(always)]
unsafe fn pivot<V: Keys>(p: &Piece<V::Key>) -> V::Key {
    let mut some = [V::LAST; 64];
    let count = if p.n < 1024 { V::N } else { SHORT * V::N };
    let step = p.n / count;
    for (i, key) in some[..count].iter_mut().enumerate() {
        // SAFETY: inside the piece.
        *key = unsafe { *p.here.add(i * step + step / 2) };
    }
    let at = some.as_mut_ptr();
    // SAFETY: the array has the keys.
    unsafe {
        if count == V::N { network::<V, 1, 1>(at, at, count) } else { network::<V, SHORT, SHORT>(at, at, count) }
    };
    some[count / 2]
}

/// Moves the keys there, those below the pivot first; gives their number.
#[inline(always)]
unsafe fn part<V: Keys>(p: &Piece<V::Key>, pivot: V::Key) -> usize {
    let (mut left, mut right) = (0, p.n);
    let ragged = p.n % V::N;
    // SAFETY: as many places between left and right are free as keys are to come, a multiple of a vector after the
    // ragged ones: both stores of a vector are the same, or do not overlap.
    unsafe {
        for i in 0..ragged {
            let key = *p.here.add(i);
            *p.there.add(left) = key;
            *p.there.add(right - 1) = key;
            left += usize::from(key < pivot);
            right -= usize::from(key >= pivot);
        }
        let pivot = V::splat(pivot);
        for i in (ragged..p.n).step_by(V::N) {
            let (keys, above) = V::load(p.here.add(i)).parted(pivot);
            keys.store(p.there.add(left));
            keys.store(p.there.add(right - V::N));
            left += V::N - above;
            right -= above;
        }
    }
    left
}

/// Sorts U vectors of keys, the last one perhaps ragged, in W registers: a power of two.
#[inline(always)]
unsafe fn network<V: Keys, const W: usize, const U: usize>(from: *const V::Key, to: *mut V::Key, n: usize) {
    // SAFETY: the caller's contract: n keys on both sides.
    unsafe {
        let mut x = [V::splat(V::LAST); W];
        for v in 0..U - 1 {
            x[v] = V::load(from.add(v * V::N)).sorted();
        }
        let (last, left) = ((U - 1) * V::N, n - (U - 1) * V::N);
        x[U - 1] = if left == V::N { V::load(from.add(last)) } else { V::load_first(from.add(last), left) }.sorted();
        let mut width = 1;
        while width < W {
            // A block whose second half has none of the keys is in order.
            for first in (0..W).step_by(2 * width).filter(|first| first + width < U) {
                for i in 0..width / 2 {
                    x.swap(first + width + i, first + 2 * width - 1 - i);
                }
                for i in first..first + width {
                    let other = x[i + width].reversed();
                    (x[i], x[i + width]) = (x[i].min(other), x[i].max(other));
                }
                let mut apart = width / 2;
                while apart > 0 {
                    for i in (first..first + 2 * width).filter(|i| i & apart == 0) {
                        (x[i], x[i + apart]) = (x[i].min(x[i + apart]), x[i].max(x[i + apart]));
                    }
                    apart /= 2;
                }
                for x in &mut x[first..first + 2 * width] {
                    *x = x.merged();
                }
            }
            width *= 2;
        }
        for v in 0..U - 1 {
            x[v].store(to.add(v * V::N));
        }
        if left == V::N { x[U - 1].store(to.add(last)) } else { x[U - 1].store_first(to.add(last), left) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;
    use proptest::prelude::*;

    fn check<K: InLanes + std::fmt::Debug>(keys: &[K], left: Option<u32>) {
        let mut wanted = keys.to_vec();
        wanted.sort_unstable();
        let (mut row, mut other) = (keys.to_vec(), keys.to_vec());
        match left {
            None => sort(&mut row, &mut other),
            Some(left) => {
                let (here, there, n) = (row.as_mut_ptr(), other.as_mut_ptr(), keys.len());
                // SAFETY: both sides have n keys, and the caller has asked `suits`.
                unsafe { Piece { here, there, n, home: true, left }.sort() };
            }
        }
        assert_eq!(row, wanted);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: cases(300), failure_persistence: None, ..ProptestConfig::default() })]

        /// Rows with many and with few different keys, the last one among them.
        #[test]
        fn rows_are_sorted(seed: u64, n in 0usize..3000, different in prop::option::of(1u64..40)) {
            prop_assume!(suits());
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = state ^ state >> 29;
                different.map_or(key, |d| u64::MAX - key % d * (u64::MAX / d))
            };
            let keys: Vec<u64> = (0..n).map(|_| next()).collect();
            let words: Vec<u32> = keys.iter().map(|k| (k >> 32) as u32).collect();
            for left in [None, Some(0), Some(2)] {
                check(&keys, left);
                check(&words, left);
            }
        }
    }

    /// Rows that are in some order already, and long enough for several threads.
    #[test]
    fn ordered_and_long_rows_are_sorted() {
        if !suits() {
            return;
        }
        for n in [64usize, 65, 1000, 300_000] {
            let up = |i: usize| i as u32;
            check(&(0..n).map(up).collect::<Vec<_>>(), None);
            check(&(0..n).rev().map(up).collect::<Vec<_>>(), None);
            check(&(0..n).map(|i| up(i.min(n - i))).collect::<Vec<_>>(), None);
            check(&(0..n).map(|i| up(i.wrapping_mul(2_654_435_761))).collect::<Vec<_>>(), None);
            check(&(0..n).map(|i| (i as u64).wrapping_mul(11_400_714_819_323_198_485)).collect::<Vec<_>>(), None);
            check(&vec![u32::MAX; n], None);
        }
    }
}
