//! Passes over a program before it is lowered: each primitive's rewrites, common subexpressions, dead code.
//!
//! Rewrites are listed in `docs/rewrites.md` with the condition under which they may change bits; under strict
//! numerics those are off. Effects are kept, once each and in order. Parameters stay as they are, dead or not.

use ferrax_base::config::Flag;
use ferrax_base::{Aval, Result, Source};
use ferrax_ir::op::Rewriter;
use ferrax_ir::{Atom, Eqn, Jaxpr, JaxprRef, OpRef, Var};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

type Inputs = SmallVec<[Atom; 3]>;

/// A program being rebuilt, equation by equation.
struct Rebuild {
    out: Jaxpr,
    /// The equation that defines each variable of `out`.
    definitions: FxHashMap<Var, usize>,
    /// Results of the pure operations seen so far.
    known: FxHashMap<(OpRef, Inputs), SmallVec<[Var; 1]>>,
    source: Source,
    strict: bool,
}

impl Rebuild {
    /// Appends an operation, or finds the results of an equal one.
    fn append(&mut self, op: OpRef, inputs: &[Atom], avals: Option<&[Aval]>) -> Result<SmallVec<[Var; 1]>> {
        let key = (op, Inputs::from_slice(inputs));
        let pure = key.0.effects().is_none();
        if pure && let Some(vars) = self.known.get(&key) {
            let same = avals.is_none_or(|a| a.iter().zip(vars).all(|(a, v)| self.out.aval(*v) == a));
            if same {
                return Ok(vars.clone());
            }
        }
        let avals: SmallVec<[Aval; 1]> = match avals {
            Some(a) => SmallVec::from(a),
            None => {
                let ins: SmallVec<[Aval; 3]> = inputs.iter().map(|a| self.out.atom_aval(a)).collect();
                key.0.abstract_eval(&ins.iter().collect::<SmallVec<[&Aval; 3]>>())?
            }
        };
        let outputs: SmallVec<[Var; 1]> = avals.into_iter().map(|a| self.out.new_var(a)).collect();
        let at = self.out.eqns.len();
        outputs.iter().for_each(|v| {
            self.definitions.insert(*v, at);
        });
        self.out.eqns.push(Eqn {
            op: key.0.clone(),
            inputs: key.1.clone(),
            outputs: outputs.clone(),
            source: self.source,
        });
        if pure {
            self.known.insert(key, outputs.clone());
        }
        Ok(outputs)
    }
}

impl Rewriter for Rebuild {
    fn producer(&self, atom: &Atom) -> Option<(OpRef, SmallVec<[Atom; 3]>)> {
        let Atom::Var(v) = atom else { return None };
        let eqn = &self.out.eqns[*self.definitions.get(v)?];
        (eqn.outputs.len() == 1).then(|| (eqn.op.clone(), eqn.inputs.clone()))
    }

    fn aval(&self, atom: &Atom) -> Aval {
        self.out.atom_aval(atom)
    }

    fn emit(&mut self, op: OpRef, inputs: &[Atom]) -> Result<Atom> {
        Ok(Atom::Var(self.append(op, inputs, None)?[0]))
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
    let strict = Flag::StrictNumerics.get();
    let mut r = Rebuild {
        out,
        definitions: FxHashMap::default(),
        known: FxHashMap::default(),
        source: Source::default(),
        strict,
    };
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
                r.append(eqn.op.clone(), &inputs, Some(&avals))?.into_iter().map(Atom::Var).collect()
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
    let mut kept = Vec::with_capacity(j.eqns.len());
    for eqn in std::mem::take(&mut j.eqns).into_iter().rev() {
        if eqn.outputs.iter().any(|v| needed[v.0 as usize]) || !eqn.op.effects().is_none() {
            eqn.inputs.iter().for_each(|a| mark(&mut needed, a));
            kept.push(eqn);
        }
    }
    kept.reverse();
    j.eqns = kept;
    let live = |v: &Var| needed[v.0 as usize];
    j.consts = j.consts.drain(..).zip(&j.constvars).filter(|(_, v)| live(v)).map(|(c, _)| c).collect();
    j.constvars.retain(live);
    j
}
