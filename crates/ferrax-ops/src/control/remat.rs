//! `checkpoint` (printed `remat2`): a program whose intermediate values reverse mode recomputes instead of keeping.
//!
//! Linearization saves the inputs and what the policy approves; the recorded linear operation recomputes the
//! rest when it is transposed.

use super::jit::{JIT, inline_program};
use super::{batch_first, check_args, dims_of, eval_reference, mask, present, split_linear, spread};
use ferrax_base::{Aval, Result};
use ferrax_ir::op::Role;
use ferrax_ir::{
    Atom, Def, Eqn, Jaxpr, JaxprRef, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind,
};
use ferrax_transform::eval::eval_jaxpr_with;
use ferrax_transform::programs::{LinearProgram, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr};
use ferrax_transform::staging::stage_closed;
use std::sync::Arc;

/// Says which intermediate values may be saved.
pub trait Policy: Send + Sync {
    /// Whether the results of this operation may be kept; an error of the user's function is the linearization's.
    fn saveable(&self, op: &OpRef, inputs: &[Aval]) -> Result<bool>;
    /// Its name, for printing.
    fn name(&self) -> String;
}

/// A shared [`Policy`]; equal when it is the same object.
#[derive(Clone)]
pub struct PolicyRef(pub Arc<dyn Policy>);

impl PartialEq for PolicyRef {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PolicyRef {}

impl std::hash::Hash for PolicyRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<u8>().hash(state);
    }
}

impl std::fmt::Debug for PolicyRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.name())
    }
}

impl ParamValue for PolicyRef {
    fn print(&self) -> Param {
        Param::Text(self.0.name())
    }
    fn parse(_: &Param) -> Option<Self> {
        None
    }
}

ferrax_ir::params! {
    /// Parameters of `remat2`.
    pub struct Remat {
        /// Whether the program is already a derivative.
        differentiated: bool,
        /// The program.
        jaxpr: JaxprRef,
        /// What may be saved; `None` saves nothing but the inputs.
        policy: Option<PolicyRef>,
        /// Whether common subexpressions with the outside must stay apart.
        prevent_cse: bool,
    }
}

/// Calls a program whose intermediate values reverse mode recomputes.
pub static REMAT: Def<Remat> = Def {
    name: "remat2",
    doc: "Calls a program whose intermediate values reverse mode recomputes.",
    arity: None,
    shape: |p, args| {
        check_args("checkpoint", &p.jaxpr, args)?;
        Ok(p.jaxpr.out_avals().into())
    },
    jvp: Slot::Rule(|_, p, primals, tangents| {
        let none = vec![false; p.jaxpr.outvars.len()];
        let program = jvp_jaxpr(&p.jaxpr, &mask(tangents), &none)?;
        let args: Vec<Value> = primals.iter().cloned().chain(present(tangents)).collect();
        let mut outs = remat(Remat { jaxpr: program.jaxpr, ..p.clone() }, &args)?;
        let out_tangents = outs.split_off(none.len());
        Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
    }),
    transpose: Slot::Rule(|_, p, cts, args| {
        let (linear, mut operands) = split_linear(args);
        let program = transpose_jaxpr(&p.jaxpr, &linear, &mask(cts), false)?;
        operands.extend(present(cts));
        let params = Remat { jaxpr: program.jaxpr, differentiated: true, ..p.clone() };
        let mut pulled = spread(remat(params, &operands)?, &program.nonzero_out).into_iter();
        Ok(linear.iter().map(|&l| if l { pulled.next().flatten() } else { None }).collect())
    }),
    batch: Slot::Rule(|_, p, axis, args, dims| {
        let none = vec![false; p.jaxpr.outvars.len()];
        let program = batch_jaxpr(&p.jaxpr, axis, &mask(dims), &none)?;
        let outs = remat(Remat { jaxpr: program.jaxpr, ..p.clone() }, &batch_first(args, dims, axis.size)?)?;
        Ok((outs.into(), dims_of(&program.batched_out)))
    }),
    simplify: Slot::None("passes work inside the program"),
    stablehlo: Slot::None("from its kernel"),
    kernel: Slot::Rule(|_, p, b, args, _| inline_program(&p.jaxpr, b, args)),
    reference: Slot::Rule(|p, args, _| eval_reference(&p.jaxpr, args)),
    special: Special {
        linearize: Some(remat_linearize),
        effects: Some(|p| p.jaxpr.effects),
        role: Role::Calls(|p| p.jaxpr.clone()),
        ..Special::NONE
    },
};

/// Calls a program under rematerialization.
pub fn remat(params: Remat, args: &[Value]) -> Result<Vec<Value>> {
    Ok(bind(&OpRef::new(&REMAT, params), args)?.into_vec())
}

fn remat_linearize(_: &OpRef, p: &Remat, primals: &[Value], tangents: &[Option<Value>]) -> Result<(Values, Tangents)> {
    let none = vec![false; p.jaxpr.outvars.len()];
    // a policy is asked of the operations inside of calls, too
    let calls = p.policy.is_some() && p.jaxpr.eqns.iter().any(|e| e.op.is(&JIT));
    let expanded = |args: &[Value]| without_calls(&p.jaxpr, args);
    let jaxpr = if calls {
        stage_closed("checkpoint", p.jaxpr.debug.clone(), &p.jaxpr.in_avals(), expanded)?
    } else {
        p.jaxpr.clone()
    };
    let program = linearize_jaxpr(&jaxpr, &mask(tangents), &none)?;
    let saved = saved_vars(p, &program.known, none.len())?;
    let mut forward = (*program.known).clone();
    forward.outvars.truncate(none.len());
    forward.outvars.extend(saved.iter().map(|&v| Atom::Var(v)));
    let forward = Remat { jaxpr: forward.into(), ..p.clone() };
    let mut outs = remat(forward, primals)?;
    let kept = outs.split_off(none.len());
    if program.linear.outvars.is_empty() {
        return Ok((outs.into(), spread([], &program.nonzero_out)));
    }
    let jaxpr = recomputing(&program, &saved, none.len());
    let args: Vec<Value> = primals.iter().cloned().chain(kept).chain(present(tangents)).collect();
    let params = Remat { jaxpr: jaxpr.into(), differentiated: true, ..p.clone() };
    let out_tangents = remat(params, &args)?;
    Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
}

/// Applies a program, and the programs that it calls, operation by operation.
fn without_calls(jaxpr: &Jaxpr, args: &[Value]) -> Result<Vec<Value>> {
    eval_jaxpr_with(jaxpr, args, |op, args| match op.of(&JIT) {
        Some(called) => Ok(without_calls(&called.jaxpr, args)?.into()),
        None => bind(op, args),
    })
}

/// The variables of the known part that the policy saves and the residuals need.
fn saved_vars(p: &Remat, known: &Jaxpr, outs: usize) -> Result<Vec<ferrax_ir::Var>> {
    let Some(policy) = &p.policy else { return Ok(Vec::new()) };
    let mut saveable = vec![false; known.avals.len()];
    for eqn in &known.eqns {
        let inputs: Vec<Aval> = eqn.inputs.iter().map(|a| known.atom_aval(a)).collect();
        if policy.0.saveable(&eqn.op, &inputs)? {
            eqn.outputs.iter().for_each(|v| saveable[v.0 as usize] = true);
        }
    }
    // Walk back from the residuals and stop at what is saved.
    let mut needed = vec![false; known.avals.len()];
    let need = |needed: &mut Vec<bool>, a: &Atom| {
        if let Atom::Var(v) = a {
            needed[v.0 as usize] = true;
        }
    };
    known.outvars[outs..].iter().for_each(|a| need(&mut needed, a));
    let mut saved = Vec::new();
    for eqn in known.eqns.iter().rev() {
        let wanted: Vec<_> = eqn.outputs.iter().filter(|v| needed[v.0 as usize]).copied().collect();
        if wanted.is_empty() {
            continue;
        }
        if wanted.iter().all(|v| saveable[v.0 as usize]) {
            saved.extend(wanted);
        } else {
            eqn.inputs.iter().for_each(|a| need(&mut needed, a));
        }
    }
    saved.reverse();
    Ok(saved)
}

/// inputs…, saved…, tangents… → out tangents…: recomputes the residuals, then applies the linear part.
fn recomputing(program: &LinearProgram, saved: &[ferrax_ir::Var], outs: usize) -> Jaxpr {
    let known = &program.known;
    let mut out = (**known).clone();
    out.eqns = needed_eqns(known, saved, outs);
    out.invars.extend_from_slice(saved);
    let base = out.avals.len() as u32;
    let linear = &program.linear;
    out.avals.extend(linear.avals.iter().cloned());
    let moved = |v: ferrax_ir::Var| ferrax_ir::Var(v.0 + base);
    let mut place: Vec<Atom> = (0..linear.avals.len() as u32).map(|i| Atom::Var(moved(ferrax_ir::Var(i)))).collect();
    for (v, a) in linear.invars[..program.residuals].iter().zip(&known.outvars[outs..]) {
        place[v.0 as usize] = *a;
    }
    let map = |a: &Atom| match a {
        Atom::Var(v) => place[v.0 as usize],
        Atom::Lit(_) => *a,
    };
    out.invars.extend(linear.invars[program.residuals..].iter().map(|&v| moved(v)));
    out.constvars.extend(linear.constvars.iter().map(|&v| moved(v)));
    out.consts.extend(linear.consts.iter().cloned());
    for e in &linear.eqns {
        out.eqns.push(Eqn {
            op: e.op.clone(),
            inputs: e.inputs.iter().map(map).collect(),
            outputs: e.outputs.iter().map(|&v| moved(v)).collect(),
            source: e.source,
        });
    }
    out.effects = out.effects.union(linear.effects);
    out.outvars = linear.outvars.iter().map(map).collect();
    out
}

/// The operations that the residuals need once `saved` variables are given.
fn needed_eqns(known: &Jaxpr, saved: &[ferrax_ir::Var], outs: usize) -> Vec<Eqn> {
    let mut needed = vec![false; known.avals.len()];
    let mark = |needed: &mut Vec<bool>, a: &Atom| {
        if let Atom::Var(v) = a
            && !saved.contains(v)
        {
            needed[v.0 as usize] = true;
        }
    };
    known.outvars[outs..].iter().for_each(|a| mark(&mut needed, a));
    let mut kept = Vec::new();
    for eqn in known.eqns.iter().rev() {
        if eqn.outputs.iter().any(|v| needed[v.0 as usize]) {
            eqn.inputs.iter().for_each(|a| mark(&mut needed, a));
            kept.push(eqn.clone());
        }
    }
    kept.reverse();
    kept
}
