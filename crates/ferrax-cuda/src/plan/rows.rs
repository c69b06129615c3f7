//! Rows that one kernel reads once: reductions along the last axes, and what is computed of their results.
//!
//! A softmax takes the largest number of a row, sums exponentials of the row, and divides them by the sum. A team of
//! threads keeps the row while it does so (`library/rows.rs`). Here such values are found: members of a group are
//! reductions of `rows` × `length` elements along the last axes, elementwise functions of those elements and of the
//! reductions' results, reshapes, and results spread along their rows. What members read beside each other is computed
//! with them or is in memory.
//!
//! Invariants: members ask for each other's elements at the same place, or for the number of the same row; nothing that is
//! no member lies between members, so that a group is one item of an order of all nodes.
//!
//! Read next: `group.rs`, whose items these groups become.

use super::group::{COSTLY, NODES, Read, read};
use crate::print::body::inlines;
use ferrax_loops::{Graph, Kind, Node, ValueId};

/// Elements up to which a row is kept by a block.
const KEPT: usize = 1 << 15;
/// Rows that keep a GPU busy, one a block, where a row is longer and read again.
const BUSY: usize = 128;
/// Entries of the order behind a group's last member that are looked at for more.
const AHEAD: usize = 256;
/// Values of a group in memory.
const OUTPUTS: usize = 8;
/// Nodes that are computed again elsewhere at most.
const LIGHT: usize = 12;

/// Which element of a value is asked for, where an element of a row is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// That with the same number among `rows` × `length`.
    Element,
    /// That with the number of the row.
    Row,
}

/// A group.
#[derive(Clone, Debug)]
pub struct Rows {
    /// How many rows there are.
    pub rows: usize,
    /// Elements of a row.
    pub length: usize,
    /// Numbers of nodes, in order.
    pub members: Vec<usize>,
    /// Members' values that are in memory.
    pub outputs: Vec<ValueId>,
}

impl Rows {
    /// Which of a value's elements are meant, by how many it has.
    pub fn of(&self, g: &Graph, v: ValueId) -> Option<Along> {
        let size = g.ty(v).size();
        if size == self.rows * self.length {
            return Some(Along::Element);
        }
        (size == self.rows).then_some(Along::Row)
    }

    /// Which element of its operand x a node needs for one of its own; none if it is another one.
    pub fn operand(&self, g: &Graph, node: &Node, x: ValueId, at: Along) -> Option<Along> {
        let (from, to) = (g.ty(x), g.ty(node.first));
        match &node.kind {
            Kind::Reduce { .. } => (at == Along::Row && self.reduces(g, node)).then_some(Along::Element),
            kind if kind.is_elementwise() && from.shape == to.shape => Some(at),
            kind if kind.is_elementwise() => (self.rows == 1).then_some(Along::Row),
            Kind::Reshape => Some(at),
            Kind::Broadcast(dims) => self.spread(&from.shape, &to.shape, dims, at),
            _ => None,
        }
    }

    fn spread(&self, from: &[usize], to: &[usize], dims: &[usize], at: Along) -> Option<Along> {
        // The axes of more than one element, where they come to lie.
        let kept: Vec<usize> = (0..from.len()).filter(|&k| from[k] != 1).map(|k| dims[k]).collect();
        let all: Vec<usize> = (0..to.len()).filter(|&k| to[k] != 1).collect();
        if !all.starts_with(&kept) {
            return None;
        }
        let size: usize = kept.iter().map(|&k| to[k]).product();
        if kept.len() == all.len() {
            return Some(at);
        }
        (at == Along::Element && size == self.rows).then_some(Along::Row)
    }

    /// Whether a node is a reduction along these rows.
    fn reduces(&self, g: &Graph, node: &Node) -> bool {
        along_last_axes(g, node) == Some((self.rows, self.length))
    }
}

/// The rows that a node reduces, and their length.
fn along_last_axes(g: &Graph, node: &Node) -> Option<(usize, usize)> {
    let Kind::Reduce { op, axes } = &node.kind else { return None };
    let ty = g.ty(node.inputs[0]);
    op.joining()?;
    if ty.dtype.is_complex() || !(ty.dtype.is_number() || ty.dtype.is_bool()) {
        return None;
    }
    let wide: Vec<usize> = (0..ty.shape.len()).filter(|&a| ty.shape[a] != 1).collect();
    let kept = wide.iter().filter(|a| !axes.contains(a)).count();
    let last = wide[kept..].iter().all(|a| axes.contains(a));
    let count = |axes: &[usize]| axes.iter().map(|&a| ty.shape[a]).product::<usize>();
    let (rows, length) = (count(&wide[..kept]), count(&wide[kept..]));
    (last && length > 1 && rows > 0 && (length <= KEPT || rows >= BUSY)).then_some((rows, length))
}

/// A part of an order of all nodes.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A node by its number.
    Node(usize),
    /// A group.
    Rows(Rows),
}

/// What a value is to a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There without it.
    Free,
    /// A member's.
    Inside,
    /// Made of it.
    Behind,
}

/// All nodes in an order in which those of a group are together.
pub fn find(g: &Graph) -> Vec<Entry> {
    let mut order: Vec<Entry> = (0..g.nodes.len()).map(Entry::Node).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); g.types.len()];
    for (i, node) in g.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|x| users[x.0 as usize].push(i));
    }
    let mut in_memory = vec![false; g.types.len()];
    let mut at = 0;
    while at < order.len() {
        let seed = match order[at] {
            Entry::Node(i) => along_last_axes(g, &g.nodes[i]),
            Entry::Rows(_) => None,
        };
        let found = seed.and_then(|(rows, length)| {
            let rows = Rows { rows, length, members: Vec::new(), outputs: Vec::new() };
            Search::new(g, rows, &in_memory).run(&order, at, &users)
        });
        match found {
            Some((rows, rest)) => {
                rows.outputs.iter().for_each(|v| in_memory[v.0 as usize] = true);
                let end = at + rest.len();
                let (free, behind): (Vec<_>, Vec<_>) = order[at..end]
                    .iter()
                    .cloned()
                    .zip(rest)
                    .filter(|(_, s)| *s != State::Inside)
                    .partition(|(_, s)| *s == State::Free);
                let kept = |part: Vec<(Entry, State)>| part.into_iter().map(|(entry, _)| entry);
                order.splice(at..end, kept(free).chain([Entry::Rows(rows)]).chain(kept(behind)));
            }
            None => at += 1,
        }
    }
    order
}

/// A group on its way.
struct Search<'g> {
    g: &'g Graph,
    found: Rows,
    state: Vec<State>,
    /// Values that groups before it put in memory.
    in_memory: &'g [bool],
    /// Free values that members need, with which of their elements.
    seen: Vec<(ValueId, Option<Along>)>,
}

impl<'g> Search<'g> {
    fn new(g: &'g Graph, found: Rows, in_memory: &'g [bool]) -> Self {
        Search { g, found, state: vec![State::Free; g.types.len()], in_memory, seen: Vec::new() }
    }

    fn state(&self, v: ValueId) -> State {
        self.state[v.0 as usize]
    }

    /// The group of the reduction at a place of the order, and what the entries from there to its last member are to it.
    fn run(mut self, order: &[Entry], at: usize, users: &[Vec<usize>]) -> Option<(Rows, Vec<State>)> {
        let (mut states, mut end) = (Vec::new(), 0);
        for entry in &order[at..] {
            if states.len() > end + AHEAD {
                break;
            }
            let state = self.entry(entry);
            states.push(state);
            if state == State::Inside {
                end = states.len();
            }
        }
        states.truncate(end);
        self.find_outputs(users);
        let g = self.g;
        let reductions = self.found.members.iter().filter(|&&i| !inlines(&g.nodes[i])).count();
        let of_rows = |v: &ValueId| self.found.of(g, *v) == Some(Along::Element);
        let worth = reductions > 1 || self.found.outputs.iter().any(of_rows);
        (worth && self.found.outputs.len() <= OUTPUTS).then_some((self.found, states))
    }

    /// What an entry is to the group, which its node may join.
    fn entry(&mut self, entry: &Entry) -> State {
        let g = self.g;
        let nodes = match entry {
            Entry::Node(i) => std::slice::from_ref(i),
            Entry::Rows(rows) => &rows.members[..],
        };
        let inputs: Vec<State> = nodes.iter().flat_map(|&i| g.nodes[i].inputs.iter()).map(|&x| self.state(x)).collect();
        let state = match entry {
            _ if inputs.contains(&State::Behind) => State::Behind,
            Entry::Node(i) if self.joins(*i) => State::Inside,
            _ if inputs.contains(&State::Inside) => State::Behind,
            _ => State::Free,
        };
        for v in nodes.iter().flat_map(|&i| g.nodes[i].outputs()) {
            self.state[v.0 as usize] = state;
        }
        if let (State::Inside, [i]) = (state, nodes) {
            self.found.members.push(*i);
        }
        state
    }

    /// Whether a node becomes a member, none of whose operands is made of the group.
    fn joins(&mut self, i: usize) -> bool {
        let g = self.g;
        let node = &g.nodes[i];
        let reduction = self.found.reduces(g, node);
        let of_kind = node.kind.is_elementwise() || matches!(node.kind, Kind::Reshape | Kind::Broadcast(_));
        let Some(at) = self.found.of(g, node.first).filter(|_| reduction || of_kind) else { return false };
        let inside = node.inputs.iter().filter(|&&x| self.state(x) == State::Inside).count();
        if inside == 0 && !reduction {
            return false;
        }
        let before = self.seen.len();
        let (mut fits, mut shared) = (true, inside > 0 || self.found.members.is_empty());
        for &x in &node.inputs {
            let of = self.found.operand(g, node, x, at);
            if self.state(x) == State::Inside {
                fits &= of.is_some();
            } else {
                fits &= self.walk(x, of, &mut shared);
            }
        }
        let joins = fits && shared && self.found.members.len() + self.seen.len() <= NODES as usize;
        if !joins {
            self.seen.truncate(before);
        }
        joins
    }

    /// Notes what a free value is computed of; false if that is too much. `shared` is set where members read the same
    /// elements of an array.
    fn walk(&mut self, x: ValueId, at: Option<Along>, shared: &mut bool) -> bool {
        let g = self.g;
        let maker = g.maker(x).filter(|node| inlines(node) && !self.in_memory[x.0 as usize]);
        if self.seen.contains(&(x, at)) {
            *shared |= maker.is_none() && at == Some(Along::Element);
            return true;
        }
        self.seen.push((x, at));
        let Some(node) = maker else { return true };
        self.seen.len() <= NODES as usize
            && node.inputs.iter().all(|&y| {
                let of = at.and_then(|at| self.found.operand(g, node, y, at));
                self.walk(y, of, shared)
            })
    }

    /// Which members are in memory: what is a result, or needed whole, or costs more to compute again than to read.
    fn find_outputs(&mut self, users: &[Vec<usize>]) {
        let g = self.g;
        let values: Vec<ValueId> = self.found.members.iter().map(|&i| g.nodes[i].first).collect();
        let outside = |v: ValueId| users[v.0 as usize].iter().filter(|i| !self.found.members.contains(i));
        let whole = |v: ValueId, i: usize| {
            let node = &g.nodes[i];
            node.inputs.iter().enumerate().any(|(k, &x)| x == v && read(node, k) == Read::Whole)
        };
        let needed = |&v: &ValueId| g.outputs.contains(&v) || outside(v).any(|&i| whole(v, i));
        let outputs: Vec<ValueId> = values.iter().copied().filter(needed).collect();
        let elsewhere: Vec<ValueId> = values.iter().copied().filter(|&v| outside(v).next().is_some()).collect();
        self.found.outputs = outputs;
        let mut copied = Vec::new();
        elsewhere.into_iter().for_each(|v| self.export(v, &mut copied));
        self.found.outputs.sort_unstable();
    }

    /// Makes a member readable elsewhere: in memory, or computed again of what is.
    fn export(&mut self, v: ValueId, copied: &mut Vec<ValueId>) {
        if self.found.outputs.contains(&v) || copied.contains(&v) {
            return;
        }
        let mut nodes = 0;
        if self.found.of(self.g, v) == Some(Along::Row) || !self.is_light(v, &mut nodes) {
            self.found.outputs.push(v);
            return;
        }
        copied.push(v);
        let inputs = self.g.maker(v).map(|node| node.inputs.clone()).unwrap_or_default();
        for x in inputs {
            if self.state(x) == State::Inside {
                self.export(x, copied);
            }
        }
    }

    /// Whether computing a value of arrays and of numbers of rows costs little.
    fn is_light(&self, v: ValueId, nodes: &mut usize) -> bool {
        let inside = self.state(v) == State::Inside;
        let node = match self.g.maker(v) {
            Some(node) if inside && self.found.of(self.g, v) == Some(Along::Element) => node,
            Some(node) if !inside && inlines(node) && !self.in_memory[v.0 as usize] => node,
            _ => return true,
        };
        *nodes += 1;
        let cheap = node.kind.is_elementwise() && node.kind.cost() < COSTLY;
        let moves = matches!(node.kind, Kind::Reshape | Kind::Broadcast(_) | Kind::Const(_) | Kind::Iota(_));
        *nodes <= LIGHT && (cheap || moves) && node.inputs.iter().all(|&x| self.is_light(x, nodes))
    }
}
