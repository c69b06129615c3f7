//! Singular values and vectors of matrices of f32, by way of a bidiagonal form B in f64.
//!
//! Singular values are roots of the eigenvalues of Bᵀ B, which f64 keeps apart as far as f32 tells them. With B between zeros, as
//! [0 B; Bᵀ 0], they are eigenvalues of a tridiagonal matrix whose eigenvectors hold both singular vectors by turns; where the
//! values lie apart, these come one by one (`twisted.rs`), else all come from faer's solver, in f64: in f32 it loses digits. Source:
//! Golub and Van Loan, "Matrix Computations" (4th edition), section 8.6. Read next: `bidiagonal.rs`.

use crate::bidiagonal::{Kept, bidiagonal};
use crate::householder::{self, Side, reflect};
use crate::spectral::{all_finite, largest, moderating, signed, svd};
use crate::{ALONE, OutOfMemory, filled, rational, twisted};

/// How much taller than wide a matrix is that is made triangular first.
const TALL: f64 = 1.6;

/// `Element::svd` of matrices of f32.
pub(crate) fn svd_f32(
    a: &[f32],
    (rows, cols): (usize, usize),
    values: &mut [f32],
    vectors: Option<[(&mut [f32], usize); 2]>,
) -> Result<bool, OutOfMemory> {
    let a = &a[..rows * cols];
    if rows.min(cols) == 0 || !all_finite(a) {
        // Whole factors of an empty matrix are anything orthogonal.
        return if vectors.is_some() { svd(a, (rows, cols), values, vectors) } else { Ok(rows.min(cols) == 0) };
    }
    let form = Form::of(a, (rows, cols), vectors.is_some())?;
    let Some(found) = form.values() else { return Ok(false) };
    if let Some([(u, m), (v, k)]) = vectors {
        let sides = if rows >= cols { [(&mut *u, m), (&mut *v, k)] } else { [(&mut *v, k), (&mut *u, m)] };
        if !form.vectors(&found, sides)? {
            return widened(a, (rows, cols), values, [(u, m), (v, k)]);
        }
        u.chunks_exact_mut(rows).zip(v.chunks_exact_mut(cols)).take(values.len()).for_each(signed);
    }
    values.iter_mut().zip(found.iter().rev()).for_each(|(v, s)| *v = *s as f32 / form.scale);
    Ok(true)
}

/// `svd` in f64: in f32 faer's way loses up to three digits of some matrices whose values crowd together.
fn widened(
    a: &[f32],
    shape: (usize, usize),
    values: &mut [f32],
    [(u, m), (v, k)]: [(&mut [f32], usize); 2],
) -> Result<bool, OutOfMemory> {
    let mut x = filled(0.0f64, a.len())?;
    x.iter_mut().zip(a).for_each(|(x, &a)| *x = a.into());
    let (mut s, mut wide_u, mut wide_v) = (vec![0.0; values.len()], filled(0.0, u.len())?, filled(0.0, v.len())?);
    let done = svd(&x, shape, &mut s, Some([(&mut wide_u, m), (&mut wide_v, k)]))?;
    for (narrow, wide) in [(values, &s), (u, &wide_u), (v, &wide_v)] {
        narrow.iter_mut().zip(wide).for_each(|(x, &w)| *x = w as f32);
    }
    Ok(done)
}

/// The bidiagonal form of a matrix, or of its transpose, whichever has no fewer rows than columns, times a power of two.
struct Form {
    height: usize,
    n: usize,
    scale: f32,
    d: Vec<f64>,
    e: Vec<f64>,
    /// Reflections that made the matrix triangular first, if they did.
    before: Option<(Vec<f32>, Vec<f32>)>,
    /// Below the diagonal, the reflections from the left.
    packed: Vec<f32>,
    kept: Option<Kept<f32>>,
}

impl Form {
    fn of(a: &[f32], (rows, cols): (usize, usize), with_vectors: bool) -> Result<Form, OutOfMemory> {
        let (height, n) = (rows.max(cols), rows.min(cols));
        let mut packed = filled(0.0f32, height * n)?;
        if rows >= cols {
            packed.copy_from_slice(a);
        } else {
            for (i, row) in packed.chunks_exact_mut(height).enumerate() {
                row.iter_mut().zip(a[i..].iter().step_by(rows)).for_each(|(x, y)| *x = *y);
            }
        }
        let scale = moderating(largest(&packed));
        if scale != 1.0 {
            packed.iter_mut().for_each(|x| *x *= scale);
        }
        let (mut d, mut e, mut before) = (vec![0.0f32; n], vec![0.0f32; n], None);
        let mut kept = with_vectors.then(|| Kept::new(n)).transpose()?;
        let tall = height as f64 > TALL * n as f64;
        if tall {
            householder::qr(&mut packed, height, n, &mut d, ALONE);
            if with_vectors {
                let mut triangular = filled(0.0f32, height * n)?;
                triangular.copy_from_slice(&packed);
                before = Some((triangular, d.clone()));
            }
            for j in 0..n {
                packed.copy_within(j * height..=j * height + j, j * n);
                packed[j * n + j + 1..(j + 1) * n].fill(0.0);
            }
            packed.truncate(n * n);
        }
        bidiagonal(&mut packed, if tall { n } else { height }, &mut d, &mut e, kept.as_mut());
        let wide = |x: &[f32]| x.iter().map(|&x| x.into()).collect();
        Ok(Form { height, n, scale, d: wide(&d), e: wide(&e[..n - 1]), before, packed, kept })
    }

    /// Singular values of the form in ascending order, if the iteration converged.
    fn values(&self) -> Option<Vec<f64>> {
        let (d, e) = (&self.d, &self.e);
        let above = |i: usize| if i > 0 { e[i - 1] * e[i - 1] } else { 0.0 };
        let mut squares: Vec<f64> = (0..self.n).map(|i| d[i] * d[i] + above(i)).collect();
        let mut off: Vec<f64> = e.iter().zip(d).map(|(e, d)| d * e).collect();
        rational::eigenvalues(&mut squares, &mut off).then(|| squares.iter().map(|s| s.max(0.0).sqrt()).collect())
    }

    /// Writes the vectors of the tall side and of the other, each with its number of columns, if values lie apart.
    fn vectors(
        &self,
        values: &[f64],
        [(tall, width), (other, _)]: [(&mut [f32], usize); 2],
    ) -> Result<bool, OutOfMemory> {
        let (n, height) = (self.n, self.height);
        let Some(kept) = &self.kept else { return Ok(false) };
        let mut off = vec![0.0; 2 * n - 1];
        off.iter_mut().step_by(2).zip(&self.d).for_each(|(x, d)| *x = *d);
        off.iter_mut().skip(1).step_by(2).zip(&self.e).for_each(|(x, e)| *x = *e);
        let mut both = filled(0.0f32, 2 * n * n)?;
        if !twisted::mirrored(&off, values, &mut both) {
            return Ok(false);
        }
        let mut left = filled(0.0f32, n * n)?;
        let other = &mut other[..n * n];
        // The largest value comes first.
        for ((both, left), right) in
            both.chunks_exact(2 * n).rev().zip(left.chunks_exact_mut(n)).zip(other.chunks_exact_mut(n))
        {
            for (pair, (left, right)) in both.chunks_exact(2).zip(left.iter_mut().zip(right)) {
                (*right, *left) = (pair[0], pair[1]);
            }
        }
        reflect(&kept.right, &kept.right_taus, other, (n, n), Side::Left, false, ALONE);
        let (packed, taus) = match &self.before {
            Some((packed, taus)) => {
                reflect(&self.packed, &kept.left_taus, &mut left, (n, n), Side::Left, false, ALONE);
                (packed, taus)
            }
            None => (&self.packed, &kept.left_taus),
        };
        let tall = &mut tall[..height * width];
        tall.fill(0.0);
        for (j, column) in tall.chunks_exact_mut(height).enumerate() {
            match left.get(j * n..(j + 1) * n) {
                Some(left) => column[..n].copy_from_slice(left),
                None => column[j] = 1.0,
            }
        }
        reflect(packed, taus, tall, (height, width), Side::Left, false, ALONE);
        Ok(true)
    }
}
