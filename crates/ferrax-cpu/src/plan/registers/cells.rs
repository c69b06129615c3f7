//! Reductions, products and moves at constant indices of a few elements, each of which is a scalar of its own.
//!
//! Sums are in the order of the kernels that a body's steps would call (`library/reduce.rs`, `columns.rs` and
//! `matmul/vector.rs` say which), so results have their bits. What an index of constants moves is found by moving the
//! numbers of elements with the library's own kernel. Read next: `shapes.rs`.

use super::forms::{Cells, Form};
use super::packed::Places;
use super::translate::{Translator, bits};
use crate::elementwise::kernel::{In, Out};
use crate::library::dot::planned::Planned;
use crate::library::scatter::Hints;
use crate::library::{gather, reduce, scatter};
use crate::machine::loops::assemble::Val;
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::ScatterOp;
use ferrax_loops::{BinaryOp, Gathering, Graph, Kind, Node, ReduceOp, Type};

impl Translator {
    /// What a reduction makes of the elements of its operand: scalars, or registers of results.
    pub fn reduced(&mut self, op: ReduceOp, axes: &[usize], ty: &Type, x: &Form) -> Option<Cells> {
        let [outer, n, inner] = reduce::one_group(&ty.shape, axes)?;
        let join = op.joining()?;
        if n == 1 {
            return self.registers(x, outer * inner); // the kernels copy, negative zeros too
        }
        // Only floats are joined to another result in another order.
        let free = !ty.dtype.is_float() || matches!(op, ReduceOp::Max | ReduceOp::Min);
        let width = reduce::accumulators(n, inner).or(free.then(|| n.next_power_of_two()));
        if self.per(n) > 1
            && outer * inner == 1
            && let Some(width) = width
        {
            let neutral = if op == ReduceOp::Sum && ty.dtype.is_float() {
                Scalar::from_f64(ty.dtype, -0.0)
            } else {
                op.identity(ty.dtype)
            };
            let all = self.registers(x, n)?;
            let all = self.tree((join, ty.dtype, bits(neutral)), all, (n, width))?;
            return Some(Cells::from_elem(self.joined_to_identity(join, ty.dtype, all)?, 1));
        }
        let mut results = Cells::new();
        for at in self.groups(outer * inner) {
            let first = |at: usize| at / inner * n * inner + at % inner;
            let mut row: Cells =
                (0..n).map(|i| self.picked(x, at.clone().map(|at| first(at) + i * inner))).collect::<Option<_>>()?;
            results.push(match width {
                None => {
                    let first = self.joined_to_identity(join, ty.dtype, *row.first()?)?;
                    row[1..].iter().try_fold(first, |sum, &x| self.binary(join, ty.dtype, sum, x))?
                }
                Some(width) => {
                    let all = self.halved(join, ty.dtype, &mut row, width)?;
                    self.joined_to_identity(join, ty.dtype, all)?
                }
            });
        }
        Some(results)
    }

    /// A float sum that begins with 0 has no negative zero; other results are those of the elements alone.
    fn joined_to_identity(&mut self, join: BinaryOp, d: DType, x: Val) -> Option<Val> {
        if join == BinaryOp::Add && d.is_float() {
            let zero = self.constant(0);
            return self.binary(join, d, zero, x);
        }
        Some(x)
    }

    /// The halves of `width` accumulators joined until one is left; those beyond the elements are neutral.
    pub fn halved(&mut self, join: BinaryOp, d: DType, row: &mut Cells, mut width: usize) -> Option<Val> {
        while width > 1 {
            width /= 2;
            for k in width..row.len() {
                row[k - width] = self.binary(join, d, row[k - width], row[k])?;
            }
            row.truncate(width);
        }
        row.first().copied()
    }

    /// Products of matrices or vectors.
    pub fn product(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Cells> {
        let (product, batches) = Planned::batched(g, node)?;
        let (m, n) = product.shape();
        let lanes = product.running_sums()?;
        let zero = self.constant(0);
        let depth = product.depth();
        let mut factors: Vec<Vec<(usize, usize)>> = Vec::new();
        for (a, b) in batches {
            let of = |at: usize| product.factors(at / n, at % n).map(|f| (f.0 + a, f.1 + b)).collect();
            factors.extend((0..m * n).map(of));
        }
        if self.per(depth) > 1 && factors.len() == 1 && lanes.is_multiple_of(self.per(depth)) {
            let sum = self.long_product(&factors[0], x, lanes, g.ty(node.first).dtype)?;
            return Some(Cells::from_elem(sum, 1));
        }
        let mut results = Cells::new();
        for at in self.groups(factors.len()) {
            let mut sums = Cells::from_elem(zero, lanes.min(depth));
            for k in 0..depth {
                let a = self.picked(&x[0], at.clone().map(|at| factors[at][k].0))?;
                let b = self.picked(&x[1], at.clone().map(|at| factors[at][k].1))?;
                sums[k % lanes] = self.fma(a, b, sums[k % lanes])?;
            }
            results.push(self.halved(BinaryOp::Add, g.ty(node.first).dtype, &mut sums, lanes)?);
        }
        Some(results)
    }

    /// Where the elements of a gather's or a scatter's result are, where the indices are constants.
    pub fn moved(&mut self, g: &Graph, node: &Node, x: &[Form]) -> Option<Places> {
        let (operand, out) = (Numbers::of(g.ty(node.inputs[0]), 0), g.ty(node.first));
        let mut indices = Numbers::of(g.ty(node.inputs[1]), 0);
        let signed = g.ty(node.inputs[1]).dtype.is_signed();
        for (i, index) in indices.all.iter_mut().enumerate() {
            let number = self.number_in(self.place(&x[1], i)?)?;
            *index = if signed { i32::try_from(self.lane.signed(number)) } else { i32::try_from(number) }.ok()?;
        }
        let size = operand.all.len();
        let (made, fill) = match &node.kind {
            Kind::Gather(gathering) => {
                let fill = Scalar::from_i64(DType::I32, -1);
                let numbered = Gathering { fill, ..(**gathering).clone() };
                let mut made = Numbers::of(out, 0);
                gather::gather(&numbered, operand.input(), indices.input(), &mut made.output()).ok()?;
                (made, bits(gathering.fill))
            }
            Kind::Scatter { op: ScatterOp::Set, dims, mode, sorted, unique } => {
                let updates = Numbers::of(g.ty(node.inputs[2]), size);
                let (mut made, how) = (Numbers::of(out, 0), (*mode, Hints { sorted: *sorted, unique: *unique }));
                let [operand, indices, updates] = [operand.input(), indices.input(), updates.input()];
                scatter::scatter(ScatterOp::Set, dims, how, operand, indices, updates, &mut made.output()).ok()?;
                (made, 0)
            }
            _ => return None,
        };
        let of = |&at: &i32| match usize::try_from(at) {
            Ok(at) if at < size => self.place(&x[0], at),
            Ok(at) => self.place(&x[2], at - size),
            Err(_) => Some((self.constant(fill), 0)),
        };
        made.all.iter().map(of).collect()
    }
}

/// The numbers of an array's elements, as an array of their own.
struct Numbers {
    ty: Type,
    all: Vec<i32>,
}

impl Numbers {
    fn of(ty: &Type, first: usize) -> Self {
        let all = (first..first + ty.size()).map(|i| i as i32).collect();
        Numbers { ty: Type { dtype: DType::I32, shape: ty.shape.clone() }, all }
    }

    fn input(&self) -> In<'_> {
        // SAFETY: there is a number for each element.
        unsafe { In::new(self.all.as_ptr().cast(), &self.ty) }
    }

    fn output(&mut self) -> Out<'_> {
        // SAFETY: as above.
        unsafe { Out::new(self.all.as_mut_ptr().cast(), &self.ty) }
    }
}
