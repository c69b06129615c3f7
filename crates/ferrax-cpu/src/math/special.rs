//! Gamma, zeta and Bessel functions in double precision.
//!
//! Sources: Abramowitz & Stegun for the series, DLMF for the continued fraction of the incomplete gamma
//! function and the Euler-Maclaurin form of the Hurwitz zeta function, Giles for the inverse error function.

use std::f64::consts::PI;

/// ln |Γ(x)|; infinite at the poles.
pub fn lgamma(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::INFINITY;
    }
    libm::lgamma(x)
}

/// Bernoulli numbers B(2k), k from 1.
const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
    854513.0 / 138.0,
    -236364091.0 / 2730.0,
];

/// The derivative of lgamma; NaN at the poles.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 || (x < 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        // Reflection; the argument of the tangent is reduced exactly first.
        let r = x - x.round();
        return digamma(1.0 - x) - PI / (PI * r).tan();
    }
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let (z, mut power, mut tail) = (1.0 / (x * x), 1.0, 0.0);
    for (k, b) in BERNOULLI.iter().take(9).enumerate() {
        power *= z;
        tail += b / (2.0 * (k as f64 + 1.0)) * power;
    }
    shift + x.ln() - 0.5 / x - tail
}

/// 1 / √2π.
const FRAC_1_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// e^-|x| I₀(x).
pub fn bessel_i0e(x: f64) -> f64 {
    bessel_ie(x.abs(), 0.0)
}

/// e^-|x| I₁(x).
pub fn bessel_i1e(x: f64) -> f64 {
    bessel_ie(x.abs(), 1.0).copysign(x)
}

/// e^-x Iₙ(x) for x ≥ 0 and n 0 or 1.
fn bessel_ie(x: f64, n: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < 30.0 {
        let q = 0.25 * x * x;
        let (mut term, mut sum, mut k) = (if n == 0.0 { 1.0 } else { 0.5 * x }, 0.0, 0.0);
        while term > sum * 1e-17 {
            sum += term;
            k += 1.0;
            term *= q / (k * (k + n));
        }
        return sum * (-x).exp();
    }
    let mu = 4.0 * n * n;
    let (mut term, mut sum) = (1.0f64, 1.0);
    for k in 1..40 {
        let odd = f64::from(2 * k - 1);
        let next = -term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
        if next.abs() >= term.abs() || next.abs() < 1e-18 {
            break;
        }
        term = next;
        sum += term;
    }
    // 2πx may be beyond the largest number
    sum * FRAC_1_SQRT_2PI / x.sqrt()
}

/// Regularized lower incomplete gamma function P(a, x).
pub fn igamma(a: f64, x: f64) -> f64 {
    match igamma_edge(a, x) {
        Some(p) => p,
        None if x > 1.0 && x > a => 1.0 - gamma_fraction(a, x),
        None => gamma_series(a, x),
    }
}

/// Regularized upper incomplete gamma function Q(a, x).
pub fn igammac(a: f64, x: f64) -> f64 {
    match igamma_edge(a, x) {
        Some(p) => 1.0 - p,
        None if x < 1.0 || x < a => 1.0 - gamma_series(a, x),
        None => gamma_fraction(a, x),
    }
}

fn igamma_edge(a: f64, x: f64) -> Option<f64> {
    if a.is_nan() || x.is_nan() || a < 0.0 || x < 0.0 || (a == 0.0 && x == 0.0) {
        Some(f64::NAN)
    } else if a == 0.0 {
        Some(1.0)
    } else if x == 0.0 {
        Some(0.0)
    } else if a.is_infinite() {
        Some(f64::NAN)
    } else if x.is_infinite() {
        Some(1.0)
    } else {
        None
    }
}

/// x^a e^-x / Γ(a + 1), without the cancellation between large logarithms near x = a.
fn gamma_prefactor(a: f64, x: f64) -> f64 {
    if a < 20.0 {
        return (a * x.ln() - x - lgamma(a + 1.0)).exp();
    }
    // Stirling: Γ(a+1) = sqrt(2πa) (a/e)^a e^{s(a)}.
    let z = 1.0 / (a * a);
    let stirling = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / a;
    let d = (x - a) / a;
    let exponent = if d.abs() < 0.5 { -a * (d - d.ln_1p()) } else { a * (x / a).ln() + (a - x) };
    (exponent - stirling).exp() / (2.0 * PI * a).sqrt()
}

fn gamma_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, a);
    for _ in 0..20_000 {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
    }
    sum * gamma_prefactor(a, x)
}

/// Lentz's evaluation of the continued fraction for Q(a, x).
fn gamma_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / if b == 0.0 { TINY } else { b };
    let mut h = d;
    for i in 1..20_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = 1.0 / if d.abs() < TINY { TINY } else { d };
        c = b + an / c;
        c = if c.abs() < TINY { TINY } else { c };
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-16 {
            break;
        }
    }
    // gamma_prefactor is over Γ(a+1); the fraction needs Γ(a).
    h * a * gamma_prefactor(a, x)
}

/// Hurwitz zeta function Σ (q + k)^-x for x > 1.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || q.is_nan() || x < 1.0 {
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
    if x.is_infinite() {
        return if q > 1.0 {
            0.0
        } else if q == 1.0 {
            1.0
        } else {
            f64::INFINITY
        };
    }
    let (mut sum, mut a) = (0.0, q);
    let mut k = 0;
    while k < 12 || a < 10.0 {
        let term = a.powf(-x);
        sum += term;
        if term.abs() < sum.abs() * 1e-17 && a > 1.0 {
            return sum;
        }
        a += 1.0;
        k += 1;
    }
    let p = a.powf(-x);
    sum += p * a / (x - 1.0) + 0.5 * p;
    let (mut factor, mut power) = (x, p / a);
    for (i, b) in BERNOULLI.iter().enumerate() {
        let j = 2.0 * (i as f64 + 1.0);
        let term = b * factor * power / factorial(j);
        sum += term;
        if term.abs() < sum.abs() * 1e-17 {
            break;
        }
        factor *= (x + j - 1.0) * (x + j);
        power /= a * a;
    }
    sum
}

fn factorial(n: f64) -> f64 {
    libm::tgamma(n + 1.0)
}

/// The n-th derivative of digamma, n a nonnegative integer.
pub fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n < 0.0 || n != n.floor() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * (lgamma(n + 1.0)).exp() * zeta(n + 1.0, x)
}

/// The inverse error function: Giles' approximation, polished by one Newton step.
pub fn erf_inv(x: f64) -> f64 {
    if x.abs() >= 1.0 || x.is_nan() {
        return if x.abs() == 1.0 { x * f64::INFINITY } else { f64::NAN };
    }
    if x == 0.0 {
        return x;
    }
    let w = -(-x * x).ln_1p();
    let y = x * f64::from(giles(w as f32));
    let mut y = y;
    for _ in 0..2 {
        // Near ±1 the complementary function keeps the residual's digits.
        let residual =
            if y.abs() < 0.5 { libm::erf(y) - x } else { ((1.0 - x.abs()) - libm::erfc(y.abs())) * x.signum() };
        let slope = 2.0 / PI.sqrt() * (-y * y).exp();
        let step = residual / slope;
        y -= step / (1.0 + y * step);
    }
    y
}

/// erf⁻¹(x)/x to single precision as a function of w = -ln(1 - x²).
fn giles(w: f32) -> f32 {
    let (t, coefficients): (f32, [f32; 9]) = if w < 5.0 {
        let c = [
            2.810_226_4e-8,
            3.432_739_4e-7,
            -3.523_387_7e-6,
            -4.391_506_5e-6,
            2.185_808_7e-4,
            -1.253_725_03e-3,
            -4.177_681_64e-3,
            0.246_640_727,
            1.501_409_41,
        ];
        (w - 2.5, c)
    } else {
        let c = [
            -2.002_142_57e-4,
            1.009_505_58e-4,
            1.349_343_22e-3,
            -3.673_428_44e-3,
            5.739_507_73e-3,
            -7.622_461_3e-3,
            9.438_870_47e-3,
            1.001_674_06,
            2.832_976_82,
        ];
        (w.sqrt() - 3.0, c)
    };
    coefficients.iter().skip(1).fold(coefficients[0], |p, c| p * t + c)
}

/// The 16-bit float after `a` in `b`'s direction; `INF` is the bit pattern of infinity.
pub fn nextafter16<const INF: u16>(a: u16, b: u16) -> u16 {
    let magnitude = |v: u16| v & 0x7fff;
    if magnitude(a) > INF || magnitude(b) > INF {
        return INF | 1 << 6;
    }
    if a == b || (magnitude(a) == 0 && magnitude(b) == 0) {
        return b;
    }
    if magnitude(a) == 0 {
        return (b & 0x8000) | 1;
    }
    let key = |v: u16| if v & 0x8000 != 0 { -i32::from(magnitude(v)) } else { i32::from(v) };
    let toward_zero = (key(b) > key(a)) == (a & 0x8000 != 0);
    if toward_zero { a - 1 } else { a + 1 }
}

/// ln(e^a + e^x), without overflow; `a` and the result are sums of a number and what its rounding left out.
#[inline(always)]
pub fn log_add_exp(a: (f64, f64), x: f64) -> (f64, f64) {
    let gap = (x - a.0) - a.1;
    if !gap.is_finite() {
        return match () {
            () if a.0.is_nan() || x.is_nan() => (f64::NAN, 0.0),
            () if x == f64::NEG_INFINITY => a,
            () => (a.0.max(x), 0.0),
        };
    }
    let (high, low) = if gap <= 0.0 { a } else { (x, 0.0) };
    let low = low + (-gap.abs()).exp().ln_1p();
    let sum = high + low;
    let part = sum - high;
    (sum, (high - (sum - part)) + (low - part))
}
