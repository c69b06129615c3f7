//! What the planner makes of graphs, on the fake: kernels do nothing there, but every address that they are given is looked at.

use crate::harness::*;
use ferrax_base::{Arg, DType};
use ferrax_cuda::plan::plan;
use ferrax_loops::{BinaryOp, Builder, Graph, Type, UnaryOp};

/// `tanh(x) * y + y`, and `y * y` beside it.
fn graph() -> Graph {
    let ty = Type::new(DType::F32, &[N]);
    let mut b = Builder::new([ty.clone(), ty]);
    let [x, y] = [0, 1].map(|i| b.params().nth(i).unwrap());
    let t = b.unary(UnaryOp::Tanh, x);
    let product = b.binary(BinaryOp::Mul, t, y);
    let sum = b.binary(BinaryOp::Add, product, y);
    let square = b.binary(BinaryOp::Mul, y, y);
    b.finish(&[sum, square])
}

#[test]
fn planned_programs_keep_to_memory_that_is_there() {
    let graph = graph();
    for donated in [[false, false], [true, false], [true, true]] {
        let fake = Fake::new();
        let device = fake.device(0);
        let executable = load(&device, &fake.cubins(), &plan(&graph, &donated).unwrap(), "f").unwrap();
        for i in 0..4 {
            let (x, y) = (array(&device, 1.0), array(&device, 2.0));
            let (kept_x, kept_y) = (array(&device, 1.0), array(&device, 2.0));
            // those that are donated, and then none of them
            let mut args = match (i % 2, donated) {
                (0, [true, true]) => [Arg::Owned(x), Arg::Owned(y)],
                (0, [true, false]) => [Arg::Owned(x), Arg::Borrowed(&kept_y)],
                _ => [Arg::Borrowed(&kept_x), Arg::Borrowed(&kept_y)],
            };
            let results = executable.run(&mut args).unwrap();
            assert_eq!(results.iter().map(|r| r.host().unwrap().len()).collect::<Vec<_>>(), [4 * N; 2]);
            assert!(!fake.take("ran").is_empty(), "run {i} of {donated:?}");
        }
        drop((executable, device));
        fake.is_clean_after(&format!("{donated:?}"));
    }
}
