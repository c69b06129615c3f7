//! A single number of any dtype, kept as its bit pattern: exact, `Eq` and hashable.

use crate::dtype::{Category, DType};

/// The bits of one element, little-endian in the low bytes (complex: real part low).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Element type.
    pub dtype: DType,
    /// The element's bytes, zero-extended.
    pub bits: u128,
}

/// The float near a double that every narrower format rounds as it does the double: of the two floats around it the one
/// with an odd last bit, where it is none.
#[inline(always)]
pub fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    let beyond = u32::from(back.abs() > x.abs());
    f32::from_bits((near.to_bits() - beyond) | u32::from(back != x))
}

/// The double near an integer that every narrower format rounds as it does the integer, found as `to_odd` finds its float.
fn odd_double(v: i128) -> f64 {
    let near = v as f64;
    let back = near as i128;
    let beyond = u64::from(back.unsigned_abs() > v.unsigned_abs());
    f64::from_bits((near.to_bits() - beyond) | u64::from(back != v))
}

impl Scalar {
    /// Zero of a dtype (`false`, `0`, `0.0`, `0j`).
    pub const fn zero(dtype: DType) -> Self {
        Scalar { dtype, bits: 0 }
    }

    /// One of a dtype.
    pub fn one(dtype: DType) -> Self {
        Scalar::from_i64(dtype, 1)
    }

    /// An integer rounded or wrapped to the dtype.
    pub fn from_i64(dtype: DType, v: i64) -> Self {
        let bits = match dtype.category() {
            Category::Bool => u128::from(v != 0),
            Category::Float | Category::Complex => return Scalar::from_integer(dtype, v.into()),
            _ => (v as u64 as u128) & mask(dtype),
        };
        Scalar { dtype, bits }
    }

    /// An unsigned integer rounded or wrapped to the dtype.
    pub fn from_u64(dtype: DType, v: u64) -> Self {
        match dtype.category() {
            Category::Float | Category::Complex => Scalar::from_integer(dtype, v.into()),
            Category::Bool => Scalar { dtype, bits: u128::from(v != 0) },
            _ => Scalar { dtype, bits: u128::from(v) & mask(dtype) },
        }
    }

    /// An integer rounded, once, to an inexact dtype.
    fn from_integer(dtype: DType, v: i128) -> Self {
        let double = matches!(dtype, DType::F64 | DType::C128);
        Scalar::from_f64(dtype, if double { v as f64 } else { odd_double(v) })
    }

    /// A float rounded to the dtype; integers truncate toward zero and saturate; complex gets a zero imaginary part.
    pub fn from_f64(dtype: DType, v: f64) -> Self {
        let bits = match dtype {
            DType::F32 => (v as f32).to_bits() as u128,
            DType::F64 => v.to_bits() as u128,
            DType::F16 => half::f16::from_f32(to_odd(v)).to_bits() as u128,
            DType::BF16 => half::bf16::from_f32(to_odd(v)).to_bits() as u128,
            DType::C64 => (v as f32).to_bits() as u128,
            DType::C128 => v.to_bits() as u128,
            DType::Bool => u128::from(v != 0.0),
            d if d.is_unsigned() => (v as u64).min(unsigned_max(d)) as u128,
            d if d.is_signed() => {
                let max = (unsigned_max(d) >> 1) as i64;
                ((v as i64).clamp(-max - 1, max) as u64 as u128) & mask(d)
            }
            d => crate::narrow::NarrowFloat::of(d).map_or(0, |n| n.from_f32(to_odd(v)) as u128),
        };
        Scalar { dtype, bits }
    }

    /// A complex number rounded to the dtype; real dtypes take the real part.
    pub fn from_complex(dtype: DType, re: f64, im: f64) -> Self {
        match dtype {
            DType::C64 => {
                let bits = (re as f32).to_bits() as u128 | ((im as f32).to_bits() as u128) << 32;
                Scalar { dtype, bits }
            }
            DType::C128 => {
                let bits = re.to_bits() as u128 | (im.to_bits() as u128) << 64;
                Scalar { dtype, bits }
            }
            _ => Scalar::from_f64(dtype, re),
        }
    }

    /// A boolean.
    pub const fn from_bool(v: bool) -> Self {
        Scalar { dtype: DType::Bool, bits: v as u128 }
    }

    /// The element stored at `bytes`.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Self {
        let mut raw = [0u8; 16];
        raw[..dtype.size()].copy_from_slice(&bytes[..dtype.size()]);
        Scalar { dtype, bits: u128::from_le_bytes(raw) }
    }

    /// The element's bytes; the first `dtype.size()` count.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.bits.to_le_bytes()
    }

    /// The value as a float (complex: the real part).
    pub fn to_f64(self) -> f64 {
        match self.dtype {
            DType::F32 | DType::C64 => f32::from_bits(self.bits as u32) as f64,
            DType::F64 | DType::C128 => f64::from_bits(self.bits as u64),
            DType::F16 => half::f16::from_bits(self.bits as u16).to_f64(),
            DType::BF16 => half::bf16::from_bits(self.bits as u16).to_f64(),
            d if d.is_signed() => self.to_i64() as f64,
            d if d.is_float() => crate::narrow::NarrowFloat::of(d).map_or(0.0, |n| n.to_f32(self.bits as u8) as f64),
            _ => self.bits as u64 as f64,
        }
    }

    /// The imaginary part; zero for real dtypes.
    pub fn imag(self) -> f64 {
        match self.dtype {
            DType::C64 => f32::from_bits((self.bits >> 32) as u32) as f64,
            DType::C128 => f64::from_bits((self.bits >> 64) as u64),
            _ => 0.0,
        }
    }

    /// The value as a signed integer; floats truncate, `uint64` wraps.
    pub fn to_i64(self) -> i64 {
        match self.dtype.category() {
            Category::Signed => {
                let shift = 64 - self.dtype.bits() as u32;
                ((self.bits as u64) << shift) as i64 >> shift
            }
            Category::Float | Category::Complex => self.to_f64() as i64,
            _ => self.bits as u64 as i64,
        }
    }

    /// Whether the value is nonzero (NaN counts as nonzero).
    pub fn is_nonzero(self) -> bool {
        match self.dtype.category() {
            Category::Float => self.to_f64() != 0.0,
            Category::Complex => self.to_f64() != 0.0 || self.imag() != 0.0,
            _ => self.bits != 0,
        }
    }

    /// The value converted to another dtype, as `convert_element_type` does.
    #[must_use]
    pub fn convert(self, to: DType) -> Self {
        if to == self.dtype {
            return self;
        }
        match (self.dtype.category(), to.category()) {
            (_, Category::Bool) => Scalar::from_bool(self.is_nonzero()),
            (Category::Complex, _) => Scalar::from_complex(to, self.to_f64(), self.imag()),
            (Category::Float, _) => Scalar::from_f64(to, self.to_f64()),
            (Category::Signed, _) => Scalar::from_i64(to, self.to_i64()),
            _ => Scalar::from_u64(to, self.bits as u64),
        }
    }
}

const fn unsigned_max(d: DType) -> u64 {
    u64::MAX >> (64 - d.bits())
}

const fn mask(d: DType) -> u128 {
    unsigned_max(d) as u128
}

/// Prints the number as a jaxpr literal does: `1.0`, `-3`, `True`, `(1+2j)`.
impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dtype.category() {
            Category::Bool => f.write_str(if self.bits != 0 { "True" } else { "False" }),
            Category::Signed => write!(f, "{}", self.to_i64()),
            Category::Float => match self.dtype {
                DType::F64 => write_float(f, self.to_f64(), false),
                _ => write_float(f, self.to_f64(), true),
            },
            Category::Complex => {
                f.write_str("(")?;
                write_float(f, self.to_f64(), self.dtype == DType::C64)?;
                f.write_str(if self.imag().is_sign_negative() { "-" } else { "+" })?;
                write_float(f, self.imag().abs(), self.dtype == DType::C64)?;
                f.write_str("j)")
            }
            _ => write!(f, "{}", self.bits as u64),
        }
    }
}

/// Python's shortest repr of a float, taken in single precision where `single` says so.
fn write_float(f: &mut std::fmt::Formatter<'_>, v: f64, single: bool) -> std::fmt::Result {
    if v.is_nan() {
        return f.write_str("nan");
    }
    if v.is_infinite() {
        return f.write_str(if v < 0.0 { "-inf" } else { "inf" });
    }
    let exponential = v != 0.0 && !(1e-4..1e16).contains(&v.abs());
    let text = match (exponential, single) {
        (true, true) => format!("{:e}", v as f32),
        (true, false) => format!("{v:e}"),
        (false, true) => format!("{:?}", v as f32),
        (false, false) => format!("{v:?}"),
    };
    let Some((mantissa, exponent)) = text.split_once('e') else { return f.write_str(&text) };
    let e: i32 = exponent.parse().unwrap_or(0);
    write!(f, "{mantissa}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_and_sign_extend() {
        assert_eq!(Scalar::from_i64(DType::I8, -1).to_i64(), -1);
        assert_eq!(Scalar::from_i64(DType::I4, 9).to_i64(), -7);
        assert_eq!(Scalar::from_i64(DType::U8, -1).bits, 255);
        assert_eq!(Scalar::from_f64(DType::I32, 1e20).to_i64(), i64::from(i32::MAX));
    }

    #[test]
    fn integers_round_once() {
        let above = (1 << 60) + (1 << 36);
        assert_eq!(Scalar::from_i64(DType::F32, above).to_f64(), 2f64.powi(60));
        assert_eq!(Scalar::from_i64(DType::F32, above + 1).to_f64(), 2f64.powi(60) + 2f64.powi(37));
        assert_eq!(Scalar::from_i64(DType::F64, above + 1).to_f64(), above as f64);
        assert_eq!(Scalar::from_u64(DType::F32, u64::MAX).to_f64(), 2f64.powi(64));
        assert_eq!(Scalar::from_i64(DType::BF16, -257).to_f64(), -256.0);
    }

    #[test]
    fn text_is_pythons() {
        assert_eq!(Scalar::from_f64(DType::F32, 2.0).to_string(), "2.0");
        assert_eq!(Scalar::from_f64(DType::F32, 1e-7).to_string(), "1e-07");
        assert_eq!(Scalar::from_f64(DType::F64, 0.1).to_string(), "0.1");
        assert_eq!(Scalar::from_bool(true).to_string(), "True");
    }

    #[test]
    fn bytes_round_trip() {
        for &d in DType::ALL {
            let s = Scalar::from_i64(d, 1);
            assert_eq!(Scalar::from_bytes(d, &s.to_bytes()), s);
        }
    }
}
