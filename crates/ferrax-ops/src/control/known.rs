//! The parts of programs that do not depend on linear parameters, and the parameters that results depend on.

use ferrax_ir::{Atom, Jaxpr};

/// Which variables of a program depend on the parameters that are marked.
pub(super) fn depends(jaxpr: &Jaxpr, linear: &[bool]) -> Vec<bool> {
    let mut depends = vec![false; jaxpr.avals.len()];
    for (v, &l) in jaxpr.invars.iter().zip(linear) {
        depends[v.0 as usize] = l;
    }
    for eqn in &jaxpr.eqns {
        let any = eqn.inputs.iter().any(|a| is_among(&depends, a));
        eqn.outputs.iter().for_each(|v| depends[v.0 as usize] = any);
    }
    depends
}

/// Which parameters of a program the marked results depend on: the others have no cotangents, whatever those of the results
/// are. A zero in their place would make a NaN of an infinite derivative further out.
pub(super) fn reached(jaxpr: &Jaxpr, results: &[bool]) -> Vec<bool> {
    let mut needed = vec![false; jaxpr.avals.len()];
    let mark = |a: &Atom, needed: &mut Vec<bool>| {
        if let Atom::Var(v) = a {
            needed[v.0 as usize] = true;
        }
    };
    jaxpr.outvars.iter().zip(results).filter(|r| *r.1).for_each(|(a, _)| mark(a, &mut needed));
    for eqn in jaxpr.eqns.iter().rev() {
        if eqn.outputs.iter().any(|v| needed[v.0 as usize]) {
            eqn.inputs.iter().for_each(|a| mark(a, &mut needed));
        }
    }
    jaxpr.invars.iter().map(|v| needed[v.0 as usize]).collect()
}

/// Whether an atom is a variable that is marked.
pub(super) fn is_among(marks: &[bool], a: &Atom) -> bool {
    matches!(a, Atom::Var(v) if marks[v.0 as usize])
}

/// The program of those parameters, in this order, and these results, which depend on no marked variable.
pub(super) fn known_program(jaxpr: &Jaxpr, depends: &[bool], known: &[usize], outvars: Vec<Atom>) -> Jaxpr {
    let mut program = jaxpr.clone();
    program.invars = known.iter().map(|&i| jaxpr.invars[i]).collect();
    program.eqns.retain(|eqn| !eqn.inputs.iter().any(|a| is_among(depends, a)));
    program.outvars = outvars;
    program
}
