//! Nodes that only move elements: which element of which operand each element of the result is.

use ferrax_base::shape::strides;
use ferrax_loops::kind::PadConfig;
use ferrax_loops::{Graph, Kind, Node};
use smallvec::SmallVec;

/// An operand and the row-major number of one of its elements.
pub(super) type Source = (usize, usize);

pub(super) type Index = SmallVec<[usize; 4]>;

/// The source of each element of a node's result, in row-major order; nothing if the node computes.
pub(super) fn sources(g: &Graph, node: &Node) -> Option<Vec<Source>> {
    let out = g.ty(node.first);
    if let Kind::Reshape = node.kind {
        return Some((0..out.size()).map(|i| (0, i)).collect());
    }
    indices(&out.shape).map(|at| source(g, node, &at)).collect()
}

/// All indices of a shape in row-major order.
pub(super) fn indices(shape: &[usize]) -> impl Iterator<Item = Index> + '_ {
    let st = strides(shape);
    let total: usize = shape.iter().product();
    (0..total).map(move |i| shape.iter().zip(&st).map(|(&n, &s)| i / s.max(1) % n.max(1)).collect())
}

fn source(g: &Graph, node: &Node, at: &Index) -> Option<Source> {
    let shape = |i: usize| &g.ty(node.inputs[i]).shape;
    let linear = |i: usize, index: &[usize]| index.iter().zip(&strides(shape(i))).map(|(a, s)| a * s).sum();
    let of_first = |index: Index| Some((0, linear(0, &index)));
    match &node.kind {
        Kind::Broadcast(dims) => {
            of_first(dims.iter().zip(shape(0)).map(|(&d, &n)| if n == 1 { 0 } else { at[d] }).collect())
        }
        Kind::Transpose(perm) => {
            let mut index = Index::from_elem(0, perm.len());
            perm.iter().zip(at).for_each(|(&axis, &i)| index[axis] = i);
            of_first(index)
        }
        Kind::Slice(dims) => {
            of_first(at.iter().enumerate().map(|(a, &i)| dims.start[a] + i * dims.stride[a]).collect())
        }
        Kind::Rev(axes) => of_first(
            at.iter().enumerate().map(|(a, &i)| if axes.contains(&a) { shape(0)[a] - 1 - i } else { i }).collect(),
        ),
        Kind::Concat(axis) => {
            let mut index = at.clone();
            let mut operand = 0;
            while index[*axis] >= shape(operand)[*axis] {
                index[*axis] -= shape(operand)[*axis];
                operand += 1;
            }
            Some((operand, linear(operand, &index)))
        }
        Kind::Pad(config) => Some(match padded(config, shape(0), at) {
            Some(index) => (0, linear(0, &index)),
            None => (1, 0),
        }),
        _ => None,
    }
}

/// The index of the operand that a padded index is, if it is not padding.
fn padded(config: &[PadConfig], shape: &[usize], at: &Index) -> Option<Index> {
    let inside = |(c, (&i, &n)): (&PadConfig, (&usize, &usize))| {
        let from = usize::try_from(i as i64 - c.low).ok()?;
        let step = c.interior + 1;
        (from % step == 0 && from / step < n).then_some(from / step)
    };
    config.iter().zip(at.iter().zip(shape)).map(inside).collect()
}
