//! Staging: running a function on tracers that record a [`Jaxpr`].
//!
//! While a staging trace is in force, operations on plain arrays are recorded too. Arrays become the program's
//! constants (rank-0 ones literals); tracers of enclosing traces become leading parameters, and
//! [`Staged::captured`] says which values to pass for them.
//!
//! Read next: [`crate::programs`] for transformations of finished programs.

use ferrax_base::scopes::Scoped;
use ferrax_base::{Aval, ErrorKind, Result, Source, config, error};
use ferrax_ir::trace::{BaseGuard, Showing, leaked};
use ferrax_ir::{
    Array, Atom, DebugInfo, Eqn, Jaxpr, JaxprRef, Lit, Mapped, OpRef, Payload, Trace, TraceId, TraceRef, Tracer, Value,
    Values, Var, bind, spread,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

#[derive(Default)]
struct Recording {
    jaxpr: Jaxpr,
    arg_vars: Vec<Var>,
    consts: FxHashMap<usize, Var>,
    captured_vars: FxHashMap<usize, Var>,
    captured: Vec<Value>,
    /// Whether numbers that the function closes over stay constants: `make_jaxpr` shows them as such.
    shows_constants: bool,
}

thread_local! {
    /// The newest staging trace that met an array, which its function may have from outside.
    static MET: Cell<TraceId> = const { Cell::new(TraceId(0)) };
}

/// Notes that a staging trace, or a program that its function calls, has met an array.
pub fn note_array(id: TraceId) {
    MET.set(MET.get().max(id));
}

/// Whether a staging trace that is newer than another met an array.
pub fn arrays_since(id: TraceId) -> bool {
    MET.get() > id
}

/// A staging trace.
pub struct Staging {
    id: TraceId,
    live: AtomicBool,
    transform: &'static str,
    debug: DebugInfo,
    state: Mutex<Recording>,
}

/// A recorded function.
pub struct Staged {
    /// The program; its first `captured.len()` parameters stand for `captured`.
    pub jaxpr: Jaxpr,
    /// Values of enclosing traces that the function closed over.
    pub captured: Vec<Value>,
}

impl Staging {
    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn atom(&self, state: &mut Recording, v: &Value) -> Result<Atom> {
        match v {
            Value::Lit(l) => Ok(Atom::Lit(*l)),
            Value::Array(a) => {
                note_array(self.id);
                let seen = state.shows_constants;
                state.constant(a, seen)
            }
            Value::Tracer(t) if t.trace().id() == self.id => match t.payload() {
                Payload::Staged(atom) => Ok(*atom),
                _ => Err(error!(Internal, "a staging trace met a foreign tracer")),
            },
            Value::Tracer(t) if !t.trace().is_live() => Err(leaked(t)),
            // what is data outside of a program that shows its constants is one of them
            Value::Tracer(t) if t.trace().id() < Showing::since() => Ok(Atom::Var(state.capture(t))),
            Value::Tracer(t) => match (t.literal(), t.trace().data(t)) {
                (Some(l), _) => Ok(Atom::Lit(l)),
                (None, Some(a)) => Ok(Atom::Var(state.array(&a))),
                (None, None) => Ok(Atom::Var(state.capture(t))),
            },
        }
    }
}

impl Recording {
    /// The array as an operand: a number stands in the program itself, unless its array is to be seen.
    fn constant(&mut self, a: &Array, seen: bool) -> Result<Atom> {
        let aval = a.aval();
        if aval.rank() == 0 && !aval.dtype.is_key() && !seen {
            return Ok(Atom::Lit(Lit { scalar: a.item()?, weak: aval.weak }));
        }
        Ok(Atom::Var(self.array(a)))
    }

    fn array(&mut self, a: &Array) -> Var {
        if let Some(&v) = self.consts.get(&a.id()) {
            return v;
        }
        let v = self.jaxpr.new_var(spread::typed(a.aval().clone(), a.device()));
        self.consts.insert(a.id(), v);
        self.jaxpr.constvars.push(v);
        self.jaxpr.consts.push(a.clone());
        v
    }

    fn capture(&mut self, t: &Tracer) -> Var {
        if let Some(&v) = self.captured_vars.get(&t.id()) {
            return v;
        }
        let v = self.jaxpr.new_var(t.aval().clone());
        self.captured_vars.insert(t.id(), v);
        self.captured.push(Value::Tracer(t.clone()));
        self.jaxpr.invars.push(v);
        v
    }
}

impl Trace for Staging {
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
                // what the operation's function closed over is an operand now, and may belong to a trace further in
                if args.iter().any(|a| matches!(a, Value::Tracer(t) if t.trace().id() > self.id)) {
                    return bind(&op, &args);
                }
                record(self, this, &op, &args)
            }
            None => record(self, this, op, args),
        }
    }

    fn transform(&self) -> &'static str {
        self.transform
    }

    fn debug(&self) -> &DebugInfo {
        &self.debug
    }

    fn recorded(&self, tracer: &Tracer, see: &mut dyn FnMut(&Jaxpr, Var)) {
        if let Payload::Staged(Atom::Var(v)) = tracer.payload() {
            see(&self.lock().jaxpr, *v);
        }
    }

    fn note_mapped(&self, tracer: &Tracer, axis: &Mapped) {
        if let Payload::Staged(Atom::Var(v)) = tracer.payload() {
            self.lock().jaxpr.mapped.push((*v, axis.clone()));
        }
    }

    fn stand_in(&self, this: &TraceRef, value: &Value) -> Option<(Value, usize)> {
        let aval = match value {
            Value::Tracer(t) if t.trace().id() >= self.id => return None,
            Value::Array(a) => spread::typed(a.aval().clone(), a.device()),
            value => value.aval(),
        };
        let mut state = self.lock();
        let v = state.jaxpr.new_var(aval.clone());
        state.jaxpr.invars.push(v);
        state.captured.push(value.clone());
        let number = state.captured.len() - 1;
        Some((Value::Tracer(Tracer::new(this.clone(), aval, Payload::Staged(Atom::Var(v)))), number))
    }

    fn constant(&self, this: &TraceRef, value: &Value) -> Option<Result<Value>> {
        let atom = match value {
            Value::Lit(l) => Ok(Atom::Lit(*l)),
            Value::Array(a) => self.lock().constant(a, false),
            Value::Tracer(_) => return None,
        };
        let aval = value.aval();
        Some(atom.map(|atom| Value::Tracer(Tracer::new(this.clone(), aval, Payload::Staged(atom)))))
    }

    fn data(&self, tracer: &Tracer) -> Option<Array> {
        let Payload::Staged(Atom::Var(v)) = tracer.payload() else { return None };
        let state = self.lock();
        let at = state.jaxpr.constvars.binary_search(v).ok()?;
        Some(state.jaxpr.consts[at].clone())
    }

    fn new_arg(&self, this: &TraceRef, aval: &Aval) -> Option<Value> {
        let mut state = self.lock();
        if !state.shows_constants {
            return None;
        }
        let v = state.jaxpr.new_var(aval.clone());
        state.arg_vars.push(v);
        Some(Value::Tracer(Tracer::new(this.clone(), aval.clone(), Payload::Staged(Atom::Var(v)))))
    }

    fn explain(&self, tracer: &Tracer) -> Option<String> {
        let Payload::Staged(Atom::Var(var)) = tracer.payload() else {
            return None;
        };
        let state = self.lock();
        let mut needed = vec![false; state.jaxpr.avals.len()];
        *needed.get_mut(var.0 as usize)? = true;
        for eqn in state.jaxpr.eqns.iter().rev() {
            if eqn.outputs.iter().any(|v| needed[v.0 as usize]) {
                for a in &eqn.inputs {
                    if let Atom::Var(v) = a {
                        needed[v.0 as usize] = true;
                    }
                }
            }
        }
        let arg_vars = state.arg_vars.clone();
        drop(state);
        let names = self.debug.arg_names.as_ref()?();
        let depends = arg_vars.iter().zip(names.iter()).filter(|(v, _)| needed[v.0 as usize]);
        let list: Vec<&str> = depends.map(|(_, n)| n.as_str()).collect();
        match list.as_slice() {
            [] => None,
            [one] => Some(format!("the value of the argument {one}")),
            [rest @ .., last] => Some(format!("the values of the arguments {} and {last}", rest.join(", "))),
        }
    }
}

/// Appends an operation to the program being recorded.
fn record(s: &Staging, this: &TraceRef, op: &OpRef, args: &[Value]) -> Result<Values> {
    let avals: SmallVec<[Aval; 3]> = args.iter().map(Value::aval).collect();
    let refs: SmallVec<[&Aval; 3]> = avals.iter().collect();
    let mut outs = op.abstract_eval(&refs)?;
    if outs.iter().any(|a| a.vary != 0) {
        // what a program inside says of axes that are not around this one
        let may = ferrax_ir::trace::manual_outside(s.id);
        outs.iter_mut().for_each(|a| a.vary &= may);
    }
    spread::note(op, &avals, &mut outs)?;
    let source = Source::here();
    let mut state = s.lock();
    let mut inputs = SmallVec::with_capacity(args.len());
    for a in args {
        inputs.push(s.atom(&mut state, a)?);
    }
    let outputs: SmallVec<[Var; 1]> = outs.iter().map(|a| state.jaxpr.new_var(a.clone())).collect();
    state.jaxpr.effects = state.jaxpr.effects.union(op.effects());
    state.jaxpr.eqns.push(Eqn { op: op.clone(), inputs, outputs: outputs.clone(), source });
    drop(state);
    let tracer = |(aval, var)| Value::Tracer(Tracer::at(this.clone(), aval, Payload::Staged(Atom::Var(var)), source));
    Ok(outs.into_iter().zip(outputs).map(tracer).collect())
}

/// Ends the trace when dropped, whatever happens in the function.
struct Ending(Arc<Staging>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.live.store(false, Relaxed);
    }
}

/// Reports what keeps tracers of an ended trace alive; installed by the host for `checking_leaks`.
pub type LeakReport = fn(&TraceRef) -> Option<String>;

static LEAK_REPORT: OnceLock<LeakReport> = OnceLock::new();

/// Installs the host's report of leaks at the end of a trace; the first call counts.
pub fn set_leak_report(f: LeakReport) {
    let _ = LEAK_REPORT.set(f);
}

/// Records `f` applied to abstract values of these avals.
pub fn stage(
    transform: &'static str,
    debug: DebugInfo,
    avals: &[Aval],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<Staged> {
    let shows_constants = transform == "make_jaxpr";
    // what `make_jaxpr` shows is what `jit` traces, and is called so
    let transform = if shows_constants { "jit" } else { transform };
    let staging = Arc::new(Staging {
        id: TraceId::fresh(),
        live: AtomicBool::new(true),
        transform,
        debug: debug.clone(),
        state: Mutex::default(),
    });
    let trace: TraceRef = staging.clone();
    let args: Vec<Value> = {
        let mut state = staging.lock();
        state.jaxpr.debug = debug.recorded(transform);
        state.shows_constants = shows_constants;
        state.arg_vars = avals.iter().map(|a| state.jaxpr.new_var(a.clone())).collect();
        let tracer = |(a, v): (&Aval, &Var)| {
            Value::Tracer(Tracer::new(trace.clone(), a.clone(), Payload::Staged(Atom::Var(*v))))
        };
        avals.iter().zip(&state.arg_vars).map(tracer).collect()
    };
    let outs = {
        let _ending = Ending(staging.clone());
        let _base = BaseGuard::stage(trace.clone());
        let _scopes = Scoped::fresh();
        let _showing = shows_constants.then(|| Showing::from(staging.id));
        f(&args).and_then(|outs| {
            let mut state = staging.lock();
            outs.iter().map(|v| staging.atom(&mut state, v)).collect::<Result<Vec<Atom>>>()
        })
    };
    drop(args);
    // Also where the function failed: operations may hold functions of the host that hold tracers, a circle nobody sees.
    let state = std::mem::take(&mut *staging.lock());
    let outs = outs?;
    let mut jaxpr = state.jaxpr;
    jaxpr.invars.extend(state.arg_vars);
    jaxpr.outvars = outs;
    drop(staging);
    ferrax_ir::verify::verify_after(transform, &jaxpr)?;
    check_leaks(&trace)?;
    Ok(Staged { jaxpr, captured: state.captured })
}

/// With `checking_leaks` on: errors when a tracer of an ended trace is still reachable.
pub fn check_leaks(trace: &TraceRef) -> Result<()> {
    if !config::Flag::CheckTracerLeaks.get() || Arc::strong_count(trace) == 1 {
        return Ok(());
    }
    let report = LEAK_REPORT.get().and_then(|f| f(trace));
    if Arc::strong_count(trace) == 1 {
        return Ok(());
    }
    let text = format!(
        "Leaked trace: a value made inside {} (transformed by {}) is still referenced after it returned. {}",
        trace.debug().describe(),
        trace.transform(),
        report.unwrap_or_default()
    );
    Err(ErrorKind::Leak(Box::new(text)).into())
}

/// Records `f` where nothing of an enclosing trace may be captured; gives the program alone.
pub fn stage_closed(
    transform: &'static str,
    debug: DebugInfo,
    avals: &[Aval],
    f: impl FnOnce(&[Value]) -> Result<Vec<Value>>,
) -> Result<JaxprRef> {
    let staged = stage(transform, debug, avals, f)?;
    if !staged.captured.is_empty() {
        return Err(error!(
            Type,
            "a rule of a function in {} closes over a value that an enclosing transformation traces: pass it to the \
             function as an argument, so that the rule gets it, too",
            staged.jaxpr.debug.describe()
        ));
    }
    Ok(JaxprRef::new(staged.jaxpr))
}
