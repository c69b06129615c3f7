//! Loops inside of a loop's step, which run in the same registers.
//!
//! What an inner loop carries waits in places of the loop's memory: before it, and after its last step. While it runs, its
//! first values are in registers, as those of the outer loop are at its own steps (`Assembler::home`); all else that is
//! needed inside of it or after it is in memory. The condition is tested once before the first step, whose operations
//! are left out where it does not hold, and then at the end of each.
//! Read next: `machine/loops/assemble.rs`, which makes instructions of that.

use super::forms::{Form, passes};
use super::translate::Translator;
use crate::fused::registers::Part;
use crate::machine::loops::assemble::{Kept, Op, Val};
use crate::machine::loops::families::{One, Two};
use crate::plan::constants;
use ferrax_loops::{Graph, Kind, Node};
use std::sync::Arc;

/// The index of a cell that counts steps.
const COUNTER: usize = usize::MAX;

/// An inner loop.
struct Inner<'a> {
    body: Arc<Graph>,
    cond: Option<Arc<Graph>>,
    /// What its body and its condition do not change.
    consts: &'a [Form],
    cond_consts: &'a [Form],
    /// What it carries, at first.
    carried: &'a [Form],
    /// Its steps, where it has no condition.
    length: usize,
}

/// A cell of what an inner loop carries.
struct Cell {
    /// Which of the carried values has it, and from which element on.
    index: usize,
    element: usize,
    part: Part,
    kept: Kept,
}

impl<'a> Inner<'a> {
    fn of(node: &Node, x: &'a [Form]) -> Option<Inner<'a>> {
        match &node.kind {
            Kind::While { cond, body, cond_consts, body_consts } => {
                let (cond_consts, rest) = x.split_at(*cond_consts);
                let (consts, carried) = rest.split_at(*body_consts);
                let (body, cond) = (constants::fold(body.clone()), Some(constants::fold(cond.clone())));
                Some(Inner { body, cond, consts, cond_consts, carried, length: 0 })
            }
            Kind::Scan { body, length, consts, carry, .. } => {
                let (consts, carried) = x.split_at(*consts);
                let counted = i32::try_from(*length).is_ok();
                let same = carried.len() == *carry && body.outputs.len() == *carry && counted;
                let body = constants::fold(body.clone());
                same.then_some(Inner { body, cond: None, consts, cond_consts: &[], carried, length: *length })
            }
            _ => None,
        }
    }
}

impl Translator {
    /// An inner loop: its results.
    pub fn inner(&mut self, node: &Node, x: &[Form]) -> Option<Vec<Form>> {
        let inner = Inner::of(node, x)?;
        let first = match &inner.cond {
            Some(_) => self.goes_on(&inner, inner.carried)?,
            None => self.constant(u64::from(inner.length > 0)),
        };
        if self.number(first) == Some(0) {
            return Some(inner.carried.to_vec());
        }
        let mut cells = self.keep(&inner)?;
        let begin = self.ops.len();
        if self.number(first).is_none() {
            self.write(Op::Skip { which: first })?;
        }
        let number = self.asm.inner_loop();
        self.write(Op::Head { number })?;
        let more = self.step(&inner, number, &mut cells)?;
        let one = self.constant(1);
        let done = self.two(Two::Xor, more, one)?;
        self.write(Op::Again { number, done })?;
        if self.number(first).is_none() {
            self.write(Op::Join)?;
        }
        self.branches.push(begin..self.ops.len());
        // The place is another value's when the loop runs again.
        for kept in cells.iter_mut().filter(|c| c.index != COUNTER).map(|c| &mut c.kept) {
            let (a, d) = (kept.result, self.result(&[kept.result]));
            self.write(Op::One { op: One::Move, d, a })?;
            kept.result = d;
        }
        self.forms(&inner, &cells, |kept| kept.result)
    }

    /// A step, whose values go where the next one finds them. Gives whether there is one.
    fn step(&mut self, inner: &Inner, number: u32, cells: &mut [Cell]) -> Option<Val> {
        let mut args = inner.consts.to_vec();
        args.extend(self.forms(inner, cells, |kept| kept.param)?);
        let outs = self.graph(&inner.body, &args)?;
        for cell in &mut *cells {
            cell.kept.out = match outs.get(cell.index) {
                Some(out) => self.part(out, cell.element, cell.part)?,
                None => {
                    let one = self.integer(1);
                    self.two(Two::AddInt, cell.kept.param, one)?
                }
            };
        }
        for cell in &mut *cells {
            self.write(Op::Out { a: cell.kept.out })?;
            cell.kept.next = self.value(false, cell.part.is_vector());
        }
        self.write(Op::Next { number })?;
        self.asm.carries(number, cells.iter().map(|c| c.kept).collect());
        match cells.last() {
            Some(counter) if counter.index == COUNTER => {
                let length = self.integer(inner.length as i64);
                self.two(Two::GtInt, length, counter.kept.next)
            }
            _ => {
                let next = self.forms(inner, cells, |kept| kept.next)?;
                self.goes_on(inner, &next)
            }
        }
    }

    /// Whether the condition holds for carried values, in every lane.
    fn goes_on(&mut self, inner: &Inner, carried: &[Form]) -> Option<Val> {
        let mut args = inner.cond_consts.to_vec();
        args.extend(carried.iter().cloned());
        let found = self.condition(inner.cond.as_ref()?, &args)?;
        (!self.vector[found as usize]).then_some(found)
    }

    /// The flag that a loop's condition makes. Registers are too few for a loop inside of it.
    pub fn condition(&mut self, cond: &Graph, args: &[Form]) -> Option<Val> {
        let loops = self.asm.inner_loops();
        let Form::Lanes(found) = self.graph(cond, args)?[0] else { return None };
        (self.asm.inner_loops() == loops).then_some(found)
    }

    /// Gives what changes its places, where its first values go.
    fn keep(&mut self, inner: &Inner) -> Option<Vec<Cell>> {
        let mut cells = Vec::new();
        for (index, init) in inner.carried.iter().enumerate() {
            let param = inner.consts.len() + index;
            if passes(&inner.body, index, param) {
                continue;
            }
            for (element, part) in self.parts(&inner.body.types[param], false)? {
                let first = self.part(init, element, part)?;
                cells.push(self.cell((index, element, part), first)?);
            }
        }
        if inner.cond.is_none() {
            let zero = self.constant(0);
            cells.push(self.cell((COUNTER, 0, Part::One), zero)?);
        }
        Some(cells)
    }

    /// A cell, whose place gets its first value.
    fn cell(&mut self, (index, element, part): (usize, usize, Part), first: Val) -> Option<Cell> {
        let [param, result] = [(); 2].map(|()| self.value(false, part.is_vector()));
        let at = self.asm.in_memory(result);
        self.write(Op::Set { at, a: first })?;
        Some(Cell { index, element, part, kept: Kept { param, out: first, next: param, result, at } })
    }

    /// The carried values, whose cells are as `of` says.
    fn forms(&mut self, inner: &Inner, cells: &[Cell], of: impl Fn(&Kept) -> Val) -> Option<Vec<Form>> {
        let mut forms = Vec::new();
        for (index, init) in inner.carried.iter().enumerate() {
            let own: Vec<Val> = cells.iter().filter(|c| c.index == index).map(|c| of(&c.kept)).collect();
            let ty = &inner.body.types[inner.consts.len() + index];
            forms.push(if own.is_empty() { init.clone() } else { self.form_of(ty, own.into())? });
        }
        Some(forms)
    }
}
