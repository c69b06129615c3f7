//! Singular vectors of matrices of f32: products that give the matrix, and vectors at right angles.

use faer::Mat;
use ferrax_linalg::Element;

fn random(seed: &mut u64) -> f32 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    ((*seed >> 40) as f32) / (1u64 << 23) as f32 - 1.0
}

/// Checks thin factors, or whole ones, of a matrix.
fn check(name: &str, a: &Mat<f32>, whole: bool) {
    let (rows, cols) = a.shape();
    let flat: Vec<f32> = (0..cols).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|at| a[at]).collect();
    let n = rows.min(cols);
    let (m, k) = if whole { (rows, cols) } else { (n, n) };
    let (mut values, mut u, mut v) = (vec![0.0; n], vec![7.0; rows * m], vec![7.0; cols * k]);
    assert!(f32::svd(&flat, (rows, cols), &mut values, Some([(&mut u, m), (&mut v, k)])).unwrap(), "{name}");
    let mut alone = values.clone();
    assert!(f32::svd(&flat, (rows, cols), &mut alone, None).unwrap(), "{name}");
    let most = values.first().copied().unwrap_or(0.0);
    assert!(values.is_sorted_by(|a, b| a >= b), "{name}: {values:?}");
    let apart = values.iter().zip(&alone).fold(0.0f32, |most, (a, b)| most.max((a - b).abs()));
    let u = Mat::<f64>::from_fn(rows, m, |i, j| u[j * rows + i].into());
    let v = Mat::<f64>::from_fn(cols, k, |i, j| v[j * cols + i].into());
    let unit = f64::from(if most > 0.0 { most } else { 1.0 });
    let wide = Mat::<f64>::from_fn(rows, cols, |i, j| f64::from(a[(i, j)]) / unit);
    let product =
        &u * Mat::<f64>::from_fn(m, k, |i, j| if i == j { f64::from(values[i]) / unit } else { 0.0 }) * v.transpose();
    let distance = (product - wide).norm_max();
    let angle = |q: &Mat<f64>| (q.transpose() * q - Mat::<f64>::identity(q.ncols(), q.ncols())).norm_max();
    let bound = 2e-6 + 4e-8 * rows.max(cols) as f64;
    let found = (distance, angle(&u), angle(&v), f64::from(apart) / unit);
    assert!(
        distance < bound && found.1 < bound && found.2 < bound && found.3 < bound,
        "{name}, {rows} × {cols}, whole {whole}: {found:?} of {bound}"
    );
}

const SHAPES: [(usize, usize); 17] = [
    (1, 1),
    (2, 2),
    (3, 2),
    (5, 5),
    (7, 20),
    (20, 7),
    (16, 16),
    (33, 33),
    (40, 38),
    (38, 40),
    (64, 64),
    (100, 100),
    (129, 127),
    (200, 60),
    (60, 200),
    (300, 3),
    (150, 150),
];

#[test]
fn random_matrices() {
    let mut seed = 11;
    for (rows, cols) in SHAPES {
        for scale in [1.0f32, 1e30, 1e-30] {
            let a = Mat::<f32>::from_fn(rows, cols, |_, _| random(&mut seed) * scale);
            [false, true].into_iter().for_each(|whole| check("random", &a, whole));
        }
    }
}

#[test]
fn equal_values_small_ones_and_zeros() {
    let mut seed = 13;
    for (rows, cols) in SHAPES {
        let x: Vec<f32> = (0..rows.max(cols)).map(|_| random(&mut seed)).collect();
        let dense = Mat::<f32>::from_fn(rows, cols, |_, _| random(&mut seed));
        let kinds: [(&str, &dyn Fn(usize, usize) -> f32); 8] = [
            ("zero", &|_, _| 0.0),
            ("identity", &|i, j| f32::from(i == j)),
            ("ones", &|_, _| 1.0),
            ("of rank one", &|i, j| x[i] * x[j]),
            ("of rank two", &|i, j| x[i] * x[j] + ((i * j) % 2) as f32),
            ("graded", &|i, j| dense[(i, j)] * 0.5f32.powi(j as i32)),
            ("nearly equal", &|i, j| f32::from(i == j) * (1.0 + i as f32 * 1e-7)),
            ("a zero column", &|i, j| if j == cols / 2 { 0.0 } else { dense[(i, j)] }),
        ];
        for (name, element) in kinds {
            let a = Mat::<f32>::from_fn(rows, cols, element);
            [false, true].into_iter().for_each(|whole| check(name, &a, whole));
        }
    }
}
