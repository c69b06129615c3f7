//! Vectors of keys: what sorting in registers needs of AVX2.
//!
//! Methods are inlined into functions that enable the instruction set; calling them elsewhere is undefined. A key is an
//! unsigned integer. Read next: `quick.rs`, which is written in these.

use crate::simd::lanes::first_words;
use core::arch::x86_64::*;

/// A vector of `N` keys.
pub trait Keys: Copy {
    type Key: Copy + Ord;
    /// Words of 4 bytes that a key has.
    const WORDS: usize;
    const N: usize = 8 / Self::WORDS;
    /// The key that sorts last: all its bits are set.
    const LAST: Self::Key;

    fn of(bits: __m256i) -> Self;
    fn bits(self) -> __m256i;

    /// The key after another, which is not the last.
    fn after(key: Self::Key) -> Self::Key;

    /// # Safety
    /// As for all methods here: the machine has AVX2, and addresses are valid for the keys read or written, the first
    /// `n` where the name says so.
    unsafe fn splat(key: Self::Key) -> Self;
    #[inline(always)]
    unsafe fn load(p: *const Self::Key) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::of(_mm256_loadu_si256(p.cast())) }
    }
    /// The other lanes get `LAST`.
    #[inline(always)]
    unsafe fn load_first(p: *const Self::Key, n: usize) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let mask = first_words(Self::WORDS * n);
            let last = _mm256_andnot_si256(mask, _mm256_set1_epi32(-1));
            Self::of(_mm256_or_si256(_mm256_maskload_epi32(p.cast(), mask), last))
        }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut Self::Key) {
        // SAFETY: the caller's contract.
        unsafe { _mm256_storeu_si256(p.cast(), self.bits()) }
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut Self::Key, n: usize) {
        // SAFETY: the caller's contract.
        unsafe { _mm256_maskstore_epi32(p.cast(), first_words(Self::WORDS * n), self.bits()) }
    }
    unsafe fn min(self, other: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    unsafe fn reversed(self) -> Self;
    /// Lanes in order.
    unsafe fn sorted(self) -> Self;
    /// Lanes in order that ascend, then descend, as they are.
    unsafe fn merged(self) -> Self;
    /// Lanes below the pivot first, the others after them, and how many those others are.
    unsafe fn parted(self, pivot: Self) -> (Self, usize);
}

/// For every set of lanes of eight, a byte for each lane of the result: where it comes from. Lanes outside the set come
/// first.
static EIGHT: [u64; 256] = places::<8, 256>(1);
/// The same for four lanes, of two words each.
static FOUR: [u64; 16] = places::<4, 16>(2);

const fn places<const N: usize, const SETS: usize>(words: usize) -> [u64; SETS] {
    let mut all = [0; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut at, mut inside) = (0, 0);
        while inside < 2 {
            let mut lane = 0;
            while lane < N {
                if (set >> lane) & 1 == inside {
                    let mut word = 0;
                    while word < words {
                        all[set] |= ((lane * words + word) as u64) << (8 * at);
                        at += 1;
                        word += 1;
                    }
                }
                lane += 1;
            }
            inside += 1;
        }
        set += 1;
    }
    all
}

#[inline(always)]
unsafe fn permuted(x: __m256i, places: u64) -> __m256i {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_permutevar8x32_epi32(x, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(places as i64))) }
}

/// Each lane with the one that a shuffle brings there: the less where `$blend` has no bit, the greater where it has.
macro_rules! exchanged {
    ($x:expr, $shuffled:expr, $blend:literal) => {{
        let (x, y) = ($x, Self($shuffled));
        Self(_mm256_blend_epi32::<$blend>(x.min(y).0, x.max(y).0))
    }};
}

/// Eight keys of 4 bytes.
#[derive(Clone, Copy)]
pub struct Words(__m256i);

impl Words {
    #[inline(always)]
    unsafe fn by_two_and_one(self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe {
            let x = exchanged!(self, _mm256_shuffle_epi32::<0x4e>(self.0), 0xcc);
            exchanged!(x, _mm256_shuffle_epi32::<0xb1>(x.0), 0xaa)
        }
    }
}

impl Keys for Words {
    type Key = u32;
    const WORDS: usize = 1;
    const LAST: u32 = u32::MAX;

    #[inline(always)]
    fn of(bits: __m256i) -> Self {
        Words(bits)
    }
    #[inline(always)]
    fn bits(self) -> __m256i {
        self.0
    }
    fn after(key: u32) -> u32 {
        key + 1
    }
    #[inline(always)]
    unsafe fn splat(key: u32) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Words(_mm256_set1_epi32(key as i32)) }
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Words(_mm256_min_epu32(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Words(_mm256_max_epu32(self.0, other.0)) }
    }
    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Words(_mm256_permutevar8x32_epi32(self.0, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0))) }
    }
    #[inline(always)]
    unsafe fn sorted(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            // Pairs, then fours, then the eight; the first exchange of each is with the mirrored half.
            let x = exchanged!(self, _mm256_shuffle_epi32::<0xb1>(self.0), 0xaa);
            let x = exchanged!(x, _mm256_shuffle_epi32::<0x1b>(x.0), 0xcc);
            let x = exchanged!(x, _mm256_shuffle_epi32::<0xb1>(x.0), 0xaa);
            exchanged!(x, x.reversed().0, 0xf0).by_two_and_one()
        }
    }
    #[inline(always)]
    unsafe fn merged(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { exchanged!(self, _mm256_permute4x64_epi64::<0x4e>(self.0), 0xf0).by_two_and_one() }
    }
    #[inline(always)]
    unsafe fn parted(self, pivot: Self) -> (Self, usize) {
        // SAFETY: the caller's contract.
        unsafe {
            let above = _mm256_cmpeq_epi32(self.max(pivot).0, self.0);
            let set = _mm256_movemask_ps(_mm256_castsi256_ps(above)) as usize;
            (Words(permuted(self.0, EIGHT[set & 255])), set.count_ones() as usize)
        }
    }
}

/// Four keys of 8 bytes.
#[derive(Clone, Copy)]
pub struct Longs(__m256i);

impl Longs {
    /// All ones in lanes that are less than those of another.
    #[inline(always)]
    unsafe fn less(self, other: Self) -> __m256i {
        // SAFETY: the caller has AVX2. Its comparison is of signed numbers.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            _mm256_cmpgt_epi64(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign))
        }
    }

    #[inline(always)]
    unsafe fn by_one(self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe { exchanged!(self, _mm256_shuffle_epi32::<0x4e>(self.0), 0xcc) }
    }
}

impl Keys for Longs {
    type Key = u64;
    const WORDS: usize = 2;
    const LAST: u64 = u64::MAX;

    #[inline(always)]
    fn of(bits: __m256i) -> Self {
        Longs(bits)
    }
    #[inline(always)]
    fn bits(self) -> __m256i {
        self.0
    }
    fn after(key: u64) -> u64 {
        key + 1
    }
    #[inline(always)]
    unsafe fn splat(key: u64) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Longs(_mm256_set1_epi64x(key as i64)) }
    }
    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Longs(_mm256_blendv_epi8(other.0, self.0, self.less(other))) }
    }
    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Longs(_mm256_blendv_epi8(self.0, other.0, self.less(other))) }
    }
    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Longs(_mm256_permute4x64_epi64::<0x1b>(self.0)) }
    }
    #[inline(always)]
    unsafe fn sorted(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            let x = self.by_one();
            exchanged!(x, x.reversed().0, 0xf0).by_one()
        }
    }
    #[inline(always)]
    unsafe fn merged(self) -> Self {
        // SAFETY: the caller's contract.
        unsafe { exchanged!(self, _mm256_permute4x64_epi64::<0x4e>(self.0), 0xf0).by_one() }
    }
    #[inline(always)]
    unsafe fn parted(self, pivot: Self) -> (Self, usize) {
        // SAFETY: the caller's contract.
        unsafe {
            let below = _mm256_movemask_pd(_mm256_castsi256_pd(self.less(pivot))) as usize;
            let set = !below & 15;
            (Longs(permuted(self.0, FOUR[set])), set.count_ones() as usize)
        }
    }
}
