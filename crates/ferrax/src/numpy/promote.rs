//! Promotion of operands to one dtype and one rank, as `jax.numpy` does it.

use ferrax_base::config::{self, Flag};
use ferrax_base::dtype::Category;
use ferrax_base::shape::Tuple;
use ferrax_base::{DType, Error, Result, Shape, bail, error, promotion};
use ferrax_ir::Value;
use ferrax_ops::common::{float_of, with_unit_axes};
use ferrax_ops::convert_weak;

/// How operands are converted before a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// To their common dtype.
    Common,
    /// To their common dtype; `bool` becomes int32.
    Numeric,
    /// To their common dtype; `bool` and integers become floats ([`float_of`]).
    Inexact,
    /// Not at all.
    None,
}

impl Rule {
    /// The dtype that operands whose common dtype is `d` are converted to.
    #[inline]
    pub fn target(self, d: DType) -> DType {
        match self {
            Rule::Inexact => float_of(d),
            Rule::Numeric if d.is_bool() => DType::I32,
            _ => d,
        }
    }
}

/// The common dtype and weak type of operands.
#[inline]
pub fn result_type(operands: &[(DType, bool)]) -> Result<(DType, bool)> {
    if Flag::StrictPromotion.get() {
        strict(operands)?;
    }
    // arrays of 64 bits that are there without x64 were asked for
    let wide = config::x64() || operands.iter().any(|(d, weak)| !weak && d.canonical(false) != *d);
    promotion::result_type(operands.iter().copied(), wide)
}

/// Errors unless all strong dtypes are one, and weak ones reach it without changing its kind.
#[cold]
fn strict(operands: &[(DType, bool)]) -> Result<()> {
    let strong: Vec<DType> = operands.iter().filter(|(_, weak)| !weak).map(|(d, _)| *d).collect();
    let fits = |weak: DType, d: DType| {
        let rank = |c: Category| match c {
            Category::Signed | Category::Unsigned => 1,
            Category::Float => 2,
            Category::Complex => 3,
            _ => 0,
        };
        rank(d.category()) >= rank(weak.category()).max(1)
    };
    let Some(&first) = strong.first() else { return Ok(()) };
    let agrees = |(d, weak): &(DType, bool)| if *weak { fits(*d, first) } else { *d == first };
    if operands.iter().all(agrees) {
        return Ok(());
    }
    let names: Vec<String> =
        operands.iter().map(|(d, weak)| format!("'{}{}'", d.name(), if *weak { "*" } else { "" })).collect();
    bail!(
        Promotion,
        "Input dtypes ({}) have no available implicit dtype promotion path when jax_numpy_dtype_promotion=strict. Try \
         explicitly casting inputs to the desired output type, or set jax_numpy_dtype_promotion=standard.",
        names.join(", ")
    )
}

/// Errors where an operand is a random key, which is no number.
pub fn number(name: &str, x: &Value) -> Result<()> {
    if x.dtype().is_key() {
        bail!(Type, "{name} does not accept dtype {}. Accepted dtypes are subtypes of number and bool.", x.dtype());
    }
    Ok(())
}

/// One operand converted by a rule, which takes numbers if it converts any.
#[inline]
pub fn one(name: &str, rule: Rule, x: &Value) -> Result<Value> {
    if rule != Rule::None {
        number(name, x)?;
    }
    let to = rule.target(x.dtype());
    if to == x.dtype() { Ok(x.clone()) } else { convert_weak(x, to, x.weak()) }
}

/// Two operands converted by a rule, and brought to one rank unless one of them is a scalar.
#[inline]
pub fn two(name: &str, rule: Rule, x: &Value, y: &Value) -> Result<[Value; 2]> {
    let [x, y] = if rule == Rule::None {
        [x.clone(), y.clone()]
    } else {
        if x.dtype().is_key() != y.dtype().is_key() {
            bail!(Type, "{name} does not accept dtypes {}, {}.", x.dtype(), y.dtype());
        }
        let (d, weak) = result_type(&[(x.dtype(), x.weak()), (y.dtype(), y.weak())])?;
        let to = rule.target(d);
        [convert_weak(x, to, weak)?, convert_weak(y, to, weak)?]
    };
    if x.rank() == y.rank() || x.rank() == 0 || y.rank() == 0 {
        return Ok([x, y]);
    }
    let mut both = [x, y];
    ranks(name, &mut both)?;
    Ok(both)
}

/// Any number of operands converted to their common dtype by a rule.
pub fn dtypes(rule: Rule, values: &mut [Value]) -> Result<()> {
    let types: smallvec::SmallVec<[(DType, bool); 4]> = values.iter().map(|v| (v.dtype(), v.weak())).collect();
    let (d, weak) = result_type(&types)?;
    let to = rule.target(d);
    for v in values {
        *v = convert_weak(v, to, weak)?;
    }
    Ok(())
}

/// Operands that are no scalars brought to one rank by leading axes of size one.
pub fn ranks(name: &str, values: &mut [Value]) -> Result<()> {
    let rank = values.iter().map(Value::rank).max().unwrap_or(0);
    if values.iter().all(|v| v.rank() == rank || v.rank() == 0) {
        return Ok(());
    }
    let broadcast = |shape: Option<Shape>, v: &Value| ferrax_base::shape::broadcast(&shape?, v.shape());
    if values.iter().fold(Some(Shape::new()), broadcast).is_none() {
        return Err(incompatible_ranks(name, values));
    }
    if Flag::RankPromotionRaise.get() || Flag::RankPromotionWarn.get() {
        implicit_ranks(name, values)?;
    }
    for v in values.iter_mut().filter(|v| v.rank() > 0 && v.rank() < rank) {
        let new: smallvec::SmallVec<[usize; 4]> = (0..rank - v.rank()).collect();
        *v = with_unit_axes(v, &new)?;
    }
    Ok(())
}

#[cold]
fn incompatible_ranks(name: &str, values: &[Value]) -> Error {
    let shapes: Vec<String> = values.iter().map(|v| Tuple(v.shape()).to_string()).collect();
    error!(
        Value,
        "Incompatible shapes for broadcasting: shapes=[{}], those of the operands of {name}",
        shapes.join(", ")
    )
}

/// The shape of two operands combined. Where there is none, the primitives that a function is made of would give their
/// own names.
pub fn compatible(name: &str, x: &Value, y: &Value) -> Result<Shape> {
    match ferrax_base::shape::broadcast(x.shape(), y.shape()) {
        Some(shape) => Ok(shape),
        None => {
            let (x, y) = (Tuple(x.shape()), Tuple(y.shape()));
            bail!(Type, "{name} got incompatible shapes for broadcasting: {x}, {y}.")
        }
    }
}

#[cold]
fn implicit_ranks(name: &str, values: &[Value]) -> Result<()> {
    let shapes: Vec<String> = values.iter().map(|v| Tuple(v.shape()).to_string()).collect();
    let shapes = shapes.join(" ");
    if Flag::RankPromotionRaise.get() {
        bail!(
            Value,
            "Operands could not be broadcast together for {name} on shapes {shapes} and with the config option \
             jax_numpy_rank_promotion='raise'. Give the operand of lower rank its new axes with x[None] or \
             jnp.expand_dims."
        );
    }
    let text = format!(
        "Following NumPy automatic rank promotion for {name} on shapes {shapes}. Set the \
         jax_numpy_rank_promotion config option to 'allow' to disable this warning."
    );
    ferrax_base::warning::warn(&text)
}
