//! A loop's body as operations of the register machine: nodes on lanes, one at a time.
//!
//! Operations that were made before are not made again, and those of constants are done here.
//! Read next: `forms.rs`, which takes graphs apart into such nodes.

use super::forms::Style;
use super::ranges::{Known, Range as Numbers};
use super::windows::Array;
use crate::fused::registers::Window;
use crate::machine::handler::Handler;
use crate::machine::loops::assemble::{Assembler, Op, Val};
use crate::machine::loops::families::{self, One, Two, Width};
use crate::machine::loops::handlers::{self, Lanes};
use crate::simd::Isa;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Graph, Kind, Node, UnaryOp};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Operations of a loop at most, on elements one by one and on registers of them.
const MOST: usize = 1600;
const MOST_PACKED: usize = 1 << 14;

/// Translates graphs whose values are scalars, vectors of one length, and a few elements each.
pub(super) struct Translator {
    pub asm: Assembler,
    pub isa: Isa,
    pub lane: Width,
    pub style: Style,
    /// Whether a value was taken apart.
    pub has_cells: bool,
    /// Elements of the vectors; 1 while none was seen.
    pub elements: usize,
    /// Elements of the largest array in registers.
    pub widest: usize,
    /// For each value, whether it is the same at every step.
    pub fixed: Vec<bool>,
    pub vector: Vec<bool>,
    /// Where integers are known to be.
    pub range: Vec<Option<Numbers>>,
    /// Operations on what does not change, and those of a step.
    pub once: Vec<Op>,
    pub ops: Vec<Op>,
    /// The operations that were made of some operands, by their places among those on what changes or does not.
    made: FxHashMap<(bool, [Val; 3]), SmallVec<[u32; 2]>>,
    /// Constants: place and bits of a lane, by value.
    pub constants: Vec<(Val, u32, u64)>,
    /// The same for those whose lanes differ.
    pub patterns: Vec<(Val, u32, Vec<u64>)>,
    /// The bits of constants, and which they are by their bits.
    numbers: FxHashMap<Val, u64>,
    by_bits: FxHashMap<u64, Val>,
    /// The places of patterns in their list, by value and by lanes.
    pub pattern_at: FxHashMap<Val, usize>,
    pub by_lanes: FxHashMap<Vec<u64>, Val>,
    pub arrays: Vec<Array>,
    pub windows: Vec<Window>,
    /// Parts of the operations that may be left out: what they make is not made elsewhere.
    pub branches: Vec<Range<usize>>,
    /// What must be 1 for writes to arrays to be done: inside a branch.
    pub guard: Option<Val>,
}

impl Translator {
    pub fn new((isa, lane): (Isa, Width), style: Style, memory: u32) -> Self {
        Translator {
            asm: Assembler::new(isa, lane, memory),
            isa,
            lane,
            style,
            has_cells: false,
            elements: 1,
            widest: 1,
            fixed: Vec::new(),
            vector: Vec::new(),
            range: Vec::new(),
            once: Vec::new(),
            ops: Vec::new(),
            made: FxHashMap::default(),
            constants: Vec::new(),
            patterns: Vec::new(),
            numbers: FxHashMap::default(),
            by_bits: FxHashMap::default(),
            pattern_at: FxHashMap::default(),
            by_lanes: FxHashMap::default(),
            arrays: Vec::new(),
            windows: Vec::new(),
            branches: Vec::new(),
            guard: None,
        }
    }

    /// A new value.
    pub fn value(&mut self, fixed: bool, vector: bool) -> Val {
        self.fixed.push(fixed);
        self.vector.push(vector);
        self.range.push(None);
        self.asm.value()
    }

    /// What the lanes of a dtype are here.
    pub fn lanes(&self, d: DType) -> Option<Lanes> {
        handlers::lanes(d, self.lane)
    }

    /// Whether values of a dtype fill their lanes.
    pub fn whole(&self, d: DType) -> bool {
        self.lanes(d).is_some() && d.size() == self.lane.bytes()
    }

    /// A constant in every lane, by its bits.
    pub fn constant(&mut self, bits: u64) -> Val {
        let bits = self.lane.bits(bits);
        if let Some(&found) = self.by_bits.get(&bits) {
            return found;
        }
        let v = self.value(true, false);
        let at = self.asm.in_memory(v);
        let number = self.lane.signed(bits);
        self.range[v as usize] = Some((number, number));
        self.constants.push((v, at, bits));
        self.numbers.insert(v, bits);
        self.by_bits.insert(bits, v);
        v
    }

    /// An integer in every lane.
    pub fn integer(&mut self, x: i64) -> Val {
        self.constant(x as u64)
    }

    fn float(&mut self, x: f32) -> Val {
        self.constant(match self.lane {
            Width::Four => u64::from(x.to_bits()),
            Width::Eight => f64::from(x).to_bits(),
        })
    }

    /// The sign of a float.
    fn sign(&self) -> u64 {
        1 << (8 * self.lane.bytes() - 1)
    }

    /// The bits of a constant.
    pub fn number(&self, v: Val) -> Option<u64> {
        self.numbers.get(&v).copied()
    }

    /// What lanes of 8 bytes hold of an i32, made by an operation on such lanes: the low half, extended by its sign.
    fn extended(&mut self, d: DType, v: Val) -> Option<Val> {
        let (low, high) = Width::Four.range();
        let fits = self.range[v as usize].is_some_and(|r| r.0 >= low && r.1 <= high);
        if self.lane == Width::Four || d != DType::I32 || fits {
            return Some(v);
        }
        let half = self.constant(32);
        let up = self.two(Two::ShiftLeft, v, half)?;
        self.two(Two::ShiftRightSigned, up, half)
    }

    /// A value that an operation on these makes.
    pub fn result(&mut self, operands: &[Val]) -> Val {
        let fixed = operands.iter().all(|&v| self.fixed[v as usize]);
        let vector = operands.iter().any(|&v| self.vector[v as usize]);
        self.value(fixed, vector)
    }

    /// Appends an operation that makes `d`, or finds where it was made; gives the value.
    pub fn emit(&mut self, op: Op, d: Val) -> Option<Val> {
        let fixed = self.fixed[d as usize];
        let list = if fixed { &self.once } else { &self.ops };
        let done = |i: usize| fixed || !self.branches.iter().any(|b| b.contains(&i));
        let key = (fixed, op.operands().0);
        let mut before = self.made.get(&key).into_iter().flatten().rev().map(|&i| i as usize);
        if let Some(i) = before.find(|&i| list.get(i).is_some_and(|made| made.same_as(&op)) && done(i)) {
            return list[i].result();
        }
        let at = list.len() as u32;
        self.push(op, fixed)?;
        self.made.entry(key).or_default().push(at);
        Some(d)
    }

    /// Appends an operation that is done at every step.
    pub fn write(&mut self, op: Op) -> Option<()> {
        self.push(op, false)
    }

    fn push(&mut self, op: Op, fixed: bool) -> Option<()> {
        let most = if self.style == Style::Packed { MOST_PACKED } else { MOST };
        if self.once.len() + self.ops.len() >= most {
            return None;
        }
        if fixed {
            self.once.push(op);
        } else {
            self.ops.push(op);
        }
        Some(())
    }

    /// d = f(a, b), or what that is known to be.
    pub fn two(&mut self, op: Two, a: Val, b: Val) -> Option<Val> {
        let range = match self.known(op, a, b) {
            Some(Known::Number(bits)) => return Some(self.constant(bits)),
            Some(Known::Operand(v)) => return Some(v),
            Some(Known::Within(range)) => Some(range),
            None => None,
        };
        if !families::has(self.isa, op, self.lane) {
            return self.without(op, a, b);
        }
        let d = self.result(&[a, b]);
        self.range[d as usize] = range;
        if op == Two::Permute {
            // One number names the same element in all lanes.
            self.vector[d as usize] = self.vector[b as usize];
        }
        self.emit(Op::Two { op, d, a, b }, d)
    }

    /// d = f(a, b) for an operation that the instruction set lacks: all are on signed lanes of 8 bytes.
    fn without(&mut self, op: Two, a: Val, b: Val) -> Option<Val> {
        let of = match op {
            Two::MaxInt | Two::MinInt => {
                let more = self.two(Two::GtInt, a, b)?;
                return if op == Two::MaxInt { self.choose(more, b, a) } else { self.choose(more, a, b) };
            }
            Two::MulInt => BinaryOp::Mul,
            Two::ShiftRightSigned => BinaryOp::ShiftRightArithmetic,
            _ => return None,
        };
        let code = handlers::binary(of, DType::I64, self.lane)?;
        self.call_two(code, a, b)
    }

    fn one(&mut self, op: One, a: Val) -> Option<Val> {
        let d = self.result(&[a]);
        self.emit(Op::One { op, d, a }, d)
    }

    /// a · b + c, rounded once.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Option<Val> {
        let d = self.result(&[a, b, c]);
        self.emit(Op::Fma { d, a, b, c }, d)
    }

    /// Lanes that a handler need compute for a value.
    fn count(&self, v: Val) -> u16 {
        if self.vector[v as usize] { 16 } else { 1 }
    }

    fn call_two(&mut self, code: Handler, a: Val, b: Val) -> Option<Val> {
        let d = self.result(&[a, b]);
        let lanes = self.count(d);
        self.call_on((code, lanes), (a, b), d)
    }

    /// A handler on so many lanes of two values, which makes `d`.
    pub fn call_on(&mut self, (code, lanes): (Handler, u16), (a, b): (Val, Val), d: Val) -> Option<Val> {
        self.emit(Op::CallTwo { code, imm: 0, lanes, d, a, b }, d)
    }

    fn call(&mut self, code: Handler, imm: u64, a: Val) -> Option<Val> {
        let d = self.result(&[a]);
        let lanes = self.count(d);
        self.emit(Op::Call { code, imm, lanes, d, a }, d)
    }

    /// One node, its operands being the values `x`.
    pub fn node(&mut self, g: &Graph, node: &Node, x: &[Val]) -> Option<Val> {
        let out = g.ty(node.first);
        let d = |i: usize| g.ty(node.inputs[i]).dtype;
        match &node.kind {
            Kind::Const(s) => Some(self.constant(bits(*s))),
            Kind::Dense(bytes) if out.size() == 1 => Some(self.constant(bits(Scalar::from_bytes(out.dtype, bytes)))),
            Kind::Reshape | Kind::Broadcast(_) | Kind::Barrier => Some(x[0]),
            // A lane is its bits, whatever they say.
            Kind::Bitcast if self.whole(d(0)) && self.whole(out.dtype) => Some(x[0]),
            Kind::Unary(op) => self.unary(*op, d(0), x[0]),
            Kind::Binary(op) => self.binary(*op, d(0), x[0], x[1]),
            Kind::Compare(op) => self.compare(*op, d(0), x[0], x[1]),
            Kind::Select if d(0).is_bool() && x.len() == 3 => self.choose(x[0], x[1], x[2]),
            Kind::Clamp => {
                let low = self.binary(BinaryOp::Max, d(1), x[1], x[0])?;
                self.binary(BinaryOp::Min, d(1), low, x[2])
            }
            Kind::IntegerPow(n) if d(0).is_float() && (1..=4).contains(&n.abs()) => self.power(*n, d(0), x[0]),
            Kind::Convert => self.convert(&node.kind, d(0), out.dtype, x[0]),
            Kind::DivideBy(division) if d(0) == DType::I32 && self.lane == Width::Four => {
                self.divided(&node.kind, *division, x[0])
            }
            kind @ (Kind::IntegerPow(_) | Kind::DivideBy(_) | Kind::ReducePrecision { .. }) => {
                let (code, imm) = handlers::other(kind, d(0), out.dtype, self.lane)?;
                self.call(code, imm, x[0])
            }
            _ => None,
        }
    }

    pub fn unary(&mut self, op: UnaryOp, d: DType, x: Val) -> Option<Val> {
        let lanes = self.lanes(d)?;
        match (op, lanes) {
            (UnaryOp::Not, _) if d.is_bool() => {
                let one = self.constant(1);
                self.two(Two::Xor, x, one)
            }
            _ if d.is_bool() => None,
            (UnaryOp::Neg, Lanes::Float) => {
                let sign = self.constant(self.sign());
                self.two(Two::Xor, x, sign)
            }
            (UnaryOp::Abs, Lanes::Float) => {
                let rest = self.constant(!self.sign());
                self.two(Two::And, x, rest)
            }
            (UnaryOp::Floor, Lanes::Float) => self.one(One::Floor, x),
            (UnaryOp::Ceil, Lanes::Float) => self.one(One::Ceil, x),
            (UnaryOp::RoundEven, Lanes::Float) => self.one(One::RoundEven, x),
            (UnaryOp::Sqrt, Lanes::Float) => self.one(One::Sqrt, x),
            (UnaryOp::Rsqrt, Lanes::Float) => {
                let root = self.one(One::Sqrt, x)?;
                let one = self.float(1.0);
                self.two(Two::Div, one, root)
            }
            (UnaryOp::Neg, _) => {
                let zero = self.constant(0);
                let negative = self.two(Two::SubInt, zero, x)?;
                self.extended(d, negative)
            }
            (UnaryOp::Not, Lanes::Signed | Lanes::Unsigned) => {
                let all = self.constant(!0);
                self.two(Two::Xor, x, all)
            }
            _ => {
                let code = handlers::unary(op, d, self.lane)?;
                self.call(code, 0, x)
            }
        }
    }

    pub fn binary(&mut self, op: BinaryOp, d: DType, x: Val, y: Val) -> Option<Val> {
        use BinaryOp::*;
        let lanes = self.lanes(d)?;
        let half = self.lane == Width::Eight && d == DType::I32;
        if matches!(op, Div | Rem)
            && let Some(by) = self.small_divisor(lanes, x, y)
        {
            return self.small_division(op == Rem, x, by);
        }
        let simple = match (op, lanes) {
            _ if d.is_bool() => Some(match op {
                Add | Max | Or => Two::Or,
                Mul | Min | And => Two::And,
                Xor | Sub => Two::Xor,
                _ => return None,
            }),
            (Add, Lanes::Float) => Some(Two::Add),
            (Sub, Lanes::Float) => Some(Two::Sub),
            (Mul, Lanes::Float) => Some(Two::Mul),
            (Div, Lanes::Float) => Some(Two::Div),
            (Max, Lanes::Float) => Some(Two::Max),
            (Min, Lanes::Float) => Some(Two::Min),
            (_, Lanes::Float) => None,
            (Add, _) => Some(Two::AddInt),
            (Sub, _) => Some(Two::SubInt),
            (Mul, _) => Some(Two::MulInt),
            (And, _) => Some(Two::And),
            (Or, _) => Some(Two::Or),
            (Xor, _) => Some(Two::Xor),
            (ShiftLeft, _) => Some(Two::ShiftLeft),
            (ShiftRightLogical, _) if !half => Some(Two::ShiftRight),
            (ShiftRightArithmetic, _) => Some(Two::ShiftRightSigned),
            (Max, Lanes::Signed) => Some(Two::MaxInt),
            (Min, Lanes::Signed) => Some(Two::MinInt),
            _ => None,
        };
        match simple {
            Some(op) => {
                let made = self.two(op, x, y)?;
                self.extended(d, made)
            }
            None => {
                let code = handlers::binary(op, d, self.lane)?;
                self.call_two(code, x, y)
            }
        }
    }

    /// A constant that a number known to be in 0..2³¹ is divided by in lanes of 8 bytes.
    fn small_divisor(&self, lanes: Lanes, x: Val, y: Val) -> Option<u64> {
        let (low, high) = self.range[x as usize]?;
        let small = low >= 0 && high < 1 << 31 && self.lane == Width::Eight && lanes == Lanes::Signed;
        let by = self.number(y).filter(|&by| by > 0 && by < 1 << 31)?;
        (small && families::has(self.isa, Two::MulInt, self.lane)).then_some(by)
    }

    /// The quotient, or the remainder, of such a division: x · ⌈2ˢ / by⌉ / 2ˢ for s = 31 + ⌈log₂ by⌉, which is exact
    /// for x below 2³¹ (Granlund and Montgomery, "Division by invariant integers using multiplication", 1994).
    fn small_division(&mut self, rest: bool, x: Val, by: u64) -> Option<Val> {
        let most = self.range[x as usize]?.1 / by as i64;
        let shift = 31 + u64::from(by.next_power_of_two().trailing_zeros());
        let (factor, shift) = (self.constant((1u64 << shift).div_ceil(by)), self.constant(shift));
        let product = self.two(Two::MulInt, x, factor)?;
        let quotient = self.two(Two::ShiftRight, product, shift)?;
        self.range[quotient as usize] = Some((0, most));
        if !rest {
            return Some(quotient);
        }
        let by_value = self.constant(by);
        let multiple = self.two(Two::MulInt, quotient, by_value)?;
        let left = self.two(Two::SubInt, x, multiple)?;
        self.range[left as usize] = Some((0, by as i64 - 1));
        Some(left)
    }

    /// Part of an i32 divided by a constant.
    fn divided(&mut self, kind: &Kind, division: Division, x: Val) -> Option<Val> {
        let positive = self.range[x as usize].is_some_and(|r| r.0 >= 0);
        let by = u32::try_from(division.by).ok().filter(|by| by.is_power_of_two() && *by <= 1 << 30);
        let rest = match division.part {
            DivisionPart::Modulo => Some(true),
            DivisionPart::Floor => Some(false),
            DivisionPart::Remainder => positive.then_some(true),
            DivisionPart::Quotient => positive.then_some(false),
        };
        if let (Some(by), Some(rest)) = (by, rest) {
            let number = self.constant(u64::from(if rest { by - 1 } else { by.trailing_zeros() }));
            return self.two(if rest { Two::And } else { Two::ShiftRightSigned }, x, number);
        }
        let (code, imm) = handlers::other(kind, DType::I32, DType::I32, self.lane)?;
        let d = self.call(code, imm, x)?;
        if division.part == DivisionPart::Modulo {
            self.range[d as usize] = Some((0, division.by - 1));
        }
        Some(d)
    }

    pub fn compare(&mut self, op: CompareOp, d: DType, x: Val, y: Val) -> Option<Val> {
        use CompareOp::*;
        let lanes = self.lanes(d)?;
        let (op, a, b, flip) = match (op, lanes) {
            (Eq, Lanes::Float) => (Two::Eq, x, y, false),
            (Ne, Lanes::Float) => (Two::Ne, x, y, false),
            (Lt, Lanes::Float) => (Two::Lt, x, y, false),
            (Le, Lanes::Float) => (Two::Le, x, y, false),
            (Gt, Lanes::Float) => (Two::Lt, y, x, false),
            (Ge, Lanes::Float) => (Two::Le, y, x, false),
            (Eq | EqTotal, Lanes::Signed | Lanes::Unsigned) => (Two::EqInt, x, y, false),
            (Ne, Lanes::Signed | Lanes::Unsigned) => (Two::EqInt, x, y, true),
            // The lanes of bool are small.
            (Lt | LtTotal, _) if lanes == Lanes::Signed || d.is_bool() => (Two::GtInt, y, x, false),
            (Gt, _) if lanes == Lanes::Signed || d.is_bool() => (Two::GtInt, x, y, false),
            (Le | LeTotal, _) if lanes == Lanes::Signed || d.is_bool() => (Two::GtInt, x, y, true),
            (Ge, _) if lanes == Lanes::Signed || d.is_bool() => (Two::GtInt, y, x, true),
            _ => {
                let code = handlers::compare(op, d, self.lane)?;
                return self.call_two(code, x, y);
            }
        };
        let found = self.two(op, a, b)?;
        if !flip {
            return Some(found);
        }
        let one = self.constant(1);
        self.two(Two::Xor, found, one)
    }

    /// x ** n in the order of `elementwise::float_power`.
    fn power(&mut self, n: i32, d: DType, x: Val) -> Option<Val> {
        let up = match n.abs() {
            1 => x,
            2 => self.two(Two::Mul, x, x)?,
            3 if n > 0 => {
                let square = self.two(Two::Mul, x, x)?;
                self.two(Two::Mul, square, x)?
            }
            4 if n > 0 => {
                let square = self.two(Two::Mul, x, x)?;
                self.two(Two::Mul, square, square)?
            }
            _ => {
                let (code, imm) = handlers::other(&Kind::IntegerPow(n), d, d, self.lane)?;
                return self.call(code, imm, x);
            }
        };
        if n > 0 {
            return Some(up);
        }
        let one = self.float(1.0);
        self.two(Two::Div, one, up)
    }

    fn convert(&mut self, kind: &Kind, from: DType, to: DType, x: Val) -> Option<Val> {
        let (a, b) = (self.lanes(from)?, self.lanes(to)?);
        if from == to {
            return Some(x);
        }
        if !to.is_bool() && a != Lanes::Float && b != Lanes::Float {
            return self.extended(to, x);
        }
        match (a, b) {
            (Lanes::Float, _) if to.is_bool() => {
                let zero = self.float(0.0);
                self.two(Two::Ne, x, zero)
            }
            _ if to.is_bool() => {
                let zero = self.constant(0);
                self.compare(CompareOp::Ne, from, x, zero)
            }
            (_, Lanes::Float) if (a == Lanes::Signed || from.is_bool()) && families::converts(self.isa, self.lane) => {
                self.one(One::ToFloat, x)
            }
            _ => {
                let (code, imm) = handlers::other(kind, from, to, self.lane)?;
                self.call(code, imm, x)
            }
        }
    }
}

/// A number's lane: signed integers are extended.
pub(super) fn bits(s: Scalar) -> u64 {
    let bytes = s.to_bytes();
    match s.dtype.size() {
        1 => u64::from(bytes[0]),
        4 => {
            let low = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            if s.dtype.is_signed() { low as i32 as u64 } else { u64::from(low) }
        }
        _ => u64::from_le_bytes(std::array::from_fn(|i| bytes[i])),
    }
}
