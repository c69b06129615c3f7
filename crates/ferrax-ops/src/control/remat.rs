//! `checkpoint` (printed `remat2`): a program whose intermediate values reverse mode recomputes instead of keeping.
//!
//! Linearization saves the inputs and what the policy approves; the recorded linear operation recomputes the
//! rest when it is transposed.

use super::jit::inline_program;
use super::kept::{Kept, keep, without_calls};
use super::{batch_first, check_args, dims_of, eval_reference, mask, present, split_linear, spread};
use ferrax_base::{Aval, Result, bail};
use ferrax_ir::op::Role;
use ferrax_ir::{
    Atom, Def, Effects, Eqn, Jaxpr, JaxprRef, OpRef, Param, ParamValue, Slot, Special, Tangents, Value, Values, bind,
};
use ferrax_transform::programs::{LinearProgram, batch_jaxpr, jvp_jaxpr, linearize_jaxpr, transpose_jaxpr};
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
    if p.jaxpr.effects.contains(Effects::IO) {
        bail!(
            NotImplemented,
            "Effects not supported in partial-eval of `checkpoint`/`remat`: the function would call the host again \
             with side effects. Leave the callback outside of it."
        );
    }
    let none = vec![false; p.jaxpr.outvars.len()];
    let jaxpr = if p.policy.is_some() { without_calls(&p.jaxpr)? } else { p.jaxpr.clone() };
    let program = linearize_jaxpr(&jaxpr, &mask(tangents), &none)?;
    let kept = keep(p.policy.as_ref(), &program.known, &program.known.outvars[none.len()..])?;
    let mut forward = kept.forward.clone();
    forward.outvars.truncate(none.len());
    forward.outvars.extend(kept.saved.iter().map(|&v| Atom::Var(v)));
    let forward = Remat { jaxpr: forward.into(), ..p.clone() };
    let mut outs = remat(forward, primals)?;
    let saved = outs.split_off(none.len());
    if program.linear.outvars.is_empty() {
        return Ok((outs.into(), spread([], &program.nonzero_out)));
    }
    let jaxpr = recomputing(&program, kept, none.len());
    let args: Vec<Value> = primals.iter().cloned().chain(saved).chain(present(tangents)).collect();
    let params = Remat { jaxpr: jaxpr.into(), differentiated: true, ..p.clone() };
    let out_tangents = remat(params, &args)?;
    Ok((outs.into(), spread(out_tangents, &program.nonzero_out)))
}

/// inputs…, saved…, tangents… → out tangents…: recomputes the residuals, then applies the linear part.
fn recomputing(program: &LinearProgram, kept: Kept, outs: usize) -> Jaxpr {
    let known = &program.known;
    let mut out = kept.forward;
    out.eqns = kept.again;
    out.invars.extend(kept.saved);
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
