//! Real functions of f64, under the names that they have in `single`, so that kernels are written once for both. All
//! vectorize; `arcs`, `powers`, `hyperbolic`, `errors`, `bessel`, `gamma` and `incomplete` have those that both precisions share. Those that end in
//! `_all` take a tile, because they look up tables or have rare cases.
//!
//! Sources: Tang ("Table-driven implementation of the exponential function") for e^x and tanh, with minimax
//! polynomials; Taylor's polynomial for 2^x and e^x - 1; Cody and Waite for the reductions; FreeBSD's `e_log.c`
//! (Sun Microsystems, 1993) for the logarithm.

pub use super::errors::{erf, erf_inv};
pub use super::hyperbolic::{cosh, sinh};
pub use super::powers::rem_all;
use crate::math::{arcs, bessel, errors, gamma, hyperbolic, incomplete, powers, special};
use crate::simd::fma64 as fma;

/// Adding and subtracting this rounds to an integer, whose bits are then the low mantissa bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts, of which multiples of the first by exponents are exact.
pub(super) const LN2_HI: f64 = 6.931_471_803_691_238_164_90e-1;
pub(super) const LN2_LO: f64 = 1.908_214_929_270_587_700_02e-10;

/// 2^n for an integer n in the normal range; garbage in, garbage out.
#[inline(always)]
fn pow2(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}

/// `p * 2^n` for n in -1100..=1024, rounded once.
#[inline(always)]
pub(super) fn scale(p: f64, n: i64) -> f64 {
    // A shift without a sign, of a number that is none: AVX2 has no other for 8 bytes.
    let half = ((n.wrapping_add(4096) as u64) >> 1) as i64 - 2048;
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

#[inline(always)]
pub(super) fn clamp(x: f64, lo: f64, hi: f64) -> f64 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// A polynomial with these coefficients, the highest power first.
#[inline(always)]
pub(super) fn horner<const F: bool, const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut p = coefficients[0];
    for c in &coefficients[1..] {
        p = fma::<F>(p, x, *c);
    }
    p
}

/// Taylor's coefficients of (e^r - 1 - r)/r².
const EXP_TAIL: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// exp(r) - 1 - r over r², for |r| ≤ ln(2)/2; where `D` is false, to 2^-28 of e^r.
#[inline(always)]
pub(super) fn exp_tail<const F: bool, const D: bool>(r: f64) -> f64 {
    if D {
        return horner::<F, _>(&EXP_TAIL, r);
    }
    horner::<F, _>(const { &EXP_TAIL.split_at(5).1.as_chunks::<7>().0[0] }, r)
}

/// Splits x = n ln 2 + r; n is given twice.
#[inline(always)]
pub(super) fn split_ln2<const F: bool>(x: f64) -> (i64, f64, f64) {
    let shifted = fma::<F>(x, std::f64::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<F>(n, -LN2_LO, fma::<F>(n, -LN2_HI, x));
    ((shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64), n, r)
}

/// 2^x.
#[inline(always)]
pub fn exp2<const F: bool>(x: f64) -> f64 {
    let x = clamp(x, -1076.0, 1024.0);
    let shifted = x + ROUND;
    let r = (x - (shifted - ROUND)) * std::f64::consts::LN_2;
    let n = (shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    scale(fma::<F>(exp_tail::<F, true>(r), r * r, r) + 1.0, n)
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<const F: bool>(x: f64) -> f64 {
    let (n, _, r) = split_ln2::<F>(clamp(x, -80.0, 709.8));
    let half = pow2(n.wrapping_sub(1));
    let p = fma::<F>(exp_tail::<F, true>(r), r * r, r);
    let y = fma::<F>(half, p, half - 0.5) * 2.0;
    // Below the last bit of 1 + x the result is x, subnormal numbers included.
    if x.abs() < 1e-17 { x } else { y }
}

/// e^x / 2 for x from 0 on.
#[inline(always)]
pub(super) fn halved_exp<const F: bool>(x: f64) -> f64 {
    let (n, _, r) = split_ln2::<F>(clamp(x, 0.0, 711.0));
    scale(fma::<F>(exp_tail::<F, true>(r), r * r, r) + 1.0, n.wrapping_sub(1))
}

/// e^-x for x from 0 to 700.
#[inline(always)]
pub(super) fn exp_of_minus<const F: bool, const D: bool>(x: f64) -> f64 {
    let (n, _, r) = split_ln2::<F>(-x);
    (fma::<F>(exp_tail::<F, D>(r), r * r, r) + 1.0) * pow2(n)
}

/// x = 2^e m with m from √½ to √2.
#[inline(always)]
pub(super) fn mantissa(x: f64) -> (f64, f64) {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    // From √½ on the exponent is one more; shifts are without a sign, as AVX2's are.
    let (bits, exponent) = (scaled.to_bits(), 0x7ff << 52);
    let shifted = bits.wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
    let m = f64::from_bits(bits.wrapping_sub(shifted & exponent).wrapping_add(1023 << 52));
    // An integer of a few bits, as a float.
    let e = f64::from_bits(ROUND.to_bits().wrapping_add(shifted >> 52)) - (ROUND + 1023.0);
    (e - if tiny { 54.0 } else { 0.0 }, m)
}

/// 2^-e for an e from `mantissa`, of at most 1022 in size.
#[inline(always)]
pub(super) fn inverse_power(e: f64) -> f64 {
    f64::from_bits((ROUND + 1023.0 - e).to_bits() << 52)
}

/// ln x.
#[inline(always)]
pub fn log<const F: bool>(x: f64) -> f64 {
    let (e, m) = mantissa(x);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut p = 1.479_819_860_511_658_591e-1;
    for c in [
        1.531_383_769_920_937_332e-1,
        1.818_357_216_161_805_012e-1,
        2.222_219_843_214_978_396e-1,
        2.857_142_874_366_239_149e-1,
        3.999_999_999_940_941_908e-1,
        6.666_666_666_666_735_130e-1,
    ] {
        p = fma::<F>(p, z, c);
    }
    let half = 0.5 * f * f;
    let y = fma::<F>(s, fma::<F>(p, z, half), e * LN2_LO);
    let y = fma::<F>(e, LN2_HI, f - (half - y));
    let y = if x == f64::INFINITY { x } else { y };
    let y = if x > 0.0 { y } else { f64::NAN };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// The bits of 2^(j/16), less j << 48: adding n << 48 for n = 16k + j makes them those of 2^(n/16).
static POWERS: [u64; 16] = [
    0x3ff0_0000_0000_0000,
    0x3fef_b558_6cf9_890f,
    0x3fef_72b8_3c7d_517b,
    0x3fef_387a_6e75_6238,
    0x3fef_06fe_0a31_b715,
    0x3fee_dea6_4c12_3422,
    0x3fee_bfda_d536_2a27,
    0x3fee_ab07_dd48_5429,
    0x3fee_a09e_667f_3bcd,
    0x3fee_a114_73eb_0187,
    0x3fee_ace5_422a_a0db,
    0x3fee_c491_82a3_f090,
    0x3fee_e89f_995a_d3ad,
    0x3fef_199b_dd85_529c,
    0x3fef_5818_dcfb_a487,
    0x3fef_a4af_a2a4_90da,
];

/// The bits of the relative error of each entry of `POWERS`.
static REST: [u64; 16] = rest();

const fn rest() -> [u64; 16] {
    let errors: [f64; 16] = [
        0.0,
        8.189_317_638_195_514e-17,
        -2.793_911_485_951_573_3e-17,
        7.826_573_258_636_075e-17,
        3.348_462_333_625_152_4e-17,
        3.750_854_201_303_126_6e-17,
        1.957_258_529_311_203_6e-17,
        5.686_480_957_911_74e-17,
        -6.835_808_657_661_923e-17,
        -2.359_109_477_085_005_3e-17,
        5.154_830_117_078_678_3e-17,
        1.534_141_005_360_372_3e-17,
        4.875_160_526_227_061e-17,
        1.685_487_290_628_973e-17,
        1.790_126_907_604_513e-17,
        -5.545_065_618_639_427_4e-17,
    ];
    let mut bits = [0; 16];
    let mut j = 0;
    while j < 16 {
        bits[j] = errors[j].to_bits();
        j += 1;
    }
    bits
}

const SIXTEENTHS: f64 = 23.083_120_654_223_414;
/// ln(2)/16 in two parts, of which multiples of the first are exact.
const STEP_HI: f64 = 4.332_169_878_489_367e-2;
const STEP_LO: f64 = 1.029_121_848_931_067_1e-13;
/// ln(2)/16, and what is missing: for multiply-add that is fused.
const STEP: f64 = 4.332_169_878_499_658e-2;
const STEP_REST: f64 = 1.449_404_258_653_937_3e-18;

/// Entry n mod 16 of a table for every lane; `W` has the table in two registers. Nothing that may be called is handed its
/// result's address, which handlers hold: they end in calls of others.
///
/// # Safety
/// `W` only where the machine has AVX-512.
#[inline(always)]
unsafe fn look_up<const W: bool, const N: usize>(table: &[u64; 16], n: &[u64; N]) -> [u64; N] {
    let mut found = [0; N];
    #[cfg(target_arch = "x86_64")]
    if W {
        use core::arch::x86_64::{_mm512_loadu_si512, _mm512_permutex2var_epi64, _mm512_storeu_si512};
        // SAFETY: the table has 16 entries, and each chunk 8 lanes.
        unsafe {
            let (low, high) =
                (_mm512_loadu_si512(table.as_ptr().cast()), _mm512_loadu_si512(table.as_ptr().add(8).cast()));
            for lane in (0..N / 8 * 8).step_by(8) {
                let at = _mm512_loadu_si512(n.as_ptr().add(lane).cast());
                let entries = _mm512_permutex2var_epi64(low, at, high);
                _mm512_storeu_si512(found.as_mut_ptr().add(lane).cast(), entries);
            }
        }
        return found;
    }
    for lane in 0..N {
        found[lane] = table[(n[lane] & 15) as usize];
    }
    found
}

/// e^r - 1 for |r| ≤ ln(2)/32, plus a much smaller `rest`.
#[inline(always)]
fn small_expm1<const F: bool>(r: f64, rest: f64) -> f64 {
    let mut p = 1.984_143_237_404_687_3e-4;
    for c in [
        1.388_909_308_379_296_5e-3,
        8.333_333_333_102_466e-3,
        4.166_666_666_186_329e-2,
        0.166_666_666_666_666_69,
        0.500_000_000_000_000_3,
    ] {
        p = fma::<F>(p, r, c);
    }
    fma::<F>(p, r * r, rest) + r
}

/// Splits x = n ln(2)/16 + r; n is in the low bits of the first.
#[inline(always)]
fn split_step<const F: bool>(x: f64) -> (u64, f64) {
    let shifted = fma::<F>(x, SIXTEENTHS, ROUND);
    let n = shifted - ROUND;
    (shifted.to_bits(), fma::<F>(n, -STEP_LO, fma::<F>(n, -STEP_HI, x)))
}

/// |x| up to which e^x is a normal number.
const NORMAL: f64 = 708.0;
/// From here down e^x is 0.
const NOTHING: f64 = -746.0;

/// e^x of any x, with the bits that `exp_all` finds up to `NORMAL`.
#[inline(always)]
fn far_exp<const F: bool>(x: f64) -> f64 {
    let (n, r) = split_step::<F>(clamp(x, NOTHING, 709.8));
    let j = n & 15;
    let power = f64::from_bits(POWERS[j as usize].wrapping_add(j << 48));
    let y = fma::<F>(power, small_expm1::<F>(r, f64::from_bits(REST[j as usize])), power);
    scale(y, (n.wrapping_sub(ROUND.to_bits()) as i64) >> 4)
}

/// e^x of a tile: 2^(n/16) from a table times e^r.
///
/// # Safety
/// `W` only where the machine has AVX-512.
#[inline(always)]
pub unsafe fn exp_all<const F: bool, const W: bool, const N: usize>(x: &[f64; N], o: &mut [f64; N]) {
    let mut n = [0; N];
    for i in 0..N {
        n[i] = split_step::<F>(x[i]).0;
    }
    // SAFETY: the caller's contract.
    let (power, rest) = unsafe { (look_up::<W, N>(&POWERS, &n), look_up::<W, N>(&REST, &n)) };
    let mut far = false;
    for i in 0..N {
        let (n, r) = split_step::<F>(x[i]);
        let power = f64::from_bits(power[i].wrapping_add(n << 48));
        let (nothing, y) = (x[i] <= NOTHING, fma::<F>(power, small_expm1::<F>(r, f64::from_bits(rest[i])), power));
        o[i] = if nothing { 0.0 } else { y };
        // As bits, NaN is far too.
        far |= !nothing & (x[i].abs().to_bits() > NORMAL.to_bits());
    }
    if far {
        for i in 0..N {
            o[i] = far_exp::<F>(x[i]);
        }
    }
}
super::logistic_tile!(f64, far_exp);

/// Hyperbolic tangent of a tile; at most 1 in magnitude: u / (u + 1) for u = (e^2|x| - 1) / 2, which is 1 from 19.1 on.
///
/// # Safety
/// `W` only where the machine has AVX-512.
#[inline(always)]
pub unsafe fn tanh_all<const F: bool, const W: bool, const N: usize>(x: &[f64; N], o: &mut [f64; N]) {
    // 16 more in the low bits halves the powers.
    const HALVES: f64 = ROUND - 16.0;
    let twice = |x: f64| {
        let a = x.abs();
        let a = if a > 19.1 { 19.1 } else { a };
        a + a
    };
    let mut n = [0; N];
    for i in 0..N {
        n[i] = fma::<F>(twice(x[i]), SIXTEENTHS, HALVES).to_bits();
    }
    // SAFETY: the caller's contract.
    let (power, rest) = unsafe { (look_up::<W, N>(&POWERS, &n), look_up::<W, N>(&REST, &n)) };
    for i in 0..N {
        let (twice, rest) = (twice(x[i]), f64::from_bits(rest[i]));
        let shifted = fma::<F>(twice, SIXTEENTHS, HALVES);
        let n = shifted - HALVES;
        // Where it counts, for small n, the first is exact.
        let (r, rest) = if F {
            (fma::<F>(n, -STEP, twice), fma::<F>(n, -STEP_REST, rest))
        } else {
            (twice - n * STEP_HI - n * STEP_LO, rest)
        };
        let half = f64::from_bits(power[i].wrapping_add(shifted.to_bits() << 48));
        let u = fma::<F>(half, small_expm1::<F>(r, rest), half - 0.5);
        let y = u / (u + 1.0);
        // What the sum and the quotient round counts little in a small difference.
        let near = fma::<F>(-u, y, u);
        o[i] = if u < 0.5 { near } else { y }.copysign(x[i]);
    }
}

/// |x| up to which sine and cosine are reduced in three steps of fused multiply-add.
const NEAR: f64 = 1e6;

/// Sine and cosine of what is left of 0 ≤ a ≤ `NEAR` by multiples of π/2, what they round, and how many multiples those
/// are, in the low bits.
#[inline(always)]
pub(super) fn circle<const F: bool>(a: f64) -> ([f64; 2], [f64; 2], u64) {
    let shifted = fma::<F>(a, std::f64::consts::FRAC_2_PI, ROUND);
    let n = shifted - ROUND;
    // The first difference is exact, and so are multiples of the second part of π/2, which has 33 bits.
    let whole = fma::<F>(n, -std::f64::consts::FRAC_PI_2, a);
    let hi = fma::<F>(n, -6.123_233_995_384_61e-17, whole);
    let lo = fma::<F>(n, -3.521_559_865_183_2e-27, fma::<F>(n, -6.123_233_995_384_61e-17, whole - hi));
    let z = hi * hi;
    let mut s = 1.589_650_498_315_140_8e-10;
    for c in [
        -2.505_075_326_451_128e-8,
        2.755_731_366_205_179_5e-6,
        -1.984_126_982_972_516_4e-4,
        8.333_333_333_322_314e-3,
        -0.166_666_666_666_666_32,
    ] {
        s = fma::<F>(s, z, c);
    }
    let mut c = -1.135_944_892_648_287_3e-11;
    for k in [
        2.087_571_956_373_35e-9,
        -2.755_731_432_607_080_5e-7,
        2.480_158_728_939_508_2e-5,
        -1.388_888_888_887_399e-3,
        4.166_666_666_666_66e-2,
    ] {
        c = fma::<F>(c, z, k);
    }
    let small = fma::<F>(s * z, hi, lo);
    let s = small + hi;
    // 1 - z/2, and what it rounds.
    let top = fma::<F>(-0.5, z, 1.0);
    let rest = fma::<F>(-0.5, z, 1.0 - top);
    let rest = fma::<F>(c * z, z, fma::<F>(-hi, lo, rest));
    let c = rest + top;
    ([s, c], [(hi - s) + small, (top - c) + rest], shifted.to_bits())
}

/// sin(a + shift·π/2) for 0 ≤ a ≤ `NEAR`, but for the sign, which is the last bit but one of the second.
#[inline(always)]
fn quadrant<const F: bool>(a: f64, shift: u64) -> (f64, u64) {
    let ([s, c], _, q) = circle::<F>(a);
    let q = q.wrapping_add(shift);
    (if q & 1 == 0 { s } else { c }, q)
}
super::trig_tile!(f64, u64, sin_all, 0, f64::sin);
super::trig_tile!(f64, u64, cos_all, 1, f64::cos);

macro_rules! all_digits {
    ($($(#[$doc:meta])* $name:ident = $m:ident::$f:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<const F: bool>(x: f64) -> f64 {
                $m::$f::<F, true>(x)
            }
        )*
    };
}
all_digits! {
    /// ln(1 + x).
    log1p = powers::log1p;
    /// Cube root.
    cbrt = powers::cbrt;
    /// Inverse sine.
    asin = arcs::asin;
    /// Inverse cosine.
    acos = arcs::acos;
    /// Inverse tangent.
    atan = arcs::atan;
    /// Inverse hyperbolic sine.
    asinh = hyperbolic::asinh;
    /// Inverse hyperbolic cosine.
    acosh = hyperbolic::acosh;
    /// Inverse hyperbolic tangent.
    atanh = hyperbolic::atanh;
    /// Complementary error function.
    erfc = errors::erfc;
    /// e^-|x| I₀(x).
    bessel_i0e = bessel::i0e;
    /// e^-|x| I₁(x).
    bessel_i1e = bessel::i1e;
}
arcs::tan_tile!(f64);
gamma::gamma_tiles!(f64, true);
incomplete::pair_tiles! { f64:
    /// Regularized lower incomplete gamma function of a tile.
    igamma_all<F>(a, x) = std::array::from_fn(|i| special::igamma(a[i], x[i]));
    /// Regularized upper incomplete gamma function of a tile.
    igammac_all<F>(a, x) = std::array::from_fn(|i| special::igammac(a[i], x[i]));
    /// Hurwitz's zeta function of a tile.
    zeta_all<F>(x, q) = incomplete::zeta::<F, true>(&x, &q);
    /// Derivatives of digamma of a tile, of orders x.
    polygamma_all<F>(n, x) = incomplete::polygamma::<F, true>(&n, &x);
}

/// x to the power y.
#[inline(always)]
pub fn pow<const F: bool>(x: f64, y: f64) -> f64 {
    powers::pow::<F, true>(x, y)
}
powers::power_tile!(f64);

/// Angle of the point (x, y).
#[inline(always)]
pub fn atan2<const F: bool>(y: f64, x: f64) -> f64 {
    arcs::atan2::<F, true>(y, x)
}

/// Nearest integer, ties away from zero.
#[inline(always)]
pub fn round_away(x: f64) -> f64 {
    let t = x.trunc();
    t + if (x - t).abs() >= 0.5 { 1f64.copysign(x) } else { 0f64.copysign(x) }
}

/// Larger of two; NaN wins, and +0 is larger than -0.
#[inline(always)]
pub fn max(x: f64, y: f64) -> f64 {
    let m = if x > y || x.is_nan() { x } else { y };
    if x == y { f64::from_bits(x.to_bits() & y.to_bits()) } else { m }
}

/// Smaller of two; NaN wins, and -0 is smaller than +0.
#[inline(always)]
pub fn min(x: f64, y: f64) -> f64 {
    let m = if x < y || x.is_nan() { x } else { y };
    if x == y { f64::from_bits(x.to_bits() | y.to_bits()) } else { m }
}

/// The float after x in y's direction.
#[inline(always)]
pub fn nextafter(x: f64, y: f64) -> f64 {
    let away = (y > x) == (x > 0.0);
    let bits = x.to_bits().wrapping_add(if away { 1 } else { u64::MAX });
    let next = f64::from_bits(if x == 0.0 { 1 | (y.to_bits() & 1 << 63) } else { bits });
    let next = if x == y { y } else { next };
    if x.is_nan() | y.is_nan() { f64::NAN } else { next }
}

/// An integer that orders like IEEE's total order.
#[inline(always)]
pub fn total_key(x: f64) -> i64 {
    let b = x.to_bits() as i64;
    b ^ ((b >> 63) as u64 >> 1) as i64
}

/// Rounds to a float of `p & 0xffff_ffff` exponent bits and `p >> 32` mantissa bits.
#[inline(always)]
pub fn reduce_precision(x: f64, p: u64) -> f64 {
    let (exponent, mantissa) = (p as u32, (p >> 32) as u32);
    if x.is_nan() {
        return x;
    }
    let mut bits = x.to_bits();
    if mantissa < 52 {
        let drop = 52 - mantissa;
        let last = (bits >> drop) & 1;
        bits = bits.wrapping_add((1 << (drop - 1)) - 1 + last) & !((1 << drop) - 1);
    }
    if exponent < 11 {
        let bias = (1i32 << (exponent - 1)) - 1;
        let e = (bits >> 52 & 0x7ff) as i32 - 1023;
        if e > bias {
            bits = (bits & 1 << 63) | 0x7ff << 52;
        } else if e <= -bias {
            bits &= 1 << 63;
        }
    }
    f64::from_bits(bits)
}
