//! Loops and branches against the CPU engine.

use crate::against::{Array, Near, Report, Rng, compare};
use ferrax_base::{DType, Scalar};
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, Type};
use std::sync::Arc;

pub const F: DType = DType::F32;
pub const I: DType = DType::I32;

pub fn int(v: i64) -> Array {
    Array::new(I, &[], vec![Scalar::from_i64(I, v)])
}

/// (limit, i, x) → i < limit.
fn below() -> Graph {
    let mut b = Builder::new([Type::new(I, &[]), Type::new(I, &[]), Type::new(F, &[3])]);
    let p: Vec<_> = b.params().collect();
    let go = b.compare(CompareOp::Lt, p[1], p[0]);
    b.finish(&[go])
}

/// (by, i, x) → (i + 1, x + by i).
fn further() -> Graph {
    let mut b = Builder::new([Type::new(F, &[]), Type::new(I, &[]), Type::new(F, &[3])]);
    let p: Vec<_> = b.params().collect();
    let one = b.scalar(Scalar::one(I));
    let next = b.binary(BinaryOp::Add, p[1], one);
    let i = b.convert(p[1], F);
    let step = b.binary(BinaryOp::Mul, p[0], i);
    let x = b.binary(BinaryOp::Add, p[2], step);
    b.finish(&[next, x])
}

pub fn whiles() {
    let mut report = Report::default();
    for limit in [0, 1, 7] {
        let args = [int(limit), Array::floats(F, &[], &[0.5]), int(0), Array::floats(F, &[3], &[1.0, -2.0, 0.25])];
        let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
        let p: Vec<_> = b.params().collect();
        let kind = Kind::While { cond: Arc::new(below()), body: Arc::new(further()), cond_consts: 1, body_consts: 1 };
        let results = b.push_many(kind, &p, &[args[2].ty.clone(), args[3].ty.clone()]);
        let graph = b.finish(&results);
        compare(&mut report, &format!("while to {limit}"), graph, &args.iter().collect::<Vec<_>>(), Near::Same);
    }
    report.finish();
}

/// (c, s, x) → (s + x, c s - x, s) with x a row.
fn scanned(d: DType) -> Graph {
    let row = Type::new(d, &[2]);
    let mut b = Builder::new([Type::new(d, &[]), row.clone(), row.clone()]);
    let p: Vec<_> = b.params().collect();
    let sum = b.binary(BinaryOp::Add, p[1], p[2]);
    let product = b.push(Kind::Binary(BinaryOp::Mul), &[p[0], p[1]], row);
    let y = b.binary(BinaryOp::Sub, product, p[2]);
    b.finish(&[sum, y, p[1]])
}

pub fn scans() {
    let mut report = Report::default();
    let mut rng = Rng(31);
    for d in [F, DType::F64, I, DType::BF16, DType::C64] {
        for length in [0usize, 1, 2, 9] {
            for reverse in [false, true] {
                let args = [
                    Array::tame(&mut rng, d, &[]),
                    Array::tame(&mut rng, d, &[2]),
                    Array::tame(&mut rng, d, &[length, 2]),
                ];
                let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
                let p: Vec<_> = b.params().collect();
                let kind = Kind::Scan { body: Arc::new(scanned(d)), length, reverse, consts: 1, carry: 1 };
                let stacked = Type::new(d, &[length, 2]);
                let results = b.push_many(kind, &p, &[args[1].ty.clone(), stacked.clone(), stacked]);
                let graph = b.finish(&results);
                let what = format!("scan of {length} {d}, reverse {reverse}");
                compare(&mut report, &what, graph, &args.iter().collect::<Vec<_>>(), Near::Zeros);
            }
        }
    }
    report.finish();
}

pub fn scans_of_nothing_and_without_state() {
    let mut report = Report::default();
    let mut rng = Rng(32);
    // A body that only maps, over rows without elements too.
    for n in [2usize, 0] {
        let row = Type::new(F, &[n]);
        let mut inner = Builder::new([row.clone()]);
        let x = inner.params().next().unwrap();
        let y = inner.binary(BinaryOp::Add, x, x);
        let inner = Arc::new(inner.finish(&[y]));
        let xs = Array::tame(&mut rng, F, &[5, n]);
        let mut b = Builder::new([xs.ty.clone()]);
        let p = b.params().next().unwrap();
        let kind = Kind::Scan { body: inner, length: 5, reverse: false, consts: 0, carry: 0 };
        let y = b.push(kind, &[p], xs.ty.clone());
        compare(&mut report, &format!("a map of rows of {n}"), b.finish(&[y]), &[&xs], Near::Same);
    }
    report.finish();
}

pub fn scaled(by: f64) -> Arc<Graph> {
    let mut b = Builder::new([Type::new(F, &[2]), Type::new(I, &[])]);
    let p: Vec<_> = b.params().collect();
    let c = b.float(F, by);
    let x = b.binary(BinaryOp::Mul, p[0], c);
    b.finish(&[x, p[1]]).into()
}

pub fn switches() {
    let mut report = Report::default();
    for branches in [1, 2, 3] {
        for index in [-7, 0, 1, 2, 3, 100] {
            let args = [int(index), Array::floats(F, &[2], &[1.5, f64::NAN]), int(9)];
            let mut b = Builder::new(args.iter().map(|a| a.ty.clone()));
            let p: Vec<_> = b.params().collect();
            let kind = Kind::Switch((0..branches).map(|k| scaled(f64::from(k + 2))).collect());
            let results = b.push_many(kind, &p, &[args[1].ty.clone(), args[2].ty.clone()]);
            let graph = b.finish(&results);
            let what = format!("branch {index} of {branches}");
            compare(&mut report, &what, graph, &args.iter().collect::<Vec<_>>(), Near::Same);
        }
    }
    report.finish();
}
