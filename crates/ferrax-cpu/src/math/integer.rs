//! Division of integers as XLA defines it: x / 0 = -1 (all bits set), x rem 0 = x, and the smallest number over -1 is
//! itself.
//!
//! A division by a constant is a multiplication by its reciprocal, the upper half of the product, and shifts: T. Granlund
//! and P. L. Montgomery, "Division by invariant integers using multiplication" (1994).
//!
//! Vector units divide floats only. The quotient of integers of up to 16 bits is the truncated quotient in f32, that of
//! 32 bits the one in f64: n-bit integers in floats of at least 2n bits lie far enough from the next integer that
//! rounding cannot reach it (J.-M. Muller et al., "Handbook of Floating-Point Arithmetic", on division).

use ferrax_loops::DivisionPart;

/// The greatest number that divides both; 0 is divided by all.
pub fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Shifts by any amount: from the number of bits on nothing is left, or the sign. Narrow integers are shifted as 32 bits,
/// which vector units do lane by lane.
pub trait Shifted: Copy {
    /// x << y.
    fn left(self, y: Self) -> Self;
    /// x >> y, whose top bit is repeated, whatever the type's sign.
    fn right(self, y: Self) -> Self;
    /// x >> y, whose upper bits are zero.
    fn right_logical(self, y: Self) -> Self;
}

macro_rules! shifted {
    ($($T:ident($U:ident, $S:ident) as $W:ident, $V:ident;)*) => {$(
        impl Shifted for $T {
            #[inline(always)]
            fn left(self, y: $T) -> $T {
                let y = $W::from(y as $U);
                if y < $T::BITS as $W { ((self as $U as $W) << (y % $W::BITS as $W)) as $T } else { 0 }
            }

            #[inline(always)]
            fn right(self, y: $T) -> $T {
                let (y, most) = ($W::from(y as $U), $T::BITS as $W - 1);
                (self as $S as $V >> if y < most { y } else { most }) as $T
            }

            #[inline(always)]
            fn right_logical(self, y: $T) -> $T {
                let y = $W::from(y as $U);
                if y < $T::BITS as $W { (self as $U as $W >> (y % $W::BITS as $W)) as $T } else { 0 }
            }
        }
    )*};
}
shifted! {
    i8(u8, i8) as u32, i32;
    u8(u8, i8) as u32, i32;
    i16(u16, i16) as u32, i32;
    u16(u16, i16) as u32, i32;
    i32(u32, i32) as u32, i32;
    u32(u32, i32) as u32, i32;
    i64(u64, i64) as u64, i64;
    u64(u64, i64) as u64, i64;
}

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

/// A constant divisor of at least 2 (or at most -2) as an immediate: in the upper half itself, in the lower half the
/// multiplier m. With d the divisor's absolute value and l = ceil(log2 d), m is ceil(2^(31 + l) / d) for i32, where
/// floor(n m / 2^(31 + l)) = floor(n / d) for n up to 2^31; for u32 it is floor(2^32 (2^l - d) / d) + 1, the
/// multiplier without its bit 32 (figure 4.1 of the source).
pub fn divisor(signed: bool, by: i64) -> u64 {
    let d = by.unsigned_abs();
    let l = (d - 1).ilog2() + 1;
    let m = if signed { (1u64 << (31 + l)).div_ceil(d) } else { (((1 << l) - d) << 32) / d + 1 };
    m | (by as u64) << 32
}

/// The shift by l - 1. A handler of the machine must have no way to panic, which `ilog2` has.
#[inline(always)]
#[allow(clippy::manual_ilog2)]
fn shift(d: u32) -> u32 {
    31 - (d - 1).leading_zeros()
}

#[inline(always)]
fn upper(x: u32, m: u64) -> u32 {
    ((u64::from(x) * u64::from(m as u32)) >> 32) as u32
}

/// A part (the number of a `DivisionPart`) of x divided by what `divisor` made; a floor only by a positive number.
#[inline(always)]
pub fn divide_i32<const PART: u8>(x: i32, divisor: u64) -> i32 {
    let by = (divisor >> 32) as i32;
    let quotient = |n: u32| upper(n, divisor).wrapping_shr(shift(by.unsigned_abs())) as i32;
    let q = if PART == FLOOR || PART == MODULO {
        // floor(x / d) is -1 - floor((-1 - x) / d).
        let negative = x >> 31;
        quotient((x ^ negative) as u32) ^ negative
    } else {
        let sign = (x ^ by) >> 31;
        (quotient(x.unsigned_abs()) ^ sign).wrapping_sub(sign)
    };
    if PART == QUOTIENT || PART == FLOOR { q } else { x.wrapping_sub(q.wrapping_mul(by)) }
}

/// As `divide_i32`.
#[inline(always)]
pub fn divide_u32<const PART: u8>(x: u32, divisor: u64) -> u32 {
    let by = (divisor >> 32) as u32;
    let t = upper(x, divisor);
    // (x + t) / 2 without a carry.
    let q = t.wrapping_add(x.wrapping_sub(t) >> 1).wrapping_shr(shift(by));
    if PART == QUOTIENT || PART == FLOOR { q } else { x.wrapping_sub(q.wrapping_mul(by)) }
}

/// Rounded to zero.
pub const QUOTIENT: u8 = DivisionPart::Quotient as u8;
/// With the sign of the dividend.
pub const REMAINDER: u8 = DivisionPart::Remainder as u8;
/// Rounded down.
pub const FLOOR: u8 = DivisionPart::Floor as u8;
/// Not negative.
pub const MODULO: u8 = DivisionPart::Modulo as u8;

/// Kernels (or handlers, by the macro given) of divisions of `$T` by a constant.
macro_rules! divisions {
    ($T:ident, $divide:ident, $part:expr, $map_imm:ident) => {{
        use $crate::math::integer::{FLOOR, MODULO, QUOTIENT, REMAINDER, $divide};
        match $part {
            DivisionPart::Quotient => $map_imm!(imm, x: $T => $T, $divide::<QUOTIENT>(x, imm)),
            DivisionPart::Remainder => $map_imm!(imm, x: $T => $T, $divide::<REMAINDER>(x, imm)),
            DivisionPart::Floor => $map_imm!(imm, x: $T => $T, $divide::<FLOOR>(x, imm)),
            DivisionPart::Modulo => $map_imm!(imm, x: $T => $T, $divide::<MODULO>(x, imm)),
        }
    }};
}
pub(crate) use divisions;

#[cfg(test)]
mod tests {
    use super::{FLOOR, MODULO, QUOTIENT, Quotient, REMAINDER, divide_i32, divide_u32, divisor};
    use crate::cases::cases;
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

    fn check_by(x: i32, y: i32) {
        if (-1..=1).contains(&y) {
            return;
        }
        let imm = divisor(true, i64::from(y));
        let (a, b) = (i64::from(x), i64::from(y));
        let truncated = (i64::from(divide_i32::<QUOTIENT>(x, imm)), i64::from(divide_i32::<REMAINDER>(x, imm)));
        assert_eq!(truncated, (a / b, a % b), "{x} by {y}");
        if y > 0 {
            let down = (i64::from(divide_i32::<FLOOR>(x, imm)), i64::from(divide_i32::<MODULO>(x, imm)));
            assert_eq!(down, (a.div_euclid(b), a.rem_euclid(b)), "{x} by {y}");
        }
        let (x, y) = (x as u32, y as u32);
        let imm = divisor(false, i64::from(y));
        let all = (divide_u32::<FLOOR>(x, imm), divide_u32::<REMAINDER>(x, imm));
        assert_eq!(all, (x / y, x % y), "{x} by {y}");
        assert_eq!(all, (divide_u32::<QUOTIENT>(x, imm), divide_u32::<MODULO>(x, imm)));
    }

    #[test]
    fn constants_divide_exactly() {
        let mut divisors: Vec<i32> = vec![3, 5, 6, 7, 10, 11, 641, 6_700_417, 1_000_000_007, i32::MAX, i32::MIN];
        divisors.extend((0..31).flat_map(|k| [1 << k, (1 << k) - 1, (1 << k) + 1]));
        for y in divisors {
            for y in [y, y.wrapping_neg()].into_iter().filter(|y| *y != 0) {
                for m in (-40..40).chain([i64::from(i32::MAX), i64::from(i32::MIN)]) {
                    let near = m.wrapping_mul(i64::from(y));
                    let edge = [
                        0,
                        i64::from(i32::MIN),
                        i64::from(i32::MAX),
                        i64::from(i32::MAX) / i64::from(y) * i64::from(y),
                    ];
                    edge.iter().chain([&near]).for_each(|at| (-2..3).for_each(|k| check_by((at + k) as i32, y)));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(20_000)))]

        #[test]
        fn constants_divide_exactly_around_multiples(x: i32, y: i32, shift in 0u32..31, near in -1i32..2) {
            let y = y >> shift;
            check_by(x, y);
            if y != 0 {
                check_by(x.wrapping_div(y).wrapping_mul(y).wrapping_add(near), y);
            }
        }

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
