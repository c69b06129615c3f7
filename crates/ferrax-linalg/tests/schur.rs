//! What Schur forms and updated Cholesky factors must satisfy, for matrices that proptest makes up.

use ferrax_linalg::{Element, Real, Scalar, c32, c64, cholesky_update};
use proptest::prelude::*;

/// Integers of the entries (real, imaginary), of which many are equal or zero.
fn entries() -> impl Strategy<Value = (usize, Vec<(i8, i8)>)> {
    (0usize..14, 0u32..4).prop_flat_map(|(n, kind)| {
        let one = move || match kind {
            0 => prop_oneof![Just(0i8), Just(1), Just(-1)].boxed(),
            1 => prop_oneof![4 => Just(0i8), 1 => any::<i8>()].boxed(),
            _ => any::<i8>().boxed(),
        };
        (Just(n), prop::collection::vec((one(), one()), n * n))
    })
}

/// The (i, j) entry of x op(y), summed over their n columns or rows.
fn product<T: Element>(x: &[T], y: &[T], n: usize, adjoint: bool) -> Vec<T> {
    let mut out = vec![T::ZERO; n * n];
    for j in 0..n {
        for k in 0..n {
            let f = if adjoint { y[k * n + j].conjugate() } else { y[j * n + k] };
            (0..n).for_each(|i| out[j * n + i] += x[k * n + i] * f);
        }
    }
    out
}

/// The largest difference of entries.
fn distance<T: Element>(x: &[T], y: &[T]) -> T::R {
    let mut most = T::R::ZERO;
    for (x, y) in x.iter().zip(y) {
        let size = (*x - *y).size();
        assert!(size >= T::R::ZERO, "not a number");
        most = if size > most { size } else { most };
    }
    most
}

fn identity<T: Element>(n: usize) -> Vec<T> {
    (0..n * n).map(|k| if k / n == k % n { T::ONE } else { T::ZERO }).collect()
}

/// Checks A = Z T Zᴴ within 20 ε n of the norm, Z unitary within 20 ε n, T's shape, and that T comes without Z too.
fn check<T: Element>(a: &[T], n: usize, real: bool) {
    let (mut t, mut z) = (a.to_vec(), vec![T::ZERO; n * n]);
    assert!(T::schur(&mut t, n, Some(&mut z)).unwrap(), "no convergence");
    let mut alone = a.to_vec();
    assert!(T::schur(&mut alone, n, None).unwrap());
    assert!(alone == t, "T hangs on Z");
    let top = distance(a, &vec![T::ZERO; n * n]);
    let share = |x: &T| if top == T::R::ZERO { top } else { x.size() / top };
    let norm = top * a.iter().fold(T::R::ZERO, |s, x| s + share(x) * share(x)).root();
    let bound = T::R::of_f64(20.0 * n as f64) * T::R::EPSILON;
    assert!(distance(&product(&z, &z, n, true), &identity(n)) <= bound, "Z is not unitary");
    assert!(distance(&product(&product(&z, &t, n, false), &z, n, true), a) <= bound * norm, "another matrix");
    let at = |i: usize, j: usize| t[j * n + i];
    for j in 0..n {
        let first = if real { j + 2 } else { j + 1 };
        assert!((first..n).all(|i| at(i, j) == T::ZERO), "not triangular");
        if real && j + 1 < n && at(j + 1, j) != T::ZERO {
            assert!(j == 0 || at(j, j - 1) == T::ZERO, "a block of more than two rows");
            assert!(at(j, j) == at(j + 1, j + 1), "the diagonal of a block differs");
            let (above, below) = (at(j, j + 1).re(), at(j + 1, j).re());
            assert!(above != T::R::ZERO && (above > T::R::ZERO) != (below > T::R::ZERO), "real eigenvalues");
        }
    }
}

fn typed<T: Element>(entries: &[(i8, i8)], factor: f64) -> Vec<T> {
    let part = |x: i8| T::R::of_f64(f64::from(x) * factor);
    entries.iter().map(|&(re, im)| T::of_parts(part(re), part(im))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn schur_forms((n, entries) in entries(), power in -30i32..30) {
        let factor = 2f64.powi(power);
        check::<f32>(&typed(&entries, factor), n, true);
        check::<f64>(&typed(&entries, factor.powi(30)), n, true);
        check::<c32>(&typed(&entries, factor), n, false);
        check::<c64>(&typed(&entries, factor.powi(30)), n, false);
    }

    #[test]
    fn triangular_matrices_are_their_own_forms((n, entries) in entries()) {
        let mut a: Vec<f64> = typed(&entries, 1.0);
        (0..n).for_each(|j| a[j * n + j + 1..(j + 1) * n].fill(0.0));
        let (mut t, mut z) = (a.clone(), vec![0.0; n * n]);
        prop_assert!(f64::schur(&mut t, n, Some(&mut z)).unwrap());
        prop_assert_eq!((t, z), (a, identity(n)));
    }

    #[test]
    fn updated_factors((n, entries) in entries(), w in prop::collection::vec(any::<i8>(), 14)) {
        let mut r: Vec<f64> = typed(&entries, 1.0 / 16.0);
        // Row-major: the upper triangle.
        (0..n).for_each(|i| r[i * n..i * n + i].fill(0.0));
        let w: Vec<f64> = w[..n].iter().map(|x| f64::from(*x) / 16.0).collect();
        let (before, mut rest) = (r.clone(), w.clone());
        cholesky_update(&mut r, &mut rest);
        let gram = |r: &[f64], i: usize, j: usize| (0..n).map(|k| r[k * n + i] * r[k * n + j]).sum::<f64>();
        for i in 0..n {
            for j in 0..n {
                let wanted = gram(&before, i, j) + w[i] * w[j];
                prop_assert!((gram(&r, i, j) - wanted).abs() <= 1e-12 * (1.0 + wanted.abs()) * 64.0 * n as f64);
                prop_assert!(i <= j || r[i * n + j].abs() <= 1e-13 * 64.0);
            }
        }
    }
}

#[test]
fn matrices_that_only_other_shifts_take_apart() {
    for n in 2..24 {
        // The cyclic permutation: all its eigenvalues have one size, and the usual shifts are zero.
        let cycle: Vec<(i8, i8)> = (0..n * n).map(|k| (i8::from(k % n == (k / n + 1) % n), 0)).collect();
        check::<f32>(&typed(&cycle, 1.0), n, true);
        check::<f64>(&typed(&cycle, 1.0), n, true);
        check::<c32>(&typed(&cycle, 1.0), n, false);
        check::<c64>(&typed(&cycle, 1.0), n, false);
        // One Jordan block, upper and lower.
        for shift in [1, n - 1] {
            let jordan = |k: usize| i8::from(k / n == k % n) + i8::from(k / n == (k % n + shift) % n && k / n != 0);
            let jordan: Vec<(i8, i8)> = (0..n * n).map(|k| (jordan(k), 0)).collect();
            check::<f32>(&typed(&jordan, 1.0), n, true);
            check::<c64>(&typed(&jordan, 1.0), n, false);
        }
    }
}

#[test]
fn many_rows() {
    // Steps have several batches of reflections, and columns beyond what these meet.
    let mut seed = 3u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 56) as i8
    };
    for n in [16, 19, 20, 40, 75] {
        let entries: Vec<(i8, i8)> = (0..n * n).map(|_| (random(), random())).collect();
        check::<f32>(&typed(&entries, 1.0), n, true);
        check::<f64>(&typed(&entries, 1.0), n, true);
        check::<c32>(&typed(&entries, 1.0), n, false);
        values_are_those_of_the_form::<f32>(&typed(&entries, 1.0), n);
        values_are_those_of_the_form::<f64>(&typed(&entries, 1.0), n);
    }
}

/// Eigenvalues alone come from blocks that are not applied to the rest: they are the same to the bit.
fn values_are_those_of_the_form<T: Element + Real<R = T>>(a: &[T], n: usize) {
    let (mut t, mut values) = (a.to_vec(), vec![[T::ZERO; 2]; n]);
    assert!(T::schur(&mut t, n, None).unwrap() && T::eig(a, n, &mut values, None, None).unwrap());
    for (k, [re, im]) in values.into_iter().enumerate() {
        assert!(re == t[k * n + k], "another real part");
        let below = |k: usize| if k + 1 < n { t[k * n + k + 1] } else { T::ZERO };
        let paired = below(k) != T::ZERO || (k > 0 && below(k - 1) != T::ZERO);
        assert!(paired == (im != T::ZERO), "another kind of eigenvalue");
        if below(k) != T::ZERO {
            let size = -(t[k * n + k + 1] * t[(k + 1) * n + k]);
            let gap = (im * im - size).magnitude();
            assert!(im > T::ZERO && gap <= T::of_f64(8.0) * T::EPSILON * size, "another imaginary part");
        }
    }
}

#[test]
fn what_is_not_finite_fails() {
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(!f64::schur(&mut [1.0, 2.0, bad, 4.0], 2, None).unwrap());
        assert!(!c64::schur(&mut [c64::new(1.0, bad)], 1, Some(&mut [c64::new(0.0, 0.0)])).unwrap());
    }
}

#[test]
fn the_largest_and_smallest_numbers() {
    for size in [f64::MAX / 8.0, f64::MIN_POSITIVE * 64.0] {
        check::<f64>(&[size, -size, size / 2.0, size / 4.0, size, 0.0, -size, size, size / 8.0], 3, true);
    }
}
