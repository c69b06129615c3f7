//! Gamma and zeta functions in double precision, by the ways of the CPU engine (`ferrax_cpu::math::special`) with every
//! case worked out for every element.
//!
//! ln Γ comes from Taylor's series at 2, whose coefficients are (ζ(k) - 1)/k, the recurrence up to 10, Stirling's series
//! beyond, and the reflection (Abramowitz and Stegun, 6.1). The incomplete functions take the power series, Lentz's
//! continued fraction, and near the mode of large parameters Gauss and Legendre's rule. Read next: `zeta.rs`.

use super::code::{Before, X};
use crate::coefficients::{BERNOULLI, DIGAMMA_AT_ROOT, DIGAMMA_ROOT};
use crate::{BinaryOp, UnaryOp};
use ferrax_base::DType;
use std::f64::consts::PI;

/// (-1)^k (ζ(k) - 1)/k, the highest k first, down to 2; then 1 - γ.
const AT_TWO: [f64; 29] = [
    -6.422_964_563_838_1e-11,
    1.330_476_437_424_449e-10,
    -2.759_522_885_124_233_4e-10,
    5.731_367_241_678_862e-10,
    -1.192_140_140_586_091_2e-09,
    2.483_674_543_802_478_5e-09,
    -5.183_475_041_970_047e-09,
    1.083_865_921_489_695_5e-08,
    -2.271_109_460_894_316_4e-08,
    4.769_810_169_363_980_4e-08,
    -1.004_322_482_396_809_9e-07,
    2.120_718_480_555_466_5e-07,
    -4.492_469_198_764_566e-07,
    9.551_412_130_407_42e-07,
    -2.039_215_753_801_366e-06,
    4.374_866_789_907_488e-06,
    -9.439_488_275_268_397e-06,
    2.050_721_277_567_069e-05,
    -4.492_623_673_813_314e-05,
    9.945_751_278_180_853e-05,
    -0.000_223_154_758_453_579_39,
    0.000_509_669_524_743_042_5,
    -0.001_192_753_911_703_261,
    0.002_890_510_330_741_523_4,
    -0.007_385_551_028_673_986,
    0.020_580_808_427_784_546,
    -0.067_352_301_053_198_1,
    0.322_467_033_424_113_2,
    0.422_784_335_098_467_13,
];

/// The rest of 1 - γ.
const AT_TWO_REST: f64 = 4.940_915_7e-18;

/// ln Γ(2 + t) for |t| ≤ 1/2.
fn series(t: X<'_>) -> X<'_> {
    t * t.polynomial(&AT_TWO) + t * AT_TWO_REST
}

/// x in [1/2, 10] taken down to (t, product): Γ(x) = product Γ(2 + t) with |t| ≤ 1/2; below 3/2 the product is 1 / (x).
fn taken_down(x: X<'_>, most: i32) -> (X<'_>, X<'_>) {
    let (mut y, mut product) = (x, x.code.number(x.dtype(), 1.0).spread(&x.shape()));
    for _ in 0..most {
        let large = y.gt(2.5);
        y = large.pick(y - 1.0, y);
        product = large.pick(product * y, product);
    }
    (y - 2.0, product)
}

/// ln |Γ(x)|; infinite at the poles.
pub(super) fn lgamma(x: X<'_>) -> X<'_> {
    let positive = positive_lgamma(x.lt(0.5).pick(1.0.less(x), x));
    // Γ(x) Γ(1 - x) = π / sin πx; the sine's argument is reduced exactly
    let r = x - x.un(UnaryOp::RoundEven);
    let sine = (r * PI).un(UnaryOp::Sin).abs();
    let reflected = (PI.over(sine)).ln() - positive;
    // near zero Γ(x) = Γ(1 + x)/x, without a rounding of 1 - x
    let t = x.lt(0.5).pick(x, x.code.number(x.dtype(), 0.0));
    let near = series(t) - t.ln_1p() - x.abs().ln();
    let left = x.gt(-0.5).pick(near, reflected);
    let pole = x.le(0.0) & x.eq(x.floor());
    let y = x.lt(0.5).pick(left, positive);
    let endless = x.abs().eq(f64::INFINITY) | pole;
    endless.pick(x.code.number(x.dtype(), f64::INFINITY), y)
}

/// ln Γ(x) for x ≥ 1/2.
fn positive_lgamma(x: X<'_>) -> X<'_> {
    let small = x.min(10.0);
    let (t, product) = taken_down(small, 8);
    // below 3/2, ln Γ(x) = ln Γ(x + 1) - ln x
    let low = small.lt(1.5);
    let t = low.pick(small - 1.0, t);
    let near = series(t) + low.pick(-small.ln(), product.ln());
    let large = x.max(10.0);
    let far = (large - 0.5) * (large.ln() - 1.0) + 0.418_938_533_204_672_74 + stirling(large);
    x.lt(10.0).pick(near, far)
}

/// What Stirling's formula for ln Γ(x) leaves out, for x ≥ 10.
fn stirling(x: X<'_>) -> X<'_> {
    let z = 1.0.over(x * x);
    let terms: Vec<f64> = (0..8).rev().map(|k| BERNOULLI[k] / ((2 * k + 1) as f64 * (2 * k + 2) as f64)).collect();
    z.polynomial(&terms) / x
}

/// Γ(x) for x from 1 to 21.
fn gamma(x: X<'_>) -> X<'_> {
    let (t, product) = taken_down(x, 19);
    let low = x.lt(1.5);
    let t = low.pick(x - 1.0, t);
    series(t).exp() * low.pick(1.0.over(x), product)
}

/// The derivative of lgamma; NaN at the poles.
pub(super) fn digamma(x: X<'_>) -> X<'_> {
    let positive = positive_digamma(x.lt(0.0).pick(1.0.less(x), x));
    let r = x - x.un(UnaryOp::RoundEven);
    let reflected = positive - PI.over((r * PI).un(UnaryOp::Tan));
    let pole = x.le(0.0) & x.eq(x.floor());
    pole.pick(x.code.number(x.dtype(), f64::NAN), x.lt(0.0).pick(reflected, positive))
}

fn positive_digamma(x: X<'_>) -> X<'_> {
    let t = (x - DIGAMMA_ROOT.0) - DIGAMMA_ROOT.1;
    let near = t * (t.polynomial(&DIGAMMA_AT_ROOT) + 1.0.over(x * DIGAMMA_ROOT.0));
    let (mut y, mut shift) = (x, x.code.number(x.dtype(), 0.0));
    for _ in 0..10 {
        let small = y.lt(10.0);
        shift = small.pick(shift - 1.0.over(y), shift);
        y = small.pick(y + 1.0, y);
    }
    let z = 1.0.over(y * y);
    let terms: Vec<f64> = (0..9).rev().map(|k| BERNOULLI[k] / (2.0 * (k as f64 + 1.0))).collect();
    let far = shift + y.ln() - 0.5.over(y) - z * z.polynomial(&terms);
    (x - DIGAMMA_ROOT.0).abs().lt(0.25).pick(near, far)
}

// ---- incomplete gamma functions ------------------------------------------------------------------------------------

/// Regularized lower incomplete gamma function P(a, x).
pub(super) fn igamma<'c>(a: X<'c>, x: X<'c>) -> X<'c> {
    let above = x.gt(1.0) & x.gt(a);
    let (lower, upper) = tails(a, x, !above, above);
    edges(a, x, above.pick(1.0.less(upper), lower), 1.0)
}

/// Regularized upper incomplete gamma function Q(a, x).
pub(super) fn igammac<'c>(a: X<'c>, x: X<'c>) -> X<'c> {
    let tiny = a.lt(1.0) & x.lt(1.0);
    let below = (x.lt(1.0) | x.lt(a)) & !tiny;
    let (lower, upper) = tails(a, x, below, !(below | tiny));
    let y = tiny.pick(upper_of_small(a, x), below.pick(1.0.less(lower), upper));
    edges(a, x, y, 0.0)
}

/// The values at the ends of the range; `all` is that of infinite x.
fn edges<'c>(a: X<'c>, x: X<'c>, y: X<'c>, all: f64) -> X<'c> {
    let number = |v: f64| x.code.number(x.dtype(), v);
    let endless = |v: X<'c>| v.eq(f64::INFINITY);
    let y = endless(x).pick(number(all), y);
    let y = endless(a).pick(number(f64::NAN), y);
    let y = x.eq(0.0).pick(number(1.0 - all), y);
    let y = a.eq(0.0).pick(number(all), y);
    let outside = a.is_nan() | x.is_nan() | a.lt(0.0) | x.lt(0.0) | (a.eq(0.0) & x.eq(0.0));
    outside.pick(number(f64::NAN), y)
}

/// P(a, x) where the first holds and Q(a, x) where the second does; anything elsewhere.
fn tails<'c>(a: X<'c>, x: X<'c>, lower: X<'c>, upper: X<'c>) -> (X<'c>, X<'c>) {
    // Numbers that take part in no case are ones that converge at once.
    let inside = a.is_finite() & x.is_finite() & a.gt(0.0) & x.gt(0.0);
    let one = x.code.number(x.dtype(), 1.0);
    let (a, x) = (inside.pick(a, one), inside.pick(x, one));
    let near_mode = a.gt(200.0) & (x - a).abs().lt(a * 0.3);
    let front = prefactor(a, x);
    let side = lower.pick(-one, one);
    let integral = gamma_integral(a, x, side) * front;
    let sum = power_series(a, x, lower & !near_mode) * front;
    let fraction = continued_fraction(a, x, upper & !near_mode) * a * front;
    (near_mode.pick(integral, sum), near_mode.pick(integral, fraction))
}

/// Σ x^k / ((a + 1) … (a + k)) where `on`.
fn power_series<'c>(a: X<'c>, x: X<'c>, on: X<'c>) -> X<'c> {
    let c = x.code;
    let one = c.full(x.dtype(), &x.shape(), 1.0);
    let [_, sum, ..] = c.repeat_while(
        [x],
        [one, one, a, on, c.number(DType::I32, 0.0)],
        |_, [_, _, _, on, k]| on.any() & k.lt(20_000i64),
        |[x], [term, sum, n, on, k]| {
            let n = n + 1.0;
            let term = on.pick(term * (x / n), term);
            let sum = on.pick(sum + term, sum);
            [term, sum, n, on & term.gt(sum * 1e-17), k + 1i64]
        },
    );
    sum
}

const TINY: f64 = 1e-300;

fn off_zero(x: X<'_>) -> X<'_> {
    x.abs().lt(TINY).pick(x.code.number(x.dtype(), TINY), x)
}

/// Lentz's evaluation of the continued fraction for Q(a, x) where `on`.
fn continued_fraction<'c>(a: X<'c>, x: X<'c>, on: X<'c>) -> X<'c> {
    let code = x.code;
    let shape = x.shape();
    let b = x + 1.0 - a;
    let d = 1.0.over(off_zero(b));
    let big = code.full(x.dtype(), &shape, 1.0 / TINY);
    let one = code.number(x.dtype(), 1.0);
    let [_, _, _, h, ..] = code.repeat_while(
        [a],
        [b, big, d, d, one, on],
        |_, [_, _, _, _, i, on]| on.any() & i.lt(20_000.0),
        |[a], [b, c, d, h, i, on]| {
            let an = -(i * (i - a));
            let b = b + 2.0;
            let d = 1.0.over(off_zero(an * d + b));
            let c = off_zero(b + an / c);
            let step = d * c;
            [b, c, d, on.pick(h * step, h), i + 1.0, on & (step - 1.0).abs().ge(1e-16)]
        },
    );
    h
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

/// The tail of the gamma distribution on one side of x over its prefactor, with t = x e^(±u): a times the integral over
/// u > 0 of exp(-|x - a| u - x (e^(±u) - 1 ∓ u)).
fn gamma_integral<'c>(a: X<'c>, x: X<'c>, side: X<'c>) -> X<'c> {
    let linear = (x - a).abs();
    // beyond `end` the integrand is below the rounding of the integral; the lower side's falls more slowly
    let end = 80.0.over(linear + (linear * linear + x * 80.0).sqrt());
    let end = side.lt(0.0).pick(end * 1.25, end);
    let at = |node: f64| {
        let u = end * (0.5 * (1.0 + node));
        let z = side * u;
        // e^z - 1 - z
        let zero = x.code.number(x.dtype(), 0.0);
        let excess = (2..20).rev().fold(zero, |sum, k| (sum + 1.0) * z / f64::from(k)) * z;
        (-(linear * u + x * excess)).exp()
    };
    let terms = LEGENDRE.iter().map(|&(node, weight)| (at(node) + at(-node)) * weight);
    let sum = terms.reduce(|sum, term| sum + term).unwrap_or(x);
    end * 0.5 * sum * a
}

/// Q(a, x) below 1, where P(a, x) is near 1 for small a: by the series of x^-a P(a, x) Γ(a + 1).
fn upper_of_small<'c>(a: X<'c>, x: X<'c>) -> X<'c> {
    let (mut term, mut sum) = (x.code.number(x.dtype(), 1.0), x.code.number(x.dtype(), 0.0));
    for n in 1..=30 {
        term = term * (-x / f64::from(n));
        sum = sum + term / (a + f64::from(n));
    }
    // ln Γ(1 + a), which is near zero
    let near = a.lt(0.5);
    let t = near.pick(a, a - 1.0);
    let next = series(t) + near.pick(-near.pick(a, 0.0).ln_1p(), 0.0);
    -(a * x.ln() + (a * sum).ln_1p() - next).un(UnaryOp::Expm1)
}

/// x^a e^-x / Γ(a + 1), without the cancellation between large logarithms near x = a.
fn prefactor<'c>(a: X<'c>, x: X<'c>) -> X<'c> {
    let half = (x * -0.5).exp();
    let factorial = gamma(a.min(20.0) + 1.0);
    let small = x.bin(BinaryOp::Pow, a.min(20.0)) * half / factorial * half;
    // Stirling: Γ(a+1) = sqrt(2πa) (a/e)^a e^{s(a)}.
    let a = a.max(20.0);
    let scale = (-stirling(a)).exp() / (a * (2.0 * PI)).sqrt();
    let quotient = x / a;
    let gap = a - x;
    let size = (a * quotient.ln()).abs().max(gap.abs());
    let distant = (gap + a * quotient.ln()).exp();
    let by_logarithm = (gap / a).abs().lt(0.5).pick(from_mode(a, x), distant);
    // (x/a)^a e^(a-x) by its fourth or sixteenth root, which is in range, and what the difference left out
    let lost = a.gt(x).pick((a - gap) - x, a - (x + gap));
    let far = size.gt(2_800.0);
    let part = far.pick(x.code.number(x.dtype(), 0.0625), 0.25);
    let root = quotient.bin(BinaryOp::Pow, part * a) * (part * gap).exp();
    let fourth = fourth_power(root);
    let power = far.pick(fourth_power(fourth), fourth);
    let rest = a * product_rest(quotient, a, x) / x + lost;
    let large = scale * size.gt(11_200.0).pick(by_logarithm, power * rest.exp());
    a.le(20.0).pick(small, large)
}

fn fourth_power(x: X<'_>) -> X<'_> {
    let square = x * x;
    square * square
}

/// Halves of a number: the first has 26 bits.
fn halves(x: X<'_>) -> (X<'_>, X<'_>) {
    let mask = x.code.scalar(ferrax_base::Scalar::from_i64(DType::I64, !0 << 27));
    let head = (x.bits(DType::I64) & mask).bits(DType::F64);
    (head, x - head)
}

/// c - a b, nearly as if it were rounded once; c is near the product.
fn product_rest<'c>(a: X<'c>, b: X<'c>, c: X<'c>) -> X<'c> {
    let ((a1, a2), (b1, b2)) = (halves(a), halves(b));
    (((c - a1 * b1) - a1 * b2) - a2 * b1) - a2 * b2
}

/// (x/a)^a e^(a-x) for x near a: exp(-a (d - ln(1 + d))) with d = (x - a)/a, whose term a d²/2 is exact.
fn from_mode<'c>(a: X<'c>, x: X<'c>) -> X<'c> {
    let gap = x - a;
    let lost = x.gt(a).pick((x - gap) - a, x - (a + gap));
    let square = gap * gap;
    let rest = -product_rest(gap, gap, square) + gap * lost * 2.0;
    let lead = square / (a * 2.0);
    let low = (product_rest(lead, a * 2.0, square) + rest) / (a * 2.0);
    let d = gap / a;
    let r = d / (d + 2.0);
    let q = r * r;
    let coefficients: Vec<f64> = (1..19).rev().map(|k| 1.0 / f64::from(2 * k + 1)).collect();
    let higher = a * r * (d * d * 0.5 + q * 2.0 * q.polynomial(&coefficients));
    // Compilers would make one exponential of two that are multiplied.
    let main = (-lead).exp();
    main + main * (higher - low).un(UnaryOp::Expm1)
}
