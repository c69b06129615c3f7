//! Householder reflections: QR with and without pivoting, Hessenberg forms, products of reflections.
//!
//! A reflection is H = I - τ v vᴴ with v₀ = 1, made so that Hᴴ x = β e₀ with β real: LAPACK's `larfg`. Products of
//! several are I - V T Vᴴ with an upper triangular T (Schreiber and Van Loan, "A storage-efficient WY representation
//! for products of Householder transformations", 1989), and are applied to fixed chunks of columns or rows.

use crate::scalar::{Field, Real, Scalar};
use crate::{Share, Shared};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatMut, MatRef, Par};

/// The side from which a matrix is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Q C.
    Left,
    /// C Q.
    Right,
}

/// Reflections of a block, and columns or rows of a chunk.
const BLOCK: usize = 32;
const CHUNK: usize = 128;

/// Elements of reflections up to which they are applied one by one: blocks of them take memory.
const FEW: usize = 1 << 10;

/// Columns that a pass takes at once, and rows of them that vectors hold.
pub(crate) const TOGETHER: usize = 4;
pub(crate) const LANES: usize = 8;

/// Sums that run side by side, so that vectors hold them.
const SUMS: usize = 16;

/// The sum of terms of two slices of one length: that of element i joins sum i % `SUMS`, then halves are added up.
#[inline(always)]
pub(crate) fn sum<T: Scalar, S: Scalar>(x: &[T], y: &[T], term: impl Fn(T, T) -> S) -> S {
    if x.len() < SUMS {
        return x.iter().zip(y).fold(S::ZERO, |s, (&x, &y)| s + term(x, y));
    }
    let mut sums = [S::ZERO; SUMS];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<SUMS>(), y.as_chunks::<SUMS>());
    for (x, y) in x.iter().zip(y) {
        (0..SUMS).for_each(|i| sums[i] += term(x[i], y[i]));
    }
    sums.iter_mut().zip(x_rest.iter().zip(y_rest)).for_each(|(s, (&x, &y))| *s += term(x, y));
    let mut width = SUMS / 2;
    while width > 0 {
        (0..width).for_each(|i| sums[i] += sums[i + width]);
        width /= 2;
    }
    sums[0]
}

#[inline(always)]
fn norm<T: Field>(x: &[T]) -> T::R {
    let plain = sum(x, x, |v, _| v.square());
    let root = plain.root();
    // Squares that vanish or overflow are taken again, scaled.
    if root.is_ordinary()
        && (root * root).is_ordinary()
        && root * root > T::R::ZERO
        && T::R::ONE / plain < T::R::ONE / T::R::ZERO
    {
        return root;
    }
    scaled_norm(x, plain)
}

/// The norm of what has a sum of squares that vanishes, overflows or is not a number.
#[cold]
fn scaled_norm<T: Field>(x: &[T], plain: T::R) -> T::R {
    let top = x.iter().fold(T::R::ZERO, |m, v| if v.size() > m { v.size() } else { m });
    if top == T::R::ZERO || !top.is_ordinary() {
        return if plain.partial_cmp(&plain).is_none() { plain } else { top };
    }
    let scaled = x.iter().fold(T::R::ZERO, |s, v| s + T::of_parts(v.re() / top, v.im() / top).square());
    top * scaled.root()
}

/// The reflection of (head, tail): the head becomes β, the tail becomes v without its first element. Gives τ.
#[inline(always)]
pub(crate) fn reflection<T: Field>(head: &mut T, tail: &mut [T]) -> T {
    let rest = norm(tail);
    let alpha = *head;
    if rest == T::R::ZERO && alpha.im() == T::R::ZERO {
        return T::ZERO;
    }
    let beta = -alpha.modulus().with(rest).signed_as(alpha.re());
    if let Some(factor) = moderating::<T>(beta.magnitude()) {
        return scaled_reflection(head, tail, factor);
    }
    let tau = T::of_parts((beta - alpha.re()) / beta, -alpha.im() / beta);
    let difference = alpha - T::of_real(beta);
    tail.iter_mut().for_each(|x| *x /= difference);
    *head = T::of_real(beta);
    tau
}

/// The power of two by which numbers with a norm of this size are multiplied first: a subnormal norm would lack digits, and
/// squares that quotients of complex numbers take overflow or vanish.
#[inline(always)]
fn moderating<T: Field>(size: T::R) -> Option<T::R> {
    let (tiny, eps) = (T::R::TINY, T::R::EPSILON);
    if size_of::<T>() == size_of::<T::R>() {
        return (size < tiny / eps).then(|| eps / tiny);
    }
    let root = tiny.root();
    match size {
        _ if size < root / eps => Some(T::R::ONE / root),
        _ if size > eps / root && size.is_ordinary() => Some(root),
        _ => None,
    }
}

/// `reflection` of numbers times a power of two.
#[cold]
fn scaled_reflection<T: Field>(head: &mut T, tail: &mut [T], factor: T::R) -> T {
    let scale = T::of_real(factor);
    *head *= scale;
    tail.iter_mut().for_each(|x| *x *= scale);
    let tau = reflection(head, tail);
    *head = T::of_real(head.re() / factor);
    tau
}

/// c -= factor (vᴴ c) v with v₀ = 1; `v` holds the others.
#[inline(always)]
pub(crate) fn reflect_column<T: Field>(v: &[T], factor: T, c: &mut [T]) {
    let (head, tail) = c.split_at_mut(1);
    let dot = head[0] + sum(v, tail, |v, c| v.conjugate() * c);
    let w = factor * dot;
    head[0] -= w;
    v.iter().zip(tail).for_each(|(v, c)| *c -= w * *v);
}

/// Columns from row `k` on, by vectors, and what is left of each.
pub(crate) type Columns<'a, T, const N: usize> = [(&'a mut [[T; LANES]], &'a mut [T]); N];

#[inline(always)]
pub(crate) fn split<T, const N: usize>(columns: &mut [T], rows: usize, k: usize) -> Columns<'_, T, N> {
    let mut rest = columns.chunks_exact_mut(rows);
    std::array::from_fn(|_| rest.next().map_or(&mut [][..], |c| &mut c[k..]).as_chunks_mut())
}

/// Applies `reflect_column` to columns of `rows` elements, from row `k` on.
#[inline(always)]
fn reflect_columns<T: Field>(v: &[T], factor: T, columns: &mut [T], (rows, k): (usize, usize)) {
    let mut far = columns.chunks_exact_mut(TOGETHER * rows);
    for columns in &mut far {
        reflect_some::<T, TOGETHER>(v, factor, columns, (rows, k));
    }
    for column in far.into_remainder().chunks_exact_mut(rows) {
        reflect_some::<T, 1>(v, factor, column, (rows, k));
    }
}

#[inline(always)]
fn reflect_some<T: Field, const N: usize>(v: &[T], factor: T, columns: &mut [T], (rows, k): (usize, usize)) {
    let mut w: [T; N] = std::array::from_fn(|n| columns[n * rows + k]);
    let c: Columns<'_, T, N> = split(columns, rows, k + 1);
    let (v, v_rest) = v.as_chunks::<LANES>();
    let mut sums = [[T::ZERO; LANES]; N];
    for (at, &v) in v.iter().enumerate() {
        for n in 0..N {
            for i in 0..LANES {
                sums[n][i] += v[i].conjugate() * c[n].0[at][i];
            }
        }
    }
    for n in 0..N {
        for (i, v) in v_rest.iter().enumerate() {
            sums[n][i] += v.conjugate() * c[n].1[i];
        }
        w[n] = factor * sums[n].iter().fold(w[n], |s, &x| s + x);
    }
    for (at, &v) in v.iter().enumerate() {
        for n in 0..N {
            // By value: what is behind references could overlap, as far as the compiler knows.
            let mut x = c[n].0[at];
            for i in 0..LANES {
                x[i] -= w[n] * v[i];
            }
            c[n].0[at] = x;
        }
    }
    for n in 0..N {
        for (x, &v) in c[n].1.iter_mut().zip(v_rest) {
            *x -= w[n] * v;
        }
    }
    (0..N).for_each(|n| columns[n * rows + k] -= w[n]);
}

/// Compiles a function a second time with wider vectors, and calls the one that the machine has. The order of sums is
/// that of the source, so both give the same bits.
macro_rules! wide {
    ($(#[$doc:meta])* $vis:vis fn $name:ident<T: Field>($($arg:ident: $A:ty),*) = $body:ident) => {
        $(#[$doc])*
        $vis fn $name<T: Field>($($arg: $A),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide<T: Field>($($arg: $A),*) {
                    $body($($arg),*);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the machine has the instruction set.
                    return unsafe { wide($($arg),*) };
                }
            }
            $body($($arg),*);
        }
    };
}
pub(crate) use wide;

wide! {
    /// Factors the `width` columns from `k` on, and applies their reflections to each other.
    fn panel<T: Field>(a: &mut [T], rows: usize, k: usize, width: usize, taus: &mut [T]) = panel_body
}

#[inline(always)]
fn panel_body<T: Field>(a: &mut [T], rows: usize, k: usize, width: usize, taus: &mut [T]) {
    for j in k..k + width {
        let (left, right) = a.split_at_mut((j + 1) * rows);
        let own = &mut left[j * rows + j..];
        let (head, tail) = own.split_at_mut(1);
        let tau = reflection(&mut head[0], tail);
        taus[j] = tau;
        if tau != T::ZERO {
            reflect_columns(tail, tau.conjugate(), &mut right[..(k + width - j - 1) * rows], (rows, j));
        }
    }
}

/// V and T of the reflections `k..k + taus.len()` of a packed matrix.
fn block<T: Field>(packed: &[T], rows: usize, k: usize, taus: &[T]) -> (Mat<T>, Mat<T>) {
    let (height, width) = (rows - k, taus.len());
    let mut v = Mat::<T>::zeros(height, width);
    for j in 0..width {
        let column = &mut v.col_as_slice_mut(j)[j..];
        column[0] = T::ONE;
        column[1..].copy_from_slice(&packed[(k + j) * rows + k + j + 1..(k + j + 1) * rows]);
    }
    let mut gram = Mat::<T>::zeros(width, width);
    matmul(gram.as_mut(), Accum::Replace, v.as_ref().adjoint(), v.as_ref(), T::ONE, Par::Seq);
    let mut t = Mat::<T>::zeros(width, width);
    let mut sums = vec![T::ZERO; width];
    for j in 0..width {
        sums.fill(T::ZERO);
        for l in 0..j {
            let factor = gram[(l, j)];
            sums[..=l].iter_mut().zip(t.col_as_slice(l)).for_each(|(s, &t)| *s += t * factor);
        }
        t.col_as_slice_mut(j)[..j].iter_mut().zip(&sums).for_each(|(t, &s)| *t = -taus[j] * s);
        t[(j, j)] = taus[j];
    }
    (v, t)
}

/// C -= V op(T) Vᴴ C.
fn apply_left<T: Field>(v: MatRef<'_, T>, t: MatRef<'_, T>, adjoint: bool, c: MatMut<'_, T>) {
    let mut w = Mat::<T>::zeros(v.ncols(), c.ncols());
    matmul(w.as_mut(), Accum::Replace, v.adjoint(), c.as_ref(), T::ONE, Par::Seq);
    let mut tw = Mat::<T>::zeros(v.ncols(), c.ncols());
    if adjoint {
        matmul(tw.as_mut(), Accum::Replace, t.adjoint(), w.as_ref(), T::ONE, Par::Seq);
    } else {
        matmul(tw.as_mut(), Accum::Replace, t, w.as_ref(), T::ONE, Par::Seq);
    }
    matmul(c, Accum::Add, v, tw.as_ref(), -T::ONE, Par::Seq);
}

/// C -= C V op(T) Vᴴ.
fn apply_right<T: Field>(v: MatRef<'_, T>, t: MatRef<'_, T>, adjoint: bool, c: MatMut<'_, T>) {
    let mut w = Mat::<T>::zeros(c.nrows(), v.ncols());
    matmul(w.as_mut(), Accum::Replace, c.as_ref(), v, T::ONE, Par::Seq);
    let mut wt = Mat::<T>::zeros(c.nrows(), v.ncols());
    if adjoint {
        matmul(wt.as_mut(), Accum::Replace, w.as_ref(), t.adjoint(), T::ONE, Par::Seq);
    } else {
        matmul(wt.as_mut(), Accum::Replace, w.as_ref(), t, T::ONE, Par::Seq);
    }
    matmul(c, Accum::Add, wt.as_ref(), v.adjoint(), -T::ONE, Par::Seq);
}

/// `Element::qr`.
pub(crate) fn qr<T: Field>(a: &mut [T], rows: usize, cols: usize, taus: &mut [T], share: Share<'_>) {
    let a = &mut a[..rows * cols];
    let steps = rows.min(cols);
    for k in (0..steps).step_by(BLOCK) {
        let width = BLOCK.min(steps - k);
        panel(a, rows, k, width, taus);
        let right = cols - k - width;
        if right == 0 {
            continue;
        }
        let (v, t) = block(a, rows, k, &taus[k..k + width]);
        let p = Shared(a.as_mut_ptr());
        share(((rows - k) * right * width / 4) as u64, right.div_ceil(CHUNK), &|i| {
            let c = k + width + i * CHUNK;
            // SAFETY: chunks of columns are disjoint.
            let part = unsafe { p.matrix(c * rows + k, rows - k, CHUNK.min(cols - c), rows) };
            apply_left(v.as_ref(), t.as_ref(), true, part);
        });
    }
}

wide! {
    /// `Element::qr_pivoted`: the column with the largest remaining norm comes next (LAPACK's `geqp3`).
    pub(crate) fn qr_pivoted<T: Field>(a: &mut [T], rows: usize, cols: usize, order: &mut [i32], taus: &mut [T])
        = qr_pivoted_body
}

#[inline(always)]
fn qr_pivoted_body<T: Field>(a: &mut [T], rows: usize, cols: usize, order: &mut [i32], taus: &mut [T]) {
    let a = &mut a[..rows * cols];
    order.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
    for k in 0..rows.min(cols) {
        let mut at = k;
        let mut best = norm(&a[k * rows + k..(k + 1) * rows]);
        for c in k + 1..cols {
            let size = norm(&a[c * rows + k..(c + 1) * rows]);
            if size > best {
                (at, best) = (c, size);
            }
        }
        if at != k {
            order.swap(k, at);
            let (left, right) = a.split_at_mut(at * rows);
            left[k * rows..(k + 1) * rows].swap_with_slice(&mut right[..rows]);
        }
        let (left, right) = a.split_at_mut((k + 1) * rows);
        let (head, tail) = left[k * rows + k..].split_at_mut(1);
        taus[k] = reflection(&mut head[0], tail);
        reflect_columns(tail, taus[k].conjugate(), right, (rows, k));
    }
}

/// `Element::reflect`.
pub(crate) fn reflect<T: Field>(
    v: &[T],
    taus: &[T],
    c: &mut [T],
    (rows, cols): (usize, usize),
    side: Side,
    adjoint: bool,
    share: Share<'_>,
) {
    let c = &mut c[..rows * cols];
    if side == Side::Left && rows * taus.len() <= FEW {
        return reflect_one_by_one(v, taus, c, rows, adjoint);
    }
    let (height, other) = if side == Side::Left { (rows, cols) } else { (cols, rows) };
    let mut blocks: Vec<usize> = (0..taus.len()).step_by(BLOCK).collect();
    // Q = B₁ B₂ …: the last comes first in Q C and in C Qᴴ.
    if (side == Side::Left) != adjoint {
        blocks.reverse();
    }
    for k in blocks {
        let (basis, t) = block(v, height, k, &taus[k..taus.len().min(k + BLOCK)]);
        let p = Shared(c.as_mut_ptr());
        share(((height - k) * other * t.ncols() / 4) as u64, other.div_ceil(CHUNK), &|i| {
            let first = i * CHUNK;
            let width = CHUNK.min(other - first);
            match side {
                Side::Left => {
                    // SAFETY: chunks of columns are disjoint.
                    let part = unsafe { p.matrix(first * rows + k, rows - k, width, rows) };
                    apply_left(basis.as_ref(), t.as_ref(), adjoint, part);
                }
                Side::Right => {
                    // SAFETY: chunks of rows are disjoint.
                    let part = unsafe { p.matrix(k * rows + first, width, cols - k, rows) };
                    apply_right(basis.as_ref(), t.as_ref(), adjoint, part);
                }
            }
        });
    }
}

wide! {
    /// `Element::reflect` from the left, by few reflections.
    fn reflect_one_by_one<T: Field>(v: &[T], taus: &[T], c: &mut [T], rows: usize, adjoint: bool)
        = reflect_one_by_one_body
}

#[inline(always)]
fn reflect_one_by_one_body<T: Field>(v: &[T], taus: &[T], c: &mut [T], rows: usize, adjoint: bool) {
    for step in 0..taus.len() {
        let k = if adjoint { step } else { taus.len() - 1 - step };
        let factor = if adjoint { taus[k].conjugate() } else { taus[k] };
        reflect_columns(&v[k * rows + k + 1..(k + 1) * rows], factor, c, (rows, k));
    }
}

wide! {
    /// `Element::hessenberg`: column by column (LAPACK's `gehd2`).
    pub(crate) fn hessenberg<T: Field>(a: &mut [T], n: usize, taus: &mut [T]) = hessenberg_body
}

#[inline(always)]
fn hessenberg_body<T: Field>(a: &mut [T], n: usize, taus: &mut [T]) {
    let a = &mut a[..n * n];
    let mut v = vec![T::ZERO; n];
    let mut w = vec![T::ZERO; n];
    for k in 0..n.saturating_sub(1) {
        let (head, tail) = a[k * n + k + 1..(k + 1) * n].split_at_mut(1);
        let tau = reflection(&mut head[0], tail);
        taus[k] = tau;
        v[k + 1] = T::ONE;
        v[k + 2..n].copy_from_slice(tail);
        // A := A H
        w.fill(T::ZERO);
        for j in k + 1..n {
            let column = &a[j * n..(j + 1) * n];
            w.iter_mut().zip(column).for_each(|(w, x)| *w += *x * v[j]);
        }
        for j in k + 1..n {
            let factor = tau * v[j].conjugate();
            a[j * n..(j + 1) * n].iter_mut().zip(&w).for_each(|(x, w)| *x -= *w * factor);
        }
        // A := Hᴴ A
        reflect_columns(&v[k + 2..n], tau.conjugate(), &mut a[(k + 1) * n..], (n, k + 1));
    }
}
