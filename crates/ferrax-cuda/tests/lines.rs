//! Running reductions, sorts and scatters, of lines for which each of their ways of working is taken, on the host, against
//! the CPU engine.

mod against;

use against::{Array, Case, Near, Report, Rng, common::NUMBERS};
use ferrax_base::{DType, Scalar};
use ferrax_loops::{IndexMode, Kind, ReduceOp, ScatterDims, ScatterOp, Type};
use smallvec::SmallVec;

fn case(kind: Kind, inputs: &[usize], results: &[Type], near: Near) -> Case {
    let what = format!("{kind:?} to {:?}", results[0]);
    Case { what, kind, inputs: inputs.to_vec(), results: results.to_vec(), near }
}

/// Whole numbers, of which sums of thousands are exact.
fn whole(rng: &mut Rng, d: DType, shape: &[usize]) -> Array {
    Array::from_fn(d, shape, |_| Scalar::from_i64(d, rng.below(7) as i64 - 3).convert(d))
}

/// Running reductions of both directions along an axis.
fn running(report: &mut Report, rng: &mut Rng, d: DType, shape: &[usize], axis: usize) {
    let args = [whole(rng, d, shape), Array::random(rng, d, shape)];
    let mut cases = Vec::new();
    for (op, from, reverse) in [
        (ReduceOp::Sum, 0, false),
        (ReduceOp::Sum, 0, true),
        (ReduceOp::Max, 1, false),
        (ReduceOp::Min, 1, true),
        (ReduceOp::Xor, 0, true),
        (ReduceOp::Prod, 1, false),
    ] {
        // Sums of floats of 8 bits of mantissa are exact where they are few, products nowhere.
        let few = d == DType::BF16 && op == ReduceOp::Sum && shape[axis] > 8;
        let order = matches!(op, ReduceOp::Max | ReduceOp::Min);
        let whole = matches!(op, ReduceOp::Xor | ReduceOp::Prod);
        if few || (order && d.is_complex()) || (whole && d.is_inexact()) {
            continue;
        }
        let kind = Kind::Cumulative { op, axis, reverse };
        cases.push(case(kind, &[from], &[Type::new(d, shape)], Near::Zeros));
    }
    report.check(&cases, &args);
}

#[test]
fn running_reductions() {
    let mut report = Report::default();
    let mut rng = Rng(3);
    for (shape, axis) in [
        (&[7][..], 0),
        (&[1], 0),
        (&[3, 1100], 1),
        (&[300, 3], 0),
        (&[2, 70, 2], 1),
        (&[5000, 2], 1),
        (&[300, 5, 3], 1),
        (&[3, 20, 50], 1),
        (&[0, 3], 1),
        (&[3, 0], 1),
    ] {
        for d in [DType::F32, DType::I16, DType::U64, DType::F64, DType::BF16, DType::C64, DType::C128, DType::Bool] {
            running(&mut report, &mut rng, d, shape, axis);
        }
    }
    let x = Array::tame(&mut rng, DType::F32, &[2, 50]);
    let kind = Kind::Cumulative { op: ReduceOp::LogSumExp, axis: 1, reverse: false };
    report.check(&[case(kind, &[0], std::slice::from_ref(&x.ty), Near::Ulps(4.0))], std::slice::from_ref(&x));
    report.finish();
}

/// Lengths around those of a thread's elements, a warp's, a block's and a line's pieces.
#[test]
fn running_reductions_of_lines_of_every_length() {
    let mut report = Report::default();
    let mut rng = Rng(13);
    for n in [2usize, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1025, 2047, 2049, 4095, 4096, 4097, 8192, 16384] {
        running(&mut report, &mut rng, DType::F32, &[3, n], 1);
        running(&mut report, &mut rng, DType::I64, &[n, 3], 0);
        running(&mut report, &mut rng, DType::I8, &[n], 0);
    }
    for (d, shape, axis) in [
        (DType::F32, &[16385][..], 0),
        (DType::F32, &[2, 50_000], 1),
        (DType::I32, &[9000, 33], 0),
        (DType::F64, &[2, 6000, 5], 1),
        (DType::U8, &[30_000, 1, 2], 0),
        (DType::C128, &[5000], 0),
        (DType::F16, &[3, 3000, 32], 1),
        (DType::I16, &[260, 5, 40], 1),
    ] {
        running(&mut report, &mut rng, d, shape, axis);
    }
    let cut = report.programs().filter(|p| p.steps.len() > 6).count();
    assert!(cut >= 6, "{cut} programs join pieces first");
    report.finish();
}

#[test]
fn sorts() {
    let mut report = Report::default();
    let mut rng = Rng(4);
    for d in NUMBERS.into_iter().chain([DType::Bool, DType::I4, DType::U2]) {
        for (shape, axis) in [(&[40][..], 0), (&[4, 9], 1), (&[9, 4], 0), (&[0, 2], 0), (&[3, 1], 1)] {
            let x = Array::random(&mut rng, d, shape);
            let few = Array::from_fn(d, shape, |_| rng.tame(DType::Bool).convert(d));
            let index = Array::from_fn(DType::I32, shape, |at| Scalar::from_i64(DType::I32, at[axis] as i64));
            let args = [x, few, index];
            let sort = |num_keys| Kind::Sort { axis, num_keys, stable: true };
            let ty = |k: usize| args[k].ty.clone();
            let mut first = Type::new(d, shape);
            first.shape[axis] = shape[axis].min(3);
            let top = Type { dtype: DType::I32, shape: first.shape.clone() };
            let cases = [
                case(sort(1), &[0, 2], &[ty(0), ty(2)], Near::Same),
                case(sort(2), &[1, 0, 2], &[ty(1), ty(0), ty(2)], Near::Same),
                case(Kind::TopK { k: first.shape[axis], axis }, &[0], &[first, top], Near::Same),
            ];
            report.check(&cases, &args);
        }
    }
    // Lines longer than what a block sorts, and many short ones.
    for (shape, axis) in [(&[5000][..], 0), (&[2, 2500], 1), (&[3000, 2], 0), (&[1500, 3], 1)] {
        let few = Array::from_fn(DType::I16, shape, |_| Scalar::from_i64(DType::I16, rng.below(50) as i64));
        let args = [few, Array::random(&mut rng, DType::F32, shape)];
        let kind = Kind::Sort { axis, num_keys: 1, stable: true };
        report.check(&[case(kind, &[0, 1], &[args[0].ty.clone(), args[1].ty.clone()], Near::Same)], &args);
    }
    report.finish();
}

/// Thousands of updates of a few elements, in every dtype and by every operation.
#[test]
fn scatters_onto_the_same_elements() {
    let mut report = Report::default();
    let mut rng = Rng(9);
    let dims = ScatterDims {
        update_window_dims: SmallVec::from_slice(&[1]),
        inserted_window_dims: SmallVec::from_slice(&[0]),
        scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
        ..ScatterDims::default()
    };
    for d in [DType::F32, DType::I32, DType::F16, DType::U8, DType::C64] {
        let indices = Array::from_fn(DType::I32, &[1200, 1], |_| Scalar::from_i64(DType::I32, rng.below(9) as i64 - 1));
        let args = [Array::tame(&mut rng, d, &[7, 3]), indices, whole(&mut rng, d, &[1200, 3])];
        let mut cases = Vec::new();
        for op in [ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Min, ScatterOp::Max] {
            for mode in [IndexMode::Clip, IndexMode::FillOrDrop] {
                let kind = Kind::Scatter { op, dims: Box::new(dims.clone()), mode, sorted: false, unique: false };
                cases.push(case(kind, &[0, 1, 2], &[Type::new(d, &[7, 3])], Near::Same));
            }
        }
        report.check(&cases, &args);
    }
    report.finish();
}
