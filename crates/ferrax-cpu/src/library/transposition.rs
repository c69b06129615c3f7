//! Transposition of two axes: the source walks one with stride 1, the destination the other.
//!
//! Elements of 4 and 8 bytes move in square blocks of 64-byte rows through registers, so that every cache line
//! of either side is touched once whatever its stride; ragged edges use the same blocks with masks. With 32-byte
//! registers blocks are half as wide and edges scalar; with 16-byte ones, blocks are made of smaller squares. Two to four
//! arrays whose elements alternate are taken apart, or put together, by loops with known steps, which the compiler
//! vectorizes. Other sizes, and other machines, copy element by element in small tiles. Read next: `movement.rs`, which
//! finds the pair of axes.

/// A matrix to transpose: `src[i + j·src_step]` goes to `dst[i·dst_step + j]`.
#[derive(Clone, Copy)]
pub struct Pair<T> {
    /// Source.
    pub src: *const T,
    /// Destination.
    pub dst: *mut T,
    /// Extent of i, contiguous in the source, and the destination's stride along it.
    pub rows: usize,
    /// The destination's stride along i.
    pub dst_step: isize,
    /// Extent of j, contiguous in the destination.
    pub columns: usize,
    /// The source's stride along j.
    pub src_step: isize,
}

impl<T: Copy> Pair<T> {
    unsafe fn at(&self, i: usize, j: usize, rows: usize, columns: usize) -> Pair<T> {
        // SAFETY: the caller keeps (i, j) inside.
        unsafe {
            Pair {
                src: self.src.offset(i as isize + j as isize * self.src_step),
                dst: self.dst.offset(i as isize * self.dst_step + j as isize),
                rows,
                columns,
                ..*self
            }
        }
    }
}

/// Copies a transposed pair.
///
/// # Safety
/// Every address that the pair reaches must be valid and aligned, and the two sides must not overlap.
pub unsafe fn copy<T: Copy>(p: Pair<T>) {
    // SAFETY: the caller's contract; sizes decide the element type.
    unsafe {
        match size_of::<T>() {
            4 if alternating::<u32>(cast(p)) => return,
            8 if alternating::<u64>(cast(p)) => return,
            _ => {}
        }
        #[cfg(target_arch = "x86_64")]
        match (crate::simd::isa(), size_of::<T>()) {
            (Some(crate::simd::Isa::Avx512), 4) => return wide::copy32(cast(p)),
            (Some(crate::simd::Isa::Avx512), 8) => return wide::copy64(cast(p)),
            (Some(crate::simd::Isa::Avx2), 4) => return half::copy32(cast(p)),
            (Some(crate::simd::Isa::Avx2), 8) => return half::copy64(cast(p)),
            _ => {}
        }
        #[cfg(target_arch = "aarch64")]
        match (crate::simd::isa(), size_of::<T>()) {
            (Some(_), 4) => return squares::copy::<f32>(cast(p)),
            (Some(_), 8) => return squares::copy::<f64>(cast(p)),
            _ => {}
        }
        elements(p);
    }
}

fn cast<T, U>(p: Pair<T>) -> Pair<U> {
    let Pair { src, dst, rows, dst_step, columns, src_step } = p;
    Pair { src: src.cast(), dst: dst.cast(), rows, dst_step, columns, src_step }
}

/// Fewer elements of each array are not worth a loop of their own.
const ALTERNATING: usize = 8;

/// Copies a pair of which one side is two to four arrays whose elements alternate; false where it is not.
unsafe fn alternating<T: Copy>(p: Pair<T>) -> bool {
    let apart = p.columns >= ALTERNATING && p.src_step == p.rows as isize;
    let together = p.rows >= ALTERNATING && p.dst_step == p.columns as isize;
    // SAFETY: the caller's contract.
    unsafe {
        match if apart { p.rows } else { p.columns } {
            2 if apart => taken_apart::<T, 2>(p),
            3 if apart => taken_apart::<T, 3>(p),
            4 if apart => taken_apart::<T, 4>(p),
            n @ 2..=4 if together => {
                let mut columns = [p.src; 4];
                (1..n).for_each(|k| columns[k] = p.src.offset(k as isize * p.src_step));
                return join_columns(&columns[..n], p.rows, p.dst);
            }
            _ => return false,
        }
    }
    true
}

/// Puts two to four arrays of `n` elements of 4 or 8 bytes together, an element of each in turn; false where there are
/// more or fewer of them, or other elements.
///
/// # Safety
/// The arrays must hold so many elements, and the destination all of them; they must not overlap.
pub unsafe fn join_columns<T: Copy>(columns: &[*const T], n: usize, dst: *mut T) -> bool {
    if !matches!(size_of::<T>(), 4 | 8) {
        return false;
    }
    // SAFETY: the caller's contract.
    unsafe {
        match *columns {
            [a, b] => put_together([a, b], n, dst),
            [a, b, c] => put_together([a, b, c], n, dst),
            [a, b, c, d] => put_together([a, b, c, d], n, dst),
            _ => return false,
        }
    }
    true
}

/// Defines a copy, compiled for the baseline and for AVX2.
macro_rules! alternate {
    ($name:ident, $N:ident, ($($x:ident: $X:ty),*), $body:block) => {
        unsafe fn $name<T: Copy, const $N: usize>($($x: $X),*) {
            #[inline(always)]
            unsafe fn body<T: Copy, const $N: usize>($($x: $X),*) {
                // SAFETY: the caller's contract.
                unsafe { $body }
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                unsafe fn fast<T: Copy, const $N: usize>($($x: $X),*) {
                    // SAFETY: the caller's contract.
                    unsafe { body::<T, $N>($($x),*) }
                }
                if crate::simd::wide() {
                    // SAFETY: the caller's contract, and the machine has the instructions.
                    return unsafe { fast::<T, $N>($($x),*) };
                }
            }
            // SAFETY: the caller's contract.
            unsafe { body::<T, $N>($($x),*) }
        }
    };
}
pub(super) use alternate;
alternate!(taken_apart, N, (p: Pair<T>), {
    let src = std::slice::from_raw_parts(p.src.cast::<[T; N]>(), p.columns);
    for (i, x) in src.iter().enumerate() {
        for (k, &x) in x.iter().enumerate() {
            *p.dst.offset(k as isize * p.dst_step).add(i) = x;
        }
    }
});
alternate!(put_together, N, (columns: [*const T; N], n: usize, dst: *mut T), {
    let dst = std::slice::from_raw_parts_mut(dst.cast::<[T; N]>(), n);
    for (i, x) in dst.iter_mut().enumerate() {
        *x = std::array::from_fn(|k| *columns[k].add(i));
    }
});

/// Element by element, in square tiles that fit the cache.
unsafe fn elements<T: Copy>(p: Pair<T>) {
    const TILE: usize = 16;
    for i0 in (0..p.rows).step_by(TILE) {
        for j0 in (0..p.columns).step_by(TILE) {
            for i in i0..(i0 + TILE).min(p.rows) {
                for j in j0..(j0 + TILE).min(p.columns) {
                    let (i, j) = (i as isize, j as isize);
                    // SAFETY: the caller's contract covers i < rows and j < columns.
                    unsafe { *p.dst.offset(i * p.dst_step + j) = *p.src.offset(i + j * p.src_step) };
                }
            }
        }
    }
}

/// Calls `block(part)` for blocks of at most `side` by `side`, along the destination's rows.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn blocks<T: Copy>(p: Pair<T>, side: usize, mut block: impl FnMut(Pair<T>)) {
    for i in (0..p.rows).step_by(side) {
        for j in (0..p.columns).step_by(side) {
            // SAFETY: i and j stay inside.
            block(unsafe { p.at(i, j, side.min(p.rows - i), side.min(p.columns - j)) });
        }
    }
}

/// Blocks of 64-byte rows.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Pair, blocks};
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub unsafe fn copy32(p: Pair<f32>) {
        // SAFETY: the caller's contract holds for every block.
        unsafe { blocks(p, 16, |b| block32(b)) }
    }

    #[target_feature(enable = "avx512f")]
    pub unsafe fn copy64(p: Pair<f64>) {
        // SAFETY: the caller's contract holds for every block.
        unsafe { blocks(p, 8, |b| block64(b)) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn block32(b: Pair<f32>) {
        let (from, to) = (!0u16 >> (16 - b.rows), !0u16 >> (16 - b.columns));
        let mut r = [_mm512_setzero_ps(); 16];
        // SAFETY: rows j < columns of the source hold `rows` elements, and masks keep to them.
        unsafe {
            if b.rows == 16 && b.columns == 16 {
                for j in 0..16 {
                    r[j] = _mm512_loadu_ps(b.src.offset(j as isize * b.src_step));
                }
            } else {
                for j in 0..b.columns {
                    r[j] = _mm512_maskz_loadu_ps(from, b.src.offset(j as isize * b.src_step));
                }
            }
        }
        let t = transposed32(&r);
        // SAFETY: rows i < rows of the destination hold `columns` elements, and masks keep to them.
        unsafe {
            if b.columns == 16 {
                // What a mask has stored is not handed on to the next load.
                for i in 0..b.rows {
                    _mm512_storeu_ps(b.dst.offset(i as isize * b.dst_step), t[i]);
                }
            } else {
                for i in 0..b.rows {
                    _mm512_mask_storeu_ps(b.dst.offset(i as isize * b.dst_step), to, t[i]);
                }
            }
        }
    }

    /// Pairs, then fours, then quarters of registers change places.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed32(r: &[__m512; 16]) -> [__m512; 16] {
        let zero = _mm512_setzero_ps();
        let (mut a, mut b, mut c, mut d) = ([zero; 16], [zero; 16], [zero; 16], [zero; 16]);
        for i in 0..8 {
            a[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            a[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        for i in 0..4 {
            for h in 0..2 {
                let (x, y) = (_mm512_castps_pd(a[4 * i + h]), _mm512_castps_pd(a[4 * i + h + 2]));
                b[4 * i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
                b[4 * i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
            }
        }
        for k in 0..4 {
            c[k] = _mm512_shuffle_f32x4::<0x88>(b[k], b[k + 4]);
            c[k + 4] = _mm512_shuffle_f32x4::<0xdd>(b[k], b[k + 4]);
            c[k + 8] = _mm512_shuffle_f32x4::<0x88>(b[k + 8], b[k + 12]);
            c[k + 12] = _mm512_shuffle_f32x4::<0xdd>(b[k + 8], b[k + 12]);
        }
        for k in 0..8 {
            d[k] = _mm512_shuffle_f32x4::<0x88>(c[k], c[k + 8]);
            d[k + 8] = _mm512_shuffle_f32x4::<0xdd>(c[k], c[k + 8]);
        }
        d
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn block64(b: Pair<f64>) {
        let (from, to) = (!0u8 >> (8 - b.rows), !0u8 >> (8 - b.columns));
        let mut r = [_mm512_setzero_pd(); 8];
        // SAFETY: rows j < columns of the source hold `rows` elements, and masks keep to them.
        unsafe {
            if b.rows == 8 && b.columns == 8 {
                for j in 0..8 {
                    r[j] = _mm512_loadu_pd(b.src.offset(j as isize * b.src_step));
                }
            } else {
                for j in 0..b.columns {
                    r[j] = _mm512_maskz_loadu_pd(from, b.src.offset(j as isize * b.src_step));
                }
            }
        }
        let t = transposed64(&r);
        // SAFETY: rows i < rows of the destination hold `columns` elements, and masks keep to them.
        unsafe {
            if b.columns == 8 {
                // What a mask has stored is not handed on to the next load.
                for i in 0..b.rows {
                    _mm512_storeu_pd(b.dst.offset(i as isize * b.dst_step), t[i]);
                }
            } else {
                for i in 0..b.rows {
                    _mm512_mask_storeu_pd(b.dst.offset(i as isize * b.dst_step), to, t[i]);
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transposed64(r: &[__m512d; 8]) -> [__m512d; 8] {
        let zero = _mm512_setzero_pd();
        let (mut a, mut b, mut c) = ([zero; 8], [zero; 8], [zero; 8]);
        for i in 0..4 {
            a[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
            a[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
        }
        for k in 0..2 {
            b[k] = _mm512_shuffle_f64x2::<0x88>(a[k], a[k + 2]);
            b[k + 2] = _mm512_shuffle_f64x2::<0xdd>(a[k], a[k + 2]);
            b[k + 4] = _mm512_shuffle_f64x2::<0x88>(a[k + 4], a[k + 6]);
            b[k + 6] = _mm512_shuffle_f64x2::<0xdd>(a[k + 4], a[k + 6]);
        }
        for k in 0..4 {
            c[k] = _mm512_shuffle_f64x2::<0x88>(b[k], b[k + 4]);
            c[k + 4] = _mm512_shuffle_f64x2::<0xdd>(b[k], b[k + 4]);
        }
        c
    }
}

/// Blocks of 32-byte rows, or of six and two elements, as panels of products have them.
#[cfg(target_arch = "x86_64")]
mod half {
    use super::{Pair, blocks, elements};
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    pub unsafe fn copy32(p: Pair<f32>) {
        // SAFETY: the caller's contract holds for every block.
        unsafe {
            blocks(p, 8, |b| match (b.rows, b.columns) {
                (8, 8) => block32::<8>(b),
                (8, 6) => block32::<6>(b),
                _ => elements(b),
            });
        }
    }

    #[target_feature(enable = "avx2")]
    pub unsafe fn copy64(p: Pair<f64>) {
        // SAFETY: the caller's contract holds for every block.
        unsafe {
            blocks(p, 4, |b| match (b.rows, b.columns) {
                (4, 4) => block64::<4>(b),
                (4, 2) => block64::<2>(b),
                _ => elements(b),
            });
        }
    }

    /// Eight by `C` elements, where `C` is 6 or 8.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn block32<const C: usize>(p: Pair<f32>) {
        let zero = _mm256_setzero_ps();
        let (mut r, mut a, mut b) = ([zero; 8], [zero; 8], [zero; 8]);
        for j in 0..C {
            // SAFETY: rows of eight elements.
            r[j] = unsafe { _mm256_loadu_ps(p.src.offset(j as isize * p.src_step)) };
        }
        for i in 0..4 {
            a[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        for i in 0..2 {
            for h in 0..2 {
                let (x, y) = (_mm256_castps_pd(a[4 * i + h]), _mm256_castps_pd(a[4 * i + h + 2]));
                b[4 * i + 2 * h] = _mm256_castpd_ps(_mm256_unpacklo_pd(x, y));
                b[4 * i + 2 * h + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(x, y));
            }
        }
        for k in 0..4 {
            let low = _mm256_permute2f128_ps::<0x20>(b[k], b[k + 4]);
            let high = _mm256_permute2f128_ps::<0x31>(b[k], b[k + 4]);
            // SAFETY: rows of `C` elements.
            unsafe {
                put::<C>(p.dst.offset(k as isize * p.dst_step), low);
                put::<C>(p.dst.offset((k + 4) as isize * p.dst_step), high);
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn put<const C: usize>(to: *mut f32, row: __m256) {
        // SAFETY: the caller has room for `C` elements.
        unsafe {
            if C == 8 {
                return _mm256_storeu_ps(to, row);
            }
            _mm_storeu_ps(to, _mm256_castps256_ps128(row));
            _mm_storel_pd(to.add(4).cast(), _mm_castps_pd(_mm256_extractf128_ps::<1>(row)));
        }
    }

    /// Four by `C` elements, where `C` is 2 or 4.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn block64<const C: usize>(p: Pair<f64>) {
        let zero = _mm256_setzero_pd();
        let (mut r, mut a) = ([zero; 4], [zero; 4]);
        for j in 0..C {
            // SAFETY: rows of four elements.
            r[j] = unsafe { _mm256_loadu_pd(p.src.offset(j as isize * p.src_step)) };
        }
        for i in 0..2 {
            a[2 * i] = _mm256_unpacklo_pd(r[2 * i], r[2 * i + 1]);
            a[2 * i + 1] = _mm256_unpackhi_pd(r[2 * i], r[2 * i + 1]);
        }
        for k in 0..2 {
            let (to, further) = (k as isize * p.dst_step, (k + 2) as isize * p.dst_step);
            // SAFETY: rows of `C` elements.
            unsafe {
                if C == 4 {
                    _mm256_storeu_pd(p.dst.offset(to), _mm256_permute2f128_pd::<0x20>(a[k], a[k + 2]));
                    _mm256_storeu_pd(p.dst.offset(further), _mm256_permute2f128_pd::<0x31>(a[k], a[k + 2]));
                } else {
                    _mm_storeu_pd(p.dst.offset(to), _mm256_castpd256_pd128(a[k]));
                    _mm_storeu_pd(p.dst.offset(further), _mm256_extractf128_pd::<1>(a[k]));
                }
            }
        }
    }
}

/// Blocks of 64-byte rows, made of squares that 16-byte registers hold.
#[cfg(target_arch = "aarch64")]
mod squares {
    use super::{Pair, blocks, elements};
    use crate::simd::lanes::{Lanes, Neon};
    use crate::simd::wave::{SIDE, Square};

    pub unsafe fn copy<T: Neon<Vector: Square>>(p: Pair<T>) {
        let side = <T::Vector as Lanes>::N;
        // SAFETY: the caller's contract holds for every block.
        unsafe {
            blocks(p, 64 / size_of::<T>(), |b| {
                blocks(b, side, |b| if b.rows == side && b.columns == side { square(b) } else { elements(b) });
            });
        }
    }

    #[inline(always)]
    unsafe fn square<T: Neon<Vector: Square>>(p: Pair<T>) {
        let side = <T::Vector as Lanes>::N;
        // SAFETY: a full square: as many rows of as many elements as a register has.
        unsafe {
            let mut rows = [p.src; SIDE];
            for j in 0..side {
                rows[j] = p.src.offset(j as isize * p.src_step);
            }
            let t = T::Vector::square(&rows);
            for i in 0..side {
                t[i].store(p.dst.offset(i as isize * p.dst_step));
            }
        }
    }
}
