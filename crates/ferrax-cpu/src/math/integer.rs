//! Division of integers as XLA defines it: x / 0 = -1 (all bits set), x rem 0 = x, and the smallest number over -1 is
//! itself.
//!
//! Vector units divide floats only. The quotient of integers of up to 16 bits is the truncated quotient in f32, that of
//! 32 bits the one in f64: n-bit integers in floats of at least 2n bits lie far enough from the next integer that
//! rounding cannot reach it (J.-M. Muller et al., "Handbook of Floating-Point Arithmetic", on division).

/// Division that never traps.
pub trait Quotient: Copy {
    /// x / y, truncated.
    fn quotient(self, y: Self) -> Self;
    /// x - (x / y) * y.
    fn remainder(self, y: Self) -> Self;
}

macro_rules! quotient {
    ($($T:ident by $F:ident)*) => {$(
        impl Quotient for $T {
            #[inline(always)]
            fn quotient(self, y: $T) -> $T {
                #[allow(unused_comparisons)]
                let minus_one = $T::MIN < 0 && y == !0;
                let divisor = if y == 0 || minus_one { 1 } else { y };
                let q = $F::from(self) / $F::from(divisor);
                // SAFETY: the divisor's absolute value is at least 1, so that the quotient is no larger than the dividend.
                let q: $T = unsafe { q.to_int_unchecked() };
                if y == 0 {
                    !0
                } else if minus_one {
                    self.wrapping_neg()
                } else {
                    q
                }
            }

            #[inline(always)]
            fn remainder(self, y: $T) -> $T {
                self.wrapping_sub(self.quotient(y).wrapping_mul(y))
            }
        }
    )*};
}
quotient!(i8 by f32 u8 by f32 i16 by f32 u16 by f32 i32 by f64 u32 by f64);

macro_rules! wide_quotient {
    ($($T:ident)*) => {$(
        impl Quotient for $T {
            #[inline(always)]
            fn quotient(self, y: $T) -> $T {
                if y == 0 { !0 } else { self.wrapping_div(y) }
            }

            #[inline(always)]
            fn remainder(self, y: $T) -> $T {
                if y == 0 { self } else { self.wrapping_rem(y) }
            }
        }
    )*};
}
wide_quotient!(i64 u64);

#[cfg(test)]
mod tests {
    use super::Quotient;
    use proptest::prelude::*;

    macro_rules! checks {
        ($($name:ident $T:ident)*) => {$(
            fn $name(x: $T, y: $T) {
                let want = if y == 0 { (!0, x) } else { (x.wrapping_div(y), x.wrapping_rem(y)) };
                assert_eq!((x.quotient(y), x.remainder(y)), want, "{x} / {y}");
            }
        )*};
    }
    checks!(check_i8 i8 check_u8 u8 check_i16 i16 check_u16 u16 check_i32 i32 check_u32 u32 check_i64 i64);

    #[test]
    fn all_of_eight_bits() {
        for x in 0..=u8::MAX {
            for y in 0..=u8::MAX {
                check_u8(x, y);
                check_i8(x as i8, y as i8);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn quotients_around_multiples(x: u32, y: u32, shift in 0u32..32, near in -1i64..2) {
            let y = y >> shift;
            let multiple = u64::from(x) / u64::from(y.max(1)) * u64::from(y);
            let x = (multiple as i64 + near) as u32;
            check_u32(x, y);
            check_i32(x as i32, y as i32);
            check_i32(x as i32, (y as i32).wrapping_neg());
            check_u16(x as u16, y as u16);
            check_i16(x as i16, y as i16);
            check_i64(i64::from(x as i32), i64::from(y as i32));
        }
    }

    #[test]
    fn edges() {
        for x in [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX] {
            [i32::MIN, -1, 0, 1, i32::MAX].into_iter().for_each(|y| check_i32(x, y));
        }
        for x in [i16::MIN, -1, 0, i16::MAX] {
            [i16::MIN, -1, 0, 1, i16::MAX].into_iter().for_each(|y| check_i16(x, y));
        }
    }
}
