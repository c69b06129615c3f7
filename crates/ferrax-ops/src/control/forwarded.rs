//! Branches and loops as a user calls them: results that are operands, whatever runs, are those operands.
//!
//! What every branch hands on is not chosen, and what a loop's body hands on is no carry but a constant. So under `vmap`
//! such a result stays without the batch axis though the choice has one, as in JAX. Read next: `cond.rs`, `while_loop.rs`.

use super::cond::cond;
use super::scan::{Scan, scan};
use super::while_loop::{While, while_loop};
use ferrax_base::Result;
use ferrax_ir::{Atom, Jaxpr, JaxprRef, Value, Var};

/// The parameter that is this result.
fn parameter(jaxpr: &Jaxpr, result: usize) -> Option<usize> {
    match jaxpr.outvars.get(result)? {
        Atom::Var(v) => jaxpr.invars.iter().position(|p| p == v),
        Atom::Lit(_) => None,
    }
}

/// The program with some of its results.
fn with_results(jaxpr: &JaxprRef, kept: &[bool]) -> JaxprRef {
    let mut out = (**jaxpr).clone();
    let mut kept = kept.iter();
    out.outvars.retain(|_| kept.next().is_some_and(|&k| k));
    out.into()
}

/// Runs the branch that `index` (a scalar int32) chooses; results that every branch takes from one operand are not chosen.
pub fn cond_forwarded(branches: Vec<JaxprRef>, index: &Value, operands: &[Value]) -> Result<Vec<Value>> {
    let common = |i: usize| {
        let first = parameter(&branches[0], i)?;
        branches[1..].iter().all(|b| parameter(b, i) == Some(first)).then_some(first)
    };
    let from: Vec<Option<usize>> = (0..branches[0].outvars.len()).map(common).collect();
    if from.iter().all(Option::is_none) {
        return cond(branches, index, operands);
    }
    let kept: Vec<bool> = from.iter().map(Option::is_none).collect();
    let programs: Vec<JaxprRef> = branches.iter().map(|b| with_results(b, &kept)).collect();
    let mut chosen = cond(programs, index, operands)?.into_iter();
    Ok(from.iter().filter_map(|f| f.map_or_else(|| chosen.next(), |i| Some(operands[i].clone()))).collect())
}

/// Whether an operation or a result of the program reads a variable.
fn reads(jaxpr: &Jaxpr, var: Var) -> bool {
    let is = |a: &Atom| matches!(a, Atom::Var(v) if *v == var);
    jaxpr.outvars.iter().any(is) || jaxpr.eqns.iter().any(|e| e.inputs.iter().any(is))
}

/// Runs a loop; carried values that the body hands on and the condition does not read become constants of the body.
pub fn while_forwarded(params: While, args: &[Value]) -> Result<Vec<Value>> {
    let (body_consts, cond_consts) = (params.body_nconsts, params.cond_nconsts);
    let carried = params.body_jaxpr.outvars.len();
    let test = |i: usize| params.cond_jaxpr.invars[cond_consts + i];
    let constant = |i| parameter(&params.body_jaxpr, i) == Some(body_consts + i) && !reads(&params.cond_jaxpr, test(i));
    let moved: Vec<bool> = (0..carried).map(constant).collect();
    if !moved.contains(&true) {
        return while_loop(params, args);
    }
    let kept: Vec<bool> = moved.iter().map(|m| !m).collect();
    let mut body = (*with_results(&params.body_jaxpr, &kept)).clone();
    let (front, carries) = split(body.invars.split_off(body_consts), &moved);
    body.invars.splice(0..0, front);
    body.invars.extend(carries);
    let mut condition = (*params.cond_jaxpr).clone();
    let (_, tested) = split(condition.invars.split_off(cond_consts), &moved);
    condition.invars.extend(tested);
    let (consts, init) = args.split_at(cond_consts + body_consts);
    let (unchanged, changing) = split(init.to_vec(), &moved);
    let operands: Vec<Value> = [&consts[..cond_consts], &unchanged, &consts[cond_consts..], &changing]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let params = While {
        body_jaxpr: body.into(),
        body_nconsts: body_consts + unchanged.len(),
        cond_jaxpr: condition.into(),
        ..params
    };
    let mut results = while_loop(params, &operands)?.into_iter();
    let mut unchanged = unchanged.into_iter();
    Ok(moved.iter().filter_map(|&m| if m { unchanged.next() } else { results.next() }).collect())
}

/// Runs a loop over rows; carried values that the body hands on become constants of it, and rows that it gives as it
/// takes them are the operand.
pub fn scan_forwarded(params: Scan, args: &[Value]) -> Result<Vec<Value>> {
    let (consts, carried) = (params.num_consts, params.num_carry);
    let operand = |i: usize| {
        let at = parameter(&params.jaxpr, i)?;
        let itself = if i < carried { at == consts + i } else { at >= consts + carried };
        itself.then_some(at)
    };
    let from: Vec<Option<usize>> = (0..params.jaxpr.outvars.len()).map(operand).collect();
    if from.iter().all(Option::is_none) {
        return scan(params, args);
    }
    let moved: Vec<bool> = from[..carried].iter().map(Option::is_some).collect();
    let kept: Vec<bool> = from.iter().map(Option::is_none).collect();
    let mut body = (*with_results(&params.jaxpr, &kept)).clone();
    let (constant, changing) = split(body.invars.drain(consts..consts + carried).collect(), &moved);
    let num_consts = consts + constant.len();
    body.invars.splice(consts..consts, changing);
    body.invars.splice(0..0, constant);
    let (constant, changing) = split(args[consts..consts + carried].to_vec(), &moved);
    let num_carry = changing.len();
    let rows = args[consts + carried..].iter().cloned();
    let operands: Vec<Value> =
        constant.into_iter().chain(args[..consts].iter().cloned()).chain(changing).chain(rows).collect();
    let params = Scan { jaxpr: body.into(), num_consts, num_carry, ..params };
    let mut results = scan(params, &operands)?.into_iter();
    Ok(from.iter().filter_map(|f| f.map_or_else(|| results.next(), |i| Some(args[i].clone()))).collect())
}

/// The items that are marked, and the others.
fn split<T>(items: Vec<T>, marked: &[bool]) -> (Vec<T>, Vec<T>) {
    let mut marks = marked.iter();
    items.into_iter().partition(|_| marks.next().is_some_and(|&m| m))
}
