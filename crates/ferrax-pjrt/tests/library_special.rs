//! Special functions as expansions, on the CPU engine and on a plugin, against the CPU engine's own.
//!
//! Bounds are in units in the last place of the dtype. A plugin's own exponentials and logarithms come on top, and one
//! may take subnormal numbers for zero, so results below the normal numbers count as zero there.

mod against;
mod engines;

use against::common::{self, Array, Rng, ulps};
use engines::Place;
use ferrax_base::{DType, Scalar};
use ferrax_loops::{BinaryOp, Kind, Type, UnaryOp};

/// Numbers between two, of every size, and the awkward ones.
fn samples(d: DType, low: f64, high: f64, n: usize) -> Vec<f64> {
    let mut rng = Rng(11);
    let mut unit = || rng.next() as f64 / u64::MAX as f64;
    let mut x: Vec<f64> = (0..n).map(|_| low + (high - low) * unit()).collect();
    x.extend((0..n).map(|_| (10f64.powf(unit() * 36.0 - 30.0)).clamp(low, high)));
    x.extend([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-30, -1e-30, 30.0, 10.0, f64::INFINITY, f64::NAN]);
    x.push(f64::NEG_INFINITY);
    x.into_iter().map(|v| Scalar::from_f64(d, v).to_f64()).collect()
}

fn least(d: DType) -> f64 {
    if d == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE }
}

/// The distance from a power of two to the next number.
fn ulp(d: DType, at: f64) -> f64 {
    at * if d == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON }
}

/// The largest distance of results, with subnormal ones as zeros, and where it is; below
/// `floor` they are counted in units of its last place.
fn worst(d: DType, got: &Array, want: &Array, floor: f64, at: &dyn Fn(usize) -> String) -> (f64, String) {
    let flushed = |v: f64| if v.abs() < least(d) { 0.0 } else { v };
    let mut found = (0.0, String::new());
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
        let (g, w) = (flushed(g.to_f64()), flushed(w.to_f64()));
        let error = if w.abs() < floor { (g - w).abs() / ulp(d, floor) } else { ulps(d, g, w) };
        // The smallest normal number and zero are neighbours there.
        let error = if g.abs().max(w.abs()) <= 2.0 * least(d) && g.abs().min(w.abs()) == 0.0 { 0.0 } else { error };
        if error > found.0 {
            found = (error, format!("{}: {g:e}, want {w:e}", at(i)));
        }
    }
    found
}

fn unary(place: &Place, bounds: &[(UnaryOp, f64, f64, f64, f64)]) {
    for &(op, low, high, single, double) in bounds {
        for (d, bound) in [(DType::F32, single), (DType::F64, double)] {
            let x = samples(d, low, high, 3000);
            let x = Array::floats(d, &[x.len()], &x);
            let kind = Kind::Unary(op);
            let got = place.node(&kind, &[&x], std::slice::from_ref(&x.ty));
            let want = common::node(&kind, &[&x], std::slice::from_ref(&x.ty));
            // Digamma has zeros between its poles, where it is the difference of large numbers.
            let floor = if op == UnaryOp::Digamma { 1.0 } else { 0.0 };
            let at = |i: usize| format!("{op:?}({:e})", x.data[i].to_f64());
            let (error, text) = worst(d, &got[0], &want[0], floor, &at);
            assert!(error <= bound, "{d} {text}: {error} ulp");
        }
    }
}

/// (function, from, to, bound of f32, bound of f64)
const UNARY: [(UnaryOp, f64, f64, f64, f64); 7] = [
    (UnaryOp::Erf, -6.0, 6.0, 2.0, 2.0),
    (UnaryOp::Erfc, -6.0, 28.0, 1.0, 6.0),
    (UnaryOp::ErfInv, -1.0, 1.0, 3.0, 4.0),
    (UnaryOp::Lgamma, -0.5, 50.0, 1.0, 8.0),
    (UnaryOp::Digamma, 0.0, 50.0, 1.0, 16.0),
    (UnaryOp::BesselI0e, -60.0, 60.0, 1.0, 16.0),
    (UnaryOp::BesselI1e, -60.0, 60.0, 1.0, 16.0),
];

#[test]
fn expansions_of_special_functions_agree_with_the_cpu_engine() {
    unary(&Place::Expanded, &UNARY);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn special_functions_agree_with_the_cpu_engine() {
    unary(&Place::plugin(), &UNARY);
}

/// Functions of two numbers: (function, pairs, bound of f32, bound of f64).
fn binary(place: &Place) {
    let mut rng = Rng(5);
    let mut unit = || rng.next() as f64 / u64::MAX as f64;
    let edges = [0.0, 1.0, 0.5, 2.0, 1e-8, 20.0, 250.0, -1.0, -0.25, f64::NAN];
    let mut table = Vec::new();
    for (op, single, double) in [
        (BinaryOp::Igamma, 1.0, 40.0),
        (BinaryOp::Igammac, 1.0, 40.0),
        (BinaryOp::Zeta, 1.0, 16.0),
        (BinaryOp::Polygamma, 1.0, 40.0),
    ] {
        let mut pairs: Vec<(f64, f64)> = edges.iter().flat_map(|&a| edges.map(|b| (a, b))).collect();
        for _ in 0..800 {
            pairs.push(match op {
                BinaryOp::Zeta => (1.0 + 20.0 * unit(), 30.0 * unit()),
                BinaryOp::Polygamma => ((6.0 * unit()).floor(), 0.01 + 30.0 * unit()),
                _ => {
                    let a = 10f64.powf(unit() * 5.0 - 2.0);
                    (a, a * 10f64.powf(unit() - 0.6))
                }
            });
        }
        table.push((op, pairs, single, double));
    }
    for (op, pairs, single, double) in table {
        for (d, bound) in [(DType::F32, single), (DType::F64, double)] {
            let part = |f: fn(&(f64, f64)) -> f64| {
                let v: Vec<f64> = pairs.iter().map(f).collect();
                Array::floats(d, &[v.len()], &v)
            };
            let (x, y) = (part(|p| p.0), part(|p| p.1));
            let kind = Kind::Binary(op);
            let got = place.node(&kind, &[&x, &y], std::slice::from_ref(&x.ty));
            let want = common::node(&kind, &[&x, &y], std::slice::from_ref(&x.ty));
            let at = |i: usize| format!("{op:?}({:e}, {:e})", x.data[i].to_f64(), y.data[i].to_f64());
            let (error, text) = worst(d, &got[0], &want[0], 0.0, &at);
            assert!(error <= bound, "{d} {text}: {error} ulp");
        }
    }
}

#[test]
fn expansions_of_functions_of_two_numbers_agree_with_the_cpu_engine() {
    binary(&Place::Expanded);
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn functions_of_two_numbers_agree_with_the_cpu_engine() {
    binary(&Place::plugin());
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn neighbours_of_floats_are_those_of_the_cpu_engine() {
    let mut rng = Rng(8);
    let place = Place::plugin();
    for d in [DType::F32, DType::F64, DType::F16, DType::BF16] {
        let (x, y) = (Array::random(&mut rng, d, &[500]), Array::random(&mut rng, d, &[500]));
        let kind = Kind::Binary(BinaryOp::Nextafter);
        let got = place.node(&kind, &[&x, &y], &[Type::new(d, &[500])]);
        let want = common::node(&kind, &[&x, &y], &[Type::new(d, &[500])]);
        common::assert_same(&got[0], &want[0], &d);
    }
}
