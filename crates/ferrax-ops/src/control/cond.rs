//! `cond`: runs one of several programs, chosen by an index (`lax.cond`, `lax.switch`).

use super::known::reached;
use super::{
    batch_first, check_args, check_results, dims_of, eval_reference, instantiate_all, mask, or, present, split_linear,
    split_operands, spread,
};
use crate::{clamp, select_n};
use ferrax_base::{Aval, DType, Result, Scalar, bail};
use ferrax_ir::op::{BatchAxis, BatchDims};
use ferrax_ir::trace::works_across;
use ferrax_ir::{Avals, Def, JaxprRef, OpRef, Slot, Special, Tangents, TransposeArg, Value, Values, bind};
use ferrax_loops::{Builder, CompareOp, Graph, Kind, ValueId};
use ferrax_transform::eval_jaxpr;
use ferrax_transform::programs::{LinearProgram, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr};
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::{broadcast_in_dim, zeros};
use smallvec::SmallVec;
use std::sync::Arc;

ferrax_ir::params! {
    /// Parameters of `cond`.
    pub struct Cond {
        /// One program per value of the index; all of one type.
        branches: Vec<JaxprRef>,
    }
}

/// (index: int32 scalar, operands…) → results of the chosen branch; the index is clamped.
pub static COND: Def<Cond> = Def {
    name: "cond",
    doc: "Runs the branch that an index chooses.",
    arity: None,
    shape: cond_shape,
    jvp: Slot::Rule(cond_jvp),
    transpose: Slot::Rule(cond_transpose),
    batch: Slot::Rule(cond_batch),
    simplify: Slot::None("a constant index is resolved while tracing"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, outs| {
        let graphs = p.branches.iter().map(|j| subgraph(j).map(Arc::new)).collect::<Result<Vec<_>>>()?;
        if graphs.iter().all(|g| takes_no_time(g)) {
            return chosen_results(p, b, args);
        }
        let types: Vec<ferrax_loops::Type> = outs.iter().map(ferrax_loops::Type::from).collect();
        Ok(b.push_many(Kind::Switch(graphs), args, &types))
    }),
    reference: Slot::Rule(|p, args, _| {
        let i = args[0].data[0].to_i64().clamp(0, p.branches.len() as i64 - 1) as usize;
        eval_reference(&p.branches[i], &args[1..])
    }),
    special: Special {
        linearize: Some(cond_linearize),
        effects: Some(|p| p.branches.iter().fold(ferrax_ir::Effects::NONE, |e, j| e.union(j.effects))),
        ..Special::NONE
    },
};

fn cond_shape(p: &Cond, args: &[&Aval]) -> Result<Avals> {
    let (index, operands) = split_operands("cond", args, 1)?;
    if index[0].rank() != 0 || index[0].dtype != DType::I32 {
        bail!(Type, "cond's index must be a scalar int32, got {}", index[0]);
    }
    let Some(first) = p.branches.first() else { bail!(Value, "cond needs at least one branch") };
    first.verify()?;
    let outs = first.out_avals();
    for (i, b) in p.branches.iter().enumerate() {
        check_args("cond", b, operands)?;
        check_results(&format!("branch {i} of cond"), &b.out_avals(), &outs, "all must give what branch 0 gives,")?;
    }
    Ok(outs.into())
}

/// Operations and elements of each up to which computing a branch costs less than entering it.
const FEW: (usize, usize) = (12, 16);
/// The same for what the operations take an element, in picoseconds.
const SHORT: u64 = 1500;

/// Whether a branch is a few quick elementwise operations on a few elements.
fn takes_no_time(branch: &Graph) -> bool {
    let cheap =
        |kind: &Kind| kind.is_elementwise() || matches!(kind, Kind::Const(_) | Kind::Broadcast(_) | Kind::Reshape);
    branch.nodes.len() <= FEW.0
        && branch.nodes.iter().all(|n| cheap(&n.kind))
        && branch.nodes.iter().map(|n| n.kind.cost()).sum::<u64>() <= SHORT
        && branch.types.iter().all(|ty| ty.size() <= FEW.1)
}

/// The results of all branches, and of those the ones that the index, clamped, chooses.
fn chosen_results(p: &Cond, b: &mut Builder, args: &[ValueId]) -> Result<SmallVec<[ValueId; 1]>> {
    let mut results = Vec::with_capacity(p.branches.len());
    for branch in &p.branches {
        results.push(super::jit::inline_program(branch, b, &args[1..])?);
    }
    let mut chosen: SmallVec<[ValueId; 1]> = results[0].iter().copied().collect();
    for (k, result) in results.iter().enumerate().skip(1) {
        let from = b.scalar(Scalar::from_i64(DType::I32, k as i64));
        let here = b.compare(CompareOp::Ge, args[0], from);
        chosen.iter_mut().zip(result).for_each(|(x, &y)| *x = b.select(here, *x, y));
    }
    Ok(chosen)
}

/// A program as a graph of its own, constants inside.
pub(crate) fn subgraph(jaxpr: &JaxprRef) -> Result<ferrax_loops::Graph> {
    let mut b = ferrax_loops::Builder::new(jaxpr.in_avals().iter().map(ferrax_loops::Type::from));
    let args: Vec<_> = b.params().collect();
    let outs = super::jit::inline_program(jaxpr, &mut b, &args)?;
    Ok(b.finish(&outs))
}

/// Runs the branch that `index` (a scalar int32) chooses.
pub fn cond(branches: Vec<JaxprRef>, index: &Value, operands: &[Value]) -> Result<Vec<Value>> {
    let args: Vec<Value> = std::iter::once(index.clone()).chain(operands.iter().cloned()).collect();
    Ok(bind(&OpRef::new(&COND, Cond { branches }), &args)?.into_vec())
}

/// Transforms every branch twice: to learn which results any branch needs, then with those in all.
fn uniform<P>(
    branches: &[JaxprRef],
    make: impl Fn(&JaxprRef, &[bool]) -> Result<P>,
    out_mask: impl Fn(&P) -> &[bool],
) -> Result<(Vec<P>, Vec<bool>)> {
    let mut all = vec![false; branches[0].outvars.len()];
    for b in branches {
        all = or(&all, out_mask(&make(b, &vec![false; all.len()])?));
    }
    let made = branches.iter().map(|b| make(b, &all)).collect::<Result<Vec<P>>>()?;
    Ok((made, all))
}

fn cond_jvp(_: &OpRef, p: &Cond, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let nonzero = mask(&tangents[1..]);
    let (programs, nonzero_out) = uniform(&p.branches, |b, inst| jvp_jaxpr(b, &nonzero, inst), |p| &p.nonzero_out)?;
    let operands: Vec<Value> = primals[1..].iter().cloned().chain(present(&tangents[1..])).collect();
    let mut outs = cond(programs.into_iter().map(|p| p.jaxpr).collect(), &primals[0], &operands)?;
    let out_tangents = outs.split_off(nonzero_out.len());
    Ok((outs.into(), spread(out_tangents, &nonzero_out)))
}

/// Which shared residual slot each branch's residuals use, and the slots' avals.
fn share_residuals(programs: &[LinearProgram], outs: usize) -> (Vec<Vec<usize>>, Vec<Aval>) {
    let mut slots: Vec<Aval> = Vec::new();
    let places = programs
        .iter()
        .map(|p| {
            let mut used = vec![false; slots.len()];
            let avals = p.known.out_avals();
            avals[outs..]
                .iter()
                .map(|a| {
                    let free =
                        (0..slots.len()).find(|&i| !used.get(i).copied().unwrap_or(false) && slots[i].same_type(a));
                    let at = free.unwrap_or_else(|| {
                        slots.push(a.with_weak(false));
                        slots.len() - 1
                    });
                    used.resize(slots.len(), false);
                    used[at] = true;
                    at
                })
                .collect()
        })
        .collect();
    (places, slots)
}

fn cond_linearize(_: &OpRef, p: &Cond, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let nonzero = mask(&tangents[1..]);
    let (programs, nonzero_out) =
        uniform(&p.branches, |b, inst| linearize_jaxpr(b, &nonzero, inst), |p| &p.nonzero_out)?;
    let n = nonzero_out.len();
    let (places, slots) = share_residuals(&programs, n);
    let mut known = Vec::new();
    let mut linear = Vec::new();
    for (program, places) in programs.iter().zip(&places) {
        known.push(known_branch(program, places, &slots, n)?);
        linear.push(linear_branch(program, places, &slots)?);
    }
    let mut outs = cond(known, &primals[0], &primals[1..])?;
    let residuals = outs.split_off(n);
    let operands: Vec<Value> = residuals.into_iter().chain(present(&tangents[1..])).collect();
    let out_tangents = cond(linear, &primals[0], &operands)?;
    Ok((outs.into(), spread(out_tangents, &nonzero_out)))
}

/// The known part of a branch with its residuals in the shared slots, zeros in the others.
fn known_branch(program: &LinearProgram, places: &[usize], slots: &[Aval], outs: usize) -> Result<JaxprRef> {
    stage_closed("cond", program.known.debug.clone(), &program.known.in_avals(), |args| {
        let mut values = eval_jaxpr(&program.known, args)?;
        let residuals = values.split_off(outs);
        for (slot, aval) in slots.iter().enumerate() {
            values.push(match places.iter().position(|&p| p == slot) {
                Some(i) => residuals[i].clone(),
                None => zeros(aval)?,
            });
        }
        Ok(values)
    })
}

/// The linear part of a branch taking its residuals from the shared slots.
fn linear_branch(program: &LinearProgram, places: &[usize], slots: &[Aval]) -> Result<JaxprRef> {
    let mut avals = slots.to_vec();
    avals.extend(program.linear.in_avals().split_off(program.residuals));
    stage_closed("cond", program.known.debug.clone(), &avals, |args| {
        let residuals = places.iter().map(|&p| args[p].clone());
        let operands: Vec<Value> = residuals.chain(args[slots.len()..].iter().cloned()).collect();
        eval_jaxpr(&program.linear, &operands)
    })
}

fn cond_transpose(_: &OpRef, p: &Cond, cts: &[Option<Value>], args: &[TransposeArg]) -> Result<Tangents> {
    let index = args[0].known()?.clone();
    let (linear, mut operands) = split_linear(&args[1..]);
    let all = vec![true; cts.len()];
    let programs =
        p.branches.iter().map(|b| Ok(transpose_jaxpr(b, &linear, &all, true)?.jaxpr)).collect::<Result<Vec<_>>>()?;
    operands.extend(instantiate_all(cts, &p.branches[0].out_avals())?);
    let mut pulled = cond(programs, &index, &operands)?.into_iter();
    let given = mask(cts);
    let none = vec![false; linear.len()];
    let found = p.branches.iter().fold(none, |all, b| or(&all, &reached(b, &given)));
    let rest = linear.iter().zip(found).map(|(&l, found)| if l { pulled.next().filter(|_| found) } else { None });
    Ok(std::iter::once(None).chain(rest).collect())
}

fn cond_batch(
    op: &OpRef,
    p: &Cond,
    axis: &BatchAxis,
    args: &[Value],
    dims: &[Option<usize>],
) -> Result<(Values, BatchDims)> {
    let batched = mask(&dims[1..]);
    if dims[0].is_none() {
        let (programs, out) =
            uniform(&p.branches, |b, force| batch_jaxpr(b, axis, &batched, force), |p| &p.batched_out)?;
        let operands = batch_first(&args[1..], &dims[1..], axis.size)?;
        let outs = cond(programs.into_iter().map(|p| p.jaxpr).collect(), &args[0], &operands)?;
        return Ok((outs.into(), dims_of(&out)));
    }
    // Rows that meet in the branches take part in each, all of them.
    let meet = axis.name.as_ref().is_some_and(|name| works_across(&**op, name));
    if !meet && p.branches.iter().any(|b| !b.effects.is_none()) {
        // What a branch shows or does, it does for the rows that choose it.
        let outs = crate::callback::sequential(op, axis, args, dims, 1)?;
        let batched = vec![true; outs.len()];
        return Ok((outs.into(), dims_of(&batched)));
    }
    super::rows::rows_choose(p, axis, args, dims, &batched, meet)
}

/// The index of each row, clamped to those of branches.
pub(super) fn clamped_rows(p: &Cond, axis: &BatchAxis, args: &[Value], dims: &[Option<usize>]) -> Result<Value> {
    let index = batch_first(&args[..1], &dims[..1], axis.size)?.remove(0);
    clamp(&Value::int(DType::I32, 0), &index, &Value::int(DType::I32, p.branches.len() as i64 - 1))
}

/// Of the results of all branches, of whole batches each, every row of the branch that it chooses.
pub(super) fn chosen_rows(index: &Value, cases: &[Vec<Value>]) -> Result<Values> {
    let rows = |i: usize| {
        let which = broadcast_in_dim(index, cases[0][i].shape(), &[0])?;
        let results: Vec<Value> = cases.iter().map(|c| c[i].clone()).collect();
        select_n(&which, &results)
    };
    (0..cases[0].len()).map(rows).collect()
}
