//! Reductions, running reductions and windows, against folds one element at a time.

mod common;

use common::{Array, NUMBERS, Rng, assert_same, cases, node, same, unravel};
use ferrax_base::{Arg, DType, Scalar, Shape};
use ferrax_cpu::Program;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{Builder, Kind, ReduceOp, Type, WindowDims};
use proptest::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

/// One step of a reduction, in f64 or wrapping integers.
fn join(op: ReduceOp, a: Scalar, b: Scalar) -> Scalar {
    let d = a.dtype;
    if d.is_integer() || d.is_bool() {
        let (x, y) = (a.bits as i128, b.bits as i128);
        let (u, v) = if d.is_signed() { (a.to_i64() as i128, b.to_i64() as i128) } else { (x, y) };
        return match op {
            ReduceOp::Sum => Scalar::from_i64(d, (u + v) as i64),
            ReduceOp::Prod => Scalar::from_i64(d, u.wrapping_mul(v) as i64),
            ReduceOp::Max => {
                if u < v {
                    b
                } else {
                    a
                }
            }
            ReduceOp::Min => {
                if v < u {
                    b
                } else {
                    a
                }
            }
            ReduceOp::And => Scalar { dtype: d, bits: a.bits & b.bits },
            ReduceOp::Or => Scalar { dtype: d, bits: a.bits | b.bits },
            _ => Scalar { dtype: d, bits: a.bits ^ b.bits },
        };
    }
    let (x, y, i, j) = (a.to_f64(), b.to_f64(), a.imag(), b.imag());
    match op {
        ReduceOp::Sum => Scalar::from_complex(d, x + y, i + j),
        ReduceOp::Prod if d.is_complex() => Scalar::from_complex(d, x * y - i * j, x * j + i * y),
        ReduceOp::Prod => Scalar::from_f64(d, x * y),
        ReduceOp::LogSumExp => {
            let m = x.max(y);
            Scalar::from_f64(d, if m.is_infinite() { m } else { m + ((x - m).exp() + (y - m).exp()).ln() })
        }
        _ => {
            let less = |x: f64, y: f64, i: f64, j: f64| x < y || (x == y && i < j);
            let larger = if less(x, y, i, j) { b } else { a };
            let smaller = if less(x, y, i, j) { a } else { b };
            match (x.is_nan(), y.is_nan()) {
                (true, _) => a,
                (_, true) => b,
                _ if op == ReduceOp::Max => larger,
                _ => smaller,
            }
        }
    }
}

const INTEGER_OPS: [ReduceOp; 7] =
    [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];
const FLOAT_OPS: [ReduceOp; 4] = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min];

fn op_for(rng: &mut Rng, d: DType) -> ReduceOp {
    if d.is_integer() { INTEGER_OPS[rng.below(7)] } else { FLOAT_OPS[rng.below(4)] }
}

/// Sums and products of floats depend on the order: compare loosely there, exactly elsewhere.
fn check(got: &Array, want: &Array, op: ReduceOp, what: &dyn std::fmt::Debug) {
    let d = got.ty.dtype;
    if !d.is_inexact() || matches!(op, ReduceOp::Max | ReduceOp::Min) {
        let zero = |s: Scalar| d.is_float() && s.to_f64() == 0.0;
        assert_eq!(got.ty, want.ty);
        for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate() {
            assert!(same(*g, *w) || (zero(*g) && zero(*w)), "{what:?} at {i}: {g} and {w}");
        }
        return;
    }
    let tolerance = match d {
        DType::BF16 => 0.05,
        DType::F16 => 0.01,
        DType::F32 | DType::C64 => 1e-4,
        _ => 1e-12,
    };
    // Which part of a complex product that overflowed is infinite and which NaN depends on the order as well.
    let lost = |s: &Scalar| d.is_complex() && !(s.to_f64().is_finite() && s.imag().is_finite());
    for (i, (g, w)) in got.data.iter().zip(&want.data).enumerate().filter(|(_, (g, w))| !(lost(g) && lost(w))) {
        let scale = 1.0 + w.to_f64().abs().max(w.imag().abs());
        let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * scale;
        assert!(close(g.to_f64(), w.to_f64()) && close(g.imag(), w.imag()), "{what:?} at {i}: {g} and {w}");
    }
}

fn operand(rng: &mut Rng, d: DType, shape: &[usize], op: ReduceOp) -> Array {
    let awkward = d.is_integer() || (d.is_float() && matches!(op, ReduceOp::Max | ReduceOp::Min));
    if awkward { Array::random(rng, d, shape) } else { Array::tame(rng, d, shape) }
}

fn reference(x: &Array, op: ReduceOp, axes: &[usize]) -> Array {
    let d = x.ty.dtype;
    // Narrow formats are reduced in f32 and rounded once.
    let wide = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
    let kept: Vec<usize> = (0..x.ty.shape.len()).filter(|a| !axes.contains(a)).collect();
    let out: Vec<usize> = kept.iter().map(|&a| x.ty.shape[a]).collect();
    let mut acc = vec![op.identity(wide); out.iter().product()];
    for (i, &v) in x.data.iter().enumerate() {
        let index = unravel(i, &x.ty.shape);
        let at: Vec<usize> = kept.iter().map(|&a| index[a]).collect();
        let slot = &mut acc[common::ravel(&at, &out)];
        *slot = join(op, *slot, v.convert(wide));
    }
    Array::new(d, &out, acc.into_iter().map(|s| s.convert(d)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn over_any_axes(seed: u64, rank in 0usize..6) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let (op, shape, axes) = (op_for(rng, d), rng.shape(rank, 5), rng.axes(rank));
        let x = operand(rng, d, &shape, op);
        let want = reference(&x, op, &axes);
        let kind = Kind::Reduce { op, axes: axes.clone().into() };
        let got = node(&kind, &[&x], std::slice::from_ref(&want.ty));
        check(&got[0], &want, op, &(kind, &x.ty));
    }

    #[test]
    fn over_long_axes(seed: u64, a in 1usize..1500, b in 1usize..10) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::F64, DType::I32, DType::BF16][rng.below(4)];
        let op = [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min][rng.below(3)];
        let shape = if rng.below(2) == 0 { [a, b] } else { [b, a] };
        let x = operand(rng, d, &shape, op);
        for axes in [vec![0], vec![1], vec![0, 1]] {
            let want = reference(&x, op, &axes);
            let kind = Kind::Reduce { op, axes: axes.into() };
            let got = node(&kind, &[&x], std::slice::from_ref(&want.ty));
            check(&got[0], &want, op, &(kind, &x.ty));
        }
    }

    /// Rows of bfloat16 are reduced in float32 without being written as such.
    #[test]
    fn rows_of_halves(seed: u64, a in 1usize..20, b in 100usize..9000) {
        let rng = &mut Rng(seed);
        let op = FLOAT_OPS[rng.below(4)];
        let x = operand(rng, DType::BF16, &[a, b], op);
        let of = |read: bool| {
            let mut g = Builder::new([x.ty.clone()]);
            let wide = g.convert(ferrax_loops::ValueId(0), DType::F32);
            let (narrow, single) = (g.reduce(op, ferrax_loops::ValueId(0), &[1]), g.reduce(op, wide, &[1]));
            let outputs = [narrow, single, wide];
            Arc::new(g.finish(&outputs[..if read { 3 } else { 2 }]))
        };
        let mut results = Vec::new();
        for graph in [of(false), of(true)] {
            for program in [Program::compile(graph.clone()).unwrap(), Program::compile_plain(graph.clone()).unwrap()] {
                let out = program.run(&mut [Arg::Host(&x.buffer())]).unwrap();
                results.push((out[0].bytes()[..2 * a].to_vec(), out[1].bytes()[..4 * a].to_vec()));
            }
        }
        assert!(results.iter().all(|r| *r == results[0]), "{op:?} of {a} rows of {b}");
    }

    /// Many rows, which are transposed, have the bits of each alone.
    #[test]
    fn short_rows_together(seed: u64, rows in 1usize..300, n in 1usize..140) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let op = op_for(rng, d);
        let x = operand(rng, d, &[rows, n], op);
        let index = [DType::I8, DType::I32, DType::I64][rng.below(3)];
        let max = rng.below(2) == 0;
        let kinds = [(Kind::Reduce { op, axes: [1].into_iter().collect() }, d), (Kind::ArgReduce { max, axis: 1 }, index)];
        for (kind, d) in kinds {
            let of = |x: &Array, rows: usize| {
                node(&kind, &[x], &[Type::new(d, &[rows])]).swap_remove(0).data
            };
            let alone = x.data.chunks(n).flat_map(|row| of(&Array::new(x.ty.dtype, &[1, n], row.to_vec()), 1)).collect();
            assert_same(&Array::new(d, &[rows], of(&x, rows)), &Array::new(d, &[rows], alone), &(&kind, &x.ty));
        }
    }

    #[test]
    fn argmax_and_argmin(seed: u64, rank in 1usize..4) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(12)];
        let most = [5, [5, 150, 300][rng.below(3)], 5][rank - 1];
        let shape: Vec<usize> = rng.shape(rank, most).iter().map(|n| n + 1).collect();
        let (axis, max) = (rng.below(rank), rng.below(2) == 0);
        let x = Array::random(rng, d, &shape);
        let mut out = shape.clone();
        out.remove(axis);
        let index = [DType::I32, DType::I64][rng.below(2)];
        let want = Array::from_fn(index, &out, |i| {
            let value = |r: usize| {
                let mut at = i.to_vec();
                at.insert(axis, r);
                x.at(&at)
            };
            let key = |s: Scalar| if d.is_float() { s.to_f64() } else { 0.0 };
            let better = |a: Scalar, b: Scalar| {
                if d.is_float() {
                    if key(b).is_nan() { return false; }
                    return key(a).is_nan() || (if max { key(a) > key(b) } else { key(a) < key(b) });
                }
                let (a, b) = if d.is_signed() { (a.to_i64() as i128, b.to_i64() as i128) } else { (a.bits as i128, b.bits as i128) };
                if max { a > b } else { a < b }
            };
            let best = (1..shape[axis]).fold(0, |m, r| if better(value(r), value(m)) { r } else { m });
            Scalar::from_i64(index, best as i64)
        });
        let got = node(&Kind::ArgReduce { max, axis }, &[&x], std::slice::from_ref(&want.ty));
        assert_same(&got[0], &want, &(max, axis, &x));
    }

    #[test]
    fn cumulative(seed: u64, rank in 1usize..4) {
        let rng = &mut Rng(seed);
        let d = NUMBERS[rng.below(NUMBERS.len())];
        let mut op = op_for(rng, d);
        if matches!(d, DType::F32 | DType::F64 | DType::F16) && rng.below(4) == 0 {
            op = ReduceOp::LogSumExp;
        }
        let (shape, axis, reverse) = (rng.shape(rank, 6), rng.below(rank), rng.below(2) == 0);
        let x = operand(rng, d, &shape, op);
        let mut want = x.clone();
        for i in 0..x.data.len() {
            let mut at = unravel(i, &shape);
            // Walk the axis in the order of accumulation.
            let r = at[axis];
            let steps: Vec<usize> = if reverse { (r..shape[axis]).rev().collect() } else { (0..=r).collect() };
            let wide = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
            let mut acc: Option<Scalar> = None;
            for k in steps {
                at[axis] = k;
                let v = x.at(&at).convert(wide);
                acc = Some(acc.map_or(v, |a| join(op, a, v)));
            }
            want.data[i] = acc.unwrap().convert(d);
        }
        let kind = Kind::Cumulative { op, axis, reverse };
        let got = node(&kind, &[&x], std::slice::from_ref(&x.ty));
        check(&got[0], &want, op, &(kind, &x));
    }

    #[test]
    fn windows(seed: u64, rank in 1usize..4) {
        let rng = &mut Rng(seed);
        let d = [DType::F32, DType::I32, DType::BF16, DType::F64][rng.below(4)];
        let op = FLOAT_OPS[rng.below(4)];
        let shape = rng.shape(rank, 6);
        let x = Array::tame(rng, d, &shape);
        let init = if rng.below(3) == 0 { rng.tame(d) } else { op.identity(d) };
        let (mut window, mut strides, mut base, mut dilation) = (Shape::new(), Shape::new(), Shape::new(), Shape::new());
        let mut padding: SmallVec<[(i64, i64); 4]> = SmallVec::new();
        let mut out = vec![];
        for &n in &shape {
            window.push(1 + rng.below(3));
            strides.push(1 + rng.below(2));
            base.push(1 + rng.below(2));
            dilation.push(1 + rng.below(2));
            padding.push((rng.below(3) as i64, rng.below(3) as i64));
            let a = window.len() - 1;
            let spread = if n == 0 { 0 } else { (n - 1) * base[a] + 1 } as i64 + padding[a].0 + padding[a].1;
            let reach = ((window[a] - 1) * dilation[a] + 1) as i64;
            out.push(if spread < reach { 0 } else { (spread - reach) as usize / strides[a] + 1 });
        }
        let wide = if d == DType::BF16 { DType::F32 } else { d };
        let want = Array::from_fn(d, &out, |i| {
            let mut acc = init.convert(wide);
            for k in 0..window.iter().product() {
                let k = unravel(k, &window);
                let mut from = Some(vec![]);
                for a in 0..rank {
                    let place = (i[a] * strides[a] + k[a] * dilation[a]) as i64 - padding[a].0;
                    let b = base[a] as i64;
                    if place < 0 || place % b != 0 || place / b >= shape[a] as i64 {
                        from = None;
                        break;
                    }
                    from.as_mut().unwrap().push((place / b) as usize);
                }
                acc = join(op, acc, from.map_or(init, |f| x.at(&f)).convert(wide));
            }
            acc.convert(d)
        });
        let window = WindowDims { window, strides, padding, base_dilation: base, window_dilation: dilation };
        let kind = Kind::ReduceWindow { op, window: Box::new(window) };
        let got = node(&kind, &[&x, &Array::new(d, &[], vec![init])], std::slice::from_ref(&want.ty));
        check(&got[0], &want, op, &(kind, &x));
    }
}

#[test]
fn long_sums_stay_accurate() {
    let n = 1 << 22;
    let x = ferrax_base::Buffer::from_slice(&vec![0.1f32; n]).unwrap();
    for (shape, axes) in [([n, 1], vec![0]), ([n / 4, 4], vec![0])] {
        let ty = Type::new(DType::F32, &shape);
        let out = Type::new(DType::F32, &[shape[1]]);
        let kind = Kind::Reduce { op: ReduceOp::Sum, axes: axes.into() };
        let got = ferrax_cpu::eager::run_node(&kind, &[(&ty, &x)], &[out]).unwrap();
        let want = shape[0] as f64 * f64::from(0.1f32);
        let error = (f64::from(got[0].typed::<f32>()[0]) / want - 1.0).abs();
        assert!(error < 1e-6, "{error}");
    }
    let ty = Type::new(DType::F32, &[n]);
    let kind = Kind::Cumulative { op: ReduceOp::Sum, axis: 0, reverse: false };
    let got = ferrax_cpu::eager::run_node(&kind, &[(&ty, &x)], std::slice::from_ref(&ty)).unwrap();
    let want = n as f64 * f64::from(0.1f32);
    assert!((f64::from(got[0].typed::<f32>()[n - 1]) / want - 1.0).abs() < 1e-7);
}

#[test]
fn generic_reductions_run_their_body() {
    // (value, index) pairs: the largest value and where it is.
    let (f, i) = (Type::new(DType::F32, &[]), Type::new(DType::I32, &[]));
    let mut b = Builder::new([f.clone(), i.clone(), f.clone(), i.clone()]);
    let p: Vec<_> = b.params().collect();
    let keep = b.compare(CompareOp::Ge, p[0], p[2]);
    let v = b.select(keep, p[2], p[0]);
    let k = b.select(keep, p[3], p[1]);
    let body = Arc::new(b.finish(&[v, k]));
    let x = Array::floats(DType::F32, &[2, 3], &[1.0, 5.0, 5.0, 7.0, -1.0, 2.0]);
    let at = Array::integers(DType::I32, &[2, 3], &[0, 1, 2, 0, 1, 2]);
    let (v0, i0) = (Array::floats(DType::F32, &[], &[-1e30]), Array::integers(DType::I32, &[], &[-1]));
    let kind = Kind::ReduceWith { body, axes: SmallVec::from_slice(&[1]) };
    let got = node(&kind, &[&x, &at, &v0, &i0], &[Type::new(DType::F32, &[2]), Type::new(DType::I32, &[2])]);
    assert_same(&got[0], &Array::floats(DType::F32, &[2], &[5.0, 7.0]), &"values");
    assert_same(&got[1], &Array::integers(DType::I32, &[2], &[1, 0]), &"indices");
}
