//! The error function, its complement and its inverse.
//!
//! In double precision: erf by Taylor's series up to 1 and from its complement beyond, erfc from the scaled function
//! e^(x²) erfc(x), of which (1 + 2x) times is a series of 25 Chebyshev polynomials in (x - 4)/(x + 3) for x ≥ 1/2 (the
//! mapping is that of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x²) erfc x", 1981), and the
//! inverse by Giles' approximation ("Approximating the erfinv function", 2010) and two steps of Halley's. f32 has
//! polynomials for erf and its inverse, so that random normal numbers cost no double precision; they are those of the
//! CPU engine. Errors on the CPU plugin are in `tests/library_special.rs`.

use super::code::{Before, X};
use crate::coefficients::{ERF_FAR, ERF_INV_CENTRAL, ERF_INV_TAIL, ERF_NEAR};
use ferrax_base::DType;
use std::f64::consts::FRAC_2_SQRT_PI;

/// Taylor's series of erf(x)/x in x², the highest power first.
const SERIES: [f64; 18] = [
    -9.063_970_842_808_673e-17,
    1.634_261_409_536_715_2e-15,
    -2.783_516_207_210_921_5e-14,
    4.463_224_263_286_477_5e-13,
    -6.711_366_855_164_110_5e-12,
    9.422_759_064_650_411e-11,
    -1.229_055_530_171_792_8e-09,
    1.480_719_281_587_921_8e-08,
    -1.636_584_469_123_492_4e-07,
    1.646_211_436_588_924_8e-06,
    -1.492_565_035_840_625e-05,
    0.000_120_553_329_817_896_64,
    -0.000_854_832_702_345_085_3,
    0.005_223_977_625_442_188,
    -0.026_866_170_645_131_252,
    0.112_837_916_709_551_26,
    -0.376_126_389_031_837_54,
    // less one: x is added last
    0.128_379_167_095_512_57,
];

/// (1 + 2x) e^(x²) erfc(x) for x ≥ 1/2 in Chebyshev polynomials of (x - 4)/(x + 3), the lowest first.
const SCALED: [f64; 25] = [
    1.213_117_720_927_174_8,
    -0.072_254_736_465_635_42,
    -0.026_321_892_764_591_84,
    0.019_186_588_533_428_105,
    -0.006_682_350_310_928_109,
    0.001_552_284_705_057_551_8,
    -0.000_235_716_583_481_548_74,
    1.569_056_220_513_528_7e-05,
    2.153_875_719_667_213e-06,
    -6.012_574_627_859_35e-07,
    1.385_495_032_370_355_8e-08,
    1.357_581_448_492_630_3e-08,
    -1.307_097_209_882_768_8e-09,
    -3.063_733_276_160_523e-10,
    5.062_873_788_887_726e-11,
    8.050_230_198_284_556e-12,
    -1.749_874_795_845_226_1e-12,
    -2.636_574_355_051_721e-13,
    5.909_957_850_047_49e-14,
    1.054_896_926_488_424_4e-14,
    -1.923_530_641_576_764_3e-15,
    -4.764_316_588_475_501e-16,
    5.497_082_928_350_934_3e-17,
    2.233_862_089_883_170_7e-17,
    -1.004_068_529_096_801e-18,
];

/// The sum of Chebyshev polynomials with these coefficients, the lowest first (Clenshaw's way).
fn chebyshev<'c>(x: X<'c>, coefficients: &[f64]) -> X<'c> {
    let zero = x.code.number(x.dtype(), 0.0);
    let (mut next, mut after) = (zero, zero);
    for &c in coefficients[1..].iter().rev() {
        (next, after) = (x * 2.0 * next - after + c, next);
    }
    x * next - after + coefficients[0]
}

/// |x| with the sign of another.
pub(super) fn signed_as<'c>(x: X<'c>, sign: X<'c>) -> X<'c> {
    // The bits tell -0 from 0.
    let integer = if x.dtype() == DType::F64 { DType::I64 } else { DType::I32 };
    sign.bits(integer).lt(0i64).pick(-x.abs(), x.abs())
}

/// erf(x) for |x| ≤ 1.
fn small(x: X<'_>) -> X<'_> {
    (x * x).polynomial(&SERIES) * x + x
}

/// erfc(a) for a ≥ 1/2.
fn upper(a: X<'_>) -> X<'_> {
    // Beyond this everything vanishes, and infinity would meet itself.
    let a = a.min(40.0);
    let scaled = chebyshev((a - 4.0) / (a + 3.0), &SCALED) / (a * 2.0 + 1.0);
    // The square of the first digits is exact.
    let mask = a.code.scalar(ferrax_base::Scalar::from_i64(DType::I64, !0 << 27));
    let head = (a.bits(DType::I64) & mask).bits(DType::F64);
    let rest = (head - a) * (a + head);
    // What is left is below 1e-4. Compilers would make one exponential of two that are multiplied.
    let factor = rest.polynomial(&[1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0]) * rest + 1.0;
    (-(head * head)).exp() * factor * scaled
}

/// erf(x) in double precision.
pub(super) fn erf(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let large = signed_as(1.0.less(upper(a.max(0.5))), x);
    a.lt(1.0).pick(small(x), large)
}

/// erfc(x) in double precision.
pub(super) fn erfc(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let tail = upper(a.max(0.5));
    let far = x.lt(0.0).pick(2.0.less(tail), tail);
    a.lt(0.5).pick(1.0.less(small(x)), far)
}

/// erf(x) of f32: x times a polynomial in x² up to 1, then 1 - e^polynomial.
pub(super) fn erf_single(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let near = (x * x).polynomial(&ERF_NEAR) * x + x;
    let exponent = a.min(4.0).polynomial(&ERF_FAR);
    a.lt(1.0).pick(near, signed_as(1.0.less(exponent.exp()), x))
}

/// erf⁻¹(x)/x to single precision as a function of w = -ln(1 - x²).
fn giles(w: X<'_>) -> X<'_> {
    let central = (w - 2.5).polynomial(&ERF_INV_CENTRAL);
    let tail = (w.sqrt() - 3.0).polynomial(&ERF_INV_TAIL);
    w.lt(5.0).pick(central, tail)
}

/// erf⁻¹(x) of f32.
pub(super) fn erf_inv_single(x: X<'_>) -> X<'_> {
    let y = giles(-(-(x * x)).ln_1p()) * x;
    x.abs().eq(1.0).pick(x * f64::INFINITY, y)
}

/// erf⁻¹(x) in double precision.
pub(super) fn erf_inv(x: X<'_>) -> X<'_> {
    let a = x.abs();
    let sign = x.lt(0.0).pick(x.code.number(x.dtype(), -1.0), 1.0);
    let mut y = giles(-(-(x * x)).ln_1p()) * x;
    for _ in 0..2 {
        // Near ±1 the complementary function keeps the residual's digits.
        let size = y.abs();
        let tail = (1.0.less(a) - upper(size.max(0.5))) * sign;
        let residual = size.lt(0.5).pick(small(y) - x, tail);
        let slope = (-(y * y)).exp() * FRAC_2_SQRT_PI;
        let step = residual / slope;
        y = y - step / (y * step + 1.0);
    }
    let edge = a.eq(1.0).pick(x * f64::INFINITY, x.code.number(x.dtype(), f64::NAN));
    x.eq(0.0).pick(x, a.lt(1.0).pick(y, edge))
}
