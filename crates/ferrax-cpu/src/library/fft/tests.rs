//! Transforms against the sums of their definition in double precision, and vectors against arrays, bit for bit.

use super::block::{Block, run};
use super::butterfly::Constant;
use super::plan::root;
use super::*;
use crate::cases::cases;
use crate::simd::lanes::Plain;
use crate::simd::wave::Wave;
use proptest::prelude::*;

/// Numbers between -0.5 and 0.5.
fn values<T: Constant>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        T::of((state >> 40) as f64 / f64::from(1 << 24) - 0.5)
    };
    (0..n).map(|_| next()).collect()
}

fn complex_values<T: Constant>(n: usize, seed: u64) -> Vec<Complex<T>> {
    values::<T>(2 * n, seed).chunks_exact(2).map(|z| Complex::new(z[0], z[1])).collect()
}

/// A number type with all that tests ask of it.
trait Number: Element + Into<f64> + std::fmt::Debug {
    const EPSILON: f64;
}
impl Number for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
}
impl Number for f64 {
    const EPSILON: f64 = f64::EPSILON;
}

fn wide<T: Number>(z: Complex<T>) -> [f64; 2] {
    [z.re.into(), z.im.into()]
}

/// Adds to a sum that carries what rounding lost (W. Kahan).
fn add(sum: &mut [f64; 2], x: f64) {
    let y = x - sum[1];
    let total = sum[0] + y;
    *sum = [total, (total - sum[0]) - y];
}

/// The sum of the definition.
fn naive(x: &[[f64; 2]], inverse: bool) -> Vec<[f64; 2]> {
    let n = x.len();
    let roots: Vec<_> = (0..n).map(|k| root(k, n)).collect();
    let sum = |k: usize| {
        let [mut re, mut im] = [[0.0; 2]; 2];
        for (i, [a, b]) in x.iter().enumerate() {
            let (cos, sin) = roots[i * k % n];
            let sin = if inverse { sin } else { -sin };
            add(&mut re, a * cos - b * sin);
            add(&mut im, a * sin + b * cos);
        }
        [re[0], im[0]]
    };
    (0..n).map(sum).collect()
}

/// Panics unless the root mean square error is what docs/numerics.md promises.
fn near<T: Number>(got: &[[f64; 2]], want: &[[f64; 2]], n: usize, what: &str) {
    let square = |z: &[f64; 2]| z[0] * z[0] + z[1] * z[1];
    let error: f64 = got.iter().zip(want).map(|(a, b)| square(&[a[0] - b[0], a[1] - b[1]])).sum();
    let size: f64 = want.iter().map(square).sum();
    let steps = (n as f64).log2().max(2.0);
    let rms = (error / size).sqrt() / <T as Number>::EPSILON;
    assert!(size == 0.0 || rms <= steps, "{what}: {rms} epsilon");
}

/// The first, the last and one more.
fn some(count: usize) -> [usize; 3] {
    [0, count / 2, count - 1]
}

fn check_complex<T: Number>((outer, n, inner): (usize, usize, usize), inverse: bool, seed: u64) {
    let x = complex_values::<T>(outer * n * inner, seed);
    let mut out = vec![Complex::new(T::of(9.0), T::of(9.0)); x.len()];
    complex(Some(&x), &mut out, (outer, n, inner), inverse, T::of(0.5)).unwrap();
    let mut same = x.clone();
    complex(None, &mut same, (outer, n, inner), inverse, T::of(0.5)).unwrap();
    assert_eq!(out, same, "in place");
    for t in some(outer * inner) {
        let at = |i: usize| (t / inner * n + i) * inner + t % inner;
        let row: Vec<_> = (0..n).map(|i| wide(x[at(i)]).map(|v| v / 2.0)).collect();
        let got: Vec<_> = (0..n).map(|i| wide(out[at(i)])).collect();
        near::<T>(&got, &naive(&row, inverse), n, &format!("({outer}, {n}, {inner}), {inverse}"));
    }
}

fn check_real<T: Number>(n: usize, count: usize, seed: u64) {
    let (x, half) = (values::<T>(n * count, seed), n / 2 + 1);
    let mut z = vec![Complex::new(T::of(9.0), T::of(9.0)); half * count];
    forward(&x, n, &mut z).unwrap();
    for t in some(count) {
        let row: Vec<_> = x[t * n..][..n].iter().map(|&v| [v.into(), 0.0]).collect();
        let got: Vec<_> = z[t * half..][..half].iter().map(|&z| wide(z)).collect();
        near::<T>(&got, &naive(&row, false)[..half], n, &format!("{count} of {n}"));
        let ends = if n.is_multiple_of(2) { vec![got[0], got[half - 1]] } else { vec![got[0]] };
        assert!(ends.iter().all(|z| z[1] == 0.0), "real ends of {n}: {ends:?}");
    }
    // What stands in the imaginary parts of the ends is of no account.
    let mut z = complex_values::<T>(half * count, seed ^ 1);
    let mut out = vec![T::of(9.0); n * count];
    backward(&z, n, &mut out, T::of(0.25)).unwrap();
    for row in z.chunks_exact_mut(half) {
        row[0].im = T::of(0.0);
        if n.is_multiple_of(2) {
            row[half - 1].im = T::of(0.0);
        }
    }
    for t in some(count) {
        let row = &z[t * half..][..half];
        let whole = |k: usize| if k < half { wide(row[k]) } else { [wide(row[n - k])[0], -wide(row[n - k])[1]] };
        let want = naive(&(0..n).map(|k| whole(k).map(|v| v / 4.0)).collect::<Vec<_>>(), true);
        let got: Vec<_> = out[t * n..][..n].iter().map(|&v| [v.into(), 0.0]).collect();
        near::<T>(&got, &want, n, &format!("back {count} of {n}"));
    }
}

/// Lengths with small prime factors, with larger ones, and primes.
fn lengths() -> impl Strategy<Value = usize> {
    let smooth = (0u32..5, 0u32..3, 0u32..3, prop::sample::select(vec![1usize, 7, 11, 13, 49]))
        .prop_map(|(a, b, c, d)| (2usize.pow(a) * 3usize.pow(b) * 5usize.pow(c) * d).min(2000));
    prop_oneof![4 => 1usize..=64, 4 => smooth, 1 => prop::sample::select(vec![17usize, 97, 211, 401, 1009])]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows(n in lengths(), count in 1usize..40, inverse: bool, seed: u64) {
        check_complex::<f32>((count, n, 1), inverse, seed);
        check_complex::<f64>((count, n, 1), inverse, seed);
    }

    #[test]
    fn columns(n in lengths(), outer in 1usize..5, inner in 2usize..40, inverse: bool, seed: u64) {
        check_complex::<f32>((outer, n, inner), inverse, seed);
        check_complex::<f64>((outer, n, inner), inverse, seed);
    }

    #[test]
    fn reals(n in lengths(), count in 1usize..40, seed: u64) {
        check_real::<f32>(n, count, seed);
        check_real::<f64>(n, count, seed);
    }
}

/// Depth first, on several threads, and with rows that share cache lines' sets.
#[test]
fn long_ones() {
    for (outer, n, inner) in [(40, 4096, 1), (9, 10_000, 1), (1, 3000, 33), (300, 512, 1), (3, 16_384, 8)] {
        check_complex::<f32>((outer, n, inner), false, 3);
        check_complex::<f64>((outer, n, inner), true, 3);
    }
    check_real::<f32>(8192, 33, 5);
    check_real::<f64>(4500, 12, 5);
    check_real::<f64>(3375, 17, 5);
}

#[test]
fn a_row_does_not_touch_its_neighbours() {
    let mut x = values::<f32>(16 * 100, 7);
    let mut clean = vec![Complex::new(0.0, 0.0); 16 * 51];
    forward(&x, 100, &mut clean).unwrap();
    x[5 * 100 + 3] = f32::NAN;
    x[6 * 100 + 3] = f32::INFINITY;
    let mut out = clean.clone();
    forward(&x, 100, &mut out).unwrap();
    for (t, (got, want)) in out.chunks_exact(51).zip(clean.chunks_exact(51)).enumerate() {
        assert_eq!(t != 5 && t != 6, got == want, "row {t}");
    }
}

#[test]
fn roots_have_the_symmetries_of_the_circle() {
    for n in 1..200 {
        for k in 0..n {
            let (c, s) = root(k, n);
            assert!((c - (std::f64::consts::TAU * k as f64 / n as f64).cos()).abs() < 1.5e-15);
            assert_eq!((c, -s), root(n - k, n));
            assert_eq!((-c, -s), root(2 * k + n, 2 * n));
            assert_eq!((-s, c), root(4 * k + n, 4 * n));
        }
    }
}

/// Results of transforms of all kinds, in blocks of vectors L.
fn results<L: Wave<T: Element>>(run: unsafe fn(&Block<'_, L::T>)) -> Vec<L::T> {
    let mut all = Vec::new();
    for (n, count, inner) in
        [(1, 3, 1), (12, 40, 1), (77, 21, 7), (130, 66, 33), (512, 17, 1), (1000, 5, 1), (360, 40, 40)]
    {
        let x = values::<L::T>(2 * (n + 2) * count, n as u64);
        let complex = [false, true].map(|inverse| (Way::Complex { inner, inverse }, n));
        let real = [n, n + 1].map(|n| [(Way::Forward(n), n), (Way::Backward(n), n)]);
        for (way, length) in complex.into_iter().chain(real.into_iter().flatten()) {
            // Some of the lengths n + 1 have larger factors.
            let Some(plan) = many::plan_of::<L::T>(way, length, 100) else { continue };
            let mut out = vec![L::T::of(0.0); x.len()];
            let (src, dst, scale) = (x.as_ptr(), out.as_mut_ptr(), L::T::of(0.3));
            // SAFETY: operands and results have at most n + 3 numbers a row, and the machine has the instructions.
            unsafe { Many { plan: &plan, way, src, dst, count, scale }.run_with(L::N, run) }.unwrap();
            all.extend(out);
        }
    }
    all
}

/// The vectors of every instruction set that the machine has give the bits of the arrays.
#[test]
#[cfg(target_arch = "x86_64")]
fn instruction_sets_agree() {
    use core::arch::x86_64::*;
    macro_rules! agree {
        ($T:ty, $wide:ident, $half:ident) => {{
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
            unsafe fn wide(b: &Block<'_, $T>) {
                // SAFETY: the caller's contract, here and below.
                unsafe { run::<$wide>(b) }
            }
            #[target_feature(enable = "avx2,fma")]
            unsafe fn half(b: &Block<'_, $T>) {
                // SAFETY: as above.
                unsafe { run::<$half>(b) }
            }
            let arrays = results::<Plain<$T, 8, true>>(run::<Plain<$T, 8, true>>);
            if crate::simd::wide() {
                assert_eq!(results::<$half>(half), arrays);
            }
            if crate::simd::isa() == Some(crate::simd::Isa::Avx512) {
                assert_eq!(results::<$wide>(wide), arrays);
            }
        }};
    }
    agree!(f32, __m512, __m256);
    agree!(f64, __m512d, __m256d);
}

/// As above.
#[test]
#[cfg(target_arch = "aarch64")]
fn instruction_sets_agree() {
    use core::arch::aarch64::{float32x4_t, float64x2_t};
    let arrays = results::<Plain<f32, 8, true>>(run::<Plain<f32, 8, true>>);
    assert_eq!(results::<float32x4_t>(run::<float32x4_t>), arrays);
    let arrays = results::<Plain<f64, 8, true>>(run::<Plain<f64, 8, true>>);
    assert_eq!(results::<float64x2_t>(run::<float64x2_t>), arrays);
}
