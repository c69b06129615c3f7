//! Dtypes in CUDA C.
//!
//! A value is in registers as it is in memory, so that what only moves keeps its bits; floats of fewer than 32 bits are
//! widened to `float` by whoever computes with them, and rounded once. Read next: `elementwise.rs`.

use ferrax_base::{DType, Scalar};

/// The type of elements, in memory and in registers.
pub fn c_type(d: DType) -> &'static str {
    match d {
        DType::Bool | DType::U2 | DType::U4 | DType::U8 | DType::Float0 => "unsigned char",
        DType::I2 | DType::I4 | DType::I8 => "signed char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long long",
        DType::U16 | DType::BF16 | DType::F16 => "unsigned short",
        DType::U32 => "unsigned",
        DType::U64 | DType::KeyFry => "unsigned long long",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::C64 => "fx_c64",
        DType::C128 => "fx_c128",
        _ => "unsigned char",
    }
}

/// The unsigned integer of an integer dtype's width in memory.
pub fn unsigned(d: DType) -> &'static str {
    match d.size() {
        1 => "unsigned char",
        2 => "unsigned short",
        4 => "unsigned",
        _ => "unsigned long long",
    }
}

/// The signed integer of an integer dtype's width in memory.
pub fn signed(d: DType) -> &'static str {
    match d.size() {
        1 => "signed char",
        2 => "short",
        4 => "int",
        _ => "long long",
    }
}

/// The dtype that floats are computed in.
pub fn compute(d: DType) -> DType {
    if d == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Whether floats are computed in a wider dtype than their own.
pub fn is_narrow(d: DType) -> bool {
    d.is_float() && compute(d) != d
}

/// A float in the dtype that it is computed in.
pub fn widened(d: DType, x: &str) -> String {
    if is_narrow(d) { format!("fx_of_{}({x})", d.short_name()) } else { x.to_owned() }
}

/// What was computed, as a float of a dtype.
pub fn narrowed(d: DType, x: &str) -> String {
    if is_narrow(d) { format!("fx_to_{}({x})", d.short_name()) } else { x.to_owned() }
}

/// An integer expression as an element of an integer dtype: its lowest bits.
pub fn wrapped(d: DType, x: &str) -> String {
    match d {
        DType::I2 | DType::I4 => {
            let up = 8 - d.bits();
            format!("(signed char)((signed char)((unsigned char)({x}) << {up}) >> {up})")
        }
        DType::U2 | DType::U4 => format!("(unsigned char)(({x}) & {})", (1 << d.bits()) - 1),
        _ => format!("({})({x})", c_type(d)),
    }
}

/// A constant.
pub fn literal(s: Scalar) -> String {
    let d = s.dtype;
    match d {
        DType::F32 => format!("fx_single({:#010x}u)", s.bits as u32),
        DType::F64 => format!("fx_double({:#018x}ull)", s.bits as u64),
        DType::C64 => {
            format!("fx_c64_of(fx_single({:#010x}u), fx_single({:#010x}u))", s.bits as u32, (s.bits >> 32) as u32)
        }
        DType::C128 => {
            format!("fx_c128_of(fx_double({:#018x}ull), fx_double({:#018x}ull))", s.bits as u64, (s.bits >> 64) as u64)
        }
        DType::I64 => format!("(long long){:#x}ull", s.bits as u64),
        DType::U64 | DType::KeyFry => format!("{:#x}ull", s.bits as u64),
        DType::U32 => format!("{}u", s.bits as u32),
        d if d.is_signed() => format!("({})({})", c_type(d), s.to_i64()),
        _ => format!("({}){}", c_type(d), s.bits as u64 & ((1u64 << d.bits()) - 1)),
    }
}
