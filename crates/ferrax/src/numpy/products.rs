//! Products that contract axes. Operands get their common dtype, which is that of the result.
//!
//! Read next: `create.rs`.

use super::at_once::{at_once, node};
use super::promote::{self, Rule};
use ferrax_base::shape::Tuple;
use ferrax_base::{Aval, DType, Result, Shape, bail};
use ferrax_ir::Value;
use ferrax_loops::{DotDims, Kind};
use ferrax_ops as ops;
use smallvec::smallvec;

/// The axes of matrices and vectors over which `x @ y` sums.
fn contracted(x: &[usize], y: &[usize]) -> DotDims {
    let (i, j) = (x.len() - 1, y.len().saturating_sub(2));
    DotDims { lhs_contract: smallvec![i], rhs_contract: smallvec![j], ..DotDims::default() }
}

/// `x @ y` of vectors and matrices of one floating dtype by its kernel; `None` for all other operands, those that do not
/// fit together among them.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[1.0, 2.0])?;
/// assert_eq!(numpy::product_at_once(&x, &x)?.unwrap().to_f64()?, 5.0);
/// assert!(numpy::product_at_once(&x, &Value::vector(&[1.0])?)?.is_none());
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn product_at_once(x: &Value, y: &Value) -> Result<Option<Value>> {
    let (Some(a), Some(b)) = (at_once(x), at_once(y)) else { return Ok(None) };
    let (s, t) = (a.aval(), b.aval());
    let plain = |v: &Aval| matches!(v.dtype, DType::F32 | DType::F64) && !v.weak && (1..=2).contains(&v.shape.len());
    if !plain(s) || !plain(t) || s.dtype != t.dtype {
        return Ok(None);
    }
    let dims = contracted(&s.shape, &t.shape);
    let (i, j) = (dims.lhs_contract[0], dims.rhs_contract[0]);
    if s.shape[i] != t.shape[j] {
        return Ok(None);
    }
    let mut shape: Shape = s.shape[..i].into();
    shape.extend(t.shape.iter().enumerate().filter(|(d, _)| *d != j).map(|(_, &n)| n));
    node(&Kind::Dot(Box::new(dims)), &[a, b], Aval { shape, ..s.clone() })
}

/// The matrix product over the last two axes; vectors stand for a row or a column, other axes broadcast.
///
/// Errors for scalars and where the lengths do not fit together.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let m = Value::array(&[1.0, 2.0, 3.0, 4.0], &[2, 2])?;
/// assert_eq!(numpy::matmul(&m, &Value::vector(&[1.0, 10.0])?)?.to_vec()?, [21.0, 43.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn matmul(x: &Value, y: &Value) -> Result<Value> {
    if let Some(out) = product_at_once(x, y)? {
        return Ok(out);
    }
    let [x, y] = common(x, y)?;
    ops::dot::matmul(&x, &y, None, preferred(&x, &y))
}

/// The sum of products over the last axis of `x` and the last but one (or only) axis of `y`; the product with a scalar.
///
/// Errors where the two axes differ in length.
///
/// ```
/// use ferrax::{Value, function::Data, numpy};
/// # ferrax::init();
/// let x = Value::vector(&[1.0, 2.0])?;
/// assert_eq!(numpy::dot(&x, &x)?.to_f64()?, 5.0);
/// assert_eq!(numpy::dot(&x, &Value::from(2.0))?.to_vec()?, [2.0, 4.0]);
/// # Ok::<(), ferrax::Error>(())
/// ```
pub fn dot(x: &Value, y: &Value) -> Result<Value> {
    if let Some(out) = product_at_once(x, y)? {
        return Ok(out);
    }
    if x.rank() == 0 || y.rank() == 0 {
        return super::multiply(x, y);
    }
    let [x, y] = common(x, y)?;
    let dims = contracted(x.shape(), y.shape());
    if x.shape()[dims.lhs_contract[0]] != y.shape()[dims.rhs_contract[0]] {
        let (s, t) = (Tuple(x.shape()), Tuple(y.shape()));
        bail!(
            Type,
            "dot: the last axis of the first operand must equal the second to last (or only) axis of the second; got \
             shapes {s} and {t}"
        );
    }
    ops::dot::dot_general(&x, &y, &dims, None, preferred(&x, &y))
}

fn common(x: &Value, y: &Value) -> Result<[Value; 2]> {
    let mut both = [x.clone(), y.clone()];
    promote::dtypes(Rule::Common, &mut both)?;
    Ok(both)
}

/// The dtype that a product is asked for, which is then not weak.
fn preferred(x: &Value, y: &Value) -> Option<DType> {
    (!x.weak() || !y.weak()).then(|| x.dtype())
}
