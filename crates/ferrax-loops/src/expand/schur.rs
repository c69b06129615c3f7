//! The Schur form A = Z T Zᴴ: Hessenberg form of all matrices of a batch at once, then the QR iteration of one matrix
//! after the other, as each takes steps of its own.
//!
//! Complex matrices take single shifts (Wilkinson's) by rotations, real ones the double shift of Francis by reflections
//! of three rows, as `ferrax-linalg` does: a subdiagonal entry counts as zero when it is at most ε times the sum of its
//! diagonal neighbours' sizes, every tenth step without a deflation takes a shift that is not the matrix's own, and more
//! than 30 max(n, 10) steps are a failure. Matrices have two rows and columns of zeros more than they need, so that
//! windows of three end inside. Source: Golub and Van Loan, "Matrix Computations" (4th edition), 7.4 and 7.5. Read next:
//! `francis.rs`, `eig.rs`.

use super::code::X;
use super::factor::{places, size_of};
use super::francis;
use super::jacobi::{all_finite, scale, unless_lost};
use super::reflect::{diagonal, epsilon, hessenberg, product, times};
use crate::UnaryOp;
use ferrax_base::{DType, Scalar};

/// Rows and columns of zeros behind a matrix.
pub(super) const ROOM: usize = 2;

/// T and Z of each matrix (batch, n, n), and whether the iteration converged (batch, 1, 1); anything if not.
pub(super) fn form(a: X<'_>) -> [X<'_>; 3] {
    let (batch, n) = (a.shape()[0], a.shape()[1]);
    let code = a.code;
    let (good, unit) = (all_finite(a), scale(a));
    let one = code.number(unit.dtype(), 1.0);
    let scaled = good.pick(times(a, one / unit), 0.0);
    let [packed, taus] = hessenberg(scaled);
    let z = basis(packed, taus);
    let (i, j) = places(code, n, n);
    let zero = Scalar::zero(a.dtype());
    let room = ROOM as i64;
    let t = i.le(j + 1i64).pick(packed, 0.0).pad(1, 0, room, zero).pad(2, 0, room, zero);
    let z = z.pad(2, 0, room, zero);
    let [t, z, done] = code.repeat(batch, false, [], [t, z, good], |[], b, [ts, zs, done]| {
        let (t, z, converged) = iterated(ts.at(0, b), zs.at(0, b), n);
        [ts.put(0, b, t), zs.put(0, b, z), done.put(0, b, done.at(0, b) & converged.reshape(&[1, 1, 1]))]
    });
    [times(t.part(1, 0, n).part(2, 0, n), unit), z.part(2, 0, n), done]
}

/// `Schur`: T, and Z where it is asked for.
pub(super) fn schur(a: X<'_>, vectors: bool) -> Vec<X<'_>> {
    let [t, z, good] = form(a);
    let mut found = vec![unless_lost(good, t)];
    found.extend(vectors.then(|| unless_lost(good, z)));
    found
}

/// The product of the reflections that a Hessenberg form was made by: its first row and column are the identity's.
fn basis<'c>(packed: X<'c>, taus: X<'c>) -> X<'c> {
    let n = packed.shape()[1];
    let (i, j) = places(packed.code, n, n);
    let one = packed.code.number(packed.dtype(), 1.0);
    if n < 2 {
        return one.spread(&packed.shape());
    }
    let inner = product(packed.part(1, 1, n).part(2, 0, n - 1), taus, n - 1);
    let zero = Scalar::zero(packed.dtype());
    let moved = inner.pad(1, 1, 0, zero).pad(2, 1, 0, zero);
    (i.eq(0i64) & j.eq(0i64)).pick(one.spread(&moved.shape()), moved)
}

/// The element at a place, as (1, 1, 1).
pub(super) fn element<'c>(t: X<'c>, i: X<'c>, j: X<'c>) -> X<'c> {
    t.at(1, i).at(2, j)
}

/// The first row of the block that ends before row `end` and has no vanishing subdiagonal entry, and t with a zero there.
fn deflated<'c>(t: X<'c>, end: X<'c>, n: usize) -> (X<'c>, X<'c>) {
    let m = t.shape()[1];
    let sizes = size_of(diagonal(t));
    let below = size_of(diagonal(t.part(1, 1, m).part(2, 0, m - 1)));
    let near = (sizes.part(1, 0, m - 1) + sizes.part(1, 1, m)) * epsilon(t.dtype());
    let d = t.dtype().real();
    let tiny = if d == DType::F64 { f64::MIN_POSITIVE } else { f64::from(f32::MIN_POSITIVE) };
    let least = tiny * n as f64 / epsilon(t.dtype());
    let k = t.code.iota(&[1, m - 1, 1], 1) + 1i64;
    let small = (below.le(near) | below.le(least)) & k.lt(end);
    let first = small.pick(k, 0i64).largest(1).reshape(&[]);
    let (i, j) = places(t.code, m, m);
    ((i.eq(first) & j.eq(first - 1i64)).pick(t.code.number(t.dtype(), 0.0), t), first)
}

/// One matrix (1, n, n) brought to triangular form, and whether its blocks became small enough.
fn iterated<'c>(t: X<'c>, z: X<'c>, n: usize) -> (X<'c>, X<'c>, X<'c>) {
    let number = |v: usize| t.code.number(DType::I32, v as f64);
    let real = !t.dtype().is_complex();
    let state = [t, z, number(n), number(0), number(30 * n.max(10))];
    let [t, z, end, ..] = t.code.repeat_while(
        [],
        state,
        |[], [_, _, end, _, left]| end.gt(1i64) & left.gt(0i64),
        |[], [t, z, end, waited, left]| {
            let (t, first) = deflated(t, end, n);
            let rows = end - first;
            let done = rows.le(if real { 2i64 } else { 1 });
            let waited = done.pick(waited.code.number(DType::I32, 0.0), waited + 1i64);
            // A finished block takes no step.
            let start = done.pick(end, first);
            let [t, z] = if real {
                let [t, z] = francis::finish(t, z, first, rows.eq(2i64));
                francis::step(t, z, start, end, waited)
            } else {
                single(t, z, start, end, waited)
            };
            [t, z, done.pick(first, end), waited, done.pick(left, left - 1i64)]
        },
    );
    (t, z, end.le(1i64))
}

/// What stands below the subdiagonal is zero.
pub(super) fn clean(t: X<'_>) -> X<'_> {
    let m = t.shape()[1];
    let (i, j) = places(t.code, m, m);
    i.le(j + 1i64).pick(t, 0.0)
}

/// The block of two rows and columns from k on, by rows, each as (1, 1, 1).
pub(super) fn block<'c>(t: X<'c>, k: X<'c>) -> [X<'c>; 4] {
    let two = t.window(1, k, 2).window(2, k, 2);
    let at = |i: usize, j: usize| two.part(1, i, i + 1).part(2, j, j + 1);
    [at(0, 0), at(0, 1), at(1, 0), at(1, 1)]
}

/// Rows k and k + 1 turned: p becomes c p + s q, and q becomes c q - s̄ p.
pub(super) fn turned_rows<'c>(t: X<'c>, k: X<'c>, c: X<'c>, s: X<'c>) -> X<'c> {
    let two = t.window(1, k, 2);
    let (p, q) = (two.part(1, 0, 1), two.part(1, 1, 2));
    t.put(1, k, t.code.concat(&[times(p, c) + s * q, times(q, c) - s.conj() * p], 1))
}

/// Columns k and k + 1 turned by the adjoint of that.
pub(super) fn turned_columns<'c>(t: X<'c>, k: X<'c>, c: X<'c>, s: X<'c>) -> X<'c> {
    let two = t.window(2, k, 2);
    let (p, q) = (two.part(2, 0, 1), two.part(2, 1, 2));
    t.put(2, k, t.code.concat(&[times(p, c) + s.conj() * q, times(q, c) - s * p], 2))
}

/// The eigenvalue of the last block of two rows that is closer to its last entry, or another number at times.
fn shift<'c>(t: X<'c>, end: X<'c>, waited: X<'c>) -> X<'c> {
    let [a, b, c, d] = block(t, end - 2i64);
    let half_gap = (a - d) * 0.5;
    let product = b * c;
    let root = (half_gap * half_gap + product).un(UnaryOp::Sqrt);
    let opposed = (half_gap * root.conj()).re().lt(0.0);
    let far = half_gap + opposed.pick(-root, root);
    let none = far.eq(0.0);
    let own = d - none.pick(far, product / none.pick(far.code.number(far.dtype(), 1.0), far));
    let other = d + (size_of(c) * 0.75).as_real_of(d.dtype());
    let tenth = waited.gt(0i64) & waited.bin(crate::BinaryOp::Rem, 10i64).eq(0i64);
    tenth.pick(other, own)
}

/// One step with a single shift on the rows from `first` up to `end`.
fn single<'c>(t: X<'c>, z: X<'c>, first: X<'c>, end: X<'c>, waited: X<'c>) -> [X<'c>; 2] {
    let [a, _, c, _] = block(t, first);
    let head = a - shift(t, end, waited);
    let [t, z, ..] = t.code.repeat_while(
        [end],
        [t, z, head, c, first],
        |[end], [_, _, _, _, k]| k.lt(end - 1i64),
        |[_], [t, z, x, y, k]| {
            let (c, s) = rotation(x, y);
            let t = turned_columns(turned_rows(t, k, c, s), k, c, s);
            let z = turned_columns(z, k, c, s);
            let next = k + 1i64;
            [t, z, element(t, next, k), element(t, next + 1i64, k), next]
        },
    );
    [clean(t), z]
}

/// (c, s) of the rotation that takes (x, y) to (r, 0).
fn rotation<'c>(x: X<'c>, y: X<'c>) -> (X<'c>, X<'c>) {
    let (x_size, y_size) = (x.abs(), y.abs());
    let top = x_size.max(y_size);
    let none = top.eq(0.0);
    let safe = none.pick(top.code.number(top.dtype(), 1.0), top);
    let (p, q) = (x_size / safe, y_size / safe);
    let length = (p * p + q * q).sqrt() * safe;
    let length = none.pick(length.code.number(length.dtype(), 1.0), length);
    let one = x.code.number(x.dtype(), 1.0);
    let headless = x_size.eq(0.0);
    let size = headless.pick(x_size.code.number(x_size.dtype(), 1.0), x_size);
    let inverse = size.code.number(size.dtype(), 1.0) / size;
    let phase = headless.pick(one, times(x, inverse));
    let c = none.pick(length.code.number(length.dtype(), 1.0), x_size / length);
    (c, phase * times(y.conj(), length.code.number(length.dtype(), 1.0) / length))
}
