//! One gather or scatter for an index: which axes are windows, which are looked up, and the index vectors.
//!
//! Result axes keep NumPy's order: the joint axes of the integer arrays stand where the first of them stood when they
//! are neighbours, and first of all otherwise. Contiguous slices are windows; slices with steps are looked up.

use super::Part;
use ferrax_base::shape::{Tuple, broadcast, strides};
use ferrax_base::symbolic::is_symbolic;
use ferrax_base::{Aval, Buffer, DType, Result, Shape, bail, config};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{Array, Value};
use ferrax_loops::{GatherDims, ScatterDims};
use ferrax_ops::common::stretch;
use ferrax_ops::dynamic_slice::{index_as, wrap_index};
use ferrax_ops::slice::concatenate;
use ferrax_ops::{add, iota, mul, size_value};
use ferrax_transform::structural::broadcast_in_dim;
use smallvec::SmallVec;

/// How an indexed read or write is done by one gather or scatter.
pub(super) struct Plan {
    pub dims: GatherDims,
    pub slice_sizes: Shape,
    /// Index vectors, along the last axis.
    pub indices: Value,
    /// The result's shape without new axes: what gather gives and scatter's updates have.
    pub window_shape: Shape,
    /// The result's shape with new axes.
    pub shape: Shape,
    /// No two index vectors can be equal, and they ascend.
    pub ordered: bool,
}

impl Plan {
    /// The dimension numbers for scatter.
    pub fn scatter_dims(&self) -> ScatterDims {
        ScatterDims {
            update_window_dims: self.dims.offset_dims.clone(),
            inserted_window_dims: self.dims.collapsed_slice_dims.clone(),
            scatter_dims_to_operand_dims: self.dims.start_index_map.clone(),
            ..ScatterDims::default()
        }
    }
}

/// One component of the index vectors, before broadcasting: its values, and its axes among the index axes.
enum Component {
    Scalar(i64),
    Steps { start: usize, step: isize, axis: usize },
    Array(Value),
}

struct Draft {
    /// Operand axis of each component, and the component.
    components: Vec<(usize, Component)>,
    collapsed: SmallVec<[usize; 4]>,
    offset_dims: SmallVec<[usize; 4]>,
    slice_sizes: Shape,
    window_shape: Shape,
    shape: Shape,
    /// Sizes of the index axes, in result order.
    rows: Shape,
    /// Where the arrays' joint axes are among the index axes.
    joint_at: usize,
    joint: Shape,
}

/// The joint shape of the integer arrays.
fn joint_shape(parts: &[Part]) -> Result<Shape> {
    let mut out = Shape::new();
    for part in parts {
        if let Part::Array(v) = part {
            match broadcast(&out, v.shape()) {
                Some(s) => out = s,
                None => {
                    let shapes = parts.iter().filter_map(|p| match p {
                        Part::Array(v) => Some(Tuple(v.shape()).to_string()),
                        _ => None,
                    });
                    let shapes = shapes.collect::<Vec<_>>().join(", ");
                    bail!(Value, "Incompatible shapes for broadcasting: shapes=[{shapes}]");
                }
            }
        }
    }
    Ok(out)
}

/// Whether the arrays and integers stand side by side.
fn neighbours(parts: &[Part]) -> bool {
    let advanced = |p: &Part| matches!(p, Part::Int(_) | Part::Array(_));
    let ends = parts.iter().position(advanced).zip(parts.iter().rposition(advanced));
    ends.is_none_or(|(first, last)| parts[first..=last].iter().all(advanced))
}

fn draft(x: &[usize], parts: &[Part], access: Access) -> Result<Draft> {
    let joint = joint_shape(parts)?;
    let any = parts.iter().any(|p| matches!(p, Part::Array(_)));
    let in_place = neighbours(parts);
    let mut d = Draft {
        components: Vec::new(),
        collapsed: SmallVec::new(),
        offset_dims: SmallVec::new(),
        slice_sizes: Shape::from_slice(x),
        window_shape: Shape::new(),
        shape: Shape::new(),
        rows: Shape::new(),
        joint_at: 0,
        joint: joint.clone(),
    };
    let mut placed = !any;
    let place = |d: &mut Draft| {
        d.joint_at = d.rows.len();
        for out in [&mut d.rows, &mut d.window_shape, &mut d.shape] {
            out.extend_from_slice(&joint);
        }
    };
    if any && !in_place {
        place(&mut d);
        placed = true;
    }
    let (mut axis, mut absent) = (0, None);
    for part in parts {
        match part {
            Part::New => {
                d.shape.push(1);
                continue;
            }
            Part::Int(_) | Part::Array(_) => {
                if !placed {
                    place(&mut d);
                    placed = true;
                }
                if x[axis] == 0 && access == Access::Read {
                    absent.get_or_insert(axis);
                }
                d.slice_sizes[axis] = x[axis].min(1);
                d.collapsed.push(axis);
                d.components.push((
                    axis,
                    match part {
                        Part::Array(v) => Component::Array(v.clone()),
                        Part::Int(i) => Component::Scalar(*i),
                        _ => bail!(Internal, "not an advanced part"),
                    },
                ));
            }
            Part::Slice { start, step, len } if *step == 1 => {
                d.offset_dims.push(d.window_shape.len());
                d.window_shape.push(*len);
                d.shape.push(*len);
                d.slice_sizes[axis] = *len;
                if *len != x[axis] {
                    d.components.push((axis, Component::Scalar(*start as i64)));
                }
            }
            Part::Slice { start, step, len } => {
                d.components.push((axis, Component::Steps { start: *start, step: *step, axis: d.rows.len() }));
                d.collapsed.push(axis);
                d.slice_sizes[axis] = x[axis].min(1);
                for out in [&mut d.rows, &mut d.window_shape, &mut d.shape] {
                    out.push(*len);
                }
            }
        }
        axis += 1;
    }
    if let Some(axis) = absent.filter(|_| !d.shape.contains(&0)) {
        bail!(Index, "index is out of bounds for axis {axis} with size 0");
    }
    Ok(d)
}

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Elements are read: an axis of size 0 has none to give, which matters where some are asked for.
    Read,
    /// Elements are written: updates beyond the axis are dropped, all of them where its size is 0.
    Write,
}

/// The plan for a read or write of an operand of shape `x`.
pub(super) fn plan(x: &[usize], parts: &[Part], raw: bool, access: Access) -> Result<Plan> {
    let d = draft(x, parts, access)?;
    let ascending = |(_, c): &(usize, Component)| match c {
        Component::Scalar(_) => true,
        Component::Steps { step, .. } => *step > 0,
        Component::Array(v) => v.rank() == 0,
    };
    let ordered = d.components.iter().all(ascending);
    let indices = index_vectors(x, &d, raw)?;
    Ok(Plan {
        dims: GatherDims {
            offset_dims: d.offset_dims,
            collapsed_slice_dims: d.collapsed,
            start_index_map: d.components.iter().map(|(a, _)| *a).collect(),
            ..GatherDims::default()
        },
        slice_sizes: d.slice_sizes,
        indices,
        window_shape: d.window_shape,
        shape: d.shape,
        ordered,
    })
}

fn index_vectors(x: &[usize], d: &Draft, raw: bool) -> Result<Value> {
    let concrete = |(_, c): &(usize, Component)| !matches!(c, Component::Array(v) if matches!(v, Value::Tracer(_)));
    if is_eager() && d.components.iter().all(concrete) {
        return known_vectors(x, d, raw);
    }
    let wide = x.iter().any(|&n| n > i32::MAX as usize && !is_symbolic(n)) && config::x64();
    let dtype = if wide { DType::I64 } else { DType::I32 };
    let mut shape = d.rows.clone();
    shape.push(1);
    let mut columns = Vec::with_capacity(d.components.len());
    for (axis, component) in &d.components {
        let (values, dims): (Value, Shape) = match component {
            Component::Scalar(i) if is_symbolic(*i as usize) => (size_value(*i as usize, dtype)?, Shape::new()),
            Component::Scalar(i) => (Value::int(dtype, saturate(*i, dtype)), Shape::new()),
            Component::Steps { start, step, axis: at } => {
                let line = iota(dtype, &[d.rows[*at]], 0)?;
                let line = mul(&line, &Value::int(dtype, *step as i64))?;
                (add(&line, &size_value(*start, dtype)?)?, [*at].into_iter().collect())
            }
            Component::Array(v) => {
                let v = if raw { v.clone() } else { wrap_index(v, x[*axis])? };
                let v = index_as(&v, x[*axis], dtype)?;
                let first = d.joint_at + d.joint.len() - v.rank();
                (v.clone(), (first..first + v.rank()).collect())
            }
        };
        // Axes of size one stretch to the joint shape.
        let rank = values.rank();
        let target: Shape = dims.iter().map(|&at| d.rows[at]).collect();
        let values = if rank == 0 { values } else { stretch(&values, &target)? };
        columns.push(broadcast_in_dim(&values, &shape, &dims)?);
    }
    if columns.is_empty() {
        shape[d.rows.len()] = 0;
        return Ok(Value::Array(Array::new(Aval::new(dtype, &shape), Buffer::allocate(0)?)));
    }
    concatenate(&columns, d.rows.len())
}

fn saturate(i: i64, dtype: DType) -> i64 {
    if dtype == DType::I64 { i } else { i.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) }
}

/// The integers of an index array, with negative ones counted from the end.
fn read_integers(v: &Value, size: usize) -> Result<Vec<i32>> {
    let Some(array) = v.to_array() else { bail!(Internal, "a traced index where a concrete one must be") };
    let array = array?;
    let pin = array.pin()?;
    let n = size as i64;
    let wrap = |i: i64| {
        let i = if i < 0 { i.saturating_add(n) } else { i };
        i.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    };
    let out = match array.aval().dtype {
        DType::I32 => pin.typed::<i32>().iter().map(|&i| if i < 0 { wrap(i64::from(i)) } else { i }).collect(),
        DType::I64 => pin.typed::<i64>().iter().map(|&i| wrap(i)).collect(),
        DType::I16 => pin.typed::<i16>().iter().map(|&i| wrap(i64::from(i))).collect(),
        DType::I8 => pin.typed::<i8>().iter().map(|&i| wrap(i64::from(i))).collect(),
        DType::U8 => pin.typed::<u8>().iter().map(|&i| i32::from(i)).collect(),
        DType::U16 => pin.typed::<u16>().iter().map(|&i| i32::from(i)).collect(),
        DType::U32 => pin.typed::<u32>().iter().map(|&i| i32::try_from(i).unwrap_or(i32::MAX)).collect(),
        DType::U64 => pin.typed::<u64>().iter().map(|&i| i32::try_from(i).unwrap_or(i32::MAX)).collect(),
        dtype => {
            let scalar = |b: &[u8]| wrap(ferrax_base::Scalar::from_bytes(dtype, b).to_i64());
            pin.bytes().chunks_exact(dtype.size()).map(scalar).collect()
        }
    };
    Ok(out)
}

/// The index vectors when every component is known: written at once.
fn known_vectors(x: &[usize], d: &Draft, raw: bool) -> Result<Value> {
    let width = d.components.len();
    let count = ferrax_base::shape::size(&d.rows);
    let mut shape = d.rows.clone();
    shape.push(width);
    let mut out = vec![0i32; count * width];
    let row_strides = strides(&d.rows);
    for (c, (axis, component)) in d.components.iter().enumerate() {
        match component {
            Component::Scalar(i) => {
                let v = saturate(*i, DType::I32) as i32;
                out.iter_mut().skip(c).step_by(width).for_each(|o| *o = v);
            }
            Component::Steps { start, step, axis: at } => {
                for row in 0..count {
                    let n = (row / row_strides[*at]) % d.rows[*at];
                    out[row * width + c] = (*start as isize + n as isize * step) as i32;
                }
            }
            Component::Array(v) => {
                let values = read_integers(v, if raw { 0 } else { x[*axis] })?;
                let own = strides(v.shape());
                let first = d.joint_at + d.joint.len() - v.rank();
                let dense = v.shape() == d.rows.as_slice();
                for row in 0..count {
                    let from = if dense {
                        row
                    } else {
                        let axes = v.shape().iter().zip(&own).enumerate();
                        let place = |(i, (&n, &s)): (usize, (&usize, &usize))| {
                            if n == 1 { 0 } else { (row / row_strides[first + i]) % d.rows[first + i] * s }
                        };
                        axes.map(place).sum()
                    };
                    out[row * width + c] = values[from];
                }
            }
        }
    }
    Ok(Value::Array(Array::new(Aval::new(DType::I32, &shape), Buffer::from_slice(&out)?)))
}
