//! From a loop's node to its program.

mod apart;
mod cells;
mod cipher;
mod forms;
mod indexed;
mod inner;
mod lines;
mod matrices;
mod packed;
mod ranges;
mod shapes;
mod tiles;
mod translate;
mod windows;

use crate::fused::registers::{
    ArrayWindow, Counter, Held, Input, Limit, Part, RegisterLoop, Stream, Trips, Window, lanes_of, most_elements,
    width_of,
};
use crate::machine::handler;
use crate::machine::loops::assemble::{Home, Op, PLACE, Val};
use crate::machine::loops::families::{self, Access, Two, Width};
use crate::plan::constants;
use crate::simd::{self, Isa};
use ferrax_loops::{Graph, Kind, Node, Type, ValueId};
use forms::{Form, MOST_CELLS, Style, passes};
pub(crate) use lines::lines;
use ranges::{counted, counter};
use rustc_hash::FxHashSet;
use translate::Translator;
use windows::{Array, only_indexed};

/// Bytes of the loop's memory at most.
const MOST_MEMORY: u32 = 256 << 10;

/// What a loop's operands are, by position.
struct Shape<'g> {
    body: &'g Graph,
    cond: Option<&'g Graph>,
    /// What holds for the elements that go on, where the condition is that there is one.
    going: Option<&'g Graph>,
    /// Constants of the body, which come just before the carried operands; those of the condition come first.
    consts: usize,
    carry: usize,
    first_carry: usize,
    length: usize,
    reverse: bool,
}

/// A carried value that the loop computes, or some of its elements.
struct Carried {
    index: usize,
    element: usize,
    part: Part,
    param: Val,
    out: Val,
    home: Home,
}

/// The program of a loop that fits the registers.
pub(crate) fn plan(g: &Graph, node: &Node) -> Option<RegisterLoop> {
    let isa = simd::isa()?;
    let (Kind::While { body, .. } | Kind::Scan { body, .. }) = &node.kind else { return None };
    let body = &*constants::fold(body.clone());
    let going = if let Kind::While { cond, .. } = &node.kind { apart::going(cond) } else { None };
    let shape = match &node.kind {
        Kind::While { cond, cond_consts, body_consts, .. } => Shape {
            body,
            cond: Some(cond),
            going: going.as_ref(),
            consts: *body_consts,
            carry: node.inputs.len() - cond_consts - body_consts,
            first_carry: cond_consts + body_consts,
            length: 0,
            reverse: false,
        },
        Kind::Scan { length, reverse, consts, carry, .. } => Shape {
            body,
            cond: None,
            going: None,
            consts: *consts,
            carry: *carry,
            first_carry: *consts,
            length: *length,
            reverse: *reverse,
        },
        _ => return None,
    };
    let lane = width_of(node.inputs.iter().map(|&v| g.ty(v)).chain(&body.types))?;
    let made = |style: Style| {
        let with = |isa: Isa| Planner::new(g, node, &shape, (isa, lane, style)).build();
        match with(Isa::NARROW) {
            Some(narrow) if isa.holding(narrow.widest * lane.bytes() / 4) == Isa::NARROW => Some(narrow),
            // Arrays in registers may take too many narrow ones.
            None if style != Style::Packed => None,
            _ => with(isa),
        }
    };
    let others = || {
        let both = [Some(Style::Cells), families::PACKS.then_some(Style::Packed)].into_iter().flatten();
        both.filter_map(made).min_by(|a, b| a.cost.total_cmp(&b.cost))
    };
    let found = made(Style::Vectors).or_else(others)?.made;
    (found.apart || found.elements <= most_elements(found.isa)).then_some(found)
}

/// A loop's program, what a step of it costs, and how many elements its vectors or its widest small array have.
struct Planned {
    made: RegisterLoop,
    cost: f64,
    widest: usize,
}

/// A loop being planned.
struct Planner<'g> {
    g: &'g Graph,
    node: &'g Node,
    shape: &'g Shape<'g>,
    isa: Isa,
    t: Translator,
    /// Operands that do not change.
    fixed: Vec<(ValueId, Form)>,
    inputs: Vec<Input>,
    streams: Vec<Stream>,
    carried: Vec<Carried>,
    copies: Vec<(usize, usize, usize)>,
    arrays: Vec<(usize, usize, usize)>,
}

impl<'g> Planner<'g> {
    fn new(g: &'g Graph, node: &'g Node, shape: &'g Shape<'g>, (isa, lane, style): (Isa, Width, Style)) -> Self {
        Planner {
            g,
            node,
            shape,
            isa,
            // The first place holds the mask.
            t: Translator::new((isa, lane), style, PLACE),
            fixed: Vec::new(),
            inputs: Vec::new(),
            streams: Vec::new(),
            carried: Vec::new(),
            copies: Vec::new(),
            arrays: Vec::new(),
        }
    }

    /// An operand that does not change and is a parameter of `inner`.
    fn input(&mut self, operand: usize, inner: (&Graph, usize)) -> Option<Form> {
        let ty = self.g.ty(self.node.inputs[operand]);
        if self.stays(ty) && is_array(ty, &[inner], false, &[]) {
            Some(self.array(ty, operand, false))
        } else {
            self.fixed(operand)
        }
    }

    /// An operand that does not change, as values in the loop's memory.
    fn fixed(&mut self, operand: usize) -> Option<Form> {
        let v = self.node.inputs[operand];
        if let Some((_, found)) = self.fixed.iter().find(|f| f.0 == v) {
            return Some(found.clone());
        }
        let ty = self.g.ty(v);
        let form = self.each(ty, false, |s, element, part| {
            let v = s.t.value(true, part.is_vector());
            let at = s.t.asm.in_memory(v);
            s.inputs.push(Input { at, operand, element, part, held: Held::of(ty.dtype) });
            Some(v)
        })?;
        self.fixed.push((v, form.clone()));
        Some(form)
    }

    /// A value whose cells, each by its first element, `one` makes; in memory, bytes do not fill lanes.
    fn each(
        &mut self,
        ty: &Type,
        in_memory: bool,
        mut one: impl FnMut(&mut Self, usize, Part) -> Option<Val>,
    ) -> Option<Form> {
        let parts = self.t.parts(ty, in_memory && ty.dtype.is_bool())?;
        let all = parts.into_iter().map(|(i, part)| one(self, i, part)).collect::<Option<_>>()?;
        self.t.form_of(ty, all)
    }

    fn array(&mut self, ty: &Type, index: usize, carried: bool) -> Form {
        self.t.arrays.push(Array { ty: ty.clone(), index, carried, version: 0 });
        Form::Array { array: self.t.arrays.len() - 1, version: 0 }
    }

    /// The carried values: what stays as it is is read from memory.
    fn carry(&mut self) -> Option<Vec<Form>> {
        let mut values = Vec::new();
        let Shape { body, consts, carry, first_carry, .. } = *self.shape;
        for k in 0..carry {
            let (operand, param) = (first_carry + k, consts + k);
            let ty = self.g.ty(self.node.inputs[operand]);
            let mut uses = vec![(body, param)];
            uses.extend(self.shape.cond.map(|cond| (cond, first_carry - consts + k)));
            let stays = passes(body, k, param);
            let array = self.stays(ty) && is_array(ty, &uses, !stays, &[k]);
            if stays {
                self.copies.push((operand, k, ty.bytes()));
                values.push(if array { self.array(ty, operand, false) } else { self.fixed(operand)? });
            } else if array {
                self.arrays.push((operand, k, ty.bytes()));
                values.push(self.array(ty, k, true));
            } else {
                let steps = self.shape.cond.map_or(Ok(self.shape.length), |cond| Err((cond, first_carry - consts + k)));
                let range = counter((self.g, self.node.inputs[operand]), (body, param, k), steps);
                values.push(self.each(ty, false, |s, element, part| {
                    let param = s.t.value(false, part.is_vector());
                    s.t.range[param as usize] = range;
                    s.carried.push(Carried { index: k, element, part, param, out: 0, home: Home::Memory(0) });
                    Some(param)
                })?);
            }
        }
        Some(values)
    }

    /// An element, or a register of them, of the array that is stepped through: how it is reached.
    fn stream(&mut self, ty: &Type, (index, element): (usize, usize), part: Part) -> Option<(Access, u32, u32)> {
        if !self.whole_lanes(ty) {
            return None;
        }
        let (access, mask) = self.t.access(part, ty.dtype.is_bool())?;
        let per_place = PLACE as usize / size_of::<*mut u8>();
        let at = match self.streams.last() {
            Some(last) if !self.streams.len().is_multiple_of(per_place) => last.at + size_of::<*mut u8>() as u32,
            _ => self.t.asm.place(),
        };
        let (offset, vector) = (element * ty.dtype.size(), part.is_vector());
        self.streams.push(Stream { at, index, result: false, offset, vector });
        Some((access, at, mask))
    }

    /// Whether an element in memory is a `bool`, or a lane as it is.
    fn whole_lanes(&self, ty: &Type) -> bool {
        ty.dtype.is_bool() || self.t.whole(ty.dtype)
    }

    /// Whether an operand stays in memory if it is only read and written at an index.
    fn stays(&self, ty: &Type) -> bool {
        self.whole_lanes(ty) && (self.t.style != Style::Packed || ty.size() > MOST_CELLS)
    }

    /// This step's slice of an operand.
    fn read(&mut self, ty: &Type, index: usize) -> Option<Form> {
        self.each(ty, true, |s, element, part| {
            let (access, pointer, mask) = s.stream(ty, (index, element), part)?;
            let d = s.t.value(false, part.is_vector());
            s.t.range[d as usize] = counted(s.g, s.node.inputs[index]);
            s.t.ops.push(Op::Read { access, pointer, mask, stride: ty.bytes(), d });
            Some(d)
        })
    }

    /// Writes this step's slice of a result.
    fn write(&mut self, ty: &Type, index: usize, form: &Form) -> Option<()> {
        self.each(ty, true, |s, element, part| {
            let a = s.t.part(form, element, part)?;
            let (access, pointer, mask) = s.stream(ty, (index, element), part)?;
            s.streams.last_mut()?.result = true;
            s.t.write(Op::Write { access, pointer, mask, stride: ty.bytes(), a })?;
            Some(a)
        })?;
        Some(())
    }

    /// Translates the body; gives its operations and the values of the carried operands.
    fn body(&mut self) -> Option<(Vec<Op>, Vec<Form>)> {
        let Shape { body, consts, carry, first_carry, .. } = *self.shape;
        let mut args: Vec<Form> =
            (0..consts).map(|k| self.input(first_carry - consts + k, (body, k))).collect::<Option<_>>()?;
        let mut carry_values = self.carry()?;
        args.extend(carry_values.iter().cloned());
        for (k, ty) in body.types[consts + carry..body.params].iter().enumerate() {
            args.push(self.read(ty, first_carry + carry + k)?);
        }
        let going = if self.apart().is_some() { Some(self.condition(&carry_values)?) } else { None };
        let outs = self.t.graph(body, &args)?;
        for (k, form) in outs.iter().enumerate().skip(carry) {
            self.write(body.ty(body.outputs[k]), k, form)?;
        }
        for c in &mut self.carried {
            c.out = self.t.part(&outs[c.index], c.element, c.part)?;
        }
        if going.is_some_and(|going| !self.stay(going)) {
            return None;
        }
        // An array must leave a step in the state that the next one finds.
        for (value, out) in carry_values.iter_mut().zip(&outs) {
            if let Form::Array { array, version } = value {
                *version = self.t.arrays[*array].version;
                let Form::Array { array: same, version: left } = out else { return None };
                if same != array || left != version {
                    return None;
                }
            }
        }
        Some((std::mem::take(&mut self.t.ops), carry_values))
    }

    fn build(mut self) -> Option<Planned> {
        let (mut ops, carry_values) = self.body()?;
        let mut test = None;
        if self.shape.cond.is_some() {
            let found = self.condition(&carry_values)?;
            test = Some((std::mem::take(&mut self.t.ops), found));
        }
        let trips = match &test {
            None => Trips::Fixed(self.shape.length),
            Some(_) if self.apart().is_some() => Trips::Tested,
            Some((cond, found)) => self.count(&ops, cond, *found).unwrap_or(Trips::Tested),
        };
        let test = test.filter(|_| matches!(trips, Trips::Tested));
        let counters = if test.is_none() { self.counters(&mut ops) } else { Vec::new() };
        prune(&mut ops, &self.carried);
        let lanes = lanes_of(self.isa, self.t.lane);
        // A second register of elements would find what the first one left.
        if self.t.elements > lanes && !self.t.lanes_apart() {
            return None;
        }
        let (cost, widest) = (cost(&ops), self.t.elements.max(self.t.widest));
        if self.t.has_cells && cost > most_cells(self.shape.body) {
            return None;
        }
        let ops = in_place(ops, self.t.elements.is_multiple_of(lanes));
        Some(Planned { made: self.assemble(Parts { ops, counters, trips, test })?, cost, widest })
    }
}

/// Whether a parameter of graphs is an array that stays where it is: it is only read and written at an index, and
/// leaves the first graph as these outputs.
fn is_array(ty: &Type, uses: &[(&Graph, usize)], writes: bool, outputs: &[usize]) -> bool {
    // Every number of an element is a lane.
    let fits = (2..i32::MAX as usize).contains(&ty.size());
    let of = |(i, &(g, param)): (usize, &(&Graph, usize))| match i {
        0 => only_indexed(g, param, writes, outputs),
        _ => only_indexed(g, param, false, &[]),
    };
    fits && uses.iter().enumerate().all(of)
}

/// Operations on single elements that take as long as the body's steps one by one: as measured, a group of elementwise
/// nodes costs some forty, a node of one five, a node that moves elements thirty and any other eighty.
fn most_cells(g: &Graph) -> f64 {
    let live = ferrax_loops::passes::live_nodes(g);
    40.0 + g.nodes.iter().zip(live).filter(|(_, live)| *live).map(|(n, _)| step_cost(&n.kind)).sum::<f64>()
}

/// What a node costs that is a step by itself, or part of one where it is elementwise.
fn step_cost(kind: &Kind) -> f64 {
    match kind {
        Kind::Const(_) | Kind::Dense(_) | Kind::Iota(_) | Kind::Reshape | Kind::Broadcast(_) | Kind::Barrier => 0.0,
        Kind::Call(inner) => most_cells(inner),
        Kind::While { cond, body, .. } => 80.0 + 2.0 * (most_cells(cond) + most_cells(body)),
        Kind::Scan { body, length, .. } => 80.0 + *length as f64 * most_cells(body),
        Kind::Switch(branches) => 80.0 + branches.iter().map(|b| most_cells(b)).sum::<f64>() / branches.len() as f64,
        Kind::Reduce { .. } | Kind::Dot(_) | Kind::Gather(_) | Kind::Scatter { .. } | Kind::Linalg(_) => 80.0,
        kind if kind.is_elementwise() => 5.0,
        _ => 30.0,
    }
}

/// What operations cost, in those of a few instructions: handlers compiled from Rust compute a register of elements.
fn cost(ops: &[Op]) -> f64 {
    ops.iter().map(|op| if matches!(op, Op::Call { .. } | Op::CallTwo { .. }) { 8.0 } else { 1.0 }).sum()
}

/// What `assemble` puts together.
struct Parts {
    ops: Vec<Op>,
    counters: Vec<Counter>,
    trips: Trips,
    test: Option<(Vec<Op>, Val)>,
}

impl Planner<'_> {
    /// The constant by which an operation raises a value.
    fn raise(&self, op: &Op, v: Val) -> Option<u64> {
        match *op {
            Op::Two { op: Two::AddInt, a, b, .. } if a == v => self.t.number(b),
            Op::Two { op: Two::AddInt, a, b, .. } if b == v => self.t.number(a),
            _ => None,
        }
    }

    /// The trip count of a condition `i < limit` where `i` grows by one.
    fn count(&self, ops: &[Op], cond: &[Op], found: Val) -> Option<Trips> {
        let [Op::Two { op: Two::GtInt, d, a: limit, b: i }] = *cond else { return None };
        let counter = self.carried.iter().find(|c| c.param == i)?;
        let step = ops.iter().find(|op| op.result() == Some(counter.out))?;
        if d != found || self.raise(step, i) != Some(1) || self.t.vector[i as usize] || self.t.vector[limit as usize] {
            return None;
        }
        let limit = match self.t.number(limit) {
            Some(bits) => Limit::Number(self.t.lane.signed(bits)),
            None => Limit::Operand(self.operand(limit)?),
        };
        let first = self.shape.first_carry + counter.index;
        Some(Trips::Below { first, limit, held: Held::of(self.g.ty(self.node.inputs[first]).dtype) })
    }

    /// The operand that a value is.
    fn operand(&self, v: Val) -> Option<usize> {
        let at = self.t.asm.memory_of(v)?;
        self.inputs.iter().find(|i| i.at == at && i.held != Held::Flag && i.element == 0).map(|i| i.operand)
    }

    /// Takes out carried integers that only count: what they are at the end is known.
    fn counters(&mut self, ops: &mut Vec<Op>) -> Vec<Counter> {
        let mut counters = Vec::new();
        let mut carried = std::mem::take(&mut self.carried);
        let outs: Vec<Val> = carried.iter().map(|c| c.out).collect();
        carried.retain(|c| {
            let Some(at) = ops.iter().position(|op| op.result() == Some(c.out)) else { return true };
            let Some(step) = self.raise(&ops[at], c.param) else { return true };
            let read = |v: Val, but: usize| ops.iter().enumerate().any(|(i, op)| i != but && op.reads(v));
            let whole = self.g.ty(self.node.inputs[self.shape.first_carry + c.index]).size() == 1;
            let elsewhere = !whole || outs.iter().filter(|&&v| v == c.out).count() > 1 || outs.contains(&c.param);
            if elsewhere || self.t.vector[c.param as usize] || read(c.param, at) || read(c.out, usize::MAX) {
                return true;
            }
            ops.remove(at);
            let operand = self.shape.first_carry + c.index;
            let held = Held::of(self.g.ty(self.node.inputs[operand]).dtype);
            counters.push(Counter { operand, result: c.index, step: self.t.lane.signed(step), held });
            false
        });
        self.carried = carried;
        counters
    }

    fn assemble(mut self, parts: Parts) -> Option<RegisterLoop> {
        let apart = self.apart().is_some();
        let Parts { ops, counters, trips, test } = parts;
        // What does not change is computed once, and read from memory.
        let once = std::mem::take(&mut self.t.once);
        let fixed: Vec<Val> = once.iter().filter_map(Op::result).collect();
        self.t.asm.section(&once, &fixed, &[]);
        fixed.iter().for_each(|&v| self.t.asm.keep(v));
        let outputs = self.homes();
        let entry = self.t.asm.code.len();
        if test.is_some() {
            self.t.asm.control(families::jump(), &[], 0);
        }
        let head = self.t.asm.code.len();
        self.steps(&ops, test.as_ref(), entry);
        let asm = &mut self.t.asm;
        let per_step = asm.code.len() - head;
        for (output, c) in outputs.iter().zip(&self.carried) {
            if let Home::Register(r) = c.home {
                asm.store(r, output.at);
            }
        }
        asm.finish(handler::finish());
        // The condition's start is the other target of jumps.
        let tested = asm.code[entry].imm as usize / size_of::<handler::Instr>() + entry;
        let fused = asm.fuse(&[head, if test.is_some() { tested } else { head }]);
        let of = |window: &Window| {
            let array = &self.t.arrays[window.array];
            ArrayWindow { window: *window, index: array.index, result: array.carried }
        };
        let windows = self.t.windows.iter().map(of).collect();
        let of_carried = |k: usize| self.shape.first_carry + k;
        let bytes = |k: usize| self.g.ty(self.node.inputs[of_carried(k)]).bytes();
        (asm.memory <= MOST_MEMORY).then(|| RegisterLoop {
            isa: self.isa,
            lane: self.t.lane,
            elements: self.t.elements,
            apart,
            code: std::mem::take(&mut asm.code),
            _fused: fused,
            head,
            constants: self.t.constants.iter().map(|c| (c.1, c.2)).collect(),
            patterns: self.t.patterns.into_iter().map(|p| (p.1, p.2)).collect(),
            places: (asm.memory / PLACE) as usize,
            inputs: self.inputs,
            streams: self.streams,
            windows,
            outputs,
            arrays: self.arrays,
            copies: self.copies,
            counters,
            carried: (0..self.shape.carry).map(|k| (of_carried(k), k, bytes(k))).collect(),
            trips,
            reverse: self.shape.reverse,
            per_step,
        })
    }

    /// Gives carried values their homes and puts them there; says where they are found at the end.
    fn homes(&mut self) -> Vec<Input> {
        let mut outputs = Vec::new();
        for (k, c) in self.carried.iter_mut().enumerate() {
            c.home = self.t.asm.home(k);
            let operand = self.shape.first_carry + c.index;
            let ty = self.g.ty(self.node.inputs[operand]);
            let (part, held) = (c.part, Held::of(ty.dtype));
            let at = match c.home {
                Home::Memory(at) => at,
                Home::Register(_) => self.t.asm.place(),
            };
            let element = c.element;
            self.inputs.push(Input { at, operand, element, part, held });
            outputs.push(Input { at, operand: c.index, element, part, held });
        }
        for (output, c) in outputs.iter().zip(&self.carried) {
            if let Home::Register(r) = c.home {
                self.t.asm.load(r, output.at);
            }
        }
        outputs
    }

    /// The instructions of a step, up to the jump back.
    fn steps(&mut self, ops: &[Op], test: Option<&(Vec<Op>, Val)>, entry: usize) {
        let back = if self.apart().is_some() { families::any_back() } else { families::test_back() };
        let asm = &mut self.t.asm;
        let homes: Vec<(Val, Home)> = self.carried.iter().map(|c| (c.param, c.home)).collect();
        let outs: Vec<(Val, Home)> = self.carried.iter().map(|c| (c.out, c.home)).collect();
        let live: Vec<Val> = outs.iter().map(|o| o.0).collect();
        asm.at_home(&homes);
        asm.section(ops, &live, &outs);
        asm.settle(&outs);
        asm.at_home(&homes);
        let Some((cond, found)) = test else {
            let step: i64 = if self.shape.reverse { -1 } else { 1 };
            asm.control(families::count_back(), &[], step as u64);
            return;
        };
        // The first step begins with the condition.
        asm.code[entry].imm = ((asm.code.len() - entry) * size_of::<handler::Instr>()) as u64;
        let live: Vec<Val> = homes.iter().map(|h| h.0).chain([*found]).collect();
        homes.iter().for_each(|h| asm.pin(h.1));
        asm.section(cond, &live, &[]);
        let r = asm.held_in(*found);
        asm.control(back, &[r], 0);
    }
}

/// Drops operations whose results nothing reads.
fn prune(ops: &mut Vec<Op>, carried: &[Carried]) {
    let mut needed: FxHashSet<Val> = carried.iter().map(|c| c.out).collect();
    let mut keep = vec![false; ops.len()];
    for (i, op) in ops.iter().enumerate().rev() {
        keep[i] = op.result().is_none_or(|d| needed.contains(&d));
        if keep[i] {
            let (all, count) = op.operands();
            needed.extend(&all[..count]);
        }
    }
    let mut at = keep.iter();
    ops.retain(|_| *at.next().unwrap_or(&true));
}

/// Puts each read just before its first use, and each write just after what it writes is made; where vectors fill
/// registers, reads and writes need no mask.
fn in_place(mut ops: Vec<Op>, whole: bool) -> Vec<Op> {
    for op in &mut ops {
        if let Op::Read { access, .. } | Op::Write { access, .. } | Op::Fetch { access, .. } | Op::Put { access, .. } =
            op
            && whole
            && *access == Access::Masked
        {
            *access = Access::Whole;
        }
    }
    let rest = late_reads(ops);
    let (writes, mut rest): (Vec<Op>, Vec<Op>) = rest.into_iter().partition(|op| matches!(op, Op::Write { .. }));
    for write in writes {
        let Op::Write { a, .. } = write else { continue };
        let at = rest.iter().position(|op| op.result() == Some(a)).map_or(0, |i| i + 1);
        rest.insert(at, write);
    }
    rest
}

/// Puts each read just before its first use.
pub(super) fn late_reads(ops: Vec<Op>) -> Vec<Op> {
    let (reads, mut rest): (Vec<Op>, Vec<Op>) = ops.into_iter().partition(|op| matches!(op, Op::Read { .. }));
    for read in reads {
        let at = read.result().and_then(|d| rest.iter().position(|op| op.reads(d))).unwrap_or(rest.len());
        // Before the branch or loop, whose operations may be left out, or done again.
        let mut outside = (0, 0);
        for (i, op) in rest[..at].iter().enumerate() {
            match op {
                Op::Skip { .. } | Op::Head { .. } if outside.0 == 0 => outside = (1, i),
                Op::Skip { .. } | Op::Head { .. } => outside.0 += 1,
                Op::Join | Op::Again { .. } => outside.0 -= 1,
                _ => {}
            }
        }
        rest.insert(if outside.0 == 0 { at } else { outside.1 }, read);
    }
    rest
}
