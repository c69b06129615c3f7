//! What is said about an operation that gave a NaN or an infinity: which element, in which row of which `vmap`, of what.
//!
//! Of an operation that works element by element the operands' numbers at that element are shown; of others the types of
//! the operands, their first numbers, and where they hold such a number already.
//!
//! Read next: `blame.rs`, which finds the operation.

use crate::debug::{element, first, found};
use ferrax_base::shape::Tuple;
use ferrax_base::source::Phase;
use ferrax_base::{Aval, Error, Result, Shape, Source, error};
use ferrax_ir::lower::lower_op;
use ferrax_ir::{Mapped, OpRef, Value};
use ferrax_loops::Kind;
use smallvec::SmallVec;
use std::fmt::Write;

/// Operands of operations that do not work element by element are shown up to this many elements.
const SHOWN: usize = 6;

/// An operation with a bad result.
pub(crate) struct Report<'a> {
    pub op: &'a OpRef,
    pub args: &'a [Value],
    /// The result that is bad.
    pub result: &'a Value,
    pub source: Source,
    /// The iterations of loops that it stands in, inner ones last.
    pub steps: &'a [String],
    /// The axes of the result that `vmap` added, outer ones first.
    pub mapped: &'a [Mapped],
}

impl Report<'_> {
    /// The error that says so.
    pub(crate) fn error(&self) -> Result<Error> {
        let (place, what) = first(self.result)?.unwrap_or((0, "nan"));
        let mut text = format!("invalid value ({what}) encountered in {}", self.op.name());
        text.push_str(&self.origin());
        for step in self.steps.iter().rev() {
            let _ = write!(text, ", in {step}");
        }
        let index = index_of(place, self.result.shape());
        let mut axes: SmallVec<[&Mapped; 2]> = SmallVec::new();
        for axis in self.mapped.iter().filter(|m| m.at < index.len()) {
            if !axes.iter().any(|a| a.at == axis.at) {
                axes.push(axis);
            }
        }
        for axis in &axes {
            let (row, size) = (index[axis.at], self.result.shape()[axis.at]);
            let name = axis.name.as_ref().map_or(String::new(), |n| format!(" '{n}'"));
            let _ = write!(text, ", in row {row} of the vmap axis{name} of size {size}");
        }
        let own = |all: &[usize]| -> Shape {
            let left = all.iter().enumerate().filter(|(d, _)| !axes.iter().any(|a| a.at == *d));
            left.map(|(_, &n)| n).collect()
        };
        let at = if own(&index).is_empty() { String::new() } else { format!(" at index {}", Tuple(&own(&index))) };
        let aval = self.result.aval();
        let result = aval.with_shape(&own(&aval.shape));
        if self.elementwise() {
            self.of_elements(&mut text, place, &at, what, &result, own)?;
        } else {
            self.of_wholes(&mut text, &at, what, &result, !axes.is_empty())?;
        }
        Ok(error!(FloatingPoint, "{text}"))
    }

    /// Where it was asked for, and by which differentiation.
    fn origin(&self) -> String {
        let at = self.source.location().map_or_else(String::new, |at| format!(" at {at}"));
        match self.source.made_by() {
            Some((Phase::Backward, of)) => format!(", in the backward pass of {of}{at}"),
            Some((Phase::Derivative, of)) if *of != *self.op.name() => format!(", in the derivative of {of}{at}"),
            _ => at,
        }
    }

    /// Whether every element of the result comes from the same element of the operands, or from a scalar.
    fn elementwise(&self) -> bool {
        let shape = self.result.shape();
        if self.args.is_empty() || !self.args.iter().all(|a| a.rank() == 0 || a.shape() == shape) {
            return false;
        }
        let avals: SmallVec<[Aval; 3]> = self.args.iter().map(Value::aval).collect();
        let refs: SmallVec<[&Aval; 3]> = avals.iter().collect();
        let Ok(outs) = self.op.abstract_eval(&refs) else { return false };
        let Ok(graph) = lower_op(self.op, &refs, &outs) else { return false };
        graph.nodes.iter().all(|node| match &node.kind {
            Kind::Const(_) | Kind::Bitcast => true,
            Kind::Broadcast(dims) => dims.is_empty(),
            kind => kind.is_elementwise(),
        })
    }

    fn of_elements(
        &self,
        text: &mut String,
        place: usize,
        at: &str,
        what: &str,
        result: &Aval,
        own: impl Fn(&[usize]) -> Shape,
    ) -> Result<()> {
        let mut numbers = Vec::with_capacity(self.args.len());
        for a in self.args {
            numbers.push(element(a, place)?.map_or_else(|| "?".to_owned(), |s| s.to_string()));
        }
        let _ = write!(text, ": {} of {}{at} gives {what}; its result", self.op.name(), numbers.join(" and "));
        let _ = write!(text, " has type {result}, its operands are ");
        for (i, (a, number)) in self.args.iter().zip(&numbers).enumerate() {
            let aval = a.aval();
            let aval = if aval.rank() == 0 { aval } else { aval.with_shape(&own(a.shape())) };
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{aval} = {number}{}", if aval.rank() == 0 { "" } else { at });
            if number.to_ascii_lowercase().contains(what) {
                let _ = write!(text, " (holds {what} already)");
            }
        }
        Ok(())
    }

    fn of_wholes(&self, text: &mut String, at: &str, what: &str, result: &Aval, rows: bool) -> Result<()> {
        let all = if rows { ", with all rows," } else { "" };
        let _ = write!(text, ": its result has type {result} and is {what}{at}, its operands{all} are ");
        for (i, a) in self.args.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(text, "{comma}{} = {}", a.aval(), shown(a)?);
            if let Some((place, what)) = first(a)? {
                let index = index_of(place, a.shape());
                let at = if index.is_empty() { String::new() } else { format!(", first at index {}", Tuple(&index)) };
                let _ = write!(text, " (holds {what} already{at})");
            }
        }
        Ok(())
    }
}

/// The result that is bad; the first one when none is.
pub(crate) fn bad_result(results: &[Value]) -> Result<usize> {
    for (i, r) in results.iter().enumerate() {
        if found(r)? {
            return Ok(i);
        }
    }
    Ok(0)
}

/// The index of an element from its place in row-major order.
fn index_of(place: usize, shape: &[usize]) -> Shape {
    let mut index = Shape::from_elem(0, shape.len());
    let mut rest = place;
    for (i, &n) in index.iter_mut().zip(shape).rev() {
        (*i, rest) = (rest % n.max(1), rest / n.max(1));
    }
    index
}

/// The first elements of a value, in row-major order.
fn shown(v: &Value) -> Result<String> {
    let count = v.size();
    let mut list = Vec::new();
    for i in 0..count.min(SHOWN) {
        list.push(element(v, i)?.map_or_else(|| "?".to_owned(), |s| s.to_string()));
    }
    if v.rank() == 0 {
        return Ok(list.pop().unwrap_or_else(|| "?".to_owned()));
    }
    Ok(format!("[{}{}]", list.join(" "), if count > SHOWN { " ..." } else { "" }))
}
