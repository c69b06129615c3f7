//! Elementwise nodes on joined arrays work on what was joined.

use ferrax_base::{DType, Shape};
use ferrax_loops::passes::on_parts;
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, SliceDims, Type, ValueId};
use std::sync::Arc;

fn join(b: &mut Builder, parts: &[ValueId], axis: usize) -> ValueId {
    let mut ty = b.ty(parts[0]).clone();
    ty.shape[axis] = parts.iter().map(|&v| b.ty(v).shape[axis]).sum();
    b.push(Kind::Concat(axis), parts, ty)
}

fn row(b: &mut Builder, x: ValueId, i: usize) -> ValueId {
    let n = b.ty(x).shape[1];
    let dims = SliceDims {
        start: Shape::from_slice(&[i, 0]),
        limit: Shape::from_slice(&[i + 1, n]),
        stride: Shape::from_elem(1, 2),
    };
    b.push(Kind::Slice(Box::new(dims)), &[x], Type::new(DType::F32, &[1, n]))
}

fn count(g: &Graph, of: fn(&Kind) -> bool) -> usize {
    g.nodes.iter().filter(|n| of(&n.kind)).count()
}

/// Steps s + h * stack([s[1], s[0] * s[2], s[2]]) of a state of three rows.
fn steps(n: usize, steps: usize) -> Graph {
    let mut b = Builder::new([Type::new(DType::F32, &[3, n])]);
    let mut s = ValueId(0);
    for _ in 0..steps {
        let [x, y, z] = [0, 1, 2].map(|i| row(&mut b, s, i));
        let product = b.binary(BinaryOp::Mul, x, z);
        let slope = join(&mut b, &[y, product, z], 0);
        let h = b.float(DType::F32, 0.1);
        let change = b.binary(BinaryOp::Mul, h, slope);
        s = b.binary(BinaryOp::Add, s, change);
    }
    b.finish(&[s])
}

#[test]
fn a_state_is_joined_where_it_is_needed_whole() {
    let g = on_parts(Arc::new(steps(1000, 3)));
    assert_eq!(g.verify(), Ok(()));
    assert_eq!(count(&g, |k| matches!(k, Kind::Concat(_))), 1, "the result alone");
    assert_eq!(
        count(&g, |k| matches!(k, Kind::Slice(_))),
        6,
        "rows of the parameter, for its readers and for the sums"
    );
    assert_eq!(count(&g, |k| matches!(k, Kind::Binary(BinaryOp::Add))), 9);
    assert!(g.nodes.iter().all(|n| !n.kind.is_elementwise() || g.ty(n.first).shape[..] == [1, 1000]));
    assert_eq!(g.ty(g.outputs[0]), &Type::new(DType::F32, &[3, 1000]));
}

#[test]
fn small_and_uneven_joins_stay_whole() {
    for (sizes, axis) in [(&[20, 20][..], 0), (&[900, 800], 0), (&[200; 9], 0)] {
        let mut b = Builder::new(sizes.iter().map(|&n| Type::new(DType::F32, &[n])));
        let params: Vec<ValueId> = b.params().collect();
        let all = join(&mut b, &params, axis);
        let sum = b.binary(BinaryOp::Add, all, all);
        let g = Arc::new(b.finish(&[sum]));
        assert!(Arc::ptr_eq(&on_parts(g.clone()), &g), "{sizes:?}");
    }
    // Parts of columns do not lie in one piece; a join that nothing is computed with has no use for parts.
    let mut b = Builder::new([Type::new(DType::F32, &[200, 3]), Type::new(DType::F32, &[200, 3])]);
    let all = join(&mut b, &[ValueId(0), ValueId(1)], 1);
    let sum = b.binary(BinaryOp::Add, all, all);
    let rows = join(&mut b, &[ValueId(0), ValueId(1)], 0);
    let g = Arc::new(b.finish(&[sum, rows]));
    assert!(Arc::ptr_eq(&on_parts(g.clone()), &g));
}

#[test]
fn what_is_read_beside_a_join_is_taken_apart_with_it() {
    let n = Type::new(DType::F32, &[2, 300]);
    let mut b = Builder::new([n.clone(), Type::new(DType::F32, &[1, 300]), Type::new(DType::F32, &[300])]);
    let line = b.broadcast(ValueId(2), &[2, 300], &[1]);
    let beside = b.binary(BinaryOp::Mul, ValueId(0), line);
    let joined = join(&mut b, &[ValueId(1), ValueId(1)], 0);
    let sum = b.binary(BinaryOp::Add, joined, beside);
    let transposed = b.push(Kind::Transpose([1, 0].into_iter().collect()), &[beside], Type::new(DType::F32, &[300, 2]));
    let g = on_parts(Arc::new(b.finish(&[sum, transposed])));
    assert_eq!(g.verify(), Ok(()));
    // The product is made once, in parts, and joined for the transposition.
    assert_eq!(count(&g, |k| matches!(k, Kind::Binary(BinaryOp::Mul))), 2);
    assert_eq!(count(&g, |k| matches!(k, Kind::Concat(_))), 2);
    let spread = g.nodes.iter().filter(|n| matches!(n.kind, Kind::Broadcast(_)) && g.ty(n.first).shape[..] == [1, 300]);
    assert_eq!(spread.count(), 1, "the same for both parts");
}
