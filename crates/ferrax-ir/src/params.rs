//! Parameters of primitives: typed structs that print, parse, compare and hash.
//!
//! [`params!`](crate::params!) declares a struct and derives all of it from the fields; field names are the
//! names jaxprs print, in alphabetical order as JAX prints them.

use crate::jaxpr::{Jaxpr, JaxprRef};
use ferrax_base::{DType, Scalar};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::hash::Hash;
use std::sync::Arc;

/// A printed parameter value: text, a program, or a tuple of such.
#[derive(Clone, Debug)]
pub enum Param {
    /// Anything that prints on one line.
    Text(String),
    /// A program.
    Jaxpr(JaxprRef),
    /// Programs in parentheses, one a line.
    Tuple(Vec<Param>),
}

/// The parameters of a primitive.
pub trait Params: Clone + Eq + Hash + Send + Sync + 'static {
    /// Name and value of each parameter in the order in which they print: sorted by name, unless JAX has another.
    fn print(&self) -> Vec<(&'static str, Param)>;
    /// The parameters back from their printed values; `None` when they cannot be told from text.
    fn parse(fields: &BTreeMap<String, Param>) -> Option<Self>;
    /// Programs among the parameters.
    fn subjaxprs(&self) -> Vec<JaxprRef> {
        Vec::new()
    }
    /// The name of a primitive that users define, in place of the definition's.
    fn name(&self) -> Option<&str> {
        None
    }
}

impl Params for () {
    fn print(&self) -> Vec<(&'static str, Param)> {
        Vec::new()
    }
    fn parse(_: &BTreeMap<String, Param>) -> Option<Self> {
        Some(())
    }
}

/// A type of parameter values.
pub trait ParamValue: Sized {
    /// Its printed form.
    fn print(&self) -> Param;
    /// The value of a printed form.
    fn parse(text: &Param) -> Option<Self>;
    /// Programs in it.
    fn subjaxprs(&self, _out: &mut Vec<JaxprRef>) {}
}

macro_rules! text_values {
    ($($ty:ty),*) => {$(
        impl ParamValue for $ty {
            fn print(&self) -> Param { Param::Text(self.to_string()) }
            fn parse(text: &Param) -> Option<Self> {
                match text { Param::Text(t) => t.parse().ok(), _ => None }
            }
        }
    )*};
}
text_values!(usize, i64, i32, u32, String);

impl ParamValue for bool {
    fn print(&self) -> Param {
        Param::Text(if *self { "True" } else { "False" }.into())
    }
    fn parse(text: &Param) -> Option<Self> {
        match text {
            Param::Text(t) => match t.as_str() {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
}

impl ParamValue for DType {
    fn print(&self) -> Param {
        Param::Text(self.name().into())
    }
    fn parse(text: &Param) -> Option<Self> {
        match text {
            Param::Text(t) => DType::from_name(t),
            _ => None,
        }
    }
}

impl ParamValue for Scalar {
    fn print(&self) -> Param {
        Param::Text(format!("{}:{}:{:#x}", self, self.dtype.short_name(), self.bits))
    }
    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        let (rest, bits) = t.rsplit_once(":0x")?;
        let (_, dtype) = rest.rsplit_once(':')?;
        Some(Scalar { dtype: DType::from_short_name(dtype)?, bits: u128::from_str_radix(bits, 16).ok()? })
    }
}

impl ParamValue for Arc<str> {
    fn print(&self) -> Param {
        Param::Text(self.to_string())
    }
    fn parse(text: &Param) -> Option<Self> {
        match text {
            Param::Text(t) => Some(t.as_str().into()),
            _ => None,
        }
    }
}

impl<T: ParamValue> ParamValue for Option<T> {
    fn print(&self) -> Param {
        self.as_ref().map_or_else(|| Param::Text("None".into()), ParamValue::print)
    }
    fn parse(text: &Param) -> Option<Self> {
        match text {
            Param::Text(t) if t == "None" => Some(None),
            other => T::parse(other).map(Some),
        }
    }
    fn subjaxprs(&self, out: &mut Vec<JaxprRef>) {
        if let Some(v) = self {
            v.subjaxprs(out);
        }
    }
}

/// Splits `(a, b, (c, d))` at its top-level commas; `None` when it is no tuple or list.
pub fn split_tuple(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let inner = inner.or_else(|| text.strip_prefix('[').and_then(|t| t.strip_suffix(']')))?;
    let (mut depth, mut start, mut out) = (0, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(inner[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    let last = inner[start..].trim();
    if !last.is_empty() {
        out.push(last);
    }
    Some(out)
}

fn join(items: Vec<Param>) -> Param {
    if items.iter().any(|p| !matches!(p, Param::Text(_))) {
        return Param::Tuple(items);
    }
    let texts: Vec<String> = items
        .into_iter()
        .map(|p| match p {
            Param::Text(t) => t,
            _ => String::new(),
        })
        .collect();
    Param::Text(match texts.len() {
        1 => format!("({},)", texts[0]),
        _ => format!("({})", texts.join(", ")),
    })
}

fn items<T: ParamValue>(text: &Param) -> Option<Vec<T>> {
    match text {
        Param::Tuple(parts) => parts.iter().map(T::parse).collect(),
        Param::Text(t) => split_tuple(t)?.into_iter().map(|p| T::parse(&Param::Text(p.into()))).collect(),
        Param::Jaxpr(_) => None,
    }
}

impl<T: ParamValue> ParamValue for Vec<T> {
    fn print(&self) -> Param {
        join(self.iter().map(ParamValue::print).collect())
    }
    fn parse(text: &Param) -> Option<Self> {
        items(text)
    }
    fn subjaxprs(&self, out: &mut Vec<JaxprRef>) {
        self.iter().for_each(|v| v.subjaxprs(out));
    }
}

impl<T: ParamValue, const N: usize> ParamValue for SmallVec<[T; N]> {
    fn print(&self) -> Param {
        join(self.iter().map(ParamValue::print).collect())
    }
    fn parse(text: &Param) -> Option<Self> {
        Some(items(text)?.into())
    }
}

impl<A: ParamValue, B: ParamValue> ParamValue for (A, B) {
    fn print(&self) -> Param {
        join(vec![self.0.print(), self.1.print()])
    }
    fn parse(text: &Param) -> Option<Self> {
        let Param::Text(t) = text else { return None };
        match split_tuple(t)?.as_slice() {
            [a, b] => Some((A::parse(&Param::Text((*a).into()))?, B::parse(&Param::Text((*b).into()))?)),
            _ => None,
        }
    }
}

impl ParamValue for JaxprRef {
    fn print(&self) -> Param {
        Param::Jaxpr(self.clone())
    }
    fn parse(text: &Param) -> Option<Self> {
        match text {
            Param::Jaxpr(j) => Some(j.clone()),
            _ => None,
        }
    }
    fn subjaxprs(&self, out: &mut Vec<JaxprRef>) {
        out.push(self.clone());
    }
}

impl From<Jaxpr> for Param {
    fn from(j: Jaxpr) -> Self {
        Param::Jaxpr(JaxprRef::new(j))
    }
}

/// Declares the parameters of a primitive: a struct with `Hash + Eq`, printing and parsing.
///
/// ```
/// ferrax_ir::params! {
///     /// Parameters of a rotation.
///     pub struct Rotate {
///         /// Axis to rotate along.
///         axis: usize,
///     }
/// }
/// assert_eq!(ferrax_ir::Params::print(&Rotate { axis: 1 })[0].0, "axis");
/// ```
///
/// Fields after `hidden` are neither printed nor parsed; they parse as their default. A primitive that JAX prints in
/// a way of its own says so at the end: `print: |p: &Rotate, sorted| …` gives the list to print.
#[macro_export]
macro_rules! params {
    (
        $(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? }
        $(hidden { $($(#[$hdoc:meta])* $hidden:ident : $hty:ty),* $(,)? })?
        $(print: $print:expr)?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$fdoc])* pub $field: $ty,)*
            $($($(#[$hdoc])* pub $hidden: $hty,)*)?
        }

        impl $crate::params::Params for $name {
            fn print(&self) -> Vec<(&'static str, $crate::params::Param)> {
                let mut out = vec![$((stringify!($field), $crate::params::ParamValue::print(&self.$field))),*];
                out.sort_by_key(|(name, _)| *name);
                $(let out = ($print)(self, out);)?
                out
            }
            fn parse(fields: &std::collections::BTreeMap<String, $crate::params::Param>) -> Option<Self> {
                Some($name {
                    $($field: $crate::params::ParamValue::parse(fields.get(stringify!($field))?)?,)*
                    $($($hidden: Default::default(),)*)?
                })
            }
            fn subjaxprs(&self) -> Vec<$crate::jaxpr::JaxprRef> {
                #[allow(unused_mut)]
                let mut out = Vec::new();
                $($crate::params::ParamValue::subjaxprs(&self.$field, &mut out);)*
                out
            }
        }
    };
}
