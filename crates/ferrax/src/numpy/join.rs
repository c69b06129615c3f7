//! Arrays joined along an axis. Operands have or get their common dtype.
//!
//! Read next: `products.rs`.

use super::at_once::{at_once, node, node_as};
use super::axes::canonical_axis;
use super::promote::{self, Rule};
use ferrax_base::shape::{Tuple, total};
use ferrax_base::{Error, Result, bail, error};
use ferrax_ir::{Array, Value};
use ferrax_loops::Kind;
use ferrax_ops as ops;
use smallvec::SmallVec;
use std::borrow::Borrow;

/// Several arrays of one strong dtype that can be joined at once.
fn alike<V: Borrow<Value>>(parts: &[V]) -> Option<SmallVec<[&Array; 8]>> {
    let arrays: SmallVec<[&Array; 8]> = parts.iter().map(|p| at_once(p.borrow())).collect::<Option<_>>()?;
    let dtype = arrays[0].aval().dtype;
    let alike = arrays.len() > 1 && arrays.iter().all(|a| a.aval().dtype == dtype && !a.aval().weak);
    alike.then_some(arrays)
}

/// Operands brought to their common dtype.
fn common<V: Borrow<Value>>(parts: &[V]) -> Result<SmallVec<[Value; 8]>> {
    let mut values: SmallVec<[Value; 8]> = parts.iter().map(|p| p.borrow().clone()).collect();
    promote::dtypes(Rule::Common, &mut values)?;
    Ok(values)
}

/// The error of no arrays.
#[cold]
fn none(name: &str) -> Error {
    error!(Value, "Need at least one array to {name}.")
}

/// Arrays joined along an axis that they have; along the others they have one length.
///
/// Errors for no arrays, for scalars, and where the axis or the shapes do not fit.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let (x, y) = (Value::vector(&[1.0, 2.0])?, Value::vector(&[3.0])?);
/// assert_eq!(numpy::concatenate(&[x, y], 0)?.to_vec()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn concatenate<V: Borrow<Value>>(parts: &[V], axis: i64) -> Result<Value> {
    let rank = parts.first().ok_or_else(|| none("concatenate"))?.borrow().rank();
    if let (Some(arrays), Ok(axis)) = (alike(parts), canonical_axis(axis, rank)) {
        let mut out = arrays[0].aval().clone();
        let fits = |s: &[usize]| s.len() == rank && (0..rank).all(|d| d == axis || s[d] == out.shape[d]);
        if arrays.iter().all(|a| fits(&a.aval().shape)) {
            out.shape[axis] = total(arrays.iter().map(|a| a.aval().shape[axis]));
            if isize::try_from(out.shape[axis]).is_ok()
                && let Some(out) = node(&Kind::Concat(axis), &arrays, out)?
            {
                return Ok(out);
            }
        }
    }
    let parts = common(parts)?;
    if rank == 0 {
        bail!(Value, "Zero-dimensional arrays cannot be concatenated.");
    }
    ops::slice::concatenate(&parts, canonical_axis(axis, rank)?)
}

/// Arrays of one shape joined along a new axis, which stands at this place of the result.
///
/// Errors for no arrays, and where the shapes differ.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let (x, y) = (Value::vector(&[1.0, 2.0])?, Value::vector(&[3.0, 4.0])?);
/// assert_eq!(numpy::stack(&[x, y], 1)?.to_vec()?, [1.0, 3.0, 2.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn stack<V: Borrow<Value>>(parts: &[V], axis: i64) -> Result<Value> {
    let first = parts.first().ok_or_else(|| none("stack"))?.borrow().shape();
    let other = parts.iter().map(|p| p.borrow().shape()).find(|s| *s != first);
    if let (Some(arrays), None, Ok(axis)) = (alike(parts), other, canonical_axis(axis, first.len() + 1)) {
        let mut out = arrays[0].aval().clone();
        out.shape.insert(axis, 1);
        let unit = out.shape.clone();
        out.shape[axis] = arrays.len();
        if let Some(out) = node_as(&Kind::Concat(axis), &arrays, &unit, out)? {
            return Ok(out);
        }
    }
    let parts = common(parts)?;
    if let Some(other) = other {
        let (first, other) = (Tuple(first), Tuple(other));
        bail!(Value, "All input arrays must have the same shape. Got {first}, {other} in stack.");
    }
    ops::stack(&parts, canonical_axis(axis, first.len() + 1)?)
}
