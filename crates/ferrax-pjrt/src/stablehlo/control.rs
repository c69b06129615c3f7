//! Loops, branches and calls.
//!
//! Nested graphs are functions of the module, called from the regions: each is printed once, however often it is used.
//! Everything that a loop's regions need is carried by the loop.

use super::body::{Body, Val};
use ferrax_base::{DType, Result, Scalar, bail};
use ferrax_loops::{BinaryOp, Graph, Kind, Type, ValueId};
use std::sync::Arc;

pub(super) fn node(body: &mut Body<'_, '_>, kind: &Kind, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    match kind {
        Kind::Call(graph) => match body.module.notes(graph) {
            None => match body.module.lies(graph) {
                Some((name, how)) => Ok(vec![body.op(name, &[&inputs[0]], &how, &types[0])]),
                None => body.call(graph, inputs),
            },
            Some((notes, None)) => {
                let results = body.inline(graph, inputs)?;
                body.note("notes", &results, &notes);
                Ok(results)
            }
            Some((notes, Some(composite))) => {
                let results = body.call(graph, inputs)?;
                body.note("notes", &results, &notes);
                body.note("composite", &results, &composite);
                Ok(results)
            }
        },
        Kind::Switch(branches) => switch(body, branches, inputs, types),
        Kind::While { cond, body: step, cond_consts, body_consts } => {
            while_loop(body, (cond, *cond_consts), (step, *body_consts), inputs)
        }
        Kind::Scan { body: step, length, reverse, consts, carry } => {
            let scan = Scan { step, length: *length, reverse: *reverse, consts: *consts, carry: *carry };
            scan.print(body, inputs, types)
        }
        other => bail!(Internal, "{other:?} has no nested graph"),
    }
}

fn switch(body: &mut Body<'_, '_>, branches: &[Arc<Graph>], inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
    let (index, args) = (&inputs[0], &inputs[1..]);
    if let [only] = branches {
        return body.call(only, args);
    }
    // Indices outside all choose the last branch in XLA.
    let (low, high) = (body.like(index, 0.0), body.like(index, (branches.len() - 1) as f64));
    let index = body.op("stablehlo.clamp", &[&low, index, &high], "", &index.ty);
    let regions =
        branches.iter().map(|b| body.region(&[], |body, _| body.call(b, args))).collect::<Result<Vec<_>>>()?;
    Ok(body.ops("stablehlo.case", &[&index], &format!("({})", regions.join(", ")), types))
}

/// A loop over carried values; those that `step` does not give are handed on.
pub(super) fn loop_over(
    body: &mut Body<'_, '_>,
    carried: &[Val],
    cond: impl FnOnce(&mut Body<'_, '_>, &[Val]) -> Result<Val>,
    step: impl FnOnce(&mut Body<'_, '_>, &[Val]) -> Result<Vec<Val>>,
) -> Result<Vec<Val>> {
    let types: Vec<Type> = carried.iter().map(|v| v.ty.clone()).collect();
    let cond = body.region(&types, |body, now| cond(body, now).map(|go| vec![go]))?;
    let step = body.region(&types, step)?;
    Ok(body.ops("stablehlo.while", &carried.iter().collect::<Vec<_>>(), &format!("({cond}, {step})"), &types))
}

fn while_loop(
    body: &mut Body<'_, '_>,
    (cond, cond_consts): (&Arc<Graph>, usize),
    (step, body_consts): (&Arc<Graph>, usize),
    inputs: &[Val],
) -> Result<Vec<Val>> {
    let consts = cond_consts + body_consts;
    let results = loop_over(
        body,
        inputs,
        |body, now| {
            let hidden = now[consts..].iter().enumerate().map(|(k, v)| hidden_count(body, step, body_consts + k, k, v));
            let hidden: Vec<Val> = hidden.collect();
            let args: Vec<Val> = now[..cond_consts].iter().chain(&hidden).cloned().collect();
            Ok(body.call(cond, &args)?.swap_remove(0))
        },
        |body, now| {
            let next = body.call(step, &now[cond_consts..])?;
            Ok(now[..consts].iter().cloned().chain(next).collect())
        },
    )?;
    Ok(results[consts..].to_vec())
}

/// A carried value as a loop's condition sees it: behind a barrier where it may be a count in steps other than one, whose
/// turns XLA counts wrongly (`while i < 1: i += 2` from 0 has none there, in JAX as well).
fn hidden_count(body: &mut Body<'_, '_>, step: &Graph, param: usize, result: usize, now: &Val) -> Val {
    let (param, next) = (ValueId(param as u32), step.outputs[result]);
    let one = |v: &ValueId| match step.maker(*v).map(|n| &n.kind) {
        Some(Kind::Const(c)) => c.to_i64().unsigned_abs() == 1,
        _ => false,
    };
    let by_one = step.maker(next).is_some_and(|n| {
        matches!(n.kind, Kind::Binary(BinaryOp::Add | BinaryOp::Sub))
            && n.inputs.contains(&param)
            && n.inputs.iter().any(one)
    });
    if by_one || next == param || !now.shape().is_empty() || !now.dtype().is_integer() {
        return now.clone();
    }
    body.op("stablehlo.optimization_barrier", &[now], "", &now.ty)
}

struct Scan<'n> {
    step: &'n Arc<Graph>,
    length: usize,
    reverse: bool,
    consts: usize,
    carry: usize,
}

impl Scan<'_> {
    fn print(&self, body: &mut Body<'_, '_>, inputs: &[Val], types: &[Type]) -> Result<Vec<Val>> {
        let (consts, rest) = inputs.split_at(self.consts);
        let (init, xs) = rest.split_at(self.carry);
        let stacked = &types[self.carry..];
        let zeros = |body: &mut Body<'_, '_>| {
            stacked.iter().map(|ty| body.splat(Scalar::zero(ty.dtype), &ty.shape)).collect::<Vec<Val>>()
        };
        match self.length {
            0 => {
                let ys = zeros(body);
                return Ok(init.iter().cloned().chain(ys).collect());
            }
            1 => {
                let rows: Vec<Val> = xs.iter().map(|x| body.reshape(x, &x.shape()[1..])).collect();
                let args: Vec<Val> = consts.iter().chain(init).chain(&rows).cloned().collect();
                let results = body.call(self.step, &args)?;
                let shaped = results.iter().zip(types).map(|(r, ty)| body.reshape(r, &ty.shape));
                return Ok(shaped.collect());
            }
            _ => {}
        }
        let index = if i32::try_from(self.length).is_ok() { DType::I32 } else { DType::I64 };
        let first = body.splat(Scalar::zero(index), &[]);
        let ys = zeros(body);
        // The step's number, what stays, what changes, what is filled.
        let carried: Vec<Val> = [&first].into_iter().chain(consts).chain(xs).chain(init).chain(&ys).cloned().collect();
        let results = loop_over(
            body,
            &carried,
            |body, now| {
                let length = body.splat(Scalar::from_i64(index, self.length as i64), &[]);
                Ok(body.compare("LT", &now[0], &length))
            },
            |body, now| self.step(body, now, xs.len()),
        )?;
        Ok(results[1 + consts.len() + xs.len()..].to_vec())
    }

    fn step(&self, body: &mut Body<'_, '_>, now: &[Val], count: usize) -> Result<Vec<Val>> {
        let (number, rest) = (&now[0], &now[1..]);
        let (stays, changes) = rest.split_at(self.consts + count);
        let (consts, xs) = stays.split_at(self.consts);
        let (carry, ys) = changes.split_at(self.carry);
        let at = if self.reverse {
            let last = body.splat(Scalar::from_i64(number.dtype(), self.length as i64 - 1), &[]);
            body.bin("stablehlo.subtract", &last, number)
        } else {
            number.clone()
        };
        let zero = body.like(number, 0.0);
        let mut rows = Vec::new();
        for x in xs {
            let mut shape = x.shape().to_vec();
            shape[0] = 1;
            let mut starts = vec![&at];
            starts.resize(shape.len(), &zero);
            let row = body.dynamic_slice(x, &starts, &shape);
            rows.push(body.reshape(&row, &shape[1..]));
        }
        let args: Vec<Val> = consts.iter().chain(carry).chain(&rows).cloned().collect();
        let results = body.call(self.step, &args)?;
        let (next, given) = results.split_at(self.carry);
        let mut filled = Vec::new();
        for (y, row) in ys.iter().zip(given) {
            if y.ty.size() == 0 {
                filled.push(y.clone());
                continue;
            }
            let mut shape = y.shape().to_vec();
            shape[0] = 1;
            let row = body.reshape(row, &shape);
            let mut operands = vec![y, &row, &at];
            operands.resize(2 + shape.len(), &zero);
            filled.push(body.op("stablehlo.dynamic_update_slice", &operands, "", &y.ty));
        }
        let one = body.like(number, 1.0);
        let number = body.bin("stablehlo.add", number, &one);
        Ok([&number].into_iter().chain(stays).chain(next).chain(&filled).cloned().collect())
    }
}
