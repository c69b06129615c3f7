//! The error functions in double precision, written so that loops over them vectorize.
//!
//! `D` is false for the digits that single precision needs; `F` says whether multiply-add is fused. Sources: Shepherd and
//! Laframboise ("Chebyshev approximation of (1 + 2x) exp(x²) erfc x", 1981) for the form of the complementary function, Giles
//! ("Approximating the erfinv function", 2010) for that of the inverse; polynomials are minimax.

use super::double::{exp_tail, horner, mantissa, scale, split_ln2};
use super::powers::log_near;
use crate::simd::fma64 as fma;
use std::f64::consts::FRAC_2_SQRT_PI;

/// (1 + 2x) e^(x²) erfc x as a polynomial in (x - 4)/(x + 4), for x up to 28.
const ERFC: [f64; 24] = [
    1.263_782_858_042_137e-09,
    1.868_487_385_473_519e-09,
    -1.409_198_282_255_575_5e-08,
    -1.799_947_545_903_142e-08,
    1.100_599_619_864_005_7e-07,
    7.471_952_780_500_971e-08,
    -8.254_699_744_871_162e-07,
    2.937_785_494_344_378_6e-07,
    5.709_784_760_966_506e-06,
    -1.122_204_631_666_900_5e-05,
    -2.439_924_428_312_988e-05,
    0.000_150_621_697_046_783_55,
    -0.000_199_256_684_323_891_53,
    -0.000_757_773_297_366_914_6,
    0.005_031_969_975_753_176,
    -0.016_197_734_055_994_49,
    0.037_167_515_537_770_26,
    -0.066_330_365_812_409_5,
    0.093_732_834_998_330_23,
    -0.101_039_066_036_294_59,
    0.068_097_054_254_693_23,
    0.015_379_652_102_619_558,
    -0.139_621_116_840_562_53,
    1.232_995_118_625_552_6,
];

/// The same in (x - 3)/(x + 3), for x up to 12 and what single precision needs.
const ERFC_SHORT: [f64; 11] = [
    -0.000_260_164_313_303_404_2,
    -0.000_753_347_976_678_879_3,
    0.002_022_503_501_859_528_5,
    0.002_563_253_140_142_770_4,
    -0.023_810_092_771_728_776,
    0.068_293_130_598_678_97,
    -0.119_268_899_689_325_4,
    0.129_647_033_346_657_14,
    -0.047_562_501_642_495_35,
    -0.135_621_165_797_478_52,
    1.253_008_059_885_695_9,
];

/// (erf √z / √z - 2/√π)/z for z up to 1.
const ERF: [f64; 12] = [
    6.174_097_221_305_255e-11,
    -1.150_035_715_978_529_6e-09,
    1.469_248_485_913_326_3e-08,
    -1.635_511_861_087_770_5e-07,
    1.646_144_665_692_856_1e-06,
    -1.492_562_250_448_984_2e-05,
    0.000_120_553_322_147_162_76,
    -0.000_854_832_701_003_332_8,
    0.005_223_977_625_303_518,
    -0.026_866_170_645_123_838,
    0.112_837_916_709_551_11,
    -0.376_126_389_031_837_54,
];

/// erf⁻¹(x)/x as a polynomial in w - 25/8, for w = -ln(1 - x²) up to 25/4.
const INV_NEAR: [f64; 24] = [
    3.240_704_459_379_902e-21,
    -1.113_483_769_832_702e-21,
    -3.499_604_435_475_417_7e-19,
    1.150_022_252_066_253e-18,
    1.557_432_024_623_325e-17,
    -1.301_692_801_679_644_5e-16,
    -4.028_215_432_766_174_4e-17,
    6.596_407_712_420_834e-15,
    -4.001_237_735_091_896e-14,
    -8.118_399_443_074_353e-14,
    2.630_483_474_056_044_2e-12,
    -1.297_688_552_653_207_5e-11,
    -5.414_287_198_084_716e-11,
    1.051_218_153_980_412_6e-09,
    -4.112_660_820_023_24e-09,
    -2.907_038_226_292_726_6e-08,
    4.234_788_173_782_339e-07,
    -1.365_469_185_060_357_5e-06,
    -1.388_252_339_440_531_6e-05,
    0.000_186_734_208_024_648_37,
    -0.000_740_702_534_154_477,
    -0.006_033_670_871_427_85,
    0.240_158_182_425_588_3,
    1.653_654_562_683_102_7,
];

/// The same in √w - 13/4, for √w up to 4.
const INV_MID: [f64; 20] = [
    -1.510_269_542_333_506_5e-08,
    6.969_241_977_629_694e-10,
    1.310_435_149_997_201_4e-07,
    -2.713_451_105_439_456e-07,
    -2.700_421_928_086_894_7e-08,
    1.498_713_078_418_612_7e-06,
    -3.986_084_395_214_756e-06,
    2.925_729_190_178_982_3e-06,
    1.246_516_715_708_725_1e-05,
    -4.731_898_412_011_245e-05,
    6.828_708_654_753_377e-05,
    2.403_125_701_509_252_5e-05,
    -0.000_355_037_809_759_638_14,
    0.000_953_289_363_743_563_8,
    -0.001_688_275_535_733_707_1,
    0.002_491_442_096_981_760_7,
    -0.003_751_208_508_215_561,
    0.005_370_914_553_571_68,
    1.005_258_967_694_165_2,
    3.083_885_610_492_220_8,
];

/// The same in √w - 5, for larger w.
const INV_FAR: [f64; 19] = [
    -1.543_927_819_720_834e-11,
    4.280_243_303_730_942e-11,
    4.697_730_344_596_282_4e-11,
    -4.373_889_663_734_069e-10,
    1.358_936_534_157_709_3e-09,
    -3.471_437_933_896_719e-09,
    7.777_428_539_826_634e-09,
    -1.525_516_018_129_263e-08,
    2.904_490_932_078_947_3e-08,
    -6.755_603_035_373_66e-08,
    2.290_436_274_136_903_8e-07,
    -9.930_294_774_982_885e-07,
    4.526_054_328_559_671e-06,
    -1.968_177_067_694_925_3e-05,
    7.599_527_792_024_94e-05,
    -0.000_215_030_119_830_246_94,
    -0.000_138_719_318_373_517,
    1.010_300_464_864_545_5,
    4.849_906_401_408_584,
];

/// 2/√π less the f64 `FRAC_2_SQRT_PI`.
const FRAC_2_SQRT_PI_REST: f64 = 1.533_545_961_316_588e-17;

/// e^(-a²) for 0 ≤ a ≤ 28.
#[inline(always)]
fn gauss<const F: bool, const D: bool>(a: f64) -> f64 {
    // The square, and what it rounds: of half the digits it is exact without fused multiply-add.
    let top = f64::from_bits(a.to_bits() & !((1 << 27) - 1));
    let (square, rest) = if F { (a * a, a.mul_add(a, -(a * a))) } else { (top * top, (a - top) * (a + top)) };
    let (n, _, r) = split_ln2::<F>(-square);
    let r = r - rest;
    scale(fma::<F>(exp_tail::<F, D>(r), r * r, r) + 1.0, n)
}

/// erfc a for a ≥ 0.
#[inline(always)]
fn upper<const F: bool, const D: bool>(a: f64) -> f64 {
    let most = if D { 28.0 } else { 12.0 };
    let a = if a > most { most } else { a };
    let p = if D {
        horner::<F, _>(&ERFC, (a - 4.0) / (a + 4.0))
    } else {
        horner::<F, _>(&ERFC_SHORT, (a - 3.0) / (a + 3.0))
    };
    p / (1.0 + 2.0 * a) * gauss::<F, D>(a)
}

/// Complementary error function.
#[inline(always)]
pub fn erfc<const F: bool, const D: bool>(x: f64) -> f64 {
    let y = upper::<F, D>(x.abs());
    if x < 0.0 { 2.0 - y } else { y }
}

/// The error function.
#[inline(always)]
pub fn erf<const F: bool>(x: f64) -> f64 {
    let (a, z) = (x.abs(), x * x);
    let p = horner::<F, _>(&ERF, z);
    let near = fma::<F>(x, FRAC_2_SQRT_PI, x * fma::<F>(p, z, FRAC_2_SQRT_PI_REST));
    let far = (1.0 - upper::<F, true>(a)).copysign(x);
    if a < 1.0 { near } else { far }
}

/// The inverse error function.
#[inline(always)]
pub fn erf_inv<const F: bool>(x: f64) -> f64 {
    let a = x.abs();
    let near = a < 0.5;
    // 1 - x², and that less 1; one of them is exact.
    let u = if near { 1.0 - a * a } else { (1.0 - a) * (1.0 + a) };
    let (e, m) = mantissa(u);
    let w = -log_near::<F, true>(if near { -(a * a) } else { m - 1.0 }, e, 0.0);
    let root = w.sqrt();
    let p = horner::<F, _>(&INV_NEAR, w - 3.125);
    let q = horner::<F, _>(&INV_MID, root - 3.25);
    let r = horner::<F, _>(&INV_FAR, root - 5.0);
    let y = x * if w < 6.25 {
        p
    } else if root < 4.0 {
        q
    } else {
        r
    };
    let y = if a == 1.0 { f64::INFINITY.copysign(x) } else { y };
    if a <= 1.0 { y } else { f64::NAN }
}
