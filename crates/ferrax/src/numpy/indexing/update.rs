//! `x.at[…].set(…)` and its siblings.

use super::direct::Region;
use super::plan::{Access, plan};
use super::{Index, Part, Resolved, direct_operand, resolve};
use crate::numpy::result_type;
use ferrax_base::config::{self, Flag};
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, Result, Scalar, Shape, bail, promotion};
use ferrax_ir::{Array, Lit, Value};
use ferrax_loops::{IndexMode, ScatterOp};
use ferrax_ops::common::{float_of, with_unit_axes};
use ferrax_ops::gather_scatter::{ScatterOptions, scatter};
use ferrax_ops::{convert_weak, div, pow, reshape, squeeze};
use ferrax_transform::structural::{broadcast_in_dim, full};

/// What an update does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Update {
    Set,
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Min,
    Max,
}

impl Update {
    /// The scatter that does it; division and power multiply a divisor or exponent together first.
    fn scatter(self) -> ScatterOp {
        match self {
            Update::Set => ScatterOp::Set,
            Update::Add => ScatterOp::Add,
            Update::Subtract => ScatterOp::Sub,
            Update::Multiply | Update::Divide | Update::Power => ScatterOp::Mul,
            Update::Min => ScatterOp::Min,
            Update::Max => ScatterOp::Max,
        }
    }
}

/// What the methods of `x.at[…]` take besides the values.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpdateOptions {
    /// What happens to out-of-bounds entries; `None` drops them.
    pub mode: Option<IndexMode>,
    /// The indices are promised to be sorted.
    pub sorted: bool,
    /// The indices are promised to be unique.
    pub unique: bool,
    /// Negative integers do not count from the end: they are out of bounds.
    pub raw: bool,
}

/// `x.at[indices].set(values)` and its siblings. The result has the dtype of `x`, but for the quotients of integers.
pub fn update(x: &Value, indices: &[Index], values: &Value, how: Update, options: UpdateOptions) -> Result<Value> {
    let moved = super::where_told(x, indices, "scatter")?;
    let x = moved.as_ref().unwrap_or(x);
    let Resolved { parts, inserted } = resolve(x.shape(), indices, options.raw, options.mode.is_none())?;
    if how == Update::Set
        && inserted.is_empty()
        && let Some(out) = direct_set(x, &parts, values, options)?
    {
        return Ok(out);
    }
    let (common, weak) = match how {
        Update::Set => (x.dtype(), x.weak()),
        _ => promotion::result_type([(x.dtype(), x.weak()), (values.dtype(), values.weak())], config::x64())?,
    };
    if matches!(how, Update::Add | Update::Subtract | Update::Multiply | Update::Divide | Update::Power)
        && common.is_bool()
    {
        let name = match how {
            Update::Add => "add",
            Update::Subtract => "sub",
            _ => "mul",
        };
        bail!(
            Type,
            "{name} does not accept dtype bool at position 0. Accepted dtypes at position 0 are subtypes of integer, \
             floating, complexfloating."
        );
    }
    let operand = convert_weak(&with_unit_axes(x, &inserted)?, common, weak)?;
    let values = convert_weak(values, common, weak && values.weak())?;
    let out = match how {
        Update::Divide | Update::Power => {
            // The divisors or exponents have the dtype of x; integers divide to floats.
            let aval = operand.aval();
            let ones = full(&aval, Scalar::one(aval.dtype))?;
            let factor = convert_weak(&scattered(&ones, &parts, &values, how, options)?, x.dtype(), x.weak())?;
            let x = with_unit_axes(x, &inserted)?;
            if how == Update::Power { power(&x, &factor)? } else { true_divide(&x, &factor)? }
        }
        _ => convert_weak(&scattered(&operand, &parts, &values, how, options)?, x.dtype(), x.weak())?,
    };
    if inserted.is_empty() { Ok(out) } else { squeeze(&out, &inserted) }
}

/// NumPy's division: integers divide as floats.
fn true_divide(x: &Value, y: &Value) -> Result<Value> {
    let float = float_of(x.dtype());
    div(&convert_weak(x, float, x.weak())?, &convert_weak(y, float, y.weak())?)
}

/// NumPy's power on operands of one dtype: integers by repeated squaring.
fn power(x: &Value, y: &Value) -> Result<Value> {
    if !x.dtype().is_integer() {
        return pow(x, y);
    }
    let mut out = full(&x.aval(), Scalar::one(x.dtype()))?;
    let one = broadcast_in_dim(&Value::int(x.dtype(), 1), x.shape(), &[])?;
    let (mut base, mut left) = (x.clone(), y.clone());
    for _ in 0..x.dtype().bits().min(6) {
        let odd = ferrax_ops::ne(&ferrax_ops::bitwise_and(&left, &one)?, &ferrax_ops::common::zeros_like(&left)?)?;
        out = ferrax_ops::select(&odd, &ferrax_ops::mul(&out, &base)?, &out)?;
        base = ferrax_ops::mul(&base, &base)?;
        left = ferrax_ops::shift_right_logical(&left, &one)?;
    }
    Ok(out)
}

fn scattered(x: &Value, parts: &[Part], values: &Value, how: Update, options: UpdateOptions) -> Result<Value> {
    let plan = plan(x.shape(), parts, options.raw, Access::Write)?;
    let values = reshape(&broadcast_to(values, &plan.shape)?, &plan.window_shape)?;
    let scattering = ScatterOptions {
        mode: options.mode.unwrap_or(IndexMode::FillOrDrop),
        sorted: options.sorted || plan.ordered,
        unique: options.unique || plan.ordered,
    };
    scatter(how.scatter(), x, &plan.indices, &values, &plan.scatter_dims(), scattering)
}

/// NumPy's `broadcast_to`, with the messages of updates.
fn broadcast_to(v: &Value, shape: &[usize]) -> Result<Value> {
    check_broadcast(&v.aval(), shape)?;
    let skip = shape.len() - v.rank();
    let dims: Shape = (skip..shape.len()).collect();
    broadcast_in_dim(v, shape, &dims)
}

fn check_broadcast(v: &Aval, shape: &[usize]) -> Result<()> {
    if v.rank() > shape.len() {
        bail!(
            Value,
            "Cannot broadcast to shape with fewer dimensions: arr_shape={} shape={}",
            Tuple(&v.shape),
            Tuple(shape)
        );
    }
    let tail = &shape[shape.len() - v.rank()..];
    if v.shape.iter().zip(tail).any(|(&n, &m)| n != m && n != 1) {
        let dims = |s: &[usize]| s.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        bail!(
            Value,
            "Incompatible types for broadcasting in an update with .at: input type={}[{}] and requested type={}[{}], that \
             of the entries at the index",
            v.dtype,
            dims(&v.shape),
            v.dtype,
            dims(shape)
        );
    }
    Ok(())
}

/// A static region of a concrete array, overwritten by concrete values, as a copy of bytes.
fn direct_set(x: &Value, parts: &[Part], values: &Value, options: UpdateOptions) -> Result<Option<Value>> {
    let Some(array) = direct_operand(x) else { return Ok(None) };
    if parts.iter().any(|p| matches!(p, Part::Array(_))) || matches!(values, Value::Tracer(_)) {
        return Ok(None);
    }
    let clip = options.mode == Some(IndexMode::Clip);
    let Some(region) = Region::of(array.aval(), parts, clip) else { return Ok(None) };
    check_broadcast(&values.aval(), &region.shape)?;
    let dtype = array.aval().dtype;
    let write = |bytes: &[u8]| region.written(array, bytes).map(|a| Some(Value::Array(a)));
    match values {
        Value::Lit(Lit { scalar, .. }) => write(&scalar.convert(dtype).to_bytes()[..dtype.size()]),
        Value::Array(v) if v.device() == array.device() && v.aval().dtype == dtype => {
            if v.aval().size() == 1 || v.aval().shape == region.shape {
                return write(v.pin()?.bytes());
            }
            Ok(None)
        }
        Value::Array(v) if v.aval().size() == 1 && v.device() == array.device() => {
            write(&Array::item(v)?.convert(dtype).to_bytes()[..dtype.size()])
        }
        _ => Ok(None),
    }
}

/// Whether values of one dtype can stand in an array of another with no loss of kind, as updates ask; an error where
/// operands of the two may not meet at all.
pub fn safe_to_cast(x: &Value, values: &Value) -> Result<bool> {
    let types = [(x.dtype(), x.weak()), (values.dtype(), values.weak())];
    if Flag::StrictPromotion.get() {
        result_type(&types)?;
    }
    Ok(promotion::result_type(types, config::x64()).is_ok_and(|(dtype, _)| dtype == x.dtype()))
}
