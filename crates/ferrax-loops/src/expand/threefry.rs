//! The Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use super::code::X;
use crate::BinaryOp;
use ferrax_base::{DType, Scalar};

/// The third word of a key is the parity of the others and this.
const PARITY: i64 = 0x1bd1_1bda;
const ROTATIONS: [[i64; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];

fn word(x: X<'_>, v: i64) -> X<'_> {
    x.code.scalar(Scalar::from_i64(DType::U32, v))
}

fn rotated(x: X<'_>, by: i64) -> X<'_> {
    let left = x.bin(BinaryOp::ShiftLeft, word(x, by));
    left.bin(BinaryOp::Or, x.bin(BinaryOp::ShiftRightLogical, word(x, 32 - by)))
}

/// Both words of the blocks that the key makes of two words.
pub(super) fn threefry([k0, k1, x0, x1]: [X<'_>; 4]) -> [X<'_>; 2] {
    let third = k0.bin(BinaryOp::Xor, k1).bin(BinaryOp::Xor, word(k0, PARITY));
    let keys = [k0, k1, third];
    let (mut a, mut b) = (x0 + k0, x1 + k1);
    for i in 0..5 {
        for by in ROTATIONS[i % 2] {
            a = a + b;
            b = rotated(b, by).bin(BinaryOp::Xor, a);
        }
        a = a + keys[(i + 1) % 3];
        b = b + keys[(i + 2) % 3] + word(b, i as i64 + 1);
    }
    [a, b]
}
