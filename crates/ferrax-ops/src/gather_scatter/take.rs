//! The everyday gathers: entries along one axis, and one entry per place of the other axes.

use super::gather::{GatherOptions, gather};
use crate::common::with_unit_axes;
use ferrax_base::{Result, Shape};
use ferrax_ir::Value;
use ferrax_loops::GatherDims;

/// `x[..., indices, ...]`: the entries of one axis at `indices` of any shape, which replaces the axis.
pub fn take(x: &Value, indices: &Value, axis: usize, options: GatherOptions) -> Result<Value> {
    let rank = indices.rank();
    let mut sizes = Shape::from_slice(x.shape());
    sizes[axis] = sizes[axis].min(1);
    let dims = GatherDims {
        offset_dims: (0..axis).chain(axis + rank..x.rank() - 1 + rank).collect(),
        collapsed_slice_dims: [axis].into_iter().collect(),
        start_index_map: [axis].into_iter().collect(),
        ..GatherDims::default()
    };
    gather(x, &with_unit_axes(indices, &[rank])?, &dims, &sizes, options)
}

/// For every place of the other axes, the entries of one axis that `indices` names there. The other axes of `indices`
/// equal those of `x`.
pub fn take_along_axis(x: &Value, indices: &Value, axis: usize, options: GatherOptions) -> Result<Value> {
    let rank = x.rank();
    let others: Shape = (0..rank).filter(|&d| d != axis).collect();
    let dims = GatherDims {
        offset_dims: [].into_iter().collect(),
        collapsed_slice_dims: [axis].into_iter().collect(),
        start_index_map: [axis].into_iter().collect(),
        operand_batching_dims: others.iter().copied().collect(),
        start_indices_batching_dims: others.iter().copied().collect(),
    };
    let sizes: Shape = x.shape().iter().map(|&n| n.min(1)).collect();
    gather(x, &with_unit_axes(indices, &[rank])?, &dims, &sizes, options)
}
