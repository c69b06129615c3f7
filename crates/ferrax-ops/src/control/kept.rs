//! What reverse mode keeps of a program under `checkpoint`, and what it computes again.
//!
//! A policy is asked of every operation. Inside loops and branches what it approves becomes another result of the forward
//! program, one row a step; the program that runs again takes these as inputs. Read next: `remat.rs`.

use super::cond::{COND, Cond};
use super::jit::JIT;
use super::remat::PolicyRef;
use super::scan::{SCAN, Scan, stacked};
use ferrax_base::{Aval, Result};
use ferrax_ir::{Atom, Eqn, Jaxpr, JaxprRef, OpRef, Value, Var, bind};
use ferrax_transform::eval::eval_jaxpr_with;
use ferrax_transform::eval_jaxpr;
use ferrax_transform::staging::stage_closed;
use ferrax_transform::structural::zeros;

/// A program in two halves.
pub(super) struct Kept {
    /// The program as it runs forward: what is saved is among its variables.
    pub forward: Jaxpr,
    /// The operations that run again, over the same variables and those saved.
    pub again: Vec<Eqn>,
    /// What is saved.
    pub saved: Vec<Var>,
}

/// One operation in two halves.
struct Halves {
    forward: Eqn,
    again: Option<Eqn>,
    saved: Vec<Var>,
}

/// Divides a program: `wanted` is what its second half must give, `policy` what may be saved (without one, nothing).
pub(super) fn keep(policy: Option<&PolicyRef>, jaxpr: &Jaxpr, wanted: &[Atom]) -> Result<Kept> {
    let mut kept = Kept { forward: jaxpr.clone(), again: Vec::new(), saved: Vec::new() };
    let mut saveable = vec![false; jaxpr.eqns.len()];
    if let Some(policy) = policy {
        for (eqn, saveable) in jaxpr.eqns.iter().zip(&mut saveable) {
            let inputs: Vec<Aval> = eqn.inputs.iter().map(|a| jaxpr.atom_aval(a)).collect();
            *saveable = policy.0.saveable(&eqn.op, &inputs)?;
        }
    }
    let mut needed = vec![false; jaxpr.avals.len()];
    need(&mut needed, wanted);
    for (i, eqn) in jaxpr.eqns.iter().enumerate().rev() {
        let wanted: Vec<usize> = (0..eqn.outputs.len()).filter(|&k| needed[eqn.outputs[k].0 as usize]).collect();
        // what shows values shows them again when they are computed again
        if wanted.is_empty() && (saveable[i] || !eqn.op.effects().shows()) {
            continue;
        }
        if saveable[i] {
            kept.saved.extend(wanted.iter().rev().map(|&k| eqn.outputs[k]));
            continue;
        }
        let again = match halves(policy, eqn, &wanted, &mut kept.forward)? {
            Some(halves) => {
                kept.forward.eqns[i] = halves.forward;
                kept.saved.extend(halves.saved.into_iter().rev());
                halves.again
            }
            None => Some(eqn.clone()),
        };
        if let Some(again) = again {
            need(&mut needed, &again.inputs);
            kept.again.push(again);
        }
    }
    kept.again.reverse();
    kept.saved.reverse();
    Ok(kept)
}

/// Marks variables of the program itself; those that a division adds come after them.
fn need(needed: &mut [bool], atoms: &[Atom]) {
    for a in atoms {
        if let Atom::Var(v) = a
            && let Some(n) = needed.get_mut(v.0 as usize)
        {
            *n = true;
        }
    }
}

impl Kept {
    fn shows(&self) -> bool {
        self.again.iter().any(|e| e.op.effects().shows())
    }

    /// Which of these variables the second half reads, beside giving `wanted`.
    fn reads(&self, vars: &[Var], wanted: &[Atom]) -> Vec<bool> {
        let read = |v: &Var| {
            let is = |a: &Atom| *a == Atom::Var(*v);
            wanted.iter().any(is) || self.again.iter().any(|e| e.inputs.iter().any(is))
        };
        vars.iter().map(read).collect()
    }

    fn saves(&self, a: &Atom) -> bool {
        matches!(a, Atom::Var(v) if self.saved.contains(v))
    }

    /// The second half as a program of its own.
    fn program(&self, invars: Vec<Var>, outvars: Vec<Atom>) -> JaxprRef {
        let mut program = self.forward.clone();
        (program.invars, program.outvars, program.eqns) = (invars, outvars, self.again.clone());
        program.into()
    }
}

/// The halves of a loop or a branch.
fn halves(policy: Option<&PolicyRef>, eqn: &Eqn, wanted: &[usize], outer: &mut Jaxpr) -> Result<Option<Halves>> {
    if let Some(p) = eqn.op.of(&SCAN) {
        return of_scan(policy, p, eqn, wanted, outer).map(Some);
    }
    eqn.op.of(&COND).map(|p| of_cond(policy, p, eqn, wanted, outer)).transpose()
}

/// A program without calls: a policy is asked of the operations inside of them, too.
pub(super) fn without_calls(jaxpr: &JaxprRef) -> Result<JaxprRef> {
    if !jaxpr.eqns.iter().any(|e| e.op.is(&JIT)) {
        return Ok(jaxpr.clone());
    }
    stage_closed("checkpoint", jaxpr.debug.clone(), &jaxpr.in_avals(), |args| called(jaxpr, args))
}

/// Applies a program, and the programs that it calls, operation by operation.
fn called(jaxpr: &Jaxpr, args: &[Value]) -> Result<Vec<Value>> {
    eval_jaxpr_with(jaxpr, args, |op, args| match op.of(&JIT) {
        Some(p) => Ok(called(&p.jaxpr, args)?.into()),
        None => bind(op, args),
    })
}

fn pick<T: Clone>(all: &[T], on: &[bool]) -> Vec<T> {
    all.iter().zip(on).filter(|&(_, &on)| on).map(|(x, _)| x.clone()).collect()
}

fn count(on: &[bool]) -> usize {
    on.iter().filter(|&&b| b).count()
}

fn of_scan(policy: Option<&PolicyRef>, p: &Scan, eqn: &Eqn, wanted: &[usize], outer: &mut Jaxpr) -> Result<Halves> {
    let body = if policy.is_some() { without_calls(&p.jaxpr)? } else { p.jaxpr.clone() };
    let (nc, nk) = (p.num_consts, p.num_carry);
    let mut outs: Vec<bool> = (0..body.outvars.len()).map(|i| wanted.contains(&i)).collect();
    let (kept, reads) = loop {
        let atoms = pick(&body.outvars, &outs);
        let kept = keep(policy, &body, &atoms)?;
        // a carried value that a step reads again is computed again by the step before
        let reads = kept.reads(&body.invars, &atoms);
        let grown: Vec<bool> = (0..outs.len()).map(|i| outs[i] || (i < nk && reads[nc + i])).collect();
        if grown == outs {
            break (kept, reads);
        }
        outs = grown;
    };
    let mut forward = kept.forward.clone();
    let mut first = eqn.clone();
    let mut saved = Vec::new();
    for v in &kept.saved {
        saved.push(match body.outvars[nk..].iter().position(|y| *y == Atom::Var(*v)) {
            Some(row) => eqn.outputs[nk + row],
            None => {
                forward.outvars.push(Atom::Var(*v));
                first.outputs.push(outer.new_var(stacked(forward.aval(*v), p.length)));
                first.outputs[first.outputs.len() - 1]
            }
        });
    }
    let scan = |jaxpr, num_consts, num_carry| {
        OpRef::new(&SCAN, Scan { jaxpr, num_consts, num_carry, linear_carry: false, ..p.clone() })
    };
    if !saved.is_empty() {
        first.op = scan(forward.into(), nc, nk);
    }
    let rows: Vec<usize> = (nk..outs.len()).filter(|&i| outs[i] && !saved.contains(&eqn.outputs[i])).collect();
    let again = if rows.is_empty() && wanted.iter().all(|&i| i >= nk) && !kept.shows() {
        None
    } else {
        let carried = &outs[..nk];
        let on: Vec<bool> = [&reads[..nc], carried, &reads[nc + nk..]].concat();
        let outvars = pick(&body.outvars[..nk], carried).into_iter().chain(rows.iter().map(|&i| body.outvars[i]));
        let program = kept.program([pick(&body.invars, &on), kept.saved.clone()].concat(), outvars.collect());
        let carries = (0..nk).filter(|&i| carried[i]);
        let outputs = carries.map(|i| {
            if wanted.contains(&i) { eqn.outputs[i] } else { outer.new_var(body.atom_aval(&body.outvars[i])) }
        });
        let outputs: Vec<Var> = outputs.collect();
        Some(Eqn {
            op: scan(program, count(&reads[..nc]), count(carried)),
            inputs: pick(&eqn.inputs, &on).into_iter().chain(saved.iter().map(|&v| Atom::Var(v))).collect(),
            outputs: outputs.into_iter().chain(rows.iter().map(|&i| eqn.outputs[i])).collect(),
            source: eqn.source,
        })
    };
    Ok(Halves { forward: first, again, saved })
}

fn of_cond(policy: Option<&PolicyRef>, p: &Cond, eqn: &Eqn, wanted: &[usize], outer: &mut Jaxpr) -> Result<Halves> {
    let own = |b: &JaxprRef| if policy.is_some() { without_calls(b) } else { Ok(b.clone()) };
    let branches = p.branches.iter().map(own).collect::<Result<Vec<_>>>()?;
    let atoms = |b: &Jaxpr, at: &[usize]| at.iter().map(|&i| b.outvars[i]).collect::<Vec<_>>();
    let kept = branches.iter().map(|b| keep(policy, b, &atoms(b, wanted))).collect::<Result<Vec<_>>>()?;
    let everywhere = |i: &usize| branches.iter().zip(&kept).all(|(b, k)| k.saves(&b.outvars[*i]));
    let (whole, rest): (Vec<usize>, Vec<usize>) = wanted.iter().partition(|i| everywhere(i));
    // slots of what one branch saves; the others give zeros
    let mut slots: Vec<(usize, Var)> = Vec::new();
    for (i, (b, k)) in branches.iter().zip(&kept).enumerate() {
        let own = k.saved.iter().filter(|v| !whole.iter().any(|&o| b.outvars[o] == Atom::Var(**v)));
        slots.extend(own.map(|&v| (i, v)));
    }
    let avals: Vec<Aval> = slots.iter().map(|(i, v)| kept[*i].forward.aval(*v).with_weak(false)).collect();
    let mut first = eqn.clone();
    let forward = kept.iter().enumerate().map(|(i, k)| {
        let mut own = k.forward.clone();
        own.outvars.extend(slots.iter().filter(|s| s.0 == i).map(|s| Atom::Var(s.1)));
        stage_closed("cond", own.debug.clone(), &own.in_avals(), |args| {
            let mut values = eval_jaxpr(&own, args)?;
            let mut saved = values.split_off(eqn.outputs.len()).into_iter();
            for (slot, aval) in slots.iter().zip(&avals) {
                values.push(if slot.0 == i { saved.next() } else { None }.map_or_else(|| zeros(aval), Ok)?);
            }
            Ok(values)
        })
    });
    if kept.iter().any(|k| !k.saved.is_empty()) {
        let branches = forward.collect::<Result<Vec<_>>>()?;
        first.outputs.extend(branches[0].out_avals().drain(eqn.outputs.len()..).map(|a| outer.new_var(a)));
        first.op = OpRef::new(&COND, Cond { branches });
    }
    let saved: Vec<Var> =
        whole.iter().map(|&o| eqn.outputs[o]).chain(first.outputs[eqn.outputs.len()..].iter().copied()).collect();
    if rest.is_empty() && !kept.iter().any(Kept::shows) {
        return Ok(Halves { forward: first, again: None, saved });
    }
    let mut on = vec![false; eqn.inputs.len() - 1];
    for (b, k) in branches.iter().zip(&kept) {
        on = super::or(&on, &k.reads(&b.invars, &atoms(b, &rest)));
    }
    let programs = branches.iter().zip(&kept).enumerate().map(|(i, (b, k))| {
        let mut own = Kept { forward: k.forward.clone(), again: k.again.clone(), saved: Vec::new() };
        let mut invars = pick(&b.invars, &on);
        for &o in &whole {
            // one variable may be several results
            invars.push(match b.outvars[o] {
                Atom::Var(v) if !invars.contains(&v) => v,
                ref a => own.forward.new_var(b.atom_aval(a)),
            });
        }
        for (slot, aval) in slots.iter().zip(&avals) {
            invars.push(if slot.0 == i { slot.1 } else { own.forward.new_var(aval.clone()) });
        }
        own.program(invars, atoms(b, &rest))
    });
    let again = Eqn {
        op: OpRef::new(&COND, Cond { branches: programs.collect() }),
        inputs: std::iter::once(eqn.inputs[0])
            .chain(pick(&eqn.inputs[1..], &on))
            .chain(saved.iter().map(|&v| Atom::Var(v)))
            .collect(),
        outputs: rest.iter().map(|&o| eqn.outputs[o]).collect(),
        source: eqn.source,
    };
    Ok(Halves { forward: first, again: Some(again), saved })
}
