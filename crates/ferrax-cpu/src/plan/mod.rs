//! The planner: from a graph to steps and slots, in a few linear passes.
//!
//! 1. The passes of `ferrax-loops` that every engine shares: transpositions become part of products, what does not change
//!    leaves loops, what is cheap is computed again where it is read late, counts along one axis are spread. Operations
//!    on constants are done (`constants.rs`), dead nodes are found backwards. Lines of operations on few elements become
//!    steps in registers (`registers/lines.rs`).
//! 2. Every value gets a place: the root value whose memory it shares, and how it is spread there. Constants and
//!    broadcasts of scalars, rows and columns cost nothing where a group reads them (`ferrax_loops::passes::order`).
//! 3. Nodes are ordered into items: groups of elementwise nodes and reductions over rows, and single nodes.
//! 4. Lifetimes are taken over items, then slots are given: outputs to the caller's memory, dying operands and
//!    donated parameters to results that can be computed in place, the rest to the arena or the heap.

mod constants;
mod group;
mod pieces;
#[cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"),
    path = "region_none.rs"
)]
mod region;
#[cfg_attr(
    any(not(any(target_arch = "x86_64", target_arch = "aarch64")), feature = "portable"),
    path = "registers_none.rs"
)]
mod registers;
mod sums;
mod together;
mod verify;

use crate::elementwise;
pub(crate) use crate::fused::NONE;
use crate::fused::blocks::{Blocks, Group};
use crate::library::dot::planned::Planned;
use crate::library::known::Known;
use crate::library::moves::{self, Move};
use crate::library::views::Copy;
use crate::program::{OutputPlace, Program, SlotInit, Step};
use ferrax_base::config::Flag;
use ferrax_base::{Buffer, Result, Scalar, checks, error};
use ferrax_loops::passes::order::{Item, Order, Role, Shape, Spread, Viewed};
use ferrax_loops::passes::{self, in_place_pairs, live_nodes};
use ferrax_loops::{Graph, Kind, Node, Type};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

/// Which parameters' memory may be overwritten.
#[derive(Clone, Copy)]
pub(crate) enum Donation<'a> {
    /// None.
    None,
    /// Those marked, for any output.
    Free(&'a [bool]),
    /// `count` from `first` on; parameter `first + k` may become output `k` only (a loop's carry). Where the loop `waits`,
    /// nothing sees the outputs before it has ended.
    Tied { first: usize, count: usize, waits: bool },
}

impl Donation<'_> {
    fn allows(self, param: usize) -> bool {
        match self {
            Donation::None => false,
            Donation::Free(marks) => marks.get(param).copied().unwrap_or(false),
            Donation::Tied { first, count, .. } => (first..first + count).contains(&param),
        }
    }

    /// Whether output `k` may live in parameter `param`.
    fn may_be_output(self, param: usize, k: usize) -> bool {
        match self {
            Donation::Tied { first, .. } => self.allows(param) && param == first + k,
            _ => self.allows(param),
        }
    }
}

/// Values up to this many bytes live in the arena.
const ARENA_LIMIT: usize = 32 << 10;
/// Bytes of a group's register.
const REGISTER: usize = 4096;

impl Program {
    /// Compiles a graph; no parameter is donated.
    pub fn compile(graph: Arc<Graph>) -> Result<Program> {
        plan(graph, Donation::None, true)
    }

    /// Compiles a graph whose parameters marked in `donated` may be overwritten and become outputs.
    pub fn compile_donating(graph: Arc<Graph>, donated: &[bool]) -> Result<Program> {
        plan(graph, Donation::Free(donated), true)
    }

    /// Compiles a graph without the threaded machine: the oracle of its tests, and what machines without it do.
    pub fn compile_plain(graph: Arc<Graph>) -> Result<Program> {
        plan(graph, Donation::None, false)
    }
}

/// Compiles a graph; without the machine if so asked.
pub(crate) fn plan(graph: Arc<Graph>, donation: Donation<'_>, machine: bool) -> Result<Program> {
    let graph = checked(passes::fold_transpositions(graph))?;
    let graph = if machine { checked(crate::plan::constants::fold(graph))? } else { graph };
    let graph = if machine { checked(passes::fractions(graph))? } else { graph };
    let graph = if machine { checked(passes::paddings(graph))? } else { graph };
    let graph = if machine { checked(passes::holes(graph))? } else { graph };
    let graph = if machine { checked(passes::rolls(graph))? } else { graph };
    let graph = checked(passes::hoist(graph))?;
    let graph = if machine { checked(passes::hoist(checked(passes::ahead(graph))?))? } else { graph };
    let graph = if machine { checked(passes::words(graph))? } else { graph };
    let graph = if machine { checked(passes::idle(graph))? } else { graph };
    let graph = if machine { checked(passes::any(graph))? } else { graph };
    let graph = if machine { checked(passes::few(graph))? } else { graph };
    let graph = if machine { checked(passes::split_states(graph))? } else { graph };
    let graph = if machine { checked(passes::on_parts(graph))? } else { graph };
    let graph = if machine { checked(passes::recompute(graph))? } else { graph };
    let graph = if machine { checked(passes::spread_counts(graph))? } else { graph };
    // A line reads its operands while it writes: it takes no memory over.
    let gives = matches!(donation, Donation::Free(marks) if marks.contains(&true));
    let graph = if machine && !gives { checked(registers::lines(graph))? } else { graph };
    let g = &*graph;
    let live = live_nodes(g);
    let mut order = Order::new(g, if machine { region::target() } else { None });
    order.run(&live)?;
    together::delay_products(&mut order);
    let together = together::gather(&mut order);
    let lives = Lifetimes::of(g, &order);
    let mut planner = Planner::new(g, donation, order, lives, machine)?;
    planner.run(&together)?;
    let Planner { out, .. } = planner;
    let program = Program { graph: graph.clone(), ..out };
    if checks::on() || Flag::EnableChecks.get() {
        crate::plan::verify::verify(&program)?;
    }
    Ok(program)
}

/// What a pass made, verified under checks.
fn checked(graph: Arc<Graph>) -> Result<Arc<Graph>> {
    if checks::on() || Flag::EnableChecks.get() {
        graph.verify().map_err(|what| error!(Internal, "a pass of the planner broke a graph: {what}"))?;
    }
    Ok(graph)
}

/// Pass 4a: where each root is defined and last used, as item numbers.
pub(crate) struct Lifetimes {
    pub last: Vec<u32>,
    /// Heads of the lists of roots that die at an item, and the lists' links.
    heads: Vec<u32>,
    next: Vec<u32>,
}

impl Lifetimes {
    fn of(g: &Graph, order: &Order<'_>) -> Self {
        let roots = g.types.len() + order.extra_roots.len();
        let items = order.items.len();
        let mut last = vec![0; roots];
        for (s, &item) in order.items.iter().enumerate() {
            order.accesses(item, |root| last[root as usize] = s as u32);
        }
        for &v in &g.outputs {
            last[order.plain_place(v).root as usize] = items as u32;
        }
        let (mut heads, mut next) = (vec![NONE; items + 1], vec![NONE; roots]);
        for (root, &s) in last.iter().enumerate() {
            next[root] = heads[s as usize];
            heads[s as usize] = root as u32;
        }
        Lifetimes { last, heads, next }
    }
}

/// Pass 4b: slots and steps.
pub(crate) struct Planner<'g> {
    pub g: &'g Graph,
    pub order: Order<'g>,
    lives: Lifetimes,
    pub donation: Donation<'g>,
    pub machine: bool,
    pub out: Program,
    /// Slot of each root; `NONE` while it has none.
    pub slot: Vec<u32>,
    /// For each root, the output that should live where it is made.
    want: Vec<u32>,
    pub first_own: u32,
    free_arena: Vec<(usize, Vec<usize>)>,
    /// Results of pieces, and their operands that regions have written there.
    pub made_inside: HashSet<(u32, u32)>,
    subprograms: Vec<(*const Graph, Arc<Program>)>,
    pub group: crate::plan::group::Scratch,
    pub region: crate::plan::region::Scratch,
}

impl<'g> Planner<'g> {
    fn new(g: &'g Graph, donation: Donation<'g>, order: Order<'g>, lives: Lifetimes, machine: bool) -> Result<Self> {
        let roots = lives.last.len();
        let own = (g.params + g.outputs.len()) as u32;
        let out = Program {
            graph: Arc::new(Graph::default()),
            steps: Vec::with_capacity(order.items.len() + 8),
            blocks: Blocks::with_room(order.members.len()),
            slots: Vec::new(),
            inits: Vec::new(),
            constants: constant_pool(g, &order.constants)?,
            arena_bytes: 0,
            scratch_bytes: 0,
            outputs: vec![OutputPlace::Given; g.outputs.len()],
            bytes: (
                g.types[..g.params].iter().map(Type::bytes).collect(),
                g.outputs.iter().map(|&v| g.ty(v).bytes()).collect(),
            ),
            written: vec![false; g.params],
            subs: Vec::new(),
            regions: crate::fused::region::Regions::default(),
            tiles: Vec::new(),
            tiles_bytes: 0,
            kept_bytes: 0,
            products: Vec::new(),
            sums: Vec::new(),
            register_loops: Vec::new(),
            known: Vec::new(),
        };
        Ok(Planner {
            g,
            machine,
            donation,
            out,
            slot: vec![NONE; roots],
            want: vec![NONE; roots],
            first_own: own,
            free_arena: Vec::new(),
            made_inside: HashSet::new(),
            subprograms: Vec::new(),
            group: crate::plan::group::Scratch::new(roots),
            region: crate::plan::region::Scratch::new(roots),
            order,
            lives,
        })
    }

    fn run(&mut self, together: &[(u32, u32)]) -> Result<()> {
        for p in 0..self.g.params {
            self.slot[p] = p as u32;
        }
        self.place_constants();
        self.choose_outputs();
        let mut together = together.iter().copied().peekable();
        let mut first = 0;
        for s in 0..self.order.items.len() {
            let group = together.peek().copied().filter(|group| (group.0..group.1).contains(&(s as u32)));
            if group.is_some_and(|group| group.0 == s as u32) {
                first = self.out.steps.len();
            }
            let item = self.order.items[s];
            match item {
                Item::Group { start, end, n } | Item::Region { start, end, shape: Shape { n, .. } }
                    if self.is_elementwise(start, end) && self.emit_tiles(s as u32, start, end, n) => {}
                Item::Group { start, end, n } => self.emit_group(s as u32, start, end, n)?,
                Item::Region { start, end, shape } => self.emit_region(s as u32, (start, end), shape)?,
                Item::Node(i) => self.emit_node(s as u32, i)?,
                Item::Pieces(i) => self.emit_pieces(s as u32, i)?,
                Item::Accumulate(pair) => self.emit_accumulate(s as u32, pair),
                Item::Dense { value, root } => {
                    let ty = &self.g.types[value as usize];
                    let dst = self.new_slot(s as u32, root, ty.bytes(), &[]);
                    let place = self.order.places[value as usize];
                    let src = self.slot[place.root as usize];
                    let (size, n) = (ty.dtype.size() as u8, ty.size());
                    self.out.steps.push(match place.spread {
                        Spread::Row(inner) => Step::Rows { src, dst, size, n, inner: inner as usize },
                        Spread::Col(len) => Step::Repeat { src, dst, size, n, len: len as usize },
                        Spread::View(view) => {
                            let Viewed { view, node, .. } = &self.order.views[view as usize];
                            let copy = Copy::of(view, size as usize);
                            match Move::of(&copy, src, dst) {
                                Some(moved) => Step::Move { moved, node: *node },
                                None => Step::View { src, dst, copy: Box::new(copy), node: *node },
                            }
                        }
                        _ => Step::Splat { src, dst, size, n },
                    });
                }
            }
            match group {
                None => self.release(s as u32),
                // What one of them reads last is in use until all are done.
                Some((from, end)) if end == s as u32 + 1 => {
                    (from..end).for_each(|s| self.release(s));
                    self.put_together(first, (end - from) as usize);
                    together.next();
                }
                Some(_) => {}
            }
        }
        self.finish_outputs();
        Ok(())
    }

    /// Whether the members of a group are elementwise over the same elements.
    fn is_elementwise(&self, start: u32, end: u32) -> bool {
        self.order.members[start as usize..end as usize].iter().all(|m| m.level == 0 && m.role == Role::Full)
    }

    fn place_constants(&mut self) {
        let mut offset = 0;
        for &(root, node) in &self.order.constants {
            let init = match &self.g.nodes[node as usize].kind {
                Kind::Dense(bytes) if (bytes.as_ptr() as usize).is_multiple_of(16) => SlotInit::Dense(bytes.clone()),
                Kind::Dense(bytes) => {
                    let at = offset;
                    offset += bytes.len().next_multiple_of(16);
                    SlotInit::Constant(at)
                }
                _ => {
                    offset += 16;
                    SlotInit::Constant(offset - 16)
                }
            };
            self.slot[root as usize] = self.first_own + self.out.inits.len() as u32;
            self.out.inits.push(init);
        }
    }

    /// Says which roots should be made in an output's memory, following in-place nodes backwards.
    fn choose_outputs(&mut self) {
        for (k, &v) in self.g.outputs.iter().enumerate() {
            let p = self.order.plain_place(v);
            let root = p.root as usize;
            // An output without elements may share its root with a number.
            let whole = !p.is_splat() && self.bytes(p.root) == self.g.ty(v).bytes();
            if whole && self.want[root] == NONE && self.slot[root] == NONE {
                self.want[root] = k as u32;
            }
        }
        for (s, item) in self.order.items.iter().enumerate().rev() {
            let (inputs, pairs): (SmallVec<[u32; 4]>, SmallVec<[(usize, u32); 4]>) = match *item {
                Item::Node(i) => {
                    let node = &self.g.nodes[i as usize];
                    let inputs = node.inputs.iter().map(|&v| self.order.dense_root(v)).collect();
                    (inputs, in_place_pairs(node).iter().map(|&(x, r)| (x, node.first.0 + r as u32)).collect())
                }
                Item::Accumulate(pair) => {
                    let inputs = pair.inputs(self.g).iter().map(|&v| self.order.dense_root(v)).collect();
                    (inputs, std::iter::once((2, self.g.nodes[pair.add as usize].first.0)).collect())
                }
                _ => continue,
            };
            for (operand, r) in pairs {
                let (x, r) = (inputs[operand] as usize, r as usize);
                // An operand that the node also reads in another place must keep its value.
                let once = inputs.iter().filter(|&&v| v as usize == x).count() == 1;
                if once
                    && self.lives.last[x] == s as u32
                    && self.slot[x] == NONE
                    && self.want[x] == NONE
                    && self.bytes(x as u32) == self.g.types[r].bytes()
                {
                    self.want[x] = self.want[r];
                }
            }
        }
    }

    /// Bytes of a root's memory.
    fn bytes(&self, root: u32) -> usize {
        let n = self.g.types.len();
        let value = if (root as usize) < n { root } else { self.order.extra_roots[root as usize - n] };
        let ty = &self.g.types[value as usize];
        let splat = (root as usize) < n && self.order.places[root as usize].is_splat();
        if splat { ty.dtype.size() } else { ty.bytes() }
    }

    pub fn dies_at(&self, root: u32, s: u32) -> bool {
        self.lives.last[root as usize] == s
    }

    /// Whether a root outlives the item that makes it.
    pub fn outlives(&self, root: u32, s: u32) -> bool {
        self.lives.last[root as usize] > s
    }

    /// Gives a root memory: in place of one of the dying `candidates`, an output's, the arena's or the heap's.
    pub fn new_slot(&mut self, s: u32, root: u32, bytes: usize, candidates: &[u32]) -> u32 {
        let want = self.want[root as usize];
        for &x in candidates {
            let slot = self.slot[x as usize];
            if slot != NONE && self.bytes(x) == bytes && self.dies_at(x, s) && self.may_reuse(slot, want) {
                self.slot[x as usize] = NONE;
                return self.assign(root, slot);
            }
        }
        if want != NONE {
            if let Donation::Free(_) = self.donation
                && let Some(p) = self.dead_parameter(s, bytes)
            {
                self.slot[p as usize] = NONE;
                return self.assign(root, p);
            }
            return self.assign(root, self.g.params as u32 + want);
        }
        let slot = if bytes <= ARENA_LIMIT {
            let offset = self.arena(bytes);
            self.own(SlotInit::Arena(offset))
        } else {
            let slot = self.own(SlotInit::Heap);
            self.out.steps.push(Step::Alloc { slot, bytes });
            slot
        };
        self.assign(root, slot)
    }

    fn assign(&mut self, root: u32, slot: u32) -> u32 {
        self.slot[root as usize] = slot;
        if (slot as usize) < self.g.params {
            self.out.written[slot as usize] = true;
        }
        slot
    }

    fn own(&mut self, init: SlotInit) -> u32 {
        self.out.inits.push(init);
        self.first_own + self.out.inits.len() as u32 - 1
    }

    /// Whether a result that is wanted as output `want` may take over this slot.
    fn may_reuse(&self, slot: u32, want: u32) -> bool {
        if (slot as usize) < self.g.params {
            let param = slot as usize;
            return if want == NONE {
                self.donation.allows(param)
            } else {
                self.donation.may_be_output(param, want as usize)
            };
        }
        if slot < self.first_own {
            return slot - self.g.params as u32 == want;
        }
        let constant =
            matches!(self.out.inits[(slot - self.first_own) as usize], SlotInit::Constant(_) | SlotInit::Dense(_));
        !constant && want == NONE
    }

    /// A donated parameter of this size that is not needed any more.
    fn dead_parameter(&self, s: u32, bytes: usize) -> Option<u32> {
        (0..self.g.params as u32).find(|&p| {
            self.slot[p as usize] == p
                && self.donation.allows(p as usize)
                && self.lives.last[p as usize] < s
                && self.g.types[p as usize].bytes() == bytes
        })
    }

    fn arena(&mut self, bytes: usize) -> usize {
        let size = bytes.next_multiple_of(64).max(64);
        if let Some((_, free)) = self.free_arena.iter_mut().find(|f| f.0 == size)
            && let Some(offset) = free.pop()
        {
            return offset;
        }
        self.out.arena_bytes += size;
        self.out.arena_bytes - size
    }

    /// Gives back the memory of roots that die at an item.
    fn release(&mut self, s: u32) {
        let mut root = self.lives.heads[s as usize];
        while root != NONE {
            let slot = self.slot[root as usize];
            if slot != NONE && slot >= self.first_own {
                match self.out.inits[(slot - self.first_own) as usize] {
                    SlotInit::Heap => self.out.steps.push(Step::Free { slot }),
                    SlotInit::Arena(offset) => {
                        let bytes = self.bytes(root);
                        if checks::on() {
                            self.out.steps.push(Step::Dead { slot, bytes });
                        }
                        let size = bytes.next_multiple_of(64).max(64);
                        match self.free_arena.iter_mut().find(|f| f.0 == size) {
                            Some(f) => f.1.push(offset),
                            None => self.free_arena.push((size, vec![offset])),
                        }
                    }
                    _ => {}
                }
                self.slot[root as usize] = NONE;
            }
            root = self.lives.next[root as usize];
        }
    }

    fn emit_node(&mut self, s: u32, i: u32) -> Result<()> {
        let g = self.g;
        let node = &g.nodes[i as usize];
        let mut slots: SmallVec<[u32; 8]> =
            node.inputs.iter().map(|&v| self.slot[self.order.dense_root(v) as usize]).collect();
        let pairs = in_place_pairs(node);
        for r in 0..node.results {
            let root = node.first.0 + r;
            let mut candidate: SmallVec<[u32; 1]> = SmallVec::new();
            if let Some(&(operand, _)) = pairs.iter().find(|p| p.1 == r as usize) {
                let x = self.order.dense_root(node.inputs[operand]);
                if node.inputs.iter().filter(|&&v| self.order.dense_root(v) == x).count() == 1 {
                    candidate.push(x);
                }
            }
            let slot = self.new_slot(s, root, g.types[root as usize].bytes(), &candidate);
            slots.push(slot);
        }
        let args = self.out.slots.len() as u32;
        self.out.slots.extend_from_slice(&slots);
        let sub = self.out.subs.len() as u32;
        if let Some(found) = self.register_loop(node) {
            self.out.steps.push(Step::Registers { node: i, args, index: self.out.register_loops.len() as u32 });
            self.out.register_loops.push(found);
            return Ok(());
        }
        if self.plan_subprograms(node)? {
            self.out.steps.push(Step::Control { node: i, args, sub });
            return Ok(());
        }
        let moves = moves::moves(g, node, &slots);
        if !moves.is_empty() {
            self.out.steps.extend(moves.into_iter().map(|moved| Step::Move { moved, node: i }));
            return Ok(());
        }
        self.out.steps.push(match Planned::of(g, node) {
            Some(found) => {
                self.out.products.push(found);
                let index = self.out.products.len() as u32 - 1;
                Step::Product { index, slots: [slots[0], slots[1], slots[2]], node: i, after: NONE }
            }
            None => {
                let known = Known::of(g, node).map_or(NONE, |known| {
                    self.out.known.push(known);
                    self.out.known.len() as u32 - 1
                });
                Step::Leaf { node: i, args, known }
            }
        });
        Ok(())
    }

    /// Appends the programs of a node's subgraphs; whether it has some.
    fn plan_subprograms(&mut self, node: &Node) -> Result<bool> {
        match &node.kind {
            Kind::While { cond, body, cond_consts, body_consts } => {
                let count = node.inputs.len() - cond_consts - body_consts;
                self.out.subs.push(Arc::new(plan(cond.clone(), Donation::None, self.machine)?));
                let tied = Donation::Tied { first: *body_consts, count, waits: false };
                self.out.subs.push(Arc::new(plan(body.clone(), tied, self.machine)?));
            }
            Kind::Scan { body, consts, carry, .. } => {
                let tied = Donation::Tied { first: *consts, count: *carry, waits: true };
                self.out.subs.push(Arc::new(plan(body.clone(), tied, self.machine)?));
            }
            Kind::Switch(branches) => {
                for b in branches {
                    let program = self.subprogram(b)?;
                    self.out.subs.push(program);
                }
            }
            Kind::Call(body) | Kind::ReduceWith { body, .. } => {
                let program = self.subprogram(body)?;
                self.out.subs.push(program);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The program of a loop whose state fits the machine's registers.
    fn register_loop(&self, node: &Node) -> Option<crate::fused::registers::RegisterLoop> {
        self.machine.then(|| crate::plan::registers::plan(self.g, node))?
    }

    /// Compiles a subgraph without donation; the same graph is compiled once.
    fn subprogram(&mut self, graph: &Arc<Graph>) -> Result<Arc<Program>> {
        let key = Arc::as_ptr(graph);
        if let Some((_, p)) = self.subprograms.iter().find(|p| p.0 == key) {
            return Ok(p.clone());
        }
        let program = Arc::new(plan(graph.clone(), Donation::None, self.machine)?);
        self.subprograms.push((key, program.clone()));
        Ok(program)
    }

    /// Takes the steps from `from` on away, but for those that give memory: those that run, and those that take memory back.
    pub fn split_off(&mut self, from: usize) -> (Vec<Step>, Vec<Step>) {
        let (mut run, mut freed) = (Vec::new(), Vec::new());
        for step in self.out.steps.split_off(from) {
            match step {
                Step::Alloc { .. } => self.out.steps.push(step),
                Step::Free { .. } | Step::Dead { .. } => freed.push(step),
                _ => run.push(step),
            }
        }
        (run, freed)
    }

    /// Copies what is not yet where the caller expects it.
    fn finish_outputs(&mut self) {
        let g = self.g;
        for (k, &v) in g.outputs.iter().enumerate() {
            let place = self.order.plain_place(v);
            let (src, dst) = (self.slot[place.root as usize], (g.params + k) as u32);
            let ty = g.ty(v);
            if place.is_splat() {
                self.out.steps.push(Step::Splat { src, dst, size: ty.dtype.size() as u8, n: ty.size() });
                continue;
            }
            let param = src as usize;
            let unclaimed = !self.out.outputs.contains(&OutputPlace::Param(src));
            let whole = param < g.params && g.types[param].bytes() == ty.bytes();
            if whole && unclaimed && self.donation.may_be_output(param, k) {
                self.out.outputs[k] = OutputPlace::Param(src);
            } else if src != dst {
                self.out.steps.push(Step::Copy { src, dst, bytes: ty.bytes() });
            }
        }
    }

    /// Bytes a group's register takes, and the block length, for elements of at most `size` bytes.
    pub fn registers(n: usize, size: usize) -> (usize, usize) {
        let block = REGISTER / size;
        ((n.min(block) * size).next_multiple_of(64), block)
    }

    pub fn push_group(&mut self, group: Group, registers: usize) {
        self.out.scratch_bytes = self.out.scratch_bytes.max(registers * group.register_bytes);
        self.out.steps.push(Step::Group(group));
    }

    /// How to compute an elementwise node.
    pub fn resolve(&self, node: &Node) -> Result<elementwise::Plan> {
        let dtype = |i: usize| self.g.ty(node.inputs[i]).dtype;
        let x = if matches!(node.kind, Kind::Select) { dtype(1) } else { dtype(0) };
        elementwise::resolve(&node.kind, node.inputs.len(), dtype(0), x, self.g.ty(node.first).dtype)
    }
}

/// The constants' bytes, 16 for each scalar.
fn constant_pool(g: &Graph, constants: &[(u32, u32)]) -> Result<Buffer> {
    let mut bytes: Vec<u8> = Vec::with_capacity(16 * constants.len());
    for &(_, node) in constants {
        match &g.nodes[node as usize].kind {
            Kind::Const(s) => bytes.extend_from_slice(&Scalar::to_bytes(*s)),
            Kind::Dense(d) if !(d.as_ptr() as usize).is_multiple_of(16) => {
                bytes.extend_from_slice(d);
                bytes.resize(bytes.len().next_multiple_of(16), 0);
            }
            _ => {}
        }
    }
    Buffer::from_bytes(&bytes)
}
