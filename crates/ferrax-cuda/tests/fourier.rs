//! Fourier transforms, which are products here, on the host, against the CPU engine: lengths of every kind, along one axis
//! and along several.

mod against;

use against::{Array, Case, Near, Report, Rng};
use ferrax_base::DType;
use ferrax_loops::fft::FftKind;
use ferrax_loops::{Kind, Type};

fn check(report: &mut Report, rng: &mut Rng, kind: FftKind, axes: usize, d: DType, shape: &[usize]) {
    let last = shape.len() - 1;
    let mut halved = shape.to_vec();
    halved[last] = shape[last] / 2 + 1;
    let (given, result) = match kind {
        FftKind::Forward | FftKind::Inverse => (Type::new(d, shape), Type::new(d, shape)),
        FftKind::Real => (Type::new(d.real(), shape), Type::new(d, &halved)),
        FftKind::RealInverse => (Type::new(d, &halved), Type::new(d.real(), shape)),
    };
    let x = Array::tame(rng, given.dtype, &given.shape);
    let what = format!("{kind:?} over {axes} axes of {shape:?} of {d}");
    // Errors are those of the largest element that there can be, not of small ones.
    let count: usize = shape[shape.len() - axes..].iter().product();
    let forward = matches!(kind, FftKind::Forward | FftKind::Real);
    let size = 5.0 * (count.max(1) as f64).powf(if forward { 0.5 } else { -0.5 });
    let unit = if d == DType::C64 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let kind = Kind::Fft { kind, axes };
    report.check(
        &[Case { what, kind, inputs: vec![0], results: vec![result], near: Near::Far(16.0 * unit * size) }],
        &[x],
    );
}

const KINDS: [FftKind; 4] = [FftKind::Forward, FftKind::Inverse, FftKind::Real, FftKind::RealInverse];

#[test]
fn lengths() {
    let mut report = Report::default();
    let mut rng = Rng(81);
    for d in [DType::C64, DType::C128] {
        // Whole matrices, factors, primes among the factors, a prime and a product of primes that are long.
        for n in [1, 2, 3, 8, 31, 32, 33, 48, 64, 97, 100, 210, 257, 512, 331, 662, 1009] {
            let kinds = if n > 100 { &KINDS[..2] } else { &KINDS[..] };
            kinds.iter().for_each(|&kind| check(&mut report, &mut rng, kind, 1, d, &[3, n]));
        }
        check(&mut report, &mut rng, FftKind::Real, 1, d, &[2, 512]);
        check(&mut report, &mut rng, FftKind::RealInverse, 1, d, &[2, 331]);
    }
    report.finish();
}

#[test]
fn axes() {
    let mut report = Report::default();
    let mut rng = Rng(82);
    for kind in KINDS {
        for (axes, shape) in [(1, &[0, 4][..]), (2, &[6, 7]), (2, &[3, 40, 5]), (3, &[2, 3, 4, 36]), (1, &[2, 3, 4, 9])]
        {
            check(&mut report, &mut rng, kind, axes, DType::C64, shape);
        }
    }
    report.finish();
}
