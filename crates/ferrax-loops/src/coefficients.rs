//! Coefficients of approximations that engines share: the CPU engine's kernels and the graphs of [`crate::expand`] compute
//! the same functions in their own ways.
//!
//! Polynomials have the highest power first.

/// Bernoulli numbers B(2k), k from 1.
pub const BERNOULLI: [f64; 12] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174_611.0 / 330.0,
    854_513.0 / 138.0,
    -236_364_091.0 / 2730.0,
];

/// The positive zero of digamma, and what its rounding left out.
pub const DIGAMMA_ROOT: (f64, f64) = (1.461_632_144_968_362_3, 9.549_995_429_965_697e-17);

/// Taylor's series of ψ(x + 1) at the zero of ψ(x), which has no pole near, and 1/x taken off.
pub const DIGAMMA_AT_ROOT: [f64; 16] = [
    -2.241_523_416_103_308_1e-7,
    5.524_792_977_920_754_4e-7,
    -1.362_439_571_795_908_0e-6,
    3.362_359_445_843_888_2e-6,
    -8.306_859_775_003_972_6e-6,
    2.055_414_125_395_239_0e-5,
    -5.097_190_255_450_742_3e-5,
    0.000_126_816_728_196_557_91,
    -0.000_317_036_824_401_694_29,
    0.000_798_310_958_829_019_78,
    -0.002_032_481_822_549_172_6,
    0.005_265_591_872_117_550_2,
    -0.014_039_965_293_930_433,
    0.039_397_097_335_798_850,
    -0.122_515_672_788_626_02,
    0.499_588_210_663_425_44,
];

/// (erf(x) - x)/x to single precision as a polynomial in x², for |x| ≤ 1.
pub const ERF_NEAR: [f64; 7] =
    [7.853_854e-5, -8.010_191_4e-4, 5.188_327_3e-3, -2.685_381_1e-2, 1.128_358_54e-1, -3.761_262_6e-1, 1.283_791_66e-1];

/// ln erfc(x) to what single precision needs of it, for x from 1 to 4.
pub const ERF_FAR: [f64; 7] = [
    0.000_188_824_546_057_730_9,
    -0.002_972_450_805_827_975_3,
    0.021_940_464_153_885_84,
    -0.103_327_415_883_541_11,
    -0.637_883_007_526_397_7,
    -1.127_251_505_851_745_6,
    -0.000_300_418_119_877_576_83,
];

/// erf⁻¹(x)/x to single precision as a polynomial in w - 5/2 for w = -ln(1 - x²) < 5 (Giles, "Approximating the erfinv
/// function", 2010).
pub const ERF_INV_CENTRAL: [f64; 9] = [
    2.810_226_36e-8,
    3.432_739_39e-7,
    -3.523_387_7e-6,
    -4.391_506_54e-6,
    2.185_808_7e-4,
    -1.253_725_03e-3,
    -4.177_681_64e-3,
    0.246_640_727,
    1.501_409_41,
];

/// The same as a polynomial in √w - 3 for other w.
pub const ERF_INV_TAIL: [f64; 9] = [
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

/// Coefficients rounded to single precision.
pub const fn single<const N: usize>(coefficients: &[f64; N]) -> [f32; N] {
    let mut rounded = [0.0; N];
    let mut k = 0;
    while k < N {
        rounded[k] = coefficients[k] as f32;
        k += 1;
    }
    rounded
}
