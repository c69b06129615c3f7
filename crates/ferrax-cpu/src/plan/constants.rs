//! What is known before a program runs: operations on constants are done, and divisions of integers by constants become
//! multiplications (`math/integer.rs`).
//!
//! Floor division and the modulo of the divisor's sign reach the engine as a division, comparisons and a select; with a
//! positive constant divisor they are one node. Indices below 0 count from the end by operations on the indices, which a
//! gather does as well. Bits that are taken for another type and back, as a loop's keys are, are as they were. Constants are computed by the kernels that a program would run, so no bit
//! depends on it. What is no longer needed stays as dead nodes. Read next: `mod.rs`.

use crate::elementwise;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Division, DivisionPart, Gathering, Graph, Kind, Node, UnaryOp, ValueId};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The graph with constants folded; itself where there is nothing to do.
pub(crate) fn fold(graph: Arc<Graph>) -> Arc<Graph> {
    if !graph.nodes.iter().any(|n| matches!(n.kind, Kind::Const(_) | Kind::Bitcast)) {
        return graph;
    }
    let mut values: Vec<Option<Scalar>> = vec![None; graph.types.len()];
    let mut folded: Option<Graph> = None;
    for i in 0..graph.nodes.len() {
        let g = folded.as_ref().unwrap_or(&graph);
        let node = &g.nodes[i];
        let known = |k: usize| node.inputs.get(k).and_then(|v| values[v.0 as usize]);
        let mut new: Option<(Kind, SmallVec<[ValueId; 3]>)> = None;
        let value = match &node.kind {
            Kind::Const(s) => Some(*s),
            Kind::Broadcast(_) | Kind::Reshape => known(0),
            Kind::Bitcast => {
                new = taken_back(g, node).map(|x| (Kind::Reshape, smallvec![x]));
                None
            }
            kind if kind.is_elementwise() => {
                let all: Option<SmallVec<[Scalar; 3]>> = (0..node.inputs.len()).map(known).collect();
                let value = all.and_then(|xs| evaluate(kind, &xs, g.ty(node.first).dtype));
                new = match value {
                    Some(s) => Some((Kind::Const(s), SmallVec::new())),
                    None => {
                        let divided = Known { g, values: &values }.division(node);
                        divided.map(|(x, division)| (Kind::DivideBy(division), smallvec![x]))
                    }
                };
                value
            }
            Kind::Gather(gathering) if !gathering.wrap => {
                new = Known { g, values: &values }.counting_gather(node, gathering);
                None
            }
            _ => None,
        };
        if node.results == 1 {
            values[node.first.0 as usize] = value;
        }
        if let Some((kind, inputs)) = new {
            let node = &mut folded.get_or_insert_with(|| (*graph).clone()).nodes[i];
            (node.kind, node.inputs) = (kind, inputs);
        }
    }
    folded.map_or(graph, Arc::new)
}

/// The value whose bits a node takes back for the type that it had.
fn taken_back(g: &Graph, node: &Node) -> Option<ValueId> {
    let taken = g.maker(node.inputs[0]).filter(|taken| matches!(taken.kind, Kind::Bitcast))?;
    Some(taken.inputs[0]).filter(|&x| g.ty(x).dtype == g.ty(node.first).dtype)
}

/// What an elementwise node makes of constants.
fn evaluate(kind: &Kind, xs: &[Scalar], out: DType) -> Option<Scalar> {
    let first = xs.first()?.dtype;
    let dtype = if matches!(kind, Kind::Select) { xs.get(1)?.dtype } else { first };
    let plan = elementwise::resolve(kind, xs.len(), first, dtype, out).ok()?;
    let mut operands: SmallVec<[[u64; 2]; 3]> = smallvec![[0; 2]; xs.len()];
    let (mut raw, mut result) = ([0u64; 2], [0u64; 2]);
    // SAFETY: every operand and result is one element, of 16 bytes at most.
    unsafe {
        for (i, (operand, x)) in operands.iter_mut().zip(xs).enumerate() {
            let own = [x.bits as u64, (x.bits >> 64) as u64];
            match plan.widen.filter(|_| i >= plan.first_wide) {
                Some(widen) => {
                    let from = own.as_ptr().cast::<u8>();
                    widen(&raw const from, operand.as_mut_ptr().cast(), 1, 0);
                }
                None => *operand = own,
            }
        }
        let places: SmallVec<[*const u8; 3]> = operands.iter().map(|x| x.as_ptr().cast()).collect();
        (plan.kernel)(places.as_ptr(), raw.as_mut_ptr().cast(), 1, plan.imm);
        match plan.narrow {
            Some(narrow) => {
                let from = raw.as_ptr().cast::<u8>();
                narrow(&raw const from, result.as_mut_ptr().cast(), 1, 0);
            }
            None => result = raw,
        }
    }
    Some(Scalar { dtype: out, bits: u128::from(result[0]) | u128::from(result[1]) << 64 })
}

/// A graph and the constants found so far.
struct Known<'a> {
    g: &'a Graph,
    values: &'a [Option<Scalar>],
}

impl Known<'_> {
    /// What a node divides by a constant, if that is what it does.
    fn division(&self, node: &Node) -> Option<(ValueId, Division)> {
        let dtype = self.g.ty(node.first).dtype;
        if !matches!(dtype, DType::I32 | DType::U32) {
            return None;
        }
        let (x, division) = match &node.kind {
            Kind::Binary(op @ (BinaryOp::Div | BinaryOp::Rem)) => {
                let by = self.integer(node.inputs[1])?;
                let part = if *op == BinaryOp::Div { DivisionPart::Quotient } else { DivisionPart::Remainder };
                (node.inputs[0], Division { by, part })
            }
            Kind::Select if node.inputs.len() == 3 => self.rounded_down(node)?,
            _ => return None,
        };
        (division.by.unsigned_abs() >= 2 && self.g.ty(x) == self.g.ty(node.first)).then_some((x, division))
    }

    fn integer(&self, v: ValueId) -> Option<i64> {
        self.values[v.0 as usize].map(|s| if s.dtype.is_unsigned() { s.bits as i64 } else { s.to_i64() })
    }

    fn is(&self, v: ValueId, n: i64) -> bool {
        self.integer(v) == Some(n)
    }

    /// A gather along one axis whose indices are `where(i < 0, i + n, i)`, as one that counts from the end itself.
    fn counting_gather(&self, node: &Node, gathering: &Gathering) -> Option<(Kind, SmallVec<[ValueId; 3]>)> {
        let &[axis] = &gathering.dims.start_index_map[..] else { return None };
        let (operand, vectors) = (node.inputs[0], node.inputs[1]);
        let moved = self.g.maker(vectors)?;
        let picked = *moved.inputs.first()?;
        let batch = &self.g.ty(picked).shape[..];
        let in_order = match &moved.kind {
            Kind::Broadcast(dims) => dims.iter().copied().eq(0..batch.len()),
            Kind::Reshape => true,
            _ => false,
        };
        let (last, before) = self.g.ty(vectors).shape.split_last()?;
        let select = self.g.maker(picked).filter(|n| matches!(n.kind, Kind::Select) && n.inputs.len() == 3)?;
        let (i, zero) = self.compare(select.inputs[0], CompareOp::Lt)?;
        let (same, n) = self.binary(select.inputs[2], BinaryOp::Add)?;
        let counts = self.is(zero, 0) && self.is(n, self.g.ty(operand).shape[axis] as i64);
        let plain = in_order && *last == 1 && before == batch && self.g.ty(i) == self.g.ty(picked);
        if !(counts && plain && same == i && select.inputs[1] == i && self.g.ty(i).dtype == DType::I32) {
            return None;
        }
        Some((Kind::Gather(Box::new(Gathering { wrap: true, ..gathering.clone() })), smallvec![operand, i]))
    }

    /// The operands of a node of two.
    fn pair(&self, v: ValueId, is: impl Fn(&Kind) -> bool) -> Option<(ValueId, ValueId)> {
        let node = self.g.maker(v).filter(|n| is(&n.kind))?;
        Some((node.inputs[0], node.inputs[1]))
    }

    fn binary(&self, v: ValueId, op: BinaryOp) -> Option<(ValueId, ValueId)> {
        self.pair(v, |k| matches!(k, Kind::Binary(o) if *o == op))
    }

    fn compare(&self, v: ValueId, op: CompareOp) -> Option<(ValueId, ValueId)> {
        self.pair(v, |k| matches!(k, Kind::Compare(o) if *o == op))
    }

    /// What a value is the quotient of, or the remainder.
    fn divided(&self, v: ValueId, part: DivisionPart) -> Option<(ValueId, i64)> {
        let node = self.g.maker(v)?;
        match node.kind {
            Kind::DivideBy(division) if division.part == part => Some((node.inputs[0], division.by)),
            // x - x / c * c
            Kind::Binary(BinaryOp::Sub) if part == DivisionPart::Remainder => {
                let (q, c) = self.binary(node.inputs[1], BinaryOp::Mul)?;
                let (x, by) = self.divided(q, DivisionPart::Quotient)?;
                (x == node.inputs[0] && self.is(c, by)).then_some((x, by))
            }
            _ => None,
        }
    }

    /// A select between the quotient and one less, or the remainder and that plus the divisor, by whether something is
    /// left whose sign is not the divisor's.
    fn rounded_down(&self, node: &Node) -> Option<(ValueId, Division)> {
        let (as_it_is, lower) = (node.inputs[1], node.inputs[2]);
        let both = self.binary(node.inputs[0], BinaryOp::And)?;
        [both, (both.1, both.0)].into_iter().find_map(|(left, apart)| {
            let (rest, zero) = self.compare(left, CompareOp::Ne)?;
            let (x, by) = self.divided(rest, DivisionPart::Remainder)?;
            let (sign, constant) = self.compare(apart, CompareOp::Ne)?;
            let signs =
                |v| self.g.maker(v).filter(|n| matches!(n.kind, Kind::Unary(UnaryOp::Sign))).map(|n| n.inputs[0]);
            let floor = || {
                let (q, one) = self.binary(lower, BinaryOp::Sub)?;
                let same = q == as_it_is && self.divided(q, DivisionPart::Quotient) == Some((x, by));
                (same && self.is(one, 1) && signs(sign)? == x && self.is(constant, 1)).then_some(())
            };
            let modulo = || {
                let (r, c) = self.binary(lower, BinaryOp::Add)?;
                let (less, than) = self.compare(sign, CompareOp::Lt)?;
                let negative = less == rest && self.is(than, 0) && self.is(constant, 0);
                (r == rest && as_it_is == rest && self.is(c, by) && negative).then_some(())
            };
            if !self.is(zero, 0) || by < 0 {
                return None;
            }
            let part = match (floor(), modulo()) {
                (Some(()), _) => DivisionPart::Floor,
                (_, Some(())) => DivisionPart::Modulo,
                _ => return None,
            };
            Some((x, Division { by, part }))
        })
    }
}
