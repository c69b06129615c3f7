//! Which values are in memory, and which of them one kernel computes.
//!
//! A thread computes one element of each of its kernel's results, and elements of other values on the way, wherever they
//! lie: slices, broadcasts, transpositions, paddings and gathers are arithmetic on indices (`print/moves.rs`). So the shared
//! order of `ferrax_loops::passes`, which finds rows that stay in a core's caches and views of regular distances for
//! vectors of a CPU, asks for less and gives less than is wanted here. A value is in memory where something needs it whole,
//! where computing it again would cost more than reading it, and where a kernel would become too long. Kernels of several
//! results have results of one size that read each other at most at the same place; those of rows are found before the
//! others (`rows.rs`).
//!
//! Invariants: an item reads values of items before it, and of itself at the same place alone.

use super::rows::{Along, Entry, Rows, find};
use crate::print::body::inlines;
use ferrax_loops::{Graph, Kind, Node, ValueId};
use std::collections::HashMap;

/// Places that a cheap value is computed at in different kernels, or in one.
const SITES: usize = 4;
/// Nodes, and arrays, of a kernel.
pub const NODES: u32 = 160;
const ARRAYS: u32 = 24;
/// Results of a kernel.
const RESULTS: usize = 8;
/// Picoseconds (`Kind::cost`) from which on an operation is not done twice.
pub const COSTLY: u64 = 100;

/// What runs at once.
#[derive(Debug)]
pub enum What {
    /// A kernel that computes these values, all of one size.
    Fused(Vec<ValueId>),
    /// A kernel that computes these rows.
    Rows(Rows),
    /// A node with kernels or steps of its own.
    Node(usize),
    /// A value that lies in another one's memory.
    Alias(ValueId),
}

/// A step of a graph, with the values in memory that it reads: whether each is read at the same place alone.
#[derive(Debug)]
pub struct Item {
    /// What it does.
    pub what: What,
    /// What it reads.
    pub reads: Vec<(ValueId, bool)>,
}

/// A graph in order.
pub struct Groups {
    /// What runs.
    pub items: Vec<Item>,
    /// For each value, the last item that reads it; `usize::MAX` for results of the graph.
    pub last: Vec<usize>,
}

/// How a node reads an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// In memory.
    Whole,
    /// Element by element, each once or so.
    Elements,
}

/// How a node reads an operand, by the operand's number.
pub fn read(node: &Node, operand: usize) -> Read {
    match &node.kind {
        Kind::Reduce { .. } | Kind::ArgReduce { .. } | Kind::ReduceWith { .. } | Kind::Cumulative { .. } => {
            Read::Elements
        }
        Kind::DynamicUpdateSlice if operand > 0 => Read::Elements,
        _ if inlines(node) => Read::Elements,
        _ => Read::Whole,
    }
}

/// Whether a node's element at a place needs the operand's at the same place.
pub fn same_place(g: &Graph, node: &Node, x: ValueId) -> bool {
    let (from, to) = (g.ty(x), g.ty(node.first));
    (node.kind.is_elementwise() && from.shape == to.shape) || matches!(node.kind, Kind::Reshape)
}

/// A kernel's result, and the way from it to a place that a value is computed at.
type Site = (u32, u64);

struct Finder<'g> {
    g: &'g Graph,
    held: Vec<bool>,
    sites: Vec<Vec<Site>>,
    /// Whether computing a value again costs more than reading it, by what it would be made of.
    costly: Vec<bool>,
    /// Whether more elements are asked for than there are.
    spread: Vec<bool>,
    order: &'g [Entry],
    /// The rows that a value is a member of, by their place in the order.
    rows: Vec<Option<usize>>,
}

/// Finds the groups of a graph, whose nodes are all needed.
pub fn group(g: &Graph) -> Groups {
    let n = g.types.len();
    let order = find(g);
    let mut f = Finder {
        g,
        held: vec![false; n],
        sites: vec![Vec::new(); n],
        costly: vec![false; n],
        spread: vec![false; n],
        order: &order,
        rows: vec![None; n],
    };
    f.held[..g.params].fill(true);
    for node in &g.nodes {
        for v in node.outputs() {
            f.held[v.0 as usize] = !inlines(node);
        }
        for (k, &x) in node.inputs.iter().enumerate() {
            if read(node, k) == Read::Whole {
                f.held[x.0 as usize] = true;
            }
        }
    }
    g.outputs.iter().for_each(|v| f.held[v.0 as usize] = true);
    for (at, entry) in order.iter().enumerate() {
        let Entry::Rows(rows) = entry else { continue };
        for &i in &rows.members {
            let v = g.nodes[i].first;
            f.rows[v.0 as usize] = Some(at);
            f.held[v.0 as usize] = rows.outputs.contains(&v);
        }
    }
    f.find_costly();
    f.find_sites();
    f.limit();
    f.order()
}

/// For each value, the last item that reads it; `usize::MAX` for results.
fn last_reads(g: &Graph, items: &[Item]) -> Vec<usize> {
    let mut last = vec![0; g.types.len()];
    for (i, item) in items.iter().enumerate() {
        item.reads.iter().for_each(|(v, _)| last[v.0 as usize] = i);
    }
    g.outputs.iter().for_each(|v| last[v.0 as usize] = usize::MAX);
    last
}

impl Finder<'_> {
    /// The rows that a node is a member of.
    fn rows_of(&self, node: &Node) -> Option<&Rows> {
        match &self.order[self.rows[node.first.0 as usize]?] {
            Entry::Rows(rows) => Some(rows),
            Entry::Node(_) => None,
        }
    }

    fn find_costly(&mut self) {
        for node in &self.g.nodes {
            let own = match &node.kind {
                Kind::Gather(_) | Kind::Concat(_) => true,
                kind if kind.is_elementwise() => kind.cost() >= COSTLY,
                _ => false,
            };
            let below =
                inlines(node) && node.inputs.iter().any(|x| self.costly[x.0 as usize] && !self.held[x.0 as usize]);
            self.costly[node.first.0 as usize] = own || below;
        }
    }

    /// From the results on: where each value would be computed, and whether it is in memory instead.
    fn find_sites(&mut self) {
        let g = self.g;
        for (i, node) in g.nodes.iter().enumerate().rev() {
            let v = node.first.0 as usize;
            let rows = self.rows_of(node).cloned();
            if inlines(node) && !self.held[v] && rows.is_none() {
                let several = self.sites[v].len();
                self.held[v] = several > SITES || (self.costly[v] && (several > 1 || self.spread[v]));
            }
            let mut own: Vec<Site> =
                if self.held[v] { vec![(node.first.0, 0)] } else { std::mem::take(&mut self.sites[v]) };
            if let Some(rows) = &rows {
                let site = (rows.outputs[0].0, 0);
                own.retain(|other| !self.held[v] && *other != site);
                own.push(site);
            }
            for (k, &x) in node.inputs.iter().enumerate().filter(|(k, _)| read(node, *k) == Read::Elements) {
                let at = x.0 as usize;
                let along = rows.as_ref().and_then(|r| r.operand(g, node, x, r.of(g, node.first)?));
                self.spread[at] |= g.ty(x).size() < g.ty(node.first).size()
                    && along.is_none()
                    && (inlines(node) && !matches!(node.kind, Kind::Concat(_) | Kind::Pad(_)));
                for &(root, path) in &own {
                    let here = along.is_some() || (same_place(g, node, x) && inlines(node));
                    let path =
                        if here { path } else { path.wrapping_mul(0x100_0000_01b3) ^ ((i as u64 + 1) << 8 | k as u64) };
                    if !self.sites[at].contains(&(root, path)) {
                        self.sites[at].push((root, path));
                    }
                }
            }
        }
    }

    /// Cuts what would make a kernel too long.
    fn limit(&mut self) {
        let g = self.g;
        let mut size = vec![(1u32, 0u32); g.types.len()];
        let mut taken = vec![false; g.types.len()];
        for node in &g.nodes {
            let (mut nodes, mut arrays) = (1, 0);
            for x in &node.inputs {
                let x = x.0 as usize;
                if self.held[x] {
                    arrays += 1;
                } else if !std::mem::replace(&mut taken[x], true) {
                    (nodes, arrays) = (nodes + size[x].0, arrays + size[x].1);
                }
            }
            let v = node.first.0 as usize;
            if inlines(node) && self.rows[v].is_none() && (nodes > NODES || arrays > ARRAYS) {
                self.held[v] = true;
            }
            size[v] = (nodes, arrays);
        }
    }

    /// The values in memory that computing a value reads, through values that are not.
    fn reads_of(&self, v: ValueId, here: bool, found: &mut HashMap<ValueId, bool>, seen: &mut Vec<(ValueId, bool)>) {
        if seen.contains(&(v, here)) {
            return;
        }
        seen.push((v, here));
        if self.held[v.0 as usize] {
            let all = found.entry(v).or_insert(true);
            *all &= here;
            return;
        }
        if let Some(node) = self.g.maker(v) {
            for &x in &node.inputs {
                self.reads_of(x, here && same_place(self.g, node, x), found, seen);
            }
        }
    }

    /// What a group of rows reads.
    fn rows_reads(&self, rows: &Rows) -> Vec<(ValueId, bool)> {
        let g = self.g;
        let mut found: HashMap<ValueId, bool> = HashMap::new();
        let mut open: Vec<(ValueId, Option<Along>)> = rows.outputs.iter().map(|&v| (v, rows.of(g, v))).collect();
        let mut seen = open.clone();
        while let Some((v, at)) = open.pop() {
            let Some(node) = g.maker(v).filter(|node| !self.held[v.0 as usize] || rows.outputs.contains(&node.first))
            else {
                *found.entry(v).or_insert(true) &= at == Some(Along::Element);
                continue;
            };
            for &x in &node.inputs {
                let next = (x, at.and_then(|at| rows.operand(g, node, x, at)));
                if !seen.contains(&next) {
                    seen.push(next);
                    open.push(next);
                }
            }
        }
        let mut all: Vec<(ValueId, bool)> = found.into_iter().collect();
        all.sort_unstable();
        all
    }

    fn node_reads(&self, node: &Node, inline: bool) -> Vec<(ValueId, bool)> {
        let (mut found, mut seen) = (HashMap::new(), Vec::new());
        for &x in &node.inputs {
            self.reads_of(x, inline && same_place(self.g, node, x), &mut found, &mut seen);
        }
        let mut all: Vec<(ValueId, bool)> = found.into_iter().collect();
        all.sort_unstable();
        all
    }

    /// Whether a value has the bytes of the operand.
    fn is_alias(&self, node: &Node) -> bool {
        let Some(&x) = node.inputs.first() else { return false };
        let whole = |d: ferrax_base::DType| !d.is_bool() && d.bits() >= 8;
        let (from, to) = (self.g.ty(x).dtype, self.g.ty(node.first).dtype);
        self.held[x.0 as usize]
            && (matches!(node.kind, Kind::Reshape) || (matches!(node.kind, Kind::Bitcast) && whole(from) && whole(to)))
    }

    fn order(self) -> Groups {
        let g = self.g;
        let mut items: Vec<Item> = Vec::new();
        // The item that makes a value, counted from 1.
        let mut made = vec![0usize; g.types.len()];
        for entry in self.order {
            let i = match entry {
                Entry::Node(i) => *i,
                Entry::Rows(rows) => {
                    items.push(Item { what: What::Rows(rows.clone()), reads: self.rows_reads(rows) });
                    rows.outputs.iter().for_each(|v| made[v.0 as usize] = items.len());
                    continue;
                }
            };
            let node = &g.nodes[i];
            let v = node.first;
            if !inlines(node) {
                let reads = self.node_reads(node, false);
                items.push(Item { what: What::Node(i), reads });
                node.outputs().for_each(|v| made[v.0 as usize] = items.len());
                continue;
            }
            if !self.held[v.0 as usize] {
                continue;
            }
            let reads = self.node_reads(node, true);
            if self.is_alias(node) {
                items.push(Item { what: What::Alias(v), reads });
                made[v.0 as usize] = items.len();
                continue;
            }
            let n = g.ty(v).size();
            // The first item that all it reads is there for.
            let ready = |&(x, here): &(ValueId, bool)| {
                let at = made[x.0 as usize];
                let joins =
                    at > 0 && here && matches!(&items[at - 1].what, What::Fused(outs) if g.ty(outs[0]).size() == n);
                if joins { at.saturating_sub(1) } else { at }
            };
            let from = reads.iter().map(ready).max().unwrap_or(0);
            let fits = |item: &Item| match &item.what {
                What::Fused(outs) if g.ty(outs[0]).size() == n && outs.len() < RESULTS => {
                    let more = reads.iter().filter(|r| !item.reads.iter().any(|other| other.0 == r.0)).count();
                    item.reads.len() + more <= ARRAYS as usize
                }
                _ => false,
            };
            let at = match (from..items.len()).find(|&at| fits(&items[at])) {
                Some(at) => at,
                None => {
                    items.push(Item { what: What::Fused(Vec::new()), reads: Vec::new() });
                    items.len() - 1
                }
            };
            if let What::Fused(outs) = &mut items[at].what {
                let own = outs.clone();
                outs.push(v);
                for (x, here) in reads.into_iter().filter(|(x, _)| !own.contains(x)) {
                    match items[at].reads.iter_mut().find(|r| r.0 == x) {
                        Some(found) => found.1 &= here,
                        None => items[at].reads.push((x, here)),
                    }
                }
            }
            made[v.0 as usize] = at + 1;
        }
        let last = last_reads(g, &items);
        Groups { items, last }
    }
}
