//! Eigenvalues and singular values, by faer's solvers.

use crate::scalar::{Field, Real};
use faer::complex::Complex;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::svd::{self, ComputeSvdVectors, SvdParams};
use faer::traits::RealField;
use faer::{Auto, MatMut, MatRef, Par, Spec, c32, c64};

fn all_finite<T: Field>(a: &[T]) -> bool {
    a.iter().all(|x| x.finite())
}

/// Sets `values` from the diagonal that a solver gave in the matrix's own dtype.
fn real_parts<T: Field>(values: &mut [T::R], diagonal: &[T]) {
    values.iter_mut().zip(diagonal).for_each(|(v, x)| *v = x.re());
}

/// `Element::eigh`.
pub(crate) fn eigh<T: Field>(a: &[T], n: usize, values: &mut [T::R], vectors: Option<&mut [T]>) -> bool {
    if n == 0 {
        return true;
    }
    let lower = |j: usize| &a[j * n + j..(j + 1) * n];
    if !(0..n).all(|j| all_finite(lower(j))) {
        return false;
    }
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let compute = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    // Dividing smaller matrices would be quicker, but faer's conquering then loses up to three digits of some.
    let mut memory = MemBuffer::new(evd::self_adjoint_evd_scratch::<T>(n, compute, Par::Seq, Spec::default()));
    let stack = MemStack::new(&mut memory);
    let mut diagonal = vec![T::ZERO; n];
    let u = vectors.map(|v| MatMut::from_column_major_slice_mut(&mut v[..n * n], n, n));
    let s = DiagMut::from_slice_mut(&mut diagonal);
    let done = evd::self_adjoint_evd(matrix, s, u, Par::Seq, stack, Spec::default()).is_ok();
    real_parts(values, &diagonal);
    done
}

/// Rows from which on complex matrices are divided, which loses three digits of numbers of two f32.
const DIVIDED: usize = 128;

/// `Element::eigh` of complex numbers of two f32: large matrices are solved in f64.
pub(crate) fn eigh_c32(a: &[c32], n: usize, values: &mut [f32], vectors: Option<&mut [c32]>) -> bool {
    if n < DIVIDED {
        return eigh(a, n, values, vectors);
    }
    let wide: Vec<c64> = a[..n * n].iter().map(|x| c64::new(f64::from(x.re), f64::from(x.im))).collect();
    let mut wide_values = vec![0.0; n];
    let mut wide_vectors = vectors.as_ref().map(|_| vec![c64::new(0.0, 0.0); n * n]);
    let done = eigh(&wide, n, &mut wide_values, wide_vectors.as_deref_mut());
    values.iter_mut().zip(&wide_values).for_each(|(v, w)| *v = *w as f32);
    if let (Some(vectors), Some(wide)) = (vectors, wide_vectors) {
        vectors.iter_mut().zip(&wide).for_each(|(v, w)| *v = c32::new(w.re as f32, w.im as f32));
    }
    done
}

/// `Element::svd`.
pub(crate) fn svd<T: Field>(
    a: &[T],
    (rows, cols): (usize, usize),
    values: &mut [T::R],
    vectors: Option<[(&mut [T], usize); 2]>,
) -> bool {
    if !all_finite(&a[..rows * cols]) {
        return false;
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
    let divided = if size_of::<T>() == size_of::<T::R>() { 32 } else { DIVIDED };
    let auto = <SvdParams as Auto<T>>::auto();
    let spec = Spec::from(SvdParams { recursion_threshold: divided, ..auto });
    let mut memory = MemBuffer::new(svd::svd_scratch::<T>(rows, cols, u_kind, v_kind, Par::Seq, spec));
    let stack = MemStack::new(&mut memory);
    let mut diagonal = vec![T::ZERO; rows.min(cols)];
    let (u, v) = match vectors {
        Some([(u, m), (v, n)]) => {
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
    done
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

/// `Element::eig` of a real matrix. A pair of conjugate eigenvalues shares two columns: real and imaginary parts.
pub(crate) fn eig_real<R: Real + RealField>(
    a: &[R],
    n: usize,
    values: &mut [[R; 2]],
    left: Option<&mut [[R; 2]]>,
    right: Option<&mut [[R; 2]]>,
) -> bool {
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let (wl, wr) = (wanted(left.as_ref()), wanted(right.as_ref()));
    let mut memory = MemBuffer::new(evd::evd_scratch::<R>(n, wl, wr, Par::Seq, Spec::default()));
    let (mut re, mut im) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    let room = |on: bool| vec![R::ZERO; if on { n * n } else { 0 }];
    let (mut l, mut r) = (room(left.is_some()), room(right.is_some()));
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
    done
}

/// `Element::eig` of a complex matrix.
pub(crate) fn eig_complex<R: Real + RealField>(
    a: &[Complex<R>],
    n: usize,
    values: &mut [[R; 2]],
    left: Option<&mut [[R; 2]]>,
    right: Option<&mut [[R; 2]]>,
) -> bool {
    let matrix = MatRef::from_column_major_slice(&a[..n * n], n, n);
    let (wl, wr) = (wanted(left.as_ref()), wanted(right.as_ref()));
    let mut memory = MemBuffer::new(evd::evd_scratch::<Complex<R>>(n, wl, wr, Par::Seq, Spec::default()));
    let zero = Complex { re: R::ZERO, im: R::ZERO };
    let mut s = vec![zero; n];
    let room = |on: bool| vec![zero; if on { n * n } else { 0 }];
    let (mut l, mut r) = (room(left.is_some()), room(right.is_some()));
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
    done
}
