//! Random scans that draw numbers and compute with their slices and the steps' numbers, on the machine against node by
//! node; and which of it leaves the loop.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Scalar, Shape};
use ferrax_cpu::Program;
use ferrax_loops::passes::{ahead, idle};
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, ReduceOp, SliceDims, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

fn word(b: &mut Builder, words: ValueId, k: usize) -> ValueId {
    let dims = SliceDims {
        start: Shape::from_slice(&[k]),
        limit: Shape::from_slice(&[k + 1]),
        stride: Shape::from_slice(&[1]),
    };
    let part = b.push(Kind::Slice(Box::new(dims)), &[words], Type::new(DType::U32, &[1]));
    b.reshape(part, &[])
}

/// Words drawn under a key of two words, at counters that are numbers of the program or grow with `more`.
fn drawn(rng: &mut Rng, b: &mut Builder, key: ValueId, more: ValueId, n: usize) -> [ValueId; 2] {
    let ty = Type::new(DType::U32, &[n]);
    let (k0, k1) = (word(b, key, 0), word(b, key, 1));
    let counts = b.iota(DType::U32, &[n], 0);
    let high = match rng.below(3) {
        0 => b.scalar(Scalar::from_i64(DType::U32, 7)),
        1 => more,
        _ => b.broadcast(more, &[n], &[]),
    };
    let outs = b.push_many(Kind::Threefry2x32, &[k0, k1, high, counts], &[ty.clone(), ty]);
    [outs[0], outs[1]]
}

/// Words as numbers from 0 to 1.
fn numbers(b: &mut Builder, words: ValueId) -> ValueId {
    let (nine, one) = (b.scalar(Scalar::from_i64(DType::U32, 9)), b.scalar(Scalar::from_i64(DType::U32, 0x3f80_0000)));
    let bits = b.binary(BinaryOp::ShiftRightLogical, words, nine);
    let bits = b.binary(BinaryOp::Or, bits, one);
    let ty = Type::new(DType::F32, &b.ty(bits).shape.clone());
    let x = b.push(Kind::Bitcast, &[bits], ty);
    let one = b.float(DType::F32, 1.0);
    b.binary(BinaryOp::Sub, x, one)
}

/// (key, array; state, counter, counter; keys, arrays) → (state, counters; stacked).
fn step(rng: &mut Rng, n: usize) -> Graph {
    let (array, count) = (Type::new(DType::F32, &[n]), Type::new(DType::I32, &[]));
    let key = Type::new(DType::U32, &[2]);
    let mut b = Builder::new([key.clone(), array.clone(), array.clone(), count.clone(), count, key, array]);
    let own: Vec<ValueId> = b.params().collect();
    let number = b.convert(own[3 + rng.below(2)], DType::U32);
    let key = own[[0, 5][rng.below(2)]];
    let mut values = vec![own[1], own[2], own[6]];
    let [x, y] = drawn(rng, &mut b, key, number, n);
    if rng.below(2) == 0 {
        // A key that was drawn.
        let (x, y) = (word(&mut b, x, 0), word(&mut b, y, 0));
        let (x, y) = (b.reshape(x, &[1]), b.reshape(y, &[1]));
        let key = b.push(Kind::Concat(0), &[x, y], Type::new(DType::U32, &[2]));
        let [z, _] = drawn(rng, &mut b, key, number, n);
        values.push(numbers(&mut b, z));
    }
    values.push(numbers(&mut b, x));
    values.push(numbers(&mut b, y));
    for _ in 0..rng.below(12) {
        let (x, y) = (values[rng.below(values.len())], values[rng.below(values.len())]);
        values.push(match rng.below(7) {
            0 => b.unary([UnaryOp::Sin, UnaryOp::Exp, UnaryOp::ErfInv, UnaryOp::Log1p][rng.below(4)], x),
            1 => {
                let one = word_of(&mut b, x, rng.below(n));
                b.binary(BinaryOp::Mul, one, y)
            }
            2 => {
                let one = word_of(&mut b, x, rng.below(n));
                let one = b.unary(UnaryOp::Sqrt, one);
                b.broadcast(one, &[n], &[])
            }
            3 => {
                let sum = b.reduce(ReduceOp::Sum, x, &[0]);
                b.binary(BinaryOp::Add, sum, y)
            }
            _ => b.binary([BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max][rng.below(4)], x, y),
        });
    }
    let mut counts = vec![];
    for k in 0..2 {
        let by = b.scalar(Scalar::from_i64(DType::I32, rng.below(5) as i64 - 2));
        counts.push(b.binary(BinaryOp::Add, own[3 + k], by));
    }
    let (last, seen) = (values[values.len() - 1], values[rng.below(values.len())]);
    let state = b.binary(BinaryOp::Add, last, values[1]);
    b.finish(&[if rng.below(6) == 0 { own[2] } else { state }, counts[0], counts[1], seen])
}

fn word_of(b: &mut Builder, x: ValueId, k: usize) -> ValueId {
    let dims = SliceDims {
        start: Shape::from_slice(&[k]),
        limit: Shape::from_slice(&[k + 1]),
        stride: Shape::from_slice(&[1]),
    };
    let part = b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(DType::F32, &[1]));
    b.reshape(part, &[])
}

fn looped(rng: &mut Rng, n: usize, length: usize) -> Graph {
    let (array, count) = (Type::new(DType::F32, &[n]), Type::new(DType::I32, &[]));
    let body = Arc::new(step(rng, n));
    let stacked = Type::new(DType::F32, &[length, n]);
    let keys = Type::new(DType::U32, &[length, 2]);
    let mut b = Builder::new([
        Type::new(DType::U32, &[2]),
        array.clone(),
        array.clone(),
        count.clone(),
        count.clone(),
        keys,
        stacked.clone(),
    ]);
    let params: Vec<ValueId> = b.params().collect();
    let kind = Kind::Scan { body, length, reverse: rng.below(2) == 0, consts: 2, carry: 3 };
    let outs = b.push_many(kind, &params, &[array, count.clone(), count, stacked]);
    let kept: Vec<ValueId> = outs.iter().copied().filter(|_| rng.below(3) > 0).collect();
    b.finish(&kept)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(600)))]

    #[test]
    fn draws(seed: u64, n in 1usize..20, length in 1usize..70) {
        let mut rng = Rng(seed);
        let graph = Arc::new(looped(&mut rng, n, length));
        let args: Vec<Buffer> =
            graph.param_types().iter().map(|t| Array::random(&mut rng, t.dtype, &t.shape).buffer()).collect();
        let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
        let plain = run(Program::compile_plain(graph.clone()).unwrap());
        let before = ahead(graph.clone());
        let less = idle(before.clone());
        assert_eq!((before.verify(), less.verify()), (Ok(()), Ok(())));
        let programs = [Program::compile(graph.clone()), Program::compile_plain(before), Program::compile_plain(less)];
        for program in programs {
            for (k, (a, b)) in run(program.unwrap()).iter().zip(&plain).enumerate() {
                let ty = graph.ty(graph.outputs[k]);
                common::assert_same(&Array::of(ty, a), &Array::of(ty, b), &format_args!("result {k} of\n{graph}"));
            }
        }
    }
}

/// A walk of `length` steps of `n` numbers each.
fn walk(n: usize, length: usize) -> Graph {
    let (array, count) = (Type::new(DType::F32, &[n]), Type::new(DType::I32, &[]));
    let mut body = Builder::new([Type::new(DType::U32, &[2]), count.clone(), array.clone()]);
    let number = body.convert(ValueId(1), DType::U32);
    let [x, _] = drawn(&mut Rng(1), &mut body, ValueId(0), number, n);
    let x = numbers(&mut body, x);
    let one = body.scalar(Scalar::from_i64(DType::I32, 1));
    let (count_next, state) = (body.binary(BinaryOp::Add, ValueId(1), one), body.binary(BinaryOp::Mul, ValueId(2), x));
    let body = Arc::new(body.finish(&[count_next, state]));
    let mut b = Builder::new([Type::new(DType::U32, &[2]), count.clone(), array.clone()]);
    let kind = Kind::Scan { body, length, reverse: false, consts: 1, carry: 2 };
    let params: Vec<ValueId> = b.params().collect();
    let outs = b.push_many(kind, &params, &[count, array]);
    b.finish(&outs[1..])
}

#[test]
fn few_numbers_are_drawn_before_the_loop_and_its_counter_goes() {
    let draws = |n: usize, length: usize| {
        let g = idle(ahead(Arc::new(walk(n, length))));
        let in_loop = |node: &ferrax_loops::Node| match &node.kind {
            Kind::Scan { body, carry, .. } => {
                Some((*carry, body.nodes.iter().any(|n| matches!(n.kind, Kind::Threefry2x32))))
            }
            _ => None,
        };
        g.nodes.iter().find_map(in_loop).unwrap()
    };
    assert_eq!(draws(5, 1000), (1, false));
    assert_eq!(draws(5, 4), (2, true), "too few steps");
    assert_eq!(draws(5000, 20), (2, true), "a step has work enough");
    assert_eq!(draws(1000, 1000), (2, true), "more memory than the loop has");
}
