//! Complex functions of many numbers: a formula without branches for all, which vectorizes, and the functions of `complex` for
//! the few that it is not for (infinities, parts near the ends of the range).
//!
//! A formula gives the result in double precision, and whether it holds; it does for the same numbers wherever they stand.

use crate::math::arcs::{NEAR, atan2};
use crate::math::complex::{Complex, Wide};
use crate::math::double::{self, circle, halved_exp, mantissa};
use crate::math::hyperbolic;
use crate::math::powers::{self, log_near};
use crate::simd::fma64 as fma;

type Z = Complex<f64>;

/// Numbers computed at once.
const TILE: usize = 16;
/// Squares of these and their sums are normal numbers.
const SMALL: f64 = 1e-140;
const LARGE: f64 = 1e140;
/// Up to this size exponentials are in range, and angles are reduced without a table.
const MOST_EXPONENT: f64 = 700.0;

/// Whether a part is zero, or its square a normal number.
#[inline(always)]
fn plain(x: f64) -> bool {
    (x == 0.0) | ((x.abs() > SMALL) & (x.abs() < LARGE))
}

/// Whether the size of a number is not zero, and all digits of it come from squares of the parts.
#[inline(always)]
fn sized(z: Z) -> bool {
    plain(z.re) & plain(z.im) & ((z.re != 0.0) | (z.im != 0.0))
}

/// Real and imaginary parts of numbers.
type Tile = [[f64; TILE]; 2];

/// Results for a tile of each of `K` operands, and which of them do not hold.
pub type Formula<const K: usize> = unsafe fn(&[Tile; K], &mut Tile, &mut [bool; TILE]);

/// Results of a formula, where there is one for this machine, and of `exact` for the numbers that it does not hold for.
pub fn each<const K: usize, C: Wide>(x: [&[C]; K], out: &mut [C], formula: Option<Formula<K>>, exact: fn([C; K]) -> C) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast<const K: usize, C: Wide>(
            x: [&[C]; K],
            out: &mut [C],
            formula: Option<Formula<K>>,
            exact: fn([C; K]) -> C,
        ) {
            each_body(x, out, formula, exact);
        }
        if crate::simd::wide() {
            // SAFETY: the machine has the instructions.
            return unsafe { fast(x, out, formula, exact) };
        }
    }
    each_body(x, out, formula, exact);
}

#[inline(always)]
fn each_body<const K: usize, C: Wide>(
    x: [&[C]; K],
    out: &mut [C],
    formula: Option<Formula<K>>,
    exact: fn([C; K]) -> C,
) {
    let (mut parts, mut results, mut odd) = ([[[1.0; TILE]; 2]; K], [[0.0; TILE]; 2], [true; TILE]);
    for start in (0..out.len()).step_by(TILE) {
        let end = out.len().min(start + TILE);
        let tiles = x.map(|x| &x[start..end]);
        let out = &mut out[start..end];
        if let Some(formula) = formula {
            for (parts, tile) in parts.iter_mut().zip(tiles) {
                match <&[C; TILE]>::try_from(tile) {
                    Ok(whole) => take_apart(parts, whole),
                    Err(_) => take_apart(parts, tile),
                }
            }
            // SAFETY: a formula is there where its instructions are.
            unsafe { formula(&parts, &mut results, &mut odd) };
            match <&mut [C; TILE]>::try_from(&mut *out) {
                Ok(whole) => put_together(whole, &results),
                Err(_) => put_together(out, &results),
            }
        }
        if odd == [false; TILE] {
            continue;
        }
        for (i, o) in out.iter_mut().enumerate().filter(|(i, _)| odd[*i]) {
            *o = exact(tiles.map(|x| x[i]));
        }
    }
}

#[inline(always)]
fn take_apart<C: Wide>(parts: &mut Tile, x: &[C]) {
    for (i, z) in x.iter().enumerate() {
        let z = z.wide();
        (parts[0][i], parts[1][i]) = (z.re, z.im);
    }
}

#[inline(always)]
fn put_together<C: Wide>(out: &mut [C], parts: &Tile) {
    for (i, o) in out.iter_mut().enumerate() {
        *o = C::of(Z::new(parts[0][i], parts[1][i]));
    }
}

/// Formulas compiled for the sets of instructions that have fused multiply-add; `None` on machines without it.
macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident<$F:ident>($($z:ident),+): $K:literal $body:block)*) => {
        $(
            $(#[$doc])*
            pub fn $name() -> Option<Formula<$K>> {
                #[inline(always)]
                fn lanes<const $F: bool>(x: &[Tile; $K], out: &mut Tile, odd: &mut [bool; TILE]) {
                    for i in 0..TILE {
                        let [$($z),+]: [Z; $K] = std::array::from_fn(|k| Z::new(x[k][0][i], x[k][1][i]));
                        let (z, holds): (Z, bool) = $body;
                        (out[0][i], out[1][i], odd[i]) = (z.re, z.im, !holds);
                    }
                }
                fused!(lanes, $K)
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! fused {
    ($lanes:ident, $K:literal) => {{
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
        fn widest(x: &[Tile; $K], out: &mut Tile, odd: &mut [bool; TILE]) {
            $lanes::<true>(x, out, odd);
        }
        #[target_feature(enable = "avx2,fma")]
        fn wide(x: &[Tile; $K], out: &mut Tile, odd: &mut [bool; TILE]) {
            $lanes::<true>(x, out, odd);
        }
        if crate::simd::isa() == Some(crate::simd::Isa::Avx512) {
            Some(widest)
        } else if crate::simd::wide() {
            Some(wide)
        } else {
            None
        }
    }};
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! fused {
    ($lanes:ident, $K:literal) => {
        crate::simd::FUSED.then_some($lanes::<true> as Formula<$K>)
    };
}

/// Sine and cosine of an angle up to `NEAR`.
#[inline(always)]
fn sin_cos<const F: bool>(x: f64) -> (f64, f64) {
    let ([s, c], _, q) = circle::<F>(x.abs());
    let turned = q & 1 == 1;
    let (sin, cos) = (if turned { c } else { s }, if turned { s } else { c });
    let sign = (q >> 1) << 63;
    let sin = f64::from_bits(sin.to_bits() ^ sign ^ (x.to_bits() & 1 << 63));
    (sin, f64::from_bits(cos.to_bits() ^ (q.wrapping_add(1) >> 1) << 63))
}

/// e^x for x up to `MOST_EXPONENT` in size.
#[inline(always)]
fn exponential<const F: bool>(x: f64) -> f64 {
    let half = halved_exp::<F>(x.abs());
    if x < 0.0 { 0.5 / half } else { 2.0 * half }
}

/// Whether `angle` and `exponent` are what the formulas of circular and hyperbolic functions are for.
#[inline(always)]
fn moderate(angle: f64, exponent: f64) -> bool {
    (angle.abs() <= NEAR) & (exponent.abs() < MOST_EXPONENT)
}

/// Hyperbolic tangent of x + iy.
#[inline(always)]
fn tangent<const F: bool>(x: f64, y: f64) -> (Z, bool) {
    let (s, c) = sin_cos::<F>(y);
    let sinh = hyperbolic::sinh::<F>(x);
    let d = fma::<F>(sinh, sinh, c * c);
    (Z::new(sinh * hyperbolic::cosh::<F>(x) / d, s * c / d), moderate(y, 2.0 * x))
}

/// |z|².
#[inline(always)]
fn square<const F: bool>(z: Z) -> f64 {
    fma::<F>(z.re, z.re, z.im * z.im)
}

/// The part of a square root that is along its number's half plane, without its sign, and the other one: at least 0.
#[inline(always)]
fn root<const F: bool>(z: Z) -> Z {
    let t = (0.5 * (z.re.abs() + square::<F>(z).sqrt())).sqrt();
    let u = if t == 0.0 { 0.0 } else { z.im.abs() / (2.0 * t) };
    let (re, im) = if z.re < 0.0 { (u, t) } else { (t, u) };
    Z::new(re, im.copysign(z.im))
}

/// ln |z| of a number whose square is `size`, which is `near` + 1 where it is not far from 1.
#[inline(always)]
fn log_size<const F: bool>(size: f64, near: f64) -> f64 {
    let (e, m) = mantissa(size);
    0.5 * log_near::<F, true>(if e == 0.0 { near } else { m - 1.0 }, e, 0.0)
}

/// Principal logarithm.
#[inline(always)]
fn logarithm<const F: bool>(z: Z) -> Z {
    let (re, im) = (z.re.abs(), z.im.abs());
    let (a, b) = if re > im { (re, im) } else { (im, re) };
    let near = fma::<F>(a - 1.0, a + 1.0, b * b);
    Z::new(log_size::<F>(square::<F>(z), near), atan2::<F, true>(z.im, z.re))
}

/// Roots of 1 - z and of 1 + z, of which the inverse functions are made, and whether they have all digits.
#[inline(always)]
fn both_roots<const F: bool>(z: Z) -> (Z, Z, bool) {
    let (less, more) = (Z::new(1.0 - z.re, -z.im), Z::new(1.0 + z.re, z.im));
    (root::<F>(less), root::<F>(more), plain(z.re) & plain(z.im))
}

/// Inverse sine of x + iy.
#[inline(always)]
fn inverse_sine<const F: bool>(z: Z) -> (Z, bool) {
    let (a, b, holds) = both_roots::<F>(z);
    let along = fma::<F>(a.re, b.re, -(a.im * b.im));
    let across = fma::<F>(a.re, b.im, -(a.im * b.re));
    (Z::new(atan2::<F, true>(z.re, along), hyperbolic::asinh::<F, true>(across)), holds)
}

/// Inverse cosine.
#[inline(always)]
fn inverse_cosine<const F: bool>(z: Z) -> (Z, bool) {
    let (a, b, holds) = both_roots::<F>(z);
    let across = fma::<F>(b.re, a.im, -(b.im * a.re));
    (Z::new(2.0 * atan2::<F, true>(a.re, b.re), hyperbolic::asinh::<F, true>(across)), holds)
}

/// Inverse hyperbolic tangent of x + iy.
#[inline(always)]
fn inverse_tangent<const F: bool>(x: f64, y: f64) -> (Z, bool) {
    let a = x.abs();
    let (less, more) = (1.0 - a, 1.0 + a);
    let d = fma::<F>(less, less, y * y);
    let re = 0.25 * powers::log1p::<F, true>(4.0 * a / d);
    let im = 0.5 * atan2::<F, true>(2.0 * y, fma::<F>(less, more, -(y * y)));
    (Z::new(re.copysign(x), im), plain(x) & plain(y) & (d > 0.0))
}

/// x / y by Smith's method, scaled by the larger part of y: where imaginary parts are negligible, the real part is the
/// quotient of the real ones to the last bit, which derivatives by complex steps count on.
#[inline(always)]
fn quotient<const F: bool>(x: Z, y: Z) -> (Z, bool) {
    let (real, steep) = (y.im == 0.0, y.re.abs() < y.im.abs());
    let (more, less) = if steep { (y.im, y.re) } else { (y.re, y.im) };
    let (along, across) = if steep { (x.im, x.re) } else { (x.re, x.im) };
    let r = less / more;
    let d = if real { y.re } else { fma::<F>(less, r, more) };
    let re = if real { x.re } else { fma::<F>(across, r, along) };
    let im = if real { x.im } else { fma::<F>(-along, r, across) };
    (Z::new(re / d, if steep { -im } else { im } / d), real | (sized(x) & sized(y)))
}

formulas! {
    /// e^z.
    exp<F>(z): 1 {
        let (s, c) = sin_cos::<F>(z.im);
        let e = exponential::<F>(z.re);
        (Z::new(e * c, e * s), moderate(z.im, z.re))
    }
    /// e^z - 1: of half the angle's sine there is the difference of the cosine from 1.
    expm1<F>(z): 1 {
        let (s, c) = sin_cos::<F>(0.5 * z.im);
        let less = double::expm1::<F>(z.re);
        let re = fma::<F>(less, (c - s) * (c + s), -(2.0 * s * s));
        let im = exponential::<F>(z.re) * (2.0 * s * c);
        (Z::new(re, im), moderate(z.im, z.re) & plain(z.im))
    }
    /// Sine.
    sin<F>(z): 1 {
        let (s, c) = sin_cos::<F>(z.re);
        (Z::new(s * hyperbolic::cosh::<F>(z.im), c * hyperbolic::sinh::<F>(z.im)), moderate(z.re, z.im))
    }
    /// Cosine.
    cos<F>(z): 1 {
        let (s, c) = sin_cos::<F>(z.re);
        (Z::new(c * hyperbolic::cosh::<F>(z.im), -s * hyperbolic::sinh::<F>(z.im)), moderate(z.re, z.im))
    }
    /// Tangent.
    tan<F>(z): 1 {
        let (t, holds) = tangent::<F>(-z.im, z.re);
        (Z::new(t.im, -t.re), holds)
    }
    /// Hyperbolic sine.
    sinh<F>(z): 1 {
        let (s, c) = sin_cos::<F>(z.im);
        (Z::new(hyperbolic::sinh::<F>(z.re) * c, hyperbolic::cosh::<F>(z.re) * s), moderate(z.im, z.re))
    }
    /// Hyperbolic cosine.
    cosh<F>(z): 1 {
        let (s, c) = sin_cos::<F>(z.im);
        (Z::new(hyperbolic::cosh::<F>(z.re) * c, hyperbolic::sinh::<F>(z.re) * s), moderate(z.im, z.re))
    }
    /// Hyperbolic tangent.
    tanh<F>(z): 1 { tangent::<F>(z.re, z.im) }
    /// Inverse sine.
    asin<F>(z): 1 { inverse_sine::<F>(z) }
    /// Inverse cosine.
    acos<F>(z): 1 { inverse_cosine::<F>(z) }
    /// Inverse tangent.
    atan<F>(z): 1 {
        let (t, holds) = inverse_tangent::<F>(-z.im, z.re);
        (Z::new(t.im, -t.re), holds)
    }
    /// Inverse hyperbolic sine.
    asinh<F>(z): 1 {
        let (t, holds) = inverse_sine::<F>(Z::new(-z.im, z.re));
        (Z::new(t.im, -t.re), holds)
    }
    /// Inverse hyperbolic cosine: i or -i times the inverse cosine, whichever is in the right half plane.
    acosh<F>(z): 1 {
        let (t, holds) = inverse_cosine::<F>(z);
        let down = t.im.is_sign_negative();
        (Z::new(if down { -t.im } else { t.im }, if down { t.re } else { -t.re }), holds)
    }
    /// Inverse hyperbolic tangent.
    atanh<F>(z): 1 { inverse_tangent::<F>(z.re, z.im) }
    /// Principal square root.
    sqrt<F>(z): 1 { (root::<F>(z), sized(z)) }
    /// 1 / sqrt(z).
    rsqrt<F>(z): 1 {
        let (t, r) = (root::<F>(z), square::<F>(z).sqrt());
        (Z::new(t.re / r, -t.im / r), sized(z) & (z.im != 0.0))
    }
    /// Principal cube root.
    cbrt<F>(z): 1 {
        let r = powers::cbrt::<F, true>(square::<F>(z).sqrt());
        let (s, c) = sin_cos::<F>(atan2::<F, true>(z.im, z.re) / 3.0);
        (Z::new(r * c, r * s), sized(z))
    }
    /// Principal logarithm.
    log<F>(z): 1 { (logarithm::<F>(z), sized(z)) }
    /// log(1 + z).
    log1p<F>(z): 1 {
        let w = Z::new(1.0 + z.re, z.im);
        let near = fma::<F>(z.re, 2.0 + z.re, z.im * z.im);
        let re = log_size::<F>(square::<F>(w), near);
        (Z::new(re, atan2::<F, true>(w.im, w.re)), sized(w) & plain(z.re))
    }
    /// z / |z|.
    sign<F>(z): 1 {
        let r = square::<F>(z).sqrt();
        (Z::new(z.re / r, z.im / r), sized(z))
    }
    /// Quotients.
    div<F>(x, y): 2 { quotient::<F>(x, y) }
    /// Inverses.
    recip<F>(z): 1 {
        let (w, holds) = quotient::<F>(Z::new(1.0, 0.0), z);
        // The sign that the quotient of one has.
        let across = (z.re == 0.0) & (z.im != 0.0);
        (Z::new(if across { 0f64.copysign(z.im) } else { w.re }, w.im), holds)
    }
    /// Powers.
    pow<F>(x, y): 2 {
        let log = logarithm::<F>(x);
        let re = fma::<F>(y.re, log.re, -(y.im * log.im));
        let im = fma::<F>(y.re, log.im, y.im * log.re);
        let (s, c) = sin_cos::<F>(im);
        let e = exponential::<F>(re);
        (Z::new(e * c, e * s), sized(x) & sized(y) & (y.im != 0.0) & moderate(im, re))
    }
}
