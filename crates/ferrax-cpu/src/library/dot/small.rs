//! Many small products: sixteen of them at once, a lane each.
//!
//! The matrices of sixteen batches are transposed, so that a vector holds one element of each. Elements are summed in the
//! order of a product alone (`matmul/tile.rs`, `matmul/vector.rs`), with its bits. Read next: `transposition.rs`.

use super::{Batches, Sizes};
use crate::library::matmul::{Kernels, Matrix, Product};
use crate::library::transposition::{self, Pair};
use crate::pool::{self, Disjoint};
use crate::simd::lanes::Real;

/// Batches computed at once.
const LANES: usize = 16;
/// Elements of a matrix, sums of an element and products of all at most: larger ones fill vectors by themselves.
const MOST: usize = 64;
const DEEPEST: usize = 8;
const PRODUCTS: usize = 256;
/// Groups of `LANES` batches that a thread takes.
const GROUPS: usize = 32;

/// One element of the matrices of sixteen batches.
type Lane<T> = [T; LANES];

/// Products of the same sizes, of which this is the first one.
pub(super) struct Small<'a, T> {
    first: Product<T>,
    batches: &'a Batches,
    /// Whether products are summed in halves, each in a sum of its own, not one after the other.
    halves: bool,
}

impl<'a, T: Kernels> Small<'a, T> {
    /// The products, if they are many, small, and their matrices one step apart.
    pub fn new(first: Product<T>, batches: &'a Batches) -> Option<Self> {
        let Product { m, n, k, .. } = first;
        let small = k <= DEEPEST && m * k <= MOST && k * n <= MOST && m * n <= MOST && m * n * k <= PRODUCTS;
        if !small || batches.count < LANES || !batches.offsets.is_empty() {
            return None;
        }
        let halves = first.running_sums()? > 1;
        Some(Small { first, batches, halves })
    }

    /// Computes the products, on several threads where it pays.
    ///
    /// # Safety
    /// The addresses that sizes, strides and steps reach must be valid; results must overlap nothing.
    pub unsafe fn run(&self) {
        let Product { m, n, k, .. } = self.first;
        let groups = self.batches.count.div_ceil(LANES);
        let nanoseconds = groups * (4 * (m * k + k * n + m * n) + m * n * k);
        pool::share(nanoseconds as u64, groups.div_ceil(GROUPS), &|_, task| {
            let mut tiles = [[[T::ZERO; LANES]; MOST]; 3];
            for group in task * GROUPS..((task + 1) * GROUPS).min(groups) {
                // SAFETY: the caller's contract; groups have results of their own.
                unsafe { self.group(group * LANES, &mut tiles) };
            }
        });
    }

    /// The products of up to sixteen batches.
    unsafe fn group(&self, at: usize, [x, y, z]: &mut [[Lane<T>; MOST]; 3]) {
        let count = LANES.min(self.batches.count - at);
        let Product { m, n, k, a, b, c } = self.first;
        let step = self.batches.step;
        // SAFETY: the caller's contract.
        unsafe {
            let a = load(a, (m, k), (at, count, step.0), x);
            let b = load(b, (k, n), (at, count, step.1), y);
            sums((x, a), (y, b), z, Sizes { m, n, k }, self.halves);
            transposition::copy(Pair {
                src: z.as_ptr().cast::<T>(),
                dst: Disjoint(c).at(at * m * n),
                rows: count,
                dst_step: (m * n) as isize,
                columns: m * n,
                src_step: LANES as isize,
            });
        }
    }
}

/// Transposes the matrices of some batches; gives the distances of rows and columns in the tile.
unsafe fn load<T: Real>(
    x: Matrix<T>,
    (rows, columns): (usize, usize),
    (first, count, step): (usize, usize, usize),
    tile: &mut [Lane<T>; MOST],
) -> (usize, usize) {
    let at = x.ptr.wrapping_add(first * step);
    let last = (rows as isize - 1) * x.row + (columns as isize - 1) * x.column;
    let dense = x.row >= 0 && x.column >= 0 && last == (rows * columns) as isize - 1;
    // SAFETY: the caller's contract; what lies in one piece has `rows * columns` elements.
    unsafe {
        if dense {
            transposition::copy(Pair {
                src: at,
                dst: tile.as_mut_ptr().cast::<T>(),
                rows: rows * columns,
                dst_step: LANES as isize,
                columns: count,
                src_step: step as isize,
            });
            return (x.row as usize, x.column as usize);
        }
        for r in 0..rows {
            for c in 0..columns {
                let at = at.wrapping_offset(r as isize * x.row + c as isize * x.column);
                for (j, lane) in tile[r * columns + c][..count].iter_mut().enumerate() {
                    *lane = *at.add(j * step);
                }
            }
        }
    }
    (columns, 1)
}

/// A tile, and the distances of rows and columns in it.
type Operand<'a, T> = (&'a [Lane<T>; MOST], (usize, usize));

/// The sums of products, with multiply-add where the machine's products have it.
fn sums<T: Real>(a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [Lane<T>; MOST], s: Sizes, halves: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fused<T: Real>(a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [Lane<T>; MOST], s: Sizes, halves: bool) {
            sums_body::<T, true>(a, b, out, s, halves);
        }
        if matches!(crate::simd::set(), crate::simd::Set::Plain) {
            return sums_body::<T, false>(a, b, out, s, halves);
        }
        // SAFETY: sets of vectors other than the plain ones are there with these instructions.
        unsafe { fused(a, b, out, s, halves) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    sums_body::<T, true>(a, b, out, s, halves);
}

#[inline(always)]
fn sums_body<T: Real, const F: bool>(
    (a, a_steps): Operand<'_, T>,
    (b, b_steps): Operand<'_, T>,
    out: &mut [Lane<T>; MOST],
    s: Sizes,
    halves: bool,
) {
    for i in 0..s.m {
        for j in 0..s.n {
            let factors = |k: usize| (&a[i * a_steps.0 + k * a_steps.1], &b[k * b_steps.0 + j * b_steps.1]);
            out[i * s.n + j] = if halves { in_halves::<T, F>(s.k, factors) } else { in_order::<T, F>(s.k, factors) };
        }
    }
}

/// The products of the lanes of x and y, added to sums.
#[inline(always)]
fn joined<T: Real, const F: bool>((x, y): (&Lane<T>, &Lane<T>), sum: Lane<T>) -> Lane<T> {
    std::array::from_fn(|l| T::fma::<F>(x[l], y[l], sum[l]))
}

#[inline(always)]
fn in_order<'a, T: Real, const F: bool>(n: usize, factors: impl Fn(usize) -> (&'a Lane<T>, &'a Lane<T>)) -> Lane<T> {
    (0..n).fold([T::ZERO; LANES], |sum, k| joined::<T, F>(factors(k), sum))
}

/// Half of the sums are added to the other half until one is left; those that no product joins are zero.
#[inline(always)]
fn in_halves<'a, T: Real, const F: bool>(n: usize, factors: impl Fn(usize) -> (&'a Lane<T>, &'a Lane<T>)) -> Lane<T> {
    let zero = [T::ZERO; LANES];
    let add = |x: Lane<T>, y: Lane<T>| std::array::from_fn(|l| x[l] + y[l]);
    let mut sums = [zero; DEEPEST];
    for (k, sum) in sums[..n].iter_mut().enumerate() {
        *sum = joined::<T, F>(factors(k), zero);
    }
    let mut width = n.next_power_of_two() / 2;
    while width > 0 {
        for k in 0..width {
            sums[k] = add(sums[k], sums[k + width]);
        }
        width /= 2;
    }
    // Some sum had no product.
    add(sums[0], zero)
}
