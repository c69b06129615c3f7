//! Products against plain loops in the order that `tile.rs` and `vector.rs` state: the same bits, whatever the
//! vectors, the blocks and the threads.

use super::*;
use crate::cases::cases;
use crate::simd::lanes::Plain;
use proptest::prelude::*;

/// Any float of a generator, neither large nor small.
pub fn values<T: Real>(n: usize, seed: u64, from: impl Fn(f64) -> T) -> Vec<T> {
    let mut state = seed;
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from((state >> 40) as f64 / f64::from(1 << 24) - 0.5)
        })
        .collect()
}

pub fn fma<T: Real>(a: T, b: T, c: T) -> T {
    if cfg!(not(target_arch = "x86_64")) || crate::simd::wide() {
        T::fma::<true>(a, b, c)
    } else {
        T::fma::<false>(a, b, c)
    }
}

/// A sum of products in blocks of `DEPTH`.
pub fn in_blocks<T: Real>(k: usize, x: impl Fn(usize) -> (T, T)) -> T {
    let block = |start: usize| (start..k.min(start + DEPTH)).fold(T::ZERO, |sum, p| fma(x(p).0, x(p).1, sum));
    (DEPTH..k).step_by(DEPTH).fold(block(0), |sum, start| sum + block(start))
}

/// A dot product in runs of 2048 with 128 bytes of running sums.
pub fn in_runs<T: Real>(k: usize, x: impl Fn(usize) -> (T, T)) -> T {
    let lanes = 128 / size_of::<T>();
    let run = |start: usize| {
        let end = k.min(start + 2048);
        let sums = |j: usize| (start + j..end).step_by(lanes).fold(T::ZERO, |sum, p| fma(x(p).0, x(p).1, sum));
        let mut sums: Vec<T> = (0..lanes).map(sums).collect();
        while sums.len() > 1 {
            let half = sums.split_off(sums.len() / 2);
            sums.iter_mut().zip(half).for_each(|(s, h)| *s = *s + h);
        }
        sums[0]
    };
    (2048..k).step_by(2048).fold(run(0), |sum, start| sum + run(start))
}

/// The strides of an r×c matrix: row-major, column-major, or with gaps both ways.
pub fn strides(layout: usize, r: usize, c: usize) -> (isize, isize) {
    match layout {
        0 => (c as isize, 1),
        1 => (1, r as isize),
        2 => (c as isize + 3, 1),
        _ => (2 * c as isize + 1, 2),
    }
}

pub fn check<T: Kernels + std::fmt::Debug>(
    (m, n, k): (usize, usize, usize),
    layouts: (usize, usize),
    seed: u64,
    from: impl Fn(f64) -> T + Copy,
) {
    let ((ar, ac), (br, bc)) = (strides(layouts.0, m, k), strides(layouts.1, k, n));
    let a = values(2 * (m + 1) * (k + 3), seed, from);
    let b = values(2 * (k + 1) * (n + 3), seed ^ 1, from);
    let mut c = [vec![from(9.0); m * n], vec![from(9.0); m * n]];
    for (c, shared) in c.iter_mut().zip([false, true]) {
        let (a, b) = (Matrix { ptr: a.as_ptr(), row: ar, column: ac }, Matrix { ptr: b.as_ptr(), row: br, column: bc });
        let p = Product { m, n, k, a, b, c: c.as_mut_ptr() };
        // SAFETY: the arrays have room for the strides.
        unsafe { p.run(shared) }.unwrap();
    }
    assert_eq!(c[0], c[1], "the same bits on one thread and on several");
    let rows_of_k = if n == 1 { ac == 1 || ar != 1 } else { br == 1 || bc != 1 };
    let dots =
        (m == 1 || n == 1) && rows_of_k && (m * n == 1 || !matches!(if n == 1 { (ar, ac) } else { (bc, br) }, (1, _)));
    for i in 0..m {
        for j in 0..n {
            let at = |p: usize| {
                (a[(i as isize * ar + p as isize * ac) as usize], b[(p as isize * br + j as isize * bc) as usize])
            };
            let want = if dots { in_runs(k, at) } else { in_blocks(k, at) };
            assert_eq!(c[0][i * n + j], want, "{m}x{n}x{k} {layouts:?} at {i}, {j}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small(m in 1usize..40, n in 1usize..70, k in 1usize..70, a in 0usize..4, b in 0usize..4, seed: u64) {
        check::<f32>((m, n, k), (a, b), seed, |x| x as f32);
        check::<f64>((m, n, k), (a, b), seed, |x| x);
    }

    #[test]
    fn vectors(n in 1usize..1500, k in 1usize..700, a in 0usize..4, b in 0usize..4, seed: u64) {
        check::<f32>((1, n, k), (a, b), seed, |x| x as f32);
        check::<f32>((n, 1, k), (a, b), seed, |x| x as f32);
        check::<f64>((n, 1, k), (a, b), seed, |x| x);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn large(m in 200usize..300, n in 100usize..600, k in 250usize..600, a in 0usize..4, b in 0usize..4, seed: u64) {
        check::<f32>((m, n, k), (a, b), seed, |x| x as f32);
    }

    /// A matrix times its own transposition is computed on one side of the diagonal.
    #[test]
    fn symmetric(n in 2usize..700, k in 1usize..400, layout in 0usize..4, seed: u64) {
        let (row, column) = strides(layout, n, k);
        let x = values(1 + (n - 1) * row as usize + (k - 1) * column as usize, seed, |x| x as f32);
        let a = Matrix { ptr: x.as_ptr(), row, column };
        let mut c = vec![f32::NAN; n * n];
        // SAFETY: the strides are those of the array.
        unsafe { Product { m: n, n, k, a, b: a.transposed(), c: c.as_mut_ptr() }.run(true) }.unwrap();
        let at = |i: usize, p: usize| x[i * row as usize + p * column as usize];
        for i in (0..n).step_by(1 + n / 50) {
            for j in (0..n).step_by(1 + n / 60) {
                prop_assert_eq!(c[i * n + j], in_blocks(k, |p| (at(i, p), at(j, p))));
            }
        }
    }

    #[test]
    fn long(k in 60_000usize..200_000, seed: u64) {
        check::<f32>((1, 1, k), (0, 1), seed, |x| x as f32);
        check::<f64>((3, 1, k), (0, 0), seed, |x| x);
        check::<f32>((2, 5, k), (0, 0), seed, |x| x as f32);
    }
}

/// The vectors of every instruction set that the machine has give the bits of the arrays.
#[test]
fn instruction_sets_agree() {
    fn tiles<L: Lanes<T = f32>>(f: unsafe fn(&Part<f32>)) {
        for (m, n, k) in [(1, 1, 1), (15, 33, 20), (29, 64, 256), (6, 7, 3), (13, 50, 100)] {
            let (a, b) = (values(m * k, 1, |x| x as f32), values(k * n, 2, |x| x as f32));
            let mut c = vec![0.5f32; m * n];
            let left = A { ptr: a.as_ptr(), row: k as isize, step: 1, panels: None };
            let (b_step, b_panel) = (n as isize, L::N * L::VECTORS);
            let part =
                Part { m, n, k, a: left, b: b.as_ptr(), b_step, b_panel, c: c.as_mut_ptr(), c_row: n, more: true };
            // SAFETY: the part is that of the arrays, and the machine has the instruction set.
            unsafe { f(&part) };
            for (at, &got) in c.iter().enumerate() {
                assert_eq!(got, 0.5 + in_blocks(k, |p| (a[at / n * k + p], b[p * n + at % n])));
            }
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__m256, __m512};
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        unsafe fn wide(p: &Part<f32>) {
            // SAFETY: the caller's contract.
            unsafe { tile::part::<__m512>(p) }
        }
        #[target_feature(enable = "avx2,fma")]
        unsafe fn half(p: &Part<f32>) {
            // SAFETY: the caller's contract.
            unsafe { tile::part::<__m256>(p) }
        }
        if crate::simd::isa() == Some(crate::simd::Isa::Avx512) {
            tiles::<__m512>(wide);
        }
        if crate::simd::wide() {
            tiles::<__m256>(half);
            tiles::<Plain<f32, 8, true>>(tile::part::<Plain<f32, 8, true>>);
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        tiles::<core::arch::aarch64::float32x4_t>(tile::part::<core::arch::aarch64::float32x4_t>);
        tiles::<Plain<f32, 8, true>>(tile::part::<Plain<f32, 8, true>>);
    }
}
