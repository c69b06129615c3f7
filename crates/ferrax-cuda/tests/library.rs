//! Nodes with kernels of their own, of sizes for which each of their ways of working is taken, on the host, against the
//! CPU engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/windows.rs"]
mod windows;

use against::{Array, Case, Near, Report, Rng, common::NUMBERS, dims};
use ferrax_base::{DType, Scalar};
use ferrax_loops::linalg::LinalgOp;
use ferrax_loops::{BinaryOp, Builder, ConvDims, Kind, ReduceOp, Type, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;
use windows::windows;

fn case(kind: Kind, inputs: &[usize], results: &[Type], near: Near) -> Case {
    let what = format!("{kind:?} to {:?}", results[0]);
    Case { what, kind, inputs: inputs.to_vec(), results: results.to_vec(), near }
}

/// Whole numbers, of which sums of thousands are exact.
fn whole(rng: &mut Rng, d: DType, shape: &[usize]) -> Array {
    Array::from_fn(d, shape, |_| Scalar::from_i64(d, rng.below(7) as i64 - 3).convert(d))
}

#[test]
fn reductions_by_threads_warps_blocks_and_in_pieces() {
    let mut report = Report::default();
    let mut rng = Rng(1);
    for (shape, axes) in [
        (&[3, 33][..], &[1][..]),
        (&[5, 1024], &[1]),
        (&[2, 1500], &[1]),
        (&[70_000], &[0]),
        (&[9000, 3], &[0]),
        (&[3, 700, 5], &[1]),
        (&[2, 300, 2, 40], &[1, 3]),
        (&[40, 2, 3, 300], &[0, 3]),
    ] {
        let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        for d in [DType::F32, DType::I8, DType::F64, DType::BF16, DType::C64] {
            let args = [whole(&mut rng, d, shape), Array::random(&mut rng, d, shape)];
            // Below this, 16 bits hold the sums.
            let exact = !(d == DType::BF16);
            let mut cases = Vec::new();
            for (op, from) in [(ReduceOp::Sum, 0), (ReduceOp::Max, 1), (ReduceOp::Min, 1)] {
                if (op == ReduceOp::Sum && !exact) || (op != ReduceOp::Sum && d.is_complex()) {
                    continue;
                }
                let kind = Kind::Reduce { op, axes: SmallVec::from_slice(axes) };
                cases.push(case(kind, &[from], &[Type::new(d, &kept)], Near::Zeros));
            }
            if let [axis] = axes {
                for (max, from) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
                    let kind = Kind::ArgReduce { max, axis: *axis };
                    cases.push(case(kind, &[from], &[Type::new(DType::I32, &kept)], Near::Same));
                }
            }
            report.check(&cases, &args);
        }
    }
    report.finish();
}

/// (a, b), (x, y) → (a x, a y + b): functions joined one after the other, which does not commute.
#[test]
fn reductions_with_a_body_keep_the_order() {
    let mut report = Report::default();
    let mut rng = Rng(2);
    let d = DType::U32;
    let mut b = Builder::new([0; 4].map(|_| Type::new(d, &[])));
    let p: Vec<_> = b.params().collect();
    let first = b.binary(BinaryOp::Mul, p[0], p[2]);
    let part = b.binary(BinaryOp::Mul, p[1], p[2]);
    let second = b.binary(BinaryOp::Add, part, p[3]);
    let body = Arc::new(b.finish(&[first, second]));
    for (shape, axes) in [(&[5000][..], &[0][..]), (&[3, 700], &[1]), (&[900, 2], &[0]), (&[4, 8], &[0])] {
        let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
        let odd = |rng: &mut Rng| Scalar::from_i64(d, rng.next() as i64 | 1);
        let args = [
            Array::from_fn(d, shape, |_| odd(&mut rng)),
            Array::from_fn(d, shape, |_| odd(&mut rng)),
            Array::integers(d, &[], &[3]),
            Array::integers(d, &[], &[5]),
        ];
        let kind = Kind::ReduceWith { body: body.clone(), axes: SmallVec::from_slice(axes) };
        report.check(&[case(kind, &[0, 1, 2, 3], &[Type::new(d, &kept), Type::new(d, &kept)], Near::Same)], &args);
    }
    report.finish();
}

#[test]
fn random_bits() {
    let mut report = Report::default();
    let mut rng = Rng(5);
    for keys in [&[][..], &[50]] {
        let mut word =
            |shape: &[usize]| Array::from_fn(DType::U32, shape, |_| Scalar::from_i64(DType::U32, rng.next() as i64));
        let args = [word(keys), word(keys), word(&[50]), word(&[50])];
        let results = [args[2].ty.clone(), args[3].ty.clone()];
        report.check(&[case(Kind::Threefry2x32, &[0, 1, 2, 3], &results, Near::Same)], &args);
    }
    report.finish();
}

#[test]
fn windows_of_every_kind() {
    let mut report = Report::default();
    let mut rng = Rng(6);
    let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];
    for (i, d) in NUMBERS.into_iter().chain([DType::Bool]).enumerate() {
        for (j, op) in ops.into_iter().enumerate() {
            let bitwise = matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor);
            if (bitwise && d.is_inexact()) || (op == ReduceOp::Prod && d.is_complex()) {
                continue;
            }
            let shape = [&[7][..], &[5, 6], &[3, 4, 5], &[0, 4]][(i + j) % 4];
            let (dims, out) = windows(&mut rng, shape);
            let kind = Kind::ReduceWindow { op, window: Box::new(dims) };
            let args = [whole(&mut rng, d, shape), Array::new(d, &[], vec![op.identity(d)]), whole(&mut rng, d, &[])];
            let cases = [1, 2].map(|init| case(kind.clone(), &[0, init], &[Type::new(d, &out)], Near::Zeros));
            report.check(&cases, &args);
        }
    }
    report.finish();
}

#[test]
fn products_by_tiles_and_by_sums() {
    let mut report = Report::default();
    let mut rng = Rng(7);
    for (d, out) in [
        (DType::F32, DType::F32),
        (DType::F64, DType::F64),
        (DType::BF16, DType::F32),
        (DType::I8, DType::I32),
        (DType::C64, DType::C64),
        (DType::C128, DType::C128),
        (DType::F8E5M2, DType::F32),
        (DType::Bool, DType::Bool),
    ] {
        let shapes: [&[usize]; 6] = [&[70, 37], &[37, 65], &[37, 70], &[2, 40, 37], &[37, 3000], &[3000]];
        let args = shapes.map(|s| whole(&mut rng, d, s));
        let cases = [
            case(dims(&[1], &[0], &[], &[]), &[0, 1], &[Type::new(out, &[70, 65])], Near::Zeros),
            case(dims(&[0], &[0], &[], &[]), &[2, 1], &[Type::new(out, &[70, 65])], Near::Zeros),
            case(dims(&[2], &[2], &[0], &[0]), &[3, 3], &[Type::new(out, &[2, 40, 40])], Near::Zeros),
            case(dims(&[1], &[0], &[], &[]), &[4, 5], &[Type::new(out, &[37])], Near::Zeros),
            case(dims(&[0], &[0], &[], &[]), &[5, 5], &[Type::new(out, &[])], Near::Zeros),
            case(dims(&[], &[], &[], &[]), &[0, 1], &[Type::new(out, &[70, 37, 37, 65])], Near::Zeros),
        ];
        let count = if d == DType::F32 { 6 } else { 5 };
        report.check(&cases[..count], &args);
    }
    report.finish();
}

#[test]
fn convolutions() {
    let mut report = Report::default();
    let mut rng = Rng(8);
    // The CPU engine's lowerings widen narrow floats first.
    for d in [DType::F32, DType::F64, DType::I32, DType::C64] {
        for (x, w, strides, dilation, groups) in [
            (&[2, 9, 4][..], &[3, 2, 6][..], &[2][..], &[1][..], 2),
            (&[1, 7, 8, 3], &[3, 2, 3, 5], &[1, 2], &[2, 3], 1),
            (&[2, 5, 6, 4, 2], &[2, 3, 1, 2, 2], &[1, 1, 2], &[1, 2, 1], 1),
            (&[3, 5], &[5, 4], &[], &[], 1),
        ] {
            let spatial = x.len() - 2;
            let mut out = vec![x[0]];
            out.extend((0..spatial).map(|s| (x[s + 1] - (w[s] - 1) * dilation[s] - 1) / strides[s] + 1));
            out.push(w[spatial + 1]);
            let kind = Kind::Conv(Box::new(ConvDims {
                strides: strides.into(),
                rhs_dilation: dilation.into(),
                groups,
                tf32: false,
            }));
            let args = [whole(&mut rng, d, x), whole(&mut rng, d, w)];
            report.check(&[case(kind, &[0, 1], &[Type::new(d, &out)], Near::Zeros)], &args);
        }
    }
    report.finish();
}

#[test]
fn transpositions() {
    let mut report = Report::default();
    let mut rng = Rng(10);
    for d in [DType::F32, DType::U8, DType::F16, DType::F64, DType::C128, DType::I4] {
        for (shape, perm) in [
            (&[33, 70][..], &[1, 0][..]),
            (&[3, 32, 64], &[0, 2, 1]),
            (&[4, 10, 31], &[2, 0, 1]),
            (&[40, 1, 3, 20], &[3, 1, 2, 0]),
            (&[16, 17, 18], &[2, 1, 0]),
        ] {
            let to: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
            let x = Array::random(&mut rng, d, shape);
            report.check(&[case(Kind::Transpose(perm.into()), &[0], &[Type::new(d, &to)], Near::Same)], &[x]);
        }
    }
    let shared = report.programs().filter(|p| p.source().contains("__shared__")).count();
    assert_eq!(shared, 30);
    report.finish();
}

/// Functions of transposed values, and of what is transposed: tiles of vectors and without, rows and columns around a tile's.
#[test]
fn functions_of_transpositions() {
    let mut report = Report::default();
    let mut rng = Rng(11);
    for d in [DType::F32, DType::BF16, DType::U8, DType::F64] {
        for (shape, perm) in [
            (&[33, 70][..], &[1, 0][..]),
            (&[64, 64], &[1, 0]),
            (&[128, 80], &[1, 0]),
            (&[208, 144], &[1, 0]),
            (&[16, 200], &[1, 0]),
            (&[15, 200], &[1, 0]),
            (&[65, 1, 96], &[2, 1, 0]),
            (&[3, 64, 2, 32], &[0, 3, 2, 1]),
            (&[20, 3, 16, 2], &[2, 3, 1, 0]),
            (&[1, 40, 0], &[2, 1, 0]),
        ] {
            let to: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
            let args =
                [Array::tame(&mut rng, d, shape), Array::tame(&mut rng, d, &to), Array::tame(&mut rng, d, shape)];
            let graph = |results: &dyn Fn(&mut Builder, [ValueId; 3], [ValueId; 2]) -> Vec<ValueId>| {
                let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
                let p = [0, 1, 2].map(|k| b.params().nth(k).unwrap());
                let product = b.binary(BinaryOp::Mul, p[0], p[2]);
                let turned = [p[0], product].map(|v| b.push(Kind::Transpose(perm.into()), &[v], Type::new(d, &to)));
                let results = results(&mut b, p, turned);
                b.finish(&results)
            };
            let graphs = [
                graph(&|b, [_, y, _], [t, _]| {
                    let flat = b.reshape(t, &[to.iter().product()]);
                    vec![b.binary(BinaryOp::Add, t, y), b.binary(BinaryOp::Mul, flat, flat)]
                }),
                graph(&|b, [_, y, _], [t, u]| {
                    let least = b.binary(BinaryOp::Min, u, t);
                    let sum = b.binary(BinaryOp::Add, least, y);
                    vec![b.convert(sum, DType::F64), t]
                }),
            ];
            for graph in graphs {
                against::compare(&mut report, &format!("{d} {shape:?} {perm:?}"), graph, &args.each_ref(), Near::Same);
            }
        }
    }
    let shared = report.programs().filter(|p| p.source().contains("__shared__")).count();
    assert_eq!(shared, 4 * 2 * 8);
    report.finish();
}

#[test]
fn permutations_that_exchanges_make() {
    let mut report = Report::default();
    let mut rng = Rng(11);
    for (batch, steps, rows) in [(1, 1, 1), (3, 5, 9), (300, 7, 7), (2, 33, 40)] {
        // rows that are not there are the nearest ones
        let mut number = || Scalar::from_i64(DType::I32, rng.below(rows + 4) as i64 - 2);
        let pivots = Array::from_fn(DType::I32, &[batch, steps], |_| number());
        let kind = Kind::Linalg(LinalgOp::PivotsToPermutation);
        let results = vec![Type::new(DType::I32, &[batch, rows])];
        let what = format!("{batch} permutations of {rows} by {steps}");
        report.check(&[Case { what, kind, inputs: vec![0], results, near: Near::Zeros }], &[pivots]);
    }
    report.finish();
}
