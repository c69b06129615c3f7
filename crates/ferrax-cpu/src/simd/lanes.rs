//! Vectors that products are computed with, one type for each instruction set and element.
//!
//! Methods are inlined into functions that enable the instruction set; calling them elsewhere is undefined.

use super::fma as fused;
use std::ops::{Add, Mul, Neg, Sub};

/// A real element of a product.
pub trait Real:
    Copy
    + Send
    + Sync
    + PartialEq
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    /// `a * b + c`, fused where `F`.
    fn fma<const F: bool>(a: Self, b: Self, c: Self) -> Self;
}

impl Real for f32 {
    const ZERO: f32 = 0.0;
    #[inline(always)]
    fn fma<const F: bool>(a: f32, b: f32, c: f32) -> f32 {
        fused::<F>(a, b, c)
    }
}

impl Real for f64 {
    const ZERO: f64 = 0.0;
    #[inline(always)]
    fn fma<const F: bool>(a: f64, b: f64, c: f64) -> f64 {
        if F { a.mul_add(b, c) } else { a * b + c }
    }
}

/// A vector of `N` elements.
pub trait Lanes: Copy {
    type T: Real;
    const N: usize;
    /// Rows and vectors of the largest tile whose sums the registers hold.
    const ROWS: usize;
    const VECTORS: usize;

    /// # Safety
    /// As for all methods here: the machine has the instruction set, and addresses are valid for the elements read or
    /// written, the first `n` where the name says so.
    unsafe fn splat(x: Self::T) -> Self;
    unsafe fn load(p: *const Self::T) -> Self;
    unsafe fn load_first(p: *const Self::T, n: usize) -> Self;
    unsafe fn store(self, p: *mut Self::T);
    unsafe fn store_first(self, p: *mut Self::T, n: usize);
    unsafe fn fma(a: Self, b: Self, c: Self) -> Self;
    unsafe fn plus(self, b: Self) -> Self;
    /// The sum of the lanes of each vector, half and half.
    #[inline(always)]
    unsafe fn sums<const R: usize>(x: [Self; R]) -> [Self::T; R] {
        // SAFETY: the caller's contract.
        x.map(|v| unsafe { halves(v) })
    }
}

/// The lanes of the widest vector.
pub const MOST: usize = 16;

/// The sum of all lanes, half and half.
#[inline(always)]
unsafe fn halves<L: Lanes>(x: L) -> L::T {
    let mut lanes = [<L::T as Real>::ZERO; MOST];
    // SAFETY: the widest vector fits.
    unsafe { x.store(lanes.as_mut_ptr()) };
    let mut width = L::N / 2;
    while width > 0 {
        for j in 0..width {
            lanes[j] = lanes[j] + lanes[j + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Lanes as an array, for any machine; fused multiply-add where `F`. Tiles have `R` rows: with those of an instruction
/// set all is cut up as for it.
#[derive(Clone, Copy)]
pub struct Plain<T, const N: usize, const F: bool, const R: usize = 4>(pub [T; N]);

impl<T: Real, const N: usize, const F: bool, const R: usize> Lanes for Plain<T, N, F, R> {
    type T = T;
    const N: usize = N;
    const ROWS: usize = R;
    const VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        Plain([x; N])
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Plain(p.cast::<[T; N]>().read_unaligned()) }
    }
    #[inline(always)]
    unsafe fn load_first(p: *const T, n: usize) -> Self {
        let mut lanes = [T::ZERO; N];
        // SAFETY: the caller's contract.
        lanes[..n].copy_from_slice(unsafe { std::slice::from_raw_parts(p, n) });
        Plain(lanes)
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: the caller's contract.
        unsafe { p.cast::<[T; N]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut T, n: usize) {
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(p, n) }.copy_from_slice(&self.0[..n]);
    }
    #[inline(always)]
    unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
        Plain(std::array::from_fn(|i| T::fma::<F>(a.0[i], b.0[i], c.0[i])))
    }
    #[inline(always)]
    unsafe fn plus(self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] + b.0[i]))
    }
}

#[cfg(target_arch = "x86_64")]
pub use x86::first_words;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lanes, halves};
    use core::arch::x86_64::*;

    /// Words whose first ones are set: reading from n before the middle gives a mask of n lanes.
    static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// A mask of the first words, of eight.
    ///
    /// # Safety
    /// The machine must have AVX, and there are eight words at most.
    #[inline(always)]
    pub unsafe fn first_words(words: usize) -> __m256i {
        // SAFETY: eight words from there on are in the table.
        unsafe { _mm256_loadu_si256(FIRST.as_ptr().add(8 - words).cast()) }
    }

    /// The sums of the halves of two vectors, side by side, which two shuffles bring there.
    macro_rules! halves_of {
        ($add:ident, $shuffle:ident, $low:literal, $high:literal, $a:expr, $b:expr) => {
            $add($shuffle::<$low>($a, $b), $shuffle::<$high>($a, $b))
        };
    }

    #[inline(always)]
    unsafe fn each<L: Lanes, const R: usize>(x: [L; R]) -> [L::T; R] {
        // SAFETY: the caller's contract.
        x.map(|v| unsafe { halves(v) })
    }

    /// As `each`; one instruction adds halves of several of eight vectors.
    #[inline(always)]
    unsafe fn eight<const R: usize>(x: [__m512; R]) -> [f32; R] {
        if R != 8 {
            // SAFETY: the caller's contract.
            return unsafe { each(x) };
        }
        // SAFETY: the caller's contract.
        unsafe {
            // Two vectors of 8 sums each, then four of 4.
            let a = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x44, 0xee, x[0], x[1]);
            let b = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x44, 0xee, x[2], x[3]);
            let c = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x44, 0xee, x[4], x[5]);
            let d = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x44, 0xee, x[6], x[7]);
            let a = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x88, 0xdd, a, b);
            let c = halves_of!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x88, 0xdd, c, d);
            let s = halves_of!(_mm512_add_ps, _mm512_shuffle_ps, 0x44, 0xee, a, c);
            let s = _mm512_add_ps(s, _mm512_movehdup_ps(s));
            // Lane 4i has the sum of vector i, lane 4i + 2 that of vector 4 + i.
            let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
            let mut sums = [0f32; R];
            _mm256_storeu_ps(sums.as_mut_ptr(), _mm512_castps512_ps256(_mm512_permutexvar_ps(order, s)));
            sums
        }
    }

    /// As `eight`, of narrower vectors.
    #[inline(always)]
    unsafe fn eight_halves<const R: usize>(x: [__m256; R]) -> [f32; R] {
        if R != 8 {
            // SAFETY: the caller's contract.
            return unsafe { each(x) };
        }
        // SAFETY: the caller's contract.
        unsafe {
            // Two vectors of 4 sums each, then four of 2.
            let a = halves_of!(_mm256_add_ps, _mm256_permute2f128_ps, 0x20, 0x31, x[0], x[1]);
            let b = halves_of!(_mm256_add_ps, _mm256_permute2f128_ps, 0x20, 0x31, x[2], x[3]);
            let c = halves_of!(_mm256_add_ps, _mm256_permute2f128_ps, 0x20, 0x31, x[4], x[5]);
            let d = halves_of!(_mm256_add_ps, _mm256_permute2f128_ps, 0x20, 0x31, x[6], x[7]);
            let a = halves_of!(_mm256_add_ps, _mm256_shuffle_ps, 0x44, 0xee, a, b);
            let c = halves_of!(_mm256_add_ps, _mm256_shuffle_ps, 0x44, 0xee, c, d);
            let s = halves_of!(_mm256_add_ps, _mm256_shuffle_ps, 0x88, 0xdd, a, c);
            // The lower half has the sums of vectors 0, 2, 4 and 6.
            let mut sums = [0f32; R];
            let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
            _mm256_storeu_ps(sums.as_mut_ptr(), _mm256_permutevar8x32_ps(s, order));
            sums
        }
    }

    /// As `eight_halves`, of four vectors of four.
    #[inline(always)]
    unsafe fn four_halves<const R: usize>(x: [__m256d; R]) -> [f64; R] {
        if R != 4 {
            // SAFETY: the caller's contract.
            return unsafe { each(x) };
        }
        // SAFETY: the caller's contract.
        unsafe {
            let a = halves_of!(_mm256_add_pd, _mm256_permute2f128_pd, 0x20, 0x31, x[0], x[1]);
            let b = halves_of!(_mm256_add_pd, _mm256_permute2f128_pd, 0x20, 0x31, x[2], x[3]);
            let s = _mm256_add_pd(_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            // The lower half has the sums of vectors 0 and 2.
            let mut sums = [0f64; R];
            _mm256_storeu_pd(sums.as_mut_ptr(), _mm256_permute4x64_pd::<0xd8>(s));
            sums
        }
    }

    macro_rules! vectors {
        ($($V:ident, $T:ty, $N:literal, rows $R:literal, sums $sums:path, first |$n:ident| $mask:expr, |$q:ident, $m:ident| $part:expr,
           $put:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident;)*) => {
            $(impl Lanes for $V {
                type T = $T;
                const N: usize = $N;
                const ROWS: usize = $R;
                const VECTORS: usize = 2;

                #[inline(always)]
                unsafe fn splat(x: $T) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $T) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn load_first($q: *const $T, $n: usize) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe {
                        let $m = $mask;
                        $part
                    }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $T) {
                    // SAFETY: the caller's contract.
                    unsafe { $store(p, self) }
                }
                #[inline(always)]
                unsafe fn store_first(self, p: *mut $T, $n: usize) {
                    // SAFETY: the caller's contract.
                    unsafe { $put(p, $mask, self) }
                }
                #[inline(always)]
                unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $fma(a, b, c) }
                }
                #[inline(always)]
                unsafe fn plus(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn sums<const R: usize>(x: [Self; R]) -> [$T; R] {
                    // SAFETY: the caller's contract.
                    unsafe { $sums(x) }
                }
            })*
        };
    }
    vectors! {
        __m512, f32, 16, rows 14, sums eight, first |n| ((1u32 << n) - 1) as u16, |p, m| _mm512_maskz_loadu_ps(m, p),
            _mm512_mask_storeu_ps, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps, _mm512_add_ps;
        __m512d, f64, 8, rows 14, sums each, first |n| ((1u32 << n) - 1) as u8, |p, m| _mm512_maskz_loadu_pd(m, p),
            _mm512_mask_storeu_pd, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd, _mm512_add_pd;
        __m256, f32, 8, rows 6, sums eight_halves, first |n| first_words(n),
            |p, m| _mm256_maskload_ps(p, m),
            _mm256_maskstore_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps, _mm256_add_ps;
        __m256d, f64, 4, rows 6, sums four_halves, first |n| first_words(2 * n),
            |p, m| _mm256_maskload_pd(p, m),
            _mm256_maskstore_pd, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd, _mm256_add_pd;
    }
}

#[cfg(target_arch = "aarch64")]
pub use neon::Neon;

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Lanes, Real};
    use core::arch::aarch64::*;

    /// An element with a vector.
    pub trait Neon: Real {
        type Vector: Lanes<T = Self>;
    }

    macro_rules! vectors {
        ($($V:ident, $T:ty, $N:literal, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident;)*) => {
            $(impl Neon for $T {
                type Vector = $V;
            }

            impl Lanes for $V {
                type T = $T;
                const N: usize = $N;
                const ROWS: usize = 12;
                const VECTORS: usize = 2;

                #[inline(always)]
                unsafe fn splat(x: $T) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(p: *const $T) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $load(p) }
                }
                #[inline(always)]
                unsafe fn load_first(p: *const $T, n: usize) -> Self {
                    let mut lanes = [0.0; $N];
                    // SAFETY: the caller's contract: n lanes at most, and as many elements.
                    unsafe {
                        for i in 0..$N {
                            if i < n {
                                lanes[i] = *p.add(i);
                            }
                        }
                        $load(lanes.as_ptr())
                    }
                }
                #[inline(always)]
                unsafe fn store(self, p: *mut $T) {
                    // SAFETY: the caller's contract.
                    unsafe { $store(p, self) }
                }
                #[inline(always)]
                unsafe fn store_first(self, p: *mut $T, n: usize) {
                    let mut lanes = [0.0; $N];
                    // SAFETY: the caller's contract: n lanes at most, and as many elements.
                    unsafe {
                        $store(lanes.as_mut_ptr(), self);
                        for i in 0..$N {
                            if i < n {
                                *p.add(i) = lanes[i];
                            }
                        }
                    }
                }
                #[inline(always)]
                unsafe fn fma(a: Self, b: Self, c: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $fma(c, a, b) }
                }
                #[inline(always)]
                unsafe fn plus(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $add(self, b) }
                }
            })*
        };
    }
    vectors! {
        float32x4_t, f32, 4, vdupq_n_f32, vld1q_f32, vst1q_f32, vfmaq_f32, vaddq_f32;
        float64x2_t, f64, 2, vdupq_n_f64, vld1q_f64, vst1q_f64, vfmaq_f64, vaddq_f64;
    }
}
