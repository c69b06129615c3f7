//! Which axes of a result `vmap` has added, for the reports of the checks of numbers: which row is it?
//!
//! A traced value has the axes noted with its variable ([`ferrax_ir::Trace::note_mapped`]), once its operation has been
//! batched. An operation that runs at once reports before that, so what is being batched, or pulled back through, is kept
//! per thread: a report does the operation again, without the checks, and sees which axis of its result is whose.
//!
//! Read next: `ferrax/src/blame.rs`, which asks.

use crate::eval::MappedVars;
use ferrax_base::Aval;
use ferrax_base::config::checks_numbers;
use ferrax_ir::op::BatchAxis;
use ferrax_ir::{Mapped, OpRef, Payload, Value, Var};
use std::cell::RefCell;

/// An operation in progress.
enum Step {
    /// It is being batched: operands and their batch axes.
    Batch { op: OpRef, axis: BatchAxis, values: Vec<Value>, dims: Vec<Option<usize>> },
    /// Cotangents of these shapes are being made, with these mapped axes.
    Pull(Vec<(Aval, Vec<Mapped>)>),
}

thread_local! {
    static STEPS: RefCell<Vec<Step>> = const { RefCell::new(Vec::new()) };
}

/// Ends a step when dropped.
pub(crate) struct Ending(());

impl Drop for Ending {
    fn drop(&mut self) {
        STEPS.with_borrow_mut(|steps| drop(steps.pop()));
    }
}

fn start(step: Step) -> Ending {
    STEPS.with_borrow_mut(|steps| steps.push(step));
    Ending(())
}

/// Says that an operation is being batched, under the checks.
pub(crate) fn batching(op: &OpRef, axis: &BatchAxis, values: &[Value], dims: &[Option<usize>]) -> Option<Ending> {
    if !checks_numbers() || !op.effects().is_none() || !op.subjaxprs().is_empty() {
        return None;
    }
    Some(start(Step::Batch { op: op.clone(), axis: axis.clone(), values: values.to_vec(), dims: dims.to_vec() }))
}

/// Pulling cotangents back to variables.
pub(crate) struct Pulling;

impl Pulling {
    /// Says that cotangents are being made by an operation of these variables, when some have mapped axes.
    pub(crate) fn start(mapped: &MappedVars<'_>, vars: impl Iterator<Item = Var>, avals: &[Aval]) -> Option<Ending> {
        if mapped.is_empty() {
            return None;
        }
        let axes = |v: Var| mapped.get(v).iter().map(|m| (*m).clone()).collect::<Vec<_>>();
        let all = vars.map(|v| (avals[v.0 as usize].clone(), axes(v))).filter(|(_, axes)| !axes.is_empty());
        Some(start(Step::Pull(all.collect())))
    }

    /// Notes the axes of a cotangent of `v`: those of the variable, or of a result of the operation with its shape.
    pub(crate) fn note(
        mapped: &MappedVars<'_>,
        v: Var,
        mut results: impl Iterator<Item = Var>,
        avals: &[Aval],
        ct: &Value,
    ) {
        if mapped.is_empty() {
            return;
        }
        let shape = |v: Var| &avals[v.0 as usize].shape;
        let like = |r: &Var| !mapped.get(*r).is_empty() && shape(*r) == shape(v);
        let of = if mapped.get(v).is_empty() { results.find(like) } else { Some(v) };
        of.iter().for_each(|of| mapped.note(*of, ct));
    }
}

/// The mapped axes, outer ones first, of a result of this shape that an operation has just given.
///
/// Rules are asked again, so the caller has switched the checks off.
pub fn axes_of_result(shape: &[usize]) -> Vec<Mapped> {
    // what is asked pushes steps of its own
    let steps = STEPS.with_borrow_mut(std::mem::take);
    let mut found = Vec::new();
    for step in steps.iter().rev() {
        match step {
            Step::Batch { op, axis, values, dims } => {
                let Ok((outs, dims)) = op.batch(op, axis, values, dims) else { continue };
                let at = outs.iter().zip(&dims).find_map(|(out, d)| d.and_then(|d| whole_axis(out, d, shape)));
                found.extend(at.map(|at| Mapped { at, name: axis.name.clone() }));
            }
            Step::Pull(all) => {
                let same = all.iter().find(|(aval, _)| aval.shape.as_slice() == shape);
                found.extend(same.map(|(_, axes)| axes.clone()).unwrap_or_default());
            }
        }
    }
    STEPS.set(steps);
    found
}

/// Where an axis of a value is in the array behind it, when that has this shape.
fn whole_axis(value: &Value, at: usize, shape: &[usize]) -> Option<usize> {
    match value {
        Value::Tracer(t) => match t.payload() {
            Payload::Jvp { primal, .. } => whole_axis(primal, at, shape),
            Payload::Batched { value, axis } => {
                whole_axis(value, at + usize::from(axis.is_some_and(|outer| outer <= at)), shape)
            }
            Payload::Staged(_) | Payload::Hosted(_) => None,
        },
        _ => (value.shape() == shape).then_some(at),
    }
}
