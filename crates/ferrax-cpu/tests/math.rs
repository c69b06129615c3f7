//! Transcendental and special functions: errors in units in the last place against double precision, edge
//! values, and identities.

mod common;

use common::{Rng, ulps};
use ferrax_base::{Buffer, DType};
use ferrax_cpu::eager;
use ferrax_loops::{BinaryOp, UnaryOp};

const F32: DType = DType::F32;

fn f32s(op: UnaryOp, x: &[f32]) -> Vec<f32> {
    eager::unary(op, F32, &Buffer::from_slice(x).unwrap(), x.len()).unwrap().typed().to_vec()
}

fn f64s(op: UnaryOp, x: &[f64]) -> Vec<f64> {
    eager::unary(op, DType::F64, &Buffer::from_slice(x).unwrap(), x.len()).unwrap().typed().to_vec()
}

fn pairs(op: BinaryOp, x: &[f64], y: &[f64]) -> Vec<f64> {
    let (a, b) = (Buffer::from_slice(x).unwrap(), Buffer::from_slice(y).unwrap());
    eager::binary(op, DType::F64, (&a, false), (&b, false), x.len()).unwrap().typed().to_vec()
}

/// Floats of every magnitude, and many near the origin.
fn samples() -> Vec<f32> {
    let mut rng = Rng(3);
    let mut x: Vec<f32> = (0..40_000).map(|_| f32::from_bits(rng.next() as u32)).collect();
    for scale in [1.0, 10.0, 90.0, 1000.0] {
        x.extend((0..20_000).map(|_| (rng.next() as f64 / u64::MAX as f64 * 2.0 - 1.0) as f32 * scale));
    }
    x.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-45, -1e-45]);
    x.extend([f32::MAX, f32::MIN, 88.72, 88.73, -87.3, -103.9, -104.1, 127.9, 128.0, -149.0, -151.0]);
    x
}

#[test]
fn single_precision_functions_are_within_their_bounds() {
    let x = samples();
    let table: [(UnaryOp, f64, fn(f64) -> f64); 21] = [
        (UnaryOp::Exp, 1.0, f64::exp),
        (UnaryOp::Exp2, 1.1, f64::exp2),
        (UnaryOp::Expm1, 1.6, f64::exp_m1),
        (UnaryOp::Log, 1.3, f64::ln),
        (UnaryOp::Log1p, 2.6, f64::ln_1p),
        (UnaryOp::Sin, 1.5, f64::sin),
        (UnaryOp::Cos, 1.5, f64::cos),
        (UnaryOp::Tan, 1.0, f64::tan),
        (UnaryOp::Tanh, 2.5, f64::tanh),
        (UnaryOp::Sinh, 1.6, f64::sinh),
        (UnaryOp::Cosh, 1.6, f64::cosh),
        (UnaryOp::Asin, 1.0, f64::asin),
        (UnaryOp::Acos, 1.0, f64::acos),
        (UnaryOp::Atan, 1.0, f64::atan),
        (UnaryOp::Asinh, 1.0, libm::asinh),
        (UnaryOp::Atanh, 1.0, libm::atanh),
        (UnaryOp::Erf, 1.2, libm::erf),
        (UnaryOp::Erfc, 1.0, libm::erfc),
        (UnaryOp::Cbrt, 1.0, f64::cbrt),
        (UnaryOp::Sqrt, 0.5, f64::sqrt),
        (UnaryOp::Rsqrt, 1.5, |v| 1.0 / v.sqrt()),
    ];
    for (op, bound, f) in table {
        for (x, y) in x.iter().zip(f32s(op, &x)) {
            let want = f(f64::from(*x));
            let error = ulps(F32, f64::from(y), want);
            assert!(error <= bound, "{op:?}({x:e}) = {y:e}, want {want:e}: {error} ulp");
        }
    }
}

#[test]
fn double_precision_functions_are_within_their_bounds() {
    let mut rng = Rng(5);
    let mut x: Vec<f64> = (0..20_000).map(|_| f64::from_bits(rng.next())).collect();
    for scale in [0.02, 1.0, 30.0, 745.0, 1e6] {
        x.extend((0..20_000).map(|_| (rng.next() as f64 / u64::MAX as f64 * 2.0 - 1.0) * scale));
    }
    // Where sine and cosine cancel most.
    x.extend((0..50_000).map(|k| f64::from(k) * std::f64::consts::FRAC_PI_2));
    x.extend([0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, f64::MAX]);
    x.extend([707.9, 708.0, 708.1, 709.7, 709.79, -708.1, -744.9, -745.2, -746.1, 19.0, 19.2, 1e6, 1e22]);
    // The C library's own errors come on top, 2 ulp for its tanh; docs/numerics.md has better figures.
    let table: [(UnaryOp, f64, fn(f64) -> f64); 5] = [
        (UnaryOp::Exp, 1.2, f64::exp),
        (UnaryOp::Tanh, 4.0, f64::tanh),
        (UnaryOp::Sin, 1.8, f64::sin),
        (UnaryOp::Cos, 1.8, f64::cos),
        (UnaryOp::Log, 1.5, f64::ln),
    ];
    for (op, bound, f) in table {
        for (x, y) in x.iter().zip(f64s(op, &x)) {
            let error = ulps(DType::F64, y, f(*x));
            assert!(error <= bound, "{op:?}({x:e}) = {y:e}, want {:e}: {error} ulp", f(*x));
        }
    }
}

#[test]
fn signed_zeros_pass_through_odd_functions() {
    use UnaryOp::*;
    for op in [Expm1, Log1p, Sin, Tan, Tanh, Sinh, Asin, Atan, Asinh, Atanh, Erf, ErfInv, Cbrt, Sqrt, Sign, Floor] {
        let y = f32s(op, &[0.0, -0.0]);
        assert!(y[0] == 0.0 && y[0].is_sign_positive() && y[1] == 0.0 && y[1].is_sign_negative(), "{op:?} {y:?}");
        let y = f64s(op, &[0.0, -0.0]);
        assert!(y[0] == 0.0 && y[0].is_sign_positive() && y[1] == 0.0 && y[1].is_sign_negative(), "{op:?} {y:?}");
    }
}

#[test]
fn tanh_and_erf_never_exceed_one() {
    let x: Vec<f32> = (0..200_000).map(|i| i as f32 * 1e-4).collect();
    for op in [UnaryOp::Tanh, UnaryOp::Erf, UnaryOp::Logistic] {
        assert!(f32s(op, &x).iter().all(|y| *y <= 1.0), "{op:?}");
    }
}

#[test]
fn erf_inv_inverts_erf() {
    let x: Vec<f64> = (-999..1000).map(|i| f64::from(i) / 1000.0).collect();
    for (x, y) in x.iter().zip(f64s(UnaryOp::ErfInv, &x)) {
        assert!((libm::erf(y) - x).abs() < 4e-16, "{x}");
    }
    let single: Vec<f32> = x.iter().map(|&v| v as f32).collect();
    for (x, y) in single.iter().zip(f32s(UnaryOp::ErfInv, &single)) {
        assert!((libm::erf(f64::from(y)) - f64::from(*x)).abs() < 3e-7, "{x}");
    }
    assert_eq!(f32s(UnaryOp::ErfInv, &[1.0, -1.0]), [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(f32s(UnaryOp::ErfInv, &[1.5])[0].is_nan());
}

/// (function, argument, value) from tables of the functions.
#[test]
fn special_functions_have_their_known_values() {
    let close = |got: f64, want: f64| assert!((got - want).abs() <= 1e-13 * want.abs().max(1.0), "{got} {want}");
    close(f64s(UnaryOp::Lgamma, &[0.5])[0], 0.572_364_942_924_700_1);
    close(f64s(UnaryOp::Lgamma, &[10.0])[0], 12.801_827_480_081_47);
    close(f64s(UnaryOp::Digamma, &[1.0])[0], -0.577_215_664_901_532_9);
    close(f64s(UnaryOp::Digamma, &[-0.5])[0], 0.036_489_973_978_576_52);
    close(f64s(UnaryOp::BesselI0e, &[1.0])[0], 0.465_759_607_593_640_4);
    close(f64s(UnaryOp::BesselI0e, &[50.0])[0], 0.056_561_626_647_454_184);
    close(f64s(UnaryOp::BesselI1e, &[1.0])[0], 0.207_910_415_349_708_45);
    close(f64s(UnaryOp::BesselI1e, &[-50.0])[0], -0.055_993_123_892_895_395);
    close(pairs(BinaryOp::Igamma, &[2.0], &[3.0])[0], 0.800_851_726_528_544_2);
    close(pairs(BinaryOp::Igammac, &[2.0], &[3.0])[0], 0.199_148_273_471_455_77);
    close(pairs(BinaryOp::Igamma, &[500.0], &[480.0])[0], 0.186_281_973_190_324_58);
    close(pairs(BinaryOp::Zeta, &[2.0], &[1.0])[0], std::f64::consts::PI.powi(2) / 6.0);
    close(pairs(BinaryOp::Zeta, &[3.0], &[0.5])[0], 8.414_398_322_117_16);
    close(pairs(BinaryOp::Polygamma, &[1.0], &[2.0])[0], std::f64::consts::PI.powi(2) / 6.0 - 1.0);
    close(pairs(BinaryOp::Polygamma, &[0.0], &[1.0])[0], -0.577_215_664_901_532_9);
    assert!(f64s(UnaryOp::Lgamma, &[-2.0])[0].is_infinite());
    assert!(f64s(UnaryOp::Digamma, &[-2.0])[0].is_nan());
    assert!(pairs(BinaryOp::Igamma, &[-1.0], &[1.0])[0].is_nan());
}

/// Where naive formulas lose digits: far tails, parameters that are tiny or too large for a series, a zero.
#[test]
fn special_functions_keep_their_digits() {
    let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() <= 1e-14, "{got:e} {want:e}");
    let tiny = [2f64.powi(-20), 2f64.powi(-10)];
    close(pairs(BinaryOp::Igammac, &tiny[..1], &tiny[1..])[0], 6.060_804_356_893_068e-6);
    close(pairs(BinaryOp::Igamma, &[472.0], &[67.0])[0], 1.061_992_070_311_287_3e-226);
    close(pairs(BinaryOp::Igammac, &[257.0], &[1243.0])[0], 3.335_900_118_002_563_7e-255);
    close(pairs(BinaryOp::Igamma, &[5000.0], &[4900.0])[0], 0.077_944_956_226_513_91);
    for a in [1e9f64, 1e14] {
        // Q(a, a) and P(a, a) in powers of 1/√a (DLMF 8.11.12)
        let gap = 1.0 / (3.0 * (2.0 * std::f64::consts::PI * a).sqrt());
        close(pairs(BinaryOp::Igamma, &[a], &[a])[0], 0.5 + gap);
        close(pairs(BinaryOp::Igammac, &[a], &[a])[0], 0.5 - gap);
    }
    close(f64s(UnaryOp::Digamma, &[1.437_5])[0], -0.023_613_544_005_297_9);
    close(f64s(UnaryOp::Digamma, &[1.461_685_301_226_490_3])[0], 5.143_658_463_491_932e-5);
}

#[test]
fn complex_functions_satisfy_their_identities() {
    let mut rng = Rng(11);
    let mut part = || rng.next() as f64 / u64::MAX as f64 * 4.0 - 2.0;
    let z: Vec<[f64; 2]> = (0..500).map(|_| [part(), part()]).collect();
    let x = Buffer::from_slice(&z).unwrap();
    let apply = |op, b: &Buffer| eager::unary(op, DType::C128, b, z.len()).unwrap();
    use UnaryOp::*;
    for (inverse, function) in
        [(Log, Exp), (Asin, Sin), (Acos, Cos), (Atan, Tan), (Asinh, Sinh), (Acosh, Cosh), (Atanh, Tanh), (Log1p, Expm1)]
    {
        let back = apply(function, &apply(inverse, &x));
        for (z, w) in z.iter().zip(back.typed::<[f64; 2]>()) {
            let error = (z[0] - w[0]).hypot(z[1] - w[1]) / (1.0 + z[0].hypot(z[1]));
            assert!(error < 1e-13, "{function:?}({inverse:?}({z:?})) = {w:?}");
        }
    }
    let root = apply(Sqrt, &x);
    let square = eager::binary(BinaryOp::Mul, DType::C128, (&root, false), (&root, false), z.len()).unwrap();
    for ((z, w), r) in z.iter().zip(square.typed::<[f64; 2]>()).zip(root.typed::<[f64; 2]>()) {
        assert!((z[0] - w[0]).hypot(z[1] - w[1]) < 1e-14 && r[0] >= 0.0, "{z:?}");
    }
}

/// Values on both sides of the cuts, as C99 and NumPy have them.
#[test]
fn branch_cuts_follow_the_sign_of_zero() {
    let at = |op, re: f32, im: f32| {
        let b = Buffer::from_slice(&[re, im]).unwrap();
        let y = eager::unary(op, DType::C64, &b, 1).unwrap();
        (y.typed::<f32>()[0], y.typed::<f32>()[1])
    };
    use UnaryOp::*;
    let pi = std::f32::consts::PI;
    assert_eq!(at(Log, -1.0, 0.0), (0.0, pi));
    assert_eq!(at(Log, -1.0, -0.0), (0.0, -pi));
    assert_eq!(at(Sqrt, -4.0, 0.0), (0.0, 2.0));
    assert_eq!(at(Sqrt, -4.0, -0.0), (0.0, -2.0));
    let acosh2 = 2f64.acosh() as f32;
    assert_eq!(at(Asin, 2.0, 0.0), (pi / 2.0, acosh2));
    assert_eq!(at(Asin, 2.0, -0.0), (pi / 2.0, -acosh2));
    assert_eq!(at(Acosh, -2.0, 0.0), (acosh2, pi));
    assert_eq!(at(Acosh, -2.0, -0.0), (acosh2, -pi));
    assert_eq!(at(Atanh, 2.0, 0.0).1, pi / 2.0);
    assert_eq!(at(Atanh, 2.0, -0.0).1, -pi / 2.0);
}

#[test]
fn powers_have_their_edge_cases() {
    let got = pairs(
        BinaryOp::Pow,
        &[0.0, 0.0, -8.0, 2.0, f64::NAN, 1.0, -2.0, f64::INFINITY],
        &[0.0, -1.0, 1.0 / 3.0, 0.5, 0.0, f64::NAN, 3.0, -1.0],
    );
    assert_eq!(got[..2], [1.0, f64::INFINITY]);
    assert!(got[2].is_nan());
    assert_eq!(got[3..], [std::f64::consts::SQRT_2, 1.0, 1.0, -8.0, 0.0]);
}
