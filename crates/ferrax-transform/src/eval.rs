//! Evaluating a program by binding its operations one by one: how transformations run over a Jaxpr.

use ferrax_base::source::Replay;
use ferrax_base::{Result, error};
use ferrax_ir::{Atom, Jaxpr, Value, bind};
use smallvec::SmallVec;

/// Applies a program to values (its constants are bound from the program itself).
pub fn eval_jaxpr(jaxpr: &Jaxpr, args: &[Value]) -> Result<Vec<Value>> {
    debug_assert_eq!(jaxpr.invars.len(), args.len());
    let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
    for (v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let mut inputs: SmallVec<[Value; 4]> = SmallVec::new();
    let replay = Replay::start();
    for eqn in &jaxpr.eqns {
        replay.at(eqn.source);
        inputs.clear();
        for a in &eqn.inputs {
            inputs.push(read(&env, a)?);
        }
        for (v, out) in eqn.outputs.iter().zip(bind(&eqn.op, &inputs)?) {
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}

/// The value of an atom.
pub(crate) fn read(env: &[Option<Value>], a: &Atom) -> Result<Value> {
    match a {
        Atom::Lit(l) => Ok(Value::Lit(*l)),
        Atom::Var(v) => {
            env[v.0 as usize].clone().ok_or_else(|| error!(Internal, "variable {} is used before it is defined", v.0))
        }
    }
}
