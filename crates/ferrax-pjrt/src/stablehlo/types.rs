//! Types, constants and attributes as text.
//!
//! Keys of random numbers are 64-bit integers here, and `float0` is `i1`: both move as elements of that size do.

use ferrax_base::{DType, Scalar};
use ferrax_loops::Type;
use std::fmt::{Display, Write};

/// The element type's name in MLIR.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::Float0 => "i1",
        DType::I2 => "i2",
        DType::I4 => "i4",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U2 => "ui2",
        DType::U4 => "ui4",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 | DType::KeyFry => "ui64",
        DType::F4E2M1FN => "f4E2M1FN",
        DType::F8E3M4 => "f8E3M4",
        DType::F8E4M3 => "f8E4M3",
        DType::F8E4M3B11FNUZ => "f8E4M3B11FNUZ",
        DType::F8E4M3FN => "f8E4M3FN",
        DType::F8E4M3FNUZ => "f8E4M3FNUZ",
        DType::F8E5M2 => "f8E5M2",
        DType::F8E5M2FNUZ => "f8E5M2FNUZ",
        DType::F8E8M0FNU => "f8E8M0FNU",
        DType::BF16 => "bf16",
        DType::F16 => "f16",
        DType::F32 => "f32",
        DType::F64 => "f64",
        DType::C64 => "complex<f32>",
        DType::C128 => "complex<f64>",
    }
}

/// A tensor type: `tensor<2x3xf32>`.
pub(crate) fn tensor(ty: &Type) -> String {
    let mut text = String::from("tensor<");
    for d in &ty.shape {
        let _ = write!(text, "{d}x");
    }
    text.push_str(element(ty.dtype));
    text.push('>');
    text
}

/// A list of integers as an attribute: `array<i64: 0, 2>`.
pub(crate) fn array<T: Display>(items: &[T]) -> String {
    if items.is_empty() {
        return "array<i64>".into();
    }
    format!("array<i64: {}>", list(items))
}

/// Items with commas between them.
pub(crate) fn list<T: Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// A scalar in every place of a type, as an attribute. Floats are their bits, so that nothing is rounded on the way.
pub(crate) fn constant(scalar: Scalar, ty: &Type) -> String {
    format!("dense<{}> : {}", number(scalar), tensor(ty))
}

/// Elements of a one-dimensional type, as an attribute: their bytes where the dialect has them as we do, else a list.
pub(crate) fn dense(bytes: &[u8], ty: &Type) -> String {
    let d = ty.dtype;
    let mut text = String::from("dense<");
    if bytes.is_empty() {
    } else if matches!(d, DType::Bool | DType::Float0) || d.bits() < 8 {
        let numbers = bytes.chunks_exact(d.size()).map(|b| number(Scalar::from_bytes(d, b)));
        let _ = write!(text, "[{}]", numbers.collect::<Vec<_>>().join(", "));
    } else {
        text.push_str("\"0x");
        text.reserve(2 * bytes.len());
        for b in bytes {
            for half in [b >> 4, b & 15] {
                text.push(char::from(b"0123456789ABCDEF"[usize::from(half)]));
            }
        }
        text.push('"');
    }
    let _ = write!(text, "> : {}", tensor(ty));
    text
}

/// One element of a `dense` attribute.
pub(crate) fn number(scalar: Scalar) -> String {
    let dtype = scalar.dtype;
    match dtype {
        DType::Bool | DType::Float0 => (scalar.bits & 1 == 1).to_string(),
        DType::KeyFry => (scalar.bits as u64).to_string(),
        _ if dtype.is_signed() => scalar.to_i64().to_string(),
        _ if dtype.is_unsigned() => (scalar.to_i64() as u64).to_string(),
        _ if dtype.is_complex() => {
            let bits = 8 * dtype.real().size();
            let half = |at: usize| hex((scalar.bits >> (at * bits)) & ((1 << bits) - 1), dtype.real());
            format!("({}, {})", half(0), half(1))
        }
        _ => hex(scalar.bits, dtype),
    }
}

/// A float as its bits.
fn hex(bits: u128, dtype: DType) -> String {
    format!("0x{bits:0width$X}", width = 2 * dtype.size())
}
