//! Loops, branches, calls and donation on the plugin against the CPU engine; the rows are those of every engine.

mod against;
#[path = "../../ferrax-cpu/tests/compare/control.rs"]
mod rows;

use against::{Array, Near, Report, compare, peer};
use ferrax_base::Scalar;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, Type};
use ferrax_pjrt::stablehlo::module;
use rows::{F, I, int, scaled};
use std::sync::Arc;

against::tests!(whiles, scans, scans_of_nothing_and_without_state, switches);

/// Doubles a number while a count in steps is below a limit.
fn counted(limit: i32, by: i32) -> Graph {
    let scalar = |d| Type::new(d, &[]);
    let mut cond = Builder::new([scalar(F), scalar(I)]);
    let at = cond.params().nth(1).unwrap();
    let end = cond.scalar(Scalar::from_i64(I, limit.into()));
    let below = cond.compare(CompareOp::Lt, at, end);
    let mut step = Builder::new([scalar(F), scalar(I)]);
    let [x, at] = [0, 1].map(|k| step.params().nth(k).unwrap());
    let (twice, by) = (step.binary(BinaryOp::Add, x, x), step.scalar(Scalar::from_i64(I, by.into())));
    let next = step.binary(BinaryOp::Add, at, by);
    let kind = Kind::While {
        cond: cond.finish(&[below]).into(),
        body: step.finish(&[twice, next]).into(),
        cond_consts: 0,
        body_consts: 0,
    };
    let mut b = Builder::new([scalar(F)]);
    let x = b.params().next().unwrap();
    let from = b.scalar(Scalar::from_i64(I, 0));
    let results = b.push_many(kind, &[x, from], &[scalar(F), scalar(I)]);
    b.finish(&results)
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn loops_that_count_in_steps_end_in_time() {
    let mut report = Report::default();
    let x = Array::floats(F, &[], &[1.0]);
    for limit in 1..5 {
        for by in 1..5 {
            compare(&mut report, &format!("below {limit} by {by}"), counted(limit, by), &[&x], Near::Same);
        }
    }
    report.finish();
}

/// A graph that calls `inner` twice, one after the other.
fn twice(inner: &Arc<Graph>) -> Graph {
    let mut b = Builder::new([Type::new(F, &[2]), Type::new(I, &[])]);
    let p: Vec<_> = b.params().collect();
    let types = [Type::new(F, &[2]), Type::new(I, &[])];
    let first = b.push_many(Kind::Call(inner.clone()), &p, &types);
    let second = b.push_many(Kind::Call(inner.clone()), &first, &types);
    b.finish(&second)
}

#[test]
#[ignore = "needs a plugin: make test-xla"]
fn calls_are_shared() {
    let mut report = Report::default();
    // 2^6 calls; a graph of its own for each level and side.
    let mut graph = scaled(2.0);
    for _ in 0..5 {
        graph = twice(&graph).into();
    }
    let text = module(&graph, &[], &peer().target).unwrap();
    assert!(text.len() < 20_000, "{} bytes", text.len());
    let args = [Array::floats(F, &[2], &[1.0, -3.0]), int(9)];
    compare(&mut report, "calls in calls", twice(&graph), &[&args[0], &args[1]], Near::Same);
    report.finish();
}

#[test]
fn equal_graphs_are_one_function() {
    let target = ferrax_pjrt::stablehlo::Target { platform: "cpu".into(), version: [1, 13, 0] };
    let mut b = Builder::new([Type::new(F, &[2]), Type::new(I, &[])]);
    let p: Vec<_> = b.params().collect();
    let types = [Type::new(F, &[2]), Type::new(I, &[])];
    for by in [2.0, 3.0, 2.0] {
        b.push_many(Kind::Call(Arc::new(twice(&scaled(by)))), &p, &types);
    }
    let text = module(&b.finish(&p), &[], &target).unwrap();
    assert_eq!(text.matches("func.func private").count(), 4, "{text}");
}

#[test]
fn results_take_the_first_free_parameter_of_their_type() {
    let (f, i) = (Type::new(F, &[2]), Type::new(I, &[2]));
    let mut b = Builder::new([f.clone(), i.clone(), f.clone(), f.clone()]);
    let p: Vec<_> = b.params().collect();
    let sum = b.binary(BinaryOp::Add, p[0], p[2]);
    let graph = b.finish(&[p[1], sum, sum]);
    assert_eq!(graph.aliases(&[false, true, true, true]), [None, Some(0), Some(1), Some(2)]);
    assert_eq!(graph.aliases(&[true, false, true, true]), [Some(1), None, Some(2), None]);
    assert_eq!(graph.aliases(&[]), [None; 4]);
    let target = ferrax_pjrt::stablehlo::Target { platform: "cpu".into(), version: [1, 13, 0] };
    let text = module(&graph, &[true, false, true, true], &target).unwrap();
    assert!(text.contains("%arg0: tensor<2xf32> {tf.aliasing_output = 1 : i32}"), "{text}");
    assert!(text.contains("%arg3: tensor<2xf32> {jax.buffer_donor = true}"), "{text}");
}
