//! Steps of the QR iteration of real matrices: the double shift of Francis, and blocks of two rows in standard form.
//!
//! Source: Bai and Demmel, "On swapping diagonal blocks in real Schur form" (1993), for the standard form.

use super::code::X;
use super::reflect::{Reflection, reflection};
use super::schur::{block, clean, element, turned_columns, turned_rows};
use crate::BinaryOp;
use ferrax_base::Scalar;

/// Two shifts, as the real parts and the size of the imaginary ones: the eigenvalues of [a b; c d], or twice the one
/// closer to d if they are real.
fn shifts([a, b, c, d]: [X<'_>; 4]) -> (X<'_>, X<'_>) {
    let sizes = a.abs() + b.abs() + c.abs() + d.abs();
    let sizes = sizes.eq(0.0).pick(sizes.code.number(sizes.dtype(), 1.0), sizes);
    let [a, b, c, d] = [a, b, c, d].map(|x| x / sizes);
    let middle = (a + d) * 0.5;
    let determinant = (a - middle) * (d - middle) - b * c;
    let root = determinant.abs().sqrt();
    let (low, high) = (middle - root, middle + root);
    let near = (high - d).abs().le((low - d).abs()).pick(high, low);
    let complex = determinant.ge(0.0);
    (complex.pick(middle, near) * sizes, complex.pick(root * sizes, 0.0))
}

/// The first column of (T - σ₁)(T - σ₂) at row k, as (1, 3, 1).
fn direction<'c>(t: X<'c>, k: X<'c>, end: X<'c>, waited: X<'c>) -> X<'c> {
    let last = end - 1i64;
    let [a, b, c, d] = block(t, last - 1i64);
    let tenth = waited.gt(0i64) & waited.bin(BinaryOp::Rem, 10i64).eq(0i64);
    // The constants are those of EISPACK's `hqr`.
    let size = c.abs() + element(t, last - 1i64, last - 2i64).abs();
    let other = size * 0.75 + d;
    let (re, im) =
        shifts([tenth.pick(other, a), tenth.pick(size * -0.4375, b), tenth.pick(size, c), tenth.pick(other, d)]);
    let [own, right, below, next] = block(t, k);
    let gap = own - re;
    let sizes = gap.abs() + im.abs() + below.abs();
    let sizes = sizes.eq(0.0).pick(sizes.code.number(sizes.dtype(), 1.0), sizes);
    let part = below / sizes;
    let column = [
        part * right + gap * (gap / sizes) + im * (im / sizes),
        part * (gap + (next - re)),
        part * element(t, k + 2i64, k + 1i64),
    ];
    t.code.concat(&column, 1)
}

/// One step with a double shift on the rows from `first` up to `end`, of which there are three at least, or none.
pub(super) fn step<'c>(t: X<'c>, z: X<'c>, first: X<'c>, end: X<'c>, waited: X<'c>) -> [X<'c>; 2] {
    let v = direction(t, first, end, waited);
    let [t, z, ..] = t.code.repeat_while(
        [end],
        [t, z, v, first],
        |[end], [_, _, _, k]| k.lt(end - 1i64),
        |[end], [t, z, v, k]| {
            let i = t.code.iota(&[1, 3, 1], 1);
            // The last one has two rows.
            let v = (i + k).lt(end).pick(v, 0.0);
            let Reflection { tau, v, .. } = reflection(v, i.eq(0i64), i.gt(0i64));
            let rows = t.window(1, k, 3);
            let t = t.put(1, k, rows - v * (tau * (v * rows).sum(1)));
            let across = v.t();
            let part = t.window(2, k, 3);
            let t = t.put(2, k, part - (part * across).sum(2) * tau * across);
            let part = z.window(2, k, 3);
            let z = z.put(2, k, part - (part * across).sum(2) * tau * across);
            let next = t.at(2, k).window(1, k + 1i64, 3);
            [t, z, next, k + 1i64]
        },
    );
    [clean(t), z]
}

/// The block of two rows at row k in standard form, where `on`.
pub(super) fn finish<'c>(t: X<'c>, z: X<'c>, k: X<'c>, on: X<'c>) -> [X<'c>; 2] {
    let number = |v: f64| t.code.number(t.dtype(), v).spread(&[1, 1, 1]);
    let old = block(t, k);
    let (new, (c, s)) = standard(old);
    let (c, s) = (on.pick(c, number(1.0)), on.pick(s, number(0.0)));
    let values: [X<'c>; 4] = std::array::from_fn(|i| on.pick(new[i], old[i]));
    let t = turned_columns(turned_rows(t, k, c, s), k, c, s);
    let rows = [0, 2].map(|i| t.code.concat(&[values[i], values[i + 1]], 2));
    let two = t.window(1, k, 2);
    let t = t.put(1, k, two.put(2, k, t.code.concat(&rows, 1)));
    [t, turned_columns(z, k, c, s)]
}

/// ±1 with a number's sign, 1 for zeros.
fn sign(x: X<'_>) -> X<'_> {
    x.lt(0.0).pick(x.code.number(x.dtype(), -1.0), 1.0)
}

/// A number, or 1 instead of zero.
fn off_zero(x: X<'_>) -> X<'_> {
    x.eq(0.0).pick(x.code.number(x.dtype(), 1.0), x)
}

/// [a b; c d] in standard form, and the rotation that takes it there: triangular if its eigenvalues are real, else with
/// a = d and b c < 0.
fn standard([a, b, c, d]: [X<'_>; 4]) -> ([X<'_>; 4], (X<'_>, X<'_>)) {
    let number = |v: f64| a.code.number(a.dtype(), v).spread(&[1, 1, 1]);
    let (zero, one) = (number(0.0), number(1.0));
    let half_gap = (a - d) * 0.5;
    let (more, less) = (b.abs().max(c.abs()), b.abs().min(c.abs()) * sign(b) * sign(c));
    let scale = off_zero(half_gap.abs().max(more));
    let discriminant = half_gap / scale * half_gap + more / scale * less;
    // Real eigenvalues, well apart.
    let far = half_gap + sign(half_gap) * scale.sqrt() * discriminant.max(0.0).sqrt();
    let length = off_zero((c * c + far * far).sqrt());
    let apart = ([d + far, b - c, zero, d - more / off_zero(far) * less], (far / length, c / length));
    // Conjugate eigenvalues, or real ones that are nearly equal: the diagonal is made equal first.
    let sum = b + c;
    let length = off_zero((sum * sum + (a - d) * (a - d)).sqrt());
    let cosine = ((one + sum.abs() / length) * 0.5).sqrt();
    let sine = -(half_gap / (length * cosine)) * sign(sum);
    let left = [a * cosine + b * sine, b * cosine - a * sine, c * cosine + d * sine, d * cosine - c * sine];
    let (a2, b2) = (left[0] * cosine + left[2] * sine, left[1] * cosine + left[3] * sine);
    let (c2, d2) = (left[2] * cosine - left[0] * sine, left[3] * cosine - left[1] * sine);
    let close = settle((a2 + d2) * 0.5, b2, c2, (cosine, sine));
    let identity = ([a, b, c, d], (one, zero));
    let exchanged = ([d, -c, zero, a], (zero, one));
    let well_apart = discriminant.ge(a.code.scalar(epsilon_of(a)));
    let found = either(well_apart, apart, close);
    let found = either(a.eq(d) & sign(b).ne(sign(c)), identity, found);
    let found = either(b.eq(0.0), exchanged, found);
    either(c.eq(0.0), identity, found)
}

type Standard<'c> = ([X<'c>; 4], (X<'c>, X<'c>));

fn either<'c>(which: X<'c>, yes: Standard<'c>, no: Standard<'c>) -> Standard<'c> {
    let block = std::array::from_fn(|i| which.pick(yes.0[i], no.0[i]));
    (block, (which.pick(yes.1.0, no.1.0), which.pick(yes.1.1, no.1.1)))
}

/// Four times the distance from one to the next number.
fn epsilon_of(x: X<'_>) -> Scalar {
    Scalar::from_f64(x.dtype(), 4.0 * super::reflect::epsilon(x.dtype()))
}

/// [m b; c m], which a rotation led to, in standard form.
fn settle<'c>(m: X<'c>, b: X<'c>, c: X<'c>, (cosine, sine): (X<'c>, X<'c>)) -> Standard<'c> {
    let zero = m.code.number(m.dtype(), 0.0).spread(&[1, 1, 1]);
    let (b_root, c_root) = (b.abs().sqrt(), c.abs().sqrt());
    let apart = b_root * c_root * sign(c);
    let length = off_zero((b + c).abs().sqrt());
    let (x, y) = (b_root / length, c_root / length);
    let real = ([m + apart, b - c, zero, m - apart], (cosine * x - sine * y, cosine * y + sine * x));
    let turned = ([m, -c, zero, m], (-sine, cosine));
    let kept = ([m, b, c, m], (cosine, sine));
    let found = either(b.eq(0.0), turned, real);
    let opposed = b.ne(0.0) & sign(b).ne(sign(c));
    either(c.eq(0.0) | opposed, kept, found)
}
