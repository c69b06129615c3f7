//! Linearization: one forward run that records the linear part on a tape.
//!
//! The run carries primal values through a jvp trace whose tangents are tracers of a [`Tape`]: the jvp rules'
//! operations on tangents land on the tape with the values they need. Playing the tape forward pushes tangents;
//! [`crate::backward`] plays it backward. Nothing is staged, so values stay concrete outside `jit`. What an operation on
//! tangents computes from known values alone is known to the operations after it, and not on the tape.
//!
//! Read next: [`crate::backward`].

use crate::backward::{Cotangents, backward_tape};
use crate::jvp::{Ending, JvpTrace, join};
use ferrax_base::source::Replay;
use ferrax_base::{Aval, Result, Source, error, scopes};
use ferrax_ir::trace::CurrentGuard;
use ferrax_ir::{
    Atom, DebugInfo, Mapped, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value, Values, Var, bind, spread,
};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// An operand on the tape.
#[derive(Clone, Debug)]
pub enum TapeArg {
    /// A tangent.
    Linear(Var),
    /// A value that the operation is linear around.
    Known(Value),
}

/// A linear operation on the tape.
#[derive(Clone, Debug)]
pub struct TapeEqn {
    /// What is done.
    pub op: OpRef,
    /// Operands.
    pub args: SmallVec<[TapeArg; 2]>,
    /// The first of its consecutive results.
    pub first: u32,
    /// Number of results.
    pub results: u32,
    /// Where the user asked for it.
    pub source: Source,
}

/// A linear program with the values it is linear around.
#[derive(Debug, Default)]
pub struct Tape {
    /// Avals of the tangents.
    pub avals: Vec<Aval>,
    /// Number of inputs: the variables `0..inputs`.
    pub inputs: usize,
    /// Operations in order.
    pub eqns: Vec<TapeEqn>,
    /// Axes that `vmap` added, as in a [`ferrax_ir::Jaxpr`].
    pub mapped: Vec<(Var, Mapped)>,
}

/// The trace that records a tape.
pub struct TapeTrace {
    id: TraceId,
    live: AtomicBool,
    transform: &'static str,
    debug: DebugInfo,
    /// The scope that the function is linearized in: operations of the tape have the names inside it.
    scope: u32,
    tape: Mutex<Tape>,
}

impl TapeTrace {
    fn lock(&self) -> std::sync::MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn var(&self, v: &Value) -> Option<Var> {
        match v {
            Value::Tracer(t) if t.trace().id() == self.id => match t.payload() {
                Payload::Staged(Atom::Var(v)) => Some(*v),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Trace for TapeTrace {
    fn id(&self) -> TraceId {
        self.id
    }

    fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    fn process(&self, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
        match op.stage(op, args) {
            Some(staged) => {
                let (op, args) = staged?;
                self.record(this, &op, &args)
            }
            None => self.record(this, op, args),
        }
    }

    fn transform(&self) -> &'static str {
        self.transform
    }

    fn debug(&self) -> &DebugInfo {
        &self.debug
    }

    fn note_mapped(&self, tracer: &Tracer, axis: &Mapped) {
        if let Payload::Staged(Atom::Var(v)) = tracer.payload() {
            self.lock().mapped.push((*v, axis.clone()));
        }
    }
}

impl TapeTrace {
    fn record(&self, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
        let avals: SmallVec<[Aval; 3]> = args.iter().map(Value::aval).collect();
        let refs: SmallVec<[&Aval; 3]> = avals.iter().collect();
        let mut outs = op.abstract_eval(&refs)?;
        spread::note(op, &avals, &mut outs)?;
        let args = args.iter().map(|a| self.var(a).map_or_else(|| TapeArg::Known(a.clone()), TapeArg::Linear));
        let args: SmallVec<[TapeArg; 2]> = args.collect();
        let known = if outs.len() > 1 { known_results(op, &args)? } else { Vec::new() };
        let source = Source::here();
        let source = Source { scope: scopes::beyond(source.scope, self.scope), ..source };
        let mut tape = self.lock();
        let first = tape.avals.len() as u32;
        tape.avals.extend(outs.iter().cloned());
        tape.eqns.push(TapeEqn { op: op.clone(), args, first, results: outs.len() as u32, source });
        drop(tape);
        let tracer = |(i, aval)| {
            Value::Tracer(Tracer::at(this.clone(), aval, Payload::Staged(Atom::Var(Var(first + i as u32))), source))
        };
        let mut outs: Values = outs.into_iter().enumerate().map(tracer).collect();
        known.into_iter().for_each(|(i, value)| outs[i] = value);
        Ok(outs)
    }
}

/// The results of an operation with tangents that follow from its known operands alone, by their places: of a loop that
/// carries tangents and the numbers that it divides them by, the numbers. No cotangent reaches them.
fn known_results(op: &OpRef, args: &[TapeArg]) -> Result<Vec<(usize, Value)>> {
    let linear: SmallVec<[bool; 8]> = args.iter().map(|a| matches!(a, TapeArg::Linear(_))).collect();
    let Some(part) = op.known_part(&linear) else { return Ok(Vec::new()) };
    let value = |&i: &usize| match &args[i] {
        TapeArg::Known(value) => Ok(value.clone()),
        TapeArg::Linear(_) => Err(error!(Internal, "the known part of {} takes a tangent", op.name())),
    };
    let inputs = part.inputs.iter().map(value).collect::<Result<SmallVec<[Value; 4]>>>()?;
    Ok(part.outputs.into_iter().zip(bind(&part.op, &inputs)?).collect())
}

/// A function linearized at a point.
#[derive(Debug)]
pub struct Linearized {
    /// Values of the results.
    pub outs: Vec<Value>,
    /// The linear part.
    pub tape: Tape,
    /// The tape variable of each active input; `None` for inputs that carry no tangent.
    pub in_vars: Vec<Option<Var>>,
    /// The tape variable of each result's tangent; `None` is a symbolic zero.
    pub out_vars: Vec<Option<Var>>,
}

/// Runs `f` at `primals` and records its linear part with respect to the `active` ones.
pub fn linearize(
    transform: &'static str,
    debug: DebugInfo,
    primals: &[Value],
    active: &[bool],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<Linearized> {
    let tape = Arc::new(TapeTrace {
        id: TraceId::fresh(),
        live: AtomicBool::new(true),
        transform,
        debug: debug.clone(),
        scope: scopes::here(),
        tape: Mutex::default(),
    });
    let tape_ref: TraceRef = tape.clone();
    let trace = JvpTrace::new(transform, debug, true);
    let shared: TraceRef = trace.clone();
    let mut in_vars = Vec::with_capacity(primals.len());
    let outs = {
        let _ending = Ending(trace.clone());
        let mut args = Vec::with_capacity(primals.len());
        for (p, &on) in primals.iter().zip(active) {
            if !on || !p.dtype().is_inexact() {
                in_vars.push(None);
                args.push(p.clone());
                continue;
            }
            let aval = p.aval();
            let var = {
                let mut t = tape.lock();
                t.avals.push(aval.clone());
                Var(t.avals.len() as u32 - 1)
            };
            in_vars.push(Some(var));
            let tangent = Value::Tracer(Tracer::new(tape_ref.clone(), aval, Payload::Staged(Atom::Var(var))));
            args.push(join(&shared, p.clone(), Some(tangent)));
        }
        tape.lock().inputs = in_vars.iter().flatten().count();
        let outs = {
            let _current = CurrentGuard::enter(shared.id());
            f(&args)
        };
        tape.live.store(outs.is_ok(), Relaxed);
        if outs.is_err() {
            // What was recorded may hold functions of the host that hold tracers of this tape: a circle nobody sees.
            let recorded = std::mem::take(&mut *tape.lock());
            drop(recorded);
        }
        outs?
    };
    let mut primal_outs = Vec::with_capacity(outs.len());
    let mut out_vars = Vec::with_capacity(outs.len());
    for v in &outs {
        let (p, t) = trace.split(v);
        primal_outs.push(p);
        out_vars.push(t.and_then(|t| tape.var(&t)));
    }
    tape.live.store(false, Relaxed);
    drop((outs, trace));
    crate::staging::check_leaks(&shared)?;
    let recorded = std::mem::take(&mut *tape.lock());
    Ok(Linearized { outs: primal_outs, tape: recorded, in_vars, out_vars })
}

impl Linearized {
    /// Pushes tangents of the inputs through the tape; `None` is a symbolic zero.
    pub fn push_forward(&self, tangents: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        let mut env: Vec<Option<Value>> = vec![None; self.tape.avals.len()];
        for (var, t) in self.in_vars.iter().zip(tangents) {
            if let Some(v) = var {
                env[v.0 as usize].clone_from(t);
            }
        }
        let replay = Replay::start();
        for eqn in &self.tape.eqns {
            replay.at(eqn.source);
            let linear = |a: &TapeArg| match a {
                TapeArg::Linear(v) => Some(env[v.0 as usize].is_some()),
                TapeArg::Known(_) => None,
            };
            // Every tangent is zero: so are the results.
            if !eqn.args.iter().filter_map(linear).any(|some| some) {
                continue;
            }
            let mut args: SmallVec<[Value; 4]> = SmallVec::new();
            for a in &eqn.args {
                args.push(match a {
                    TapeArg::Known(v) => v.clone(),
                    TapeArg::Linear(v) => {
                        crate::structural::instantiate(env[v.0 as usize].clone(), &self.tape.avals[v.0 as usize])?
                    }
                });
            }
            for (i, out) in bind(&eqn.op, &args)?.into_iter().enumerate() {
                env[eqn.first as usize + i] = Some(out);
            }
        }
        Ok(self.out_vars.iter().map(|v| v.and_then(|v| env[v.0 as usize].clone())).collect())
    }

    /// Pulls cotangents of the results back to the inputs; `None` is a symbolic zero.
    pub fn pull_back(&self, cotangents: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
        self.pull_back_to(cotangents, None)
    }

    /// Pulls cotangents of the results back to those inputs that are wanted, all of them if nobody says which.
    pub fn pull_back_to(&self, cotangents: &[Option<Value>], wanted: Option<&[bool]>) -> Result<Vec<Option<Value>>> {
        if cotangents.len() != self.out_vars.len() {
            return Err(error!(Internal, "{} cotangents for {} results", cotangents.len(), self.out_vars.len()));
        }
        let mut env = Cotangents::new(self.tape.avals.len());
        if let Some(wanted) = wanted {
            env.only(&self.tape, self.in_vars.iter().zip(wanted).filter_map(|(v, on)| v.filter(|_| *on)));
        }
        for (var, ct) in self.out_vars.iter().zip(cotangents) {
            if let (Some(v), Some(ct)) = (var, ct) {
                env.add(v.0 as usize, ct.clone(), None)?;
            }
        }
        backward_tape(&self.tape, &mut env)?;
        Ok(self.in_vars.iter().map(|v| v.and_then(|v| env.take(v.0 as usize))).collect())
    }
}
