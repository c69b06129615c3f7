//! Batching: every value travels with the position of its mapped axis, and each operation's batching rule turns
//! it into one operation on the whole batch.

use crate::structural::{broadcast_batch, move_axis};
use ferrax_base::config::checks_numbers;
use ferrax_base::{Aval, Error, ErrorKind, Result, bail, error};
use ferrax_ir::op::BatchAxis;
use ferrax_ir::trace::{AxisGuard, CurrentGuard, MappingGuard, is_innermost_manual, works_across};
use ferrax_ir::{
    DebugInfo, Mapped, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value, Values, bind, manual, spread,
};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The mapped axis of a `vmap`.
pub type VmapAxis = BatchAxis;

thread_local! {
    /// The family of the trace that is batching an operation.
    static FAMILY: Cell<Option<TraceId>> = const { Cell::new(None) };
}

/// The `vmap` whose trace is batching an operation, for rules that run functions of the user over the batch once more:
/// what these functions closed over belongs to it.
#[derive(Clone, Copy)]
pub struct Family(Option<TraceId>);

impl Family {
    /// That of the batching rule in progress.
    pub fn current() -> Self {
        Self(FAMILY.get())
    }
}

/// Puts the family of an outer rule back when dropped.
struct Outer(Option<TraceId>);

impl Drop for Outer {
    fn drop(&mut self) {
        FAMILY.set(self.0);
    }
}

/// A vmap trace.
pub struct BatchTrace {
    id: TraceId,
    family: TraceId,
    live: AtomicBool,
    debug: DebugInfo,
    axis: BatchAxis,
}

impl Trace for BatchTrace {
    fn id(&self) -> TraceId {
        self.id
    }

    fn family(&self) -> TraceId {
        self.family
    }

    fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    fn process(&self, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
        let mut values: SmallVec<[Value; 4]> = SmallVec::with_capacity(args.len());
        let mut dims: SmallVec<[Option<usize>; 4]> = SmallVec::with_capacity(args.len());
        for a in args {
            let (v, d) = self.split(a);
            values.push(v);
            dims.push(d);
        }
        let named = self.axis.name.as_ref().is_some_and(|n| works_across(&**op, n));
        let vary = self.varying(op, args);
        let marks = self.marks(op, args)?;
        let mark = |i: usize| marks.get(i).copied().unwrap_or_default();
        let unrecorded = op.is_unrecorded();
        if unrecorded && self.axis.manual != 0 {
            // only its program says which of its results vary over the axis
            if let Some((op, args)) = op.stage(op, args).transpose()? {
                return bind(&op, &args);
            }
        }
        if dims.iter().all(Option::is_none) && !named && !unrecorded {
            let outs = bind(op, &values)?;
            return Ok(outs.into_iter().enumerate().map(|(i, v)| join(this, v, None, vary(i), mark(i))).collect());
        }
        let _outside = unrecorded.then(|| MappingGuard::outside(self.id));
        crate::eval::check_params(op, args)?;
        let _outer = Outer(FAMILY.replace(Some(self.family)));
        let step = crate::mapped::batching(op, &self.axis, &values, &dims);
        let (outs, dims) = op.batch(op, &self.axis, &values, &dims).map_err(|error| of_one_example(op, args, error))?;
        drop(step);
        if outs.len() != dims.len() {
            return Err(error!(
                Internal,
                "the batching rule of {} gave {} axes for {} results",
                op.name(),
                dims.len(),
                outs.len()
            ));
        }
        if checks_numbers() {
            for (v, at) in outs.iter().zip(&dims) {
                at.iter().for_each(|&at| v.note_mapped(&Mapped { at, name: self.axis.name.clone() }));
            }
        }
        let outs = outs.into_iter().zip(dims).enumerate();
        Ok(outs.map(|(i, (v, d))| join(this, v, d, vary(i), mark(i))).collect())
    }

    fn transform(&self) -> &'static str {
        "vmap"
    }

    fn debug(&self) -> &DebugInfo {
        &self.debug
    }

    fn explain(&self, tracer: &Tracer) -> Option<String> {
        match tracer.payload() {
            Payload::Batched { value: Value::Tracer(t), .. } => t.trace().explain(t),
            _ => None,
        }
    }

    fn note_mapped(&self, tracer: &Tracer, axis: &Mapped) {
        if let Payload::Batched { value, axis: own } = tracer.payload() {
            let at = axis.at + usize::from(own.is_some_and(|own| own <= axis.at));
            value.note_mapped(&Mapped { at, name: axis.name.clone() });
        }
    }
}

/// The error of an operation that does not take the operands of one example: rules see whole batches, users do not.
#[cold]
fn of_one_example(op: &OpRef, args: &[Value], error: Error) -> Error {
    let about_operands = |e: &Error| matches!(&*e.0, ErrorKind::Type(_) | ErrorKind::Value(_));
    if !about_operands(&error) {
        return error;
    }
    let avals: SmallVec<[Aval; 4]> = args.iter().map(Value::aval).collect();
    let refs: SmallVec<[&Aval; 4]> = avals.iter().collect();
    match op.abstract_eval(&refs) {
        Err(own) if about_operands(&own) => own,
        _ => error,
    }
}

impl BatchTrace {
    /// For each result of an operation the bit of the axis, when it is a manual one and the result varies over it.
    fn varying(&self, op: &OpRef, args: &[Value]) -> impl Fn(usize) -> u32 + use<> {
        let own = self.axis.manual;
        let any = if own == 0 { 0 } else { args.iter().fold(0, |bits, v| bits | manual::of(v)) };
        let outs = (own != 0).then(|| match op.vary(any) {
            Some(vary) => Err(vary.results),
            None => {
                let avals: SmallVec<[Aval; 4]> = args.iter().map(Value::aval).collect();
                op.abstract_eval(&avals.iter().collect::<SmallVec<[&Aval; 4]>>()).map_err(|_| any)
            }
        });
        move |i| match &outs {
            None => 0,
            Some(Err(all)) => all & own,
            Some(Ok(avals)) => avals.get(i).map_or(any, |a| a.vary) & own,
        }
    }

    /// For each result of an operation what its type says of sums that are due over manual axes; nothing as a rule.
    fn marks(&self, op: &OpRef, args: &[Value]) -> Result<Vec<u32>> {
        let marked =
            |v: &Value| matches!(v, Value::Tracer(t) if self.owns(t.trace()) && spread::is_marked(t.aval().spread));
        let says = || !op.subjaxprs().is_empty() || (spread::marks_results(op) && is_innermost_manual(self.id));
        if self.axis.manual == 0 || op.is_unrecorded() || !(args.iter().any(marked) || says()) {
            return Ok(Vec::new());
        }
        spread::marks(op, &args.iter().map(Value::aval).collect::<SmallVec<[Aval; 4]>>())
    }

    fn owns(&self, trace: &TraceRef) -> bool {
        trace.id() == self.id || (trace.family() == self.family && trace.is_live())
    }

    fn split(&self, v: &Value) -> (Value, Option<usize>) {
        match v {
            Value::Tracer(t) if self.owns(t.trace()) => match t.payload() {
                Payload::Batched { value, axis } => (value.clone(), *axis),
                _ => (v.clone(), None),
            },
            _ => (v.clone(), None),
        }
    }
}

/// A value with its batch axis as a tracer; the value itself where it is unbatched, unless it counts as varying over the
/// axis, whose bit is `vary`, though every row has the same, or its type says more of it, by the number `mark`.
fn join(trace: &TraceRef, value: Value, axis: Option<usize>, vary: u32, mark: u32) -> Value {
    if axis.is_none() && vary == 0 && mark == 0 {
        return value;
    }
    let mut aval = value.aval();
    if let Some(at) = axis {
        aval = spread::without_axis(aval, at);
    }
    aval.vary |= vary;
    if mark != 0 {
        aval.spread = mark;
    }
    Value::Tracer(Tracer::new(trace.clone(), aval, Payload::Batched { value, axis }))
}

/// The value, whose type has this number, inside of the innermost function that is being mapped; the value itself where a
/// function inside of that one is being staged or differentiated.
pub fn marked(value: &Value, number: u32) -> Value {
    let Some(trace) = ferrax_ir::trace::mapping().filter(|t| t.id() > ferrax_ir::trace::base_id()) else {
        return value.clone();
    };
    match value {
        Value::Tracer(t) if t.trace().id() == trace.id() => match t.payload() {
            Payload::Batched { value, axis } => {
                let aval = Aval { spread: number, ..t.aval().clone() };
                Value::Tracer(Tracer::new(trace, aval, Payload::Batched { value: value.clone(), axis: *axis }))
            }
            _ => value.clone(),
        },
        Value::Tracer(t) if t.trace().id() > trace.id() => value.clone(),
        _ => {
            let aval = Aval { spread: number, ..value.aval() };
            Value::Tracer(Tracer::new(trace, aval, Payload::Batched { value: value.clone(), axis: None }))
        }
    }
}

struct Ending<'a>(&'a BatchTrace);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.live.store(false, Relaxed);
    }
}

/// Runs `f` on whole batches, the axis in force by its name while it runs; gives each result with its batch axis, `None` where it does not depend on the batch.
pub fn vmap(
    debug: DebugInfo,
    axis: VmapAxis,
    args: &[Value],
    dims: &[Option<usize>],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<(Value, Option<usize>)>> {
    vmap_again(Family(None), debug, axis, args, dims, f)
}

/// The same as a continuation of the `vmap` that a batching rule works for.
pub fn vmap_again(
    family: Family,
    debug: DebugInfo,
    axis: VmapAxis,
    args: &[Value],
    dims: &[Option<usize>],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<Vec<(Value, Option<usize>)>> {
    let name = axis.name.clone();
    let id = TraceId::fresh();
    let trace = Arc::new(BatchTrace { id, family: family.0.unwrap_or(id), live: AtomicBool::new(true), debug, axis });
    let shared: TraceRef = trace.clone();
    let outs = {
        let _ending = Ending(&trace);
        let _mapping = MappingGuard::enter(shared.clone());
        let _current = CurrentGuard::enter(id);
        let manual = trace.axis.manual;
        let _named = name.map(|n| AxisGuard::enter(n, trace.axis.size, manual, shared.clone())).transpose()?;
        let bits = |d: Option<usize>| if d.is_some() { manual } else { 0 };
        let mapped = args.iter().zip(dims).map(|(v, &d)| join(&shared, v.clone(), d, bits(d), 0));
        let mapped: Vec<Value> = mapped.collect();
        f(&mapped)?
    };
    let split = outs.iter().map(|v| trace.split(v)).collect();
    drop((outs, trace));
    crate::staging::check_leaks(&shared)?;
    Ok(split)
}

/// Puts the batch axis of a result where `out_axis` asks for it; `None` asks for an unbatched result.
pub fn place_axis(v: &Value, dim: Option<usize>, out_axis: Option<i64>, size: usize) -> Result<Value> {
    let Some(at) = out_axis else {
        if let Some(d) = dim {
            bail!(Value, "at vmap out_axes, got axis spec None but output was batched on axis {d}");
        }
        return Ok(v.clone());
    };
    let rank = v.rank() + usize::from(dim.is_none());
    let at = if at < 0 { at + rank as i64 } else { at };
    if at < 0 || at >= rank as i64 {
        bail!(
            Value,
            "axis {} is out of bounds for array of dimension {rank}: vmap's out_axes counts the axes of the result with \
             the mapped one",
            if at < 0 { at - rank as i64 } else { at }
        );
    }
    match dim {
        Some(d) => move_axis(v, d, at as usize),
        None => broadcast_batch(v, None, size, at as usize),
    }
}

/// As [`place_axis`], of this axis: where every row is the same, rows are divided as the axis is.
pub fn placed_axis(v: &Value, dim: Option<usize>, out_axis: Option<i64>, axis: &BatchAxis) -> Result<Value> {
    let out = place_axis(v, dim, out_axis, axis.size)?;
    if axis.spread == 0 || dim.is_some() || out.rank() == v.rank() {
        return Ok(out);
    }
    let at = out_axis.map_or(0, |a| if a < 0 { a + out.rank() as i64 } else { a });
    spread::settled(out, &spread::with_axis(v.aval(), at as usize, axis.size, axis.spread))
}
