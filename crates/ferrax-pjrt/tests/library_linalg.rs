//! Matrix operations as expansions on the CPU engine, and on a plugin.
//!
//! Factorizations are compared with the CPU engine's where they are unique, and by what they multiply up to otherwise.
//! Distances are relative to the largest entry, in units of ε times the number of rows.

mod against;
mod engines;

use against::common::{self, Array, Rng};
use against::in_share;
use engines::Place;
use ferrax_base::{DType, Scalar};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{Kind, Type};

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

/// The dtypes that are tried: on a plugin, those of the share.
fn dtypes(place: &Place) -> impl Iterator<Item = DType> {
    let all = matches!(place, Place::Expanded);
    DTYPES.into_iter().enumerate().filter(move |&(k, _)| all || in_share(k)).map(|(_, d)| d)
}

fn epsilon(d: DType) -> f64 {
    if d.real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

// ---- matrices of complex doubles -----------------------------------------------------------------------------------

type C = [f64; 2];

#[derive(Clone, Debug)]
struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<C>,
}

impl Matrix {
    fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> C) -> Matrix {
        let data = (0..rows * cols).map(|k| f(k / cols.max(1), k % cols.max(1))).collect();
        Matrix { rows, cols, data }
    }

    fn at(&self, i: usize, j: usize) -> C {
        self.data[i * self.cols + j]
    }

    fn adjoint(&self) -> Matrix {
        Matrix::from_fn(self.cols, self.rows, |i, j| [self.at(j, i)[0], -self.at(j, i)[1]])
    }

    fn dot(&self, other: &Matrix) -> Matrix {
        assert_eq!(self.cols, other.rows);
        Matrix::from_fn(self.rows, other.cols, |i, j| {
            (0..self.cols).fold([0.0; 2], |s, k| {
                let (x, y) = (self.at(i, k), other.at(k, j));
                [s[0] + x[0] * y[0] - x[1] * y[1], s[1] + x[0] * y[1] + x[1] * y[0]]
            })
        })
    }

    fn identity(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| [f64::from(u8::from(i == j)), 0.0])
    }

    fn diagonal(values: &[C]) -> Matrix {
        Matrix::from_fn(values.len(), values.len(), |i, j| if i == j { values[i] } else { [0.0; 2] })
    }

    fn top(&self) -> f64 {
        self.data.iter().fold(0.0, |m: f64, x| m.max(x[0].abs()).max(x[1].abs()))
    }

    /// The largest difference from another, NaN if there is one.
    fn distance(&self, other: &Matrix) -> f64 {
        assert_eq!((self.rows, self.cols), (other.rows, other.cols));
        let parts = self.data.iter().zip(&other.data).flat_map(|(x, y)| [x[0] - y[0], x[1] - y[1]]);
        parts.fold(0.0, |m: f64, d| if d.is_nan() || m.is_nan() { f64::NAN } else { m.max(d.abs()) })
    }

    fn part(&self, rows: usize, cols: usize) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| self.at(i, j))
    }
}

/// The matrices of an array.
fn matrices(a: &Array) -> Vec<Matrix> {
    let r = a.ty.shape.len();
    let (rows, cols) = (a.ty.shape[r - 2], a.ty.shape[r - 1]);
    let all: Vec<C> = a.data.iter().map(|s| [s.to_f64(), s.imag()]).collect();
    let count: usize = a.ty.shape[..r - 2].iter().product();
    (0..count).map(|b| Matrix { rows, cols, data: all[b * rows * cols..(b + 1) * rows * cols].to_vec() }).collect()
}

/// The rows of an array.
fn vectors(a: &Array) -> Vec<Vec<C>> {
    let n = a.ty.shape[a.ty.shape.len() - 1];
    let count: usize = a.ty.shape[..a.ty.shape.len() - 1].iter().product();
    let all: Vec<C> = a.data.iter().map(|s| [s.to_f64(), s.imag()]).collect();
    (0..count).map(|b| all[b * n..(b + 1) * n].to_vec()).collect()
}

fn normal(rng: &mut Rng) -> f64 {
    (0..4).map(|_| rng.next() as f64 / u64::MAX as f64 - 0.5).sum::<f64>() * 1.7
}

fn random(rng: &mut Rng, d: DType, shape: &[usize]) -> Array {
    Array::from_fn(d, shape, |_| Scalar::from_complex(d, normal(rng), normal(rng)))
}

fn of_matrices(d: DType, shape: &[usize], all: &[Matrix]) -> Array {
    let data = all.iter().flat_map(|m| m.data.iter().map(|x| Scalar::from_complex(d, x[0], x[1]))).collect();
    Array::new(d, shape, data)
}

#[track_caller]
fn near(what: &str, got: &Matrix, want: &Matrix, d: DType, bound: f64) {
    let scale = want.top().max(f64::MIN_POSITIVE) * epsilon(d) * got.rows.max(4) as f64;
    let distance = got.distance(want) / scale;
    assert!(distance <= bound, "{what} of {d} {}x{}: {distance} units", got.rows, got.cols);
}

/// The same arrays but for rounding; NaN is NaN.
#[track_caller]
fn alike(what: &str, got: &[Array], want: &[Array], bound: f64) {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert_eq!(g.ty, w.ty, "{what}");
        let finite = w.data.iter().map(|s| s.to_f64().abs().max(s.imag().abs())).filter(|x| x.is_finite());
        let n = w.ty.shape.last().copied().unwrap_or(1).max(4) as f64;
        let scale = finite.fold(f64::MIN_POSITIVE, f64::max) * epsilon(w.ty.dtype) * n;
        for (k, (g, w)) in g.data.iter().zip(&w.data).enumerate() {
            for (g, w) in [(g.to_f64(), w.to_f64()), (g.imag(), w.imag())] {
                let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= bound * scale;
                assert!(same, "{what}, result {i} at {k}: got {g:e}, want {w:e}: {} units", (g - w).abs() / scale);
            }
        }
    }
}

fn both(place: &Place, op: LinalgOp, operands: &[&Array], results: &[Type]) -> (Vec<Array>, Vec<Array>) {
    let kind = Kind::Linalg(op);
    (place.node(&kind, operands, results), common::node(&kind, operands, results))
}

fn hermitian(rng: &mut Rng, d: DType, batch: usize, n: usize) -> Array {
    let a = random(rng, d, &[batch, n, n]);
    let all: Vec<Matrix> = matrices(&a)
        .iter()
        .map(|m| {
            let t = m.adjoint();
            Matrix::from_fn(n, n, |i, j| [m.at(i, j)[0] + t.at(i, j)[0], m.at(i, j)[1] + t.at(i, j)[1]])
        })
        .collect();
    of_matrices(d, &[batch, n, n], &all)
}

fn positive(rng: &mut Rng, d: DType, batch: usize, n: usize) -> Array {
    let all: Vec<Matrix> = matrices(&random(rng, d, &[batch, n, n + 2])).iter().map(|m| m.dot(&m.adjoint())).collect();
    of_matrices(d, &[batch, n, n], &all)
}

// ---- factorizations ------------------------------------------------------------------------------------------------

const INT: DType = DType::I32;

fn lu(place: &Place) {
    let mut rng = Rng(1);
    for d in dtypes(place) {
        for (rows, cols) in [(1, 1), (5, 5), (7, 4), (4, 7), (20, 20), (0, 3), (3, 0)] {
            let mut a = random(&mut rng, d, &[2, rows, cols]);
            if rows == 5 {
                // Singular: two columns of zeros.
                (0..5).for_each(|i| a.data[i * 5 + 2] = Scalar::zero(d));
            }
            let k = rows.min(cols);
            let results = [a.ty.clone(), Type::new(INT, &[2, k]), Type::new(INT, &[2, rows])];
            let (got, want) = both(place, LinalgOp::Lu, &[&a], &results);
            alike("lu", &got, &want, 8.0);
            let order = [Type::new(INT, &[2, rows])];
            let (got, want) = both(place, LinalgOp::PivotsToPermutation, &[&want[1]], &order);
            alike("permutation", &got, &want, 0.0);
        }
        for (transpose, conjugate) in [(false, false), (true, false), (true, true), (false, true)] {
            let a = random(&mut rng, d, &[2, 6, 6]);
            let b = random(&mut rng, d, &[2, 6, 3]);
            let results = [a.ty.clone(), Type::new(INT, &[2, 6]), Type::new(INT, &[2, 6])];
            let f = common::node(&Kind::Linalg(LinalgOp::Lu), &[&a], &results);
            let op = LinalgOp::LuSolve { transpose, conjugate };
            let (got, want) = both(place, op, &[&f[0], &f[2], &b], std::slice::from_ref(&b.ty));
            alike("lu solve", &got, &want, 200.0);
        }
    }
}

fn reflections(place: &Place) {
    let mut rng = Rng(2);
    for d in dtypes(place) {
        for (rows, cols) in [(1, 1), (5, 5), (7, 4), (4, 7), (20, 12), (0, 3), (3, 0)] {
            let mut a = random(&mut rng, d, &[2, rows, cols]);
            if rows == 7 {
                // A column that needs no reflection.
                (1..7).for_each(|i| a.data[i * 4] = Scalar::zero(d));
            }
            let k = rows.min(cols);
            let taus = Type::new(d, &[2, k]);
            let (got, want) = both(place, LinalgOp::Qr { pivoted: false }, &[&a], &[a.ty.clone(), taus.clone()]);
            alike("qr", &got, &want, 16.0);
            let (packed, factors) = (want[0].clone(), want[1].clone());
            let types = [a.ty.clone(), Type::new(INT, &[2, cols]), taus];
            let (got, want) = both(place, LinalgOp::Qr { pivoted: true }, &[&a], &types);
            alike("pivoted qr", &got, &want, 16.0);
            for width in [k, rows] {
                let v = of_matrices(
                    d,
                    &[2, rows, k],
                    &matrices(&packed).iter().map(|m| m.part(rows, k)).collect::<Vec<_>>(),
                );
                let q = [Type::new(d, &[2, rows, width])];
                let (got, want) = both(place, LinalgOp::HouseholderProduct, &[&v, &factors], &q);
                alike("product of reflections", &got, &want, 16.0);
                for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
                    let c = random(&mut rng, d, &if left { [2, rows, 3] } else { [2, 3, rows] });
                    let op = LinalgOp::Reflect { left, adjoint };
                    let (got, want) = both(place, op, &[&v, &factors, &c], std::slice::from_ref(&c.ty));
                    alike("reflect", &got, &want, 16.0);
                }
            }
        }
        for n in [1, 2, 3, 9] {
            let a = random(&mut rng, d, &[2, n, n]);
            let taus = Type::new(d, &[2, n - 1]);
            let (got, want) = both(place, LinalgOp::Hessenberg, &[&a], &[a.ty.clone(), taus.clone()]);
            alike("hessenberg", &got, &want, 32.0);
            for lower in [false, true] {
                let a = hermitian(&mut rng, d, 2, n);
                let (real, op) = (d.real(), LinalgOp::Tridiagonal { lower });
                let types = [a.ty.clone(), Type::new(real, &[2, n]), Type::new(real, &[2, n - 1]), taus.clone()];
                let (got, want) = both(place, op, &[&a], &types);
                alike("tridiagonal", &got, &want, 32.0);
            }
        }
    }
}

fn solves(place: &Place) {
    let mut rng = Rng(3);
    for d in dtypes(place) {
        for n in [1, 2, 7, 20] {
            let lines: [Array; 3] = std::array::from_fn(|_| random(&mut rng, d, &[2, n]));
            let b = random(&mut rng, d, &[2, n, 3]);
            let (got, want) = both(
                place,
                LinalgOp::TridiagonalSolve,
                &[&lines[0], &lines[1], &lines[2], &b],
                std::slice::from_ref(&b.ty),
            );
            alike("tridiagonal solve", &got, &want, 400.0);
            if !d.is_complex() {
                let (r, w) = (random(&mut rng, d, &[2, n, n]), random(&mut rng, d, &[2, n]));
                let (got, want) = both(place, LinalgOp::CholeskyUpdate, &[&r, &w], std::slice::from_ref(&r.ty));
                alike("cholesky update", &got, &want, 8.0);
            }
        }
    }
}

// ---- spectra -------------------------------------------------------------------------------------------------------

fn reals(v: &[C]) -> Vec<f64> {
    v.iter().map(|x| x[0]).collect()
}

fn eigh(place: &Place) {
    let mut rng = Rng(4);
    for d in dtypes(place) {
        for (n, lower) in [(1, true), (2, false), (3, true), (6, false), (17, true)] {
            {
                let a = hermitian(&mut rng, d, 3, n);
                let types = [a.ty.clone(), Type::new(d.real(), &[3, n])];
                let (got, want) = both(place, LinalgOp::Eigh { lower }, &[&a], &types);
                alike("eigenvalues", &got[1..], &want[1..], 8.0);
                for ((a, v), w) in matrices(&a).iter().zip(matrices(&got[0])).zip(vectors(&got[1])) {
                    near("eigenvectors", &v.adjoint().dot(&v), &Matrix::identity(n), d, 8.0);
                    near("eigh", &v.dot(&Matrix::diagonal(&w)).dot(&v.adjoint()), a, d, 16.0);
                    assert!(reals(&w).is_sorted(), "{w:?}");
                }
            }
        }
        // Equal eigenvalues, zeros, sizes near both ends, and what is not a number.
        let top = if d.real() == DType::F64 { 1e300 } else { 1e37 };
        for value in [0.0, 1.0, top, 1.0 / top] {
            let a = of_matrices(d, &[1, 4, 4], &[Matrix::diagonal(&[[value, 0.0]; 4])]);
            let types = [a.ty.clone(), Type::new(d.real(), &[1, 4])];
            let (got, want) = both(place, LinalgOp::Eigh { lower: true }, &[&a], &types);
            alike("eigh of a multiple of the identity", &got, &want, 4.0);
        }
        let mut a = hermitian(&mut rng, d, 2, 3);
        a.data[0] = Scalar::from_f64(d, f64::NAN);
        let types = [a.ty.clone(), Type::new(d.real(), &[2, 3])];
        let (got, want) = both(place, LinalgOp::Eigh { lower: true }, &[&a], &types);
        alike("eigenvalues beside NaN", &got[1..], &want[1..], 8.0);
    }
}

fn svd(place: &Place) {
    let mut rng = Rng(5);
    for d in dtypes(place) {
        for (rows, cols) in [(1, 1), (3, 3), (6, 4), (4, 6), (5, 1), (12, 11), (0, 3), (3, 0)] {
            let k = rows.min(cols);
            for whole in [false, true] {
                let mut a = random(&mut rng, d, &[2, rows, cols]);
                if rows == 6 {
                    // Of rank 3.
                    (0..6).for_each(|i| a.data[i * 4 + 1] = a.data[i * 4 + 3]);
                }
                let (wide, high) = if whole { (rows, cols) } else { (k, k) };
                let types =
                    [Type::new(d.real(), &[2, k]), Type::new(d, &[2, rows, wide]), Type::new(d, &[2, high, cols])];
                let (got, want) = both(place, LinalgOp::Svd { vectors: true }, &[&a], &types);
                alike("singular values", &got[..1], &want[..1], 8.0);
                let parts = matrices(&got[1]).into_iter().zip(matrices(&got[2])).zip(vectors(&got[0]));
                for (a, ((u, vh), s)) in matrices(&a).iter().zip(parts) {
                    near("left vectors", &u.adjoint().dot(&u), &Matrix::identity(wide), d, 8.0);
                    near("right vectors", &vh.dot(&vh.adjoint()), &Matrix::identity(high), d, 8.0);
                    let s = Matrix::diagonal(&s);
                    near("svd", &u.part(rows, k).dot(&s).dot(&vh.part(k, cols)), a, d, 16.0);
                }
                if k > 0 {
                    let (got, want) = both(place, LinalgOp::Svd { vectors: false }, &[&a], &types[..1]);
                    alike("singular values alone", &got, &want, 8.0);
                }
            }
        }
    }
}

/// Small singular values of a graded matrix are found to full accuracy.
fn graded_svd(place: &Place) {
    for d in [DType::F32, DType::F64] {
        let scales: [f64; 4] = if d == DType::F64 { [1.0, 1e-20, 1e-40, 1e-60] } else { [1.0, 1e-6, 1e-12, 1e-17] };
        let mut rng = Rng(6);
        let a = Array::from_fn(d, &[1, 4, 4], |at| Scalar::from_f64(d, normal(&mut rng) * scales[at[2]]));
        let s = &place.node(&Kind::Linalg(LinalgOp::Svd { vectors: false }), &[&a], &[Type::new(d, &[1, 4])])[0];
        // The columns' R has them on its diagonal, nearly: the values multiply up to the determinant.
        let types = [a.ty.clone(), Type::new(d, &[1, 4])];
        let qr = common::node(&Kind::Linalg(LinalgOp::Qr { pivoted: false }), &[&a], &types);
        let r: Vec<f64> = (0..4).map(|i| qr[0].data[i * 5].to_f64().abs()).collect();
        for (s, r) in s.data.iter().zip(r) {
            let quotient = s.to_f64() / r;
            assert!((0.2..5.0).contains(&quotient), "{d}: {s} where the triangle has {r}");
        }
    }
}

fn schur(place: &Place) {
    let mut rng = Rng(7);
    for d in dtypes(place) {
        for n in [1, 2, 3, 8, 15] {
            let mut a = random(&mut rng, d, &[2, n, n]);
            if n == 3 {
                // A rotation and a nilpotent matrix.
                let values =
                    [0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
                a = Array::floats(d, &[2, 3, 3], &values);
            }
            let types = [a.ty.clone(), a.ty.clone()];
            let got = place.node(&Kind::Linalg(LinalgOp::Schur { vectors: true }), &[&a], &types);
            for (a, (t, z)) in matrices(&a).iter().zip(matrices(&got[0]).iter().zip(matrices(&got[1]))) {
                near("schur vectors", &z.adjoint().dot(&z), &Matrix::identity(n), d, 16.0);
                near("schur", &z.dot(t).dot(&z.adjoint()), a, d, 32.0);
                let mut pairs = 0;
                for i in 0..n {
                    for j in 0..i {
                        let zero = t.at(i, j) == [0.0; 2];
                        assert!(zero || (i == j + 1 && !d.is_complex()), "{d}: {t:?}");
                        if !zero {
                            pairs += 1;
                            assert_eq!(t.at(i, i), t.at(j, j), "{d}: {t:?}");
                            assert!(t.at(i, j)[0] * t.at(j, i)[0] < 0.0, "{d}: {t:?}");
                            assert!(j == 0 || t.at(j, j - 1) == [0.0; 2], "{d}: {t:?}");
                        }
                    }
                }
                assert!(2 * pairs <= n);
            }
        }
    }
}

fn eig(place: &Place) {
    let mut rng = Rng(8);
    for d in dtypes(place) {
        let complex = d.to_complex();
        for n in [1, 2, 5, 12] {
            let a = random(&mut rng, d, &[2, n, n]);
            let types = [Type::new(complex, &[2, n]), Type::new(complex, &[2, n, n]), Type::new(complex, &[2, n, n])];
            let op = LinalgOp::Eig { left: true, right: true };
            let (got, want) = both(place, op, &[&a], &types);
            for (mut got, mut want) in vectors(&got[0]).into_iter().zip(vectors(&want[0])) {
                let order = |x: &C, y: &C| {
                    let key = |x: &C| [(x[0] * 1e3).round(), (x[1] * 1e3).round()];
                    key(x).partial_cmp(&key(y)).unwrap()
                };
                got.sort_by(order);
                want.sort_by(order);
                near("eigenvalues", &Matrix::diagonal(&got), &Matrix::diagonal(&want), d, 200.0);
            }
            let parts = vectors(&got[0]).into_iter().zip(matrices(&got[1]).into_iter().zip(matrices(&got[2])));
            for (a, (w, (l, r))) in matrices(&a).iter().zip(parts) {
                let w = Matrix::diagonal(&w);
                near("right eigenvectors", &a.dot(&r), &r.dot(&w), d, 64.0);
                near("left eigenvectors", &l.adjoint().dot(a), &w.dot(&l.adjoint()), d, 64.0);
                for v in [&l, &r] {
                    let lengths = v.adjoint().dot(v);
                    (0..n)
                        .for_each(|i| assert!((lengths.at(i, i)[0] - 1.0).abs() < 8.0 * epsilon(d) * n.max(4) as f64));
                }
                if !d.is_complex() {
                    let real = |i: usize| w.at(i, i)[1] == 0.0;
                    (0..n).for_each(|i| (0..n).for_each(|j| assert!(!real(j) || r.at(i, j)[1] == 0.0)));
                }
            }
        }
    }
}

macro_rules! places {
    ($($name:ident: $expanded:ident, $plugin:ident;)*) => {$(
        #[test]
        fn $expanded() {
            $name(&Place::Expanded);
        }

        #[test]
        #[ignore = "needs a plugin: make test-xla"]
        fn $plugin() {
            $name(&Place::plugin());
        }
    )*};
}
places! {
    lu: lu_is_expanded, lu_on_a_plugin;
    reflections: reflections_are_expanded, reflections_on_a_plugin;
    solves: solves_are_expanded, solves_on_a_plugin;
    eigh: eigh_is_expanded, eigh_on_a_plugin;
    svd: svd_is_expanded, svd_on_a_plugin;
    graded_svd: graded_svd_is_expanded, graded_svd_on_a_plugin;
    schur: schur_is_expanded, schur_on_a_plugin;
    eig: eig_is_expanded, eig_on_a_plugin;
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn cholesky_and_triangles_on_a_plugin() {
    let mut rng = Rng(9);
    let place = Place::plugin();
    for d in dtypes(&place) {
        for n in [1, 2, 5, 9, 40, 0] {
            let a = positive(&mut rng, d, 2, n);
            let (got, want) = both(&place, LinalgOp::Cholesky, &[&a], std::slice::from_ref(&a.ty));
            alike("cholesky", &got, &want, 8.0);
            for bits in 0..32 {
                let on = |k: usize| bits >> k & 1 == 1;
                let (left, lower, transpose, conjugate, unit) = (on(0), on(1), on(2), on(3), on(4));
                if n == 40 && bits % 5 != 0 {
                    continue;
                }
                let mut t = random(&mut rng, d, &[2, n, n]);
                (0..2 * n).for_each(|i| t.data[i / n * n * n + i % n * (n + 1)] = Scalar::from_complex(d, 3.0, 0.5));
                let b = random(&mut rng, d, &if left { [2, n, 3] } else { [2, 3, n] });
                let op = LinalgOp::TriangularSolve { left, lower, transpose, conjugate, unit };
                if unit && n > 9 {
                    continue;
                }
                let (got, want) = both(&place, op, &[&t, &b], std::slice::from_ref(&b.ty));
                alike(&format!("{op:?}"), &got, &want, 64.0);
            }
        }
        let mut a = positive(&mut rng, d, 2, 4);
        a.data[5] = Scalar::from_f64(d, -1.0);
        let (got, want) = both(&place, LinalgOp::Cholesky, &[&a], std::slice::from_ref(&a.ty));
        alike("cholesky of what is not positive", &got, &want, 8.0);
    }
}
