//! Householder reflections: QR with and without pivoting, products of reflections, Hessenberg and tridiagonal forms.
//!
//! A reflection is H = I - τ v vᴴ with v = 1 at its head, made so that Hᴴ x = β e with β real: LAPACK's `larfg`. Loops
//! over the columns work on all matrices of a batch (rank 3) at once; a vector is zero outside the rows of its step, so
//! that products with whole matrices touch nothing else. Norms are taken of scaled numbers. Source: Golub and Van Loan,
//! "Matrix Computations" (4th edition), 5.1, 5.2, 7.4 and 8.3. Read next: `jacobi.rs`.

use super::code::X;
use super::factor::places;
use crate::ReduceOp;
use ferrax_base::DType;

/// x times a real number.
pub(super) fn times<'c>(x: X<'c>, factor: X<'c>) -> X<'c> {
    if x.dtype().is_complex() { (x.re() * factor).with_im(x.im() * factor) } else { x * factor }
}

/// |x|² of each element.
pub(super) fn square(x: X<'_>) -> X<'_> {
    if x.dtype().is_complex() { x.re() * x.re() + x.im() * x.im() } else { x * x }
}

/// The largest part of an element, in size.
pub(super) fn largest_part(x: X<'_>) -> X<'_> {
    if x.dtype().is_complex() { x.re().abs().max(x.im().abs()) } else { x.abs() }
}

/// The norms along an axis, without overflow or underflow on the way.
pub(super) fn norms(x: X<'_>, axis: usize) -> X<'_> {
    let top = largest_part(x).largest(axis);
    let safe = (top.gt(0.0) & top.is_finite()).pick(top, 1.0);
    let over = safe.code.number(safe.dtype(), 1.0) / safe;
    // The inverse of the smallest numbers overflows.
    let halved = over.is_finite().pick(over, 1.0);
    let unit = over.is_finite().pick(safe, 1.0);
    square(times(x, halved)).sum(axis).sqrt() * unit
}

/// A reflection of columns (batch, rows, 1).
pub(super) struct Reflection<'c> {
    /// What the head becomes.
    beta: X<'c>,
    pub(super) tau: X<'c>,
    /// The vector, zero outside head and tail.
    pub(super) v: X<'c>,
}

/// The reflection that takes a column's tail to zero.
pub(super) fn reflection<'c>(column: X<'c>, head: X<'c>, tail: X<'c>) -> Reflection<'c> {
    let d = column.dtype();
    let alpha = head.pick(column, 0.0).sum(1);
    let rest = tail.pick(column, 0.0);
    let still = largest_part(rest).largest(1).eq(0.0) & alpha.im().eq(0.0);
    let length = norms((head | tail).pick(column, 0.0), 1);
    let beta = alpha.re().lt(0.0).pick(length, -length);
    let safe = still.pick(beta.code.number(beta.dtype(), 1.0), beta);
    let re = (beta - alpha.re()) / safe;
    let tau = if d.is_complex() { re.with_im(-alpha.im() / safe) } else { re };
    let difference = still.pick(column.code.number(d, 1.0), alpha - beta.as_real_of(d));
    let v = head.pick(column.code.number(d, 1.0), rest / difference);
    Reflection { beta: still.pick(alpha, beta.as_real_of(d)), tau: still.pick(tau.code.number(d, 0.0), tau), v }
}

/// c - factor v (vᴴ c).
fn applied_left<'c>(v: X<'c>, factor: X<'c>, c: X<'c>) -> X<'c> {
    c - v * (factor * v.adjoint().dot(c))
}

/// c - factor (c v) vᴴ.
fn applied_right<'c>(v: X<'c>, factor: X<'c>, c: X<'c>) -> X<'c> {
    c - factor * c.dot(v) * v.adjoint()
}

/// Column k with the reflection in it, and the columns behind it reflected.
fn step<'c>(a: X<'c>, k: X<'c>) -> (X<'c>, X<'c>) {
    let shape = a.shape();
    let (i, j) = places(a.code, shape[1], shape[2]);
    let column = a.at(2, k);
    let Reflection { beta, tau, v } = reflection(column, i.eq(k), i.gt(k));
    let a = j.gt(k).pick(applied_left(v, tau.conj(), a), a);
    (a.put(2, k, i.lt(k).pick(column, i.eq(k).pick(beta, v))), tau)
}

/// `Qr` without pivoting: R over the reflections, their factors.
pub(super) fn qr(a: X<'_>) -> [X<'_>; 2] {
    let shape = a.shape();
    let steps = shape[1].min(shape[2]);
    let taus = a.code.full(a.dtype(), &[shape[0], 1, steps], 0.0);
    let [a, taus] = a.code.repeat(steps, false, [], [a, taus], |[], k, [a, taus]| {
        let (a, tau) = step(a, k);
        [a, taus.put(2, k, tau)]
    });
    [a, taus.flat(1)]
}

/// `Qr` with pivoting: the column with the largest remaining norm comes next (LAPACK's `geqp3`).
pub(super) fn qr_pivoted(a: X<'_>) -> [X<'_>; 3] {
    let shape = a.shape();
    let (batch, rows, cols) = (shape[0], shape[1], shape[2]);
    let steps = rows.min(cols);
    let taus = a.code.full(a.dtype(), &[batch, 1, steps], 0.0);
    let order = a.code.iota(&[batch, 1, cols], 2);
    let [a, order, taus] = a.code.repeat(steps, false, [], [a, order, taus], |[], k, [a, order, taus]| {
        let (i, j) = places(a.code, rows, cols);
        let sizes = norms(i.ge(k).pick(a, 0.0), 1);
        // A column that is not a number stays, as no other is larger.
        let lost = j.eq(k).pick(sizes, 0.0).is_nan().reduce(ReduceOp::Or, 2);
        let at = (j.ge(k) & !sizes.is_nan()).pick(sizes, -1.0).argmax(2);
        let at = lost.pick(k, at);
        let (here, there) = (j.eq(k), j.eq(at));
        let (first, second) = (a.at(2, k), there.pick(a, 0.0).sum(2));
        let a = here.pick(second, there.pick(first, a));
        let (first, second) = (order.at(2, k), there.pick(order, 0.0).sum(2));
        let order = here.pick(second, there.pick(first, order));
        let (a, tau) = step(a, k);
        [a, order, taus.put(2, k, tau)]
    });
    [a, order.flat(1), taus.flat(1)]
}

/// The vector of reflection k of a packed matrix (batch, rows, columns).
fn vector<'c>(packed: X<'c>, k: X<'c>) -> X<'c> {
    let i = packed.code.iota(&[1, packed.shape()[1], 1], 1);
    let column = packed.at(2, k);
    i.gt(k).pick(column, i.eq(k).pick(column.code.number(column.dtype(), 1.0).spread(&column.shape()), 0.0))
}

/// The identity's first columns, in every place of a batch.
pub(super) fn identity(like: X<'_>, batch: usize, rows: usize, cols: usize) -> X<'_> {
    let (i, j) = places(like.code, rows, cols);
    let (zero, one) = (like.code.full(like.dtype(), &[batch, rows, cols], 0.0), like.code.number(like.dtype(), 1.0));
    i.eq(j).pick(one, zero)
}

/// `Reflect`: the product of the reflections, or its adjoint, times c from a side.
pub(super) fn reflect<'c>(packed: X<'c>, taus: X<'c>, c: X<'c>, left: bool, adjoint: bool) -> X<'c> {
    let count = taus.shape()[1];
    // Q = H₁ H₂ …: the last comes first in Q C and in C Qᴴ.
    let backward = left != adjoint;
    let constants = [packed, taus.axis(1)];
    let [c] = c.code.repeat(count, backward, constants, [c], |[packed, taus], k, [c]| {
        let (v, tau) = (vector(packed, k), taus.at(2, k));
        let factor = if adjoint { tau.conj() } else { tau };
        [if left { applied_left(v, factor, c) } else { applied_right(v, factor, c) }]
    });
    c
}

/// `HouseholderProduct`: the first columns of the product of the reflections.
pub(super) fn product<'c>(packed: X<'c>, taus: X<'c>, cols: usize) -> X<'c> {
    let shape = packed.shape();
    reflect(packed, taus, identity(packed, shape[0], shape[1], cols), true, false)
}

/// `Hessenberg`: the form over the reflections, their factors (LAPACK's `gehd2`).
pub(super) fn hessenberg(a: X<'_>) -> [X<'_>; 2] {
    let (batch, n) = (a.shape()[0], a.shape()[1]);
    let steps = n.saturating_sub(1);
    let taus = a.code.full(a.dtype(), &[batch, 1, steps], 0.0);
    let [a, taus] = a.code.repeat(steps, false, [], [a, taus], |[], k, [a, taus]| {
        let (i, j) = places(a.code, n, n);
        let head = k + 1i64;
        let column = a.at(2, k);
        let Reflection { beta, tau, v } = reflection(column, i.eq(head), i.gt(head));
        let a = j.gt(k).pick(applied_right(v, tau, a), a);
        let a = j.gt(k).pick(applied_left(v, tau.conj(), a), a);
        let packed = i.lt(head).pick(column, i.eq(head).pick(beta, v));
        [a.put(2, k, packed), taus.put(2, k, tau)]
    });
    [a, taus.flat(1)]
}

/// The Hermitian matrices whose one triangle is given.
pub(super) fn hermitian(a: X<'_>, lower: bool) -> X<'_> {
    let n = a.shape()[1];
    let (i, j) = places(a.code, n, n);
    let there = if lower { i.gt(j) } else { i.lt(j) };
    let real = a.re().as_real_of(a.dtype());
    there.pick(a, i.eq(j).pick(real, a.adjoint()))
}

/// The diagonals of matrices, with an axis of size 1 at the end.
pub(super) fn diagonal(a: X<'_>) -> X<'_> {
    let n = a.shape()[1];
    let (i, j) = places(a.code, n, n);
    i.eq(j).pick(a, 0.0).sum(2)
}

/// `Tridiagonal`: the form over the reflections, diagonal, off-diagonal, factors (LAPACK's `sytd2` and `hetd2`).
pub(super) fn tridiagonal(a: X<'_>, lower: bool) -> [X<'_>; 4] {
    let (batch, n) = (a.shape()[0], a.shape()[1]);
    let d = a.dtype();
    let steps = n.saturating_sub(1);
    let taus = a.code.full(d, &[batch, 1, steps], 0.0);
    let off = a.code.full(d.real(), &[batch, 1, steps], 0.0);
    let state = [hermitian(a, lower), off, taus];
    // The upper triangle loses its columns from the last one on.
    let [form, off, taus] = a.code.repeat(steps, !lower, [], state, |[], k, [a, off, taus]| {
        let (i, _) = places(a.code, n, n);
        // Column and head of the step; the off-diagonal's index is that of the smaller one.
        let (column_at, head) = if lower { (k, k + 1i64) } else { (k + 1i64, k) };
        let column = a.at(2, column_at);
        let tail = if lower { i.gt(head) } else { i.lt(head) };
        let Reflection { beta, tau, v } = reflection(column, i.eq(head), tail);
        let block = tail | i.eq(head);
        let w = block.pick(tau * a.dot(v), 0.0);
        let half = a.code.number(d, -0.5) * tau * w.adjoint().dot(v);
        let w = w + half * v;
        let a = a - v * w.adjoint() - w * v.adjoint();
        let packed = i.eq(head).pick(beta, tail.pick(v, column));
        [a.put(2, column_at, packed), off.put(2, k, beta.re()), taus.put(2, k, tau)]
    });
    let (i, j) = places(a.code, n, n);
    let mine = if lower { i.ge(j) } else { i.le(j) };
    let packed = i.eq(j).pick(form.re().as_real_of(d), mine.pick(form, a));
    [packed, diagonal(form).re().flat(2), off.flat(1), taus.flat(1)]
}

/// The distance from one to the next number.
pub(super) fn epsilon(d: DType) -> f64 {
    if d.real() == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) }
}
