//! Eigenvalues and singular values, by faer's solvers, but for eigenvectors of small Hermitian matrices (`implicit.rs`).

use crate::scalar::{Field, Real, Scalar};
use crate::{ALONE, OutOfMemory, bidiagonal, filled, householder, implicit, rational, schur, scratch};
use faer::complex::Complex;
use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::MemStack;
use faer::linalg::evd::{self, ComputeEigenvectors, SelfAdjointEvdParams, tridiag};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::linalg::svd::{self, ComputeSvdVectors, SvdParams};
use faer::traits::RealField;
use faer::{Auto, Conj, Mat, MatMut, MatRef, Par, Spec, c32};

fn all_finite<T: Field>(a: &[T]) -> bool {
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
            return Ok(implicit::eigh(a, n, values, vectors));
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

/// Rows from which on eigenvectors are found by divide and conquer.
const DIVIDED: usize = 128;
/// Rows that are left to iteration there.
const WHOLE: usize = 32;

/// What `holds` takes for rounding errors of f32: about twice those that come up; where digits are lost it finds 7e-6 to 1e-4.
const ROUNDING: f64 = 5e-6;

/// `Element::eigh` of matrices of f32. Divide and conquer, as faer does it in f32, loses up to three digits of some: their
/// eigenvectors are found again, by way of f64.
pub(crate) fn eigh_f32(
    a: &[f32],
    n: usize,
    values: &mut [f32],
    vectors: Option<&mut [f32]>,
) -> Result<bool, OutOfMemory> {
    let Some(vectors) = vectors else { return eigenvalues(a, n, values) };
    if !eigh(a, n, values, Some(vectors))? {
        return Ok(false);
    }
    if n < DIVIDED || holds(a, n, values, vectors) { Ok(true) } else { divided(a, n, values, vectors) }
}

/// `Element::eigh` of complex matrices of two f32, of which faer's way loses digits whenever it divides.
pub(crate) fn eigh_c32(
    a: &[c32],
    n: usize,
    values: &mut [f32],
    vectors: Option<&mut [c32]>,
) -> Result<bool, OutOfMemory> {
    match vectors {
        Some(vectors) if n >= DIVIDED => divided(a, n, values, vectors),
        Some(vectors) => eigh(a, n, values, Some(vectors)),
        None => eigenvalues(a, n, values),
    }
}

/// Eigenvalues alone: iteration on the tridiagonal form takes little of the time, and is done in f64.
fn eigenvalues<T: Field + Scalar<R = f32>>(a: &[T], n: usize, values: &mut [f32]) -> Result<bool, OutOfMemory> {
    if n < 2 {
        return eigh(a, n, values, None);
    }
    let Some((form, _)) = reduced(a, n)? else { return Ok(false) };
    let (mut found, mut off) = diagonals(&form);
    if !rational::eigenvalues(&mut found, &mut off) {
        return Ok(false);
    }
    values.iter_mut().zip(&found).for_each(|(v, w)| *v = *w as f32);
    Ok(true)
}

/// Whether A V = V Λ but for rounding, as a sum of V's columns with changing signs shows.
fn holds(a: &[f32], n: usize, values: &[f32], vectors: &[f32]) -> bool {
    let (mut y, mut want, mut found) = (vec![0.0f64; n], vec![0.0f64; n], vec![0.0f64; n]);
    let mut bits = 0x9e37_79b9_7f4a_7c15u64;
    for (column, &value) in vectors.chunks_exact(n).zip(values) {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let sign = if bits >> 63 == 0 { 1.0 } else { -1.0 };
        let value = sign * f64::from(value);
        for ((y, want), &v) in y.iter_mut().zip(&mut want).zip(column) {
            *y += sign * f64::from(v);
            *want += value * f64::from(v);
        }
    }
    for j in 0..n {
        let column = &a[j * n + j..(j + 1) * n];
        found[j] += f64::from(column[0]) * y[j];
        let mut dot = 0.0;
        for ((found, y_i), &x) in found[j + 1..].iter_mut().zip(&y[j + 1..]).zip(&column[1..]) {
            *found += f64::from(x) * y[j];
            dot += f64::from(x) * y_i;
        }
        found[j] += dot;
    }
    let distance: f64 = found.iter().zip(&want).map(|(f, w)| (f - w) * (f - w)).sum();
    let length: f64 = y.iter().map(|y| y * y).sum();
    let most = values.iter().fold(0.0, |m: f64, v| m.max(f64::from(v.abs())));
    distance <= ROUNDING * ROUNDING * most * most * length
}

/// The tridiagonal form of a matrix in the lower triangle, with the reflections below its subdiagonal and their factors;
/// nothing if an element is not finite.
fn reduced<T: Field>(a: &[T], n: usize) -> Result<Option<(Mat<T>, Mat<T>)>, OutOfMemory> {
    if !(0..n).all(|j| all_finite(&a[j * n + j..(j + 1) * n])) {
        return Ok(None);
    }
    let mut form = Mat::<T>::zeros(n, n);
    form.copy_from_triangular_lower(MatRef::from_column_major_slice(&a[..n * n], n, n));
    let mut factors = Mat::<T>::zeros(recommended_block_size::<T>(n, n), n - 1);
    let mut memory = scratch(tridiag::tridiag_in_place_scratch::<T>(n, Par::Seq, Spec::default()))?;
    let stack = MemStack::new(&mut memory);
    tridiag::tridiag_in_place(form.as_mut(), factors.as_mut(), Par::Seq, stack, Spec::default());
    Ok(Some((form, factors)))
}

/// Eigenvalues and eigenvectors by divide and conquer of the tridiagonal form in f64.
fn divided<T: Field + Scalar<R = f32>>(
    a: &[T],
    n: usize,
    values: &mut [f32],
    vectors: &mut [T],
) -> Result<bool, OutOfMemory> {
    let Some((form, factors)) = reduced(a, n)? else { return Ok(false) };
    let mut wide = Mat::<f64>::zeros(n, n);
    let Some(found) = tridiagonal(&diagonals(&form), wide.as_mut())? else { return Ok(false) };
    // The form's off-diagonal elements have signs or phases, which these eigenvectors leave out.
    let mut phase = T::ONE;
    for i in 0..n {
        if i > 0 {
            let next = form[(i, i - 1)] * phase;
            let size = next.modulus();
            phase = if size == 0.0 { T::ONE } else { T::of_parts(next.re() / size, next.im() / size) };
        }
        (0..n).for_each(|j| vectors[j * n + i] = phase * T::of_real(wide[(i, j)] as f32));
    }
    let block = factors.nrows();
    let needed = apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(n - 1, block, n);
    let mut memory = scratch(needed)?;
    apply_block_householder_sequence_on_the_left_in_place_with_conj(
        form.submatrix(1, 0, n - 1, n - 1),
        factors.as_ref(),
        Conj::No,
        MatMut::from_column_major_slice_mut(&mut vectors[..n * n], n, n).subrows_mut(1, n - 1),
        Par::Seq,
        MemStack::new(&mut memory),
    );
    values.iter_mut().zip(&found).for_each(|(v, w)| *v = *w as f32);
    Ok(true)
}

/// Diagonal and off-diagonal, in f64, of the real tridiagonal matrix with the sizes of a form's off-diagonal elements.
fn diagonals<T: Field + Scalar<R = f32>>(form: &Mat<T>) -> (Vec<f64>, Vec<f64>) {
    let n = form.nrows();
    let size = |x: T| f64::from(x.re()).with(f64::from(x.im()));
    let diagonal = (0..n).map(|i| f64::from(form[(i, i)].re())).collect();
    (diagonal, (0..n - 1).map(|i| size(form[(i + 1, i)])).collect())
}

/// Eigenvalues and eigenvectors in f64 of a real tridiagonal matrix.
fn tridiagonal(
    (diagonal, off): &(Vec<f64>, Vec<f64>),
    vectors: MatMut<'_, f64>,
) -> Result<Option<Vec<f64>>, OutOfMemory> {
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
        Some(vectors),
        Par::Seq,
        MemStack::new(&mut memory),
        spec,
    );
    Ok(done.is_ok().then_some(values))
}

/// `Element::svd` of matrices of f32.
pub(crate) fn svd_f32(
    a: &[f32],
    shape: (usize, usize),
    values: &mut [f32],
    vectors: Option<[(&mut [f32], usize); 2]>,
) -> Result<bool, OutOfMemory> {
    match vectors {
        None => singular_values(&a[..shape.0 * shape.1], shape, values),
        vectors => svd(a, shape, values, vectors),
    }
}

/// Largest elements of matrices in which no product of `bidiagonal.rs` overflows, and none that vanishes counts; what takes
/// others there.
const MODERATE: std::ops::Range<f32> = 1e-20..1e20;
const FAR: f32 = 1.267_650_6e30;

/// How much taller than wide a matrix is that is made triangular first.
const TALL: f64 = 1.6;

/// Singular values alone: of the bidiagonal form B they are roots of the eigenvalues of Bᵀ B, which f64 keeps apart as far
/// as f32 tells them.
fn singular_values(a: &[f32], (rows, cols): (usize, usize), values: &mut [f32]) -> Result<bool, OutOfMemory> {
    let (height, n) = (rows.max(cols), rows.min(cols));
    if n == 0 || !all_finite(a) {
        return Ok(n == 0);
    }
    let mut form = filled(0.0f32, height * n)?;
    if rows >= cols {
        form.copy_from_slice(a);
    } else {
        for (i, row) in form.chunks_exact_mut(height).enumerate() {
            row.iter_mut().zip(a[i..].iter().step_by(rows)).for_each(|(x, y)| *x = *y);
        }
    }
    let largest = form.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    // a power of two
    let scale = match largest {
        _ if largest == 0.0 || MODERATE.contains(&largest) => 1.0,
        _ if largest < MODERATE.start => FAR,
        _ => 1.0 / FAR,
    };
    if scale != 1.0 {
        form.iter_mut().for_each(|x| *x *= scale);
    }
    let (mut d, mut e) = (vec![0.0f32; n], vec![0.0f32; n]);
    if height as f64 > TALL * n as f64 {
        householder::qr(&mut form, height, n, &mut d, ALONE);
        for j in 0..n {
            form.copy_within(j * height..=j * height + j, j * n);
            form[j * n + j + 1..(j + 1) * n].fill(0.0);
        }
        bidiagonal::bidiagonal(&mut form[..n * n], n, &mut d, &mut e);
    } else {
        bidiagonal::bidiagonal(&mut form, height, &mut d, &mut e);
    }
    let square = |x: f32| f64::from(x) * f64::from(x);
    let above = |i: usize| if i > 0 { square(e[i - 1]) } else { 0.0 };
    let mut squares: Vec<f64> = (0..n).map(|i| square(d[i]) + above(i)).collect();
    let mut off: Vec<f64> = (0..n - 1).map(|i| f64::from(d[i]) * f64::from(e[i])).collect();
    if !rational::eigenvalues(&mut squares, &mut off) {
        return Ok(false);
    }
    values.iter_mut().zip(squares.iter().rev()).for_each(|(v, s)| *v = s.max(0.0).sqrt() as f32 / scale);
    Ok(true)
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
    if let Some([(u, _), (v, _)]) = vectors {
        u.chunks_exact_mut(rows.max(1)).zip(v.chunks_exact_mut(cols.max(1))).take(values.len()).for_each(signed);
    }
    Ok(done)
}

/// Gives a pair of singular vectors the sign for which the left one has a positive product with a fixed vector, which is
/// at right angles to no vector of simple numbers: the solver's own sign depends on rounding errors.
fn signed<T: Field>((u, v): (&mut [T], &mut [T])) {
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
