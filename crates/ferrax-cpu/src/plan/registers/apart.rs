//! Loops whose elements go on alone: each as long as its own condition holds.
//!
//! Such a loop runs while there is an element that goes on, and one that is done stays as it is: what `vmap` makes of
//! a `while` loop, or a series that is summed for all elements. Elements never mix, so every register of them takes as many steps as
//! its own elements need, however many there are; threads share them out. Read next: `fused/registers/run.rs`.

use super::forms::{Form, Style};
use super::{Carried, Planner};
use crate::fused::registers::Part;
use crate::machine::loops::assemble::{Op, Val};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{Graph, Kind, Node, ReduceOp, ValueId};

/// What a condition says of each element, if it is that one of them goes on.
pub(super) fn going(cond: &Graph) -> Option<Graph> {
    let all = |v: ValueId, of: ReduceOp| {
        let node = cond.maker(v)?;
        let whole = |axes: &[usize]| axes.len() == cond.ty(node.inputs[0]).shape.len();
        matches!(&node.kind, Kind::Reduce { op, axes } if *op == of && whole(axes)).then(|| node.inputs[0])
    };
    let counted = |node: &Node| {
        let zero = matches!(cond.maker(node.inputs[1])?.kind, Kind::Const(s) if s.bits == 0);
        let number = cond.maker(all(node.inputs[0], ReduceOp::Sum)?)?;
        let flags = number.inputs.first().copied().filter(|&v| cond.ty(v).dtype.is_bool());
        flags.filter(|_| zero && matches!(number.kind, Kind::Convert) && !cond.ty(number.first).dtype.is_float())
    };
    let out = cond.outputs[0];
    let each = all(out, ReduceOp::Or).filter(|&v| cond.ty(v).dtype.is_bool()).or_else(|| {
        let node = cond.maker(out)?;
        if matches!(node.kind, Kind::Compare(CompareOp::Ne)) { counted(node) } else { None }
    })?;
    // A sum of fewer flags than its dtype counts.
    let few = (2..1 << 31).contains(&cond.ty(each).size());
    few.then(|| Graph { outputs: vec![each], ..cond.clone() })
}

impl Planner<'_> {
    /// What holds for the elements that go on, where they are lanes of vectors.
    pub(super) fn apart(&self) -> Option<&Graph> {
        self.shape.going.filter(|_| self.t.style == Style::Vectors)
    }

    /// What the condition says of carried values: of all of them, or of each element.
    pub(super) fn condition(&mut self, carried: &[Form]) -> Option<Val> {
        let shape = self.shape;
        let (cond, apart) = match shape.going.filter(|_| self.t.style == Style::Vectors) {
            Some(going) => (going, true),
            None => (shape.cond?, false),
        };
        let consts = shape.first_carry - shape.consts;
        let mut args: Vec<Form> = (0..consts).map(|k| self.input(k, (cond, k))).collect::<Option<_>>()?;
        args.extend(carried.iter().cloned());
        let found = self.t.condition(cond, &args)?;
        (self.t.vector[found as usize] == apart).then_some(found)
    }

    /// Whether all that the loop carries are vectors whose elements stay as they are where they do not go on.
    pub(super) fn stay(&self, going: Val) -> bool {
        let stays = |c: &Carried| {
            let chosen = |op: &Op| matches!(*op, Op::Choose { d, which, on_false, .. } if d == c.out && which == going && on_false == c.param);
            c.part == Part::Turn && (c.out == c.param || self.t.ops.iter().any(chosen))
        };
        self.arrays.is_empty() && self.carried.iter().all(stays)
    }
}
