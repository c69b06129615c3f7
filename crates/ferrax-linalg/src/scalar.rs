//! What the algorithms here ask of a number beyond faer's `ComplexField`: operators, parts, sizes.

use faer::traits::ComplexField;
use faer::{c32, c64};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A real or complex floating-point number.
pub trait Scalar:
    Copy
    + Send
    + Sync
    + PartialEq
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
{
    /// The dtype of its parts.
    type R: Real;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// From its parts; reals drop the imaginary one.
    fn of_parts(re: Self::R, im: Self::R) -> Self;
    /// The real part.
    fn re(self) -> Self::R;
    /// The imaginary part.
    fn im(self) -> Self::R;
    /// The complex conjugate.
    fn conjugate(self) -> Self {
        Self::of_parts(self.re(), -self.im())
    }
    /// From a real number.
    fn of_real(re: Self::R) -> Self {
        Self::of_parts(re, Self::R::ZERO)
    }
    /// |re| + |im|: what LAPACK picks pivots by.
    fn size(self) -> Self::R {
        self.re().magnitude() + self.im().magnitude()
    }
    /// |x|.
    fn modulus(self) -> Self::R {
        self.re().with(self.im())
    }
    /// |x|².
    fn square(self) -> Self::R {
        self.re() * self.re() + self.im() * self.im()
    }
    /// Whether both parts are finite.
    fn finite(self) -> bool {
        self.re().is_ordinary() && self.im().is_ordinary()
    }
}

/// A real number.
pub trait Real: Scalar<R = Self> + PartialOrd {
    /// Not a number.
    const NAN: Self;
    /// The distance from one to the next number.
    const EPSILON: Self;
    /// The smallest normal number.
    const TINY: Self;
    /// The nearest number.
    fn of_f64(x: f64) -> Self;
    /// Absolute value.
    fn magnitude(self) -> Self;
    /// Square root.
    fn root(self) -> Self;
    /// √(x² + y²).
    fn with(self, other: Self) -> Self;
    /// Whether it is neither infinite nor NaN.
    fn is_ordinary(self) -> bool;
    /// |x| with the sign of another.
    fn signed_as(self, other: Self) -> Self;
}

/// A number that faer's algorithms take.
pub trait Field: Scalar + ComplexField<Real = <Self as Scalar>::R> {}
impl<T: Scalar + ComplexField<Real = <T as Scalar>::R>> Field for T {}

macro_rules! real {
    ($($T:ident, $C:ident);*) => {$(
        impl Scalar for $T {
            type R = $T;
            const ZERO: $T = 0.0;
            const ONE: $T = 1.0;
            #[inline(always)]
            fn of_parts(re: $T, _: $T) -> $T { re }
            #[inline(always)]
            fn re(self) -> $T { self }
            #[inline(always)]
            fn im(self) -> $T { 0.0 }
            #[inline(always)]
            fn modulus(self) -> $T { self.abs() }
        }
        impl Real for $T {
            const NAN: $T = $T::NAN;
            const EPSILON: $T = $T::EPSILON;
            const TINY: $T = $T::MIN_POSITIVE;
            #[inline(always)]
            fn of_f64(x: f64) -> $T { x as $T }
            #[inline(always)]
            fn magnitude(self) -> $T { self.abs() }
            #[inline(always)]
            fn root(self) -> $T { self.sqrt() }
            #[inline(always)]
            fn with(self, other: $T) -> $T { self.hypot(other) }
            #[inline(always)]
            fn is_ordinary(self) -> bool { self.is_finite() }
            #[inline(always)]
            fn signed_as(self, other: $T) -> $T { self.copysign(other) }
        }
        impl Scalar for $C {
            type R = $T;
            const ZERO: $C = $C { re: 0.0, im: 0.0 };
            const ONE: $C = $C { re: 1.0, im: 0.0 };
            #[inline(always)]
            fn of_parts(re: $T, im: $T) -> $C { $C { re, im } }
            #[inline(always)]
            fn re(self) -> $T { self.re }
            #[inline(always)]
            fn im(self) -> $T { self.im }
        }
    )*};
}
real!(f32, c32; f64, c64);
