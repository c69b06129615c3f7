//! The Schur form A = Z T Zᴴ: Hessenberg form, then the QR iteration with implicit shifts.
//!
//! Complex matrices take single shifts (Wilkinson's) by rotations, real ones the double shift of Francis by reflections
//! of three rows. A real T is triangular but for 2 × 2 blocks of pairs of conjugate eigenvalues, which have equal
//! diagonal entries and off-diagonal ones of opposite signs, as LAPACK's have. A subdiagonal entry counts as zero when
//! it is at most ε times the sum of its diagonal neighbours' sizes. Every tenth step without a deflation takes a shift
//! that is not the matrix's own; more than 30 max(n, 10) steps are a failure.
//!
//! A step's reflections reach the columns near them one by one, those further right by the batch, so that memory is read
//! once for many. Without vectors and form, they stay within the block that has not been taken apart.
//!
//! Sources: Golub and Van Loan, "Matrix Computations" (4th edition), 7.4 and 7.5; Bai and Demmel, "On swapping diagonal
//! blocks in real Schur form" (1993), for the standard form of blocks. Read next: `rotations.rs`, `householder.rs`.

use crate::householder::{self, Side, wide};
use crate::rotations::{rotation, times};
use crate::scalar::{Field, Real, Scalar};
use crate::{ALONE, OutOfMemory, filled};

/// Steps without a deflation after which the shift is another one.
const PATIENCE: usize = 10;

/// Reflections of a batch, and columns that it is applied to at once.
const BATCH: usize = 16;
const COLUMNS: usize = 16;

/// A matrix that is becoming triangular, with the product of what it was multiplied by.
struct Form<'a, T: Field> {
    t: &'a mut [T],
    z: Option<&'a mut [T]>,
    n: usize,
    /// Whether the form is wanted, and not its diagonal alone.
    whole: bool,
    /// What counts as zero wherever it stands.
    least: T::R,
}

impl<T: Field> Form<'_, T> {
    fn at(&self, i: usize, j: usize) -> T {
        self.t[j * self.n + i]
    }

    fn set(&mut self, i: usize, j: usize, x: T) {
        self.t[j * self.n + i] = x;
    }

    /// The first row of the block that ends before row `end` and has no vanishing subdiagonal entry.
    fn block(&mut self, end: usize) -> usize {
        for k in (1..end).rev() {
            let near = (self.at(k - 1, k - 1).size() + self.at(k, k).size()) * T::R::EPSILON;
            let size = self.at(k, k - 1).size();
            if size <= near || size <= self.least {
                self.set(k, k - 1, T::ZERO);
                return k;
            }
        }
        0
    }

    /// The rows and columns that what happens to a block of rows reaches.
    fn reach(&self, first: usize, end: usize) -> std::ops::Range<usize> {
        if self.whole { 0..self.n } else { first..end }
    }

    /// T := G T Gᴴ and Z := Z Gᴴ for the rotation of rows `k` and `k + 1` of a block, from column `first` on and down to
    /// row `last`.
    fn rotate(&mut self, k: usize, (c, s): (T::R, T), first: usize, last: usize, reach: std::ops::Range<usize>) {
        let n = self.n;
        rotate_rows(&mut self.t[first * n..reach.end * n], n, k, c, s);
        turn(&mut self.t[k * n..(k + 2) * n], n, reach.start, last, c, s);
        if let Some(z) = self.z.as_deref_mut() {
            turn(&mut z[k * n..(k + 2) * n], n, 0, n, c, s);
        }
    }
}

wide! {
    /// Rows `k` and `k + 1` of all columns: G times these.
    fn rotate_rows<T: Field>(a: &mut [T], n: usize, k: usize, c: T::R, s: T) = rotate_rows_body
}

#[inline(always)]
fn rotate_rows_body<T: Field>(a: &mut [T], n: usize, k: usize, c: T::R, s: T) {
    for column in a.chunks_exact_mut(n) {
        if let [x, y] = &mut column[k..k + 2] {
            (*x, *y) = (times(*x, c) + s * *y, times(*y, c) - s.conjugate() * *x);
        }
    }
}

wide! {
    /// Two columns times Gᴴ, in the rows from one number up to another.
    fn turn<T: Field>(a: &mut [T], n: usize, first: usize, end: usize, c: T::R, s: T) = turn_body
}

#[inline(always)]
fn turn_body<T: Field>(a: &mut [T], n: usize, first: usize, end: usize, c: T::R, s: T) {
    let (left, right) = a.split_at_mut(n);
    for (x, y) in left[first..end].iter_mut().zip(&mut right[first..end]) {
        (*x, *y) = (times(*x, c) + s.conjugate() * *y, times(*y, c) - s * *x);
    }
}

// ---- the iteration -------------------------------------------------------------------------------------------------

/// What is particular to real and to complex matrices.
struct Kind<T: Field> {
    /// Rows of the largest block that is not taken apart further.
    whole: usize,
    /// One step on the rows from the first number up to the second, after so many in vain.
    step: fn(&mut Form<'_, T>, usize, usize, usize),
    /// Finishes the block of two rows at a row.
    pair: fn(&mut Form<'_, T>, usize),
}

/// Says whether all blocks became small enough.
fn iterate<T: Field>(form: &mut Form<'_, T>, kind: &Kind<T>) -> bool {
    let (mut end, mut waited) = (form.n, 0);
    let mut left = 30 * form.n.max(10);
    while end > 0 {
        let first = form.block(end);
        let rows = end - first;
        if rows <= kind.whole {
            if rows == 2 {
                (kind.pair)(form, first);
            }
            (end, waited) = (first, 0);
            continue;
        }
        if left == 0 {
            return false;
        }
        (left, waited) = (left - 1, waited + 1);
        (kind.step)(form, first, end, waited);
    }
    true
}

/// `Element::schur` of real matrices.
pub(crate) fn schur_real<T: Field + Real<R = T>>(
    a: &mut [T],
    n: usize,
    vectors: Option<&mut [T]>,
) -> Result<bool, OutOfMemory> {
    schur(a, n, vectors, true, &Kind { whole: 2, step: francis, pair: finish })
}

/// The eigenvalues of a real matrix, which is used up, in the order in which they stand in its Schur form. Says whether
/// the matrix is finite and the iteration converged.
pub(crate) fn eigenvalues<T: Field + Real<R = T>>(
    a: &mut [T],
    n: usize,
    values: &mut [[T; 2]],
) -> Result<bool, OutOfMemory> {
    if !schur(a, n, None, false, &Kind { whole: 2, step: francis, pair: finish })? {
        return Ok(false);
    }
    let mut k = 0;
    while k < n {
        let below = if k + 1 < n { a[k * n + k + 1] } else { T::ZERO };
        values[k] = [a[k * n + k], T::ZERO];
        if below != T::ZERO {
            let size = below.magnitude().root() * a[(k + 1) * n + k].magnitude().root();
            (values[k][1], values[k + 1]) = (size, [a[(k + 1) * n + k + 1], -size]);
            k += 1;
        }
        k += 1;
    }
    Ok(true)
}

/// `Element::schur` of complex matrices.
pub(crate) fn schur_complex<T: Field>(a: &mut [T], n: usize, vectors: Option<&mut [T]>) -> Result<bool, OutOfMemory> {
    schur(a, n, vectors, true, &Kind { whole: 1, step: single, pair: |_, _| {} })
}

fn schur<T: Field>(
    a: &mut [T],
    n: usize,
    mut vectors: Option<&mut [T]>,
    whole: bool,
    kind: &Kind<T>,
) -> Result<bool, OutOfMemory> {
    let t = &mut a[..n * n];
    if !t.iter().all(|x| x.finite()) {
        return Ok(false);
    }
    let factor = scale(t);
    t.iter_mut().for_each(|x| *x = times(*x, factor));
    let mut taus = vec![T::ZERO; n.saturating_sub(1)];
    householder::hessenberg(t, n, &mut taus);
    if let Some(z) = vectors.as_deref_mut() {
        basis(t, n, &taus, z)?;
    }
    (0..n).for_each(|j| t[j * n + (j + 2).min(n)..(j + 1) * n].fill(T::ZERO));
    let least = T::R::TINY * T::R::of_f64(n as f64) / T::R::EPSILON;
    if !iterate(&mut Form { t: &mut *t, z: vectors, n, whole, least }, kind) {
        return Ok(false);
    }
    let back = T::R::ONE / factor;
    t.iter_mut().for_each(|x| *x = times(*x, back));
    Ok(true)
}

/// A power of two that brings the largest entry between a half and one, as far as it has an inverse.
fn scale<T: Field>(a: &[T]) -> T::R {
    let (one, two) = (T::R::ONE, T::R::ONE + T::R::ONE);
    let mut top = T::R::ZERO;
    for x in a {
        for part in [x.re().magnitude(), x.im().magnitude()] {
            top = if part > top { part } else { top };
        }
    }
    let mut factor = one;
    while top * factor > one && factor > T::R::TINY {
        factor /= two;
    }
    while top > T::R::ZERO && top * factor < one / two && factor < one / T::R::TINY {
        factor *= two;
    }
    factor
}

/// The product of the reflections that a Hessenberg form was made by.
fn basis<T: Field>(packed: &[T], n: usize, taus: &[T], z: &mut [T]) -> Result<(), OutOfMemory> {
    let unit = |m: usize, to: &mut [T]| {
        to.fill(T::ZERO);
        (0..m).for_each(|k| to[k * m + k] = T::ONE);
    };
    unit(n, z);
    if n < 2 {
        return Ok(());
    }
    // The first row and column are the identity's.
    let m = n - 1;
    let (mut v, mut q) = (filled(T::ZERO, m * m)?, filled(T::ZERO, m * m)?);
    for (v, column) in v.chunks_exact_mut(m).zip(packed.chunks_exact(n)) {
        v.copy_from_slice(&column[1..]);
    }
    unit(m, &mut q);
    householder::reflect(&v, taus, &mut q, (m, m), Side::Left, false, ALONE);
    for (j, column) in q.chunks_exact(m).enumerate() {
        z[(j + 1) * n + 1..(j + 2) * n].copy_from_slice(column);
    }
    Ok(())
}

// ---- complex matrices ----------------------------------------------------------------------------------------------

/// The principal square root.
fn square_root<T: Scalar>(x: T) -> T {
    let half = T::R::ONE / (T::R::ONE + T::R::ONE);
    let large = ((x.modulus() + x.re().magnitude()) * half).root();
    if large == T::R::ZERO {
        return T::ZERO;
    }
    let small = x.im() * half / large;
    if x.re() >= T::R::ZERO {
        T::of_parts(large, small)
    } else {
        T::of_parts(small.magnitude(), large.signed_as(x.im()))
    }
}

/// The eigenvalue of [a b; c d] that is closer to d.
fn closer<T: Scalar>([a, b, c, d]: [T; 4]) -> T {
    let half = T::R::ONE / (T::R::ONE + T::R::ONE);
    let sizes = (a - d).size() + b.size() + c.size();
    if sizes == T::R::ZERO {
        return d;
    }
    let unit = T::R::ONE / sizes;
    let (b, c, half_gap) = (times(b, unit), times(c, unit), times(a - d, unit * half));
    let root = square_root(half_gap * half_gap + b * c);
    let (plus, minus) = (half_gap + root, half_gap - root);
    let divisor = if plus.size() > minus.size() { plus } else { minus };
    if divisor.size() == T::R::ZERO { d } else { d - times(b * c / divisor, sizes) }
}

/// One step of the QR iteration with a single shift.
fn single<T: Field>(form: &mut Form<'_, T>, first: usize, end: usize, waited: usize) {
    let last = end - 1;
    let pushed =
        |k: usize, at: T, form: &Form<'_, T>| at + T::of_real(T::R::of_f64(0.75) * form.at(k + 1, k).modulus());
    let shift = match waited {
        w if w % (2 * PATIENCE) == 0 => pushed(last - 1, form.at(last, last), form),
        w if w % PATIENCE == 0 => pushed(first, form.at(first, first), form),
        _ => {
            closer([form.at(last - 1, last - 1), form.at(last - 1, last), form.at(last, last - 1), form.at(last, last)])
        }
    };
    let (mut x, mut y) = (form.at(first, first) - shift, form.at(first + 1, first));
    for k in first..last {
        let (c, s, r) = rotation(x, y);
        if k > first {
            form.set(k, k - 1, r);
            form.set(k + 1, k - 1, T::ZERO);
        }
        form.rotate(k, (c, s), k, end.min(k + 3), form.reach(first, end));
        if k + 2 < end {
            (x, y) = (form.at(k + 1, k), form.at(k + 2, k));
        }
    }
}

// ---- real matrices -------------------------------------------------------------------------------------------------

/// Two shifts, as the real parts and the size of the imaginary ones: the eigenvalues of [a b; c d], or twice the one
/// closer to d if they are real.
fn shifts<T: Real>([a, b, c, d]: [T; 4]) -> (T, T) {
    let sizes = a.magnitude() + b.magnitude() + c.magnitude() + d.magnitude();
    if sizes == T::ZERO {
        return (T::ZERO, T::ZERO);
    }
    let (a, b, c, d) = (a / sizes, b / sizes, c / sizes, d / sizes);
    let middle = (a + d) / (T::ONE + T::ONE);
    let determinant = (a - middle) * (d - middle) - b * c;
    let root = determinant.magnitude().root();
    if determinant >= T::ZERO {
        return (middle * sizes, root * sizes);
    }
    let (low, high) = (middle - root, middle + root);
    let near = if (high - d).magnitude() <= (low - d).magnitude() { high } else { low };
    (near * sizes, T::ZERO)
}

/// The 2 × 2 matrix whose eigenvalues are the shifts of a step.
fn shift_matrix<T: Field>(form: &Form<'_, T>, first: usize, end: usize, waited: usize) -> [T; 4] {
    let last = end - 1;
    if !waited.is_multiple_of(PATIENCE) {
        return [form.at(last - 1, last - 1), form.at(last - 1, last), form.at(last, last - 1), form.at(last, last)];
    }
    // The constants are those of EISPACK's `hqr`.
    let (size, at) = if waited.is_multiple_of(2 * PATIENCE) {
        (form.at(last, last - 1).size() + form.at(last - 1, last - 2).size(), form.at(last, last))
    } else {
        (form.at(first + 1, first).size() + form.at(first + 2, first + 1).size(), form.at(first, first))
    };
    let of = |x: f64| T::of_real(size * T::R::of_f64(x));
    [of(0.75) + at, of(-0.4375), of(1.0), of(0.75) + at]
}

/// A multiple of (T - σ₁)(T - σ₂) e_k within the rows from `k` on.
fn direction<T: Field + Real<R = T>>(form: &Form<'_, T>, k: usize, (re, im): (T, T)) -> [T; 3] {
    let (gap, below) = (form.at(k, k) - re, form.at(k + 1, k));
    let sizes = gap.magnitude() + im.magnitude() + below.magnitude();
    if sizes == T::ZERO {
        return [T::ZERO; 3];
    }
    let (part, next) = (below / sizes, form.at(k + 1, k + 1) - re);
    [
        part * form.at(k, k + 1) + gap * (gap / sizes) + im * (im / sizes),
        part * (gap + next),
        part * form.at(k + 2, k + 1),
    ]
}

/// The row that a step can start at, as the entry left of it counts as zero after it; and the first column there.
fn start<T: Field + Real<R = T>>(form: &Form<'_, T>, first: usize, end: usize, pair: (T, T)) -> (usize, [T; 3]) {
    for k in (first + 1..=end - 3).rev() {
        let v = direction(form, k, pair);
        let around = [k - 1, k, k + 1].map(|i| form.at(i, i).magnitude());
        let filled = form.at(k, k - 1).magnitude() * (v[1].magnitude() + v[2].magnitude());
        if filled <= T::EPSILON * v[0].magnitude() * (around[0] + around[1] + around[2]) {
            return (k, v);
        }
    }
    (first, direction(form, first, pair))
}

/// I - w vᵀ on three neighbouring rows, or two: w = τ v and v₀ = 1.
#[derive(Clone, Copy)]
struct Reflection<T> {
    rows: usize,
    v: [T; 3],
    w: [T; 3],
}

impl<T: Real> Reflection<T> {
    /// The one that takes the first `rows` numbers to (β, 0, 0), with β.
    fn of(x: [T; 3], rows: usize) -> (Self, T) {
        let larger = |a: T, b: T| if a.magnitude() > b.magnitude() { a.magnitude() } else { b.magnitude() };
        let rest = if rows == 3 { larger(x[1], x[2]) } else { x[1].magnitude() };
        if rest == T::ZERO {
            let none = [T::ZERO; 3];
            return (Reflection { rows, v: none, w: none }, x[0]);
        }
        let top = larger(x[0], rest);
        let [a, b, c] = x.map(|x| x / top);
        let c = if rows == 3 { c } else { T::ZERO };
        let beta = -(a * a + b * b + c * c).root().signed_as(a);
        let (tau, below) = ((beta - a) / beta, a - beta);
        let v = [T::ONE, b / below, c / below];
        (Reflection { rows, v, w: v.map(|v| tau * v) }, beta * top)
    }
}

/// One element of each of the rows or columns of a reflection.
#[inline(always)]
fn reflected<T: Scalar, const N: usize>(r: &Reflection<T>, x: [T; N]) -> [T; N] {
    let dot = (1..N).fold(x[0], |dot, i| dot + r.v[i] * x[i]);
    std::array::from_fn(|i| x[i] - r.w[i] * dot)
}

wide! {
    /// Rows from `k` on, in all columns, reflected.
    fn reflect_rows<T: Field>(a: &mut [T], n: usize, k: usize, r: &Reflection<T>) = reflect_rows_body
}

#[inline(always)]
fn reflect_rows_body<T: Field>(a: &mut [T], n: usize, k: usize, r: &Reflection<T>) {
    let r = *r;
    for column in a.chunks_exact_mut(n) {
        match &mut column[k..k + r.rows] {
            [x, y, z] => [*x, *y, *z] = reflected(&r, [*x, *y, *z]),
            [x, y] => [*x, *y] = reflected(&r, [*x, *y]),
            _ => {}
        }
    }
}

wide! {
    /// Columns from the first one on, in the rows from one number up to another, reflected.
    fn reflect_columns<T: Field>(a: &mut [T], n: usize, first: usize, end: usize, r: &Reflection<T>)
        = reflect_columns_body
}

#[inline(always)]
fn reflect_columns_body<T: Field>(a: &mut [T], n: usize, first: usize, end: usize, r: &Reflection<T>) {
    let r = *r;
    let (x, rest) = a.split_at_mut(n);
    let (y, rest) = rest.split_at_mut(n);
    let pairs = x[first..end].iter_mut().zip(&mut y[first..end]);
    if r.rows == 2 {
        pairs.for_each(|(x, y)| [*x, *y] = reflected(&r, [*x, *y]));
    } else {
        pairs.zip(&mut rest[first..end]).for_each(|((x, y), z)| [*x, *y, *z] = reflected(&r, [*x, *y, *z]));
    }
}

/// One step of the QR iteration with a double shift, on at least three rows.
fn francis<T: Field + Real<R = T>>(form: &mut Form<'_, T>, first: usize, end: usize, waited: usize) {
    let n = form.n;
    let (begin, mut v) = start(form, first, end, shifts(shift_matrix(form, first, end, waited)));
    let reach = form.reach(first, end);
    let mut batch = [(0, Reflection { rows: 0, v: [T::ZERO; 3], w: [T::ZERO; 3] }); BATCH];
    let (mut count, mut near) = (0, 0);
    for k in begin..end - 1 {
        let rows = 3.min(end - k);
        if k > begin {
            v[..rows].copy_from_slice(&form.t[(k - 1) * n + k..(k - 1) * n + k + rows]);
        }
        let (r, beta) = Reflection::of(v, rows);
        if k > begin {
            form.set(k, k - 1, beta);
            (1..rows).for_each(|i| form.set(k + i, k - 1, T::ZERO));
        } else if k > first {
            form.set(k, k - 1, form.at(k, k - 1) * (T::ONE - r.w[0]));
        }
        if count == 0 {
            // All columns that the batch meets on its way down.
            near = reach.end.min(k + BATCH + 3);
        }
        batch[count] = (k, r);
        count += 1;
        reflect_rows(&mut form.t[k * n..near * n], n, k, &r);
        reflect_columns(&mut form.t[k * n..(k + rows) * n], n, reach.start, end.min(k + 4), &r);
        if let Some(z) = form.z.as_deref_mut() {
            reflect_columns(&mut z[k * n..(k + rows) * n], n, 0, n, &r);
        }
        if count == BATCH || k + 2 == end {
            for far in form.t[near * n..reach.end * n].chunks_mut(COLUMNS * n) {
                batch[..count].iter().for_each(|(k, r)| reflect_rows(far, n, *k, r));
            }
            count = 0;
        }
    }
}

/// Brings the block at rows `k` and `k + 1` into standard form.
fn finish<T: Field + Real<R = T>>(form: &mut Form<'_, T>, k: usize) {
    let block = [form.at(k, k), form.at(k, k + 1), form.at(k + 1, k), form.at(k + 1, k + 1)];
    let ([a, b, c, d], (cosine, sine)) = standard(block);
    form.rotate(k, (cosine, sine), k, k + 2, form.reach(k, k + 2));
    form.set(k, k, a);
    form.set(k, k + 1, b);
    form.set(k + 1, k, c);
    form.set(k + 1, k + 1, d);
}

/// [a b; c d] in standard form, and the rotation that takes it there: triangular if its eigenvalues are real, else with
/// a = d and b c < 0.
fn standard<T: Real>([a, b, c, d]: [T; 4]) -> ([T; 4], (T, T)) {
    let (zero, one, two) = (T::ZERO, T::ONE, T::ONE + T::ONE);
    let sign = |x: T| one.signed_as(x);
    if c == zero {
        return ([a, b, c, d], (one, zero));
    }
    if b == zero {
        return ([d, -c, zero, a], (zero, one));
    }
    if a == d && sign(b) != sign(c) {
        return ([a, b, c, d], (one, zero));
    }
    let half_gap = (a - d) / two;
    let (b_size, c_size) = (b.magnitude(), c.magnitude());
    let (more, less) = if b_size > c_size { (b_size, c_size) } else { (c_size, b_size) };
    let less = less * sign(b) * sign(c);
    let scale = if half_gap.magnitude() > more { half_gap.magnitude() } else { more };
    let discriminant = half_gap / scale * half_gap + more / scale * less;
    if discriminant >= T::EPSILON * (two + two) {
        // Real eigenvalues, well apart.
        let far = half_gap + (scale.root() * discriminant.root()).signed_as(half_gap);
        let length = c.with(far);
        return ([d + far, b - c, zero, d - more / far * less], (far / length, c / length));
    }
    // Conjugate eigenvalues, or real ones that are nearly equal: the diagonal is made equal first.
    let sum = b + c;
    let length = sum.with(a - d);
    let cosine = ((one + sum.magnitude() / length) / two).root();
    let sine = -(half_gap / (length * cosine)) * sign(sum);
    let left = [a * cosine + b * sine, b * cosine - a * sine, c * cosine + d * sine, d * cosine - c * sine];
    let [a, b] = [left[0] * cosine + left[2] * sine, left[1] * cosine + left[3] * sine];
    let [c, d] = [left[2] * cosine - left[0] * sine, left[3] * cosine - left[1] * sine];
    settle((a + d) / two, b, c, (cosine, sine))
}

/// [m b; c m], which a rotation led to, in standard form.
fn settle<T: Real>(m: T, b: T, c: T, (cosine, sine): (T, T)) -> ([T; 4], (T, T)) {
    let zero = T::ZERO;
    if c == zero || (b != zero && (b > zero) != (c > zero)) {
        return ([m, b, c, m], (cosine, sine));
    }
    if b == zero {
        return ([m, -c, zero, m], (-sine, cosine));
    }
    let (b_root, c_root) = (b.magnitude().root(), c.magnitude().root());
    let apart = (b_root * c_root).signed_as(c);
    let length = (b + c).magnitude().root();
    let (x, y) = (b_root / length, c_root / length);
    ([m + apart, b - c, zero, m - apart], (cosine * x - sine * y, cosine * y + sine * x))
}
