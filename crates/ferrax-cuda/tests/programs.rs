//! Whole programs on the host against the CPU engine: fusion, memory that arrays share, donation, loops in loops, and
//! random graphs.

mod against;

use against::{Array, Near, Report, Rng, compare};
use ferrax_base::{DType, Scalar};
use ferrax_cuda::plan::{plan, walk};
use ferrax_cuda::program::Step;
use ferrax_loops::kind::{CompareOp, SliceDims};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, PadConfig, ReduceOp, Type, UnaryOp, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

const F: DType = DType::F32;
const I: DType = DType::I32;

fn launches(graph: &Graph) -> usize {
    let mut count = 0;
    walk(&plan(graph, &[]).expect("a program").steps, &mut |s| count += usize::from(matches!(s, Step::Launch(_))));
    count
}

/// (x - max) ↦ e^ / sum over the last axis.
fn softmax(shape: &[usize]) -> Graph {
    let mut b = Builder::new([Type::new(F, shape)]);
    let x = b.params().next().unwrap();
    let last = shape.len() - 1;
    let axes: Vec<usize> = (0..last).collect();
    let top = b.reduce(ReduceOp::Max, x, &[last]);
    let top = b.broadcast(top, shape, &axes);
    let less = b.binary(BinaryOp::Sub, x, top);
    let e = b.unary(UnaryOp::Exp, less);
    let sum = b.reduce(ReduceOp::Sum, e, &[last]);
    let sum = b.broadcast(sum, shape, &axes);
    let y = b.binary(BinaryOp::Div, e, sum);
    b.finish(&[y])
}

#[test]
fn softmax_takes_one_kernel() {
    let mut report = Report::default();
    let mut rng = Rng(1);
    for shape in [&[7, 30][..], &[3, 2, 200]] {
        assert_eq!(launches(&softmax(shape)), 1);
        let x = Array::tame(&mut rng, F, shape);
        compare(&mut report, &format!("softmax of {shape:?}"), softmax(shape), &[&x], Near::Ulps(8.0));
    }
    report.finish();
}

#[test]
fn elementwise_chains_of_mixed_dtypes_are_one_kernel() {
    let mut report = Report::default();
    let mut rng = Rng(2);
    for n in [1usize, 63, 64, 65, 1000, 1023] {
        let types = [F, DType::BF16, DType::I8, DType::Bool].map(|d| Type::new(d, &[n]));
        let mut b = Builder::new(types.iter().cloned());
        let p: Vec<ValueId> = b.params().collect();
        let half = b.convert(p[1], F);
        let sum = b.binary(BinaryOp::Add, p[0], half);
        let byte = b.convert(p[2], F);
        let product = b.binary(BinaryOp::Mul, sum, byte);
        let chosen = b.select(p[3], sum, product);
        let narrow = b.convert(chosen, DType::BF16);
        let whole = b.convert(chosen, DType::I8);
        let graph = b.finish(&[chosen, narrow, whole]);
        assert_eq!(launches(&graph), 1);
        let args = types.map(|t| Array::random(&mut rng, t.dtype, &t.shape));
        compare(&mut report, &format!("a chain of {n}"), graph, &args.each_ref(), Near::Same);
    }
    report.finish();
}

#[test]
fn vectors_of_sixteen_bytes_are_read_where_they_are_contiguous() {
    let mut b = Builder::new([Type::new(F, &[1000])]);
    let x = b.params().next().unwrap();
    let y = b.binary(BinaryOp::Add, x, x);
    let text = ferrax_cuda::print::source(&b.finish(&[y])).expect("a source");
    assert!(text.contains("fx_pack<float, 4> v0") && text.contains("typedef int I"), "{text}");
    let n = 1usize << 30;
    let mut b = Builder::new([Type::new(DType::U8, &[n])]);
    let x = b.params().next().unwrap();
    let y = b.unary(UnaryOp::Not, x);
    let text = ferrax_cuda::print::source(&b.finish(&[y])).expect("a source");
    assert!(text.contains("fx_pack<unsigned char, 16> v0") && text.contains("typedef long long I"), "{text}");
}

/// (x, y) → results in some order: those that take a donated parameter's memory while it is still read.
#[test]
fn donated_parameters_lend_their_memory() {
    let mut report = Report::default();
    let mut rng = Rng(3);
    let ty = Type::new(F, &[40]);
    let args = [Array::tame(&mut rng, F, &[40]), Array::tame(&mut rng, F, &[40])];
    type Outputs = fn(&mut Builder, ValueId, ValueId) -> Vec<ValueId>;
    let graphs: [(&str, Outputs); 6] = [
        ("exchanged", |_, x, y| vec![y, x]),
        ("twice", |_, x, _| vec![x, x]),
        ("sums", |b, x, y| vec![b.binary(BinaryOp::Add, x, y), b.binary(BinaryOp::Sub, x, y)]),
        ("one after the other", |b, x, y| {
            let s = b.binary(BinaryOp::Mul, x, y);
            let turned = b.push(Kind::Rev(SmallVec::from_slice(&[0])), &[s], Type::new(F, &[40]));
            let t = b.binary(BinaryOp::Add, turned, x);
            vec![t, s]
        }),
        ("reversed", |b, x, y| {
            let turn = |b: &mut Builder, v| b.push(Kind::Rev(SmallVec::from_slice(&[0])), &[v], Type::new(F, &[40]));
            vec![turn(b, x), turn(b, y)]
        }),
        ("one update", |b, x, y| {
            let zero = b.scalar(Scalar::from_i64(I, 3));
            let part =
                SliceDims { start: [0].as_slice().into(), limit: [5].as_slice().into(), stride: [1].as_slice().into() };
            let part = b.push(Kind::Slice(Box::new(part)), &[x], Type::new(F, &[5]));
            // The window moves inside of the operand that it is read from.
            let z = b.push(Kind::DynamicUpdateSlice, &[x, part, zero], Type::new(F, &[40]));
            vec![z, y]
        }),
    ];
    for (what, outputs) in graphs {
        for donated in [[true, true], [true, false], [false, true], [false, false]] {
            let mut b = Builder::new([ty.clone(), ty.clone()]);
            let p: Vec<ValueId> = b.params().collect();
            let outs = outputs(&mut b, p[0], p[1]);
            report.donating(&format!("{what}, {donated:?}"), b.finish(&outs), &donated, &args.each_ref(), Near::Same);
        }
    }
    report.finish();
}

#[test]
fn an_update_of_a_donated_array_is_one_small_kernel() {
    let mut b = Builder::new([Type::new(F, &[1000]), Type::new(F, &[10]), Type::new(I, &[])]);
    let p: Vec<ValueId> = b.params().collect();
    let z = b.push(Kind::DynamicUpdateSlice, &p, Type::new(F, &[1000]));
    let graph = b.finish(&[z]);
    let program = plan(&graph, &[true, false, false]).expect("a program");
    assert!(matches!(program.steps[..], [Step::Launch(_)]), "{:?}", program.steps);
    assert_eq!((program.results[0].takes, program.arena), (Some(0), 0));
}

#[test]
fn temporary_arrays_share_memory() {
    // Each product is needed by the next alone.
    let ty = Type::new(F, &[64, 64]);
    let mut b = Builder::new([ty.clone()]);
    let x = b.params().next().unwrap();
    let dims = || {
        Kind::Dot(Box::new(ferrax_loops::DotDims {
            lhs_contract: SmallVec::from_slice(&[1]),
            rhs_contract: SmallVec::from_slice(&[0]),
            ..Default::default()
        }))
    };
    let mut y = x;
    for _ in 0..10 {
        y = b.push(dims(), &[y, x], ty.clone());
    }
    let program = plan(&b.finish(&[y]), &[]).expect("a program");
    assert_eq!(program.arena, 2 * ty.bytes());
}

/// (i, x, y) ↦ (i + 1, y, x + y), and twice that in a loop of loops.
#[test]
fn carried_values_that_change_places_and_loops_in_loops() {
    let mut report = Report::default();
    let mut rng = Rng(4);
    let (row, int) = (Type::new(I, &[5]), Type::new(I, &[]));
    let below = |limit: i64| {
        let mut b = Builder::new([int.clone(), row.clone(), row.clone()]);
        let i = b.params().next().unwrap();
        let limit = b.scalar(Scalar::from_i64(I, limit));
        let go = b.compare(CompareOp::Lt, i, limit);
        Arc::new(b.finish(&[go]))
    };
    let mut b = Builder::new([int.clone(), row.clone(), row.clone()]);
    let p: Vec<ValueId> = b.params().collect();
    let one = b.scalar(Scalar::one(I));
    let next = b.binary(BinaryOp::Add, p[0], one);
    let sum = b.binary(BinaryOp::Add, p[1], p[2]);
    let body = Arc::new(b.finish(&[next, p[2], sum]));
    let mut b = Builder::new([int.clone(), row.clone(), row.clone()]);
    let p: Vec<ValueId> = b.params().collect();
    let zero = b.scalar(Scalar::zero(I));
    let kind = Kind::While { cond: below(3), body: body.clone(), cond_consts: 0, body_consts: 0 };
    let types = [int.clone(), row.clone(), row.clone()];
    let inner = b.push_many(kind, &[zero, p[1], p[2]], &types);
    let one = b.scalar(Scalar::one(I));
    let next = b.binary(BinaryOp::Add, p[0], one);
    let kept = b.binary(BinaryOp::Sub, inner[1], p[1]);
    let outer = Arc::new(b.finish(&[next, inner[2], kept]));
    for (what, body, limit) in [("exchange", body, 7), ("loops in loops", outer, 4)] {
        let args = [Array::tame(&mut rng, I, &[5]), Array::tame(&mut rng, I, &[5])];
        let mut b = Builder::new([row.clone(), row.clone()]);
        let p: Vec<ValueId> = b.params().collect();
        let zero = b.scalar(Scalar::zero(I));
        let kind = Kind::While { cond: below(limit), body, cond_consts: 0, body_consts: 0 };
        let results = b.push_many(kind, &[zero, p[0], p[1]], &types);
        // The first operands are read after the loop, too.
        let after = b.binary(BinaryOp::Add, results[1], p[0]);
        let graph = b.finish(&[results[0], results[1], results[2], after]);
        for donated in [[false, false], [true, true]] {
            report.donating(what, graph.clone(), &donated, &args.each_ref(), Near::Same);
        }
    }
    report.finish();
}

/// What a loop reads in every iteration lies where no array of its body does.
#[test]
fn values_from_before_a_loop_stay() {
    let mut report = Report::default();
    let mut rng = Rng(7);
    let (row, d) = (Type::new(I, &[20]), I);
    let running = |b: &mut Builder, x: ValueId, reverse: bool| {
        b.push(Kind::Cumulative { op: ReduceOp::Sum, axis: 0, reverse }, &[x], Type::new(d, &[20]))
    };
    let mut b = Builder::new([row.clone(), row.clone()]);
    let p: Vec<ValueId> = b.params().collect();
    let sum = b.binary(BinaryOp::Add, p[0], p[1]);
    let first = running(&mut b, sum, false);
    let second = running(&mut b, first, true);
    let third = running(&mut b, second, false);
    let next = b.unary(UnaryOp::Not, third);
    let body = Arc::new(b.finish(&[next]));
    let args = [Array::tame(&mut rng, I, &[20])];
    let mut b = Builder::new([row.clone()]);
    let x = b.params().next().unwrap();
    let before = running(&mut b, x, true);
    let kind = Kind::Scan { body, length: 5, reverse: false, consts: 1, carry: 1 };
    let y = b.push(kind, &[before, x], row);
    compare(&mut report, "a loop over what came before", b.finish(&[y]), &args.each_ref(), Near::Same);
    report.finish();
}

/// A scan that reads its carried array at an index, writes it, stacks rows, and branches.
#[test]
fn scans_with_updates_and_branches() {
    let mut report = Report::default();
    let mut rng = Rng(5);
    let (whole, int) = (Type::new(I, &[6]), Type::new(I, &[]));
    let branch = |by: i64| {
        let mut b = Builder::new([int.clone()]);
        let x = b.params().next().unwrap();
        let by = b.scalar(Scalar::from_i64(I, by));
        let y = b.binary(BinaryOp::Mul, x, by);
        Arc::new(b.finish(&[y]))
    };
    let mut b = Builder::new([whole.clone(), int.clone(), int.clone()]);
    let p: Vec<ValueId> = b.params().collect();
    let one = Type::new(I, &[1]);
    let old = b.push(Kind::DynamicSlice, &[p[0], p[2]], one.clone());
    let old = b.reshape(old, &[]);
    let which = b.push(Kind::Switch(vec![branch(2), branch(-3), branch(5)]), &[p[1], old], int.clone());
    let new = b.binary(BinaryOp::Add, which, p[1]);
    let row = b.reshape(new, &[1]);
    let updated = b.push(Kind::DynamicUpdateSlice, &[p[0], row, p[2]], whole.clone());
    let step = b.scalar(Scalar::one(I));
    let next = b.binary(BinaryOp::Add, p[1], step);
    let sum = b.reduce(ReduceOp::Sum, updated, &[0]);
    let body = Arc::new(b.finish(&[updated, next, new, sum, p[0]]));
    for reverse in [false, true] {
        let args = [
            Array::tame(&mut rng, I, &[6]),
            Array::integers(I, &[], &[0]),
            Array::from_fn(I, &[9], |_| Scalar::from_i64(I, rng.below(8) as i64 - 1)),
        ];
        let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
        let p: Vec<ValueId> = b.params().collect();
        let kind = Kind::Scan { body: body.clone(), length: 9, reverse, consts: 0, carry: 2 };
        let stacked = Type::new(I, &[9]);
        let results =
            b.push_many(kind, &p, &[whole.clone(), int.clone(), stacked.clone(), stacked, Type::new(I, &[9, 6])]);
        let graph = b.finish(&results);
        for donated in [[false; 3], [true; 3]] {
            report.donating(&format!("reverse {reverse}"), graph.clone(), &donated, &args.each_ref(), Near::Same);
        }
    }
    report.finish();
}

/// Special functions are other nodes, with loops in them.
#[test]
fn special_functions() {
    let mut report = Report::default();
    use UnaryOp::*;
    for d in [F, DType::F64, DType::BF16] {
        let x = [0.1, 0.5, 0.9, 1.0, -0.3, 2.5, 7.0, -1.5, 30.0, f64::INFINITY, f64::NAN, 0.0];
        let x = Array::floats(d, &[12], &x);
        let y = Array::floats(d, &[12], &[0.2, 3.0, 1.0, 0.5, 2.0, 2.5, 11.0, 1.0, 20.0, 1.0, 1.0, 2.0]);
        let mut b = Builder::new([x.ty.clone(), y.ty.clone()]);
        let p: Vec<ValueId> = b.params().collect();
        let mut outs: Vec<ValueId> = [Erf, Erfc, ErfInv, Lgamma, Digamma, BesselI0e, BesselI1e]
            .into_iter()
            .map(|op| b.unary(op, p[0]))
            .collect();
        outs.push(b.binary(BinaryOp::Igamma, p[1], p[1]));
        outs.push(b.binary(BinaryOp::Igammac, p[1], p[1]));
        let graph = b.finish(&outs);
        let near = if d == DType::F64 { Near::Ulps(16.0) } else { Near::Ulps(3.0) };
        compare(&mut report, &format!("special functions of {d}"), graph, &[&x, &y], near);
    }
    report.finish();
}

/// Factorizations are other nodes, with loops in them.
#[test]
fn factorizations() {
    let mut report = Report::default();
    let mut rng = Rng(8);
    let d = DType::F64;
    let a = Array::from_fn(d, &[2, 5, 5], |_| Scalar::from_f64(d, rng.next() as f64 / u64::MAX as f64));
    let matrix = a.ty.clone();
    let (row, ints) = (Type::new(d, &[2, 5]), Type::new(I, &[2, 5]));
    for (op, results) in [
        (LinalgOp::Lu, vec![matrix.clone(), ints.clone(), ints]),
        (LinalgOp::Qr { pivoted: false }, vec![matrix.clone(), row.clone()]),
        (LinalgOp::Hessenberg, vec![matrix.clone(), Type::new(d, &[2, 4])]),
        (LinalgOp::Svd { vectors: false }, vec![row]),
    ] {
        let mut b = Builder::new([matrix.clone()]);
        let x = b.params().next().unwrap();
        let outs = b.push_many(Kind::Linalg(op), &[x], &results);
        compare(&mut report, &format!("{op:?}"), b.finish(&outs), &[&a], Near::Far(1e-12));
    }
    report.finish();
}

#[test]
fn triangles() {
    let mut report = Report::default();
    let mut rng = Rng(9);
    for d in [F, DType::F64, DType::C64, DType::C128] {
        let far = if d.real() == F { 1e-3 } else { 1e-11 };
        let unit = |rng: &mut Rng| rng.next() as f64 / u64::MAX as f64;
        // Large diagonals; the imaginary part of one is not read. The last matrix has no factor.
        let a = Array::from_fn(d, &[3, 6, 6], |at| {
            let (re, im) = (unit(&mut rng), unit(&mut rng));
            let diagonal = if at[1] == at[2] { if at[0] == 2 && at[1] == 4 { -9.0 } else { 9.0 } } else { 0.0 };
            Scalar::from_complex(d, re + diagonal, if at[1] == at[2] { 0.0 } else { im })
        });
        let mut b = Builder::new([a.ty.clone()]);
        let x = b.params().next().unwrap();
        let y = b.push(Kind::Linalg(LinalgOp::Cholesky), &[x], a.ty.clone());
        compare(&mut report, &format!("Cholesky of {d}"), b.finish(&[y]), &[&a], Near::Far(far));
        for bits in 0..32u32 {
            let [left, lower, transpose, conjugate, unit] = [0, 1, 2, 3, 4].map(|k| bits >> k & 1 == 1);
            let shape = if left { [3, 6, 4] } else { [3, 4, 6] };
            let side = Array::tame(&mut rng, d, &shape);
            let op = LinalgOp::TriangularSolve { left, lower, transpose, conjugate, unit };
            let mut b = Builder::new([a.ty.clone(), side.ty.clone()]);
            let p: Vec<ValueId> = b.params().collect();
            let y = b.push(Kind::Linalg(op), &p, side.ty.clone());
            // Without the diagonal nothing keeps the numbers small.
            let far = if unit { far * 1e3 } else { far };
            compare(&mut report, &format!("{op:?} of {d}"), b.finish(&[y]), &[&a, &side], Near::Far(far));
        }
    }
    report.finish();
}

#[test]
fn what_has_no_kernel_is_named() {
    for (kind, d, want) in [
        (Kind::Unary(UnaryOp::Erf), I, "has no Unary(Erf) for int32"),
        (Kind::Unary(UnaryOp::Floor), DType::C64, "has no Floor for complex64"),
        (Kind::Sort { axis: 0, num_keys: 1, stable: true }, DType::KeyFry, "for key<fry>"),
        (Kind::Linalg(LinalgOp::Cholesky), DType::BF16, "has no Cholesky of bfloat16"),
    ] {
        let ty = Type::new(d, &[3, 3]);
        let mut b = Builder::new([ty.clone()]);
        let x = b.params().next().unwrap();
        let y = b.push(kind, &[x], ty);
        let text = plan(&b.finish(&[y]), &[]).expect_err("no kernel").to_string();
        assert!(text.contains("the CUDA engine") && text.contains(want), "{text}");
    }
}

/// Powers of 2 with angles of any size.
#[test]
fn complex_powers_of_two() {
    let mut report = Report::default();
    for d in [DType::C64, DType::C128] {
        let z = Array::from_fn(d, &[400], |at| {
            let k = at[0] as f64;
            Scalar::from_complex(
                d,
                (k % 9.0) - 4.0,
                (1.0 + k / 399.7) * 2f64.powf(k / 4.0 - 20.0) * (1.0 - k % 2.0 * 2.0),
            )
        });
        let mut b = Builder::new([z.ty.clone()]);
        let x = b.params().next().unwrap();
        let y = b.unary(UnaryOp::Exp2, x);
        compare(&mut report, &format!("powers of {d}"), b.finish(&[y]), &[&z], Near::Norm(8.0));
    }
    report.finish();
}

/// A random graph over small integers and floats, whose results have the same bits on every engine.
struct Random<'r> {
    rng: &'r mut Rng,
    b: Builder,
    values: Vec<ValueId>,
}

impl Random<'_> {
    fn any(&mut self) -> ValueId {
        // The last ones often, so that chains become long.
        let n = self.values.len();
        let k = if self.rng.below(3) == 0 { self.rng.below(n) } else { n - 1 - self.rng.below(n.min(4)) };
        self.values[k]
    }

    fn like(&mut self, shape: &[usize], d: DType) -> ValueId {
        let b = &self.b;
        let fits: Vec<ValueId> =
            self.values.iter().copied().filter(|&v| b.ty(v).shape.as_slice() == shape && b.ty(v).dtype == d).collect();
        if fits.is_empty() {
            let s = self.rng.tame(d);
            let s = self.b.scalar(s);
            return self.b.broadcast(s, shape, &[]);
        }
        fits[self.rng.below(fits.len())]
    }

    fn index(&mut self) -> ValueId {
        let scalars: Vec<ValueId> = {
            let b = &self.b;
            self.values.iter().copied().filter(|&v| b.ty(v).shape.is_empty() && b.ty(v).dtype == I).collect()
        };
        match scalars.last() {
            Some(&v) if self.rng.below(2) == 0 => v,
            _ => {
                let at = self.rng.below(5) as i64 - 1;
                self.b.scalar(Scalar::from_i64(I, at))
            }
        }
    }

    /// Parts of a value of rank 1 or more, or of more than it.
    fn part(&mut self, which: usize, x: ValueId) -> ValueId {
        let ty = self.b.ty(x).clone();
        let (d, shape, rank) = (ty.dtype, ty.shape.to_vec(), ty.shape.len());
        let axis = self.rng.below(rank);
        match which {
            8 => {
                let start: Vec<usize> = shape.iter().map(|&n| self.rng.below(n.min(2))).collect();
                let stride: Vec<usize> = shape.iter().map(|_| 1 + self.rng.below(2)).collect();
                let to: Vec<usize> = (0..rank).map(|a| (shape[a] - start[a]).div_ceil(stride[a])).collect();
                let dims = SliceDims { start: start.into(), limit: shape.into(), stride: stride.into() };
                self.b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(d, &to))
            }
            9 => self.b.push(Kind::Rev(SmallVec::from_slice(&[axis])), &[x], ty),
            10 => {
                let mut config = vec![PadConfig::default(); rank];
                config[axis] = PadConfig { low: self.rng.below(3) as i64 - 1, high: 1, interior: self.rng.below(2) };
                let mut to = shape.clone();
                let grown =
                    shape[axis] as i64 + config[axis].low + 1 + ((shape[axis] - 1) * config[axis].interior) as i64;
                to[axis] = grown as usize;
                let fill = self.like(&[], d);
                if grown < 1 || ty.size() > 300 {
                    x
                } else {
                    self.b.push(Kind::Pad(config.into()), &[x, fill], Type::new(d, &to))
                }
            }
            11 => {
                let other = self.like(&shape, d);
                let mut to = shape.clone();
                to[axis] *= 2;
                if ty.size() > 300 { x } else { self.b.push(Kind::Concat(axis), &[x, other], Type::new(d, &to)) }
            }
            12 => {
                let op = if d == I { ReduceOp::Sum } else { ReduceOp::Max };
                let axes = self.rng.axes(rank);
                self.b.reduce(op, x, &axes)
            }
            13 => {
                let to: Vec<usize> = shape.iter().map(|&n| 1 + self.rng.below(n)).collect();
                let inputs: Vec<ValueId> = std::iter::once(x).chain((0..rank).map(|_| self.index())).collect();
                self.b.push(Kind::DynamicSlice, &inputs, Type::new(d, &to))
            }
            14 => {
                let window: Vec<usize> = shape.iter().map(|&n| 1 + self.rng.below(n)).collect();
                let part = SliceDims {
                    start: vec![0; rank].into(),
                    limit: window.as_slice().into(),
                    stride: vec![1; rank].into(),
                };
                let from = self.like(&shape, d);
                let part = self.b.push(Kind::Slice(Box::new(part)), &[from], Type::new(d, &window));
                let inputs: Vec<ValueId> = [x, part].into_iter().chain((0..rank).map(|_| self.index())).collect();
                self.b.push(Kind::DynamicUpdateSlice, &inputs, ty)
            }
            _ => {
                let kind = Kind::Cumulative { op: ReduceOp::Max, axis, reverse: self.rng.below(2) == 0 };
                self.b.push(kind, &[x], ty)
            }
        }
    }

    fn step(&mut self) {
        let x = self.any();
        let ty = self.b.ty(x).clone();
        let (d, shape, rank) = (ty.dtype, ty.shape.to_vec(), ty.shape.len());
        let y = match self.rng.below(if rank == 0 { 4 } else { 16 }) {
            0 => self.b.unary([UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sign][self.rng.below(3)], x),
            1 | 2 => {
                let other = self.like(&shape, d);
                let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Max, BinaryOp::Min, BinaryOp::Mul][self.rng.below(5)];
                self.b.binary(op, x, other)
            }
            3 => self.b.convert(x, if d == F { I } else { F }),
            4 => {
                let other = self.like(&shape, d);
                let pred = self.b.compare(CompareOp::Lt, x, other);
                self.b.select(pred, other, x)
            }
            5 => {
                let to: Vec<usize> = std::iter::once(1 + self.rng.below(3)).chain(shape.iter().copied()).collect();
                let dims: Vec<usize> = (1..=rank).collect();
                if rank > 3 || ty.size() > 300 { x } else { self.b.broadcast(x, &to, &dims) }
            }
            6 => {
                let perm = self.rng.permutation(rank);
                let to: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
                self.b.push(Kind::Transpose(perm.iter().copied().collect()), &[x], Type::new(d, &to))
            }
            7 => {
                let mut to = shape.clone();
                let last = to.pop().unwrap_or(1);
                match to.last_mut() {
                    Some(n) => *n *= last,
                    None => to.extend([1, last]),
                }
                self.b.reshape(x, &to)
            }
            k => self.part(k, x),
        };
        self.values.push(y);
    }
}

#[test]
fn random_graphs() {
    let mut report = Report::default();
    let mut rng = Rng(6);
    for round in 0..60 {
        let shapes: [&[usize]; 3] = [&[4, 3], &[3, 4, 2], &[12]];
        let types = [Type::new(F, shapes[round % 3]), Type::new(I, shapes[(round + 1) % 3]), Type::new(I, &[])];
        let args: Vec<Array> = types.iter().map(|t| Array::tame(&mut rng, t.dtype, &t.shape)).collect();
        let b = Builder::new(types.iter().cloned());
        let values = b.params().collect();
        let mut random = Random { rng: &mut rng, b, values };
        (0..8 + round).for_each(|_| random.step());
        let Random { b, values, .. } = random;
        let outputs: Vec<ValueId> =
            (0..5).map(|_| values[values.len() - 1 - rng.below(values.len().min(12))]).collect();
        let donated = [0, 1, 2].map(|_| rng.below(2) == 0);
        let args: Vec<&Array> = args.iter().collect();
        report.donating(&format!("graph {round}"), b.finish(&outputs), &donated, &args, Near::Same);
    }
    report.finish();
}
