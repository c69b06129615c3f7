//! Tangent and the inverse trigonometric functions, written so that loops over them vectorize.
//!
//! They are in double precision, with all digits (`D`) or with those that single precision needs; `F` says whether
//! multiply-add is fused. Polynomials are minimax on the intervals that their comments name.

use super::double::{circle, horner};
use crate::simd::fma64 as fma;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// π/2 less the f64 `FRAC_PI_2`.
const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;

/// (asin √z / √z - 1)/z for z up to 1/4.
const ASIN: [f64; 13] = [
    0.028_757_851_367_421_566,
    -0.014_851_887_071_247_204,
    0.017_400_879_442_694_02,
    0.005_457_506_718_640_358,
    0.010_322_814_350_185_78,
    0.011_479_177_415_184_906,
    0.013_971_212_973_552_933,
    0.017_352_392_720_869_973,
    0.022_372_172_942_149_89,
    0.030_381_944_138_531_247,
    0.044_642_857_146_355_43,
    0.074_999_999_999_984_33,
    0.166_666_666_666_666_69,
];

/// The same to what single precision needs.
const ASIN_SHORT: [f64; 6] = [
    0.033_690_847_202_830_12,
    0.017_149_238_357_677_253,
    0.031_100_662_735_494_57,
    0.044_599_401_528_512_18,
    0.075_000_945_434_974_24,
    0.166_666_663_374_309_08,
];

/// (atan √z / √z - 1)/z for z up to tan²(π/8).
const ATAN: [f64; 12] = [
    0.016_285_756_855_221_028,
    -0.034_570_561_981_427_744,
    0.045_515_932_206_265_49,
    -0.052_304_542_706_502_44,
    0.058_789_289_978_347_75,
    -0.066_664_248_857_382_55,
    0.076_922_963_750_321_43,
    -0.090_909_087_535_008_77,
    0.111_111_111_051_554_47,
    -0.142_857_142_856_598_28,
    0.199_999_999_999_998_04,
    -0.333_333_333_333_333_3,
];

/// The same to what single precision needs.
const ATAN_SHORT: [f64; 6] = [
    0.050_481_385_120_797_445,
    -0.086_246_761_452_494_94,
    0.110_713_650_218_847_94,
    -0.142_841_511_936_286_14,
    0.199_999_772_586_883_87,
    -0.333_333_332_792_548,
];

/// z times the series of the inverse sine.
#[inline(always)]
fn asin_tail<const F: bool, const D: bool>(z: f64) -> f64 {
    z * if D { horner::<F, _>(&ASIN, z) } else { horner::<F, _>(&ASIN_SHORT, z) }
}

/// t and asin t - t, for t = |x| up to 1/2 and √((1 - |x|)/2) beyond; whether it is beyond.
#[inline(always)]
fn half_arc<const F: bool, const D: bool>(x: f64) -> (f64, f64, bool) {
    let a = x.abs();
    let far = a > 0.5;
    let z = if far { 0.5 * (1.0 - a) } else { a * a };
    let t = if far { z.sqrt() } else { a };
    (t, t * asin_tail::<F, D>(z), far)
}

/// Inverse sine.
#[inline(always)]
pub fn asin<const F: bool, const D: bool>(x: f64) -> f64 {
    let (t, tail, far) = half_arc::<F, D>(x);
    // π/2 - 2t, and what is rounded of it.
    let rest = FRAC_PI_2 - 2.0 * t;
    let lost = (FRAC_PI_2 - rest) - 2.0 * t;
    let y = if far { rest + (lost + (FRAC_PI_2_REST - 2.0 * tail)) } else { t + tail };
    y.copysign(x)
}

/// Inverse cosine.
#[inline(always)]
pub fn acos<const F: bool, const D: bool>(x: f64) -> f64 {
    let (t, tail, far) = half_arc::<F, D>(x);
    let twice = 2.0 * (t + tail);
    let far_value = if x < 0.0 { PI - (twice - 2.0 * FRAC_PI_2_REST) } else { twice };
    if far { far_value } else { FRAC_PI_2 - ((t + tail).copysign(x) - FRAC_PI_2_REST) }
}

/// The angle of (d, n) for n, d ≥ 0: of the angle to 0, π/4 or π/2, whichever is nearest, and that.
#[inline(always)]
fn first_quadrant<const F: bool, const D: bool>(n: f64, d: f64) -> f64 {
    /// tan(π/8)
    const STEEP: f64 = 0.414_213_562_373_095_05;
    let (flat, steep) = (n <= STEEP * d, d <= STEEP * n);
    let top = if flat {
        n
    } else if steep {
        -d
    } else {
        n - d
    };
    let bottom = if flat {
        d
    } else if steep {
        n
    } else {
        n + d
    };
    let base = if flat {
        0.0
    } else if steep {
        FRAC_PI_2
    } else {
        FRAC_PI_4
    };
    let rest = if flat {
        0.0
    } else if steep {
        FRAC_PI_2_REST
    } else {
        0.5 * FRAC_PI_2_REST
    };
    let t = top / bottom;
    let z = t * t;
    let p = if D { horner::<F, _>(&ATAN, z) } else { horner::<F, _>(&ATAN_SHORT, z) };
    base + (fma::<F>(z * p, t, rest) + t)
}

/// Inverse tangent.
#[inline(always)]
pub fn atan<const F: bool, const D: bool>(x: f64) -> f64 {
    let a = x.abs();
    let y =
        first_quadrant::<F, D>(if a == f64::INFINITY { 1.0 } else { a }, if a == f64::INFINITY { 0.0 } else { 1.0 });
    y.copysign(x)
}

/// Angle of the point (x, y).
#[inline(always)]
pub fn atan2<const F: bool, const D: bool>(y: f64, x: f64) -> f64 {
    let (n, d) = (y.abs(), x.abs());
    let most = if n > d { n } else { d };
    // Sums of the largest numbers are in range after this, and quotients of the smallest exact.
    let scale = if most > 1e300 {
        1e-10
    } else if most < 1e-280 {
        1e200
    } else {
        1.0
    };
    let endless = (n == f64::INFINITY) & (d == f64::INFINITY);
    let none = (n == 0.0) & (d == 0.0);
    let n = if endless { 1.0 } else { n * scale };
    let d = if endless | none { 1.0 } else { d * scale };
    let angle = first_quadrant::<F, D>(n, d);
    let angle = if x.is_sign_negative() { PI - (angle - 2.0 * FRAC_PI_2_REST) } else { angle };
    // A NaN in x would be lost where y decides.
    if x.is_nan() { x } else { angle.copysign(y) }
}

/// |x| up to which the tangent of a tile is reduced in three steps of fused multiply-add.
pub const NEAR: f64 = 1e6;

/// Tangent of a number up to `NEAR` in size.
#[inline(always)]
pub fn tan<const F: bool>(x: f64) -> f64 {
    let ([s, c], [s_low, c_low], q) = circle::<F>(x.abs());
    let turned = q & 1 == 1;
    let (top, top_low) = if turned { (-c, -c_low) } else { (s, s_low) };
    let (bottom, bottom_low) = if turned { (s, s_low) } else { (c, c_low) };
    // The quotient, and what the quotient and the parts of it round.
    let inverse = 1.0 / bottom;
    let y = top * inverse;
    let rest = fma::<F>(-y, bottom, top) + fma::<F>(-y, bottom_low, top_low);
    let y = fma::<F>(rest, inverse, y);
    f64::from_bits(y.to_bits() ^ (x.to_bits() & 1 << 63))
}

/// The tangent of a tile in this precision: all lanes, then the few large arguments again.
macro_rules! tan_tile {
    ($T:ident) => {
        /// Tangent of a tile.
        ///
        /// # Safety
        /// None; it is called like functions that have some.
        #[inline(always)]
        pub unsafe fn tan_all<const F: bool, const W: bool, const N: usize>(x: &[$T; N], o: &mut [$T; N]) {
            use $crate::math::arcs::{NEAR, tan};
            // Without fused multiply-add nothing is reduced exactly.
            let mut far = !F;
            for i in 0..N {
                o[i] = tan::<F>(f64::from(x[i])) as $T;
                far |= f64::from(x[i]).abs() > NEAR;
            }
            if far {
                for i in 0..N {
                    if !F || f64::from(x[i]).abs() > NEAR {
                        o[i] = f64::from(x[i]).tan() as $T;
                    }
                }
            }
        }
    };
}
pub(super) use tan_tile;
