//! Programs that call the host, cut into segments that do not.
//!
//! Compiled programs of some engines cannot call back into the host. What such an engine is given is cut at the calls:
//! what lies between two of them is a [`Segment`], a graph of its own, and a [`Plan`] says in which order segments run and
//! the host is called. Loops and branches become steps of a plan where they call the host; all others stay whole inside
//! a segment. Calls and everything between them keep their order. Constants are made anew in each segment that reads them.
//!
//! A step takes from slots, which hold arrays, and fills slots. The first are a plan's parameters. An operand that no later step
//! reads is marked, so that whoever drives the plan can free or donate it.
//! Read next: `ferrax::engine::driven`, which runs plans.

use super::live_nodes;
use crate::{Builder, Graph, HostRef, Kind, Node, Type, ValueId};
use ferrax_base::{DType, Result, Scalar, bail};
use std::sync::Arc;

/// A program in segments.
#[derive(Debug)]
pub struct Cut {
    /// What to do with them.
    pub plan: Plan,
    /// The segments, by the numbers that plans name them by.
    pub segments: Vec<Segment>,
}

/// A part of a program that does not call the host.
#[derive(Debug)]
pub struct Segment {
    /// What it computes.
    pub graph: Arc<Graph>,
    /// Parameters that nothing reads later, if nobody outside the program holds them.
    pub donated: Vec<bool>,
}

/// Steps in order, over slots.
#[derive(Debug)]
pub struct Plan {
    /// How many slots there are; parameters are the first.
    pub slots: usize,
    /// What is done.
    pub steps: Vec<Step>,
    /// The slots of the results.
    pub outputs: Vec<usize>,
}

/// A step of a plan.
#[derive(Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The slots of its operands.
    pub inputs: Vec<usize>,
    /// For each operand, whether nothing reads its slot afterwards.
    pub last: Vec<bool>,
    /// The slot of its first result; the others follow.
    pub first: usize,
}

/// What a step does.
#[derive(Debug)]
pub enum Action {
    /// Runs the segment of this number.
    Run(usize),
    /// Calls the host.
    #[allow(missing_docs)]
    Host { call: HostRef, operands: Vec<Type>, results: Vec<Type> },
    /// `Kind::While`, on the same operands.
    #[allow(missing_docs)]
    While { cond: Plan, body: Plan, cond_consts: usize, body_consts: usize },
    /// `Kind::Scan`, on the same operands.
    Scan(Box<Scan>),
    /// `Kind::Switch`, on the same operands.
    Switch(Vec<Plan>),
}

/// A loop over a counted number of steps.
#[derive(Debug)]
pub struct Scan {
    /// (consts…, xs… whole, the step's index, carry…, ys… whole) → (carry…, ys… with this step's rows).
    pub body: Plan,
    /// The dtype of the index.
    pub index: DType,
    /// The segment that makes what the results are put into.
    pub zeros: usize,
    #[allow(missing_docs)]
    pub length: usize,
    #[allow(missing_docs)]
    pub reverse: bool,
    #[allow(missing_docs)]
    pub consts: usize,
    #[allow(missing_docs)]
    pub carry: usize,
}

/// Cuts a program. `donated` says which parameters nobody else holds; empty when all may be held.
pub fn segments(graph: &Graph, donated: &[bool]) -> Result<Cut> {
    let mut segments = Vec::new();
    let owned: Vec<bool> = (0..graph.params).map(|i| donated.get(i) == Some(&true)).collect();
    let plan = plan(graph, &owned, &mut segments)?;
    Ok(Cut { plan, segments })
}

fn plan(graph: &Graph, owned: &[bool], segments: &mut Vec<Segment>) -> Result<Plan> {
    let graph = &inlined(graph);
    let mut draft = Draft::new(graph)?;
    draft.steps();
    let mut seen = vec![false; draft.slots];
    let outputs: Vec<usize> = graph.outputs.iter().map(|v| draft.slot[v.0 as usize]).collect();
    outputs.iter().for_each(|&s| seen[s] = true);
    let mut lasts: Vec<Vec<bool>> = Vec::with_capacity(draft.parts.len());
    for part in draft.parts.iter().rev() {
        let mut last: Vec<bool> = part.inputs.iter().rev().map(|&s| !std::mem::replace(&mut seen[s], true)).collect();
        last.reverse();
        lasts.push(last);
    }
    let mut steps = Vec::with_capacity(draft.parts.len());
    for (part, last) in draft.parts.into_iter().zip(lasts.into_iter().rev()) {
        let mine = |(&slot, &last): (&usize, &bool)| last && owned.get(slot).is_none_or(|owned| *owned);
        let mine: Vec<bool> = part.inputs.iter().zip(&last).map(mine).collect();
        let action = match part.what {
            What::Segment(graph) => {
                segments.push(Segment { graph: Arc::new(graph), donated: mine });
                Action::Run(segments.len() - 1)
            }
            What::Driven(node) => driven(graph, node, &mine, segments)?,
        };
        steps.push(Step { action, inputs: part.inputs, last, first: part.first });
    }
    Ok(Plan { slots: draft.slots, steps, outputs })
}

/// The graph with the graphs of calls that call the host in place of these.
fn inlined(g: &Graph) -> Graph {
    let mut b = Builder::new(g.param_types().iter().cloned());
    let args: Vec<ValueId> = b.params().collect();
    let outputs = splice(&mut b, g, args);
    b.finish(&outputs)
}

fn splice(b: &mut Builder, g: &Graph, args: Vec<ValueId>) -> Vec<ValueId> {
    let mut map = args;
    for node in &g.nodes {
        let inputs: Vec<ValueId> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
        match &node.kind {
            Kind::Call(callee) if callee.calls_host() => {
                let made = splice(b, callee, inputs);
                map.extend(made);
            }
            kind => {
                let types: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
                map.extend(b.push_many(kind.clone(), &inputs, &types));
            }
        }
    }
    g.outputs.iter().map(|v| map[v.0 as usize]).collect()
}

/// What a step is before it is known which of its operands are read later.
enum What<'g> {
    Segment(Graph),
    Driven(&'g Node),
}

struct Part<'g> {
    what: What<'g>,
    inputs: Vec<usize>,
    first: usize,
}

/// A plan in the making.
struct Draft<'g> {
    graph: &'g Graph,
    /// Nodes of segments: live, and not driven.
    inside: Vec<bool>,
    /// Nodes that each segment makes for itself.
    free: Vec<bool>,
    /// How many driven nodes stand before a node.
    before: Vec<usize>,
    /// Driven nodes, in order.
    driven: Vec<usize>,
    /// Values that more than their own segment reads.
    shared: Vec<bool>,
    /// The slot of each value that has one.
    slot: Vec<usize>,
    slots: usize,
    parts: Vec<Part<'g>>,
}

impl<'g> Draft<'g> {
    fn new(graph: &'g Graph) -> Result<Self> {
        let live = live_nodes(graph);
        let calls: Vec<bool> = graph.nodes.iter().map(|n| n.kind.calls_host()).collect();
        let driven: Vec<usize> = (0..calls.len()).filter(|&i| calls[i]).collect();
        let mut asked = vec![false; graph.types.len()];
        graph.outputs.iter().for_each(|v| asked[v.0 as usize] = true);
        for &i in &driven {
            let node = &graph.nodes[i];
            if let Kind::ReduceWith { body, .. } = &node.kind {
                let name =
                    body.nodes.iter().find_map(|n| if let Kind::Host(h) = &n.kind { Some(h.0.name()) } else { None });
                bail!(
                    NotImplemented,
                    "the computation of a reduction calls the host ({}), which this platform cannot do element by \
                     element: call it before or after the reduction, or run the program on the embedded CPU engine",
                    name.as_deref().unwrap_or("in a loop")
                );
            }
            node.inputs.iter().for_each(|v| asked[v.0 as usize] = true);
        }
        let (mut anew, mut free) = (vec![false; graph.types.len()], Vec::with_capacity(calls.len()));
        for node in &graph.nodes {
            let cheap = match node.kind {
                Kind::Const(_) | Kind::Iota(_) => true,
                Kind::Broadcast(_) | Kind::Reshape => anew[node.inputs[0].0 as usize],
                _ => false,
            };
            let made = cheap && !asked[node.first.0 as usize];
            free.push(made);
            anew[node.first.0 as usize..][..node.results as usize].fill(made);
        }
        let before = (0..calls.len()).map(|i| driven.partition_point(|&d| d < i)).collect();
        let inside: Vec<bool> = (0..calls.len()).map(|i| live[i] && !calls[i] && !free[i]).collect();
        let slot = (0..graph.types.len()).map(|v| if v < graph.params { v } else { usize::MAX }).collect();
        let (slots, parts, shared) = (graph.params, Vec::new(), asked);
        let mut draft = Draft { graph, inside, free, before, driven, shared, slot, slots, parts };
        draft.share();
        Ok(draft)
    }

    /// Marks what a segment reads of an earlier one.
    fn share(&mut self) {
        let mut made = vec![0; self.graph.types.len()];
        for (i, node) in self.graph.nodes.iter().enumerate().filter(|(i, _)| self.inside[*i]) {
            node.outputs().for_each(|v| made[v.0 as usize] = self.before[i]);
            for v in &node.inputs {
                self.shared[v.0 as usize] |= made[v.0 as usize] < self.before[i];
            }
        }
    }

    fn steps(&mut self) {
        let graph = self.graph;
        for k in 0..=self.driven.len() {
            self.segment(k);
            if let Some(&i) = self.driven.get(k) {
                let node = &graph.nodes[i];
                let inputs = node.inputs.iter().map(|v| self.slot[v.0 as usize]).collect();
                self.push(What::Driven(node), inputs, node.outputs().collect());
            }
        }
    }

    fn push(&mut self, what: What<'g>, inputs: Vec<usize>, results: Vec<ValueId>) {
        let first = self.slots;
        self.slots += results.len();
        results.iter().enumerate().for_each(|(k, v)| self.slot[v.0 as usize] = first + k);
        self.parts.push(Part { what, inputs, first });
    }

    /// What stands between two driven nodes, with what it makes for itself.
    fn segment(&mut self, k: usize) {
        let g = self.graph;
        let mut takes: Vec<bool> = (0..g.nodes.len()).map(|i| self.inside[i] && self.before[i] == k).collect();
        if !takes.contains(&true) {
            return;
        }
        let mut read = vec![false; g.types.len()];
        for (i, node) in g.nodes.iter().enumerate().rev() {
            takes[i] |= self.free[i] && node.outputs().any(|v| read[v.0 as usize]);
            if takes[i] {
                node.inputs.iter().for_each(|v| read[v.0 as usize] = true);
            }
        }
        let nodes = || g.nodes.iter().zip(&takes).filter(|(_, takes)| **takes).map(|(n, _)| n);
        nodes().flat_map(Node::outputs).for_each(|v| read[v.0 as usize] = false);
        let inputs: Vec<usize> = (0..g.types.len()).filter(|&v| read[v]).collect();
        let mut b = Builder::new(inputs.iter().map(|&v| g.types[v].clone()));
        let mut map: Vec<ValueId> = vec![super::NOTHING; g.types.len()];
        b.params().zip(&inputs).for_each(|(now, &v)| map[v] = now);
        for node in nodes() {
            let operands: Vec<ValueId> = node.inputs.iter().map(|v| map[v.0 as usize]).collect();
            let types: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
            let outs = b.push_many(node.kind.clone(), &operands, &types);
            node.outputs().zip(outs).for_each(|(v, now)| map[v.0 as usize] = now);
        }
        let mine = g.nodes.iter().enumerate().filter(|(i, _)| takes[*i] && self.inside[*i]).map(|(_, n)| n);
        let results: Vec<ValueId> = mine.flat_map(Node::outputs).filter(|v| self.shared[v.0 as usize]).collect();
        let outputs: Vec<ValueId> = results.iter().map(|v| map[v.0 as usize]).collect();
        let inputs = inputs.into_iter().map(|v| self.slot[v]).collect();
        self.push(What::Segment(b.finish(&outputs)), inputs, results);
    }
}

/// The step of a node that calls the host. `mine` says of which operands nothing else is left.
fn driven(g: &Graph, node: &Node, mine: &[bool], segments: &mut Vec<Segment>) -> Result<Action> {
    let operands = || node.inputs.iter().map(|&v| g.ty(v).clone());
    let results: Vec<Type> = node.outputs().map(|v| g.ty(v).clone()).collect();
    let carried = |consts: usize, count: usize| [vec![false; consts], vec![true; count]].concat();
    Ok(match &node.kind {
        Kind::Host(call) => Action::Host { call: call.clone(), operands: operands().collect(), results },
        Kind::While { cond, body, cond_consts, body_consts } => Action::While {
            cond: plan(cond, &vec![false; cond.params], segments)?,
            body: plan(body, &carried(*body_consts, results.len()), segments)?,
            cond_consts: *cond_consts,
            body_consts: *body_consts,
        },
        Kind::Switch(branches) => {
            let branch = |b: &Arc<Graph>| plan(b, &mine[1..], segments);
            Action::Switch(branches.iter().map(branch).collect::<Result<_>>()?)
        }
        Kind::Scan { body, length, reverse, consts, carry } => {
            let index = if i32::try_from(*length).is_ok() { DType::I32 } else { DType::I64 };
            let operands: Vec<Type> = operands().collect();
            let step = stepwise(body, (*consts, *carry), &operands, &results, index);
            let fixed = operands.len() - carry + 1;
            let body = plan(&step, &carried(fixed, results.len()), segments)?;
            segments.push(Segment { graph: Arc::new(zeros(&results[*carry..])), donated: Vec::new() });
            let (zeros, length, reverse) = (segments.len() - 1, *length, *reverse);
            Action::Scan(Box::new(Scan { body, index, zeros, length, reverse, consts: *consts, carry: *carry }))
        }
        other => bail!(Internal, "{other:?} does not call the host"),
    })
}

/// Zeros of these types.
fn zeros(types: &[Type]) -> Graph {
    let mut b = Builder::new([]);
    let made: Vec<ValueId> =
        types.iter().map(|ty| b.push(Kind::Const(Scalar::zero(ty.dtype)), &[], ty.clone())).collect();
    b.finish(&made)
}

/// The body of a scan over whole arrays and the step's index, as [`Scan::body`] says.
fn stepwise(body: &Graph, (consts, carry): (usize, usize), operands: &[Type], results: &[Type], index: DType) -> Graph {
    let stacked = &operands[consts + carry..];
    let counter = Type::new(index, &[]);
    let params = operands[..consts].iter().chain(stacked).chain([&counter]).chain(results);
    let mut b = Builder::new(params.cloned());
    let params: Vec<ValueId> = b.params().collect();
    let (fixed, rest) = params.split_at(consts);
    let (xs, rest) = rest.split_at(stacked.len());
    let (at, rest) = (rest[0], &rest[1..]);
    let (carried, ys) = rest.split_at(carry);
    let zero = b.scalar(Scalar::zero(index));
    let place = |x: ValueId, row: Option<ValueId>, rank: usize| {
        let starts = (0..rank).map(|axis| if axis == 0 { at } else { zero });
        [x].into_iter().chain(row).chain(starts).collect::<Vec<_>>()
    };
    let mut rows = Vec::with_capacity(xs.len());
    for (&x, ty) in xs.iter().zip(stacked) {
        let mut row = ty.clone();
        row.shape[0] = 1;
        let row = b.push(Kind::DynamicSlice, &place(x, None, ty.shape.len()), row);
        rows.push(b.reshape(row, &ty.shape[1..]));
    }
    let args: Vec<ValueId> = fixed.iter().chain(carried).chain(&rows).copied().collect();
    let mut outs = b.inline(body, &args);
    for ((out, &y), ty) in outs[carry..].iter_mut().zip(ys).zip(&results[carry..]) {
        let mut shape = ty.shape.clone();
        shape[0] = 1;
        let row = b.reshape(*out, &shape);
        *out = b.push(Kind::DynamicUpdateSlice, &place(y, Some(row), ty.shape.len()), ty.clone());
    }
    b.finish(&outs)
}
