//! Reductions and dot products against the CPU engine.

use crate::against::{Array, Case, Near, Report, Rng, compare};
use ferrax_base::{DType, Scalar};
use ferrax_loops::{BinaryOp, Builder, DotDims, Graph, Kind, ReduceOp, Type};
use smallvec::SmallVec;
use std::sync::Arc;

fn numbers() -> impl Iterator<Item = DType> {
    // The least power of two is a subnormal f32, which plugins may take for 0, and 0 is NaN in that format.
    DType::ALL.iter().copied().filter(|d| (d.is_number() && *d != DType::F8E8M0FNU) || d.is_bool())
}

fn case(kind: Kind, inputs: &[usize], result: Type, near: Near) -> Case {
    let what = format!("{kind:?} of {} {inputs:?} to {:?}", result.dtype, result.shape);
    Case { what, kind, inputs: inputs.to_vec(), results: vec![result], near }
}

fn ops(d: DType) -> Vec<ReduceOp> {
    let mut ops = vec![ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    if !d.is_inexact() {
        ops.push(ReduceOp::Xor);
        ops.extend([ReduceOp::And, ReduceOp::Or]);
    }
    ops
}

/// Sums in another order: of few numbers that are exact in every format, all but the narrowest have the same bits.
fn near(op: ReduceOp, d: DType) -> Near {
    match op {
        ReduceOp::Sum if d.is_inexact() => Near::Zeros,
        ReduceOp::Prod if d.is_complex() || matches!(d, DType::F32 | DType::F64 | DType::F16 | DType::BF16) => {
            Near::Norm(8.0)
        }
        _ => Near::Same,
    }
}

pub fn reductions() {
    let mut report = Report::default();
    let mut rng = Rng(21);
    for d in numbers() {
        for (shape, axes) in [
            (vec![4, 3, 5], vec![1]),
            (vec![4, 3, 5], vec![0, 2]),
            (vec![7], vec![0]),
            (vec![2, 0, 3], vec![1]),
            (vec![2, 0, 3], vec![2]),
            (vec![3, 1], vec![1]),
            (vec![3, 4], vec![]),
        ] {
            if d.is_signed() && d.bits() < 8 && shape.contains(&0) {
                // The CPU engine keeps the bytes of what a reduction starts from, without the sign.
                continue;
            }
            // Products of these stay in range, and NaN and infinities are among the others.
            let args = [Array::tame(&mut rng, d, &shape), Array::random(&mut rng, d, &shape)];
            let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).map(|a| shape[a]).collect();
            let cases: Vec<Case> = ops(d)
                .into_iter()
                .map(|op| {
                    let kind = Kind::Reduce { op, axes: SmallVec::from_slice(&axes) };
                    let from = usize::from(matches!(op, ReduceOp::Max | ReduceOp::Min) && !d.is_complex());
                    case(kind, &[from], Type::new(d, &kept), near(op, d))
                })
                .collect();
            report.check(&cases, &args);
        }
    }
    report.finish();
}

pub fn nan_and_infinities_in_sums() {
    let mut report = Report::default();
    let mut rng = Rng(22);
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::C64, DType::C128] {
        let x = Array::random(&mut rng, d, &[40, 2]);
        let cases: Vec<Case> = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min]
            .into_iter()
            .filter(|op| *op == ReduceOp::Sum || !d.is_complex())
            .map(|op| {
                let kind = Kind::Reduce { op, axes: SmallVec::from_slice(&[1]) };
                case(kind, &[0], Type::new(d, &[40]), near(op, d))
            })
            .collect();
        report.check(&cases, &[x]);
    }
    report.finish();
}

pub fn half_sums_are_single() {
    let mut report = Report::default();
    for d in [DType::F16, DType::BF16] {
        // 4096 ones: a sum in the format itself ends at 256 or 2048.
        let args = [Array::from_fn(d, &[4096], |_| Scalar::one(d))];
        let kind = Kind::Reduce { op: ReduceOp::Sum, axes: SmallVec::from_slice(&[0]) };
        report.check(&[case(kind, &[0], Type::new(d, &[]), Near::Same)], &args);
    }
    report.finish();
}

pub fn arg_reductions() {
    let mut report = Report::default();
    let mut rng = Rng(23);
    for d in numbers() {
        for (shape, axis) in [(vec![6, 9], 1), (vec![9, 6], 0), (vec![1, 3], 0), (vec![3, 0], 0), (vec![300], 0)] {
            let args = [Array::random(&mut rng, d, &shape)];
            let mut kept = shape.clone();
            kept.remove(axis);
            let mut cases = Vec::new();
            for index in [DType::I32, DType::I64, DType::U8] {
                for max in [true, false] {
                    let kind = Kind::ArgReduce { max, axis };
                    cases.push(case(kind, &[0], Type::new(index, &kept), Near::Same));
                }
            }
            report.check(&cases, &args);
        }
    }
    report.finish();
}

/// (a, b), (x, y) → (a + x, max(b, y)).
fn pairs(a: DType, b: DType) -> Graph {
    let mut builder = Builder::new([a, b, a, b].map(|d| Type::new(d, &[])));
    let p: Vec<_> = builder.params().collect();
    let sum = builder.binary(BinaryOp::Add, p[0], p[2]);
    let most = builder.binary(BinaryOp::Max, p[1], p[3]);
    builder.finish(&[sum, most])
}

pub fn reductions_with_a_body() {
    let mut report = Report::default();
    let mut rng = Rng(24);
    for (a, b) in
        [(DType::I32, DType::F32), (DType::I64, DType::I16), (DType::F64, DType::U8), (DType::I4, DType::BF16)]
    {
        let whole = [(vec![3, 4, 2], vec![1]), (vec![3, 4, 2], vec![0, 2]), (vec![3, 0], vec![1])];
        let of_one = [(vec![1, 3, 1], vec![0, 2]), (vec![1], vec![0]), (vec![2, 3], vec![])];
        for (shape, axes) in whole.into_iter().chain(of_one) {
            let kept: Vec<usize> = (0..shape.len()).filter(|x| !axes.contains(x)).map(|x| shape[x]).collect();
            let args = [
                Array::tame(&mut rng, a, &shape),
                Array::random(&mut rng, b, &shape),
                Array::tame(&mut rng, a, &[]),
                Array::tame(&mut rng, b, &[]),
            ];
            let kind = Kind::ReduceWith { body: Arc::new(pairs(a, b)), axes: SmallVec::from_slice(&axes) };
            let case = Case {
                what: format!("ReduceWith {a} {b} {shape:?} over {axes:?}"),
                kind,
                inputs: vec![0, 1, 2, 3],
                results: vec![Type::new(a, &kept), Type::new(b, &kept)],
                near: Near::Zeros,
            };
            report.check(&[case], &args);
        }
    }
    report.finish();
}

fn dims(lhs_contract: &[usize], rhs_contract: &[usize], lhs_batch: &[usize], rhs_batch: &[usize]) -> Kind {
    let of = SmallVec::from_slice;
    Kind::Dot(Box::new(DotDims {
        lhs_contract: of(lhs_contract),
        rhs_contract: of(rhs_contract),
        lhs_batch: of(lhs_batch),
        rhs_batch: of(rhs_batch),
        ..DotDims::default()
    }))
}

pub fn dots() {
    let mut report = Report::default();
    let mut rng = Rng(25);
    for d in numbers() {
        let outs: &[DType] = match d {
            DType::F16 | DType::BF16 => &[DType::F32],
            DType::F32 => &[DType::F64, DType::BF16],
            DType::I8 => &[DType::I32],
            DType::F8E4M3FN => &[DType::BF16, DType::F32],
            _ => &[],
        };
        for n in [3usize, 0] {
            let shapes: [&[usize]; 5] = [&[2, n, 4], &[n, 5, 2], &[n], &[2, 4], &[4, 2, n]];
            let args: Vec<Array> = shapes.iter().map(|s| Array::tame(&mut rng, d, s)).collect();
            let mut cases = Vec::new();
            for &out in [d].iter().chain(outs) {
                let near = if out.is_complex() { Near::Norm(8.0) } else { Near::Zeros };
                cases.extend([
                    case(dims(&[1], &[0], &[0], &[2]), &[0, 1], Type::new(out, &[2, 4, 5]), near),
                    case(dims(&[0], &[0], &[], &[]), &[2, 2], Type::new(out, &[]), near),
                    case(dims(&[], &[], &[], &[]), &[2, 3], Type::new(out, &[n, 2, 4]), near),
                    case(dims(&[0, 2], &[0, 1], &[], &[]), &[0, 3], Type::new(out, &[n]), near),
                    case(dims(&[2, 0], &[0, 1], &[1], &[2]), &[0, 4], Type::new(out, &[n]), near),
                ]);
            }
            report.check(&cases, &args);
        }
    }
    report.finish();
}

/// f32 products of numbers whose low bits matter: 10-bit or 16-bit multipliers would lose them.
pub fn products_are_of_full_precision() {
    let mut report = Report::default();
    let mut rng = Rng(26);
    let mut fine = |d: DType, shape: &[usize]| {
        Array::from_fn(d, shape, |_| Scalar::from_f64(d, (rng.next() >> 40) as f64 / f64::from(1 << 23) - 1.0))
    };
    for (d, out, most) in [
        (DType::F32, DType::F32, 3e-6),
        (DType::F64, DType::F64, 1e-14),
        (DType::BF16, DType::F32, 3e-6),
        (DType::F16, DType::F32, 3e-6),
        (DType::C64, DType::C64, 6e-6),
    ] {
        let (x, y) = (fine(d, &[33, 70]), fine(d, &[70, 29]));
        let mut builder = Builder::new([x.ty.clone(), y.ty.clone()]);
        let p: Vec<_> = builder.params().collect();
        let product = builder.push(dims(&[1], &[0], &[], &[]), &p, Type::new(out, &[33, 29]));
        compare(&mut report, &format!("product of {d}"), builder.finish(&[product]), &[&x, &y], Near::Far(most));
    }
    report.finish();
}
