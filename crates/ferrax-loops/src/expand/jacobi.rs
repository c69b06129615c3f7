//! Hermitian eigenvalues and singular values by Jacobi's rotations, for all matrices of a batch (rank 3) at once.
//!
//! Pairs of columns turn side by side: column i with column i + n/2, then the columns move on as players do in a
//! round-robin tournament, so that after n - 1 rounds all have met and are back where they were (Brent and Luk, "The
//! solution of singular-value and symmetric eigenvalue problems on multiprocessor arrays", 1985). An odd number of
//! columns gets one of zeros, which never turns. Singular values come from the one-sided method on the adjoint of the
//! triangle of a pivoted QR, which keeps small ones accurate (Drmač and Veselić, "New fast and accurate Jacobi SVD
//! algorithm", 2008). Matrices are scaled by powers of two first. Read next: `schur.rs`.

use super::code::X;
use super::factor::places;
use super::reflect::{
    diagonal, epsilon, hermitian, identity, largest_part, norms, product, qr, qr_pivoted, reflect, square, times,
};
use crate::ReduceOp;
use ferrax_base::{DType, Scalar};

/// Sweeps after which matrices are taken as they are: they converge in 6 to 12.
const SWEEPS: i64 = 40;

/// Powers of two near the largest parts of matrices, 1 for those without one.
pub(super) fn scale(a: X<'_>) -> X<'_> {
    let top = largest_part(a).largest(1).largest(2);
    let (integer, exponent) = match top.dtype() {
        DType::F64 => (DType::I64, 0x7ff0_0000_0000_0000),
        _ => (DType::I32, 0x7f80_0000),
    };
    let mask = top.code.scalar(Scalar::from_i64(integer, exponent));
    let power = (top.bits(integer) & mask).bits(top.dtype());
    // The inverse of the greatest power is below the normal numbers.
    let usable = power.gt(0.0) & power.is_finite();
    usable.pick(power.min(highest_power(top.dtype())), 1.0)
}

/// A power of two whose inverse is a normal number.
fn highest_power(d: DType) -> f64 {
    if d == DType::F64 { 2f64.powi(1022) } else { 2f64.powi(126) }
}

/// Whether all parts of matrices are finite.
pub(super) fn all_finite(a: X<'_>) -> X<'_> {
    largest_part(a).is_finite().reduce(ReduceOp::And, 1).reduce(ReduceOp::And, 2)
}

/// x where it is good, else NaN in all parts.
pub(super) fn unless_lost<'c>(good: X<'c>, x: X<'c>) -> X<'c> {
    good.pick(x, x.code.scalar(Scalar::from_complex(x.dtype(), f64::NAN, f64::NAN)))
}

/// Rotations of pairs of columns: p becomes c p - s̄ q, and q becomes s p + c q.
#[derive(Clone, Copy)]
struct Turn<'c> {
    c: X<'c>,
    s: X<'c>,
    /// The tangent times the size of what vanishes: how much the diagonal changes.
    change: X<'c>,
}

/// The rotations that diagonalize [p b; b̄ q], smaller than a right angle; none where `on` does not hold.
fn turn<'c>(p: X<'c>, q: X<'c>, b: X<'c>, on: X<'c>) -> Turn<'c> {
    let size = b.abs();
    let on = on & size.gt(0.0);
    let safe = on.pick(size, 1.0);
    let ratio = (q - p) / (safe * 2.0);
    let slope = ratio.code.number(ratio.dtype(), 1.0) / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
    let slope = on.pick(ratio.lt(0.0).pick(-slope, slope), 0.0);
    let c = slope.code.number(slope.dtype(), 1.0) / (slope * slope + 1.0).sqrt();
    let phase = on.pick(times(b, b.code.number(safe.dtype(), 1.0) / safe), 0.0);
    Turn { c, s: times(phase, c * slope), change: slope * size }
}

/// An axis of 2h as its halves.
fn halves(x: X<'_>, axis: usize) -> (X<'_>, X<'_>) {
    let n = x.shape()[axis];
    (x.part(axis, 0, n / 2), x.part(axis, n / 2, n))
}

/// Halves as one axis, everyone but the first moved on by a place.
fn moved_on<'c>(top: X<'c>, bottom: X<'c>, axis: usize) -> X<'c> {
    let h = top.shape()[axis];
    if h == 1 {
        return top.code.concat(&[top, bottom], axis);
    }
    let part = |x: X<'c>, from: usize, to: usize| x.part(axis, from, to);
    let (first, rest) = (part(top, 0, 1), part(top, 1, h - 1));
    let parts = [first, part(bottom, 0, 1), rest, part(bottom, 1, h), part(top, h - 1, h)];
    let parts: Vec<X<'c>> = parts.into_iter().filter(|x| x.shape()[axis] > 0).collect();
    top.code.concat(&parts, axis)
}

/// Columns turned pair by pair, and moved on; the turns lie along axis 1.
fn turned_columns<'c>(x: X<'c>, t: Turn<'c>) -> X<'c> {
    let (p, q) = halves(x, 2);
    let (c, s) = (t.c.t(), t.s.t());
    moved_on(times(p, c) - q * s.conj(), times(q, c) + p * s, 2)
}

/// Rows turned by the adjoints, without moving.
fn turned_rows<'c>(x: X<'c>, t: Turn<'c>) -> (X<'c>, X<'c>) {
    let (p, q) = halves(x, 1);
    (times(p, t.c) - q * t.s, times(q, t.c) + p * t.s.conj())
}

/// One round of the two-sided method.
fn round<'c>(a: X<'c>, v: X<'c>) -> [X<'c>; 2] {
    let n = a.shape()[1];
    let (d, h) = (a.dtype(), n / 2);
    let (p, q) = halves(diagonal(a).re(), 1);
    let pairs = diagonal(a.part(1, 0, h).part(2, h, n));
    let t = turn(p, q, pairs, a.code.scalar(Scalar::from_bool(true)));
    let v = turned_columns(v, t);
    // Rows stay where they are until the diagonal is put in its place.
    let (top, bottom) = turned_rows(a, t);
    let a = a.code.concat(&[top, bottom], 1);
    let (left, right) = halves(a, 2);
    let (c, s) = (t.c.t(), t.s.t());
    let a = a.code.concat(&[times(left, c) - right * s.conj(), times(right, c) + left * s], 2);
    let (i, j) = places(a.code, n, n);
    let apart = i - j;
    let values = a.code.concat(&[p - t.change, q + t.change], 1).as_real_of(d);
    let a = apart.eq(0i64).pick(values, (apart.eq(h as i64) | apart.eq(-(h as i64))).pick(a.code.number(d, 0.0), a));
    let (top, bottom) = halves(a, 1);
    let a = moved_on(top, bottom, 1);
    let (left, right) = halves(a, 2);
    [moved_on(left, right, 2), v]
}

/// The sum of squares off the diagonal.
fn off_diagonal(a: X<'_>) -> X<'_> {
    let n = a.shape()[1];
    let (i, j) = places(a.code, n, n);
    i.eq(j).pick(a.re().code.number(a.dtype().real(), 0.0), square(a)).sum(1).sum(2)
}

/// `Eigh`: eigenvectors, eigenvalues in ascending order.
pub(super) fn eigh(a: X<'_>, lower: bool) -> [X<'_>; 2] {
    let (batch, n) = (a.shape()[0], a.shape()[1]);
    let odd = (n % 2) as i64;
    let full = hermitian(a, lower);
    let (good, unit) = (all_finite(full), scale(full));
    let one = unit.code.number(unit.dtype(), 1.0);
    let full = good.pick(times(full, one / unit), 0.0);
    let zero = Scalar::zero(a.dtype());
    let full = full.pad(1, 0, odd, zero).pad(2, 0, odd, zero);
    let even = n + odd as usize;
    let bound = square(full).sum(1).sum(2) * (epsilon(a.dtype()) * epsilon(a.dtype()));
    let state = [full, identity(a, batch, even, even), off_diagonal(full), a.code.number(DType::I32, 0.0)];
    let [full, vectors, ..] = a.code.repeat_while(
        [bound],
        state,
        |[bound], [_, _, off, sweep]| off.gt(bound).any() & sweep.lt(SWEEPS),
        |[_], [a, v, _, sweep]| {
            let [a, v] = a.code.repeat(even - 1, false, [], [a, v], |[], _, [a, v]| round(a, v));
            [a, v, off_diagonal(a), sweep + 1i64]
        },
    );
    let values = diagonal(full).re().flat(2).part(1, 0, n);
    let (values, order) = values.argsort();
    let vectors = vectors.part(1, 0, n).part(2, 0, n).t().rows(order).t();
    let values = values * unit.flat(2);
    [unless_lost(good, vectors), unless_lost(good.flat(2), values)]
}

/// One round of the one-sided method: columns, what they were turned by, and whether any turned.
fn one_sided_round<'c>(x: X<'c>, w: X<'c>, any: X<'c>) -> [X<'c>; 3] {
    let (p, q) = halves(x, 2);
    let bound = epsilon(x.dtype()) * (x.shape()[1] as f64).sqrt();
    let (pp, qq) = (square(p).sum(1).t(), square(q).sum(1).t());
    let pq = (p.conj() * q).sum(1).t();
    let on = pq.abs().gt(pp.sqrt() * qq.sqrt() * bound);
    let t = turn(pp, qq, pq, on);
    [turned_columns(x, t), turned_columns(w, t), any | on.any()]
}

/// x with orthogonal columns in descending order, the order's turns and selections included in what it was multiplied by.
fn orthogonalized(x: X<'_>) -> (X<'_>, X<'_>, X<'_>) {
    let (batch, n) = (x.shape()[0], x.shape()[1]);
    let even = n + n % 2;
    let zero = Scalar::zero(x.dtype());
    let wide = x.pad(2, 0, (even - n) as i64, zero);
    let yes = x.code.scalar(Scalar::from_bool(true));
    let state = [wide, identity(x, batch, even, even), yes, x.code.number(DType::I32, 0.0)];
    let [x, w, ..] = x.code.repeat_while(
        [],
        state,
        |[], [_, _, any, sweep]| any & sweep.lt(SWEEPS),
        |[], [x, w, _, sweep]| {
            let no = x.code.scalar(Scalar::from_bool(false));
            let [x, w, any] =
                x.code.repeat(even - 1, false, [], [x, w, no], |[], _, [x, w, any]| one_sided_round(x, w, any));
            [x, w, any, sweep + 1i64]
        },
    );
    let (x, w) = (x.part(2, 0, n), w.part(1, 0, n).part(2, 0, n));
    let (values, order) = (-norms(x, 1).flat(1)).argsort();
    (x.t().rows(order).t(), w.t().rows(order).t(), -values)
}

/// `Svd` with vectors: values in descending order, U of a width, Vᴴ of a height.
pub(super) fn svd(a: X<'_>, u_width: usize, v_height: usize) -> [X<'_>; 3] {
    let (batch, rows, cols) = (a.shape()[0], a.shape()[1], a.shape()[2]);
    if rows < cols {
        let [s, u, vh] = svd(a.adjoint(), v_height, u_width);
        return [s, vh.adjoint(), u.adjoint()];
    }
    if cols == 0 {
        let values = a.code.full(a.dtype().real(), &[batch, 0], 0.0);
        return [values, identity(a, batch, rows, u_width), identity(a, batch, v_height, 0)];
    }
    let (good, unit) = (all_finite(a), scale(a));
    let one = unit.code.number(unit.dtype(), 1.0);
    let scaled = good.pick(times(a, one / unit), 0.0);
    let [packed, order, taus] = qr_pivoted(scaled);
    let (i, j) = places(a.code, cols, cols);
    let triangle = i.le(j).pick(packed.part(1, 0, cols), 0.0);
    // A P = Q R and Rᴴ W = Y Σ, so A = Q W Σ (P Y)ᴴ.
    let (x, w, values) = orthogonalized(triangle.adjoint());
    let [inner, inner_taus] = qr(x);
    let y = product(inner, inner_taus, cols);
    let signs = diagonal(inner).re().t().lt(0.0);
    let y = signs.pick(-y, y);
    let (_, back) = order.argsort();
    let vh = y.rows(back).adjoint();
    let zero = Scalar::zero(a.dtype());
    let w = w.pad(1, 0, (rows - cols) as i64, zero).pad(2, 0, (u_width - cols) as i64, zero);
    let (i, j) = places(a.code, rows, u_width);
    let one = a.code.number(a.dtype(), 1.0);
    let w = (i.eq(j) & j.ge(cols as i64)).pick(one.spread(&w.shape()), w);
    let u = reflect(packed, taus, w, true, false);
    let values = values * unit.flat(2);
    [unless_lost(good.flat(2), values), unless_lost(good, u), unless_lost(good, vh)]
}

/// `Svd` without vectors.
pub(super) fn singular_values(a: X<'_>) -> X<'_> {
    let least = a.shape()[1].min(a.shape()[2]);
    let [values, ..] = svd(a, least, least);
    values
}
