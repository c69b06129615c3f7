//! c + a ⊗ b in one pass, in the memory of c where that is free: what the gradient of a matrix is summed with in a loop.
//!
//! The bits are those of the product followed by the sum: each product is rounded, then added. In a scan whose body does
//! nothing else with the matrix, the factors of a few steps are kept and added together, in the order of the steps, so
//! that the matrix is read and written once for all of them.

use crate::simd::{FUSED, fma};

/// Steps whose factors are kept.
pub const KEPT: usize = 8;
/// A sum of this kind as it runs.
pub(crate) struct Accumulate {
    pub slots: [u32; 4],
    pub rows: usize,
    pub columns: usize,
    /// Elements from one row's factor to the next.
    pub step: isize,
    pub dot: u32,
    /// Where in the frame's memory the factors of some steps are kept, if they are.
    pub kept: Option<usize>,
}

impl Accumulate {
    /// The slots of the product's operands, of the other operand and of the result.
    pub fn slots(&self) -> [u32; 4] {
        self.slots
    }

    /// Computes the sum, or keeps its factors: `kept` is the memory for those of sums that wait, `waiting` counts them.
    ///
    /// # Safety
    /// `slots` must have the memory of the operands and of the result, which overlaps nothing but the other operand.
    pub unsafe fn run(&self, slots: &[*mut u8], kept: *mut u8, waiting: &mut usize) {
        let [a, b, c, out] = self.slots.map(|s| slots[s as usize].cast::<f32>());
        let (rows, columns) = (self.rows, self.columns);
        if let Some(at) = self.kept {
            // SAFETY: the caller's contract; the memory has room for the factors of `KEPT` steps.
            unsafe {
                let rest = kept.add(at).cast::<f32>();
                let (left, right) = (rest.add(*waiting * rows), rest.add(KEPT * rows + *waiting * columns));
                if self.step == 1 {
                    std::ptr::copy_nonoverlapping(a, left, rows);
                } else {
                    (0..rows).for_each(|i| left.add(i).write(*a.offset(i as isize * self.step)));
                }
                std::ptr::copy_nonoverlapping(b, right, columns);
                *waiting += 1;
                if *waiting == KEPT {
                    self.catch_up(slots, kept, waiting);
                }
            }
            return;
        }
        // SAFETY: the caller's contract; the factors are a row apart by `step`.
        unsafe {
            if c != out {
                std::ptr::copy_nonoverlapping(c, out, rows * columns);
            }
            let out = std::slice::from_raw_parts_mut(out, rows * columns);
            let b = std::slice::from_raw_parts(b, columns);
            #[cfg(target_arch = "x86_64")]
            match crate::simd::isa() {
                Some(crate::simd::Isa::Avx512) => return add_512(out, a, self.step, b),
                Some(crate::simd::Isa::Avx2) => return add_256(out, a, self.step, b),
                None => {}
            }
            add::<FUSED>(out, a, self.step, b);
        }
    }

    /// Adds what waits.
    ///
    /// # Safety
    /// As for `run`.
    pub unsafe fn catch_up(&self, slots: &[*mut u8], kept: *mut u8, waiting: &mut usize) {
        let Some(at) = self.kept.filter(|_| *waiting > 0) else { return };
        let (rows, columns, count) = (self.rows, self.columns, std::mem::take(waiting));
        // SAFETY: the factors of `count` steps are there; the caller's contract.
        unsafe {
            let left = std::slice::from_raw_parts(kept.add(at).cast::<f32>(), KEPT * rows);
            let right = std::slice::from_raw_parts(kept.add(at).cast::<f32>().add(KEPT * rows), count * columns);
            let out = std::slice::from_raw_parts_mut(slots[self.slots[3] as usize].cast::<f32>(), rows * columns);
            #[cfg(target_arch = "x86_64")]
            match crate::simd::isa() {
                Some(crate::simd::Isa::Avx512) => return several_512(out, left, right, columns),
                Some(crate::simd::Isa::Avx2) => return several_256(out, left, right, columns),
                None => {}
            }
            several::<FUSED, WIDE>(out, left, right, columns);
        }
    }
}

/// Columns that are summed together: two rows of them fit the registers, here those of 64 bytes.
#[cfg(target_arch = "x86_64")]
const WIDEST: usize = 64;
/// The same for smaller registers.
const WIDE: usize = 32;

/// Adds the products of the factors of some steps, one step after the other, W columns together.
#[inline(always)]
fn several<const F: bool, const W: usize>(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    let rows = out.len() / columns;
    for i in (0..rows / 2 * 2).step_by(2) {
        some_rows::<F, W, 2>(&mut out[i * columns..], (&left[i..], rows), right, columns);
    }
    if rows % 2 == 1 {
        some_rows::<F, W, 1>(&mut out[(rows - 1) * columns..], (&left[rows - 1..], rows), right, columns);
    }
}

/// `several` for the first rows: their factors are `step` apart.
#[inline(always)]
fn some_rows<const F: bool, const W: usize, const R: usize>(
    out: &mut [f32],
    (left, step): (&[f32], usize),
    right: &[f32],
    columns: usize,
) {
    let whole = columns / W * W;
    for c in (0..whole).step_by(W) {
        let mut sums = [[0.0; W]; R];
        for (r, sum) in sums.iter_mut().enumerate() {
            sum.copy_from_slice(&out[r * columns + c..][..W]);
        }
        for (k, y) in right.chunks_exact(columns).enumerate() {
            let y: &[f32; W] = y[c..].first_chunk().unwrap_or(&[0.0; W]);
            let x: &[f32; R] = left[k * step..].first_chunk().unwrap_or(&[0.0; R]);
            for r in 0..R {
                for j in 0..W {
                    sums[r][j] += fma::<F>(x[r], y[j], 0.0);
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            out[r * columns + c..][..W].copy_from_slice(sum);
        }
    }
    for r in 0..R {
        let rest = &mut out[r * columns + whole..(r + 1) * columns];
        for (k, y) in right.chunks_exact(columns).enumerate() {
            let x = left[k * step + r];
            for (o, y) in rest.iter_mut().zip(&y[whole..]) {
                *o += fma::<F>(x, *y, 0.0);
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn several_512(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    several::<true, WIDEST>(out, left, right, columns);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn several_256(out: &mut [f32], left: &[f32], right: &[f32], columns: usize) {
    several::<true, WIDE>(out, left, right, columns);
}

#[inline(always)]
unsafe fn add<const F: bool>(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    for (i, row) in out.chunks_exact_mut(b.len()).enumerate() {
        // SAFETY: the caller's factors are one a row.
        let x = unsafe { *a.offset(i as isize * step) };
        for (o, &y) in row.iter_mut().zip(b) {
            // A product's sum begins with 0, which makes -0 a 0.
            *o += fma::<F>(x, y, 0.0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
unsafe fn add_512(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    // SAFETY: the caller's contract.
    unsafe { add::<true>(out, a, step, b) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn add_256(out: &mut [f32], a: *const f32, step: isize, b: &[f32]) {
    // SAFETY: the caller's contract.
    unsafe { add::<true>(out, a, step, b) }
}
