//! Scans, windows, convolutions, sorts, transforms and random bits on a plugin, and as expansions on the CPU engine,
//! against the CPU engine's own kernels.

mod against;
mod engines;
#[path = "../../ferrax-cpu/tests/compare/windows.rs"]
mod windows;

use against::common::{self, Array, NUMBERS, Rng, assert_same};
use engines::Place;
use ferrax_base::{Aval, Buffer, DType, Result, Scalar};
use ferrax_loops::fft::FftKind;
use ferrax_loops::{Builder, ConvDims, HostCall, HostRef, Kind, ReduceOp, Type};
use ferrax_pjrt::stablehlo::{Target, module};
use std::sync::Arc;
use windows::windows;

fn both(place: &Place, kind: &Kind, operands: &[&Array], results: &[Type]) -> (Vec<Array>, Vec<Array>) {
    (place.node(kind, operands, results), common::node(kind, operands, results))
}

/// Elements that differ by at most a part of their size, or of the number given; infinities and NaN are the same.
#[track_caller]
fn assert_near(got: &Array, want: &Array, relative: f64, scale: f64, what: &dyn std::fmt::Debug) {
    assert_eq!(got.ty, want.ty);
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
        for (g, w) in [(g.to_f64(), w.to_f64()), (g.imag(), w.imag())] {
            let near = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= relative * w.abs().max(scale);
            assert!(near, "{what:?} at {i}: got {g:e}, want {w:e} ({})", got.ty);
        }
    }
}

fn epsilon(d: DType) -> f64 {
    match d {
        DType::F16 => 1.0 / 1024.0,
        DType::BF16 => 1.0 / 128.0,
        DType::F32 | DType::C64 => f64::from(f32::EPSILON),
        DType::F64 | DType::C128 => f64::EPSILON,
        _ => 0.0,
    }
}

fn scans(place: &Place) {
    let mut rng = Rng(1);
    let shapes: [(&[usize], usize); 5] = [(&[7], 0), (&[3, 33], 1), (&[5, 2, 4], 0), (&[1], 0), (&[0, 3], 1)];
    for (i, d) in NUMBERS.into_iter().enumerate() {
        for (j, op) in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min].into_iter().enumerate() {
            let (shape, axis) = shapes[(i + j) % shapes.len()];
            let reverse = (i + 2 * j) % 3 == 0;
            // NaN in complex numbers compares with nothing: what wins depends on the order of comparisons.
            let x = if matches!(op, ReduceOp::Max | ReduceOp::Min) && !d.is_complex() {
                Array::random(&mut rng, d, shape)
            } else {
                Array::tame(&mut rng, d, shape)
            };
            let kind = Kind::Cumulative { op, axis, reverse };
            let (got, want) = both(place, &kind, &[&x], std::slice::from_ref(&x.ty));
            let n = shape[axis] as f64;
            assert_near(&got[0], &want[0], 4.0 * n * epsilon(d), if d.is_complex() { 1e5 } else { 5.0 }, &(&kind, d));
        }
    }
}

fn log_sums(place: &Place) {
    let mut rng = Rng(2);
    for d in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for reverse in [false, true] {
            let mut x = Array::tame(&mut rng, d, &[3, 40]);
            let awkward = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN];
            x.data[0] = Scalar::from_f64(d, f64::NEG_INFINITY);
            x.data[1] = x.data[0];
            x.data[60] = Scalar::from_f64(d, awkward[rng.below(3)]);
            let kind = Kind::Cumulative { op: ReduceOp::LogSumExp, axis: 1, reverse };
            let (got, want) = both(place, &kind, &[&x], std::slice::from_ref(&x.ty));
            assert_near(&got[0], &want[0], 4.0 * epsilon(d), 1.0, &(&kind, d));
        }
    }
}

fn sorts(place: &Place) {
    let mut rng = Rng(3);
    for d in NUMBERS.into_iter().chain([DType::Bool]) {
        for (shape, axis) in [(&[40][..], 0), (&[4, 9], 1), (&[9, 4], 0), (&[0, 2], 0)] {
            let x = Array::random(&mut rng, d, shape);
            let index =
                Array::from_fn(DType::I32, shape, |at| Scalar::from_i64(DType::I32, common::ravel(at, shape) as i64));
            let sort = |num_keys| Kind::Sort { axis, num_keys, stable: true };
            if !d.is_integer() {
                let (got, want) = both(place, &sort(1), &[&x, &index], &[x.ty.clone(), index.ty.clone()]);
                assert_same(&got[0], &want[0], &(d, shape));
                assert_same(&got[1], &want[1], &(d, shape));
                // The narrow key leaves ties to the second.
                let few = Array::from_fn(DType::BF16, shape, |_| rng.tame(DType::Bool).convert(DType::BF16));
                let types = [few.ty.clone(), x.ty.clone(), index.ty.clone()];
                let (got, want) = both(place, &sort(2), &[&few, &x, &index], &types);
                got.iter().zip(&want).for_each(|(g, w)| assert_same(g, w, &(d, shape)));
            }
            let mut first = Type::new(d, shape);
            first.shape[axis] = shape[axis].min(3);
            let second = Type { dtype: DType::I32, shape: first.shape.clone() };
            let kind = Kind::TopK { k: first.shape[axis], axis };
            let (got, want) = both(place, &kind, &[&x], &[first, second]);
            got.iter().zip(&want).for_each(|(g, w)| assert_same(g, w, &(&kind, d, shape)));
        }
    }
}

fn random_bits(place: &Place) {
    let mut rng = Rng(4);
    let word = |rng: &mut Rng| Scalar::from_i64(DType::U32, rng.next() as i64);
    for keys in [&[][..], &[50]] {
        let k: [Array; 2] = std::array::from_fn(|_| Array::from_fn(DType::U32, keys, |_| word(&mut rng)));
        let x: [Array; 2] = std::array::from_fn(|_| Array::from_fn(DType::U32, &[50], |_| word(&mut rng)));
        let results = [x[0].ty.clone(), x[1].ty.clone()];
        let (got, want) = both(place, &Kind::Threefry2x32, &[&k[0], &k[1], &x[0], &x[1]], &results);
        got.iter().zip(&want).for_each(|(g, w)| assert_same(g, w, &keys));
    }
}

#[test]
fn expansions_of_scans_sorts_and_random_bits_agree_with_the_cpu_engine() {
    scans(&Place::Expanded);
    log_sums(&Place::Expanded);
    sorts(&Place::Expanded);
    random_bits(&Place::Expanded);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn scans_agree_with_the_cpu_engine() {
    scans(&Place::plugin());
    log_sums(&Place::plugin());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn sorts_agree_with_the_cpu_engine() {
    let place = Place::plugin();
    sorts(&place);
    let mut rng = Rng(9);
    for d in NUMBERS.into_iter().filter(|d| d.is_integer()).chain([DType::Bool, DType::I4, DType::U4]) {
        for num_keys in [1, 2] {
            let (x, y) = (Array::random(&mut rng, d, &[6, 20]), Array::random(&mut rng, d, &[6, 20]));
            let kind = Kind::Sort { axis: 1, num_keys, stable: true };
            let (got, want) = both(&place, &kind, &[&x, &y], &[x.ty.clone(), y.ty.clone()]);
            got.iter().zip(&want).for_each(|(g, w)| assert_same(g, w, &(num_keys, d)));
        }
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn random_bits_are_those_of_the_cpu_engine() {
    random_bits(&Place::plugin());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn windows_agree_with_the_cpu_engine() {
    let mut rng = Rng(6);
    let place = Place::plugin();
    let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];
    for (i, d) in NUMBERS.into_iter().chain([DType::Bool]).enumerate() {
        for (j, op) in ops.into_iter().chain([ReduceOp::And, ReduceOp::Or, ReduceOp::Xor]).enumerate() {
            if matches!(op, ReduceOp::And | ReduceOp::Or | ReduceOp::Xor) && !(d.is_integer() || d.is_bool()) {
                continue;
            }
            let shape = [&[7][..], &[5, 6], &[3, 4, 5], &[0, 4]][(i + j) % 4];
            let (dims, out) = windows(&mut rng, shape);
            let x = Array::tame(&mut rng, d, shape);
            let kind = Kind::ReduceWindow { op, window: Box::new(dims) };
            let result = [Type::new(d, &out)];
            let identity = Array::new(d, &[], vec![op.identity(d)]);
            let other = Array::tame(&mut rng, d, &[]);
            let near = |got: &[Array], want: &[Array]| {
                assert_near(&got[0], &want[0], 64.0 * epsilon(d), if d.is_complex() { 1e4 } else { 10.0 }, &(&kind, d));
            };
            let (got, want) = both(&place, &kind, &[&x, &other], &result);
            near(&got, &want);
            near(
                &place.with_constants(&kind, &[&x, &identity], &[1], &result),
                &common::node(&kind, &[&x, &identity], &result),
            );
        }
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn convolutions_agree_with_the_cpu_engine() {
    convolutions(&Place::plugin());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn convolutions_as_gpus_are_given_them_agree_with_the_cpu_engine() {
    convolutions(&Place::printed_for("cuda"));
}

fn convolutions(place: &Place) {
    let mut rng = Rng(7);
    // The CPU engine's lowerings widen narrow floats first.
    for d in NUMBERS.into_iter().filter(|d| !matches!(d, DType::F16 | DType::BF16)) {
        for (space, cells, strides, dilation, groups) in [
            (&[7][..], &[3][..], &[2][..], &[2][..], 1),
            (&[5, 6], &[2, 3], &[1, 2], &[2, 1], 2),
            (&[3, 4, 4], &[1, 2, 2], &[1, 1, 1], &[1, 2, 1], 1),
            (&[6], &[4], &[1], &[1], 4),
            (&[], &[], &[], &[], 2),
        ] {
            let out: Vec<usize> =
                (0..space.len()).map(|i| (space[i] - (cells[i] - 1) * dilation[i] - 1) / strides[i] + 1).collect();
            let x = Array::tame(&mut rng, d, &[&[2], space, &[4]].concat());
            let kernel = Array::tame(&mut rng, d, &[cells, &[4 / groups, 8]].concat());
            let dims = ConvDims { strides: strides.into(), rhs_dilation: dilation.into(), groups, tf32: false };
            let kind = Kind::Conv(Box::new(dims));
            let (got, want) = both(place, &kind, &[&x, &kernel], &[Type::new(d, &[&[2], &out[..], &[8]].concat())]);
            assert_near(&got[0], &want[0], 4.0 * epsilon(d), 200.0, &(&kind, d));
        }
    }
}

#[test]
fn gpus_are_given_convolutions_of_floats_alone() {
    for (d, elements, platform, whole) in [
        (DType::I32, "xi32>", "cuda", 0),
        (DType::C64, "complex", "cuda", 0),
        (DType::F32, "xf32>", "cuda", 1),
        (DType::I32, "xi32>", "cpu", 1),
        (DType::C64, "complex", "", 1),
    ] {
        let mut b = Builder::new([Type::new(d, &[2, 5, 3]), Type::new(d, &[2, 3, 4])]);
        let inputs: Vec<_> = b.params().collect();
        let dims =
            ConvDims { strides: [1].as_slice().into(), rhs_dilation: [1].as_slice().into(), groups: 1, tf32: false };
        let y = b.push(Kind::Conv(Box::new(dims)), &inputs, Type::new(d, &[2, 4, 4]));
        let target = Target { platform: platform.into(), version: [1, 0, 0] };
        let text = module(&b.finish(&[y]), &[], &target).unwrap();
        let of_them = |line: &&str| line.contains("stablehlo.convolution") && line.contains(elements);
        assert_eq!(text.lines().filter(of_them).count(), whole, "{d} on {platform}: {text}");
    }
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn transforms_agree_with_the_cpu_engine() {
    let mut rng = Rng(10);
    let place = Place::plugin();
    for real in [DType::F32, DType::F64] {
        for (shape, axes) in [
            (&[12][..], 1),
            (&[2, 7], 1),
            (&[3, 4, 5], 3),
            (&[2, 3, 2, 3, 4], 5),
            (&[0, 4], 1),
            (&[1], 1),
            (&[2, 3, 5, 4], 4),
        ] {
            let complex = real.to_complex();
            let mut half = shape.to_vec();
            *half.last_mut().unwrap() = shape[shape.len() - 1] / 2 + 1;
            for (kind, from, to) in [
                (FftKind::Forward, Type::new(complex, shape), Type::new(complex, shape)),
                (FftKind::Inverse, Type::new(complex, shape), Type::new(complex, shape)),
                (FftKind::Real, Type::new(real, shape), Type::new(complex, &half)),
                (FftKind::RealInverse, Type::new(complex, &half), Type::new(real, shape)),
            ] {
                let x = Array::tame(&mut rng, from.dtype, &from.shape);
                let (got, want) = both(&place, &Kind::Fft { kind, axes }, &[&x], &[to]);
                assert_near(&got[0], &want[0], 8.0 * epsilon(real), 100.0, &(kind, shape, axes));
            }
        }
    }
}

#[test]
fn callbacks_are_refused_by_name() {
    struct Call;
    impl HostCall for Call {
        fn call(&self, _: &[(&Aval, &Buffer)], _: &[Aval]) -> Result<Vec<Buffer>> {
            Ok(Vec::new())
        }
        fn name(&self) -> String {
            "say_hello".into()
        }
    }
    let mut b = Builder::new([]);
    b.push_many(Kind::Host(HostRef(Arc::new(Call))), &[], &[]);
    let target = Target { platform: "cuda".into(), version: [1, 0, 0] };
    let error = module(&b.finish(&[]), &[], &target).unwrap_err().to_string();
    assert!(error.contains("say_hello") && error.contains("cut at its calls"), "{error}");
}
