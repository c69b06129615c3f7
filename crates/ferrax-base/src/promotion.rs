//! JAX's type promotion: a lattice over dtypes and the three weak types.
//!
//! The join of two nodes is their least common upper bound. Nodes with no path to a common bound
//! (float8 with any other float, int4 with anything but itself and weak integers) do not combine. Source: JAX's "Type promotion
//! semantics" page.

use crate::dtype::{Category, DType};
use crate::{Result, error};

/// A lattice node: a strong dtype, or a weak int, float or complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    WeakInt,
    WeakFloat,
    WeakComplex,
    Strong(DType),
}

impl Node {
    fn new(dtype: DType, weak: bool) -> Node {
        match dtype.category() {
            Category::Signed | Category::Unsigned if weak => Node::WeakInt,
            Category::Float if weak => Node::WeakFloat,
            Category::Complex if weak => Node::WeakComplex,
            _ => Node::Strong(dtype),
        }
    }
}

/// The dtype and weak type of combining two operands; `Err` names the pair that does not combine.
pub fn join(a: (DType, bool), b: (DType, bool)) -> Result<(DType, bool)> {
    if a.0 == b.0 {
        return Ok((a.0, a.1 && b.1));
    }
    let (x, y) = (Node::new(a.0, a.1), Node::new(b.0, b.1));
    match join_nodes(x, y) {
        Some(Node::Strong(d)) => Ok((d, false)),
        // A weak result keeps the wider of the operands' own dtypes of that kind.
        Some(weak) => Ok((weak_dtype(weak, a, b), true)),
        None => Err(no_path(a.0, b.0)),
    }
}

#[cold]
fn no_path(a: DType, b: DType) -> crate::Error {
    if [a, b].contains(&DType::Float0) {
        return error!(
            Type,
            "Called an operation with a float0 array. float0s do not support any operations by design, because they are \
             not compatible with non-trivial vector spaces: they are the derivatives of integers. Got '{a}' and '{b}'; \
             no implicit dtype promotion was done. Use jax.numpy.zeros(shape, float) for zeros of a derivative."
        );
    }
    let any = |test: fn(DType) -> bool| test(a) || test(b);
    // the widest narrow float takes the blame, then the integers
    let (narrow, target) = if any(|d| d.is_float() && d.bits() == 8) {
        (Some("8-bit floats"), "float32")
    } else if any(|d| d.is_float() && d.bits() < 8) {
        (Some("4-bit floats"), "float32")
    } else if any(|d| d.is_integer() && d.bits() < 8) {
        (Some("1-bit, 2-bit and 4-bit integers"), "int32")
    } else {
        (None, "float32")
    };
    let why = narrow.map_or(String::new(), |kind| {
        format!(" To avoid unintended promotion, {kind} do not support implicit promotion.")
    });
    error!(
        Promotion,
        "Input dtypes ('{a}', '{b}') have no available implicit dtype promotion path.{why} If you'd like your inputs to \
         be promoted to another type, you can do so explicitly using e.g. x.astype('{target}')"
    )
}

fn weak_dtype(node: Node, a: (DType, bool), b: (DType, bool)) -> DType {
    let wide = matches!(a.0, DType::F64 | DType::C128 | DType::I64 | DType::U64)
        || matches!(b.0, DType::F64 | DType::C128 | DType::I64 | DType::U64);
    match (node, wide) {
        (Node::WeakInt, true) => DType::I64,
        (Node::WeakInt, false) => DType::I32,
        (Node::WeakFloat, true) => DType::F64,
        (Node::WeakFloat, false) => DType::F32,
        (Node::WeakComplex, true) => DType::C128,
        _ => DType::C64,
    }
}

fn join_nodes(x: Node, y: Node) -> Option<Node> {
    use Node::*;
    if x == y {
        return Some(x);
    }
    Some(match (x, y) {
        (Strong(DType::Bool), other) | (other, Strong(DType::Bool)) => match other {
            Strong(d) if d.is_key() || d == DType::Float0 => return None,
            _ => other,
        },
        (WeakInt, WeakFloat) | (WeakFloat, WeakInt) => WeakFloat,
        (WeakComplex, WeakInt | WeakFloat) | (WeakInt | WeakFloat, WeakComplex) => WeakComplex,
        (Strong(a), Strong(b)) => return join_strong(a, b),
        (weak, Strong(d)) | (Strong(d), weak) => return join_weak(weak, d),
        _ => return None,
    })
}

fn join_weak(weak: Node, d: DType) -> Option<Node> {
    Some(match (weak, d.category()) {
        (Node::WeakInt, Category::Signed | Category::Unsigned) => Node::Strong(d),
        (Node::WeakInt | Node::WeakFloat, Category::Float) => Node::Strong(d),
        (Node::WeakFloat | Node::WeakComplex, Category::Signed | Category::Unsigned) if d.bits() >= 8 => weak,
        (Node::WeakComplex, Category::Float) => match d {
            DType::F64 => Node::Strong(DType::C128),
            DType::F32 | DType::F16 | DType::BF16 => Node::Strong(DType::C64),
            _ => return None,
        },
        (_, Category::Complex) => Node::Strong(d),
        _ => return None,
    })
}

fn join_strong(a: DType, b: DType) -> Option<Node> {
    if [a, b].into_iter().any(|d| d.is_integer() && d.bits() < 8) {
        return None;
    }
    let narrow = |d: DType| d.is_float() && d.size() == 1;
    if narrow(a) || narrow(b) {
        let (float, other) = if narrow(a) { (a, b) } else { (b, a) };
        return other.is_integer().then_some(Node::Strong(float));
    }
    Some(Node::Strong(match (a.category(), b.category()) {
        (Category::Signed | Category::Unsigned, Category::Signed | Category::Unsigned) => {
            return Some(join_integers(a, b));
        }
        (Category::Signed | Category::Unsigned, Category::Float | Category::Complex) => b,
        (Category::Float | Category::Complex, Category::Signed | Category::Unsigned) => a,
        (Category::Float, Category::Float) => match (a, b) {
            (DType::BF16, DType::F16) | (DType::F16, DType::BF16) => DType::F32,
            _ if a.size() > b.size() => a,
            _ => b,
        },
        (Category::Complex, Category::Complex) => DType::C128,
        (Category::Complex, Category::Float) => {
            if b == DType::F64 {
                DType::C128
            } else {
                a
            }
        }
        (Category::Float, Category::Complex) => {
            if a == DType::F64 {
                DType::C128
            } else {
                b
            }
        }
        _ => return None,
    }))
}

fn join_integers(a: DType, b: DType) -> Node {
    if a.category() == b.category() {
        return Node::Strong(if a.size() > b.size() { a } else { b });
    }
    let (signed, unsigned) = if a.is_signed() { (a, b) } else { (b, a) };
    if signed.size() > unsigned.size() {
        return Node::Strong(signed);
    }
    match unsigned {
        DType::U8 => Node::Strong(DType::I16),
        DType::U16 => Node::Strong(DType::I32),
        DType::U32 => Node::Strong(DType::I64),
        // no integer holds both
        _ => Node::WeakFloat,
    }
}

/// Joins any number of operands, then maps the result to the dtypes that are enabled.
pub fn result_type(operands: impl IntoIterator<Item = (DType, bool)>, x64: bool) -> Result<(DType, bool)> {
    let mut it = operands.into_iter();
    let Some(first) = it.next() else { return Ok((DType::F32.canonical(x64), false)) };
    let (d, weak) = it.try_fold(first, join)?;
    Ok((d.canonical(x64), weak))
}

#[cfg(test)]
mod tests {
    use super::join;
    use crate::DType;

    /// What the error of a pair calls the dtypes that do not combine, and what it advises.
    fn said(a: DType, b: DType) -> (String, String) {
        let text = join((a, false), (b, false)).unwrap_err().to_string();
        let between = |from: &str, to: &str| {
            let rest = text.split_once(from).map_or("", |(_, rest)| rest);
            rest.split_once(to).map_or("", |(what, _)| what).to_owned()
        };
        (between("unintended promotion, ", " do not support"), between("astype('", "')"))
    }

    #[test]
    fn narrow_dtypes_are_named() {
        use DType::{BF16, C64, F4E2M1FN, F8E4M3FN, F8E5M2, F32, I2, I4, I8, U4};
        let integers = "1-bit, 2-bit and 4-bit integers";
        for (a, b, kind, to) in [
            (F8E4M3FN, F32, "8-bit floats", "float32"),
            (F8E4M3FN, F8E5M2, "8-bit floats", "float32"),
            (F8E5M2, F4E2M1FN, "8-bit floats", "float32"),
            (I4, F8E5M2, "8-bit floats", "float32"),
            (F4E2M1FN, BF16, "4-bit floats", "float32"),
            (U4, F4E2M1FN, "4-bit floats", "float32"),
            (I4, I8, integers, "int32"),
            (I2, U4, integers, "int32"),
            (I4, C64, integers, "int32"),
        ] {
            assert_eq!(said(a, b), (kind.into(), to.into()), "{a} and {b}");
            assert_eq!(said(b, a), (kind.into(), to.into()), "{b} and {a}");
        }
    }
}
