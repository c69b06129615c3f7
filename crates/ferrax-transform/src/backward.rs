//! Reverse mode: transposing linear programs, a tape or a Jaxpr, from the last operation to the first.
//!
//! Cotangents of `None` are symbolic zeros; operations that no cotangent reaches are skipped.

use crate::eval::read;
use crate::linearize::{Tape, TapeArg};
use crate::structural::add_any;
use ferrax_base::{Result, error};
use ferrax_ir::{Atom, Jaxpr, Tangents, TransposeArg, Value, bind};
use smallvec::SmallVec;

/// Adds a cotangent to what has arrived so far.
pub fn accumulate(slot: &mut Option<Value>, ct: Value) -> Result<()> {
    *slot = Some(match slot.take() {
        Some(old) => add_any(&old, &ct)?,
        None => ct,
    });
    Ok(())
}

/// Pulls the cotangents in `env` (by tape variable) back to the tape's inputs, in place.
pub fn backward_tape(tape: &Tape, env: &mut [Option<Value>]) -> Result<()> {
    for eqn in tape.eqns.iter().rev() {
        let outs = eqn.first as usize..(eqn.first + eqn.results) as usize;
        let cts: SmallVec<[Option<Value>; 1]> = env[outs].iter_mut().map(Option::take).collect();
        if cts.iter().all(Option::is_none) {
            continue;
        }
        let args: SmallVec<[TransposeArg; 3]> = eqn
            .args
            .iter()
            .map(|a| match a {
                TapeArg::Linear(v) => TransposeArg::Linear(tape.avals[v.0 as usize].clone()),
                TapeArg::Known(v) => TransposeArg::Known(v.clone()),
            })
            .collect();
        let pulled = eqn.op.transpose(&eqn.op, &cts, &args)?;
        check_count(eqn.op.name(), &pulled, args.len())?;
        for (a, ct) in eqn.args.iter().zip(pulled) {
            if let (TapeArg::Linear(v), Some(ct)) = (a, ct) {
                accumulate(&mut env[v.0 as usize], ct)?;
            }
        }
    }
    Ok(())
}

fn check_count(name: &str, got: &Tangents, want: usize) -> Result<()> {
    if got.len() == want {
        return Ok(());
    }
    Err(error!(Internal, "the transpose rule of {name} gave {} cotangents for {want} operands", got.len()))
}

/// Transposes a program that is linear in its `Linear` arguments: gives their cotangents, `None` for known ones.
///
/// Operations that depend on known arguments alone are evaluated first.
pub fn backward(jaxpr: &Jaxpr, args: &[TransposeArg], cotangents: &[Option<Value>]) -> Result<Vec<Option<Value>>> {
    let n = jaxpr.avals.len();
    let mut known: Vec<Option<Value>> = vec![None; n];
    for (v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        known[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (v, a) in jaxpr.invars.iter().zip(args) {
        if let TransposeArg::Known(value) = a {
            known[v.0 as usize] = Some(value.clone());
        }
    }
    let is_known = |known: &[Option<Value>], a: &Atom| match a {
        Atom::Lit(_) => true,
        Atom::Var(v) => known[v.0 as usize].is_some(),
    };
    let mut linear = Vec::new();
    for eqn in &jaxpr.eqns {
        if !eqn.inputs.iter().all(|a| is_known(&known, a)) {
            linear.push(eqn);
            continue;
        }
        let inputs = eqn.inputs.iter().map(|a| read(&known, a)).collect::<Result<SmallVec<[Value; 4]>>>()?;
        for (v, out) in eqn.outputs.iter().zip(bind(&eqn.op, &inputs)?) {
            known[v.0 as usize] = Some(out);
        }
    }
    let mut cts: Vec<Option<Value>> = vec![None; n];
    for (a, ct) in jaxpr.outvars.iter().zip(cotangents) {
        if let (Atom::Var(v), Some(ct)) = (a, ct) {
            accumulate(&mut cts[v.0 as usize], ct.clone())?;
        }
    }
    for eqn in linear.into_iter().rev() {
        let outs: SmallVec<[Option<Value>; 1]> = eqn.outputs.iter().map(|v| cts[v.0 as usize].take()).collect();
        if outs.iter().all(Option::is_none) {
            continue;
        }
        let args = eqn.inputs.iter().map(|a| match a {
            Atom::Var(v) if known[v.0 as usize].is_none() => Ok(TransposeArg::Linear(jaxpr.aval(*v).clone())),
            other => read(&known, other).map(TransposeArg::Known),
        });
        let args = args.collect::<Result<SmallVec<[TransposeArg; 3]>>>()?;
        let pulled = eqn.op.transpose(&eqn.op, &outs, &args)?;
        check_count(eqn.op.name(), &pulled, args.len())?;
        for (a, ct) in eqn.inputs.iter().zip(pulled) {
            if let (Atom::Var(v), Some(ct)) = (a, ct) {
                accumulate(&mut cts[v.0 as usize], ct)?;
            }
        }
    }
    let take = |(v, a): (&ferrax_ir::Var, &TransposeArg)| {
        if a.is_linear() { cts[v.0 as usize].take() } else { None }
    };
    Ok(jaxpr.invars.iter().zip(args).map(take).collect())
}
