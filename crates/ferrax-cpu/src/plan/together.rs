//! Steps that do not depend on each other and that one thread runs: several threads run them at the same time.
//!
//! Loops, factorizations of one matrix and sorts of one row keep one thread busy, however many there are. Where two of
//! them are long and neither needs the other, as the two directions of a recurrent network, `gather` brings them next to
//! each other in the order, and the planner makes one step of them if no memory that one writes is in use by another. Each
//! computes what it computes alone, so no bit depends on it. Read next: `mod.rs`, `pool/mod.rs`.

use crate::library::dot::planned::Planned;
use crate::plan::{NONE, Planner};
use crate::program::{SlotInit, Step};
use ferrax_loops::passes::order::{Item, Order};
use ferrax_loops::{Graph, Kind, Node};
use smallvec::SmallVec;

/// Nanoseconds from which on a step is worth a thread of its own.
const LONG: u64 = 20_000;
/// An operation in a loop that takes longer is shared out among threads itself.
const SHARED: u64 = 20_000;
/// A guess of the time that a node takes on the one thread that runs it, in nanoseconds; `None` where several may.
fn alone(g: &Graph, node: &Node) -> Option<u64> {
    let size = |k: usize| g.ty(node.inputs[k]).size();
    let last = |k: usize| g.ty(node.inputs[k]).shape.last().copied().unwrap_or(1);
    let one_thread = match &node.kind {
        Kind::Scan { body, .. } => is_alone(body),
        Kind::While { cond, body, .. } => is_alone(body) && is_alone(cond),
        Kind::Sort { .. } | Kind::TopK { .. } => size(0) == last(0),
        Kind::Linalg(_) => size(0) <= 1 << 16 && size(0) == last(0).pow(2),
        _ => false,
    };
    (one_thread && !node.kind.calls_host()).then(|| g.time_of(node))
}

/// Whether nothing in a loop's step is shared out.
fn is_alone(body: &Graph) -> bool {
    body.nodes.iter().all(|node| match &node.kind {
        Kind::While { .. } | Kind::Scan { .. } => alone(body, node).is_some(),
        Kind::Switch(_) | Kind::Call(_) | Kind::ReduceWith { .. } => false,
        _ => body.time_of(node) <= SHARED,
    })
}

/// Puts products that a region can take in by rows right before the region that reads them first.
pub fn delay_products(order: &mut Order<'_>) {
    for at in (0..order.items.len()).rev() {
        let Item::Node(i) = order.items[at] else { continue };
        let node = &order.g.nodes[i as usize];
        if !Planned::of(order.g, node).is_some_and(|product| product.suits_rows()) {
            continue;
        }
        let reads = |item: &Item| {
            let mut found = false;
            order.accesses(*item, |root| found |= root == node.first.0);
            found
        };
        if let Some(ahead) = order.items[at + 1..].iter().position(reads)
            && matches!(order.items[at + 1 + ahead], Item::Region { .. })
        {
            order.items[at..=at + ahead].rotate_left(1);
        }
    }
}

/// Brings long nodes of one thread next to each other where nothing between them needs an earlier one; gives the
/// ranges of items that are together.
pub fn gather(order: &mut Order<'_>) -> Vec<(u32, u32)> {
    if crate::pool::threads() == 1 {
        return Vec::new();
    }
    let is_long = |item: &Item| match item {
        Item::Node(i) => alone(order.g, &order.g.nodes[*i as usize]).is_some_and(|time| time >= LONG),
        _ => false,
    };
    let long: Vec<usize> = (0..order.items.len()).filter(|&at| is_long(&order.items[at])).collect();
    if long.len() < 2 {
        return Vec::new();
    }
    let (mut items, mut ranges) = (Vec::with_capacity(order.items.len()), Vec::new());
    let mut waiting: Vec<Item> = Vec::new();
    // Whether what waits makes a root.
    let mut made = vec![false; order.g.types.len() + order.extra_roots.len()];
    let mut flush = |items: &mut Vec<Item>, waiting: &mut Vec<Item>, made: &mut Vec<bool>| {
        let from = items.len() as u32;
        if waiting.len() > 1 {
            ranges.push((from, from + waiting.len() as u32));
        }
        items.append(waiting);
        made.fill(false);
    };
    for (at, &item) in order.items.iter().enumerate() {
        let mut reads: SmallVec<[u32; 8]> = SmallVec::new();
        order.accesses(item, |root| reads.push(root));
        if reads.iter().any(|&root| made[root as usize]) {
            flush(&mut items, &mut waiting, &mut made);
        }
        match item {
            Item::Node(i) if long.binary_search(&at).is_ok() => {
                order.g.nodes[i as usize].outputs().for_each(|v| made[v.0 as usize] = true);
                waiting.push(item);
            }
            _ => items.push(item),
        }
    }
    flush(&mut items, &mut waiting, &mut made);
    if !ranges.is_empty() {
        order.items = items;
    }
    ranges
}

impl Planner<'_> {
    /// Makes one step of those from `from` on, which are `count` nodes and the making and freeing of their memory, if
    /// they are independent.
    pub fn put_together(&mut self, from: usize, count: usize) {
        if !self.are_independent(&self.out.steps[from..], count) {
            return;
        }
        let (run, mut freed) = self.split_off(from);
        let time = run.iter().filter_map(|s| alone(self.g, &self.g.nodes[s.slots(&self.out)?.0 as usize])).sum();
        self.out.steps.push(Step::Together { steps: run.into(), time });
        self.out.steps.append(&mut freed);
    }

    /// Whether steps are `count` nodes, and memory for them, none of which writes what another one uses.
    fn are_independent(&self, steps: &[Step], count: usize) -> bool {
        let nodes: SmallVec<[&Step; 4]> = steps.iter().filter(|s| s.slots(&self.out).is_some()).collect();
        let memory = steps.iter().filter(|s| s.is_memory()).count();
        nodes.len() == count
            && nodes.len() + memory == steps.len()
            && (0..count).all(|k| !nodes[..k].iter().any(|b| self.clash(nodes[k], b)))
    }

    /// Whether one of two nodes writes what the other reads or writes.
    fn clash(&self, a: &Step, b: &Step) -> bool {
        let (Some((a, a_slots)), Some((b, b_slots))) = (a.slots(&self.out), b.slots(&self.out)) else { return true };
        let (a, b) = (&self.g.nodes[a as usize], &self.g.nodes[b as usize]);
        let written = |node: &Node, k: usize| k >= node.inputs.len();
        let memory = |node: &Node, slots: &[u32], k: usize| {
            let v = if written(node, k) { node.first.0 + (k - node.inputs.len()) as u32 } else { node.inputs[k].0 };
            self.memory(slots[k], self.g.types[v as usize].bytes())
        };
        let count = |node: &Node| node.inputs.len() + node.results as usize;
        (0..count(a)).any(|i| {
            (0..count(b))
                .any(|j| (written(a, i) || written(b, j)) && overlap(memory(a, a_slots, i), memory(b, b_slots, j)))
        })
    }

    /// Where a slot's bytes are: in the arena, or in memory of the slot's own.
    fn memory(&self, slot: u32, bytes: usize) -> (u32, usize, usize) {
        match slot.checked_sub(self.first_own).map(|k| &self.out.inits[k as usize]) {
            Some(SlotInit::Arena(at)) => (NONE, *at, at + bytes),
            _ => (slot, 0, 1),
        }
    }
}

fn overlap(a: (u32, usize, usize), b: (u32, usize, usize)) -> bool {
    a.0 == b.0 && a.1 < b.2 && b.1 < a.2
}
