//! Checks that a Jaxpr is well formed: what every pass relies on and has to keep.
//!
//! Each variable is defined once and before its uses; constants have their variables' types; each equation's
//! results have exactly the avals that its primitive computes for its operands; the program's effects cover its
//! equations'. Programs inside equations are checked too.

use crate::jaxpr::{Atom, Eqn, Jaxpr, Var};
use ferrax_base::config::Flag;
use ferrax_base::{Aval, Result, error};

/// An internal error that names the first broken invariant. Programs that others may have built go through
/// [`crate::JaxprRef::verify`], whose error is the caller's.
pub fn verify(j: &Jaxpr) -> Result<()> {
    let mut defined = vec![false; j.avals.len()];
    if j.consts.len() != j.constvars.len() {
        return Err(error!(Internal, "{} constants for {} variables", j.consts.len(), j.constvars.len()));
    }
    for &v in j.constvars.iter().chain(&j.invars) {
        define(&mut defined, v, "a parameter")?;
    }
    for (c, &v) in j.consts.iter().zip(&j.constvars) {
        if !c.aval().same_type(j.aval(v)) {
            return Err(error!(Internal, "a constant of type {} for a variable of type {}", c.aval(), j.aval(v)));
        }
    }
    for (i, e) in j.eqns.iter().enumerate() {
        eqn(j, e, &mut defined).map_err(|m| error!(Internal, "equation {i}, {}: {m}", e.op.name()))?;
    }
    j.outvars.iter().try_for_each(|a| used(&defined, a)).map_err(|m| error!(Internal, "result: {m}"))
}

/// [`verify`] in builds with debug assertions, naming the pass that has just run; nothing in others.
pub fn verify_after(pass: &str, j: &Jaxpr) -> Result<()> {
    if !cfg!(debug_assertions) && !Flag::EnableChecks.get() {
        return Ok(());
    }
    verify(j).map_err(|e| error!(Internal, "after {pass}: {e}\n{j}"))
}

fn eqn(j: &Jaxpr, e: &Eqn, defined: &mut [bool]) -> Result<()> {
    for a in &e.inputs {
        used(defined, a)?;
    }
    for sub in e.op.subjaxprs() {
        sub.verify()?;
    }
    let avals: Vec<Aval> = e.inputs.iter().map(|a| j.atom_aval(a)).collect();
    let outs = e.op.abstract_eval(&avals.iter().collect::<Vec<_>>())?;
    if outs.len() != e.outputs.len() {
        return Err(error!(Internal, "{} results where the primitive gives {}", e.outputs.len(), outs.len()));
    }
    for (i, (&v, want)) in e.outputs.iter().zip(&outs).enumerate() {
        define(defined, v, "a result")?;
        let got = j.aval(v);
        if !got.same_type(want) || got.weak != want.weak {
            let weak = |a: &Aval| if a.weak { " (weak)" } else { "" };
            return Err(error!(
                Internal,
                "result {i} has type {got}{} where the primitive gives {want}{}",
                weak(got),
                weak(want)
            ));
        }
    }
    let effects = e.op.effects();
    if j.effects.union(effects) != j.effects {
        return Err(error!(Internal, "effects {effects:?} that the program ({:?}) does not list", j.effects));
    }
    Ok(())
}

fn define(defined: &mut [bool], v: Var, what: &str) -> Result<()> {
    match defined.get_mut(v.0 as usize) {
        Some(slot) if !*slot => {
            *slot = true;
            Ok(())
        }
        Some(_) => Err(error!(Internal, "variable {} is defined twice, here as {what}", v.0)),
        None => Err(error!(Internal, "variable {} has no aval", v.0)),
    }
}

fn used(defined: &[bool], a: &Atom) -> Result<()> {
    match a {
        Atom::Var(v) if !defined.get(v.0 as usize).copied().unwrap_or(false) => {
            Err(error!(Internal, "variable {} is used before it is defined", v.0))
        }
        _ => Ok(()),
    }
}
