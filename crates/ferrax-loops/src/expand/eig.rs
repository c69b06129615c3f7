//! Eigenvalues and eigenvectors of general matrices, from their Schur form.
//!
//! A real form becomes a triangular one by a rotation of each of its blocks of two rows; eigenvalues are read off the real
//! form, so that pairs are conjugates of each other and real ones are real. Eigenvectors of the triangle are found row by
//! row, of all eigenvalues and matrices of a batch (rank 3) at once, and scaled where they grow. Source: Golub and Van
//! Loan, "Matrix Computations" (4th edition), 7.6.4.

use super::code::X;
use super::factor::{places, size_of};
use super::jacobi::{scale, unless_lost};
use super::reflect::{diagonal, epsilon, largest_part, square, times};
use super::schur::form;
use ferrax_base::DType;

/// `Eig`: eigenvalues, then left and right eigenvectors where they are asked for.
pub(super) fn eig(a: X<'_>, left: bool, right: bool) -> Vec<X<'_>> {
    let [t, z, good] = form(a);
    let (t, z, values, paired) = triangular(t, z);
    let mut found = vec![unless_lost(good, values).flat(2)];
    for backward in [left.then_some(false), right.then_some(true)].into_iter().flatten() {
        let inner = triangle_vectors(if backward { t } else { t.adjoint() }, values, backward);
        found.push(unless_lost(good, normalized(z.dot(inner), paired)));
    }
    found
}

/// The parts of a complex Schur form: T, Z, eigenvalues (batch, n, 1), and for real matrices which of them belong to pairs
/// as +1 for the first one and -1 for the second one, 0 for real ones.
fn triangular<'c>(t: X<'c>, z: X<'c>) -> (X<'c>, X<'c>, X<'c>, Option<X<'c>>) {
    if t.dtype().is_complex() {
        return (t, z, diagonal(t), None);
    }
    let (n, code) = (t.shape()[1], t.code);
    let zero = code.full(t.dtype(), &[t.shape()[0], 1, 1], 0.0);
    let below = diagonal(t.part(1, 1, n).part(2, 0, n - 1));
    let above = diagonal(t.part(1, 0, n - 1).part(2, 1, n));
    // √(-b c), without overflow on the way
    let size = below.abs().sqrt() * above.abs().sqrt();
    let first = below.ne(0.0).pick(size, 0.0);
    let im = code.concat(&[first, zero], 1) - code.concat(&[zero, first], 1);
    let values = diagonal(t).with_im(im);
    let mark = below.ne(0.0).pick(code.number(t.dtype(), 1.0).spread(&below.shape()), 0.0);
    let paired = code.concat(&[mark, zero], 1) - code.concat(&[zero, mark], 1);
    let complex = t.dtype().to_complex();
    let state = [t.to(complex), z.to(complex)];
    let [t, z] = code.repeat(n - 1, false, [im], state, |[im], k, [t, z]| {
        let (omega, below) = (im.at(1, k), t.at(1, k + 1i64).at(2, k).re());
        let on = omega.gt(0.0);
        let top = on.pick(omega.abs().max(below.abs()), 1.0);
        let (x, y) = (omega / top, below / top);
        let length = on.pick((x * x + y * y).sqrt(), 1.0);
        let none = omega.code.full(omega.dtype(), &omega.shape(), 0.0);
        let one = omega.code.full(omega.dtype(), &omega.shape(), 1.0);
        let c = on.pick(none.with_im(x / length), one.with_im(none));
        let s = on.pick(y / length, none).with_im(none);
        let two = t.window(1, k, 2);
        let (p, q) = (two.part(1, 0, 1), two.part(1, 1, 2));
        let t = t.put(1, k, t.code.concat(&[c.conj() * p + s * q, c * q - s * p], 1));
        [turned(t, k, c, s), turned(z, k, c, s)]
    });
    let (i, j) = places(code, n, n);
    (i.le(j).pick(t, 0.0), z, values, Some(paired))
}

/// Columns k and k + 1 times [c -s; s c̄].
fn turned<'c>(t: X<'c>, k: X<'c>, c: X<'c>, s: X<'c>) -> X<'c> {
    let two = t.window(2, k, 2);
    let (p, q) = (two.part(2, 0, 1), two.part(2, 1, 2));
    t.put(2, k, t.code.concat(&[c * p + s * q, c.conj() * q - s * p], 2))
}

/// Eigenvectors of triangular matrices as columns, one for each eigenvalue on the diagonal: of upper ones from the last
/// row up, of lower ones, which are adjoints, from the first row down.
fn triangle_vectors<'c>(t: X<'c>, values: X<'c>, upper: bool) -> X<'c> {
    let (batch, n, code) = (t.shape()[0], t.shape()[1], t.code);
    let own = if upper { values } else { values.conj() };
    let across = own.t();
    // A difference that vanishes is taken for a rounding error of the largest entry.
    let least = (scale(t) * (2.0 * epsilon(t.dtype()))).max(1e-36);
    let start = code.full(t.dtype(), &[batch, n, n], 0.0);
    let [x] = code.repeat(n, upper, [t, across, own, least], [start], |[t, across, own, least], i, [x]| {
        let j = x.code.iota(&[1, 1, n], 2);
        let sums = t.at(1, i).dot(x);
        let gap = own.at(1, i) - across;
        let safe = size_of(gap).gt(least).pick(gap, least.as_real_of(gap.dtype()));
        let inside = if upper { j.gt(i) } else { j.lt(i) };
        let one = x.code.number(x.dtype(), 1.0);
        let row = inside.pick(-(sums / safe), j.eq(i).pick(one.spread(&sums.shape()), 0.0));
        let x = x.put(1, i, row);
        let top = largest_part(x).largest(1);
        let large = top.gt(1e9);
        [times(x, large.pick(top.code.number(top.dtype(), 1.0) / top, 1.0))]
    });
    x
}

/// Columns of norm one; complex ones with a real largest component, those of real eigenvalues real, and those of pairs
/// conjugates of each other.
fn normalized<'c>(v: X<'c>, paired: Option<X<'c>>) -> X<'c> {
    let n = v.shape()[1];
    let one = |x: X<'c>| x.code.number(x.dtype(), 1.0);
    let top = largest_part(v).largest(1);
    let v = times(v, one(top) / top.gt(0.0).pick(top, 1.0));
    let sizes = square(v);
    let v = times(v, one(sizes) / sizes.sum(1).sqrt());
    let at = sizes.argmax(1);
    let i = v.code.iota(&[1, n, 1], 1);
    let largest = i.eq(at).pick(v, 0.0).sum(1);
    let size = largest.abs();
    let phase = times(largest.conj(), one(size) / size);
    let turned = v * phase;
    let turned = i.eq(at).pick(turned.re().as_real_of(v.dtype()), turned);
    let Some(paired) = paired else {
        let complex = v.im().ne(0.0).to(DType::I32).largest(1).gt(0i64);
        return complex.pick(turned, v);
    };
    let kind = paired.t();
    let real = v.re().as_real_of(v.dtype());
    // A second one is the first one's conjugate.
    let zero = v.code.full(v.dtype(), &[v.shape()[0], n, 1], 0.0);
    let moved = v.code.concat(&[zero, turned.part(2, 0, n - 1)], 2).conj();
    kind.eq(0.0).pick(real, kind.gt(0.0).pick(turned, moved))
}
