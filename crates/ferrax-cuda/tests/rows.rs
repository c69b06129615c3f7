//! Rows that one kernel reads once, on the host, against the CPU engine: lengths around those at which teams, vectors and
//! what registers keep change, results that other nodes read, and what may not be taken together.

mod against;

use against::{Array, Near, Report, Rng, compare};
use ferrax_base::DType;
use ferrax_cuda::plan::{plan, walk};
use ferrax_cuda::program::Step;
use ferrax_loops::{BinaryOp, Builder, DotDims, Graph, Kind, ReduceOp, Type, UnaryOp, ValueId};

const F: DType = DType::F32;

fn launches(graph: &Graph) -> usize {
    let mut count = 0;
    walk(&plan(graph, &[]).expect("a program").steps, &mut |s| count += usize::from(matches!(s, Step::Launch(_))));
    count
}

/// A reduction of the last axis, spread along it again.
fn along(b: &mut Builder, op: ReduceOp, x: ValueId) -> ValueId {
    let shape = b.ty(x).shape.clone();
    let last = shape.len() - 1;
    let axes: Vec<usize> = (0..last).collect();
    let r = b.reduce(op, x, &[last]);
    b.broadcast(r, &shape, &axes)
}

fn softmax_of(b: &mut Builder, x: ValueId) -> ValueId {
    let top = along(b, ReduceOp::Max, x);
    let less = b.binary(BinaryOp::Sub, x, top);
    let e = b.unary(UnaryOp::Exp, less);
    let sum = along(b, ReduceOp::Sum, e);
    b.binary(BinaryOp::Div, e, sum)
}

fn softmax(d: DType, shape: &[usize]) -> Graph {
    let mut b = Builder::new([Type::new(d, shape)]);
    let x = b.params().next().unwrap();
    let y = softmax_of(&mut b, x);
    b.finish(&[y])
}

/// Normalised rows times a vector plus another, with the logarithm of the variance of each row.
fn layernorm(d: DType, shape: &[usize]) -> Graph {
    let last = shape.len() - 1;
    let n = shape[last];
    let mut b = Builder::new([Type::new(d, shape), Type::new(d, &[n]), Type::new(d, &[n])]);
    let p: Vec<ValueId> = b.params().collect();
    let kept: Vec<usize> = shape[..last].iter().copied().chain([1]).collect();
    let axes: Vec<usize> = (0..=last).collect();
    let count = b.float(d, n as f64);
    let mean = |b: &mut Builder, x: ValueId| {
        let sum = b.reduce(ReduceOp::Sum, x, &[last]);
        let sum = b.reshape(sum, &kept);
        let count = b.broadcast(count, &kept, &[]);
        b.binary(BinaryOp::Div, sum, count)
    };
    let middle = mean(&mut b, p[0]);
    let middle = b.broadcast(middle, shape, &axes);
    let less = b.binary(BinaryOp::Sub, p[0], middle);
    let square = b.binary(BinaryOp::Mul, less, less);
    let variance = mean(&mut b, square);
    let little = b.float(d, 1e-3);
    let little = b.broadcast(little, &kept, &[]);
    let variance = b.binary(BinaryOp::Add, variance, little);
    let scale = b.unary(UnaryOp::Rsqrt, variance);
    let scale = b.broadcast(scale, shape, &axes);
    let y = b.binary(BinaryOp::Mul, less, scale);
    let factor = b.broadcast(p[1], shape, &[last]);
    let y = b.binary(BinaryOp::Mul, y, factor);
    let more = b.broadcast(p[2], shape, &[last]);
    let y = b.binary(BinaryOp::Add, y, more);
    let log = b.unary(UnaryOp::Log, variance);
    b.finish(&[y, log])
}

/// How near two sums of a row's numbers are.
fn near(d: DType, length: usize) -> Near {
    match d {
        DType::BF16 | DType::F16 => Near::Ulps(4.0),
        _ => Near::Ulps(16.0 + (length as f64).sqrt()),
    }
}

#[test]
fn softmax_and_layernorm_are_one_kernel() {
    let mut report = Report::default();
    let mut rng = Rng(1);
    for shape in [
        &[7, 30][..],
        &[3, 2, 200],
        &[1, 2],
        &[300, 3],
        &[40, 8],
        &[9, 9],
        &[5, 31],
        &[5, 32],
        &[5, 33],
        &[3, 255],
        &[3, 256],
        &[3, 257],
        &[70, 260],
        &[3, 511],
        &[3, 512],
        &[3, 516],
        &[3, 1023],
        &[3, 1024],
        &[2, 1028],
        &[2, 3001],
        &[1, 8192],
        &[8193],
        &[1, 1, 5000],
        &[2, 3, 1, 64],
    ] {
        for d in [F, DType::BF16, DType::F64] {
            let what = format!("of {d} {shape:?}");
            let graph = softmax(d, shape);
            assert_eq!(launches(&graph), 1, "softmax {what}");
            let x = Array::tame(&mut rng, d, shape);
            let length = shape[shape.len() - 1];
            compare(&mut report, &format!("softmax {what}"), graph, &[&x], near(d, length));
            let graph = layernorm(d, shape);
            assert_eq!(launches(&graph), 1, "layernorm {what}");
            let v = [0, 1].map(|_| Array::tame(&mut rng, d, &[length]));
            let near = Near::Far(if d == DType::BF16 { 0.5 } else { 2e-4 });
            compare(&mut report, &format!("layernorm {what}"), graph, &[&x, &v[0], &v[1]], near);
        }
    }
    report.finish();
}

/// Rows that registers hold, just hold, and do not hold.
#[test]
fn long_rows() {
    let mut report = Report::default();
    let mut rng = Rng(2);
    for (shape, one) in [
        (&[2, 16_384][..], true),
        (&[1, 32_767], true),
        (&[1, 32_768], true),
        (&[1, 32_772], false),
        (&[128, 32_772], true),
        (&[130, 40_001], true),
    ] {
        let graph = softmax(F, shape);
        assert_eq!(launches(&graph) == 1, one, "{shape:?}");
        let x = Array::tame(&mut rng, F, shape);
        compare(&mut report, &format!("softmax of {shape:?}"), graph, &[&x], Near::Ulps(300.0));
    }
    report.finish();
}

/// The elements of rows of x and y, of shape [6, 40] each, as results, with how many kernels there are.
#[test]
fn what_else_reads_rows() {
    let mut report = Report::default();
    let mut rng = Rng(3);
    let shape = [6usize, 40];
    type Outputs = fn(&mut Builder, ValueId, ValueId) -> Vec<ValueId>;
    let graphs: [(&str, Outputs, usize); 12] = [
        (
            "a product after it, and all of it again",
            |b, x, y| {
                let s = softmax_of(b, x);
                let dims = DotDims {
                    lhs_contract: [1].as_slice().into(),
                    rhs_contract: [1].as_slice().into(),
                    ..DotDims::default()
                };
                let p = b.push(Kind::Dot(Box::new(dims)), &[s, y], Type::new(F, &[6, 6]));
                let row = b.reduce(ReduceOp::Sum, p, &[1]);
                let row = b.broadcast(row, &[6, 40], &[0]);
                vec![b.binary(BinaryOp::Mul, s, row)]
            },
            4,
        ),
        (
            "sums of columns of the differences to the mean",
            |b, x, y| {
                let sum = along(b, ReduceOp::Sum, x);
                let less = b.binary(BinaryOp::Sub, x, sum);
                let top = along(b, ReduceOp::Max, less);
                let z = b.binary(BinaryOp::Mul, top, y);
                vec![z, b.reduce(ReduceOp::Sum, less, &[0])]
            },
            2,
        ),
        (
            "sums of columns of exponentials",
            |b, x, _| {
                let top = along(b, ReduceOp::Max, x);
                let less = b.binary(BinaryOp::Sub, x, top);
                let e = b.unary(UnaryOp::Exp, less);
                vec![b.reduce(ReduceOp::Sum, e, &[1]), b.reduce(ReduceOp::Sum, e, &[0])]
            },
            2,
        ),
        (
            "a logarithm of a sum alone",
            |b, x, _| {
                let top = b.reduce(ReduceOp::Max, x, &[1]);
                let spread = b.broadcast(top, &[6, 40], &[0]);
                let less = b.binary(BinaryOp::Sub, x, spread);
                let e = b.unary(UnaryOp::Exp, less);
                let sum = b.reduce(ReduceOp::Sum, e, &[1]);
                let log = b.unary(UnaryOp::Log, sum);
                vec![b.binary(BinaryOp::Add, log, top)]
            },
            1,
        ),
        (
            "two sums of one array",
            |b, x, _| {
                let square = b.binary(BinaryOp::Mul, x, x);
                vec![b.reduce(ReduceOp::Sum, x, &[1]), b.reduce(ReduceOp::Sum, square, &[1])]
            },
            1,
        ),
        ("sums of two arrays", |b, x, y| vec![b.reduce(ReduceOp::Sum, x, &[1]), b.reduce(ReduceOp::Sum, y, &[1])], 2),
        (
            "a slope",
            |b, x, y| {
                let s = softmax_of(b, x);
                let p = b.binary(BinaryOp::Mul, s, y);
                let sum = along(b, ReduceOp::Sum, p);
                let less = b.binary(BinaryOp::Sub, y, sum);
                vec![b.binary(BinaryOp::Mul, s, less), s]
            },
            1,
        ),
        (
            "columns of what rows give",
            |b, x, _| {
                let s = softmax_of(b, x);
                let t = b.push(Kind::Transpose([1, 0].as_slice().into()), &[s], Type::new(F, &[40, 6]));
                vec![softmax_of(b, t)]
            },
            2,
        ),
        (
            "rows turned around",
            |b, x, _| {
                let r = b.reduce(ReduceOp::Sum, x, &[1]);
                let turned = b.push(Kind::Rev([0].as_slice().into()), &[r], Type::new(F, &[6]));
                let spread = b.broadcast(turned, &[6, 40], &[0]);
                let z = b.binary(BinaryOp::Sub, x, spread);
                let s = softmax_of(b, z);
                vec![s, r]
            },
            2,
        ),
        (
            "a mask",
            |b, x, y| {
                let (i, j) = (b.iota(DType::I32, &[6, 40], 0), b.iota(DType::I32, &[6, 40], 1));
                let seen = b.compare(ferrax_loops::kind::CompareOp::Le, j, i);
                let z = b.select(seen, y, x);
                let s = softmax_of(b, z);
                vec![b.convert(s, DType::BF16), b.convert(s, DType::F64)]
            },
            1,
        ),
        (
            "rows in another shape",
            |b, x, y| {
                let z = b.reshape(x, &[6, 8, 5]);
                let r = b.reduce(ReduceOp::Max, z, &[1, 2]);
                let r = b.broadcast(r, &[6, 40], &[0]);
                let less = b.binary(BinaryOp::Sub, y, r);
                vec![b.unary(UnaryOp::Tanh, less), less]
            },
            1,
        ),
        (
            "all of an array",
            |b, x, y| {
                let all = b.reduce(ReduceOp::Sum, x, &[0, 1]);
                let spread = b.broadcast(all, &[6, 40], &[]);
                let less = b.binary(BinaryOp::Sub, y, spread);
                let square = b.binary(BinaryOp::Mul, less, less);
                let sum = b.reduce(ReduceOp::Sum, square, &[0, 1]);
                let root = b.unary(UnaryOp::Sqrt, sum);
                let spread = b.broadcast(root, &[6, 40], &[]);
                vec![b.binary(BinaryOp::Div, less, spread), root]
            },
            1,
        ),
    ];
    let args = [Array::tame(&mut rng, F, &shape), Array::tame(&mut rng, F, &shape)];
    for (what, outputs, count) in graphs {
        let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
        let [x, y] = [0, 1].map(|k| b.params().nth(k).unwrap());
        let results = outputs(&mut b, x, y);
        let graph = b.finish(&results);
        assert_eq!(launches(&graph), count, "{what}");
        for donated in [&[][..], &[true, true]] {
            report.donating(what, graph.clone(), donated, &args.each_ref(), Near::Far(2e-4));
        }
    }
    report.finish();
}

/// Every operation in every dtype that has it: each number of a row less, or without, what the row gives.
#[test]
fn reductions_of_every_kind() {
    let mut report = Report::default();
    let mut rng = Rng(4);
    let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];
    for d in against::common::NUMBERS.into_iter().chain([DType::Bool, DType::I4]) {
        for (op, shape) in ops.into_iter().flat_map(|op| [[5usize, 24], [3, 300], [2, 2050]].map(|s| (op, s))) {
            let bits = matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor);
            let sums = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
            if d.is_complex() || (bits && d.is_inexact()) || (sums && d.is_inexact() && d.size() < 4) {
                continue;
            }
            let x = Array::from_fn(d, &shape, |_| {
                let whole = if op == ReduceOp::Prod { 1 - 2 * (rng.below(2) as i64) } else { rng.below(7) as i64 - 3 };
                ferrax_base::Scalar::from_i64(DType::I64, whole).convert(d)
            });
            let mut b = Builder::new([x.ty.clone()]);
            let p = b.params().next().unwrap();
            let r = along(&mut b, op, p);
            let y = b.binary(if d.is_bool() { BinaryOp::Xor } else { BinaryOp::Max }, p, r);
            let again = along(&mut b, op, y);
            let graph = b.finish(&[y, again]);
            assert_eq!(launches(&graph), 1, "{op:?} {d}");
            compare(&mut report, &format!("{op:?} of {d} {shape:?}"), graph, &[&x], Near::Zeros);
        }
    }
    report.finish();
}
