//! Loops and branches as steps around the steps of their bodies.
//!
//! A carried value has one array all along: the body reads it as a parameter and leaves the next value there. Stacked
//! operands and results of a scan are whole arrays, of which a step reads or writes the row with its number.

use super::frame::{Binding, Frame};
use super::rewrite::{rewrite, scan_body};
use super::{BufferId, bytes};
use crate::program::Step;
use ferrax_base::{Result, bail};
use ferrax_loops::{Graph, Kind, Node, ValueId};

pub(super) fn node(f: &mut Frame<'_>, node: &Node) -> Result<()> {
    match &node.kind {
        Kind::While { cond, body, cond_consts, body_consts } => {
            while_loop(f, node, cond, body, *cond_consts, *body_consts)
        }
        Kind::Scan { body, length, reverse, consts, carry } => scan(f, node, body, *length, *reverse, *consts, *carry),
        Kind::Switch(branches) => {
            let results: Vec<BufferId> = node.outputs().map(|v| f.result(v)).collect();
            let args = constants(f, &node.inputs[1..])?;
            let index = f.span(node.inputs[0])?;
            let mut all = Vec::new();
            for branch in branches {
                let graph = rewrite(branch, f.p.libraries())?;
                let mut steps = Vec::new();
                Frame::run(f.p, &graph, &args, &results, &mut steps)?;
                all.push(steps);
            }
            f.steps.push(Step::Switch { index, branches: all });
            Ok(())
        }
        other => bail!(Internal, "{other:?} is no control flow"),
    }
}

/// Arrays that a body only reads.
fn constants(f: &Frame<'_>, values: &[ValueId]) -> Result<Vec<Binding>> {
    values.iter().map(|&v| Ok(Binding { buffer: f.array(v)?, owned: false })).collect()
}

/// The arrays of carried values, with their first values in them.
fn carried(f: &mut Frame<'_>, node: &Node, first: usize, results: &[ValueId]) -> Result<Vec<BufferId>> {
    let mut arrays = Vec::new();
    for (k, &v) in results.iter().enumerate() {
        let x = node.inputs[first + k];
        let from = f.array(x)?;
        // An array whose last reader is this loop, by this operand alone, is carried on.
        let alone = node.inputs.iter().filter(|&&other| f.array(other).is_ok_and(|b| b == from)).count() == 1;
        let is_wanted = f.g.outputs.contains(&v);
        if alone && !is_wanted && f.is_free(from, &|other| other == x) {
            f.put(v, from);
            arrays.push(from);
            continue;
        }
        let to = f.result(v);
        f.copy(from, to);
        arrays.push(to);
    }
    Ok(arrays)
}

fn owned(arrays: &[BufferId]) -> impl Iterator<Item = Binding> {
    arrays.iter().map(|&buffer| Binding { buffer, owned: true })
}

fn while_loop(
    f: &mut Frame<'_>,
    node: &Node,
    cond: &Graph,
    body: &Graph,
    cond_consts: usize,
    body_consts: usize,
) -> Result<()> {
    let (of_cond, rest) = node.inputs.split_at(cond_consts);
    let (of_cond, of_body) = (constants(f, of_cond)?, constants(f, &rest[..body_consts])?);
    let results: Vec<ValueId> = node.outputs().collect();
    let arrays = carried(f, node, cond_consts + body_consts, &results)?;
    let flag = f.temporary(1);
    let (cond, body) = (rewrite(cond, f.p.libraries())?, rewrite(body, f.p.libraries())?);
    let mut test = Vec::new();
    let read = owned(&arrays).map(|b| Binding { owned: false, ..b });
    let params: Vec<Binding> = of_cond.into_iter().chain(read).collect();
    Frame::run(f.p, &cond, &params, &[flag], &mut test)?;
    let mut steps = Vec::new();
    let params: Vec<Binding> = of_body.into_iter().chain(owned(&arrays)).collect();
    Frame::run(f.p, &body, &params, &arrays, &mut steps)?;
    let flag = f.p.span(flag);
    f.steps.push(Step::While { cond: test, flag, body: steps });
    Ok(())
}

fn scan(
    f: &mut Frame<'_>,
    node: &Node,
    body: &Graph,
    length: usize,
    reverse: bool,
    consts: usize,
    carry: usize,
) -> Result<()> {
    let results: Vec<ValueId> = node.outputs().collect();
    let (carried_on, stacked) = results.split_at(carry);
    let of_body = constants(f, &node.inputs[..consts])?;
    let xs = constants(f, &node.inputs[consts + carry..])?;
    let mut arrays = carried(f, node, consts, carried_on)?;
    for &v in stacked {
        arrays.push(f.result(v));
    }
    if length == 0 {
        return Ok(());
    }
    let graph = rewrite(&scan_body(body, length, reverse, consts, carry)?, f.p.libraries())?;
    let counter = f.temporary(bytes(&graph.types[0]));
    let first = Binding { buffer: counter, owned: false };
    let (carries, ys) = arrays.split_at(carry);
    let params: Vec<Binding> =
        std::iter::once(first).chain(of_body).chain(owned(carries)).chain(xs).chain(owned(ys)).collect();
    let mut steps = Vec::new();
    Frame::run(f.p, &graph, &params, &arrays, &mut steps)?;
    let counter = f.p.span(counter);
    f.steps.push(Step::Repeat { count: length as u64, counter, body: steps });
    Ok(())
}
