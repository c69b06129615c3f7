//! Element types. One fieldless enum: cheap to copy, compare, hash and match on.
//!
//! Sub-byte types (`int4`, `float4_e2m1fn`, …) occupy one byte an element on the host, as in `ml_dtypes`.
//! Read next: `promotion.rs` for how two dtypes combine.

/// The kind of number a dtype holds; `Float` includes the narrow storage formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// `bool`.
    Bool,
    /// Unsigned integers.
    Unsigned,
    /// Signed integers.
    Signed,
    /// Floating point, float8 and float4 included.
    Float,
    /// Complex.
    Complex,
    /// Typed PRNG keys.
    Key,
    /// `float0`, the tangent type of integers: holds no information.
    Float0,
}

macro_rules! dtypes {
    ($($variant:ident, $name:literal, $short:literal, $size:literal, $cat:ident;)*) => {
        /// An element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DType {
            $(#[doc = $name] $variant,)*
        }

        impl DType {
            /// Every dtype, in declaration order.
            pub const ALL: &'static [DType] = &[$(DType::$variant,)*];

            /// NumPy's name: `"float32"`.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// The name jaxprs print: `"f32"`.
            pub const fn short_name(self) -> &'static str {
                match self { $(DType::$variant => $short,)* }
            }

            /// Bytes an element takes in a host buffer.
            pub const fn size(self) -> usize {
                match self { $(DType::$variant => $size,)* }
            }

            /// The kind of number.
            pub const fn category(self) -> Category {
                match self { $(DType::$variant => Category::$cat,)* }
            }
        }
    };
}

dtypes! {
    Bool, "bool", "bool", 1, Bool;
    I2, "int2", "i2", 1, Signed;
    I4, "int4", "i4", 1, Signed;
    I8, "int8", "i8", 1, Signed;
    I16, "int16", "i16", 2, Signed;
    I32, "int32", "i32", 4, Signed;
    I64, "int64", "i64", 8, Signed;
    U2, "uint2", "u2", 1, Unsigned;
    U4, "uint4", "u4", 1, Unsigned;
    U8, "uint8", "u8", 1, Unsigned;
    U16, "uint16", "u16", 2, Unsigned;
    U32, "uint32", "u32", 4, Unsigned;
    U64, "uint64", "u64", 8, Unsigned;
    F4E2M1FN, "float4_e2m1fn", "f4_e2m1fn", 1, Float;
    F8E3M4, "float8_e3m4", "f8_e3m4", 1, Float;
    F8E4M3, "float8_e4m3", "f8_e4m3", 1, Float;
    F8E4M3B11FNUZ, "float8_e4m3b11fnuz", "f8_e4m3b11fnuz", 1, Float;
    F8E4M3FN, "float8_e4m3fn", "f8_e4m3fn", 1, Float;
    F8E4M3FNUZ, "float8_e4m3fnuz", "f8_e4m3fnuz", 1, Float;
    F8E5M2, "float8_e5m2", "f8_e5m2", 1, Float;
    F8E5M2FNUZ, "float8_e5m2fnuz", "f8_e5m2fnuz", 1, Float;
    F8E8M0FNU, "float8_e8m0fnu", "f8_e8m0fnu", 1, Float;
    BF16, "bfloat16", "bf16", 2, Float;
    F16, "float16", "f16", 2, Float;
    F32, "float32", "f32", 4, Float;
    F64, "float64", "f64", 8, Float;
    C64, "complex64", "c64", 8, Complex;
    C128, "complex128", "c128", 16, Complex;
    Float0, "float0", "float0", 1, Float0;
    KeyFry, "key<fry>", "key<fry>", 8, Key;
}

impl DType {
    /// Whether the dtype is `bool`.
    pub const fn is_bool(self) -> bool {
        matches!(self, DType::Bool)
    }

    /// Signed or unsigned integer (not `bool`).
    pub const fn is_integer(self) -> bool {
        matches!(self.category(), Category::Signed | Category::Unsigned)
    }

    /// Signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self.category(), Category::Signed)
    }

    /// Unsigned integer.
    pub const fn is_unsigned(self) -> bool {
        matches!(self.category(), Category::Unsigned)
    }

    /// Real floating point.
    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    /// Complex floating point.
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }

    /// Real or complex floating point: the types that carry derivatives.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Numbers of any kind, `bool` excluded.
    pub const fn is_number(self) -> bool {
        self.is_integer() || self.is_inexact()
    }

    /// A typed PRNG key.
    pub const fn is_key(self) -> bool {
        matches!(self.category(), Category::Key)
    }

    /// Number of value bits (`int4` → 4), as `jnp.iinfo` and `finfo` report.
    pub const fn bits(self) -> usize {
        match self {
            DType::I2 | DType::U2 => 2,
            DType::I4 | DType::U4 | DType::F4E2M1FN => 4,
            other => other.size() * 8,
        }
    }

    /// The real dtype of a complex one's parts; itself otherwise.
    pub const fn real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex dtype whose parts are at least this wide.
    pub const fn to_complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// The dtype that tangents of values of this dtype have.
    pub const fn tangent(self) -> DType {
        if self.is_inexact() { self } else { DType::Float0 }
    }

    /// The 32-bit dtype used in place of this one while 64-bit types are disabled.
    pub const fn canonical(self, x64: bool) -> DType {
        match self {
            _ if x64 => self,
            DType::I64 => DType::I32,
            DType::U64 => DType::U32,
            DType::F64 => DType::F32,
            DType::C128 => DType::C64,
            other => other,
        }
    }

    /// The dtype with this NumPy name.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.name() == name)
    }

    /// The dtype with this jaxpr name.
    pub fn from_short_name(name: &str) -> Option<DType> {
        DType::ALL.iter().copied().find(|d| d.short_name() == name)
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &d in DType::ALL {
            assert_eq!(DType::from_name(d.name()), Some(d));
            assert_eq!(DType::from_short_name(d.short_name()), Some(d));
        }
    }

    #[test]
    fn canonical_is_idempotent() {
        for &d in DType::ALL {
            assert_eq!(d.canonical(true), d);
            assert_eq!(d.canonical(false).canonical(false), d.canonical(false));
        }
    }
}
