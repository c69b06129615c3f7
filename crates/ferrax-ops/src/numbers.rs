//! Numbers for the reference rules: integers as `i128`, reals as `f64`, complex numbers as pairs of `f64`.
//!
//! Written for being obviously right, not fast: textbook definitions, evaluated in double precision and
//! rounded once to the operand's dtype. Read next: `elementwise/special.rs` for the special functions.

use ferrax_base::{Aval, DType, Result, Scalar};
use ferrax_ir::reference::RefTensor;

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Complex {
    pub re: f64,
    pub im: f64,
}

/// A complex number from its parts.
pub const fn complex(re: f64, im: f64) -> Complex {
    Complex { re, im }
}

const I: Complex = complex(0.0, 1.0);
const ONE: Complex = complex(1.0, 0.0);

impl std::ops::Add for Complex {
    type Output = Complex;
    fn add(self, o: Complex) -> Complex {
        complex(self.re + o.re, self.im + o.im)
    }
}

impl std::ops::Sub for Complex {
    type Output = Complex;
    fn sub(self, o: Complex) -> Complex {
        complex(self.re - o.re, self.im - o.im)
    }
}

impl std::ops::Mul for Complex {
    type Output = Complex;
    fn mul(self, o: Complex) -> Complex {
        complex(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)
    }
}

impl std::ops::Div for Complex {
    type Output = Complex;
    fn div(self, o: Complex) -> Complex {
        // Smith's method: scaled by the larger part of the divisor.
        if o.re.abs() >= o.im.abs() {
            let r = o.im / o.re;
            let d = o.re + o.im * r;
            complex((self.re + self.im * r) / d, (self.im - self.re * r) / d)
        } else {
            let r = o.re / o.im;
            let d = o.re * r + o.im;
            complex((self.re * r + self.im) / d, (self.im * r - self.re) / d)
        }
    }
}

impl std::ops::Neg for Complex {
    type Output = Complex;
    fn neg(self) -> Complex {
        complex(-self.re, -self.im)
    }
}

#[allow(missing_docs)]
impl Complex {
    pub fn scale(self, k: f64) -> Complex {
        complex(self.re * k, self.im * k)
    }

    /// 1 + z, which keeps the sign of a zero imaginary part.
    pub fn one_plus(self) -> Complex {
        complex(1.0 + self.re, self.im)
    }

    /// 1 - z, which keeps the sign of a zero imaginary part.
    pub fn one_minus(self) -> Complex {
        complex(1.0 - self.re, -self.im)
    }

    pub fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    pub fn conj(self) -> Complex {
        complex(self.re, -self.im)
    }

    pub fn sign(self) -> Complex {
        let r = self.abs();
        if r == 0.0 { complex(0.0, 0.0) } else { self.scale(1.0 / r) }
    }

    pub fn exp(self) -> Complex {
        let r = self.re.exp();
        if self.im == 0.0 { complex(r, self.im) } else { complex(r * self.im.cos(), r * self.im.sin()) }
    }

    pub fn log(self) -> Complex {
        complex(self.abs().ln(), self.im.atan2(self.re))
    }

    pub fn sqrt(self) -> Complex {
        let r = self.abs();
        if r == 0.0 {
            return complex(0.0, self.im);
        }
        let t = ((r + self.re.abs()) * 0.5).sqrt();
        let u = self.im.abs() * 0.5 / t;
        let (re, im) = if self.re >= 0.0 { (t, u) } else { (u, t) };
        complex(re, im.copysign(self.im))
    }

    pub fn sin(self) -> Complex {
        complex(self.re.sin() * self.im.cosh(), self.re.cos() * self.im.sinh())
    }

    pub fn cos(self) -> Complex {
        complex(self.re.cos() * self.im.cosh(), -self.re.sin() * self.im.sinh())
    }

    pub fn tan(self) -> Complex {
        self.sin() / self.cos()
    }

    pub fn sinh(self) -> Complex {
        complex(self.re.sinh() * self.im.cos(), self.re.cosh() * self.im.sin())
    }

    pub fn cosh(self) -> Complex {
        complex(self.re.cosh() * self.im.cos(), self.re.sinh() * self.im.sin())
    }

    pub fn tanh(self) -> Complex {
        self.sinh() / self.cosh()
    }

    pub fn asinh(self) -> Complex {
        -(I * (I * self).asin())
    }

    pub fn asin(self) -> Complex {
        // Kahan: asin(z) = atan(Re z / Re(sqrt(1-z) sqrt(1+z))) + i asinh(Im(conj(sqrt(1-z)) sqrt(1+z))).
        let (a, b) = (self.one_minus().sqrt(), self.one_plus().sqrt());
        complex(self.re.atan2((a * b).re), (a.conj() * b).im.asinh())
    }

    pub fn acos(self) -> Complex {
        let (a, b) = (self.one_minus().sqrt(), self.one_plus().sqrt());
        complex(2.0 * a.re.atan2(b.re), (b.conj() * a).im.asinh())
    }

    pub fn acosh(self) -> Complex {
        let (a, b) = (complex(self.re - 1.0, self.im).sqrt(), self.one_plus().sqrt());
        complex((a.conj() * b).re.asinh(), 2.0 * a.im.atan2(b.re))
    }

    pub fn atanh(self) -> Complex {
        (self.one_plus().log() - self.one_minus().log()).scale(0.5)
    }

    pub fn atan(self) -> Complex {
        -(I * (I * self).atanh())
    }

    pub fn pow(self, y: Complex) -> Complex {
        if y == complex(0.0, 0.0) {
            return ONE;
        }
        if self == complex(0.0, 0.0) {
            return if y.re > 0.0 { complex(0.0, 0.0) } else { complex(f64::NAN, f64::NAN) };
        }
        (y * self.log()).exp()
    }
}

/// The value of an integer or `bool`, exactly.
pub fn integer(s: Scalar) -> i128 {
    if s.dtype.is_signed() { i128::from(s.to_i64()) } else { (s.bits as u64).into() }
}

/// An integer wrapped to a dtype.
pub fn from_integer(dtype: DType, v: i128) -> Scalar {
    Scalar::from_i64(dtype, v as i64)
}

/// The complex value of a scalar.
pub fn to_complex(s: Scalar) -> Complex {
    complex(s.to_f64(), s.imag())
}

/// A function of one number, by the kind of number.
pub struct Unary {
    /// On integers and `bool`.
    pub int: fn(i128) -> i128,
    /// On reals.
    pub real: fn(f64) -> f64,
    /// On complex numbers.
    pub complex: fn(Complex) -> Complex,
}

impl Unary {
    /// No kind of number; the fields that a primitive accepts are replaced.
    pub const NONE: Unary = Unary { int: |x| x, real: |_| f64::NAN, complex: |_| complex(f64::NAN, f64::NAN) };

    /// Applies the function to every element; the result has the operand's kind of number.
    pub fn map(&self, args: &[RefTensor], out: &Aval) -> Result<Vec<RefTensor>> {
        let f = |row: &[Scalar]| {
            let x = row[0];
            match x.dtype {
                d if d.is_complex() => {
                    let z = (self.complex)(to_complex(x));
                    Scalar::from_complex(out.dtype, z.re, z.im)
                }
                d if d.is_float() => Scalar::from_f64(out.dtype, (self.real)(x.to_f64())),
                _ => from_integer(out.dtype, (self.int)(integer(x))),
            }
        };
        Ok(vec![RefTensor::map(out, args, f)])
    }
}

/// A function of two numbers of one dtype, by the kind of number.
pub struct Binary {
    /// On integers and `bool`.
    pub int: fn(i128, i128) -> i128,
    /// On reals.
    pub real: fn(f64, f64) -> f64,
    /// On complex numbers.
    pub complex: fn(Complex, Complex) -> Complex,
}

impl Binary {
    /// No kind of number; the fields that a primitive accepts are replaced.
    pub const NONE: Binary =
        Binary { int: |x, _| x, real: |_, _| f64::NAN, complex: |_, _| complex(f64::NAN, f64::NAN) };

    /// The function of two scalars, rounded to a dtype.
    pub fn apply(&self, out: DType, x: Scalar, y: Scalar) -> Scalar {
        match x.dtype {
            d if d.is_complex() => {
                let z = (self.complex)(to_complex(x), to_complex(y));
                Scalar::from_complex(out, z.re, z.im)
            }
            d if d.is_float() => Scalar::from_f64(out, (self.real)(x.to_f64(), y.to_f64())),
            _ => from_integer(out, (self.int)(integer(x), integer(y))),
        }
    }

    /// Applies the function to every pair of elements.
    pub fn map(&self, args: &[RefTensor], out: &Aval) -> Result<Vec<RefTensor>> {
        let args = crate::common::aligned_reference(args, &out.shape);
        Ok(vec![RefTensor::map(out, &args, |row| self.apply(out.dtype, row[0], row[1]))])
    }
}
