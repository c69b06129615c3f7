//! Fourier transforms beside the sums of their definition, whatever the order of tasks.

use ferrax_linalg::fft::{Fourier, backward, complex, forward};
use ferrax_linalg::{ALONE, Complex, Share};

type Z = Complex<f64>;

fn numbers(n: usize) -> Vec<Z> {
    (0..n).map(|i| Z::new((1.3 * i as f64).sin(), (2.1 * i as f64 + 1.0).cos())).collect()
}

/// The sums of the definition.
fn naive(x: &[Z], inverse: bool) -> Vec<Z> {
    let (n, sign) = (x.len(), if inverse { 1.0 } else { -1.0 });
    let term = |i: usize, k: usize| {
        let (sin, cos) = (sign * std::f64::consts::TAU * (i * k % n) as f64 / n as f64).sin_cos();
        x[i] * Z::new(cos, sin)
    };
    (0..n).map(|k| (0..n).fold(Z::new(0.0, 0.0), |sum, i| sum + term(i, k))).collect()
}

fn near(a: Z, b: Z) -> bool {
    (a.re - b.re).abs() + (a.im - b.im).abs() < 1e-10
}

/// Runs tasks from the last to the first: none may need another.
const BACKWARDS: Share<'static> = &|_, tasks, task| (0..tasks).rev().for_each(task);

#[test]
fn complex_ones_are_the_sums() {
    for (outer, n, inner) in [(1, 1, 1), (3, 8, 1), (2, 97, 1), (2, 6, 5), (1, 53, 35)] {
        for inverse in [false, true] {
            let plan = f64::complex_plan(n, inverse);
            let x = numbers(outer * n * inner);
            let mut out = vec![Z::new(0.0, 0.0); x.len()];
            complex(&plan, Some(&x), &mut out, (outer, n, inner), 0.5, ALONE);
            let mut same = x.clone();
            complex(&plan, None, &mut same, (outer, n, inner), 0.5, BACKWARDS);
            assert_eq!(out, same, "in place, in any order");
            for t in 0..outer * inner {
                let at = |i: usize| (t / inner * n + i) * inner + t % inner;
                let want = naive(&(0..n).map(|i| x[at(i)]).collect::<Vec<_>>(), inverse);
                assert!((0..n).all(|i| near(out[at(i)], want[i] * 0.5)), "({outer}, {n}, {inner})");
            }
        }
    }
}

#[test]
fn real_ones_are_half_of_the_sums_and_come_back() {
    for (count, n) in [(1, 1), (3, 2), (2, 9), (40, 16), (2, 101)] {
        let (x, half) = (numbers(count * n).iter().map(|z| z.re).collect::<Vec<_>>(), n / 2 + 1);
        let mut z = vec![Z::new(0.0, 0.0); count * half];
        forward(&f64::forward_plan(n), &x, &mut z, ALONE);
        for (row, z) in x.chunks_exact(n).zip(z.chunks_exact(half)) {
            let want = naive(&row.iter().map(|&v| Z::new(v, 0.0)).collect::<Vec<_>>(), false);
            assert!(z.iter().zip(&want).all(|(a, b)| near(*a, *b)), "{n}");
        }
        // Imaginary parts of real sums are of no account.
        z.chunks_exact_mut(half).for_each(|row| row[0].im = 5.0);
        let mut back = vec![0.0; x.len()];
        backward(&f64::backward_plan(n), &z, &mut back, 1.0 / n as f64, BACKWARDS);
        assert!(back.iter().zip(&x).all(|(a, b)| (a - b).abs() < 1e-12), "{n}");
    }
}
