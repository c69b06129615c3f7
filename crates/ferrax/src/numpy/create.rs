//! Arrays made of numbers. Under `jit` they are staged, so that programs do not carry them.
//!
//! Read next: `rows.rs`.

use super::at_once::node;
use super::shape::broadcast_to;
use ferrax_base::{Aval, Buffer, DType, Result, Scalar, bail, config};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{Array, Lit, Value};
use ferrax_loops::Kind;
use ferrax_ops as ops;

/// An array without operands: by its kernel at once, or bound.
fn made(kind: &Kind, out: Aval, bind: impl FnOnce(&Aval) -> Result<Value>) -> Result<Value> {
    let plain = out.dtype.is_number() || out.dtype.is_bool();
    match if plain && is_eager() { node(kind, &[], out.clone())? } else { None } {
        Some(made) => Ok(made),
        None => bind(&out),
    }
}

fn filled(shape: &[usize], dtype: DType, number: f64) -> Result<Value> {
    let scalar = Scalar::from_f64(dtype, number);
    made(&Kind::Const(scalar), Aval::new(dtype, shape), |out| ops::full(out, scalar))
}

/// An array of zeros.
///
/// ```
/// use ferrax::{DType, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::zeros(&[2], DType::F32)?.to_vec()?, [0.0, 0.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn zeros(shape: &[usize], dtype: DType) -> Result<Value> {
    filled(shape, dtype, 0.0)
}

/// An array of ones.
///
/// ```
/// use ferrax::{DType, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::ones(&[2], DType::F32)?.to_vec()?, [1.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn ones(shape: &[usize], dtype: DType) -> Result<Value> {
    filled(shape, dtype, 1.0)
}

/// An array of one number, or of an array that broadcasts to the shape; of its dtype unless another one is given.
///
/// ```
/// use ferrax::{DType, Value, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::full(&[2], &Value::from(7.0), Some(DType::F32))?.to_vec()?, [7.0, 7.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn full(shape: &[usize], fill: &Value, dtype: Option<DType>) -> Result<Value> {
    match dtype {
        Some(d) => broadcast_to(&ops::convert_element_type(fill, d)?, shape),
        None => broadcast_to(fill, shape),
    }
}

/// Evenly spaced numbers from a start up to, not including, a stop.
///
/// Errors when the step is 0, and for `bool`.
///
/// ```
/// use ferrax::{DType, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::arange(1.0, 7.0, 2.0, DType::I32)?.to_vec()?, [1.0, 3.0, 5.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn arange(start: f64, stop: f64, step: f64, dtype: DType) -> Result<Value> {
    if step == 0.0 || !dtype.is_number() {
        bail!(Value, "arange takes a step other than 0 and a dtype of numbers, got step {step} and dtype {dtype}");
    }
    let count = ((stop - start) / step).ceil().max(0.0) as usize;
    let iota = || made(&Kind::Iota(0), Aval::new(dtype, &[count]), |out| ops::iota(dtype, &out.shape, 0));
    if start == 0.0 && step == 1.0 {
        return iota();
    }
    if dtype.is_integer() {
        let number = |v: f64| Value::int(dtype, v as i64);
        return ops::add(&ops::mul(&iota()?, &number(step))?, &number(start));
    }
    let numbers = (0..count).map(|i| Scalar::from_f64(dtype, i as f64 * step + start));
    let bytes: Vec<u8> = numbers.flat_map(|s| s.to_bytes().into_iter().take(dtype.size())).collect();
    ferrax_ir::trace::made(Value::Array(Array::new(Aval::new(dtype, &[count]), Buffer::from_bytes(&bytes)?)))
}

/// The elements converted to a strong dtype; complex numbers lose their imaginary part unless it makes the truth of one.
///
/// ```
/// use ferrax::{DType, Value, function::Data, numpy};
/// # ferrax::init();
/// let x = numpy::astype(&Value::vector(&[1.7, -1.7])?, DType::I32)?;
/// assert_eq!(x.to_vec()?, [1.0, -1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn astype(x: &Value, dtype: DType) -> Result<Value> {
    if x.dtype().is_complex() && dtype.is_bool() {
        return ops::convert_element_type(&super::unary::to_bool("astype", x)?, dtype);
    }
    ops::convert_element_type(x, dtype)
}

/// A matrix with ones on a diagonal, the main one or the `k`-th above it, and zeros elsewhere.
///
/// ```
/// use ferrax::{DType, function::Data, numpy};
/// # ferrax::init();
/// assert_eq!(numpy::eye(2, 3, 1, DType::F32)?.to_vec()?, [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn eye(rows: usize, columns: usize, k: i64, dtype: DType) -> Result<Value> {
    let index = DType::I64.canonical(config::x64());
    let [i, j] = [0, 1].map(|axis| ops::iota(index, &[rows, columns], axis));
    let offset = Value::Lit(Lit { scalar: Scalar::from_i64(index, k), weak: true });
    ops::convert_element_type(&super::equal(&super::add(&i?, &offset)?, &j?)?, dtype)
}
