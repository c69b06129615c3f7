//! Random loops whose states are joined of a few arrays each turn, on the machine against node by node.

mod common;

use common::{Array, Rng, cases};
use ferrax_base::{Arg, Buffer, DType, Scalar, Shape};
use ferrax_cpu::Program;
use ferrax_loops::kind::CompareOp;
use ferrax_loops::passes::split_states;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, ReduceOp, SliceDims, Type, UnaryOp, ValueId};
use proptest::prelude::*;
use std::sync::Arc;

/// A state of `count` parts along `axis`.
#[derive(Clone, Copy)]
struct Layout {
    n: usize,
    count: usize,
    axis: usize,
    dtype: DType,
}

impl Layout {
    fn shape(self, count: usize) -> [usize; 2] {
        if self.axis == 0 { [count, self.n] } else { [self.n, count] }
    }

    fn part(self, b: &mut Builder, x: ValueId, k: usize) -> ValueId {
        let (mut start, mut limit) = (Shape::from_elem(0, 2), Shape::from_slice(&self.shape(self.count)));
        (start[self.axis], limit[self.axis]) = (k, k + 1);
        let dims = SliceDims { start, limit, stride: Shape::from_elem(1, 2) };
        let part = b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(self.dtype, &self.shape(1)));
        b.reshape(part, &[self.n])
    }

    fn join(self, b: &mut Builder, parts: &[ValueId]) -> ValueId {
        let parts: Vec<ValueId> = parts.iter().map(|&p| b.reshape(p, &self.shape(1))).collect();
        b.push(Kind::Concat(self.axis), &parts, Type::new(self.dtype, &self.shape(self.count)))
    }
}

/// The next of some states: slopes of their parts, steps, and sometimes a reader of all of one.
fn turn(rng: &mut Rng, b: &mut Builder, layout: Layout, states: &[ValueId], beside: &[ValueId]) -> Vec<ValueId> {
    let mut next = states.to_vec();
    for _ in 0..=rng.below(4) {
        let mut rows: Vec<ValueId> = next
            .iter()
            .flat_map(|&s| (0..layout.count).map(move |k| (s, k)))
            .map(|(s, k)| layout.part(b, s, k))
            .collect();
        for _ in 0..rng.below(8) {
            let (x, y) = (rows[rng.below(rows.len())], rows[rng.below(rows.len())]);
            let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max][rng.below(4)];
            rows.push(b.binary(op, x, y));
        }
        let at = rng.below(next.len());
        let parts: Vec<ValueId> = (0..layout.count).map(|_| rows[rows.len() - 1 - rng.below(rows.len())]).collect();
        let slope = layout.join(b, &parts);
        let h = b.scalar(Scalar::from_f64(layout.dtype, 0.25));
        let scaled = b.binary(BinaryOp::Mul, h, slope);
        let mut other = next[rng.below(next.len())];
        match rng.below(6) {
            0 if !beside.is_empty() => other = beside[rng.below(beside.len())],
            1 => other = b.unary(UnaryOp::Neg, other),
            2 => {
                // Something that reads a whole state.
                let sum = b.reduce(ReduceOp::Max, other, &[0, 1]);
                other = b.broadcast(sum, &layout.shape(layout.count), &[]);
            }
            _ => {}
        }
        next[at] = b.binary(BinaryOp::Add, other, scaled);
    }
    // Parts that change places, and states that do.
    if rng.below(5) == 0 {
        let at = rng.below(next.len());
        let parts: Vec<ValueId> = (0..layout.count).rev().map(|k| layout.part(b, next[at], k)).collect();
        next[at] = layout.join(b, &parts);
    }
    if rng.below(5) == 0 {
        next.reverse();
    }
    next
}

/// A scan or a while loop over two states, with an array beside them.
fn looped(rng: &mut Rng, layout: Layout) -> Graph {
    let state = Type::new(layout.dtype, &layout.shape(layout.count));
    let mut b = Builder::new([state.clone(), state.clone(), state.clone()]);
    let params: Vec<ValueId> = b.params().collect();
    let results = if rng.below(2) == 0 {
        let mut body = Builder::new([state.clone(), state.clone(), state.clone()]);
        let own: Vec<ValueId> = body.params().collect();
        let next = turn(rng, &mut body, layout, &own[1..], &own[..1]);
        let mut outputs = next.clone();
        // What is stacked: a part, all of a state before or behind a turn.
        let seen = match rng.below(3) {
            0 => layout.part(&mut body, next[0], 0),
            1 => own[1],
            _ => next[1],
        };
        outputs.push(seen);
        let mut stacked = body.ty(seen).clone();
        stacked.shape.insert(0, 4);
        let body = Arc::new(body.finish(&outputs));
        let kind = Kind::Scan { body, length: 4, reverse: rng.below(2) == 0, consts: 1, carry: 2 };
        b.push_many(kind, &params, &[state.clone(), state, stacked])
    } else {
        let count = Type::new(DType::I32, &[]);
        let carried = [count.clone(), state.clone(), state.clone()];
        let mut cond = Builder::new(carried.clone());
        let own: Vec<ValueId> = cond.params().collect();
        let limit = cond.scalar(Scalar::from_i64(DType::I32, 3));
        let mut more = cond.compare(CompareOp::Lt, own[0], limit);
        if rng.below(3) == 0 {
            let (part, all) = (layout.part(&mut cond, own[1], 0), own[2]);
            let (x, axes) = if rng.below(2) == 0 { (part, &[0][..]) } else { (all, &[0, 1][..]) };
            let most = cond.reduce(ReduceOp::Max, x, axes);
            let bound = cond.scalar(Scalar::from_f64(layout.dtype, 100.0));
            let small = cond.compare(CompareOp::Lt, most, bound);
            more = cond.binary(BinaryOp::And, more, small);
        }
        let cond = Arc::new(cond.finish(&[more]));
        let mut body = Builder::new([state.clone()].into_iter().chain(carried.clone()));
        let own: Vec<ValueId> = body.params().collect();
        let next = turn(rng, &mut body, layout, &own[2..], &own[..1]);
        let one = body.scalar(Scalar::from_i64(DType::I32, 1));
        let count = body.binary(BinaryOp::Add, own[1], one);
        let body = Arc::new(body.finish(&[count, next[0], next[1]]));
        let start = b.scalar(Scalar::from_i64(DType::I32, 0));
        let kind = Kind::While { cond, body, cond_consts: 0, body_consts: 1 };
        b.push_many(kind, &[params[0], start, params[1], params[2]], &carried)
    };
    b.finish(&results)
}

fn check(seed: u64, layout: Layout) {
    let mut rng = Rng(seed);
    let graph = Arc::new(looped(&mut rng, layout));
    let args: Vec<Buffer> =
        graph.param_types().iter().map(|t| Array::random(&mut rng, t.dtype, &t.shape).buffer()).collect();
    let split = split_states(graph.clone());
    assert_eq!(split.verify(), Ok(()));
    let run = |p: Program| p.run(&mut args.iter().map(Arg::Host).collect::<Vec<_>>()).unwrap();
    let plain = run(Program::compile_plain(graph.clone()).unwrap());
    for program in [Program::compile(graph.clone()).unwrap(), Program::compile_plain(split).unwrap()] {
        for (k, (a, b)) in run(program).iter().zip(&plain).enumerate() {
            let ty = graph.ty(graph.outputs[k]);
            common::assert_same(&Array::of(ty, a), &Array::of(ty, b), &format_args!("result {k} of\n{graph}"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(400)))]

    #[test]
    fn states(seed: u64, n in 8usize..400, count in 2usize..9, axis in 0usize..2, kind in 0usize..3) {
        check(seed, Layout { n, count, axis, dtype: [DType::F32, DType::F64, DType::I32][kind] });
    }
}

/// A step of Euler's method for a state of columns or rows.
fn euler(layout: Layout, whole: bool) -> Graph {
    let state = Type::new(layout.dtype, &layout.shape(layout.count));
    let mut body = Builder::new([state.clone()]);
    let s = ValueId(0);
    let (x, y) = (layout.part(&mut body, s, 0), layout.part(&mut body, s, 1));
    let (product, sum) = (body.binary(BinaryOp::Mul, x, y), body.binary(BinaryOp::Add, x, y));
    let slope = layout.join(&mut body, &[product, sum]);
    let mut next = body.binary(BinaryOp::Add, s, slope);
    if whole {
        let most = body.reduce(ReduceOp::Max, next, &[0, 1]);
        next = body.binary(BinaryOp::Sub, next, most);
    }
    let body = Arc::new(body.finish(&[next]));
    let mut b = Builder::new([state.clone()]);
    let kind = Kind::Scan { body, length: 9, reverse: false, consts: 0, carry: 1 };
    let end = b.push(kind, &[ValueId(0)], state);
    b.finish(&[end])
}

#[test]
fn columns_are_carried_where_no_turn_needs_all_of_them() {
    let carried = |n: usize, axis: usize, whole: bool| {
        let g = split_states(Arc::new(euler(Layout { n, count: 2, axis, dtype: DType::F32 }, whole)));
        let of = |node: &ferrax_loops::Node| match &node.kind {
            Kind::Scan { body, carry, .. } => {
                Some((*carry, body.nodes.iter().any(|n| matches!(n.kind, Kind::Concat(_)))))
            }
            _ => None,
        };
        g.nodes.iter().find_map(of).unwrap()
    };
    assert_eq!(carried(500, 1, false), (2, false));
    assert_eq!(carried(500, 0, false), (2, false));
    assert_eq!(carried(500, 1, true), (1, true), "a turn reads all of it");
    assert_eq!(carried(20, 1, false), (1, true), "registers hold it");
}
