//! Many small products: sixteen of them at once, a lane each.
//!
//! The matrices of sixteen batches are transposed, so that a vector holds one element of each. Elements are summed in the
//! order of a product alone (`matmul/tile.rs`, `matmul/vector.rs`), with its bits. The smallest ones, whose right factor is four
//! by four at most, are computed one by one in loops of known lengths. Read next: `transposition.rs`.

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
/// Sums of an element at most that are halved.
const SUMS: usize = 32;
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
        let sums = first.running_sums()?;
        let deepest = if sums > 1 { sums.min(SUMS) } else { DEEPEST };
        let small = k <= deepest && m * k <= MOST && k * n <= MOST && m * n <= MOST && m * n * k <= PRODUCTS;
        if !small || batches.count < LANES || !batches.offsets.is_empty() {
            return None;
        }
        Some(Small { first, batches, halves: sums > 1 })
    }

    /// Computes the products, on several threads where it pays.
    ///
    /// # Safety
    /// The addresses that sizes, strides and steps reach must be valid; results must overlap nothing.
    pub unsafe fn run(&self) {
        let Product { m, n, k, .. } = self.first;
        let groups = self.batches.count.div_ceil(LANES);
        let nanoseconds = groups * (4 * (m * k + k * n + m * n) + m * n * k);
        let alone = match (self.halves, self.first.b.column) {
            (true, _) => alone::<T, InHalves, SPREAD>(n, k),
            (_, 1) => alone::<T, InOrder, ROWS>(n, k),
            _ => alone::<T, InOrder, SPREAD>(n, k),
        };
        pool::share(nanoseconds as u64, groups.div_ceil(GROUPS), &|_, task| {
            if let Some(alone) = alone {
                let first = task * GROUPS * LANES;
                let end = (first + GROUPS * LANES).min(self.batches.count);
                // SAFETY: the caller's contract; ranges have results of their own.
                return unsafe { alone(self.first, self.batches.step, first..end) };
            }
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
unsafe fn sums<T: Real>(a: Operand<'_, T>, b: Operand<'_, T>, out: &mut [Lane<T>; MOST], s: Sizes, halves: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        unsafe fn fused<T: Real>(
            a: Operand<'_, T>,
            b: Operand<'_, T>,
            out: &mut [Lane<T>; MOST],
            s: Sizes,
            halves: bool,
        ) {
            // SAFETY: the caller's contract.
            unsafe { sums_body::<T, true>(a, b, out, s, halves) }
        }
        if !matches!(crate::simd::set(), crate::simd::Set::Plain) {
            // SAFETY: the caller's contract; other sets of vectors are there with these instructions.
            return unsafe { fused::<T>(a, b, out, s, halves) };
        }
    }
    // SAFETY: the caller's contract.
    unsafe { sums_body::<T, { cfg!(not(target_arch = "x86_64")) }>(a, b, out, s, halves) }
}

#[inline(always)]
unsafe fn sums_body<T: Real, const F: bool>(
    (a, a_steps): Operand<'_, T>,
    (b, b_steps): Operand<'_, T>,
    out: &mut [Lane<T>; MOST],
    s: Sizes,
    halves: bool,
) {
    for i in 0..s.m {
        for j in 0..s.n {
            let factors = |k: usize| (a[i * a_steps.0 + k * a_steps.1], b[k * b_steps.0 + j * b_steps.1]);
            out[i * s.n + j] = if halves {
                InHalves::sum::<T, F, LANES>(s.k, factors)
            } else {
                InOrder::sum::<T, F, LANES>(s.k, factors)
            };
        }
    }
}

/// The products of the lanes of x and y, added to sums.
#[inline(always)]
fn joined<T: Real, const F: bool, const L: usize>((x, y): ([T; L], [T; L]), sum: [T; L]) -> [T; L] {
    std::array::from_fn(|l| T::fma::<F>(x[l], y[l], sum[l]))
}

/// In which order products are summed.
trait Order {
    /// The sum of `n` products of lanes.
    fn sum<T: Real, const F: bool, const L: usize>(n: usize, factors: impl Fn(usize) -> ([T; L], [T; L])) -> [T; L];
}

/// One after the other.
struct InOrder;

impl Order for InOrder {
    #[inline(always)]
    fn sum<T: Real, const F: bool, const L: usize>(n: usize, factors: impl Fn(usize) -> ([T; L], [T; L])) -> [T; L] {
        (0..n).fold([T::ZERO; L], |sum, k| joined::<T, F, L>(factors(k), sum))
    }
}

/// Half of the sums are added to the other half until one is left; those that no product joins are zero.
struct InHalves;

impl Order for InHalves {
    #[inline(always)]
    fn sum<T: Real, const F: bool, const L: usize>(n: usize, factors: impl Fn(usize) -> ([T; L], [T; L])) -> [T; L] {
        let zero = [T::ZERO; L];
        let add = |x: [T; L], y: [T; L]| std::array::from_fn(|l| x[l] + y[l]);
        let mut sums = [zero; SUMS];
        for (k, sum) in sums[..n].iter_mut().enumerate() {
            *sum = joined::<T, F, L>(factors(k), zero);
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
}

/// How a factor is read: its rows lie in one piece, or not.
const ROWS: bool = true;
const SPREAD: bool = false;

/// Products in a range of batches, one by one: a factor of `K` by `N` numbers is in registers.
type Alone<T> = unsafe fn(Product<T>, (usize, usize), std::ops::Range<usize>);

/// How products with a factor of `k` by `n` numbers are computed one by one, if they are: where multiply-add is an
/// instruction, which others need not be compiled for once more.
fn alone<T: Real, O: Order, const PIECE: bool>(n: usize, k: usize) -> Option<Alone<T>> {
    macro_rules! sizes {
        ($($n:literal)*) => {
            match (n, k) {
                $(
                    ($n, 1) => one_by_one::<T, O, PIECE, $n, 1>,
                    ($n, 2) => one_by_one::<T, O, PIECE, $n, 2>,
                    ($n, 3) => one_by_one::<T, O, PIECE, $n, 3>,
                    ($n, 4) => one_by_one::<T, O, PIECE, $n, 4>,
                )*
                _ => return None,
            }
        };
    }
    let fused = cfg!(not(target_arch = "x86_64")) || !matches!(crate::simd::set(), crate::simd::Set::Plain);
    fused.then_some(sizes!(1 2 3 4))
}

/// # Safety
/// There must be matrices of these sizes, in batches one step apart, and the instructions that vectors have.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2,fma"))]
unsafe fn one_by_one<T: Real, O: Order, const PIECE: bool, const N: usize, const K: usize>(
    Product { m, a, b, c, .. }: Product<T>,
    step: (usize, usize),
    batches: std::ops::Range<usize>,
) {
    for batch in batches {
        // SAFETY: the caller's contract: matrices of these sizes.
        unsafe {
            let (x, y, c) = (a.ptr.add(batch * step.0), b.ptr.add(batch * step.1), c.add(batch * m * N));
            let (rows, columns) = (b.row, b.column);
            let right: [[T; N]; K] = if PIECE {
                std::array::from_fn(|k| y.offset(k as isize * rows).cast::<[T; N]>().read())
            } else {
                std::array::from_fn(|k| std::array::from_fn(|j| *y.offset(k as isize * rows + j as isize * columns)))
            };
            for i in 0..m {
                let left: [T; K] = std::array::from_fn(|k| *x.offset(i as isize * a.row + k as isize * a.column));
                c.add(i * N).cast::<[T; N]>().write(O::sum::<T, true, N>(K, |k| ([left[k]; N], right[k])));
            }
        }
    }
}
