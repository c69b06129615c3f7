//! Evaluating a program by binding its operations one by one: how transformations run over a Jaxpr.

use ferrax_base::source::Replay;
use ferrax_base::{Aval, Result, error};
use ferrax_ir::{Atom, Jaxpr, Mapped, OpRef, Value, Values, Var, bind};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Applies a program to values (its constants are bound from the program itself).
pub fn eval_jaxpr(jaxpr: &Jaxpr, args: &[Value]) -> Result<Vec<Value>> {
    eval_jaxpr_with(jaxpr, args, bind)
}

/// Applies a program to values, its operations by a function.
pub fn eval_jaxpr_with(
    jaxpr: &Jaxpr,
    args: &[Value],
    mut apply: impl FnMut(&OpRef, &[Value]) -> Result<Values>,
) -> Result<Vec<Value>> {
    check_count(jaxpr, args.len())?;
    let mut env: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
    for (v, c) in jaxpr.constvars.iter().zip(&jaxpr.consts) {
        env[v.0 as usize] = Some(Value::Array(c.clone()));
    }
    for (v, a) in jaxpr.invars.iter().zip(args) {
        env[v.0 as usize] = Some(a.clone());
    }
    let mut inputs: SmallVec<[Value; 4]> = SmallVec::new();
    let mapped = MappedVars::of(&jaxpr.mapped);
    let replay = Replay::start();
    for eqn in &jaxpr.eqns {
        replay.at(eqn.source);
        inputs.clear();
        for a in &eqn.inputs {
            inputs.push(read(&env, a)?);
        }
        for (v, out) in eqn.outputs.iter().zip(apply(&eqn.op, &inputs)?) {
            mapped.note(*v, &out);
            env[v.0 as usize] = Some(out);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, a)).collect()
}

/// The axes that `vmap` has added to variables, by variable: what is made of them anew has the same axes.
pub(crate) struct MappedVars<'a>(FxHashMap<Var, SmallVec<[&'a Mapped; 1]>>);

impl<'a> MappedVars<'a> {
    pub(crate) fn of(all: &'a [(Var, Mapped)]) -> Self {
        let mut table = FxHashMap::default();
        for (v, axis) in all {
            table.entry(*v).or_insert_with(SmallVec::new).push(axis);
        }
        MappedVars(table)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, v: Var) -> &[&'a Mapped] {
        self.0.get(&v).map_or(&[], SmallVec::as_slice)
    }

    /// Notes the axes of a variable for a value with the same axes.
    #[inline]
    pub(crate) fn note(&self, v: Var, value: &Value) {
        if !self.0.is_empty() {
            self.get(v).iter().for_each(|axis| value.note_mapped(axis));
        }
    }
}

/// Errors unless a program gets one value per parameter.
pub fn check_count(jaxpr: &Jaxpr, given: usize) -> Result<()> {
    let takes = jaxpr.invars.len();
    if given == takes {
        return Ok(());
    }
    Err(error!(Type, "the program {} takes {takes} arguments, got {given}", jaxpr.debug.describe()))
}

/// Errors unless the parameters of an operation fit the operands, in the terms of one row: batching rules rely on it.
pub(crate) fn check_params(op: &OpRef, args: &[Value]) -> Result<()> {
    if matches!(op, OpRef::Static(_)) || (op.stages() && op.subjaxprs().is_empty()) {
        return Ok(());
    }
    let avals: SmallVec<[Aval; 4]> = args.iter().map(Value::aval).collect();
    op.abstract_eval(&avals.iter().collect::<SmallVec<[&Aval; 4]>>()).map(|_| ())
}

/// Errors unless the programs of a higher-order operation are well formed and fit each other and the operands: its
/// rules rely on it.
pub(crate) fn check_programs(op: &OpRef, args: &[Value]) -> Result<()> {
    if op.subjaxprs().is_empty() { Ok(()) } else { check_params(op, args) }
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
