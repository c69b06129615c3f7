//! Operations made of Householder reflections: QR and its products, Hessenberg and tridiagonal forms.

use super::{Items, Scratch, batch, each, matrix, no_memory, nth, transposed};
use crate::elementwise::kernel::{In, Out};
use ferrax_base::{Result, bail};
use ferrax_linalg::{Element, Side};

/// `LinalgOp::Qr`.
pub fn qr<T: Element>(x: In<'_>, pivoted: bool, outs: &mut [Out<'_>]) -> Result<()> {
    let (rows, cols) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let (packed, order, taus) = match outs {
        [packed, taus] if !pivoted => (packed, None, taus),
        [packed, order, taus] if pivoted => (packed, Some(Items::<i32>::of(order, count)), taus),
        _ => bail!(Internal, "qr has other results"),
    };
    let (packed, taus) = (Items::<T>::of(packed, count), Items::<T>::of(taus, count));
    each(count, (rows * cols * rows.min(cols) / 4 + 50 * cols) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let (packed, taus) = unsafe { (packed.item(i), taus.item(i)) };
        let mut scratch = Scratch::new::<T>(rows * cols)?;
        let work = scratch.of::<T>();
        transposed(nth(x, count, i), rows, cols, work);
        match &order {
            None => T::qr(work, rows, cols, taus, share),
            // SAFETY: as above.
            Some(order) => T::qr_pivoted(work, rows, cols, unsafe { order.item(i) }, taus),
        }
        transposed(work, cols, rows, packed);
        Ok(())
    })
}

/// `LinalgOp::HouseholderProduct`.
pub fn product<T: Element>(v: In<'_>, taus: In<'_>, out: &mut Out<'_>) -> Result<()> {
    let (rows, width) = matrix(v.shape());
    let (_, cols) = matrix(out.shape());
    let count = batch(v.shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (rows * cols * width / 4 + 50 * cols) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let q = unsafe { results.item(i) };
        let mut scratch = Scratch::new::<T>(rows * (cols + width))?;
        let (work, basis) = scratch.of::<T>().split_at_mut(rows * cols);
        transposed(nth(v, count, i), rows, width, basis);
        work.fill(T::ZERO);
        (0..rows.min(cols)).for_each(|k| work[k * rows + k] = T::ONE);
        T::reflect(basis, nth(taus, count, i), work, (rows, cols), Side::Left, false, share);
        transposed(work, cols, rows, q);
        Ok(())
    })
}

/// `LinalgOp::Reflect`.
pub fn reflect<T: Element>(ins: &[In<'_>], left: bool, adjoint: bool, out: &mut Out<'_>) -> Result<()> {
    let (height, width) = matrix(ins[0].shape());
    let (rows, cols) = matrix(out.shape());
    let count = batch(out.shape(), 2);
    let results = Items::<T>::of(out, count);
    each(count, (rows * cols * width / 4 + 50 * cols) as u64, &|i, share| {
        // SAFETY: each task has a matrix of its own.
        let c = unsafe { results.item(i) };
        let mut scratch = Scratch::new::<T>(rows * cols + height * width)?;
        let (work, basis) = scratch.of::<T>().split_at_mut(rows * cols);
        transposed(nth(ins[0], count, i), height, width, basis);
        transposed(nth(ins[2], count, i), rows, cols, work);
        let side = if left { Side::Left } else { Side::Right };
        T::reflect(basis, nth(ins[1], count, i), work, (rows, cols), side, adjoint, share);
        transposed(work, cols, rows, c);
        Ok(())
    })
}

/// `LinalgOp::Hessenberg`.
pub fn hessenberg<T: Element>(x: In<'_>, outs: &mut [Out<'_>]) -> Result<()> {
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let [packed, taus] = outs else { bail!(Internal, "hessenberg has two results") };
    let (packed, taus) = (Items::<T>::of(packed, count), Items::<T>::of(taus, count));
    each(count, (n * n * n * 2 + 50 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let (packed, taus) = unsafe { (packed.item(i), taus.item(i)) };
        let mut scratch = Scratch::new::<T>(n * n)?;
        let work = scratch.of::<T>();
        transposed(nth(x, count, i), n, n, work);
        T::hessenberg(work, n, taus);
        transposed(work, n, n, packed);
        Ok(())
    })
}

/// `LinalgOp::Tridiagonal`.
pub fn tridiagonal<T: Element>(x: In<'_>, lower: bool, outs: &mut [Out<'_>]) -> Result<()> {
    let (n, _) = matrix(x.shape());
    let count = batch(x.shape(), 2);
    let [packed, d, e, taus] = outs else { bail!(Internal, "tridiagonal has four results") };
    let (packed, taus) = (Items::<T>::of(packed, count), Items::<T>::of(taus, count));
    let (d, e) = (Items::<T::R>::of(d, count), Items::<T::R>::of(e, count));
    each(count, (n * n * n * 2 + 50 * n) as u64, &|i, _| {
        // SAFETY: each task has a matrix of its own.
        let (packed, d, e, taus) = unsafe { (packed.item(i), d.item(i), e.item(i), taus.item(i)) };
        let mut scratch = Scratch::new::<T>(n * n)?;
        let work = scratch.of::<T>();
        transposed(nth(x, count, i), n, n, work);
        T::tridiagonal(work, n, lower, d, e, taus).map_err(no_memory)?;
        transposed(work, n, n, packed);
        Ok(())
    })
}
