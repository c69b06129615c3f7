//! `vmap` of `cond`: rows that choose different branches.
//!
//! A branch that costs little is computed for every row, and rows are selected. Any other branch is computed for the rows
//! that choose it and for no other: these rows come first, by a stable sort, and a scan takes a few of them at a time and
//! skips what is left. So one row of many costs as much as one, a host function is called for the rows that ask for it, a
//! loop that ends for every row that chooses it ends, and no row's values meet a branch that the row has not chosen.
//! The last rows of a scan's step are the last chosen row again. Read next: [`super::cond`].

use super::cond::{Cond, chosen_rows, clamped_rows, cond, subgraph};
use super::scan::{Scan, scan};
use super::{Loop, batch_where, dims_of};
use crate::elementwise::identity::stop_gradient;
use crate::gather_scatter::{GatherOptions, take};
use crate::shape::reshape;
use crate::sort::argsort;
use crate::{convert_element_type, cumsum, eq, iota, lt, max, min, mul, select_n, sub};
use ferrax_base::shape::total;
use ferrax_base::{Aval, DType, Result};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::{JaxprRef, Value, Values};
use ferrax_transform::eval_jaxpr;
use ferrax_transform::programs::batch_jaxpr;
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{broadcast_in_dim, reduce_sum, zeros};

/// Nanoseconds that a step of the scan is worth: its own cost is a small part of it.
const STEP: u64 = 20_000;

/// Applies branches to a batch of which each row has an index of its own: branches without effects, or whose rows `meet`.
pub(super) fn rows_choose(
    p: &Cond,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
    batched: &[bool],
    meet: bool,
) -> Result<(Values, BatchDims)> {
    let all = vec![true; p.branches[0].outvars.len()];
    let operands = batch_where(&args[1..], &dims[1..], batched, axis)?;
    let index = clamped_rows(p, axis, args, dims)?;
    let mut cases = Vec::new();
    for (i, branch) in p.branches.iter().enumerate() {
        let chosen = eq(&index, &Value::int(DType::I32, i as i64))?;
        let few = if meet { None } else { rows_at_once(branch, axis.size) };
        cases.push(match few {
            None => {
                let guarded = guarded(&chosen, &operands, batched)?;
                eval_jaxpr(&batch_jaxpr(branch, axis, batched, &all)?.jaxpr, &guarded)?
            }
            Some(few) => Chosen::new(&chosen, few)?.results(branch, axis, &operands, batched)?,
        });
    }
    Ok((chosen_rows(&index, &cases)?, dims_of(&all)))
}

/// The operands of a branch that is applied to all rows: derivatives go through those of rows that have chosen it alone,
/// since the others' may be infinite, and 0 times that is NaN.
fn guarded(chosen: &Value, operands: &[Value], batched: &[bool]) -> Result<Vec<Value>> {
    let guard = |(x, &on): (&Value, &bool)| {
        if !on || !x.dtype().is_inexact() {
            return Ok(x.clone());
        }
        select_n(&broadcast_in_dim(chosen, x.shape(), &[0])?, &[stop_gradient(x)?, x.clone()])
    };
    operands.iter().zip(batched).map(guard).collect()
}

/// How many rows a branch takes at once where it is computed for those that choose it; `None` where computing all `n` rows
/// costs less than to find them.
fn rows_at_once(branch: &JaxprRef, n: usize) -> Option<usize> {
    let few = |time: u64| ((STEP / time.max(1)) as usize).clamp(1, n.max(1));
    let Ok(graph) = subgraph(branch) else {
        // Only a transformation gives it a kernel: nobody knows what it costs.
        return Some(1);
    };
    if graph.calls_host() {
        return Some(1);
    }
    let time = graph.time();
    let moved = total(graph.param_types().iter().map(ferrax_loops::Type::size));
    let dear = time.saturating_mul(n as u64) > STEP && time > (moved as u64).saturating_mul(4);
    (dear || !graph.surely_ends()).then(|| few(time))
}

/// The rows that have chosen a branch, in steps of a few.
struct Chosen {
    few: usize,
    steps: usize,
    /// The rows in the order of the steps: those that have chosen, then the last of them again and again.
    rows: Value,
    /// Of each row its place in that order, if it has chosen.
    place: Value,
    /// Whether a step has a row to do, as 0 or 1.
    live: Value,
}

impl Chosen {
    fn new(chosen: &Value, few: usize) -> Result<Chosen> {
        let (n, int) = (chosen.shape()[0], |v: usize| Value::int(DType::I32, v as i64));
        let steps = n.div_ceil(few);
        let numbers = convert_element_type(chosen, DType::I32)?;
        let count = reduce_sum(&numbers, &[0])?;
        let spread = |x: &Value, n: usize| broadcast_in_dim(x, &[n], &[]);
        let first = argsort(&sub(&spread(&int(1), n)?, &numbers)?, 0, true, DType::I32)?;
        let last = max(&sub(&count, &int(1))?, &int(0))?;
        let at = min(&iota(DType::I32, &[steps * few], 0)?, &spread(&last, steps * few)?)?;
        let rows = take(&first, &at, 0, GatherOptions::default())?;
        let place = sub(&cumsum(&numbers, 0, false)?, &spread(&int(1), n)?)?;
        let place = max(&place, &spread(&int(0), n)?)?;
        let starts = mul(&iota(DType::I32, &[steps], 0)?, &spread(&int(few), steps)?)?;
        let live = convert_element_type(&lt(&starts, &spread(&count, steps)?)?, DType::I32)?;
        Ok(Chosen { few, steps, rows, place, live })
    }

    /// The results of the rows that have chosen; those of others are any.
    fn results(&self, branch: &JaxprRef, axis: &BatchAxis, operands: &[Value], batched: &[bool]) -> Result<Vec<Value>> {
        let Chosen { few, steps, .. } = *self;
        let all = vec![true; branch.outvars.len()];
        let step_axis = BatchAxis { size: few, ..axis.clone() };
        let run = batch_jaxpr(branch, &step_axis, batched, &all)?.jaxpr;
        let outs = run.out_avals();
        let skip = stage_closed("vmap", branch.debug.clone(), &run.in_avals(), |_| outs.iter().map(zeros).collect())?;
        // Constants of the scan are what all rows share, in front; its inputs are the rows of the others.
        let (mut shared, mut stacked) = (Vec::new(), Vec::new());
        for (x, &on) in operands.iter().zip(batched) {
            if !on {
                shared.push(x.clone());
                continue;
            }
            let rows = take(x, &self.rows, 0, GatherOptions::default())?;
            let shape: Vec<usize> = [steps, few].into_iter().chain(x.shape()[1..].iter().copied()).collect();
            stacked.push(reshape(&rows, &shape)?);
        }
        let rows: Vec<Aval> = stacked.iter().map(|x| x.aval().with_shape(&x.shape()[1..])).collect();
        let avals: Vec<Aval> = shared.iter().map(Value::aval).chain([Aval::scalar(DType::I32)]).chain(rows).collect();
        let body = stage_closed("vmap", branch.debug.clone(), &avals, |args| {
            let (mut fixed, mut rows) = (args[..shared.len()].iter(), args[shared.len() + 1..].iter());
            let operands = batched.iter().filter_map(|&on| if on { rows.next() } else { fixed.next() });
            cond(vec![skip, run], &args[shared.len()], &operands.cloned().collect::<Vec<_>>())
        })?;
        let args: Vec<Value> = shared.iter().cloned().chain([self.live.clone()]).chain(stacked).collect();
        let params = Scan {
            jaxpr: body,
            length: steps,
            num_carry: 0,
            num_consts: shared.len(),
            reverse: false,
            unroll: 1,
            linear_carry: false,
            of: Loop::INNER,
        };
        let in_order = |y: Value| {
            let shape: Vec<usize> = std::iter::once(steps * few).chain(y.shape()[2..].iter().copied()).collect();
            take(&reshape(&y, &shape)?, &self.place, 0, GatherOptions::default())
        };
        scan(params, &args)?.into_iter().map(in_order).collect()
    }
}
