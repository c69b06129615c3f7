//! Programs whose long steps may run at the same time, against the same steps run one program after the other.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Scalar};
use ferrax_cpu::Program;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, Type, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

const LENGTH: usize = 300;
const WIDTH: usize = 64;

fn matrix() -> Type {
    Type::new(DType::F32, &[LENGTH, WIDTH])
}

fn vector() -> Type {
    Type::new(DType::F32, &[WIDTH])
}

/// A recurrence over the rows of a matrix: (matrix, vector) -> (vector, matrix).
fn recurrence(reverse: bool) -> Graph {
    let mut b = Builder::new([vector(), vector()]);
    let [h, x] = [0, 1].map(ValueId);
    let half = b.float(DType::F32, 0.5);
    let half = b.broadcast(half, &[WIDTH], &[]);
    let kept = b.binary(BinaryOp::Mul, h, half);
    let next = b.binary(BinaryOp::Add, kept, x);
    let seen = b.binary(BinaryOp::Max, next, h);
    let body = Arc::new(b.finish(&[next, seen]));
    let mut b = Builder::new([matrix(), vector()]);
    let kind = Kind::Scan { body, length: LENGTH, reverse, consts: 0, carry: 1 };
    let outs = b.push_many(kind, &[ValueId(1), ValueId(0)], &[vector(), matrix()]);
    b.finish(&outs)
}

/// The elements in order: (matrix, vector) -> (vector, matrix).
fn sorted() -> Graph {
    let mut b = Builder::new([matrix(), vector()]);
    let flat = b.reshape(ValueId(0), &[LENGTH * WIDTH]);
    let kind = Kind::Sort { axis: 0, num_keys: 1, stable: true };
    let sorted = b.push(kind, &[flat], Type::new(DType::F32, &[LENGTH * WIDTH]));
    let whole = b.reshape(sorted, &[LENGTH, WIDTH]);
    b.finish(&[ValueId(1), whole])
}

/// The vector replaces a row, where it can in place: (matrix, vector) -> (vector, matrix).
fn updated(row: i64) -> Graph {
    let mut b = Builder::new([matrix(), vector()]);
    let line = b.reshape(ValueId(1), &[1, WIDTH]);
    let [row, zero] = [row, 0].map(|k| b.scalar(Scalar::from_i64(DType::I32, k)));
    let whole = b.push(Kind::DynamicUpdateSlice, &[ValueId(0), line, row, zero], matrix());
    b.finish(&[ValueId(1), whole])
}

/// Elementwise over both: (matrix, vector) -> (vector, matrix).
fn mixed() -> Graph {
    let mut b = Builder::new([matrix(), vector()]);
    let spread = b.broadcast(ValueId(1), &[LENGTH, WIDTH], &[1]);
    let whole = b.binary(BinaryOp::Sub, ValueId(0), spread);
    let line = b.binary(BinaryOp::Mul, ValueId(1), ValueId(1));
    b.finish(&[line, whole])
}

fn run(graph: &Graph, args: &[&Buffer]) -> Vec<Buffer> {
    let program = Program::compile(Arc::new(graph.clone())).unwrap();
    program.run(&mut args.iter().map(|b| Arg::Host(b)).collect::<Vec<_>>()).unwrap().into_vec()
}

fn check(seed: u64, steps: usize) {
    let rng = &mut Rng(seed);
    let types = [matrix(), matrix(), vector(), vector()];
    let args: Vec<Buffer> = types.iter().map(|t| Array::tame(rng, t.dtype, &t.shape).buffer()).collect();
    let mut b = Builder::new(types);
    let (mut matrices, mut vectors) = (vec![ValueId(0), ValueId(1)], vec![ValueId(2), ValueId(3)]);
    let mut values: Vec<Buffer> = args.iter().map(|b| Buffer::from_bytes(b.bytes()).unwrap()).collect();
    let mut at: Vec<usize> = (0..4).collect();
    for _ in 0..steps {
        let part = match rng.below(6) {
            0 => sorted(),
            1 => updated(rng.below(LENGTH) as i64),
            2 => mixed(),
            k => recurrence(k == 3),
        };
        let inputs = [matrices[rng.below(matrices.len())], vectors[rng.below(vectors.len())]];
        let outs = b.inline(&part, &inputs);
        let done = run(&part, &inputs.map(|v| &values[at[v.0 as usize]]));
        for (v, value) in outs.iter().zip(done) {
            at.resize(at.len().max(v.0 as usize + 1), 0);
            at[v.0 as usize] = values.len();
            values.push(value);
        }
        vectors.push(outs[0]);
        matrices.push(outs[1]);
    }
    let outputs: Vec<ValueId> = (0..4)
        .map(|k| if k < 3 { matrices[rng.below(matrices.len())] } else { vectors[rng.below(vectors.len())] })
        .collect();
    let graph = Arc::new(b.finish(&outputs));
    let same = |got: &[Buffer]| {
        for (v, got) in outputs.iter().zip(got) {
            assert!(got.bytes() == values[at[v.0 as usize]].bytes(), "{v:?} of\n{graph}");
        }
    };
    let borrowed = || args.iter().map(Arg::Host).collect::<Vec<_>>();
    same(&Program::compile(graph.clone()).unwrap().run(&mut borrowed()).unwrap());
    same(&Program::compile_plain(graph.clone()).unwrap().run(&mut borrowed()).unwrap());
    let donated: Vec<bool> = args.iter().map(|_| rng.below(2) == 0).collect();
    let own = |b: &Buffer| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into());
    let mut given: Vec<Arg<'_>> =
        args.iter().zip(&donated).map(|(b, &owned)| if owned { own(b) } else { Arg::Host(b) }).collect();
    same(&Program::compile_donating(graph.clone(), &donated).unwrap().run(&mut given).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    #[test]
    fn random_programs(seed: u64, steps in 2usize..12) {
        check(seed, steps);
    }
}

/// Two directions of a recurrence; what is read of the first comes after both.
#[test]
fn two_directions_run_at_the_same_time() {
    let mut b = Builder::new([matrix(), vector()]);
    let args = [ValueId(0), ValueId(1)];
    let first = b.inline(&recurrence(false), &args);
    let between = b.binary(BinaryOp::Add, first[1], ValueId(0));
    let second = b.inline(&recurrence(true), &args);
    let sum = b.binary(BinaryOp::Add, between, second[1]);
    let program = Program::compile(Arc::new(b.finish(&[sum]))).unwrap();
    let text = program.kernels();
    assert_eq!(text.contains("at the same time"), ferrax_cpu::pool::threads() > 1, "{text}");
}
