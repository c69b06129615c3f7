//! The cells of small arrays: scalars, or as many registers as their elements fill, in row-major order.
//!
//! What is elementwise is done cell by cell. An element goes to another lane by a permutation, and what lies in
//! several registers is put together lane by lane; scalars fill all lanes, so they are in every place at once. Which
//! element goes where is known when the loop is planned; `indexed.rs` is for what is not. Nothing reads the lanes beyond
//! an array's end, so that what is there does not matter, except where all lanes are joined. Sums are in the order of the
//! library's kernels, as those of cells are (`cells.rs`). Read next: `indexed.rs`.

use super::forms::{Cells, FEW_CELLS, Form, Style};
use super::shapes;
use super::translate::{Translator, bits};
use crate::fused::registers::{Part, lanes_of};
use crate::machine::loops::assemble::Val;
use crate::machine::loops::families::Two;
use crate::machine::loops::handlers;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Graph, Kind, Node, ReduceOp, Type};
use smallvec::SmallVec;
use std::ops::Range;

/// Values with lanes of them, one for each element of an array.
pub(super) type Places = SmallVec<[(Val, usize); 16]>;

impl Translator {
    /// Elements in each cell of a value that has so many.
    pub fn per(&self, n: usize) -> usize {
        if self.style == Style::Packed && n > FEW_CELLS { lanes_of(self.isa, self.lane) } else { 1 }
    }

    /// So many elements, by cells.
    pub fn groups(&self, n: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let per = self.per(n);
        (0..n).step_by(per).map(move |first| first..n.min(first + per))
    }

    /// Where element `i` of a value is.
    pub fn place(&self, form: &Form, i: usize) -> Option<(Val, usize)> {
        match form {
            Form::Cells(all, per) => Some((*all.get(i / per)?, i % per)),
            form => Some((form.nth(i)?, 0)),
        }
    }

    /// A constant whose lanes differ.
    pub fn pattern(&mut self, of: impl Fn(usize) -> u64) -> Val {
        let lanes: Vec<u64> = (0..lanes_of(self.isa, self.lane)).map(|l| self.lane.bits(of(l))).collect();
        if lanes.iter().all(|&bits| bits == lanes[0]) {
            return self.constant(lanes[0]);
        }
        if let Some(&found) = self.by_lanes.get(&lanes) {
            return found;
        }
        let v = self.value(true, true);
        let numbers = lanes.iter().map(|&bits| self.lane.signed(bits));
        self.range[v as usize] = numbers.clone().min().zip(numbers.max());
        let at = self.asm.in_memory(v);
        self.pattern_at.insert(v, self.patterns.len());
        self.by_lanes.insert(lanes.clone(), v);
        self.patterns.push((v, at, lanes));
        v
    }

    /// The bits of a constant's lane.
    pub fn number_in(&self, (v, lane): (Val, usize)) -> Option<u64> {
        self.number(v).or_else(|| self.pattern_at.get(&v).map(|&k| self.patterns[k].2[lane]))
    }

    /// A value whose lanes are those of `v` that `wanted` names; the others do not matter.
    fn permuted(&mut self, v: Val, wanted: impl Fn(usize) -> Option<usize>) -> Option<Val> {
        if !self.vector[v as usize]
            || (0..lanes_of(self.isa, self.lane)).all(|l| wanted(l).is_none_or(|from| from == l))
        {
            return Some(v);
        }
        let numbers = self.pattern(|l| wanted(l).unwrap_or(l) as u64);
        self.two(Two::Permute, v, numbers)
    }

    /// A cell of the elements in these places: one fills all lanes.
    fn joined(&mut self, places: &[(Val, usize)]) -> Option<Val> {
        let mut values: SmallVec<[Val; 8]> = SmallVec::new();
        for &(v, _) in places {
            if !values.contains(&v) {
                values.push(v);
            }
        }
        let mut made = None;
        for v in values {
            let wanted = |l: usize| {
                let place = if places.len() == 1 { places.first() } else { places.get(l) };
                place.filter(|p| p.0 == v).map(|p| p.1)
            };
            let moved = self.permuted(v, wanted)?;
            made = Some(match made {
                None => moved,
                Some(before) => {
                    let here = self.pattern(|l| u64::from(wanted(l).is_some()));
                    self.choose(here, before, moved)?
                }
            });
        }
        made
    }

    /// A cell of some elements of a value.
    pub fn picked(&mut self, form: &Form, at: impl Iterator<Item = usize>) -> Option<Val> {
        let places: Places = at.map(|i| self.place(form, i)).collect::<Option<_>>()?;
        if self.style == Style::Packed { self.joined(&places) } else { Some(places.first()?.0) }
    }

    /// The cells of a value of `n` elements.
    pub fn registers(&mut self, form: &Form, n: usize) -> Option<Cells> {
        self.groups(n).map(|group| self.picked(form, group)).collect()
    }

    /// A value of `n` elements in the cells that it should have.
    pub fn packed(&mut self, n: usize, form: Form) -> Option<Form> {
        match form {
            Form::Cells(_, per) if per != self.per(n) => Some(Form::Cells(self.registers(&form, n)?, self.per(n))),
            form => Some(form),
        }
    }

    /// A part of a value from an element on.
    pub fn part(&mut self, form: &Form, element: usize, part: Part) -> Option<Val> {
        match part {
            Part::Few(n) => self.picked(form, element..element + n),
            Part::One => self.picked(form, element..=element),
            Part::Turn => form.nth(element),
        }
    }

    /// The cells of a node's result.
    pub fn cells(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Cells> {
        let ty = g.ty(node.first);
        let n = ty.size();
        if x.iter().any(|f| self.is_whole(f)) {
            return None;
        }
        let of = |i: usize| g.ty(node.inputs[i]);
        match &node.kind {
            kind if kind.is_elementwise() || matches!(kind, Kind::Bitcast) => {
                let each = self.groups(n).enumerate();
                each.map(|(k, _)| {
                    let x: SmallVec<[Val; 4]> = x.iter().map(|f| f.nth(k)).collect::<Option<_>>()?;
                    self.node(g, node, &x)
                })
                .collect()
            }
            Kind::Const(s) => Some(self.numbers(n, |_| bits(*s))),
            Kind::Dense(bytes) => {
                let size = ty.dtype.size();
                Some(self.numbers(n, |i| bits(Scalar::from_bytes(ty.dtype, &bytes[i * size..][..size]))))
            }
            Kind::Iota(axis) => {
                let inner: usize = ty.shape[axis + 1..].iter().product();
                let number = |i: usize| (i / inner % ty.shape[*axis]) as i64;
                Some(self.numbers(n, |i| bits(Scalar::from_i64(ty.dtype, number(i)))))
            }
            Kind::Barrier => self.registers(&x[0], n),
            Kind::Reduce { op, axes } => self.reduced(*op, axes, of(0), &x[0]),
            Kind::Dot(_) => self.product(g, node, x),
            Kind::Cumulative { op, axis, reverse } => self.cumulative(*op, (*axis, *reverse), of(0), &x[0]),
            Kind::ArgReduce { max, axis } => self.arg_reduced(*max, *axis, (of(0), ty), &x[0]),
            Kind::DynamicSlice | Kind::DynamicUpdateSlice => self.indexed(g, node, x),
            Kind::Gather(_) | Kind::Scatter { .. } => match self.moved(g, node, x) {
                Some(places) => self.together(&places),
                None => self.indexed(g, node, x),
            },
            _ => {
                let sources = shapes::sources(g, node)?;
                let places: Places =
                    sources.iter().map(|&(operand, i)| self.place(&x[operand], i)).collect::<Option<_>>()?;
                self.together(&places)
            }
        }
    }

    /// The cells of `n` numbers by their bits.
    fn numbers(&mut self, n: usize, of: impl Fn(usize) -> u64) -> Cells {
        self.groups(n).map(|group| self.pattern(|l| of((group.start + l).min(group.end - 1)))).collect()
    }

    /// The cells of the elements in these places.
    pub fn together(&mut self, places: &[(Val, usize)]) -> Option<Cells> {
        places.chunks(self.per(places.len())).map(|group| self.joined(group)).collect()
    }

    /// All of `n` elements joined, cell by cell and then lane by lane, as `width` accumulators are in halves.
    pub fn tree(
        &mut self,
        (join, d, neutral): (BinaryOp, DType, u64),
        mut all: Cells,
        (n, width): (usize, usize),
    ) -> Option<Val> {
        let per = self.per(n);
        if let Some(last) = all.last_mut().filter(|_| n % per != 0) {
            let (here, neutral) = (self.pattern(|l| u64::from(l < n % per)), self.constant(neutral));
            *last = self.choose(here, neutral, *last)?;
        }
        let mut sum = self.halved(join, d, &mut all, width.div_ceil(per))?;
        let mut step = per;
        while step > 1 {
            step /= 2;
            let numbers = self.pattern(|l| (l ^ step) as u64);
            let others = self.two(Two::Permute, sum, numbers)?;
            sum = self.binary(join, d, sum, others)?;
        }
        // Each lane has joined all.
        self.vector[sum as usize] = false;
        Some(sum)
    }

    /// A sum of products with `lanes` running sums, of which each register has some.
    pub fn long_product(&mut self, factors: &[(usize, usize)], x: &[Form], lanes: usize, d: DType) -> Option<Val> {
        let (depth, nothing) = (factors.len(), bits(Scalar::from_f64(d, -0.0)));
        let per = self.per(depth);
        let mut sums: Cells = (0..lanes)
            .step_by(per)
            .map(|first| self.pattern(|l| if first + l < depth { 0 } else { nothing }))
            .collect();
        for (k, group) in self.groups(depth).enumerate() {
            let a = self.picked(&x[0], factors[group.clone()].iter().map(|f| f.0))?;
            let b = self.picked(&x[1], factors[group.clone()].iter().map(|f| f.1))?;
            let before = sums[k % (lanes / per)];
            let here = self.pattern(|l| u64::from(l < group.len()));
            let sum = self.fma(a, b, before)?;
            sums[k % (lanes / per)] = self.choose(here, before, sum)?;
        }
        self.tree((BinaryOp::Add, d, 0), sums, (lanes, lanes))
    }

    /// Running reductions along an axis.
    fn cumulative(&mut self, op: ReduceOp, (axis, reverse): (usize, bool), ty: &Type, x: &Form) -> Option<Cells> {
        let (n, inner) = (ty.shape[axis], ty.shape[axis + 1..].iter().product::<usize>());
        let mut places = Places::from_elem((0, 0), ty.size());
        for line in 0..ty.size() / n {
            let at = |i: usize| {
                let step = if reverse { n - 1 - i } else { i };
                (line / inner * n + step) * inner + line % inner
            };
            let mut before = None;
            for group in self.groups(n) {
                let x = self.picked(x, group.clone().map(at))?;
                let (all, next) = if ty.dtype.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Prod) {
                    // They are in lanes, or in the first one.
                    (self.style == Style::Packed).then(|| self.running(op, ty.dtype, (x, group.len()), before))??
                } else {
                    self.running_freely(op, ty.dtype, (x, group.len()), before)?
                };
                group.enumerate().for_each(|(l, i)| places[at(i)] = (all, l));
                before = Some(next);
            }
        }
        self.together(&places)
    }

    /// The running sum or product of a register of so many floats, and what the next one takes from it.
    fn running(&mut self, op: ReduceOp, d: DType, (x, n): (Val, usize), before: Option<Val>) -> Option<(Val, Val)> {
        let (sums, carry) = handlers::running(op, d)?;
        let start = if op == ReduceOp::Prod { 1.0 } else { -0.0 };
        // Sums of f32 are f64 that two lanes hold.
        let start = if carry.is_some() { 0 } else { bits(Scalar::from_f64(d, start)) };
        let before = before.unwrap_or_else(|| self.constant(start));
        let mut made = |code| {
            let v = self.value(self.fixed[x as usize] && self.fixed[before as usize], true);
            self.call_on((code, n as u16), (x, before), v)
        };
        let (all, next) = (made(sums)?, carry.map(made));
        Some((all, next.unwrap_or_else(|| self.permuted(all, |_| Some(n - 1)))?))
    }

    /// The same for what may be joined in any order.
    fn running_freely(
        &mut self,
        op: ReduceOp,
        d: DType,
        (x, n): (Val, usize),
        before: Option<Val>,
    ) -> Option<(Val, Val)> {
        let join = op.joining()?;
        let again = !matches!(join, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Xor);
        let (mut all, mut step) = (x, 1);
        while step < n {
            let mut earlier = self.permuted(all, |l| Some(if l < step { l } else { l - step }))?;
            if !again {
                let (here, neutral) = (self.pattern(|l| u64::from(l >= step)), self.constant(bits(op.identity(d))));
                earlier = self.choose(here, neutral, earlier)?;
            }
            all = self.binary(join, d, earlier, all)?;
            step *= 2;
        }
        if let Some(before) = before {
            all = self.binary(join, d, before, all)?;
        }
        Some((all, self.permuted(all, |_| Some(n - 1))?))
    }

    /// The places along an axis of the first largest or smallest elements, or of the first NaN.
    fn arg_reduced(&mut self, max: bool, axis: usize, (ty, out): (&Type, &Type), x: &Form) -> Option<Cells> {
        if !matches!(out.dtype, DType::I32 | DType::I64) {
            return None;
        }
        let (n, inner) = (ty.shape[axis], ty.shape[axis + 1..].iter().product::<usize>());
        let (d, size) = (ty.dtype, ty.size());
        let best = self.reduced(if max { ReduceOp::Max } else { ReduceOp::Min }, &[axis], ty, x)?;
        let best = Form::Cells(best, self.per(out.size()));
        let line = |i: usize| i / (n * inner) * inner + i % inner;
        let each: Places = (0..size).map(|i| self.place(&best, line(i))).collect::<Option<_>>()?;
        let (best, all) = (self.together(&each)?, self.registers(x, size)?);
        let mut places = self.numbers(size, |i| (i / inner % n) as u64);
        let none = self.integer(n as i64);
        for ((x, best), place) in all.into_iter().zip(best).zip(&mut places) {
            let mut found = self.compare(CompareOp::Eq, d, x, best)?;
            if d.is_float() {
                let nan = self.compare(CompareOp::Ne, d, x, x)?;
                found = self.two(Two::Or, found, nan)?;
            }
            *place = self.choose(found, none, *place)?;
        }
        let places = Form::Cells(places, self.per(size));
        self.reduced(ReduceOp::Min, &[axis], &Type::new(out.dtype, &ty.shape), &places)
    }
}
