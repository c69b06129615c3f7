//! What is known of integers before a loop runs: constants, the bounds of counters, and what follows from them.
//!
//! An index that counts from 0 needs no comparison with 0, and its remainder by a power of two is its last bits. A range
//! holds at every step or not at all: sums that might wrap have none.

use super::translate::Translator;
use crate::machine::loops::assemble::Val;
use crate::machine::loops::families::{Two, Width};
use ferrax_base::DType;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Graph, Kind, ValueId};

/// The least and the largest value of a signed integer.
pub(super) type Range = (i64, i64);

/// What an operation on integers comes to, where that is known.
pub(super) enum Known {
    Number(u64),
    Operand(Val),
    Within(Range),
}

impl Translator {
    /// A range of the lanes' signed integers, if it is one.
    fn exact(&self, low: Option<i64>, high: Option<i64>) -> Option<Known> {
        let (low, high, (least, most)) = (low?, high?, self.lane.range());
        (low >= least && high <= most).then_some(Known::Within((low, high)))
    }

    /// What is known of an operation's result.
    pub fn known(&self, op: Two, a: Val, b: Val) -> Option<Known> {
        if let (Some(x), Some(y)) = (self.number(a), self.number(b)) {
            return op.of_numbers(self.lane, x, y).map(Known::Number);
        }
        let (x, y) = (self.range[a as usize], self.range[b as usize]);
        let flag = Known::Within((0, 1));
        match (op, x, y) {
            (Two::AddInt | Two::Or | Two::Xor | Two::SubInt, _, Some((0, 0))) => Some(Known::Operand(a)),
            (Two::AddInt | Two::Or | Two::Xor, Some((0, 0)), _) => Some(Known::Operand(b)),
            (Two::MulInt, _, Some((1, 1))) => Some(Known::Operand(a)),
            (Two::MulInt, Some((1, 1)), _) => Some(Known::Operand(b)),
            (Two::And, _, Some((0, 0))) | (Two::And, Some((0, 0)), _) => Some(Known::Number(0)),
            (Two::And, Some((0, 1)), Some((1, 1))) => Some(Known::Operand(a)),
            (Two::And, Some((1, 1)), Some((0, 1))) => Some(Known::Operand(b)),
            (Two::And, _, Some((0.., most))) | (Two::And, Some((0.., most)), _) => Some(Known::Within((0, most))),
            (Two::Xor | Two::Or, Some((0.., 0..=1)), Some((0.., 0..=1))) => Some(flag),
            (Two::GtInt, Some((low, _)), Some((_, high))) if low > high => Some(Known::Number(1)),
            (Two::GtInt, Some((_, high)), Some((low, _))) if high <= low => Some(Known::Number(0)),
            (Two::GtInt, Some((0, 1)), Some((0, 0))) => Some(Known::Operand(a)),
            (Two::EqInt, Some((low, high)), Some((from, to))) if high < from || to < low => Some(Known::Number(0)),
            (Two::GtInt | Two::EqInt | Two::Eq | Two::Ne | Two::Lt | Two::Le, _, _) => Some(flag),
            (Two::AddInt, Some(x), Some(y)) => self.exact(x.0.checked_add(y.0), x.1.checked_add(y.1)),
            (Two::SubInt, Some(x), Some(y)) => self.exact(x.0.checked_sub(y.1), x.1.checked_sub(y.0)),
            (Two::MulInt, Some(x), Some((c, d))) if c == d && c >= 0 => {
                self.exact(x.0.checked_mul(c), x.1.checked_mul(c))
            }
            (Two::MaxInt, Some((low, _)), Some((_, high))) if low >= high => Some(Known::Operand(a)),
            (Two::MinInt, Some((_, high)), Some((low, _))) if high <= low => Some(Known::Operand(a)),
            (Two::MaxInt, Some(x), Some(y)) => Some(Known::Within((x.0.max(y.0), x.1.max(y.1)))),
            (Two::MinInt, Some(x), Some(y)) => Some(Known::Within((x.0.min(y.0), x.1.min(y.1)))),
            _ => None,
        }
    }

    /// The range of a choice.
    pub fn either(&self, a: Val, b: Val) -> Option<Range> {
        let (a, b) = (self.range[a as usize]?, self.range[b as usize]?);
        Some((a.0.min(b.0), a.1.max(b.1)))
    }
}

fn constant(g: &Graph, v: ValueId) -> Option<i64> {
    match g.maker(v)?.kind {
        Kind::Const(s) if matches!(s.dtype, DType::I32 | DType::I64) => Some(s.to_i64()),
        _ => None,
    }
}

/// The numbers of an array that counts from 0, one a step.
pub(super) fn counted(g: &Graph, v: ValueId) -> Option<Range> {
    let ty = g.ty(v);
    let counts =
        matches!(ty.dtype, DType::I32 | DType::I64) && ty.shape.len() == 1 && matches!(g.maker(v)?.kind, Kind::Iota(0));
    counts.then(|| (0, ty.size() as i64 - 1))
}

/// The range at the start of a step of the carried value that starts as `init` and is parameter `param` and result
/// `k` of the body: it is raised by a constant. The number of steps is known, or it is below a limit at each step.
pub(super) fn counter(
    (g, init): (&Graph, ValueId),
    (body, param, k): (&Graph, usize, usize),
    steps: Result<usize, (&Graph, usize)>,
) -> Option<Range> {
    let first = constant(g, init)?;
    let (least, most) = if g.ty(init).dtype == DType::I32 { Width::Four.range() } else { Width::Eight.range() };
    let next = body.maker(body.outputs[k])?;
    let param = ValueId(param as u32);
    let step = match (&next.kind, &next.inputs[..]) {
        (Kind::Binary(BinaryOp::Add), &[a, b]) if a == param => constant(body, b)?,
        (Kind::Binary(BinaryOp::Add), &[a, b]) if b == param => constant(body, a)?,
        _ => return None,
    };
    let last = match steps {
        Ok(steps) => first.checked_add(step.checked_mul((steps as i64 - 1).max(0))?)?,
        Err((cond, at)) => {
            let test = cond.maker(cond.outputs[0])?;
            let below = matches!(test.kind, Kind::Compare(CompareOp::Lt)) && test.inputs[0] == ValueId(at as u32);
            // Where the condition is tested it may be at the limit.
            (below && step == 1).then_some(most)?
        }
    };
    let (low, high) = (first.min(last), first.max(last));
    (low >= least && high <= most).then_some((low, high))
}
