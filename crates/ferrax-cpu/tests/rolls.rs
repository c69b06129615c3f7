//! Rolls of one array as slices of one copy: the elements of the rolls.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType};
use ferrax_cpu::Program;
use ferrax_loops::kind::{BinaryOp, SliceDims};
use ferrax_loops::{Builder, Graph, Kind, Type, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

/// A value's elements from `from` on along an axis, then those before.
fn roll(b: &mut Builder, x: ValueId, axis: usize, from: usize) -> ValueId {
    let ty = b.ty(x).clone();
    let parts = [(from, ty.shape[axis]), (0, from)].map(|(start, limit)| {
        let mut dims = SliceDims {
            start: vec![0; ty.shape.len()].into(),
            limit: ty.shape.clone(),
            stride: vec![1; ty.shape.len()].into(),
        };
        (dims.start[axis], dims.limit[axis]) = (start, limit);
        let mut part = ty.clone();
        part.shape[axis] = limit - start;
        b.push(Kind::Slice(Box::new(dims)), &[x], part)
    });
    b.push(Kind::Concat(axis), &parts, ty)
}

/// Sums and outputs of an array's rolls, and of rolls of these.
fn program(rng: &mut Rng, shape: &[usize], d: DType) -> Graph {
    let mut b = Builder::new([Type::new(d, shape)]);
    let x = b.params().next().unwrap();
    let mut values = vec![x];
    for _ in 0..2 + rng.below(5) {
        let (of, axis) = (values[rng.below(values.len())], rng.below(shape.len()));
        let by = rng.below(shape[axis].min(4));
        let from = if rng.below(2) == 0 { by } else { (shape[axis] - by) % shape[axis] };
        values.push(roll(&mut b, of, axis, from));
    }
    let whole = values[rng.below(values.len())];
    let sum = values.iter().skip(1).fold(x, |sum, &v| b.binary(BinaryOp::Sub, v, sum));
    b.finish(&[sum, whole])
}

fn same(g: Graph, rng: &mut Rng) {
    let g = Arc::new(g);
    let ty = &g.types[0];
    let x: Buffer = Array::random(rng, ty.dtype, &ty.shape).buffer();
    let run = |p: Program| p.run(&mut [Arg::Host(&x)]).unwrap();
    let (got, want) = (run(Program::compile(g.clone()).unwrap()), run(Program::compile_plain(g.clone()).unwrap()));
    assert!(got.iter().zip(&want).all(|(a, b)| a.bytes() == b.bytes()), "{:?}", g.nodes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(100)))]

    #[test]
    fn rolls_have_the_same_elements(seed: u64, rows in 1usize..40, columns in 8usize..300) {
        let rng = &mut Rng(seed);
        for (d, shape) in [(DType::I32, vec![rows * columns]), (DType::I32, vec![rows, columns]), (DType::U8, vec![columns, rows]),
            (DType::I64, vec![3, rows, columns]), (DType::I16, vec![rows, columns])] {
            let g = program(rng, &shape, d);
            same(g, rng);
        }
    }
}

/// Eight neighbours of each cell take one copy of the array, with its ends.
#[test]
fn neighbours_take_one_copy() {
    let mut b = Builder::new([Type::new(DType::F32, &[128, 128])]);
    let x = b.params().next().unwrap();
    let (up, down) = (roll(&mut b, x, 0, 1), roll(&mut b, x, 0, 127));
    let mut sum = b.binary(BinaryOp::Add, up, down);
    for of in [x, up, down] {
        for from in [1, 127] {
            let side = roll(&mut b, of, 1, from);
            sum = b.binary(BinaryOp::Add, sum, side);
        }
    }
    let g = b.finish(&[sum]);
    let text = Program::compile(Arc::new(g.clone())).unwrap().kernels();
    assert_eq!(text.matches("Concat(").count(), 2, "{text}");
    same(g, &mut Rng(1));
}
