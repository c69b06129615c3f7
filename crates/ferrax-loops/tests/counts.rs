//! Counts along one axis of several become counts of that axis.

use ferrax_base::DType;
use ferrax_loops::passes::spread_counts;
use ferrax_loops::{Builder, Kind, Type};
use std::sync::Arc;

#[test]
fn only_large_tables_are_spread() {
    for (shape, axis, nodes) in [(&[40, 50][..], 1, 2), (&[40, 50], 0, 2), (&[1, 900], 1, 1), (&[3, 4], 0, 1)] {
        let mut b = Builder::new([]);
        let table = b.push(Kind::Iota(axis), &[], Type::new(DType::I32, shape));
        let g = spread_counts(Arc::new(b.finish(&[table])));
        assert_eq!(g.nodes.len(), nodes, "{shape:?}");
        assert_eq!(g.ty(g.outputs[0]), &Type::new(DType::I32, shape));
        assert_eq!(g.verify(), Ok(()));
    }
}
