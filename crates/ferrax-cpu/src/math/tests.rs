//! Functions that vectorize beside the C library's, with fused multiply-add and without: special values, the ends of the range,
//! errors in units in the last place, and the same bits wherever a number stands.

use super::complex::{self, Complex};
use super::{double, single, special, together};

const SPECIAL: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    2.5,
    -2.5,
    1e308,
    -1e308,
    5e-324,
    -5e-324,
    1e-300,
    9_007_199_254_740_993.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    1.000_000_000_000_001,
];

/// Numbers of both signs and all sizes, the same in every run.
fn numbers(count: usize, exponents: i32) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count)
        .map(|_| {
            let (bits, exponent) = (next(), (next() % (2 * exponents as u64 + 1)) as i32 - exponents);
            let mantissa = 1.0 + (bits >> 12) as f64 * 2f64.powi(-52);
            mantissa * 2f64.powi(exponent) * if bits & 1 == 0 { 1.0 } else { -1.0 }
        })
        .collect()
}

/// How many units in the last place `found` is from `wanted`; infinite where they differ in kind or sign.
fn ulps(found: f64, wanted: f64) -> f64 {
    if found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan()) {
        return 0.0;
    }
    if !found.is_finite() || !wanted.is_finite() || (found == 0.0 && wanted == 0.0) {
        return f64::INFINITY;
    }
    let unit = f64::from_bits(wanted.abs().to_bits() + 1) - wanted.abs();
    (found - wanted).abs() / unit
}

fn ulps32(found: f32, wanted: f64) -> f64 {
    let nearest = wanted as f32;
    if found.to_bits() == nearest.to_bits() || (found.is_nan() && nearest.is_nan()) {
        return 0.0;
    }
    if !found.is_finite() || !nearest.is_finite() || (found == 0.0 && nearest == 0.0) {
        return f64::INFINITY;
    }
    (f64::from(found) - wanted).abs() / f64::from(f32::from_bits(nearest.abs().to_bits() + 1) - nearest.abs())
}

/// A function of one number in both precisions and both ways of multiply-add, what it is to be, sizes of arguments, and bounds.
macro_rules! held {
    ($name:ident: $wanted:expr, $exponents:literal, $bound:literal, $bound32:literal) => {
        #[test]
        fn $name() {
            let wanted: fn(f64) -> f64 = $wanted;
            for x in SPECIAL.into_iter().chain(numbers(20_000, $exponents)) {
                for (way, y) in [double::$name::<true>(x), double::$name::<false>(x)].into_iter().enumerate() {
                    assert!(ulps(y, wanted(x)) <= $bound, "{x:e} {way}: {y:e}, not {:e}", wanted(x));
                }
                let x = x as f32;
                for (way, y) in [single::$name::<true>(x), single::$name::<false>(x)].into_iter().enumerate() {
                    let wanted = wanted(f64::from(x));
                    assert!(ulps32(y, wanted) <= $bound32, "f32 {x:e} {way}: {y:e}, not {wanted:e}");
                }
            }
        }
    };
}
held!(cbrt: f64::cbrt, 900, 2.0, 0.6);
held!(asin: f64::asin, 20, 3.0, 0.6);
held!(acos: f64::acos, 20, 3.0, 0.6);
held!(atan: f64::atan, 900, 2.0, 0.6);
held!(sinh: f64::sinh, 12, 4.0, 2.0);
held!(cosh: f64::cosh, 12, 3.0, 2.0);
held!(asinh: libm::asinh, 900, 4.0, 0.6);
held!(acosh: |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 900, 4.0, 0.6);
held!(atanh: libm::atanh, 30, 4.0, 0.6);
held!(erfc: libm::erfc, 5, 10.0, 0.6);
held!(log1p: f64::ln_1p, 900, 3.0, 3.5);
held!(erf: libm::erf, 5, 3.0, 3.0);

#[test]
fn powers() {
    let sizes = numbers(2_000, 40);
    let pairs = SPECIAL.iter().flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y)));
    let more = sizes.iter().zip(sizes.iter().rev()).map(|(&x, &y)| (x.abs(), y * 1e-3));
    let whole = sizes.iter().zip(0..).map(|(&x, n)| (x, f64::from(n % 41 - 20)));
    for (x, y) in pairs.chain(more).chain(whole) {
        let wanted = x.powf(y);
        for found in [double::pow::<true>(x, y), double::pow::<false>(x, y)] {
            assert!(ulps(found, wanted) <= 2.0, "{x:e} ** {y:e}: {found:e}, not {wanted:e}");
        }
        let (x, y) = (x as f32, y as f32);
        let wanted = f64::from(x).powf(f64::from(y));
        for found in [single::pow::<true>(x, y), single::pow::<false>(x, y)] {
            assert!(ulps32(found, wanted) <= 0.6, "f32 {x:e} ** {y:e}: {found:e}, not {wanted:e}");
        }
    }
}

/// Roots are exact to half a unit, also beside other powers.
#[test]
fn roots_as_powers() {
    let bases: Vec<f64> = SPECIAL.iter().copied().chain(numbers(500, 40)).collect();
    for pair in bases.windows(2) {
        for y in [0.5, -0.5] {
            let (x, y) = ([pair[0], pair[0], pair[1]], [y, 1.5, y]);
            let (mut wide, mut all, mut some) = ([0.0; 3], [0.0; 3], [0.0; 3]);
            // SAFETY: none is needed.
            unsafe {
                double::pow_all::<true, false, 3>(&x, &y, &mut wide);
                single::pow_all::<true, false, 3>(&x.map(|x| x as f32), &[y[0] as f32; 3], &mut all);
                single::pow_all::<true, false, 3>(&x.map(|x| x as f32), &y.map(|y| y as f32), &mut some);
            }
            for i in [0, 2] {
                let wanted = x[i].powf(y[i]);
                assert!(ulps(wide[i], wanted) <= 2.0, "{:e} ** {}: {:e}, not {wanted:e}", x[i], y[i], wide[i]);
                let wanted = f64::from(x[i] as f32).powf(y[i]);
                let most = if y[i] > 0.0 { 0.5 } else { 1.5 };
                assert!(ulps32(all[i], wanted) <= most, "{:e} ** {}: {:e}, not {wanted:e}", x[i], y[i], all[i]);
                assert!(all[i].to_bits() == some[i].to_bits() || all[i].is_nan() && some[i].is_nan());
            }
        }
    }
}

#[test]
fn angles() {
    let sizes = numbers(5_000, 1000);
    let pairs = SPECIAL.iter().flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y)));
    let near = numbers(5_000, 3).into_iter().zip(numbers(5_001, 3).into_iter().skip(1));
    for (y, x) in pairs.chain(sizes.iter().copied().zip(sizes.iter().rev().copied())).chain(near) {
        let wanted = y.atan2(x);
        for found in [double::atan2::<true>(y, x), double::atan2::<false>(y, x)] {
            assert!(ulps(found, wanted) <= 2.0, "({x:e}, {y:e}): {found:e}, not {wanted:e}");
        }
        let (y, x) = (y as f32, x as f32);
        let wanted = f64::from(y).atan2(f64::from(x));
        assert!(ulps32(single::atan2::<true>(y, x), wanted) <= 0.6, "f32 ({x:e}, {y:e})");
    }
}

#[test]
fn remainders_are_exact() {
    let (a, b) = (numbers(6_400, 500), numbers(6_400, 460));
    let special = SPECIAL.iter().flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y)));
    let close = numbers(3_200, 20).into_iter().zip(numbers(3_201, 18).into_iter().skip(1));
    let multiples = (1..3_200).map(|k| (f64::from(k) * 0.1, 0.1));
    // quotients of f32 below 2^24, and next to whole numbers
    let (few, exact) =
        (numbers(3_200, 8).into_iter().zip(numbers(3_201, 8).into_iter().skip(1)), |k: f64| k.mul_add(0.7, 1e-9 * k));
    let whole = (1..3_200).map(|k| (exact(f64::from(k * 4_001)), f64::from(0.7f32)));
    let pairs = special.chain(a.into_iter().zip(b)).chain(close).chain(multiples).chain(few).chain(whole);
    let pairs: Vec<(f64, f64)> = pairs.collect();
    for pairs in pairs.as_chunks::<16>().0 {
        let (x, y) = (pairs.map(|p| p.0), pairs.map(|p| p.1));
        let (mut fused, mut plain, mut short, mut plain_short) = ([0.0; 16], [0.0; 16], [0.0; 16], [0.0; 16]);
        let (x32, y32) = (x.map(|v| v as f32), y.map(|v| v as f32));
        // SAFETY: the functions ask for nothing.
        unsafe {
            double::rem_all::<true, false, 16>(&x, &y, &mut fused);
            double::rem_all::<false, false, 16>(&x, &y, &mut plain);
            single::rem_all::<true, false, 16>(&x32, &y32, &mut short);
            single::rem_all::<false, false, 16>(&x32, &y32, &mut plain_short);
        }
        for i in 0..16 {
            let wanted = x[i] % y[i];
            assert!(ulps(fused[i], wanted) == 0.0, "{:e} % {:e}: {:e}, not {wanted:e}", x[i], y[i], fused[i]);
            assert!(ulps(plain[i], wanted) == 0.0);
            let wanted = x32[i] % y32[i];
            assert!(ulps(short[i].into(), wanted.into()) == 0.0, "f32 {:e} % {:e}: {:e}", x32[i], y32[i], short[i]);
            assert!(ulps(plain_short[i].into(), wanted.into()) == 0.0);
        }
    }
}

#[test]
fn neighbours() {
    for (x, y) in SPECIAL
        .iter()
        .flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y)))
        .chain(numbers(1_000, 300).into_iter().zip(numbers(1_001, 300).into_iter().skip(1)))
    {
        assert!(ulps(double::nextafter(x, y), libm::nextafter(x, y)) == 0.0, "{x:e} {y:e}");
        let (x, y) = (x as f32, y as f32);
        assert!(ulps(single::nextafter(x, y).into(), libm::nextafterf(x, y).into()) == 0.0, "f32 {x:e} {y:e}");
    }
}

#[test]
fn inverse_of_erf() {
    for x in numbers(5_000, 50) {
        let x = if x.abs() < 1.0 { x } else { 1.0 / x };
        for y in [double::erf_inv::<true>(x), double::erf_inv::<false>(x)] {
            // of its own inverse, with what the slope makes of an error there
            let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
            let error = if x.abs() < 0.5 { libm::erf(y) - x } else { (1.0 - x.abs()) - libm::erfc(y.abs()) };
            assert!((error / slope).abs() <= 8.0 * f64::EPSILON * y.abs(), "{x:e}: {y:e}");
        }
    }
    for (x, wanted) in [(1.0, f64::INFINITY), (-1.0, f64::NEG_INFINITY), (0.0, 0.0), (-0.0, -0.0), (1.5, f64::NAN)] {
        assert!(ulps(double::erf_inv::<true>(x), wanted) == 0.0, "{x}");
    }
}

#[test]
fn bessel_functions() {
    // I0 and I1 by their power series, which has one sign.
    let series = |x: f64, n: f64| {
        let (mut term, mut sum, mut k) = (if n == 0.0 { 1.0 } else { 0.5 * x }, 0.0, 0.0);
        while term > sum * 1e-17 {
            sum += term;
            k += 1.0;
            term *= 0.25 * x * x / (k * (k + n));
        }
        sum * (-x).exp()
    };
    for k in 1..3_000 {
        let x = f64::from(k) * 0.011;
        for (found, n) in [(double::bessel_i0e::<true>(x), 0.0), (double::bessel_i1e::<false>(x), 1.0)] {
            assert!(ulps(found, series(x, n)) <= 40.0, "{x}: {found:e}, not {:e}", series(x, n));
        }
        let x = x as f32;
        assert!(ulps32(single::bessel_i0e::<true>(x), series(x.into(), 0.0)) <= 0.6, "f32 {x}");
        assert!(ulps32(single::bessel_i1e::<true>(x), series(x.into(), 1.0)) <= 0.6, "f32 {x}");
    }
    assert_eq!(double::bessel_i0e::<true>(0.0), 1.0);
    assert_eq!(double::bessel_i0e::<true>(f64::INFINITY), 0.0);
    assert!(double::bessel_i1e::<true>(-2.0) < 0.0 && double::bessel_i1e::<true>(f64::NAN).is_nan());
}

#[test]
fn gamma_functions() {
    // one number's results in a tile with a negative one, which takes the other way
    fn found<T: Copy + From<f32>>(x: T, all: unsafe fn(&[T; 2], &mut [T; 2])) -> T {
        let mut out = [T::from(0.0); 2];
        // SAFETY: the functions need nothing.
        unsafe { all(&[x, T::from(-0.5)], &mut out) };
        out[0]
    }
    // zeros are at 1, 2 and 1.46; digits of libm's are lost near the first two, by the distance to them
    let near = |x: f64, wanted: f64| wanted.abs().max((x - 1.0).abs().min((x - 2.0).abs()).min(1.0));
    for k in 1..20_000 {
        let x = (f64::from(k) * 1.3e-3 - 12.0).exp().min(1e300);
        let (lgamma, digamma) = (special::lgamma(x), special::digamma(x));
        for fused in [found(x, double::lgamma_all::<true, false, 2>), found(x, double::lgamma_all::<false, false, 2>)] {
            assert!((fused - lgamma).abs() <= 4e-15 * near(x, lgamma), "lgamma({x}) is {fused:e}, not {lgamma:e}");
        }
        let y = found(x, double::digamma_all::<true, false, 2>);
        assert!((y - digamma).abs() <= 4e-15 * digamma.abs().max(1.0), "digamma({x}) is {y:e}, not {digamma:e}");
        let x = x as f32;
        let (lgamma, digamma) = (special::lgamma(x.into()), special::digamma(x.into()));
        assert!(ulps32(found(x, single::lgamma_all::<true, false, 2>), lgamma) <= 0.51, "f32 lgamma({x})");
        assert!(ulps32(found(x, single::digamma_all::<true, false, 2>), digamma) <= 0.51, "f32 digamma({x})");
    }
    for x in [f64::INFINITY, 5e-324, 1.7e308, 0.0, -0.0, 1.0, 2.0, f64::NAN, -3.0, -0.7, f64::NEG_INFINITY] {
        let (lgamma, digamma) = (special::lgamma(x), special::digamma(x));
        assert_eq!(found(x, double::lgamma_all::<true, false, 2>).to_bits(), lgamma.to_bits(), "lgamma({x})");
        let y = found(x, double::digamma_all::<true, false, 2>);
        assert!(ulps(y, digamma) <= 15.0 || (y.is_nan() && digamma.is_nan()), "digamma({x}) is {y:e}, not {digamma:e}");
    }
}

#[test]
fn incomplete_gamma_and_zeta_functions() {
    type Pair<const N: usize> = unsafe fn(&[f32; N], &[f32; N], &mut [f32; N]);
    // SAFETY: the functions need nothing.
    let alone = |f: Pair<1>, a, x| unsafe {
        let mut out = [0.0];
        f(&[a], &[x], &mut out);
        out[0]
    };
    let (mut state, mut worst) = (1u64, [0f64; 4]);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    for _ in 0..600 {
        // parameters of all sizes and places on both sides of them, 40 at once: a part of them in vectors of 16
        let a: [f32; 40] = std::array::from_fn(|_| (next() * 14.0 - 7.0).exp());
        let x: [f32; 40] =
            std::array::from_fn(|i| if i % 3 == 0 { (next() * 14.0 - 7.0).exp() } else { a[i] * (next() * 2.0 + 0.1) });
        let n: [f32; 40] =
            std::array::from_fn(|i| if i % 2 == 0 { (next() * 9.0).floor() } else { 1.0 + next() * 40.0 });
        let functions: [(Pair<40>, Pair<1>, fn(f64, f64) -> f64, &[f32; 40]); 4] = [
            (single::igamma_all::<true, false, 40>, single::igamma_all::<true, false, 1>, special::igamma, &a),
            (single::igammac_all::<false, false, 40>, single::igammac_all::<false, false, 1>, special::igammac, &a),
            (single::zeta_all::<true, false, 40>, single::zeta_all::<true, false, 1>, special::zeta, &n),
            (single::polygamma_all::<true, false, 40>, single::polygamma_all::<true, false, 1>, special::polygamma, &n),
        ];
        for (k, (all, one, exact, first)) in functions.into_iter().enumerate() {
            let mut out = [0.0; 40];
            // SAFETY: as above.
            unsafe { all(first, &x, &mut out) };
            for i in 0..40 {
                let (p, x) = (first[i], x[i]);
                assert_eq!(out[i].to_bits(), alone(one, p, x).to_bits(), "{k}: {p} {x}, among others and alone");
                let wanted = exact(p.into(), x.into());
                if wanted.is_finite()
                    && wanted.abs() > f64::from(f32::MIN_POSITIVE)
                    && wanted.abs() < f64::from(f32::MAX)
                {
                    worst[k] = worst[k].max(ulps32(out[i], wanted));
                }
            }
        }
    }
    assert!(worst.iter().all(|&w| w <= 0.52), "{worst:?}");
    for (a, x) in [
        (0.0, 0.0),
        (0.0, 1.0),
        (1.0, 0.0),
        (-1.0, 1.0),
        (f32::NAN, 1.0),
        (1.0, f32::INFINITY),
        (1e30, 1e30),
        (1e-30, 1e-30),
    ] {
        let (found, wanted) =
            (alone(single::igamma_all::<true, false, 1>, a, x), special::igamma(a.into(), x.into()) as f32);
        assert!(found == wanted || (found.is_nan() && wanted.is_nan()), "P({a}, {x}) is {found}, not {wanted}");
    }
}

/// Largest part of a difference, by the larger part of what is wanted.
fn far(found: Complex<f64>, wanted: Complex<f64>) -> f64 {
    let same = |x: f64, y: f64| x == y || (x.is_nan() && y.is_nan());
    if same(found.re, wanted.re) && same(found.im, wanted.im) {
        return 0.0;
    }
    (found.re - wanted.re).abs().max((found.im - wanted.im).abs()) / wanted.re.abs().max(wanted.im.abs())
}

#[test]
fn complex_functions_of_many_numbers() {
    let parts = numbers(4_001, 8);
    let some = parts.iter().zip(&parts[1..]).map(|(&re, &im)| Complex::new(re, im));
    let special = SPECIAL.iter().flat_map(|&re| SPECIAL.iter().map(move |&im| Complex::new(re, im)));
    let x: Vec<Complex<f64>> = some.chain(special).collect();
    let y: Vec<Complex<f64>> = x.iter().rev().copied().collect();
    type Z = Complex<f64>;
    type Whole = (fn() -> Option<together::Formula<1>>, fn([Z; 1]) -> Z);
    let functions: [Whole; 21] = [
        (together::exp, |[z]| complex::exp(z)),
        (together::expm1, |[z]| complex::expm1(z)),
        (together::sin, |[z]| complex::sin(z)),
        (together::cos, |[z]| complex::cos(z)),
        (together::tan, |[z]| complex::tan(z)),
        (together::sinh, |[z]| complex::sinh(z)),
        (together::cosh, |[z]| complex::cosh(z)),
        (together::tanh, |[z]| complex::tanh(z)),
        (together::asin, |[z]| complex::asin(z)),
        (together::acos, |[z]| complex::acos(z)),
        (together::atan, |[z]| complex::atan(z)),
        (together::asinh, |[z]| complex::asinh(z)),
        (together::acosh, |[z]| complex::acosh(z)),
        (together::atanh, |[z]| complex::atanh(z)),
        (together::sqrt, |[z]| complex::sqrt(z)),
        (together::rsqrt, |[z]| complex::rsqrt(z)),
        (together::cbrt, |[z]| complex::cbrt(z)),
        (together::log, |[z]| complex::log(z)),
        (together::log1p, |[z]| complex::log1p(z)),
        (together::sign, |[z]| complex::sign(z)),
        (together::recip, |[z]| complex::recip(z)),
    ];
    for (formula, one) in functions {
        let mut found = vec![Complex::new(0.0, 0.0); x.len()];
        together::each([&x], &mut found, formula(), one);
        for (i, (&z, &found)) in x.iter().zip(&found).enumerate() {
            let wanted = one([z]);
            assert!(far(found, wanted) <= 1e-14, "{z:?}: {found:?}, not {wanted:?}");
            // The sign of a zero chooses the side of a branch cut.
            for (found, wanted) in [(found.re, wanted.re), (found.im, wanted.im)] {
                assert!(wanted != 0.0 || found.to_bits() == wanted.to_bits(), "{z:?}: {found:e}, not {wanted:e}");
            }
            // A number's bits do not depend on its neighbours.
            let mut alone = [Complex::new(0.0, 0.0)];
            together::each([&x[i..=i]], &mut alone, formula(), one);
            assert_eq!((alone[0].re.to_bits(), alone[0].im.to_bits()), (found.re.to_bits(), found.im.to_bits()));
        }
    }
    let mut found = vec![Complex::new(0.0, 0.0); x.len()];
    together::each([&x, &y], &mut found, together::div(), |[x, y]| complex::div(x, y));
    for ((&x, &y), &found) in x.iter().zip(&y).zip(&found) {
        let wanted = complex::div(x, y);
        assert!(far(found, wanted) <= 1e-14, "{x:?} / {y:?}: {found:?}, not {wanted:?}");
    }
}

#[test]
fn quotients_of_negligible_imaginary_parts_have_the_real_quotient() {
    let parts = numbers(2_001, 3);
    let tiny = |x: f64| x * 1e-60;
    let x: Vec<Complex<f64>> = parts.windows(2).map(|w| Complex::new(w[0], tiny(w[1]))).collect();
    let y: Vec<Complex<f64>> = x.iter().rev().copied().collect();
    let mut found = vec![Complex::new(0.0, 0.0); x.len()];
    together::each([&x, &y], &mut found, together::div(), |[x, y]| complex::div(x, y));
    for ((x, y), found) in x.iter().zip(&y).zip(&found) {
        assert_eq!(found.re.to_bits(), (x.re / y.re).to_bits(), "{x:?} / {y:?}");
    }
    // across the axes, too
    let turned: Vec<Complex<f64>> = y.iter().map(|z| Complex::new(-z.im, z.re)).collect();
    together::each([&x, &turned], &mut found, together::div(), |[x, y]| complex::div(x, y));
    for ((x, y), found) in x.iter().zip(&y).zip(&found) {
        assert_eq!(found.im.to_bits(), (-x.re / y.re).to_bits(), "{x:?} / i{y:?}");
    }
}

/// Subnormal results, too.
#[test]
fn powers_of_two_are_rounded_once() {
    let from = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    for (n, k) in (-150..=127).flat_map(|n| (0..2048).map(move |k| (n, k))) {
        let p = f32::from_bits(from + k * 4093);
        let want = (f64::from(p) * 2f64.powi(n)) as f32;
        assert_eq!(single::scale(p, n).to_bits(), want.to_bits(), "{p:e} 2^{n}");
    }
    for n in [-200, -150, 0, 128, i32::MAX, i32::MIN] {
        assert!(single::scale(f32::NAN, n).is_nan() && single::scale(-f32::NAN, n).is_nan(), "{n}");
    }
}
