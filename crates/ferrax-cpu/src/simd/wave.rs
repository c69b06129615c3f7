//! What transforms ask of vectors beyond what products do, and complex numbers of them.
//!
//! As in `lanes.rs`, methods are inlined into functions that enable the instruction set. Every operation works on
//! lanes alone, fused multiply-add included, so that all instruction sets give the same bits.

use super::lanes::{Lanes, Plain, Real};

/// Rows of a square that is transposed, at most.
pub const SIDE: usize = 8;

/// A vector that transforms are computed with.
pub trait Wave: Lanes {
    /// The vector that rows are transposed with: its lanes divide the lanes of this one.
    type Part: Square<T = Self::T>;

    /// # Safety
    /// As for all methods here: the machine has the instruction set, and addresses are valid.
    unsafe fn minus(self, b: Self) -> Self;
    unsafe fn times(self, b: Self) -> Self;
    /// `c - a * b`, fused.
    unsafe fn less(a: Self, b: Self, c: Self) -> Self;
    /// The real and the imaginary parts of `N` complex numbers, in an order that `join` undoes.
    unsafe fn split(a: Self, b: Self) -> [Self; 2];
    unsafe fn join(re: Self, im: Self) -> [Self; 2];
}

/// A vector that squares are transposed with.
pub trait Square: Wave {
    /// The transpose of the square whose rows begin at the first `N` addresses.
    ///
    /// # Safety
    /// As for `Wave`.
    unsafe fn square(rows: &[*const Self::T; SIDE]) -> [Self; SIDE];
}

impl<T: Real, const N: usize, const F: bool> Wave for Plain<T, N, F> {
    type Part = Plain<T, SIDE, F>;

    #[inline(always)]
    unsafe fn minus(self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] - b.0[i]))
    }
    #[inline(always)]
    unsafe fn times(self, b: Self) -> Self {
        Plain(std::array::from_fn(|i| self.0[i] * b.0[i]))
    }
    #[inline(always)]
    unsafe fn less(a: Self, b: Self, c: Self) -> Self {
        Plain(std::array::from_fn(|i| T::fma::<F>(-a.0[i], b.0[i], c.0[i])))
    }
    #[inline(always)]
    unsafe fn split(a: Self, b: Self) -> [Self; 2] {
        let at = |i: usize| if i < N { a.0[i] } else { b.0[i - N] };
        [0, 1].map(|part| Plain(std::array::from_fn(|i| at(2 * i + part))))
    }
    #[inline(always)]
    unsafe fn join(re: Self, im: Self) -> [Self; 2] {
        let at = |i: usize| if i.is_multiple_of(2) { re.0[i / 2] } else { im.0[i / 2] };
        [0, N].map(|half| Plain(std::array::from_fn(|i| at(i + half))))
    }
}

impl<T: Real, const F: bool> Square for Plain<T, SIDE, F> {
    #[inline(always)]
    unsafe fn square(rows: &[*const T; SIDE]) -> [Self; SIDE] {
        // SAFETY: the caller's contract.
        std::array::from_fn(|i| Plain(std::array::from_fn(|j| unsafe { *rows[j].add(i) })))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{SIDE, Square, Wave};
    use core::arch::x86_64::*;

    impl Square for __m256 {
        /// Half rows are loaded side by side, so that only shuffles within 128 bits remain.
        #[inline(always)]
        unsafe fn square(rows: &[*const f32; SIDE]) -> [__m256; SIDE] {
            // SAFETY: the caller's contract.
            unsafe {
                let mut t = [_mm256_setzero_ps(); SIDE];
                for half in 0..2 {
                    let mut r = [_mm256_setzero_ps(); 4];
                    for i in 0..4 {
                        let (near, far) =
                            (_mm_loadu_ps(rows[i].add(4 * half)), _mm_loadu_ps(rows[i + 4].add(4 * half)));
                        r[i] = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(near), far);
                    }
                    let (a, b) = (_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
                    let (c, d) = (_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
                    t[4 * half] = _mm256_shuffle_ps::<0x44>(a, c);
                    t[4 * half + 1] = _mm256_shuffle_ps::<0xee>(a, c);
                    t[4 * half + 2] = _mm256_shuffle_ps::<0x44>(b, d);
                    t[4 * half + 3] = _mm256_shuffle_ps::<0xee>(b, d);
                }
                t
            }
        }
    }

    impl Square for __m256d {
        #[inline(always)]
        unsafe fn square(rows: &[*const f64; SIDE]) -> [__m256d; SIDE] {
            // SAFETY: the caller's contract.
            unsafe {
                let mut t = [_mm256_setzero_pd(); SIDE];
                for half in 0..2 {
                    let mut r = [_mm256_setzero_pd(); 2];
                    for i in 0..2 {
                        let (near, far) =
                            (_mm_loadu_pd(rows[i].add(2 * half)), _mm_loadu_pd(rows[i + 2].add(2 * half)));
                        r[i] = _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(near), far);
                    }
                    t[2 * half] = _mm256_unpacklo_pd(r[0], r[1]);
                    t[2 * half + 1] = _mm256_unpackhi_pd(r[0], r[1]);
                }
                t
            }
        }
    }

    macro_rules! waves {
        ($($V:ident, in $Part:ident, split $split:ident $even:literal $odd:literal, $low:ident, $high:ident,
           $sub:ident, $mul:ident, $less:ident;)*) => {
            $(impl Wave for $V {
                type Part = $Part;

                #[inline(always)]
                unsafe fn minus(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $sub(self, b) }
                }
                #[inline(always)]
                unsafe fn times(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $mul(self, b) }
                }
                #[inline(always)]
                unsafe fn less(a: Self, b: Self, c: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $less(a, b, c) }
                }
                #[inline(always)]
                unsafe fn split(a: Self, b: Self) -> [Self; 2] {
                    // SAFETY: the caller's contract.
                    unsafe { [$split::<$even>(a, b), $split::<$odd>(a, b)] }
                }
                #[inline(always)]
                unsafe fn join(re: Self, im: Self) -> [Self; 2] {
                    // SAFETY: the caller's contract.
                    unsafe { [$low(re, im), $high(re, im)] }
                }
            })*
        };
    }
    waves! {
        __m512, in __m256, split _mm512_shuffle_ps 0x88 0xdd, _mm512_unpacklo_ps, _mm512_unpackhi_ps,
            _mm512_sub_ps, _mm512_mul_ps, _mm512_fnmadd_ps;
        __m512d, in __m256d, split _mm512_shuffle_pd 0x00 0xff, _mm512_unpacklo_pd, _mm512_unpackhi_pd,
            _mm512_sub_pd, _mm512_mul_pd, _mm512_fnmadd_pd;
        __m256, in __m256, split _mm256_shuffle_ps 0x88 0xdd, _mm256_unpacklo_ps, _mm256_unpackhi_ps,
            _mm256_sub_ps, _mm256_mul_ps, _mm256_fnmadd_ps;
        __m256d, in __m256d, split _mm256_shuffle_pd 0x0 0xf, _mm256_unpacklo_pd, _mm256_unpackhi_pd,
            _mm256_sub_pd, _mm256_mul_pd, _mm256_fnmadd_pd;
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{SIDE, Square, Wave};
    use core::arch::aarch64::*;

    impl Square for float32x4_t {
        #[inline(always)]
        unsafe fn square(rows: &[*const f32; SIDE]) -> [float32x4_t; SIDE] {
            // SAFETY: the caller's contract.
            unsafe {
                let (a, b) = (vld1q_f32(rows[0]), vld1q_f32(rows[1]));
                let (c, d) = (vld1q_f32(rows[2]), vld1q_f32(rows[3]));
                // Pairs of rows, then pairs of pairs, change places.
                let pairs = |x, y| [vtrn1q_f32(x, y), vtrn2q_f32(x, y)].map(|v| vreinterpretq_f64_f32(v));
                let ([p, q], [r, s]) = (pairs(a, b), pairs(c, d));
                let mut t = [a; SIDE];
                for (t, v) in t.iter_mut().zip([vtrn1q_f64(p, r), vtrn1q_f64(q, s), vtrn2q_f64(p, r), vtrn2q_f64(q, s)])
                {
                    *t = vreinterpretq_f32_f64(v);
                }
                t
            }
        }
    }

    impl Square for float64x2_t {
        #[inline(always)]
        unsafe fn square(rows: &[*const f64; SIDE]) -> [float64x2_t; SIDE] {
            // SAFETY: the caller's contract.
            unsafe {
                let (a, b) = (vld1q_f64(rows[0]), vld1q_f64(rows[1]));
                let mut t = [a; SIDE];
                (t[0], t[1]) = (vtrn1q_f64(a, b), vtrn2q_f64(a, b));
                t
            }
        }
    }

    macro_rules! waves {
        ($($V:ident, $sub:ident, $mul:ident, $less:ident, $even:ident, $odd:ident, $low:ident, $high:ident;)*) => {
            $(impl Wave for $V {
                type Part = $V;

                #[inline(always)]
                unsafe fn minus(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $sub(self, b) }
                }
                #[inline(always)]
                unsafe fn times(self, b: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $mul(self, b) }
                }
                #[inline(always)]
                unsafe fn less(a: Self, b: Self, c: Self) -> Self {
                    // SAFETY: the caller's contract.
                    unsafe { $less(c, a, b) }
                }
                #[inline(always)]
                unsafe fn split(a: Self, b: Self) -> [Self; 2] {
                    // SAFETY: the caller's contract.
                    unsafe { [$even(a, b), $odd(a, b)] }
                }
                #[inline(always)]
                unsafe fn join(re: Self, im: Self) -> [Self; 2] {
                    // SAFETY: the caller's contract.
                    unsafe { [$low(re, im), $high(re, im)] }
                }
            })*
        };
    }
    waves! {
        float32x4_t, vsubq_f32, vmulq_f32, vfmsq_f32, vuzp1q_f32, vuzp2q_f32, vzip1q_f32, vzip2q_f32;
        float64x2_t, vsubq_f64, vmulq_f64, vfmsq_f64, vuzp1q_f64, vuzp2q_f64, vzip1q_f64, vzip2q_f64;
    }
}

/// Complex numbers, one a lane.
#[derive(Clone, Copy)]
pub struct C<L> {
    pub re: L,
    pub im: L,
}

impl<L: Wave> C<L> {
    #[inline(always)]
    pub unsafe fn load(re: *const L::T, im: *const L::T, at: usize) -> Self {
        // SAFETY: the caller's contract, here and below.
        unsafe { C { re: L::load(re.add(at)), im: L::load(im.add(at)) } }
    }
    #[inline(always)]
    pub unsafe fn store(self, re: *mut L::T, im: *mut L::T, at: usize) {
        // SAFETY: as above.
        unsafe {
            self.re.store(re.add(at));
            self.im.store(im.add(at));
        }
    }
    #[inline(always)]
    pub unsafe fn plus(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.re.plus(b.re), im: self.im.plus(b.im) } }
    }
    #[inline(always)]
    pub unsafe fn minus(self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: self.re.minus(b.re), im: self.im.minus(b.im) } }
    }
    /// `self - i b` and `self + i b`.
    #[inline(always)]
    pub unsafe fn turned(self, b: Self) -> [Self; 2] {
        // SAFETY: as above.
        unsafe {
            [
                C { re: self.re.plus(b.im), im: self.im.minus(b.re) },
                C { re: self.re.minus(b.im), im: self.im.plus(b.re) },
            ]
        }
    }
    /// `self - i s b` and `self + i s b`.
    #[inline(always)]
    pub unsafe fn turned_by(self, s: L, b: Self) -> [Self; 2] {
        // SAFETY: as above.
        unsafe {
            [
                C { re: L::fma(s, b.im, self.re), im: L::less(s, b.re, self.im) },
                C { re: L::less(s, b.im, self.re), im: L::fma(s, b.re, self.im) },
            ]
        }
    }
    /// `self + s b`.
    #[inline(always)]
    pub unsafe fn more(self, s: L, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: L::fma(s, b.re, self.re), im: L::fma(s, b.im, self.im) } }
    }
    /// `self - s b`.
    #[inline(always)]
    pub unsafe fn less(self, s: L, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { C { re: L::less(s, b.re, self.re), im: L::less(s, b.im, self.im) } }
    }
    /// `s self`.
    #[inline(always)]
    pub unsafe fn scaled(self, s: L) -> Self {
        // SAFETY: as above.
        unsafe { C { re: s.times(self.re), im: s.times(self.im) } }
    }
    /// `w self`, where w points to a real and an imaginary part.
    #[inline(always)]
    pub unsafe fn by(self, w: *const L::T) -> Self {
        // SAFETY: as above.
        unsafe {
            let (re, im) = (L::splat(*w), L::splat(*w.add(1)));
            C { re: L::less(im, self.im, re.times(self.re)), im: L::fma(im, self.re, re.times(self.im)) }
        }
    }
}
