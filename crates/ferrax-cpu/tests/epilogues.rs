//! What follows a product runs on its rows as they are made: the same bits as step by step.

mod common;

use common::{Array, Rng, cases, has_machine};
use ferrax_base::{Arg, Buffer, DType};
use ferrax_cpu::Program;
use ferrax_loops::{BinaryOp, Builder, DotDims, Graph, Kind, ReduceOp, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

fn product(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (m, n) = (b.ty(x).shape[0], b.ty(y).shape[1]);
    let dims = DotDims {
        lhs_contract: [1].into_iter().collect(),
        rhs_contract: [0].into_iter().collect(),
        ..DotDims::default()
    };
    let ty = Type::new(b.ty(x).dtype, &[m, n]);
    b.push(Kind::Dot(Box::new(dims)), &[x, y], ty)
}

struct Maker<'a> {
    rng: &'a mut Rng,
    b: Builder,
    shape: [usize; 2],
    values: Vec<ValueId>,
    outputs: Vec<ValueId>,
}

impl Maker<'_> {
    /// One more value of the product's shape, or a result that is made of one.
    fn step(&mut self, bias: ValueId) {
        let x = self.values[self.values.len() - 1 - self.rng.below(2).min(self.values.len() - 1)];
        let shape = self.shape;
        let v = match self.rng.below(9) {
            0 | 1 => {
                let spread = self.b.broadcast(bias, &shape, &[1]);
                self.b.binary(BinaryOp::Add, x, spread)
            }
            2 => self.b.unary(UnaryOp::Tanh, x),
            3 => {
                let y = self.values[self.rng.below(self.values.len())];
                self.b.binary(BinaryOp::Max, x, y)
            }
            4 | 5 => {
                let (reduced, kept) = [(&[1][..], &[0][..]), (&[0, 1], &[])][self.rng.below(2)];
                let most = self.b.reduce(ReduceOp::Max, x, reduced);
                let most = self.b.broadcast(most, &shape, kept);
                self.b.binary(BinaryOp::Sub, x, most)
            }
            6 => {
                let axis = self.rng.below(2);
                let ty = self.b.ty(x).clone();
                self.b.push(Kind::Rev([axis].into_iter().collect()), &[x], ty)
            }
            7 => {
                let axes = [&[0][..], &[1], &[0, 1]][self.rng.below(3)];
                let sum = self.b.reduce(ReduceOp::Sum, x, axes);
                self.outputs.push(sum);
                return;
            }
            _ => {
                let flat = self.b.reshape(x, &[shape[0] * shape[1]]);
                let flat = self.b.unary(UnaryOp::Neg, flat);
                self.b.reshape(flat, &shape)
            }
        };
        self.values.push(v);
    }
}

fn check(seed: u64, (m, n, k): (usize, usize, usize), steps: usize) {
    let rng = &mut Rng(seed);
    let d = if rng.below(4) == 0 { DType::F64 } else { DType::F32 };
    let types = [Type::new(d, &[m, k]), Type::new(d, &[k, n]), Type::new(d, &[n]), Type::new(d, &[m, n])];
    let args: Vec<Buffer> = types.iter().map(|t| Array::tame(rng, t.dtype, &t.shape).buffer()).collect();
    let mut b = Builder::new(types);
    // An operand that dies with the product.
    let x = if rng.below(2) == 0 { ValueId(0) } else { b.unary(UnaryOp::Neg, ValueId(0)) };
    let y = product(&mut b, x, ValueId(1));
    let mut made = Maker { rng, b, shape: [m, n], values: vec![ValueId(3), y], outputs: Vec::new() };
    (0..steps).for_each(|_| made.step(ValueId(2)));
    let mut outputs = made.outputs;
    outputs.push(made.values[made.values.len() - 1]);
    if made.rng.below(3) == 0 {
        outputs.push(y);
    }
    let graph: Arc<Graph> = Arc::new(made.b.finish(&outputs));
    let borrowed = || args.iter().map(Arg::Host).collect::<Vec<_>>();
    let plain = Program::compile_plain(graph.clone()).unwrap().run(&mut borrowed()).unwrap();
    let same = |got: &[Buffer]| {
        for (v, (got, plain)) in graph.outputs.iter().zip(got.iter().zip(&plain)) {
            let ty = graph.ty(*v);
            common::assert_same(&Array::of(ty, got), &Array::of(ty, plain), &format_args!("{v:?} of\n{graph}"));
        }
    };
    same(&Program::compile(graph.clone()).unwrap().run(&mut borrowed()).unwrap());
    let own = |b: &Buffer| Arg::Owned(Buffer::from_bytes(b.bytes()).unwrap().into());
    let donated = Program::compile_donating(graph.clone(), &[true; 4]).unwrap();
    same(&donated.run(&mut args.iter().map(own).collect::<Vec<_>>()).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(16)))]

    #[test]
    fn random_epilogues(seed: u64, m in 520usize..700, n in 520usize..600, k in 1usize..40, steps in 1usize..8) {
        check(seed, (m, n, k), steps);
    }
}

/// A row of all elements is no row of the product.
#[test]
fn a_sum_of_all_elements() {
    let types = [[600, 8], [8, 700]].map(|s| Type::new(DType::F32, &s));
    let rng = &mut Rng(7);
    let args = types.each_ref().map(|t| Array::tame(rng, t.dtype, &t.shape).buffer());
    for op in [ReduceOp::Sum, ReduceOp::Max] {
        let mut b = Builder::new(types.clone());
        let y = product(&mut b, ValueId(0), ValueId(1));
        let y = b.binary(BinaryOp::Mul, y, y);
        let out = b.reduce(op, y, &[0, 1]);
        let graph: Arc<Graph> = Arc::new(b.finish(&[out]));
        let run = |program: Program| program.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
        let [got, plain] = [Program::compile(graph.clone()), Program::compile_plain(graph.clone())];
        assert_eq!(run(got.unwrap())[0].bytes(), run(plain.unwrap())[0].bytes(), "{op:?}");
    }
}

/// A bias and an activation are part of the product's step.
#[test]
fn a_layer_is_one_step() {
    let types = [[1000, 64], [64, 512], [512, 1]].map(|s| Type::new(DType::F32, &s));
    let mut b = Builder::new(types);
    let y = product(&mut b, ValueId(0), ValueId(1));
    let bias = b.reshape(ValueId(2), &[512]);
    let bias = b.broadcast(bias, &[1000, 512], &[1]);
    let sum = b.binary(BinaryOp::Add, y, bias);
    let out = b.unary(UnaryOp::Tanh, sum);
    let text = Program::compile(Arc::new(b.finish(&[out]))).unwrap().kernels();
    if has_machine() {
        assert!(text.contains("and on its rows kernel[1000 rows of 512]"), "{text}");
    }
}
