//! A loop's body as operations of the register machine: nodes on lanes, one at a time.
//!
//! Operations that were made before are not made again, and those of constants are done here.
//! Read next: `forms.rs`, which takes graphs apart into such nodes.

use super::ranges::{Known, Range};
use super::windows::{Array, Window};
use crate::machine::Isa;
use crate::machine::loops::assemble::{Assembler, Op, Val};
use crate::machine::loops::families::{One, Two};
use crate::machine::loops::handlers;
use crate::machine::table::Lanes;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Graph, Kind, Node, UnaryOp};

/// Operations of a loop at most: longer bodies have their own cost a step.
const MOST: usize = 400;

/// Translates graphs whose values are scalars, vectors of one length, and a few elements each.
pub(super) struct Translator {
    pub asm: Assembler,
    /// Whether there may be vectors.
    pub vectors: bool,
    /// Whether a value was taken apart.
    pub has_cells: bool,
    /// Elements of the vectors; 1 while none was seen.
    pub elements: usize,
    /// For each value, whether it is the same at every step.
    pub fixed: Vec<bool>,
    pub vector: Vec<bool>,
    /// Where integers are known to be.
    pub range: Vec<Option<Range>>,
    /// Operations on what does not change, and those of a step.
    pub once: Vec<Op>,
    pub ops: Vec<Op>,
    /// Constants: place and lanes, by value.
    pub constants: Vec<(Val, u32, [u32; 16])>,
    pub arrays: Vec<Array>,
    pub windows: Vec<Window>,
    /// What must be 1 for writes to arrays to be done: inside a branch.
    pub guard: Option<Val>,
}

impl Translator {
    pub fn new(isa: Isa, vectors: bool, memory: u32) -> Self {
        Translator {
            asm: Assembler::new(isa, memory),
            vectors,
            has_cells: false,
            elements: 1,
            fixed: Vec::new(),
            vector: Vec::new(),
            range: Vec::new(),
            once: Vec::new(),
            ops: Vec::new(),
            constants: Vec::new(),
            arrays: Vec::new(),
            windows: Vec::new(),
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

    /// A constant in every lane.
    pub fn constant(&mut self, bits: u32) -> Val {
        let lanes = [bits; 16];
        if let Some(found) = self.constants.iter().find(|c| c.2 == lanes) {
            return found.0;
        }
        let v = self.value(true, false);
        let at = self.asm.in_memory(v);
        self.range[v as usize] = Some((i64::from(bits as i32), i64::from(bits as i32)));
        self.constants.push((v, at, lanes));
        v
    }

    fn float(&mut self, x: f32) -> Val {
        self.constant(x.to_bits())
    }

    /// The bits of a constant.
    pub fn number(&self, v: Val) -> Option<u32> {
        self.constants.iter().find(|c| c.0 == v).map(|c| c.2[0])
    }

    /// A value that an operation on these makes.
    pub fn result(&mut self, operands: &[Val]) -> Val {
        let fixed = operands.iter().all(|&v| self.fixed[v as usize]);
        let vector = operands.iter().any(|&v| self.vector[v as usize]);
        self.value(fixed, vector)
    }

    /// Appends an operation that makes `d`, or finds where it was made; gives the value.
    pub fn emit(&mut self, op: Op, d: Val) -> Option<Val> {
        let list = if self.fixed[d as usize] { &self.once } else { &self.ops };
        if let Some(found) = list.iter().rev().find(|made| made.same_as(&op)) {
            return found.result();
        }
        self.push(op, self.fixed[d as usize])?;
        Some(d)
    }

    /// Appends an operation that is done at every step.
    pub fn write(&mut self, op: Op) -> Option<()> {
        self.push(op, false)
    }

    fn push(&mut self, op: Op, fixed: bool) -> Option<()> {
        if self.once.len() + self.ops.len() >= MOST {
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
        let d = self.result(&[a, b]);
        self.range[d as usize] = range;
        self.emit(Op::Two { op, d, a, b }, d)
    }

    fn one(&mut self, op: One, a: Val) -> Option<Val> {
        let d = self.result(&[a]);
        self.emit(Op::One { op, d, a }, d)
    }

    /// Lanes that a handler need compute for a value.
    fn lanes(&self, v: Val) -> u16 {
        if self.vector[v as usize] { 16 } else { 1 }
    }

    fn call_two(&mut self, code: crate::machine::handler::Handler, a: Val, b: Val) -> Option<Val> {
        let d = self.result(&[a, b]);
        let lanes = self.lanes(d);
        self.emit(Op::CallTwo { code, lanes, d, a, b }, d)
    }

    fn call(&mut self, code: crate::machine::handler::Handler, imm: u64, a: Val) -> Option<Val> {
        let d = self.result(&[a]);
        let lanes = self.lanes(d);
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
            Kind::Unary(op) => self.unary(*op, d(0), x[0]),
            Kind::Binary(op) => self.binary(*op, d(0), x[0], x[1]),
            Kind::Compare(op) => self.compare(*op, d(0), x[0], x[1]),
            Kind::Select if d(0).is_bool() && x.len() == 3 => self.choose(x[0], x[1], x[2]),
            Kind::Clamp => {
                let low = self.binary(BinaryOp::Max, d(1), x[1], x[0])?;
                self.binary(BinaryOp::Min, d(1), low, x[2])
            }
            Kind::IntegerPow(n) if d(0) == DType::F32 && (1..=4).contains(&n.abs()) => self.power(*n, x[0]),
            Kind::Convert => self.convert(&node.kind, d(0), out.dtype, x[0]),
            Kind::DivideBy(division) if d(0) == DType::I32 => self.divided(&node.kind, *division, x[0]),
            kind @ (Kind::IntegerPow(_) | Kind::DivideBy(_) | Kind::ReducePrecision { .. }) => {
                let (code, imm) = handlers::other(kind, d(0), out.dtype)?;
                self.call(code, imm, x[0])
            }
            _ => None,
        }
    }

    fn unary(&mut self, op: UnaryOp, d: DType, x: Val) -> Option<Val> {
        let lanes = handlers::lanes(d)?;
        match (op, lanes) {
            (UnaryOp::Not, _) if d.is_bool() => {
                let one = self.constant(1);
                self.two(Two::Xor, x, one)
            }
            _ if d.is_bool() => None,
            (UnaryOp::Neg, Lanes::F32) => {
                let sign = self.constant(1 << 31);
                self.two(Two::Xor, x, sign)
            }
            (UnaryOp::Abs, Lanes::F32) => {
                let rest = self.constant(!(1 << 31));
                self.two(Two::And, x, rest)
            }
            (UnaryOp::Floor, Lanes::F32) => self.one(One::Floor, x),
            (UnaryOp::Ceil, Lanes::F32) => self.one(One::Ceil, x),
            (UnaryOp::RoundEven, Lanes::F32) => self.one(One::RoundEven, x),
            (UnaryOp::Sqrt, Lanes::F32) => self.one(One::Sqrt, x),
            (UnaryOp::Rsqrt, Lanes::F32) => {
                let root = self.one(One::Sqrt, x)?;
                let one = self.float(1.0);
                self.two(Two::Div, one, root)
            }
            (UnaryOp::Neg, _) => {
                let zero = self.constant(0);
                self.two(Two::SubInt, zero, x)
            }
            (UnaryOp::Not, Lanes::I32 | Lanes::U32) => {
                let all = self.constant(!0);
                self.two(Two::Xor, x, all)
            }
            _ => {
                let code = handlers::unary(op, d)?;
                self.call(code, 0, x)
            }
        }
    }

    pub fn binary(&mut self, op: BinaryOp, d: DType, x: Val, y: Val) -> Option<Val> {
        use BinaryOp::*;
        let lanes = handlers::lanes(d)?;
        let simple = match (op, lanes) {
            _ if d.is_bool() => Some(match op {
                Add | Max | Or => Two::Or,
                Mul | Min | And => Two::And,
                Xor | Sub => Two::Xor,
                _ => return None,
            }),
            (Add, Lanes::F32) => Some(Two::Add),
            (Sub, Lanes::F32) => Some(Two::Sub),
            (Mul, Lanes::F32) => Some(Two::Mul),
            (Div, Lanes::F32) => Some(Two::Div),
            (_, Lanes::F32) => None,
            (Add, _) => Some(Two::AddInt),
            (Sub, _) => Some(Two::SubInt),
            (Mul, _) => Some(Two::MulInt),
            (And, _) => Some(Two::And),
            (Or, _) => Some(Two::Or),
            (Xor, _) => Some(Two::Xor),
            (ShiftLeft, _) => Some(Two::ShiftLeft),
            (ShiftRightLogical, _) => Some(Two::ShiftRight),
            (ShiftRightArithmetic, _) => Some(Two::ShiftRightSigned),
            (Max, Lanes::I32) => Some(Two::MaxInt),
            (Min, Lanes::I32) => Some(Two::MinInt),
            _ => None,
        };
        match simple {
            Some(op) => self.two(op, x, y),
            None => {
                let code = handlers::binary(op, d)?;
                self.call_two(code, x, y)
            }
        }
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
            let number = self.constant(if rest { by - 1 } else { by.trailing_zeros() });
            return self.two(if rest { Two::And } else { Two::ShiftRightSigned }, x, number);
        }
        let (code, imm) = handlers::other(kind, DType::I32, DType::I32)?;
        let d = self.call(code, imm, x)?;
        if division.part == DivisionPart::Modulo {
            self.range[d as usize] = Some((0, division.by - 1));
        }
        Some(d)
    }

    fn compare(&mut self, op: CompareOp, d: DType, x: Val, y: Val) -> Option<Val> {
        use CompareOp::*;
        let lanes = handlers::lanes(d)?;
        let (op, a, b, flip) = match (op, lanes) {
            (Eq, Lanes::F32) => (Two::Eq, x, y, false),
            (Ne, Lanes::F32) => (Two::Ne, x, y, false),
            (Lt, Lanes::F32) => (Two::Lt, x, y, false),
            (Le, Lanes::F32) => (Two::Le, x, y, false),
            (Gt, Lanes::F32) => (Two::Lt, y, x, false),
            (Ge, Lanes::F32) => (Two::Le, y, x, false),
            (Eq | EqTotal, Lanes::I32 | Lanes::U32) => (Two::EqInt, x, y, false),
            (Ne, Lanes::I32 | Lanes::U32) => (Two::EqInt, x, y, true),
            // The lanes of bool are small.
            (Lt | LtTotal, _) if lanes == Lanes::I32 || d.is_bool() => (Two::GtInt, y, x, false),
            (Gt, _) if lanes == Lanes::I32 || d.is_bool() => (Two::GtInt, x, y, false),
            (Le | LeTotal, _) if lanes == Lanes::I32 || d.is_bool() => (Two::GtInt, x, y, true),
            (Ge, _) if lanes == Lanes::I32 || d.is_bool() => (Two::GtInt, y, x, true),
            _ => {
                let code = handlers::compare(op, d)?;
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
    fn power(&mut self, n: i32, x: Val) -> Option<Val> {
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
                let (code, imm) = handlers::other(&Kind::IntegerPow(n), DType::F32, DType::F32)?;
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
        let (a, b) = (handlers::lanes(from)?, handlers::lanes(to)?);
        if from == to || (!to.is_bool() && a != Lanes::F32 && b != Lanes::F32) {
            return Some(x);
        }
        match (a, to) {
            (Lanes::F32, DType::Bool) => {
                let zero = self.float(0.0);
                self.two(Two::Ne, x, zero)
            }
            (_, DType::Bool) => {
                let zero = self.constant(0);
                self.compare(CompareOp::Ne, from, x, zero)
            }
            (_, DType::F32) if a == Lanes::I32 || from.is_bool() => self.one(One::ToFloat, x),
            _ => {
                let (code, imm) = handlers::other(kind, from, to)?;
                self.call(code, imm, x)
            }
        }
    }
}

/// A number's lane.
pub(super) fn bits(s: Scalar) -> u32 {
    let bytes = s.to_bytes();
    if s.dtype.size() == 1 { u32::from(bytes[0]) } else { u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) }
}
