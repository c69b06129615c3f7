//! Executables: a whole program ready to run, with its constants bound.

use crate::dispatch;
use ferrax_base::{Aval, Result, error};
use ferrax_ir::{Array, Atom, JaxprRef, Value, Values};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// A program ready to run.
pub struct Executable {
    jaxpr: JaxprRef,
    out_avals: Vec<Aval>,
}

static EXECUTABLES: Mutex<Vec<(JaxprRef, Arc<Executable>)>> = Mutex::new(Vec::new());

/// The executable of a program; equal programs share one.
pub fn executable(jaxpr: &JaxprRef) -> Result<Arc<Executable>> {
    let mut known = EXECUTABLES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((_, e)) = known.iter().find(|(j, _)| j == jaxpr) {
        return Ok(e.clone());
    }
    let made = Arc::new(Executable { jaxpr: jaxpr.clone(), out_avals: jaxpr.out_avals() });
    known.push((jaxpr.clone(), made.clone()));
    Ok(made)
}

impl Executable {
    /// Types of the results, weak types included.
    pub fn out_avals(&self) -> &[Aval] {
        &self.out_avals
    }

    /// Runs the program. `donate[i]` says that argument i may be consumed; an empty mask donates nothing.
    pub fn run(&self, args: &[Value], donate: &[bool]) -> Result<Values> {
        debug_assert!(donate.is_empty() || donate.len() == args.len());
        let results = interpret(&self.jaxpr, args)?;
        let by: Arc<str> = self.jaxpr.debug.name.clone();
        for (arg, _) in args.iter().zip(donate).filter(|(_, d)| **d) {
            if let Value::Array(a) = arg {
                drop(a.donate(&by));
            }
        }
        results.into_iter().map(|v| Ok(Value::Array(materialize(v)?))).collect()
    }
}

/// Runs a program operation by operation: what `disable_jit` and the debug modes do.
pub fn interpret(jaxpr: &JaxprRef, args: &[Value]) -> Result<Values> {
    let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
    for (&v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (&v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let read = |env: &[Option<Value>], a: &Atom| match a {
        Atom::Lit(l) => Ok(Value::Lit(*l)),
        Atom::Var(v) => {
            env[v.0 as usize].clone().ok_or_else(|| error!(Internal, "variable {} is used before it is defined", v.0))
        }
    };
    for eqn in &jaxpr.eqns {
        let inputs = eqn.inputs.iter().map(|a| read(&env, a)).collect::<Result<SmallVec<[Value; 4]>>>()?;
        let outs = dispatch::evaluate(&eqn.op, &inputs)?;
        for (&v, out) in eqn.outputs.iter().zip(outs) {
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}

/// The array of a concrete value.
pub fn materialize(v: Value) -> Result<Array> {
    match v {
        Value::Array(a) => Ok(a),
        Value::Lit(l) => dispatch::scalar_array(&l),
        Value::Tracer(_) => Err(error!(Internal, "a traced value where a concrete one must be")),
    }
}
