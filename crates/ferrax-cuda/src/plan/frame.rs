//! One graph's items as steps: where each value lies, and what is launched.
//!
//! Every parameter is an array that the caller names, and so is every result's place. A value is written into the place of
//! the result that it is, or over an array that nothing reads any more, where that is exact: kernels that read such an array
//! read each element before they write it, in one thread. What could not be written where it belongs is copied there at
//! the end. Read next: `control.rs`, and `library` for nodes with kernels of their own.

use super::group::{Groups, Item, What, group};
use super::rows::Rows;
use super::{BufferId, Planner};
use crate::library::{self, transpose::tiled};
use crate::print::body::Body;
use crate::print::kernel::{Kernel, elementwise};
use crate::program::{Argument, Launch, Span, Step};
use crate::routine::Routine;
use ferrax_base::{DType, Result, bail};
use ferrax_loops::{Graph, Kind, Node, ValueId};
use std::collections::HashMap;

/// A parameter's array.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The array.
    pub buffer: BufferId,
    /// Whether it may be written once nothing reads it any more.
    pub owned: bool,
}

/// A graph on its way to steps.
pub struct Frame<'a> {
    /// What all graphs share.
    pub p: &'a mut Planner,
    /// The graph.
    pub g: &'a Graph,
    /// The steps so far.
    pub steps: &'a mut Vec<Step>,
    groups: Groups,
    /// Where values in memory lie.
    at: Vec<Option<BufferId>>,
    /// The values in arrays that this graph may write.
    inside: HashMap<BufferId, Vec<ValueId>>,
    results: &'a [BufferId],
    /// The item that runs.
    now: usize,
}

impl<'a> Frame<'a> {
    /// Appends the steps of a graph that has been rewritten.
    pub fn run(
        p: &'a mut Planner,
        g: &'a Graph,
        params: &[Binding],
        results: &'a [BufferId],
        steps: &'a mut Vec<Step>,
    ) -> Result<()> {
        let groups = group(g);
        let mut frame =
            Frame { p, g, steps, groups, at: vec![None; g.types.len()], inside: HashMap::new(), results, now: 0 };
        for (i, binding) in params.iter().enumerate() {
            frame.at[i] = Some(binding.buffer);
            if binding.owned {
                frame.inside.entry(binding.buffer).or_default().push(ValueId(i as u32));
            }
        }
        for &buffer in results {
            frame.inside.entry(buffer).or_default();
        }
        let items = std::mem::take(&mut frame.groups.items);
        for (i, item) in items.iter().enumerate() {
            frame.now = i;
            frame.item(item)?;
        }
        frame.finish()
    }

    fn item(&mut self, item: &Item) -> Result<()> {
        match &item.what {
            What::Fused(outputs) => self.fused(outputs, &item.reads),
            What::Rows(rows) => self.rows(rows, &item.reads),
            What::Alias(v) => {
                let from = self.g.maker(*v).map(|n| n.inputs[0]).and_then(|x| self.at[x.0 as usize]);
                self.at[v.0 as usize] = from;
                if let Some(values) = from.and_then(|b| self.inside.get_mut(&b)) {
                    values.push(*v);
                }
                Ok(())
            }
            What::Node(i) => self.node(&self.g.nodes[*i], &item.reads),
        }
    }

    /// Whether a value is in memory by now.
    pub fn holds(&self, v: ValueId) -> bool {
        self.at[v.0 as usize].is_some()
    }

    /// Where a value lies.
    pub fn array(&self, v: ValueId) -> Result<BufferId> {
        match self.at[v.0 as usize] {
            Some(buffer) => Ok(buffer),
            None => bail!(Internal, "{v:?} is not in memory"),
        }
    }

    /// The bytes of a value in memory.
    pub fn span(&self, v: ValueId) -> Result<Span> {
        Ok(self.p.span(self.array(v)?))
    }

    /// Whether anything reads a result of this item.
    pub fn is_read(&self, v: ValueId) -> bool {
        self.groups.last[v.0 as usize] > self.now
    }

    /// Says that a value lies in an array that this graph may write.
    pub fn put(&mut self, v: ValueId, buffer: BufferId) {
        self.at[v.0 as usize] = Some(buffer);
        let last = &self.groups.last;
        let values = self.inside.entry(buffer).or_default();
        values.retain(|x| last[x.0 as usize] > self.now);
        values.push(v);
    }

    /// Whether nothing reads an array after this item, nor, but for what `over` allows, in it.
    pub fn is_free(&self, buffer: BufferId, over: &dyn Fn(ValueId) -> bool) -> bool {
        let Some(values) = self.inside.get(&buffer) else { return false };
        values.iter().all(|&x| {
            let last = self.groups.last[x.0 as usize];
            last < self.now || (last == self.now && over(x))
        })
    }

    /// The place of the result that a value is, if it may be written now.
    fn wanted(&self, v: ValueId, over: &dyn Fn(ValueId) -> bool) -> Option<BufferId> {
        let which = self.g.outputs.iter().enumerate().filter(|(_, o)| **o == v).map(|(k, _)| self.results[k]);
        which.into_iter().find(|&buffer| self.is_free(buffer, over))
    }

    /// An array for a result of this item that is written while operands are read.
    pub fn result(&mut self, v: ValueId) -> BufferId {
        let buffer = match self.wanted(v, &|_| false) {
            Some(buffer) => buffer,
            None => self.p.temporary(super::bytes(self.g.ty(v))),
        };
        self.put(v, buffer);
        buffer
    }

    /// An array for a result that takes the place of a node's first operand where nothing else reads that; the operand is
    /// copied there otherwise.
    pub fn result_over_first(&mut self, node: &Node) -> Result<BufferId> {
        let (v, x) = (node.first, node.inputs[0]);
        let here = self.array(x)?;
        let elsewhere = node.inputs[1..].iter().any(|&other| self.reaches(other, here));
        if !elsewhere && self.is_free(here, &|other| other == x) {
            self.put(v, here);
            return Ok(here);
        }
        let to = self.result(v);
        self.copy(here, to);
        Ok(to)
    }

    /// Whether computing a value reads an array.
    fn reaches(&self, v: ValueId, buffer: BufferId) -> bool {
        let (mut open, mut seen) = (vec![v], vec![false; self.g.types.len()]);
        while let Some(v) = open.pop() {
            if std::mem::replace(&mut seen[v.0 as usize], true) {
                continue;
            }
            match self.at[v.0 as usize] {
                Some(here) if here == buffer => return true,
                Some(_) => {}
                None => open.extend(self.g.maker(v).iter().flat_map(|n| n.inputs.iter().copied())),
            }
        }
        false
    }

    /// Memory for this item alone.
    pub fn temporary(&mut self, bytes: usize) -> BufferId {
        self.p.temporary(bytes)
    }

    /// Temporary memory whose values later items may write over.
    pub fn own(&mut self, bytes: usize) -> BufferId {
        let buffer = self.p.temporary(bytes);
        self.inside.entry(buffer).or_default();
        buffer
    }

    fn fused(&mut self, outputs: &[ValueId], reads: &[(ValueId, bool)]) -> Result<()> {
        if self.g.ty(outputs[0]).size() == 0 {
            outputs.iter().for_each(|&v| {
                self.result(v);
            });
            return Ok(());
        }
        let (places, over) = self.places(outputs, reads);
        let kernel = {
            let held = |v: ValueId| self.holds(v);
            let aligned = |v: ValueId| self.is_aligned(v, outputs, &places);
            let tiled = if over { None } else { tiled(self.g, &held, outputs, &aligned)? };
            match tiled {
                Some(kernel) => kernel,
                None => elementwise(self.g, &held, outputs, !over, &aligned)?,
            }
        };
        self.launch(kernel, &places, &[])?;
        outputs.iter().zip(places).for_each(|(&v, place)| self.put(v, place));
        Ok(())
    }

    /// Values of rows, which have elements.
    fn rows(&mut self, rows: &Rows, reads: &[(ValueId, bool)]) -> Result<()> {
        let (places, over) = self.places(&rows.outputs, reads);
        let kernel = {
            let held = |v: ValueId| self.holds(v);
            let aligned = |v: ValueId| self.is_aligned(v, &rows.outputs, &places);
            library::rows::kernel(self.g, &held, rows, !over, &aligned)?
        };
        self.launch(kernel, &places, &[])?;
        rows.outputs.iter().zip(places).for_each(|(&v, place)| self.put(v, place));
        Ok(())
    }

    /// Arrays for the results of a kernel, and whether one of them is an operand's. That comes before the kernel's text, for
    /// it decides what the kernel promises its compiler.
    fn places(&mut self, outputs: &[ValueId], reads: &[(ValueId, bool)]) -> (Vec<BufferId>, bool) {
        let mut places = Vec::new();
        let mut over = false;
        for &v in outputs {
            let place = self.place(v, reads, &places);
            over |= reads.iter().any(|(x, _)| self.at[x.0 as usize] == Some(place));
            places.push(place);
        }
        (places, over)
    }

    /// Whether vectors of 16 bytes may be read from, or written to, a value's array.
    fn is_aligned(&self, v: ValueId, outputs: &[ValueId], places: &[BufferId]) -> bool {
        let span = match outputs.iter().position(|&o| o == v) {
            Some(k) => Ok(self.p.span(places[k])),
            None => self.span(v),
        };
        span.is_ok_and(|s| s.offset.is_multiple_of(16))
    }

    /// An array for one of the results of an elementwise kernel.
    fn place(&mut self, v: ValueId, reads: &[(ValueId, bool)], taken: &[BufferId]) -> BufferId {
        let bytes = super::bytes(self.g.ty(v));
        let size = self.g.ty(v).dtype.size();
        // Reading at the same place alone, elements of one size.
        let here = |x: ValueId| reads.iter().any(|&(r, here)| r == x && here) && self.g.ty(x).dtype.size() == size;
        let free = |b: BufferId| !taken.contains(&b) && self.p.span(b).bytes == bytes && self.is_free(b, &here);
        let wanted =
            self.g.outputs.iter().zip(self.results).filter(|(o, _)| **o == v).map(|(_, b)| *b).find(|&b| free(b));
        let over = || {
            let last = |x: ValueId| self.groups.last[x.0 as usize] == self.now;
            reads
                .iter()
                .filter(|(x, here)| *here && last(*x))
                .filter_map(|(x, _)| self.at[x.0 as usize])
                .find(|&b| free(b))
        };
        match wanted.or_else(over) {
            Some(buffer) => buffer,
            None => self.own(bytes),
        }
    }

    /// Starts a kernel on the values that it reads, the arrays that it writes, and integers.
    pub fn launch(&mut self, kernel: Kernel, writes: &[BufferId], ints: &[i64]) -> Result<()> {
        let mut args = Vec::new();
        for &v in &kernel.reads {
            args.push(Argument::Memory(self.span(v)?));
        }
        args.extend(writes.iter().map(|&b| Argument::Memory(self.p.span(b))));
        args.extend(ints.iter().map(|&i| Argument::Int(i)));
        let name = self.p.kernel(&kernel.text);
        let block = [kernel.block, 1, 1];
        self.steps.push(Step::Launch(Launch { kernel: name, grid: kernel.grid, block, shared: 0, args }));
        Ok(())
    }

    /// Calls a library, whose result is a value's.
    pub fn call(&mut self, routine: Routine, reads: Vec<Span>, result: ValueId) -> Result<()> {
        let to = self.result(result);
        let writes = vec![self.p.span(to)];
        self.steps.push(Step::Call { routine, reads, writes });
        Ok(())
    }

    /// Copies an array.
    pub fn copy(&mut self, from: BufferId, to: BufferId) {
        let (from, to) = (self.p.span(from), self.p.span(to));
        if from.bytes > 0 && from != to {
            self.steps.push(Step::Copy { from, to });
        }
    }

    /// Statements over this graph's values, and what becomes of them.
    pub fn print<T>(&self, write: impl FnOnce(Body<'_>) -> Result<T>) -> Result<T> {
        let held = |v: ValueId| self.holds(v);
        write(Body::new(self.g, &held))
    }

    fn node(&mut self, node: &Node, reads: &[(ValueId, bool)]) -> Result<()> {
        if let Kind::Dense(bytes) = &node.kind {
            self.at[node.first.0 as usize] = Some(self.p.constant(bytes));
            return Ok(());
        }
        if let Kind::Host(host) = &node.kind {
            bail!(NotImplemented, "the CUDA engine does not call the host ({host:?}) from a running program");
        }
        let control = matches!(node.kind, Kind::While { .. } | Kind::Scan { .. } | Kind::Switch(_));
        if control {
            return super::control::node(self, node);
        }
        let empty = node.outputs().all(|v| self.g.ty(v).size() == 0);
        if empty {
            node.outputs().for_each(|v| {
                self.result(v);
            });
            return Ok(());
        }
        debug_assert!(reads.iter().all(|(v, _)| self.holds(*v)));
        library::node(self, node)
    }

    /// Copies results that lie elsewhere to where they belong.
    fn finish(&mut self) -> Result<()> {
        let mut copies = Vec::new();
        for (k, &v) in self.g.outputs.iter().enumerate() {
            let from = self.array(v)?;
            if from != self.results[k] {
                copies.push((from, self.results[k]));
            }
        }
        // What another copy writes over is first put aside.
        let written: Vec<BufferId> = copies.iter().map(|c| c.1).collect();
        for copy in &mut copies {
            if written.contains(&copy.0) {
                let aside = self.p.temporary(self.p.span(copy.0).bytes);
                self.copy(copy.0, aside);
                copy.0 = aside;
            }
        }
        for (from, to) in copies {
            self.copy(from, to);
        }
        Ok(())
    }

    /// A dtype's name for errors.
    pub fn dtype(&self, v: ValueId) -> DType {
        self.g.ty(v).dtype
    }
}
