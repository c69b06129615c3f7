//! From a loop's node to its program.

use super::translate::{Translator, passes};
use super::{Counter, Input, Limit, RegisterLoop, Stream, Trips};
use crate::machine::handler;
use crate::machine::loops::assemble::{Home, Op, PLACE, Val};
use crate::machine::loops::families::{self, Access, Two};
use crate::machine::{self, Isa};
use ferrax_loops::{Graph, Kind, Node, Type};

/// Registers of elements at most: longer vectors are better stepped through as tiles.
const MOST_REGISTERS: usize = 8;
/// Bytes of the loop's memory at most.
const MOST_MEMORY: u32 = 32 << 10;

/// What a loop's operands are, by position.
struct Shape<'g> {
    body: &'g Graph,
    cond: Option<&'g Graph>,
    /// Constants of the body, which come just before the carried operands; those of the condition come first.
    consts: usize,
    carry: usize,
    first_carry: usize,
    length: usize,
    reverse: bool,
}

/// A carried value that the loop computes.
struct Carried {
    index: usize,
    param: Val,
    out: Val,
    home: Home,
}

/// The program of a loop that fits the registers.
pub(crate) fn plan(g: &Graph, node: &Node) -> Option<RegisterLoop> {
    let isa = machine::isa()?;
    let shape = match &node.kind {
        Kind::While { cond, body, cond_consts, body_consts } => Shape {
            body,
            cond: Some(cond),
            consts: *body_consts,
            carry: node.inputs.len() - cond_consts - body_consts,
            first_carry: cond_consts + body_consts,
            length: 0,
            reverse: false,
        },
        Kind::Scan { body, length, reverse, consts, carry } => Shape {
            body,
            cond: None,
            consts: *consts,
            carry: *carry,
            first_carry: *consts,
            length: *length,
            reverse: *reverse,
        },
        _ => return None,
    };
    let narrow = Planner::new(g, node, &shape, false).build()?;
    let found = match isa {
        Isa::Avx512 if narrow.elements > 8 => Planner::new(g, node, &shape, true).build()?,
        _ => narrow,
    };
    (found.elements <= found.lanes() * MOST_REGISTERS).then_some(found)
}

/// A loop being planned.
struct Planner<'g> {
    g: &'g Graph,
    node: &'g Node,
    shape: &'g Shape<'g>,
    wide: bool,
    t: Translator,
    inputs: Vec<Input>,
    streams: Vec<Stream>,
    carried: Vec<Carried>,
    copies: Vec<(usize, usize, usize)>,
}

impl<'g> Planner<'g> {
    fn new(g: &'g Graph, node: &'g Node, shape: &'g Shape<'g>, wide: bool) -> Self {
        Planner {
            g,
            node,
            shape,
            wide,
            // The first place holds the mask.
            t: Translator::new(wide, PLACE),
            inputs: Vec::new(),
            streams: Vec::new(),
            carried: Vec::new(),
            copies: Vec::new(),
        }
    }

    /// An operand as a value in the loop's memory.
    fn input(&mut self, operand: usize) -> Option<Val> {
        let ty = self.g.ty(self.node.inputs[operand]);
        let vector = self.t.fits(ty)?;
        let v = self.t.value(true, vector);
        let at = self.t.asm.in_memory(v);
        self.inputs.push(Input { at, operand, vector, flag: ty.dtype.is_bool() });
        Some(v)
    }

    /// The carried values: what stays as it is is read from memory.
    fn carry(&mut self) -> Option<Vec<Val>> {
        let mut values = Vec::new();
        for k in 0..self.shape.carry {
            let operand = self.shape.first_carry + k;
            if passes(self.shape.body, k, self.shape.consts + k) {
                self.copies.push((operand, k, self.g.ty(self.node.inputs[operand]).bytes()));
                values.push(self.input(operand)?);
                continue;
            }
            let vector = self.t.fits(self.g.ty(self.node.inputs[operand]))?;
            let param = self.t.value(false, vector);
            self.carried.push(Carried { index: k, param, out: 0, home: Home::Memory(0) });
            values.push(param);
        }
        Some(values)
    }

    /// An array that is stepped through, whose element of a step has this type: how that is reached.
    fn stream(&mut self, ty: &Type, index: usize, result: bool) -> Option<(Access, u32)> {
        let vector = self.t.fits(ty)?;
        let access = match (vector, ty.dtype.is_bool()) {
            (true, true) => return None,
            (true, false) => Access::Masked,
            (false, true) => Access::Flag,
            (false, false) => Access::Scalar,
        };
        let per_place = PLACE as usize / size_of::<*mut u8>();
        let at = match self.streams.last() {
            Some(last) if !self.streams.len().is_multiple_of(per_place) => last.at + size_of::<*mut u8>() as u32,
            _ => self.t.asm.place(),
        };
        self.streams.push(Stream { at, index, result, vector });
        Some((access, at))
    }

    /// Translates the body; gives its operations and the values of the carried operands.
    fn body(&mut self) -> Option<(Vec<Op>, Vec<Val>)> {
        let Shape { body, consts, carry, first_carry, .. } = *self.shape;
        let mut args: Vec<Val> = (first_carry - consts..first_carry).map(|k| self.input(k)).collect::<Option<_>>()?;
        let carry_values = self.carry()?;
        args.extend(&carry_values);
        for (k, ty) in body.types[consts + carry..body.params].iter().enumerate() {
            let (access, pointer) = self.stream(ty, first_carry + carry + k, false)?;
            let d = self.t.value(false, ty.size() > 1);
            self.t.ops.push(Op::Read { access, pointer, stride: ty.bytes(), d });
            args.push(d);
        }
        let outs = self.t.graph(body, &args)?;
        for (k, &a) in outs.iter().enumerate().skip(carry) {
            let ty = body.ty(body.outputs[k]);
            let (access, pointer) = self.stream(ty, k, true)?;
            self.t.ops.push(Op::Write { access, pointer, stride: ty.bytes(), a });
        }
        self.carried.iter_mut().for_each(|c| c.out = outs[c.index]);
        Some((std::mem::take(&mut self.t.ops), carry_values))
    }

    fn build(mut self) -> Option<RegisterLoop> {
        let (mut ops, carry_values) = self.body()?;
        let mut test = None;
        if let Some(cond) = self.shape.cond {
            let cond_consts = self.shape.first_carry - self.shape.consts;
            let mut args: Vec<Val> = (0..cond_consts).map(|k| self.input(k)).collect::<Option<_>>()?;
            args.extend(carry_values);
            let found = self.t.graph(cond, &args)?[0];
            test = Some((std::mem::take(&mut self.t.ops), found)).filter(|_| !self.t.vector[found as usize]);
            test.as_ref()?;
        }
        let trips = match &test {
            None => Trips::Fixed(self.shape.length),
            Some((cond, found)) => self.count(&ops, cond, *found).unwrap_or(Trips::Tested),
        };
        let test = test.filter(|_| matches!(trips, Trips::Tested));
        let counters = if test.is_none() { self.counters(&mut ops) } else { Vec::new() };
        prune(&mut ops, &self.carried);
        let ops = in_place(ops, self.t.elements.is_multiple_of(if self.wide { 16 } else { 8 }));
        self.assemble(Parts { ops, counters, trips, test })
    }
}

/// What `assemble` puts together.
struct Parts {
    ops: Vec<Op>,
    counters: Vec<Counter>,
    trips: Trips,
    test: Option<(Vec<Op>, Val)>,
}

impl Planner<'_> {
    /// The bits of a constant.
    fn number(&self, v: Val) -> Option<u32> {
        self.t.constants.iter().find(|c| c.0 == v).map(|c| c.2[0])
    }

    /// The constant by which an operation raises a value.
    fn raise(&self, op: &Op, v: Val) -> Option<u32> {
        match *op {
            Op::Two { op: Two::AddInt, a, b, .. } if a == v => self.number(b),
            Op::Two { op: Two::AddInt, a, b, .. } if b == v => self.number(a),
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
        let limit = match self.number(limit) {
            Some(bits) => Limit::Number(bits as i32),
            None => Limit::Operand(self.operand(limit)?),
        };
        Some(Trips::Below { first: self.shape.first_carry + counter.index, limit })
    }

    /// The operand that a value is.
    fn operand(&self, v: Val) -> Option<usize> {
        let at = self.t.asm.memory_of(v)?;
        self.inputs.iter().find(|i| i.at == at && !i.flag).map(|i| i.operand)
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
            let elsewhere = outs.iter().filter(|&&v| v == c.out).count() > 1 || outs.contains(&c.param);
            if elsewhere || self.t.vector[c.param as usize] || read(c.param, at) || read(c.out, usize::MAX) {
                return true;
            }
            ops.remove(at);
            let operand = self.shape.first_carry + c.index;
            counters.push(Counter { operand, result: c.index, step: step as i32 });
            false
        });
        self.carried = carried;
        counters
    }

    fn assemble(mut self, parts: Parts) -> Option<RegisterLoop> {
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
        let of_carried = |k: usize| self.shape.first_carry + k;
        let bytes = |k: usize| self.g.ty(self.node.inputs[of_carried(k)]).bytes();
        (asm.memory <= MOST_MEMORY).then(|| RegisterLoop {
            wide: self.wide,
            elements: self.t.elements,
            code: std::mem::take(&mut asm.code),
            head,
            constants: self.t.constants.iter().map(|c| (c.1, c.2)).collect(),
            places: (asm.memory / PLACE) as usize,
            inputs: self.inputs,
            streams: self.streams,
            outputs,
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
            let (vector, flag) = (ty.size() > 1, ty.dtype.is_bool());
            let at = match c.home {
                Home::Memory(at) => at,
                Home::Register(_) => self.t.asm.place(),
            };
            self.inputs.push(Input { at, operand, vector, flag });
            outputs.push(Input { at, operand: c.index, vector, flag });
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
        asm.control(families::test_back(), &[r], 0);
    }
}

/// Drops operations whose results nothing reads.
fn prune(ops: &mut Vec<Op>, carried: &[Carried]) {
    let mut needed: Vec<Val> = carried.iter().map(|c| c.out).collect();
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
        if let Op::Read { access, .. } | Op::Write { access, .. } = op
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
        rest.insert(at, read);
    }
    rest
}
