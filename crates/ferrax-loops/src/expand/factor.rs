//! Cholesky's factor and its update, LU with partial pivoting, and solving with factors and tridiagonal matrices.
//!
//! A loop over the columns works on all matrices of a batch (rank 3) at once, with masks for what has another size at
//! every step (Golub and Van Loan, "Matrix Computations", 4th edition, 3.4, 4.3 and 6.5.4). Rows are exchanged by
//! selection, never by products, so that infinities and NaN stay where they are. Choices (what is a pivot, which of
//! equals comes first, what a singular matrix gives) are those of `ferrax-linalg`. Read next: `reflect.rs`.

use super::code::{Code, X};
use crate::linalg::LinalgOp;
use crate::{Kind, ReduceOp};
use ferrax_base::DType;

/// |re| + |im|: what pivots are picked by.
pub(super) fn size_of(x: X<'_>) -> X<'_> {
    if x.dtype().is_complex() { x.re().abs() + x.im().abs() } else { x.abs() }
}

/// Row and column numbers of matrices of a shape, as (1, rows, 1) and (1, 1, columns).
pub(super) fn places(code: &Code, rows: usize, cols: usize) -> (X<'_>, X<'_>) {
    (code.iota(&[1, rows, 1], 1), code.iota(&[1, 1, cols], 2))
}

/// The one row at which a mask (batch, rows, 1) holds, exactly as it is.
fn selected<'c>(a: X<'c>, mask: X<'c>) -> X<'c> {
    mask.pick(a, 0.0).sum(1)
}

/// What a finished Cholesky factorization shows: zeros above the diagonal, NaN below if a pivot was not positive.
pub(super) fn cholesky_shown(l: X<'_>) -> X<'_> {
    let n = l.shape()[1];
    let (i, j) = places(l.code, n, n);
    let good = i.eq(j).pick(l.re(), 1.0).gt(0.0);
    let good = good.reduce(ReduceOp::And, 1).reduce(ReduceOp::And, 2);
    let nan = l.code.scalar(ferrax_base::Scalar::from_complex(l.dtype(), f64::NAN, f64::NAN));
    i.ge(j).pick(good.pick(l, nan), 0.0)
}

/// `CholeskyUpdate`: row k turns with w so that w_k vanishes.
pub(super) fn cholesky_update<'c>(r: X<'c>, w: X<'c>) -> X<'c> {
    let n = w.shape()[1];
    let [r, _] = r.code.repeat(n, false, [], [r, w.axis(1)], |[], k, [r, w]| {
        let row = r.at(1, k);
        let (x, y) = (row.at(2, k), w.at(2, k));
        let still = y.eq(0.0);
        let top = x.abs().max(y.abs());
        let (x, y) = (x / top, y / top);
        let length = (x * x + y * y).sqrt();
        let c = still.pick(x.code.number(x.dtype(), 1.0), x / length);
        let s = still.pick(x.code.number(x.dtype(), 0.0), y / length);
        [r.put(1, k, c * row + s * w), c * w - s * row]
    });
    r
}

/// `Lu`: L and U in one matrix, exchanged rows, the permutation that they make.
pub(super) fn lu(a: X<'_>) -> [X<'_>; 3] {
    let shape = a.shape();
    let (batch, rows, cols) = (shape[0], shape[1], shape[2]);
    let steps = rows.min(cols);
    let pivots = a.code.full(DType::I32, &[batch, 1, steps], 0.0);
    let order = a.code.iota(&[batch, rows, 1], 1);
    let [a, pivots, order] = a.code.repeat(steps, false, [], [a, pivots, order], |[], k, [a, pivots, order]| {
        let (i, j) = places(a.code, rows, cols);
        let column = a.at(2, k);
        let size = size_of(column);
        // A pivot that is not a number stays, as no other is larger.
        let lost = i.eq(k).pick(size, 0.0).is_nan().reduce(ReduceOp::Or, 1);
        let open = i.ge(k) & !size.is_nan() & !lost;
        let at = open.pick(size, -1.0).argmax(1);
        let at = lost.pick(k, at);
        let (here, there) = (i.eq(k), i.eq(at));
        let (top, other) = (a.at(1, k), selected(a, there));
        let a = here.pick(other, there.pick(top, a));
        let (first, second) = (order.at(1, k), selected(order, there));
        let order = here.pick(second, there.pick(first, order));
        let row = a.at(1, k);
        let (pivot, column) = (row.at(2, k), a.at(2, k));
        let below = i.gt(k) & pivot.ne(0.0);
        let factors = below.pick(column / pivot, column);
        let a = (below & j.gt(k)).pick(a - factors * row, a);
        let a = a.put(2, k, factors);
        [a, pivots.put(2, k, at), order]
    });
    [a, pivots.flat(1), order.flat(2)]
}

/// `PivotsToPermutation`.
pub(super) fn permutation(pivots: X<'_>, rows: usize) -> X<'_> {
    let (batch, steps) = (pivots.shape()[0], pivots.shape()[1]);
    let order = pivots.code.iota(&[batch, rows, 1], 1);
    let constant = pivots.axis(1);
    let [order] = pivots.code.repeat(steps, false, [constant], [order], |[pivots], k, [order]| {
        let i = order.code.iota(&[1, rows, 1], 1);
        let at = pivots.at(2, k).max(0i64).min(rows as i64 - 1);
        let (here, there) = (i.eq(k), i.eq(at));
        let (first, second) = (order.at(1, k), selected(order, there));
        [here.pick(second, there.pick(first, order))]
    });
    order.flat(2)
}

/// A triangle solved from the left.
fn solved<'c>(a: X<'c>, b: X<'c>, lower: bool, transpose: bool, conjugate: bool) -> X<'c> {
    let op = LinalgOp::TriangularSolve { left: true, lower, transpose, conjugate, unit: lower };
    a.code.node(Kind::Linalg(op), &[a, b], b.ty())
}

/// `LuSolve`.
pub(super) fn lu_solve<'c>(lu: X<'c>, order: X<'c>, b: X<'c>, transpose: bool, conjugate: bool) -> X<'c> {
    if !transpose {
        let y = solved(lu, b.rows(order), true, false, conjugate);
        return solved(lu, y, false, false, conjugate);
    }
    let y = solved(lu, b, false, true, conjugate);
    let y = solved(lu, y, true, true, conjugate);
    let (_, back) = order.argsort();
    y.rows(back)
}

/// `TridiagonalSolve`: Gaussian elimination with exchanges of neighbouring rows (LAPACK's `gtsv`).
pub(super) fn tridiagonal_solve<'c>(dl: X<'c>, d: X<'c>, du: X<'c>, b: X<'c>) -> X<'c> {
    let n = d.shape()[1];
    if n == 0 {
        return b;
    }
    let code = d.code;
    let columns = |x: X<'c>| x.axis(2);
    let none = code.full(d.dtype(), &columns(d).shape(), 0.0);
    let state = [columns(d), columns(du), none, b];
    let [main, up, second, x] = code.repeat(n - 1, false, [columns(dl)], state, |[dl], k, [main, up, second, x]| {
        let next = k + 1i64;
        let low = dl.at(1, next);
        let (here, below) = (main.at(1, k), main.at(1, next));
        let (u, u_below) = (up.at(1, k), up.at(1, next));
        let (top, under) = (x.at(1, k), x.at(1, next));
        let stays = size_of(here).ge(size_of(low));
        let factor = stays.pick(low / here, here / low);
        // the last row has nothing right of its neighbour
        let far = next.lt(n as i64 - 1).pick(u_below, 0.0);
        let main =
            main.put(1, k, stays.pick(here, low)).put(1, next, stays.pick(below - factor * u, u - factor * below));
        let up = up.put(1, k, stays.pick(u, below));
        let up = up.put(1, next, stays.pick(u_below, next.lt(n as i64 - 1).pick(-(factor * far), u_below)));
        let second = second.put(1, k, (!stays).pick(far, 0.0));
        let x =
            x.put(1, k, stays.pick(top, under)).put(1, next, stays.pick(under - factor * top, top - factor * under));
        [main, up, second, x]
    });
    let after = code.full(b.dtype(), &b.part(1, 0, 1).shape(), 0.0);
    let [x, ..] =
        code.repeat(n, true, [main, up, second], [x, after, after], |[main, up, second], k, [x, one, two]| {
            let (u, s) = (up.at(1, k), second.at(1, k));
            let u = k.lt(n as i64 - 1).pick(u, 0.0);
            let y = (x.at(1, k) - u * one - s * two) / main.at(1, k);
            [x.put(1, k, y), y, one]
        });
    x
}
