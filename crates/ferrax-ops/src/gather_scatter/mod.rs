//! Indexed reads and writes: `gather` and the scatters.
//!
//! Both follow XLA's dimension numbers with batching dimensions; the index vector is the last axis of the
//! indices. A gather reads, for each index vector, one window of the operand; a scatter writes or combines one.
//! Each is the other's transpose. Source: XLA's operation semantics.
//! Read next: [`gather`](mod@gather), then [`scatter`](mod@scatter); `multiply.rs` for the slopes of products, `take.rs` for the everyday forms.

mod gather;
mod multiply;
mod scatter;
mod take;

pub use gather::{Fill, GATHER, GatherOptions, GatherParams, gather};
pub use scatter::{
    SCATTER, SCATTER_ADD, SCATTER_MAX, SCATTER_MIN, SCATTER_MUL, SCATTER_SUB, ScatterOptions, ScatterParams, scatter,
};
pub use take::{take, take_along_axis};

use crate::registry::Primitive;
use ferrax_base::{DType, Scalar, Shape};
use ferrax_ir::reference::RefTensor;
use ferrax_ir::{Param, ParamValue};
use ferrax_loops::{GatherDims, IndexMode, ScatterDims};
use smallvec::SmallVec;

/// Axis numbers as Python prints a tuple.
fn tuple(dims: &[usize]) -> String {
    ferrax_base::shape::Tuple(dims).to_string()
}

/// The axis lists in `Name(first=(0,), second=())`, in order.
fn parse_numbers<const N: usize>(text: &Param, name: &str, fields: [&str; N]) -> Option<[Vec<usize>; N]> {
    let Param::Text(t) = text else { return None };
    let inner = t.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
    let mut out = [const { Vec::new() }; N];
    for (slot, field) in out.iter_mut().zip(fields) {
        let at = inner.find(&format!("{field}=("))? + field.len() + 1;
        let end = at + inner[at..].find(')')?;
        *slot = ParamValue::parse(&Param::Text(inner[at..=end].into()))?;
    }
    Some(out)
}

/// Gather's dimension numbers as a printable parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GatherNumbers(pub GatherDims);

impl ParamValue for GatherNumbers {
    fn print(&self) -> Param {
        let d = &self.0;
        Param::Text(format!(
            "GatherDimensionNumbers(offset_dims={}, collapsed_slice_dims={}, start_index_map={}, \
             operand_batching_dims={}, start_indices_batching_dims={})",
            tuple(&d.offset_dims),
            tuple(&d.collapsed_slice_dims),
            tuple(&d.start_index_map),
            tuple(&d.operand_batching_dims),
            tuple(&d.start_indices_batching_dims)
        ))
    }

    fn parse(text: &Param) -> Option<Self> {
        let fields = [
            "offset_dims",
            "collapsed_slice_dims",
            "start_index_map",
            "operand_batching_dims",
            "start_indices_batching_dims",
        ];
        let [offset, collapsed, map, operand, indices] = parse_numbers(text, "GatherDimensionNumbers", fields)?;
        Some(GatherNumbers(GatherDims {
            offset_dims: offset.into(),
            collapsed_slice_dims: collapsed.into(),
            start_index_map: map.into(),
            operand_batching_dims: operand.into(),
            start_indices_batching_dims: indices.into(),
        }))
    }
}

/// Scatter's dimension numbers as a printable parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScatterNumbers(pub ScatterDims);

impl ParamValue for ScatterNumbers {
    fn print(&self) -> Param {
        let d = &self.0;
        Param::Text(format!(
            "ScatterDimensionNumbers(update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, \
             operand_batching_dims={}, scatter_indices_batching_dims={})",
            tuple(&d.update_window_dims),
            tuple(&d.inserted_window_dims),
            tuple(&d.scatter_dims_to_operand_dims),
            tuple(&d.operand_batching_dims),
            tuple(&d.scatter_indices_batching_dims)
        ))
    }

    fn parse(text: &Param) -> Option<Self> {
        let fields = [
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "operand_batching_dims",
            "scatter_indices_batching_dims",
        ];
        let [window, inserted, map, operand, indices] = parse_numbers(text, "ScatterDimensionNumbers", fields)?;
        Some(ScatterNumbers(ScatterDims {
            update_window_dims: window.into(),
            inserted_window_dims: inserted.into(),
            scatter_dims_to_operand_dims: map.into(),
            operand_batching_dims: operand.into(),
            scatter_indices_batching_dims: indices.into(),
        }))
    }
}

/// The mode as a printable parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode(pub IndexMode);

impl ParamValue for Mode {
    fn print(&self) -> Param {
        let name = match self.0 {
            IndexMode::Clip => "CLIP",
            IndexMode::FillOrDrop => "FILL_OR_DROP",
            IndexMode::PromiseInBounds => "PROMISE_IN_BOUNDS",
        };
        Param::Text(format!("GatherScatterMode.{name}"))
    }

    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        Some(Mode(match t.strip_prefix("GatherScatterMode.")? {
            "CLIP" => IndexMode::Clip,
            "FILL_OR_DROP" => IndexMode::FillOrDrop,
            "PROMISE_IN_BOUNDS" => IndexMode::PromiseInBounds,
            _ => return None,
        }))
    }
}

/// What gather gives for indices outside the operand when the caller names nothing: NaN, or the integer value that
/// stands furthest from others, as JAX chooses it.
pub fn default_fill(dtype: DType) -> Scalar {
    if dtype.is_inexact() {
        Scalar::from_f64(dtype, f64::NAN)
    } else if dtype.is_signed() {
        ferrax_loops::kind::lowest(dtype)
    } else if dtype.is_unsigned() || dtype.is_bool() {
        ferrax_loops::kind::highest(dtype)
    } else {
        Scalar { dtype, bits: u128::from(u64::MAX) }
    }
}

/// Axes `0..rank` that are in none of the lists.
fn remaining(rank: usize, a: &[usize], b: &[usize]) -> Shape {
    (0..rank).filter(|d| !a.contains(d) && !b.contains(d)).collect()
}

/// The window that an index vector selects, for the references: its start on every operand axis, or `None` when a
/// window that leaves the operand is to be filled or dropped.
struct Windows<'a> {
    operand: &'a [usize],
    /// Window size on every operand axis.
    sizes: &'a [usize],
    /// Operand axis of each component of the index vector.
    map: &'a [usize],
    operand_batch: &'a [usize],
    indices_batch: &'a [usize],
    mode: IndexMode,
}

impl Windows<'_> {
    fn start(&self, indices: &RefTensor, batch: &[usize]) -> Option<Shape> {
        let mut start: Shape = SmallVec::from_elem(0, self.operand.len());
        for (component, &d) in self.map.iter().enumerate() {
            let mut at = Shape::from_slice(batch);
            at.push(component);
            let last = (self.operand[d] - self.sizes[d]) as i64;
            let raw = indices.at(&at);
            let value =
                if raw.dtype.is_unsigned() { i64::try_from(raw.bits).unwrap_or(i64::MAX) } else { raw.to_i64() };
            if self.mode == IndexMode::FillOrDrop && !(0..=last).contains(&value) {
                return None;
            }
            start[d] = value.clamp(0, last) as usize;
        }
        for (&d, &b) in self.operand_batch.iter().zip(self.indices_batch) {
            start[d] = batch[b];
        }
        Some(start)
    }
}

/// The primitives of this folder.
pub(crate) static PRIMITIVES: &[&'static dyn Primitive] =
    &[&GATHER, &SCATTER, &SCATTER_ADD, &SCATTER_SUB, &SCATTER_MUL, &SCATTER_MIN, &SCATTER_MAX];
