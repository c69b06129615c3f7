//! Elementwise functions as host languages have them: a row beside its block says all that `lax.sinh` is.
//!
//! From the rows come the callables and docstrings of `ferrax.lax`, their type stubs, and those functions of
//! `ferrax::numpy` that are one primitive on floats. A new function of one operand is its block with a row in one of
//! these files, its kernel where it is no composition of others, and its row in `tests/lax/test_elementwise.py`.
//!
//! Read next: `unary.rs`; `ferrax-ops/tests/generated.rs` writes what is generated.

use crate::registry::Primitive;
use ferrax_base::Result;
use ferrax_ir::Value;

/// Dtypes that operands may have, in words.
pub(super) const INEXACT: &str = "floating or complex";
pub(super) const FLOATING: &str = "floating";
pub(super) const INTEGER: &str = "integer";
pub(super) const REAL: &str = "integer or floating";
pub(super) const NUMBER: &str = "integer, floating or complex";
pub(super) const BITS: &str = "integer or bool";
pub(super) const ORDERED: &str = "any but complex";
pub(super) const ANY: &str = "any";

/// What a function computes with.
#[derive(Clone, Copy)]
pub enum Call {
    /// One operand.
    One(fn(&Value) -> Result<Value>),
    /// Two operands.
    Two(fn(&Value, &Value) -> Result<Value>),
}

/// An elementwise function.
#[derive(Clone, Copy)]
pub struct Function {
    /// JAX's name in `jax.lax`.
    pub name: &'static str,
    /// The function.
    pub call: Call,
    /// The names of the operands.
    pub operands: &'static [&'static str],
    /// Whether operands cannot be given by name.
    pub positional_only: bool,
    /// Whether there is an argument `accuracy`, a hint.
    pub approximate: bool,
    /// Whether there is an argument `out_dtype`, which operands are converted to.
    pub out_dtype: bool,
    /// Names of `jax.numpy` for the same function with operands that are converted to floats.
    pub numpy: &'static [&'static str],
    /// Its block.
    pub block: &'static dyn Primitive,
    /// The dtypes that operands may have, in words.
    pub dtypes: &'static str,
    what: Option<&'static str>,
    result: &'static str,
    example: &'static str,
    printed: &'static str,
}

impl Function {
    /// A function of operands of these dtypes; the example is an expression with the function as `{f}`, and what it
    /// prints.
    pub(super) const fn new(
        name: &'static str,
        call: Call,
        block: &'static dyn Primitive,
        dtypes: &'static str,
        [example, printed]: [&'static str; 2],
    ) -> Function {
        Function {
            name,
            call,
            operands: match call {
                Call::One(_) => &["x"],
                Call::Two(_) => &["x", "y"],
            },
            positional_only: false,
            approximate: false,
            out_dtype: false,
            numpy: &[],
            block,
            what: None,
            dtypes,
            result: "of the dtype of the operands",
            example,
            printed,
        }
    }

    /// What it computes, where its block says another thing.
    pub(super) const fn described(self, what: &'static str) -> Function {
        Function { what: Some(what), ..self }
    }

    /// The result's dtype, where it is not the operands'.
    pub(super) const fn gives(self, result: &'static str) -> Function {
        Function { result, ..self }
    }

    /// Takes a hint `accuracy`.
    pub(super) const fn approximate(self) -> Function {
        Function { approximate: true, ..self }
    }

    /// Takes `out_dtype`.
    pub(super) const fn with_out_dtype(self) -> Function {
        Function { out_dtype: true, ..self }
    }

    /// Operands have these names.
    pub(super) const fn operands(self, operands: &'static [&'static str]) -> Function {
        Function { operands, ..self }
    }

    /// Operands cannot be given by name.
    pub(super) const fn positional_only(self) -> Function {
        Function { positional_only: true, ..self }
    }

    /// Is also a function of `jax.numpy`, under these names.
    pub(super) const fn numpy(self, numpy: &'static [&'static str]) -> Function {
        Function { numpy, ..self }
    }

    /// One sentence that says what it computes.
    pub fn what(&self) -> &'static str {
        self.what.unwrap_or_else(|| self.block.doc())
    }

    /// An expression that calls it as `path`, and what it prints.
    pub fn example(&self, path: &str) -> [String; 2] {
        [self.example.replace("{f}", path), self.printed.to_owned()]
    }

    /// The parameters as Python writes them.
    pub fn signature(&self) -> String {
        let end = match self {
            f if f.positional_only => ", /",
            f if f.approximate => ", *, accuracy=None",
            f if f.out_dtype => ", *, out_dtype=None",
            _ => "",
        };
        format!("({}{end})", self.operands.join(", "))
    }

    /// The docstring of `lax`'s function.
    pub fn documentation(&self) -> String {
        let mut operands = format!("      {}: array of {} dtype.\n", self.operands[0], self.dtypes);
        let mut raises = "the dtype is not accepted";
        if let Some(y) = self.operands.get(1) {
            operands += &format!("      {y}: array of the same dtype and number of axes, or a scalar.\n");
            raises = "the dtype is not accepted, or dtypes or shapes differ";
        }
        if self.approximate {
            operands += "      accuracy: a hint; every value gives the same result.\n";
        }
        if self.out_dtype {
            operands += "      out_dtype: dtype that both are converted to first.\n";
        }
        let [example, printed] = self.example(&format!("lax.{}", self.name));
        format!(
            "{}\n\n    Works on each element.\n\n    Args:\n{operands}\n    Returns:\n      Array, {}.\n\n    Raises:\n      \
             TypeError: {raises}.\n\n    >>> import ferrax.numpy as jnp\n    >>> from ferrax import lax\n    \
             >>> print({example})\n    {printed}\n    ",
            self.what(),
            self.result
        )
    }
}

/// Every function, family by family.
pub fn all() -> impl Iterator<Item = &'static Function> {
    [super::unary::FUNCTIONS, super::binary::FUNCTIONS, super::compare::FUNCTIONS, super::special::FUNCTIONS]
        .into_iter()
        .flatten()
}
