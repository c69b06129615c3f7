//! Forward mode: every value travels with its tangent.
//!
//! Tangents of `None` are symbolic zeros and cost nothing. Primals may be concrete (outside `jit`), so Python
//! control flow on them works. The same trace serves linearization: its tangents are then tape tracers and it
//! asks an operation's `linearize` rule.
//!
//! Read next: [`crate::linearize`].

use crate::where_check::WhereCheck;
use ferrax_base::config::tells_makers;
use ferrax_base::source::{Making, Phase};
use ferrax_base::{Result, error};
use ferrax_ir::trace::{CurrentGuard, leaked};
use ferrax_ir::{DebugInfo, Mapped, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value, Values, bind, spread};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A jvp or linearize trace.
pub struct JvpTrace {
    id: TraceId,
    live: AtomicBool,
    transform: &'static str,
    debug: DebugInfo,
    linearizing: bool,
    check: Option<WhereCheck>,
}

impl Trace for JvpTrace {
    fn id(&self) -> TraceId {
        self.id
    }

    fn is_live(&self) -> bool {
        self.live.load(Relaxed)
    }

    fn process(&self, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
        let mut primals: SmallVec<[Value; 4]> = SmallVec::with_capacity(args.len());
        let mut tangents: SmallVec<[Option<Value>; 4]> = SmallVec::with_capacity(args.len());
        for a in args {
            let (p, t) = self.split(a);
            primals.push(p);
            tangents.push(t);
        }
        if tangents.iter().all(Option::is_none) {
            return bind(op, &primals);
        }
        crate::eval::check_programs(op, &primals)?;
        spread::require_told(op, &primals)?;
        let _making = tells_makers().then(|| made_of(op)).flatten();
        let (outs, tangents) =
            if self.linearizing { op.linearize(op, &primals, &tangents)? } else { op.jvp(op, &primals, &tangents)? };
        // a rule that gives a value of this transformation has closed over it
        if let Some(own) = outs.iter().chain(tangents.iter().flatten()).find_map(|v| self.own(v)) {
            return Err(leaked(own));
        }
        let outs: Values = outs.into_iter().zip(tangents).map(|(p, t)| join(this, p, t)).collect();
        if let Some(check) = &self.check {
            check.note(self.id, op, args, &outs)?;
        }
        Ok(outs)
    }

    fn transform(&self) -> &'static str {
        self.transform
    }

    fn debug(&self) -> &DebugInfo {
        &self.debug
    }

    fn explain(&self, tracer: &Tracer) -> Option<String> {
        match tracer.payload() {
            Payload::Jvp { primal: Value::Tracer(t), .. } => t.trace().explain(t),
            _ => None,
        }
    }

    fn note_mapped(&self, tracer: &Tracer, axis: &Mapped) {
        if let Payload::Jvp { primal, tangent } = tracer.payload() {
            primal.note_mapped(axis);
            tangent.iter().for_each(|t| t.note_mapped(axis));
        }
    }
}

/// Says that what is made now is part of the derivative of an operation. What stands in its programs says itself where
/// it belongs, and rules that users wrote are theirs.
fn made_of(op: &OpRef) -> Option<Making> {
    let own = op.subjaxprs().is_empty() && !op.name().starts_with("custom_");
    own.then(|| Making::start(Phase::Derivative, op.name()))
}

impl JvpTrace {
    /// A live trace; `linearizing` says that tangents are tape tracers.
    pub fn new(transform: &'static str, debug: DebugInfo, linearizing: bool) -> Arc<JvpTrace> {
        let check = if linearizing { WhereCheck::when_asked() } else { None };
        Arc::new(JvpTrace { id: TraceId::fresh(), live: AtomicBool::new(true), transform, debug, linearizing, check })
    }

    /// The primal and tangent of a value; values of other traces have none.
    pub fn split(&self, v: &Value) -> (Value, Option<Value>) {
        match v {
            Value::Tracer(t) if t.trace().id() == self.id => match t.payload() {
                Payload::Jvp { primal, tangent } => (primal.clone(), tangent.clone()),
                _ => (v.clone(), None),
            },
            _ => (v.clone(), None),
        }
    }

    /// The tracer that a value is, if it is one of this trace.
    fn own<'a>(&self, v: &'a Value) -> Option<&'a Tracer> {
        match v {
            Value::Tracer(t) if t.trace().id() == self.id => Some(t),
            _ => None,
        }
    }

    /// Ends the trace: its tracers are leaks from now on.
    pub fn end(&self) {
        self.live.store(false, Relaxed);
        if let Some(check) = &self.check {
            check.clear();
        }
    }
}

/// A value with its tangent as a tracer; the value itself where the tangent is a symbolic zero.
pub fn join(trace: &TraceRef, primal: Value, tangent: Option<Value>) -> Value {
    match tangent {
        None => primal,
        Some(_) => {
            let aval = primal.aval();
            Value::Tracer(Tracer::new(trace.clone(), aval, Payload::Jvp { primal, tangent }))
        }
    }
}

/// Ends a jvp trace when dropped, whatever happens in the function.
pub(crate) struct Ending(pub Arc<JvpTrace>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Values and tangents of `f` at `primals` along `tangents`.
pub fn jvp(
    debug: DebugInfo,
    primals: &[Value],
    tangents: &[Option<Value>],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    if primals.len() != tangents.len() {
        return Err(error!(Type, "jvp got {} primals and {} tangents", primals.len(), tangents.len()));
    }
    let trace = JvpTrace::new("jvp", debug, false);
    let shared: TraceRef = trace.clone();
    let outs = {
        let _ending = Ending(trace.clone());
        let _current = CurrentGuard::enter(trace.id);
        let args: Vec<Value> = primals.iter().zip(tangents).map(|(p, t)| join(&shared, p.clone(), t.clone())).collect();
        f(&args)?
    };
    let split = outs.iter().map(|v| trace.split(v)).unzip();
    drop((outs, trace));
    crate::staging::check_leaks(&shared)?;
    Ok(split)
}
