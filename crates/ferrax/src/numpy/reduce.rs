//! Reductions over axes: sums, products, extremes, truth, means, and places of extremes.
//!
//! Narrow floats (float16, bfloat16) are accumulated in float32 and the result is rounded once; narrow integers and `bool`
//! are summed in the default integer. Results are never weakly typed.
//!
//! `axis` is `None` for all axes; negative ones count from the end. With `keepdims` the axes stay, with length 1. Errors
//! where an axis is out of bounds or given twice. Read next: `shape.rs`.

use super::at_once::{at_once, node};
use super::axes::{Axes, canonical_axes, canonical_axis};
use crate::direct::{self, Operand};
use ferrax_base::symbolic::is_symbolic;
use ferrax_base::{Aval, DType, Result, Scalar, bail, config, shape};
use ferrax_ir::{Lit, Value};
use ferrax_loops::{Kind, ReduceOp};
use ferrax_ops as ops;
use ferrax_ops::common::{float_of, with_unit_axes};
use smallvec::smallvec;
use std::borrow::Cow;

/// Binds the primitive of a reduction.
type Bind = fn(&Value, &[usize]) -> Result<Value>;

/// The type that a reduction leaves.
fn left(x: &Value, axes: &[usize], dtype: DType) -> Aval {
    let shape = (0..x.rank()).filter(|d| !axes.contains(d)).map(|d| x.shape()[d]).collect();
    Aval { shape, dtype, weak: false, vary: 0, spread: 0 }
}

/// A strongly typed operand reduced over ascending axes.
fn reduced(x: &Value, axes: &Axes, op: ReduceOp, bind: Bind) -> Result<Value> {
    if let Some(a) = at_once(x)
        && !axes.is_empty()
        && let Some(out) = node(&Kind::Reduce { op, axes: axes.clone() }, &[a], left(x, axes, a.aval().dtype))?
    {
        return Ok(out);
    }
    bind(x, axes)
}

/// Whether there are kernels for a dtype; of the others the primitive says why not.
fn countable(d: DType) -> bool {
    d.is_number() || d.is_bool()
}

/// The strongly typed value of a dtype; the value itself where it is one.
fn cast(x: Cow<'_, Value>, dtype: DType) -> Result<Cow<'_, Value>> {
    if x.dtype() == dtype && !x.weak() { Ok(x) } else { ops::convert_element_type(&x, dtype).map(Cow::Owned) }
}

/// The axes of a reduction of numbers, ascending.
fn ascending(axis: Option<&[i64]>, x: &Value) -> Result<Axes> {
    if !countable(x.dtype()) {
        bail!(Type, "reductions take numbers or bools, got {}", x.aval().long_text());
    }
    let mut axes = canonical_axes(axis, x.rank())?;
    axes.sort_unstable();
    Ok(axes)
}

/// The result with its axes of length 1, where they are kept.
fn kept(out: Value, axes: &[usize], keepdims: bool) -> Result<Value> {
    if keepdims { with_unit_axes(&out, axes) } else { Ok(out) }
}

/// The dtype in which sums that are returned in `d` are accumulated.
fn wide(d: DType) -> DType {
    if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d }
}

/// The dtype of sums and products.
fn sum_dtype(d: DType) -> DType {
    let default = if d.is_unsigned() { DType::U64 } else { DType::I64 }.canonical(config::x64());
    if d.is_bool() || d.is_integer() && d.size() < default.size() { default } else { d }
}

fn accumulated(x: &Value, axis: Option<&[i64]>, keepdims: bool, op: ReduceOp, bind: Bind) -> Result<Value> {
    let (axes, dtype) = (ascending(axis, x)?, sum_dtype(x.dtype()));
    let total = reduced(&*cast(Cow::Borrowed(x), wide(dtype))?, &axes, op, bind)?;
    kept(cast(Cow::Owned(total), dtype)?.into_owned(), &axes, keepdims)
}

/// The sum of elements over axes, in the dtype of `x`; `bool` and narrow integers give the default integer.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(numpy::sum(&x, Some(&[0]), false)?.to_vec()?, [4.0, 6.0]);
/// assert_eq!(numpy::sum(&x, None, true)?.shape(), [1, 1]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn sum(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    accumulated(x, axis, keepdims, ReduceOp::Sum, ops::reduce_sum)
}

/// The product of elements over axes, in the dtype that [`sum`] has.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[2.0, 3.0, 4.0])?;
/// assert_eq!(numpy::prod(&x, None, false)?.to_f64()?, 24.0);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn prod(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    accumulated(x, axis, keepdims, ReduceOp::Prod, ops::reduce_prod)
}

/// The mean of elements over axes, as a float or complex number; NaN over nothing.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(numpy::mean(&x, Some(&[-1]), false)?.to_vec()?, [1.5, 3.5]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn mean(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    let (axes, dtype) = (ascending(axis, x)?, float_of(x.dtype()));
    let count = shape::product(axes.iter().map(|&a| x.shape()[a]));
    let total = reduced(&*cast(Cow::Borrowed(x), wide(dtype))?, &axes, ReduceOp::Sum, ops::reduce_sum)?;
    let total = kept(total, &axes, keepdims)?;
    if is_symbolic(count) {
        return Ok(cast(Cow::Owned(ops::div(&total, &ops::size_value(count, total.dtype())?)?), dtype)?.into_owned());
    }
    let count = count as f64;
    let count = Lit { scalar: Scalar::from_f64(total.dtype(), count), weak: false };
    let quotient = match at_once(&total) {
        Some(a) => direct::run(&ops::DIV.op(), &[Operand::Array(a), Operand::Lit(&count)])?.map(Value::Array),
        None => None,
    };
    let quotient = quotient.map_or_else(|| ops::div(&total, &Value::Lit(count)), Ok)?;
    Ok(cast(Cow::Owned(quotient), dtype)?.into_owned())
}

fn extreme(name: &str, x: &Value, axis: Option<&[i64]>, keepdims: bool, op: ReduceOp, bind: Bind) -> Result<Value> {
    let axes = ascending(axis, x)?;
    if axes.iter().any(|&a| x.shape()[a] == 0) {
        bail!(Value, "zero-size array to reduction operation {name} which has no identity");
    }
    kept(reduced(&*cast(Cow::Borrowed(x), x.dtype())?, &axes, op, bind)?, &axes, keepdims)
}

/// The largest element over axes; NaN where one of them is NaN. Complex numbers compare by real part, then by imaginary
/// part. Errors over an axis of length 0.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 5.0, 3.0, 2.0], &[2, 2])?;
/// assert_eq!(numpy::max(&x, Some(&[0]), false)?.to_vec()?, [3.0, 5.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn max(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    extreme("max", x, axis, keepdims, ReduceOp::Max, ops::reduce_max)
}

/// The smallest element over axes, as [`max`].
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 5.0, 3.0, 2.0], &[2, 2])?;
/// assert_eq!(numpy::min(&x, Some(&[1]), false)?.to_vec()?, [1.0, 2.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn min(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    extreme("min", x, axis, keepdims, ReduceOp::Min, ops::reduce_min)
}

fn truth(x: &Value, axis: Option<&[i64]>, keepdims: bool, op: ReduceOp, bind: Bind) -> Result<Value> {
    let axes = ascending(axis, x)?;
    kept(reduced(&*cast(Cow::Borrowed(x), DType::Bool)?, &axes, op, bind)?, &axes, keepdims)
}

/// Whether every element over axes is nonzero, as `bool`. Of complex numbers the real parts count, as in JAX.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 0.0, 3.0, 2.0], &[2, 2])?;
/// assert_eq!(numpy::all(&x, Some(&[1]), false)?.to_vec()?, [0.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn all(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    truth(x, axis, keepdims, ReduceOp::And, ops::reduce_and)
}

/// Whether some element over axes is nonzero, as [`all`].
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 0.0, 0.0, 0.0], &[2, 2])?;
/// assert_eq!(numpy::any(&x, Some(&[1]), false)?.to_vec()?, [1.0, 0.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn any(x: &Value, axis: Option<&[i64]>, keepdims: bool) -> Result<Value> {
    truth(x, axis, keepdims, ReduceOp::Or, ops::reduce_or)
}

fn place(name: &str, x: &Value, axis: Option<i64>, keepdims: bool, largest: bool) -> Result<Value> {
    let axes: Axes = match axis {
        Some(a) => smallvec![canonical_axis(a, x.rank())?],
        None => (0..x.rank()).collect(),
    };
    let (x, at) = match axes.as_slice() {
        &[at] => (Cow::Borrowed(x), at),
        _ => (Cow::Owned(ops::reshape(x, &[x.size()])?), 0),
    };
    if x.shape()[at] == 0 {
        bail!(Value, "attempt to get {name} of an empty sequence");
    }
    let index = DType::I64.canonical(config::x64());
    if let Some(a) = at_once(&x)
        && countable(x.dtype())
        && let Some(out) = node(&Kind::ArgReduce { max: largest, axis: at }, &[a], left(&x, &[at], index))?
    {
        return kept(out, &axes, keepdims);
    }
    let bind = if largest { ops::argmax } else { ops::argmin };
    kept(bind(&x, at, index)?, &axes, keepdims)
}

/// The place of the first largest element along an axis, or among all in row-major order; that of the first NaN where
/// there is one. Gives the default integer; errors where there are no elements.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::array(&[1.0, 5.0, 3.0, 5.0], &[2, 2])?;
/// assert_eq!(numpy::argmax(&x, None, false)?.to_f64()?, 1.0);
/// assert_eq!(numpy::argmax(&x, Some(0), false)?.to_vec()?, [1.0, 0.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn argmax(x: &Value, axis: Option<i64>, keepdims: bool) -> Result<Value> {
    place("argmax", x, axis, keepdims, true)
}

/// The place of the first smallest element, as [`argmax`].
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[4.0, 1.0, 3.0, 1.0])?;
/// assert_eq!(numpy::argmin(&x, None, false)?.to_f64()?, 1.0);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn argmin(x: &Value, axis: Option<i64>, keepdims: bool) -> Result<Value> {
    place("argmin", x, axis, keepdims, false)
}
