//! Eigenvalues and singular values, by faer's solvers, but for eigenvectors of Hermitian matrices that are small (`implicit.rs`)
//! or of single precision with eigenvalues that lie apart (`twisted.rs`), and singular vectors of the latter (`singular.rs`).

use crate::householder::Side;
use crate::scalar::{Field, Real, Scalar};
use crate::tridiagonal::tridiagonal;
use crate::{ALONE, OutOfMemory, filled, householder, implicit, rational, schur, scratch, twisted};
use faer::complex::Complex;
use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::MemStack;
use faer::linalg::evd::{self, ComputeEigenvectors, SelfAdjointEvdParams};
use faer::linalg::svd::{self, ComputeSvdVectors, SvdParams};
use faer::traits::RealField;
use faer::{Auto, MatMut, MatRef, Par, Spec};

pub(crate) fn all_finite<T: Field>(a: &[T]) -> bool {
    a.iter().all(|x| x.finite())
}

/// Whether squares of the largest element of the lower triangle neither overflow nor vanish.
fn is_moderate<T: Field>(a: &[T], n: usize) -> bool {
    let largest = (0..n)
        .flat_map(|j| &a[j * n + j..(j + 1) * n])
        .fold(T::R::ZERO, |most, x| if x.size() > most { x.size() } else { most });
    let bound = T::R::TINY.root() / T::R::EPSILON;
    largest > bound && largest < T::R::ONE / bound
}

/// Largest elements of matrices of single precision in which no product of two overflows, and none that vanishes counts; what
/// takes others there.
const MODERATE: std::ops::Range<f32> = 1e-20..1e20;
const FAR: f32 = 1.267_650_6e30;

/// The size of the largest element.
pub(crate) fn largest<T: Scalar<R = f32>>(a: &[T]) -> f32 {
    a.iter().fold(0.0, |most, x| if x.size() > most { x.size() } else { most })
}

/// The power of two that makes elements moderate, of which this is the size of the largest.
pub(crate) fn moderating(largest: f32) -> f32 {
    match largest {
        _ if largest == 0.0 || MODERATE.contains(&largest) => 1.0,
        _ if largest < MODERATE.start => FAR,
        _ => 1.0 / FAR,
    }
}

/// Sets `values` from the diagonal that a solver gave in the matrix's own dtype.
fn real_parts<T: Field>(values: &mut [T::R], diagonal: &[T]) {
    values.iter_mut().zip(diagonal).for_each(|(v, x)| *v = x.re());
}

/// `Element::eigh`.
pub(crate) fn eigh<T: Field>(
    a: &[T],
    n: usize,
    values: &mut [T::R],
    vectors: Option<&mut [T]>,
) -> Result<bool, OutOfMemory> {
    if n == 0 {
        return Ok(true);
    }
    let lower = |j: usize| &a[j * n + j..(j + 1) * n];
    if !(0..n).all(|j| all_finite(lower(j))) {
        return Ok(false);
    }
    let vectors = match vectors {
        Some(vectors) if n <= implicit::ROWS && is_moderate(a, n) => {
            return implicit::eigh(a, n, values, vectors);
        }
        vectors => vectors,
    };
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let compute = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let mut memory = scratch(evd::self_adjoint_evd_scratch::<T>(n, compute, Par::Seq, Spec::default()))?;
    let stack = MemStack::new(&mut memory);
    let mut diagonal = vec![T::ZERO; n];
    let u = vectors.map(|v| MatMut::from_column_major_slice_mut(&mut v[..n * n], n, n));
    let s = DiagMut::from_slice_mut(&mut diagonal);
    let done = evd::self_adjoint_evd(matrix, s, u, Par::Seq, stack, Spec::default()).is_ok();
    real_parts(values, &diagonal);
    Ok(done)
}

/// Rows from which on singular vectors of complex matrices are found by divide and conquer.
const DIVIDED: usize = 128;
/// Rows that divide and conquer leaves to iteration.
const WHOLE: usize = 32;

/// `Element::eigh` of matrices of single precision, by way of a tridiagonal form in f64: eigenvectors of eigenvalues that lie
/// apart come one by one (`twisted.rs`), others by divide and conquer, as faer does it.
pub(crate) fn hermitian<T: Field + Scalar<R = f32>>(
    a: &[T],
    n: usize,
    values: &mut [f32],
    vectors: Option<&mut [T]>,
) -> Result<bool, OutOfMemory> {
    if n < 2 || (vectors.is_some() && n <= implicit::ROWS && is_moderate(a, n)) {
        return eigh(a, n, values, vectors);
    }
    let lower = |j: usize| &a[j * n + j..(j + 1) * n];
    if !(0..n).all(|j| all_finite(lower(j))) {
        return Ok(false);
    }
    let scale = moderating((0..n).fold(0.0, |most: f32, j| most.max(largest(lower(j)))));
    // The reflections follow one that does nothing, so that each begins at its column's diagonal.
    let mut form = filled(T::ZERO, n * (n + 1))?;
    let (mut d, mut e, mut taus) = (vec![0.0f32; n], vec![0.0f32; n - 1], vec![T::ZERO; n]);
    for (j, column) in form[n..].chunks_exact_mut(n).enumerate() {
        column[j..].iter_mut().zip(lower(j)).for_each(|(x, &y)| *x = y * T::of_real(scale));
    }
    tridiagonal(&mut form[n..], n, true, &mut d, &mut e, &mut taus[1..])?;
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|&x| x.into()).collect() };
    let (d, e) = (wide(&d), wide(&e));
    let (mut found, mut off) = (d.clone(), e.clone());
    if !rational::eigenvalues(&mut found, &mut off) {
        return Ok(false);
    }
    if let Some(vectors) = vectors {
        let vectors = &mut vectors[..n * n];
        if !twisted::eigenvectors(&d, &e, &found, vectors) {
            let mut wide = filled(0.0f64, n * n)?;
            let Some(divided) = divided(&d, &e, &mut wide)? else { return Ok(false) };
            found = divided;
            vectors.iter_mut().zip(&wide).for_each(|(x, &w)| *x = T::of_real(w as f32));
        }
        householder::reflect(&form, &taus, vectors, (n, n), Side::Left, false, ALONE);
    }
    values.iter_mut().zip(&found).for_each(|(v, w)| *v = *w as f32 / scale);
    Ok(true)
}

/// Eigenvalues and eigenvectors in f64 of a real tridiagonal matrix, by divide and conquer.
fn divided(diagonal: &[f64], off: &[f64], vectors: &mut [f64]) -> Result<Option<Vec<f64>>, OutOfMemory> {
    let n = diagonal.len();
    let auto = <SelfAdjointEvdParams as Auto<f64>>::auto();
    let spec = Spec::from(SelfAdjointEvdParams { recursion_threshold: WHOLE, ..auto });
    let needed = evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, spec);
    let mut memory = scratch(needed)?;
    let mut values = vec![0.0; n];
    let done = evd::tridiagonal_self_adjoint_evd(
        DiagRef::from_slice(diagonal),
        DiagRef::from_slice(off),
        DiagMut::from_slice_mut(&mut values),
        Some(MatMut::from_column_major_slice_mut(vectors, n, n)),
        Par::Seq,
        MemStack::new(&mut memory),
        spec,
    );
    Ok(done.is_ok().then_some(values))
}

/// `Element::svd`.
pub(crate) fn svd<T: Field>(
    a: &[T],
    (rows, cols): (usize, usize),
    values: &mut [T::R],
    vectors: Option<[(&mut [T], usize); 2]>,
) -> Result<bool, OutOfMemory> {
    if !all_finite(&a[..rows * cols]) {
        return Ok(false);
    }
    let matrix = MatRef::from_column_major_slice(&a[..rows * cols], rows, cols);
    let kind = |columns: usize, all: usize| match columns {
        n if n == all => ComputeSvdVectors::Full,
        _ => ComputeSvdVectors::Thin,
    };
    let (u_kind, v_kind) = match &vectors {
        Some([u, v]) => (kind(u.1, rows), kind(v.1, cols)),
        None => (ComputeSvdVectors::No, ComputeSvdVectors::No),
    };
    // faer's own bound is 128: this one is quicker, and several times more accurate for real numbers.
    let divided = if size_of::<T>() == size_of::<T::R>() { WHOLE } else { DIVIDED };
    let auto = <SvdParams as Auto<T>>::auto();
    let spec = Spec::from(SvdParams { recursion_threshold: divided, ..auto });
    let mut memory = scratch(svd::svd_scratch::<T>(rows, cols, u_kind, v_kind, Par::Seq, spec))?;
    let stack = MemStack::new(&mut memory);
    let mut diagonal = vec![T::ZERO; rows.min(cols)];
    let mut vectors = vectors;
    let (u, v) = match &mut vectors {
        Some([(u, m), (v, n)]) => {
            let (m, n) = (*m, *n);
            // The solver leaves a block of whole factors of tall matrices as it finds it.
            u.fill(T::ZERO);
            v.fill(T::ZERO);
            let u = MatMut::from_column_major_slice_mut(&mut u[..rows * m], rows, m);
            (Some(u), Some(MatMut::from_column_major_slice_mut(&mut v[..cols * n], cols, n)))
        }
        None => (None, None),
    };
    let s = DiagMut::from_slice_mut(&mut diagonal);
    let done = svd::svd(matrix, s, u, v, Par::Seq, stack, spec).is_ok();
    real_parts(values, &diagonal);
    let mut none = [(&mut [][..], 1), (&mut [][..], 1)];
    let [(u, _), (v, _)] = vectors.as_mut().unwrap_or(&mut none);
    in_order(values, (&mut **u, rows), (&mut **v, cols));
    u.chunks_exact_mut(rows.max(1)).zip(v.chunks_exact_mut(cols.max(1))).take(values.len()).for_each(signed);
    Ok(done)
}

/// Puts singular values in descending order, and the columns of both vectors with them, where there are some: of equal values and
/// those near zero the solver may leave other ones behind them.
fn in_order<T: Field>(values: &mut [T::R], (u, rows): (&mut [T], usize), (v, cols): (&mut [T], usize)) {
    if values.is_sorted_by(|a, b| a >= b) {
        return;
    }
    for i in 0..values.len() {
        let largest = (i + 1..values.len()).fold(i, |k, j| if values[j] > values[k] { j } else { k });
        values.swap(i, largest);
        for (x, rows) in [(&mut *u, rows), (&mut *v, cols)].into_iter().filter(|(x, _)| largest > i && !x.is_empty()) {
            let (left, right) = x.split_at_mut(largest * rows);
            left[i * rows..(i + 1) * rows].swap_with_slice(&mut right[..rows]);
        }
    }
}

/// Gives a pair of singular vectors the sign for which the left one has a positive product with a fixed vector, which is
/// at right angles to no vector of simple numbers: the solver's own sign depends on rounding errors.
pub(crate) fn signed<T: Field>((u, v): (&mut [T], &mut [T])) {
    let fixed = |i: usize| 1.0 / (i as f64 + std::f64::consts::PI);
    let product = u.iter().enumerate().fold(T::R::ZERO, |sum, (i, x)| sum + x.re() * T::R::of_f64(fixed(i)));
    if product < T::R::ZERO {
        u.iter_mut().chain(v).for_each(|x| *x = -*x);
    }
}

/// Scales a vector to norm one, its largest component to a real number.
fn normalize<R: Real>(v: &mut [[R; 2]]) {
    let square = |x: &[R; 2]| x[0] * x[0] + x[1] * x[1];
    let total = v.iter().fold(R::ZERO, |s, x| s + square(x));
    let complex = v.iter().any(|x| x[1] != R::ZERO);
    let scale = R::ONE / total.root();
    v.iter_mut().for_each(|x| *x = [x[0] * scale, x[1] * scale]);
    if !complex {
        return;
    }
    let mut at = 0;
    (1..v.len()).for_each(|i| at = if square(&v[i]) > square(&v[at]) { i } else { at });
    let size = square(&v[at]).root();
    let [c, s] = [v[at][0] / size, v[at][1] / size];
    v.iter_mut().for_each(|x| *x = [x[0] * c + x[1] * s, x[1] * c - x[0] * s]);
    v[at][1] = R::ZERO;
}

fn wanted<T>(vectors: Option<&T>) -> ComputeEigenvectors {
    if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No }
}

/// Rows of real matrices up to which eigenvalues alone are found by our own iteration, which is quicker than faer's there.
const ITERATED: usize = 256;

/// `Element::eig` of a real matrix. A pair of conjugate eigenvalues shares two columns: real and imaginary parts.
pub(crate) fn eig_real<R: Real + RealField>(
    a: &[R],
    n: usize,
    values: &mut [[R; 2]],
    left: Option<&mut [[R; 2]]>,
    right: Option<&mut [[R; 2]]>,
) -> Result<bool, OutOfMemory> {
    if left.is_none() && right.is_none() && n <= ITERATED {
        let mut form = filled(R::ZERO, n * n)?;
        form.copy_from_slice(&a[..n * n]);
        return schur::eigenvalues(&mut form, n, values);
    }
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let (wl, wr) = (wanted(left.as_ref()), wanted(right.as_ref()));
    let mut memory = scratch(evd::evd_scratch::<R>(n, wl, wr, Par::Seq, Spec::default()))?;
    let (mut re, mut im) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    let room = |on: bool| filled(R::ZERO, if on { n * n } else { 0 });
    let (mut l, mut r) = (room(left.is_some())?, room(right.is_some())?);
    let done = evd::evd_real(
        matrix,
        DiagMut::from_slice_mut(&mut re),
        DiagMut::from_slice_mut(&mut im),
        left.is_some().then(|| MatMut::from_column_major_slice_mut(&mut l, n, n)),
        right.is_some().then(|| MatMut::from_column_major_slice_mut(&mut r, n, n)),
        Par::Seq,
        MemStack::new(&mut memory),
        Spec::default(),
    )
    .is_ok();
    values.iter_mut().zip(re.iter().zip(&im)).for_each(|(v, (re, im))| *v = [*re, *im]);
    for (out, packed) in [(left, l), (right, r)] {
        let Some(out) = out else { continue };
        let mut j = 0;
        while j < n {
            if im[j] == R::ZERO || j + 1 == n {
                (0..n).for_each(|i| out[j * n + i] = [packed[j * n + i], R::ZERO]);
                normalize(&mut out[j * n..(j + 1) * n]);
                j += 1;
                continue;
            }
            (0..n).for_each(|i| out[j * n + i] = [packed[j * n + i], packed[(j + 1) * n + i]]);
            normalize(&mut out[j * n..(j + 1) * n]);
            for i in 0..n {
                let [x, y] = out[j * n + i];
                out[(j + 1) * n + i] = [x, -y];
            }
            j += 2;
        }
    }
    Ok(done)
}

/// `Element::eig` of a complex matrix.
pub(crate) fn eig_complex<R: Real + RealField>(
    a: &[Complex<R>],
    n: usize,
    values: &mut [[R; 2]],
    left: Option<&mut [[R; 2]]>,
    right: Option<&mut [[R; 2]]>,
) -> Result<bool, OutOfMemory> {
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let (wl, wr) = (wanted(left.as_ref()), wanted(right.as_ref()));
    let mut memory = scratch(evd::evd_scratch::<Complex<R>>(n, wl, wr, Par::Seq, Spec::default()))?;
    let zero = Complex { re: R::ZERO, im: R::ZERO };
    let mut s = vec![zero; n];
    let room = |on: bool| filled(zero, if on { n * n } else { 0 });
    let (mut l, mut r) = (room(left.is_some())?, room(right.is_some())?);
    let done = evd::evd_cplx(
        matrix,
        DiagMut::from_slice_mut(&mut s),
        left.is_some().then(|| MatMut::from_column_major_slice_mut(&mut l, n, n)),
        right.is_some().then(|| MatMut::from_column_major_slice_mut(&mut r, n, n)),
        Par::Seq,
        MemStack::new(&mut memory),
        Spec::default(),
    )
    .is_ok();
    values.iter_mut().zip(&s).for_each(|(v, s)| *v = [s.re, s.im]);
    for (out, given) in [(left, l), (right, r)] {
        let Some(out) = out else { continue };
        out.iter_mut().zip(&given).for_each(|(o, x)| *o = [x.re, x.im]);
        out.chunks_exact_mut(n.max(1)).for_each(normalize);
    }
    Ok(done)
}
