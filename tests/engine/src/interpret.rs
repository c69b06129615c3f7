//! Graphs, node by node: control flow here, every other node by one call of the CPU engine's kernels.

use crate::faults::{self, Point};
use ferrax_base::{Buffer, Result, error};
use ferrax_cpu::eager;
use ferrax_loops::{Graph, Kind, Node, Type};
use std::sync::Arc;

type Elements = Arc<Buffer>;

/// The results of a graph on these arguments.
pub(crate) fn graph(graph: &Graph, args: Vec<Elements>) -> Result<Vec<Elements>> {
    if args.len() != graph.params {
        return Err(error!(Internal, "a graph of {} parameters got {} arguments", graph.params, args.len()));
    }
    let mut values = args;
    for node in &graph.nodes {
        faults::meet(Point::Node)?;
        let inputs: Vec<Elements> = node.inputs.iter().map(|v| values[v.0 as usize].clone()).collect();
        values.extend(compute(graph, node, inputs)?);
    }
    Ok(graph.outputs.iter().map(|v| values[v.0 as usize].clone()).collect())
}

fn compute(g: &Graph, node: &Node, inputs: Vec<Elements>) -> Result<Vec<Elements>> {
    match &node.kind {
        Kind::Call(callee) => graph(callee, inputs),
        Kind::Switch(branches) => {
            let index = (inputs[0].typed::<i32>()[0].max(0) as usize).min(branches.len() - 1);
            graph(&branches[index], inputs[1..].to_vec())
        }
        Kind::While { cond, body, cond_consts, body_consts } => {
            while_loop((cond, body), inputs, *cond_consts, *body_consts)
        }
        Kind::Scan { body, length, reverse, consts, carry } => {
            let order: Vec<usize> = if *reverse { (0..*length).rev().collect() } else { (0..*length).collect() };
            scan(g, node, body, &inputs, &order, (*consts, *carry))
        }
        kind => {
            let types: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
            let operands: Vec<(&Type, &Buffer)> =
                node.inputs.iter().map(|v| g.ty(*v)).zip(inputs.iter().map(|b| &**b)).collect();
            Ok(eager::run_node(kind, &operands, &types)?.into_iter().map(Arc::new).collect())
        }
    }
}

fn while_loop(
    (cond, body): (&Graph, &Graph),
    inputs: Vec<Elements>,
    cond_consts: usize,
    body_consts: usize,
) -> Result<Vec<Elements>> {
    let (for_cond, rest) = inputs.split_at(cond_consts);
    let (for_body, init) = rest.split_at(body_consts);
    let mut carry = init.to_vec();
    while graph(cond, [for_cond, &carry].concat())?[0].bytes()[0] != 0 {
        carry = graph(body, [for_body, &carry].concat())?;
    }
    Ok(carry)
}

/// A loop over slices of the stacked operands, in this order.
fn scan(
    g: &Graph,
    node: &Node,
    body: &Graph,
    inputs: &[Elements],
    order: &[usize],
    (consts, carried): (usize, usize),
) -> Result<Vec<Elements>> {
    let (fixed, rest) = inputs.split_at(consts);
    let (init, stacked) = rest.split_at(carried);
    let mut carry = init.to_vec();
    let mut collected: Vec<Buffer> =
        node.outputs().skip(carried).map(|v| Buffer::allocate(g.ty(v).bytes())).collect::<Result<_>>()?;
    for &i in order {
        let slice = |x: &Elements| {
            let bytes = x.len() / order.len();
            Ok(Arc::new(Buffer::from_bytes(&x.bytes()[i * bytes..][..bytes])?))
        };
        let slices = stacked.iter().map(slice).collect::<Result<Vec<Elements>>>()?;
        let mut results = graph(body, [fixed, &carry, &slices].concat())?;
        for (all, one) in collected.iter_mut().zip(results.split_off(carried)) {
            all.bytes_mut()[i * one.len()..][..one.len()].copy_from_slice(one.bytes());
        }
        carry = results;
    }
    carry.extend(collected.into_iter().map(Arc::new));
    Ok(carry)
}
