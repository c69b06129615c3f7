//! Operations on few elements that follow each other run in the machine's registers, as one step of a loop would.
//!
//! A kernel on a handful of elements costs a hundred times what it computes, and programs on points, quaternions and small
//! states are hundreds of them in a line. Such a line becomes a scan of one step, which reads what the line needs and
//! writes what is read after it; `plan` makes registers of it, or it stays as it was. Bits are those of the kernels, as in
//! loops. Read next: `mod.rs`, which plans the step.

use super::forms::MOST_TURNS;
use super::{matrices, plan, step_cost};
use ferrax_base::DType;
use ferrax_loops::passes::{NOTHING, live_nodes, rewritten};
use ferrax_loops::{Builder, Graph, Kind, Node, Type, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a value at most.
const MOST_ELEMENTS: usize = 128;
/// What the steps of a line cost at least, each by itself (`step_cost`), and what a kernel of elementwise ones does.
const LEAST: f64 = 150.0;
const KERNEL: f64 = 40.0;
/// Nodes of a line at most.
const MOST_NODES: usize = 2000;

/// The graph with such lines in registers; itself where there are none.
pub(crate) fn lines(graph: Arc<Graph>) -> Arc<Graph> {
    let g = &*graph;
    let live = live_nodes(g);
    let found = Lines::new(g, &live).find();
    if found.is_empty() {
        return graph;
    }
    let mut coming = found.iter().peekable();
    let mut line: Option<(&Line, SmallVec<[ValueId; 4]>)> = None;
    rewritten(g, &live, |i, node, b, map| {
        if let Some(next) = coming.next_if(|l| l.nodes.start == i) {
            line = Some((next, next.push(g, b, |v| map[v.0 as usize])));
        }
        let Some((now, made)) = line.as_ref().filter(|(l, _)| l.nodes.contains(&i)) else { return false };
        map.extend(node.outputs().map(|v| now.outputs.iter().position(|&o| o == v).map_or(NOTHING, |k| made[k])));
        true
    })
}

/// Nodes that one program of registers computes.
struct Line {
    nodes: Range<usize>,
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
    body: Arc<Graph>,
}

impl Line {
    /// The scan of one step, of what `of` says that its operands are; gives the line's outputs.
    fn push(&self, g: &Graph, b: &mut Builder, of: impl Fn(ValueId) -> ValueId) -> SmallVec<[ValueId; 4]> {
        let args: Vec<ValueId> = self.inputs.iter().map(|&v| b.reshape(of(v), &stacked(g.ty(v)).shape)).collect();
        let kind = Kind::Scan { body: self.body.clone(), length: 1, reverse: false, consts: 0, carry: 0 };
        let results: Vec<Type> = self.outputs.iter().map(|&v| stacked(g.ty(v))).collect();
        let made = b.push_many(kind, &args, &results);
        made.into_iter().zip(&self.outputs).map(|(v, &out)| b.reshape(v, &g.ty(out).shape)).collect()
    }

    /// Whether its step fits the registers, and is worth it.
    fn fits(&self, g: &Graph) -> bool {
        let mut b = Builder::new(self.inputs.iter().map(|&v| g.ty(v).clone()));
        let map: FxHashMap<ValueId, ValueId> = self.inputs.iter().copied().zip(b.params()).collect();
        let outs = self.push(g, &mut b, |v| map[&v]);
        let whole = b.finish(&outs);
        let step = whole.nodes.iter().find(|n| matches!(n.kind, Kind::Scan { .. }));
        step.is_some_and(|step| plan(&whole, step).is_some())
    }
}

fn stacked(ty: &Type) -> Type {
    let shape: SmallVec<[usize; 6]> = [1].into_iter().chain(ty.shape.iter().copied()).collect();
    Type::new(ty.dtype, &shape)
}

/// Bytes of a lane, where a dtype asks for so many.
fn lane(d: DType) -> Option<usize> {
    matches!(d, DType::F32 | DType::U32 | DType::F64 | DType::I64 | DType::U64).then(|| d.size())
}

/// Bytes of the lanes that a node needs, 0 if any do; `None` if it does not fit.
fn lane_of(g: &Graph, node: &Node) -> Option<usize> {
    use Kind::*;
    let small = |v: ValueId| {
        let ty = g.ty(v);
        let held = lane(ty.dtype).or(matches!(ty.dtype, DType::I32 | DType::Bool).then_some(0))?;
        (1..=MOST_ELEMENTS).contains(&ty.size()).then_some(held)
    };
    let known = match &node.kind {
        Const(_) | Dense(_) | Iota(_) | Reshape | Broadcast(_) | Transpose(_) | Slice(_) | Rev(_) | Concat(_) => true,
        Pad(_) | Reduce { .. } | Dot(_) | Gather(_) | Scatter { .. } | DynamicSlice | DynamicUpdateSlice => true,
        Cumulative { .. } | ArgReduce { .. } | Threefry2x32 => true,
        Linalg(op) => matrices::are_small(*op, g, node),
        Bitcast => g.ty(node.inputs[0]).dtype.size() == g.ty(node.first).dtype.size(),
        Scan { length, .. } if (1..=MOST_TURNS).contains(length) => true,
        Scan { body, .. } | While { body, .. } => return loop_lane(g, node, body),
        Switch(_) | Call(_) => true,
        kind => kind.is_elementwise(),
    };
    let inner: SmallVec<[&Graph; 2]> = match &node.kind {
        Scan { body, .. } | Call(body) => SmallVec::from_iter([&**body]),
        Switch(branches) => branches.iter().map(|b| &**b).collect(),
        _ => SmallVec::new(),
    };
    let own = node.inputs.iter().copied().chain(node.outputs()).map(small);
    let all = own.chain(inner.iter().flat_map(|g| g.nodes.iter().map(|n| lane_of(g, n))));
    let all: SmallVec<[usize; 8]> = all.collect::<Option<_>>().filter(|_| known)?;
    let widest = all.iter().copied().max().unwrap_or(0);
    all.iter().all(|&own| own == 0 || own == widest).then_some(widest)
}

/// The same for a loop that has no vectors: those run in registers of their own, and arrays that are written stay in memory.
fn loop_lane(g: &Graph, node: &Node, body: &Graph) -> Option<usize> {
    let own = plan(g, node).filter(|own| own.elements == 1 && own.arrays.is_empty())?;
    let asks = node.inputs.iter().map(|&v| g.ty(v)).chain(&body.types).any(|ty| lane(ty.dtype).is_some());
    Some(if asks { own.lane.bytes() } else { 0 })
}

struct Lines<'a> {
    g: &'a Graph,
    live: &'a [bool],
    /// The last live node that reads each value; as many as there are where it is a result.
    read: Vec<usize>,
    found: Vec<Line>,
}

impl<'a> Lines<'a> {
    fn new(g: &'a Graph, live: &'a [bool]) -> Self {
        let mut read = vec![0; g.types.len()];
        for (i, node) in g.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
            node.inputs.iter().for_each(|v| read[v.0 as usize] = i);
        }
        g.outputs.iter().for_each(|v| read[v.0 as usize] = g.nodes.len());
        Lines { g, live, read, found: Vec::new() }
    }

    fn find(mut self) -> Vec<Line> {
        let mut start = 0;
        let mut width = None;
        for (i, node) in self.g.nodes.iter().enumerate().filter(|(i, _)| self.live[*i]) {
            let own = lane_of(self.g, node);
            let goes_on = match (own, width) {
                (None, _) => false,
                (Some(own), Some(width)) => i - start < MOST_NODES && (own == 0 || width == 0 || own == width),
                (Some(_), None) => true,
            };
            if !goes_on {
                self.close(start..i);
                start = if own.is_some() { i } else { i + 1 };
                width = None;
            }
            width = own.map(|own| own.max(width.unwrap_or(0)));
        }
        self.close(start..self.g.nodes.len());
        self.found
    }

    /// Takes a line, or the halves of one that does not fit.
    fn close(&mut self, nodes: Range<usize>) {
        let living = self.g.nodes[nodes.clone()].iter().zip(&self.live[nodes.clone()]).filter(|(_, live)| **live);
        let (mut cost, mut kernel, mut count) = (0.0, 0, 0);
        for (node, _) in living {
            let own = step_cost(&node.kind);
            cost += own;
            count += usize::from(own > 0.0);
            // elementwise nodes on as many elements are one kernel
            let size = if node.kind.is_elementwise() { self.g.ty(node.first).size() } else { 0 };
            if size != kernel && own > 0.0 {
                cost += if size > 0 { KERNEL } else { 0.0 };
                kernel = size;
            }
        }
        if cost < LEAST || count < 2 {
            return;
        }
        let first = nodes.start + self.live[nodes.clone()].iter().position(|&live| live).unwrap_or(0);
        let line = self.line(first..nodes.end);
        if line.fits(self.g) {
            self.found.push(line);
            return;
        }
        let middle = nodes.start + nodes.len() / 2;
        self.close(nodes.start..middle);
        self.close(middle..nodes.end);
    }

    fn line(&self, nodes: Range<usize>) -> Line {
        let g = self.g;
        let inside = |v: ValueId| {
            let at = g.nodes.partition_point(|n| n.first <= v);
            v.0 as usize >= g.params && at > nodes.start && at <= nodes.end
        };
        let mut cut = Cut { g, inputs: Vec::new(), known: FxHashSet::default() };
        let mut steps = Vec::new();
        for i in nodes.clone().filter(|&i| self.live[i]) {
            g.nodes[i].inputs.iter().filter(|&&v| !inside(v)).for_each(|&v| cut.reach(v, &mut steps));
            steps.push(i);
        }
        let made = g.nodes[nodes.clone()].iter().flat_map(Node::outputs);
        let outputs: Vec<ValueId> = made.filter(|v| self.read[v.0 as usize] >= nodes.end).collect();
        let mut b = Builder::new(cut.inputs.iter().map(|&v| g.ty(v).clone()));
        let mut map: FxHashMap<ValueId, ValueId> = cut.inputs.iter().copied().zip(b.params()).collect();
        for node in steps.iter().map(|&i| &g.nodes[i]) {
            let args: SmallVec<[ValueId; 4]> = node.inputs.iter().map(|v| map[v]).collect();
            let types: SmallVec<[Type; 4]> = node.outputs().map(|v| g.ty(v).clone()).collect();
            map.extend(node.outputs().zip(b.push_many(node.kind.clone(), &args, &types)));
        }
        let body = Arc::new(b.finish(&outputs.iter().map(|v| map[v]).collect::<Vec<_>>()));
        Line { nodes, inputs: cut.inputs, outputs, body }
    }
}

/// What a line takes from before it.
struct Cut<'a> {
    g: &'a Graph,
    inputs: Vec<ValueId>,
    /// What has been reached.
    known: FxHashSet<ValueId>,
}

impl Cut<'_> {
    /// Notes a value that is an operand, or the nodes of one that is made of constants alone, which are done again.
    fn reach(&mut self, v: ValueId, steps: &mut Vec<usize>) {
        if !self.known.insert(v) {
            return;
        }
        let at = self.g.nodes.partition_point(|n| n.first <= v).wrapping_sub(1);
        match self.g.nodes.get(at).filter(|_| v.0 as usize >= self.g.params) {
            Some(node) if matches!(node.kind, Kind::Const(_) | Kind::Dense(_) | Kind::Iota(_)) => steps.push(at),
            Some(Node { kind: Kind::Broadcast(_) | Kind::Reshape, inputs, .. }) if self.is_constant(inputs[0]) => {
                self.reach(inputs[0], steps);
                steps.push(at);
            }
            _ => self.inputs.push(v),
        }
    }

    fn is_constant(&self, v: ValueId) -> bool {
        self.g.maker(v).is_some_and(|n| matches!(n.kind, Kind::Const(_) | Kind::Dense(_) | Kind::Iota(_)))
    }
}
