//! Special functions, with the plain definitions that their references use.
//!
//! Sources: Abramowitz and Stegun, chapters 6, 7, 9 and 23. Read next: `ferrax-ops/src/reduce.rs`.

use crate::common::{NO_REWRITE, NOT_LINEAR, constant, full_like};
use crate::elementwise::binary::{add, binary, mul, numbers, partials, sub};
use crate::elementwise::compare::gt;
use crate::elementwise::functions::{
    Call::{One, Two},
    FLOATING, Function,
};
use crate::elementwise::select::select;
use crate::elementwise::unary::{abs, derivative, exp, log, neg, reals, reciprocal, sign, square, unary};
use ferrax_base::{DType, Result, bail};
use ferrax_ir::{Slot, Value};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};

// ---- error functions -----------------------------------------------------------------------------------------------

/// exp(-x²) g, times a factor.
fn gaussian(g: &Value, x: &Value, factor: f64) -> Result<Value> {
    mul(&constant(x, factor), &mul(g, &exp(&neg(&square(x)?)?)?)?)
}

unary!(
    ERF, erf, "erf", FLOAT, Erf, "Error function.",
    jvp: derivative!(|g, _, x| gaussian(g, x, FRAC_2_SQRT_PI)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(libm::erf),
);

unary!(
    ERFC, erfc, "erfc", FLOAT, Erfc, "Complementary error function, 1 - erf(x), accurate for large x.",
    jvp: derivative!(|g, _, x| gaussian(g, x, -FRAC_2_SQRT_PI)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(libm::erfc),
);

unary!(
    ERF_INV, erf_inv, "erf_inv", FLOAT, ErfInv, "Inverse of the error function.",
    jvp: derivative!(|g, y, x| {
        mul(&constant(x, 1.0 / FRAC_2_SQRT_PI), &mul(g, &exp(&square(y)?)?)?)
    }),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(erf_inv_of),
    special: EDGE,
);

/// Newton's iteration from Winitzki's estimate.
fn erf_inv_of(x: f64) -> f64 {
    if x.abs() >= 1.0 {
        return if x.abs() == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    let l = (-x * x).ln_1p();
    let t = 2.0 / (PI * 0.147) + l / 2.0;
    let mut y = ((t * t - l / 0.147).sqrt() - t).sqrt().copysign(x);
    for _ in 0..4 {
        // Away from zero the error is taken on the complement, where it keeps its digits.
        let error = if y.abs() > 1.0 { (1.0 - x.abs() - libm::erfc(y.abs())) * x.signum() } else { libm::erf(y) - x };
        y -= error / (FRAC_2_SQRT_PI * (-y * y).exp());
    }
    y
}

// ---- gamma functions -----------------------------------------------------------------------------------------------

unary!(
    LGAMMA, lgamma, "lgamma", FLOAT, Lgamma, "Logarithm of the absolute value of the gamma function.",
    jvp: derivative!(|g, _, x| mul(g, &digamma(x)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(libm::lgamma),
    special: EDGE,
);

unary!(
    DIGAMMA, digamma, "digamma", FLOAT, Digamma, "Digamma function, the derivative of lgamma.",
    jvp: derivative!(|g, _, x| mul(g, &polygamma(&constant(x, 1.0), x)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(digamma_of),
    special: EDGE,
);

/// Reflection for negative numbers, recurrence up to 12, then the asymptotic series (6.3.18).
fn digamma_of(x: f64) -> f64 {
    if x <= 0.0 {
        return if x == x.floor() { f64::NAN } else { digamma_of(1.0 - x) - PI / (PI * x).tan() };
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    let series = w * (1.0 / 12.0 - w * (1.0 / 120.0 - w * (1.0 / 252.0 - w * (1.0 / 240.0 - w / 132.0))));
    shift + x.ln() - 0.5 / x - series
}

binary!(
    IGAMMA, igamma, "igamma", FLOAT, Igamma, "Regularized lower incomplete gamma function, P(a, x).",
    jvp: partials!(
        |_, _, _, _| bail!(NotImplemented, "the derivative of igamma by its first argument (igamma_grad_a)"),
        |g, _, a, x| mul(g, &gamma_density(a, x)?)
    ),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(real: |a, x| igamma_of(a, x).0),
);

binary!(
    IGAMMAC, igammac, "igammac", FLOAT, Igammac, "Regularized upper incomplete gamma function, Q(a, x).",
    jvp: partials!(
        |_, _, _, _| bail!(NotImplemented, "the derivative of igammac by its first argument (igamma_grad_a)"),
        |g, _, a, x| mul(g, &neg(&gamma_density(a, x)?)?)
    ),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(real: |a, x| igamma_of(a, x).1),
);

/// The density of the gamma distribution: exp(-x + (a - 1) log x - lgamma a).
fn gamma_density(a: &Value, x: &Value) -> Result<Value> {
    let power = mul(&sub(a, &constant(a, 1.0))?, &log(x)?)?;
    exp(&sub(&add(&neg(x)?, &power)?, &lgamma(a)?)?)
}

/// P(a, x) and Q(a, x): the series 6.5.29 below a + 1, Lentz's continued fraction 6.5.31 above.
fn igamma_of(a: f64, x: f64) -> (f64, f64) {
    if x < 0.0 || a <= 0.0 || a.is_nan() || x.is_nan() {
        return (f64::NAN, f64::NAN);
    }
    if x == 0.0 {
        return (0.0, 1.0);
    }
    if x.is_infinite() {
        return (1.0, 0.0);
    }
    let scale = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (sum * scale, 1.0 - sum * scale);
    }
    let tiny = 1e-300;
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / tiny, 1.0 / b);
    let mut h = d;
    for i in 1..10_000 {
        let an = -f64::from(i) * (f64::from(i) - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / if d.abs() < tiny { tiny } else { d };
        c = b + an / c;
        c = if c.abs() < tiny { tiny } else { c };
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    (1.0 - h * scale, h * scale)
}

binary!(
    ZETA, zeta, "zeta", FLOAT, Zeta, "Hurwitz zeta function, the sum of 1/(k + q)**x over k.",
    jvp: Slot::None("the derivative of zeta is not implemented in JAX either"),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(real: zeta_of),
);

/// Euler-Maclaurin summation (23.2.9) from the twelfth term on.
fn zeta_of(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return if x % 2.0 == 0.0 { f64::INFINITY } else { f64::NAN };
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    let mut sum: f64 = (0..12).map(|k| (f64::from(k) + q).powf(-x)).sum();
    let mut w = q + 12.0;
    while w < 1.0 {
        sum += w.powf(-x);
        w += 1.0;
    }
    sum += w.powf(1.0 - x) / (x - 1.0) + 0.5 * w.powf(-x);
    // B_2k / (2k)! for k = 1, 2, …
    let bernoulli = [1.0 / 12.0, -1.0 / 720.0, 1.0 / 30240.0, -1.0 / 1_209_600.0, 1.0 / 47_900_160.0];
    let mut factor = x * w.powf(-x - 1.0);
    for (k, b) in bernoulli.iter().enumerate() {
        sum += b * factor;
        let n = x + 2.0 * k as f64 + 1.0;
        factor *= n * (n + 1.0) / (w * w);
    }
    sum
}

binary!(
    POLYGAMMA, polygamma, "polygamma", FLOAT, Polygamma, "The m-th derivative of the digamma function.",
    jvp: partials!(
        |_, _, _, _| bail!(Value, "polygamma gradient with respect to m is not supported"),
        |g, _, m, x| mul(g, &polygamma(&add(m, &constant(m, 1.0))?, x)?)
    ),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: numbers!(real: |m, x| {
        if m == 0.0 {
            return digamma_of(x);
        }
        if m < 0.0 || m != m.floor() {
            return f64::NAN;
        }
        let sign = if m % 2.0 == 0.0 { -1.0 } else { 1.0 };
        sign * libm::tgamma(m + 1.0) * zeta_of(m + 1.0, x)
    }),
);

// ---- Bessel functions ----------------------------------------------------------------------------------------------

unary!(
    BESSEL_I0E, bessel_i0e, "bessel_i0e", FLOAT, BesselI0e,
    "Exponentially scaled modified Bessel function of order 0, exp(-|x|) I0(x).",
    jvp: derivative!(|g, y, x| mul(g, &sub(&bessel_i1e(x)?, &mul(&sign(x)?, y)?)?)),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(|x| bessel_ie(0.0, x)),
);

unary!(
    BESSEL_I1E, bessel_i1e, "bessel_i1e", FLOAT, BesselI1e,
    "Exponentially scaled modified Bessel function of order 1, exp(-|x|) I1(x).",
    jvp: derivative!(|g, y, x| {
        // I1e(x)/x tends to 1/2 at zero.
        let eps = epsilon(x.dtype());
        let large = gt(&abs(x)?, &constant(x, eps))?;
        let safe = select(&large, x, &full_like(x, eps)?)?;
        let slope = sub(&bessel_i0e(&safe)?, &mul(y, &add(&sign(&safe)?, &reciprocal(&safe)?)?)?)?;
        mul(g, &select(&large, &slope, &full_like(x, 0.5)?)?)
    }),
    transpose: Slot::None(NOT_LINEAR),
    simplify: Slot::None(NO_REWRITE),
    reference: reals!(|x| bessel_ie(1.0, x)),
);

/// The integral 9.6.19 by the trapezoid rule, which converges exponentially on a period.
fn bessel_ie(order: f64, x: f64) -> f64 {
    let n = 4000;
    let at = |k: i32| {
        let angle = PI * f64::from(k) / f64::from(n);
        (x.abs() * (angle.cos() - 1.0)).exp() * (order * angle).cos()
    };
    let inner: f64 = (1..n).map(at).sum();
    let value = (inner + 0.5 * (at(0) + at(n))) / f64::from(n);
    if order == 1.0 { value.copysign(x) } else { value }
}

/// The distance from 1 to the next number.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => 0.0,
    }
}

// ---- the functions as host languages have them ----------------------------------------------------------------------

/// The functions of this file, with their words.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("erf", One(erf), &ERF, FLOATING, ["{f}(jnp.array([0.]))", "[0.]"]),
    Function::new("erfc", One(erfc), &ERFC, FLOATING, ["{f}(jnp.array([0.]))", "[1.]"]),
    Function::new("erf_inv", One(erf_inv), &ERF_INV, FLOATING, ["{f}(jnp.array([0.]))", "[0.]"]),
    Function::new("lgamma", One(lgamma), &LGAMMA, FLOATING, ["{f}(jnp.array([1.]))", "[0.]"]),
    Function::new("digamma", One(digamma), &DIGAMMA, FLOATING, ["{f}(jnp.array([1.])).round(3)", "[-0.577]"]),
    Function::new("bessel_i0e", One(bessel_i0e), &BESSEL_I0E, FLOATING, ["{f}(jnp.array([0.]))", "[1.]"]),
    Function::new("bessel_i1e", One(bessel_i1e), &BESSEL_I1E, FLOATING, ["{f}(jnp.array([0.]))", "[0.]"]),
    Function::new("igamma", Two(igamma), &IGAMMA, FLOATING, ["{f}(1., jnp.array([2.])).round(3)", "[0.865]"])
        .operands(&["a", "x"]),
    Function::new("igammac", Two(igammac), &IGAMMAC, FLOATING, ["{f}(1., jnp.array([2.])).round(3)", "[0.135]"])
        .operands(&["a", "x"]),
    Function::new("zeta", Two(zeta), &ZETA, FLOATING, ["{f}(2., jnp.array([1.])).round(3)", "[1.645]"])
        .operands(&["x", "q"]),
    Function::new("polygamma", Two(polygamma), &POLYGAMMA, FLOATING, ["{f}(1., jnp.array([1.])).round(3)", "[1.645]"])
        .operands(&["m", "x"]),
];
