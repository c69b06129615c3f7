//! Which small groups of elementwise nodes run in the machine's registers, and their programs.
//!
//! Read next: `fused/registers/tiles.rs` for how they run.

use super::forms::Style;
use super::translate::{Translator, bits};
use crate::fused::registers::tiles::{Stream, Tiles};
use crate::fused::registers::{lanes_of, most_elements, width_of};
use crate::machine::handler;
use crate::machine::loops::assemble::{Op, PLACE, Val};
use crate::machine::loops::families::{self, Access, Width};
use crate::plan::{NONE, Planner};
use crate::program::Step;
use crate::simd::{self, Isa};
use ferrax_base::{DType, Scalar};
use ferrax_loops::passes::order::Spread;
use ferrax_loops::{Kind, ValueId};
use smallvec::SmallVec;

/// Nodes that a group has at most.
const MOST_NODES: usize = 64;

/// A group being planned.
struct Making {
    t: Translator,
    isa: Isa,
    lanes: usize,
    n: usize,
    /// Values of roots that were read or made.
    known: Vec<(u32, Val)>,
    streams: Vec<Stream>,
    masked: bool,
}

impl Making {
    /// The place of the address of so many bytes in a slot.
    fn pointer(&mut self, slot: u32, bytes: usize) -> u32 {
        let at = match self.streams.last() {
            Some(last) if !self.streams.len().is_multiple_of(PLACE as usize / size_of::<*mut u8>()) => {
                last.at + size_of::<*mut u8>() as u32
            }
            _ => self.t.asm.place(),
        };
        self.streams.push(Stream { at, slot, bytes });
        at
    }

    /// How an array or a number is reached, and how far its next register of elements is.
    fn access(&self, vector: bool, d: DType) -> Option<(Access, usize)> {
        Some(match (vector, d.is_bool()) {
            (_, false) if d.size() != self.t.lane.bytes() => return None,
            (true, true) => return None,
            (true, false) if self.masked => (Access::Masked, self.lanes * self.t.lane.bytes()),
            (true, false) => (Access::Whole, self.lanes * self.t.lane.bytes()),
            (false, true) => (Access::Flag, 0),
            (false, false) => (Access::Scalar, 0),
        })
    }
}

impl Planner<'_> {
    /// Appends the group `members[start..end]` of `n` elements if it can run in registers; whether it does.
    pub fn emit_tiles(&mut self, item: u32, start: u32, end: u32, n: usize) -> bool {
        let Some(isa) = simd::isa().filter(|_| self.machine) else { return false };
        let Some(lane) = self.lane_of(start, end) else { return false };
        let isa = isa.holding(n * lane.bytes() / 4);
        let lanes = lanes_of(isa, lane);
        let most = most_elements(isa) * 4 / lane.bytes();
        if n == 0 || n > most || (end - start) as usize > MOST_NODES {
            return false;
        }
        let masked = n > 1 && !n.is_multiple_of(lanes);
        // The first place holds the mask.
        let t = Translator::new((isa, lane), Style::Vectors, PLACE);
        let mut m = Making { t, isa, lanes, n, known: Vec::new(), streams: Vec::new(), masked };
        let Some(made) = self.tile_nodes(&mut m, start, end) else { return false };
        let mut writes = Vec::new();
        for &(root, v) in &made {
            let ty = &self.g.types[root as usize];
            if self.outlives(root, item) {
                if m.access(n > 1, ty.dtype).is_none() {
                    return false;
                }
                writes.push((root, v));
            }
        }
        self.place_tiles(item, m, &writes, start, end);
        true
    }

    /// The lanes that hold what the nodes read and make.
    fn lane_of(&self, start: u32, end: u32) -> Option<Width> {
        let nodes = self.order.members[start as usize..end as usize].iter().map(|m| &self.g.nodes[m.node as usize]);
        let values = nodes.flat_map(|node| node.inputs.iter().copied().chain([node.first]));
        width_of(values.map(|v| self.g.ty(v)))
    }

    /// Translates the nodes; gives what they make.
    fn tile_nodes(&self, m: &mut Making, start: u32, end: u32) -> Option<Vec<(u32, Val)>> {
        let g = self.g;
        let mut made = Vec::new();
        for member in &self.order.members[start as usize..end as usize] {
            let node = &g.nodes[member.node as usize];
            m.t.lanes(g.ty(node.first).dtype)?;
            let x: Vec<Val> = node.inputs.iter().map(|&v| self.tile_operand(m, v)).collect::<Option<_>>()?;
            let d = m.t.node(g, node, &x)?;
            m.known.push((node.first.0, d));
            made.push((node.first.0, d));
        }
        Some(made)
    }

    /// The value of an operand.
    fn tile_operand(&self, m: &mut Making, v: ValueId) -> Option<Val> {
        let place = self.order.place(v);
        let ty = self.g.ty(v);
        m.t.lanes(ty.dtype)?;
        if !matches!(place.spread, Spread::Full | Spread::Splat) {
            return None;
        }
        if let Some(found) = m.known.iter().find(|k| k.0 == place.root) {
            return Some(found.1);
        }
        if let Some(s) = self.constant_of(place.root) {
            return Some(m.t.constant(bits(Scalar { dtype: ty.dtype, ..s })));
        }
        let vector = m.n > 1 && !place.is_splat() && ty.size() > 1;
        let (access, stride) = m.access(vector, ty.dtype)?;
        let slot = self.slot[place.root as usize];
        let pointer = m.pointer(slot, ty.dtype.size() * if vector { m.n } else { 1 });
        let d = m.t.value(false, vector);
        m.t.ops.push(Op::Read { access, pointer, mask: 0, stride, d });
        m.known.push((place.root, d));
        Some(d)
    }

    /// The constant that a root is.
    fn constant_of(&self, root: u32) -> Option<Scalar> {
        match self.g.maker(ValueId(root))?.kind {
            Kind::Const(s) => Some(s),
            _ => None,
        }
    }

    /// Gives results memory and puts the program together.
    fn place_tiles(&mut self, item: u32, mut m: Making, writes: &[(u32, Val)], start: u32, end: u32) {
        let n = m.n;
        let mut ops = super::late_reads(std::mem::take(&mut m.t.ops));
        for &(root, a) in writes {
            let dtype = self.g.types[root as usize].dtype;
            let candidates: SmallVec<[u32; 3]> = self
                .tile_inputs(start, end)
                .filter(|&(x, v)| self.g.ty(v).size() == n && self.g.ty(v).dtype.size() == dtype.size() && x != root)
                .map(|(x, _)| x)
                .collect();
            let slot = self.new_slot(item, root, n * dtype.size(), &candidates);
            let pointer = m.pointer(slot, n * dtype.size());
            // A number of a group of arrays is spread over the array.
            if let Some((access, stride)) = m.access(n > 1, dtype) {
                ops.push(Op::Write { access, pointer, mask: 0, stride, a });
            }
        }
        let asm = &mut m.t.asm;
        let once = std::mem::take(&mut m.t.once);
        let fixed: Vec<Val> = once.iter().filter_map(Op::result).collect();
        asm.section(&once, &fixed, &[]);
        fixed.iter().for_each(|&v| asm.keep(v));
        asm.section(&ops, &[], &[]);
        if n > m.lanes {
            asm.control(families::count_back(), &[], 1);
        }
        asm.finish(handler::finish());
        let memory = self.out.tiles_bytes;
        self.out.tiles_bytes += asm.memory as usize;
        let tiles = Tiles {
            isa: m.isa,
            lane: m.t.lane,
            code: std::mem::take(&mut asm.code),
            whole: if n == 1 { 1 } else { n / m.lanes },
            rest: if n == 1 { 0 } else { n % m.lanes },
            memory,
            constants: m.t.constants.iter().map(|c| (c.1, c.2)).collect(),
            streams: m.streams,
            writes: writes.len(),
            nodes: self.order.members[start as usize..end as usize].iter().map(|x| x.node).collect(),
            n,
        };
        self.out.steps.push(Step::Tiles(self.out.tiles.len() as u32));
        self.out.tiles.push(tiles);
    }

    /// Roots that the group reads from outside and that lie there element by element, with a value of each.
    fn tile_inputs(&self, start: u32, end: u32) -> impl Iterator<Item = (u32, ValueId)> {
        let members = &self.order.members[start as usize..end as usize];
        let nodes = members.iter().map(|m| &self.g.nodes[m.node as usize]);
        nodes.flat_map(|node| node.inputs.iter()).filter_map(move |&v| {
            let place = self.order.place(v);
            let inside = members.iter().any(|m| self.g.nodes[m.node as usize].first.0 == place.root);
            (!inside && place.spread == Spread::Full && self.slot[place.root as usize] != NONE)
                .then_some((place.root, v))
        })
    }
}
