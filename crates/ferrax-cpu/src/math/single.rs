//! Real functions of f32. Those with a `const F: bool` vectorize; `F` says whether multiply-add is fused.
//!
//! Errors stay below 2 ulp. The rest go through double precision, which rounds correctly but for rare ties.

use crate::kernel::{Kernel, fma};
use crate::math::double;

/// Adding and subtracting this rounds to an integer, whose bits are then the low mantissa bits.
const ROUND: f32 = 12_582_912.0;
const LN2_HI: f32 = 0.693_359_375;
const LN2_LO: f32 = -2.121_944_4e-4;

/// 2^n for an integer n in the normal range; garbage in, garbage out.
#[inline(always)]
fn pow2(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `p * 2^n` for n in -150..=128, rounded once.
#[inline(always)]
fn scale(p: f32, n: i32) -> f32 {
    let half = n >> 1;
    p * pow2(half) * pow2(n.wrapping_sub(half))
}

#[inline(always)]
fn clamp(x: f32, lo: f32, hi: f32) -> f32 {
    let x = if x > hi { hi } else { x };
    if x < lo { lo } else { x }
}

/// exp(r) - 1 - r over r², for |r| ≤ ln(2)/2.
#[inline(always)]
fn exp_tail<const F: bool>(r: f32) -> f32 {
    let mut p = 1.987_569_1e-4;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = fma::<F>(p, r, c);
    }
    p
}

/// Splits x = n ln 2 + r.
#[inline(always)]
fn split_ln2<const F: bool>(x: f32) -> (i32, f32) {
    let shifted = fma::<F>(x, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<F>(n, -LN2_LO, fma::<F>(n, -LN2_HI, x));
    ((shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32), r)
}

/// e^x.
#[inline(always)]
pub fn exp<const F: bool>(x: f32) -> f32 {
    let (n, r) = split_ln2::<F>(clamp(x, -104.0, 88.8));
    let p = fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0;
    scale(p, n)
}

/// 2^x.
#[inline(always)]
pub fn exp2<const F: bool>(x: f32) -> f32 {
    let x = clamp(x, -150.0, 128.0);
    let shifted = x + ROUND;
    let r = (x - (shifted - ROUND)) * std::f32::consts::LN_2;
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    scale(fma::<F>(exp_tail::<F>(r), r * r, r) + 1.0, n)
}

/// e^x - 1.
#[inline(always)]
pub fn expm1<const F: bool>(x: f32) -> f32 {
    let (n, r) = split_ln2::<F>(clamp(x, -40.0, 88.8));
    let p = fma::<F>(exp_tail::<F>(r), r * r, r);
    let half = pow2(n.wrapping_sub(1));
    let y = fma::<F>(half, p, half - 0.5) * 2.0;
    if x == 0.0 { x } else { y }
}

/// ln x.
#[inline(always)]
pub fn log<const F: bool>(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits() as i32;
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    let mut p = 7.037_683_6e-2;
    for c in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333_1e-1,
    ] {
        p = fma::<F>(p, f, c);
    }
    let z = f * f;
    let y = fma::<F>(e, LN2_LO, p * f * z);
    let y = fma::<F>(-0.5, z, y);
    let y = fma::<F>(e, LN2_HI, f + y);
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x > 0.0 { y } else { f32::NAN };
    if x == 0.0 { f32::NEG_INFINITY } else { y }
}

/// ln(1 + x).
#[inline(always)]
pub fn log1p<const F: bool>(x: f32) -> f32 {
    let u = 1.0 + x;
    let y = log::<F>(u) + (x - (u - 1.0)) / u;
    let y = if u == 1.0 || u == f32::INFINITY { x } else { y };
    if u == 0.0 { f32::NEG_INFINITY } else { y }
}

/// Hyperbolic tangent; at most 1 in magnitude.
#[inline(always)]
pub fn tanh<const F: bool>(x: f32) -> f32 {
    let z = x * x;
    let mut p = -5.704_988_7e-3;
    for c in [2.063_908_9e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328_2e-1] {
        p = fma::<F>(p, z, c);
    }
    let small = fma::<F>(p * z, x, x);
    let large = 1.0 - 2.0 / (exp::<F>(2.0 * x.abs()) + 1.0);
    if x.abs() < 0.625 { small } else { large.copysign(x) }
}

/// The inverse error function (Giles, single precision).
#[inline(always)]
pub fn erf_inv<const F: bool>(x: f32) -> f32 {
    let w = -log1p::<F>(-x * x);
    let central = w < 5.0;
    let t = if central { w - 2.5 } else { w.sqrt() - 3.0 };
    const CENTRAL: [f32; 9] = [
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
    const TAIL: [f32; 9] = [
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
    let mut p = if central { CENTRAL[0] } else { TAIL[0] };
    for i in 1..9 {
        p = fma::<F>(p, t, if central { CENTRAL[i] } else { TAIL[i] });
    }
    if x.abs() == 1.0 { x * f32::INFINITY } else { p * x }
}

/// The error function.
#[inline(always)]
pub fn erf<const F: bool>(x: f32) -> f32 {
    libm::erf(f64::from(x)) as f32
}

/// |x| up to which the double-precision range reduction of sine and cosine is exact enough.
const TRIG_LIMIT: f32 = 1e6;

/// sin(x + shift·π/2) for |x| ≤ `TRIG_LIMIT`.
#[inline(always)]
fn sine<const F: bool>(x: f32, shift: i32) -> f32 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let xd = f64::from(x);
    let shifted = xd * std::f64::consts::FRAC_2_PI + MAGIC;
    let n = shifted - MAGIC;
    let q = (shifted.to_bits() as i32).wrapping_add(shift);
    let r = (xd - n * 1.570_796_326_734_125_6) - n * 6.077_100_506_506_192e-11;
    let hi = r as f32;
    let lo = (r - f64::from(hi)) as f32;
    let z = hi * hi;
    let s = fma::<F>(fma::<F>(-1.951_529_6e-4, z, 8.332_161e-3), z, -1.666_665_5e-1);
    let s = fma::<F>(s * z, hi, lo) + hi;
    let c = fma::<F>(fma::<F>(2.443_315_7e-5, z, -1.388_731_6e-3), z, 4.166_664_6e-2);
    let c = fma::<F>(c * z, z, fma::<F>(-0.5, z, -hi * lo)) + 1.0;
    let y = if q & 1 == 0 { s } else { c };
    f32::from_bits(y.to_bits() ^ ((q as u32 & 2) << 30))
}

macro_rules! trig_kernel {
    ($name:ident, $shift:literal, $exact:path, $zero:expr) => {
        /// The loop of sine or cosine: the fast path for all, then the few large arguments again.
        pub fn $name() -> Kernel {
            #[inline(always)]
            unsafe fn body<const F: bool>(xs: *const *const u8, out: *mut u8, n: usize, _: u64) {
                // SAFETY: the caller keeps the contract of `Kernel`.
                let (x, o) = unsafe {
                    let x = std::slice::from_raw_parts((*xs).cast::<f32>(), n);
                    (x, std::slice::from_raw_parts_mut(out.cast::<f32>(), n))
                };
                let mut large = false;
                for (o, &x) in o.iter_mut().zip(x) {
                    let y = sine::<F>(x, $shift);
                    *o = if x == 0.0 { $zero(x) } else { y };
                    large |= x.abs() > TRIG_LIMIT;
                }
                if large {
                    for (o, &x) in o.iter_mut().zip(x) {
                        if x.abs() > TRIG_LIMIT {
                            *o = $exact(f64::from(x)) as f32;
                        }
                    }
                }
            }
            crate::kernel::variants!(body)
        }
    };
}
trig_kernel!(sin_kernel, 0, f64::sin, std::convert::identity);
trig_kernel!(cos_kernel, 1, f64::cos, |_| 1.0);

macro_rules! through_double {
    ($($(#[$doc:meta])* $name:ident = $f:path;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(x: f32) -> f32 {
                $f(f64::from(x)) as f32
            }
        )*
    };
}
through_double! {
    /// Cube root.
    cbrt = f64::cbrt;
    /// Tangent.
    tan = f64::tan;
    /// Inverse sine.
    asin = f64::asin;
    /// Inverse cosine.
    acos = f64::acos;
    /// Inverse tangent.
    atan = f64::atan;
    /// Hyperbolic sine.
    sinh = f64::sinh;
    /// Hyperbolic cosine.
    cosh = f64::cosh;
    /// Inverse hyperbolic sine.
    asinh = double::asinh;
    /// Inverse hyperbolic cosine.
    acosh = double::acosh;
    /// Inverse hyperbolic tangent.
    atanh = double::atanh;
    /// Complementary error function.
    erfc = libm::erfc;
}

/// Nearest integer, ties away from zero.
#[inline(always)]
pub fn round_away(x: f32) -> f32 {
    let t = x.trunc();
    t + if (x - t).abs() >= 0.5 { 1f32.copysign(x) } else { 0f32.copysign(x) }
}

/// x to the power y.
pub fn pow(x: f32, y: f32) -> f32 {
    f64::from(x).powf(f64::from(y)) as f32
}

/// Angle of the point (x, y).
pub fn atan2(y: f32, x: f32) -> f32 {
    f64::from(y).atan2(f64::from(x)) as f32
}

/// Larger of two; NaN wins, and +0 is larger than -0.
#[inline(always)]
pub fn max(x: f32, y: f32) -> f32 {
    let m = if x > y || x.is_nan() { x } else { y };
    if x == y { f32::from_bits(x.to_bits() & y.to_bits()) } else { m }
}

/// Smaller of two; NaN wins, and -0 is smaller than +0.
#[inline(always)]
pub fn min(x: f32, y: f32) -> f32 {
    let m = if x < y || x.is_nan() { x } else { y };
    if x == y { f32::from_bits(x.to_bits() | y.to_bits()) } else { m }
}

/// The float after x in y's direction.
pub fn nextafter(x: f32, y: f32) -> f32 {
    libm::nextafterf(x, y)
}

/// An integer that orders like IEEE's total order.
#[inline(always)]
pub fn total_key(x: f32) -> i32 {
    let b = x.to_bits() as i32;
    b ^ ((b >> 31) as u32 >> 1) as i32
}

/// Rounds to a float of `p & 0xffff_ffff` exponent bits and `p >> 32` mantissa bits.
#[inline(always)]
pub fn reduce_precision(x: f32, p: u64) -> f32 {
    let (exponent, mantissa) = (p as u32, (p >> 32) as u32);
    if x.is_nan() {
        return x;
    }
    let mut bits = x.to_bits();
    if mantissa < 23 {
        let drop = 23 - mantissa;
        let last = (bits >> drop) & 1;
        bits = bits.wrapping_add((1 << (drop - 1)) - 1 + last) & !((1 << drop) - 1);
    }
    if exponent < 8 {
        let bias = (1i32 << (exponent - 1)) - 1;
        let e = (bits >> 23 & 0xff) as i32 - 127;
        if e > bias {
            bits = (bits & 0x8000_0000) | 0x7f80_0000;
        } else if e <= -bias {
            bits &= 0x8000_0000;
        }
    }
    f32::from_bits(bits)
}
