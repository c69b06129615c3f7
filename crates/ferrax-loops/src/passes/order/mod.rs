//! Fusion order: where every value's elements are, and which nodes run together.
//!
//! Elementwise nodes join one of a few open groups. A group of rows has `n` elements in rows
//! of `inner`: it takes elementwise nodes over all elements, reductions over the rows, elementwise nodes over the
//! results of those, and reads values that are broadcast along rows or columns in place. A block group
//! has elementwise nodes of one size. No open group depends on another: a node that needs two closes all but the
//! one it joins, and groups run in the order in which they close. Read next: `places.rs`.

mod places;

use super::pieces::{Piece, pieces};
use super::sums::{self, Pair};
use super::view::View;
use super::{NONE, Target, in_place_pairs};
use crate::{Graph, Kind, Node, ValueId};
use ferrax_base::{Result, error};
use smallvec::SmallVec;
use std::collections::HashMap;

/// How the elements of a value lie in its root's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// One after the other.
    Full,
    /// One stands for all.
    Splat,
    /// Element i is at i / inner: broadcast along rows of `inner` elements.
    Row(u32),
    /// Element i is at i % len: the row of `len` elements repeats.
    Col(u32),
    /// As this view says (`Order::views`).
    View(u32),
}

/// Where a value's elements are: in its root's memory, spread in some way.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The value whose memory it is, or a root beyond the values (`Order::extra_roots`).
    pub root: u32,
    /// How.
    pub spread: Spread,
}

impl Place {
    /// Whether one element stands for all.
    pub fn is_splat(self) -> bool {
        self.spread == Spread::Splat
    }
}

/// What a node of a region does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Elementwise over one value a row.
    Row,
    /// Elementwise over all elements.
    Full,
    /// Reduces rows; its operand is full, its result one value a row.
    Reduce,
    /// Reduces columns; its operand is full, its result a row that is there after the region.
    Columns,
}

/// A node of a group. `level` counts the reductions that must be done before.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// The node.
    pub node: u32,
    /// Reductions before it.
    pub level: u16,
    /// What it does.
    pub role: Role,
}

/// The elements of a region.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many there are.
    pub n: usize,
    /// How many a row has.
    pub inner: usize,
    /// Bytes of the lanes that they are computed in.
    pub lane: usize,
}

/// A value that is a view, and the node that says so.
pub struct Viewed {
    /// The elements, in the root.
    pub view: View,
    value: u32,
    /// The node that makes the value.
    pub node: u32,
}

/// A value that is a piece of a result and nothing else.
pub struct Inside {
    /// The result's root.
    pub result: u32,
    /// Which operand of the result the value is.
    pub operand: u32,
    /// Where it lies.
    pub view: View,
}

/// A unit of execution, before it becomes steps. Groups are ranges of `Order::members`.
#[derive(Clone, Copy)]
#[allow(missing_docs)]
pub enum Item {
    /// `members[start..end]` of `n` elements, kernel by kernel.
    Group { start: u32, end: u32, n: usize },
    /// `members[start..end]`, by kernels of rows.
    Region { start: u32, end: u32, shape: Shape },
    /// One node.
    Node(u32),
    /// A node whose result is put together of pieces.
    Pieces(u32),
    /// A product and the sum that takes it in.
    Accumulate(Pair),
    /// A value that is spread in its root's memory made dense in a root of its own.
    Dense { value: u32, root: u32 },
}

/// A group that nodes may still join.
struct Open {
    id: u32,
    /// Bytes of the kernel's lanes; 0 for a block group.
    lane: usize,
    n: usize,
    /// Elements of a row; 0 while nothing decides it.
    inner: usize,
    /// Whether members have one value a row: rows stay as they are.
    fixed: bool,
    members: Vec<Member>,
}

/// Groups open at once.
const OPEN: usize = 6;
/// Kernels of rows take groups of at least this many elements.
const SMALL: usize = 32;
/// Rows up to this many elements are kept between the passes over them.
const KEPT_ROW: usize = 32 << 10;
/// Values of more elements than this are read as views: copies of small ones are cheaper than what a region costs.
const COPIED: usize = 128;
/// Elements from one to the next of a view's row, at most.
const STEPS: usize = 8;

type Widths = SmallVec<[usize; 2]>;

/// Which nodes of a graph run together, and where its values are.
pub struct Order<'g> {
    /// The graph.
    pub g: &'g Graph,
    /// Where each value's elements are.
    pub places: Vec<Place>,
    /// What runs, in order.
    pub items: Vec<Item>,
    /// The nodes of groups.
    pub members: Vec<Member>,
    /// For each value, the root that holds it densely, where one was made.
    dense: Vec<u32>,
    /// The value whose dtype and size each root beyond the values has.
    pub extra_roots: Vec<u32>,
    /// Roots of constants: (root, node).
    pub constants: Vec<(u32, u32)>,
    open: Vec<Open>,
    spare: Vec<Vec<Member>>,
    next_id: u32,
    /// For each value, the group that makes it (ids of closed groups stay), and its level and role there.
    made_in: Vec<u32>,
    level: Vec<u16>,
    role: Vec<Role>,
    /// Views that values are.
    pub views: Vec<Viewed>,
    /// For each value, how often it is read and the last node that does: made when it is first asked for.
    reads: Vec<(u32, u32)>,
    /// Roots that regions may write into results of pieces.
    pub inside: HashMap<u32, Inside>,
    /// Whose kernels groups of rows are for; without one there are block groups alone.
    target: Option<&'g dyn Target>,
}

impl<'g> Order<'g> {
    /// No node is in order yet: see `run`.
    pub fn new(g: &'g Graph, target: Option<&'g dyn Target>) -> Self {
        let n = g.types.len();
        Order {
            g,
            places: (0..n as u32).map(|root| Place { root, spread: Spread::Full }).collect(),
            items: Vec::with_capacity(g.nodes.len()),
            members: Vec::with_capacity(g.nodes.len()),
            dense: vec![NONE; n],
            extra_roots: Vec::new(),
            constants: Vec::new(),
            open: Vec::new(),
            spare: Vec::new(),
            next_id: 1,
            made_in: vec![0; n],
            level: vec![0; n],
            role: vec![Role::Full; n],
            views: Vec::new(),
            reads: Vec::new(),
            inside: HashMap::new(),
            target,
        }
    }

    /// Where a value's elements are.
    pub fn place(&self, v: ValueId) -> Place {
        self.places[v.0 as usize]
    }

    /// Whether one element stands for all of a value.
    pub fn is_one(&self, v: ValueId) -> bool {
        self.place(v).is_splat() || self.g.ty(v).size() == 1
    }

    /// The root that a consumer of dense memory reads.
    pub fn dense_root(&self, v: ValueId) -> u32 {
        let p = self.place(v);
        if p.spread != Spread::Full && self.g.ty(v).size() > 1 { self.dense[v.0 as usize] } else { p.root }
    }

    /// Where a consumer that knows only whole arrays and scalars finds a value.
    pub fn plain_place(&self, v: ValueId) -> Place {
        let p = self.place(v);
        match p.spread {
            Spread::Full | Spread::Splat => p,
            _ => Place { root: self.dense[v.0 as usize], spread: Spread::Full },
        }
    }

    /// Puts the live nodes in order.
    pub fn run(&mut self, live: &[bool]) -> Result<()> {
        let g = self.g;
        let pairs = self.target.map_or_else(Vec::new, |target| sums::find(g, live, target));
        for (i, node) in g.nodes.iter().enumerate() {
            if !live[i] || pairs.iter().any(|p| p.dot as usize == i) {
                continue;
            }
            if let Some(pair) = pairs.iter().find(|p| p.add as usize == i) {
                self.accumulate(*pair);
                continue;
            }
            if self.rename(i as u32, node) {
                continue;
            }
            if node.kind.is_elementwise() {
                self.elementwise(i as u32, node)?;
            } else if !self.reduction(i as u32, node)? {
                if self.target.is_some() && self.put_together(i as u32, node) {
                    continue;
                }
                self.keep_views(i as u32, node);
                self.other(node);
                self.items.push(Item::Node(i as u32));
            }
        }
        while !self.open.is_empty() {
            self.close(0);
        }
        g.outputs.iter().for_each(|&v| self.densify(v));
        Ok(())
    }

    /// The roots that an item reads and writes.
    pub fn accesses(&self, item: Item, mut see: impl FnMut(u32)) {
        let g = self.g;
        let node = |i: u32| &g.nodes[i as usize];
        match item {
            Item::Group { start, end, .. } | Item::Region { start, end, .. } => {
                let whole = matches!(item, Item::Group { .. });
                for m in &self.members[start as usize..end as usize] {
                    see(node(m.node).first.0);
                    for &v in &node(m.node).inputs {
                        see(if whole { self.plain_place(v) } else { self.place(v) }.root);
                    }
                }
            }
            Item::Node(i) => {
                node(i).outputs().for_each(|v| see(v.0));
                node(i).inputs.iter().for_each(|&v| see(self.dense_root(v)));
            }
            Item::Pieces(i) => {
                see(node(i).first.0);
                node(i).inputs.iter().for_each(|&v| see(self.elements(v).0));
            }
            Item::Accumulate(pair) => {
                see(node(pair.add).first.0);
                pair.inputs(g).into_iter().for_each(|v| see(self.dense_root(v)));
            }
            Item::Dense { value, root } => {
                see(self.places[value as usize].root);
                see(root);
            }
        }
    }

    /// Positions in `open` of the groups that a node reads from.
    fn sources(&self, node: &Node) -> SmallVec<[usize; 4]> {
        let mut found = SmallVec::new();
        for &v in &node.inputs {
            let root = self.place(v).root as usize;
            let id = self.made_in.get(root).copied().unwrap_or(0);
            if id != 0
                && let Some(at) = self.open.iter().position(|o| o.id == id)
                && !found.contains(&at)
            {
                found.push(at);
            }
        }
        found
    }

    fn close(&mut self, at: usize) {
        let mut open = self.open.remove(at);
        let start = self.members.len() as u32;
        if open.members.iter().any(|m| m.level > 0) {
            open.members.sort_by_key(|m| (m.level, m.role != Role::Row));
        }
        self.members.append(&mut open.members);
        self.spare.push(open.members);
        let (end, n) = (self.members.len() as u32, open.n);
        self.items.push(if open.lane != 0 {
            let inner = if open.inner == 0 { n } else { open.inner };
            Item::Region { start, end, shape: Shape { n, inner, lane: open.lane } }
        } else {
            Item::Group { start, end, n }
        });
    }

    /// Closes the groups that a node reads from, but for one.
    fn close_sources(&mut self, node: &Node, but: Option<u32>) {
        loop {
            let sources = self.sources(node);
            let Some(&at) = sources.iter().find(|&&at| Some(self.open[at].id) != but) else { return };
            self.close(at);
        }
    }

    /// Closes the group that makes a root of elements of `size` bytes in lanes of another size. What such lanes hold depends
    /// on the dtype, so its bits are those in memory.
    fn leave_lanes(&mut self, root: u32, size: usize) {
        let id = self.made_in.get(root as usize).copied().unwrap_or(0);
        if let Some(at) = self.open.iter().position(|o| o.id == id && o.lane != 0 && o.lane != size) {
            self.close(at);
        }
    }

    /// The position in `open` of a group that is not closed.
    fn at(&self, id: u32) -> Result<usize> {
        self.open.iter().position(|o| o.id == id).ok_or_else(|| error!(Internal, "a node joins a group that is closed"))
    }

    fn open_group(&mut self, lane: usize, n: usize) -> usize {
        if self.open.len() == OPEN {
            self.close(0);
        }
        let members = self.spare.pop().unwrap_or_default();
        self.open.push(Open { id: self.next_id, lane, n, inner: 0, fixed: false, members });
        self.next_id += 1;
        self.open.len() - 1
    }

    fn join(&mut self, at: usize, i: u32, node: &Node, role: Role, level: u16) {
        let open = &mut self.open[at];
        let out = node.first.0 as usize;
        open.fixed |= role != Role::Full;
        self.made_in[out] = open.id;
        let after = level + u16::from(role == Role::Reduce);
        (self.level[out], self.role[out]) = (after, if role == Role::Reduce { Role::Row } else { role });
        open.members.push(Member { node: i, level, role });
    }

    fn elementwise(&mut self, i: u32, node: &Node) -> Result<()> {
        let one = node.inputs.iter().all(|&v| self.is_one(v));
        let size = self.g.ty(node.first).size();
        let n = if one { size.min(1) } else { size };
        if one && size > 1 {
            self.places[node.first.0 as usize].spread = Spread::Splat;
        }
        let widths: Widths = self.target.filter(|_| !one).map_or_else(Widths::new, |target| {
            target.widths().iter().copied().filter(|&lane| target.takes(self.g, node, lane)).collect()
        });
        if !widths.is_empty() && self.elementwise_in_region(i, node, n, &widths)? {
            return Ok(());
        }
        node.inputs.iter().for_each(|&v| self.densify(v));
        self.join_block(i, node, n)
    }

    fn join_block(&mut self, i: u32, node: &Node, n: usize) -> Result<()> {
        let fits = |o: &Open| o.lane == 0 && o.n == n;
        let sources = self.sources(node);
        let chosen = sources.iter().rev().copied().find(|&at| fits(&self.open[at]));
        let chosen = chosen.or_else(|| self.open.iter().position(fits)).map(|at| self.open[at].id);
        self.close_sources(node, chosen);
        let at = match chosen {
            Some(id) => self.at(id)?,
            None => self.open_group(0, n),
        };
        self.join(at, i, node, Role::Full, 0);
        Ok(())
    }

    /// The level of a node in an open group.
    fn level_in(&self, node: &Node, id: u32) -> u16 {
        let of = |&v: &ValueId| {
            let root = self.place(v).root as usize;
            if self.made_in.get(root) == Some(&id) { self.level[root] } else { 0 }
        };
        node.inputs.iter().map(of).max().unwrap_or(0)
    }

    /// The rows that the node's operands need in a group of `inner` so far; `None` when they do not fit.
    fn inner_with(&self, node: &Node, open: &Open) -> Option<usize> {
        let mut inner = open.inner;
        for &v in &node.inputs {
            let p = self.place(v);
            let of_group = self.made_in.get(p.root as usize) == Some(&open.id);
            let row_role = of_group && self.role[p.root as usize] == Role::Row;
            if of_group && self.role[p.root as usize] == Role::Columns {
                return None;
            }
            match p.spread {
                Spread::Row(k) | Spread::Col(k) => {
                    inner = rows_of(inner, k as usize, open.fixed)?;
                    // What the group makes is there a block of rows at a time, so no row of it can repeat.
                    if of_group && (!row_role || inner != k as usize || matches!(p.spread, Spread::Col(_))) {
                        return None;
                    }
                }
                Spread::View(_) if of_group => return None,
                Spread::View(k) => {
                    let view = &self.views[k as usize].view;
                    let (_, step) = view.innermost();
                    if step != 0 && step != 1 && self.g.ty(v).dtype.size() != open.lane {
                        return None;
                    }
                    if !view.is_line() {
                        inner = rows_of(inner, view.innermost().0, open.fixed)?;
                    }
                }
                Spread::Full if row_role && self.g.ty(v).size() > 1 => return None,
                Spread::Full if of_group && self.g.ty(v).size() == 1 && open.inner != open.n => return None,
                Spread::Splat if of_group && !(row_role && open.inner == open.n) => return None,
                _ => {}
            }
        }
        Some(inner)
    }

    fn elementwise_in_region(&mut self, i: u32, node: &Node, n: usize, widths: &Widths) -> Result<bool> {
        let sources = self.sources(node);
        // One value a row of a group that the node reads from.
        let rows = sources.iter().rev().copied().find(|&at| {
            let o = &self.open[at];
            let reads_rows = |v: &ValueId| {
                let p = self.place(*v);
                let own = self.made_in.get(p.root as usize) == Some(&o.id);
                !own || (self.role[p.root as usize] == Role::Row && p.spread == Spread::Full)
            };
            let plain = |v: &ValueId| matches!(self.place(*v).spread, Spread::Full | Spread::Splat);
            widths.contains(&o.lane)
                && o.inner != 0
                && o.n / o.inner == n
                && n > 1
                && o.inner > 1
                && node.inputs.iter().all(|v| reads_rows(v) && plain(v))
        });
        if let Some(at) = rows {
            let id = self.open[at].id;
            self.close_sources(node, Some(id));
            let at = self.at(id)?;
            let level = self.level_in(node, id);
            self.join(at, i, node, Role::Row, level);
            return Ok(true);
        }
        if n < SMALL {
            return Ok(false);
        }
        let fits = |at: usize| {
            let o = &self.open[at];
            let near = o.n <= KEPT_ROW || o.inner <= KEPT_ROW || self.level_in(node, o.id) == 0;
            widths.contains(&o.lane) && o.n == n && near && self.inner_with(node, o).is_some()
        };
        let chosen = sources.iter().rev().copied().find(|&at| fits(at));
        let chosen = chosen.or_else(|| (0..self.open.len()).find(|&at| fits(at))).map(|at| self.open[at].id);
        self.close_sources(node, chosen);
        let at = match chosen {
            Some(id) => self.at(id)?,
            None => self.open_group(widths[0], n),
        };
        let Some(inner) = self.inner_with(node, &self.open[at]) else {
            // Its operands need rows of two lengths.
            self.open.pop();
            return Ok(false);
        };
        self.open[at].inner = inner;
        let level = self.level_in(node, self.open[at].id);
        self.join(at, i, node, Role::Full, level);
        Ok(true)
    }

    /// A reduction over rows or columns joins a region; whether this was one.
    fn reduction(&mut self, i: u32, node: &Node) -> Result<bool> {
        let Kind::Reduce { op, axes } = &node.kind else { return Ok(false) };
        let x = node.inputs[0];
        let (ty, kept) = (self.g.ty(x), self.g.ty(node.first).size());
        let n = ty.size();
        let Some(target) = self.target else { return Ok(false) };
        let Some(lane) = target.reduces(*op, ty.dtype) else { return Ok(false) };
        if n < SMALL || kept == 0 || kept == n || self.place(x).spread != Spread::Full {
            return Ok(false);
        }
        let Some(role) = reduced_side(&ty.shape, axes) else { return Ok(false) };
        let inner = if role == Role::Reduce { n / kept } else { kept };
        if role == Role::Columns && !(target.takes_columns(inner, n) && ty.dtype.size() == lane) {
            return Ok(false);
        }
        let sources = self.sources(node);
        let fits = |at: usize| {
            let o = &self.open[at];
            let near = inner <= KEPT_ROW || self.level_in(node, o.id) == 0;
            let rows = o.inner == 0 || o.inner == inner || (!o.fixed && o.inner.is_multiple_of(inner));
            o.lane == lane && o.n == n && near && rows
        };
        let chosen = sources.iter().copied().find(|&at| fits(at));
        let chosen = chosen.or_else(|| (0..self.open.len()).find(|&at| fits(at))).map(|at| self.open[at].id);
        self.close_sources(node, chosen);
        let at = match chosen {
            Some(id) => self.at(id)?,
            None => self.open_group(lane, n),
        };
        self.open[at].inner = inner;
        let level = self.level_in(node, self.open[at].id);
        self.join(at, i, node, role, level);
        Ok(true)
    }

    /// Gives a value that is broadcast along rows or columns, or a view, a root where it is dense.
    fn densify(&mut self, v: ValueId) {
        let spread = !matches!(self.place(v).spread, Spread::Full | Spread::Splat);
        if spread && self.dense[v.0 as usize] == NONE {
            self.make_dense(v);
        }
    }

    fn make_dense(&mut self, v: ValueId) {
        let root = self.place(v).root as usize;
        let id = self.made_in.get(root).copied().unwrap_or(0);
        if id != 0
            && let Some(at) = self.open.iter().position(|o| o.id == id)
        {
            self.close(at);
        }
        let root = (self.g.types.len() + self.extra_roots.len()) as u32;
        self.extra_roots.push(v.0);
        self.dense[v.0 as usize] = root;
        self.items.push(Item::Dense { value: v.0, root });
    }

    /// Makes what a node reads dense, and closes the groups that make it.
    pub fn other(&mut self, node: &Node) {
        self.close_sources(node, None);
        for &v in &node.inputs {
            if self.place(v).spread != Spread::Full && self.g.ty(v).size() > 1 && self.dense[v.0 as usize] == NONE {
                self.make_dense(v);
            }
        }
    }

    /// Puts a result together of pieces, of which open regions may write some in place; whether the node has some.
    fn put_together(&mut self, i: u32, node: &Node) -> bool {
        let Some(pieces) = pieces(self.g, node) else { return false };
        self.count_reads();
        for piece in &pieces {
            self.write_inside(node, piece);
        }
        self.close_sources(node, None);
        for &v in &node.inputs {
            if !self.in_strides(v) {
                self.densify(v);
            }
        }
        self.items.push(Item::Pieces(i));
        true
    }

    /// Lets an open region write the operand of a piece where it lies in the result, if nobody else reads it.
    fn write_inside(&mut self, node: &Node, piece: &Piece) {
        let v = node.inputs[piece.operand];
        let Place { root, spread } = self.place(v);
        let (of, n) = (self.made_in.get(root as usize).copied().unwrap_or(0), self.g.ty(v).size());
        let Some(at) = self.open.iter().position(|o| o.id == of && o.lane != 0 && o.n == n) else { return };
        if !self.read_once(v, root)
            || !piece.may_be_made_here()
            || spread != Spread::Full
            || self.role[root as usize] != Role::Full
        {
            return;
        }
        let (open, view) = (&self.open[at], piece.view());
        let inner = if view.is_line() { Some(open.inner) } else { rows_of(open.inner, view.innermost().0, open.fixed) };
        if let Some(inner) = inner.filter(|_| view.innermost().1 == 1 && view.axes.len() <= 4) {
            self.open[at].inner = inner;
            let inside = Inside { result: node.first.0, operand: piece.operand as u32, view };
            self.inside.insert(root, inside);
        }
    }

    /// Whether a value is read once, and so are those between it and its root, of which each is but another name.
    fn read_once(&self, v: ValueId, root: u32) -> bool {
        let mut v = v;
        while self.reads[v.0 as usize].0 == 1 {
            if v.0 == root {
                return true;
            }
            let Some([input]) = self.g.maker(v).map(|n| &n.inputs[..]) else { return false };
            v = *input;
        }
        false
    }

    fn count_reads(&mut self) {
        if !self.reads.is_empty() {
            return;
        }
        self.reads = vec![(0, 0); self.g.types.len()];
        for (k, node) in self.g.nodes.iter().enumerate() {
            for v in &node.inputs {
                let read = &mut self.reads[v.0 as usize];
                *read = (read.0 + 1, k as u32);
            }
        }
        for v in &self.g.outputs {
            let read = &mut self.reads[v.0 as usize];
            *read = (read.0 + 1, NONE);
        }
    }

    /// Copies the views that are read later of what a node may overwrite, so that it can.
    fn keep_views(&mut self, i: u32, node: &Node) {
        let pairs = in_place_pairs(node);
        if self.views.is_empty() || pairs.is_empty() {
            return;
        }
        self.count_reads();
        for (operand, _) in pairs {
            let root = self.place(node.inputs[operand]).root;
            for k in 0..self.views.len() {
                let v = self.views[k].value;
                if self.places[v as usize].root == root && self.reads[v as usize].1 > i {
                    self.densify(ValueId(v));
                }
            }
        }
    }

    /// Makes a sum that takes in a product an item.
    fn accumulate(&mut self, pair: Pair) {
        let g = self.g;
        self.other(&g.nodes[pair.dot as usize]);
        self.other(&g.nodes[pair.add as usize]);
        self.items.push(Item::Accumulate(pair));
    }
}

/// Whether a reduction is of rows that regions keep between passes.
pub fn reduced_rows(shape: &[usize], axes: &[usize]) -> bool {
    let row = ferrax_base::shape::product(axes.iter().map(|&k| shape[k]));
    row <= KEPT_ROW && reduced_side(shape, axes) == Some(Role::Reduce)
}

/// Whether reduced axes are rows of what is kept, or the other way round; `None` where they are mixed.
fn reduced_side(shape: &[usize], axes: &[usize]) -> Option<Role> {
    let of = |reduced: bool| (0..shape.len()).filter(move |k| shape[*k] != 1 && axes.contains(k) == reduced);
    match (of(false).max(), of(true).min()) {
        (kept, reduced) if kept <= reduced => Some(Role::Reduce),
        _ if of(true).max() < of(false).min() => Some(Role::Columns),
        _ => None,
    }
}

/// The rows that suit those of `inner` elements so far (0 while nothing decides) and an operand with rows of `k`.
fn rows_of(inner: usize, k: usize, fixed: bool) -> Option<usize> {
    if inner == 0 || (inner.is_multiple_of(k) && inner != k && !fixed) {
        return Some(k);
    }
    k.is_multiple_of(inner).then_some(inner)
}
