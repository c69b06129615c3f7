//! Complex functions with the branch cuts of C99's Annex G and NumPy.
//!
//! Everything is computed in double precision; `complex64` is rounded at the end. Source: Kahan, "Branch cuts
//! for complex elementary functions, or much ado about nothing's sign bit". Read next: `turns.rs`, the angles of powers
//! of 2.

use crate::math::turns::sin_cos_of_octaves;
use crate::simd::fma;

/// A complex number of f32 or f64 parts, laid out as C and NumPy do.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[repr(C)]
pub struct Complex<T> {
    /// Real part.
    pub re: T,
    /// Imaginary part.
    pub im: T,
}

/// Double precision, in which all functions work.
type Z = Complex<f64>;

const ONE: Z = Z::new(1.0, 0.0);
/// Below this size a length has lost digits.
const TINY: f64 = 1e-290;

impl<T> Complex<T> {
    /// A number from its parts.
    #[inline(always)]
    pub const fn new(re: T, im: T) -> Self {
        Complex { re, im }
    }
}

/// A complex type that goes to double precision and back.
pub trait Wide: Copy {
    /// In double precision.
    fn wide(self) -> Z;
    /// Rounded from double precision.
    fn of(z: Z) -> Self;
}

impl Wide for Complex<f32> {
    #[inline(always)]
    fn wide(self) -> Z {
        Z::new(f64::from(self.re), f64::from(self.im))
    }
    #[inline(always)]
    fn of(z: Z) -> Self {
        Complex::new(z.re as f32, z.im as f32)
    }
}

impl Wide for Z {
    #[inline(always)]
    fn wide(self) -> Z {
        self
    }
    #[inline(always)]
    fn of(z: Z) -> Self {
        z
    }
}

impl std::ops::Add for Z {
    type Output = Z;
    fn add(self, o: Z) -> Z {
        Z::new(self.re + o.re, self.im + o.im)
    }
}

impl std::ops::Mul for Z {
    type Output = Z;
    fn mul(self, o: Z) -> Z {
        Z::new(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)
    }
}

/// i·z
fn times_i(z: Z) -> Z {
    Z::new(-z.im, z.re)
}

/// -i·z
fn times_minus_i(z: Z) -> Z {
    Z::new(z.im, -z.re)
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($z:ident) $body:block)*) => {
        $(
            $(#[$doc])*
            pub fn $name<C: Wide>(z: C) -> C {
                let $z = z.wide();
                C::of($body)
            }
        )*
    };
}

functions! {
    /// e^z.
    exp(z) { exp64(z) }
    /// 2^z.
    exp2(z) { grown(z, f64::exp2, sin_cos_of_octaves) }
    /// e^z - 1, accurate near 0.
    expm1(z) {
        let (s, c) = z.im.sin_cos();
        let half = (0.5 * z.im).sin();
        let im = if z.im == 0.0 { z.im } else { z.re.exp() * s };
        Z::new(if z.im == 0.0 { z.re.exp_m1() } else { z.re.exp_m1() * c - 2.0 * half * half }, im)
    }
    /// Principal logarithm; cut along the negative reals.
    log(z) { log64(z) }
    /// log(1 + z), accurate near 0.
    log1p(z) {
        let small = z.re.abs() < 0.5 && z.im.abs() < 0.5;
        let w = Z::new(1.0 + z.re, z.im);
        let re = if small { 0.5 * (z.re * (2.0 + z.re) + z.im * z.im).ln_1p() } else { log64(w).re };
        Z::new(re, w.im.atan2(w.re))
    }
    /// Principal square root; cut along the negative reals.
    sqrt(z) { sqrt64(z) }
    /// 1 / sqrt(z).
    rsqrt(z) { div64(ONE, sqrt64(z)) }
    /// Principal cube root.
    cbrt(z) {
        if z == Z::default() {
            z
        } else {
            let r = z.re.hypot(z.im).cbrt();
            let (s, c) = (z.im.atan2(z.re) / 3.0).sin_cos();
            Z::new(r * c, r * s)
        }
    }
    /// z / |z|, 0 at 0.
    sign(z) {
        let r = z.re.hypot(z.im);
        if r == 0.0 {
            z
        } else if r < TINY {
            let z = Z::new(z.re * two_to(600), z.im * two_to(600));
            let r = z.re.hypot(z.im);
            Z::new(z.re / r, z.im / r)
        } else {
            Z::new(z.re / r, z.im / r)
        }
    }
    /// Sine.
    sin(z) { times_minus_i(sinh64(times_i(z))) }
    /// Cosine.
    cos(z) { cosh64(times_i(z)) }
    /// Tangent.
    tan(z) { times_minus_i(tanh64(times_i(z))) }
    /// Hyperbolic sine.
    sinh(z) { sinh64(z) }
    /// Hyperbolic cosine.
    cosh(z) { cosh64(z) }
    /// Hyperbolic tangent.
    tanh(z) { tanh64(z) }
    /// Inverse sine; cuts beyond ±1 on the real axis.
    asin(z) { asin64(z) }
    /// Inverse cosine; cuts beyond ±1 on the real axis.
    acos(z) { acos64(z) }
    /// Inverse tangent; cuts beyond ±i on the imaginary axis.
    atan(z) { times_minus_i(atanh64(times_i(z))) }
    /// Inverse hyperbolic sine; cuts beyond ±i on the imaginary axis.
    asinh(z) { times_minus_i(asin64(times_i(z))) }
    /// Inverse hyperbolic cosine; cut below 1 on the real axis.
    acosh(z) {
        let w = acos64(z);
        // acosh(z) = ±i acos(z), with the sign that makes the real part nonnegative.
        if w.im.is_sign_negative() { times_i(w) } else { times_minus_i(w) }
    }
    /// Inverse hyperbolic tangent; cuts beyond ±1 on the real axis.
    atanh(z) { atanh64(z) }
    /// 1 / (1 + e^-z).
    logistic(z) {
        // The exponential that does not overflow.
        if z.re < 0.0 {
            let e = exp64(z);
            div64(e, ONE + e)
        } else {
            div64(ONE, ONE + exp64(Z::new(-z.re, -z.im)))
        }
    }
}

/// |z| without undue overflow: a power of two keeps the squares in range.
#[inline(always)]
pub fn abs(z: Z) -> f64 {
    let (re, im) = (z.re.abs(), z.im.abs());
    let most = if re > im { re } else { im };
    let up = if most < two_to(-500) { two_to(600) } else { 1.0 };
    let scale = if most > two_to(500) { two_to(-600) } else { up };
    let (x, y) = (re * scale, im * scale);
    (x * x + y * y).sqrt() / scale
}

/// The same in single precision.
#[inline(always)]
pub fn abs32<const F: bool>(z: Complex<f32>) -> f32 {
    let (re, im) = (z.re.abs(), z.im.abs());
    let most = if re > im { re } else { im };
    let up = if most < 1e-15 { 2f32.powi(100) } else { 1.0 };
    let scale = if most > 1e18 { 2f32.powi(-100) } else { up };
    let (x, y) = (re * scale, im * scale);
    fma::<F>(x, x, y * y).sqrt() / scale
}

const fn two_to(n: i64) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// x / y, scaled against overflow.
pub fn div<C: Wide>(x: C, y: C) -> C {
    C::of(div64(x.wide(), y.wide()))
}

/// 1 / z.
pub fn recip<C: Wide>(z: C) -> C {
    C::of(div64(ONE, z.wide()))
}

/// x ** y = exp(y log x), with 0 ** 0 = 1.
pub fn pow<C: Wide>(x: C, y: C) -> C {
    let (x, y) = (x.wide(), y.wide());
    let zero = Z::default();
    C::of(match (x == zero, y == zero) {
        (_, true) => ONE,
        (true, _) if y.re > 0.0 => zero,
        (false, _) if y.im == 0.0 => real_power(x, y.re),
        _ => exp64(y * log64(x)),
    })
}

/// x ** y for a real y.
fn real_power(x: Z, y: f64) -> Z {
    let finite = x.re.is_finite() && x.im.is_finite();
    if finite && y.fract() == 0.0 && y.abs() <= 16.0 {
        return powi64(x, y as i32);
    }
    let r = x.re.hypot(x.im);
    if finite && !(TINY..1e300).contains(&r) {
        let log = log64(x);
        return exp64(Z::new(y * log.re, y * log.im));
    }
    let (size, (s, c)) = (r.powf(y), (y * x.im.atan2(x.re)).sin_cos());
    // An infinite number along an axis has no other part.
    let part = |along: f64| if along == 0.0 { along } else { size * along };
    Z::new(part(c), part(s))
}

/// z ** n by repeated multiplication.
pub fn powi<C: Wide>(z: C, n: i32) -> C {
    C::of(powi64(z.wide(), n))
}

/// Lexicographic order, real parts first.
#[inline(always)]
pub fn less<T: PartialOrd + Copy>(x: Complex<T>, y: Complex<T>) -> bool {
    x.re < y.re || (x.re == y.re && x.im < y.im)
}

/// The greater one; y where neither is.
#[inline(always)]
pub fn max<T: PartialOrd + Copy>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    if less(y, x) { x } else { y }
}

/// The lesser one; y where neither is.
#[inline(always)]
pub fn min<T: PartialOrd + Copy>(x: Complex<T>, y: Complex<T>) -> Complex<T> {
    if less(x, y) { x } else { y }
}

fn powi64(z: Z, n: i32) -> Z {
    let mut k = n.unsigned_abs();
    if k == 0 {
        return ONE;
    }
    // 1 · z is not z where a part of z is infinite, so the product begins with the first factor.
    let mut base = z;
    while k & 1 == 0 {
        (base, k) = (square64(base), k >> 1);
    }
    let mut product = base;
    while k > 1 {
        (base, k) = (square64(base), k >> 1);
        if k & 1 == 1 {
            product = product * base;
        }
    }
    if n < 0 { div64(ONE, product) } else { product }
}

fn square64(z: Z) -> Z {
    Z::new((z.re - z.im) * (z.re + z.im), 2.0 * (z.re * z.im))
}

fn div64(x: Z, y: Z) -> Z {
    if y.im == 0.0 {
        return Z::new(x.re / y.re, x.im / y.re);
    }
    let found = if y.re.abs() >= y.im.abs() {
        let r = y.im / y.re;
        let d = y.re + y.im * r;
        Z::new((x.re + x.im * r) / d, (x.im - x.re * r) / d)
    } else {
        let r = y.re / y.im;
        let d = y.re * r + y.im;
        Z::new((x.re * r + x.im) / d, (x.im * r - x.re) / d)
    };
    if found.re.is_nan() && found.im.is_nan() { infinite_quotient(x, y) } else { found }
}

/// x / y where one of them is infinite and the other is not: a quotient by infinity is 0, one of infinity infinite (C99, G.5.1).
fn infinite_quotient(x: Z, y: Z) -> Z {
    let infinite = |z: Z| z.re.is_infinite() || z.im.is_infinite();
    let finite = |z: Z| z.re.is_finite() && z.im.is_finite();
    let direction = |z: Z| {
        let unit = |part: f64| if part.is_infinite() { 1f64.copysign(part) } else { 0f64.copysign(part) };
        Z::new(unit(z.re), unit(z.im))
    };
    let (factor, x, y) = if infinite(y) && finite(x) {
        (0.0, x, direction(y))
    } else if infinite(x) && finite(y) {
        (f64::INFINITY, direction(x), y)
    } else {
        (f64::NAN, x, y)
    };
    Z::new(factor * (x.re * y.re + x.im * y.im), factor * (x.im * y.re - x.re * y.im))
}

fn exp64(z: Z) -> Z {
    grown(z, f64::exp, f64::sin_cos)
}

/// A power of a positive number: its size is `grow` of the real part, sine and cosine of its angle `turn` of the imaginary one.
fn grown(z: Z, grow: fn(f64) -> f64, turn: fn(f64) -> (f64, f64)) -> Z {
    let e = grow(z.re);
    if z.im == 0.0 {
        return Z::new(e, z.im);
    }
    // C99 knows the size of some powers whose angle nobody knows; XLA and limits do not.
    if !z.im.is_finite() {
        return Z::new(f64::NAN, f64::NAN);
    }
    let (s, c) = turn(z.im);
    if e == 0.0 {
        return Z::new(0f64.copysign(c), 0f64.copysign(s));
    }
    if e.is_infinite() && z.re.is_finite() {
        // The product may be finite where the power alone is not.
        let h = grow(0.5 * z.re);
        return Z::new(h * c * h, h * s * h);
    }
    Z::new(e * c, e * s)
}

fn log64(z: Z) -> Z {
    let (a, b) = (z.re.abs().max(z.im.abs()), z.re.abs().min(z.im.abs()));
    let r = z.re.hypot(z.im);
    let re = if (0.5..2.0).contains(&r) { 0.5 * ((a - 1.0) * (a + 1.0) + b * b).ln_1p() } else { log_hypot(a, b, r) };
    Z::new(re, z.im.atan2(z.re))
}

/// ln of the hypotenuse `r` of (a, b), where it overflows or loses digits too.
fn log_hypot(a: f64, b: f64, r: f64) -> f64 {
    if r.is_infinite() && a.is_finite() && b.is_finite() {
        (0.5 * a).hypot(0.5 * b).ln() + std::f64::consts::LN_2
    } else if r > 0.0 && r < TINY {
        (a * two_to(600)).hypot(b * two_to(600)).ln() - 600.0 * std::f64::consts::LN_2
    } else {
        r.ln()
    }
}

fn sqrt64(z: Z) -> Z {
    if z.im.is_infinite() {
        return Z::new(f64::INFINITY, z.im);
    }
    if z.re == 0.0 && z.im == 0.0 {
        return Z::new(0.0, z.im);
    }
    if z.re.is_infinite() {
        return match (z.re > 0.0, z.im.is_nan()) {
            (true, _) => Z::new(z.re, if z.im.is_nan() { z.im } else { 0f64.copysign(z.im) }),
            (false, true) => Z::new(z.im, f64::INFINITY),
            (false, false) => Z::new(0.0, f64::INFINITY.copysign(z.im)),
        };
    }
    let big = z.re.abs().max(z.im.abs()) > 1e307;
    let small = z.re.abs().max(z.im.abs()) < 1e-290;
    let (k, back) = if big {
        (0.25, 2.0)
    } else if small {
        (2f64.powi(200), 2f64.powi(-100))
    } else {
        (1.0, 1.0)
    };
    let (re, im) = (z.re * k, z.im * k);
    let t = (0.5 * (re.abs() + re.hypot(im))).sqrt();
    let u = im.abs() / (2.0 * t);
    let (a, b) = if re >= 0.0 { (t, u) } else { (u, t) };
    Z::new(a * back, (b * back).copysign(z.im))
}

fn sinh64(z: Z) -> Z {
    if z.im == 0.0 {
        return Z::new(z.re.sinh(), z.im);
    }
    let (s, c) = z.im.sin_cos();
    if z.re.abs() > 709.0 && z.re.is_finite() {
        let h = (0.5 * z.re.abs()).exp();
        return Z::new((0.5 * h * c * h).copysign(z.re * c), 0.5 * h * s * h);
    }
    if z.re == 0.0 { Z::new(z.re * c, s) } else { Z::new(z.re.sinh() * c, z.re.cosh() * s) }
}

fn cosh64(z: Z) -> Z {
    if z.im == 0.0 {
        return Z::new(z.re.cosh(), z.im * z.re.signum());
    }
    let (s, c) = z.im.sin_cos();
    if z.re.abs() > 709.0 && z.re.is_finite() {
        let h = (0.5 * z.re.abs()).exp();
        return Z::new(0.5 * h * c * h, (0.5 * h * s * h) * z.re.signum());
    }
    Z::new(z.re.cosh() * c, z.re.sinh() * s)
}

fn tanh64(z: Z) -> Z {
    if z.im == 0.0 {
        return Z::new(z.re.tanh(), z.im);
    }
    if !z.im.is_finite() && z.re.is_finite() {
        return Z::new(f64::NAN, f64::NAN);
    }
    if z.re.abs() > 20.0 {
        let (s, c) = z.im.sin_cos();
        let tail = 4.0 * s * c * (-2.0 * z.re.abs()).exp();
        return Z::new(1f64.copysign(z.re), if z.im.is_finite() { tail } else { 0.0 });
    }
    let t = z.im.tan();
    let beta = 1.0 + t * t;
    let s = z.re.sinh();
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return Z::new(rho / s, 1.0 / t);
    }
    let d = 1.0 + beta * s * s;
    Z::new(beta * rho * s / d, t / d)
}

fn conj(z: Z) -> Z {
    Z::new(z.re, -z.im)
}

/// Beyond this magnitude the inverse functions are logarithms to machine precision.
const HUGE: f64 = 1e150;

fn asin64(z: Z) -> Z {
    if !(z.re.abs() < HUGE && z.im.abs() < HUGE) && !z.re.is_nan() && !z.im.is_nan() {
        let re = z.re.atan2(z.im.abs());
        let im = log64(Z::new(z.re.abs(), z.im.abs())).re + std::f64::consts::LN_2;
        return Z::new(re, im.copysign(z.im));
    }
    let (a, b) = (sqrt64(Z::new(1.0 - z.re, -z.im)), sqrt64(Z::new(1.0 + z.re, z.im)));
    Z::new(z.re.atan2((a * b).re), libm::asinh((conj(a) * b).im))
}

fn acos64(z: Z) -> Z {
    if !(z.re.abs() < HUGE && z.im.abs() < HUGE) && !z.re.is_nan() && !z.im.is_nan() {
        let re = z.im.abs().atan2(z.re);
        let im = log64(Z::new(z.re.abs(), z.im.abs())).re + std::f64::consts::LN_2;
        return Z::new(re, -im.copysign(z.im));
    }
    let (a, b) = (sqrt64(Z::new(1.0 - z.re, -z.im)), sqrt64(Z::new(1.0 + z.re, z.im)));
    Z::new(2.0 * a.re.atan2(b.re), libm::asinh((conj(b) * a).im))
}

fn atanh64(z: Z) -> Z {
    if !(z.re.abs() < HUGE && z.im.abs() < HUGE) && !z.re.is_nan() && !z.im.is_nan() {
        let half_turn = std::f64::consts::FRAC_PI_2.copysign(z.im);
        return Z::new(0f64.copysign(z.re), half_turn);
    }
    let x = z.re.abs();
    let d = (1.0 - x) * (1.0 - x) + z.im * z.im;
    let re = (0.25 * (4.0 * x / d).ln_1p()).copysign(z.re);
    // On the cut the sign of the imaginary part's zero chooses the side.
    let im = 0.5 * (2.0 * z.im).atan2((1.0 - x) * (1.0 + x) - z.im * z.im);
    Z::new(re, im)
}
