//! Reverse mode: transposing linear programs, a tape or a Jaxpr, from the last operation to the first.
//!
//! Cotangents of `None` are symbolic zeros; operations that no cotangent reaches are skipped. A rule that a user wrote
//! is asked for zeros, too, where a result with a cotangent depends on its operation: what it answers need not be linear.

use crate::eval::{MappedVars, read};
use crate::linearize::{Tape, TapeArg};
use crate::live::{self, Marks};
use crate::mapped::Pulling;
use crate::structural::add_any;
use ferrax_base::source::Replay;
use ferrax_base::{Result, error};
use ferrax_ir::{Atom, Eqn, Jaxpr, OpRef, Tangents, TransposeArg, Value, Var, bind, spread};
use smallvec::SmallVec;

/// The cotangents that have arrived at the variables of a linear program, with their marks under `safe_where`.
pub struct Cotangents {
    values: Vec<Option<Value>>,
    /// The variables that results with cotangents depend on.
    reached: Vec<bool>,
    live: Option<Vec<Option<Value>>>,
    /// The variables whose cotangents matter; all of them where nobody says which.
    wanted: Option<Vec<bool>>,
}

impl Cotangents {
    /// None yet, for this many variables.
    pub fn new(variables: usize) -> Self {
        let live = live::marking().then(|| vec![None; variables]);
        Cotangents { values: vec![None; variables], reached: vec![false; variables], live, wanted: None }
    }

    /// Leaves out what only the cotangents of other inputs of a tape than these need.
    pub fn only(&mut self, tape: &Tape, inputs: impl Iterator<Item = Var>) {
        let mut wanted = vec![false; tape.avals.len()];
        inputs.for_each(|v| wanted[v.0 as usize] = true);
        for eqn in &tape.eqns {
            if eqn.args.iter().any(|a| matches!(a, TapeArg::Linear(v) if wanted[v.0 as usize])) {
                wanted[eqn.first as usize..(eqn.first + eqn.results) as usize].fill(true);
            }
        }
        self.wanted = Some(wanted);
    }

    /// Notes that the operands of an operation are reached where its results are, and says whether they are.
    fn reach(&mut self, mut outputs: impl Iterator<Item = usize>, inputs: impl Iterator<Item = Var>) -> bool {
        let reached = outputs.any(|v| self.reached[v]);
        if reached {
            inputs.for_each(|v| self.reached[v.0 as usize] = true);
        }
        reached
    }

    /// Adds a cotangent to what has arrived so far.
    pub fn add(&mut self, var: usize, ct: Value, mark: Option<Value>) -> Result<()> {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted[var]) {
            return Ok(());
        }
        if let Some(live) = &mut self.live {
            live[var] = match &self.values[var] {
                Some(_) => live::join(live[var].take(), mark)?,
                None => mark,
            };
        }
        self.reached[var] = true;
        let slot = &mut self.values[var];
        *slot = Some(match slot.take() {
            Some(old) => add_any(&old, &ct)?,
            None => ct,
        });
        Ok(())
    }

    /// Takes what has arrived at a variable.
    pub fn take(&mut self, var: usize) -> Option<Value> {
        self.values[var].take()
    }

    /// Transposes an operation whose results are these variables, which are reached; `None` when all their cotangents are
    /// zeros that its rule need not see.
    fn pull(
        &mut self,
        op: &OpRef,
        outputs: impl Iterator<Item = usize> + Clone,
        args: impl FnOnce() -> Result<SmallVec<[TransposeArg; 3]>>,
    ) -> Result<Option<(Tangents, Marks)>> {
        let cts: SmallVec<[Option<Value>; 1]> = outputs.clone().map(|v| self.values[v].take()).collect();
        if cts.iter().all(Option::is_none) && !op.pulls_zeros() {
            return Ok(None);
        }
        let args = args()?;
        let (pulled, marks) = match &mut self.live {
            None => (op.transpose(op, &cts, &args)?, Marks::new()),
            Some(live) => {
                let marks: Marks = outputs.map(|v| live[v].take()).collect();
                live::pull(op, &cts, &marks, &args)?
            }
        };
        check_count(op.name(), &pulled, args.len())?;
        Ok(Some((pulled, marks)))
    }
}

/// Pulls the cotangents in `env` (by tape variable) back to the tape's inputs, in place.
pub fn backward_tape(tape: &Tape, env: &mut Cotangents) -> Result<()> {
    let mapped = MappedVars::of(&tape.mapped);
    let replay = Replay::start();
    for eqn in tape.eqns.iter().rev() {
        replay.at(eqn.source.on_the_way_back(eqn.op.name()));
        let linear = eqn.args.iter().filter_map(|a| if let TapeArg::Linear(v) = a { Some(*v) } else { None });
        let results = (eqn.first..eqn.first + eqn.results).map(Var);
        let outs = eqn.first as usize..(eqn.first + eqn.results) as usize;
        if !env.reach(outs.clone(), linear.clone()) {
            continue;
        }
        let _row = Pulling::start(&mapped, linear.chain(results.clone()), &tape.avals);
        let args = || {
            let arg = |a: &TapeArg| match a {
                TapeArg::Linear(v) => TransposeArg::Linear(tape.avals[v.0 as usize].clone()),
                TapeArg::Known(v) => TransposeArg::Known(v.clone()),
            };
            Ok(eqn.args.iter().map(arg).collect())
        };
        let Some((pulled, mut marks)) = env.pull(&eqn.op, outs, args)? else { continue };
        for (i, (a, ct)) in eqn.args.iter().zip(pulled).enumerate() {
            if let (TapeArg::Linear(v), Some(ct)) = (a, ct) {
                Pulling::note(&mapped, *v, results.clone(), &tape.avals, &ct);
                let ct = spread::settled(ct, &tape.avals[v.0 as usize])?;
                env.add(v.0 as usize, ct, marks.get_mut(i).and_then(Option::take))?;
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
    Ok(backward_marked(jaxpr, args, cotangents, &[])?.0)
}

/// [`backward`] of cotangents with marks (none at all: every element is live); gives the marks of what it pulls back.
pub(crate) fn backward_marked(
    jaxpr: &Jaxpr,
    args: &[TransposeArg],
    cotangents: &[Option<Value>],
    marks: &[Option<Value>],
) -> Result<(Vec<Option<Value>>, Vec<Option<Value>>)> {
    let (known, linear) = evaluate_known(jaxpr, args)?;
    let mut cts = Cotangents::new(jaxpr.avals.len());
    for (i, (a, ct)) in jaxpr.outvars.iter().zip(cotangents).enumerate() {
        if let (Atom::Var(v), Some(ct)) = (a, ct) {
            cts.add(v.0 as usize, ct.clone(), marks.get(i).cloned().flatten())?;
        }
    }
    let mapped = MappedVars::of(&jaxpr.mapped);
    let replay = Replay::start();
    for eqn in linear.into_iter().rev() {
        replay.at(eqn.source.on_the_way_back(eqn.op.name()));
        let inputs = eqn.inputs.iter().filter_map(|a| if let Atom::Var(v) = a { Some(*v) } else { None });
        let results = eqn.outputs.iter().copied();
        let outs = eqn.outputs.iter().map(|v| v.0 as usize);
        if !cts.reach(outs.clone(), inputs.clone()) {
            continue;
        }
        let _row = Pulling::start(&mapped, inputs.chain(results.clone()), &jaxpr.avals);
        let args = || {
            let arg = |a: &Atom| match a {
                Atom::Var(v) if known[v.0 as usize].is_none() => Ok(TransposeArg::Linear(jaxpr.aval(*v).clone())),
                other => read(&known, other).map(TransposeArg::Known),
            };
            eqn.inputs.iter().map(arg).collect()
        };
        let Some((pulled, mut marks)) = cts.pull(&eqn.op, outs, args)? else { continue };
        for (i, (a, ct)) in eqn.inputs.iter().zip(pulled).enumerate() {
            if let (Atom::Var(v), Some(ct)) = (a, ct) {
                Pulling::note(&mapped, *v, results.clone(), &jaxpr.avals, &ct);
                let ct = spread::settled(ct, jaxpr.aval(*v))?;
                cts.add(v.0 as usize, ct, marks.get_mut(i).and_then(Option::take))?;
            }
        }
    }
    let mut pulled = Vec::with_capacity(args.len());
    let mut live = Vec::with_capacity(args.len());
    for (v, a) in jaxpr.invars.iter().zip(args) {
        let at = v.0 as usize;
        pulled.push(if a.is_linear() { cts.take(at) } else { None });
        live.push(cts.live.as_mut().and_then(|l| l[at].take()));
    }
    Ok((pulled, live))
}

/// The values of what depends on known arguments alone, and the other equations.
#[allow(clippy::type_complexity)]
fn evaluate_known<'j>(jaxpr: &'j Jaxpr, args: &[TransposeArg]) -> Result<(Vec<Option<Value>>, Vec<&'j Eqn>)> {
    let mut known: Vec<Option<Value>> = vec![None; jaxpr.avals.len()];
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
    let mut used = None;
    let mapped = MappedVars::of(&jaxpr.mapped);
    let replay = Replay::start();
    for eqn in &jaxpr.eqns {
        replay.at(eqn.source);
        if !eqn.inputs.iter().all(|a| is_known(&known, a)) {
            let used = used.get_or_insert_with(|| operands_of(jaxpr));
            for (v, out) in known_results(eqn, &known, used)? {
                mapped.note(v, &out);
                known[v.0 as usize] = Some(out);
            }
            linear.push(eqn);
            continue;
        }
        let inputs = eqn.inputs.iter().map(|a| read(&known, a)).collect::<Result<SmallVec<[Value; 4]>>>()?;
        for (v, out) in eqn.outputs.iter().zip(bind(&eqn.op, &inputs)?) {
            mapped.note(*v, &out);
            known[v.0 as usize] = Some(out);
        }
    }
    Ok((known, linear))
}

/// Which variables are operands of equations.
fn operands_of(jaxpr: &Jaxpr) -> Vec<bool> {
    let mut used = vec![false; jaxpr.avals.len()];
    for a in jaxpr.eqns.iter().flat_map(|e| &e.inputs) {
        if let Atom::Var(v) = a {
            used[v.0 as usize] = true;
        }
    }
    used
}

/// The results of an equation with linear operands that do not depend on these, where other equations need them: of a
/// loop that carries numbers of steps and tangents, what follows from the numbers alone.
fn known_results(eqn: &Eqn, known: &[Option<Value>], used: &[bool]) -> Result<Vec<(Var, Value)>> {
    if eqn.outputs.len() < 2 || !eqn.outputs.iter().any(|v| used[v.0 as usize]) {
        return Ok(Vec::new());
    }
    let linear: Vec<bool> =
        eqn.inputs.iter().map(|a| matches!(a, Atom::Var(v) if known[v.0 as usize].is_none())).collect();
    let Some(part) = eqn.op.known_part(&linear) else { return Ok(Vec::new()) };
    if !part.outputs.iter().any(|&i| used[eqn.outputs[i].0 as usize]) {
        return Ok(Vec::new());
    }
    let inputs = part.inputs.iter().map(|&i| read(known, &eqn.inputs[i])).collect::<Result<SmallVec<[Value; 4]>>>()?;
    let outs = bind(&part.op, &inputs)?;
    Ok(part.outputs.iter().map(|&i| eqn.outputs[i]).zip(outs).collect())
}
