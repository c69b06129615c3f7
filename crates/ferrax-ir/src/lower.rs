//! Jaxpr to kernel IR: each equation's own lowering, in order.
//!
//! The graph's parameters are the program's constants, then its arguments.

use crate::device::DeviceId;
use crate::jaxpr::{Atom, Eqn, Jaxpr, Var};
use crate::op::OpRef;
use crate::spread;
use ferrax_base::{Aval, Result, error, scopes};
use ferrax_loops::{Builder, Graph, Kind, Type, ValueId};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;

/// The graph of an operation that has notes for compilers: what is called, its notes, and the composite that it is.
pub type Noted = (Arc<Graph>, Arc<str>, Option<Arc<str>>);

/// A graph that gives its parameter, and how what a call of it gives lies on devices.
pub type Said = (Arc<Graph>, DeviceId);

thread_local! {
    static NOTED: RefCell<Option<Vec<Noted>>> = const { RefCell::new(None) };
    static SAID: RefCell<Option<Vec<Said>>> = const { RefCell::new(None) };
}

/// Lowers a whole program.
pub fn lower(jaxpr: &Jaxpr) -> Result<Graph> {
    lower_with(jaxpr, |_, _| {})
}

/// As [`lower`]; `after` sees each equation with the values that it became.
pub fn lower_with(jaxpr: &Jaxpr, after: impl FnMut(&Eqn, &[ValueId])) -> Result<Graph> {
    let params = jaxpr.constvars.iter().chain(&jaxpr.invars).map(|&v| Type::from(jaxpr.aval(v)));
    let mut b = Builder::new(params);
    let args: Vec<ValueId> = b.params().collect();
    let outs = lower_each(jaxpr, &mut b, &args, after)?;
    Ok(b.finish(&outs))
}

/// As [`lower_with`], for texts: operations with notes ([`scopes::notes`]), nested ones too, are calls of graphs of their own.
pub fn lower_noted(jaxpr: &Jaxpr, after: impl FnMut(&Eqn, &[ValueId])) -> Result<(Graph, Vec<Noted>)> {
    let before = NOTED.replace(Some(Vec::new()));
    let graph = lower_with(jaxpr, after);
    let noted = NOTED.replace(before).unwrap_or_default();
    Ok((graph?, noted))
}

/// As [`lower`], for compilers that spread a program over devices: values of which it says how they lie, nested ones too,
/// are what calls give.
pub fn lower_said(jaxpr: &Jaxpr) -> Result<(Graph, Vec<Said>)> {
    let before = SAID.replace(Some(Vec::new()));
    let graph = lower(jaxpr);
    let said = SAID.replace(before).unwrap_or_default();
    Ok((graph?, said))
}

/// An operation's results, of which types may say how they lie on devices.
fn said_by_types(b: &mut Builder, made: &mut [ValueId], types: &[Aval]) -> Result<()> {
    if SAID.with_borrow(Option::is_some) {
        for (v, aval) in made.iter_mut().zip(types) {
            if let Some(place) = spread::place(aval)? {
                *v = lies(b, *v, place);
            }
        }
    }
    Ok(())
}

/// A value of which a program says how it lies on devices.
pub fn lies(b: &mut Builder, x: ValueId, place: DeviceId) -> ValueId {
    SAID.with_borrow_mut(|said| {
        let Some(said) = said else { return x };
        let ty = b.ty(x).clone();
        let same = Arc::new(Graph { params: 1, types: vec![ty.clone()], nodes: Vec::new(), outputs: vec![ValueId(0)] });
        said.push((same.clone(), place));
        b.push(Kind::Call(same), &[x], ty)
    })
}

/// Appends a program's operations; `args` are its constants, then its arguments.
pub fn lower_into(jaxpr: &Jaxpr, b: &mut Builder, args: &[ValueId]) -> Result<Vec<ValueId>> {
    lower_each(jaxpr, b, args, |_, _| {})
}

fn lower_each(
    jaxpr: &Jaxpr,
    b: &mut Builder,
    args: &[ValueId],
    mut after: impl FnMut(&Eqn, &[ValueId]),
) -> Result<Vec<ValueId>> {
    let mut env: Vec<Option<ValueId>> = vec![None; jaxpr.avals.len()];
    for (&v, &id) in jaxpr.constvars.iter().chain(&jaxpr.invars).zip(args) {
        env[v.0 as usize] = Some(id);
    }
    let mut inputs: SmallVec<[ValueId; 4]> = SmallVec::new();
    for eqn in &jaxpr.eqns {
        inputs.clear();
        for a in &eqn.inputs {
            inputs.push(read(&env, b, a)?);
        }
        let outs: SmallVec<[Aval; 1]> = eqn.outputs.iter().map(|&v| jaxpr.aval(v).clone()).collect();
        let mut made = match noted(eqn) {
            None => lower_one(&eqn.op, b, &inputs, &outs)?,
            Some((notes, composite)) => {
                let mut own = Builder::new(inputs.iter().map(|&v| b.ty(v).clone()));
                let params: SmallVec<[ValueId; 4]> = own.params().collect();
                let results = lower_one(&eqn.op, &mut own, &params, &outs)?;
                let graph = Arc::new(own.finish(&results));
                NOTED.with_borrow_mut(|all| all.as_mut().map(|all| all.push((graph.clone(), notes, composite))));
                b.push_many(Kind::Call(graph), &inputs, &outs.iter().map(Type::from).collect::<Vec<_>>())
            }
        };
        said_by_types(b, &mut made, &outs)?;
        after(eqn, &made);
        for (&v, id) in eqn.outputs.iter().zip(made) {
            env[v.0 as usize] = Some(id);
        }
    }
    jaxpr.outvars.iter().map(|a| read(&env, b, a)).collect()
}

/// The notes of an equation, where they are asked for and there are some.
fn noted(eqn: &Eqn) -> Option<(Arc<str>, Option<Arc<str>>)> {
    let asked = NOTED.with_borrow(Option::is_some);
    asked.then(|| scopes::notes(eqn.source.scope)).filter(|(notes, composite)| !notes.is_empty() || composite.is_some())
}

fn read(env: &[Option<ValueId>], b: &mut Builder, a: &Atom) -> Result<ValueId> {
    match a {
        Atom::Lit(l) => Ok(b.scalar(l.scalar)),
        Atom::Var(Var(i)) => {
            env[*i as usize].ok_or_else(|| error!(Internal, "variable {i} is used before it is defined"))
        }
    }
}

/// Lowers one operation by itself.
pub fn lower_op(op: &OpRef, args: &[&Aval], outs: &[Aval]) -> Result<Graph> {
    let mut b = Builder::new(args.iter().map(|a| Type::from(*a)));
    let params: SmallVec<[ValueId; 4]> = b.params().collect();
    let outs = lower_one(op, &mut b, &params, outs)?;
    Ok(b.finish(&outs))
}

/// Appends one operation. Its rule may be anybody's: results of other types than it announced would be read past
/// their ends.
fn lower_one(op: &OpRef, b: &mut Builder, args: &[ValueId], outs: &[Aval]) -> Result<SmallVec<[ValueId; 1]>> {
    let results = op.kernel(op, b, args, outs)?;
    let same = |(id, out): (&ValueId, &Aval)| b.ty(*id).dtype == out.dtype && b.ty(*id).shape == out.shape;
    if results.len() == outs.len() && results.iter().zip(outs).all(same) {
        return Ok(results);
    }
    let types: Vec<&Type> = results.iter().map(|id| b.ty(*id)).collect();
    Err(error!(Internal, "the lowering of {} gave {types:?} where its results are {outs:?}", op.name()))
}
