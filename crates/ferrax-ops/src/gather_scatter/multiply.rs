//! Derivatives of `scatter-mul`, whose updates may meet in one element.
//!
//! The slope of an element by one of its updates is the operand times the *other* updates of that element. Where
//! windows do not overlap there are none. Elsewhere the updates are sorted by the element that they reach, and the
//! products of those before and after each are running products inside of equal elements, by doubling distances:
//! no division, so that zeros have their slopes, and those theirs. Read next: [`scatter`](mod@super::scatter).

use super::gather::GatherOptions;
use super::scatter::{ScatterParams, again, read_windows};
use super::take;
use crate::common::{constant, stretch, sum_tangents};
use crate::shape::{iota, reshape};
use crate::slice::{PadDim, pad};
use crate::sort::{argsort, sort};
use crate::{add, eq, mul, select};
use ferrax_base::{DType, Result, bail, symbolic};
use ferrax_ir::trace::bind1;
use ferrax_ir::{OpRef, Tangents, TransposeArg, Value, Values};
use ferrax_loops::{IndexMode, ScatterOp};
use ferrax_transform::structural::zeros;
use smallvec::smallvec;

/// How many updates can meet in one element: one of each window that is written into one array of a batch.
fn most_in_one_element(p: &ScatterParams, indices: &Value) -> usize {
    let Some((_, windows)) = indices.shape().split_last() else { return 1 };
    let batch = &p.dimension_numbers.0.scatter_indices_batching_dims;
    ferrax_base::shape::product(windows.iter().enumerate().filter(|(i, _)| !batch.contains(i)).map(|(_, &n)| n))
}

pub(super) fn mul_jvp(
    op: &OpRef,
    p: &ScatterParams,
    primals: &[Value],
    tangents: &[Option<Value>],
) -> Result<(Values, Tangents)> {
    let out = bind1(op, primals)?;
    let [x, indices, updates] = primals else { bail!(Internal, "scatter takes three operands") };
    let by_x = match &tangents[0] {
        Some(g) => Some(again(p, ScatterOp::Mul, g, indices, updates)?),
        None => None,
    };
    let by_updates = match &tangents[2] {
        Some(g) => {
            let most = most_in_one_element(p, indices);
            let g = if p.unique_indices || most <= 1 { g.clone() } else { mul(g, &others(p, primals, most)?)? };
            Some(mul(x, &again(p, ScatterOp::Add, &zeros(&x.aval())?, indices, &g)?)?)
        }
        None => None,
    };
    Ok((smallvec![out], smallvec![sum_tangents(by_x, by_updates)?]))
}

/// For each update the product of the others that reach the same element, of which there are at most `most` in all;
/// 1 for updates that are dropped.
fn others(p: &ScatterParams, primals: &[Value], most: usize) -> Result<Value> {
    let [x, indices, updates] = primals else { bail!(Internal, "scatter takes three operands") };
    symbolic::check_number("the derivative of scatter_mul", &[x.shape(), indices.shape(), updates.shape()].concat())?;
    let size = x.size();
    let count = updates.size();
    let dtype = if u32::try_from(size.max(count)).is_ok_and(|n| n < u32::MAX) { DType::U32 } else { DType::U64 };
    // Elements are numbered from 1, so that updates that are dropped read 0.
    let number = add(&iota(dtype, &[size], 0)?, &Value::int(dtype, 1))?;
    let number = read_windows(p, &reshape(&number, x.shape())?, indices, updates.shape())?;
    let number = reshape(&number, &[count])?;
    let one = stretch(&constant(updates, 1.0), &[count])?;
    let dropped = eq(&number, &zeros(&number.aval())?)?;
    let factors = select(&dropped, &one, &reshape(updates, &[count])?)?;

    let mut sorted = sort(&[number, iota(dtype, &[count], 0)?], 0, true, 1)?;
    let (Some(order), Some(number)) = (sorted.pop(), sorted.pop()) else { bail!(Internal, "sort gave no result") };
    let whole = GatherOptions { mode: IndexMode::PromiseInBounds, unique: true, ..GatherOptions::default() };
    let factors = take(&factors, &order, 0, whole)?;
    let before = product_of_neighbours(&number, &factors, &one, most, Side::Before)?;
    let after = product_of_neighbours(&number, &factors, &one, most, Side::After)?;
    let places = argsort(&order, 0, true, dtype)?;
    reshape(&take(&mul(&before, &after)?, &places, 0, whole)?, updates.shape())
}

#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// For each place of sorted numbers the product of the factors at places before, or after, with an equal number.
fn product_of_neighbours(number: &Value, factors: &Value, one: &Value, most: usize, side: Side) -> Result<Value> {
    let moved = |v: &Value, by: usize, fill: &Value| {
        let by = i64::try_from(by.min(v.shape()[0])).unwrap_or(i64::MAX);
        let (low, high) = if matches!(side, Side::Before) { (by, -by) } else { (-by, by) };
        pad(v, fill, &[PadDim(low, high, 0)])
    };
    let from = |v: &Value, by: usize| {
        let same = eq(number, &moved(number, by, &Value::int(number.dtype(), 0))?)?;
        select(&same, &moved(v, by, &constant(v, 1.0))?, one)
    };
    let mut product = from(factors, 1)?;
    let mut reached = 1;
    while reached + 1 < most {
        product = mul(&product, &from(&product, reached)?)?;
        reached *= 2;
    }
    Ok(product)
}

pub(super) fn mul_transpose(
    _: &OpRef,
    p: &ScatterParams,
    cts: &[Option<Value>],
    args: &[TransposeArg],
) -> Result<Tangents> {
    let Some(ct) = &cts[0] else { return Ok(smallvec![None, None, None]) };
    let indices = args[1].known()?;
    if args[0].is_linear() {
        return Ok(smallvec![Some(again(p, ScatterOp::Mul, ct, indices, args[2].known()?)?), None, None]);
    }
    if !p.unique_indices {
        bail!(NotImplemented, "scatter_mul is linear in its updates only if `unique_indices=True`");
    }
    let read = read_windows(p, &mul(ct, args[0].known()?)?, indices, &args[2].aval().shape)?;
    Ok(smallvec![None, None, Some(read)])
}
