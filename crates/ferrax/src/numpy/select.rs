//! `where` and `clip`.

use super::binary::{maximum, minimum};
use super::promote::{self, Rule};
use super::rows::alike;
use super::unary::to_bool;
use crate::debug::whole;
use crate::direct::{self, Operand};
use ferrax_base::{Result, Shape, bail};
use ferrax_ir::trace::is_eager;
use ferrax_ir::{Array, Value};
use ferrax_ops as ops;
use ferrax_ops::common::stretch;

/// x where the condition holds, else y.
pub fn where_(condition: &Value, x: &Value, y: &Value) -> Result<Value> {
    let condition = to_bool("where", condition)?;
    let mut cases = [x.clone(), y.clone()];
    promote::dtypes(Rule::Common, &mut cases)?;
    let [x, y] = cases;
    let mut shape: Shape = Shape::from_slice(condition.shape());
    for s in [x.shape(), y.shape()] {
        let Some(joined) = ferrax_base::shape::broadcast(&shape, s) else {
            let t = |v: &Value| ferrax_base::shape::Tuple(v.shape()).to_string();
            bail!(
                Value,
                "Incompatible shapes for broadcasting: shapes=[{}, {}, {}], those of the operands of where",
                t(&condition),
                t(&x),
                t(&y)
            );
        };
        shape = joined;
    }
    let condition = if condition.rank() == 0 { condition } else { spread(&condition, &shape)? };
    ops::select(&condition, &spread(&x, &shape)?, &spread(&y, &shape)?)
}

/// As [`where_`], of a `bool` mask and two cases of one dtype, by its kernel at once; `None` where that does not apply.
pub fn where_at_once(mask: &Array, x: Operand<'_>, y: Operand<'_>) -> Result<Option<Array>> {
    let mut held = None;
    match alike(x, y, &mut held) {
        Some((_, [x, y])) if mask.aval().dtype.is_bool() && is_eager() => {
            direct::run(&ops::SELECT_N.op(), &[Operand::Array(mask), y, x])
        }
        _ => Ok(None),
    }
}

/// A value broadcast to a shape of any larger rank.
fn spread(x: &Value, shape: &[usize]) -> Result<Value> {
    if x.rank() == shape.len() || x.rank() == 0 {
        return stretch(x, shape);
    }
    let dims: smallvec::SmallVec<[usize; 4]> = (shape.len() - x.rank()..shape.len()).collect();
    ops::broadcast_in_dim(x, shape, &dims)
}

/// x limited to at least `min` and at most `max`.
pub fn clip(x: &Value, min: Option<&Value>, max: Option<&Value>) -> Result<Value> {
    if [Some(x), min, max].into_iter().flatten().any(|v| v.dtype().is_complex()) {
        bail!(
            Value,
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no \
             ordering and cannot be clipped. Please convert to a real value or array by taking the real or imaginary \
             components via jax.numpy.real/imag respectively."
        );
    }
    for bound in [min, max].into_iter().flatten() {
        let [x, bound] = promote::two("clip", Rule::None, x, bound)?;
        promote::compatible("clip", &x, &bound)?;
    }
    whole(|| {
        let out = min.map_or_else(|| Ok(x.clone()), |min| maximum(min, x))?;
        max.map_or_else(|| Ok(out.clone()), |max| minimum(max, &out))
    })
}
