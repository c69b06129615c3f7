//! `x[…]` and `x.at[…].get(…)`.

use super::direct::Region;
use super::plan::{Access, plan};
use super::{Index, Part, Resolved, direct_operand, inside, resolve};
use ferrax_base::symbolic::{Operation, at_least, dims, is_symbolic};
use ferrax_base::{DType, Result, Scalar, Shape};
use ferrax_ir::{Lit, Value};
use ferrax_loops::IndexMode;
use ferrax_ops::common::with_unit_axes;
use ferrax_ops::dynamic_slice::dynamic_slice;
use ferrax_ops::gather_scatter::{GatherOptions, gather};
use ferrax_ops::slice::slice;
use ferrax_ops::{reshape, rev, size_value, squeeze};
use smallvec::{SmallVec, smallvec};

/// Results above this many bytes go through the engine, which has more than one thread.
const DIRECT_LIMIT: usize = 256 << 10;

/// What `x.at[…].get` takes besides the index.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// What out-of-bounds entries give; `None` promises that there are none (they are clamped).
    pub mode: Option<IndexMode>,
    /// The value of out-of-bounds entries in mode `FillOrDrop`.
    pub fill: Option<Scalar>,
    /// The indices are promised to be sorted.
    pub sorted: bool,
    /// The indices are promised to be unique.
    pub unique: bool,
    /// Negative integers do not count from the end: they are out of bounds.
    pub raw: bool,
}

/// `x[indices]`.
///
/// ```
/// use ferrax::numpy::indexing::{Index, index};
/// use ferrax::{Value, function::Data};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(index(&x, &[Index::Ellipsis, Index::Int(-1)])?.to_vec()?, [2.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn index(x: &Value, indices: &[Index]) -> Result<Value> {
    get(x, indices, ReadOptions::default())
}

/// `x.at[indices].get(…)`.
pub fn get(x: &Value, indices: &[Index], options: ReadOptions) -> Result<Value> {
    let moved = super::where_told(x, indices, "gather")?;
    let x = moved.as_ref().unwrap_or(x);
    let Resolved { parts, inserted } = resolve(x.shape(), indices, options.raw, options.mode.is_none())?;
    let x = &with_unit_axes(x, &inserted)?;
    let fills = options.mode == Some(IndexMode::FillOrDrop);
    let dynamic = parts.iter().any(|p| matches!(p, Part::Array(_)));
    if !dynamic && (!fills || in_bounds(x.shape(), &parts)) {
        return basic(x, &parts);
    }
    let window = |p: &Part| match p {
        Part::Array(v) => v.rank() == 0,
        _ => true,
    };
    if !fills && parts.iter().all(window) {
        return dynamic_window(x, &parts, options.raw);
    }
    let plan = plan(x.shape(), &parts, options.raw, Access::Read)?;
    let gathering = GatherOptions {
        mode: options.mode.unwrap_or(IndexMode::PromiseInBounds),
        fill: options.fill,
        sorted: options.sorted || plan.ordered,
        unique: options.unique || plan.ordered,
    };
    let out = gather(x, &plan.indices, &plan.dims, &plan.slice_sizes, gathering)?;
    reshape(&out, &plan.shape)
}

/// The parts that concern operand axes, with the axis.
fn axis_parts(parts: &[Part]) -> impl Iterator<Item = (usize, &Part)> {
    parts.iter().filter(|p| !matches!(p, Part::New)).enumerate()
}

fn in_bounds(shape: &[usize], parts: &[Part]) -> bool {
    let inside = |i: i64, n: usize| Ok::<_, ferrax_base::Error>(at_least(i, 0)? && !at_least(i, n as i64)?);
    // where nobody knows, the index is looked up as one that is known at run time
    axis_parts(parts).all(|(d, p)| !matches!(p, Part::Int(i) if !inside(*i, shape[d]).unwrap_or(false)))
}

/// Integers, slices and new axes only.
fn basic(x: &Value, parts: &[Part]) -> Result<Value> {
    if let Some(array) = direct_operand(x)
        && let Some(region) = Region::of(array.aval(), parts, true)
    {
        if region.shape == array.aval().shape && whole(x.shape(), parts) {
            return Ok(x.clone());
        }
        let bytes = ferrax_base::shape::size(&region.shape) * array.aval().dtype.size();
        if bytes <= DIRECT_LIMIT {
            return Ok(Value::Array(region.read(array)?));
        }
    }
    let rank = x.rank();
    let (mut start, mut limit, mut strides): (Shape, Shape, Shape) = Default::default();
    let (mut reversed, mut dropped): (Shape, Shape) = Default::default();
    for (d, part) in axis_parts(parts) {
        let (first, past, step) = match part {
            Part::Int(i) => {
                dropped.push(d);
                let i = inside(*i, x.shape()[d])? as usize;
                (i, dims(Operation::Add, i, 1)?, 1)
            }
            Part::Slice { len: 0, start, .. } => (*start, *start, 1),
            Part::Slice { start, step, len } => {
                let size = step.unsigned_abs();
                let (first, past) = ends(*start, *len, *step)?;
                if *step < 0 {
                    reversed.push(d);
                }
                (first, past, size)
            }
            _ => (0, x.shape()[d], 1),
        };
        start.push(first);
        limit.push(past);
        strides.push(step);
    }
    debug_assert_eq!(start.len(), rank);
    let unit = strides.iter().all(|&s| s == 1);
    let far = matches!(x, Value::Array(a) if !a.device().on_cpu() && !a.device().is_sharded());
    let out = if far && unit && start.iter().all(|s| i32::try_from(*s).is_ok()) {
        // where programs take milliseconds to compile, one does for all places
        let starts: Vec<Value> = start.iter().map(|s| weak(*s as i64)).collect::<Result<_>>()?;
        let sizes: Shape = start.iter().zip(&limit).map(|(s, l)| l - s).collect();
        dynamic_slice(x, &starts, &sizes, &[false])?
    } else {
        slice(x, &start, &limit, if unit { None } else { Some(&strides) })?
    };
    let out = if reversed.is_empty() { out } else { rev(&out, &reversed)? };
    let out = if dropped.is_empty() { out } else { squeeze(&out, &dropped)? };
    new_axes(&out, parts)
}

/// Where the entries of a slice lie: from the first place up to the last one, and one more. A symbolic number of entries
/// may be none.
fn ends(start: usize, len: usize, step: isize) -> Result<(usize, usize)> {
    let span = dims(Operation::Mul, dims(Operation::Sub, len, 1)?, step.unsigned_abs())?;
    if step < 0 {
        let (first, past) = (dims(Operation::Sub, start, span)?, dims(Operation::Add, start, 1)?);
        return Ok((if is_symbolic(len) { dims(Operation::Min, first, past)? } else { first }, past));
    }
    let past = dims(Operation::Add, dims(Operation::Add, start, span)?, 1)?;
    Ok((start, if is_symbolic(len) && step > 1 { dims(Operation::Max, past, start)? } else { past }))
}

fn whole(shape: &[usize], parts: &[Part]) -> bool {
    axis_parts(parts).all(|(d, p)| matches!(p, Part::Slice { start: 0, step: 1, len } if *len == shape[d]))
        && parts.len() == shape.len()
}

/// The new axes of an index, once integers have lost theirs.
fn new_axes(x: &Value, parts: &[Part]) -> Result<Value> {
    let kept = parts.iter().filter(|p| !matches!(p, Part::Int(_) | Part::Array(_)));
    let at: SmallVec<[usize; 4]> = kept.enumerate().filter(|(_, p)| matches!(p, Part::New)).map(|(i, _)| i).collect();
    with_unit_axes(x, &at)
}

/// A start of a slice.
pub(super) fn weak(i: i64) -> Result<Value> {
    if is_symbolic(i as usize) {
        return size_value(i as usize, DType::I32);
    }
    Ok(Value::Lit(Lit { scalar: Scalar::from_i64(DType::I32, i), weak: true }))
}

/// Integers known at run time beside static integers and slices: one dynamic slice, then static slices.
fn dynamic_window(x: &Value, parts: &[Part], raw: bool) -> Result<Value> {
    let mut starts = Vec::with_capacity(x.rank());
    let mut sizes = Shape::from_slice(x.shape());
    let mut dropped = Shape::new();
    let mut rest: SmallVec<[Part; 6]> = smallvec![];
    for (d, part) in axis_parts(parts) {
        match part {
            Part::Array(v) => {
                if x.shape()[d] == 0 {
                    ferrax_base::bail!(Index, "index is out of bounds for axis {d} with size 0");
                }
                // Every i32 holds what a narrower index does.
                let dtype = if v.dtype().bits() < 32 { DType::I32 } else { v.dtype() };
                let alone = parts.len() == 1 && v.dtype() == dtype;
                starts.push(if alone { v.clone() } else { ferrax_ops::convert_element_type(v, dtype)? });
            }
            Part::Int(i) => starts.push(weak(inside(*i, x.shape()[d])?)?),
            Part::Slice { start, step: 1, len } => {
                starts.push(weak(*start as i64)?);
                sizes[d] = *len;
                continue;
            }
            _ => {
                starts.push(weak(0)?);
                continue;
            }
        }
        sizes[d] = 1;
        dropped.push(d);
    }
    let out = squeeze(&dynamic_slice(x, &starts, &sizes, &[!raw])?, &dropped)?;
    for part in parts {
        match part {
            Part::Slice { step: 1, len, .. } => rest.push(Part::Slice { start: 0, step: 1, len: *len }),
            Part::Slice { .. } | Part::New => rest.push(part.clone()),
            Part::Int(_) | Part::Array(_) => {}
        }
    }
    basic(&out, &rest)
}
