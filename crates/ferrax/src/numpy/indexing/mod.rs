//! NumPy's indexing, `x[…]` and `x.at[…]`: integers, slices, `...`, new axes, integer arrays and boolean masks.
//!
//! An index is resolved once against the operand's shape ([`resolve`]): masks become integer arrays, `...` becomes
//! slices, bounds are clamped as Python does. What is static then takes a slice, or a direct copy when the operand
//! is concrete; one dynamic window takes a dynamic slice; the rest is one gather or scatter (`plan.rs`).
//! Source: NumPy's "Indexing on ndarrays". Read next: `read.rs`, `update.rs`.

mod check;
mod direct;
mod plan;
mod read;
mod update;

pub use check::check_index;
pub use direct::row;
pub use read::{ReadOptions, get, index};
pub use update::{Update, UpdateOptions, safe_to_cast, update};

use ferrax_base::config::Flag;
use ferrax_base::shape::Tuple;
use ferrax_base::symbolic::{Operation, apply, at_least, difference, is_symbolic};
use ferrax_base::{Aval, Buffer, DType, Error, ErrorKind, Result, bail};
use ferrax_ir::trace::{is_eager, leaked};
use ferrax_ir::{Array, Tracer, Value};
use smallvec::SmallVec;
use std::cell::Cell;
use std::fmt;

/// One part of an index: what stands between two commas of `x[…]`.
#[derive(Clone, Debug)]
pub enum Index {
    /// An integer.
    Int(i64),
    /// `start:stop:step`.
    #[allow(missing_docs)]
    Slice { start: Option<i64>, stop: Option<i64>, step: Option<i64> },
    /// `...`.
    Ellipsis,
    /// `None`.
    NewAxis,
    /// `True` or `False`: a new axis of size one or zero.
    Bool(bool),
    /// An integer array, or an integer known at run time.
    Array(Value),
    /// A boolean array.
    Mask(Value),
}

impl Index {
    /// The whole of an axis.
    pub const ALL: Index = Index::Slice { start: None, stop: None, step: None };
}

/// The parts of an index.
pub type Indices = SmallVec<[Index; 4]>;

/// A resolved part: what happens to one operand axis, or where a new one goes.
#[derive(Clone, Debug)]
enum Part {
    /// One entry; a static integer wrapped into range unless it is out of bounds.
    Int(i64),
    /// `len` entries from `start`, `step` apart (negative steps go down).
    Slice { start: usize, step: isize, len: usize },
    /// Entries at integers known at run time (rank 0), or at an array of integers.
    Array(Value),
    /// A new axis of size one.
    New,
}

/// An index resolved against a shape.
struct Resolved {
    parts: SmallVec<[Part; 6]>,
    /// Operand axes of size one to be inserted first, for boolean scalars; places in the new shape.
    inserted: SmallVec<[usize; 2]>,
}

struct TracedMask(Tracer);

impl fmt::Display for TracedMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aval: &Aval = self.0.aval();
        write!(
            f,
            "Array boolean indices must be concrete; got {aval}\n{}\nThe shape of the result would depend on the mask's \
             values. Use jnp.where(mask, x, y) to choose between values, or jnp.nonzero(mask, size=n) for indices of a \
             static number of entries.",
            self.0.origin()
        )
    }
}

/// The concrete array of a mask; the error of traced masks otherwise.
fn concrete_mask(mask: &Value) -> Result<Array> {
    let mut value = mask.clone();
    while let Value::Tracer(t) = &value {
        match t.concrete() {
            Some(v) => value = v,
            None if !t.trace().is_live() => return Err(leaked(t)),
            None => return Err(Error::from(ErrorKind::BooleanIndex(Box::new(TracedMask(t.clone()))))),
        }
    }
    match value.to_array() {
        Some(a) => a,
        None => bail!(Internal, "a concrete mask without data"),
    }
}

/// The integer arrays that a mask stands for, one for each of its axes.
fn nonzero(mask: &Array) -> Result<Vec<Value>> {
    let shape = &mask.aval().shape;
    let pin = mask.pin()?;
    let flat: Vec<usize> = pin.bytes().iter().enumerate().filter(|(_, b)| **b != 0).map(|(i, _)| i).collect();
    let strides = ferrax_base::shape::strides(shape);
    let column = |d: usize| {
        let entries: Vec<i32> = flat.iter().map(|i| ((i / strides[d]) % shape[d]) as i32).collect();
        Ok(Value::Array(Array::new(Aval::new(DType::I32, &[flat.len()]), Buffer::from_slice(&entries)?)))
    };
    (0..shape.len()).map(column).collect()
}

#[cold]
fn too_many(rank: usize, used: usize) -> Error {
    ferrax_base::error!(Index, "Too many indices: array is {rank}-dimensional, but {used} were indexed")
}

/// An integer index that is known now: a constant, or a concrete rank-0 array. What an i64 does not hold is beyond any axis.
fn known_integer(v: &Value) -> Option<i64> {
    let s = match v {
        Value::Lit(l) => l.scalar,
        Value::Array(a) if a.aval().rank() == 0 => a.item().ok()?,
        _ => return None,
    };
    Some(if s.dtype.is_unsigned() { i64::try_from(s.bits as u64).unwrap_or(i64::MAX) } else { s.to_i64() })
}

/// Bounds of a slice on an axis of `size`, as Python's `slice.indices`: start, step, number of entries.
pub fn slice_bounds(
    start: Option<i64>,
    stop: Option<i64>,
    step: Option<i64>,
    size: usize,
) -> Result<(usize, isize, usize)> {
    let n = size as i64;
    let step = step.unwrap_or(1);
    if step == 0 {
        bail!(Value, "slice step cannot be zero");
    }
    if [start.unwrap_or(0), stop.unwrap_or(0), n].iter().any(|&v| is_symbolic(v as usize)) {
        return symbolic_bounds(start, stop, step, n);
    }
    let (low, high) = if step < 0 { (-1, n - 1) } else { (0, n) };
    let clamp = |v: i64| if v < 0 { v.saturating_add(n).max(low) } else { v.min(high) };
    let first = start.map_or(if step < 0 { high } else { low }, clamp);
    let last = stop.map_or(if step < 0 { low } else { high }, clamp);
    let span = if step < 0 { first - last } else { last - first };
    let len = if span <= 0 { 0 } else { (span - 1) / step.saturating_abs() + 1 };
    let start = if len == 0 { first.clamp(0, n) } else { first };
    Ok((start as usize, if len <= 1 { step.signum() } else { step } as isize, len as usize))
}

/// The same where a bound or the size is symbolic.
#[cold]
fn symbolic_bounds(start: Option<i64>, stop: Option<i64>, step: i64, n: i64) -> Result<(usize, isize, usize)> {
    let last = difference(&[n], &[1])?;
    let (low, high) = if step < 0 { (-1, last) } else { (0, n) };
    let clamp = |v: i64| {
        if at_least(v, 0)? {
            apply(Operation::Min, high, v)
        } else {
            apply(Operation::Max, difference(&[v, n], &[])?, low)
        }
    };
    let first = start.map_or(Ok(if step < 0 { high } else { low }), clamp)?;
    let end = stop.map_or(Ok(if step < 0 { low } else { high }), clamp)?;
    let span = if step < 0 { difference(&[first], &[end]) } else { difference(&[end], &[first]) }?;
    let len = ferrax_ops::common::places(span, 1, step.unsigned_abs() as usize)?;
    Ok((apply(Operation::Max, first, 0)? as usize, if len <= 1 { step.signum() } else { step } as isize, len))
}

/// An integer moved into the axis.
fn inside(i: i64, size: usize) -> Result<i64> {
    apply(Operation::Max, apply(Operation::Min, i, difference(&[size as i64], &[1])?)?, 0)
}

thread_local! {
    /// Whether known integers outside of their axes are looked up as others are.
    static LOOKED_UP: Cell<bool> = const { Cell::new(false) };
}

/// Says whether the check mode leaves known integers outside of their axes in programs on this thread, for who looks
/// for them there; gives what held before.
pub fn look_up_known(on: bool) -> bool {
    LOOKED_UP.replace(on)
}

/// A known integer as a part of an index.
fn static_part(i: i64, axis: usize, size: usize, raw: bool, strict: bool) -> Result<Part> {
    if size == 0 {
        bail!(Index, "index is out of bounds for axis {axis} with size 0");
    }
    let wrapped = if !raw && !at_least(i, 0)? { difference(&[i, size as i64], &[])? } else { i };
    if is_symbolic(wrapped as usize) || is_symbolic(size) {
        return Ok(Part::Int(wrapped));
    }
    let checked = Flag::CheckIndices.get() || Flag::CheckTracedIndices.get();
    if strict && checked && !(0..size as i64).contains(&wrapped) {
        if LOOKED_UP.get() {
            return Ok(Part::Array(read::weak(i)?));
        }
        bail!(Index, "index {i} is out of bounds for axis {axis} with size {size}");
    }
    Ok(Part::Int(wrapped))
}

fn check_mask(mask: &Value, shape: &[usize], axis: usize, at: usize) -> Result<()> {
    let rank = mask.rank();
    if axis + rank > shape.len() {
        return Err(too_many(shape.len(), axis + rank));
    }
    let expected = &shape[axis..axis + rank];
    if mask.shape() != expected {
        bail!(
            Index,
            "boolean index did not match shape of indexed array in index {at}: got {}, expected {expected:?} of an \
             array of shape {}",
            Tuple(mask.shape()),
            Tuple(shape)
        );
    }
    Ok(())
}

/// Resolves an index against a shape; `raw` leaves negative integers as they are. Where no mode says what entries out
/// of range mean (`strict`), the check mode looks for them.
fn resolve(shape: &[usize], indices: &[Index], raw: bool, strict: bool) -> Result<Resolved> {
    let used: usize = indices
        .iter()
        .map(|i| match i {
            Index::Int(_) | Index::Slice { .. } | Index::Array(_) => 1,
            Index::Mask(m) => m.rank(),
            Index::Ellipsis | Index::NewAxis | Index::Bool(_) => 0,
        })
        .sum();
    if used > shape.len() {
        return Err(too_many(shape.len(), used));
    }
    let ellipses = indices.iter().filter(|i| matches!(i, Index::Ellipsis)).count();
    if ellipses > 1 {
        bail!(Index, "an index can only have a single ellipsis ('...')");
    }
    let mut out = Resolved { parts: SmallVec::new(), inserted: SmallVec::new() };
    let mut axis = 0;
    let whole = |axis: &mut usize, parts: &mut SmallVec<[Part; 6]>| {
        parts.push(Part::Slice { start: 0, step: 1, len: shape[*axis] });
        *axis += 1;
    };
    for (at, index) in indices.iter().enumerate() {
        match index {
            Index::Int(i) => {
                out.parts.push(static_part(*i, axis, shape[axis], raw, strict)?);
                axis += 1;
            }
            Index::Slice { start, stop, step } => {
                let (start, step, len) = slice_bounds(*start, *stop, *step, shape[axis])?;
                out.parts.push(Part::Slice { start, step, len });
                axis += 1;
            }
            Index::Ellipsis => (0..shape.len() - used).for_each(|_| whole(&mut axis, &mut out.parts)),
            Index::NewAxis => out.parts.push(Part::New),
            Index::Bool(b) => insert_bool(&mut out, axis, *b)?,
            Index::Array(v) => {
                if !v.dtype().is_integer() {
                    bail!(Type, "Indexer must have integer or boolean type, got indexer with type {}", v.dtype());
                }
                if strict && Flag::CheckTracedIndices.get() {
                    check::check(v, axis, shape[axis], 1, raw)?;
                }
                out.parts.push(match known_integer(v) {
                    Some(i) => static_part(i, axis, shape[axis], raw, strict)?,
                    None => Part::Array(v.clone()),
                });
                axis += 1;
            }
            Index::Mask(m) => {
                check_mask(m, shape, axis, at)?;
                let mask = concrete_mask(m)?;
                if m.rank() == 0 {
                    insert_bool(&mut out, axis, mask.item()?.is_nonzero())?;
                }
                out.parts.extend(nonzero(&mask)?.into_iter().map(Part::Array));
                axis += m.rank();
            }
        }
    }
    while axis < shape.len() {
        whole(&mut axis, &mut out.parts);
    }
    Ok(out)
}

/// A boolean scalar: an operand axis of size one is inserted and indexed by one zero, or by none.
fn insert_bool(out: &mut Resolved, axis: usize, value: bool) -> Result<()> {
    out.inserted.push(axis + out.inserted.len());
    let zeros = vec![0i32; usize::from(value)];
    let index = Array::new(Aval::new(DType::I32, &[zeros.len()]), Buffer::from_slice(&zeros)?);
    out.parts.push(Part::Array(Value::Array(index)));
    Ok(())
}

/// The operand where integer indices are committed to; `None` where it stays.
fn where_told(x: &Value, indices: &[Index], operation: &str) -> Result<Option<Value>> {
    let places = indices.iter().filter_map(|i| if let Index::Array(v) = i { Some(v) } else { None });
    crate::device::where_told(x, places, operation)
}

/// The concrete array to work on directly: operations run now, and the operand is data.
fn direct_operand(x: &Value) -> Option<&Array> {
    match x {
        Value::Array(a) if a.device().is_cpu() && is_eager() && !crate::device::moves(a) => Some(a),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_pythons() {
        assert_eq!(slice_bounds(None, None, None, 5).unwrap(), (0, 1, 5));
        assert_eq!(slice_bounds(Some(-2), None, None, 5).unwrap(), (3, 1, 2));
        assert_eq!(slice_bounds(None, None, Some(-1), 5).unwrap(), (4, -1, 5));
        assert_eq!(slice_bounds(Some(3), Some(1), Some(-1), 5).unwrap(), (3, -1, 2));
        assert_eq!(slice_bounds(Some(9), Some(12), None, 5).unwrap(), (5, 1, 0));
        assert_eq!(slice_bounds(Some(1), Some(5), Some(2), 5).unwrap(), (1, 2, 2));
        assert_eq!(slice_bounds(Some(4), None, Some(-3), 5).unwrap(), (4, -3, 2));
        assert_eq!(slice_bounds(None, Some(-9), Some(-1), 3).unwrap(), (2, -1, 3));
        assert_eq!(slice_bounds(None, None, None, 0).unwrap(), (0, 1, 0));
        assert_eq!(slice_bounds(None, None, Some(-1), 0).unwrap(), (0, -1, 0));
        assert!(slice_bounds(None, None, Some(0), 5).is_err());
    }

    #[test]
    fn parts_cover_every_axis() {
        let r =
            resolve(&[4, 5, 6], &[Index::Int(-1), Index::Ellipsis, Index::NewAxis, Index::ALL], false, false).unwrap();
        assert_eq!(r.parts.len(), 4);
        assert!(matches!(r.parts[0], Part::Int(3)));
        assert!(matches!(r.parts[2], Part::New));
        assert!(resolve(&[4], &[Index::Int(0), Index::Int(0)], false, false).is_err());
        assert!(resolve(&[4], &[Index::Ellipsis, Index::Ellipsis], false, false).is_err());
        assert!(resolve(&[0], &[Index::Int(0)], false, false).is_err());
    }
}
