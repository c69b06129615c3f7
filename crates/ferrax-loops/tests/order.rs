//! Fusion order for targets that are made up: what they take decides what runs together.

use ferrax_base::DType;
use ferrax_loops::passes::order::{Item, Order, Spread};
use ferrax_loops::passes::{Target, live_nodes};
use ferrax_loops::{BinaryOp, Builder, Graph, Kind, Node, ReduceOp, Type, UnaryOp, ValueId};
use std::sync::Arc;

/// Takes all but some functions.
struct Made {
    without: Vec<UnaryOp>,
    reduces: bool,
}

impl Target for Made {
    fn widths(&self) -> &'static [usize] {
        &[4]
    }

    fn holds(&self, d: DType) -> bool {
        d == DType::F32
    }

    fn takes(&self, g: &Graph, node: &Node, lane: usize) -> bool {
        let missing = matches!(&node.kind, Kind::Unary(op) if self.without.contains(op));
        g.ty(node.first).dtype.size() == lane && !missing
    }

    fn takes_columns(&self, _: usize, _: usize) -> bool {
        false
    }

    fn reduces(&self, _: ReduceOp, d: DType) -> Option<usize> {
        (self.reduces && d == DType::F32).then_some(4)
    }

    fn adds_outer(&self, _: &Graph, _: &Node) -> bool {
        true
    }
}

fn all() -> Made {
    Made { without: Vec::new(), reduces: true }
}

/// softmax(x, axis=-1)
fn softmax() -> Graph {
    let (full, row) = (Type::new(DType::F32, &[8, 64]), Type::new(DType::F32, &[8]));
    let mut b = Builder::new([full.clone()]);
    let x = b.params().next().unwrap();
    let most = b.reduce(ReduceOp::Max, x, &[1]);
    assert_eq!(*b.ty(most), row);
    let spread = |b: &mut Builder, v: ValueId| b.push(Kind::Broadcast([0][..].into()), &[v], full.clone());
    let most = spread(&mut b, most);
    let less = b.binary(BinaryOp::Sub, x, most);
    let e = b.unary(UnaryOp::Exp, less);
    let sum = b.reduce(ReduceOp::Sum, e, &[1]);
    let sum = spread(&mut b, sum);
    let y = b.binary(BinaryOp::Div, e, sum);
    b.finish(&[y])
}

/// The items of a graph, one letter each.
fn items(g: &Graph, target: Option<&dyn Target>) -> String {
    let mut order = Order::new(g, target);
    order.run(&live_nodes(g)).unwrap();
    let letter = |item: &Item| match item {
        Item::Group { .. } => 'g',
        Item::Region { .. } => 'r',
        Item::Node(_) => 'n',
        Item::Pieces(_) => 'p',
        Item::Accumulate(_) => 'a',
        Item::Dense { .. } => 'd',
    };
    order.items.iter().map(letter).collect()
}

#[test]
fn a_softmax_is_one_group_where_the_target_takes_all_of_it() {
    assert_eq!(items(&softmax(), Some(&all())), "r");
}

#[test]
fn what_a_target_does_not_take_runs_apart() {
    let g = softmax();
    assert_eq!(items(&g, Some(&Made { without: vec![UnaryOp::Exp], ..all() })), "rgr");
    // A maximum and a sum of their own; the sum needs what is before it.
    assert_eq!(items(&g, Some(&Made { reduces: false, ..all() })), "nrnr");
    let none = items(&g, None);
    assert!(!none.contains('r') && none.matches('n').count() == 4, "{none}");
}

#[test]
fn a_product_of_a_column_and_a_row_joins_its_sum() {
    let ty = |shape: &[usize]| Type::new(DType::F32, shape);
    let mut b = Builder::new([ty(&[40, 1]), ty(&[1, 50]), ty(&[40, 50])]);
    let [x, y, c] = b.params().collect::<Vec<_>>()[..] else { unreachable!() };
    let dims = ferrax_loops::DotDims {
        lhs_contract: [1][..].into(),
        rhs_contract: [0][..].into(),
        ..ferrax_loops::DotDims::default()
    };
    let product = b.push(Kind::Dot(Box::new(dims)), &[x, y], ty(&[40, 50]));
    let sum = b.binary(BinaryOp::Add, c, product);
    let g = Arc::new(b.finish(&[sum]));
    assert_eq!(items(&g, Some(&all())), "a");
    assert_eq!(items(&g, None), "ng");
}

#[test]
fn a_slice_is_a_view_where_regions_read_it() {
    let ty = |shape: &[usize]| Type::new(DType::F32, shape);
    let mut b = Builder::new([ty(&[40, 50])]);
    let x = b.params().next().unwrap();
    let dims =
        ferrax_loops::SliceDims { start: [1, 2][..].into(), limit: [33, 42][..].into(), stride: [1, 1][..].into() };
    let part = b.push(Kind::Slice(Box::new(dims)), &[x], ty(&[32, 40]));
    let y = b.unary(UnaryOp::Neg, part);
    let g = b.finish(&[y]);
    let target = all();
    let mut order = Order::new(&g, Some(&target));
    order.run(&live_nodes(&g)).unwrap();
    assert!(matches!(order.place(part).spread, Spread::View(_)));
    assert_eq!(items(&g, Some(&target)), "r");
    assert_eq!(items(&g, None), "ng");
}
