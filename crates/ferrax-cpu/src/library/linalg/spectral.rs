//! Eigenvalues and singular values.

use super::{Items, Scratch, batch, each, matrix, no_memory, not_a_number, nth, transposed};
use crate::elementwise::kernel::{In, Out};
use ferrax_base::{Result, bail};
use ferrax_linalg::{Element, Real, filled};

/// `LinalgOp::Eigh`.
pub fn eigh<T: Element>(x: In<'_>, lower: bool, outs: &mut [Out<'_>]) -> Result<()> {
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let [vectors, values] = outs else { bail!(Internal, "eigh has two results") };
    let (vectors, values) = (Items::<T>::of(vectors, count), Items::<T::R>::of(values, count));
    each(count, (n * n * n * 2 + 500 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let (vectors, values) = unsafe { (vectors.item(i), values.item(i)) };
        let a = nth::<T>(x, count, i);
        let mut scratch = Scratch::new::<T>(2 * n * n)?;
        let (work, v) = scratch.of::<T>()[..2 * n * n].split_at_mut(n * n);
        if lower {
            transposed(a, n, n, work);
        } else {
            // The upper triangle by rows is the lower one by columns, conjugated.
            work.iter_mut().zip(a).for_each(|(w, x)| *w = x.conjugate());
        }
        if T::eigh(work, n, values, Some(v)).map_err(no_memory)? {
            transposed(v, n, n, vectors);
        } else {
            vectors.fill(not_a_number());
            values.fill(<T::R as Real>::NAN);
        }
        Ok(())
    })
}

/// `LinalgOp::Svd`. The matrix by rows is its transpose by columns, whose vectors are the conjugates of those wanted,
/// with left and right exchanged.
pub fn svd<T: Element>(x: In<'_>, with_vectors: bool, outs: &mut [Out<'_>]) -> Result<()> {
    let (rows, cols) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let cost = (rows * cols * rows.min(cols) * 5 + 500 * cols) as u64;
    let (values, vectors) = match outs {
        [s] if !with_vectors => (s, None),
        [s, u, vt] if with_vectors => {
            let widths = (matrix(u.shape()).1, matrix(vt.shape()).0);
            (s, Some((Items::<T>::of(u, count), Items::<T>::of(vt, count), widths)))
        }
        _ => bail!(Internal, "svd has other results"),
    };
    let values = Items::<T::R>::of(values, count);
    each(count, cost, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let s = unsafe { values.item(i) };
        let a = nth::<T>(x, count, i);
        let Some((us, vts, (u_width, v_width))) = &vectors else {
            if !T::svd(a, (cols, rows), s, None).map_err(no_memory)? {
                s.fill(<T::R as Real>::NAN);
            }
            return Ok(());
        };
        // SAFETY: as above.
        let (u, vt) = unsafe { (us.item(i), vts.item(i)) };
        let mut scratch = Scratch::new::<T>(rows * u_width)?;
        let work = &mut scratch.of::<T>()[..rows * u_width];
        let both = Some([(&mut *vt, *v_width), (&mut *work, *u_width)]);
        if T::svd(a, (cols, rows), s, both).map_err(no_memory)? {
            work.iter_mut().for_each(|x| *x = x.conjugate());
            transposed(work, *u_width, rows, u);
        } else {
            s.fill(<T::R as Real>::NAN);
            u.fill(not_a_number());
            vt.fill(not_a_number());
        }
        Ok(())
    })
}

/// `LinalgOp::Schur`.
pub fn schur<T: Element>(x: In<'_>, with_vectors: bool, outs: &mut [Out<'_>]) -> Result<()> {
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let (forms, vectors) = match outs {
        [t] if !with_vectors => (t, None),
        [t, z] if with_vectors => (t, Some(Items::<T>::of(z, count))),
        _ => bail!(Internal, "schur has other results"),
    };
    let forms = Items::<T>::of(forms, count);
    each(count, (n * n * n * 10 + 500 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let (form, vectors) = unsafe { (forms.item(i), vectors.as_ref().map(|v| v.item(i))) };
        let mut scratch = Scratch::new::<T>(2 * n * n)?;
        let (t, z) = scratch.of::<T>()[..2 * n * n].split_at_mut(n * n);
        transposed(nth(x, count, i), n, n, t);
        if !T::schur(t, n, vectors.is_some().then_some(&mut *z)).map_err(no_memory)? {
            t.fill(not_a_number());
            z.fill(not_a_number());
        }
        transposed(t, n, n, form);
        if let Some(out) = vectors {
            transposed(z, n, n, out);
        }
        Ok(())
    })
}

/// `LinalgOp::Eig`.
pub fn eig<T: Element>(x: In<'_>, left: bool, right: bool, outs: &mut [Out<'_>]) -> Result<()> {
    type Pair<R> = [R; 2];
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let mut rest = outs.iter_mut();
    let Some(values) = rest.next() else { bail!(Internal, "eig has no results") };
    let values = Items::<Pair<T::R>>::of(values, count);
    let mut next = |on: bool| (if on { rest.next() } else { None }).map(|o| Items::<Pair<T::R>>::of(o, count));
    let (lefts, rights) = (next(left), next(right));
    each(count, (n * n * n * 10 + 1000 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let (values, left, right) =
            unsafe { (values.item(i), lefts.as_ref().map(|l| l.item(i)), rights.as_ref().map(|r| r.item(i))) };
        let mut scratch = Scratch::new::<T>(n * n)?;
        let work = &mut scratch.of::<T>()[..n * n];
        transposed(nth(x, count, i), n, n, work);
        let room = |on: bool| if on { filled([<T::R as Real>::NAN; 2], n * n).map(Some) } else { Ok(None) };
        let mut room = [room(left.is_some()).map_err(no_memory)?, room(right.is_some()).map_err(no_memory)?];
        let [l, r] = &mut room;
        if !T::eig(work, n, values, l.as_deref_mut(), r.as_deref_mut()).map_err(no_memory)? {
            values.fill([<T::R as Real>::NAN; 2]);
            room.iter_mut().flatten().for_each(|v| v.fill([<T::R as Real>::NAN; 2]));
        }
        for (out, v) in [left, right].into_iter().zip(&room) {
            if let (Some(out), Some(v)) = (out, v) {
                transposed(v, n, n, out);
            }
        }
        Ok(())
    })
}
