//! Eigenvectors of large matrices of f32: near what the dtype can hold, also where eigenvalues crowd together.

use faer::{Mat, c32};
use ferrax_linalg::Element;

fn random(seed: &mut u64) -> f32 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*seed >> 40) as f32) / (1u64 << 23) as f32 - 1.0
}

/// For a dtype, made from its real part and a random number: 4 B Bᴴ + n I for a random B; and the largest errors of its
/// A V - V Λ, as a part of A's largest element, and of Vᴴ V - I.
macro_rules! checks {
    ($gram:ident, $errors:ident, $T:ty, |$re:ident, $seed:ident| $make:expr) => {
        fn $gram(n: usize, seed: &mut u64) -> Mat<$T> {
            let element = |$re: f32, $seed: &mut u64| -> $T { $make };
            let b = Mat::<$T>::from_fn(n, n, |_, _| element(random(seed), seed));
            let product = &b * b.adjoint();
            let real = |x: f32| element(x, &mut 0) - element(0.0, &mut 0);
            let [four, size] = [4.0, n as f32].map(real);
            Mat::from_fn(n, n, |i, j| product[(i, j)] * four + if i == j { size } else { size - size })
        }

        fn $errors(a: &Mat<$T>) -> (f32, f32) {
            let n = a.nrows();
            let flat: Vec<$T> = (0..n).flat_map(|j| (0..n).map(move |i| a[(i, j)])).collect();
            let (mut values, mut vectors) = (vec![0.0f32; n], flat.clone());
            assert!(<$T>::eigh(&flat, n, &mut values, Some(&mut vectors)).unwrap());
            assert!(values.is_sorted());
            let v = Mat::<$T>::from_fn(n, n, |i, j| vectors[j * n + i]);
            let scaled = Mat::<$T>::from_fn(n, n, |i, j| v[(i, j)] * values[j]);
            let distance = (a * &v - scaled).norm_max() / a.norm_max();
            (distance, (v.adjoint() * &v - Mat::<$T>::identity(n, n)).norm_max())
        }
    };
}
checks!(gram, errors, f32, |re, _seed| re);
checks!(complex_gram, complex_errors, c32, |re, seed| c32::new(re, random(seed)));

#[test]
fn eigenvectors_of_large_matrices() {
    let mut seed = 1;
    for n in [127, 128, 129, 200, 256, 300, 300, 300] {
        let (distance, angle) = errors(&gram(n, &mut seed));
        assert!(distance < 1.2e-5 && angle < 2e-5, "{n} rows: {distance} {angle}");
        let (distance, angle) = complex_errors(&complex_gram(n, &mut seed));
        assert!(distance < 1.2e-5 && angle < 2e-5, "{n} complex rows: {distance} {angle}");
    }
}

#[test]
fn values_are_those_of_f64() {
    let mut seed = 7;
    for n in [1, 2, 40, 150, 300] {
        let a = gram(n, &mut seed);
        let flat: Vec<f32> = (0..n).flat_map(|j| (0..n).map(move |i| (i, j))).map(|at| a[at]).collect();
        let wide: Vec<f64> = flat.iter().map(|&x| f64::from(x)).collect();
        let (mut alone, mut with, mut vectors) = (vec![0.0; n], vec![0.0; n], flat.clone());
        let mut want = vec![0.0; n];
        assert!(
            f32::eigh(&flat, n, &mut alone, None).unwrap()
                && f32::eigh(&flat, n, &mut with, Some(&mut vectors)).unwrap()
        );
        assert!(f64::eigh(&wide, n, &mut want, None).unwrap());
        let error = |found: &[f32]| {
            let distance = found.iter().zip(&want).map(|(f, w)| (f64::from(*f) - w).abs());
            distance.fold(0.0, f64::max) / want[n - 1]
        };
        let (alone, with) = (error(&alone), error(&with));
        assert!(alone < 1e-6 && with < 1e-5, "{n} rows: {alone} {with}");
    }
}

/// Eigenvalues that are equal, nearly equal, and zero, in matrices that fall apart into blocks and that do not.
#[test]
fn crowded_eigenvalues_of_every_size_of_number() {
    let mut seed = 3;
    for n in [2usize, 25, 26, 41, 60, 130] {
        let direction: Vec<f32> = (0..n).map(|_| random(&mut seed)).collect();
        let length: f32 = direction.iter().map(|x| x * x).sum();
        let dense = gram(n, &mut seed);
        let equal = |i: usize, j: usize| if i == j { 1.0f32 } else { 0.0 };
        let kinds: [(&str, &dyn Fn(usize, usize) -> f32); 8] = [
            ("zero", &|_, _| 0.0),
            ("identity", &equal),
            ("ones", &|_, _| 1.0),
            ("reflection", &|i, j| equal(i, j) - 2.0 * direction[i] * direction[j] / length),
            ("of rank one", &|i, j| direction[i] * direction[j]),
            ("blocks", &|i, j| if i / 2 == j / 2 { dense[(i % 2, j % 2)] } else { 0.0 }),
            ("nearly equal", &|i, j| equal(i, j) * (1.0 + i as f32 * 1e-7)),
            ("graded", &|i, j| dense[(i, j)] * 0.5f32.powi((i + j) as i32 / 2)),
        ];
        for (name, element) in kinds {
            for scale in [1.0f32, 1e30, 1e-30] {
                let a = Mat::<f32>::from_fn(n, n, |i, j| element(i, j) * scale);
                // the same, turned: row i times iⁱ
                let turn = |k: usize| {
                    [c32::new(1.0, 0.0), c32::new(0.0, 1.0), c32::new(-1.0, 0.0), c32::new(0.0, -1.0)][k % 4]
                };
                let turned = Mat::<c32>::from_fn(n, n, |i, j| turn(i) * turn(j).conj() * a[(i, j)]);
                let bound = 1e-6 * n.max(6) as f32;
                for (distance, angle) in [errors(&a), complex_errors(&turned)] {
                    let distance = if name == "zero" { 0.0 } else { distance };
                    assert!(distance < bound && angle < 6e-6, "{name}, {n} rows, times {scale:e}: {distance} {angle}");
                }
            }
        }
    }
}

#[test]
fn vectors_of_values_that_lie_apart() {
    let mut seed = 5;
    for n in [26, 27, 33, 50, 64, 100] {
        let (distance, angle) = errors(&gram(n, &mut seed));
        assert!(distance < 3e-6 && angle < 3e-6, "{n} rows: {distance} {angle}");
        let (distance, angle) = complex_errors(&complex_gram(n, &mut seed));
        assert!(distance < 3e-6 && angle < 3e-6, "{n} complex rows: {distance} {angle}");
    }
}

#[test]
fn what_is_not_finite_has_none() {
    let n = 130;
    let mut a = vec![1.0f32; n * n];
    a[5 * n + 7] = f32::NAN;
    let mut vectors = a.clone();
    assert!(!f32::eigh(&a, n, &mut vec![0.0; n], Some(&mut vectors)).unwrap());
    // Only the lower triangle is read.
    a[5 * n + 7] = 1.0;
    a[7 * n + 5] = f32::NAN;
    assert!(f32::eigh(&a, n, &mut vec![0.0; n], Some(&mut vectors)).unwrap());
}
