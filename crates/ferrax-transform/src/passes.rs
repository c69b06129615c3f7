//! Passes over a program before it is lowered: each primitive's rewrites, common subexpressions, dead code.
//!
//! Rewrites are listed in `docs/rewrites.md` with the condition under which they may change bits; under strict
//! numerics those are off. Effects are kept, once each and in order. Parameters stay as they are, dead or not.

use ferrax_base::config::Flag;
use ferrax_base::{Aval, Result, Source};
use ferrax_ir::op::Rewriter;
use ferrax_ir::{Atom, Eqn, Jaxpr, JaxprRef, OpRef, Var};
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

type Inputs = SmallVec<[Atom; 3]>;

/// In [`Rebuild::definitions`]: the variable is a parameter or a constant.
const UNDEFINED: u32 = u32::MAX;

/// A program being rebuilt, equation by equation.
struct Rebuild {
    out: Jaxpr,
    /// The equation that defines each variable of `out`.
    definitions: Vec<u32>,
    /// The pure equations so far, by operation and operands.
    known: HashTable<u32>,
    source: Source,
    strict: bool,
}

fn hash_of(op: &OpRef, inputs: &[Atom]) -> u64 {
    let mut hasher = FxHasher::default();
    op.hash(&mut hasher);
    inputs.hash(&mut hasher);
    hasher.finish()
}

impl Rebuild {
    fn of(out: Jaxpr, equations: usize) -> Rebuild {
        Rebuild {
            definitions: vec![UNDEFINED; out.avals.len()],
            out,
            known: HashTable::with_capacity(equations),
            source: Source::default(),
            strict: Flag::StrictNumerics.get(),
        }
    }

    /// Appends an operation, or finds the results of an equal one.
    fn append(&mut self, op: OpRef, inputs: Inputs, avals: Option<&[Aval]>) -> Result<SmallVec<[Var; 1]>> {
        let hash = if op.effects().is_none() { Some(hash_of(&op, &inputs)) } else { None };
        if let Some(known) = hash.and_then(|hash| self.known(hash, &op, &inputs, avals)) {
            return Ok(self.out.eqns[known as usize].outputs.clone());
        }
        let outputs: SmallVec<[Var; 1]> = match avals {
            Some(avals) => avals.iter().map(|a| self.out.new_var(a.clone())).collect(),
            None => {
                let ins: SmallVec<[Aval; 3]> = inputs.iter().map(|a| self.out.atom_aval(a)).collect();
                let avals = op.abstract_eval(&ins.iter().collect::<SmallVec<[&Aval; 3]>>())?;
                avals.into_iter().map(|a| self.out.new_var(a)).collect()
            }
        };
        let at = self.out.eqns.len() as u32;
        self.definitions.resize(self.out.avals.len(), at);
        self.out.eqns.push(Eqn { op, inputs, outputs: outputs.clone(), source: self.source });
        if let Some(hash) = hash {
            let eqns = &self.out.eqns;
            self.known.insert_unique(hash, at, |&i| hash_of(&eqns[i as usize].op, &eqns[i as usize].inputs));
        }
        Ok(outputs)
    }

    /// The equation that does the same, with results of these types.
    fn known(&self, hash: u64, op: &OpRef, inputs: &[Atom], avals: Option<&[Aval]>) -> Option<u32> {
        let found = self.known.find(hash, |&i| {
            let eqn = &self.out.eqns[i as usize];
            let same = |avals: &[Aval]| avals.iter().zip(&eqn.outputs).all(|(a, v)| self.out.aval(*v) == a);
            eqn.inputs.as_slice() == inputs && eqn.op == *op && avals.is_none_or(same)
        });
        found.copied()
    }
}

impl Rewriter for Rebuild {
    fn producer(&self, atom: &Atom) -> Option<(OpRef, SmallVec<[Atom; 3]>)> {
        let Atom::Var(v) = atom else { return None };
        let eqn = self.out.eqns.get(self.definitions[v.0 as usize] as usize)?;
        (eqn.outputs.len() == 1).then(|| (eqn.op.clone(), eqn.inputs.clone()))
    }

    fn aval(&self, atom: &Atom) -> Aval {
        self.out.atom_aval(atom)
    }

    fn emit(&mut self, op: OpRef, inputs: &[Atom]) -> Result<Atom> {
        Ok(Atom::Var(self.append(op, Inputs::from_slice(inputs), None)?[0]))
    }

    fn strict(&self) -> bool {
        self.strict
    }
}

/// The program after all passes; same parameters and result types.
pub fn optimize(jaxpr: &Jaxpr) -> Result<JaxprRef> {
    let mut out = Jaxpr::default();
    out.debug = jaxpr.debug.clone();
    out.consts.clone_from(&jaxpr.consts);
    let mut map: Vec<Option<Atom>> = vec![None; jaxpr.avals.len()];
    for &v in &jaxpr.constvars {
        let new = out.new_var(jaxpr.aval(v).clone());
        out.constvars.push(new);
        map[v.0 as usize] = Some(Atom::Var(new));
    }
    for &v in &jaxpr.invars {
        let new = out.new_var(jaxpr.aval(v).clone());
        out.invars.push(new);
        map[v.0 as usize] = Some(Atom::Var(new));
    }
    out.avals.reserve(jaxpr.avals.len());
    out.eqns.reserve(jaxpr.eqns.len());
    let mut r = Rebuild::of(out, jaxpr.eqns.len());
    let read = |map: &[Option<Atom>], a: &Atom| match a {
        Atom::Lit(_) => *a,
        Atom::Var(v) => map[v.0 as usize].unwrap_or(*a),
    };
    for eqn in &jaxpr.eqns {
        let inputs: Inputs = eqn.inputs.iter().map(|a| read(&map, a)).collect();
        r.source = eqn.source;
        let outs: SmallVec<[Atom; 1]> = match rewritten(&mut r, eqn, &inputs, jaxpr)? {
            Some(atoms) => atoms,
            None => {
                let avals: SmallVec<[Aval; 1]> = eqn.outputs.iter().map(|&v| jaxpr.aval(v).clone()).collect();
                r.append(eqn.op.clone(), inputs, Some(&avals))?.into_iter().map(Atom::Var).collect()
            }
        };
        for (v, a) in eqn.outputs.iter().zip(outs) {
            map[v.0 as usize] = Some(a);
        }
    }
    r.out.outvars = jaxpr.outvars.iter().map(|a| read(&map, a)).collect();
    r.out.effects = jaxpr.effects;
    let out = without_dead_code(r.out);
    #[cfg(debug_assertions)]
    ferrax_ir::verify::verify_after("optimize", &out)?;
    Ok(out.into())
}

/// What a primitive's rewrite rule puts in place of an equation, when it keeps the types.
fn rewritten(r: &mut Rebuild, eqn: &Eqn, inputs: &[Atom], jaxpr: &Jaxpr) -> Result<Option<SmallVec<[Atom; 1]>>> {
    let Some(atoms) = eqn.op.simplify(&eqn.op, r, inputs)? else { return Ok(None) };
    let kept = atoms.len() == eqn.outputs.len()
        && atoms.iter().zip(&eqn.outputs).all(|(a, v)| r.out.atom_aval(a).same_type(jaxpr.aval(*v)));
    Ok(kept.then_some(atoms))
}

/// The program without operations whose results nobody uses and which have no effects.
fn without_dead_code(mut j: Jaxpr) -> Jaxpr {
    let mut needed = vec![false; j.avals.len()];
    let mark = |needed: &mut Vec<bool>, a: &Atom| {
        if let Atom::Var(v) = a {
            needed[v.0 as usize] = true;
        }
    };
    j.outvars.iter().for_each(|a| mark(&mut needed, a));
    let mut kept = vec![true; j.eqns.len()];
    for (eqn, kept) in j.eqns.iter().zip(&mut kept).rev() {
        *kept = eqn.outputs.iter().any(|v| needed[v.0 as usize]) || !eqn.op.effects().is_none();
        if *kept {
            eqn.inputs.iter().for_each(|a| mark(&mut needed, a));
        }
    }
    let mut kept = kept.into_iter();
    j.eqns.retain(|_| kept.next().unwrap_or(true));
    let live = |v: &Var| needed[v.0 as usize];
    j.consts = j.consts.drain(..).zip(&j.constvars).filter(|(_, v)| live(v)).map(|(c, _)| c).collect();
    j.constvars.retain(live);
    j
}
