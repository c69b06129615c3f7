//! The parts of programs that do not depend on linear parameters.

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
