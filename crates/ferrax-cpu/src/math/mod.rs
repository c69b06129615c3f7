//! Functions of one number at a time, written so that loops over them vectorize where it pays.
//!
//! `single` and `double` hold the real functions of f32 and f64 under the same names; what they share is in `arcs`, `powers`,
//! `hyperbolic`, `errors`, `bessel`, `gamma` and `incomplete`. `complex` has the complex ones with their branch cuts, and `together` those of many
//! numbers at once; `integer` division, `special` the gamma and zeta families number by number, for what `gamma` and `incomplete` are not for.
//! Sources: Cephes for the polynomials, Kahan ("Much ado about nothing's sign bit") for the complex inverses,
//! Giles for the inverse error function.

// Tiles are walked by the number of the lane, which the optimizer takes apart best; conditions without branches vectorize.
#![allow(clippy::needless_range_loop, clippy::needless_bitwise_bool, clippy::manual_range_contains)]

/// 1 / (1 + e^-x) of a tile; e^x where e^-x is near the end of the range, so that subnormal results are there too.
macro_rules! logistic_tile {
    ($T:ident, $exp:ident) => {
        /// The logistic function of a tile.
        ///
        /// # Safety
        /// As for `exp_all`.
        #[inline(always)]
        pub unsafe fn logistic_all<const F: bool, const W: bool, const N: usize>(x: &[$T; N], o: &mut [$T; N]) {
            let (mut minus, mut e) = ([0.0; N], [0.0; N]);
            for i in 0..N {
                minus[i] = -x[i];
            }
            // SAFETY: the caller's contract.
            unsafe { exp_all::<F, W, N>(&minus, &mut e) };
            let mut far = false;
            for i in 0..N {
                o[i] = 1.0 / (1.0 + e[i]);
                far |= x[i] < -NORMAL;
            }
            if far {
                for i in 0..N {
                    let small = $exp::<F>(x[i]);
                    o[i] = if x[i] < -NORMAL { small } else { o[i] };
                }
            }
        }
    };
}

/// Sine or cosine of a tile from the module's `quadrant`: all lanes, then the few large arguments again.
macro_rules! trig_tile {
    ($T:ident, $U:ident, $all:ident, $shift:literal, $exact:path) => {
        /// Sine or cosine of a tile.
        ///
        /// # Safety
        /// None; it is called like functions that have some.
        #[inline(always)]
        pub unsafe fn $all<const F: bool, const W: bool, const N: usize>(x: &[$T; N], o: &mut [$T; N]) {
            const SIGN: u32 = $U::BITS - 1;
            // Without fused multiply-add nothing is reduced exactly.
            let mut far = !F;
            for i in 0..N {
                let a = x[i].abs();
                let (y, q) = quadrant::<F>(a, $shift);
                let turned = q << (SIGN - 1);
                let sign = if $shift == 0 { turned ^ x[i].to_bits() } else { turned };
                o[i] = $T::from_bits(y.to_bits() ^ (sign & 1 << SIGN));
                far |= a > NEAR;
            }
            if far {
                for i in 0..N {
                    if !F || x[i].abs() > NEAR {
                        o[i] = $exact(f64::from(x[i])) as $T;
                    }
                }
            }
        }
    };
}
use {logistic_tile, trig_tile};

mod arcs;
mod bessel;
pub mod complex;
pub mod double;
mod errors;
mod gamma;
mod hyperbolic;
mod incomplete;
pub mod integer;
mod powers;
pub mod single;
pub mod special;
#[cfg(test)]
mod tests;
pub mod together;
mod turns;
