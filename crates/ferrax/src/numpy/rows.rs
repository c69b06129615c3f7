//! What a function is: a row with its names and words, how its operands are converted, and the primitive that does it.
//!
//! Read next: `unary.rs`.

use super::promote::{self, Rule};
use crate::debug::whole;
use crate::direct::{self, Operand};
use ferrax_base::{DType, Result, promotion};
use ferrax_ir::trace::{bind1, is_eager};
use ferrax_ir::{Array, Lit, OpRef, Value};

/// What a function computes, in words for its documentation.
#[derive(Clone, Copy)]
pub struct Words {
    what: &'static str,
    result: &'static str,
    example: &'static str,
    printed: &'static str,
}

impl Words {
    /// A sentence, the dtype of the result, an expression with the function as `{f}`, and what it prints.
    pub(super) const fn new([what, result, example, printed]: [&'static str; 4]) -> Words {
        Words { what, result, example, printed }
    }

    /// The docstring of `jax.numpy`'s function of this name with these parameters: operands, and `out` at the end.
    pub fn documentation(&self, name: &str, same_as: Option<&str>, parameters: &[&str]) -> String {
        let what = match same_as {
            Some(other) => format!("{} Another name of ``{other}``.", self.what),
            None => self.what.to_owned(),
        };
        let line = |(i, parameter): (usize, &&str)| match *parameter {
            "out" => "      out: must be None.\n".to_owned(),
            x if i == 0 => format!("      {x}: array.\n"),
            y => format!("      {y}: array, broadcast with {}.\n", parameters[0]),
        };
        let arguments: String = parameters.iter().enumerate().map(line).collect();
        let example = self.example.replace("{f}", &format!("jnp.{name}"));
        format!(
            "{what}\n\n    Works on each element.\n\n    Args:\n{arguments}\n    Returns:\n      Array, {}.\n\n    \
             >>> import ferrax.numpy as jnp\n    >>> print({example})\n    {}\n    ",
            self.result, self.printed
        )
    }
}

/// A function of one operand.
#[derive(Clone, Copy)]
pub struct Unary {
    /// `jax.numpy`'s name.
    pub name: &'static str,
    /// The function that this is another name of.
    pub same_as: Option<&'static str>,
    /// What it computes.
    pub words: Words,
    /// How the operand is converted.
    pub rule: Rule,
    /// The primitive that computes the function of an operand of this dtype, where it is a single one.
    pub direct: fn(DType) -> Option<OpRef>,
    /// The function of a converted operand, for the other dtypes.
    pub general: fn(&Value) -> Result<Value>,
}

/// A function of two operands.
#[derive(Clone, Copy)]
pub struct Binary {
    /// `jax.numpy`'s name.
    pub name: &'static str,
    /// The function that this is another name of.
    pub same_as: Option<&'static str>,
    /// What it computes.
    pub words: Words,
    /// How the operands are converted.
    pub rule: Rule,
    /// The primitive that computes the function of operands of this dtype, where it is a single one.
    pub direct: fn(DType) -> Option<OpRef>,
    /// The function of converted operands of one rank, for the other dtypes.
    pub general: fn(&Value, &Value) -> Result<Value>,
    /// The function of operands of two dtypes as they were, of this common dtype, where that is another one.
    pub mixed: fn(&Value, &Value, DType) -> Result<Option<Value>>,
}

impl Unary {
    /// Applies the function.
    pub fn call(&self, x: &Value) -> Result<Value> {
        let x = promote::one(self.name, self.rule, x)?;
        match (self.direct)(x.dtype()) {
            Some(op) => bind1(&op, std::slice::from_ref(&x)),
            None => whole(|| (self.general)(&x)),
        }
    }

    /// The function of an array that needs no conversion by its kernel at once; `None` where [`call`](Self::call) has
    /// to do it.
    #[inline]
    pub fn at_once(&self, x: &Array) -> Result<Option<Array>> {
        match kernel(self.rule, self.direct, x.aval().dtype) {
            Some(op) => direct::run(&op, &[Operand::Array(x)]),
            None => Ok(None),
        }
    }

    /// The docstring of the function with these parameters.
    pub fn documentation(&self, parameters: &[&str]) -> String {
        self.words.documentation(self.name, self.same_as, parameters)
    }
}

/// The primitive that computes a function at once of operands of one dtype that need no conversion.
#[inline]
fn kernel(rule: Rule, find: fn(DType) -> Option<OpRef>, d: DType) -> Option<OpRef> {
    if rule.target(d) == d && is_eager() { find(d) } else { None }
}

/// A number as the other operand of an array; `None` where the array, or a number of a dtype of its own, is converted.
#[inline]
fn beside(x: &Array, number: &Lit) -> Option<Lit> {
    let (d, weak) = (x.aval().dtype, x.aval().weak);
    if !number.weak && number.scalar.dtype != d {
        return None;
    }
    let (to, weak) = promotion::join((d, weak), (number.scalar.dtype, number.weak)).ok()?;
    (to == d).then(|| Lit { scalar: number.scalar.convert(d), weak })
}

/// Operands of one dtype: two arrays, or an array and a number that counts as one, which is kept in `held`.
#[inline]
pub(super) fn alike<'a>(
    x: Operand<'a>,
    y: Operand<'a>,
    held: &'a mut Option<Lit>,
) -> Option<(DType, [Operand<'a>; 2])> {
    Some(match (x, y) {
        (Operand::Array(a), Operand::Array(b)) if a.aval().dtype == b.aval().dtype => (a.aval().dtype, [x, y]),
        (Operand::Array(a), Operand::Lit(n)) => (a.aval().dtype, [x, Operand::Lit(held.insert(beside(a, n)?))]),
        (Operand::Lit(n), Operand::Array(b)) => (b.aval().dtype, [Operand::Lit(held.insert(beside(b, n)?)), y]),
        _ => return None,
    })
}

impl Binary {
    /// The function of two arrays of one dtype, or of an array and a number, that need no conversion, by its kernel at
    /// once; `None` where [`call`](Self::call) has to do it.
    #[inline]
    pub fn at_once(&self, x: Operand<'_>, y: Operand<'_>) -> Result<Option<Array>> {
        let mut held = None;
        let Some((dtype, operands)) = alike(x, y, &mut held) else { return Ok(None) };
        match kernel(self.rule, self.direct, dtype) {
            Some(op) => direct::run(&op, &operands),
            None => Ok(None),
        }
    }

    /// Applies the function.
    pub fn call(&self, x: &Value, y: &Value) -> Result<Value> {
        let kept = [x, y];
        let [x, y] = promote::two(self.name, self.rule, x, y)?;
        if kept[0].dtype() != kept[1].dtype()
            && let Some(out) = (self.mixed)(kept[0], kept[1], x.dtype())?
        {
            return Ok(out);
        }
        match (self.direct)(x.dtype()) {
            Some(op) => bind1(&op, &[x, y]),
            None => {
                promote::compatible(self.name, &x, &y)?;
                whole(|| (self.general)(&x, &y))
            }
        }
    }

    /// The docstring of the function with these parameters.
    pub fn documentation(&self, parameters: &[&str]) -> String {
        self.words.documentation(self.name, self.same_as, parameters)
    }
}

/// The general rule of a function that its primitive covers for every dtype; the primitive says what it takes.
pub(super) fn never1(_: &Value) -> Result<Value> {
    Err(ferrax_base::error!(Internal, "a function of one primitive was asked for its general rule"))
}

/// As [`never1`], for two operands.
pub(super) fn never2(_: &Value, _: &Value) -> Result<Value> {
    never1(&Value::float(DType::F32, 0.0))
}

/// Of a function that has no other way with operands of two dtypes.
pub(super) fn converted(_: &Value, _: &Value, _: DType) -> Result<Option<Value>> {
    Ok(None)
}

/// Writes the row of a function of one or two operands, and the function.
macro_rules! row {
    (
        $Row:ident($($x:ident),*) { $($field:ident: $value:expr)? }, $fun:ident, $NAME:ident, $name:literal,
        [$what:literal, $($words:literal),*], $rule:ident, $direct:expr, $general:expr
    ) => {
        #[doc = $what]
        pub static $NAME: $crate::numpy::$Row = $crate::numpy::$Row {
            name: $name,
            same_as: None,
            words: $crate::numpy::Words::new([$what, $($words),*]),
            rule: $crate::numpy::Rule::$rule,
            direct: $direct,
            general: $general,
            $($field: $value,)?
        };

        #[doc = $what]
        pub fn $fun($($x: &ferrax_ir::Value),*) -> ferrax_base::Result<ferrax_ir::Value> {
            $NAME.call($($x),*)
        }
    };
}
pub(super) use row;

/// Writes a [`row!`] of one operand.
macro_rules! unary {
    ($($row:tt)*) => { $crate::numpy::rows::row!(Unary(x) {}, $($row)*); };
}
pub(super) use unary;

/// Writes a [`row!`] of two operands.
macro_rules! binary {
    ($($row:tt)*) => {
        $crate::numpy::rows::row!(Binary(x, y) { mixed: $crate::numpy::rows::converted }, $($row)*);
    };
}
pub(super) use binary;

/// Writes another name of a function.
macro_rules! alias {
    ($Row:ident($($x:ident),*), $fun:ident, $NAME:ident, $name:literal, $OF:ident) => {
        #[doc = concat!("Another name of [`", stringify!($OF), "`].")]
        pub static $NAME: $crate::numpy::$Row =
            $crate::numpy::$Row { name: $name, same_as: Some($OF.name), ..$OF };

        #[doc = concat!("Another name of [`", stringify!($OF), "`].")]
        pub fn $fun($($x: &ferrax_ir::Value),*) -> ferrax_base::Result<ferrax_ir::Value> {
            $NAME.call($($x),*)
        }
    };
}
pub(super) use alias;

/// Other names of functions of one operand.
macro_rules! unary_aliases {
    ($($fun:ident $NAME:ident $name:literal of $OF:ident;)*) => {
        $($crate::numpy::rows::alias!(Unary(x), $fun, $NAME, $name, $OF);)*
    };
}
pub(super) use unary_aliases;

/// Other names of functions of two operands.
macro_rules! binary_aliases {
    ($($fun:ident $NAME:ident $name:literal of $OF:ident;)*) => {
        $($crate::numpy::rows::alias!(Binary(x, y), $fun, $NAME, $name, $OF);)*
    };
}
pub(super) use binary_aliases;
