//! How a group of nodes becomes a region: phases, programs, places.

mod after;
mod apart;
mod chains;
mod memory;
mod target;
pub mod terms;

use crate::fused::region::columns::Column;
use crate::fused::region::rows::{RowReducer, row_reducer};
use crate::fused::region::{Note, Phase, Reduce, Region};
use crate::library::columns::ROWS;
use crate::library::reduce::LANES;
use crate::library::views::Rows;
use crate::machine::assemble::{Assembler, Place, Src, Val};
use crate::machine::handler::Handler;
use crate::machine::{TILE, table};
use crate::math::integer::divisor;
use crate::plan::{NONE, Planner};
use crate::program::Step;
use crate::simd::{self, Isa};
use ferrax_base::{DType, Result, bail};
use ferrax_loops::kind::{BinaryOp, Kind};
use ferrax_loops::passes::order::{Member, Role, Shape, Spread};
use ferrax_loops::{Division, Node, ReduceOp, ValueId};
use memory::{streamed_from, traffic};
use smallvec::SmallVec;
pub(crate) use target::target;
use terms::{Absorbing, Taken};

/// Rows shorter than this, which is a tile of narrow registers, run together, with what is theirs spread to full size.
const SHORT: usize = 64;
/// The same where rows are reduced: each one's accumulators take longer than that.
const SHORT_REDUCED: usize = 129;
/// Elements of a block of rows, about.
const BLOCK: usize = 8 << 10;

/// Tables of the planner that regions use, indexed by root and valid where the stamp is the phase's or region's.
pub(crate) struct Scratch {
    asm: Assembler,
    /// Phase in which a root has a number, the number, and the spread it was asked for in.
    stamp: Vec<u32>,
    val: Vec<Val>,
    spread: Vec<Spread>,
    phase: u32,
    /// Further numbers of roots that a phase reads in several ways.
    more: Vec<(u32, Spread, Val)>,
    /// Region that makes a root, the first and last of its phases that touch it, and its memory once it has some.
    made: Vec<u32>,
    born: Vec<u32>,
    last: Vec<u32>,
    home: Vec<Option<Place>>,
    /// For the members of a phase that are put in order, which one makes a root.
    member: Vec<u32>,
    /// Bytes a row of each scratch array takes.
    arrays: Vec<usize>,
}

impl Scratch {
    pub fn new(roots: usize) -> Self {
        Scratch {
            asm: Assembler::default(),
            stamp: vec![0; roots],
            val: vec![0; roots],
            spread: vec![Spread::Full; roots],
            phase: 0,
            more: Vec::new(),
            made: vec![NONE; roots],
            born: vec![0; roots],
            last: vec![0; roots],
            home: vec![None; roots],
            member: vec![NONE; roots],
            arrays: Vec::new(),
        }
    }

    /// A new array of scratch memory with this many bytes a row.
    fn array(&mut self, row: usize) -> Src {
        self.arrays.push(row);
        Src::Scratch(self.arrays.len() as u32 - 1)
    }
}

/// What is known of the region whose phases are made.
pub(super) struct Making {
    pub item: u32,
    n: usize,
    pub inner: usize,
    /// Bytes of a lane.
    pub lane: usize,
    isa: Isa,
    pub short: bool,
    /// With `short`: rows are whole registers, so that a tile can hold some that lie apart.
    registers: bool,
    /// Of the phase: how many rows of those places are at regular distances, 0 for all.
    group: usize,
    /// There is one phase, and it reduces nothing: results may take the place of operands.
    single: bool,
    /// With `single`: whole operands that nobody needs any more, whose memory results may take when all is read.
    reusable: SmallVec<[u32; 4]>,
    /// Ranges of members, by phase.
    phases: SmallVec<[(u32, u32); 4]>,
    states: u32,
    tiles: u32,
    staged: u32,
    cost: u32,
    streams: bool,
    /// Of the phase: reductions that make their terms as they read (`terms.rs`).
    pub terms: SmallVec<[Absorbing; 2]>,
}

/// A reduction: its operand, the root of its result, and how it is done.
struct Reduced {
    x: ValueId,
    root: u32,
    op: ReduceOp,
    dtype: DType,
    reducer: RowReducer,
}

impl Planner<'_> {
    /// Appends the region of `members[start..end]`.
    pub fn emit_region(&mut self, item: u32, (start, end): (u32, u32), shape: Shape) -> Result<()> {
        let Shape { n, inner, lane } = shape;
        let (first_step, product) = (self.out.steps.len(), self.product_before(n));
        // Rows of a product that the region reads: it can run as they are made. One that reduces has rows of its own.
        let full = |m: &Member| m.role == Role::Full;
        let any = inner == n && self.order.members[start as usize..end as usize].iter().all(full);
        let inner = product.filter(|columns| any && *columns > 1).unwrap_or(inner);
        let mut m = self.making(item, (start, end), Shape { n, inner, lane })?;
        m.phases.iter().for_each(|&(start, end)| self.chain(start, end));
        self.find_crossings(&m);
        self.region.arrays.clear();
        let (first_phase, first_place) = (self.out.regions.phases.len() as u32, self.out.regions.places.len());
        let (first_reduce, first_expand) = (self.out.regions.reduces.len(), self.out.regions.expands.len());
        let (first_column, first_put) = (self.out.regions.columns.len(), self.out.regions.puts.len());
        let first_note = self.out.regions.notes.len() as u32;
        for k in 0..m.phases.len() {
            self.emit_phase(&mut m, k)?;
        }
        let after = product == Some(inner) && first_column == self.out.regions.columns.len();
        let flat = m.single && self.region.arrays.is_empty() && !self.has_rows(first_phase) && !after;
        let inner = if flat { n } else { inner };
        // What is spread is written and read again, and should not leave the first-level cache.
        let elements = if m.short && !self.region.arrays.is_empty() { BLOCK / 2 } else { BLOCK };
        let most = if first_column < self.out.regions.columns.len() { ROWS } else { n / inner };
        let block = (elements / inner).clamp(1, most.min(n / inner));
        let whole = after || first_column < self.out.regions.columns.len();
        let block = if whole { block } else { self.repeating_block(first_expand, block) };
        let states = m.tiles as usize * TILE;
        let staged = states + m.states as usize * LANES * lane;
        let arrays = staged + m.staged as usize * TILE;
        let firsts = [first_place, first_reduce, first_expand, first_column, first_put];
        let end = arrays + self.place_arrays(block, firsts);
        let end = self.place_columns(first_column, end, inner * lane);
        let region = Region {
            n,
            inner,
            lane,
            isa: m.isa,
            phases: (first_phase, self.out.regions.phases.len() as u32),
            columns: (first_column as u32, self.out.regions.columns.len() as u32),
            block,
            scratch: end,
            states,
            staged,
            arrays,
            cost: m.cost,
            streams: m.streams,
            notes: (first_note, self.out.regions.notes.len() as u32),
        };
        self.out.scratch_bytes = self.out.scratch_bytes.max(region.scratch);
        self.out.steps.push(Step::Region(self.out.regions.list.len() as u32));
        self.out.regions.list.push(region);
        if after {
            self.run_after_product(first_step);
        }
        Ok(())
    }

    /// What is known of a region before its phases are made.
    fn making(&self, item: u32, (start, end): (u32, u32), Shape { n, inner, lane }: Shape) -> Result<Making> {
        let phases = self.split_phases(start, end);
        let any = |f: fn(&Role) -> bool| {
            self.order.members[start as usize..end as usize].iter().any(|member| f(&member.role))
        };
        let single = phases.len() == 1 && !any(|role| matches!(role, Role::Reduce | Role::Columns));
        let Some(isa) = simd::isa() else { bail!(Internal, "a region without a machine") };
        let alone = self.columns_alone(start, end);
        let reduced = any(|role| *role == Role::Reduce);
        let shortest = if reduced { SHORT_REDUCED } else { SHORT };
        let short = inner < n && (inner < shortest || (inner < 4 * SHORT_REDUCED && alone));
        let registers = |isa: Isa| inner.is_multiple_of(isa.lanes(lane) / 8);
        let wider = !reduced && !registers(isa) && registers(Isa::NARROW);
        let narrow = inner < n.min(isa.lanes(lane)) && (!short || wider) && !alone;
        let isa = if narrow { Isa::NARROW } else { isa };
        Ok(Making {
            item,
            n,
            inner,
            lane,
            isa,
            short,
            registers: short && registers(isa),
            group: 0,
            single,
            reusable: SmallVec::new(),
            phases,
            states: 0,
            tiles: 0,
            staged: 0,
            cost: 0,
            streams: false,
            terms: SmallVec::new(),
        })
    }

    /// Whether nothing but the operands of columns has to be spread, which is done once.
    fn columns_alone(&self, start: u32, end: u32) -> bool {
        self.order.members[start as usize..end as usize].iter().all(|member| {
            let inputs = &self.g.nodes[member.node as usize].inputs;
            member.role != Role::Reduce
                && !inputs.iter().any(|&v| matches!(self.order.place(v).spread, Spread::Row(_) | Spread::View(_)))
        })
    }

    /// Whether rows matter to one of the phases from the first on.
    fn has_rows(&self, first: u32) -> bool {
        self.out.regions.phases[first as usize..].iter().any(|p| p.by_row || p.apart || p.reduces.0 < p.reduces.1)
    }

    /// Offsets of the scratch arrays, for blocks of `block` rows; gives their bytes.
    fn place_arrays(&mut self, block: usize, [place, reduce, expand, column, put]: [usize; 5]) -> usize {
        let mut offsets: SmallVec<[usize; 8]> = SmallVec::new();
        let mut total = 0;
        for row in &self.region.arrays {
            offsets.push(total);
            // The last tile of a run may reach past the end.
            total += (row * block + TILE).next_multiple_of(64);
        }
        let fix = |p: &mut Place| {
            if let Src::Scratch(k) = p.src {
                p.src = Src::Scratch(offsets[k as usize] as u32);
            }
        };
        let r = &mut self.out.regions;
        r.places[place..].iter_mut().for_each(fix);
        for reduce in &mut r.reduces[reduce..] {
            fix(&mut reduce.from);
            reduce.with.iter_mut().for_each(fix);
            fix(&mut reduce.to);
        }
        for expand in r.expands[expand..].iter_mut().chain(&mut r.puts[put..]) {
            fix(&mut expand.from);
            fix(&mut expand.to);
        }
        r.columns[column..].iter_mut().for_each(|column| fix(&mut column.from));
        total
    }

    /// Offsets of the running results of columns, from `end` on; gives where they end.
    fn place_columns(&mut self, first: usize, mut end: usize, row: usize) -> usize {
        for column in &mut self.out.regions.columns[first..] {
            column.state = end;
            end += row.next_multiple_of(64);
        }
        end
    }

    fn split_phases(&self, start: u32, end: u32) -> SmallVec<[(u32, u32); 4]> {
        let mut phases: SmallVec<[(u32, u32); 4]> = SmallVec::new();
        let key = |at: u32| {
            let m = self.order.members[at as usize];
            (m.level, m.role == Role::Row)
        };
        let mut from = start;
        for at in start + 1..=end {
            if at == end || key(at) != key(from) {
                phases.push((from, at));
                from = at;
            }
        }
        phases
    }

    /// Notes where each value of the region is made and last read.
    fn find_crossings(&mut self, m: &Making) {
        let g = self.g;
        for (k, &(start, end)) in m.phases.iter().enumerate() {
            for at in start..end {
                let member = self.order.members[at as usize];
                let node = &g.nodes[member.node as usize];
                for &v in &node.inputs {
                    self.region.last[self.order.place(v).root as usize] = k as u32;
                }
                let out = node.first.0 as usize;
                self.region.made[out] = m.item;
                // What a reduction gives is there when its phase is done.
                self.region.born[out] = k as u32 + u32::from(member.role == Role::Reduce);
                self.region.last[out] = k as u32;
                self.region.home[out] = None;
            }
        }
    }

    fn emit_phase(&mut self, m: &mut Making, k: usize) -> Result<()> {
        let (start, end) = m.phases[k];
        let over_rows = self.order.members[start as usize].role == Role::Row;
        self.region.phase += 1;
        self.region.more.clear();
        self.region.asm.clear(m.isa, m.lane, m.inner);
        m.group = 0;
        let first_expand = self.out.regions.expands.len() as u32;
        let first_reduce = self.out.regions.reduces.len() as u32;
        let first_column = self.out.regions.columns.len() as u32;
        let first_put = self.out.regions.puts.len() as u32;
        let mut by_row = false;
        m.terms = self.find_terms(m, k as u32, (start, end));
        for at in start..end {
            by_row |= !m.absorbed(at) && self.number(m, k as u32, at, over_rows)?;
        }
        if m.single {
            m.reusable = self.reusable_operands(m, start, end);
            if !m.reusable.is_empty() {
                self.region.asm.in_place();
            }
        }
        let mut late: SmallVec<[(Val, Place); 2]> = SmallVec::new();
        for at in start..end {
            by_row |= !m.absorbed(at) && self.emit_member(m, k as u32, at, over_rows, &mut late)?;
            let node = self.order.members[at as usize].node;
            self.out.regions.notes.push(Note { node, phase: k as u32 });
        }
        for &(v, place) in &late {
            self.region.asm.store_last(v, place);
        }
        let asm = &mut self.region.asm;
        let folds = asm.places.iter().any(|p| matches!(p.src, Src::State(_)));
        let reach = folds && asm.places.iter().all(may_be_passed);
        let reduces = (first_reduce, self.out.regions.reduces.len() as u32);
        by_row = (by_row || reduces.0 < reduces.1) && !m.short && !over_rows;
        let empty = asm.code.is_empty();
        let apart = asm.places.iter().any(|p| p.apart != 0);
        let group = if by_row { self.out.regions.group(&asm.places) } else { m.group };
        let in_rows = by_row && reduces.0 == reduces.1 && !empty && m.inner >= m.isa.lanes(m.lane) && group != 1;
        if !empty {
            asm.finish(!folds, in_rows);
        }
        m.tiles = m.tiles.max(asm.tiles);
        m.staged = m.staged.max(asm.places.iter().map(Place::staged).sum());
        m.cost += if over_rows { 0 } else { asm.places.iter().map(traffic).sum() };
        let r = &mut self.out.regions;
        let first_place = r.places.len() as u32;
        r.places.extend_from_slice(&asm.places);
        let code = r.code.len() as u32;
        r.code.extend_from_slice(&asm.code);
        r.phases.push(Phase {
            over_rows,
            by_row,
            last_first: !folds,
            in_rows,
            apart,
            group,
            reach,
            code: if empty { NONE } else { code },
            places: (first_place, r.places.len() as u32),
            reduces,
            columns: (first_column, r.columns.len() as u32),
            expands: (first_expand, r.expands.len() as u32),
            puts: (first_put, r.puts.len() as u32),
        });
        Ok(())
    }

    /// Numbers the operands and the result of a node, and counts uses; whether an operand belongs to rows.
    fn number(&mut self, m: &mut Making, k: u32, at: u32, over_rows: bool) -> Result<bool> {
        let g = self.g;
        let member = self.order.members[at as usize];
        let node = &g.nodes[member.node as usize];
        let mut by_row = false;
        let reduces = matches!(member.role, Role::Reduce | Role::Columns);
        if reduces && (m.term(at).is_some() || self.direct(m, node.inputs[0], k).is_some()) {
            return Ok(false);
        }
        for &v in &node.inputs {
            let val = self.region_operand(m, v, over_rows)?;
            self.region.asm.will_use(val);
            by_row |= match self.order.place(v).spread {
                Spread::Full | Spread::Splat => false,
                Spread::View(k) => !self.order.views[k as usize].view.is_line(),
                Spread::Row(_) | Spread::Col(_) => true,
            };
        }
        if !reduces {
            let out = node.first.0;
            let val = self.region.asm.value(g.ty(node.first).dtype);
            self.set_number(out, Spread::Full, val);
        }
        Ok(by_row)
    }

    fn set_number(&mut self, root: u32, spread: Spread, val: Val) {
        let r = &mut self.region;
        let at = root as usize;
        (r.stamp[at], r.val[at], r.spread[at]) = (r.phase, val, spread);
    }

    /// The number of an operand in the phase.
    fn region_operand(&mut self, m: &mut Making, v: ValueId, over_rows: bool) -> Result<Val> {
        let place = self.order.place(v);
        let root = place.root as usize;
        // One element for all, whatever the spread says.
        let whole = if over_rows { m.n / m.inner } else { m.n };
        let size = self.g.ty(v).size();
        let spread = if size == 1 && whole != 1 { Spread::Splat } else { place.spread };
        let ty = self.g.ty(v);
        if self.region.stamp[root] == self.region.phase {
            let first = (place.root, self.region.spread[root], self.region.val[root]);
            let fits = |found: &&(u32, Spread, Val)| {
                let &(r, s, val) = *found;
                r == place.root && s == spread && self.region.asm.reads_as(val, ty.dtype)
            };
            if let Some((_, _, val)) = std::iter::once(&first).chain(&self.region.more).find(fits) {
                return Ok(*val);
            }
        }
        let element = ty.dtype.size();
        let Some(src) = self.source(m, v) else {
            bail!(Internal, "a value of a region is read before it has memory");
        };
        let found = match spread {
            Spread::Splat => Place::read(src, 0, 0),
            Spread::Full if over_rows => Place::read(src, element, element),
            Spread::Full => Place::read(src, m.inner * element, element),
            Spread::Row(k) if k as usize == m.inner => Place::read(src, element, 0),
            Spread::Col(k) if k as usize == m.inner => Place::read(src, 0, element),
            _ => self.rows_of_view(m, v, src)?,
        };
        let line = matches!(spread, Spread::View(k) if self.order.views[k as usize].view.is_line());
        let found = match spread {
            Spread::Row(_) | Spread::Col(_) | Spread::View(_) if m.short && !line => {
                // Rows that are all the same are spread once.
                let once = over_rows || matches!(spread, Spread::Col(_));
                self.spread_rows(m, found, ty.dtype, once)
            }
            _ => found,
        };
        let val = self.region.asm.value(ty.dtype);
        self.region.asm.in_memory(val, found);
        if self.region.stamp[root] == self.region.phase {
            self.region.more.push((place.root, spread, val));
        } else {
            self.set_number(place.root, spread, val);
        }
        Ok(val)
    }

    /// The place of a value whose rows begin at regular distances.
    fn rows_of_view(&mut self, m: &mut Making, v: ValueId, src: Src) -> Result<Place> {
        let Src::Slot(slot) = src else { bail!(Internal, "a view of what the region makes") };
        let view = self.order.as_view(v);
        let element = self.g.ty(v).dtype.size();
        let views = &mut self.out.regions.views;
        views.push(Rows::of(&view, slot, m.inner, element));
        let place = Src::View(views.len() as u32 - 1);
        Ok(match view.innermost().1 {
            0 => Place::read(place, 0, 0),
            step => {
                m.cost += if step == 1 { 0 } else { 100 };
                Place { stride: step as i8, ..Place::read(place, 0, element) }
            }
        })
    }

    /// Memory in which a reduction of phase `k` finds its operand's lanes without a program.
    pub(super) fn direct(&self, m: &Making, v: ValueId, k: u32) -> Option<Place> {
        let (place, ty) = (self.order.place(v), self.g.ty(v));
        // A number has the spread of an array, too, but no element for each of the row's.
        let whole = place.spread == Spread::Full && ty.size() == m.n;
        if ty.dtype.size() != m.lane || !whole || self.born_in(m, v, k) {
            return None;
        }
        Some(Place::read(self.source(m, v)?, m.inner * m.lane, m.lane))
    }

    /// Whether a value is there only when phase `k` has begun.
    fn born_in(&self, m: &Making, v: ValueId, k: u32) -> bool {
        let root = self.order.place(v).root as usize;
        self.region.made[root] == m.item && self.region.born[root] == k
    }

    /// The memory of a value's root, if it has some by now.
    pub(super) fn source(&self, m: &Making, v: ValueId) -> Option<Src> {
        let root = self.order.place(v).root as usize;
        if self.region.made[root] != m.item {
            return Some(Src::Slot(self.slot[root]));
        }
        self.region.home[root].map(|home| home.src)
    }

    /// Whether a value is made by this region and not needed after phase `k`.
    pub(super) fn passes(&self, m: &Making, v: ValueId, k: u32) -> bool {
        let root = self.order.place(v).root;
        let here = self.region.made[root as usize] == m.item && self.region.last[root as usize] == k;
        here && !self.outlives(root, m.item)
    }

    /// Appends a node; whether its result lies in rows.
    fn emit_member(
        &mut self,
        m: &mut Making,
        phase: u32,
        at: u32,
        over_rows: bool,
        late: &mut SmallVec<[(Val, Place); 2]>,
    ) -> Result<bool> {
        let member = self.order.members[at as usize];
        let root = self.g.nodes[member.node as usize].first.0;
        match member.role {
            Role::Reduce => return self.emit_reduce(m, phase, at).map(|()| false),
            Role::Columns => return self.emit_columns(m, phase, at).map(|()| false),
            Role::Full | Role::Row => {}
        }
        let out = self.region.val[root as usize];
        let outlives = self.outlives(root, m.item);
        let crosses = self.region.last[root as usize] > phase;
        let (mut to, mut by_row) = (None, false);
        if outlives || crosses {
            let element = self.g.types[root as usize].dtype.size();
            let row = if over_rows { element } else { m.inner * element };
            let whole = |src| Place::write(src, row, element);
            let (place, shared) = match self.inside_slot(m, root) {
                Some((src, true)) if m.short => (self.gathered_rows(m, root, src, crosses || over_rows), false),
                Some((src, rows)) => {
                    by_row = rows;
                    (whole(src), false)
                }
                None if outlives => {
                    let (src, shared) = self.result_slot(m, at, over_rows);
                    (whole(src), shared)
                }
                None => (whole(self.region.array(row)), false),
            };
            let in_caches = matches!(place.src, Src::Scratch(_)) || place.apart != 0;
            let alone = outlives && !crosses && m.reusable.is_empty() && !in_caches;
            let streamed = alone && row * (m.n / m.inner) >= streamed_from();
            m.streams |= streamed;
            let place = Place { streamed, ..place };
            self.region.home[root as usize] = Some(place);
            to = Some((place, shared));
        }
        if let Some((_, true)) = to {
            self.region.asm.will_use(out);
        }
        self.emit_operation(m, at, out)?;
        match to {
            Some((place, true)) => late.push((out, place)),
            Some((place, false)) => self.region.asm.store(out, place, false),
            None => {}
        }
        Ok(by_row)
    }

    /// The place of a value that is a piece of a result and nothing else, and whether it lies there in rows.
    fn inside_slot(&mut self, m: &Making, root: u32) -> Option<(Src, bool)> {
        let inside = self.order.inside.get(&root)?;
        let (result, operand, line) = (inside.result, inside.operand, inside.view.is_line());
        let mut rows = Rows::of(&inside.view, NONE, m.inner, self.g.types[root as usize].dtype.size());
        rows.slot = self.piece_root(m.item, result);
        self.made_inside.insert((result, operand));
        let views = &mut self.out.regions.views;
        views.push(rows);
        Some((Src::View(views.len() as u32 - 1), !line))
    }

    /// The operands of a region of one phase that come from elsewhere, are read whole, in their order, and die here.
    fn reusable_operands(&self, m: &Making, start: u32, end: u32) -> SmallVec<[u32; 4]> {
        let mut found: SmallVec<[u32; 4]> = SmallVec::new();
        for at in start..end {
            for &v in &self.member_node(at).inputs {
                let p = self.order.place(v);
                let x = p.root as usize;
                let read_whole = self.region.stamp[x] == self.region.phase
                    && self.region.spread[x] == Spread::Full
                    && !self.region.more.iter().any(|(r, _, _)| *r == p.root);
                let from_elsewhere = self.region.made[x] != m.item && self.dies_at(p.root, m.item);
                if p.spread == Spread::Full && from_elsewhere && self.g.ty(v).size() == m.n && read_whole {
                    found.push(p.root);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The slot of a result, and whether it is the memory of an operand that the phase may still read.
    fn result_slot(&mut self, m: &Making, at: u32, over_rows: bool) -> (Src, bool) {
        let g = self.g;
        let member = self.order.members[at as usize];
        let node = &g.nodes[member.node as usize];
        let bytes = if over_rows { m.n / m.inner } else { m.n } * g.ty(node.first).dtype.size();
        // The node's own operands first.
        let own = node.inputs.iter().map(|&v| self.order.place(v).root).filter(|x| m.reusable.contains(x));
        let candidates: SmallVec<[u32; 4]> = own.chain(m.reusable.iter().copied()).collect();
        let before: SmallVec<[u32; 4]> = candidates.iter().map(|&x| self.slot[x as usize]).collect();
        let slot = self.new_slot(m.item, node.first.0, bytes, &candidates);
        (Src::Slot(slot), before.contains(&slot))
    }

    /// The node that a member is.
    pub(super) fn member_node(&self, at: u32) -> &Node {
        &self.g.nodes[self.order.members[at as usize].node as usize]
    }

    /// What a member reduces.
    fn reduced(&self, at: u32) -> Result<Reduced> {
        let node = self.member_node(at);
        let (x, root) = (node.inputs[0], node.first.0);
        let dtype = self.g.ty(x).dtype;
        let Kind::Reduce { op, .. } = node.kind else { bail!(Internal, "a reduction that is none") };
        let Some(reducer) = row_reducer(op, dtype) else { bail!(Internal, "no reduction of {dtype}") };
        Ok(Reduced { x, root, op, dtype, reducer })
    }

    fn emit_reduce(&mut self, m: &mut Making, phase: u32, at: u32) -> Result<()> {
        let Reduced { x, root, op, dtype, reducer } = self.reduced(at)?;
        let alone = |from| Taken { memory: reducer.memory, from, with: None };
        let Taken { memory, from, with } = match (m.term(at), self.direct(m, x, phase)) {
            (Some(taken), _) => taken,
            (None, Some(place)) => alone(place),
            (None, None) if m.short => alone(self.lanes_in_memory(m, x)?),
            (None, None) => {
                let Some(fold) = table::fold(m.lane, op, dtype) else { bail!(Internal, "no reduction of {dtype}") };
                m.states += 1;
                let place = Place::write(Src::State(m.states - 1), 0, 0);
                let val = self.region_operand(m, x, false)?;
                self.region.asm.fold(fold, val, place);
                alone(place)
            }
        };
        let element = dtype.size();
        let src = if self.outlives(root, m.item) {
            Src::Slot(self.new_slot(m.item, root, m.n / m.inner * element, &[]))
        } else {
            self.region.array(element)
        };
        let to = Place::write(src, element, 0);
        self.region.home[root as usize] = Some(to);
        m.cost += 100;
        self.out.regions.reduces.push(Reduce { reducer, memory, from, with, to, dtype });
        Ok(())
    }

    /// A reduction of columns, which takes in what the phase leaves in memory.
    fn emit_columns(&mut self, m: &mut Making, phase: u32, at: u32) -> Result<()> {
        let Reduced { x, root, dtype, reducer, .. } = self.reduced(at)?;
        let from = match self.direct(m, x, phase) {
            Some(place) => place,
            None => match self.result_in_memory(m, x) {
                Some(place) => {
                    let val = self.region_operand(m, x, false)?;
                    self.region.asm.used_by_store(val);
                    place
                }
                None => self.lanes_in_memory(m, x)?,
            },
        };
        let to = self.new_slot(m.item, root, m.inner * dtype.size(), &[]);
        m.cost += 100;
        self.out.regions.columns.push(Column { reducer: reducer.columns, from, state: 0, to });
        Ok(())
    }

    /// Where the program leaves a result of the phase, row by row, if it does and if that is in the caches.
    fn result_in_memory(&self, m: &Making, x: ValueId) -> Option<Place> {
        let root = self.order.place(x).root as usize;
        // What another region left has rows of its own.
        let place = self.region.home[root].filter(|p| self.region.made[root] == m.item && !p.streamed)?;
        let rows = place.row == m.inner * m.lane && !matches!(place.src, Src::View(_));
        rows.then_some(place)
    }

    /// An array of scratch memory in which the program leaves a value's lanes.
    fn lanes_in_memory(&mut self, m: &mut Making, x: ValueId) -> Result<Place> {
        let row = m.inner * m.lane;
        let place = Place::write(self.region.array(row), row, m.lane);
        let val = self.region_operand(m, x, false)?;
        self.region.asm.store(val, place, true);
        self.region.asm.used_by_store(val);
        Ok(place)
    }

    /// What divides by a power of two, and its immediate: the product with its reciprocal is the same number.
    fn scale(&self, lane: usize, by: ValueId) -> Option<(Handler, u64)> {
        let (root, dtype) = (ValueId(self.order.place(by).root), self.g.ty(by).dtype);
        let Kind::Const(number) = self.g.maker(root)?.kind else { return None };
        if self.g.ty(root).dtype != dtype {
            return None;
        }
        table::scale(lane, dtype).zip(table::reciprocal(dtype, number.to_f64()))
    }

    fn emit_operation(&mut self, m: &mut Making, at: u32, out: Val) -> Result<()> {
        let g = self.g;
        let member = self.order.members[at as usize];
        let node = &g.nodes[member.node as usize];
        let over_rows = member.role == Role::Row;
        let mut x: SmallVec<[Val; 3]> = SmallVec::new();
        for &v in &node.inputs {
            x.push(self.region_operand(m, v, over_rows)?);
        }
        let dtype = |i: usize| g.ty(node.inputs[i]).dtype;
        m.cost += node.kind.cost() as u32 * m.lane as u32 / 4;
        let scale = match node.kind {
            Kind::Binary(BinaryOp::Div) => self.scale(m.lane, node.inputs[1]),
            _ => None,
        };
        let asm = &mut self.region.asm;
        let missing = || ferrax_base::error!(Internal, "the machine has no {:?}", node.kind);
        match &node.kind {
            Kind::Unary(op) => asm.unary(Some(table::unary(m.lane, *op, dtype(0)).ok_or_else(missing)?), 0, x[0], out),
            Kind::Binary(BinaryOp::Mul) if x[0] == x[1] && dtype(0).is_float() => {
                // A square needs no second operand in memory.
                asm.used_by_store(x[1]);
                asm.unary(Some(table::integer_pow(m.lane, 2, dtype(0)).ok_or_else(missing)?), 2, x[0], out);
            }
            _ if let Some((h, by)) = scale => {
                asm.used_by_store(x[1]);
                asm.unary(Some(h), by, x[0], out);
            }
            Kind::Binary(op) => asm.binary(table::binary(m.lane, *op, dtype(0)).ok_or_else(missing)?, x[0], x[1], out),
            Kind::Compare(op) => {
                asm.binary(table::compare(m.lane, *op, dtype(0)).ok_or_else(missing)?, x[0], x[1], out);
            }
            Kind::Select => asm.select(x[0], x[1], x[2], out),
            Kind::Clamp => {
                let d = dtype(1);
                let middle = asm.value(if d.size() == m.lane { d } else { DType::F32 });
                asm.will_use(middle);
                asm.binary(table::binary(m.lane, BinaryOp::Max, d).ok_or_else(missing)?, x[1], x[0], middle);
                asm.binary(table::binary(m.lane, BinaryOp::Min, d).ok_or_else(missing)?, middle, x[2], out);
            }
            Kind::IntegerPow(n) => {
                asm.unary(
                    Some(table::integer_pow(m.lane, *n, dtype(0)).ok_or_else(missing)?),
                    *n as u32 as u64,
                    x[0],
                    out,
                );
            }
            Kind::DivideBy(Division { by, part }) => {
                let imm = divisor(dtype(0).is_signed(), *by);
                asm.unary(Some(table::divide_by(m.lane, *part, dtype(0)).ok_or_else(missing)?), imm, x[0], out);
            }
            Kind::Convert => {
                let h = table::convert(m.lane, dtype(0), g.ty(node.first).dtype).ok_or_else(missing)?;
                asm.unary(h, 0, x[0], out);
            }
            Kind::ReducePrecision { exponent_bits, mantissa_bits } => {
                let imm = u64::from(*exponent_bits) | u64::from(*mantissa_bits) << 32;
                asm.unary(Some(table::reduce_precision(m.lane, dtype(0)).ok_or_else(missing)?), imm, x[0], out);
            }
            _ => return Err(missing()),
        }
        Ok(())
    }
}

/// Whether a tile may go on past a row's end: rows of columns end where their memory does, and results must not be written
/// twice.
fn may_be_passed(p: &Place) -> bool {
    match p.src {
        Src::Scratch(_) => true,
        Src::View(_) => false,
        _ => p.step == 0 || (p.row != 0 && !p.written),
    }
}
