//! Conversions of the float8 and float4 storage formats, driven by their parameters.
//!
//! Source: the OCP 8-bit floating point specification and the `ml_dtypes` documentation. Rounding is to
//! nearest, ties to even.

use crate::dtype::DType;

/// The parameters of an 8-bit (or narrower) float format.
#[derive(Clone, Copy, Debug)]
pub struct NarrowFloat {
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    kind: Special,
}

/// How a format spends the codes of its largest exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Special {
    /// Infinities and NaNs as in IEEE 754.
    Ieee,
    /// No infinities; NaN is all ones.
    Fn,
    /// No infinities, no negative zero; NaN is the code of negative zero.
    Fnuz,
    /// Finite values only.
    FiniteOnly,
    /// An unsigned power of two; NaN is all ones.
    ExponentOnly,
}

impl NarrowFloat {
    /// The format of a dtype, if it is a narrow float.
    pub const fn of(dtype: DType) -> Option<NarrowFloat> {
        let (exponent_bits, mantissa_bits, bias, kind) = match dtype {
            DType::F4E2M1FN => (2, 1, 1, Special::FiniteOnly),
            DType::F8E3M4 => (3, 4, 3, Special::Ieee),
            DType::F8E4M3 => (4, 3, 7, Special::Ieee),
            DType::F8E4M3B11FNUZ => (4, 3, 11, Special::Fnuz),
            DType::F8E4M3FN => (4, 3, 7, Special::Fn),
            DType::F8E4M3FNUZ => (4, 3, 8, Special::Fnuz),
            DType::F8E5M2 => (5, 2, 15, Special::Ieee),
            DType::F8E5M2FNUZ => (5, 2, 16, Special::Fnuz),
            DType::F8E8M0FNU => (8, 0, 127, Special::ExponentOnly),
            _ => return None,
        };
        Some(NarrowFloat { exponent_bits, mantissa_bits, bias, kind })
    }

    /// The value of a code.
    pub fn to_f32(self, code: u8) -> f32 {
        if self.kind == Special::ExponentOnly {
            return if code == 0xff { f32::NAN } else { 2f32.powi(i32::from(code) - 127) };
        }
        let total = self.exponent_bits + self.mantissa_bits;
        let sign_bit = 1u32 << total;
        let code = u32::from(code) & (sign_bit * 2 - 1);
        let magnitude = code & (sign_bit - 1);
        let negative = code & sign_bit != 0;
        let exponent = magnitude >> self.mantissa_bits;
        let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
        let top = (1 << self.exponent_bits) - 1;
        let special = match self.kind {
            Special::Ieee if exponent == top => Some(if mantissa == 0 { f32::INFINITY } else { f32::NAN }),
            Special::Fn if magnitude == sign_bit - 1 => Some(f32::NAN),
            Special::Fnuz if negative && magnitude == 0 => Some(f32::NAN),
            _ => None,
        };
        let value = special.unwrap_or_else(|| {
            let scale = 2f64.powi(exponent.max(1) as i32 - self.bias - self.mantissa_bits as i32);
            let implicit = if exponent == 0 { 0 } else { 1 << self.mantissa_bits };
            (f64::from(mantissa + implicit) * scale) as f32
        });
        if negative { -value } else { value }
    }

    /// The code nearest a value, ties to even; out of range gives infinity, NaN or the largest value, as the format has.
    pub fn from_f32(self, v: f32) -> u8 {
        if self.kind == Special::ExponentOnly {
            return self.exponent_code(v);
        }
        let total = self.exponent_bits + self.mantissa_bits;
        let sign = if v.is_sign_negative() { 1u32 << total } else { 0 };
        if v.is_nan() {
            return self.nan_code(sign) as u8;
        }
        let magnitude = self.round_magnitude(f64::from(v.abs()));
        if self.kind == Special::Fnuz && magnitude == 0 {
            return 0;
        }
        (magnitude_or(magnitude, self.largest(), || self.overflow_code(sign), sign)) as u8
    }

    /// The nearest power of two, the larger of two that are as near; there is none for zero and what is too large.
    fn exponent_code(self, v: f32) -> u8 {
        if v.is_nan() || v <= 0.0 {
            return 0xff;
        }
        // as a double it is a normal number, whose exponent stands above its 52 bits; half of the last step carries into it
        let exponent = ((f64::from(v).to_bits() + (1 << 51)) >> 52) as i32 - 1023;
        u8::try_from((exponent + self.bias).max(0)).unwrap_or(0xff)
    }

    /// Exponent and mantissa fields of `v`, possibly one past the largest finite code.
    fn round_magnitude(self, v: f64) -> u32 {
        if v == 0.0 {
            return 0;
        }
        if v.is_infinite() {
            return u32::MAX;
        }
        let exponent = ((v.to_bits() >> 52) as i32 - 1023).max(1 - self.bias);
        let units = v / 2f64.powi(exponent - self.mantissa_bits as i32);
        let rounded = units.round_ties_even() as u32;
        // A carry out of the mantissa moves into the exponent by itself.
        (((exponent + self.bias - 1) as u32) << self.mantissa_bits) + rounded
    }

    fn largest(self) -> u32 {
        let top = (1u32 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.kind {
            Special::Ieee => top - (1 << self.mantissa_bits),
            Special::Fn => top - 1,
            _ => top,
        }
    }

    fn nan_code(self, sign: u32) -> u32 {
        let top = (1u32 << (self.exponent_bits + self.mantissa_bits)) - 1;
        match self.kind {
            Special::Ieee => sign | (top - (1 << self.mantissa_bits) + 1) | 1 << (self.mantissa_bits - 1),
            Special::Fn => sign | top,
            Special::Fnuz => top + 1,
            // The format has no NaN; ml_dtypes gives negative zero.
            Special::FiniteOnly => top + 1,
            Special::ExponentOnly => 0xff,
        }
    }

    fn overflow_code(self, sign: u32) -> u32 {
        match self.kind {
            Special::Ieee => sign | (self.largest() + 1),
            Special::FiniteOnly => sign | self.largest(),
            _ => self.nan_code(sign),
        }
    }
}

fn magnitude_or(magnitude: u32, largest: u32, overflow: impl FnOnce() -> u32, sign: u32) -> u32 {
    if magnitude > largest { overflow() } else { sign | magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_are_the_nearest() {
        let format = NarrowFloat::of(DType::F8E8M0FNU).unwrap();
        let near = |x: f32| format.to_f32(format.from_f32(x));
        for (x, power) in [(1.0, 1.0), (1.49, 1.0), (1.5, 2.0), (2980.0, 2048.0), (6.0, 8.0), (0.74, 0.5)] {
            assert_eq!(near(x), power, "{x}");
        }
        assert_eq!(near(1e-45), 2f32.powi(-127));
        assert!([0.0, -1.0, f32::NAN, f32::INFINITY, 3e38].iter().all(|&x| near(x).is_nan()));
    }

    #[test]
    fn every_code_round_trips() {
        for &d in DType::ALL {
            let Some(format) = NarrowFloat::of(d) else { continue };
            let codes = 1u32 << d.bits();
            for code in 0..codes {
                let v = format.to_f32(code as u8);
                let back = format.from_f32(v);
                if v.is_nan() {
                    assert!(format.to_f32(back).is_nan(), "{d} {code:#x}");
                } else {
                    assert_eq!(back, code as u8, "{d} {code:#x} {v}");
                }
            }
        }
    }
}
