//! Random loops over small arrays and arrays at an index, against their bodies run one step after the other.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Scalar, Shape};
use ferrax_cpu::Program;
use ferrax_loops::kind::{Bytes, CompareOp, PadConfig, SliceDims};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{
    BinaryOp, Builder, DotDims, GatherDims, Gathering, Graph, IndexMode, Kind, ReduceOp, ScatterDims, ScatterOp, Type,
    UnaryOp, ValueId,
};
use proptest::prelude::*;
use std::sync::Arc;

/// Values of 4 bytes, and of 8 among which there are numbers of 4.
const DTYPES: [[DType; 5]; 2] = [
    [DType::F32, DType::F32, DType::I32, DType::U32, DType::Bool],
    [DType::F64, DType::F64, DType::I64, DType::I32, DType::Bool],
];

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len())].clone()
}

/// A body being made.
struct Body<'a> {
    rng: &'a mut Rng,
    b: Builder,
    values: Vec<ValueId>,
    /// The latest states of arrays at an index.
    arrays: Vec<ValueId>,
    /// How many of them, at the beginning, do not change.
    fixed: usize,
    depth: usize,
    /// Which of the `DTYPES`.
    width: usize,
}

impl Body<'_> {
    fn shape(&self, v: ValueId) -> Vec<usize> {
        self.b.ty(v).shape.to_vec()
    }

    fn value(&mut self, dtype: Option<DType>) -> ValueId {
        let v = pick(self.rng, &self.values);
        dtype.map_or(v, |d| self.b.convert(v, d))
    }

    /// A value of a type, made of whatever there is.
    fn of_type(&mut self, ty: &Type) -> ValueId {
        let same = |&v: &ValueId| self.b.ty(v).shape == ty.shape;
        let fits: Vec<ValueId> = self.values.iter().copied().filter(same).collect();
        let v = if fits.is_empty() {
            self.scalar(ty.dtype)
        } else {
            fits[fits.len() - 1 - self.rng.below(fits.len().min(4))]
        };
        let v = self.b.convert(v, ty.dtype);
        if self.b.ty(v).shape == ty.shape { v } else { self.b.broadcast(v, &ty.shape, &[]) }
    }

    fn scalar(&mut self, dtype: DType) -> ValueId {
        let scalars: Vec<ValueId> = self.values.iter().copied().filter(|&v| self.b.ty(v).shape.is_empty()).collect();
        if scalars.is_empty() || self.rng.below(6) == 0 {
            let s = self.rng.tame(dtype);
            return self.b.scalar(s);
        }
        let v = pick(self.rng, &scalars);
        self.b.convert(v, dtype)
    }

    fn step(&mut self) {
        let made = match self.rng.below(24) {
            0..=3 => self.arithmetic(),
            4..=6 => self.rearranged(),
            7 | 8 => self.read(),
            9 | 10 => self.written(),
            11 => self.branched(),
            12 => self.reduced(),
            13 => self.product(),
            14 => self.scanned(),
            15 => self.sliced(),
            16 => self.taken(),
            17 => self.put(),
            18 => self.turns(),
            19 => self.drawn(),
            20 => self.bits(),
            21 => self.factored(),
            22 => self.repeated(),
            _ => self.moved(),
        };
        self.values.extend(made.filter(|&v| self.b.ty(v).size() <= 64));
    }

    /// A scan along the first axis of a value.
    fn turns(&mut self) -> Option<ValueId> {
        let d = DTYPES[self.width][pick(self.rng, &[0, 2])];
        let xs = self.value(Some(d));
        let shape = self.shape(xs);
        let (&length, row) = shape.split_first()?;
        let (scalar, row) = (Type::new(d, &[]), Type::new(d, row));
        let start = self.scalar(d);
        let mut b = Builder::new([scalar.clone(), row.clone()]);
        let p: Vec<ValueId> = b.params().collect();
        let axes = (0..row.shape.len()).collect();
        let sum = b.push(Kind::Reduce { op: ReduceOp::Sum, axes }, &[p[1]], scalar.clone());
        let next = b.binary(BinaryOp::Sub, sum, p[0]);
        let spread = b.broadcast(p[0], &row.shape, &[]);
        let y = b.binary(BinaryOp::Max, p[1], spread);
        let body = Arc::new(b.finish(&[next, y, next]));
        let kind = Kind::Scan { body, length, reverse: self.rng.below(2) == 0, consts: 0, carry: 1 };
        let made =
            self.b.push_many(kind, &[start, xs], &[scalar.clone(), stacked(&row, length), stacked(&scalar, length)]);
        self.values.push(made[0]);
        Some(made[1 + self.rng.below(2)])
    }

    /// Random bits: keys are words for all, or for each.
    fn drawn(&mut self) -> Option<ValueId> {
        if self.width > 0 {
            return None;
        }
        let n = pick(self.rng, &[1, 1, 2, 3, 5, 16, 21]);
        let ty = Type::new(DType::U32, &[n]);
        let words: Vec<ValueId> = (0..4)
            .map(|i| if i < 2 && self.rng.below(2) == 0 { self.scalar(DType::U32) } else { self.of_type(&ty) })
            .collect();
        let made = self.b.push_many(Kind::Threefry2x32, &words, &[ty.clone(), ty]);
        self.values.push(made[1]);
        Some(made[0])
    }

    /// The bits of integers as floats, or of other integers.
    fn bits(&mut self) -> Option<ValueId> {
        let from = pick(self.rng, [&[DType::I32, DType::U32][..], &[DType::I64]][self.width]);
        let to = pick(self.rng, [&[DType::F32, DType::I32, DType::U32][..], &[DType::F64, DType::I64]][self.width]);
        let x = self.value(Some(from));
        let shape = self.shape(x);
        Some(self.b.push(Kind::Bitcast, &[x], Type::new(to, &shape)))
    }

    /// Factors of small matrices, and solutions with them.
    fn factored(&mut self) -> Option<ValueId> {
        let d = DTYPES[self.width][0];
        let (n, batch) = (1 + self.rng.below(4), pick(self.rng, &[None, None, Some(2)]));
        let of = |d: DType, rest: &[usize]| Type::new(d, &batch.iter().chain(rest).copied().collect::<Vec<usize>>());
        let square = of(d, &[n, n]);
        let a = self.of_type(&square);
        // Rows that differ.
        let grid = self.b.iota(d, &square.shape, square.shape.len() - 1 - self.rng.below(2));
        let a = if self.rng.below(4) > 0 { self.b.binary(BinaryOp::Sub, grid, a) } else { a };
        Some(match self.rng.below(4) {
            0 => self.b.push(Kind::Linalg(LinalgOp::Cholesky), &[a], square),
            1 => {
                let order = of(DType::I32, &[n]);
                let made = self.b.push_many(Kind::Linalg(LinalgOp::Lu), &[a], &[square, order.clone(), order.clone()]);
                self.values.extend(&made[1..]);
                let count = Kind::Linalg(LinalgOp::PivotsToPermutation);
                let pivots = if self.rng.below(2) == 0 { made[1] } else { self.of_type(&order) };
                let again = self.b.push(count, &[pivots], order);
                self.values.push(again);
                made[0]
            }
            _ => {
                let mut flag = || self.rng.below(2) == 0;
                let (lower, transpose, unit) = (flag(), flag(), flag());
                let op = LinalgOp::TriangularSolve { left: true, lower, transpose, conjugate: false, unit };
                let b = of(d, &[n, 1 + self.rng.below(3)]);
                let right = self.of_type(&b);
                self.b.push(Kind::Linalg(op), &[a, right], b)
            }
        })
    }

    fn arithmetic(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let other = if self.rng.below(3) == 0 { Type::new(ty.dtype, &[]) } else { ty.clone() };
        let y = self.of_type(&other);
        Some(match (self.rng.below(4), ty.dtype) {
            (0, d) if d.is_float() => {
                let op = pick(self.rng, &[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sqrt, UnaryOp::Tanh, UnaryOp::Sin]);
                self.b.unary(op, x)
            }
            (1, _) => self.b.compare(pick(self.rng, &[CompareOp::Lt, CompareOp::Eq, CompareOp::Ge]), x, y),
            (2, _) => {
                let p = self.scalar(DType::Bool);
                let y = self.of_type(&ty);
                self.b.select(p, x, y)
            }
            (_, DType::Bool) => self.b.binary(BinaryOp::Xor, x, y),
            (_, d) => {
                let some = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min, BinaryOp::Rem];
                let more = [BinaryOp::ShiftLeft, BinaryOp::ShiftRightLogical, BinaryOp::ShiftRightArithmetic];
                let op =
                    if !d.is_float() && self.rng.below(3) == 0 { pick(self.rng, &more) } else { pick(self.rng, &some) };
                let two = self.b.scalar(Scalar::from_i64(d, 1 << self.rng.below(5)));
                let y = if op == BinaryOp::Rem && self.rng.below(2) == 0 { two } else { y };
                self.b.binary(op, x, y)
            }
        })
    }

    fn rearranged(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let (shape, dtype) = (self.shape(x), self.b.ty(x).dtype);
        let rank = shape.len();
        let type_of = |shape: &[usize]| Type::new(dtype, shape);
        Some(match self.rng.below(8) {
            0 if rank > 0 => {
                let start: Shape = shape.iter().map(|&n| self.rng.below(n)).collect();
                let limit: Shape = start.iter().zip(&shape).map(|(&s, &n)| s + 1 + self.rng.below(n - s)).collect();
                let stride: Shape = shape.iter().map(|_| 1 + self.rng.below(2)).collect();
                let out: Vec<usize> = (0..rank).map(|a| (limit[a] - start[a]).div_ceil(stride[a])).collect();
                self.b.push(Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[x], type_of(&out))
            }
            1 => {
                let n: usize = shape.iter().product();
                let shapes = [vec![n], vec![1, n], vec![n, 1]];
                let to = if n == 1 { vec![] } else { pick(self.rng, &shapes) };
                self.b.reshape(x, &to)
            }
            2 if rank > 0 => {
                let axis = self.rng.below(rank);
                let y = self.of_type(&type_of(&shape));
                let mut out = shape.clone();
                out[axis] *= 2;
                self.b.push(Kind::Concat(axis), &[x, y], type_of(&out))
            }
            3 if rank > 1 => {
                let perm = self.rng.permutation(rank);
                let out: Vec<usize> = perm.iter().map(|&a| shape[a]).collect();
                self.b.push(Kind::Transpose(perm.into_iter().collect()), &[x], type_of(&out))
            }
            4 => {
                let mut out = shape.clone();
                let at = self.rng.below(rank + 1);
                out.insert(at, 1 + self.rng.below(3));
                let dims: Vec<usize> = (0..=rank).filter(|&a| a != at).collect();
                self.b.broadcast(x, &out, &dims)
            }
            5 if rank > 0 => self.b.push(Kind::Rev(self.rng.axes(rank).into_iter().collect()), &[x], type_of(&shape)),
            6 if rank > 0 => {
                let config: Vec<PadConfig> = shape
                    .iter()
                    .map(|_| PadConfig { low: self.rng.below(3) as i64 - 1, high: 1, interior: self.rng.below(2) })
                    .collect();
                let extent =
                    |(c, &n): (&PadConfig, &usize)| (n as i64 + c.low + c.high) as usize + (n - 1) * c.interior;
                let out: Vec<usize> = config.iter().zip(&shape).map(extent).collect();
                let value = self.scalar(dtype);
                if out.contains(&0) {
                    return None;
                }
                self.b.push(Kind::Pad(config.into()), &[x, value], type_of(&out))
            }
            _ => {
                let axis = self.rng.below(rank.max(1));
                if rank == 0 {
                    return None;
                }
                let iota = self.b.iota(DType::I32, &shape, axis);
                self.b.convert(iota, dtype)
            }
        })
    }

    fn reduced(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let (shape, dtype) = (self.shape(x), self.b.ty(x).dtype);
        let axes = self.rng.axes(shape.len());
        let out: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        let some = [ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
        let more = [ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];
        let op = if dtype.is_float() || self.rng.below(2) == 0 { pick(self.rng, &some) } else { pick(self.rng, &more) };
        Some(self.b.push(Kind::Reduce { op, axes: axes.into_iter().collect() }, &[x], Type::new(dtype, &out)))
    }

    /// A product of a value with another one that has the contracted axis, over the first or the last axis of each, for each
    /// index of another axis that both have, or by itself.
    fn product(&mut self) -> Option<ValueId> {
        let dtype = DTYPES[self.width][pick(self.rng, &[0, 0, 2])];
        let x = self.value(Some(dtype));
        let shape = self.shape(x);
        let axis = self.rng.below(shape.len().max(1));
        let &k = shape.get(axis)?;
        let mut other = vec![k];
        (0..self.rng.below(2)).for_each(|_| other.push(1 + self.rng.below(4)));
        let mut at = if self.rng.below(2) == 0 { 0 } else { other.len() - 1 };
        other.swap(0, at);
        let mut dims = DotDims { lhs_contract: [axis][..].into(), ..DotDims::default() };
        if shape.len() == 2 && self.rng.below(2) == 0 {
            let place = self.rng.below(other.len() + 1);
            other.insert(place, shape[1 - axis]);
            at += usize::from(place <= at);
            (dims.lhs_batch, dims.rhs_batch) = ([1 - axis][..].into(), [place][..].into());
        }
        dims.rhs_contract = [at][..].into();
        let y = self.of_type(&Type::new(dtype, &other));
        let batch: Vec<usize> = dims.lhs_batch.iter().map(|&a| shape[a]).collect();
        let free = |shape: &[usize], batch: &[usize], axis: usize| -> Vec<usize> {
            (0..shape.len()).filter(|a| *a != axis && !batch.contains(a)).map(|a| shape[a]).collect()
        };
        let out = [batch, free(&shape, &dims.lhs_batch, axis), free(&other, &dims.rhs_batch, at)].concat();
        Some(self.b.push(Kind::Dot(Box::new(dims)), &[x, y], Type::new(dtype, &out)))
    }

    /// Rows that constant indices name, taken out of a value or put in place.
    fn moved(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let (&n, rest) = ty.shape.split_first()?;
        let count = 1 + self.rng.below(3);
        let numbers: Vec<u8> = (0..count).flat_map(|_| (self.rng.below(n + 2) as i32 - 1).to_le_bytes()).collect();
        let indices = self.b.push(Kind::Dense(Bytes::of(numbers)), &[], Type::new(DType::I32, &[count, 1]));
        let mode = pick(self.rng, &[IndexMode::Clip, IndexMode::FillOrDrop]);
        let window: Vec<usize> = (1..=rest.len()).collect();
        let rows = Type::new(ty.dtype, &[&[count], rest].concat());
        if self.rng.below(2) == 0 {
            let dims = ScatterDims {
                update_window_dims: window.into(),
                inserted_window_dims: [0][..].into(),
                scatter_dims_to_operand_dims: [0][..].into(),
                ..ScatterDims::default()
            };
            let update = self.of_type(&rows);
            let (op, dims) = (ScatterOp::Set, Box::new(dims));
            return Some(self.b.push(
                Kind::Scatter { op, dims, mode, sorted: false, unique: false },
                &[x, indices, update],
                ty,
            ));
        }
        let dims = GatherDims {
            offset_dims: window.into(),
            collapsed_slice_dims: [0][..].into(),
            start_index_map: [0][..].into(),
            ..GatherDims::default()
        };
        let (slice_sizes, fill) = ([&[1], rest].concat().into(), self.rng.tame(ty.dtype));
        let gathering = Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap: false };
        Some(self.b.push(Kind::Gather(Box::new(gathering)), &[x, indices], rows))
    }

    /// Running results, and the place of the largest or smallest element.
    fn scanned(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let axis = self.rng.below(ty.shape.len().max(1));
        if ty.shape.is_empty() || ty.dtype.is_bool() {
            return None;
        }
        if self.rng.below(3) == 0 {
            let out: Vec<usize> = (0..ty.shape.len()).filter(|&a| a != axis).map(|a| ty.shape[a]).collect();
            let max = self.rng.below(2) == 0;
            return Some(self.b.push(Kind::ArgReduce { max, axis }, &[x], Type::new(DType::I32, &out)));
        }
        let op = pick(self.rng, &[ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min]);
        Some(self.b.push(Kind::Cumulative { op, axis, reverse: self.rng.below(2) == 0 }, &[x], ty))
    }

    /// A part of a value at an index, or a value of which such a part was replaced.
    fn sliced(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let sizes: Vec<usize> = ty.shape.iter().map(|&n| 1 + self.rng.below(n)).collect();
        let starts: Vec<ValueId> = ty.shape.iter().map(|_| self.index()).collect();
        let part = Type::new(ty.dtype, &sizes);
        if self.rng.below(2) == 0 {
            let all: Vec<ValueId> = std::iter::once(x).chain(starts).collect();
            return Some(self.b.push(Kind::DynamicSlice, &all, part));
        }
        let update = self.of_type(&part);
        let all: Vec<ValueId> = [x, update].into_iter().chain(starts).collect();
        Some(self.b.push(Kind::DynamicUpdateSlice, &all, ty))
    }

    /// Indices that the body computes, as a column.
    fn column(&mut self, count: usize) -> ValueId {
        let ty = Type::new(DTYPES[self.width][2], &[count]);
        let wild = self.of_type(&ty);
        let limit = self.b.scalar(Scalar::from_i64(ty.dtype, 8));
        let limit = self.b.broadcast(limit, &[count], &[]);
        let all = if self.rng.below(3) == 0 { wild } else { self.b.binary(BinaryOp::Rem, wild, limit) };
        self.b.reshape(all, &[count, 1])
    }

    /// Rows of a value that computed indices name.
    fn taken(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let (_, rest) = ty.shape.split_first()?;
        let count = pick(self.rng, &[1, 2, 3, 7, 19]);
        let indices = self.column(count);
        let last = self.rng.below(2) == 0;
        let out = if last { [rest, &[count]].concat() } else { [&[count], rest].concat() };
        let first = usize::from(!last);
        let dims = GatherDims {
            offset_dims: (first..first + rest.len()).collect(),
            collapsed_slice_dims: [0][..].into(),
            start_index_map: [0][..].into(),
            ..GatherDims::default()
        };
        let mode = pick(self.rng, &[IndexMode::Clip, IndexMode::FillOrDrop]);
        let wrap = self.rng.below(2) == 0;
        let indices = if wrap { self.b.reshape(indices, &[count]) } else { indices };
        let (slice_sizes, fill) = ([&[1], rest].concat().into(), self.rng.tame(ty.dtype));
        let gathering = Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap };
        Some(self.b.push(Kind::Gather(Box::new(gathering)), &[x, indices], Type::new(ty.dtype, &out)))
    }

    /// A value to whose rows at computed indices something was joined.
    fn put(&mut self) -> Option<ValueId> {
        let x = self.value(None);
        let ty = self.b.ty(x).clone();
        let (_, rest) = ty.shape.split_first()?;
        let count = pick(self.rng, &[1, 2, 5]);
        let indices = self.column(count);
        let dims = ScatterDims {
            update_window_dims: (1..=rest.len()).collect(),
            inserted_window_dims: [0][..].into(),
            scatter_dims_to_operand_dims: [0][..].into(),
            ..ScatterDims::default()
        };
        let ops = [ScatterOp::Set, ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Min];
        let op = if ty.dtype.is_bool() { ScatterOp::Set } else { pick(self.rng, &ops) };
        let mode = pick(self.rng, &[IndexMode::Clip, IndexMode::FillOrDrop]);
        let update = self.of_type(&Type::new(ty.dtype, &[&[count], rest].concat()));
        let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
        Some(self.b.push(kind, &[x, indices, update], ty))
    }

    fn index(&mut self) -> ValueId {
        let dtype = DTYPES[self.width][2];
        let wild = self.scalar(dtype);
        let limit = self.b.scalar(Scalar::from_i64(dtype, 8));
        if self.rng.below(3) == 0 { wild } else { self.b.binary(BinaryOp::Rem, wild, limit) }
    }

    /// A window of an array: its sizes, and which axes an index vector moves it along.
    fn window(&mut self, shape: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let sizes: Vec<usize> = shape.iter().map(|&n| if n > 4 { 1 } else { pick(self.rng, &[1, n]) }).collect();
        let moved = (0..shape.len()).filter(|&a| sizes[a] < shape[a] || self.rng.below(3) == 0).collect();
        (sizes, moved)
    }

    fn vector(&mut self, count: usize) -> ValueId {
        let all: Vec<ValueId> = (0..count)
            .map(|_| {
                let i = self.index();
                self.b.reshape(i, &[1])
            })
            .collect();
        if count == 1 { all[0] } else { self.b.push(Kind::Concat(0), &all, Type::new(DTYPES[self.width][2], &[count])) }
    }

    fn read(&mut self) -> Option<ValueId> {
        if self.arrays.is_empty() {
            return None;
        }
        let x = pick(self.rng, &self.arrays);
        let (shape, dtype) = (self.shape(x), self.b.ty(x).dtype);
        let (sizes, moved) = self.window(&shape);
        if self.rng.below(2) == 0 || moved.is_empty() {
            let starts: Vec<ValueId> = shape.iter().map(|_| self.index()).collect();
            let all: Vec<ValueId> = std::iter::once(x).chain(starts).collect();
            return Some(self.b.push(Kind::DynamicSlice, &all, Type::new(dtype, &sizes)));
        }
        let collapsed: Vec<usize> = (0..shape.len()).filter(|&a| sizes[a] == 1 && self.rng.below(2) == 0).collect();
        let out: Vec<usize> = (0..shape.len()).filter(|a| !collapsed.contains(a)).map(|a| sizes[a]).collect();
        let dims = GatherDims {
            offset_dims: (0..out.len()).collect(),
            collapsed_slice_dims: collapsed.into(),
            start_index_map: moved.clone().into(),
            ..GatherDims::default()
        };
        let gathering = Gathering {
            dims,
            slice_sizes: sizes.into(),
            mode: pick(self.rng, &[IndexMode::Clip, IndexMode::FillOrDrop, IndexMode::PromiseInBounds]),
            fill: self.rng.tame(dtype),
            sorted: false,
            unique: false,
            wrap: moved.len() == 1 && self.rng.below(2) == 0,
        };
        let indices = if gathering.wrap { self.index() } else { self.vector(moved.len()) };
        Some(self.b.push(Kind::Gather(Box::new(gathering)), &[x, indices], Type::new(dtype, &out)))
    }

    fn written(&mut self) -> Option<ValueId> {
        if self.arrays.len() == self.fixed {
            return None;
        }
        let k = self.fixed + self.rng.below(self.arrays.len() - self.fixed);
        let x = self.arrays[k];
        let ty = self.b.ty(x).clone();
        let (sizes, moved) = self.window(&ty.shape);
        let dtype = ty.dtype;
        self.arrays[k] = if self.rng.below(2) == 0 || moved.is_empty() {
            let update = self.of_type(&Type::new(dtype, &sizes));
            let starts: Vec<ValueId> = ty.shape.iter().map(|_| self.index()).collect();
            let all: Vec<ValueId> = [x, update].into_iter().chain(starts).collect();
            self.b.push(Kind::DynamicUpdateSlice, &all, ty)
        } else {
            let inserted: Vec<usize> = (0..sizes.len()).filter(|&a| sizes[a] == 1 && self.rng.below(2) == 0).collect();
            let window: Vec<usize> = (0..sizes.len()).filter(|a| !inserted.contains(a)).map(|a| sizes[a]).collect();
            let dims = ScatterDims {
                update_window_dims: (0..window.len()).collect(),
                inserted_window_dims: inserted.into(),
                scatter_dims_to_operand_dims: moved.clone().into(),
                ..ScatterDims::default()
            };
            let ops = [ScatterOp::Set, ScatterOp::Set, ScatterOp::Add, ScatterOp::Mul, ScatterOp::Max];
            let op = if dtype.is_bool() { ScatterOp::Set } else { pick(self.rng, &ops) };
            let mode = pick(self.rng, &[IndexMode::Clip, IndexMode::FillOrDrop]);
            let update = self.of_type(&Type::new(dtype, &window));
            let indices = self.vector(moved.len());
            let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
            self.b.push(kind, &[x, indices, update], ty)
        };
        None
    }

    /// A loop of a few steps over a value.
    fn repeated(&mut self) -> Option<ValueId> {
        if self.depth > 1 {
            return None;
        }
        let (x, fixed) = (self.value(None), self.value(None));
        let (count, ty) = (Type::new(DType::I32, &[]), self.b.ty(x).clone());
        let mut cond = Builder::new([count.clone(), ty.clone()]);
        let (i, limit) = (cond.params().next()?, cond.scalar(Scalar::from_i64(DType::I32, self.rng.below(4) as i64)));
        let more = cond.compare(CompareOp::Lt, i, limit);
        let cond = Arc::new(cond.finish(&[more]));
        let b = Builder::new([self.b.ty(fixed).clone(), count.clone(), ty.clone()]);
        let p: Vec<ValueId> = b.params().collect();
        let values = vec![p[0], p[2]];
        let (depth, width) = (self.depth + 1, self.width);
        let mut inner = Body { rng: self.rng, b, values, arrays: Vec::new(), fixed: 0, depth, width };
        (0..3).for_each(|_| inner.step());
        let next = inner.of_type(&ty);
        let one = inner.b.scalar(Scalar::from_i64(DType::I32, 1));
        let up = inner.b.binary(BinaryOp::Add, p[1], one);
        let body = Arc::new(inner.b.finish(&[up, next]));
        let (start, four) = (self.scalar(DType::I32), self.b.scalar(Scalar::from_i64(DType::I32, 4)));
        let start = self.b.binary(BinaryOp::Rem, start, four);
        let kind = Kind::While { cond, body, cond_consts: 0, body_consts: 1 };
        let made = self.b.push_many(kind, &[fixed, start, x], &[count, ty]);
        self.values.push(made[0]);
        Some(made[1])
    }

    /// A choice among bodies over some values and all arrays.
    fn branched(&mut self) -> Option<ValueId> {
        if self.depth > 1 {
            return None;
        }
        let mut inputs: Vec<ValueId> = (0..3).map(|_| self.value(None)).collect();
        inputs.extend(&self.arrays);
        let types: Vec<Type> = inputs.iter().map(|&v| self.b.ty(v).clone()).collect();
        let out = types[0].clone();
        let branches: Vec<Arc<Graph>> = (0..=self.rng.below(3))
            .map(|_| {
                let b = Builder::new(types.clone());
                let all: Vec<ValueId> = b.params().collect();
                let (values, arrays) = (all[..3].to_vec(), all[3..].to_vec());
                let mut inner = Body {
                    rng: self.rng,
                    b,
                    values,
                    arrays,
                    fixed: self.fixed,
                    depth: self.depth + 1,
                    width: self.width,
                };
                (0..3).for_each(|_| inner.step());
                let mut outs = vec![inner.of_type(&out)];
                outs.extend(&inner.arrays[inner.fixed..]);
                Arc::new(inner.b.finish(&outs))
            })
            .collect();
        let which = self.scalar(DType::I32);
        let all: Vec<ValueId> = std::iter::once(which).chain(inputs).collect();
        let results: Vec<Type> = std::iter::once(out).chain(types[3 + self.fixed..].iter().cloned()).collect();
        let outs = self.b.push_many(Kind::Switch(branches), &all, &results);
        self.arrays.splice(self.fixed.., outs[1..].iter().copied());
        Some(outs[0])
    }
}

/// The types of a loop's operands: constants, arrays that do not change, carried values, carried arrays, stepped.
struct Types([Vec<Type>; 5]);

fn types(rng: &mut Rng, width: usize) -> Types {
    let few: [&[usize]; 9] = [&[], &[], &[2], &[3], &[4], &[2, 2], &[1, 3], &[3, 2], &[1]];
    let more: [&[usize]; 9] = [&[], &[], &[20], &[20], &[16], &[5, 4], &[8], &[3, 6], &[33]];
    let small = if rng.below(2) == 0 { few } else { more };
    let large: [&[usize]; 6] = [&[6], &[9], &[40], &[7, 3], &[5, 2, 2], &[3, 8]];
    let mut some = |shapes: &[&[usize]], least: usize, most: usize| -> Vec<Type> {
        (0..least + rng.below(most + 1)).map(|_| Type::new(pick(rng, &DTYPES[width]), pick(rng, shapes))).collect()
    };
    Types([some(&small, 0, 2), some(&large, 0, 1), some(&small, 1, 2), some(&large, 0, 2), some(&small, 0, 2)])
}

fn stacked(t: &Type, length: usize) -> Type {
    let shape: Vec<usize> = std::iter::once(length).chain(t.shape.iter().copied()).collect();
    Type::new(t.dtype, &shape)
}

/// A scan over random types, and its body.
fn scan(rng: &mut Rng, width: usize, steps: usize, length: usize) -> (Graph, Arc<Graph>) {
    let Types([consts, fixed, carry, arrays, xs]) = types(rng, width);
    let groups = [&consts, &fixed, &carry, &arrays, &xs];
    let b = Builder::new(groups.iter().flat_map(|g| g.iter().cloned()));
    let p: Vec<ValueId> = b.params().collect();
    let ends: Vec<usize> = groups
        .iter()
        .scan(0, |at, g| {
            *at += g.len();
            Some(*at)
        })
        .collect();
    let values: Vec<ValueId> = p[..ends[0]].iter().chain(&p[ends[1]..ends[2]]).chain(&p[ends[3]..]).copied().collect();
    let all_arrays: Vec<ValueId> = p[ends[0]..ends[1]].iter().chain(&p[ends[2]..ends[3]]).copied().collect();
    let mut body = Body { rng, b, values, arrays: all_arrays, fixed: fixed.len(), depth: 0, width };
    (0..steps).for_each(|_| body.step());
    let mut outs: Vec<ValueId> = carry.iter().map(|ty| body.of_type(ty)).collect();
    outs.extend(&body.arrays[fixed.len()..]);
    let ys: Vec<ValueId> = (0..body.rng.below(4)).map(|_| pick(body.rng, &body.values)).collect();
    outs.extend(&ys);
    let ys: Vec<Type> = ys.iter().map(|&v| body.b.ty(v).clone()).collect();
    let inner = Arc::new(body.b.finish(&outs));
    let carried: Vec<Type> = carry.iter().chain(&arrays).cloned().collect();
    let (consts, count) = (consts.len() + fixed.len(), carried.len());
    let mut params: Vec<Type> = inner.types[..consts + count].to_vec();
    params.extend(xs.iter().map(|x| stacked(x, length)));
    let mut b = Builder::new(params);
    let args: Vec<ValueId> = b.params().collect();
    let results: Vec<Type> = carried.into_iter().chain(ys.iter().map(|y| stacked(y, length))).collect();
    let kind = Kind::Scan { body: inner.clone(), length, reverse: rng.below(2) == 0, consts, carry: count };
    let all = b.push_many(kind, &args, &results);
    // Some stacked results are not read.
    let outs: Vec<ValueId> =
        all.iter().enumerate().filter(|(k, _)| *k < count || rng.below(4) > 0).map(|(_, &v)| v).collect();
    (b.finish(&outs), inner)
}

fn run(p: &Program, args: &[Buffer]) -> Vec<Buffer> {
    let mut args: Vec<Arg<'_>> = args.iter().map(Arg::Host).collect();
    p.run(&mut args).unwrap().into_vec()
}

/// The results of a scan, its body run by itself at each step.
fn stepped(graph: &Graph, args: &[Buffer]) -> Vec<Buffer> {
    let node = graph.nodes.last().unwrap();
    let Kind::Scan { body, length, reverse, consts, carry } = &node.kind else { panic!("not a scan") };
    let program = Program::compile_plain(body.clone()).unwrap();
    let mut state: Vec<Buffer> =
        args[*consts..consts + carry].iter().map(|b| Buffer::from_bytes(b.bytes()).unwrap()).collect();
    let mut ys: Vec<Vec<u8>> =
        (*carry..body.outputs.len()).map(|k| vec![0; body.ty(body.outputs[k]).bytes() * length]).collect();
    for step in 0..*length {
        let i = if *reverse { length - 1 - step } else { step };
        let mut all: Vec<Buffer> = args[..*consts].iter().map(|b| Buffer::from_bytes(b.bytes()).unwrap()).collect();
        all.append(&mut state);
        for (x, p) in args[consts + carry..].iter().zip(consts + carry..) {
            let bytes = body.types[p].bytes();
            all.push(Buffer::from_bytes(&x.bytes()[i * bytes..(i + 1) * bytes]).unwrap());
        }
        let mut outs = run(&program, &all);
        for (y, out) in ys.iter_mut().zip(outs.drain(*carry..)) {
            let bytes = out.bytes().len();
            y[i * bytes..(i + 1) * bytes].copy_from_slice(out.bytes());
        }
        state = outs;
    }
    let all: Vec<Buffer> = state.into_iter().chain(ys.iter().map(|y| Buffer::from_bytes(y).unwrap())).collect();
    let first = node.first.0 as usize;
    graph.outputs.iter().map(|v| Buffer::from_bytes(all[v.0 as usize - first].bytes()).unwrap()).collect()
}

#[track_caller]
fn same_bits(g: &Graph, body: &Graph, got: &[Buffer], want: &[Buffer]) {
    for (k, (a, b)) in got.iter().zip(want).enumerate() {
        let ty = g.ty(g.outputs[k]);
        let (a, b) = (Array::of(ty, a), Array::of(ty, b));
        common::assert_same(&a, &b, &format_args!("output {k} of\n{g}\n{body}"));
    }
}

#[track_caller]
fn check(graph: Graph, body: &Graph, args: &[Buffer]) -> Program {
    let graph = Arc::new(graph);
    let want = stepped(&graph, args);
    same_bits(&graph, body, &run(&Program::compile_plain(graph.clone()).unwrap(), args), &want);
    let program = Program::compile(graph.clone()).unwrap();
    same_bits(&graph, body, &run(&program, args), &want);
    let donated = Program::compile_donating(graph.clone(), &vec![true; graph.params]).unwrap();
    let mut owned: Vec<Arg<'_>> =
        args.iter().map(|b| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into())).collect();
    same_bits(&graph, body, &donated.run(&mut owned).unwrap(), &want);
    program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(1500)))]

    #[test]
    fn small_arrays_and_arrays_at_an_index(seed: u64, steps in 1usize..14, length in 0usize..7, width in 0usize..2) {
        let mut rng = Rng(seed);
        let (graph, body) = scan(&mut rng, width, steps, length);
        let args: Vec<Buffer> =
            graph.param_types().iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape).buffer()).collect();
        check(graph, &body, &args);
    }

    /// What a body computes, by itself: lines of its operations run in registers.
    #[test]
    fn lines_of_operations(seed: u64, steps in 8usize..60, width in 0usize..2) {
        let mut rng = Rng(seed);
        let (_, body) = scan(&mut rng, width, steps, 1);
        let args: Vec<Buffer> =
            body.param_types().iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape).buffer()).collect();
        let want = run(&Program::compile_plain(body.clone()).unwrap(), &args);
        same_bits(&body, &body, &run(&Program::compile(body.clone()).unwrap(), &args), &want);
    }

    /// Forms that small arrays in registers have, each by itself: they are in registers, with the kernels' bits.
    #[test]
    fn forms_of_arrays_in_registers(seed: u64, n in 5usize..65, length in 0usize..9, form in 0usize..9, width in 0usize..2) {
        let mut rng = Rng(seed);
        let (d, int) = (DTYPES[width][pick(&mut rng, &[0, 2])], DTYPES[width][2]);
        let (ty, index) = (Type::new(d, &[n]), Type::new(int, &[]));
        let mut b = Builder::new([ty.clone(), index.clone()]);
        let p: Vec<ValueId> = b.params().collect();
        let (x, i) = (p[0], p[1]);
        let one = Type::new(d, &[1]);
        let single = |b: &mut Builder, at: ValueId| {
            let found = b.push(Kind::DynamicSlice, &[x, at], one.clone());
            let found = b.reshape(found, &[]);
            b.broadcast(found, &[n], &[])
        };
        let next = match form {
            0 => single(&mut b, i),
            1 => {
                let part = b.push(Kind::Slice(Box::new(SliceDims {
                    start: [1][..].into(), limit: [4][..].into(), stride: [1][..].into(),
                })), &[x], Type::new(d, &[3]));
                b.push(Kind::DynamicUpdateSlice, &[x, part, i], ty.clone())
            }
            2 => {
                let zero = b.scalar(Scalar::zero(d));
                let zero = b.broadcast(zero, &[n], &[]);
                let below = b.compare(CompareOp::Lt, x, zero);
                let op = pick(&mut rng, &[ReduceOp::Or, ReduceOp::And]);
                let found = b.push(Kind::Reduce { op, axes: [0][..].into() }, &[below], Type::new(DType::Bool, &[]));
                b.select(found, x, zero)
            }
            3 => {
                let op = pick(&mut rng, &[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min]);
                let reverse = rng.below(2) == 0;
                b.push(Kind::Cumulative { op, axis: 0, reverse }, &[x], ty.clone())
            }
            4 => {
                let kind = Kind::ArgReduce { max: rng.below(2) == 0, axis: 0 };
                let at = b.push(kind, &[x], Type::new(DType::I32, &[]));
                single(&mut b, at)
            }
            5 | 6 => {
                let count = if form == 5 { n } else { 3 };
                let iota = b.iota(int, &[count], 0);
                let shift = b.broadcast(i, &[count], &[]);
                let at = b.binary(BinaryOp::Add, iota, shift);
                let at = b.binary(BinaryOp::Mul, at, iota);
                let at = b.reshape(at, &[count, 1]);
                let mode = pick(&mut rng, &[IndexMode::Clip, IndexMode::FillOrDrop]);
                if form == 5 {
                    let dims = GatherDims {
                        collapsed_slice_dims: [0][..].into(), start_index_map: [0][..].into(), ..GatherDims::default()
                    };
                    let (slice_sizes, fill) = ([1][..].into(), rng.tame(d));
                    let how = Gathering { dims, slice_sizes, mode, fill, sorted: false, unique: false, wrap: false };
                    b.push(Kind::Gather(Box::new(how)), &[x, at], ty.clone())
                } else {
                    let dims = ScatterDims {
                        inserted_window_dims: [0][..].into(), scatter_dims_to_operand_dims: [0][..].into(),
                        ..ScatterDims::default()
                    };
                    let part = b.push(Kind::DynamicSlice, &[x, i], Type::new(d, &[3]));
                    let op = pick(&mut rng, &[ScatterOp::Set, ScatterOp::Add, ScatterOp::Mul]);
                    let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
                    b.push(kind, &[x, at, part], ty.clone())
                }
            }
            7 => b.push(Kind::Rev([0][..].into()), &[x], ty.clone()),
            _ => {
                let op = pick(&mut rng, &[ReduceOp::Sum, ReduceOp::Max]);
                let all = b.push(Kind::Reduce { op, axes: [0][..].into() }, &[x], Type::new(d, &[]));
                b.broadcast(all, &[n], &[])
            }
        };
        let y = if d.is_float() { b.unary(UnaryOp::Sin, next) } else { next };
        let sum = b.binary(BinaryOp::Add, x, y);
        let one = b.scalar(Scalar::from_i64(int, 1));
        let up = b.binary(BinaryOp::Add, i, one);
        let body = Arc::new(b.finish(&[sum, up, next]));
        let mut b = Builder::new([ty.clone(), index.clone()]);
        let all: Vec<ValueId> = b.params().collect();
        let kind = Kind::Scan { body: body.clone(), length, reverse: false, consts: 0, carry: 2 };
        let outs = b.push_many(kind, &all, &[ty.clone(), index, stacked(&ty, length)]);
        let graph = b.finish(&outs);
        let start = rng.below(n + 4) as i64 - 2;
        let start = if int == DType::I32 { (start as i32).to_le_bytes().to_vec() } else { start.to_le_bytes().to_vec() };
        let args = [Array::tame(&mut rng, d, &[n]).buffer(), Buffer::from_bytes(&start).unwrap()];
        let program = check(graph, &body, &args);
        // More registers may take longer than the kernels.
        let fits = common::has_machine() && cfg!(target_arch = "x86_64") && width == 0 && n <= 16;
        prop_assert!(!fits || program.kernels().contains("loop in registers"), "{}", program.kernels());
    }

    #[test]
    fn costly_nodes_that_do_not_change(seed: u64, n in 1usize..6, length in 0usize..5) {
        let mut rng = Rng(seed);
        let f = |shape: &[usize]| Type::new(DType::F32, shape);
        let mut b = Builder::new([f(&[n, n]), f(&[n]), f(&[n]), f(&[n]), f(&[n])]);
        let p: Vec<ValueId> = b.params().collect();
        let (w, bias, kept, state, x) = (p[0], p[1], p[2], p[3], p[4]);
        let dims = DotDims { lhs_contract: [1][..].into(), rhs_contract: [0][..].into(), ..DotDims::default() };
        let dot = |b: &mut Builder, m: ValueId, v: ValueId| b.push(Kind::Dot(Box::new(dims.clone())), &[m, v], f(&[n]));
        let smooth = b.unary(UnaryOp::Tanh, bias);
        let fixed = dot(&mut b, w, smooth);
        let also = dot(&mut b, w, kept);
        let moved = dot(&mut b, w, state);
        let sum = b.binary(BinaryOp::Add, moved, fixed);
        let sum = b.binary(BinaryOp::Add, sum, also);
        let next = b.binary(BinaryOp::Sub, sum, x);
        let body = Arc::new(b.finish(&[kept, next, fixed, state, state, x, next]));
        let mut b = Builder::new([f(&[n, n]), f(&[n]), f(&[n]), f(&[n]), f(&[length, n])]);
        let args: Vec<ValueId> = b.params().collect();
        let kind = Kind::Scan { body: body.clone(), length, reverse: seed % 2 == 0, consts: 2, carry: 2 };
        let stack = || f(&[length, n]);
        let outs = b.push_many(kind, &args, &[f(&[n]), f(&[n]), stack(), stack(), stack(), stack(), stack()]);
        let read: Vec<ValueId> = outs.iter().copied().filter(|_| rng.below(3) > 0).collect();
        let graph = b.finish(&read);
        let args: Vec<Buffer> =
            graph.param_types().iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape).buffer()).collect();
        let program = check(graph, &body, &args);
        // One product of the three is left in the body, if any is needed.
        let (_, inside) = program.kernels().split_once("part 0").map_or((String::new(), String::new()), |(a, b)| (a.into(), b.into()));
        prop_assert!(inside.matches("= Dot(").count() <= 1, "{}", program.kernels());
    }

    /// A product of a carried matrix, of which a row is put in place, and sums over some of its axes.
    #[test]
    fn products_and_sums_of_few_elements(
        seed: u64, m in 1usize..4, n in 1usize..4, k in 1usize..14, columns: bool, turned: bool, width in 0usize..2,
    ) {
        let mut rng = Rng(seed);
        let d = DTYPES[width][0];
        let ty = |shape: &[usize]| Type::new(d, shape);
        // Both sides with the contracted axis first or last.
        let (lhs, rhs) = (if turned { [k, m] } else { [m, k] }, if columns { [k, n] } else { [n, k] });
        let mut b = Builder::new([ty(&rhs), ty(&lhs)]);
        let p: Vec<ValueId> = b.params().collect();
        let row = b.push(Kind::Dense(Bytes::of(1i32.to_le_bytes())), &[], Type::new(DType::I32, &[1]));
        let update = b.broadcast(p[1], &[lhs[0], lhs[1], 1], &[0, 1]);
        let axes = [1, 2][..].into();
        let update = b.push(Kind::Reduce { op: ReduceOp::Sum, axes }, &[update], ty(&[lhs[0]]));
        let update = b.push(Kind::Reduce { op: ReduceOp::Sum, axes: [0][..].into() }, &[update], ty(&[]));
        let update = b.broadcast(update, &lhs[1..], &[]);
        let dims = ScatterDims {
            update_window_dims: [0][..].into(),
            inserted_window_dims: [0][..].into(),
            scatter_dims_to_operand_dims: [0][..].into(),
            ..ScatterDims::default()
        };
        let (op, dims, mode) = (ScatterOp::Set, Box::new(dims), IndexMode::FillOrDrop);
        let put = Kind::Scatter { op, dims, mode, sorted: false, unique: false };
        let next = b.push(put, &[p[1], row, update], ty(&lhs));
        let (of_lhs, of_rhs) = (usize::from(!turned), usize::from(!columns));
        let dims = DotDims { lhs_contract: [of_lhs][..].into(), rhs_contract: [of_rhs][..].into(), ..DotDims::default() };
        let product = b.push(Kind::Dot(Box::new(dims)), &[next, p[0]], ty(&[m, n]));
        let by_row = b.push(Kind::Reduce { op: ReduceOp::Sum, axes: [1][..].into() }, &[product], ty(&[m]));
        let by_column = b.push(Kind::Reduce { op: ReduceOp::Prod, axes: [0][..].into() }, &[product], ty(&[n]));
        let body = Arc::new(b.finish(&[next, product, by_row, by_column]));
        let mut b = Builder::new([ty(&rhs), ty(&lhs)]);
        let all: Vec<ValueId> = b.params().collect();
        let kind = Kind::Scan { body: body.clone(), length: 3, reverse: false, consts: 1, carry: 1 };
        let outs = b.push_many(kind, &all, &[ty(&lhs), ty(&[3, m, n]), ty(&[3, m]), ty(&[3, n])]);
        let graph = b.finish(&outs);
        let args: Vec<Buffer> =
            graph.param_types().iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape).buffer()).collect();
        let program = check(graph, &body, &args);
        let fits = common::has_machine() && (width == 0 || cfg!(target_arch = "x86_64"));
        prop_assert!(!fits || program.kernels().contains("loop in registers"), "{}", program.kernels());
    }

    /// A product of a matrix and a vector in each of some batches, whose axis may be anywhere.
    #[test]
    fn batches_of_products_of_few_elements(
        seed: u64, p in 1usize..7, n in 1usize..5, at in 0usize..3, behind: bool, turned: bool, width in 0usize..2,
    ) {
        let mut rng = Rng(seed);
        let d = DTYPES[width][0];
        let ty = |shape: &[usize]| Type::new(d, shape);
        let mut matrices = vec![n, n];
        matrices.insert(at, p);
        let vectors = if behind { [n, p] } else { [p, n] };
        let mut axes: Vec<usize> = (0..3).filter(|&a| a != at).collect();
        if turned {
            axes.swap(0, 1);
        }
        let dims = DotDims {
            lhs_batch: [at][..].into(),
            rhs_batch: [usize::from(behind)][..].into(),
            lhs_contract: axes[1..].into(),
            rhs_contract: [usize::from(!behind)][..].into(),
            ..DotDims::default()
        };
        let mut b = Builder::new([ty(&matrices), ty(&vectors)]);
        let all: Vec<ValueId> = b.params().collect();
        let product = b.push(Kind::Dot(Box::new(dims)), &all, ty(&[p, n]));
        let order = if behind { [1, 0] } else { [0, 1] };
        let next = b.push(Kind::Transpose(order[..].into()), &[product], ty(&vectors));
        let next = b.unary(UnaryOp::Sin, next);
        let body = Arc::new(b.finish(&[next, product]));
        let mut b = Builder::new([ty(&matrices), ty(&vectors)]);
        let all: Vec<ValueId> = b.params().collect();
        let kind = Kind::Scan { body: body.clone(), length: 4, reverse: false, consts: 1, carry: 1 };
        let outs = b.push_many(kind, &all, &[ty(&vectors), ty(&[4, p, n])]);
        let graph = b.finish(&outs);
        let args: Vec<Buffer> =
            graph.param_types().iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape).buffer()).collect();
        let program = check(graph, &body, &args);
        let fits = common::has_machine() && (width == 0 || cfg!(target_arch = "x86_64")) && p * n * n <= 64;
        prop_assert!(!fits || program.kernels().contains("loop in registers"), "{}", program.kernels());
    }
}
