//! What programs make of the facts of `check_where`: calls, branches, loops, functions with rules of their own.
//!
//! What a loop carries is found as a fixpoint: bounds that still move after two turns are given up, and only the last turn
//! reports. Functions with derivative rules of their own are not looked into: their gradient is what the rule says.

use super::{id_of, joined};
use crate::control::cond::COND;
use crate::control::custom_jvp::CUSTOM_JVP;
use crate::control::custom_vjp::CUSTOM_VJP;
use crate::control::custom_vmap::CUSTOM_VMAP;
use crate::control::jit::JIT;
use crate::control::remat::REMAT;
use crate::control::scan::{SCAN, Scan};
use crate::control::while_loop::{WHILE, While};
use ferrax_base::{Aval, Result};
use ferrax_ir::{JaxprRef, OpRef};
use ferrax_transform::where_check::{Fact, Range, Reports, hash_of, of_atom, program_facts};

/// The results of an operation that runs programs; `None` for any other.
pub(super) fn facts(op: &OpRef, args: &[Fact], outs: &[Aval], reports: &mut Reports) -> Result<Option<Vec<Fact>>> {
    let found = if let Some(p) = op.of(&JIT) {
        run(&p.jaxpr, args, 0, reports)?
    } else if let Some(p) = op.of(&REMAT) {
        run(&p.jaxpr, args, 0, reports)?
    } else if let Some(p) = op.of(&CUSTOM_VMAP) {
        run(&p.call, args, 0, reports)?
    } else if let Some(p) = op.of(&COND) {
        let mut all: Option<Vec<Fact>> = None;
        for branch in &p.branches {
            let found = run(branch, &args[1..], 0, reports)?;
            all = Some(match all {
                None => found,
                Some(old) => old.iter().zip(&found).map(|(a, b)| joined(a, b, hash_of(&(a.id, b.id)))).collect(),
            });
        }
        all.unwrap_or_default()
    } else if let Some(p) = op.of(&SCAN) {
        scan(p, args, id_of(op, args), reports)?
    } else if let Some(p) = op.of(&WHILE) {
        while_loop(p, args, id_of(op, args), reports)?
    } else if let Some(p) = op.of(&CUSTOM_JVP) {
        custom(p.call_jaxpr.as_ref(), op, args, outs, reports)?
    } else if let Some(p) = op.of(&CUSTOM_VJP) {
        custom(p.call_jaxpr.as_ref(), op, args, outs, reports)?
    } else {
        return Ok(None);
    };
    Ok(Some(found))
}

/// The results of a program.
fn run(jaxpr: &JaxprRef, args: &[Fact], salt: u64, reports: &mut Reports) -> Result<Vec<Fact>> {
    let salt = hash_of(&(salt, jaxpr.structural_hash()));
    let known = jaxpr.invars.iter().copied().zip(args.iter().cloned()).collect();
    let env = program_facts(jaxpr, known, |_| true, salt, reports)?;
    Ok(jaxpr.outvars.iter().map(|a| of_atom(jaxpr, &env, a, salt)).collect())
}

/// As [`run`], without reports.
fn quietly(jaxpr: &JaxprRef, args: &[Fact], salt: u64, reports: &mut Reports) -> Result<Vec<Fact>> {
    reports.silent += 1;
    let found = run(jaxpr, args, salt, reports);
    reports.silent -= 1;
    found
}

/// A function with a rule of its own: what its results lie in, without what happens inside.
fn custom(
    jaxpr: Option<&JaxprRef>,
    op: &OpRef,
    args: &[Fact],
    outs: &[Aval],
    reports: &mut Reports,
) -> Result<Vec<Fact>> {
    let inside = jaxpr.map(|j| quietly(j, args, 0, reports)).transpose()?;
    let (id, active) = (id_of(op, args), args.iter().any(|a| a.active));
    let edges = super::past(args);
    let fact = |(i, out): (usize, &Aval)| {
        let range = inside.as_ref().map_or_else(|| Range::of_dtype(out.dtype), |f| f[i].range);
        let mut fact = Fact::new(hash_of(&(id, i)), range, active && out.dtype.is_inexact());
        if fact.active {
            fact.edges.clone_from(&edges);
        }
        fact
    };
    Ok(outs.iter().enumerate().map(fact).collect())
}

/// What a loop carries after any number of turns, given what a turn makes of it.
fn fixpoint(
    start: &[Fact],
    salt: u64,
    reports: &mut Reports,
    mut turn: impl FnMut(&[Fact], &mut Reports) -> Result<Vec<Fact>>,
) -> Result<Vec<Fact>> {
    let numbered = |i: usize, fact: &Fact| Fact { id: hash_of(&(salt, "carry", i)), claims: None, ..fact.clone() };
    let mut carry: Vec<Fact> = start.iter().enumerate().map(|(i, f)| numbered(i, f)).collect();
    for n in 0..12 {
        reports.silent += 1;
        let next = turn(&carry, reports);
        reports.silent -= 1;
        let mut same = true;
        for (old, new) in carry.iter_mut().zip(next?) {
            let mut both = joined(old, &new, old.id);
            // no guard of one turn is known to hold in all
            both.guards.clear();
            if n > 1 {
                let up = if both.range.hi > old.range.hi { f64::INFINITY } else { both.range.hi };
                // sums of what is not negative stay so
                let down = match both.range.lo {
                    lo if lo >= old.range.lo => lo,
                    lo if lo >= 0.0 => 0.0,
                    _ => f64::NEG_INFINITY,
                };
                both.range = Range { lo: down, hi: up, without_zero: both.range.without_zero };
            }
            same &= both.range == old.range && both.active == old.active && both.edges.len() == old.edges.len();
            *old = both;
        }
        if same {
            break;
        }
    }
    Ok(carry)
}

fn scan(p: &Scan, args: &[Fact], salt: u64, reports: &mut Reports) -> Result<Vec<Fact>> {
    let (consts, rest) = args.split_at(p.num_consts);
    let (start, xs) = rest.split_at(p.num_carry);
    let row = |(i, x): (usize, &Fact)| Fact {
        id: hash_of(&(salt, "row", i)),
        guards: smallvec::SmallVec::new(),
        claims: None,
        ..x.clone()
    };
    let rows: Vec<Fact> = xs.iter().enumerate().map(row).collect();
    let step = |carry: &[Fact]| [consts, carry, &rows].concat();
    let carry = fixpoint(start, salt, reports, |carry, reports| {
        let mut next = run(&p.jaxpr, &step(carry), salt, reports)?;
        next.truncate(p.num_carry);
        Ok(next)
    })?;
    let outs = run(&p.jaxpr, &step(&carry), salt, reports)?;
    Ok(after(&outs, start, p.num_carry, salt))
}

/// The results of a loop: what is carried may be what it started with.
fn after(outs: &[Fact], start: &[Fact], carried: usize, salt: u64) -> Vec<Fact> {
    let mut all: Vec<Fact> = outs.to_vec();
    for (i, fact) in all.iter_mut().enumerate() {
        let id = hash_of(&(salt, "result", i));
        *fact = if i < carried { joined(fact, &start[i], id) } else { Fact { id, ..fact.clone() } };
        fact.guards.clear();
        fact.claims = None;
    }
    all
}

fn while_loop(p: &While, args: &[Fact], salt: u64, reports: &mut Reports) -> Result<Vec<Fact>> {
    let (consts, start) = args.split_at(p.cond_nconsts + p.body_nconsts);
    let consts = &consts[p.cond_nconsts..];
    let carry =
        fixpoint(start, salt, reports, |carry, reports| run(&p.body_jaxpr, &[consts, carry].concat(), salt, reports))?;
    let outs = run(&p.body_jaxpr, &[consts, &carry[..]].concat(), salt, reports)?;
    Ok(after(&outs, start, start.len(), salt))
}
