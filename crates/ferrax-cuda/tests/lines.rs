//! Running reductions, sorts and scatters, of lines for which each of their ways of working is taken, on the host, against
//! the CPU engine.

mod against;

use against::{Array, Case, Near, Report, Rng, common::NUMBERS, host::Host};
use ferrax_base::{DType, Scalar};
use ferrax_loops::{Builder, IndexMode, Kind, ReduceOp, ScatterDims, ScatterOp, Type};
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
    report.finish();
}

/// Lengths around those of a network, of tiles of each size, and of lines of several tiles; keys of one byte to sixteen.
#[test]
fn sorts_of_lines_of_every_length() {
    let mut report = Report::default();
    let mut rng = Rng(14);
    let sort = |num_keys, axis| Kind::Sort { axis, num_keys, stable: true };
    let lengths = [511usize, 512, 513, 1024, 1025, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193];
    for (k, n) in lengths.into_iter().enumerate() {
        let layouts = [(&[n][..], 0, DType::F32), (&[2, n], 1, DType::I16), (&[n, 2], 0, DType::U8)];
        for (shape, axis, d) in if n < 600 { layouts.to_vec() } else { vec![layouts[k % 3]] } {
            let few = Array::from_fn(DType::I16, shape, |_| Scalar::from_i64(DType::I16, rng.below(50) as i64 - 25));
            let args = [few, Array::random(&mut rng, d, shape)];
            let cases = [
                case(sort(1, axis), &[0, 1], &[args[0].ty.clone(), args[1].ty.clone()], Near::Same),
                case(sort(2, axis), &[1, 0], &[args[1].ty.clone(), args[0].ty.clone()], Near::Same),
            ];
            report.check(if n % 2 == 0 { &cases } else { &cases[..1] }, &args);
        }
    }
    for d in [DType::Bool, DType::I8, DType::I32, DType::I64, DType::U64, DType::F16, DType::F64, DType::C64] {
        for (shape, axis) in [(&[600][..], 0), (&[10_000], 0), (&[100, 33], 1), (&[70, 9], 0), (&[2, 9000, 2], 1)] {
            if shape.len() > 2 && !matches!(d, DType::I32 | DType::F64) {
                continue;
            }
            let index = Array::from_fn(DType::I32, shape, |at| Scalar::from_i64(DType::I32, at[axis] as i64));
            let args = [Array::random(&mut rng, d, shape), index];
            let types = [args[0].ty.clone(), args[1].ty.clone()];
            let mut first = shape.to_vec();
            first[axis] = 5;
            let top = [Type::new(d, &first), Type::new(DType::I32, &first)];
            let cases = [
                case(sort(1, axis), &[0, 1], &types, Near::Same),
                case(Kind::TopK { k: 5, axis }, &[0], &top, Near::Same),
            ];
            report.check(&cases, &args);
        }
    }
    // So many tiles that the running sums of their counts are cut into pieces.
    let long = [600_000];
    let args = [DType::U8, DType::U32].map(|d| Array::random(&mut rng, d, &long));
    report.check(&[case(sort(1, 0), &[0, 1], &[args[0].ty.clone(), args[1].ty.clone()], Near::Same)], &args);
    // All equal, and in order already.
    for step in [0, 1, -1] {
        let word = |at: &[usize]| Scalar::from_i64(DType::I32, at[0] as i64 * step);
        let args = [Array::from_fn(DType::I32, &[9000], word), Array::random(&mut rng, DType::F32, &[9000])];
        let types = [args[0].ty.clone(), args[1].ty.clone()];
        report.check(&[case(sort(1, 0), &[0, 1], &types, Near::Same)], &args);
    }
    report.finish();
}

/// What is sorted by, and not asked for, is not brought into its order.
#[test]
fn results_of_a_sort_that_nothing_reads_are_not_made() {
    let ty = Type::new(DType::F32, &[10_000]);
    let mut b = Builder::new([ty.clone()]);
    let x = b.params().next().unwrap();
    let y = b.push(Kind::Sort { axis: 0, num_keys: 1, stable: true }, &[x], ty);
    let text = ferrax_cuda::print::source(&b.finish(&[y])).expect("a source");
    let last = text.rfind("__global__").expect("a kernel");
    assert!(text[last..].contains("float* __restrict__ o0, unsigned* __restrict__ o1)"), "{}", &text[last..]);
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
    for d in [DType::F32, DType::I32, DType::U64, DType::F16, DType::U8, DType::C64, DType::Bool] {
        let indices = Array::from_fn(DType::I32, &[1200, 1], |_| Scalar::from_i64(DType::I32, rng.below(9) as i64 - 1));
        let args = [Array::tame(&mut rng, d, &[7, 3]), indices, whole(&mut rng, d, &[1200, 3])];
        let mut cases = Vec::new();
        for op in [ScatterOp::Set, ScatterOp::Add, ScatterOp::Sub, ScatterOp::Mul, ScatterOp::Min, ScatterOp::Max] {
            if (op == ScatterOp::Mul && d.is_inexact()) || (op == ScatterOp::Sub && d.is_bool()) {
                continue;
            }
            for mode in [IndexMode::Clip, IndexMode::FillOrDrop] {
                let kind = Kind::Scatter { op, dims: Box::new(dims.clone()), mode, sorted: false, unique: false };
                cases.push(case(kind, &[0, 1, 2], &[Type::new(d, &[7, 3])], Near::Same));
            }
        }
        report.check(&cases, &args);
    }
    report.finish();
}

/// Updates of numbers around those of a tile, each of one element, of arrays of several digits.
#[test]
fn scatters_of_single_elements() {
    let mut report = Report::default();
    let mut rng = Rng(15);
    let dims = ScatterDims {
        inserted_window_dims: SmallVec::from_slice(&[0]),
        scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
        ..ScatterDims::default()
    };
    for (size, n) in
        [(1usize, 3usize), (255, 1), (256, 600), (300, 9000), (70_000, 20_000), (65_535, 8192), (3, 5000), (9, 400)]
    {
        for d in [DType::F32, DType::I64, DType::BF16] {
            // Some lie outside, on both sides.
            let place = |rng: &mut Rng| rng.below(size + 3) as i64 - 1;
            let indices = Array::from_fn(DType::I64, &[n, 1], |_| Scalar::from_i64(DType::I64, place(&mut rng)));
            let args = [Array::tame(&mut rng, d, &[size]), indices, Array::tame(&mut rng, d, &[n])];
            let mut cases = Vec::new();
            for (op, mode) in [
                (ScatterOp::Set, IndexMode::FillOrDrop),
                (ScatterOp::Add, IndexMode::FillOrDrop),
                (ScatterOp::Add, IndexMode::Clip),
                (ScatterOp::Max, IndexMode::FillOrDrop),
            ] {
                // Sums of narrow floats are rounded once here, and after each update there.
                if d == DType::BF16 && op == ScatterOp::Add {
                    continue;
                }
                let kind = Kind::Scatter { op, dims: Box::new(dims.clone()), mode, sorted: false, unique: false };
                cases.push(case(kind, &[0, 1, 2], &[Type::new(d, &[size])], Near::Same));
            }
            report.check(&cases, &args);
        }
    }
    report.finish();
}

/// As many updates of an element as a thread reads by itself, one more, and as many as a warp reads, twice.
#[test]
fn scatters_of_many_updates_of_an_element() {
    let mut report = Report::default();
    let mut rng = Rng(16);
    let dims = ScatterDims {
        inserted_window_dims: SmallVec::from_slice(&[0]),
        scatter_dims_to_operand_dims: SmallVec::from_slice(&[0]),
        ..ScatterDims::default()
    };
    let counts = [31usize, 32, 33, 1, 63, 64, 65, 96, 97, 2, 500];
    let places: Vec<usize> = counts.iter().enumerate().flat_map(|(k, &count)| vec![k; count]).collect();
    let n = places.len();
    for d in [DType::F32, DType::F64, DType::C64, DType::C128, DType::I16] {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, rng.below(i + 1)));
        let place = |at: &[usize]| Scalar::from_i64(DType::I32, places[order[at[0]]] as i64);
        let indices = Array::from_fn(DType::I32, &[n, 1], place);
        let args = [Array::tame(&mut rng, d, &[counts.len()]), indices, Array::tame(&mut rng, d, &[n])];
        let kind = Kind::Scatter {
            op: ScatterOp::Add,
            dims: Box::new(dims.clone()),
            mode: IndexMode::FillOrDrop,
            sorted: false,
            unique: false,
        };
        report.check(&[case(kind, &[0, 1, 2], &[Type::new(d, &[counts.len()])], Near::Same)], &args);
    }
    report.finish();
}

/// Windows that meet as wholes, before and behind the other axes and around them; windows that overlap; lines of their own.
#[test]
fn scatters_of_windows() {
    let mut report = Report::default();
    let mut rng = Rng(17);
    let list = SmallVec::from_slice;
    type Axes<'a> = &'a [usize];
    let layouts: [(Axes<'_>, Axes<'_>, Axes<'_>, [Axes<'_>; 5]); 5] = [
        (&[7, 40], &[300, 1], &[300, 40], [&[1], &[0], &[0], &[], &[]]),
        (&[3, 7], &[300, 1], &[3, 300], [&[0], &[1], &[1], &[], &[]]),
        (&[3, 7, 5], &[20, 10, 1], &[20, 3, 10, 5], [&[1, 3], &[1], &[1], &[], &[]]),
        (&[7, 9], &[200, 2], &[200, 4], [&[1], &[0], &[0, 1], &[], &[]]),
        (&[4, 7, 2], &[4, 100, 1], &[4, 100, 2], [&[2], &[1], &[1], &[0], &[0]]),
    ];
    for (whole, at, updates, [window, inserted, to, batch, index_batch]) in layouts {
        let dims = ScatterDims {
            update_window_dims: list(window),
            inserted_window_dims: list(inserted),
            scatter_dims_to_operand_dims: list(to),
            operand_batching_dims: SmallVec::from_slice(batch),
            scatter_indices_batching_dims: SmallVec::from_slice(index_batch),
        };
        for d in [DType::F32, DType::C64, DType::I32, DType::I8] {
            let indices = Array::from_fn(DType::I32, at, |_| Scalar::from_i64(DType::I32, rng.below(9) as i64 - 1));
            let args = [Array::tame(&mut rng, d, whole), indices, Array::tame(&mut rng, d, updates)];
            let mut cases = Vec::new();
            for (op, mode) in [
                (ScatterOp::Add, IndexMode::FillOrDrop),
                (ScatterOp::Sub, IndexMode::Clip),
                (ScatterOp::Set, IndexMode::FillOrDrop),
            ] {
                let kind = Kind::Scatter { op, dims: Box::new(dims.clone()), mode, sorted: false, unique: false };
                cases.push(case(kind, &[0, 1, 2], &[Type::new(d, whole)], Near::Same));
            }
            report.check(&cases, &args);
        }
    }
    report.finish();
}

/// Rounded sums and products have the same bits whatever the order of blocks and threads.
#[test]
fn rounded_results_do_not_depend_on_the_order_of_threads() {
    let mut rng = Rng(18);
    let (mut programs, mut args) = (Vec::new(), Vec::new());
    for (d, shape, axis) in [
        (DType::F32, &[20_000][..], 0),
        (DType::F64, &[3, 9000, 3], 1),
        (DType::C64, &[5000, 2], 0),
        (DType::F32, &[40, 300], 1),
    ] {
        let ty = Type::new(d, shape);
        let mut b = Builder::new([ty.clone()]);
        let x = b.params().next().unwrap();
        let kind = |op| Kind::Cumulative { op, axis, reverse: false };
        let results = [ReduceOp::Sum, ReduceOp::Prod].map(|op| b.push(kind(op), &[x], ty.clone()));
        programs.push(ferrax_cuda::plan::plan(&b.finish(&results), &[]).expect("a program"));
        args.push(Array::tame(&mut rng, d, shape));
    }
    let host = Host::build(programs);
    for (k, x) in args.iter().enumerate() {
        let bytes = |seed: u64| host.run(k, &[x], seed).iter().map(|a| a.buffer().bytes().to_vec()).collect::<Vec<_>>();
        let first = bytes(1);
        assert!((2..6).all(|seed| bytes(seed << 60 | seed) == first), "{:?}", x.ty);
    }
}
