//! Reductions over a few elements that are made of something spread, and loops that were mapped twice: on the machine against
//! node by node, and after the passes that know them.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Scalar, Shape};
use ferrax_cpu::Program;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::passes::{any, few};
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, ReduceOp, SliceDims, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

/// Runs a graph on the machine, and what a pass makes of it node by node, against the graph node by node.
fn check(rng: &mut Rng, graph: Graph, pass: fn(Arc<Graph>) -> Arc<Graph>) {
    let graph = Arc::new(graph);
    let args: Vec<Buffer> =
        graph.param_types().iter().map(|t| Array::random(rng, t.dtype, &t.shape).buffer()).collect();
    let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
    let plain = run(Program::compile_plain(graph.clone()).unwrap());
    let passed = pass(graph.clone());
    assert_eq!(passed.verify(), Ok(()));
    for program in [Program::compile(graph.clone()), Program::compile_plain(passed)] {
        for (k, (a, b)) in run(program.unwrap()).iter().zip(&plain).enumerate() {
            let ty = graph.ty(graph.outputs[k]);
            common::assert_same(&Array::of(ty, a), &Array::of(ty, b), &format_args!("result {k} of\n{graph}"));
        }
    }
}

/// Distances of a kind between points of `d` coordinates.
fn between(rng: &mut Rng, n: usize, d: usize, dtype: DType) -> Graph {
    let points = Type::new(dtype, &[n, d]);
    let all = [n, n, d];
    let mut b = Builder::new([points.clone(), points, Type::new(dtype, &[n]), Type::new(dtype, &all)]);
    let own: Vec<ValueId> = b.params().collect();
    let lying = b.reshape(own[0], &[1, n, d]);
    let mut values = vec![
        b.broadcast(own[0], &all, &[0, 2]),
        b.broadcast(own[1], &all, &[1, 2]),
        b.broadcast(own[2], &all, &[rng.below(2)]),
        b.broadcast(lying, &all, &[0, 1, 2]),
        own[3],
        b.scalar(Scalar::from_f64(dtype, 0.5)),
    ];
    for _ in 0..=rng.below(6) {
        let (x, y) = (values[rng.below(values.len())], values[rng.below(values.len())]);
        values.push(match rng.below(5) {
            0 if dtype.is_float() => b.unary([UnaryOp::Exp, UnaryOp::Neg, UnaryOp::Abs][rng.below(3)], x),
            _ => b.binary([BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max][rng.below(4)], x, y),
        });
    }
    let mut outputs = vec![];
    for _ in 0..=rng.below(2) {
        let whole: Vec<ValueId> = values.iter().copied().filter(|&v| b.ty(v).shape.len() == 3).collect();
        let x = whole[whole.len() - 1 - rng.below(2)];
        if rng.below(3) == 0 {
            let at = rng.below(d);
            let (start, limit) = (Shape::from_slice(&[0, 0, at]), Shape::from_slice(&[n, n, at + 1]));
            let dims = SliceDims { start, limit, stride: Shape::from_slice(&[1, 1, 1]) };
            outputs.push(b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(dtype, &[n, n, 1])));
        }
        let op = [ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min][rng.below(5)];
        let sum = b.reduce(op, x, &[2]);
        outputs.push(sum);
        if rng.below(3) == 0 {
            let spread = b.broadcast(sum, &all, &[0, 1]);
            let force = b.binary(BinaryOp::Mul, spread, x);
            outputs.push(b.reduce(ReduceOp::Sum, force, &[1]));
        }
    }
    b.finish(&outputs)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn distances(seed: u64, n in 1usize..40, d in 1usize..6, kind in 0usize..3) {
        let mut rng = Rng(seed);
        let graph = between(&mut rng, n, d, [DType::F32, DType::F64, DType::I32][kind]);
        check(&mut rng, graph, few);
    }

    #[test]
    fn mapped_twice(seed: u64, n in 1usize..40, m in 1usize..40, by_or: bool) {
        let mut rng = Rng(seed);
        let graph = mapped(n, m, by_or);
        check(&mut rng, graph, any);
    }
}

#[test]
fn few_squares_are_summed_as_arrays() {
    let summed = |d: usize, spread: bool, whole: bool| {
        let mut b = Builder::new([Type::new(DType::F32, &[50, d]), Type::new(DType::F32, &[50, 50, d])]);
        let x = b.broadcast(ValueId(0), &[50, 50, d], &[0, 2]);
        let x = if spread {
            b.binary(BinaryOp::Sub, x, ValueId(1))
        } else {
            b.binary(BinaryOp::Mul, ValueId(1), ValueId(1))
        };
        let sum = b.reduce(ReduceOp::Sum, x, &[2]);
        let g = few(Arc::new(b.finish(&[sum, if whole { x } else { sum }])));
        !matches!(g.maker(g.outputs[0]).unwrap().kind, Kind::Reduce { .. })
    };
    assert!(summed(3, true, false));
    assert!(!summed(5, true, false), "too many");
    assert!(!summed(3, false, false), "nothing is spread");
    assert!(!summed(3, true, true), "needed whole");
}

/// Any of the flags along the axes, as mapped loops ask for it.
fn any_along(b: &mut Builder, flags: ValueId, axes: &[usize], by_or: bool) -> ValueId {
    if by_or {
        return b.reduce(ReduceOp::Or, flags, axes);
    }
    let numbers = b.convert(flags, DType::I32);
    let sum = b.reduce(ReduceOp::Sum, numbers, axes);
    let zero = b.scalar(Scalar::from_i64(DType::I32, 0));
    b.compare(CompareOp::Ne, sum, zero)
}

/// Numbers that are halved until they are small, each as often as it takes: a loop that was mapped over columns, then rows.
fn mapped(n: usize, m: usize, by_or: bool) -> Graph {
    let (x, count) = (Type::new(DType::F32, &[n, m]), Type::new(DType::I32, &[n, m]));
    let goes = |b: &mut Builder| {
        let (bound, most) = (b.float(DType::F32, 0.5), b.scalar(Scalar::from_i64(DType::I32, 9)));
        let size = b.unary(UnaryOp::Abs, ValueId(0));
        let large = b.compare(CompareOp::Gt, size, bound);
        let early = b.compare(CompareOp::Lt, ValueId(1), most);
        b.binary(BinaryOp::And, large, early)
    };
    let mut cond = Builder::new([x.clone(), count.clone()]);
    let flags = goes(&mut cond);
    let rows = any_along(&mut cond, flags, &[1], by_or);
    let all = any_along(&mut cond, rows, &[0], by_or);
    let cond = Arc::new(cond.finish(&[all]));
    let mut body = Builder::new([x.clone(), count.clone()]);
    let flags = goes(&mut body);
    let rows = any_along(&mut body, flags, &[1], by_or);
    let rows = body.broadcast(rows, &[n, m], &[0]);
    let (half, one) = (body.float(DType::F32, 0.5), body.scalar(Scalar::from_i64(DType::I32, 1)));
    let less = body.binary(BinaryOp::Mul, ValueId(0), half);
    let more = body.binary(BinaryOp::Add, ValueId(1), one);
    let mut outputs = vec![];
    for (k, next) in [(0, less), (1, more)] {
        let inner = body.select(flags, ValueId(k), next);
        outputs.push(body.select(rows, ValueId(k), inner));
    }
    let body = Arc::new(body.finish(&outputs));
    let mut b = Builder::new([x.clone(), count.clone()]);
    let kind = Kind::While { cond, body, cond_consts: 0, body_consts: 0 };
    let zero = b.scalar(Scalar::from_i64(DType::I32, 0));
    let first = b.binary(BinaryOp::Max, ValueId(1), zero);
    let outs = b.push_many(kind, &[ValueId(0), first], &[x, count]);
    b.finish(&outs)
}

#[test]
fn a_loop_that_was_mapped_twice_asks_every_element() {
    for by_or in [true, false] {
        let g = any(Arc::new(mapped(20, 30, by_or)));
        let found = g.nodes.iter().find_map(|node| match &node.kind {
            Kind::While { cond, body, .. } => {
                let all = &cond.maker(cond.outputs[0]).unwrap().kind;
                let choices = body.outputs.iter().filter(|&&v| {
                    let choice = body.maker(v).unwrap();
                    matches!(choice.kind, Kind::Select)
                        && body.ty(choice.inputs[0]).shape.len() == 2
                        && matches!(body.maker(choice.inputs[0]).unwrap().kind, Kind::Binary(BinaryOp::And))
                });
                Some((matches!(all, Kind::Reduce { op: ReduceOp::Or, axes } if axes.len() == 2), choices.count()))
            }
            _ => None,
        });
        assert_eq!(found, Some((true, 2)), "{by_or}");
    }
}
