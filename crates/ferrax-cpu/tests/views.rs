//! Random programs that cut, turn, spread and join arrays, on the threaded machine against kernel by kernel.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Shape};
use ferrax_cpu::Program;
use ferrax_loops::{
    BinaryOp, Builder, Bytes, Graph, IndexMode, Kind, PadConfig, ReduceOp, ScatterDims, ScatterOp, SliceDims, Type,
    UnaryOp, ValueId,
};
use proptest::prelude::*;
use std::sync::Arc;

const DTYPES: [DType; 9] =
    [DType::F32, DType::F32, DType::F32, DType::I32, DType::F64, DType::I64, DType::BF16, DType::U8, DType::Bool];
/// Elements of a value at most.
const LARGEST: usize = 200_000;

struct Maker<'a> {
    rng: &'a mut Rng,
    b: Builder,
    values: Vec<ValueId>,
}

impl Maker<'_> {
    fn pick(&mut self) -> ValueId {
        // The newest ones more often.
        let n = self.values.len();
        let from = if self.rng.below(3) > 0 { n.saturating_sub(4) } else { 0 };
        self.values[from + self.rng.below(n - from)]
    }

    fn shape(&self, v: ValueId) -> Vec<usize> {
        self.b.ty(v).shape.to_vec()
    }

    fn push(&mut self, kind: Kind, inputs: &[ValueId], shape: &[usize]) -> ValueId {
        let dtype = self.b.ty(inputs[0]).dtype;
        let v = self.b.push(kind, inputs, Type::new(dtype, shape));
        self.values.push(v);
        v
    }

    fn slice_to(&mut self, x: ValueId, size: &[usize]) -> ValueId {
        let shape = self.shape(x);
        let (mut start, mut limit, mut stride) = (Shape::new(), Shape::new(), Shape::new());
        for (&n, &m) in shape.iter().zip(size) {
            let widest = if m > 1 { (n - 1) / (m - 1) } else { 1 };
            let step = 1 + self.rng.below(3).min(widest.max(1) - 1);
            let span = (m - 1) * step + 1;
            let first = self.rng.below(n - span + 1);
            start.push(first);
            limit.push(first + span);
            stride.push(step);
        }
        self.push(Kind::Slice(Box::new(SliceDims { start, limit, stride })), &[x], size)
    }

    fn smaller(&mut self, shape: &[usize]) -> Vec<usize> {
        shape.iter().map(|&n| if self.rng.below(2) == 0 || n < 2 { n } else { n - self.rng.below(n.min(3)) }).collect()
    }

    fn elementwise(&mut self) {
        let x = self.pick();
        let d = self.b.ty(x).dtype;
        let y = match self.rng.below(4) {
            0 if !d.is_bool() => {
                let v = self.b.unary(UnaryOp::Neg, x);
                self.values.push(v);
                return;
            }
            1 => {
                let number = self.rng.tame(d);
                let one = self.b.scalar(number);
                self.b.broadcast(one, &self.shape(x), &[])
            }
            // Two windows of one array, as in a stencil.
            2 => {
                let size = self.smaller(&self.shape(x));
                let (a, b) = (self.slice_to(x, &size), self.slice_to(x, &size));
                let v = self.b.binary(if d.is_bool() { BinaryOp::And } else { BinaryOp::Sub }, a, b);
                self.values.push(v);
                return;
            }
            _ => {
                let shape = self.shape(x);
                let same: Vec<ValueId> = self.values.iter().copied().filter(|&v| self.shape(v) == shape).collect();
                let y = same[self.rng.below(same.len())];
                self.b.convert(y, d)
            }
        };
        let v = self.b.binary(if d.is_bool() { BinaryOp::Xor } else { BinaryOp::Add }, x, y);
        self.values.push(v);
    }

    fn spread(&mut self) {
        let x = self.pick();
        let mut shape = self.shape(x);
        let mut dims: Vec<usize> = (0..shape.len()).collect();
        let (at, n) = (self.rng.below(shape.len() + 1), 1 + self.rng.below(5));
        if shape.len() > 3 || shape.iter().product::<usize>() * n > LARGEST {
            return;
        }
        shape.insert(at, n);
        dims.iter_mut().filter(|d| **d >= at).for_each(|d| *d += 1);
        self.push(Kind::Broadcast(dims.into()), &[x], &shape);
    }

    fn reshape(&mut self) {
        let x = self.pick();
        let shape = self.shape(x);
        let merged: Vec<usize> = match shape.len() {
            0 | 1 => match shape.first().and_then(|&n| (2..20).find(|k| n % k == 0).map(|k| (k, n / k))) {
                Some((a, b)) => vec![a, b],
                None => return,
            },
            _ => {
                let at = self.rng.below(shape.len() - 1);
                let mut merged = shape.clone();
                merged[at] *= merged.remove(at + 1);
                merged
            }
        };
        self.push(Kind::Reshape, &[x], &merged);
    }

    fn join(&mut self) {
        let x = self.pick();
        let (d, shape) = (self.b.ty(x).dtype, self.shape(x));
        let axis = self.rng.below(shape.len());
        let fits = |v: &ValueId| {
            let other = self.shape(*v);
            other.len() == shape.len() && (0..shape.len()).all(|k| k == axis || other[k] == shape[k])
        };
        let others: Vec<ValueId> = self.values.iter().copied().filter(fits).collect();
        let mut parts = vec![x];
        for _ in 0..=self.rng.below(2) {
            let y = others[self.rng.below(others.len())];
            parts.push(self.b.convert(y, d));
        }
        if self.rng.below(4) == 0 {
            let (mut limit, zeros) = (Shape::from(&shape[..]), Shape::from_elem(0, shape.len()));
            limit[axis] = 0;
            let dims = SliceDims { start: zeros, limit: limit.clone(), stride: Shape::from_elem(1, shape.len()) };
            parts.push(self.b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(d, &limit)));
        }
        let mut out = shape;
        out[axis] = parts.iter().map(|&v| self.shape(v)[axis]).sum();
        if out.iter().product::<usize>() <= LARGEST {
            self.push(Kind::Concat(axis), &parts, &out);
        }
    }

    fn pad(&mut self) {
        let x = self.pick();
        let shape = self.shape(x);
        let number = self.rng.tame(self.b.ty(x).dtype);
        let value = self.b.scalar(number);
        let mut config = Vec::new();
        let mut out = Vec::new();
        for &n in &shape {
            let (low, high) = (self.rng.below(5) as i64 - 2, self.rng.below(5) as i64 - 2);
            let interior = usize::from(self.rng.below(6) == 0);
            let size = n as i64 + low + high + ((n.max(1) - 1) * interior) as i64;
            if size < 1 {
                return;
            }
            config.push(PadConfig { low, high, interior });
            out.push(size as usize);
        }
        if out.iter().product::<usize>() <= LARGEST {
            self.push(Kind::Pad(config.into()), &[x, value], &out);
        }
    }

    /// A part of an array is replaced, perhaps while views of what was there are still to be read.
    fn update(&mut self) {
        let x = self.pick();
        let (d, size) = (self.b.ty(x).dtype, self.smaller(&self.shape(x)));
        let source = self.pick();
        let part = if self.shape(source) == size { self.b.convert(source, d) } else { self.slice_to(x, &size) };
        let start = self.b.scalar(ferrax_base::Scalar::from_i64(DType::I32, self.rng.below(3) as i64));
        let mut inputs = vec![x, part];
        inputs.extend(size.iter().map(|_| start));
        let shape = self.shape(x);
        self.push(Kind::DynamicUpdateSlice, &inputs, &shape);
    }

    /// What the transpose of a split gives: paddings with zeros, or nearly, that complete each other, summed up.
    fn paddings(&mut self) {
        let x = self.pick();
        let (d, shape) = (self.b.ty(x).dtype, self.shape(x));
        let axis = self.rng.below(shape.len());
        let (n, rank) = (shape[axis], shape.len());
        let mut cuts = vec![0, self.rng.below(n), self.rng.below(n), n];
        cuts.sort_unstable();
        cuts.dedup();
        let odd = self.rng.below(8) == 0;
        let mut parts: Vec<ValueId> = Vec::new();
        for w in cuts.windows(2) {
            let (mut start, mut limit) = (Shape::from_elem(0, rank), Shape::from(&shape[..]));
            (start[axis], limit[axis]) = (w[0], w[1]);
            let mut size = shape.clone();
            size[axis] = w[1] - w[0];
            let dims = SliceDims { start, limit, stride: Shape::from_elem(1, rank) };
            let part = self.b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(d, &size));
            let part = if d.is_bool() || self.rng.below(2) == 0 { part } else { self.b.unary(UnaryOp::Neg, part) };
            let mut config = vec![PadConfig { low: 0, high: 0, interior: 0 }; rank];
            (config[axis].low, config[axis].high) = (w[0] as i64, (n - w[1]) as i64);
            let fill = self.b.scalar(if odd { self.rng.tame(d) } else { ferrax_base::Scalar::zero(d) });
            parts.push(self.b.push(Kind::Pad(config.into()), &[part, fill], Type::new(d, &shape)));
        }
        while parts.len() > 1 {
            let (a, b) = (parts.remove(self.rng.below(parts.len())), parts.remove(self.rng.below(parts.len())));
            parts.push(self.b.binary(BinaryOp::Add, a, b));
        }
        self.values.push(parts[0]);
    }

    /// One window is joined to an array, at a place that is a number of the program, mostly inside.
    fn window(&mut self) {
        let x = self.pick();
        let (d, shape) = (self.b.ty(x).dtype, self.shape(x));
        let size = self.smaller(&shape);
        let update = self.slice_to(x, &size);
        let axes: Vec<usize> = (0..shape.len()).filter(|_| self.rng.below(3) > 0).collect();
        let at = axes.iter().flat_map(|_| (self.rng.below(4) as i32).to_le_bytes()).collect::<Vec<u8>>();
        let indices = self.b.push(Kind::Dense(Bytes::of(at)), &[], Type::new(DType::I32, &[axes.len()]));
        let dims = ScatterDims {
            update_window_dims: (0..shape.len()).collect(),
            scatter_dims_to_operand_dims: axes.into(),
            ..ScatterDims::default()
        };
        let ops = [ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Max];
        let op = if d.is_bool() { ScatterOp::Set } else { ops[self.rng.below(5)] };
        let mode = [IndexMode::Clip, IndexMode::FillOrDrop][self.rng.below(2)];
        let kind = Kind::Scatter { op, dims: Box::new(dims), mode, sorted: false, unique: false };
        self.push(kind, &[x, indices, update], &shape);
    }

    /// States of a few rows: joined, computed with, taken apart.
    fn state(&mut self) {
        match self.rng.below(8) {
            0..=3 => self.elementwise(),
            4 | 5 => self.join(),
            _ => {
                let x = self.pick();
                let shape = self.shape(x);
                let parts = (2..=8).find(|k| shape[0].is_multiple_of(*k)).unwrap_or(1);
                let size: Vec<usize> =
                    shape.iter().enumerate().map(|(k, &n)| if k == 0 { n / parts } else { n }).collect();
                self.slice_to(x, &size);
            }
        }
    }

    fn step(&mut self) {
        match self.rng.below(18) {
            0..=4 => self.elementwise(),
            16 => self.paddings(),
            17 => self.window(),
            5 | 6 => {
                let x = self.pick();
                let size = self.smaller(&self.shape(x));
                self.slice_to(x, &size);
            }
            7 => {
                let x = self.pick();
                let shape = self.shape(x);
                let axes = (0..shape.len()).filter(|_| self.rng.below(2) == 0).collect();
                self.push(Kind::Rev(axes), &[x], &shape);
            }
            8 => self.spread(),
            9 => {
                let x = self.pick();
                let shape = self.shape(x);
                let perm = self.rng.permutation(shape.len());
                let out: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
                self.push(Kind::Transpose(perm.into()), &[x], &out);
            }
            10 => self.reshape(),
            11 | 12 => self.join(),
            13 => self.pad(),
            14 => self.update(),
            _ => {
                let x = self.pick();
                let rank = self.shape(x).len();
                let axis = if self.rng.below(2) == 0 { 0 } else { rank - 1 };
                if rank > 1 {
                    let op = if self.b.ty(x).dtype.is_bool() { ReduceOp::Or } else { ReduceOp::Sum };
                    let v = self.b.reduce(op, x, &[axis]);
                    self.values.push(v);
                }
            }
        }
    }
}

type Step<'a> = fn(&mut Maker<'a>);

fn program<'a>(rng: &'a mut Rng, shapes: &[&[usize]], steps: usize, step: Step<'a>) -> (Graph, Vec<Buffer>) {
    let types: Vec<Type> = shapes.iter().map(|s| Type::new(DTYPES[rng.below(DTYPES.len())], s)).collect();
    let args = types.iter().map(|t| Array::random(rng, t.dtype, &t.shape).buffer()).collect();
    let b = Builder::new(types);
    let values = b.params().collect();
    let mut m = Maker { rng, b, values };
    (0..steps).for_each(|_| step(&mut m));
    let outputs: Vec<ValueId> = (0..3).map(|_| m.pick()).collect();
    (m.b.finish(&outputs), args)
}

fn check(seed: u64, shapes: &[&[usize]], steps: usize) {
    check_of(&mut Rng(seed), shapes, steps, Maker::step);
}

fn check_of<'a>(rng: &'a mut Rng, shapes: &[&[usize]], steps: usize, step: Step<'a>) {
    let (graph, args) = program(rng, shapes, steps, step);
    let graph = Arc::new(graph);
    let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
    let same = |a: &[Buffer], b: &[Buffer]| {
        for (k, (a, b)) in a.iter().zip(b).enumerate() {
            let ty = graph.ty(graph.outputs[k]);
            common::assert_same(&Array::of(ty, a), &Array::of(ty, b), &format_args!("output {k} of\n{graph}"));
        }
    };
    let plain = run(Program::compile_plain(graph.clone()).unwrap());
    same(&run(Program::compile(graph.clone()).unwrap()), &plain);
    let donated = Program::compile_donating(graph.clone(), &vec![true; args.len()]).unwrap();
    let mut owned: Vec<Arg<'_>> =
        args.iter().map(|b| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into())).collect();
    same(&donated.run(&mut owned).unwrap(), &plain);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn matrices(seed: u64, a in 1usize..20, b in 1usize..400, steps in 1usize..25) {
        check(seed, &[&[a, b], &[a, b], &[b]], steps);
    }

    #[test]
    fn boxes(seed: u64, a in 1usize..12, b in 1usize..12, c in 1usize..40, steps in 1usize..25) {
        check(seed, &[&[a, b, c], &[b, c], &[a, b, c]], steps);
    }

    #[test]
    fn lines(seed: u64, n in 130usize..20_000, steps in 1usize..20) {
        check(seed, &[&[n], &[n]], steps);
    }

    #[test]
    fn states(seed: u64, a in 1usize..5, n in 129usize..900, steps in 2usize..40) {
        check_of(&mut Rng(seed), &[&[a, n], &[a, n]], steps, Maker::state);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(30)))]

    #[test]
    fn images(seed: u64, a in 200usize..400, b in 200usize..400, steps in 2usize..12) {
        check(seed, &[&[a, b], &[a, b]], steps);
    }
}

/// Rows of all lengths about a tile's, each with a number of its own: the greater of it and an operand, whose place the result may
/// take, and with that or alone the least of this and of a part of longer rows.
fn rows(d: DType, n: usize, outputs: &[usize]) -> (Arc<Graph>, Vec<Buffer>) {
    let rng = &mut Rng(n as u64);
    let types = [Type::new(d, &[7, n]), Type::new(d, &[7]), Type::new(d, &[9, n + 3])];
    let args = types.iter().map(|t| Array::tame(rng, t.dtype, &t.shape).buffer()).collect();
    let mut b = Builder::new(types);
    let own = b.broadcast(ValueId(1), &[7, n], &[0]);
    let corner = |i: usize, j: usize| [i, j].into_iter().collect();
    let dims = SliceDims { start: corner(1, 2), limit: corner(8, n + 2), stride: corner(1, 1) };
    let part = b.push(Kind::Slice(Box::new(dims)), &[ValueId(2)], Type::new(d, &[7, n]));
    let x = b.binary(BinaryOp::Max, ValueId(0), own);
    let y = b.binary(BinaryOp::Min, x, part);
    let outputs: Vec<ValueId> = outputs.iter().map(|&k| [x, y][k]).collect();
    (Arc::new(b.finish(&outputs)), args)
}

/// Compares a graph kernel by kernel with the machine, with the first argument kept and with it donated.
fn in_place_as_elsewhere(graph: Arc<Graph>, args: &[Buffer], what: &str) {
    let borrowed = || args.iter().map(Arg::Host).collect::<Vec<_>>();
    let plain = Program::compile_plain(graph.clone()).unwrap().run(&mut borrowed()).unwrap();
    let elsewhere = Program::compile(graph.clone()).unwrap().run(&mut borrowed()).unwrap();
    let owned = |b: &Buffer| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into());
    let donates: Vec<bool> = (0..args.len()).map(|k| k == 0).collect();
    let donated = Program::compile_donating(graph, &donates).unwrap();
    let in_place = donated.run(&mut args.iter().map(owned).collect::<Vec<_>>()).unwrap();
    for ((plain, elsewhere), in_place) in plain.iter().zip(&elsewhere).zip(&in_place) {
        assert_eq!(elsewhere.bytes(), plain.bytes(), "{what}");
        assert_eq!(in_place.bytes(), plain.bytes(), "{what}");
    }
}

#[test]
fn rows_take_the_place_of_operands() {
    for (d, n) in DTYPES.into_iter().flat_map(|d| [32, 63, 64, 65, 100, 127, 128, 130, 200, 257, 300].map(|n| (d, n))) {
        for outputs in [&[0][..], &[1], &[0, 1]] {
            let (graph, args) = rows(d, n, outputs);
            in_place_as_elsewhere(graph, &args, &format!("{d} {n} {outputs:?}"));
        }
    }
}

/// Short rows that lie apart, in groups of `h` at regular distances: parts of longer rows, a row for each group, a number for each
/// row and each group, a row for all. The result may take the first one's place, and is a part of longer rows itself.
fn short_rows(d: DType, [a, h, n]: [usize; 3], outputs: &[usize]) -> (Arc<Graph>, Vec<Buffer>) {
    let rng = &mut Rng((a * h * n) as u64);
    let whole = [a, h, n];
    let shapes: [&[usize]; 6] = [&whole, &[a, h, 2 * n + 3], &[a, n], &[a, h], &[a], &[n]];
    let types = shapes.map(|shape| Type::new(d, shape));
    let args = types.iter().map(|t| Array::tame(rng, t.dtype, &t.shape).buffer()).collect();
    let mut b = Builder::new(types);
    let part = |b: &mut Builder, first: usize| {
        let corner = |i: usize, j: usize, k: usize| [i, j, k].into_iter().collect();
        let dims = SliceDims { start: corner(0, 0, first), limit: corner(a, h, first + n), stride: corner(1, 1, 1) };
        b.push(Kind::Slice(Box::new(dims)), &[ValueId(1)], Type::new(d, &whole))
    };
    let (low, high) = (part(&mut b, 2), part(&mut b, n + 1));
    let of_group = b.broadcast(ValueId(2), &whole, &[0, 2]);
    let own = b.broadcast(ValueId(3), &whole, &[0, 1]);
    let group_own = b.broadcast(ValueId(4), &whole, &[0]);
    let same = b.broadcast(ValueId(5), &whole, &[2]);
    let x = b.binary(BinaryOp::Min, low, of_group);
    let x = b.binary(BinaryOp::Max, ValueId(0), x);
    let x = b.binary(BinaryOp::Min, x, own);
    let y = b.binary(BinaryOp::Max, high, group_own);
    let y = b.binary(BinaryOp::Min, y, same);
    let y = b.binary(BinaryOp::Max, y, x);
    let joined = b.push(Kind::Concat(2), &[y, x], Type::new(d, &[a, h, 2 * n]));
    let most = ReduceOp::Max;
    let reduced = b.push(Kind::Reduce { op: most, axes: [2].into_iter().collect() }, &[x], Type::new(d, &[a, h]));
    let again = b.broadcast(reduced, &whole, &[0, 1]);
    let after = b.binary(BinaryOp::Min, again, high);
    let columns = b.push(Kind::Reduce { op: most, axes: [0, 1].into_iter().collect() }, &[y], Type::new(d, &[n]));
    let outputs: Vec<ValueId> = outputs.iter().map(|&k| [x, y, joined, after, columns][k]).collect();
    (Arc::new(b.finish(&outputs)), args)
}

#[test]
fn short_rows_lie_apart() {
    let shapes = [
        [1, 1, 32],
        [7, 1, 16],
        [3, 2, 48],
        [40, 3, 8],
        [5, 5, 64],
        [9, 8, 32],
        [130, 8, 24],
        [70, 10, 16],
        [2, 130, 40],
    ];
    for (d, shape) in DTYPES.into_iter().flat_map(|d| shapes.map(|shape| (d, shape))) {
        for outputs in [&[0][..], &[1], &[2], &[0, 1], &[1, 3], &[4, 1], &[3]] {
            let (graph, args) = short_rows(d, shape, outputs);
            in_place_as_elsewhere(graph, &args, &format!("{d} {shape:?} {outputs:?}"));
        }
    }
}

/// The tests above with the narrower instruction set, in a process of their own.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_narrow_instruction_set_gives_the_same_bits() {
    if std::env::var_os("FERRAX_CPU_ISA").is_some() {
        return;
    }
    let me = std::env::current_exe().unwrap();
    let out = std::process::Command::new(me)
        .env("FERRAX_CPU_ISA", "avx2")
        .args(["boxes", "matrices", "rows_take", "short_rows"])
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
}
