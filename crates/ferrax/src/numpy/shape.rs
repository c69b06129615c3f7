//! Other shapes and orders of axes. No element changes, nor does a dtype or weak type.
//!
//! Negative axes count from the end; an axis that is out of bounds or given twice is an error. Read next: `join.rs`.

use super::at_once::{at_once, node, sound};
use super::axes::{Axes, canonical_axes, canonical_axis};
use crate::direct;
use ferrax_base::shape::{Tuple, size};
use ferrax_base::symbolic::{self, Operation, is_symbolic};
use ferrax_base::{Aval, Result, Shape, bail};
use ferrax_ir::Value;
use ferrax_loops::Kind;
use ferrax_ops as ops;
use ferrax_ops::common::with_unit_axes;
use smallvec::{SmallVec, smallvec};

/// The shape that sizes with at most one -1 stand for.
fn fitting(x: &Value, given: &[i64]) -> Result<Shape> {
    if symbolic::any(x.shape()) || given.iter().any(|&d| is_symbolic(d as usize)) {
        return fitting_symbolic(x, given);
    }
    // what does not fit is no array's size
    let product = |sizes: &[i64]| sizes.iter().fold(1i128, |n, &d| n.saturating_mul(d.into()));
    let (size, mut sizes) = (x.size() as i128, SmallVec::<[i64; 4]>::from_slice(given));
    let mut unknown = (0..given.len()).filter(|&i| given[i] == -1);
    if let Some(at) = unknown.next() {
        if unknown.next().is_some() {
            bail!(Type, "can only specify one unknown axis size with a `-1` value, got {}", Tuple(given));
        }
        sizes[at] = 1;
        let known = product(&sizes);
        sizes[at] = match known {
            0 if size == 0 => 0,
            n if n == 0 || size % n != 0 => {
                let (old, new) = (Tuple(x.shape()), Tuple(given));
                bail!(
                    Type,
                    "cannot reshape array of shape {old} (size {size}) into shape {new} because the product of \
                     specified axis sizes ({n}) does not evenly divide {size}"
                )
            }
            n => (size / n) as i64,
        };
    }
    if sizes.iter().any(|&d| d < 0) {
        bail!(Type, "reshape new_sizes must all be positive, got {}.", Tuple(&sizes));
    }
    let new = product(&sizes);
    if new != size {
        let old = Tuple(x.shape());
        bail!(Type, "cannot reshape array of shape {old} (size {size}) into shape {} (size {new})", Tuple(&sizes));
    }
    Ok(sizes.into_iter().map(|d| d as usize).collect())
}

/// The same where sizes are symbolic.
#[cold]
fn fitting_symbolic(x: &Value, given: &[i64]) -> Result<Shape> {
    let mut sizes: Shape = given.iter().map(|&d| d as usize).collect();
    let unknown: Axes = (0..given.len()).filter(|&i| given[i] == -1).collect();
    match unknown.as_slice() {
        [] => {}
        &[at] => {
            sizes[at] = 1;
            let (all, known) = (x.size(), size(&sizes));
            let rest = symbolic::dims(Operation::Rem, all, known)?;
            if rest != 0 && !symbolic::dim_at_least(0, rest)? {
                let old = Tuple(x.shape());
                bail!(Type, "cannot reshape array of shape {old} (size {all}) into shape {}", Tuple(given));
            }
            sizes[at] = symbolic::dims(Operation::Div, all, known)?;
        }
        _ => bail!(Type, "can only specify one unknown axis size with a `-1` value, got {}", Tuple(given)),
    }
    Ok(sizes)
}

/// The elements in another shape of their number.
fn laid(x: &Value, shape: Shape) -> Result<Value> {
    match sound(x)? {
        Some(a) => direct::reshape(a, shape).map(Value::Array),
        None => ops::reshape(x, &shape),
    }
}

/// The elements in row-major order in another shape; one size may be -1 and is worked out.
///
/// Errors when the sizes differ.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(numpy::reshape(&x, &[2, -1])?.shape(), [2, 3]);
/// assert!(numpy::reshape(&x, &[4]).is_err());
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn reshape(x: &Value, shape: &[i64]) -> Result<Value> {
    laid(x, fitting(x, shape)?)
}

/// The elements in row-major order along one axis.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::ravel(&Value::array(&[1.0; 6], &[2, 3])?)?.shape(), [6]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn ravel(x: &Value) -> Result<Value> {
    laid(x, smallvec![x.size()])
}

/// The array with this order of its axes, which is one.
fn ordered(x: &Value, order: Axes) -> Result<Value> {
    if order.len() > 1
        && let Some(a) = at_once(x)
    {
        let shape = order.iter().map(|&d| x.shape()[d]).collect();
        let out = Aval { shape, ..a.aval().clone() };
        if let Some(out) = node(&Kind::Transpose(order.clone()), &[a], out)? {
            return Ok(out);
        }
    }
    ops::transpose(x, &order)
}

/// The array with its axes in another order: axis `i` of the result is axis `axes[i]` of `x`. `None` reverses them.
///
/// Errors unless each axis is there once.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0; 24], &[2, 3, 4])?;
/// assert_eq!(numpy::transpose(&x, None)?.shape(), [4, 3, 2]);
/// assert_eq!(numpy::transpose(&x, Some(&[1, 0, -1]))?.shape(), [3, 2, 4]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn transpose(x: &Value, axes: Option<&[i64]>) -> Result<Value> {
    let Some(axes) = axes else { return ordered(x, (0..x.rank()).rev().collect()) };
    let order: Axes = axes.iter().map(|&a| canonical_axis(a, x.rank())).collect::<Result<_>>()?;
    if order.len() != x.rank() || (1..order.len()).any(|i| order[..i].contains(&order[i])) {
        bail!(
            Type,
            "transpose permutation isn't a permutation of operand dimensions, got permutation {} for operand shape {}.",
            Tuple(&order),
            Tuple(x.shape())
        );
    }
    ordered(x, order)
}

/// The array with its last two axes exchanged; errors when it has fewer.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::matrix_transpose(&Value::array(&[1.0; 24], &[2, 3, 4])?)?.shape(), [2, 4, 3]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn matrix_transpose(x: &Value) -> Result<Value> {
    let rank = x.rank();
    if rank < 2 {
        bail!(Value, "x must be at least two-dimensional for matrix_transpose; got ndim={rank}");
    }
    let mut order: Axes = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    ordered(x, order)
}

/// The array without axes of length 1: these, or all of them for `None`.
///
/// Errors when a given axis is longer.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0; 3], &[1, 3, 1])?;
/// assert_eq!(numpy::squeeze(&x, None)?.shape(), [3]);
/// assert_eq!(numpy::squeeze(&x, Some(&[-1]))?.shape(), [1, 3]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn squeeze(x: &Value, axis: Option<&[i64]>) -> Result<Value> {
    let unit = |d: &usize| x.shape()[*d] == 1;
    let mut axes = canonical_axes(axis, x.rank())?;
    if axis.is_none() {
        axes.retain(|d| unit(d));
    }
    let fits = axes.iter().all(unit);
    if fits {
        axes.sort_unstable();
    }
    match sound(x)? {
        Some(a) if fits => {
            let left = (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape()[d]).collect();
            direct::reshape(a, left).map(Value::Array)
        }
        _ => ops::squeeze(x, &axes),
    }
}

/// The array with new axes of length 1 at these places of the result.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::expand_dims(&Value::vector(&[1.0; 3])?, &[0, -1])?.shape(), [1, 3, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn expand_dims(x: &Value, axis: &[i64]) -> Result<Value> {
    let rank = x.rank() + axis.len();
    let Ok(axes) = canonical_axes(Some(axis), rank) else {
        for &a in axis {
            canonical_axis(a, rank)?;
        }
        bail!(Value, "repeated axis in expand_dims: {}", Tuple(axis));
    };
    let Some(a) = sound(x)? else { return with_unit_axes(x, &axes) };
    let mut old = x.shape().iter();
    let wide = (0..rank).map(|d| if axes.contains(&d) { 1 } else { old.next().copied().unwrap_or(1) });
    direct::reshape(a, wide.collect()).map(Value::Array)
}

/// The array repeated to a larger shape: its sizes, compared from the last axis on, are those of `shape` or 1.
///
/// Errors when they are others.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[1.0, 2.0])?;
/// assert_eq!(numpy::broadcast_to(&x, &[2, 2])?.to_vec()?, [1.0, 2.0, 1.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn broadcast_to(x: &Value, shape: &[usize]) -> Result<Value> {
    let old = x.shape();
    if old == shape {
        return Ok(x.clone());
    }
    let (old_shown, shown) = (Tuple(old), Tuple(shape));
    let Some(lead) = shape.len().checked_sub(old.len()) else {
        bail!(Value, "Cannot broadcast to shape with fewer dimensions: arr_shape={old_shown} shape={shown}");
    };
    if old.iter().zip(&shape[lead..]).any(|(&a, &b)| a != b && a != 1) {
        let listed = |s: &[usize]| s.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let (d, given, asked) = (x.dtype().name(), listed(old), listed(shape));
        bail!(
            Value,
            "Incompatible types for broadcasting: input type={d}[{given}] and requested type={d}[{asked}]. The sizes of \
             {old_shown} must be those of {shown} or 1, compared from the last axis on."
        );
    }
    let (kept, dropped): (Axes, Axes) = (0..old.len()).partition(|&d| old[d] == shape[lead + d]);
    let x = ops::squeeze(x, &dropped)?;
    let dims: Axes = kept.iter().map(|d| lead + d).collect();
    if let Some(a) = at_once(&x)
        && let Some(out) = node(&Kind::Broadcast(dims.clone()), &[a], a.aval().with_shape(shape))?
    {
        return Ok(out);
    }
    ops::broadcast_in_dim(&x, shape, &dims)
}
