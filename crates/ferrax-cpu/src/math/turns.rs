//! Sine and cosine of y · ln 2 for any f64: the angle of a complex power of 2.
//!
//! The angle's part of a turn is that of y · ln 2 / 2π, of which the whole turns must go before anything is rounded. Source:
//! Payne and Hanek, "Radian reduction for trigonometric functions", 1983.

use std::f64::consts::{LN_2, TAU};

/// ln 2 less the f64 `LN_2`.
const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
/// Below this size two f64 hold the angle.
const SMALL: f64 = 1e6;
/// The binary digits of ln 2 / 2π after the point, 64 a word.
const LN_2_TURNS: [u64; 19] = [
    0x1c3d_c98f_7e96_9bbb,
    0x2d82_160b_957f_bcf7,
    0x6384_efb3_4752_570d,
    0x875c_804e_baa7_e3f2,
    0x9dba_19bf_26d2_2f92,
    0x057d_72db_f62f_b884,
    0x40e5_36cc_0835_bad4,
    0x8c3f_ea6b_a432_f1cd,
    0x544d_633b_59f0_36cf,
    0x1243_456f_7646_8a7d,
    0x5a09_00ab_d7a3_e708,
    0xeffc_572f_1c7c_17fb,
    0x7f82_ec18_8aa3_23d9,
    0xdcc2_7116_9d40_8a0a,
    0xbab4_3090_d715_49ee,
    0xdd67_cd17_8b41_8a3a,
    0x2c69_58e8_94f9_8a46,
    0x3a97_ff6a_fab0_351e,
    0x73fb_6c6d_bf1e_2d0e,
];

/// Sine and cosine of y · ln 2.
pub fn sin_cos_of_octaves(y: f64) -> (f64, f64) {
    if !y.is_finite() {
        return (f64::NAN, f64::NAN);
    }
    if y == 0.0 {
        return (y, 1.0);
    }
    if y.abs() < SMALL {
        let angle = y * LN_2;
        let rest = y.mul_add(LN_2, -angle) + y * LN_2_REST;
        let (s, c) = angle.sin_cos();
        return (s + c * rest, c - s * rest);
    }
    let (s, c) = of_large(y.abs());
    (if y < 0.0 { -s } else { s }, c)
}

/// The same for y from `SMALL` on.
fn of_large(y: f64) -> (f64, f64) {
    let bits = y.to_bits();
    let (digits, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1075);
    // What is whole turns whatever the 53 digits are is left out: y = digits · 2^exponent.
    let turns = if exponent >= 0 {
        fraction(digits, exponent as usize)
    } else {
        // The product with the first digits has `-exponent` more of them after the point.
        let (high, low) = product(digits, 0);
        let shift = exponent.unsigned_abs();
        high << (128 - shift) | low >> shift
    };
    // Quarters of a turn, and what is left of one, between -1/8 and 1/8 of a turn.
    let quarter = turns.wrapping_add(1 << 125) >> 126;
    let rest = turns.wrapping_sub(quarter << 126) as i128;
    let (s, c) = (rest as f64 * 2f64.powi(-128) * TAU).sin_cos();
    match quarter {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    }
}

/// The fraction of digits · 2^exponent · ln 2 / 2π, in units of 2⁻¹²⁸.
fn fraction(digits: u64, exponent: usize) -> u128 {
    product(digits, exponent).1
}

/// digits times 192 of the binary digits from `first` on, over 2⁶⁴: what stands before the point, and 128 digits after it.
fn product(digits: u64, first: usize) -> (u128, u128) {
    let (word, bit) = (first / 64, first % 64);
    let at = |k: usize| u128::from(LN_2_TURNS.get(k).copied().unwrap_or(0));
    // 64 digits of the constant.
    let part = |k: usize| ((at(word + k) << 64 | at(word + k + 1)) >> (64 - bit)) & u128::from(u64::MAX);
    let digits = u128::from(digits);
    let (high, middle, low) = (digits * part(0), digits * part(1), digits * part(2));
    let middle = middle + (low >> 64);
    let after = (high & u128::from(u64::MAX)).wrapping_add(middle >> 64);
    ((high >> 64) + (after >> 64), after << 64 | (middle & u128::from(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digits of y · ln 2 / 2π one by one, from a product of whole numbers.
    fn slowly(y: f64) -> (f64, f64) {
        let bits = y.to_bits();
        let (digits, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1075);
        let mut words = vec![0u64; LN_2_TURNS.len() + 1];
        let mut carry = 0u128;
        for k in (0..LN_2_TURNS.len()).rev() {
            let sum = u128::from(digits) * u128::from(LN_2_TURNS[k]) + carry;
            (words[k + 1], carry) = (sum as u64, sum >> 64);
        }
        words[0] = carry as u64;
        let digit =
            |i: i32| (0..words.len() as i32 * 64).contains(&i).then(|| words[i as usize / 64] >> (63 - i % 64) & 1);
        let turns: f64 = (0..100).map(|i| digit(64 + exponent + i).unwrap_or(0) as f64 * 2f64.powi(-1 - i)).sum();
        (turns * TAU).sin_cos()
    }

    #[test]
    fn angles_of_any_size_are_exact() {
        for k in 0..2000 {
            let y = (1.0 + k as f64 / 1999.7) * 2f64.powi(k / 2 - 20);
            let (found, wanted) = (sin_cos_of_octaves(y), slowly(y));
            let far = (found.0 - wanted.0).abs().max((found.1 - wanted.1).abs());
            assert!(far < 2e-15, "{y:e}: {found:?} {wanted:?}");
            let (s, c) = sin_cos_of_octaves(-y);
            assert_eq!((s.to_bits(), c.to_bits()), ((-found.0).to_bits(), found.1.to_bits()));
        }
        assert_eq!(sin_cos_of_octaves(-0.0).0.to_bits(), (-0f64).to_bits());
        assert!(sin_cos_of_octaves(f64::INFINITY).0.is_nan());
    }
}
