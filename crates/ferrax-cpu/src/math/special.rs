//! Gamma and zeta functions in double precision, one number at a time.
//!
//! Sources: Abramowitz & Stegun for the series, DLMF for the continued fraction of the incomplete gamma
//! function and the Euler-Maclaurin form of the Hurwitz zeta function.

use ferrax_loops::coefficients::{BERNOULLI, DIGAMMA_AT_ROOT, DIGAMMA_ROOT};
use std::f64::consts::PI;

/// ln |Γ(x)|; infinite at the poles.
pub fn lgamma(x: f64) -> f64 {
    if x.is_infinite() {
        return f64::INFINITY;
    }
    libm::lgamma(x)
}

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
    if (x - DIGAMMA_ROOT.0).abs() < 0.25 {
        return digamma_near_root(x);
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

/// Taylor's series of ψ(x + 1) at the zero of ψ(x), which has no pole near, and 1/x taken off.
fn digamma_near_root(x: f64) -> f64 {
    let t = (x - DIGAMMA_ROOT.0) - DIGAMMA_ROOT.1;
    let rest = DIGAMMA_AT_ROOT.iter().fold(0.0, |sum, c| sum * t + c);
    t * (rest + 1.0 / (DIGAMMA_ROOT.0 * x))
}

/// Regularized lower incomplete gamma function P(a, x).
pub fn igamma(a: f64, x: f64) -> f64 {
    match igamma_edge(a, x) {
        Some(p) => p,
        None if x > 1.0 && x > a => 1.0 - upper(a, x),
        None => lower(a, x),
    }
}

/// Regularized upper incomplete gamma function Q(a, x).
pub fn igammac(a: f64, x: f64) -> f64 {
    match igamma_edge(a, x) {
        Some(p) => 1.0 - p,
        None if a < 1.0 && x < 1.0 => upper_of_small(a, x),
        None if x < 1.0 || x < a => 1.0 - lower(a, x),
        None => upper(a, x),
    }
}

fn lower(a: f64, x: f64) -> f64 {
    if near_mode(a, x) { gamma_integral(a, x, -1.0) } else { gamma_series(a, x) }
}

fn upper(a: f64, x: f64) -> f64 {
    if near_mode(a, x) { gamma_integral(a, x, 1.0) } else { gamma_fraction(a, x) }
}

/// Whether the series and the fraction converge slowly.
fn near_mode(a: f64, x: f64) -> bool {
    a > 200.0 && (x - a).abs() < 0.3 * a
}

/// Positive nodes of Gauss and Legendre's rule with 28 nodes, and their weights.
const LEGENDRE: [(f64, f64); 14] = [
    (0.055_079_289_884_034_270, 0.110_047_013_016_475_20),
    (0.164_569_282_133_380_77, 0.108_711_192_258_294_14),
    (0.272_061_627_635_178_08, 0.106_055_765_922_846_42),
    (0.376_251_516_089_078_71, 0.102_112_967_578_060_77),
    (0.475_874_224_955_118_26, 0.096_930_657_997_929_916),
    (0.569_720_471_811_401_72, 0.090_571_744_393_032_841),
    (0.656_651_094_038_864_96, 0.083_113_417_228_901_218),
    (0.735_610_878_013_631_77, 0.074_646_214_234_568_779),
    (0.805_641_370_917_179_17, 0.065_272_923_966_999_596),
    (0.865_892_522_574_395_05, 0.055_107_345_675_716_745),
    (0.915_633_026_392_132_07, 0.044_272_934_759_004_228),
    (0.954_259_280_628_938_20, 0.032_901_427_782_304_380),
    (0.981_303_165_370_872_75, 0.021_132_112_592_771_260),
    (0.996_442_497_573_954_45, 0.009_124_282_593_094_517_7),
];

/// The tail of the gamma distribution on one side of x, with t = x e^(±u): x^a e^-x / Γ(a) times the integral over
/// u > 0 of exp(-|x - a| u - x (e^(±u) - 1 ∓ u)).
fn gamma_integral(a: f64, x: f64, side: f64) -> f64 {
    let linear = (x - a).abs();
    // beyond `end` the integrand is below the rounding of the integral; the lower side's falls more slowly
    let end = 80.0 / (linear + (linear * linear + 80.0 * x).sqrt()) * if side < 0.0 { 1.25 } else { 1.0 };
    let at = |node: f64| {
        let u = 0.5 * end * (1.0 + node);
        let z = side * u;
        // e^z - 1 - z
        let excess = (2..20).rev().fold(0.0, |sum, k| (sum + 1.0) * z / f64::from(k)) * z;
        (-(linear * u + x * excess)).exp()
    };
    let sum: f64 = LEGENDRE.iter().map(|&(node, weight)| weight * (at(node) + at(-node))).sum();
    0.5 * end * sum * a * gamma_prefactor(a, x)
}

/// Q(a, x) below 1, where P(a, x) is near 1 for small a: by the series of x^-a P(a, x) Γ(a + 1).
fn upper_of_small(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 0.0, 0.0);
    while n < 30.0 {
        n += 1.0;
        term *= -x / n;
        sum += term / (a + n);
    }
    // log Γ(1 + a), and what the rounding of 1 + a left out
    let next = 1.0 + a;
    let lost = (next - 1.0) - a;
    -(a * x.ln() + (a * sum).ln_1p() - (lgamma(next) - lost * digamma(next))).exp_m1()
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
        let half = (-0.5 * x).exp();
        let factorial = if a < 1.0 { libm::tgamma(a + 1.0) } else { a * libm::tgamma(a) };
        return x.powf(a) * half / factorial * half;
    }
    // Stirling: Γ(a+1) = sqrt(2πa) (a/e)^a e^{s(a)}.
    let z = 1.0 / (a * a);
    let stirling = (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / a;
    let scale = (-stirling).exp() / (2.0 * PI * a).sqrt();
    let quotient = x / a;
    let (size, d) = ((a * quotient.ln()).abs().max((a - x).abs()), (x - a) / a);
    if size > 11_200.0 {
        return scale * if d.abs() < 0.5 { from_mode(a, x) } else { (a - x + a * quotient.ln()).exp() };
    }
    // (x/a)^a e^(a-x) by its fourth or sixteenth root, which is in range, and what quotient and difference left out
    let gap = a - x;
    let lost = if a > x { (a - gap) - x } else { a - (x + gap) };
    let (part, squarings) = if size > 2_800.0 { (0.0625, 4) } else { (0.25, 2) };
    let root = quotient.powf(part * a) * (part * gap).exp();
    let power = (0..squarings).fold(root, |power, _| power * power);
    let rest = a * (-quotient).mul_add(a, x) / x + lost;
    power * rest.exp() * scale
}

/// (x/a)^a e^(a-x) for x near a: exp(-a (d - ln(1 + d))) with d = (x - a)/a, whose term a d²/2 is exact.
fn from_mode(a: f64, x: f64) -> f64 {
    let gap = x - a;
    let lost = if x > a { (x - gap) - a } else { x - (a + gap) };
    let square = gap * gap;
    let rest = gap.mul_add(gap, -square) + 2.0 * gap * lost;
    let lead = square / (2.0 * a);
    let low = ((-lead).mul_add(2.0 * a, square) + rest) / (2.0 * a);
    let d = gap / a;
    let r = d / (2.0 + d);
    let q = r * r;
    let series = (1..19).rev().fold(0.0, |sum, k| sum * q + 1.0 / f64::from(2 * k + 1));
    let higher = a * r * (0.5 * d * d + 2.0 * q * series);
    (-lead).exp() * (higher - low).exp()
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
