//! Nodes that move elements, and those with indices, on the plugin against the CPU engine;
//! the rows are those of every engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/movement.rs"]
mod rows;

use against::{Array, Near, Rng, peer};
use ferrax_base::{DType, Scalar};
use ferrax_loops::{Builder, IndexMode, Kind, ScatterOp};
use ferrax_pjrt::stablehlo::Target;
use rows::{Numbers, array};

against::tests!(sources, movement, dynamic_slices, gathers, gathers_that_wrap, scatters, movements_one_after_another);

/// Where the dialect has no batching dimensions, they are components of index vectors.
#[test]
#[ignore = "needs a plugin: make test-xla"]
fn batching_in_old_dialects() {
    let mut rng = Rng(17);
    let old = Target { version: [1, 0, 0], ..peer().target.clone() };
    for _ in 0..20 {
        let shape = [3, 4, 2, 3];
        let numbers = Numbers::random(&mut rng, &shape);
        let args = [
            array(&mut rng, DType::F32, &shape),
            numbers.indices(&mut rng, &shape),
            array(&mut rng, DType::F32, &numbers.other),
        ];
        let mut builder = Builder::new(args.iter().map(|a| a.ty.clone()));
        let params: Vec<_> = builder.params().collect();
        let gathering = numbers.gathering(IndexMode::FillOrDrop, Scalar::from_i64(DType::F32, 5));
        let a = builder.push(Kind::Gather(Box::new(gathering)), &params[..2], args[2].ty.clone());
        let b = builder.push(numbers.scatter(ScatterOp::Set, IndexMode::Clip), &params, args[0].ty.clone());
        let graph = builder.finish(&[a, b]);
        let args: Vec<&Array> = args.iter().collect();
        let text = ferrax_pjrt::stablehlo::module(&graph, &[], &old).unwrap();
        assert!(!text.contains("batching_dims = [0"), "{text}");
        let new = peer().run(&graph, &args).unwrap();
        let old = peer().run_for(&old, &graph, &args).unwrap();
        for (new, old) in new.iter().zip(&old) {
            assert_eq!(against::difference(Near::Same, old, new, &[]), None);
        }
    }
}
